//! The simulator as a device.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::functional::{BufferMemory, CompiledKernel, Groups, Messages, Options};
use super::home::{Home, Pages};
use super::queue::SimulatorQueue;
use super::timeline::Timeline;
use super::timer::Timer;
use crate::device::{
    Allocation, Argument, Buffer, Counters, Description, Device, Fill, HostSide, Launch, Program, Queue,
};
use crate::ir::{Kernel, Type, verify};
use crate::model::hint::HintReached;
use crate::model::{self, DeviceModel, Way};
use crate::{Error, Result};

/// Tells how long launches take on a simulated device.
pub trait Clock: Send + Sync {
    /// Prepares a verified kernel; the result comes back with each launch.
    ///
    /// # Errors
    /// The device cannot run the kernel, and why.
    fn compile(&self, kernel: &Arc<Kernel>) -> Result<Arc<dyn Any + Send + Sync>>;

    /// How long a launch takes on a stack of the card. It may write to the launch's buffers: they are copies. The launch has been
    /// checked, and has run to its end functionally.
    ///
    /// # Errors
    /// The device cannot run the launch, and why.
    fn time(
        &self,
        kernel: &Arc<Kernel>,
        compiled: &Arc<dyn Any + Send + Sync>,
        launch: &Launch,
        stack: u32,
    ) -> Result<Timing>;

    /// How many work-groups of a launch the device has resident at once, where that is known.
    fn resident_groups(
        &self,
        kernel: &Arc<Kernel>,
        compiled: &Arc<dyn Any + Send + Sync>,
        launch: &Launch,
    ) -> Option<u64> {
        let _ = (kernel, compiled, launch);
        None
    }

    /// How long a copy of so many bytes takes, in nanoseconds.
    fn copy_ns(&self, bytes: u64, way: Way) -> f64 {
        let _ = (bytes, way);
        0.0
    }

    /// Bytes of the pages in which shared allocations move; none where they do not.
    fn shared_page(&self) -> Option<u64> {
        None
    }

    /// The time that the host waits for so many of them, one after the other, in nanoseconds.
    fn shared_pages_ns(&self, pages: u64) -> f64 {
        let _ = pages;
        0.0
    }

    /// The effect of each prefetch of a kernel.
    fn prefetches(&self, kernel: &Kernel) -> Vec<HintReached> {
        let _ = kernel;
        Vec::new()
    }
}

/// The time of a launch, and its counters.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timing {
    /// From start to end, in nanoseconds.
    pub elapsed_ns: f64,
    /// The timer's counters.
    pub counters: Counters,
    /// Warnings for the kernel's author.
    pub notes: Vec<String>,
}

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
    /// launch takes no time. For tools that check in a way of their own: they hold the data of several launches at once, so
    /// that each buffer alone has to fit the device's memory, and not all of them together.
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

/// The launch on copies of its buffers; arguments that are the same buffer stay the same. Those of parameters that
/// `stay` are not copied.
///
/// # Errors
/// A buffer is not a simulator's.
#[doc(hidden)]
pub fn on_copies(launch: &Launch, stay: impl Fn(usize) -> bool) -> Result<Launch> {
    let mut copies: Vec<(Buffer, Buffer)> = Vec::new();
    let mut copy = launch.clone();
    for (index, argument) in copy.arguments.iter_mut().enumerate() {
        let (Argument::Buffer(buffer) | Argument::Part(buffer, _)) = argument else {
            continue;
        };
        if stay(index) {
            continue;
        }
        let known = copies.iter().find(|(original, _)| original.is_same(buffer));
        let copied = match known {
            Some((_, copied)) => copied.clone(),
            None => {
                let memory: Arc<BufferMemory> = buffer.implementation()?;
                let copied = Buffer::new(buffer.element(), buffer.length(), Arc::new(memory.snapshot()));
                copies.push((buffer.clone(), copied.clone()));
                copied
            }
        };
        // Parameters may see one buffer as elements of several types.
        *buffer = copied.seen_as(buffer.element());
    }
    for (_, buffer) in &mut copy.memory {
        let known = copies.iter().find(|(original, _)| original.is_same(buffer));
        let stays = launch.arguments.iter().enumerate().any(|(index, argument)| {
            stay(index) && argument.buffer().is_some_and(|(own, _)| own.is_same(buffer))
        });
        *buffer = match known {
            Some((_, copied)) => copied.clone(),
            None if stays => continue,
            None => {
                let memory: Arc<BufferMemory> = buffer.implementation()?;
                Buffer::new(buffer.element(), buffer.length(), Arc::new(memory.snapshot()))
            }
        };
    }
    Ok(copy)
}

