//! Static structure of a kernel: its loads in loops, and which of them may be fetched early.

use std::collections::{HashMap, HashSet};

use crate::analysis::definitions::{Definition, Definitions};
use crate::analysis::loops::summarize;
use crate::error::Result;
use crate::ir::{Kernel, Label, LoadId, OpKind, Value};
use crate::prefetch::{Candidate, Loads};

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
    /// Whether its address follows from what a load of the loop read in an earlier iteration, as in a list; arithmetic alone, as a
    /// random number's, is no such chain.
    pub is_chained: bool,
}

/// The loads of global memory in a kernel's loops.
pub fn loop_loads(kernel: &Kernel) -> Vec<LoopLoad> {
    described(kernel, &Loads::of(kernel))
}

/// A kernel's loads, once they are found.
pub(super) fn described(kernel: &Kernel, loads: &Loads<'_>) -> Vec<LoopLoad> {
    let mut places: HashMap<Label, String> = HashMap::new();
    kernel.body.walk(&mut |op| {
        if let OpKind::Loop { label, .. } = &op.kind {
            places.insert(*label, kernel.describe_place(op.place));
        }
    });
    let all = loads.all();
    let chained = chained(kernel);
    let found = |(candidate, early): (&Candidate, Result<()>)| LoopLoad {
        name: candidate.name.to_string(),
        place: candidate.place.clone(),
        loop_place: places.get(&candidate.looped).cloned().unwrap_or_default(),
        chain: chain(candidate, all),
        bytes: candidate.bytes,
        copies: candidate.copies,
        // The place is that of the load, which is printed beside it.
        refusal: early.err().map(|error| error.what().to_owned()),
        is_chained: chained.contains(&(candidate.looped, candidate.id)),
    };
    all.iter().zip(loads.can_be_early()).map(found).collect()
}

/// The loads, by loop, whose addresses follow from what a load of the loop read in an earlier iteration.
fn chained(kernel: &Kernel) -> HashSet<(Label, LoadId)> {
    let definitions = Definitions::of(kernel);
    let mut found = HashSet::new();
    kernel.body.walk(&mut |op| {
        let OpKind::Loop { label, .. } = &op.kind else {
            return;
        };
        let loads = summarize(kernel, &definitions, op).loads;
        let read: HashSet<Value> = loads
            .iter()
            .flat_map(|site| site.results.iter().copied())
            .collect();
        let chained = loads
            .iter()
            .filter(|site| is_chained(&definitions, site.pointer, *label, &read));
        found.extend(chained.map(|site| (*label, site.id)));
    });
    found
}

/// Whether an address follows, over the edge of a loop, from a value that the loop `read`.
fn is_chained(definitions: &Definitions, pointer: Value, looped: Label, read: &HashSet<Value>) -> bool {
    let mut seen: HashSet<(Value, bool)> = HashSet::new();
    let mut left = vec![(pointer, false)];
    while let Some((value, is_earlier)) = left.pop() {
        if is_earlier && read.contains(&value) {
            return true;
        }
        if !seen.insert((value, is_earlier)) {
            continue;
        }
        match definitions.get(value) {
            Some(Definition::LoopParam { label, next, .. }) if *label == looped => {
                left.extend(next.iter().map(|&next| (next, true)));
            }
            Some(Definition::LoopParam { initial, next, .. }) => {
                left.push((*initial, is_earlier));
                left.extend(next.iter().map(|&next| (next, is_earlier)));
            }
            Some(Definition::Result { kind, passed, .. }) => {
                left.extend(passed.iter().map(|&passed| (passed, is_earlier)));
                kind.for_each_operand(|operand| left.push((operand, is_earlier)));
            }
            None => {}
        }
    }
    false
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

    /// A loop that reads `table` where `next` says.
    fn walk(next: &str) -> Vec<LoopLoad> {
        let text = format!(
            "hsir 1
            kernel @walk(%table: ptr.global i32[%length] align 4 readonly unaliased, %length: i64, %count: i64) {{
              file #1 \"walk.rs\"
              load @table #1:4:9
              loop 'steps (%j = 0:i64, %at = 1:i32) {{
                %more = lt.s %j, %count
                if %more {{ yield }} else {{ break }}
                %i = extend.u %at to i64
                %p = address %table + %i * 4
                %x = load i32 %p, @table
                {next}
                %k = add %j, 1:i64
                continue %k, %n
              }}
              return
            }}"
        );
        loop_loads(&crate::ir::read(&text, "walk.hsir").unwrap_or_else(|error| panic!("{error}")))
    }

    #[test]
    fn a_recurrence_of_arithmetic_is_no_chain_of_loads() {
        let list = walk("%n = and %x, 1023:i32");
        assert!(list[0].is_chained && list[0].refusal.is_some(), "{list:?}");
        let random = walk("%a = mul %at, 1103515245:i32\n%b = add %a, 12345:i32\n%n = and %b, 1023:i32");
        assert!(!random[0].is_chained, "{random:?}");
    }

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
