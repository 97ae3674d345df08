//! Benches: where plans are checked and timed, and the result of a timed run.
//!
//! | trait | of |
//! |---|---|
//! | [`Bench`] | every device: it times kernels |
//! | [`Platform`] | every device: what is known of it without a run |
//! | [`Simulates`] | a simulator: samples, races, first looks |
//! | [`Judge`] | a device that checks plans itself |
//! | [`Adjustable`] | a device with settings beside the plan |
//!
//! A bench of each kind of device is in a folder of [`kinds`]; [`several`] are benches of one kind side by side.

pub mod kinds;
mod resources;
pub(super) mod several;

pub(in crate::tune) use resources::REGISTERS_AT_A_TIME;
pub use resources::{Choices, Held, Pressure};

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::back::machine::MachineProgram;
use crate::device::Device;
use crate::device::sim::functional::Options;
use crate::device::sim::timer::{Behind, Course, Pace, StallReason};
use crate::error::{Error, Result};
use crate::evidence::{Evidence, Profile, Timeline};
use crate::front::ptx::Assembler;
use crate::ir::{CacheLevel, Kernel};
use crate::model::DeviceModel;
use crate::model::hint::HintReached;
use crate::prefetch;
use crate::report::{AtFullSize, Outputs, Taken};
use crate::tune::subject::workload::{Bound, Workload};

/// A device on which plans are timed. What it can do besides has a trait of its own.
pub trait Bench: Sync {
    /// What it is.
    fn platform(&self) -> &dyn Platform;

    /// The device for the data of checks, and for running them: the simulator's functional engine.
    fn device(&self) -> &dyn Device {
        self.platform().device()
    }

    /// Times one run of a kernel with a workload's parameters.
    ///
    /// # Errors
    /// The device cannot run the kernel, or running it went wrong.
    fn time(&self, bound: &Bound, kernel: &Arc<Kernel>) -> Result<Timed>;

    /// The nanoseconds of one run; none where it surely takes more than `limit_ns`. The explanation of the time is left out if
    /// it costs more than the time.
    ///
    /// # Errors
    /// As those of [`Bench::time`].
    fn time_within(&self, bound: &Bound, kernel: &Arc<Kernel>, limit_ns: f64) -> Result<Option<f64>>;

    /// Times kernels against each other, the plain one first, and compares the outputs of each with the reference: the unmodified
    /// kernel's outputs on the device if it is a [`Judge`], and else the simulator's results for all of the launch. The outcome
    /// of each, in order.
    ///
    /// # Errors
    /// None of them can be run: the data do not fit the device, or the plain kernel goes wrong.
    fn time_in_turns(&self, bound: &Bound, kernels: &[Arc<Kernel>]) -> Result<Vec<Result<(Timed, Outputs)>>>;

    /// How many plans are timed in turns with the plain kernel when each result is logged as soon as it is known: one a device.
    fn kept_at_a_time(&self) -> usize {
        1
    }

    /// Times kernels and looks into them, the first `watched` of them moment by moment. Empty where the device cannot be looked
    /// into.
    ///
    /// # Errors
    /// As those of [`Bench::time`].
    fn look(&self, bound: &Bound, kernels: &[Arc<Kernel>], watched: usize) -> Result<Vec<Looked>>;

    /// Its simulator, where times are those of a model. Then several kernels may be timed at once, each alone. A device's clock
    /// drifts: there they are timed [in turns](Bench::time_in_turns).
    fn simulator(&self) -> Option<&dyn Simulates> {
        None
    }

    /// What checks plans, where the device does: it runs the user's own kernel, and compares the plans' outputs with that one's.
    /// A search on such a device waits for no simulation.
    fn judge(&self) -> Option<&dyn Judge> {
        None
    }

    /// What can be chosen on it beside the plan.
    fn adjustable(&self) -> Option<&dyn Adjustable> {
        None
    }
}

/// What is known of a device without a run.
pub trait Platform: Sync {
    /// The device for the data of checks, and for running them: the simulator's functional engine.
    fn device(&self) -> &dyn Device;

    /// Everything that its times depend on, for the log: its name, its driver or its model.
    fn identity(&self) -> String;

    /// The device's properties that the passes need.
    fn target(&self) -> prefetch::PlanTarget;

    /// The cache levels that the device tells apart, by the names that plans give them.
    fn levels(&self) -> Vec<CacheLevel>;

    /// The functional engine's checks.
    fn engine_options(&self) -> Options;

    /// The effect of each prefetch of a kernel.
    fn prefetches(&self, kernel: &Kernel) -> Vec<HintReached>;

    /// The 32-bit registers of a core, where its work-items share them.
    fn registers_per_core(&self) -> Option<u32>;

    /// What a kernel takes of a core in a launch, by each account that there is, the same for all kernels. None where nothing
    /// tells.
    ///
    /// # Errors
    /// The kernel cannot be compiled, or does not fit a core.
    fn held(&self, workload: &Workload, kernel: &Kernel) -> Result<Option<Vec<Held>>>;
}

