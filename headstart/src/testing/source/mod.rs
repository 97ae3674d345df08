//! Random programs as people write them, and everything that can be made of one.
//!
//! ```text
//!  seed ─ generate, loops ─► tree::Program ─ interpret ─► what it means
//!                              │   │   └ cuda ─► CUDA C ─ nvcc ─► PTX ─┐
//!                              │   └ ptx ─► PTX ───────────────────────┤ front::ptx
//!                              └ translate ─► ir::Kernel ◄─────────────┘
//! ```
//!
//! The programs have what the generator of [`random_kernel`](super::random_kernel) does not write: conditions that are cut
//! short, loops with several ends and several `continue`s, tests anywhere, counters of every width that go up, down and by
//! steps known at run time, `switch` that falls through, pointers that walk, parameters that may be the same memory,
//! addresses that merge from several places, returns in front of barriers. `graphs` writes control flow without
//! structure.
//!
//! [`campaign`] tries plans: a plan is derived once, with what a launch file would say, and must give the plain kernel's
//! bits under every launch that means something.

pub mod campaign;
mod cuda;
mod generate;
mod graphs;
mod interpret;
mod launches;
mod loops;
mod ptx;
mod translate;
mod tree;

pub use cuda::cuda;
pub use generate::program;
pub use interpret::{Invalid, interpret};
pub use launches::{Launch, Tried, launches};
pub use ptx::ptx;
pub use translate::{Known, Style, translate};
pub use tree::Program;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;

    /// What people write, as it stands in the text.
    const WRITTEN: [&str; 20] = [
        "goto out",
        "goto next",
        "continue;",
        "break;",
        "return;",
        "switch (",
        "do {",
        "||",
        "&&",
        "!(",
        "++v",
        "--v",
        "v7--",
        "__ldg(",
        "__shfl_",
        "__ballot_sync",
        "__syncthreads",
        " ? ",
        "signed char v",
        "unsigned long long v",
    ];

    #[test]
    fn everything_is_written() {
        let texts: Vec<String> = (0..400).map(|seed| cuda(&program(seed))).collect();
        for wanted in WRITTEN {
            assert!(
                texts.iter().any(|text| text.contains(wanted)),
                "no program has `{wanted}`"
            );
        }
    }

    #[test]
    fn launches_take_loops_apart() {
        // Scalars and data differ, and so do results; parameters are the same memory now and then.
        let (mut tried, mut dropped, mut distinct, mut aliased) = (0, 0, 0, 0);
        for seed in 0..100 {
            let mut random = Random::new(seed);
            let (found, more) = launches(&mut random, &program(seed), Some((9, 8)), 8);
            dropped += more;
            tried += found.len();
            aliased += found
                .iter()
                .filter(|tried| tried.launch.aliases[9].is_some())
                .count();
            let mut results: Vec<_> = found.iter().map(|tried| &tried.results[10]).collect();
            results.sort();
            results.dedup();
            distinct += results.len();
        }
        assert!(
            tried > 600 && aliased > 100,
            "{tried} launches, {aliased} with parameters that share"
        );
        assert!(
            distinct * 10 > tried * 8,
            "{distinct} results of {tried} launches"
        );
        assert!(
            dropped < 2 * tried as u64,
            "{dropped} of {tried} launches mean nothing"
        );
    }
}
