//! Bounds on a kernel's speed: the device's roofs, and the time without any waiting.
//!
//! The roofline is that of instructions (Ding and Williams, "An Instruction Roofline Model for GPUs", PMBS 2019): a
//! kernel of integers and conversions has one too. A plan changes when data are moved, not how much there is to compute,
//! so the operations of the plain kernel stand for all plans.

use serde::{Deserialize, Serialize};

use super::{Evidence, LoopLoad, Profile};

/// Lines of one access from which on device memory sees scattered pieces instead of a stream.
const SCATTERED_LINES: f64 = 8.0;

/// A bound that is this many times what any plan reached says nothing of plans.
const FAR: f64 = 3.0;

/// The lower bounds of a kernel's time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bounds {
    /// The time of each resource if everything else took none, the longest first.
    pub roofs: Vec<Roof>,
    /// The plain kernel's time divided by the longest of them: no plan is faster.
    pub best_speedup: f64,
    /// Amdahl's bound: the speedup if no sub-group waited for a load any more and nothing else changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without_waiting: Option<f64>,
    /// How far ahead a load has to start so that it is there in time: latency over the rest of an iteration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distance: Option<u32>,
    /// How often a sub-group goes through the loop that the distance is about: a load in it starts no earlier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iterations: Option<f64>,
}

/// One limit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Roof {
    /// The limited resource.
    pub name: String,
    /// The least time that the kernel takes because of it, in nanoseconds, with its launch.
    pub least_ns: f64,
}

/// Where the plans sit under the device's roofs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Roofline {
    /// Operations of the kernel: instructions, each counted for every work-item that it acts on.
    pub operations: f64,
    /// Device memory's best rate, in bytes per nanosecond (GB/s).
    pub bandwidth: f64,
    /// The same where each access is to another place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) scattered_bandwidth: Option<f64>,
    /// Operations a nanosecond at which the unit that this kernel needs longest is always busy.
    pub(crate) operations_per_ns: f64,
    /// The plans that ran.
    pub points: Vec<RooflinePoint>,
}

/// One plan under the roofs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RooflinePoint {
    /// The plan.
    pub plan: crate::prefetch::Plan,
    /// Operations for each byte that device memory moves.
    pub intensity: f64,
    /// Operations a nanosecond.
    pub rate: f64,
}

impl Bounds {
    /// The bounds of a run; none where too little is known of it. `loads` are those of the kernel's text, if it is known.
    pub fn of(evidence: &Evidence, profile: Option<&Profile>, loads: &[LoopLoad]) -> Option<Bounds> {
        let mut roofs = Vec::new();
        if let Some(least_ns) = memory_ns(evidence, profile) {
            roofs.push(Roof {
                name: "bandwidth of device memory".to_owned(),
                least_ns,
            });
        }
        if let Some(least_ns) = profile.and_then(|profile| profile.l2_busy_ns) {
            roofs.push(Roof {
                name: "requests to L2".to_owned(),
                least_ns,
            });
        }
        if let Some(starts_ns) = evidence.starts_ns {
            roofs.push(Roof {
                name: "starts of work-groups".to_owned(),
                // A rate that is as exact as the model bounds no run from below its own time.
                least_ns: starts_ns.min(evidence.time_ns),
            });
        }
        for unit in profile.iter().flat_map(|profile| &profile.units) {
            roofs.push(Roof {
                name: unit.name.clone(),
                least_ns: unit.busy_ns,
            });
        }
        // A profiler reports only the used issue slots for all units together: beside memory's time this bounds the rest.
        let has_units = profile.is_some_and(|profile| !profile.units.is_empty());
        if let (false, false, Some(issued)) = (has_units, roofs.is_empty(), evidence.issued) {
            roofs.push(Roof {
                name: "issue of instructions".to_owned(),
                least_ns: evidence.time_ns * issued,
            });
        }
        let serial = profile.and_then(|profile| serial_ns(evidence, profile, loads));
        let links = loads.iter().map(|load| load.chain.len() + 1).max();
        if let Some(least_ns) = serial {
            roofs.push(Roof {
                name: "a chain of loads that no plan may start earlier".to_owned(),
                least_ns,
            });
        } else if let (false, Some(links), Some(latency_ns)) = (roofs.is_empty(), links, evidence.latency_ns)
        {
            // Alone it says nothing: the first values come within a microsecond, whatever the launch moves.
            roofs.push(Roof {
                name: "latency of the first values".to_owned(),
                least_ns: links as f64 * latency_ns,
            });
        }
        roofs.retain(|roof| roof.least_ns.is_finite() && roof.least_ns > 0.0);
        let launch_ns = evidence.launching_ns();
        roofs.iter_mut().for_each(|roof| roof.least_ns += launch_ns);
        roofs.sort_by(|one, other| other.least_ns.total_cmp(&one.least_ns));
        let longest = roofs.first()?.least_ns;
        let whole_ns = evidence.time_ns + launch_ns;
        Some(Bounds {
            best_speedup: (whole_ns / longest).max(1.0),
            roofs,
            // Where no load may start earlier, the waiting stays.
            without_waiting: evidence
                .waiting_for_loads
                .filter(|&waiting| waiting < 1.0 && serial.is_none())
                .map(|waiting| whole_ns / (whole_ns - evidence.time_ns * waiting)),
            distance: profile
                .filter(|_| serial.is_none())
                .and_then(|profile| distance(evidence, profile)),
            iterations: profile
                .filter(|_| serial.is_none())
                .and_then(Profile::main_loop)
                .map(|main| main.iterations),
        })
    }

