//! `results/workloads.md` and its figure, made from `results/workloads-h200.json`: what `headstart-lab bench --suite workloads`
//! measured. `HEADSTART_BLESS=1` makes them anew. Without results the page is made of two made-up cases, and thrown
//! away. Cases that the benchmark has and the results do not are named as not yet measured.

mod pages;

use std::fmt::Write;
use std::fs;

use headstart::report::number;
use headstart_gallery::workloads::cases::{self, Bags, COMBINATIONS, Size};
use pages::{compare, repository};
use serde_json::{Value, json};

/// A case as the page shows it; times in milliseconds.
struct Case<'r> {
    name: &'r str,
    /// Of all buffers.
    bytes: Option<f64>,
    kernel: &'r str,
    geometry: String,
    occupancy: f64,
    plain: f64,
    plan: &'r str,
    best: f64,
    /// Name, time and whether it computes the same, of each program that ran; the fastest first.
    peers: Vec<(&'r str, f64, bool)>,
    /// Bytes a second, at best.
    bandwidth: Option<f64>,
}

impl Case<'_> {
    fn speedup(&self) -> f64 {
        self.plain / self.best
    }

    /// Of those that compute the same.
    fn fastest_peer(&self) -> Option<&(&str, f64, bool)> {
        self.peers.iter().find(|(_, _, same)| *same)
    }

    /// The time of the fastest other program over ours.
    fn ratio(&self) -> Option<f64> {
        Some(self.fastest_peer()?.1 / self.best)
    }

    fn is_control(&self) -> bool {
        self.name.starts_with("control")
    }
}

fn cases(results: &Value) -> Vec<Case<'_>> {
    let all = results["workloads"].as_array().expect("workloads");
    all.iter()
        .filter(|case| case["error"].is_null())
        .map(case)
        .collect()
}

fn case(case: &Value) -> Case<'_> {
    let number = |value: &Value| value.as_f64().expect("a number");
    let trials = case["trials"].as_array().expect("trials");
    let first = trials.iter().find(|trial| trial["status"] == "ok");
    let first = first.expect("the plain kernel ran");
    let time = number(&first["timing"]["median_ns"]);
    // What does not win by 3 % is left alone, as `tune` does.
    let plain = number(&case["plain_ns"]);
    let (plan, best) = match time * 1.03 <= plain {
        true => (first["plan"].as_str().expect("a plan"), time),
        false => ("none", plain),
    };
    let peers = case["peers"].as_array().into_iter().flatten();
    let peers = peers.filter_map(|peer| {
        let same = !peer["outputs"].as_str()?.starts_with("DIFFERENT");
        Some((peer["name"].as_str()?, peer["median_ns"].as_f64()? * 1e-6, same))
    });
    let mut peers: Vec<_> = peers.collect();
    peers.sort_by(|a, b| a.1.total_cmp(&b.1));
    Case {
        name: case["case"].as_str().expect("a name"),
        bytes: case["buffer_bytes"].as_f64(),
        kernel: case["kernel"].as_str().expect("a kernel"),
        geometry: format!("{} × {}", case["groups"], case["group"]),
        occupancy: number(&case["occupancy"]),
        plain: plain * 1e-6,
        plan,
        best: best * 1e-6,
        peers,
        bandwidth: case["moved_bytes"].as_f64().map(|bytes| bytes / best * 1e9),
    }
}

fn geometric_mean(values: impl Iterator<Item = f64>) -> Option<(f64, usize)> {
    let logs: Vec<f64> = values.map(f64::ln).collect();
    (!logs.is_empty()).then(|| ((logs.iter().sum::<f64>() / logs.len() as f64).exp(), logs.len()))
}

