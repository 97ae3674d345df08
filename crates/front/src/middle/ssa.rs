//! Registers to SSA: which blocks take which registers as parameters.
//!
//! ```text
//! before                          after
//! $L3: add.f32 %f1, %f1, %f2;     loop (%f1, %r1): …; continue (%f1', %r1')
//!      @%p bra $L3;               after it (%f1): …
//!      st.f32 [%rd1], %f1;
//! ```
//!
//! A block takes a register as a parameter where several definitions of it meet, as usual, and where a loop is left: values of
//! a region are not visible behind it, so a loop's values leave it as arguments of its exits.

use std::collections::{BinaryHeap, HashMap};

use super::Register;
use super::flow::{BlockId, End, Flow};
use crate::error::{Error, Result};

/// Most words that say in which block which register is used: half a gibibyte.
const MOST_WORDS: usize = 1 << 26;

/// What an instruction does with registers.
pub(crate) trait Registers {
    /// Visits those that it reads.
    fn for_each_read(&self, visit: &mut dyn FnMut(Register));

    /// Visits those that it writes.
    fn for_each_written(&self, visit: &mut dyn FnMut(Register));
}

/// The parameters of each block, each list in order.
///
/// # Errors
/// Too many registers are used in too many blocks.
pub(crate) fn parameters<I: Registers>(flow: &Flow<'_, I>, registers: usize) -> Result<Vec<Vec<Register>>> {
    let facts = Facts::of(flow, registers)?;
    let mut meetings = Meetings::of(flow);
    let mut parameters: Vec<Vec<Register>> = vec![Vec::new(); flow.blocks.len()];
    for (&register, &local) in &facts.crossing {
        let defined_in = &facts.defined_in[local as usize];
        let is_live = |block| facts.live_into(block, local);
        for block in meetings.of_definitions(flow, defined_in, is_live) {
            parameters[block].push(register);
        }
    }
    parameters.iter_mut().for_each(|list| list.sort_unstable());
    Ok(parameters)
}

/// For each header, the blocks outside its loop that a block in the loop dominates most nearly: where code goes
/// on after the loop.
pub(crate) fn loop_exits<I>(flow: &Flow<'_, I>) -> Vec<Vec<BlockId>> {
    let mut exits = vec![Vec::new(); flow.blocks.len()];
    for block in 1..flow.blocks.len() {
        if let Some(header) = left_loop(flow, block) {
            exits[header].push(block);
        }
    }
    exits
}

/// The outermost loop that the dominator of a block is in but the block is not.
pub(crate) fn left_loop<I>(flow: &Flow<'_, I>, block: BlockId) -> Option<BlockId> {
    flow.loops_around(flow.dominator[block])
        .filter(|&header| !flow.contains(header, block))
        .last()
}

/// Where definitions meet others: the iterated dominance frontier, and the blocks behind the loops around.
///
/// The frontiers themselves are never written down: of a thousand branches to a thousand labels behind them they have half a
/// million blocks. A definition's frontier is found by a walk of the tree of dominators below it, over the edges that leave
/// what a block dominates (Sreedhar and Gao: "A Linear Time Algorithm for Placing φ-Nodes"). The definitions nearest to the
/// leaves come first, so that no part of the tree is walked twice.
struct Meetings {
    /// How far each block is below the first in the tree of dominators.
    level: Vec<u32>,
    /// What each block dominates most nearly, those first whose `least` is least.
    dominated: Vec<Vec<BlockId>>,
    /// Where edges from each block lead that it does not dominate most nearly.
    joins: Vec<Vec<BlockId>>,
    /// The least level to which such an edge leads from a block or from what it dominates.
    least: Vec<u32>,
    exits: Vec<Vec<BlockId>>,
    /// The number of the search, to tell what it has seen from what earlier ones have.
    search: u32,
    /// The search in which each block was found, and that in which the exits of its loop were.
    found: Vec<u32>,
    left: Vec<u32>,
    /// The search in which a walk came through each block, and the greatest level that one began at.
    walked: Vec<(u32, u32)>,
}

