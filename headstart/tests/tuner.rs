//! Searches on a device whose clock drifts: few plans measured, nothing lost, several devices at once; and answers that
//! are remembered, none of them stale.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use headstart::device::model;
use headstart::front::ptx::Assembler;
use headstart::ir::Kernel;
use headstart::prefetch::Plan;
use headstart::report::{AtFullSize, Outputs, Report, Trial};
use headstart::tune::check::compare;
use headstart::tune::tuned::From;
use headstart::tune::{
    Answers, Bench, Bound, Explanation, FileSubject, Judge, Judged, LaunchFile, Log, Looked, MEASURED,
    MeasuredBench, Platform, Progress, SearchSettings, SeveralBench, SimulatedBench, Timed, Tuned, Workload,
    log, search, tuned_with,
};
use headstart::{Error, Fault, Result};
use headstart_testing::worker;

/// Stands for a GPU: a clock that is slower in every batch.
struct Drifting {
    truth: SimulatedBench,
    /// Plans that were timed, the plain kernel not counted.
    timed: Arc<AtomicUsize>,
    batches: AtomicUsize,
    /// From which batch on, counted from 0, it answers nothing any more.
    lost_in: Option<usize>,
    slower: f64,
}

fn simulated(overrides: &[&str]) -> SimulatedBench {
    let overrides: Vec<String> = overrides.iter().map(|&text| text.to_owned()).collect();
    SimulatedBench::new(model::built_in("h200", &overrides).expect("a model"))
}

impl Drifting {
    fn new(overrides: &[&str]) -> Drifting {
        Drifting {
            truth: simulated(overrides),
            timed: Arc::default(),
            batches: AtomicUsize::new(0),
            lost_in: None,
            slower: 1.0,
        }
    }
}

impl Bench for Drifting {
    fn platform(&self) -> &dyn Platform {
        self.truth.platform()
    }

    fn time(&self, bound: &Bound, kernel: &Arc<Kernel>) -> Result<Timed> {
        self.truth.time(bound, kernel)
    }

    fn time_within(&self, bound: &Bound, kernel: &Arc<Kernel>, _limit_ns: f64) -> Result<Option<f64>> {
        Ok(Some(self.time(bound, kernel)?.time_ns))
    }

    fn time_in_turns(&self, bound: &Bound, kernels: &[Arc<Kernel>]) -> Result<Vec<Result<(Timed, Outputs)>>> {
        let batch = self.batches.fetch_add(1, Ordering::Relaxed);
        if self.lost_in.is_some_and(|lost| batch >= lost) {
            return Err(Error::device("the driver was reset"));
        }
        self.timed.fetch_add(kernels.len() - 1, Ordering::Relaxed);
        let drift = self.slower * (1.0 + 0.3 * batch as f64);
        let time = |kernel: &Arc<Kernel>| {
            let mut timed = self.time(bound, kernel)?;
            timed.time_ns *= drift;
            Ok((timed, Outputs::Identical))
        };
        Ok(kernels.iter().map(time).collect())
    }

    fn look(&self, _bound: &Bound, _kernels: &[Arc<Kernel>], _watched: usize) -> Result<Vec<Looked>> {
        Ok(Vec::new())
    }

    fn judge(&self) -> Option<&dyn Judge> {
        Some(self)
    }
}

impl Judge for Drifting {
    fn judge(&self, launch: &Workload, plan: &Arc<Kernel>) -> Result<Judged> {
        let bound = launch.bind(self.device())?;
        let run = |kernel| bound.run(self.device(), kernel).map(|(_, left)| left);
        let Ok(own) = run(&launch.kernel) else {
            return Ok(Judged::NotComparable);
        };
        let left = run(plan).and_then(|left| compare(launch, &own, &left));
        Ok(left.map_or_else(Judged::Different, |_| Judged::Same))
    }

    fn outputs_of(&self, _workload: &Workload, _kernel: &Arc<Kernel>) -> Result<Option<Vec<Vec<u8>>>> {
        Ok(None)
    }

    fn assembler(&self) -> Option<Assembler> {
        None
    }

    fn at_full_size(&self) -> Option<AtFullSize> {
        None
    }

    fn explain(&self, _bound: &Bound, _kernel: &Arc<Kernel>, _patience: Duration) -> Option<Explanation> {
        None
    }
}

