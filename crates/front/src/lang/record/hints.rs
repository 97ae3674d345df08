//! Prefetches: their targets and requesting groups.

use super::layout::Layout;
use super::placed::Place;
use super::pointers::Counted;
use super::state::recorder;
use super::views::{self, View};
use super::{AsMemory, At, Memory, Recorded};
use crate::Error;
use crate::ir::{CacheHint, HintSource, OpKind, PrefetchScope, Space, Type, Value, limits};
use crate::lang::hint::{Group, L3, Properties};
use crate::lang::pointer::{Global, MayBeGlobal, Ptr};
use crate::lang::scalar::Scalar;
use crate::lang::view::Readable;

/// Some elements from a pointer on.
#[derive(Clone, Copy, Debug)]
pub struct Elements {
    /// The first.
    pub ptr: Value,
    /// Bytes of one.
    pub bytes: u32,
    /// How many, an `I64`; one if there is none.
    pub count: Option<Value>,
}

/// The work-items that prefetch together, and the level.
#[derive(Clone, Copy, Debug)]
pub struct PrefetchRequest {
    hint: CacheHint,
    source: HintSource,
    scope: PrefetchScope,
}

/// Anything that can be prefetched.
pub trait Wanted {
    /// Writes the prefetches.
    fn prefetch(self, at: At, request: PrefetchRequest);
}

/// Slices that can be prefetched: those of global memory.
#[diagnostic::on_unimplemented(
    message = "shared and private arrays cannot be prefetched: they are near already",
    label = "no slice of global memory",
    note = "accepted: elements of a slice parameter, `&values[i]`"
)]
pub trait GlobalMemory<V>: AsMemory<V> {}

impl<V> GlobalMemory<V> for Memory<V> {}

impl<V, const D: usize, A: Readable> GlobalMemory<V> for View<V, D, A> {}

/// `count` elements behind a pointer.
#[derive(Debug)]
pub struct Span<'a, T, S> {
    /// The first.
    pub first: Recorded<Ptr<'a, T, S>>,
    /// How many.
    pub count: Recorded<usize>,
}

impl<T, S> Clone for Span<'_, T, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, S> Copy for Span<'_, T, S> {}

impl Wanted for Elements {
    fn prefetch(self, at: At, request: PrefetchRequest) {
        ask(at, self, request);
    }
}

impl<T: Counted, S: MayBeGlobal> Wanted for Recorded<Ptr<'_, T, S>> {
    fn prefetch(self, at: At, request: PrefetchRequest) {
        let elements = Elements {
            ptr: self.value,
            bytes: T::bytes(),
            count: None,
        };
        ask(at, elements, request);
    }
}

impl<T: Counted, S: MayBeGlobal> Wanted for Span<'_, T, S> {
    fn prefetch(self, at: At, request: PrefetchRequest) {
        let elements = Elements {
            ptr: self.first.value,
            bytes: T::bytes(),
            count: Some(self.count.value),
        };
        ask(at, elements, request);
    }
}

impl<V: Layout> Wanted for views::Span<V> {
    fn prefetch(self, at: At, request: PrefetchRequest) {
        ask(at, elements_at(at, self.first, Some(self.count.value)), request);
    }
}

impl<V: Layout, const D: usize, A: Readable> Wanted for views::Block<V, D, A> {
    fn prefetch(self, at: At, request: PrefetchRequest) {
        self.for_each_run(at, |run| run.prefetch(at, request));
    }
}

/// Elements from a place on.
fn elements_at<V: Layout>(at: At, place: Place<V>, count: Option<Value>) -> Elements {
    Elements {
        ptr: place.address(at, 0),
        bytes: V::SIZE,
        count,
    }
}

/// `&memory[index]`, or a part of it.
pub fn element<V: Layout>(at: At, place: Place<V>) -> Elements {
    elements_at(at, place, None)
}

/// Elements of this memory can be prefetched.
pub fn global<V>(_: impl GlobalMemory<V>) {}

/// `&memory[first..first + count]`
pub fn elements<V: Layout>(
    at: At,
    memory: impl GlobalMemory<V>,
    first: Recorded<usize>,
    count: Recorded<usize>,
) -> Elements {
    elements_at(at, super::place(at, memory, first), Some(count.value))
}

/// `&memory[first..end]`
pub fn elements_to<V: Layout>(
    at: At,
    memory: impl GlobalMemory<V>,
    first: Recorded<usize>,
    end: Recorded<usize>,
) -> Elements {
    let count = super::sub(at, end, first);
    elements(at, memory, first, count)
}

/// `prefetch(wanted, properties)`
pub fn prefetch(at: At, wanted: impl Wanted, properties: impl Properties) {
    let (hint, source) = properties.hint();
    let scope = PrefetchScope::WorkItem;
    wanted.prefetch(at, PrefetchRequest { hint, source, scope });
}

/// `joint_prefetch(group, wanted, properties)`
pub fn joint<G: Group>(at: At, _: G, wanted: impl Wanted, properties: impl Properties) {
    let (hint, source) = properties.hint();
    let scope = G::SCOPE;
    wanted.prefetch(at, PrefetchRequest { hint, source, scope });
}

/// `ptr.prefetch(count)`
pub fn prefetch_to_l3<T: Scalar>(at: At, ptr: Recorded<Ptr<'_, T, Global>>, count: Recorded<usize>) {
    prefetch(at, Span { first: ptr, count }, L3);
}

/// Writes one prefetch.
pub(super) fn ask(at: At, elements: Elements, request: PrefetchRequest) {
    let Elements { ptr, bytes, count } = elements;
    let PrefetchRequest { hint, source, scope } = request;
    recorder(|recorder| {
        if !matches!(recorder.kernel.ty(ptr), Type::Ptr(Space::Global | Space::Generic)) {
            let error =
                Error::input("a prefetch brings global memory nearer; shared and private memory are near")
                    .accepted("prefetch an element of a slice parameter");
            recorder.fail(at, error);
        }
        // A number that is known now needs no count.
        let known = count.map(|count| recorder.kernel.as_constant(count));
        let (bytes, count) = match known {
            Some(Some(0)) => return,
            Some(Some(known)) => match u64::from(bytes).checked_mul(known) {
                Some(total) if total <= u64::from(limits::PREFETCH_BYTES) => (total as u32, None),
                _ => (bytes, count),
            },
            _ => (bytes, count),
        };
        let kind = OpKind::Prefetch {
            ptr,
            bytes,
            count,
            hint,
            source,
            scope,
            id: None,
        };
        recorder.build(at, |b| b.push(kind, &[]));
    });
}
