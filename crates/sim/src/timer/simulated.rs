//! The work-groups of simulated cores, and what the cores' times say of the whole launch.

use super::balance::Balance;
use super::core::{Core, Groups, Shared};
use super::report::Cut;
use super::run::SAME_WORK;
use super::slowest::{self, Moments};
use super::stalls::{InstructionProfile, Issue};
use crate::memory::MemoryCounters;

/// Cores of a sample whose times differ by more than this part are not alike.
const ALIKE: f64 = 0.05;

/// Work-groups that differ by more than this in the instructions that they issue (the standard deviation, of the mean)
/// are not alike: the launch waits for the longest of them, which a sample need not hold.
const ALIKE_WORK: f64 = 0.05;

/// The results of the simulated cores.
pub(super) struct Simulated {
    pub cycles: f64,
    pub profile: Vec<InstructionProfile>,
    pub memory: MemoryCounters,
    pub resident_cycles: u64,
    /// Cycles of all simulated cores together, until the last one ended.
    pub core_cycles: f64,
    /// Work-groups that have ended, or were cut, and to how many whole ones their work comes.
    pub groups: u64,
    pub done: f64,
    pub balance: Balance,
    pub lives: Vec<(u64, u64)>,
    pub watched: Vec<Vec<Issue>>,
    /// Whether work-groups have about as many instructions to issue.
    pub same_instructions: bool,
    /// Whether the cores' times say that all of the launch's cores take as long.
    pub alike: bool,
    /// Whether the cores had as much work as each other.
    pub same_work: bool,
    /// What is known of the rest, if the run was cut.
    pub cut: Option<Cut>,
}

impl Simulated {
    /// Steps of `groups` such work-groups: instructions, and sectors that they ask for.
    pub(crate) fn steps(&self, groups: u64) -> f64 {
        let issued: u64 = self.profile.iter().map(|profile| profile.issued).sum();
        (issued + self.memory.l1_sectors) as f64 * groups as f64 / self.groups.max(1) as f64
    }

    /// The result of a run that was cut at cycle `end`, when it had done this `part` of the work of its `groups`. Without a part the
    /// cycles are a lower bound.
    pub(super) fn cut(self, end: u64, part: Option<f64>, groups: f64) -> Simulated {
        Simulated {
            cycles: end as f64 / part.unwrap_or(1.0),
            done: part.map_or(self.done, |part| part * groups),
            cut: Some(part.map_or(Cut::AtLeast, |_| Cut::ByWork)),
            ..self
        }
    }
}

/// Work-groups in the order of their numbers. If all cores are simulated, whichever has room takes the
/// next; else each takes those that it would get if all ended in turn.
pub(super) struct Queue {
    pub next: Vec<u64>,
    pub shared: bool,
    pub busy: u64,
    pub count: u64,
    pub left: Vec<u64>,
    /// The chosen representatives, if there are any: the counters are indices into this list.
    pub list: Option<Vec<u64>>,
    /// Work-groups of each core that the list leaves out.
    pub left_out: u64,
}

impl Groups for Queue {
    fn next(&mut self, core: usize) -> Option<u64> {
        let (next, step) = match self.shared {
            true => (&mut self.next[0], 1),
            false => (&mut self.next[core], self.busy),
        };
        if *next >= self.count || self.left[core] == 0 {
            return None;
        }
        self.left[core] -= 1;
        *next += step;
        let place = *next - step;
        Some(self.list.as_ref().map_or(place, |list| list[place as usize]))
    }
}

