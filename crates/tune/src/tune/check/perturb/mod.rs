//! Perturbed launches: a plan is checked not only on the launch that it was derived for, but on launches derived from it.
//!
//! A plan that is right for one launch may be wrong for the next, which differs in a scalar or in its data. So before a
//! plan is accepted the plain kernel and the derived one run on many small launches, on the functional engine, and have to
//! leave the same bits:
//!
//! - every scalar at 0, 1, −1, its value ± 1, its extremes, beside other scalars, and at random;
//! - data permuted, constant, extreme, flipped, all zeros, all ones, as long as it stays in bounds;
//! - other lengths, other numbers and sizes of work-groups, partial last ones, other amounts of dynamic shared memory;
//! - buffers that share their memory or begin in the middle of another, where the kernel's facts do not exclude it.
//!
//! A launch that makes the *plain* kernel break a rule, or take too long, is none that the kernel is made for: it is dropped and
//! counted, by rule. An access that leads nowhere though no drawn byte flows into its address is evidence that the kernel was
//! read as another one, and nothing of it is rewritten. The search is
//! guided by the plain kernel's coverage: sides of branches, loop exits, trip counts. The report lists the uncovered places,
//! and then calls the plan weakly checked.
//!
//! | file | what it does |
//! |---|---|
//! | `launch` | a launch, and its buffers on the engine |
//! | `data` | what buffers hold, changed |
//! | `pointers` | words of a captured launch that are pointers, and are not changed |
//! | `derive` | launches derived from one |
//! | `overlap` | of them those in which buffers share their memory |
//! | `plain` | the plain kernel on a launch: kept or dropped, buffers as long as needed |
//! | `evidence` | whether its fault follows from what was drawn |
//! | `search` | which launches are tried |
//! | `goals` | what they should reach, and what they left out |
//! | `agree` | a derived kernel on a launch |
//! | `on_device` | the same on a device that judges plans itself |
//! | `written` | the derived kernel as it is read again from the module that is written |
//! | `reproducer` | a difference, written down so that it can be repeated |

mod agree;
mod bases;
mod data;
mod derive;
mod evidence;
mod goals;
mod launch;
mod on_device;
mod overlap;
mod plain;
mod pointers;
pub(crate) mod reproducer;
mod search;
mod settings;
mod shared;
#[cfg(test)]
mod tests;
mod written;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use agree::Agreement;
use bases::bases;
use plain::{Compiled, Kept};
use search::{Launches, SearchInputs, search};
use shared::{dynamic_arrays, other_shared, with_shared};
use written::{Written, written};

use crate::device::Device;
use crate::device::sim::Simulator;
use crate::device::sim::functional::{CompiledKernel, Options, PrefetchBounds};
use crate::error::{Error, Result};
use crate::ir::{Kernel, print};
use crate::prefetch::{self, Plan};
use crate::report;
use crate::tune::bench::Bench;
use crate::tune::hash::hash;
use crate::tune::subject::Subject;
use crate::tune::subject::workload::Workload;

pub use plain::Engine;
pub use settings::Settings;

/// On how many launches a plan is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thoroughness {
    /// On those that say most, within a budget: for a plan among many.
    Quick,
    /// On all: for a plan that is to be used.
    All,
}

/// The launches, with the plain kernel's results.
pub struct Perturbed {
    engine: Engine,
    plain: Arc<Compiled>,
    /// The kernel as read with other amounts of dynamic shared memory, and the arrays that get it.
    shared: BTreeMap<u32, Arc<Compiled>>,
    dynamic: Vec<String>,
    launches: Launches,
    /// The launches, those that reached something new first.
    order: Vec<usize>,
    settings: Settings,
    /// When no more launches are run.
    until: Option<Instant>,
}

/// On how many launches a plan agreed with the plain kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Agreed {
    /// They left the same.
    pub launches: u64,
    /// The plan is not for such launches: its kernel says so itself, or relies on lengths that it was told.
    pub(crate) not_for: u64,
}

