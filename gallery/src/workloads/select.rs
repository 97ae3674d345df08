//! `index-select` and `scatter`: elements moved from where indices say, and to there. The indices are random, or those
//! of an application's trace (Spatter).

use std::sync::Arc;

use headstart::device::Pattern;
use headstart::ir::Type;
use headstart::prelude::*;
use headstart::tune::{Given, Workload};
use headstart::{Error, Result};

use crate::data::{computed, fractions, input, output, scalar, zeroed};
use crate::kernels::{GalleryKernel, Iterations};
use crate::settings::{Parameter, Settings};
use crate::spatter::Entry;

/// What the indices choose, side by side.
#[kernel(work_group = group)]
pub fn index_select(source: &[f32], indices: &[u32], result: &mut [f32], items: u32, #[constant] group: u32) {
    #[unroll(0)]
    for j in 0..items as usize {
        let at = j * global_size() + global_id();
        result[at] = source[indices[at] as usize];
    }
}

/// What lies side by side, to where the indices say.
#[kernel(work_group = group)]
pub fn scatter(source: &[f32], indices: &[u32], result: &mut [f32], items: u32, #[constant] group: u32) {
    #[unroll(0)]
    for j in 0..items as usize {
        let at = j * global_size() + global_id();
        result[indices[at] as usize] = source[at];
    }
}

static PARAMETERS: [Parameter; 4] = [
    Parameter::number("groups", "work-groups", 1056, 1..=1 << 20),
    Parameter::number("group", "work-items of a work-group", 256, 1..=1024),
    Parameter::number("items", "elements that each work-item moves", 64, 1..=1 << 16),
    Parameter::number("bits", "2 to this power of elements are chosen from", 28, 4..=30),
];

const SEED: u64 = 41;

fn shapes(settings: &Settings) -> Vec<Settings> {
    let moved = settings.get("groups") * settings.get("items");
    let items = [1, 2, 4, 8, 16, 32, 64]
        .into_iter()
        .filter(|items| moved.is_multiple_of(*items));
    let items = items.filter(|items| *items != settings.get("items"));
    items
        .map(|items| settings.with("items", items).with("groups", moved / items))
        .collect()
}

/// `index-select`.
pub(crate) static SELECT: GalleryKernel = GalleryKernel {
    name: "index-select",
    summary: "elements from where indices say (PyTorch's index_select)",
    parameters: &PARAMETERS,
    takes_trace: true,
    iterations: Iterations::Given {
        small: |settings, iterations| {
            settings
                .with("groups", 2)
                .with("items", iterations)
                .with("bits", 10)
        },
        shapes,
    },
    workload: |settings, trace| {
        let (groups, group, items) = (
            settings.small("groups"),
            settings.small("group"),
            settings.small("items"),
        );
        let moved = moved(settings);
        let (indices, length) = match trace {
            None => {
                let length = 1 << settings.get("bits");
                (
                    input(
                        Type::I32,
                        moved,
                        Pattern::Below {
                            bound: length,
                            seed: SEED,
                        },
                    ),
                    length,
                )
            }
            Some(entry) => from_trace(entry, moved)?,
        };
        Workload::new(Arc::new(index_select::kernel(group)?), groups, group)
            .with("source", fractions(Type::F32, length))?
            .with("indices", indices)?
            .with("result", output(Type::F32, moved))?
            .with("items", scalar(items))
    },
};

/// `scatter`.
pub(crate) static SCATTER: GalleryKernel = GalleryKernel {
    name: "scatter",
    summary: "elements to where indices say, no two to the same place",
    parameters: &PARAMETERS,
    takes_trace: true,
    iterations: Iterations::Given {
        small: |settings, iterations| {
            settings
                .with("groups", 2)
                .with("items", iterations)
                .with("bits", 20)
        },
        shapes,
    },
    workload: |settings, trace| {
        let (groups, group, items) = (
            settings.small("groups"),
            settings.small("group"),
            settings.small("items"),
        );
        let moved = moved(settings);
        let (indices, length) = match trace {
            None => {
                let length = 1u64 << settings.get("bits");
                if moved > length {
                    return Err(Error::usage(format!("{moved} elements have no {length} places"))
                        .accepted("more `bits`, or fewer groups or items"));
                }
                // Multiplied by an odd number each place is met once.
                let spread = move |at: u64| at.wrapping_mul(0x9E37_79B1) % length;
                (computed(Type::I32, moved, spread), length)
            }
            Some(entry) => {
                let (indices, length) = from_trace(entry, moved)?;
                each_once(entry, moved)?;
                (indices, length)
            }
        };
        Workload::new(Arc::new(scatter::kernel(group)?), groups, group)
            .with("source", fractions(Type::F32, moved))?
            .with("indices", indices)?
            .with("result", zeroed(Type::F32, length))?
            .with("items", scalar(items))
    },
};

/// Elements that are moved; checks ask for none, and buffers still have one.
fn moved(settings: &Settings) -> u64 {
    (settings.get("groups") * settings.get("group") * settings.get("items")).max(1)
}

/// The indices of a trace from its beginning, repeated if it is shorter, and one more than the largest.
fn from_trace(entry: &Entry, moved: u64) -> Result<(Given, u64)> {
    let largest = entry.largest_of(moved).unwrap_or(0);
    if largest > u64::from(u32::MAX) {
        return Err(
            Error::input(format!("the trace reaches index {largest}")).accepted("fewer items or work-groups")
        );
    }
    let (pattern, delta, count) = (entry.pattern().to_vec(), entry.delta(), entry.count());
    let length = pattern.len() as u64;
    let index = move |at: u64| pattern[(at % length) as usize] + delta * (at / length % count);
    Ok((computed(Type::I32, moved, index), largest + 1))
}

/// Refuses a trace that writes an element twice: which value stays would be left to chance.
fn each_once(entry: &Entry, moved: u64) -> Result<()> {
    let mut seen: Vec<u64> = entry.indices().take(moved as usize).collect();
    let all = seen.len();
    seen.sort_unstable();
    seen.dedup();
    match all as u64 == moved && seen.len() == all {
        true => Ok(()),
        false => Err(
            Error::input("the trace writes an element twice: which value stays is left to chance")
                .accepted("a trace that writes each once, or fewer items"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::run;

    #[test]
    fn elements_are_moved() {
        let settings = ["groups=2", "group=32", "items=5", "bits=9"];
        let ran = run("index-select", &settings);
        let source = ran.f32s("source");
        let expected: Vec<f32> = ran
            .indices("indices")
            .iter()
            .map(|&index| source[index])
            .collect();
        assert_eq!(ran.f32s("result"), expected);

        let ran = run("scatter", &settings);
        let mut expected = vec![0.0; 512];
        for (value, index) in ran.f32s("source").into_iter().zip(ran.indices("indices")) {
            expected[index] = value;
        }
        assert_eq!(ran.f32s("result"), expected);
    }
}