/// Bytes taken of a device's memory, given back when dropped.
#[derive(Debug)]
pub(super) struct Reservation {
    allocated: Arc<AtomicU64>,
    bytes: u64,
}

impl Reservation {
    /// Takes bytes, unless that makes more than `room`.
    fn new(allocated: &Arc<AtomicU64>, bytes: u64, room: u64) -> Option<Reservation> {
        let fits = |taken: u64| taken.checked_add(bytes).filter(|&sum| sum <= room);
        allocated
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits)
            .ok()?;
        Some(Reservation {
            allocated: Arc::clone(allocated),
            bytes,
        })
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.allocated.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{Command, Pattern, TypedBuffer};
    use crate::ir::parse;

    const INCREMENT: &str = "hsir 1
        kernel @increment(%data: ptr.global i32[] align 4, %by: i32) {
          load @data
          %i32 = id.local.x
          %i = extend.u %i32 to i64
          %ptr = address %data + %i * 4
          %x = load i32 %ptr, @data
          %y = add %x, %by
          store %ptr, %y
          return
        }";

    fn program(device: &Simulator, text: &str) -> Program {
        let kernel = parse(text, "test.hsir").expect("the kernel is right");
        device.compile(&kernel.into()).expect("compiles")
    }

    #[test]
    fn commands_run_in_order_and_across_queues_as_events_say() {
        let device = Simulator::untimed();
        let program = program(&device, INCREMENT);
        let data = TypedBuffer::from_slice(&device, &[10i32, 20, 30]).expect("fits");
        let launch = |by: u64| {
            let data = Argument::Buffer(data.buffer().clone());
            let launch = Launch::new(1, 3, vec![data, Argument::Scalar(Type::I32, by)]);
            Command::Launch(program.clone(), launch)
        };
        let [one, other] = [(), ()].map(|()| device.queue().expect("a thread"));
        let first = one.submit(launch(1), &[]);
        let second = one.submit(launch(1), &[]);
        let third = other.submit(launch(100), &[second]);
        assert!(third.wait().is_ok() && first.has_ended());
        assert_eq!(data.read(other.as_ref()).expect("written"), [112, 122, 132]);
    }