/// What the simulated cores say of the launch.
pub(super) fn summary(cores: &[Core], shared: Shared<Queue>, places: u32) -> Simulated {
    let Shared {
        memory,
        groups: queue,
        profile,
    } = shared;
    let groups: u64 = cores.iter().map(|core| core.ended.len() as u64).sum();
    let last = |core: &Core| core.ended.iter().copied().max().unwrap_or(0) as f64;
    let end = cores.iter().map(last).fold(0.0, f64::max);
    // Cores with as many work-groups as the first should take as long.
    let comparable = cores
        .iter()
        .filter(|core| core.ended.len() == cores[0].ended.len())
        .map(last);
    let shortest = comparable.fold(f64::INFINITY, f64::min);
    let work = |core: &Core| core.issued as f64 / core.ended.len().max(1) as f64;
    let (least, most) = cores
        .iter()
        .map(work)
        .fold((f64::INFINITY, 0.0f64), |(least, most), work| {
            (least.min(work), most.max(work))
        });
    // Writes wait in L2 for a while: in few rounds of work-groups nothing waits for them, in many everything does.
    let of_writes = memory.dram_written() * cores.len() as f64 / groups.max(1) as f64;
    let all: Vec<f64> = cores
        .iter()
        .enumerate()
        .map(|(number, core)| whole_time(core, left_over(&queue, number), u64::from(places), of_writes))
        .collect();
    let mut work_of_groups = Moments::default();
    cores
        .iter()
        .flat_map(|core| &core.work)
        .for_each(|&work| work_of_groups.add(work));
    Simulated {
        cycles: all.iter().copied().fold(0.0, f64::max) + unseen(cores, &queue, places),
        profile,
        resident_cycles: cores.iter().map(|core| core.resident_cycles).sum(),
        core_cycles: end * cores.len() as f64,
        groups,
        done: groups as f64,
        balance: cores
            .iter()
            .fold(Balance::default(), |all, core| all.and(core.balance)),
        lives: cores.first().map(|core| core.lives.clone()).unwrap_or_default(),
        watched: cores.first().map(|core| core.watched.clone()).unwrap_or_default(),
        same_instructions: work_of_groups.relative() <= ALIKE_WORK,
        alike: shortest >= end * (1.0 - ALIKE),
        same_work: least >= most * (1.0 - SAME_WORK),
        memory: memory.counters().clone(),
        cut: None,
    }
}

/// Work-groups that a core would still have got.
fn left_over(queue: &Queue, core: usize) -> u64 {
    match queue.shared {
        true => queue.left_out,
        false => queue.count.saturating_sub(queue.next[core]).div_ceil(queue.busy),
    }
}

/// By how much the launch's last sub-group ends later than the last one of these cores, if all work-groups are resident at once
/// and all sub-groups have the same work.
fn unseen(cores: &[Core], queue: &Queue, places: u32) -> f64 {
    let mut work = Moments::default();
    for &(_, issued) in cores.iter().flat_map(|core| &core.last) {
        work.add(issued);
    }
    let groups: usize = cores.iter().map(|core| core.ended.len()).sum();
    if queue.count > queue.busy * u64::from(places) || work.relative() > SAME_WORK || groups == 0 {
        return 0.0;
    }
    let times: Vec<Vec<u64>> = cores
        .iter()
        .map(|core| core.last.iter().map(|&(end, _)| end).collect())
        .collect();
    slowest::later(&times, queue.count as f64 / groups as f64)
}

/// A core's time with the work-groups that were left out: they come as fast as those of the later half, and no faster than device
/// memory keeps up with their writes, which takes `least` cycles for each.
fn whole_time(core: &Core, left_over: u64, places: u64, least: f64) -> f64 {
    let mut ended = core.ended.clone();
    ended.sort_unstable();
    let last = ended.last().copied().unwrap_or(0) as f64;
    if left_over == 0 {
        return last;
    }
    let (from, to) = (
        ended.len() / 2,
        ended
            .len()
            .saturating_sub((places as usize).min(ended.len() / 4).max(1)),
    );
    let per_group = match to > from {
        true => (ended[to] - ended[from]) as f64 / (to - from) as f64,
        false => last / ended.len().max(1) as f64,
    };
    last + per_group.max(least) * left_over as f64
}
