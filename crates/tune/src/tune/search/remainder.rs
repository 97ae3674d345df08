//! Launches in which only the remainder of an unrolled loop runs: rows shorter than what the main loop does at once.
//!
//! A plan that names a load without its loop concerns the main loop. Where a launch never enters that, the time is in the
//! remainder, and plans have to name it: `param_0@L__BB0_7`. Where plans are simulated, some of the launch's work-groups run on
//! the functional engine to find out, if the kernel has such loops. A device that judges plans itself tries both.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use crate::device::Description;
use crate::device::sim::Simulator;
use crate::device::sim::functional::{CompiledKernel, Groups, Options};
use crate::ir::{Kernel, Label, LoadId, OpKind};
use crate::prefetch::plan::LoadName;
use crate::prefetch::{self, Candidate, Loads};
use crate::tune::subject::workload::Workload;

/// How many work-groups are looked at.
const GROUPS: u64 = 8;
/// Operations of a sub-group after which a launch is left alone.
const LONGEST: u64 = 1 << 20;

/// The remainders that a launch runs without their main loops, with the most iterations that a work-item runs of each.
pub(crate) type Alone = BTreeMap<Label, u32>;

/// Looks at a launch on a device with these limits. Empty if the kernel has no remainder, each main loop runs, or it cannot be
/// determined: a work-group faults, or waits for others.
pub(crate) fn alone(workload: &Workload, kernel: &Arc<Kernel>, device: &Description) -> Alone {
    let all = prefetch::candidates(kernel);
    if !all.iter().any(|load| load.is_rest) {
        return Alone::new();
    }
    let Some(most) = most_iterations(workload, kernel, device) else {
        return Alone::new();
    };
    let runs = |label: Label| most.get(&label).copied().unwrap_or(0);
    let mains: HashMap<LoadId, Vec<Label>> = all.iter().filter(|load| !load.is_rest).fold(
        HashMap::new(),
        |mut mains: HashMap<LoadId, Vec<Label>>, load| {
            mains.entry(load.id).or_default().push(load.looped);
            mains
        },
    );
    let never_runs = |id: LoadId| {
        let mut mains = mains.get(&id).into_iter().flatten();
        mains.all(|&main| runs(main) == 0)
    };
    let rests = all.iter().filter(|load| load.is_rest && never_runs(load.id));
    rests
        .map(|rest| (rest.looped, runs(rest.looped)))
        .filter(|&(_, most)| most > 0)
        .collect()
}

/// The most iterations of each loop that a work-item runs, of some work-groups.
fn most_iterations(
    workload: &Workload,
    kernel: &Arc<Kernel>,
    device: &Description,
) -> Option<HashMap<Label, u32>> {
    let compiled = CompiledKernel::new(Arc::clone(kernel));
    if compiled.may_wait_for_others() {
        return None;
    }
    let simulator = Simulator::custom(device.clone(), Options::CHECKING, None);
    let mut launch = workload.bind(&simulator).ok()?.prepare(&simulator).ok()?.launch;
    launch.operation_limit = Some(LONGEST);
    launch.check(kernel, device).ok()?;
    let all = launch.group_count();
    let chosen = match all {
        ..=GROUPS => (0..all).collect(),
        _ => (0..GROUPS)
            .map(|number| number * (all - 1) / (GROUPS - 1))
            .collect(),
    };
    let (sites, size) = (compiled.sites(), launch.sub_group_size(kernel, device));
    let groups = Groups::Some(chosen);
    let (ran, covered) = compiled.run_covering(&sites, &launch, size, Options::CHECKING, &groups);
    ran.ok()?;
    let mut labels = Vec::new();
    kernel.body.walk(&mut |op| {
        if let OpKind::Loop { label, .. } = op.kind {
            labels.push(label);
        }
    });
    // Both list the loops in the order of the text.
    if labels.len() != covered.trips.len() {
        return None;
    }
    let most = covered
        .trips
        .iter()
        .map(|trips| trips.0.last().copied().unwrap_or(0));
    Some(labels.into_iter().zip(most).collect())
}

/// Every remainder of a kernel, as if its main loop never ran.
pub(crate) fn every(kernel: &Kernel) -> Alone {
    let all = prefetch::candidates(kernel);
    let rests = all.iter().filter(|load| load.is_rest);
    rests.map(|rest| (rest.looped, u32::MAX)).collect()
}

