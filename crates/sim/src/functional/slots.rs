//! Slots for values: those that are never wanted at the same time share one, so that the registers of a
//! sub-group stay in the nearest cache.
//!
//! A value is wanted from the step that defines it to the last one that uses it; to the end of every loop
//! that began meanwhile and uses it, since the next iteration uses it again. A label's results are wanted
//! from the start of its scope, since lanes that leave early put them there and wait; a loop's parameters
//! as long as the loop. Lanes that wait at the end of a scope want nothing else from inside. A result
//! never takes the slot of an operand, so that an observer of an operation sees both.

use std::collections::{BTreeMap, BTreeSet};

use super::lanes::Slot;
use super::tape::{ScopeRange, TapeStep};
use crate::ir::Kernel;

/// Which slot each value has.
pub(super) struct Assignment {
    slots: Vec<Slot>,
    /// How many slots there are.
    pub count: u32,
    /// The initial contents of some slots.
    pub constants: Vec<(Slot, u64)>,
}

impl Assignment {
    /// The slot of a value, given by its number.
    pub(crate) fn slot(&self, value: Slot) -> Slot {
        self.slots[value.0 as usize]
    }
}

/// The steps at which a value is wanted, first and last.
#[derive(Clone, Copy)]
struct Interval {
    first: usize,
    last: usize,
}

/// Assigns slots to the values that the steps name by number.
pub(super) fn assign(kernel: &Kernel, steps: &[TapeStep], scopes: &[ScopeRange]) -> Assignment {
    let mut assignment = Assignment {
        slots: vec![Slot(0); kernel.values.len()],
        count: 0,
        constants: Vec::new(),
    };
    let is_fixed = assign_fixed(kernel, &mut assignment);
    let intervals = intervals(kernel.values.len(), steps, scopes);

    let mut order: Vec<(usize, usize)> = intervals
        .iter()
        .enumerate()
        .filter(|(value, _)| !is_fixed[*value])
        .filter_map(|(value, interval)| interval.map(|interval| (interval.first, value)))
        .collect();
    order.sort_unstable();
    let mut free: BTreeSet<u32> = BTreeSet::new();
    let mut busy: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
    for (first, value) in order {
        let still_busy = busy.split_off(&first);
        free.extend(std::mem::replace(&mut busy, still_busy).into_values().flatten());
        let slot = free.pop_first().unwrap_or_else(|| {
            assignment.count += 1;
            assignment.count - 1
        });
        assignment.slots[value] = Slot(slot);
        let last = intervals[value].map_or(first, |interval| interval.last);
        busy.entry(last).or_default().push(slot);
    }
    assignment
}

/// Gives constants (one slot for equal bits) and parameters slots of their own; which values those are.
fn assign_fixed(kernel: &Kernel, assignment: &mut Assignment) -> Vec<bool> {
    let mut is_fixed = vec![false; kernel.values.len()];
    let mut known: BTreeMap<u64, Slot> = BTreeMap::new();
    for (value, data) in &kernel.values {
        if let Some(bits) = data.constant {
            let slot = *known.entry(bits).or_insert_with(|| {
                let slot = Slot(assignment.count);
                assignment.count += 1;
                assignment.constants.push((slot, bits));
                slot
            });
            assignment.slots[value.as_u32() as usize] = slot;
            is_fixed[value.as_u32() as usize] = true;
        }
    }
    for param in &kernel.params {
        assignment.slots[param.value.as_u32() as usize] = Slot(assignment.count);
        assignment.count += 1;
        is_fixed[param.value.as_u32() as usize] = true;
    }
    is_fixed
}

fn intervals(values: usize, steps: &[TapeStep], scopes: &[ScopeRange]) -> Vec<Option<Interval>> {
    let mut intervals: Vec<Option<Interval>> = vec![None; values];
    for scope in scopes {
        for slot in scope.results.iter().chain(&scope.params) {
            intervals[slot.0 as usize] = Some(Interval {
                first: scope.first,
                last: scope.last,
            });
        }
    }
    // The loops around the present step, outermost first.
    let mut loops: Vec<&ScopeRange> = Vec::new();
    let mut starting = scopes.iter().filter(|scope| scope.is_loop).peekable();
    for (position, step) in steps.iter().enumerate() {
        loops.retain(|scope| scope.last >= position);
        while let Some(scope) = starting.next_if(|scope| scope.first <= position) {
            loops.push(scope);
        }
        step.for_each_slot(&mut |slot| {
            let interval = intervals[slot.0 as usize].get_or_insert(Interval {
                first: position,
                last: position,
            });
            // The outermost loop that began after the definition repeats this use.
            let repeating = loops.iter().find(|scope| scope.first > interval.first);
            let last = repeating.map_or(position, |scope| scope.last);
            interval.last = interval.last.max(last);
        });
    }
    intervals
}
