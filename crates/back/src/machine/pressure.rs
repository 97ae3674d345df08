//! The registers in use while a segment is scheduled, and the choice of instructions when they run short.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use super::draft::{Draft, Virtual, Virtuals};
use super::liveness::RegisterSet;
use super::target::Target;

/// Registers of the widest value.
const A_VALUE: i64 = 2;

/// A candidate.
#[derive(Default)]
pub(super) struct Queues {
    /// Now, by height. Ties go by the order in the source.
    pub(super) ready: BinaryHeap<(u32, Reverse<usize>)>,
    /// Later, by time.
    pub(super) later: BinaryHeap<Reverse<(u32, usize)>>,
    /// At the end.
    pub(super) last: BinaryHeap<Reverse<usize>>,
}

/// The registers taken while a segment is being ordered.
pub(super) struct Pressure {
    now: u32,
    comfortable: u32,
    uncounted: u32,
    /// For each draft: its reads and writes, with widths.
    reads: Vec<Vec<(Virtual, u32)>>,
    writes: Vec<Vec<(Virtual, u32)>>,
    /// For each register that the segment reads or writes: how many drafts still read it; one more if it is wanted after
    /// the segment.
    readers: HashMap<Virtual, u32>,
    taken: RegisterSet,
}

impl Pressure {
    /// Before anything of a segment is issued, `wanted` of which is wanted after it.
    pub(super) fn new(
        drafts: &[Draft],
        virtuals: &Virtuals,
        wanted: &RegisterSet,
        target: &Target,
    ) -> Pressure {
        let widths = |registers: &[Virtual]| -> Vec<(Virtual, u32)> {
            registers
                .iter()
                .map(|&register| (register, u32::from(virtuals[register].width)))
                .collect()
        };
        let reads: Vec<_> = drafts.iter().map(|draft| widths(&draft.uses)).collect();
        let writes: Vec<_> = drafts.iter().map(|draft| widths(&draft.defines)).collect();
        let mut readers: HashMap<Virtual, u32> = HashMap::new();
        let mut taken = RegisterSet::new(virtuals.len());
        let mut written = RegisterSet::new(virtuals.len());
        for (reads, writes) in reads.iter().zip(&writes) {
            for &(register, _) in reads {
                *readers.entry(register).or_insert(0) += 1;
                if !written.contains(register) {
                    taken.insert(register);
                }
            }
            for &(register, _) in writes {
                readers.entry(register).or_insert(0);
                written.insert(register);
            }
        }
        for (&register, count) in &mut readers {
            *count += u32::from(wanted.contains(register));
        }
        for register in wanted.iter().filter(|&register| !written.contains(register)) {
            taken.insert(register);
        }
        let now = taken
            .iter()
            .map(|register| u32::from(virtuals[register].width))
            .sum();
        Pressure {
            now,
            comfortable: target.comfortable_registers,
            uncounted: target.uncounted_registers,
            reads,
            writes,
            readers,
            taken,
        }
    }

    /// Whether registers are short.
    pub(super) fn is_high(&self) -> bool {
        self.now >= self.comfortable
    }

    /// The registers that issuing a draft adds.
    fn added(&self, at: usize) -> i64 {
        let written: i64 = self.writes[at]
            .iter()
            .filter(|(register, _)| !self.taken.contains(*register))
            .map(|&(_, width)| i64::from(width))
            .sum();
        let freed: i64 = self.reads[at]
            .iter()
            .filter(|(register, _)| self.readers.get(register) == Some(&1))
            .map(|&(_, width)| i64::from(width))
            .sum();
        written - freed
    }

    /// A draft is issued.
    pub(super) fn issue(&mut self, at: usize) {
        for index in 0..self.reads[at].len() {
            let (register, width) = self.reads[at][index];
            let left = self.readers.entry(register).or_insert(0);
            *left = left.saturating_sub(1);
            if *left == 0 && self.taken.contains(register) {
                self.taken.remove(register);
                self.now -= width;
            }
        }
        for index in 0..self.writes[at].len() {
            let (register, width) = self.writes[at][index];
            if !self.taken.contains(register) && self.readers.get(&register).is_some_and(|&left| left > 0) {
                self.taken.insert(register);
                self.now += width;
            }
        }
    }

    /// The next instruction to issue when registers are short: as long as a few more are free than are counted here, the one
    /// that starts the longest chain, if it adds at most one value. (ptxas uses 254 and 255 registers in `option-pricing` under
    /// rings of two and four in registers, spills seven, and has several chains in flight; 288 are counted here. If only
    /// instructions that free registers were chosen, one chain after the other, the rings would take 160 and 204 µs here; with
    /// this rule 125 and 129; on an H200 144 and 139.)
    pub(super) fn frugal(&self, queues: &mut Queues) -> Option<usize> {
        if self.now < self.comfortable + self.uncounted {
            let adds_little = |&&(_, Reverse(at)): &&(u32, Reverse<usize>)| self.added(at) <= A_VALUE;
            let first = queues.ready.iter().filter(adds_little).max();
            if let Some(&(_, Reverse(chosen))) = first {
                queues.ready.retain(|&(_, Reverse(at))| at != chosen);
                return Some(chosen);
            }
        }
        self.cheapest(queues)
    }

    /// Of all candidates, waiting or not, the earliest of those that leave no more registers in use; if all do, the one that
    /// takes the fewest more. (ptxas has all sixteen loads of `pagerank` under `unroll:16` in flight before it adds the first,
    /// with 32 registers.)
    fn cheapest(&self, queues: &mut Queues) -> Option<usize> {
        let Queues { ready, later, .. } = queues;
        let candidates = ready.iter().map(|&(_, Reverse(at))| (false, at));
        let waiting = later.iter().map(|&Reverse((_, at))| (true, at));
        let (_, chosen) = candidates
            .chain(waiting)
            .min_by_key(|&(waits, at)| (self.added(at).max(0), waits, self.added(at), at))?;
        ready.retain(|&(_, Reverse(at))| at != chosen);
        later.retain(|&Reverse((_, at))| at != chosen);
        Some(chosen)
    }
}
