//! Whether a derived kernel computes the same as the plain one: functional runs at the trip counts where derived loops go
//! wrong, and of some work-groups at full size, the first ones or a [sample] of all; and symbolically, that it uses the values
//! that the plain one loads, whatever the data are.

#[doc(hidden)]
pub mod compare;
pub(super) mod idle;
pub mod perturb;
pub(super) mod residency;
pub mod sample;

use std::collections::BTreeMap;
use std::sync::Arc;

use self::compare::Compare;
use self::sample::Sample;
use super::subject::Subject;
use crate::checker::Plain;
use crate::device::sim::functional::{Groups, sees_others};
use crate::device::{Command, Device, Fill, Pattern};
use crate::error::{Error, Fault, Result};
use crate::ir::{Accuracy, BinaryOp, Kernel, OpKind, UnaryOp};
use crate::prefetch::Plan;
use crate::report::Outputs;
use crate::tune::subject::workload::{ArgumentSpec, Bound, Output, Prepared, Workload};

/// Work-groups that run at full size.
const FULL_SIZE_GROUPS: u32 = 2;

/// The plain kernel's results at every size that the plans are checked at.
pub struct Checks<'d> {
    device: &'d dyn Device,
    /// By number of iterations; the one at full size has none.
    runs: BTreeMap<Option<u64>, Run>,
    /// By trip count: the symbolic checker's reference.
    symbolic: BTreeMap<u64, Plain>,
    /// The work-groups that run at full size, where they are a sample.
    sample: Option<Arc<Sample>>,
}

/// Which work-groups run at full size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtFullSize {
    /// None: a device runs the whole launch.
    Nothing,
    /// The first ones.
    First,
    /// The first, the last, and others at random by this seed; the first ones if work-groups may see each other's writes.
    Sample {
        /// The seed.
        seed: u64,
    },
}

/// A launch that the plain kernel was run as.
struct Run {
    bound: Bound,
    groups: RunOf,
    outputs: Vec<Output>,
}

/// The work-groups of a launch that run.
#[derive(Clone)]
enum RunOf {
    All,
    First(u64),
    Sample(Arc<Sample>),
}

/// The numbers of iterations at which a plan is checked: none, one, and around each of its distances and its group.
pub(crate) fn iterations(plan: &Plan) -> Vec<u64> {
    let distances: Vec<u64> = plan
        .loads()
        .iter()
        .map(|(_, strategy)| u64::from(strategy.distance().get()))
        .collect();
    let furthest = distances.iter().copied().max().unwrap_or(0);
    let group = plan
        .unroll()
        .and_then(|unroll| unroll.iterations())
        .map_or(0, u64::from);
    let mut iterations = vec![0, 1];
    for around in distances.into_iter().chain([group, furthest + group]) {
        iterations.extend([around.saturating_sub(1), around, around + 1, 2 * around + 1]);
    }
    iterations.sort_unstable();
    iterations.dedup();
    iterations
}

/// The number of iterations at which a plan is checked symbolically: the most, where every slot of a ring has been
/// used again.
fn symbolic_iterations(plan: &Plan) -> Option<u64> {
    iterations(plan).last().copied().filter(|_| !plan.is_none())
}

/// Whether an output's bits are its value: they are the same however the work-items take turns.
fn compares_bits(given: &ArgumentSpec) -> bool {
    !matches!(given, ArgumentSpec::Output { compare, .. } if *compare != Compare::Bits)
}

