//! Views: memory of one, two or three dimensions, with the permitted accesses in its type.
//!
//! ```
//! use headstart::device::sim::Simulator;
//! use headstart::device::{Device, TypedBuffer};
//! use headstart::prelude::*;
//!
//! /// Each element becomes the mean of itself and its neighbours in the row.
//! #[kernel]
//! fn blur(image: View2<f32, ReadOnly>, mut out: View2<f32, WriteOnly>) {
//!     let (y, x) = (global_id_y(), global_id());
//!     if y >= image.size(0) || x >= image.size(1) {
//!         return;
//!     }
//!     let (left, right) = (image[(y, x.saturating_sub(1))], image[(y, (x + 1).min(image.size(1) - 1))]);
//!     out[(y, x)] = (left + image[(y, x)] + right) / 3.0;
//! }
//!
//! let device = Simulator::untimed();
//! let queue = device.queue()?;
//! let image = TypedBuffer::from_slice(&device, &[0.0f32, 3.0, 6.0, 1.0, 1.0, 4.0])?;
//! let mut out = TypedBuffer::uninitialized(&device, 6)?;
//! let arguments = blur::arguments(image.view([2, 3])?, out.view_mut([2, 3])?);
//! let geometry = Geometry { group: [4, 2, 1], ..Geometry::new(1, 4) };
//! blur::compile(&device)?.launch(&*queue, geometry, arguments).wait()?;
//! assert_eq!(out.read(&*queue)?, [1.0, 3.0, 5.0, 1.0, 2.0, 3.0]);
//! # Ok::<(), headstart::Error>(())
//! ```
//! `&view[first..]` is a part of its elements as a slice, in memory's order.
//!
//! The last dimension varies fastest, as in C. A `ReadOnly` view has the guarantees of `&[T]`, so its loads may be fetched
//! early; a `WriteOnly` one cannot be read. Device functions take views by value if they are `ReadOnly`, and as `&View2<…>` or
//! `&mut View2<…>`.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut, Index, IndexMut, Range, RangeFrom, RangeInclusive, RangeTo};

/// The permitted accesses to a view's memory: [`ReadOnly`], [`WriteOnly`], [`ReadWrite`].
pub trait Access: Copy + 'static {
    /// Whether it may be read.
    const READS: bool;
    /// Whether it may be written.
    const WRITES: bool;
    /// The elements, on the CPU.
    type Items<'a, T: 'a>: Deref<Target = [T]>;

    /// The same elements for a shorter time.
    fn reborrow<'b, T>(items: &'b mut Self::Items<'_, T>) -> Self::Items<'b, T>;
}

/// A view that may be read.
#[diagnostic::on_unimplemented(
    message = "a `{Self}` view cannot be read",
    note = "accepted: `ReadOnly`, `ReadWrite`"
)]
pub trait Readable: Access {}

/// A view that may be written.
#[diagnostic::on_unimplemented(
    message = "a `{Self}` view cannot be written",
    note = "accepted: `WriteOnly`, `ReadWrite`"
)]
pub trait Writable: Access {}

/// The memory is read.
#[derive(Clone, Copy, Debug)]
pub struct ReadOnly;

/// The memory is written, and never read.
#[derive(Clone, Copy, Debug)]
pub struct WriteOnly;

/// The memory is read and written.
#[derive(Clone, Copy, Debug)]
pub struct ReadWrite;

impl Access for ReadOnly {
    const READS: bool = true;
    const WRITES: bool = false;
    type Items<'a, T: 'a> = &'a [T];

    fn reborrow<'b, T>(items: &'b mut &[T]) -> &'b [T] {
        items
    }
}

impl Readable for ReadOnly {}

macro_rules! written {
    ($($access:ident reads $reads:literal;)+) => {$(
        impl Access for $access {
            const READS: bool = $reads;
            const WRITES: bool = true;
            type Items<'a, T: 'a> = &'a mut [T];

            fn reborrow<'b, T>(items: &'b mut &mut [T]) -> &'b mut [T] {
                items
            }
        }

        impl Writable for $access {}
    )+};
}

written! { WriteOnly reads false; ReadWrite reads true; }
impl Readable for ReadWrite {}

/// Memory of `D` dimensions.
pub struct View<'a, T: 'a, const D: usize, A: Access> {
    items: A::Items<'a, T>,
    size: [usize; D],
}

/// An index of an element of a view of `D` dimensions, or a size in it.
pub trait Position<const D: usize>: Copy {}

