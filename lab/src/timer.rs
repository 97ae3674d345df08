//! `headstart-lab bench --suite timer`: how fast the simulator's timer is.
//!
//! Each plain kernel of the accuracy suite is timed on a model repeatedly, on as many threads as the machine runs at once, as
//! in a search. The result is lowered instructions × active work-items of the simulated work-groups, all threads together, per
//! second of processor time if the system reports it, so that other work does not count.

use std::sync::Arc;
use std::time::{Duration, Instant};

use headstart::device::sim::timer::Timer;
use headstart::tune::{self, Bench, SimulatedBench, Subject, threads};
use headstart::{Error, Result};
use serde_json::{Value, json};

use crate::accuracy::{self, cases::Case, sides};
use crate::arguments;
use headstart_cli::device;
use headstart_cli::output::{Destination, counted, json_line, print};
use headstart_cli::published;

/// How long each thread times a kernel at least.
const SPAN: Duration = Duration::from_millis(500);

/// Runs the suite.
///
/// # Errors
/// There is no such model, a case cannot be timed, or the file cannot be written.
pub fn run(options: &arguments::Bench) -> Result<()> {
    let destination = Destination::asked("--json", options.json.as_deref())?;
    let device = device::find(&options.device, &[])?;
    let Some(model) = device.model() else {
        return Err(
            Error::usage("the timer's suite is for simulated devices").accepted("`--device sim:NAME`")
        );
    };
    let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get());
    let bench = SimulatedBench::new(model.clone());
    let timer = Timer::new(bench.model().clone().into()).with_cache(sides::CACHE);
    let (mut rows, mut logarithms) = (Vec::new(), 0.0);
    let cases = accuracy::wanted(options)?;
    for case in &cases {
        let rate = rate(&bench, &timer, case, threads)?;
        print(&format!("{}: {:.0} M/s\n", case.name(), rate * 1e-6))?;
        rows.push(json!({"case": case.name(), "per_second": rate}));
        logarithms += rate.ln();
    }
    let mean = (logarithms / cases.len().max(1) as f64).exp();
    print(&format!(
        "{}, {}: geometric mean {:.0} M instructions × work-items a second\n",
        counted(cases.len(), "case"),
        counted(threads, "thread"),
        mean * 1e-6
    ))?;
    let report: Value = json!({
        "command": published::command(crate::PROGRAM),
        "date": published::date(),
        "version": env!("CARGO_PKG_VERSION"),
        "threads": threads,
        "geometric_mean_per_second": mean,
        "cases": rows,
    });
    match destination {
        Some(destination) => destination.write(&json_line(&report)?),
        None => Ok(()),
    }
}

/// Instructions × work-items a second, all threads together.
fn rate(bench: &SimulatedBench, timer: &Timer, case: &Case, threads: usize) -> Result<f64> {
    let workload = case.chosen()?.workload()?;
    let plain = tune::plain(bench, &workload)?;
    let bound = workload.bind(bench.device())?;
    let survey = timer.survey(&plain, &bound.prepare(bench.device())?.launch, None);
    let timer = timer.clone().with_survey(survey.map(Arc::new));
    let run = |_: &usize| -> Result<f64> {
        let launch = bound.prepare(bench.device())?.launch;
        let code = timer.compile(&plain, &launch)?;
        let (start, before, mut done) = (Instant::now(), busy(), 0.0);
        while start.elapsed() < SPAN {
            let time = timer.run(&code, &launch)?;
            done +=
                time.work_item_instructions * time.sample.groups as f64 / time.sample.of_groups.max(1) as f64;
        }
        let took = busy().zip(before).map(|(now, before)| now - before);
        Ok(done / took.unwrap_or_else(|| start.elapsed()).as_secs_f64())
    };
    let all: Vec<usize> = (0..threads).collect();
    threads::map(&all, run).into_iter().sum()
}

/// How long this thread has run on a processor, where Linux tells it.
fn busy() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds = text.split_whitespace().next()?.parse().ok()?;
    Some(Duration::from_nanos(nanoseconds))
}
