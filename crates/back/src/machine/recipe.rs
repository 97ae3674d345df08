//! Recipes: the instructions that one operation becomes.
//!
//! The tables contain ptxas 13.0's output (sm_90) for each operation alone, read from disassembled code: the path that is
//! executed, with its dependences, and the bytes of the path for rare operands (subnormals, overflow) in between. The rare
//! paths themselves are calls and are not modelled.

use super::program::Class;

/// Where a step of a recipe gets an input from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Input {
    /// An operand of the operation, by position.
    Operand(usize),
    /// The result of an earlier step.
    Step(usize),
}

/// One instruction of a recipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecipeStep {
    /// Its unit.
    pub class: Class,
    /// Its inputs.
    pub inputs: &'static [Input],
    /// Instructions behind it that are jumped over.
    pub never_taken: u32,
    /// Whether it works for one work-item, however many there are.
    pub is_scalar: bool,
}

/// The instructions of an operation, in order. The one at `result` completes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Recipe {
    /// In order.
    pub steps: &'static [RecipeStep],
    /// Which step has the result; those after it only end the expansion.
    pub result: usize,
    /// The work-items that the steps work for; a larger sub-group goes through them again for the rest.
    pub at_a_time: Option<u32>,
}

pub(super) const fn step(class: Class, inputs: &'static [Input]) -> RecipeStep {
    RecipeStep {
        class,
        inputs,
        never_taken: 0,
        is_scalar: false,
    }
}

/// An instruction for one work-item.
pub(super) const fn scalar(class: Class, inputs: &'static [Input]) -> RecipeStep {
    RecipeStep {
        is_scalar: true,
        ..step(class, inputs)
    }
}

/// A jump that is not taken, or jumps over `never_taken` instructions.
pub(super) const fn jump(inputs: &'static [Input], never_taken: u32) -> RecipeStep {
    RecipeStep {
        class: Class::Branch,
        inputs,
        never_taken,
        is_scalar: false,
    }
}

use Class::{Convert, Fp32, Fp64, Int32, IntMultiply, Reconverge, Special};
use Input::{Operand as O, Step as S};

pub(super) const fn recipe(steps: &'static [RecipeStep]) -> Recipe {
    Recipe {
        steps,
        result: steps.len() - 1,
        at_a_time: None,
    }
}

/// A recipe that ends with the lanes meeting again.
const fn rejoined(steps: &'static [RecipeStep]) -> Recipe {
    Recipe {
        steps,
        result: steps.len() - 2,
        at_a_time: None,
    }
}

/// A row of a table in constant memory: its place, and a load (`LDC.64`). Taken for as fast as a special function; that
/// work-items which want different rows take turns is left out.
pub(crate) const TABLE_ROW: Recipe =
    recipe(&[step(Int32, &[O(0)]), step(Int32, &[S(0)]), step(Special, &[S(1)])]);

/// `sqrt.rn.f32`: `MUFU.RSQ`, a range check with a jump, two multiplications, two fused ones. Behind the jump: two moves, a call,
/// a jump. (Where ptxas finds the operand in the register of the call already, a move less: in about half of `gather`'s plans,
/// but not in the plain kernel.)
pub(crate) const SQRT_F32: Recipe = rejoined(&[
    step(Reconverge, &[]),
    step(Special, &[O(0)]),
    step(Int32, &[O(0)]),
    step(Int32, &[S(2)]),
    jump(&[S(3)], 4),
    step(Fp32, &[O(0), S(1)]),
    step(Fp32, &[S(1)]),
    step(Fp32, &[S(5), O(0)]),
    step(Fp32, &[S(7), S(6), S(5)]),
    step(Reconverge, &[]),
]);

/// `div.rn.f32`: `MUFU.RCP`, `FCHK`, five fused multiply-adds, a jump.
pub(crate) const DIV_F32: Recipe = Recipe {
    steps: &[
        step(Reconverge, &[]),
        step(Special, &[O(1)]),
        step(Special, &[O(0), O(1)]),
        step(Fp32, &[O(1), S(1)]),
        step(Fp32, &[S(1), S(3)]),
        step(Fp32, &[O(0), S(4)]),
        step(Fp32, &[O(1), S(5), O(0)]),
        step(Fp32, &[S(4), S(6), S(5)]),
        jump(&[S(2)], 3),
        step(Reconverge, &[]),
    ],
    result: 7,
    at_a_time: None,
};

