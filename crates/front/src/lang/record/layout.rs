//! How values lie in memory: [`placed`](super::placed) reads and writes them.

use super::values::Values;
use crate::ir::Type;

/// A scalar in memory, at a byte offset from the start of the object that it is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// Its type.
    pub ty: Type,
    /// In bytes.
    pub offset: u32,
}

/// Types with a size in memory.
pub trait Layout: Copy {
    /// Bytes from one element to the next.
    const SIZE: u32;
    /// In bytes; `SIZE` is a multiple of it.
    const ALIGN: u32;
    /// The unit in which a buffer of such elements is counted: a scalar that divides them.
    const UNIT: Type;
}

/// A value that lies in memory.
#[diagnostic::on_unimplemented(
    message = "an element that is not a value cannot be read or written as one",
    note = "an atomic element has its own operations: `a[i].load(Ordering::Relaxed)`, `a[i].fetch_add(1, …)`"
)]
pub trait Placed: Layout + Values {
    /// Appends the scalars in it, in the order of [`Values::parts`]; it starts at byte `start`.
    fn leaves(start: u32, leaves: &mut Vec<Leaf>);

    /// Appends a name for each of them; its own is `path`.
    fn names(path: &str, names: &mut Vec<String>);
}
