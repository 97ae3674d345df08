//! How many bytes must be on their way to keep device memory busy.
//!
//! Bandwidth times the latency of idle memory is too few: the nearer memory is to its limit, the longer a request waits for its
//! bank and for the bus. So the curve is measured on the model: cores that keep ever more lines of a stream on their way.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{Access, Contents, Extent, MemorySystem, Placement};
use crate::model::DeviceModel;

/// Device memory counts as busy from this part of the most that is reached on.
const BUSY: f64 = 0.95;
/// Cores that are simulated.
const CORES: u32 = 4;
/// Lines that a core reads: the first of them, while memory fills, do not count.
const LINES: u64 = 1500;
const FIRST: u64 = 500;
/// From one number of lines on their way to the next.
const STEP: f64 = 1.2;

/// What keeps device memory busy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Saturation {
    /// Bytes on their way to all cores together.
    pub bytes: f64,
    /// From the request for a line to its arrival then, in nanoseconds.
    pub(crate) latency_ns: f64,
}

/// The fewest bytes on their way with which a device's cores get nearly all of what its memory delivers.
pub fn saturation(model: &DeviceModel) -> Saturation {
    let cores = *model.core.count;
    let most = model.l1.as_ref().map_or(1024, |l1| *l1.outstanding) / 4;
    let mut counts = vec![1u32];
    while let Some(&last) = counts.last().filter(|&&last| last < most) {
        counts.push(((f64::from(last) * STEP).ceil() as u32).min(most));
    }
    let rates: Vec<f64> = counts.iter().map(|&count| rate(model, count)).collect();
    let best = rates.iter().copied().fold(0.0, f64::max);
    let at = rates.iter().position(|&rate| rate >= BUSY * best).unwrap_or(0);
    let bytes = f64::from(counts[at]) * *model.l2.line as f64 * f64::from(cores);
    Saturation {
        bytes,
        latency_ns: model.nanoseconds(bytes / rates[at].max(f64::MIN_POSITIVE)),
    }
}

/// Bytes a cycle that all cores get together if each has this many lines on their way.
fn rate(model: &DeviceModel, on_their_way: u32) -> f64 {
    let busy = *model.core.count;
    let simulated = CORES.min(busy);
    let line = *model.l2.line;
    // Of its own for each core, and more than the caches hold together.
    let part = (1u64 << 36) / u64::from(simulated);
    let extent = Extent {
        simulated,
        busy,
        reuse: None,
        ratio: f64::from(busy) / f64::from(simulated),
        l1_bytes: model.l1.as_ref().map_or(0, |l1| *l1.most),
        buffers: vec![0..1 << 30],
        contents: Contents::Nothing,
        was_full: false,
        placement: Placement::default(),
        compressible: Vec::new(),
    };
    let mut memory = MemorySystem::new(model, &extent);
    // When a core next asks, and which one.
    let mut events: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
    for core in 0..simulated as usize {
        events.extend((0..on_their_way).map(|_| Reverse((0, core))));
    }
    let mut read = vec![0u64; simulated as usize];
    let (mut begun, mut ended) = (0.0f64, 0.0f64);
    let lanes = (line / 4).min(32);
    while let Some(Reverse((now, core))) = events.pop() {
        if read[core] == LINES {
            continue;
        }
        let first = core as u64 * part + read[core] * line;
        let addresses: Vec<u64> = (0..lanes).map(|lane| first + lane * (line / lanes)).collect();
        let access = Access {
            addresses: &addresses,
            mask: u64::MAX >> (64 - lanes),
            bytes: 4,
        };
        let done = memory.load(core, now as f64, &access).done;
        read[core] += 1;
        if read[core] <= FIRST {
            begun = begun.max(done);
        }
        ended = ended.max(done);
        events.push(Reverse((done.ceil() as u64, core)));
    }
    let bytes = (u64::from(simulated) * (LINES - FIRST) * line) as f64;
    bytes * extent.ratio / (ended - begun).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::built_in;

    /// NVIDIA's CUB asks for 48 KiB a core at once on an H200, and 16 on an A100 (`arch_to_min_bytes_in_flight`): each work-item
    /// then waits for all of its part, so that fewer are on their way on average. On an H200 16 KiB a core asked for so reach 77 %
    /// of the bandwidth (`micro/bandwidth groups=132 group=1024 batch=4`: 1,775 of 2,298 bytes a cycle).
    #[test]
    fn busy_memory_takes_more_than_its_idle_latency_says() {
        for (name, library) in [("h200", 48.0), ("a100", 16.0)] {
            let model = built_in(name, &[]).unwrap();
            let found = saturation(&model);
            let idle_ns = model.nanoseconds(f64::from(*model.dram.latency));
            let idle = *model.dram.bandwidth * idle_ns;
            assert!(
                found.bytes > 1.2 * idle,
                "{name}: {found:?}, {idle} by the idle latency"
            );
            assert!(found.latency_ns > idle_ns, "{name}: {found:?}, {idle_ns} idle");
            let of_core = found.bytes / f64::from(*model.core.count) / 1024.0;
            assert!(
                (0.25 * library..library).contains(&of_core),
                "{name}: {of_core} KiB a core, {found:?}"
            );
        }
    }
}
