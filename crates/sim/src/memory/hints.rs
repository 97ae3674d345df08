//! Cache hints: lines that L2 is asked for and that are not waited for.
//!
//! They take little of L2's bandwidth, since no data come back, but have a rate of their own; and their reads keep the banks of
//! device memory busy for longer than those of loads. (On an H200 a prefetched stream from L2 comes nearly as fast as another,
//! 4,352 and 4,688 bytes a cycle, one from device memory a tenth more slowly, 1,989 and 2,198, single words from random places
//! at 48 and 83: `micro/bandwidth ahead=2`.)

use super::{Access, Cycles, Lines, MemorySystem, Purpose};
use crate::ir::LscControl;
use crate::model::Reached;

impl MemorySystem {
    /// A cache hint for the lines of an access, with the cache control that the device acts on, if it does. Nothing waits for it.
    pub(crate) fn prefetch(
        &mut self,
        core: usize,
        now: Cycles,
        access: &Access,
        reached: Reached,
        control: Option<LscControl>,
    ) {
        match reached {
            Reached::Nothing => {}
            Reached::L1 if self.cores[core].l1.is_some() => {
                let lines = Lines::of(access, self.shape);
                self.counters.prefetched_lines += lines.len() as u64;
                self.hint_to_l1(core, now, access, control);
            }
            Reached::L1 | Reached::L2 => {
                let lines = Lines::of(access, self.shape);
                let purpose = Purpose {
                    is_hint: true,
                    ..Purpose::of(access, &lines, self.shape)
                };
                for (line, sectors) in lines.iter() {
                    let start = self.cores[core].port.take(now, self.timing.l1_miss);
                    let sectors = self.shape.widen(sectors, self.timing.fetch);
                    self.hint(core, start, line, sectors, purpose);
                }
            }
        }
    }

    /// Asks L2 for sectors of a line that it should have.
    fn hint(&mut self, core: usize, now: Cycles, line: u64, sectors: u8, purpose: Purpose) {
        self.counters.prefetched_lines += 1;
        let start = now + self.translate(core, now, line);
        let bytes = u64::from(sectors.count_ones()) * self.shape.sector_bytes();
        let start = start + self.cross(core, start, line, bytes);
        let served = self.hint_port.take(start, 1.0);
        self.queue(core, served);
        let key = self.l2.key(line);
        let is_with_others =
            !self.regions.is_empty() && !self.l2.holds(&key) && self.others_hold(line).is_some();
        let Some((place, victim)) = self.l2.place_hint(&key) else {
            return;
        };
        self.write_back(served, victim);
        if is_with_others {
            self.l2.fill(place, sectors, served, purpose.scattered);
        }
        let (missing, _) = self.missing_in_l2(place, sectors);
        if missing != 0 {
            self.l2.await_load(place, true);
            let (_, bytes) = self.bring(served, &key, place, missing, purpose, self.path(core, &key));
            self.counters.prefetched_bytes += bytes;
        }
    }
}
