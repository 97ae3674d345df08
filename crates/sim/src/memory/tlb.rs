//! Address translation: the pages whose translations are at hand.

use super::port::{pick, spread};

/// Recently used pages, in sets of four.
#[derive(Clone, Debug)]
pub(super) struct Tlb {
    pages: Vec<u64>,
    sets: usize,
    shift: u32,
    turn: usize,
}

const WAYS: usize = 4;
const EMPTY: u64 = u64::MAX;

/// Entries that are simulated at most; a larger reach counts as never exceeded.
const MOST_ENTRIES: u64 = 1 << 20;

impl Tlb {
    /// Translations for `reach` bytes in pages of `page` bytes, a power of two. None are needed if
    /// `footprint`, all the memory that a launch can touch, fits into a quarter of it.
    pub(super) fn new(page: u64, reach: u64, footprint: u64) -> Option<Tlb> {
        let entries = reach / page;
        if footprint <= reach / 4 || entries > MOST_ENTRIES {
            return None;
        }
        let sets = (entries as usize / WAYS).max(1);
        Some(Tlb {
            pages: vec![EMPTY; sets * WAYS],
            sets,
            shift: page.trailing_zeros(),
            turn: 0,
        })
    }

    /// Whether the translation of an address is at hand; afterwards it is.
    pub(super) fn hit(&mut self, address: u64) -> bool {
        let page = address >> self.shift;
        let first = pick(spread(page), self.sets) * WAYS;
        let set = &mut self.pages[first..first + WAYS];
        if set.contains(&page) {
            return true;
        }
        self.turn = (self.turn + 1) % WAYS;
        let way = set.iter().position(|&entry| entry == EMPTY).unwrap_or(self.turn);
        set[way] = page;
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_within_reach_stay() {
        let mut tlb = Tlb::new(4096, 64 * 4096, 1 << 30).unwrap();
        assert!(!tlb.hit(0) && tlb.hit(4095) && !tlb.hit(4096) && tlb.hit(0));
        let mut misses = 0;
        for round in 0..10 {
            for page in 0..1000u64 {
                misses += u32::from(!tlb.hit(page << 12) && round > 0);
            }
        }
        assert!(misses > 8000, "{misses}");
    }

    #[test]
    fn a_small_footprint_needs_none() {
        assert!(Tlb::new(2 << 20, 64 << 30, 1 << 30).is_none());
    }
}
