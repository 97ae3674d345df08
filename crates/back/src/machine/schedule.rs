//! The order of instructions between jumps.
//!
//! A list scheduler: the instruction that starts the longest chain of latencies goes first, so loads come early and independent
//! chains of arithmetic (of unrolled iterations, say) are interleaved. When registers run short it prefers instructions that
//! free some. Nothing moves across a jump, a barrier, or a reconvergence point: ptxas does not move code there either, which is
//! why square roots, each with a jump for rare operands, are not interleaved.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use super::draft::{Draft, Location, Move, Virtual, Virtuals};
use super::liveness::{RegisterSet, visit_live};
use super::pressure::{Pressure, Queues};
use super::program::{Class, InstructionStep};
use super::target::Target;
use crate::ir::{Kernel, Space, Value};

/// Orders the drafts between fixed ones.
pub(crate) fn schedule(
    kernel: &Kernel,
    target: &Target,
    drafts: Vec<Draft>,
    virtuals: &Virtuals,
) -> Vec<Draft> {
    let mut wanted_after: HashMap<usize, RegisterSet> = HashMap::new();
    let last_of_segment =
        |index: usize| !drafts[index].fixed && drafts.get(index + 1).is_none_or(|next| next.fixed);
    visit_live(&drafts, virtuals.len(), |index, live| {
        if last_of_segment(index) {
            wanted_after.insert(index, live.clone());
        }
    });
    let loaded = loaded(&drafts, virtuals);
    let mut ordered = Vec::with_capacity(drafts.len());
    let mut segment = Vec::new();
    for (index, draft) in drafts.into_iter().enumerate() {
        if draft.fixed {
            ordered.push(draft);
            continue;
        }
        segment.push(draft);
        if let Some(wanted) = wanted_after.remove(&index) {
            let taken = std::mem::take(&mut segment);
            let sinks = target.rules.loads_sunk;
            let sunk = match sinks && taken.iter().any(|draft| is_long_load(draft.class)) {
                true => Segment::depending(kernel, target, taken, virtuals, wanted.clone()).with_loads_sunk(),
                false => taken,
            };
            ordered.extend(Segment::new(kernel, target, sunk, virtuals, wanted, &loaded).order());
        }
    }
    ordered.append(&mut segment);
    ordered
}

/// Whether it brings something from memory outside the core.
fn is_long_load(class: Class) -> bool {
    matches!(class, Class::Load { space, .. } if space != Space::Shared)
}

/// The registers with loaded values, moved or not. A move waits for what it moves.
fn loaded(drafts: &[Draft], virtuals: &Virtuals) -> RegisterSet {
    let mut loaded = RegisterSet::new(virtuals.len());
    let loads = drafts.iter().filter(|draft| is_long_load(draft.class));
    loads
        .flat_map(|load| &load.defines)
        .for_each(|&register| loaded.insert(register));
    let moves: Vec<Move> = drafts.iter().filter_map(|draft| draft.move_).collect();
    let mut grows = true;
    while grows {
        grows = false;
        for move_ in &moves {
            if loaded.contains(move_.from) && !loaded.contains(move_.to) {
                loaded.insert(move_.to);
                grows = true;
            }
        }
    }
    loaded
}

/// The drafts between two fixed ones, and their dependences.
struct Segment<'s> {
    target: &'s Target,
    drafts: Vec<Draft>,
    virtuals: &'s Virtuals,
    /// Wanted after the segment.
    wanted: RegisterSet,
    /// Who waits for a draft, and how long after it was issued.
    followers: Vec<Vec<(usize, u32)>>,
    /// How many it waits for.
    waits_for: Vec<usize>,
}

