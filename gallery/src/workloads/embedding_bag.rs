//! `embedding-bag`: for each bag of indices the sum, or mean, of the table rows that they name. Recommendation models spend
//! most of their time on it; PyTorch calls it `embedding_bag`.
//!
//! A row is read by as many neighbouring work-items as it has groups of four values: a row of 128 floats by one
//! sub-group of 32, as one access of 512 bytes. Each of them adds up its four values over the bag.

use std::sync::Arc;

use headstart::Result;
use headstart::device::{Pattern, splitmix64};
use headstart::ir::Type;
use headstart::prelude::*;
use headstart::tune::{ArgumentSpec, Workload};

use super::groups_for;
use crate::data::skew::Skew;
use crate::data::{Words, counted, fractions, input, output, scalar, words};
use crate::kernels::{GalleryKernel, Iterations, others};
use crate::settings::{Parameter, Settings};
use crate::spatter::Entry;

/// Rows of floats.
#[kernel(work_group = group)]
pub fn embedding_bag(
    offsets: &[u32],
    indices: &[u32],
    table: &[[f32; 4]],
    result: &mut [[f32; 4]],
    bags: u32,
    #[constant] group: u32,
    #[constant] quads: u32,
    #[constant] mean: u32,
) {
    let bag = global_id() / quads as usize;
    let quad = global_id() % quads as usize;
    if bag < bags as usize {
        let first = offsets[bag] as usize;
        let end = offsets[bag + 1] as usize;
        let (mut a, mut b, mut c, mut d) = (0.0, 0.0, 0.0, 0.0);
        #[unroll(0)]
        for j in first..end {
            let row = indices[j] as usize;
            let [x, y, z, w] = table[row * quads as usize + quad];
            a += x;
            b += y;
            c += z;
            d += w;
        }
        let count = if mean == 1 && end > first {
            (end - first) as f32
        } else {
            1.0
        };
        result[global_id()] = [a / count, b / count, c / count, d / count];
    }
}

/// Rows of half floats, added up in single precision.
#[kernel(work_group = group)]
pub fn embedding_bag_f16(
    offsets: &[u32],
    indices: &[u32],
    table: &[[f16; 4]],
    result: &mut [[f16; 4]],
    bags: u32,
    #[constant] group: u32,
    #[constant] quads: u32,
    #[constant] mean: u32,
) {
    let bag = global_id() / quads as usize;
    let quad = global_id() % quads as usize;
    if bag < bags as usize {
        let first = offsets[bag] as usize;
        let end = offsets[bag + 1] as usize;
        let (mut a, mut b, mut c, mut d) = (0.0, 0.0, 0.0, 0.0);
        #[unroll(0)]
        for j in first..end {
            let row = indices[j] as usize;
            let [x, y, z, w] = table[row * quads as usize + quad];
            a += f32::from(x);
            b += f32::from(y);
            c += f32::from(z);
            d += f32::from(w);
        }
        let count = if mean == 1 && end > first {
            (end - first) as f32
        } else {
            1.0
        };
        result[global_id()] = [
            f16::from_f32(a / count),
            f16::from_f32(b / count),
            f16::from_f32(c / count),
            f16::from_f32(d / count),
        ];
    }
}

static PARAMETERS: [Parameter; 9] = [
    Parameter::number("bags", "bags", 2048, 1..=1 << 24),
    Parameter::number(
        "bag",
        "indices of a bag, on average if it is ragged",
        150,
        0..=1 << 16,
    ),
    Parameter::choice(
        "lengths",
        "of the bags: all alike, or from 0 to twice the average",
        &["even", "ragged"],
    ),
    Parameter::choice("skew", "how often each row is named", Skew::WORDS),
    Parameter::choice("mode", "the combination of a bag's rows", &["sum", "mean"]),
    Parameter::choice("element", "type of the values", &["f32", "f16"]),
    Parameter::number("dim", "values of a row, a multiple of 4", 128, 4..=4096),
    Parameter::number("rows", "rows of the table", 1 << 23, 1..=1 << 28),
    Parameter::number("group", "work-items of a work-group", 128, 1..=1024),
];

/// `embedding-bag`.
pub(crate) static KERNEL: GalleryKernel = GalleryKernel {
    name: "embedding-bag",
    summary: "sums or means of table rows that bags of indices name (PyTorch's embedding_bag)",
    parameters: &PARAMETERS,
    takes_trace: None,
    iterations: Iterations::Given {
        small: |settings, iterations| settings.with("bags", 7).with("bag", iterations),
        shapes: |settings| others(settings, "group", &[32, 64, 128, 256, 512]),
    },
    workload,
};

