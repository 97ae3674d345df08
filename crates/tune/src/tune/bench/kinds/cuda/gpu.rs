//! Kernels with the same parameters, compared on a GPU: compiled, checked and timed in a
//! [worker](crate::device::cuda::worker).

mod arguments;
mod held;
mod own;
mod spilled;

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arguments::{Passed, arguments, passed};
use held::have_the_same_arguments;
use own::Known;
use rayon::prelude::*;

use crate::analysis::waits::waits;
use crate::back::ptx::{self, HintReached, Options, Ptx, PtxTarget};
use crate::device::cuda::gpu::GpuFacts;
use crate::device::cuda::launch::Geometry;
use crate::device::cuda::timing::{Timing, TimingOptions};
use crate::device::cuda::worker::{Loaded, Module, OutputContents, Worker};
use crate::front::ptx::Origin;
use crate::ir::Kernel;
use crate::report::Outputs;
use crate::tune::bench::Held;
use crate::tune::check::{approximates, compare, compare_across};
pub use crate::tune::modules::drop_in::as_it_was;
use crate::tune::modules::drop_in::in_place;
use crate::tune::subject::workload::Workload;
use crate::{Error, Result};

/// A GPU on which kernels are compared.
pub struct GpuBench {
    worker: Worker,
    facts: GpuFacts,
    target: PtxTarget,
    /// The worker's contents, if kernels are compared on it: a search queries batch by batch.
    held: Option<Workload>,
    /// What is known of that workload's own kernel.
    known: Known,
}

/// The treatment of each kernel's outputs.
#[derive(Clone, Debug)]
pub enum Wanted {
    /// They are compared with the right ones: each output's bytes, in the parameters' order.
    Compared(Arc<Vec<Vec<u8>>>),
    /// They are handed out.
    Found,
    /// They stay on the GPU: gigabytes take a second to read, and the launch a millisecond.
    Unread,
}

pub(crate) use own::shorter;
pub use own::{Against, Own};

/// The outcome of one kernel.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Its times.
    pub timing: Timing,
    /// How its outputs compare with the right ones, where that was wanted.
    pub outputs: Option<Outputs>,
    /// The bytes of each output, where they were wanted.
    pub found: Option<Vec<Vec<u8>>>,
    /// The output of the driver's compiler for it.
    pub loaded: Loaded,
    /// Shared memory of a work-group that its launch asks for, in bytes.
    pub dynamic_shared_bytes: u32,
    /// From kernel to PTX.
    pub emit_time: Duration,
    /// The instruction of each of its cache hints.
    pub hints: Vec<HintReached>,
    /// The work-groups of a core that the compiler was told of, so that it would take as many registers as that leaves.
    pub groups_promised: Option<u32>,
}

/// A module's text, and the output of the driver's compiler for it.
struct Compilation {
    /// The worker's name for it.
    module: String,
    ptx: Ptx,
    emit_time: Duration,
    loaded: Loaded,
    groups_promised: Option<u32>,
}

impl GpuBench {
    /// Starts a worker: `program` with `arguments` must serve requests.
    ///
    /// # Errors
    /// There is no such GPU, or its worker cannot be started.
    pub fn start(program: &Path, arguments: &[OsString], device: usize) -> Result<GpuBench> {
        let worker = Worker::start(program, arguments, device)?;
        let facts = worker
            .facts()
            .cloned()
            .ok_or_else(|| Error::bug("a worker has no GPU"))?;
        let target = PtxTarget::for_capability(facts.capability)
            .ok_or_else(|| Error::device(format!("{} is too old", facts.name)))?;
        Ok(GpuBench {
            worker,
            facts,
            target,
            held: None,
            known: Known::default(),
        })
    }

    /// The GPU's properties.
    pub fn facts(&self) -> &GpuFacts {
        &self.facts
    }

    /// How a kernel is emitted for a launch of this workload.
    pub(crate) fn options(&self, workload: &Workload) -> Options {
        Options {
            group: Some(workload.group),
            groups_per_core: workload.groups_promised(self.facts.cores, self.facts.registers_per_core),
            lines: false,
            ..Options::new(self.target)
        }
    }