const GATHER: &str = include_str!("in/gather.hsir");

fn subject(text: &str, items: u32) -> FileSubject {
    let kernel = headstart::ir::read(text, "gather.hsir").expect("a kernel");
    let launch = format!(
        "groups = 2\n[parameters.indices]\nlength = 65536\nfill = \"indices\"\nbelow = 1000000\n[parameters.values]\n\
         length = 1000000\nfill = \"fractions\"\n[parameters.result]\nlength = 256\noutput = \"bits\"\n[parameters.items]\n\
         value = {items}\n"
    );
    let launch = LaunchFile::parse(&launch, "launch.toml").expect("a launch file");
    FileSubject::new(Arc::new(kernel), launch)
}

fn run(bench: &dyn Bench, measure: Option<usize>, log: Option<&Log>) -> Report {
    let asked = SearchSettings {
        measure,
        log,
        ..SearchSettings::default()
    };
    search(&subject(GATHER, 40), bench, &asked, &())
        .expect("a report")
        .report
}

fn best(report: &Report) -> f64 {
    report
        .trials
        .iter()
        .filter_map(Trial::measured)
        .map(|(_, speedup)| speedup)
        .fold(1.0, f64::max)
}

#[test]
fn few_measured_plans_find_what_all_of_them_would() {
    for overrides in [&["dram.latency=1100"][..], &["dram.latency=400"]] {
        let all = run(&simulated(overrides), None, None);
        let bench = Drifting::new(overrides);
        let few = run(&bench, Some(MEASURED), None);
        assert!(all.trials.len() > 2 * MEASURED, "{}", all.trials.len());
        assert_eq!(bench.timed.load(Ordering::Relaxed), MEASURED);
        assert!(
            best(&few) * 1.03 >= best(&all),
            "{overrides:?}: {} of {}",
            best(&few),
            best(&all)
        );
        assert!(
            few.notes
                .iter()
                .any(|note| note.contains(&format!("{MEASURED} of "))),
            "{:?}",
            few.notes
        );
    }
}

/// A search that has time for its first plans, and for no more.
struct Short;

impl Progress for Short {
    fn left(&self) -> Option<Duration> {
        Some(Duration::ZERO)
    }
}

#[test]
fn a_search_without_time_for_another_plan_says_what_is_open() {
    let bench = Drifting::new(&[]);
    let asked = SearchSettings {
        measure: Some(MEASURED),
        ..SearchSettings::default()
    };
    let found = search(&subject(GATHER, 40), &bench, &asked, &Short);
    let report = found.expect("a report").report;
    let measured = bench.timed.load(Ordering::Relaxed);
    assert!(0 < measured && measured < MEASURED, "{measured}");
    let partial = report.partial.as_ref().expect("it is partial");
    // One of each family first, however many are measured at a time.
    let tried = partial.tried_kinds.len();
    assert!(tried == measured || tried >= 7, "{measured}: {partial:?}");
    // With many processors all of them are measured at once.
    assert!(tried >= 7 || !partial.open_kinds.is_empty(), "{partial:?}");
    assert!(
        partial
            .tried_kinds
            .iter()
            .all(|kind| !partial.open_kinds.contains(kind)),
        "{partial:?}"
    );
    let notes = report.notes.join("\n");
    assert!(notes.contains("Not explained: bytes moved"), "{notes}");
    // A whole search knows of every family.
    let whole = run(&Drifting::new(&[]), Some(MEASURED), None);
    assert!(whole.partial.is_none());
    let open: BTreeSet<&str> = whole
        .trials
        .iter()
        .flat_map(|trial| family(&trial.plan))
        .collect();
    for family in [
        "unroll",
        "rolling-async",
        "rolling-registers",
        "batched-registers",
        "cache",
    ] {
        assert!(open.contains(family), "{open:?}");
    }
}

/// The strategy of a plan's first load, or `unroll`.
fn family(plan: &Plan) -> Option<&'static str> {
    let first = plan.loads().first().map(|(_, strategy)| strategy.name());
    first.or(plan.unroll().map(|_| "unroll"))
}

