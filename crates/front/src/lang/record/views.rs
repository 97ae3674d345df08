//! Views: a slice, and its size along each dimension.
//!
//! Before: `image[(y, x)]`. After: the element `y × columns + x`, which does not wrap.

use std::marker::PhantomData;

use super::layout::Layout;
use super::memory::Memory;
use super::placed::{Place, place};
use super::state::recorder;
use super::{
    AsMemory, At, Of, Recorded, Wishes, add, begin_for, counter, end_loop, literal, mul, parameter, range,
};
use crate::Error;
use crate::lang::data::Data;
use crate::lang::view::{Access, Readable, Writable};

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

/// An index of an element of a view of `D` dimensions.
#[diagnostic::on_unimplemented(
    message = "this does not name an element of a view of so many dimensions",
    note = "accepted: `v[x]` of one dimension, `v[(y, x)]` of two, `v[(z, y, x)]` of three, with `usize` each"
)]
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

/// `&view[start..end]`: a part of its elements in memory's order, to be read.
pub fn part_to_read<V: Layout, const D: usize, A: Readable>(
    at: At,
    view: View<V, D, A>,
    start: Recorded<usize>,
    end: Option<Recorded<usize>>,
) -> Memory<V> {
    super::part(at, view, start, end)
}

/// `&mut view[start..end]`.
pub fn part_to_write<V: Layout, const D: usize, A: Writable>(
    at: At,
    view: View<V, D, A>,
    start: Recorded<usize>,
    end: Option<Recorded<usize>>,
) -> Memory<V> {
    super::part(at, view, start, end)
}

/// `view.span(first, count)`: this many elements in memory's order.
#[derive(Debug)]
pub struct Span<V> {
    /// The first.
    pub first: Place<V>,
    /// How many.
    pub count: Recorded<usize>,
}

/// `view.block(first, extents)`: this many elements along each dimension.
#[derive(Debug)]
pub struct Block<V, const D: usize, A> {
    view: View<V, D, A>,
    first: [Recorded<usize>; D],
    extents: [Recorded<usize>; D],
}

impl<V> Clone for Span<V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<V> Copy for Span<V> {}

impl<V, const D: usize, A> Clone for Block<V, D, A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<V, const D: usize, A> Copy for Block<V, D, A> {}

/// `view.span(first, count)`
pub fn span<V: Layout, const D: usize, A: Readable>(
    at: At,
    view: View<V, D, A>,
    first: impl Position<D>,
    count: Recorded<usize>,
) -> Span<V> {
    let first = element(at, view, first);
    Span { first, count }
}

/// `view.block(first, extents)`
pub fn block<V: Layout, const D: usize, A: Readable>(
    _: At,
    view: View<V, D, A>,
    first: impl Position<D>,
    extents: impl Position<D>,
) -> Block<V, D, A> {
    let (first, extents) = (first.along(), extents.along());
    Block { view, first, extents }
}

impl<V: Layout, const D: usize, A> Block<V, D, A> {
    /// Calls `run` with each run of elements that lie behind each other: one for each row.
    pub(super) fn for_each_run(self, at: At, run: impl FnOnce(Span<V>)) {
        let last = D - 1;
        let mut scopes = Vec::new();
        let mut flat: Option<Recorded<usize>> = None;
        for (number, (&first, &extent)) in self.first.iter().zip(&self.extents).enumerate() {
            let mut along = first;
            if number < last {
                let scope = begin_for(at, "", Wishes::none(), range(at, literal(0), extent, false));
                along = add(at, first, counter(scope));
                scopes.push(scope);
            }
            flat = Some(match flat {
                Some(flat) => add(at, mul(at, flat, self.view.size[number]), along),
                None => along,
            });
        }
        run(Span {
            first: place(at, self.view.memory, flat.expect("a view has a dimension")),
            count: self.extents[last],
        });
        for scope in scopes.into_iter().rev() {
            end_loop(scope);
        }
    }
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
