//! The points of a sweep, and their results.
//!
//! A point has a setting, which is a device and a kernel on its data, and a plan. The plain kernel runs once a setting. A plan
//! is checked once for each kernel and its data, and timed on every device.

mod plans;

use std::collections::HashSet;
use std::sync::Arc;

use headstart::device::CacheState;
use headstart::device::model::{self, Listed};
use headstart::ir::Kernel;
use headstart::prefetch::Plan;
use headstart::report::sweep::{Point, PointOutcome, Sweep};
use headstart::suggest::quoted;
use headstart::tune::perturb::{Engine, Perturbed, Settings, Thoroughness};
use headstart::tune::{self, Bench, Bound, Subject, Workload};
use headstart::{Error, Fault, Result};
use headstart_gallery::{kernels, micro};
use rayon::prelude::*;

use super::axis::{MOST_POINTS, Over, Varied};
use crate::arguments::KernelOptions;
use crate::calibrate::meter::Meter;
use crate::kernel::{self, Places};
use headstart_cli::device;
use headstart_cli::output::explain;
use headstart_cli::progress::{Clock, Points};
use plans::{base_plan, plan_at};

/// What a sweep is asked to run.
pub struct SweepRequest<'a> {
    /// The kernel and its data, where nothing is varied.
    pub kernel: &'a KernelOptions,
    /// The device, and the numbers of its model that differ.
    pub device: Option<&'a str>,
    /// As `--model` spells them.
    pub model: &'a [String],
    /// The contents of L2 before each timed launch.
    pub cache: CacheState,
    /// Operations after which a kernel counts as endless, unless it is the command's default.
    pub max_steps: Option<u64>,
    /// The plan whose distance or strategy is varied, or that runs everywhere.
    pub plan: Option<Plan>,
    /// The varied settings.
    pub over: &'a [Over],
    /// How plans are checked.
    pub check: Settings,
}

/// A device and a kernel on its data.
struct Setting {
    bench: Box<dyn Bench>,
    subject: Box<dyn Subject>,
    /// Which kernel and data: settings that differ in the device alone share it.
    data: usize,
    /// The kernel's parameters that were said.
    given: Vec<String>,
    workload: Workload,
    plain: Arc<Kernel>,
}

/// A kernel that was timed, and the cores that stood for all where a sample did.
#[derive(Clone)]
struct Run {
    kernel: Arc<Kernel>,
    time_ns: f64,
    sampled: Option<u32>,
}

impl Run {
    fn of(bench: &dyn Bench, bound: &Bound, kernel: Arc<Kernel>) -> Result<Run> {
        let timed = bench.time(bound, &kernel)?;
        Ok(Run {
            kernel,
            time_ns: timed.time_ns,
            sampled: timed.sampled,
        })
    }

    /// The same from a sample of as many cores as the other points have: a curve over a number of the model shows that number,
    /// and not what another sample shows.
    fn sampled(self, bench: &dyn Bench, bound: &Bound, cores: u32) -> Result<Run> {
        match (self.sampled, bench.simulator()) {
            (Some(own), Some(simulator)) if own != cores => Ok(Run {
                time_ns: simulator.time_sampled(bound, &self.kernel, cores)?.time_ns,
                sampled: Some(cores),
                ..self
            }),
            _ => Ok(self),
        }
    }
}

/// The outcome of a point: the plan with the parents that it carries and its run, or why it has none.
type Outcome = (Plan, std::result::Result<Run, String>);

