//! Plans of kernels whose work-groups wait: how many of them a core holds at once, of the kernel and of the planned one.
//!
//! A work-group that waits for one that is not resident waits for ever, because that one starts when a resident one ends. Launches
//! are sized for the kernel as it is, so a planned one must not take the room that they count on:
//!
//! | what is awaited is written by | a plan may take |
//! |---|---|
//! | another work-group of the launch | what leaves as many work-groups resident on a core |
//! | another kernel or the host, or it is not known who | no more registers and shared memory than the kernel |
//!
//! A plan that takes too many registers is tried with fewer (`registers:N`), if nothing is spilled that was not before: a spill
//! in the loop that waits would slow down what all others wait for. The answer comes from the driver for a GPU, from NVIDIA's
//! assembler (`HEADSTART_PTXAS`) for a simulated one, and from its model; where there is no answer, the plan is refused.

use crate::error::{Error, Result};
use crate::front::ptx::Original;
use crate::ir::Kernel;
use crate::ir::limits::REGISTERS;
use crate::prefetch::Plan;
use crate::report::waiting::{self, Waiting, WaitsFor};
use crate::tune::bench::{Bench, Held, REGISTERS_AT_A_TIME};
use crate::tune::derived::Derived;
use crate::tune::modules::granted::Granted;
use crate::tune::subject::workload::Workload;

/// Whether others than the launch's own work-groups may need the room.
fn concerns_others(waits: &[Waiting]) -> bool {
    waits.iter().any(|wait| wait.waits_for != WaitsFor::WorkGroup)
}

/// A derived plan as it may be used: as it is, or with fewer registers. `derive` derives others.
///
/// # Errors
/// The kernel's work-groups wait, and the plan leaves fewer of them resident, or it is not known whether it does.
pub(in crate::tune) fn kept(
    bench: &dyn Bench,
    workload: &Workload,
    plain: &Kernel,
    derived: Derived,
    derive: impl Fn(&Plan) -> Result<Derived>,
) -> Result<Derived> {
    if derived.plan.is_none() {
        return Ok(derived);
    }
    let waits = Waiting::of(plain);
    let (Some(Waiting { place, .. }), Some(waits_at)) = (waits.first(), waiting::sentence(&waits)) else {
        return Ok(derived);
    };
    let alone = concerns_others(&waits);
    let held = |kernel: &Kernel| {
        let held = bench.platform().held(workload, kernel)?;
        held.ok_or_else(|| unknown(&waits_at).at(place))
    };
    let own = held(plain)?;
    let keeps = |planned: &[Held]| {
        own.iter()
            .zip(planned)
            .all(|(own, planned)| own.is_kept_by(planned, alone))
    };
    let planned = held(&derived.kernel)?;
    if keeps(&planned) {
        return Ok(derived);
    }
    if let Some(registers) = bench
        .platform()
        .registers_per_core()
        .and_then(|all| fewer(&own, all, workload.group.iter().product(), alone))
        && derived.plan.registers().is_none()
        && let Ok(held_to) = derive(&derived.plan.clone().with_registers(Some(registers)))
    {
        let planned = held(&held_to.kernel)?;
        let spills_no_more = own
            .iter()
            .zip(&planned)
            .all(|(own, planned)| planned.spilled_bytes <= own.spilled_bytes);
        if keeps(&planned) && spills_no_more {
            return Ok(held_to);
        }
    }
    Err(refusal(&own, &planned, alone, &waits_at).at(place))
}

/// What a rewritten entry of this kernel assumes of each launch, if its work-groups wait.
pub(in crate::tune) fn granted(kernel: &Kernel) -> Option<Granted> {
    let all = Waiting::of(kernel);
    Some(Granted::Residency {
        waits: waiting::sentence(&all)?,
        for_each_other: !concerns_others(&all),
    })
}

/// Whether a module with this text takes no more registers and shared memory than it did as it was, by NVIDIA's assembler alone.
///
/// # Errors
/// It takes more, or no assembler is named.
pub(in crate::tune) fn takes_no_more(
    original: &Original,
    kernel: &Kernel,
    (text, added_shared_bytes): (&str, u64),
) -> Result<()> {
    let held = |text: &str, shared_bytes| -> Result<Option<Held>> {
        let taken = assembled(&original.target, text, &original.entry)?;
        Ok(taken.map(|(registers, spilled_bytes)| Held {
            groups_per_core: 0,
            registers,
            spilled_bytes,
            shared_bytes,
        }))
    };
    let waits = waiting::sentence(&Waiting::of(kernel)).unwrap_or_default();
    let both = (held(&original.text, 0)?, held(text, added_shared_bytes)?);
    match both {
        (Some(own), Some(planned)) if own.is_kept_by(&planned, true) => Ok(()),
        (Some(own), Some(planned)) => Err(refusal(&[own], &[planned], true, &waits)),
        _ => Err(unknown(&waits)),
    }
}

/// The registers and spilled bytes of an entry, by the assembler that is named, if one is.
#[cfg(feature = "cuda")]
fn assembled(target: &str, text: &str, entry: &str) -> Result<Option<(u32, u32)>> {
    let taken = crate::device::cuda::ptxas::resources_for(target, text, entry)?;
    Ok(taken.map(|taken| (taken.registers, taken.local_bytes)))
}

#[cfg(not(feature = "cuda"))]
fn assembled(_target: &str, _text: &str, _entry: &str) -> Result<Option<(u32, u32)>> {
    Ok(None)
}

fn unknown(waits_at: &str) -> Error {
    Error::usage(format!(
        "it is not known how many work-groups of a planned kernel stay resident, and {waits_at}"
    ))
    .accepted("a GPU, or NVIDIA's assembler, named by HEADSTART_PTXAS")
}

/// The most registers with which a kernel leaves as much room; none if it has as few as can be asked for.
fn fewer(own: &[Held], per_core: u32, group: u32, alone: bool) -> Option<u32> {
    let of = |own: &Held| match alone {
        true => own.registers.next_multiple_of(REGISTERS_AT_A_TIME),
        false => {
            let items = own
                .groups_per_core
                .saturating_mul(group.next_multiple_of(32))
                .max(1);
            (per_core / items / REGISTERS_AT_A_TIME * REGISTERS_AT_A_TIME).max(own.registers)
        }
    };
    own.iter()
        .map(|own| of(own).min(*REGISTERS.end()))
        .min()
        .filter(|registers| REGISTERS.contains(registers))
}

/// What a plan takes too much of.
fn refusal(own: &[Held], planned: &[Held], alone: bool, waits_at: &str) -> Error {
    let mut both = own.iter().zip(planned);
    let what = both.find_map(|(own, planned)| match () {
        () if own.is_kept_by(planned, alone) => None,
        () if planned.groups_per_core < own.groups_per_core => Some(format!(
            "leaves {} work-groups resident on a core instead of {}",
            planned.groups_per_core, own.groups_per_core
        )),
        () if planned.registers > own.registers => Some(format!(
            "takes {} registers instead of {}",
            planned.registers, own.registers
        )),
        () => Some(format!(
            "takes {} bytes of shared memory instead of {}",
            planned.shared_bytes, own.shared_bytes
        )),
    });
    Error::usage(format!("the plan {}, and {waits_at}", what.unwrap_or_default()))
        .accepted("a plan that takes fewer registers and less shared memory")
}

#[cfg(test)]
mod tests;
