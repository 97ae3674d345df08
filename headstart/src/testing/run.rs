//! What a kernel computes on the functional engine.

use std::sync::Arc;

use crate::device::sim::functional::{BufferMemory, CompiledKernel, Groups, Options};
use crate::device::{Argument, Buffer, Launch};
use crate::error::Result;
use crate::ir::Kernel;
use crate::tune::{Given, Workload};

/// Operations of a sub-group after which a kernel counts as endless; random kernels and their shrunk ones run less.
const OPERATIONS: u64 = 1 << 22;
/// The sub-group size of kernels that require none.
const SUB_GROUP: u32 = 32;

/// Runs a kernel, the workload's own or one derived from it, and gives the bytes of every output, with
/// the parameter's name.
///
/// # Errors
/// Those of the functional engine.
pub fn run(workload: &Workload, kernel: &Kernel, options: Options) -> Result<Vec<(String, Vec<u8>)>> {
    let mut arguments = Vec::new();
    let mut outputs = Vec::new();
    for (given, param) in workload.given.iter().zip(&kernel.params) {
        let (element, length, fill) = match given {
            Given::Scalar(ty, bits) => {
                arguments.push(Argument::Scalar(*ty, *bits));
                continue;
            }
            Given::Input {
                element,
                length,
                fill,
            } => (*element, *length, fill),
            Given::Output {
                element,
                length,
                fill,
                ..
            } => (*element, *length, fill),
        };
        let memory = Arc::new(BufferMemory::new(element, length, fill.clone())?);
        if matches!(given, Given::Output { .. }) {
            outputs.push((param.name.clone(), Arc::clone(&memory)));
        }
        arguments.push(Argument::Buffer(Buffer::new(element, length, memory)));
    }
    let launch = Launch {
        groups: workload.groups,
        group: workload.group,
        arguments,
        sub_group_size: None,
        operation_limit: Some(OPERATIONS),
    };
    let sub_group_size = kernel.sub_group_size.unwrap_or(SUB_GROUP);
    CompiledKernel::new(Arc::new(kernel.clone())).run(&launch, sub_group_size, options, &Groups::All)?;
    outputs
        .into_iter()
        .map(|(name, memory)| {
            let mut bytes = vec![0; memory.bytes() as usize];
            memory.copy_out(0, &mut bytes)?;
            Ok((name, bytes))
        })
        .collect()
}
