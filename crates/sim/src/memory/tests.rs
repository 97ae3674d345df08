//! The memory hierarchy against microbenchmarks that ran on an H200 (2026-11-21, driver 580).
//!
//! The same loop runs here: each of `warps` sub-groups a core computes addresses, issues a batch of
//! loads, waits for all, and starts again.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::*;
use crate::model::built_in;

/// One configuration of the loop.
#[derive(Clone, Copy, Debug)]
struct Scatter {
    /// Cores that are simulated, of 132 busy ones; 1 of 1 if 0.
    cores: u32,
    warps: usize,
    /// Loads of a batch.
    batch: usize,
    /// Neighbouring work-items that read neighbouring words of one random place.
    segment: u64,
    /// Bytes that the random places lie in.
    footprint: u64,
}

/// Cycles from one batch to the next that are no waiting: 13 dependent integer operations compute an
/// address from the last values.
const OVERHEAD: f64 = 60.0;

impl Scatter {
    /// Cycles of a batch in the middle of the run.
    fn cycles(self) -> f64 {
        self.run(|_| {}).0
    }

    fn run(self, change: impl FnOnce(&mut DeviceModel)) -> (f64, MemorySystem) {
        let mut model = built_in("h200", &[]).unwrap();
        change(&mut model);
        let cores = self.cores.max(1);
        let busy = if self.cores == 0 { 1 } else { 132 };
        let extent = Extent {
            simulated: cores,
            busy,
            reuse: None,
            ratio: f64::from(busy) / f64::from(cores),
            l1_bytes: 240 << 10,
            buffers: vec![0..self.footprint],
            contents: Contents::Nothing,
            was_full: false,
            placement: Placement::default(),
            compressible: Vec::new(),
        };
        let mut memory = MemorySystem::new(&model, &extent);
        if self.footprint <= 32 << 20 {
            // Data that fit into L2 were there before.
            warm(&mut memory, self.footprint);
        }
        let batches = 512usize.div_ceil(self.warps * self.batch).max(12);
        // Each warp's next event: time, order of asking, warp, loads left, when the batch is complete.
        let mut events = BinaryHeap::new();
        let mut order = 0u64;
        let mut push =
            |events: &mut BinaryHeap<_>, time: Cycles, warp: usize, left: usize, complete: Cycles| {
                order += 1;
                events.push(Reverse((
                    (time * 16.0).ceil() as u64,
                    order,
                    warp,
                    left,
                    (complete * 16.0).ceil() as u64,
                )));
            };
        let warps = cores as usize * self.warps;
        for warp in 0..warps {
            push(
                &mut events,
                (warp / cores as usize * 7) as f64,
                warp,
                self.batch,
                0.0,
            );
        }
        let mut random = 1u64;
        let (mut done, mut first) = (0usize, 0.0);
        while let Some(Reverse((now, _, warp, left, complete))) = events.pop() {
            let (now, complete) = (now as f64 / 16.0, complete as f64 / 16.0);
            let core = warp % cores as usize;
            if left == 0 {
                done += 1;
                if done == batches * warps / 4 {
                    first = complete;
                }
                if done == batches * warps * 3 / 4 {
                    return ((complete - first) / (batches as f64 / 2.0), memory);
                }
                push(&mut events, complete + OVERHEAD, warp, self.batch, 0.0);
                continue;
            }
            if memory.port_free(core) > now + 4.0 {
                push(&mut events, memory.port_free(core) - 4.0, warp, left, complete);
                continue;
            }
            let mut addresses = [0u64; 32];
            for (lane, address) in addresses.iter_mut().enumerate() {
                if (lane as u64).is_multiple_of(self.segment) {
                    random += 1;
                }
                let place = port::pick(
                    port::spread(random),
                    (self.footprint / (4 * self.segment)) as usize,
                );
                *address = place as u64 * 4 * self.segment + lane as u64 % self.segment * 4;
            }
            let access = Access {
                addresses: &addresses,
                mask: u64::from(u32::MAX),
                bytes: 4,
            };
            let complete = complete.max(memory.load(core, now, &access).done);
            let next = if left == 1 { complete } else { now + 1.0 };
            push(&mut events, next, warp, left - 1, complete);
        }
        unreachable!("the loop never runs dry")
    }
}

/// Brings the first `bytes` into L2 (as much of them as it holds), as a load long ago would have.
fn warm(memory: &mut MemorySystem, bytes: u64) {
    for line in 0..bytes >> memory.shape.line_shift() {
        let key = memory.l2.key(line);
        let (place, _) = memory.place_in_l2(0.0, &key);
        memory.l2.fill(place, u8::MAX, 0.0, false);
        memory.l2.copy(&key, 1 - key.home, u8::MAX, 0.0);
    }
}

const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;

/// Runs each row and compares it with its measurement.
fn compare(footprint: u64, cores: u32, tolerance: f64, rows: &[(usize, usize, u64, f64)]) {
    for &(warps, batch, segment, measured) in rows {
        let scatter = Scatter {
            cores,
            warps,
            batch,
            segment,
            footprint,
        };
        let cycles = scatter.cycles();
        let error = cycles / measured - 1.0;
        println!(
            "{scatter:?}: {cycles:.0}, measured {measured:.0} ({:+.0} %)",
            error * 100.0
        );
        assert!(
            error.abs() <= tolerance,
            "{scatter:?}: {cycles:.0}, measured {measured:.0}"
        );
    }
}

#[test]
fn one_core_takes_a_sector_a_cycle_from_l2() {
    let rows = [
        (1, 1, 1, 403.0),
        (1, 8, 1, 639.0),
        (4, 1, 1, 404.0),
        (4, 4, 1, 518.0),
        (4, 8, 1, 1023.0),
    ];
    compare(16 * MIB, 0, 0.1, &rows);
}

#[test]
fn all_cores_share_the_rate_of_l2() {
    let rows = [
        (1, 1, 1, 418.0),
        (1, 8, 1, 727.0),
        (4, 1, 1, 420.0),
        (4, 2, 1, 468.0),
        (4, 8, 1, 1624.0),
    ];
    compare(16 * MIB, 4, 0.12, &rows);
}

#[test]
fn scattered_loads_from_device_memory() {
    let rows = [
        (1, 1, 1, 1194.0),
        (1, 4, 1, 1566.0),
        (1, 8, 1, 2080.0),
        (4, 1, 1, 1359.0),
        (4, 2, 1, 1872.0),
        (4, 4, 1, 3338.0),
        (4, 8, 1, 6452.0),
        (8, 1, 1, 1811.0),
        (16, 1, 1, 3292.0),
    ];
    compare(GIB, 4, 0.12, &rows);
}

#[test]
fn streams_from_device_memory() {
    let rows = [
        (32, 4, 8, 3271.0),
        (32, 8, 16, 3288.0),
        (32, 8, 32, 2006.0),
        (64, 4, 32, 1973.0),
    ];
    compare(GIB, 4, 0.18, &rows);
}

#[test]
fn a_sample_of_any_size_sees_its_share_of_device_memory() {
    // 138 million loads, 512 of each work-item, take 3.446 ms: a launch as a whole, where the other rows
    // are means of its work-groups, of which those on some cores get more than their share.
    for cores in [2, 4, 8, 33] {
        compare(GIB, cores, 0.03, &[(64, 1, 1, 13326.0)]);
    }
}
