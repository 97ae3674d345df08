//! The timer: how long a launch takes on a device model, and why.
//!
//! It runs the machine program of a kernel ([`crate::back::machine`]), with real addresses and branches and the values that
//! lead to them, on the cores of a [`DeviceModel`]. It models: several schedulers per core, each of which issues an instruction
//! per cycle, greedy-then-oldest; registers that are ready after an instruction's latency, with few scoreboards for variable
//! latencies; units that take an instruction every few cycles; instruction caches; work-groups resident as the occupancy rules
//! allow, the next one starting when one ends; barriers, which wait for plain loads but not for asynchronous copies; copies and
//! waits by token; lanes that diverge and reconverge; and the memory hierarchy.
//!
//! If a launch's work-groups are homogeneous, some cores are simulated, with their share of L2 and device memory ([`Cores`]).
//! Otherwise some work-groups stand for all, if a [`Survey`] chooses them; [`LaunchTime::sample`] has their number. The survey
//! also tells how often cores find lines in L2 that others bring, of which a sample sees few: without one, a sample's cores find
//! only their own. If all work-groups are resident at once, the time by which the slowest of all exceeds the slowest of a sample
//! is added.
//! A run is a function of its inputs alone.

mod access;
mod balance;
mod code;
mod core;
mod cost;
mod fetch;
mod frames;
mod pace;
mod part;
pub(crate) mod profile;
mod report;
mod run;
mod simulated;
mod slowest;
mod stalls;
mod standstill;
mod sub_group;
mod survey;

#[cfg(test)]
mod tests;

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

#[doc(hidden)]
pub use crate::memory::saturation;
pub use balance::{Balance, Spread};
pub use code::Code;
#[doc(hidden)]
pub use pace::WORTH;
#[doc(hidden)]
pub use pace::{Behind, Course, Pace};
pub use report::{Cut, LaunchTime, Sample};
pub use stalls::{Issue, StallReason, Watch};
pub use survey::Survey;

use crate::back::machine::{Assembled, Target, lower_for_any_launch, lower_for_groups};
use crate::device::{CacheState, Launch};
use crate::functional::Options;
use crate::ir::Kernel;
use crate::model::hint::HintReached;
use crate::model::{CopyDirection, DeviceModel};
use crate::{Clock, Stop, Timing};
use crate::{Error, Result};

/// How many of the cores that a launch keeps busy are simulated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cores {
    /// A few, if the work-groups turn out to be alike; else more, or all.
    #[default]
    Sampled,
    /// Fewer, and fewer work-groups, where that is much less to simulate than what a sample takes: a first time, soon.
    Few,
    /// This many in any case.
    Exactly(u32),
    /// All.
    All,
}

/// The outcome of a run that was compared with others.
#[derive(Clone, Debug)]
pub enum Raced {
    /// It was simulated to its end.
    Ended(Box<LaunchTime>, Course),
    /// It was given up.
    Behind(Behind),
}

/// Times launches on a device model.
#[derive(Clone, Debug)]
pub struct Timer {
    model: Arc<DeviceModel>,
    cores: Cores,
    cache: CacheState,
    results: bool,
    survey: Option<Arc<Survey>>,
    seed: u64,
    /// Which stack of the card runs launches.
    stack: u32,
    large_registers: bool,
    /// Whether nothing tells the compiler how many work-groups a launch leaves on a core.
    serves_any_launch: bool,
    watch: Option<Watch>,
    /// What the vendor's compiler made of the kernel, where that is known.
    assembled: Option<Assembled>,
    /// Operations of a sub-group after which a kernel counts as endless, unless the launch has a limit.
    operation_limit: u64,
    stop: Option<&'static Stop>,
}

impl Timer {
    /// A timer that samples cores where it can, and computes no more than the time depends on.
    pub fn new(model: Arc<DeviceModel>) -> Timer {
        Timer {
            model,
            cores: Cores::default(),
            cache: CacheState::default(),
            results: false,
            survey: None,
            seed: 0,
            stack: 0,
            large_registers: false,
            serves_any_launch: false,
            watch: None,
            assembled: None,
            operation_limit: Options::CHECKING.operation_limit,
            stop: None,
        }
    }

    /// The same with the limits of an engine: how many operations of a sub-group count as endless, and what may end a run.
    #[must_use]
    pub fn with_limits(mut self, options: &Options) -> Timer {
        (self.operation_limit, self.stop) = (options.operation_limit, options.stop);
        self
    }

