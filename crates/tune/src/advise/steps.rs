//! NVIDIA's and Intel's checklists, question by question: should this kernel be prefetched?
//!
//! NVIDIA's article asks whether memory bandwidth is to spare, whether warps mostly wait for device memory, whether they
//! do so in sizeable loops of independent iterations, and whether registers or shared memory are to spare; Intel's guide
//! asks the first two. A question is put so that *yes* speaks for prefetching.

use serde::Serialize;

use crate::device::sim::timer::StallReason;
use crate::evidence::{Access, Evidence, LoopLoad, Profile};
use crate::report::number::{bytes, capacity, figures, percent};
use crate::report::run::{bandwidth, filling, flying, lacks_sub_groups, sentence};

/// One question and its answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChecklistStep {
    /// The question.
    pub question: &'static str,
    /// Its answer.
    pub answer: Answer,
    /// The findings, in sentences with numbers.
    pub finding: String,
    /// The source place that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// The numbers behind it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Measure>,
}

/// Whether an answer speaks for prefetching.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// It does.
    Yes,
    /// It does not.
    No,
    /// Nothing tells.
    Unknown,
}

/// One number.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measure {
    /// The measured number.
    pub name: &'static str,
    /// How much.
    pub value: f64,
    /// Its unit: `%`, `bytes`, `GB/s`, or empty for a plain count.
    pub unit: &'static str,
}

/// Everything that the questions are answered from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case<'a> {
    /// The facts about the run as a whole.
    pub evidence: &'a Evidence,
    /// Where its time goes.
    pub profile: Option<&'a Profile>,
    /// The loads of the kernel's text, if Headstart has it.
    pub loads: Option<&'a [LoopLoad]>,
    /// How they and all other loads read.
    pub accesses: &'a [Access],
    /// Bytes of all buffers.
    pub footprint: Option<u64>,
}

/// Bandwidth counts as saturated from this share of memory's limit on: memory answers late from there on.
const USED_UP: f64 = 0.8;
/// Waiting for loads matters from this share of the sub-groups' time on.
const WAITS: f64 = 0.3;
/// Iterations from which on a loop is sizeable: prefetching needs some for its start and some for its end.
const SIZEABLE: f64 = 8.0;
/// Loads that hit from this share on do not miss, however large the data are.
const MOSTLY: f64 = 0.9;
/// Registers to spare that are worth mentioning: the article's eight, for four values of 8 bytes.
const REGISTERS: u32 = 8;

const NO_LOAD: &str = "The kernel has no load from global memory.";

impl Case<'_> {
    /// Whether the kernel's text is known, and has no load from global memory.
    fn loads_nothing(&self) -> bool {
        let loads = self.profile.is_some_and(|profile| !profile.loads.is_empty());
        self.loads.is_some_and(<[LoopLoad]>::is_empty) && self.accesses.is_empty() && !loads
    }
}

/// Every step of the procedure, in the documents' order.
pub(crate) fn procedure(case: &Case<'_>) -> Vec<ChecklistStep> {
    vec![
        bandwidth_to_spare(case),
        waits_for_loads(case),
        in_a_sizeable_loop(case),
        independent(case),
        registers_to_spare(case),
        shared_memory_to_spare(case),
        larger_than_the_cache(case),
        too_little_in_flight(case),
        too_few_sub_groups(case),
    ]
}

fn step(question: &'static str, found: Option<(bool, String)>, unknown: &str) -> ChecklistStep {
    let (answer, finding) = match found {
        Some((true, finding)) => (Answer::Yes, finding),
        Some((false, finding)) => (Answer::No, finding),
        None => (Answer::Unknown, unknown.to_owned()),
    };
    ChecklistStep {
        question,
        answer,
        finding,
        place: None,
        evidence: Vec::new(),
    }
}

impl ChecklistStep {
    fn at(mut self, place: Option<&str>) -> ChecklistStep {
        self.place = place.filter(|place| !place.is_empty()).map(str::to_owned);
        self
    }

    fn with(mut self, name: &'static str, value: Option<f64>, unit: &'static str) -> ChecklistStep {
        self.evidence
            .extend(value.map(|value| Measure { name, value, unit }));
        self
    }
}