impl Engine {
    /// The engine that checks for a bench.
    pub fn of(bench: &dyn Bench, workload: &Workload) -> Engine {
        Engine {
            options: bench.platform().engine_options(),
            description: bench.device().description().clone(),
            target: bench.platform().target_for(workload),
        }
    }

    /// One without a device of its own, for work-groups of this size.
    pub(crate) fn of_no_device(group: [u32; 3]) -> Engine {
        let options = Options {
            prefetch_bounds: PrefetchBounds::Free,
            ..Options::CHECKING
        };
        Engine {
            options,
            description: Simulator::untimed().description().clone(),
            target: prefetch::PlanTarget::of(group),
        }
    }
}

impl Perturbed {
    /// Looks for launches of a subject's plain kernel, for these plans.
    ///
    /// # Errors
    /// The subject contradicts itself, or the plain kernel goes wrong in a way that no drawn data explains: then our reading of
    /// it cannot be trusted.
    pub fn new<'p>(
        subject: &dyn Subject,
        plain: &Arc<Kernel>,
        engine: Engine,
        plans: impl IntoIterator<Item = &'p Plan>,
        settings: Settings,
    ) -> Result<Perturbed> {
        Perturbed::while_wanted(subject, plain, engine, plans, settings, &|| true)
    }

    /// The same, with the launches that were found by when no more are wanted.
    ///
    /// # Errors
    /// As for [`Perturbed::new`].
    pub(in crate::tune) fn while_wanted<'p>(
        subject: &dyn Subject,
        plain: &Arc<Kernel>,
        engine: Engine,
        plans: impl IntoIterator<Item = &'p Plan>,
        settings: Settings,
        is_wanted: &(dyn Fn() -> bool + Sync),
    ) -> Result<Perturbed> {
        let workload = subject.workload()?;
        let compiled = Arc::new(Compiled::new(plain));
        let dynamic = dynamic_arrays(&workload);
        let shared = other_shared(subject, &workload, plain, &dynamic);
        let plans: Vec<&Plan> = plans.into_iter().collect();
        let distances: BTreeSet<u64> = plans.iter().flat_map(|plan| goals::distances(plan)).collect();
        let given = SearchInputs {
            engine: &engine,
            plain: &compiled,
            bases: bases(subject, &workload, plain)?,
            shared: &shared,
            targets: goals::targets(plans),
            distances: distances.into_iter().collect(),
            settings: &settings,
            is_wanted,
        };
        let launches = search(&given);
        if let Some((what, error)) = &launches.misread {
            return Err(misread(plain, what, error));
        }
        let rest = (0..launches.kept.len()).filter(|number| !launches.new.contains(number));
        let order = launches.new.iter().copied().chain(rest).collect();
        Ok(Perturbed {
            engine,
            plain: compiled,
            shared,
            dynamic,
            launches,
            order,
            settings,
            until: None,
        })
    }

    /// The same, which runs no launch after this time.
    #[must_use]
    pub(in crate::tune) fn until(self, until: Instant) -> Perturbed {
        Perturbed {
            until: Some(until),
            ..self
        }
    }

    /// Checks a derived kernel on the launches.
    ///
    /// # Errors
    /// It computes something else on one of them: which, and where that is written down so that it can be repeated. That
    /// is a bug of ours. Or the device cannot run it.
    pub fn check(&self, plan: &Plan, derived: &Arc<Kernel>, thoroughness: Thoroughness) -> Result<Agreed> {
        self.check_as(plan, derived, None, thoroughness)
    }

    /// Checks what is written of a derived kernel on all launches: the entry as it is read again from its text. Where there is
    /// no module to write, the derived kernel itself.
    ///
    /// # Errors
    /// As for [`Perturbed::check`]; the text cannot be read again, or it computes something else than the kernel that it was
    /// written from.
    pub(crate) fn check_written(
        &self,
        subject: &dyn Subject,
        plan: &Plan,
        derived: &Arc<Kernel>,
    ) -> Result<report::Perturbed> {
        let written = written(subject, &subject.workload()?, derived)?;
        let agreed = self.check_as(plan, derived, written.as_ref(), Thoroughness::All)?;
        let kernel = written.as_ref().map_or(derived, |written| &written.kernel);
        Ok(self.summary(plan, kernel, agreed))
    }

    /// Checks a derived kernel, or what was written of it.
    fn check_as(
        &self,
        plan: &Plan,
        derived: &Arc<Kernel>,
        written: Option<&Written<'_>>,
        thoroughness: Thoroughness,
    ) -> Result<Agreed> {
        let mut agreed = Agreed::default();
        let own = written.map_or(derived, |written| &written.kernel);
        let compiled = CompiledKernel::new(Arc::clone(own));
        let mut resized: BTreeMap<u32, Option<CompiledKernel>> = BTreeMap::new();
        let budget = match thoroughness {
            Thoroughness::Quick => self.settings.quick_operations,
            Thoroughness::All => u64::MAX,
        };
        let (mut spent, mut relies) = (0, None);
        for number in self.order_for(plan, thoroughness) {
            let kept = &self.launches.kept[number];
            if self.until.is_some_and(|until| Instant::now() > until) {
                break;
            }
            if spent > 0 && spent + kept.cost() > budget {
                continue;
            }
            let kernel = match kept.variant.shared_bytes {
                None => &compiled,
                Some(_) if thoroughness == Thoroughness::Quick => continue,
                Some(bytes) => {
                    let resized = resized.entry(bytes).or_insert_with(|| {
                        let resized = match written {
                            Some(written) => written.with_shared_bytes(bytes),
                            None => {
                                let resized = with_shared(derived, &self.dynamic, bytes);
                                // An amount that is built into the kernel is one that it takes for granted.
                                self.is_derived_with(plan, &resized, bytes)
                                    .then(|| Arc::new(resized))
                            }
                        };
                        resized.map(CompiledKernel::new)
                    });
                    match resized {
                        Some(resized) => &*resized,
                        None => {
                            agreed.not_for += 1;
                            continue;
                        }
                    }
                }
            };
            // Stated lengths may be built into a kernel.
            if kept.beyond
                && (thoroughness == Thoroughness::Quick
                    || *relies.get_or_insert_with(|| {
                        let is_built_in =
                            |own: &Written<'_>| own.relies_on_lengths(plan, &self.engine.target);
                        self.relies(plan, derived) || written.is_some_and(is_built_in)
                    }))
            {
                agreed.not_for += 1;
                continue;
            }
            spent += kept.cost();
            match self.engine.compare(kernel, kept)? {
                Agreement::Same => agreed.launches += 1,
                Agreement::NotForIt => agreed.not_for += 1,
                Agreement::Different(error) => {
                    let found = reproducer::Difference {
                        plan,
                        plain: self.plain.kernel.kernel(),
                        derived: kernel.kernel(),
                        variant: &kept.variant,
                        seed: self.settings.seed,
                        number,
                        error: &error,
                    };
                    let error = found.refuse();
                    return Err(match written {
                        Some(_) if self.is_right(derived, kept)? => misprinted(kernel.kernel(), &error),
                        _ => error,
                    });
                }
            }
        }
        Ok(agreed)
    }

    /// Whether a derived kernel agrees with the plain one on a launch with the amount of shared memory that it was derived for.
    fn is_right(&self, derived: &Arc<Kernel>, kept: &Kept) -> Result<bool> {
        let compiled = CompiledKernel::new(Arc::clone(derived));
        let is_own = kept.variant.shared_bytes.is_none();
        Ok(is_own && matches!(self.engine.compare(&compiled, kept)?, Agreement::Same))
    }

    /// Whether a plan gives this kernel where the launch asks for this many bytes of dynamic shared memory, too.
    fn is_derived_with(&self, plan: &Plan, resized: &Kernel, bytes: u32) -> bool {
        let other = self.shared.get(&bytes).map(|plain| plain.kernel.kernel());
        let applied = other.and_then(|plain| prefetch::apply(plain, plan, &self.engine.target).ok());
        applied.is_some_and(|applied| print(&applied.kernel) == print(resized))
    }

    /// Whether a plan's kernel would be another one if the lengths were not known that the plain kernel was read with.
    fn relies(&self, plan: &Plan, derived: &Kernel) -> bool {
        let unknown = without_lengths(self.plain.kernel.kernel());
        match prefetch::apply(&unknown, plan, &self.engine.target) {
            Ok(other) => print(&other.kernel) != print(&without_lengths(derived)),
            Err(_) => true,
        }
    }

    /// The launches in the order in which they count for a plan: of those that take a loop to one of its numbers of
    /// iterations one each, then the others.
    fn order_for(&self, plan: &Plan, thoroughness: Thoroughness) -> Vec<usize> {
        if thoroughness == Thoroughness::All {
            return self.order.clone();
        }
        let mut first: Vec<usize> = Vec::new();
        for target in crate::tune::check::iterations(plan) {
            let reaches = |&&number: &&usize| {
                let trips = &self.launches.kept[number].covered.trips;
                trips
                    .iter()
                    .any(|trips| trips.0.last().is_some_and(|&most| u64::from(most) == target))
            };
            if let Some(&number) = self.order.iter().find(reaches)
                && !first.contains(&number)
            {
                first.push(number);
            }
        }
        // Both lists take turns, so that a short budget sees some of each.
        let rest: Vec<usize> = self
            .order
            .iter()
            .copied()
            .filter(|number| !first.contains(number))
            .collect();
        let mut order = Vec::with_capacity(self.order.len());
        let longest = first.len().max(rest.len());
        for rank in 0..longest {
            order.extend(rest.get(rank));
            order.extend(first.get(rank));
        }
        order
    }

    /// A hash of the changes in the launches.
    fn digest(&self) -> String {
        let all = self.launches.kept.iter();
        let told: Vec<&str> = all.map(|kept| kept.variant.what.as_str()).collect();
        hash(&told.join("\n"))
    }

    /// The report's sentence about a plan's kernel that agreed.
    pub(crate) fn summary(&self, plan: &Plan, derived: &Kernel, agreed: Agreed) -> report::Perturbed {
        report::Perturbed {
            kernel: identity(derived),
            digest: self.digest(),
            seed: self.settings.seed,
            launches: self.launches.kept.len() as u64,
            dropped: self.launches.dropped.values().sum(),
            dropped_for: by_name(&self.launches.dropped),
            agreed: agreed.launches,
            not_for: agreed.not_for,
            on_device: None,
            weakly_checked: match plan.is_none() {
                true => Vec::new(),
                false => goals::left_out(&self.plain, &self.launches, plan),
            },
        }
    }
}

