//! The simulator's errors by kind of plan, from the records: the intervals of `headstart tune` are made of them.

use headstart::Result;
use headstart::tune::interval::{FROM, Kind, Row};

use super::record::{Record, Side};

/// The shares of cases below an interval, up to its middle and up to its end.
const ENDS: [f64; 3] = [0.05, 0.5, 0.95];

/// With fewer plans a row says nothing.
const LEAST: usize = 30;

/// Speedups of one kind: the simulated one, and those measured.
struct Known {
    kind: Kind,
    simulated: f64,
    /// The least of a round, the middle one and the greatest.
    measured: [f64; 3],
}

/// Every plan of a record that has both sides, and its plain kernels in pairs of cases of one kernel.
fn known(record: &Record) -> Result<Vec<Known>> {
    let is_whole = |side: &&Side| side.error.is_none() && side.plain_ns > 0.0;
    let both = record.cases.iter().filter_map(|case| {
        let measured = case.measured.as_ref().filter(is_whole)?;
        Some((&case.case, measured, case.simulated.as_ref().filter(is_whole)?))
    });
    let both: Vec<_> = both.collect();
    let mut all = Vec::new();
    for (name, measured, simulated) in &both {
        for own in &simulated.plans {
            let Some(found) = measured.plans.iter().find(|found| found.plan == own.plan) else {
                continue;
            };
            let (least, most) = found.between.unwrap_or((found.speedup, found.speedup));
            all.push(Known {
                kind: Kind::of(&own.plan.parse()?),
                simulated: own.speedup,
                measured: [least, found.speedup, most],
            });
        }
        let kernel = |name: &str| name.split(' ').next().map(str::to_owned);
        let others = both
            .iter()
            .filter(|(other, ..)| other != name && kernel(other) == kernel(name));
        all.extend(others.map(|(_, other_measured, other_simulated)| Known {
            kind: Kind::Launch,
            simulated: simulated.plain_ns / other_simulated.plain_ns,
            measured: [measured.plain_ns / other_measured.plain_ns; 3],
        }));
    }
    Ok(all)
}

/// The rows that follow from records.
///
/// # Errors
/// A plan cannot be read.
#[cfg_attr(not(test), expect(dead_code, reason = "the table is made by its test"))]
pub fn rows(records: &[Record]) -> Result<Vec<Row>> {
    let mut all = Vec::new();
    for record in records {
        all.extend(known(record)?);
    }
    let kinds = [
        Kind::Unroll,
        Kind::Registers,
        Kind::Shared,
        Kind::Async,
        Kind::Hint,
        Kind::Launch,
        Kind::Any,
    ];
    let mut rows = Vec::new();
    for kind in kinds {
        let is_of = |own: &&Known| own.kind == kind || kind == Kind::Any && own.kind != Kind::Launch;
        for (number, &from) in FROM.iter().enumerate() {
            let to = FROM.get(number + 1).copied().unwrap_or(f64::INFINITY);
            let there = all
                .iter()
                .filter(is_of)
                .filter(|own| from <= own.simulated && own.simulated < to);
            let (mut at, mut off) = (Vec::new(), Vec::new());
            for own in there {
                at.push(own.simulated);
                off.extend(own.measured.map(|measured| measured / own.simulated));
            }
            if off.len() < 3 * LEAST {
                continue;
            }
            off.sort_by(f64::total_cmp);
            at.sort_by(f64::total_cmp);
            rows.push(Row {
                kind,
                at: at[at.len() / 2],
                off: ENDS.map(|share| off[(share * (off.len() - 1) as f64).round() as usize]),
            });
        }
    }
    Ok(rows)
}

/// In how many of the plans the measured speedup lies in the simulated one's interval, of how many, and how far the interval
/// reaches to either side in the middle case, as a share of the speedup.
///
/// # Errors
/// A plan cannot be read.
#[cfg_attr(not(test), expect(dead_code, reason = "the page is made by its test"))]
pub fn held(record: &Record) -> Result<(usize, usize, f64)> {
    let plans = known(record)?.into_iter().filter(|own| own.kind != Kind::Launch);
    let (mut held, mut widths) = (0, Vec::new());
    for own in plans {
        let (low, high) = own.kind.around(own.simulated, None);
        held += usize::from(low <= own.measured[1] && own.measured[1] <= high);
        widths.push((high - low) / 2.0 / own.simulated);
    }
    Ok((held, widths.len(), super::judge::median(widths)))
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;
    use std::fs;
    use std::path::Path;

    use headstart::tune::interval::errors;

    use super::*;

    fn record(model: &str) -> Record {
        let repository = Path::new(env!("CARGO_MANIFEST_DIR"))
            .parent()
            .expect("the repository");
        Record::open(&repository.join(format!("results/accuracy-{model}.json"))).expect("a record")
    }

    /// `HEADSTART_BLESS=1` makes the table anew.
    #[test]
    fn the_table_of_errors_is_that_of_the_records() {
        let mut text = "//! The simulator's errors on an H200 and an H100. Made from `results/accuracy-*.json` by the test\n\
             //! `the_table_of_errors_is_that_of_the_records` of `headstart-lab`; `HEADSTART_BLESS=1` makes it anew.\n\n\
             use super::{Kind, Row};\n\npub(super) const ROWS: &[Row] = &[\n"
            .to_owned();
        for Row { kind, at, off } in rows(&["h200", "h100"].map(record)).expect("plans") {
            let [low, middle, high] = off;
            writeln!(
                text,
                "    Row::new(Kind::{kind:?}, {at:.2}, [{low:.2}, {middle:.2}, {high:.2}]),"
            )
            .expect("a text");
        }
        text.push_str("];\n");
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/tune/src/tune/search/interval/recorded.rs");
        if std::env::var_os("HEADSTART_BLESS").is_some() {
            fs::write(&path, &text).expect("the table can be written");
        }
        let found = fs::read_to_string(&path).unwrap_or_default();
        assert!(
            found == text,
            "the table is not what the records say; HEADSTART_BLESS=1 makes it anew"
        );
    }

    /// What one GPU's errors say of the other's: nine of ten, more or less.
    #[test]
    fn intervals_hold_on_a_gpu_that_they_were_not_made_on() {
        for (of, on) in [("h200", "h100"), ("h100", "h200")] {
            let rows = rows(&[record(of)]).expect("plans");
            let all = known(&record(on)).expect("plans");
            let is_held = |own: &&Known| {
                let [low, _, high] = errors(&rows, own.kind, own.simulated);
                let off = own.measured[1] / own.simulated;
                low.min(1.0) <= off && off <= high.max(1.0)
            };
            let share = all.iter().filter(is_held).count() as f64 / all.len() as f64;
            assert!(
                (0.85..0.95).contains(&share),
                "those of the {of} hold in {share} of the {on}'s"
            );
        }
    }
}
