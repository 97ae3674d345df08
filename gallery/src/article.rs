//! `article`: the loop of NVIDIA's article "Boosting Application Performance with GPU Memory Prefetching", in f64.
//!
//! Each work-group walks its own part of an array, its work-items side by side; every element goes through the
//! exponential function, once for each term.

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
pub fn article(
    arr: &[f64],
    result: &mut [f64],
    elements: u32,
    #[constant] group: u32,
    #[constant] work: u32,
) {
    let start = group_id() * elements as usize;
    let mut acc = 0.0;
    #[unroll(0)]
    for i in (local_id()..elements as usize).step_by(group as usize) {
        let x = arr[start + i];
        // Lots of instructions using x, for example, transcendentals
        #[unroll]
        for k in 0..work {
            // Another argument for each term, so that none of them leaves the loop over the terms; the first is the element.
            let y = if k == 0 { x } else { x + k as f64 };
            acc += (-y * y).exp() * (x + k as f64);
        }
    }
    result[global_id()] = acc;
}

static PARAMETERS: [Parameter; 4] = [
    Parameter::number("groups", "work-groups", 132, 1..=1 << 20),
    Parameter::number("group", "work-items of a work-group", 128, 1..=4096),
    Parameter::number(
        "elements",
        "elements of a work-group's part",
        400_000,
        1..=1 << 31,
    ),
    Parameter::number("work", "terms of each element", 1, 0..=64),
];

/// `article`.
pub(crate) static ARTICLE: GalleryKernel = GalleryKernel {
    name: "article",
    summary: "exponentials of a streamed array (NVIDIA's article on prefetching)",
    parameters: &PARAMETERS,
    takes_trace: None,
    iterations: Iterations::ShareOfGroup("elements"),
    workload,
};

fn workload(settings: &Settings, _trace: Option<&Entry>) -> Result<Workload> {
    let small = |name: &str| settings.small(name);
    let (groups, group, elements) = (small("groups"), small("group"), small("elements"));
    let length = u64::from(groups) * u64::from(elements);
    Workload::new(Arc::new(article::kernel(group, small("work"))?), groups, group)
        .with(
            "arr",
            ArgumentSpec::Input {
                element: Type::F64,
                length: length.max(1),
                fill: Fill::Pattern(Pattern::Fractions { low: 0.0 }),
            },
        )?
        .with(
            "result",
            ArgumentSpec::Output {
                element: Type::F64,
                length: u64::from(groups) * u64::from(group),
                fill: Fill::Uninitialized,
                compare: Compare::Bits,
            },
        )?
        .with("elements", ArgumentSpec::Scalar(Type::I32, u64::from(elements)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_work_item_adds_up_its_elements() {
        let arr: Vec<f64> = (0..2 * 10).map(|i| f64::from(i) / 16.0).collect();
        let mut result = vec![0.0; 8];
        article::reference(Geometry::new(2, 4), &arr, &mut result, 10, 4, 2).expect("it runs");
        let exp = |x: f64| headstart::math::Function::Exp.f64(&[x]);
        for (item, sum) in result.iter().enumerate() {
            let (group, local) = (item / 4, item % 4);
            let own = (local..10).step_by(4).map(|i| arr[group * 10 + i]);
            let expected = own.fold(0.0, |sum, x| {
                let y = x + 1.0;
                sum + exp(-x * x) * x + exp(-y * y) * y
            });
            assert_eq!(*sum, expected, "work-item {item}");
        }
    }
}
