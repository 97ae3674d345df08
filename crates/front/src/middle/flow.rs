//! The flow graph of a body: blocks, dominators, loops.
//!
//! A front cuts its code into blocks and says how each ends. Blocks are numbered in reverse postorder, so that an edge to a block that is not later leads back. Each
//! such edge is to lead to a block that dominates where it came from; [`split`](super::split) copies blocks until that is so.

use std::borrow::Cow;

use super::{Register, split};
use crate::error::{Error, Result};
use crate::ir::limits;
use crate::suggest::quoted;

/// A block's number, in reverse postorder.
pub(crate) type BlockId = usize;

/// The flow graph.
#[derive(Debug)]
pub(crate) struct Flow<'t, I> {
    /// The blocks that can be reached, in reverse postorder; the first is where a work-item starts.
    pub blocks: Vec<Block<'t, I>>,
    /// Who jumps to each block; twice if a branch does so on both sides.
    pub predecessors: Vec<Vec<BlockId>>,
    /// The block that is passed last on every way to each block; the first block's is itself.
    pub dominator: Vec<BlockId>,
    /// For each block, its position in a walk of the tree of dominators, and that behind the last block that it dominates.
    below: Vec<(usize, usize)>,
    /// The header of the innermost loop that each block is in.
    pub loop_of: Vec<Option<BlockId>>,
    /// For the header of a loop, the header of the loop around it.
    pub outer_loop: Vec<Option<BlockId>>,
    /// Whether a block is the header of a loop.
    pub is_header: Vec<bool>,
    /// What places are counted in: `line` or `byte`.
    unit: &'static str,
}

/// A block: what always runs together.
#[derive(Clone, Debug)]
pub(crate) struct Block<'t, I> {
    /// The instructions, without the last one that jumps.
    pub instructions: Vec<I>,
    /// How it ends.
    pub end: End,
    /// The label that it starts with.
    pub label: Option<Cow<'t, str>>,
    /// The number of the program's statement that it starts with, if a jump can lead there.
    pub start: Option<u32>,
    /// The number of the program's statement that it ends with, where that is known.
    pub last: Option<u32>,
    /// Where it ends: a line of the module's text, or a byte of the module.
    pub line: u32,
    /// A loop that starts here stays as it is: the program says so.
    pub keeps_loop: bool,
    /// The graph has this block several times: a loop that it lies in is none of the program's.
    pub is_copied: bool,
}

/// How a block ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The work-item ends.
    Return,
    /// The launch ends with an error.
    Trap,
    /// On to another block.
    Jump(BlockId),
    /// One way or the other.
    Branch {
        /// What decides.
        predicate: Register,
        /// Where it is true.
        then: BlockId,
        /// Where it is false.
        otherwise: BlockId,
    },
}

impl End {
    /// Where it leads to.
    pub(crate) fn targets(self) -> impl DoubleEndedIterator<Item = BlockId> {
        let (first, second) = match self {
            End::Return | End::Trap => (None, None),
            End::Jump(to) => (Some(to), None),
            End::Branch { then, otherwise, .. } => (Some(then), Some(otherwise)),
        };
        first.into_iter().chain(second)
    }

    /// The same end with other numbers of blocks.
    pub(crate) fn map(self, number: impl Fn(BlockId) -> BlockId) -> End {
        match self {
            End::Return => End::Return,
            End::Trap => End::Trap,
            End::Jump(to) => End::Jump(number(to)),
            End::Branch {
                predicate,
                then,
                otherwise,
            } => End::Branch {
                predicate,
                then: number(then),
                otherwise: number(otherwise),
            },
        }
    }
}

impl<'t, I> Flow<'t, I> {
    /// The flow graph of blocks, the first of which is the entry; `unit` is the unit of [`Block::line`].
    ///
    /// # Errors
    /// Too many blocks would have to be copied, or loops are nested too deeply.
    pub(crate) fn new(blocks: Vec<Block<'t, I>>, unit: &'static str) -> Result<Flow<'t, I>>
    where
        I: Clone,
    {
        let mut flow = Flow::of(blocks, unit);
        if let Some((entered, from)) = flow.entered_beside() {
            let blocks = split::split(flow.blocks.clone());
            flow = Flow::of(blocks.ok_or_else(|| flow.irreducible(entered, from))?, unit);
        }
        flow.find_loops();
        flow.check_nesting()?;
        Ok(flow)
    }

