//! What to change before any prefetch: idle lanes, accesses that are not coalesced, loads narrower than they could be, work that is
//! spread unevenly.
//!
//! A prefetch moves the same requests to another time. Where most of a request is wasted, fewer requests gain more, for less.

use serde::{Deserialize, Serialize};

use super::{Access, Evidence, LoadTime, Profile, balance};
use crate::model::occupancy::Limit;
use crate::number::{figures, percent};

/// One remedy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Remedy {
    /// Findings and remedies, in sentences with numbers.
    pub finding: String,
    /// The source place that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
}

/// Below this share of lanes with a work-item the others are worth a word.
const FULL: f64 = 0.85;
/// Work-items of a work-group that suit most kernels: a multiple of every sub-group size.
const USUAL: u32 = 128;
/// Lines from which on an access of a sub-group counts as scattered.
const SCATTERED: f64 = 8.0;
/// A load matters from this share of the waiting on.
const WAITED: f64 = 0.05;
/// And where device memory delivers this many bytes for each that is asked for.
const WASTED: f64 = 2.0;

/// The remedies that come before any prefetch; the first is the one to begin with.
pub fn first(evidence: &Evidence, profile: Option<&Profile>, accesses: &[Access]) -> Vec<Remedy> {
    let Some(profile) = profile else {
        return Vec::new();
    };
    let loads = || profile.loads.iter();
    let own = |load: &LoadTime| Access::of(accesses, load);
    let mut remedies: Vec<Remedy> = idle_lanes(evidence, profile).into_iter().collect();
    remedies.extend(small_groups(evidence));
    remedies.extend(balance::remedy(evidence, profile.balance.as_ref()));
    remedies.extend(by_rule(profile));
    remedies.extend(loads().filter_map(|load| uncoalesced(load, own(load))));
    let mut rows: Vec<&str> = Vec::new();
    for load in loads() {
        let Some(access) = own(load).filter(|access| is_narrow(load, access)) else {
            continue;
        };
        // The pieces of a row are one finding.
        if !rows.contains(&access.name.as_str()) {
            rows.push(&access.name);
            remedies.push(narrow(access));
        }
    }
    remedies
}

/// Work-groups that do not fill their sub-groups.
fn idle_lanes(evidence: &Evidence, profile: &Profile) -> Option<Remedy> {
    let (size, _) = profile.sub_group?;
    let (group, size) = (evidence.group, size.max(1));
    let lanes = group.div_ceil(size) * size;
    let active = f64::from(group) / f64::from(lanes.max(1));
    (group > 0 && active < FULL).then(|| {
        let found = match group < size {
            true => format!("{group} of the {size} work-items of a sub-group {}", if group == 1 { "exists" } else { "exist" }),
            false => format!("{} of the work-items of the sub-groups exist", percent(active)),
        };
        Remedy {
            finding: format!(
                "{found}: work-groups of {group} leave {} of the lanes idle. The same work in work-groups of {USUAL}, or of \
                 another multiple of {size}, fills them.",
                percent(1.0 - active)
            ),
            place: None,
        }
    })
}

/// Small work-groups: the most that a core takes leave half of its places empty.
fn small_groups(evidence: &Evidence) -> Option<Remedy> {
    let fits = evidence.fits.as_ref()?;
    let (fitting, places) = (fits.sub_groups_per_core, evidence.places);
    let fills = evidence.resident() == Some(fitting) && evidence.starts().is_none();
    (fills && fits.limits == [Limit::WorkGroups] && 2 * fitting <= places).then(|| Remedy {
        finding: format!(
            "Work-groups of {} fill {fitting} of a core's {places} places for sub-groups, since it takes at most {} of them: the same \
             work in larger ones has more on its way at once.",
            evidence.group, fits.groups_per_core
        ),
        place: None,
    })
}

