//! The common state of a launch's work-groups: the kernel, the geometry, global memory.
//!
//! `bind` makes it from a launch, `findings` collects what the work-groups report.

mod bind;
mod cells;
mod findings;
mod traits;

pub(super) use cells::CellSizes;
pub(super) use findings::{is_rust, meant_by};
pub(super) use traits::Traits;

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use super::address::{self, Layout};
use super::buffer::BufferMemory;
use super::clock;
use super::fault::Region;
use super::histories::Histories;
use super::launch_shadow::LaunchShadow;
use super::options::{Mode, Options};
use super::order::Scopes;
use super::places::Places;
use super::prefetched::CutOff;
use super::printed::Printed;
use super::shadow::FastMap;
use super::written::SameBits;
use crate::device::Launch;
use crate::ir::{Kernel, Races, Space};
use crate::violation::Element;
use crate::{Result, Stop};

/// A launch, ready to be run work-group by work-group.
#[derive(Debug)]
pub struct LaunchState<'l> {
    pub(super) kernel: &'l Kernel,
    pub(super) launch: &'l Launch,
    pub(super) options: Options,
    pub(super) sub_group_size: u32,
    pub(super) buffers: Vec<BoundBuffer>,
    /// Where the buffers lie, if a program has chosen the addresses.
    places: Option<Places>,
    pub(super) shared: Layout,
    pub(super) private: Layout,
    pub(super) cells: CellSizes,
    pub(super) has_copies: bool,
    /// The kernel has products of warp groups.
    pub(super) has_products: bool,
    pub(super) shadow: LaunchShadow,
    /// The kernel has prefetches that a fence may undo.
    pub(super) follows_prefetches: bool,
    /// Prefetches that a fence undid.
    cut_off: Mutex<BTreeSet<CutOff>>,
    /// Not only barriers order the work-items of a work-group.
    pub(super) is_ordered: bool,
    pub(super) scopes: Scopes,
    /// Work-groups may see each other's writes. They run on one thread.
    pub(super) in_order: bool,
    /// A work-item may wait in a loop for others.
    pub(super) may_spin: bool,
    /// The number of bits of a work-item's number in its work-group.
    pub(super) group_bits: u32,
    /// For each work-group the writable buffers that it read without having written the element itself, as bits by
    /// [`bit_of`](super::address::bit_of).
    pub(super) looked: Mutex<FastMap<u64>>,
    /// Stores that race with others of the same bits.
    same_bits: Mutex<SameBits>,
    /// Races that the program intends.
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
    /// Which races on it the program intends.
    pub races: Races,
}

impl LaunchState<'_> {
    /// The bits of each parameter, in order.
    pub fn arguments(&self) -> &[u64] {
        &self.arguments
    }

    /// Work-groups of the launch.
    pub(crate) fn group_count(&self) -> u64 {
        self.groups
    }

    /// The addresses of each buffer.
    pub(crate) fn extents(&self) -> Vec<std::ops::Range<u64>> {
        let extent = |buffer: &BoundBuffer| buffer.start..buffer.start + buffer.memory.bytes();
        self.buffers.iter().map(extent).collect()
    }

    /// The stack of a card in whose memory each buffer lies.
    pub(crate) fn stacks(&self) -> Vec<u32> {
        self.buffers.iter().map(|buffer| buffer.memory.stack()).collect()
    }

    /// The memory of each buffer.
    pub(crate) fn memories(&self) -> impl Iterator<Item = &BufferMemory> {
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

    /// An element of global memory.
    #[doc(hidden)]
    pub fn element(&self, address: u64) -> Element {
        self.element_at(address, self.locate(address))
    }

    fn element_at(&self, address: u64, place: Option<(usize, u64)>) -> Element {
        let Some((buffer, offset)) = place else {
            return Element::Address(address);
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
    pub(crate) fn operation_limit(&self) -> u64 {
        self.launch
            .operation_limit
            .unwrap_or(self.options.operation_limit)
    }

    /// Whether a work-item may wait in a loop for others.
    pub(crate) fn may_spin(&self) -> bool {
        self.may_spin
    }

    /// # Errors
    /// The run is to end.
    pub(crate) fn check_stop(&self) -> Result<()> {
        Stop::check(self.options.stop, self.options.may_be_given_up)
    }

    /// Whether a timed run ends where it is.
    pub(crate) fn is_cut(&self) -> bool {
        Stop::cuts(self.options.stop)
    }

    pub(super) fn is_checking(&self) -> bool {
        self.options.mode == Mode::Checking
    }
}
