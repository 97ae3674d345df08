//! How often the simulator's answer is right: `headstart-lab bench --suite accuracy`.
//!
//! On a GPU (`--device cuda:0`, `opencl:0`) every plan of a fixed list of cases is measured; on a model (`--device sim:h200`) the same
//! plans are simulated. Both go into one file; entries that the file already has for a side are not repeated. The two sides are
//! compared when both are there.
//!
//! | file | what it holds |
//! |---|---|
//! | `cases` | the list |
//! | `sides` | measuring and simulating a case |
//! | `record` | the file |
//! | `judge` | verdicts, errors, ranks and regret of a case |
//! | `errors` | the errors by kind of plan, of which the intervals of speedups are made |
//! | `document` | all of it in words; `results/accuracy.md` |

pub mod cases;
pub mod document;
mod errors;
pub mod judge;
pub mod record;
pub mod sides;

use std::time::Instant;

use headstart::tune::{OpenClBench, Shard, SimulatedBench};
use headstart::{Error, Result};

use self::cases::Case;
use self::record::{Origin, Record, Side};
use crate::arguments;
use headstart_cli::device;
use headstart_cli::output::{Destination, print};
use headstart_cli::published;

/// Runs the suite.
///
/// # Errors
/// There is no such device, or the file cannot be read or written. A case's failure is stored as its result.
pub fn run(options: &arguments::Bench) -> Result<()> {
    let path = options.json.as_deref().ok_or_else(|| {
        Error::usage("the accuracy suite writes its results to a file").accepted("`--json FILE`")
    })?;
    let destination = Destination::check("--json", path)?;
    let mut record = Record::open(path)?;
    record.add(&options.from)?;
    let cases = wanted(options)?;
    let device = device::find(&options.device, &[])?;
    let start = Instant::now();
    let in_time = || {
        options
            .limit
            .is_none_or(|limit| start.elapsed().as_secs() < limit)
    };
    let origin = |device: String, driver: Option<String>| Origin {
        command: published::command(crate::PROGRAM),
        date: published::date(),
        device,
        driver,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    match (device.gpu(), device.model()) {
        (Some(facts), _) => {
            let mut bench = device::worker(facts)?;
            for case in cases {
                if !in_time() || record.case(&case.name()).measured.is_some() {
                    continue;
                }
                let side = told(&case, sides::measured(&mut bench, &case, options.rounds))?;
                record.case(&case.name()).measured = Some(side);
                record.measured_by = Some(origin(facts.name.clone(), published::driver()));
                record.write(&destination)?;
            }
        }
        (_, Some(model)) => {
            let bench = SimulatedBench::new(model.clone()).with_cache(sides::CACHE);
            for case in cases {
                if !in_time() {
                    continue;
                }
                if let Some(side) = &mut record.case(&case.name()).simulated {
                    if side.bounds.is_none() && side.error.is_none() {
                        side.bounds = sides::bounds(&bench, &case)?;
                        record.write(&destination)?;
                    }
                    continue;
                }
                let side = told(&case, sides::simulated(&bench, &case))?;
                record.case(&case.name()).simulated = Some(side);
                record.simulated_by = Some(origin(bench.model().description().name, None));
                record.write(&destination)?;
            }
        }
        (None, None) => {
            let facts = device
                .opencl()
                .ok_or_else(|| Error::bug("a device of an unknown kind"))?;
            let mut bench = OpenClBench::open(facts.ordinal)?;
            for case in cases {
                let so_far = match &record.case(&case.name()).measured {
                    Some(side) if side.is_whole() => continue,
                    so_far => so_far.clone(),
                };
                let rounds = options.rounds;
                let side = match in_time() {
                    true => {
                        sides::measured_by_opencl(&mut bench, &case, rounds, so_far, &in_time).transpose()
                    }
                    false => None,
                };
                let Some(side) = side else {
                    print(&format!(
                        "{}: the time ended before plans were measured; the same command goes on\n",
                        case.name()
                    ))?;
                    break;
                };
                record.case(&case.name()).measured = Some(told(&case, side)?);
                record.measured_by = Some(origin(facts.name.clone(), Some(facts.driver.clone())));
                record.write(&destination)?;
            }
            record
                .cases
                .retain(|case| case.measured.is_some() || case.simulated.is_some());
        }
    }
    record.write(&destination)?;
    let judgements = judge::of(&record)?;
    print(&document::summary(&judgements))
}

/// The cases that were asked for.
pub fn wanted(options: &arguments::Bench) -> Result<Vec<Case>> {
    let mut cases = cases::all();
    cases.retain(|case| {
        options.case.is_empty()
            || options
                .case
                .iter()
                .any(|text| case.name().contains(text.as_str()))
    });
    let shard: Option<Shard> = options.shard.as_deref().map(str::parse).transpose()?;
    Ok(match shard {
        Some(shard) => shard.of(cases),
        None => cases,
    })
}

/// A line for people; an error is stored as a result, too.
pub fn told(case: &Case, side: Result<Side>) -> Result<Side> {
    let side = side.unwrap_or_else(|error| Side {
        error: Some(error.to_string()),
        ..Side::default()
    });
    let best = side
        .plans
        .iter()
        .max_by(|one, other| one.speedup.total_cmp(&other.speedup));
    let best = best.map_or("no plan".to_owned(), |best| {
        format!("{:.2}× {}", best.speedup, best.plan)
    });
    print(&match &side.error {
        Some(error) => format!("{}: {error}\n", case.name()),
        None => format!(
            "{}: plain {:.4} ms, {best}, {} plans, {} without a time, {:.1} s\n",
            case.name(),
            side.plain_ns * 1e-6,
            side.plans.len(),
            side.without.len(),
            side.wall_s
        ),
    })?;
    Ok(side)
}