/// `1 / x` in 32 bits.
pub(crate) const RECIPROCAL_F32: Recipe = rejoined(&[
    step(Reconverge, &[]),
    step(Int32, &[O(1)]),
    step(Int32, &[S(1)]),
    step(Int32, &[S(2)]),
    jump(&[S(3)], 3),
    step(Special, &[O(1)]),
    step(Fp32, &[O(1), S(5)]),
    step(Fp32, &[S(6)]),
    step(Fp32, &[S(5), S(7)]),
    step(Reconverge, &[]),
]);

/// `1 / x` in 32 bits without the check for rare operands: `MUFU.RCP`, two fused multiply-adds.
pub(crate) const RECIPROCAL_NORMAL: Recipe = recipe(&[
    step(Special, &[O(0)]),
    step(Fp32, &[O(0), S(0)]),
    step(Fp32, &[S(0), S(1)]),
]);

/// `sqrt.rn.f32` without the check for rare operands.
pub(crate) const SQRT_NORMAL: Recipe = recipe(&[
    step(Special, &[O(0)]),
    step(Fp32, &[O(0), S(0)]),
    step(Fp32, &[S(0)]),
    step(Fp32, &[S(1), O(0)]),
    step(Fp32, &[S(3), S(2), S(1)]),
]);

/// `sin.approx.f32`, `cos.approx.f32`: a multiplication by 1 / 2π, `MUFU`.
pub(crate) const SIN_APPROXIMATE: Recipe = recipe(&[step(Fp32, &[O(0)]), step(Special, &[S(0)])]);

/// `rsqrt.approx.f32`, `sqrt`, `ex2`, `lg2`: whether the argument is small, scaled if so, `MUFU`, scaled back.
pub(crate) const SCALED_APPROXIMATE: Recipe = recipe(&[
    step(Fp32, &[O(0)]),
    step(Fp32, &[O(0), S(0)]),
    step(Special, &[S(1)]),
    step(Fp32, &[S(2), S(0)]),
]);

/// `rcp.approx.f32`: whether the argument is small or large, the scale, `MUFU.RCP` between two multiplications.
pub(crate) const RECIPROCAL_APPROXIMATE: Recipe = recipe(&[
    step(Int32, &[]),
    step(Fp32, &[O(0)]),
    step(Fp32, &[O(0)]),
    step(Int32, &[S(0), S(1)]),
    step(Int32, &[S(3), S(2)]),
    step(Fp32, &[O(0), S(4)]),
    step(Special, &[S(5)]),
    step(Fp32, &[S(4), S(6)]),
]);

/// `div.full.f32`: both scaled for a large and for a small divisor, `MUFU.RCP`, a multiplication.
pub(crate) const DIV_APPROXIMATE: Recipe = recipe(&[
    step(Fp32, &[O(1)]),
    step(Fp32, &[O(1)]),
    step(Fp32, &[O(1), S(0)]),
    step(Fp32, &[O(0), S(0)]),
    step(Fp32, &[S(2), S(1)]),
    step(Fp32, &[S(3), S(1)]),
    step(Special, &[S(4)]),
    step(Fp32, &[S(6), S(5)]),
]);

/// `div.approx.f32`: both scaled for a small divisor, `MUFU.RCP`, a multiplication.
pub(crate) const DIV_APPROXIMATE_IN_RANGE: Recipe = recipe(&[
    step(Fp32, &[O(1)]),
    step(Fp32, &[O(1), S(0)]),
    step(Fp32, &[O(0), S(0)]),
    step(Special, &[S(1)]),
    step(Fp32, &[S(3), S(2)]),
]);

