//! `y = a·x + y`: a kernel, a device, buffers, a launch, and the result.
//!
//!     cargo run --release --example saxpy

use headstart::device::sim::Simulator;
use headstart::device::{Device, TypedBuffer};
use headstart::prelude::*;

/// Each work-item computes one element. The last work-group has more work-items than elements are left.
#[kernel]
fn saxpy(x: &[f32], y: &mut [f32], a: f32) {
    let i = global_id();
    if i < y.len() {
        y[i] += a * x[i];
    }
}

fn main() -> headstart::Result<()> {
    // A simulated GPU. It runs the kernel under checks, and tells how long the GPU would take.
    // `headstart::device::cuda` and `headstart::device::opencl` open real ones; the rest is the same.
    let device = Simulator::new("h200")?;
    let queue = device.queue()?;

    let length = 1_000_000;
    let host_x: Vec<f32> = (0..length).map(|i| i as f32).collect();
    let x = TypedBuffer::from_slice(&device, &host_x)?;
    let mut y = TypedBuffer::from_slice(&device, &vec![1.0f32; length])?;

    // The compiler checks the arguments against the kernel's parameters.
    let program = saxpy::compile(&device)?;
    let group = 256;
    let groups = length.div_ceil(group) as u32;
    let arguments = saxpy::arguments(&x, &mut y, 2.0);
    let event = program.launch(&*queue, Geometry::new(groups, group as u32), arguments);
    // The launch runs while the program goes on. `wait` gives its times, or what went wrong.
    let outcome = event.wait()?;

    let result = y.read(&*queue)?;
    let wrong = (0..length)
        .filter(|&i| result[i] != 2.0 * host_x[i] + 1.0)
        .count();
    println!("{length} elements in {groups} work-groups of {group} work-items, {wrong} of them wrong");
    // Between two launches the data stay in the L2 cache, where they fit.
    let microseconds = outcome.times.elapsed_ns() / 1e3;
    println!(
        "{microseconds:.1} µs on {}, from its L2 cache",
        device.description().title
    );
    assert_eq!(wrong, 0);
    Ok(())
}
