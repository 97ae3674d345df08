//! A sum in two steps: each work-group adds up its part in shared memory, a second launch adds up the parts.
//!
//!     cargo run --release --example reduction

use headstart::device::sim::Simulator;
use headstart::device::{Device, TypedBuffer};
use headstart::prelude::*;

/// Work-items of a work-group.
const GROUP: usize = 128;

/// The sum of each work-group. `shared` memory is the work-group's own; `barrier` waits for all its work-items.
#[kernel(work_group = GROUP)]
fn sum_of_groups(values: &[u32], sums: &mut [u32]) {
    let mut partial = shared::<u32, GROUP>();
    let mut sum = 0;
    // Neighbouring work-items read neighbouring elements, whatever the number of work-groups.
    for i in (global_id()..values.len()).step_by(global_size()) {
        sum += values[i];
    }
    partial[local_id()] = sum;
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
    // Checks everything, and tells no times.
    let device = Simulator::untimed();
    let queue = device.queue()?;

    let host: Vec<u32> = (0..50_000).map(|i| i % 100).collect();
    let values = TypedBuffer::from_slice(&device, &host)?;
    let groups = 16;
    let mut sums = TypedBuffer::uninitialized(&device, groups)?;
    let mut total = TypedBuffer::uninitialized(&device, 1)?;

    let program = sum_of_groups::compile(&device)?;
    let many = Geometry::new(groups as u32, GROUP as u32);
    let first = program.launch(&*queue, many, sum_of_groups::arguments(&values, &mut sums));
    // Launches of one queue run in their order: the second sees what the first wrote.
    let one = Geometry::new(1, GROUP as u32);
    let second = program.launch(&*queue, one, sum_of_groups::arguments(&sums, &mut total));
    first.wait()?;
    second.wait()?;

    let found = total.read(&*queue)?[0];
    let expected: u32 = host.iter().sum();
    println!("the sum of {} elements: {found}", host.len());
    assert_eq!(found, expected);
    Ok(())
}
