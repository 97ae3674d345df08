//! The same work in another geometry, and the best plan there.

use headstart::device::model;
use headstart::report::{Report, Trial, Verdict};
use headstart::tune::{SearchSettings, SimulatedBench, Subject, search};
use headstart_gallery::kernels;

fn tuned(settings: &[&str]) -> Report {
    let settings: Vec<String> = settings.iter().map(|&text| text.to_owned()).collect();
    let subject = kernels::find("gather")
        .and_then(|kernel| kernel.with(&settings, None))
        .expect("a kernel");
    assert!(!subject.may_be_split(), "its caller has to combine the results");
    let bench = SimulatedBench::new(model::built_in("h200", &[]).expect("a model"));
    let plans = ["unroll:4", "values=rolling-async:4", "values=cache:L2:2"];
    let plans: Vec<_> = plans.iter().map(|plan| plan.parse().expect("a plan")).collect();
    let asked = SearchSettings {
        plans: Some(&plans),
        ..SearchSettings::default()
    };
    search(&subject, &bench, &asked, &()).expect("a report").report
}

#[test]
fn the_best_plan_elsewhere_is_what_tuning_there_finds() {
    let here = tuned(&["groups=4", "items=256", "table=4194304", "work=1"]);
    let plain = here
        .plain_best_geometry
        .as_ref()
        .expect("more work-groups are faster");
    let planned = here.best_elsewhere.as_ref().expect("and a plan helps there, too");
    // 128 work-groups leave every core as empty as 4 do.
    assert_eq!((planned.geometry, planned.geometry.groups), (plain.geometry, 128));
    assert!(planned.speedup >= 1.03 * plain.speedup, "{planned:?} {plain:?}");
    assert_ne!(
        here.verdict,
        Verdict::MoreWorkGroups,
        "the work may not be split: it is told, and not advised"
    );

    let there = tuned(&["groups=128", "items=8", "table=4194304", "work=1"]);
    assert!((there.baseline_ns - plain.time_ns).abs() < 1e-6 * plain.time_ns);
    let own = there.trials.iter().find(|trial| trial.plan == planned.plan);
    let (time_ns, _) = own.and_then(Trial::measured).expect("it ran");
    assert!(
        (time_ns - planned.time_ns).abs() < 1e-6 * time_ns,
        "{time_ns} {planned:?}"
    );
    // A plan that is certain not to be 2 % faster is dropped.
    let (fastest_ns, _) = there.fastest_first()[0].measured().expect("it ran");
    assert!(time_ns <= 1.02 * fastest_ns, "{fastest_ns} {planned:?}");
    assert!(
        here.reasons
            .iter()
            .any(|reason| reason.contains(&format!("with `{}`", planned.plan)))
    );
}
