//! Values that do not fit the register file: where they are stored to private memory, and where they are loaded again.
//!
//! ```text
//! before, one register too many      after
//! %a = …                             %a = …; store %a
//! … the most registers are in use …  …
//! … = %a + …                         %b = load; … = %b + …
//! ```
//!
//! Where more is in use at one time than there is room for, the values are stored that are written and read least often, an
//! instruction in a loop counting eight times one outside. What they are is computed as before: only time and registers change.
//! A compiler also computes some values again, and has other orders; the tests hold the number of stores to its own. Intel's finds an
//! order that needs fewer registers wherever there is one, so that only what is in use at a jump counts there.

use cranelift_entity::SecondaryMap;

use super::draft::{Draft, Virtual, VirtualData, Virtuals};
use super::liveness::visit_live;
use super::program::{Class, Control};
use crate::ir::Space;

/// How often the program is gone through at most. What does not fit then stays where it is.
const MOST_ROUNDS: u32 = 32;

/// How much more an instruction in a loop counts than one outside.
const LOOP_WEIGHT: f64 = 8.0;

/// Spills values until no draft for which `counts` holds needs more than `room` 32-bit registers.
pub fn spill(drafts: &mut Vec<Draft>, virtuals: &mut Virtuals, room: u32, counts: fn(&Draft) -> bool) {
    // What was stored, and what it is loaded into, is in registers for a moment only.
    let mut settled: SecondaryMap<Virtual, bool> = SecondaryMap::new();
    for _ in 0..MOST_ROUNDS {
        let chosen = choose(drafts, virtuals, room, counts, &settled);
        if chosen.is_empty() {
            return;
        }
        let mut is_chosen: SecondaryMap<Virtual, bool> = SecondaryMap::new();
        for &register in &chosen {
            is_chosen[register] = true;
            settled[register] = true;
        }
        *drafts = rewritten(std::mem::take(drafts), virtuals, &is_chosen, &mut settled);
    }
}

/// What is stored so that the place where most is in use has room; nothing where it has.
fn choose(
    drafts: &[Draft],
    virtuals: &Virtuals,
    room: u32,
    counts: fn(&Draft) -> bool,
    settled: &SecondaryMap<Virtual, bool>,
) -> Vec<Virtual> {
    let width = |register: Virtual| u32::from(virtuals[register].width);
    let mut most = room;
    let mut there: Vec<Virtual> = Vec::new();
    visit_live(drafts, virtuals.len(), |index, live| {
        if !counts(&drafts[index]) {
            return;
        }
        let wanted: u32 = live.iter().map(width).sum();
        let unwanted = drafts[index]
            .defines
            .iter()
            .filter(|&&register| !live.contains(register));
        let wanted = wanted + unwanted.map(|&register| width(register)).sum::<u32>();
        if wanted > most {
            most = wanted;
            there = live.iter().collect();
        }
    });
    let weights = weights(drafts);
    let mut candidates: Vec<(f64, Virtual)> = there
        .into_iter()
        .filter(|&register| width(register) > 0 && !virtuals[register].is_token && !settled[register])
        .filter_map(|register| Some((weights[register]? / f64::from(width(register)), register)))
        .collect();
    candidates.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
    let mut excess = most.saturating_sub(room);
    let mut chosen = Vec::new();
    for (_, register) in candidates {
        if excess == 0 {
            break;
        }
        excess = excess.saturating_sub(width(register));
        chosen.push(register);
    }
    chosen
}

/// How often each register is written and read; none for those that cannot be stored.
fn weights(drafts: &[Draft]) -> SecondaryMap<Virtual, Option<f64>> {
    let mut weights: SecondaryMap<Virtual, Option<f64>> = SecondaryMap::with_default(Some(0.0));
    let mut is_loop: Vec<bool> = Vec::new();
    for draft in drafts {
        match draft.control {
            Control::Loop { .. } => is_loop.push(true),
            Control::Block { .. } | Control::If { .. } => is_loop.push(false),
            Control::End { .. } | Control::EndLoop { .. } => {
                is_loop.pop();
            }
            _ => {}
        }
        let depth = is_loop.iter().filter(|&&is_loop| is_loop).count();
        let weight = LOOP_WEIGHT.powi(depth as i32);
        // What only some lanes write, or a jump reads, stays where it is.
        let stays = draft.control != Control::Next;
        for &register in &draft.defines {
            let known = weights[register];
            weights[register] = known
                .filter(|_| !stays && draft.guard.is_none())
                .map(|known| known + weight);
        }
        for &register in &draft.uses {
            let known = weights[register];
            weights[register] = known.filter(|_| !stays).map(|known| known + weight);
        }
    }
    weights
}

