//! 64-bit counters narrowed to 32 bits.
//!
//! Before, with `n` and `c` below 2³²:
//!
//! ```text
//! if i0 < n { loop i = i0 { …; j = add i, c; if j < n { } else { break j }; continue j } }
//! ```
//!
//! After:
//!
//! ```text
//! if i0 < n { m = max(n, c) - c; loop k = truncate i0 {
//!   i = extend k; …; more = k < m; l = add k, c; if more { } else { j = add i, c; break j }; continue l } }
//! ```
//!
//! GPUs add and compare 64-bit integers in two instructions. `k < m` says whether `i + c` is below `n` without that sum, which
//! may not fit 32 bits; behind the test in front, which [rotating](super::rotate) leaves, `i` itself always does. Addresses are
//! then computed from the counter in each iteration, by one instruction (`IMAD.WIDE` on NVIDIA's GPUs); a loop-carried pointer
//! takes two.

use std::collections::HashMap;
use std::mem;

use cranelift_entity::EntitySet;

use super::saturated::Saturated;
use crate::analysis::definitions::Definitions;
use crate::analysis::ranges::range;
use crate::ir::{BinaryOp, CompareOp, ConvertOp, Kernel, NoWrapOp, Op, OpKind, Place, Region, Type, Value};

/// Narrows every counter of the kernel that can be.
pub(crate) fn narrow(kernel: &mut Kernel) {
    let definitions = Definitions::of(kernel);
    let mut body = mem::take(&mut kernel.body);
    let mut narrower = Narrower {
        kernel,
        definitions: &definitions,
    };
    narrower.region(&mut body, None);
    kernel.body = body;
}

/// That one value is below another, as unsigned numbers.
#[derive(Clone, Copy)]
struct Below {
    value: Value,
    limit: Value,
}

struct Narrower<'k> {
    kernel: &'k mut Kernel,
    definitions: &'k Definitions,
}

/// A counter that can be narrowed.
struct Counter {
    /// Which parameter of the loop.
    position: usize,
    step: Value,
    /// Whether the loop goes on where its last condition holds.
    stays_if: bool,
    /// The loop's definitions.
    inside: EntitySet<Value>,
}

