//! `gather`: a reduction through indices, the example of Intel's oneAPI GPU Optimization Guide, chapter "Prefetch",
//! and its two forms with prefetches written by hand.
//!
//! Each sub-group walks its own stretch of `indices`, a row of 32 at a time: the indices are read side by side, the
//! values wherever they lie.

use std::sync::Arc;

use headstart::device::{Fill, Pattern};
use headstart::ir::{Kernel, Type};
use headstart::prelude::*;
use headstart::tune::{Compare, Given, Workload};
use headstart::{Error, Result};

use crate::kernels::{GalleryKernel, Iterations};
use crate::settings::{Parameter, Settings};
use crate::spatter::Entry;

/// The reduction, with nothing fetched early.
#[kernel(work_group = group, sub_group = 32)]
pub fn gather(
    indices: &[i32],
    values: &[f32],
    result: &mut [f32],
    items: u32,
    #[constant] group: u32,
    #[constant] work: u32,
) {
    let i = global_id();
    let first = i / 32 * 32 * items as usize + sub_group_local_id();
    let mut dx = 0.0;
    #[unroll(0)]
    for j in 0..items as usize {
        let index = indices[first + j * 32];
        let v = values[index as usize];
        #[unroll]
        for k in 0..work {
            dx += (v + k as f32).sqrt();
        }
    }
    result[i] = dx;
}

/// The guide's second example: the next index is brought to L3. Behind the last index that is harmless.
#[kernel(work_group = group, sub_group = 32)]
pub fn gather_hint_l3(
    indices: &[i32],
    values: &[f32],
    result: &mut [f32],
    items: u32,
    #[constant] group: u32,
    #[constant] work: u32,
) {
    let i = global_id();
    let first = i / 32 * 32 * items as usize + sub_group_local_id();
    let mut dx = 0.0;
    #[unroll(0)]
    for j in 0..items as usize {
        prefetch(&indices[first + (j + 1) * 32], L3);
        let index = indices[first + j * 32];
        let v = values[index as usize];
        #[unroll]
        for k in 0..work {
            dx += (v + k as f32).sqrt();
        }
    }
    result[i] = dx;
}

/// The guide's third example: the next index is brought to L1, and never one behind the last.
#[kernel(work_group = group, sub_group = 32)]
pub fn gather_hint_l1(
    indices: &[i32],
    values: &[f32],
    result: &mut [f32],
    items: u32,
    #[constant] group: u32,
    #[constant] work: u32,
) {
    let i = global_id();
    let first = i / 32 * 32 * items as usize + sub_group_local_id();
    let mut dx = 0.0;
    #[unroll(0)]
    for j in 0..items as usize {
        if j + 1 < items as usize {
            prefetch(&indices[first + (j + 1) * 32], L1);
        }
        let index = indices[first + j * 32];
        let v = values[index as usize];
        #[unroll]
        for k in 0..work {
            dx += (v + k as f32).sqrt();
        }
    }
    result[i] = dx;
}

static PARAMETERS: [Parameter; 5] = [
    Parameter {
        name: "groups",
        meaning: "work-groups",
        default: 132,
        range: 1..=1 << 20,
    },
    Parameter {
        name: "group",
        meaning: "work-items of a work-group, a multiple of 32",
        default: 128,
        range: 32..=1 << 16,
    },
    Parameter {
        name: "items",
        meaning: "indices that each work-item follows",
        default: 1024,
        range: 1..=1 << 20,
    },
    Parameter {
        name: "table",
        meaning: "values that the indices choose from",
        default: 1 << 28,
        range: 1..=1 << 31,
    },
    Parameter {
        name: "work",
        meaning: "square roots of each value",
        default: 8,
        range: 0..=256,
    },
];

const fn variant(
    name: &'static str,
    summary: &'static str,
    workload: fn(&Settings, Option<&Entry>) -> Result<Workload>,
) -> GalleryKernel {
    GalleryKernel {
        name,
        summary,
        parameters: &PARAMETERS,
        takes_trace: true,
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

/// Seed of the random indices.
const SEED: u64 = 7;

fn workload(
    kernel: fn(u32, u32) -> Result<Kernel>,
    settings: &Settings,
    trace: Option<&Entry>,
) -> Result<Workload> {
    let small = |name: &str| u32::try_from(settings.get(name)).expect("the parameter's range fits 32 bits");
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
            (
                Pattern::Below {
                    bound: table,
                    seed: SEED,
                },
                table,
            )
        }
        Some(entry) => from_trace(entry, accesses, settings)?,
    };
    let input = |element, length, pattern| Given::Input {
        element,
        length,
        fill: Fill::Pattern(pattern),
    };
    Workload::new(Arc::new(kernel(group, small("work"))?), groups, group)
        .with("indices", input(Type::I32, accesses, pattern))?
        .with("values", input(Type::F32, table, Pattern::Fractions { low: 1.0 }))?
        .with(
            "result",
            Given::Output {
                element: Type::F32,
                length: work_items,
                fill: Fill::Uninitialized,
                compare: Compare::Bits,
            },
        )?
        .with("items", Given::Scalar(Type::I32, u64::from(items)))
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
