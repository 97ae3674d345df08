//! The search: understand the launch, list plans, derive each, check it, time it, choose, explain.

#[doc(hidden)]
pub mod choose;
pub(super) mod derivation;
mod deriving;
#[doc(hidden)]
pub mod doubt;
mod ended;
pub(super) mod geometries;
#[doc(hidden)]
pub mod interval;
pub(super) mod judged;
mod known;
#[doc(hidden)]
pub mod log;
pub(super) mod proposals;
pub(super) mod race;
pub(super) mod reasons;
pub(crate) mod remainder;
mod reporting;
mod settling;
#[doc(hidden)]
pub mod space;
pub(super) mod trying;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use self::derivation::Derivation;
use self::deriving::alone;
pub use self::deriving::{derive, likely, main_loads, plain};
pub(super) use self::deriving::{derive_one, likely_for, likely_of_remainders, registers_left};
use self::ended::Ended;
use self::judged::first;
pub(crate) use self::known::known;
use self::log::{Log, Shard};
use self::race::Race;
use self::remainder::Alone;
pub(super) use self::reporting::wishes;
use self::space::Space;
use self::trying::{Memory, Pair, Trials, Trying};
use super::bench::{Bench, Timed};
use super::subject::{Reshaped, Subject};
use super::threads::{self, shielded};
use crate::error::Result;
use crate::evidence::overview;
use crate::ir::Kernel;
use crate::prefetch::{Loads, Plan};
use crate::report::waiting::{self, Waiting};
use crate::report::{PlainBest, Report, number};
use crate::tune::check::perturb::{self, Engine, Perturbed, Settings};
use crate::tune::derived::Derived;
use crate::tune::progress::{GoesOn, Progress};
use crate::tune::subject::workload::{Bound, Workload};

/// Tries plans for a kernel and chooses one. `plans` are those to try; none asks for the default space.
///
/// # Errors
/// The plain kernel cannot be run or goes wrong; all of the plans that were asked for are refused.
pub fn tune(
    subject: &dyn Subject,
    bench: &dyn Bench,
    plans: Option<&[Plan]>,
    progress: &dyn Progress,
) -> Result<Report> {
    search(
        subject,
        bench,
        &SearchSettings {
            plans,
            ..SearchSettings::default()
        },
        progress,
    )
    .map(|found| found.report)
}

/// The settings of a search.
#[derive(Clone, Copy, Debug, Default)]
pub struct SearchSettings<'a> {
    /// The plans to try; none asks for the default space.
    pub plans: Option<&'a [Plan]>,
    /// The part of them that is tried; none asks for all.
    pub shard: Option<Shard>,
    /// Where trials are looked for before they are made, and written when they end.
    pub log: Option<&'a Log>,
    /// The launches that plans are checked on besides the one at hand.
    pub perturbed: Settings,
    /// How many plans are measured, on a device whose clock drifts; none asks for all. See [`Proposals`](super::Proposals).
    pub measure: Option<usize>,
    /// Whether plans that are surely behind are simulated to their end, too.
    pub every_plan: bool,
    /// Whether the simulator is not to explain what a device measured: that takes seconds, which other launches may need.
    pub unexplained: bool,
    /// Asked as soon as the plain kernel has run.
    pub goes_on: GoesOn<'a>,
}

/// How long a plan is checked on the processors after the time of a search.
const OVER: Duration = Duration::from_secs(1);

/// How long launches to check plans on are looked for at least, while a device measures.
const LAUNCHES: Duration = Duration::from_secs(2);

/// The result of a search.
#[derive(Clone, Debug)]
pub struct SearchOutcome {
    /// The report.
    pub report: Report,
    /// The plain kernel's run.
    pub baseline: Timed,
}