    #[test]
    fn a_parameter_may_point_into_a_buffer() {
        const COPY: &str = "hsir 1
            kernel @copy(%from: ptr.global i32[] align 4, %to: ptr.global i32[] align 4, %back: i64) {
              load @from
              %i32 = id.local.x
              %i = extend.u %i32 to i64
              %fp = address %from + %i * 4
              %x = load i32 %fp, @from
              %at = sub %i, %back
              %tp = address %to + %at * 4
              store %tp, %x
              return
            }";
        let device = Simulator::untimed();
        let program = program(&device, COPY);
        let queue = device.queue().expect("a thread");
        let ran = |start: u64, back: u64| -> Result<Vec<i32>> {
            let data = TypedBuffer::from_slice(&device, &[10i32, 20, 30, 40, 50])?;
            let (from, to) = (
                Argument::Buffer(data.buffer().clone()),
                Argument::Part(data.buffer().clone(), start),
            );
            let launch = Launch::new(1, 2, vec![from, to, Argument::Scalar(Type::I64, back)]);
            queue
                .submit(Command::Launch(program.clone(), launch), &[])
                .wait()?;
            data.read(queue.as_ref())
        };
        assert_eq!(ran(2, 0).expect("right"), [10, 20, 10, 20, 50]);
        // What is before the parameter is in its buffer still.
        assert_eq!(ran(3, 1).expect("right"), [10, 20, 10, 20, 50]);
        let error = |start, back| ran(start, back).expect_err("wrong").to_string();
        assert!(
            ran(1, 0).is_err(),
            "one work-item reads what the other one writes"
        );
        assert!(error(4, 0).contains("out of bounds"), "{}", error(4, 0));
        assert!(error(0, 1).contains("out of bounds"), "{}", error(0, 1));
        assert!(
            error(6, 0).contains("6 elements into a buffer of 5"),
            "{}",
            error(6, 0)
        );
    }

    #[test]
    fn of_a_launch_its_first_work_groups_can_be_run_alone() {
        let device = Simulator::untimed();
        let program = program(&device, &INCREMENT.replace("id.local.x", "id.group.x"));
        let queue = device.queue().expect("a thread");
        for (first, expected) in [(0, [1, 1, 1]), (2, [2, 2, 1]), (9, [2, 2, 2])] {
            let data = TypedBuffer::from_slice(&device, &[1i32, 1, 1]).expect("fits");
            let arguments = vec![
                Argument::Buffer(data.buffer().clone()),
                Argument::Scalar(Type::I32, 1),
            ];
            let launch = Launch {
                first_groups: Some(first),
                ..Launch::new(3, 1, arguments)
            };
            assert!(launch.check_whole().is_err(), "a device runs all or nothing");
            let ran = queue.submit(Command::Launch(program.clone(), launch), &[]).wait();
            assert!(ran.is_ok(), "{ran:?}");
            assert_eq!(data.read(queue.as_ref()).expect("written"), expected);
        }
    }

    #[test]
    fn an_error_belongs_to_its_command_and_to_those_after_it() {
        let device = Simulator::untimed();
        let program = program(&device, INCREMENT);
        let queue = device.queue().expect("a thread");
        let data = TypedBuffer::from_slice(&device, &[1i32]).expect("fits");
        let launch = |group: u32| {
            let data = Argument::Buffer(data.buffer().clone());
            let launch = Launch::new(1, group, vec![data, Argument::Scalar(Type::I32, 1)]);
            Command::Launch(program.clone(), launch)
        };
        let bad = queue.submit(launch(2), &[]);
        let after = queue.submit(launch(1), std::slice::from_ref(&bad));
        let independent = queue.submit(launch(1), &[]);
        let error = bad.wait().expect_err("one element for two work-items");
        assert!(error.to_string().contains("out of bounds"), "{error}");
        assert_eq!(after.wait().expect_err("its event failed"), error);
        assert!(independent.wait().is_ok());
    }

    #[test]
    fn memory_is_limited_and_given_back() {
        let device = Simulator::untimed();
        let huge = |length| TypedBuffer::<u8>::from_pattern(&device, length, Pattern::Constant(0));
        let first = huge((1 << 38) - 10).expect("fits exactly, with room for ten bytes");
        let error = huge(11).expect_err("eleven are too many");
        assert_eq!(error.exit_status(), 3);
        drop(first);
        assert!(huge(11).is_ok());
        // A checker of its own kind holds the data of several launches.
        let device = Simulator::custom(device.description().clone(), Options::CHECKING, None);
        let huge = |length| TypedBuffer::<u8>::from_pattern(&device, length, Pattern::Constant(0));
        let _several = [1 << 38, 1 << 38].map(|length| huge(length).expect("each fits"));
        let error = huge((1 << 38) + 1).expect_err("more than there is");
        assert_eq!(error.exit_status(), 3);
    }

