//! A GPU's clock: when its events were reached, on one scale for all queues.
//!
//! The driver gives only the time between two events, as milliseconds in an `f32`. So a reference event is kept, and replaced
//! before the distance to it costs precision: after [`LONGEST`] the resolution is still half a microsecond, which is that of
//! the events.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use cudarc::driver::result;

use super::failure::Failure;
use super::gpu::Gpu;
use super::launch::Event;

/// How old a reference may be.
const LONGEST: Duration = Duration::from_secs(4);

/// The time since a GPU's device was opened.
pub(super) struct GpuClock {
    gpu: Gpu,
    reference: Mutex<Reference>,
}

struct Reference {
    event: Event,
    /// When it was reached.
    ns: f64,
    /// The same by the host's clock.
    at: Instant,
}

impl GpuClock {
    /// A clock that starts now.
    pub(crate) fn start(gpu: &Gpu, limit: Duration) -> Result<GpuClock, Failure> {
        let event = marked(gpu, limit)?;
        Ok(GpuClock {
            gpu: gpu.clone(),
            reference: Mutex::new(Reference {
                event,
                ns: 0.0,
                at: Instant::now(),
            }),
        })
    }

    /// When an event was reached, in nanoseconds. It must have been.
    pub(crate) fn reached_ns(&self, event: &Event) -> Result<f64, Failure> {
        let reference = self.reference.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(reference.ns + between_ns(&self.gpu, &reference.event, event)?)
    }

    /// A moment of the host on this clock, in nanoseconds: to within the time that the GPU takes to answer.
    pub(crate) fn host_ns(&self, at: Instant) -> f64 {
        let reference = self.reference.lock().unwrap_or_else(PoisonError::into_inner);
        let since = at.saturating_duration_since(reference.at).as_secs_f64();
        let before = reference.at.saturating_duration_since(at).as_secs_f64();
        reference.ns + (since - before) * 1e9
    }

    /// Takes a newer reference, if this one is old. Events that were reached before it keep their times.
    pub(crate) fn refresh(&self, limit: Duration) -> Result<(), Failure> {
        let mut reference = self.reference.lock().unwrap_or_else(PoisonError::into_inner);
        if reference.at.elapsed() > LONGEST {
            let event = marked(&self.gpu, limit)?;
            let ns = reference.ns + between_ns(&self.gpu, &reference.event, &event)?;
            *reference = Reference {
                event,
                ns,
                at: Instant::now(),
            };
        }
        Ok(())
    }
}

/// An event that has just been reached.
fn marked(gpu: &Gpu, limit: Duration) -> Result<Event, Failure> {
    let mut event = gpu.event()?;
    event.record()?;
    event.wait(limit)?;
    Ok(event)
}

/// From one event to another, which may be the earlier.
fn between_ns(gpu: &Gpu, from: &Event, to: &Event) -> Result<f64, Failure> {
    gpu.enter()?;
    // SAFETY: both events exist; the driver reports those that were not recorded or reached.
    let milliseconds = unsafe { result::event::elapsed(from.event, to.event) }
        .map_err(|error| Failure::of(error, "reading the GPU's clock"))?;
    Ok(f64::from(milliseconds) * 1e6)
}
