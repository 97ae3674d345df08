//! A prefetch on a loop: the same gather plain and with `#[prefetch]`, its results and times compared.
//!
//!     cargo run --release --example gather

use headstart::device::sim::Simulator;
use headstart::device::{Device, Event, Pattern, TypedBuffer};
use headstart::prelude::*;

/// Adds up what the indices point to, `items` for each work-item.
#[kernel(work_group = 128)]
fn plain(indices: &[u32], values: &[f32], sums: &mut [f32], items: u32) {
    let mut sum = 0.0;
    for j in 0..items as usize {
        sum += values[indices[j * global_size() + global_id()] as usize];
    }
    sums[global_id()] = sum;
}

/// The same loop. Each value is copied into a ring in shared memory eight iterations before its use; the indices that
/// this needs are loaded still earlier. The results are the same, to the bit.
#[kernel(work_group = 128)]
fn prefetched(indices: &[u32], values: &[f32], sums: &mut [f32], items: u32) {
    let mut sum = 0.0;
    #[prefetch("values=rolling-async:8")]
    for j in 0..items as usize {
        sum += values[indices[j * global_size() + global_id()] as usize];
    }
    sums[global_id()] = sum;
}

fn nanoseconds(launch: &Event) -> headstart::Result<f64> {
    Ok(launch.wait()?.times.elapsed_ns())
}

fn main() -> headstart::Result<()> {
    let device = Simulator::new("h200")?;
    let queue = device.queue()?;

    // A work-group for each core: too few to hide the memory's latency.
    let (groups, group, items) = (132, 128, 24);
    let work_items = u64::from(groups * group);
    // A pattern is generated where it is read; the table is larger than the caches.
    let table = 1 << 26;
    let anywhere = Pattern::below(table, 1);
    let indices = TypedBuffer::<u32>::from_pattern(&device, work_items * u64::from(items), anywhere)?;
    let values = TypedBuffer::<f32>::from_pattern(&device, table, Pattern::Fractions { low: 1.0 })?;

    let geometry = Geometry::new(groups, group);
    let mut first = TypedBuffer::uninitialized(&device, work_items)?;
    let arguments = plain::arguments(&indices, &values, &mut first, items);
    let without = plain::compile(&device)?.launch(&*queue, geometry, arguments);
    let mut second = TypedBuffer::uninitialized(&device, work_items)?;
    let arguments = prefetched::arguments(&indices, &values, &mut second, items);
    let with = prefetched::compile(&device)?.launch(&*queue, geometry, arguments);

    let (without, with) = (nanoseconds(&without)?, nanoseconds(&with)?);
    let bits = |sums: Vec<f32>| -> Vec<u32> { sums.into_iter().map(f32::to_bits).collect() };
    let same = bits(first.read(&*queue)?) == bits(second.read(&*queue)?);
    println!("plain:      {:6.1} µs", without / 1e3);
    println!(
        "prefetched: {:6.1} µs, {:.1} times as fast",
        with / 1e3,
        without / with
    );
    println!("the same bits: {same}");
    assert!(same && with < without);
    Ok(())
}
