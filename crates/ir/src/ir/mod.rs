//! The representation of a kernel: typed SSA in labelled regions.
//!
//! # Shape
//!
//! A [`Kernel`] has parameters, arrays, and a body. The body is a [`Region`]: a list of operations that
//! ends with a terminator. Three operations contain regions: [`Block`](OpKind::Block) runs one once,
//! [`If`](OpKind::If) runs one of two, [`Loop`](OpKind::Loop) runs one until something leaves it. Each
//! has a label. [`Break`](OpKind::Break) leaves any enclosing label and passes its results;
//! [`Continue`](OpKind::Continue) starts the next iteration of any enclosing loop and passes its
//! parameters; [`Return`](OpKind::Return) ends the work-item, [`Trap`](OpKind::Trap) the launch. Every region ends with exactly one of
//! them: falling off the end does not exist. This expresses every reducible flow graph without flag
//! variables.
//!
//! A value is defined once: as a parameter, as a constant (which needs no operation), as an operation's result, or as a loop's
//! parameter. A use must follow the definition in the same region, or be in a region inside. A definition inside a region is
//! not visible after it: results leave through `Break`.
//!
//! Counted loops have no operation of their own; `analysis` recognises them.
//!
//! # Meaning
//!
//! Every operation is total. [`eval`] is the specification of the pure ones; in short: integers wrap, `x / 0 = 0` and
//! `x % 0 = x`, oversized shifts shift everything out, float to integer clamps and converts NaN to 0, arithmetic that produces
//! a NaN produces the canonical quiet NaN (sign clear, only the top mantissa bit set), minimum and maximum are IEEE 754-2019
//! minimumNumber and maximumNumber. Results are rounded to nearest even, nothing is contracted or flushed, unless the operation
//! says so: [`Ruled`](OpKind::Ruled) gives a float operation a [`FloatRule`] of its own. `FNeg`, `FAbs`, `CopySign`, `Select`,
//! loads, stores and bit casts keep a NaN's bits.
//!
//! Memory is bytes, little-endian. Out-of-bounds, misaligned and uninitialised accesses are errors of
//! the kernel; the functional engine reports them, a real device may do anything.
//! An address stays in the memory of the parameter or array that it begins in, unless its offset is made of the bits of
//! other pointers: numbers that a kernel is given or loads are no distances between two objects.
//!
//! # Work-items
//!
//! Work-items of a work-group run independently between barriers. Work-items of a sub-group run together: lanes that diverge at
//! an `If` reconverge at its end, and lanes that leave a region early wait at the end of the region that they left to, unless
//! only the return is behind it: then they end at once. A `Barrier` must be reached by all work-items of the group that have
//! not returned.
//!
//! An [`Atomic`](OpKind::Atomic) operation does not race with other atomic operations of its size if each work-item is within
//! the other operation's [`MemoryScope`]. It orders what its [`MemoryOrder`] says, among the work-items of its scope: a relaxed
//! one orders nothing, so atomics imply no fence. A [`Fence`](OpKind::Fence) orders without touching memory: a release fence in
//! front of a relaxed atomic write, an acquire fence behind a relaxed atomic read. A volatile load or store is a relaxed atomic
//! one for the whole system. A release and an acquire synchronise if each is within the scope of the other, as in the memory
//! model of PTX. Two unordered plain accesses to the same memory, at least one of them a write, are an error of the kernel,
//! unless both write the same bits.
//!
//! [`Shuffle`](OpKind::Shuffle) and [`Vote`](OpKind::Vote) exchange values inside a sub-group, and [`Reduce`](OpKind::Reduce)
//! combines them; they order no memory. A [`GroupVote`](OpKind::GroupVote) is a barrier with a vote of the whole work-group. A
//! [`Meet`](OpKind::Meet) is a barrier of a part of the work-group: of a sub-group or a part of it, or of several whole
//! sub-groups at a numbered barrier.
//!
//! The participants in a shuffle, a vote, or a sub-group barrier are given by its mask, a value like any other. Without one the
//! whole sub-group takes part, and must run the operation together. With one it is PTX's `.sync`: a work-item waits until all
//! work-items in its mask that have not ended reach an operation of the same kind with the same mask. It does not matter which
//! one, so the two sides of an `if` may shuffle with each other, and iterations of a loop with those of a copy of it. A
//! work-item must be in its own mask, and may not read one that is outside it or has ended. So a pass is correct if each
//! work-item still runs the same operations with the same masks in the same order. [`Active`](OpKind::Active) gives the
//! work-items that run it together, as the device happens to schedule them: its result includes the work-item itself, and a
//! kernel may rely on nothing else.
//!
//! A mask names 32 work-items, and a kernel that exchanges values and requires no size runs in sub-groups of at most
//! [`EXCHANGING_ITEMS`](limits::EXCHANGING_ITEMS): CUDA's warps have as many. One that requires 64 may exchange values among
//! all of them, without masks.
//!
//! Work-groups make progress together as far as a device has them resident at once: those may wait for each other in
//! loops. Work-items of one sub-group may not.
//!
//! A [`Print`](OpKind::Print) writes a line for people. Lines of one work-item come in its order; among work-items the
//! simulator sorts them, other devices do not. Text beyond a device's buffer is lost.
//!
//! # What is carried
//!
//! An [`Opaque`](OpKind::Opaque) operation is an instruction as text, with its operands and results. Its meaning is not stated.
//! It states the properties that matter for moving, repeating or removing code around it, and assumes the worst for unknown
//! ones. The simulator runs those that it knows (clocks, the driver's printing and assertions), and stops at the others by
//! name; only NVIDIA's GPUs accept the kernel.
//!
//! # Asynchronous copies
//!
//! [`Copy`](OpKind::Copy) starts a copy and gives a token; [`Wait`](OpKind::Wait) on the token makes its target readable by the
//! same work-item. Copies of one work-item complete in order, as far as waiting is concerned: waiting for one waits for every
//! earlier one. [`Join`](OpKind::Join) gives the latest of several tokens. The constant token 0 is complete from the start, so
//! a guarded copy yields it if the guard fails. Between start and wait, reading or writing the target, or writing the source,
//! is an error. A kernel must wait for all its copies before a work-item returns. On NVIDIA a token becomes a commit group: a
//! back end commits where a token leaves the operations that made it, and counts the commits between there and the wait.
//!
//! # Prefetches
//!
//! [`Prefetch`](OpKind::Prefetch) is a hint and changes no result. Its scope states who requests: a single work-item, or the
//! work-items of a sub-group or work-group together, which must then all reach it with the same pointer and count, and divide
//! the cache lines among themselves. A back end without an instruction for that, or without one for a run-time count, uses the
//! expansion of `back::hints`. A device-wide fence may empty the caches of the work-item's core, and undo a prefetch there.
//!
//! # Loads keep their identity
//!
//! Every load has a [`LoadId`] with the name of the parameter it reads and its source place. Passes
//! that copy a load keep its id; plans, reports and the checker speak of ids.