impl dyn Platform + '_ {
    /// The properties that the passes need, for a workload.
    pub(crate) fn target_for(&self, workload: &Workload) -> prefetch::PlanTarget {
        prefetch::PlanTarget {
            group_size: Some(workload.group),
            ..self.target()
        }
    }
}

/// A bench whose times are those of a model.
pub trait Simulates: Sync {
    /// The model.
    fn model(&self) -> &DeviceModel;

    /// As [`Bench::time`], from a sample of this many cores, where a sample stands for all of them and its size is its own choice:
    /// numbers that are compared have the same sample.
    ///
    /// # Errors
    /// As those of [`Bench::time`].
    fn time_sampled(&self, bound: &Bound, kernel: &Arc<Kernel>, cores: u32) -> Result<Timed>;

    /// As [`Bench::time`], of a kernel that is compared with others; one that is surely behind may be given up.
    ///
    /// # Errors
    /// As those of [`Bench::time`].
    fn race(&self, bound: &Bound, kernel: &Arc<Kernel>, pace: &Pace) -> Result<Raced>;

    /// A first time of a kernel, from less than what [`Simulates::race`] takes, where that is much less; none elsewhere.
    ///
    /// # Errors
    /// As those of [`Bench::time`].
    fn soon(&self, bound: &Bound, kernel: &Arc<Kernel>) -> Result<Option<Timed>>;
}

/// A device that checks plans itself, in runs of the user's own kernel and theirs.
pub trait Judge: Sync {
    /// Whether a plan leaves what the kernel as it is leaves in another launch of it.
    ///
    /// # Errors
    /// The device is lost.
    fn judge(&self, launch: &Workload, plan: &Arc<Kernel>) -> Result<Judged>;

    /// A kernel's outputs for a workload; none if its launch has none that are compared.
    ///
    /// # Errors
    /// The device cannot run the kernel, or running it went wrong.
    fn outputs_of(&self, workload: &Workload, kernel: &Arc<Kernel>) -> Result<Option<Vec<Vec<u8>>>>;

    /// The driver's assembler of PTX, which makes the machine code that is run.
    fn assembler(&self) -> Option<Assembler>;

    /// The reference for outputs at full size, once there were some.
    fn at_full_size(&self) -> Option<AtFullSize>;

    /// The simulator's account of a kernel's time: bytes moved, and where the time goes. None where no model of the device is
    /// known, or the simulator needs more time than `patience`.
    fn explain(&self, bound: &Bound, kernel: &Arc<Kernel>, patience: Duration) -> Option<Explanation>;
}

/// A device with settings that are chosen beside the plan: see [`launch_settings`](mod@crate::tune::launch_settings).
pub trait Adjustable: Sync {
    /// The settings.
    fn choices(&self) -> Choices;

    /// The same device where each sub-group has the large register file.
    ///
    /// # Errors
    /// It has none, or does not let a kernel be built for it.
    fn with_large_registers(&self) -> Result<Box<dyn Bench>>;

    /// The registers of a work-item that a kernel's code takes; none if unknown.
    ///
    /// # Errors
    /// The kernel is too large.
    fn pressure(&self, bound: &Bound, kernel: &Arc<Kernel>) -> Result<Option<Pressure>>;
}

/// A timed run.
#[derive(Clone, Debug)]
pub struct Timed {
    /// Its time, in nanoseconds.
    pub time_ns: f64,
    /// The quartiles of a measured time, in nanoseconds; of a simulated sample of work-groups, how far the time of all may lie
    /// from this. None where the model leaves nothing to chance.
    pub interval_ns: Option<(f64, f64)>,
    /// The cores that stand for all, where the size of that sample follows from what it shows.
    pub sampled: Option<u32>,
    /// What it takes of a core.
    pub takes: Option<Taken>,
    /// What its speedup may be off by.
    pub spread: Spread,
    /// Its information about the kernel.
    pub evidence: Evidence,
    /// Where the time goes, by line of the source, where the device tells.
    pub profile: Option<Profile>,
    /// The device's counters, in words, with unit and value.
    pub counted: Vec<(&'static str, &'static str, f64)>,
    /// How the time was found, in a sentence.
    pub note: String,
    /// Its outputs, where everything was computed.
    pub outputs: Option<Vec<Vec<u8>>>,
}

/// What tells how far the speedup of a run may be off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Spread {
    /// The model's known errors, and those of a first look.
    Simulated {
        /// The part by which the speedup may be off as a first look.
        off: Option<f64>,
    },
    /// Nothing does: the run was ended early.
    Cut,
    /// The launches'.
    Measured {
        /// The least and the greatest speedup over the plain kernel in a round, where both were launched in turns.
        paired: Option<(f64, f64)>,
    },
}

/// What the simulator says of a measured launch.
#[derive(Clone, Debug, Default)]
pub struct Explanation {
    /// Its own run of the kernel; none where that took too long.
    pub simulated: Option<Timed>,
    /// Why the launch says nothing of the kernel, a sentence each.
    pub(crate) warnings: Vec<String>,
}

