//! `headstart kit`: a file that grows within a budget, goes on where it was stopped, and becomes a model.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use headstart::device::model;
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

fn said(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

fn read(path: &str) -> Value {
    serde_json::from_str(&fs::read_to_string(path).expect("written")).expect("JSON")
}

fn rows(kit: &Value) -> usize {
    kit["calibration"]["rows"].as_array().map_or(0, Vec::len)
}

/// On a model as on a device: the model that comes of the file gives its own numbers back.
#[test]
fn a_file_becomes_a_model_and_a_comparison() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let (kit, toml) = (path("kit.json"), path("mine.toml"));
    let wrong = path("wrong.toml");
    let (text, _) = model::text("pvc-1550").expect("a model");
    let slower = text.replace("latency = { value = 61,", "latency = { value = 90,");
    assert_ne!(slower, text);
    fs::write(&wrong, slower).expect("written");
    let measure = |case: &str| {
        headstart(&[
            "kit",
            &wrong,
            "-o",
            &kit,
            "--budget",
            "600",
            "--case",
            case,
            "--case",
            "option-pricing steps=252 groups=132",
        ])
    };
    let first = measure("micro/latency footprint=16384");
    assert!(first.status.success(), "{}", said(&first));
    let before = rows(&read(&kit));
    assert!(before > 0, "{}", said(&first));
    // Existing parts are not repeated, and further requested ones are added.
    let second = measure("micro/shared");
    assert!(second.status.success(), "{}", said(&second));
    assert!(!said(&second).contains("micro/latency"), "{}", said(&second));
    let found = read(&kit);
    assert!(rows(&found) > before);
    assert_eq!(found["format"], "headstart kit 1");
    assert_eq!(found["version"], env!("CARGO_PKG_VERSION"));
    assert!(
        found["facts"]["name"]
            .as_str()
            .is_some_and(|name| name.ends_with("(simulated)"))
    );

    let made = headstart(&["kit", "--from", &kit, "-o", &toml, "--base", "pvc-1550"]);
    assert!(made.status.success(), "{}", said(&made));
    let model = model::find(&toml, &[]).expect("a model");
    let l1 = model.l1.as_ref().expect("it has one");
    assert!((88..=92).contains(&*l1.latency), "{}", *l1.latency);
    assert!(
        said(&made).contains("Fitted numbers, starting from pvc-1550"),
        "{}",
        said(&made)
    );
}

/// A file of another device, or another version, is refused.
#[test]
fn a_file_is_of_one_device() {
    let folder = tempfile::tempdir().expect("a folder");
    let kit = folder.path().join("kit.json").to_string_lossy().into_owned();
    let measure = |device: &str| {
        headstart(&[
            "kit",
            device,
            "-o",
            &kit,
            "--budget",
            "60",
            "--case",
            "micro/launch",
        ])
    };
    let first = measure("sim:pvc-1550");
    assert!(first.status.success(), "{}", said(&first));
    let other = measure("sim:xe-lp");
    assert_eq!(other.status.code(), Some(2));
    assert!(
        said(&other).contains("the file is of another device or driver"),
        "{}",
        said(&other)
    );
    let text = fs::read_to_string(&kit).expect("written");
    fs::write(&kit, text.replace("headstart kit 1", "headstart kit 9")).expect("written");
    let newer = measure("sim:pvc-1550");
    assert!(
        said(&newer).contains("accepted: `headstart kit 1`") || said(&newer).contains("`headstart kit 1`"),
        "{}",
        said(&newer)
    );
    let nothing = headstart(&["kit"]);
    assert_eq!(nothing.status.code(), Some(2));
}

/// The runtime for CPUs takes the place of an owner's GPU: measured, kept, read, and no model without a base, for it is no GPU.
#[test]
fn an_opencl_device_is_measured_within_its_budget() {
    if runtime().is_none() {
        return tools::skip("opencl", "no OpenCL runtime; scripts/tools sets it up");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let kit = path("kit.json");
    let start = std::time::Instant::now();
    let measure = |case: &str, budget: &str| {
        headstart(&["kit", "opencl:0", "-o", &kit, "--budget", budget, "--case", case])
    };
    let first = measure("micro/arithmetic operation=fp", "20");
    assert!(first.status.success(), "{}", said(&first));
    let found = read(&kit);
    let measured = found["calibration"]["rows"].as_array().expect("rows");
    assert!(!measured.is_empty(), "{}", said(&first));
    for row in measured {
        assert!(
            row["measured"]["number"].as_f64().is_some_and(f64::is_finite),
            "{row}"
        );
    }
    assert!(
        found["facts"]["driver"]
            .as_str()
            .is_some_and(|driver| !driver.is_empty())
    );
    assert_eq!(found["facts"]["kind"], "cpu");
    // A case that does not fit the budget leaves no half of it.
    let case = measure("triad", "5");
    assert!(case.status.success(), "{}", said(&case));
    assert!(start.elapsed().as_secs() < 240, "{} s", start.elapsed().as_secs());
    for case in read(&kit)["accuracy"]["cases"].as_array().expect("cases") {
        assert!(
            case["measured"]["plain_ns"]
                .as_f64()
                .is_some_and(|time| time > 0.0),
            "{case}"
        );
    }
    let made = headstart(&["kit", "--from", &kit, "-o", &path("mine.toml")]);
    assert_eq!(made.status.code(), Some(2), "{}", said(&made));
    assert!(said(&made).contains("no model resembles"), "{}", said(&made));
    let made = headstart(&[
        "kit",
        "--from",
        &kit,
        "-o",
        &path("mine.toml"),
        "--base",
        "pvc-1550",
        "--budget",
        "30",
    ]);
    assert!(made.status.success(), "{}", said(&made));
    model::find(&path("mine.toml"), &[]).expect("a model");
}
