//! A choice without a branch.

use super::record::{At, Recorded, select_value};
use super::scalar::Scalar;

/// `a` where the condition holds, else `b`; both are computed, and nothing branches.
///
/// `if c { a } else { b }` means the same and computes only one of them; if both sides are cheap it becomes this automatically.
///
/// ```
/// use headstart::prelude::*;
///
/// #[kernel]
/// fn positive(values: &[f32], result: &mut [f32]) {
///     let x = values[global_id()];
///     result[global_id()] = select(x > 0.0, x, 0.0);
/// }
///
/// let mut result = [9.0; 3];
/// positive::reference(Geometry::new(1, 3), &[-1.5, 0.0, 2.5], &mut result)?;
/// assert_eq!(result, [0.0, 0.0, 2.5]);
/// # Ok::<(), headstart::Error>(())
/// ```
pub fn select<T: Scalar>(condition: bool, a: T, b: T) -> T {
    if condition { a } else { b }
}

device_form!(select {
    pub fn device<T: Scalar>(
        at: At,
        condition: Recorded<bool>,
        a: Recorded<T>,
        b: Recorded<T>,
    ) -> Recorded<T> {
        select_value(at, condition, a, b)
    }
});