/// How many launches were dropped for each rule, as a report has it.
fn by_name(dropped: &BTreeMap<&'static str, u64>) -> BTreeMap<String, u64> {
    let dropped = dropped.iter();
    dropped.map(|(&rule, &count)| (rule.to_owned(), count)).collect()
}

/// The refusal of a kernel that our own engine cannot follow.
fn misread(plain: &Kernel, what: &str, error: &Error) -> Error {
    let launch = match what {
        "" => String::new(),
        what => format!(" with {what}"),
    };
    Error::input(format!(
        "Headstart cannot rewrite `{}`: its reading of the kernel goes wrong on a launch{launch}, and no drawn value leads \
         there: {error}",
        plain.name
    ))
    .caused_by(error)
}

/// The refusal of a kernel whose text is read as another one than it was written from.
fn misprinted(kernel: &Kernel, difference: &Error) -> Error {
    Error::input(format!(
        "Headstart cannot rewrite `{}`: the text that it writes is read as another kernel than was planned: {}",
        kernel.name,
        difference.unblamed()
    ))
    .caused_by(difference)
}

/// The scope of a check: the kernel with this text, whatever the launch.
pub(crate) fn identity(kernel: &Kernel) -> String {
    hash(&print(kernel))
}

/// Checks one plan of a subject on all launches.
///
/// # Errors
/// As for [`Perturbed::new`] and [`Perturbed::check`].
pub fn check(
    subject: &dyn Subject,
    plain: &Arc<Kernel>,
    engine: Engine,
    plan: &Plan,
    derived: &Arc<Kernel>,
    settings: Settings,
) -> Result<report::Perturbed> {
    let perturbed = Perturbed::new(subject, plain, engine, [plan], settings)?;
    let agreed = perturbed.check(plan, derived, Thoroughness::All)?;
    Ok(perturbed.summary(plan, derived, agreed))
}

