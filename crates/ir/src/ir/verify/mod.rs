//! The verifier: the rules that every kernel obeys. After it, nothing panics.
//!
//! About the whole:
//!  1. The kernel is not larger than the [`limits`](super::limits): operations, nesting, parameters, arrays
//!     and their bytes, names, inlined calls.
//!  2. Every value, label, array, load and place that is mentioned stands in its table. Place 0 exists; a
//!     place that was inlined stands after the place of the call.
//!  3. Parameters have names, no two the same; each has a value of its own that is no constant. None is a
//!     token; pointers are global or generic.
//!  4. Only pointers have facts. The element is no token, the alignment is a power of two, and the length
//!     is an `I64` parameter or an `I64` constant that is not negative.
//!  5. Arrays are shared or private, not empty, not of tokens; their alignment is a power of two and at
//!     least the size of an element.
//!  6. A required work-group size has 1 to 4096 work-items; a required sub-group size is a power of two up
//!     to 128.
//!  7. A constant has no bits beyond its type; the only constant token is 0.
//!
//! About the body:
//!  8. A region ends with a terminator, and no terminator stands elsewhere.
//!  9. A value is defined once, and a constant never.
//! 10. An operand is a constant, or defined before, in the same region or one around it.
//! 11. A label is introduced once.
//! 12. `Break` names a label around it and passes values of the types of its results.
//! 13. `Continue` names a loop around it and passes values of the types of its parameters.
//! 14. A loop has as many initial values as parameters, of the same types; it is unrolled by 1 or more.
//! 15. An operation's results are as many, and of the types, as its kind and operands say; those of a
//!     block, `if` or loop are its label's.
//!
//! About operands:
//! 16. Pure operations take operands of the types that [`OpKind`] and its tables say, all
//!     of one type where several stand for numbers. Bit casts do not lead from pointer to pointer.
//! 17. A load or store has a pointer into any space and moves 1, 2 or 4 values of one type, at most 16
//!     bytes. A `Bool` in memory is a byte, 0 or 1. One of a block moves one number, to or from global memory.
//! 18. A copy goes from global to shared memory and moves 4, 8 or 16 bytes.
//! 19. Tokens are made by copies and joins and taken by joins and waits, and besides that only passed by
//!     `Break`, `Continue` and loops. A join has at least one.
//! 20. A prefetch has a global or generic pointer and asks for 1 byte to 1 MiB, as often as an `I64` says; its level
//!     is the nearest to its cache control, L2 if it is a bulk one, and not nontemporal if the source does not name it.
//! 21. The condition of an `if` is a `Bool`.
//! 22. An atomic operation has a global, shared or generic pointer and the values, of a type, and the order
//!     that [`AtomicOp`](super::AtomicOp) says; a fence is not relaxed.
//! 23. A shuffle exchanges numbers or truth values by an `I32`; a vote takes a `Bool`; a named barrier has one of
//!     the numbers 1 to 15 and at least one sub-group.
//! 24. A printed line has a value of the right type for each of its places.
//! 25. An operation that rounds, flushes or may be fused by a rule of its own is one of floats, of a type for which some
//!     device has that; its rule says something. Approximations that no device has without flushing say so.

mod rule;
mod structure;
mod tables;
#[cfg(test)]
mod tests;
mod types;
mod violation;

use super::kernel::Kernel;
use super::op::OpKind;
use super::rule::FloatRule;
use super::types::Type;
use crate::error::{Error, Result};
use crate::suggest::quoted;
use violation::{Check, Rule, Violation};

/// Checks that a kernel obeys the rules of this module.
///
/// # Errors
/// An input error with the number of the first rule that is broken, how, and where in the source.
pub fn verify(kernel: &Kernel) -> Result<()> {
    check(kernel).map_err(|violation| error(kernel, &violation, Error::input))
}

/// Checks a kernel that Headstart itself made: a broken rule is a bug of ours. Only a kernel that grew
/// over the limits is still the fault of who asked for it.
///
/// # Errors
/// As [`verify`], with the other fault.
#[doc(hidden)]
pub fn verify_derived(kernel: &Kernel) -> Result<()> {
    check(kernel).map_err(|violation| match violation.rule {
        Rule::Size => error(kernel, &violation, Error::input),
        _ => error(kernel, &violation, Error::bug),
    })
}

/// The types of the results of an operation without regions, if its operands are correct; `named` is the type that a load or
/// conversion names, `results` the number of values that a load defines.
pub(super) fn result_types(
    kernel: &Kernel,
    kind: &OpKind,
    results: usize,
    named: Option<Type>,
) -> Result<Vec<Type>> {
    types::results_of(kernel, kind, results, named).map_err(|violation| Error::input(violation.what))
}

/// Whether a float operation can have this rule, of operands that are right for it.
#[doc(hidden)]
pub fn can_have(kernel: &Kernel, rule: FloatRule, plain: &OpKind, result: Type) -> bool {
    rule::ruled(kernel, rule, plain, Some(result)).is_ok()
}

fn check(kernel: &Kernel) -> Check {
    tables::check(kernel)?;
    structure::Walk::check(kernel)
}

fn error(kernel: &Kernel, violation: &Violation, new: fn(String) -> Error) -> Error {
    let Violation {
        rule,
        what,
        place,
        operation,
    } = violation;
    let operation = match operation {
        Some(text) => format!(": `{text}`"),
        None => String::new(),
    };
    let error = new(format!("{what}{operation} (rule {} of the IR)", *rule as u32));
    match place {
        Some(place) => error.at(kernel.describe_place(*place)),
        None => error.at(format!("kernel {}", quoted(&kernel.name))),
    }
}
