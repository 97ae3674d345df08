//! `micro/strided`: loads from places that lie a stride apart, in whichever cache holds them.
//!
//! By the stride it shows what a cache does with addresses that are alike in their low bits: the banks of L1's data array,
//! and the sets of L2.

#![allow(clippy::manual_checked_ops, reason = "kernels have no checked division")]

use headstart::device::Pattern;
use headstart::ir::Type;
use headstart::prelude::*;
use headstart::tune::Workload;
use headstart::{Error, Result};

use super::{GROUPS, Micro, STEPS, entry, items, micro};
use crate::data::{input, output};
use crate::settings::{Parameter, Settings, launch};

/// Loads of a step.
const BATCH: u32 = 4;

/// A number that tells nothing of its neighbours': the finalizer of `MurmurHash3`, by Austin Appleby, in the public domain.
#[device_fn]
fn hashed(number: u32) -> u32 {
    let once = (number ^ (number >> 16)).wrapping_mul(0x85EB_CA6B);
    let twice = (once ^ (once >> 13)).wrapping_mul(0xC2B2_AE35);
    twice ^ (twice >> 16)
}

/// The place of a step's load: the next one, or one of a piece of `together` places at random.
#[device_fn]
fn place(number: u32, load: u32, together: u32, places: u32) -> u32 {
    let place = if together == 0 {
        number.wrapping_add(load)
    } else {
        hashed(number / together)
            .wrapping_mul(together)
            .wrapping_add(number % together)
    };
    place & (places - 1)
}

/// In each step `BATCH` loads of a word, whose sum is kept: of `places` in turn, or of pieces of `together` places at
/// random.
#[kernel(work_group = group)]
pub fn strided(
    table: &[u32],
    result: &mut [u32],
    #[constant] group: u32,
    #[constant] items: u32,
    #[constant] together: u32,
    #[constant] places: u32,
    #[constant] stride: u32,
    #[constant] steps: u32,
) {
    let mut at = global_id() as u32;
    let mut sum = 0u32;
    #[unroll(0)]
    for _ in 0..steps {
        #[unroll]
        for load in 0..BATCH {
            let number = at.wrapping_add(load.wrapping_mul(items));
            sum = sum.wrapping_add(table[(place(number, load, together, places) * stride) as usize]);
        }
        at = at.wrapping_add(items.wrapping_mul(BATCH)).wrapping_add(1);
    }
    result[global_id()] = sum;
}

/// The same with loads of four words.
#[kernel(work_group = group)]
pub fn strided_wide(
    table: &[[u32; 4]],
    result: &mut [u32],
    #[constant] group: u32,
    #[constant] items: u32,
    #[constant] together: u32,
    #[constant] places: u32,
    #[constant] stride: u32,
    #[constant] steps: u32,
) {
    let mut at = global_id() as u32;
    let mut sum = 0u32;
    #[unroll(0)]
    for _ in 0..steps {
        #[unroll]
        for load in 0..BATCH {
            let number = at.wrapping_add(load.wrapping_mul(items));
            let [a, b, c, d] = table[(place(number, load, together, places) * (stride / 4)) as usize];
            sum = sum.wrapping_add(a ^ b ^ c ^ d);
        }
        at = at.wrapping_add(items.wrapping_mul(BATCH)).wrapping_add(1);
    }
    result[global_id()] = sum;
}

static PARAMETERS: [Parameter; 8] = [
    GROUPS,
    Parameter::number("group", "work-items of a work-group", 1024, 1..=1024),
    Parameter::number("places", "where loads can go, a power of 2", 32, 1..=1 << 24),
    Parameter::number("stride", "words from one place to the next", 32, 1..=1 << 20),
    Parameter::number(
        "together",
        "neighbours that read neighbouring places, each piece at random; with 0 all do, in order",
        0,
        0..=1024,
    ),
    Parameter::number(
        "width",
        "words of a load: 1, or 4 where the stride is a multiple",
        1,
        1..=4,
    ),
    Parameter::number("warm", "steps before", 64, 0..=1 << 24),
    Parameter::number("steps", STEPS, 256, 0..=1 << 24),
];

/// Loads a stride apart: cycles that a sub-group's load takes a core.
pub(crate) static STRIDED: Micro = Micro {
    shares: |settings| settings.get("groups") > 1,
    ..micro(
        entry(
            "micro/strided",
            "loads from places that lie a stride apart: cycles that each takes a core, with conflicts by the stride",
            &PARAMETERS,
            |settings, _| workload(settings),
        ),
        "cycles a load",
        |settings, cycles| cycles * 32.0 / (settings.get("group") * u64::from(BATCH)) as f64,
    )
};

fn workload(settings: &Settings) -> Result<Workload> {
    let (places, stride, width) = (
        settings.get("places"),
        settings.get("stride"),
        settings.get("width"),
    );
    if !places.is_power_of_two() {
        return Err(Error::usage("places must be a power of 2"));
    }
    if width != 1 && (width != 4 || stride % 4 != 0) {
        return Err(Error::usage(
            "`width` must be 1, or 4 where the stride is a multiple of 4",
        ));
    }
    let words = places * stride;
    if words > 1 << 31 {
        return Err(Error::usage("the places take more than 8 GiB"));
    }
    let group = settings.small("group");
    let together = settings.small("together");
    let steps = settings.small("warm") + settings.small("steps");
    let (items_32, places, stride) = (items(settings) as u32, places as u32, stride as u32);
    let kernel = match width {
        1 => strided::kernel(group, items_32, together, places, stride, steps)?,
        _ => strided_wide::kernel(group, items_32, together, places, stride, steps)?,
    };
    launch(settings, kernel)
        .with("table", input(Type::I32, words, Pattern::Constant(1)))?
        .with("result", output(Type::I32, items(settings)))
}

#[cfg(test)]
mod tests {
    use crate::workloads::testing::run;

    #[test]
    fn every_load_is_counted() {
        for order in ["together=0", "together=1", "together=4"] {
            let settings = [
                "groups=2",
                "group=64",
                "places=64",
                "stride=3",
                "warm=0",
                "steps=5",
                order,
            ];
            let ran = run("micro/strided", &settings);
            assert!(ran.u32s("result").iter().all(|&sum| sum == 20), "{order}");
            let settings = ["group=64", "width=4", "stride=16", "warm=1", "steps=5", order];
            let ran = run("micro/strided", &settings);
            assert!(ran.u32s("result").iter().all(|&sum| sum == 0), "{order}");
        }
    }
}
