//! Kernels that see how shared memory is laid out get no more of it.
//!
//! ```text
//! %size = opaque "mov.u32 =0, %total_smem_size"      more bytes with slots
//! %at = array @tile                                  may lie elsewhere with slots
//! %bits = bits %at to i64
//! store %out, %bits
//! %at = bits 1024 to ptr.shared                      is something else with slots
//! ```
//!
//! Addresses that are only used as addresses may move. Those whose bits reach memory, through any arithmetic, may not.

use std::collections::HashSet;

use crate::analysis::definitions::{Definition, Definitions};
use crate::error::{Error, Result};
use crate::ir::carried::Carried;
use crate::ir::{ConvertOp, Kernel, OpKind, Place, Space, Type, Value};

/// The most values that are looked at for one that is stored; beyond that it counts as an address.
const VISITS: usize = 10_000;

/// Refuses more shared memory in a kernel that sees its layout.
///
/// # Errors
/// The kernel reads the size of its shared memory, stores an address there as a number, or makes one of numbers alone.
#[doc(hidden)]
pub fn is_unseen(kernel: &Kernel) -> Result<()> {
    let definitions = Definitions::of(kernel);
    let mut seen: Option<(Place, &str)> = None;
    kernel.body.walk(&mut |op| {
        let what = match &op.kind {
            OpKind::Opaque(what, _) if *what.does == Carried::SharedSize => Some("reads its size"),
            OpKind::Store { values, .. } | OpKind::Atomic { values, .. }
                if values
                    .iter()
                    .any(|&value| is_number_of_address(kernel, &definitions, value)) =>
            {
                Some("stores an address of it as a number")
            }
            OpKind::Convert(ConvertOp::Bits, from)
                if op
                    .results
                    .iter()
                    .any(|&at| kernel.ty(at) == Type::Ptr(Space::Shared))
                    && definitions.has_bit_casts()
                    && made_of(kernel, &definitions, *from) == MadeOf::Numbers =>
            {
                Some("makes an address of it of numbers alone")
            }
            kind if has_absolute_address(kernel, kind) => Some("makes an address of it of numbers alone"),
            _ => None,
        };
        seen = seen.or(what.map(|what| (op.place, what)));
    });
    match seen {
        Some((place, what)) => Err(Error::usage(format!(
            "the plan takes more shared memory, and the kernel {what}"
        ))
        .at(kernel.describe_place(place))
        .accepted("a plan without slots in shared memory and without hints for L1")),
        None => Ok(()),
    }
}

/// Whether an operand is an address of shared memory that is a constant.
fn has_absolute_address(kernel: &Kernel, kind: &OpKind) -> bool {
    let mut found = false;
    kind.for_each_operand(|operand| {
        let is_constant = kernel.values[operand].constant.is_some();
        found |= is_constant && kernel.ty(operand) == Type::Ptr(Space::Shared);
    });
    found
}

/// Whether an integer may be made of the bits of an address of shared memory.
fn is_number_of_address(kernel: &Kernel, definitions: &Definitions, value: Value) -> bool {
    !kernel.ty(value).is_pointer()
        && definitions.has_bit_casts()
        && made_of(kernel, definitions, value) == MadeOf::AnAddress
}

/// What an integer is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MadeOf {
    /// An address of shared memory among others, perhaps.
    AnAddress,
    /// No address that is seen: what memory or an instruction that is carried gives may have been one.
    SomethingElse,
    Numbers,
}

fn made_of(kernel: &Kernel, definitions: &Definitions, value: Value) -> MadeOf {
    let mut seen = HashSet::new();
    let mut work = vec![value];
    let mut is_numbers = true;
    while let Some(value) = work.pop() {
        if !seen.insert(value) {
            continue;
        }
        if seen.len() > VISITS {
            return MadeOf::AnAddress;
        }
        match definitions.get(value) {
            None => {}
            Some(Definition::LoopParam { initial, next, .. }) => {
                work.push(*initial);
                work.extend(next);
            }
            Some(Definition::Result { kind, passed, .. }) => match kind {
                OpKind::Convert(ConvertOp::Bits | ConvertOp::ToGeneric, from)
                    if kernel.ty(*from) == Type::Ptr(Space::Shared) =>
                {
                    return MadeOf::AnAddress;
                }
                // What memory holds was stored, and is looked at there.
                OpKind::Load { .. } | OpKind::Atomic { .. } | OpKind::Opaque(..) => is_numbers = false,
                // A truth value is no address.
                OpKind::Compare(..) => {}
                kind => {
                    kind.for_each_operand(|operand| work.push(operand));
                    work.extend(passed);
                }
            },
        }
    }
    match is_numbers {
        true => MadeOf::Numbers,
        false => MadeOf::SomethingElse,
    }
}
