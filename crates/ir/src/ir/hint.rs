//! Cache hints of prefetches, loads and stores.

use super::table::words;

words! {
    /// Cache levels of the SYCL prefetch extension; the lowest number is nearest to the work-item.
    pub enum CacheLevel {
        /// Level 1.
        L1 = "L1",
        /// Level 2.
        L2 = "L2",
        /// Level 3.
        L3 = "L3",
        /// Level 4.
        L4 = "L4",
    }
}

/// The target of a prefetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CacheHint {
    /// Into which level; the report says which one was reached.
    pub level: CacheLevel,
    /// The data will not be reused.
    pub nontemporal: bool,
}

/// Who chose a prefetch's target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HintSource {
    /// The author.
    #[default]
    Named,
    /// Not given: the launch decides, and the level is its default, L1 unless said otherwise. See
    /// [`Kernel::with_default_level`](super::Kernel::with_default_level).
    Default,
    /// The author, by the name of one of Intel's cache controls; the level is the nearest to it.
    Control(LscControl),
}

words! {
    /// The work-items that prefetch together.
    #[derive(Default)]
    pub enum PrefetchScope: "who asks" {
        /// Each work-item for itself.
        #[default]
        WorkItem = "work_item",
        /// The work-items of a sub-group together: they divide the cache lines among themselves.
        SubGroup = "sub_group",
        /// The work-items of a work-group together: they divide the cache lines among themselves.
        WorkGroup = "work_group",
        /// The work-items of a sub-group together, in one request for the whole range, to level 2.
        Bulk = "bulk",
    }
}

words! {
    /// Intel's cache controls for loads and prefetches by the LSC (load/store cache), numbered as its builtins number
    /// them (`LSC_LDCC` of the oneAPI optimization guide's page on prefetch). `uc` is uncached, `c` cached, `s` streaming,
    /// `iar` invalidated after it is read.
    pub enum LscControl {
        /// The device's default.
        Default = "LSC_DEFAULT",
        /// Neither level.
        L1ucL3uc = "L1UC_L3UC",
        /// L3 only: the target of the page's `prefetch(count)`.
        L1ucL3c = "L1UC_L3C",
        /// L1 only.
        L1cL3uc = "L1C_L3UC",
        /// Both levels.
        L1cL3c = "L1C_L3C",
        /// L1, for data that will not be reused.
        L1sL3uc = "L1S_L3UC",
        /// Both levels, for data that will not be reused.
        L1sL3c = "L1S_L3C",
        /// Both levels. An assertion, no hint: the line will not be read again after it was read once.
        L1iarL3c = "L1IAR_L3C",
    }
}

/// A load's or store's request to the memory system. It never changes a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CacheUse {
    /// The device's default.
    #[default]
    Default,
    /// Past L1.
    Bypass,
    /// The data will not be reused.
    Streaming,
    /// Every access reaches memory; never merged, moved or fetched early.
    Volatile,
    /// One of Intel's cache controls; other devices use the nearest equivalent. Loads only.
    Control(LscControl),
    /// The work-items of the sub-group, all of them and together, access elements of global memory that follow each
    /// other, from the first work-item's on: a device may make one request of it. That is a promise, which the
    /// functional engine checks; beside it the access is one like any other, and one that a pass derives from it
    /// promises nothing. The first address is a multiple of [`block_alignment`](CacheUse::block_alignment).
    Block,
}

impl CacheHint {
    /// Into this level.
    pub const fn to(level: CacheLevel) -> CacheHint {
        CacheHint {
            level,
            nontemporal: false,
        }
    }

    /// The same level, for data that will not be used again: `prefetch(&values[i], L1.nontemporal())`.
    #[must_use]
    pub const fn nontemporal(self) -> CacheHint {
        CacheHint {
            nontemporal: true,
            ..self
        }
    }

    /// Of several hints the one to the lowest level, with its own flag; of several to that level, the first.
    pub fn lowest(hints: &[CacheHint]) -> Option<CacheHint> {
        hints.iter().copied().min_by_key(|hint| hint.level)
    }
}

impl LscControl {
    /// The control that carries a hint. Streaming stands for "nontemporal", never invalidate-after-read, which is no hint but a
    /// promise; Intel's L3 has no streaming mode.
    pub const fn of(hint: CacheHint) -> LscControl {
        match (hint.level, hint.nontemporal) {
            (CacheLevel::L1, false) => LscControl::L1cL3c,
            (CacheLevel::L1, true) => LscControl::L1sL3c,
            _ => LscControl::L1ucL3c,
        }
    }