fn bandwidth_to_spare(case: &Case<'_>) -> ChecklistStep {
    let evidence = case.evidence;
    let found = bandwidth(evidence)
        .zip(evidence.bandwidth_used())
        .map(|(text, used)| {
            // Where accesses are scattered, less than the whole can be had.
            let attainable = match (evidence.scattered_bandwidth, evidence.bandwidth) {
                (Some(scattered), Some(most)) if is_scattered(case) => scattered / most,
                _ => 1.0,
            };
            (used < USED_UP * attainable, format!("{}.", sentence(&text)))
        });
    step(
        "Is there spare memory bandwidth?",
        found,
        "The profile does not say how much of the bandwidth is used.",
    )
    .with("delivered by device memory", evidence.delivered(), "GB/s")
    .with("bandwidth of device memory", evidence.bandwidth, "GB/s")
}

/// Whether most of device memory's traffic is for loads of scattered pieces.
fn is_scattered(case: &Case<'_>) -> bool {
    let loads = || case.profile.into_iter().flat_map(|profile| &profile.loads);
    let all: f64 = loads().map(|load| load.memory_bytes).sum();
    let scattered: f64 = loads()
        .filter(|load| load.lines >= 8.0)
        .map(|load| load.memory_bytes)
        .sum();
    scattered > 0.5 * all
}

/// What a profiler's name of a reason means.
fn meaning(reason: StallReason) -> &'static str {
    match reason {
        StallReason::LongScoreboard => "a value from memory",
        StallReason::ShortScoreboard => "a value from shared memory or the special-function unit",
        StallReason::Wait => "a result of fixed latency",
        StallReason::AsyncCopy => "an asynchronous copy",
        StallReason::Barrier => "other sub-groups at a barrier",
        StallReason::NoInstruction => "code from the instruction cache",
        StallReason::BranchResolving => "a jump",
        StallReason::MathPipeThrottle => "the arithmetic unit, which is busy",
        StallReason::MemoryThrottle => "the unit for loads and stores, which is busy",
        StallReason::NotSelected => "another sub-group's turn",
    }
}

fn waits_for_loads(case: &Case<'_>) -> ChecklistStep {
    let load = case
        .profile
        .and_then(|profile| profile.loads.first())
        .filter(|load| load.waiting > 0.0 && !load.place.is_empty());
    let found = case.evidence.waiting_for_loads.map(|share| {
        if case.loads_nothing() {
            return (false, NO_LOAD.to_owned());
        }
        let mut text = format!(
            "Sub-groups spend {} of their time waiting for loads",
            percent(share)
        );
        if let Some(load) = load {
            text.push_str(&format!(
                ", {} of that for `{}`",
                percent(load.waiting),
                load.name
            ));
        }
        text.push('.');
        if let Some(starts) = case.evidence.starts() {
            return (false, format!("{text} {}.", sentence(&starts)));
        }
        let loads = [StallReason::LongScoreboard, StallReason::AsyncCopy];
        // A sub-group that is ready while another one issues waits for nothing.
        let other = case.profile.and_then(|profile| {
            let others = profile
                .stalls
                .iter()
                .filter(|stall| !loads.contains(&stall.reason) && stall.reason != StallReason::NotSelected);
            others.max_by(|one, other| one.share.total_cmp(&other.share))
        });
        if let Some(other) = other.filter(|other| other.share >= 0.1 || other.share > share) {
            text.push_str(&format!(
                " The next reason is `{}`, {}, {}.",
                other.reason.name(),
                meaning(other.reason),
                percent(other.share)
            ));
        }
        let is_main = other.is_none_or(|other| share >= other.share);
        (share >= WAITS && is_main, text)
    });
    step(
        "Do sub-groups mostly wait for loads?",
        found,
        "The profile has no stall reasons.",
    )
    .at(load.map(|load| load.place.as_str()))
    .with(
        "waiting for loads",
        case.evidence.waiting_for_loads.map(|share| 100.0 * share),
        "%",
    )
}