impl<'s> Segment<'s> {
    fn new(
        kernel: &Kernel,
        target: &'s Target,
        drafts: Vec<Draft>,
        virtuals: &'s Virtuals,
        wanted: RegisterSet,
        loaded: &RegisterSet,
    ) -> Segment<'s> {
        let mut segment = Segment::depending(kernel, target, drafts, virtuals, wanted);
        segment.keep_moves_avoidable();
        if target.rules.uses_before_loads {
            segment.use_before_loading(loaded);
        }
        segment
    }

    /// With only the dependences through registers and memory.
    fn depending(
        kernel: &Kernel,
        target: &'s Target,
        drafts: Vec<Draft>,
        virtuals: &'s Virtuals,
        wanted: RegisterSet,
    ) -> Segment<'s> {
        let count = drafts.len();
        let (followers, waits_for) = (vec![Vec::new(); count], vec![0; count]);
        let mut segment = Segment {
            target,
            drafts,
            virtuals,
            wanted,
            followers,
            waits_for,
        };
        segment.find_register_dependences();
        segment.find_memory_dependences(kernel);
        if target.rules.loads_behind_shuffles {
            segment.keep_loads_behind_shuffles();
        }
        segment
    }

    /// The drafts with each load, and the operations that only loads need, moved to its first use: from there it moves up.
    /// (ptxas does so wherever the source has them. `option-pricing` under `unroll:4` has all of its 24 loads in front of the
    /// arithmetic of four iterations, of 305 instructions each; in the machine code those of the second one are 217 to 255
    /// instructions before their first use, and so are those of the third and the fourth.)
    fn with_loads_sunk(self) -> Vec<Draft> {
        let count = self.drafts.len();
        let mut sinks = vec![false; count];
        for at in (0..count).rev() {
            let draft = &self.drafts[at];
            let mut users = self.followers[at].iter().filter(|&&(user, _)| {
                draft
                    .defines
                    .iter()
                    .any(|own| self.drafts[user].uses.contains(own))
            });
            let is_read = users.clone().next().is_some();
            let computes = draft.memory.is_none() && draft.move_.is_none();
            sinks[at] = match draft.class {
                class if is_long_load(class) => is_read,
                Class::None => computes && !self.followers[at].is_empty(),
                _ => computes && is_read && users.all(|&(user, _)| sinks[user]),
            };
        }
        let mut needs = vec![Vec::new(); count];
        for (at, followers) in self.followers.iter().enumerate() {
            if sinks[at] {
                followers
                    .iter()
                    .for_each(|&(follower, _)| needs[follower].push(at));
            }
        }
        let mut drafts: Vec<Option<Draft>> = self.drafts.into_iter().map(Some).collect();
        let mut order = Vec::with_capacity(count);
        let mut stack = Vec::new();
        let mut above = 0;
        for at in (0..count).filter(|&at| !sinks[at]) {
            stack.push((at, false));
            // Here ptxas begins a new block: lanes that have parted would exchange their values elsewhere.
            if drafts[at]
                .as_ref()
                .is_some_and(|draft| draft.class == Class::Shuffle)
            {
                stack.extend((above..at).rev().map(|sunk| (sunk, false)));
                above = at;
            }
            while let Some((at, is_open)) = stack.pop() {
                if is_open {
                    order.extend(drafts[at].take());
                } else if drafts[at].is_some() {
                    stack.push((at, true));
                    stack.extend(needs[at].iter().rev().map(|&needed| (needed, false)));
                }
            }
        }
        order
    }

    fn follows(&mut self, first: usize, second: usize, after: u32) {
        if first != second {
            self.followers[first].push((second, after));
            self.waits_for[second] += 1;
        }
    }

    fn find_register_dependences(&mut self) {
        let mut written: HashMap<Virtual, usize> = HashMap::new();
        let mut read: HashMap<Virtual, Vec<usize>> = HashMap::new();
        let mut computed: HashMap<Value, usize> = HashMap::new();
        for index in 0..self.drafts.len() {
            let draft = self.drafts[index].clone();
            for register in draft.uses {
                if let Some(&writer) = written.get(&register) {
                    let latency = self.target.assumed_latency(self.drafts[writer].class);
                    self.follows(writer, index, latency);
                }
                read.entry(register).or_default().push(index);
            }
            for register in draft.defines {
                for reader in read.remove(&register).unwrap_or_default() {
                    self.follows(reader, index, 0);
                }
                if let Some(writer) = written.insert(register, index) {
                    self.follows(writer, index, 1);
                }
            }
            // A condition may cost nothing, like a negation: no register says that its step goes first.
            if let Some(&writer) = draft.guard.and_then(|guard| computed.get(&guard.value)) {
                self.follows(writer, index, 0);
            }
            for step in &draft.steps {
                if let InstructionStep::Op(op) = step {
                    op.kind.for_each_operand(|operand| {
                        if let Some(&writer) = computed.get(&operand) {
                            self.follows(writer, index, 0);
                        }
                    });
                    computed.extend(op.results.iter().map(|&result| (result, index)));
                }
            }
        }
    }

    fn find_memory_dependences(&mut self, kernel: &Kernel) {
        let mut reads: Vec<(usize, Location)> = Vec::new();
        let mut writes: Vec<(usize, Location)> = Vec::new();
        for index in 0..self.drafts.len() {
            let Some(memory) = self.drafts[index].memory else {
                continue;
            };
            let meets = |list: &[(usize, Location)], here: Location| -> Vec<usize> {
                let meeting = list.iter().filter(|(_, there)| there.may_meet(here, kernel));
                meeting.map(|&(at, _)| at).collect()
            };
            let mut before = Vec::new();
            if let Some(here) = memory.reads {
                before.extend(meets(&writes, here));
                reads.push((index, here));
            }
            if let Some(here) = memory.writes {
                before.extend(meets(&writes, here));
                before.extend(meets(&reads, here));
                writes.push((index, here));
            }
            for first in before {
                self.follows(first, index, 0);
            }
        }
    }

    /// A load behind a shuffle in the source stays there. ptxas begins a new block at each shuffle of lanes that may have
    /// diverged and does not move loads across, though it lets shuffles pass each other and puts all of them behind one test.
    /// (`attention` loads a value behind the sum of a score over a sub-group: on an H100 and an H200 an iteration waits for
    /// device memory twice, 1,726 and 1,670 cycles, though the load does not depend on the sum.)
    fn keep_loads_behind_shuffles(&mut self) {
        let mut shuffles = Vec::new();
        for index in 0..self.drafts.len() {
            match self.drafts[index].class {
                Class::Shuffle => shuffles.push(index),
                class if is_long_load(class) => {
                    shuffles
                        .iter()
                        .for_each(|&shuffle| self.follows(shuffle, index, 0));
                }
                _ => {}
            }
        }
    }

    /// A move at the end is not needed if its source is made only when its target is no longer read:
    /// then both can be one register. Readers go first, where that is possible.
    fn keep_moves_avoidable(&mut self) {
        let mut writers: HashMap<Virtual, usize> = HashMap::new();
        let mut readers: HashMap<Virtual, Vec<usize>> = HashMap::new();
        for (index, draft) in self.drafts.iter().enumerate() {
            for &register in &draft.defines {
                writers.insert(register, index);
            }
            for &register in &draft.uses {
                readers.entry(register).or_default().push(index);
            }
        }
        for at in 0..self.drafts.len() {
            let Some(move_) = self.drafts[at].move_ else {
                continue;
            };
            let Some(&maker) = writers.get(&move_.from).filter(|&&maker| maker < at) else {
                continue;
            };
            let reach = self.reached_from(maker);
            for &reader in readers.get(&move_.to).map_or(&[][..], |list| list) {
                if reader != maker && reader != at && !reach[reader] {
                    self.follows(reader, maker, 0);
                }
            }
        }
    }

    /// A load whose value is used behind a jump shares a scoreboard with earlier loads of that kind: waiting for one waits for
    /// both. So the last iteration's loads are used once before more is loaded, by arithmetic: moves to the next iteration come
    /// behind the last load (`article` with a ring of eight in registers).
    fn use_before_loading(&mut self, loaded: &RegisterSet) {
        let mut used: HashSet<Virtual> = HashSet::new();
        let mut all_loads = Vec::new();
        let mut loads = Vec::new();
        for (index, draft) in self.drafts.iter().enumerate().rev() {
            if is_long_load(draft.class) {
                all_loads.push(index);
                if !draft.defines.iter().any(|own| used.contains(own)) {
                    loads.push(index);
                }
            }
            used.extend(&draft.uses);
        }
        if all_loads.is_empty() {
            return;
        }
        // The first reader of each register that the segment finds loaded, unless it needs what is loaded here, and all moves.
        let mut first_readers: Vec<(Virtual, usize)> = Vec::new();
        let mut moves: Vec<usize> = Vec::new();
        let mut written: HashSet<Virtual> = HashSet::new();
        let mut late = vec![false; self.drafts.len()];
        for index in 0..self.drafts.len() {
            late[index] |= is_long_load(self.drafts[index].class);
            for &(follower, _) in &self.followers[index] {
                late[follower] |= late[index];
            }
            let draft = &self.drafts[index];
            for &register in &draft.uses {
                if !loaded.contains(register) || written.contains(&register) || late[index] {
                    continue;
                }
                if draft.move_.is_some() {
                    moves.push(index);
                } else if first_readers.iter().all(|&(other, _)| other != register) {
                    first_readers.push((register, index));
                }
            }
            written.extend(&draft.defines);
        }
        for move_ in moves {
            let reach = self.reached_from(move_);
            for &load in all_loads.iter().filter(|&&load| !reach[load]) {
                self.follows(load, move_, 0);
            }
        }
        if loads.is_empty() {
            return;
        }
        for load in loads {
            let reach = self.reached_from(load);
            for &(_, reader) in &first_readers {
                if !reach[reader] {
                    self.follows(reader, load, 0);
                }
            }
        }
    }

    fn reached_from(&self, start: usize) -> Vec<bool> {
        let mut reached = vec![false; self.drafts.len()];
        let mut work = vec![start];
        while let Some(at) = work.pop() {
            for &(next, _) in &self.followers[at] {
                if !reached[next] {
                    reached[next] = true;
                    work.push(next);
                }
            }
        }
        reached
    }

    /// The latencies from a draft's issue to the end of the segment, along the longest chain.
    fn heights(&self) -> Vec<u32> {
        let mut waits_for = self.waits_for.clone();
        let mut order: Vec<usize> = (0..waits_for.len()).filter(|&at| waits_for[at] == 0).collect();
        let mut next = 0;
        while next < order.len() {
            for &(follower, _) in &self.followers[order[next]] {
                waits_for[follower] -= 1;
                if waits_for[follower] == 0 {
                    order.push(follower);
                }
            }
            next += 1;
        }
        let mut heights = vec![0; waits_for.len()];
        for &at in order.iter().rev() {
            let own = self.target.assumed_latency(self.drafts[at].class);
            let behind = self.followers[at]
                .iter()
                .map(|&(next, after)| after + heights[next])
                .max();
            heights[at] = own.max(behind.unwrap_or(0));
        }
        heights
    }

    fn order(mut self) -> Vec<Draft> {
        let drafts = &self.drafts;
        let heights = self.heights();
        let mut pressure = Pressure::new(&self.drafts, self.virtuals, &self.wanted, self.target);
        let mut waits_for = self.waits_for.clone();
        let mut available = vec![0u32; waits_for.len()];
        let mut queues = Queues::default();
        let rules = self.target.rules;
        for at in (0..waits_for.len()).filter(|&at| waits_for[at] == 0) {
            queues.later.push(Reverse((0, at)));
        }
        let mut order = Vec::with_capacity(waits_for.len());
        let mut now = 0;
        loop {
            while let Some(&Reverse((time, at))) = queues.later.peek()
                && time <= now
            {
                queues.later.pop();
                // Copies and hints write no register that is waited for. ptxas leaves them to the end.
                match drafts[at].class {
                    Class::AsyncCopy { .. } | Class::Prefetch if rules.hints_last => {
                        queues.last.push(Reverse(at))
                    }
                    _ => queues.ready.push((heights[at], Reverse(at))),
                }
            }
            let chosen = if pressure.is_high() {
                pressure.frugal(&mut queues)
            } else {
                queues.ready.pop().map(|(_, Reverse(at))| at)
            };
            let chosen = match (chosen, queues.later.peek()) {
                (None, Some(&Reverse((time, _)))) => {
                    now = time;
                    continue;
                }
                (None, None) => queues.last.pop().map(|Reverse(at)| at),
                (chosen, _) => chosen,
            };
            let Some(at) = chosen else {
                break;
            };
            order.push(at);
            pressure.issue(at);
            for &(next, after) in &self.followers[at] {
                available[next] = available[next].max(now + after);
                waits_for[next] -= 1;
                if waits_for[next] == 0 {
                    queues.later.push(Reverse((available[next], next)));
                }
            }
            // What costs nothing takes no time.
            now += u32::from(drafts[at].class != Class::None);
        }
        let mut drafts: Vec<Option<Draft>> = self.drafts.drain(..).map(Some).collect();
        order.into_iter().filter_map(|at| drafts[at].take()).collect()
    }
}
