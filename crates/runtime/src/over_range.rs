//! Launches over a range of work-items, where the runtime picks the work-groups.
//!
//! ```
//! use headstart::device::sim::Simulator;
//! use headstart::device::{Device, TypedBuffer};
//! use headstart::prelude::*;
//!
//! #[kernel]
//! fn squares(result: &mut [u32]) {
//!     result[global_id()] = (global_id() * global_id()) as u32;
//! }
//!
//! let device = Simulator::untimed();
//! let queue = device.queue()?;
//! let mut result = TypedBuffer::uninitialized(&device, 1001)?;
//! let squares_of = squares::over_range(&device)?;
//! squares_of.launch(&*queue, [1001], squares::arguments(&mut result)).wait()?;
//! assert_eq!(result.read(&*queue)?[1000], 1_000_000);
//! # Ok::<(), headstart::Error>(())
//! ```
//! Exactly the work-items of the range run, whatever the work-groups are: those beyond it return before the kernel's first
//! statement. So a kernel for a range has no barriers or other collective operations, and requires no work-group size;
//! `global_id()` and `global_size()` refer to the range. Several devices share a range by a [`Split`](super::split::Split).

use std::collections::HashMap;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

use super::kept;
use super::launch::{Arguments, failed};
use crate::cleanup;
use crate::device::{Argument, Command, Description, Device, Event, Launch, Program, Queue};
use crate::ir::line::PrintLimits;
use crate::ir::{
    Builder, CompareOp, Id, Kernel, NoWrapOp, OpKind, Param, Region, Type, Value, Wrap, verify_derived,
};
use crate::prefetch::{self, PlanTarget};
use crate::{Error, Result};

/// Work-items of a work-group, where nothing speaks for fewer.
const USUAL_GROUP: u32 = 256;

/// The names of the parameters that say how large the range is, and where a part of it ends and begins; `_x`, `_y` and
/// `_z` follow.
const RANGE: [&str; 3] = ["range", "range_end", "range_start"];

/// A kernel with the signature `S`, ready to launch over a range on one device.
#[derive(Debug)]
pub struct OverRange<S> {
    program: Program,
    device: Description,
    signature: PhantomData<S>,
}

impl<S> OverRange<S> {
    /// Makes a kernel of this signature ready on a device.
    ///
    /// # Errors
    /// A request for a loop cannot be carried out; the kernel has operations that need work-groups of its own; or the device
    /// cannot run it.
    #[doc(hidden)]
    pub fn new(device: &dyn Device, kernel: Kernel) -> Result<OverRange<S>> {
        let kernel = prefetch::carry_out_wishes(&kernel, &PlanTarget::default())?;
        Ok(OverRange {
            program: device.compile(&Arc::new(bounded(kernel)?))?,
            device: device.description().clone(),
            signature: PhantomData,
        })
    }

    /// Runs the kernel for each work-item of a range of one to three dimensions; dimension 0 varies fastest.
    pub fn launch<const D: usize>(
        &self,
        queue: &dyn Queue,
        range: [u32; D],
        arguments: Arguments<S>,
    ) -> Event {
        let last = range.last().copied().unwrap_or(1);
        self.launch_part(queue, range, 0..last, arguments)
    }

