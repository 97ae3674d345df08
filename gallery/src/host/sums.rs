//! Bringing the result of a reduction to the host.

use headstart::Result;
use headstart::device::{Device, TypedBuffer};
use headstart::prelude::*;

use super::{GROUP, Host, Ran, Technique, Way, check};
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

/// Each work-item leaves a sum, and the host adds them up; or nobody reads them.
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

/// Each work-group leaves a sum, after a tree in shared memory; the host adds up what is left.
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

/// A second launch, of one work-group, adds up what the first one left: one number goes to the host.
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
        "Four million numbers are added up, and the host wants the sum. What a kernel leaves has to come over the link: a \
         sum for each of 270,336 work-items is a megabyte, a sum for each of 1,056 work-groups is four kilobytes, and after \
         a second launch it is one number. The host adds up what comes.",
        "A transfer takes microseconds whatever is in it, and so does a launch: about as long as the whole sum. So the step \
         from a megabyte to kilobytes is worth a tree in shared memory, and the one from kilobytes to a number is worth no \
         second launch. Where the sum is only needed by the next kernel, it need not come at all.",
    ],
    ways: &[
        Way {
            name: "270,336 sums, not brought",
            run: |host| by_items(host, false),
        },
        Way {
            name: "270,336 sums",
            run: |host| by_items(host, true),
        },
        Way {
            name: "1,056 sums",
            run: by_groups,
        },
        Way {
            name: "one sum, a second launch",
            run: twice,
        },
    ],
};
