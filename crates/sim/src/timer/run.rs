//! Running a launch: which cores are simulated, and how their results extend to all of them.

use std::sync::Arc;

use super::code::Code;
use super::core::{Core, Shared};
use super::pace::{Behind, Course, Follower, Pace};
use super::part::Part;
use super::simulated::{Queue, Simulated, summary};
use super::stalls::{InstructionProfile, Watch};
use super::standstill::Standstill;
use super::survey::{Chosen, Survey};
use super::{Cores, Raced, Timer};
use crate::analysis::waits::waits;
use crate::device::{CacheState, Launch};
use crate::functional::{BufferMemory, LaunchState, Options, PrefetchBounds};
use crate::home::Home;
use crate::ir::effects::{Access, Memory};
use crate::ir::{Kernel, Space};
use crate::memory::{
    Compressible, Contents, Extent, MemorySystem, Placement, Reuse, WithHost, may_stay_in_l2, parts,
    stays_in_l2,
};
use crate::model::DeviceModel;
use crate::model::occupancy::{Footprint, Occupancy};
use crate::{Error, Result};

/// Cores run in turns of this many cycles. Accesses of different cores reach the memory hierarchy out of
/// order by as much at most.
const TURN: u64 = 16;

/// Sub-groups that a sample has at least, in all its cores: few sub-groups hide nothing of each other's
/// bursts, and the share of the memory of one core alone serves a burst more slowly than the whole does.
const SUB_GROUPS_OF_A_SAMPLE: u32 = 16;

/// The same where the code is larger than the near instruction cache. Whether the sub-groups of a core stay together
/// and share the lines that they bring is chance then, and the launch ends with the core that had none. (`gather` under
/// `unroll:16,values=rolling-registers:16`, 81 KiB: 449 µs by 4 cores, 538 by 12 or more; 481 to 505 on two H200s.)
const SUB_GROUPS_OF_LARGE_CODE: u32 = 64;

/// Cores of the smallest sample, whose times tell whether work-groups are alike.
const LEAST_CORES: u32 = 2;

/// If cores of a sample have equal work up to this fraction, but not equal times, the difference is chance: the order in which
/// sub-groups find code and data in the caches. [`CORES_TO_AVERAGE`] cores show that, too.
pub(super) const SAME_WORK: f64 = 0.01;

/// Cores of a sample that averages over chance.
pub(super) const CORES_TO_AVERAGE: u32 = 16;

/// Cores of a sample whose work-groups stand for others that differ. (Of 15 launches, each with three choices of work-groups, 16
/// cores take up to 6.5 % less and 6.2 % more time than all, 2.4 % off on average; 8 up to 9 %.)
pub(super) const CORES_OF_STRATA: u32 = 16;

/// Steps of work-groups that stand for others that differ, where these are many, and the rounds of resident ones that are
/// simulated however long that takes; by choice, some seconds.
pub(super) const WHILE: f64 = 1e7;
pub(super) const LEAST_ROUNDS: f64 = 2.0;

/// Steps of the work-groups that give a first time, and the most cores that have them; by choice, a second. A sample that takes
/// less than twice as long is simulated instead.
pub(super) const SOON: f64 = 1e6;
const MOST_CORES_OF_FEW: u32 = 4;

/// Steps of a launch of which all cores are simulated where they differ by chance: timing all of them takes a second then.
pub(super) const SHORT: f64 = 3e6;

/// See [`Job::rounds`].
const ROUNDS: u64 = 6;

/// Groups of lines of a buffer that are looked at to find out how it can be compressed.
const LOOKED_AT: u64 = 256;