/// The loads that plans name in such a launch: those that can be fetched early and lead to no other such load.
pub(crate) fn main_loads_beside(kernel: &Kernel, alone: &Alone) -> Vec<LoadName> {
    let loads = Loads::of(kernel);
    let early = loads.all().iter().zip(loads.can_be_early());
    let early: HashSet<&LoadName> = early
        .filter_map(|(load, early)| early.is_ok().then_some(&load.name))
        .collect();
    let mut all = loads.all().to_vec();
    let of_rests: HashSet<LoadId> = all
        .iter()
        .filter(|load| is_alone(load, alone))
        .map(|load| load.id)
        .collect();
    all.retain(|load| match of_rests.contains(&load.id) {
        true => is_alone(load, alone),
        false => !load.is_rest,
    });
    all.retain(|load| early.contains(&load.name));
    let leads_on = |id| {
        all.iter()
            .any(|other| other.id != id && other.parents.contains(&id))
    };
    let main = all
        .iter()
        .filter(|load| load.refusal.is_none() && !leads_on(load.id));
    let mut names: Vec<LoadName> = main.map(|load| load.name.clone()).collect();
    let mut seen = HashSet::new();
    names.retain(|name| seen.insert(name.clone()));
    names
}

fn is_alone(load: &Candidate, alone: &Alone) -> bool {
    load.is_rest && alone.contains_key(&load.looped)
}

/// A sentence for each such remainder.
pub(crate) fn sentences(kernel: &Kernel, alone: &Alone) -> Vec<String> {
    let mut places = HashMap::new();
    kernel.body.walk(&mut |op| {
        if let OpKind::Loop { label, .. } = op.kind {
            places.insert(label, kernel.describe_place(op.place));
        }
    });
    let place = |label: &Label| places.get(label).cloned().unwrap_or_default();
    let all = prefetch::candidates(kernel);
    let sentence = |(label, most): (&Label, &u32)| {
        let own = all.iter().filter(|load| load.looped == *label);
        let names: Vec<String> = own.map(|load| format!("`{}`", load.name)).collect();
        let iterations = if *most == 1 { "iteration" } else { "iterations" };
        format!(
            "In the work-groups that were looked at the unrolled loop never runs, and its remainder at {} at most {most} \
             {iterations}: the plans are for the remainder ({}).",
            place(label),
            names.join(", ")
        )
    };
    alone.iter().map(sentence).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::model;
    use crate::front::ptx::import;
    use crate::tune::{FileSubject, LaunchFile, Subject};

    /// The loads that are named for a column sum of this many rows, which nvcc unrolled by four, and what is said of it.
    fn named(rows: u32) -> (Vec<String>, Vec<String>) {
        let launch = format!(
            "groups = 4\ngroup = 64\nreadonly = [\"param_0\"]\nunaliased = [\"param_1\"]\nno_overflow = true\n[parameters.param_0]\n\
             length = 4096\n[parameters.param_1]\nlength = 256\n[parameters.param_2]\nvalue = {rows}\n[parameters.param_3]\nvalue = 256\n"
        );
        let launch = LaunchFile::parse(&launch, "launch.toml").expect("a launch file");
        let text = include_str!("../../../../../corpus/strided.ptx");
        let imported = import(text, "strided.ptx", Some("column_sum"), &launch.facts()).expect("an entry");
        let workload = FileSubject::of_module(imported, launch)
            .workload()
            .expect("a workload");
        let device = model::built_in("h200", &[]).expect("a model").description();
        let alone = alone(&workload, &workload.kernel, &device);
        let names = main_loads_beside(&workload.kernel, &alone);
        (
            names.iter().map(ToString::to_string).collect(),
            sentences(&workload.kernel, &alone),
        )
    }

    #[test]
    fn plans_name_the_remainder_where_it_runs_alone() {
        let (main, said) = named(16);
        assert_eq!((main.len(), said.len()), (1, 0), "{main:?}");
        assert!(!main[0].contains('@'), "{main:?}");
        // Once through the main loop, and the remainder: the plan for the main loop concerns both.
        assert_eq!(named(7).0, main);
        for rows in [1, 3] {
            let (rest, said) = named(rows);
            assert_eq!(rest.len(), 1, "{rest:?}");
            assert!(rest[0].starts_with(&format!("{}@", main[0])), "{rest:?}");
            assert!(said[0].contains(&format!("at most {rows} iteration")), "{said:?}");
            assert!(said[0].contains(&rest[0]), "{said:?}");
        }
        // Nothing runs at all: nothing is known.
        assert_eq!(named(0), (main, Vec::new()));
    }
}
