//! Runs microbenchmarks: on a GPU, or on a model.

use std::sync::Arc;
use std::time::Duration;

use headstart::device::CacheState;
use headstart::device::cuda::gpu::GpuFacts;
use headstart::device::cuda::timing::{Timing, TimingOptions};
use headstart::device::model::DeviceModel;
use headstart::ir::Kernel;
use headstart::tune::Workload;
use headstart::tune::gpu::{GpuBench, Wanted};
use headstart::tune::kinds::KnownDevice;
use headstart::{Error, Result};
use headstart_gallery::micro::{self, Micro};
use headstart_gallery::settings::Settings;

use super::points::Point;
use super::rows::Number;
use crate::device;

/// The longest that one launch may take on a GPU.
const LIMIT: Duration = Duration::from_secs(10);

/// Counted launches on a GPU.
const ROUNDS: u32 = 5;

/// What a microbenchmark is run on.
pub enum Meter {
    /// A model.
    Model(Arc<DeviceModel>),
    /// A GPU, through its worker.
    Gpu(Box<GpuBench>),
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
            _ => Err(Error::device("microbenchmarks do not run on OpenCL devices yet")
                .accepted("`cuda:N`, or a simulated device")),
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

    /// What a microbenchmark gives with settings.
    ///
    /// # Errors
    /// The device cannot run it.
    pub fn point(&mut self, point: &Point) -> Result<Number> {
        let settings: Vec<String> = point.settings.split(' ').map(str::to_owned).collect();
        let (micro, settings) = micro::with(point.kernel, &settings)?;
        self.number(micro, &settings)
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
                let (cycles, uncertainty) = measured(gpu, &pair.workload, pair.long, pair.short)?;
                Ok(Number {
                    number: micro.number_of(settings, cycles),
                    // A share of the difference is the same share of what follows from it.
                    spread: if cycles > 0.0 { uncertainty / cycles } else { 1.0 },
                })
            }
        }
    }
}

/// Cycles that one kernel takes on a GPU, less those of the other if there is one, and how far they might be off: by the
/// quartiles.
fn measured(
    gpu: &mut GpuBench,
    workload: &Workload,
    long: Arc<Kernel>,
    short: Option<Arc<Kernel>>,
) -> Result<(f64, f64)> {
    let kernels: Vec<(String, Arc<Kernel>)> = [("long", Some(long)), ("short", short)]
        .into_iter()
        .filter_map(|(name, kernel)| Some((name.to_owned(), kernel?)))
        .collect();
    let options = TimingOptions {
        warm_up: 1,
        rounds: ROUNDS,
        cache: CacheState::Flushed,
        limit: LIMIT,
    };
    let timings: Vec<Timing> = gpu
        .measure(workload, &kernels, &mut || Ok(Wanted::Unread), options)?
        .into_iter()
        .map(|trial| Ok(trial?.timing))
        .collect::<Result<_>>()?;
    let Some((long, short)) = timings.split_first() else {
        return Err(Error::bug("a kernel was not measured"));
    };
    let cycles_per_ns = f64::from(gpu.facts().clock_khz) / 1e6;
    let before: f64 = short.iter().map(|timing| timing.median_ns).sum();
    let between = |timing: &Timing| timing.upper_quartile_ns - timing.lower_quartile_ns;
    let uncertain = timings.iter().map(between).sum::<f64>() / timings.len() as f64;
    Ok((
        (long.median_ns - before) * cycles_per_ns,
        uncertain * cycles_per_ns,
    ))
}