/// A launch on a model, and the facts found about it.
pub(super) struct Job<'l> {
    pub model: &'l DeviceModel,
    pub code: &'l Code,
    launch: &'l Launch,
    state: &'l LaunchState<'l>,
    pub occupancy: &'l Occupancy,
    /// Cores that have work-groups.
    pub busy: u32,
    /// Work-groups that such a core holds at once.
    pub places: u32,
    /// L2's initial contents.
    contents: Contents,
    /// Whether the launch touches more than L2 holds.
    overflows: bool,
    /// Whether L2 has what a launch like it has left there.
    is_kept: bool,
    /// How often cores find lines that others brought, if it is known.
    reuse: Option<Arc<Reuse>>,
    /// Whether the work-groups were not counted, and L2 may not hold all that they touch.
    pub is_uncounted: bool,
    /// Steps of a work-group, if they were counted.
    steps: Option<f64>,
    /// Rounds of resident work-groups that are simulated at most; further ones take as long as the later half of these.
    rounds: u64,
    /// Which stack of the card runs it.
    stack: u32,
    watch: Option<Watch>,
}

/// Times a launch, unless it is surely behind what it is compared with.
pub(super) fn run(timer: &Timer, code: &Code, launch: &Launch, pace: Option<&Pace>) -> Result<Raced> {
    let Timer {
        model,
        cores,
        cache,
        survey,
        seed,
        ..
    } = timer;
    let (mut cores, cache, seed) = (*cores, *cache, *seed);
    let kernel = &code.program().kernel;
    // The functional engine has looked out for prefetches out of bounds, where they matter.
    let options = Options {
        prefetch_bounds: PrefetchBounds::Free,
        operation_limit: timer.operation_limit,
        stop: timer.stop,
        ..Options::FAST
    };
    let state = LaunchState::new(kernel, launch, code.sub_group_size(), options)?;
    let (footprint, occupancy) = occupancy(model, code, launch)?;
    let groups = launch.group_count();
    let busy = groups.min(u64::from(*model.core.count)) as u32;
    let places = u64::from(occupancy.groups_per_core).min(groups.div_ceil(u64::from(busy))) as u32;
    let resident = places * occupancy.sub_groups_per_group;
    let is_large = u64::from(code.program().code_bytes) > *model.instruction_cache.near;
    let sample = |sub_groups: u32| {
        sub_groups
            .div_ceil(resident.max(1))
            .clamp(LEAST_CORES, busy.max(LEAST_CORES))
            .min(busy)
    };
    // A work-group that is left out would be waited for.
    let waits = !waits(kernel).is_empty();
    let survey = survey.as_deref().filter(|survey| survey.of_groups() == groups);
    let differing = survey.filter(|survey| !waits && (survey.spread() > SAME_WORK || meets_others(kernel)));
    let few = match cores {
        Cores::Few => few(timer, code, launch)?,
        _ => None,
    };
    if few.is_none() && cores == Cores::Few {
        cores = Cores::Sampled;
    }
    let first = match cores {
        _ if waits => busy,
        // Atomic additions to a word wait for each other.
        Cores::Sampled if meets_others(kernel) => busy,
        Cores::Few => few.map_or(LEAST_CORES.min(busy), |(cores, _)| cores),
        Cores::All => busy,
        Cores::Exactly(count) => count.clamp(1, busy),
        Cores::Sampled => sample(SUB_GROUPS_OF_A_SAMPLE),
    };
    // Few cores of large code are lucky, so that a run that is behind with few is behind.
    let wanted = match cores {
        Cores::Sampled if is_large => sample(SUB_GROUPS_OF_LARGE_CODE).max(first),
        _ => first,
    };
    let first = match pace.is_some_and(Pace::has_leader) {
        true => first,
        false => wanted,
    };
    let contents = match cache {
        CacheState::Flushed => Contents::Nothing,
        CacheState::Kept if survey.is_some_and(|survey| survey.touches_at_most(stays_in_l2(model))) => {
            Contents::Touched
        }
        CacheState::Kept => Contents::Buffers,
    };
    let bytes = || -> u64 {
        state
            .extents()
            .iter()
            .map(|buffer| buffer.end - buffer.start)
            .sum()
    };
    let job = Job {
        model,
        code,
        launch,
        state: &state,
        occupancy: &occupancy,
        busy,
        places,
        contents,
        overflows: survey.map_or_else(
            || bytes() > may_stay_in_l2(model),
            |survey| !survey.touches_at_most(may_stay_in_l2(model)),
        ),
        is_uncounted: survey.is_none() && bytes() > stays_in_l2(model),
        is_kept: cache == CacheState::Kept,
        reuse: survey.and_then(Survey::reuse),
        steps: survey.map(|survey| survey.steps() / groups as f64),
        rounds: few.map_or(ROUNDS, |(_, rounds)| rounds),
        stack: timer.stack,
        watch: timer.watch,
    };
    let part = Part {
        job: &job,
        cores,
        few: few.map(|(cores, _)| cores),
        groups,
        seed,
        footprint,
        pace,
    };
    match (cores, differing) {
        (Cores::Sampled | Cores::Few, Some(survey)) => part.of_strata(survey),
        _ => part.of_cores(first, wanted),
    }
}

