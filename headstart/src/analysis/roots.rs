//! Where a pointer comes from: the parameter or array that it was computed from.

use std::collections::HashSet;

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

/// The root of a pointer, if address arithmetic, loops and regions alone lead to it.
pub fn root(kernel: &Kernel, definitions: &Definitions, pointer: Value) -> Option<Root> {
    let mut seen = HashSet::new();
    let mut work = vec![pointer];
    let mut found = None;
    // A pointer that comes from several places has a root if all of them have the same.
    while let Some(pointer) = work.pop() {
        if !seen.insert(pointer) {
            continue;
        }
        if let Some(index) = kernel.params.iter().position(|param| param.value == pointer) {
            agree(&mut found, Root::Param(index))?;
            continue;
        }
        match definitions.get(pointer)? {
            Definition::LoopParam { initial, next, .. } => {
                work.push(*initial);
                work.extend(next);
            }
            Definition::Result { kind, passed, .. } => match kind {
                OpKind::ArrayAddress(array) => agree(&mut found, Root::Array(*array))?,
                OpKind::Address { base, .. } => work.push(*base),
                OpKind::Convert(ConvertOp::ToGeneric | ConvertOp::FromGeneric, from) => work.push(*from),
                OpKind::Select(_, a, b) => work.extend([*a, *b]),
                OpKind::Block { .. } | OpKind::If { .. } | OpKind::Loop { .. } => work.extend(passed),
                _ => return None,
            },
        }
    }
    found
}

/// Notes a root; nothing if another one was found before.
fn agree(found: &mut Option<Root>, root: Root) -> Option<()> {
    match found {
        Some(other) if *other != root => None,
        _ => {
            *found = Some(root);
            Some(())
        }
    }
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
