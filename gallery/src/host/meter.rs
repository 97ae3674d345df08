//! The instruments for techniques of the host: a device that counts requests, and a clock.
//!
//! A [`Host`] opens devices that count. The body of [`Host::measure`] is the technique; code before it is preparation, code
//! after it the check. On a GPU the time is the host's clock, from the first line to the end of the last command. A simulated
//! device's clock covers kernels and transfers: the time is from the first submission to the last end. The host's own work
//! (compiling, allocating) is not in it, only in the counts.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use headstart::Result;
use headstart::device::cuda::device::CudaDevice;
use headstart::device::cuda::gpu;
use headstart::device::model::{self, DeviceModel};
use headstart::device::sim::Simulator;
use headstart::device::{
    Allocation, Buffer, Command, Description, Device, Event, Fill, Image, Images, Outcome, Program, Queue,
};
use headstart::ir::{Kernel, Type};
use serde::{Deserialize, Serialize};

/// Opens devices that count, of one kind.
pub struct Host {
    backend: Backend,
    tally: Arc<Tally>,
}

/// Where the techniques run.
enum Backend {
    Simulated(Arc<DeviceModel>),
    /// The GPU with this number, and those after it.
    Gpu(usize),
}

/// What a technique took.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Taken {
    /// From its first line to its last, in nanoseconds.
    pub time_ns: Option<f64>,
    /// The kernels' own times, added up, in nanoseconds.
    pub kernels_ns: f64,
    /// Bytes that went from the host to devices.
    pub bytes_in: u64,
    /// Bytes that came back.
    pub bytes_out: u64,
    /// Launches.
    pub launches: u32,
    /// Kernels that were compiled.
    pub compiled: u32,
    /// Buffers that were made.
    pub buffers: u32,
}

impl Taken {
    /// Whether it took about as long as another way. Where simulated times do and measured ones do not, what differs is the host's own
    /// work, which is not modelled: waiting, submitting, compiling, allocating, printing.
    pub fn is_like(&self, other: &Taken) -> bool {
        let times = self.time_ns.zip(other.time_ns);
        times.is_some_and(|(own, other)| (own - other).abs() <= 0.15 * own.min(other))
    }
}

/// What all devices of a host count together.
#[derive(Default)]
struct Tally(Mutex<Counted>);

#[derive(Default)]
struct Counted {
    /// Since the measurement began.
    taken: Taken,
    /// What the last one found.
    found: Taken,
    commands: Vec<Sent>,
    /// How many clocks there are.
    clocks: usize,
}

/// A command under way.
struct Sent {
    event: Event,
    is_launch: bool,
    clock: Clock,
}

/// The clock that a device's times are on.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Clock {
    number: usize,
    /// Whether it is of a context that a program works in after, not beside, those it opened before.
    follows: bool,
}

impl Tally {
    fn lock(&self) -> MutexGuard<'_, Counted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Host {
    /// On simulated devices of this model.
    pub fn simulated(model: DeviceModel) -> Host {
        Host::of(Backend::Simulated(Arc::new(model)))
    }

    /// On the GPU with this number; on the next ones, too, where a technique takes several.
    pub fn gpu(ordinal: usize) -> Host {
        Host::of(Backend::Gpu(ordinal))
    }

    fn of(backend: Backend) -> Host {
        Host {
            backend,
            tally: Arc::default(),
        }
    }

    /// Whether times are simulated.
    pub fn is_simulated(&self) -> bool {
        matches!(self.backend, Backend::Simulated(_))
    }

