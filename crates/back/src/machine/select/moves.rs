//! Values passed to labels: parallel copies, in an order that loses nothing. Most of them disappear when registers are merged.

use super::super::draft::{Draft, Move, Virtual};
use super::super::program::Class;
use super::Selector;
use crate::ir::{OpKind, Place, Region, Value};

/// A copy still to be written.
struct Pending {
    to: Virtual,
    /// The registers it reads.
    from: Vec<Virtual>,
    /// Whether source and target are one register each of the same width.
    plain: bool,
    /// Instructions it takes if it cannot be avoided.
    instructions: u8,
}

impl Selector<'_, '_> {
    /// Each register takes its value, all at the same time.
    pub(crate) fn moves(&mut self, moves: Vec<(Virtual, Value)>, place: Place) {
        self.moves_apart(moves, &[], place);
    }

    /// The same; those of `kept` stay registers of their own.
    pub(crate) fn moves_apart(&mut self, moves: Vec<(Virtual, Value)>, kept: &[Virtual], place: Place) {
        let mut pending: Vec<Pending> = Vec::new();
        for (to, value) in moves {
            let from = self.read(value, place);
            // Which copies a token stands for is counted when code is written, not when it runs.
            if from == [to] || self.virtuals[to].is_token {
                continue;
            }
            let width = self.virtuals[to].width;
            let plain =
                !kept.contains(&to) && matches!(from[..], [only] if self.virtuals[only].width == width);
            let zero = self.facts.kernel.as_constant(value) == Some(0);
            let instructions = if zero { 1 } else { width.max(1) };
            pending.push(Pending {
                to,
                from,
                plain,
                instructions,
            });
        }
        while !pending.is_empty() {
            // One whose target no other move still has to read.
            let free = (0..pending.len()).find(|&at| {
                let to = pending[at].to;
                pending
                    .iter()
                    .enumerate()
                    .all(|(other, copy)| other == at || !copy.from.contains(&to))
            });
            match free {
                Some(at) => {
                    let copy = pending.remove(at);
                    self.emit_move(&copy, place);
                }
                None => {
                    // All wait for each other: one target is saved first.
                    let saved = pending[0].to;
                    let temporary = self.register(self.virtuals[saved].width);
                    self.copy(temporary, saved, place);
                    for copy in &mut pending {
                        for from in &mut copy.from {
                            if *from == saved {
                                *from = temporary;
                            }
                        }
                    }
                }
            }
        }
    }

    /// Copies a register to another of the same width.
    pub(crate) fn copy(&mut self, to: Virtual, from: Virtual, place: Place) {
        let copy = Pending {
            to,
            from: vec![from],
            plain: true,
            instructions: self.virtuals[to].width.max(1),
        };
        self.emit_move(&copy, place);
    }

    fn emit_move(&mut self, copy: &Pending, place: Place) {
        let draft = Draft {
            defines: vec![copy.to],
            uses: copy.from.clone(),
            ..Draft::new(Class::Int32, place)
        };
        if let ([from], true) = (&copy.from[..], copy.plain) {
            let move_ = Some(Move {
                to: copy.to,
                from: *from,
            });
            self.emit(Draft { move_, ..draft });
            return;
        }
        for _ in 0..copy.instructions {
            self.emit(draft.clone());
        }
    }
}

/// The values that a region passes to the target of its last jump, out of a block or `if`.
pub(crate) fn passed(region: &Region) -> &[Value] {
    match region.terminator().map(|op| &op.kind) {
        Some(OpKind::Break(_, values)) => values,
        _ => &[],
    }
}
