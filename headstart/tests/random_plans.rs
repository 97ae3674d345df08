//! Random kernels under random plans: a plan is refused, or changes no bit.
//!
//! `HEADSTART_CASES` sets how many kernels are tried, `HEADSTART_SEED` the first of them.

use headstart::device::sim::functional::Options;
use headstart::ir::{self, Kernel};
use headstart::prefetch::{Plan, PlanTarget, apply};
use headstart::tune::Workload;
use headstart::{Fault, Result};
use headstart_testing::{self as testing, Random, random_plan, random_workload, shrink};

/// Plans tried on each kernel.
const PLANS: usize = 6;

/// What came of a plan.
#[derive(Debug, PartialEq)]
enum Outcome {
    Same,
    Refused,
    Wrong(String),
}

/// Applies a plan to a kernel and compares the outputs.
fn outcome(workload: &Workload, kernel: &Kernel, plan: &Plan, plain: &[(String, Vec<u8>)]) -> Outcome {
    let target = PlanTarget {
        group_size: Some(workload.group),
        line: 128,
    };
    let applied = match apply(kernel, plan, &target) {
        Ok(applied) => applied,
        Err(error) if error.fault() == Fault::Bug => return Outcome::Wrong(error.to_string()),
        Err(_) => return Outcome::Refused,
    };
    if applied.kernel.shared_bytes() > 200 << 10 {
        return Outcome::Refused;
    }
    match testing::run(workload, &applied.kernel, Options::CHECKING) {
        Err(error) => Outcome::Wrong(format!("the derived kernel fails: {error}")),
        Ok(outputs) => match outputs.iter().zip(plain).find(|(found, right)| found != right) {
            Some(((name, _), _)) => Outcome::Wrong(format!("output `{name}` differs")),
            None => Outcome::Same,
        },
    }
}

fn plain(workload: &Workload, kernel: &Kernel) -> Result<Vec<(String, Vec<u8>)>> {
    testing::run(workload, kernel, Options::CHECKING)
}

/// Shrinks the kernel as long as it fails in the same way, and shows everything.
fn report(workload: &Workload, plan: &Plan, why: &str) -> String {
    let kind = |why: &str| why.split(['`', ':']).next().unwrap_or_default().to_owned();
    let small = shrink(&workload.kernel, |kernel| match plain(workload, kernel) {
        Ok(right) => {
            matches!(outcome(workload, kernel, plan, &right), Outcome::Wrong(other) if kind(&other) == kind(why))
        }
        Err(_) => false,
    });
    let target = PlanTarget {
        group_size: Some(workload.group),
        line: 128,
    };
    let derived = match apply(&small, plan, &target) {
        Ok(applied) => ir::print(&applied.kernel),
        Err(error) => error.to_string(),
    };
    let again = plain(workload, &small).map(|right| outcome(workload, &small, plan, &right));
    format!(
        "plan {plan}: {why}; shrunk: {again:?}\n{}\n{derived}",
        ir::print(&small)
    )
}

#[test]
fn plans_change_no_bit() {
    let seed = testing::base_seed();
    let cases = testing::count("HEADSTART_CASES", 60);
    let (mut same, mut refused) = (0, 0);
    let mut wrong: Vec<(u64, Workload, Plan, String)> = Vec::new();
    for case in seed..seed + cases {
        let workload = random_workload(case);
        let kernel = &workload.kernel;
        let right = plain(&workload, kernel).unwrap_or_else(|error| {
            panic!(
                "seed {case}: the plain kernel fails: {error}\n{}",
                ir::print(kernel)
            )
        });
        let mut random = Random::new(case);
        for _ in 0..PLANS {
            let plan = random_plan(&mut random, kernel);
            match outcome(&workload, kernel, &plan, &right) {
                Outcome::Same => same += 1,
                Outcome::Refused => refused += 1,
                Outcome::Wrong(why) => wrong.push((case, workload.clone(), plan, why)),
            }
        }
    }
    println!("{same} plans changed no bit, {refused} were refused");
    for (case, _, plan, why) in &wrong {
        println!("seed {case}, plan {plan}: {why}");
    }
    if let Some((case, workload, plan, why)) = wrong.first() {
        panic!(
            "{} plans were wrong; seed {case}: {}",
            wrong.len(),
            report(workload, plan, why)
        );
    }
    assert!(
        same * 5 > refused,
        "{same} of {} plans were legal: the test tests too little",
        same + refused
    );
}
