//! The arguments of a launch, as a [worker](crate::device::cuda::worker) is given them.
//!
//! A kernel that was read from a module is launched in it: its parameters are laid out as the entry declares them, and the
//! module's variables get contents from memory that is not passed.

use std::collections::HashMap;
use std::sync::Arc;

use crate::device::Fill;
use crate::device::cuda::worker::Argument;
use crate::front::ptx::Origin;
use crate::ir::limits::BUFFER_ALIGNMENT;
use crate::ir::{Param, Type};
use crate::tune::subject::workload::{ArgumentSpec, PlacedMemory, Workload};

/// The arguments of a launch: all parameters, or those of the module that the kernel was read from, each at its offset, and what
/// its variables hold.
pub(super) fn arguments(workload: &Workload) -> Vec<Argument<'_>> {
    let passed = passed(workload);
    let places: HashMap<usize, usize> = passed
        .iter()
        .enumerate()
        .filter_map(|(place, passed)| match passed {
            Passed::Param(param) | Passed::Held(param) => Some((*param, place)),
            Passed::Byte(_) => None,
        })
        .collect();
    let of = |passed: &Passed| match *passed {
        Passed::Param(param) | Passed::Held(param) => match (workload.pointer(param), &workload.given[param])
        {
            (Some(address), _) => Argument::Scalar(Type::I64, address),
            (None, ArgumentSpec::Part { of, start }) => Argument::Part {
                // Whose memory it is was checked when the launch was described.
                of: places.get(of).copied().unwrap_or(0),
                bytes: bytes_before(&workload.given[*of], *start),
            },
            (None, given) => {
                let is_passed = matches!(passed, Passed::Param(_));
                argument(given, workload.kernel.params.get(param), is_passed)
            }
        },
        Passed::Byte(byte) => Argument::Scalar(Type::I8, u64::from(byte)),
    };
    let mut arguments: Vec<Argument<'_>> = passed.iter().map(of).collect();
    let first_placed = arguments.len();
    let placed = workload.placed.iter().flat_map(|placed| &placed.memory);
    arguments.extend(placed.map(|own| Argument::Placed {
        address: own.address,
        bytes: &own.bytes,
    }));
    arguments.extend(variables(workload, &places, first_placed));
    arguments
}

/// Bytes of a buffer in front of an element.
fn bytes_before(given: &ArgumentSpec, start: u64) -> u64 {
    let size = match given {
        ArgumentSpec::Input { element, .. } | ArgumentSpec::Output { element, .. } => element.bytes(),
        _ => 1,
    };
    start.saturating_mul(u64::from(size))
}

/// The variables of the module that a kernel was read from, each with the argument that has its contents.
fn variables<'w>(
    workload: &'w Workload,
    places: &HashMap<usize, usize>,
    first_placed: usize,
) -> Vec<Argument<'w>> {
    let origins = workload.original.iter().flat_map(|original| &original.parameters);
    let memory: Vec<&PlacedMemory> = workload.placed.iter().flat_map(|placed| &placed.memory).collect();
    let variable = |(param, origin): (usize, &'w Origin)| {
        let Origin::Variable { name, declared, .. } = origin else {
            return None;
        };
        let given = &workload.given[param];
        let (of, start, bytes) = match (workload.pointer(param), given) {
            (Some(address), _) => {
                let has = |own: &&PlacedMemory| {
                    (own.address..own.address + own.bytes.len() as u64).contains(&address)
                };
                let number = memory.iter().position(has)?;
                let start = address - memory[number].address;
                (
                    first_placed + number,
                    start,
                    memory[number].bytes.len() as u64 - start,
                )
            }
            (None, ArgumentSpec::Part { of, start }) => {
                let before = bytes_before(&workload.given[*of], *start);
                (
                    *places.get(of)?,
                    before,
                    bytes_of(&workload.given[*of])?.saturating_sub(before),
                )
            }
            (None, given) => (*places.get(&param)?, 0, bytes_of(given)?),
        };
        Some(Argument::Variable {
            name,
            of,
            start,
            bytes: declared.map_or(bytes, |declared| declared.min(bytes)),
        })
    };
    origins.enumerate().filter_map(variable).collect()
}

