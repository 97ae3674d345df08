//! Bank conflicts, of shared memory and of L1.

use super::lines::Access;

/// The banks of a memory.
#[derive(Clone, Debug)]
pub(super) struct Banks {
    count: u32,
    width_shift: u32,
    /// Room for counting: the different words wanted of each bank, up to one for each work-item.
    wanted: Box<[[u64; 32]; 32]>,
}

impl Banks {
    /// `count` banks of words of `width` bytes, both powers of two.
    pub(super) fn new(count: u32, width: u64) -> Banks {
        Banks {
            count,
            width_shift: width.trailing_zeros(),
            wanted: Box::new([[0; 32]; 32]),
        }
    }

    /// The number of passes over the banks for an access: one if no two different words are in one bank. Reading one word
    /// several times is free. A pass transfers at most one word per bank, so wide accesses are split by work-items: 8 bytes
    /// each take the halves of a sub-group one after the other, 16 bytes its quarters.
    pub(super) fn passes(&mut self, access: &Access) -> u32 {
        let words = (access.bytes >> self.width_shift).max(1);
        let lanes = (self.count / words).max(1) as usize;
        if access.bytes >= 1 << self.width_shift && is_consecutive(access) {
            return access.count().div_ceil(lanes as u32).max(1);
        }
        let mut passes = 0;
        for (part, addresses) in access.up_to_last_active().chunks(lanes).enumerate() {
            let mask = access.mask.checked_shr((part * lanes) as u32).unwrap_or(0);
            passes += self.passes_of_part(addresses, mask, words);
        }
        passes.max(1)
    }

    fn passes_of_part(&mut self, addresses: &[u64], mask: u64, words: u32) -> u32 {
        let mut counts = [0u8; 32];
        let mut most = 0;
        for (lane, &address) in addresses.iter().enumerate() {
            if mask >> lane & 1 == 0 {
                continue;
            }
            let first = address >> self.width_shift;
            for word in first..first + u64::from(words) {
                let bank = (word % u64::from(self.count)) as usize % 32;
                let count = usize::from(counts[bank]);
                if !self.wanted[bank][..count].contains(&word) && count < 32 {
                    self.wanted[bank][count] = word;
                    counts[bank] += 1;
                    most = most.max(u32::from(counts[bank]));
                }
            }
        }
        most
    }
}

/// Whether the first work-items, and no others, are active, and their words follow each other.
fn is_consecutive(access: &Access) -> bool {
    let Some(&first) = access.addresses.first() else {
        return true;
    };
    let active = access.mask.trailing_ones();
    let consecutive = access
        .up_to_last_active()
        .iter()
        .zip(0..)
        .fold(true, |all, (&address, lane)| {
            all & (lane >= active || address == first.wrapping_add(u64::from(lane * access.bytes)))
        });
    consecutive && active == access.count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passes(bytes: u32, address: impl Fn(u64) -> u64) -> u32 {
        let addresses: Vec<u64> = (0..32).map(address).collect();
        Banks::new(32, 4).passes(&Access {
            addresses: &addresses,
            mask: u64::from(u32::MAX),
            bytes,
        })
    }

    #[test]
    fn strides_conflict_as_measured() {
        // On the H200 a load of 32 bits at a stride of s words takes as many passes as gcd(s, 32);
        // of 64 bits, at a stride of s double words, two times gcd(s, 16).
        for (stride, expected) in [
            (1, 1),
            (2, 2),
            (4, 4),
            (8, 8),
            (16, 16),
            (32, 32),
            (9, 1),
            (17, 1),
        ] {
            assert_eq!(passes(4, |lane| lane * stride * 4), expected, "stride {stride}");
        }
        for (stride, expected) in [(1, 2), (2, 4), (4, 8), (8, 16), (16, 32), (9, 2), (17, 2)] {
            assert_eq!(passes(8, |lane| lane * stride * 8), expected, "stride {stride}");
        }
        assert_eq!(passes(16, |lane| lane * 16), 4);
    }

    #[test]
    fn words_that_follow_each_other_are_counted_like_others() {
        let mut banks = Banks::new(32, 4);
        for (bytes, mask) in [
            (4, u64::from(u32::MAX)),
            (8, u64::from(u32::MAX)),
            (16, u64::from(u32::MAX)),
            (8, 0x1ff),
            (4, 0x7f),
            (4, 0),
        ] {
            let addresses: Vec<u64> = (0..32).map(|lane| 4096 + lane * u64::from(bytes)).collect();
            // The same words in the opposite order.
            let other: Vec<u64> = (0..32).map(|lane| addresses[31 - lane]).collect();
            let passes = |banks: &mut Banks, addresses: &[u64], mask: u64| {
                let access = Access {
                    addresses,
                    mask,
                    bytes,
                };
                banks.passes(&access)
            };
            let straight = passes(&mut banks, &addresses, mask);
            if mask == u64::from(u32::MAX) {
                assert_eq!(straight, passes(&mut banks, &other, mask), "{bytes}");
            }
            assert_eq!(
                straight,
                (mask.count_ones() * bytes).div_ceil(128).max(1),
                "{bytes} {mask:x}"
            );
        }
    }

    #[test]
    fn reading_one_word_is_free() {
        assert_eq!(passes(4, |_| 64), 1);
        assert_eq!(passes(4, |lane| lane / 2 * 4), 1);
    }

    #[test]
    fn inactive_work_items_do_not_conflict() {
        let addresses: Vec<u64> = (0..32).map(|lane| lane * 128).collect();
        let mut banks = Banks::new(32, 4);
        for (mask, passes) in [(0b1, 1), (0b1011, 3), (0, 1)] {
            let access = Access {
                addresses: &addresses,
                mask,
                bytes: 4,
            };
            assert_eq!(banks.passes(&access), passes);
        }
    }
}
