//! The result of a timed launch: time, counters, where sub-groups waited and why.

use std::collections::BTreeMap;

use super::balance::Balance;
use super::code::Code;
use super::profile::{self, LoadProfile, LoopProfile, UnitProfile};
use super::simulated::Simulated;
use super::stalls::{InstructionProfile, Issue, StallReason, Watch};
use crate::device::Counters;
use crate::ir::Place;
use crate::memory::MemoryCounters;
use crate::model::DeviceModel;
use crate::model::occupancy::{Footprint, Occupancy};

/// See [`Sample::within`].
const WITHIN: f64 = 0.08;

/// The same of a first time, by choice.
const WITHIN_OF_FEW: f64 = 0.4;

/// The same of a first speedup, whose two times have much of their errors in common: of 20 of random launches, half are within 5.6 % of
/// that of a sample, nine of ten within 12 %, and all within 15 % (`results/sampling-sim-h200.txt`).
const SPEEDUP_OF_FEW: f64 = 0.15;

/// How long a launch takes, and why. Numbers of a sample are scaled to the whole launch.
#[derive(Clone, Debug, PartialEq)]
pub struct LaunchTime {
    /// Cycles of the cores' clock, from the start to the end of the last work-group.
    pub cycles: f64,
    /// The same in nanoseconds, as a profiler tells it.
    pub nanoseconds: f64,
    /// From an event in front of the launch to one behind it, in nanoseconds: including the launch overhead.
    pub between_events_ns: f64,
    /// The simulated part.
    pub sample: Sample,
    /// The resources of a work-group on a core.
    pub footprint: Footprint,
    /// Work-groups that a core holds, and their limit.
    pub occupancy: Occupancy,
    /// Sub-groups resident in a busy core, on average.
    pub resident_sub_groups: f64,
    /// How evenly the work is spread.
    pub balance: Balance,
    /// The part of the busy cores' issue slots that was used, 0 to 1.
    pub issued: f64,
    /// Instructions issued for sub-groups.
    pub instructions: f64,
    /// The same, each counted for every work-item that it acted on.
    pub work_item_instructions: f64,
    /// The part of the resident sub-groups' cycles that each reason took, 0 to 1, in the order of
    /// [`StallReason::ALL`].
    pub stalled: [f64; StallReason::ALL.len()],
    /// The counters of the memory hierarchy.
    pub memory: MemoryCounters,
    /// Bytes on their way to a busy core, on average, from L2 or from beyond, and those on their way to device memory.
    pub bytes_in_flight: f64,
    /// Those of them from or to device memory.
    pub bytes_of_memory: f64,
    /// Cycles that L2 would take for its requests if it were always busy.
    pub l2_busy: f64,
    /// Device memory's reads and writes, in bytes per nanosecond (GB/s).
    pub bandwidth: f64,
    /// Source places, those with the most waiting first.
    pub places: Vec<PlaceProfile>,
    /// Loads of the source from global memory, those with the most waiting first.
    pub loads: Vec<LoadProfile>,
    /// Loops, in the order of the program.
    pub loops: Vec<LoopProfile>,
    /// Units of a core, the busiest first.
    pub units: Vec<UnitProfile>,
    /// From which cycle until which each work-group was there that the first simulated core had in its first place.
    pub lives: Vec<(u64, u64)>,
    /// How the sub-groups that were watched (`Timer::with_watch`) came along, instruction by instruction.
    pub watched: Vec<Vec<Issue>>,
    /// The part of the resident sub-groups' cycles that waiting at each instruction of the program took, by reason.
    pub waited: Vec<[f64; StallReason::ALL.len()]>,
    scale: f64,
}

/// The simulated part of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Cores that were simulated.
    pub cores: u32,
    /// Cores that the launch keeps busy.
    pub of_cores: u32,
    /// Work-groups that were simulated.
    pub groups: u64,
    /// Work-groups of the launch.
    pub of_groups: u64,
    /// Whether work-groups differ, and those that were simulated were chosen to stand for all.
    pub is_stratified: bool,
    /// Whether it is smaller than what one takes: [`Cores::Few`](super::Cores::Few).
    pub(crate) is_few: bool,
    /// Whether it was not counted what work-groups bring to L2 for each other, though L2 may not hold all: cores that are not
    /// simulated bring nothing then.
    pub is_apart: bool,
    /// How the launch's time follows, if the run was ended early.
    pub cut: Option<Cut>,
}