const SEED: u64 = 17;

/// Where each bag starts in the indices, and where the last one ends.
fn offsets(settings: &Settings) -> Result<(ArgumentSpec, u64)> {
    let (bags, bag) = (settings.get("bags"), settings.get("bag"));
    let length = |number: u64| match settings.word("lengths") {
        "even" => bag,
        _ => splitmix64(number, SEED + 1) % (2 * bag + 1),
    };
    if settings.word("lengths") == "even" {
        counted(bags * bag, "indices")?;
        let steps = Pattern::Steps { first: 0, step: bag };
        return Ok((input(Type::I32, bags + 1, steps), bags * bag));
    }
    counted((0..bags).map(length).sum(), "indices")?;
    let mut offsets = vec![0];
    let mut end = 0;
    for number in 0..bags {
        end += length(number) as u32;
        offsets.push(end);
    }
    Ok((words(&Words::new(&offsets)), u64::from(end)))
}

fn workload(settings: &Settings, _trace: Option<&Entry>) -> Result<Workload> {
    let (bags, group) = (settings.small("bags"), settings.small("group"));
    let (dim, rows) = (settings.get("dim"), settings.get("rows"));
    if !dim.is_multiple_of(4) {
        return Err(headstart::Error::usage(format!("`dim` cannot be {dim}")).accepted("a multiple of 4"));
    }
    let (quads, mean) = (settings.small("dim") / 4, settings.small("mode"));
    let (kernel, element) = match settings.word("element") {
        "f16" => (embedding_bag_f16::kernel(group, quads, mean)?, Type::F16),
        _ => (embedding_bag::kernel(group, quads, mean)?, Type::F32),
    };
    let (offsets, accesses) = offsets(settings)?;
    let pattern = Skew::of(settings.get("skew")).pattern(rows, SEED);
    let groups = groups_for(u64::from(bags) * u64::from(quads), group)?;
    Workload::new(Arc::new(kernel), groups, group)
        .with("offsets", offsets)?
        .with("indices", input(Type::I32, accesses.max(1), pattern))?
        .with("table", fractions(element, rows * dim))?
        .with("result", output(element, u64::from(bags) * dim))?
        .with("bags", scalar(bags))
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::testing::{Ran, close, run};
    use crate::kernels;
    use headstart::tune::Subject;

    /// The rows of each bag, added up value by value.
    pub(in super::super) fn check(ran: &Ran) {
        let (offsets, indices) = (ran.indices("offsets"), ran.indices("indices"));
        let table = ran.of("table");
        let dim: usize = ran.word("dim").parse().expect("a number");
        let mut expected = Vec::new();
        for bag in offsets.windows(2) {
            let own = &indices[bag[0]..bag[1]];
            let count = match ran.word("mode") {
                "mean" => own.len().max(1),
                _ => 1,
            };
            expected.extend((0..dim).map(|at| {
                let sum: f32 = own.iter().map(|row| table.f32(row * dim + at)).sum();
                sum / count as f32
            }));
        }
        let is_half = ran.word("element") == "f16";
        close(&ran.f32s("result"), &expected, if is_half { 1e-3 } else { 1e-6 });
    }

    #[test]
    fn bags_are_summed() {
        for settings in [
            ["lengths=even", "skew=uniform", "mode=sum", "dim=128", "group=96"],
            ["lengths=ragged", "skew=zipf", "mode=mean", "dim=64", "group=32"],
        ] {
            for element in ["element=f32", "element=f16"] {
                let own = ["bags=9", "bag=3", "rows=50", element];
                check(&run("embedding-bag", &[&settings[..], &own[..]].concat()));
            }
        }
    }

    #[test]
    fn more_indices_than_32_bits_count_are_refused() {
        for lengths in ["lengths=even", "lengths=ragged"] {
            let settings = ["bags=2^20", "bag=2^14", lengths].map(str::to_owned);
            let chosen = kernels::find("embedding-bag").and_then(|kernel| kernel.with(&settings, None));
            let error = chosen.and_then(|chosen| chosen.workload()).expect_err("too many");
            assert!(
                error
                    .to_string()
                    .contains("indices, which the kernel counts in 32 bits"),
                "{error}"
            );
        }
    }
}
