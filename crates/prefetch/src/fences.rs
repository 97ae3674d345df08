//! Hints to L1 that a fence invalidates are issued again after it.
//!
//! ```text
//! before                          after, distance 2
//! loop (%j = 0) {                 loop (%j = 0) {
//!   prefetch L1, %j + 2             prefetch L1, %j + 2
//!   %x = load %j                    %x = load %j
//!   fence                           fence
//!   …                               prefetch L1, %j + 1; prefetch L1, %j + 2
//! }                                 …
//!                                 }
//! ```
//!
//! A device-wide fence may empty L1, and with it the lines prefetched for coming iterations. Hints to other levels remain
//! legal, and so do those in a loop without such fences.

use std::collections::HashMap;

use super::early::Early;
use super::limits::Limits;
use super::loads::{find_loop, replace_loop};
use super::plan::Strategy;
use crate::analysis::definitions::Definitions;
use crate::analysis::loops::summarize;
use crate::error::{Error, Result};
use crate::ir::{Builder, CacheHint, CacheLevel, Kernel, Label, LoadId, Op, OpKind};

/// A hint that was derived for a load.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hinted {
    pub id: LoadId,
    /// How many iterations ahead.
    pub distance: u32,
    pub hint: CacheHint,
}

impl Hinted {
    /// Those that each work-item asks for by itself, in the order of the loads.
    pub(super) fn all(strategies: &HashMap<LoadId, Strategy>) -> Vec<Hinted> {
        let hinted = |(&id, strategy): (&LoadId, &Strategy)| {
            let level = strategy.level().filter(|_| !strategy.is_joint())?;
            Some(Hinted {
                id,
                distance: strategy.distance().get(),
                hint: CacheHint {
                    level,
                    nontemporal: strategy.is_nontemporal(),
                },
            })
        };
        let mut all: Vec<Hinted> = strategies.iter().filter_map(hinted).collect();
        all.sort_by_key(|hinted| hinted.id);
        all
    }
}

/// Whether an operation, or one inside it, is a fence that may empty L1.
fn is_fenced(op: &Op) -> bool {
    let fences = |kind: &OpKind| matches!(kind, OpKind::Fence(_, scope) if scope.is_wide());
    let mut found = fences(&op.kind);
    for region in op.kind.regions() {
        region.walk(&mut |op| found |= fences(&op.kind));
    }
    found
}

/// Issues hints again behind each fence of a loop, which takes `group` iterations a step.
///
/// # Errors
/// An address cannot be computed there, or the loop runs iterations in groups: the remaining iterations behind them would lose
/// their hints.
pub(super) fn reissue(kernel: &mut Kernel, label: Label, group: u32, hinted: &[Hinted]) -> Result<()> {
    let to_l1: Vec<Hinted> = hinted
        .iter()
        .copied()
        .filter(|hinted| hinted.hint.level == CacheLevel::L1)
        .collect();
    let body = find_loop(&kernel.body, label).and_then(|op| match &op.kind {
        OpKind::Loop { body, .. } => Some(body),
        _ => None,
    });
    let fenced = body.is_some_and(|body| body.ops.iter().any(is_fenced));
    if !fenced || to_l1.is_empty() {
        return Ok(());
    }
    if group > 1 {
        return Err(Error::usage(
            "a fence may undo hints to L1 for the iterations that are left behind the groups",
        )
        .accepted("`cache:L1` without `unroll`, or `cache:L2`"));
    }
    let definitions = Definitions::of(kernel);
    replace_loop(kernel, label, |kernel, mut op| {
        let summary = summarize(kernel, &definitions, &op);
        let OpKind::Loop { params, body, .. } = &mut op.kind else {
            return Ok(vec![op]);
        };
        let params = params.clone();
        let limits = Limits::default();
        let mut ops: Vec<Op> = Vec::new();
        for own in std::mem::take(&mut body.ops) {
            let fenced = is_fenced(&own);
            let own_place = own.place;
            ops.push(own);
            if !fenced {
                continue;
            }
            // Loads of this step that are still to come have lost their hints, too.
            let done = |id: LoadId, pointer| {
                let mut found = false;
                for op in &ops {
                    let is_it = |op: &Op| matches!(&op.kind, OpKind::Load { id: own, ptr, .. } if *own == id && *ptr == pointer);
                    found |= is_it(op);
                    op.kind
                        .regions()
                        .for_each(|region| region.walk(&mut |op| found |= is_it(op)));
                }
                found
            };
            let mut b = Builder::new(kernel, own_place);
            let mut early = Early::new(&summary, &definitions, &params, 0, &limits);
            for hinted in &to_l1 {
                let steps = hinted.distance.div_ceil(group);
                for site in summary.loads.iter().filter(|site| site.id == hinted.id) {
                    let first = u32::from(done(site.id, site.pointer));
                    for ahead in first..=steps {
                        let guard = early.guard(&mut b, site, ahead, true)?;
                        let pointer = early.value(&mut b, site.pointer, ahead)?;
                        let bytes = b.kernel.ty(site.results[0]).bytes() * site.results.len() as u32;
                        let (hint, id) = (hinted.hint, Some(site.id));
                        match guard {
                            None => b.prefetch(pointer, bytes, hint, id),
                            Some(guard) => {
                                let write = |b: &mut Builder<'_>| {
                                    b.prefetch(pointer, bytes, hint, id);
                                    Vec::new()
                                };
                                b.if_(guard, &[], write, |_| Vec::new());
                            }
                        }
                    }
                }
            }
            ops.extend(b.finish().ops);
        }
        body.ops = ops;
        let mut all = limits.take();
        all.push(op);
        Ok(all)
    })
}
