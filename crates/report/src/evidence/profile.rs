//! Where a run of a kernel spends its time: by reason, by loop, by load, each with its source line.

use serde::Serialize;

use super::balance::Balance;
use super::diverging::Diverging;
use crate::device::sim::timer::{Code, LaunchTime, StallReason};
use crate::model::DeviceModel;
use crate::model::occupancy::{Footprint, Occupancy};

/// Sectors that only uncoalesced accesses need matter from this share on.
const EXCESSIVE: f64 = 0.1;

/// Where a run of the plain kernel spends its time, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Profile {
    /// Why resident sub-groups did not issue, the commonest reason first.
    pub stalls: Vec<Stall>,
    /// The kernel's loops, in the order of the program.
    pub loops: Vec<LoopTime>,
    /// The kernel's loads from global memory, those with the most waiting first.
    pub loads: Vec<LoadTime>,
    /// Units of a core, the busiest first.
    pub units: Vec<UnitTime>,
    /// 32-bit registers of a work-item, where a profiler counted them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub registers: Option<u32>,
    /// The resources of a core that a work-item and a work-group take, and could take.
    pub resources: Option<Resources>,
    /// Instructions, each counted for every work-item that it acted on.
    pub operations: Option<f64>,
    /// The caches, and their hit rates.
    pub cache: Option<Cache>,
    /// How long L2 would be busy with all its requests, in nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub l2_busy_ns: Option<f64>,
    /// Passes over the banks of shared memory that conflicts added, for each access to it.
    pub bank_conflicts: Option<f64>,
    /// Share of the sectors that accesses to global memory need only because they are not coalesced, as a profiler's rule has
    /// it, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uncoalesced: Option<f64>,
    /// How evenly the work is spread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub balance: Option<Balance>,
    /// Share of the time in which a core has no sub-group, as a profiler has it, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle: Option<f64>,
    /// Where work-items of a sub-group diverge, and the cost of that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diverging: Option<Diverging>,
    /// Work-items of a sub-group, and of the largest one that the device has.
    pub sub_group: Option<(u32, u32)>,
}

/// One reason.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stall {
    /// As a profiler calls it.
    #[serde(serialize_with = "by_name")]
    pub reason: StallReason,
    /// Share of the resident sub-groups' time, 0 to 1.
    pub share: f64,
}

fn by_name<S: serde::Serializer>(reason: &StallReason, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(reason.name())
}

/// One loop, the loops inside it included.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LoopTime {
    /// Where it is written.
    pub place: String,
    /// How many loops it lies in.
    pub depth: u32,
    /// Times that a sub-group went through its body, on average.
    pub iterations: f64,
    /// Instructions of its code.
    pub instructions: u32,
    /// Share of all waiting for loads from global memory that is in it, 0 to 1.
    pub waiting: f64,
    /// The part of an iteration in which a sub-group does not wait for loads, in nanoseconds, on average.
    pub(crate) busy_ns: f64,
}

/// One load of the source.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LoadTime {
    /// The parameter that it reads.
    pub name: String,
    /// Where it is written.
    pub place: String,
    /// Cache lines that one access of a sub-group touches, on average.
    pub lines: f64,
    /// Bytes that device memory delivers for each that a work-item asks for.
    pub fetched: f64,
    /// Bytes that device memory delivered for it.
    pub memory_bytes: f64,
    /// Share of all waiting for loads from global memory that is for its values, 0 to 1.
    pub waiting: f64,
}

/// One kind of unit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UnitTime {
    /// Its instructions.
    pub name: String,
    /// How long it would be busy if all cores of the device shared the work evenly, in nanoseconds.
    pub busy_ns: f64,
}

/// A launch's use of a core's resources, and the amounts that leave the same number of work-groups resident.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Resources {
    /// 32-bit registers of a work-item.
    pub registers: u32,
    /// As many would leave as many work-groups resident.
    pub registers_possible: u32,
    /// Bytes of shared memory of a work-group.
    pub shared: u32,
    /// As many would leave as many work-groups resident.
    pub shared_possible: u32,
}

