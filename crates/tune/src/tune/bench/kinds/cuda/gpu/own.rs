//! Kernels checked against the user's own one, at full size, on the same GPU.
//!
//! The reference is the output of the user's kernel there: of their PTX module, not of our rewriting of it. It is launched
//! twice, with different initial bytes in its outputs, so that a kernel that is not deterministic, or that reads uninitialised
//! memory, is recognised and not mistaken for a plan's fault. Then each plan is launched, and its outputs are compared on the
//! GPU; bytes are fetched only if they differ. What a kernel reads of its outputs before it writes it is the same for all, and
//! what varies by [chance] is compared by its class.

mod chance;
mod host_memory;
mod varying;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chance::Class;
use host_memory::check_host_memory;

use super::{GpuBench, Measured, Passed, arguments, have_the_same_arguments, passed, take_the_faster};
use crate::device::Fill;
use crate::device::cuda::compare::{Difference, POISONS};
use crate::device::cuda::failure::{Failure, FailureKind};
use crate::device::cuda::timing::{Timing, TimingOptions};
use crate::device::cuda::worker::{Piece, Referred, Verified, Whose};
use crate::error::{Error, Fault, Result};
use crate::ir::{Kernel, Type};
use crate::report::Outputs;
use crate::tune::bench::Judged;
use crate::tune::check::compare::Compare;
use crate::tune::check::exact;
use crate::tune::subject::workload::{ArgumentSpec, Workload};

/// The outcome of kernels compared with the user's own one.
#[derive(Clone, Debug)]
pub struct Against {
    /// Of the user's own kernel.
    pub own: Own,
    /// Of each kernel, in order.
    pub kernels: Vec<Result<Measured>>,
}

/// The outcome of the user's own kernel.
#[derive(Clone, Debug)]
pub struct Own {
    /// The time of its first launch, in nanoseconds.
    pub elapsed_ns: f64,
    /// It was launched in the module that it was read from, as that is.
    pub is_its_module: bool,
    /// Each buffer ended at a page that is not mapped.
    pub guarded: bool,
    /// Outputs with initial contents were restored before each timed launch, because a launch on an earlier one's outputs has
    /// other results.
    pub restored: bool,
    /// What was found out about it, a sentence each: what it reads before it writes it, and what varies.
    pub findings: Vec<String>,
}

/// What is known of the user's own kernel with the arguments that are held.
#[derive(Default)]
pub(super) struct Known {
    /// Its results depend on what outputs hold before the launch, which is not given: the sentence about it.
    reads_before: Option<String>,
    /// The classes of the outputs that vary from launch to launch.
    classes: BTreeMap<usize, Class>,
}

/// A plan may take this many times as long as the user's own kernel, and a second.
const TIMES_AS_LONG: u32 = 20;

/// How long the counted launches of one kernel may take together, where that leaves enough of them; and how many are enough.
const TIMED_NS: f64 = 1e9;
const FEWEST_ROUNDS: u32 = 3;

/// How a kernel of this time is timed: a launch of a good part of a second varies little, and a dozen plans of it are to
/// be measured in the foreground. Each has been launched before, which warms up enough.
pub(crate) fn shorter(timing: TimingOptions, elapsed_ns: f64) -> TimingOptions {
    let fits = (TIMED_NS / elapsed_ns.max(1.0)) as u32;
    if fits >= timing.rounds {
        return timing;
    }
    TimingOptions {
        warm_up: 0,
        rounds: fits.max(FEWEST_ROUNDS).min(timing.rounds),
        ..timing
    }
}

/// The name of the user's own kernel if it is none of the measured ones.
const OWN: &str = "the kernel as it is";

/// An output of a workload.
#[derive(Clone, Copy)]
struct Output<'w> {
    name: &'w str,
    element: Type,
    bytes: u64,
    is_poisoned: bool,
    /// When two results of it are the same.
    compare: Compare,
}

