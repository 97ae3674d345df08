//! `cache:L1:D` … `cache:L4:D` — a cache hint D iterations ahead.
//!
//! ```text
//! before                      after
//! loop (%j = 0) {             loop (%j = 0) {
//!   %x = load %j                prefetch L2, address of %j + D (guarded)
//!   use %x                      %x = load %j
//!   continue %j + 1             use %x
//! }                             continue %j + 1
//!                             }
//! ```
//!
//! No prologue, as in the documents: the first D iterations miss. Where a work-item walks through memory in
//! steps below a cache line, only the step that enters a line hints.

use std::collections::HashSet;

use super::candidate::Candidate;
use super::early::Early;
use super::fetch::Fetch;
use super::legality;
use super::loads::resolve;
use super::plan::Plan;
use super::planned::Planned;
use crate::analysis::loops::LoadSite;
use crate::error::Result;
use crate::ir::{
    BinaryOp, Builder, CacheHint, CacheLevel, CacheUse, CompareOp, ConvertOp, Kernel, OpKind, Type, Value,
};

pub(super) fn pass(load: &Planned<'_>) -> Result<Box<dyn Fetch>> {
    Ok(Box::new(Hint {
        site: load.site.clone(),
        distance: load.ahead(),
        hint: CacheHint {
            level: load.strategy.level().unwrap_or(CacheLevel::L1),
            nontemporal: load.strategy.is_nontemporal(),
        },
        line: load.target.line,
    }))
}

/// A cache hint.
pub(super) struct Hint {
    pub(super) site: LoadSite,
    /// How many iterations ahead.
    pub(super) distance: u32,
    pub(super) hint: CacheHint,
    /// Bytes a cache line; a power of two.
    pub(super) line: u32,
}

impl Fetch for Hint {
    fn site(&self) -> &LoadSite {
        &self.site
    }

    fn advance(
        &mut self,
        early: &mut Early<'_>,
        b: &mut Builder<'_>,
        _: &[Value],
        group: u32,
    ) -> Result<Vec<Value>> {
        legality::may_hint(b.kernel, early.definitions, &self.site)?;
        let bytes = b.kernel.ty(self.site.results[0]).bytes() * self.site.results.len() as u32;
        for ahead in self.distance..self.distance + group {
            let (pointer, guard) = target(early, b, &self.site, ahead, Some(self.line))?;
            let (hint, id) = (self.hint, Some(self.site.id));
            match guard {
                None => b.prefetch(pointer, bytes, hint, id),
                Some(guard) => {
                    let hint = |b: &mut Builder<'_>| {
                        b.prefetch(pointer, bytes, hint, id);
                        Vec::new()
                    };
                    b.if_(guard, &[], hint, |_| Vec::new());
                }
            }
        }
        Ok(Vec::new())
    }

    fn replaces_load(&self) -> bool {
        false
    }
}

/// The target of a hint, `ahead` iterations early, and when it is issued: in iterations that happen, and, if lines have `line`
/// bytes, once for each line that the pointer enters.
pub(super) fn target(
    early: &mut Early<'_>,
    b: &mut Builder<'_>,
    site: &LoadSite,
    ahead: u32,
    line: Option<u32>,
) -> Result<(Value, Option<Value>)> {
    let guard = early.guard(b, site, ahead, false)?;
    let pointer = early.value(b, site.pointer, ahead)?;
    let growth = early.pointer_growth(b.kernel, site.pointer);
    let enters = growth
        .zip(line)
        .filter(|(growth, line)| *growth > 0 && *growth < i64::from(*line))
        .map(|(growth, line)| enters_line(b, pointer, growth, line));
    let guards = guard.into_iter().chain(enters);
    Ok((pointer, guards.reduce(|all, guard| b.and(all, guard))))
}

/// Whether a pointer that grows by `growth` bytes an iteration is in a line that it was not in before.
fn enters_line(b: &mut Builder<'_>, pointer: Value, growth: i64, line: u32) -> Value {
    let bits = b.convert(ConvertOp::Bits, Type::I64, pointer);
    let mask = b.i64(i64::from(line) - 1);
    let inside = b.binary(BinaryOp::And, bits, mask);
    let growth = b.i64(growth);
    b.compare(CompareOp::LtU, inside, growth)
}

/// Loads whose hints are nontemporal are nontemporal, too.
pub(super) fn stream(kernel: &mut Kernel, plan: &Plan, all: &[Candidate]) -> Result<()> {
    let mut ids = HashSet::new();
    for (name, strategy) in plan.loads() {
        if strategy.is_nontemporal() {
            ids.extend(
                resolve(kernel, all, name)?
                    .into_iter()
                    .map(|candidate| candidate.id),
            );
        }
    }
    kernel.body.walk_mut(&mut |op| {
        if let OpKind::Load { id, cache, .. } = &mut op.kind
            && ids.contains(id)
            && *cache == CacheUse::Default
        {
            *cache = CacheUse::Streaming;
        }
    });
    Ok(())
}
