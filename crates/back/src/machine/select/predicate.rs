//! Small ifs become predicates.
//!
//! Before: `if c { x = load p; yield x } else { yield 0 }`
//! After:  `x = 0; @c x = load p`. Pure operations run on all lanes, memory accesses only on lanes where the condition holds.
//! Results are selected, or loaded into the register that already has the other side's value.

use super::super::arithmetic::{Cost, cost, select_recipe};
use super::super::draft::{Draft, Virtual};
use super::super::program::{Class, Guard, InstructionStep};
use super::Selector;
use super::moves::passed;
use crate::ir::{Op, OpKind, Region, Type, Value};

/// The most instructions that ptxas would rather predicate than jump over.
const MOST: usize = 10;

impl Selector<'_, '_> {
    /// Whether an `if` is small and simple enough.
    pub(crate) fn is_predicable(&self, op: &Op) -> bool {
        let OpKind::If {
            label,
            then,
            otherwise,
            ..
        } = &op.kind
        else {
            return false;
        };
        let mut total = op.results.len();
        for region in [then, otherwise] {
            let stays =
                matches!(region.terminator(), Some(Op { kind: OpKind::Break(to, _), .. }) if to == label);
            match (stays, self.small(region)) {
                (true, Some(count)) => total += count,
                _ => return false,
            }
        }
        total <= MOST
    }

    /// The instructions of a region that can be predicated.
    fn small(&self, region: &Region) -> Option<usize> {
        let mut total = 0;
        for op in &region.ops {
            // Under a predicate a group might not be closed.
            if op
                .results
                .iter()
                .any(|result| self.facts.commits.contains(result))
            {
                return None;
            }
            total += match &op.kind {
                OpKind::Load { .. }
                | OpKind::Store { .. }
                | OpKind::Copy { .. }
                | OpKind::Prefetch { .. }
                    if self.facts.target.rules.predicated_messages =>
                {
                    1
                }
                OpKind::Join(_) | OpKind::Break(..) => 0,
                kind if kind.is_pure() => match cost(self.facts, &self.fused, op) {
                    Cost::Free => 0,
                    Cost::Narrow => 4,
                    Cost::Recipe(recipe) => {
                        if recipe.steps.iter().any(|step| step.class == Class::Branch) {
                            return None;
                        }
                        recipe.steps.len()
                    }
                },
                _ => return None,
            };
        }
        Some(total)
    }

    /// Writes an `if` with predicates.
    pub(crate) fn predicated(&mut self, op: &Op) {
        let OpKind::If {
            cond,
            then,
            otherwise,
            ..
        } = &op.kind
        else {
            return;
        };
        let condition = self.read(*cond, op.place);
        let sides = [(then, passed(then)), (otherwise, passed(otherwise))];

        // A value that one side loads is loaded into the result, which has the other side's already.
        let mut shared: Vec<Option<Virtual>> = vec![None; op.results.len()];
        for (side, (region, values)) in sides.iter().enumerate() {
            for (at, &value) in values.iter().enumerate() {
                let other = sides[1 - side].1[at];
                if shared[at].is_none()
                    && self.is_loaded_for(value, region)
                    && !defined_in(other, sides[1 - side].0)
                {
                    let register = self.register(self.facts.width(op.results[at]));
                    self.moves(vec![(register, other)], op.place);
                    self.registers[value] = vec![register];
                    shared[at] = Some(register);
                }
            }
        }
        for (side, (region, _)) in sides.iter().enumerate() {
            let guard = Guard {
                value: *cond,
                holds: side == 0,
            };
            self.predicate = Some((guard, condition.clone()));
            for op in &region.ops {
                match &op.kind {
                    OpKind::Break(..) => {}
                    kind if kind.is_pure() => self.pure(op),
                    _ => self.memory(op),
                }
            }
            self.predicate = None;
        }
        for (at, &result) in op.results.iter().enumerate() {
            let (a, b) = (sides[0].1[at], sides[1].1[at]);
            let chosen = Op::new(OpKind::Select(*cond, a, b), vec![result], op.place);
            let step = InstructionStep::Op(chosen);
            let is_token = self.facts.kernel.ty(result) == Type::Token;
            if let (Some(register), false) = (shared[at], is_token) {
                self.registers[result] = vec![register];
                self.emit(Draft {
                    steps: vec![step],
                    ..Draft::new(Class::None, op.place)
                });
                continue;
            }
            if is_token {
                let mut registers = self.read(a, op.place);
                registers.extend(self.read(b, op.place));
                self.registers[result] = registers;
                self.emit(Draft {
                    steps: vec![step],
                    ..Draft::new(Class::None, op.place)
                });
                self.commit(result, op.place);
                continue;
            }
            let operands = [condition.clone(), self.read(a, op.place), self.read(b, op.place)];
            let recipe = select_recipe(self.facts, result);
            let register = self.register_of(result);
            self.recipe(&recipe, &operands, register, (result, step), op.place);
        }
    }

    /// Whether a value is loaded in this region, for nothing but to be passed on.
    fn is_loaded_for(&self, value: Value, region: &Region) -> bool {
        let loaded = region
            .ops
            .iter()
            .any(|op| matches!(op.kind, OpKind::Load { .. }) && op.results[..] == [value]);
        loaded && self.facts.uses[value].len() == 1
    }
}

fn defined_in(value: Value, region: &Region) -> bool {
    region.ops.iter().any(|op| op.results.contains(&value))
}
