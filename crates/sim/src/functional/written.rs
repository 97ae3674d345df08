//! A store's bytes, for the checks; and the stores that race with others of the same bits.
//!
//! Work-items that write the same bits to a place without an order leave the same there in any order: `found = 1`. That
//! is no error, but is reported. A lane that reads there without an order may find it or not, and races.

use std::collections::BTreeMap;

use super::buffer::set_bits;
use crate::ir::{Place, Space};

/// Bytes of the largest store.
const MOST: usize = 32;

/// The bytes of a store.
#[derive(Clone, Copy, Debug)]
pub(super) struct Written {
    bytes: [u8; MOST],
}

impl Written {
    /// Consecutive values of `size` bytes.
    pub(crate) fn new(values: impl Iterator<Item = u64>, size: u32) -> Written {
        let mut bytes = [0; MOST];
        for (value, at) in values.zip((0..).step_by(size as usize)) {
            set_bits(&mut bytes, at, size, value);
        }
        Written { bytes }
    }

    /// `length` bytes from one on.
    pub(crate) fn part(&self, from: u64, length: u64) -> &[u8] {
        let end = (from + length).min(MOST as u64);
        &self.bytes[from.min(end) as usize..end as usize]
    }

    /// A number for a cell's bytes: themselves up to eight, of sixteen a mixture.
    pub(crate) fn bits(&self, from: u64, length: u64) -> u64 {
        let mut bits = 0u64;
        for part in self.part(from, length).chunks(8) {
            let mut eight = [0; 8];
            eight[..part.len()].copy_from_slice(part);
            let mixed = bits.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
            bits = mixed ^ u64::from_le_bytes(eight);
        }
        bits
    }
}

/// The stores that raced with others of the same bits: of each operation in each buffer or array, how many, and the
/// lowest address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SameBits(BTreeMap<(Place, u64), SameAt>);

/// Those of one operation in one buffer or array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SameAt {
    pub space: Space,
    pub lowest: u64,
    pub count: u64,
}

impl SameBits {
    /// Adds some, to a buffer or array with this number.
    pub(crate) fn add(&mut self, place: Place, number: u64, space: Space, lowest: u64, count: u64) {
        // Arrays are numbered on their own.
        let number = number << 2 | space as u64 & 3;
        let known = self.0.entry((place, number)).or_insert(SameAt {
            space,
            lowest,
            count: 0,
        });
        known.count += count;
        known.lowest = lowest.min(known.lowest);
    }

    /// Adds those of a work-group, which starts over.
    pub(crate) fn append(&mut self, others: &mut SameBits) {
        for ((place, number), same) in std::mem::take(&mut others.0) {
            self.add(place, number >> 2, same.space, same.lowest, same.count);
        }
    }

    /// Each operation's, in the order of the source.
    pub(crate) fn all(&self) -> impl Iterator<Item = (Place, &SameAt)> {
        self.0.iter().map(|((place, _), same)| (*place, same))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_is_its_values_in_order() {
        let written = Written::new([0x0102_0304, 0x0506_0708].into_iter(), 4);
        assert_eq!(written.part(2, 4), [2, 1, 8, 7]);
        assert_eq!(written.bits(4, 4), 0x0506_0708);
        assert_eq!(written.bits(0, 8), 0x0506_0708_0102_0304);
        let other = Written::new([0x0506_0708, 0x0102_0304].into_iter(), 8);
        let swapped = Written::new([0x0102_0304, 0x0506_0708].into_iter(), 8);
        assert_ne!(other.bits(0, 16), swapped.bits(0, 16));
    }
}
