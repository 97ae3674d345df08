//! Nsight Compute's CSV: the raw page (a column a metric, a row of units) and the details page (a row a metric).
//!
//! `ncu --csv --page raw --set full PROGRAM > FILE.csv` writes one, behind the program's output.
//!
//! | file | what it holds |
//! |---|---|
//! | `metrics` | the profiler's names and units |
//! | `launch` | the metrics of one launch |
//! | `occupancy` | how full its cores were |
//! | `profiled` | what they say |

mod launch;
mod metrics;
mod occupancy;
mod profiled;

use self::launch::Launch;
use self::metrics::{DURATION, Unit, command};
use super::number::Spelling;
use super::table::Table;
use super::{Profiled, Wanted, spelled};
use crate::error::{Error, Result};
use crate::report::number::duration;

/// On the details page a metric's row ends here; only a rule's has the columns behind.
const LAST: &str = "Rule Name";
const EXPECTED: &str = "the output of `ncu --csv --page raw --set full PROGRAM`, or the details page";

/// Reads the text of a file.
pub(super) fn parse(text: &str, wanted: &Wanted<'_>) -> Result<Profiled> {
    let table = Table::find(text, "ID", &["ID", "Kernel Name"], LAST, EXPECTED)?;
    let launches = launches(&table)?;
    let (launch, notes) = choose(&launches, wanted)?;
    let time_ns = launch
        .find(&[DURATION, "duration", "gpu__time_duration.avg"], Unit::Seconds)
        .filter(|&seconds| seconds > 0.0)
        .map(|seconds| seconds * 1e9)
        .ok_or_else(|| {
            Error::input(format!("launch {} of the profile has no duration", launch.id)).accepted(format!(
                "a profile with the metric {DURATION}; {}",
                command(DURATION)
            ))
        })?;
    if let (Some(chosen), Some(own)) = (wanted.model, launch.model())
        && (chosen.vendor != own.vendor || *chosen.core.count != *own.core.count)
        && launch.names_its_device()
    {
        return Err(Error::usage(format!(
            "the profile is of the {}, and `--device` names the {}",
            launch.device(),
            chosen.title
        ))
        .accepted("the device that the profile was made on, or no `--device`"));
    }
    Ok(launch.profiled(time_ns, wanted.model, notes))
}

/// The launches of a table, in order.
fn launches(table: &Table) -> Result<Vec<Launch>> {
    let id = table
        .column("ID")
        .ok_or_else(|| Error::bug("a table without its first column"))?;
    let name = table
        .column("Kernel Name")
        .ok_or_else(|| Error::input("no column `Kernel Name`"))?;
    let (metric, unit, value) = (
        table.column("Metric Name"),
        table.column("Metric Unit"),
        table.column("Metric Value"),
    );
    // Compute capabilities and versions look like numbers with a point everywhere.
    let holds_numbers = |column: usize| match value {
        Some(value) => column == value,
        None => table.header[column].contains("__"),
    };
    let cells = table.rows.iter().flat_map(|row| row.iter().enumerate());
    let numbers = cells.filter(|&(column, _)| holds_numbers(column));
    let spelling = Spelling::of(numbers.map(|(_, cell)| cell.as_str()));
    let mut launches: Vec<Launch> = Vec::new();
    let mut units: Vec<String> = vec![String::new(); table.header.len()];
    for row in &table.rows {
        // The row of units has no launch.
        if row[id].is_empty() {
            units.clone_from(row);
            continue;
        }
        let number = row[id].parse().map_err(|_| {
            Error::input(format!(
                "a launch has the number {}",
                crate::suggest::quoted(&row[id])
            ))
            .accepted("whole numbers in the column `ID`")
        })?;
        let known = launches.iter().position(|launch: &Launch| launch.id == number);
        let position = known.unwrap_or_else(|| {
            let cell = |name: &str| table.column(name).map(|column| row[column].as_str());
            launches.push(Launch {
                id: number,
                kernel: row[name].clone(),
                capability: cell("CC").unwrap_or_default().to_owned(),
                groups: cell("Grid Size").and_then(extent),
                group: cell("Block Size")
                    .and_then(extent)
                    .and_then(|items| u32::try_from(items).ok()),
                ..Launch::default()
            });
            launches.len() - 1
        });
        let launch = &mut launches[position];
        match (metric, unit, value) {
            (Some(metric), Some(unit), Some(value)) => {
                launch.add(&row[metric], &row[unit], &row[value], spelling);
                if let Some(rule) = table.column("Rule Description") {
                    launch.read_rule(&row[rule], spelling);
                }
            }
            _ => {
                for ((name, unit), cell) in table.header.iter().zip(&units).zip(row) {
                    launch.add(name, unit, cell, spelling);
                }
            }
        }
    }
    Ok(launches)
}

