//! What stands beside a plan's time: the interval of its speedup, and what it takes of a core: registers, spills and resident
//! work-groups.

// The columns are those of tables and of the page.
#![cfg_attr(not(feature = "page"), allow(dead_code))]

use serde::{Deserialize, Serialize};

use super::{Trial, number};

/// What a kernel takes of a core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Taken {
    /// 32-bit registers of a work-item.
    pub registers: u32,
    /// Bytes of a work-item that did not fit into registers.
    pub spilled_bytes: u32,
    /// Work-groups that a core holds at once; none where the device does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups_per_core: Option<u32>,
    /// Whose numbers these are.
    pub by: TakenBy,
}

/// Who says what a kernel takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TakenBy {
    /// The vendor's compiler, of the code that runs.
    Compiler,
    /// The model, which imitates it.
    Model,
}

/// The columns that a table of these trials has for it; none where nothing is known of any.
pub(super) fn columns<'t>(trials: impl Iterator<Item = &'t Trial> + Clone) -> Vec<&'static str> {
    let has_interval = trials.clone().any(|trial| trial.between.is_some());
    let taken = trials.filter_map(|trial| trial.takes);
    let has = |what: fn(&Taken) -> bool| taken.clone().any(|taken| what(&taken));
    let columns = [
        (has_interval, INTERVAL),
        (has(|_| true), REGISTERS),
        (has(|taken| taken.spilled_bytes > 0), SPILLED),
        (has(|taken| taken.groups_per_core.is_some()), RESIDENT),
    ];
    let columns = columns.into_iter().filter(|(is_there, _)| *is_there);
    columns.map(|(_, name)| name).collect()
}

const INTERVAL: &str = "interval";
const REGISTERS: &str = "registers";
const SPILLED: &str = "spilled";
const RESIDENT: &str = "resident";

/// A trial's entry in one of the columns.
pub(super) fn entry(trial: &Trial, column: &str) -> String {
    if column == INTERVAL {
        return trial.between.map_or(String::new(), number::interval);
    }
    let Some(taken) = trial.takes else {
        return String::new();
    };
    match column {
        REGISTERS => taken.registers.to_string(),
        SPILLED => format!("{} B", number::grouped(u64::from(taken.spilled_bytes))),
        _ => taken
            .groups_per_core
            .map_or(String::new(), |groups| groups.to_string()),
    }
}

/// Whose numbers the columns have, as a sentence.
pub(super) fn source<'t>(mut trials: impl Iterator<Item = &'t Trial>) -> &'static str {
    match trials.any(|trial| trial.takes.is_some_and(|taken| taken.by == TakenBy::Model)) {
        true => {
            "The model estimates registers, what is spilled, and how many work-groups a core holds (resident)."
        }
        false => {
            "Registers, what is spilled and how many work-groups a core holds (resident) are those of the compiled code."
        }
    }
}