/// The outputs, as the worker numbers them: in the parameters' order, and then memory at addresses of a program's choosing.
fn outputs(workload: &Workload) -> Vec<Output<'_>> {
    let exact = exact(&workload.kernel);
    let mut outputs = Vec::new();
    for (number, (given, param)) in workload.given.iter().zip(&workload.kernel.params).enumerate() {
        if workload.pointer(number).is_none()
            && let ArgumentSpec::Output {
                element,
                length,
                fill,
                compare,
            } = given
        {
            outputs.push(Output {
                name: &param.name,
                element: *element,
                bytes: length.saturating_mul(u64::from(element.bytes())),
                is_poisoned: matches!(fill, Fill::Uninitialized),
                compare: if *compare == Compare::Bits {
                    exact
                } else {
                    *compare
                },
            });
        }
    }
    for own in workload.placed.iter().flat_map(|placed| &placed.memory) {
        outputs.push(Output {
            name: &own.name,
            element: Type::I8,
            bytes: own.bytes.len() as u64,
            is_poisoned: false,
            compare: exact,
        });
    }
    outputs
}

impl GpuBench {
    /// Compiles kernels, compares each one's outputs with those of the workload's own kernel, and times them against each
    /// other.
    ///
    /// # Errors
    /// The data do not fit the GPU; the own kernel faults, does not end within the limit, writes an input, or leaves so much
    /// else from launch to launch that nothing can be compared with it; the worker is lost for good.
    pub fn measure_against_own(
        &mut self,
        workload: &Workload,
        kernels: &[(String, Arc<Kernel>)],
        timing: TimingOptions,
    ) -> Result<Against> {
        check_host_memory(workload)?;
        let is_held = |held: &Workload| have_the_same_arguments(held, workload);
        if !self.held.as_ref().is_some_and(is_held) {
            self.held = None;
            self.worker.bind_guarded(&arguments(workload))?;
            self.held = Some(workload.clone());
            self.known = Known::default();
        }
        let (compiled, of) = self.compiled_each(workload, kernels)?;
        // Wishes that the author wrote down are plans, too.
        let is_apart = !kernels.first().is_some_and(|(_, kernel)| workload.is_own(kernel));
        let own = match is_apart {
            true => {
                let own = [(OWN.to_owned(), Arc::clone(&workload.kernel))];
                let compiled = self.compiled_once(workload, &own)?.pop();
                compiled
                    .ok_or_else(|| Error::bug("a kernel was not compiled"))??
                    .module
            }
            false => match compiled.first() {
                Some(Ok(own)) => own.module.clone(),
                Some(Err(error)) => return Err(error.clone()),
                None => return Err(Error::bug("there is no kernel to compare with")),
            },
        };

        let referred = self.referred(workload, &own, timing.limit)?;
        let restored = !self.repeats(workload, &own, timing.limit)?;
        let limit = timing.limit.min(
            Duration::from_secs_f64(referred.elapsed_ns.max(0.0) * 1e-9) * TIMES_AS_LONG
                + Duration::from_secs(1),
        );
        let modules: Vec<Option<String>> = compiled
            .iter()
            .map(|compiled| Some(compiled.as_ref().ok()?.module.clone()))
            .collect();
        let mut chance = None;
        let mut outcomes: Vec<Result<Measured>> = Vec::with_capacity(compiled.len());
        for compiled in compiled {
            outcomes.push(compiled.and_then(|compilation| {
                let (outputs, elapsed_ns) = match compilation.module == own {
                    true => (Outputs::Identical, referred.elapsed_ns),
                    false => self.verified(workload, &own, &compilation.module, limit, &mut chance)?,
                };
                let timing = Timing::of(vec![elapsed_ns], timing.cache)
                    .ok_or_else(|| Error::bug("one launch has no time"))?;
                Ok(Measured {
                    timing,
                    outputs: Some(outputs),
                    found: None,
                    loaded: compilation.loaded,
                    dynamic_shared_bytes: compilation.ptx.dynamic_shared_bytes,
                    emit_time: compilation.emit_time,
                    hints: compilation.ptx.hints,
                    groups_promised: compilation.groups_promised,
                })
            }));
        }
        if let Some(error) = chance {
            return Err(error);
        }
        let timing = shorter(timing, referred.elapsed_ns);
        self.time_those_that_ran(&mut outcomes, &modules, timing, restored)?;
        let again = outcomes.split_off(kernels.len());
        take_the_faster(&mut outcomes, of, again);
        let loaded: Vec<String> = modules
            .into_iter()
            .flatten()
            .chain(is_apart.then_some(own))
            .collect();
        self.worker.unload(&loaded)?;
        Ok(Against {
            own: Own {
                elapsed_ns: referred.elapsed_ns,
                is_its_module: workload.original.is_some(),
                guarded: referred.guarded,
                restored,
                findings: self.findings(workload),
            },
            kernels: outcomes,
        })
    }

