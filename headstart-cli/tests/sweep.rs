//! `headstart sweep` as a user runs it: its numbers are those of `headstart run`, and wrong axes are refused at once.

use std::fs;
use std::process::{Command, Output};

use serde_json::Value;

fn headstart(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_headstart"))
        .args(arguments)
        .output()
        .expect("the command starts")
}

fn json(arguments: &[&str]) -> Value {
    let output = headstart(arguments);
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn points_have_the_times_of_single_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let (csv, html) = (place("sweep.csv"), place("sweep.html"));
    let given = [
        "gather",
        "--set",
        "items=16",
        "--set",
        "groups=16",
        "--device",
        "sim:h200",
        "--json",
        "-",
    ];
    let mut arguments = vec!["sweep"];
    arguments.extend(given);
    arguments.extend(["--plan", "values=rolling-registers:4"]);
    arguments.extend(["--over", "dram.latency=400,900", "--over", "distance=2..4"]);
    arguments.extend(["--csv", &csv, "--html", &html]);
    let swept = json(&arguments);
    let points = swept["points"].as_array().expect("points");
    assert_eq!(points.len(), 4);
    for (point, (latency, distance)) in points.iter().zip([(400, 2), (400, 4), (900, 2), (900, 4)]) {
        let (model, plan) = (
            format!("dram.latency={latency}"),
            format!("values=rolling-registers:{distance}"),
        );
        let run = |plan: &str| {
            let mut arguments = vec!["run"];
            arguments.extend(given);
            arguments.extend(["--model", &model, "--plan", plan]);
            json(&arguments)
        };
        let (tuned, plain) = (run(&plan), run("none"));
        assert_eq!(point["time_ns"], tuned["time_ns"], "{point}");
        assert_eq!(point["plain_ns"], plain["time_ns"], "{point}");
        assert_eq!(point["plan"], tuned["plan"], "{point}");
    }
    let written = |path: &str| fs::read_to_string(path).expect("written");
    assert_eq!(written(&csv).lines().count(), 5);
    assert!(written(&html).contains("dram.latency"));
}

/// 61 cycles were the number of the first, of which a run finds 50: the sweep took the steps that warm the caches for set to none.
#[test]
fn a_microbenchmarks_numbers_are_those_of_single_runs() {
    let given = [
        "micro/latency",
        "--device",
        "sim:pvc-1550-documented",
        "--json",
        "-",
    ];
    let swept = json(&[&["sweep"][..], &given, &["--over", "footprint=16384,2^22"]].concat());
    assert_eq!(swept["unit"], "cycles a load");
    let points = swept["points"].as_array().expect("points");
    assert_eq!(points.len(), 2);
    for (point, footprint) in points.iter().zip(["footprint=16384", "footprint=2^22"]) {
        let run = json(&[&["run"][..], &given, &["--set", footprint]].concat());
        assert_eq!(point["number"], run["number"]["value"], "{point}");
    }
    let number = points[0]["number"].as_f64().expect("a number");
    assert!((49.0..51.0).contains(&number), "{number} cycles a load");
}

/// A longer latency takes longer, and twice as long a step takes about twice as much more, near a limit of the model, too: all points
/// have one sample, and no request holds up those of other cores that come before it. (118, 153, 142 and 202 µs from 900 to 1200.)
#[test]
fn a_curve_over_a_number_of_the_model_is_smooth() {
    let swept = json(&[
        "sweep",
        "gather",
        "--set",
        "items=64",
        "--model",
        "l1.outstanding=64",
        "--device",
        "sim:h200",
        "--plan",
        "values=rolling-async:8",
        "--over",
        "dram.latency=300..1200:10",
        "--json",
        "-",
    ]);
    let points = swept["points"].as_array().expect("points");
    let times: Vec<f64> = points
        .iter()
        .filter_map(|point| point["time_ns"].as_f64())
        .collect();
    assert_eq!(times.len(), 10);
    let step = (times[9] - times[0]) / 9.0;
    for pair in times.windows(2) {
        assert!((0.0..2.0 * step).contains(&(pair[1] - pair[0])), "{times:?}");
    }
}

#[test]
fn without_a_plan_the_plain_kernel_is_timed() {
    let output = headstart(&[
        "sweep",
        "gather",
        "--set",
        "items=16",
        "--device",
        "sim:h200",
        "--over",
        "groups=8,16",
    ]);
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(text.contains("Time by groups"), "{text}");
    // Both fit the device at once, so the second takes no longer.
    assert!(
        text.contains("groups makes less than 3 % of difference from 8 to 16"),
        "{text}"
    );
}

