//! Dot products of bytes.

use super::record::{At, Recorded, dot4};
use crate::ir::{BinaryOp, Type, eval};

macro_rules! dots {
    ($($(#[$documentation:meta])* $name:ident: $ty:ident, $op:ident;)+) => {$(
        $(#[$documentation])*
        pub fn $name(a: u32, b: u32, sum: $ty) -> $ty {
            let dot = eval::binary(BinaryOp::$op, Type::I32, a.into(), b.into());
            sum.wrapping_add(dot as $ty)
        }

        device_form!($name {
            pub fn device(
                at: At,
                a: Recorded<u32>,
                b: Recorded<u32>,
                sum: Recorded<$ty>,
            ) -> Recorded<$ty> {
                dot4(at, BinaryOp::$op, a, b, sum)
            }
        });
    )+};
}

dots! {
    /// `sum` plus the products of the four bytes of `a` and `b`, taken as signed, which wraps. One instruction on
    /// devices that have it (`dp4a`).
    ///
    /// ```
    /// use headstart::prelude::*;
    ///
    /// #[kernel]
    /// fn dots(a: &[u32], b: &[u32], result: &mut [i32]) {
    ///     let mut sum = 0;
    ///     for i in 0..a.len() {
    ///         sum = dot4_i8(a[i], b[i], sum);
    ///     }
    ///     result[global_id()] = sum;
    /// }
    ///
    /// let bytes = |bytes: [i8; 4]| u32::from_le_bytes(bytes.map(|byte| byte as u8));
    /// let mut result = [0];
    /// let (a, b) = ([bytes([1, -2, 3, 4])], [bytes([5, 6, -7, 8])]);
    /// dots::reference(Geometry::new(1, 1), &a, &b, &mut result)?;
    /// assert_eq!(result, [5 - 12 - 21 + 32]);
    /// # Ok::<(), headstart::Error>(())
    /// ```
    dot4_i8: i32, Dot4S;
    /// `sum` plus the products of the four bytes of `a` and `b`, taken as unsigned, which wraps.
    dot4_u8: u32, Dot4U;
    /// `sum` plus the products of the four bytes of `a`, taken as signed, and of `b`, taken as unsigned, which wraps: of
    /// weights and activations as quantised networks have them.
    dot4_i8_u8: i32, Dot4SU;
}