/// The same of what is written of the plan's kernel.
///
/// # Errors
/// As for [`Perturbed::new`] and [`Perturbed::check_written`].
pub(crate) fn check_written(
    subject: &dyn Subject,
    plain: &Arc<Kernel>,
    engine: Engine,
    plan: &Plan,
    derived: &Arc<Kernel>,
    settings: Settings,
) -> Result<report::Perturbed> {
    let perturbed = Perturbed::new(subject, plain, engine, [plan], settings)?;
    perturbed.check_written(subject, plan, derived)
}

/// Checks the author's requests for loops: the kernel with them against the kernel as it was written. None if no request
/// changes the kernel.
///
/// # Errors
/// As for [`check`].
pub fn check_wishes(
    subject: &dyn Subject,
    plain: &Arc<Kernel>,
    engine: Engine,
    settings: Settings,
) -> Result<Option<report::Perturbed>> {
    let written = subject.workload()?.kernel;
    let wishes = prefetch::wishes(&written);
    if wishes.is_empty() {
        return Ok(None);
    }
    let perturbed = Perturbed::new(subject, &written, engine, &wishes, settings)?;
    let none = Plan::none();
    let agreed = perturbed
        .check(&none, plain, Thoroughness::All)
        .map_err(|error| Error::bug(format!("what its author asked of `{}`: {error}", plain.name)))?;
    Ok(Some(perturbed.summary(&none, plain, agreed)))
}

