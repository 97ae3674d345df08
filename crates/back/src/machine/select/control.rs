//! Blocks, ifs, loops and jumps.
//!
//! A jump costs an instruction unless the code lies so that nothing has to be jumped over: the last
//! region of an `if` falls through, and a region that only leaves is where the condition jumps to.

use std::collections::BTreeMap;

use cranelift_entity::EntitySet;

use super::super::draft::{Draft, Virtual};
use super::super::matrix;
use super::super::program::{Class, Control, InstructionStep};
use super::super::target::Family;
use super::{EnclosingScope, Selector};
use crate::ir::{Label, Op, OpKind, Place, Region, Value};

/// How a region came out.
pub(crate) struct Written {
    /// Whether it holds instructions before its jump.
    charged: bool,
    /// Its jump.
    jump: usize,
}

impl Selector<'_, '_> {
    /// A region with everything in it.
    pub(crate) fn region(&mut self, region: &Region) -> Written {
        let start = self.drafts.len();
        let constants = self.wide_constants.clone();
        let widened = self.widened.clone();
        let mut ops = region.ops.iter().peekable();
        while let Some(op) = ops.next() {
            match ops.peek() {
                Some(next) if self.is_latch(op, next) => {
                    self.latch(op, next);
                    break;
                }
                _ => self.op(op),
            }
        }
        // Values built inside are not available on every path behind it.
        self.wide_constants = constants;
        self.widened = widened;
        let jump = self.drafts.len() - 1;
        let charged = self.drafts[start..jump]
            .iter()
            .any(|draft| draft.class != Class::None && draft.move_.is_none());
        Written { charged, jump }
    }

    fn op(&mut self, op: &Op) {
        match &op.kind {
            OpKind::Block { label, body } => {
                self.block(op, *label, body);
                self.commit_results(op);
            }
            OpKind::If {
                label,
                then,
                otherwise,
                ..
            } => {
                if self.is_predicable(op) {
                    self.predicated(op);
                } else {
                    let exits = leaves(then, *label) || leaves(otherwise, *label);
                    self.branch(op, exits);
                    self.commit_results(op);
                }
            }
            OpKind::Loop { .. } => self.loop_(op),
            OpKind::Break(label, values) => self.break_(*label, values, op.place),
            OpKind::Continue(label, values) => {
                self.pass_to_next(*label, values, &[], op.place);
                self.continue_(*label, values, op.place);
            }
            OpKind::Return | OpKind::Trap => {
                let control = Control::Return;
                self.emit(Draft {
                    class: Class::Exit,
                    ..Draft::marker(control, op.place)
                });
            }
            kind if kind.is_pure() => self.pure(op),
            _ => self.memory(op),
        }
    }

    /// Closes the groups of tokens that come out of regions.
    fn commit_results(&mut self, op: &Op) {
        for &result in &op.results {
            self.commit(result, op.place);
        }
    }

    fn block(&mut self, op: &Op, label: Label, body: &Region) {
        let depth = self.open(op, label, Vec::new());
        self.emit(Draft::marker(Control::Block { depth, end: 0 }, op.place));
        let written = self.region(body);
        let own = Control::Break { depth };
        if self.drafts[written.jump].control != own {
            self.charge_jump(&written);
        }
        self.scopes.pop();
        self.emit(Draft::marker(Control::End { depth }, op.place));
    }

    /// An `if` with jumps. `exits`: one side only leaves for good, so the lanes need not meet again.
    fn branch(&mut self, op: &Op, exits: bool) {
        let OpKind::If {
            label,
            cond,
            then,
            otherwise,
        } = &op.kind
        else {
            return;
        };
        let parts = !exits && self.facts.divergence.parts(*label);
        let nvidia = self.facts.target.family == Family::Nvidia;
        if parts && nvidia {
            self.emit(Draft::new(Class::Reconverge, op.place));
        }
        let uses = self.read(*cond, op.place);
        let depth = self.open(op, *label, Vec::new());
        let control = Control::If {
            depth,
            cond: *cond,
            otherwise: 0,
            end: 0,
        };
        self.emit(Draft {
            class: Class::Branch,
            uses,
            ..Draft::marker(control, op.place)
        });
        let first = self.region(then);
        let between = self.drafts.len();
        self.emit(Draft::marker(Control::Else { depth, end: 0 }, op.place));
        let second = self.region(otherwise);
        self.scopes.pop();
        // Jumps that something lies in the way of.
        let own = Control::Break { depth };
        let leaves = self.drafts[first.jump].control != own;
        if leaves || (second.charged && nvidia) {
            self.charge_jump(&first);
        } else if second.charged {
            // Intel's `else` is an instruction.
            self.drafts[between].class = Class::Branch;
        }
        if self.drafts[second.jump].control != own {
            self.charge_jump(&second);
        }
        let end = Draft::marker(Control::End { depth }, op.place);
        let class = if parts { Class::Reconverge } else { Class::None };
        self.emit(Draft { class, ..end });
    }

