//! `micro/written`: a line that is read just after it was written.

use headstart::device::{Fill, Pattern};
use headstart::ir::Type;
use headstart::prelude::*;
use headstart::tune::{ArgumentSpec, Compare};

use super::{GROUPS, Micro, STEPS, entry, items, micro};
use crate::data::output;
use crate::settings::{Parameter, launch};

/// Loads that wait for each other, a line each; with `writes`, another word of the line is written just before.
#[kernel(work_group = group)]
pub fn written(
    table: &mut [u32],
    result: &mut [u32],
    #[constant] group: u32,
    #[constant] writes: u32,
    #[constant] words: u32,
    #[constant] steps: u32,
) {
    // Each sub-group has lines of its own; its first work-item does all.
    let mut at = 0u32;
    if global_id() == 0 {
        #[unroll(0)]
        for _ in 0..steps {
            if writes == 1 {
                table[at as usize + 1] = at;
            }
            let none = table[at as usize];
            at = (at.wrapping_add(32).wrapping_add(none)) & (words - 1);
        }
    }
    result[global_id()] = at;
}

static PARAMETERS: [Parameter; 5] = [
    GROUPS,
    Parameter::number("group", "work-items of a work-group", 32, 1..=1024),
    Parameter::choice(
        "writes",
        "whether the line is written before it is read",
        &["no", "yes"],
    ),
    Parameter::number(
        "footprint",
        "bytes that the lines lie in, a power of 2",
        1 << 20,
        1 << 10..=1 << 26,
    ),
    Parameter::number("steps", STEPS, 4096, 0..=1 << 20),
];

/// The additional time of reading a line just after it was written.
pub(crate) static WRITTEN: Micro = micro(
    entry(
        "micro/written",
        "loads of lines that were just written: cycles of one; the difference to `writes=no` is the writing's",
        &PARAMETERS,
        |settings, _| {
            let words = settings.get("footprint").next_power_of_two() / 4;
            let group = settings.small("group");
            let steps = words / 32 + settings.get("steps");
            let kernel = written::kernel(group, settings.small("writes"), words as u32, steps as u32)?;
            let table = ArgumentSpec::Output {
                element: Type::I32,
                length: words,
                fill: Fill::Pattern(Pattern::Constant(0)),
                compare: Compare::Bits,
            };
            launch(settings, kernel)
                .with("table", table)?
                .with("result", output(Type::I32, items(settings)))
        },
    ),
    "cycles a load",
    |_, cycles| cycles,
);
