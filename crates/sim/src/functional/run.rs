//! Running a launch: its work-groups in parallel, or in turns if one may see another's writes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rayon::iter::{IntoParallelIterator, ParallelIterator};

use super::needed::Wanted;
use super::options::Options;
use super::sample::are_there;
use super::schedule::Turns;
use super::state::{LaunchState, Traits};
use super::sub_group::{Observer, Unobserved};
use super::tape::Tape;
use super::work_group::Traffic;
use super::worker::Worker;
use crate::device::{Counters, Launch};
use crate::ir::Kernel;
use crate::{Error, Result};

/// A launch that takes less runs on one thread: waking others takes as long.
const WORTH_THREADS: Duration = Duration::from_micros(200);

/// A kernel, compiled for this engine.
#[derive(Debug)]
pub struct CompiledKernel {
    kernel: Arc<Kernel>,
    tape: Tape,
    traits: Traits,
}

/// Notes about a run, beside its results.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Messages {
    /// The printed lines: in the order of the work-items, each one's lines in its own.
    pub printed: String,
    /// Warnings for the kernel's author.
    pub notes: Vec<String>,
}

/// Which work-groups of a launch run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Groups {
    /// All.
    All,
    /// Every one, one after the other on one thread.
    OneByOne,
    /// These, by linear number.
    Some(Vec<u64>),
}

impl CompiledKernel {
    /// Compiles a verified kernel.
    pub fn new(kernel: Arc<Kernel>) -> CompiledKernel {
        let tape = Tape::new(&kernel);
        CompiledKernel::with(kernel, tape)
    }

    /// The same for those who count its steps, or note the addresses of its accesses: most of its arithmetic is left out, and
    /// the memory that it writes is undefined afterwards.
    pub(crate) fn only_for(wanted: Wanted, kernel: Arc<Kernel>) -> CompiledKernel {
        let tape = Tape::only_for(wanted, &kernel);
        CompiledKernel::with(kernel, tape)
    }

    fn with(kernel: Arc<Kernel>, tape: Tape) -> CompiledKernel {
        let traits = Traits::of(&kernel);
        CompiledKernel { kernel, tape, traits }
    }

