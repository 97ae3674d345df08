//! The strategies, a row each with the descriptor. Messages list them in this order, and plans are tried in this order.

use super::descriptor::{Carried, Descriptor, Look, Mark, Takes, TrialPolicy};
use crate::ir::CacheLevel;

/// Declares [`StrategyKind`]: the variants with their descriptors.
macro_rules! strategies {
    ($($(#[$doc:meta])* $variant:ident = $descriptor:ident;)+) => {
        /// A kind of strategy; [`Strategy`](super::plan::Strategy) has its parameters, too.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum StrategyKind { $($(#[$doc])* $variant),+ }

        impl StrategyKind {
            /// Every strategy.
            pub const ALL: &'static [StrategyKind] = &[$(StrategyKind::$variant),+];

            /// Its descriptor.
            pub fn descriptor(self) -> &'static Descriptor {
                match self { $(StrategyKind::$variant => &$descriptor),+ }
            }
        }
    };
}

strategies! {
    /// Every D-th iteration loads D values into registers.
    BatchedRegisters = BATCHED_REGISTERS;
    /// A ring of registers, one load an iteration.
    RollingRegisters = ROLLING_REGISTERS;
    /// Every D-th iteration loads D values into shared memory.
    BatchedShared = BATCHED_SHARED;
    /// A ring in shared memory, one load an iteration.
    RollingShared = ROLLING_SHARED;
    /// A ring in shared memory that asynchronous copies fill.
    RollingAsync = ROLLING_ASYNC;
    /// A hint to bring the cache line to a cache level.
    Cache = CACHE;
    /// Hints for the cache lines of a whole sub-group or work-group, divided over its work-items.
    Joint = JOINT;
    /// One bulk prefetch to L2 for the contiguous range that a sub-group reads.
    Bulk = BULK;
}

impl StrategyKind {
    /// The strategy of this name.
    pub(crate) fn named(name: &str) -> Option<StrategyKind> {
        StrategyKind::ALL
            .iter()
            .copied()
            .find(|kind| kind.descriptor().name == name)
    }

    /// The names, as messages list them.
    pub fn names() -> Vec<&'static str> {
        StrategyKind::ALL
            .iter()
            .map(|kind| kind.descriptor().name)
            .collect()
    }
}

const BATCHED_REGISTERS: Descriptor = Descriptor {
    name: "batched-registers",
    takes: Takes::NOTHING,
    carried: Carried::InBatches,
    is_asynchronous: false,
    is_joint: false,
    tried: TrialPolicy::Alone,
    weight: 2,
    sentence: "Every {nth}, {distance} values of `{load}` are loaded into registers at once.",
    look: Look {
        colour: 1,
        mark: Mark::Square,
    },
    look_at_l1: None,
};

const ROLLING_REGISTERS: Descriptor = Descriptor {
    name: "rolling-registers",
    takes: Takes::NOTHING,
    carried: Carried::InRegisters,
    is_asynchronous: false,
    is_joint: false,
    tried: TrialPolicy::Everywhere,
    weight: 2,
    sentence: "`{load}` is loaded {ahead} before its use, into a ring of registers.",
    look: Look {
        colour: 2,
        mark: Mark::Triangle,
    },
    look_at_l1: None,
};

const BATCHED_SHARED: Descriptor = Descriptor {
    name: "batched-shared",
    takes: Takes::LAYOUT,
    carried: Carried::InBatchesOfSlots,
    is_asynchronous: false,
    is_joint: false,
    tried: TrialPolicy::Alone,
    weight: 2,
    sentence: "Every {nth}, {distance} values of `{load}` are loaded into shared memory at once; {place}.",
    look: Look {
        colour: 3,
        mark: Mark::Pentagon,
    },
    look_at_l1: None,
};

const ROLLING_SHARED: Descriptor = Descriptor {
    name: "rolling-shared",
    takes: Takes::LAYOUT,
    carried: Carried::InSlots,
    is_asynchronous: false,
    is_joint: false,
    tried: TrialPolicy::Alone,
    weight: 2,
    sentence: "`{load}` is loaded {ahead} before its use, into a ring in shared memory; {place}.",
    look: Look {
        colour: 4,
        mark: Mark::TriangleDown,
    },
    look_at_l1: None,
};

const ROLLING_ASYNC: Descriptor = Descriptor {
    name: "rolling-async",
    is_asynchronous: true,
    tried: TrialPolicy::Everywhere,
    weight: 6,
    sentence: "`{load}` is copied asynchronously {ahead} before its use, into a ring in shared memory; {place}. No \
               register waits for it.",
    look: Look {
        colour: 5,
        mark: Mark::Circle,
    },
    ..ROLLING_SHARED
};

const CACHE: Descriptor = Descriptor {
    name: "cache",
    takes: Takes {
        levels: CacheLevel::ALL,
        nontemporal: true,
        ..Takes::NOTHING
    },
    carried: Carried::Not,
    is_asynchronous: false,
    is_joint: false,
    tried: TrialPolicy::Alone,
    weight: 3,
    sentence: "A hint brings `{load}` to cache level {level} {ahead} before its use{once}.",
    look: Look {
        colour: 7,
        mark: Mark::Cross,
    },
    look_at_l1: Some(Look {
        colour: 6,
        mark: Mark::Diamond,
    }),
};

const JOINT: Descriptor = Descriptor {
    name: "joint",
    takes: Takes {
        levels: CacheLevel::ALL,
        nontemporal: true,
        group: true,
        ..Takes::NOTHING
    },
    carried: Carried::Not,
    is_asynchronous: false,
    is_joint: true,
    tried: TrialPolicy::WhereShared,
    weight: 1,
    sentence: "The work-items of a {who} divide the cache lines of `{load}` and bring them to cache level {level} {ahead} \
               before their use.",
    look: Look {
        colour: 8,
        mark: Mark::Diamond,
    },
    look_at_l1: None,
};

const BULK: Descriptor = Descriptor {
    name: "bulk",
    takes: Takes {
        levels: &[CacheLevel::L2],
        ..Takes::NOTHING
    },
    sentence: "One bulk prefetch a sub-group brings `{load}` to the L2 cache {ahead} before its use.",
    look: Look {
        colour: 8,
        mark: Mark::Square,
    },
    ..JOINT
};
