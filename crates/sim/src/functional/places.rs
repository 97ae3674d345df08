//! Buffers at addresses of a program's choosing: which address lies in which of them.
//!
//! Inside the engine an address names its buffer, see [`address`](super::address). A captured launch, or one that a driver
//! makes, has its own pointers in memory: the kernel computes with those, and an access looks up its buffer here.

use super::address;
use crate::{Error, Result};

/// Where buffers begin that the program has not placed: above all that a driver gives, below the generic windows.
const ELSEWHERE: u64 = 1 << 58;
/// Room for each of them.
const ROOM: u64 = 1 << 41;
/// An address this far from all buffers is meant for none.
const NEAR: u64 = 1 << 30;
/// The mark of an address outside all buffers.
const NOWHERE: u64 = 1 << 59;

/// Where the buffers of a launch lie, in the order of their addresses.
#[derive(Debug)]
pub(super) struct Places(Vec<Place>);

#[derive(Clone, Copy, Debug)]
struct Place {
    start: u64,
    end: u64,
    buffer: usize,
}

impl Places {
    /// Where a buffer lies for which the program has no place.
    pub(crate) fn elsewhere(buffer: usize) -> u64 {
        ELSEWHERE + buffer as u64 * ROOM
    }

    /// An address that was found to be meant for none, as it was.
    pub(crate) fn shown(address: u64) -> u64 {
        address & !NOWHERE
    }

    /// Start and size of each buffer, in bytes.
    ///
    /// # Errors
    /// Two of them overlap, or lie where no device has memory.
    pub(crate) fn new(buffers: impl Iterator<Item = (u64, u64)>) -> Result<Places> {
        let place = |(buffer, (start, bytes)): (usize, (u64, u64))| match start.checked_add(bytes) {
            Some(end) if start > 0 && end < NOWHERE => Ok(Place { start, end, buffer }),
            _ => Err(
                Error::usage(format!("a buffer of {bytes} bytes at address {start:#x}"))
                    .accepted(format!("addresses from 1 to below {NOWHERE:#x}")),
            ),
        };
        let mut places: Vec<Place> = buffers.enumerate().map(place).collect::<Result<_>>()?;
        places.sort_by_key(|place| (place.start, place.end));
        let clash = places.windows(2).find(|pair| pair[0].end > pair[1].start);
        match clash {
            Some(pair) => Err(Error::usage(format!(
                "the buffers at {:#x} and {:#x} overlap",
                pair[0].start, pair[1].start
            ))),
            None => Ok(Places(places)),
        }
    }

    /// An address as one that names its buffer: the one that it lies in, or that it comes shortly after or before.
    pub(crate) fn named(&self, address: u64) -> u64 {
        let after = self.0.partition_point(|place| place.start <= address);
        let near = |place: &&Place| address < place.end.saturating_add(NEAR);
        let before = self.0[..after].last().filter(near);
        let next = self.0.get(after).filter(|next| next.start - address < NEAR);
        match (before, next) {
            (Some(place), next)
                if next.is_none() || address < place.end + ROOM.min(next_half(place, next)) =>
            {
                address::buffer_address(place.buffer) + (address - place.start)
            }
            (_, Some(next)) => address::buffer_address(next.buffer) - (next.start - address),
            _ => NOWHERE | address,
        }
    }
}

/// Half of the gap between a buffer and the next one.
fn next_half(place: &Place, next: Option<&Place>) -> u64 {
    next.map_or(u64::MAX, |next| (next.start - place.end).div_ceil(2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::Space;

    #[test]
    fn an_address_names_the_buffer_that_it_lies_in_or_near() {
        let places = Places::new([(0x7f00_0000_1000, 0x100), (0x2000, 0x1000), (0x4000, 8)].into_iter());
        let places = places.expect("apart");
        let split = |address| address::split(Space::Global, places.named(address));
        assert_eq!(split(0x7f00_0000_1010), (Some(0), 0x10));
        assert_eq!(split(0x2fff), (Some(1), 0xfff));
        assert_eq!(split(0x3000), (Some(1), 0x1000), "right behind it");
        assert_eq!(split(0x3ffc), (Some(2), -4), "shortly before the next");
        assert_eq!(split(0x1ff8), (Some(1), -8));
        assert!(
            split(0x10_0000_0000).0.is_none_or(|number| number > 3),
            "far from all"
        );
        assert_eq!(split(Places::elsewhere(0)).0.filter(|&number| number < 3), None);
    }

    #[test]
    fn buffers_do_not_overlap() {
        assert!(Places::new([(16, 16), (31, 4)].into_iter()).is_err());
        assert!(Places::new([(0, 16)].into_iter()).is_err(), "null leads nowhere");
        assert!(Places::new([(16, 16), (32, 4)].into_iter()).is_ok());
    }
}
