//! Random kernels with data, and random plans for them: what passes, backs and engines are tested on.
//!
//! ```
//! use headstart_testing::random_kernel;
//!
//! let kernel = random_kernel(7);
//! headstart::ir::verify(&kernel)?;
//! assert_eq!(headstart::ir::print(&kernel), headstart::ir::print(&random_kernel(7)));
//! # Ok::<(), headstart::Error>(())
//! ```
//!
//! Everything follows from a seed; the seeds of a test run follow from
//! [`base_seed`], which rotates and can be set.
//!
//! For every seed, a kernel is well formed, terminates, keeps all accesses inside their buffers and never reads uninitialised
//! memory. There are two generators: [`source`] writes C-like programs, from which a kernel gets its control flow, its
//! addresses and what its work-items do together; `source::graphs` writes flow graphs without structure.

/// The examples in the documentation of the crates below the facade.
#[cfg(doctest)]
mod examples {
    include!(concat!(env!("OUT_DIR"), "/examples.rs"));
}

mod case;
mod gpu;
pub mod hardware;
pub mod ocloc;
mod plans;
pub mod ptxas;
mod run;
mod shrink;
pub mod source;
mod spilled;
pub mod spirv_val;
pub mod tools;
pub mod worker;
mod woven;
pub mod xe;

// The library, by the names that all of Headstart has for its parts.
use headstart::{back, device, error, front, ir, prefetch, suggest, tune, violation};
use headstart_ir::{cleanup, random};

use std::path::Path;
use std::sync::Arc;

pub use crate::random::Random;

use crate::device::{Fill, Pattern};
use crate::ir::{Kernel, Type};
use crate::tune::{ArgumentSpec, Compare, Workload};

pub use case::{Case, texts};
pub use gpu::h200;
pub use plans::{Derived, derived_are_right, random_plan, random_plan_of_any};
pub use run::{bind, run, run_text};
pub use shrink::shrink;
pub use spilled::spilled;

/// A random kernel and the launch that fits it: a C-like program of [`source`], translated, with what C has no words for
/// woven in. Programs whose work-groups wait for each other are left to [`source::campaign`].
pub fn random_workload(seed: u64) -> Workload {
    let program = |number: u64| {
        let program = source::program(number);
        let mut random = Random::new(number);
        let (tried, _) = source::launches(&mut random, &program, None, 1);
        let tried = tried.into_iter().next().filter(|_| !program.waits)?;
        Some((program, random, tried.launch))
    };
    let found = (0..).find_map(|number| program(seed ^ number << 40));
    let (program, mut random, launch) = found.expect("most programs mean something");
    let (known, style) = (
        source::campaign::known(&mut random, &program, None),
        source::Style::random(&mut random),
    );
    let mut kernel = source::translate(&program, &known, style).expect("the translator is right");
    let (mut given, mut inputs) = (Vec::new(), Vec::new());
    for ((array, contents), param) in program.arrays.iter().zip(&launch.contents).zip(&kernel.params) {
        let (element, length) = (array.element.ir(), array.length);
        let fill = Fill::Bytes(source::launches::bytes_of(array.element, contents).into());
        given.push(match array.written {
            true => output(element, length, fill),
            false => ArgumentSpec::input(element, length, fill),
        });
        if !array.written && !array.volatile {
            inputs.push(woven::Input {
                pointer: param.value,
                element,
                length,
            });
        }
    }
    let scalars = program.scalars.iter().zip(&launch.scalars);
    given.extend(scalars.map(|(scalar, &bits)| ArgumentSpec::Scalar(scalar.ty.ir(), bits)));
    let zero = || Fill::Pattern(Pattern::Constant(0));
    let written = woven::weave(&mut kernel, &mut random, inputs, program.groups, program.group);
    given.extend(written.map(|(element, length)| output(element, length, zero())));
    kernel.group_size = Some([program.group, 1, 1]);
    Workload {
        kernel: Arc::new(kernel),
        groups: [program.groups, 1, 1],
        group: [program.group, 1, 1],
        given,
        original: None,
        placed: None,
        divides: None,
    }
}

fn output(element: Type, length: u64, fill: Fill) -> ArgumentSpec {
    let compare = Compare::Bits;
    ArgumentSpec::output(element, length, fill, compare)
}

/// A random kernel.
pub fn random_kernel(seed: u64) -> Arc<Kernel> {
    random_workload(seed).kernel
}

/// Where a file differs from what was made; `HEADSTART_BLESS` writes it, and nothing differs.
///
/// # Panics
/// The file cannot be written.
pub fn difference(path: &Path, made: &str) -> Option<String> {
    if std::env::var_os("HEADSTART_BLESS").is_some() {
        std::fs::write(path, made).expect("it can be written");
        return None;
    }
    let there = std::fs::read_to_string(path).unwrap_or_default();
    let same = there
        .lines()
        .zip(made.lines())
        .take_while(|(a, b)| a == b)
        .count();
    let (a, b) = (there.lines().nth(same), made.lines().nth(same));
    (there != made).then(|| {
        let place = format!("{}:{}", path.display(), same + 1);
        format!("{place}: expected {a:?}, found {b:?}; HEADSTART_BLESS=1 makes it anew")
    })
}

/// Holds a file against what was made.
///
/// # Panics
/// They differ.
pub fn compare(path: &Path, made: &str) {
    assert_eq!(difference(path, made), None);
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
            let kernel = random_kernel(case);
            let text = ir::print(&kernel);
            ir::verify(&kernel).unwrap_or_else(|error| panic!("seed {case}: {error}\n{text}"));
            let again = ir::parse(&text, "printed").unwrap_or_else(|error| panic!("{error}\n{text}"));
            assert_eq!(ir::first_difference(&kernel, &again), None, "seed {case}\n{text}");
            assert_eq!(ir::print(&again), text, "seed {case}");
        }
    }

    #[test]
    fn a_seed_always_gives_the_same_kernel() {
        let print = || ir::print(&random_kernel(7));
        assert_eq!(print(), print());
    }

    #[test]
    fn plans_read_back() {
        let seed = base_seed();
        let mut random = Random::new(seed);
        for case in seed..seed + 100 {
            let kernel = random_kernel(case);
            let plan = random_plan(&mut random, &kernel);
            assert_eq!(plan.to_string().parse(), Ok(plan));
        }
    }
}
