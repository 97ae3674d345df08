//! `headstart run`: one plan: its time, the device's counters, a checksum of each output.

use headstart::back::ptx::HintReached;
use headstart::device::{CacheState, Fill, Pattern};
use headstart::prefetch::Plan;
use headstart::report::{Geometry, Perturbed, number};
use headstart::tune::{self, ArgumentSpec, Timed, Workload, perturb::Engine};
use headstart::{Error, Result};
use headstart_gallery::micro;
use serde_json::{Map, Value, json};

use crate::arguments::Run;
use crate::calibrate::meter::Meter;
use crate::command::tune::replayed;
use crate::kernel::{self, Places};
use headstart_cli::device;
use headstart_cli::output::{Destination, json_line, print};
use headstart_cli::progress::Clock;

/// Bytes of an output that are read back from a simulated device at most: a core needs seconds for this many. Zeros that nothing
/// writes need next to no time, and are as many as one likes.
const MOST_READ_BACK: u64 = 1 << 30;

/// Refuses outputs whose checksum takes minutes.
fn check_read_back(workload: &Workload) -> Result<()> {
    for (given, param) in workload.given.iter().zip(&workload.kernel.params) {
        let ArgumentSpec::Output {
            element,
            length,
            fill,
            ..
        } = given
        else {
            continue;
        };
        let is_quick = matches!(fill, Fill::Uninitialized | Fill::Pattern(Pattern::Constant(0)));
        let bytes = length.saturating_mul(u64::from(element.bytes()));
        if bytes > MOST_READ_BACK && !is_quick {
            return Err(Error::device(format!(
                "the kernel may write parameter `{}`, whose {bytes} bytes are too many to read back",
                param.name
            ))
            .accepted(format!(
                "at most {MOST_READ_BACK} bytes, or more of them with `fill = \"zero\"`"
            )));
        }
    }
    Ok(())
}

/// Runs the command.
pub fn run(options: &Run) -> Result<()> {
    let mut clock = Clock::start();
    let plan: Plan = options.plan.parse()?;
    let subject = kernel::find(&options.kernel, Places::Filled)?;
    let device = device::find_or_first(options.on.device.as_deref(), &options.on.model)?;
    let json = Destination::asked("--json", options.json.as_deref())?;
    kernel::spare(&options.kernel, &[("--json", json.as_ref())])?;

    let cache: CacheState = options.on.cache.l2.into();
    let bench = device::open(&*device, cache, options.on.watchdog.max_steps)?;
    let bench = bench.as_ref();
    clock.over("kernel read, device opened");
    let workload = subject.workload()?;
    if bench.simulator().is_some() {
        check_read_back(&workload)?;
    }
    let plain = tune::plain(bench, &workload)?;
    let derived = tune::derive(bench, &workload, &plain, &plan)?;
    clock.over("data described, plan derived");
    // A plan that is right for this launch may be wrong for the next.
    let checking = options.check.settings();
    let engine = Engine::of(bench, &workload);
    let wished = tune::perturb::check_wishes(subject.as_ref(), &plain, engine, checking)?;
    let checked = match derived.plan.is_none() {
        true => wished,
        false => Some(tune::perturb::check(
            subject.as_ref(),
            &plain,
            Engine::of(bench, &workload),
            &derived.plan,
            &derived.kernel,
            checking,
        )?),
    };
    clock.over("checked on derived launches");
    let bound = workload.bind(bench.device())?;
    // Everything is computed and checked first: a kernel that goes wrong has no time.
    let ran = bound.run_unread(bench.device(), &derived.kernel);
    let (outcome, outputs, queue) = ran.map_err(|error| kernel::on_made_up(subject.as_ref(), error))?;
    let checksums = outputs
        .iter()
        .map(|output| Ok((output.name.clone(), output.checksum(queue.as_ref())?)))
        .collect::<Result<Vec<_>>>()?;
    clock.over("computed under checks");
    kernel::tell_made_up(subject.as_ref());
    let prefetches = bench.platform().prefetches(&derived.kernel);
    let timed = bench.time(&bound, &derived.kernel)?;
    clock.over("timed");
    if let Some(found) = &timed.outputs {
        let read = outputs.iter().map(|output| output.read(queue.as_ref()));
        tune::check::compare(&workload, &read.collect::<Result<Vec<_>>>()?, found)?;
    }
    // A microbenchmark's number: the launch is timed once more, without its steps.
    let number = match (micro::find(subject.name()), plan == Plan::none()) {
        (Some(micro), true) => {
            let settings = settings(&options.kernel.data.set, micro)?;
            let (number, own) = Meter::of(&*device)?.net(micro, &settings)?;
            Some((number, own, micro.unit))
        }
        _ => None,
    };

    let ran = Ran {
        kernel: subject.name(),
        device: device.name(),
        plan: derived.plan,
        cache,
        geometry: workload.geometry(),
        timed,
        number,
        checksums,
        prefetches,
        checked,
        notes: &outcome.notes,
    };
    if let Some(destination) = json {
        return destination.write(&json_line(&ran.json())?);
    }
    let replayed = match kernel::captured(&options.kernel)? {
        Some(captured) => replayed(&captured)?,
        None => String::new(),
    };
    print(&ran.text(&replayed))
}