    #[test]
    fn launches_are_checked_before_they_run() {
        let device = Simulator::untimed();
        let program = program(&device, INCREMENT);
        let queue = device.queue().expect("a thread");
        let data = TypedBuffer::from_slice(&device, &[1i32; 8]).expect("fits");
        let buffer = || Argument::Buffer(data.buffer().clone());
        let number = || Argument::Scalar(Type::I32, 1);
        let error = |launch: Launch| {
            let event = queue.submit(Command::Launch(program.clone(), launch), &[]);
            event.wait().expect_err("not a launch").to_string()
        };
        assert_eq!(
            error(Launch::new(1, 8, vec![buffer()])),
            "`increment` was given 1 arguments; it takes 2"
        );
        assert_eq!(
            error(Launch::new(1, 8, vec![number(), number()])),
            "parameter `data` was given `i32`; it takes a buffer of `i32`"
        );
        assert_eq!(
            error(Launch::new(1, 8, vec![buffer(), Argument::Scalar(Type::I64, 1)])),
            "parameter `by` was given `i64`; it takes `i32`"
        );
        assert_eq!(
            error(Launch::new(1, 2048, vec![buffer(), number()])),
            "a work-group of 2048 work-items is too large for sim; at most 1024 work-items, 1024×1024×64 along the dimensions"
        );
        assert_eq!(
            error(Launch::new(0, 8, vec![buffer(), number()])),
            "a launch of 0 work-groups of 8 work-items is empty; every dimension is at least 1"
        );
        let mut launch = Launch::new(1, 8, vec![buffer(), number()]);
        launch.sub_group_size = Some(64);
        assert_eq!(
            error(launch),
            "sim has no sub-groups of 64 work-items; it has 8, 16, 32"
        );
    }

    /// Says that each launch takes as long as its first argument's first element, and spoils that.
    struct Spoiling;

    impl Clock for Spoiling {
        fn compile(&self, kernel: &Arc<Kernel>) -> Result<Arc<dyn Any + Send + Sync>> {
            Ok(Arc::new(kernel.name.clone()))
        }

        fn time(
            &self,
            _kernel: &Arc<Kernel>,
            compiled: &Arc<dyn Any + Send + Sync>,
            launch: &Launch,
            _stack: u32,
        ) -> Result<Timing> {
            assert!(compiled.downcast_ref::<String>().is_some());
            let Some(Argument::Buffer(buffer)) = launch.arguments.first() else {
                return Err(Error::bug("the launch has a buffer"));
            };
            let memory: Arc<BufferMemory> = buffer.implementation()?;
            let mut bytes = [0; 4];
            memory.copy_out(0, &mut bytes)?;
            memory.copy_in(0, &[0xff; 4]);
            Ok(Timing {
                elapsed_ns: f64::from(i32::from_le_bytes(bytes)),
                ..Timing::default()
            })
        }
    }

    #[test]
    fn the_clock_sees_the_inputs_and_changes_nothing() {
        let description = Simulator::untimed().description().clone();
        let device = Simulator::custom(description, Options::FAST, Some(Arc::new(Spoiling)));
        let program = program(&device, INCREMENT);
        let queue = device.queue().expect("a thread");
        let data = TypedBuffer::from_slice(&device, &[5i32]).expect("fits");
        let mut ends = Vec::new();
        for _ in 0..2 {
            let arguments = vec![
                Argument::Buffer(data.buffer().clone()),
                Argument::Scalar(Type::I32, 2),
            ];
            let event = queue.submit(
                Command::Launch(program.clone(), Launch::new(1, 1, arguments)),
                &[],
            );
            ends.push(event.wait().expect("runs").times.ended_ns);
        }
        assert_eq!(ends, [5.0, 12.0]);
        assert_eq!(data.read(queue.as_ref()).expect("written"), [9]);
    }
}
