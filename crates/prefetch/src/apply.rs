//! Applying a plan: names to loads, strategies to passes, loop by loop.
//!
//! ```text
//! plan       unroll:8,values=rolling-async:16
//! completed  unroll:8,values=rolling-async:16/interleaved,indices=rolling-registers:24
//! kernel     limits, prologue, main loop in groups of 8, plain loop for what is left over
//! ```

use std::collections::{BTreeSet, HashMap, HashSet};

use super::candidate::Candidate;
use super::complete::complete;
use super::fences::{Hinted, reissue};
use super::fetch::{Fetch, Rewrite, Tests};
use super::layout::is_unseen;
use super::loads::{candidates, find_loop, gathered, replace_loop, resolve};
use super::parts::{is_inside, planned_rests};
use super::pipeline::rewrite;
use super::plan::{LoadName, Plan, Strategy, StrategyKind, Unroll};
use super::planned::{PlanTarget, Planned};
use super::planned_loops::{depth, strategies_by_loop};
use super::probe::early_at;
use super::rotate::{rotate, weight};
use super::shape::StepShape;
use super::text::{Hosted, LoopText};
use super::together::may_be_copied;
use super::unroll::unroll_fully;
use super::{
    batched_registers, batched_shared, hint, joint, recurrence, rolling_registers, rolling_shared, versions,
};
use crate::analysis::definitions::Definitions;
use crate::analysis::loops::{LoopSummary, summarize};
use crate::cleanup;
use crate::error::{Error, Result};
use crate::ir::{Derivation, Kernel, Label, LoadId, Op, OpKind, UnrollWish, verify};

/// A kernel with a plan carried out.
#[derive(Clone, Debug)]
pub struct Applied {
    /// The transformed kernel, verified.
    pub kernel: Kernel,
    /// The plan with the parents that had to be carried along.
    pub plan: Plan,
}

/// A kernel with its loads, for many plans: they are found once.
#[doc(hidden)]
#[derive(Debug)]
pub struct Loads<'k> {
    kernel: &'k Kernel,
    all: Vec<Candidate>,
}

impl<'k> Loads<'k> {
    /// Those of a kernel.
    pub fn of(kernel: &'k Kernel) -> Loads<'k> {
        Loads {
            kernel,
            all: candidates(kernel),
        }
    }

    /// In the order of the source.
    pub fn all(&self) -> &[Candidate] {
        &self.all
    }

    /// The kernel.
    pub fn kernel(&self) -> &'k Kernel {
        self.kernel
    }

    /// Carries out a plan.
    ///
    /// # Errors
    /// As [`apply`].
    pub fn apply(&self, plan: &Plan, target: &PlanTarget) -> Result<Applied> {
        let mut applied = self.with_versions(plan, target)?;
        applied.kernel.derivation = Some(Derivation {
            plan: plan.to_string(),
            group_size: target.group_size,
            line: target.line,
        });
        Ok(applied)
    }

    pub(super) fn with_versions(&self, plan: &Plan, target: &PlanTarget) -> Result<Applied> {
        self.flat_first(plan, target, |loads, plan| {
            with_versions(plan, |versions| carry_out(loads, plan, target, versions, None))
        })
    }

