//! Running a launch: its work-groups in parallel, each from barrier to barrier.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rayon::iter::{IntoParallelIterator, IntoParallelRefIterator, ParallelIterator};

use super::state::{LaunchState, Options};
use super::sub_group::{Observer, Runner, Stop, Unobserved};
use super::tape::Tape;
use super::work_group::WorkGroup;
use crate::device::{Counters, Launch};
use crate::ir::Kernel;
use crate::{Error, Result};

/// A kernel, compiled for this engine.
#[derive(Debug)]
pub struct CompiledKernel {
    kernel: Arc<Kernel>,
    tape: Tape,
}

/// What there is to say of a run, beside its results.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// What was printed: in the order of the work-items, each one's lines in its own.
    pub printed: String,
    /// What the kernel's author should know, though it is no error.
    pub notes: Vec<String>,
}

/// Which work-groups of a launch run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Groups {
    /// All.
    All,
    /// These, by linear number.
    Some(Vec<u64>),
}

impl CompiledKernel {
    /// Compiles a verified kernel.
    pub fn new(kernel: Arc<Kernel>) -> CompiledKernel {
        let tape = Tape::new(&kernel);
        CompiledKernel { kernel, tape }
    }

    pub(super) fn tape(&self) -> &Tape {
        &self.tape
    }

    /// The kernel.
    pub fn kernel(&self) -> &Arc<Kernel> {
        &self.kernel
    }

    /// Runs a launch that has passed [`Launch::check`]. Work-groups run in parallel; result, counters and
    /// error are the same on any number of threads (in fast mode, for kernels without races).
    ///
    /// # Errors
    /// That of the first work-group, by number, in which a check failed; then a race between groups.
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

    /// As [`CompiledKernel::run`], with what there is to say of the run.
    ///
    /// # Errors
    /// As [`CompiledKernel::run`].
    pub fn run_telling(
        &self,
        launch: &Launch,
        sub_group_size: u32,
        options: Options,
        groups: &Groups,
    ) -> Result<(Counters, Told)> {
        let (begin, end) = (&|_| Unobserved, &|_, _| {});
        self.run_observed(launch, sub_group_size, options, groups, begin, end)
    }

    /// As [`CompiledKernel::run`], with an observer for each work-group: `begin` makes it, `end` gets it
    /// back if the work-group ended well.
    pub(crate) fn run_observed<O: Observer>(
        &self,
        launch: &Launch,
        sub_group_size: u32,
        options: Options,
        groups: &Groups,
        begin: &(impl Fn(u64) -> O + Sync),
        end: &(impl Fn(u64, O) + Sync),
    ) -> Result<(Counters, Told)> {
        let state = LaunchState::new(&self.kernel, launch, sub_group_size, options)?;
        let totals = Totals::default();
        let run = |worker: &mut Option<_>, number| {
            let mut observer = begin(number);
            let error = run_group(worker, &state, &self.tape, number, &mut observer, &totals);
            if error.is_none() {
                end(number, observer);
            }
            error
        };
        let error = match groups {
            // One work-group needs no other thread.
            Groups::All if state.in_order || launch.group_count() == 1 => {
                let mut worker = None;
                (0..launch.group_count()).find_map(|number| run(&mut worker, number))
            }
            Groups::All => (0..launch.group_count())
                .into_par_iter()
                .map_init(|| None, run)
                .find_map_first(|error| error),
            Groups::Some(numbers) => {
                if let Some(number) = numbers.iter().find(|&&number| number >= launch.group_count()) {
                    return Err(Error::usage(format!("there is no work-group {number}"))
                        .accepted(format!("the launch has {}", launch.group_count())));
                }
                if state.in_order {
                    let mut worker = None;
                    numbers.iter().find_map(|&number| run(&mut worker, number))
                } else {
                    let numbers = numbers.par_iter().copied();
                    numbers.map_init(|| None, run).find_map_first(|error| error)
                }
            }
        };
        match error {
            Some(error) => Err(error),
            None => state.finish().map(|()| {
                let told = Told {
                    printed: state.printed.text(),
                    notes: state.notes(),
                };
                (totals.counters(), told)
            }),
        }
    }
}

/// Runs a work-group, in a new worker if there is none yet; what went wrong, if anything did.
fn run_group<'l>(
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

#[derive(Default)]
struct Totals {
    operations: AtomicU64,
    loaded_bytes: AtomicU64,
    stored_bytes: AtomicU64,
}

impl Totals {
    fn counters(&self) -> Counters {
        let mut counters = Counters::default();
        counters.add(Counters::OPERATIONS, self.operations.load(Ordering::Relaxed));
        counters.add(Counters::LOADED_BYTES, self.loaded_bytes.load(Ordering::Relaxed));
        counters.add(Counters::STORED_BYTES, self.stored_bytes.load(Ordering::Relaxed));
        counters
    }
}

/// One thread's work-group and sub-groups, used again and again.
struct Worker<'l> {
    state: &'l LaunchState<'l>,
    tape: &'l Tape,
    group: WorkGroup<'l>,
    /// One for each sub-group where there are barriers; else one for all.
    runners: Vec<Runner>,
    limit: u64,
}

