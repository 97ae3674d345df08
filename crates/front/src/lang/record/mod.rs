//! The expansion of `#[kernel]`: calls that write the IR when they run.
//!
//! Nothing here is meant to be written by hand. The macro rewrites a body into straight-line calls of these
//! functions (the crate `headstart-macros` says how); running them once records the body as a tree of
//! operations and structure, which then becomes a [`Kernel`](crate::ir::Kernel).
//!
//! The recorder is one per thread, so that the calls need not hand it around: a [`Recorded`] value is only
//! the number of an IR value with a Rust type. Each function of the language has one function here, with
//! the same bounds on types as Rust's own operation, so that the compiler infers the types of literals and
//! variables here as it does in the original body.

mod arithmetic;
mod asked;
pub mod atomics;
pub mod block;
pub(crate) mod collective;
mod control;
mod convert;
mod function;
mod groups;
pub mod hints;
pub(super) mod layout;
pub mod lsc;
mod memory;
pub mod methods;
pub mod pipeline;
pub mod placed;
pub mod places;
pub mod pointers;
pub mod print;
mod range;
#[doc(hidden)]
pub mod redundant;
#[doc(hidden)]
pub mod ssa;
mod state;
#[doc(hidden)]
pub mod tree;
mod types_fit;
pub(super) mod values;
pub mod views;

pub use crate::lang::atomic::ElementOf;
pub use crate::lang::data::Of;
pub use arithmetic::{
    add, bit_and, bit_or, bit_xor, div, eq, ge, gt, le, lt, mul, ne, neg, not, rem, shl, shr, sub,
};
pub use asked::{At, Wishes};
pub(crate) use control::ScopeHandle;
pub use control::{
    Branch, Lazy, begin_and, begin_block, begin_else, begin_if, begin_loop, begin_or, end_block, end_if,
    end_lazy, end_loop, end_work_item, go_on_if, leave, next_iteration, yield_block, yield_if,
};
pub use convert::cast;
pub use function::{
    allow_accuracy, enter_function, kernel, leave_function, parameter, require_sub_group, require_work_group,
    slice, slice_mut,
};
pub use memory::{
    Array, AsMemory, Memory, array_from, array_of, is_empty, len, load, part, set_whole, shared_array, store,
    whole,
};
pub use placed::{AtomicElement, Place, fields, item, item_of, place, read, set_item, write};
pub use range::{Range, after_work_items, begin_for, counter, range, work_items};
pub use types_fit::{Same, if_types_fit};
pub use values::{
    Recorded, Values, Variable, absent, constant, declared, get, literal, named, of_type, set, variable,
};

pub(super) use arithmetic::{approximate, approximate_div, dot4, select as select_value};
pub(super) use state::{recorder, usize_from_u32};