impl<'d> Checks<'d> {
    /// Runs the plain kernel at every size that these plans are checked at.
    ///
    /// # Errors
    /// The plain kernel itself goes wrong: its data is at fault, or it is.
    pub fn new<'p>(
        subject: &dyn Subject,
        plain: &Arc<Kernel>,
        device: &'d dyn Device,
        plans: impl IntoIterator<Item = &'p Plan>,
    ) -> Result<Checks<'d>> {
        Checks::with(subject, plain, device, plans, AtFullSize::First)
    }

    /// The same with a choice of the work-groups that run at full size.
    ///
    /// # Errors
    /// As for [`Checks::new`].
    pub fn with<'p>(
        subject: &dyn Subject,
        plain: &Arc<Kernel>,
        device: &'d dyn Device,
        plans: impl IntoIterator<Item = &'p Plan>,
        at_full_size: AtFullSize,
    ) -> Result<Checks<'d>> {
        let mut checks = Checks {
            device,
            runs: BTreeMap::new(),
            symbolic: BTreeMap::new(),
            sample: None,
        };
        let is_known = match at_full_size {
            AtFullSize::Nothing => true,
            AtFullSize::First => false,
            AtFullSize::Sample { seed } => checks.add_sample(&subject.workload()?, plain, seed)?,
        };
        if !is_known {
            let (workload, groups) = few_groups(subject.workload()?);
            checks.add(None, workload, groups, plain)?;
        }
        for plan in plans {
            for iterations in iterations(plan) {
                if checks.runs.contains_key(&Some(iterations)) {
                    continue;
                }
                let Some(workload) = subject.small(iterations)? else {
                    return Ok(checks);
                };
                checks.add(Some(iterations), zeroed(workload), RunOf::All, plain)?;
            }
            if let Some(iterations) = symbolic_iterations(plan) {
                checks.add_symbolic(iterations, plain)?;
            }
        }
        Ok(checks)
    }

    /// The work-groups that run at full size, where they are a sample.
    pub fn sample(&self) -> Option<&Arc<Sample>> {
        self.sample.as_ref()
    }

    /// The numbers of iterations of the small launches.
    pub(crate) fn sizes(&self) -> impl Iterator<Item = u64> + '_ {
        self.runs.keys().flatten().copied()
    }

    /// The numbers of iterations at which plans are checked symbolically.
    pub(crate) fn symbolic_sizes(&self) -> impl Iterator<Item = u64> + '_ {
        self.symbolic.keys().copied()
    }

    /// Adds a sample of the launch at full size, where the kernel allows it: whether it does.
    fn add_sample(&mut self, workload: &Workload, plain: &Arc<Kernel>, seed: u64) -> Result<bool> {
        let bound = zeroed(workload.clone()).bind(self.device)?;
        let Some((sample, outputs)) = Sample::of_launch(&bound, self.device, plain, seed)? else {
            return Ok(false);
        };
        let sample = Arc::new(sample);
        self.sample = Some(Arc::clone(&sample));
        let run = Run {
            bound,
            groups: RunOf::Sample(sample),
            outputs,
        };
        self.runs.insert(None, run);
        Ok(true)
    }

    fn add(
        &mut self,
        iterations: Option<u64>,
        workload: Workload,
        groups: RunOf,
        plain: &Arc<Kernel>,
    ) -> Result<()> {
        let mut run = Run {
            bound: workload.bind(self.device)?,
            groups,
            outputs: Vec::new(),
        };
        run.outputs = run.of(self.device, plain)?;
        self.runs.insert(iterations, run);
        Ok(())
    }

    /// One work-group of a size that was added before.
    fn add_symbolic(&mut self, iterations: u64, plain: &Arc<Kernel>) -> Result<()> {
        let bound = self.runs.get(&Some(iterations)).map(|run| &run.bound);
        let Some(bound) = bound.filter(|bound| bound.workload().given.iter().all(compares_bits)) else {
            return Ok(());
        };
        if !self.symbolic.contains_key(&iterations) {
            let launch = bound.prepare(self.device)?.launch;
            let sub_group = launch.sub_group_size(plain, self.device.description());
            let plain = Plain::new(plain, &launch, sub_group, &Groups::Some(vec![0]))?;
            self.symbolic.insert(iterations, plain);
        }
        Ok(())
    }

    /// Checks a derived kernel against the plain one.
    ///
    /// # Errors
    /// It goes wrong, or computes something else: at how many iterations, which output, which element. That is a bug of
    /// ours, unless the device cannot run the kernel.
    pub fn check(&self, plan: &Plan, derived: &Arc<Kernel>) -> Result<Outputs> {
        let small = self.check_small(plan, derived)?;
        Ok(small.and(self.check_at_full_size(derived)?))
    }

    /// The same without the launch at full size: on the small launches, and symbolically.
    ///
    /// # Errors
    /// As for [`Checks::check`].
    pub(crate) fn check_small(&self, plan: &Plan, derived: &Arc<Kernel>) -> Result<Outputs> {
        let mut all = Outputs::Identical;
        for iterations in iterations(plan) {
            all = all.and(self.check_size(Some(iterations), derived)?);
        }
        if let Some(plain) = symbolic_iterations(plan).and_then(|iterations| self.symbolic.get(&iterations)) {
            plain.check(derived)?;
        }
        Ok(all)
    }

    /// The rest of it: some work-groups of the launch at full size.
    ///
    /// # Errors
    /// As for [`Checks::check`].
    pub fn check_at_full_size(&self, derived: &Arc<Kernel>) -> Result<Outputs> {
        self.check_size(None, derived)
    }

    fn check_size(&self, size: Option<u64>, derived: &Arc<Kernel>) -> Result<Outputs> {
        let Some(run) = self.runs.get(&size) else {
            return Ok(Outputs::Identical);
        };
        self.check_run(run, derived)
            .map_err(|error| match (error.fault(), size) {
                (Fault::Device, _) => error,
                (_, Some(iterations)) => {
                    Error::bug(format!("{error}, checked at {iterations} iterations")).caused_by(&error)
                }
                (_, None) => Error::bug(format!("{error}, checked at full size")).caused_by(&error),
            })
    }

    fn check_run(&self, run: &Run, derived: &Arc<Kernel>) -> Result<Outputs> {
        let _turn = match &run.groups {
            RunOf::Sample(sample) => sample.turn(),
            RunOf::All | RunOf::First(_) => None,
        };
        let outputs = run.of(self.device, derived)?;
        // Most of a gigabyte was never touched: it is not read for nothing.
        if run
            .outputs
            .iter()
            .zip(&outputs)
            .all(|(right, found)| right.is_same(found))
        {
            return Ok(Outputs::Identical);
        }
        let queue = self.device.queue()?;
        let exact = exact(&run.bound.workload().kernel);
        let mut all = Outputs::Identical;
        for (right, found) in run.outputs.iter().zip(&outputs) {
            let compare = if right.compare == Compare::Bits {
                exact
            } else {
                right.compare
            };
            let (element, bytes) = (right.buffer.element(), right.buffer.bytes());
            let compared = compare.check_in_parts(element, bytes, &mut |start, length| {
                let read = |output: &Output| output.read_part(queue.as_ref(), start, length);
                Ok((read(right)?, read(found)?))
            });
            all = all.and(compared.map_err(|error| error.at(format!("output `{}`", right.name)))?);
        }
        Ok(all)
    }
}

