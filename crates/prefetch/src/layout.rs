//! Kernels that see how shared memory is laid out get no more of it.
//!
//! ```text
//! %size = opaque "mov.u32 =0, %total_smem_size"      more bytes with slots
//! %at = array @tile                                  may lie elsewhere with slots
//! %bits = bits %at to i64
//! store %out, %bits                                  another number in memory
//! %to = address %table + %bits * 4                   another element
//! %is = lt.u %bits, 4096:i64                         perhaps another answer
//! %at = bits 1024 to ptr.shared                      is something else with slots
//! ```
//!
//! Addresses that are only used as addresses may move, by multiples of 1,024 bytes: a swizzle exchanges lower bits of them.

use cranelift_entity::SecondaryMap;

use crate::analysis::definitions::{Definition, Definitions};
use crate::error::{Error, Result};
use crate::ir::carried::Carried;
use crate::ir::{ConvertOp, Kernel, OpKind, Place, Space, Type, Value};

/// Refuses more shared memory in a kernel that sees its layout.
///
/// # Errors
/// The kernel reads the size of its shared memory, uses an address there as a number, or makes one of numbers alone.
#[doc(hidden)]
pub fn is_unseen(kernel: &Kernel) -> Result<()> {
    let made = Origins::of(kernel);
    let mut seen: Option<(Place, &str)> = None;
    kernel.body.walk(&mut |op| {
        seen = seen.or(made.seen_by(&op.kind, &op.results).map(|what| (op.place, what)));
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

/// What a value is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum MadeOf {
    #[default]
    Numbers,
    /// No address that is seen: what memory or an instruction that is carried gives may have been one.
    SomethingElse,
    /// The bits of an address of shared memory, among others.
    AnAddress,
}

/// What every value of a kernel is made of.
struct Origins<'k> {
    kernel: &'k Kernel,
    of: SecondaryMap<Value, MadeOf>,
}

impl Origins<'_> {
    fn of(kernel: &Kernel) -> Origins<'_> {
        let is_shared = |value: Value| kernel.ty(value) == Type::Ptr(Space::Shared);
        let of = Definitions::of(kernel).spread(kernel, |definition, _| {
            let Definition::Result { kind, .. } = definition else {
                return None;
            };
            match kind {
                OpKind::Convert(ConvertOp::Bits | ConvertOp::ToGeneric, from) if is_shared(*from) => {
                    Some(MadeOf::AnAddress)
                }
                // What memory holds was stored, and is looked at there.
                OpKind::Load { .. } | OpKind::Atomic { .. } | OpKind::Opaque(..) => {
                    Some(MadeOf::SomethingElse)
                }
                // A truth value is no address, and is looked at where it is made.
                OpKind::Compare(..) => Some(MadeOf::Numbers),
                _ => None,
            }
        });
        Origins { kernel, of }
    }

    /// How an operation sees the layout, if it does.
    fn seen_by(&self, kind: &OpKind, results: &[Value]) -> Option<&'static str> {
        let is_number = |value: &Value| !self.kernel.ty(*value).is_pointer();
        let is_of_address = |value: Value| self.of[value] == MadeOf::AnAddress;
        let is_compared = |value: Value| is_of_address(value) || self.is_shared(value);
        match kind {
            OpKind::Opaque(what, _) if *what.does == Carried::SharedSize => Some("reads its size"),
            OpKind::Store { values, .. } | OpKind::Atomic { values, .. } | OpKind::Print { values, .. }
                if values
                    .iter()
                    .any(|value| is_number(value) && is_of_address(*value)) =>
            {
                Some("stores an address of it as a number")
            }
            OpKind::Address { index, .. } if is_of_address(*index) => {
                Some("uses an address of it as an index")
            }
            OpKind::Compare(_, a, b) if is_compared(*a) != is_compared(*b) => {
                Some("compares an address of it with something else")
            }
            OpKind::Convert(ConvertOp::Bits, from)
                if results.iter().any(|&at| self.is_shared(at)) && self.of[*from] == MadeOf::Numbers =>
            {
                Some(ABSOLUTE)
            }
            kind => {
                let mut is_constant = false;
                kind.for_each_operand(|operand| {
                    is_constant |= self.kernel.values[operand].constant.is_some() && self.is_shared(operand);
                });
                is_constant.then_some(ABSOLUTE)
            }
        }
    }

    fn is_shared(&self, value: Value) -> bool {
        self.kernel.ty(value) == Type::Ptr(Space::Shared)
    }
}

/// How constants and sums of them are addresses.
const ABSOLUTE: &str = "makes an address of it of numbers alone";