/// `div.rn.f64`: `MUFU.RCP64H`, eight double-precision instructions, two checks, a jump.
pub(crate) const DIV_F64: Recipe = Recipe {
    steps: &[
        step(Int32, &[]),
        step(Reconverge, &[]),
        step(Special, &[O(1)]),
        step(Fp32, &[O(0)]),
        step(Fp64, &[O(1), S(2), S(0)]),
        step(Fp64, &[S(4)]),
        step(Fp64, &[S(2), S(5)]),
        step(Fp64, &[O(1), S(6)]),
        step(Fp64, &[S(6), S(7)]),
        step(Fp64, &[O(0), S(8)]),
        step(Fp64, &[O(1), S(9), O(0)]),
        step(Fp64, &[S(8), S(10), S(9)]),
        step(Fp32, &[O(1), S(11)]),
        step(Fp32, &[S(12)]),
        jump(&[S(13), S(3)], 2),
        step(Reconverge, &[]),
    ],
    result: 11,
    at_a_time: None,
};

/// `sqrt.rn.f64`: `MUFU.RSQ64H`, eight double-precision instructions, a check, a jump.
pub(crate) const SQRT_F64: Recipe = Recipe {
    steps: &[
        step(Int32, &[]),
        step(Int32, &[]),
        step(Reconverge, &[]),
        step(Special, &[O(0)]),
        step(Int32, &[O(0)]),
        step(Int32, &[S(4)]),
        step(Fp64, &[S(3)]),
        step(Fp64, &[O(0), S(6)]),
        step(Fp64, &[S(7), S(0), S(1)]),
        step(Fp64, &[S(3), S(7)]),
        step(Fp64, &[S(8), S(9), S(3)]),
        step(Fp64, &[O(0), S(10)]),
        step(Int32, &[S(10)]),
        step(Int32, &[S(10)]),
        step(Fp64, &[S(11), O(0)]),
        step(Fp64, &[S(14), S(13), S(11)]),
        jump(&[S(5)], 4),
        step(Reconverge, &[]),
    ],
    result: 15,
    at_a_time: None,
};

/// `rsqrt.approx.f64`: `MUFU.RSQ64H`, five double-precision instructions, a check, a jump (ptxas 13.0, sm_90).
pub(crate) const RSQRT_F64: Recipe = Recipe {
    steps: &[
        step(Int32, &[]),
        step(Int32, &[]),
        step(Int32, &[]),
        step(Special, &[O(0), S(0)]),
        step(Int32, &[O(0)]),
        step(Int32, &[S(4)]),
        step(Fp64, &[S(3)]),
        step(Fp64, &[O(0), S(6)]),
        step(Fp64, &[S(7), S(1), S(2)]),
        step(Fp64, &[S(3), S(7)]),
        step(Fp64, &[S(8), S(9), S(3)]),
        jump(&[S(5)], 2),
    ],
    result: 10,
    at_a_time: None,
};

/// `div.u32` by a variable: through a 32-bit reciprocal, with two corrections.
pub(crate) const DIV_U32: Recipe = recipe(&[
    step(Convert, &[O(1)]),
    step(Int32, &[O(1)]),
    step(Int32, &[O(1)]),
    step(Special, &[S(0)]),
    step(Int32, &[S(3)]),
    step(Convert, &[S(4)]),
    step(Int32, &[]),
    step(IntMultiply, &[S(1), S(5)]),
    step(IntMultiply, &[S(5), S(7), S(6)]),
    step(IntMultiply, &[S(8), O(0)]),
    step(Int32, &[S(9)]),
    step(IntMultiply, &[O(1), S(10), O(0)]),
    step(Int32, &[S(11), O(1)]),
    step(Int32, &[S(12), S(11)]),
    step(Int32, &[S(12), S(9)]),
    step(Int32, &[S(13)]),
    step(Int32, &[S(15), S(14)]),
    step(Int32, &[S(2), S(16)]),
]);