impl Position<1> for usize {}
impl Position<2> for (usize, usize) {}
impl Position<3> for (usize, usize, usize) {}

/// Some elements of a view, to be prefetched.
#[derive(Clone, Copy, Debug)]
pub struct Elements<A>(PhantomData<fn() -> A>);

/// Memory of one dimension: `view[i]`.
pub type View1<'a, T, A = ReadWrite> = View<'a, T, 1, A>;

/// Memory of two dimensions: `view[(y, x)]`.
pub type View2<'a, T, A = ReadWrite> = View<'a, T, 2, A>;

/// Memory of three dimensions: `view[(z, y, x)]`.
pub type View3<'a, T, A = ReadWrite> = View<'a, T, 3, A>;

impl<T, const D: usize> Clone for View<'_, T, D, ReadOnly> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, const D: usize> Copy for View<'_, T, D, ReadOnly> {}

impl<'a, T: 'a, const D: usize, A: Access> View<'a, T, D, A> {
    /// These elements as a view, for the CPU reference: `View2::new(&data, [rows, columns])`.
    ///
    /// # Panics
    /// There are more or fewer elements than the size says.
    pub fn new(items: A::Items<'a, T>, size: [usize; D]) -> Self {
        assert_eq!(
            items.len(),
            size.iter().product::<usize>(),
            "the elements of a view are as many as its size says"
        );
        View { items, size }
    }

    /// The size along a dimension; the last one varies fastest. In a kernel the dimension is a constant.
    pub fn size(&self, dimension: usize) -> usize {
        self.size[dimension]
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// `count` elements from `first` on, in memory's order: for a prefetch.
    pub fn span(&self, first: impl Position<D>, count: usize) -> Elements<A> {
        let _ = (first, count);
        Elements(PhantomData)
    }

    /// The elements from `first` on, this many along each dimension: for a prefetch.
    pub fn block(&self, first: impl Position<D>, extents: impl Position<D>) -> Elements<A> {
        let _ = (first, extents);
        Elements(PhantomData)
    }

    /// The same view for a shorter time.
    pub fn reborrow(&mut self) -> View<'_, T, D, A> {
        View {
            items: A::reborrow(&mut self.items),
            size: self.size,
        }
    }

    fn flat(&self, position: [usize; D]) -> usize {
        let each = position.iter().zip(&self.size);
        each.fold(0, |flat, (&position, &size)| {
            assert!(position < size, "{position} lies outside a view's size of {size}");
            flat * size + position
        })
    }
}

macro_rules! indexed {
    ($($dimensions:literal: $index:ty, |$of:pat_param| $position:expr;)+) => {$(
        impl<'a, T: 'a, A: Access> Index<$index> for View<'a, T, $dimensions, A> {
            type Output = T;

            fn index(&self, $of: $index) -> &T {
                &self.items[self.flat($position)]
            }
        }

        impl<'a, T: 'a, A: Writable> IndexMut<$index> for View<'a, T, $dimensions, A>
        where
            A::Items<'a, T>: DerefMut,
        {
            fn index_mut(&mut self, $of: $index) -> &mut T {
                let flat = self.flat($position);
                &mut self.items[flat]
            }
        }
    )+};
}

/// A part of a view's elements, in memory's order.
macro_rules! in_memory_order {
    ($($range:ident<usize>),+) => {$(
        impl<'a, T: 'a, const D: usize, A: Access> Index<$range<usize>> for View<'a, T, D, A> {
            type Output = [T];

            fn index(&self, range: $range<usize>) -> &[T] {
                &self.items[range]
            }
        }

        impl<'a, T: 'a, const D: usize, A: Writable> IndexMut<$range<usize>> for View<'a, T, D, A>
        where
            A::Items<'a, T>: DerefMut,
        {
            fn index_mut(&mut self, range: $range<usize>) -> &mut [T] {
                &mut self.items[range]
            }
        }
    )+};
}

in_memory_order! { Range<usize>, RangeFrom<usize>, RangeInclusive<usize>, RangeTo<usize> }

indexed! {
    1: usize, |x| [x];
    2: (usize, usize), |(y, x)| [y, x];
    3: (usize, usize, usize), |(z, y, x)| [z, y, x];
}

impl<'a, T: 'a, const D: usize, A: Access> fmt::Debug for View<'a, T, D, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "View{:?}", self.size)
    }
}
