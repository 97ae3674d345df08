//! The pages of `docs/gallery` and their figures, made from `results/techniques-sim-h200.json`: the time of each
//! technique on a simulated H200. `HEADSTART_BLESS=1` makes the pages anew, `HEADSTART_MEASURE=1` the results, too.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use headstart::device::model;
use headstart::prefetch::{self, Target};
use headstart::tune::{Bench, Given, SimulatedBench, Subject};
use headstart_gallery::kernels;
use headstart_gallery::techniques::{FAMILIES, Family};
use serde_json::{Value, json};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn wanted(variable: &str) -> bool {
    std::env::var_os(variable).is_some()
}

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

fn compare(path: &Path, text: &str) {
    if wanted("HEADSTART_BLESS") {
        fs::create_dir_all(path.parent().expect("a folder")).expect("it can be made");
        fs::write(path, text).expect("it can be written");
    }
    assert!(
        fs::read_to_string(path).unwrap_or_default() == text,
        "{} is not what the results say; HEADSTART_BLESS=1 makes it anew",
        path.display()
    );
}

/// The results of a family: label, microseconds, values that are left, command.
fn rows<'r>(results: &'r Value, family: &Family) -> Vec<(String, f64, u64, &'r str)> {
    let all = results["results"].as_array().expect("results");
    let row = |(kernel, settings): &(&str, &[&str])| {
        let found = all
            .iter()
            .find(|found| found["kernel"] == *kernel && found["settings"] == json!(settings))
            .unwrap_or_else(|| panic!("{kernel} was not measured"));
        (
            label(kernel, settings),
            found["time_ns"].as_f64().expect("a time") / 1e3,
            found["values_left"].as_u64().expect("a number"),
            found["command"].as_str().expect("a command"),
        )
    };
    family.kernels.iter().map(row).collect()
}

/// A bar for each technique.
fn figure(family: &Family, rows: &[(String, f64, u64, &str)]) -> String {
    let most = rows.iter().map(|row| row.1).fold(0.0, f64::max);
    let height = 34 + 24 * rows.len();
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"720\" height=\"{height}\" font-family=\"sans-serif\" \
         font-size=\"13\">\n<title>{}, microseconds on a simulated H200</title>\n\
         <rect width=\"720\" height=\"{height}\" fill=\"white\"/>\n<text x=\"8\" y=\"20\">microseconds on a \
         simulated H200; shorter is faster</text>\n",
        family.title
    );
    for (number, (label, time, ..)) in rows.iter().enumerate() {
        let (y, width) = (32 + 24 * number, (time / most * 380.0).max(1.0));
        let _ = writeln!(
            svg,
            "<text x=\"230\" y=\"{}\" text-anchor=\"end\">{label}</text>\n\
             <rect x=\"238\" y=\"{y}\" width=\"{width:.1}\" height=\"18\" fill=\"#3b6ea5\"/>\n\
             <text x=\"{:.1}\" y=\"{}\">{time:.1}</text>",
            y + 14,
            244.0 + width,
            y + 14
        );
    }
    svg + "</svg>\n"
}

/// The page of a family.
fn page(family: &Family, rows: &[(String, f64, u64, &str)]) -> String {
    let mut text = format!("# {}\n\n", family.title);
    for paragraph in family.text {
        let _ = writeln!(text, "{paragraph}\n");
    }
    let _ = writeln!(text, "![{}]({}.svg)\n", family.title, family.page);
    let _ = writeln!(
        text,
        "| kernel | µs | against the first | values left | command |\n|---|---|---|---|---|"
    );
    for (label, time, left, command) in rows {
        let _ = writeln!(
            text,
            "| {label} | {time:.1} | {:.2}× | {left} | `{command}` |",
            rows[0].1 / time
        );
    }
    let _ = writeln!(
        text,
        "\nSimulated on the model of the H200 (`results/techniques-sim-h200.json`, made by the test `techniques` of the \
         gallery); the kernels are in `gallery/src/techniques`."
    );
    text
}

#[test]
fn the_pages_say_what_was_simulated() {
    let path = repository().join("results/techniques-sim-h200.json");
    if wanted("HEADSTART_MEASURE") {
        let text = serde_json::to_string_pretty(&measure()).expect("JSON") + "\n";
        fs::write(&path, text).expect("results can be written");
    }
    let text = fs::read_to_string(&path).expect("the results are there");
    let results: Value = serde_json::from_str(&text).expect("they are JSON");
    let docs = repository().join("docs/gallery");
    for family in FAMILIES {
        let rows = rows(&results, family);
        compare(&docs.join(format!("{}.md", family.page)), &page(family, &rows));
        compare(&docs.join(format!("{}.svg", family.page)), &figure(family, &rows));
    }
    let mut index = "# The gallery's techniques\n\nEach page shows a few kernels that do the same work in different ways, \
                     with their times on a simulated H200.\n\n"
        .to_owned();
    for family in FAMILIES {
        let _ = writeln!(index, "- [{}]({}.md)", family.title, family.page);
    }
    compare(&docs.join("README.md"), &index);
}
