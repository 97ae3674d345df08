//! The three examples of SYCL's extension `sycl_ext_oneapi_prefetch`, and one that names no level: which level a prefetch without one
//! should go to is the extension's open question.

use headstart::Result;
use headstart::device::{Fill, Pattern};
use headstart::ir::{CacheLevel, Kernel, Type};
use headstart::prelude::*;
use headstart::tune::{ArgumentSpec, Compare, Workload};

use crate::kernels::{GalleryKernel, Iterations};
use crate::settings::{Parameter, Settings, launch};
use crate::spatter::Entry;

/// Work-items of a sub-group.
const SIMD: usize = 32;

/// The first example: ten elements ahead to L1, a hundred to L3.
#[kernel(work_group = group)]
pub fn two_levels(
    data: &[f32],
    result: &mut [f32],
    count: u32,
    #[constant] group: u32,
    #[constant] work: u32,
) {
    let count = count as usize;
    let start = global_id() * count;
    let mut sum = 0.0;
    #[unroll(0)]
    for j in 0..count {
        if j + 10 < count {
            prefetch(&data[start + j + 10], L1);
        }
        if j + 100 < count {
            prefetch(&data[start + j + 100], L3);
        }
        sum += data[start + j];
        #[unroll]
        for _ in 0..work {
            sum *= 0.5;
        }
    }
    result[global_id()] = sum;
}

/// The second: data that will not be used again.
#[kernel(work_group = group)]
pub fn nontemporal(
    data: &[f32],
    result: &mut [f32],
    count: u32,
    #[constant] group: u32,
    #[constant] work: u32,
) {
    let count = count as usize;
    let start = global_id() * count;
    let mut sum = 0.0;
    #[unroll(0)]
    for j in 0..count {
        if j + 10 < count {
            prefetch(&data[start + j + 10], L1.nontemporal());
        }
        sum += data[start + j];
        #[unroll]
        for _ in 0..work {
            sum *= 0.5;
        }
    }
    result[global_id()] = sum;
}

/// The third: a sub-group asks together for the elements that it will read a hundred further.
#[kernel(work_group = group, sub_group = SIMD)]
pub fn joint(data: &[f32], result: &mut [f32], count: u32, #[constant] group: u32, #[constant] work: u32) {
    let own = SIMD * count as usize;
    let start = global_id() / SIMD * own;
    let lane = sub_group_local_id();
    let mut sum = 0.0;
    #[unroll(0)]
    for j in 0..count as usize {
        let next = j * SIMD + 128;
        if next + SIMD <= own {
            joint_prefetch(sub_group(), &data[start + next..start + next + SIMD], L3);
        }
        sum += data[start + j * SIMD + lane];
        #[unroll]
        for _ in 0..work {
            sum *= 0.5;
        }
    }
    result[global_id()] = sum;
}

/// Ten elements ahead, and no level: the launch decides.
#[kernel(work_group = group)]
pub fn no_level(data: &[f32], result: &mut [f32], count: u32, #[constant] group: u32, #[constant] work: u32) {
    let count = count as usize;
    let start = global_id() * count;
    let mut sum = 0.0;
    #[unroll(0)]
    for j in 0..count {
        if j + 10 < count {
            prefetch(&data[start + j + 10], ());
        }
        sum += data[start + j];
        #[unroll]
        for _ in 0..work {
            sum *= 0.5;
        }
    }
    result[global_id()] = sum;
}

static PARAMETERS: [Parameter; 6] = [
    Parameter::number("groups", "work-groups", 1, 1..=1 << 16),
    Parameter::number(
        "group",
        "work-items of a work-group, a multiple of 32",
        32,
        32..=1024,
    ),
    Parameter::number("count", "elements of each work-item", 1024, 1..=1 << 20),
    Parameter::number("work", "multiplications for each element", 16, 0..=256),
    Parameter::choice(
        "example",
        "of the extension, or one that names no level",
        &["no-level", "two-levels", "nontemporal", "joint"],
    ),
    Parameter::choice(
        "default-level",
        "where a prefetch goes that names no level",
        &["L1", "L2", "L3", "L4"],
    ),
];

/// `prefetch-examples`.
pub(crate) static EXAMPLES: GalleryKernel = GalleryKernel {
    name: "prefetch-examples",
    summary: "the examples of SYCL's extension for prefetching, and its open question: the default level",
    parameters: &PARAMETERS,
    takes_trace: None,
    iterations: Iterations::Are("count"),
    workload,
};

fn workload(settings: &Settings, _trace: Option<&Entry>) -> Result<Workload> {
    let (group, work) = (settings.small("group"), settings.small("work"));
    let kernel = match settings.word("example") {
        "two-levels" => two_levels::kernel(group, work)?,
        "nontemporal" => nontemporal::kernel(group, work)?,
        "joint" => joint::kernel(group, work)?,
        _ => no_level::kernel(group, work)?.with_default_level(default_level(settings)),
    };
    with_data(settings, kernel)
}

fn default_level(settings: &Settings) -> CacheLevel {
    let level = CacheLevel::ALL
        .iter()
        .find(|level| level.name() == settings.word("default-level"));
    level.copied().unwrap_or(CacheLevel::L1)
}

fn with_data(settings: &Settings, kernel: Kernel) -> Result<Workload> {
    let items = settings.get("groups") * settings.get("group");
    let data = ArgumentSpec::Input {
        element: Type::F32,
        length: items * settings.get("count"),
        fill: Fill::Pattern(Pattern::Fractions { low: 0.0 }),
    };
    let result = ArgumentSpec::output(Type::F32, items, Fill::Uninitialized, Compare::Bits);
    launch(settings, kernel)
        .with("data", data)?
        .with("result", result)?
        .with("count", ArgumentSpec::Scalar(Type::I32, settings.get("count")))
}

#[cfg(test)]
mod tests {
    use crate::workloads::testing::run;

    #[test]
    fn all_examples_add_up_the_same_elements() {
        let of = |example: &str| run("prefetch-examples", &["count=200", "work=1", example]);
        let sums = |data: &[f32], place: &dyn Fn(usize, usize) -> usize| -> Vec<f32> {
            let sum = |item| (0..200).fold(0.0, |sum, j| (sum + data[place(item, j)]) * 0.5);
            (0..32).map(sum).collect()
        };
        for example in ["example=two-levels", "example=nontemporal", "example=no-level"] {
            let ran = of(example);
            let expected = sums(&ran.f32s("data"), &|item, j| item * 200 + j);
            assert_eq!(ran.f32s("result"), expected, "{example}");
        }
        let ran = of("example=joint");
        assert_eq!(
            ran.f32s("result"),
            sums(&ran.f32s("data"), &|item, j| j * 32 + item)
        );
    }
}
