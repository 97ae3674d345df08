//! How type errors of a kernel are said once.
//!
//! A kernel has two copies: the user's Rust, and the recorded one. A type error in the first is also one in the second, in
//! types that the user never wrote: `Recorded<u32>`. So the types of the second copy's values depend on a constant of the
//! first: an array of its length, 0. If the first has an error, the constant has no value, the types are erroneous, and the
//! compiler reports nothing further about them.

/// The length of an array, whose value is known if the user's types fit.
pub trait TypesFit {
    /// `T`.
    type Of<T>;
}

impl TypesFit for [(); 0] {
    type Of<T> = T;
}

/// The value.
#[inline(always)]
pub fn if_types_fit<F, T>(value: T) -> F::Of<T>
where
    F: TypesFit + Same<T>,
{
    F::same(value)
}

/// That `Of<T>` is `T`, which the trait itself cannot say.
pub trait Same<T>: TypesFit {
    /// The value.
    fn same(value: T) -> Self::Of<T>;
}

impl<T> Same<T> for [(); 0] {
    #[inline(always)]
    fn same(value: T) -> T {
        value
    }
}
