//! What the body of an entry is once all of it is written out ([`expand`](super::expand)): blocks, their steps, and the
//! registers that ids became.

use std::collections::HashMap;

use super::words::Instruction;
use crate::ir::Type;
use crate::middle::Register;
use crate::middle::flow::Block;
use crate::middle::ssa::Registers;

/// An id as one call of its function has it; ids of the module are the same everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Operand {
    /// Which call.
    pub frame: u32,
    /// The id.
    pub id: u32,
}

/// The registers of an id.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    /// The first of them; they follow each other.
    pub first: Register,
    /// How many.
    pub count: u32,
    /// The id of the type.
    pub ty: u32,
}

impl Held {
    /// Each of them.
    pub(crate) fn registers(self) -> impl Iterator<Item = Register> {
        self.first..self.first + self.count
    }
}

/// What a register is given.
#[derive(Clone, Copy, Debug)]
pub(super) enum Source {
    /// What another one holds.
    Register(Register),
    /// A part of an operand that no register holds.
    Part(Operand, usize),
}

/// What a step does.
#[derive(Clone, Debug)]
pub(super) enum What<'w> {
    /// An instruction of a call of its function.
    Plain(Instruction<'w>, u32),
    /// Gives registers what others hold, all at once.
    Copy(Vec<(Register, Source)>),
    /// Says whether a number is this one.
    Case(Register, Operand, u64),
}

/// Where a step comes from in the source: the id of the file's name, line, column.
pub(super) type Line = (u32, u32, u32);

/// A part of a block.
#[derive(Clone, Debug)]
pub(super) struct BlockStep<'w> {
    /// What it does.
    pub what: What<'w>,
    /// The registers that it reads.
    pub reads: Vec<Register>,
    /// The registers that it writes.
    pub writes: Vec<Register>,
    /// The word of the module where it stands.
    pub at: usize,
    /// Its line in the source, if the module says.
    pub line: Option<Line>,
}

impl Registers for BlockStep<'_> {
    fn for_each_read(&self, visit: &mut dyn FnMut(Register)) {
        self.reads.iter().for_each(|&register| visit(register));
    }

    fn for_each_written(&self, visit: &mut dyn FnMut(Register)) {
        self.writes.iter().for_each(|&register| visit(register));
    }
}

/// A parameter of the entry.
#[derive(Clone, Debug)]
pub(super) struct Parameter {
    /// Its id.
    pub id: u32,
    /// Its registers.
    pub held: Held,
    /// Its name, or that of the parameter of a function that it is passed on to.
    pub name: Option<String>,
}

/// The body of an entry.
#[derive(Debug, Default)]
pub(super) struct Body<'w> {
    /// What each register holds.
    pub registers: Vec<Type>,
    /// The registers of the ids of each call.
    pub frames: Vec<HashMap<u32, Held>>,
    /// The blocks; the first is where a work-item starts.
    pub blocks: Vec<Block<'w, BlockStep<'w>>>,
    /// What the entry is given.
    pub parameters: Vec<Parameter>,
    /// Where registers lead that are addresses of texts for lines: the variable's id, and how many bytes from its start.
    pub texts: HashMap<Register, (u32, u64)>,
}

impl<'w> Body<'w> {
    /// The registers of an operand; nothing for what the module holds.
    pub(crate) fn held(&self, operand: Operand) -> Option<Held> {
        self.frames.get(operand.frame as usize)?.get(&operand.id).copied()
    }

    /// All steps.
    pub(crate) fn steps(&self) -> impl Iterator<Item = &BlockStep<'w>> {
        self.blocks.iter().flat_map(|block| &block.instructions)
    }
}

/// A step that gives registers what others hold.
pub(super) fn copy<'w>(copies: Vec<(Register, Source)>, at: usize, line: Option<Line>) -> BlockStep<'w> {
    let reads = copies.iter().filter_map(|(_, source)| match source {
        Source::Register(register) => Some(*register),
        Source::Part(..) => None,
    });
    BlockStep {
        reads: reads.collect(),
        writes: copies.iter().map(|&(register, _)| register).collect(),
        what: What::Copy(copies),
        at,
        line,
    }
}