/// The number of work-items or work-groups in `(128, 1, 1)`, `128` or `128x1x1`.
fn extent(cell: &str) -> Option<u64> {
    let numbers = cell
        .split(|c: char| !c.is_ascii_digit())
        .filter(|part| !part.is_empty());
    let mut product: Option<u64> = None;
    for number in numbers {
        product = Some(product.unwrap_or(1).checked_mul(number.parse().ok()?)?);
    }
    product
}

/// The launch that is wanted, and which one it is; of several the longest.
fn choose<'l>(launches: &'l [Launch], wanted: &Wanted<'_>) -> Result<(&'l Launch, Vec<String>)> {
    if launches.is_empty() {
        return Err(Error::input("the profile has no launch").accepted("a profile of at least one kernel"));
    }
    let is_wanted = |launch: &&Launch| {
        wanted.launch.is_none_or(|id| launch.id == id)
            && wanted
                .kernel
                .is_none_or(|kernel| is_kernel(&launch.kernel, kernel))
    };
    let fitting: Vec<&Launch> = launches.iter().filter(is_wanted).collect();
    let time = |launch: &Launch| launch.find(&[DURATION, "duration"], Unit::Seconds).unwrap_or(0.0);
    let mut longest: Option<&Launch> = None;
    for launch in &fitting {
        if longest.is_none_or(|other| time(launch) > time(other)) {
            longest = Some(launch);
        }
    }
    let Some(launch) = longest else {
        let mut names: Vec<&str> = launches.iter().map(|launch| launch.kernel.as_str()).collect();
        names.dedup();
        names.truncate(8);
        let what = match (wanted.kernel, wanted.launch) {
            (_, Some(id)) => format!("the profile has no launch {id}"),
            (Some(kernel), None) => format!("the profile has no kernel `{kernel}`"),
            (None, None) => "the profile has no launch".to_owned(),
        };
        return Err(Error::usage(what).accepted(format!(
            "its launches are {} to {}, of {}; `FILE.csv#N` takes number N",
            launches.first().map_or(0, |launch| launch.id),
            launches.last().map_or(0, |launch| launch.id),
            names.join(", ")
        )));
    };
    let notes = match fitting.len() {
        1 => Vec::new(),
        count => vec![format!(
            "Launch {} of the profile, the longest of {count} with {}; FILE.csv#N takes another.",
            launch.id,
            duration(time(launch) * 1e9)
        )],
    };
    Ok((launch, notes))
}

/// Whether a profiler's name is that of a kernel: `void gather<4>(const int *, …)` is `gather`, and
/// `kernel_gather_hint_l1` is `gather-hint-l1`.
fn is_kernel(found: &str, wanted: &str) -> bool {
    let found = found.strip_prefix("void ").unwrap_or(found);
    let name = found.split(['(', '<']).next().unwrap_or(found);
    let last = name.rsplit("::").next().unwrap_or(name);
    let spelled = spelled(wanted);
    [name, last].contains(&wanted) || last == spelled || last.strip_prefix("kernel_") == Some(&spelled)
}
