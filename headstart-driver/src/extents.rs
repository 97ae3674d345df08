//! Which bytes a launch may access through a pointer.
//!
//! A pointer need not lie in the memory that it is used for: one behind an array's last element, from which a kernel goes back,
//! and one before its first are addresses of the neighbouring allocations. So the address alone says little:
//!
//! - Where the arithmetic of [`reach`](crate::reach) gives bytes that all lie in one allocation, it is those.
//! - Else the pointer is one of an object, as C, C++ and Rust have it, and reaches no other. Its object lies in an allocation around the
//!   address, or in one that ends there, or in one that begins within [`BESIDE`] bytes: it may be any of them, as far as the
//!   arithmetic does not say that nothing of it is reached.
//! - Nothing is accessed through a null pointer.
//!
//! What others may write is never one of them, whichever of these it follows from: then nothing is known.

use crate::abi::DevicePtr;
use crate::memory::{self, Allocation, MemoryKind};
use crate::reach::Interval;

/// A pointer before an object lies less than this many bytes before it: one element. The driver's own allocations begin at
/// multiples of 256 bytes.
const BESIDE: u64 = 256;
/// Allocations that an object may be in, at most; with more of them nothing is known.
const MOST: usize = 4;

/// Bytes, as the first and the last of each piece.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extents {
    pieces: [Option<(DevicePtr, DevicePtr)>; MOST],
}

impl Extents {
    fn add(&mut self, first: DevicePtr, last: DevicePtr) -> Option<()> {
        let free = self.pieces.iter_mut().find(|piece| piece.is_none())?;
        *free = Some((first, last));
        Some(())
    }

    /// Whether no byte is in both.
    pub fn are_apart(&self, other: &Extents) -> bool {
        let own = self.pieces.iter().flatten();
        own.copied().all(|(first, last)| {
            let mut others = other.pieces.iter().flatten();
            others.all(|&(other_first, other_last)| last < other_first || other_last < first)
        })
    }
}

/// The bytes that may be accessed through a pointer; none if that is not known, or others may write some of them. `reached` is
/// what the arithmetic says: nothing, or no byte at all, or the first and the last, counted from the address.
pub fn of(address: DevicePtr, reached: Option<Option<Interval>>) -> Option<Extents> {
    let mut extents = Extents::default();
    let bounds = match reached {
        Some(None) => return Some(extents),
        Some(Some(bounds)) => Some(bounds),
        None => None,
    };
    if let Some((low, high)) = bounds
        && let (Some(first), Some(last)) = (address.checked_add_signed(low), address.checked_add_signed(high))
        && let Some(own) = memory::at(first).filter(|own| last < own.end())
    {
        return is_own(&own).then_some(()).and_then(|()| {
            extents.add(first, last)?;
            Some(extents)
        });
    }
    if address == 0 {
        return Some(extents);
    }
    let mut is_any = false;
    for object in memory::between(address, address.saturating_add(BESIDE - 1)) {
        let bound = |distance: i64| i128::from(address) + i128::from(distance);
        let (low, high) = bounds.map_or((i128::MIN, i128::MAX), |(low, high)| (bound(low), bound(high)));
        let (first, last) = (
            i128::from(object.start).max(low),
            (i128::from(object.end()) - 1).min(high),
        );
        if first > last {
            continue;
        }
        if !is_own(&object) {
            return None;
        }
        // Both lie in the allocation.
        extents.add(first as DevicePtr, last as DevicePtr)?;
        is_any = true;
    }
    is_any.then_some(extents)
}