impl Run {
    /// The outputs of a kernel with the same parameters.
    fn of(&self, device: &dyn Device, kernel: &Arc<Kernel>) -> Result<Vec<Output>> {
        let first_groups = match &self.groups {
            RunOf::Sample(sample) => {
                return sample::run(&self.bound, device, kernel, sample.groups()).map(|ran| ran.outputs);
            }
            RunOf::First(groups) => Some(*groups),
            RunOf::All => None,
        };
        let program = device.compile(kernel)?;
        let Prepared { mut launch, outputs } = self.bound.prepare(device)?;
        launch.first_groups = first_groups;
        device
            .queue()?
            .submit(Command::Launch(program, launch), &[])
            .wait()?;
        Ok(outputs)
    }
}

/// When two results of a kernel are the same that are to have the same bits.
pub(crate) fn exact(kernel: &Kernel) -> Compare {
    match kernel.float_mode.any_nan {
        true => Compare::BitsOrNan,
        false => Compare::Bits,
    }
}

/// Compares all outputs of a workload with those that are right, of the same device.
///
/// # Errors
/// One differs: which, and where.
pub fn compare(workload: &Workload, right: &[Vec<u8>], found: &[Vec<u8>]) -> Result<Outputs> {
    compare_as(exact(&workload.kernel), workload, right, found)
}

