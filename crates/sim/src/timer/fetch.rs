//! Instruction caches: when a line of code is there.
//!
//! Lines come one after the other, and each one requests the next: straight-line code runs at the rate of the level that holds
//! it.

use crate::memory::CodeCache;
use crate::model::DeviceModel;

/// The instruction caches of a core.
#[derive(Clone, Debug)]
pub(super) struct Fetch {
    near: CodeCache,
    far: CodeCache,
    /// When the next line can be brought in.
    free: f64,
    near_miss: f64,
    miss: f64,
    lines: u32,
}

impl Fetch {
    /// Empty caches for a program of `bytes`.
    pub(super) fn new(model: &DeviceModel, bytes: u32) -> Fetch {
        let cache = &model.instruction_cache;
        Fetch {
            near: CodeCache::new(*cache.near, *cache.line),
            far: CodeCache::new(*cache.size, *cache.line),
            free: 0.0,
            near_miss: f64::from(*cache.near_miss),
            miss: f64::from(*cache.miss),
            lines: bytes.div_ceil(u32::try_from(*cache.line).unwrap_or(u32::MAX)),
        }
    }

    /// When a line that is wanted at `now` can be executed.
    pub(super) fn line(&mut self, line: u32, now: u64) -> u64 {
        let ready = match self.near.find(line) {
            Some(ready) => ready,
            None => self.bring(line, now as f64),
        };
        let next = line + 1;
        if next < self.lines && self.near.find(next).is_none() {
            self.bring(next, now as f64);
        }
        ready.ceil() as u64
    }

    fn bring(&mut self, line: u32, now: f64) -> f64 {
        let takes = match self.far.find(line) {
            Some(_) => self.near_miss,
            None => {
                self.far.insert(line, now);
                self.miss
            }
        };
        self.free = self.free.max(now) + takes;
        self.near.insert(line, self.free);
        self.free
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::built_in;

    /// Cycles of one instruction when a loop of this many KiB runs again and again.
    fn cycles(kib: u32) -> f64 {
        let model = built_in("h200", &[]).unwrap();
        let mut fetch = Fetch::new(&model, kib * 1024);
        let lines = kib * 8;
        let (mut now, mut start) = (0, 0);
        for round in 0..4 {
            if round == 1 {
                start = now;
            }
            for line in 0..lines {
                now = fetch.line(line, now).max(now) + 8;
            }
        }
        (now - start) as f64 / f64::from(3 * lines * 8)
    }

    #[test]
    fn straight_code_runs_at_the_rate_of_its_level() {
        // Measured on an H200 with one warp a scheduler, 2026-11-21.
        for (kib, measured) in [(16, 1.03), (64, 2.02), (112, 2.02), (160, 5.6), (256, 5.6)] {
            let cycles = cycles(kib);
            assert!(
                (cycles / measured - 1.0).abs() < 0.15,
                "{kib} KiB: {cycles}, measured {measured}"
            );
        }
    }
}