/// The same, with the plain kernel's run, in parts, and with a log.
///
/// # Errors
/// As for [`tune`]; the log cannot be written.
pub fn search(
    subject: &dyn Subject,
    bench: &dyn Bench,
    settings: &SearchSettings<'_>,
    progress: &dyn Progress,
) -> Result<SearchOutcome> {
    let search = Search {
        subject,
        bench,
        settings,
        progress,
    };
    let launch = search.understood()?;
    let (space, first) = search.listed(&launch)?;
    let tried = search.tried(&launch, &space, first)?;
    let mut ended = Ended::of(&launch, &space, tried)?;
    settings.log.map_or(Ok(()), Log::check)?;
    let others = search.others(&launch, &mut ended)?;
    let settled = search.settled(&launch, &mut ended, &others)?;
    search.outcome(&launch, &space, ended, others, settled)
}

/// A search.
#[derive(Clone, Copy)]
struct Search<'s> {
    subject: &'s dyn Subject,
    bench: &'s dyn Bench,
    settings: &'s SearchSettings<'s>,
    progress: &'s dyn Progress,
}

/// The launch that plans are tried for.
struct Understood {
    workload: Workload,
    /// The plain kernel.
    kernel: Arc<Kernel>,
    bound: Bound,
    /// The remainders that run without their main loops.
    alone: Alone,
    /// The same in sentences.
    only_rests: Vec<String>,
    waits: Vec<Waiting>,
}

/// The plain kernel in the geometry where it is fastest, and its launch there; none where that is the geometry at hand.
type PlainElsewhere = Option<(PlainBest, Reshaped)>;

/// What was tried.
struct Tried {
    trials: Trials,
    /// What became of each plan, in their order.
    derived: Vec<Result<Derived>>,
    /// The launches that plans are checked on.
    perturbed: Option<Perturbed>,
    /// The plain kernel elsewhere, if it was timed meanwhile.
    beside: Option<Result<PlainElsewhere>>,
    remarks: Vec<String>,
}

