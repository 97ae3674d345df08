//! A bug and its report: a barrier is missing, and the simulator says where the race is.
//!
//! On a GPU this kernel gives the right result on most days.
//!
//!     cargo run --release --example race

use headstart::Fault;
use headstart::device::sim::Simulator;
use headstart::device::{Device, TypedBuffer};
use headstart::prelude::*;

/// Work-items of a work-group.
const GROUP: usize = 128;

/// The sum of each work-group. Each step reads what other work-items wrote in the one before, and nothing waits for them.
#[kernel(work_group = GROUP)]
fn sum_too_early(values: &[u32], sums: &mut [u32]) {
    let mut partial = shared::<u32, GROUP>();
    partial[local_id()] = values[global_id()];
    barrier();
    let mut half = GROUP / 2;
    while half > 0 {
        if local_id() < half {
            partial[local_id()] += partial[local_id() + half];
        }
        half /= 2;
    }
    if local_id() == 0 {
        sums[group_id()] = partial[0];
    }
}

/// The same with the barrier.
#[kernel(work_group = GROUP)]
fn sum(values: &[u32], sums: &mut [u32]) {
    let mut partial = shared::<u32, GROUP>();
    partial[local_id()] = values[global_id()];
    barrier();
    let mut half = GROUP / 2;
    while half > 0 {
        if local_id() < half {
            partial[local_id()] += partial[local_id() + half];
        }
        barrier();
        half /= 2;
    }
    if local_id() == 0 {
        sums[group_id()] = partial[0];
    }
}

fn main() -> headstart::Result<()> {
    let device = Simulator::untimed();
    let queue = device.queue()?;
    let host: Vec<u32> = (0..2 * GROUP as u32).collect();
    let values = TypedBuffer::from_slice(&device, &host)?;
    let mut sums = TypedBuffer::uninitialized(&device, 2)?;
    let geometry = Geometry::new(2, GROUP as u32);

    let arguments = sum_too_early::arguments(&values, &mut sums);
    let event = sum_too_early::compile(&device)?.launch(&*queue, geometry, arguments);
    let report = event.wait().expect_err("the simulator reports the race");
    println!("without the barrier: {report}");
    // Whose fault it is: the kernel's, and neither the device's nor Headstart's.
    assert_eq!(report.fault(), Fault::Input);

    let arguments = sum::arguments(&values, &mut sums);
    sum::compile(&device)?
        .launch(&*queue, geometry, arguments)
        .wait()?;
    let found = sums.read(&*queue)?;
    println!("with it: {found:?}");
    let expected: Vec<u32> = host.chunks(GROUP).map(|group| group.iter().sum()).collect();
    assert_eq!(found, expected);
    Ok(())
}
