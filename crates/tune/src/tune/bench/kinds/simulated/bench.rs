//! The bench of a simulated device: its model, the functional engine for checks, and the timer.

mod held;

use std::sync::{Arc, OnceLock};

use crate::back::machine::Assembled;
use crate::back::ptx;
use crate::device::sim::functional::Options;
use crate::device::sim::timer::{self, Code, Cores, Cut, LaunchTime, Pace, StallReason, Survey, Timer};
use crate::device::sim::{Simulator, Stop};
use crate::device::{CacheState, Device, Launch};
use crate::error::{Error, Result};
use crate::evidence::{Evidence, Profile, Timeline};
use crate::ir::{CacheLevel, Kernel};
use crate::model::hint::HintReached;
use crate::model::{DeviceModel, Reached, Registers};
use crate::prefetch;
use crate::report::{Geometry, Outputs, Taken, TakenBy, number};
use crate::tune::bench::Held;
use crate::tune::bench::kinds::KnownDevice;
use crate::tune::bench::{Adjustable, Bench, Last, Looked, Platform, Raced, Simulates, Spread, Timed};
use crate::tune::bench::{Choices, Pressure};
use crate::tune::modules::drop_in::in_place;
use crate::tune::subject::workload::{Bound, Workload};

/// A simulated device on which plans are tried.
pub struct SimulatedBench {
    model: Arc<DeviceModel>,
    device: Simulator,
    timer: Timer,
    cache: CacheState,
    operation_limit: u64,
    stop: Option<&'static Stop>,
    has_large_registers: bool,
    /// The work of the work-groups of a kernel's launch: that of the current search, and the same work elsewhere.
    survey: Last<Option<Arc<Survey>>, Geometry>,
    survey_of_few: Last<Option<Arc<Survey>>, Geometry>,
    saturating: OnceLock<f64>,
    elsewhere: Last<Option<Arc<Survey>>, Geometry>,
}

impl SimulatedBench {
    /// The simulated device of this model.
    pub fn new(model: DeviceModel) -> SimulatedBench {
        let model = Arc::new(model);
        let options = Options::checking(&model);
        let device = Simulator::custom(model.description(), options, None);
        SimulatedBench {
            device,
            timer: Timer::new(Arc::clone(&model)),
            cache: CacheState::default(),
            operation_limit: options.operation_limit,
            stop: None,
            has_large_registers: false,
            survey: Last::default(),
            survey_of_few: Last::default(),
            saturating: OnceLock::new(),
            elsewhere: Last::default(),
            model,
        }
    }

    /// The same, with something else in L2 when a launch starts.
    #[must_use]
    pub fn with_cache(mut self, cache: CacheState) -> SimulatedBench {
        self.timer = self.timer.with_cache(cache);
        self.cache = cache;
        self
    }

    /// The same, where a kernel counts as endless once a sub-group has run `limit` operations.
    #[must_use]
    pub(crate) fn with_operation_limit(mut self, limit: u64) -> SimulatedBench {
        self.operation_limit = limit;
        self.limited()
    }

    /// The same, where `stop` ends checks and timed runs early.
    #[must_use]
    pub(crate) fn with_stop(mut self, stop: Option<&'static Stop>) -> SimulatedBench {
        self.stop = stop;
        self.limited()
    }

    fn limited(mut self) -> SimulatedBench {
        let options = self.engine_options();
        self.device = Simulator::custom(self.model.description(), options, None);
        self.timer = self.timer.with_limits(&options);
        self
    }

    /// The device's model.
    pub fn model(&self) -> &DeviceModel {
        &self.model
    }

    /// Bytes in flight that keep the model's device memory busy.
    pub(in crate::tune) fn saturating_bytes(&self) -> f64 {
        *self
            .saturating
            .get_or_init(|| timer::saturation(&self.model).bytes)
    }

    /// The timer of a workload's kernels.
    fn timer_of(&self, workload: &Workload) -> Timer {
        self.timer
            .clone()
            .serving_any_launch(workload.serves_any_launch())
    }

    fn prepared(&self, bound: &Bound, kernel: &Arc<Kernel>) -> Result<(Launch, Code)> {
        bound.workload().check_fits(self.device.description())?;
        let launch = bound.prepare(&self.device)?.launch;
        launch.check(kernel, self.device.description())?;
        let assembled = self.assembled(bound.workload(), kernel);
        let timer = self.timer_of(bound.workload()).of_assembled(assembled);
        let code = timer.compile(kernel, &launch)?;
        Ok((launch, code))
    }

