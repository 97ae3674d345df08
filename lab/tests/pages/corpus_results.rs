//! `results/corpus.md` is made from `results/corpus-h200.json`: what `headstart-lab corpus` measured on an H200.
//! `HEADSTART_BLESS=1` rewrites it.

use std::fmt::Write;

use serde_json::Value;

use crate::{compare, results_of};

/// A number of an object; nothing if it is not there.
fn number(of: &Value, name: &str) -> Option<f64> {
    of[name].as_f64()
}

/// Of a geometry's dimensions.
fn product(extents: &Value) -> u64 {
    let extents = extents.as_array().into_iter().flatten();
    extents.filter_map(Value::as_u64).product()
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or(f64::NAN)
}

fn row(entry: &Value) -> String {
    let found = &entry["found"];
    let tuned = &found["tuned"];
    let micros = |name: &str| number(found, name).map_or("–".to_owned(), |ns| format!("{:.1}", ns / 1e3));
    let (gain, plan) = match (number(tuned, "speedup"), tuned["plan"].as_str()) {
        (Some(speedup), Some(plan)) => (format!("{speedup:.2}"), format!("`{plan}`")),
        _ if tuned["error"]
            .as_str()
            .is_some_and(|error| error.contains("no loop")) =>
        {
            ("–".to_owned(), "no loop that loads".to_owned())
        }
        _ => ("–".to_owned(), "not tuned".to_owned()),
    };
    let word = |name: &str| match found[name].as_str() {
        Some(same @ ("identical" | "equivalent")) => same.to_owned(),
        _ => "**other**".to_owned(),
    };
    format!(
        "| {}:{} | {} × {} | {} | {} | {} | {gain} | {plan} |",
        entry["module"].as_str().unwrap_or_default(),
        entry["entry"].as_str().unwrap_or_default(),
        product(&found["groups"]),
        product(&found["group"]),
        number(found, "occupancy").map_or("–".to_owned(), |share| format!("{:.0} %", share * 100.0)),
        micros("original_ns"),
        word("simulator"),
    )
}

fn page(results: &Value) -> String {
    let text = |name: &str| results[name].as_str().unwrap_or("?");
    let entries = results["entries"].as_array().expect("entries");
    let gain = |entry: &Value| number(&entry["found"]["tuned"], "speedup");
    let gains: Vec<f64> = entries.iter().filter_map(gain).collect();
    // In every geometry that its launch file names: the size of the problem holds it, or what a work-group takes.
    let most = |entry: &Value| {
        number(&entry["found"], "most_occupancy").or_else(|| number(&entry["found"], "occupancy"))
    };
    let is_held = |entry: &&Value| most(entry).is_some_and(|share| share <= 0.25);
    let held: Vec<f64> = entries.iter().filter(is_held).filter_map(gain).collect();
    let least = |numbers: &[f64]| numbers.iter().copied().fold(f64::INFINITY, f64::min);
    let mean = (gains.iter().map(|gain| gain.ln()).sum::<f64>() / gains.len() as f64).exp();
    let mut page = format!(
        "# Kernels of other compilers on an H200\n\n\
         `{}` on an {}, driver {}, {}. This page is generated from `results/corpus-h200.json`.\n\n\
         Each entry of [`corpus/`](../corpus) is run unmodified, compared with the simulator, and tuned with the plans that most often win, in the geometry of its launch file in which the original \
         is fastest.\n\n\
         - {} entries. Times below 10 µs vary by several per cent.\n\
         - {} have a loop that loads from global memory and were tuned: {:.2}× in the median, {:.2}× in the geometric \
         mean, never below {:.2}×. The {} whose occupancy is limited to 25 % by registers, shared memory \
         or the problem size, in every geometry of its launch file: {:.2}× in the median.\n\n\
         | entry | work-groups × work-items | occupancy | time, µs | simulator | gain | plan |\n\
         |---|---|---|---|---|---|---|\n",
        text("command"),
        results["device"]["name"]
            .as_str()
            .unwrap_or_else(|| text("device")),
        text("driver"),
        text("date"),
        entries.len(),
        gains.len(),
        median(gains.clone()),
        mean,
        least(&gains),
        held.len(),
        median(held.clone()),
    );
    for entry in entries {
        let _ = writeln!(page, "{}", row(entry));
    }
    let import = &results["import"];
    if let (Some(bytes), Some(entries), Some(ms)) = (
        number(import, "bytes"),
        number(import, "entries"),
        number(import, "ms"),
    ) {
        let _ = writeln!(
            page,
            "\nReading a module of {:.1} MB with {entries} entries and importing one of them takes {ms:.0} ms on that machine's \
             processor.",
            bytes * 1e-6
        );
    }
    page
}

#[test]
fn the_page_is_up_to_date() {
    compare("results/corpus.md", &page(&results_of("corpus-h200.json")));
}