fn is_own(allocation: &Allocation) -> bool {
    allocation.kind != MemoryKind::Foreign
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether two pointers into memory at these addresses reach different bytes.
    fn are_apart(one: (u64, Option<Option<Interval>>), other: (u64, Option<Option<Interval>>)) -> bool {
        match (of(one.0, one.1), of(other.0, other.1)) {
            (Some(one), Some(other)) => {
                assert_eq!(one.are_apart(&other), other.are_apart(&one));
                one.are_apart(&other)
            }
            _ => false,
        }
    }

    const A: u64 = 0x5100_0000;
    const B: u64 = A + 0x1000;
    const C: u64 = B + 0x1000;
    const FAR: u64 = A + 0x10_0000;
    const FOREIGN: u64 = FAR + 0x1000;
    const ANY: Option<Option<Interval>> = None;

    fn bytes(first: i64, last: i64) -> Option<Option<Interval>> {
        Some(Some((first, last)))
    }

    fn allocate() {
        for start in [A, B, C, FAR] {
            memory::allocated(start, 0x1000, MemoryKind::Device);
        }
        memory::allocated(FOREIGN, 0x1000, MemoryKind::Foreign);
    }

    #[test]
    fn a_pointer_one_past_its_array_is_of_the_array() {
        allocate();
        // It goes back from its end, where the next allocation begins.
        assert!(!are_apart((B, bytes(-0x1000, -1)), (A, bytes(0, 0xfff))));
        assert!(are_apart((B, bytes(-0x1000, -1)), (B, bytes(0, 0xfff))));
        // Without bounds it may be either's.
        assert!(!are_apart((B, ANY), (A, bytes(0, 0xfff))));
        assert!(!are_apart((B, ANY), (B, bytes(0, 0xfff))));
        assert!(are_apart((B, ANY), (C, bytes(0, 0xfff))));
        assert!(are_apart((B, ANY), (FAR, bytes(0, 0xfff))));
        // Bounds that leave the allocation say on which side nothing is.
        assert!(are_apart((B, bytes(0, 1 << 40)), (A, bytes(0, 0xfff))));
        assert!(!are_apart((B, bytes(-4, 1 << 40)), (A, bytes(0, 0xfff))));
        // Inside an allocation it can be of no other one.
        assert!(are_apart((B + 0x10, ANY), (A, bytes(0, 0xfff))));
        assert!(!are_apart((B + 0x10, ANY), (B, bytes(0, 3))), "no bounds");
    }

    #[test]
    fn a_pointer_before_its_array_is_of_the_array() {
        allocate();
        assert!(!are_apart((B - 4, bytes(4, 0x1003)), (B, bytes(0, 3))));
        assert!(are_apart((B - 4, bytes(4, 0x1003)), (A, bytes(0, 0xfff))));
        assert!(!are_apart((B - 4, ANY), (B, bytes(0, 3))));
        assert!(!are_apart((B - 4, ANY), (A, bytes(0, 3))));
        assert!(are_apart((B - 4, ANY), (C, bytes(0, 3))));
        assert!(are_apart((B - 0x100, ANY), (B, bytes(0, 3))), "too far before it");
    }

    #[test]
    fn what_others_may_write_is_apart_from_nothing() {
        allocate();
        let other = (A, bytes(0, 0xfff));
        assert!(are_apart((FAR, bytes(0, 0xfff)), other));
        assert!(!are_apart((FOREIGN, bytes(0, 0xfff)), other));
        assert!(!are_apart((FOREIGN, ANY), other));
        // It lies behind this one.
        assert!(!are_apart((FAR + 0xff0, ANY), other));
        assert!(are_apart((FAR + 0xff0, bytes(-0xff0, 0xf)), other));
        assert!(!are_apart((FOREIGN + 0x1000, bytes(-8, -1)), other));
        assert!(!are_apart((0x10, ANY), other), "no memory");
        assert!(!are_apart((0x10, bytes(0, 3)), other), "no memory");
    }

    #[test]
    fn nothing_is_accessed_through_a_null_pointer() {
        allocate();
        assert!(are_apart((0, ANY), (0, ANY)));
        assert!(are_apart((0, ANY), (A, ANY)));
        assert!(are_apart((0x10, Some(None)), (A, ANY)), "no byte is reached");
        // An address that is all index.
        assert!(!are_apart((0, bytes(A as i64, A as i64 + 3)), (A, bytes(0, 3))));
    }
}
