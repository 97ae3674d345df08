//! Which registers are wanted after each draft.

use super::draft::{Draft, Virtual};
use super::program::Control;
use cranelift_entity::EntityRef;

/// A set of virtual registers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RegisterSet {
    words: Vec<u64>,
}

impl RegisterSet {
    /// An empty set for `count` registers.
    pub(crate) fn new(count: usize) -> RegisterSet {
        RegisterSet {
            words: vec![0; count.div_ceil(64)],
        }
    }

    /// Adds a register.
    pub(crate) fn insert(&mut self, register: Virtual) {
        self.words[register.index() / 64] |= 1 << (register.index() % 64);
    }

    /// Takes a register out.
    pub(crate) fn remove(&mut self, register: Virtual) {
        self.words[register.index() / 64] &= !(1 << (register.index() % 64));
    }

    /// Whether a register is in it.
    pub(crate) fn contains(&self, register: Virtual) -> bool {
        self.words[register.index() / 64] >> (register.index() % 64) & 1 == 1
    }

    /// Adds all of another set.
    pub(crate) fn add(&mut self, other: &RegisterSet) {
        for (word, more) in self.words.iter_mut().zip(&other.words) {
            *word |= more;
        }
    }

    fn clear(&mut self) {
        self.words.fill(0);
    }

    /// The registers that are in both sets.
    pub(crate) fn common<'a>(&'a self, other: &'a RegisterSet) -> impl Iterator<Item = Virtual> + 'a {
        self.words
            .iter()
            .zip(&other.words)
            .enumerate()
            .flat_map(|(at, (a, b))| bits(a & b, at))
    }

    /// The registers in it.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Virtual> + '_ {
        self.words
            .iter()
            .enumerate()
            .flat_map(|(at, &word)| bits(word, at))
    }
}

fn bits(mut word: u64, at: usize) -> impl Iterator<Item = Virtual> {
    std::iter::from_fn(move || {
        let bit = word.trailing_zeros() as usize;
        word &= word.wrapping_sub(1);
        (bit < 64).then(|| Virtual::new(at * 64 + bit))
    })
}

/// Where the scopes of a list of drafts open and close.
#[derive(Clone, Debug)]
pub(crate) struct Scopes {
    /// For the draft that closes a scope: the one that opens it.
    pub opening: Vec<usize>,
    /// For the draft that opens an `if`: its `Else`.
    pub otherwise: Vec<usize>,
    /// For the draft that opens a scope: the one that closes it.
    pub closing: Vec<usize>,
}

impl Scopes {
    /// Finds them.
    pub(crate) fn of(controls: impl ExactSizeIterator<Item = Control>) -> Scopes {
        let count = controls.len();
        let mut scopes = Scopes {
            opening: vec![0; count],
            otherwise: vec![0; count],
            closing: vec![0; count],
        };
        let mut open: Vec<usize> = Vec::new();
        for (index, control) in controls.enumerate() {
            match control {
                Control::Block { .. } | Control::If { .. } | Control::Loop { .. } => open.push(index),
                Control::Else { .. } => {
                    if let Some(&at) = open.last() {
                        scopes.otherwise[at] = index;
                    }
                }
                Control::End { .. } | Control::EndLoop { .. } => {
                    if let Some(at) = open.pop() {
                        scopes.opening[index] = at;
                        scopes.closing[at] = index;
                    }
                }
                _ => {}
            }
        }
        scopes
    }
}

/// Calls `visit` on each draft, last one first, with the registers wanted after it.
pub(crate) fn visit_live(drafts: &[Draft], registers: usize, visit: impl FnMut(usize, &RegisterSet)) {
    let scopes = Scopes::of(drafts.iter().map(|draft| draft.control));
    let headers = vec![None; drafts.len()];
    let mut walk = Walk {
        drafts,
        registers,
        scopes,
        headers,
        targets: Vec::new(),
        visit,
    };
    let mut live = RegisterSet::new(registers);
    walk.backwards(0, drafts.len(), &mut live, true);
}

/// The registers live at the targets of a scope's jumps.
struct LiveAtTargets {
    after: RegisterSet,
    header: RegisterSet,
}

struct Walk<'d, F> {
    drafts: &'d [Draft],
    registers: usize,
    scopes: Scopes,
    /// The registers live at the start of a loop's body, by the draft that opens it; iterated to a fixed point.
    headers: Vec<Option<RegisterSet>>,
    targets: Vec<LiveAtTargets>,
    visit: F,
}

impl<F: FnMut(usize, &RegisterSet)> Walk<'_, F> {
    fn backwards(&mut self, start: usize, end: usize, live: &mut RegisterSet, visiting: bool) {
        let mut index = end;
        while index > start {
            index -= 1;
            match self.drafts[index].control {
                Control::End { .. } => {
                    let opening = self.scopes.opening[index];
                    self.note(index, live, visiting);
                    let header = RegisterSet::default();
                    self.targets.push(LiveAtTargets {
                        after: live.clone(),
                        header,
                    });
                    if matches!(self.drafts[opening].control, Control::If { .. }) {
                        let otherwise = self.scopes.otherwise[opening];
                        self.backwards(otherwise + 1, index, live, visiting);
                        let mut then = RegisterSet::new(self.registers);
                        self.backwards(opening + 1, otherwise, &mut then, visiting);
                        live.add(&then);
                    } else {
                        self.backwards(opening + 1, index, live, visiting);
                    }
                    self.targets.pop();
                    self.note(opening, live, visiting);
                    index = opening;
                }
                Control::EndLoop { .. } => {
                    let opening = self.scopes.opening[index];
                    self.note(index, live, visiting);
                    self.loop_(opening, index, live, visiting);
                    self.note(opening, live, visiting);
                    index = opening;
                }
                Control::Break { depth } => {
                    live.clone_from(&self.targets[depth as usize].after);
                    self.note(index, live, visiting);
                }
                Control::Continue { depth } => {
                    live.clone_from(&self.targets[depth as usize].header);
                    self.note(index, live, visiting);
                }
                Control::Return => {
                    live.clear();
                    self.note(index, live, visiting);
                }
                _ => self.note(index, live, visiting),
            }
        }
    }

    fn loop_(&mut self, opening: usize, end: usize, live: &mut RegisterSet, visiting: bool) {
        let after = live.clone();
        let mut header = self.headers[opening]
            .take()
            .unwrap_or_else(|| RegisterSet::new(self.registers));
        loop {
            self.targets.push(LiveAtTargets {
                after: after.clone(),
                header: header.clone(),
            });
            self.backwards(opening + 1, end, live, false);
            self.targets.pop();
            if *live == header {
                break;
            }
            header.clone_from(live);
        }
        if visiting {
            self.targets.push(LiveAtTargets {
                after,
                header: header.clone(),
            });
            self.backwards(opening + 1, end, live, true);
            self.targets.pop();
        }
        self.headers[opening] = Some(header);
    }

    /// Visits a draft: from its live-out to its live-in registers.
    fn note(&mut self, index: usize, live: &mut RegisterSet, visiting: bool) {
        if visiting {
            (self.visit)(index, live);
        }
        let draft = &self.drafts[index];
        if draft.guard.is_none() {
            draft.defines.iter().for_each(|&register| live.remove(register));
        }
        draft.uses.iter().for_each(|&register| live.insert(register));
    }
}
