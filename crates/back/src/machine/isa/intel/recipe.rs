//! Recipes of IGC for Xe.
//!
//! IEEE division and square root are macros around an approximation (`math.invm`, `math.rsqtm`): a jump for rare operands, a
//! chain of multiply-adds (`madm`), where lanes meet again. They work for 16 work-items; a sub-group of 32 goes through them
//! twice. In 32 bits the rounding mode is changed and put back (`cr0`). Where they need not be rounded, all of a sub-group go
//! through an approximation at once.
//!
//! Source: listings of IGC 2.40 for pvc.

use crate::machine::program::Class::{Fp32, Fp64, Int32, Int64, IntMultiply, Reconverge, Special};
use crate::machine::recipe::Input::{Operand as O, Step as S};
use crate::machine::recipe::{Recipe, RecipeStep, jump, recipe, scalar, step};

/// A macro of 16 work-items, whose result is that of a step.
const fn macro_of_16(steps: &'static [RecipeStep], result: usize) -> Recipe {
    Recipe {
        steps,
        result,
        at_a_time: Some(16),
    }
}

/// 32-bit division: `math.invm` and seven `madm`.
pub(crate) const DIV_F32: Recipe = macro_of_16(
    &[
        scalar(Int32, &[]),
        scalar(Int32, &[S(0)]),
        scalar(Int32, &[S(1)]),
        scalar(Int32, &[S(2)]),
        step(Special, &[O(0), O(1), S(3)]),
        jump(&[S(4)], 0),
        step(Fp32, &[O(0), S(4)]),
        step(Fp32, &[O(1), S(4)]),
        step(Fp32, &[S(4), S(7)]),
        step(Fp32, &[O(0), O(1), S(6)]),
        step(Fp32, &[S(6), S(9), S(8)]),
        step(Fp32, &[O(0), O(1), S(10)]),
        scalar(Int32, &[S(11)]),
        step(Fp32, &[S(10), S(11), S(8), S(12)]),
        step(Reconverge, &[]),
        scalar(Int32, &[]),
    ],
    13,
);

/// 32-bit division within 2.5 units in the last place: the divisor scaled into the range of `math.inv`, and 1 where both are equal.
pub(crate) const DIV_F32_SCALED: Recipe = recipe(&[
    step(Int32, &[O(1)]),
    step(Int32, &[S(0)]),
    step(Fp32, &[S(0)]),
    step(Fp32, &[S(2), S(1)]),
    step(Int32, &[S(0)]),
    step(Int32, &[O(1)]),
    step(Fp32, &[O(1), S(3)]),
    step(Int32, &[S(4)]),
    step(Int32, &[S(5)]),
    step(Special, &[S(6)]),
    step(Int32, &[S(7), S(8)]),
    scalar(Int32, &[S(10)]),
    step(Fp32, &[O(0), S(9)]),
    step(Fp32, &[O(0), O(1), S(11)]),
    step(Fp32, &[S(12), S(3)]),
    step(Fp32, &[S(14), S(13)]),
]);

/// 32-bit division where fast mathematics is allowed: `math.inv` and a product.
pub(crate) const DIV_F32_FAST: Recipe = recipe(&[step(Special, &[O(1)]), step(Fp32, &[O(0), S(0)])]);

/// 32-bit square root: `math.rsqtm` and seven `madm`.
pub(crate) const SQRT_F32: Recipe = macro_of_16(
    &[
        scalar(Int32, &[]),
        scalar(Int32, &[S(0)]),
        scalar(Int32, &[S(1)]),
        scalar(Int32, &[S(2)]),
        step(Special, &[O(0), S(3)]),
        jump(&[S(4)], 0),
        step(Fp32, &[S(4)]),
        step(Fp32, &[O(0), S(4)]),
        step(Fp32, &[S(7), S(6)]),
        step(Fp32, &[S(6), S(8)]),
        step(Fp32, &[S(7), S(8)]),
        step(Fp32, &[O(0), S(10)]),
        scalar(Int32, &[S(11)]),
        step(Fp32, &[S(10), S(9), S(11), S(12)]),
        step(Reconverge, &[]),
        scalar(Int32, &[]),
    ],
    13,
);

/// 64-bit division: `math.invm` and ten `madm`.
pub(crate) const DIV_F64: Recipe = macro_of_16(
    &[
        scalar(Int32, &[]),
        step(Special, &[O(0), O(1), S(0)]),
        jump(&[S(1)], 0),
        step(Fp64, &[O(0), S(1)]),
        step(Fp64, &[O(1), S(1)]),
        step(Fp64, &[O(0), O(1), S(3)]),
        step(Fp64, &[S(1), S(4)]),
        step(Fp64, &[O(1), S(6)]),
        step(Fp64, &[S(1), S(4), S(6)]),
        step(Fp64, &[S(3), S(5), S(6)]),
        step(Fp64, &[S(6), S(8), S(7)]),
        step(Fp64, &[O(0), O(1), S(9)]),
        step(Fp64, &[S(9), S(11), S(10)]),
        step(Reconverge, &[]),
    ],
    12,
);

