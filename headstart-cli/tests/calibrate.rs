//! `headstart calibrate` gives a simulated device its own numbers back, from a model whose numbers are wrong.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use headstart::device::model::{self, DeviceModel};
use headstart_testing::tools;
use serde_json::Value;

fn headstart(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_headstart"));
    if let Some(runtime) = runtime() {
        command.env("OPENCL_DYLIB_PATH", runtime);
    }
    command.args(arguments).output().expect("the command runs")
}

/// Intel's runtime for CPUs, where `scripts/tools` has set it up.
fn runtime() -> Option<PathBuf> {
    let path = tools::folder().join("opencl/lib/libintelocl.so");
    path.exists().then_some(path)
}

fn read(path: &str) -> Value {
    serde_json::from_str(&fs::read_to_string(path).expect("written")).expect("JSON")
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
fn a_run_goes_on_where_another_ended_on_the_same_device() {
    let folder = tempfile::tempdir().expect("a folder");
    let json = folder.path().join("measured.json").to_string_lossy().into_owned();
    let measure = |device: &str, more: &[&str]| {
        let arguments = ["calibrate", "--device", device, "--json", &json];
        headstart(&[&arguments[..], more].concat())
    };
    let rows = || read(&json)["rows"].as_array().map_or(0, Vec::len);
    let first = measure("sim:pvc-1550", &["--case", "micro/latency footprint=16384"]);
    assert!(first.status.success(), "{}", said(&first));
    let before = rows();
    assert!(before > 0, "{}", said(&first));
    let on = [
        "--from",
        &json,
        "--case",
        "micro/shared",
        "--case",
        "micro/latency footprint=16384",
    ];
    let late = measure("sim:pvc-1550", &[&on[..], &["--budget", "0"]].concat());
    assert!(said(&late).contains("The time is over: "), "{}", said(&late));
    let second = measure("sim:pvc-1550", &on);
    assert!(second.status.success(), "{}", said(&second));
    assert!(!said(&second).contains("micro/latency"), "{}", said(&second));
    assert!(rows() > before);
    assert_eq!(read(&json)["version"], env!("CARGO_PKG_VERSION"));

    let other = measure("sim:xe-lp", &on);
    assert_eq!(other.status.code(), Some(2), "{}", said(&other));
    assert!(said(&other).contains("their device is"), "{}", said(&other));
    let text = fs::read_to_string(&json).expect("written");
    let version = format!("\"version\": \"{}\"", env!("CARGO_PKG_VERSION"));
    assert!(text.contains(&version), "{text}");
    fs::write(&json, text.replace(&version, "\"version\": \"9.9.9\"")).expect("written");
    let newer = measure("sim:pvc-1550", &on);
    assert!(
        said(&newer).contains("their version of Headstart is `9.9.9`"),
        "{}",
        said(&newer)
    );
}

/// The runtime for CPUs takes the place of a GPU: measured, read, and no model without a base, for it is no GPU.
#[test]
fn an_opencl_device_is_measured_within_its_budget() {
    if runtime().is_none() {
        return tools::skip("opencl", "no OpenCL runtime; scripts/tools sets it up");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let (json, toml) = (path("measured.json"), path("mine.toml"));
    let start = std::time::Instant::now();
    let measured = headstart(&[
        "calibrate",
        "--device",
        "opencl:0",
        "--json",
        &json,
        "--budget",
        "20",
        "--case",
        "micro/arithmetic operation=fp",
    ]);
    assert!(measured.status.success(), "{}", said(&measured));
    assert!(start.elapsed().as_secs() < 120, "{} s", start.elapsed().as_secs());
    let found = read(&json);
    let rows = found["rows"].as_array().expect("rows");
    assert!(!rows.is_empty(), "{}", said(&measured));
    for row in rows {
        let number = row["measured"]["number"].as_f64();
        assert!(number.is_some_and(f64::is_finite), "{row}");
    }
    assert!(found["driver"].as_str().is_some_and(|driver| !driver.is_empty()));
    assert_eq!(found["facts"]["kind"], "cpu");
    let made = headstart(&["calibrate", "--from", &json, "-o", &toml]);
    assert_eq!(made.status.code(), Some(2), "{}", said(&made));
    assert!(said(&made).contains("no model resembles"), "{}", said(&made));
    let made = headstart(&["calibrate", "--from", &json, "-o", &toml, "--base", "pvc-1550"]);
    assert!(made.status.success(), "{}", said(&made));
    model::find(&toml, &[]).expect("a model");
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