/// The drafts with stores behind what writes the registers, and loads before what reads them.
fn rewritten(
    drafts: Vec<Draft>,
    virtuals: &mut Virtuals,
    is_chosen: &SecondaryMap<Virtual, bool>,
    settled: &mut SecondaryMap<Virtual, bool>,
) -> Vec<Draft> {
    let mut made = Vec::with_capacity(drafts.len());
    for mut draft in drafts {
        let mut fresh = |register: Virtual, virtuals: &mut Virtuals| {
            let VirtualData { width, is_token } = virtuals[register];
            let fresh = virtuals.push(VirtualData { width, is_token });
            settled[fresh] = true;
            fresh
        };
        let mut loaded: Vec<(Virtual, Virtual)> = Vec::new();
        for used in &mut draft.uses {
            if !is_chosen[*used] {
                continue;
            }
            let known = loaded.iter().find(|(from, _)| from == used).map(|&(_, to)| to);
            let to = known.unwrap_or_else(|| {
                let to = fresh(*used, virtuals);
                let bytes = virtuals[to].width * 4;
                let load = Draft {
                    defines: vec![to],
                    ..Draft::new(
                        Class::Load {
                            space: Space::Private,
                            bytes,
                        },
                        draft.place,
                    )
                };
                made.push(load);
                loaded.push((*used, to));
                to
            });
            *used = to;
        }
        let mut stores = Vec::new();
        for defined in &mut draft.defines {
            if !is_chosen[*defined] {
                continue;
            }
            let from = fresh(*defined, virtuals);
            let bytes = virtuals[from].width * 4;
            stores.push(Draft {
                uses: vec![from],
                ..Draft::new(
                    Class::Store {
                        space: Space::Private,
                        bytes,
                    },
                    draft.place,
                )
            });
            *defined = from;
        }
        if let Some(move_) = &draft.move_
            && (is_chosen[move_.from] || is_chosen[move_.to])
        {
            draft.move_ = None;
        }
        made.push(draft);
        made.append(&mut stores);
    }
    made
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::Kernel;

    /// So many values that are written one after the other and then read, some of them in a loop.
    fn program(values: usize, in_loop: usize) -> (Vec<Draft>, Virtuals) {
        let mut virtuals = Virtuals::new();
        let mut register = || {
            virtuals.push(VirtualData {
                width: 1,
                is_token: false,
            })
        };
        let all: Vec<Virtual> = (0..values).map(|_| register()).collect();
        let place = Kernel::NOWHERE;
        let mut drafts: Vec<Draft> = all
            .iter()
            .map(|&one| Draft {
                defines: vec![one],
                ..Draft::new(Class::Int32, place)
            })
            .collect();
        drafts.push(Draft::marker(Control::Loop { depth: 0, end: 0 }, place));
        for &one in &all[..in_loop] {
            drafts.push(Draft {
                uses: vec![one],
                ..Draft::new(Class::Int32, place)
            });
        }
        drafts.push(Draft::marker(Control::EndLoop { depth: 0, body: 0 }, place));
        for &one in &all {
            drafts.push(Draft {
                uses: vec![one],
                ..Draft::new(Class::Int32, place)
            });
        }
        (drafts, virtuals)
    }

    fn most(drafts: &[Draft], virtuals: &Virtuals) -> usize {
        let mut most = 0;
        visit_live(drafts, virtuals.len(), |_, live| {
            most = most.max(live.iter().count())
        });
        most
    }

    fn count(drafts: &[Draft], wanted: fn(Class) -> bool) -> usize {
        drafts.iter().filter(|draft| wanted(draft.class)).count()
    }

    #[test]
    fn what_is_read_least_often_is_stored() {
        let (mut drafts, mut virtuals) = program(20, 5);
        assert_eq!(most(&drafts, &virtuals), 20);
        spill(&mut drafts, &mut virtuals, 12, |_| true);
        assert!(most(&drafts, &virtuals) <= 12, "{}", most(&drafts, &virtuals));
        // Eight of those outside of the loop, each of them stored and loaded once.
        assert_eq!(count(&drafts, |class| matches!(class, Class::Store { .. })), 8);
        assert_eq!(count(&drafts, |class| matches!(class, Class::Load { .. })), 8);
        let in_loop = drafts
            .iter()
            .skip_while(|draft| !matches!(draft.control, Control::Loop { .. }))
            .take_while(|draft| !matches!(draft.control, Control::EndLoop { .. }));
        assert!(
            in_loop
                .into_iter()
                .all(|draft| !matches!(draft.class, Class::Load { .. }))
        );
    }

    #[test]
    fn a_program_that_fits_stays() {
        let (mut drafts, mut virtuals) = program(20, 5);
        let before = drafts.len();
        spill(&mut drafts, &mut virtuals, 20, |_| true);
        assert_eq!(drafts.len(), before);
    }

    /// Between jumps an order can be found.
    #[test]
    fn what_counts_at_jumps_alone_is_what_is_wanted_there() {
        let (mut drafts, mut virtuals) = program(20, 20);
        spill(&mut drafts, &mut virtuals, 20, |draft| draft.fixed);
        assert_eq!(count(&drafts, |class| matches!(class, Class::Store { .. })), 0);
        spill(&mut drafts, &mut virtuals, 18, |draft| draft.fixed);
        assert_eq!(count(&drafts, |class| matches!(class, Class::Store { .. })), 2);
    }

    #[test]
    fn what_cannot_fit_ends_all_the_same() {
        let (mut drafts, mut virtuals) = program(20, 5);
        spill(&mut drafts, &mut virtuals, 0, |_| true);
        assert_eq!(count(&drafts, |class| matches!(class, Class::Store { .. })), 20);
    }
}
