//! Evaluating an owner's file: a model of the device, and how often its verdicts would have been correct there.

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use headstart::device::model::{self, DeviceModel};
use headstart::report::number::{figures, percent};
use headstart::tune::SimulatedBench;
use headstart::{Error, Result};

use super::file::Kit;
use crate::bench::accuracy::cases;
use crate::bench::accuracy::document::summary;
use crate::bench::accuracy::judge::{self, Judgement};
use crate::bench::accuracy::record::Origin;
use crate::bench::accuracy::{sides, told};
use crate::calibrate::file::Base;
use crate::calibrate::fit::{self, Fitted};
use crate::calibrate::points;
use crate::command::calibrate::{changes, named, of_device, similar};
use crate::output::counted;
use crate::published;

/// The result of reading a file.
pub struct Made {
    /// The new model as text, for `--device FILE.toml`.
    pub text: String,
    /// The same.
    pub model: DeviceModel,
    /// The numbers that follow from the microbenchmarks.
    pub fitted: Vec<Fitted>,
    /// The model that it was made from.
    pub base: String,
}

/// The model that follows from a file's microbenchmarks.
///
/// # Errors
/// No model is like the device and none is named, or one that is named does not exist.
pub fn model_of(kit: &Kit, base: Option<&str>, output: Option<&Path>) -> Result<Made> {
    let measurements = &kit.calibration;
    let name = match base {
        Some(name) => name.to_owned(),
        None => similar(measurements)?,
    };
    let base = Base::find(&name)?;
    let like = model::find(&name, &[])?;
    let points = points::all(measurements.cores);
    let fitted = fit::fit(&base, &points, measurements)?;
    let text = base.write(
        &named(output, measurements),
        &of_device(&like, measurements),
        &fitted,
    )?;
    let model = model::parse(&text, "the new model", &[])?;
    Ok(Made {
        text,
        model,
        fitted,
        base: name,
    })
}

/// Simulates as many of the measured cases as the time allows on a model, and compares the two.
///
/// # Errors
/// A plan of the file cannot be read.
pub fn held_against(kit: &mut Kit, model: &DeviceModel, budget: Duration) -> Result<Vec<Judgement>> {
    let begun = Instant::now();
    let bench = SimulatedBench::new(model.clone()).with_cache(sides::CACHE);
    for case in cases::all() {
        let record = kit
            .accuracy
            .cases
            .iter_mut()
            .find(|record| record.case == case.name());
        let Some(record) = record.filter(|record| {
            record
                .measured
                .as_ref()
                .is_some_and(|side| side.error.is_none() && side.is_whole())
        }) else {
            continue;
        };
        if begun.elapsed() >= budget {
            break;
        }
        record.simulated = Some(told(&case, sides::simulated(&bench, &case))?);
    }
    kit.accuracy.simulated_by = Some(Origin {
        command: published::command(),
        date: published::date(),
        device: format!("sim:{}", model.name),
        driver: None,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    });
    judge::of(&kit.accuracy)
}

/// The description of the file, for people.
pub fn described(kit: &Kit) -> String {
    let mut text = format!(
        "{}, driver {}, measured {} with version {} in {} s\n",
        kit.calibration.device,
        kit.calibration.driver,
        kit.calibration.date,
        kit.version,
        figures(kit.seconds)
    );
    for (name, value) in &kit.facts {
        let _ = writeln!(text, "  {name}: {value}");
    }
    let failed: Vec<&str> = kit
        .calibration
        .rows
        .iter()
        .filter_map(|row| row.failure.as_deref())
        .collect();
    let _ = writeln!(
        text,
        "{}, {} not run by the device; {}",
        counted(kit.calibration.rows.len(), "microbenchmark"),
        failed.len(),
        counted(kit.accuracy.cases.len(), "case")
    );
    text
}

/// The model, and how correct its verdicts are, for people.
pub fn told_of(made: &Made, judgements: &[Judgement]) -> String {
    let mut text = changes(&made.base, &made.fitted);
    let mut errors: Vec<f64> = made.fitted.iter().map(|one| one.error().abs()).collect();
    errors.sort_by(f64::total_cmp);
    if let (Some(median), Some(worst)) = (errors.get(errors.len() / 2), errors.last()) {
        let _ = writeln!(
            text,
            "{}: median error {}, worst {}",
            counted(errors.len(), "number"),
            percent(*median),
            percent(*worst)
        );
    }
    text.push('\n');
    text.push_str(&summary(judgements));
    text
}

/// Refuses a file that holds nothing.
///
/// # Errors
/// Nothing was measured.
pub fn check(kit: &Kit) -> Result<()> {
    match kit.calibration.rows.iter().any(|row| row.measured.is_some()) {
        true => Ok(()),
        false => Err(Error::input("no microbenchmark of the file was measured")
            .accepted("a file that `headstart kit DEVICE -o FILE` has written to")),
    }
}
