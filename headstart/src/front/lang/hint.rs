//! Cache hints and shared arrays: what is written in a kernel as a call and has a form of its own.

use super::atomic::Stored;
use crate::ir::{CacheHint, CacheLevel};

/// Into the cache nearest to the work-item.
pub const L1: CacheHint = CacheHint {
    level: CacheLevel::L1,
    nontemporal: false,
};

/// Into the second level.
pub const L2: CacheHint = CacheHint {
    level: CacheLevel::L2,
    nontemporal: false,
};

/// Into the third level.
pub const L3: CacheHint = CacheHint {
    level: CacheLevel::L3,
    nontemporal: false,
};

/// Into the fourth level.
pub const L4: CacheHint = CacheHint {
    level: CacheLevel::L4,
    nontemporal: false,
};

impl CacheHint {
    /// The same level, for data that will not be used again: `prefetch(&values[i], L1.nontemporal())`.
    #[must_use]
    pub const fn nontemporal(self) -> CacheHint {
        CacheHint {
            nontemporal: true,
            ..self
        }
    }
}

/// A hint that an element of a slice will be wanted: `prefetch(&values[i], L1)`.
///
/// It changes no result. The element may lie behind the slice's end; whether that is harmless depends on
/// the device, and towards `L1` it is not (the functional engine reports it), so guard it there. Which level
/// a device really fills, `headstart devices` says.
pub fn prefetch<T: Stored>(element: &T, hint: CacheHint) {
    let _ = (element, hint);
}

/// An array shared by the work-group: `let mut tile = shared::<f32, 256>();`, or of atomic elements,
/// `let counts = shared::<Atomic<u32>, 64>();`.
///
/// On a device its elements hold nothing until they are written. The CPU reference runs one work-item at a
/// time and gives each its own, so a kernel that shares through it has no CPU reference.
pub fn shared<T: Stored + Default, const N: usize>() -> [T; N] {
    std::array::from_fn(|_| T::default())
}
