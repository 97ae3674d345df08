//! Runs microbenchmarks: on a GPU, or on a model.

use std::sync::Arc;
use std::time::Duration;

use headstart::device::CacheState;
use headstart::device::cuda::gpu::GpuFacts;
use headstart::device::cuda::timing::{Timing, TimingOptions};
use headstart::device::model::DeviceModel;
use headstart::ir::Kernel;
use headstart::tune::gpu::{GpuBench, Wanted};
use headstart::tune::kinds::KnownDevice;
use headstart::tune::{Launches, OpenClBench, Workload};
use headstart::{Error, Result};
use headstart_gallery::micro::{self, Micro};
use headstart_gallery::settings::Settings;

use super::points::Point;
use super::rows::Number;
use headstart_cli::device;

/// The longest that one launch may take on a GPU.
const LIMIT: Duration = Duration::from_secs(10);

/// Counted launches on a GPU.
const ROUNDS: u32 = 5;

/// The device for microbenchmarks.
pub enum Meter {
    /// A model.
    Model(Arc<DeviceModel>),
    /// A GPU, through its worker.
    Gpu(Box<GpuBench>),
    /// An OpenCL device, in this process.
    OpenCl(Box<OpenClBench>),
}

impl Meter {
    /// A device.
    ///
    /// # Errors
    /// The GPU cannot be opened, or the device is of another kind.
    pub fn of(device: &dyn KnownDevice) -> Result<Meter> {
        match (device.model(), device.gpu()) {
            (Some(model), _) => Ok(Meter::of_model(model.clone())),
            (_, Some(facts)) => Meter::of_gpu(facts),
            (None, None) => {
                let Some(facts) = device.opencl() else {
                    return Err(Error::bug("a device of an unknown kind"));
                };
                Ok(Meter::OpenCl(Box::new(OpenClBench::open(facts.ordinal)?)))
            }
        }
    }

    /// A model.
    pub fn of_model(model: DeviceModel) -> Meter {
        Meter::Model(Arc::new(model))
    }

    /// The GPU with this number.
    ///
    /// # Errors
    /// There is none.
    fn of_gpu(facts: &GpuFacts) -> Result<Meter> {
        Ok(Meter::Gpu(Box::new(device::worker(facts)?)))
    }

    /// A microbenchmark's result with settings.
    ///
    /// # Errors
    /// The device cannot run it.
    pub fn point(&mut self, point: &Point) -> Result<Number> {
        let settings: Vec<String> = point.settings.split(' ').map(str::to_owned).collect();
        let (micro, settings) = micro::with(point.kernel, &settings)?;
        self.number(micro, &settings)
    }

    /// A microbenchmark's number less its own instructions' part of it, and that part where it is known: on models.
    ///
    /// # Errors
    /// The device cannot run it.
    pub fn net(&mut self, micro: &Micro, settings: &Settings) -> Result<(f64, Option<f64>)> {
        let own = match self {
            Meter::Model(model) => micro.own_on_model(settings, model)?,
            Meter::Gpu(_) | Meter::OpenCl(_) => None,
        };
        Ok((self.number(micro, settings)?.number - own.unwrap_or(0.0), own))
    }

    /// The same for a microbenchmark with its settings.
    ///
    /// # Errors
    /// The device cannot run it.
    pub fn number(&mut self, micro: &Micro, settings: &Settings) -> Result<Number> {
        match self {
            Meter::Model(model) => Ok(Number {
                number: micro.on_model(settings, model)?,
                spread: 0.0,
            }),
            Meter::Gpu(gpu) => {
                let pair = micro.pair(settings)?;
                let clock = f64::from(gpu.facts().clock_khz) / 1e6;
                let timings = gpu_timings(gpu, &pair.workload, pair.long, pair.short)?;
                number_of(micro, settings, &timings, clock)
            }
            Meter::OpenCl(bench) => {
                let pair = micro.pair(settings)?;
                let kernels: Vec<Arc<Kernel>> = std::iter::once(pair.long).chain(pair.short).collect();
                let clock = bench.facts().told_clock_mhz() / 1e3;
                let measured = bench.measure(&pair.workload, &kernels, LAUNCHES, false, &|| true)?;
                let timings: Vec<Timing> = measured
                    .into_iter()
                    .flatten()
                    .map(|one| Ok(one?.timing))
                    .collect::<Result<_>>()?;
                number_of(micro, settings, &timings, clock)
            }
        }
    }
}

/// How a microbenchmark is timed.
const OPTIONS: TimingOptions = TimingOptions {
    warm_up: 1,
    rounds: ROUNDS,
    cache: CacheState::Flushed,
    limit: LIMIT,
};

/// The same on OpenCL devices.
const LAUNCHES: Launches = Launches {
    warm_up: OPTIONS.warm_up,
    rounds: OPTIONS.rounds,
    cache: OPTIONS.cache,
    limit: OPTIONS.limit,
};

/// The times of one kernel on a GPU, and of the other if there is one.
fn gpu_timings(
    gpu: &mut GpuBench,
    workload: &Workload,
    long: Arc<Kernel>,
    short: Option<Arc<Kernel>>,
) -> Result<Vec<Timing>> {
    let kernels: Vec<(String, Arc<Kernel>)> = [("long", Some(long)), ("short", short)]
        .into_iter()
        .filter_map(|(name, kernel)| Some((name.to_owned(), kernel?)))
        .collect();
    let measured = gpu.measure(workload, &kernels, &mut || Ok(Wanted::Unread), OPTIONS)?;
    measured.into_iter().map(|trial| Ok(trial?.timing)).collect()
}

/// A microbenchmark's number from the cycles of one kernel, less those of the other, and how far it might be off: by the quartiles.
/// `clock` is in cycles a nanosecond.
fn number_of(micro: &Micro, settings: &Settings, timings: &[Timing], clock: f64) -> Result<Number> {
    let Some((long, short)) = timings.split_first() else {
        return Err(Error::bug("a kernel was not measured"));
    };
    let before: f64 = short.iter().map(|timing| timing.median_ns).sum();
    let between = |timing: &Timing| timing.upper_quartile_ns - timing.lower_quartile_ns;
    let uncertain = timings.iter().map(between).sum::<f64>() / timings.len() as f64;
    let (cycles, uncertainty) = ((long.median_ns - before) * clock, uncertain * clock);
    Ok(Number {
        number: micro.number_of(settings, cycles),
        // A share of the difference is the same share of what follows from it.
        spread: if cycles > 0.0 { uncertainty / cycles } else { 1.0 },
    })
}
