//! `results/h200.md` and its figures are made from `results/bench-h200.json`: the measurements of `headstart-lab bench` on an H200,
//! beside CUDA written by hand. `HEADSTART_BLESS=1` makes them anew.

use std::fmt::Write;

use headstart::prefetch::Plan;
use headstart::report::{Best, LaunchSettings, Outcome, Outputs, Report, Trial, Verdict, page};
use serde_json::Value;

use crate::{compare, results_of};

/// The distances of NVIDIA's article.
const DISTANCES: [u32; 5] = [2, 4, 6, 8, 12];

/// The article's strategies, and what its kernels print themselves as.
const STRATEGIES: [(&str, &[&str]); 6] = [
    ("unroll", &["unroll"]),
    ("arr=batched-registers", &["scalar batched"]),
    ("arr=rolling-registers", &["scalar rolling"]),
    ("arr=batched-shared", &["smem batched"]),
    ("arr=rolling-shared", &["smem rolling"]),
    (
        "arr=rolling-async",
        &["smem async", "smem async pad", "smem async T"],
    ),
];

struct Results(Value);

impl Results {
    fn read() -> Results {
        Results(results_of("bench-h200.json"))
    }

    fn text(&self, name: &str) -> &str {
        self.0[name].as_str().unwrap_or("?")
    }

    fn case(&self, name: &str) -> &Value {
        let cases = self.0["cases"].as_array().expect("cases");
        cases
            .iter()
            .find(|case| case["case"] == name)
            .expect("the case was measured")
    }

    /// Plan and milliseconds of each trial, the fastest first.
    fn trials(&self, case: &str) -> Vec<(&str, f64)> {
        let trials = self.case(case)["trials"].as_array().expect("trials");
        let time = |trial: &Value| trial["timing"]["median_ns"].as_f64().expect("a time") * 1e-6;
        trials
            .iter()
            .map(|trial| (trial["plan"].as_str().expect("a plan"), time(trial)))
            .collect()
    }

    fn plain(&self, case: &str) -> f64 {
        self.fastest(case, |plan| plan == "none").1
    }

    fn fastest(&self, case: &str, wanted: impl Fn(&str) -> bool) -> (&str, f64) {
        let trials = self.trials(case).into_iter().filter(|(plan, _)| wanted(plan));
        trials
            .min_by(|a, b| a.1.total_cmp(&b.1))
            .expect("a plan was wanted")
    }

    /// The least time in milliseconds that a program printed in a section, and its name.
    fn peer(&self, file: &str, section: &str, wanted: impl Fn(&str) -> bool) -> (&str, f64) {
        let peers = self.0["peers"].as_array().expect("peers");
        let peer = peers
            .iter()
            .find(|peer| peer["file"] == file)
            .expect("the program ran");
        let times = peer["times"].as_array().expect("times").iter();
        times
            .filter(|time| {
                time["section"]
                    .as_str()
                    .is_some_and(|text| text.contains(section))
            })
            .map(|time| {
                let milliseconds = time["time_ns"].as_f64().expect("a time") * 1e-6;
                (time["name"].as_str().expect("a name"), milliseconds)
            })
            .filter(|(name, _)| wanted(name))
            .min_by(|a, b| a.1.total_cmp(&b.1))
            .expect("it printed such a time")
    }

    fn output(&self, file: &str) -> &str {
        let peers = self.0["peers"].as_array().expect("peers");
        let peer = peers.iter().find(|peer| peer["file"] == file);
        peer.and_then(|peer| peer["output"].as_str()).unwrap_or("")
    }
}