    /// How long a kernel takes to PTX, and from there to a loaded module: the medians of this many times, one after the
    /// other, with nothing else to do.
    ///
    /// # Errors
    /// The kernel cannot be emitted or compiled, or the worker is lost for good.
    pub fn compile_time(
        &mut self,
        workload: &Workload,
        kernel: &Kernel,
        times: u32,
    ) -> Result<(Duration, Duration)> {
        let options = self.options(workload);
        let ptx = ptx::emit(kernel, &options)?;
        let emit = |_| {
            let start = Instant::now();
            ptx::emit(kernel, &options).map(|_| start.elapsed())
        };
        let emitted = (0..times).map(emit).collect::<Result<Vec<_>>>()?;
        // The first time on a thread is longer.
        let loaded = self.worker.compile(module("alone", &ptx, workload), times + 1)?;
        Ok((median(emitted), median(loaded[1..].to_vec())))
    }

    /// Compiles kernels, runs each once for its outputs, and times them against each other. The outcome of each, in order. The
    /// outputs are requested once the kernels are compiled.
    ///
    /// # Errors
    /// The data do not fit the GPU, the worker is lost for good, or there are no right outputs.
    pub fn measure(
        &mut self,
        workload: &Workload,
        kernels: &[(String, Arc<Kernel>)],
        wanted: &mut dyn FnMut() -> Result<Wanted>,
        timing: TimingOptions,
    ) -> Result<Vec<Result<Measured>>> {
        self.held = None;
        self.worker.bind(&arguments(workload))?;
        let (compiled, of) = self.compiled_each(workload, kernels)?;
        let mut measured = self.measure_compiled(workload, compiled, wanted, timing)?;
        let again = measured.split_off(kernels.len());
        take_the_faster(&mut measured, of, again);
        Ok(measured)
    }

    /// What a kernel takes of a core, as the driver computes it.
    ///
    /// # Errors
    /// It cannot be emitted or compiled, or the worker is lost for good.
    pub(crate) fn held(&mut self, workload: &Workload, kernel: &Kernel) -> Result<Held> {
        let ptx = emit(workload, kernel, &self.options(workload))?;
        let name = "held".to_owned();
        let mut loaded = self.worker.load(vec![module(&name, &ptx, workload)])?;
        self.worker.unload(&[name])?;
        let Loaded {
            compiled,
            groups_per_core,
        } = loaded
            .pop()
            .ok_or_else(|| Error::bug("a module was not loaded"))??;
        Ok(Held {
            groups_per_core,
            registers: compiled.registers,
            spilled_bytes: compiled.local_bytes,
            shared_bytes: u64::from(compiled.static_shared_bytes + ptx.dynamic_shared_bytes),
        })
    }

    /// The share of a core's sub-groups that are resident: as many work-groups as fit, or as there are.
    pub fn occupancy(&self, workload: &Workload, measured: &Measured) -> f64 {
        let (facts, geometry) = (&self.facts, workload.geometry());
        let there = geometry.groups.div_ceil(u64::from(facts.cores.max(1)));
        let resident = there.min(u64::from(measured.loaded.groups_per_core));
        let sub_group = facts.sub_group.max(1);
        let places = facts.work_items_per_core / sub_group;
        (resident * u64::from(geometry.group.div_ceil(sub_group))) as f64 / f64::from(places.max(1))
    }

