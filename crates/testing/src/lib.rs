//! Random kernels with data, and random plans for them: what passes, backs and engines are tested on.
//!
//! ```
//! use headstart_testing::{Size, random_kernel};
//!
//! let kernel = random_kernel(7, Size::SMALL);
//! headstart::ir::verify(&kernel)?;
//! assert_eq!(headstart::ir::print(&kernel), headstart::ir::print(&random_kernel(7, Size::SMALL)));
//! # Ok::<(), headstart::Error>(())
//! ```
//!
//! Everything follows from a seed; the seeds of a test run follow from
//! [`base_seed`], which rotates and can be set.
//!
//! For every seed, a kernel is well formed, terminates, keeps all accesses inside their buffers and never reads uninitialised
//! memory. It has loops that count in many ways, data-dependent exits, branches, early returns, address chains up to three
//! links, conditional loads, trip counts that differ by work-item, private and shared arrays, barriers, stores in loops,
//! atomics, fences, shuffles, votes, block loads, arithmetic on halves and narrow integers, vectors in memory.

/// The examples in the documentation of the crates below the facade.
#[cfg(doctest)]
mod examples {
    include!(concat!(env!("OUT_DIR"), "/examples.rs"));
}

mod case;
mod gpu;
pub mod hardware;
mod loops;
mod narrow;
pub mod ocloc;
mod plans;
pub mod ptxas;
mod run;
mod shrink;
pub mod source;
mod spilled;
pub mod spirv_val;
mod statements;
mod tables;
mod together;
pub mod tools;
mod values;
pub mod worker;
pub mod xe;

// The library, by the names that all of Headstart has for its parts.
use headstart::{back, device, error, front, ir, prefetch, suggest, tune, violation};
use headstart_ir::{cleanup, random};

use std::sync::Arc;

pub use crate::random::Random;

use crate::ir::Kernel;
use crate::tune::Workload;

pub use case::{Case, texts};
pub use gpu::h200;
pub use plans::{random_plan, random_plan_of_any};
pub use run::{bind, run};
pub use shrink::shrink;
pub use spilled::spilled;

/// How large a random kernel becomes.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Statements in a region, at most.
    pub statements: u64,
    /// Loops and branches inside each other, at most.
    pub nesting: u32,
    /// Iterations of a loop, at most.
    pub trips: u64,
}

impl Size {
    /// Small enough to look at.
    pub const SMALL: Size = Size {
        statements: 4,
        nesting: 2,
        trips: 9,
    };
    /// Everything the generator knows, at once.
    pub const LARGE: Size = Size {
        statements: 8,
        nesting: 3,
        trips: 19,
    };
}

/// A random kernel and the launch that fits it.
pub fn random_workload(seed: u64, size: Size) -> Workload {
    statements::Generator::new(seed, size).workload()
}

/// A random kernel.
pub fn random_kernel(seed: u64, size: Size) -> Arc<Kernel> {
    random_workload(seed, size).kernel
}

/// The seed that a test run starts from: `HEADSTART_SEED` (in CI it comes from the commit), or else another one each
/// time. It is printed, so that a failure can be repeated.
pub fn base_seed() -> u64 {
    let given = std::env::var("HEADSTART_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or_else(|| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.map_or(0, |now| now.as_nanos() as u64 % 1_000_000_000)
    });
    println!("HEADSTART_SEED={seed} repeats this run");
    seed
}

/// How many cases a test tries: `variable` from the environment, or else `few`.
pub fn count(variable: &str, few: u64) -> u64 {
    let given = std::env::var(variable).ok().and_then(|count| count.parse().ok());
    given.unwrap_or(few)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir;

    #[test]
    fn kernels_verify_and_round_trip() {
        let seed = base_seed();
        for case in seed..seed + count("HEADSTART_CASES", 300) {
            for size in [Size::SMALL, Size::LARGE] {
                let kernel = random_kernel(case, size);
                let text = ir::print(&kernel);
                ir::verify(&kernel).unwrap_or_else(|error| panic!("seed {case}: {error}\n{text}"));
                let again = ir::parse(&text, "printed").unwrap_or_else(|error| panic!("{error}\n{text}"));
                assert_eq!(ir::first_difference(&kernel, &again), None, "seed {case}\n{text}");
                assert_eq!(ir::print(&again), text, "seed {case}");
            }
        }
    }

    #[test]
    fn a_seed_always_gives_the_same_kernel() {
        let print = || ir::print(&random_kernel(7, Size::LARGE));
        assert_eq!(print(), print());
    }

    #[test]
    fn plans_read_back() {
        let seed = base_seed();
        let mut random = Random::new(seed);
        for case in seed..seed + 100 {
            let kernel = random_kernel(case, Size::SMALL);
            let plan = random_plan(&mut random, &kernel);
            assert_eq!(plan.to_string().parse(), Ok(plan));
        }
    }
}
