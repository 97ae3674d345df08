//! Regions: branches and loops; `small_ifs` has the `if`s that need neither.
//!
//! # Loops
//!
//! Most loops start with a test that leaves them. Such a loop is turned around: the test is written
//! before the loop and again at its end, so that an iteration has one branch.
//!
//! ```text
//!     params = initial
//!     test                        // the operations in front of the `if`
//!     @done bra exit
//! body:
//!     …
//!     params = next
//!     test
//!     @!done bra body
//! exit:
//!     results = what `Break` passes
//! ```
//!
//! A directive keeps the driver's compiler from unrolling: unrolling is the plan's decision.

use super::emitter::{Emitter, Guard, PtxScope};
use super::loop_exits::{LeadingTest, ends_with_continue, leading_test, trailing_test};
use super::registers::Class;
use super::small_ifs::are_small;
use crate::Result;
use crate::ir::{CutEdge, Label, LoopWishes, Op, OpKind, Region, UnrollWish, Value};

/// Where control goes when the text that is being written ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Behind this construct.
    Exit(Label),
    /// To the next iteration of this loop.
    Iteration(Label),
    /// Nowhere.
    Nothing,
}

impl<'k> Emitter<'k> {
    /// Writes a region.
    pub(super) fn region(&mut self, region: &'k Region, next: Next) -> Result<()> {
        let Some((terminator, ops)) = region.ops.split_last() else {
            return Ok(());
        };
        for op in ops {
            self.op(op)?;
        }
        // Behind the way to the loop as it was, and a loop that its copies alone leave, comes nothing.
        let leaves = |op: &Op| match op.kind {
            OpKind::Block { label, .. } => matches!(self.kernel.labels[label].edge, Some(CutEdge::Leave(_))),
            OpKind::Loop { label, ref body, .. } => !body.breaks_to(label),
            _ => false,
        };
        if !(self.within.is_some() && ops.last().is_some_and(leaves)) {
            self.terminator(terminator, next);
        }
        Ok(())
    }

    fn terminator(&mut self, op: &'k Op, next: Next) {
        match &op.kind {
            OpKind::Break(label, values) => {
                let scope = self.scopes[label].clone();
                self.assign(&scope.results, values);
                if next != Next::Exit(*label) {
                    self.branch(&scope.exit, None);
                }
            }
            OpKind::Continue(label, values) => {
                let scope = self.scopes[label].clone();
                self.assign(&scope.params, values);
                if next != Next::Iteration(*label) {
                    self.branch(&scope.next, None);
                }
            }
            OpKind::Trap => {
                self.ins("trap");
                self.ins("ret");
            }
            _ => {
                self.wait_for_scratch();
                self.ins("ret");
            }
        }
    }

    /// Copies into the scratch words must not outlive the work-group.
    pub(super) fn wait_for_scratch(&mut self) {
        if self.scratch.is_some() {
            self.ins("cp.async.wait_all");
        }
    }

    /// Assigns values to others, all at once.
    fn assign(&mut self, targets: &[Value], values: &[Value]) {
        let mut moves: Vec<(Class, String, String)> = Vec::new();
        for (&target, &value) in targets.iter().zip(values) {
            let Some(class) = Class::of(self.ty(target)) else {
                continue;
            };
            let (to, from) = (self.register(target), self.operand(value));
            if to != from {
                moves.push((class, to, from));
            }
        }
        // A move is ready when no other still reads its target. The remaining ones are cycles: one value of each is saved.
        while !moves.is_empty() {
            let ready = moves
                .iter()
                .position(|(_, to, _)| moves.iter().filter(|(_, _, from)| from == to).count() == 0);
            let (class, to, from) = match ready {
                Some(index) => moves.remove(index),
                None => {
                    let (class, to, from) = moves.remove(0);
                    let aside = self.temporary(class);
                    self.ins(format!("mov.{} {aside}, {to}", class.ptx()));
                    for (_, _, source) in moves.iter_mut().filter(|(_, _, source)| *source == to) {
                        source.clone_from(&aside);
                    }
                    (class, to, from)
                }
            };
            self.ins(format!("mov.{} {to}, {from}", class.ptx()));
        }
    }

    /// Whether going to a label with these values needs no moves.
    fn needs_no_moves(&mut self, terminator: &OpKind) -> bool {
        let (targets, values) = match terminator {
            OpKind::Break(label, values) => (self.scopes[label].results.clone(), values),
            OpKind::Continue(label, values) => (self.scopes[label].params.clone(), values),
            _ => return false,
        };
        targets.iter().zip(values).all(|(&target, &value)| {
            Class::of(self.ty(target)).is_none() || self.register(target) == self.operand(value)
        })
    }

