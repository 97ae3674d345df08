//! `micro/latency` and `micro/bandwidth`: how long a load takes, and how many bytes come in a cycle, by where the data lie.

#![allow(clippy::manual_checked_ops, reason = "kernels have no checked division")]

use headstart::device::Pattern;
use headstart::ir::Type;
use headstart::prelude::*;
use headstart::tune::Workload;
use headstart::{Error, Result};

use super::{GROUPS, Micro, Near, STEPS, entry, items, micro};
use crate::data::{input, output};
use crate::settings::{Parameter, Settings, launch};

/// Chains of loads: each word names the place of the next, as far away as a load is wide. `first` words lie between the starts
/// of chains, `sharing` work-items follow one chain together.
#[kernel(work_group = group)]
pub fn chain(
    table: &[u32],
    result: &mut [u32],
    #[constant] group: u32,
    #[constant] first: u32,
    #[constant] sharing: u32,
    #[constant] words: u32,
    #[constant] jumps: u32,
    #[constant] steps: u32,
) {
    let mut at = (global_id() as u32 / sharing).wrapping_mul(first) % words;
    #[unroll(0)]
    for _ in 0..steps {
        let next = table[at as usize];
        // The chain is a circle; behind the last word of the footprint comes the first.
        at = if jumps == 1 {
            next & (words - 1)
        } else {
            next.min(next.wrapping_sub(words))
        };
    }
    result[global_id()] = at;
}

/// The place of a word that lies in a piece of `segment` words: a multiplication by an odd number gives each piece one of its
/// own, far from its neighbours'.
#[device_fn]
pub(super) fn scattered(place: u32, segment: u32) -> u32 {
    (place / segment)
        .wrapping_mul(0x9E37_79B1)
        .wrapping_mul(segment)
        .wrapping_add(place % segment)
}

/// Independent loads: in each step `batch` of them, consecutive or scattered in pieces of `segment` words, whose sum is kept.
/// The data loaded `ahead` steps later are prefetched to L2, unless that is 0.
#[kernel(work_group = group)]
pub fn stream(
    table: &[u32],
    result: &mut [u32],
    #[constant] group: u32,
    #[constant] items: u32,
    #[constant] batch: u32,
    #[constant] segment: u32,
    #[constant] ahead: u32,
    #[constant] words: u32,
    #[constant] steps: u32,
) {
    let mut at = global_id() as u32;
    let mut sum = 0u32;
    #[unroll(0)]
    for _ in 0..steps {
        #[unroll]
        for load in 0..batch {
            let mut place = at.wrapping_add(load.wrapping_mul(items));
            let mut asked = place.wrapping_add(ahead.wrapping_mul(batch).wrapping_mul(items));
            if segment > 0 {
                place = scattered(place, segment);
                asked = scattered(asked, segment);
            }
            if ahead > 0 {
                prefetch(&table[(asked & (words - 1)) as usize], L2);
            }
            sum = sum.wrapping_add(table[(place & (words - 1)) as usize]);
        }
        at = at.wrapping_add(batch.wrapping_mul(items));
    }
    result[global_id()] = sum;
}

/// The same, in order, with loads of four words.
#[kernel(work_group = group)]
pub fn stream_wide(
    table: &[[u32; 4]],
    result: &mut [u32],
    #[constant] group: u32,
    #[constant] items: u32,
    #[constant] batch: u32,
    #[constant] words: u32,
    #[constant] steps: u32,
) {
    let mut at = global_id() as u32;
    let mut sum = 0u32;
    #[unroll(0)]
    for _ in 0..steps {
        #[unroll]
        for load in 0..batch {
            let place = at.wrapping_add(load.wrapping_mul(items)) & (words / 4 - 1);
            let [a, b, c, d] = table[place as usize];
            sum = sum.wrapping_add(a ^ b ^ c ^ d);
        }
        at = at.wrapping_add(batch.wrapping_mul(items));
    }
    result[global_id()] = sum;
}

const FOOTPRINT: &str = "bytes that the loads lie in";
const WARM: &str = "steps before; if not set, one pass over the footprint where that is at most 64 MiB";

