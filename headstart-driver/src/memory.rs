//! Where the program's memory lies: every allocation that a kernel may reach.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::abi::DevicePtr;
use crate::events;
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

/// By the address of their first byte; no two overlap. Each with the context that it goes with.
static ALL: Lock<BTreeMap<DevicePtr, (Allocation, usize)>> = Lock::new(BTreeMap::new());
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

/// The program has got memory. What was known of these addresses is over: it went in a way that is not observed.
pub fn allocated(start: DevicePtr, bytes: u64, kind: MemoryKind) {
    allocated_in(events::context(), start, bytes, kind);
}

fn allocated_in(context: usize, start: DevicePtr, bytes: u64, kind: MemoryKind) {
    if start == 0 || bytes == 0 {
        return;
    }
    let new = Allocation { start, bytes, kind };
    let mut all = ALL.take();
    let before = all.range(..new.end()).rev();
    let overlapped: Vec<DevicePtr> = before
        .map(|(_, (own, _))| *own)
        .take_while(|own| own.end() > start)
        .map(|own| own.start)
        .collect();
    for own in overlapped {
        all.remove(&own);
    }
    all.insert(start, (new, context));
    CHANGES.fetch_add(1, Ordering::Release);
}

/// The program has given memory back.
pub fn freed(start: DevicePtr) {
    ALL.take().remove(&start);
    CHANGES.fetch_add(1, Ordering::Release);
}

/// The program has unmapped a range, in which several may have been mapped.
pub fn unmapped(start: DevicePtr, bytes: u64) {
    let end = start.saturating_add(bytes);
    ALL.take().retain(|own, _| !(start..end).contains(own));
    CHANGES.fetch_add(1, Ordering::Release);
}

/// A context has ended, and its memory with it; all memory, if it is not known which one. What was mapped goes with none, and
/// memory of the stream-ordered allocator is no longer known although it may be there.
pub fn context_ended(context: Option<usize>) {
    ALL.take().retain(|_, (own, of)| {
        own.kind == MemoryKind::Foreign || context.is_some_and(|context| context != *of)
    });
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
    let (_, (own, _)) = all.range(..=address).next_back()?;
    (address < own.end()).then_some(*own)
}

/// The same, unless others may write it: nothing is known of that.
pub fn own_at(address: DevicePtr) -> Option<Allocation> {
    at(address).filter(|own| own.kind != MemoryKind::Foreign)
}

/// The allocations that begin at the last of these addresses or before, and end at the first or behind: that of the byte in front of
/// the first is among them.
pub fn between(first: DevicePtr, last: DevicePtr) -> Vec<Allocation> {
    let all = ALL.take();
    let before = all.range(..=last).rev();
    before
        .map(|(_, (own, _))| *own)
        .take_while(|own| own.end() >= first)
        .collect()
}

/// All allocations, in the order of their addresses.
pub fn all() -> Vec<Allocation> {
    ALL.take().values().map(|(own, _)| *own).collect()
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

    #[test]
    fn what_is_overlapped_is_gone() {
        allocated(0x4_1000, 0x1000, MemoryKind::Device);
        allocated(0x4_2000, 0x1000, MemoryKind::Device);
        allocated(0x4_3000, 0x1000, MemoryKind::Foreign);
        // A pool in their place: two pointers into it lie in one allocation.
        allocated(0x4_1000, 0x2000, MemoryKind::Device);
        assert_eq!(at(0x4_1000), at(0x4_2800));
        assert_eq!(at(0x4_2fff).map(|own| own.bytes), Some(0x2000));
        assert_eq!(at(0x4_3000).map(|own| own.bytes), Some(0x1000), "it was beside");
        // One inside another.
        allocated(0x4_1800, 0x10, MemoryKind::Device);
        assert_eq!(at(0x4_1000), None);
        assert_eq!(at(0x4_1800).map(|own| own.bytes), Some(0x10));
        assert_eq!(own_at(0x4_3000), None, "others may write it");
    }

    #[test]
    fn memory_goes_with_its_context() {
        allocated_in(71, 0x6_1000, 0x1000, MemoryKind::Device);
        allocated_in(71, 0x6_2000, 0x1000, MemoryKind::Managed);
        allocated_in(71, 0x6_3000, 0x1000, MemoryKind::Foreign);
        allocated_in(72, 0x6_4000, 0x1000, MemoryKind::Device);
        let before = changes();
        context_ended(Some(71));
        assert!(changes() > before);
        let there = [0x6_1000, 0x6_2000, 0x6_3000, 0x6_4000].map(|address| at(address).is_some());
        assert_eq!(there, [false, false, true, true]);
        unmapped(0x6_3000, 0x1000);
        assert_eq!(at(0x6_3000), None);
    }

    #[test]
    fn a_range_is_unmapped_with_all_that_was_mapped_in_it() {
        for start in [0x8_1000, 0x8_2000, 0x8_3000] {
            allocated(start, 0x1000, MemoryKind::Foreign);
        }
        unmapped(0x8_1000, 0x2000);
        let there = [0x8_1000, 0x8_2000, 0x8_3000].map(|address| at(address).is_some());
        assert_eq!(there, [false, false, true]);
    }
}
