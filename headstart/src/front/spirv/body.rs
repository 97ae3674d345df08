//! The body of an entry: its blocks with those of the functions that it calls, and what each id holds.
//!
//! ```text
//! before                              after
//! %a = OpPhi %float %x %B0 %y %B1     B0: …; a' ← x       B1: …; a' ← y       B2: a ← a'; …
//! %r = OpFunctionCall %float %f %a    p ← a; jump f's first block;  …its blocks, which end with r ← their result…
//! OpSwitch %n %default 1 %one         c ← (n = 1); branch c → one, default
//! ```
//!
//! An id becomes as many registers as its type has numbers and pointers. Each call has ids of its own. A phi has its
//! registers twice: those that who jumps there writes, and those that are read, so that neither the order of several phis
//! nor another way out of the block before matters.

use std::borrow::Cow;
use std::collections::HashMap;

use rspirv::spirv::{LoopControl, Op};

use super::module::Module;
use super::words::{self, Instruction, refused};
use crate::error::{Error, Result};
use crate::front::middle::Register;
use crate::front::middle::flow::{Block, BlockId, End};
use crate::front::middle::ssa::Registers;
use crate::ir::{Type, limits};
use crate::suggest::quoted;

/// Most registers of a body.
const MOST_REGISTERS: usize = 1 << 18;

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
    pub fn registers(self) -> impl Iterator<Item = Register> {
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
pub(super) struct Step<'w> {
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

impl Registers for Step<'_> {
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
    pub blocks: Vec<Block<'w, Step<'w>>>,
    /// What the entry is given.
    pub parameters: Vec<Parameter>,
}

impl<'w> Body<'w> {
    /// The registers of an operand; nothing for what the module holds.
    pub fn held(&self, operand: Operand) -> Option<Held> {
        self.frames.get(operand.frame as usize)?.get(&operand.id).copied()
    }

    /// All steps.
    pub fn steps(&self) -> impl Iterator<Item = &Step<'w>> {
        self.blocks.iter().flat_map(|block| &block.instructions)
    }
}

/// Functions that are known by name, whether or not the module has a body for them.
pub(super) fn is_builtin(name: &str) -> bool {
    name.starts_with("__builtin_IB_lsc_")
}

/// The operands of an instruction that are ids and may be held by registers.
pub(super) fn ids<'w>(instruction: &Instruction<'w>) -> Vec<u32> {
    let words = instruction.words;
    let rest = |from: usize| words.get(from..).unwrap_or_default().to_vec();
    let some = |from: usize, to: usize| words.get(from..to.min(words.len())).unwrap_or_default().to_vec();
    match instruction.op {
        None | Some(Op::Phi | Op::Variable | Op::Undef) => Vec::new(),
        Some(Op::Load | Op::CompositeExtract | Op::GenericCastToPtrExplicit) => some(2, 3),
        Some(Op::Store | Op::CopyMemory) => some(0, 2),
        Some(Op::CopyMemorySized) => some(0, 3),
        Some(Op::LifetimeStart | Op::LifetimeStop) => some(0, 1),
        Some(Op::CompositeInsert | Op::VectorShuffle) => some(2, 4),
        Some(Op::FunctionCall) => rest(3),
        Some(Op::ExtInst) => rest(4),
        Some(
            Op::GroupIAdd
            | Op::GroupFAdd
            | Op::GroupFMin
            | Op::GroupUMin
            | Op::GroupSMin
            | Op::GroupFMax
            | Op::GroupUMax
            | Op::GroupSMax
            | Op::GroupIMulKHR
            | Op::GroupFMulKHR
            | Op::GroupBitwiseAndKHR
            | Op::GroupBitwiseOrKHR
            | Op::GroupBitwiseXorKHR
            | Op::GroupLogicalAndKHR
            | Op::GroupLogicalOrKHR
            | Op::GroupLogicalXorKHR
            | Op::GroupNonUniformIAdd
            | Op::GroupNonUniformFAdd
            | Op::GroupNonUniformIMul
            | Op::GroupNonUniformFMul
            | Op::GroupNonUniformSMin
            | Op::GroupNonUniformUMin
            | Op::GroupNonUniformFMin
            | Op::GroupNonUniformSMax
            | Op::GroupNonUniformUMax
            | Op::GroupNonUniformFMax
            | Op::GroupNonUniformBitwiseAnd
            | Op::GroupNonUniformBitwiseOr
            | Op::GroupNonUniformBitwiseXor
            | Op::GroupNonUniformLogicalAnd
            | Op::GroupNonUniformLogicalOr
            | Op::GroupNonUniformLogicalXor
            | Op::GroupNonUniformBallotBitCount,
        ) => rest(4),
        Some(_) => match instruction.result() {
            Some(_) => rest(2),
            None => rest(0),
        },
    }
}

