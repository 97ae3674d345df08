//! Copies of one load: compilers unroll, and the load that a line of the source makes stands several times in a loop.
//!
//! ```text
//! before                                     after
//! loop (%i += 4) {                           loop (%i += 4) {
//!   %a = load …, @p.1  %b = load …, @p.2       %a = load …, @p  %b = load …, @p
//!   %c = load …, @p.3  %d = load …, @p.4       %c = load …, @p  %d = load …, @p
//! }                                          }
//! loop (%i += 1) { %e = load …, @p.5 }       loop (%i += 1) { %e = load …, @p }
//! ```
//!
//! Where the module says which line of the source an instruction comes from, the line and column decide. Elsewhere the
//! counter does: in a loop that goes N steps at once, loads of one memory of which there are N, or a multiple, are
//! copies, in turns; and the loop behind or before it that does what is left over has the same loads again. Names are all that this
//! changes.

use std::collections::HashMap;

use crate::analysis::definitions::Definitions;
use crate::analysis::loops::{Step, summarize};
use crate::ir::{Kernel, Label, LoadData, LoadId, Op, OpKind, PlaceData, Region, Type};

/// Most iterations that a compiler is expected to unroll.
const MOST_COPIES: u64 = 64;

/// What copies of a load have in common: the memory, whether the program says that nothing writes it, and what is read.
type Kind = (String, bool, Type, usize);

/// A loop without loops inside, and its loads in order.
struct Inner {
    label: Label,
    /// How many steps of its counter an iteration goes.
    steps: u64,
    loads: Vec<(LoadId, Kind)>,
}

/// Gives copies of a load the same identity.
pub(super) fn merge(kernel: &mut Kernel, file: &str) {
    let mut same: HashMap<LoadId, LoadId> = HashMap::new();
    by_line(kernel, file, &mut same);
    if same.is_empty() {
        by_counter(kernel, &mut same);
    }
    if same.is_empty() {
        return;
    }
    let mut body = std::mem::take(&mut kernel.body);
    body.walk_mut(&mut |op| {
        if let OpKind::Load { id, .. } | OpKind::Copy { id, .. } = &mut op.kind {
            *id = same.get(id).copied().unwrap_or(*id);
        }
    });
    kernel.body = body;
}

fn by_line(kernel: &Kernel, file: &str, same: &mut HashMap<LoadId, LoadId>) {
    let mut first: HashMap<(Kind, &PlaceData), LoadId> = HashMap::new();
    kernel.body.walk(&mut |op| {
        if let Some((id, kind)) = load(kernel, op) {
            let place = &kernel.places[kernel.loads[id].place];
            // A line of the module itself is no line of a source.
            if place.file == file || place.line == 0 || place.column == 0 {
                return;
            }
            let known = *first.entry((kind, place)).or_insert(id);
            if known != id {
                same.insert(id, known);
            }
        }
    });
}

fn by_counter(kernel: &Kernel, same: &mut HashMap<LoadId, LoadId>) {
    let definitions = Definitions::of(kernel);
    let mut loops = Vec::new();
    inner_loops(kernel, &definitions, &kernel.body, &mut loops);
    let is_unrolled = |inner: &Inner| (2..=MOST_COPIES).contains(&inner.steps);
    for (position, inner) in loops.iter().enumerate() {
        if !is_unrolled(inner) {
            continue;
        }
        // The loads of one iteration of the source.
        let originals = turns(inner, same);
        let kinds =
            |loads: &[(LoadId, Kind)]| -> Vec<Kind> { loads.iter().map(|(_, kind)| kind.clone()).collect() };
        // nvcc does what is left over behind the loop, clang before it.
        let neighbours = [Some(position + 1), position.checked_sub(1)];
        let mut rest = neighbours
            .into_iter()
            .flatten()
            .filter_map(|position| loops.get(position));
        let rest = rest.find(|rest| {
            let is_known = rest.loads.iter().any(|(id, _)| same.contains_key(id));
            !is_unrolled(rest) && !is_known && kinds(&originals) == kinds(&rest.loads)
        });
        if let Some(rest) = rest {
            let pairs = rest.loads.iter().zip(&originals);
            same.extend(pairs.map(|((id, _), (original, _))| (*id, *original)));
        }
    }
}

/// Finds the copies in an unrolled loop; gives the loads of its first iteration. Nothing if some loads are not there as
/// often as the others.
fn turns(inner: &Inner, same: &mut HashMap<LoadId, LoadId>) -> Vec<(LoadId, Kind)> {
    let mut by_kind: HashMap<&Kind, Vec<LoadId>> = HashMap::new();
    for (id, kind) in &inner.loads {
        by_kind.entry(kind).or_default().push(*id);
    }
    let steps = inner.steps as usize;
    if by_kind.values().any(|ids| !ids.len().is_multiple_of(steps)) {
        return Vec::new();
    }
    let mut originals = Vec::new();
    for (id, kind) in &inner.loads {
        let ids = &by_kind[kind];
        let turn = ids.len() / steps;
        let position = ids.iter().position(|other| other == id).unwrap_or(0);
        match position < turn {
            true => originals.push((*id, kind.clone())),
            false => {
                same.insert(*id, ids[position % turn]);
            }
        }
    }
    originals
}

fn inner_loops(kernel: &Kernel, definitions: &Definitions, region: &Region, into: &mut Vec<Inner>) {
    for op in &region.ops {
        if let OpKind::Loop { label, body, .. } = &op.kind {
            let mut is_innermost = true;
            let mut loads = Vec::new();
            body.walk(&mut |op| {
                is_innermost &= !matches!(op.kind, OpKind::Loop { .. });
                loads.extend(load(kernel, op));
            });
            if is_innermost && !loads.is_empty() {
                let summary = summarize(kernel, definitions, op);
                let counter = summary.exit.ok().map(|exit| exit.param);
                let steps = match counter.map(|param| (summary.params[param], summary.steps[param])) {
                    Some((param, Step::Constant(step))) if kernel.ty(param).is_integer() => {
                        step.unsigned_abs()
                    }
                    _ => 1,
                };
                into.push(Inner {
                    label: *label,
                    steps,
                    loads,
                });
            }
        }
        for inner in op.kind.regions() {
            inner_loops(kernel, definitions, inner, into);
        }
    }
    into.dedup_by_key(|inner| inner.label);
}

/// A load of memory: which, and what it reads.
fn load(kernel: &Kernel, op: &Op) -> Option<(LoadId, Kind)> {
    let OpKind::Load { id, .. } = op.kind else {
        return None;
    };
    let LoadData { name, constant, .. } = kernel.loads[id].clone();
    Some((id, (name, constant, kernel.ty(op.results[0]), op.results.len())))
}
