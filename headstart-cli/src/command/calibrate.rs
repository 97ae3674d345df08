//! `headstart calibrate`: microbenchmarks on a device, the model that follows from them, and how near one is to another.

use std::path::Path;
use std::time::Instant;

use headstart::device::model::{self, DeviceModel, Vendor};
use headstart::report::number::{figures, percent};
use headstart::{Error, Result};
use headstart_gallery::micro;
use rayon::prelude::*;

use crate::arguments::{Calibrate, Rows};
use crate::calibrate::facts::{self, maker};
use crate::calibrate::file::{Base, Named};
use crate::calibrate::fit::{self, Fitted};
use crate::calibrate::meter::Meter;
use crate::calibrate::points::{self, Point};
use crate::calibrate::rows::{Measurements, Number, Row};
use headstart_cli::device;
use headstart_cli::output::{Destination, counted, json_line, print};

/// Runs the command.
pub fn run(options: &Calibrate) -> Result<()> {
    let output = Destination::asked("--output", options.output.as_deref())?;
    let json = Destination::asked("--json", options.json.as_deref())?;
    let (mut measurements, points, own) = match (&options.from, &options.device) {
        (Some(path), None) => {
            let measurements = Measurements::read(path)?;
            let points = wanted(points::all(measurements.cores), &options.case)?;
            (measurements, points, None)
        }
        (from, device) => {
            let device = device::find_or_first(Some(device.as_deref().unwrap_or("cuda:0")), &options.model)?;
            let mut measurements = facts::of(&*device)?;
            if let Some(path) = from {
                measurements.go_on(Measurements::read(path)?)?;
            }
            let points = wanted(points::all(measurements.cores), &options.case)?;
            measure(
                &mut measurements,
                Meter::of(&*device)?,
                &points,
                options,
                json.as_ref(),
            )?;
            (
                measurements,
                points,
                device.model().map(|model| model.name.clone()),
            )
        }
    };
    if output.is_none() && options.compare.is_none() {
        return Ok(());
    }
    let name = match (&options.base, own) {
        (Some(name), _) => name.clone(),
        (None, Some(own)) => own,
        (None, None) => similar(&measurements)?,
    };
    let base = Base::find(&name)?;
    let mut model = model::find(&name, &[])?;
    let mut changed: Vec<String> = Vec::new();
    if let Some(destination) = &output {
        let fitted = fit::fit(&base, &points, &measurements)?;
        let text = base.write(
            &named(options.output.as_deref(), &measurements),
            &of_device(&model, &measurements),
            &fitted,
        )?;
        destination.write(&text)?;
        print(&changes(&name, &fitted))?;
        model = model::parse(&text, "the new model", &[])?;
        let new = fitted.iter().filter(|one| one.value != one.before);
        changed = new.map(|one| points::name(one.kernel, &one.settings)).collect();
    }
    let Some(rows) = options.compare else {
        return Ok(());
    };
    let is_wanted =
        |point: &&Point| rows == Rows::All || changed.is_empty() || changed.contains(&point.name());
    let points: Vec<&Point> = points.iter().filter(is_wanted).collect();
    let is_quiet = matches!(json, Some(Destination::Standard));
    compare(&model, &points, &mut measurements, is_quiet)?;
    json.map_or(Ok(()), |destination| {
        destination.write(&json_line(&measurements)?)
    })
}

/// The points whose names or settings contain one of these; all if there are none.
fn wanted(points: Vec<Point>, cases: &[String]) -> Result<Vec<Point>> {
    let matches = |point: &Point| {
        let name = point.name();
        cases.is_empty() || cases.iter().any(|case| name.contains(case))
    };
    let chosen: Vec<Point> = points.into_iter().filter(matches).collect();
    match chosen.is_empty() {
        true => Err(Error::usage("no microbenchmark's name or settings contain that")
            .accepted("part of a name, such as `micro/latency`; without `--case`, all are run")),
        false => Ok(chosen),
    }
}

/// Runs every point that has no row yet, one after the other on a GPU, and prints each; a file always has the results so far.
fn measure(
    measurements: &mut Measurements,
    meter: Meter,
    points: &[Point],
    options: &Calibrate,
    json: Option<&Destination>,
) -> Result<()> {
    let (begun, before) = (Instant::now(), measurements.seconds);
    let in_time = || {
        options
            .budget
            .is_none_or(|limit| begun.elapsed().as_secs() < limit)
    };
    let points: Vec<&Point> = points.iter().filter(|point| !measurements.has(point)).collect();
    // Standard output gets the results alone, and once.
    let is_quiet = matches!(json, Some(Destination::Standard));
    let mut done = 0;
    let mut keep = |row: Row| -> Result<()> {
        done += 1;
        measurements.rows.push(row);
        measurements.seconds = before + begun.elapsed().as_secs_f64();
        if is_quiet {
            return Ok(());
        }
        print(&line(&measurements.rows[measurements.rows.len() - 1]))?;
        json.map_or(Ok(()), |file| file.write(&json_line(&*measurements)?))
    };
    match meter {
        Meter::Model(model) => {
            let own = |point: &&Point| row(point, Meter::Model(model.clone()).point(point));
            let rows = points
                .par_iter()
                .filter_map(|point| in_time().then(|| own(point)));
            let rows: Vec<Row> = rows.collect();
            rows.into_iter().try_for_each(keep)?;
        }
        mut device => {
            let mut left = points.iter().take_while(|_| in_time());
            left.try_for_each(|point| keep(row(point, device.point(point))))?;
        }
    }
    match json {
        Some(output) if is_quiet && options.compare.is_none() => output.write(&json_line(measurements)?),
        _ if !is_quiet && done < points.len() => print(&format!(
            "The time is over: {} left. `--device` and `--from` with these measurements go on.\n",
            counted(points.len() - done, "microbenchmark")
        )),
        _ => Ok(()),
    }
}