impl Narrower<'_> {
    /// Narrows in a region in which something is known.
    fn region(&mut self, region: &mut Region, known: Option<Below>) {
        let mut ops = Vec::with_capacity(region.ops.len());
        for mut op in mem::take(&mut region.ops) {
            if let (OpKind::Loop { .. }, Some(known)) = (&op.kind, known) {
                self.loop_(&mut op, known, &mut ops);
            }
            match &mut op.kind {
                OpKind::If {
                    cond,
                    then,
                    otherwise,
                    ..
                } => {
                    let (known, holds) = self.below(*cond).unzip();
                    self.region(then, known.filter(|_| holds == Some(true)));
                    self.region(otherwise, known.filter(|_| holds == Some(false)));
                }
                kind => {
                    for inner in kind.regions_mut() {
                        self.region(inner, None);
                    }
                }
            }
            ops.push(op);
        }
        region.ops = ops;
    }

    /// The relation of two values that a condition states, and whether it holds if the condition does.
    fn below(&self, cond: Value) -> Option<(Below, bool)> {
        match *self.definitions.op(cond)? {
            OpKind::Compare(CompareOp::LtU, value, limit) => Some((Below { value, limit }, true)),
            OpKind::Compare(CompareOp::LeU, limit, value) => Some((Below { value, limit }, false)),
            _ => None,
        }
    }

    /// Whether a value is below 2³².
    fn fits(&self, value: Value) -> bool {
        let most = |value| range(self.kernel, self.definitions, value).max;
        if most(value) <= u64::from(u32::MAX) {
            return true;
        }
        // What something is taken from is not less before.
        Saturated::find(self.kernel, self.definitions, value)
            .is_some_and(|less| !less.signed && most(less.of) <= u64::from(u32::MAX))
    }

    /// The counter of a loop that runs only where this is known.
    fn counter(&self, op: &Op, known: Below) -> Option<Counter> {
        let OpKind::Loop {
            label,
            params,
            initial,
            body,
            ..
        } = &op.kind
        else {
            return None;
        };
        let [.., test, last] = &body.ops[..] else {
            return None;
        };
        let (
            OpKind::If {
                label: own,
                cond,
                then,
                otherwise,
            },
            OpKind::Continue(to, values),
        ) = (&test.kind, &last.kind)
        else {
            return None;
        };
        let (below, stays_if) = self.below(*cond)?;
        let leaves = if stays_if { otherwise } else { then };
        if to != label || body.continues(*label) != 1 || leaves.breaks_to(*own) || below.limit != known.limit
        {
            return None;
        }
        let mut starts = params.iter().zip(initial).zip(values);
        let position = starts.position(|((&param, &start), &next)| {
            start == known.value && next == below.value && self.kernel.ty(param) == Type::I64
        })?;
        let step = match *self.definitions.op(below.value)? {
            OpKind::Binary(BinaryOp::Add, a, b) | OpKind::NoWrap(NoWrapOp::Add, _, a, b) => {
                let param = params[position];
                if a == param { b } else { (b == param).then_some(a)? }
            }
            _ => return None,
        };
        let inside = body.defined(params);
        (!inside.contains(step) && self.fits(step) && self.fits(known.limit)).then_some(Counter {
            position,
            step,
            stays_if,
            inside,
        })
    }

    fn loop_(&mut self, op: &mut Op, known: Below, before: &mut Vec<Op>) {
        let Some(Counter {
            position,
            step,
            stays_if,
            inside,
        }) = self.counter(op, known)
        else {
            return;
        };
        let place = op.place;
        let OpKind::Loop {
            params,
            initial,
            body,
            ..
        } = &mut op.kind
        else {
            return;
        };
        let mut narrow = Narrow {
            narrower: self,
            place,
            before,
            of: HashMap::new(),
        };
        let (start, limit, step_32) = (narrow.of(known.value), narrow.of(known.limit), narrow.of(step));
        let most = narrow.push(OpKind::Binary(BinaryOp::MaxU, limit, step_32));
        let most = narrow.push(OpKind::Binary(BinaryOp::Sub, most, step_32));
        let wide = params[position];
        let counter = narrow.narrower.kernel.value_like(wide);
        narrow.narrower.kernel.values[counter].ty = Type::I32;
        narrow.of.insert(wide, counter);
        narrow.comparisons(body, wide, &inside);

        params[position] = counter;
        initial[position] = start;
        let kernel = &mut *self.kernel;
        let (more, next) = (kernel.value(Type::Bool), kernel.value(Type::I32));
        let made = |kind, result| Op::new(kind, vec![result], place);
        let comparison = match stays_if {
            true => OpKind::Compare(CompareOp::LtU, counter, most),
            false => OpKind::Compare(CompareOp::LeU, most, counter),
        };
        let bump = OpKind::Binary(BinaryOp::Add, counter, step_32);
        let at = body.ops.len() - 2;
        let mut old = None;
        if let OpKind::Continue(_, values) = &mut body.ops[at + 1].kind {
            old = Some(mem::replace(&mut values[position], next));
        }
        if let OpKind::If {
            cond,
            then,
            otherwise,
            ..
        } = &mut body.ops[at].kind
        {
            *cond = more;
            // The values passed on leaving are summed up there.
            let leaves = if stays_if { otherwise } else { then };
            if let Some(old) = old {
                let sum = kernel.value_like(old);
                let passed = |operand: Value| if operand == old { sum } else { operand };
                leaves.walk_mut(&mut |op| op.kind.map_operands(passed));
                let add = OpKind::Binary(BinaryOp::Add, wide, step);
                leaves.ops.insert(0, made(add, sum));
            }
        }
        body.ops.insert(at, made(bump, next));
        body.ops.insert(at, made(comparison, more));
        body.ops
            .insert(0, made(OpKind::Convert(ConvertOp::ExtendU, counter), wide));
    }
}

/// Makes 32-bit values in front of a loop.
struct Narrow<'n, 'k> {
    narrower: &'n mut Narrower<'k>,
    place: Place,
    before: &'n mut Vec<Op>,
    /// The new form of each value.
    of: HashMap<Value, Value>,
}

impl Narrow<'_, '_> {
    /// The lower half of a 64-bit value that is known before the loop.
    fn of(&mut self, value: Value) -> Value {
        if let Some(&known) = self.of.get(&value) {
            return known;
        }
        let kernel = &mut *self.narrower.kernel;
        let narrow = match (kernel.as_constant(value), self.narrower.definitions.op(value)) {
            (Some(bits), _) => kernel.constant(Type::I32, bits),
            (_, Some(&OpKind::Convert(ConvertOp::ExtendU, narrow))) if kernel.ty(narrow) == Type::I32 => {
                narrow
            }
            _ => self.push(OpKind::Convert(ConvertOp::Truncate, value)),
        };
        self.of.insert(value, narrow);
        narrow
    }