/// How far results of the hardware's approximations may be apart on two devices, once a kernel has computed with them: a
/// few hundred times the largest error of most ([`approximate`](crate::front::lang::approximate)), and that of `tanh`.
const APPROXIMATELY: f64 = 1e-3;

/// Compares all outputs of a workload with those of another device: hardware approximations differ between them.
///
/// # Errors
/// One differs: which, and where.
pub fn compare_across(workload: &Workload, right: &[Vec<u8>], found: &[Vec<u8>]) -> Result<Outputs> {
    compare_as(approximately(&workload.kernel), workload, right, found)
}

/// When two results of a kernel on two devices are the same that are to have the same bits.
pub(crate) fn approximately(kernel: &Kernel) -> Compare {
    match approximates(kernel) {
        true => Compare::OfLargest(APPROXIMATELY),
        false => exact(kernel),
    }
}

/// Whether a kernel uses hardware approximations, or leaves the accuracy of its quotients and roots to the device.
pub fn approximates(kernel: &Kernel) -> bool {
    let is_relaxed = kernel.float_mode.accuracy != Accuracy::Rounded;
    let mut found = false;
    kernel.body.walk(&mut |op| {
        found |= match *op.kind.plain() {
            OpKind::Unary(UnaryOp::Sqrt, _) | OpKind::Binary(BinaryOp::FDiv, ..) if is_relaxed => true,
            OpKind::Unary(op, _) => op.is_approximation(),
            OpKind::Binary(op, ..) => op.is_approximation(),
            _ => false,
        }
    });
    found
}

fn compare_as(exact: Compare, workload: &Workload, right: &[Vec<u8>], found: &[Vec<u8>]) -> Result<Outputs> {
    let params = workload.given.iter().zip(&workload.kernel.params);
    let outputs = params.filter_map(|(given, param)| match given {
        ArgumentSpec::Output { element, compare, .. } => Some((*element, *compare, &param.name)),
        ArgumentSpec::Scalar(..) | ArgumentSpec::Input { .. } | ArgumentSpec::Part { .. } => None,
    });
    let mut all = Outputs::Identical;
    for (((element, compare, name), right), found) in outputs.zip(right).zip(found) {
        let compare = if compare == Compare::Bits { exact } else { compare };
        let compared = compare.check(element, right, found);
        all = all.and(compared.map_err(|error| error.at(format!("output `{name}`")))?);
    }
    Ok(all)
}

/// A workload's first work-groups, and how many of its launch these are. Where work-groups may wait for each other, it is a
/// launch of no more.
fn few_groups(mut workload: Workload) -> (Workload, RunOf) {
    if !sees_others(&workload.kernel) {
        return (zeroed(workload), RunOf::First(u64::from(FULL_SIZE_GROUPS)));
    }
    let others: u32 = workload.groups[1].saturating_mul(workload.groups[2]);
    if others <= FULL_SIZE_GROUPS {
        workload.groups[0] = workload.groups[0].min(FULL_SIZE_GROUPS);
    }
    (zeroed(workload), RunOf::All)
}

/// The workload with outputs of zeros where they held nothing: work-groups that do not run leave them unwritten.
fn zeroed(mut workload: Workload) -> Workload {
    for given in &mut workload.given {
        if let ArgumentSpec::Output {
            fill: fill @ Fill::Uninitialized,
            ..
        } = given
        {
            *fill = Fill::Pattern(Pattern::Constant(0));
        }
    }
    workload
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_are_checked_around_their_distances_and_groups() {
        let at = |text: &str| iterations(&text.parse().expect("a plan"));
        assert_eq!(at("v=cache:L2:4"), [0, 1, 3, 4, 5, 9]);
        let grouped = at("unroll:8,v=rolling-async:16");
        for expected in [0, 1, 7, 8, 9, 15, 16, 17, 23, 24, 25, 33, 49] {
            assert!(grouped.contains(&expected), "{expected}");
        }
    }
}
