//! The rules by which a load may be fetched early.
//!
//! 1. A volatile load may not be.
//! 2. Only loads from global memory may be.
//! 3. A load may not be if the loop writes its memory or memory that may alias it ([`Root::may_alias`]), but where the store
//!    and the load begin at the same object, and the store reaches nothing that the load reads in the iterations that it
//!    crosses ([`crossing`]).
//! 4. Memory that other work-items may write may not be fetched early across a barrier, nor across a fence or
//!    atomic operation that acquires, nor across a volatile load or an atomic operation whose result is used. By the memory
//!    model these order nothing, but programs use them to wait for flags and then read the guarded data. A relaxed
//!    operation with an unused result is only a write (rule 3). A barrier alone makes only this launch's writes visible,
//!    so loads may cross it if nothing in the kernel may write their memory and the kernel never waits for others.
//!    No load may cross a wait for the previous launch, which may have written memory that this launch only reads.
//! 5. An early access must be provably in bounds: by the counting test, if that is the only exit of the
//!    loop and the conditions around the load can be repeated; otherwise by the known length of the memory.
//! 6. An access that the length alone proves in bounds may belong to an iteration that never executes. Nothing in the kernel
//!    may write its memory, or a work-item would read what another one writes in the same launch. The value would not be used;
//!    but a read that the plain kernel has not is a race that the plain kernel has not.
//! 7. A loop whose values depend on which work-items run it together has no copies where they leave it apart
//!    ([`together`](super::together)).
//!
//! A cache hint changes no result, so rules 3, 4 and 6 do not apply to it; all rules apply to the loads that its
//! address depends on.

use crate::analysis::apart::{Crossing, crossing};
use crate::analysis::definitions::Definitions;
#[doc(hidden)]
pub(crate) use crate::analysis::effects::Effect;
use crate::analysis::loops::{LoadSite, LoopSummary};
use crate::analysis::roots::{Root, root};
use crate::error::{Error, Result};
use crate::ir::{Kernel, OpKind, Space, Value};

/// The known facts about an access's place in its memory.
#[derive(Clone, Copy, Debug)]
pub(super) enum Bounds {
    /// Elements `index + first` up to `width` more, of `length`.
    Length {
        /// The pointer to element 0, a parameter.
        base: Value,
        /// An `I64`.
        index: Value,
        /// Elements.
        first: i64,
        /// Elements.
        width: i64,
        /// An `I64`, defined outside.
        length: Value,
    },
    /// Bytes from the load's address on, `width` of them, of memory of `length` elements of `size` bytes.
    Bytes {
        /// The pointer to element 0, a parameter.
        base: Value,
        /// The address, in the same space.
        pointer: Value,
        /// Bytes.
        width: i64,
        /// An `I64`, defined outside.
        length: Value,
        /// Bytes.
        size: i64,
    },
    /// Nothing.
    Unknown,
}

/// Whether a load may be executed `ahead` iterations early: rules 1 to 4. Rules 3 and 4 do not apply to a load whose source the
/// program states to be read-only.
pub(super) fn may_move(
    kernel: &Kernel,
    definitions: &Definitions,
    summary: &LoopSummary,
    site: &LoadSite,
    ahead: u32,
) -> Result<()> {
    match may_move_if(kernel, definitions, summary, site, ahead)?.first() {
        None => Ok(()),
        Some(stride) => Err(Error::usage(format!(
            "`{}` cannot be fetched early: unless {} lies between {} and {}, the loop writes it before",
            kernel.loads[site.id].name,
            kernel.describe_value(stride.value),
            stride.least,
            stride.most
        ))
        .at(kernel.describe_place(site.place))),
    }
}

/// A value from outside a loop that has to lie between two numbers, both included, without sign.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stride {
    pub(super) value: Value,
    pub(super) least: u64,
    pub(super) most: u64,
}

