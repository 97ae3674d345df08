//! Transcendental functions as expansions into IEEE basic operations.
//!
//! A kernel computes the same bits on every device because `exp`, `log` and the like are not left to the
//! device: they are expanded in the IR, into additions, multiplications, fused multiply-adds, integer
//! operations and selects, all of which the IR specifies to the last bit. Expansions are straight-line code, but
//! for a branch that trigonometric functions take for large arguments, and the loop of `rem`.
//!
//! Each function is written once, generic over [`Arithmetic`]: [`Host`] computes it, for tests and for
//! folding constants; [`Emit`] appends it to a kernel. Results that are NaN are the canonical quiet NaN;
//! infinities, signed zeros, subnormal arguments and results are treated as IEEE 754 recommends.
//!
//! # Errors and costs
//!
//! The error is the largest distance to the exact value, in units in the last place of the result; for
//! `f32` found by trying every argument, for `f64` the largest one seen in random and hard arguments. The
//! cost is the number of operations left after common subexpressions are merged, without the moves between
//! the halves of a double and its two registers. Both are tested: a change must change this table.
//!
//! | function | error `f32` | cost `f32` | error `f64` | cost `f64` (of these on doubles) |
//! |---|---|---|---|---|
//! | exp | 0.90 | 19 | 0.90 | 27 (17) |
//! | exp2 | 1.00 | 18 | 1.00 | 26 (16) |
//! | log | 0.93 | 26 | 0.86 | 44 (23) |
//! | log2 | 1.00 | 28 | 1.00 | 44 (23) |
//! | sin | 1.60 | 23 | 1.60 | 29 (15) |
//! | cos | 1.60 | 24 | 1.60 | 30 (15) |
//! | tan | 3.50 | 21 | 3.00 | 27 (22) |
//! | log10 | 1.00 | 29 | 1.00 | 45 (24) |
//! | asin | 2.10 | 21 | 2.10 | 28 (23) |
//! | acos | 1.30 | 22 | 1.30 | 29 (20) |
//! | atan | 1.30 | 22 | 1.30 | 32 (28) |
//! | atan2 | 1.80 | 39 | 1.80 | 49 (35) |
//! | sinh | 1.50 | 33 | 1.50 | 38 (25) |
//! | cosh | 1.90 | 31 | 1.80 | 36 (23) |
//! | tanh | 2.80 | 21 | 2.80 | 27 (22) |
//! | erf | 1.80 | 28 | 1.60 | 50 (45) |
//! | pow | 0.60 | 70 | 2.00 | 132 (94) |
//! | cbrt | 1.00 | 40 | 0.75 | 48 (9) |
//! | hypot | 1.00 | 17 | 1.00 | 17 (9) |
//! | round | 0.00 | 3 | 0.00 | 3 (3) |
//! | rem | 0.00 | 16 | 0.00 | 16 (6) |

mod arithmetic;
mod emit;
mod function;
mod host;
mod large;
mod polynomial;
mod scale;

pub mod arc;
pub mod error_function;
pub mod exponential;
pub mod hyperbolic;
pub mod logarithm;
pub mod power;
pub mod remainder;
pub mod roots;
pub mod rounding;
pub mod trigonometric;

#[cfg(test)]
mod check;

pub use arithmetic::{Arithmetic, Float, Integer, Number, Operand, Scalar};
pub use emit::Emit;
pub use function::Function;
pub use host::{Host, HostNumber};
