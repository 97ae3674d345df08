//! The strategies, with what each of them can be told: distance, layout, cache level, scope.

use std::fmt;
use std::num::NonZeroU32;

use crate::error::{Error, Result};
use crate::ir::CacheLevel;

/// How many iterations ahead of its use a value is asked for: 1 to [`Distance::MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Distance(NonZeroU32);

impl Distance {
    /// The largest distance. No memory is so slow that more would help: 4096 iterations of four cycles are more than
    /// twenty times the latency of device memory.
    pub const MAX: u32 = 4096;

    /// A distance of so many iterations.
    ///
    /// # Errors
    /// It is 0 or above [`Distance::MAX`].
    pub fn new(iterations: u32) -> Result<Distance> {
        match NonZeroU32::new(iterations) {
            Some(distance) if iterations <= Distance::MAX => Ok(Distance(distance)),
            Some(_) => {
                Err(Error::usage(format!("distance {iterations} is too large"))
                    .accepted(Distance::accepted()))
            }
            None => Err(Error::usage("distance 0 fetches nothing early").accepted(Distance::accepted())),
        }
    }

    /// The number of iterations.
    pub const fn get(self) -> u32 {
        self.0.get()
    }

    /// The part of a message that says which distances there are.
    pub(super) fn accepted() -> String {
        format!("a distance is 1 to {} iterations ahead of the use", Distance::MAX)
    }
}

impl fmt::Display for Distance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// How many iterations of a loop become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unroll {
    /// Groups of so many iterations, 2 to [`Unroll::MAX`]: their loads first, then their uses.
    By(NonZeroU32),
    /// The whole loop; its trip count must be known.
    Full,
}

impl Unroll {
    /// The largest group of iterations.
    pub const MAX: u32 = 1024;

    /// Groups of so many iterations.
    ///
    /// # Errors
    /// It is below 2, which is no unrolling, or above [`Unroll::MAX`].
    pub fn by(iterations: u32) -> Result<Unroll> {
        match NonZeroU32::new(iterations) {
            Some(count) if (2..=Unroll::MAX).contains(&iterations) => Ok(Unroll::By(count)),
            _ => Err(Error::usage(format!("a loop cannot be unrolled by {iterations}"))
                .accepted(Unroll::accepted())),
        }
    }

    /// The iterations in a group; none where the whole loop is one.
    pub fn iterations(self) -> Option<u32> {
        match self {
            Unroll::By(iterations) => Some(iterations.get()),
            Unroll::Full => None,
        }
    }

    /// The part of a message that says what unrolling there is.
    pub(super) fn accepted() -> String {
        format!("`unroll:N` with N from 2 to {}, or `unroll:full`", Unroll::MAX)
    }
}

impl fmt::Display for Unroll {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unroll::By(iterations) => write!(f, "unroll:{iterations}"),
            Unroll::Full => f.write_str("unroll:full"),
        }
    }
}

/// Where the values of one work-item lie in shared memory. The default is [`Layout::Interleaved`]: it has no bank
/// conflicts at any distance and wastes no space. Plans as printed always name the layout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layout {
    /// Each work-item's values follow one another: the article's first form. Distances that are multiples of a power
    /// of two conflict in the banks.
    Plain,
    /// As plain, with unused elements after each work-item's values; see [`Layout::depth`].
    Padded,
    /// Slot-major: the values that neighbouring work-items hold of the same iteration are neighbours.
    #[default]
    Interleaved,
}

impl Layout {
    /// Every layout.
    pub const ALL: [Layout; 3] = [Layout::Plain, Layout::Padded, Layout::Interleaved];

    /// The name in a plan, after the slash.
    pub fn name(self) -> &'static str {
        match self {
            Layout::Plain => "plain",
            Layout::Padded => "padded",
            Layout::Interleaved => "interleaved",
        }
    }

    /// Elements of shared memory that one work-item takes for this many slots.
    ///
    /// Padded: the least 2ᵏ+1 not below the slots, the rule of NVIDIA's article "Boosting Application Performance
    /// with GPU Memory Prefetching". k is at least 1, because an even stride is what the padding is to avoid.
    pub fn depth(self, slots: Distance) -> u32 {
        match self {
            Layout::Plain | Layout::Interleaved => slots.get(),
            Layout::Padded => (slots.get() - 1).next_power_of_two().max(2) + 1,
        }
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Who shares the work of a joint prefetch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// The work-items of a sub-group: the default.
    #[default]
    SubGroup,
    /// The work-items of a work-group, written `/group`.
    WorkGroup,
}

/// How the data of a load is brought nearer before its use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Strategy {
    /// Every D-th iteration loads D values into registers.
    BatchedRegisters {
        /// Values in a batch.
        distance: Distance,
    },
    /// A ring of registers, one load an iteration.
    RollingRegisters {
        /// How far ahead the load is.
        distance: Distance,
    },
    /// Every D-th iteration loads D values into shared memory.
    BatchedShared {
        /// Values in a batch.
        distance: Distance,
        /// Where they lie.
        layout: Layout,
    },
    /// A ring in shared memory, one load an iteration.
    RollingShared {
        /// How far ahead the load is.
        distance: Distance,
        /// Where the ring's slots lie.
        layout: Layout,
    },
    /// A ring in shared memory that asynchronous copies fill.
    RollingAsync {
        /// How far ahead the copy is.
        distance: Distance,
        /// Where the ring's slots lie.
        layout: Layout,
    },
    /// A hint to bring the cache line to a cache level.
    Cache {
        /// The level asked for; the device says which it reaches.
        level: CacheLevel,
        /// How far ahead the hint is.
        distance: Distance,
        /// Whether the data is unlikely to be used again.
        nontemporal: bool,
    },
    /// Hints for the cache lines of a whole sub-group or work-group, divided over its work-items.
    Joint {
        /// The level asked for; the device says which it reaches.
        level: CacheLevel,
        /// How far ahead the hints are.
        distance: Distance,
        /// Whether the data is unlikely to be used again.
        nontemporal: bool,
        /// Who divides the lines among themselves.
        scope: Scope,
    },
    /// One bulk prefetch to L2 for the contiguous range that a sub-group reads.
    Bulk {
        /// How far ahead the prefetch is.
        distance: Distance,
    },
}

