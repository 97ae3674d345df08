//! `micro/arithmetic` and `micro/barrier`: instructions that wait for each other, and barriers.
//!
//! With one sub-group a step takes the latency of its instructions; with 32 on a core, their share of the unit.

use headstart::Result;
use headstart::ir::Type;
use headstart::prelude::*;
use headstart::tune::Workload;

use super::{GROUPS, Micro, entry, items, micro};
use crate::data::output;
use crate::settings::{Parameter, Settings, launch};

/// Operations of a step.
const CHAIN: u32 = 64;

/// A chain of operations on 32-bit integers: exclusive ors and additions in turns, multiply-adds, or counts of ones.
#[kernel(work_group = group)]
pub fn integers(
    result: &mut [u32],
    #[constant] group: u32,
    #[constant] operation: u32,
    #[constant] steps: u32,
) {
    let own = global_id() as u32;
    let mut x = own;
    #[unroll(0)]
    for _ in 0..steps {
        #[unroll]
        for _ in 0..CHAIN {
            if operation == 0 {
                // Two instructions, neither of which can be merged with its neighbours.
                x = (x ^ own).wrapping_add(own);
            } else if operation == 1 {
                x = x.wrapping_mul(own).wrapping_add(own);
            } else {
                x = x.count_ones();
            }
        }
    }
    result[global_id()] = x;
}

/// A chain of multiply-adds, or of square roots, in 32 bits.
#[kernel(work_group = group)]
pub fn floats(
    result: &mut [f32],
    #[constant] group: u32,
    #[constant] operation: u32,
    #[constant] steps: u32,
) {
    let own = 0.5 + global_id() as f32 / 1024.0;
    let mut x = own;
    #[unroll(0)]
    for _ in 0..steps {
        #[unroll]
        for _ in 0..CHAIN {
            x = if operation == 0 {
                x.mul_add(0.5, own)
            } else {
                x.sqrt()
            };
        }
    }
    result[global_id()] = x;
}

/// A chain of multiply-adds, or of conversions to 32 bits and back, in 64 bits.
#[kernel(work_group = group)]
pub fn doubles(
    result: &mut [f64],
    #[constant] group: u32,
    #[constant] operation: u32,
    #[constant] steps: u32,
) {
    let own = 0.5 + global_id() as f64 / 1024.0;
    let mut x = own;
    #[unroll(0)]
    for _ in 0..steps {
        #[unroll]
        for _ in 0..CHAIN {
            x = if operation == 0 {
                x.mul_add(0.5, own)
            } else {
                f64::from(x as f32)
            };
        }
    }
    result[global_id()] = x;
}

/// A chain of multiplications and additions in 16 bits.
#[kernel(work_group = group)]
pub fn halves(result: &mut [f16], #[constant] group: u32, #[constant] steps: u32) {
    let own = f16::from_f32(0.5 + local_id() as f32 / 1024.0);
    let mut x = own;
    #[unroll(0)]
    for _ in 0..steps {
        #[unroll]
        for _ in 0..CHAIN {
            x = x * own + own;
        }
    }
    result[global_id()] = x;
}

/// Barriers.
#[kernel(work_group = group)]
pub fn barriers(result: &mut [u32], #[constant] group: u32, #[constant] steps: u32) {
    #[unroll(0)]
    for _ in 0..steps {
        #[unroll]
        for _ in 0..16 {
            barrier();
        }
    }
    result[global_id()] = steps;
}

static PARAMETERS: [Parameter; 4] = [
    GROUPS,
    Parameter::number(
        "group",
        "work-items of a work-group: 32 for the latency, 1024 for the rate",
        32,
        1..=1024,
    ),
    Parameter::choice(
        "operation",
        "the instruction",
        &[
            "int32",
            "multiply",
            "count-ones",
            "fp32",
            "square-root",
            "fp64",
            "convert",
            "fp16",
        ],
    ),
    Parameter::number(
        "steps",
        "steps of 64 operations whose time is measured",
        512,
        0..=1 << 20,
    ),
];

/// Latency and rate of each class of instructions.
pub(crate) static ARITHMETIC: Micro = micro(
    entry(
        "micro/arithmetic",
        "operations that wait for each other: cycles of one with 32 work-items, of all sub-groups' with 1024",
        &PARAMETERS,
        workload,
    ),
    "cycles an operation",
    |settings, cycles| {
        let per_operation = match settings.word("operation") {
            "int32" | "convert" | "fp16" => 2.0,
            _ => 1.0,
        };
        cycles / f64::from(CHAIN) / per_operation
    },
);

fn workload(settings: &Settings, _trace: Option<&crate::spatter::Entry>) -> Result<Workload> {
    let (group, steps) = (settings.small("group"), settings.small("steps"));
    let (kernel, ty) = match settings.word("operation") {
        "int32" => (integers::kernel(group, 0, steps)?, Type::I32),
        "multiply" => (integers::kernel(group, 1, steps)?, Type::I32),
        "count-ones" => (integers::kernel(group, 2, steps)?, Type::I32),
        "fp32" => (floats::kernel(group, 0, steps)?, Type::F32),
        "square-root" => (floats::kernel(group, 1, steps)?, Type::F32),
        "fp64" => (doubles::kernel(group, 0, steps)?, Type::F64),
        "convert" => (doubles::kernel(group, 1, steps)?, Type::F64),
        _ => (halves::kernel(group, steps)?, Type::F16),
    };
    launch(settings, kernel).with("result", output(ty, items(settings)))
}

static BARRIERS: [Parameter; 3] = [
    GROUPS,
    Parameter::number("group", "work-items of a work-group", 128, 32..=1024),
    Parameter::number(
        "steps",
        "steps of 16 barriers whose time is measured",
        512,
        0..=1 << 20,
    ),
];

/// The time of a barrier.
pub(crate) static BARRIER: Micro = micro(
    entry(
        "micro/barrier",
        "barriers, one after the other: cycles from one to the next",
        &BARRIERS,
        |settings, _| {
            let (group, steps) = (settings.small("group"), settings.small("steps"));
            launch(settings, barriers::kernel(group, steps)?)
                .with("result", output(Type::I32, items(settings)))
        },
    ),
    "cycles a barrier",
    |_, cycles| cycles / 16.0,
);