#[test]
fn what_was_measured_before_a_device_is_lost_is_reported_and_not_measured_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("log.jsonl");
    let log = Log::open(&path).expect("a new log");
    let mut bench = Drifting::new(&[]);
    bench.lost_in = Some(6);
    let report = run(&bench, Some(MEASURED), Some(&log));
    let partial = report.partial.as_ref().expect("it is partial");
    assert!(
        partial.lost.as_ref().is_some_and(|error| error.contains("reset")),
        "{partial:?}"
    );
    let plans = |report: &Report| -> Vec<String> {
        let measured = report.trials.iter().filter(|trial| trial.measured().is_some());
        measured.map(|trial| trial.plan.to_string()).collect()
    };
    // Each batch has one plan; the plain kernel is a trial, too.
    assert_eq!(plans(&report).len(), 6);
    assert!(best(&report) > 1.0);
    let notes = report.notes.join("\n");
    assert!(
        notes.contains("The device was lost: the driver was reset"),
        "{notes}"
    );
    drop(log);
    let kept = std::fs::read_to_string(&path).expect("there");
    assert_eq!(kept.lines().count(), 5);

    let log = Log::open(&path).expect("a log");
    let again = Drifting::new(&[]);
    let resumed = run(&again, Some(MEASURED), Some(&log));
    // The plain kernel once to begin with, then those that are missing.
    assert_eq!(again.timed.load(Ordering::Relaxed), MEASURED - 5);
    let whole = run(&Drifting::new(&[]), Some(MEASURED), None);
    assert_eq!(plans(&resumed), plans(&whole));
    assert!((best(&resumed) - best(&whole)).abs() < 1e-9);
    let text = std::fs::read_to_string(&path).expect("there");
    assert!(text.starts_with(&kept));
    assert_eq!(log::merge(&[path]).expect("a log").trials, MEASURED);

    // Without any measurement there is nothing to report.
    let mut bench = Drifting::new(&[]);
    bench.lost_in = Some(0);
    let asked = SearchSettings::default();
    let error = search(&subject(GATHER, 40), &bench, &asked, &()).expect_err("lost at once");
    assert!(error.to_string().contains("reset"), "{error}");
}

/// What the worker runs: it is this program again, with this test alone.
#[test]
fn worker_process() {
    if std::env::var_os("HEADSTART_TEST_WORKER").is_some()
        && let Err(error) = worker::serve(std::io::stdin().lock(), std::io::stdout())
    {
        eprintln!("{error}");
        std::process::exit(3);
    }
}

/// A worker that stands for a GPU, with this environment.
fn judge(environment: &str) -> Result<MeasuredBench> {
    let command = format!(
        "HEADSTART_TEST_WORKER=1 {environment} exec \"$0\" worker_process --exact --nocapture --test-threads=1"
    );
    let this = std::env::current_exe().expect("a test has a path");
    let arguments = ["-c".into(), command.into(), this.into()];
    MeasuredBench::start(Path::new("/bin/sh"), &arguments, 0)
}

#[test]
fn what_was_measured_before_the_workers_die_is_reported() {
    let folder = tempfile::tempdir().expect("a folder");
    let left = folder.path().join("left");
    let search_with = |times: u32| {
        std::fs::write(&left, times.to_string()).expect("writable");
        let bench = judge(&format!("{}='{}'", worker::LOST, left.display()))?;
        let asked = SearchSettings {
            measure: Some(MEASURED),
            ..SearchSettings::default()
        };
        search(&subject(GATHER, 40), &bench, &asked, &()).map(|found| found.report)
    };
    let report = search_with(3).expect("what was measured before");
    let lost = report
        .partial
        .as_ref()
        .and_then(|partial| partial.lost.as_deref());
    assert!(
        lost.is_some_and(|said| said.contains("the driver was reset")),
        "{:?}",
        report.partial
    );
    let measured = report.trials.iter().filter_map(Trial::measured).count();
    assert!(measured > 1, "{measured} were measured");
    assert!(measured < MEASURED, "{measured} of {MEASURED}");
    // A worker that dies before anything was measured leaves nothing to report.
    let error = search_with(0).expect_err("lost at once");
    assert!(error.to_string().contains("the driver was reset"), "{error}");
    assert_eq!(error.fault(), Fault::Device);
}

/// `gather` whose work-items write their neighbours' results first, and then their own: a race to the simulator.
fn racing() -> String {
    let racing = GATHER.replace(
        "  %result_ptr = address",
        "  %beside = xor %item, 1:i64\n  %beside_ptr = address %result + %beside * 4\n  store %beside_ptr, 0.0:f32\n  \
         %result_ptr = address",
    );
    assert_ne!(racing, GATHER);
    racing
}