    /// What limits the kernel most, in words, and the speedup that it allows: a limit of the device, unless it is so far above the
    /// `reached` speedup that the waiting is the nearer one.
    #[doc(hidden)]
    pub fn nearest(&self, reached: f64) -> Option<(&str, f64)> {
        let roof = self.roofs.first()?;
        let nearer = self
            .without_waiting
            .filter(|factor| self.is_far(reached) && *factor < self.best_speedup);
        Some(match nearer {
            Some(factor) => ("no waiting for loads at all", factor),
            None => (&roof.name, self.best_speedup),
        })
    }

    /// Whether the device's limits are too far above the `reached` speedup to say anything of plans.
    pub(crate) fn is_far(&self, reached: f64) -> bool {
        self.best_speedup > FAR * reached
    }

    /// The bounds that a plan leaves standing that took `fastest_ns`. It moves or computes less than the plain kernel
    /// where it is faster than a roof that was counted there.
    #[must_use]
    pub fn beside_a_plan(mut self, baseline_ns: f64, fastest_ns: f64) -> Bounds {
        self.roofs.retain(|roof| roof.least_ns <= fastest_ns);
        let longest = self.roofs.first().map_or(fastest_ns, |roof| roof.least_ns);
        self.best_speedup = (baseline_ns / longest).max(1.0);
        self
    }
}

/// Device memory's time for the bytes that the kernel moves: scattered ones at the rate of scattered ones.
fn memory_ns(evidence: &Evidence, profile: Option<&Profile>) -> Option<f64> {
    let (bytes, bandwidth) = (evidence.memory_bytes?, evidence.bandwidth?);
    let loads = profile.iter().flat_map(|profile| &profile.loads);
    let scattered: f64 = loads
        .filter(|load| load.lines >= SCATTERED_LINES)
        .map(|load| load.memory_bytes)
        .sum();
    let scattered = scattered.min(bytes);
    let scattered_bandwidth = evidence.scattered_bandwidth.unwrap_or(bandwidth);
    Some((bytes - scattered) / bandwidth + scattered / scattered_bandwidth)
}