    /// As [`OverRange::launch`], for the work-items whose position along the last dimension lies in `part`: several
    /// devices can share a job so.
    pub fn launch_part<const D: usize>(
        &self,
        queue: &dyn Queue,
        range: [u32; D],
        part: Range<u32>,
        arguments: Arguments<S>,
    ) -> Event {
        const { assert!(1 <= D && D <= 3, "a range has one to three dimensions") };
        let mut size = [1; 3];
        size[..D].copy_from_slice(&range);
        let part = part.start.min(size[D - 1])..part.end.min(size[D - 1]);
        let mut here = size;
        here[D - 1] = part.end.saturating_sub(part.start);
        if here.contains(&0) {
            return failed(Error::usage("a launch over an empty range").accepted("every size is at least 1"));
        }
        let group = work_group(here, &self.device);
        let mut end = size;
        end[D - 1] = part.end;
        // Positions along the last dimension start at the part's first.
        let mut from = [0; 3];
        from[D - 1] = part.start;
        let mut arguments = arguments.into_list();
        let added = size.into_iter().chain(end).chain(from);
        arguments.extend(added.map(|number| Argument::Scalar(Type::I32, number.into())));
        let launch = Launch {
            groups: [0, 1, 2].map(|axis| here[axis].div_ceil(group[axis])),
            group,
            arguments,
            sub_group_size: None,
            operation_limit: None,
            first_groups: None,
            memory: Vec::new(),
            print_limits: PrintLimits::default(),
        };
        if let Err(error) = kept::keep(&self.program, &launch, queue, &[]) {
            return failed(error);
        }
        queue.submit(Command::Launch(self.program.clone(), launch), &[])
    }

    /// The program without its signature.
    pub fn program(&self) -> &Program {
        &self.program
    }
}

/// The work-group for a range: as long along dimension 0 as a sub-group or longer, and small enough that every core
/// gets one.
fn work_group(range: [u32; 3], device: &Description) -> [u32; 3] {
    let items: u64 = range.iter().map(|&size| u64::from(size)).product();
    let each = items.div_ceil(u64::from(device.cores.max(1)));
    let sub_group = device.default_sub_group_size.max(1);
    let most = USUAL_GROUP.min(device.max_group_size).max(1);
    let each = u32::try_from(each).unwrap_or(u32::MAX).min(most);
    let target = each.next_multiple_of(sub_group).min(most).max(1);
    let mut group = [1; 3];
    let mut room = target;
    for axis in 0..3 {
        let most = device.max_group_dimensions[axis].max(1);
        let wanted = if axis == 0 {
            range[0].next_multiple_of(sub_group).min(room)
        } else {
            range[axis].min(room)
        };
        group[axis] = wanted.clamp(1, most);
        room = (room / group[axis]).max(1);
    }
    group
}

/// The kernel, with parameters for the range, that runs for the work-items of the range alone.
fn bounded(mut kernel: Kernel) -> Result<Kernel> {
    check(&kernel)?;
    let mut add = |name: &str, axis: usize| {
        let name = format!("{name}_{}", ["x", "y", "z"][axis]);
        let value = kernel.value(Type::I32);
        kernel.values[value].name = Some(name.clone());
        kernel.params.push(Param {
            name,
            value,
            facts: None,
        });
        value
    };
    let [sizes, ends, starts] = RANGE.map(|name| [0, 1, 2].map(|axis| add(name, axis)));
    let mut b = Builder::new(&mut kernel, Kernel::NOWHERE);
    let mut inside = b.bool(true);
    let positions = [0usize, 1, 2].map(|axis| {
        let (group, size) = (b.id(Id::Group(axis as u8)), b.id(Id::GroupSize(axis as u8)));
        let first = b.no_wrap(NoWrapOp::Mul, Wrap::NotUnsigned, group, size);
        let local = b.id(Id::Local(axis as u8));
        let position = b.no_wrap(NoWrapOp::Add, Wrap::NotUnsigned, first, local);
        let position = b.no_wrap(NoWrapOp::Add, Wrap::NotUnsigned, position, starts[axis]);
        let is_inside = b.compare(CompareOp::LtU, position, ends[axis]);
        inside = b.and(inside, is_inside);
        position
    });
    b.if_(
        inside,
        &[],
        |_| Vec::new(),
        |b| {
            b.return_();
            Vec::new()
        },
    );
    let prologue = b.finish();

    let replaced = replaced(&kernel, &positions, &sizes);
    let mut body = std::mem::take(&mut kernel.body);
    body.walk_mut(&mut |op| {
        op.kind
            .map_operands(|value| replaced.get(&value).copied().unwrap_or(value));
    });
    kernel.body = Region {
        ops: prologue.ops.into_iter().chain(body.ops).collect(),
    };
    cleanup::tidy(&mut kernel);
    let mut asked = None;
    kernel.body.walk(&mut |op| {
        if matches!(op.kind, OpKind::Id(_)) && op.place != Kernel::NOWHERE {
            asked.get_or_insert(op.place);
        }
    });
    if let Some(place) = asked {
        return Err(Error::input("a kernel for a range asks about its work-group")
            .at(kernel.describe_place(place))
            .accepted("`global_id()`, `global_size()` and the same of other dimensions"));
    }
    verify_derived(&kernel)?;
    Ok(kernel)
}

