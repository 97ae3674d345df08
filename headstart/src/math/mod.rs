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
//! the halves of a double and its two registers. A division or a root counts as one. Both are tested: a
//! change must change this table.
//!
//! | function | error `f32` | cost `f32` | error `f64` | cost `f64` (of these on doubles) |
//! |---|---|---|---|---|
//! | exp | 0.91 | 19 | 0.92 | 29 (18) |
//! | exp2 | 0.88 | 18 | 0.90 | 28 (17) |
//! | log | 0.93 | 26 | 0.86 | 44 (23) |
//! | log2 | 0.97 | 28 | 0.90 | 44 (23) |
//! | sin | 1.54 | 23 | 1.52 | 29 (15) |
//! | cos | 1.54 | 24 | 1.52 | 30 (15) |
//! | tan | 3.23 | 21 | 3.10 | 27 (22) |
//! | log10 | 0.94 | 29 | 0.90 | 45 (24) |
//! | asin | 2.04 | 21 | 2.15 | 28 (23) |
//! | acos | 1.16 | 22 | 1.25 | 29 (20) |
//! | atan | 1.21 | 22 | 1.40 | 32 (28) |
//! | atan2 | 1.60 | 39 | 1.85 | 49 (35) |
//! | sinh | 1.31 | 33 | 1.70 | 38 (25) |
//! | cosh | 1.86 | 31 | 1.65 | 36 (23) |
//! | tanh | 2.54 | 21 | 2.70 | 27 (22) |
//! | erf | 1.80 | 28 | 1.95 | 50 (45) |
//! | pow | 0.55 | 70 | 1.70 | 132 (94) |
//! | cbrt | 0.99 | 40 | 0.75 | 48 (9) |
//! | hypot | 1.02 | 17 | 1.02 | 17 (9) |
//! | round | 0.00 | 3 | 0.00 | 3 (3) |
//! | rem | 0.00 | 16 | 0.00 | 16 (6) |
//!
//! Against CUDA 13.0's own functions, on an H200 with all work-items busy in a loop of calls, the time in
//! double precision is 0.5 (`rem`) to 1.25 times theirs, `exp` 1.09, `log` 0.89; only `asin` and `acos`, where
//! CUDA branches, take 1.5 and 1.3. In single precision most take 1.0 to 1.6 times as long, and those that
//! CUDA takes from the hardware's approximations (`exp`, `exp2`, `tanh`, `cbrt`) about twice: other devices
//! do not have their bits. `results/math-instructions.json` has the machine instructions of both: `exp` takes 24 beside
//! CUDA's 10, `exp2` 22 beside 4, two of ours for the bits of a NaN. Of the 19 operations of `exp` 6 are a polynomial of
//! the documented error, and 13 clamp, split, reduce and scale, most of which the approximation does for CUDA: no order
//! of them comes near. A division (in `tan`, `atan`, `tanh`) counts a hundred there, for its way for subnormal numbers,
//! which is rarely run.

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
