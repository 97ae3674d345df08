//! `micro/operands`: multiply-adds whose operands come from registers, two or three of them.
//!
//! Four chains take turns, and no two neighbours read a register in common, so that nothing is still at hand. A core that
//! reads too little of its registers in a cycle takes longer with three than with two.

use headstart::Result;
use headstart::ir::Type;
use headstart::prelude::*;
use headstart::tune::Workload;

use super::{GROUPS, Micro, entry, items, micro};
use crate::data::output;
use crate::settings::{Parameter, Settings, launch};

/// Operations of a step: sixteen of each chain.
const OPERATIONS: u32 = 64;

/// Multiply-adds in 32 bits.
#[kernel(work_group = group)]
pub fn floats(
    result: &mut [f32],
    #[constant] group: u32,
    #[constant] registers: u32,
    #[constant] steps: u32,
) {
    let own = 0.5 + global_id() as f32 / 1024.0;
    let (by0, by1, by2, by3) = (own * 0.125, own * 0.25, own * 0.375, own * 0.75);
    let (to0, to1, to2, to3) = (own + 0.125, own + 0.25, own + 0.375, own + 0.75);
    let (mut x0, mut x1, mut x2, mut x3) = (own, own + 1.0, own + 2.0, own + 3.0);
    #[unroll(0)]
    for _ in 0..steps {
        #[unroll]
        for _ in 0..OPERATIONS / 4 {
            if registers == 3 {
                x0 = x0.mul_add(by0, to0);
                x1 = x1.mul_add(by1, to1);
                x2 = x2.mul_add(by2, to2);
                x3 = x3.mul_add(by3, to3);
            } else {
                x0 = x0.mul_add(0.5, to0);
                x1 = x1.mul_add(0.5, to1);
                x2 = x2.mul_add(0.5, to2);
                x3 = x3.mul_add(0.5, to3);
            }
        }
    }
    result[global_id()] = x0 + x1 + x2 + x3;
}

/// Multiply-adds in 64 bits.
#[kernel(work_group = group)]
pub fn doubles(
    result: &mut [f64],
    #[constant] group: u32,
    #[constant] registers: u32,
    #[constant] steps: u32,
) {
    let own = 0.5 + global_id() as f64 / 1024.0;
    let (by0, by1, by2, by3) = (own * 0.125, own * 0.25, own * 0.375, own * 0.75);
    let (to0, to1, to2, to3) = (own + 0.125, own + 0.25, own + 0.375, own + 0.75);
    let (mut x0, mut x1, mut x2, mut x3) = (own, own + 1.0, own + 2.0, own + 3.0);
    #[unroll(0)]
    for _ in 0..steps {
        #[unroll]
        for _ in 0..OPERATIONS / 4 {
            if registers == 3 {
                x0 = x0.mul_add(by0, to0);
                x1 = x1.mul_add(by1, to1);
                x2 = x2.mul_add(by2, to2);
                x3 = x3.mul_add(by3, to3);
            } else {
                x0 = x0.mul_add(0.5, to0);
                x1 = x1.mul_add(0.5, to1);
                x2 = x2.mul_add(0.5, to2);
                x3 = x3.mul_add(0.5, to3);
            }
        }
    }
    result[global_id()] = x0 + x1 + x2 + x3;
}

static PARAMETERS: [Parameter; 5] = [
    GROUPS,
    Parameter::number("group", "work-items of a work-group", 1024, 32..=1024),
    Parameter::choice("type", "of the operands", &["fp32", "fp64"]),
    Parameter::number("registers", "operands that come from registers", 3, 2..=3),
    Parameter::number(
        "steps",
        "steps of 64 operations whose time is measured",
        512,
        0..=1 << 20,
    ),
];

/// The time of reading operands.
pub(crate) static OPERANDS: Micro = micro(
    entry(
        "micro/operands",
        "multiply-adds of operands in registers: cycles of one of each sub-group of a core",
        &PARAMETERS,
        workload,
    ),
    "cycles an operation",
    |_, cycles| cycles / f64::from(OPERATIONS),
);

fn workload(settings: &Settings, _trace: Option<&crate::spatter::Entry>) -> Result<Workload> {
    let (group, registers, steps) = (
        settings.small("group"),
        settings.small("registers"),
        settings.small("steps"),
    );
    let (kernel, ty) = match settings.word("type") {
        "fp32" => (floats::kernel(group, registers, steps)?, Type::F32),
        _ => (doubles::kernel(group, registers, steps)?, Type::F64),
    };
    launch(settings, kernel).with("result", output(ty, items(settings)))
}
