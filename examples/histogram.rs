//! A histogram: atomic counts in shared memory first, then one addition a bin and work-group in global memory.
//!
//!     cargo run --release --example histogram

use headstart::device::sim::Simulator;
use headstart::device::{Device, TypedBuffer};
use headstart::prelude::*;

/// Work-items of a work-group.
const GROUP: usize = 128;
/// Kinds of values.
const BINS: usize = 16;

/// Counts how often each value occurs.
#[kernel(work_group = GROUP)]
fn histogram(values: &[u32], bins: &[Atomic<u32>]) {
    let own = shared::<Atomic<u32>, BINS>();
    if local_id() < BINS {
        own[local_id()].store(0, Ordering::Relaxed);
    }
    barrier();
    for i in (global_id()..values.len()).step_by(global_size()) {
        own[values[i] as usize % BINS].fetch_add(1, Ordering::Relaxed);
    }
    barrier();
    // Other work-groups add to the same bins: these additions are atomic, too.
    if local_id() < BINS {
        let count = own[local_id()].load(Ordering::Relaxed);
        bins[local_id()].fetch_add(count, Ordering::Relaxed);
    }
}

fn main() -> headstart::Result<()> {
    let device = Simulator::untimed();
    let queue = device.queue()?;

    // Squares: some remainders are frequent, others never occur.
    let host: Vec<u32> = (0..20_000).map(|i| i * i % BINS as u32).collect();
    let values = TypedBuffer::from_slice(&device, &host)?;
    let mut bins = TypedBuffer::from_slice(&device, &[0u32; BINS])?;

    let program = histogram::compile(&device)?;
    let arguments = histogram::arguments(&values, &mut bins);
    program
        .launch(&*queue, Geometry::new(8, GROUP as u32), arguments)
        .wait()?;

    let found = bins.read(&*queue)?;
    for (value, count) in found.iter().enumerate().filter(|(_, count)| **count > 0) {
        println!("{value:2} occurs {count:5} times");
    }
    let mut expected = [0; BINS];
    host.iter().for_each(|&value| expected[value as usize] += 1);
    assert_eq!(found, expected);
    Ok(())
}
