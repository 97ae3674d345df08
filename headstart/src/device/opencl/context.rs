//! The runtime's objects, each released when its last user is gone.
//!
//! OpenCL's objects may be used from any thread, but for a kernel while its arguments are set (OpenCL 3.0, A.2):
//! [`Kernel`] is behind a lock.

use std::ffi::{CString, c_void};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use cl3::types::{CL_TRUE, cl_command_queue, cl_context, cl_event, cl_kernel, cl_mem, cl_program};
use cl3::{command_queue, context, event, kernel, memory, program};

use super::failure::failure;
use super::platform::DeviceId;
use crate::{Error, Result};

/// A device's context, and its one queue.
pub(super) struct Context {
    device: DeviceId,
    context: cl_context,
    queue: cl_command_queue,
}

// SAFETY: the runtime locks what several threads use (OpenCL 3.0, A.2).
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Context {
    /// Opens a device.
    pub(super) fn open(device: DeviceId) -> Result<Arc<Context>> {
        let context = context::create_context(&[device.0], std::ptr::null(), None, std::ptr::null_mut())
            .map_err(|code| failure("opening the device", code))?;
        let properties = [
            command_queue::CL_QUEUE_PROPERTIES as u64,
            command_queue::CL_QUEUE_PROFILING_ENABLE,
            0,
        ];
        // SAFETY: the context is of this device, and the list of properties ends with 0.
        let queue = unsafe {
            command_queue::create_command_queue_with_properties(context, device.0, properties.as_ptr())
        };
        match queue {
            Ok(queue) => Ok(Arc::new(Context {
                device,
                context,
                queue,
            })),
            Err(code) => {
                // SAFETY: created just now, used by nobody.
                let _ = unsafe { context::release_context(context) };
                Err(failure("opening a queue", code))
            }
        }
    }

    /// Takes memory.
    pub(super) fn allocate(self: &Arc<Self>, bytes: usize) -> Result<Memory> {
        // SAFETY: without a host pointer the runtime takes memory of its own. There are no empty buffers.
        let memory = unsafe {
            memory::create_buffer(
                self.context,
                memory::CL_MEM_READ_WRITE,
                bytes.max(1),
                std::ptr::null_mut(),
            )
        }
        .map_err(|code| failure(&format!("allocating {bytes} bytes"), code))?;
        Ok(Memory {
            context: Arc::clone(self),
            memory,
            bytes,
        })
    }

    /// Builds a module and takes its entry.
    pub(super) fn build(self: &Arc<Self>, module: &[u8], options: &str, entry: &str) -> Result<Kernel> {
        let made = program::create_program_with_il(self.context, module)
            .map_err(|code| failure("reading the SPIR-V module", code))?;
        let program = Program(made);
        let options = CString::new(options).unwrap_or_default();
        if let Err(code) =
            program::build_program(program.0, &[self.device.0], &options, None, std::ptr::null_mut())
        {
            let log =
                program::get_program_build_data(program.0, self.device.0, program::CL_PROGRAM_BUILD_LOG);
            let log = log.unwrap_or_default();
            let log = String::from_utf8_lossy(&log);
            let said: Vec<&str> = log
                .trim_matches(['\0', '\n', ' '])
                .lines()
                .filter(|line| !line.trim().is_empty())
                .take(4)
                .collect();
            let error = failure(&format!("building `{entry}`"), code);
            return Err(match said[..] {
                [] => error,
                _ => Error::device(format!("{}: {}", error.what(), said.join(" | "))),
            });
        }
        let name = CString::new(entry).map_err(|_| Error::bug("an entry's name holds a zero"))?;
        let kernel = kernel::create_kernel(program.0, &name)
            .map_err(|code| failure(&format!("finding `{entry}`"), code))?;
        Ok(Kernel {
            context: Arc::clone(self),
            _program: program,
            kernel: Mutex::new(KernelId(kernel)),
        })
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: created once in `open`, and nobody uses them any more.
        unsafe {
            let _ = command_queue::release_command_queue(self.queue);
            let _ = context::release_context(self.context);
        }
    }
}

/// Memory of a device.
pub(super) struct Memory {
    context: Arc<Context>,
    memory: cl_mem,
    bytes: usize,
}

// SAFETY: as for `Context`.
unsafe impl Send for Memory {}
// SAFETY: as for `Context`.
unsafe impl Sync for Memory {}

impl Memory {
    fn check(&self, offset: usize, length: usize) -> Result<()> {
        match offset.checked_add(length) {
            Some(end) if end <= self.bytes => Ok(()),
            _ => Err(Error::bug("an access to a buffer was not checked")),
        }
    }

    /// Writes bytes from an offset on.
    pub(super) fn write(&self, offset: usize, bytes: &[u8]) -> Result<()> {
        self.check(offset, bytes.len())?;
        if bytes.is_empty() {
            return Ok(());
        }
        // SAFETY: the range lies in the buffer; the call returns when `bytes` has been read.
        let event = unsafe {
            command_queue::enqueue_write_buffer(
                self.context.queue,
                self.memory,
                CL_TRUE,
                offset,
                bytes.len(),
                bytes.as_ptr().cast(),
                0,
                std::ptr::null(),
            )
        };
        event
            .map(Ended::forget)
            .map_err(|code| failure("writing a buffer", code))
    }

