//! Tokens of asynchronous copies to commit groups and counted waits.
//!
//! # What NVIDIA has
//!
//! A work-item's copies (`cp.async`) accumulate until `cp.async.commit_group` closes the group; [`commits`] chooses the place.
//! `cp.async.wait_group N` waits until at most the N latest groups are still in flight. Groups have no names, only counts, and
//! a group may be empty.
//!
//! # How waits are counted
//!
//! The *age* of a token is the number of groups closed since its own. A wait for a token of age N is
//! `wait_group N`. Ages are followed through the kernel as lower bounds, by a forward analysis in which
//! paths that meet take the lesser age: fewer groups allowed in flight means waiting for more, so a
//! lower bound is always correct. The constant token 0 is older than everything. Loops are repeated until
//! the ages no longer change; they only fall, and not below that of an open token, so this ends.

use std::collections::{HashMap, HashSet};

use crate::commits::{commits, labelled};
use crate::ir::{Kernel, Label, Op, OpKind, Region, Type, Value};

/// How a kernel's tokens become groups.
#[derive(Debug, Default)]
pub(super) struct Groups<'k> {
    /// Tokens after whose defining operation a group is closed.
    commit_after: HashSet<Value>,
    /// For each wait: at most this many groups stay in flight; `None` if nothing has to be waited for.
    waits: HashMap<Key<'k>, Option<u32>>,
}

/// An operation, by where it is kept.
#[derive(Clone, Copy, Debug)]
struct Key<'k>(&'k Op);

impl PartialEq for Key<'_> {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

impl Eq for Key<'_> {}

impl std::hash::Hash for Key<'_> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        std::ptr::hash(self.0, state);
    }
}

impl<'k> Groups<'k> {
    /// Plans the groups of a verified kernel.
    pub(super) fn of(kernel: &'k Kernel) -> Groups<'k> {
        let labelled = labelled(kernel);
        let commit_after = commits(kernel, &labelled);
        let mut ages = Ages {
            kernel,
            labelled,
            commit_after: &commit_after,
            leaving: HashMap::new(),
            waits: HashMap::new(),
        };
        ages.region(&kernel.body, Some(State::default()));
        let waits = ages.waits;
        Groups { commit_after, waits }
    }

    /// Whether a group is closed after the operation that defines this token.
    pub(super) fn commits_after(&self, token: Value) -> bool {
        self.commit_after.contains(&token)
    }

    /// The groups that a wait leaves in flight; `None` if nothing has to be waited for.
    pub(super) fn wait(&self, op: &'k Op) -> Option<u32> {
        self.waits.get(&Key(op)).copied().flatten()
    }
}

/// Of each live token, how many groups were closed since its own, at least. An open token has -1; one
/// that is not listed is complete.
#[derive(Clone, Debug, Default, PartialEq)]
struct State(HashMap<Value, i32>);

impl State {
    fn commit(&mut self) {
        self.0.values_mut().for_each(|age| *age += 1);
    }

    /// The state after two paths meet.
    fn meet(&mut self, other: &State) {
        for (&token, &age) in &other.0 {
            self.0
                .entry(token)
                .and_modify(|own| *own = (*own).min(age))
                .or_insert(age);
        }
    }

    fn set(&mut self, token: Value, age: Option<i32>) {
        match age {
            Some(age) => self.0.insert(token, age),
            None => self.0.remove(&token),
        };
    }
}

struct Ages<'a, 'k> {
    kernel: &'k Kernel,
    labelled: HashMap<Label, &'k Op>,
    commit_after: &'a HashSet<Value>,
    /// The values that leave to each label (`Break`) or go around it (`Continue`), so far.
    leaving: HashMap<(Label, bool), State>,
    waits: HashMap<Key<'k>, Option<u32>>,
}

impl<'k> Ages<'_, 'k> {
    /// Follows a region from this state; `None` where it cannot be reached.
    fn region(&mut self, region: &'k Region, mut state: Option<State>) {
        for op in &region.ops {
            let Some(now) = state.take() else { return };
            state = self.op(op, now);
        }
    }

    fn op(&mut self, op: &'k Op, mut state: State) -> Option<State> {
        match &op.kind {
            OpKind::Copy { .. } => state.set(op.results[0], Some(-1)),
            OpKind::Join(tokens) => {
                let latest = tokens
                    .iter()
                    .filter_map(|token| state.0.get(token))
                    .min()
                    .copied();
                state.set(op.results[0], latest);
            }
            OpKind::Wait(token) => {
                let in_flight = state.0.get(token).map(|&age| age.max(0));
                self.waits.insert(Key(op), in_flight.map(|age| age as u32));
                if let Some(in_flight) = in_flight {
                    state.0.retain(|_, age| *age < in_flight);
                }
            }
            OpKind::Block { label, body } => {
                self.region(body, Some(state));
                return self.arrive(op, *label);
            }
            OpKind::If {
                label,
                then,
                otherwise,
                ..
            } => {
                self.region(then, Some(state.clone()));
                self.region(otherwise, Some(state));
                return self.arrive(op, *label);
            }
            OpKind::Loop {
                label,
                params,
                initial,
                body,
                ..
            } => {
                let mut head = state;
                self.pass(&mut head, params, initial);
                loop {
                    self.leaving.remove(&(*label, true));
                    self.region(body, Some(head.clone()));
                    let mut next = head.clone();
                    if let Some(around) = self.leaving.remove(&(*label, true)) {
                        next.meet(&around);
                    }
                    if next == head {
                        break;
                    }
                    head = next;
                }
                return self.arrive(op, *label);
            }
            OpKind::Break(label, values) => {
                let targets = self.results(*label);
                self.leave((*label, false), state, targets, values);
                return None;
            }
            OpKind::Continue(label, values) => {
                let targets = self.params(*label);
                self.leave((*label, true), state, targets, values);
                return None;
            }
            OpKind::Return | OpKind::Trap => return None,
            _ => {}
        }
        self.close(op, &mut state);
        Some(state)
    }

    /// The results of a labelled operation.
    fn arrive(&mut self, op: &'k Op, label: Label) -> Option<State> {
        let mut state = self.leaving.remove(&(label, false))?;
        self.close(op, &mut state);
        Some(state)
    }

    fn close(&self, op: &Op, state: &mut State) {
        for token in &op.results {
            if self.commit_after.contains(token) {
                state.commit();
            }
        }
    }

    fn leave(&mut self, to: (Label, bool), mut state: State, targets: &[Value], values: &[Value]) {
        self.pass(&mut state, targets, values);
        match self.leaving.get_mut(&to) {
            Some(met) => met.meet(&state),
            None => {
                self.leaving.insert(to, state);
            }
        }
    }

    /// Gives each target the age of its value, all at once.
    fn pass(&self, state: &mut State, targets: &[Value], values: &[Value]) {
        let ages: Vec<Option<i32>> = values.iter().map(|value| state.0.get(value).copied()).collect();
        for (&target, age) in targets.iter().zip(ages) {
            if self.kernel.ty(target) == Type::Token {
                state.set(target, age);
            }
        }
    }

    fn results(&self, label: Label) -> &'k [Value] {
        self.labelled.get(&label).map_or(&[], |op| &op.results)
    }

    fn params(&self, label: Label) -> &'k [Value] {
        match self.labelled.get(&label).map(|op| &op.kind) {
            Some(OpKind::Loop { params, .. }) => params,
            _ => &[],
        }
    }
}
