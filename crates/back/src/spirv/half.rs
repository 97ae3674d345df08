//! Halves: 16 bits that are widened for arithmetic and rounded once.
//!
//! The IR computes them in wider types and rounds at the end. If an intermediate rounding would be visible, it is *to odd*:
//! towards zero, with the last bit set if anything was lost. A later rounding to nearest, to at least two digits fewer, then
//! gives the same as a single rounding.

use rspirv::spirv::{Op as Code, Word};

use super::emitter::Emitter;
use crate::ir::Type;

impl Emitter<'_> {
    /// A half as a binary32, exactly.
    pub(super) fn widened(&mut self, ty: Type, x: Word) -> Word {
        let single = self.module.float(32);
        if ty == Type::F16 {
            let half = self.module.float(16);
            let half = self.module.ins(Code::Bitcast, half, &[x]);
            return self.module.ins(Code::FConvert, single, &[half]);
        }
        let int = self.module.int(32);
        let wide = self.module.ins(Code::UConvert, int, &[x]);
        let sixteen = self.module.constant(32, 16);
        let bits = self.module.ins(Code::ShiftLeftLogical, int, &[wide, sixteen]);
        self.module.ins(Code::Bitcast, single, &[bits])
    }

    /// A binary32 rounded to a half.
    pub(super) fn narrowed(&mut self, ty: Type, x: Word) -> Word {
        let (short, int) = (self.module.int(16), self.module.int(32));
        if ty == Type::F16 {
            let half = self.module.float(16);
            let half = self.module.ins(Code::FConvert, half, &[x]);
            return self.module.ins(Code::Bitcast, short, &[half]);
        }
        // Half of a unit less one, and one more where the unit's bit is set: ties go to even.
        let [one, sixteen, almost] = [1, 16, 0x7fff].map(|number| self.module.constant(32, number));
        let bits = self.module.ins(Code::Bitcast, int, &[x]);
        let unit = self.module.ins(Code::ShiftRightLogical, int, &[bits, sixteen]);
        let unit = self.module.ins(Code::BitwiseAnd, int, &[unit, one]);
        let sum = self.module.ins(Code::IAdd, int, &[bits, almost]);
        let sum = self.module.ins(Code::IAdd, int, &[sum, unit]);
        let upper = self.module.ins(Code::ShiftRightLogical, int, &[sum, sixteen]);
        let rounded = self.module.ins(Code::UConvert, short, &[upper]);
        let boolean = self.module.boolean();
        let is_nan = self.module.ins(Code::IsNan, boolean, &[x]);
        let nan = self.module.constant(16, 0x7fc0);
        self.module.ins(Code::Select, short, &[is_nan, nan, rounded])
    }

    /// `a × b + c` of halves: the product is exact in binary64, the sum rounded to odd there.
    pub(super) fn half_fma(&mut self, ty: Type, operands: [Word; 3]) -> Word {
        let double = self.module.float(64);
        let [a, b, c] = operands.map(|operand| {
            let wide = self.widened(ty, operand);
            self.module.ins(Code::FConvert, double, &[wide])
        });
        let product = self.module.ins(Code::FMul, double, &[a, b]);
        let sum = self.sum_to_odd(product, c);
        self.double_to_half(ty, sum)
    }

    /// A binary64 rounded once to a half.
    pub(super) fn double_to_half(&mut self, ty: Type, x: Word) -> Word {
        let odd = self.single_to_odd(x);
        self.narrowed(ty, odd)
    }

    /// The sum of two binary64, rounded to odd.
    pub(super) fn sum_to_odd(&mut self, a: Word, b: Word) -> Word {
        let (double, long) = (self.module.float(64), self.module.int(64));
        let sum = self.module.ins(Code::FAdd, double, &[a, b]);
        // Knuth's two-sum: the exact error of the addition.
        let part = self.module.ins(Code::FSub, double, &[sum, a]);
        let rest = self.module.ins(Code::FSub, double, &[sum, part]);
        let of_a = self.module.ins(Code::FSub, double, &[a, rest]);
        let of_b = self.module.ins(Code::FSub, double, &[b, part]);
        let error = self.module.ins(Code::FAdd, double, &[of_a, of_b]);
        let bits = self.module.ins(Code::Bitcast, long, &[sum]);
        let zero = self.module.float_constant(64, 0);
        self.odd(bits, 64, sum, error, zero)
    }

    /// A binary64 rounded to odd in binary32.
    fn single_to_odd(&mut self, x: Word) -> Word {
        let (single, double) = (self.module.float(32), self.module.float(64));
        let int = self.module.int(32);
        let near = self.module.ins(Code::FConvert, single, &[x]);
        let back = self.module.ins(Code::FConvert, double, &[near]);
        let error = self.module.ins(Code::FSub, double, &[x, back]);
        let bits = self.module.ins(Code::Bitcast, int, &[near]);
        let zero = self.module.float_constant(64, 0);
        self.odd(bits, 32, back, error, zero)
    }

    /// A number rounded to nearest, with these bits and this value, rounded to odd instead; `error` is the exact value minus
    /// the rounded one. If that is no number (nothing was lost, or the value is not finite) the bits stay, except beyond the
    /// largest finite number, where the error is infinite and leads back below it.
    fn odd(&mut self, bits: Word, width: u32, rounded: Word, error: Word, zero: Word) -> Word {
        let (int, float) = (self.module.int(width), self.module.float(width));
        let boolean = self.module.boolean();
        let one = self.module.constant(width, 1);
        let lost = self.module.ins(Code::FOrdNotEqual, boolean, &[error, zero]);
        // Away from zero: the error has the other sign. What became zero went towards it.
        let positive = self.module.ins(Code::FOrdGreaterThan, boolean, &[error, zero]);
        let above = self.module.ins(Code::FOrdGreaterThan, boolean, &[rounded, zero]);
        let differ = self
            .module
            .ins(Code::LogicalNotEqual, boolean, &[positive, above]);
        let some = self.module.ins(Code::FOrdNotEqual, boolean, &[rounded, zero]);
        let away = self.module.ins(Code::LogicalAnd, boolean, &[differ, some]);
        let less = self.module.ins(Code::ISub, int, &[bits, one]);
        let towards = self.module.ins(Code::Select, int, &[away, less, bits]);
        let odd = self.module.ins(Code::BitwiseOr, int, &[towards, one]);
        let made = self.module.ins(Code::Select, int, &[lost, odd, bits]);
        self.module.ins(Code::Bitcast, float, &[made])
    }
}
