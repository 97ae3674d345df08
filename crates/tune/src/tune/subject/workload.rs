//! A kernel with its geometry and arguments, independent of a device.
//!
//! A workload has the contents of each parameter, and names the buffers that hold results. [`Workload::bind`] allocates it on a
//! device; inputs are allocated once, outputs anew for every launch, so that no launch sees another's writes.

use std::sync::Arc;

use crate::back::machine::target::LEAST_PROMISED;
use crate::back::machine::{self, MachineProgram};
use crate::device::sim::Simulator;
use crate::device::sim::functional::{BufferMemory, Options};
use crate::device::{Argument, Buffer, Command, Description, Device, Fill, Launch, Outcome, Queue};
use crate::error::{Error, Result};
use crate::front::ptx::Original;
use crate::ir::line::PrintLimits;
use crate::ir::{Kernel, PointerFacts, Type};
use crate::model::DeviceModel;
use crate::prefetch::plan::REGISTERS;
use crate::report::{Geometry, number};
use crate::tune::check::compare::{Compare, PART, checksum_in_parts};

/// A kernel, its geometry, and the argument of each of its parameters.
#[derive(Clone, Debug)]
pub struct Workload {
    /// The kernel.
    pub kernel: Arc<Kernel>,
    /// Work-groups along each dimension.
    pub groups: [u32; 3],
    /// Work-items of a work-group along each dimension.
    pub group: [u32; 3],
    /// One for each parameter of the kernel, in order.
    pub given: Vec<ArgumentSpec>,
    /// The module that the kernel was read from, if it came in PTX: its kernels are measured in that module.
    #[doc(hidden)]
    pub original: Option<Arc<Original>>,
    /// Memory at addresses that a program chose, if the launch is meaningful only there; it takes precedence over the buffers
    /// of `given`.
    #[doc(hidden)]
    pub placed: Option<Arc<Placed>>,
    /// The kernel and the geometry whose work this is, divided into other work-groups, if it is: what is found out about that
    /// launch's memory holds here, too.
    #[doc(hidden)]
    pub divides: Option<(Arc<Kernel>, Geometry)>,
}

/// Memory at addresses of a program's choosing.
#[derive(Clone, Debug, Default)]
pub struct Placed {
    /// The allocations.
    pub memory: Vec<PlacedMemory>,
    /// Where each pointer parameter leads; nothing for one that gets a buffer of its own, and for scalars.
    pub pointers: Vec<Option<u64>>,
}

/// An allocation at an address of a program's choosing: an output.
#[derive(Clone, Debug)]
pub struct PlacedMemory {
    /// Its name for people.
    pub name: String,
    /// Address of its first byte.
    pub address: u64,
    /// Its contents before the launch.
    pub bytes: Arc<[u8]>,
}

/// A parameter's argument.
#[derive(Clone, Debug)]
pub enum ArgumentSpec {
    /// A scalar's bits.
    Scalar(Type, u64),
    /// A buffer that the kernel only reads.
    Input {
        /// Type of the elements.
        element: Type,
        /// Number of elements.
        length: u64,
        /// Its contents.
        fill: Fill,
    },
    /// A buffer that holds results.
    Output {
        /// Type of the elements.
        element: Type,
        /// Number of elements.
        length: u64,
        /// Its contents before the launch.
        fill: Fill,
        /// When two results are the same.
        compare: Compare,
    },
    /// A pointer into the buffer of another parameter.
    Part {
        /// That parameter's position.
        of: usize,
        /// How many of the buffer's elements are in front of its target: all of them for its end.
        start: u64,
    },
}

impl ArgumentSpec {
    /// [`ArgumentSpec::Input`].
    pub fn input(element: Type, length: u64, fill: Fill) -> ArgumentSpec {
        ArgumentSpec::Input {
            element,
            length,
            fill,
        }
    }

    /// [`ArgumentSpec::Output`].
    pub fn output(element: Type, length: u64, fill: Fill, compare: Compare) -> ArgumentSpec {
        ArgumentSpec::Output {
            element,
            length,
            fill,
            compare,
        }
    }

