//! `index-select`, `scatter` and `scatter-shared`: elements moved from and to the places given by indices. The indices are
//! random, or those of an application's trace (Spatter).
//!
//! The traces write elements several times. Which value stays would be left to chance, so there all that is written to a
//! place is the same: a value that follows from the place.

use std::sync::Arc;

use headstart::device::{Fill, Pattern};
use headstart::ir::Type;
use headstart::prelude::*;
use headstart::tune::{ArgumentSpec, Compare, Workload};
use headstart::{Error, Result};

use crate::data::{computed, fractions, input, output, scalar, zeroed};
use crate::kernels::{GalleryKernel, Iterations, divided};
use crate::settings::{Parameter, Settings};
use crate::spatter::{Access, Entry};

/// The selected elements, side by side.
#[kernel(work_group = group)]
pub fn index_select(source: &[f32], indices: &[u32], result: &mut [f32], items: u32, #[constant] group: u32) {
    #[unroll(0)]
    for j in 0..items as usize {
        let at = j * global_size() + global_id();
        result[at] = source[indices[at] as usize];
    }
}

/// Moves consecutive elements to the places given by the indices.
#[kernel(work_group = group)]
pub fn scatter(source: &[f32], indices: &[u32], result: &mut [f32], items: u32, #[constant] group: u32) {
    #[unroll(0)]
    for j in 0..items as usize {
        let at = j * global_size() + global_id();
        result[indices[at] as usize] = source[at];
    }
}

/// The same where several elements may go to the same place: the stores are atomic, or they would race.
#[kernel(work_group = group)]
pub fn scatter_shared(
    source: &[u32],
    indices: &[u32],
    result: &[Atomic<u32>],
    items: u32,
    #[constant] group: u32,
) {
    #[unroll(0)]
    for j in 0..items as usize {
        let at = j * global_size() + global_id();
        result[indices[at] as usize].store(source[at], Ordering::Relaxed);
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
    divided(settings, "items", &[1, 2, 4, 8, 16, 32, 64])
}

/// `index-select`.
pub(crate) static SELECT: GalleryKernel = GalleryKernel {
    name: "index-select",
    summary: "elements from where indices say (PyTorch's index_select)",
    parameters: &PARAMETERS,
    takes_trace: Some(Access::Gather),
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
                (input(Type::I32, moved, Pattern::below(length, SEED)), length)
            }
            Some(entry) => {
                let index = of_trace(entry, moved)?;
                let length = index.length;
                (index.given(moved), length)
            }
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
    takes_trace: None,
    iterations: Iterations::Given {
        small: |settings, iterations| {
            settings
                .with("groups", 2)
                .with("items", iterations)
                .with("bits", 20)
        },
        shapes,
    },
    workload: |settings, _| {
        let (groups, group, items) = (
            settings.small("groups"),
            settings.small("group"),
            settings.small("items"),
        );
        let moved = moved(settings);
        let length = 1u64 << settings.get("bits");
        if moved > length {
            return Err(Error::usage(format!("{moved} elements have no {length} places"))
                .accepted("more `bits`, or fewer groups or items"));
        }
        // Multiplied by an odd number each place is met once.
        let spread = move |at: u64| at.wrapping_mul(0x9E37_79B1) % length;
        let indices = computed(Type::I32, moved, spread);
        Workload::new(Arc::new(scatter::kernel(group)?), groups, group)
            .with("source", fractions(Type::F32, moved))?
            .with("indices", indices)?
            .with("result", zeroed(Type::F32, length))?
            .with("items", scalar(items))
    },
};

/// `scatter-shared`.
pub(crate) static SCATTER_SHARED: GalleryKernel = GalleryKernel {
    name: "scatter-shared",
    summary: "elements to where indices say, several to the same place",
    parameters: &PARAMETERS,
    takes_trace: Some(Access::Scatter),
    iterations: Iterations::Given {
        small: |settings, iterations| {
            settings
                .with("groups", 2)
                .with("items", iterations)
                .with("bits", 6)
        },
        shapes,
    },
    workload: |settings, trace| {
        let (group, moved) = (settings.small("group"), moved(settings));
        let index = match trace {
            None => {
                let bound = 1u64 << settings.get("bits");
                let pattern = Pattern::Below { bound, seed: SEED };
                Index::new(move |at| pattern.bits(Type::I32, at), bound)
            }
            Some(entry) => of_trace(entry, moved)?,
        };
        let to = Arc::clone(&index.of);
        let result = ArgumentSpec::Output {
            element: Type::I32,
            length: index.length,
            fill: Fill::Pattern(Pattern::Constant(0)),
            compare: Compare::Bits,
        };
        let kernel = Arc::new(scatter_shared::kernel(group)?);
        Workload::new(kernel, settings.small("groups"), group)
            .with("source", computed(Type::I32, moved, move |at| value_at(to(at))))?
            .with("indices", index.given(moved))?
            .with("result", result)?
            .with("items", scalar(settings.small("items")))
    },
};

