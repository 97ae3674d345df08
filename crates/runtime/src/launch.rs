//! Launches with arguments checked at compile time.
//!
//! ```
//! use headstart::device::sim::Simulator;
//! use headstart::device::{Device, TypedBuffer};
//! use headstart::prelude::*;
//!
//! #[kernel]
//! fn scale(values: &[f32], result: &mut [f32], by: f32) {
//!     result[global_id()] = by * values[global_id()];
//! }
//!
//! let device = Simulator::untimed();
//! let program = scale::compile(&device)?; // Compiled<fn(&[f32], &mut [f32], f32)>
//! let queue = device.queue()?;
//!
//! let values = TypedBuffer::from_slice(&device, &[1.0, 2.0, 3.0, 4.0])?;
//! let mut result = TypedBuffer::uninitialized(&device, 4)?;
//! let arguments = scale::arguments(&values, &mut result, 0.5); // Arguments<the same>
//! let event = program.launch(&*queue, Geometry::new(2, 2), arguments); // returns at once
//!
//! let outcome = event.wait()?;
//! println!("{} ns, {:?}", outcome.times.elapsed_ns(), outcome.counters);
//! assert_eq!(result.read(&*queue)?, [0.5, 1.0, 1.5, 2.0]);
//! # Ok::<(), headstart::Error>(())
//! ```
//! The type parameter is the kernel's signature, so arguments of one kernel do not fit another.

use std::marker::PhantomData;
use std::sync::Arc;

use super::kept;
use crate::device::{Argument, AsView, Command, Device, Event, Launch, Program, Queue, TypedBuffer};
use crate::front::lang::data::{self, Data};
use crate::ir::{CacheLevel, Item, Kernel, Type};
use crate::prefetch::{self, PlanTarget};
use crate::{Error, Result};

pub use crate::front::lang::geometry::Geometry;

/// A kernel with the signature `S`, ready to launch on one device.
#[derive(Debug)]
pub struct Compiled<S> {
    program: Program,
    /// The same for launches with another default level, if the kernel has prefetches without a level.
    others: Vec<(CacheLevel, Program)>,
    signature: PhantomData<S>,
}

/// Arguments for a kernel with the signature `S`.
#[derive(Clone, Debug)]
pub struct Arguments<S> {
    list: Vec<Argument>,
    signature: PhantomData<S>,
}

impl<S> Compiled<S> {
    /// Prepares a kernel of this signature for a device, and applies the author's requests for loops (`#[unroll]`,
    /// `#[prefetch("PLAN")]`).
    ///
    /// # Errors
    /// A request for a loop cannot be carried out, or the device cannot run the kernel, and why.
    pub fn new(device: &dyn Device, kernel: Kernel) -> Result<Compiled<S>> {
        let kernel = prefetch::carry_out_wishes(&kernel, &PlanTarget::default())?;
        let mut others = Vec::new();
        if kernel.has_default_level() {
            for &level in CacheLevel::ALL.iter().filter(|&&level| level != CacheLevel::L1) {
                let kernel = Arc::new(kernel.with_default_level(level));
                others.push((level, device.compile(&kernel)?));
            }
        }
        Ok(Compiled {
            program: device.compile(&Arc::new(kernel))?,
            others,
            signature: PhantomData,
        })
    }

    /// The program for launches with this default level.
    fn program_for(&self, level: CacheLevel) -> &Program {
        let other = self.others.iter().find(|(other, _)| *other == level);
        other.map_or(&self.program, |(_, program)| program)
    }

    /// A program that is known to have this signature: one of a [`Library`](crate::device::Library). A launch whose
    /// arguments do not fit after all fails.
    #[doc(hidden)]
    pub fn of(program: Program) -> Compiled<S> {
        Compiled {
            program,
            others: Vec::new(),
            signature: PhantomData,
        }
    }

    /// The program without its signature.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Adds a launch to a queue, and returns at once. The event has times and counters, or the error.
    pub fn launch(&self, queue: &dyn Queue, geometry: Geometry, arguments: Arguments<S>) -> Event {
        self.launch_after(queue, geometry, arguments, &[])
    }

    /// As [`Compiled::launch`], to start when the events `after` have ended.
    pub fn launch_after(
        &self,
        queue: &dyn Queue,
        geometry: Geometry,
        arguments: Arguments<S>,
        after: &[Event],
    ) -> Event {
        let launch = Launch {
            groups: geometry.groups,
            group: geometry.group,
            arguments: arguments.list,
            sub_group_size: geometry.sub_group_size,
            operation_limit: None,
            first_groups: None,
            memory: Vec::new(),
            print_limits: geometry.print_limits,
        };
        let program = self.program_for(geometry.default_level).clone();
        if let Err(error) = kept::keep(&program, &launch, queue, after) {
            return failed(error);
        }
        queue.submit(Command::Launch(program, launch), after)
    }
}

impl<S> Arguments<S> {
    /// The arguments without their signature, in the order of the kernel's parameters.
    #[doc(hidden)]
    pub fn list(&self) -> &[Argument] {
        &self.list
    }

    /// None yet; the macro adds one for each parameter.
    #[doc(hidden)]
    pub fn none() -> Arguments<S> {
        Arguments {
            list: Vec::new(),
            signature: PhantomData,
        }
    }

    /// For a `&[T]`: a pointer and a length, in the buffer's scalars.
    #[doc(hidden)]
    #[must_use]
    pub fn slice<T: Item>(mut self, buffer: &TypedBuffer<T>) -> Arguments<S> {
        let buffer = buffer.buffer();
        self.list.push(Argument::Buffer(buffer.clone()));
        self.list.push(Argument::Scalar(Type::I64, buffer.length()));
        self
    }

    /// For a `&mut [T]`. The buffer is borrowed mutably so that no other argument can be the same one.
    #[doc(hidden)]
    #[must_use]
    pub fn slice_mut<T: Item>(self, buffer: &mut TypedBuffer<T>) -> Arguments<S> {
        self.slice(buffer)
    }

    /// For a view: a slice, and its size along each dimension if there are several.
    #[doc(hidden)]
    #[must_use]
    pub fn view<T: Item, const D: usize>(self, view: &impl AsView<T, D>) -> Arguments<S> {
        let (buffer, size) = view.parts();
        let mut arguments = self.slice(buffer);
        if D > 1 {
            let sizes = size.map(|size| Argument::Scalar(Type::I64, size));
            arguments.list.extend(sizes);
        }
        arguments
    }

    /// For a value: each of its scalars.
    #[doc(hidden)]
    #[must_use]
    pub fn value<T: Data>(mut self, value: T) -> Arguments<S> {
        let scalars = data::scalars(&value).into_iter();
        self.list
            .extend(scalars.map(|(ty, bits)| Argument::Scalar(ty, bits)));
        self
    }

    /// The arguments as a launch takes them.
    pub(crate) fn into_list(self) -> Vec<Argument> {
        self.list
    }
}

/// The event of what was never submitted.
pub(super) fn failed(error: Error) -> Event {
    let (event, completion) = Event::pending();
    completion.end(Err(error));
    event
}
