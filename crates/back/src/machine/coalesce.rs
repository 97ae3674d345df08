//! Registers that a move connects become one where they can.
//!
//! Before: `r5 = add r4, 1 … r4 = r5` at a loop's end.
//! After:  `r4 = add r4, 1`.
//!
//! Two registers cannot be merged if both are live at some point, unless one is a copy of the other there, or if a move between
//! them must stay. The remaining moves are those that a compiler would emit, too.

use cranelift_entity::{EntityRef, SecondaryMap};

use super::draft::{Draft, Virtual};
use super::liveness::{RegisterSet, visit_live};

/// Merges registers and removes the moves between them.
pub(crate) fn coalesce(drafts: &mut Vec<Draft>, registers: usize) {
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
    let mut classes = Classes::of(&related);
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
///
/// Interference is kept by bits, over the registers that moves connect and in one direction: a body of many
/// unrolled iterations with a long ring has millions of pairs.
struct Classes {
    /// A register's place among those that moves connect; `None` for all others.
    place: SecondaryMap<Virtual, Option<u32>>,
    /// By place: the class that it went into.
    merged_into: Vec<Option<u32>>,
    /// By place of the class: the registers that are in it.
    members: Vec<Vec<Virtual>>,
    /// By place of the class: the places that it was found to be wanted beside.
    apart: Vec<RegisterSet>,
}

impl Classes {
    /// Each of these registers alone.
    fn of(related: &RegisterSet) -> Classes {
        let members: Vec<Vec<Virtual>> = related.iter().map(|register| vec![register]).collect();
        let mut place = SecondaryMap::new();
        for (at, register) in related.iter().enumerate() {
            place[register] = Some(at as u32);
        }
        Classes {
            place,
            merged_into: vec![None; members.len()],
            apart: vec![RegisterSet::new(members.len()); members.len()],
            members,
        }
    }

    /// The place of a register's class, if a move connects it with another.
    fn class(&self, register: Virtual) -> Option<usize> {
        let mut at = self.place[register]?;
        while let Some(next) = self.merged_into[at as usize] {
            at = next;
        }
        Some(at as usize)
    }

    fn find(&self, register: Virtual) -> Virtual {
        self.class(register).map_or(register, |at| self.members[at][0])
    }

    /// Both are related, and not yet merged with others.
    fn keep_apart(&mut self, a: Virtual, b: Virtual) {
        if let (Some(a), Some(b)) = (self.place[a], self.place[b]) {
            self.apart[a as usize].insert(Virtual::new(b as usize));
        }
    }

    fn are_apart(&self, a: usize, b: usize) -> bool {
        let meets = |class: usize, other: usize| {
            let mut places = self.members[other]
                .iter()
                .filter_map(|&member| self.place[member]);
            places.any(|place| self.apart[class].contains(Virtual::new(place as usize)))
        };
        meets(a, b) || meets(b, a)
    }

    fn merge(&mut self, a: Virtual, b: Virtual) {
        let (Some(a), Some(b)) = (self.class(a), self.class(b)) else {
            return;
        };
        if a == b || self.are_apart(a, b) {
            return;
        }
        self.merged_into[b] = Some(a as u32);
        let members = std::mem::take(&mut self.members[b]);
        self.members[a].extend(members);
        let apart = std::mem::take(&mut self.apart[b]);
        self.apart[a].add(&apart);
    }
}
