//! The symbolic checker: that a derived kernel uses the values that the plain one would have loaded.
//!
//! Both kernels run on the functional engine with all its checks. Each value carries a *term*: a hash of the expression that
//! made it, down to the cells of memory that were read (`terms`). A ring slot that holds another iteration's element has
//! another term even if the data coincide, so the checker finds a wrong slot regardless of the data. At the end, both kernels
//! must have written the same elements of global memory in each work-group, with the same bits and the same term.
//!
//! Values that depend on no memory (ids, counters, guards) are compared by value: a pass may compute an index differently.
//! Integer sums of loaded values are treated likewise (`linear`). The side of a branch or selection that was taken counts by
//! its result.
//!
//! The value that an atomic operation returns depends on the order of work-items, and a plan may change that order. So values
//! derived from it are not compared. If an address is derived from it, the place of the write is not compared either: the
//! written values must then be the same in any order. Memory contents left by commuting operations are compared.
//!
//! The checker runs a kernel, it does not reason about it: it says "checked", never "proved". Loops should
//! run 0 and 1 times, and D − 1, D, D + 1 and 2 D + 1 times for each distance D of the plan.

mod explain;
mod linear;
mod observer;
mod operation;
mod record;
mod terms;
#[cfg(test)]
mod tests;

// The crate below, by the names that all of Headstart has for it.
use headstart_ir::{Error, Fault, Result, ir};

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::ir::{Kernel, LoadId, verify, verify_derived};
use headstart_device::Launch;
use headstart_sim::functional::{
    CompiledKernel, Groups, LaunchState, Options, PrefetchBounds, describe_work_item,
};
use headstart_sim::on_copies;
use observer::TermObserver;
use terms::Written;

/// What was compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Work-groups that ran.
    pub groups: u64,
    /// Bytes of global memory that they wrote, each compared by bits and by term.
    pub bytes: u64,
    /// How often the work-items of these groups executed each load, in the plain and in the derived kernel
    /// (an asynchronous copy counts as the load that it replaces).
    pub loads: Vec<LoadCounts>,
}

/// How often a load was executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadCounts {
    /// The parameter or array that it reads.
    pub name: String,
    /// In the plain kernel.
    pub plain: u64,
    /// In the derived one.
    pub derived: u64,
}

/// Checks `derived` against `plain` on the work-groups `groups` of a launch. The launch's buffers are the
/// simulator's; they are not changed.
///
/// # Errors
/// An input error if the plain kernel itself is wrong. Otherwise a bug of ours: a check of the functional
/// engine that the derived kernel fails, or the first element that differs, with the load, its iteration
/// and the work-item where the difference begins.
pub fn check(
    plain: &Arc<Kernel>,
    derived: &Arc<Kernel>,
    launch: &Launch,
    sub_group_size: u32,
    groups: &Groups,
) -> Result<Report> {
    Plain::new(plain, launch, sub_group_size, groups)?.check(derived)
}

/// What the plain kernel makes of a launch, to check many derived kernels against.
pub struct Plain {
    run: Run,
    groups: Groups,
}

impl Plain {
    /// Runs the plain kernel.
    ///
    /// # Errors
    /// The plain kernel itself is wrong.
    pub fn new(kernel: &Arc<Kernel>, launch: &Launch, sub_group_size: u32, groups: &Groups) -> Result<Plain> {
        verify(kernel)?;
        let run = Run::new(kernel, launch, sub_group_size, groups, Options::CHECKING)?;
        let groups = groups.clone();
        Ok(Plain { run, groups })
    }

    /// Checks a kernel derived from it on the same launch; see [`check`].
    ///
    /// # Errors
    /// A bug of ours, as for [`check`].
    pub fn check(&self, derived: &Arc<Kernel>) -> Result<Report> {
        verify_derived(derived)?;
        let plain = &self.run;
        let options = Options {
            prefetch_bounds: PrefetchBounds::All,
            ..Options::CHECKING
        };
        let derived = Run::new(
            derived,
            &plain.before,
            plain.sub_group_size,
            &self.groups,
            options,
        )
        .map_err(of_derived)?;
        let mut report = Report {
            loads: load_counts(plain, &derived),
            ..Report::default()
        };
        let (state, derived_state) = (plain.state()?, derived.state()?);
        for (&group, right) in &plain.written {
            let nothing = Written::default();
            let found = derived.written.get(&group).unwrap_or(&nothing);
            report.groups += 1;
            report.bytes += right.len();
            if let Some(address) = first_difference(&state, right, &derived_state, found) {
                return Err(explain::difference(plain, &derived, group, address));
            }
            if right.scattered() != found.scattered() {
                return Err(Error::bug(format!(
                    "the derived kernel differs: work-group {group} writes other values to the places that its \
                     atomic operations hand out"
                )));
            }
        }
        Ok(report)
    }
}

