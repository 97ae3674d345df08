//! `headstart tune`: try the plans, choose one, write the report.

mod asked;
mod outputs;
mod placed;
pub mod program;

use std::path::Path;
use std::time::Duration;

use headstart::capture::{Captured, CapturedProgram, Contraction};
use headstart::device::cuda::ptxas;
use headstart::device::sim::Simulator;
use headstart::ir::Fused;
use headstart::prefetch::Plan;
use headstart::report::{Outcome, Partial, Report, Trial, table};
use headstart::suggest::quoted;
use headstart::tune::{self, Answers, Bench, Log, MEASURED, SearchSettings, Shard};
use headstart::{Error, Result};

use crate::arguments::{KernelOptions, Tune};
use crate::kernel::{self, Places};
use crate::launched::Launches;
pub use asked::Asked;
use headstart_cli::output::{print, tell};
use headstart_cli::progress::{Bar, Clock};
use headstart_cli::terminal;
use outputs::Outputs;
use placed::place;

/// Runs the command.
pub fn run(options: &Tune) -> Result<()> {
    let Some(program) = &options.program.bin else {
        let kernel = options.kernel.clone().unwrap_or_default();
        let folder = Path::new(&kernel);
        if CapturedProgram::is_in(folder) && !Captured::is_in(folder) {
            return program::run(options, folder);
        }
        let data = options.data.clone();
        return tune_kernel(options, &KernelOptions { kernel, data });
    };
    let launches = Launches::of(program, &options.program)?;
    if let Some(name) = &options.kernel {
        return tune_kernel(options, &launches.named(name)?);
    }
    let for_one = [
        ("--json", options.json.is_some()),
        ("--html", options.html.is_some()),
        ("--log", options.log.is_some()),
        (
            "--plans",
            options.plans.as_deref().is_some_and(|plans| plans != LIKELY),
        ),
    ];
    if let (Some((option, _)), true) = (
        for_one.iter().find(|(_, is_given)| *is_given),
        launches.names.len() > 1,
    ) {
        return Err(Error::usage(format!(
            "`{option}` takes one kernel, and the program launches several"
        ))
        .accepted(format!("a KERNEL: {}", launches.names.join(", "))));
    }
    let count = launches.names.len();
    for (number, name) in launches.names.iter().enumerate() {
        // One report's JSON on standard output stands there alone.
        if count > 1 {
            let before = if number == 0 { "" } else { "\n" };
            print(&format!("{before}Kernel {} of {count}: {name}\n\n", number + 1))?;
        }
        tune_kernel(options, &launches.named(name)?)?;
    }
    Ok(())
}

