//! What a plan takes of a core: registers, spills and resident work-groups, beside its time.

// The columns are those of tables and of the page.
#![cfg_attr(not(feature = "page"), allow(dead_code))]

use serde::{Deserialize, Serialize};

use super::{Report, Trial, number};
use crate::prefetch::Plan;

/// What a kernel takes of a core.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Taken {
    /// 32-bit registers of a work-item.
    pub registers: u32,
    /// Bytes of a work-item that did not fit into registers.
    pub spilled_bytes: u32,
    /// Work-groups that a core holds at once; none where the device does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups_per_core: Option<u32>,
    /// Bytes of shared memory that a work-group asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_bytes: Option<u32>,
    /// Bytes of its machine code; none where the device does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code_bytes: Option<u32>,
    /// Resident sub-groups of a core over its places for them, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub occupancy: Option<f64>,
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
    let taken = trials.filter_map(|trial| trial.takes);
    let has = |what: fn(&Taken) -> bool| taken.clone().any(|taken| what(&taken));
    let columns = [
        (has(|_| true), REGISTERS),
        (has(|taken| taken.spilled_bytes > 0), SPILLED),
        (has(|taken| taken.groups_per_core.is_some()), RESIDENT),
    ];
    let columns = columns.into_iter().filter(|(is_there, _)| *is_there);
    columns.map(|(_, name)| name).collect()
}

const REGISTERS: &str = "registers";
const SPILLED: &str = "spilled";
const RESIDENT: &str = "resident";

/// A trial's entry in one of the columns.
pub(super) fn entry(trial: &Trial, column: &str) -> String {
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

/// What the advised plan takes beside the plain kernel, in a sentence; none where it is not known, or where nothing changes.
pub(super) fn cost(report: &Report) -> Option<String> {
    let of = |plan: &Plan| report.trials.iter().find(|trial| trial.plan == *plan)?.takes;
    let (from, to) = (of(&Plan::none())?, of(&report.best.plan)?);
    let number = |count: u32| number::grouped(u64::from(count));
    let change = |what: &str, from: Option<u32>, to: Option<u32>, unit: &str| match (from?, to?) {
        (from, to) if from == to => None,
        (from, to) => Some(format!("{what} {} → {}{unit}", number(from), number(to))),
    };
    let bytes = |what: &str, from: Option<u32>, to: Option<u32>| match (from, to) {
        (Some(from), Some(to)) if from % 1024 == 0 && to % 1024 == 0 => {
            change(what, Some(from / 1024), Some(to / 1024), " KiB")
        }
        (from, to) => change(what, from, to, " B"),
    };
    let occupancy = from.occupancy.zip(to.occupancy).filter(|(from, to)| from != to);
    let occupancy = occupancy.map_or(String::new(), |(from, to)| {
        format!(" (occupancy {:.0} → {:.0} %)", 100.0 * from, 100.0 * to)
    });
    let resident = change(
        "work-groups of a core",
        from.groups_per_core,
        to.groups_per_core,
        &occupancy,
    );
    let parts = [
        change(
            "registers of a work-item",
            Some(from.registers),
            Some(to.registers),
            "",
        ),
        change("spilled", Some(from.spilled_bytes), Some(to.spilled_bytes), " B"),
        bytes(
            "shared memory of a work-group",
            from.shared_bytes,
            to.shared_bytes,
        ),
        resident,
        change("code", from.code_bytes, to.code_bytes, " B"),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let whose = match to.by {
        TakenBy::Model => "By the model's estimates",
        TakenBy::Compiler => "Of the compiled code",
    };
    (!parts.is_empty()).then(|| format!("{whose}: {}.", parts.join(", ")))
}
