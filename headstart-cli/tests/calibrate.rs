//! `headstart calibrate` gives a simulated device its own numbers back, from a model whose numbers are wrong.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use headstart::device::model::{self, DeviceModel};

fn headstart(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_headstart"))
        .args(arguments)
        .output()
        .expect("the command runs")
}

fn said(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// The H200's model with these numbers replaced, each in its table.
fn perturbed(numbers: &[(&str, &str, &str)]) -> String {
    let (text, _) = model::text("h200").expect("a built-in model");
    let mut table = String::new();
    let line = |line: &str| {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            name.clone_into(&mut table);
        }
        for (in_table, name, value) in numbers {
            if table == *in_table && line.starts_with(&format!("{name} = ")) {
                let (before, rest) = line.split_once("value = ").expect("a number");
                let after = rest.find([',', ' ']).map_or("", |end| &rest[end..]);
                return format!("{before}value = {value}{after}\n");
            }
        }
        format!("{line}\n")
    };
    text.lines().map(line).collect()
}

#[test]
fn a_model_gets_its_own_numbers_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let wrong = perturbed(&[
        ("instructions.int-multiply", "latency", "6"),
        ("instructions.fp64", "latency", "11"),
        ("instructions.fp64", "rate", "40"),
        ("shared", "latency", "30"),
        ("shared", "conflict-latency", "3"),
        ("l1", "latency", "45"),
        ("l2", "near-latency", "220"),
        ("dram", "latency", "700"),
        ("instructions.prefetch", "rate", "12"),
    ]);
    fs::write(path("wrong.toml"), wrong).expect("written");
    let mut arguments = vec!["calibrate", "--device", "sim:h200", "--compare"];
    let (base, output, json) = (path("wrong.toml"), path("mine.toml"), path("micro.json"));
    arguments.extend(["--base", &base, "-o", &output, "--json", &json]);
    for case in [
        "operation=multiply",
        "operation=fp64",
        "stride=1",
        "stride=32",
        "footprint=16384",
        "footprint=2^20",
        "footprint=2^30 order=random",
        "hints apart=1",
    ] {
        arguments.extend(["--case", case]);
    }
    let ran = headstart(&arguments);
    assert!(ran.status.success(), "{}", said(&ran));
    // Only what a changed number follows from is compared, of all that was measured.
    let rows = said(&ran)
        .lines()
        .filter(|line| line.ends_with(" used for fitting"))
        .count();
    assert!(rows > 5, "{rows}: {}", said(&ran));
    let others = said(&ran)
        .lines()
        .filter(|line| line.contains(" %") && !line.ends_with("used for fitting"))
        .count();
    assert!(others <= 1, "{}", said(&ran));
    let found = model::read(Path::new(&output), &[]).expect("a model");
    let right = model::built_in("h200", &[]).expect("a built-in model");
    let numbers = |model: &DeviceModel| {
        [
            f64::from(*model.instructions.int_multiply.latency),
            f64::from(*model.instructions.fp64.latency),
            *model.instructions.fp64.rate,
            f64::from(*model.shared.latency),
            f64::from(*model.shared.conflict_latency),
            model.l1.as_ref().map_or(0.0, |l1| f64::from(*l1.latency)),
            f64::from(*model.l2.near_latency),
            f64::from(*model.dram.latency),
            *model.instructions.prefetch.rate,
        ]
    };
    for (found, right) in numbers(&found).into_iter().zip(numbers(&right)) {
        assert!(
            (found / right - 1.0).abs() < 0.02,
            "{found} instead of {right}: {}",
            said(&ran)
        );
    }
    assert_eq!((found.name.as_str(), &found.title), ("mine", &right.title));
    assert!(
        found
            .dram
            .latency
            .source()
            .contains("micro/latency footprint=2^30"),
        "{}",
        found.dram.latency.source()
    );

    // What was measured can be compared later, with any model; and the new model is a device.
    let compared = headstart(&["calibrate", "--from", &json, "--base", "a100", "--compare"]);
    assert!(
        compared.status.success() && said(&compared).contains("median error"),
        "{}",
        said(&compared)
    );
    let ran = headstart(&[
        "run",
        "micro/shared",
        "--device",
        &output,
        "--model",
        "shared.latency=100",
    ]);
    // That of the memory alone: the address and the jumps are the microbenchmark's own.
    assert!(
        said(&ran).contains("number    100 cycles a load, beside "),
        "{}",
        said(&ran)
    );
}

#[test]
fn mistakes_are_named() {
    for (arguments, expected) in [
        (
            &["calibrate", "--device", "sim:h200", "--case", "no-such"][..],
            "no microbenchmark's name or settings contain that",
        ),
        (
            &["calibrate", "--from", "/nowhere.json"],
            "these measurements cannot be read",
        ),
        (
            &[
                "calibrate",
                "--device",
                "sim:h200",
                "--base",
                "h2000",
                "--compare",
                "--case",
                "operation=fp32",
            ],
            "did you mean `h200`?",
        ),
        (
            &[
                "calibrate",
                "--device",
                "sim:h200",
                "--model",
                "dram.latency=fast",
            ],
            "`fast` is not a number",
        ),
        (
            &["run", "micro/latncy", "--device", "sim:h200"],
            "did you mean `micro/latency`?",
        ),
        (
            &["run", "micro/latency", "--device", "sim:h200", "--set", "steps=0"],
            "`steps` are 0",
        ),
        (
            &[
                "run",
                "micro/latency",
                "--device",
                "cuda:0",
                "--model",
                "l1.latency=3",
            ],
            "changes a model",
        ),
    ] {
        let ran = headstart(arguments);
        assert!(
            !ran.status.success() && said(&ran).contains(expected),
            "{arguments:?}: {}",
            said(&ran)
        );
    }
}
