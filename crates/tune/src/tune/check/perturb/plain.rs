//! The plain kernel on a derived launch: its results and path, or the reason for dropping the launch.
//!
//! A launch with other scalars usually needs longer buffers. The engine reports how far the kernel reached, and the launch is
//! retried with buffers of that length. Once it ends without a fault, buffers whose lengths the kernel does not know are cut to
//! the touched part: a derived kernel that touches more than that is out of bounds.

use std::sync::Arc;

use super::evidence;
use super::launch::{Contents, Part, Promise, Role, Variant};
use crate::device::Description;
use crate::device::sim::functional::{
    BufferMemory, CompiledKernel, Covered, Groups, Options, Sites, has_not_ended,
};
use crate::error::{Error, Fault};
use crate::ir::Kernel;
use crate::prefetch::PlanTarget;
use crate::report;
use crate::violation::Violation;

/// Steps of a sub-group, more or fewer as there are fewer or more sub-groups.
const MOST_STEPS: u64 = 1 << 13;
const FEWEST_STEPS: u64 = 1 << 11;
/// Steps of all sub-groups.
const LAUNCH_STEPS: u64 = 1 << 16;
/// How often a launch is tried with longer buffers.
const LONGER: usize = 8;
/// The longest that a buffer grows to, in bytes. Only touched parts are allocated.
const MOST_BYTES: u64 = 1 << 30;
/// The name of the rule that a launch breaks for which no buffer is long enough.
const TOO_LONG: &str = "out-of-bounds";
/// Buffers whose lengths the kernel does not know have as many bytes from the start.
const AT_LEAST_BYTES: u64 = 1 << 14;

/// Preparing a launch takes as long as this many operations of a sub-group, plus one for this many bytes, whose pages are counted
/// but not allocated.
const LAUNCH: u64 = 200;
const BYTES: u64 = 1 << 21;

/// The device for running kernels: the functional engine with a device's rules and limits.
#[derive(Clone, Debug)]
pub struct Engine {
    /// Its checks.
    pub options: Options,
    /// The device's limits.
    pub description: Description,
    /// The launch properties for which plans are applied.
    pub target: PlanTarget,
}

/// A kernel as the engine has it, with the places that a run can go through.
pub(super) struct Compiled {
    pub kernel: CompiledKernel,
    pub sites: Sites,
}

/// A launch in which the plain kernel is right.
pub(super) struct Kept {
    /// With buffers as long as they have to be.
    pub variant: Variant,
    pub covered: Covered,
    /// It touches more than the lengths that the kernel was told.
    pub beyond: bool,
    /// By parameter: the plain kernel's output there, if it may write.
    pub results: Vec<Option<Arc<BufferMemory>>>,
    /// By parameter: memory that is only read, for all kernels.
    pub inputs: Vec<Option<Arc<BufferMemory>>>,
}

