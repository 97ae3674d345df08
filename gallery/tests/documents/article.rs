//! The lines of NVIDIA's article on prefetching, on the model of the A100 that it names.

use headstart::device::CacheState;
use headstart::device::sim::functional::Options;
use headstart_testing::run;

use super::page::Found;
use super::{model, planned, time, workload};

/// A launch with three work-groups on a core, and as many terms for each element that it waits for memory about as much as the article's
/// kernel, which is not shown.
const SETTINGS: &str = "groups=324 group=128 work=2 elements=20000";

/// How many times as fast as the plain kernel a plan is.
fn speedup(plan: &str) -> f64 {
    let a100 = model("a100", &[]);
    let took = |plan: &str| time(&a100, "article", SETTINGS, plan, CacheState::Kept);
    took("none") / took(plan)
}

/// Nanoseconds of a launch in which the article's own ring of registers, which a `switch` picks, and the plain kernel are compared.
fn took(name: &str, more: &str, plan: &str) -> f64 {
    let settings = format!("groups=108 group=128 elements=51200 {more}");
    time(&model("a100", &[]), name, &settings, plan, CacheState::Kept)
}

/// The article's shape computes what the kernel computes, and loses where the ring that we derive gains.
#[test]
fn a_register_that_the_counter_picks_computes_the_same() {
    let computed = |name: &str, more: &str| {
        let workload = workload(name, &format!("groups=2 group=32 elements=1000 {more}"));
        let kernel = planned(&workload, "none", 128);
        run(&workload, &kernel, Options::CHECKING).expect("it runs")
    };
    let right = computed("article", "");
    for load in ["behind", "cases"] {
        for distance in [2, 4, 8, 16] {
            let picked = computed("article-picked", &format!("load={load} distance={distance}"));
            let same = right
                .iter()
                .zip(&picked)
                .all(|((_, right), (_, found))| right == found);
            assert!(same && right.len() == picked.len(), "{load} {distance}");
        }
    }
    let plain = took("article", "", "none");
    for load in ["behind", "cases"] {
        let near = plain / took("article-picked", &format!("load={load} distance=2"), "none");
        let far = plain / took("article-picked", &format!("load={load} distance=16"), "none");
        assert!(far < near && near < 1.0 && far < 0.8, "{load}: {near} and {far}");
    }
    assert!(plain / took("article", "", "arr=rolling-registers:4") > 2.0);
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

pub const ROWS: [Found; 3] = [
    ("Almost 60 % at a distance of 6, by asynchronous copies", || {
        format!(
            "{:.2}×, two terms for each element",
            speedup("arr=rolling-async:6/padded")
        )
    }),
    ("The other ways gain 20 to 30 %", || {
        format!(
            "batches in shared memory {:.2}×",
            speedup("arr=batched-shared:6/padded")
        )
    }),
    ("Scalar rolling slows the kernel by about 60 %", || {
        let plain = took("article", "", "none");
        let loss = |distance| 100.0 * (1.0 - plain / took("article-picked", distance, "none"));
        let losses = ["distance=2", "distance=8", "distance=16"].map(loss);
        format!(
            "its shape, a `switch` over the counter, loses here, too: {:.0} % at a distance of 2, {:.0} at 8, {:.0} at 16. The 60 % are not reproduced: the article's kernel is not shown, and has registers to spare for a distance of eight; its listing would settle it",
            losses[0], losses[1], losses[2]
        )
    }),
];
