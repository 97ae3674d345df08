//! `micro/vectors`: how much longer a load of several words takes than one of one.

use headstart::device::Pattern;
use headstart::ir::Type;
use headstart::prelude::*;
use headstart::tune::{ArgumentSpec, Workload};

use super::{GROUPS, Micro, STEPS, entry, items, micro};
use crate::data::{input, output};
use crate::settings::{Parameter, Settings, launch};

/// Loads of one word that wait for each other. All words are 0, and so is `zero`: the arithmetic is that of the wider forms.
#[kernel(work_group = group)]
pub fn one(
    table: &[u32],
    result: &mut [u32],
    zero: u32,
    #[constant] group: u32,
    #[constant] elements: u32,
    #[constant] steps: u32,
) {
    let mut at = global_id() as u32 & (elements - 1);
    #[unroll(0)]
    for _ in 0..steps {
        let a = table[at as usize];
        at = (at + 32 + ((a | (at & zero)) | (a & zero))) & (elements - 1);
    }
    result[global_id()] = at;
}

/// The same with two words.
#[kernel(work_group = group)]
pub fn two(
    table: &[[u32; 2]],
    result: &mut [u32],
    zero: u32,
    #[constant] group: u32,
    #[constant] elements: u32,
    #[constant] steps: u32,
) {
    let mut at = global_id() as u32 & (elements - 1);
    #[unroll(0)]
    for _ in 0..steps {
        let [a, b] = table[at as usize];
        at = (at + 32 + ((a | b) | (b & zero))) & (elements - 1);
    }
    result[global_id()] = at;
}

/// The same with four.
#[kernel(work_group = group)]
pub fn four(
    table: &[[u32; 4]],
    result: &mut [u32],
    zero: u32,
    #[constant] group: u32,
    #[constant] elements: u32,
    #[constant] steps: u32,
) {
    let mut at = global_id() as u32 & (elements - 1);
    #[unroll(0)]
    for _ in 0..steps {
        let [a, b, c, d] = table[at as usize];
        at = (at + 32 + zero + ((a | b) | (c | d))) & (elements - 1);
    }
    result[global_id()] = at;
}

static PARAMETERS: [Parameter; 5] = [
    GROUPS,
    Parameter::number("group", "work-items of a work-group", 16, 1..=1024),
    Parameter::number("width", "words of a load: 1, 2 or 4", 1, 1..=4),
    Parameter::number(
        "elements",
        "loads that lie side by side, a power of 2",
        256,
        64..=1 << 24,
    ),
    Parameter::number("steps", STEPS, 4096, 0..=1 << 20),
];

/// The time of a load of `width` words; the difference to `width=1` is that of the words.
pub(crate) static VECTORS: Micro = micro(
    entry(
        "micro/vectors",
        "loads of one, two or four words that wait for each other: cycles of one; the difference to `width=1` is the words'",
        &PARAMETERS,
        |settings, _| workload(settings),
    ),
    "cycles a load",
    |_, cycles| cycles,
);

fn workload(settings: &Settings) -> headstart::Result<Workload> {
    let (group, elements, steps) = (
        settings.small("group"),
        settings.small("elements"),
        settings.small("steps"),
    );
    if !elements.is_power_of_two() {
        return Err(headstart::Error::usage("`elements` must be a power of 2"));
    }
    let width = settings.get("width");
    let kernel = match width {
        1 => one::kernel(group, elements, steps)?,
        2 => two::kernel(group, elements, steps)?,
        4 => four::kernel(group, elements, steps)?,
        _ => return Err(headstart::Error::usage("`width` must be 1, 2 or 4")),
    };
    launch(settings, kernel)
        .with(
            "table",
            input(Type::I32, u64::from(elements) * width, Pattern::Constant(0)),
        )?
        .with("result", output(Type::I32, items(settings)))?
        .with("zero", ArgumentSpec::Scalar(Type::I32, 0))
}

#[cfg(test)]
mod tests {
    use crate::workloads::testing::run;

    #[test]
    fn loads_go_on_by_a_row() {
        for width in ["width=1", "width=2", "width=4"] {
            let ran = run("micro/vectors", &["steps=3", width]);
            let expected: Vec<u32> = (0..16).map(|item| item + 96).collect();
            assert_eq!(ran.u32s("result"), expected, "{width}");
        }
    }
}