    /// A region's jump costs an instruction, if the region holds others; a region that is only a jump
    /// is where the condition jumps to.
    fn charge_jump(&mut self, written: &Written) {
        let jump = &mut self.drafts[written.jump];
        if written.charged && jump.class == Class::None {
            jump.class = Class::Branch;
        }
    }

    fn loop_(&mut self, op: &Op) {
        let OpKind::Loop {
            label,
            params,
            initial,
            body,
            ..
        } = &op.kind
        else {
            return;
        };
        let parts = self.facts.divergence.parts(*label);
        if parts && self.facts.target.family == Family::Nvidia {
            self.emit(Draft::new(Class::Reconverge, op.place));
        }
        let mut moves = Vec::new();
        for (&param, &start) in params.iter().zip(initial) {
            moves.push((self.register_of(param), start));
        }
        self.moves(moves, op.place);
        let depth = self.open(op, *label, params.clone());
        let assign = params.iter().copied().zip(initial.iter().copied()).collect();
        let marker = Draft::marker(Control::Loop { depth, end: 0 }, op.place);
        self.emit(Draft {
            steps: steps_of(assign),
            ..marker
        });
        let written = self.region(body);
        let jump = &mut self.drafts[written.jump];
        // Back to the top, unless the loop's own test does that.
        if jump.control == (Control::Continue { depth }) && jump.class == Class::None && !jump.latched {
            jump.class = Class::Branch;
        }
        self.scopes.pop();
        let end = Draft::marker(Control::EndLoop { depth, body: 0 }, op.place);
        let class = if parts { Class::Reconverge } else { Class::None };
        self.emit(Draft { class, ..end });
    }

    /// Whether two operations are a loop's test at the bottom: `if c { break } ; continue`.
    fn is_latch(&self, op: &Op, next: &Op) -> bool {
        let OpKind::If {
            label,
            then,
            otherwise,
            ..
        } = &op.kind
        else {
            return false;
        };
        let stays = |region: &Region| matches!(&region.ops[..], [Op { kind: OpKind::Break(to, values), .. }] if to == label && values.is_empty());
        matches!(next.kind, OpKind::Continue(..))
            && ((leaves(then, *label) && stays(otherwise)) || (leaves(otherwise, *label) && stays(then)))
    }

    /// A loop's test at the bottom is one conditional jump. The moves to the next iteration go in front of it, where they can
    /// be scheduled with the rest; ptxas keeps copies of the old values that the exit needs.
    fn latch(&mut self, op: &Op, next: &Op) {
        let (OpKind::If { then, otherwise, .. }, OpKind::Continue(label, values)) = (&op.kind, &next.kind)
        else {
            return;
        };
        let leaving = || [then, otherwise].into_iter().flat_map(|region| &region.ops);
        let read_elsewhere = self.copied_for_leaving(*label, leaving(), next.place);
        let kept = self.kept_for_leaving(*label, values, leaving());
        self.pass_to_next(*label, values, &kept, next.place);
        self.branch(op, true);
        for (value, registers) in read_elsewhere {
            self.registers[value] = registers;
        }
        self.continue_(*label, values, next.place);
        // IGC leaves a loop by one jump, and goes back by another.
        let jumps_back = self.facts.target.family == Family::Intel;
        if let Some(jump) = self.drafts.last_mut() {
            jump.latched = !jumps_back;
        }
    }

