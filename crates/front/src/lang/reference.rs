//! The CPU reference: a kernel's ordinary function, run once for each work-item.

use super::geometry::Geometry;
use super::mathematics::for_each_function;
use super::scalar::{Float, Integer};
use super::work_item::{WorkItem, barrier_was_met, become_work_item};
use crate::math::Function;
use crate::{Error, Result};

/// Work-items of a sub-group without a stated size.
const SUB_GROUP_SIZE: u32 = 32;

/// The sizes that a kernel requires.
#[derive(Clone, Copy, Debug)]
pub struct Required<'a> {
    /// Of the work-group, one for each dimension that is given; none if any size will do.
    pub group: &'a [u64],
    /// Of the sub-group.
    pub sub_group: Option<u64>,
}

/// Calls `item` as each work-item, one after the other. Inside, the functions of
/// [`work_item`](super::work_item) answer for that work-item.
///
/// # Errors
/// A size is 0 or not the required one, or the kernel meets a barrier or something that a sub-group does
/// together: work-items that wait for each other cannot run one after the other.
pub fn run(geometry: Geometry, required: &Required<'_>, mut item: impl FnMut()) -> Result<()> {
    let Geometry {
        groups,
        group,
        sub_group_size,
        ..
    } = geometry;
    check(group, required)?;
    let sub_group_size = match (sub_group_size, required.sub_group) {
        (Some(asked), Some(size)) if u64::from(asked) != size => {
            return Err(Error::usage(format!(
                "the kernel cannot run with sub-groups of {asked} work-items"
            ))
            .accepted(format!("it requires {size}")));
        }
        (Some(asked), _) => asked,
        (None, Some(size)) => u32::try_from(size).unwrap_or(u32::MAX),
        (None, None) => SUB_GROUP_SIZE,
    };
    if groups.contains(&0) || group.contains(&0) || sub_group_size == 0 {
        return Err(Error::usage("a launch without work-items").accepted("every size is at least 1"));
    }
    barrier_was_met();
    for group_id in positions(groups) {
        for local in positions(group) {
            become_work_item(WorkItem {
                local,
                group: group_id,
                group_size: group,
                group_count: groups,
                max_sub_group_size: sub_group_size,
            });
            item();
            if barrier_was_met() {
                return Err(Error::usage(
                    "a kernel whose work-items wait for each other has no CPU reference",
                )
                .accepted("run it on a device; `sim:h200` is always there"));
            }
        }
    }
    Ok(())
}

fn check(group: [u32; 3], required: &Required<'_>) -> Result<()> {
    let mut sizes = required.group.iter().copied().chain(std::iter::repeat(1));
    if required.group.is_empty() || group.iter().all(|&size| Some(u64::from(size)) == sizes.next()) {
        return Ok(());
    }
    Err(
        Error::usage(format!("the kernel cannot run with work-groups of {group:?}"))
            .accepted(format!("it requires {:?}", required.group)),
    )
}

/// Every position below these sizes, dimension 0 fastest.
fn positions([width, height, depth]: [u32; 3]) -> impl Iterator<Item = [u32; 3]> {
    (0..depth).flat_map(move |z| (0..height).flat_map(move |y| (0..width).map(move |x| [x, y, z])))
}

macro_rules! functions {
    ($($name:ident($first:ident $(, $second:ident)?): $function:ident;)+) => {$(
        #[doc = concat!("`", stringify!($first), ".", stringify!($name), "(", $(stringify!($second),)? ")`, with exactly a kernel's bits; the platform's function has others.")]
        pub fn $name<T: Float>($first: T $(, $second: T)?) -> T {
            T::apply(Function::$function, &[$first $(, $second)?])
        }
    )+};
}

for_each_function!(functions);

/// `high.funnel_shl(low, count)`: the upper half of the two, one behind the other, shifted left by `count`
/// modulo the width.
pub fn funnel_shl<T: Integer>(high: T, low: T, count: u32) -> T {
    let width = T::TYPE.bits();
    match count % width {
        0 => high,
        count => (high << count) | T::logical_shr(low, width - count),
    }
}

/// `high.funnel_shr(low, count)`: the lower half of the two, one behind the other, shifted right by `count`
/// modulo the width.
pub fn funnel_shr<T: Integer>(high: T, low: T, count: u32) -> T {
    let width = T::TYPE.bits();
    match count % width {
        0 => low,
        count => (high << (width - count)) | T::logical_shr(low, count),
    }
}
