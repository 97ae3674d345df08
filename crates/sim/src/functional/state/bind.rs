//! Binds a launch: its buffers get addresses.
//!
//! The launch has passed [`Launch::check`].

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use super::{BoundBuffer, LaunchState, Traits};
use crate::device::{Argument, Launch};
use crate::functional::address;
use crate::functional::buffer::BufferMemory;
use crate::functional::clock;
use crate::functional::fault::Region;
use crate::functional::lanes::LANES;
use crate::functional::launch_shadow::LaunchShadow;
use crate::functional::options::{Mode, Options};
use crate::functional::places::Places;
use crate::functional::printed::Printed;
use crate::ir::limits::EXCHANGING_ITEMS;
use crate::ir::{Kernel, Races, Space};
use crate::{Error, Result};

/// Locks for atomic operations. With more of them, different elements share one less often.
const ATOMIC_LOCKS: usize = 64;

impl<'l> LaunchState<'l> {
    /// Binds a launch's buffers. The launch must have passed [`Launch::check`].
    ///
    /// # Errors
    /// A buffer is of another device; sub-groups are larger than [`LANES`], or than the kernel's masks.
    pub fn new(
        kernel: &'l Kernel,
        launch: &'l Launch,
        sub_group_size: u32,
        options: Options,
    ) -> Result<LaunchState<'l>> {
        LaunchState::of(kernel, &Traits::of(kernel), launch, sub_group_size, options)
    }

    /// The same with the kernel's traits, which are the same for each of its launches.
    ///
    /// # Errors
    /// As for [`LaunchState::new`].
    pub(in crate::functional) fn of(
        kernel: &'l Kernel,
        traits: &Traits,
        launch: &'l Launch,
        sub_group_size: u32,
        options: Options,
    ) -> Result<LaunchState<'l>> {
        has_sub_groups_of(kernel, traits, sub_group_size)?;
        let Bound {
            buffers,
            arguments,
            places,
        } = bound(kernel, launch)?;
        let written = |buffer: &BoundBuffer| match options.mode {
            Mode::Checking if !buffer.read_only => buffer.memory.bytes(),
            _ => 0,
        };
        let in_order = traits.in_order;
        let written = |buffer: &BoundBuffer| if in_order { 0 } else { written(buffer) };
        let shadow = LaunchShadow::new(buffers.iter().map(written), traits.cells.global);
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
            shared: traits.shared.clone(),
            private: traits.private.clone(),
            cells: traits.cells,
            has_copies: traits.has_copies,
            has_products: traits.has_products,
            shadow,
            follows_prefetches: options.mode == Mode::Checking && traits.has_fenced_prefetches,
            cut_off: Mutex::default(),
            is_ordered: traits.is_ordered,
            scopes: traits.scopes,
            in_order,
            may_spin: traits.may_spin,
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
}

/// # Errors
/// The simulator has no such sub-groups, or they are larger than the kernel's masks.
fn has_sub_groups_of(kernel: &Kernel, traits: &Traits, sub_group_size: u32) -> Result<()> {
    if sub_group_size == 0 || sub_group_size as usize > LANES {
        return Err(Error::device(format!(
            "the simulator has no sub-groups of {sub_group_size} work-items"
        ))
        .accepted(format!("at most {LANES}")));
    }
    if sub_group_size > EXCHANGING_ITEMS && traits.names_work_items {
        return Err(Error::device(format!(
            "`{}` names the work-items of a sub-group by the 32 bits of a mask, and one has {sub_group_size}",
            kernel.shown()
        ))
        .accepted(format!("sub-groups of at most {EXCHANGING_ITEMS}")));
    }
    Ok(())
}

/// A launch's buffers, each with its address, and its arguments.
struct Bound {
    buffers: Vec<BoundBuffer>,
    arguments: Vec<u64>,
    /// Where they are, if a program chose that.
    places: Option<Places>,
}

/// Gives each buffer of a launch its address.
///
/// # Errors
/// A buffer is of another device, two share addresses, or there are too many.
fn bound(kernel: &Kernel, launch: &Launch) -> Result<Bound> {
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
        // A number has no facts: the kernel may make a pointer of it, and write there.
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
    add_reached(&mut buffers, &placed);
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
    Ok(Bound {
        buffers,
        arguments,
        places,
    })
}

/// The kernel may reach memory that no parameter names through pointers in other memory, and write it.
fn add_reached(buffers: &mut Vec<BoundBuffer>, placed: &[(u64, Arc<BufferMemory>)]) {
    for (start, memory) in placed {
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
}
