//! What an execution of a kernel can do wrong, as data: the rules of memory, order and progress that it breaks.
//!
//! The functional engine finds violations. [`Error`](crate::Error) carries one to those who decide by it, so that no
//! message is read again; `Display` has its words.

use std::fmt;

/// A work-item of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkItem {
    /// Its work-group's number in each dimension.
    pub group: [u64; 3],
    /// Its own number in the work-group.
    pub local: [u64; 3],
    /// Its number in the launch.
    pub global: [u64; 3],
    /// Whether the launch has one dimension.
    pub is_in_line: bool,
}

/// A piece of memory, as the kernel knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Element {
    /// An element of a buffer or array: `values[3]`. One in front of the first has a negative number.
    Index(String, i64),
    /// A byte of a buffer or array that is no element's first.
    Byte(String, i64),
    /// An address in no memory that has a name.
    Address(u64),
}

/// The other side of a race.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Racing {
    /// A work-item of the same work-group, by its number there: no barrier lies between.
    Neighbour(u32),
    /// A work-item of another work-group: no release and acquire order the two.
    OtherGroup(WorkItem),
    /// The same, found when the launch had ended.
    AtEnd(WorkItem),
}

/// A rule that an execution broke. `does` is a verb: `reads`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    /// An access beyond the ends of a buffer or array.
    OutOfBounds {
        /// The work-item.
        who: WorkItem,
        /// Its access.
        does: &'static str,
        /// The name of the buffer or array.
        memory: String,
        /// What the access begins at.
        element: Element,
        /// The number of elements that there are.
        length: u64,
    },
    /// An access at an address that lies in no memory.
    Nowhere {
        /// The work-item.
        who: WorkItem,
        /// Its access.
        does: &'static str,
        /// The size of the access.
        bytes: u32,
        /// The address.
        address: u64,
        /// Whether it was meant for an array, of shared or private memory, not for a buffer.
        of_array: bool,
        /// The number of the place in the kernel where the access stands.
        at: u32,
    },
    /// An access at an address that is no multiple of its size.
    Misaligned {
        /// The work-item.
        who: WorkItem,
        /// Its access.
        does: &'static str,
        /// The size of the access.
        bytes: u32,
        /// The name of the buffer or array.
        memory: String,
        /// Where the access begins in it, in bytes.
        offset: i64,
    },
    /// A read of memory that was never written.
    NeverWritten {
        /// The work-item.
        who: WorkItem,
        /// Its access.
        does: &'static str,
        /// What it reads.
        element: Element,
    },
    /// A write to memory that is only read.
    ReadOnly {
        /// The work-item.
        who: WorkItem,
        /// What it writes.
        element: Element,
    },
    /// Two accesses to the same memory that nothing orders, one of which writes.
    Race {
        /// The work-item.
        who: WorkItem,
        /// Its access.
        does: &'static str,
        /// The memory.
        element: Element,
        /// The other work-item.
        with: Racing,
        /// The other one's access: `wrote`, or `writes` where the launch has ended.
        did: &'static str,
        /// Where the other access stands in the kernel.
        there: String,
    },
    /// An asynchronous operation that is not waited for, or whose memory or results are used before; the sentence says which.
    InFlight(String),
    /// Work-items that do not run an operation together that they must run together; the sentence says which.
    Apart(String),
    /// An operation with operands that it does not take; the sentence says which.
    Misused(String),
    /// Arithmetic whose result does not fit, though the kernel says that it does.
    Wraps {
        /// The work-item.
        who: WorkItem,
        /// The operation, with its operands: `2147483647 + 1`.
        computed: String,
        /// The name of the result's type.
        ty: String,
        /// Whether it does not fit as a signed number.
        is_signed: bool,
    },
    /// A sub-group that has run its limit of operations. It may end later.
    NotEnded {
        /// Its first work-item.
        who: WorkItem,
        /// The limit.
        operations: u64,
    },
    /// A work-item that waits for an event that cannot happen.
    WaitsForEver {
        /// The work-item.
        who: WorkItem,
        /// What the other work-groups do, where there are others.
        others: Option<String>,
    },
    /// The kernel ends the launch itself: by a trap, or by an assertion, which is given.
    Trapped {
        /// The work-item.
        who: WorkItem,
        /// The text of the assertion that it fails.
        assertion: Option<String>,
    },
}

