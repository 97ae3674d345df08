//! A run in sentences: occupancy, achieved memory bandwidth, data in flight.

use super::number::{bytes, figures, grouped, percent};
use crate::device::CacheState;
use crate::evidence::Evidence;

/// A kernel that waits for loads less than this share of the time is not starved of work that would hide their latency.
const HARDLY: f64 = 0.1;

fn hardly_waits(evidence: &Evidence) -> bool {
    evidence.waiting_for_loads.is_some_and(|share| share < HARDLY)
}

/// Whether there are too few sub-groups to hide the latency, as [`filling`] says it.
#[doc(hidden)]
pub fn lacks_sub_groups(evidence: &Evidence) -> Option<bool> {
    let occupancy = evidence.occupancy()?;
    Some((evidence.is_starved() || occupancy < 0.5) && !hardly_waits(evidence))
}

/// How full the device is, and why not fuller.
#[doc(hidden)]
pub fn filling(evidence: &Evidence) -> Option<String> {
    let occupancy = evidence.occupancy()?;
    let counted = evidence.counted().map(figures);
    let Some((resident, fits)) = evidence.resident().zip(evidence.fits.as_ref()) else {
        let places = evidence.places;
        return counted.map(|counted| {
            let share = percent(occupancy);
            format!(
                "{counted} of {places} sub-groups are resident on each core on average ({share} occupancy)."
            )
        });
    };
    let full = format!(
        "{} of {} sub-groups {} resident on each core{} ({} occupancy)",
        counted.clone().unwrap_or_else(|| resident.to_string()),
        evidence.places,
        if counted.is_none() && resident == 1 {
            "is"
        } else {
            "are"
        },
        if counted.is_some() { " on average" } else { "" },
        percent(occupancy)
    );
    if let Some(starts) = evidence.starts().filter(|_| occupancy < 0.5) {
        return Some(format!("Only {full}: {starts}."));
    }
    let short_of = evidence.short_of().filter(|_| occupancy < 0.5);
    Some(if let Some((_, launched)) = short_of {
        format!(
            "Only {full}, where {} would be if none ended long before the others.",
            figures(launched)
        )
    } else if evidence.is_starved() && hardly_waits(evidence) {
        format!(
            "With {} {full}, where {} would fit; for loads they hardly wait.",
            launched(evidence),
            fits.sub_groups_per_core
        )
    } else if evidence.is_starved() {
        format!(
            "The device is starved of work-groups: with {} only {full}, where {} would fit.",
            launched(evidence),
            fits.sub_groups_per_core
        )
    } else if occupancy >= 0.5 {
        format!("{full}.")
    } else if resident < fits.sub_groups_per_core {
        format!("Only {full}: the launch has {resident} for the fullest one.")
    } else {
        format!("Only {full}; more do not fit because of {}.", fits.limit())
    })
}

/// The work-groups of a launch, and their work-items.
fn launched(evidence: &Evidence) -> String {
    let count = |number: u64, what: &str| match number {
        1 => format!("1 {what}"),
        _ => format!("{} {what}s", grouped(number)),
    };
    let groups = count(evidence.groups, "work-group");
    format!("{groups} of {}", count(u64::from(evidence.group), "work-item"))
}

/// Device memory's throughput and its share of the peak, without a full stop.
#[doc(hidden)]
pub fn bandwidth(evidence: &Evidence) -> Option<String> {
    let used = evidence.bandwidth_used()?;
    let Some((delivered, most)) = evidence.delivered().zip(evidence.bandwidth) else {
        return Some(format!("device memory is busy {} of the time", percent(used)));
    };
    let why = match evidence.cache {
        Some(CacheState::Kept) if used < NOTHING => {
            ": what the launch before left in L2 comes from there (a launch with L2 `flushed` finds nothing in it)"
        }
        _ => "",
    };
    Some(format!(
        "device memory delivers {} of {} GB/s ({}){}{why}",
        figures(delivered),
        figures(most),
        percent(used),
        scattered_limit(evidence, delivered)
    ))
}

/// That memory is at its limit although its bandwidth is not used up, where it is.
fn scattered_limit(evidence: &Evidence, delivered: f64) -> String {
    match (evidence.scattered_bandwidth, evidence.bandwidth) {
        (Some(scattered), Some(most))
            if delivered < 0.9 * most && (0.8..1.1).contains(&(delivered / scattered)) =>
        {
            format!(
                ", about the limit for scattered accesses ({} GB/s)",
                figures(scattered)
            )
        }
        _ => String::new(),
    }
}

/// Less in flight than this share of the saturating amount counts as nothing.
const NOTHING: f64 = 0.01;

/// How many bytes are in flight from or to device memory, and how many would saturate it.
#[doc(hidden)]
pub fn flying(in_flight: f64, needed: f64) -> String {
    if in_flight < NOTHING * needed {
        return format!(
            "Hardly anything is in flight from or to device memory: caches have it. Saturating memory needs {} in flight \
             (bandwidth × latency under load).",
            bytes(needed)
        );
    }
    format!(
        "On average {} are in flight from or to device memory; saturating it needs {} in flight (bandwidth × latency under load).",
        bytes(in_flight),
        bytes(needed)
    )
}

/// The text with its first letter capitalised.
#[doc(hidden)]
pub fn sentence(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or(String::new(), |first| {
        first.to_uppercase().chain(characters).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::starved;

    #[test]
    fn a_limit_is_named_where_it_binds() {
        let said = |groups| {
            let mut evidence = Evidence {
                groups,
                group: 128,
                achieved: Some(30.3),
                ..starved()
            };
            if let Some(fits) = &mut evidence.fits {
                (fits.groups_per_core, fits.sub_groups_per_group) = (16, 4);
                fits.sub_groups_per_core = 64;
            }
            filling(&evidence).expect("it is known")
        };
        let fewer = said(10 * u64::from(starved().cores));
        assert!(
            fewer.ends_with("(47 % occupancy): the launch has 40 for the fullest one."),
            "{fewer}"
        );
        let all = said(100 * u64::from(starved().cores));
        assert!(!all.contains("the launch has"), "{all}");
    }

    #[test]
    fn one_is_not_said_as_many() {
        let mut one = Evidence {
            groups: 1,
            group: 32,
            ..starved()
        };
        if let Some(fits) = &mut one.fits {
            fits.sub_groups_per_group = 1;
        }
        let said = filling(&one).expect("it is known");
        assert!(
            said.contains("with 1 work-group of 32 work-items only 1 of 64 sub-groups is resident"),
            "{said}"
        );
    }
}
