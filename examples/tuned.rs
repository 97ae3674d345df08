//! The best form of a kernel at program start: searched for once, remembered for the next start.
//!
//! The answer is kept in the user's folder for caches, or in the file that `HEADSTART_CACHE` names. An edited kernel,
//! another device or another size is searched for anew.
//!
//!     cargo run --release --example tuned

use std::sync::Arc;

use headstart::device::{Fill, Pattern, model};
use headstart::ir::Type;
use headstart::prelude::*;
use headstart::tune::{Compare, Given, SimulatedBench, Workload, tuned};

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
    // The kernel with data of the size that the program works on. Each parameter gets something, in order.
    let (groups, group, items, table) = (8, 64, 64, 1 << 24);
    let input = |element, length, pattern| Given::Input {
        element,
        length,
        fill: Fill::Pattern(pattern),
    };
    let work_items = u64::from(groups * group);
    let anywhere = Pattern::Below {
        bound: table,
        seed: 1,
    };
    let fractions = Pattern::Fractions { low: 1.0 };
    let sums = Given::Output {
        element: Type::F32,
        length: work_items,
        fill: Fill::Uninitialized,
        compare: Compare::Bits,
    };
    let workload = Workload::new(Arc::new(gather::kernel()?), groups, group)
        .with("indices", input(Type::I32, work_items * items, anywhere))?
        .with("values", input(Type::F32, table, fractions))?
        .with("sums", sums)?
        .with("items", Given::Scalar(Type::I32, items))?;

    // What times the plans: a model here, a GPU with `headstart::tune::MeasuredBench`.
    let bench = SimulatedBench::new(model::built_in("h200", &[])?);
    let best = tuned(&workload, &bench)?;

    println!("from:    {:?}", best.from);
    println!("verdict: {}", best.verdict);
    println!("plan:    {}", best.plan);
    println!("gain:    {:.1} times as fast as the plain kernel", best.speedup);
    // `best.kernel` takes the plain kernel's arguments: run it, or emit it as PTX or SPIR-V.
    assert_eq!(best.kernel.params.len(), workload.kernel.params.len());
    assert!(best.speedup >= 1.0);
    Ok(())
}
