//! Plans on the kernels of `tests/in`, those of their headers and random ones, under the symbolic checker:
//! at trip counts from none to the header's, every value that is written must be made of the memory cells
//! that the plain kernel read.
//!
//! The seed rotates (`headstart::testing`); `HEADSTART_PLANS` says how many random plans.

use std::sync::Arc;

use headstart::Fault;
use headstart::checker::check;
use headstart::device::sim::functional::Groups;
use headstart::device::{Argument, Launch};
use headstart::ir::Kernel;
use headstart::prefetch::{self, Plan, PlanTarget, candidates};
use headstart_testing::{self as testing, Case, Random, derived_are_right, random_plan};

/// The launch with its free integer parameters changed: trip counts from 0 to the header's.
fn vary(launch: &mut Launch, kernel: &Kernel, random: &mut Random) {
    let lengths: Vec<_> = kernel
        .params
        .iter()
        .filter_map(|param| param.facts?.length)
        .collect();
    for (param, argument) in kernel.params.iter().zip(&mut launch.arguments) {
        if let Argument::Scalar(ty, bits) = argument
            && ty.is_integer()
            && !lengths.contains(&param.value)
        {
            // Half of the time a handful, where the loops' ends meet.
            let bound = if random.below(2) == 0 {
                4.min(*bits + 1)
            } else {
                *bits + 1
            };
            *bits = random.below(bound);
        }
    }
}

/// Checks a plan at its header's launch and at a few others. False if it is refused.
fn passes(
    case: &Case,
    plain: &Arc<Kernel>,
    plan: &Plan,
    launches: u64,
    random: &mut Random,
) -> Result<bool, String> {
    let target = PlanTarget::of([case.workload.group[0], 1, 1]);
    let applied = match prefetch::apply(plain, plan, &target) {
        Ok(applied) => applied,
        Err(error) if error.fault() == Fault::Bug => return Err(format!("{}, {plan}: {error}", case.name)),
        Err(_) => return Ok(false),
    };
    let derived = Arc::new(applied.kernel);
    for number in 0..launches {
        let (mut launch, _) = testing::bind(&case.workload).expect("the buffers are small");
        if number > 0 {
            vary(&mut launch, plain, random);
        }
        if let Err(error) = check(plain, &derived, &launch, 32, &Groups::All) {
            let arguments = &launch.arguments;
            return Err(format!("{}, {plan}, arguments {arguments:?}: {error}", case.name));
        }
    }
    Ok(true)
}

/// Random kernels with random plans. A kernel that was made smaller may be wrong itself: that is no bug.
#[test]
fn random_kernels_use_the_same_values_under_random_plans() {
    derived_are_right(testing::count("HEADSTART_PLANS", 40) * 2, 3, |derived| {
        let (launch, _) = testing::bind(derived.workload).expect("the buffers are small");
        let error = check(derived.plain, derived.kernel, &launch, 32, &Groups::All).err()?;
        let whole = Arc::ptr_eq(derived.plain, &derived.workload.kernel);
        (whole || error.fault() == Fault::Bug).then(|| error.to_string())
    });
}

#[test]
fn plans_of_the_headers_use_the_same_values() {
    let mut random = Random::new(testing::base_seed());
    let (mut legal, mut wrong) = (0, Vec::new());
    for case in Case::all().expect("the kernels are well written") {
        let plain = Arc::clone(&case.workload.kernel);
        for plan in &case.plans {
            match passes(&case, &plain, plan, 4, &mut random) {
                Ok(is_legal) => legal += usize::from(is_legal),
                Err(message) => wrong.push(message),
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} plans are wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(legal >= 60, "{legal} legal plans");
}

#[test]
fn random_plans_use_the_same_values() {
    let plans = testing::count("HEADSTART_PLANS", 40);
    let (mut legal, mut tried, mut wrong) = (0, 0, Vec::new());
    for case in Case::all().expect("the kernels are well written") {
        let plain = Arc::clone(&case.workload.kernel);
        if candidates(&plain).is_empty() {
            continue;
        }
        let mut random = Random::new(testing::base_seed());
        for _ in 0..plans {
            let plan = random_plan(&mut random, &plain);
            match passes(&case, &plain, &plan, 2, &mut random) {
                Ok(is_legal) => legal += u64::from(is_legal),
                Err(message) => wrong.push(message),
            }
            tried += 1;
        }
    }
    assert!(
        wrong.is_empty(),
        "{} plans are wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(legal * 8 >= tried, "only {legal} of {tried} plans were legal");
}