/// Runs a sweep.
///
/// # Errors
/// The kernel, the device or a value is wrong, or no point can run.
pub fn run(request: &SweepRequest<'_>) -> Result<Sweep> {
    let mut clock = Clock::start();
    let combinations = combinations(request.over)?;
    let (settings, of) = settings_of(request, &combinations)?;
    let first = settings
        .first()
        .ok_or_else(|| Error::bug("a sweep without points"))?;
    let at_once = first.bench.simulator().is_some();
    clock.over("kernels read, devices opened");
    let progress = Points::new(combinations.len());

    // A kernel that goes wrong has no time. A run waits for a queue that takes the threads of `map`, so it is not part of it.
    let mut bound: Vec<Bound> = Vec::with_capacity(settings.len());
    for setting in &settings {
        bound.push(setting.workload.bind(setting.bench.device())?);
    }
    for position in first_of_each(&settings) {
        let setting = &settings[position];
        bound[position].run(setting.bench.device(), &setting.plain)?;
    }
    let places: Vec<usize> = (0..settings.len()).collect();
    let plain = map(at_once, &places, |&place| {
        let Setting { bench, plain, .. } = &settings[place];
        Run::of(bench.as_ref(), &bound[place], Arc::clone(plain))
    });
    let plain: Vec<Run> = plain.into_iter().collect::<Result<_>>()?;
    kernel::tell_made_up(first.subject.as_ref());
    // Those of microbenchmarks.
    let numbers = map(at_once, &places, |&place| number_of(&settings[place]));
    let numbers: Vec<Option<f64>> = numbers.into_iter().collect::<Result<_>>()?;

    clock.over("plain kernels computed and timed");
    let mut notes = Vec::new();
    if request.cache != CacheState::default() {
        notes.push(format!("Each timed launch finds {}.", request.cache));
    }
    let base = base_plan(request, first, &bound[0], &mut notes)?;
    // A value that makes no plan is an error whatever the others are.
    let plans: Vec<Plan> = combinations
        .iter()
        .map(|at| plan_at(request, at, base.as_ref()))
        .collect::<Result<_>>()?;
    let perturbed = perturbed_of(request, &settings, &plans)?;
    clock.over("derived launches made");
    let positions: Vec<usize> = (0..combinations.len()).collect();
    let outcomes = map(at_once, &positions, |&point| {
        let setting = &settings[of[point]];
        let (plan, plain) = (&plans[point], &plain[of[point]]);
        let outcome = outcome(plan, setting, &bound[of[point]], plain, &perturbed[setting.data]);
        progress.done();
        outcome
    });
    let outcomes: Vec<Outcome> = outcomes.into_iter().collect::<Result<_>>()?;
    let wanted = of_one_sample(&settings, &of, &plain, &outcomes);
    let again = |place: usize, run: &Run| {
        let Setting { bench, data, .. } = &settings[place];
        match wanted[*data] {
            Some(cores) => run.clone().sampled(bench.as_ref(), &bound[place], cores),
            None => Ok(run.clone()),
        }
    };
    let plain = map(at_once, &places, |&place| again(place, &plain[place]));
    let plain: Vec<Run> = plain.into_iter().collect::<Result<_>>()?;
    let outcomes = map(at_once, &positions, |&point| -> Result<(Plan, PointOutcome)> {
        let (plan, outcome) = &outcomes[point];
        let outcome = match outcome {
            Ok(run) => PointOutcome::Ok {
                time_ns: again(of[point], run)?.time_ns,
                plain_ns: plain[of[point]].time_ns,
                number: numbers[of[point]].filter(|_| plan.is_none()),
            },
            Err(reason) => PointOutcome::Refused {
                reason: reason.clone(),
            },
        };
        Ok((plan.clone(), outcome))
    });
    clock.over("points timed");
    let points = combinations.iter().zip(outcomes).map(|(at, outcome)| {
        let (plan, outcome) = outcome?;
        if let PointOutcome::Refused { reason } = &outcome {
            let at = request.over.iter().zip(at);
            let at = at.map(|(over, &at)| format!("{}={}", over.axis.name, over.axis.values[at]));
            let at: Vec<String> = at.collect();
            explain(|| format!("{}, `{plan}`: refused: {reason}", at.join(" ")));
        }
        Ok(Point {
            at: at.clone(),
            plan,
            outcome,
        })
    });
    let points: Vec<Point> = points.collect::<Result<_>>()?;
    if let Some(reason) = nothing_ran(&points) {
        return Err(Error::usage(format!("no point of the sweep runs: {reason}")));
    }
    let varied: Vec<&str> = request.over.iter().map(|over| over.axis.name.as_str()).collect();
    let parameters = first.subject.parameters().into_iter();
    let parameters = geometry(&settings).into_iter().chain(parameters);
    Ok(Sweep {
        kernel: first.subject.name().to_owned(),
        device: match request.over.iter().find(|over| over.varied == Varied::Device) {
            Some(over) => over.axis.values.join(", "),
            None => device::find_or_first(request.device, request.model)?.name(),
        },
        parameters: parameters
            .filter(|(name, _)| !varied.contains(&name.as_str()))
            .collect(),
        plan: base.filter(|_| {
            let mut varied = request.over.iter().map(|over| over.varied);
            !varied.any(|varied| matches!(varied, Varied::Plan | Varied::Strategy))
        }),
        axes: request.over.iter().map(|over| over.axis.clone()).collect(),
        unit: numbers[0]
            .and(micro::find(first.subject.name()))
            .map(|micro| micro.unit.to_owned()),
        points,
        notes,
    })
}

