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
//! If the module has source locations, line and column identify copies. Otherwise the loop counter does: in a loop that
//! advances N steps at once, groups of N loads from one buffer (or a multiple) are copies, in turn; the remainder loop behind
//! or before it has the same loads again. Steps that are known only at run time count as often as they are added. This changes
//! only names, and the fact that nothing writes the loaded memory applies to all copies or none.

use std::collections::HashMap;

use crate::analysis::definitions::Definitions;
use crate::analysis::loops::{Step, summarize};
use crate::ir::{BinaryOp, Kernel, Label, LoadData, LoadId, Op, OpKind, PlaceData, Region, Type, Value};

/// Most iterations that a compiler is expected to unroll.
const MOST_COPIES: u64 = 64;

/// Common properties of a load's copies: the memory, whether the program states that nothing writes it, and the type that is
/// read.
type LoadKind = (String, bool, Type, usize);

/// A loop without loops inside, and its loads in order.
struct Inner {
    label: Label,
    /// How many steps of its counter an iteration goes.
    steps: u64,
    loads: Vec<(LoadId, LoadKind)>,
}

/// Gives copies of a load the same identity.
pub(crate) fn merge(kernel: &mut Kernel, file: &str) {
    let mut same: HashMap<LoadId, LoadId> = HashMap::new();
    if !by_line(kernel, file, &mut same) {
        by_counter(kernel, &mut same);
    }
    if same.is_empty() {
        return;
    }
    for (copy, first) in &same {
        // The combined source is read-only only if each one is.
        kernel.loads[*first].constant &= kernel.loads[*copy].constant;
    }
    let mut body = std::mem::take(&mut kernel.body);
    body.walk_mut(&mut |op| {
        if let OpKind::Load { id, .. } | OpKind::Copy { id, .. } = &mut op.kind {
            *id = same.get(id).copied().unwrap_or(*id);
        }
    });
    kernel.body = body;
}

/// Says whether lines of a source are known that the compiler copied. A line of the module itself is no such line: loads have the same
/// one where iterations were written out.
fn by_line(kernel: &Kernel, file: &str, same: &mut HashMap<LoadId, LoadId>) -> bool {
    let mut of_source = false;
    let mut first: HashMap<(LoadKind, &PlaceData), LoadId> = HashMap::new();
    kernel.body.walk(&mut |op| {
        if let Some((id, kind)) = load(kernel, op) {
            let place = &kernel.places[kernel.loads[id].place];
            let is_of_module = place.file == file;
            if place.line == 0 || place.column == 0 && !is_of_module {
                return;
            }
            let known = *first.entry((kind, place)).or_insert(id);
            if known != id {
                same.insert(id, known);
                of_source |= !is_of_module;
            }
        }
    });
    of_source
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
        let (originals, copies) = turns(inner);
        // nvcc puts the remainder behind the loop, clang before it.
        let neighbours = [Some(position + 1), position.checked_sub(1)];
        let mut rest = neighbours
            .into_iter()
            .flatten()
            .filter_map(|position| loops.get(position));
        let rest = rest.find_map(|rest| {
            let is_known = rest.loads.iter().any(|(id, _)| same.contains_key(id));
            match is_unrolled(rest) || is_known {
                true => None,
                false => paired(&originals, rest),
            }
        });
        // A loop that goes several steps may have been written so.
        let is_of = |kind: &LoadKind| originals.iter().any(|turn| is_alike(&turn.kind, kind));
        let is_even =
            inner.loads.iter().all(|(_, kind)| is_of(kind)) && originals.iter().all(|turn| !turn.is_uneven);
        if rest.is_some() || is_even {
            same.extend(copies);
            same.extend(rest.into_iter().flatten());
        }
    }
}

/// Whether loads may be copies of one. clang now and then leaves out of one copy that nothing writes what it reads.
fn is_alike(one: &LoadKind, other: &LoadKind) -> bool {
    (&one.0, one.2, one.3) == (&other.0, other.2, other.3)
}

