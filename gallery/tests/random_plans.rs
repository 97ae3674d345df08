//! Random plans on the gallery's kernels at random small sizes: refused, or no wrong bit and nothing that the
//! symbolic checker finds.
//!
//! `HEADSTART_PLANS` says how many a kernel, `HEADSTART_SEED` the first seed.

use std::sync::Arc;

use headstart::Fault;
use headstart::device::sim::Simulator;
use headstart::prefetch::{self, PlanTarget};
use headstart::report::Outputs;
use headstart::tune::Subject;
use headstart::tune::check::Checks;
use headstart_gallery::kernels;
use headstart_testing::{self as testing, Random, random_plan};

/// Tries random plans on a kernel; `settings` makes a random size. Gives how many were legal.
fn try_plans(name: &str, settings: impl Fn(&mut Random) -> Vec<String>) {
    let plans = testing::count("HEADSTART_PLANS", 40);
    let device = Simulator::untimed();
    let (mut legal, mut wrong) = (0, Vec::new());
    for seed in (testing::base_seed()..).take(plans as usize) {
        let mut random = Random::new(seed);
        let settings = settings(&mut random);
        let subject = kernels::find(name).and_then(|kernel| kernel.with(&settings, None));
        let subject = subject.unwrap_or_else(|error| panic!("{settings:?}: {error}"));
        let workload = subject.workload().expect("a workload");
        let target = PlanTarget {
            group_size: Some(workload.group),
            ..PlanTarget::default()
        };
        let plain = prefetch::carry_out_wishes(&workload.kernel, &target).expect("no wish is refused");
        let plain = Arc::new(plain);
        let plan = random_plan(&mut random, &plain);
        let applied = match prefetch::apply(&plain, &plan, &target) {
            Ok(applied) => applied,
            Err(error) if error.fault() == Fault::Bug => {
                wrong.push(format!("seed {seed}, {settings:?}, {plan}: {error}"));
                continue;
            }
            Err(_) => continue,
        };
        let checks = Checks::new(&subject, &plain, &device, [&applied.plan]).expect("it runs plain");
        match checks.check(&applied.plan, &Arc::new(applied.kernel)) {
            Ok(Outputs::Identical) => legal += 1,
            Ok(Outputs::Equivalent) => wrong.push(format!("seed {seed}, {settings:?}, {plan}: other bits")),
            // More shared memory than the device has.
            Err(error) if error.fault() == Fault::Device => {}
            Err(error) => wrong.push(format!("seed {seed}, {settings:?}, {plan}: {error}")),
        }
    }
    println!("{name}: {legal} of {plans} plans were legal and changed no bit");
    assert!(
        wrong.is_empty(),
        "{} plans are wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(
        legal * 4 > plans,
        "{legal} of {plans} plans were legal: the test tests too little"
    );
}

#[test]
fn gather() {
    try_plans("gather", |random| {
        vec![
            format!("groups={}", random.between(1, 3)),
            format!("group={}", random.choose(&[32, 64, 96])),
            format!("items={}", random.between(1, 70)),
            format!("table={}", random.choose(&[1, 5, 4096])),
            format!("work={}", random.below(3)),
        ]
    });
}

#[test]
fn article() {
    try_plans("article", |random| {
        let group = *random.choose(&[1, 7, 32, 40, 64]);
        vec![
            format!("groups={}", random.between(1, 3)),
            format!("group={group}"),
            format!("elements={}", random.between(1, 70 * group)),
            format!("work={}", random.below(3)),
        ]
    });
}
