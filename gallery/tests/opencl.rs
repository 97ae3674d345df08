//! Every kernel of the gallery under every legal plan, on an OpenCL device: Intel's runtime for CPUs, which
//! `scripts/tools` sets up, or a GPU. The bits are the simulator's.
//!
//! A run takes one plan in [`PARTS`], others each time (`HEADSTART_SEED` repeats one); `HEADSTART_PART=all` takes them
//! all.

use std::collections::BTreeMap;
use std::sync::Arc;

use headstart::device::Device;
use headstart::device::opencl::device::OpenClDevice;
use headstart::device::sim::Simulator;
use headstart::device::sim::functional::Options;
use headstart::ir::{CacheLevel, Kernel};
use headstart::prefetch::{self, Plan, Target};
use headstart::testing::{self, tools};
use headstart::tune::check::compare;
use headstart::tune::search::main_loads;
use headstart::tune::space::default_plans;
use headstart::tune::{Bound, Subject, Workload};
use headstart_gallery::kernels::{self, KERNELS};
use headstart_gallery::techniques::FAMILIES;

/// Of so many plans one is tried.
const PARTS: usize = 160;

/// Every kernel at a size that takes a moment.
const SMALL: [(&str, &[&str]); 23] = [
    ("gather", &["group=64", "items=40", "table=4096", "work=2"]),
    (
        "gather-pointer",
        &["group=32", "items=20", "table=4096", "work=1"],
    ),
    (
        "gather-hint-l3",
        &["group=32", "items=20", "table=4096", "work=1"],
    ),
    (
        "gather-hint-l1",
        &["group=32", "items=20", "table=4096", "work=1"],
    ),
    ("article", &["group=40", "elements=1000"]),
    ("latency", &["work=2", "steps=40"]),
    (
        "embedding-bag",
        &[
            "bags=5",
            "bag=9",
            "dim=16",
            "rows=100",
            "group=32",
            "lengths=ragged",
        ],
    ),
    (
        "embedding-bag",
        &["bags=5", "bag=9", "dim=16", "rows=100", "group=32", "element=f16"],
    ),
    ("spmv", &["rows=64", "group=32", "matrix=power-law"]),
    ("spmv-blocks", &["rows=64", "group=32", "matrix=power-law"]),
    ("index-select", &["groups=2", "group=32", "items=20", "bits=10"]),
    ("scatter", &["groups=2", "group=32", "items=20", "bits=12"]),
    ("hash-probe", &["groups=2", "group=32", "items=20", "bits=10"]),
    ("binary-search", &["groups=2", "group=32", "items=4", "levels=8"]),
    ("btree", &["groups=2", "group=32", "items=4", "levels=2"]),
    ("bfs", &["scale=6", "degree=8", "steps=1", "group=32", "lanes=4"]),
    ("pagerank", &["scale=6", "degree=8", "group=32", "lanes=4"]),
    (
        "cross-section",
        &["groups=2", "group=32", "nuclides=30", "points=9", "grid=11"],
    ),
    ("option-pricing", &["groups=2", "group=32", "steps=9"]),
    (
        "attention",
        &["sequences=3", "heads=2", "tokens=20", "pool=5", "group=32"],
    ),
    ("chase", &["groups=2", "group=32", "steps=9", "bits=8"]),
    ("triad", &["quads=200", "items=3", "group=32"]),
    ("nbody", &["bodies=40", "group=32"]),
];

/// A kernel with its data on the device, and what the simulator computes.
struct Subjected {
    bound: Bound,
    workload: Workload,
    plain: Arc<Kernel>,
    right: Vec<Vec<u8>>,
    target: Target,
}

