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

/// How long an event may take to learn that its command has ended.
const PATIENCE: Duration = Duration::from_secs(10);

/// A device's context.
pub(super) struct Context {
    device: DeviceId,
    context: cl_context,
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
        Ok(Arc::new(Context { device, context }))
    }

    /// A new order of commands.
    pub(super) fn lane(self: &Arc<Self>) -> Result<Lane> {
        let properties = [
            command_queue::CL_QUEUE_PROPERTIES as u64,
            command_queue::CL_QUEUE_PROFILING_ENABLE,
            0,
        ];
        // SAFETY: the context is of this device, and the list of properties ends with 0.
        let queue = unsafe {
            command_queue::create_command_queue_with_properties(
                self.context,
                self.device.0,
                properties.as_ptr(),
            )
        }
        .map_err(|code| failure("opening a queue", code))?;
        Ok(Lane {
            _context: Arc::clone(self),
            queue,
        })
    }

    /// Takes memory; pinned memory of the host, if it is `on_host`.
    pub(super) fn allocate(self: &Arc<Self>, bytes: usize, on_host: bool) -> Result<Memory> {
        let place = if on_host { memory::CL_MEM_ALLOC_HOST_PTR } else { 0 };
        // SAFETY: without a host pointer the runtime takes memory of its own. There are no empty buffers.
        let memory = unsafe {
            memory::create_buffer(
                self.context,
                memory::CL_MEM_READ_WRITE | place,
                bytes.max(1),
                std::ptr::null_mut(),
            )
        }
        .map_err(|code| failure(&format!("allocating {bytes} bytes"), code))?;
        Ok(Memory {
            _context: Arc::clone(self),
            memory,
            bytes,
        })
    }

    /// Builds a module and takes its entry.
    pub(super) fn build(self: &Arc<Self>, module: &[u8], options: &str, entry: &str) -> Result<Kernel> {
        let made = program::create_program_with_il(self.context, module)
            .map_err(|code| failure("reading the SPIR-V module", code))?;
        self.finish(Program(made), options, entry)
    }

    /// The same from the output of [`Kernel::binary`] on the same device and driver.
    pub(super) fn build_binary(
        self: &Arc<Self>,
        binary: &[u8],
        options: &str,
        entry: &str,
    ) -> Result<Kernel> {
        // SAFETY: the device is the context's, and the binary is read during the call.
        let made = unsafe { program::create_program_with_binary(self.context, &[self.device.0], &[binary]) }
            .map_err(|code| failure("reading a program's binary", code))?;
        self.finish(Program(made), options, entry)
    }

    fn finish(self: &Arc<Self>, program: Program, options: &str, entry: &str) -> Result<Kernel> {
        let options = CString::new(options).unwrap_or_default();
        if let Err(code) =
            program::build_program(program.0, &[self.device.0], &options, None, std::ptr::null_mut())
        {
            let log = self.log_of(&program);
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
            program,
            kernel: Mutex::new(KernelId(kernel)),
        })
    }

    /// What the runtime's compiler said about a program.
    fn log_of(&self, program: &Program) -> String {
        let log = program::get_program_build_data(program.0, self.device.0, program::CL_PROGRAM_BUILD_LOG);
        String::from_utf8_lossy(&log.unwrap_or_default()).into_owned()
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: created once in `open`, and not used any more.
        let _ = unsafe { context::release_context(self.context) };
    }
}

/// An independent order of commands: commands in different lanes may overlap.
pub(super) struct Lane {
    _context: Arc<Context>,
    queue: cl_command_queue,
}

// SAFETY: as for `Context`.
unsafe impl Send for Lane {}
// SAFETY: as for `Context`.
unsafe impl Sync for Lane {}

impl Drop for Lane {
    fn drop(&mut self) {
        // SAFETY: created once in `Context::lane`; the runtime lets its commands finish.
        let _ = unsafe { command_queue::release_command_queue(self.queue) };
    }
}

/// Memory of a device.
pub(super) struct Memory {
    _context: Arc<Context>,
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

    /// Writes bytes from an offset on. When, on the device's clock, in ns.
    pub(super) fn write(&self, lane: &Lane, offset: usize, bytes: &[u8]) -> Result<Interval> {
        self.check(offset, bytes.len())?;
        if bytes.is_empty() {
            return Ok(None);
        }
        // SAFETY: the range lies in the buffer; the call returns when `bytes` has been read.
        let event = unsafe {
            command_queue::enqueue_write_buffer(
                lane.queue,
                self.memory,
                CL_TRUE,
                offset,
                bytes.len(),
                bytes.as_ptr().cast(),
                0,
                std::ptr::null(),
            )
        };
        let event = Ended(event.map_err(|code| failure("writing a buffer", code))?);
        // The call has waited for the bytes; that the event has its times may take a moment more.
        event.wait(PATIENCE)?;
        event.interval().map(Some)
    }

