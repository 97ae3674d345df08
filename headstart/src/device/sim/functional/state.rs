//! What all work-groups of a launch share: the kernel, the geometry, global memory.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use super::address::{self, Layout};
use super::atomics;
use super::buffer::BufferMemory;
use super::fault::Region;
use super::lanes::LANES;
use super::launch_shadow::LaunchShadow;
use super::prefetch::CutOff;
use super::printed::Printed;

use crate::device::model::{DeviceModel, Vendor};
use crate::device::{Argument, Launch};
use crate::ir::{CacheLevel, Kernel, MemoryScope, OpKind, Space, Value};
use crate::{Error, Result};

/// Locks for atomic operations; more make it rarer that different elements meet at one.
const ATOMIC_LOCKS: usize = 64;

/// What the engine looks out for.
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
    /// What to look out for.
    pub mode: Mode,
    /// Which prefetches that leave their buffer are errors, too.
    pub prefetch_bounds: PrefetchBounds,
    /// Operations of one sub-group before it counts as an endless loop, where the launch does not say.
    pub operation_limit: u64,
    /// Most bytes of private and shared memory, registers and checks' records for one work-group.
    pub group_memory_limit: u64,
}

impl Options {
    /// Looks out for everything.
    pub const CHECKING: Options = Options {
        mode: Mode::Checking,
        prefetch_bounds: PrefetchBounds::L1,
        operation_limit: 1 << 30,
        group_memory_limit: 1 << 30,
    };