impl Violation {
    /// The name of the rule, as JSON has it.
    pub fn name(&self) -> &'static str {
        match self {
            Violation::OutOfBounds { .. } => "out-of-bounds",
            Violation::Nowhere { .. } => "nowhere",
            Violation::Misaligned { .. } => "misaligned",
            Violation::NeverWritten { .. } => "never-written",
            Violation::ReadOnly { .. } => "read-only",
            Violation::Race { .. } => "race",
            Violation::InFlight(_) => "in-flight",
            Violation::Apart(_) => "apart",
            Violation::Misused(_) => "misused",
            Violation::Wraps { .. } => "wraps",
            Violation::NotEnded { .. } => "not-ended",
            Violation::WaitsForEver { .. } => "waits-for-ever",
            Violation::Trapped { .. } => "trapped",
        }
    }

    /// The memory that it is about, if it is about one.
    pub fn element(&self) -> Option<&Element> {
        match self {
            Violation::OutOfBounds { element, .. }
            | Violation::NeverWritten { element, .. }
            | Violation::ReadOnly { element, .. }
            | Violation::Race { element, .. } => Some(element),
            _ => None,
        }
    }
}

impl fmt::Display for WorkItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = [self.local, self.group, self.global];
        let [local, group, global] = all.map(|[x, y, z]| match self.is_in_line {
            true => x.to_string(),
            false => format!("({x}, {y}, {z})"),
        });
        write!(f, "work-item {local} of work-group {group} (global {global})")
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Element::Index(memory, index) => write!(f, "`{memory}[{index}]`"),
            Element::Byte(memory, offset) => write!(f, "byte {offset} of `{memory}`"),
            Element::Address(address) => write!(f, "address {address:#x}"),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Violation::OutOfBounds {
                who,
                does,
                memory,
                element,
                length,
            } => write!(
                f,
                "{who} {does} {element}, out of bounds: `{memory}` has {length} elements"
            ),
            Violation::Nowhere {
                who,
                does,
                bytes,
                address,
                of_array,
                ..
            } => {
                let memory = if *of_array { "array" } else { "buffer" };
                write!(
                    f,
                    "{who} {does} {bytes} bytes at address {address:#x}, which is in no {memory}"
                )
            }
            Violation::Misaligned {
                who,
                does,
                bytes,
                memory,
                offset,
            } => write!(
                f,
                "{who} {does} {bytes} bytes at byte {offset} of `{memory}`, which is not a multiple of {bytes}"
            ),
            Violation::NeverWritten { who, does, element } => {
                write!(f, "{who} {does} {element}, which was never written")
            }
            Violation::ReadOnly { who, element } => {
                write!(f, "{who} writes {element}, which is read-only")
            }
            Violation::Race {
                who,
                does,
                element,
                with,
                did,
                there,
            } => {
                write!(f, "{who} {does} {element}, which ")?;
                match with {
                    Racing::Neighbour(item) => {
                        write!(f, "work-item {item} {did} at {there} with no barrier between")
                    }
                    Racing::OtherGroup(other) => {
                        write!(f, "{other} {did} at {there}: nothing orders the two")
                    }
                    Racing::AtEnd(other) => write!(
                        f,
                        "{other} {did} at {there} in the same launch: nothing orders work-groups"
                    ),
                }
            }
            Violation::InFlight(sentence) | Violation::Apart(sentence) | Violation::Misused(sentence) => {
                f.write_str(sentence)
            }
            Violation::Wraps {
                who,
                computed,
                ty,
                is_signed,
            } => {
                let sign = if *is_signed { " signed" } else { "n unsigned" };
                write!(f, "{who} computes {computed}, which does not fit a{sign} `{ty}`")
            }
            Violation::NotEnded { who, operations } => {
                write!(f, "{who} has run {operations} operations and has not ended")
            }
            Violation::WaitsForEver { who, others } => {
                write!(
                    f,
                    "{who} waits in a loop for ever: the values that it reads there do not change"
                )?;
                match others {
                    None => f.write_str(", whatever the other work-items do"),
                    Some(others) => write!(f, "; {others}"),
                }
            }
            Violation::Trapped { who, assertion } => match assertion {
                None => write!(f, "{who} reaches a `trap`"),
                Some(text) => write!(f, "{who} fails the assertion `{text}`"),
            },
        }
    }
}
