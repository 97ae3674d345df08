//! `micro/atomics`: the program of Intel's guide, chapter on the memory system: 1024 additions by each work-item.
//!
//! The guide's program has 1024 work-items in work-groups of 32, additions that are relaxed or acquire and release, and counts
//! its warm-up by mistake (`iter == warm_up_token` compares the number of repetitions, not their counter). Here the warm-up is
//! not counted. The guide's flushing of the caches is `cache=flushed`, and its compiler's unrolling of the loop `unroll=8`: with one
//! addition in an iteration, counting takes as long as the additions of all work-items to one word.

use headstart::ir::Type;
use headstart::prelude::*;
use headstart::tune::Workload;
use headstart::{Error, Result};

use super::{Micro, entry, items, micro};
use crate::data::{output, zeroed};
use crate::kernels::{GalleryKernel, Iterations};
use crate::settings::{Parameter, Settings, launch};
use crate::spatter::Entry;

/// Additions to a word of the work-item's own, or to one that all share.
#[kernel(work_group = group)]
pub fn additions(
    bins: &[Atomic<u32>],
    result: &mut [u32],
    #[constant] group: u32,
    #[constant] own: u32,
    #[constant] ordered: u32,
    #[constant] touched: u32,
    #[constant] each: u32,
    #[constant] steps: u32,
) {
    let at = global_id() * own as usize;
    let mut seen = 0;
    if touched == 1 {
        seen = bins[at].load(Ordering::Relaxed);
    }
    #[unroll(0)]
    for _ in 0..steps / each {
        #[unroll]
        for _ in 0..each {
            if ordered == 1 {
                bins[at].fetch_add(1, Ordering::AcqRel);
            } else {
                bins[at].fetch_add(1, Ordering::Relaxed);
            }
        }
    }
    result[global_id()] = seen;
}

static PARAMETERS: [Parameter; 7] = [
    Parameter::number("groups", "work-groups", 32, 1..=1 << 16),
    Parameter::number("group", "work-items of a work-group", 32, 1..=1024),
    Parameter::choice("address", "the word to which a work-item adds", &["own", "same"]),
    Parameter::choice("order", "of each addition", &["relaxed", "acq-rel"]),
    Parameter::choice(
        "cache",
        "whether the words are in L2 at the start",
        &["kept", "flushed"],
    ),
    Parameter::number("unroll", "additions in an iteration", 1, 1..=64),
    Parameter::number("steps", "additions by each work-item", 1024, 0..=1 << 20),
];

/// The time of an atomic addition for a work-item.
pub(crate) static ATOMICS: Micro = Micro {
    shares: |_| true,
    ..micro(
        GalleryKernel {
            iterations: Iterations::Given {
                small: |settings, iterations| settings.with("steps", iterations * settings.get("unroll")),
                shapes: |_| Vec::new(),
            },
            ..entry(
                "micro/atomics",
                "1024 atomic additions by each work-item: cycles from one to the next",
                &PARAMETERS,
                workload,
            )
        },
        "cycles an addition",
        |_, cycles| cycles,
    )
};

fn workload(settings: &Settings, _trace: Option<&Entry>) -> Result<Workload> {
    let group = settings.small("group");
    let own = settings.word("address") == "own";
    let each = settings.small("unroll");
    if !settings.get("steps").is_multiple_of(u64::from(each)) {
        return Err(Error::usage("`steps` must be a multiple of `unroll`"));
    }
    let kernel = additions::kernel(
        group,
        u32::from(own),
        u32::from(settings.word("order") == "acq-rel"),
        u32::from(settings.word("cache") == "kept"),
        each,
        settings.small("steps"),
    )?;
    launch(settings, kernel)
        .with("bins", zeroed(Type::I32, items(settings)))?
        .with("result", output(Type::I32, items(settings)))
}
