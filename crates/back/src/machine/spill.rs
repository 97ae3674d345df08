//! Values that do not fit the register file: where they are stored to private memory, and where they are loaded again.
//!
//! ```text
//! before, one register too many      after
//! %a = …                             %a = …; store %a
//! … the most registers are in use …  …
//! … = %a + …                         %b = load; … = %b + …
//! ```
//!
//! If more registers are live at a point than the register file holds, the values with the fewest reads and writes are spilled;
//! an instruction in a loop counts eight times one outside. Results do not change, only time and registers. A compiler also
//! recomputes some values and finds other orders; the tests compare the number of stores with the compiler's. Intel's compiler
//! finds an order that needs fewer registers if there is one, so only values live across jumps count there, unless no order would
//! help ([`bottleneck`]): then it keeps the order that has most loads on their way.

use cranelift_entity::SecondaryMap;

use super::bottleneck;
use super::draft::{Draft, Virtual, VirtualData, Virtuals};
use super::frame::Frame;
use super::liveness::visit_live;
use super::program::{Class, Control};
use super::target::Family;
use crate::ir::Space;

/// The most passes over the program. Values that do not fit then stay in registers.
const MOST_ROUNDS: u32 = 32;

/// How much more an instruction in a loop counts than one outside.
const LOOP_WEIGHT: f64 = 8.0;

/// Spills values until no draft that counts for a compiler needs more than `room` 32-bit registers. Gives the bytes of the frame
/// that holds them.
pub(crate) fn spill(drafts: &mut Vec<Draft>, virtuals: &mut Virtuals, room: u32, compiler: Family) -> u32 {
    let mut frame = Frame::new(drafts, virtuals.len());
    // Stored values, and the registers that they are loaded into, are live for a moment only.
    let mut settled: SecondaryMap<Virtual, bool> = SecondaryMap::new();
    let all_count = compiler == Family::Nvidia || bottleneck::is_there(drafts, virtuals, room);
    for _ in 0..MOST_ROUNDS {
        let chosen = choose(drafts, virtuals, room, all_count, &settled);
        if chosen.is_empty() {
            break;
        }
        let mut places: SecondaryMap<Virtual, Option<u32>> = SecondaryMap::new();
        for &register in &chosen {
            places[register] = Some(frame.place(register, u32::from(virtuals[register].width)));
            settled[register] = true;
        }
        *drafts = rewritten(std::mem::take(drafts), virtuals, &places, &mut settled);
    }
    frame.bytes()
}

/// The values to store so that the point of highest pressure fits; none if it fits.
fn choose(
    drafts: &[Draft],
    virtuals: &Virtuals,
    room: u32,
    all_count: bool,
    settled: &SecondaryMap<Virtual, bool>,
) -> Vec<Virtual> {
    let width = |register: Virtual| u32::from(virtuals[register].width);
    let mut most = room;
    let mut there: Vec<Virtual> = Vec::new();
    visit_live(drafts, virtuals.len(), |index, live| {
        if !all_count && !drafts[index].fixed {
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
        // A register that only some lanes write, or a jump reads, is not spilled.
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

/// The drafts with a store behind each write of the registers, and a load before each read.
fn rewritten(
    drafts: Vec<Draft>,
    virtuals: &mut Virtuals,
    places: &SecondaryMap<Virtual, Option<u32>>,
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
            let Some(place) = places[*used] else { continue };
            let known = loaded.iter().find(|(from, _)| from == used).map(|&(_, to)| to);
            let to = known.unwrap_or_else(|| {
                let to = fresh(*used, virtuals);
                let bytes = virtuals[to].width * 4;
                let load = Draft {
                    defines: vec![to],
                    spilled_at: Some(place),
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
            let Some(place) = places[*defined] else { continue };
            let from = fresh(*defined, virtuals);
            let bytes = virtuals[from].width * 4;
            stores.push(Draft {
                uses: vec![from],
                spilled_at: Some(place),
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
            && (places[move_.from].is_some() || places[move_.to].is_some())
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

    /// This many values that are written one after the other and then read, some of them in a loop.
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
        spill(&mut drafts, &mut virtuals, 12, Family::Nvidia);
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
        spill(&mut drafts, &mut virtuals, 20, Family::Nvidia);
        assert_eq!(drafts.len(), before);
    }

    /// Between jumps an order can be found.
    #[test]
    fn what_counts_at_jumps_alone_is_what_is_wanted_there() {
        let (mut drafts, mut virtuals) = program(20, 20);
        spill(&mut drafts, &mut virtuals, 20, Family::Intel);
        assert_eq!(count(&drafts, |class| matches!(class, Class::Store { .. })), 0);
        spill(&mut drafts, &mut virtuals, 18, Family::Intel);
        assert_eq!(count(&drafts, |class| matches!(class, Class::Store { .. })), 2);
    }

    #[test]
    fn what_cannot_fit_ends_all_the_same() {
        let (mut drafts, mut virtuals) = program(20, 5);
        spill(&mut drafts, &mut virtuals, 0, Family::Nvidia);
        assert_eq!(count(&drafts, |class| matches!(class, Class::Store { .. })), 20);
    }

    /// As many values, their sum, and each of them read again, with the sum or without it.
    fn summed(values: usize, with_sum: bool) -> (Vec<Draft>, Virtuals) {
        let (mut drafts, mut virtuals) = program(values, 0);
        drafts.truncate(values);
        let all: Vec<Virtual> = drafts.iter().map(|draft| draft.defines[0]).collect();
        let mut sum = all[0];
        for &one in &all[1..] {
            let next = virtuals.push(VirtualData {
                width: 1,
                is_token: false,
            });
            drafts.push(Draft {
                defines: vec![next],
                uses: vec![sum, one],
                ..Draft::new(Class::Int32, Kernel::NOWHERE)
            });
            sum = next;
        }
        for &one in &all {
            drafts.push(Draft {
                uses: if with_sum { vec![one, sum] } else { vec![one] },
                ..Draft::new(Class::Int32, Kernel::NOWHERE)
            });
        }
        (drafts, virtuals)
    }

    /// Where each value is read again behind what all are needed for, all are live there in any order.
    #[test]
    fn values_that_no_order_helps_are_stored() {
        let (mut drafts, mut virtuals) = summed(20, true);
        spill(&mut drafts, &mut virtuals, 12, Family::Intel);
        assert!(most(&drafts, &virtuals) <= 12, "{}", most(&drafts, &virtuals));
        assert!(count(&drafts, |class| matches!(class, Class::Store { .. })) >= 8);
        let (mut drafts, mut virtuals) = summed(20, false);
        spill(&mut drafts, &mut virtuals, 12, Family::Intel);
        assert_eq!(count(&drafts, |class| matches!(class, Class::Store { .. })), 0);
    }
}
