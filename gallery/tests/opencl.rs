//! Every kernel of the gallery under every legal plan, on an OpenCL device: Intel's runtime for CPUs, which
//! `scripts/tools` sets up, or a GPU. The bits are the simulator's.
//!
//! A run takes one plan in [`PARTS`], and of the techniques and microbenchmarks one in four, others each time
//! (`HEADSTART_SEED` repeats one). `HEADSTART_PART=all` takes them all, `HEADSTART_PART=2/16` the third sixteenth of
//! them all, so that sixteen processes share the work; `HEADSTART_KERNELS=gather,article` takes those kernels only, and
//! tells each plan before it is tried. With `--nocapture` each case is printed as it is done.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use headstart::device::Device;
use headstart::device::opencl::device::OpenClDevice;
use headstart::device::sim::Simulator;
use headstart::device::sim::functional::Options;
use headstart::ir::{CacheLevel, Kernel};
use headstart::prefetch::{self, Plan, PlanTarget};
use headstart::tune::check::compare;
use headstart::tune::search::main_loads;
use headstart::tune::space::default_plans;
use headstart::tune::{Bound, Subject, Workload};
use headstart_gallery::kernels;
use headstart_gallery::techniques::FAMILIES;
use headstart_testing::{self as testing, tools};

/// Of this many plans one is tried.
const PARTS: usize = 400;

/// The documents' kernels and the workloads, at sizes that take a moment.
const SMALL: [&str; 27] = [
    "gather group=64 items=40 table=4096 work=2",
    "gather-pointer group=32 items=20 table=4096 work=1",
    "gather-hint-l3 group=32 items=20 table=4096 work=1",
    "gather-hint-l1 group=32 items=20 table=4096 work=1",
    // Its roots may differ in the last bits, so that it takes none.
    "gather-sample form=hint-l1 group=32 items=20 table=4096 work=0",
    "article group=40 elements=1000",
    "article-picked groups=2 group=32 elements=1000",
    "latency work=2 steps=40",
    "embedding-bag bags=5 bag=9 dim=16 rows=100 group=32 lengths=ragged",
    "embedding-bag bags=5 bag=9 dim=16 rows=100 group=32 element=f16",
    "spmv rows=64 group=32 matrix=power-law",
    "spmv-blocks rows=64 group=32 matrix=power-law",
    "index-select groups=2 group=32 items=20 bits=10",
    "scatter groups=2 group=32 items=20 bits=12",
    "scatter-shared groups=2 group=32 items=20 bits=6",
    "hash-probe groups=2 group=32 items=20 bits=10",
    "binary-search groups=2 group=32 items=4 levels=8",
    "btree groups=2 group=32 items=4 levels=2",
    "bfs scale=6 degree=8 steps=1 group=32 lanes=4",
    "pagerank scale=6 degree=8 group=32 lanes=4",
    "cross-section groups=2 group=32 nuclides=30 points=9 grid=11",
    "option-pricing groups=2 group=32 steps=9",
    "attention sequences=3 heads=2 tokens=20 pool=5 group=32",
    "chase groups=2 group=32 steps=9 bits=8",
    "triad quads=200 items=3 group=32",
    "nbody bodies=40 group=32",
    "prefetch-examples groups=2 group=32 count=20 work=1",
];

/// Kernels that are PTX of instructions which SPIR-V lacks.
const PTX_ONLY: [&str; 1] = ["micro/products"];