/// Accesses that a profiler's own rule calls uncoalesced.
fn by_rule(profile: &Profile) -> Option<Remedy> {
    let share = profile.uncoalesced.filter(|_| profile.is_uncoalesced())?;
    Some(Remedy {
        finding: format!(
            "Let neighbouring work-items access neighbouring elements: the profiler's rule counts {} of the sectors of global \
             memory as excessive, because accesses are not coalesced.",
            percent(share)
        ),
        place: None,
    })
}

/// A load whose neighbours read far apart, by no index of the data.
fn uncoalesced(load: &LoadTime, access: Option<&Access>) -> Option<Remedy> {
    let matters = load.waiting >= WAITED || load.fetched >= WASTED;
    let is_indexed = access.is_some_and(|access| access.is_indexed);
    if load.lines < SCATTERED || !matters || is_indexed {
        return None;
    }
    let stride = access.and_then(|access| access.stride).map(i64::unsigned_abs);
    let apart = stride.map_or(String::new(), |bytes| {
        format!(", {} bytes apart", figures(bytes as f64))
    });
    let fetched = match load.fetched {
        fetched if fetched >= WASTED => format!(
            ", and device memory delivers {} bytes for each byte requested",
            figures(fetched)
        ),
        _ => String::new(),
    };
    Some(Remedy {
        finding: format!(
            "One access of a sub-group to `{}` touches {} cache lines{apart}{fetched}. Let neighbouring work-items read \
             neighbouring elements (exchange the loops, or store a structure of arrays), and it is one or two.",
            load.name,
            figures(load.lines)
        ),
        place: Some(load.place.clone()).filter(|place| !place.is_empty()),
    })
}

/// Whether a load reads a piece of a row that one load could read, and matters.
fn is_narrow(load: &LoadTime, access: &Access) -> bool {
    access.row > access.bytes && (load.waiting >= WAITED || load.fetched >= WASTED)
}