fn page(results: &Value) -> String {
    let cases = cases(results);
    let copy = results["copy_bytes_per_s"].as_f64();
    let mut text = format!(
        "# Workloads on an H200\n\n`{}` on an {}, driver {}, {}. Each plain kernel is reported for its fastest geometry, and \
         plans are derived there. Times are medians with L2 flushed before each launch; the other programs ran \
         in the same run, on the same data. A plan that gains less than 3 % is not chosen. This page is generated from \
         `results/workloads-h200.json`, which has every plan and every geometry.\n",
        results["command"].as_str().unwrap_or("?"),
        results["device"]["name"].as_str().unwrap_or("?"),
        results["driver"].as_str().unwrap_or("?"),
        results["date"].as_str().unwrap_or("?"),
    );
    if let Some(note) = results["note"].as_str() {
        let _ = writeln!(text, "\n{note}");
    }
    if let Some(copy) = copy {
        let _ = writeln!(
            text,
            "\nA copy within the GPU's memory reads and writes {:.0} GB/s in total.",
            copy / 1e9
        );
    }
    let _ = writeln!(text, "\n## In short\n");
    let starved = || {
        cases
            .iter()
            .filter(|case| case.occupancy <= 0.25 && !case.is_control())
    };
    if let Some((mean, count)) = geometric_mean(starved().map(Case::speedup)) {
        let _ = writeln!(
            text,
            "- In the {count} cases with at most 25 % occupancy, the chosen plans are {mean:.2}× as fast as the plain kernels \
             (geometric mean)."
        );
    }
    text.push_str(&beside_others(&cases));
    let products: Vec<&Case<'_>> = cases
        .iter()
        .filter(|case| case.name.starts_with("spmv"))
        .collect();
    let ahead = products
        .iter()
        .filter(|case| case.ratio().is_some_and(|ratio| ratio >= 1.0))
        .count();
    let _ = writeln!(
        text,
        "- Sparse products: as fast as cuSPARSE or faster on {ahead} of {} matrices.",
        products.len()
    );
    let told = cases
        .iter()
        .filter(|case| case.is_control() && case.plan != "none")
        .count();
    let _ = writeln!(text, "- Control cases for which a plan is chosen: {told}.");
    let _ = writeln!(
        text,
        "\n![Time of the fastest program over ours](workloads.svg)\n\n## Every case\n\nBytes are those of all \
         buffers. Occupancy is the share of a core's sub-groups that are resident. `peer / ours` is the fastest other program's time \
         divided by ours.\n\n| case | bytes | kernel, work-groups × work-items | occupancy | plain, ms | chosen plan | ms | speedup | other programs, ms | \
         peer / ours | GB/s, share of a copy |\n|---|---|---|---|---|---|---|---|---|---|---|"
    );
    for case in &cases {
        let beside = case.peers.iter().map(|(name, time, same)| {
            let doubt = if *same { "" } else { " (other results!)" };
            format!("{name} {time:.3}{doubt}")
        });
        let beside: Vec<String> = beside.collect();
        let ratio = case.ratio().map_or("–".to_owned(), |ratio| format!("{ratio:.2}"));
        let bandwidth = case.bandwidth.map_or("–".to_owned(), |bandwidth| {
            let share = copy.map_or(String::new(), |copy| {
                format!(", {:.0} %", bandwidth / copy * 100.0)
            });
            format!("{:.0}{share}", bandwidth / 1e9)
        });
        let _ = writeln!(
            text,
            "| {} | {} | {}, {} | {:.0} % | {:.3} | `{}` | {:.3} | {:.2} | {} | {ratio} | {bandwidth} |",
            case.name,
            case.bytes.map_or("–".to_owned(), number::bytes),
            case.kernel,
            case.geometry,
            case.occupancy * 100.0,
            case.plain,
            case.plan,
            case.best,
            case.speedup(),
            if beside.is_empty() {
                "–".to_owned()
            } else {
                beside.join("; ")
            },
        );
    }
    let failed = results["workloads"].as_array().into_iter().flatten();
    for case in failed.filter(|case| !case["error"].is_null()) {
        let _ = writeln!(
            text,
            "\n{} could not be measured: {}",
            case["case"], case["error"]
        );
    }
    text + &not_measured(results)
}