/// Writes out an entry with everything that it calls.
///
/// # Errors
/// A function calls itself, has values that are not supported, or is no function at all.
pub(super) fn body<'w>(module: &Module<'w>, entry: u32) -> Result<Body<'w>> {
    let mut expander = Expander {
        module,
        body: Body::default(),
        slots: vec![None],
        calls: Vec::new(),
        steps: 0,
    };
    expander.function(entry, &[], 0, None)?;
    let blocks: Option<Vec<_>> = std::mem::take(&mut expander.slots).into_iter().collect();
    expander.body.blocks = blocks.ok_or_else(|| Error::input("a block of a function is nowhere written"))?;
    Ok(expander.body)
}

/// Where a call goes on, and what takes the result.
#[derive(Clone, Copy)]
struct Continuation {
    block: BlockId,
    result: Option<Held>,
}

struct Expander<'m, 'w> {
    module: &'m Module<'w>,
    body: Body<'w>,
    slots: Vec<Option<Block<'w, Step<'w>>>>,
    calls: Vec<u32>,
    steps: usize,
}

/// A block that is being written.
struct Open<'w> {
    slot: BlockId,
    label: Option<u32>,
    steps: Vec<Step<'w>>,
    keeps_loop: bool,
}

/// A function that is being written.
struct Call<'w> {
    frame: u32,
    continuation: Option<Continuation>,
    labels: HashMap<u32, BlockId>,
    /// The block in which the code of each label ends.
    last: HashMap<u32, BlockId>,
    /// What blocks, by label, give to phis.
    handed: Vec<(u32, Register, Source, usize)>,
    open: Option<Open<'w>>,
    line: Option<Line>,
}