/// `rem.u32` by a variable.
pub(crate) const REM_U32: Recipe = recipe(&[
    step(Convert, &[O(1)]),
    step(Int32, &[O(1)]),
    step(Int32, &[O(1)]),
    step(Special, &[S(0)]),
    step(Int32, &[S(3)]),
    step(Convert, &[S(4)]),
    step(Int32, &[]),
    step(IntMultiply, &[S(1), S(5)]),
    step(IntMultiply, &[S(5), S(7), S(6)]),
    step(IntMultiply, &[S(8), O(0)]),
    step(Int32, &[S(9)]),
    step(IntMultiply, &[O(1), S(10), O(0)]),
    step(Int32, &[S(11), O(1)]),
    step(Int32, &[S(12), S(11)]),
    step(Int32, &[S(13)]),
    step(Int32, &[S(14), S(13)]),
    step(Int32, &[S(2), S(15)]),
]);

/// `div.s32` and `rem.s32` by a variable: the unsigned way, on absolute values.
pub(crate) const DIV_S32: Recipe = recipe(&[
    step(Int32, &[O(1)]),
    step(Int32, &[O(1)]),
    step(Convert, &[S(0)]),
    step(Int32, &[O(0)]),
    step(Int32, &[O(0), O(1)]),
    step(Int32, &[S(4)]),
    step(Special, &[S(2)]),
    step(Int32, &[S(6)]),
    step(Convert, &[S(7)]),
    step(Int32, &[]),
    step(Int32, &[S(8)]),
    step(IntMultiply, &[S(10), S(0)]),
    step(IntMultiply, &[S(8), S(11), S(9)]),
    step(Int32, &[S(1)]),
    step(IntMultiply, &[S(12), S(3)]),
    step(IntMultiply, &[S(14), S(13), S(3)]),
    step(Int32, &[S(0), S(15)]),
    step(Int32, &[S(16), S(15)]),
    step(Int32, &[S(16), S(14)]),
    step(Int32, &[O(1)]),
    step(Int32, &[S(17), S(0)]),
    step(Int32, &[S(20), S(18)]),
    step(Int32, &[S(5), S(21)]),
    step(Int32, &[S(19), S(22)]),
]);

/// 64-bit division where both operands fit 32 bits, behind the test whether they do; the long way is
/// a call.
pub(crate) const DIV_64: Recipe = rejoined(&[
    step(Reconverge, &[]),
    step(Int32, &[O(0), O(1)]),
    step(Int32, &[S(1)]),
    jump(&[S(2)], 5),
    step(Convert, &[O(1)]),
    step(Int32, &[O(1)]),
    step(Int32, &[O(1)]),
    step(Special, &[S(4)]),
    step(Int32, &[S(7)]),
    step(Int32, &[]),
    step(Convert, &[S(8)]),
    step(Int32, &[]),
    step(IntMultiply, &[S(5), S(10)]),
    step(IntMultiply, &[S(10), S(12), S(11)]),
    step(IntMultiply, &[S(13), O(0)]),
    step(Int32, &[S(14)]),
    step(IntMultiply, &[O(1), S(15), O(0)]),
    step(Int32, &[S(16), O(1)]),
    step(Int32, &[S(17), S(16)]),
    step(Int32, &[S(17), S(14)]),
    step(Int32, &[S(18)]),
    step(Int32, &[S(20), S(19)]),
    step(Int32, &[S(6), S(21)]),
    step(Int32, &[S(22), S(9)]),
    step(Reconverge, &[]),
]);

/// 64-bit multiplication.
pub(crate) const MUL_64: Recipe = recipe(&[
    step(IntMultiply, &[O(0), O(1)]),
    step(IntMultiply, &[O(0), O(1)]),
    step(IntMultiply, &[O(0), O(1), S(0)]),
    step(Int32, &[S(1), S(2)]),
]);

/// The upper half of a 64-bit product.
pub(crate) const MUL_HIGH_64: Recipe = recipe(&[
    step(IntMultiply, &[O(0), O(1)]),
    step(IntMultiply, &[O(0), O(1)]),
    step(Int32, &[S(0), S(1)]),
    step(IntMultiply, &[O(0), O(1), S(2)]),
    step(Int32, &[S(3)]),
    step(IntMultiply, &[O(0), O(1)]),
    step(Int32, &[S(4), S(5)]),
    step(IntMultiply, &[S(6)]),
    step(Int32, &[S(7)]),
    step(Int32, &[S(8)]),
]);

