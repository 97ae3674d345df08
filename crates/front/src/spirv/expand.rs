//! The body of an entry: its blocks with those of the functions that it calls, and the registers of each id.
//!
//! ```text
//! before                              after
//! %a = OpPhi %float %x %B0 %y %B1     B0: …; a' ← x       B1: …; a' ← y       B2: a ← a'; …
//! %r = OpFunctionCall %float %f %a    p ← a; jump f's first block;  …its blocks, which end with r ← their result…
//! OpSwitch %n %default 1 %one         c ← (n = 1); branch c → one, default
//! ```
//!
//! An id becomes as many registers as its type has numbers and pointers. Each call has ids of its own. A phi has two sets of
//! registers, one written by the jumps and one read by the block, so that neither the order of several phis nor another exit of
//! the preceding block matters.

mod ends;

use std::collections::HashMap;

use rspirv::spirv::{LoopControl, Op};

use super::body::{BlockStep, Body, Held, Line, Operand, Parameter, Source, What, copy};
use super::module::Module;
use super::operands::{ids, is_builtin};
use super::words::{self, Instruction, refused};
use crate::error::{Error, Result};
use crate::ir::{Type, limits};
use crate::middle::Register;
use crate::middle::flow::{Block, BlockId, End};
use crate::suggest::quoted;

/// Most registers of a body.
const MOST_REGISTERS: usize = 1 << 18;

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

/// Where execution continues after a call, and the register of its result.
#[derive(Clone, Copy)]
struct Continuation {
    block: BlockId,
    result: Option<Held>,
}

struct Expander<'m, 'w> {
    module: &'m Module<'w>,
    body: Body<'w>,
    slots: Vec<Option<Block<'w, BlockStep<'w>>>>,
    calls: Vec<u32>,
    steps: usize,
}

/// A block that is being written.
struct Open<'w> {
    slot: BlockId,
    label: Option<u32>,
    steps: Vec<BlockStep<'w>>,
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
            // A wrapper's parameters have no names; those of the wrapped function may.
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
            start: None,
            last: None,
            line: 0,
            keeps_loop: false,
            is_copied: false,
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
                Error::input("the entry and its callees have too many instructions")
                    .accepted(format!("at most {}", limits::OPERATIONS)),
            );
        }
        match instruction.op {
            Some(Op::Function | Op::FunctionParameter | Op::Nop | Op::SelectionMerge) => Ok(()),
            Some(Op::FunctionEnd) => match call.open {
                Some(_) => Err(Error::input("the last block of a function does not end")),
                None => Ok(()),
            },
            Some(Op::Line) => {
                call.line = Some((instruction.word(0)?, instruction.word(1)?, instruction.word(2)?));
                Ok(())
            }
            Some(Op::NoLine) => {
                call.line = None;
                Ok(())
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
                Ok(())
            }
            _ => self.in_block(call, instruction),
        }
    }

    fn in_block(&mut self, call: &mut Call<'w>, instruction: Instruction<'w>) -> Result<()> {
        let operand = |id: u32| Operand {
            frame: call.frame,
            id,
        };
        let line = call.line;
        let Some(open) = &mut call.open else {
            return Err(Error::input(format!(
                "{} is outside all blocks",
                quoted(&instruction.name())
            )));
        };
        let target = |labels: &HashMap<u32, BlockId>, label: u32| {
            let found = labels.get(&label).copied();
            found.ok_or_else(|| {
                Error::input(format!(
                    "a jump to %{label}, which is not a block of the function"
                ))
            })
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
            // Unreachable code may end in any way.
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
            open.steps.push(BlockStep {
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

    /// Lets blocks give to the phis behind them.
    fn hand(&mut self, call: &Call<'w>) -> Result<()> {
        let mut by_block: HashMap<BlockId, (Vec<(Register, Source)>, usize)> = HashMap::new();
        for &(parent, register, source, at) in &call.handed {
            let Some(&block) = call.last.get(&parent) else {
                return Err(Error::input(format!(
                    "`OpPhi` names %{parent}, which is not a block of the function"
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
    Error::input("the entry and its callees have too many values")
        .accepted(format!("at most {MOST_REGISTERS} numbers and pointers"))
}
