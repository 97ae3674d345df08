//! The simulator as a device.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::clock::{Clock, Timing};
use super::copies::on_copies;
use super::functional::{BufferMemory, CompiledKernel, Groups, Messages, Options};
use super::home::{Home, Pages};
use super::queue::SimulatorQueue;
use super::reservation::Reservation;
use super::timeline::Timeline;
use super::timer::Timer;
use crate::device::{
    Allocation, Argument, Buffer, Description, Device, Fill, HostSide, Launch, Program, Queue,
};
use crate::ir::{Kernel, Type, verify};
use crate::model::{self, DeviceModel};
use crate::{Error, Result};

/// A simulated device.
///
/// ```
/// use headstart::device::sim::Simulator;
/// use headstart::device::{Argument, Device, Launch, TypedBuffer};
/// use headstart::ir::{Type, parse};
/// # use headstart::device::Command;
/// # fn main() -> headstart::Result<()> {
/// let kernel = parse(
///     "hsir 1
///      kernel @double(%data: ptr.global i32[] align 4) {
///        load @data
///        %i32 = id.local.x
///        %i = extend.u %i32 to i64
///        %ptr = address %data + %i * 4
///        %x = load i32 %ptr, @data
///        %y = add %x, %x
///        store %ptr, %y
///        return
///      }",
///     "double.hsir",
/// )?;
/// let device = Simulator::untimed();
/// let program = device.compile(&kernel.into())?;
/// let queue = device.queue()?;
/// let data = TypedBuffer::from_slice(&device, &[1i32, 2, 3])?;
/// let launch = Launch::new(1, 3, vec![Argument::Buffer(data.buffer().clone())]);
/// queue.submit(Command::Launch(program, launch), &[]).wait()?;
/// assert_eq!(data.read(queue.as_ref())?, [2, 4, 6]);
/// # Ok(())
/// # }
/// ```
pub struct Simulator(Arc<Shared>);

/// A simulated device, shared with its queues.
pub(super) struct Shared {
    description: Description,
    options: Options,
    pub(super) clock: Option<Arc<dyn Clock>>,
    /// Which of the card's stacks it is.
    pub(super) stack: u32,
    /// Whether it is one of [`Device::sub_devices`].
    is_part: bool,
    /// Whether all of its buffers together have to fit its memory.
    has_limit: bool,
    pub(super) card: Arc<Card>,
}

/// A card with one stack or several.
pub(super) struct Card {
    pub(super) timeline: Arc<Timeline>,
    /// Bytes of the buffers that exist in each stack's memory.
    allocated: Vec<Arc<AtomicU64>>,
    /// Bytes of the buffers that exist in the host's memory.
    on_host: Arc<AtomicU64>,
}

/// Room for host allocations: as much as machines with such devices have, and no limit of any device.
const HOST_BYTES: u64 = 1 << 40;

/// The simulator's form of a kernel.
struct Compiled {
    functional: CompiledKernel,
    timed: Option<Arc<dyn Any + Send + Sync>>,
}

impl Simulator {
    /// The simulated device of this name, `h200` or a model file, which checks launches and gives times.
    ///
    /// ```
    /// use headstart::device::Device;
    /// use headstart::device::sim::Simulator;
    /// let device = Simulator::new("h200")?;
    /// assert_eq!(device.description().cores, 132);
    /// # Ok::<(), headstart::Error>(())
    /// ```
    ///
    /// # Errors
    /// There is no such model.
    pub fn new(name: &str) -> Result<Simulator> {
        Ok(Simulator::of(model::find(name, &[])?))
    }

    /// A device that runs kernels as `options` say and takes its times from `clock`; without one, every
    /// launch takes no time, and commands run on the thread that submits them. For tools that check in a way of their own: they hold the data of several launches at once, so
    /// that each buffer alone has to fit the device's memory, and not all of them together.
    #[doc(hidden)]
    pub fn custom(description: Description, options: Options, clock: Option<Arc<dyn Clock>>) -> Simulator {
        Simulator::on_card(description, options, clock, 1, false)
    }