    /// The registers and spills of the code that NVIDIA's assembler makes; none where no assembler is named. What it refuses is
    /// timed by the model's estimate.
    fn assembled(&self, workload: &Workload, kernel: &Kernel) -> Option<Assembled> {
        let held = self.held_by_assembler(workload, kernel).ok()??;
        let arrays = u32::try_from(kernel.private_bytes()).unwrap_or(u32::MAX);
        Some(Assembled {
            registers: held.registers,
            spilled_bytes: held.spilled_bytes.saturating_sub(arrays),
        })
    }

    /// The timer for a bound launch. The work of its work-groups is counted once, for the kernel before any plan: it is nearly
    /// the same under all.
    fn timer(&self, bound: &Bound, cores: Cores) -> Result<Timer> {
        let workload = bound.workload();
        let timer = self.timer_of(workload).with_cores(cores);
        let (kernel, geometry) = (&workload.kernel, workload.geometry());
        let (last, known) = match &workload.divides {
            Some((kernel, geometry)) => (&self.elsewhere, self.survey.known(kernel, geometry).flatten()),
            None if cores == Cores::Few => (&self.survey_of_few, None),
            None => (&self.survey, None),
        };
        let found = last.known_or(kernel, geometry, || {
            let launch = bound.prepare(&self.device)?.launch;
            let found = timer.survey(kernel, &launch, known.as_deref());
            Ok(found.map(Arc::new))
        })?;
        Ok(timer.with_survey(found))
    }

    /// A kernel in PTX: in its module if it was read from one.
    fn ptx(&self, target: ptx::PtxTarget, workload: &Workload, kernel: &Kernel) -> Result<ptx::Ptx> {
        if let Some(original) = &workload.original {
            return in_place(original, workload, kernel);
        }
        let how = ptx::Options {
            group: Some(workload.group),
            groups_per_core: KnownDevice::groups_promised(&*self.model, workload),
            ..ptx::Options::new(target)
        };
        ptx::emit(kernel, &how)
    }

    fn timed(&self, bound: &Bound, code: &Code, time: &LaunchTime) -> Timed {
        let program = code.program();
        let spilled_bytes = match &self.model.registers {
            Registers::Pooled(_) => program.register_estimate.spilled_bytes,
            // Intel's compiler finds an order that needs fewer registers where there is one: the rest is what it stores.
            Registers::Fixed(_) => program.frame_bytes,
        };
        let mut counted = counted(time);
        if spilled_bytes > 0 {
            counted.push(("bytes of a work-item spilled", "bytes", f64::from(spilled_bytes)));
        }
        Timed {
            // As a GPU's trials are timed.
            time_ns: time.between_events_ns,
            interval_ns: time.sample.within().map(|part| {
                let off = part * time.nanoseconds;
                (time.between_events_ns - off, time.between_events_ns + off)
            }),
            sampled: (!time.sample.is_stratified).then_some(time.sample.cores),
            takes: Some(Taken {
                registers: program.register_estimate.registers,
                spilled_bytes,
                groups_per_core: Some(time.occupancy.groups_per_core),
                shared_bytes: u32::try_from(program.kernel.shared_bytes()).ok(),
                code_bytes: Some(program.code_bytes),
                occupancy: Some(time.occupancy.occupancy),
                by: match program.register_estimate.is_assembled {
                    true => TakenBy::Compiler,
                    false => TakenBy::Model,
                },
            }),
            spread: match time.sample.cut {
                Some(_) => Spread::Cut,
                None => Spread::Simulated {
                    off: time.sample.speedup_within(),
                },
            },
            evidence: self.evidence(bound, time),
            profile: Some(Profile::of_simulated(&self.model, code, time)),
            counted,
            note: note(&self.model, self.cache, time),
            outputs: None,
        }
    }