    /// Writes a block, `if` or loop.
    pub(super) fn construct(&mut self, op: &'k Op) -> Result<()> {
        match &op.kind {
            OpKind::Block { label, body } => {
                if let (Some(edge), Some(within)) = (self.kernel.labels[*label].edge, self.within) {
                    self.edge(op, edge, within);
                    return Ok(());
                }
                self.open(*label, op, &[], "end");
                self.join_results(op);
                self.region(body, Next::Exit(*label))?;
                let exit = self.scopes[label].exit.clone();
                self.label_if_used(&exit);
            }
            OpKind::If {
                label,
                cond,
                then,
                otherwise,
            } => {
                if are_small(self.kernel, [then, otherwise], *label) && self.tokens_stay_open(op) {
                    self.without_branch(op, *cond, then, otherwise)?;
                } else {
                    self.open(*label, op, &[], "end");
                    self.join_results(op);
                    self.branching(*label, *cond, then, otherwise)?;
                }
            }
            OpKind::Loop {
                label,
                params,
                initial,
                body,
                wishes,
            } => {
                self.open(*label, op, params, "exit");
                self.join_params(body, *label, op, params);
                self.assign(params, initial);
                match leading_test(self.kernel, body, *label) {
                    Some(test) if trailing_test(body, *label).is_none() => {
                        self.turned_loop(*label, body, &test, wishes)?;
                    }
                    _ => self.plain_loop(*label, body, wishes)?,
                }
            }
            _ => unreachable!("only blocks, ifs and loops are constructs"),
        }
        Ok(())
    }

    fn open(&mut self, label: Label, op: &Op, params: &[Value], suffix: &str) {
        let name = self.kernel.labels[label]
            .name
            .clone()
            .unwrap_or_else(|| match op.kind {
                OpKind::Loop { .. } => "loop".to_owned(),
                OpKind::If { .. } => "if".to_owned(),
                _ => "block".to_owned(),
            });
        let exit = self.new_label(&format!("{name}_{suffix}"));
        let next = if params.is_empty() && suffix == "end" {
            String::new()
        } else {
            self.new_label(&format!("{name}_next"))
        };
        let scope = PtxScope {
            results: op.results.clone(),
            params: params.to_vec(),
            exit,
            next,
        };
        self.scopes.insert(label, scope);
    }

    fn branching(
        &mut self,
        label: Label,
        cond: Value,
        then: &'k Region,
        otherwise: &'k Region,
    ) -> Result<()> {
        let register = self.operand(cond);
        let exit = self.scopes[&label].exit.clone();
        // A side that only goes elsewhere is a branch under the predicate.
        for (side, other, negated) in [(then, otherwise, false), (otherwise, then, true)] {
            if let [terminator] = &side.ops[..]
                && let OpKind::Break(to, _) | OpKind::Continue(to, _) = &terminator.kind
                && self.needs_no_moves(&terminator.kind)
            {
                let scope = &self.scopes[to];
                let target = if matches!(terminator.kind, OpKind::Break(..)) {
                    &scope.exit
                } else {
                    &scope.next
                }
                .clone();
                self.branch(&target, Some(&Guard { register, negated }));
                self.region(other, Next::Exit(label))?;
                self.label_if_used(&exit);
                return Ok(());
            }
        }
        let otherwise_label = self.new_label("else");
        self.branch(
            &otherwise_label,
            Some(&Guard {
                register,
                negated: true,
            }),
        );
        self.region(then, Next::Nothing)?;
        self.label(&otherwise_label);
        self.region(otherwise, Next::Exit(label))?;
        self.label_if_used(&exit);
        Ok(())
    }

    // Loops.

    /// Says that no other compiler is to unroll this loop: the plan, or the author, decided. Imported loops that no plan
    /// touched are left to it, as they were.
    fn keep_loop(&mut self, wishes: &LoopWishes) {
        if wishes.unroll != Some(UnrollWish::Auto) {
            self.ins(".pragma \"nounroll\"");
        }
    }

