//! Two reports of one kernel on one device, as `headstart tune --json` wrote them.

use std::path::Path;

use headstart::files::{self, FileError};
use headstart::report::{Report, number};
use headstart::suggest::quoted;
use headstart::{Error, Result, names};

use super::{Comparison, Counted, Side};
use headstart_cli::device;
use headstart_cli::output::counted;

/// The longest report that is read, in bytes.
const MOST: u64 = 256 << 20;

/// Plans in both reports whose gain must differ by this factor to be named.
const DIFFERS: f64 = 1.05;

/// How many of them are named.
const NAMED: usize = 3;

/// Whether a name on the command line is a report's.
pub fn is_report(name: &str) -> bool {
    Path::new(name)
        .extension()
        .is_some_and(|extension| extension == "json")
}

/// Compares two reports.
///
/// # Errors
/// One cannot be read or is no report, or they are of different kernels or devices.
pub fn reports(names: [&str; 2]) -> Result<Comparison> {
    let (a, b) = (read(names[0])?, read(names[1])?);
    if a.kernel != b.kernel {
        return Err(Error::usage(format!(
            "the reports are of different kernels, {} and {}",
            quoted(&names::shown(&a.kernel)),
            quoted(&names::shown(&b.kernel))
        ))
        .at(quoted(names[1]))
        .accepted("two reports of one kernel; `headstart compare A B` compares two kernels themselves"));
    }
    if a.device != b.device {
        return Err(Error::usage(format!(
            "the reports are of different devices, {} and {}",
            quoted(&a.device),
            quoted(&b.device)
        ))
        .at(quoted(names[1]))
        .accepted("two reports of one device"));
    }
    // The words are those of the device's users, as far as it is known here.
    if a.device.starts_with("sim:") {
        let _ = device::find(&a.device, &[]);
    }
    let mut warnings = Vec::new();
    for (what, one, other) in [
        ("geometry", geometry(&a), geometry(&b)),
        ("parameters", parameters(&a), parameters(&b)),
    ] {
        if one != other {
            warnings.push(format!(
                "the {what} differ, so the times are of different work: {one} and {other}."
            ));
        }
    }
    for (side, report) in [("A", &a), ("B", &b)] {
        warnings.extend(report.partial.iter().map(|partial| format!("{side}: {partial}")));
    }
    let mut notes: Vec<String> = a.notes.clone();
    if b.notes != a.notes {
        notes = [("A", &a), ("B", &b)]
            .into_iter()
            .flat_map(|(side, report)| report.notes.iter().map(move |note| format!("{side}: {note}")))
            .collect();
    }
    notes.push(
        "Reports have no code; `headstart compare PLAN PLAN --kernel KERNEL` compares that of two plans."
            .to_owned(),
    );
    Ok(Comparison {
        findings: findings(&a, &b),
        device: a.device.clone(),
        a: side(names[0], &a),
        b: side(names[1], &b),
        warnings,
        code: None,
        notes,
    })
}

fn read(name: &str) -> Result<Report> {
    let place = quoted(name);
    let text = files::text(Path::new(name), MOST).map_err(|error| match error {
        FileError::TooLong { .. } => Error::input("the report is too long")
            .at(&place)
            .accepted(format!("at most {} MiB", MOST >> 20)),
        FileError::NotUtf8 { .. } => Error::input(error.to_string()).at(&place),
        FileError::Folder | FileError::NotRegular | FileError::Io(_) => {
            Error::usage(format!("the report cannot be read: {error}"))
                .at(&place)
                .accepted("a file that `headstart tune --json FILE` wrote")
        }
    })?;
    let report: Report = serde_json::from_str(&text).map_err(|error| {
        let error = error.to_string().replace(char::is_control, "\u{fffd}");
        Error::input(format!("this is not a report of a search: {error}"))
            .at(&place)
            .accepted("a file that `headstart tune --json FILE` wrote")
    })?;
    let times = [report.baseline_ns, report.best.time_ns];
    if times.iter().any(|time| !time.is_finite() || *time <= 0.0) {
        return Err(Error::input("a time in this report is not above 0")
            .at(&place)
            .accepted("a file that `headstart tune --json FILE` wrote"));
    }
    Ok(report)
}

fn geometry(report: &Report) -> String {
    report
        .geometry
        .map_or_else(|| "unknown".to_owned(), |geometry| geometry.to_string())
}

fn parameters(report: &Report) -> String {
    let set = report
        .parameters
        .iter()
        .map(|(name, value)| format!("{name} {value}"));
    set.collect::<Vec<_>>().join(", ")
}

/// A report's advised plan, with its counters.
fn side(name: &str, report: &Report) -> Side {
    let is_plain = report.best.plan.is_none();
    let value = |counter: &headstart::report::Counter| match is_plain {
        true => Some(counter.plain),
        false => counter.best,
    };
    let counted = report.counters.iter().filter_map(|counter| {
        Some(Counted {
            name: counter.name.clone(),
            unit: counter.unit.clone(),
            value: value(counter)?,
        })
    });
    let counted: Vec<Counted> = counted.collect();
    let time_ns = report.best.time_ns;
    // The distance of the quartiles is all that a report keeps: the median lies about half way.
    let spread = counted
        .iter()
        .find(|counted| counted.name == "between the quartiles of its times");
    let interval_ns = spread.map(|spread| {
        let half = time_ns * spread.value / 200.0;
        (time_ns - half, time_ns + half)
    });
    let launch = match parameters(report) {
        set if set.is_empty() => geometry(report),
        set => format!("{}; {set}", geometry(report)),
    };
    Side {
        name: name.to_owned(),
        kernel: names::shown(&report.kernel).into_owned(),
        launch,
        plan: report.best.plan.to_string(),
        time_ns,
        interval_ns,
        counted,
    }
}

/// Further differences: the verdict, the plain kernel's time, the gain of plans that are in both.
fn findings(a: &Report, b: &Report) -> Vec<String> {
    let mut findings = Vec::new();
    findings.push(match a.verdict == b.verdict {
        true => format!("Both advise: {}.", a.verdict),
        false => format!("A advises: {}; B advises: {}.", a.verdict, b.verdict),
    });
    findings.push(match a.baseline_ns == b.baseline_ns {
        true => format!(
            "The plain kernel takes {} in both.",
            number::duration(a.baseline_ns)
        ),
        false => format!(
            "The plain kernel takes {} in A and {} in B ({}).",
            number::duration(a.baseline_ns),
            number::duration(b.baseline_ns),
            number::speedup(a.baseline_ns / b.baseline_ns)
        ),
    });
    let mut changed: Vec<(f64, String)> = Vec::new();
    let mut both = 0;
    for trial in &a.trials {
        let other = b.trials.iter().find(|other| other.plan == trial.plan);
        let (Some((_, own)), Some((_, other))) = (trial.measured(), other.and_then(|other| other.measured()))
        else {
            continue;
        };
        both += 1;
        let factor = (other / own).max(own / other);
        if factor >= DIFFERS {
            let sentence = format!(
                "`{}` gains {} in A and {} in B.",
                trial.plan,
                number::speedup(own),
                number::speedup(other)
            );
            changed.push((factor, sentence));
        }
    }
    changed.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    findings.push(format!(
        "{} timed in both; the gain of {} differs by {} or more.",
        counted(both, "plan"),
        changed.len(),
        number::percent(DIFFERS - 1.0)
    ));
    findings.extend(changed.into_iter().take(NAMED).map(|(_, sentence)| sentence));
    findings
}
