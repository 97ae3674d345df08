//! The best form of a kernel for a launch with real arguments, for `NAME::tuned` of a `#[kernel]`.
//!
//! ```no_run
//! use headstart::device::{TypedBuffer, sim::Simulator, Device};
//! use headstart::prelude::*;
//!
//! #[kernel(work_group = 32)]
//! fn gather(indices: &[u32], values: &[f32], sums: &mut [f32], items: u32) {
//!     let mut sum = 0.0;
//!     for j in 0..items as usize {
//!         sum += values[indices[j * global_size() + global_id()] as usize];
//!     }
//!     sums[global_id()] = sum;
//! }
//!
//! let device = Simulator::new("h200")?;
//! let indices: Vec<u32> = (0..64 * 32).map(|i| i * 7919 % 4096).collect();
//! let indices = TypedBuffer::from_slice(&device, &indices)?;
//! let values = TypedBuffer::from_slice(&device, &[1.0; 4096])?;
//! let mut sums = TypedBuffer::uninitialized(&device, 64)?;
//!
//! let geometry = Geometry::new(2, 32);
//! let best = gather::tuned(&device, geometry, gather::arguments(&indices, &values, &mut sums, 32))?;
//! println!("{}: {}", best.found.verdict, best.found.plan);
//!
//! let queue = device.queue()?;
//! let arguments = gather::arguments(&indices, &values, &mut sums, 32);
//! best.compiled.launch(&*queue, geometry, arguments).wait()?;
//! assert_eq!(sums.read(&*queue)?, [32.0; 64]);
//! # Ok::<(), headstart::Error>(())
//! ```
//!
//! The arguments are those of the current launch: their contents are read, the kernel is tuned on copies, and the answer is
//! [remembered](super::tuned) for launches whose arguments have the same sizes up to the next power of two.

use std::fmt;
use std::io::{IsTerminal, Write};
use std::sync::{Arc, Mutex, PoisonError};

use super::bench::Bench;
use super::tuned::{Answers, Tuned, tuned_telling};
use super::{ArgumentSpec, Workload};
use crate::device::{Argument, Command, Device, Fill, Queue};
use crate::error::{Error, Fault, Result};
use crate::ir::{Kernel, Param};
use crate::report::{Trial, number};
use crate::runtime::kept;
use crate::runtime::launch::{Arguments, Compiled, Geometry};
use crate::tune::bench::kinds::bench_for;
use crate::tune::progress::Progress;

/// The best form of a kernel with the signature `S`, ready to launch.
#[derive(Debug)]
pub struct Best<S> {
    /// The kernel with its plan carried out, or the plain one where none wins.
    pub compiled: Compiled<S>,
    /// The plan, the verdict, and where they are from.
    pub found: Tuned,
}

/// The best form of a kernel for a launch: remembered, or searched for now and remembered for the next time. In a program that
/// `headstart tune --bin` runs it is the plain kernel.
///
/// The commands in the device's queues must have ended: the arguments are read as they are.
///
/// # Errors
/// The device has no times to compare plans by; an input was not written; the plain kernel goes wrong.
pub fn tuned_launch<S>(
    device: &dyn Device,
    kernel: Kernel,
    geometry: Geometry,
    arguments: &Arguments<S>,
) -> Result<Best<S>> {
    let bench = bench_for(device)?;
    tuned_launch_with(
        device,
        bench.as_ref(),
        kernel,
        geometry,
        arguments,
        &Answers::of_user(),
        &OnTerminal::default(),
    )
}

/// How a search goes, in a line on standard error that is written over; nothing where that is no terminal.
#[derive(Debug, Default)]
struct OnTerminal {
    counts: Mutex<Counts>,
}

/// The plans of a search, those that were done, and the fastest.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    plans: usize,
    done: usize,
    fastest: f64,
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let best = number::speedup(self.fastest.max(1.0));
        write!(
            f,
            "headstart: {} of {} plans, the fastest {best}",
            self.done, self.plans
        )
    }
}

impl OnTerminal {
    fn told(&self, change: impl FnOnce(&mut Counts)) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut counts);
        if std::io::stderr().is_terminal() {
            let end = if counts.done < counts.plans { "" } else { "\n" };
            // A terminal that has gone away is no error of the search.
            let _ = write!(std::io::stderr(), "\r{counts}{end}");
        }
    }
}

