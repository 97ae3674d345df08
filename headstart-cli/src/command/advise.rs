//! `headstart advise`: should this kernel be prefetched, and why?

use std::path::Path;
use std::time::Duration;

use headstart::advise::profiler::{self, Profiled, Profiler, Wanted};
use headstart::advise::{self, Advice};
use headstart::names;
use headstart::report::page;
use headstart::report::terms::Terms;
use headstart::suggest::quoted;
use headstart::tune::kinds::KnownDevice;
use headstart::{Error, Result};

use crate::arguments::{Advise, KernelOptions};
use crate::kernel::{self, Places};
use headstart_cli::device;
use headstart_cli::output::{Destination, json_line, print};
use headstart_cli::progress::{Bar, Clock};
use headstart_cli::terminal;

/// How long plans are tried without a `--budget`: an answer is wanted soon, and `tune` has all the time it takes.
const ENOUGH: Duration = Duration::from_secs(60);

/// Runs the command.
pub fn run(options: &Advise) -> Result<()> {
    // All possible errors are found before the long work starts.
    check_share(options.share)?;
    let [json, html] = Destination::apart([("--json", &options.json), ("--html", &options.html)])?;
    if let Some(kernel) = &options.kernel {
        let kernel = KernelOptions {
            kernel: kernel.clone(),
            data: options.data.clone(),
        };
        kernel::spare(&kernel, &[("--json", json.as_ref()), ("--html", html.as_ref())])?;
    }
    let mut clock = Clock::start();
    let mut advice = advice(options, &clock)?;
    clock.over("advice found");
    if let Some(share) = options.share {
        advice = advice.within_program(share)?;
    }
    let text = advise::text(&advice, terminal::report());
    if let Some(json) = &json {
        json.write(&json_line(&advice)?)?;
    }
    if let Some(html) = &html {
        html.write(&page::of_text(
            &format!("Advice for {}", names::shown(&advice.kernel)),
            &text,
        ))?;
    }
    if json.is_some() || matches!(html, Some(Destination::Standard)) {
        return Ok(());
    }
    print(&text)?;
    match html.and_then(|html| html.said("the advice as a page")) {
        Some(line) => print(&format!("\n{line}\n")),
        None => Ok(()),
    }
}

fn check_share(share: Option<f64>) -> Result<()> {
    match share {
        Some(share) if !(share > 0.0 && share <= 1.0) => Err(Error::usage(format!(
            "`--share {share}` is not a share of a program's time"
        ))
        .accepted("a number above 0, and at most 1")),
        _ => Ok(()),
    }
}

/// The advice from a search that soon ends, or from a profile, or from both.
fn advice(options: &Advise, clock: &Clock) -> Result<Advice> {
    let overrides = &options.model;
    let budget = super::tune::budget(options.budget)?;
    super::tune::compile_within(budget.unwrap_or(ENOUGH));
    let profile = match (&options.ncu, &options.vtune) {
        (Some(name), _) => Some((Profiler::NsightCompute, name)),
        (None, Some(name)) => Some((Profiler::VTune, name)),
        (None, None) => None,
    };
    if let Some((profiler, _)) = profile {
        // A profile's terms are its profiler's, whatever the device.
        terminal::use_terms(match profiler {
            Profiler::NsightCompute => Terms::Cuda,
            Profiler::VTune => Terms::Sycl,
        });
    }
    let given = options
        .device
        .as_deref()
        .map(|name| device::find(name, overrides))
        .transpose()?;
    let Some(kernel) = &options.kernel else {
        let data = &options.data;
        if !data.set.is_empty() || data.trace.is_some() || data.launch.is_some() {
            return Err(Error::usage("`--set`, `--trace` and `--launch` are for a kernel")
                .accepted("a KERNEL as well"));
        }
        let (profiler, name) =
            profile.ok_or_else(|| Error::usage("neither a kernel nor a profile is given"))?;
        return Ok(Advice::of_profiler(&read_profile(
            profiler,
            name,
            None,
            given.as_deref(),
        )?));
    };
    let is_of_another_launch = options.profile_is_of_another_launch;
    let (cache, max_steps) = (options.cache.l2.into(), options.watchdog.max_steps);
    let options = KernelOptions {
        kernel: kernel.clone(),
        data: options.data.clone(),
    };
    let subject = kernel::find(&options, Places::Filled)?;
    let profiled = profile
        .map(|(profiler, name)| read_profile(profiler, name, Some(subject.name()), given.as_deref()))
        .transpose()?
        .map(|profiled| Profiled {
            is_of_another_launch,
            ..profiled
        });
    let device = match (given, &profiled) {
        (Some(device), _) => device,
        (None, Some(profiled)) => device::find(simulated(profiled)?, overrides)?,
        (None, None) => device::find_or_first(None, overrides)?,
    };
    let bench = device::open(&*device, cache, max_steps)?;
    let bar = match budget {
        Some(budget) => Bar::new(clock, Some(budget)),
        None => Bar::about(clock, ENOUGH),
    };
    match profiled {
        Some(profiled) => Advice::of_profiled_kernel(&profiled, subject.as_ref(), bench.as_ref(), &bar),
        None => advise::advise(subject.as_ref(), bench.as_ref(), &bar),
    }
}

/// The simulated device that a profile was made on.
fn simulated(profiled: &Profiled) -> Result<&str> {
    profiled.simulated.as_deref().ok_or_else(|| {
        Error::usage(format!(
            "the profile is of {}, which no model is of",
            profiled.device
        ))
        .accepted("`--device` with a device to try the plans on")
    })
}

/// Reads `FILE`, or launch N of `FILE#N`. Without a number it is a launch of the kernel's name.
fn read_profile(
    profiler: Profiler,
    name: &str,
    kernel: Option<&str>,
    device: Option<&dyn KnownDevice>,
) -> Result<Profiled> {
    let (file, launch) = match name.rsplit_once('#') {
        Some((file, launch)) if !Path::new(name).exists() => match launch.parse() {
            Ok(launch) => (file, Some(launch)),
            Err(_) => {
                return Err(
                    Error::usage(format!("{} is not a launch of a profile", quoted(launch)))
                        .accepted("`FILE.csv#N` with N from 0"),
                );
            }
        },
        _ => (name, None),
    };
    let wanted = Wanted {
        kernel: kernel.filter(|_| launch.is_none()),
        launch,
        model: device.and_then(|device| device.model()),
    };
    profiler::read(profiler, Path::new(file), &wanted)
}
