//! The order of instructions between jumps.
//!
//! A list scheduler: whatever starts the longest chain of latencies goes first, so loads come early
//! and independent chains of arithmetic (of unrolled iterations, say) are interleaved. Where registers
//! run short it takes what frees some. Nothing moves across a jump, a barrier, or where lanes meet:
//! ptxas does not move code there either, which is why square roots, each with a jump for rare
//! operands, are not interleaved.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};

use super::draft::{Draft, Location, Move, Virtual, Virtuals};
use super::liveness::{RegisterSet, visit_live};
use super::program::{Class, Step};
use super::target::Target;
use super::window::{Window, is_issued};
use crate::ir::{Kernel, Space, Value};

/// Orders the drafts between fixed ones.
pub fn schedule(kernel: &Kernel, target: &Target, drafts: Vec<Draft>, virtuals: &Virtuals) -> Vec<Draft> {
    let mut wanted_after: HashMap<usize, RegisterSet> = HashMap::new();
    let last_of_segment =
        |index: usize| !drafts[index].fixed && drafts.get(index + 1).is_none_or(|next| next.fixed);
    visit_live(&drafts, virtuals.len(), |index, live| {
        if last_of_segment(index) {
            wanted_after.insert(index, live.clone());
        }
    });
    let mut direct = RegisterSet::new(virtuals.len());
    let loads = drafts.iter().filter(|draft| is_long_load(draft.class));
    loads
        .flat_map(|load| &load.defines)
        .for_each(|&register| direct.insert(register));
    let loaded = Loaded {
        all: with_moved(&drafts, &direct),
        direct,
    };
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
            ordered.extend(Segment::new(kernel, target, taken, virtuals, wanted, &loaded).order());
        }
    }
    ordered.append(&mut segment);
    ordered
}

/// Whether it brings something from memory outside the core.
fn is_long_load(class: Class) -> bool {
    matches!(class, Class::Load { space, .. } if space != Space::Shared)
}

/// The registers that hold what was loaded.
struct Loaded {
    /// As loads left it: it may be on its way.
    direct: RegisterSet,
    /// Moved or not. A move waits for it.
    all: RegisterSet,
}

