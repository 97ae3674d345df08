//! What decides when a loop ends that counts nothing.
//!
//! ```text
//! while keys[at] != key { at = next[at] }        what it loads from `keys`
//! while low < high { middle = (low + high) / 2 … }        a search that halves
//! ```
//! No trip count of such a loop is known in front of it. Who reads the refusal learns what the count depends on.

use std::collections::{HashMap, HashSet};

use super::definitions::{Definition, Definitions};
use super::jumps::jumps_out;
use super::roots::root;
use super::summary::Inside;
use crate::ir::{BinaryOp, Kernel, OpKind, Region, Space, Value};

/// What ends a loop, as the reason why its iterations are not counted.
pub(super) fn by_data(
    kernel: &Kernel,
    definitions: &Definitions,
    params: &[Value],
    inside: &HashMap<Value, Inside>,
    body: &Region,
) -> String {
    let mut slice = Slice {
        kernel,
        definitions,
        halves: false,
        shifts: false,
        clears: false,
        exchanges: false,
        carried_text: false,
        atomic: None,
        loaded: None,
    };
    if jumps_out(body)
        .iter()
        .all(|jump| matches!(jump.kind, OpKind::Continue(..)))
    {
        return "nothing ends it".to_owned();
    }
    let mut conditions = Vec::new();
    deciding(body, &mut conditions);
    let is_own = |value: Value| inside.contains_key(&value) || params.contains(&value);
    slice.follow(conditions, &is_own);
    slice.told()
}

/// The conditions on which jumps out of the loop, or to its next iteration, depend.
fn deciding(region: &Region, into: &mut Vec<Value>) {
    for op in &region.ops {
        let decides = |region: &Region| {
            let jumps = jumps_out(region);
            jumps.iter().any(|jump| match &jump.kind {
                OpKind::Break(to, _) => Some(*to) != op.kind.label(),
                OpKind::Continue(..) => true,
                kind => kind.effects().ends,
            })
        };
        if let OpKind::If { cond, .. } = &op.kind
            && op.kind.regions().any(decides)
        {
            into.push(*cond);
        }
        op.kind.regions().for_each(|inner| deciding(inner, into));
    }
}

/// What the values on which a loop's end depends are made of.
struct Slice<'k> {
    kernel: &'k Kernel,
    definitions: &'k Definitions,
    halves: bool,
    /// A carried number is shifted, or divided, by a constant.
    shifts: bool,
    /// A carried number loses the bits that are set in it.
    clears: bool,
    exchanges: bool,
    carried_text: bool,
    atomic: Option<Value>,
    loaded: Option<Value>,
}