    /// The hint that is nearest. L4, which fills nothing else, for the control that fills nothing.
    pub const fn nearest(self) -> CacheHint {
        match self {
            LscControl::Default | LscControl::L1cL3uc | LscControl::L1cL3c => CacheHint::to(CacheLevel::L1),
            LscControl::L1ucL3c => CacheHint::to(CacheLevel::L3),
            LscControl::L1ucL3uc => CacheHint::to(CacheLevel::L4),
            LscControl::L1sL3uc | LscControl::L1sL3c | LscControl::L1iarL3c => {
                CacheHint::to(CacheLevel::L1).nontemporal()
            }
        }
    }

    /// Whether a prefetch with it brings anything nearer.
    pub(crate) const fn fills(self) -> bool {
        !matches!(self, LscControl::L1ucL3uc)
    }

    /// The number that Intel's builtins take.
    pub const fn number(self) -> u32 {
        self as u32
    }

    /// The corresponding request of a load.
    pub const fn load(self) -> CacheUse {
        match self {
            LscControl::Default => CacheUse::Default,
            control => CacheUse::Control(control),
        }
    }
}

impl HintSource {
    /// Whether a prefetch is to bring anything nearer.
    pub const fn fills(self) -> bool {
        match self {
            HintSource::Control(control) => control.fills(),
            _ => true,
        }
    }
}

impl PrefetchScope {
    /// Whether all must have the same pointer and count, and reach it.
    pub const fn is_joint(self) -> bool {
        !matches!(self, PrefetchScope::WorkItem)
    }
}

impl CacheUse {
    /// The required alignment of a block's first element, in bytes, by `OpSubgroupBlockReadINTEL` and
    /// `OpSubgroupBlockWriteINTEL` of SPV_INTEL_subgroups.
    pub const fn block_alignment(writes: bool) -> u64 {
        if writes { 16 } else { 4 }
    }

    /// Every variant.
    pub(crate) const ALL: &'static [CacheUse] = &[
        CacheUse::Default,
        CacheUse::Bypass,
        CacheUse::Streaming,
        CacheUse::Volatile,
        CacheUse::Control(LscControl::L1ucL3uc),
        CacheUse::Control(LscControl::L1ucL3c),
        CacheUse::Control(LscControl::L1cL3uc),
        CacheUse::Control(LscControl::L1cL3c),
        CacheUse::Control(LscControl::L1sL3uc),
        CacheUse::Control(LscControl::L1sL3c),
        CacheUse::Control(LscControl::L1iarL3c),
        CacheUse::Block,
    ];

    /// The spelling in the text form.
    pub(crate) fn name(self) -> &'static str {
        match self {
            CacheUse::Default | CacheUse::Control(LscControl::Default) => "default",
            CacheUse::Bypass => "bypass",
            CacheUse::Streaming => "streaming",
            CacheUse::Volatile => "volatile",
            CacheUse::Control(control) => control.name(),
            CacheUse::Block => "block",
        }
    }

    /// The variant spelled `name` in the text form.
    pub(crate) fn parse(name: &str) -> Option<CacheUse> {
        CacheUse::ALL.iter().copied().find(|one| one.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_level_wins_with_its_own_flag() {
        let to = CacheHint::to;
        let hints = [
            to(CacheLevel::L4).nontemporal(),
            to(CacheLevel::L2),
            to(CacheLevel::L3),
        ];
        assert_eq!(CacheHint::lowest(&hints), Some(to(CacheLevel::L2)));
        let hints = [to(CacheLevel::L3), to(CacheLevel::L1).nontemporal()];
        assert_eq!(CacheHint::lowest(&hints), Some(hints[1]));
        assert_eq!(CacheHint::lowest(&[]), None);
    }

    #[test]
    fn controls_have_the_numbers_of_the_builtins() {
        for (number, control) in (0..).zip(LscControl::ALL) {
            assert_eq!(control.number(), number, "{}", control.name());
        }
        let fill_nothing: Vec<_> = LscControl::ALL.iter().filter(|one| !one.fills()).collect();
        assert_eq!(fill_nothing, [&LscControl::L1ucL3uc]);
    }
}
