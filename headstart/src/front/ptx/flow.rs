//! The flow graph of a body: blocks, dominators, loops.
//!
//! ```text
//! before                                    after
//! @%p1 bra $L__BB0_7;                       B0: … branch %p1 → B3, B1
//! @%p2 ld.global.f32 %f1, [%rd1];           B1: branch %p2 → B2, B3
//! $L__BB0_7:                                B2: ld …; jump B3
//! ret;                                      B3: return
//! ```
//!
//! A predicated instruction is a block of its own behind a branch; neighbours under the same predicate share
//! it. Blocks are numbered in reverse postorder, so that an edge to a block that is not later leads back; the
//! graph is reducible if every such edge leads to a block that dominates where it came from.

use super::tree::{Body, Instruction, Operand, Register, Statement};
use crate::error::{Error, Result};
use crate::ir::limits;
use crate::suggest::quoted;

/// A block's number, in reverse postorder.
pub(super) type BlockId = usize;

/// The flow graph.
#[derive(Debug)]
pub(super) struct Flow<'b, 't> {
    /// The blocks that can be reached, in reverse postorder; the first is where a work-item starts.
    pub blocks: Vec<Block<'b, 't>>,
    /// Who jumps to each block; twice if a branch does so on both sides.
    pub predecessors: Vec<Vec<BlockId>>,
    /// The block that is passed last on every way to each block; the first block's is itself.
    pub dominator: Vec<BlockId>,
    /// The header of the innermost loop that each block is in.
    pub loop_of: Vec<Option<BlockId>>,
    /// For the header of a loop, the header of the loop around it.
    pub outer_loop: Vec<Option<BlockId>>,
    /// Whether a block is the header of a loop.
    pub is_header: Vec<bool>,
}

/// A block: what always runs together.
#[derive(Clone, Debug)]
pub(super) struct Block<'b, 't> {
    /// The instructions, without the last one that jumps.
    pub instructions: Vec<&'b Instruction<'t>>,
    /// How it ends.
    pub end: End,
    /// The label that it starts with.
    pub label: Option<&'t str>,
    /// The line of the module's text where it ends.
    pub line: u32,
    /// A loop that starts here stays as it is: `.pragma "nounroll"`.
    pub keeps_loop: bool,
}

