//! `gather`: a reduction through indices, the example of Intel's oneAPI GPU Optimization Guide, chapter "Prefetch",
//! once with an index and once line for line, and its two forms with prefetches written by hand.
//!
//! Each sub-group walks its own stretch of `indices`, a row of 32 at a time: the indices are read side by side, the
//! values wherever they lie.

// `&indices[…]` in a kernel is a pointer to an element; written twice by the macro, clippy takes it for a slice.
#![allow(clippy::redundant_slicing)]

use std::sync::Arc;

use headstart::device::{Fill, Pattern};
use headstart::ir::{Kernel, Type};
use headstart::prelude::*;
use headstart::tune::{ArgumentSpec, Compare, Workload};
use headstart::{Error, Result};

use crate::kernels::{GalleryKernel, Iterations};
use crate::settings::{Parameter, Settings};
use crate::spatter::{Access, Entry};

/// Work-items of a sub-group.
const SIMD_SIZE: usize = 32;

/// The guide's first example: nothing is fetched early.
#[kernel(work_group = group, sub_group = SIMD_SIZE)]
pub fn gather(
    indices: &[i32],
    values: &[f32],
    result: &mut [f32],
    items: u32,
    #[constant] group: u32,
    #[constant] work: u32,
) {
    let i = global_id();
    let lane = sub_group_local_id();
    let subgroup = i / SIMD_SIZE;
    // Index starting position
    let first = lane + subgroup * SIMD_SIZE * items as usize;
    let mut dx = 0.0;
    #[unroll(0)]
    for j in 0..items as usize {
        // Load index for indirect addressing
        let index = indices[first + j * SIMD_SIZE];
        // Waits for load to finish, high latency
        let v = values[index as usize];
        if work == 0 {
            dx += v;
        }
        #[unroll]
        for k in 0..work {
            dx += (v + k as f32).sqrt();
        }
    }
    result[i] = dx;
}

/// The guide's first example, line for line: a pointer walks through the indices.
#[kernel(work_group = group, sub_group = SIMD_SIZE)]
pub fn gather_pointer(
    indices: &[i32],
    values: &[f32],
    result: &mut [f32],
    items: u32,
    #[constant] group: u32,
    #[constant] work: u32,
) {
    let items = items as usize;
    let i = global_id();
    let lane = sub_group_local_id();
    let subgroup = i / SIMD_SIZE;
    // Index starting position
    let mut current = global_ptr(&indices[lane + subgroup * SIMD_SIZE * items]);
    let mut dx = 0.0;
    #[unroll(0)]
    for _ in 0..items {
        // Load index for indirect addressing
        let index = current.read();
        // Waits for load to finish, high latency
        let v = values[index as usize];
        if work == 0 {
            dx += v;
        }
        #[unroll]
        for k in 0..work {
            dx += (v + k as f32).sqrt();
        }
        current = current.add(SIMD_SIZE);
    }
    result[i] = dx;
}

/// The guide's second example, line for line: the next index is brought to L3. Behind the last index that is harmless.
#[kernel(work_group = group, sub_group = SIMD_SIZE)]
pub fn gather_hint_l3(
    indices: &[i32],
    values: &[f32],
    result: &mut [f32],
    items: u32,
    #[constant] group: u32,
    #[constant] work: u32,
) {
    let items = items as usize;
    let i = global_id();
    let lane = sub_group_local_id();
    let subgroup = i / SIMD_SIZE;
    // Index starting position
    let mut current = global_ptr(&indices[lane + subgroup * SIMD_SIZE * items]);
    let mut next = current.add(SIMD_SIZE);
    let mut dx = 0.0;
    #[unroll(0)]
    for _ in 0..items {
        // Prefetch next index to cache
        next.prefetch(1);
        // Load index, might be cached
        let index = current.read();
        // Latency might be reduced if index was cached
        let v = values[index as usize];
        if work == 0 {
            dx += v;
        }
        #[unroll]
        for k in 0..work {
            dx += (v + k as f32).sqrt();
        }
        current = next;
        next = next.add(SIMD_SIZE);
    }
    result[i] = dx;
}