    /// The same for a model that is read already. A card's further stacks are among [`Device::sub_devices`]; it is itself
    /// the first.
    pub fn of(model: impl Into<Arc<DeviceModel>>) -> Simulator {
        let model = model.into();
        let timer: Arc<dyn Clock> = Arc::new(Timer::new(Arc::clone(&model)));
        let options = Options::checking(&model);
        Simulator::on_card(model.description(), options, Some(timer), model.stacks(), true)
    }

    fn on_card(
        description: Description,
        options: Options,
        clock: Option<Arc<dyn Clock>>,
        stacks: u32,
        has_limit: bool,
    ) -> Simulator {
        let card = Card {
            timeline: Arc::new(Timeline::new()),
            allocated: (0..stacks).map(|_| Arc::default()).collect(),
            on_host: Arc::default(),
        };
        Simulator(Arc::new(Shared {
            description,
            options,
            clock,
            stack: 0,
            is_part: false,
            has_limit,
            card: Arc::new(card),
        }))
    }

    /// A device that checks everything, gives no times, and has the limits of a large GPU of today.
    pub fn untimed() -> Simulator {
        let description = Description {
            name: "sim".to_owned(),
            title: "functional simulator".to_owned(),
            cores: 1,
            max_group_size: 1024,
            max_group_dimensions: [1024, 1024, 64],
            sub_group_sizes: vec![8, 16, 32],
            default_sub_group_size: 32,
            most_block_items: 32,
            max_shared_bytes: 227 << 10,
            memory_bytes: 1 << 38,
        };
        Simulator::on_card(description, Options::CHECKING, None, 1, true)
    }
}

impl Device for Simulator {
    fn description(&self) -> &Description {
        &self.0.description
    }

    fn allocate(&self, element: Type, length: u64, fill: Fill) -> Result<Buffer> {
        self.allocate_as(Allocation::Device, element, length, fill)
    }

    fn allocate_as(&self, allocation: Allocation, element: Type, length: u64, fill: Fill) -> Result<Buffer> {
        let bytes = fill.check(element, length)?;
        let shared = &self.0;
        let (taken, room, place) = match allocation {
            Allocation::Host => (&shared.card.on_host, HOST_BYTES, "the host"),
            Allocation::Device | Allocation::Shared => (
                &shared.card.allocated[shared.stack as usize],
                shared.description.memory_bytes,
                shared.description.name.as_str(),
            ),
        };
        let apart = Arc::default();
        let taken = if shared.has_limit { taken } else { &apart };
        let taken = Reservation::new(taken, bytes, room).ok_or_else(|| {
            let accepted = match shared.has_limit {
                true => format!("it has {room} bytes for all buffers together"),
                false => format!("it has {room} bytes"),
            };
            Error::device(format!(
                "a buffer of {bytes} bytes does not fit the memory of {place}"
            ))
            .accepted(accepted)
        })?;
        let page = shared.clock.as_ref().and_then(|clock| clock.shared_page());
        let home = match (allocation, page) {
            (Allocation::Host, _) => Home::Host,
            (Allocation::Shared, Some(page)) => Home::Shared(Arc::new(Pages::new(bytes, page))),
            (Allocation::Device | Allocation::Shared, _) => Home::Device,
        };
        let memory = Arc::new(
            BufferMemory::new(element, length, fill)?
                .reserved(taken)
                .in_stack(shared.stack)
                .at_home(home.clone()),
        );
        let buffer = Buffer::new(element, length, Arc::clone(&memory) as Arc<dyn Any + Send + Sync>);
        Ok(match allocation {
            Allocation::Device => buffer,
            Allocation::Host | Allocation::Shared => match (home, &shared.clock) {
                (Home::Shared(pages), Some(clock)) => {
                    let side = SharedSide {
                        memory,
                        pages,
                        clock: Arc::clone(clock),
                        card: Arc::clone(&shared.card),
                    };
                    buffer.seen_by_host(allocation, Arc::new(side))
                }
                _ => buffer.seen_by_host(allocation, memory),
            },
        })
    }

