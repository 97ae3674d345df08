//! `micro/sub-groups`: the same work by sub-groups of another size.

use headstart::ir::Type;
use headstart::prelude::*;

use super::{Micro, STEPS, entry, items, micro};
use crate::data::{fractions, output};
use crate::settings::{Parameter, launch};

/// Loads side by side and some arithmetic on each.
#[kernel(work_group = group, sub_group = size)]
pub fn sized(
    table: &[f32],
    result: &mut [f32],
    #[constant] group: u32,
    #[constant] size: u32,
    #[constant] items: u32,
    #[constant] words: u32,
    #[constant] steps: u32,
) {
    let mut sum = 0.0;
    let mut at = global_id() as u32;
    #[unroll(0)]
    for _ in 0..steps {
        let value = table[(at & (words - 1)) as usize];
        #[unroll]
        for _ in 0..8 {
            sum = value.mul_add(sum, value);
        }
        at = at.wrapping_add(items);
    }
    result[global_id()] = sum;
}

static PARAMETERS: [Parameter; 4] = [
    Parameter::number("groups", "work-groups", 256, 1..=1 << 16),
    Parameter::number("group", "work-items of a work-group", 128, 1..=1024),
    Parameter::number(
        "size",
        "work-items of a sub-group, one that the device has",
        32,
        8..=32,
    ),
    Parameter::number("steps", STEPS, 64, 0..=1 << 16),
];

/// Sub-group sizes.
pub(crate) static SUB_GROUPS: Micro = micro(
    entry(
        "micro/sub-groups",
        "loads and arithmetic by sub-groups of a size: bytes that work-items receive in a cycle",
        &PARAMETERS,
        |settings, _| {
            let (group, words) = (settings.small("group"), 1u32 << 26);
            let kernel = sized::kernel(
                group,
                settings.small("size"),
                items(settings) as u32,
                words,
                settings.small("steps"),
            )?;
            launch(settings, kernel)
                .with("table", fractions(Type::F32, u64::from(words)))?
                .with("result", output(Type::F32, items(settings)))
        },
    ),
    "bytes a cycle",
    |settings, cycles| (items(settings) * 4) as f64 / cycles,
);