    /// The elements' type, their number and the contents of a buffer; none of a scalar or a part of another buffer.
    pub(crate) fn contents(&self) -> Option<(Type, u64, &Fill)> {
        match self {
            ArgumentSpec::Input {
                element,
                length,
                fill,
            }
            | ArgumentSpec::Output {
                element,
                length,
                fill,
                ..
            } => Some((*element, *length, fill)),
            ArgumentSpec::Scalar(..) | ArgumentSpec::Part { .. } => None,
        }
    }

    /// A buffer of this many elements: an output, compared bit by bit, unless the kernel only reads it.
    pub fn buffer(facts: &PointerFacts, length: u64, fill: Fill) -> ArgumentSpec {
        let element = facts.element;
        match facts.read_only {
            true => ArgumentSpec::input(element, length, fill),
            false => ArgumentSpec::output(element, length, fill, Compare::Bits),
        }
    }
}

/// A workload on a device.
#[derive(Debug)]
pub struct Bound {
    workload: Workload,
    /// The arguments that all launches share; none where each launch has its own.
    shared: Vec<Option<Argument>>,
}

/// A launch with outputs of its own.
#[derive(Debug)]
pub struct Prepared {
    /// The launch, for the kernel or for any kernel with the same parameters.
    pub launch: Launch,
    /// The outputs, in the order of the parameters, each with its parameter's name.
    pub outputs: Vec<Output>,
}

/// One output of a launch.
#[derive(Clone, Debug)]
pub struct Output {
    /// The parameter's name.
    pub name: String,
    /// Its memory.
    pub buffer: Buffer,
    /// When two results are the same.
    pub compare: Compare,
}

impl Workload {
    /// A kernel along one dimension whose parameters have nothing yet; see [`Workload::with`].
    pub fn new(kernel: Arc<Kernel>, groups: u32, group: u32) -> Workload {
        Workload {
            kernel,
            groups: [groups, 1, 1],
            group: [group, 1, 1],
            given: Vec::new(),
            original: None,
            placed: None,
            divides: None,
        }
    }

    /// Gives the next parameter something, and the parameter after it the length where it is that of a buffer.
    ///
    /// # Errors
    /// The next parameter has another name.
    pub fn with(mut self, name: &str, given: ArgumentSpec) -> Result<Workload> {
        let next = self.kernel.params.get(self.given.len());
        let Some(param) = next.filter(|param| param.name == name) else {
            let next = next.map_or("nothing".to_owned(), |param| format!("`{}`", param.name));
            return Err(Error::usage(format!(
                "`{}` takes {next} next, not `{name}`",
                self.kernel.shown()
            )));
        };
        let length = match given {
            ArgumentSpec::Input { length, .. } | ArgumentSpec::Output { length, .. } => Some(length),
            ArgumentSpec::Scalar(..) | ArgumentSpec::Part { .. } => None,
        };
        let length_param = param.facts.and_then(|facts| facts.length);
        self.given.push(given);
        let after = self.kernel.params.get(self.given.len());
        if let (Some(length), Some(after)) = (length, after.filter(|after| Some(after.value) == length_param))
        {
            self.given
                .push(ArgumentSpec::Scalar(self.kernel.ty(after.value), length));
        }
        Ok(self)
    }

    /// Allocates the inputs.
    ///
    /// # Errors
    /// The kernel has another number of parameters, or the device has no memory for them.
    pub fn bind(&self, device: &dyn Device) -> Result<Bound> {
        let (given, wanted) = (self.given.len(), self.kernel.params.len());
        if given != wanted {
            return Err(
                Error::usage(format!("`{}` was given {given} arguments", self.kernel.shown()))
                    .accepted(format!("it takes {wanted}")),
            );
        }
        let shared = self
            .given
            .iter()
            .enumerate()
            .map(|(position, given)| match given {
                _ if self.pointer(position).is_some() => Ok(None),
                ArgumentSpec::Scalar(ty, bits) => Ok(Some(Argument::Scalar(*ty, *bits))),
                ArgumentSpec::Input {
                    element,
                    length,
                    fill,
                } => Ok(Some(Argument::Buffer(device.allocate(
                    *element,
                    *length,
                    fill.clone(),
                )?))),
                ArgumentSpec::Output { .. } | ArgumentSpec::Part { .. } => Ok(None),
            });
        Ok(Bound {
            workload: self.clone(),
            shared: shared.collect::<Result<_>>()?,
        })
    }