    fn evidence(&self, bound: &Bound, time: &LaunchTime) -> Evidence {
        let geometry = bound.workload().geometry();
        let bandwidth = *self.model.dram.bandwidth;
        Evidence {
            cores: *self.model.core.count,
            places: *self.model.core.sub_groups,
            groups: geometry.groups,
            group: geometry.group,
            fits: Some(time.occupancy.clone()),
            achieved: Some(time.resident_sub_groups),
            time_ns: time.nanoseconds,
            launch_ns: launch_ns(&self.model),
            starts_ns: self.model.starts_ns(geometry.groups),
            cache: Some(self.cache),
            memory_bytes: Some(time.dram_bytes()),
            bandwidth: Some(bandwidth),
            bandwidth_counted: None,
            scattered_bandwidth: Some(
                bandwidth * self.model.dram.scattered_efficiency(*self.model.core.clock),
            ),
            latency_ns: Some(self.model.nanoseconds(f64::from(*self.model.dram.latency))),
            saturating_bytes: Some(self.saturating_bytes()),
            bytes_in_flight: Some(time.bytes_of_memory * f64::from(time.sample.of_cores)),
            waiting_for_loads: Some(time.waiting_for_memory()),
            issued: Some(time.issued),
        }
    }
}

impl Platform for SimulatedBench {
    fn device(&self) -> &dyn Device {
        &self.device
    }

    fn identity(&self) -> String {
        let registers = match self.has_large_registers {
            true => " with the large register file",
            false => "",
        };
        #[cfg(feature = "cuda")]
        let assembler = crate::device::cuda::ptxas::asked();
        #[cfg(not(feature = "cuda"))]
        let assembler = String::new();
        match self.cache {
            CacheState::Kept => format!("{:?}{registers}{assembler}", self.model),
            CacheState::Flushed => format!("{:?} {:?}{registers}{assembler}", self.model, self.cache),
        }
    }

    fn target(&self) -> prefetch::PlanTarget {
        let line = self.model.l1.as_ref().map_or(&self.model.l2.line, |l1| &l1.line);
        prefetch::PlanTarget {
            line: u32::try_from(**line).unwrap_or(u32::MAX),
            ..prefetch::PlanTarget::default()
        }
    }

    fn levels(&self) -> Vec<CacheLevel> {
        // Of the levels that reach the same cache the first is asked for; those that reach none are left out.
        let mut seen = vec![Reached::Nothing];
        let mut levels = Vec::new();
        for (level, form) in self.model.prefetch.levels() {
            if !seen.contains(&form.reaches) {
                seen.push(form.reaches);
                levels.push(level);
            }
        }
        levels
    }

    fn engine_options(&self) -> Options {
        Options {
            operation_limit: self.operation_limit,
            stop: self.stop,
            ..Options::checking(&self.model)
        }
    }

    fn prefetches(&self, kernel: &Kernel) -> Vec<HintReached> {
        self.model.prefetches(kernel)
    }

    fn registers_per_core(&self) -> Option<u32> {
        match &self.model.registers {
            Registers::Pooled(registers) => Some(*registers.per_core),
            _ => None,
        }
    }

    fn held(&self, workload: &Workload, kernel: &Kernel) -> Result<Option<Vec<Held>>> {
        let by_model = self.held_by_model(workload, kernel)?;
        Ok(match &self.model.registers {
            Registers::Fixed(_) => Some(vec![by_model]),
            // The timer and the GPU that is modelled count on different numbers of registers.
            Registers::Pooled(_) => self
                .held_by_assembler(workload, kernel)?
                .map(|by_assembler| vec![by_assembler, by_model]),
        })
    }
}

impl Bench for SimulatedBench {
    fn platform(&self) -> &dyn Platform {
        self
    }

    fn time(&self, bound: &Bound, kernel: &Arc<Kernel>) -> Result<Timed> {
        let (launch, code) = self.prepared(bound, kernel)?;
        Ok(self.timed(
            bound,
            &code,
            &self.timer(bound, Cores::Sampled)?.run(&code, &launch)?,
        ))
    }

    fn time_within(&self, bound: &Bound, kernel: &Arc<Kernel>, limit_ns: f64) -> Result<Option<f64>> {
        Ok(match self.race(bound, kernel, &Pace::within(limit_ns))? {
            Raced::Ended(timed, _) => Some(timed.time_ns),
            Raced::Behind(_) => None,
        })
    }

    fn time_in_turns(&self, bound: &Bound, kernels: &[Arc<Kernel>]) -> Result<Vec<Result<(Timed, Outputs)>>> {
        let time = |kernel: &Arc<Kernel>| Ok((self.time(bound, kernel)?, Outputs::Identical));
        Ok(kernels.iter().map(time).collect())
    }

