//! Measures the missing parts of a file, within a budget: first the microbenchmarks, from which a model follows, then the cases
//! of the accuracy suite, one of each kernel before the others.

use std::time::{Duration, Instant};

use headstart::Result;
use headstart::tune::gpu::GpuBench;
use headstart::tune::kinds::KnownDevice;
use headstart::tune::{OpenClBench, SimulatedBench};
use headstart::{Error, report::number::figures};

use super::file::Kit;
use crate::bench::accuracy::cases::{self, Case};
use crate::bench::accuracy::record::{Origin, Side};
use crate::bench::accuracy::{sides, told};
use crate::calibrate::meter::Meter;
use crate::calibrate::points::{self, Point};
use crate::command::calibrate::{line, row};
use crate::device;
use crate::output::{Destination, print};
use crate::published;

/// The part of the budget that the microbenchmarks may take while there are cases to measure.
const FOR_POINTS: f64 = 0.6;

/// Counted launches of each plan.
const ROUNDS: u32 = 7;

/// The parts to measure, and the time limit.
pub struct Plan<'a> {
    /// The device.
    pub device: &'a dyn KnownDevice,
    /// The time.
    pub budget: Duration,
    /// Only microbenchmarks and cases whose names contain one of these; all, if there are none.
    pub only: &'a [String],
}

/// The requested parts, and those already there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Microbenchmarks that were run.
    pub points: usize,
    /// All of them.
    pub all_points: usize,
    /// Cases that were measured.
    pub cases: usize,
    /// All of them.
    pub all_cases: usize,
}

impl Progress {
    /// Whether nothing is left.
    pub fn is_whole(&self) -> bool {
        self.points == self.all_points && self.cases == self.all_cases
    }
}

/// Measures the missing parts, and writes the file after each step.
///
/// # Errors
/// The device cannot be opened, or the file cannot be written. A step's error is stored as its result.
pub fn collect(kit: &mut Kit, plan: &Plan<'_>, destination: &Destination) -> Result<Progress> {
    let begun = Instant::now();
    let before = kit.seconds;
    let wanted =
        |name: &str| plan.only.is_empty() || plan.only.iter().any(|part| name.contains(part.as_str()));
    let mut points = points::all(kit.calibration.cores);
    points.retain(|point| wanted(&point.name()));
    let mut cases = in_order(cases::all());
    cases.retain(|case| wanted(&case.name()));
    let is_quiet = matches!(destination, Destination::Standard);

    let left: Vec<&Point> = points
        .iter()
        .filter(|point| kit.calibration.row(point).is_none())
        .collect();
    let share = match cases.is_empty() {
        true => plan.budget,
        false => plan.budget.mul_f64(FOR_POINTS),
    };
    if !left.is_empty() {
        let mut meter = Meter::of(plan.device)?;
        for point in left {
            if begun.elapsed() >= share {
                break;
            }
            let row = row(point, meter.point(point));
            if !is_quiet {
                print(&line(&row))?;
            }
            kit.calibration.rows.push(row);
            kit.seconds = before + begun.elapsed().as_secs_f64();
            kit.calibration.seconds = kit.seconds;
            write(kit, destination, is_quiet)?;
        }
    }
    let mut measurer: Option<Measurer> = None;
    // Begun cases come first, so that they are completed.
    cases.sort_by_key(|case| {
        !kit.accuracy
            .cases
            .iter()
            .any(|own| own.case == case.name() && !own.is_measured())
    });
    for case in &cases {
        let so_far = match &kit.accuracy.case(&case.name()).measured {
            Some(side) if side.is_whole() => continue,
            so_far => so_far.clone(),
        };
        if begun.elapsed() >= plan.budget {
            break;
        }
        let measurer = match &mut measurer {
            Some(measurer) => measurer,
            none => none.insert(Measurer::of(plan.device)?),
        };
        let in_time = || begun.elapsed() < plan.budget;
        let Some(side) = measurer.side(case, so_far, &in_time)? else {
            break;
        };
        kit.accuracy.case(&case.name()).measured = Some(side);
        kit.accuracy.measured_by = Some(Origin {
            command: published::command(),
            date: published::date(),
            device: kit.calibration.device.clone(),
            driver: Some(kit.calibration.driver.clone()),
            version: kit.version.clone(),
        });
        kit.seconds = before + begun.elapsed().as_secs_f64();
        write(kit, destination, is_quiet)?;
    }
    kit.seconds = before + begun.elapsed().as_secs_f64();
    // Cases that were only asked for leave no trace.
    kit.accuracy
        .cases
        .retain(|case| case.measured.is_some() || case.simulated.is_some());
    kit.write(destination)?;
    let there = |point: &&Point| {
        kit.calibration
            .rows
            .iter()
            .any(|row| row.kernel == point.kernel && row.settings == point.settings)
    };
    let measured = |case: &&Case| {
        let mut own = kit.accuracy.cases.iter();
        own.any(|own| own.case == case.name() && own.is_measured())
    };
    Ok(Progress {
        points: points.iter().filter(there).count(),
        all_points: points.len(),
        cases: cases.iter().filter(measured).count(),
        all_cases: cases.len(),
    })
}