/// The cache in front of device memory.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cache {
    /// The vendor's name for it.
    pub name: String,
    /// Its size, in bytes.
    pub bytes: u64,
    /// Share of the sectors asked of it that it had, 0 to 1.
    pub hits: f64,
}

impl Profile {
    /// Of a simulated run.
    pub fn of_simulated(model: &DeviceModel, code: &Code, time: &LaunchTime) -> Profile {
        let (footprint, groups) = (&time.footprint, time.sample.of_groups);
        let kernel = &code.program().kernel;
        let mut stalls: Vec<Stall> = StallReason::ALL
            .into_iter()
            .zip(time.stalled)
            .map(|(reason, share)| Stall { reason, share })
            .collect();
        stalls.sort_by(|one, other| other.share.total_cmp(&one.share));
        let sub_groups = groups as f64 * f64::from(footprint.sub_groups());
        let long = StallReason::LongScoreboard as usize;
        let all_waiting: f64 = time.places.iter().map(|place| place.stalls[long]).sum();
        let share = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
        let loops = time.loops.iter().map(|own| {
            let others: f64 = own.stalls.iter().sum::<f64>() - own.stalls[long];
            // Each issued instruction takes a cycle.
            let issued = own.issued;
            LoopTime {
                place: kernel.describe_place(own.place),
                depth: own.depth,
                iterations: share(own.iterations, sub_groups),
                instructions: own.instructions,
                waiting: share(own.stalls[long], all_waiting),
                busy_ns: model.nanoseconds(share(others + issued, own.iterations)),
            }
        });
        let loads = time.loads.iter().map(|own| {
            let data = &kernel.loads[own.load];
            LoadTime {
                name: data.name.clone(),
                place: kernel.describe_place(data.place),
                lines: share(own.lines, own.executed),
                fetched: share(own.memory_bytes, own.bytes),
                memory_bytes: own.memory_bytes,
                waiting: share(own.waited, all_waiting),
            }
        });
        let units = time.units.iter().map(|unit| UnitTime {
            name: unit.name.to_owned(),
            busy_ns: model.nanoseconds(unit.cycles),
        });
        let memory = &time.memory;
        Profile {
            loops: loops.collect(),
            loads: loads.collect(),
            units: units.collect(),
            stalls,
            registers: None,
            resources: Some(Resources::of(model, footprint, &time.occupancy, groups)),
            operations: Some(time.work_item_instructions),
            cache: Some(Cache {
                name: model.l2.name.clone(),
                bytes: *model.l2.size,
                hits: share(memory.l2_hits as f64, memory.l2_sectors as f64),
            }),
            l2_busy_ns: Some(model.nanoseconds(time.l2_busy)),
            bank_conflicts: (memory.shared_accesses > 0).then(|| {
                let passes = share(memory.bank_conflicts as f64, memory.shared_accesses as f64);
                (passes - unavoidable_passes(model, footprint.sub_group)).max(0.0)
            }),
            uncoalesced: None,
            balance: Some(Balance::of(time)),
            idle: None,
            diverging: Diverging::of(
                kernel,
                share(
                    time.work_item_instructions,
                    time.instructions * f64::from(footprint.sub_group.min(footprint.group).max(1)),
                ),
            ),
            sub_group: Some((
                footprint.sub_group,
                model
                    .core
                    .sub_group_sizes
                    .last()
                    .copied()
                    .unwrap_or(footprint.sub_group),
            )),
        }
    }