impl Strategy {
    /// The names of the strategies, in the order in which messages list them.
    pub const NAMES: [&'static str; 8] = [
        "batched-registers",
        "rolling-registers",
        "batched-shared",
        "rolling-shared",
        "rolling-async",
        "cache",
        "joint",
        "bulk",
    ];

    /// The name in a plan, without distance, level and layout.
    pub fn name(self) -> &'static str {
        match self {
            Strategy::BatchedRegisters { .. } => "batched-registers",
            Strategy::RollingRegisters { .. } => "rolling-registers",
            Strategy::BatchedShared { .. } => "batched-shared",
            Strategy::RollingShared { .. } => "rolling-shared",
            Strategy::RollingAsync { .. } => "rolling-async",
            Strategy::Cache { .. } => "cache",
            Strategy::Joint { .. } => "joint",
            Strategy::Bulk { .. } => "bulk",
        }
    }

    /// How many iterations ahead of its use a value is asked for.
    pub fn distance(self) -> Distance {
        match self {
            Strategy::BatchedRegisters { distance }
            | Strategy::RollingRegisters { distance }
            | Strategy::BatchedShared { distance, .. }
            | Strategy::RollingShared { distance, .. }
            | Strategy::RollingAsync { distance, .. }
            | Strategy::Cache { distance, .. }
            | Strategy::Joint { distance, .. }
            | Strategy::Bulk { distance } => distance,
        }
    }

    /// The layout in shared memory; none for strategies that use none.
    pub fn layout(self) -> Option<Layout> {
        match self {
            Strategy::BatchedShared { layout, .. }
            | Strategy::RollingShared { layout, .. }
            | Strategy::RollingAsync { layout, .. } => Some(layout),
            _ => None,
        }
    }

    /// The cache level asked for; none for strategies that fetch values.
    pub fn level(self) -> Option<CacheLevel> {
        match self {
            Strategy::Cache { level, .. } | Strategy::Joint { level, .. } => Some(level),
            Strategy::Bulk { .. } => Some(CacheLevel::L2),
            _ => None,
        }
    }

    /// Whether it is only a hint: the load stays where it is, and results cannot depend on it.
    pub fn is_hint(self) -> bool {
        self.level().is_some()
    }

    /// Whether work-items carry it out together.
    pub fn is_joint(self) -> bool {
        matches!(self, Strategy::Joint { .. } | Strategy::Bulk { .. })
    }

    /// Whether its data is said not to be used again.
    pub fn is_nontemporal(self) -> bool {
        matches!(
            self,
            Strategy::Cache {
                nontemporal: true,
                ..
            } | Strategy::Joint {
                nontemporal: true,
                ..
            }
        )
    }

    /// The strategy without its distance, as a figure labels its line: `rolling-async/padded`, `cache:L2/nt`.
    pub fn label(self) -> String {
        let level = self
            .level()
            .map(|level| format!(":{}", level.name()))
            .unwrap_or_default();
        format!("{}{level}{}", self.name(), self.suffix())
    }

    /// Layout and flags, each with its slash.
    fn suffix(self) -> String {
        let mut suffix = String::new();
        if let Some(layout) = self.layout() {
            suffix = format!("/{layout}");
        }
        if let Strategy::Cache {
            nontemporal: true, ..
        }
        | Strategy::Joint {
            nontemporal: true, ..
        } = self
        {
            suffix.push_str("/nt");
        }
        if let Strategy::Joint {
            scope: Scope::WorkGroup,
            ..
        } = self
        {
            suffix.push_str("/group");
        }
        suffix
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        if let Some(level) = self.level() {
            write!(f, ":{}", level.name())?;
        }
        write!(f, ":{}{}", self.distance(), self.suffix())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_makes_strides_odd() {
        let depth = |slots| Layout::Padded.depth(Distance::new(slots).expect("in range"));
        let expected = [
            (1, 3),
            (2, 3),
            (3, 3),
            (4, 5),
            (5, 5),
            (6, 9),
            (8, 9),
            (9, 9),
            (12, 17),
            (16, 17),
            (17, 17),
        ];
        for (slots, elements) in expected {
            assert_eq!(depth(slots), elements, "for {slots} slots");
        }
        assert_eq!(depth(Distance::MAX), Distance::MAX + 1);
    }

    #[test]
    fn the_names_are_those_of_the_variants() {
        let distance = Distance::new(3).expect("in range");
        let (layout, level, nontemporal, scope) = (Layout::Padded, CacheLevel::L1, true, Scope::WorkGroup);
        let all = [
            Strategy::BatchedRegisters { distance },
            Strategy::RollingRegisters { distance },
            Strategy::BatchedShared { distance, layout },
            Strategy::RollingShared { distance, layout },
            Strategy::RollingAsync { distance, layout },
            Strategy::Cache {
                level,
                distance,
                nontemporal,
            },
            Strategy::Joint {
                level,
                distance,
                nontemporal,
                scope,
            },
            Strategy::Bulk { distance },
        ];
        assert_eq!(all.map(Strategy::name), Strategy::NAMES);
        assert_eq!(all[6].to_string(), "joint:L1:3/nt/group");
        assert_eq!(all[4].label(), "rolling-async/padded");
    }
}
