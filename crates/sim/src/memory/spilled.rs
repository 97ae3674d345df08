//! Spilled values: stores to private memory, and loads from there.
//!
//! Private memory is device memory that L1 and L2 cache like any other ("the local memory space resides in device memory, so
//! local memory accesses have the same high latency and low bandwidth as global memory accesses … always cached in L1 and L2",
//! NVIDIA, Nsight documentation, Memory Statistics - Local). Its lines evict others in both. L1 is written through, as for
//! stores to global memory, but keeps the written lines, because a line belongs to one core alone. (Accel-Sim's configuration
//! of Volta has an L1 that is written through and allocates on writes.)

use super::cache::Replaces;
use super::port::spread;
use super::{Access, Cycles, Lines, MemorySystem};

impl MemorySystem {
    /// A load of a spilled value: when it is there.
    pub(crate) fn fill(&mut self, core: usize, now: Cycles, access: &Access) -> Cycles {
        self.read(core, now, access, Replaces::LeastRecent).done
    }

    /// A store of a spilled value. Nothing waits for it but the next ones, where L2 has to make room.
    pub(crate) fn spill(&mut self, core: usize, now: Cycles, access: &Access) {
        let start = self.write_through(core, now, access);
        let lines = Lines::of(access, self.shape);
        let Some(l1) = &mut self.cores[core].l1 else {
            return;
        };
        for (line, sectors) in lines.iter() {
            let key = l1.key(line, spread(line));
            let slot = l1
                .find(key)
                .unwrap_or_else(|| l1.insert(key, Replaces::LeastRecent).0);
            l1.fill(slot, sectors, start);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functional::LANES;
    use crate::memory::{Contents, Extent, Placement};
    use crate::model::built_in;

    /// Cycles from a load of a frame's word to the next, and the bytes written to L2, where one core stores frames of this many bytes
    /// and loads them.
    fn frames(bytes: u64) -> (f64, u64) {
        let model = built_in("h200", &[]).expect("a model");
        let extent = Extent {
            simulated: 1,
            busy: 1,
            reuse: None,
            ratio: 1.0,
            l1_bytes: 240 << 10,
            buffers: Vec::new(),
            contents: Contents::Nothing,
            was_full: false,
            placement: Placement::default(),
            compressible: Vec::new(),
        };
        let mut memory = MemorySystem::new(&model, &extent);
        let mut now = 0.0;
        let addresses = |word: u64| -> [u64; LANES] {
            std::array::from_fn(|lane| (1 << 51) + word * 128 + lane as u64 * 4)
        };
        for word in 0..bytes / 128 {
            let access = Access {
                addresses: &addresses(word),
                mask: u64::from(u32::MAX),
                bytes: 4,
            };
            memory.spill(0, now, &access);
            now += 100.0;
        }
        let begun = now;
        for word in 0..bytes / 128 {
            let access = Access {
                addresses: &addresses(word),
                mask: u64::from(u32::MAX),
                bytes: 4,
            };
            now = memory.fill(0, now, &access);
        }
        (
            (now - begun) / (bytes / 128) as f64,
            memory.counters().l2_written_sectors * 32,
        )
    }

    #[test]
    fn frames_larger_than_l1_come_from_l2() {
        let model = built_in("h200", &[]).expect("a model");
        let l1 = f64::from(*model.l1.as_ref().expect("it has one").latency);
        let (small, written) = frames(64 << 10);
        assert!((l1..l1 + 4.0).contains(&small), "{small}");
        assert_eq!(written, 64 << 10);
        let (large, written) = frames(1 << 20);
        assert!(large > f64::from(*model.l2.near_latency), "{large}");
        assert_eq!(written, 1 << 20);
    }
}
