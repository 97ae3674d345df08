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

use std::collections::HashMap;

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
    let frontiers = frontiers(flow);
    let exits = loop_exits(flow);
    let mut parameters: Vec<Vec<Register>> = vec![Vec::new(); flow.blocks.len()];
    let mut takes = vec![Register::MAX; flow.blocks.len()];
    for (&register, &local) in &facts.crossing {
        let mut work: Vec<BlockId> = facts.defined_in[local as usize].clone();
        while let Some(block) = work.pop() {
            let meets = frontiers[block].iter().copied();
            let around = flow.loops_around(block);
            let left = around.flat_map(|header| exits[header].iter().copied());
            for at in meets.chain(left) {
                if takes[at] != register && facts.live_into(at, local) {
                    takes[at] = register;
                    parameters[at].push(register);
                    work.push(at);
                }
            }
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

/// Where definitions in a block meet others.
fn frontiers<I>(flow: &Flow<'_, I>) -> Vec<Vec<BlockId>> {
    let mut frontiers: Vec<Vec<BlockId>> = vec![Vec::new(); flow.blocks.len()];
    for (block, predecessors) in flow.predecessors.iter().enumerate() {
        if predecessors.len() < 2 && !flow.is_header[block] {
            continue;
        }
        for &from in predecessors {
            let mut runner = from;
            // The first block has no dominator of its own: it may still be the header of a loop.
            while runner != flow.dominator[block] || block == 0 {
                if frontiers[runner].last() != Some(&block) {
                    frontiers[runner].push(block);
                }
                if runner == 0 {
                    break;
                }
                runner = flow.dominator[runner];
            }
        }
    }
    frontiers
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