/// The page.
fn document(results: &Results) -> String {
    let mut text = format!(
        "# Measured on an H200\n\n`{}` on an {}, driver {}, {}. Times are medians of seven alternating launches, in \
         milliseconds; every output at full size has the simulator's bits. The hand-written programs, built by \
         `nvcc -O3`, ran in the same run. This page is generated from `results/bench-h200.json`.\n\n",
        results.text("command"),
        results.0["device"]["name"].as_str().unwrap_or("?"),
        results.text("driver"),
        results.text("date"),
    );
    text.push_str(
        "## NVIDIA's article\n\n![Speedup by distance: registers and shared memory](h200-article-1.svg)\n\n\
         ![Speedup by distance: shared memory, padded](h200-article-2.svg)\n\n\
         The same loop, 132 work-groups of 128 work-items, one exponential an element. Ours / by hand, the fastest layout \
         of each:\n\n| strategy |",
    );
    for distance in DISTANCES {
        let _ = write!(text, " {distance} |");
    }
    text.push_str("\n|---|---|---|---|---|---|\n");
    for (strategy, by_hand) in STRATEGIES {
        let _ = write!(text, "| `{}` |", strategy.trim_start_matches("arr="));
        for distance in DISTANCES {
            let exact = format!("{strategy}:{distance}");
            let layouts = format!("{exact}/");
            let ours = results
                .fastest("article", |plan| plan == exact || plan.starts_with(&layouts))
                .1;
            let named = |name: &str| {
                by_hand.iter().any(|form| {
                    name.starts_with(form)
                        && name.replace(' ', "") == format!("{form}P={distance}").replace(' ', "")
                })
            };
            let theirs = results.peer("article.cu", "W=1 blocks=132", named).1;
            let _ = write!(text, " {ours:.3} / {theirs:.3} = {:.2} |", ours / theirs);
        }
        text.push('\n');
    }
    text.push_str("\n## The best plan against the best program\n\n| case | plain, ours / by hand | best plan | ours | best program | by hand | ours / by hand |\n|---|---|---|---|---|---|---|\n");
    let rows = [
        ("article", "article_tuned.cu", "W=1"),
        ("gather", "gather_tuned.cu", "gather W=8 132x128"),
        ("gather, more work", "gather.cu", "W=64 blocks=132"),
        ("gather, full occupancy", "gather.cu", "W=8 blocks=1056"),
        (
            "gather, more work-groups",
            "gather_tuned.cu",
            "gather W=8 528x256",
        ),
    ];
    for (case, file, section) in rows {
        let (plan, ours) = results.fastest(case, |_| true);
        // The first section of the tuned article program has no heading.
        let section = if file == "article_tuned.cu" { "" } else { section };
        let is_base = |name: &str| name.starts_with("base") || name.starts_with("W=1 base");
        let first = |name: &str| !name.starts_with("groups") && !name.starts_with("W=");
        let (name, theirs) = results.peer(file, section, |name| !is_base(name) && first(name));
        let base = results.peer(file, section, is_base).1;
        let _ = writeln!(
            text,
            "| {case} | {:.3} / {base:.3} | `{plan}` | {ours:.3} | {file}, {name} | {theirs:.3} | {:.2} |",
            results.plain(case),
            ours / theirs
        );
    }
    text.push_str(&latency(results));
    text.push_str(&compiling(results));
    let _ = write!(
        text,
        "\n## Costs of hints and loads\n\n`scripts/cuda/hints.cu`: cycles of core time for one instruction \
         of a sub-group, with its lanes on one line or on 32; and cycles of the next load.\n\n```text\n{}\n```\n",
        results.output("hints.cu").trim()
    );
    text
}

/// What hints leave of a load's latency.
fn latency(results: &Results) -> String {
    let cycles = |milliseconds: f64| {
        let clock = results.0["device"]["clock_khz"].as_f64().expect("a clock");
        let steps = 2048.0;
        milliseconds * clock / steps
    };
    let without = cycles(results.plain("latency, no load"));
    let mut text = String::from(
        "\n## Latency left after a hint\n\nThe kernel `latency`, whose loads are hidden by nothing else: cycles per \
         iteration beyond its arithmetic (`stride=0`, where the load leaves the loop):\n\n| plan | cycles |\n|---|---|\n",
    );
    for (plan, time) in results.trials("latency") {
        let _ = writeln!(text, "| `{plan}` | {:.0} |", cycles(time) - without);
    }
    text.push_str(
        "\n`cache:L1:1` comes too late here: ptxas moves the hint, which is a copy, behind the arithmetic of its iteration, \
         so a distance of 2 is the smallest that helps.\n",
    );
    text
}

