//! Transcendental functions as expansions into IEEE basic operations.
//!
//! A kernel computes the same bits on every device because `exp`, `log` and similar functions are not left to the device. They
//! are expanded in the IR, into additions, multiplications, fused multiply-adds, integer operations and selects, all of which
//! the IR specifies to the last bit. Expansions are straight-line code, except for branches to rare cases (large arguments of
//! trigonometric functions, logarithms of numbers that are not normal, unusual powers), and the loop of `rem`.
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
//! | exp | 1.94 | 10 | 1.00 | 28 (18) |
//! | exp2 | 2.06 | 6 | 0.90 | 27 (17) |
//! | log | 0.93 | 20 | 0.86 | 44 (23) |
//! | log2 | 0.97 | 22 | 0.90 | 44 (23) |
//! | sin | 1.54 | 23 | 1.52 | 29 (15) |
//! | cos | 1.54 | 24 | 1.52 | 30 (15) |
//! | tan | 3.23 | 19 | 3.10 | 27 (22) |
//! | log10 | 0.94 | 23 | 0.90 | 45 (24) |
//! | asin | 1.67 | 18 | 2.15 | 28 (23) |
//! | acos | 1.19 | 20 | 1.25 | 29 (20) |
//! | atan | 1.62 | 17 | 1.40 | 32 (28) |
//! | atan2 | 2.10 | 35 | 1.85 | 49 (35) |
//! | sinh | 1.63 | 24 | 1.70 | 38 (25) |
//! | cosh | 1.36 | 16 | 1.65 | 36 (23) |
//! | tanh | 1.99 | 15 | 2.70 | 27 (22) |
//! | erf | 1.80 | 25 | 1.95 | 50 (45) |
//! | pow | 0.55 | 42 | 1.70 | 131 (94) |
//! | cbrt | 1.00 | 16 | 0.75 | 48 (9) |
//! | hypot | 1.02 | 18 | 1.02 | 17 (9) |
//! | round | 0.00 | 3 | 0.00 | 3 (3) |
//! | rem | 0.00 | 16 | 0.00 | 16 (6) |
//!
//! Compared with CUDA 13.0's own functions, on an H200 with all work-items busy in a loop of calls, the time in double
//! precision is 0.5 (`rem`) to 1.25 times theirs, `exp` 1.09, `log` 0.89. Only `asin` and `acos`, for which CUDA branches, take
//! 1.5 and 1.3.
//!
//! In single precision `headstart-lab bench --suite functions` times both; `results/math-instructions.json` has the machine
//! instructions of both, on the common path and in total. Rare cases are behind a branch if that shortens the common path:
//! large angles, logarithms of numbers that are not normal, powers that are not normal or have a negative base. Comparisons,
//! selections and most integer operations have half the throughput of float additions (64 results per clock and core, CUDA C++
//! Programming Guide): sine and cosine therefore evaluate two polynomials instead of selecting coefficients. Reciprocals and
//! roots rounded to nearest are those of normal numbers ([`NormalReciprocal`](crate::ir::UnaryOp::NormalReciprocal)): the
//! hardware's approximation and the step that rounds it to nearest, without the path for rare operands.
//!
//! Powers and logarithms of two, and reciprocals that need not be rounded to nearest, use NVIDIA's single instructions for
//! them, in `exp`, `exp2`, `sinh`, `cosh`, `tanh`, `cbrt` and `atan`. [`ir::eval::table`](crate::ir::eval::table) specifies
//! their results in integers, so that the host and other devices compute the same bits. There each is expanded into 60 to 80
//! operations: an `exp` that takes 8 instructions on an H200 takes ten times as many on an Intel GPU, or on an A100, whose
//! instruction that has not been compared.
//!
//! The remaining difference to CUDA's counts: a stored result takes two instructions more, for the bits of a NaN.

mod arithmetic;
mod emit;
mod function;
mod host;
mod large;
mod polynomial;
mod scale;

pub(crate) mod arc;
pub(crate) mod arc_single;
pub(crate) mod error_function;
pub(crate) mod exponential;
pub(crate) mod hyperbolic;
pub(crate) mod logarithm;
pub(crate) mod power;
pub(crate) mod remainder;
pub(crate) mod roots;
pub(crate) mod rounding;
pub mod table;
pub(crate) mod trigonometric;

#[cfg(test)]
mod check;

pub use arithmetic::{Arithmetic, Float, Integer, Number, Operand, Scalar};
pub use emit::Emit;
pub use function::Function;
pub use host::{Host, HostNumber};