/// The cores of a launch, and their rounds of work-groups, that give a first time soon; none where what a sample takes is soon
/// simulated, and where nothing is known of the work-groups.
pub(super) fn few(timer: &Timer, code: &Code, launch: &Launch) -> Result<Option<(u32, u64)>> {
    let kernel = &code.program().kernel;
    let survey = timer.survey.as_deref();
    let survey =
        survey.filter(|survey| survey.of_groups() == launch.group_count() && waits(kernel).is_empty());
    let Some(survey) = survey else {
        return Ok(None);
    };
    let (busy, places, _) = held(&timer.model, code, launch)?;
    let (busy, places) = (busy as u32, places as u32);
    let resident = places * (launch.group_items() as u32).div_ceil(code.sub_group_size());
    let sample = SUB_GROUPS_OF_A_SAMPLE.div_ceil(resident.max(1)).max(LEAST_CORES);
    let differs = survey.spread() > SAME_WORK || meets_others(kernel);
    let all = survey.of_groups() as f64;
    let a_round = survey.steps() / all * f64::from(places);
    let most = (all / f64::from(busy * places)).max(1.0);
    let usual = match differs {
        true if survey.steps() <= SHORT => survey.steps(),
        true => WHILE.max(LEAST_ROUNDS * a_round * f64::from(CORES_OF_STRATA)),
        false => f64::from(sample.min(busy)) * a_round * most.min(ROUNDS as f64),
    };
    // What follows a round takes as long as the second one, at least.
    let rounds = most.min(LEAST_ROUNDS).ceil();
    let cores = (SOON / (a_round * rounds)) as u32;
    let cores = cores.clamp(1, MOST_CORES_OF_FEW.min(busy));
    let few = f64::from(cores) * a_round * rounds;
    let is_less = usual.min(survey.steps()) > 2.0 * SOON.max(few);
    Ok(is_less.then_some((cores, rounds as u64)))
}

/// Whether atomic operations of a work-group can meet those of others.
pub(super) fn meets_others(kernel: &Kernel) -> bool {
    let mut meets = false;
    kernel.body.walk(&mut |op| {
        let effects = op.kind.effects();
        if let (Access::Atomic, Memory::At(pointer)) = (effects.access, effects.writes) {
            meets |= kernel.ty(pointer).space() != Some(Space::Shared);
        }
    });
    meets
}

/// The cores that a launch keeps busy, the work-groups that each holds at once, and the bytes of its L1.
pub(super) fn held(model: &DeviceModel, code: &Code, launch: &Launch) -> Result<(usize, usize, u64)> {
    let (_, occupancy) = occupancy(model, code, launch)?;
    let groups = launch.group_count();
    let busy = groups.min(u64::from(*model.core.count)).max(1);
    let places = u64::from(occupancy.groups_per_core).min(groups.div_ceil(busy));
    Ok((busy as usize, places as usize, model.l1_bytes(&occupancy)))
}

