//! `micro/launch`: the time between the events around an empty launch.

use headstart::ir::Type;
use headstart::prelude::*;

use super::{GROUPS, Micro, Timed, entry, items, micro};
use crate::data::output;
use crate::settings::{Parameter, launch};

/// A word from each work-item, so that the launch has an output.
#[kernel(work_group = group)]
pub fn stored(result: &mut [u32], #[constant] group: u32, #[constant] steps: u32) {
    result[global_id()] = steps;
}

static PARAMETERS: [Parameter; 3] = [
    GROUPS,
    Parameter::number("group", "work-items of a work-group", 32, 1..=1024),
    Parameter::number("steps", "launches whose time is told", 1, 1..=1),
];

/// The overhead of a trial beside its kernel's work.
pub(crate) static LAUNCH: Micro = Micro {
    timed: Timed::Launch,
    ..micro(
        entry(
            "micro/launch",
            "a kernel that stores a word: cycles from an event in front of its launch to one behind it",
            &PARAMETERS,
            |settings, _| {
                let group = settings.small("group");
                let kernel = stored::kernel(group, settings.small("steps"))?;
                launch(settings, kernel).with("result", output(Type::I32, items(settings)))
            },
        ),
        "cycles a launch",
        |_, cycles| cycles,
    )
};