impl Meetings {
    fn of<I>(flow: &Flow<'_, I>) -> Meetings {
        let count = flow.blocks.len();
        let mut own = Meetings {
            level: vec![0; count],
            dominated: vec![Vec::new(); count],
            joins: vec![Vec::new(); count],
            least: vec![u32::MAX; count],
            exits: loop_exits(flow),
            search: 0,
            found: vec![0; count],
            left: vec![0; count],
            walked: vec![(0, 0); count],
        };
        for block in 1..count {
            own.level[block] = own.level[flow.dominator[block]] + 1;
        }
        for (to, predecessors) in flow.predecessors.iter().enumerate() {
            for &from in predecessors {
                if flow.is_back(from, to) || flow.dominator[to] != from {
                    own.joins[from].push(to);
                    own.least[from] = own.least[from].min(own.level[to]);
                }
            }
        }
        for block in (1..count).rev() {
            let above = flow.dominator[block];
            own.least[above] = own.least[above].min(own.least[block]);
            own.dominated[above].push(block);
        }
        for list in &mut own.dominated {
            list.sort_by_key(|&block| own.least[block]);
        }
        own
    }

    /// The blocks where a register that is defined in these ones takes another value than in front of them, each once.
    fn of_definitions<I>(
        &mut self,
        flow: &Flow<'_, I>,
        defined_in: &[BlockId],
        is_live: impl Fn(BlockId) -> bool,
    ) -> Vec<BlockId> {
        self.search += 1;
        let mut found = Vec::new();
        let mut roots: BinaryHeap<(u32, BlockId)> = BinaryHeap::new();
        roots.extend(defined_in.iter().map(|&block| (self.level[block], block)));
        let mut walk = Vec::new();
        while let Some((level, root)) = roots.pop() {
            let mut meets = |at: BlockId| {
                if self.found[at] != self.search && is_live(at) {
                    self.found[at] = self.search;
                    found.push(at);
                    roots.push((self.level[at], at));
                }
            };
            for header in flow.loops_around(root) {
                if self.left[header] != self.search {
                    self.left[header] = self.search;
                    self.exits[header].iter().copied().for_each(&mut meets);
                }
            }
            walk.push(root);
            while let Some(block) = walk.pop() {
                let (search, from) = self.walked[block];
                if search == self.search && from >= level {
                    continue;
                }
                self.walked[block] = (self.search, level);
                let joins = self.joins[block].iter().copied();
                joins.filter(|&to| self.level[to] <= level).for_each(&mut meets);
                let below = self.dominated[block].iter();
                walk.extend(below.take_while(|&&block| self.least[block] <= level));
            }
        }
        found
    }
}

/// Information about registers that are used in another block than where they are defined.
struct Facts {
    /// Such registers, numbered.
    crossing: HashMap<Register, u32>,
    /// The blocks that define each.
    defined_in: Vec<Vec<BlockId>>,
    /// A bit for each of them, for each block: whether the value at its start is used.
    live: Vec<u64>,
    words: usize,
}

impl Facts {
    fn of<I: Registers>(flow: &Flow<'_, I>, registers: usize) -> Result<Facts> {
        // Last block that defined a register, to tell whether a use sees a definition of its own block.
        let mut defined_at = vec![BlockId::MAX; registers];
        let mut crossing: HashMap<Register, u32> = HashMap::new();
        let mut exposed: Vec<(BlockId, Register)> = Vec::new();
        let mut definitions: Vec<(BlockId, Register)> = Vec::new();
        for (number, block) in flow.blocks.iter().enumerate() {
            let mut uses = |register: Register, defined_at: &[BlockId]| {
                if defined_at[register as usize] != number {
                    let next = crossing.len() as u32;
                    crossing.entry(register).or_insert(next);
                    exposed.push((number, register));
                }
            };
            for instruction in &block.instructions {
                instruction.for_each_read(&mut |register| uses(register, &defined_at));
                instruction.for_each_written(&mut |register| {
                    if defined_at[register as usize] != number {
                        defined_at[register as usize] = number;
                        definitions.push((number, register));
                    }
                });
            }
            if let End::Branch { predicate, .. } = block.end {
                uses(predicate, &defined_at);
            }
        }
        let words = crossing.len().div_ceil(64);
        if words.saturating_mul(flow.blocks.len()) > MOST_WORDS {
            return Err(Error::input(
                "the entry has too many registers that are used in too many blocks",
            ));
        }
        let mut facts = Facts {
            defined_in: vec![Vec::new(); crossing.len()],
            live: vec![0; words * flow.blocks.len()],
            crossing,
            words,
        };
        let mut killed = vec![0u64; facts.live.len()];
        for (block, register) in definitions {
            if let Some(&local) = facts.crossing.get(&register) {
                facts.defined_in[local as usize].push(block);
                killed[block * words + local as usize / 64] |= 1 << (local % 64);
            }
        }
        for (block, register) in exposed {
            let local = facts.crossing[&register];
            facts.live[block * words + local as usize / 64] |= 1 << (local % 64);
        }
        facts.spread(flow, &killed);
        Ok(facts)
    }

