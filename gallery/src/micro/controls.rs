//! `micro/controls`: Intel's cache controls of loads and hints, by what they leave in the caches.

// `&table[…]` in a kernel is a pointer to an element; written twice by the macro, clippy takes it for a slice.
#![allow(clippy::redundant_slicing)]

use std::sync::Arc;

use headstart::Error;
use headstart::device::Pattern;
use headstart::ir::{CacheUse, HintSource, Kernel, LscControl, OpKind, Type};
use headstart::prelude::*;
use headstart::tune::Workload;

use super::{Micro, STEPS, entry, micro};
use crate::data::{input, output};
use crate::settings::Parameter;

/// A chain of loads with a control, round and round: each word names the place of the next.
#[kernel(work_group = 32)]
pub fn again(table: &[u32], result: &mut [u32], #[constant] words: u32, #[constant] steps: u32) {
    let mut at = 0u32;
    #[unroll(0)]
    for _ in 0..steps {
        let place = global_ptr(&table[at as usize]);
        let next = lsc_load(place, 0, LSC_LDCC_L1C_L3C);
        at = next & (words - 1);
    }
    result[global_id()] = at;
}

/// A chain of loads without a control, and four loads with one between each two of them, of zeros that come once. The chain waits for
/// them, so that nothing hides its own load.
#[kernel(work_group = 32)]
pub fn beside(
    table: &[u32],
    stream: &[u32],
    result: &mut [u32],
    #[constant] words: u32,
    #[constant] stride: u32,
    #[constant] steps: u32,
) {
    let mut at = 0u32;
    let mut sum = 0u32;
    #[unroll(0)]
    for step in 0..steps {
        #[unroll]
        for load in 0..4 {
            let place = global_ptr(&stream[((4 * step + load) * stride) as usize]);
            let loaded = lsc_load(place, 0, LSC_LDCC_L1C_L3C);
            sum = sum.wrapping_add(loaded);
        }
        at = table[(at.wrapping_add(sum) & (words - 1)) as usize] & (words - 1);
    }
    result[global_id()] = at;
}

/// The same with four hints instead of the loads, for data that are never used.
#[kernel(work_group = 32)]
pub fn hinted(
    table: &[u32],
    stream: &[u32],
    result: &mut [u32],
    #[constant] words: u32,
    #[constant] stride: u32,
    #[constant] steps: u32,
) {
    let mut at = 0u32;
    #[unroll(0)]
    for step in 0..steps {
        #[unroll]
        for hint in 0..4 {
            let place = global_ptr(&stream[((4 * step + hint) * stride) as usize]);
            lsc_prefetch_uint(place, 0, LSC_LDCC_L1C_L3C);
        }
        at = table[at as usize] & (words - 1);
    }
    result[global_id()] = at;
}

/// The kernel with this control in place of that of its accesses.
fn controlled(mut kernel: Kernel, control: LscControl) -> Kernel {
    kernel.body.walk_mut(&mut |op| match &mut op.kind {
        OpKind::Load {
            cache: cache @ CacheUse::Control(_),
            ..
        } => *cache = control.load(),
        OpKind::Prefetch { hint, source, .. } => {
            (*hint, *source) = (control.nearest(), HintSource::Control(control));
        }
        _ => {}
    });
    kernel
}

static PARAMETERS: [Parameter; 5] = [
    Parameter::choice(
        "control",
        "of the loads, as Intel's page spells it",
        &[
            "DEFAULT",
            "L1UC_L3UC",
            "L1UC_L3C",
            "L1C_L3UC",
            "L1C_L3C",
            "L1S_L3UC",
            "L1S_L3C",
            "L1IAR_L3C",
        ],
    ),
    Parameter::choice(
        "loads",
        "the chain's own, which come again, or four loads or hints beside each of it, which do not",
        &["again", "beside", "hinted"],
    ),
    Parameter::number(
        "footprint",
        "bytes of the chain, a power of 2",
        1 << 17,
        1 << 10..=1 << 26,
    ),
    Parameter::number(
        "stride",
        "bytes from one line to the next, a power of 2",
        64,
        4..=1 << 10,
    ),
    Parameter::number("steps", STEPS, 4096, 0..=1 << 20),
];

/// What a load with a control leaves behind: how long the chain's next pass takes.
pub(crate) static CONTROLS: Micro = micro(
    entry(
        "micro/controls",
        "loads and hints with Intel's cache controls: cycles of a chain that they are part of, or that runs beside them",
        &PARAMETERS,
        |settings, _| {
            let (footprint, stride) = (settings.get("footprint"), settings.get("stride"));
            if !footprint.is_power_of_two() || !stride.is_power_of_two() {
                return Err(Error::usage("the footprint and the stride must be powers of 2"));
            }
            // Two passes bring what stays, and settle what has to go.
            let steps = 2 * (footprint / stride) + settings.get("steps");
            let (words, step) = (footprint / 4, stride / 4);
            let pattern = Pattern::Steps { first: step, step: 1 };
            let control = LscControl::ALL[settings.get("control") as usize];
            let (own, apart, steps) = (words as u32, step as u32, steps as u32);
            let kernel = match settings.word("loads") {
                "beside" => beside::kernel(own, apart, steps)?,
                "hinted" => hinted::kernel(own, apart, steps)?,
                _ => again::kernel(own, steps)?,
            };
            let kernel = controlled(kernel, control);
            let mut workload =
                Workload::new(Arc::new(kernel), 1, 32).with("table", input(Type::I32, words, pattern))?;
            if settings.word("loads") != "again" {
                let longest = 2 * (footprint / stride) + settings.given("steps").unwrap_or(4096).max(1);
                workload = workload.with(
                    "stream",
                    input(Type::I32, 4 * longest * step, Pattern::Constant(0)),
                )?;
            }
            workload.with("result", output(Type::I32, 32))
        },
    ),
    "cycles a load of the chain",
    |_, cycles| cycles,
);