    /// The graph without its loops.
    fn of(blocks: Vec<Block<'t, I>>, unit: &'static str) -> Flow<'t, I> {
        let blocks = ordered(blocks);
        let mut predecessors = vec![Vec::new(); blocks.len()];
        for (from, block) in blocks.iter().enumerate() {
            for to in block.end.targets() {
                predecessors[to].push(from);
            }
        }
        let dominator = dominators(&predecessors);
        Flow {
            is_header: vec![false; blocks.len()],
            loop_of: vec![None; blocks.len()],
            outer_loop: vec![None; blocks.len()],
            below: below(&dominator),
            blocks,
            predecessors,
            dominator,
            unit,
        }
    }

    /// A block that is led back to from one that it does not dominate.
    fn entered_beside(&self) -> Option<(BlockId, BlockId)> {
        (0..self.blocks.len()).find_map(|to| {
            let beside = |from: &&BlockId| self.is_back(**from, to) && !self.dominates(to, **from);
            Some((to, *self.predecessors[to].iter().find(beside)?))
        })
    }

    /// Where a block ends, as messages say it.
    pub(crate) fn place_of(&self, block: BlockId) -> String {
        format!("{} {}", self.unit, self.blocks[block].line)
    }

    /// Whether `above` is passed on every way to `below`.
    pub(crate) fn dominates(&self, above: BlockId, below: BlockId) -> bool {
        let (first, end) = self.below[above];
        (first..end).contains(&self.below[below].0)
    }

    /// For each block the first one behind it that it does not dominate.
    pub(crate) fn dominated_up_to(&self) -> Vec<BlockId> {
        let count = self.blocks.len();
        let mut end = vec![count; count];
        for block in (0..count).rev() {
            let mut next = block + 1;
            // What a dominated block dominates, this one does, too.
            while next < count && self.dominates(block, next) {
                next = end[next];
            }
            end[block] = next;
        }
        end
    }

    /// The headers of the loops around a block, the innermost first; a header is in its own loop.
    pub(crate) fn loops_around(&self, block: BlockId) -> impl Iterator<Item = BlockId> + '_ {
        std::iter::successors(self.loop_of[block], |&header| self.outer_loop[header])
    }

    /// Whether the loop with this header contains a block.
    pub(crate) fn contains(&self, header: BlockId, block: BlockId) -> bool {
        self.loops_around(block).any(|around| around == header)
    }

    /// Whether an edge leads back to the header of a loop.
    pub(crate) fn is_back(&self, from: BlockId, to: BlockId) -> bool {
        to <= from
    }

    /// Jumps forward to a block.
    pub(crate) fn forward_entries(&self, block: BlockId) -> usize {
        self.predecessors[block]
            .iter()
            .filter(|&&from| !self.is_back(from, block))
            .count()
    }

    fn find_loops(&mut self) {
        // Inner headers come later than outer ones, so they are looked at first.
        for header in (0..self.blocks.len()).rev() {
            let mut work: Vec<BlockId> = Vec::new();
            for &from in &self.predecessors[header] {
                if self.is_back(from, header) {
                    self.is_header[header] = true;
                    work.push(from);
                }
            }
            if !self.is_header[header] {
                continue;
            }
            self.mark(header, header, &mut work);
            while let Some(block) = work.pop() {
                self.mark(block, header, &mut work);
            }
        }
    }

    /// Refuses loops inside each other without end, before anything goes through all that are around a block.
    fn check_nesting(&self) -> Result<()> {
        let mut depth = vec![0; self.blocks.len()];
        for header in (0..self.blocks.len()).filter(|&header| self.is_header[header]) {
            depth[header] = self.outer_loop[header].map_or(1, |outer| depth[outer] + 1);
            if depth[header] > limits::NESTING {
                return Err(Error::input("the entry's loops are nested too deeply")
                    .at(self.place_of(header))
                    .accepted(format!("at most {} inside each other", limits::NESTING)));
            }
        }
        Ok(())
    }

    /// Puts a block into a loop, with the outermost loop that it is in already, and goes on to who jumps to it.
    fn mark(&mut self, block: BlockId, header: BlockId, work: &mut Vec<BlockId>) {
        if block == header {
            self.loop_of[header] = Some(header);
            return;
        }
        // A block that was reached through an inner loop stands for the whole of that loop.
        let mut representative = block;
        match self.loop_of[block] {
            None => self.loop_of[block] = Some(header),
            Some(mut inner) => {
                while let Some(outer) = self.outer_loop[inner] {
                    inner = outer;
                }
                if inner == header {
                    return;
                }
                self.outer_loop[inner] = Some(header);
                representative = inner;
            }
        }
        for &from in &self.predecessors[representative] {
            if !self.is_back(from, representative) {
                work.push(from);
            }
        }
    }

    fn irreducible(&self, to: BlockId, from: BlockId) -> Error {
        let label = self.blocks[to]
            .label
            .as_deref()
            .map(|label| format!(" at label {}", quoted(label)));
        Error::input(format!(
            "the flow graph is irreducible: the loop{} can be entered beside its first block, in too many ways",
            label.unwrap_or_default()
        ))
        .at(self.place_of(from))
        .accepted("flow that only jumps to the start of a loop from outside")
    }
}