    fn look(&self, bound: &Bound, kernels: &[Arc<Kernel>], watched: usize) -> Result<Vec<Looked>> {
        let timer = self.timer(bound, Cores::Sampled)?;
        let target = ptx::PtxTarget::for_model(&self.model);
        let mut looked = Vec::new();
        let mut runs = Vec::new();
        for kernel in kernels {
            let (launch, code) = self.prepared(bound, kernel)?;
            let time = timer.run(&code, &launch)?;
            looked.push(Looked {
                timed: self.timed(bound, &code, &time),
                timeline: None,
                program: Some(Arc::clone(code.program())),
                ptx: target.and_then(|target| Some(self.ptx(target, bound.workload(), kernel).ok()?.text)),
                waited: time.waited.clone(),
            });
            runs.push((launch, code, time));
        }
        runs.truncate(watched);
        // All are drawn to one scale: some iterations of the first kernel, and a few of each other.
        let wanted = runs.iter().zip(&looked).enumerate();
        let wanted = wanted.map(|(number, ((.., time), looked))| match number {
            0 => ITERATIONS * iteration(time, looked),
            _ => FEW_ITERATIONS * iteration(time, looked),
        });
        let wanted = wanted.fold(1.0, f64::max) as u64;
        let windows = runs.iter().map(|(.., time)| time.middle(wanted, SUB_GROUPS));
        let shortest = windows.flatten().map(|window| window.to - window.from).min();
        for ((launch, code, time), looked) in runs.iter().zip(&mut looked) {
            let Some(watch) = time.middle(shortest.unwrap_or(1), SUB_GROUPS) else {
                continue;
            };
            // The same run again: it does the same, cycle by cycle.
            let again = timer.clone().with_watch(Some(watch)).run(code, launch)?;
            looked.timeline = Timeline::of(&self.model, &watch, &again);
        }
        Ok(looked)
    }

    fn simulator(&self) -> Option<&dyn Simulates> {
        Some(self)
    }

    fn adjustable(&self) -> Option<&dyn Adjustable> {
        match self.model.registers {
            Registers::Fixed(_) => Some(self),
            Registers::Pooled(_) => None,
        }
    }
}

impl Simulates for SimulatedBench {
    fn model(&self) -> &DeviceModel {
        &self.model
    }

    fn time_sampled(&self, bound: &Bound, kernel: &Arc<Kernel>, cores: u32) -> Result<Timed> {
        let (launch, code) = self.prepared(bound, kernel)?;
        let timer = self.timer(bound, Cores::Exactly(cores))?;
        Ok(self.timed(bound, &code, &timer.run(&code, &launch)?))
    }

    fn race(&self, bound: &Bound, kernel: &Arc<Kernel>, pace: &Pace) -> Result<Raced> {
        let (launch, code) = self.prepared(bound, kernel)?;
        Ok(
            match self.timer(bound, Cores::Sampled)?.race(&code, &launch, pace)? {
                timer::Raced::Ended(time, course) => {
                    Raced::Ended(Box::new(self.timed(bound, &code, &time)), Some(course))
                }
                timer::Raced::Behind(behind) => Raced::Behind(behind),
            },
        )
    }

    fn soon(&self, bound: &Bound, kernel: &Arc<Kernel>) -> Result<Option<Timed>> {
        let (launch, code) = self.prepared(bound, kernel)?;
        let timer = self.timer(bound, Cores::Few)?;
        Ok(match timer.has_few(&code, &launch)? {
            true => Some(self.timed(bound, &code, &timer.run(&code, &launch)?)),
            false => None,
        })
    }
}

impl Adjustable for SimulatedBench {
    fn choices(&self) -> Choices {
        let core = &self.model.core;
        Choices {
            sub_group_sizes: core.sub_group_sizes.to_vec(),
            sub_group_size: *core.sub_group_size,
            threads: Some(*core.sub_groups),
            cores: *core.count,
        }
    }

    fn with_large_registers(&self) -> Result<Box<dyn Bench>> {
        match &self.model.registers {
            Registers::Fixed(registers) if registers.has_large_mode => {
                let mut large = SimulatedBench::new((*self.model).clone())
                    .with_cache(self.cache)
                    .with_operation_limit(self.operation_limit)
                    .with_stop(self.stop);
                large.timer = large.timer.with_large_registers();
                large.has_large_registers = true;
                Ok(Box::new(large))
            }
            _ => Err(Error::device("the device has one size of register files")),
        }
    }

