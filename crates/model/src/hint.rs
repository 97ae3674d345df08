//! A device's prefetch instructions: their form, the level they reach, and their cost.
//!
//! Back ends bring prefetches into these forms (`back::hints`).

use std::fmt;

use crate::ir::{CacheHint, CacheLevel, HintSource, OpKind, PrefetchScope};

/// The form of a device's prefetches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Form {
    /// Bytes of a cache line; a power of two.
    pub line: u32,
    /// Bytes that one prefetch of a work-item brings at most; a power of two, at most a line.
    pub piece: u32,
    /// Work-items of a full sub-group.
    pub sub_group: u32,
    /// Whether it has prefetches in bulk.
    pub has_bulk: bool,
    /// Whether it has prefetches at all.
    pub has_any: bool,
}

impl Form {
    /// NVIDIA: whole lines. Bulk prefetches came with compute capability 9.0.
    pub const fn nvidia(has_bulk: bool) -> Form {
        Form {
            line: 128,
            piece: 128,
            sub_group: 32,
            has_bulk,
            has_any: true,
        }
    }

    /// Intel since the Max series: at most 32 bytes a work-item and call.
    pub const fn intel(sub_group: u32) -> Form {
        Form {
            line: 64,
            piece: 32,
            sub_group,
            has_bulk: false,
            has_any: true,
        }
    }
}

/// The outcome of a prefetch: the level requested, and the one reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HintReached {
    /// Where it (or the load that it was derived from) is in the source.
    pub place: String,
    /// The request, as the text form spells it: `L1`, `L2 nontemporal`, `L1 default`, `L1UC_L3C`, with the requesting group, if
    /// not each work-item for itself: `L3 by sub_group`.
    pub asked: String,
    /// The level that was asked for; of a cache control the nearest.
    pub level: CacheLevel,
    /// The level that was reached; none if the prefetch does nothing.
    pub reached: Option<CacheLevel>,
    /// The instruction that reaches it.
    pub by: String,
    /// Why that level.
    pub why: String,
    /// Its cost, in words.
    pub cost: String,
}

impl fmt::Display for HintReached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reached = self.reached.map_or("nothing", CacheLevel::name);
        let HintReached {
            place,
            asked,
            by,
            why,
            cost,
            ..
        } = self;
        write!(
            f,
            "{place}: prefetch {asked} reaches {reached} by {by} ({why}); {cost}"
        )
    }
}

/// A prefetch's request, in words.
pub fn asked(hint: CacheHint, source: HintSource, scope: PrefetchScope) -> String {
    let mut asked = match source {
        HintSource::Control(control) => control.name().to_owned(),
        _ => hint.level.name().to_owned(),
    };
    if hint.nontemporal && !matches!(source, HintSource::Control(_)) {
        asked.push_str(" nontemporal");
    }
    if source == HintSource::Default {
        asked.push_str(" default");
    }
    if scope != PrefetchScope::WorkItem {
        asked.push_str(" by ");
        asked.push_str(scope.name());
    }
    asked
}

/// A prefetch's cost for a work-item, in words: the instructions of its expansion by `expand`. Shared address arithmetic is not
/// counted.
pub fn cost(prefetch: &OpKind, form: &Form) -> String {
    let OpKind::Prefetch {
        bytes,
        count,
        source,
        scope,
        ..
    } = prefetch
    else {
        return String::new();
    };
    if !form.has_any || !source.fills() {
        return "it costs nothing: it is left out".to_owned();
    }
    match (scope, count) {
        (PrefetchScope::WorkItem, None) => match bytes.div_ceil(form.piece) {
            1 => "1 prefetch".to_owned(),
            pieces => format!("{pieces} prefetches of at most {} bytes", form.piece),
        },
        (PrefetchScope::WorkItem, Some(_)) => format!(
            "the count is known at run time only: a loop of about 7 instructions for each {} bytes",
            form.piece
        ),
        (PrefetchScope::Bulk, _) if form.has_bulk => "1 request for the sub-group".to_owned(),
        (_, None) => format!(
            "at most {} lines of {} bytes, divided over the group: about 12 instructions and a prefetch",
            bytes.div_ceil(form.line) + 1,
            form.line
        ),
        (_, Some(_)) => format!(
            "lines of {} bytes, divided over the group; the count is known at run time only: a loop of about 7 \
             instructions for each line of a work-item",
            form.line
        ),
    }
}
