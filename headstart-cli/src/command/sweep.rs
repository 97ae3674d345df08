//! `headstart sweep`: one kernel at every combination of some settings, to answer "what if".

use headstart::Result;
use headstart::prefetch::Plan;
use headstart::report::sweep;

use crate::arguments::Sweep;
use crate::kernel;
use crate::sweep::axis::Over;
use crate::sweep::points::{self, SweepRequest};
use headstart_cli::output::{Destination, json_line, print};
use headstart_cli::terminal;

/// Runs the command.
pub fn run(options: &Sweep) -> Result<()> {
    let mut over: Vec<Over> = options
        .over
        .iter()
        .map(|over| Over::parse(over))
        .collect::<Result<_>>()?;
    // Several devices are an axis.
    let (several, device) = match options.on.device.as_deref() {
        Some(name) if name.contains(',') => (Some(name), None),
        one => (None, one),
    };
    if let Some(several) = several {
        over.insert(0, Over::parse(&format!("device={several}"))?);
    }
    let plan: Option<Plan> = options.plan.as_deref().map(str::parse).transpose()?;
    let named = [
        ("--json", &options.json),
        ("--csv", &options.csv),
        ("--html", &options.html),
    ];
    let destinations = Destination::apart(named)?;
    let written: Vec<_> = named
        .iter()
        .zip(&destinations)
        .map(|((option, _), one)| (*option, one.as_ref()))
        .collect();
    kernel::spare(&options.kernel, &written)?;
    let swept = points::run(&SweepRequest {
        kernel: &options.kernel,
        device,
        model: &options.on.model,
        cache: options.on.cache.l2.into(),
        max_steps: options.on.watchdog.max_steps,
        plan,
        over: &over,
        check: options.check.settings(),
    })?;
    let texts: [&dyn Fn() -> Result<String>; 3] = [&|| json_line(&swept), &|| sweep::csv(&swept), &|| {
        Ok(terminal::page(&sweep::html(&swept)))
    }];
    for (destination, text) in destinations.iter().zip(texts) {
        if let Some(destination) = destination {
            destination.write(&text()?)?;
        }
    }
    // Data or a page on standard output stand there alone.
    let mut taken = destinations.iter().flatten();
    match taken.any(|destination| matches!(destination, Destination::Standard)) {
        true => Ok(()),
        false => print(&sweep::text(&swept, terminal::report())),
    }
}
