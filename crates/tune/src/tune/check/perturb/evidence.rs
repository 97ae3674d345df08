//! Whether a fault of the plain kernel is ours: an access where there is no memory, though no drawn byte leads there.
//!
//! A launch that draws an index may leave the kernel's memory; that says nothing about how the kernel was read. But an address
//! that follows from pointers, constants and numbers of work-items alone leads to memory in a program that is right. If it
//! leads nowhere, the kernel was read as another one, and no check of a plan can be trusted: each compares with that reading.
//!
//! The address's slice is followed backwards. It must contain no load from memory that launches draw, and no drawn scalar but an
//! index too small to leave the place that the engine keeps for a buffer or array.

use std::collections::HashSet;

use super::launch::{Part, Variant};
use crate::analysis::definitions::{Definition, Definitions};
use crate::analysis::ranges::range;
use crate::analysis::roots::{Root, root};
use crate::ir::effects::Memory;
use crate::ir::{BinaryOp, Kernel, NoWrapOp, OpKind, Space, Value};
use crate::violation::Violation;

/// An address this close to 0, on either side, is a null pointer's: the kernel was not meant to get there.
const NULL: u64 = 4096;
/// An index of this many bytes does not reach beyond the place of a global buffer, nor of a shared or private array.
const BUFFER: u64 = 1 << 38;
const ARRAY: u64 = 1 << 21;

/// A backward search through a kernel.
struct Slices<'k> {
    kernel: &'k Kernel,
    definitions: Definitions,
    variant: &'k Variant,
}

/// Whether a violation of the plain kernel's shows that the kernel was read wrongly.
pub(super) fn is_ours(kernel: &Kernel, variant: &Variant, violation: &Violation) -> bool {
    let Violation::Nowhere { address, at, .. } = violation else {
        return false;
    };
    if *address < NULL || address.wrapping_neg() < NULL {
        return false;
    }
    let slices = Slices {
        kernel,
        definitions: Definitions::of(kernel),
        variant,
    };
    let mut addresses = Vec::new();
    kernel.body.walk(&mut |op| {
        if op.place.as_u32() == *at {
            addresses.extend(op.kind.effects().pointers());
        }
    });
    // One place may have several accesses: which one went wrong is not known.
    !addresses.is_empty() && addresses.into_iter().all(|address| slices.is_given(address))
}

impl Slices<'_> {
    /// Whether a value follows from pointers, constants and numbers of work-items alone.
    fn is_given(&self, value: Value) -> bool {
        let mut seen = HashSet::new();
        self.all_given(vec![value], false, &mut seen)
    }

    fn all_given(&self, mut work: Vec<Value>, mut is_carried: bool, seen: &mut HashSet<Value>) -> bool {
        while let Some(value) = work.pop() {
            if !seen.insert(value) || self.kernel.as_constant(value).is_some() {
                continue;
            }
            if let Some(position) = self.kernel.params.iter().position(|param| param.value == value) {
                match self.variant.parts.get(position) {
                    Some(Part::Buffer(_) | Part::Given(_)) => continue,
                    _ => return false,
                }
            }
            match self.definitions.get(value) {
                None => return false,
                Some(Definition::LoopParam { initial, next, .. }) => {
                    // What is added in each iteration adds up.
                    is_carried = true;
                    work.push(*initial);
                    work.extend(next);
                }
                Some(Definition::Result { kind, passed, .. }) => match kind {
                    OpKind::Address {
                        base, index, scale, ..
                    } => {
                        work.push(*base);
                        if is_carried || !self.is_small(value, *index, u64::from(*scale)) {
                            work.push(*index);
                        }
                    }
                    OpKind::Binary(BinaryOp::Add | BinaryOp::Or, a, b)
                    | OpKind::NoWrap(NoWrapOp::Add, _, a, b) => {
                        let far = [*a, *b].into_iter();
                        work.extend(far.filter(|&part| is_carried || !self.is_small(value, part, 1)));
                    }
                    OpKind::Select(_, a, b) => work.extend([*a, *b]),
                    OpKind::Block { .. } | OpKind::If { .. } | OpKind::Loop { .. } => work.extend(passed),
                    OpKind::Load { ptr, .. } => match root(self.kernel, &self.definitions, *ptr) {
                        Some(Root::Array(array)) => match self.stored(Root::Array(array)) {
                            Some(stored) => work.extend(stored),
                            None => return false,
                        },
                        _ => return false,
                    },
                    kind if kind.is_pure() => kind.for_each_operand(|operand| work.push(operand)),
                    _ => return false,
                },
            }
        }
        true
    }

    /// Whether an offset is too small to leave the place of a buffer or array.
    fn is_small(&self, address: Value, index: Value, scale: u64) -> bool {
        let most = match self.kernel.ty(address).space() {
            Some(Space::Global) => BUFFER,
            _ => ARRAY,
        };
        range(self.kernel, &self.definitions, index).max < most / scale.max(1)
    }

    /// Whether a pointer leads to another space than an array's.
    fn is_elsewhere(&self, pointer: Value, array: Root) -> bool {
        let space = self.kernel.ty(pointer).space();
        space != Some(Space::Generic) && space != array.space(self.kernel)
    }

    /// All values that the kernel stores in an array; none where something else may write it.
    fn stored(&self, array: Root) -> Option<Vec<Value>> {
        let mut stored = Some(Vec::new());
        self.kernel.body.walk(&mut |op| {
            let to = match op.kind.effects().writes {
                Memory::None => return,
                Memory::At(pointer) => match root(self.kernel, &self.definitions, pointer) {
                    Some(other) if other != array => return,
                    None if self.is_elsewhere(pointer, array) => return,
                    to => to,
                },
                Memory::Shared | Memory::Any => None,
            };
            match (to, &op.kind, &mut stored) {
                (Some(_), OpKind::Store { values, .. }, Some(stored)) => stored.extend(values),
                _ => stored = None,
            }
        });
        stored
    }
}
