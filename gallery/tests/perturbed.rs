//! Launches derived from those of the gallery: their coverage, and that correct plans agree on all of them.

use std::sync::Arc;

use headstart::device::model;
use headstart::prefetch::Plan;
use headstart::report::Perturbed;
use headstart::tune::perturb::{Engine, Settings, check};
use headstart::tune::{self, SimulatedBench, Subject};
use headstart_gallery::kernels;

/// What checking a plan of a kernel says.
fn checked(name: &str, settings: &[&str], plan: &str) -> Perturbed {
    let settings: Vec<String> = settings.iter().map(ToString::to_string).collect();
    let subject = kernels::find(name)
        .and_then(|kernel| kernel.with(&settings, None))
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    let bench = SimulatedBench::new(model::built_in("h200", &[]).expect("a model"));
    let workload = subject.workload().expect("a workload");
    let plain = tune::plain(&bench, &workload).expect("a plain kernel");
    let plan: Plan = plan.parse().expect("a plan");
    let derived = tune::derive(&bench, &workload, &plain, &plan)
        .unwrap_or_else(|error| panic!("{name}, {plan}: {error}"));
    let engine = Engine::of(&bench, &workload);
    check(
        &subject,
        &plain,
        engine,
        &derived.plan,
        &Arc::clone(&derived.kernel),
        Settings::default(),
    )
    .unwrap_or_else(|error| panic!("{name}, {plan}: {error}"))
}

#[test]
fn launches_of_the_gallery_reach_everything() {
    for (name, settings, plan) in [
        ("gather", &["table=4096", "items=16"][..], "unroll:4"),
        ("gather", &["table=4096", "items=16"], "values=rolling-async:4"),
        ("spmv", &[], "unroll:2"),
    ] {
        let found = checked(name, settings, plan);
        assert_eq!(
            found.weakly_checked,
            Vec::<String>::new(),
            "{name}, {plan}: {found:?}"
        );
        assert_eq!(found.agreed + found.not_for, found.launches, "{name}, {plan}");
        assert!(found.agreed >= 50, "{name}, {plan}: {found:?}");
        assert!(found.dropped <= found.launches, "{name}, {plan}: {found:?}");
    }
}