    /// The time of a kernel in nanoseconds, its outputs left alone; none where one launch is surely slower than `limit_ns`.
    /// Arguments that the worker holds stay if they are the same. Outputs that are given contents are put back before each
    /// launch if that is asked for.
    ///
    /// # Errors
    /// As for [`GpuBench::measure`], or the kernel cannot be compiled or launched.
    pub(crate) fn time_within(
        &mut self,
        workload: &Workload,
        kernel: &Arc<Kernel>,
        limit_ns: f64,
        (timing, restored): (TimingOptions, bool),
    ) -> Result<Option<f64>> {
        let is_held = |held: &Workload| have_the_same_arguments(held, workload);
        if !self.held.as_ref().is_some_and(is_held) {
            self.held = None;
            self.worker.bind(&arguments(workload))?;
        }
        let kernels = [("alone".to_owned(), Arc::clone(kernel))];
        let compiled = self.compiled_each(workload, &kernels)?.0;
        let compiled = compiled.into_iter().collect::<Result<Vec<Compilation>>>()?;
        let modules: Vec<String> = compiled.into_iter().map(|own| own.module).collect();
        let once = TimingOptions {
            warm_up: 0,
            rounds: 1,
            ..timing
        };
        let mut fastest_ns = |timing| -> Result<f64> {
            let timings = self.worker.time(&modules, timing, restored)?;
            let medians = timings.iter().map(|timing| timing.median_ns);
            Ok(medians.fold(f64::INFINITY, f64::min))
        };
        let is_slower = fastest_ns(once)? > SURELY_SLOWER * limit_ns;
        let found = match is_slower {
            true => None,
            false => Some(fastest_ns(timing)?),
        };
        self.worker.unload(&modules)?;
        Ok(found)
    }

    /// The same for modules that are there already, each by its name.
    ///
    /// # Errors
    /// As for [`GpuBench::measure`].
    pub fn measure_modules(
        &mut self,
        workload: &Workload,
        kernels: &[String],
        emitted: Vec<Result<(Ptx, Duration)>>,
        wanted: &mut dyn FnMut() -> Result<Wanted>,
        timing: TimingOptions,
    ) -> Result<Vec<Result<Measured>>> {
        self.held = None;
        self.worker.bind(&arguments(workload))?;
        let compiled = self.compiled(workload, kernels, emitted, None)?;
        self.measure_compiled(workload, compiled, wanted, timing)
    }

    /// Compiles kernels. The outcome of each, in order, and behind them those that were compiled again without spilling; and
    /// of which kernel each of these is.
    fn compiled_each(
        &mut self,
        workload: &Workload,
        kernels: &[(String, Arc<Kernel>)],
    ) -> Result<(Vec<Result<Compilation>>, Vec<usize>)> {
        let mut compiled = self.compiled_once(workload, kernels)?;
        // Where work-groups wait for each other, fewer of them may not be enough.
        let again = match workload.original {
            None if waits(&workload.kernel).is_empty() => {
                self.compiled_without_spilling(workload, kernels, &compiled)?
            }
            _ => Vec::new(),
        };
        let (of, again): (Vec<usize>, Vec<Compilation>) = again.into_iter().unzip();
        compiled.extend(again.into_iter().map(Ok));
        Ok((compiled, of))
    }

    /// Compiles kernels. The outcome of each, in order.
    fn compiled_once(
        &mut self,
        workload: &Workload,
        kernels: &[(String, Arc<Kernel>)],
    ) -> Result<Vec<Result<Compilation>>> {
        let options = self.options(workload);
        let emitted: Vec<Result<(Ptx, Duration)>> = kernels
            .par_iter()
            .map(|(_, kernel)| {
                let start = Instant::now();
                emit(workload, kernel, &options).map(|ptx| (ptx, start.elapsed()))
            })
            .collect();
        let names: Vec<String> = kernels.iter().map(|(name, _)| name.clone()).collect();
        self.compiled(workload, &names, emitted, options.groups_per_core)
    }

    /// Passes modules to the driver's compiler. The outcome of each, in order.
    fn compiled(
        &mut self,
        workload: &Workload,
        names: &[String],
        emitted: Vec<Result<(Ptx, Duration)>>,
        groups_promised: Option<u32>,
    ) -> Result<Vec<Result<Compilation>>> {
        let modules: Vec<Module> = names
            .iter()
            .zip(&emitted)
            .filter_map(|(name, emitted)| {
                let (ptx, _) = emitted.as_ref().ok()?;
                Some(module(name, ptx, workload))
            })
            .collect();
        let mut loaded = self.worker.load(modules)?.into_iter();
        let compilation = |(name, emitted): (&String, Result<(Ptx, Duration)>)| {
            let (ptx, emit_time) = emitted?;
            let loaded = loaded
                .next()
                .ok_or_else(|| Error::bug("a module was not loaded"))??;
            Ok(Compilation {
                module: name.clone(),
                ptx,
                emit_time,
                loaded,
                groups_promised,
            })
        };
        Ok(names.iter().zip(emitted).map(compilation).collect())
    }