/// Standard output is written once.
fn write(kit: &Kit, destination: &Destination, is_quiet: bool) -> Result<()> {
    match is_quiet {
        true => Ok(()),
        false => kit.write(destination),
    }
}

/// The first case of each kernel, and then the others.
fn in_order(cases: Vec<Case>) -> Vec<Case> {
    let mut seen: Vec<&'static str> = Vec::new();
    let (first, others): (Vec<Case>, Vec<Case>) = cases.into_iter().partition(|case| {
        let is_new = !seen.contains(&case.kernel);
        seen.push(case.kernel);
        is_new
    });
    first.into_iter().chain(others).collect()
}

/// The instrument for a case.
enum Measurer {
    Gpu(Box<GpuBench>),
    OpenCl(Box<OpenClBench>),
    Model(Box<SimulatedBench>),
}

impl Measurer {
    fn of(device: &dyn KnownDevice) -> Result<Measurer> {
        if let Some(facts) = device.gpu() {
            return Ok(Measurer::Gpu(Box::new(device::worker(facts)?)));
        }
        if let Some(facts) = device.opencl() {
            return Ok(Measurer::OpenCl(Box::new(OpenClBench::open(facts.ordinal)?)));
        }
        let model = device
            .model()
            .ok_or_else(|| Error::bug("a device of an unknown kind"))?;
        let bench = SimulatedBench::new(model.clone()).with_cache(sides::CACHE);
        Ok(Measurer::Model(Box::new(bench)))
    }

    /// The side of a case, as far as the time allows; none if it has no plan's time yet.
    fn side(
        &mut self,
        case: &Case,
        so_far: Option<Side>,
        in_time: &dyn Fn() -> bool,
    ) -> Result<Option<Side>> {
        let side = match self {
            Measurer::Gpu(bench) => sides::measured(bench, case, ROUNDS),
            Measurer::OpenCl(bench) => {
                match sides::measured_by_opencl(bench, case, ROUNDS, so_far, in_time) {
                    Ok(None) => {
                        print(&format!(
                            "{}: the time ended before the first plans were measured; begin with a larger --budget\n",
                            case.name()
                        ))?;
                        return Ok(None);
                    }
                    Ok(Some(side)) => Ok(side),
                    Err(error) => Err(error),
                }
            }
            Measurer::Model(bench) => sides::simulated(bench, case),
        };
        told(case, side).map(Some)
    }
}

/// Which parts of the kit are measured and which are missing, for people.
pub fn summary(kit: &Kit, progress: &Progress) -> String {
    let failed = kit
        .calibration
        .rows
        .iter()
        .filter(|row| row.measured.is_none())
        .count();
    let mut text = format!(
        "{} of {} microbenchmarks ({failed} not run by this device), {} of {} cases, {} s in all\n",
        progress.points,
        progress.all_points,
        progress.cases,
        progress.all_cases,
        figures(kit.seconds)
    );
    for case in &kit.accuracy.cases {
        let Some(side) = case.measured.as_ref().filter(|side| !side.is_whole()) else {
            continue;
        };
        let (done, left) = (side.plans.len() + side.without.len(), side.left.len());
        // Plans that are refused at once take no time.
        let minutes = side.wall_s / side.plans.len().max(1) as f64 * left as f64 / 60.0;
        text.push_str(&format!(
            "{}: {done} of {} plans; the others take about {} minutes more on this device\n",
            case.case,
            done + left,
            figures(minutes.max(1.0).ceil())
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kernel_comes_once_before_any_comes_twice() {
        let cases = in_order(cases::all());
        let kernels = cases.iter().map(|case| case.kernel);
        let distinct: std::collections::BTreeSet<&str> = kernels.clone().collect();
        let first: std::collections::BTreeSet<&str> = kernels.take(distinct.len()).collect();
        assert_eq!(first, distinct);
        assert_eq!(cases.len(), cases::all().len());
    }
}
