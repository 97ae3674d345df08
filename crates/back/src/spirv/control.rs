//! Regions become blocks of a flow graph.
//!
//! ```text
//! %r = if %c {            branch %c, %then, %otherwise
//!   break %x              %then:      … branch %exit
//! } else {                %otherwise: … branch %exit
//!   break %y              %exit:      %r = phi (%x from %then, %y from %otherwise)
//! }
//!
//! %r = loop (%p = %a) {   %head: %p = phi (%a from in front, %n from %next)
//!   …                            loop-merge %exit %next, branch %body
//!   break %x              %body: … branch %exit
//!   continue %b           …       branch %next
//! }                       %next: %n = phi (%b from …), branch %head
//!                         %exit: %r = phi (%x from …)
//! ```
//!
//! OpenCL's modules need not be structured, so `break` and `continue` to any label are jumps. Loops have one block
//! that goes around, which is where a compiler looks for its wish not to be unrolled: plans have unrolled already, or
//! decided not to.

use rspirv::dr::{Instruction, Operand};
use rspirv::spirv::{LoopControl, Op as Code, Word};

use super::emitter::Emitter;
use crate::Result;
use crate::ir::{Label, Op, OpKind, Region, Type, Value};

/// Where `Break` and `Continue` of a label go.
pub(super) struct SpirvScope<'k> {
    exit: Arrival<'k>,
    next: Option<Arrival<'k>>,
}

/// A block that is reached from several others, with values.
struct Arrival<'k> {
    label: Word,
    /// The target of the values.
    targets: &'k [Value],
    /// The blocks that jump here, each with its values.
    from: Vec<(Word, Vec<Word>)>,
}

impl<'k> Arrival<'k> {
    fn new(label: Word, targets: &'k [Value]) -> Arrival<'k> {
        Arrival {
            label,
            targets,
            from: Vec::new(),
        }
    }
}

impl<'k> Emitter<'k> {
    /// Writes a region into the open block, up to the terminator; unreachable code is left out.
    pub(super) fn region(&mut self, region: &'k Region) -> Result<()> {
        for op in &region.ops {
            if !self.module.is_open() {
                return Ok(());
            }
            match &op.kind {
                OpKind::Block { .. } | OpKind::If { .. } | OpKind::Loop { .. } => self.construct(op)?,
                OpKind::Break(label, values) => self.leave(*label, values, false),
                OpKind::Continue(label, values) => self.leave(*label, values, true),
                OpKind::Return | OpKind::Trap => self.module.close(Code::Return, Vec::new()),
                _ => self.op(op)?,
            }
        }
        Ok(())
    }

    fn construct(&mut self, op: &'k Op) -> Result<()> {
        let Some(label) = op.kind.label() else {
            return Ok(());
        };
        let exit = self.module.new_id();
        let scope = SpirvScope {
            exit: Arrival::new(exit, &op.results),
            next: None,
        };
        self.scopes.insert(label, scope);
        match &op.kind {
            OpKind::Block { body, .. } => self.region(body)?,
            OpKind::If {
                cond,
                then,
                otherwise,
                ..
            } => {
                let cond = self.id(*cond);
                let [yes, no] = [self.module.new_id(), self.module.new_id()];
                let operands = [cond, yes, no].map(Operand::IdRef).to_vec();
                self.module.close(Code::BranchConditional, operands);
                for (label, side) in [(yes, then), (no, otherwise)] {
                    self.module.begin(label);
                    self.region(side)?;
                }
            }
            OpKind::Loop {
                params,
                initial,
                body,
                ..
            } => self.repeat(label, params, initial, body)?,
            _ => {}
        }
        self.arrive(label);
        Ok(())
    }

    /// A jump out of a label's construct, or around it.
    fn leave(&mut self, label: Label, values: &[Value], around: bool) {
        let ids = values.iter().map(|&value| self.id(value)).collect();
        let here = self.module.here();
        let Some(scope) = self.scopes.get_mut(&label) else {
            return;
        };
        let target = match (around, &mut scope.next) {
            (true, Some(next)) => next,
            _ => &mut scope.exit,
        };
        target.from.push((here, ids));
        let to = target.label;
        self.module.branch(to);
    }

