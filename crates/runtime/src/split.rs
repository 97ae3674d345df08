//! One job on several devices: a range of work-items in parts, each on a device of its own.
//!
//! ```
//! use headstart::device::sim::Simulator;
//! use headstart::device::{Device, TypedBuffer};
//! use headstart::runtime::split::Split;
//! use headstart::prelude::*;
//!
//! #[kernel]
//! fn squares(result: &mut [u32]) {
//!     result[global_id()] = (global_id() * global_id()) as u32;
//! }
//!
//! let devices = [Simulator::untimed(), Simulator::untimed()];
//! let mut results = [TypedBuffer::uninitialized(&devices[0], 1000)?, TypedBuffer::uninitialized(&devices[1], 1000)?];
//! let mut split = Split::new();
//! for (device, speed) in devices.iter().zip([3.0, 1.0]) {
//!     split.add(squares::over_range(device)?, device.queue()?, speed);
//! }
//! let arguments = results.each_mut().map(squares::arguments);
//! let parts = split.launch([1000], arguments)?;
//! assert_eq!(parts[0].range, 0..750);
//! // Each device has its part of the result; here it is put together.
//! let mut whole = Vec::new();
//! for (part, (device, result)) in parts.iter().zip(devices.iter().zip(&results)) {
//!     part.event.wait()?;
//!     let (first, count) = (u64::from(part.range.start), part.range.len() as u64);
//!     whole.extend(result.read_part(&*device.queue()?, first, count, &[])?);
//! }
//! assert_eq!(whole[999], 998_001);
//! # Ok::<(), headstart::Error>(())
//! ```
//! Devices that reach each other's memory ([`Device::sub_devices`](crate::device::Device::sub_devices)) are all given the
//! same buffers, and then nothing is to be put together.

use std::ops::Range;

use super::launch::Arguments;
use super::over_range::OverRange;
use crate::device::{Event, Queue};
use crate::{Error, Result};

/// A kernel with the signature `S` on several devices.
pub struct Split<S> {
    members: Vec<Member<S>>,
}

struct Member<S> {
    kernel: OverRange<S>,
    queue: Box<dyn Queue>,
    speed: f64,
}

/// A device's part of a job.
#[derive(Clone, Debug)]
pub struct Part {
    /// The positions along the last dimension that it runs; empty if it is too slow for any.
    pub range: Range<u32>,
    /// Its end.
    pub event: Event,
}

impl<S> Default for Split<S> {
    fn default() -> Self {
        Split { members: Vec::new() }
    }
}

impl<S> Split<S> {
    /// On no device yet.
    pub fn new() -> Split<S> {
        Split::default()
    }

    /// Adds a device: the kernel as it was made ready there, a queue of the device, and how fast it is, on any scale
    /// that is the same for all.
    pub fn add(&mut self, kernel: OverRange<S>, queue: Box<dyn Queue>, speed: f64) {
        self.members.push(Member { kernel, queue, speed });
    }

    /// Runs the kernel for each work-item of a range of one to three dimensions, divided along the last in proportion
    /// to the devices' speeds. `arguments` has one set for each device, in the order in which they were added. The
    /// parts' events may fail separately.
    ///
    /// # Errors
    /// There are no devices, or as many sets of arguments; a speed is no positive number.
    pub fn launch<const D: usize>(
        &self,
        range: [u32; D],
        arguments: impl IntoIterator<Item = Arguments<S>>,
    ) -> Result<Vec<Part>> {
        let arguments: Vec<Arguments<S>> = arguments.into_iter().collect();
        if arguments.len() != self.members.len() {
            return Err(Error::usage(format!(
                "a job on {} devices was given {} sets of arguments",
                self.members.len(),
                arguments.len()
            ))
            .accepted("one for each device"));
        }
        let speeds: Vec<f64> = self.members.iter().map(|member| member.speed).collect();
        let parts = parts(range.last().copied().unwrap_or(1), &speeds)?;
        let launched = self.members.iter().zip(parts).zip(arguments);
        Ok(launched
            .map(|((member, part), arguments)| {
                let event = match part.is_empty() {
                    true => nothing(),
                    false => member
                        .kernel
                        .launch_part(&*member.queue, range, part.clone(), arguments),
                };
                Part { range: part, event }
            })
            .collect())
    }
}

/// An event that has ended well.
fn nothing() -> Event {
    let (event, completion) = Event::pending();
    completion.end(Ok(crate::device::Outcome::default()));
    event
}

/// `length` positions divided in proportion to speeds: contiguous, and each within one of its share.
fn parts(length: u32, speeds: &[f64]) -> Result<Vec<Range<u32>>> {
    let all: f64 = speeds.iter().sum();
    if speeds.is_empty() {
        return Err(Error::usage("a job was given no device"));
    }
    if let Some(speed) = speeds.iter().find(|speed| !(**speed > 0.0 && speed.is_finite())) {
        return Err(Error::usage(format!("a device's speed is {speed}")).accepted("positive numbers"));
    }
    let mut before = 0.0;
    let mut start = 0;
    let part = |(index, speed): (usize, &f64)| {
        before += speed;
        let end = match index + 1 == speeds.len() {
            true => length,
            false => (f64::from(length) * (before / all)).round() as u32,
        };
        let part = start..end.clamp(start, length);
        start = part.end;
        part
    };
    Ok(speeds.iter().enumerate().map(part).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_in_proportion_and_leave_nothing_out() {
        assert_eq!(parts(1000, &[3.0, 1.0]).expect("right"), [0..750, 750..1000]);
        assert_eq!(parts(10, &[1.0, 1.0, 1.0]).expect("right"), [0..3, 3..7, 7..10]);
        assert_eq!(parts(3, &[1e9, 1.0]).expect("right"), [0..3, 3..3]);
        assert_eq!(parts(u32::MAX, &[1.0, 1e-30]).expect("right")[1].end, u32::MAX);
        for wrong in [&[][..], &[0.0], &[1.0, f64::NAN], &[f64::INFINITY]] {
            assert!(parts(10, wrong).is_err(), "{wrong:?}");
        }
    }
}
