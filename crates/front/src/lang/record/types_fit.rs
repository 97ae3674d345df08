//! How type errors of a kernel are said once.
//!
//! A kernel has two copies: the user's Rust, and the one that is recorded. A mismatch in the first is one in the second, too,
//! in types that nobody wrote: `Recorded<u32>`. So the second's values have types that depend on a constant of the first: an
//! array of its length, 0. Where the first has an error the constant has no value, the types are none, and the compiler says
//! nothing further about them.

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
