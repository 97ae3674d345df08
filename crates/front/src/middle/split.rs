//! Loops that are entered beside their first block are entered by a copy of what follows it.
//!
//! ```text
//! before                          after
//! B0: branch → B1, B2             B0: branch → B1, C2
//! B1: … jump B2                   B1: … jump B2                C2: … branch → B1, B3
//! B2: … branch → B1, B3           B2: … branch → B1, B3
//! ```
//!
//! Blocks that lead to each other and are entered at several of them keep one as the loop's first. Ways that come from outside
//! to another one go through copies until they reach the first. What is left without the first, and the copies, may be entered
//! at several blocks again (Janssen and Corporaal: "Making Graphs Reducible with Controlled Node Splitting").

use super::flow::{Block, BlockId};

/// Blocks of a graph with copies at most. The copies double with each such loop inside another.
const MOST: usize = 4096;

/// The blocks of a graph whose loops have one entry each; none if they would be too many. All can be reached from the first.
pub(super) fn split<'t, I: Clone>(mut blocks: Vec<Block<'t, I>>) -> Option<Vec<Block<'t, I>>> {
    let mut work: Vec<Vec<BlockId>> = vec![(0..blocks.len()).collect()];
    while let Some(within) = work.pop() {
        for cycle in cycles(&blocks, &within) {
            let entries = entries(&blocks, &cycle);
            let first = chosen(&blocks, &cycle, &entries);
            let rest: Vec<BlockId> = cycle.into_iter().filter(|&block| block != first).collect();
            if entries.len() > 1 {
                if blocks.len() + rest.len() > MOST {
                    return None;
                }
                work.push(copied(&mut blocks, &rest, first));
            }
            work.push(rest);
        }
    }
    Some(blocks)
}

/// The blocks of a loop that are led to from outside it.
fn entries<I>(blocks: &[Block<'_, I>], cycle: &[BlockId]) -> Vec<BlockId> {
    let inside = set(blocks.len(), cycle);
    let mut entered = vec![false; blocks.len()];
    entered[0] = inside[0];
    for (block, _) in blocks.iter().zip(&inside).filter(|(_, inside)| !**inside) {
        for to in block.end.targets() {
            entered[to] |= inside[to];
        }
    }
    cycle.iter().copied().filter(|&block| entered[block]).collect()
}

/// The entry without which the blocks that still lead to each other are the fewest.
fn chosen<I>(blocks: &[Block<'_, I>], cycle: &[BlockId], entries: &[BlockId]) -> BlockId {
    let left = |first: &BlockId| {
        let rest: Vec<BlockId> = cycle.iter().copied().filter(|block| block != first).collect();
        cycles(blocks, &rest).iter().map(Vec::len).sum::<usize>()
    };
    match entries {
        [only] => *only,
        several => several.iter().copied().min_by_key(left).unwrap_or(cycle[0]),
    }
}

/// Copies blocks of a loop for the ways that come to them from outside it; returns the copies.
fn copied<I: Clone>(blocks: &mut Vec<Block<'_, I>>, rest: &[BlockId], first: BlockId) -> Vec<BlockId> {
    let added = blocks.len();
    let mut copy_of: Vec<BlockId> = (0..added).collect();
    for (copy, &block) in (added..).zip(rest) {
        copy_of[block] = copy;
    }
    for &block in rest {
        blocks[block].is_copied = true;
        blocks.push(Block {
            label: None,
            ..blocks[block].clone()
        });
    }
    let mut inside = set(added, rest);
    inside[first] = true;
    inside.resize(blocks.len(), false);
    for (block, _) in blocks.iter_mut().zip(&inside).filter(|(_, inside)| !**inside) {
        block.end = block.end.map(|to| copy_of[to]);
    }
    (added..blocks.len()).collect()
}

/// The blocks among these that lead to each other by way of these, those of each such loop together (Kosaraju's algorithm).
fn cycles<I>(blocks: &[Block<'_, I>], within: &[BlockId]) -> Vec<Vec<BlockId>> {
    let mut from: Vec<Vec<BlockId>> = vec![Vec::new(); blocks.len()];
    for &block in within {
        for to in blocks[block].end.targets() {
            from[to].push(block);
        }
    }
    let mut left = set(blocks.len(), within);
    let mut order = Vec::new();
    for &block in within {
        walk(block, &mut left, &mut order, |block| {
            blocks[block].end.targets().collect()
        });
    }
    let mut left = set(blocks.len(), within);
    let mut found = Vec::new();
    for &block in order.iter().rev() {
        let mut together = Vec::new();
        walk(block, &mut left, &mut together, |block| from[block].clone());
        if together.len() > 1 {
            found.push(together);
        }
    }
    found
}

/// Adds the blocks that one leads to in postorder, of those that are left.
fn walk(start: BlockId, left: &mut [bool], order: &mut Vec<BlockId>, next: impl Fn(BlockId) -> Vec<BlockId>) {
    let mut work = vec![(start, false)];
    while let Some((block, is_done)) = work.pop() {
        if is_done {
            order.push(block);
        } else if std::mem::replace(&mut left[block], false) {
            work.push((block, true));
            work.extend(next(block).into_iter().map(|to| (to, false)));
        }
    }
}

fn set(count: usize, members: &[BlockId]) -> Vec<bool> {
    let mut set = vec![false; count];
    members.iter().for_each(|&member| set[member] = true);
    set
}