/// How a launch's time follows from a run that was ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// From the part of the work that was done.
    ByWork,
    /// That part is not known: the launch takes longer.
    AtLeast,
}

/// The counters of one place of the source.
#[derive(Clone, Debug, PartialEq)]
pub struct PlaceProfile {
    /// The place, in the kernel of [`Code::program`].
    pub place: Place,
    /// Instructions issued there.
    pub instructions: f64,
    /// Cycles that sub-groups waited there, by reason, in the order of [`StallReason::ALL`].
    pub stalls: [f64; StallReason::ALL.len()],
}

impl Sample {
    /// Whether everything was simulated.
    pub fn is_whole(&self) -> bool {
        self.groups == self.of_groups
    }

    /// The relative uncertainty of the time, if work-groups differ: the largest error of 186 of 190 samples of launches with
    /// very different work-groups (`gallery/tests/sampling.rs`).
    pub fn within(&self) -> Option<f64> {
        match (self.is_few, self.is_stratified) {
            (true, _) => Some(WITHIN_OF_FEW),
            (false, true) => Some(WITHIN),
            (false, false) => None,
        }
    }

    /// By how much the speedup of a plan may be off that has a first time, as the kernel without a plan has. Other samples are the
    /// same for both, and so are their errors.
    pub fn speedup_within(&self) -> Option<f64> {
        self.is_few.then_some(SPEEDUP_OF_FEW)
    }
}

impl PlaceProfile {
    /// Cycles that sub-groups waited there.
    pub(crate) fn waited(&self) -> f64 {
        self.stalls.iter().sum()
    }
}

/// Scales the simulated part to the whole launch.
pub(super) fn launch_time(
    model: &DeviceModel,
    code: &Code,
    simulated: Simulated,
    sample: Sample,
    footprint: Footprint,
    occupancy: Occupancy,
) -> LaunchTime {
    let scale = sample.of_groups as f64 / simulated.done.max(f64::MIN_POSITIVE);
    let nanoseconds = model.nanoseconds(simulated.cycles);
    let issued: u64 = simulated.profile.iter().map(|profile| profile.issued).sum();
    let lanes: u64 = simulated.profile.iter().map(|profile| profile.lanes).sum();
    let core_cycles = simulated.core_cycles.max(1.0);
    let resident = simulated.resident_cycles.max(1) as f64;
    let stalled = StallReason::ALL.map(|reason| {
        let waited: u64 = simulated
            .profile
            .iter()
            .map(|profile| profile.stalls[reason as usize])
            .sum();
        waited as f64 / resident
    });
    // What is written is on its way as long as what is read.
    let writing = simulated.memory.dram_written_bytes as f64 * f64::from(*model.dram.latency);
    let moved = (simulated.memory.dram_read_bytes + simulated.memory.dram_written_bytes) as f64;
    LaunchTime {
        cycles: simulated.cycles,
        nanoseconds,
        between_events_ns: nanoseconds + model.nanoseconds(f64::from(*model.core.launch)),
        sample,
        footprint,
        occupancy,
        resident_sub_groups: simulated.resident_cycles as f64 / core_cycles,
        balance: simulated.balance,
        issued: issued as f64 / (core_cycles * f64::from(*model.core.schedulers)),
        instructions: issued as f64 * scale,
        work_item_instructions: lanes as f64 * scale,
        stalled,
        bytes_in_flight: (simulated.memory.byte_cycles_in_flight + writing) / core_cycles,
        bytes_of_memory: (simulated.memory.byte_cycles_from_memory + writing) / core_cycles,
        l2_busy: simulated.memory.l2_requests * scale / *model.l2.requests_per_cycle,
        bandwidth: if nanoseconds > 0.0 {
            moved * scale / nanoseconds
        } else {
            0.0
        },
        memory: simulated.memory,
        lives: simulated.lives,
        watched: simulated.watched,
        waited: simulated
            .profile
            .iter()
            .map(|own| own.stalls.map(|cycles| cycles as f64 / resident))
            .collect(),
        places: places(code, &simulated.profile, scale),
        loads: profile::loads(code.program(), &simulated.profile, scale),
        loops: profile::loops(code.program(), &simulated.profile, scale),
        units: profile::units(model, code, &simulated.profile, scale),
        scale,
    }
}

