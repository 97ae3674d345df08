//! Registers that a move connects become one where they can.
//!
//! Before: `r5 = add r4, 1 … r4 = r5` at a loop's end.
//! After:  `r4 = add r4, 1`.
//!
//! Two registers cannot be one if both are wanted at some point, unless one is a copy of the other
//! there. What is left are the moves that a compiler would emit, too.

use std::collections::{HashMap, HashSet};

use super::draft::{Draft, Virtual};
use super::liveness::{RegisterSet, visit_live};

/// Merges registers and removes the moves between them.
pub fn coalesce(drafts: &mut Vec<Draft>, registers: usize) {
    let mut related = RegisterSet::new(registers);
    let mut moves: Vec<(usize, Virtual, Virtual)> = Vec::new();
    let mut loops = 0usize;
    for draft in drafts.iter() {
        match draft.control {
            super::program::Control::Loop { .. } => loops += 1,
            super::program::Control::EndLoop { .. } => loops -= 1,
            _ => {}
        }
        if let Some(move_) = draft.move_ {
            related.insert(move_.to);
            related.insert(move_.from);
            moves.push((loops, move_.to, move_.from));
        }
    }
    let mut classes = Classes {
        of: HashMap::new(),
        apart: HashMap::new(),
    };
    visit_live(drafts, registers, |index, live| {
        let draft = &drafts[index];
        for &defined in draft
            .defines
            .iter()
            .filter(|&&register| related.contains(register))
        {
            for other in live.common(&related) {
                let is_copy = draft.move_.is_some_and(|move_| move_.from == other);
                if other != defined && !is_copy {
                    classes.keep_apart(defined, other);
                }
            }
        }
    });
    // Innermost loops first: their moves cost most.
    moves.sort_by_key(|&(loops, ..)| std::cmp::Reverse(loops));
    for (_, to, from) in moves {
        classes.merge(to, from);
    }
    for draft in drafts.iter_mut() {
        for register in draft.defines.iter_mut().chain(&mut draft.uses) {
            *register = classes.find(*register);
        }
        draft.uses.sort_unstable();
        draft.uses.dedup();
        if let Some(move_) = &mut draft.move_ {
            move_.to = classes.find(move_.to);
            move_.from = classes.find(move_.from);
        }
    }
    drafts.retain(|draft| draft.move_.is_none_or(|move_| move_.to != move_.from));
}

/// Registers that are one, and those that cannot be.
struct Classes {
    of: HashMap<Virtual, Virtual>,
    apart: HashMap<Virtual, HashSet<Virtual>>,
}

impl Classes {
    fn find(&self, register: Virtual) -> Virtual {
        let mut root = register;
        while let Some(&next) = self.of.get(&root) {
            root = next;
        }
        root
    }

    fn keep_apart(&mut self, a: Virtual, b: Virtual) {
        self.apart.entry(a).or_default().insert(b);
        self.apart.entry(b).or_default().insert(a);
    }

    fn merge(&mut self, a: Virtual, b: Virtual) {
        let (a, b) = (self.find(a), self.find(b));
        if a == b || self.apart.get(&a).is_some_and(|apart| apart.contains(&b)) {
            return;
        }
        self.of.insert(b, a);
        for other in self.apart.remove(&b).unwrap_or_default() {
            if let Some(apart) = self.apart.get_mut(&other) {
                apart.remove(&b);
            }
            self.keep_apart(a, other);
        }
    }
}
