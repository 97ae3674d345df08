//! The tests that end loops, as the analyses look for them.
//!
//! ```text
//! before                                        after
//! loop (%i = 0: i64) {                          %bound = add %n, -8
//!   %bound = add %n, -8                         loop (%i = 0: i64, %low = 0: i32) {
//!   %next = add %i, 256                           %next = add %i, 256
//!   %low = truncate %next to i32                  %then = add %low, 256
//!   %more = lt.s %low, %bound                     %more = lt.s %then, %bound
//! ```
//!
//! A bound or a step that is made in the loop, of what the loop does not change, is made in front of it. Low bits, sums and
//! differences of a counter that are compared become a counter of their own; one that is compared behind an extension is
//! compared itself, if the bound has its width, too. A flag that is set in the first iteration and ends the second becomes a counter:
//!
//! ```text
//! loop (%first = true) {                        loop (%i = 0: i32) {
//!                                                 %first = lt.u %i, 1
//!   if %first { yield } else { break }            if %first { yield } else { break }
//!                                                 %next = add %i, 1
//!   continue false                                continue %next
//! ```
//!
//! All rewrites are exact.

mod companion;

use cranelift_entity::EntitySet;

use crate::analysis::definitions::Definitions;
use crate::analysis::jumps::leaves;
use crate::analysis::ranges::range;
use crate::ir::eval::signed;
use crate::ir::{
    BinaryOp, CompareOp, ConvertOp, Kernel, Label, Op, OpKind, Place, Region, Type, UnaryOp, Value,
};

/// Most operations that a bound is made of.
const MOST_OPERATIONS: usize = 8;

/// Rewrites the tests that end loops. Says whether there are any.
pub(crate) fn prepare(kernel: &mut Kernel) -> bool {
    let definitions = Definitions::of(kernel);
    let mut body = std::mem::take(&mut kernel.body);
    let found = region(kernel, &definitions, &mut body);
    kernel.body = body;
    found
}

fn region(kernel: &mut Kernel, definitions: &Definitions, region_: &mut Region) -> bool {
    let mut found = false;
    let mut ops = Vec::with_capacity(region_.ops.len());
    for mut op in std::mem::take(&mut region_.ops) {
        if let OpKind::Loop {
            label,
            params,
            initial,
            body,
            wishes,
        } = &mut op.kind
        {
            let mut looped = Loop {
                kernel: &mut *kernel,
                definitions,
                label: *label,
                params,
                initial,
                body,
                place: op.place,
                before: Vec::new(),
                counts: false,
            };
            looped.prepare();
            let Loop { before, counts, .. } = looped;
            // The assembler would unroll such a loop now, and did not before: as it was is how it stays.
            if counts {
                wishes.unroll = None;
            }
            found |= counts;
            ops.extend(before);
        }
        for inner in op.kind.regions_mut() {
            found |= region(kernel, definitions, inner);
        }
        ops.push(op);
    }
    region_.ops = ops;
    found
}

/// A loop whose tests are rewritten.
struct Loop<'a> {
    kernel: &'a mut Kernel,
    definitions: &'a Definitions,
    label: Label,
    params: &'a mut Vec<Value>,
    initial: &'a mut Vec<Value>,
    body: &'a mut Region,
    place: Place,
    /// What comes in front of the loop.
    before: Vec<Op>,
    /// Whether a test counts that did not.
    counts: bool,
}