impl Timed {
    /// The same, no faster than device memory delivers its bytes: a time from little of a launch may be.
    pub(super) fn within_bandwidth(mut self) -> Timed {
        let beyond = self.evidence.bandwidth_used().unwrap_or(1.0).max(1.0);
        self.time_ns += (beyond - 1.0) * self.evidence.time_ns;
        self.evidence.time_ns *= beyond;
        let rates = self.counted.iter_mut().filter(|(_, unit, _)| *unit == "GB/s");
        rates.for_each(|(.., rate)| *rate /= beyond);
        self
    }

    /// Adds the simulator's counters to a measured time.
    pub(super) fn explained_by(&mut self, simulated: &Timed) {
        let Evidence {
            memory_bytes,
            scattered_bandwidth,
            waiting_for_loads,
            issued,
            ..
        } = simulated.evidence;
        self.evidence = Evidence {
            memory_bytes,
            scattered_bandwidth,
            waiting_for_loads,
            issued,
            ..self.evidence.clone()
        };
        self.profile.clone_from(&simulated.profile);
        if let Some(delivered) = self.evidence.delivered() {
            self.counted.push((
                "device memory throughput, in bytes that the simulator counts",
                "GB/s",
                delivered,
            ));
        }
    }
}

/// What a device says of a plan in a launch.
#[derive(Clone, Debug)]
pub enum Judged {
    /// It leaves the same as the kernel as it is.
    Same,
    /// It leaves something else, or goes wrong: how.
    Different(Error),
    /// The kernel as it is faults, does not end, or leaves nothing that can be compared; or the device cannot launch it so.
    NotComparable,
}

/// A kernel that was looked into.
#[derive(Clone, Debug)]
pub struct Looked {
    /// Its time, and where that goes.
    pub timed: Timed,
    /// The activity of some of its sub-groups in the middle of the launch, if they were watched.
    pub(crate) timeline: Option<Timeline>,
    /// Its instructions.
    pub program: Option<Arc<MachineProgram>>,
    /// The text for NVIDIA's compiler, if the device is one of NVIDIA's.
    pub ptx: Option<String>,
    /// The part of the resident sub-groups' time that waiting at each instruction takes, in the order of
    /// [`StallReason::ALL`].
    pub waited: Vec<[f64; StallReason::ALL.len()]>,
}

/// The outcome of a run that was compared with others.
#[derive(Clone, Debug)]
pub enum Raced {
    /// It ran to its end, and how far it had come by then at each time, where that is known.
    Ended(Box<Timed>, Option<Course>),
    /// It was given up.
    Behind(Behind),
}

/// The answer for the last kernel: a search queries plan by plan, and its plain kernel stays the same. `K` is the rest of the
/// key.
pub(super) struct Last<T, K = ()> {
    found: Mutex<Option<(Arc<Kernel>, K, T)>>,
}

impl<T, K> Default for Last<T, K> {
    fn default() -> Self {
        Last {
            found: Mutex::new(None),
        }
    }
}

impl<T: Clone, K: PartialEq> Last<T, K> {
    /// The answer for exactly this kernel, not for an equal one.
    pub(super) fn known(&self, kernel: &Arc<Kernel>, besides: &K) -> Option<T> {
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        known(found.as_ref(), kernel, besides)
    }

    /// The answer for this kernel if known, otherwise the result of `find`; concurrent queries wait for it.
    ///
    /// # Errors
    /// Those of `find`; then nothing is kept.
    pub(crate) fn known_or(
        &self,
        kernel: &Arc<Kernel>,
        besides: K,
        find: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(answer) = known(found.as_ref(), kernel, &besides) {
            return Ok(answer);
        }
        let answer = find()?;
        *found = Some((Arc::clone(kernel), besides, answer.clone()));
        Ok(answer)
    }
}

fn known<T: Clone, K: PartialEq>(
    found: Option<&(Arc<Kernel>, K, T)>,
    kernel: &Arc<Kernel>,
    besides: &K,
) -> Option<T> {
    let (known, under, answer) = found?;
    (Arc::ptr_eq(known, kernel) && under == besides).then(|| answer.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    #[test]
    fn the_last_answer_is_for_that_kernel_and_under_that_condition() {
        let (one, same) = (Arc::new(Kernel::new("k")), Arc::new(Kernel::new("k")));
        let last: Last<u32, bool> = Last::default();
        assert_eq!(last.known(&one, &true), None);
        assert!(
            last.known_or(&one, true, || Err(Error::bug("not found")))
                .is_err()
        );
        assert_eq!(last.known(&one, &true), None);
        assert_eq!(last.known_or(&one, true, || Ok(1)).expect("found"), 1);
        assert_eq!(last.known_or(&one, true, || Ok(2)).expect("known"), 1);
        assert_eq!(last.known(&one, &false), None);
        assert_eq!(last.known(&same, &true), None);
        assert_eq!(last.known_or(&same, true, || Ok(3)).expect("found"), 3);
        assert_eq!(
            (last.known(&one, &true), last.known(&same, &true)),
            (None, Some(3))
        );
    }
}