    fn push(&mut self, kind: OpKind) -> Value {
        let result = self.narrower.kernel.value(Type::I32);
        self.before.push(Op::new(kind, vec![result], self.place));
        result
    }

    /// Compares the counter in 32 bits with invariant values that fit.
    fn comparisons(&mut self, region: &mut Region, wide: Value, inside: &EntitySet<Value>) {
        region.walk_mut(&mut |op| {
            if let OpKind::Compare(CompareOp::Eq | CompareOp::Ne | CompareOp::LtU | CompareOp::LeU, a, b) =
                &mut op.kind
                && (*a == wide || *b == wide)
            {
                let other = if *a == wide { *b } else { *a };
                if !inside.contains(other) && self.narrower.fits(other) {
                    (*a, *b) = (self.of(*a), self.of(*b));
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cleanup::clean;
    use crate::ir::{parse, print, verify};

    /// A loop from 0 to a number of this type, by a step of this type, cleaned.
    fn cleaned(limit: &str, step: &str) -> String {
        let widened = |name: &str, ty: &str| match ty {
            "i64" => format!("%{name} = add %{name}0, 0:i64"),
            _ => format!("%{name} = extend.u %{name}0 to i64"),
        };
        let text = format!(
            "hsir 1\nkernel @t(%a: ptr.global i32[%length] align 4 unaliased, %length: i64, %n0: {limit}, %c0: {step}, %z: i64) {{\n\
             load @a\n{}\n{}\n%end = loop 'l (%i = 0:i64, %sum = 0:i32) -> i64 {{\n%m = lt.u %i, %n\n\
             if %m {{ yield }} else {{ break %i }}\n%p = address %a + %i * 4\n%x = load i32 %p, @a\n\
             %odd = lt.u %i, %n\n%more = add %sum, %x\n%next = add %i, %c\ncontinue %next, %more\n}}\n\
             %q = address %a + %end * 4\nstore %q, 1:i32\nreturn\n}}",
            widened("n", limit),
            widened("c", step),
        );
        let kernel = parse(&text, "test").expect("it parses");
        verify(&kernel).expect("it is right");
        let cleaned = clean(&kernel);
        verify(&cleaned).expect("it stays right");
        print(&cleaned)
    }

    #[test]
    fn a_counter_below_32_bits_takes_32() {
        let text = cleaned("i32", "i32");
        let inside = text.split_once("= loop").expect("a loop").1;
        let (inside, after) = inside.split_once("continue").expect("it goes on");
        assert!(inside.contains("lt.u") && !inside.contains("0:i64,"), "{text}");
        // The sum of 64 bits is left for the way out.
        let (inside, leaving) = inside.split_once("else").expect("it leaves");
        assert!(
            !inside.contains("extend.u %c0") && leaving.contains("add"),
            "{text}"
        );
        assert!(after.contains("store"), "{text}");
    }

    #[test]
    fn one_of_64_bits_stays() {
        for (limit, step) in [("i64", "i32"), ("i32", "i64")] {
            let text = cleaned(limit, step);
            assert!(text.contains("(%i = 0:i64"), "{text}");
        }
    }

    #[test]
    fn a_limit_that_is_subtracted_from_fits() {
        let text = "hsir 1\nkernel @t(%n0: i32, %k: i64) {\n%n = extend.u %n0 to i64\n%few = lt.u %n, 3:i64\n\
                    %less = sub %n, 3:i64\n%m = select %few, 0:i64, %less\n%other = select %few, 0:i64, %k\nreturn\n}";
        let mut kernel = parse(text, "test").expect("it parses");
        let definitions = Definitions::of(&kernel);
        let named = |name: &str| {
            let of_name = |(value, data): (Value, &crate::ir::ValueData)| {
                (data.name.as_deref() == Some(name)).then_some(value)
            };
            kernel.values.iter().find_map(of_name).expect("it is there")
        };
        let [m, other, less] = ["m", "other", "less"].map(named);
        let narrower = Narrower {
            kernel: &mut kernel,
            definitions: &definitions,
        };
        assert!(narrower.fits(m) && !narrower.fits(other) && !narrower.fits(less));
    }
}