/// Under which conditions a load may be executed `ahead` iterations early.
pub(super) fn may_move_if(
    kernel: &Kernel,
    definitions: &Definitions,
    summary: &LoopSummary,
    site: &LoadSite,
    ahead: u32,
) -> Result<Vec<Stride>> {
    let name = &kernel.loads[site.id].name;
    let refuse = |why: String| {
        Err(Error::usage(format!("`{name}` cannot be fetched early: {why}"))
            .at(kernel.describe_place(site.place)))
    };
    if site.volatile {
        return refuse("the load is volatile".to_owned());
    }
    let Some(from) = root(kernel, definitions, site.pointer) else {
        return refuse("it is unknown which memory it reads".to_owned());
    };
    if from.space(kernel) != Some(Space::Global) {
        return refuse("it reads no global memory".to_owned());
    }
    for effect in &summary.effects {
        if let Effect::LaunchBefore(place) = effect {
            let place = kernel.describe_place(*place);
            return refuse(format!(
                "the launch before may write it until it is waited for at {place}"
            ));
        }
    }
    let mut strides = Vec::new();
    if is_only_read(kernel, site, from) {
        return Ok(strides);
    }
    for (number, effect) in summary.effects.iter().enumerate() {
        // Within its own iteration a load crosses only what stands in front of it.
        if ahead == 0 && number >= site.behind {
            break;
        }
        match effect {
            Effect::Write(pointer, bytes, place) => {
                let to = root(kernel, definitions, *pointer);
                if to.is_some_and(|to: Root| !to.may_alias(from, kernel)) {
                    continue;
                }
                let place = kernel.describe_place(*place);
                if to != Some(from) {
                    return refuse(format!("the loop writes that memory, or may, at {place}"));
                }
                let is_in_front = number < site.behind;
                let write = (*pointer, *bytes);
                match crossing(kernel, definitions, summary, site, ahead, write, is_in_front) {
                    Crossing::Apart => {}
                    Crossing::If { .. } if is_tested(kernel, summary, site, ahead) => {}
                    Crossing::If { value, least, most } => strides.push(Stride { value, least, most }),
                    Crossing::Meets(why) => {
                        return refuse(format!("the loop writes that memory at {place}, and {why}"));
                    }
                }
            }
            Effect::Barrier(_) if never_written(kernel, definitions, from) => {}
            Effect::Barrier(place) => {
                let place = kernel.describe_place(*place);
                return refuse(format!(
                    "another work-item may write it before the barrier at {place}"
                ));
            }
            Effect::Observation(place) => {
                let place = kernel.describe_place(*place);
                return refuse(format!(
                    "another work-item may have written it before the flag that is read at {place}"
                ));
            }
            // Looked at above.
            Effect::LaunchBefore(_) => {}
            Effect::Carried(place) => {
                let place = kernel.describe_place(*place);
                return refuse(format!(
                    "an instruction carried as text may write it, or order its writers, at {place}"
                ));
            }
            Effect::Acquire(place) => {
                let place = kernel.describe_place(*place);
                return refuse(format!(
                    "another work-item may have written it before the acquire at {place}"
                ));
            }
        }
    }
    Ok(strides)
}

/// Whether a test in front of the loop has found all strides as they have to be for this load.
fn is_tested(kernel: &Kernel, summary: &LoopSummary, site: &LoadSite, ahead: u32) -> bool {
    let tested = &kernel.labels[summary.label].apart;
    tested
        .iter()
        .any(|&(id, furthest)| id == site.id && ahead <= furthest)
}

/// Whether a load may be executed for an iteration that never executes: rule 6.
pub(super) fn may_read_for_nothing(
    kernel: &Kernel,
    definitions: &Definitions,
    site: &LoadSite,
) -> Result<()> {
    let Some(from) = root(kernel, definitions, site.pointer) else {
        return Ok(());
    };
    let writes = |effect: &Effect| match effect {
        Effect::Write(pointer, _, place) => {
            let to = root(kernel, definitions, *pointer);
            to.is_none_or(|to| to.may_alias(from, kernel)).then_some(*place)
        }
        _ => None,
    };
    match definitions.effects().iter().find_map(writes) {
        Some(place) if !is_only_read(kernel, site, from) => Err(Error::usage(format!(
            "`{}` cannot be fetched early: its iteration may not execute, and another work-item may write that memory \
             meanwhile, at {}",
            kernel.loads[site.id].name,
            kernel.describe_place(place)
        ))
        .at(kernel.describe_place(site.place))),
        _ => Ok(()),
    }
}

/// Whether the program states that a load's memory is only read.
fn is_only_read(kernel: &Kernel, site: &LoadSite, from: Root) -> bool {
    kernel.loads[site.id].constant || from.facts(kernel).is_some_and(|facts| facts.read_only)
}

