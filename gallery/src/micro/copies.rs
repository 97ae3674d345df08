//! `micro/copies`: asynchronous copies to shared memory, by the plan that makes them of loads.

use headstart::Error;
use headstart::device::Pattern;
use headstart::ir::Type;
use headstart::prefetch::Plan;
use headstart::prelude::*;

use super::{GROUPS, Micro, STEPS, entry, items, micro};
use crate::data::{input, output};
use crate::settings::{Parameter, launch};

/// A work-item's own words, `apart` from each other, in a circle of sixteen.
#[kernel(work_group = group)]
pub fn rows(
    table: &[u32],
    result: &mut [u32],
    #[constant] group: u32,
    #[constant] apart: u32,
    #[constant] steps: u32,
) {
    let mut sum = 0u32;
    #[unroll(0)]
    for step in 0..steps {
        sum = sum.wrapping_add(table[global_id() + ((step % 16) * apart) as usize]);
    }
    result[global_id()] = sum;
}

/// The same four words at a time; with `apart` 0, all work-items of all work-groups read the same.
#[kernel(work_group = group)]
pub fn rows_wide(
    table: &[[u32; 4]],
    result: &mut [u32],
    #[constant] group: u32,
    #[constant] apart: u32,
    #[constant] steps: u32,
) {
    let mut sum = 0u32;
    #[unroll(0)]
    for step in 0..steps {
        let at = if apart == 0 { 0 } else { global_id() };
        let [a, b, c, d] = table[at + ((step % 16) * apart.max(8)) as usize];
        sum = sum.wrapping_add(a ^ b ^ c ^ d);
    }
    result[global_id()] = sum;
}

static PARAMETERS: [Parameter; 6] = [
    GROUPS,
    Parameter::number("group", "work-items of a work-group", 512, 1..=1024),
    Parameter::number(
        "apart",
        "elements from one step's row to the next; with `width=4`, 0 has all work-items read the same four words",
        512,
        0..=1 << 20,
    ),
    Parameter::number("width", "words of an element: 1 or 4", 1, 1..=4),
    Parameter::choice("by", "how the words come", &["copies", "loads"]),
    Parameter::number("steps", STEPS, 1024, 0..=1 << 20),
];

/// The cost of asynchronous copies, compared with loads.
pub(crate) static COPIES: Micro = Micro {
    plan: |settings| match settings.word("by") {
        "copies" => "table=rolling-async:8/interleaved".parse::<Plan>().ok(),
        _ => None,
    },
    ..micro(
        entry(
            "micro/copies",
            "words copied to shared memory eight steps ahead: cycles of a sub-group's step on a core",
            &PARAMETERS,
            |settings, _| {
                let (group, apart) = (settings.small("group"), settings.get("apart"));
                let width = settings.get("width");
                // Some steps before, for the ring to be filled.
                let steps = settings.small("steps") + 32;
                let kernel = match (width, apart) {
                    (1, 1..) => rows::kernel(group, apart as u32, steps)?,
                    (4, _) => rows_wide::kernel(group, apart as u32, steps)?,
                    _ => return Err(Error::usage("`width` must be 4, or 1 where `apart` is not 0")),
                };
                let elements = items(settings) + 16 * apart.max(8);
                launch(settings, kernel)
                    .with("table", input(Type::I32, width * elements, Pattern::Constant(1)))?
                    .with("result", output(Type::I32, items(settings)))
            },
        ),
        "cycles a sub-group's step",
        |settings, cycles| cycles / settings.get("group").div_ceil(32) as f64,
    )
};
