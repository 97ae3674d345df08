//! The methods of pointers.

use super::hints::Span;
use super::pointers::{Counted, read as read_from};
use super::{At, Recorded};
use crate::ir::CacheUse;
use crate::lang::pointer::Ptr;
use crate::lang::scalar::Scalar;

pub use super::hints::prefetch_to_l3 as prefetch;
pub use super::pointers::{add, as_generic as generic, raw};

/// `p.read()`
pub fn read<T: Scalar, S>(at: At, ptr: Recorded<Ptr<'_, T, S>>) -> Recorded<T> {
    read_from(at, ptr.value, CacheUse::Default)
}

/// `p.span(count)`
pub fn span<'a, T: Counted, S>(
    _: At,
    first: Recorded<Ptr<'a, T, S>>,
    count: Recorded<usize>,
) -> Span<'a, T, S> {
    Span { first, count }
}