/// Minimum or maximum of two 64-bit integers: two comparisons, two selections.
pub(crate) const MIN_64: Recipe = recipe(&[
    step(Int32, &[O(0), O(1)]),
    step(Int32, &[O(0), O(1), S(0)]),
    step(Int32, &[O(0), O(1), S(1)]),
    step(Int32, &[O(0), O(1), S(1), S(2)]),
]);

/// `min.f64` or `max.f64`: `DSETP`, two selections, the quiet NaN.
pub(crate) const MIN_F64: Recipe = recipe(&[
    step(Int32, &[O(0)]),
    step(Fp64, &[O(0), O(1)]),
    step(Int32, &[O(1)]),
    step(Int32, &[O(1)]),
    step(Int32, &[S(0), S(2), S(1)]),
    step(Int32, &[O(0), S(3), S(1)]),
    step(Int32, &[S(4), S(2), S(1)]),
    step(Int32, &[S(6), S(5)]),
]);

/// Leading zero bits of 64.
pub(crate) const LEADING_ZEROS_64: Recipe = recipe(&[
    step(Int32, &[O(0)]),
    step(Int32, &[O(0), S(0)]),
    step(Convert, &[S(1)]),
    step(Int32, &[S(2)]),
    step(Int32, &[S(2), S(3), S(0)]),
]);

/// Leading zero bits of 32: `FLO`, then a subtraction.
pub(crate) const LEADING_ZEROS_32: Recipe = recipe(&[step(Convert, &[O(0)]), step(Int32, &[S(0)])]);

/// A 64-bit shift by a variable.
pub(crate) const SHIFT_64: Recipe = recipe(&[
    step(Int32, &[O(1)]),
    step(Int32, &[O(0), S(0)]),
    step(Int32, &[O(0), S(0), S(1)]),
]);

/// An operation on both halves of 64 bits, the upper one after the lower one (a carry).
pub(crate) const CARRIED_64: Recipe = recipe(&[
    step(Int32, &[O(0), O(1), O(2)]),
    step(Int32, &[O(0), O(1), O(2), S(0)]),
]);

/// `IMAD.WIDE` with a 64-bit addend, where one factor has 64 bits and the other is a constant.
pub(crate) const SCALE_64: Recipe = recipe(&[
    step(IntMultiply, &[O(0), O(1), O(2)]),
    step(IntMultiply, &[O(0)]),
    step(Int32, &[S(0), S(1)]),
]);

/// Division by a constant: a multiplication by its reciprocal and corrections.
pub(crate) const DIV_CONSTANT_32: Recipe = recipe(&[
    step(IntMultiply, &[O(0)]),
    step(Int32, &[S(0), O(0)]),
    step(Int32, &[S(1)]),
    step(Int32, &[S(2)]),
]);

/// Counting or reversing bits of 64: once for each half.
pub(crate) const CONVERT_64: Recipe = recipe(&[
    step(Convert, &[O(0)]),
    step(Convert, &[O(0)]),
    step(Int32, &[S(0), S(1)]),
]);

/// The sub-group's position: the work-item's, shifted.
pub(crate) const SUB_GROUP: Recipe = recipe(&[step(Class::ReadId, &[]), step(Int32, &[S(0)])]);

/// The size of this sub-group, or their number: from the work-group's size and the position.
pub(crate) const SUB_GROUP_SIZE: Recipe = recipe(&[
    step(Class::ReadId, &[]),
    step(Int32, &[S(0)]),
    step(Int32, &[S(1)]),
    step(Int32, &[S(2)]),
]);

macro_rules! singles {
    ($($class:ident),+) => {
        /// One instruction on the operation's operands.
        pub(super) const fn single(class: Class) -> Recipe {
            match class {
                $(Class::$class => {
                    const SINGLE: Recipe = recipe(&[step(Class::$class, &[O(0), O(1), O(2)])]);
                    SINGLE
                })+
                _ => {
                    const SINGLE: Recipe = recipe(&[step(Convert, &[O(0), O(1), O(2)])]);
                    SINGLE
                }
            }
        }
    };
}

singles!(Int32, IntMultiply, Int64, Fp32, Fp64, Fp16, Special, ReadId);
