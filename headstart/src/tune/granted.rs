//! What a rewritten entry takes for granted beyond its module's text.
//!
//! Whoever asked said things of the entry's launches (lengths, `readonly`, …). Which of them the result rests on is found by
//! leaving them out, one after the other, as long as the very same text comes out: what is left is needed, and nothing else
//! is relied on. Each is written into the module's note and into the report.

use std::fmt;

use super::drop_in::DropIn;
use crate::error::Result;
use crate::front::ptx::{Facts, ParameterFacts};

/// One thing that every launch of a rewritten entry must fulfil.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Granted {
    /// Nothing writes the memory of this parameter while the kernel runs.
    ReadOnly(String),
    /// No address that is computed from another parameter leads into the memory of this one.
    Unaliased(String),
    /// The memory of this parameter has this many elements, neither fewer nor more: early loads are guarded by it.
    Length(String, u64),
    /// The memory of this parameter starts at a multiple of so many bytes.
    Alignment(String, u32),
    /// Signed loop counters do not overflow.
    NoOverflow,
    /// The launch asks for as many bytes of dynamic shared memory.
    DynamicSharedBytes(u32),
}

impl fmt::Display for Granted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Granted::ReadOnly(name) => write!(f, "nothing writes the memory of `{name}` during a launch"),
            Granted::Unaliased(name) => write!(
                f,
                "no address that is computed from another parameter leads into the memory of `{name}`"
            ),
            Granted::Length(name, length) => write!(f, "`{name}` has exactly {length} elements"),
            Granted::Alignment(name, bytes) => {
                write!(f, "the memory of `{name}` starts at a multiple of {bytes} bytes")
            }
            Granted::NoOverflow => write!(f, "signed loop counters do not overflow"),
            Granted::DynamicSharedBytes(bytes) => {
                write!(f, "launches ask for {bytes} bytes of dynamic shared memory")
            }
        }
    }
}

/// The facts that a rewritten entry rests on; `derive` rewrites it under other facts.
pub(super) fn granted(
    facts: &Facts,
    rewritten: &DropIn,
    derive: impl Fn(&Facts) -> Result<DropIn>,
) -> Vec<Granted> {
    let mut kept = facts.clone();
    let mut needed = Vec::new();
    let mut leave_out = |granted: Granted, less: &dyn Fn(&mut Facts)| {
        let mut without = kept.clone();
        less(&mut without);
        match derive(&without) {
            Ok(other) if other.text == rewritten.text => kept = without,
            _ => needed.push(granted),
        }
    };
    for (name, own) in &facts.parameters {
        let change = |facts: &mut Facts, change: fn(&mut ParameterFacts)| {
            if let Some(own) = facts.parameters.get_mut(name) {
                change(own);
            }
        };
        if own.read_only {
            leave_out(Granted::ReadOnly(name.clone()), &|facts| {
                change(facts, |own| own.read_only = false);
            });
        }
        if own.unaliased {
            leave_out(Granted::Unaliased(name.clone()), &|facts| {
                change(facts, |own| own.unaliased = false);
            });
        }
        if let Some(length) = own.length {
            leave_out(Granted::Length(name.clone(), length), &|facts| {
                change(facts, |own| own.length = None);
            });
        }
        if let Some(align) = own.align {
            leave_out(Granted::Alignment(name.clone(), align), &|facts| {
                change(facts, |own| own.align = None);
            });
        }
    }
    if facts.no_overflow {
        leave_out(Granted::NoOverflow, &|facts| facts.no_overflow = false);
    }
    // An entry that asks for the size itself takes its old body where it is another one.
    if let (Some(bytes), None) = (facts.dynamic_shared_bytes, rewritten.needs.dynamic_shared_bytes) {
        leave_out(Granted::DynamicSharedBytes(bytes), &|facts| {
            facts.dynamic_shared_bytes = Some(bytes.saturating_mul(2).saturating_add(16));
        });
    }
    needed
}