/// The comparison with the fastest other program of each case, and where ours is behind.
fn beside_others(cases: &[Case<'_>]) -> String {
    let compared = || cases.iter().filter_map(|case| Some((case, case.ratio()?)));
    let Some((mean, count)) = geometric_mean(compared().map(|(_, ratio)| ratio)) else {
        return String::new();
    };
    let behind = compared().filter(|(_, ratio)| *ratio < 1.0);
    let mut text = format!(
        "- Compared with the fastest other program: {mean:.2}× over {count} cases, equal or faster in {}.\n",
        count - behind.clone().count()
    );
    if let Some((worst, ratio)) = behind.min_by(|a, b| a.1.total_cmp(&b.1)) {
        let name = worst.fastest_peer().map_or("?", |peer| peer.0);
        let _ = writeln!(
            text,
            "- Where it is slower, it takes {:.2} times as long at worst: {}, beside {name}.",
            1.0 / ratio,
            worst.name
        );
    }
    text
}

/// The cases of the benchmark that the results do not have, by size.
fn not_measured(results: &Value) -> String {
    let measured = |name: &str| {
        let mut all = results["workloads"].as_array().into_iter().flatten();
        all.any(|case| case["case"] == name && case["error"].is_null())
    };
    let left: Vec<cases::Case> = cases::all(Bags::Pairs)
        .into_iter()
        .filter(|case| !measured(&case.name))
        .collect();
    let mut text = String::from(
        "\n## Sizes\n\nEach workload has a small case of at most 16 MB, one of 30 to 80 MB, about the capacity of L2, \
         and one of 2 GB or more. ",
    );
    if left.is_empty() {
        let _ = writeln!(text, "All of them were measured.");
    } else {
        let _ = writeln!(
            text,
            "These {} cases of the benchmark are not yet measured:\n\n| case | bytes |\n|---|---|",
            left.len()
        );
    }
    for case in &left {
        let bytes = case.bytes().expect("in range");
        let _ = writeln!(text, "| {} | {} |", case.name, number::bytes(bytes as f64));
    }
    let mut alone: Vec<(&str, &str)> = Vec::new();
    for case in cases::all(Bags::Pairs) {
        alone.extend(case.alone.map(|why| (case.workload, why)));
    }
    let alone: Vec<String> = alone
        .iter()
        .map(|(workload, why)| format!("{workload} ({why})"))
        .collect();
    let _ = writeln!(text, "\nOf one size only: {}.", alone.join("; "));
    let combinations = || {
        cases::all(Bags::All).into_iter().filter(|case| {
            case.workload == "embedding bag" && case.bytes().is_ok_and(|bytes| Size::of(bytes) == Size::Large)
        })
    };
    let chosen = cases::all(Bags::Pairs);
    let by_default = combinations().filter(|case| chosen.iter().any(|known| known.name == case.name));
    let (by_default, known) = (
        by_default.count(),
        combinations().filter(|case| measured(&case.name)).count(),
    );
    let _ = writeln!(
        text,
        "\nThe embedding bag has {COMBINATIONS} combinations of mode, dimension, element, skew, bags and lengths. The benchmark \
         runs {by_default} of them, a hand-picked set extended to cover all pairs of settings; \
         `--all-bags` runs all. {known} are measured here."
    );
    text
}

/// The time of the fastest program over ours, a bar for each case; the line is where both are the same.
fn figure(results: &Value) -> String {
    let cases = cases(results);
    let bars = cases.iter().filter_map(|case| Some((case.name, case.ratio()?)));
    let bars: Vec<(&str, f64)> = bars.collect();
    let most = bars.iter().map(|bar| bar.1).fold(2.0, f64::max);
    let (height, scale) = (34 + 20 * bars.len(), 380.0 / most);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"900\" height=\"{height}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<title>Time of the fastest program over ours</title>\n\
         <rect width=\"900\" height=\"{height}\" fill=\"white\"/>\n\
         <text x=\"8\" y=\"18\">time of the fastest program beside, over ours; longer is better for us</text>\n\
         <line x1=\"{0:.1}\" x2=\"{0:.1}\" y1=\"26\" y2=\"{height}\" stroke=\"black\"/>\n",
        440.0 + scale
    );
    for (number, (name, ratio)) in bars.iter().enumerate() {
        let y = 30 + 20 * number;
        let _ = writeln!(
            svg,
            "<text x=\"432\" y=\"{}\" text-anchor=\"end\">{name}</text>\n\
             <rect x=\"440\" y=\"{y}\" width=\"{:.1}\" height=\"15\" fill=\"#3b6ea5\"/>\n\
             <text x=\"{:.1}\" y=\"{}\">{ratio:.2}</text>",
            y + 12,
            ratio * scale,
            446.0 + ratio * scale,
            y + 12
        );
    }
    svg + "</svg>\n"
}

