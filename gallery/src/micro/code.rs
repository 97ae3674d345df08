//! `micro/code`: how fast code of a size runs.

use headstart::ir::Type;
use headstart::prelude::*;

use super::{GROUPS, Micro, STEPS, entry, items, micro};
use crate::data::output;
use crate::settings::{Parameter, launch};

/// A loop of `quads` times four multiply-adds that do not wait for each other.
#[kernel(work_group = group)]
pub fn straight(result: &mut [f32], #[constant] group: u32, #[constant] quads: u32, #[constant] steps: u32) {
    let own = 0.5 + global_id() as f32 / 1024.0;
    let mut a = own;
    let mut b = own + 1.0;
    let mut c = own + 2.0;
    let mut d = own + 3.0;
    #[unroll(0)]
    for _ in 0..steps {
        #[unroll]
        for _ in 0..quads {
            a = a.mul_add(own, own);
            b = b.mul_add(own, own);
            c = c.mul_add(own, own);
            d = d.mul_add(own, own);
        }
    }
    result[global_id()] = a + b + c + d;
}

static PARAMETERS: [Parameter; 4] = [
    GROUPS,
    Parameter::number("group", "work-items of a work-group", 128, 1..=1024),
    Parameter::number(
        "kib",
        "size of the loop's code, in KiB, at 16 bytes an instruction",
        16,
        1..=512,
    ),
    Parameter::number("steps", STEPS, 16, 0..=1 << 20),
];

/// Code size against the instruction caches.
pub(crate) static CODE: Micro = micro(
    entry(
        "micro/code",
        "straight-line code of a size, one sub-group per scheduler: cycles per instruction, by the cache that holds the code",
        &PARAMETERS,
        |settings, _| {
            let group = settings.small("group");
            // Four instructions of 16 bytes.
            let kernel = straight::kernel(group, settings.small("kib") * 16, settings.small("steps") + 1)?;
            launch(settings, kernel).with("result", output(Type::F32, items(settings)))
        },
    ),
    "cycles an instruction",
    |settings, cycles| cycles / (settings.get("kib") * 64) as f64,
);