    /// Reads bytes from an offset on.
    pub(super) fn read(&self, offset: usize, bytes: &mut [u8]) -> Result<()> {
        self.check(offset, bytes.len())?;
        if bytes.is_empty() {
            return Ok(());
        }
        // SAFETY: the range lies in the buffer; the call returns when `bytes` has been written.
        let event = unsafe {
            command_queue::enqueue_read_buffer(
                self.context.queue,
                self.memory,
                CL_TRUE,
                offset,
                bytes.len(),
                bytes.as_mut_ptr().cast(),
                0,
                std::ptr::null(),
            )
        };
        event
            .map(Ended::forget)
            .map_err(|code| failure("reading a buffer", code))
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: created once in `allocate`.
        let _ = unsafe { memory::release_mem_object(self.memory) };
    }
}

struct Program(cl_program);

// SAFETY: as for `Context`.
unsafe impl Send for Program {}
// SAFETY: as for `Context`.
unsafe impl Sync for Program {}

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: created once in `build`.
        let _ = unsafe { program::release_program(self.0) };
    }
}

struct KernelId(cl_kernel);

// SAFETY: only whoever holds the lock around it uses it.
unsafe impl Send for KernelId {}

/// A kernel that was built.
pub(super) struct Kernel {
    context: Arc<Context>,
    kernel: Mutex<KernelId>,
    _program: Program,
}

/// An argument of a launch.
pub(super) enum Given<'a> {
    /// A buffer.
    Memory(&'a Memory),
    /// A number's bytes.
    Bytes(Vec<u8>),
}

impl Kernel {
    /// Runs the kernel and waits for its end, at most this long. The device's time from start to end, in ns.
    pub(super) fn run(
        &self,
        groups: [u32; 3],
        group: [u32; 3],
        arguments: &[Given<'_>],
        limit: Duration,
    ) -> Result<f64> {
        let kernel = self.kernel.lock().unwrap_or_else(PoisonError::into_inner);
        for (index, argument) in (0..).zip(arguments) {
            let (size, value): (usize, *const c_void) = match argument {
                Given::Memory(memory) => (size_of::<cl_mem>(), std::ptr::from_ref(&memory.memory).cast()),
                Given::Bytes(bytes) => (bytes.len(), bytes.as_ptr().cast()),
            };
            // SAFETY: `value` points to `size` bytes, which the runtime copies.
            unsafe { kernel::set_kernel_arg(kernel.0, index, size, value) }
                .map_err(|code| failure(&format!("passing argument {index}"), code))?;
        }
        let local = group.map(|size| size as usize);
        let global: [usize; 3] = std::array::from_fn(|axis| groups[axis] as usize * local[axis]);
        // SAFETY: three sizes each, as the number of dimensions says.
        let event = unsafe {
            command_queue::enqueue_nd_range_kernel(
                self.context.queue,
                kernel.0,
                3,
                std::ptr::null(),
                global.as_ptr(),
                local.as_ptr(),
                0,
                std::ptr::null(),
            )
        }
        .map_err(|code| failure("launching the kernel", code))?;
        let event = Ended(event);
        command_queue::flush(self.context.queue).map_err(|code| failure("launching the kernel", code))?;
        event.wait(limit)?;
        event.nanoseconds()
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        let kernel = self.kernel.get_mut().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: created once in `build`.
        let _ = unsafe { kernel::release_kernel(kernel.0) };
    }
}

/// The end of a command.
struct Ended(cl_event);

impl Ended {
    /// Releases an event that nobody waits for.
    fn forget(event: cl_event) {
        drop(Ended(event));
    }

    fn wait(&self, limit: Duration) -> Result<()> {
        let start = Instant::now();
        loop {
            let status = event::get_event_info(self.0, event::CL_EVENT_COMMAND_EXECUTION_STATUS)
                .map_err(|code| failure("waiting for the kernel", code))?;
            match i32::from(status) {
                event::CL_COMPLETE => return Ok(()),
                code if code < 0 => return Err(failure("running the kernel", code)),
                _ => {}
            }
            let waited = start.elapsed();
            if waited > limit {
                return Err(Error::device(format!(
                    "the kernel still ran after {:.1} s",
                    limit.as_secs_f64()
                )));
            }
            if waited > Duration::from_millis(2) {
                std::thread::sleep(Duration::from_micros(200));
            } else {
                std::thread::yield_now();
            }
        }
    }

    fn nanoseconds(&self) -> Result<f64> {
        let when = |what| -> Result<u64> {
            let bytes = event::get_event_profiling_data(self.0, what)
                .map_err(|code| failure("reading the device's clock", code))?;
            Ok(bytes
                .iter()
                .rev()
                .fold(0, |number, &byte| number << 8 | u64::from(byte)))
        };
        let (start, end) = (
            when(event::CL_PROFILING_COMMAND_START)?,
            when(event::CL_PROFILING_COMMAND_END)?,
        );
        Ok(end.saturating_sub(start) as f64)
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        // SAFETY: every command gives one event, which is released once.
        let _ = unsafe { event::release_event(self.0) };
    }
}
