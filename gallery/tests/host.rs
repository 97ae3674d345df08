//! `results/host.md`, made from `results/host-sim-h200.json` and `results/host-h200.json`: what `headstart-lab bench --suite host` wrote
//! on a simulated H200 and on one. `HEADSTART_BLESS=1` makes it anew. And every way's results are right, in one process after the
//! other.

mod pages;

use std::fmt::Write;

use headstart::device::model;
use headstart_gallery::host::{Host, Ran, TECHNIQUES, Taken, Technique};
use pages::{compare, repository};
use serde_json::Value;

/// A way's line.
struct Row {
    way: &'static str,
    simulated: Option<Taken>,
    measured: Option<Taken>,
    /// Why it was not measured.
    reason: Option<String>,
}

impl Row {
    fn new(technique: &Technique, way: &'static str, simulated: &Value, measured: &Value) -> Row {
        let find = |all: &Value| {
            let mut all = all["host"].as_array().cloned().unwrap_or_default().into_iter();
            all.find(|found| found["technique"] == technique.page && found["way"] == way)
        };
        let taken = |found: &Option<Value>| -> Option<Taken> {
            let taken = found.as_ref()?.get("taken")?.clone();
            Some(serde_json::from_value(taken).expect("what was written"))
        };
        let (here, there) = (find(simulated), find(measured));
        let reason = there.as_ref().and_then(|found| found["reason"].as_str());
        assert!(here.is_some(), "{} `{way}` was not simulated", technique.page);
        Row {
            way,
            simulated: taken(&here),
            measured: taken(&there),
            reason: reason.map(str::to_owned),
        }
    }

    /// What is shown: measured where anything was.
    fn time(&self, of_gpu: bool) -> Option<f64> {
        let taken = if of_gpu { &self.measured } else { &self.simulated };
        taken.as_ref()?.time_ns.map(|time| time / 1e3)
    }

    /// What is counted, which is the same everywhere: that of a GPU where it was one.
    fn counted(&self) -> Option<&Taken> {
        self.measured.as_ref().or(self.simulated.as_ref())
    }
}

fn microseconds(time: Option<f64>) -> String {
    time.map_or("–".to_owned(), |time| format!("{time:.1}"))
}

/// The simulated time; marked where it is about that of an earlier way, and a GPU's is not.
fn simulated(row: &Row, earlier: &[Row]) -> String {
    let are_like = |one: &Option<Taken>, other: &Option<Taken>| {
        one.as_ref()
            .zip(other.as_ref())
            .is_some_and(|(one, other)| one.is_like(other))
    };
    let differs = |other: &Row| {
        row.measured.is_some()
            && other.measured.is_some()
            && are_like(&row.simulated, &other.simulated)
            && !are_like(&row.measured, &other.measured)
    };
    let time = microseconds(row.time(false));
    match earlier.iter().any(differs) {
        true => format!("{time}, *not modelled*"),
        false => time,
    }
}

/// What the kernels took; nothing where the simulator knows no time.
fn kernels(taken: &Option<Taken>) -> Option<f64> {
    let taken = taken.as_ref().filter(|taken| taken.time_ns.is_some())?;
    Some(taken.kernels_ns / 1e3)
}

const BEGIN: &str = "# Techniques of the host\n\nThe ratios are those of an H200 where any way ran there; on a GPU the time is the \
                     host's, from the first line of the work to the end of its last command. The simulated clock covers kernels, \
                     transfers, accesses over the link and migrating pages. The host's own work, waiting, submitting, compiling, \
                     allocating and printing, is only in the counts: a way is *not modelled* whose simulated time is within 15 % of \
                     an earlier one's where the measured one is not. On Intel's models a launch costs nothing, either. `headstart-lab bench --suite host --case NAME` on `sim:h200` and `cuda:0`; the programs are in \
                     `gallery/src/host`.\n";

/// The part of a technique.
fn part(technique: &Technique, rows: &[Row]) -> String {
    let of_gpu = rows.iter().any(|row| row.measured.is_some());
    let mut text = pages::heading(technique.page, technique.title, &technique.text);
    let _ = writeln!(
        text,
        "| way | µs, simulated | µs, H200 | against the first | kernels alone, simulated | kernels alone, H200 | MB in | \
         MB out | launches | compiled | buffers |\n|---|---|---|---|---|---|---|---|---|---|---|"
    );
    let first = rows[0].time(of_gpu);
    for (at, row) in rows.iter().enumerate() {
        let against = match (first, row.time(of_gpu)) {
            (Some(first), Some(time)) => format!("{:.2}×", first / time),
            _ => "–".to_owned(),
        };
        let count = |of: fn(&Taken) -> String| row.counted().map_or("–".to_owned(), of);
        let _ = writeln!(
            text,
            "| {} | {} | {} | {against} | {} | {} | {} | {} | {} | {} | {} |",
            row.way,
            simulated(row, &rows[..at]),
            microseconds(row.time(true)),
            microseconds(kernels(&row.simulated)),
            microseconds(kernels(&row.measured)),
            count(|taken| format!("{:.1}", taken.bytes_in as f64 / 1e6)),
            count(|taken| format!("{:.1}", taken.bytes_out as f64 / 1e6)),
            count(|taken| taken.launches.to_string()),
            count(|taken| taken.compiled.to_string()),
            count(|taken| taken.buffers.to_string()),
        );
    }
    for row in rows {
        if let Some(reason) = &row.reason {
            let _ = writeln!(text, "\nNot on the H200: {} ({reason}).", row.way);
        }
    }
    text
}

#[test]
fn the_pages_say_what_was_measured() {
    let simulated = pages::results("host-sim-h200.json");
    let measured = pages::results("host-h200.json");
    let mut text = BEGIN.to_owned();
    for technique in TECHNIQUES {
        let ways = technique.ways.iter();
        let rows: Vec<Row> = ways
            .map(|way| Row::new(technique, way.name, &simulated, &measured))
            .collect();
        text += &part(technique, &rows);
    }
    compare(&repository().join("results/host.md"), &text);
}

/// On a model the same program gives the same numbers every time; the kernels' results were checked by each way itself.
#[test]
fn the_simulators_numbers_are_those_of_the_pages() {
    let simulated = pages::results("host-sim-h200.json");
    // The others take too long for every run.
    for technique in TECHNIQUES.iter().filter(|technique| {
        matches!(
            technique.page,
            "host-compilation" | "host-printing" | "host-contexts"
        )
    }) {
        for way in technique.ways {
            let host = Host::simulated(model::built_in("h200", &[]).expect("a model"));
            let ran =
                (way.run)(&host).unwrap_or_else(|error| panic!("{} {}: {error}", technique.page, way.name));
            assert_eq!(ran, Ran::Measured);
            let row = Row::new(technique, way.name, &simulated, &Value::Null);
            let (found, kept) = (host.taken(), row.simulated.expect("it was measured"));
            let counts = |taken: &Taken| {
                (
                    taken.bytes_in,
                    taken.bytes_out,
                    taken.launches,
                    taken.compiled,
                    taken.buffers,
                )
            };
            assert_eq!(counts(&found), counts(&kept), "{} {}", technique.page, way.name);
            println!("{} {}: {:?} ns", technique.page, way.name, found.time_ns);
        }
    }
}