#[test]
fn a_kernel_that_the_simulator_calls_wrong_is_tuned_where_a_device_judges() {
    let bench = judge("").expect("a worker");
    let plans: Vec<Plan> = ["unroll:2", "values=rolling-registers:2"]
        .map(|plan| plan.parse().expect("a plan"))
        .into();
    let asked = SearchSettings {
        plans: Some(&plans),
        ..SearchSettings::default()
    };
    let found = |text: &str, bench: &dyn Bench| search(&subject(text, 40), bench, &asked, &());
    // The simulator refuses it.
    let refused = found(&racing(), &simulated(&[])).expect_err("it races");
    assert!(refused.to_string().contains("no barrier between"), "{refused}");
    let report = found(&racing(), &bench).expect("the device ran it").report;
    let measured = report.trials.iter().filter_map(Trial::measured).count();
    assert_eq!(measured, 3, "{:?}", report.trials);
    let at = report
        .checked
        .as_ref()
        .and_then(|checked| checked.at_full_size.as_ref());
    assert!(at.is_some_and(|at| at.findings.is_empty()), "{at:?}");
}

#[test]
fn several_devices_share_the_plans_and_say_the_same() {
    let mut second = Drifting::new(&[]);
    // It is a slower piece; its plain kernel is slower, too.
    second.slower = 1.4;
    let first = Drifting::new(&[]);
    let counts = [Arc::clone(&first.timed), Arc::clone(&second.timed)];
    let both = SeveralBench::new(vec![Box::new(first), Box::new(second)]).expect("of one kind");
    let shared = run(&both, Some(MEASURED), None);
    assert_eq!(
        counts.map(|count| count.load(Ordering::Relaxed)),
        [MEASURED / 2; 2]
    );
    let alone = run(&Drifting::new(&[]), Some(MEASURED), None);
    for (one, other) in shared.trials.iter().zip(&alone.trials) {
        assert_eq!(one.plan, other.plan);
        let [one, other] = [one, other].map(|trial| trial.measured().map(|(_, speedup)| speedup));
        assert!(
            one.zip(other)
                .is_none_or(|(one, other)| (one - other).abs() < 1e-9)
        );
    }
    let other = Drifting::new(&["dram.latency=900"]);
    let mixed = SeveralBench::new(vec![Box::new(Drifting::new(&[])), Box::new(other)]);
    assert!(mixed.is_err_and(|error| error.to_string().contains("different kinds")));
}

fn remembered(text: &str, items: u32, overrides: &[&str], answers: &Answers) -> (Tuned, usize) {
    let bench = Drifting::new(overrides);
    let tuned = tuned_with(&subject(text, items), &bench, answers).expect("an answer");
    assert!(tuned.not_kept.is_none(), "{:?}", tuned.not_kept);
    (tuned, bench.timed.load(Ordering::Relaxed))
}

#[test]
fn an_answer_is_remembered_and_never_stale() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("deep/tuned.jsonl");
    let answers = Answers::in_file(&path);
    let (first, timed) = remembered(GATHER, 40, &[], &answers);
    assert_eq!((first.from, timed), (From::Searched, MEASURED));
    let (again, timed) = remembered(GATHER, 40, &[], &answers);
    assert_eq!((again.from, timed), (From::Remembered, 0));
    assert_eq!((&again.plan, again.verdict), (&first.plan, first.verdict));
    assert_eq!(again.kernel.body, first.kernel.body);
    // 40 and 60 iterations are of one class, 40 and 70 are not.
    assert_eq!(remembered(GATHER, 60, &[], &answers).0.from, From::Remembered);
    assert_eq!(remembered(GATHER, 70, &[], &answers).0.from, From::Searched);
    let edited = GATHER.replace(
        "%shifted = fadd %value, 1.0:f32",
        "%shifted = fadd %value, 2.0:f32",
    );
    assert_ne!(edited, GATHER);
    assert_eq!(remembered(&edited, 40, &[], &answers).0.from, From::Searched);
    let aligned = GATHER.replace("f32[%values_len] align 4", "f32[%values_len] align 16");
    assert_ne!(aligned, GATHER);
    assert_eq!(remembered(&aligned, 40, &[], &answers).0.from, From::Searched);
    // Another device: a GPU's identity holds its driver.
    assert_eq!(
        remembered(GATHER, 40, &["dram.latency=900"], &answers).0.from,
        From::Searched
    );
    assert_eq!(remembered(GATHER, 40, &[], &answers).0.from, From::Remembered);

    // A program that was killed while it wrote, and one of another version.
    let text = std::fs::read_to_string(&path).expect("there");
    std::fs::write(&path, format!("{text}{{\"key\":\"another\"}}\n{{\"key\":\"gat")).expect("written");
    assert_eq!(remembered(GATHER, 40, &[], &answers).0.from, From::Remembered);
    assert_eq!(remembered(GATHER, 20, &[], &answers).0.from, From::Searched);
    assert_eq!(remembered(GATHER, 20, &[], &answers).0.from, From::Remembered);

    let shipped = Answers::none().with_shipped(&text).expect("answers");
    let (found, timed) = remembered(GATHER, 40, &[], &shipped);
    assert_eq!((found.from, timed, found.plan), (From::Shipped, 0, first.plan));
    assert!(Answers::none().with_shipped("no answer").is_err());
}

