//! `micro/shared`: shared memory and its banks.

use headstart::ir::Type;
use headstart::prelude::*;

use super::{GROUPS, Micro, Near, STEPS, entry, items, micro};
use crate::data::output;
use crate::settings::{Parameter, launch};

const WORDS: usize = 1024;

/// Each word holds its own place: loads that wait for each other, in the same banks all the time. Neighbours' words lie
/// `stride` apart.
#[kernel(work_group = group)]
pub fn in_shared(
    result: &mut [u32],
    #[constant] group: u32,
    #[constant] stride: u32,
    #[constant] steps: u32,
) {
    let mut tile = shared::<u32, WORDS>();
    for i in (local_id()..WORDS).step_by(group as usize) {
        tile[i] = i as u32;
    }
    barrier();
    let mut at = (local_id() as u32 % 32).wrapping_mul(stride) % WORDS as u32;
    #[unroll(0)]
    for _ in 0..steps {
        #[unroll]
        for _ in 0..8 {
            at = tile[at as usize];
        }
    }
    result[global_id()] = at;
}

static PARAMETERS: [Parameter; 4] = [
    GROUPS,
    Parameter::number(
        "group",
        "work-items of a work-group: 32 for the latency, 1024 for the rate",
        32,
        1..=1024,
    ),
    Parameter::number(
        "stride",
        "words between neighbours: 1 is without conflicts, 32 has all in one bank",
        1,
        1..=32,
    ),
    Parameter::number("steps", STEPS, 1024, 0..=1 << 20),
];

/// Latency and rate of shared memory, with and without conflicts.
pub(crate) static SHARED: Micro = Micro {
    near: |settings, model| {
        let near = [("groups", 1), ("group", 16), ("stride", 1)].into_iter();
        Some(Near {
            settings: near.fold(settings.clone(), |settings, (name, value)| {
                settings.with(name, value)
            }),
            latency: f64::from(*model.shared.latency),
        })
    },
    ..micro(
        entry(
            "micro/shared",
            "loads from shared memory that wait for each other: cycles of one, with conflicts by the stride",
            &PARAMETERS,
            |settings, _| {
                let group = settings.small("group");
                let kernel = in_shared::kernel(group, settings.small("stride"), settings.small("steps"))?;
                launch(settings, kernel).with("result", output(Type::I32, items(settings)))
            },
        ),
        "cycles a load",
        |_, cycles| cycles / 8.0,
    )
};
