//! Launches, events, and waiting with a limit.

use std::time::{Duration, Instant};

use cudarc::driver::{result, sys};
use serde::{Deserialize, Serialize};

use super::failure::{Failure, FailureKind};
use super::gpu::Gpu;
use super::module::Function;

/// The most bytes that all arguments of a kernel may take (PTX ISA, "Kernel Function Parameters").
const MOST_ARGUMENT_BYTES: usize = 4352;

/// How a kernel is launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Geometry {
    /// Work-groups in each dimension.
    pub groups: [u32; 3],
    /// Work-items of a work-group in each dimension.
    pub group: [u32; 3],
    /// Dynamic shared memory of a work-group, in bytes.
    #[serde(default)]
    pub dynamic_shared_bytes: u32,
    /// All work-groups are resident at once, and may wait for each other.
    #[serde(default)]
    pub cooperative: bool,
}

/// A kernel's arguments, laid out as its parameters are: each at a multiple of its own size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arguments(Vec<u8>);

impl Arguments {
    /// No arguments yet.
    pub fn new() -> Arguments {
        Arguments::default()
    }

    /// Adds the next argument: the bytes of a scalar (1, 2, 4 or 8 of them), lowest first.
    pub fn push(&mut self, scalar: &[u8]) {
        let size = scalar.len().max(1);
        self.0.resize(self.0.len().next_multiple_of(size), 0);
        self.0.extend_from_slice(scalar);
    }

    /// Adds an address.
    pub fn push_address(&mut self, address: u64) {
        self.push(&address.to_le_bytes());
    }
}

impl Function {
    /// Puts a launch into the GPU's queue, without waiting for it.
    pub fn launch(&self, geometry: Geometry, arguments: &Arguments) -> Result<(), Failure> {
        self.launch_in(self.gpu().0.stream, geometry, arguments)
    }

    /// As [`Function::launch`], in a lane of the same GPU.
    pub(crate) fn launch_on(
        &self,
        lane: &Lane,
        geometry: Geometry,
        arguments: &Arguments,
    ) -> Result<(), Failure> {
        self.launch_in(lane.stream, geometry, arguments)
    }

    fn launch_in(
        &self,
        stream: sys::CUstream,
        geometry: Geometry,
        arguments: &Arguments,
    ) -> Result<(), Failure> {
        let request = |what: String| Failure::new(FailureKind::Request, what);
        if arguments.0.len() > MOST_ARGUMENT_BYTES {
            return Err(request(format!(
                "`{}` takes more than {MOST_ARGUMENT_BYTES} bytes",
                self.name()
            )));
        }
        let group = geometry
            .group
            .iter()
            .map(|&size| u64::from(size))
            .product::<u64>();
        if group == 0 || geometry.groups.contains(&0) {
            return Err(request(format!(
                "`{}` was launched with an empty geometry",
                self.name()
            )));
        }
        if group > u64::from(self.compiled().max_group) {
            return Err(Failure::new(
                FailureKind::Resources,
                format!(
                    "`{}` cannot run in work-groups of {group} work-items",
                    self.name()
                ),
            )
            .accepted(format!("at most {}", self.compiled().max_group)));
        }
        if geometry.dynamic_shared_bytes > 48 << 10 {
            self.allow_shared_bytes(geometry.dynamic_shared_bytes)?;
        }

        self.gpu().enter()?;
        // The driver copies `size` bytes from this buffer during the call. It has the maximal size of a parameter list, so that
        // the driver stays inside it whatever the kernel declares.
        let mut buffer = arguments.0.clone();
        buffer.resize(MOST_ARGUMENT_BYTES, 0);
        let mut size = arguments.0.len();
        const BUFFER_POINTER: *mut std::ffi::c_void = std::ptr::dangling_mut(); // CU_LAUNCH_PARAM_BUFFER_POINTER
        const BUFFER_SIZE: *mut std::ffi::c_void = 2 as *mut _; // CU_LAUNCH_PARAM_BUFFER_SIZE
        let mut extra = [
            BUFFER_POINTER,
            buffer.as_mut_ptr().cast(),
            BUFFER_SIZE,
            std::ptr::from_mut(&mut size).cast(),
            std::ptr::null_mut(),
        ];
        let [x, y, z] = geometry.groups;
        let [i, j, k] = geometry.group;
        let mut attributes = [sys::CUlaunchAttribute {
            id: sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
            pad: [0; 4],
            value: sys::CUlaunchAttributeValue { cooperative: 1 },
        }];
        let config = sys::CUlaunchConfig {
            gridDimX: x,
            gridDimY: y,
            gridDimZ: z,
            blockDimX: i,
            blockDimY: j,
            blockDimZ: k,
            sharedMemBytes: geometry.dynamic_shared_bytes,
            hStream: stream,
            attrs: attributes.as_mut_ptr(),
            numAttrs: u32::from(geometry.cooperative),
        };
        // SAFETY: the function is loaded and the context current; `extra` is a list of pairs that ends in null, and its targets
        // and the attributes live until the call returns.
        unsafe { sys::cuLaunchKernelEx(&config, self.handle(), std::ptr::null_mut(), extra.as_mut_ptr()) }
            .result()
            .map_err(|error| Failure::of(error, &format!("launching `{}`", self.name())))
    }
}

/// An independent order of commands on a GPU: commands in different lanes overlap.
pub(crate) struct Lane {
    gpu: Gpu,
    pub(super) stream: sys::CUstream,
}

// SAFETY: the driver's handle may be used from any thread once the context is current there, which every use sees to.
unsafe impl Send for Lane {}