    /// The device. Each call opens it anew: kernels compiled and memory allocated by one are not shared with others.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open(&self) -> Result<Counting> {
        match &self.backend {
            Backend::Simulated(model) => Ok(self.counting(Box::new(Simulator::of(Arc::clone(model))), false)),
            Backend::Gpu(ordinal) => Ok(self.counting(Box::new(CudaDevice::open(*ordinal)?), false)),
        }
    }

    /// The device in a context of its own, which shares nothing with others of the same device, and in which a program works
    /// when it is done with those.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open_apart(&self) -> Result<Counting> {
        match &self.backend {
            Backend::Simulated(model) => Ok(self.counting(Box::new(Simulator::of(Arc::clone(model))), true)),
            Backend::Gpu(ordinal) => Ok(self.counting(Box::new(CudaDevice::open_apart(*ordinal)?), true)),
        }
    }

    /// Two devices; none where there is one alone.
    ///
    /// # Errors
    /// They cannot be opened.
    pub fn open_two(&self) -> Result<Option<[Counting; 2]>> {
        match &self.backend {
            Backend::Simulated(_) => Ok(Some([self.open()?, self.open()?])),
            Backend::Gpu(ordinal) if gpu::count()? > ordinal + 1 => {
                let other = CudaDevice::open(ordinal + 1)?;
                Ok(Some([self.open()?, self.counting(Box::new(other), false)]))
            }
            Backend::Gpu(_) => Ok(None),
        }
    }

    /// A device with parts that are devices themselves; none where there is no such device.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open_with_parts(&self) -> Result<Option<(Counting, Vec<Box<dyn Device>>)>> {
        let mut candidates = vec![self.open()?];
        if self.is_simulated() {
            let model = Arc::new(model::built_in("pvc-1550", &[])?);
            candidates.push(self.counting(Box::new(Simulator::of(model)), false));
        }
        for device in candidates {
            let parts = device.sub_devices()?;
            if !parts.is_empty() {
                return Ok(Some((device, parts)));
            }
        }
        Ok(None)
    }

    fn counting(&self, device: Box<dyn Device>, follows: bool) -> Counting {
        let mut counted = self.tally.lock();
        counted.clocks += 1;
        Counting {
            device,
            clock: Clock {
                number: counted.clocks,
                follows,
            },
            tally: Arc::clone(&self.tally),
        }
    }

    /// Does the technique's work, and measures it.
    ///
    /// # Errors
    /// The work's own, or that of a command that was not waited for.
    pub fn measure<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        {
            let mut counted = self.tally.lock();
            counted.taken = Taken::default();
            counted.commands.clear();
        }
        let start = Instant::now();
        let value = work()?;
        let commands = std::mem::take(&mut self.tally.lock().commands);
        // What the host has waited for by now: commands, and pages that came over.
        let seen_ns: Vec<f64> = commands
            .iter()
            .map(|sent| sent.event.host_ns().unwrap_or(0.0))
            .collect();
        let mut ended = Vec::new();
        for sent in &commands {
            ended.push((sent, sent.event.wait()?));
        }
        let elapsed_ns = start.elapsed().as_secs_f64() * 1e9;
        let mut counted = self.tally.lock();
        let launches = ended.iter().filter(|(sent, _)| sent.is_launch);
        counted.taken.kernels_ns = launches.map(|(_, outcome)| outcome.times.elapsed_ns()).sum();
        counted.taken.time_ns = match self.is_simulated() {
            true => Some(simulated_ns(&ended, &seen_ns)),
            false => Some(elapsed_ns),
        };
        counted.found = counted.taken.clone();
        drop(counted);
        Ok(value)
    }

    /// What the last measurement found.
    pub fn taken(&self) -> Taken {
        self.tally.lock().found.clone()
    }
}

/// From the first submission to the last end, or until the host has seen what it wanted (`seen_ns`, a command each), on the clock on
/// which that took longest; the times of contexts that follow each other are added up.
fn simulated_ns(ended: &[(&Sent, Arc<Outcome>)], seen_ns: &[f64]) -> f64 {
    let mut clocks: Vec<Clock> = ended.iter().map(|(sent, _)| sent.clock).collect();
    clocks.sort_by_key(|clock| clock.number);
    clocks.dedup();
    let span = |clock: &Clock| {
        let times = ended.iter().zip(seen_ns);
        let times = times.filter(|((sent, _), _)| sent.clock == *clock);
        let (start, end) = times.fold((f64::MAX, 0.0f64), |(start, end), ((_, outcome), seen)| {
            let times = &outcome.times;
            (start.min(times.submitted_ns), end.max(times.ended_ns).max(*seen))
        });
        (end - start).max(0.0)
    };
    let (following, beside): (Vec<Clock>, Vec<Clock>) = clocks.iter().partition(|clock| clock.follows);
    let longest = beside.iter().map(span).fold(0.0, f64::max);
    following.iter().map(span).sum::<f64>() + longest
}

