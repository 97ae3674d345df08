//! Timing candidates against each other on a GPU.
//!
//! Candidates take turns: every round times each of them once and starts with another one, so that a drifting clock or a
//! warming chip affects all alike. Times are the GPU's own, from an event before a launch to an event after it. The median and
//! the quartiles are reported.
//!
//! The GPU is kept busy while the host asks for the event and the launch: an idle one records the event at once, and the host's
//! part of the launch would be counted as the kernel's (7 µs of 12 for kernels that do next to nothing, on an H200).

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::failure::{Failure, FailureKind};
use super::gpu::Gpu;
use super::launch::{Arguments, Geometry};
use super::memory::Buffer;
use super::module::Function;
use headstart_device::CacheState;
pub use headstart_device::{Paired, Timing};

/// How long a GPU is kept busy before anything is counted, so that clocks and caches have settled. By choice; how much
/// of it an H200 needs was not measured.
const WARM_UP: Duration = Duration::from_millis(200);

/// How long a GPU is kept busy before a launch. The host takes some 10 µs to ask for the launch and the events around it.
const HELD: Duration = Duration::from_micros(100);

/// How to time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimingOptions {
    /// Launches of each candidate that are not counted.
    pub warm_up: u32,
    /// Launches of each candidate that are.
    pub rounds: u32,
    /// The state of the L2 cache before each counted launch.
    pub cache: CacheState,
    /// The longest that one launch may take.
    pub limit: Duration,
}

impl Default for TimingOptions {
    fn default() -> TimingOptions {
        TimingOptions {
            warm_up: 1,
            rounds: 9,
            cache: CacheState::Kept,
            limit: Duration::from_secs(10),
        }
    }
}

/// A launch that is to be timed.
pub struct Candidate {
    /// The kernel.
    pub function: Function,
    /// How it is launched.
    pub geometry: Geometry,
    /// Its arguments.
    pub arguments: Arguments,
}

/// Times every candidate. The results are in the candidates' order. `before` runs before each launch, untimed, to undo effects
/// that the next launch must not see.
///
/// A failing launch ends the whole measurement, because it loses the context: check every candidate
/// once with a launch of its own before.
pub fn time(
    gpu: &Gpu,
    candidates: &[Candidate],
    options: &TimingOptions,
    before: &mut dyn FnMut() -> Result<(), Failure>,
) -> Result<Vec<Timing>, Failure> {
    if options.rounds == 0 {
        return Err(Failure::new(FailureKind::Request, "0 rounds were asked for").accepted("at least 1"));
    }
    let first = match options.cache {
        CacheState::Kept => First::hold(gpu)?,
        CacheState::Flushed => First::flush(gpu)?,
    };
    let mut start = gpu.event()?;
    let mut end = gpu.event()?;
    let begun = Instant::now();
    for candidate in candidates.iter().cycle() {
        if begun.elapsed() >= WARM_UP {
            break;
        }
        before()?;
        candidate
            .function
            .launch(candidate.geometry, &candidate.arguments)?;
        end.record()?;
        end.wait(options.limit)?;
    }
    let mut samples = vec![Vec::with_capacity(options.rounds as usize); candidates.len()];
    for round in 0..options.warm_up + options.rounds {
        for turn in 0..candidates.len() {
            let which = (turn + round as usize) % candidates.len();
            let candidate = &candidates[which];
            before()?;
            first.function.launch(first.geometry, &first.arguments)?;
            start.record()?;
            candidate
                .function
                .launch(candidate.geometry, &candidate.arguments)?;
            end.record()?;
            end.wait(options.limit)?;
            if round >= options.warm_up {
                samples[which].push(end.since(&start)?.as_secs_f64() * 1e9);
            }
        }
    }
    let summarise = |own: &Vec<f64>| Timing {
        paired: Paired::of(&samples[0], own),
        ..Timing::of(own.clone(), options.cache).expect("there is at least one round")
    };
    Ok(samples.iter().map(summarise).collect())
}

/// A launch that comes right before a timed one, and keeps the GPU busy until that was asked for.
struct First {
    function: Function,
    geometry: Geometry,
    arguments: Arguments,
    _buffer: Option<Buffer>,
}

impl First {
    /// Waits, and leaves the caches as they are.
    fn hold(gpu: &Gpu) -> Result<First, Failure> {
        let cycles = u64::from(gpu.facts().clock_khz) * HELD.as_micros() as u64 / 1000;
        let mut arguments = Arguments::new();
        arguments.push(&cycles.to_le_bytes());
        Ok(First {
            function: gpu.load(include_str!("hold.ptx"), "hold")?,
            geometry: Geometry {
                groups: [1, 1, 1],
                group: [1, 1, 1],
                dynamic_shared_bytes: 0,
                cooperative: false,
            },
            arguments,
            _buffer: None,
        })
    }

    /// Reads a buffer of four times the L2 cache's size, so that the cache holds nothing else, and nothing that would have to
    /// be written back.
    fn flush(gpu: &Gpu) -> Result<First, Failure> {
        let bytes = (gpu.facts().l2_bytes.max(1 << 20) as usize * 4).next_multiple_of(1 << 20);
        let mut buffer = gpu.allocate(bytes)?;
        buffer.fill(0)?;
        let mut arguments = Arguments::new();
        arguments.push_address(buffer.address());
        arguments.push(&((bytes / 16) as u64).to_le_bytes());
        Ok(First {
            function: gpu.load(include_str!("flush.ptx"), "flush")?,
            geometry: Geometry {
                groups: [gpu.facts().cores * 8, 1, 1],
                group: [256, 1, 1],
                dynamic_shared_bytes: 0,
                cooperative: false,
            },
            arguments,
            _buffer: Some(buffer),
        })
    }
}
