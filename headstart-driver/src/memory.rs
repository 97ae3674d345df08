//! Where the program's memory lies: every allocation that a kernel may reach.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::abi::DevicePtr;
use crate::lock::Lock;

/// The kind of an allocation's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryKind {
    /// The device's own.
    Device,
    /// The host's, which kernels reach, too.
    Host,
    /// Pages move between host and device: a snapshot cannot be trusted.
    Managed,
    /// Another process or device may write it.
    Foreign,
}

/// An allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// Address of its first byte.
    pub start: DevicePtr,
    /// Its size.
    pub bytes: u64,
    /// Its kind.
    pub kind: MemoryKind,
}

impl Allocation {
    /// Address behind its last byte.
    pub fn end(&self) -> DevicePtr {
        self.start.saturating_add(self.bytes)
    }
}

static ALL: Lock<BTreeMap<DevicePtr, Allocation>> = Lock::new(BTreeMap::new());
/// Counts changes: facts about an address hold as long as it is unchanged.
static CHANGES: AtomicU64 = AtomicU64::new(0);

/// Holds the lock for the time of a fork.
pub fn hold() {
    ALL.hold();
}

/// Ends [`hold`].
pub fn release() {
    ALL.release();
}

/// The program has got memory.
pub fn allocated(start: DevicePtr, bytes: u64, kind: MemoryKind) {
    if start == 0 || bytes == 0 {
        return;
    }
    ALL.take().insert(start, Allocation { start, bytes, kind });
    CHANGES.fetch_add(1, Ordering::Release);
}

/// The program has given memory back.
pub fn freed(start: DevicePtr) {
    ALL.take().remove(&start);
    CHANGES.fetch_add(1, Ordering::Release);
}

/// How often memory was got or given back.
#[inline]
pub fn changes() -> u64 {
    CHANGES.load(Ordering::Acquire)
}

/// The allocation that an address lies in.
pub fn at(address: DevicePtr) -> Option<Allocation> {
    let all = ALL.take();
    let (_, allocation) = all.range(..=address).next_back()?;
    (address < allocation.end()).then_some(*allocation)
}

/// All allocations, in the order of their addresses.
pub fn all() -> Vec<Allocation> {
    ALL.take().values().copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_lies_in_its_allocation_or_in_none() {
        allocated(0x5000, 0x100, MemoryKind::Device);
        allocated(0x5200, 0x10, MemoryKind::Host);
        let start = |address| at(address).map(|allocation| allocation.start);
        assert_eq!(start(0x5000), Some(0x5000));
        assert_eq!(start(0x50ff), Some(0x5000));
        assert_eq!(start(0x5100), None);
        assert_eq!(start(0x520f), Some(0x5200));
        assert_eq!(start(0x4fff), None);
        let before = changes();
        freed(0x5000);
        assert_eq!(start(0x5000), None);
        assert!(changes() > before);
    }
}