/// The microbenchmarks: each of their kernels, and each instruction that they time.
const MICRO: [&str; 37] = [
    "micro/latency footprint=4096 warm=0 steps=9",
    "micro/latency footprint=4096 warm=0 steps=9 order=random chains=work-item",
    "micro/controls footprint=4096 steps=9",
    "micro/bandwidth groups=2 group=32 footprint=4096 warm=0 steps=5",
    "micro/bandwidth groups=2 group=32 footprint=4096 warm=0 steps=5 width=4",
    "micro/bandwidth groups=2 group=32 footprint=4096 warm=0 steps=5 segment=8 ahead=2",
    "micro/arithmetic steps=3 operation=int32",
    "micro/arithmetic steps=3 operation=multiply",
    "micro/arithmetic steps=3 operation=count-ones",
    "micro/arithmetic steps=3 operation=fp32",
    "micro/arithmetic steps=3 operation=square-root",
    "micro/arithmetic steps=3 operation=fp64",
    "micro/arithmetic steps=3 operation=convert",
    "micro/arithmetic steps=3 operation=fp16",
    "micro/operands steps=3 group=64 type=fp32",
    "micro/operands steps=3 group=64 type=fp64 registers=2",
    "micro/barrier steps=3",
    "micro/shared steps=9 stride=5",
    "micro/launch groups=3",
    "micro/vectors elements=64 steps=5 width=1",
    "micro/vectors elements=64 steps=5 width=4",
    "micro/slices groups=2 steps=5 lines=same",
    "micro/stacks groups=2 group=32 footprint=1048576 steps=5 part=other",
    "micro/compression groups=2 group=32 footprint=1048576 steps=5 data=alike",
    "micro/code steps=3",
    "micro/hints group=64 steps=5",
    "micro/hints group=64 steps=5 level=L1",
    "micro/reach steps=9 level=L2",
    "micro/copies group=64 apart=64 steps=9",
    "micro/stores groups=2 group=64 footprint=65536 steps=3",
    "micro/stores groups=2 group=64 footprint=65536 segment=4 steps=3",
    "micro/strided group=64 stride=3 warm=1 steps=3",
    "micro/strided group=64 width=4 together=4 warm=1 steps=3",
    "micro/copies group=64 apart=64 steps=9 by=loads",
    "micro/written footprint=4096 steps=9 writes=yes",
    // With `kept` each work-item stores the old value, which depends on the order of arrival.
    "micro/atomics groups=2 steps=9 address=same order=acq-rel cache=flushed",
    "micro/sub-groups groups=2 group=64 size=16 steps=5",
];

/// Kernels and plans on which Intel's compiler for CPUs (2026.2.0) crashes, with a corrupted heap in passes of its own. With
/// other distances the same kernel runs.
const CRASHES: [(&str, &str); 1] = [("exchange-shared", "values=batched-registers:12")];

/// What a technique is run with.
fn small(technique: &str) -> String {
    let settings = match technique {
        "shared-banks" | "shared-barriers" => "groups=2 group=32 rounds=9",
        "article-short" | "article-together" => "groups=2 group=32 count=11",
        "centre-8" | "centre-32" => "groups=2 group=64 size=16",
        _ => "groups=2 group=32 elements=1024",
    };
    format!("{technique} {settings}")
}

fn name_of(case: &str) -> &str {
    case.split(' ').next().unwrap_or_default()
}

/// Every kernel that is run, with its settings.
fn cases() -> Vec<String> {
    let techniques = FAMILIES.iter().flat_map(|family| family.names());
    let techniques = techniques.filter(|name| SMALL.iter().all(|other| name_of(other) != *name));
    let written = |cases: &[&str]| cases.iter().map(ToString::to_string).collect::<Vec<_>>();
    [written(&SMALL), techniques.map(small).collect(), written(&MICRO)].concat()
}

/// A kernel with its data on the device, and what the simulator computes.
struct Subjected {
    bound: Bound,
    workload: Workload,
    plain: Arc<Kernel>,
    right: Vec<Vec<u8>>,
    target: PlanTarget,
}

