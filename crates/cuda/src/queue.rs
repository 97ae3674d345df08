//! Commands on a GPU: each queue has a lane of its own, so that kernels and copies of several queues run beside each
//! other.

use std::sync::Arc;
use std::time::Duration;

use super::clock::GpuClock;
use super::device::{CudaProgram, geometry};
use super::gpu::Gpu;
use super::launch::{Arguments, Lane};
use super::memory;
use crate::{Error, Result};
use headstart_device::{
    Argument, Buffer, Command, Description, HostSide, Outcome, Submitted, Times, check_copy, host_bytes,
};

/// A GPU's memory behind a [`Buffer`].
pub(super) struct Memory(pub memory::Buffer);

impl HostSide for Memory {
    fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<()> {
        Ok(self.0.read_on_host(offset as usize, bytes)?)
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        Ok(self.0.write_on_host(offset as usize, bytes)?)
    }
}

/// The inputs of a queue's thread.
pub(super) struct Serving {
    pub gpu: Gpu,
    pub lane: Lane,
    pub limit: Duration,
    pub description: Description,
    pub clock: Arc<GpuClock>,
}

impl Serving {
    /// Runs one command and waits for its end.
    pub(crate) fn run(&self, submitted: Submitted) -> Result<Outcome> {
        self.clock.refresh(self.limit)?;
        let submitted_ns = self.clock.host_ns(submitted.at);
        let mut outcome = Outcome::default();
        let (mut start, mut end) = (self.gpu.event()?, self.gpu.event()?);
        start.record_on(&self.lane)?;
        match submitted.command {
            Command::Launch(program, launch) => {
                launch.check(program.kernel(), &self.description)?;
                launch.check_whole()?;
                let compiled = program.implementation::<CudaProgram>()?;
                // They must stay until the kernel has ended.
                let mut memories = Vec::new();
                let mut arguments = Arguments::new();
                for argument in &launch.arguments {
                    match argument {
                        Argument::Buffer(buffer) | Argument::Part(buffer, _) => {
                            let memory = self.memory(buffer)?;
                            let start = argument.buffer().map_or(0, |(_, start)| start);
                            let start = start * u64::from(buffer.element().bytes());
                            arguments.push_address(memory.0.address() + start);
                            memories.push(memory);
                        }
                        Argument::Address(address) => arguments.push_address(*address),
                        Argument::Scalar(ty, bits) => {
                            arguments.push(&bits.to_le_bytes()[..ty.bytes() as usize]);
                        }
                    }
                }
                start.record_on(&self.lane)?;
                let function = &compiled.function;
                function.launch_on(&self.lane, geometry(&launch, &compiled.ptx), &arguments)?;
                end.record_on(&self.lane)?;
                end.wait(self.limit)?;
                self.lane.hand_over_prints()?;
                outcome.prefetches = compiled.ptx.hints.clone();
            }
            Command::Write {
                buffer,
                offset,
                bytes,
            } => {
                buffer.check_range(offset, bytes.len() as u64)?;
                self.memory(&buffer)?
                    .0
                    .write_on(&self.lane, offset as usize, &bytes)?;
                end.record_on(&self.lane)?;
            }
            Command::Read {
                buffer,
                offset,
                length,
            } => {
                buffer.check_range(offset, length)?;
                outcome.bytes = host_bytes(length)?;
                self.memory(&buffer)?
                    .0
                    .read_on(&self.lane, offset as usize, &mut outcome.bytes)?;
                end.record_on(&self.lane)?;
            }
            Command::Copy {
                from,
                from_offset,
                to,
                to_offset,
                length,
            } => {
                check_copy(&from, from_offset, &to, to_offset, length)?;
                let (source, target) = (self.memory(&from)?, self.memory(&to)?);
                target.0.copy_on(
                    &self.lane,
                    to_offset as usize,
                    (&source.0, from_offset as usize),
                    length as usize,
                    &mut end,
                    self.limit,
                )?;
            }
        }
        end.wait(self.limit)?;
        let (started_ns, ended_ns) = (self.clock.reached_ns(&start)?, self.clock.reached_ns(&end)?);
        outcome.times = Times {
            // The two clocks are read one after the other: nothing starts before it was submitted.
            submitted_ns: submitted_ns.min(started_ns),
            started_ns,
            ended_ns: ended_ns.max(started_ns),
        };
        Ok(outcome)
    }

    /// The memory of a buffer of this GPU.
    fn memory(&self, buffer: &Buffer) -> Result<Arc<Memory>> {
        let memory = buffer.implementation::<Memory>()?;
        if !memory.0.gpu().shares_memory_with(&self.gpu) {
            let (own, here) = (memory.0.gpu().facts().ordinal, self.gpu.facts().ordinal);
            let what = match own == here {
                true => format!("a buffer of cuda:{own} was passed to cuda:{here} in another context"),
                false => format!("a buffer of cuda:{own} was passed to cuda:{here}"),
            };
            return Err(Error::usage(what).accepted("a buffer of the same GPU, opened once"));
        }
        Ok(memory)
    }
}