impl Gpu {
    /// A new lane.
    pub(crate) fn lane(&self) -> Result<Lane, Failure> {
        self.enter()?;
        let stream = result::stream::create(result::stream::StreamKind::NonBlocking)
            .map_err(|error| Failure::of(error, "making a queue"))?;
        Ok(Lane {
            gpu: self.clone(),
            stream,
        })
    }
}

impl Lane {
    /// Makes the driver write the printed lines of this lane's kernels. The lane is done.
    pub(super) fn hand_over_prints(&self) -> Result<(), Failure> {
        self.gpu.enter()?;
        // SAFETY: the stream is the lane's own.
        unsafe { result::stream::synchronize(self.stream) }
            .map_err(|error| Failure::of(error, "waiting for the kernel's printed lines"))
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        if self.gpu.enter().is_ok() {
            // SAFETY: created once, destroyed once; the driver lets its commands finish.
            let _ = unsafe { result::stream::destroy(self.stream) };
        }
    }
}

/// A point in the GPU's queue, with the time at which the GPU reached it.
pub struct Event {
    gpu: Gpu,
    pub(super) event: sys::CUevent,
}

// SAFETY: as for `Lane`.
unsafe impl Send for Event {}

impl Gpu {
    /// A new event, not yet recorded.
    pub(crate) fn event(&self) -> Result<Event, Failure> {
        self.enter()?;
        let event = result::event::create(sys::CUevent_flags::CU_EVENT_DEFAULT)
            .map_err(|error| Failure::of(error, "making an event"))?;
        Ok(Event {
            gpu: self.clone(),
            event,
        })
    }

    /// Writes all of the kernels' printed lines to the standard output of this process. The queue is done.
    ///
    /// The driver empties its buffer when a stream is synchronized, and writes through C's buffered output, which
    /// keeps lines back where no terminal reads them.
    pub(crate) fn hand_over_prints(&self) -> Result<(), Failure> {
        unsafe extern "C" {
            fn fflush(stream: *mut std::ffi::c_void) -> std::ffi::c_int;
        }
        self.enter()?;
        // SAFETY: the stream lives as long as the context; C's library, which Rust's own links, writes out all of its
        // streams when it is given none.
        unsafe {
            result::stream::synchronize(self.0.stream)
                .map_err(|error| Failure::of(error, "waiting for the kernel's printed lines"))?;
            fflush(std::ptr::null_mut());
        }
        Ok(())
    }

    /// Waits until everything in the queue is done, at most this long.
    ///
    /// After [`FailureKind::TimeLimit`] the GPU still runs the kernel, and only the end of the
    /// process stops it.
    pub fn wait(&self, limit: Duration) -> Result<(), Failure> {
        let mut event = self.event()?;
        event.record()?;
        event.wait(limit)
    }
}

impl Event {
    /// Puts the event at the end of the queue.
    pub(crate) fn record(&mut self) -> Result<(), Failure> {
        self.gpu.enter()?;
        // SAFETY: event and stream belong to the context that is current.
        unsafe { result::event::record(self.event, self.gpu.0.stream) }
            .map_err(|error| Failure::of(error, "recording an event"))
    }

    /// Puts the event at the end of a lane.
    pub(crate) fn record_on(&mut self, lane: &Lane) -> Result<(), Failure> {
        self.gpu.enter()?;
        // SAFETY: event and stream belong to the context that is current.
        unsafe { result::event::record(self.event, lane.stream) }
            .map_err(|error| Failure::of(error, "recording an event"))
    }

    /// Waits until the GPU reaches the event, at most this long.
    pub(crate) fn wait(&self, limit: Duration) -> Result<(), Failure> {
        self.gpu.enter()?;
        let start = Instant::now();
        loop {
            // SAFETY: the event exists.
            match unsafe { result::event::query(self.event) } {
                Ok(()) => return Ok(()),
                Err(error) if error.0 == sys::CUresult::CUDA_ERROR_NOT_READY => {}
                Err(error) => return Err(Failure::of(error, "running the kernel")),
            }
            let waited = start.elapsed();
            if waited > limit {
                return Err(Failure::new(
                    FailureKind::TimeLimit,
                    format!("the kernel still ran after {:.1} s", limit.as_secs_f64()),
                ));
            }
            // Short launches are awaited without giving up the processor, long ones politely.
            if waited > Duration::from_millis(20) {
                std::thread::sleep(Duration::from_micros(200));
            } else {
                std::hint::spin_loop();
            }
        }
    }

    /// The GPU's time from `earlier` to this event. Both must have been reached.
    pub(crate) fn since(&self, earlier: &Event) -> Result<Duration, Failure> {
        self.gpu.enter()?;
        // SAFETY: both events exist; the driver reports those that were not recorded or reached.
        let milliseconds = unsafe { result::event::elapsed(earlier.event, self.event) }
            .map_err(|error| Failure::of(error, "reading the GPU's clock"))?;
        Ok(Duration::from_secs_f64(f64::from(milliseconds.max(0.0)) * 1e-3))
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if self.gpu.enter().is_ok() {
            // SAFETY: created once, destroyed once.
            let _ = unsafe { result::event::destroy(self.event) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_lie_at_multiples_of_their_sizes() {
        let mut arguments = Arguments::new();
        arguments.push(&7_u32.to_le_bytes());
        arguments.push_address(0x0102_0304_0506_0708);
        arguments.push(&[9]);
        arguments.push(&1.5_f32.to_le_bytes());
        let mut expected = vec![7, 0, 0, 0, 0, 0, 0, 0, 8, 7, 6, 5, 4, 3, 2, 1, 9, 0, 0, 0];
        expected.extend(1.5_f32.to_le_bytes());
        assert_eq!(arguments.0, expected);
    }
}
