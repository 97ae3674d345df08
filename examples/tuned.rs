//! The best form of a kernel for the launch at hand: searched for once, remembered for the next start.
//!
//! The answer is kept in the user's folder for caches, or in the file that `HEADSTART_CACHE` names. An edited kernel,
//! another device or another size is searched for anew.
//!
//!     cargo run --release --example tuned

use headstart::device::sim::Simulator;
use headstart::device::{Device, Pattern, TypedBuffer};
use headstart::prelude::*;

/// Adds up what the indices point to, `items` for each work-item.
#[kernel(work_group = 64)]
fn gather(indices: &[u32], values: &[f32], sums: &mut [f32], items: u32) {
    let mut sum = 0.0;
    for j in 0..items as usize {
        sum += values[indices[j * global_size() + global_id()] as usize];
    }
    sums[global_id()] = sum;
}

fn main() -> headstart::Result<()> {
    let (groups, group, items, table) = (8, 64, 64, 1 << 20);
    let work_items = u64::from(groups * group);
    let device = Simulator::new("h200")?;
    let anywhere = Pattern::below(table, 1);
    let indices = TypedBuffer::from_pattern(&device, work_items * u64::from(items), anywhere)?;
    let values = TypedBuffer::from_pattern(&device, table, Pattern::Fractions { low: 1.0 })?;
    let mut sums = TypedBuffer::uninitialized(&device, work_items)?;

    // On a GPU it is the same: plans are measured there instead of simulated.
    let geometry = Geometry::new(groups, group);
    let best = gather::tuned(
        &device,
        geometry,
        gather::arguments(&indices, &values, &mut sums, items),
    )?;
    println!("from:    {:?}", best.found.from);
    if let Some(error) = &best.found.not_kept {
        println!("kept:    no, the next start searches again: {error}");
    }
    for plan in &best.found.written {
        println!("written: `#[prefetch(\"{plan}\")]`, which the plain kernel has");
    }
    println!("verdict: {}", best.found.verdict);
    println!("plan:    {}", best.found.plan);
    println!(
        "gain:    {:.1} times as fast as the plain kernel",
        best.found.speedup
    );

    // The tuned kernel takes the plain one's arguments.
    let queue = device.queue()?;
    let arguments = gather::arguments(&indices, &values, &mut sums, items);
    best.compiled.launch(&*queue, geometry, arguments).wait()?;
    let tuned = sums.read(&*queue)?;
    let arguments = gather::arguments(&indices, &values, &mut sums, items);
    gather::compile(&device)?
        .launch(&*queue, geometry, arguments)
        .wait()?;
    println!("the same bits: {}", tuned == sums.read(&*queue)?);
    Ok(())
}
