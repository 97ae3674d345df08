//! Loads move down to where they are first used.
//!
//! ```text
//! before                        after
//! load a; load b                load a
//! … sqrt a (with a jump) …      … sqrt a (with a jump) …
//! … sqrt b …                    load b
//!                               … sqrt b …
//! ```
//!
//! ptxas does this with plain loads from memory that nobody writes, over the jumps that expansions of
//! operations contain: seen in disassembled code of unrolled loops with square roots. Loads that were
//! written early, for their latency to pass meanwhile, then stand behind what was to hide it. Predicated
//! loads stay, and so do asynchronous copies and loads whose value is first used in another iteration.

use super::draft::{Draft, Virtual};
use super::program::{Class, Control, Step};
use crate::ir::{Kernel, Space, Value};

/// Moves the loads among drafts down.
pub fn sink(kernel: &Kernel, drafts: Vec<Draft>) -> Vec<Draft> {
    let mut places: Vec<Option<usize>> = vec![None; drafts.len()];
    for (at, draft) in drafts.iter().enumerate() {
        if is_movable(draft) {
            places[at] = destination(kernel, &drafts, at);
        }
    }
    // Loads that go to one place keep their order.
    let mut arriving: Vec<Vec<Draft>> = vec![Vec::new(); drafts.len() + 1];
    let mut staying: Vec<Option<Draft>> = Vec::with_capacity(drafts.len());
    for (draft, place) in drafts.into_iter().zip(places) {
        match place {
            Some(place) => {
                arriving[place].push(draft);
                staying.push(None);
            }
            None => staying.push(Some(draft)),
        }
    }
    let mut sunk = Vec::with_capacity(staying.len());
    for (at, draft) in staying.into_iter().enumerate() {
        sunk.append(&mut arriving[at]);
        sunk.extend(draft);
    }
    sunk
}

fn is_movable(draft: &Draft) -> bool {
    matches!(
        draft.class,
        Class::Load {
            space: Space::Global,
            ..
        }
    ) && draft.guard.is_none()
        && draft.memory.is_some_and(|memory| memory.writes.is_none())
}

/// Where a load goes: in front of the drafts without jumps in which it is first used. None if no jump
/// lies between, or something that it cannot pass.
fn destination(kernel: &Kernel, drafts: &[Draft], at: usize) -> Option<usize> {
    let load = &drafts[at];
    let results: Vec<Value> = load.steps.iter().flat_map(results_of).collect();
    let mut start = None;
    for (index, draft) in drafts.iter().enumerate().skip(at + 1) {
        if uses(draft, &load.defines, &results) {
            return start;
        }
        let is_inner_jump =
            draft.control == Control::Next && matches!(draft.class, Class::Branch | Class::Reconverge);
        let writes_its_source = match (
            draft.memory.and_then(|memory| memory.writes),
            load.memory.and_then(|memory| memory.reads),
        ) {
            (Some(written), Some(read)) => written.may_meet(read, kernel),
            _ => false,
        };
        let changes_its_address = draft.defines.iter().any(|register| load.uses.contains(register));
        if (draft.fixed && !is_inner_jump) || writes_its_source || changes_its_address {
            return None;
        }
        if draft.fixed {
            start = Some(index + 1);
        }
    }
    None
}

fn uses(draft: &Draft, registers: &[Virtual], values: &[Value]) -> bool {
    let mut found = draft.uses.iter().any(|register| registers.contains(register));
    for step in &draft.steps {
        match step {
            Step::Op(op) => op
                .kind
                .for_each_operand(|operand| found |= values.contains(&operand)),
            Step::Assign(pairs) => found |= pairs.iter().any(|(_, from)| values.contains(from)),
        }
    }
    found
}

fn results_of(step: &Step) -> Vec<Value> {
    match step {
        Step::Op(op) => op.results.clone(),
        Step::Assign(_) => Vec::new(),
    }
}