/// The value written to a place, never 0.
fn value_at(place: u64) -> u64 {
    (place.wrapping_mul(0x9E37_79B1) | 1) & 0xFFFF_FFFF
}

/// Indices and one more than the largest.
struct Index {
    of: Arc<dyn Fn(u64) -> u64 + Send + Sync>,
    length: u64,
}

impl Index {
    fn new(of: impl Fn(u64) -> u64 + Send + Sync + 'static, length: u64) -> Index {
        Index {
            of: Arc::new(of),
            length,
        }
    }

    fn given(self, moved: u64) -> ArgumentSpec {
        computed(Type::I32, moved, move |at| (self.of)(at))
    }
}

/// Elements that are moved; checks ask for none, and buffers still have one.
fn moved(settings: &Settings) -> u64 {
    (settings.get("groups") * settings.get("group") * settings.get("items")).max(1)
}

/// The indices of a trace from its beginning, repeated if it is shorter.
fn of_trace(entry: &Entry, moved: u64) -> Result<Index> {
    let largest = entry.largest_of(moved).unwrap_or(0);
    if largest > u64::from(u32::MAX) {
        return Err(
            Error::input(format!("the trace reaches index {largest}")).accepted("fewer items or work-groups")
        );
    }
    let (pattern, delta, count) = (entry.pattern().to_vec(), entry.delta(), entry.count());
    let length = pattern.len() as u64;
    let index = move |at: u64| pattern[(at % length) as usize] + delta * (at / length % count);
    Ok(Index::new(index, largest + 1))
}

#[cfg(test)]
pub(super) mod tests {
    use headstart::device::sim::Simulator;
    use headstart::tune::Subject;

    use super::super::testing::{Ran, run};
    use super::value_at;
    use crate::kernels;
    use crate::spatter::{Access, Trace};

    /// The moved elements, one after the other. If several are written to the same place, they are equal.
    pub(in super::super) fn check(ran: &Ran) {
        let (indices, source) = (ran.indices("indices"), ran.of("source"));
        if ran.kernel() == "index-select" {
            let expected: Vec<u32> = indices.iter().map(|&index| source.u32(index)).collect();
            assert_eq!(ran.u32s("result"), expected);
            return;
        }
        let mut expected = vec![0; ran.of("result").len()];
        for (at, index) in indices.into_iter().enumerate() {
            let value = source.u32(at);
            let may_stay = ran.kernel() == "scatter-shared" && expected[index] == value;
            assert!(expected[index] == 0 || may_stay);
            expected[index] = value;
        }
        assert_eq!(ran.u32s("result"), expected);
    }

    #[test]
    fn elements_are_moved() {
        let settings = ["groups=2", "group=32", "items=5", "bits=9"];
        check(&run("index-select", &settings));
        check(&run("scatter", &settings));
    }

    #[test]
    fn what_several_write_is_the_same() {
        let settings = ["groups=2", "group=32", "items=5", "bits=6"];
        check(&run("scatter-shared", &settings));
    }

    #[test]
    fn traces_say_where_to() {
        let trace = Trace::open("lulesh_gpu").expect("shipped");
        let entry = trace.entry(Access::Scatter, Some(2)).expect("it scatters");
        let settings = ["groups=2", "group=32", "items=9"].map(str::to_owned);
        let kernel = kernels::find("scatter-shared").expect("there");
        let chosen = kernel
            .with(&settings, Some(entry.clone()))
            .expect("it takes traces");
        let workload = chosen.workload().expect("a workload");
        let device = Simulator::untimed();
        let (_, outputs) = workload
            .bind(&device)
            .and_then(|bound| bound.run(&device, &workload.kernel))
            .expect("it runs without a race");
        let written = |place: u64| entry.indices().take(2 * 32 * 9).any(|index| index == place);
        let expected: Vec<u8> = (0..entry.largest_of(2 * 32 * 9).expect("some") + 1)
            .flat_map(|place| (if written(place) { value_at(place) as u32 } else { 0 }).to_le_bytes())
            .collect();
        assert!(outputs.contains(&expected));
    }
}