fn in_a_sizeable_loop(case: &Case<'_>) -> ChecklistStep {
    let main = case.profile.and_then(Profile::main_loop);
    // An iteration of an unrolled loop is several of the source's.
    let of_the_source = main.map_or(1, |main| {
        let loads = case.loads.unwrap_or_default().iter();
        let own = loads.filter(|load| load.loop_place == main.place);
        own.map(|load| load.copies).max().unwrap_or(1)
    });
    let found = main.map(|main| {
        let sizeable =
            main.waiting >= 0.5 && main.iterations * f64::from(of_the_source) >= SIZEABLE;
        let unrolled = match of_the_source {
            1 => String::new(),
            copies => format!(", each {copies} of the source's"),
        };
        let text = format!(
            "{} of the waiting is in one loop of {} instructions; a sub-group runs {} iterations of it{unrolled}.",
            percent(main.waiting),
            figures(f64::from(main.instructions)),
            figures(main.iterations)
        );
        (sizeable, text)
    });
    let has_stalls = case.profile.is_some_and(|profile| !profile.stalls.is_empty());
    let is_empty = has_stalls && case.loads.is_some_and(<[LoopLoad]>::is_empty);
    let nowhere = || {
        (
            false,
            "No loop of the kernel loads from global memory.".to_owned(),
        )
    };
    let found = found.or_else(|| is_empty.then(nowhere));
    step(
        "Is the waiting in a sizeable loop?",
        found,
        "The profile does not say where they wait.",
    )
    .at(main.map(|main| main.place.as_str()))
    .with("iterations of the loop", main.map(|main| main.iterations), "")
    .with(
        "instructions of the loop",
        main.map(|main| f64::from(main.instructions)),
        "",
    )
    .with(
        "waiting that is in the loop",
        main.map(|main| 100.0 * main.waiting),
        "%",
    )
}

fn independent(case: &Case<'_>) -> ChecklistStep {
    let main = case.profile.and_then(Profile::main_loop);
    let of_main = |load: &&LoopLoad| main.is_none_or(|main| load.loop_place == main.place);
    let waited = |load: &LoopLoad| {
        let loads = case.profile.into_iter().flat_map(|profile| &profile.loads);
        loads
            .filter(|time| time.place == load.place)
            .map(|time| time.waiting)
            .fold(0.0, f64::max)
    };
    let in_loop: Option<Vec<&LoopLoad>> = case.loads.map(|loads| {
        let found: Vec<&LoopLoad> = loads.iter().filter(of_main).collect();
        // The waiting may be blamed on a loop that holds another.
        if found.is_empty() {
            loads.iter().collect()
        } else {
            found
        }
    });
    // The load that is waited for most; of those that are not told apart the last of a chain.
    let load = in_loop.as_deref().and_then(|loads| {
        loads.iter().copied().max_by(|one, other| {
            let by_waiting = waited(one).total_cmp(&waited(other));
            by_waiting.then(one.chain.len().cmp(&other.chain.len()))
        })
    });
    let found = match (&in_loop, load) {
        (_, Some(load)) => Some(match &load.refusal {
            None => (
                true,
                match load.chain.is_empty() {
                    true => format!(
                        "`{}` can be fetched early: its address needs no other load.",
                        load.name
                    ),
                    false => format!(
                        "`{}` can be fetched early, with the loads that lead to its address: `{}`.",
                        load.name,
                        load.whole_chain()
                    ),
                },
            ),
            Some(refusal) => (false, format!("{}.", sentence(refusal))),
        }),
        (Some(_), None) => Some((
            false,
            "No loop of the kernel loads from global memory.".to_owned(),
        )),
        (None, None) => None,
    };
    step(
        "Are its iterations independent?",
        found,
        "Headstart has not seen the kernel.",
    )
    .at(load.map(|load| load.place.as_str()))
}