/// The time that sub-groups wait for loads, where none of those that they wait for may start earlier, because the address of
/// one depends on what was loaded before. An address that arithmetic alone makes from the one before is no such chain: a copy of
/// that arithmetic may run ahead.
fn serial_ns(evidence: &Evidence, profile: &Profile, loads: &[LoopLoad]) -> Option<f64> {
    let waiting = evidence.waiting_for_loads?;
    let main = profile.main_loop()?;
    let mut of_loop = loads
        .iter()
        .filter(|load| load.loop_place == main.place)
        .peekable();
    of_loop.peek()?;
    let is_chained = loads
        .iter()
        .any(|load| load.loop_place == main.place && load.is_chained);
    let refused = is_chained && of_loop.all(|load| load.refusal.is_some());
    refused.then_some(evidence.time_ns * waiting * main.waiting)
}

/// Iterations ahead at which a load is there in time.
fn distance(evidence: &Evidence, profile: &Profile) -> Option<u32> {
    let (latency_ns, main) = (evidence.latency_ns?, profile.main_loop()?);
    let distance = (latency_ns / main.busy_ns).ceil();
    (distance.is_finite() && distance >= 1.0).then_some(distance as u32)
}

impl Roofline {
    /// The roofs of a device for a kernel, without plans; none where the device does not tell.
    pub fn of(evidence: &Evidence, profile: Option<&Profile>) -> Option<Roofline> {
        let profile = profile?;
        let operations = profile.operations.filter(|&operations| operations > 0.0)?;
        let busiest = profile.units.iter().map(|unit| unit.busy_ns).fold(0.0, f64::max);
        let is_scattered = profile
            .loads
            .iter()
            .any(|load| load.lines >= SCATTERED_LINES && load.memory_bytes > 0.0);
        (busiest > 0.0).then_some(Roofline {
            operations,
            bandwidth: evidence.bandwidth?,
            scattered_bandwidth: evidence.scattered_bandwidth.filter(|_| is_scattered),
            operations_per_ns: operations / busiest,
            points: Vec::new(),
        })
    }