    /// Compares a plan with the workload's own kernel in one launch, which is not timed.
    ///
    /// # Errors
    /// The worker is lost for good.
    pub(crate) fn judge(&mut self, launch: &Workload, plan: &Arc<Kernel>) -> Result<Judged> {
        self.held = None;
        self.known = Known::default();
        if self.worker.bind_guarded(&arguments(launch)).is_err() {
            return Ok(Judged::NotComparable);
        }
        let kernels = [
            (OWN.to_owned(), Arc::clone(&launch.kernel)),
            ("the plan".to_owned(), Arc::clone(plan)),
        ];
        let compiled = self.compiled_once(launch, &kernels)?;
        let loaded: Vec<String> = compiled.iter().flatten().map(|own| own.module.clone()).collect();
        let judged = match &loaded[..] {
            [own, plan] => self.judged(launch, own, plan),
            _ => Judged::NotComparable,
        };
        self.worker.unload(&loaded)?;
        Ok(judged)
    }

    fn judged(&mut self, launch: &Workload, own: &str, plan: &str) -> Judged {
        if self.referred(launch, own, LIMIT).is_err() {
            return Judged::NotComparable;
        }
        let mut chance = None;
        match self.verified(launch, own, plan, LIMIT, &mut chance) {
            Ok(_) => Judged::Same,
            Err(error) if chance.is_some() || error.fault() == Fault::Device => Judged::NotComparable,
            // What varies in a few launches of a made-up one may be anything: values that nothing set, for example.
            Err(_) if !self.known.classes.is_empty() => Judged::NotComparable,
            Err(error) => Judged::Different(error),
        }
    }

    /// Launches the user's own kernel, and keeps its outputs.
    fn referred(&mut self, workload: &Workload, own: &str, limit: Duration) -> Result<Referred> {
        let gpu = self.facts().name.clone();
        let referred = self
            .worker
            .refer(own, limit)
            .map_err(|failure| of_own(workload, &gpu, failure))?;
        if let Some(input) = self.written_input(workload, &referred.wrote) {
            return Err(Error::input(format!(
                "`{}` writes `{input}`, which it is given as an input",
                workload.kernel.name
            ))
            .accepted(format!("`{input}` as an output")));
        }
        for (index, output) in outputs(workload).iter().enumerate() {
            let other = referred.other_poison.get(index).copied().unwrap_or_default();
            if other.is_none() || !output.compare.is_exact() || self.known.classes.contains_key(&index) {
                continue;
            }
            let same = referred.same_poison.as_ref().and_then(|same| same.get(index));
            let same = same.copied().unwrap_or_default();
            if same.is_none() {
                let element = other.first / u64::from(output.element.bytes().max(1));
                self.known.reads_before.get_or_insert_with(|| {
                    format!(
                        "The kernel as it is reads `{}` before it writes it: its result, first in element {element}, depends on \
                         the buffer's contents before the launch, which are not given. Plans were compared with the same contents.",
                        output.name
                    )
                });
            } else if self.differing(index, output, same, POISONS[0])?.is_err() {
                // Of the third launch's outputs.
                self.look_for_chance(workload, own, limit)?;
            }
        }
        Ok(referred)
    }