fn registers_to_spare(case: &Case<'_>) -> ChecklistStep {
    let resources = case.profile.and_then(|profile| profile.resources);
    let found = resources.map(|own| {
        let spare = own.registers_possible.saturating_sub(own.registers);
        let text = format!(
            "A work-item has {} registers; it can have up to {} without losing occupancy.",
            own.registers, own.registers_possible
        );
        (spare >= REGISTERS, text)
    });
    let counted = case.profile.and_then(|profile| profile.registers);
    let unknown = counted.map_or(
        "The profile does not say how many registers the kernel uses.".to_owned(),
        |registers| {
            format!("A work-item has {registers} registers; how many it could have is not known of this GPU.")
        },
    );
    step(
        "Are there spare registers, for unrolling or a ring of registers?",
        found,
        &unknown,
    )
    .with(
        "registers of a work-item",
        resources.map(|own| own.registers).or(counted).map(f64::from),
        "",
    )
    .with(
        "registers possible",
        resources.map(|own| f64::from(own.registers_possible)),
        "",
    )
}

fn shared_memory_to_spare(case: &Case<'_>) -> ChecklistStep {
    let resources = case.profile.and_then(|profile| profile.resources);
    // Room for a ring of four iterations of the widest load.
    let element = case
        .loads
        .and_then(|loads| loads.iter().map(|load| load.bytes).max())
        .unwrap_or(4);
    let least = 4 * element * case.evidence.group;
    let found = resources.map(|own| {
        let spare = own.shared_possible.saturating_sub(own.shared);
        let distance = spare / (element * case.evidence.group).max(1);
        let text = format!(
            "A work-group has {} of shared memory; up to {} without losing occupancy, enough for {distance} iterations of \
             {element} bytes a work-item.",
            capacity(u64::from(own.shared)),
            capacity(u64::from(own.shared_possible)),
        );
        (spare >= least, text)
    });
    step(
        "Is there spare shared memory, for a ring?",
        found,
        "The profile does not say how much shared memory the kernel uses.",
    )
    .with(
        "shared memory of a work-group",
        resources.map(|own| f64::from(own.shared)),
        "bytes",
    )
    .with(
        "shared memory possible",
        resources.map(|own| f64::from(own.shared_possible)),
        "bytes",
    )
}

fn larger_than_the_cache(case: &Case<'_>) -> ChecklistStep {
    let cache = case.profile.and_then(|profile| profile.cache.as_ref());
    let found = cache.map(|cache| {
        if case.loads_nothing() {
            return (false, NO_LOAD.to_owned());
        }
        let found = format!("{} hit rate {}", cache.name, percent(cache.hits));
        match case.footprint {
            Some(footprint) => (
                // Data that is read once is not there however small it is.
                cache.hits < if footprint > cache.bytes { MOSTLY } else { 0.5 },
                format!(
                    "Its buffers have {}, {} has {}; {found}.",
                    bytes(footprint as f64),
                    cache.name,
                    capacity(cache.bytes)
                ),
            ),
            None => (cache.hits < 0.5, format!("{}.", sentence(&found))),
        }
    });
    step(
        "Do its loads miss in the cache?",
        found,
        "The profile does not give the hit rate.",
    )
    .with("buffers", case.footprint.map(|bytes| bytes as f64), "bytes")
    .with("cache", cache.map(|cache| cache.bytes as f64), "bytes")
    .with("hit rate", cache.map(|cache| 100.0 * cache.hits), "%")
}

fn too_little_in_flight(case: &Case<'_>) -> ChecklistStep {
    let known = case.evidence.in_flight();
    let found = known.map(|(in_flight, needed)| (in_flight < 0.8 * needed, flying(in_flight, needed)));
    step(
        "Is too little data in flight from memory?",
        found,
        "The profile does not say how much is in flight.",
    )
    .with("in flight", known.map(|(in_flight, _)| in_flight), "bytes")
    .with("bandwidth × latency", known.map(|(_, needed)| needed), "bytes")
}

fn too_few_sub_groups(case: &Case<'_>) -> ChecklistStep {
    let evidence = case.evidence;
    let found = lacks_sub_groups(evidence).zip(filling(evidence));
    step(
        "Are there too few sub-groups to hide the latency?",
        found,
        "The profile does not say how many sub-groups are resident.",
    )
    .with("occupancy", evidence.occupancy().map(|share| 100.0 * share), "%")
}
