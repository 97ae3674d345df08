//! What the fronts for binary and assembly code share: from blocks and registers to a kernel in regions.
//!
//! ```text
//! blocks ─ flow ─ ssa ─►     loops, dominators; which blocks take which registers as parameters
//!        ─ regions ─►        nested regions, without flag variables
//!        ─ address ─►        base + index × scale + offset
//!        ─ countdown, closed, counters, endings, copies ─►  loops as the passes look for them
//! ```
//!
//! A front divides its code into blocks ([`flow`]), states the reads and writes of its instructions ([`ssa::Registers`]), and
//! translates each of them ([`regions::Front`]). Any reducible flow graph is accepted.

pub(crate) mod address;
pub(crate) mod closed;
pub(crate) mod copies;
pub(crate) mod countdown;
pub(crate) mod counters;
pub(crate) mod endings;
pub(crate) mod facts;
pub(crate) mod flow;
pub(crate) mod regions;
mod split;
pub(crate) mod ssa;

use crate::cleanup;
use crate::ir::{Kernel, Value};

/// Writes a kernel's loops as the passes look for them. The caller says whether signed counters do not overflow.
pub(crate) fn shape_loops(kernel: &mut Kernel, no_overflow: bool) {
    for shape in [countdown::unwind, closed::close] {
        if shape(kernel) {
            cleanup::tidy(kernel);
        }
    }
    counters::prepare(kernel, no_overflow);
    cleanup::tidy(kernel);
    // Behind the promises, which are about the counters of the source: those that are made here may wrap.
    if endings::prepare(kernel) {
        cleanup::tidy(kernel);
    }
}

/// A register of a function, by number.
pub(crate) type Register = u32;

/// What each register holds at some point.
pub(crate) type Values = Vec<Option<Value>>;
