//! Halves of a word and fields of bits, each by the one instruction that has a name for it.
//!
//! ```text
//! mov.b32 {%h1, %h2}, %r1;         two floats of 16 bits out of a word: a truncation each, one of them of a shifted word
//! mov.b32 %r2, {%h1, %h2};         and into one: two extensions, a shift, an `or`
//! bfe.u32 %r3, %r1, 6, 2;          a shift and a mask
//! ```
//!
//! The machine code is as long either way, but ptxas schedules it otherwise. Written out, these operations lead it to 32 registers
//! and one load at a time where one instruction lets it take 59 and start all loads of an iteration: recurrent kernels of
//! flash-linear-attention took 1.3 to 1.5 of their original's time (ptxas 12.8, sm_90a).

use std::collections::{HashMap, HashSet};

use cranelift_entity::SecondaryMap;

use super::emitter::Emitter;
use super::registers::Class;
use crate::ir::{BinaryOp, ConvertOp, Kernel, Op, OpKind, Type, Value};
use crate::nan::NanPlan;

/// The kernel, as the shapes of its operations are looked for.
#[derive(Clone, Copy)]
pub(super) struct Shapes<'s, 'k> {
    pub kernel: &'k Kernel,
    pub definitions: &'s SecondaryMap<Value, Option<&'k Op>>,
    pub nans: &'s NanPlan,
}

/// One instruction for several operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FusedInstruction {
    /// The low or the high half of a word.
    Half { word: Value, is_high: bool },
    /// A word of two halves.
    Word { low: Value, high: Value },
    /// This many bits from this one on.
    Field { of: Value, first: u32, bits: u32 },
}

impl Shapes<'_, '_> {
    fn definition(&self, value: Value) -> Option<&OpKind> {
        self.definitions[value].map(|op| &op.kind)
    }

    fn is(&self, value: Value, ty: Type) -> bool {
        self.kernel.ty(value) == ty
    }

    fn is_half(&self, value: Value) -> bool {
        self.is(value, Type::F16) || self.is(value, Type::Bf16)
    }

    /// What an operation is written as, if it is one of these; and the operands that it does without.
    pub fn of(&self, kind: &OpKind, result: Value) -> Option<(FusedInstruction, Vec<Value>)> {
        match *kind {
            OpKind::Convert(ConvertOp::Bits, narrow) if self.is_half(result) => {
                let OpKind::Convert(ConvertOp::Truncate, word) = *self.definition(narrow)? else {
                    return None;
                };
                let fused = match self.shifted(word, BinaryOp::ShrU) {
                    Some((word, 16)) if self.is(word, Type::I32) => {
                        FusedInstruction::Half { word, is_high: true }
                    }
                    _ if self.is(word, Type::I32) => FusedInstruction::Half { word, is_high: false },
                    _ => return None,
                };
                Some((fused, vec![narrow]))
            }
            OpKind::Binary(BinaryOp::Or, a, b) if self.is(result, Type::I32) => {
                [(a, b), (b, a)].into_iter().find_map(|(low, high)| {
                    let (extended, count) = self.shifted(high, BinaryOp::Shl)?;
                    let low_half = self.extended_half(low)?;
                    let high_half = self.extended_half(extended).filter(|_| count == 16)?;
                    let fused = FusedInstruction::Word {
                        low: low_half,
                        high: high_half,
                    };
                    Some((fused, vec![low, high]))
                })
            }
            OpKind::Binary(BinaryOp::And, a, b) => {
                let bits = self.kernel.ty(result).bits();
                let mask = self.kernel.as_constant(b)?;
                let (of, first) = self.shifted(a, BinaryOp::ShrU)?;
                let wanted = mask.trailing_ones();
                let is_field = mask != 0 && u64::from(wanted) == u64::from(64 - mask.leading_zeros());
                let fits = matches!(bits, 32 | 64) && first != 0 && first + wanted <= bits;
                (is_field && fits).then(|| {
                    let fused = FusedInstruction::Field {
                        of,
                        first,
                        bits: wanted,
                    };
                    (fused, vec![a])
                })
            }
            _ => None,
        }
    }

    /// A value shifted by a constant.
    fn shifted(&self, value: Value, by: BinaryOp) -> Option<(Value, u32)> {
        match *self.definition(value)? {
            OpKind::Binary(op, of, count) if op == by => {
                let count = self.kernel.as_constant(count)?;
                Some((of, u32::try_from(count).ok()?))
            }
            _ => None,
        }
    }

    /// The float of 16 bits whose bits, extended to 32, this is.
    fn extended_half(&self, value: Value) -> Option<Value> {
        let OpKind::Convert(ConvertOp::ExtendU, bits) = *self.definition(value)? else {
            return None;
        };
        let OpKind::Convert(ConvertOp::Bits, half) = *self.definition(bits)? else {
            return None;
        };
        let is_word = self.is(value, Type::I32) && self.is(bits, Type::I16);
        // The bits of a NaN that is made canonical are other bits.
        (is_word && self.is_half(half) && !self.nans.at_use(half)).then_some(half)
    }