mod arithmetic;
mod builder;
pub mod carried;
mod compare;
#[doc(hidden)]
pub mod conversion;
#[doc(hidden)]
pub mod copy;
#[doc(hidden)]
pub mod effects;
mod element;
pub mod eval;
mod field;
mod hint;
mod kernel;
pub mod limits;
pub mod line;
mod op;
mod opaque;
pub mod parse;
mod print;
mod read;
mod rows;
mod rule;
mod table;
mod text;
mod together;
mod types;
pub mod verify;

pub use arithmetic::{BinaryOp, CompareOp, ConvertOp, NoWrapOp, UnaryOp, Wrap};
pub use builder::Builder;
pub use compare::first_difference;
pub use element::{Element, Item};
pub use hint::{CacheHint, CacheLevel, CacheUse, HintSource, LscControl, PrefetchScope};
pub use kernel::{
    Accuracy, Array, ArrayData, CutEdge, Derivation, FloatMode, Kernel, Label, LabelData, LoadData, LoadId,
    Param, Place, PlaceData, PointerFacts, Races, Region, Value, ValueData,
};
pub use op::{Dependency, Id, LoopWishes, Meeting, Op, OpKind, UnrollWish};
pub use opaque::{Opaque, OpaqueOperands, PRINTING, Touches};
pub use parse::parse;
pub use print::print;
pub use read::read;
pub use rule::{FloatRule, Fused, Rounding};
pub use table::OpClass;
pub use together::{AtomicOp, GroupVoteOp, MemoryOrder, MemoryScope, ReduceOp, ShuffleOp, VoteOp};
pub use types::{Space, Type};
pub use verify::verify;
#[doc(hidden)]
pub use verify::verify_derived;
