//! `headstart compare`: two plans, two reports or two versions of a kernel beside each other.

use headstart::prefetch::Plan;
use headstart::report::page;
use headstart::suggest::quoted;
use headstart::{Error, Result};

use crate::arguments::{Compare, KernelOptions};
use crate::compare::reports::{is_report, reports};
use crate::compare::runs::{On, plans, versions};
use crate::compare::{Comparison, shown};
use headstart_cli::device;
use headstart_cli::output::{Destination, json_line, print, print_as_it_is};
use headstart_cli::progress::Clock;
use headstart_cli::terminal;

/// Runs the command.
pub fn run(options: &Compare) -> Result<()> {
    let [json, html] = Destination::apart([("--json", &options.json), ("--html", &options.html)])?;
    let mut clock = Clock::start();
    let comparison = comparison(options)?;
    clock.over("compared");
    if let Some(destination) = &json {
        destination.write(&json_line(&shown::json(&comparison))?)?;
    }
    let text = shown::text(&comparison, terminal::report());
    let code = comparison.code.as_ref();
    let code = code.map(|code| shown::code(code, options.all_code, terminal::report()));
    if let Some(destination) = &html {
        let all = format!("{text}\n{}", code.as_deref().unwrap_or_default());
        let title = format!("{} and {}", options.a, options.b);
        destination.write(&page::of_text(&title, &all))?;
    }
    let is_standard = |to: &Option<Destination>| matches!(to, Some(Destination::Standard));
    if is_standard(&json) || is_standard(&html) {
        return Ok(());
    }
    print(&text)?;
    if let Some(code) = code {
        print("\n")?;
        print_as_it_is(&code)?;
    }
    match html.and_then(|html| html.said("the comparison as a page")) {
        Some(line) => print(&format!("\n{line}\n")),
        None => Ok(()),
    }
}

fn comparison(options: &Compare) -> Result<Comparison> {
    let names = [options.a.as_str(), options.b.as_str()];
    if options.kernel.is_none() {
        match names.map(is_report) {
            [true, true] => {
                refuse_beside_reports(options)?;
                return reports(names);
            }
            [false, false] => {}
            [is_report, _] => {
                let [report, other] = match is_report {
                    true => names,
                    false => [names[1], names[0]],
                };
                return Err(Error::usage(format!(
                    "{} is a report, and {} is not",
                    quoted(report),
                    quoted(other)
                ))
                .accepted("two reports, two kernels, or two plans with `--kernel KERNEL`"));
            }
        }
        let is_plan = |name: &&&str| name.parse::<Plan>().is_ok() && !std::path::Path::new(name).exists();
        if let Some(plan) = names.iter().find(is_plan) {
            return Err(
                Error::usage(format!("{} is a plan, and no kernel is given", quoted(plan)))
                    .accepted("`--kernel KERNEL`"),
            );
        }
    }
    let on = &options.on;
    let device = device::find_or_first(on.device.as_deref(), &on.model)?;
    let bench = device::open(&*device, on.cache.l2.into(), on.watchdog.max_steps)?;
    let on = On {
        device: &*device,
        bench: bench.as_ref(),
        check: options.check.settings(),
        form: options.code,
    };
    match &options.kernel {
        Some(kernel) => {
            let kernel = KernelOptions {
                kernel: kernel.clone(),
                data: options.data.clone(),
            };
            plans(&kernel, names, &on)
        }
        None => versions(names, &options.data, options.launch_b.as_deref(), &on),
    }
}

/// A report has its kernel, data and device: options for them would be ignored.
fn refuse_beside_reports(options: &Compare) -> Result<()> {
    let given = [
        ("--set", !options.data.set.is_empty()),
        ("--trace", options.data.trace.is_some()),
        ("--launch", options.data.launch.is_some()),
        ("--launch-b", options.launch_b.is_some()),
        ("--device", options.on.device.is_some()),
        ("--model", !options.on.model.is_empty()),
        ("--code", options.code.is_some()),
    ];
    match given.into_iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => Err(Error::usage(format!(
            "`{option}` applies to kernels that are run, not to reports"
        ))
        .accepted("leave it out")),
        None => Ok(()),
    }
}