    /// The values that only such instructions use, which are written without them.
    pub fn folded(&self, uses: &HashMap<Value, u32>) -> HashSet<Value> {
        let mut without: HashMap<Value, u32> = HashMap::new();
        let mut found = Vec::new();
        self.kernel.body.walk(&mut |op| {
            if let [result] = op.results[..]
                && let Some((_, operands)) = self.of(&op.kind, result)
            {
                found.extend(operands);
            }
        });
        let mut folded = HashSet::new();
        while let Some(value) = found.pop() {
            let count = without.entry(value).or_default();
            *count += 1;
            let is_taken_apart = matches!(
                self.definition(value),
                Some(OpKind::Convert(..) | OpKind::Binary(BinaryOp::Shl | BinaryOp::ShrU, ..))
            );
            if uses.get(&value) != Some(count) || !is_taken_apart || !folded.insert(value) {
                continue;
            }
            // What it was made of is used once less, if it is one of these operations, too.
            match self.definition(value) {
                Some(OpKind::Convert(ConvertOp::Truncate, word))
                    if self
                        .shifted(*word, BinaryOp::ShrU)
                        .is_some_and(|(of, count)| count == 16 && self.is(of, Type::I32)) =>
                {
                    found.push(*word);
                }
                Some(OpKind::Binary(BinaryOp::Shl, extended, _)) => found.push(*extended),
                Some(OpKind::Convert(ConvertOp::ExtendU, bits)) => found.push(*bits),
                _ => {}
            }
        }
        folded
    }
}

impl Emitter<'_> {
    /// Writes an operation as one of these instructions, if it is one.
    pub(super) fn in_one(&mut self, kind: &OpKind, result: Value) -> bool {
        let shapes = Shapes {
            kernel: self.kernel,
            definitions: &self.definitions,
            nans: &self.nans,
        };
        let Some((fused, _)) = shapes.of(kind, result) else {
            return false;
        };
        let r = self.register(result);
        match fused {
            FusedInstruction::Half { word, is_high } => {
                let word = self.operand(word);
                let other = self.temporary(Class::B16);
                let (low, high) = match is_high {
                    true => (&other, &r),
                    false => (&r, &other),
                };
                self.ins(format!("mov.b32 {{{low}, {high}}}, {word}"));
            }
            FusedInstruction::Word { low, high } => {
                let (low, high) = (self.operand(low), self.operand(high));
                self.ins(format!("mov.b32 {r}, {{{low}, {high}}}"));
            }
            FusedInstruction::Field { of, first, bits } => {
                let width = self.ty(result).bits();
                let of = self.operand(of);
                self.ins(format!("bfe.u{width} {r}, {of}, {first}, {bits}"));
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use crate::ir::parse;
    use crate::ptx::{Options, PtxTarget, emit};

    /// The instructions of a kernel that computes this from the words `%a` and `%b`, without those that load and store.
    fn written(body: &str) -> String {
        let text = format!(
            "hsir 1\nkernel @k(%p: ptr.global i32[] align 4) any_nan {{\nload @a #1:1:1\nload @b #1:1:1\n\
             %a = load i32 %p, @a\n%q = address %p + 0:i64 * 1 + 4\n%b = load i32 %q, @b\n{body}\nstore %p, %r\nreturn\n}}"
        );
        let text = text.replace(" #1:1:1", "");
        let kernel = parse(&text, "test.hsir").unwrap_or_else(|error| panic!("{error}\n{text}"));
        let made =
            emit(&kernel, &Options::new(PtxTarget::Sm90)).unwrap_or_else(|error| panic!("{error}\n{text}"));
        made.text
    }

    fn counts(text: &str) -> [usize; 6] {
        ["mov.b32 {", ", {%", "bfe.u", "shr.", "shl.", "and.b"].map(|part| text.matches(part).count())
    }

    const HALVES: &str = "%s = shr.u %a, 16:i32\n%h = truncate %s to i16\n%l = truncate %a to i16\n%x = bits %h to f16\n%y = bits %l to f16\n";

    #[test]
    fn halves_are_taken_apart_and_put_together_by_moves() {
        let text = written(&format!(
            "{HALVES}%u = bits %x to i16\n%v = bits %y to i16\n%uw = extend.u %u to i32\n%vw = extend.u %v to i32\n\
             %hi = shl %vw, 16:i32\n%r = or %uw, %hi"
        ));
        assert_eq!(counts(&text), [2, 1, 0, 0, 0, 0], "{text}");
    }

    #[test]
    fn what_else_needs_is_computed() {
        // The shifted word is stored, too.
        let text = written(&format!(
            "{HALVES}%z = fadd %x, %y\n%zb = bits %z to i16\n%zw = extend.u %zb to i32\n%r = add %zw, %s"
        ));
        assert_eq!(counts(&text)[..4], [2, 0, 0, 1], "{text}");
    }

    #[test]
    fn a_shift_and_a_mask_are_a_field() {
        assert_eq!(
            counts(&written("%s = shr.u %a, 6:i32\n%r = and %s, 3:i32"))[2..],
            [1, 0, 0, 0]
        );
        // No field: bits that do not follow each other, and a shift that counts otherwise.
        assert_eq!(
            counts(&written("%s = shr.u %a, 6:i32\n%r = and %s, 5:i32"))[2..],
            [0, 1, 0, 1]
        );
        assert_eq!(
            counts(&written("%s = shr.s %a, 6:i32\n%r = and %s, 3:i32"))[2..],
            [0, 1, 0, 1]
        );
        assert_eq!(
            counts(&written("%s = shr.u %a, %b\n%r = and %s, 3:i32"))[2..],
            [0, 1, 0, 1]
        );
    }
}