    /// Where a parameter leads, if that is an address of a program's choosing.
    pub(crate) fn pointer(&self, param: usize) -> Option<u64> {
        self.placed.as_ref()?.pointers.get(param).copied().flatten()
    }

    /// The names of the outputs, in the order in which they are read: memory at addresses of a program's choosing, and then
    /// in the order of the parameters.
    #[doc(hidden)]
    pub fn output_names(&self) -> impl Iterator<Item = String> {
        let placed = self.placed.iter().flat_map(|placed| &placed.memory);
        let placed = placed.map(|own| own.name.clone());
        let params = self.given.iter().zip(&self.kernel.params).enumerate();
        let own = params
            .filter(move |(position, (given, _))| {
                matches!(given, ArgumentSpec::Output { .. }) && self.pointer(*position).is_none()
            })
            .map(|(_, (_, param))| param.name.clone());
        placed.chain(own)
    }

    /// How many work-groups a core will hold, where the launch leaves it with few: the compiler may then use
    /// more registers than it would otherwise dare to.
    pub(crate) fn groups_promised(&self, cores: u32, registers_per_core: u32) -> Option<u32> {
        let items: u64 = self.group.iter().map(|&items| u64::from(items)).product();
        let resident = self.groups_of_core(cores);
        let registers = u64::from(registers_per_core) / (resident * items).max(1);
        u32::try_from(resident)
            .ok()
            .filter(|_| registers >= u64::from(LEAST_PROMISED))
    }

    /// The 32-bit registers of a work-item that its launch leaves on a core, where they are more than the compiler would dare to
    /// use.
    pub(crate) fn registers_left(&self, cores: u32, registers_per_core: u32) -> Option<u32> {
        let items: u64 = self.group.iter().map(|&items| u64::from(items)).product();
        let resident = self.groups_of_core(cores) * items.next_multiple_of(32);
        let left = u64::from(registers_per_core) / resident.max(1) / 8 * 8;
        let left = u32::try_from(left).unwrap_or(u32::MAX).min(*REGISTERS.end());
        (left >= LEAST_PROMISED).then_some(left)
    }

    /// A kernel of this workload in the instructions that the simulator of a device times.
    ///
    /// # Errors
    /// It accesses blocks that the device does not have.
    #[doc(hidden)]
    pub fn lowered(&self, kernel: &Kernel, model: &DeviceModel) -> Result<MachineProgram> {
        let items = self.group.iter().product();
        let description = model.description();
        let sub_group = description.sub_group_size(kernel);
        description.check_blocks(kernel, u64::from(items), sub_group)?;
        let target = machine::Target::of(model, sub_group);
        if self.serves_any_launch() {
            return Ok(machine::lower_for_any_launch(kernel, &target, model, items));
        }
        let groups = u32::try_from(self.groups_of_core(*model.core.count)).unwrap_or(u32::MAX);
        Ok(machine::lower_for_groups(kernel, &target, model, groups, items))
    }

    /// Whether a kernel is its own, as it was read.
    pub(crate) fn is_own(&self, kernel: &Kernel) -> bool {
        kernel.body == self.kernel.body && kernel.max_registers == self.kernel.max_registers
    }

    /// Whether its kernel and its plans stand in a module that serves any launch: the user's own PTX.
    pub(crate) fn serves_any_launch(&self) -> bool {
        self.original.is_some()
    }

    /// Work-groups of the busiest core when the launch is spread over `cores` cores.
    fn groups_of_core(&self, cores: u32) -> u64 {
        let groups: u64 = self.groups.iter().map(|&groups| u64::from(groups)).product();
        groups.div_ceil(u64::from(cores.max(1)))
    }

    /// A kernel's outputs with these parameters, on the simulator's functional engine without its checks, as on a device with
    /// these limits.
    ///
    /// # Errors
    /// It faults, or needs a feature that such a device lacks.
    #[doc(hidden)]
    pub fn computed(&self, kernel: &Arc<Kernel>, device: Description) -> Result<Vec<Vec<u8>>> {
        let simulator = Simulator::custom(device, Options::FAST, None);
        Ok(self.bind(&simulator)?.run(&simulator, kernel)?.1)
    }

