//! `joint:L1:D` … `joint:L4:D`, `/group` — the cache lines that a sub-group (or work-group) will read, distributed over its
//! work-items; and `bulk:L2:D`, one request for them.
//!
//! ```text
//! before                          after, 4 bytes a work-item side by side
//! loop (%j = 0) {                 loop (%j = 0) {
//!   %x = load %p                    %first = address of %j + D, of the first work-item
//!   use %x                          prefetch L2 4 * sub-group size at %first by sub_group (guarded)
//!   continue %j + 1                 %x = load %p
//! }                                 …
//!                                 }
//! ```
//!
//! The addresses must be the same for all work-items that ask together, or follow each other without a gap; and all must
//! reach the prefetch: a loop that they leave at different times is refused. Where they all walk through memory together
//! in steps below a cache line, only the step that enters a line prefetches.

use super::early::Early;
use super::fetch::Fetch;
use super::hint::target;
use super::legality;
use super::plan::{JointScope, StrategyKind};
use super::planned::Planned;
use crate::analysis::loops::LoadSite;
use crate::analysis::neighbours::Neighbours;
use crate::analysis::uniform::parted_prefetch;
use crate::error::{Error, Result};
use crate::ir::{
    Builder, CacheHint, CacheLevel, ConvertOp, HintSource, Id, Kernel, OpKind, PrefetchScope, Type, Value,
};

pub(super) fn pass(load: &Planned<'_>) -> Result<Box<dyn Fetch>> {
    let scope = match (load.strategy.kind(), load.strategy.scope()) {
        (StrategyKind::Bulk, _) => PrefetchScope::Bulk,
        (_, JointScope::SubGroup) => PrefetchScope::SubGroup,
        (_, JointScope::WorkGroup) => PrefetchScope::WorkGroup,
    };
    Ok(Box::new(Joint::new(load, scope)?))
}

/// A prefetch of a group.
pub(super) struct Joint {
    site: LoadSite,
    /// How many iterations ahead.
    distance: u32,
    hint: CacheHint,
    scope: PrefetchScope,
    /// Bytes a cache line; a power of two.
    line: u32,
    /// Whether the work-items read side by side; else they read the same.
    side_by_side: bool,
}

impl Joint {
    /// Looks at the addresses of a load.
    ///
    /// # Errors
    /// They diverge.
    fn new(load: &Planned<'_>, scope: PrefetchScope) -> Result<Joint> {
        let (kernel, site) = (load.kernel, load.site);
        let work_group = scope == PrefetchScope::WorkGroup;
        let growth = Neighbours::of(kernel, load.definitions, work_group).growth(site.pointer);
        let bytes = i64::from(kernel.ty(site.results[0]).bytes()) * site.results.len() as i64;
        let who = if work_group { "work-group" } else { "sub-group" };
        let refuse = |why: String| {
            let name = &kernel.loads[site.id].name;
            Error::usage(format!(
                "`{name}` cannot be prefetched by the {who} together: {why}"
            ))
            .at(kernel.describe_place(site.place))
            .accepted("`cache:…` hints in each work-item")
        };
        match growth {
            Some(growth) if growth == 0 || growth == bytes => Ok(Joint {
                side_by_side: growth != 0,
                site: site.clone(),
                distance: load.ahead(),
                hint: CacheHint {
                    level: load.strategy.level().unwrap_or(CacheLevel::L2),
                    nontemporal: load.strategy.is_nontemporal(),
                },
                scope,
                line: load.target.line,
            }),
            Some(growth) => Err(refuse(format!(
                "its work-items read {bytes} bytes each, {growth} bytes apart"
            ))),
            None => Err(refuse("the addresses of its work-items diverge".to_owned())),
        }
    }

    /// The first work-item's pointer and how many work-items read behind it.
    fn range(&self, b: &mut Builder<'_>, pointer: Value, bytes: u32) -> (Value, Option<Value>) {
        if !self.side_by_side {
            return (pointer, None);
        }
        let one_row = b.kernel.group_size;
        let (number, count) = match (self.scope, one_row) {
            (PrefetchScope::WorkGroup, Some([x, ..])) => (Id::Local(0), Ok(u64::from(x))),
            (PrefetchScope::WorkGroup, None) => (Id::Local(0), Err(Id::GroupSize(0))),
            (_, size) => {
                let items = size.map(|size| size.iter().map(|&size| u64::from(size)).product::<u64>());
                let whole = b.kernel.sub_group_size.map(u64::from);
                let whole = whole.filter(|&whole| items.is_some_and(|items| items.is_multiple_of(whole)));
                (Id::Lane, whole.ok_or(Id::SubGroupSize))
            }
        };
        let number = b.id(number);
        let number = b.convert(ConvertOp::ExtendU, Type::I64, number);
        let zero = b.i64(0);
        let back = b.sub(zero, number);
        let first = b.address(pointer, back, bytes, 0);
        let count = match count {
            Ok(count) => b.constant(Type::I64, count),
            Err(id) => {
                let count = b.id(id);
                b.convert(ConvertOp::ExtendU, Type::I64, count)
            }
        };
        (first, Some(count))
    }
}

impl Fetch for Joint {
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
            let line = (!self.side_by_side).then_some(self.line);
            let (pointer, guard) = target(early, b, &self.site, ahead, line)?;
            let write = |b: &mut Builder<'_>| {
                let (ptr, count) = self.range(b, pointer, bytes);
                // A count that is known is a size.
                let known = count.and_then(|count| b.kernel.as_constant(count));
                let (bytes, count) = match known {
                    Some(count) => (bytes * count as u32, None),
                    None => (bytes, count),
                };
                let kind = OpKind::Prefetch {
                    ptr,
                    bytes,
                    count,
                    hint: self.hint,
                    source: HintSource::Named,
                    scope: self.scope,
                    id: Some(self.site.id),
                };
                b.push(kind, &[]);
                Vec::new()
            };
            match guard {
                None => {
                    write(b);
                }
                Some(guard) => {
                    b.if_(guard, &[], write, |_| Vec::new());
                }
            }
        }
        Ok(Vec::new())
    }

    fn replaces_load(&self) -> bool {
        false
    }
}

/// Prefetches of a group are reached by all of it.
pub(super) fn reached_together(kernel: &Kernel) -> Result<()> {
    match parted_prefetch(kernel) {
        None => Ok(()),
        Some(place) => Err(Error::usage(
            "the work-items that would prefetch together may not all come here: the loop, or a condition around it, ends at \
             different times for them",
        )
        .at(kernel.describe_place(place))
        .accepted("`cache:…` hints in each work-item")),
    }
}