/// The numbers of a file's launch are varied as those of a gallery kernel are.
#[test]
fn a_kernel_from_a_file_is_swept_over_its_launch() {
    let folder = tempfile::tempdir().expect("a folder");
    let launch = folder.path().join("launch.toml");
    let text = "names = [\"indices\", \"values\", \"result\", \"items\"]\ngroups = 4\ngroup = 64\n\
                [parameters.indices]\nlength = 16384\nfill = \"indices\"\nbelow = 65536\n\
                [parameters.values]\nlength = 65536\n[parameters.result]\nlength = 256\nfill = \"zero\"\noutput = \"bits\"\n\
                [parameters.items]\nvalue = 64\n";
    fs::write(&launch, text).expect("written");
    let launch = launch.to_string_lossy();
    let kernel = format!("{}/../corpus/first.ptx:gather", env!("CARGO_MANIFEST_DIR"));
    let sweep = |over: &str| {
        let given = [
            "sweep", &kernel, "--launch", &launch, "--device", "sim:h200", "--over", over, "--json", "-",
        ];
        json(&given)
    };
    let swept = sweep("items=16,64");
    let times: Vec<f64> = (0..2)
        .map(|at| swept["points"][at]["time_ns"].as_f64().expect("a time"))
        .collect();
    assert!(times[1] > 1.5 * times[0], "{times:?}");
    // What a reader needs to run it again.
    assert_eq!(
        swept["parameters"],
        serde_json::json!([["groups", "4"], ["group", "64"]])
    );
    assert_eq!(
        sweep("groups=1,4")["parameters"],
        serde_json::json!([["group", "64"]])
    );
    let refused = headstart(&["sweep", &kernel, "--device", "sim:h200", "--over", "items=16,64"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        String::from_utf8_lossy(&refused.stderr).contains("`--launch FILE.toml`"),
        "{refused:?}"
    );
}

#[test]
fn wrong_axes_are_refused() {
    let sweep = |over: &[&str]| {
        let mut arguments = vec!["sweep", "gather", "--set", "items=16", "--device", "sim:h200"];
        for over in over {
            arguments.extend(["--over", over]);
        }
        let output = headstart(&arguments);
        assert_eq!(output.status.code(), Some(2), "{over:?}: {output:?}");
        String::from_utf8(output.stderr).expect("text")
    };
    for (over, expected) in [
        (
            &["dram.latencies=1,2"][..],
            "the model has no number `latencies` there",
        ),
        (&["itens=1,2"], "did you mean `items`?"),
        (&["strategy=roling-async"], "did you mean `rolling-async`?"),
        (&["distance=0,1"], "distance 0"),
        (&["distance=2..1"], "the range ends before it begins"),
        (&["items=1..9999:9999", "distance=1,2"], "too many points"),
        (&["items=16", "items=32"], "`--over items` is given twice"),
        (&["table=64KiB,1MiB"], "`64KiB` is bytes, and `table` is a number"),
        (&["distance=1KiB"], "`1KiB` is bytes, and `distance` is a number"),
        (&["l1.mshr=1,2"], "here that is `l1.outstanding`"),
        (&["l1.outstanding=8KiB,16KiB"], "8KiB"),
    ] {
        let said = sweep(over);
        assert!(said.contains(expected), "{over:?}: {said}");
    }
}

#[test]
fn a_model_lists_its_numbers() {
    let listed = json(&["devices", "--model", "sim:h200", "--json", "-"]);
    let listed = listed.as_array().expect("numbers");
    let latency = listed.iter().find(|number| number["path"] == "dram.latency");
    assert_eq!(latency.expect("listed")["unit"], "cycles");
    // Numbers are found by the names that others give them.
    let told = listed.iter().filter_map(|number| number["meaning"].as_str());
    let told: String = told.collect::<Vec<_>>().join("\n");
    for name in ["MSHR", "TLB", "SM", "row buffer"] {
        assert!(told.contains(name), "{name}");
    }
    let output = headstart(&["devices", "--model", "h2000"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn devices_are_compared_in_one_sweep() {
    let sweep = |devices| {
        json(&[
            "sweep",
            "gather",
            "--set",
            "items=16",
            "--set",
            "groups=8",
            "--device",
            devices,
            "--plan",
            "values=rolling-registers:4",
            "--over",
            "distance=2,8",
            "--json",
            "-",
        ])
    };
    let both = sweep("sim:h200,sim:a100");
    assert_eq!(both["device"], "sim:h200, sim:a100");
    assert_eq!(both["axes"][0]["name"], "device");
    let points = both["points"].as_array().expect("points");
    assert_eq!(points.len(), 4);
    // Each is what a sweep on that device alone has.
    let alone = sweep("sim:a100");
    for (number, point) in alone["points"].as_array().expect("points").iter().enumerate() {
        assert_eq!(point["time_ns"], points[2 + number]["time_ns"]);
    }
    assert_ne!(points[0]["time_ns"], points[2]["time_ns"]);
}
