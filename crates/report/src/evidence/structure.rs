//! Static structure of a kernel: its loads in loops, and which of them may be fetched early.

use std::collections::HashMap;

use crate::ir::{Kernel, Label, OpKind};
use crate::prefetch::plan::{Distance, Strategy, StrategyKind};
use crate::prefetch::{self, Candidate, Plan};

/// A load in a loop.
#[derive(Clone, Debug, PartialEq)]
pub struct LoopLoad {
    /// As plans name it.
    pub name: String,
    /// Where it is written.
    pub place: String,
    /// Where its loop is written.
    pub loop_place: String,
    /// The loads that its address depends on in the same loop, as plans name them; the first of a chain first.
    pub chain: Vec<String>,
    /// Bytes that a work-item reads.
    pub bytes: u32,
    /// How often it stands in that loop: more than once where a compiler unrolled it.
    pub copies: u32,
    /// Why it cannot be fetched early, if it cannot.
    pub refusal: Option<String>,
}

/// The loads of global memory in a kernel's loops.
pub fn loop_loads(kernel: &Kernel) -> Vec<LoopLoad> {
    let mut places: HashMap<Label, String> = HashMap::new();
    kernel.body.walk(&mut |op| {
        if let OpKind::Loop { label, .. } = &op.kind {
            places.insert(*label, kernel.describe_place(op.place));
        }
    });
    let all = prefetch::candidates(kernel);
    let found = |candidate: &Candidate| LoopLoad {
        name: candidate.name.to_string(),
        place: candidate.place.clone(),
        loop_place: places.get(&candidate.looped).cloned().unwrap_or_default(),
        chain: chain(candidate, &all),
        bytes: candidate.bytes,
        copies: candidate.copies,
        refusal: refusal(kernel, candidate),
    };
    all.iter().map(found).collect()
}

/// Why a load cannot be fetched even one iteration early, if it cannot: the refusal of a register ring, which needs nothing but
/// an address.
fn refusal(kernel: &Kernel, candidate: &Candidate) -> Option<String> {
    let distance = Distance::new(1).ok()?;
    let plan = Plan::none().with(
        candidate.name.clone(),
        Strategy::new(StrategyKind::RollingRegisters, distance),
    );
    let applied = prefetch::apply(kernel, &plan.ok()?, &prefetch::PlanTarget::default());
    // The place is that of the load, which is told beside it.
    applied.err().map(|error| error.what().to_owned())
}

/// The loads that lead to a load's address, each behind those that lead to its own.
fn chain(candidate: &Candidate, all: &[Candidate]) -> Vec<String> {
    fn collect<'c>(candidate: &'c Candidate, all: &'c [Candidate], found: &mut Vec<&'c Candidate>) {
        for parent in all.iter().filter(|other| other.looped == candidate.looped) {
            let is_known = parent.id == candidate.id || found.iter().any(|known| known.id == parent.id);
            if candidate.parents.contains(&parent.id) && !is_known {
                // Known before its own parents are looked at: a load may lead to itself in the next iteration.
                let at = found.len();
                found.push(parent);
                collect(parent, all, found);
                let parent = found.remove(at);
                found.push(parent);
            }
        }
    }
    let mut found = Vec::new();
    collect(candidate, all, &mut found);
    let others = found.iter().filter(|parent| parent.id != candidate.id);
    others.map(|parent| parent.name.to_string()).collect()
}

impl LoopLoad {
    /// Its address chain as the documents write it: `indices → values`.
    pub fn whole_chain(&self) -> String {
        let names: Vec<&str> = self.chain.iter().map(String::as_str).collect();
        names
            .into_iter()
            .chain([self.name.as_str()])
            .collect::<Vec<_>>()
            .join(" → ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_is_told_from_its_first_load_on() {
        let text = include_str!("../../../../headstart/tests/in/chain.hsir");
        let kernel = crate::ir::read(text, "chain.hsir").expect("a kernel");
        let loads = loop_loads(&kernel);
        let last = loads.iter().max_by_key(|load| load.chain.len()).expect("loads");
        assert!(last.chain.len() >= 2, "{loads:?}");
        assert!(last.whole_chain().ends_with(&format!("→ {}", last.name)));
        assert!(last.place.contains("chain"), "{}", last.place);
        assert!(!last.loop_place.is_empty());
    }
}