/// Tunes one kernel.
fn tune_kernel(options: &Tune, which: &KernelOptions) -> Result<()> {
    let mut clock = Clock::start();
    // All possible errors are found before the long work starts.
    let asked = Asked::of(options)?;
    let mut captured = kernel::captured(which)?;
    // A program's own kernel stays as it is: its answers are found by its text.
    let places = match options.program.bin {
        Some(_) => Places::Kept,
        None => Places::Filled,
    };
    let mut subject = kernel::find_with(which, captured.as_ref(), places)?;
    clock.over("kernel and launch read");
    let bench = asked.bench()?;
    clock.over("device opened");
    if let (Some(text), Some(_), true) = (&options.measure, asked.measure, bench.simulator().is_some()) {
        return Err(Error::usage(format!(
            "`--measure {text}` is for GPUs: on the simulated {}, every plan is simulated",
            bench.device().description().name
        ))
        .accepted("leave it out, or name the plans with `--plans`"));
    }
    let plans = asked.plans_for(subject.as_ref(), bench.as_ref())?;
    let mut outputs = Outputs::of(options, which)?;
    if let Some(captured) = &mut captured {
        print(&run_again(captured, bench.as_ref(), asked.budget)?)?;
        if let Contraction::Decided(_) | Contraction::Compared(_) = captured.contraction {
            subject = Box::new(tune::captured_subject(captured.clone())?);
            outputs.are_of(captured)?;
        }
        clock.over("captured launch run again, open sums decided");
    }

    let shard: Option<Shard> = options.shard.as_deref().map(str::parse).transpose()?;
    let log = options.log.as_deref().map(Log::open).transpose()?;
    for line in log.iter().flat_map(Log::skipped) {
        eprintln!("headstart: the log has no valid trial at {line}; that trial is repeated");
    }
    let settings = SearchSettings {
        shard,
        log: log.as_ref(),
        ..asked.settings(plans.as_deref())
    };
    let bar = Bar::new(&clock, asked.budget);
    let found = tune::search(subject.as_ref(), bench.as_ref(), &settings, &bar);
    let mut report = found
        .map_err(|error| kernel::on_made_up(subject.as_ref(), error))?
        .report;
    clock.over("search");
    // An answer that is shipped is a plan: the settings beside it are not the program's to choose.
    if let (Some(path), None) = (&options.ship, &report.partial) {
        Answers::in_file(path).remember(subject.as_ref(), bench.as_ref(), &report)?;
    }
    if shard.is_none() {
        report = tune::beside_the_plan(subject.as_ref(), bench.as_ref(), report, settings.perturbed, &bar)?;
        clock.over("launch settings tried");
    }
    drop(bar);

    // No time is left to look into the kernels where the search was cut.
    let in_detail = match outputs.has_page() && report.partial.is_none() {
        true => Some(Report {
            detail: tune::detail(subject.as_ref(), bench.as_ref(), &report)?,
            ..report.clone()
        }),
        false => None,
    };
    let written = outputs.write(&report, in_detail.as_ref().unwrap_or(&report), &mut clock)?;
    // The results within the time limit are checked like all others.
    let lost = report.partial.as_ref().and_then(|partial| partial.lost.clone());
    let exchanged = match &captured {
        Some(captured) if lost.is_none() => {
            Some(place(captured, &report, asked.gpu().as_ref())?.said(captured, &report))
        }
        _ => None,
    };
    match outputs.take_standard_output() {
        true => written.iter().for_each(|line| tell(line)),
        false => {
            print(&match terminal::is_verbose() {
                true => table::in_full(&report, terminal::report()),
                false => table::text(&report, terminal::report()),
            })?;
            clock.over("report printed");
            print(exchanged.as_deref().unwrap_or_default())?;
            print(&written.iter().map(|line| format!("{line}\n")).collect::<String>())?;
        }
    }
    if let Some(partial) = &report.partial {
        say_what_is_open(options, partial);
    }
    match lost {
        Some(lost) => Err(Error::device(format!("the device was lost: {lost}"))),
        None => report.trials.iter().try_for_each(went_right),
    }
}

/// Says how far an interrupted search came, and how it goes on.
fn say_what_is_open(options: &Tune, partial: &Partial) {
    let more = match (&options.log, &options.ship) {
        (Some(_), _) if partial.tried == 0 => "nothing was kept".to_owned(),
        (Some(log), _) => format!("the same command resumes from {}", quoted(&log.to_string_lossy())),
        (None, Some(_)) => "an interrupted search gives no answer to ship".to_owned(),
        (None, None) => "with `--log FILE`, the same command would resume from there".to_owned(),
    };
    eprintln!(
        "headstart: {} of {} plans were tried; {more}",
        partial.tried, partial.of
    );
}

/// A plan that was accepted and then went wrong is a bug of ours, however good the others are.
fn went_right(trial: &Trial) -> Result<()> {
    match &trial.outcome {
        Outcome::Failed { reason, .. } => Err(Error::bug(format!("plan `{}` failed: {reason}", trial.plan))),
        Outcome::Ok { .. } | Outcome::Dropped { .. } | Outcome::Rejected { .. } => Ok(()),
    }
}

/// The word for the plans that are likely to help, in the place of their names.
const LIKELY: &str = "likely";

/// A sentence about the sums that a captured launch's text leaves to the assembler.
fn contracted(contraction: &Contraction) -> String {
    let refused = match contraction {
        Contraction::Unknown | Contraction::NothingOpen | Contraction::Compared(_) => return String::new(),
        Contraction::Decided(sums) => {
            let fused = sums.iter().filter(|sum| **sum != Fused::Nothing).count();
            let are = |count: usize| if count == 1 { "is" } else { "are" };
            return format!(
                "{} of its sums {} left to the assembler. The bytes that the launch left show that {fused} {} fused with a product.\n",
                sums.len(),
                are(sums.len()),
                are(fused)
            );
        }
        Contraction::Untold(number) => format!(
            "the launch does not show whether the program's machine code fuses sum {} of these with a product: both give the same bytes",
            number + 1
        ),
        Contraction::OtherAssembler => {
            "the driver's assembler makes code of the module that leaves other bytes than the program's own machine code".to_owned()
        }
        Contraction::NoneFits => "no choice reproduces the bytes that the launch left".to_owned(),
        Contraction::TooLong => {
            "running the launch again for each choice takes too long, or the launch's results are unknown"
                .to_owned()
        }
    };
    format!("Some of its sums are left to the assembler, so the kernel cannot be replaced: {refused}.\n")
}