    /// The same, but it computes everything, and the simulated work-groups write their results.
    #[must_use]
    pub fn with_results(mut self) -> Timer {
        self.results = true;
        self
    }

    /// The same, with another choice of cores.
    #[must_use]
    pub fn with_cores(mut self, cores: Cores) -> Timer {
        self.cores = cores;
        self
    }

    /// The same, with something else in L2 when a launch starts.
    #[must_use]
    pub fn with_cache(mut self, cache: CacheState) -> Timer {
        self.cache = cache;
        self
    }

    /// The same for launches that were surveyed: where work-groups differ, some are simulated that stand for all, and what other
    /// cores bring to L2 is found there.
    #[must_use]
    pub fn with_survey(mut self, survey: Option<Arc<Survey>>) -> Timer {
        self.survey = survey;
        self
    }

    /// The same, with another choice of the work-groups that stand for all.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Timer {
        self.seed = seed;
        self
    }

    /// The same, with some sub-groups watched for a while: [`LaunchTime::watched`].
    #[must_use]
    #[doc(hidden)]
    pub fn with_watch(mut self, watch: Option<Watch>) -> Timer {
        self.watch = watch;
        self
    }

    /// The same with the large register file for each sub-group, and half as many of them per core (Intel).
    #[must_use]
    pub fn with_large_registers(mut self) -> Timer {
        self.large_registers = true;
        self
    }

    /// The same for kernels in modules that serve any launch, as a user's own PTX does. Without it the compiler knows the launch
    /// (`.minnctapersm`).
    #[must_use]
    pub fn serving_any_launch(mut self, serves: bool) -> Timer {
        self.serves_any_launch = serves;
        self
    }

    /// The same for a kernel of which the vendor's compiler made this: code that it compiles has these registers, and spills.
    #[must_use]
    pub fn of_assembled(mut self, assembled: Option<Assembled>) -> Timer {
        self.assembled = assembled;
        self
    }

    /// Counts the work of each work-group of a checked launch, and writes the data that it depends on to its buffers; none if
    /// it takes too long. What they find in L2 is that of another launch of the same work, if its survey is `known`.
    pub fn survey(&self, kernel: &Arc<Kernel>, launch: &Launch, known: Option<&Survey>) -> Option<Survey> {
        // So few are all simulated in any case; but the lines that they leave in L2 matter.
        let kept = self.cache == CacheState::Kept;
        let is_sampled = self.cores != Cores::All && launch.group_count() > u64::from(run::CORES_OF_STRATA);
        let is_worth_it = is_sampled || kept;
        is_worth_it
            .then(|| Survey::of(self, kernel, launch, kept, known))
            .flatten()
    }

    /// The device.
    pub(crate) fn model(&self) -> &Arc<DeviceModel> {
        &self.model
    }

    /// Lowers a verified kernel for a launch and looks up the costs of its instructions.
    ///
    /// # Errors
    /// The kernel is too large for the timer.
    pub fn compile(&self, kernel: &Kernel, launch: &Launch) -> Result<Code> {
        let key = Key::new(kernel, launch, &self.model);
        let target = Target::of(&self.model, key.sub_group_size);
        let target = match self.large_registers {
            true => target.with_large_registers(),
            false => target,
        };
        let target = Target {
            assembled: self.assembled,
            ..target
        };
        let (groups, group) = (key.groups_per_core, key.group);
        let program = Arc::new(match self.serves_any_launch {
            true => lower_for_any_launch(kernel, &target, &self.model, group),
            false => lower_for_groups(kernel, &target, &self.model, groups, group),
        });
        let code = Code::new(program, &self.model, key.sub_group_size, self.results)?;
        Ok(code.with_large_registers(self.large_registers))
    }

    /// How many work-groups of a launch a core holds at once.
    ///
    /// # Errors
    /// It holds none.
    pub fn groups_per_core(&self, code: &Code, launch: &Launch) -> Result<u32> {
        run::groups_per_core(&self.model, code, launch)
    }

    /// Whether [`Cores::Few`] is much less to simulate of a launch than what a sample takes.
    ///
    /// # Errors
    /// The launch does not fit the device.
    pub fn has_few(&self, code: &Code, launch: &Launch) -> Result<bool> {
        run::few(self, code, launch).map(|few| few.is_some())
    }

    /// Times a checked launch. Of the simulated work-groups' writes to the launch's buffers, it carries out those on which the
    /// time may depend, or all ([`Timer::with_results`]).
    ///
    /// # Errors
    /// The launch does not fit the device, or the kernel faults.
    pub fn run(&self, code: &Code, launch: &Launch) -> Result<LaunchTime> {
        match run::run(self, code, launch, None)? {
            Raced::Ended(time, _) => Ok(*time),
            Raced::Behind(_) => Err(Error::bug("a run was given up that was compared with none")),
        }
    }

    /// The same, unless it turns out to be surely slower than the run that leads.
    ///
    /// # Errors
    /// As for [`Timer::run`].
    pub fn race(&self, code: &Code, launch: &Launch, pace: &Pace) -> Result<Raced> {
        run::run(self, code, launch, Some(pace))
    }
}