static CHAIN: [Parameter; 8] = [
    GROUPS,
    Parameter::number("group", "work-items of a work-group", 32, 1..=1024),
    Parameter::number("footprint", FOOTPRINT, 1 << 20, 1 << 10..=1 << 33),
    Parameter::number(
        "stride",
        "bytes from one place to the next, or between possible places",
        128,
        4..=1 << 24,
    ),
    Parameter::choice(
        "order",
        "of the places; at random needs powers of 2",
        &["ascending", "random"],
    ),
    Parameter::choice(
        "chains",
        "the group that follows a chain of its own",
        &["sub-group", "work-item"],
    ),
    Parameter::number("warm", WARM, 0, 0..=1 << 24),
    Parameter::number("steps", STEPS, 4096, 0..=1 << 24),
];

/// A load's latency: L1, L2, device memory or the TLB by the footprint; under load by the number of work-items.
pub(crate) static LATENCY: Micro = Micro {
    near: |settings, model| {
        let l1 = model.l1.as_ref()?;
        Some(Near {
            settings: in_l1(settings),
            latency: f64::from(*l1.latency),
        })
    },
    ..micro(
        entry(
            "micro/latency",
            "dependent loads: the latency of the memory level that holds the footprint, in cycles",
            &CHAIN,
            |settings, _| chain_workload(settings),
        ),
        "cycles a load",
        |_, cycles| cycles,
    )
};

/// The chain's own instructions, with all places in L1 before the steps that are measured: one line for a sub-group.
fn in_l1(settings: &Settings) -> Settings {
    [
        ("groups", 1),
        ("footprint", 1 << 12),
        ("stride", 128),
        ("chains", 0),
        ("warm", 256),
        ("steps", 512),
    ]
    .into_iter()
    .fold(settings.clone(), |settings, (name, value)| {
        settings.with(name, value)
    })
}

fn chain_workload(settings: &Settings) -> Result<Workload> {
    let (footprint, stride) = (settings.get("footprint"), settings.get("stride"));
    let jumps = settings.word("order") == "random";
    if stride % 4 != 0 || !footprint.is_multiple_of(stride) {
        return Err(Error::usage(
            "the footprint must be a multiple of the stride, and that of 4",
        ));
    }
    if jumps && !(footprint.is_power_of_two() && stride.is_power_of_two()) {
        return Err(Error::usage(
            "places at random need a footprint and a stride that are powers of 2",
        ));
    }
    let (words, step) = (footprint / 4, stride / 4);
    let places = words / step;
    // A linear congruential generator goes through all places before it comes back (Hull and Dobell, 1962): word i names
    // factor * i + increment, which is the same over the places as over the words that they begin with.
    let (factor, increment) = match jumps {
        true => (0x2C92_77B5, 0x00B5_4A33 * step),
        false => (1, step),
    };
    let sharing = match settings.word("chains") {
        "sub-group" => 32,
        _ => 1,
    };
    let pass = match jumps {
        true => 0,
        false => places,
    };
    let steps = warm(settings, pass)? + settings.get("steps");
    let first = (step * ((0x9E37_79B1 % places.max(2)) | 1)) % (1 << 32);
    let kernel = chain::kernel(
        settings.small("group"),
        first as u32,
        sharing,
        u32::try_from(words).map_err(|_| Error::usage("the footprint is too large"))?,
        u32::from(jumps),
        steps as u32,
    )?;
    launch(settings, kernel)
        .with(
            "table",
            input(
                Type::I32,
                words,
                Pattern::Steps {
                    first: increment,
                    step: factor,
                },
            ),
        )?
        .with("result", output(Type::I32, items(settings)))
}

/// Steps before those that are measured: as set, or one pass of this many.
fn warm(settings: &Settings, pass: u64) -> Result<u64> {
    let fits = settings.get("footprint") <= 64 << 20;
    let warm = settings.given("warm").unwrap_or(if fits { pass } else { 0 });
    match warm + settings.get("steps") <= 1 << 30 {
        true => Ok(warm),
        false => Err(Error::usage("these are too many steps")),
    }
}