fn narrow(access: &Access) -> Remedy {
    Remedy {
        finding: format!(
            "`{}` is read in loads of {} bytes that lie side by side: one load of {} bytes asks for the same with {} of the \
             accesses, where its rows are aligned to that.",
            access.name,
            access.bytes,
            access.row,
            match access.row / access.bytes {
                2 => "half".to_owned(),
                4 => "a quarter".to_owned(),
                pieces => format!("1/{pieces}"),
            }
        ),
        place: Some(access.place.clone()).filter(|place| !place.is_empty()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::Balance;
    use crate::samples::starved;

    fn load(lines: f64) -> LoadTime {
        LoadTime {
            name: "rows".to_owned(),
            place: "k.rs:7:9".to_owned(),
            lines,
            fetched: 1.0,
            memory_bytes: 1e6,
            waiting: 0.5,
        }
    }

    fn access(stride: Option<i64>, is_indexed: bool, row: u32) -> Access {
        Access {
            name: "rows".to_owned(),
            place: "k.rs:7:9".to_owned(),
            bytes: 4,
            stride,
            is_indexed,
            row,
        }
    }

    fn said(evidence: &Evidence, profile: &Profile, accesses: &[Access]) -> String {
        let found = first(evidence, Some(profile), accesses);
        found
            .iter()
            .map(|remedy| format!("{}\n", remedy.finding))
            .collect()
    }

    #[test]
    fn lanes_without_a_work_item_are_counted() {
        let profile = Profile {
            sub_group: Some((32, 32)),
            ..Profile::default()
        };
        let in_groups_of = |group| said(&Evidence { group, ..starved() }, &profile, &[]);
        let one = in_groups_of(1);
        assert!(
            one.contains("1 of the 32 work-items of a sub-group exists"),
            "{one}"
        );
        assert!(one.contains("leave 97 % of the lanes idle"), "{one}");
        assert!(
            in_groups_of(33).contains("52 % of the work-items"),
            "{}",
            in_groups_of(33)
        );
        assert_eq!(in_groups_of(128) + &in_groups_of(120), "");
    }

    #[test]
    fn work_groups_that_are_too_small_for_a_core_are_named() {
        let mut small = Evidence {
            groups: 33792,
            group: 32,
            ..starved()
        };
        let fits = small.fits.as_mut().expect("known");
        (fits.groups_per_core, fits.sub_groups_per_group) = (32, 1);
        (fits.sub_groups_per_core, fits.limits) = (32, vec![Limit::WorkGroups]);
        let told = said(&small, &Profile::default(), &[]);
        assert!(
            told.contains("Work-groups of 32 fill 32 of a core's 64 places")
                && told.contains("at most 32 of them"),
            "{told}"
        );
        small.groups = 132;
        assert_eq!(said(&small, &Profile::default(), &[]), "");
    }

    #[test]
    fn neighbours_that_read_far_apart_come_before_a_prefetch_and_indices_do_not() {
        let profile = Profile {
            loads: vec![load(32.0)],
            ..Profile::default()
        };
        let strided = said(&starved(), &profile, &[access(Some(128), false, 4)]);
        assert!(
            strided.contains("`rows` touches 32 cache lines, 128 bytes apart"),
            "{strided}"
        );
        assert_eq!(said(&starved(), &profile, &[access(None, true, 4)]), "");
        let near = Profile {
            loads: vec![load(4.0)],
            ..Profile::default()
        };
        assert_eq!(said(&starved(), &near, &[access(Some(16), false, 4)]), "");
        let rows = said(&starved(), &near, &[access(Some(16), false, 16)]);
        assert!(
            rows.contains("one load of 16 bytes asks for the same with a quarter"),
            "{rows}"
        );
    }

    #[test]
    fn the_profiler_s_rule_is_believed() {
        let profile = Profile {
            uncoalesced: Some(0.75),
            ..Profile::default()
        };
        assert!(said(&starved(), &profile, &[]).contains("75 % of the sectors"));
    }

    #[test]
    fn a_tail_and_uneven_work_are_told_apart() {
        let profile = |long: f64| Profile {
            balance: Some(Balance {
                work_items: 2.0 * long,
                sub_groups: long,
                groups: long,
                active: 0.5,
            }),
            ..Profile::default()
        };
        let half = |groups| Evidence {
            groups,
            achieved: Some(20.0),
            memory_bytes: None,
            ..starved()
        };
        let uneven = said(&half(132 * 16), &profile(6.0), &[]);
        assert!(uneven.contains("the longest work-item takes 12.00×"), "{uneven}");
        assert!(uneven.contains("20 of 64 sub-groups are resident"), "{uneven}");
        assert!(uneven.contains("about 199 µs instead of 1.27 ms"), "{uneven}");
        let tail = Profile {
            balance: Some(Balance {
                work_items: 1.0,
                ..profile(1.0).balance.expect("there")
            }),
            ..Profile::default()
        };
        let tail = said(&half(132 * 16 + 132), &tail, &[]);
        assert!(
            tail.contains("2,244 work-groups are 1.06 rounds of 2,112"),
            "{tail}"
        );
        assert!(
            tail.contains("the last round has 132 (6.2 % of the places)"),
            "{tail}"
        );
        assert_eq!(said(&starved(), &profile(6.0), &[]), "");
        // The last of many rounds cannot cost a third of the time, whatever else keeps cores empty.
        let even = Profile {
            balance: Some(Balance {
                work_items: 1.0,
                ..profile(1.0).balance.expect("there")
            }),
            ..Profile::default()
        };
        let many = half(132 * 16 * 1213 + 132);
        assert_eq!(said(&many, &even, &[]), "");
        let starting = Evidence {
            starts_ns: Some(1_200_000.0),
            ..many
        };
        let starting = said(&starting, &profile(6.0), &[]);
        assert!(
            starting.contains("work-groups start one after the other"),
            "{starting}"
        );
        assert_eq!(starting.lines().count(), 1, "{starting}");
    }
}
