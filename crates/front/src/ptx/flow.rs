//! A body cut into blocks.
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
//! it.

use std::borrow::Cow;

use super::tree::{Body, Instruction, Operand, Register, Statement};
use crate::error::{Error, Result};
use crate::middle::flow::{self, BlockId, End};
use crate::middle::ssa::Registers;

/// The flow graph of a body.
pub(super) type Flow<'b, 't> = flow::Flow<'t, &'b Instruction<'t>>;

type Block<'b, 't> = flow::Block<'t, &'b Instruction<'t>>;

/// The flow graph of a body.
///
/// # Errors
/// A jump leads nowhere, is computed, or leads into a loop beside its header.
pub(super) fn flow<'b, 't>(body: &'b Body<'t>) -> Result<Flow<'b, 't>> {
    Flow::new(split(body)?, "line")
}

impl Registers for &Instruction<'_> {
    fn for_each_read(&self, visit: &mut dyn FnMut(Register)) {
        for operand in self.read() {
            operand.for_each_register(&mut |register| visit(register));
        }
    }

    fn for_each_written(&self, visit: &mut dyn FnMut(Register)) {
        for operand in self.written() {
            operand.for_each_register(&mut |register| visit(register));
        }
    }
}

/// Cuts a body into blocks, in the order of the text.
fn split<'b, 't>(body: &'b Body<'t>) -> Result<Vec<Block<'b, 't>>> {
    let mut splitter = Splitter {
        body,
        blocks: Vec::new(),
        current: Vec::new(),
        label: None,
        start: None,
        keep: false,
        block_of_label: vec![None; body.labels.len()],
        before: None,
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

/// ptxas 13.0 unrolls a loop of one block only if it has at most this many instructions. The longest loop of `corpus/` that it
/// unrolls has 45, the shortest that it leaves alone for its length has 48 (`embedding_bag`). The limit is applied here because
/// the text's instructions are counted here: written again, `embedding_bag` has 44, ptxas unrolls it, and an H200 takes 12 %
/// longer.
const UNROLLED_AT_MOST: usize = 45;

struct Splitter<'b, 't> {
    body: &'b Body<'t>,
    blocks: Vec<Block<'b, 't>>,
    current: Vec<&'b Instruction<'t>>,
    label: Option<&'t str>,
    /// The statement of the entry that the current block starts with, if a jump can lead there.
    start: Option<u32>,
    keep: bool,
    block_of_label: Vec<Option<BlockId>>,
    /// The statement of the entry that the last instruction was a part of.
    before: Option<u32>,
}

impl<'b, 't> Splitter<'b, 't> {
    fn end(&mut self, end: End, line: u32) {
        self.blocks.push(Block {
            instructions: std::mem::take(&mut self.current),
            end,
            label: self.label.take().map(Cow::Borrowed),
            start: self.start.take(),
            last: self.before,
            line,
            keeps_loop: std::mem::take(&mut self.keep),
            is_copied: false,
        });
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
        self.label = Some(self.body.labels[label].name);
        self.start = self.body.labels[label].number;
        self.block_of_label[label] = Some(self.blocks.len());
    }

    fn instruction(&mut self, instruction: &'b Instruction<'t>, position: usize) -> Result<()> {
        let line = instruction.line;
        let at = |error: Error| error.at(format!("line {line}"));
        // What a statement becomes is jumped to at its beginning only.
        let before = self.before.replace(instruction.number);
        if self.current.is_empty() && self.label.is_none() && before != self.before {
            self.start = self.before;
        }
        // Its target if its guard holds; none for an instruction that only computes.
        let target = match instruction.opcode {
            "bra" => match &instruction.operands[..] {
                [Operand::Label(label)] => Some(LABELS + *label as usize),
                _ => return Err(at(Error::input("`bra` takes a label"))),
            },
            "brx" => {
                return Err(at(Error::input(
                    "`brx.idx`, a computed jump, has no structured form",
                )
                .accepted("one without a predicate, and its `.branchtargets`")));
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
            self.start = None;
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
        for (own, block) in self.blocks.iter_mut().enumerate() {
            block.end = block.end.map(resolved);
            let is_long = block.instructions.len() >= UNROLLED_AT_MOST;
            block.keeps_loop |= is_long && block.end.targets().any(|to| to == own);
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