    /// Whether a device has memory for all buffers together.
    ///
    /// # Errors
    /// It has less.
    pub(crate) fn check_fits(&self, device: &Description) -> Result<()> {
        let (bytes, room) = (self.bytes(), device.memory_bytes);
        if bytes <= room {
            return Ok(());
        }
        let [bytes, room] = [bytes, room].map(|bytes| number::bytes(bytes as f64));
        Err(Error::device(format!(
            "the buffers of the launch take {bytes}, and {} has {room}",
            device.name
        ))
        .accepted("a launch with less data, or a device with more memory"))
    }

    /// Bytes of all buffers; saturates.
    pub fn bytes(&self) -> u64 {
        let bytes = self.given.iter().map(|given| match given {
            ArgumentSpec::Scalar(..) | ArgumentSpec::Part { .. } => 0,
            ArgumentSpec::Input { element, length, .. } | ArgumentSpec::Output { element, length, .. } => {
                length.saturating_mul(u64::from(element.bytes()))
            }
        });
        let placed = self.placed.iter().flat_map(|placed| &placed.memory);
        let placed = placed.map(|own| own.bytes.len() as u64);
        bytes.chain(placed).fold(0, u64::saturating_add)
    }
}

impl Bound {
    /// The bound arguments.
    pub(crate) fn workload(&self) -> &Workload {
        &self.workload
    }

    /// A launch with fresh outputs.
    ///
    /// # Errors
    /// The device has no memory for the outputs.
    pub fn prepare(&self, device: &dyn Device) -> Result<Prepared> {
        let mut outputs = Vec::new();
        let mut arguments: Vec<Option<Argument>> = Vec::with_capacity(self.shared.len());
        let memory = self.placed(device, &mut outputs)?;
        let parameters = self.workload.kernel.params.iter();
        for (position, ((given, shared), param)) in self
            .workload
            .given
            .iter()
            .zip(&self.shared)
            .zip(parameters)
            .enumerate()
        {
            let pointer = self.workload.pointer(position);
            arguments.push(match (shared, given) {
                _ if let Some(address) = pointer => {
                    let element = param.facts.map_or(Type::I8, |facts| facts.element);
                    Some(pointer_to(&memory, address, element))
                }
                (Some(shared), _) => Some(shared.clone()),
                (None, ArgumentSpec::Part { .. }) => None,
                (
                    None,
                    ArgumentSpec::Output {
                        element,
                        length,
                        fill,
                        compare,
                    },
                ) => {
                    let buffer = device.allocate(*element, *length, fill.clone())?;
                    outputs.push(Output {
                        name: param.name.clone(),
                        buffer: buffer.clone(),
                        compare: *compare,
                    });
                    Some(Argument::Buffer(buffer))
                }
                (None, ArgumentSpec::Scalar(..) | ArgumentSpec::Input { .. }) => {
                    return Err(Error::bug(format!("parameter `{}` was not bound", param.name)));
                }
            });
        }
        let part =
            |(number, argument): (usize, &Option<Argument>)| match (argument, &self.workload.given[number]) {
                (None, &ArgumentSpec::Part { of, start }) => match arguments.get(of) {
                    Some(Some(Argument::Buffer(buffer))) => Ok(Argument::Part(buffer.clone(), start)),
                    _ => Err(Error::bug("a pointer into something other than a buffer")),
                },
                (Some(argument), _) => Ok(argument.clone()),
                (None, _) => Err(Error::bug("an argument that was not bound")),
            };
        let arguments = arguments.iter().enumerate().map(part).collect::<Result<_>>()?;
        let launch = Launch {
            groups: self.workload.groups,
            group: self.workload.group,
            arguments,
            sub_group_size: None,
            operation_limit: None,
            first_groups: None,
            memory,
            print_limits: PrintLimits::default(),
        };
        Ok(Prepared { launch, outputs })
    }

    /// The memory at addresses of a program's choosing, allocated anew: all of it may be written.
    fn placed(&self, device: &dyn Device, outputs: &mut Vec<Output>) -> Result<Vec<(u64, Buffer)>> {
        let Some(placed) = &self.workload.placed else {
            return Ok(Vec::new());
        };
        let mut memory = Vec::with_capacity(placed.memory.len());
        for PlacedMemory { name, address, bytes } in &placed.memory {
            let fill = Fill::Bytes(Arc::clone(bytes));
            let buffer = device.allocate(Type::I8, bytes.len() as u64, fill)?;
            outputs.push(Output {
                name: name.clone(),
                buffer: buffer.clone(),
                compare: Compare::Bits,
            });
            memory.push((*address, buffer));
        }
        Ok(memory)
    }

