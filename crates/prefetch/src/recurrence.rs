//! A second copy of a recurrence, as far ahead as the loads whose addresses it makes.
//!
//! ```text
//! before                      after, D = 2
//! loop (%s = %a) {            %s1 = f(%a);  %s2 = f(%s1)
//!   %x = load g(%s)           loop (%s = %a, %far = %s2, …) {
//!   use %x                      %y = load g(%far)
//!   continue f(%s)              use %x
//! }                             continue f(%s), f(%far), …
//!                             }
//! ```
//! Random numbers, a ray's way through a grid, hashes that roll: each iteration makes the next one's numbers from its own by
//! arithmetic alone. Without the copy each early address would take D steps anew.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::early::Early;
use super::fetch::Fetch;
use super::plan::{Carried, Strategy};
use crate::analysis::loops::{LoadSite, LoopSummary, Step};
use crate::error::{Error, Result};
use crate::ir::{Builder, LoadId, OpKind, Value};

/// Most operations in front of a loop that bring a recurrence to its distance.
const MOST_STEPS: usize = 4096;

/// The copies of recurrences that the loads of a loop need, one for each distance.
pub(super) fn copies(summary: &LoopSummary, strategies: &HashMap<LoadId, Strategy>) -> Vec<Box<dyn Fetch>> {
    let mut at: BTreeMap<u32, (LoadSite, HashSet<Value>)> = BTreeMap::new();
    for site in &summary.loads {
        let rolls = |strategy: &&Strategy| {
            !matches!(strategy.carried(), Carried::InBatches | Carried::InBatchesOfSlots)
        };
        let Some(strategy) = strategies.get(&site.id).filter(rolls) else {
            continue;
        };
        let wanted = [site.pointer]
            .into_iter()
            .chain(site.conditions.iter().map(|(cond, _)| *cond));
        let params = recurring(summary, wanted);
        if !params.is_empty() {
            let none = LoadSite {
                results: Vec::new(),
                ..site.clone()
            };
            let copy = at
                .entry(strategy.distance().get())
                .or_insert((none, HashSet::new()));
            copy.1.extend(params);
        }
    }
    let copy = |(distance, (site, wanted)): (u32, (LoadSite, HashSet<Value>))| {
        let params = summary
            .params
            .iter()
            .copied()
            .filter(|param| wanted.contains(param))
            .collect();
        let operations = summary.inside.len();
        Box::new(Recurrence {
            site,
            params,
            distance,
            operations,
        }) as Box<dyn Fetch>
    };
    at.into_iter().map(copy).collect()
}

/// The parameters behind some values that follow from themselves, and those that follow from such.
fn recurring(summary: &LoopSummary, values: impl Iterator<Item = Value>) -> HashSet<Value> {
    let behind = |param: Value| made_of(summary, next_of(summary, param).into_iter());
    let mut all = made_of(summary, values);
    let turns: HashSet<Value> = all
        .iter()
        .copied()
        .filter(|&param| behind(param).contains(&param))
        .collect();
    all.retain(|&param| turns.contains(&param) || !behind(param).is_disjoint(&turns));
    all
}

/// What a parameter becomes that arithmetic makes of others.
fn next_of(summary: &LoopSummary, param: Value) -> Option<Value> {
    let index = summary.params.iter().position(|&own| own == param)?;
    match summary.steps[index] {
        Step::Derived(next) => Some(next),
        _ => None,
    }
}

/// The derived parameters that values are made of, by however many iterations, and by no load.
fn made_of(summary: &LoopSummary, values: impl Iterator<Item = Value>) -> HashSet<Value> {
    let (mut seen, mut found, mut work) = (HashSet::new(), HashSet::new(), values.collect::<Vec<_>>());
    while let Some(value) = work.pop() {
        if !seen.insert(value) {
            continue;
        }
        if let Some(next) = next_of(summary, value) {
            found.insert(value);
            work.push(next);
        }
        let Some(inside) = summary.inside.get(&value) else {
            continue;
        };
        match &inside.yielded {
            _ if matches!(inside.kind, OpKind::Load { .. }) => {}
            Some(yielded) => yielded.for_each_value(inside.index, &mut |value| work.push(value)),
            None => inside.kind.for_each_operand(|operand| work.push(operand)),
        }
    }
    found
}

/// Parameters as they will be some iterations from now.
struct Recurrence {
    /// The load that needs them first, without results: it is fetched by another strategy.
    site: LoadSite,
    params: Vec<Value>,
    distance: u32,
    /// In the body.
    operations: usize,
}

impl Recurrence {
    /// The parameters some iterations ahead, each step from the one before.
    fn at(&self, early: &mut Early<'_>, b: &mut Builder<'_>, from: u32, to: u32) -> Result<Vec<Value>> {
        let mut values = Vec::new();
        for ahead in from..=to {
            let now = self.params.iter().map(|&param| early.value(b, param, ahead));
            values = now.collect::<Result<_>>()?;
        }
        Ok(values)
    }
}

impl Fetch for Recurrence {
    fn site(&self) -> &LoadSite {
        &self.site
    }

    fn prologue(&mut self, early: &mut Early<'_>, b: &mut Builder<'_>) -> Result<Vec<Value>> {
        if self.distance as usize * self.operations > MOST_STEPS {
            return Err(Error::usage(format!(
                "its address would be computed {} iterations ahead by as many copies of the loop's arithmetic",
                self.distance
            ))
            .accepted(format!("at most {} iterations ahead", MOST_STEPS / self.operations)));
        }
        self.at(early, b, 1, self.distance)
    }

    fn advance(
        &mut self,
        early: &mut Early<'_>,
        b: &mut Builder<'_>,
        state: &[Value],
        group: u32,
    ) -> Result<Vec<Value>> {
        for (&param, &value) in self.params.iter().zip(state) {
            early.know(param, self.distance, value);
        }
        self.at(early, b, self.distance + 1, self.distance + group)
    }

    fn replaces_load(&self) -> bool {
        false
    }
}