/// Whether nothing in the kernel may write this memory, and nothing waits for others' writes: neither this launch nor another
/// one seen through it changes a load's result there.
fn never_written(kernel: &Kernel, definitions: &Definitions, memory: Root) -> bool {
    definitions.effects().iter().all(|effect| match effect {
        Effect::Write(pointer, ..) => {
            root(kernel, definitions, *pointer).is_some_and(|to| !to.may_alias(memory, kernel))
        }
        Effect::Barrier(_) => true,
        Effect::Acquire(_) | Effect::Observation(_) | Effect::LaunchBefore(_) | Effect::Carried(_) => false,
    })
}

/// Whether a hint for a load makes sense at all: rules 1 and 2.
pub(super) fn may_hint(kernel: &Kernel, definitions: &Definitions, site: &LoadSite) -> Result<()> {
    let space = root(kernel, definitions, site.pointer).and_then(|root| root.space(kernel));
    let space = space.or_else(|| kernel.ty(site.pointer).space());
    if space == Some(Space::Global) && !site.volatile {
        return not_constant(kernel, definitions, site);
    }
    let name = &kernel.loads[site.id].name;
    let why = match site.volatile {
        true => "is loaded as volatile, past the caches that a hint would fill",
        false => "is not in global memory, which alone has caches to fill",
    };
    Err(Error::usage(format!("`{name}` {why}")).at(kernel.describe_place(site.place)))
}

/// Whether a load is not from constant memory: that has a cache of its own, which nothing fills ahead.
pub(super) fn not_constant(kernel: &Kernel, definitions: &Definitions, site: &LoadSite) -> Result<()> {
    let facts = root(kernel, definitions, site.pointer).and_then(|root| root.facts(kernel));
    if !facts.is_some_and(|facts| facts.is_constant) {
        return Ok(());
    }
    let name = &kernel.loads[site.id].name;
    let why = "is in constant memory, whose cache no instruction can prefetch into";
    Err(Error::usage(format!("`{name}` {why}")).at(kernel.describe_place(site.place)))
}

/// Where an access lies, if it leads into memory of known length: by its index if it has one, else by its distance from the
/// memory's start, as for a pointer that advances from iteration to iteration.
pub(super) fn bounds(
    kernel: &Kernel,
    definitions: &Definitions,
    summary: &LoopSummary,
    site: &LoadSite,
) -> Bounds {
    let loaded = i64::from(kernel.ty(site.results[0]).bytes()) * site.results.len() as i64;
    by_index(kernel, definitions, summary, site, loaded)
        .or_else(|| by_distance(kernel, definitions, site, loaded))
        .unwrap_or(Bounds::Unknown)
}

fn by_index(
    kernel: &Kernel,
    definitions: &Definitions,
    summary: &LoopSummary,
    site: &LoadSite,
    loaded: i64,
) -> Option<Bounds> {
    let kind = match summary.inside.get(&site.pointer) {
        Some(inside) => &inside.kind,
        None if definitions.comes_over_edge(site.pointer) => return None,
        None => definitions.op(site.pointer)?,
    };
    let OpKind::Address {
        base,
        index,
        scale,
        offset,
    } = *kind
    else {
        return None;
    };
    let base = definitions.in_front_of_edges(base);
    let facts = kernel.param_of(base)?.facts?;
    let (size, length) = (i64::from(facts.element.bytes()), facts.length?);
    (i64::from(scale) == size && offset % size == 0 && loaded % size == 0).then_some(Bounds::Length {
        base,
        index,
        first: offset / size,
        width: loaded / size,
        length,
    })
}

fn by_distance(kernel: &Kernel, definitions: &Definitions, site: &LoadSite, width: i64) -> Option<Bounds> {
    let Root::Param(number) = root(kernel, definitions, site.pointer)? else {
        return None;
    };
    let param = &kernel.params[number];
    let facts = param.facts?;
    (kernel.ty(param.value) == kernel.ty(site.pointer)).then_some(Bounds::Bytes {
        base: param.value,
        pointer: site.pointer,
        width,
        length: facts.length?,
        size: i64::from(facts.element.bytes()),
    })
}
