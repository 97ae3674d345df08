//! Every plan of the default space, for every kernel of the gallery, computes the plain kernel's bits, at small sizes.
//!
//! All are derived. To check all takes minutes: a run checks one part of [`PARTS`], another one every day. `HEADSTART_PART`
//! chooses it: a number, or `all`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use headstart::device::sim::Simulator;
use headstart::ir::CacheLevel;
use headstart::prefetch::{self, Plan, PlanTarget};
use headstart::report::Outputs;
use headstart::tune::Subject;
use headstart::tune::check::Checks;
use headstart::tune::search::main_loads;
use headstart::tune::space::{GROUPS, default_plans};
use headstart_gallery::kernels;
use headstart_gallery::techniques::FAMILIES;

/// A run checks one plan of this many.
const PARTS: usize = 8;

/// The part of this run; none for all.
fn part() -> Option<usize> {
    let today = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs()
        / 86_400;
    match std::env::var("HEADSTART_PART").as_deref() {
        Ok("all") => None,
        Ok(number) => Some(number.parse().expect("HEADSTART_PART is a number or `all`")),
        Err(_) => Some(today as usize % PARTS),
    }
}

/// What came of a kernel's plans.
struct Tried {
    tried: usize,
    refused: Vec<Plan>,
}

/// Derives and checks a kernel's plans.
fn check(kernel: &str, settings: &[&str]) -> Tried {
    let settings: Vec<String> = settings.iter().map(ToString::to_string).collect();
    let subject = kernels::find(kernel)
        .expect("a kernel")
        .with(&settings, None)
        .expect("settings");
    let workload = subject.workload().expect("a workload");
    let target = PlanTarget::of(workload.group);
    let plain = Arc::new(prefetch::carry_out_wishes(&workload.kernel, &target).expect("wishes"));
    let loads = main_loads(&plain);
    let plans = default_plans(&loads, &[CacheLevel::L1, CacheLevel::L2]).expect("plans");
    let part = part();
    let mut refused: BTreeMap<String, Vec<Plan>> = BTreeMap::new();
    let mut derived = Vec::new();
    for (number, plan) in plans.iter().enumerate() {
        match prefetch::apply(&plain, plan, &target) {
            Ok(applied) if part.is_none_or(|part| number % PARTS == part) => {
                derived.push((applied.plan, Arc::new(applied.kernel)));
            }
            Ok(_) => {}
            Err(error) => {
                assert_ne!(error.fault(), headstart::Fault::Bug, "{kernel} {plan}: {error}");
                refused.entry(error.to_string()).or_default().push(plan.clone());
            }
        }
    }
    let loads: Vec<String> = loads.iter().map(ToString::to_string).collect();
    println!(
        "{kernel}: {} of {} plans are refused for {}",
        refused.values().map(Vec::len).sum::<usize>(),
        plans.len(),
        loads.join(", ")
    );
    for (reason, plans) in &refused {
        println!("  {} such as `{}`: {reason}", plans.len(), plans[0]);
    }
    let device = Simulator::untimed();
    let checks =
        Checks::new(&subject, &plain, &device, derived.iter().map(|(plan, _)| plan)).expect("it runs plain");
    let wrong: Vec<String> = derived
        .iter()
        .filter_map(|(plan, kernel)| match checks.check(plan, kernel) {
            Ok(Outputs::Identical) => None,
            Ok(Outputs::Equivalent) => Some(format!("{plan}: other bits")),
            // More shared memory than the device has.
            Err(error) if error.fault() == headstart::Fault::Device => None,
            Err(error) => Some(format!("{plan}: {error}")),
        })
        .collect();
    assert!(
        wrong.is_empty(),
        "{kernel}: {} of {} plans:\n{}",
        wrong.len(),
        derived.len(),
        wrong.join("\n")
    );
    Tried {
        tried: plans.len(),
        refused: refused.into_values().flatten().collect(),
    }
}

/// Nine plans in ten are legal.
fn check_most(kernel: &str, settings: &[&str]) {
    let Tried { tried, refused } = check(kernel, settings);
    assert_most(kernel, refused.len(), tried);
}

/// Nine plans in ten are legal, beside those that group the iterations of a loop whose end depends on what it loads.
fn check_most_ungrouped(kernel: &str, settings: &[&str]) {
    let Tried { tried, refused } = check(kernel, settings);
    let ungrouped = refused.iter().filter(|plan| plan.unroll().is_none());
    assert_most(kernel, ungrouped.count(), tried);
}

