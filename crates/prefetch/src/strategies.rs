//! The strategies, a row each with the descriptor. Messages list them in this order, and plans are tried in this order.

use super::descriptor::Descriptor;
use super::{batched_registers, batched_shared, hint, joint, rolling_registers, rolling_shared};

/// Declares [`StrategyKind`]: the variants with their descriptors.
macro_rules! strategies {
    ($($(#[$doc:meta])* $variant:ident = $descriptor:path;)+) => {
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
    BatchedRegisters = batched_registers::DESCRIPTOR;
    /// A ring of registers, one load an iteration.
    RollingRegisters = rolling_registers::DESCRIPTOR;
    /// Every D-th iteration loads D values into shared memory.
    BatchedShared = batched_shared::DESCRIPTOR;
    /// A ring in shared memory, one load an iteration.
    RollingShared = rolling_shared::LOADED;
    /// A ring in shared memory that asynchronous copies fill.
    RollingAsync = rolling_shared::COPIED;
    /// A hint to bring the cache line to a cache level.
    Cache = hint::DESCRIPTOR;
    /// Hints for the cache lines of a whole sub-group or work-group, divided over its work-items.
    Joint = joint::DIVIDED;
    /// One bulk prefetch to L2 for the contiguous range that a sub-group reads.
    Bulk = joint::BULK;
}

impl StrategyKind {
    /// The strategy of this name.
    pub fn named(name: &str) -> Option<StrategyKind> {
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