impl Slice<'_> {
    fn follow(&mut self, mut work: Vec<Value>, is_own: &impl Fn(Value) -> bool) {
        let mut seen = HashSet::new();
        while let Some(value) = work.pop() {
            if !is_own(value) || !seen.insert(value) {
                continue;
            }
            match self.definitions.get(value) {
                None => {}
                Some(Definition::LoopParam { initial, next, .. }) => {
                    next.iter().for_each(|&next| self.used_up(value, next));
                    work.push(*initial);
                    work.extend(next);
                }
                Some(Definition::Result { kind, passed, .. }) => {
                    self.note(kind, is_own);
                    // What was loaded decides, wherever it lay.
                    if !matches!(kind, OpKind::Load { .. } | OpKind::Atomic { .. }) {
                        kind.for_each_operand(|operand| work.push(operand));
                    }
                    work.extend(passed);
                }
            }
        }
    }

    /// Notes how a carried number gets shorter, where it does.
    fn used_up(&mut self, number: Value, next: Value) {
        use BinaryOp::{And, DivU, Shl, ShrS, ShrU, Xor};
        let Some(&OpKind::Binary(op, a, b)) = self.definitions.op(next) else {
            return;
        };
        let constant = |value: Value| self.kernel.as_constant(value).is_some();
        match op {
            Shl | ShrS | ShrU | DivU => self.shifts |= a == number && constant(b),
            // `x & (x - 1)`, or `x ^ (1 << …)`.
            And | Xor if a == number || b == number => {
                let other = if a == number { b } else { a };
                self.clears |= match self.definitions.op(other) {
                    Some(OpKind::Binary(BinaryOp::Add, x, y)) => *x == number && constant(*y),
                    Some(OpKind::Binary(Shl | ShrU, x, _)) => self
                        .kernel
                        .as_constant(*x)
                        .is_some_and(|bits| bits.is_power_of_two()),
                    _ => false,
                };
            }
            _ => {}
        }
    }

    fn note(&mut self, kind: &OpKind, is_own: &impl Fn(Value) -> bool) {
        match kind {
            OpKind::Load { ptr, .. } => {
                // Global memory is what a reader can look at.
                let space = |ptr: Value| self.kernel.ty(ptr).space();
                if self
                    .loaded
                    .is_none_or(|other| space(other) == Some(Space::Shared))
                {
                    self.loaded = Some(*ptr);
                }
            }
            OpKind::Atomic { ptr, .. } => self.atomic = self.atomic.or(Some(*ptr)),
            OpKind::Opaque(..) => self.carried_text = true,
            kind if kind.effects().meets() => self.exchanges = true,
            OpKind::Binary(
                op @ (BinaryOp::ShrU | BinaryOp::ShrS | BinaryOp::DivU | BinaryOp::DivS),
                a,
                b,
            ) => {
                let by_shift = matches!(op, BinaryOp::ShrU | BinaryOp::ShrS);
                let half = self.kernel.as_constant(*b) == Some(if by_shift { 1 } else { 2 });
                // Of the sum or difference of two ends.
                let ends = |value: Value| match self.definitions.op(value) {
                    Some(OpKind::Binary(BinaryOp::Add | BinaryOp::Sub, a, b)) => is_own(*a) && is_own(*b),
                    _ => false,
                };
                let sum = |value: Value| match self.definitions.op(value) {
                    // Signed halves round towards zero.
                    Some(OpKind::Binary(BinaryOp::Add, a, b)) => ends(*a) || ends(*b),
                    _ => false,
                };
                self.halves |= half && (ends(*a) || sum(*a));
            }
            _ => {}
        }
    }

    fn told(&self) -> String {
        let memory = |pointer: Value| match root(self.kernel, self.definitions, pointer) {
            Some(root) => format!("`{}`", root.name(self.kernel)),
            None => "memory that is unknown".to_owned(),
        };
        match (self.atomic, self.loaded) {
            _ if self.halves => "it is a search that halves what is left until it finds its place".to_owned(),
            (Some(pointer), _) => {
                format!(
                    "its end depends on what an atomic operation finds in {}",
                    memory(pointer)
                )
            }
            (_, Some(pointer)) => format!("its end depends on what it loads from {}", memory(pointer)),
            _ if self.exchanges => {
                "its end depends on what the work-items of a sub-group or work-group exchange".to_owned()
            }
            _ if self.carried_text => {
                "its end depends on what an instruction gives that is carried as text".to_owned()
            }
            _ if self.shifts => {
                "its end depends on how often a number can be shifted or divided before nothing is left of it"
                    .to_owned()
            }
            _ if self.clears => "its end depends on how many bits of a number are set".to_owned(),
            _ => "its end depends on data that the loop computes".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::analysis::loops::first_loop;

    /// Why the loop with two carried values, `%a` and `%b`, is not counted.
    fn why(body: &str) -> String {
        let text = format!(
            "hsir 1\nkernel @k(%keys: ptr.global i32[] align 4, %n: i32) {{\n  load @keys\n  \
             loop 'l (%a = 0:i32, %b = %n) {{\n{body}\n  }}\n  return\n}}\n"
        );
        first_loop(&text).exit.expect_err("it counts nothing")
    }

    #[test]
    fn the_data_that_end_a_loop_are_named() {
        let chased = "%w = extend.u %a to i64\n%at = address %keys + %w * 4\n%x = load i32 %at, @keys\n";
        let by = |cond: &str, a: &str, b: &str| {
            why(&format!(
                "{chased}%c = {cond}\nif %c {{ yield }} else {{ break }}\ncontinue {a}, {b}"
            ))
        };
        assert_eq!(
            by("ne %x, %n", "%x", "%b"),
            "its end depends on what it loads from `keys`"
        );
        // The value loaded before decides, too.
        assert_eq!(
            by("ne %a, 7:i32", "%x", "%b"),
            "its end depends on what it loads from `keys`"
        );
        let collatz = "%t = mul %a, 3:i32\n%u = add %t, 1:i32\n%c = ne %u, %n\n\
                       if %c { yield } else { break }\ncontinue %u, %b";
        assert_eq!(why(collatz), "its end depends on data that the loop computes");
        assert_eq!(why("continue %a, %b"), "nothing ends it");
        let shifted =
            "%t = shr.u %b, 2:i32\n%c = ne %t, 0:i32\nif %c { yield } else { break }\ncontinue %a, %t";
        assert!(why(shifted).contains("shifted or divided"), "{}", why(shifted));
        let cleared = "%m = add %b, -1:i32\n%t = and %b, %m\n%c = ne %t, 0:i32\n\
                       if %c { yield } else { break }\ncontinue %a, %t";
        assert!(
            why(cleared).ends_with("bits of a number are set"),
            "{}",
            why(cleared)
        );
        let highest = "%z = clz %b\n%m = shr.u -2147483648:i32, %z\n%t = xor %m, %b\n%c = ne %t, 0:i32\n\
                       if %c { yield } else { break }\ncontinue %a, %t";
        assert!(
            why(highest).ends_with("bits of a number are set"),
            "{}",
            why(highest)
        );
        let voted = "%t = mul %a, 3:i32\n%o = ne %t, %n\n%c = vote any %o\n\
                     if %c { yield } else { break }\ncontinue %t, %b";
        assert!(why(voted).ends_with("exchange"), "{}", why(voted));
    }

    #[test]
    fn a_search_that_halves_is_one() {
        let search = "%s = add %a, %b\n%m = shr.u %s, 1:i32\n%w = extend.u %m to i64\n\
                      %at = address %keys + %w * 4\n%x = load i32 %at, @keys\n%less = lt.s %x, %n\n\
                      %low = select %less, %m, %a\n%high = select %less, %b, %m\n%c = lt.s %low, %high\n\
                      if %c { yield } else { break }\ncontinue %low, %high";
        assert!(why(search).starts_with("it is a search"), "{}", why(search));
    }
}
