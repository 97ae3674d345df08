//! Where pointers are taken from the constant bank. (Numbers are loaded at the kernel's start, and stay there.)
//!
//! Before: each once, at the kernel's start, in two registers up to its last use.
//!
//! ```text
//! load-constant x1   …   loop … int-multiply x9 <- x8, x1 …   int32 x10 <- x7, x2
//! ```
//!
//! After: as ptxas places them. A parameter read only by additions stays in uniform registers (`ULDC`,
//! `LEA R4, P0, R18, UR8, 0x2`) and takes no per-work-item register. A parameter read by a multiplication, which takes no
//! uniform register (`IMAD.WIDE`), is loaded near its use (`LDC.64 R4, c[0x0][0x240]`): before the outermost loop around it, or
//! at the use if several instructions between two jumps read it. (From the kernel `gather` with rings, ptxas 12.9 for sm_90:
//! with one or two readers before the loop; with four, eight or sixteen inside it.)

use std::collections::BTreeMap;

use super::draft::{Draft, Virtual, Virtuals};
use super::liveness::Scopes;
use super::program::{Class, Control};

/// This many readers between two jumps have their own load.
const SEVERAL: usize = 4;

/// Puts the loads of pointers where they are wanted.
pub(super) fn place(pointers: Vec<Draft>, drafts: Vec<Draft>, virtuals: &mut Virtuals) -> Vec<Draft> {
    let mut drafts = drafts;
    let (loops, starts) = places(&drafts);
    // By destination: the constants loaded there.
    let mut loads: BTreeMap<usize, Vec<Draft>> = BTreeMap::new();
    for pointer in &pointers {
        let Some(&register) = pointer.defines.first() else {
            continue;
        };
        let readers: Vec<usize> = (0..drafts.len())
            .filter(|&reader| drafts[reader].uses.contains(&register))
            .collect();
        let is_sum = |&reader: &usize| {
            matches!(drafts[reader].class, Class::Int32 | Class::Int64) && drafts[reader].move_.is_none()
        };
        if readers.iter().all(is_sum) {
            virtuals[register].width = 0;
            loads.entry(0).or_default().push(pointer.clone());
            continue;
        }
        let together = |reader: usize| {
            let products = readers.iter().filter(|&&other| {
                starts[other] == starts[reader] && drafts[other].class == Class::IntMultiply
            });
            products.count() >= SEVERAL
        };
        let wanted: Vec<(usize, usize)> = readers
            .iter()
            .map(|&reader| {
                (
                    reader,
                    if together(reader) {
                        starts[reader]
                    } else {
                        loops[reader]
                    },
                )
            })
            .collect();
        let mut known: BTreeMap<usize, Virtual> = BTreeMap::new();
        for (reader, place) in wanted {
            let own = *known
                .entry(place)
                .or_insert_with(|| virtuals.push(virtuals[register]));
            for used in drafts[reader].uses.iter_mut().filter(|used| **used == register) {
                *used = own;
            }
            if let Some(move_) = drafts[reader]
                .move_
                .as_mut()
                .filter(|move_| move_.from == register)
            {
                move_.from = own;
            }
        }
        for (place, own) in known {
            let load = Draft {
                defines: vec![own],
                ..pointer.clone()
            };
            loads.entry(place).or_default().push(load);
        }
    }
    let mut out = Vec::with_capacity(drafts.len());
    for (at, draft) in drafts.into_iter().enumerate() {
        out.extend(loads.remove(&at).unwrap_or_default());
        out.push(draft);
    }
    out
}

/// For each draft, the draft before which its constants are loaded: the outermost loop around it, or the first draft behind the
/// last jump; and the latter in any case.
fn places(drafts: &[Draft]) -> (Vec<usize>, Vec<usize>) {
    let scopes = Scopes::of(drafts.iter().map(|draft| draft.control));
    let (mut loops, mut starts) = (Vec::new(), Vec::new());
    let (mut start, mut outermost) = (0, None);
    for (at, draft) in drafts.iter().enumerate() {
        if outermost.is_none() && matches!(draft.control, Control::Loop { .. }) {
            outermost = Some((at, scopes.closing[at]));
        }
        loops.push(outermost.map_or(start, |(opening, _)| opening));
        starts.push(start);
        if outermost.is_some_and(|(_, closing)| closing == at) {
            outermost = None;
        }
        if draft.fixed {
            start = at + 1;
        }
    }
    (loops, starts)
}