/// The work-groups and their size, as far as all settings have the same and no parameter says it.
fn geometry(settings: &[Setting]) -> Vec<(String, String)> {
    let one = |extents: [u32; 3]| match extents {
        [x, 1, 1] => x.to_string(),
        [x, y, z] => format!("{x}×{y}×{z}"),
    };
    let extents: [(&str, fn(&Workload) -> [u32; 3]); 2] = [
        ("groups", |workload| workload.groups),
        ("group", |workload| workload.group),
    ];
    let told = |(name, of): (&str, fn(&Workload) -> [u32; 3])| {
        let first = settings.first()?;
        let extents = of(&first.workload);
        let is_same = settings.iter().all(|setting| of(&setting.workload) == extents);
        let is_said = first.subject.parameters().iter().any(|(own, _)| own == name);
        (is_same && !is_said).then(|| (name.to_owned(), one(extents)))
    };
    extents.into_iter().filter_map(told).collect()
}

/// The settings of a sweep, and which of them each combination has.
fn settings_of(
    request: &SweepRequest<'_>,
    combinations: &[Vec<usize>],
) -> Result<(Vec<Setting>, Vec<usize>)> {
    check_units(request)?;
    let mut keys: Vec<(Option<&str>, Vec<String>, Vec<String>)> = Vec::new();
    let mut datas = Vec::new();
    let mut of: Vec<usize> = Vec::with_capacity(combinations.len());
    for at in combinations {
        let key = (
            value(request, at, Varied::Device).or(request.device),
            spelled(request, at, Varied::Model),
            spelled(request, at, Varied::Parameter),
        );
        of.push(position(&mut keys, key));
    }
    let settings = keys
        .iter()
        .map(|(device, model, parameters)| setting(request, *device, (model, parameters), &mut datas))
        .collect::<Result<_>>()?;
    Ok((settings, of))
}

/// Launches to check these plans on, for each setting of the data.
fn perturbed_of(request: &SweepRequest<'_>, settings: &[Setting], plans: &[Plan]) -> Result<Vec<Perturbed>> {
    let distinct: HashSet<&Plan> = plans.iter().filter(|plan| !plan.is_none()).collect();
    let mut distinct: Vec<&Plan> = distinct.into_iter().collect();
    distinct.sort();
    let perturbed = map(true, &first_of_each(settings), |&setting| {
        let Setting {
            bench,
            subject,
            workload,
            plain,
            ..
        } = &settings[setting];
        let engine = Engine::of(bench.as_ref(), workload);
        let plans = distinct.iter().copied();
        Perturbed::new(subject.as_ref(), plain, engine, plans, request.check)
    });
    perturbed.into_iter().collect()
}

/// Every combination of the axes' positions, the last axis fastest.
fn combinations(over: &[Over]) -> Result<Vec<Vec<usize>>> {
    let count = over
        .iter()
        .try_fold(1usize, |product, over| {
            product.checked_mul(over.axis.values.len())
        })
        .filter(|&count| count <= MOST_POINTS)
        .ok_or_else(|| {
            Error::usage("the sweep has too many points").accepted(format!("at most {MOST_POINTS}"))
        })?;
    for (position, one) in over.iter().enumerate() {
        if over[..position]
            .iter()
            .any(|other| other.axis.name == one.axis.name)
        {
            return Err(Error::usage(format!("`--over {}` is given twice", one.axis.name))
                .accepted("all values in one `--over`"));
        }
    }
    Ok((0..count)
        .map(|mut rest| {
            let mut at = vec![0; over.len()];
            for (position, over) in over.iter().enumerate().rev() {
                at[position] = rest % over.axis.values.len();
                rest /= over.axis.values.len();
            }
            at
        })
        .collect())
}

