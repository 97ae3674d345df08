//! `micro/stores`: how many bytes go in a cycle, by where they go and how they are spread.

use headstart::ir::Type;
use headstart::prelude::*;
use headstart::tune::Workload;
use headstart::{Error, Result};

use super::memory::scattered;
use super::{Micro, STEPS, entry, items, micro};
use crate::data::zeroed;
use crate::settings::{Parameter, Settings, launch};

/// Stores side by side, or scattered in pieces of `segment` words: four in each step.
#[kernel(work_group = group)]
pub fn streamed(
    table: &mut [u32],
    #[constant] group: u32,
    #[constant] items: u32,
    #[constant] segment: u32,
    #[constant] words: u32,
    #[constant] steps: u32,
) {
    let mut at = global_id() as u32;
    #[unroll(0)]
    for _ in 0..steps {
        #[unroll]
        for store in 0..4 {
            let mut place = at.wrapping_add(store * items);
            if segment > 0 {
                place = scattered(place, segment);
            }
            table[(place & (words - 1)) as usize] = at;
        }
        at = at.wrapping_add(4 * items);
    }
}

static PARAMETERS: [Parameter; 5] = [
    Parameter::number("groups", "work-groups", 132, 1..=1 << 16),
    Parameter::number("group", "work-items of a work-group", 1024, 1..=1024),
    Parameter::number(
        "footprint",
        "bytes that the stores lie in, a power of 2",
        1 << 30,
        1 << 10..=1 << 33,
    ),
    Parameter::number(
        "segment",
        "neighbouring work-items that write neighbouring words, in pieces that lie scattered; with 0 all do",
        0,
        0..=1024,
    ),
    Parameter::number("steps", STEPS, 16, 0..=1 << 24),
];

/// Bandwidth of stores: to L2 or through it, by the footprint, and by how many neighbours write neighbouring words.
pub(crate) static STORES: Micro = Micro {
    shares: |settings| settings.get("footprint") <= 64 << 20,
    ..micro(
        entry(
            "micro/stores",
            "independent stores: bytes per cycle of all cores together",
            &PARAMETERS,
            |settings, _| workload(settings),
        ),
        "bytes a cycle",
        |settings, cycles| (items(settings) * 16) as f64 / cycles,
    )
};

fn workload(settings: &Settings) -> Result<Workload> {
    let (words, segment) = (settings.get("footprint") / 4, settings.get("segment"));
    if !words.is_power_of_two() || segment > 0 && !segment.is_power_of_two() {
        return Err(Error::usage("footprint and segment must be powers of 2"));
    }
    let group = settings.small("group");
    let kernel = streamed::kernel(
        group,
        items(settings) as u32,
        segment as u32,
        words as u32,
        settings.small("steps"),
    )?;
    launch(settings, kernel).with("table", zeroed(Type::I32, words))
}

#[cfg(test)]
mod tests {
    use crate::workloads::testing::run;

    #[test]
    fn pieces_go_to_places_of_their_own() {
        for segment in ["segment=0", "segment=1", "segment=8"] {
            let settings = ["groups=2", "group=64", "footprint=4096", "steps=2", segment];
            let ran = run("micro/stores", &settings);
            assert_eq!(ran.u32s("table").len(), 1024);
            // A thousand and twenty-four stores, each to a word of its own: the second step's begin at 512.
            let second = ran.u32s("table").iter().filter(|&&at| at >= 512).count();
            assert_eq!(second, 512, "{segment}");
        }
    }
}
