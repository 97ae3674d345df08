//! `latency`: one load at a time with arithmetic in between, so that a hint has time to act and only it can help.
//!
//! An iteration takes as long as the arithmetic and one load that nothing hides. With `stride=0` the load leaves the loop; the
//! difference is the part of the latency that a prefetch leaves.

use std::sync::Arc;

use headstart::Result;
use headstart::device::{Fill, Pattern};
use headstart::ir::Type;
use headstart::prelude::*;
use headstart::tune::{ArgumentSpec, Compare, Workload};

use crate::kernels::{GalleryKernel, Iterations};
use crate::settings::{Parameter, Settings};
use crate::spatter::Entry;

/// The loop, with nothing fetched early.
#[kernel(work_group = group)]
pub fn latency(
    table: &[f32],
    result: &mut [f32],
    steps: u32,
    #[constant] group: u32,
    #[constant] stride: u32,
    #[constant] work: u32,
) {
    let mut sum = 0.0;
    #[unroll(0)]
    for step in 0..steps as usize {
        sum += table[local_id() + step * stride as usize];
        // Each multiplication waits for the one before it.
        #[unroll]
        for _ in 0..work {
            sum *= 0.5;
        }
    }
    result[global_id()] = sum;
}

static PARAMETERS: [Parameter; 5] = [
    Parameter::number("groups", "work-groups", 1, 1..=1 << 16),
    Parameter::number("group", "work-items of a work-group", 32, 1..=1024),
    Parameter::number("steps", "loads, one after the other", 2048, 1..=1 << 20),
    Parameter::number(
        "stride",
        "elements from one load to the next; with 0 there is one load",
        32_768,
        0..=1 << 20,
    ),
    Parameter::number("work", "multiplications between two loads", 400, 0..=1024),
];

/// `latency`.
pub(crate) static LATENCY: GalleryKernel = GalleryKernel {
    name: "latency",
    summary: "one load at a time with arithmetic between: the latency that a hint leaves",
    parameters: &PARAMETERS,
    takes_trace: None,
    iterations: Iterations::Are("steps"),
    workload,
};

fn workload(settings: &Settings, _trace: Option<&Entry>) -> Result<Workload> {
    let small = |name: &str| settings.small(name);
    let (groups, group, steps, stride) = (small("groups"), small("group"), small("steps"), small("stride"));
    let kernel = latency::kernel(group, stride, small("work"))?;
    Workload::new(Arc::new(kernel), groups, group)
        .with(
            "table",
            ArgumentSpec::Input {
                element: Type::F32,
                length: u64::from(steps) * u64::from(stride) + u64::from(group),
                fill: Fill::Pattern(Pattern::Fractions { low: 1.0 }),
            },
        )?
        .with(
            "result",
            ArgumentSpec::Output {
                element: Type::F32,
                length: u64::from(groups) * u64::from(group),
                fill: Fill::Uninitialized,
                compare: Compare::Bits,
            },
        )?
        .with("steps", ArgumentSpec::Scalar(Type::I32, u64::from(steps)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_work_item_walks_the_table() {
        let table: Vec<f32> = (0..32).map(|i| i as f32).collect();
        let mut result = vec![0.0; 4];
        latency::reference(Geometry::new(1, 4), &table, &mut result, 3, 4, 8, 1).expect("it runs");
        for (item, found) in result.iter().enumerate() {
            let expected = (0..3).fold(0.0, |sum, step| (sum + table[item + step * 8]) * 0.5);
            assert_eq!(*found, expected, "work-item {item}");
        }
    }
}