/// How a block ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
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
    pub fn targets(self) -> impl DoubleEndedIterator<Item = BlockId> {
        let (first, second) = match self {
            End::Return | End::Trap => (None, None),
            End::Jump(to) => (Some(to), None),
            End::Branch { then, otherwise, .. } => (Some(then), Some(otherwise)),
        };
        first.into_iter().chain(second)
    }

    fn map(self, number: impl Fn(BlockId) -> BlockId) -> End {
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

impl<'b, 't> Flow<'b, 't> {
    /// The flow graph of a body.
    ///
    /// # Errors
    /// A jump leads nowhere, is computed, or leads into a loop beside its header.
    pub fn new(body: &'b Body<'t>) -> Result<Flow<'b, 't>> {
        let blocks = ordered(split(body)?);
        let mut predecessors = vec![Vec::new(); blocks.len()];
        for (from, block) in blocks.iter().enumerate() {
            for to in block.end.targets() {
                predecessors[to].push(from);
            }
        }
        let dominator = dominators(&predecessors);
        let mut flow = Flow {
            is_header: vec![false; blocks.len()],
            loop_of: vec![None; blocks.len()],
            outer_loop: vec![None; blocks.len()],
            blocks,
            predecessors,
            dominator,
        };
        flow.find_loops()?;
        Ok(flow)
    }

    /// Whether `above` is passed on every way to `below`.
    pub fn dominates(&self, above: BlockId, mut below: BlockId) -> bool {
        while below > above {
            below = self.dominator[below];
        }
        below == above
    }

    /// The headers of the loops around a block, the innermost first; a header is in its own loop.
    pub fn loops_around(&self, block: BlockId) -> impl Iterator<Item = BlockId> + '_ {
        std::iter::successors(self.loop_of[block], |&header| self.outer_loop[header])
    }

    /// Whether the loop with this header contains a block.
    pub fn contains(&self, header: BlockId, block: BlockId) -> bool {
        self.loops_around(block).any(|around| around == header)
    }

    /// Whether an edge leads back to the header of a loop.
    pub fn is_back(&self, from: BlockId, to: BlockId) -> bool {
        to <= from
    }

    /// Jumps forward to a block.
    pub fn forward_entries(&self, block: BlockId) -> usize {
        self.predecessors[block]
            .iter()
            .filter(|&&from| !self.is_back(from, block))
            .count()
    }

    fn find_loops(&mut self) -> Result<()> {
        // Inner headers come later than outer ones, so they are looked at first.
        for header in (0..self.blocks.len()).rev() {
            let mut work: Vec<BlockId> = Vec::new();
            for &from in &self.predecessors[header] {
                if self.is_back(from, header) {
                    if !self.dominates(header, from) {
                        return Err(self.irreducible(header, from));
                    }
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
        self.check_nesting()
    }

    /// Refuses loops inside each other without end, before anything goes through all that are around a block.
    fn check_nesting(&self) -> Result<()> {
        let mut depth = vec![0; self.blocks.len()];
        for header in (0..self.blocks.len()).filter(|&header| self.is_header[header]) {
            depth[header] = self.outer_loop[header].map_or(1, |outer| depth[outer] + 1);
            if depth[header] > limits::NESTING {
                return Err(Error::input("the entry's loops are nested too deeply")
                    .at(format!("line {}", self.blocks[header].line))
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
            .map(|label| format!(" at label {}", quoted(label)));
        Error::input(format!(
            "the flow graph is irreducible: the loop{} can be entered beside its first block",
            label.unwrap_or_default()
        ))
        .at(format!("line {}", self.blocks[from].line))
        .accepted("flow that only jumps to the start of a loop from outside")
    }
}

/// Cuts a body into blocks, in the order of the text.
fn split<'b, 't>(body: &'b Body<'t>) -> Result<Vec<Block<'b, 't>>> {
    let mut splitter = Splitter {
        body,
        blocks: Vec::new(),
        current: Vec::new(),
        label: None,
        keep: false,
        block_of_label: vec![None; body.labels.len()],
        open: true,
    };
    for (position, statement) in body.statements.iter().enumerate() {
        match statement {
            Statement::Label(label) => splitter.label(*label),
            Statement::KeepLoop => splitter.keep = true,
            Statement::Instruction(instruction) => splitter.instruction(instruction, position)?,
        }
    }
    splitter.finish()
}

/// While blocks are cut, a jump to a label is a number beyond this one.
const LABELS: usize = 1 << 40;

struct Splitter<'b, 't> {
    body: &'b Body<'t>,
    blocks: Vec<Block<'b, 't>>,
    current: Vec<&'b Instruction<'t>>,
    label: Option<&'t str>,
    keep: bool,
    block_of_label: Vec<Option<BlockId>>,
    /// Whether something may still follow in the current block.
    open: bool,
}

impl<'b, 't> Splitter<'b, 't> {
    fn end(&mut self, end: End, line: u32) {
        self.blocks.push(Block {
            instructions: std::mem::take(&mut self.current),
            end,
            label: self.label.take(),
            line,
            keeps_loop: std::mem::take(&mut self.keep),
        });
        self.open = true;
    }

    /// The block after the current one.
    fn next(&self) -> BlockId {
        self.blocks.len() + 1
    }

    fn label(&mut self, label: u32) {
        if !self.current.is_empty() || self.label.is_some() {
            let line = self.current.last().map_or(0, |last| last.line);
            self.end(End::Jump(self.next()), line);
        }
        let label = label as usize;
        self.label = Some(self.body.labels[label]);
        self.block_of_label[label] = Some(self.blocks.len());
    }

    fn instruction(&mut self, instruction: &'b Instruction<'t>, position: usize) -> Result<()> {
        let line = instruction.line;
        let at = |error: Error| error.at(format!("line {line}"));
        // Where it leads to if its guard holds; nothing for what only computes.
        let target = match instruction.opcode {
            "bra" => match &instruction.operands[..] {
                [Operand::Label(label)] => Some(LABELS + *label as usize),
                _ => return Err(at(Error::input("`bra` takes a label"))),
            },
            "brx" => {
                return Err(at(Error::input(
                    "`brx.idx`, a computed jump, has no structured form",
                )
                .accepted("compile the `switch` into branches")));
            }
            "ret" | "exit" | "trap" => None,
            _ => {
                self.plain(instruction, position);
                return Ok(());
            }
        };
        let next = self.next();
        let stop = match instruction.opcode {
            "trap" => End::Trap,
            _ => End::Return,
        };
        if stop == End::Trap && instruction.guard.is_none() {
            // It says where it stands.
            self.current.push(instruction);
        }
        match (instruction.guard, target) {
            (None, Some(target)) => self.end(End::Jump(target), line),
            (None, None) => self.end(stop, line),
            (Some((predicate, negated)), target) => {
                // A guarded return is a block of its own.
                let taken = target.unwrap_or(next);
                let rest = if target.is_some() { next } else { next + 1 };
                let (then, otherwise) = if negated { (rest, taken) } else { (taken, rest) };
                self.end(
                    End::Branch {
                        predicate,
                        then,
                        otherwise,
                    },
                    line,
                );
                if target.is_none() {
                    if stop == End::Trap {
                        self.current.push(instruction);
                    }
                    self.end(stop, line);
                }
            }
        }
        Ok(())
    }

    fn plain(&mut self, instruction: &'b Instruction<'t>, position: usize) {
        let Some((predicate, negated)) = instruction.guard else {
            self.current.push(instruction);
            return;
        };
        let line = instruction.line;
        // Part of the block before, if that is under the same guard and does not change it.
        let before = position
            .checked_sub(1)
            .map(|before| &self.body.statements[before]);
        if let Some(Statement::Instruction(before)) = before
            && before.guard == instruction.guard
            && !matches!(before.opcode, "bra" | "ret" | "exit" | "trap")
            && !writes(before, predicate)
            && let Some(last) = self.blocks.last_mut()
        {
            last.instructions.push(instruction);
            last.line = line;
            return;
        }
        let (inside, after) = (self.next(), self.next() + 1);
        let (then, otherwise) = if negated { (after, inside) } else { (inside, after) };
        self.end(
            End::Branch {
                predicate,
                then,
                otherwise,
            },
            line,
        );
        self.current.push(instruction);
        self.end(End::Jump(after), line);
    }

    fn finish(mut self) -> Result<Vec<Block<'b, 't>>> {
        let line = self.current.last().map_or(0, |last| last.line);
        self.end(End::Return, line);
        let resolved = |to: BlockId| match to.checked_sub(LABELS) {
            Some(label) => self.block_of_label[label].unwrap_or(LABELS),
            None => to,
        };
        for block in &mut self.blocks {
            block.end = block.end.map(resolved);
            if block.end.targets().any(|to| to >= LABELS) {
                return Err(
                    Error::input("a jump to a label that is nowhere").at(format!("line {}", block.line))
                );
            }
        }
        Ok(self.blocks)
    }
}

/// Whether an instruction writes a register.
fn writes(instruction: &Instruction<'_>, register: Register) -> bool {
    let mut found = false;
    for operand in instruction.written() {
        operand.for_each_register(&mut |written| found |= written == register);
    }
    found
}

/// The blocks that the first one leads to, in reverse postorder.
fn ordered<'b, 't>(blocks: Vec<Block<'b, 't>>) -> Vec<Block<'b, 't>> {
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
    let mut blocks: Vec<Option<Block<'b, 't>>> = blocks.into_iter().map(Some).collect();
    let in_order = postorder.iter().rev().filter_map(|&block| blocks[block].take());
    in_order
        .map(|block| Block {
            end: block.end.map(|to| number[to]),
            ..block
        })
        .collect()
}

/// The immediate dominators of blocks in reverse postorder (Cooper, Harvey, Kennedy: "A Simple, Fast Dominance
/// Algorithm").
fn dominators(predecessors: &[Vec<BlockId>]) -> Vec<BlockId> {
    const UNKNOWN: BlockId = BlockId::MAX;
    let mut dominator = vec![UNKNOWN; predecessors.len()];
    dominator[0] = 0;
    let mut changed = true;
    while changed {
        changed = false;
        for block in 1..predecessors.len() {
            let known = predecessors[block]
                .iter()
                .copied()
                .filter(|&from| dominator[from] != UNKNOWN);
            let common = known.reduce(|mut a, mut b| {
                while a != b {
                    match a > b {
                        true => a = dominator[a],
                        false => b = dominator[b],
                    }
                }
                a
            });
            if let Some(common) = common.filter(|&common| dominator[block] != common) {
                dominator[block] = common;
                changed = true;
            }
        }
    }
    dominator
}