/// A device that counts requests.
pub struct Counting {
    device: Box<dyn Device>,
    clock: Clock,
    tally: Arc<Tally>,
}

impl Device for Counting {
    fn description(&self) -> &Description {
        self.device.description()
    }

    fn allocate(&self, element: Type, length: u64, fill: Fill) -> Result<Buffer> {
        self.allocate_as(Allocation::Device, element, length, fill)
    }

    fn allocate_as(&self, allocation: Allocation, element: Type, length: u64, fill: Fill) -> Result<Buffer> {
        let fills = matches!(fill, Fill::Bytes(_));
        let buffer = self.device.allocate_as(allocation, element, length, fill)?;
        let mut counted = self.tally.lock();
        counted.taken.buffers += 1;
        if fills && allocation == Allocation::Device {
            counted.taken.bytes_in += buffer.bytes();
        }
        Ok(buffer)
    }

    fn sub_devices(&self) -> Result<Vec<Box<dyn Device>>> {
        let parts = self.device.sub_devices()?.into_iter();
        let part = |device| Counting {
            device,
            clock: self.clock,
            tally: Arc::clone(&self.tally),
        };
        Ok(parts
            .map(|device| Box::new(part(device)) as Box<dyn Device>)
            .collect())
    }

    fn compile(&self, kernel: &Arc<Kernel>) -> Result<Program> {
        self.tally.lock().taken.compiled += 1;
        self.device.compile(kernel)
    }

    fn image(&self, program: &Program) -> Result<Option<Image>> {
        self.device.image(program)
    }

    fn load(&self, kernel: &Arc<Kernel>, images: &Images) -> Result<Program> {
        // An image that is there is taken for one that fits: it was made here.
        if images.is_empty() {
            self.tally.lock().taken.compiled += 1;
        }
        self.device.load(kernel, images)
    }

    fn queue(&self) -> Result<Box<dyn Queue>> {
        Ok(Box::new(CountingQueue {
            queue: self.device.queue()?,
            clock: self.clock,
            tally: Arc::clone(&self.tally),
        }))
    }
}

/// A queue of a device that counts.
struct CountingQueue {
    queue: Box<dyn Queue>,
    clock: Clock,
    tally: Arc<Tally>,
}

impl Queue for CountingQueue {
    fn submit(&self, command: Command, after: &[Event]) -> Event {
        let on_host = |buffer: &Buffer| buffer.allocation() == Allocation::Host;
        let (bytes_in, bytes_out) = match &command {
            Command::Launch(..) => (0, 0),
            Command::Write { buffer, bytes, .. } if !on_host(buffer) => (bytes.len() as u64, 0),
            Command::Read { buffer, length, .. } if !on_host(buffer) => (0, *length),
            Command::Copy { from, to, length, .. } if on_host(from) && !on_host(to) => (*length, 0),
            Command::Copy { from, to, length, .. } if on_host(to) && !on_host(from) => (0, *length),
            Command::Write { .. } | Command::Read { .. } | Command::Copy { .. } => (0, 0),
        };
        let is_launch = matches!(command, Command::Launch(..));
        let event = self.queue.submit(command, after);
        let mut counted = self.tally.lock();
        counted.taken.bytes_in += bytes_in;
        counted.taken.bytes_out += bytes_out;
        counted.taken.launches += u32::from(is_launch);
        counted.commands.push(Sent {
            event: event.clone(),
            is_launch,
            clock: self.clock,
        });
        event
    }
}