impl<'w> Expander<'_, 'w> {
    fn function(
        &mut self,
        id: u32,
        arguments: &[Operand],
        start: BlockId,
        continuation: Option<Continuation>,
    ) -> Result<()> {
        let name = self.module.name(id);
        let shown = || quoted(name.as_deref().unwrap_or("a function without a name"));
        if self.calls.contains(&id) {
            return Err(Error::input(format!("function {} calls itself", shown()))
                .accepted("functions that end without calling themselves: they are written out where they are called"));
        }
        let function = self.module.functions.get(&id).copied();
        let function = function
            .filter(|function| function.has_body)
            .ok_or_else(|| Error::input(format!("function {} has no body in this module", shown())))?;
        self.calls.push(id);
        let instructions: Vec<Instruction<'w>> = words::instructions(self.module.words, function.start)
            .take_while(|one| !matches!(one, Ok(one) if one.at >= function.end))
            .collect::<Result<_>>()?;
        let mut call = Call {
            frame: self.body.frames.len() as u32,
            continuation,
            labels: HashMap::new(),
            last: HashMap::new(),
            handed: Vec::new(),
            open: None,
            line: None,
        };
        let is_entry = self.calls.len() == 1;
        self.declare(&mut call, &instructions, arguments, start)
            .and_then(|()| {
                for instruction in &instructions {
                    self.instruction(&mut call, *instruction)
                        .map_err(|error| error.at(format!("byte {}", instruction.byte())))?;
                }
                self.hand(&call)
            })
            .map_err(|error| match is_entry {
                true => error,
                false => error.about(format!("in function {}", shown())),
            })?;
        self.calls.pop();
        Ok(())
    }

    /// Gives registers to all ids that a function defines, and blocks to its labels.
    fn declare(
        &mut self,
        call: &mut Call<'w>,
        instructions: &[Instruction<'w>],
        arguments: &[Operand],
        start: BlockId,
    ) -> Result<()> {
        let mut frame = HashMap::new();
        let mut given = Vec::new();
        for instruction in instructions {
            let at = |error: Error| error.at(format!("byte {}", instruction.byte()));
            match instruction.op {
                Some(Op::Label) => {
                    let label = instruction.word(0)?;
                    let slot = match call.labels.is_empty() {
                        true => start,
                        false => self.slot(),
                    };
                    call.labels.insert(label, slot);
                }
                Some(Op::Function) => {}
                _ => {
                    let Some(id) = instruction.result().filter(|_| instruction.has_type()) else {
                        continue;
                    };
                    let held = self.hold(instruction.word(0)?).map_err(at)?;
                    frame.insert(id, held);
                    if instruction.op == Some(Op::FunctionParameter) {
                        given.push((id, held));
                    }
                }
            }
        }
        self.body.frames.push(frame);
        if call.continuation.is_none() {
            self.body.parameters = given
                .into_iter()
                .map(|(id, held)| Parameter {
                    id,
                    held,
                    name: self.module.name(id),
                })
                .collect();
            return Ok(());
        }
        if given.len() != arguments.len() {
            return Err(Error::input(format!(
                "a function of {} parameters is called with {} arguments",
                given.len(),
                arguments.len()
            )));
        }
        let mut copies = Vec::new();
        for ((id, held), &argument) in given.into_iter().zip(arguments) {
            copies.extend(self.copies(held, argument)?);
            // A wrapper's parameters have no names; those of what it wraps may.
            let passed = (argument.frame == 0)
                .then(|| self.body.parameters.iter_mut().find(|own| own.id == argument.id))
                .flatten();
            if let Some(parameter) = passed
                && parameter.name.is_none()
            {
                parameter.name = self.module.name(id);
            }
        }
        let step = copy(copies, instructions.first().map_or(0, |first| first.at), None);
        self.slots[start] = Some(Block {
            instructions: vec![step],
            end: End::Return,
            label: None,
            line: 0,
            keeps_loop: false,
        });
        Ok(())
    }

    fn slot(&mut self) -> BlockId {
        self.slots.push(None);
        self.slots.len() - 1
    }

    /// Registers for a value of a type.
    fn hold(&mut self, ty: u32) -> Result<Held> {
        let parts = self.module.parts(ty)?;
        let first = self.body.registers.len();
        if first + parts.len() > MOST_REGISTERS {
            return Err(too_many_values());
        }
        self.body.registers.extend(parts.iter().map(|&(_, ty)| ty));
        Ok(Held {
            first: first as Register,
            count: parts.len() as u32,
            ty,
        })
    }

    /// What gives each register of an id its part of an operand.
    fn copies(&self, to: Held, from: Operand) -> Result<Vec<(Register, Source)>> {
        let held = self.body.held(from);
        if held.is_some_and(|held| held.count != to.count) {
            return Err(Error::input("a value of one type is used as one of another"));
        }
        let source = |part: usize| match held {
            Some(held) => Source::Register(held.first + part as Register),
            None => Source::Part(from, part),
        };
        Ok(to
            .registers()
            .enumerate()
            .map(|(part, to)| (to, source(part)))
            .collect())
    }

    fn instruction(&mut self, call: &mut Call<'w>, instruction: Instruction<'w>) -> Result<()> {
        self.steps += 1;
        if self.steps > limits::OPERATIONS {
            return Err(
                Error::input("the entry and what it calls have too many instructions")
                    .accepted(format!("at most {}", limits::OPERATIONS)),
            );
        }
        let operand = |id: u32| Operand {
            frame: call.frame,
            id,
        };
        match instruction.op {
            Some(Op::Function | Op::FunctionParameter | Op::Nop | Op::SelectionMerge) => return Ok(()),
            Some(Op::FunctionEnd) => {
                return match call.open {
                    Some(_) => Err(Error::input("the last block of a function does not end")),
                    None => Ok(()),
                };
            }
            Some(Op::Line) => {
                call.line = Some((instruction.word(0)?, instruction.word(1)?, instruction.word(2)?));
                return Ok(());
            }
            Some(Op::NoLine) => {
                call.line = None;
                return Ok(());
            }
            Some(Op::Label) => {
                let label = instruction.word(0)?;
                if call.open.is_some() {
                    return Err(Error::input("a block starts where the one before has not ended"));
                }
                let slot = call.labels[&label];
                let begun = self.slots[slot].take();
                call.open = Some(Open {
                    slot,
                    label: Some(label),
                    steps: begun.map_or(Vec::new(), |block| block.instructions),
                    keeps_loop: false,
                });
                return Ok(());
            }
            _ => {}
        }
        let line = call.line;
        let Some(open) = &mut call.open else {
            return Err(Error::input(format!(
                "{} stands in no block",
                quoted(&instruction.name())
            )));
        };
        let target = |labels: &HashMap<u32, BlockId>, label: u32| {
            let found = labels.get(&label).copied();
            found
                .ok_or_else(|| Error::input(format!("a jump to %{label}, which is no block of the function")))
        };
        match instruction.op {
            Some(Op::LoopMerge) => {
                let control = LoopControl::from_bits_retain(instruction.word(2)?);
                open.keeps_loop |= control.contains(LoopControl::DONT_UNROLL);
            }
            Some(Op::Phi) => {
                let held = self.hold(instruction.word(0)?)?;
                let to = self.body.held(operand(instruction.word(1)?));
                let to = to.ok_or_else(|| Error::input("`OpPhi` defines nothing"))?;
                let copies = to.registers().zip(held.registers());
                let copies = copies.map(|(to, from)| (to, Source::Register(from))).collect();
                open.steps.push(copy(copies, instruction.at, line));
                let (pairs, rest) = instruction.rest(2).as_chunks::<2>();
                if !rest.is_empty() {
                    return Err(Error::input("`OpPhi` takes pairs of a value and a block"));
                }
                for &[value, parent] in pairs {
                    for (register, source) in self.copies(held, operand(value))? {
                        call.handed.push((parent, register, source, instruction.at));
                    }
                }
            }
            Some(Op::Branch) => {
                let to = target(&call.labels, instruction.word(0)?)?;
                self.close(call, End::Jump(to), instruction);
            }
            Some(Op::BranchConditional) => {
                let [then, otherwise] = [1, 2].map(|number| instruction.word(number));
                let (then, otherwise) = (target(&call.labels, then?)?, target(&call.labels, otherwise?)?);
                let condition = operand(instruction.word(0)?);
                let predicate = match self.body.held(condition) {
                    Some(held) if held.count == 1 => held.first,
                    Some(_) => return Err(Error::input("a branch takes one truth value")),
                    // A constant, which becomes a register for this.
                    None => {
                        let register = self.register(Type::Bool)?;
                        let copies = vec![(register, Source::Part(condition, 0))];
                        open.steps.push(copy(copies, instruction.at, line));
                        register
                    }
                };
                let end = End::Branch {
                    predicate,
                    then,
                    otherwise,
                };
                self.close(call, end, instruction);
            }
            Some(Op::Switch) => self.switch(call, instruction)?,
            Some(Op::Return | Op::ReturnValue) => {
                if let Some(continuation) = call.continuation {
                    if let (Some(result), Some(&value)) = (continuation.result, instruction.words.first()) {
                        let copies = self.copies(result, operand(value))?;
                        open.steps.push(copy(copies, instruction.at, line));
                    }
                    self.close(call, End::Jump(continuation.block), instruction);
                } else {
                    self.close(call, End::Return, instruction);
                }
            }
            // What is never reached may end as it likes.
            Some(Op::Unreachable) => self.close(call, End::Return, instruction),
            Some(Op::FunctionCall) => {
                let callee = instruction.word(2)?;
                let known = self.module.functions.get(&callee);
                let name = self.module.name(callee);
                let builtin = name.is_some_and(|name| is_builtin(&name));
                if known.is_some_and(|function| function.has_body) && !builtin {
                    return self.call(call, instruction, callee);
                }
                self.plain(call, instruction);
            }
            None => return Err(refused(&instruction)),
            _ => self.plain(call, instruction),
        }
        Ok(())
    }

    fn register(&mut self, ty: Type) -> Result<Register> {
        if self.body.registers.len() >= MOST_REGISTERS {
            return Err(too_many_values());
        }
        self.body.registers.push(ty);
        Ok((self.body.registers.len() - 1) as Register)
    }

    fn plain(&mut self, call: &mut Call<'w>, instruction: Instruction<'w>) {
        let frame = &self.body.frames[call.frame as usize];
        let held = ids(&instruction).into_iter().filter_map(|id| frame.get(&id));
        let reads = held.flat_map(|held| held.registers()).collect();
        let written = instruction.result().and_then(|id| frame.get(&id));
        let writes = written.map_or(Vec::new(), |held| held.registers().collect());
        if let Some(open) = &mut call.open {
            open.steps.push(Step {
                what: What::Plain(instruction, call.frame),
                reads,
                writes,
                at: instruction.at,
                line: call.line,
            });
        }
    }

    fn call(&mut self, call: &mut Call<'w>, instruction: Instruction<'w>, callee: u32) -> Result<()> {
        let operand = |id: u32| Operand {
            frame: call.frame,
            id,
        };
        let arguments: Vec<Operand> = instruction.rest(3).iter().map(|&id| operand(id)).collect();
        let (start, behind) = (self.slot(), self.slot());
        let result = self.body.held(operand(instruction.word(1)?));
        let label = call.open.as_ref().and_then(|open| open.label);
        self.close(call, End::Jump(start), instruction);
        let continuation = Continuation {
            block: behind,
            result,
        };
        self.function(callee, &arguments, start, Some(continuation))?;
        call.open = Some(Open {
            slot: behind,
            label,
            steps: Vec::new(),
            keeps_loop: false,
        });
        Ok(())
    }

    fn switch(&mut self, call: &mut Call<'w>, instruction: Instruction<'w>) -> Result<()> {
        let selector = Operand {
            frame: call.frame,
            id: instruction.word(0)?,
        };
        let wide = match self.body.held(selector) {
            Some(held) => self.body.registers.get(held.first as usize).copied(),
            None => Some(self.module.one(self.module.global(selector.id)?.word(0)?)?),
        };
        let wide = wide
            .ok_or_else(|| Error::input("`OpSwitch` takes a number"))?
            .bits()
            == 64;
        let words = if wide { 3 } else { 2 };
        let cases = instruction.rest(2);
        if !cases.len().is_multiple_of(words) {
            return Err(Error::input("`OpSwitch` takes pairs of a number and a block"));
        }
        let target = |label: u32| {
            let found = call.labels.get(&label).copied();
            found
                .ok_or_else(|| Error::input(format!("a jump to %{label}, which is no block of the function")))
        };
        let otherwise = target(instruction.word(1)?)?;
        let mut chain = Vec::new();
        for case in cases.chunks_exact(words) {
            let number = match wide {
                true => u64::from(case[0]) | u64::from(case[1]) << 32,
                false => u64::from(case[0]),
            };
            chain.push((number, target(case[words - 1])?));
        }
        // Cases that lead where everything leads need no test.
        chain.retain(|&(_, to)| to != otherwise);
        if chain.is_empty() {
            self.close(call, End::Jump(otherwise), instruction);
            return Ok(());
        }
        let line = call.line;
        for (position, &(number, to)) in chain.iter().enumerate() {
            let register = self.register(Type::Bool)?;
            let step = Step {
                what: What::Case(register, selector, number),
                reads: self
                    .body
                    .held(selector)
                    .map_or(Vec::new(), |held| vec![held.first]),
                writes: vec![register],
                at: instruction.at,
                line,
            };
            self.steps += 1;
            if self.steps > limits::OPERATIONS {
                return Err(Error::input(
                    "the entry and what it calls have too many instructions",
                ));
            }
            let next = match position + 1 == chain.len() {
                true => otherwise,
                false => self.slot(),
            };
            if let Some(open) = &mut call.open {
                open.steps.push(step);
            }
            let end = End::Branch {
                predicate: register,
                then: to,
                otherwise: next,
            };
            self.close(call, end, instruction);
            if next != otherwise {
                call.open = Some(Open {
                    slot: next,
                    label: None,
                    steps: Vec::new(),
                    keeps_loop: false,
                });
            }
        }
        Ok(())
    }

    /// Ends the open block.
    fn close(&mut self, call: &mut Call<'w>, end: End, instruction: Instruction<'w>) {
        let Some(open) = call.open.take() else { return };
        if let Some(label) = open.label {
            call.last.insert(label, open.slot);
        }
        let first = open
            .label
            .filter(|label| call.labels.get(label) == Some(&open.slot));
        self.slots[open.slot] = Some(Block {
            instructions: open.steps,
            end,
            label: first.map(|label| Cow::Owned(self.label(label))),
            line: u32::try_from(instruction.byte()).unwrap_or(u32::MAX),
            keeps_loop: open.keeps_loop,
        });
    }

    /// What a block is called.
    fn label(&self, label: u32) -> String {
        match self.module.name(label) {
            Some(name) => super::plain(&name),
            None => format!("L{label}"),
        }
    }

    /// Lets blocks give to the phis behind them.
    fn hand(&mut self, call: &Call<'w>) -> Result<()> {
        let mut by_block: HashMap<BlockId, (Vec<(Register, Source)>, usize)> = HashMap::new();
        for &(parent, register, source, at) in &call.handed {
            let Some(&block) = call.last.get(&parent) else {
                return Err(Error::input(format!(
                    "`OpPhi` names %{parent}, which is no block of the function"
                ))
                .at(format!("byte {}", at * 4)));
            };
            let copies = by_block.entry(block).or_insert_with(|| (Vec::new(), at));
            copies.0.push((register, source));
        }
        for (block, (copies, at)) in by_block {
            if let Some(block) = &mut self.slots[block] {
                block.instructions.push(copy(copies, at, None));
            }
        }
        Ok(())
    }
}

fn too_many_values() -> Error {
    Error::input("the entry and what it calls have too many values")
        .accepted(format!("at most {MOST_REGISTERS} numbers and pointers"))
}

/// A step that gives registers what others hold.
pub(super) fn copy<'w>(copies: Vec<(Register, Source)>, at: usize, line: Option<Line>) -> Step<'w> {
    let reads = copies.iter().filter_map(|(_, source)| match source {
        Source::Register(register) => Some(*register),
        Source::Part(..) => None,
    });
    Step {
        reads: reads.collect(),
        writes: copies.iter().map(|&(register, _)| register).collect(),
        what: What::Copy(copies),
        at,
        line,
    }
}