/// The loads of one kind in an unrolled loop: those that one iteration of the source makes.
struct Turn {
    kind: LoadKind,
    ids: Vec<LoadId>,
    /// There are not as many copies as iterations: the compiler kept values from one copy to the next.
    is_uneven: bool,
}

/// The loads of the first iteration of an unrolled loop, and the others, each with that of the first.
///
/// Where a value that one copy loads is kept for the next, loads of a memory are missing. All that are left are one load
/// then, with a stride.
fn turns(inner: &Inner) -> (Vec<Turn>, Vec<(LoadId, LoadId)>) {
    let (mut turns, mut copies): (Vec<Turn>, _) = (Vec::new(), Vec::new());
    for (id, kind) in &inner.loads {
        match turns.iter_mut().find(|turn| is_alike(&turn.kind, kind)) {
            Some(turn) => turn.ids.push(*id),
            None => turns.push(Turn {
                kind: kind.clone(),
                ids: vec![*id],
                is_uneven: false,
            }),
        }
    }
    let steps = inner.steps as usize;
    // Loads that no iteration makes as often as the others were not unrolled.
    turns.retain(|turn| turn.ids.len() >= steps);
    for turn in &mut turns {
        turn.is_uneven = !turn.ids.len().is_multiple_of(steps);
        let first = if turn.is_uneven { 1 } else { turn.ids.len() / steps };
        for (position, id) in turn.ids.iter().enumerate().skip(first) {
            copies.push((*id, turn.ids[position % first]));
        }
        turn.ids.truncate(first);
    }
    (turns, copies)
}

/// The loads of the loop that does what is left over, each with the unrolled loop's: nothing if they do not match.
fn paired(originals: &[Turn], rest: &Inner) -> Option<Vec<(LoadId, LoadId)>> {
    let mut taken = vec![0; originals.len()];
    let pairs: Option<Vec<(LoadId, LoadId)>> = rest
        .loads
        .iter()
        .map(|(id, kind)| {
            let which = originals.iter().position(|turn| is_alike(&turn.kind, kind))?;
            let turn = &originals[which];
            // The remainder reloads the values that the copies pass to each other.
            let own = taken[which] % turn.ids.len();
            taken[which] += 1;
            Some((*id, turn.ids[own]))
        })
        .collect();
    let mut counted = originals.iter().zip(&taken);
    let all_there = counted.all(|(turn, &taken)| taken >= turn.ids.len());
    pairs.filter(|pairs| all_there && !pairs.is_empty())
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
                // Whether a counter may wrap around says nothing about how far it goes at once.
                let counter = summary.counting().map(|exit| exit.param);
                let steps =
                    match counter.map(|param| (summary.params[param], summary.steps[param])) {
                        Some((param, Step::Constant(step))) if kernel.ty(param).is_integer() => {
                            step.unsigned_abs()
                        }
                        // As many times the step of one source iteration.
                        Some((_, Step::Value { value, scale })) => scale
                            .unsigned_abs()
                            .saturating_mul(factor(kernel, definitions, value)),
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

/// The constant that a value is multiplied by, or 1.
fn factor(kernel: &Kernel, definitions: &Definitions, value: Value) -> u64 {
    match definitions.op(value) {
        Some(&OpKind::Binary(BinaryOp::Shl, _, count)) => match kernel.as_constant(count) {
            Some(count @ 0..32) => 1 << count,
            _ => 1,
        },
        Some(&OpKind::Binary(BinaryOp::Mul, a, b)) => {
            let constant = kernel.as_constant(a).or(kernel.as_constant(b));
            constant.unwrap_or(1)
        }
        _ => 1,
    }
}

/// A load of memory: which, and what it reads.
fn load(kernel: &Kernel, op: &Op) -> Option<(LoadId, LoadKind)> {
    let OpKind::Load { id, .. } = op.kind else {
        return None;
    };
    let LoadData { name, constant, .. } = kernel.loads[id].clone();
    Some((id, (name, constant, kernel.ty(op.results[0]), op.results.len())))
}
