//! The pages of `docs/gallery` and their figures, made from `results/techniques-sim-h200.json`: the time of each
//! technique on a simulated H200; and from `results/techniques-h200.json`, what `headstart bench --suite techniques`
//! wrote on one, where it is there. `HEADSTART_BLESS=1` makes the pages anew, `HEADSTART_MEASURE=1` the results, too.

mod pages;

use std::fmt::Write;
use std::fs;
use std::sync::Arc;

use headstart::device::model;
use headstart::prefetch::{self, Target};
use headstart::tune::{Bench, Given, SimulatedBench, Subject};
use headstart_gallery::host::TECHNIQUES;
use headstart_gallery::kernels;
use headstart_gallery::techniques::{FAMILIES, Family};
use pages::{compare, repository, wanted};
use serde_json::{Value, json};

/// A kernel with the settings that its page shows.
fn label(kernel: &str, settings: &[&str]) -> String {
    let shown = settings.iter().filter(|setting| !setting.starts_with("groups="));
    let shown: Vec<&str> = shown
        .filter(|setting| **setting != "group=256")
        .copied()
        .collect();
    match shown.is_empty() {
        true => kernel.to_owned(),
        false => format!("{kernel} {}", shown.join(" ")),
    }
}

/// Times every technique on the simulator.
fn measure() -> Value {
    let bench = SimulatedBench::new(model::built_in("h200", &[]).expect("a model"));
    let mut results = Vec::new();
    for (kernel, settings) in FAMILIES.iter().flat_map(|family| family.kernels) {
        let texts: Vec<String> = settings.iter().map(ToString::to_string).collect();
        let chosen = kernels::find(kernel).and_then(|kernel| kernel.with(&texts, None));
        let chosen = chosen.expect("settings");
        let workload = chosen.workload().expect("a workload");
        let target = Target {
            group_size: Some(workload.group),
            ..bench.target()
        };
        let plain = Arc::new(prefetch::carry_out_wishes(&workload.kernel, &target).expect("wishes"));
        let bound = workload.bind(bench.device()).expect("it fits");
        let time = bench
            .time(&bound, &plain)
            .unwrap_or_else(|error| panic!("{kernel}: {error}"));
        let left: u64 = workload
            .given
            .iter()
            .map(|given| match given {
                Given::Output { length, .. } => *length,
                _ => 0,
            })
            .sum();
        let command: Vec<String> = settings
            .iter()
            .map(|setting| format!("--set {setting}"))
            .collect();
        results.push(json!({
            "kernel": kernel,
            "settings": settings,
            "groups": workload.groups[0],
            "group": workload.group[0],
            "time_ns": time.time_ns,
            "values_left": left,
            "command": format!("headstart run {kernel} --device sim:h200 {}", command.join(" ")),
        }));
        println!("{} {:.1} µs", label(kernel, settings), time.time_ns / 1e3);
    }
    json!({"device": "sim:h200", "results": results})
}

/// A technique's line: times in microseconds.
struct Row<'r> {
    label: String,
    simulated: f64,
    measured: Option<f64>,
    left: u64,
    command: &'r str,
}

impl Row<'_> {
    /// What is shown: measured where it was.
    fn time(&self) -> f64 {
        self.measured.unwrap_or(self.simulated)
    }
}

/// The results of a family.
fn rows<'r>(results: &'r Value, measured: &Value, family: &Family) -> Vec<Row<'r>> {
    let of = |all: &'r Value, kernel: &str, settings: &[&str]| {
        let mut all = all.as_array().into_iter().flatten();
        all.find(|found| found["kernel"] == kernel && found["settings"] == json!(settings))
    };
    let on_gpu = |kernel: &str, settings: &[&str]| {
        let mut all = measured["techniques"].as_array().into_iter().flatten();
        let found = all.find(|found| found["kernel"] == kernel && found["settings"] == json!(settings))?;
        Some(found["time_ns"].as_f64()? / 1e3)
    };
    let row = |(kernel, settings): &(&str, &[&str])| {
        let found = of(&results["results"], kernel, settings);
        let found = found.unwrap_or_else(|| panic!("{kernel} was not simulated"));
        Row {
            label: label(kernel, settings),
            simulated: found["time_ns"].as_f64().expect("a time") / 1e3,
            measured: on_gpu(kernel, settings),
            left: found["values_left"].as_u64().expect("a number"),
            command: found["command"].as_str().expect("a command"),
        }
    };
    family.kernels.iter().map(row).collect()
}

/// A bar for each technique.
fn figure(family: &Family, rows: &[Row<'_>]) -> String {
    let bars: Vec<(String, f64)> = rows.iter().map(|row| (row.label.clone(), row.time())).collect();
    pages::bars(family.title, device(rows), &bars)
}

/// Where the times come from: a GPU only if all of them do.
fn device(rows: &[Row<'_>]) -> &'static str {
    match rows.iter().all(|row| row.measured.is_some()) {
        true => "an H200",
        false => "a simulated H200",
    }
}

/// The page of a family.
fn page(family: &Family, rows: &[Row<'_>]) -> String {
    let mut text = format!("# {}\n\n", family.title);
    for paragraph in family.text {
        let _ = writeln!(text, "{paragraph}\n");
    }
    let _ = writeln!(text, "![{}]({}.svg)\n", family.title, family.page);
    let _ = writeln!(
        text,
        "| kernel | µs, simulated | µs, H200 | against the first | values left | command |\n|---|---|---|---|---|---|"
    );
    for row in rows {
        let measured = row.measured.map_or("–".to_owned(), |time| format!("{time:.1}"));
        let _ = writeln!(
            text,
            "| {} | {:.1} | {measured} | {:.2}× | {} | `{}` |",
            row.label,
            row.simulated,
            rows[0].time() / row.time(),
            row.left,
            row.command
        );
    }
    let _ = writeln!(
        text,
        "\nThe figure and the ratios are those of {}. Simulated: `results/techniques-sim-h200.json`, made by the test \
         `techniques` of the gallery. The kernels are in `gallery/src/techniques`.",
        device(rows)
    );
    if matches!(family.page, "reductions" | "atomics") {
        let _ = writeln!(
            text,
            "\nThe simulator times some of the cores, and atomic operations of different cores on one address do not \
             wait for each other there: for those its times are too short."
        );
    }
    text
}

#[test]
fn the_pages_say_what_was_simulated() {
    let path = repository().join("results/techniques-sim-h200.json");
    if wanted("HEADSTART_MEASURE") {
        let text = serde_json::to_string_pretty(&measure()).expect("JSON") + "\n";
        fs::write(&path, text).expect("results can be written");
    }
    let results = pages::results("techniques-sim-h200.json");
    let measured = pages::results("techniques-h200.json");
    let docs = repository().join("docs/gallery");
    for family in FAMILIES {
        let rows = rows(&results, &measured, family);
        compare(&docs.join(format!("{}.md", family.page)), &page(family, &rows));
        compare(&docs.join(format!("{}.svg", family.page)), &figure(family, &rows));
    }
    let mut index = "# The gallery's techniques\n\nEach page shows a few kernels that do the same work in different ways, \
                     with their times.\n\n"
        .to_owned();
    for family in FAMILIES {
        let _ = writeln!(index, "- [{}]({}.md)", family.title, family.page);
    }
    index.push_str("\nAnd what the host does, each in several ways.\n\n");
    for technique in TECHNIQUES {
        let _ = writeln!(index, "- [{}]({}.md)", technique.title, technique.page);
    }
    compare(&docs.join("README.md"), &index);
}
