//! Random kernels under random plans: a plan is refused, or changes no bit.
//!
//! `HEADSTART_CASES` sets how many kernels are tried, `HEADSTART_SEED` the first of them.

use headstart::device::sim::functional::Options;
use headstart_testing::{self as testing, Derived, derived_are_right};

/// Plans tried on each kernel.
const PLANS: usize = 6;

/// Most shared memory that is tried.
const SHARED_BYTES: u64 = 200 << 10;

fn difference(derived: &Derived) -> Option<String> {
    if derived.kernel.shared_bytes() > SHARED_BYTES {
        return None;
    }
    let run = |kernel| testing::run(derived.workload, kernel, Options::CHECKING);
    let right = match run(derived.plain) {
        Ok(right) => right,
        Err(error) => return Some(format!("the plain kernel fails: {error}")),
    };
    match run(derived.kernel) {
        Err(error) => Some(format!("the derived kernel fails: {error}")),
        Ok(outputs) => {
            let mut pairs = outputs.iter().zip(&right);
            let differing = pairs.find(|(found, right)| found != right);
            differing.map(|((name, _), _)| format!("an output differs: `{name}`"))
        }
    }
}

#[test]
fn plans_change_no_bit() {
    derived_are_right(testing::count("HEADSTART_CASES", 60), PLANS, difference);
}
