//! A rule that a planned kernel's execution broke, as JSON has it.

use serde::{Deserialize, Serialize};

use crate::violation::{self, Element};

/// The rule, and the memory that it is about. The reason beside it has the words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violation {
    /// The rule: `out-of-bounds`, `race`, `not-ended`, …
    pub kind: String,
    /// The name of the buffer or array.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<String>,
    /// The number of the element.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<i64>,
    /// The offset in bytes, where that is no element's first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub byte: Option<i64>,
}

impl From<&violation::Violation> for Violation {
    fn from(violation: &violation::Violation) -> Violation {
        let (memory, index, byte) = match violation.element() {
            Some(Element::Index(memory, index)) => (Some(memory.clone()), Some(*index), None),
            Some(Element::Byte(memory, byte)) => (Some(memory.clone()), None, Some(*byte)),
            Some(Element::Address(_)) | None => (None, None, None),
        };
        Violation {
            kind: violation.name().to_owned(),
            memory,
            index,
            byte,
        }
    }
}

/// The name of what is no rule of kernels: the device takes no such launch.
#[doc(hidden)]
pub const NO_LAUNCH: &str = "no-launch";

/// What a draw asks for that makes a kernel break a rule, in words.
#[doc(hidden)]
pub fn broken_rule(name: &str) -> &str {
    match name {
        "out-of-bounds" => "an index beyond its memory",
        "nowhere" => "an address outside all memory",
        "misaligned" => "an address that is not aligned",
        "never-written" => "a read of memory that nothing has written",
        "read-only" => "a write to memory that is only read",
        "race" => "a race",
        "in-flight" => "an asynchronous operation that is not waited for",
        "apart" => "work-items that miss a barrier or an exchange",
        "misused" => "an operand that an operation does not take",
        "wraps" => "a number that overflows",
        "not-ended" => "more steps than are run",
        "waits-for-ever" => "a wait that does not end",
        "trapped" => "a trap or a failed assertion",
        NO_LAUNCH => "a size that the device does not take",
        other => other,
    }
}
