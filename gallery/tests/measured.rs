//! Tuning on a GPU with made-up times: comparison, choice, rejection and report, without a GPU.

use std::sync::Arc;
use std::time::Duration;

use headstart::device::cuda::gpu::GpuFacts;
use headstart::device::cuda::module::Compiled;
use headstart::device::cuda::timing::{Timing, TimingOptions};
use headstart::device::cuda::worker::Loaded;
use headstart::device::sim::Simulator;
use headstart::ir::Kernel;
use headstart::prefetch::Plan;
use headstart::report::{Outcome, Outputs, Report, Verdict};
use headstart::tune::check::compare;
use headstart::tune::gpu::{Against, Measured, Own, Wanted};
use headstart::tune::measured::Measures;
use headstart::tune::{Bound, Judged, MeasuredBench, SearchSettings, Workload, search};
use headstart::{Error, Result};
use headstart_gallery::kernels;
use headstart_testing as testing;

/// Times in microseconds, in the order of the kernels; a kernel without one is beyond this GPU.
struct MadeUp {
    facts: GpuFacts,
    times: Vec<Option<f64>>,
    /// The kernel whose outputs come out wrong.
    wrong: Option<usize>,
}

impl MadeUp {
    fn new(times: &[Option<f64>], wrong: Option<usize>) -> Box<MadeUp> {
        let facts = testing::h200();
        let times = times.to_vec();
        Box::new(MadeUp { facts, times, wrong })
    }
}

impl MadeUp {
    /// A kernel's outputs and its time in microseconds.
    fn run(&self, index: usize, bound: &Bound, kernel: &Arc<Kernel>) -> Result<(Vec<Vec<u8>>, f64)> {
        let time = self.times.get(index).copied().flatten();
        let time = time.ok_or_else(|| Error::device("it takes too much shared memory"))?;
        let (_, mut found) = bound.run(&Simulator::untimed(), kernel)?;
        if Some(index) == self.wrong {
            found[0][0] ^= 1;
        }
        Ok((found, time))
    }
}

fn measured(
    time: f64,
    outputs: Option<Outputs>,
    found: Option<Vec<Vec<u8>>>,
    timing: TimingOptions,
) -> Measured {
    Measured {
        timing: Timing::of(vec![time * 1e3; 3], timing.cache).expect("samples"),
        outputs,
        found,
        loaded: Loaded {
            compiled: Compiled {
                registers: 32,
                local_bytes: 0,
                static_shared_bytes: 0,
                max_group: 1024,
                load_time: Duration::from_millis(10),
                log: String::new(),
            },
            groups_per_core: 16,
        },
        dynamic_shared_bytes: 0,
        emit_time: Duration::from_millis(1),
        hints: Vec::new(),
        groups_promised: None,
    }
}

impl Measures for MadeUp {
    fn facts(&self) -> &GpuFacts {
        &self.facts
    }

    fn measure(
        &mut self,
        workload: &Workload,
        kernels: &[(String, Arc<Kernel>)],
        wanted: &mut dyn FnMut() -> Result<Wanted>,
        timing: TimingOptions,
    ) -> Result<Vec<Result<Measured>>> {
        let wanted = wanted()?;
        let bound = workload.bind(&Simulator::untimed())?;
        let one = |(index, (_, kernel)): (usize, &(String, Arc<Kernel>))| {
            let (found, time) = self.run(index, &bound, kernel)?;
            let outputs = match &wanted {
                Wanted::Compared(right) => Some(compare(workload, right, &found)?),
                Wanted::Found | Wanted::Unread => None,
            };
            let found = matches!(wanted, Wanted::Found).then_some(found);
            Ok(measured(time, outputs, found, timing))
        };
        Ok(kernels.iter().enumerate().map(one).collect())
    }

    fn measure_against_own(
        &mut self,
        workload: &Workload,
        kernels: &[(String, Arc<Kernel>)],
        timing: TimingOptions,
    ) -> Result<Against> {
        let bound = workload.bind(&Simulator::untimed())?;
        let (_, own) = bound.run(&Simulator::untimed(), &workload.kernel)?;
        let one = |(index, (_, kernel)): (usize, &(String, Arc<Kernel>))| {
            let (found, time) = self.run(index, &bound, kernel)?;
            let outputs = compare(workload, &own, &found)?;
            Ok(measured(time, Some(outputs), None, timing))
        };
        let kernels = kernels.iter().enumerate().map(one).collect();
        Ok(Against {
            own: Own {
                elapsed_ns: 1e6,
                is_its_module: false,
                guarded: true,
                restored: false,
                findings: Vec::new(),
            },
            kernels,
        })
    }