impl Progress for OnTerminal {
    fn begin(&self, plans: usize) {
        self.told(|counts| counts.plans = plans);
    }

    fn done(&self, trial: &Trial) {
        self.told(|counts| {
            counts.done += 1;
            counts.fastest = trial
                .measured()
                .map_or(counts.fastest, |(_, factor)| counts.fastest.max(factor));
        });
    }
}

/// The same with a bench, answers from elsewhere, and a listener for the search's progress.
///
/// # Errors
/// As for [`tuned_launch`].
pub fn tuned_launch_with<S>(
    device: &dyn Device,
    bench: &dyn Bench,
    kernel: Kernel,
    geometry: Geometry,
    arguments: &Arguments<S>,
    answers: &Answers,
    progress: &dyn Progress,
) -> Result<Best<S>> {
    if kept::is_on() {
        let found = Tuned::not_searched(kernel);
        let compiled = Compiled::of(device.compile(&found.kernel)?);
        return Ok(Best { compiled, found });
    }
    let queue = device.queue()?;
    let workload = workload(kernel, geometry, arguments.list(), queue.as_ref())?;
    let found = tuned_telling(&workload, bench, answers, progress)?;
    Ok(Best {
        compiled: Compiled::of(device.compile(&found.kernel)?),
        found,
    })
}

/// A launch as a workload: its buffers with their contents.
fn workload(
    kernel: Kernel,
    geometry: Geometry,
    arguments: &[Argument],
    queue: &dyn Queue,
) -> Result<Workload> {
    let mut kernel = match kernel.has_default_level() {
        true => kernel.with_default_level(geometry.default_level),
        false => kernel,
    };
    if let (None, Some(size)) = (kernel.sub_group_size, geometry.sub_group_size) {
        kernel.sub_group_size = Some(size);
    }
    if kernel.params.len() != arguments.len() {
        return Err(Error::bug(format!(
            "kernel `{}` has {} parameters and {} arguments",
            kernel.shown(),
            kernel.params.len(),
            arguments.len()
        )));
    }
    let pairs = kernel.params.iter().zip(arguments).enumerate();
    let given = pairs.map(|(position, (param, argument))| given(position, param, argument, arguments, queue));
    Ok(Workload {
        given: given.collect::<Result<_>>()?,
        kernel: Arc::new(kernel),
        groups: geometry.groups,
        group: geometry.group,
        original: None,
        placed: None,
        divides: None,
    })
}

fn given(
    position: usize,
    param: &Param,
    argument: &Argument,
    all: &[Argument],
    queue: &dyn Queue,
) -> Result<ArgumentSpec> {
    let (buffer, start) = match (argument, argument.buffer()) {
        (_, Some(found)) => found,
        (Argument::Scalar(ty, bits), None) => return Ok(ArgumentSpec::Scalar(*ty, *bits)),
        (_, None) => {
            return Err(Error::usage(format!(
                "parameter `{}` gets an address outside of all buffers",
                param.name
            ))
            .accepted("buffers and values"));
        }
    };
    let earlier = all[..position].iter().position(|other| {
        other
            .buffer()
            .is_some_and(|(other, start)| start == 0 && other.is_same(buffer))
    });
    if let Some(of) = earlier {
        return Ok(ArgumentSpec::Part { of, start });
    }
    let Some(facts) = &param.facts else {
        return Err(Error::bug(format!(
            "parameter `{}` is a scalar and gets a buffer",
            param.name
        )));
    };
    if start > 0 {
        return Err(
            Error::usage(format!("parameter `{}` begins inside a buffer", param.name))
                .accepted("the whole buffer as an earlier argument, or one of its own"),
        );
    }
    let read = Command::Read {
        buffer: buffer.clone(),
        offset: 0,
        length: buffer.bytes(),
    };
    let fill = match queue.submit(read, &[]).wait() {
        Ok(outcome) => Fill::Bytes(outcome.bytes.as_slice().into()),
        // An output need not have been written before.
        Err(error) if !facts.read_only && error.fault() == Fault::Input => Fill::Uninitialized,
        Err(error) => return Err(error.about(format!("parameter `{}`", param.name))),
    };
    Ok(ArgumentSpec::buffer(facts, buffer.length(), fill))
}