impl Search<'_> {
    fn tell(&self, sentences: &[String]) {
        sentences
            .iter()
            .for_each(|sentence| self.progress.understood(sentence));
    }

    /// Reads the launch, and says what is seen of it at once.
    fn understood(&self) -> Result<Understood> {
        let Search { subject, bench, .. } = *self;
        // The kernel is the same at every size, and small data are made at once.
        let small = subject.small(1).ok().flatten();
        if let Some(small) = &small {
            self.tell(&overview(&small.kernel));
        }
        let workload = subject.workload()?;
        let device = bench.device().description();
        workload.check_fits(device)?;
        if small.is_none() {
            self.tell(&overview(&workload.kernel));
        }
        let (geometry, bytes) = (workload.geometry(), number::bytes(workload.bytes() as f64));
        self.tell(&[format!("{geometry}, {bytes} of data, on {}", device.name)]);
        let kernel = plain(bench, &workload)?;
        let alone = alone(bench, &workload, &kernel);
        let only_rests = remainder::sentences(&kernel, &alone);
        self.tell(&only_rests);
        let waits = Waiting::of(&kernel);
        self.tell(waiting::sentence(&waits).as_slice());
        let bound = workload.bind(bench.device())?;
        Ok(Understood {
            workload,
            kernel,
            bound,
            alone,
            only_rests,
            waits,
        })
    }

    /// The plans; a device that judges them is asked about the kernel as it is meanwhile.
    fn listed(&self, launch: &Understood) -> Result<(Space, Option<Timed>)> {
        let Understood {
            workload,
            kernel,
            alone,
            ..
        } = launch;
        let listed = || Space::of(self.bench, workload, kernel, alone, self.settings);
        if self.bench.judge().is_none() {
            return Ok((listed()?, None));
        }
        let (space, first) =
            threads::both(listed, || first(self.bench, &launch.bound, kernel, self.progress));
        Ok((space?, Some(first?)))
    }

    /// Tries the plans. `first` is the kernel as it is, where that was timed.
    fn tried(&self, launch: &Understood, space: &Space, first: Option<Timed>) -> Result<Tried> {
        let Search {
            subject,
            bench,
            settings,
            progress,
        } = *self;
        let Understood { workload, kernel, .. } = launch;
        let loads = Loads::of(kernel);
        let derive = |plan: &Plan| shielded(|| derive_one(bench, workload, &loads, plan));
        let derivation = Derivation::new(&space.plans, derive);
        let early = match bench.judge() {
            Some(_) => None,
            None => {
                // Illegal plans are rejected at once, and legal ones checked at sizes that follow from the plan.
                derivation.all();
                let legal = (0..space.plans.len()).filter_map(|index| derivation.pair(index).1.as_ref().ok());
                self.perturbed(launch, legal.map(|derived| &derived.plan).collect(), &|| true)?
            }
        };
        let trying = Trying {
            subject,
            bench,
            workload,
            kernel,
            bound: &launch.bound,
            memory: &Memory::new(settings.log, bench, workload, kernel),
            perturbed: early.as_ref(),
            progress,
            likely: &space.likely,
            goes_on: settings.goes_on,
            race: (!settings.every_plan).then(|| Race::new(kernel, space.likely.clone())),
        };
        let mut remarks = Vec::new();
        let (trials, beside, perturbed) = match (bench.simulator(), first) {
            (Some(simulator), _) => {
                let pairs: Vec<Pair<'_>> = (0..space.plans.len())
                    .map(|index| derivation.pair(index))
                    .collect();
                let (trials, beside) =
                    trying.at_once(simulator, &pairs, |ns| self.plain_elsewhere(launch, ns))?;
                (trials, Some(beside), early)
            }
            (None, None) => (trying.in_turns(&derivation, None, settings.measure)?, None, early),
            (None, Some(first)) => {
                let (trials, late) = self.beside_the_device(launch, &derivation, &trying, first);
                let late = late.unwrap_or_else(|error| {
                    remarks.push(format!(
                        "The plans were not checked on perturbed launches on the simulator: {error}."
                    ));
                    None
                });
                (trials?, None, late)
            }
        };
        let perturbed = perturbed.map(|perturbed| match progress.left() {
            Some(left) => perturbed.until(Instant::now() + left + OVER),
            None => perturbed,
        });
        Ok(Tried {
            trials,
            derived: derivation.ended(),
            perturbed,
            beside,
            remarks,
        })
    }

    /// The device measures; meanwhile the processors derive plans, and look for launches to check them on.
    fn beside_the_device(
        &self,
        launch: &Understood,
        derivation: &Derivation<'_>,
        trying: &Trying<'_>,
        first: Timed,
    ) -> (Result<Trials>, Result<Option<Perturbed>>) {
        let is_over = AtomicBool::new(false);
        let measure = || {
            let tried = trying.in_turns(derivation, Some(first), self.settings.measure);
            is_over.store(true, Ordering::Relaxed);
            tried
        };
        let is_stopped = || self.progress.is_stopped();
        let is_measuring = || !is_over.load(Ordering::Relaxed) && !is_stopped();
        // Few plans are measured soon.
        let began = Instant::now();
        let is_wanted = || is_measuring() || began.elapsed() < LAUNCHES && !is_stopped();
        let look = || self.perturbed(launch, derivation.plans().iter().collect(), &is_wanted);
        let work = || threads::both(|| derivation.ahead(|| !is_measuring()), look).1;
        threads::both(measure, work)
    }

    /// Launches derived from this one to check these plans on; none without plans.
    fn perturbed(
        &self,
        launch: &Understood,
        plans: Vec<&Plan>,
        is_wanted: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<Perturbed>> {
        let (kernel, settings) = (&launch.kernel, self.settings.perturbed);
        let engine = || Engine::of(self.bench, &launch.workload);
        perturb::check_wishes(self.subject, kernel, engine(), settings)?;
        if plans.is_empty() {
            return Ok(None);
        }
        let plans = plans.into_iter();
        Perturbed::while_wanted(self.subject, kernel, engine(), plans, settings, is_wanted).map(Some)
    }

    fn plain_elsewhere(&self, launch: &Understood, baseline_ns: f64) -> Result<PlainElsewhere> {
        geometries::plain_best(
            self.subject,
            self.bench,
            &launch.workload,
            self.progress,
            baseline_ns,
        )
    }
}