static STREAM: [Parameter; 9] = [
    Parameter::number("groups", "work-groups", 132, 1..=1 << 16),
    Parameter::number("group", "work-items of a work-group", 1024, 1..=1024),
    Parameter::number(
        "footprint",
        "bytes that the loads lie in, a power of 2",
        1 << 30,
        1 << 10..=1 << 33,
    ),
    Parameter::number(
        "segment",
        "neighbouring work-items that read neighbouring words, in pieces that lie scattered; with 0 all do",
        0,
        0..=1024,
    ),
    Parameter::number(
        "batch",
        "loads of a step, which wait for each other only at its end",
        4,
        1..=32,
    ),
    Parameter::number("width", "words of a load: 1, or 4 where `segment` is 0", 1, 1..=4),
    Parameter::number(
        "ahead",
        "distance in steps of prefetches to L2, if `width` is 1; 0 for none",
        0,
        0..=64,
    ),
    Parameter::number("warm", WARM, 0, 0..=1 << 24),
    Parameter::number("steps", STEPS, 16, 0..=1 << 24),
];

/// Bandwidth: of L1, L2 or device memory by the footprint, by bytes in flight (`batch`) and occupancy (`groups`, `group`),
/// and by how many neighbours read neighbouring words (`segment`).
pub(crate) static BANDWIDTH: Micro = Micro {
    shares: |settings| settings.get("footprint") <= 64 << 20,
    ..micro(
        entry(
            "micro/bandwidth",
            "loads that wait only for their turn: bytes that work-items receive in a cycle, all cores together",
            &STREAM,
            |settings, _| stream_workload(settings),
        ),
        "bytes a cycle",
        |settings, cycles| {
            (items(settings) * settings.get("batch") * settings.get("width") * 4) as f64 / cycles
        },
    )
};

fn stream_workload(settings: &Settings) -> Result<Workload> {
    let (words, batch, segment) = (
        settings.get("footprint") / 4,
        settings.get("batch"),
        settings.get("segment"),
    );
    if !words.is_power_of_two() || segment > 0 && !segment.is_power_of_two() {
        return Err(Error::usage("footprint and segment must be powers of 2"));
    }
    let width = settings.get("width");
    if width != 1 && (width != 4 || segment > 0) {
        return Err(Error::usage("`width` must be 1, or 4 where `segment` is 0"));
    }
    let ahead = settings.small("ahead");
    if ahead > 0 && width != 1 {
        return Err(Error::usage("`ahead` must be 0 where `width` is not 1"));
    }
    let pass = words.div_ceil(items(settings) * batch * width);
    let steps = warm(settings, pass)? + settings.get("steps");
    let (group, items_32, batch) = (settings.small("group"), items(settings) as u32, batch as u32);
    let kernel = match width {
        4 => stream_wide::kernel(group, items_32, batch, words as u32, steps as u32)?,
        _ => stream::kernel(
            group,
            items_32,
            batch,
            segment as u32,
            ahead,
            words as u32,
            steps as u32,
        )?,
    };
    launch(settings, kernel)
        .with("table", input(Type::I32, words, Pattern::Constant(1)))?
        .with("result", output(Type::I32, items(settings)))
}

#[cfg(test)]
mod tests {
    use crate::workloads::testing::run;

    #[test]
    fn chains_go_through_all_places_and_come_back() {
        for order in ["order=ascending", "order=random"] {
            let end = |steps: u32| {
                let steps = format!("steps={steps}");
                let settings = ["footprint=4096", "group=1", order, "warm=0", &steps];
                run("micro/latency", &settings).u32s("result")[0]
            };
            let mut seen: Vec<u32> = (0..32).map(end).collect();
            assert_eq!(end(32), seen[0], "{order}");
            seen.sort_unstable();
            let places: Vec<u32> = (0..32).map(|place| place * 32).collect();
            assert_eq!(seen, places, "{order}");
        }
    }

    #[test]
    fn every_load_of_a_stream_is_counted() {
        for (segment, ahead) in [
            ("segment=0", "ahead=0"),
            ("segment=1", "ahead=0"),
            ("segment=8", "ahead=2"),
        ] {
            let settings = [
                "groups=2",
                "group=64",
                "footprint=4096",
                "warm=0",
                "steps=3",
                "batch=2",
                segment,
                ahead,
            ];
            let ran = run("micro/bandwidth", &settings);
            assert!(ran.u32s("result").iter().all(|&sum| sum == 6), "{segment}");
        }
    }
}