/// From a kernel to a loaded module.
fn compiling(results: &Results) -> String {
    let mut text = String::from(
        "\n## From a kernel to a loaded module\n\nTime including the driver's compiler, compared with NVRTC and the same compiler \
         (`scripts/cuda/nvrtc.cu`), in milliseconds; in brackets, the share of the driver's compiler.\n\n\
         | kernel | ours | NVRTC | ours / NVRTC |\n|---|---|---|---|\n",
    );
    for kernel in ["article", "gather"] {
        let time = |name: &str| results.case(kernel)[name].as_f64().expect("a time");
        let (ours, driver) = (time("kernel_to_module_ms"), time("ptx_to_module_ms"));
        let by = |what: &str| {
            let name = format!("{kernel} {what} to module");
            results.peer("nvrtc.cu", "NVRTC", |other| other == name).1
        };
        let (theirs, their_driver) = (by("source"), by("its PTX"));
        let _ = writeln!(
            text,
            "| {kernel} | {ours:.1} ({driver:.1}) | {theirs:.1} ({their_driver:.1}) | {:.2} |",
            ours / theirs
        );
    }
    text
}

/// The figure's lines: plans of these strategies and layouts.
fn figure(results: &Results, wanted: impl Fn(&Plan) -> bool, title: &str) -> String {
    let baseline_ns = results.plain("article") * 1e6;
    let trials: Vec<Trial> = results
        .trials("article")
        .into_iter()
        .filter_map(|(text, time)| {
            let plan: Plan = text.parse().expect("a plan");
            let grouped = plan.unroll().is_some() && !plan.loads().is_empty();
            let time_ns = time * 1e6;
            let outcome = Outcome::Ok {
                time_ns,
                speedup: baseline_ns / time_ns,
                outputs: Outputs::Identical,
            };
            (!grouped && wanted(&plan)).then_some(Trial {
                plan,
                outcome,
                takes: None,
                between: None,
            })
        })
        .collect();
    let best = trials.first().expect("trials");
    let (time_ns, speedup) = best.measured().expect("it ran");
    let best = Best {
        plan: best.plan.clone(),
        way: LaunchSettings::default(),
        time_ns,
        speedup,
        between: None,
    };
    let report = Report {
        kernel: "article".into(),
        device: "cuda:0".into(),
        baseline_ns,
        trials,
        best,
        verdict: Verdict::Prefetch,
        ..empty()
    };
    page::drawing(&report, title).expect("plans have distances")
}

fn empty() -> Report {
    let empty = serde_json::json!({
        "kernel": "", "device": "", "baseline_ns": 1.0, "trials": [], "reasons": [], "verdict": "leave it",
        "best": {"plan": "none", "time_ns": 1.0, "speedup": 1.0}
    });
    serde_json::from_value(empty).expect("a report")
}

#[test]
fn the_page_says_what_was_measured() {
    let results = Results::read();
    compare("results/h200.md", &document(&results));
    let of = |text: &str, parts: &[&str]| parts.iter().any(|part| text.contains(part));
    let first = figure(
        &results,
        |plan| {
            let text = plan.to_string();
            plan.loads().is_empty() || of(&text, &["-registers", "/plain"])
        },
        "Speedup of the article's kernel on an H200, slots in shared memory as they come",
    );
    compare("results/h200-article-1.svg", &first);
    let second = figure(
        &results,
        |plan| of(&plan.to_string(), &["/padded", "/interleaved"]),
        "Speedup of the article's kernel on an H200, slots in shared memory padded or interleaved",
    );
    compare("results/h200-article-2.svg", &second);
}