fn places(code: &Code, profile: &[InstructionProfile], scale: f64) -> Vec<PlaceProfile> {
    let mut places: BTreeMap<Place, PlaceProfile> = BTreeMap::new();
    for (instruction, own) in code.program().instructions.iter().zip(profile) {
        let sum = places.entry(instruction.place).or_insert_with(|| PlaceProfile {
            place: instruction.place,
            instructions: 0.0,
            stalls: [0.0; StallReason::ALL.len()],
        });
        sum.instructions += own.issued as f64 * scale;
        for (sum, &own) in sum.stalls.iter_mut().zip(&own.stalls) {
            *sum += own as f64 * scale;
        }
    }
    let mut places: Vec<PlaceProfile> = places.into_values().collect();
    places.sort_by(|a, b| b.waited().total_cmp(&a.waited()));
    places
}

impl LaunchTime {
    /// This many cycles in the middle of a work-group's life, half of it at most: of the one that is there in the middle of the
    /// launch. Neither its start nor its end is in them.
    pub fn middle(&self, cycles: u64, sub_groups: usize) -> Option<Watch> {
        let &(from, to) = self.lives.get(self.lives.len() / 2)?;
        let length = cycles.clamp(1, ((to - from) / 2).max(1));
        let from = from + (to - from - length) / 2;
        Some(Watch {
            from,
            to: from + length,
            sub_groups,
        })
    }

    /// The part of the resident sub-groups' cycles in which they waited for memory: for loads and
    /// asynchronous copies, 0 to 1.
    #[doc(hidden)]
    pub fn waiting_for_memory(&self) -> f64 {
        let waited = |reason: StallReason| self.stalled[reason as usize];
        waited(StallReason::LongScoreboard) + waited(StallReason::AsyncCopy)
    }

    /// Bytes that device memory moved.
    #[doc(hidden)]
    pub fn dram_bytes(&self) -> f64 {
        (self.memory.dram_read_bytes + self.memory.dram_written_bytes) as f64 * self.scale
    }

    /// The numbers by name, as a profiler calls them, for the whole launch.
    pub(crate) fn counters(&self) -> Counters {
        let mut counters = Counters::default();
        let memory = &self.memory;
        let mut scaled =
            |name: &'static str, amount: f64| counters.add(name, (amount * self.scale).round() as u64);
        scaled("L1 sectors", memory.l1_sectors as f64);
        scaled("L1 sector hits", memory.l1_hits as f64);
        scaled("L1 sectors on their way", memory.l1_pending as f64);
        scaled("L2 sectors", memory.l2_sectors as f64);
        scaled("L2 sector hits", memory.l2_hits as f64);
        scaled("L2 sectors written", memory.l2_written_sectors as f64);
        scaled("device memory bytes read", memory.dram_read_bytes as f64);
        scaled("device memory bytes written", memory.dram_written_bytes as f64);
        scaled("prefetched lines", memory.prefetched_lines as f64);
        scaled("prefetched bytes", memory.prefetched_bytes as f64);
        scaled("TLB misses", memory.tlb_misses as f64);
        scaled("shared memory accesses", memory.shared_accesses as f64);
        scaled("shared memory bank conflicts", memory.bank_conflicts as f64);
        let mut whole = |name: &'static str, amount: f64| counters.add(name, amount.round() as u64);
        whole("cycles", self.cycles);
        whole("instructions", self.instructions);
        whole("work-item instructions", self.work_item_instructions);
        whole("bytes in flight a core", self.bytes_in_flight);
        whole("issue slots used, per mille", self.issued * 1000.0);
        whole(
            "resident sub-groups a core, hundredths",
            self.resident_sub_groups * 100.0,
        );
        whole("simulated cores", f64::from(self.sample.cores));
        whole("busy cores", f64::from(self.sample.of_cores));
        for reason in StallReason::ALL {
            let cycles: f64 = self
                .places
                .iter()
                .map(|place| place.stalls[reason as usize])
                .sum();
            counters.add(reason.counter(), cycles.round() as u64);
        }
        counters
    }
}