    /// What was found out about the user's own kernel, a sentence each.
    fn findings(&self, workload: &Workload) -> Vec<String> {
        let outputs = outputs(workload);
        let classes = self.known.classes.iter();
        let varying = classes.filter_map(|(&index, class)| Some(class.sentence(outputs.get(index)?.name)));
        self.known.reads_before.iter().cloned().chain(varying).collect()
    }

    /// Whether the user's own kernel, which was launched last, gives the same when run again on its own outputs: only then can
    /// it be timed launch after launch.
    fn repeats(&mut self, workload: &Workload, own: &str, limit: Duration) -> Result<bool> {
        // What is given nothing is not read.
        if outputs(workload).iter().all(|output| output.is_poisoned) {
            return Ok(true);
        }
        match self.worker.again(own, limit) {
            Ok(differences) => Ok(differences.iter().all(Difference::is_none)),
            // As one that takes places from a counter goes beyond the end.
            Err(failure) if matches!(failure.kind, FailureKind::Fault | FailureKind::TimeLimit) => Ok(false),
            Err(failure) => Err(failure.into()),
        }
    }

    /// Launches a kernel and compares its outputs: the comparison, and its time. If the user's own kernel turns out to be
    /// non-deterministic, that is reported for all.
    fn verified(
        &mut self,
        workload: &Workload,
        own: &str,
        module: &str,
        limit: Duration,
        chance: &mut Option<Error>,
    ) -> Result<(Outputs, f64)> {
        let mut all = Outputs::Identical;
        let mut elapsed_ns = 0.0;
        // First with other bytes in its outputs than the user's kernel found there, unless that reads them.
        let poisons: &[usize] = match self.known.reads_before {
            Some(_) => &[0],
            None => &[1, 0],
        };
        for &poison in poisons {
            let verified = self.worker.verify(module, limit, poison);
            let Verified {
                elapsed_ns: took_ns,
                wrote,
                differences,
            } = verified.map_err(|failure| of_plan(workload, failure))?;
            elapsed_ns = took_ns;
            if let Some(input) = self.written_input(workload, &wrote) {
                return Err(Error::bug(format!(
                    "it writes `{input}`, which is an input, checked at full size"
                )));
            }
            for (index, output) in outputs(workload).iter().enumerate() {
                let difference = differences.get(index).copied().unwrap_or_default();
                if difference.is_none() {
                    continue;
                }
                if self.known.classes.contains_key(&index) {
                    all = Outputs::Equivalent;
                    // Its launches had the first poison.
                    if poison == 0 {
                        self.is_alike(index, output, (module, limit))?;
                    }
                    continue;
                }
                match self.differing(index, output, difference, POISONS[poison])? {
                    Ok(Outputs::Identical) => {}
                    Ok(Outputs::Equivalent) => all = Outputs::Equivalent,
                    Err(_)
                        if output.compare.is_exact()
                            && self.varies(workload, own, limit, index, chance)? =>
                    {
                        return self.verified(workload, own, module, limit, chance);
                    }
                    Err(differs) if !self.known.classes.is_empty() => {
                        return Err(Error::usage(format!(
                            "`{}`: {differs}, compared with the plain kernel on the same GPU, whose outputs vary from launch to launch",
                            output.name
                        )));
                    }
                    Err(differs) => {
                        return Err(Error::input(format!(
                            "{differs}, compared with the plain kernel on the same GPU"
                        ))
                        .at(format!("output `{}`", output.name)));
                    }
                }
            }
            // Equal bits cannot be told from bytes that happen to be there, either.
            if all == Outputs::Equivalent && self.known.classes.is_empty() {
                break;
            }
        }
        Ok((all, elapsed_ns))
    }