/// A microbenchmark's result, as it is stored.
fn row(point: &Point, outcome: Result<Number>) -> Row {
    let unit = micro::find(point.kernel).map_or("", |micro| micro.unit);
    let (measured, failure) = match outcome {
        Ok(number) => (Some(number), None),
        Err(error) => (None, Some(error.to_string())),
    };
    Row {
        kernel: point.kernel.to_owned(),
        settings: point.settings.clone(),
        unit: unit.to_owned(),
        measured,
        modelled: None,
        failure,
    }
}

/// The same for people.
fn line(row: &Row) -> String {
    let name = format!("{} {}", row.kernel, row.settings);
    match (&row.measured, &row.failure) {
        (Some(found), _) => format!("{name:<76} {:>9} {}\n", figures(found.number), row.unit),
        (None, failure) => format!("{name:<76} {}\n", failure.as_deref().unwrap_or("not run")),
    }
}

/// The built-in model of the measured device, or the one that is most similar: the next smaller number of cores.
fn similar(measurements: &Measurements) -> Result<String> {
    let made_by = measurements
        .maker
        .as_deref()
        .unwrap_or_else(|| maker(Vendor::Nvidia));
    let mut best: Option<(u32, String)> = None;
    for name in model::built_in_names() {
        let model = model::built_in(name, &[])?;
        if measurements.device.starts_with(&model.title) && *model.core.count == measurements.cores {
            return Ok(name.to_owned());
        }
        let off = model.core.count.abs_diff(measurements.cores);
        if maker(model.vendor) == made_by && best.as_ref().is_none_or(|(least, _)| off < *least) {
            best = Some((off, name.to_owned()));
        }
    }
    best.map(|(_, name)| name).ok_or_else(|| {
        Error::usage(format!("no model resembles {}", measurements.device)).accepted(format!(
            "`--base MODEL`, one of {}",
            model::built_in_names().collect::<Vec<_>>().join(", ")
        ))
    })
}

/// Facts that the device reports and the model lacks.
fn of_device(model: &DeviceModel, measurements: &Measurements) -> Vec<(&'static str, f64, String)> {
    let source = format!("{} says so, driver {}", measurements.device, measurements.driver);
    let mut numbers = Vec::new();
    if *model.core.count != measurements.cores {
        numbers.push(("core.count", f64::from(measurements.cores), source.clone()));
    }
    if (*model.core.clock / measurements.clock_mhz - 1.0).abs() > 0.001 {
        numbers.push(("core.clock", measurements.clock_mhz, source));
    }
    numbers
}

fn named(path: Option<&Path>, measurements: &Measurements) -> Named {
    let stem = path
        .and_then(Path::file_stem)
        .map(|stem| stem.to_string_lossy().into_owned());
    let Measurements {
        device, driver, date, ..
    } = measurements;
    Named {
        name: stem
            .filter(|stem| stem != "-")
            .unwrap_or_else(|| "mine".to_owned()),
        title: device.trim_end_matches(" (simulated)").to_owned(),
        notes: format!(
            "Made by `headstart calibrate` from microbenchmarks on an {device}, driver {driver}, {date}."
        ),
        measured: format!("measured on an {device}, {date}, driver {driver}"),
    }
}

fn changes(base: &str, fitted: &[Fitted]) -> String {
    let mut text = format!("\nFitted numbers, starting from {base}:\n");
    for one in fitted {
        text.push_str(&format!(
            "{:<36} {:>9} → {:>9}   {} {}: {} measured, {} with it\n",
            one.key,
            figures(one.before),
            figures(one.value),
            one.kernel,
            one.settings,
            figures(one.measured),
            figures(one.modelled),
        ));
    }
    text
}

/// Compares the model's results with the measurements, prints each row as it comes, and the model's error.
fn compare(
    model: &DeviceModel,
    points: &[&Point],
    measurements: &mut Measurements,
    is_quiet: bool,
) -> Result<()> {
    let show = |text: &str| if is_quiet { Ok(()) } else { print(text) };
    show(&format!(
        "\n{:<76} {:>9} {:>9} {:>7}\n",
        format!("{}, compared with model {}", measurements.device, model.name),
        "measured",
        "model",
        "error"
    ))?;
    let measured: Vec<(&Point, f64)> = points
        .iter()
        .filter_map(|&point| Some((point, measurements.of(point)?.number)))
        .collect();
    // One at a time, so that no core is left with a share of long ones.
    let modelled: Vec<(&Point, f64, f64)> = measured
        .par_iter()
        .with_max_len(1)
        .map(|&(point, found)| {
            let modelled = fit::modelled(model, point)?;
            let fitted = if point.aim.is_some() {
                " used for fitting"
            } else {
                ""
            };
            show(&format!(
                "{:<76} {:>9} {:>9} {:>7}{fitted}\n",
                point.name(),
                figures(found),
                figures(modelled),
                percent(modelled / found - 1.0)
            ))?;
            Ok((point, found, modelled))
        })
        .collect::<Result<_>>()?;
    let mut errors: Vec<f64> = Vec::new();
    for (point, found, modelled) in modelled {
        errors.push((modelled / found - 1.0).abs());
        if let Some(row) = measurements.row(point) {
            row.modelled = Some(modelled);
        }
    }
    measurements.model = Some(model.name.clone());
    errors.sort_by(f64::total_cmp);
    match (errors.get(errors.len() / 2), errors.last()) {
        (Some(median), Some(worst)) => show(&format!(
            "{}: median error {}, worst {}\n",
            counted(errors.len(), "row"),
            percent(*median),
            percent(*worst)
        )),
        _ => Ok(()),
    }
}
