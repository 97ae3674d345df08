//! What the timer may leave out changes no time.
//!
//! Kernels of `tests/in`, plain and under plans, and random ones are timed twice: as the tuner does, without
//! computing what no time depends on, and with all their results.

mod common;

use std::sync::Arc;

use headstart::Result;
use headstart::device::Launch;
use headstart::device::model::built_in;
use headstart::device::sim::timer::{LaunchTime, Timer};
use headstart::ir::Kernel;
use headstart::prefetch::{self, apply};
use headstart::tune::Workload;
use headstart_testing::{self as testing, Case, derived_are_right};

fn timers() -> [Timer; 2] {
    let model = Arc::new(built_in("h200", &[]).expect("a built-in model"));
    let timer = Timer::new(model);
    [timer.clone(), timer.with_results()]
}

fn time(timer: &Timer, workload: &Workload, kernel: &Kernel) -> Result<LaunchTime> {
    let (launch, _memories): (Launch, _) = testing::bind(workload).expect("the buffers are small");
    timer.run(&timer.compile(kernel, &launch)?, &launch)
}

fn compare(name: &str, workload: &Workload, kernel: &Kernel) {
    let [quick, whole] = timers().map(|timer| time(&timer, workload, kernel));
    assert_eq!(quick, whole, "{name}");
}

#[test]
fn kernels_take_as_long_with_and_without_their_results() {
    let mut kernels = 0;
    for case in Case::all().expect("the kernels are well written") {
        for plan in &case.plans {
            let target = prefetch::PlanTarget::of(case.workload.group);
            if let Ok(applied) = apply(&case.workload.kernel, plan, &target) {
                compare(
                    &format!("{} under {plan}", case.name),
                    &case.workload,
                    &applied.kernel,
                );
                kernels += 1;
            }
        }
    }
    assert!(kernels >= 50, "{kernels} kernels");
}

/// Random kernels under random plans; `HEADSTART_PLANS` says how many.
#[test]
fn random_kernels_take_as_long_with_and_without_their_results() {
    derived_are_right(testing::count("HEADSTART_PLANS", 40), 2, |derived| {
        let [quick, whole] = timers().map(|timer| time(&timer, derived.workload, derived.kernel));
        (quick != whole).then(|| format!("times differ: {quick:?} and {whole:?}"))
    });
}
