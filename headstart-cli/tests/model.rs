//! A changed number of a model shows in every output.

use std::fs;
use std::process::Command;

#[test]
fn a_changed_number_stands_in_every_output() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let (json, html, log) = (place("m.json"), place("m.html"), place("m.jsonl"));
    let tune = |model: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_headstart"))
            .args([
                "tune", "gather", "--set", "items=16", "--plans", "unroll:2", "--device", "sim:h200",
            ])
            .args(["--json", &json, "--html", &html, "--log", &log])
            .args(model)
            .output()
            .expect("it runs");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("text")
    };
    let text = tune(&["--model", "dram.latency=900", "--model", "l2.ways=8"]);
    let changed = ["dram.latency=900", "l2.ways=8"];
    let written = |path: &str| fs::read_to_string(path).expect("written");
    for (name, output) in [
        ("text", text),
        ("JSON", written(&json)),
        ("page", written(&html)),
        ("log", written(&log)),
    ] {
        for number in changed {
            assert!(output.contains(number), "no {number} in the {name}:\n{output}");
        }
        assert!(!output.contains("model of the NVIDIA H200:"), "{name}");
    }
    // The device as it is has another key.
    tune(&[]);
    let keys: Vec<String> = written(&log)
        .lines()
        .map(|line| line.split("\",\"plan\"").next().unwrap_or_default().to_owned())
        .collect();
    assert!(
        keys.iter().any(|key| key.contains("dram.latency=900")),
        "{keys:?}"
    );
    assert!(keys.iter().any(|key| !key.contains("dram.latency")), "{keys:?}");
}

#[test]
fn what_is_said_of_a_device_alone_names_it_too() {
    let said = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_headstart"))
            .args(arguments)
            .args(["--model", "registers.pooled.per-core=32768"])
            .output()
            .expect("it runs");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("text")
    };
    let named = "NVIDIA H200 with registers.pooled.per-core=32768";
    let occupancy = said(&[
        "occupancy",
        "--group",
        "128",
        "--registers",
        "64",
        "--device",
        "sim:h200",
    ]);
    assert!(
        occupancy.starts_with(&format!("On a model of the {named}:\n")),
        "{occupancy}"
    );
    let json = said(&[
        "occupancy",
        "--group",
        "128",
        "--device",
        "sim:h200",
        "--json",
        "-",
    ]);
    assert!(
        json.contains("sim:h200 --model registers.pooled.per-core=32768"),
        "{json}"
    );
    let listing = said(&["emit", "gather", "--target", "machine", "--device", "sim:h200"]);
    assert!(
        listing.starts_with(&format!("// For a model of the {named}.\n")),
        "{listing}"
    );
}