    /// Opens the block after a construct, if anything jumps there.
    fn arrive(&mut self, label: Label) {
        let Some(scope) = self.scopes.remove(&label) else {
            return;
        };
        let Arrival {
            label: exit,
            targets,
            from,
        } = scope.exit;
        // An unreachable block is left out, and must not have a name either.
        if from.is_empty() {
            return;
        }
        if let Some(name) = &self.kernel.labels[label].name {
            self.module.name(exit, &format!("{name}_done"));
        }
        self.module.begin(exit);
        let ids = self.phis(targets, &from);
        for (&target, id) in targets.iter().zip(ids) {
            if self.ty(target) != Type::Token {
                self.set(target, id);
            }
        }
    }

    /// Writes the phis for the values of several blocks, in front of an open block's instructions; gives their ids.
    fn phis(&mut self, targets: &[Value], from: &[(Word, Vec<Word>)]) -> Vec<Word> {
        let mut ids = Vec::new();
        for (position, &target) in targets.iter().enumerate() {
            let ty = self.ty(target);
            if ty == Type::Token {
                ids.push(0);
                continue;
            }
            let operands = from
                .iter()
                .flat_map(|(block, values)| [Operand::IdRef(values[position]), Operand::IdRef(*block)]);
            let operands = operands.collect();
            let ty = self.ty_id(ty);
            ids.push(self.module.make(Code::Phi, ty, operands));
        }
        ids
    }

    fn repeat(
        &mut self,
        label: Label,
        params: &'k [Value],
        initial: &[Value],
        body: &'k Region,
    ) -> Result<()> {
        let first: Vec<Word> = initial.iter().map(|&value| self.id(value)).collect();
        let before = self.module.here();
        let [head, start, next] = [(); 3].map(|()| self.module.new_id());
        if let Some(name) = &self.kernel.labels[label].name {
            self.module.name(head, name);
        }
        let mut exit = 0;
        if let Some(scope) = self.scopes.get_mut(&label) {
            scope.next = Some(Arrival::new(next, params));
            exit = scope.exit.label;
        }
        self.module.branch(head);
        self.module.begin(head);
        let block = self.module.block();
        let ids: Vec<Word> = params.iter().map(|_| self.module.new_id()).collect();
        for (&param, &id) in params.iter().zip(&ids) {
            if self.ty(param) != Type::Token {
                self.set(param, id);
            }
        }
        self.module.branch(start);
        self.module.begin(start);
        self.region(body)?;

        // The back edge, and the values that the loop's first block gets from it.
        let around = self.scopes.get_mut(&label).and_then(|scope| scope.next.take());
        let around = around.filter(|next| !next.from.is_empty());
        let again = around.map(|around| {
            self.module.begin(next);
            let again = self.phis(params, &around.from);
            self.module.branch(head);
            again
        });
        let mut front = Vec::new();
        for (position, &param) in params.iter().enumerate() {
            if self.ty(param) == Type::Token {
                continue;
            }
            let mut operands = vec![Operand::IdRef(first[position]), Operand::IdRef(before)];
            if let Some(again) = &again {
                operands.extend([Operand::IdRef(again[position]), Operand::IdRef(next)]);
            }
            let ty = self.ty_id(self.ty(param));
            front.push(Instruction::new(
                Code::Phi,
                Some(ty),
                Some(ids[position]),
                operands,
            ));
        }
        let leaves = self
            .scopes
            .get(&label)
            .is_some_and(|scope| !scope.exit.from.is_empty());
        if again.is_some() && leaves {
            let operands = vec![
                Operand::IdRef(exit),
                Operand::IdRef(next),
                Operand::LoopControl(LoopControl::DONT_UNROLL),
            ];
            front.push(Instruction::new(Code::LoopMerge, None, None, operands));
        }
        self.module.put_in_front(block, front);
        Ok(())
    }
}
