//! Statements: loops, switches, and what is done together.

use super::{Next, Translator};
use crate::front::lang::record::tree::{Node, TargetId};
use crate::ir::{
    CacheUse, CompareOp, Kernel, LoopWishes, Meeting, MemoryOrder, MemoryScope, OpKind, ShuffleOp, Value,
    VoteOp,
};
use crate::source::tree::{Exchange, Loop, Statement, Switch};

impl Translator<'_> {
    pub(super) fn statement(&mut self, statement: &Statement) {
        match statement {
            Statement::Assign(variable, value) => {
                let value = self.expr(value);
                self.write(*variable, value);
            }
            Statement::Point(variable, pointer) => {
                let value = self.pointer(pointer);
                self.write(*variable, value);
            }
            Statement::Store(pointer, index, value) => {
                let value = self.expr(value);
                let at = self.address(pointer, index);
                let cache = match self.program.is_volatile(pointer) {
                    true => CacheUse::Volatile,
                    false => CacheUse::Default,
                };
                let values = vec![value];
                let kind = OpKind::store(at, values, cache);
                self.build(|b| {
                    b.push(kind, &[]);
                });
            }
            Statement::If(condition, then, otherwise) => self.conditional(condition, then, otherwise),
            Statement::Loop(looped) | Statement::Wait(looped) => self.looped(looped),
            Statement::Switch(switch) => self.switch(switch),
            Statement::Block(label, body) => self.block(|translator, target| {
                translator.of_label.insert(*label, target);
                translator.statements(body);
            }),
            Statement::Leave(label) => self.leave(self.of_label[label]),
            Statement::Next(label) => match self.next_of[label].clone() {
                Next::Behind(target) => self.leave(target),
                Next::Here(target, looped) => self.end_iteration(&looped, target),
            },
            Statement::Return => self.nodes.push(Node::Return {
                place: Kernel::NOWHERE,
            }),
            Statement::Barrier => self.build(|b| b.barrier()),
            Statement::Shuffle(to, exchange, value, by, mask) => {
                let value = self.expr(value);
                let op = match exchange {
                    Exchange::Index => ShuffleOp::Index,
                    Exchange::Up => ShuffleOp::Up,
                    Exchange::Down => ShuffleOp::Down,
                    Exchange::Xor => ShuffleOp::Xor,
                };
                let (by, mask) = (self.expr(by), self.mask(*mask));
                let value = self.build(|b| b.shuffle_among(op, value, by, mask));
                self.write(*to, value);
            }
            Statement::Ballot(to, condition, mask) => {
                let truth = self.truth(condition);
                let mask = self.mask(*mask);
                let value = self.build(|b| b.vote_among(VoteOp::Ballot, truth, mask));
                self.write(*to, value);
            }
            Statement::Meet(mask) => {
                let mask = self.mask(Some(*mask));
                self.build(|b| b.meet(Meeting::SubGroup(mask)));
            }
            Statement::Aside(_) => {}
            Statement::Fence => {
                self.build(|b| b.fence(MemoryOrder::AcquireRelease, MemoryScope::Device));
            }
        }
    }

    fn mask(&mut self, mask: Option<usize>) -> Option<Value> {
        mask.map(|mask| self.read(mask))
    }

    pub(super) fn looped(&mut self, looped: &Loop) {
        let target = self.target();
        self.of_label.insert(looped.label, target);
        let body = self.body(|translator| {
            if let Some(condition) = &looped.before {
                translator.jump(condition, false, target);
            }
            if translator.style.steps_inside {
                let next = Next::Here(target, looped.clone());
                translator.next_of.insert(looped.label, next);
                translator.statements(&looped.body);
                translator.end_iteration(looped, target);
            } else {
                translator.block(|translator, next| {
                    translator.next_of.insert(looped.label, Next::Behind(next));
                    translator.statements(&looped.body);
                });
                translator.end_iteration(looped, target);
            }
        });
        self.nodes.push(Node::Loop {
            target,
            body,
            place: Kernel::NOWHERE,
            name: Some(format!("loop{}", looped.label)),
            wishes: LoopWishes::default(),
        });
    }

    pub(super) fn end_iteration(&mut self, looped: &Loop, target: TargetId) {
        self.statements(&looped.step);
        if let Some(condition) = &looped.after {
            self.jump(condition, false, target);
        }
        let place = Kernel::NOWHERE;
        self.nodes.push(Node::Next { target, place });
    }

    /// The case's number decides how far in front of the end the switch is entered: blocks inside each other, each left
    /// to the case behind it.
    pub(super) fn switch(&mut self, switch: &Switch) {
        let on = self.expr(&switch.on);
        let out = self.target();
        self.of_label.insert(switch.label, out);
        let body =
            self.body(|translator| translator.cases(switch, on, out, switch.cases.len(), &mut Vec::new()));
        let place = Kernel::NOWHERE;
        self.nodes.push(Node::Block {
            target: out,
            body,
            place,
        });
    }

    /// Enters the first `count` cases: the dispatch is inside all of their blocks.
    pub(super) fn cases(
        &mut self,
        switch: &Switch,
        on: Value,
        out: TargetId,
        count: usize,
        entries: &mut Vec<(Option<u32>, TargetId)>,
    ) {
        let Some(last) = count.checked_sub(1) else {
            let cases = entries.clone();
            for &(case, target) in cases.iter().rev() {
                let Some(value) = case else { continue };
                let equal = self.build(|b| {
                    let value = b.i32(value as i32);
                    b.compare(CompareOp::Eq, on, value)
                });
                self.branch(equal, |translator| translator.leave(target), |_| {});
            }
            let default = cases.iter().find(|(case, _)| case.is_none());
            self.leave(default.map_or(out, |&(_, target)| target));
            return;
        };
        let (case, body) = &switch.cases[last];
        self.block(|translator, target| {
            entries.push((*case, target));
            translator.cases(switch, on, out, last, entries);
        });
        self.statements(body);
    }
}
