//! The host's side: queues, transfers, allocations, contexts, compilation, several devices, printing. Each technique is a
//! short program in the ways that one would write it, for `results/host.md`, and each way is measured by
//! `headstart-lab bench --suite host`, on a GPU or on the simulator.
//!
//! A variant prepares, does its work inside [`Host::measure`], and checks the result.

pub mod access;
pub mod allocations;
pub mod buffers;
pub mod compilation;
pub mod constants;
pub mod contexts;
pub mod devices;
mod meter;
pub mod overlap;
pub mod printing;
pub mod queues;
pub mod sums;

use headstart::prelude::*;
use headstart::{Error, Result};

pub use meter::{Counting, Host, Taken};

/// Something that a host can do in several ways, as its page shows it.
#[derive(Clone, Copy, Debug)]
pub struct Technique {
    /// Its anchor in `results/host.md`, and its name on the command line.
    pub page: &'static str,
    /// Its heading.
    pub title: &'static str,
    /// Its subject, and how to read the numbers: a paragraph each.
    pub text: [&'static str; 2],
    /// The ways, the plain one first.
    pub ways: &'static [TechniqueVariant],
}

/// A way to do it.
#[derive(Clone, Copy, Debug)]
pub struct TechniqueVariant {
    /// Its difference from the others.
    pub name: &'static str,
    /// Does it once.
    pub run: fn(&Host) -> Result<Ran>,
}

/// A variant of this name.
const fn variant(name: &'static str, run: fn(&Host) -> Result<Ran>) -> TechniqueVariant {
    TechniqueVariant { name, run }
}

/// The result of a successful variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ran {
    /// It was measured, and its results are right.
    Measured,
    /// This machine cannot run it.
    LeftOut(&'static str),
}

/// All of them, in the order of the pages.
pub static TECHNIQUES: [&Technique; 11] = [
    &queues::TECHNIQUE,
    &overlap::TECHNIQUE,
    &buffers::TECHNIQUE,
    &access::TECHNIQUE,
    &allocations::TECHNIQUE,
    &sums::TECHNIQUE,
    &contexts::TECHNIQUE,
    &compilation::TECHNIQUE,
    &constants::TECHNIQUE,
    &devices::TECHNIQUE,
    &printing::TECHNIQUE,
];

/// Work-items of a work-group, everywhere here.
const GROUP: u32 = 256;

/// The modulus of a Lehmer generator: 2³¹ − 1.
const MODULUS: u64 = 0x7fff_ffff;

/// A generator of random numbers for each element, `rounds` steps on: a kernel that computes for about as long as its
/// data take over the link.
#[kernel]
pub fn steps_on(states: &mut [u32], rounds: u32, modulus: u64) {
    let mut state = states[global_id()] as u64;
    for _ in 0..rounds {
        state = state * 48271 % modulus;
    }
    states[global_id()] = state as u32;
}

/// The next state by [`steps_on`].
fn stepped(state: u32, rounds: u32) -> u32 {
    (0..rounds).fold(u64::from(state), |state, _| state * 48271 % MODULUS) as u32
}

/// States to start from, others for each block.
fn states(block: u32, count: u64) -> Vec<u32> {
    (0..count).map(|i| 1 + block + i as u32).collect()
}

/// A launch with a work-item for each of this many elements.
fn over(elements: u64) -> Geometry {
    Geometry::new((elements / u64::from(GROUP)) as u32, GROUP)
}

/// Checks a result at the ends and some places between.
fn check(found: &[u32], expected: impl Fn(usize) -> u32) -> Result<Ran> {
    let places = (0..found.len())
        .step_by((found.len() / 64).max(1))
        .chain(found.len().checked_sub(1));
    for at in places {
        if found[at] != expected(at) {
            return Err(Error::bug(format!(
                "element {at} of a technique's result is {}, not {}",
                found[at],
                expected(at)
            )));
        }
    }
    Ok(Ran::Measured)
}