#[test]
fn an_answer_counts_for_the_kernel_that_was_checked() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("tuned.jsonl");
    let answers = Answers::in_file(&path);
    let (first, _) = remembered(GATHER, 40, &[], &answers);
    assert!(!first.plan.is_none(), "a plan wins");
    let checked = first.perturbed.expect("it was checked");
    assert!(checked.agreed > 50, "{checked:?}");
    let text = std::fs::read_to_string(&path).expect("there");
    let kept: serde_json::Value = serde_json::from_str(text.trim()).expect("an answer");
    let with = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut answer = kept.clone();
        change(&mut answer);
        std::fs::write(&path, answer.to_string()).expect("written");
        let (found, timed) = remembered(GATHER, 40, &[], &answers);
        assert_eq!((found.from, timed), (From::Remembered, 0));
        let lines = std::fs::read_to_string(&path).expect("there");
        (
            found.perturbed.expect("checked"),
            lines.lines().filter(|line| !line.is_empty()).count(),
        )
    };
    // The same kernel does not run again: a number that no run gives stands.
    let (known, lines) = with(&|answer| answer["perturbed"]["agreed"] = 424_242.into());
    assert_eq!((known.agreed, lines), (424_242, 1));
    // Another kernel is run, and so is an unchecked one; the outcome is stored.
    let (anew, lines) = with(&|answer| {
        answer["perturbed"]["agreed"] = 424_242.into();
        answer["perturbed"]["kernel"] = "0".into();
    });
    assert!(
        anew.kernel == checked.kernel && anew.agreed > 50 && anew.agreed < 424_242,
        "{anew:?}"
    );
    assert_eq!(lines, 2);
    let (anew, lines) = with(&|answer| drop(answer.as_object_mut().expect("an object").remove("perturbed")));
    assert!(anew.kernel == checked.kernel && anew.agreed > 50, "{anew:?}");
    assert_eq!(lines, 2);
}

#[test]
fn a_file_that_cannot_be_written_is_refused_before_the_search() {
    let bench = Drifting::new(&[]);
    let nowhere = Answers::in_file(Path::new("/dev/null/tuned.jsonl"));
    let refused = tuned_with(&subject(GATHER, 40), &bench, &nowhere).expect_err("no such folder");
    let said = refused.to_string();
    assert!(
        said.contains("/dev/null/tuned.jsonl") && said.contains("HEADSTART_CACHE"),
        "{said}"
    );
    assert_eq!(bench.batches.load(Ordering::Relaxed), 0, "something was timed");
}

#[test]
fn an_answer_says_which_plans_its_author_wrote() {
    let bench = Drifting::new(&[]);
    // Its author has written a plan at the loop: the answer says so.
    let written = GATHER.replace("-> f32 {", "-> f32 prefetch \"unroll:2\" {");
    assert_ne!(written, GATHER);
    let tuned = tuned_with(&subject(&written, 40), &bench, &Answers::none()).expect("an answer");
    assert_eq!(tuned.written, ["unroll:2"]);
    assert_eq!(tuned.from, From::Searched);
    let plan: Plan = tuned.plan;
    assert!(tuned.speedup >= 1.0 || plan.is_none());
}