/// The guide's third example, line for line: the next index is brought to L1, and never one behind the last.
#[kernel(work_group = group, sub_group = SIMD_SIZE)]
pub fn gather_hint_l1(
    indices: &[i32],
    values: &[f32],
    result: &mut [f32],
    items: u32,
    #[constant] group: u32,
    #[constant] work: u32,
) {
    let items = items as usize;
    let i = global_id();
    let lane = sub_group_local_id();
    let subgroup = i / SIMD_SIZE;
    // Index starting position
    let mut current = global_ptr(&indices[lane + subgroup * SIMD_SIZE * items]);
    let mut next = current.add(SIMD_SIZE);
    let mut dx = 0.0;
    #[unroll(0)]
    for j in 0..items {
        // Prefetch next index to cache
        if j < items - 1 {
            lsc_prefetch_uint(next, 0, LSC_LDCC_L1C_L3C);
        }
        // Load index, might be cached
        let index = current.read();
        // Latency might be reduced if index was cached
        let v = values[index as usize];
        if work == 0 {
            dx += v;
        }
        #[unroll]
        for k in 0..work {
            dx += (v + k as f32).sqrt();
        }
        current = next;
        next = next.add(SIMD_SIZE);
    }
    result[i] = dx;
}

/// The parameters with these defaults.
const fn parameters([groups, group, items, table, work]: [u64; 5]) -> [Parameter; 5] {
    [
        Parameter::number("groups", "work-groups", groups, 1..=1 << 20),
        Parameter::number(
            "group",
            "work-items of a work-group, a multiple of 32",
            group,
            32..=4096,
        ),
        Parameter::number("items", "indices that each work-item follows", items, 1..=1 << 20),
        Parameter::number("table", "values that the indices choose from", table, 1..=1 << 31),
        Parameter::number(
            "work",
            "square roots of each value; with 0 the values are added up",
            work,
            0..=256,
        ),
    ]
}

static PARAMETERS: [Parameter; 5] = parameters([132, 128, 1024, 1 << 28, 8]);

/// Those of Intel's published sample: 16 sub-groups in one work-group, as many values as indices.
static SAMPLES: [Parameter; 6] = {
    let [groups, group, items, table, work] = parameters([1, 512, 2048, 1 << 20, 64]);
    let form = Parameter::choice(
        "form",
        "the first example, the second or the third",
        &["pointer", "hint-l3", "hint-l1"],
    );
    [form, groups, group, items, table, work]
};

const fn variant(
    name: &'static str,
    summary: &'static str,
    workload: fn(&Settings, Option<&Entry>) -> Result<Workload>,
) -> GalleryKernel {
    GalleryKernel {
        name,
        summary,
        parameters: &PARAMETERS,
        takes_trace: Some(Access::Gather),
        iterations: Iterations::Are("items"),
        workload,
    }
}

/// `gather`.
pub(crate) static PLAIN: GalleryKernel = variant(
    "gather",
    "a reduction through indices (Intel's guide, first example)",
    |settings, trace| workload(gather::kernel, settings, trace),
);
/// `gather-pointer`.
pub(crate) static POINTER: GalleryKernel = variant(
    "gather-pointer",
    "the same as the guide writes it, with a pointer (first example, line for line)",
    |settings, trace| workload(gather_pointer::kernel, settings, trace),
);
/// `gather-hint-l3`.
pub(crate) static HINT_L3: GalleryKernel = variant(
    "gather-hint-l3",
    "the same, the next index brought to L3 by hand (second example)",
    |settings, trace| workload(gather_hint_l3::kernel, settings, trace),
);
/// `gather-hint-l1`.
pub(crate) static HINT_L1: GalleryKernel = variant(
    "gather-hint-l1",
    "the same, the next index brought to L1 by hand (third example)",
    |settings, trace| workload(gather_hint_l1::kernel, settings, trace),
);

/// `gather-sample`.
pub(crate) static SAMPLE: GalleryKernel = GalleryKernel {
    name: "gather-sample",
    summary: "the guide's three examples with the constants of Intel's published sample, as accurate as DPC++ builds them",
    parameters: &SAMPLES,
    takes_trace: None,
    iterations: Iterations::Are("items"),
    workload: |settings, trace| {
        let kernel = match settings.word("form") {
            "hint-l3" => gather_hint_l3::kernel,
            "hint-l1" => gather_hint_l1::kernel,
            _ => gather_pointer::kernel,
        };
        let workload = workload(kernel, settings, trace)?;
        let mut kernel = (*workload.kernel).clone();
        kernel.float_mode.accuracy = Accuracy::OpenCl;
        Ok(Workload {
            kernel: Arc::new(kernel),
            ..workload
        })
    },
};

/// Seed of the random indices.
const SEED: u64 = 7;