/// How many work-groups of the launch the device holds at once.
pub(super) fn resident_groups(model: &DeviceModel, code: &Code, launch: &Launch) -> Result<u64> {
    Ok(u64::from(groups_per_core(model, code, launch)?) * u64::from(*model.core.count))
}

/// How many of them a core holds.
pub(super) fn groups_per_core(model: &DeviceModel, code: &Code, launch: &Launch) -> Result<u32> {
    occupancy(model, code, launch).map(|(_, occupancy)| occupancy.groups_per_core)
}

/// The resources of a work-group, and the number of them that a core holds.
fn occupancy(model: &DeviceModel, code: &Code, launch: &Launch) -> Result<(Footprint, Occupancy)> {
    let program = code.program();
    let mut barrier = false;
    program
        .kernel
        .body
        .walk(&mut |op| barrier |= op.kind.effects().meets_work_group());
    let items = u32::try_from(launch.group_items()).unwrap_or(u32::MAX);
    let footprint = Footprint {
        registers: program.register_estimate.registers,
        shared: u32::try_from(program.kernel.shared_bytes()).unwrap_or(u32::MAX),
        barrier,
        large_register_file: code.large_registers,
        ..Footprint::new(items, code.sub_group_size())
    };
    let occupancy = model.occupancy(&footprint);
    if occupancy.groups_per_core == 0 {
        return Err(Error::device(format!(
            "a work-group of `{}` does not fit into a core of {}: {} work-items, {} registers each, {} bytes of shared memory",
            program.kernel.shown(), model.title, footprint.group, footprint.registers, footprint.shared
        ))
        .accepted(format!("it is limited by {}", occupancy.limit())));
    }
    Ok((footprint, occupancy))
}

