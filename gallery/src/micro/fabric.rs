//! `micro/slices`, `micro/stacks`, `micro/compression`: device memory, and the paths between it and the cores.

use std::sync::Arc;

use headstart::device::{Fill, Pattern};
use headstart::ir::Type;
use headstart::prelude::*;
use headstart::tune::{ArgumentSpec, Compare, Workload};
use headstart::{Error, Result};

use super::{Micro, STEPS, entry, items, micro};
use crate::data::{input, output};
use crate::settings::{Parameter, Settings};

/// Words of a line, wherever lines are shorter.
const LINE: u32 = 32;

/// Loads past L1, 16 at a time, that all go to one line: that of the work-group, or the same for all.
#[kernel(work_group = group)]
pub fn lines(
    table: &[Atomic<u32>],
    result: &mut [u32],
    #[constant] group: u32,
    #[constant] apart: u32,
    #[constant] steps: u32,
) {
    let at = (global_id() as u32 / group).wrapping_mul(apart) as usize;
    let mut sum = 0u32;
    #[unroll(0)]
    for _ in 0..steps {
        #[unroll]
        for _ in 0..16 {
            sum = sum.wrapping_add(table[at].load(Ordering::Relaxed));
        }
    }
    result[global_id()] = sum;
}

/// Each work-group streams through a part of the table as large as its share of it: its own, or that of another work-group
/// this many further.
#[kernel(work_group = group)]
pub fn parts(
    table: &[u32],
    result: &mut [u32],
    #[constant] group: u32,
    #[constant] groups: u32,
    #[constant] further: u32,
    #[constant] words: u32,
    #[constant] steps: u32,
) {
    let item = global_id() as u32;
    let part = (item / group + further) % groups;
    let mut at = part * (words / groups) + item % group;
    let mut sum = 0u32;
    #[unroll(0)]
    for _ in 0..steps {
        #[unroll]
        for load in 0..4 {
            sum = sum.wrapping_add(table[((at + load * group) & (words - 1)) as usize]);
        }
        at += 4 * group;
    }
    result[global_id()] = sum;
}

static SLICES_OF: [Parameter; 4] = [
    Parameter::number("groups", "work-groups", 64, 1..=1 << 16),
    Parameter::number("group", "work-items of a work-group", 32, 1..=1024),
    Parameter::choice("lines", "whose lines a work-group reads", &["own", "same"]),
    Parameter::number("steps", STEPS, 64, 0..=1 << 16),
];

/// The cost of a line that all work-groups request at once, and of lines of their own.
pub(crate) static SLICES: Micro = Micro {
    shares: |_| true,
    ..micro(
        entry(
            "micro/slices",
            "loads past L1 from a line of each work-group's own, or from one: cycles of one; the difference is one slice's queue",
            &SLICES_OF,
            |settings, _| {
                let (groups, group) = (settings.small("groups"), settings.small("group"));
                let apart = if settings.word("lines") == "own" { LINE } else { 0 };
                let kernel = lines::kernel(group, apart, settings.small("steps"))?;
                let table = ArgumentSpec::Output {
                    element: Type::I32,
                    length: u64::from(groups) * u64::from(LINE),
                    fill: Fill::Pattern(Pattern::Constant(1)),
                    compare: Compare::Bits,
                };
                Workload::new(Arc::new(kernel), groups, group)
                    .with("table", table)?
                    .with("result", output(Type::I32, items(settings)))
            },
        ),
        "cycles a load",
        |_, cycles| cycles / 16.0,
    )
};

static STACKS_OF: [Parameter; 5] = [
    Parameter::number("groups", "work-groups, a power of 2", 1024, 2..=1 << 14),
    Parameter::number("group", "work-items of a work-group", 256, 1..=1024),
    Parameter::number(
        "footprint",
        "bytes that the loads lie in, a power of 2",
        1 << 30,
        1 << 20..=1 << 33,
    ),
    Parameter::choice(
        "part",
        "which part of the memory a work-group reads: its own, or that of the one half of all further",
        &["own", "other"],
    ),
    Parameter::number("steps", STEPS, 32, 0..=1 << 12),
];

