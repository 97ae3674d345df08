//! How blocks end: a switch as a chain of branches, and what a block is once it is closed.

use std::borrow::Cow;

use super::{Call, Expander, Open};
use crate::error::{Error, Result};
use crate::ir::{Type, limits};
use crate::middle::flow::{Block, End};
use crate::spirv::body::{BlockStep, Operand, What};
use crate::spirv::words::Instruction;

impl<'w> Expander<'_, 'w> {
    pub(super) fn switch(&mut self, call: &mut Call<'w>, instruction: Instruction<'w>) -> Result<()> {
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
            found.ok_or_else(|| {
                Error::input(format!(
                    "a jump to %{label}, which is not a block of the function"
                ))
            })
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
            let step = BlockStep {
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
                    "the entry and its callees have too many instructions",
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
    pub(super) fn close(&mut self, call: &mut Call<'w>, end: End, instruction: Instruction<'w>) {
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
            start: None,
            last: None,
            line: u32::try_from(instruction.byte()).unwrap_or(u32::MAX),
            keeps_loop: open.keeps_loop,
            is_copied: false,
        });
    }

    /// What a block is called.
    fn label(&self, label: u32) -> String {
        match self.module.name(label) {
            Some(name) => crate::spirv::plain(&name),
            None => format!("L{label}"),
        }
    }
}
