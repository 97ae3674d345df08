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
