//! The common state of a launch's work-groups: the kernel, the geometry, global memory.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::address::{self, Layout};
use super::atomics;
use super::buffer::BufferMemory;
use super::clock;
use super::fault::Region;
use super::flights;
use super::histories::Histories;
use super::lanes::LANES;
use super::launch_shadow::LaunchShadow;
use super::opaque;
use super::order::Scopes;
use super::phases;
use super::places::Places;
use super::prefetch::CutOff;
use super::printed::Printed;
use super::shadow::{FastMap, did};
use super::written::SameBits;

use crate::device::{Argument, Launch};
use crate::ir::{Array, CacheLevel, Kernel, OpKind, Races, Space, Value};
use crate::model::{DeviceModel, Vendor};
use crate::{Error, Result};

/// Locks for atomic operations; more make it rarer that different elements meet at one.
const ATOMIC_LOCKS: usize = 64;

/// The engine's checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Everything.
    Checking,
    /// Accesses out of bounds or misaligned, and endless loops.
    Fast,
}

/// Which prefetches must stay in bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrefetchBounds {
    /// None: NVIDIA's have no effect out of bounds.
    Free,
    /// Those to L1, which fault on Intel's devices.
    L1,
    /// All.
    All,
}

/// How a kernel is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The checks.
    pub mode: Mode,
    /// Which prefetches that leave their buffer are errors, too.
    pub prefetch_bounds: PrefetchBounds,
    /// Operations of one sub-group before it counts as an endless loop, where the launch does not say.
    pub operation_limit: u64,
    /// Most bytes of private and shared memory, registers and checks' records for one work-group.
    pub group_memory_limit: u64,
    /// How many work-groups a device has resident at once: so many may wait for each other.
    pub resident_groups: u64,
    /// Whether a barrier does without work-items that have ended. NVIDIA's GPUs since Volta wait for those that have not; in
    /// OpenCL a barrier that not all work-items of a work-group reach is undefined.
    pub ended_may_miss_barriers: bool,
}

impl Options {
    /// Looks out for everything.
    pub const CHECKING: Options = Options {
        mode: Mode::Checking,
        prefetch_bounds: PrefetchBounds::L1,
        operation_limit: 1 << 30,
        group_memory_limit: 1 << 30,
        resident_groups: u64::MAX,
        ended_may_miss_barriers: true,
    };

    /// Checks for errors on an OpenCL device of any vendor.
    pub const CHECKING_OPENCL: Options = Options {
        ended_may_miss_barriers: false,
        ..Options::CHECKING
    };

    /// Checks for errors on a device: on NVIDIA's a prefetch out of bounds has no effect, and a barrier does not wait for
    /// work-items that have ended.
    pub fn checking(model: &DeviceModel) -> Options {
        match model.vendor {
            Vendor::Nvidia => Options {
                prefetch_bounds: PrefetchBounds::Free,
                ..Options::CHECKING
            },
            Vendor::Intel => Options::CHECKING_OPENCL,
        }
    }

    /// As fast as it goes.
    pub const FAST: Options = Options {
        mode: Mode::Fast,
        ..Options::CHECKING
    };
}

/// A launch, ready to be run work-group by work-group.
#[derive(Debug)]
pub struct LaunchState<'l> {
    pub(super) kernel: &'l Kernel,
    pub(super) launch: &'l Launch,
    pub(super) options: Options,
    pub(super) sub_group_size: u32,
    pub(super) buffers: Vec<BoundBuffer>,
    /// Where buffers lie, if a program has chosen it.
    places: Option<Places>,
    pub(super) shared: Layout,
    pub(super) private: Layout,
    pub(super) cells: CellSizes,
    pub(super) has_copies: bool,
    /// It has products of warp groups.
    pub(super) has_products: bool,
    pub(super) shadow: LaunchShadow,
    /// It has prefetches that a fence may undo.
    pub(super) follows_prefetches: bool,
    /// Prefetches that a fence undid.
    cut_off: Mutex<BTreeSet<CutOff>>,
    /// More than barriers orders the work-items of a work-group.
    pub(super) is_ordered: bool,
    pub(super) scopes: Scopes,
    /// Work-groups may see each other's writes: they run on one thread.
    pub(super) in_order: bool,
    /// A work-item may wait in a loop for others.
    pub(super) may_spin: bool,
    /// Bits of a work-item's number in its work-group.
    pub(super) group_bits: u32,
    /// For each work-group the writable buffers that it read without having written the element itself, as bits by
    /// [`bit_of`](super::sample::bit_of).
    pub(super) looked: Mutex<FastMap<u64>>,
    /// Stores that race with others of the same bits.
    same_bits: Mutex<SameBits>,
    /// Accesses that race as the program means it.
    meant: Mutex<SameBits>,
    /// Not all accesses could be remembered.
    is_incomplete: AtomicBool,
    /// The current values of atomic operations on global memory, by address.
    pub(super) atomics: Vec<Mutex<()>>,
    /// The work-items' printed lines.
    pub(super) printed: Printed,
    arguments: Vec<u64>,
    groups: u64,
}

