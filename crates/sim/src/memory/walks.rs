//! Page walks: a translation that is not at hand is read from memory, as other data are.
//!
//! The entries of a page table are adjacent, so a line of them serves many pages. L2 caches such lines, and evicts others for
//! them; misses go to device memory. The upper levels of the table are assumed to be cached.

use super::port::Cycles;
use super::{MemorySystem, Purpose};

/// Where page tables are: behind all buffers.
const TABLE: u64 = 1 << 52;

impl MemorySystem {
    /// The time of translating a line's address.
    pub(super) fn translate(&mut self, core: usize, now: Cycles, line: u64) -> Cycles {
        let address = line << self.shape.line_shift();
        let near = self.near_tlb.as_mut();
        let (turn, is_near) = near.map_or((0.0, true), |near| near.look_up(core, now, address));
        self.counters.tlb_misses += u64::from(!is_near);
        turn + self.translate_beyond(core, now + turn, address)
    }

    /// The same for what comes after the translations that cores share.
    fn translate_beyond(&mut self, core: usize, now: Cycles, address: u64) -> Cycles {
        let translated = self.cores[core].tlb.as_mut().is_none_or(|tlb| tlb.hit(address));
        self.counters.tlb_misses += u64::from(!translated);
        match translated {
            true => 0.0,
            false => self.walk(core, now, address),
        }
    }

    /// Reads an entry of a page table: the additional time over a TLB hit.
    fn walk(&mut self, core: usize, now: Cycles, address: u64) -> Cycles {
        let entry = self.timing.walk_entry;
        if entry == 0 {
            return self.timing.tlb_miss;
        }
        let at = TABLE + address / self.timing.page * entry;
        let line = at >> self.shape.line_shift();
        let sector = 1u8 << ((at & (self.shape.line_bytes() - 1)) / self.shape.sector_bytes());
        let served = self.serve(now, line, 1.0);
        let key = self.l2.key(line);
        let (place, _) = self.place_in_l2(served, &key);
        let (missing, ready) = self.missing_in_l2(place, sector);
        if missing == 0 && ready <= served {
            return self.timing.tlb_miss;
        }
        if missing != 0 {
            let path = self.path(core, &key);
            let purpose = Purpose {
                scattered: false,
                is_hint: true,
            };
            self.bring(served, &key, place, missing, purpose, path);
        }
        self.timing.tlb_far_miss
    }
}