    fn plain_loop(&mut self, label: Label, body: &'k Region, wishes: &LoopWishes) -> Result<()> {
        let PtxScope {
            exit,
            next,
            results,
            params,
            ..
        } = self.scopes[&label].clone();
        self.label(&next);
        self.keep_loop(wishes);
        let Some(test) = trailing_test(body, label) else {
            self.region(body, Next::Nothing)?;
            self.label_if_used(&exit);
            return Ok(());
        };
        for op in test.before.iter().chain(test.after) {
            self.op(op)?;
        }
        // A value that shares its register with a passed value is already there.
        let param_of = |value: Value| test.continued.iter().position(|&other| other == value);
        let mut own: (Vec<Value>, Vec<Value>) = (Vec::new(), Vec::new());
        for (&result, &left) in results.iter().zip(test.left) {
            let shared = param_of(left).is_some_and(|param| {
                Class::of(self.ty(result)).is_some() && self.register(params[param]) == self.register(result)
            });
            if !shared {
                own.0.push(result);
                own.1.push(left);
            }
        }
        let (results, left) = own;
        // What leaves the loop may be a parameter, and is then saved from the next iteration's.
        let clobbered = left.iter().any(|value| params.contains(value));
        if clobbered {
            self.assign(&results, &left);
        }
        let mut register = self.operand(test.cond);
        if params.contains(&test.cond) {
            let aside = self.temporary(Class::Predicate);
            self.ins(format!("mov.pred {aside}, {register}"));
            register = aside;
        }
        self.assign(&params, test.continued);
        self.branch(
            &next,
            Some(&Guard {
                register,
                negated: !test.continues_if,
            }),
        );
        if !clobbered {
            self.assign(&results, &left);
        }
        self.label_if_used(&exit);
        Ok(())
    }

    fn turned_loop(
        &mut self,
        label: Label,
        body: &'k Region,
        test: &LeadingTest<'k>,
        wishes: &LoopWishes,
    ) -> Result<()> {
        let PtxScope { exit, next, .. } = self.scopes[&label].clone();
        let name = self.kernel.labels[label]
            .name
            .clone()
            .unwrap_or_else(|| "loop".to_owned());
        let start = self.new_label(&name);
        let leave = self.new_label(&format!("{name}_done"));
        for op in test.ops {
            self.op(op)?;
        }
        let register = self.operand(test.cond);
        let leaves = Guard {
            register,
            negated: !test.leaves_if,
        };
        self.branch(&leave, Some(&leaves));
        self.label(&start);
        self.keep_loop(wishes);
        let continues = match test.staying {
            Some((own, staying)) => {
                // The loop's body is the side of the `if` that stays.
                let scope = PtxScope {
                    exit: self.new_label("unreachable"),
                    ..PtxScope::default()
                };
                self.scopes.insert(own, scope);
                self.region(staying, Next::Iteration(label))?;
                ends_with_continue(staying, label)
            }
            None => {
                // Nothing is in that side; the loop's body follows the `if`.
                let (terminator, rest) = body.ops[test.ops.len() + 1..]
                    .split_last()
                    .expect("regions have terminators");
                for op in rest {
                    self.op(op)?;
                }
                self.terminator(terminator, Next::Iteration(label));
                ends_with_continue(body, label)
            }
        };
        self.label_if_used(&next);
        if continues || self.is_branched_to(&next) {
            for op in test.ops {
                self.op(op)?;
            }
            self.branch(
                &start,
                Some(&Guard {
                    negated: !leaves.negated,
                    ..leaves
                }),
            );
        }
        self.label(&leave);
        let results = self.scopes[&label].results.clone();
        self.assign(&results, test.values);
        self.label_if_used(&exit);
        Ok(())
    }

    // Small `if`s.

    /// Whether no group is closed inside this `if`: under a predicate it might be missed.
    fn tokens_stay_open(&self, op: &'k Op) -> bool {
        let mut open = true;
        for region in op.kind.regions() {
            region.walk(&mut |inner| {
                open &= !inner
                    .results
                    .iter()
                    .any(|&result| self.groups.commits_after(result));
            });
        }
        open
    }

    /// The guard that holds where the current one and `predicate` hold.
    pub(super) fn also(&mut self, predicate: String) -> Guard {
        let Some(outer) = self.guard.clone() else {
            return Guard {
                register: predicate,
                negated: false,
            };
        };
        let both = self.temporary(Class::Predicate);
        let outer = self.positive(&outer);
        self.ins(format!("and.pred {both}, {outer}, {predicate}"));
        Guard {
            register: both,
            negated: false,
        }
    }

    fn positive(&mut self, guard: &Guard) -> String {
        if !guard.negated {
            return guard.register.clone();
        }
        let not = self.temporary(Class::Predicate);
        self.ins(format!("not.pred {not}, {}", guard.register));
        not
    }

    /// Gives a register a value, for where no load under a predicate does.
    pub(super) fn zero(&mut self, class: Class, register: &str) {
        self.ins(format!("mov.{} {register}, {}", class.ptx(), class.zero()));
    }
}