/// 64-bit square root: `math.rsqtm` and eleven `madm`.
pub(crate) const SQRT_F64: Recipe = macro_of_16(
    &[
        scalar(Int32, &[]),
        step(Special, &[O(0), S(0)]),
        jump(&[S(1)], 0),
        step(Fp64, &[S(1)]),
        step(Fp64, &[O(0), S(1)]),
        step(Fp64, &[S(3), S(4)]),
        step(Fp64, &[S(5)]),
        step(Fp64, &[S(6), S(3)]),
        step(Fp64, &[S(6), S(4)]),
        step(Fp64, &[S(8), O(0)]),
        step(Fp64, &[S(9), S(7), S(8)]),
        step(Fp64, &[S(10), O(0)]),
        step(Fp64, &[S(11), S(7)]),
        step(Fp64, &[S(10), S(12)]),
        step(Reconverge, &[]),
    ],
    13,
);

/// 32-bit multiplication: `mul` of 16 bits into the accumulator, `macl` of the others.
pub(crate) const MUL_32: Recipe = macro_of_16(
    &[
        step(IntMultiply, &[O(0), O(1)]),
        step(IntMultiply, &[O(0), O(1), S(0)]),
    ],
    1,
);

/// The products of two halves and two bytes, added: a product and a fused one, which take their operands out of words.
pub(crate) const DOT_2: Recipe = recipe(&[
    step(IntMultiply, &[O(0), O(1)]),
    step(IntMultiply, &[O(0), O(1), S(0)]),
]);

/// The upper half of a 32-bit product: `mul`, `mach`.
pub(crate) const MUL_HIGH_32: Recipe = MUL_32;

/// The 64-bit product of two widened 32-bit values: `mul`, `macl` for the lower half, `mul`, `mach` for the upper one; both are put
/// together by moves.
pub(crate) const MUL_WIDE: Recipe = macro_of_16(
    &[
        step(IntMultiply, &[O(0), O(1)]),
        step(IntMultiply, &[O(0), O(1), S(0)]),
        step(IntMultiply, &[O(0), O(1)]),
        step(IntMultiply, &[O(0), O(1), S(2)]),
        step(Int32, &[S(1)]),
        step(Int32, &[S(3), S(4)]),
    ],
    5,
);

/// 64-bit multiplication: the same, and the products of the other halves.
pub(crate) const MUL_64: Recipe = macro_of_16(
    &[
        step(IntMultiply, &[O(0), O(1)]),
        step(IntMultiply, &[O(0), O(1), S(0)]),
        step(IntMultiply, &[O(0), O(1)]),
        step(IntMultiply, &[O(0), O(1), S(2)]),
        step(IntMultiply, &[O(0), O(1)]),
        step(IntMultiply, &[O(0), O(1), S(4)]),
        step(Int32, &[S(3), S(5)]),
        step(Int32, &[S(1)]),
        step(Int32, &[S(6), S(7)]),
    ],
    8,
);

/// Comparison of 64-bit integers: their halves are taken apart, the upper ones are equal, or decide.
pub(crate) const COMPARE_64: Recipe = recipe(&[
    step(Int64, &[O(0), O(1)]),
    step(Int64, &[O(0), O(1)]),
    step(Int32, &[S(0)]),
    step(Int32, &[S(1), S(2)]),
    step(Int32, &[S(1), S(3)]),
]);

/// The same where the halves are apart already: values that were widened, or that the whole sub-group has in common.
pub(crate) const COMPARE_HALVES: Recipe = recipe(&[
    step(Int32, &[O(0), O(1)]),
    step(Int32, &[O(0), O(1), S(0)]),
    step(Int32, &[O(0), O(1), S(1)]),
]);

/// `base + index × scale` in 64 bits: a shift, an addition.
pub(crate) const SCALED_ADDRESS_64: Recipe = recipe(&[step(Int64, &[O(1)]), step(Int64, &[O(0), S(0)])]);

/// `base + index × scale` in 64 bits where the index is shifted before it is widened.
pub(crate) const SHIFTED_ADDRESS_64: Recipe = recipe(&[step(Int32, &[O(1)]), step(Int64, &[O(0), S(0)])]);

/// `base + index × scale` in shared memory: a shift, an addition.
pub(crate) const SCALED_ADDRESS_32: Recipe = recipe(&[step(Int32, &[O(1)]), step(Int32, &[O(0), S(0)])]);