    /// Copies the loop's parameters that operations in front of a jump out of it read, and has them read the copies. Gives the
    /// values that are read there and where they are else.
    fn copied_for_leaving<'o>(
        &mut self,
        label: Label,
        leaving: impl Iterator<Item = &'o Op>,
        place: Place,
    ) -> Vec<(Value, Vec<Virtual>)> {
        let mut read: Vec<Value> = Vec::new();
        for op in leaving {
            op.kind.for_each_operand(|operand| read.push(operand));
        }
        read.sort_unstable();
        read.dedup();
        let mut elsewhere: BTreeMap<Value, Vec<Virtual>> = BTreeMap::new();
        for param in self.scope(label).params.clone() {
            let register = self.registers[param][0];
            let readers: Vec<Value> = read
                .iter()
                .copied()
                .filter(|&value| self.registers[value].contains(&register))
                .collect();
            if readers.is_empty() || self.virtuals[register].is_token {
                continue;
            }
            let copy = self.register(self.virtuals[register].width);
            self.copy(copy, register, place);
            for value in readers {
                let registers = &mut self.registers[value];
                elsewhere.entry(value).or_insert_with(|| registers.clone());
                for own in registers.iter_mut().filter(|own| **own == register) {
                    *own = copy;
                }
            }
        }
        elsewhere.into_iter().collect()
    }

    /// ptxas gives a value that goes on in the next iteration, and is wanted behind the loop as well, two registers, unless
    /// it was made from the value before: a move, in front of the jump, which waits for it.
    fn kept_for_leaving<'o>(
        &self,
        label: Label,
        values: &[Value],
        leaving: impl Iterator<Item = &'o Op>,
    ) -> Vec<Virtual> {
        if !self.facts.target.rules.leaving_values_apart {
            return Vec::new();
        }
        let mut wanted: Vec<Value> = Vec::new();
        for op in leaving {
            if let OpKind::Break(_, values) = &op.kind {
                wanted.extend(values);
            }
        }
        let params = self.scope(label).params.clone();
        let kept = params.iter().zip(values).filter(|&(&param, &value)| {
            wanted.contains(&value) && self.facts.kind(value).is_some() && !self.is_made_from(value, param)
        });
        kept.map(|(&param, _)| self.registers[param][0]).collect()
    }

    /// Whether a value is made from a parameter of a loop, by arithmetic in between if by anything.
    fn is_made_from(&self, value: Value, param: Value) -> bool {
        let kernel = self.facts.kernel;
        let mut looked_at: EntitySet<Value> = EntitySet::new();
        let mut to_look_at: Vec<Value> = Vec::new();
        if let Some(kind) = self.facts.kind(value) {
            kind.for_each_operand(|operand| to_look_at.push(operand));
        }
        while let Some(value) = to_look_at.pop() {
            if value == param {
                return true;
            }
            if kernel.ty(value) != kernel.ty(param) || !looked_at.insert(value) {
                continue;
            }
            if let Some(kind) = self.facts.kind(value).filter(|kind| is_arithmetic(kind)) {
                kind.for_each_operand(|operand| to_look_at.push(operand));
            }
        }
        false
    }

    fn break_(&mut self, label: Label, values: &[Value], place: Place) {
        let results = self.scope(label).results.clone();
        let moves = results
            .iter()
            .map(|&result| self.registers[result][0])
            .zip(values.iter().copied());
        self.moves(moves.collect(), place);
        let assign = results.into_iter().zip(values.iter().copied()).collect();
        let depth = self.depth(label);
        self.emit(Draft {
            steps: steps_of(assign),
            ..Draft::marker(Control::Break { depth }, place)
        });
    }

    /// The registers of a loop's parameters get their next values; those of `kept` do so by a move in any case.
    fn pass_to_next(&mut self, label: Label, values: &[Value], kept: &[Virtual], place: Place) {
        let params = self.scope(label).params.clone();
        let moves = params
            .iter()
            .map(|&param| self.registers[param][0])
            .zip(values.iter().copied());
        self.moves_apart(moves.collect(), kept, place);
    }

    fn continue_(&mut self, label: Label, values: &[Value], place: Place) {
        let params = self.scope(label).params.clone();
        let assign = params.into_iter().zip(values.iter().copied()).collect();
        let depth = self.depth(label);
        self.emit(Draft {
            steps: steps_of(assign),
            ..Draft::marker(Control::Continue { depth }, place)
        });
    }

    /// Opens a scope, with registers for its results.
    fn open(&mut self, op: &Op, label: Label, params: Vec<Value>) -> u32 {
        for &result in &op.results {
            self.register_of(result);
        }
        let depth = self.scopes.len() as u32;
        self.scopes.push(EnclosingScope {
            label,
            results: op.results.clone(),
            params,
        });
        depth
    }

    fn depth(&self, label: Label) -> u32 {
        let at = self.scopes.iter().rposition(|scope| scope.label == label);
        at.expect("a verified kernel jumps to labels around") as u32
    }

    fn scope(&self, label: Label) -> &EnclosingScope {
        &self.scopes[self.depth(label) as usize]
    }
}

/// Whether an operation computes a value from others: products of matrices do, too.
fn is_arithmetic(kind: &OpKind) -> bool {
    match kind {
        OpKind::Opaque(what, _) => matrix::product(what).is_some(),
        kind => kind.is_pure(),
    }
}

/// Whether a region is only a jump out of its `if`, and the values that it passes: such an `if` need not reconverge the lanes.
fn leaves(region: &Region, own: Label) -> bool {
    let Some((last, before)) = region.ops.split_last() else {
        return false;
    };
    let jumps = match last.kind {
        OpKind::Continue(..) | OpKind::Return | OpKind::Trap => true,
        OpKind::Break(to, _) => to != own,
        _ => false,
    };
    jumps
        && before
            .iter()
            .all(|op| matches!(op.kind, OpKind::Wait(_)) || op.kind.is_pure())
}

/// The step that passes values, if there are any.
fn steps_of(mut assign: Vec<(Value, Value)>) -> Vec<InstructionStep> {
    assign.retain(|(to, from)| to != from);
    if assign.is_empty() {
        Vec::new()
    } else {
        vec![InstructionStep::Assign(assign)]
    }
}