impl Subjected {
    fn new(device: &OpenClDevice, case: &str) -> headstart::Result<Subjected> {
        let workload = kernels::case(case)?.workload()?;
        let target = PlanTarget {
            group_size: Some(workload.group),
            line: 64,
        };
        let plain = Arc::new(prefetch::carry_out_wishes(&workload.kernel, &target)?);
        let simulator = Simulator::custom(device.description().clone(), Options::FAST, None);
        let (_, right) = workload
            .bind(&simulator)
            .and_then(|bound| bound.run(&simulator, &plain))?;
        Ok(Subjected {
            bound: workload.bind(device)?,
            workload,
            plain,
            right,
            target,
        })
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

/// Which plans of which kernels a run takes.
struct Chosen {
    /// Of this many plans one is taken, and of a kernel with few plans the plain kernel.
    share: Option<(usize, usize)>,
    kernels: Option<Vec<String>>,
    seed: usize,
}

impl Chosen {
    /// What the environment asks for.
    fn new() -> Chosen {
        let share = match std::env::var("HEADSTART_PART").ok() {
            None => None,
            Some(part) if part == "all" => Some((0, 1)),
            Some(part) => {
                let numbers = part.split_once('/');
                let numbers = numbers.and_then(|(at, of)| Some((at.parse().ok()?, of.parse().ok()?)));
                let share = numbers.filter(|(at, of)| at < of);
                Some(share.unwrap_or_else(|| panic!("HEADSTART_PART is `all` or as `2/16`, not `{part}`")))
            }
        };
        let kernels = std::env::var("HEADSTART_KERNELS").ok();
        Chosen {
            share,
            kernels: kernels.map(|names| names.split(',').map(str::to_owned).collect()),
            seed: testing::base_seed() as usize,
        }
    }

    /// Whether this kernel, at its place among the cases, is looked at.
    fn takes_kernel(&self, name: &str, place: usize) -> bool {
        let named = self.kernels.as_ref();
        // Of kernels with one plan or few, each run takes some.
        named.map_or(
            self.share.is_some() || place < SMALL.len() || place % 4 == self.seed % 4,
            |names| names.iter().any(|of| of == name),
        )
    }

    /// Whether this plan of the kernel at this place is tried; number 0 is the plain kernel.
    fn takes_plan(&self, number: usize, place: usize) -> bool {
        match self.share {
            Some((at, of)) => (number + place) % of == at,
            // The plain kernel is always tried.
            None => number == 0 || number % PARTS == self.seed % PARTS,
        }
    }
}

#[test]
fn every_plan_computes_the_simulators_bits() {
    let Some(device) = opencl() else { return };
    let chosen = Chosen::new();
    let (mut tried, mut wrong) = (0, Vec::new());
    let mut left_out: BTreeMap<String, u32> = BTreeMap::new();
    let started = Instant::now();
    for (place, case) in cases().iter().enumerate() {
        let name = name_of(case);
        if !chosen.takes_kernel(name, place) {
            continue;
        }
        let before = (tried, wrong.len());
        let subject = match Subjected::new(&device, case) {
            Ok(subject) => subject,
            Err(error) => {
                wrong.push(format!("{name}: {error}"));
                continue;
            }
        };
        let plans = default_plans(&main_loads(&subject.plain), &[CacheLevel::L1, CacheLevel::L3]);
        let plans = std::iter::once(Plan::default()).chain(plans.expect("plans"));
        for (number, plan) in plans.enumerate() {
            if !chosen.takes_plan(number, place) {
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
            if CRASHES.contains(&(name, plan.to_string().as_str())) {
                let why = format!("{name} under {plan}: Intel's compiler crashes");
                *left_out.entry(why).or_default() += 1;
                continue;
            }
            if chosen.kernels.is_some() {
                println!("{name} under {plan}");
            }
            tried += 1;
            if let Err(error) = subject.run(&device, &Arc::new(derived.kernel)) {
                wrong.push(format!("{name} under {plan}: {error}"));
            }
        }
        println!(
            "{:.0} s: {case}: {} kernels, {} wrong",
            started.elapsed().as_secs_f64(),
            tried - before.0,
            wrong.len() - before.1
        );
    }
    println!(
        "{tried} kernels on {}; left out: {left_out:?}",
        device.description().title
    );
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    let least = match (&chosen.share, &chosen.kernels) {
        (None, None) => SMALL.len(),
        _ => 1,
    };
    assert!(tried >= least, "{tried} kernels");
}

/// What shows that the test above can fail: a kernel that does other work has other results.
#[test]
fn a_wrong_kernel_is_noticed() {
    let Some(device) = opencl() else { return };
    let [one, two] = [1, 2].map(|work| {
        let case = format!("gather group=64 items=40 table=4096 work={work}");
        Subjected::new(&device, &case).expect("it runs")
    });
    two.run(&device, &two.plain).expect("its own results are right");
    two.run(&device, &one.plain)
        .expect_err("another kernel's are not");
}

#[test]
fn no_kernel_is_left_out() {
    let cases = cases();
    for kernel in kernels::all() {
        assert!(
            cases.iter().any(|case| name_of(case) == kernel.name) || PTX_ONLY.contains(&kernel.name),
            "{}",
            kernel.name
        );
    }
    // A run takes some of the cases: a size that a kernel does not take must fail in every run.
    for case in cases {
        let workload = kernels::case(&case).and_then(|kernel| kernel.workload());
        assert!(workload.is_ok(), "{case}: {}", workload.unwrap_err());
    }
}