/// The bandwidth of memory that lies in the stack that asks, or in the other one, where a device has two.
pub(crate) static STACKS: Micro = micro(
    entry(
        "micro/stacks",
        "streams from each work-group's own part of memory, or from one in the other half: bytes a cycle, all cores together",
        &STACKS_OF,
        |settings, _| {
            let (groups, group, steps) = (
                settings.small("groups"),
                settings.small("group"),
                settings.small("steps"),
            );
            let words = settings.get("footprint") / 4;
            if !words.is_power_of_two() || !groups.is_power_of_two() {
                return Err(Error::usage("footprint and groups must be powers of 2"));
            }
            let further = if settings.word("part") == "own" {
                0
            } else {
                groups / 2
            };
            let words_32 = u32::try_from(words).map_err(|_| Error::usage("the footprint is too large"))?;
            let kernel = parts::kernel(group, groups, further, words_32, steps)?;
            Workload::new(Arc::new(kernel), groups, group)
                .with("table", input(Type::I32, words, Pattern::Constant(1)))?
                .with("result", output(Type::I32, items(settings)))
        },
    ),
    "bytes a cycle",
    |settings, cycles| (items(settings) * 16) as f64 / cycles,
);

static COMPRESSION_OF: [Parameter; 5] = [
    Parameter::number("groups", "work-groups, a power of 2", 1024, 2..=1 << 14),
    Parameter::number("group", "work-items of a work-group", 256, 1..=1024),
    Parameter::number(
        "footprint",
        "bytes that the loads lie in, a power of 2",
        1 << 30,
        1 << 20..=1 << 33,
    ),
    Parameter::choice(
        "data",
        "contents: random words, words that differ little, one repeated word",
        &["random", "alike", "clear"],
    ),
    Parameter::number("steps", STEPS, 32, 0..=1 << 12),
];

/// The bandwidth of device memory by its contents; it is the same for all data if memory is not compressed.
pub(crate) static COMPRESSION: Micro = micro(
    entry(
        "micro/compression",
        "streams of words at random, of words that differ little, of one word: bytes a cycle, all cores together",
        &COMPRESSION_OF,
        |settings, _| compression_workload(settings),
    ),
    "bytes a cycle",
    |settings, cycles| (items(settings) * 16) as f64 / cycles,
);

fn compression_workload(settings: &Settings) -> Result<Workload> {
    let (groups, group, steps) = (
        settings.small("groups"),
        settings.small("group"),
        settings.small("steps"),
    );
    let words = settings.get("footprint") / 4;
    if !words.is_power_of_two() || !groups.is_power_of_two() {
        return Err(Error::usage("footprint and groups must be powers of 2"));
    }
    let data = match settings.word("data") {
        "random" => Pattern::below(1 << 32, 5),
        "alike" => Pattern::below(1 << 16, 5),
        _ => Pattern::Constant(1),
    };
    let words_32 = u32::try_from(words).map_err(|_| Error::usage("the footprint is too large"))?;
    let kernel = parts::kernel(group, groups, 0, words_32, steps)?;
    Workload::new(Arc::new(kernel), groups, group)
        .with("table", input(Type::I32, words, data))?
        .with("result", output(Type::I32, items(settings)))
}

#[cfg(test)]
mod tests {
    use crate::workloads::testing::run;

    #[test]
    fn every_load_is_counted() {
        for lines in ["lines=own", "lines=same"] {
            let ran = run("micro/slices", &["groups=3", "steps=5", lines]);
            assert!(ran.u32s("result").iter().all(|&sum| sum == 80), "{lines}");
        }
        for part in ["part=own", "part=other"] {
            let settings = ["groups=4", "group=32", "footprint=2^20", "steps=3", part];
            let ran = run("micro/stacks", &settings);
            assert!(ran.u32s("result").iter().all(|&sum| sum == 12), "{part}");
        }
        let settings = ["groups=4", "group=32", "footprint=2^20", "steps=3", "data=clear"];
        assert!(
            run("micro/compression", &settings)
                .u32s("result")
                .iter()
                .all(|&sum| sum == 12)
        );
    }
}
