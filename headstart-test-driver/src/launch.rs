//! A launch of an entry on the simulator.

use std::ffi::c_void;

use headstart::Fault;
use headstart::device::{Argument, Command, Fill, Launch};
use headstart::front::ptx::{Origin, WORKSPACE_BYTES};
use headstart::ir::Type;
use headstart::ir::line::PrintLimits;

use crate::abi::{self, CUresult, ILLEGAL_ADDRESS, INVALID_VALUE, LAUNCH_FAILED, NOT_SUPPORTED, SUCCESS};
use crate::memory::zeros;
use crate::modules::Function;
use crate::state::{say, state};

/// The bytes of all parameters.
///
/// # Safety
/// `parameters` has a pointer to each, or `extra` is as the driver's documentation says.
pub unsafe fn parameters(
    function: &Function,
    parameters: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> Vec<u8> {
    let length = function
        .layout
        .iter()
        .map(|(offset, size)| offset + size)
        .max()
        .unwrap_or(0) as usize;
    let mut bytes = vec![0; length];
    // SAFETY: the caller's.
    unsafe {
        if !parameters.is_null() {
            for (index, &(offset, size)) in function.layout.iter().enumerate() {
                let from = std::slice::from_raw_parts((*parameters.add(index)).cast::<u8>(), size as usize);
                bytes[offset as usize..][..size as usize].copy_from_slice(from);
            }
        } else if let Some(given) = abi::packed(parameters, extra) {
            let size = given.len().min(length);
            bytes[..size].copy_from_slice(&given[..size]);
        }
    }
    bytes
}

/// Runs an entry.
pub fn launch(
    function: &'static Function,
    grid: [u32; 3],
    block: [u32; 3],
    shared_bytes: u32,
    bytes: &[u8],
) -> CUresult {
    if grid.contains(&0) || block.contains(&0) {
        return INVALID_VALUE;
    }
    let loaded = match function.loaded(shared_bytes) {
        Ok(loaded) => loaded,
        Err(error) => return error,
    };
    let kernel = &loaded.imported.kernel;
    let mut state = state();
    if let Some(failed) = state.failed {
        return failed;
    }
    let mut arguments = Vec::with_capacity(kernel.params.len());
    // Memory that this launch alone has.
    let mut structures = Vec::new();
    for (param, origin) in kernel.params.iter().zip(&loaded.imported.original.parameters) {
        let ty = kernel.ty(param.value);
        let bits = match origin {
            Origin::Parameter { position, .. } => {
                let own = bytes
                    .get(*position as usize..)
                    .and_then(|rest| rest.get(..ty.bytes() as usize));
                let Some(own) = own else { return INVALID_VALUE };
                own.iter()
                    .rev()
                    .fold(0, |bits: u64, &byte| bits << 8 | u64::from(byte))
            }
            // Of this launch alone, as for a structure.
            Origin::Workspace => match state.allocate_filled(WORKSPACE_BYTES, zeros()) {
                Ok(address) => {
                    structures.push(address);
                    address
                }
                Err(error) => return error,
            },
            Origin::Structure {
                position,
                bytes: length,
                ..
            } => {
                let own = bytes
                    .get(*position as usize..)
                    .and_then(|rest| rest.get(..*length as usize));
                let Some(own) = own else { return INVALID_VALUE };
                match state.allocate_filled(*length, Fill::Bytes(own.into())) {
                    Ok(address) => {
                        structures.push(address);
                        address
                    }
                    Err(error) => return error,
                }
            }
            Origin::Variable {
                name,
                bytes,
                declared,
                ..
            } => {
                match function
                    .module
                    .declare(&mut state, name, bytes.as_ref(), *declared)
                {
                    Ok((address, _)) => address,
                    Err(error) => return error,
                }
            }
        };
        arguments.push(match param.facts {
            Some(facts) => {
                let size = u64::from(facts.element.bytes()).max(1);
                match state.find(bits) {
                    Some((_, buffer, offset)) if offset.is_multiple_of(size) => {
                        Argument::Part(buffer.seen_as(facts.element), offset / size)
                    }
                    _ => Argument::Address(bits),
                }
            }
            None if ty == Type::Bool => return NOT_SUPPORTED,
            None => Argument::Scalar(ty, bits),
        });
    }
    let launch = Launch {
        groups: grid,
        group: block,
        arguments,
        sub_group_size: None,
        operation_limit: None,
        first_groups: None,
        memory: state.all_memory(),
        print_limits: PrintLimits::default(),
    };
    let ran = state.run(Command::Launch(loaded.program.clone(), launch));
    for address in structures {
        state.free(address);
    }
    match ran {
        Ok(outcome) => {
            print!("{}", outcome.printed);
            SUCCESS
        }
        Err(error) => {
            let is_access = error.fault() == Fault::Input;
            let failed = if is_access { ILLEGAL_ADDRESS } else { LAUNCH_FAILED };
            say(format!("`{}`: {error}", kernel.name));
            state.failed = Some(failed);
            failed
        }
    }
}
