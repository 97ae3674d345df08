//! The lines of NVIDIA's article on prefetching, on the model of the A100 that it names.

use headstart::device::CacheState;

use super::page::{Row, found, words};
use super::{model, time};

/// A launch with three work-groups on a core, and as many terms for each element that it waits for memory about as much as the article's
/// kernel, which is not shown.
const SETTINGS: &str = "groups=324 group=128 work=2 elements=20000";

/// How many times as fast as the plain kernel a plan is.
fn speedup(plan: &str) -> f64 {
    let a100 = model("a100", &[]);
    let took = |plan: &str| time(&a100, "article", SETTINGS, plan, CacheState::Kept);
    took("none") / took(plan)
}

/// Percent of its speed that the plain kernel loses by the article's own ring of registers, which a `switch` picks.
fn picked_loss(distance: &str) -> f64 {
    let a100 = model("a100", &[]);
    let took = |name: &str, more: &str| {
        let settings = format!("groups=108 group=128 elements=51200 {more}");
        time(&a100, name, &settings, "none", CacheState::Kept)
    };
    100.0 * (1.0 - took("article", "") / took("article-picked", distance))
}

/// A term is a term: twice as many take about twice as long, where nothing waits for memory.
#[test]
fn each_term_has_an_exponential_of_its_own() {
    let a100 = model("a100", &[]);
    let took = |work: u32| {
        let settings = format!("groups=108 group=1024 elements=20480 work={work}");
        time(&a100, "article", &settings, "none", CacheState::Kept)
    };
    let [four, eight] = [4, 8].map(took);
    println!("4 terms {four:.0} ns, 8 terms {eight:.0} ns");
    assert!((1.8..2.2).contains(&(eight / four)), "{four} and {eight} ns");
}

#[test]
fn asynchronous_copies_gain_almost_sixty_percent_at_a_distance_of_six() {
    let six = speedup("arr=rolling-async:6/padded");
    println!("rolling-async:6/padded {six:.2}x");
    assert!((1.4..=1.8).contains(&six), "{six}");
    let batched = speedup("arr=batched-shared:6/padded");
    assert!(six > batched, "{six} and {batched}");
}

const RUN: &str = "headstart run article --device sim:a100 --set groups=324 --set work=2 --set elements=20000 --plan arr=rolling-async:6/padded";
const PAGE: &str = "[the article's kernels](../results/techniques.md#article)";

pub const ROWS: [Row; 22] = [
    words(
        "64 warps on a core, 108 cores",
        "`sim:a100`",
        "headstart devices --model a100",
    ),
    words(
        "Other warps hide latency, with no overhead for switching",
        "the scheduler issues from any warp that is ready",
        "headstart run article --device sim:a100 --set elements=12800",
    ),
    words(
        "Where that is not enough, and bandwidth is left, reorganize",
        "the first questions of the checklist",
        "headstart advise article --device sim:a100 --set elements=12800",
    ),
    words(
        "Not all bandwidth used; stalls are *long scoreboard*; they are in sizeable loops of independent iterations",
        "each is a question with a number, from a run or from Nsight Compute's CSV",
        "[reading a report](reading.md)",
    ),
    words(
        "Unrolling issues the loads of several iterations together, and waits once",
        "`unroll:N`, tried before any prefetching",
        PAGE,
    ),
    words(
        "In full where the loop is short, in part elsewhere; registers limit it",
        "`unroll:full`; registers are counted, and spills are timed",
        PAGE,
    ),
    words(
        "Prefetching to registers, if there are enough",
        "`batched-registers`, `rolling-registers`",
        PAGE,
    ),
    words(
        "`ctr%4` and a `switch` over four values: a batch every fourth iteration",
        "derived by unrolling, without the counter",
        "[strategies](strategies.md)",
    ),
    words(
        "Shared memory is easier to index, and costs an instruction to read",
        "`batched-shared`",
        PAGE,
    ),
    words(
        "Rolling: one value each iteration, used PDIST later; no latency is left if that is far enough",
        "`rolling-shared`, `rolling-registers`",
        PAGE,
    ),
    words(
        "A `syncthreads` in the loop is a fence: loads complete in their iteration",
        "registers survive it on an H200, stores to shared memory do not",
        PAGE,
    ),
    words(
        "Asynchronous copies complete when they are waited for",
        "`rolling-async`: `cp.async` on NVIDIA; Intel's GPUs have none, and what is emitted there, a load and a store, is what is timed",
        "[SPIR-V](spirv.md)",
    ),
    words(
        "Every wait needs a commit, also before the loop",
        "derived so: groups are closed once an iteration on every path",
        "headstart emit article --target ptx --plan arr=rolling-async:6",
    ),
    found(
        "Almost 60 % at a distance of 6, by asynchronous copies",
        || {
            format!(
                "{:.2}×, two terms for each element",
                speedup("arr=rolling-async:6/padded")
            )
        },
        RUN,
    ),
    words(
        "Gains are uneven as the buffer grows",
        "a sweep over the distance shows it",
        "headstart sweep article --device sim:a100 --set groups=324 --set work=2 --set elements=20000 --plan arr=rolling-async:6/plain --over distance=2..12",
    ),
    words(
        "Bank conflicts split the copies; padding to a power of two plus 1 helps",
        "`/padded`",
        PAGE,
    ),
    words(
        "Another indexing scheme would do without padding: an exercise",
        "`/interleaved`",
        PAGE,
    ),
    found(
        "The other ways gain 20 to 30 %",
        || {
            format!(
                "batches in shared memory {:.2}×",
                speedup("arr=batched-shared:6/padded")
            )
        },
        PAGE,
    ),
    found(
        "Scalar rolling slows the kernel by about 60 %",
        || {
            let losses = ["distance=2", "distance=8", "distance=16"].map(picked_loss);
            format!(
                "its shape, a `switch` over the counter, loses here, too: {:.0} % at a distance of 2, {:.0} at 8, {:.0} at 16. The 60 % are not reproduced: the article's kernel is not shown, and has registers to spare for a distance of eight; its listing would settle it",
                losses[0], losses[1], losses[2]
            )
        },
        "headstart run article-picked --device sim:a100 --set groups=108 --set distance=8",
    ),
    words(
        "Prefetching to L2 needs PTX",
        "`cache:L2:D` is `prefetch.global.L2`",
        "headstart emit article --target ptx --plan arr=cache:L2:8",
    ),
    words(
        "A hardware prefetcher would cost area",
        "there is none in the models",
        "[the simulator](simulator.md)",
    ),
    words(
        "Prefetch distance is a tuning parameter",
        "`tune` tries distances, and a budget",
        "headstart tune article --device sim:a100 --set elements=12800",
    ),
];