    fn judge(&mut self, launch: &Workload, plan: &Arc<Kernel>) -> Result<Judged> {
        let bound = launch.bind(&Simulator::untimed())?;
        let run = |kernel| bound.run(&Simulator::untimed(), kernel).map(|(_, found)| found);
        let Ok(own) = run(&launch.kernel) else {
            return Ok(Judged::NotComparable);
        };
        let found = run(plan).and_then(|found| compare(launch, &own, &found));
        Ok(found.map_or_else(Judged::Different, |_| Judged::Same))
    }

    fn time_within(
        &mut self,
        _: &Workload,
        _: &Arc<Kernel>,
        limit_ns: f64,
        _: (TimingOptions, bool),
    ) -> Result<Option<f64>> {
        let time_ns = self.times.first().copied().flatten().map(|time| time * 1e3);
        Ok(time_ns.filter(|&time_ns| time_ns <= limit_ns))
    }
}

const PLANS: [&str; 4] = [
    "unroll:4",
    "values=rolling-async:4/interleaved",
    "values=rolling-registers:2",
    "nothing=cache:L2:1",
];

fn tuned(times: &[Option<f64>], wrong: Option<usize>) -> Report {
    searched(MadeUp::new(times, wrong)).expect("the plain kernel runs")
}

fn searched(gpu: Box<MadeUp>) -> Result<Report> {
    let settings = ["groups=40", "items=24", "table=4096", "work=1"].map(String::from);
    let subject = kernels::find("gather")
        .and_then(|kernel| kernel.with(&settings, None))
        .expect("a kernel");
    let plans: Vec<Plan> = PLANS.iter().map(|plan| plan.parse().expect("a plan")).collect();
    let bench = MeasuredBench::new(gpu).expect("our models can be read");
    let asked = SearchSettings {
        plans: Some(&plans),
        ..SearchSettings::default()
    };
    search(&subject, &bench, &asked, &()).map(|found| found.report)
}

#[test]
fn the_fastest_is_chosen_and_the_rest_is_data() {
    let report = tuned(&[Some(100.0), Some(90.0), Some(40.0), None], None);
    assert_eq!(report.device, "cuda:0");
    assert_eq!(report.verdict, Verdict::Prefetch);
    assert!(report.best.plan.to_string().starts_with("values=rolling-async:4"));
    assert!((report.best.speedup - 2.5).abs() < 1e-9);
    let reason = |index: usize| report.trials[index].reason().unwrap_or_default();
    assert!(reason(3).contains("too much shared memory"), "{}", reason(3));
    assert!(reason(4).contains("nothing"), "{}", reason(4));
    assert!(report.notes[0].contains("Measured on an NVIDIA H200, driver for CUDA 13.0"));
    assert!(report.counters.iter().any(|counter| counter.unit == "GB/s"));
}

#[test]
fn a_plan_without_a_gain_is_left_alone() {
    let report = tuned(&[Some(100.0), Some(99.0), Some(98.5), Some(120.0)], None);
    assert_eq!(report.verdict, Verdict::LeaveIt);
}

#[test]
fn a_wrong_output_is_a_failure_however_fast() {
    let report = tuned(&[Some(100.0), Some(90.0), Some(10.0), Some(95.0)], Some(2));
    assert!(
        matches!(&report.trials[2].outcome, Outcome::Failed { reason, .. } if reason.contains("output `result`"))
    );
    assert_eq!(report.best.plan.to_string(), "unroll:4");
}

#[test]
fn the_report_says_what_was_checked_on_what() {
    let times = [Some(100.0), Some(90.0), Some(40.0), None];
    let report = tuned(&times, None);
    let checked = report.checked.as_ref().expect("it ran on a device");
    let at = checked.at_full_size.as_ref().expect("it was compared");
    assert!(at.guarded && at.device == "NVIDIA H200");
    // The chosen plan was checked on small launches, too.
    assert!(
        checked.sizes.len() > 3 && !checked.symbolic_sizes.is_empty(),
        "{checked:?}"
    );
    let said = report.remarks().find(|remark| remark.contains("small sizes"));
    assert!(said.is_some_and(|said| said.contains("results on the same NVIDIA H200")));
}
