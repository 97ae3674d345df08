//! Remedies instead of prefetching or in addition: another layout, fewer bytes, less arithmetic. What comes before any prefetch is
//! in `evidence::first`.

use super::steps::Case;
use crate::device::sim::timer::StallReason;
use crate::evidence::{Access, LoadTime, Remedy};
use crate::report::number::{figures, percent};

/// A reason is worth a remedy from this share of the time on.
const MATTERS: f64 = 0.2;
/// A unit that is busy for this share of the time limits the kernel.
const BUSY: f64 = 0.6;
/// Lines from which on an access of a sub-group counts as scattered.
const SCATTERED_LINES: f64 = 8.0;
/// Below this share of active work-items a sub-group diverges.
const DIVERGES: f64 = 0.85;
/// Conditions in a loop that are worth a remedy where hardly any work-item goes another way.
const MANY_CONDITIONS: u32 = 3;
/// They matter where a unit is busy for this share of the time.
const COMPUTES: f64 = 0.4;

/// Remedies, by subject.
pub(crate) fn instead(case: &Case<'_>) -> Vec<Remedy> {
    let loads = case.profile.into_iter().flat_map(|profile| &profile.loads);
    let mut remedies: Vec<Remedy> = loads.filter_map(|load| scattered(case, load)).collect();
    let general = [
        idle_cores(case),
        side_by_side(case),
        fewer_bytes(case),
        fewer_operations(case),
        less_occupied(case),
        larger_sub_groups(case),
        bank_conflicts(case),
        waiting_elsewhere(case),
    ];
    remedies.extend(diverging(case));
    remedies.extend(
        general
            .into_iter()
            .flatten()
            .map(|finding| Remedy { finding, place: None }),
    );
    remedies
}

/// Cores without any sub-group.
fn idle_cores(case: &Case<'_>) -> Option<String> {
    let share = case.profile?.idle.filter(|&share| share >= MATTERS)?;
    Some(format!(
        "The cores have no sub-group at all {} of the time: more work-groups, or work that is shared evenly among them, would \
         fill them.",
        percent(share)
    ))
}

/// A load whose accesses are scattered because their indices are: the caches fetch more than is asked for.
fn scattered(case: &Case<'_>, load: &LoadTime) -> Option<Remedy> {
    let is_indexed = Access::of(case.accesses, load).is_some_and(|access| access.is_indexed);
    if !is_indexed || load.lines < SCATTERED_LINES || load.waiting < 0.05 && load.fetched < 2.0 {
        return None;
    }
    let fetched = match load.fetched {
        fetched if fetched >= 2.0 => format!(
            ", and device memory delivers {} bytes for each byte requested",
            figures(fetched)
        ),
        _ => String::new(),
    };
    Some(Remedy {
        finding: format!(
            "One access of a sub-group to `{}` touches {} cache lines{fetched}. Indices that are sorted, or indices with which \
             neighbouring work-items share lines, would reduce that.",
            load.name,
            figures(load.lines)
        ),
        place: Some(load.place.clone()).filter(|place| !place.is_empty()),
    })
}

/// Work-items of a sub-group that part: it goes both ways, one after the other. And conditions that hardly ever part it, and
/// are computed all the same.
fn diverging(case: &Case<'_>) -> Option<Remedy> {
    let found = case.profile?.diverging.as_ref()?;
    let is_busy = case
        .profile
        .and_then(|profile| profile.units.first())
        .is_some_and(|unit| unit.busy_ns >= COMPUTES * case.evidence.time_ns);
    let finding = if found.active < DIVERGES {
        format!(
            "{} of a sub-group's work-items are active at an instruction, on average: where they part, the sub-group goes both ways, \
             one after the other. A selection (`select`, `min`, `max`) in the place of a branch, or data that is sorted so that \
             neighbours go the same way, would keep them together.",
            percent(found.active)
        )
    } else if found.conditions >= MANY_CONDITIONS && is_busy {
        format!(
            "{} conditions are checked in the loop by each work-item, and nearly all of them go the same way ({} active at an \
             instruction): a buffer that is padded so that nothing has to be checked, or `select`, `min` and `max`, would save that.",
            found.conditions,
            percent(found.active)
        )
    } else {
        return None;
    };
    Some(Remedy {
        finding,
        place: found.place.clone(),
    })
}