impl Loop<'_> {
    fn prepare(&mut self) {
        for (cond, continues_on) in self.conditions() {
            self.count_flag(cond, continues_on);
        }
        let compared = self.compared();
        if !compared.is_empty() {
            self.move_steps();
        }
        for cond in compared {
            self.move_bounds(cond);
            self.compare_narrow(cond);
            self.compare_companion(cond);
        }
    }

    /// The conditions that end the loop, right in its body, and the side of each on which it goes on.
    fn conditions(&self) -> Vec<(Value, bool)> {
        let mut found = Vec::new();
        for op in &self.body.ops {
            if let OpKind::If {
                label,
                cond,
                then,
                otherwise,
            } = &op.kind
            {
                let sides = [then, otherwise].map(|side| leaves(side, *label, self.label));
                if sides[0] != sides[1] {
                    found.push((*cond, sides[1]));
                }
            }
        }
        found
    }

    /// The comparisons among them.
    fn compared(&self) -> Vec<Value> {
        let mut found: Vec<Value> = Vec::new();
        for (cond, _) in self.conditions() {
            let mut at = cond;
            while let Some(OpKind::Unary(UnaryOp::Not, inner)) = self.made(at).map(|op| &op.kind) {
                at = *inner;
            }
            let is_comparison = self
                .made(at)
                .is_some_and(|op| matches!(op.kind, OpKind::Compare(..)));
            if is_comparison && !found.contains(&at) {
                found.push(at);
            }
        }
        found
    }

    /// The operation right in the body that makes a value.
    fn made(&self, value: Value) -> Option<&Op> {
        self.body.ops.iter().find(|op| op.results.first() == Some(&value))
    }

    fn inside(&self) -> EntitySet<Value> {
        self.body.defined(self.params)
    }

    /// The operands of a comparison.
    fn operands(&self, comparison: Value) -> Option<(CompareOp, Value, Value)> {
        match self.made(comparison)?.kind {
            OpKind::Compare(op, a, b) => Some((op, a, b)),
            _ => None,
        }
    }

    fn replace_comparison(&mut self, comparison: Value, kind: OpKind) {
        let found = self
            .body
            .ops
            .iter_mut()
            .find(|op| op.results.first() == Some(&comparison));
        if let Some(op) = found {
            op.kind = kind;
            self.counts = true;
        }
    }

    /// An operation in front of the loop.
    fn ahead(&mut self, kind: OpKind, ty: Type) -> Value {
        let result = self.kernel.value(ty);
        self.before.push(Op::new(kind, vec![result], self.place));
        result
    }

    /// The low bits of a value that the loop does not change.
    fn truncated(&mut self, value: Value, ty: Type) -> Value {
        match self.kernel.as_constant(value) {
            Some(bits) => self.kernel.constant(ty, bits & ty.mask()),
            None => self.ahead(OpKind::Convert(ConvertOp::Truncate, value), ty),
        }
    }

    /// A flag that ends the second iteration becomes a counter.
    fn count_flag(&mut self, cond: Value, continues_on: bool) {
        let Some(index) = self.params.iter().position(|&param| param == cond) else {
            return;
        };
        let first = self.kernel.as_constant(self.initial[index]);
        // Every iteration comes to the test, so that there is no third.
        let Some(Op {
            kind: OpKind::Continue(to, args),
            ..
        }) = self.body.ops.last()
        else {
            return;
        };
        let then = args.get(index).and_then(|&next| self.kernel.as_constant(next));
        let is_first = |bits: Option<u64>| bits == Some(u64::from(continues_on));
        if *to != self.label
            || self.body.continues(self.label) != 1
            || !is_first(first)
            || then != Some(u64::from(!continues_on))
        {
            return;
        }
        let (counter, next) = (self.kernel.value(Type::I32), self.kernel.value(Type::I32));
        let (zero, one) = (
            self.kernel.constant(Type::I32, 0),
            self.kernel.constant(Type::I32, 1),
        );
        let place = self.place;
        let made = |kind, result| Op::new(kind, vec![result], place);
        let test = match continues_on {
            true => OpKind::Compare(CompareOp::LtU, counter, one),
            false => OpKind::Compare(CompareOp::LeU, one, counter),
        };
        self.params[index] = counter;
        self.initial[index] = zero;
        self.body.ops.insert(0, made(test, cond));
        let last = self.body.ops.len() - 1;
        self.body
            .ops
            .insert(last, made(OpKind::Binary(BinaryOp::Add, counter, one), next));
        if let Some(Op {
            kind: OpKind::Continue(_, args),
            ..
        }) = self.body.ops.last_mut()
        {
            args[index] = next;
        }
        self.counts = true;
    }

    /// What the operands of a comparison are made of, and the loop does not change, comes in front of the loop.
    fn move_bounds(&mut self, comparison: Value) {
        let Some((_, a, b)) = self.operands(comparison) else {
            return;
        };
        for operand in [a, b] {
            self.move_ahead(operand);
        }
    }

    /// So does what counters grow by.
    fn move_steps(&mut self) {
        let Some(Op {
            kind: OpKind::Continue(to, args),
            ..
        }) = self.body.ops.last()
        else {
            return;
        };
        if *to != self.label {
            return;
        }
        let steps: Vec<Value> = std::iter::zip(&*self.params, args)
            .filter_map(|(&param, &next)| match self.made(next)?.kind {
                OpKind::Binary(BinaryOp::Add, a, b) if a == param && b != param => Some(b),
                OpKind::Binary(BinaryOp::Add, a, b) if b == param && a != param => Some(a),
                _ => None,
            })
            .collect();
        for step in steps {
            self.move_ahead(step);
        }
    }

    /// Moves a value in front of the loop, with all that it is made of, if the loop does not change it.
    fn move_ahead(&mut self, value: Value) {
        let inside = self.inside();
        let mut wanted = vec![value];
        let mut chain: Vec<Value> = Vec::new();
        while let Some(value) = wanted.pop() {
            if !inside.contains(value) || chain.contains(&value) {
                continue;
            }
            let made = self
                .made(value)
                .filter(|op| op.kind.is_pure() && op.results.len() == 1);
            let Some(op) = made.filter(|_| chain.len() < MOST_OPERATIONS) else {
                return;
            };
            chain.push(value);
            op.kind.for_each_operand(|operand| wanted.push(operand));
        }
        if chain.is_empty() {
            return;
        }
        let is_moved = |op: &Op| op.results.first().is_some_and(|result| chain.contains(result));
        let (moved, left): (Vec<Op>, Vec<Op>) =
            std::mem::take(&mut self.body.ops).into_iter().partition(is_moved);
        self.body.ops = left;
        self.before.extend(moved);
        self.counts = true;
    }

    /// `extend %i < %bound` becomes a comparison of `%i`, if the bound has its width.
    fn compare_narrow(&mut self, comparison: Value) {
        let Some((op, a, b)) = self.operands(comparison) else {
            return;
        };
        let inside = self.inside();
        for (wide, bound, is_left) in [(a, b, true), (b, a, false)] {
            let Some(&OpKind::Convert(extension, narrow)) = self.made(wide).map(|op| &op.kind) else {
                continue;
            };
            if inside.contains(bound) {
                continue;
            }
            let ty = self.kernel.ty(narrow);
            let Some(op) = self.narrowed(op, extension, bound, ty) else {
                continue;
            };
            let bound = self.truncated(bound, ty);
            let kind = match is_left {
                true => OpKind::Compare(op, narrow, bound),
                false => OpKind::Compare(op, bound, narrow),
            };
            self.replace_comparison(comparison, kind);
            return;
        }
    }

    /// The comparison of two numbers of a type that is that of their extensions, if the bound is one.
    fn narrowed(&self, op: CompareOp, extension: ConvertOp, bound: Value, ty: Type) -> Option<CompareOp> {
        let is_signed = match extension {
            ConvertOp::ExtendU => false,
            ConvertOp::ExtendS => true,
            _ => return None,
        };
        let fits = match (is_signed, self.kernel.as_constant(bound)) {
            (false, _) => range(self.kernel, self.definitions, bound).max <= ty.mask(),
            (true, Some(bits)) => {
                let number = signed(self.kernel.ty(bound), bits);
                signed(ty, number as u64 & ty.mask()) == number
            }
            (true, None) => match self.definitions.op(bound) {
                Some(OpKind::Convert(ConvertOp::ExtendS, from)) => self.kernel.ty(*from) == ty,
                _ => range(self.kernel, self.definitions, bound).max <= ty.mask() >> 1,
            },
        };
        match (op, is_signed) {
            _ if !fits => None,
            (CompareOp::Eq | CompareOp::Ne, _) => Some(op),
            (CompareOp::LtS | CompareOp::LtU, false) => Some(CompareOp::LtU),
            (CompareOp::LeS | CompareOp::LeU, false) => Some(CompareOp::LeU),
            (CompareOp::LtS | CompareOp::LeS, true) => Some(op),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::loops::summarize;
    use crate::cleanup;
    use crate::ir::{parse, print, verify};

    /// A kernel with a loop, rewritten; whether its loop counted before, and now.
    fn prepared(before: &str, looped: &str) -> (String, [bool; 2]) {
        let text = format!(
            "hsir 1\nkernel @t(%out: ptr.global i32[] align 4, %n: i32, %wide: i64) {{\n{before}\n{looped}\nreturn\n}}\n"
        );
        let mut kernel = parse(&text, "t.hsir").unwrap_or_else(|error| panic!("{error}\n{text}"));
        let counts = |kernel: &Kernel| {
            let definitions = Definitions::of(kernel);
            let mut found = false;
            kernel.body.walk(&mut |op| {
                if matches!(op.kind, OpKind::Loop { .. }) {
                    let summary = summarize(kernel, &definitions, op);
                    found |= summary.exit.is_ok() || summary.unless_wraps.is_some();
                }
            });
            found
        };
        let was = counts(&kernel);
        prepare(&mut kernel);
        verify(&kernel).unwrap_or_else(|error| panic!("{error}\n{}", print(&kernel)));
        cleanup::tidy(&mut kernel);
        let is = counts(&kernel);
        (print(&kernel), [was, is])
    }

    #[test]
    fn a_bound_that_the_loop_makes_comes_first() {
        let (text, counts) = prepared(
            "",
            "loop 'l (%i = 0:i32) {\nstore %out, %i\n%less = add %n, -8:i32\n%bound = mul %less, 2:i32\n\
             %next = add %i, 1:i32\n%more = lt.s %next, %bound\nif %more { yield } else { break }\ncontinue %next\n}",
        );
        assert_eq!(counts, [false, true], "{text}");
        // So does a step.
        let (text, counts) = prepared(
            "",
            "loop 'l (%i = 0:i32) {\nstore %out, %i\n%step = id.group_count.y\n%next = add %i, %step\n\
             %more = lt.s %next, %n\nif %more { yield } else { break }\ncontinue %next\n}",
        );
        assert_eq!(counts, [false, true], "{text}");
        // One of the values that the loop makes is no bound.
        let (text, counts) = prepared(
            "",
            "loop 'l (%i = 0:i32, %m = %n) {\nstore %out, %i\n%bound = add %m, -8:i32\n%next = add %i, 1:i32\n\
             %then = mul %m, 3:i32\n%more = lt.s %next, %bound\nif %more { yield } else { break }\n\
             continue %next, %then\n}",
        );
        assert_eq!(counts, [false, false], "{text}");
    }

    #[test]
    fn a_flag_that_ends_the_second_iteration_counts() {
        let flag = |first: &str, sides: &str, next: &str| {
            prepared(
                "",
                &format!(
                    "loop 'l (%flag = {first}) {{\nstore %out, %n\nif %flag {sides}\ncontinue {next}\n}}"
                ),
            )
        };
        let (text, counts) = flag("true", "{ yield } else { break }", "false");
        assert_eq!(counts, [false, true], "{text}");
        let (text, counts) = flag("false", "{ break } else { yield }", "true");
        assert_eq!(counts, [false, true], "{text}");
        // It ends the first one, or none.
        for (first, sides, next) in [
            ("true", "{ break } else { yield }", "false"),
            ("true", "{ yield } else { break }", "true"),
        ] {
            assert_eq!(flag(first, sides, next).1, [false, false]);
        }
    }

    #[test]
    fn low_bits_of_a_counter_get_a_counter() {
        let (text, counts) = prepared(
            "",
            "loop 'l (%i = %wide) {\nstore %out, %n\n%next = add %i, 512:i64\n%low = truncate %next to i32\n\
             %more = lt.s %low, %n\nif %more { yield } else { break }\ncontinue %next\n}",
        );
        assert_eq!(counts, [false, true], "{text}");
        assert!(text.contains("truncate ") && text.contains("lt.s %"), "{text}");
        // What is left of a number of the launch's.
        let left = |step: &str| {
            prepared(
                "",
                &format!(
                    "loop 'l (%i = %wide) {{\nstore %out, %n\n%left = sub 4096:i64, %i\n%more = lt.u 255:i64, %left\n\
                     if %more {{ yield }} else {{ break }}\n%next = {step} %i, 256:i64\ncontinue %next\n}}"
                ),
            )
        };
        assert_eq!(left("add").1, [false, true], "{}", left("add").0);
        assert_eq!(left("mul").1, [false, false]);
        let (text, counts) = prepared(
            "",
            "loop 'l (%i = %wide) {\nstore %out, %n\n%next = mul %i, 3:i64\n%low = truncate %next to i32\n\
             %more = lt.s %low, %n\nif %more { yield } else { break }\ncontinue %next\n}",
        );
        assert_eq!(counts, [false, false], "{text}");
    }

    #[test]
    fn a_counter_behind_an_extension_is_compared_itself() {
        let extended = |before: &str, more: &str| {
            prepared(
                before,
                &format!(
                    "loop 'l (%i = 0:i32) {{\nstore %out, %i\n%next = add %i, 1:i32\n%x = extend.{more}\n\
                     if %more {{ yield }} else {{ break }}\ncontinue %next\n}}"
                ),
            )
        };
        let (text, counts) = extended(
            "%bound = and %wide, 3:i64",
            "u %next to i64\n%more = lt.u %x, %bound",
        );
        assert_eq!(counts, [false, true], "{text}");
        let (text, counts) = extended(
            "%bound = extend.s %n to i64",
            "s %next to i64\n%more = lt.s %x, %bound",
        );
        assert_eq!(counts, [false, true], "{text}");
        // The bound has more bits.
        let (text, counts) = extended("", "u %next to i64\n%more = lt.u %x, %wide");
        assert_eq!(counts, [false, false], "{text}");
    }
}