/// One kernel's run of the launch, and what each work-group wrote.
struct Run {
    compiled: CompiledKernel,
    /// The launch on buffers of its own.
    launch: Launch,
    /// The buffers as they were, to run a work-group again.
    before: Launch,
    sub_group_size: u32,
    options: Options,
    written: BTreeMap<u64, Written>,
    /// How often each load was executed.
    loads: BTreeMap<LoadId, u64>,
}

impl Run {
    fn new(
        kernel: &Arc<Kernel>,
        before: &Launch,
        sub_group_size: u32,
        groups: &Groups,
        options: Options,
    ) -> Result<Run> {
        let launch = on_copies(before, |_| false)?;
        let compiled = CompiledKernel::new(Arc::clone(kernel));
        let observed = Mutex::new((BTreeMap::new(), BTreeMap::new()));
        let end = |group: u64, observer: TermObserver| {
            let mut observed = observed.lock().unwrap_or_else(PoisonError::into_inner);
            let (written, loads) = &mut *observed;
            written.insert(group, observer.memory.into_written());
            for (load, count) in observer.loads {
                *loads.entry(load).or_insert(0) += count;
            }
        };
        let begin = |_| TermObserver::new();
        compiled.run_observed(&launch, sub_group_size, options, groups, &begin, &end)?;
        let (written, loads) = observed.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(Run {
            compiled,
            launch,
            before: before.clone(),
            sub_group_size,
            options,
            written,
            loads,
        })
    }

    /// Runs one work-group again on fresh buffers, and keeps every term's making.
    fn again(&self, group: u64) -> Result<TermObserver> {
        let launch = on_copies(&self.before, |_| false)?;
        let kept = Mutex::new(TermObserver::recording());
        let begin = |_| TermObserver::recording();
        let end = |_, observer| *kept.lock().unwrap_or_else(PoisonError::into_inner) = observer;
        let groups = Groups::Some(vec![group]);
        self.compiled
            .run_observed(&launch, self.sub_group_size, self.options, &groups, &begin, &end)?;
        Ok(kept.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    fn kernel(&self) -> &Kernel {
        self.compiled.kernel()
    }

    fn state(&self) -> Result<LaunchState<'_>> {
        LaunchState::new(self.kernel(), &self.launch, self.sub_group_size, self.options)
    }

    /// An element of global memory as people read it: `result[5]`.
    fn element(&self, address: u64) -> String {
        let state = self.state();
        state.map_or_else(
            |_| format!("{address:#x}"),
            |state| state.element(address).to_string(),
        )
    }

    /// A work-item as people read it.
    fn work_item(&self, group: u64, item: u32) -> String {
        describe_work_item(&self.launch, group, item).to_string()
    }
}

/// The lowest address that was written otherwise.
fn first_difference(
    plain: &LaunchState<'_>,
    right: &Written,
    derived: &LaunchState<'_>,
    found: &Written,
) -> Option<u64> {
    let differs = |address: &u64| {
        let same_term = right.term(*address) == found.term(*address);
        let is_unordered = right.is_unordered(*address) && found.is_unordered(*address);
        !is_unordered && (!same_term || plain.byte(*address) != derived.byte(*address))
    };
    let addresses = right.addresses().chain(found.addresses());
    addresses.filter(differs).min()
}

fn load_counts(plain: &Run, derived: &Run) -> Vec<LoadCounts> {
    let count = |run: &Run, load: LoadId| run.loads.get(&load).copied().unwrap_or(0);
    let kernel = plain.kernel();
    kernel
        .loads
        .iter()
        .map(|(load, data)| LoadCounts {
            name: data.name.clone(),
            plain: count(plain, load),
            derived: count(derived, load),
        })
        .collect()
}

/// What is wrong with a derived kernel is our fault, unless the device cannot run it at all.
fn of_derived(error: Error) -> Error {
    if error.fault() == Fault::Device {
        return error;
    }
    let derived = Error::bug(format!("the derived kernel differs: {}", error.what())).caused_by(&error);
    match error.place() {
        Some(place) => derived.at(place),
        None => derived,
    }
}
