//! `micro/hints` and `micro/reach`: the cost of a prefetch, and the level that it reaches.

use headstart::device::Pattern;
use headstart::ir::Type;
use headstart::prelude::*;
use headstart::{Error, Result};

use super::{GROUPS, Micro, STEPS, entry, items, micro};
use crate::data::{input, output};
use crate::settings::{Parameter, Settings, launch};

/// Hints, four a step; neighbours' places lie `apart` words from each other.
#[kernel(work_group = group)]
pub fn hinted(
    table: &[u32],
    result: &mut [u32],
    #[constant] group: u32,
    #[constant] apart: u32,
    #[constant] level: u32,
    #[constant] words: u32,
    #[constant] steps: u32,
) {
    let mut at = (global_id() as u32).wrapping_mul(apart);
    #[unroll(0)]
    for _ in 0..steps {
        #[unroll]
        for _ in 0..4 {
            at = at.wrapping_add(32 * apart) & (words - 1);
            if level == 1 {
                prefetch(&table[at as usize], L1);
            } else {
                prefetch(&table[at as usize], L2);
            }
        }
    }
    result[global_id()] = at;
}

/// One load at a time from places far apart, each prefetched two steps ahead (because a compiler may move a hint to its step's
/// end): a step takes as long as its arithmetic and the part of the latency that the hint leaves.
#[kernel(work_group = group)]
pub fn reached(
    table: &[f32],
    result: &mut [f32],
    #[constant] group: u32,
    #[constant] level: u32,
    #[constant] apart: u32,
    #[constant] words: u32,
    #[constant] steps: u32,
) {
    let mut sum = 0.5 + local_id() as f32;
    let mut at = global_id() as u32;
    #[unroll(0)]
    for _ in 0..steps {
        let next = at.wrapping_add(apart) & (words - 1);
        let asked = next.wrapping_add(apart) & (words - 1);
        if level == 1 {
            prefetch(&table[asked as usize], L1);
        }
        if level == 2 {
            prefetch(&table[asked as usize], L2);
        }
        if level < 3 {
            sum += table[at as usize];
        }
        at = next;
        // Each multiplication waits for the one before it.
        #[unroll]
        for _ in 0..400 {
            sum *= 0.5;
        }
    }
    result[global_id()] = sum;
}

static HINTED: [Parameter; 6] = [
    GROUPS,
    Parameter::number("group", "work-items of a work-group", 1024, 1..=1024),
    Parameter::number(
        "apart",
        "words between neighbours' places: 1 has a sub-group in one line",
        1,
        1..=1 << 16,
    ),
    Parameter::number(
        "footprint",
        "bytes that the places lie in, a power of 2",
        1 << 16,
        1 << 12..=1 << 32,
    ),
    Parameter::choice("level", "asked for", &["L2", "L1"]),
    Parameter::number(
        "steps",
        "steps of 4 hints whose time is measured",
        256,
        0..=1 << 20,
    ),
];

/// The cost of a hint for a core.
pub(crate) static HINTS: Micro = micro(
    entry(
        "micro/hints",
        "prefetches without a wait: cycles of a core per sub-group hint",
        &HINTED,
        |settings, _| {
            let words = words(settings)?;
            let level = u32::from(settings.word("level") == "L1");
            let kernel = hinted::kernel(
                settings.small("group"),
                settings.small("apart"),
                level,
                words as u32,
                settings.small("steps"),
            )?;
            launch(settings, kernel)
                .with("table", input(Type::I32, words, Pattern::Constant(1)))?
                .with("result", output(Type::I32, items(settings)))
        },
    ),
    "cycles a hint",
    |settings, cycles| cycles / (4 * settings.get("group").div_ceil(32)) as f64,
);

fn words(settings: &Settings) -> Result<u64> {
    let words = settings.get("footprint") / 4;
    match words.is_power_of_two() {
        true => Ok(words),
        false => Err(Error::usage("the footprint must be a power of 2")),
    }
}

static REACHED: [Parameter; 5] = [
    GROUPS,
    Parameter::number("group", "work-items of a work-group", 32, 1..=1024),
    Parameter::choice(
        "level",
        "asked for two steps ahead; `nothing`: without the load either",
        &["none", "L1", "L2", "nothing"],
    ),
    Parameter::number(
        "apart",
        "words from one step's place to the next, which a power of 2 does not divide",
        98_336,
        1..=1 << 24,
    ),
    Parameter::number("steps", STEPS, 1024, 0..=1 << 14),
];

/// The part of a load's latency that a hint leaves: that of the level reached.
pub(crate) static REACH: Micro = micro(
    entry(
        "micro/reach",
        "loads asked for two steps ahead: cycles of a step; less those of `level=nothing`, the latency that is left",
        &REACHED,
        |settings, _| {
            let words = 1u64 << 28;
            let kernel = reached::kernel(
                settings.small("group"),
                settings.small("level"),
                settings.small("apart"),
                words as u32,
                settings.small("steps"),
            )?;
            launch(settings, kernel)
                .with("table", input(Type::F32, words, Pattern::Fractions { low: 1.0 }))?
                .with("result", output(Type::F32, items(settings)))
        },
    ),
    "cycles a step",
    |_, cycles| cycles,
);
