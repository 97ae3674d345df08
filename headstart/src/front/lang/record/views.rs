//! Views: a slice, and its size along each dimension.
//!
//! Before: `image[(y, x)]`. After: the element `y × columns + x`, which does not wrap.

use std::marker::PhantomData;

use super::memory::Memory;
use super::placed::{Layout, Place, place};
use super::state::recorder;
use super::{AsMemory, At, Of, Recorded, add, mul, parameter};
use crate::Error;
use crate::front::lang::data::Data;
use crate::front::lang::view::{Access, Readable, Writable};

/// A view whose elements have the recorded form `V`.
#[derive(Debug)]
pub struct View<V, const D: usize, A> {
    memory: Memory<V>,
    size: [Recorded<usize>; D],
    access: PhantomData<fn() -> A>,
}

impl<V, const D: usize, A> Clone for View<V, D, A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<V, const D: usize, A> Copy for View<V, D, A> {}

impl<V, const D: usize, A> AsMemory<V> for View<V, D, A> {
    fn memory(self) -> Memory<V> {
        self.memory
    }
}

/// What names an element of a view of `D` dimensions.
pub trait Position<const D: usize>: Copy {
    /// Along each dimension.
    fn along(self) -> [Recorded<usize>; D];
}

impl Position<1> for Recorded<usize> {
    fn along(self) -> [Recorded<usize>; 1] {
        [self]
    }
}

impl Position<2> for (Recorded<usize>, Recorded<usize>) {
    fn along(self) -> [Recorded<usize>; 2] {
        self.into()
    }
}

impl Position<3> for (Recorded<usize>, Recorded<usize>, Recorded<usize>) {
    fn along(self) -> [Recorded<usize>; 3] {
        self.into()
    }
}

/// A parameter that is a view: a pointer, a length, and a size along each dimension if there are several.
pub fn view<T: Data, const D: usize, A: Access>(
    name: &str,
    length: &str,
    others: &[&str],
) -> View<Of<T>, D, A> {
    let memory = super::function::slice_with(name, length, !A::WRITES);
    let size = match D {
        1 => [super::len(At(0, 0), memory); D],
        _ => std::array::from_fn(|number| parameter::<usize>(&format!("{name}_size_{number}"), others)),
    };
    View {
        memory,
        size,
        access: PhantomData,
    }
}

fn element<V: Layout, const D: usize, A>(at: At, view: View<V, D, A>, index: impl Position<D>) -> Place<V> {
    let mut along = index.along().into_iter().zip(view.size);
    let first = along.next().map(|(position, _)| position);
    let flat = along.fold(first, |flat, (position, size)| {
        flat.map(|flat| add(at, mul(at, flat, size), position))
    });
    place(at, view.memory, flat.expect("a view has a dimension"))
}

/// `view[index]`, to be read.
pub fn to_read<V: Layout, const D: usize, A: Readable>(
    at: At,
    view: View<V, D, A>,
    index: impl Position<D>,
) -> Place<V> {
    element(at, view, index)
}

/// `view[index]`, to be written.
pub fn to_write<V: Layout, const D: usize, A: Writable>(
    at: At,
    view: View<V, D, A>,
    index: impl Position<D>,
) -> Place<V> {
    element(at, view, index)
}

/// `view[index]`, to be changed.
pub fn to_change<V: Layout, const D: usize, A: Readable + Writable>(
    at: At,
    view: View<V, D, A>,
    index: impl Position<D>,
) -> Place<V> {
    element(at, view, index)
}

/// `view.size(dimension)`
pub fn size<V, const D: usize, A>(
    at: At,
    view: View<V, D, A>,
    dimension: Recorded<usize>,
) -> Recorded<usize> {
    let known = recorder(|recorder| recorder.kernel.as_constant(dimension.value));
    match known.and_then(|known| view.size.get(known as usize)) {
        Some(&size) => size,
        None => {
            let error = Error::input("the dimension of `size` is not one of the view's")
                .accepted(format!("a constant below {D}"));
            recorder(|recorder| recorder.fail(at, error));
            dimension
        }
    }
}
