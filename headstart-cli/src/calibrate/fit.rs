//! Adjusts a model's numbers until microbenchmarks on it give the measurements.

use std::collections::BTreeMap;

use headstart::Result;
use headstart::device::model::DeviceModel;
use rayon::prelude::*;

use super::file::Base;
use super::meter::Meter;
use super::points::Point;
use super::rows::Measurements;

/// The number of a model that follows from a microbenchmark.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Aim {
    /// Where it stands in a model: `l1.latency`.
    pub key: &'static str,
    /// How the microbenchmark depends on it.
    pub how: How,
}

/// How a microbenchmark's number depends on a model's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum How {
    /// The model's number is one of the terms: the difference is added to it, times this.
    Adds(f64),
    /// The microbenchmark's number, a rate, grows with it.
    Multiplies,
    /// The microbenchmark's number, a time, falls with it.
    Divides,
}

/// A number that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Fitted {
    /// Where it stands in the model.
    pub key: &'static str,
    /// The number, in the unit that the model uses there.
    pub value: f64,
    /// Its former value.
    pub before: f64,
    /// The microbenchmark.
    pub kernel: &'static str,
    /// Its settings.
    pub settings: String,
    /// The measurement.
    pub measured: f64,
    /// The microbenchmark's present result on the model.
    pub modelled: f64,
}

impl Fitted {
    /// The model's error, as a share of the measurement.
    pub fn error(&self) -> f64 {
        self.modelled / self.measured - 1.0
    }
}

/// How often numbers are changed at most in each phase.
const ROUNDS: u32 = 5;

/// A number with a smaller error than this is not changed any more.
const NEAR: f64 = 0.005;

/// The same for the rates of units: a loop around the instructions takes its share, and units take round numbers.
const NEAR_RATE: f64 = 0.05;

/// In one round a number changes by this factor at most: a number on which a microbenchmark does not depend must not diverge.
const MOST: f64 = 2.0;

/// A number changes by this factor in all rounds together at most.
const FARTHEST: f64 = 8.0;

/// The numbers of `base` that follow from measurements, each chosen so that its microbenchmark gives the measurement.
///
/// # Errors
/// The base has no such number, or a model cannot run a microbenchmark.
pub fn fit(base: &Base, points: &[Point], measurements: &Measurements) -> Result<Vec<Fitted>> {
    let mut fitted: Vec<(Fitted, &Point, How)> = Vec::new();
    for point in points {
        let (Some(aim), Some(found)) = (point.aim, measurements.of(point)) else {
            continue;
        };
        let Some(before) = base.number(aim.key) else {
            continue;
        };
        let one = Fitted {
            key: aim.key,
            value: before,
            before,
            kernel: point.kernel,
            settings: point.settings.clone(),
            measured: found.number,
            modelled: f64::NAN,
        };
        fitted.push((one, point, aim.how));
    }
    // Latencies first: they are part of what rates are measured by, but not the other way round.
    for additive in [true, false, true] {
        settle(base, &mut fitted, additive)?;
    }
    let model = base.with(&numbers(&fitted))?;
    let last: Vec<f64> = fitted
        .par_iter()
        .map(|(_, point, _)| modelled(&model, point))
        .collect::<Result<_>>()?;
    let done = fitted.into_iter().zip(last);
    Ok(done
        .map(|((one, ..), modelled)| Fitted { modelled, ..one })
        .collect())
}

/// Changes the numbers that are added, or those that multiply, until nothing is missing.
///
/// A microbenchmark that is near is simulated again only after the others are near, too, since their numbers may have moved it.
fn settle(base: &Base, fitted: &mut [(Fitted, &Point, How)], additive: bool) -> Result<()> {
    let is_of_phase = |how: &How| matches!(how, How::Adds(_)) == additive;
    let all: Vec<usize> = (0..fitted.len())
        .filter(|&at| is_of_phase(&fitted[at].2))
        .collect();
    // What each number was a round before, with its error there.
    let mut before: Vec<Option<(f64, f64)>> = vec![None; fitted.len()];
    let mut open = all.clone();
    // The numbers that the points which are near were last simulated with.
    let mut seen: Vec<Option<BTreeMap<&'static str, f64>>> = vec![None; fitted.len()];
    for _ in 0..ROUNDS {
        let numbers = numbers(fitted);
        let model = base.with(&numbers)?;
        let modelled: Vec<f64> = open
            .par_iter()
            .map(|&at| modelled(&model, fitted[at].1))
            .collect::<Result<_>>()?;
        let mut moved = Vec::new();
        for (&at, modelled) in open.iter().zip(modelled) {
            let (one, _, how) = &mut fitted[at];
            one.modelled = modelled;
            seen[at] = Some(numbers.clone());
            let wanted = wanted(base, one, *how, before[at]);
            if wanted != one.value {
                before[at] = Some((one.value, one.error()));
                one.value = wanted;
                moved.push(at);
            }
        }
        open = moved;
        if open.is_empty() {
            let now = self::numbers(fitted);
            open.extend(all.iter().filter(|&&at| seen[at].as_ref() != Some(&now)));
        }
        if open.is_empty() {
            break;
        }
    }
    Ok(())
}

/// The number that a microbenchmark asks for next: the one that stands if it is near. `before` is the number of the round before
/// and its error.
fn wanted(base: &Base, one: &Fitted, how: How, before: Option<(f64, f64)>) -> f64 {
    let near = if matches!(how, How::Divides) {
        NEAR_RATE
    } else {
        NEAR
    };
    if one.error().abs() <= near {
        return one.value;
    }
    match before {
        // Too far: the number lies between this one and the one before.
        Some((value, error)) if error * one.error() < 0.0 => base.rounded(one.key, (value + one.value) / 2.0),
        _ => next(base, one, how),
    }
}

fn numbers(fitted: &[(Fitted, &Point, How)]) -> BTreeMap<&'static str, f64> {
    fitted.iter().map(|(one, ..)| (one.key, one.value)).collect()
}

/// A microbenchmark's result on a model.
///
/// # Errors
/// The model cannot run it.
pub fn modelled(model: &DeviceModel, point: &Point) -> Result<f64> {
    Ok(Meter::of_model(model.clone()).point(point)?.number)
}

/// The next value to try, as precise as the model keeps it.
fn next(base: &Base, one: &Fitted, how: How) -> f64 {
    let wanted = match how {
        How::Adds(times) => one.value + times * (one.measured - one.modelled),
        How::Multiplies => one.value * one.measured / one.modelled,
        How::Divides => one.value * one.modelled / one.measured,
    };
    let least = (one.value / MOST).max(one.before / FARTHEST);
    let most = (one.value * MOST)
        .max(one.value + 16.0)
        .min((one.before * FARTHEST).max(64.0));
    let limited = match how {
        How::Adds(_) => wanted.clamp(0.0, most),
        _ => wanted.clamp(least, most),
    };
    let unit = 2f64.powf(limited.log2().round());
    match how {
        // Units take a power of two of lanes; what is as near as this is one. If that is not it, it is something else.
        How::Divides if (limited / unit - 1.0).abs() < 0.1 && unit != one.value => unit,
        _ => base.rounded(one.key, limited),
    }
}