    fn sub_devices(&self) -> Result<Vec<Box<dyn Device>>> {
        let shared = &self.0;
        let stacks = shared.card.allocated.len() as u32;
        // A stack has none of its own, and neither has a card with one.
        if stacks < 2 || shared.is_part {
            return Ok(Vec::new());
        }
        let stack = |stack| {
            let mut description = shared.description.clone();
            description.name = format!("{}.{stack}", description.name);
            description.title = format!("{}, stack {stack}", description.title);
            let device = Simulator(Arc::new(Shared {
                description,
                options: shared.options,
                clock: shared.clock.clone(),
                stack,
                is_part: true,
                has_limit: shared.has_limit,
                card: Arc::clone(&shared.card),
            }));
            Box::new(device) as Box<dyn Device>
        };
        Ok((0..stacks).map(stack).collect())
    }

    fn compile(&self, kernel: &Arc<Kernel>) -> Result<Program> {
        verify(kernel)?;
        let timed = self.0.clock.as_ref().map(|clock| clock.compile(kernel));
        let compiled = Compiled {
            functional: CompiledKernel::new(Arc::clone(kernel)),
            timed: timed.transpose()?,
        };
        Ok(Program::new(Arc::clone(kernel), compiled))
    }

    fn queue(&self) -> Result<Box<dyn Queue>> {
        Ok(Box::new(SimulatorQueue::new(&self.0)?))
    }
}

impl HostSide for BufferMemory {
    fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<()> {
        self.copy_out(offset, bytes)
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.copy_in(offset, bytes);
        Ok(())
    }
}

/// A shared allocation as the host sees it: pages that a kernel has touched come over the link, and the host waits for each.
struct SharedSide {
    memory: Arc<BufferMemory>,
    pages: Arc<Pages>,
    clock: Arc<dyn Clock>,
    card: Arc<Card>,
}

impl SharedSide {
    fn touch(&self, offset: u64, length: u64) {
        let moved = self.pages.touched_by_host(offset, length);
        if moved > 0 {
            self.card.timeline.host().pass(self.clock.shared_pages_ns(moved));
        }
    }
}

impl HostSide for SharedSide {
    fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<()> {
        self.touch(offset, bytes.len() as u64);
        self.memory.copy_out(offset, bytes)
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.touch(offset, bytes.len() as u64);
        self.memory.copy_in(offset, bytes);
        Ok(())
    }
}

impl Shared {
    /// Whether it is a tool's own device without a clock.
    pub(super) fn only_checks(&self) -> bool {
        self.clock.is_none() && !self.has_limit
    }

    pub(super) fn launch(&self, program: &Program, launch: &Launch) -> Result<(Timing, String)> {
        let kernel = program.kernel();
        launch.check(kernel, &self.description)?;
        let compiled: Arc<Compiled> = program.implementation()?;
        let size = launch.sub_group_size(kernel, &self.description);
        let timed = match (&self.clock, &compiled.timed) {
            (Some(clock), Some(timed)) => {
                let reads = |index: usize| kernel.params[index].facts.is_some_and(|facts| facts.read_only);
                Some((clock, timed, on_copies(launch, reads)?))
            }
            _ => None,
        };
        let functional = &compiled.functional;
        let groups = match launch.first_groups {
            Some(first) => Groups::Some((0..first.min(launch.group_count())).collect()),
            None => Groups::All,
        };
        let mut options = self.options;
        if functional.may_wait_for_others()
            && let (Some(clock), Some(timed)) = (&self.clock, &compiled.timed)
            && let Some(resident) = clock.resident_groups(kernel, timed, launch)
        {
            options.resident_groups = resident;
        }
        let (counters, told) = functional.run_telling(launch, size, options, &groups)?;
        let Messages { printed, notes } = told;
        let mut timing = Timing {
            elapsed_ns: 0.0,
            counters,
            notes,
        };
        if let Some((clock, timed, copy)) = timed {
            let measured = clock.time(kernel, timed, &copy, self.stack)?;
            timing.elapsed_ns = measured.elapsed_ns;
            timing.counters.merge(&measured.counters);
            take_pages(launch)?;
        }
        Ok((timing, printed))
    }
}

/// The pages of its shared allocations that a launch leaves on the device: all of them, as far as is known.
fn take_pages(launch: &Launch) -> Result<()> {
    let arguments = launch.arguments.iter().filter_map(Argument::buffer);
    for (buffer, _) in arguments {
        let memory: Arc<BufferMemory> = buffer.implementation()?;
        if let Home::Shared(pages) = memory.home() {
            pages.taken_by_device();
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