    /// Runs a kernel with the workload's parameters once.
    ///
    /// # Errors
    /// The device's own: it cannot run the kernel, or running it went wrong.
    pub fn launch(&self, device: &dyn Device, kernel: &Arc<Kernel>) -> Result<Arc<Outcome>> {
        let program = device.compile(kernel)?;
        let prepared = self.prepare(device)?;
        device
            .queue()?
            .submit(Command::Launch(program, prepared.launch), &[])
            .wait()
    }

    /// Runs a kernel with the workload's parameters once, and reads its outputs.
    ///
    /// # Errors
    /// The device's own: it cannot run the kernel, or running it went wrong.
    pub fn run(&self, device: &dyn Device, kernel: &Arc<Kernel>) -> Result<(Arc<Outcome>, Vec<Vec<u8>>)> {
        let (outcome, outputs, queue) = self.run_unread(device, kernel)?;
        let outputs = outputs.iter().map(|output| output.read(queue.as_ref()));
        let outputs = outputs.collect::<Result<_>>()?;
        Ok((outcome, outputs))
    }

    /// The same with the outputs where they are, and the queue that reads them.
    ///
    /// # Errors
    /// As for [`Bound::run`].
    pub fn run_unread(
        &self,
        device: &dyn Device,
        kernel: &Arc<Kernel>,
    ) -> Result<(Arc<Outcome>, Vec<Output>, Box<dyn Queue>)> {
        let program = device.compile(kernel)?;
        let queue = device.queue()?;
        let prepared = self.prepare(device)?;
        let outcome = queue
            .submit(Command::Launch(program, prepared.launch), &[])
            .wait()?;
        Ok((outcome, prepared.outputs, queue))
    }
}

/// A pointer parameter that leads to an address.
fn pointer_to(memory: &[(u64, Buffer)], address: u64, element: Type) -> Argument {
    let size = u64::from(element.bytes()).max(1);
    let inside = memory
        .iter()
        .find(|(start, buffer)| (*start..start + buffer.bytes()).contains(&address))
        .filter(|(start, _)| (address - start).is_multiple_of(size));
    match inside {
        Some((start, buffer)) => Argument::Part(buffer.seen_as(element), (address - start) / size),
        // A null pointer, or one that the kernel does not follow as it is.
        None => Argument::Address(address),
    }
}

impl Output {
    /// Whether it is known to hold the same as another, on a simulated device; else they have to be read.
    pub(crate) fn is_same(&self, other: &Output) -> bool {
        let memory = |output: &Output| output.buffer.implementation::<BufferMemory>();
        match (memory(self), memory(other)) {
            (Ok(one), Ok(other)) => one.is_same(&other),
            _ => false,
        }
    }

    /// Waits for the queue's earlier commands, then reads every byte.
    ///
    /// # Errors
    /// The device's; an element that was never written.
    pub fn read(&self, queue: &dyn Queue) -> Result<Vec<u8>> {
        self.read_part(queue, 0, self.buffer.bytes())
    }

    /// The same of this many bytes from one on.
    ///
    /// # Errors
    /// As for [`Output::read`].
    pub(crate) fn read_part(&self, queue: &dyn Queue, offset: u64, length: u64) -> Result<Vec<u8>> {
        let read = Command::Read {
            buffer: self.buffer.clone(),
            offset,
            length,
        };
        let outcome = queue.submit(read, &[]).wait();
        let outcome = outcome.map_err(|error| error.at(format!("output `{}`", self.name)))?;
        // The event that had it, too, is gone.
        Ok(Arc::try_unwrap(outcome).map_or_else(|outcome| outcome.bytes.clone(), |outcome| outcome.bytes))
    }

    /// The [`checksum`](crate::tune::checksum) of every byte, of which a part at a time is read.
    ///
    /// # Errors
    /// As for [`Output::read`].
    pub fn checksum(&self, queue: &dyn Queue) -> Result<String> {
        let bytes = self.buffer.bytes();
        let starts = (0..bytes.div_ceil(PART)).map(|part| part * PART);
        checksum_in_parts(starts.map(|start| self.read_part(queue, start, PART.min(bytes - start))))
    }
}