/// The values of the axes that vary this, as `NAME=VALUE`.
fn spelled(request: &SweepRequest<'_>, at: &[usize], varied: Varied) -> Vec<String> {
    let axes = request.over.iter().zip(at);
    axes.filter(|(over, _)| over.varied == varied)
        .flat_map(|(over, &at)| over.settings(at))
        .collect()
}

/// The value of the axis that varies this.
fn value<'r>(request: &SweepRequest<'r>, at: &[usize], varied: Varied) -> Option<&'r str> {
    let axes = request.over.iter().zip(at);
    let mut values = axes.filter(|(over, _)| over.varied == varied);
    values.next().map(|(over, &at)| over.axis.values[at].as_str())
}

/// Bytes are for numbers of bytes: what counts elements has none.
fn check_units(request: &SweepRequest<'_>) -> Result<()> {
    let parameters = kernels::find(&request.kernel.kernel).map_or(&[][..], |kernel| kernel.parameters);
    for over in request.over {
        let parameter = parameters
            .iter()
            .find(|parameter| parameter.name == over.axis.name);
        let is_count = match over.varied {
            Varied::Parameter => parameter.is_none_or(|parameter| !parameter.meaning.contains("bytes")),
            Varied::Distance => true,
            _ => false,
        };
        if let Some(value) = over.in_bytes().filter(|_| is_count) {
            let name = quoted(&over.axis.name);
            let meaning = parameter.map_or(String::new(), |parameter| format!(": {}", parameter.meaning));
            return Err(Error::usage(format!(
                "{} is bytes, and {name} is a number{meaning}",
                quoted(value)
            ))
            .accepted("a number without a unit, or `64Ki` for 65536"));
        }
    }
    Ok(())
}

/// The position of an element, which is added if it is not there.
fn position<T: PartialEq>(all: &mut Vec<T>, element: T) -> usize {
    all.iter().position(|other| *other == element).unwrap_or_else(|| {
        all.push(element);
        all.len() - 1
    })
}

fn setting(
    request: &SweepRequest<'_>,
    device: Option<&str>,
    (model, parameters): (&[String], &[String]),
    datas: &mut Vec<(Option<String>, Vec<String>)>,
) -> Result<Setting> {
    let overrides: Vec<String> = request.model.iter().chain(model).cloned().collect();
    let bench = device::bench(device, &overrides, request.cache, request.max_steps)?;
    let mut options = request.kernel.clone();
    options.data.set.extend(parameters.iter().cloned());
    let subject =
        kernel::find(&options, Places::Filled).map_err(|error| or_of_model(error, device, parameters))?;
    let workload = subject.workload()?;
    let plain = tune::plain(bench.as_ref(), &workload)?;
    Ok(Setting {
        bench,
        subject,
        // Each device has its own kernel: sub-groups differ.
        data: position(datas, (device.map(str::to_owned), parameters.to_vec())),
        given: options.data.set,
        workload,
        plain,
    })
}