    /// Reads bytes from an offset on. When, on the device's clock, in ns.
    pub(super) fn read(&self, lane: &Lane, offset: usize, bytes: &mut [u8]) -> Result<Interval> {
        self.check(offset, bytes.len())?;
        if bytes.is_empty() {
            return Ok(None);
        }
        // SAFETY: the range lies in the buffer; the call returns when `bytes` has been written.
        let event = unsafe {
            command_queue::enqueue_read_buffer(
                lane.queue,
                self.memory,
                CL_TRUE,
                offset,
                bytes.len(),
                bytes.as_mut_ptr().cast(),
                0,
                std::ptr::null(),
            )
        };
        let event = Ended(event.map_err(|code| failure("reading a buffer", code))?);
        // The call has waited for the bytes; that the event has its times may take a moment more.
        event.wait(PATIENCE)?;
        event.interval().map(Some)
    }

    /// Copies bytes of another buffer, or of this one, and waits for the end, at most this long.
    pub(super) fn copy(
        &self,
        lane: &Lane,
        offset: usize,
        from: &Memory,
        from_offset: usize,
        length: usize,
        limit: Duration,
    ) -> Result<Interval> {
        self.check(offset, length)?;
        from.check(from_offset, length)?;
        if length == 0 {
            return Ok(None);
        }
        // SAFETY: both ranges lie in their buffers, and apart if it is one; both stay until the copy has ended.
        let event = unsafe {
            command_queue::enqueue_copy_buffer(
                lane.queue,
                from.memory,
                self.memory,
                from_offset,
                offset,
                length,
                0,
                std::ptr::null(),
            )
        }
        .map_err(|code| failure("copying a buffer", code))?;
        let event = Ended(event);
        command_queue::flush(lane.queue).map_err(|code| failure("copying a buffer", code))?;
        event.wait(limit)?;
        event.interval().map(Some)
    }
}

/// When a command started and ended on the device's clock, in ns; none if there was nothing to do.
pub(super) type Interval = Option<(f64, f64)>;

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

// SAFETY: it is used under the lock around it alone.
unsafe impl Send for KernelId {}

/// A kernel that was built.
pub(super) struct Kernel {
    context: Arc<Context>,
    kernel: Mutex<KernelId>,
    program: Program,
}

/// An argument of a launch.
#[derive(Clone)]
pub(super) enum KernelArgument<'a> {
    /// A buffer.
    Memory(&'a Memory),
    /// A number's bytes.
    Bytes(Vec<u8>),
    /// This many bytes of memory of the work-group.
    Local(usize),
}

impl Kernel {
    /// Whether Intel's compiler for CPUs says that it made vectors of the work-items of each sub-group.
    pub(super) fn is_vectorized(&self) -> bool {
        self.context.log_of(&self.program).contains("-way vectorized")
    }

    /// Runs the kernel and waits for its end, at most this long.
    pub(super) fn run(
        &self,
        lane: &Lane,
        groups: [u32; 3],
        group: [u32; 3],
        arguments: &[KernelArgument<'_>],
        limit: Duration,
    ) -> Result<Interval> {
        let kernel = self.kernel.lock().unwrap_or_else(PoisonError::into_inner);
        for (index, argument) in (0..).zip(arguments) {
            let (size, value): (usize, *const c_void) = match argument {
                KernelArgument::Memory(memory) => {
                    (size_of::<cl_mem>(), std::ptr::from_ref(&memory.memory).cast())
                }
                KernelArgument::Bytes(bytes) => (bytes.len(), bytes.as_ptr().cast()),
                KernelArgument::Local(bytes) => (*bytes, std::ptr::null()),
            };
            // SAFETY: `value` points to `size` bytes, which the runtime copies; or it is null, for memory of the
            // work-group of that size.
            unsafe { kernel::set_kernel_arg(kernel.0, index, size, value) }
                .map_err(|code| failure(&format!("passing argument {index}"), code))?;
        }
        let local = group.map(|size| size as usize);
        let global: [usize; 3] = std::array::from_fn(|axis| groups[axis] as usize * local[axis]);
        // SAFETY: three sizes each, as the number of dimensions says.
        let event = unsafe {
            command_queue::enqueue_nd_range_kernel(
                lane.queue,
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
        command_queue::flush(lane.queue).map_err(|code| failure("launching the kernel", code))?;
        // Others may pass their arguments meanwhile.
        drop(kernel);
        event.wait(limit)?;
        event.interval().map(Some)
    }

    /// The program as its device's compiler made it.
    pub(super) fn binary(&self) -> Result<Vec<u8>> {
        let failed = |code| failure("asking for a program's binary", code);
        let binaries =
            program::get_program_info(self.program.0, program::CL_PROGRAM_BINARIES).map_err(failed)?;
        Ok(Vec::<Vec<u8>>::from(binaries)
            .into_iter()
            .next()
            .unwrap_or_default())
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

    fn interval(&self) -> Result<(f64, f64)> {
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
        Ok((start as f64, end.max(start) as f64))
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        // SAFETY: every command gives one event, which is released once.
        let _ = unsafe { event::release_event(self.0) };
    }
}
