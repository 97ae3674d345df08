//! Recipes of IGC for Xe: IEEE division and square root are macros of multiply-adds around an
//! approximation (`math.invm`, `math.rsqtm`), with a predicate for rare operands and no call.
//!
//! Source: the `madm` sequences in the Xe programmer's reference ("IEEE-compliant macros").

use super::program::Class::{Fp32, Fp64, Int32, Int64, IntMultiply, Special};
use super::recipe::Input::{Operand as O, Step as S};
use super::recipe::{Recipe, recipe, step};

/// 32-bit division: `math.invm` and eight `madm`.
pub const DIV_F32: Recipe = recipe(&[
    step(Special, &[O(0), O(1)]),
    step(Fp32, &[O(0), S(0)]),
    step(Fp32, &[O(1), S(0)]),
    step(Fp32, &[S(0), S(2)]),
    step(Fp32, &[O(1), S(1), O(0)]),
    step(Fp32, &[S(1), S(4), S(3)]),
    step(Fp32, &[O(1), S(3)]),
    step(Fp32, &[S(5), O(1), O(0)]),
    step(Fp32, &[S(5), S(6), S(7)]),
]);

/// 32-bit square root: `math.rsqtm` and seven `madm`.
pub const SQRT_F32: Recipe = recipe(&[
    step(Special, &[O(0)]),
    step(Fp32, &[S(0)]),
    step(Fp32, &[O(0), S(0)]),
    step(Fp32, &[S(1), S(2)]),
    step(Fp32, &[S(3), S(1)]),
    step(Fp32, &[S(3), S(2)]),
    step(Fp32, &[S(5), O(0)]),
    step(Fp32, &[S(6), S(4), S(5)]),
]);

/// 64-bit division: `math.invm` and ten `madm`.
pub const DIV_F64: Recipe = recipe(&[
    step(Special, &[O(0), O(1)]),
    step(Fp64, &[O(1), S(0)]),
    step(Fp64, &[S(0), S(1)]),
    step(Fp64, &[S(1)]),
    step(Fp64, &[S(2), S(3)]),
    step(Fp64, &[O(0), S(4)]),
    step(Fp64, &[O(1), S(5), O(0)]),
    step(Fp64, &[O(1), S(4)]),
    step(Fp64, &[S(4), S(7)]),
    step(Fp64, &[S(5), S(6), S(8)]),
    step(Fp64, &[S(9), O(1), O(0)]),
]);

/// 64-bit square root: `math.rsqtm` and eleven `madm`.
pub const SQRT_F64: Recipe = recipe(&[
    step(Special, &[O(0)]),
    step(Fp64, &[S(0)]),
    step(Fp64, &[O(0), S(0)]),
    step(Fp64, &[S(1), S(2)]),
    step(Fp64, &[S(3)]),
    step(Fp64, &[S(4), S(1)]),
    step(Fp64, &[S(4), S(2)]),
    step(Fp64, &[S(6), O(0)]),
    step(Fp64, &[S(7), S(5), S(6)]),
    step(Fp64, &[S(8), O(0)]),
    step(Fp64, &[S(9), S(5)]),
    step(Fp64, &[S(8), S(10)]),
]);

/// 64-bit multiplication from 32-bit ones.
pub const MUL_64: Recipe = recipe(&[
    step(IntMultiply, &[O(0), O(1)]),
    step(IntMultiply, &[O(0), O(1)]),
    step(IntMultiply, &[O(0), O(1)]),
    step(IntMultiply, &[O(0), O(1)]),
    step(Int32, &[S(1), S(2)]),
    step(Int32, &[S(3), S(4)]),
]);

/// `base + index × scale` in 64 bits: a shift, an addition.
pub const SCALED_ADDRESS_64: Recipe = recipe(&[step(Int64, &[O(1)]), step(Int64, &[O(0), S(0)])]);

/// `base + index × scale` in shared memory: a shift, an addition.
pub const SCALED_ADDRESS_32: Recipe = recipe(&[step(Int32, &[O(1)]), step(Int32, &[O(0), S(0)])]);