impl<'l> Worker<'l> {
    fn new(state: &'l LaunchState<'l>, tape: &'l Tape) -> Result<Worker<'l>> {
        let group = WorkGroup::new(state)?;
        let count = if tape.has_barriers { state.sub_groups() } else { 1 };
        let runners = (0..count)
            .map(|number| Runner::new(tape, group.sub_group(number), state.arguments()))
            .collect();
        Ok(Worker {
            state,
            tape,
            group,
            runners,
            limit: state
                .launch
                .operation_limit
                .unwrap_or(state.options.operation_limit),
        })
    }

    fn run(&mut self, number: u64, observer: &mut impl Observer, totals: &Totals) -> Result<()> {
        self.group.begin(number);
        let operations = match self.tape.has_barriers {
            true => self.run_together(observer)?,
            false => self.run_one_by_one(observer)?,
        };
        self.group.end()?;
        let traffic = self.group.traffic;
        totals.operations.fetch_add(operations, Ordering::Relaxed);
        totals
            .loaded_bytes
            .fetch_add(traffic.loaded_bytes, Ordering::Relaxed);
        totals
            .stored_bytes
            .fetch_add(traffic.stored_bytes, Ordering::Relaxed);
        Ok(())
    }

    fn run_one_by_one(&mut self, observer: &mut impl Observer) -> Result<u64> {
        let mut operations = 0;
        for number in 0..self.state.sub_groups() {
            for runner in &mut self.runners {
                runner.begin(self.group.sub_group(number));
                runner.run(self.tape, &mut self.group, self.limit, observer)?;
                operations += runner.operations;
            }
        }
        Ok(operations)
    }

    /// Runs every sub-group that can run to its next barrier, again and again, until all have ended.
    fn run_together(&mut self, observer: &mut impl Observer) -> Result<u64> {
        for (runner, number) in self.runners.iter_mut().zip(0..) {
            runner.begin(self.group.sub_group(number));
        }
        // Where each stands; none can run.
        let mut stops: Vec<Option<Stop>> = vec![None; self.runners.len()];
        loop {
            for (runner, stop) in self.runners.iter_mut().zip(&mut stops) {
                if stop.is_none() {
                    *stop = Some(runner.run(self.tape, &mut self.group, self.limit, observer)?);
                }
            }
            if self.meet(&mut stops)? {
                continue;
            }
            let Some(first) = self.at_barrier(&stops)? else {
                return Ok(self.runners.iter().map(|runner| runner.operations).sum());
            };
            if let Stop::Barrier {
                named: Some((number, wanted)),
                place,
                ..
            } = first.1
            {
                return Err(self.group.lonely_meeting(first.0, number, wanted, place));
            }
            for stop in &mut stops {
                if matches!(stop, Some(Stop::Barrier { .. })) {
                    *stop = None;
                }
            }
            self.group.barrier();
        }
    }

    /// Lets those go on who have met at a named barrier; whether any have.
    fn meet(&mut self, stops: &mut [Option<Stop>]) -> Result<bool> {
        let mut waiting: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        let named = |stop: &Option<Stop>| match stop {
            Some(Stop::Barrier {
                named: Some(named),
                place,
                ..
            }) => Some((*named, *place)),
            _ => None,
        };
        for (index, stop) in stops.iter().enumerate() {
            if let Some(((number, _), _)) = named(stop) {
                waiting.entry(number).or_default().push(index);
            }
        }
        let mut any = false;
        for (number, members) in waiting {
            let Some(((_, wanted), place)) = members.first().and_then(|&member| named(&stops[member])) else {
                continue;
            };
            let item = |member: usize| self.runners[member].sub_group.work_item(0);
            let differs =
                |&&member: &&usize| named(&stops[member]).is_some_and(|((_, other), _)| other != wanted);
            if let Some(&member) = members.iter().find(differs) {
                return Err(self
                    .group
                    .different_meetings(item(member), item(members[0]), number, place));
            }
            if members.len() < wanted as usize {
                continue;
            }
            // The first to come are those with the lowest numbers: they run in this order.
            let members = &members[..wanted as usize];
            for &member in members {
                stops[member] = None;
            }
            let met = members.iter().map(|&member| {
                let sub_group = &self.runners[member].sub_group;
                (sub_group.clone(), sub_group.mask())
            });
            self.group.met(&met.collect::<Vec<_>>());
            any = true;
        }
        Ok(any)
    }

    /// Somebody who waits at a barrier, if anybody does; at a named one if any.
    fn at_barrier(&self, stops: &[Option<Stop>]) -> Result<Option<(u32, Stop)>> {
        let mut found: Option<(u32, Stop)> = None;
        for (runner, stop) in self.runners.iter().zip(stops) {
            let Some(stop @ Stop::Barrier { step, place, named }) = *stop else {
                continue;
            };
            let item = runner.sub_group.work_item(0);
            if named.is_some() {
                return Ok(Some((item, stop)));
            }
            match found {
                Some((
                    first,
                    Stop::Barrier {
                        step: other,
                        place: there,
                        ..
                    },
                )) if other != step => {
                    return Err(self.group.different_barriers(item, place, first, there));
                }
                Some(_) => {}
                None => found = Some((item, stop)),
            }
        }
        Ok(found)
    }
}
