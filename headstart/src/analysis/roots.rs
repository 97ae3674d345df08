//! Where a pointer comes from: the parameter or array that it was computed from.

use super::definitions::{Definition, Definitions};
use crate::ir::{Array, ConvertOp, Kernel, OpKind, PointerFacts, Space, Value};

/// The object that a pointer points into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Root {
    /// The memory behind the parameter of this number.
    Param(usize),
    /// A shared or private array.
    Array(Array),
}

/// The root of a pointer, if address arithmetic and loops alone lead to it.
pub fn root(kernel: &Kernel, definitions: &Definitions, pointer: Value) -> Option<Root> {
    let mut pointer = pointer;
    // Each step goes to an earlier definition, so the walk ends; the limit is for unverified kernels.
    for _ in 0..10_000 {
        if let Some(index) = kernel.params.iter().position(|param| param.value == pointer) {
            return Some(Root::Param(index));
        }
        pointer = match definitions.get(pointer)? {
            Definition::LoopParam { initial, .. } => *initial,
            Definition::Result { kind, .. } => match kind {
                OpKind::ArrayAddress(array) => return Some(Root::Array(*array)),
                OpKind::Address { base, .. } => *base,
                OpKind::Convert(ConvertOp::ToGeneric | ConvertOp::FromGeneric, from) => *from,
                _ => return None,
            },
        };
    }
    None
}

impl Root {
    /// What is known of the memory, if it is a parameter's.
    pub fn facts(self, kernel: &Kernel) -> Option<PointerFacts> {
        match self {
            Root::Param(index) => kernel.params[index].facts,
            Root::Array(_) => None,
        }
    }

    /// The space it lies in.
    pub fn space(self, kernel: &Kernel) -> Option<Space> {
        match self {
            Root::Param(index) => kernel.ty(kernel.params[index].value).space(),
            Root::Array(array) => Some(kernel.arrays[array].space),
        }
    }

    /// Its name in the source.
    pub fn name(self, kernel: &Kernel) -> &str {
        match self {
            Root::Param(index) => &kernel.params[index].name,
            Root::Array(array) => &kernel.arrays[array].name,
        }
    }

    /// Whether writes through one root can change what is read through the other.
    pub fn may_alias(self, other: Root, kernel: &Kernel) -> bool {
        let unaliased = |root: Root| root.facts(kernel).is_none_or(|facts| facts.unaliased);
        match (self, other) {
            _ if self == other => true,
            (Root::Param(_), Root::Param(_)) => !unaliased(self) && !unaliased(other),
            // Arrays are objects of their own.
            _ => false,
        }
    }
}
