//! Sub-groups of 8, 16 and 32 against the registers that a work-item needs.

use headstart::Result;
use headstart::ir::{Kernel, Type};
use headstart::prelude::*;
use headstart::tune::Workload;

use super::{Family, items, shown};
use crate::data::{fractions, output};
use crate::kernels::{GalleryKernel, Iterations};
use crate::settings::{Parameter, Settings, launch};
use crate::spatter::Entry;

/// The sum of four.
#[device_fn]
fn total(four: [f32; 4]) -> f32 {
    (four[0] + four[1]) + (four[2] + four[3])
}

/// Four with something taken off.
#[device_fn]
fn less(four: [f32; 4], mean: f32) -> [f32; 4] {
    [four[0] - mean, four[1] - mean, four[2] - mean, four[3] - mean]
}

/// Each work-item takes the mean of its 8 elements off them: all are kept until the last has come.
#[kernel(work_group = group, sub_group = size)]
pub fn centre_8(values: &[[f32; 4]], result: &mut [[f32; 4]], #[constant] group: u32, #[constant] size: u32) {
    let (at, next) = (global_id(), global_size());
    let (a, b) = (values[at], values[at + next]);
    let mean = (total(a) + total(b)) / 8.0;
    result[at] = less(a, mean);
    result[at + next] = less(b, mean);
}

/// The same with 32 elements: 32 registers of each work-item, and those of the addresses.
#[kernel(work_group = group, sub_group = size)]
pub fn centre_32(
    values: &[[f32; 4]],
    result: &mut [[f32; 4]],
    #[constant] group: u32,
    #[constant] size: u32,
) {
    let (at, next) = (global_id(), global_size());
    let (a, b, c, d) = (
        values[at],
        values[at + next],
        values[at + 2 * next],
        values[at + 3 * next],
    );
    let (e, f) = (values[at + 4 * next], values[at + 5 * next]);
    let (g, h) = (values[at + 6 * next], values[at + 7 * next]);
    let (first, last) = (
        total(a) + total(b) + total(c) + total(d),
        total(e) + total(f) + total(g) + total(h),
    );
    let mean = (first + last) / 32.0;
    result[at] = less(a, mean);
    result[at + next] = less(b, mean);
    result[at + 2 * next] = less(c, mean);
    result[at + 3 * next] = less(d, mean);
    result[at + 4 * next] = less(e, mean);
    result[at + 5 * next] = less(f, mean);
    result[at + 6 * next] = less(g, mean);
    result[at + 7 * next] = less(h, mean);
}

static PARAMETERS: [Parameter; 3] = [
    Parameter::number("groups", "work-groups", 768, 1..=1 << 20),
    Parameter::number(
        "group",
        "work-items of a work-group, a multiple of the size",
        256,
        32..=512,
    ),
    Parameter::number(
        "size",
        "work-items of a sub-group, one that the device has",
        32,
        8..=32,
    ),
];

/// A kernel whose work-items have this many quads of elements each.
const fn centring(
    name: &'static str,
    summary: &'static str,
    workload: fn(&Settings, Option<&Entry>) -> Result<Workload>,
) -> GalleryKernel {
    GalleryKernel {
        name,
        summary,
        parameters: &PARAMETERS,
        takes_trace: None,
        // There is no loop.
        iterations: Iterations::Given {
            small: |settings, _| settings.with("groups", 2),
            shapes: |_| Vec::new(),
        },
        workload,
    }
}

fn with_quads(settings: &Settings, kernel: Kernel, quads: u64) -> Result<Workload> {
    let elements = 4 * quads * items(settings);
    launch(settings, kernel)
        .with("values", fractions(Type::F32, elements))?
        .with("result", output(Type::F32, elements))
}

/// `centre-8`.
pub(crate) static FEW: GalleryKernel = centring(
    "centre-8",
    "8 elements of each work-item, minus their mean",
    |settings, _| {
        with_quads(
            settings,
            centre_8::kernel(settings.small("group"), settings.small("size"))?,
            2,
        )
    },
);

/// `centre-32`.
pub(crate) static MANY: GalleryKernel = centring(
    "centre-32",
    "32 elements of each work-item, minus their mean: many registers",
    |settings, _| {
        with_quads(
            settings,
            centre_32::kernel(settings.small("group"), settings.small("size"))?,
            8,
        )
    },
);

/// The page.
pub static FAMILY: Family = Family {
    device: "xe-lp",
    page: "sub-group-sizes",
    title: "Sub-groups of 8, 16 and 32 against registers",
    text: [
        "On Intel's GPUs a hardware thread runs a sub-group, and its register file (4 KiB on Xe-LP) is divided among \
         the work-items: sub-groups of 8 leave each 128 registers of 32 bits, of 16 leave 64, of 32 leave 32. Values \
         that do not fit are spilled to memory, through the caches. The compiler chooses the size accordingly; a \
         kernel that requires one (`sub_group = 16`) makes its own choice.",
        "`centre-8` keeps few values and fits everywhere. `centre-32` keeps 32 values per work-item until their mean \
         is known, and Intel's compiler spills them in sub-groups of 32. Wide sub-groups run fewer instructions for \
         the same work, and have fewer threads' loads in flight: for kernels that wait for memory narrow ones are \
         faster here even without spills.",
    ],
    kernels: &[
        shown("centre-8", &["size=8"]),
        shown("centre-8", &["size=16"]),
        shown("centre-8", &["size=32"]),
        shown("centre-32", &["size=8"]),
        shown("centre-32", &["size=16"]),
        shown("centre-32", &["size=32"]),
    ],
};

#[cfg(test)]
mod tests {
    use crate::workloads::testing::run;

    #[test]
    fn the_mean_is_taken_off() {
        for (kernel, quads) in [("centre-8", 2), ("centre-32", 8)] {
            let ran = run(kernel, &["groups=2", "group=64", "size=32"]);
            let (values, result) = (ran.f32s("values"), ran.f32s("result"));
            for item in 0..128 {
                let own = || (0..4 * quads).map(|k| k / 4 * 512 + 4 * item + k % 4);
                let mean = own().map(|at| f64::from(values[at])).sum::<f64>() / f64::from(4 * quads as u32);
                for at in own() {
                    let expected = f64::from(values[at]) - mean;
                    assert!((f64::from(result[at]) - expected).abs() < 1e-6, "{kernel} {item}");
                }
            }
        }
    }
}