/// The size of a buffer.
fn bytes_of(given: &ArgumentSpec) -> Option<u64> {
    match given {
        ArgumentSpec::Input { element, length, .. } | ArgumentSpec::Output { element, length, .. } => {
            Some(length.saturating_mul(u64::from(element.bytes())))
        }
        ArgumentSpec::Scalar(..) | ArgumentSpec::Part { .. } => None,
    }
}

/// The kind of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Passed {
    /// The argument of the parameter of this number.
    Param(usize),
    /// A byte between two, or of a structure.
    Byte(u8),
    /// Memory that is not passed: that of a variable of the module, or a workspace. The parameter of this number.
    Held(usize),
}

/// The arguments of a launch, in order.
pub(super) fn passed(workload: &Workload) -> Vec<Passed> {
    let Some(original) = &workload.original else {
        return (0..workload.given.len()).map(Passed::Param).collect();
    };
    // The bytes of structures come first, so that members that are parameters as well take their place.
    let mut passed = vec![Passed::Byte(0); original.parameter_bytes as usize];
    let all = || original.parameters.iter().zip(&workload.given).enumerate();
    for (_, (origin, given)) in all() {
        if let Origin::Structure { position, bytes, .. } = origin
            && let ArgumentSpec::Input {
                element,
                length,
                fill,
            } = given
        {
            let contents = match fill {
                Fill::Bytes(bytes) => Arc::clone(bytes),
                Fill::Pattern(pattern) => pattern.bytes(*element, 0, *length).into(),
                Fill::Uninitialized => Arc::from([]),
            };
            let places = passed.iter_mut().skip(*position as usize).take(*bytes as usize);
            places
                .zip(contents.iter())
                .for_each(|(place, byte)| *place = Passed::Byte(*byte));
        }
    }
    // The arguments of each parameter, from the last one on, so that the offsets of those before stay.
    let mut params: Vec<(usize, usize, usize)> = all()
        .filter_map(|(param, (origin, given))| {
            let Origin::Parameter { position, .. } = origin else {
                return None;
            };
            let bytes = match given {
                ArgumentSpec::Scalar(ty, _) => ty.bytes() as usize,
                _ => 8,
            };
            Some((*position as usize, bytes, param))
        })
        .collect();
    params.sort_unstable_by_key(|own| std::cmp::Reverse(own.0));
    for (start, bytes, param) in params {
        let end = (start + bytes).min(passed.len());
        if start < end {
            passed.splice(start..end, [Passed::Param(param)]);
        }
    }
    let is_held = |param: usize, origin: &Origin| {
        matches!(origin, Origin::Variable { .. } | Origin::Workspace) && workload.pointer(param).is_none()
    };
    let held = all().filter(|(param, (origin, _))| is_held(*param, origin));
    passed.extend(held.map(|(param, _)| Passed::Held(param)));
    passed
}

/// A launch's argument for a parameter.
fn argument<'w>(given: &'w ArgumentSpec, param: Option<&Param>, is_passed: bool) -> Argument<'w> {
    let facts = param.and_then(|param| param.facts);
    let align = facts.map_or(BUFFER_ALIGNMENT, |facts| {
        facts.align.max(BUFFER_ALIGNMENT).next_power_of_two()
    });
    let (element, length, fill, output) = match given {
        ArgumentSpec::Scalar(ty, bits) => return Argument::Scalar(*ty, *bits),
        ArgumentSpec::Part { of, .. } => return Argument::Part { of: *of, bytes: 0 },
        ArgumentSpec::Input {
            element,
            length,
            fill,
        } => (element, length, fill, false),
        ArgumentSpec::Output {
            element,
            length,
            fill,
            ..
        } => (element, length, fill, true),
    };
    Argument::Buffer {
        element: *element,
        length: *length,
        fill,
        output,
        align,
        is_passed,
    }
}
