//! Plans on the kernels of `tests/in`, those of their headers and random ones, under the symbolic checker:
//! at trip counts from none to the header's, every value that is written must be made of the memory cells
//! that the plain kernel read.
//!
//! `HEADSTART_SEED` chooses other random plans, `HEADSTART_PLANS` how many for each kernel.

mod common;

use std::sync::Arc;

use common::cases::{Case, cases};
use headstart::Fault;
use headstart::device::sim::functional::Groups;
use headstart::device::{Argument, Launch, splitmix64};
use headstart::ir::Kernel;
use headstart::prefetch::check::check;
use headstart::prefetch::{self, Plan, Target, candidates};

struct Random {
    seed: u64,
    drawn: u64,
}

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.drawn += 1;
        splitmix64(self.drawn, self.seed) % bound
    }

    fn pick<'a>(&mut self, among: &[&'a str]) -> &'a str {
        among[self.below(among.len() as u64) as usize]
    }
}

fn number(variable: &str, default: u64) -> u64 {
    let set = std::env::var(variable).ok();
    set.and_then(|number| number.parse().ok()).unwrap_or(default)
}

/// A plan for some of a kernel's loads. Many are refused.
fn random_plan(random: &mut Random, kernel: &Kernel) -> Plan {
    let mut parts = Vec::new();
    if random.below(2) == 0 {
        parts.push(format!("unroll:{}", 2 + random.below(5)));
    }
    for candidate in candidates(kernel) {
        if random.below(3) == 0 && !parts.is_empty() {
            continue;
        }
        let distance = 1 + random.below(8);
        let strategy = random.pick(&[
            "rolling-registers",
            "batched-registers",
            "rolling-shared",
            "batched-shared",
            "rolling-async",
            "rolling-async",
            "cache",
        ]);
        let flag = match strategy {
            "rolling-shared" | "batched-shared" | "rolling-async" => {
                random.pick(&["", "/plain", "/padded", "/interleaved"])
            }
            _ => "",
        };
        let strategy = match strategy {
            "cache" => format!("cache:{}:{distance}", random.pick(&["L1", "L2", "L3"])),
            strategy => format!("{strategy}:{distance}{flag}"),
        };
        parts.push(format!("{}={strategy}", candidate.name));
    }
    let text = parts.join(",");
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

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
    let target = Target {
        group_size: Some([case.group, 1, 1]),
        ..Target::default()
    };
    let applied = match prefetch::apply(plain, plan, &target) {
        Ok(applied) => applied,
        Err(error) if error.fault() == Fault::Bug => return Err(format!("{}, {plan}: {error}", case.name)),
        Err(_) => return Ok(false),
    };
    let derived = Arc::new(applied.kernel);
    for number in 0..launches {
        let (mut launch, _) = case.launch();
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

#[test]
fn plans_of_the_headers_use_the_same_values() {
    let mut random = Random {
        seed: number("HEADSTART_SEED", 1),
        drawn: 0,
    };
    let (mut legal, mut wrong) = (0, Vec::new());
    for case in cases() {
        let plain = Arc::new(case.kernel.clone());
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
    let seed = number("HEADSTART_SEED", 1);
    let plans = number("HEADSTART_PLANS", 40);
    let (mut legal, mut tried, mut wrong) = (0, 0, Vec::new());
    for case in cases() {
        let plain = Arc::new(case.kernel.clone());
        if candidates(&plain).is_empty() {
            continue;
        }
        let mut random = Random { seed, drawn: 0 };
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
    assert!(legal * 4 >= tried, "only {legal} of {tried} plans were legal");
}