/// The properties of a launch on which the code of a kernel depends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    sub_group_size: u32,
    groups_per_core: u32,
    group: u32,
}

impl Key {
    fn new(kernel: &Kernel, launch: &Launch, model: &DeviceModel) -> Key {
        let per_core = launch.group_count().div_ceil(u64::from(*model.core.count));
        Key {
            sub_group_size: launch.sub_group_size(kernel, &model.description()),
            groups_per_core: u32::try_from(per_core).unwrap_or(u32::MAX),
            group: u32::try_from(launch.group_items()).unwrap_or(u32::MAX),
        }
    }
}

/// The codes of a kernel, for the launches that it has had.
type Codes = Mutex<HashMap<Key, Arc<Code>>>;

impl Timer {
    /// The code of a kernel's launch, which is stored with the result of [`Clock::compile`].
    fn code(
        &self,
        kernel: &Arc<Kernel>,
        compiled: &Arc<dyn Any + Send + Sync>,
        launch: &Launch,
    ) -> Result<Arc<Code>> {
        let codes = compiled
            .downcast_ref::<Codes>()
            .ok_or_else(|| Error::bug("a kernel that another clock compiled"))?;
        let key = Key::new(kernel, launch, &self.model);
        let known = codes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&key)
            .cloned();
        match known {
            Some(code) => Ok(code),
            None => {
                let code = Arc::new(Timer::compile(self, kernel, launch)?);
                codes
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .insert(key, Arc::clone(&code));
                Ok(code)
            }
        }
    }
}

impl Clock for Timer {
    fn compile(&self, _kernel: &Arc<Kernel>) -> Result<Arc<dyn Any + Send + Sync>> {
        // Which code it is depends on the launch.
        Ok(Arc::new(Codes::default()))
    }

    fn time(
        &self,
        kernel: &Arc<Kernel>,
        compiled: &Arc<dyn Any + Send + Sync>,
        launch: &Launch,
        stack: u32,
    ) -> Result<Timing> {
        let code = self.code(kernel, compiled, launch)?;
        // It takes no longer than running the launch, which the device does, too.
        let survey = self.survey(kernel, launch, None);
        let on_stack = Timer {
            stack,
            survey: survey.map(Arc::new),
            ..self.clone()
        };
        let time = on_stack.run(&code, launch)?;
        Ok(Timing {
            elapsed_ns: time.nanoseconds,
            counters: time.counters(),
            ..Timing::default()
        })
    }

    fn resident_groups(
        &self,
        kernel: &Arc<Kernel>,
        compiled: &Arc<dyn Any + Send + Sync>,
        launch: &Launch,
    ) -> Option<u64> {
        // The reason why a launch cannot run is reported when it is timed.
        let code = self.code(kernel, compiled, launch).ok()?;
        run::resident_groups(&self.model, &code, launch).ok()
    }

    fn copy_ns(&self, bytes: u64, direction: CopyDirection) -> f64 {
        self.model.copy_ns(bytes, direction)
    }

    fn shared_page(&self) -> Option<u64> {
        self.model.card.as_ref().map(|card| *card.shared_page)
    }

    fn shared_pages_ns(&self, pages: u64) -> f64 {
        self.model.shared_pages_ns(pages)
    }

    fn prefetches(&self, kernel: &Kernel) -> Vec<HintReached> {
        self.model.prefetches(kernel)
    }
}