    /// A register live at the start of a block is live at the end of its predecessors.
    fn spread<I>(&mut self, flow: &Flow<'_, I>, killed: &[u64]) {
        let words = self.words;
        let mut work: Vec<BlockId> = (0..flow.blocks.len()).collect();
        let mut waiting = vec![true; flow.blocks.len()];
        while let Some(block) = work.pop() {
            waiting[block] = false;
            for &from in &flow.predecessors[block] {
                let mut changed = false;
                for word in 0..words {
                    let passed = self.live[block * words + word] & !killed[from * words + word];
                    let old = self.live[from * words + word];
                    changed |= old | passed != old;
                    self.live[from * words + word] = old | passed;
                }
                if changed && !std::mem::replace(&mut waiting[from], true) {
                    work.push(from);
                }
            }
        }
    }

    fn live_into(&self, block: BlockId, local: u32) -> bool {
        self.live[block * self.words + local as usize / 64] >> (local % 64) & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use headstart_testing::Random;

    use super::*;
    use crate::middle::flow::Block;

    /// What an instruction reads and writes.
    #[derive(Clone)]
    struct Uses(Vec<Register>, Vec<Register>);

    impl Registers for Uses {
        fn for_each_read(&self, visit: &mut dyn FnMut(Register)) {
            self.0.iter().copied().for_each(visit);
        }

        fn for_each_written(&self, visit: &mut dyn FnMut(Register)) {
            self.1.iter().copied().for_each(visit);
        }
    }

    const REGISTERS: u64 = 4;

    fn random_flow(numbers: &mut Random) -> Option<Flow<'static, Uses>> {
        let count = 1 + numbers.below(16) as usize;
        let mut blocks: Vec<Block<'static, Uses>> = Vec::new();
        for own in 0..=count {
            let mut target = || match numbers.below(5) {
                0 => numbers.below(own as u64 + 1) as usize,
                _ => (own + 1 + numbers.below(6) as usize).min(count),
            };
            let (then, otherwise) = (target(), target());
            let end = match own < count {
                true => End::Branch {
                    predicate: numbers.below(REGISTERS) as Register,
                    then,
                    otherwise,
                },
                false => End::Return,
            };
            let mut some = || {
                let count = numbers.below(2);
                (0..count).map(|_| numbers.below(REGISTERS) as Register).collect()
            };
            blocks.push(Block {
                instructions: vec![Uses(some(), some())],
                end,
                label: None,
                start: None,
                last: None,
                line: own as u32,
                keeps_loop: false,
                is_copied: false,
            });
        }
        Flow::new(blocks, "line").ok()
    }

    /// The same by the definition of a frontier: where a block dominates one that jumps there, but not the place itself, or
    /// dominates that as the header of a loop.
    fn by_definition(
        flow: &Flow<'_, Uses>,
        defined_in: &[BlockId],
        facts: &Facts,
        local: u32,
    ) -> Vec<BlockId> {
        let exits = loop_exits(flow);
        let mut found: Vec<BlockId> = Vec::new();
        let mut work = defined_in.to_vec();
        while let Some(block) = work.pop() {
            for at in 0..flow.blocks.len() {
                let mut from = flow.predecessors[at].iter();
                let is_above = from.any(|&from| flow.dominates(block, from));
                let meets = is_above && !(flow.dominates(block, at) && block != at);
                let mut around = flow.loops_around(block);
                let leaves = around.any(|header| exits[header].contains(&at));
                if (meets || leaves) && facts.live_into(at, local) && !found.contains(&at) {
                    found.push(at);
                    work.push(at);
                }
            }
        }
        found.sort_unstable();
        found
    }

    #[test]
    fn definitions_meet_in_their_frontiers() {
        let mut numbers = Random::new(3);
        let (mut lists, mut longest) = (0, 0);
        for _ in 0..3000 {
            let Some(flow) = random_flow(&mut numbers) else {
                continue;
            };
            let facts = Facts::of(&flow, REGISTERS as usize).expect("few registers");
            let mut meetings = Meetings::of(&flow);
            for &local in facts.crossing.values() {
                let defined_in = &facts.defined_in[local as usize];
                let is_live = |block| facts.live_into(block, local);
                let mut found = meetings.of_definitions(&flow, defined_in, is_live);
                found.sort_unstable();
                assert_eq!(found, by_definition(&flow, defined_in, &facts, local));
                longest = longest.max(found.len());
                lists += usize::from(!found.is_empty());
            }
        }
        assert!(
            lists > 1000 && longest > 4,
            "{lists} registers meet, in {longest} blocks at most"
        );
    }
}