impl Subjected {
    fn new(device: &OpenClDevice, kernel: &str, settings: &[&str]) -> Subjected {
        let settings: Vec<String> = settings.iter().map(ToString::to_string).collect();
        let chosen = kernels::find(kernel).and_then(|kernel| kernel.with(&settings, None));
        let workload = chosen.and_then(|chosen| chosen.workload()).expect("a workload");
        let target = Target {
            group_size: Some(workload.group),
            line: 64,
        };
        let plain = prefetch::carry_out_wishes(&workload.kernel, &target).expect("wishes");
        let plain = Arc::new(plain);
        let simulator = Simulator::new(device.description().clone(), Options::FAST, None);
        let (_, right) = workload
            .bind(&simulator)
            .and_then(|bound| bound.run(&simulator, &plain))
            .unwrap_or_else(|error| panic!("{kernel}: {error}"));
        Subjected {
            bound: workload.bind(device).expect("there is memory"),
            workload,
            plain,
            right,
            target,
        }
    }

    fn run(&self, device: &OpenClDevice, kernel: &Arc<Kernel>) -> headstart::Result<()> {
        let (_, found) = self.bound.run(device, kernel)?;
        compare(&self.workload, &self.right, &found).map(drop)
    }
}

fn opencl() -> Option<OpenClDevice> {
    match OpenClDevice::open(0) {
        Ok(device) => Some(device),
        Err(error) => {
            tools::skip("opencl", &error.to_string());
            None
        }
    }
}

#[test]
fn every_plan_computes_the_simulators_bits() {
    let Some(device) = opencl() else { return };
    let all = std::env::var("HEADSTART_PART").is_ok_and(|part| part == "all");
    let seed = testing::base_seed() as usize;
    let (mut tried, mut wrong) = (0, Vec::new());
    let mut left_out: BTreeMap<String, u32> = BTreeMap::new();
    for (name, settings) in SMALL {
        let subject = Subjected::new(&device, name, settings);
        let plans = default_plans(&main_loads(&subject.plain), &[CacheLevel::L1, CacheLevel::L3]);
        let plans = std::iter::once(Plan::default()).chain(plans.expect("plans"));
        for (number, plan) in plans.enumerate() {
            // The plain kernel is always tried.
            if !all && number > 0 && number % PARTS != seed % PARTS {
                continue;
            }
            let Ok(derived) = prefetch::apply(&subject.plain, &plan, &subject.target) else {
                continue;
            };
            if derived.kernel.shared_bytes() > device.description().max_shared_bytes {
                *left_out
                    .entry("more shared memory than there is".to_owned())
                    .or_default() += 1;
                continue;
            }
            tried += 1;
            if let Err(error) = subject.run(&device, &Arc::new(derived.kernel)) {
                wrong.push(format!("{name} under {plan}: {error}"));
            }
        }
    }
    println!(
        "{tried} kernels on {}; left out: {left_out:?}",
        device.description().title
    );
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(tried >= SMALL.len(), "{tried} kernels");
}

/// What shows that the test above can fail: a kernel that does other work has other results.
#[test]
fn a_wrong_kernel_is_noticed() {
    let Some(device) = opencl() else { return };
    let settings = |work| ["group=64", "items=40", "table=4096", work];
    let one = Subjected::new(&device, "gather", &settings("work=1"));
    let two = Subjected::new(&device, "gather", &settings("work=2"));
    two.run(&device, &two.plain).expect("its own results are right");
    two.run(&device, &one.plain)
        .expect_err("another kernel's are not");
}

#[test]
fn no_workload_is_left_out() {
    // The techniques and the microbenchmarks are not run there yet.
    let technique = |name: &str| {
        let mut shown = FAMILIES.iter().flat_map(|family| family.kernels);
        shown.any(|(kernel, _)| *kernel == name)
    };
    for kernel in KERNELS
        .into_iter()
        .filter(|kernel| !technique(kernel.name) && !kernel.name.starts_with("micro/"))
    {
        assert!(
            SMALL.iter().any(|(name, _)| *name == kernel.name),
            "{}",
            kernel.name
        );
    }
}
