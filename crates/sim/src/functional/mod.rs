//! The functional engine: runs the IR, as fast as an interpreter can, and checks its behaviour.
//!
//! A kernel is compiled to a `tape`: a flat list of steps on register slots. A `sub_group` runs it,
//! all lanes at a time, with a mask of active lanes and a stack of those that wait; lanes that wait for others of their
//! sub-group leave the rest to go on. Sub-groups make a
//! [`WorkGroup`], which owns shared and private memory and the records of the checks; work-groups run in
//! parallel ([`CompiledKernel::run`]) on global memory ([`BufferMemory`]).
//!
//! [`WorkGroup::execute`] is the meaning of one operation on one sub-group; the timer calls it, too.
//!
//! Work-groups that cannot see each other's writes run in parallel. Others take turns on one thread, so that a barrier of the
//! whole grid ends and results are the same on any number of threads (`schedule`).
//!
//! In checking mode the engine reports, with source place and work-item: accesses that are out of bounds, misaligned, or to
//! memory that was never written; races in shared and global memory, by order and scope as in PTX's memory model (`order`
//! defines happens-before); accesses to the target of an asynchronous copy in flight, writes to its source, copies that are
//! never waited for; registers and shared memory that products of warp groups in flight use, and shared memory that they read
//! with no fence for their proxy between (`flights`); barriers that some running work-items do not reach; shuffles and votes that some of a sub-group, or of its
//! mask, do not run together, or that read from absent work-items; prefetches of shared or private memory, out of bounds to L1,
//! or of a group whose work-items disagree; broken no-wrap promises; writes through read-only parameters; loops that wait for
//! ever, and endless ones; too much memory. Fast mode checks only the bounds, alignment, waiting and endless loops. Unordered
//! writes of the same bits to one place are no error, but are noted.

mod access;
mod address;
mod atomics;
mod buffer;
mod carried;
mod checks;
mod clock;
mod collective;
mod copies;
mod coverage;
mod fault;
mod flights;
mod footprint;
mod histories;
mod in_flight;
mod lane_op;
mod lanes;
mod launch_shadow;
mod matrix;
mod needed;
mod no_wrap;
mod opaque;
mod options;
mod order;
mod parts;
mod phases;
mod places;
mod prefetch;
mod prefetched;
mod printed;
mod pure;
mod quads;
mod reports;
mod requests;
mod run;
mod sample;
mod schedule;
mod shadow;
mod slots;
mod state;
mod sub_group;
mod tape;
#[cfg(test)]
mod tests;
mod touch;
mod work_group;
mod worker;
mod written;

#[doc(hidden)]
pub use collective::{named as parties_of, sources as shuffle_sources};
#[doc(hidden)]
pub use fault::describe_work_item;

#[doc(hidden)]
pub use coverage::{ControlEdgeKind, Covered, LoopSite, Sites};

#[doc(hidden)]
pub use address::from_generic;
pub use buffer::BufferMemory;
pub(crate) use footprint::Footprint;
pub use lane_op::{AccessedMemory, LaneOp, LaneOpKind};
pub use lanes::{LANES, Lanes, Mask, Registers, Slot};
pub(crate) use matrix::moved::Piece;
pub(crate) use needed::{Flow, Need, Needed, Wanted, choices};
pub use options::{Mode, Options, PrefetchBounds};
#[doc(hidden)]
pub use reports::has_not_ended;
pub(crate) use requests::{Noted, Request};
pub use run::{CompiledKernel, Groups, Messages};
pub use sample::Sampled;
#[doc(hidden)]
pub use sample::{runs_apart, sees_others};
#[doc(hidden)]
pub use shadow::FastMap;
pub use state::LaunchState;
#[doc(hidden)]
pub use sub_group::Observer;
pub use work_group::{SubGroup, WorkGroup};
