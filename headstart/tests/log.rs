//! The tuner's log: a search that was stopped goes on, parts make the whole, and nothing stale is answered.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use headstart::device::model;
use headstart::device::sim::timer::Pace;
use headstart::ir::Kernel;
use headstart::model::DeviceModel;
use headstart::prefetch::Plan;
use headstart::report::{Outputs, Report};
use headstart::tune::{
    Bench, Bound, FileSubject, LaunchFile, Log, Looked, Platform, Raced, SearchSettings, Shard,
    SimulatedBench, Simulates, Timed, log, search,
};

/// A simulated device that counts how often it was asked for a time.
struct Counting {
    bench: SimulatedBench,
    timed: AtomicUsize,
}

impl Bench for Counting {
    fn platform(&self) -> &dyn Platform {
        self.bench.platform()
    }

    fn time(&self, bound: &Bound, kernel: &Arc<Kernel>) -> headstart::Result<Timed> {
        self.timed.fetch_add(1, Ordering::Relaxed);
        self.bench.time(bound, kernel)
    }

    fn time_within(
        &self,
        bound: &Bound,
        kernel: &Arc<Kernel>,
        _limit_ns: f64,
    ) -> headstart::Result<Option<f64>> {
        Ok(Some(self.time(bound, kernel)?.time_ns))
    }

    fn time_in_turns(
        &self,
        bound: &Bound,
        kernels: &[Arc<Kernel>],
    ) -> headstart::Result<Vec<headstart::Result<(Timed, Outputs)>>> {
        self.bench.time_in_turns(bound, kernels)
    }

    fn look(&self, bound: &Bound, kernels: &[Arc<Kernel>], watched: usize) -> headstart::Result<Vec<Looked>> {
        self.bench.look(bound, kernels, watched)
    }

    fn simulator(&self) -> Option<&dyn Simulates> {
        Some(self)
    }
}

impl Simulates for Counting {
    fn model(&self) -> &DeviceModel {
        self.bench.model()
    }

    fn time_sampled(&self, bound: &Bound, kernel: &Arc<Kernel>, _cores: u32) -> headstart::Result<Timed> {
        self.time(bound, kernel)
    }

    fn race(&self, bound: &Bound, kernel: &Arc<Kernel>, _pace: &Pace) -> headstart::Result<Raced> {
        Ok(Raced::Ended(Box::new(self.time(bound, kernel)?), None))
    }

    fn soon(&self, _bound: &Bound, _kernel: &Arc<Kernel>) -> headstart::Result<Option<Timed>> {
        Ok(None)
    }
}

const GATHER: &str = include_str!("in/gather.hsir");

fn run(text: &str, items: u32, overrides: &[&str], shard: Option<&str>, log: &Log) -> (Report, usize) {
    let kernel = headstart::ir::read(text, "gather.hsir").expect("a kernel");
    let launch = format!(
        "groups = 2\n[parameters.indices]\nlength = 65536\nfill = \"indices\"\nbelow = 1000\n[parameters.values]\n\
         length = 1000\nfill = \"fractions\"\n[parameters.result]\nlength = 256\noutput = \"bits\"\n[parameters.items]\n\
         value = {items}\n"
    );
    let launch = LaunchFile::parse(&launch, "launch.toml").expect("a launch file");
    let overrides: Vec<String> = overrides.iter().map(|&text| text.to_owned()).collect();
    let bench = Counting {
        bench: SimulatedBench::new(model::built_in("h200", &overrides).expect("a model")),
        timed: AtomicUsize::new(0),
    };
    let plans: Vec<Plan> = [
        "unroll:2",
        "unroll:4",
        "values=rolling-registers:4",
        "values=cache:L2:2",
    ]
    .map(|plan| plan.parse().expect("a plan"))
    .to_vec();
    let asked = SearchSettings {
        plans: Some(&plans),
        shard: shard.map(|shard| shard.parse::<Shard>().expect("a shard")),
        log: Some(log),
        ..SearchSettings::default()
    };
    let subject = FileSubject::new(Arc::new(kernel), launch);
    let report = search(&subject, &bench, &asked, &()).expect("a report").report;
    (report, bench.timed.into_inner())
}

#[test]
fn what_is_known_is_not_measured_again_and_the_report_is_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("log.jsonl");
    let log = Log::open(&path).expect("a new log");
    let (first, timed) = run(GATHER, 19, &[], None, &log);
    assert_eq!(timed, 5);
    drop(log);

    // As if it had been killed while it wrote its third line.
    let text = std::fs::read_to_string(&path).expect("there");
    let ends: Vec<usize> = text.match_indices('\n').map(|(at, _)| at).collect();
    assert_eq!(ends.len(), 4);
    std::fs::write(&path, &text[..ends[1] + 20]).expect("written");
    let log = Log::open(&path).expect("a log");
    let (again, timed) = run(GATHER, 19, &[], None, &log);
    // The plain kernel, and the two that were lost.
    assert_eq!(timed, 3);
    assert_eq!(again.trials, first.trials);
    assert_eq!(again, first);
    let (known, timed) = run(GATHER, 19, &[], None, &log);
    assert_eq!((known, timed), (first, 1));
}

#[test]
fn another_kernel_size_or_device_is_measured_anew() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = Log::open(&folder.path().join("log.jsonl")).expect("a new log");
    assert_eq!(run(GATHER, 19, &[], None, &log).1, 5);
    let edited = GATHER.replace(
        "%shifted = fadd %value, 1.0:f32",
        "%shifted = fadd %value, 2.0:f32",
    );
    assert_ne!(edited, GATHER);
    assert_eq!(run(&edited, 19, &[], None, &log).1, 5);
    let aligned = GATHER.replace("f32[%values_len] align 4", "f32[%values_len] align 16");
    assert_ne!(aligned, GATHER);
    assert_eq!(run(&aligned, 19, &[], None, &log).1, 5);
    assert_eq!(run(GATHER, 18, &[], None, &log).1, 5);
    assert_eq!(run(GATHER, 19, &["dram.latency=900"], None, &log).1, 5);
    assert_eq!(run(GATHER, 19, &[], None, &log).1, 1);
}

#[test]
fn parts_make_the_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let paths = ["1", "2", "all"].map(|name| folder.path().join(name));
    for (shard, path) in ["1/2", "2/2"].iter().zip(&paths) {
        let log = Log::open(path).expect("a new log");
        assert_eq!(run(GATHER, 19, &[], Some(shard), &log).1, 3);
    }
    let merged = log::merge(&paths[..2]).expect("logs");
    assert_eq!((merged.searches, merged.trials), (1, 4));
    std::fs::write(&paths[2], &merged.text).expect("written");
    let all = Log::open(&paths[2]).expect("a log");
    let (report, timed) = run(GATHER, 19, &[], None, &all);
    assert_eq!((timed, report.trials.len()), (1, 5));
}