/// The blocks that the first one leads to, in reverse postorder.
fn ordered<'t, I>(blocks: Vec<Block<'t, I>>) -> Vec<Block<'t, I>> {
    let mut seen = vec![false; blocks.len()];
    let mut postorder = Vec::new();
    let mut work = vec![(0, false)];
    while let Some((block, finished)) = work.pop() {
        if finished {
            postorder.push(block);
            continue;
        }
        if std::mem::replace(&mut seen[block], true) {
            continue;
        }
        work.push((block, true));
        // The side that is looked at first comes last: the fall-through stays next to its block.
        work.extend(blocks[block].end.targets().map(|to| (to, false)));
    }
    let mut number = vec![0; blocks.len()];
    for (position, &block) in postorder.iter().rev().enumerate() {
        number[block] = position;
    }
    let mut blocks: Vec<Option<Block<'t, I>>> = blocks.into_iter().map(Some).collect();
    let in_order = postorder.iter().rev().filter_map(|&block| blocks[block].take());
    in_order
        .map(|block| Block {
            end: block.end.map(|to| number[to]),
            ..block
        })
        .collect()
}

/// The immediate dominators of blocks in reverse postorder: of each the nearest block that is above all that jump forward to it.
///
/// Edges that lead back change nothing where the graph is reducible: each comes from below the block that it leads to. In a graph
/// that is not, one of them does not, whether or not they are counted.
fn dominators(predecessors: &[Vec<BlockId>]) -> Vec<BlockId> {
    let mut tree = Tree::default();
    for (block, from) in predecessors.iter().enumerate() {
        let forward = from.iter().copied().filter(|&from| from < block);
        let above = forward.reduce(|one, other| tree.meeting(one, other));
        tree.add(above.unwrap_or(0));
    }
    tree.above
}

/// A tree whose nodes have numbers in the order in which they are added. Each also knows one far above it, so that the way up is
/// as long as a logarithm of the depth (Myers: "An Applicative Random-Access Stack").
#[derive(Default)]
struct Tree {
    depth: Vec<usize>,
    above: Vec<usize>,
    far_above: Vec<usize>,
}

impl Tree {
    /// Adds a node below another; the first one is below itself.
    fn add(&mut self, above: usize) {
        if self.depth.is_empty() {
            (self.depth, self.above, self.far_above) = (vec![0], vec![0], vec![0]);
            return;
        }
        let far = self.far_above[above];
        let farther = self.far_above[far];
        let ways_are_alike = self.depth[above] - self.depth[far] == self.depth[far] - self.depth[farther];
        self.depth.push(self.depth[above] + 1);
        self.above.push(above);
        self.far_above.push(if ways_are_alike { farther } else { above });
    }

    /// The lowest node that is above both, or is one of them.
    fn meeting(&self, one: usize, other: usize) -> usize {
        let (mut a, mut b) = match self.depth[one] > self.depth[other] {
            true => (one, other),
            false => (other, one),
        };
        while self.depth[a] > self.depth[b] {
            let far = self.far_above[a];
            a = match self.depth[far] >= self.depth[b] {
                true => far,
                false => self.above[a],
            };
        }
        // Nodes of one depth have equally long ways.
        while a != b {
            (a, b) = match self.far_above[a] == self.far_above[b] {
                true => (self.above[a], self.above[b]),
                false => (self.far_above[a], self.far_above[b]),
            };
        }
        a
    }
}