/// A buffer as a launch sees it.
#[derive(Debug)]
pub(super) struct BoundBuffer {
    pub region: Region,
    /// The address of its first byte, as the kernel sees it.
    pub start: u64,
    pub memory: Arc<BufferMemory>,
    /// No parameter that reaches it may write.
    pub read_only: bool,
    /// Which races for it the program means.
    pub races: Races,
}

/// Sizes of the cells in which accesses are recorded, as powers of two.
#[derive(Clone, Copy, Debug)]
pub(super) struct CellSizes {
    pub global: u32,
    pub shared: u32,
}

impl<'l> LaunchState<'l> {
    /// Binds a launch's buffers. The launch must have passed [`Launch::check`].
    ///
    /// # Errors
    /// A buffer is of another device; sub-groups are larger than [`LANES`].
    pub fn new(
        kernel: &'l Kernel,
        launch: &'l Launch,
        sub_group_size: u32,
        options: Options,
    ) -> Result<LaunchState<'l>> {
        if sub_group_size == 0 || sub_group_size as usize > LANES {
            return Err(Error::device(format!(
                "the simulator has no sub-groups of {sub_group_size} work-items"
            ))
            .accepted(format!("at most {LANES}")));
        }
        let mut buffers: Vec<BoundBuffer> = Vec::new();
        let mut arguments = Vec::new();
        let placed = launch.memory.iter().map(|(start, buffer)| {
            let memory: Arc<BufferMemory> = buffer.implementation()?;
            Ok((*start, memory))
        });
        let placed: Vec<_> = placed.collect::<Result<_>>()?;
        let chosen = |memory: &Arc<BufferMemory>| {
            let own = placed.iter().find(|(_, other)| Arc::ptr_eq(other, memory));
            own.map(|&(start, _)| start)
        };
        let start_of = |index: usize, memory: &Arc<BufferMemory>| match placed.is_empty() {
            true => address::buffer_address(index),
            false => chosen(memory).unwrap_or_else(|| Places::elsewhere(index)),
        };
        for (param, argument) in kernel.params.iter().zip(&launch.arguments) {
            let (buffer, start) = match argument {
                Argument::Scalar(ty, bits) => {
                    arguments.push(bits & ty.mask());
                    continue;
                }
                Argument::Address(address) => {
                    arguments.push(*address);
                    continue;
                }
                Argument::Buffer(buffer) => (buffer, 0),
                Argument::Part(buffer, start) => (buffer, *start),
            };
            let memory: Arc<BufferMemory> = buffer.implementation()?;
            // Nothing is written through a number.
            let read_only = match kernel.ty(param.value).is_pointer() {
                true => param.facts.is_some_and(|facts| facts.read_only),
                false => true,
            };
            let known = buffers
                .iter()
                .position(|known| Arc::ptr_eq(&known.memory, &memory));
            let index = known.unwrap_or_else(|| {
                let region = Region {
                    name: param.name.clone(),
                    element: param.facts.map_or(memory.element(), |facts| facts.element),
                    bytes: memory.bytes(),
                };
                buffers.push(BoundBuffer {
                    region,
                    start: start_of(buffers.len(), &memory),
                    memory,
                    read_only: true,
                    races: Races::None,
                });
                buffers.len() - 1
            });
            buffers[index].read_only &= read_only;
            let races = param.facts.map_or(Races::None, |facts| facts.races);
            buffers[index].races = races.max(buffers[index].races);
            let start = start * u64::from(buffer.element().bytes());
            let address = buffers[index].start + start;
            arguments.push(match kernel.ty(param.value).space() {
                Some(Space::Generic) => address::to_generic(Space::Global, address),
                _ => address,
            });
        }
        for (start, memory) in &placed {
            // Memory that no parameter names may be reached through other memory, and written.
            let known = buffers
                .iter_mut()
                .find(|known| Arc::ptr_eq(&known.memory, memory));
            match known {
                Some(known) => known.read_only = false,
                None => buffers.push(BoundBuffer {
                    region: Region {
                        name: format!("memory at {start:#x}"),
                        element: memory.element(),
                        bytes: memory.bytes(),
                    },
                    start: *start,
                    memory: Arc::clone(memory),
                    read_only: false,
                    races: Races::None,
                }),
            }
        }
        let places = match placed.is_empty() {
            true => None,
            false => Some(Places::new(
                buffers.iter().map(|buffer| (buffer.start, buffer.memory.bytes())),
            )?),
        };
        if buffers.len() > address::MOST_BUFFERS {
            return Err(Error::usage(format!("a launch of {} buffers", buffers.len()))
                .accepted(format!("at most {}", address::MOST_BUFFERS)));
        }
        let cells = CellSizes::new(kernel);
        let written = |buffer: &BoundBuffer| match options.mode {
            Mode::Checking if !buffer.read_only => buffer.memory.bytes(),
            _ => 0,
        };
        let in_order = atomics::depends_on_order(kernel);
        let written = |buffer: &BoundBuffer| if in_order { 0 } else { written(buffer) };
        let shadow = LaunchShadow::new(buffers.iter().map(written), cells.global);
        let group_bits = clock::bits_for(launch.group_items());
        let groups = launch.group_count();
        if in_order && options.mode == Mode::Checking && groups > 1 << (u32::BITS - group_bits.min(u32::BITS))
        {
            return Err(Error::device(format!(
                "`{}` is launched in {groups} work-groups that may see each other's writes, which the simulator runs one by one",
                kernel.shown()
            ))
            .accepted(format!("at most {}", 1u64 << (u32::BITS - group_bits.min(u32::BITS)))));
        }
        Ok(LaunchState {
            kernel,
            launch,
            options,
            sub_group_size,
            buffers,
            places,
            shared: Layout::new(kernel, Space::Shared),
            private: Layout::new(kernel, Space::Private),
            cells,
            has_copies: has_copies(kernel),
            has_products: flights::has_products(kernel),
            shadow,
            follows_prefetches: options.mode == Mode::Checking && has_fenced_prefetches(kernel),
            cut_off: Mutex::default(),
            is_ordered: in_order || atomics::acquires(kernel),
            scopes: atomics::scopes(kernel),
            in_order,
            may_spin: atomics::may_spin(kernel),
            group_bits,
            looked: Mutex::default(),
            same_bits: Mutex::default(),
            meant: Mutex::default(),
            is_incomplete: AtomicBool::new(false),
            atomics: (0..ATOMIC_LOCKS).map(|_| Mutex::default()).collect(),
            printed: Printed::new(&launch.print_limits),
            arguments,
            groups: launch.group_count(),
        })
    }

    /// The bits of each parameter, in order.
    pub fn arguments(&self) -> &[u64] {
        &self.arguments
    }

    /// Work-groups of the launch.
    pub fn group_count(&self) -> u64 {
        self.groups
    }

    /// The addresses of each buffer.
    pub fn extents(&self) -> Vec<std::ops::Range<u64>> {
        let extent = |buffer: &BoundBuffer| buffer.start..buffer.start + buffer.memory.bytes();
        self.buffers.iter().map(extent).collect()
    }

    /// The stack of a card in whose memory each buffer lies.
    pub fn stacks(&self) -> Vec<u32> {
        self.buffers.iter().map(|buffer| buffer.memory.stack()).collect()
    }

    /// The memory of each buffer.
    pub fn memories(&self) -> impl Iterator<Item = &BufferMemory> {
        self.buffers.iter().map(|buffer| &*buffer.memory)
    }

    /// An address that is meant for no buffer, as the kernel has it.
    pub(super) fn shown(&self, address: u64) -> u64 {
        match self.places {
            Some(_) => Places::shown(address),
            None => address,
        }
    }

    /// An address as a kernel computes with it, as its space and the address that names its buffer or array there.
    #[inline]
    pub(super) fn resolve(&self, space: Space, address: u64) -> (Space, u64) {
        let (space, address) = match space {
            Space::Generic => address::from_generic(address),
            _ => (space, address),
        };
        match (&self.places, space) {
            (Some(places), Space::Global) => (space, places.named(address)),
            _ => (space, address),
        }
    }

    /// The buffer that an address of a space, as the kernel sees it, means, and the byte offset in it, which may lie behind its
    /// end; none if it means none, or lies before it.
    pub(super) fn buffer_of(&self, space: Space, address: u64) -> Option<(usize, u64)> {
        match self.resolve(space, address) {
            (Space::Global, address) => {
                let (buffer, offset) = address::split(Space::Global, address);
                Some((buffer?, u64::try_from(offset).ok()?))
            }
            _ => None,
        }
    }

    /// The buffer and byte offset that a global address, as the kernel sees it, means, if it lies in one; buffers count in the
    /// order of the parameters that name them first.
    #[inline]
    pub(crate) fn locate(&self, address: u64) -> Option<(usize, u64)> {
        let (_, address) = self.resolve(Space::Global, address);
        self.locate_named(address)
    }

    fn locate_named(&self, address: u64) -> Option<(usize, u64)> {
        let (buffer, offset) = address::split(Space::Global, address);
        let buffer = buffer.filter(|&buffer| buffer < self.buffers.len())?;
        let offset = u64::try_from(offset).ok()?;
        (offset < self.buffers[buffer].memory.bytes()).then_some((buffer, offset))
    }

    /// An element of global memory as people read it: `values[3]`.
    #[doc(hidden)]
    pub fn element(&self, address: u64) -> String {
        self.element_at(address, self.locate(address))
    }

    fn element_at(&self, address: u64, place: Option<(usize, u64)>) -> String {
        let Some((buffer, offset)) = place else {
            return format!("address {address:#x}");
        };
        let region = &self.buffers[buffer].region;
        let size = u64::from(region.element.bytes().max(1));
        region.element((offset - offset % size) as i64)
    }

    /// A byte of global memory; none outside the buffers.
    #[doc(hidden)]
    pub fn byte(&self, address: u64) -> Option<u8> {
        let (buffer, offset) = self.locate(address)?;
        Some(self.buffers[buffer].memory.read(offset, 1) as u8)
    }

    /// Sub-groups of a work-group.
    pub fn sub_groups(&self) -> u32 {
        (self.launch.group_items() as u32).div_ceil(self.sub_group_size)
    }

    /// The common record of work-groups that may see each other's writes.
    pub(super) fn histories(&self) -> Box<Histories> {
        let written = self.buffers.iter().map(|buffer| match buffer.read_only {
            true => 0,
            false => buffer.memory.bytes(),
        });
        Box::new(Histories::new(
            written,
            self.cells.global,
            self.options.group_memory_limit,
        ))
    }

    /// Bits of a work-item's number in the launch, if work-groups may see others' writes; else in its work-group.
    pub(super) fn item_bits(&self) -> u32 {
        match self.in_order {
            true => self.group_bits + clock::bits_for(self.launch.group_count()),
            false => self.group_bits,
        }
    }

    /// Operations of one sub-group before it counts as an endless loop.
    pub(super) fn operation_limit(&self) -> u64 {
        self.launch
            .operation_limit
            .unwrap_or(self.options.operation_limit)
    }

    /// Not all accesses could be remembered.
    pub(super) fn note_incomplete(&self) {
        self.is_incomplete.store(true, Ordering::Relaxed);
    }

    /// Notes the buffers that a work-group read without having written the element itself.
    pub(super) fn add_looked(&self, group: u64, buffers: u64) {
        if buffers != 0 {
            let mut looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
            looked.insert(group, buffers);
        }
    }

    /// Adds stores of a work-group that race with others of the same bits.
    pub(super) fn add_same_bits(&self, same_bits: &mut SameBits) {
        self.same_bits
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .append(same_bits);
    }

    /// Adds accesses of a work-group that race as the program means it.
    pub(super) fn add_meant(&self, meant: &mut SameBits) {
        let mut all = self.meant.lock().unwrap_or_else(PoisonError::into_inner);
        all.append(meant);
    }

    /// A fence undid a prefetch.
    pub(super) fn note(&self, cut_off: CutOff) {
        self.cut_off
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(cut_off);
    }

    /// Warnings for the kernel's author.
    pub(super) fn notes(&self) -> Vec<String> {
        let cut_off = self.cut_off.lock().unwrap_or_else(PoisonError::into_inner);
        let place = |place| self.kernel.describe_place(place);
        let note = |cut: &CutOff| {
            format!(
                "{}: the prefetch to L1 may be lost before its load at {}: the fence at {} may empty L1; prefetch again \
                 behind the fence, or to L2",
                place(cut.prefetch),
                place(cut.load),
                place(cut.fence)
            )
        };
        let mut notes: Vec<String> = cut_off.iter().map(note).collect();
        let same_bits = self.same_bits.lock().unwrap_or_else(PoisonError::into_inner);
        notes.extend(same_bits.all().map(|(at, same)| {
            format!(
                "{}: {} writes race with others of the same bits, the first at {}: allowed, for any order leaves the same",
                place(at),
                same.count,
                self.element_of(same.space, same.lowest),
            )
        }));
        let meant = self.meant.lock().unwrap_or_else(PoisonError::into_inner);
        notes.extend(meant.all().map(|(at, raced)| {
            format!(
                "{}: {} accesses race with writes of others, the first at {}: allowed, for `races` says that either outcome \
                 is right",
                place(at),
                raced.count,
                self.element_of(raced.space, raced.lowest),
            )
        }));
        if self.is_incomplete.load(Ordering::Relaxed) {
            let limit = self.options.group_memory_limit;
            notes.push(format!(
                "the records of which work-item touched what take more than {limit} bytes: some races may not be seen"
            ));
        }
        notes
    }

    /// An element of global or shared memory as people read it.
    fn element_of(&self, space: Space, address: u64) -> String {
        if space != Space::Shared {
            return self.element_at(address, self.locate_named(address));
        }
        let (array, offset) = address::split(space, address);
        let array = array
            .and_then(|array| u32::try_from(array).ok())
            .map(Array::from_u32);
        let array = array.and_then(|array| self.kernel.arrays.get(array));
        array.map_or_else(
            || format!("address {address:#x}"),
            |array| {
                let region = Region {
                    name: array.name.clone(),
                    element: array.element,
                    bytes: array.bytes(),
                };
                region.element(offset)
            },
        )
    }

    pub(super) fn is_checking(&self) -> bool {
        self.options.mode == Mode::Checking
    }

    /// Ends a launch whose work-groups have all run without an error: looks for races between groups.
    ///
    /// # Errors
    /// Two work-groups touch the same memory, and one writes.
    pub(super) fn finish(&self) -> Result<()> {
        if !self.is_checking() {
            return Ok(());
        }
        let cell = 1u32 << self.cells.global;
        let meant = |buffer: usize| self.buffers.get(buffer).map_or(Races::None, |bound| bound.races);
        if let Some((number, writer, other)) = self.shadow.race(meant) {
            let element = self.element(number << self.cells.global);
            let who = |item| super::fault::describe_item(self.launch, item);
            let does = |what: u8| other.did & what != 0;
            let verb = match (
                does(did::READ | did::STRONG_READ),
                does(did::WROTE | did::STRONG_WROTE),
            ) {
                (true, true) => "reads and writes",
                (false, true) => "writes",
                _ => "reads",
            };
            let what = format!(
                "{} writes {element}, which {} {verb} at {} in the same launch: nothing orders work-groups",
                who(writer.item),
                who(other.item),
                self.kernel.describe_place(other.place),
            );
            let error = super::fault::error(self.kernel, writer.place, what);
            let (buffer, _) = address::split(Space::Global, number << self.cells.global);
            let name = buffer.and_then(|buffer| self.buffers.get(buffer));
            let name = name.map_or("", |bound| &bound.region.name);
            return Err(meant_by(error, name, !does(did::WROTE | did::STRONG_WROTE)));
        }
        let mut same_bits = SameBits::default();
        for ((buffer, place), (count, lowest)) in self.shadow.same_bits() {
            let lowest = lowest << self.cells.global;
            same_bits.add(place, buffer as u64, Space::Global, lowest, count);
        }
        self.add_same_bits(&mut same_bits);
        self.shadow
            .written(|buffer, offset| self.buffers[buffer].memory.mark_written(offset, cell));
        Ok(())
    }
}