/// Why the plain kernel did not go through a launch.
#[derive(Clone, Debug)]
pub(super) enum Unfit {
    /// The launch is dropped: it makes the kernel break this rule ([`Violation::name`]), or is [none](report::NO_LAUNCH).
    Dropped(&'static str),
    /// The same of a rule that says nothing of whether the kernel runs: a device that judges plans itself is asked.
    Innocent(&'static str, Box<Variant>),
    /// What went wrong cannot follow from what was drawn: the kernel was read as another one.
    Misread(Error),
}

impl Compiled {
    pub(super) fn new(kernel: &Arc<Kernel>) -> Compiled {
        let kernel = CompiledKernel::new(Arc::clone(kernel));
        let sites = kernel.sites();
        Compiled { kernel, sites }
    }
}

/// The cost of preparing a launch, in operations of sub-groups.
fn preparing(variant: &Variant) -> u64 {
    let buffers = variant
        .memories()
        .into_iter()
        .filter_map(|memory| variant.buffer(memory));
    LAUNCH + buffers.map(bytes).fold(0, u64::saturating_add) / BYTES
}

/// The steps that a sub-group of a launch may take.
pub(super) fn steps(variant: &Variant, sub_group: u32) -> u64 {
    let items: u64 = variant.group.iter().map(|&items| u64::from(items)).product();
    let groups: u64 = variant.groups.iter().map(|&groups| u64::from(groups)).product();
    let sub_groups = items.div_ceil(u64::from(sub_group.max(1))).saturating_mul(groups);
    (LAUNCH_STEPS / sub_groups.max(1)).clamp(FEWEST_STEPS, MOST_STEPS)
}

impl Engine {
    /// The sub-group size that a kernel runs with.
    pub(super) fn sub_group(&self, kernel: &Kernel) -> u32 {
        self.description.sub_group_size(kernel)
    }

    /// Runs the plain kernel; gives the outcome, and the cost of all tries.
    pub(super) fn run_plain(&self, plain: &Compiled, mut variant: Variant) -> (Result<Kept, Unfit>, u64) {
        let mut cost = 0;
        let kernel = plain.kernel.kernel();
        let roles = variant.roles(kernel);
        for (part, role) in variant.parts.iter_mut().zip(&roles) {
            if let (Part::Buffer(contents), Role::Buffer(Promise::Nothing)) = (part, role)
                && contents.place.is_none()
            {
                let least = AT_LEAST_BYTES / u64::from(contents.element.bytes().max(1));
                contents.length = contents.length.max(least);
            }
        }
        let size = self.sub_group(kernel);
        let steps = steps(&variant, size);
        for _ in 0..LONGER {
            make_fit(&mut variant, &roles);
            let Ok((launch, memories)) = variant.bind(steps, |_| None) else {
                return (Err(Unfit::Dropped(report::NO_LAUNCH)), cost);
            };
            if launch.check(kernel, &self.description).is_err() {
                return (Err(Unfit::Dropped(report::NO_LAUNCH)), cost);
            }
            // How far a launch came that goes wrong must not hang on which thread was faster.
            let groups = Groups::OneByOne;
            let (ran, covered) =
                plain
                    .kernel
                    .run_covering(&plain.sites, &launch, size, self.options, &groups);
            cost += preparing(&variant) + covered.operations;
            let Err(error) = ran else {
                return (Ok(Kept::new(variant, covered, &roles, memories)), cost);
            };
            if !has_not_ended(&error)
                && reaches_out(&variant, &covered)
                && lengthened(&mut variant, &covered, &roles)
            {
                continue;
            }
            return (Err(unfit(kernel, variant, error)), cost);
        }
        (Err(Unfit::Dropped(TOO_LONG)), cost)
    }
}

/// What an error of the plain kernel says.
fn unfit(kernel: &Kernel, variant: Variant, error: Error) -> Unfit {
    match error.cause() {
        Some(violation) if evidence::is_ours(kernel, &variant, violation) => Unfit::Misread(error),
        Some(violation @ (Violation::Race { .. } | Violation::NeverWritten { .. } | Violation::Apart(_))) => {
            Unfit::Innocent(violation.name(), Box::new(variant))
        }
        Some(violation) => Unfit::Dropped(violation.name()),
        None if error.fault() == Fault::Bug => Unfit::Misread(error),
        None => Unfit::Dropped(report::NO_LAUNCH),
    }
}

/// Makes buffers as long as the kernel expects: exactly if a parameter gives the length, at least if the kernel itself implies
/// it.
fn make_fit(variant: &mut Variant, roles: &[Role]) {
    let mut told: Vec<Option<u64>> = vec![None; roles.len()];
    for (position, role) in roles.iter().enumerate() {
        let memory = variant.memory_of(position);
        let (least, length) = match (role, variant.buffer(memory)) {
            (Role::Buffer(Promise::Elements(promised)), Some(contents)) => (*promised, contents.length),
            (Role::Buffer(Promise::Parameter(parameter)), Some(_)) => {
                let promised = variant.scalar(*parameter).map_or(0, |(_, bits)| bits);
                (promised, promised.saturating_add(variant.start(position)))
            }
            _ => continue,
        };
        let own = told[memory].get_or_insert(0);
        let start = variant.start(position);
        *own = (*own).max(least.saturating_add(start)).max(length);
    }
    for (memory, told) in told.iter().enumerate() {
        if let (Some(told), Some(contents)) = (told, variant.buffer_mut(memory)) {
            contents.length = *told;
        }
    }
}

/// Whether a run reached for something beyond the end of a buffer.
fn reaches_out(variant: &Variant, covered: &Covered) -> bool {
    let memories = variant.memories();
    memories.iter().zip(&covered.extents).any(|(&memory, extent)| {
        variant
            .buffer(memory)
            .is_some_and(|contents| extent.end > bytes(contents))
    })
}

/// Makes the buffers longer that a run left at their ends; whether they can be as long.
fn lengthened(variant: &mut Variant, covered: &Covered, roles: &[Role]) -> bool {
    let memories = variant.memories();
    for (&memory, extent) in memories.iter().zip(&covered.extents) {
        let Some(contents) = variant.buffer_mut(memory) else {
            continue;
        };
        if extent.end <= bytes(contents) {
            continue;
        }
        if extent.end > MOST_BYTES || contents.place.is_some() {
            return false;
        }
        let size = u64::from(contents.element.bytes().max(1));
        // Twice as much: a loop reaches further with every iteration, and each try ends at the first that is too far.
        let length = extent.end.div_ceil(size).saturating_mul(2);
        contents.length = length.max(contents.length).min(MOST_BYTES / size);
        for (position, role) in roles.iter().enumerate() {
            if let Role::Buffer(Promise::Parameter(parameter)) = role
                && variant.memory_of(position) == memory
            {
                variant.set(*parameter, length.saturating_sub(variant.start(position)));
            }
        }
    }
    true
}

fn bytes(contents: &Contents) -> u64 {
    contents
        .length
        .saturating_mul(u64::from(contents.element.bytes()))
}

impl Kept {
    fn new(
        mut variant: Variant,
        covered: Covered,
        roles: &[Role],
        memories: Vec<Option<Arc<BufferMemory>>>,
    ) -> Kept {
        let mut beyond = false;
        for (memory, extent) in variant.memories().into_iter().zip(&covered.extents) {
            let told = (0..variant.parts.len())
                .filter(|&position| variant.memory_of(position) == memory)
                .filter_map(|position| {
                    let told = match roles[position] {
                        Role::Buffer(Promise::Elements(told)) => told,
                        Role::Buffer(Promise::Parameter(parameter)) => variant.scalar(parameter)?.1,
                        _ => return None,
                    };
                    Some(told.saturating_add(variant.start(position)))
                })
                .max();
            let start = (0..variant.parts.len())
                .filter(|&position| variant.memory_of(position) == memory)
                .map(|position| variant.start(position))
                .max()
                .unwrap_or(0);
            let Some(contents) = variant.buffer_mut(memory) else {
                continue;
            };
            if contents.place.is_some() {
                continue;
            }
            let touched = extent.end.div_ceil(u64::from(contents.element.bytes().max(1)));
            beyond |= told.is_some_and(|told| touched > told);
            contents.length = touched.max(told.unwrap_or(0)).max(1).max(start);
        }
        let is_result =
            |position: usize| variant.memory_of(position) == position && variant.is_written(position);
        let results = memories
            .into_iter()
            .enumerate()
            .map(|(position, memory)| memory.filter(|_| is_result(position)))
            .collect();
        let input = |position: usize| {
            let contents = variant.buffer(position)?;
            if contents.same_as.is_some() || is_result(position) {
                return None;
            }
            BufferMemory::new(contents.element, contents.length, contents.fill.clone())
                .ok()
                .map(Arc::new)
        };
        let inputs = (0..variant.parts.len()).map(input).collect();
        Kept {
            variant,
            covered,
            beyond,
            results,
            inputs,
        }
    }

    /// The cost of running it, in operations of sub-groups.
    pub(crate) fn cost(&self) -> u64 {
        self.covered.operations + preparing(&self.variant)
    }
}
