//! Bringing the result of a reduction to the host.

use headstart::Result;
use headstart::device::{Device, TypedBuffer};
use headstart::prelude::*;

use super::{GROUP, Host, Ran, Technique, check, variant};
use crate::techniques::reduction;

const ELEMENTS: u64 = 1 << 22;
/// Work-groups: eight for each core of an H200.
const GROUPS: u32 = 1056;

fn numbers() -> Vec<u32> {
    (0..ELEMENTS as u32).map(|i| i % 191).collect()
}

fn right(sum: u32) -> Result<Ran> {
    let expected = numbers().iter().sum();
    check(&[sum], |_| expected)
}

fn added(values: &[u32]) -> u32 {
    values.iter().copied().fold(0, u32::wrapping_add)
}

/// Each work-item leaves a sum, and the host adds them up; or they are not read.
fn by_items(host: &Host, bring: bool) -> Result<Ran> {
    let device = host.open()?;
    let (queue, kernel) = (device.queue()?, reduction::occupancy::compile(&device, GROUP)?);
    let values = TypedBuffer::from_slice(&device, &numbers())?;
    let mut left = TypedBuffer::uninitialized(&device, u64::from(GROUPS * GROUP))?;
    let geometry = Geometry::new(GROUPS, GROUP);
    let sum = host.measure(|| {
        let ran = kernel.launch(
            &*queue,
            geometry,
            reduction::occupancy::arguments(&values, &mut left),
        );
        match bring {
            true => Ok(Some(added(&left.read(&*queue)?))),
            false => ran.wait().map(|_| None),
        }
    })?;
    right(sum.map_or_else(|| left.read(&*queue).map(|left| added(&left)), Ok)?)
}

/// Each work-group leaves a sum, after a tree in shared memory; the host adds them up.
fn by_groups(host: &Host) -> Result<Ran> {
    let device = host.open()?;
    let (queue, kernel) = (device.queue()?, reduction::tree::compile(&device, GROUP)?);
    let values = TypedBuffer::from_slice(&device, &numbers())?;
    let mut left = TypedBuffer::uninitialized(&device, u64::from(GROUPS))?;
    let sum = host.measure(|| {
        let arguments = reduction::tree::arguments(&values, &mut left);
        kernel.launch(&*queue, Geometry::new(GROUPS, GROUP), arguments);
        Ok(added(&left.read(&*queue)?))
    })?;
    right(sum)
}

/// A second launch, of one work-group, adds up the first one's results: one number goes to the host.
fn twice(host: &Host) -> Result<Ran> {
    let device = host.open()?;
    let (queue, kernel) = (device.queue()?, reduction::tree::compile(&device, GROUP)?);
    let values = TypedBuffer::from_slice(&device, &numbers())?;
    let mut left = TypedBuffer::uninitialized(&device, u64::from(GROUPS))?;
    let mut all = TypedBuffer::uninitialized(&device, 1)?;
    let sum = host.measure(|| {
        let arguments = reduction::tree::arguments(&values, &mut left);
        kernel.launch(&*queue, Geometry::new(GROUPS, GROUP), arguments);
        kernel.launch(
            &*queue,
            Geometry::new(1, GROUP),
            reduction::tree::arguments(&left, &mut all),
        );
        Ok(added(&all.read(&*queue)?))
    })?;
    right(sum)
}

/// The page.
pub static TECHNIQUE: Technique = Technique {
    page: "host-sums",
    title: "Bringing a sum to the host",
    text: [
        "Four million numbers are added up, and the host needs the sum. The kernel's results have to cross the link: \
         one sum per work-item, 270,336 of them, is a megabyte, one per work-group, 1,056 of them, is four \
         kilobytes, and a second launch leaves a single number. The host adds the rest.",
        "A transfer takes microseconds regardless of its size, and so does a launch: about as long as the whole sum. \
         So reducing a megabyte to kilobytes is worth a tree in shared memory, and reducing kilobytes to a number is \
         not worth a second launch. If only the next kernel needs the sum, it need not be transferred at all.",
    ],
    ways: &[
        variant("270,336 sums, not brought", |host| by_items(host, false)),
        variant("270,336 sums", |host| by_items(host, true)),
        variant("1,056 sums", by_groups),
        variant("one sum, a second launch", twice),
    ],
};
