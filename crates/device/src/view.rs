//! Buffers seen as rows and planes: arguments for a kernel's [`View`](crate::front::lang::view::View)s.

use super::{Item, TypedBuffer};
use crate::{Error, Result};

/// A buffer of which a kernel sees `D` dimensions, to be read.
#[derive(Clone, Copy, Debug)]
pub struct BufferView<'a, T, const D: usize> {
    buffer: &'a TypedBuffer<T>,
    size: [u64; D],
}

/// A buffer of which a kernel sees `D` dimensions, to be written.
#[derive(Debug)]
pub struct BufferViewMut<'a, T, const D: usize> {
    buffer: &'a mut TypedBuffer<T>,
    size: [u64; D],
}

/// The parts of a view's argument.
pub trait AsView<T, const D: usize> {
    /// The buffer, and its size along each dimension; the last varies fastest.
    fn parts(&self) -> (&TypedBuffer<T>, [u64; D]);
}

impl<T, const D: usize> AsView<T, D> for BufferView<'_, T, D> {
    fn parts(&self) -> (&TypedBuffer<T>, [u64; D]) {
        (self.buffer, self.size)
    }
}

impl<T, const D: usize> AsView<T, D> for BufferViewMut<'_, T, D> {
    fn parts(&self) -> (&TypedBuffer<T>, [u64; D]) {
        (self.buffer, self.size)
    }
}

impl<T: Item> TypedBuffer<T> {
    /// The buffer as a view of this size, for a kernel's `View` that is `ReadOnly`.
    ///
    /// # Errors
    /// The buffer has another number of elements.
    pub fn view<const D: usize>(&self, size: [u64; D]) -> Result<BufferView<'_, T, D>> {
        self.check_size(&size)?;
        Ok(BufferView { buffer: self, size })
    }

    /// The buffer as a view of this size, for a kernel's `View` that is `WriteOnly` or `ReadWrite`.
    ///
    /// # Errors
    /// The buffer has another number of elements.
    pub fn view_mut<const D: usize>(&mut self, size: [u64; D]) -> Result<BufferViewMut<'_, T, D>> {
        self.check_size(&size)?;
        Ok(BufferViewMut { buffer: self, size })
    }

    fn check_size(&self, size: &[u64]) -> Result<()> {
        let product = size
            .iter()
            .try_fold(1u64, |product, &size| product.checked_mul(size));
        if product == Some(self.length()) {
            return Ok(());
        }
        let spelled: Vec<String> = size.iter().map(u64::to_string).collect();
        Err(
            Error::usage(format!("a view of {} does not fit its buffer", spelled.join("×")))
                .accepted(format!("the product is the buffer's {} elements", self.length())),
        )
    }
}
