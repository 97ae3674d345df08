//! The rules by which a load may be fetched early.
//!
//! 1. A volatile load may not.
//! 2. Only global memory is fetched early.
//! 3. Memory that the loop writes may not, nor memory that may be the same ([`Root::may_alias`]).
//! 4. Memory that other work-items may write may not be fetched early across a barrier, nor across a fence or
//!    atomic operation that acquires, nor across a volatile load or an atomic operation whose result is used: by the memory
//!    model these order nothing, but programs wait for flags with them and then read what the flags guard. A relaxed
//!    operation whose result nobody looks at is a write (rule 3) and nothing more.
//!    A wait for the launch before is crossed by no load at all: memory that this launch only reads may come from it.
//! 5. An early access must be proved in bounds: by the counting test, if that is the only way out of the
//!    loop and the conditions around the load can be repeated; else by the known length of the memory.
//!
//! A cache hint changes no result, so rules 3 and 4 do not bind it; the loads that its address needs are
//! bound by all.

use crate::analysis::definitions::Definitions;
use crate::analysis::loops::{Effect, LoadSite, LoopSummary};
use crate::analysis::roots::{Root, root};
use crate::error::{Error, Result};
use crate::ir::{Kernel, OpKind, Space, Value};

/// What is known of where an access lies in its memory.
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
    /// Nothing.
    Unknown,
}

/// Whether a load may be executed before its turn: rules 1 to 4. Rules 3 and 4 do not bind a load of which the program
/// says that nothing writes what it reads.
pub(super) fn may_move(
    kernel: &Kernel,
    definitions: &Definitions,
    summary: &LoopSummary,
    site: &LoadSite,
) -> Result<()> {
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
    if kernel.loads[site.id].constant || from.facts(kernel).is_some_and(|facts| facts.read_only) {
        return Ok(());
    }
    for effect in &summary.effects {
        match effect {
            Effect::Write(pointer, place) => {
                let to = root(kernel, definitions, *pointer);
                if to.is_none_or(|to: Root| to.may_alias(from, kernel)) {
                    let place = kernel.describe_place(*place);
                    return refuse(format!("the loop writes that memory, or may, at {place}"));
                }
            }
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
                    "an instruction that is carried as text may write it, or order who does, at {place}"
                ));
            }
            Effect::Acquire(place) => {
                let place = kernel.describe_place(*place);
                return refuse(format!(
                    "another work-item may have written what is acquired at {place}"
                ));
            }
        }
    }
    Ok(())
}

/// Whether a hint for a load makes sense at all: rules 1 and 2.
pub(super) fn may_hint(kernel: &Kernel, definitions: &Definitions, site: &LoadSite) -> Result<()> {
    let space = root(kernel, definitions, site.pointer).and_then(|root| root.space(kernel));
    let space = space.or_else(|| kernel.ty(site.pointer).space());
    if space == Some(Space::Global) && !site.volatile {
        return Ok(());
    }
    let name = &kernel.loads[site.id].name;
    let why = match site.volatile {
        true => "is loaded as volatile, past the caches that a hint would fill",
        false => "is not in global memory, which alone has caches to fill",
    };
    Err(Error::usage(format!("`{name}` {why}")).at(kernel.describe_place(site.place)))
}

/// Where an access lies, if its address is an index into memory of known length.
pub(super) fn bounds(
    kernel: &Kernel,
    definitions: &Definitions,
    summary: &LoopSummary,
    site: &LoadSite,
) -> Bounds {
    let kind = match summary.inside.get(&site.pointer) {
        Some(inside) => &inside.kind,
        None => match definitions.op(site.pointer) {
            Some(kind) => kind,
            None => return Bounds::Unknown,
        },
    };
    let OpKind::Address {
        base,
        index,
        scale,
        offset,
    } = *kind
    else {
        return Bounds::Unknown;
    };
    let Some(facts) = kernel.param_of(base).and_then(|param| param.facts) else {
        return Bounds::Unknown;
    };
    let size = i64::from(facts.element.bytes());
    let loaded = i64::from(kernel.ty(site.results[0]).bytes()) * site.results.len() as i64;
    match facts.length {
        Some(length) if i64::from(scale) == size && offset % size == 0 && loaded % size == 0 => {
            Bounds::Length {
                base,
                index,
                first: offset / size,
                width: loaded / size,
                length,
            }
        }
        _ => Bounds::Unknown,
    }
}