    /// Binds a launch that has passed [`Launch::check`].
    ///
    /// # Errors
    /// As for [`LaunchState::new`].
    pub(super) fn bind<'l>(
        &'l self,
        launch: &'l Launch,
        sub_group_size: u32,
        options: Options,
    ) -> Result<LaunchState<'l>> {
        LaunchState::of(&self.kernel, &self.traits, launch, sub_group_size, options)
    }

    pub(super) fn tape(&self) -> &Tape {
        &self.tape
    }

    /// Whether its sub-groups wait for each other.
    pub(crate) fn has_barriers(&self) -> bool {
        self.tape.has_barriers
    }

    /// The kernel.
    pub fn kernel(&self) -> &Arc<Kernel> {
        &self.kernel
    }

    /// Whether a work-group may wait for another, so that it matters how many are resident at once.
    #[doc(hidden)]
    pub fn may_wait_for_others(&self) -> bool {
        self.traits.may_spin && self.traits.in_order
    }

    /// Runs a launch that has passed [`Launch::check`]. Work-groups run in parallel, or on one thread if one may see another's
    /// writes; result, counters and error are the same on any number of threads (in fast mode, for kernels without races).
    ///
    /// # Errors
    /// That of the first work-group, by number, in which a check failed; then a race between groups. Where they run on
    /// one thread, the first error that comes.
    pub fn run(
        &self,
        launch: &Launch,
        sub_group_size: u32,
        options: Options,
        groups: &Groups,
    ) -> Result<Counters> {
        let ran = self.run_observed(
            launch,
            sub_group_size,
            options,
            groups,
            &|_| Unobserved,
            &|_, _| {},
        )?;
        Ok(ran.0)
    }

    /// As [`CompiledKernel::run`], with notes about the run.
    ///
    /// # Errors
    /// As [`CompiledKernel::run`].
    pub fn run_telling(
        &self,
        launch: &Launch,
        sub_group_size: u32,
        options: Options,
        groups: &Groups,
    ) -> Result<(Counters, Messages)> {
        let (begin, end) = (&|_| Unobserved, &|_, _| {});
        self.run_observed(launch, sub_group_size, options, groups, begin, end)
    }

    /// As [`CompiledKernel::run`], with an observer for each work-group: `begin` makes it, `end` gets it
    /// back if the work-group ended well.
    #[doc(hidden)]
    pub fn run_observed<O: Observer>(
        &self,
        launch: &Launch,
        sub_group_size: u32,
        options: Options,
        groups: &Groups,
        begin: &(impl Fn(u64) -> O + Sync),
        end: &(impl Fn(u64, O) + Sync),
    ) -> Result<(Counters, Messages)> {
        let state = self.bind(launch, sub_group_size, options)?;
        let totals = Totals::default();
        if let Groups::Some(numbers) = groups {
            are_there(launch, numbers)?;
        }
        let run = |worker: &mut Option<_>, number| {
            let mut observer = begin(number);
            let error = run_group(worker, &state, &self.tape, number, &mut observer, &totals);
            if error.is_none() {
                end(number, observer);
            }
            error
        };
        let error = if state.in_order {
            let mut turns = Turns::new(&state, &self.tape, begin, end, &totals);
            let ran = match groups {
                Groups::All | Groups::OneByOne => turns.run(0..launch.group_count(), launch.group_count()),
                Groups::Some(numbers) => turns.run(numbers.iter().copied(), numbers.len() as u64),
            };
            ran.err()
        } else {
            let (count, numbers) = match groups {
                Groups::All | Groups::OneByOne => (launch.group_count(), None),
                Groups::Some(numbers) => (numbers.len() as u64, Some(numbers)),
            };
            let number = |at: u64| numbers.map_or(at, |numbers| numbers[at as usize]);
            let started = Instant::now();
            let (mut worker, mut error, mut next) = (None, None, 0);
            while error.is_none()
                && next < count
                && (*groups == Groups::OneByOne || started.elapsed() < WORTH_THREADS)
            {
                error = run(&mut worker, number(next));
                next += 1;
            }
            error.or_else(|| {
                let rest = (next..count).into_par_iter().map(number);
                rest.map_init(|| None, run).find_map_first(|error| error)
            })
        };
        match error {
            Some(error) => Err(error),
            None => state.finish().map(|()| {
                let told = Messages {
                    printed: state.printed.text(),
                    notes: state.notes(),
                };
                (totals.counters(), told)
            }),
        }
    }
}

/// Runs a work-group, in a new worker if there is none yet; gives its error, if any.
pub(super) fn run_group<'l>(
    worker: &mut Option<Worker<'l>>,
    state: &'l LaunchState<'l>,
    tape: &'l Tape,
    number: u64,
    observer: &mut impl Observer,
    totals: &Totals,
) -> Option<Error> {
    let worker = match worker {
        Some(worker) => worker,
        None => match Worker::new(state, tape) {
            Ok(new) => worker.insert(new),
            Err(error) => return Some(error),
        },
    };
    worker.run(number, observer, totals).err()
}

/// The combined results of all work-groups.
#[derive(Default)]
pub(super) struct Totals {
    steps: AtomicU64,
    operations: AtomicU64,
    loaded_bytes: AtomicU64,
    stored_bytes: AtomicU64,
}

impl Totals {
    /// Adds the results of a work-group that has ended.
    pub(crate) fn add(&self, steps: u64, operations: u64, traffic: Traffic) {
        self.steps.fetch_add(steps, Ordering::Relaxed);
        self.operations.fetch_add(operations, Ordering::Relaxed);
        self.loaded_bytes
            .fetch_add(traffic.loaded_bytes, Ordering::Relaxed);
        self.stored_bytes
            .fetch_add(traffic.stored_bytes, Ordering::Relaxed);
    }

    /// Steps that sub-groups took.
    pub(crate) fn steps(&self) -> u64 {
        self.steps.load(Ordering::Relaxed)
    }

    pub(crate) fn counters(&self) -> Counters {
        let mut counters = Counters::default();
        counters.add(Counters::OPERATIONS, self.operations.load(Ordering::Relaxed));
        counters.add(Counters::LOADED_BYTES, self.loaded_bytes.load(Ordering::Relaxed));
        counters.add(Counters::STORED_BYTES, self.stored_bytes.load(Ordering::Relaxed));
        counters
    }
}