/// Two cases that were not measured.
fn made_up() -> Value {
    let trial = |plan: &str, time: f64| json!({"plan": plan, "status": "ok", "timing": {"median_ns": time}});
    let case = |name: &str, occupancy: f64, best: f64, peers: Value| {
        json!({
            "case": name, "kernel": "k", "groups": 10, "group": 64, "occupancy": occupancy, "plain_ns": 2e6,
            "buffer_bytes": 3e9, "moved_bytes": 1e9, "trials": [trial("unroll:8", best), trial("none", 2e6)], "peers": peers,
        })
    };
    let same = |name: &str, time: f64| json!({"name": name, "median_ns": time, "outputs": "same"});
    let wrong = json!({"name": "guess", "median_ns": 1e3, "outputs": "DIFFERENT: all of it"});
    let lost = json!({"program": "torch", "error": "it is not there"});
    json!({
        "copy_bytes_per_s": 4e12,
        "workloads": [
            case("spmv, one", 0.2, 1e6, json!([same("plain", 5e6), same("cuSPARSE", 3e6), wrong])),
            case("control: two", 1.0, 1.99e6, json!([lost])),
            case("attention", 0.1, 1e6, json!([same("split", 25e4)])),
            json!({"case": "three", "error": "no memory"}),
        ],
    })
}

#[test]
fn a_page_says_what_was_chosen_and_what_was_not() {
    let text = page(&made_up());
    for line in [
        "In the 2 cases with at most 25 % occupancy, the chosen plans are 2.00×",
        "- Compared with the fastest other program: 0.87× over 2 cases, equal or faster in 1.\n\
         - Where it is slower, it takes 4.00 times as long at worst: attention, beside split.\n",
        "as fast as cuSPARSE or faster on 1 of 1 matrices",
        "Control cases for which a plan is chosen: 0.",
        "| spmv, one | 3 GB | k, 10 × 64 | 20 % | 2.000 | `unroll:8` | 1.000 | 2.00 | \
         guess 0.001 (other results!); cuSPARSE 3.000; plain 5.000 | 3.00 | 1000, 25 % |",
        "| control: two | 3 GB | k, 10 × 64 | 100 % | 2.000 | `none` | 2.000 | 1.00 | – | – | 500, 12 % |",
        "| spmv, banded, middle | ",
        "| control: triad, large | 3.22 GB |",
        "control: n-body (each body meets every other",
        "0 are measured here.",
        "\"three\" could not be measured: \"no memory\"",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    assert!(figure(&made_up()).contains("spmv, one"));
}

#[test]
fn stated_bytes_are_those_that_were_measured() {
    let Ok(results) = fs::read_to_string(repository().join("results/workloads-h200.json")) else {
        return;
    };
    let results: Value = serde_json::from_str(&results).expect("they are JSON");
    let all = cases::all(Bags::All);
    for case in without_errors(&results) {
        let name = case["case"].as_str().expect("a name");
        let known = all.iter().find(|known| known.name == name);
        let known = known.unwrap_or_else(|| panic!("`{name}` was measured, and is no case any more"));
        let (stated, found) = (
            known.bytes().expect("in range"),
            case["buffer_bytes"].as_u64().expect("bytes"),
        );
        assert!(
            found.abs_diff(stated) * 30 <= found,
            "{name}: {found} bytes, not {stated}"
        );
    }
}

/// The results that are no errors.
fn without_errors(results: &Value) -> impl Iterator<Item = &Value> {
    let all = results["workloads"].as_array().into_iter().flatten();
    all.filter(|case| case["error"].is_null())
}

#[test]
fn the_page_says_what_was_measured() {
    let Ok(results) = fs::read_to_string(repository().join("results/workloads-h200.json")) else {
        return;
    };
    let results: Value = serde_json::from_str(&results).expect("they are JSON");
    for (file, made) in [
        ("workloads.md", page(&results)),
        ("workloads.svg", figure(&results)),
    ] {
        compare(&repository().join("results").join(file), &made);
    }
}