fn workload(
    kernel: fn(u32, u32) -> Result<Kernel>,
    settings: &Settings,
    trace: Option<&Entry>,
) -> Result<Workload> {
    let small = |name: &str| settings.small(name);
    let (groups, group, items) = (small("groups"), small("group"), small("items"));
    if !group.is_multiple_of(32) {
        return Err(Error::usage(format!("`group` cannot be {group}")).accepted("a multiple of 32"));
    }
    let work_items = u64::from(groups) * u64::from(group);
    // Checks ask for no items at all; the buffers still have an element.
    let accesses = (work_items * u64::from(items)).max(1);
    let (pattern, table) = match trace {
        None => {
            let table = settings.get("table");
            (Pattern::below(table, SEED), table)
        }
        Some(entry) => from_trace(entry, accesses, settings)?,
    };
    let input = |element, length, pattern| ArgumentSpec::input(element, length, Fill::Pattern(pattern));
    Workload::new(Arc::new(kernel(group, small("work"))?), groups, group)
        .with("indices", input(Type::I32, accesses, pattern))?
        .with("values", input(Type::F32, table, Pattern::Fractions { low: 1.0 }))?
        .with(
            "result",
            ArgumentSpec::output(Type::F32, work_items, Fill::Uninitialized, Compare::Bits),
        )?
        .with("items", ArgumentSpec::Scalar(Type::I32, u64::from(items)))
}

/// The indices of a trace from its beginning, repeated if it is shorter, and a table that holds them unless the user
/// said how large it is.
fn from_trace(entry: &Entry, accesses: u64, settings: &Settings) -> Result<(Pattern, u64)> {
    let largest = entry.largest_of(accesses).unwrap_or(0);
    if largest > i32::MAX as u64 {
        return Err(Error::input(format!(
            "the trace reaches index {largest} in {accesses} accesses"
        ))
        .accepted(format!(
            "at most {}: ask for fewer items or work-groups",
            i32::MAX
        )));
    }
    let (pattern, delta, count) = (entry.pattern().to_vec(), entry.delta(), entry.count());
    let length = pattern.len() as u64;
    let index = move |access: u64| pattern[(access % length) as usize] + delta * (access / length % count);
    Ok((
        Pattern::Function(Arc::new(index)),
        settings.given("table").unwrap_or(largest + 1),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_forms_give_the_same_results() {
        let (group, items, work) = (64, 5, 3);
        let indices: Vec<i32> = (0..128 * 5).map(|i| i * 7919 % 100).collect();
        let values: Vec<f32> = (0..100).map(|i| 1.0 + i as f32).collect();
        let geometry = Geometry::new(2, group);
        let mut results = [const { Vec::new() }; 4];
        for result in &mut results {
            result.resize(128, 0.0f32);
        }
        let [plain, pointer, l3, l1] = &mut results;
        gather::reference(geometry, &indices, &values, plain, items, group, work).expect("it runs");
        gather_pointer::reference(geometry, &indices, &values, pointer, items, group, work).expect("it runs");
        gather_hint_l3::reference(geometry, &indices, &values, l3, items, group, work).expect("it runs");
        gather_hint_l1::reference(geometry, &indices, &values, l1, items, group, work).expect("it runs");
        assert_eq!(plain, pointer);
        assert_eq!(plain, l3);
        assert_eq!(plain, l1);
        // Work-item 33 is lane 1 of the second sub-group: its indices lie 32 apart, behind those of the first.
        let own = (0..5).map(|j| values[indices[32 * 5 + j * 32 + 1] as usize]);
        let expected = own.fold(0.0, |sum, v| sum + v.sqrt() + (v + 1.0).sqrt() + (v + 2.0).sqrt());
        assert!(
            (plain[33] - expected).abs() < 1e-3,
            "{} is not {expected}",
            plain[33]
        );
    }

    /// The data are those of the hand-written CUDA that was measured.
    #[test]
    fn indices_and_values_are_those_that_were_measured() {
        let chosen = crate::kernels::find("gather")
            .expect("there")
            .with(&[], None)
            .expect("defaults");
        let workload = headstart::tune::Subject::workload(&chosen).expect("a workload");
        let pattern = |given: &ArgumentSpec| match given {
            ArgumentSpec::Input {
                fill: Fill::Pattern(pattern),
                ..
            } => pattern.clone(),
            other => panic!("{other:?} is no pattern"),
        };
        let (indices, values) = (pattern(&workload.given[0]), pattern(&workload.given[2]));
        for i in [0u64, 1, 1000, 132 * 128 * 1024 - 1] {
            let mut z = (i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(7);
            z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            assert_eq!(indices.bits(Type::I32, i), (z ^ (z >> 31)) % (1 << 28));
            let value = ((i * 2_654_435_761) >> 8 & 0xffff) as f32 / 65536.0 + 1.0;
            assert_eq!(values.bits(Type::F32, i), u64::from(value.to_bits()));
        }
    }
}
