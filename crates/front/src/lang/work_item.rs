//! Who a work-item is, and among how many.
//!
//! Each question is a function and a type of the same name, like any device function: the function answers
//! on the CPU, from the work-item that [`reference`](super::reference) is running; the type's `device`
//! writes the IR's operation. Answers have 32 bits on a device and are `usize` here, so that they can index.

use std::cell::Cell;

use super::record::{At, Recorded, usize_from_u32};
use crate::ir::{Builder, Id, Meeting, NoWrapOp, Value, Wrap, limits};

/// A work-item of the CPU reference.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WorkItem {
    /// Position in the work-group.
    pub local: [u32; 3],
    /// Position of the work-group.
    pub group: [u32; 3],
    /// Work-items of a work-group.
    pub group_size: [u32; 3],
    /// Work-groups of the launch.
    pub group_count: [u32; 3],
    /// Work-items of a full sub-group.
    pub max_sub_group_size: u32,
}

thread_local! {
    static CURRENT: Cell<WorkItem> = const {
        Cell::new(WorkItem {
            local: [0; 3],
            group: [0; 3],
            group_size: [1; 3],
            group_count: [1; 3],
            max_sub_group_size: 1,
        })
    };
    static BARRIER: Cell<bool> = const { Cell::new(false) };
}

/// Makes a work-item the one that answers are about.
pub(super) fn become_work_item(item: WorkItem) {
    CURRENT.set(item);
}

/// The work-item needs others, who are not there.
pub(super) fn meet_others() {
    BARRIER.set(true);
}

/// Whether a barrier, or anything else that work-items do together, was met since the last call.
pub(super) fn barrier_was_met() -> bool {
    BARRIER.take()
}

impl WorkItem {
    /// Position in the work-group, counted along dimension 0 first.
    fn linear(self) -> u32 {
        let [x, y, z] = self.local;
        let [width, height, _] = self.group_size;
        x + width * (y + height * z)
    }

    fn group_items(self) -> u32 {
        self.group_size.iter().product()
    }
}