/// The registers that hold what these do, moved or not.
fn with_moved(drafts: &[Draft], direct: &RegisterSet) -> RegisterSet {
    let mut loaded = direct.clone();
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

/// The drafts between two fixed ones, and what waits for what.
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
        loaded: &Loaded,
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
        segment.keep_moves_avoidable();
        segment.use_before_loading(loaded);
        segment
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
                if let Step::Op(op) = step {
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

    /// What is loaded for use behind a jump shares a scoreboard with what was loaded before for the same: whoever
    /// waits for the one waits for both. So what the last iteration loaded is used, once, before more is loaded.
    ///
    /// But ptxas does not know of the wait. Where a pointer is loaded from the constant bank here, the products that read
    /// it are late, and a load that needs neither goes before them: then whoever waits for what was loaded before waits for
    /// this load as well. (All rings of `gather` in registers in a body of four, eight or sixteen unrolled iterations have
    /// `LDG R30 …, IMAD.WIDE R24, R14, 0x4, R34`, the latter of which waits for the scoreboard of both. In one of two the
    /// pointer stays in registers, and it is the other way round; in rings of copies, too, where what the products lead
    /// to is waited for soon.)
    fn use_before_loading(&mut self, loaded: &Loaded) {
        let mut used: HashSet<Virtual> = HashSet::new();
        let mut loads = Vec::new();
        for (index, draft) in self.drafts.iter().enumerate().rev() {
            if is_long_load(draft.class) && !draft.defines.iter().any(|own| used.contains(own)) {
                loads.push(index);
            }
            used.extend(&draft.uses);
        }
        if loads.is_empty() {
            return;
        }
        // The first reader of each register that the segment finds loaded, unless it needs what is loaded here.
        let mut first_readers: Vec<(Virtual, usize)> = Vec::new();
        let mut written: HashSet<Virtual> = HashSet::new();
        let mut late = vec![false; self.drafts.len()];
        for index in 0..self.drafts.len() {
            late[index] |= is_long_load(self.drafts[index].class);
            for &(follower, _) in &self.followers[index] {
                late[follower] |= late[index];
            }
            let draft = &self.drafts[index];
            for &register in &draft.uses {
                let known = first_readers.iter().any(|&(other, _)| other == register);
                if loaded.all.contains(register) && !written.contains(&register) && !known && !late[index] {
                    first_readers.push((register, index));
                }
            }
            written.extend(&draft.defines);
        }
        let classes: Vec<Class> = self.drafts.iter().map(|draft| draft.class).collect();
        let copies: Vec<usize> = (0..classes.len())
            .filter(|&at| matches!(classes[at], Class::AsyncCopy { .. }))
            .collect();
        let is_product = |&(register, reader): &(Virtual, usize)| {
            classes[reader] == Class::IntMultiply && loaded.direct.contains(register) && {
                let reach = self.reached_from(reader);
                !copies.iter().any(|&copy| reach[copy])
            }
        };
        if classes.contains(&Class::LoadConstant) && first_readers.iter().any(is_product) {
            let products: Vec<usize> = first_readers
                .iter()
                .filter(|&reader| is_product(reader))
                .map(|&(_, at)| at)
                .collect();
            let needed: Vec<Vec<bool>> = products
                .iter()
                .map(|&product| self.reached_from(product))
                .collect();
            let first = loads
                .iter()
                .rev()
                .copied()
                .find(|&load| needed.iter().all(|reach| !reach[load]));
            if let Some(first) = first {
                products
                    .iter()
                    .for_each(|&product| self.follows(first, product, 0));
                return;
            }
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
        let mut pressure = Pressure::new(&self);
        let mut waits_for = self.waits_for.clone();
        let mut available = vec![0u32; waits_for.len()];
        let mut queues = Queues::default();
        let mut window = Window::new(drafts);
        for at in (0..waits_for.len()).filter(|&at| waits_for[at] == 0) {
            window.offer(at, 0);
        }
        let mut order = Vec::with_capacity(waits_for.len());
        let mut now = 0;
        loop {
            while let Some((at, time)) = window.next() {
                queues.later.push(Reverse((time, at)));
            }
            while let Some(&Reverse((time, at))) = queues.later.peek()
                && time <= now
            {
                queues.later.pop();
                // Copies and hints give no register that somebody waits for: ptxas leaves them to the end, pauses or not. (On
                // an H200 a `cache:L1:1` comes too late for `article`.)
                match drafts[at].class {
                    Class::AsyncCopy { .. } | Class::Prefetch => queues.last.push(Reverse(at)),
                    _ => queues.ready.push((heights[at], Reverse(at))),
                }
            }
            let chosen = if pressure.is_high() {
                pressure.cheapest(&mut queues)
            } else {
                queues.ready.pop().map(|(_, Reverse(at))| at)
            };
            let chosen = match (chosen, queues.later.peek()) {
                (None, Some(&Reverse((time, _)))) => {
                    now = time;
                    continue;
                }
                (None, None) => queues
                    .last
                    .pop()
                    .map(|Reverse(at)| at)
                    .or_else(|| window.behind()),
                (chosen, _) => chosen,
            };
            let Some(at) = chosen else {
                break;
            };
            order.push(at);
            window.issue(drafts, at);
            pressure.issue(at);
            for &(next, after) in &self.followers[at] {
                available[next] = available[next].max(now + after);
                waits_for[next] -= 1;
                if waits_for[next] == 0 {
                    window.offer(next, available[next]);
                }
            }
            now += u32::from(is_issued(&drafts[at]));
        }
        let mut drafts: Vec<Option<Draft>> = self.drafts.drain(..).map(Some).collect();
        order.into_iter().filter_map(|at| drafts[at].take()).collect()
    }
}

/// What could be issued.
#[derive(Default)]
struct Queues {
    /// Now, by height. Ties go by the order in the source.
    ready: BinaryHeap<(u32, Reverse<usize>)>,
    /// Later, by time.
    later: BinaryHeap<Reverse<(u32, usize)>>,
    /// At the end.
    last: BinaryHeap<Reverse<usize>>,
}

/// The registers taken while a segment is being ordered.
struct Pressure {
    now: u32,
    comfortable: u32,
    /// For each draft: what it reads and writes, with widths.
    reads: Vec<Vec<(Virtual, u32)>>,
    writes: Vec<Vec<(Virtual, u32)>>,
    /// For each register that the segment reads or writes: how many drafts still read it; one more if it is wanted after
    /// the segment.
    readers: HashMap<Virtual, u32>,
    taken: RegisterSet,
}

impl Pressure {
    fn new(segment: &Segment<'_>) -> Pressure {
        let widths = |registers: &[Virtual]| -> Vec<(Virtual, u32)> {
            registers
                .iter()
                .map(|&register| (register, u32::from(segment.virtuals[register].width)))
                .collect()
        };
        let reads: Vec<_> = segment.drafts.iter().map(|draft| widths(&draft.uses)).collect();
        let writes: Vec<_> = segment
            .drafts
            .iter()
            .map(|draft| widths(&draft.defines))
            .collect();
        let mut readers: HashMap<Virtual, u32> = HashMap::new();
        let mut taken = RegisterSet::new(segment.virtuals.len());
        let mut written = RegisterSet::new(segment.virtuals.len());
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
            *count += u32::from(segment.wanted.contains(register));
        }
        for register in segment
            .wanted
            .iter()
            .filter(|&register| !written.contains(register))
        {
            taken.insert(register);
        }
        let now = taken
            .iter()
            .map(|register| u32::from(segment.virtuals[register].width))
            .sum();
        Pressure {
            now,
            comfortable: segment.target.comfortable_registers,
            reads,
            writes,
            readers,
            taken,
        }
    }

    fn is_high(&self) -> bool {
        self.now >= self.comfortable
    }

    /// What issuing a draft adds to the registers taken.
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

    fn issue(&mut self, at: usize) {
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

    /// Of all that could be issued, waiting or not, what leaves the fewest registers taken; of those that leave as few, one
    /// that need not wait. (ptxas has all sixteen loads of `pagerank` under `unroll:16` on their way before it adds the
    /// first, with 32 registers.)
    fn cheapest(&self, queues: &mut Queues) -> Option<usize> {
        let Queues { ready, later, .. } = queues;
        let candidates = ready.iter().map(|&(_, Reverse(at))| (false, at));
        let waiting = later.iter().map(|&Reverse((_, at))| (true, at));
        let (_, chosen) = candidates
            .chain(waiting)
            .min_by_key(|&(waits, at)| (self.added(at), waits, at))?;
        ready.retain(|&(_, Reverse(at))| at != chosen);
        later.retain(|&Reverse((_, at))| at != chosen);
        Some(chosen)
    }
}