    /// Runs modules that were compiled each once for its outputs, and times them against each other.
    fn measure_compiled(
        &mut self,
        workload: &Workload,
        compiled: Vec<Result<Compilation>>,
        wanted: &mut dyn FnMut() -> Result<Wanted>,
        timing: TimingOptions,
    ) -> Result<Vec<Result<Measured>>> {
        let modules: Vec<Option<String>> = compiled
            .iter()
            .map(|compiled| Some(compiled.as_ref().ok()?.module.clone()))
            .collect();
        let wanted = wanted()?;

        let is_read = !matches!(wanted, Wanted::Unread);
        let approximates = is_read && approximates(&workload.kernel);
        let mut plain: Option<Vec<Vec<u8>>> = None;
        let mut outcomes: Vec<Result<Measured>> = Vec::with_capacity(compiled.len());
        for compiled in compiled {
            outcomes.push(compiled.and_then(|compilation| {
                let name = &compilation.module;
                let right = match &wanted {
                    Wanted::Compared(right) => Some(right),
                    Wanted::Found | Wanted::Unread => None,
                };
                let checked = match is_read {
                    true => self.worker.check(name, timing.limit, right)?,
                    false => self.worker.launch(name, timing.limit)?,
                };
                let is_right = right.is_some()
                    && checked
                        .outputs
                        .iter()
                        .all(|found| *found == OutputContents::Expected);
                let found = match is_right && !approximates {
                    true => Vec::new(),
                    false => bytes(checked.outputs, right.map_or(&[], |right| right.as_slice())),
                };
                let outputs = match right {
                    Some(_) if is_right => Some(Outputs::Identical),
                    Some(right) => Some(compare_across(workload, right, &found)?),
                    None => None,
                };
                // Then the simulator's bits say little; the plain kernel's on this device are those to have.
                if approximates && let Some(plain) = &plain {
                    compare(workload, plain, &found)?;
                } else if approximates {
                    plain = Some(found.clone());
                }
                let timing = Timing::of(vec![checked.elapsed_ns], timing.cache)
                    .ok_or_else(|| Error::bug("one launch has no time"))?;
                Ok(Measured {
                    timing,
                    outputs,
                    found: matches!(wanted, Wanted::Found).then_some(found),
                    loaded: compilation.loaded,
                    dynamic_shared_bytes: compilation.ptx.dynamic_shared_bytes,
                    emit_time: compilation.emit_time,
                    hints: compilation.ptx.hints,
                    groups_promised: compilation.groups_promised,
                })
            }));
        }

        self.time_those_that_ran(&mut outcomes, &modules, timing, false)?;
        let modules: Vec<String> = modules.into_iter().flatten().collect();
        self.worker.unload(&modules)?;
        Ok(outcomes)
    }

    /// Times the kernels that ran well against each other, each by the module that it is in; outputs that are given
    /// contents are put back before each launch, if they are to be.
    fn time_those_that_ran(
        &mut self,
        outcomes: &mut [Result<Measured>],
        modules: &[Option<String>],
        timing: TimingOptions,
        restore: bool,
    ) -> Result<()> {
        let candidates: Vec<(usize, String)> = outcomes
            .iter()
            .zip(modules)
            .enumerate()
            .filter_map(|(index, (outcome, module))| {
                Some((index, outcome.as_ref().ok().and(module.clone())?))
            })
            .collect();
        let launches_ns: f64 = outcomes.iter().flatten().map(|own| own.timing.median_ns).sum();
        let mut race = vec![timing];
        // A few launches tell which of long ones are surely behind.
        if launches_ns * f64::from(timing.rounds) > LONG_NS && timing.rounds > FIRST_ROUNDS {
            let first = TimingOptions {
                warm_up: 0,
                rounds: FIRST_ROUNDS,
                ..timing
            };
            race.insert(0, first);
        }
        let mut running = candidates;
        for timing in race {
            let names: Vec<String> = running.iter().map(|(_, name)| name.clone()).collect();
            if names.is_empty() {
                break;
            }
            let timings = self.worker.time(&names, timing, restore)?;
            let fastest_ns = timings
                .iter()
                .map(|own| own.median_ns)
                .fold(f64::INFINITY, f64::min);
            let is_behind = |own: &Timing| own.median_ns > SURELY_SLOWER * fastest_ns;
            // The first is what the others are compared with.
            let first = running.first().map(|(index, _)| *index);
            let stays: Vec<bool> = timings.iter().map(|own| !is_behind(own)).collect();
            for ((index, _), timing) in running.iter().zip(timings) {
                if let Ok(measured) = &mut outcomes[*index] {
                    measured.timing = timing;
                }
            }
            let mut stays = stays.into_iter();
            running.retain(|(index, _)| stays.next().unwrap_or(true) || Some(*index) == first);
        }
        Ok(())
    }
}