    /// Applies the parts of a plan behind `inner:N`, to what that makes.
    fn flat_first(
        &self,
        plan: &Plan,
        target: &PlanTarget,
        apply: impl FnOnce(&Loads<'_>, &Plan) -> Result<Applied>,
    ) -> Result<Applied> {
        if plan.inner().is_none() {
            return apply(self, plan);
        }
        let flat = self.flattened(plan, target)?;
        let flat = Loads::of(&flat);
        let applied = apply(&flat, &self.in_loops_around(plan, target, &flat)?)?;
        Ok(Applied {
            kernel: applied.kernel,
            plan: plan.clone(),
        })
    }
}

/// Carries out a plan. A loop that can be planned only if its counter does not wrap gets a test in front, and stays beside
/// its planned version.
///
/// # Errors
/// The plan names a load that is not there, or is not legal for this kernel: the message says which rule
/// refuses it, and where.
pub fn apply(kernel: &Kernel, plan: &Plan, target: &PlanTarget) -> Result<Applied> {
    Loads::of(kernel).apply(plan, target)
}

/// Carries out the part of a plan that concerns one loop, whose iterations are copied as text; gives that part, in words, too.
/// `number` is that of the loop's edges. A plan that leaves the code has them copied as they are.
///
/// # Errors
/// As [`apply`], or the text does not have what the plan needs.
#[doc(hidden)]
pub fn apply_in_text(
    kernel: &Kernel,
    plan: &Plan,
    target: &PlanTarget,
    (label, number): (Label, u32),
    text: &mut dyn LoopText,
) -> Result<(Kernel, String)> {
    let mut hosted = Hosted { label, number, text };
    if plan.leaves_code() {
        return Ok((unchanged(kernel, &mut hosted)?, String::new()));
    }
    let loads = Loads::of(kernel);
    let mut words: Vec<String> = Vec::new();
    let applied = with_versions(plan, |versions| {
        words.clear();
        carry_out(&loads, plan, target, versions, Some((&mut hosted, &mut words)))
    })?;
    // One name is that of every load of a parameter.
    let mut seen = BTreeSet::new();
    words.retain(|word| seen.insert(word.clone()));
    Ok((applied.kernel, words.join(",")))
}

/// A kernel with a loop whose iterations are copied as they are.
fn unchanged(kernel: &Kernel, hosted: &mut Hosted<'_>) -> Result<Kernel> {
    let mut kernel = kernel.clone();
    let definitions = Definitions::of(&kernel);
    replace_loop(&mut kernel, hosted.label, |kernel, op| {
        let plan = Rewrite {
            group: 1,
            tests: Tests::Kept,
            fetches: Vec::new(),
            gather_loads: false,
        };
        Ok(hosted.rewrite(kernel, &definitions, op, plan)?.0)
    })?;
    cleanup::tidy(&mut kernel);
    verify::verify_derived(&kernel)?;
    Ok(kernel)
}

fn with_versions(plan: &Plan, mut apply: impl FnMut(Versions) -> Result<Applied>) -> Result<Applied> {
    // One comparison in front is less than a length compared at each load, and takes no length for granted. Hints need neither.
    let only_hints = plan.loads().iter().all(|(_, strategy)| strategy.is_hint());
    let (first, second) = match plan.unroll() {
        None if only_hints => (Versions::One, Versions::IfItWraps),
        _ => (Versions::IfItWraps, Versions::One),
    };
    match (apply(first), second) {
        (Err(_), Versions::One) => apply(second),
        (Err(refusal), Versions::IfItWraps) => apply(second).map_err(|_| refusal),
        (applied, _) => applied,
    }
}

/// Whether planned loops stay beside what is made of them.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Versions {
    /// They do not.
    One,
    /// Those do whose counters may wrap.
    IfItWraps,
}

/// Carries out a plan with or without versions of loops: the tests of the rules ask for none.
///
/// # Errors
/// As [`apply`].
#[doc(hidden)]
pub fn apply_to(kernel: &Kernel, plan: &Plan, target: &PlanTarget, versions: Versions) -> Result<Applied> {
    Loads::of(kernel).flat_first(plan, target, |loads, plan| {
        carry_out(loads, plan, target, versions, None)
    })
}