    /// How an output of the last launch differs from the one kept, if the GPU found a difference: equal in the declared sense,
    /// or the difference in words.
    fn differing(
        &mut self,
        index: usize,
        output: &Output<'_>,
        difference: Difference,
        poison: u8,
    ) -> Result<Result<Outputs, String>> {
        let poisons = output.is_poisoned.then_some((poison, POISONS[0]));
        let size = u64::from(output.element.bytes().max(1));
        let mut lost = None;
        let mut read = |offset: u64, bytes: u64| {
            let piece = Piece {
                output: index,
                offset,
                bytes,
            };
            let right = self.worker.fetch(Whose::Reference, &[piece])?;
            let mut found = self.worker.fetch(Whose::Last, &[piece])?;
            if let Some((of_found, of_right)) = poisons {
                // Bytes that neither wrote are the same.
                for (found, right) in found.iter_mut().zip(&right) {
                    if *found == of_found && *right == of_right {
                        *found = *right;
                    }
                }
            }
            Ok((right, found))
        };
        let compared = match output.compare {
            // One element says it.
            Compare::Bits => {
                let first = difference.first / size * size;
                match read(first, size.min(output.bytes - first)) {
                    Ok((right, found)) => {
                        let compared =
                            output
                                .compare
                                .check_from(output.element, first / size, 0.0, &right, &found);
                        compared.map_err(|error| error.what().to_owned())
                    }
                    Err(error) => {
                        lost = Some(error);
                        Ok(Outputs::Identical)
                    }
                }
            }
            compare => {
                let mut fetch = |offset, bytes| {
                    read(offset, bytes).inspect_err(|error: &Error| lost = Some(error.clone()))
                };
                compare
                    .check_in_parts(output.element, output.bytes, &mut fetch)
                    .map_err(|error| error.what().to_owned())
            }
        };
        match lost {
            Some(error) => Err(error),
            None => Ok(compared),
        }
    }

    /// The name of an input among arguments that were written.
    fn written_input<'w>(&self, workload: &'w Workload, wrote: &[usize]) -> Option<&'w str> {
        match *passed(workload).get(*wrote.first()?)? {
            Passed::Param(param) | Passed::Held(param) => Some(&workload.kernel.params.get(param)?.name),
            Passed::Byte(_) => None,
        }
    }
}

/// How long a small launch may take.
const LIMIT: Duration = Duration::from_secs(2);

/// A failure of the user's own kernel.
fn of_own(workload: &Workload, gpu: &str, failure: Failure) -> Error {
    let name = &workload.kernel.name;
    match failure.kind {
        FailureKind::Fault => Error::input(format!(
            "`{name}` itself fails at full size on {gpu}, without a plan: {}; its buffers end at an unmapped page",
            failure.what
        ))
        .accepted(
            "a launch in which it stays within its buffers; `headstart run` with a simulated device names the access, in the \
             work-groups that it runs",
        ),
        FailureKind::TimeLimit => Error::input(format!(
            "`{name}` itself does not end at full size on {gpu}, with no plan: {}",
            failure.what
        ))
        .accepted("a kernel that ends, or a launch that takes less time"),
        FailureKind::OutOfMemory => Error::from(failure).at("the kernel's outputs are kept beside its data"),
        _ => Error::from(failure),
    }
}

/// A plan's failure, where the unmodified kernel succeeded.
fn of_plan(workload: &Workload, failure: Failure) -> Error {
    let name = &workload.kernel.name;
    match failure.kind {
        FailureKind::Fault => Error::bug(format!(
            "it fails at full size, and the plain `{name}` does not: {}",
            failure.what
        )),
        FailureKind::TimeLimit => Error::bug(format!(
            "it takes more than {TIMES_AS_LONG} times as long as `{name}` as it is: {}",
            failure.what
        )),
        _ => Error::from(failure),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_launches_are_timed_less_often() {
        let timing = TimingOptions::default();
        assert_eq!(shorter(timing, 1e6), timing);
        let of = |elapsed_ns: f64| {
            let shorter = shorter(timing, elapsed_ns);
            (shorter.warm_up, shorter.rounds)
        };
        assert_eq!(of(200e6), (0, 5));
        assert_eq!(of(5e9), (0, FEWEST_ROUNDS));
        let few = TimingOptions { rounds: 1, ..timing };
        assert_eq!(shorter(few, 5e9).rounds, 1, "no more than were asked for");
    }
}