/// Positions in a walk of the tree of dominators, for each block its own and that behind the last block that it dominates.
fn below(dominator: &[BlockId]) -> Vec<(usize, usize)> {
    let mut sizes = vec![1; dominator.len()];
    for block in (1..dominator.len()).rev() {
        sizes[dominator[block]] += sizes[block];
    }
    // Where the next block goes that each one dominates most nearly.
    let mut free = vec![1; dominator.len()];
    let mut below = vec![(0, sizes[0]); dominator.len()];
    for block in 1..dominator.len() {
        let first = free[dominator[block]];
        below[block] = (first, first + sizes[block]);
        free[dominator[block]] += sizes[block];
        free[block] = first + 1;
    }
    below
}

#[cfg(test)]
mod tests {
    use headstart_testing::Random;

    use super::*;

    /// Blocks that jump forward, or back by chance.
    fn random_blocks(numbers: &mut Random) -> Vec<Block<'static, ()>> {
        let count = 1 + numbers.below(14) as usize;
        let mut target = |own: usize| match numbers.below(5) {
            0 => numbers.below(own as u64 + 1) as usize,
            _ => (own + 1 + numbers.below(4) as usize).min(count),
        };
        let mut blocks: Vec<Block<'static, ()>> = Vec::new();
        for own in 0..=count {
            let end = match own < count {
                true => End::Branch {
                    predicate: 0,
                    then: target(own),
                    otherwise: target(own),
                },
                false => End::Return,
            };
            blocks.push(Block {
                instructions: Vec::new(),
                end,
                label: None,
                start: None,
                last: None,
                line: own as u32,
                keeps_loop: false,
                is_copied: false,
            });
        }
        blocks
    }

    /// The blocks that are reached without coming through one.
    fn reached_without(flow: &Flow<'_, ()>, without: BlockId) -> Vec<bool> {
        let mut reached = vec![false; flow.blocks.len()];
        let mut work = vec![0];
        while let Some(block) = work.pop() {
            if block != without && !std::mem::replace(&mut reached[block], true) {
                work.extend(flow.blocks[block].end.targets());
            }
        }
        reached
    }

    #[test]
    fn a_block_dominates_what_cannot_be_reached_without_it() {
        let mut numbers = Random::new(7);
        let (mut copied, mut loops) = (0, 0);
        for _ in 0..2000 {
            let Ok(flow) = Flow::new(random_blocks(&mut numbers), "line") else {
                continue;
            };
            let count = flow.blocks.len();
            for (above, &end) in flow.dominated_up_to().iter().enumerate() {
                let reached = reached_without(&flow, above);
                for (below, &is_reached) in reached.iter().enumerate() {
                    assert_eq!(flow.dominates(above, below), !is_reached, "{flow:?}");
                }
                let first = (above..count).find(|&below| reached[below]);
                assert_eq!(end, first.unwrap_or(count), "{flow:?}");
            }
            copied += usize::from(flow.blocks.iter().any(|block| block.is_copied));
            loops += flow.is_header.iter().filter(|&&header| header).count();
        }
        assert!(copied > 200 && loops > 200, "{copied} graphs, {loops} loops");
    }

    /// The lines that a walk passes which takes the first way where a bit is set.
    fn walked(blocks: &[Block<'static, ()>], mut bits: u64) -> Vec<u32> {
        let (mut at, mut lines) = (0, Vec::new());
        for _ in 0..64 {
            lines.push(blocks[at].line);
            at = match blocks[at].end {
                End::Branch { then, .. } if bits & 1 == 1 => then,
                End::Branch { otherwise, .. } => otherwise,
                _ => break,
            };
            bits = bits.rotate_right(1);
        }
        lines
    }

    #[test]
    fn a_graph_with_copies_goes_the_same_ways() {
        let mut numbers = Random::new(11);
        let mut refused = 0;
        for _ in 0..2000 {
            let blocks = random_blocks(&mut numbers);
            let Ok(flow) = Flow::new(blocks.clone(), "line") else {
                refused += 1;
                continue;
            };
            for _ in 0..8 {
                let bits = numbers.below(u64::MAX);
                assert_eq!(walked(&flow.blocks, bits), walked(&blocks, bits), "{blocks:?}");
            }
        }
        assert!(refused < 100, "{refused}");
    }
}