    /// Adds a plan that took this time and moved these bytes.
    pub fn add(&mut self, plan: crate::prefetch::Plan, time_ns: f64, bytes: f64) {
        if time_ns > 0.0 && bytes > 0.0 {
            self.points.push(RooflinePoint {
                plan,
                intensity: self.operations / bytes,
                rate: self.operations / time_ns,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::profile::{LoadTime, LoopTime, UnitTime};
    use super::*;
    use crate::samples::starved;

    fn profile() -> Profile {
        Profile {
            operations: Some(1e9),
            units: vec![UnitTime {
                name: "special functions and conversions".to_owned(),
                busy_ns: 70_000.0,
            }],
            loops: vec![LoopTime {
                place: "k.rs:3:5".to_owned(),
                depth: 0,
                iterations: 1024.0,
                instructions: 100,
                waiting: 1.0,
                busy_ns: 100.0,
            }],
            loads: vec![LoadTime {
                name: "values".to_owned(),
                place: "k.rs:4:9".to_owned(),
                lines: 32.0,
                fetched: 16.0,
                memory_bytes: 132.0 * 128.0 * 1024.0 * 32.0,
                waiting: 1.0,
            }],
            ..Profile::default()
        }
    }

    fn load(refusal: Option<&str>) -> LoopLoad {
        LoopLoad {
            name: "values".to_owned(),
            place: "k.rs:4:9".to_owned(),
            loop_place: "k.rs:3:5".to_owned(),
            chain: vec!["indices".to_owned()],
            bytes: 4,
            copies: 1,
            refusal: refusal.map(str::to_owned),
            is_chained: refusal.is_some(),
        }
    }

    #[test]
    fn scattered_bytes_come_at_the_rate_of_scattered_bytes() {
        let bounds = Bounds::of(&starved(), Some(&profile()), &[load(None)]).expect("all is known");
        let names: Vec<&str> = bounds.roofs.iter().map(|roof| roof.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "bandwidth of device memory",
                "special functions and conversions",
                "latency of the first values"
            ]
        );
        let items = 132.0 * 128.0 * 1024.0;
        let expected = items * 4.0 / 4540.0 + items * 32.0 / 2690.0;
        assert!((bounds.roofs[0].least_ns - expected).abs() < 1.0);
        assert!((bounds.best_speedup - 1_273_000.0 / expected).abs() < 1e-9);
        // 83 % waiting: the rest is 17 %.
        assert!((bounds.without_waiting.expect("known") - 1.0 / 0.17).abs() < 1e-9);
        // 324 ns of latency over 100 ns of work.
        assert_eq!(bounds.distance, Some(4));
    }

    #[test]
    fn what_cannot_start_earlier_is_a_roof() {
        let refused = load(Some("its address depends on the load before"));
        let bounds = Bounds::of(&starved(), Some(&profile()), &[refused]).expect("all is known");
        assert_eq!(
            bounds.roofs[0].name,
            "a chain of loads that no plan may start earlier"
        );
        assert!((bounds.best_speedup - 1.0 / 0.83).abs() < 1e-9);
        assert_eq!((bounds.without_waiting, bounds.distance), (None, None));
        let by_arithmetic = LoopLoad {
            is_chained: false,
            ..load(Some("its address depends on the iteration before"))
        };
        let bounds = Bounds::of(&starved(), Some(&profile()), &[by_arithmetic]).expect("all is known");
        assert!(
            bounds.roofs.iter().all(|roof| !roof.name.contains("chain")),
            "{bounds:?}"
        );
        assert!(bounds.best_speedup > 5.0, "{bounds:?}");
    }

    #[test]
    fn work_groups_that_start_one_after_the_other_are_a_roof_and_the_reason() {
        let evidence = Evidence {
            groups: 1 << 21,
            starts_ns: Some(1_260_000.0),
            ..starved()
        };
        let bounds = Bounds::of(&evidence, Some(&profile()), &[load(None)]).expect("all is known");
        assert_eq!(bounds.roofs[0].name, "starts of work-groups");
        assert!((bounds.best_speedup - 1273.0 / 1260.0).abs() < 1e-9, "{bounds:?}");
        let starts = evidence.starts().expect("they set the pace");
        assert_eq!(
            starts,
            "work-groups start one after the other, and the starts of 2,097,152 take 99 % of the time"
        );
        let few = Evidence {
            starts_ns: Some(100_000.0),
            ..evidence
        };
        assert_eq!(few.starts(), None);
    }

    #[test]
    fn the_launch_is_a_part_of_every_time() {
        // 400 µs of a launch beside 1,273 µs of the kernel, of which the memory takes 137.
        let evidence = Evidence {
            launch_ns: Some(400e3),
            ..starved()
        };
        let without = Bounds::of(&starved(), None, &[]).expect("all is known");
        let with = Bounds::of(&evidence, None, &[]).expect("all is known");
        let bound = 1673e3 / (without.roofs[0].least_ns + 400e3);
        assert!((with.best_speedup - bound).abs() < 1e-9, "{with:?}");
        let waiting = with.without_waiting.expect("it waits");
        assert!(
            (waiting - 1673e3 / (1673e3 - 0.83 * 1273e3)).abs() < 1e-9,
            "{with:?}"
        );
        assert!(waiting < without.without_waiting.expect("it waits"));
    }

    #[test]
    fn a_plan_with_fewer_bytes_lies_further_right() {
        let mut roofline = Roofline::of(&starved(), Some(&profile())).expect("all is known");
        assert_eq!(roofline.scattered_bandwidth, Some(2690.0));
        roofline.add(crate::prefetch::Plan::none(), 1_000_000.0, 1e9);
        roofline.add("unroll:2".parse().expect("a plan"), 500_000.0, 5e8);
        assert_eq!(
            (roofline.points[0].intensity, roofline.points[0].rate),
            (1.0, 1000.0)
        );
        assert_eq!(
            (roofline.points[1].intensity, roofline.points[1].rate),
            (2.0, 2000.0)
        );
    }

    #[test]
    fn nothing_follows_from_nothing() {
        let evidence = Evidence {
            memory_bytes: None,
            latency_ns: None,
            ..starved()
        };
        assert_eq!(Bounds::of(&evidence, None, &[]), None);
        assert_eq!(Roofline::of(&evidence, None), None);
    }
}
