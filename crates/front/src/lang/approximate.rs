//! Functions of `f32` as the hardware approximates them: fast, and not the same bits on every device.
//!
//! They have names of their own: `x.exp2()` is the same everywhere, `approximate_exp2(x)` is the device's own approximation.
//! The simulator gives the exact result rounded; NVIDIA's instructions are within the errors below (from the PTX ISA, 8.5, the
//! sections on `rcp`, `rsqrt`, `sqrt`, `ex2`, `lg2`, `sin`, `cos`, `tanh` and `div`). OpenCL's `native_` functions, which
//! Intel's devices run, have no guaranteed error.
//!
//! | function | PTX | largest error |
//! |---|---|---|
//! | `approximate_recip` | `rcp.approx` | 1 ulp |
//! | `approximate_rsqrt` | `rsqrt.approx` | 2⁻²²·⁹ of the result |
//! | `approximate_sqrt` | `sqrt.approx` | 2⁻²³ of the result |
//! | `approximate_exp2` | `ex2.approx` | 2⁻²² of the result |
//! | `approximate_log2` | `lg2.approx` | 2⁻²² for arguments in ½ to 2, elsewhere 2⁻²² of the result |
//! | `approximate_sin`, `approximate_cos` | `sin.approx`, `cos.approx` | 2⁻²⁰·⁵ for arguments in -2π to 2π |
//! | `approximate_tanh` | `tanh.approx` | 2⁻¹¹ of the result |
//! | `approximate_div` | `div.full` | 2 ulp |

use super::record::{At, Recorded, approximate, approximate_div as record_div};
use crate::ir::{BinaryOp, Type, UnaryOp, eval};

macro_rules! approximations {
    ($($(#[$documentation:meta])* $name:ident: $op:ident;)+) => {$(
        $(#[$documentation])*
        pub fn $name(x: f32) -> f32 {
            let bits = eval::unary(UnaryOp::$op, Type::F32, x.to_bits().into());
            f32::from_bits(bits as u32)
        }

        device_form!($name {
            pub fn device(at: At, x: Recorded<f32>) -> Recorded<f32> {
                approximate(at, UnaryOp::$op, x)
            }
        });
    )+};
}

approximations! {
    /// 1 / `x`, approximated.
    approximate_recip: ApproximateReciprocal;
    /// 1 / √`x`, approximated.
    ///
    /// ```
    /// use headstart::prelude::*;
    ///
    /// #[kernel]
    /// fn lengths(x: &[f32], y: &[f32], inverse: &mut [f32]) {
    ///     let i = global_id();
    ///     inverse[i] = approximate_rsqrt(x[i] * x[i] + y[i] * y[i]);
    /// }
    ///
    /// let mut inverse = [0.0];
    /// lengths::reference(Geometry::new(1, 1), &[3.0], &[4.0], &mut inverse)?;
    /// assert_eq!(inverse, [0.2]);
    /// # Ok::<(), headstart::Error>(())
    /// ```
    approximate_rsqrt: ApproximateRsqrt;
    /// √`x`, approximated.
    approximate_sqrt: ApproximateSqrt;
    /// 2 to the power of `x`, approximated.
    approximate_exp2: ApproximateExp2;
    /// The logarithm of `x` to base 2, approximated.
    approximate_log2: ApproximateLog2;
    /// The sine of `x`, approximated.
    approximate_sin: ApproximateSin;
    /// The cosine of `x`, approximated.
    approximate_cos: ApproximateCos;
    /// The hyperbolic tangent of `x`, approximated.
    approximate_tanh: ApproximateTanh;
}

/// `x` / `y`, approximated.
pub fn approximate_div(x: f32, y: f32) -> f32 {
    let (x, y) = (x.to_bits().into(), y.to_bits().into());
    f32::from_bits(eval::binary(BinaryOp::ApproximateDiv, Type::F32, x, y) as u32)
}

device_form!(approximate_div {
    pub fn device(at: At, x: Recorded<f32>, y: Recorded<f32>) -> Recorded<f32> {
        record_div(at, x, y)
    }
});