/// One launch of a GPU that has warmed up tells a kernel's time this well. By choice: quartiles of launches that take
/// microseconds are up to some 10 % apart.
const SURELY_SLOWER: f64 = 1.2;

/// Where the launches of a batch take longer together, those that are surely behind after a few rounds are not launched any more.
const LONG_NS: f64 = 5e8;
const FIRST_ROUNDS: u32 = 3;

/// Takes kernels that were compiled again, each with its kernel's place, where they are faster.
fn take_the_faster(measured: &mut [Result<Measured>], of: Vec<usize>, again: Vec<Result<Measured>>) {
    for (index, again) in of.into_iter().zip(again) {
        let is_faster = |before: &Measured| {
            again
                .as_ref()
                .is_ok_and(|again| again.timing.median_ns < before.timing.median_ns)
        };
        if measured[index].as_ref().is_ok_and(is_faster) {
            measured[index] = again;
        }
    }
}

/// The bytes of each output.
fn bytes(outputs: Vec<OutputContents>, expected: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let of = |(index, found): (usize, OutputContents)| match found {
        OutputContents::Bytes(bytes) => bytes,
        OutputContents::Expected => expected.get(index).cloned().unwrap_or_default(),
    };
    outputs.into_iter().enumerate().map(of).collect()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// A kernel's PTX, and how the workload launches it.
fn module(name: &str, ptx: &Ptx, workload: &Workload) -> Module {
    Module {
        name: name.to_owned(),
        ptx: ptx.text.clone(),
        entry: ptx.entry.clone(),
        geometry: Geometry {
            groups: workload.groups,
            group: workload.group,
            dynamic_shared_bytes: ptx.dynamic_shared_bytes,
            cooperative: is_cooperative(workload),
        },
        code: None,
    }
}

/// A kernel in PTX: in a module of its own, or in that of the entry that it was read from.
fn emit(workload: &Workload, kernel: &Kernel, options: &Options) -> Result<Ptx> {
    match &workload.original {
        Some(original) => in_place(original, workload, kernel),
        None => ptx::emit(kernel, options),
    }
}

/// Whether work-groups meet: then the driver gives the launch a workspace.
fn is_cooperative(workload: &Workload) -> bool {
    let mut origins = workload.original.iter().flat_map(|original| &original.parameters);
    origins.any(|origin| *origin == Origin::Workspace)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::Type;
    use crate::tune::subject::workload::ArgumentSpec;

    #[test]
    fn registers_are_spent_only_where_cores_hold_few_work_items() {
        let facts = headstart_testing::h200();
        let of = |groups, group| {
            let workload = Workload {
                kernel: Arc::new(Kernel::new("k")),
                groups: [groups, 1, 1],
                group: [group, 1, 1],
                given: vec![ArgumentSpec::Scalar(Type::I32, 1)],
                original: None,
                placed: None,
                divides: None,
            };
            workload.groups_promised(facts.cores, facts.registers_per_core)
        };
        assert_eq!(of(1, 128), Some(1));
        assert_eq!(of(132, 128), Some(1));
        assert_eq!(of(133, 128), Some(2));
        assert_eq!(of(528, 256), Some(4));
        assert_eq!(of(1056, 256), None);
    }
}