/// Names the numbers of the model that may have been meant by a parameter that the kernel refuses: those whose paths end so, as
/// with `latency`, or those that are described by this word, as with `mshr`.
fn or_of_model(error: Error, device: Option<&str>, parameters: &[String]) -> Error {
    let device = device.unwrap_or("sim:h200");
    let listed = model::listing(device.strip_prefix("sim:").unwrap_or(device), &[]).unwrap_or_default();
    let named = |is_meant: &dyn Fn(&Listed, &str) -> bool| -> Vec<String> {
        let names = || parameters.iter().filter_map(|set| set.split('=').next());
        let meant = listed
            .iter()
            .filter(|number| names().any(|name| is_meant(number, name)));
        meant.map(|number| quoted(&number.path)).collect()
    };
    // Those of single instructions are many, and have longer paths.
    let mut meant = named(&|number, name| number.path.split_once('.').is_some_and(|(_, rest)| rest == name));
    if meant.is_empty() {
        meant = named(&|number, name| {
            let mut words = number.meaning.split(|end: char| !end.is_alphanumeric());
            words.any(|word| word.trim_end_matches('s').eq_ignore_ascii_case(name))
        });
    }
    match meant.is_empty() {
        true => error,
        false => error.or_accepted(format!("a number of the device's model: {}", meant.join(", "))),
    }
}

/// A microbenchmark's number on a model, without its own instructions' part.
fn number_of(setting: &Setting) -> Result<Option<f64>> {
    let micro = micro::find(setting.subject.name());
    let (Some(micro), Some(simulator)) = (micro, setting.bench.simulator()) else {
        return Ok(None);
    };
    // What was not said may follow from the rest, as the steps that warm the caches do.
    let (micro, settings) = micro::with(micro.kernel.name, &setting.given)?;
    Ok(Some(
        Meter::of_model(simulator.model().clone())
            .net(micro, &settings)?
            .0,
    ))
}

/// Maps in parallel where the device times several kernels at once.
fn map<T: Sync, R: Send>(at_once: bool, all: &[T], each: impl Fn(&T) -> R + Send + Sync) -> Vec<R> {
    match at_once {
        true => all.par_iter().map(each).collect(),
        false => all.iter().map(each).collect(),
    }
}

/// The completed plan of a point, and its run.
fn outcome(
    plan: &Plan,
    setting: &Setting,
    bound: &Bound,
    plain: &Run,
    perturbed: &Perturbed,
) -> Result<Outcome> {
    if plan.is_none() {
        return Ok((plan.clone(), Ok(plain.clone())));
    }
    let bench = setting.bench.as_ref();
    let timed = || -> Result<(Plan, Run)> {
        let derived = tune::derive(bench, &setting.workload, &setting.plain, plan)?;
        perturbed.check(&derived.plan, &derived.kernel, Thoroughness::Quick)?;
        let run = Run::of(bench, bound, Arc::clone(&derived.kernel))?;
        Ok((derived.plan, run))
    };
    match timed() {
        Ok((plan, run)) => Ok((plan, Ok(run))),
        Err(error) if error.fault() == Fault::Bug => Err(error),
        Err(error) => Ok((plan.clone(), Err(error.to_string()))),
    }
}

/// For each kernel on its data the largest sample that a point of it took; none where none took one.
fn of_one_sample(
    settings: &[Setting],
    of: &[usize],
    plain: &[Run],
    outcomes: &[Outcome],
) -> Vec<Option<u32>> {
    let mut wanted: Vec<Option<u32>> = vec![None; settings.len()];
    let of_plain = plain.iter().enumerate();
    let planned = of.iter().copied().zip(outcomes);
    let of_plans = planned.filter_map(|(place, (_, outcome))| Some((place, outcome.as_ref().ok()?)));
    for (place, run) in of_plain.chain(of_plans) {
        let wanted = &mut wanted[settings[place].data];
        *wanted = (*wanted).max(run.sampled);
    }
    wanted
}

/// For each kernel on its data the first setting that has it.
fn first_of_each(settings: &[Setting]) -> Vec<usize> {
    let datas = settings
        .iter()
        .map(|setting| setting.data)
        .max()
        .map_or(0, |last| last + 1);
    (0..datas)
        .filter_map(|data| settings.iter().position(|setting| setting.data == data))
        .collect()
}

/// The reason of the first point, where none of them ran.
fn nothing_ran(points: &[Point]) -> Option<&str> {
    let mut reasons = points.iter().map(|point| match &point.outcome {
        PointOutcome::Ok { .. } => None,
        PointOutcome::Refused { reason } => Some(reason.as_str()),
    });
    let first = reasons.next()??;
    reasons.all(|reason| reason.is_some()).then_some(first)
}