/// `hosted` is the only loop that is changed, if there is one, with the words for what is done to it.
fn carry_out(
    Loads { kernel, all }: &Loads<'_>,
    plan: &Plan,
    target: &PlanTarget,
    versions: Versions,
    hosted: Option<(&mut Hosted<'_>, &mut Vec<String>)>,
) -> Result<Applied> {
    let (mut hosted, mut words) = hosted.unzip();
    let shared_before = kernel.shared_bytes();
    let plain = *kernel;
    let mut kernel = plain.clone();
    kernel.max_registers = plan.registers().or(kernel.max_registers);
    if plan.leaves_code() {
        if !plan.is_none() {
            verify::verify_derived(&kernel)?;
        }
        return Ok(Applied {
            kernel,
            plan: plan.clone(),
        });
    }
    let mut by_loop = strategies_by_loop(plain, plan, all)?;
    if kernel.group_size.is_none()
        && plan
            .loads()
            .iter()
            .any(|(_, strategy)| strategy.layout().is_some() || strategy.is_joint())
    {
        kernel.group_size = target.group_size;
    }
    // What the plan names has the name that it has there.
    let named: HashSet<(Label, LoadId)> = by_loop
        .iter()
        .flat_map(|(label, strategies)| strategies.keys().map(|&id| (*label, id)))
        .collect();
    let mut rests = planned_rests(plain, all, &by_loop)?;
    if let Some(only) = hosted.as_ref().map(|hosted| hosted.label) {
        by_loop.retain(|(label, _)| *label == only);
        rests.retain(|(label, _)| *label == only);
    }
    // Inner loops first: rewriting a loop copies those inside, with the changes already made to them.
    let depth = |label: Label| depth(&kernel, all, label);
    by_loop.sort_by_cached_key(|(label, _)| depth(*label));
    if versions == Versions::IfItWraps {
        // Outer loops first: the version that stays as it was needs no versions inside.
        for (label, strategies) in by_loop.iter().rev().chain(&rests) {
            let how = (plan.unroll(), strategies, target.group_size);
            versions::make(&mut kernel, *label, how, hosted.as_deref())?;
        }
    }
    // What takes part is settled before any loop is rewritten: the prologue of an inner loop's ring stands in the outer
    // loop, and its loads are none of that loop.
    for (label, strategies) in &mut by_loop {
        complete_loop(&kernel, *label, plan.unroll(), strategies)?;
    }
    let mut completed = plan.clone();
    for (label, strategies) in by_loop {
        if find_loop(&kernel.body, label).is_none() {
            // Tidying after another loop found that it never runs.
            continue;
        }
        let hosted = hosted.as_deref_mut();
        let unroll = plan.unroll().map(|unroll| unroll.to_string());
        words.iter_mut().for_each(|words| words.extend(unroll.clone()));
        for (id, strategy) in apply_to_loop(&mut kernel, label, plan.unroll(), strategies, target, hosted)? {
            let candidate = all.iter().find(|other| other.id == id && other.looped == label);
            let name = candidate.map(|candidate| candidate.name.clone());
            let name: LoadName = name.ok_or_else(|| Error::bug("a load without a name"))?;
            words
                .iter_mut()
                .for_each(|words| words.push(format!("{name}={strategy}")));
            if !named.contains(&(label, id)) && completed.strategy(&name).is_none() {
                completed = completed.with(name, strategy)?;
            }
        }
    }
    for (label, mut strategies) in rests {
        // The remainder may stay as it was.
        let mut attempt = kernel.clone();
        let completed = complete_loop(&attempt, label, None, &mut strategies);
        if completed
            .and_then(|()| {
                apply_to_loop(
                    &mut attempt,
                    label,
                    None,
                    strategies,
                    target,
                    hosted.as_deref_mut(),
                )
            })
            .is_ok()
        {
            kernel = attempt;
        }
    }
    cleanup::tidy(&mut kernel);
    if hosted.is_some() {
        // What the rules say of the whole kernel they said where the plan was found legal.
        verify::verify_derived(&kernel)?;
        return Ok(Applied {
            kernel,
            plan: completed,
        });
    }
    hint::stream(&mut kernel, plan, all)?;
    joint::reached_together(&kernel)?;
    if kernel.shared_bytes() > shared_before {
        is_unseen(&kernel)?;
    }
    verify::verify_derived(&kernel)?;
    let plan = gathered(&kernel, all, completed)?;
    Ok(Applied { kernel, plan })
}

/// Carries out an author's plan on one loop: the plan may only name loads of that loop.
pub(super) fn apply_wish(
    kernel: &mut Kernel,
    label: Label,
    unroll: Option<UnrollWish>,
    plan: &str,
    target: &PlanTarget,
) -> Result<()> {
    let place = find_loop(&kernel.body, label)
        .map(|op| kernel.describe_place(op.place))
        .unwrap_or_default();
    let mut plan: Plan = plan.parse().map_err(|error: Error| error.at(&place))?;
    if plan.inner().is_some() {
        let inside = candidates(kernel).into_iter();
        let loads = Loads {
            kernel,
            all: inside
                .filter(|load| is_inside(kernel, load.looped, label))
                .collect(),
        };
        let flat = loads.flattened(&plan, target).map_err(|error| error.at(&place))?;
        let others = loads.in_loops_around(&plan, target, &Loads::of(&flat));
        plan = others.map_err(|error| error.at(&place))?;
        *kernel = flat;
    }
    let all: Vec<Candidate> = match plan.loads().is_empty() {
        true => Vec::new(),
        false => candidates(kernel),
    };
    let all: Vec<Candidate> = all.into_iter().filter(|load| load.looped == label).collect();
    let mut strategies = HashMap::new();
    for (name, strategy) in plan.loads() {
        for candidate in resolve(kernel, &all, name).map_err(|error| error.at(&place))? {
            strategies.insert(candidate.id, *strategy);
        }
    }
    if kernel.group_size.is_none() {
        kernel.group_size = target.group_size;
    }
    let wished = match unroll {
        Some(UnrollWish::Full) => Some(Unroll::Full),
        Some(UnrollWish::By(count)) if count > 1 => Some(Unroll::by(count)?),
        _ => None,
    };
    let unroll = plan.unroll().or(wished);
    complete_loop(kernel, label, unroll, &mut strategies)?;
    apply_to_loop(kernel, label, unroll, strategies, target, None)?;
    joint::reached_together(kernel)
}

/// Adds the parents that the loads of a loop need.
fn complete_loop(
    kernel: &Kernel,
    label: Label,
    unroll: Option<Unroll>,
    strategies: &mut HashMap<LoadId, Strategy>,
) -> Result<()> {
    if strategies.is_empty() || unroll == Some(Unroll::Full) {
        return Ok(());
    }
    let definitions = Definitions::of(kernel);
    let op = find_loop(&kernel.body, label).ok_or_else(|| Error::bug("a loop that is not there"))?;
    let summary = summarize(kernel, &definitions, op);
    let place = kernel.describe_place(op.place);
    let shape = StepShape::of(kernel, &summary, unroll, strategies).map_err(|error| error.at(place))?;
    complete(kernel, &summary, shape.group, strategies)
}

/// Carries out the part of a plan that concerns one loop, its strategies completed; gives those of all loads that take
/// part.
fn apply_to_loop(
    kernel: &mut Kernel,
    label: Label,
    unroll: Option<Unroll>,
    strategies: HashMap<LoadId, Strategy>,
    target: &PlanTarget,
    hosted: Option<&mut Hosted<'_>>,
) -> Result<Vec<(LoadId, Strategy)>> {
    if unroll == Some(Unroll::Full) {
        if let Some((id, _)) = strategies.iter().next() {
            let name = &kernel.loads[*id].name;
            return Err(
                Error::usage("a loop that is unrolled fully has no iterations to fetch ahead of")
                    .accepted(format!("`unroll:full` alone, or `unroll:N,{name}=…`")),
            );
        }
        replace_loop(kernel, label, |kernel, op| unroll_fully(kernel, &op, hosted))?;
        return Ok(Vec::new());
    }
    let definitions = Definitions::of(kernel);
    let op = find_loop(&kernel.body, label).ok_or_else(|| Error::bug("a loop that is not there"))?;
    may_be_copied(kernel, &definitions, label, op)?;
    let summary = summarize(kernel, &definitions, op);
    let place = kernel.describe_place(op.place);
    let shape = StepShape::of(kernel, &summary, unroll, &strategies).map_err(|error| error.at(place))?;

    let left_out = left_out(kernel, &definitions, op, &summary, &shape, &strategies);
    let mut fetches: Vec<Box<dyn Fetch>> = recurrence::copies(&summary, &strategies);
    for (number, site) in summary.loads.iter().enumerate() {
        if let Some(strategy) = strategies.get(&site.id).filter(|_| !left_out.contains(&number)) {
            fetches.push(pass(&Planned {
                kernel,
                definitions: &definitions,
                summary: &summary,
                strategies: &strategies,
                shape: &shape,
                site,
                strategy: *strategy,
                target,
            })?);
        }
    }
    let mut new_label = label;
    let is_hosted = hosted.is_some();
    let own_weight = op.kind.regions().map(weight).sum();
    replace_loop(kernel, label, |kernel, op| {
        let fetches = fetches
            .iter_mut()
            .map(|fetch| fetch.as_mut() as &mut dyn Fetch)
            .collect();
        let StepShape { group, tests } = shape;
        let gather_loads = group > 1 || unroll == Some(Unroll::Early);
        let plan = Rewrite {
            group,
            tests,
            fetches,
            gather_loads,
        };
        let (ops, label) = match hosted {
            Some(hosted) => hosted.rewrite(kernel, &definitions, op, plan)?,
            None => rewrite(kernel, &definitions, op, plan)?,
        };
        new_label = label;
        Ok(ops)
    })
    .map_err(|error| name_the_load(kernel, &summary, &strategies, error))?;
    let hinted = Hinted::all(&strategies);
    let named = |kernel: &Kernel, error| name_the_load(kernel, &summary, &strategies, error);
    if !is_hosted {
        reissue(kernel, new_label, shape.group, &hinted).map_err(|error| named(kernel, error))?;
    }
    rotate(kernel, new_label, own_weight)?;
    let order = summary
        .loads
        .iter()
        .filter_map(|site| Some((site.id, *strategies.get(&site.id)?)));
    Ok(order.collect())
}

/// The loads, by number, that stay where they are, since another load of their name can be early and they cannot: a line that reads
/// `x[i - 1]` and `x[i + 1]` has one name for both, and where the loop writes `x[i]`, one of them can.
fn left_out(
    kernel: &Kernel,
    definitions: &Definitions,
    op: &Op,
    summary: &LoopSummary,
    shape: &StepShape,
    strategies: &HashMap<LoadId, Strategy>,
) -> HashSet<usize> {
    let OpKind::Loop { initial, .. } = &op.kind else {
        return HashSet::new();
    };
    let mut by_name: HashMap<LoadId, Vec<usize>> = HashMap::new();
    for (number, site) in summary.loads.iter().enumerate() {
        if strategies
            .get(&site.id)
            .is_some_and(|strategy| !strategy.is_hint())
        {
            by_name.entry(site.id).or_default().push(number);
        }
    }
    by_name.retain(|_, numbers| numbers.len() > 1);
    if by_name.is_empty() {
        return HashSet::new();
    }
    let mut aside = kernel.clone();
    let mut found = HashSet::new();
    for (id, numbers) in by_name {
        let furthest = strategies[&id].distance().get() + shape.group - 1;
        let (able, unable): (Vec<usize>, Vec<usize>) = numbers.into_iter().partition(|&number| {
            let site = (&summary.loads[number], furthest);
            early_at(&mut aside, definitions, summary, (op.place, initial), site).is_ok()
        });
        if !able.is_empty() {
            found.extend(unable);
        }
    }
    found
}

/// A load's strategy at work on it.
fn pass(load: &Planned<'_>) -> Result<Box<dyn Fetch>> {
    match load.strategy.kind() {
        StrategyKind::BatchedRegisters => batched_registers::pass(load),
        StrategyKind::RollingRegisters => rolling_registers::pass(load),
        StrategyKind::BatchedShared => batched_shared::pass(load),
        StrategyKind::RollingShared | StrategyKind::RollingAsync => rolling_shared::pass(load),
        StrategyKind::Cache => hint::pass(load),
        StrategyKind::Joint | StrategyKind::Bulk => joint::pass(load),
    }
}

/// A refusal that does not say which load it is about is about the planned ones.
pub(super) fn name_the_load(
    kernel: &Kernel,
    summary: &LoopSummary,
    strategies: &HashMap<LoadId, Strategy>,
    error: Error,
) -> Error {
    if error.place().is_some() {
        return error;
    }
    let planned = summary
        .loads
        .iter()
        .rev()
        .find(|site| strategies.contains_key(&site.id));
    match planned {
        Some(site) => {
            let name = &kernel.loads[site.id].name;
            error
                .about(format!("`{name}` cannot be fetched early"))
                .at(kernel.describe_place(site.place))
        }
        None => error,
    }
}