/// What came of a run.
struct Ran<'r> {
    kernel: &'r str,
    device: String,
    plan: Plan,
    cache: CacheState,
    geometry: Geometry,
    timed: Timed,
    /// A microbenchmark's number, what of it is the microbenchmark's own, and the unit.
    number: Option<(f64, Option<f64>, &'static str)>,
    checksums: Vec<(String, String)>,
    prefetches: Vec<HintReached>,
    checked: Option<Perturbed>,
    notes: &'r [String],
}

impl Ran<'_> {
    fn json(&self) -> Value {
        let number = self.number;
        let counted = self.timed.counted.iter();
        let counted: Map<String, Value> = counted
            .map(|&(name, _, value)| (name.to_owned(), json!(value)))
            .collect();
        let sums = self.checksums.iter();
        let sums: Map<String, Value> = sums.map(|(name, sum)| (name.clone(), json!(sum))).collect();
        json!({
            "kernel": self.kernel,
            "device": self.device,
            "plan": self.plan,
            "caches": self.cache.to_string(),
            "geometry": self.geometry,
            "time_ns": self.timed.time_ns,
            "number": number.map(|(number, own, unit)| json!({"value": number, "own": own, "unit": unit})),
            "checksums": sums,
            "counters": counted,
            "prefetches": self.prefetches.iter().map(|hint| json!({
                "place": hint.place,
                "asked": hint.asked,
                "reached": hint.reached.map(|level| level.name()),
                "by": hint.by,
                "why": hint.why,
                "cost": hint.cost,
            })).collect::<Vec<_>>(),
            "perturbed": self.checked,
            "notes": self.notes,
        })
    }

    /// `replayed` says how the launch compares with a captured one.
    fn text(&self, replayed: &str) -> String {
        let mut text = format!(
            "{} on {}, {}\nplan      {}\nfinds     {}\ntime      {}\n",
            headstart::names::shown(self.kernel),
            self.device,
            self.geometry,
            self.plan,
            self.cache,
            number::duration(self.timed.time_ns)
        );
        if let Some((number, own, unit)) = self.number {
            let own = own.map(|own| format!(", beside {} of the microbenchmark's own", number::figures(own)));
            text.push_str(&format!(
                "number    {} {unit}{}\n",
                number::figures(number),
                own.unwrap_or_default()
            ));
        }
        for (name, sum) in &self.checksums {
            text.push_str(&format!("output    {name} {sum}\n"));
        }
        for (name, unit, value) in &self.timed.counted {
            text.push_str(format!("          {name}: {} {unit}", number::figures(*value)).trim_end());
            text.push('\n');
        }
        for hint in &self.prefetches {
            text.push_str(&format!("prefetch  {hint}\n"));
        }
        for sentence in self.checked.iter().flat_map(Perturbed::sentences) {
            text.push_str(&format!("checked   {sentence}\n"));
        }
        text.push_str(replayed);
        for note in self.notes {
            text.push_str(&format!("note      {note}\n"));
        }
        text.push_str(&format!("{}\n", self.timed.note));
        text
    }
}

/// A microbenchmark's settings, as they were given.
fn settings(given: &[String], micro: &micro::Micro) -> Result<headstart_gallery::settings::Settings> {
    micro::with(micro.kernel.name, given).map(|(_, settings)| settings)
}