    fn pressure(&self, bound: &Bound, kernel: &Arc<Kernel>) -> Result<Option<Pressure>> {
        let (_, code) = self.prepared(bound, kernel)?;
        let estimate = code.program().register_estimate;
        Ok(Some(Pressure {
            registers: estimate.registers,
            spilled_bytes: estimate.spilled_bytes,
        }))
    }
}

/// Sub-groups whose moments are shown, and how many iterations of the plain kernel and of another one.
const SUB_GROUPS: usize = 4;
const ITERATIONS: f64 = 6.0;
const FEW_ITERATIONS: f64 = 2.5;

/// Cycles that an iteration of the main loop takes; without a loop, the life of a work-group.
fn iteration(time: &LaunchTime, looked: &Looked) -> f64 {
    let life = time
        .lives
        .get(time.lives.len() / 2)
        .map_or(0, |(from, to)| to - from);
    let main = looked
        .timed
        .profile
        .as_ref()
        .and_then(|profile| profile.main_loop());
    life as f64 / main.map_or(1.0, |main| main.iterations.max(1.0))
}

/// The numbers that a profiler would show first.
fn counted(time: &LaunchTime) -> Vec<(&'static str, &'static str, f64)> {
    let share = |part: u64, whole: u64| {
        if whole == 0 {
            0.0
        } else {
            100.0 * part as f64 / whole as f64
        }
    };
    let mut counted = vec![
        ("sub-groups resident on a busy core", "", time.resident_sub_groups),
        ("issue slots used", "%", 100.0 * time.issued),
        ("device memory throughput", "GB/s", time.bandwidth),
        (
            "in flight for a busy core, on average",
            "bytes",
            time.bytes_in_flight,
        ),
        (
            "L1 hit rate",
            "%",
            share(time.memory.l1_hits, time.memory.l1_sectors),
        ),
        (
            "L2 hit rate",
            "%",
            share(time.memory.l2_hits, time.memory.l2_sectors),
        ),
        ("instructions of sub-groups", "", time.instructions),
        (
            "shared memory bank conflicts",
            "",
            time.memory.bank_conflicts as f64,
        ),
    ];
    for (reason, part) in StallReason::ALL.iter().zip(time.stalled) {
        // Less than this is noise in a report.
        if part >= 0.01 || *reason == StallReason::LongScoreboard {
            counted.push((reason.words(), "%", 100.0 * part));
        }
    }
    counted
}

/// What a launch takes beside its work-groups, in nanoseconds, where the model knows that.
fn launch_ns(model: &DeviceModel) -> Option<f64> {
    let cycles = *model.core.launch;
    (cycles > 0).then(|| model.nanoseconds(f64::from(cycles)))
}

fn note(model: &DeviceModel, cache: CacheState, time: &LaunchTime) -> String {
    let sample = time.sample;
    let some = format!(
        "{} of {} busy cores, {} of {} work-groups",
        sample.cores, sample.of_cores, sample.groups, sample.of_groups
    );
    let what = match sample.within() {
        _ if sample.is_whole() => "every work-group".to_owned(),
        None => format!("{some}, with their share of the bandwidths"),
        Some(part) => format!(
            "{some}, which differ and were chosen to stand for all, with their share of the bandwidths; the time of all is within \
             {} % of this",
            number::figures(100.0 * part)
        ),
    };
    let what = match sample.is_apart {
        true => format!(
            "{what}; what work-groups leave in L2 for others was not counted, so that times may be far off"
        ),
        false => what,
    };
    let what = match sample.cut {
        Some(Cut::ByWork) => {
            format!(
                "{what}; the run was ended early, and what was not done is taken to take as long as what was"
            )
        }
        Some(Cut::AtLeast) => {
            format!(
                "{what}; the run was ended early, and the launch takes longer than this, how much is not known"
            )
        }
        None => what,
    };
    let launch = match launch_ns(model) {
        Some(launch_ns) => format!("Each time contains the launch, {}", number::duration(launch_ns)),
        None => "No time contains the launch: what one costs is not modelled on this device".to_owned(),
    };
    format!(
        "Simulated on a model of the {}: {what}. {launch}. The launch finds {cache}.",
        model.modelled()
    )
}