/// A race, with the statement that a launch file may make about it: if one side reads, that it is intended; else that any
/// outcome is right.
pub(super) fn meant_by(error: Error, buffer: &str, one_reads: bool) -> Error {
    let known = error
        .accepts()
        .map(|accepted| format!("{accepted}; "))
        .unwrap_or_default();
    error.accepted(match one_reads {
        true => format!("{known}where either value is right, `races = true` in a launch file"),
        false => format!("{known}where any outcome is right, `races = [\"{buffer}\"]` in a launch file"),
    })
}

impl CellSizes {
    /// The smallest access to each memory: to global memory of a whole vector, since there it is aligned to its size.
    fn new(kernel: &Kernel) -> CellSizes {
        let mut smallest = CellSizes { global: 4, shared: 3 };
        let mut use_of = |space: Option<Space>, element: u32, length: usize| {
            let bits = |bytes: u32| bytes.max(1).trailing_zeros();
            if !matches!(space, Some(Space::Shared | Space::Private)) {
                smallest.global = smallest.global.min(bits(element * length as u32));
            }
            if !matches!(space, Some(Space::Global | Space::Private)) {
                smallest.shared = smallest.shared.min(bits(element));
            }
        };
        kernel.body.walk(&mut |op| {
            let element = |value: Option<&Value>| value.map_or(1, |&value| kernel.ty(value).bytes());
            match &op.kind {
                OpKind::Load { ptr, .. } => {
                    let element = element(op.results.first());
                    use_of(kernel.ty(*ptr).space(), element, op.results.len());
                }
                OpKind::Store { ptr, values, .. } => {
                    use_of(kernel.ty(*ptr).space(), element(values.first()), values.len());
                }
                OpKind::Atomic { ptr, values, .. } => {
                    let element = element(op.results.first().or(values.first()));
                    use_of(kernel.ty(*ptr).space(), element, 1);
                }
                // The driver's functions read byte by byte.
                OpKind::Opaque(what, _) => match opaque::smallest_access(what) {
                    None => use_of(None, 1, 1),
                    Some(Some(bytes)) => use_of(Some(Space::Shared), bytes, 1),
                    Some(None) => {}
                },
                OpKind::Copy { bytes, .. } => {
                    use_of(Some(Space::Global), *bytes, 1);
                    use_of(Some(Space::Shared), 4, 1);
                }
                _ => {}
            }
        });
        smallest
    }
}

/// Whether it prefetches to L1 and has fences that may empty it.
fn has_fenced_prefetches(kernel: &Kernel) -> bool {
    let (mut prefetches, mut fences) = (false, false);
    kernel.body.walk(&mut |op| match &op.kind {
        OpKind::Prefetch { hint, .. } => prefetches |= hint.level == CacheLevel::L1,
        OpKind::Fence(_, scope) => fences |= scope.is_wide(),
        _ => {}
    });
    prefetches && fences
}

fn has_copies(kernel: &Kernel) -> bool {
    let mut found = false;
    kernel.body.walk(&mut |op| {
        found |= match &op.kind {
            OpKind::Copy { .. } => true,
            OpKind::Opaque(what, _) => phases::copies(what),
            _ => false,
        };
    });
    found
}