fn assert_most(kernel: &str, refused: usize, tried: usize) {
    assert!(
        refused * 10 <= tried,
        "{kernel}: {refused} of {tried} plans are refused"
    );
}

/// Nothing but unrolling is tried: what is asked for next depends on what was found.
fn check_unrolling(kernel: &str, settings: &[&str]) {
    let Tried { tried, .. } = check(kernel, settings);
    assert!(tried <= GROUPS.len(), "{kernel}: {tried} plans were tried");
}

macro_rules! kernels {
    ($($test:ident: $check:ident $kernel:literal [$($setting:literal),*];)*) => {$(
        #[test]
        fn $test() {
            $check($kernel, &[$($setting),*]);
        }
    )*};
}

kernels! {
    gather: check_most "gather" ["group=64", "items=40", "table=4096", "work=2"];
    gather_pointer: check "gather-pointer" ["group=32", "items=20", "table=4096", "work=1"];
    // These carry the next index in a variable, as the guide writes them: they can be unrolled, no more.
    gather_hint_l3: check "gather-hint-l3" ["group=32", "items=20", "table=4096", "work=1"];
    gather_hint_l1: check "gather-hint-l1" ["group=32", "items=20", "table=4096", "work=1"];
    gather_sample: check "gather-sample" ["group=32", "items=20", "table=4096", "work=1"];
    article: check_most "article" ["group=40", "elements=1000"];
    article_picked: check "article-picked" ["groups=2", "group=32", "elements=1000"];
    latency: check_most "latency" ["work=2", "steps=40"];
    embedding_bag: check_most "embedding-bag" ["bags=5", "bag=9", "dim=16", "rows=100", "group=32", "lengths=ragged"];
    embedding_bag_f16: check_most "embedding-bag" ["bags=5", "bag=9", "dim=16", "rows=100", "group=32", "element=f16"];
    spmv: check_most "spmv" ["rows=64", "group=32", "matrix=power-law"];
    spmv_blocks: check_most "spmv-blocks" ["rows=64", "group=32", "matrix=power-law"];
    index_select: check_most "index-select" ["groups=2", "group=32", "items=20", "bits=10"];
    scatter: check_most "scatter" ["groups=2", "group=32", "items=20", "bits=12"];
    scatter_shared: check_most "scatter-shared" ["groups=2", "group=32", "items=20", "bits=6"];
    hash_probe: check_most_ungrouped "hash-probe" ["groups=2", "group=32", "items=20", "bits=10"];
    binary_search: check "binary-search" ["groups=2", "group=32", "items=4", "levels=8"];
    btree: check "btree" ["groups=2", "group=32", "items=4", "levels=2"];
    bfs: check_most "bfs" ["scale=6", "degree=8", "steps=1", "group=32", "lanes=4"];
    pagerank: check_most "pagerank" ["scale=6", "degree=8", "group=32", "lanes=4"];
    cross_section: check_most "cross-section" ["groups=2", "group=32", "nuclides=30", "points=9", "grid=11"];
    option_pricing: check_most "option-pricing" ["groups=2", "group=32", "steps=9"];
    attention: check_most "attention" ["sequences=3", "heads=2", "tokens=20", "pool=5", "group=32"];
    chase: check_unrolling "chase" ["groups=2", "group=32", "steps=9", "bits=8"];
    triad: check_most "triad" ["quads=200", "items=3", "group=32"];
    nbody: check_most "nbody" ["bodies=40", "group=32"];
    prefetch_examples: check "prefetch-examples" ["groups=2", "group=32", "count=20", "work=1"];
}

#[test]
fn techniques() {
    // The article's loop has a test of its own.
    let names = FAMILIES.iter().flat_map(|family| family.names());
    for name in names.filter(|name| *name != "article") {
        match name {
            "shared-banks" | "shared-barriers" => check(name, &["groups=2", "group=32", "rounds=9"]),
            "article-short" | "article-together" => check(name, &["groups=2", "group=32", "count=11"]),
            "centre-8" | "centre-32" => check(name, &["groups=2", "group=64", "size=32"]),
            _ => check(name, &["groups=2", "group=32", "elements=1024"]),
        };
    }
}

#[test]
fn no_kernel_is_left_out() {
    let here = include_str!("plans.rs");
    let techniques: Vec<&str> = FAMILIES.iter().flat_map(|family| family.names()).collect();
    for kernel in kernels::KERNELS
        .iter()
        .filter(|kernel| !techniques.contains(&kernel.name))
    {
        assert!(
            here.contains(&format!("\"{}\"", kernel.name)),
            "{} is not checked",
            kernel.name
        );
    }
}