/// Runs a captured launch again, and decides its open sums by what it left: what was found, in sentences. Without an answer the
/// kernel is tuned all the same, and a plan is refused where it would be written back.
fn run_again(captured: &mut Captured, bench: &dyn Bench, budget: Option<Duration>) -> Result<String> {
    let is_judge = bench.judge().is_some();
    // A GPU runs the launch again in any case, as the first thing of the search.
    let mut said = match is_judge {
        true => String::new(),
        false => replayed(captured)?,
    };
    captured.contraction =
        tune::contraction(captured, Some(bench), budget.map(|budget| budget / 4)).unwrap_or_default();
    said.push_str(&contracted(&captured.contraction));
    Ok(said)
}

/// Runs a captured launch again on the simulator: a sentence about the comparison, if the memory after the launch is known.
pub fn replayed(captured: &Captured) -> Result<String> {
    if !captured.has_run {
        return Ok(String::new());
    }
    let items = captured.work_items();
    if items > tune::MOST_ITEMS {
        return Ok(format!("Not replayed on the simulator: {items} work-items.\n"));
    }
    let replay = tune::replay(captured.clone(), &Simulator::untimed())?;
    Ok(match replay.differences.first() {
        None => format!(
            "Replayed on the simulator: all {} bytes that it can reach match the capture, {} of them changed.\n",
            replay.bytes, replay.changed
        ),
        Some(first) => format!(
            "Replayed on the simulator: {} of {} bytes differ from the capture, the first at {:#x}: {:#04x} instead of \
             {:#04x}. Possible causes: another order of atomic operations, or fused multiply-adds in the program's machine code.\n",
            replay.differences.iter().map(|own| own.bytes).sum::<u64>(),
            replay.bytes,
            first.address,
            first.found,
            first.captured
        ),
    })
}

/// The least time that a search waits for one kernel to be compiled.
const LEAST_PATIENCE: Duration = Duration::from_secs(1);

/// A search with this budget waits for each of its kernels to be compiled for a fifth of it: plans are measured in batches,
/// which the slowest would hold up.
pub fn compile_within(budget: Duration) {
    ptxas::be_patient((budget / 5).max(LEAST_PATIENCE));
}

/// How long a search may go on beginning plans.
pub fn budget(seconds: Option<f64>) -> Result<Option<Duration>> {
    let refused = |seconds: f64| {
        Error::usage(format!("`--budget {seconds}` is not a time")).accepted("seconds, above 0")
    };
    let budget = |seconds: f64| match Duration::try_from_secs_f64(seconds) {
        Ok(budget) if !budget.is_zero() => Ok(budget),
        _ => Err(refused(seconds)),
    };
    seconds.map(budget).transpose()
}

/// How many plans are measured; none for all.
fn measure(options: &Tune) -> Result<Option<usize>> {
    match options.measure.as_deref() {
        // Named plans are all that is tried.
        None => Ok((options.plans.is_none() && options.shard.is_none()).then_some(MEASURED)),
        Some("all") => Ok(None),
        Some(text) => match text.parse() {
            Ok(count) if count > 0 => Ok(Some(count)),
            _ => Err(Error::usage(format!("{} is not a number of plans", quoted(text)))
                .accepted("a number from 1, or `all`")),
        },
    }
}

/// Plans set apart by semicolons.
fn read_plans(text: &str) -> Result<Vec<Plan>> {
    let plans: Vec<Plan> = text
        .split(';')
        .map(str::trim)
        .filter(|plan| !plan.is_empty())
        .map(str::parse)
        .collect::<Result<_>>()?;
    if plans.is_empty() {
        return Err(Error::usage("`--plans` names no plan")
            .accepted("'PLAN;PLAN;…', such as 'unroll:4;values=cache:L2:2'"));
    }
    let mut distinct: Vec<Plan> = Vec::new();
    for plan in plans {
        if !distinct.contains(&plan) {
            distinct.push(plan);
        }
    }
    Ok(distinct)
}