    /// Looks out for what is wrong on a device: on NVIDIA a prefetch out of bounds has no effect.
    pub fn checking(model: &DeviceModel) -> Options {
        let prefetch_bounds = match model.vendor {
            Vendor::Nvidia => PrefetchBounds::Free,
            Vendor::Intel => PrefetchBounds::L1,
        };
        Options {
            prefetch_bounds,
            ..Options::CHECKING
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
    pub(super) shared: Layout,
    pub(super) private: Layout,
    pub(super) cells: CellSizes,
    pub(super) has_copies: bool,
    pub(super) shadow: LaunchShadow,
    /// It has prefetches that a fence may undo.
    pub(super) follows_prefetches: bool,
    /// Prefetches that a fence undid.
    cut_off: Mutex<BTreeSet<CutOff>>,
    /// Something acquires what others released.
    pub(super) acquires: bool,
    /// Work-groups run one after the other.
    pub(super) in_order: bool,
    /// What atomic operations on global memory hold meanwhile, by address.
    pub(super) atomics: Vec<Mutex<()>>,
    /// What the work-items print.
    pub(super) printed: Printed,
    arguments: Vec<u64>,
}

/// A buffer as a launch sees it.
#[derive(Debug)]
pub(super) struct BoundBuffer {
    pub region: Region,
    pub memory: Arc<BufferMemory>,
    /// No parameter that reaches it may write.
    pub read_only: bool,
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
        for (param, argument) in kernel.params.iter().zip(&launch.arguments) {
            let buffer = match argument {
                Argument::Scalar(ty, bits) => {
                    arguments.push(bits & ty.mask());
                    continue;
                }
                Argument::Buffer(buffer) => buffer,
            };
            let memory: Arc<BufferMemory> = buffer.implementation()?;
            let read_only = param.facts.is_some_and(|facts| facts.read_only);
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
                    memory,
                    read_only: true,
                });
                buffers.len() - 1
            });
            buffers[index].read_only &= read_only;
            let address = address::buffer_address(index);
            arguments.push(match kernel.ty(param.value).space() {
                Some(Space::Generic) => address::to_generic(Space::Global, address),
                _ => address,
            });
        }
        if buffers.len() > address::MOST_BUFFERS {
            return Err(Error::usage(format!("a launch of {} buffers", buffers.len()))
                .accepted(format!("at most {}", address::MOST_BUFFERS)));
        }
        let cells = CellSizes::new(kernel);
        let written = |buffer: &BoundBuffer| match options.mode {
            Mode::Checking if !buffer.read_only => buffer.memory.bytes(),
            _ => 0,
        };
        let shadow = LaunchShadow::new(buffers.iter().map(written), cells.global);
        Ok(LaunchState {
            kernel,
            launch,
            options,
            sub_group_size,
            buffers,
            shared: Layout::new(kernel, Space::Shared),
            private: Layout::new(kernel, Space::Private),
            cells,
            has_copies: has_copies(kernel),
            shadow,
            follows_prefetches: options.mode == Mode::Checking && has_fenced_prefetches(kernel),
            cut_off: Mutex::default(),
            acquires: atomics::acquires(kernel),
            in_order: atomics::depends_on_order(kernel),
            atomics: (0..ATOMIC_LOCKS).map(|_| Mutex::default()).collect(),
            printed: Printed::default(),
            arguments,
        })
    }

    /// The bits of each parameter, in order.
    pub fn arguments(&self) -> &[u64] {
        &self.arguments
    }

    /// The addresses of each buffer.
    pub fn extents(&self) -> Vec<std::ops::Range<u64>> {
        let extent = |(index, buffer): (usize, &BoundBuffer)| {
            let start = address::buffer_address(index);
            start..start + buffer.memory.bytes()
        };
        self.buffers.iter().enumerate().map(extent).collect()
    }

    /// Where the kernel's shared arrays lie.
    pub fn shared_layout(&self) -> &Layout {
        &self.shared
    }

    /// Where the kernel's private arrays lie.
    pub fn private_layout(&self) -> &Layout {
        &self.private
    }

    /// The buffer and byte offset that a global address means, if it lies in one; buffers count in the
    /// order of the parameters that name them first.
    #[inline]
    pub fn locate(&self, address: u64) -> Option<(usize, u64)> {
        let (buffer, offset) = address::split(Space::Global, address);
        let buffer = buffer.filter(|&buffer| buffer < self.buffers.len())?;
        let offset = u64::try_from(offset).ok()?;
        (offset < self.buffers[buffer].memory.bytes()).then_some((buffer, offset))
    }

    /// An element of global memory as people read it: `values[3]`.
    pub(crate) fn element(&self, address: u64) -> String {
        let Some((buffer, offset)) = self.locate(address) else {
            return format!("address {address:#x}");
        };
        let region = &self.buffers[buffer].region;
        let size = u64::from(region.element.bytes().max(1));
        region.element((offset - offset % size) as i64)
    }

    /// A byte of global memory; none outside the buffers.
    pub(crate) fn byte(&self, address: u64) -> Option<u8> {
        let (buffer, offset) = self.locate(address)?;
        Some(self.buffers[buffer].memory.read(offset, 1) as u8)
    }

    /// Sub-groups of a work-group.
    pub fn sub_groups(&self) -> u32 {
        (self.launch.group_items() as u32).div_ceil(self.sub_group_size)
    }

    /// A fence undid a prefetch.
    pub(super) fn note(&self, cut_off: CutOff) {
        self.cut_off
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(cut_off);
    }

    /// What the author of the kernel should know, though it is no error.
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
        cut_off.iter().map(note).collect()
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
        if let Some((number, writer, other)) = self.shadow.race() {
            let element = self.element(number << self.cells.global);
            let who = |item| super::fault::describe_item(self.launch, item);
            let what = format!(
                "{} writes {element}, which {} {} at {} in the same launch: nothing orders work-groups",
                who(writer.item),
                who(other.item),
                if other.wrote { "writes" } else { "reads" },
                self.kernel.describe_place(other.place),
            );
            return Err(super::fault::error(self.kernel, writer.place, what));
        }
        self.shadow
            .written(|buffer, offset| self.buffers[buffer].memory.mark_written(offset, cell));
        Ok(())
    }
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
        OpKind::Fence(_, scope) => fences |= *scope == MemoryScope::Device,
        _ => {}
    });
    prefetches && fences
}

fn has_copies(kernel: &Kernel) -> bool {
    let mut found = false;
    kernel
        .body
        .walk(&mut |op| found |= matches!(op.kind, OpKind::Copy { .. }));
    found
}
