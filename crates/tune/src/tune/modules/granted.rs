//! Assumptions of a rewritten entry beyond its module's text.
//!
//! The user made statements about the entry's launches (lengths, `readonly`, …). The needed ones are found by leaving them out,
//! one after the other, as long as exactly the same text comes out, except for the names of registers: the remaining ones are
//! needed, and nothing else is assumed. Each is written into the module's note and into the report.
//!
//! The statements are about accesses, not about memory. To state that nothing else is accessed through a parameter also states
//! that no number given to or loaded by the kernel leads from it into other memory: `p[d]` reaches everything if `d` is read
//! from a table of distances. C, C++ and Rust have no such programs; PTX does not forbid them.

use std::collections::HashMap;
use std::fmt;

use super::drop_in::DropIn;
use crate::error::Result;
use crate::front::ptx::{Assembler, Facts, Origin, Original, ParameterFacts};

/// One thing that every launch of a rewritten entry must fulfil.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Granted {
    /// Nothing writes, while the kernel runs, the memory that it reads through this parameter.
    ReadOnly(String),
    /// Memory accessed through this parameter is accessed through no other one.
    Unaliased(String),
    /// The memory of this parameter has this many elements, neither fewer nor more, and nothing beyond is accessed through
    /// it: early loads are guarded by it.
    Length(String, u64),
    /// The memory of this parameter starts at a multiple of this many bytes.
    Alignment(String, u32),
    /// The module's signed loop counters do not overflow. Its compiler may have made them count further than the source's.
    NoOverflow,
    /// The driver has this assembler: what it makes of the sums that the text leaves to it was compared with the original's.
    Assembler(Assembler),
    /// The launch asks for as many bytes of dynamic shared memory.
    DynamicSharedBytes(u32),
    /// Variables of the module are accessed inside: early loads are guarded by their ends.
    VariablesEnd,
    /// Generic addresses stay in the space that they begin in: accesses through them became accesses of that space.
    Spaces,
    /// As many work-groups are resident as of the entry as it was, which wait as the sentence says; where others than work-groups
    /// of the launch may be waited for, the entry takes no more registers and shared memory.
    Residency {
        /// Where they wait, and for which others.
        waits: String,
        /// Whether only other work-groups of the launch are waited for.
        for_each_other: bool,
    },
}

impl fmt::Display for Granted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Granted::ReadOnly(name) => {
                write!(f, "no launch writes memory that is read through `{name}`")
            }
            Granted::Unaliased(name) => write!(
                f,
                "memory accessed through `{name}` is accessed through no other parameter"
            ),
            Granted::Length(name, length) => write!(
                f,
                "`{name}` has exactly {length} elements, and nothing beyond them is accessed through it"
            ),
            Granted::Alignment(name, bytes) => {
                write!(f, "the memory of `{name}` starts at a multiple of {bytes} bytes")
            }
            Granted::NoOverflow => write!(
                f,
                "signed loop counters do not overflow: the module's own, which may count further than its source's"
            ),
            Granted::Assembler(Assembler { driver, capability }) => write!(
                f,
                "the driver is {}.{} and the device's compute capability {}.{}: the text leaves to the driver's assembler \
                 whether products and sums are fused, and its choices were compared there",
                driver / 1000,
                driver % 1000 / 10,
                capability / 10,
                capability % 10
            ),
            Granted::DynamicSharedBytes(bytes) => {
                write!(f, "launches ask for {bytes} bytes of dynamic shared memory")
            }
            Granted::VariablesEnd => write!(f, "no variable of the module is accessed beyond its end"),
            Granted::Residency {
                waits,
                for_each_other: true,
            } => write!(
                f,
                "a core holds as many work-groups of each launch as of the entry as it was, by the driver's own occupancy: {waits}"
            ),
            Granted::Residency { waits, .. } => write!(
                f,
                "the entry takes no more registers and shared memory than it did as it was: {waits}"
            ),
            Granted::Spaces => write!(
                f,
                "a generic address stays in the memory, global, shared or local, that it begins in"
            ),
        }
    }
}

/// The facts that a rewritten entry rests on; `derive` rewrites it under other facts.
pub(in crate::tune) fn granted(
    original: &Original,
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
            Ok(other) if other.says_the_same(rewritten) => kept = without,
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
    if let Some(assembler) = facts.assembler {
        leave_out(Granted::Assembler(assembler), &|facts| facts.assembler = None);
    }
    // An entry that asks for the size itself takes its old body where it is another one.
    if let (Some(bytes), None) = (facts.dynamic_shared_bytes, rewritten.needs.dynamic_shared_bytes) {
        leave_out(Granted::DynamicSharedBytes(bytes), &|facts| {
            facts.dynamic_shared_bytes = Some(bytes.saturating_mul(2).saturating_add(16));
        });
    }
    let mut origins = original.parameters.iter();
    if origins.any(|origin| matches!(origin, Origin::Variable { .. })) {
        leave_out(Granted::VariablesEnd, &|facts| facts.unbounded_variables = true);
    }
    // Every body assumes it, whatever its plan.
    if original.spaces_inferred {
        needed.push(Granted::Spaces);
    }
    needed
}

/// A text with its registers numbered in the order in which they appear.
pub fn without_names(text: &str) -> String {
    let mut numbers: HashMap<&str, usize> = HashMap::new();
    let mut plain = String::with_capacity(text.len());
    let mut pieces = text.split('%');
    plain.push_str(pieces.next().unwrap_or_default());
    for piece in pieces {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$';
        let end = piece.find(|c: char| !is_part(c)).unwrap_or(piece.len());
        let next = numbers.len();
        let number = *numbers.entry(&piece[..end]).or_insert(next);
        plain.push('%');
        plain.push_str(&number.to_string());
        plain.push_str(&piece[end..]);
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_registers_do_not_matter() {
        let text = |a: &str, b: &str| format!(".reg .b32 %{a}, %{b};\nadd.s32 %{a}, %{b}, %tid.x;\n");
        assert_eq!(without_names(&text("r1", "p_2")), without_names(&text("x", "r1")));
        assert_ne!(without_names(&text("r1", "r2")), without_names(&text("r1", "r1")));
        assert_eq!(without_names("100% of %"), "100%0 of %0");
    }
}