/// Loads that wait for each other and may not start earlier.
fn side_by_side(case: &Case<'_>) -> Option<String> {
    let main = case.profile?.main_loop()?;
    let mut of_loop = case
        .loads?
        .iter()
        .filter(|load| load.loop_place == main.place)
        .peekable();
    of_loop.peek()?;
    let is_chained = case
        .loads?
        .iter()
        .any(|load| load.loop_place == main.place && load.is_chained);
    let refused = of_loop.all(|load| load.refusal.is_some());
    let remedy = match is_chained {
        true => {
            "several independent chains in each work-item, or more work-groups, would have more on its way at once"
        }
        false => {
            "more work-groups, several work-items' work side by side, or a copy of what makes the addresses that runs some \
             iterations ahead would have more on its way at once"
        }
    };
    (refused
        && case
            .evidence
            .waiting_for_loads
            .is_some_and(|share| share >= MATTERS))
    .then(|| format!("No plan may start a load of the loop earlier: {remedy}."))
}

fn fewer_bytes(case: &Case<'_>) -> Option<String> {
    let used = case.evidence.bandwidth_used()?;
    (used >= 0.8).then(|| {
        format!(
            "Device memory is busy ({} of its bandwidth): only fewer bytes help, by smaller types, or by reuse from \
             shared memory and caches.",
            percent(used)
        )
    })
}

fn fewer_operations(case: &Case<'_>) -> Option<String> {
    let busiest = case.profile?.units.first()?;
    let share = busiest.busy_ns / case.evidence.time_ns;
    (share >= BUSY && share.is_finite()).then(|| {
        format!(
            "The units for {} are busy {} of the time: only less work for them helps, such as approximate functions or \
             narrower types.",
            busiest.name,
            percent(share.min(1.0))
        )
    })
}

/// Resources that keep sub-groups out.
fn less_occupied(case: &Case<'_>) -> Option<String> {
    let (evidence, fits) = (case.evidence, case.evidence.fits.as_ref()?);
    let occupancy = evidence.occupancy()?;
    if evidence.is_starved()
        || occupancy >= 0.5
        || evidence.waiting_for_loads.is_some_and(|share| share < MATTERS)
    {
        return None;
    }
    Some(format!(
        "Occupancy is {}, limited by {}: less of it for each work-group would make room for more sub-groups.",
        percent(occupancy),
        fits.limit()
    ))
}

fn larger_sub_groups(case: &Case<'_>) -> Option<String> {
    let (own, largest) = case.profile?.sub_group?;
    (own < largest).then(|| {
        format!(
            "Sub-groups have {own} work-items, the device can have {largest}: a larger one requests more with each access and needs fewer instructions."
        )
    })
}

fn bank_conflicts(case: &Case<'_>) -> Option<String> {
    let conflicts = case.profile?.bank_conflicts?;
    (conflicts >= 0.5).then(|| {
        format!(
            "Each access to shared memory takes {} more passes because of bank conflicts: a layout with padding, or with \
             neighbouring work-items side by side, avoids them.",
            figures(conflicts)
        )
    })
}

/// The largest reason that is not a load, where it matters.
fn waiting_elsewhere(case: &Case<'_>) -> Option<String> {
    let remedy = |reason| match reason {
        StallReason::Barrier => Some("fewer barriers, or more resident work-groups of a smaller size"),
        StallReason::NoInstruction => Some("less code in the loop, by less unrolling"),
        StallReason::ShortScoreboard => {
            Some("fewer special functions, conversions and accesses to shared memory")
        }
        StallReason::MemoryThrottle => Some("fewer, wider accesses"),
        StallReason::BranchResolving => Some("fewer branches"),
        StallReason::Wait => Some("independent operations side by side, by unrolling"),
        StallReason::LongScoreboard
        | StallReason::AsyncCopy
        | StallReason::MathPipeThrottle
        | StallReason::NotSelected => None,
    };
    if case.evidence.starts().is_some() {
        return None;
    }
    let stalls = case.profile?.stalls.iter();
    let largest = stalls
        .filter(|stall| stall.share >= MATTERS)
        .find_map(|stall| remedy(stall.reason).map(|remedy| (stall, remedy)))?;
    Some(format!(
        "Sub-groups spend {} of their time on `{}`; the remedy is {}.",
        percent(largest.0.share),
        largest.0.reason.name(),
        largest.1
    ))
}