impl Job<'_> {
    /// Runs this many cores, with their share of the memory, as long as they are not behind: the first ones, or the
    /// representative work-groups.
    ///
    /// # Errors
    /// The kernel faults, or its resident work-groups wait for what none of them does.
    pub(crate) fn simulate(
        &self,
        simulated: u32,
        chosen: Option<&Chosen>,
        pace: Option<&Pace>,
    ) -> Result<std::result::Result<(Simulated, Course), Behind>> {
        let is_shared = simulated == self.busy || chosen.is_some();
        let ratio = chosen.map_or_else(|| self.ratio(simulated), |chosen| chosen.ratio);
        let memory = self.memory(simulated, ratio);
        let mut queue = self.queue(simulated, is_shared);
        if let Some(Chosen { groups, left_out, .. }) = chosen {
            queue.busy = u64::from(simulated);
            queue.count = groups.len() as u64;
            queue.list = Some(groups.clone());
            queue.left_out = (left_out / f64::from(simulated)).round() as u64;
        }
        let mut shared = Shared::new(self.code, memory, queue);
        let mut cores = self.cores(&mut shared)?;
        if is_shared {
            // The first work-groups were dealt out; from now on it is first come, first served.
            let queue = &mut shared.groups;
            queue.shared = true;
            queue.next[0] = (queue.busy * u64::from(self.places)).min(queue.count);
        }
        let mut follower = Follower::new(self.code.program(), simulated, self.model.nanoseconds(1.0), pace);
        let mut end = 0;
        let mut cut: Option<Option<f64>> = None;
        let mut standstill = Standstill::new(self.state.may_spin());
        // Kept here, so that a core that does nothing in a turn is not looked at.
        let mut next: Vec<Option<u64>> = cores.iter().map(Core::next).collect();
        while let Some(first) = next.iter().flatten().min() {
            end = (first / TURN + 1) * TURN;
            for (core, next) in cores.iter_mut().zip(&mut next) {
                if next.is_some_and(|next| next < end) {
                    core.run(end, &mut shared)?;
                    *next = core.next();
                }
            }
            if let Some(behind) = follower.look(end, |at| shared.profile[at].lanes) {
                return Ok(Err(behind));
            }
            self.state.check_stop()?;
            if self.state.is_cut() {
                cut = Some(self.part_done(&cores, &shared.profile, ratio));
                cores.iter_mut().for_each(|core| core.cut(end));
                break;
            }
            if standstill.is_reached(end, &mut cores) {
                return Err(self.waits_for_ever(&cores, &shared.groups));
            }
        }
        let groups = cores.iter().map(|core| core.ended.len() as u64).sum();
        let course = follower.end(end, groups, |at| shared.profile[at].lanes);
        let result = summary(&cores, shared, self.places);
        let result = match cut {
            Some(part) => result.cut(end, part, self.launch.group_count() as f64 / ratio),
            None => result,
        };
        Ok(Ok((result, course)))
    }

    /// The part of their work that cores have done which do one part in `ratio` of the launch's: by the instructions of the
    /// work-groups that have ended, or by the steps that were counted; none where neither tells.
    fn part_done(&self, cores: &[Core<'_>], profile: &[InstructionProfile], ratio: f64) -> Option<f64> {
        let ended: Vec<u64> = cores.iter().flat_map(|core| &core.work).copied().collect();
        let (done, of_a_group) = match ended.len() {
            0 => {
                let instructions = self.code.instructions.iter().zip(profile);
                let steps =
                    instructions.map(|(code, own)| u64::from(code.end_step - code.first_step) * own.issued);
                (steps.sum::<u64>(), self.steps?)
            }
            count => (
                cores.iter().map(|core| core.issued).sum(),
                ended.iter().sum::<u64>() as f64 / count as f64,
            ),
        };
        let all = of_a_group * self.launch.group_count() as f64 / ratio;
        Some((done as f64 / all).min(1.0)).filter(|part| *part > 0.0)
    }

    /// The error of a launch whose resident work-groups wait for what none of them does.
    #[cold]
    fn waits_for_ever(&self, cores: &[Core<'_>], queue: &Queue) -> Error {
        let program = self.code.program();
        let kernel = &program.kernel;
        let resident: usize = cores.iter().map(Core::resident).sum();
        let ended: usize = cores.iter().map(|core| core.ended.len()).sum();
        let to_come = queue.count.saturating_sub((resident + ended) as u64);
        let waits = "wait in loops for ever: the values that they read there do not change";
        let error = match to_come {
            0 => Error::input(format!(
                "the {resident} work-groups of `{}` that have not ended {waits}",
                kernel.shown()
            )),
            _ => Error::input(format!(
                "all work-groups of `{}` that are resident {waits}; the device has {resident} of this launch resident at once, and \
                 {to_come} have not begun",
                kernel.shown()
            ))
            .accepted("work-groups that wait for each other must be resident together: launch fewer"),
        };
        match cores.iter().find_map(Core::waiting_at) {
            Some(at) => error.at(kernel.describe_place(program.instructions[at].place)),
            None => error,
        }
    }

    /// The memory as this many cores see it, that do one part in `ratio` of the launch's work.
    fn memory(&self, simulated: u32, ratio: f64) -> MemorySystem {
        let extent = Extent {
            simulated,
            busy: self.busy,
            reuse: self.reuse.clone(),
            ratio,
            l1_bytes: self.model.l1_bytes(self.occupancy),
            buffers: self.state.extents(),
            contents: self.contents,
            // Of the launch itself, or of its work-groups before those that are simulated.
            was_full: self.overflows && (self.is_kept || ratio > 1.0),
            placement: self.placement(),
            compressible: self.compressible(),
        };
        MemorySystem::new(self.model, &extent)
    }

    /// In which stacks the launch's buffers lie, for the one that runs it.
    fn placement(&self) -> Placement {
        let buffers = self.state.extents().into_iter().zip(self.state.stacks());
        let with_host = self.with_host();
        match *self.model.core.stacks > 1 {
            true => Placement {
                divided: buffers.map(|(buffer, _)| buffer).collect(),
                with_host,
                ..Placement::default()
            },
            false => Placement {
                elsewhere: buffers
                    .filter(|&(_, stack)| stack != self.stack)
                    .map(|(buffer, _)| buffer)
                    .collect(),
                with_host,
                ..Placement::default()
            },
        }
    }

    /// The parts of the launch's buffers that lie with the host.
    fn with_host(&self) -> WithHost {
        let mut found = WithHost::default();
        for (buffer, memory) in self.state.extents().into_iter().zip(self.state.memories()) {
            match memory.home() {
                Home::Device => {}
                Home::Host => found.pinned.push(buffer),
                Home::Shared(pages) => {
                    let pieces = pages.on_host().into_iter();
                    found
                        .pages
                        .extend(pieces.map(|piece| buffer.start + piece.start..buffer.start + piece.end));
                }
            }
        }
        found
    }

    /// The compressible fraction of each buffer, from some of its lines, if the device compresses.
    fn compressible(&self) -> Vec<Compressible> {
        let together = u64::from(*self.model.dram.compression);
        if together < 2 {
            return Vec::new();
        }
        let bytes = together * *self.model.l2.line;
        let of = |(addresses, memory): (std::ops::Range<u64>, &BufferMemory)| {
            let groups = (addresses.end - addresses.start) / bytes;
            let looked_at = groups.min(LOOKED_AT);
            let group = |number: u64| {
                let mut words = vec![0; bytes as usize];
                let first = number * groups / looked_at.max(1) * bytes;
                memory.copy_out(first, &mut words).ok()?;
                let words = words.chunks_exact(4);
                Some(
                    words
                        .map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
                        .collect(),
                )
            };
            let (clear, alike) = parts((0..looked_at).filter_map(group));
            Compressible {
                addresses,
                clear,
                alike,
            }
        };
        self.state
            .extents()
            .into_iter()
            .zip(self.state.memories())
            .map(of)
            .collect()
    }

    /// The launch's work over that of this many cores, the first ones. If work-groups do not divide evenly, these have one more
    /// than others, and request as much more from memory. (`gather groups=200 group=96 items=700 table=2^26 work=20` has two in
    /// 68 cores and one in 64: its rings take 483 µs on an H100, and 585 if a core with two had no more of the memory than one
    /// with one.) If only the first rounds are simulated, all cores are full in these.
    fn ratio(&self, simulated: u32) -> f64 {
        let (all, busy) = (self.launch.group_count(), u64::from(self.busy));
        if all > busy * u64::from(self.places) * self.rounds {
            return f64::from(self.busy) / f64::from(simulated);
        }
        let of_core = |core: u64| (all - core).div_ceil(busy);
        let theirs: u64 = (0..u64::from(simulated)).map(of_core).sum();
        all as f64 / theirs as f64
    }

    /// The work-groups of the first cores: all of theirs, or the first rounds.
    fn queue(&self, simulated: u32, all: bool) -> Queue {
        let most = match all {
            true => u64::MAX,
            false => self.rounds * u64::from(self.places),
        };
        Queue {
            left: vec![most; simulated as usize],
            next: (0..u64::from(simulated)).collect(),
            shared: false,
            busy: u64::from(self.busy),
            count: self.launch.group_count(),
            list: None,
            left_out: 0,
        }
    }

    /// Cores with their first work-groups.
    fn cores(&self, shared: &mut Shared<Queue>) -> Result<Vec<Core<'_>>> {
        // The other cores start theirs in between.
        let starts = self.model.core.group_starts.as_ref();
        let interval = starts.map_or(0.0, |starts| f64::from(self.busy) / **starts);
        (0..shared.groups.next.len())
            .map(|number| {
                let core = Core::new(
                    number,
                    self.code,
                    self.state,
                    self.model,
                    self.places,
                    interval,
                    shared,
                )?;
                Ok(core.watched(self.watch.filter(|_| number == 0)))
            })
            .collect()
    }
}