    /// The same, with missing facts taken from another profile of the same kernel.
    pub fn with_gaps_from(&self, other: Option<&Profile>) -> Profile {
        let Some(other) = other else {
            return self.clone();
        };
        let or = |own: bool| if own { self } else { other };
        Profile {
            stalls: or(!self.stalls.is_empty()).stalls.clone(),
            loops: or(!self.loops.is_empty()).loops.clone(),
            // A profiler may know its loads only all together, without their places.
            loads: or(self.loads.iter().any(|load| !load.place.is_empty()))
                .loads
                .clone(),
            units: or(!self.units.is_empty()).units.clone(),
            registers: self.registers.or(other.registers),
            // Those of another compiler's code say nothing of these registers.
            resources: self
                .resources
                .or(other.resources.filter(|_| self.registers.is_none())),
            operations: self.operations.or(other.operations),
            cache: self.cache.clone().or_else(|| other.cache.clone()),
            l2_busy_ns: self.l2_busy_ns.or(other.l2_busy_ns),
            bank_conflicts: self.bank_conflicts.or(other.bank_conflicts),
            uncoalesced: self.uncoalesced.or(other.uncoalesced),
            balance: self.balance.or(other.balance),
            idle: self.idle.or(other.idle),
            diverging: self.diverging.clone().or_else(|| other.diverging.clone()),
            sub_group: self.sub_group.or(other.sub_group),
        }
    }

    /// Whether a profiler's rule says that accesses are not coalesced, and that it matters.
    pub fn is_uncoalesced(&self) -> bool {
        self.uncoalesced.is_some_and(|share| share >= EXCESSIVE)
    }

    /// Share of the resident sub-groups' time that one reason takes, 0 to 1.
    pub(crate) fn share(&self, reason: StallReason) -> f64 {
        let own = self.stalls.iter().find(|stall| stall.reason == reason);
        own.map_or(0.0, |stall| stall.share)
    }

    /// The loop in which the kernel waits for loads: of those with at least half of the waiting the innermost, or else
    /// the one with the most.
    pub fn main_loop(&self) -> Option<&LoopTime> {
        let half = self.loops.iter().filter(|own| own.waiting >= 0.5);
        half.max_by_key(|own| own.depth).or_else(|| {
            let waiting = self.loops.iter().filter(|own| own.waiting > 0.0);
            waiting.max_by(|one, other| one.waiting.total_cmp(&other.waiting))
        })
    }
}

/// Passes beyond the first that words side by side take, where a sub-group has more of them than there are banks.
fn unavoidable_passes(model: &DeviceModel, sub_group: u32) -> f64 {
    const WORD: u64 = 4;
    let at_once = (u64::from(*model.shared.banks) * *model.shared.bank_width).max(WORD);
    let passes = (u64::from(sub_group) * WORD).div_ceil(at_once);
    passes.saturating_sub(1) as f64
}

impl Resources {
    /// A footprint, and the amounts that leave as many work-groups resident as the launch has for a core.
    pub fn of(model: &DeviceModel, footprint: &Footprint, fits: &Occupancy, groups: u64) -> Resources {
        let for_a_core = groups.div_ceil(u64::from(*model.core.count));
        let resident = u64::from(fits.groups_per_core).min(for_a_core);
        let stays = |footprint: &Footprint| u64::from(model.occupancy(footprint).groups_per_core) >= resident;
        let with_registers = |registers| Footprint {
            registers,
            ..*footprint
        };
        let most = model.registers_per_work_item(footprint);
        let registers_possible = (footprint.registers..=most.max(footprint.registers))
            .rev()
            .find(|&registers| stays(&with_registers(registers)));
        // Shared memory comes in pieces; a kibibyte is as fine as advice needs.
        const PIECE: u32 = 1 << 10;
        let most = u32::try_from(model.shared_per_group()).unwrap_or(u32::MAX);
        let pieces = most.saturating_sub(footprint.shared) / PIECE;
        let shared_possible = (0..=pieces)
            .rev()
            .map(|pieces| footprint.shared + pieces * PIECE)
            .find(|&shared| stays(&Footprint { shared, ..*footprint }));
        Resources {
            registers: footprint.registers,
            registers_possible: registers_possible.unwrap_or(footprint.registers),
            shared: footprint.shared,
            shared_possible: shared_possible.unwrap_or(footprint.shared),
        }
    }
}