/// The same where a check may be known already: it counts where it was of a kernel with the same text.
///
/// The launches are derived from one, and go far beyond it: the result holds for the kernel, which need not run again because a
/// later launch has other data. A plan gives another kernel if lengths are built in, for another work-group size, or by other
/// passes; that one is checked anew.
///
/// # Errors
/// As for [`check`].
pub(crate) fn check_unless_known(
    subject: &dyn Subject,
    plain: &Arc<Kernel>,
    engine: Engine,
    plan: &Plan,
    derived: &Arc<Kernel>,
    known: Option<&report::Perturbed>,
) -> Result<report::Perturbed> {
    let written = written(subject, &subject.workload()?, derived)?;
    let kernel = written.as_ref().map_or(derived, |written| &written.kernel);
    match known.filter(|known| known.kernel == identity(kernel)) {
        Some(known) => Ok(known.clone()),
        None => {
            let settings = known.map_or_else(Settings::default, |known| Settings::seeded(known.seed));
            check_written(subject, plain, engine, plan, derived, settings)
        }
    }
}

/// The kernel that knows no length from where it was read.
fn without_lengths(kernel: &Kernel) -> Kernel {
    let mut kernel = kernel.clone();
    let is_constant: Vec<bool> = kernel
        .params
        .iter()
        .map(|param| {
            let length = param.facts.and_then(|facts| facts.length);
            length.is_some_and(|length| kernel.as_constant(length).is_some())
        })
        .collect();
    for (param, is_constant) in kernel.params.iter_mut().zip(is_constant) {
        if let (true, Some(facts)) = (is_constant, &mut param.facts) {
            facts.length = None;
        }
    }
    kernel
}