macro_rules! questions {
    ($($(#[$documentation:meta])* $name:ident: |$item:ident| $answer:expr, |$builder:ident| $operation:expr;)+) => {$(
        $(#[$documentation])*
        pub fn $name() -> usize {
            let $item = CURRENT.get();
            let answer = $answer;
            answer as usize
        }

        device_form!($name {
            pub fn device(at: At) -> Recorded<usize> {
                usize_from_u32(at, |$builder| $operation)
            }
        });
    )+};
}

questions! {
    /// Position of the work-item in the launch, along dimension 0.
    global_id: |item| u64::from(item.group[0]) * u64::from(item.group_size[0]) + u64::from(item.local[0]),
        |b| global_id_of(b, 0);
    /// Position of the work-item in the launch, along dimension 1.
    global_id_y: |item| u64::from(item.group[1]) * u64::from(item.group_size[1]) + u64::from(item.local[1]),
        |b| global_id_of(b, 1);
    /// Position of the work-item in the launch, along dimension 2.
    global_id_z: |item| u64::from(item.group[2]) * u64::from(item.group_size[2]) + u64::from(item.local[2]),
        |b| global_id_of(b, 2);
    /// Work-items of the launch, along dimension 0.
    global_size: |item| u64::from(item.group_count[0]) * u64::from(item.group_size[0]),
        |b| {
            let (groups, size) = (b.id(Id::GroupCount(0)), b.id(Id::GroupSize(0)));
            b.no_wrap(NoWrapOp::Mul, Wrap::NotUnsigned, groups, size)
        };
    /// Position of the work-item in its work-group, along dimension 0.
    local_id: |item| item.local[0], |b| b.id(Id::Local(0));
    /// Position of the work-item in its work-group, along dimension 1.
    local_id_y: |item| item.local[1], |b| b.id(Id::Local(1));
    /// Position of the work-item in its work-group, along dimension 2.
    local_id_z: |item| item.local[2], |b| b.id(Id::Local(2));
    /// Position of the work-group in the launch, along dimension 0.
    group_id: |item| item.group[0], |b| b.id(Id::Group(0));
    /// Position of the work-group in the launch, along dimension 1.
    group_id_y: |item| item.group[1], |b| b.id(Id::Group(1));
    /// Position of the work-group in the launch, along dimension 2.
    group_id_z: |item| item.group[2], |b| b.id(Id::Group(2));
    /// Work-items of the work-group, along dimension 0.
    group_size: |item| item.group_size[0], |b| b.id(Id::GroupSize(0));
    /// Work-items of the work-group, along dimension 1.
    group_size_y: |item| item.group_size[1], |b| b.id(Id::GroupSize(1));
    /// Work-items of the work-group, along dimension 2.
    group_size_z: |item| item.group_size[2], |b| b.id(Id::GroupSize(2));
    /// Work-groups of the launch, along dimension 0.
    group_count: |item| item.group_count[0], |b| b.id(Id::GroupCount(0));
    /// Work-groups of the launch, along dimension 1.
    group_count_y: |item| item.group_count[1], |b| b.id(Id::GroupCount(1));
    /// Work-groups of the launch, along dimension 2.
    group_count_z: |item| item.group_count[2], |b| b.id(Id::GroupCount(2));
    /// Position of the work-item in its sub-group (its lane).
    sub_group_local_id: |item| item.linear() % item.max_sub_group_size, |b| b.id(Id::Lane);
    /// Position of the sub-group in its work-group.
    sub_group_id: |item| item.linear() / item.max_sub_group_size, |b| b.id(Id::SubGroup);
    /// Work-items of this sub-group: the last one of a work-group may be partial.
    sub_group_size: |item| {
        let first = item.linear() / item.max_sub_group_size * item.max_sub_group_size;
        (item.group_items() - first).min(item.max_sub_group_size)
    }, |b| b.id(Id::SubGroupSize);
    /// Work-items of a full sub-group.
    max_sub_group_size: |item| item.max_sub_group_size, |b| b.id(Id::MaxSubGroupSize);
    /// Sub-groups of the work-group.
    sub_group_count: |item| item.group_items().div_ceil(item.max_sub_group_size), |b| b.id(Id::SubGroupCount);
}

/// `group × size + local`; a launch has fewer than 2³² work-items along a dimension, so nothing wraps.
fn global_id_of(b: &mut Builder<'_>, dimension: u8) -> Value {
    let (group, size) = (b.id(Id::Group(dimension)), b.id(Id::GroupSize(dimension)));
    let first = b.no_wrap(NoWrapOp::Mul, Wrap::NotUnsigned, group, size);
    let local = b.id(Id::Local(dimension));
    b.no_wrap(NoWrapOp::Add, Wrap::NotUnsigned, first, local)
}

/// All work-items of the work-group wait here for each other; afterwards each can read what the others wrote before.
///
/// The CPU reference runs one work-item after the other, and so refuses a kernel that meets one.
pub fn barrier() {
    meet_others();
}

device_form!(barrier {
    pub fn device(at: At) {
        super::record::recorder(|recorder| recorder.build(at, |b| b.barrier()));
    }
});

/// The iterator of a `for` loop over the work of a work-group: `for i in work_items(count) { … }` divides the numbers below
/// `count` among the work-items, the first of which takes 0, the number of work-items, and so on. All work-items wait for each
/// other before the loop and after it.
///
/// So a kernel can be written as a work-group sees it, with no barrier of its own, as SYCL's hierarchical dispatch has it
/// (`parallel_for_work_group`, `parallel_for_work_item`):
///
/// ```
/// use headstart::device::sim::Simulator;
/// use headstart::device::{Device, TypedBuffer};
/// use headstart::prelude::*;
///
/// /// The largest of each row, and how far each element is below it.
/// #[kernel(work_group = 64)]
/// fn below_most(rows: &[f32], result: &mut [f32], width: u32) {
///     let mut tile = shared::<f32, 256>();
///     let mut most = shared::<f32, 1>();
///     let (width, row) = (width as usize, group_id());
///     for x in work_items(width) {
///         tile[x] = rows[row * width + x];
///     }
///     for _ in work_items(1) {
///         let mut largest = tile[0];
///         for x in 1..width {
///             largest = largest.max(tile[x]);
///         }
///         most[0] = largest;
///     }
///     let largest = most[0];
///     for x in work_items(width) {
///         result[row * width + x] = largest - tile[x];
///     }
/// }
///
/// let device = Simulator::untimed();
/// let queue = device.queue()?;
/// let rows: Vec<f32> = (0..600).map(|i| (i * 7 % 100) as f32).collect();
/// let source = TypedBuffer::from_slice(&device, &rows)?;
/// let mut result = TypedBuffer::<f32>::uninitialized(&device, 600)?;
/// let arguments = below_most::arguments(&source, &mut result, 200);
/// below_most::compile(&device)?.launch(&*queue, Geometry::new(3, 64), arguments).wait()?;
/// let expected: Vec<f32> = rows.iter().map(|x| 99.0 - x).collect();
/// assert_eq!(result.read(&*queue)?, expected);
/// # Ok::<(), headstart::Error>(())
/// ```
/// Outside of such loops every work-item computes the same: values there belong to the work-group. To store such a
/// value once, use a loop over `work_items(1)`. A variable that a loop assigns to belongs to the work-item (SYCL's `private_memory`).
/// All work-items must come to the loop, as to a barrier; the simulator reports it if one does not.
pub fn work_items(count: usize) -> impl Iterator<Item = usize> {
    meet_others();
    let item = CURRENT.get();
    (item.linear() as usize..count).step_by(item.group_items().max(1) as usize)
}

/// `SUB_GROUPS` sub-groups of the work-group wait here for each other, at one of 15 barriers with the numbers 1 to 15;
/// afterwards each can read what the others wrote before. The other sub-groups continue.
///
/// ```
/// use headstart::device::sim::Simulator;
/// use headstart::device::{Device, TypedBuffer};
/// use headstart::prelude::*;
///
/// /// Two of four sub-groups exchange what they have; the other two have left.
/// #[kernel(work_group = 128, sub_group = 32)]
/// fn exchange(values: &mut [u32]) {
///     let mut tile = shared::<u32, 64>();
///     if sub_group_id() >= 2 {
///         return;
///     }
///     tile[local_id()] = values[local_id()];
///     named_barrier::<1, 2>();
///     values[local_id()] = tile[63 - local_id()];
/// }
///
/// let device = Simulator::untimed();
/// let queue = device.queue()?;
/// let mut values = TypedBuffer::from_slice(&device, &std::array::from_fn::<u32, 64, _>(|i| i as u32))?;
/// let arguments = exchange::arguments(&mut values);
/// exchange::compile(&device)?.launch(&*queue, Geometry::new(1, 128), arguments).wait()?;
/// assert_eq!(values.read(&*queue)?[..3], [63, 62, 61]);
/// # Ok::<(), headstart::Error>(())
/// ```
/// Fewer than `SUB_GROUPS` who come wait for ever; the simulator reports it. A sub-group comes as a whole.
pub fn named_barrier<const NUMBER: u32, const SUB_GROUPS: u32>() {
    meet_others();
}

device_form!(named_barrier {
    pub fn device<const NUMBER: u32, const SUB_GROUPS: u32>(at: At) {
        let meeting = Meeting::Named {
            number: NUMBER,
            sub_groups: SUB_GROUPS,
        };
        super::record::recorder(|recorder| {
            if !(1..=limits::NAMED_BARRIERS).contains(&NUMBER) || SUB_GROUPS == 0 {
                let error = crate::Error::input(format!(
                    "there is no barrier {NUMBER} for {SUB_GROUPS} sub-groups"
                ))
                .accepted("numbers 1 to 15, and at least 1 sub-group");
                recorder.fail(at, error);
            }
            recorder.build(at, |b| b.meet(meeting));
        });
    }
});
