//! What a kernel computes on the functional engine, and what its module computes on a GPU.

use std::sync::Arc;

use crate::back::ptx::Ptx;
use crate::device::cuda::device::CudaDevice;
use crate::device::sim::functional::{BufferMemory, CompiledKernel, Groups, Options};
use crate::device::{Argument, Buffer, Command, Device, Launch};
use crate::error::Result;
use crate::ir::line::PrintLimits;
use crate::ir::{Kernel, Space, Type};
use crate::tune::{ArgumentSpec, Workload};

/// Operations of a sub-group after which a kernel counts as endless; random kernels and their shrunk ones run less.
const OPERATIONS: u64 = 1 << 22;
/// The sub-group size of kernels that require none.
const SUB_GROUP: u32 = 32;

/// A launch with fresh buffers, and their memory in the order of the parameters.
///
/// # Errors
/// A buffer is too large.
pub fn bind(workload: &Workload) -> Result<(Launch, Vec<Arc<BufferMemory>>)> {
    let mut arguments = Vec::new();
    let mut memories = Vec::new();
    for given in &workload.given {
        let (element, length, fill) = match given {
            ArgumentSpec::Scalar(ty, bits) => {
                arguments.push(Argument::Scalar(*ty, *bits));
                continue;
            }
            // Known when all buffers are.
            ArgumentSpec::Part { .. } => {
                arguments.push(Argument::Scalar(Type::Ptr(Space::Global), 0));
                continue;
            }
            ArgumentSpec::Input {
                element,
                length,
                fill,
            } => (*element, *length, fill),
            ArgumentSpec::Output {
                element,
                length,
                fill,
                ..
            } => (*element, *length, fill),
        };
        let memory = Arc::new(BufferMemory::new(element, length, fill.clone())?);
        memories.push(Arc::clone(&memory));
        arguments.push(Argument::Buffer(Buffer::new(element, length, memory)));
    }
    for (number, given) in workload.given.iter().enumerate() {
        if let &ArgumentSpec::Part { of, start } = given
            && let Some((buffer, _)) = arguments.get(of).and_then(Argument::buffer)
        {
            arguments[number] = Argument::Part(buffer.clone(), start);
        }
    }
    let launch = Launch {
        groups: workload.groups,
        group: workload.group,
        arguments,
        sub_group_size: None,
        operation_limit: Some(OPERATIONS),
        first_groups: None,
        memory: Vec::new(),
        print_limits: PrintLimits::default(),
    };
    Ok((launch, memories))
}

/// Runs a kernel, the workload's own or one derived from it, and gives the bytes of every output, with
/// the parameter's name.
///
/// # Errors
/// Those of the functional engine.
pub fn run(workload: &Workload, kernel: &Kernel, options: Options) -> Result<Vec<(String, Vec<u8>)>> {
    let (launch, memories) = bind(workload)?;
    let sub_group_size = kernel.sub_group_size.unwrap_or(SUB_GROUP);
    CompiledKernel::new(Arc::new(kernel.clone())).run(&launch, sub_group_size, options, &Groups::All)?;
    let buffers = workload
        .given
        .iter()
        .zip(&kernel.params)
        .filter(|(given, _)| !matches!(given, ArgumentSpec::Scalar(..) | ArgumentSpec::Part { .. }));
    buffers
        .zip(memories)
        .filter(|((given, _), _)| matches!(given, ArgumentSpec::Output { .. }))
        .map(|((_, param), memory)| {
            let mut bytes = vec![0; memory.bytes() as usize];
            memory.copy_out(0, &mut bytes)?;
            Ok((param.name.clone(), bytes))
        })
        .collect()
}

/// The outputs of the module that a workload's kernel was read from, as it was read, on a GPU.
///
/// # Errors
/// The driver does not take it, or running it went wrong.
pub fn run_text(gpu: &CudaDevice, workload: &Workload, text: &str, entry: &str) -> Result<Vec<Vec<u8>>> {
    let ptx = Ptx {
        text: text.to_owned(),
        entry: entry.to_owned(),
        dynamic_shared_bytes: 0,
        static_shared_bytes: 0,
        hints: Vec::new(),
    };
    let program = gpu.of_text(&workload.kernel, ptx)?;
    let prepared = workload.bind(gpu)?.prepare(gpu)?;
    let queue = gpu.queue()?;
    queue
        .submit(Command::Launch(program, prepared.launch), &[])
        .wait()?;
    let outputs = prepared.outputs.iter();
    outputs.map(|output| output.read(queue.as_ref())).collect()
}