/// The replacement of each position in the launch, and of each size of it.
fn replaced(kernel: &Kernel, positions: &[Value; 3], sizes: &[Value; 3]) -> HashMap<Value, Value> {
    let mut ids: HashMap<Value, Id> = HashMap::new();
    // The first work-item of the group, by dimension.
    let mut firsts: HashMap<Value, u8> = HashMap::new();
    let mut replaced = HashMap::new();
    kernel.body.walk(&mut |op| match op.kind {
        OpKind::Id(id) => {
            ids.insert(op.results[0], id);
        }
        OpKind::NoWrap(NoWrapOp::Mul, _, a, b) => {
            let pair = [(a, b), (b, a)].map(|(a, b)| (ids.get(&a).copied(), ids.get(&b).copied()));
            for pair in pair {
                match pair {
                    (Some(Id::Group(axis)), Some(Id::GroupSize(other))) if axis == other => {
                        firsts.insert(op.results[0], axis);
                    }
                    (Some(Id::GroupCount(axis)), Some(Id::GroupSize(other))) if axis == other => {
                        replaced.insert(op.results[0], sizes[usize::from(axis)]);
                    }
                    _ => {}
                }
            }
        }
        OpKind::NoWrap(NoWrapOp::Add, _, a, b) => {
            for (first, local) in [(a, b), (b, a)] {
                if let (Some(&axis), Some(&Id::Local(other))) = (firsts.get(&first), ids.get(&local))
                    && axis == other
                {
                    replaced.insert(op.results[0], positions[usize::from(axis)]);
                }
            }
        }
        _ => {}
    });
    replaced
}

/// Refuses operations that need a work-group known to the author.
fn check(kernel: &Kernel) -> Result<()> {
    let accepted = "launch it with a geometry: `compile`, and `launch`";
    if kernel.group_size.is_some() || kernel.sub_group_size.is_some() {
        return Err(Error::usage(format!(
            "`{}` fixes its own sizes, so a range cannot choose them",
            kernel.name
        ))
        .accepted(accepted));
    }
    let mut together = None;
    kernel.body.walk(&mut |op| {
        if op.kind.effects().meets() {
            together.get_or_insert(op.place);
        }
    });
    match together {
        Some(place) => Err(
            Error::usage("in a kernel for a range, work-items do nothing together")
                .at(kernel.describe_place(place))
                .accepted(accepted),
        ),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headstart_sim::Simulator;

    #[test]
    fn work_groups_follow_the_range_and_the_device() {
        let device = Description {
            cores: 100,
            ..Simulator::untimed().description().clone()
        };
        assert_eq!(work_group([1 << 20, 1, 1], &device), [256, 1, 1]);
        // A hundred cores share it.
        assert_eq!(work_group([6400, 1, 1], &device), [64, 1, 1]);
        assert_eq!(work_group([5, 1, 1], &device), [32, 1, 1]);
        // 20 000 work-items: 200 a core, 224 in whole sub-groups.
        assert_eq!(work_group([5, 4000, 1], &device), [32, 7, 1]);
        assert_eq!(work_group([1, 2, 1 << 20], &device), [32, 2, 4]);
    }
}
