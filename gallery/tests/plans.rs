//! Every plan of the default space, for every kernel of the gallery, computes the plain kernel's bits.

use std::sync::Arc;

use headstart::device::sim::Simulator;
use headstart::ir::CacheLevel;
use headstart::prefetch::{self, Plan, Target};
use headstart::report::Outputs;
use headstart::tune::Subject;
use headstart::tune::check::Checks;
use headstart::tune::search::main_loads;
use headstart::tune::space::default_plans;
use headstart_gallery::kernels;

/// Derives and checks each plan; gives the number of those that were legal.
fn check_all(kernel: &str, settings: &[&str]) -> usize {
    let settings: Vec<String> = settings.iter().map(ToString::to_string).collect();
    let subject = kernels::find(kernel)
        .expect("a kernel")
        .with(&settings, None)
        .expect("settings");
    let workload = subject.workload().expect("a workload");
    let target = Target {
        group_size: Some(workload.group),
        ..Target::default()
    };
    let plain = Arc::new(prefetch::carry_out_wishes(&workload.kernel, &target).expect("wishes"));
    let plans = default_plans(&main_loads(&plain), &[CacheLevel::L1, CacheLevel::L2]).expect("plans");
    let derived: Vec<(Plan, _)> = plans
        .iter()
        .filter_map(|plan| prefetch::apply(&plain, plan, &target).ok())
        .map(|applied| (applied.plan, Arc::new(applied.kernel)))
        .collect();
    let device = Simulator::untimed();
    let checks =
        Checks::new(&subject, &plain, &device, derived.iter().map(|(plan, _)| plan)).expect("it runs plain");
    let wrong: Vec<String> = derived
        .iter()
        .filter_map(|(plan, kernel)| match checks.check(plan, kernel) {
            Ok(Outputs::Identical) => None,
            Ok(Outputs::Equivalent) => Some(format!("{plan}: other bits")),
            Err(error) => Some(format!("{plan}: {error}")),
        })
        .collect();
    assert!(
        wrong.is_empty(),
        "{} of {} plans:\n{}",
        wrong.len(),
        derived.len(),
        wrong.join("\n")
    );
    derived.len()
}

#[test]
fn gather() {
    assert!(check_all("gather", &["group=64", "items=40", "table=4096", "work=2"]) >= 100);
}

#[test]
fn gather_with_hints_by_hand() {
    // These carry the next index in a variable, as the guide writes them: they can be unrolled, no more.
    for kernel in ["gather-hint-l3", "gather-hint-l1"] {
        assert!(
            check_all(kernel, &["group=32", "items=20", "table=4096", "work=1"]) >= 4,
            "{kernel}"
        );
    }
}

#[test]
fn article() {
    assert!(check_all("article", &["group=40", "elements=1000"]) >= 100);
}
