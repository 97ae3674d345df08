//! The laboratory's suites where no GPU is needed: on models, and on a runtime for CPUs in a GPU's place.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use headstart_testing::tools;
use serde_json::Value;

fn lab(arguments: &[&str]) -> Output {
    let runtime = tools::folder().join("opencl/lib/libintelocl.so");
    let mut command = Command::new(env!("CARGO_BIN_EXE_headstart-lab"));
    if runtime.exists() {
        command.env("OPENCL_DYLIB_PATH", runtime);
    }
    command.args(arguments).output().expect("the laboratory starts")
}

fn cases(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).expect("written");
    let record: Value = serde_json::from_str(&text).expect("JSON");
    record["cases"].as_array().expect("cases").clone()
}

#[test]
fn the_timer_s_suite_tells_a_rate() {
    let ran = lab(&[
        "bench",
        "--suite",
        "timer",
        "--device",
        "sim:h200",
        "--case",
        "option-pricing steps=252 groups=132",
    ]);
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(
        ran.status.success() && said.contains("geometric mean "),
        "{ran:?}"
    );
}

#[test]
fn a_corpus_needs_a_gpu() {
    let folder = tempfile::tempdir().expect("a folder");
    let ran = lab(&["corpus", &folder.path().to_string_lossy(), "--device", "sim:h200"]);
    assert_eq!(ran.status.code(), Some(2), "{ran:?}");
    assert!(
        String::from_utf8_lossy(&ran.stderr).contains("is not a GPU"),
        "{ran:?}"
    );
}

/// A measured side and a simulated one are compared; what did not fit the time leaves no half of a case.
#[test]
fn a_case_is_measured_by_opencl_and_simulated() {
    let folder = tempfile::tempdir().expect("a folder");
    let json = folder.path().join("accuracy.json");
    let name = json.to_string_lossy().into_owned();
    let run = |device: &str, case: &str, limit: &str| {
        let ran = lab(&[
            "bench", "--suite", "accuracy", "--device", device, "--case", case, "--limit", limit, "--json",
            &name,
        ]);
        assert!(ran.status.success(), "{ran:?}");
        String::from_utf8_lossy(&ran.stdout).into_owned()
    };
    let said = run("sim:h200", "option-pricing steps=252 groups=132", "600");
    assert!(said.contains("plain "), "{said}");
    assert_eq!(cases(&json).len(), 1);
    assert!(cases(&json)[0]["simulated"]["plain_ns"].as_f64() > Some(0.0));
    if !tools::folder().join("opencl/lib/libintelocl.so").exists() {
        return tools::skip("opencl", "no OpenCL runtime; scripts/tools sets it up");
    }
    let said = run("opencl:0", "triad", "0");
    assert!(said.contains("the time ended"), "{said}");
    assert_eq!(cases(&json).len(), 1, "nothing of a case that was not begun");
    run("opencl:0", "triad", "5");
    for case in cases(&json).iter().filter(|case| !case["measured"].is_null()) {
        assert!(case["measured"]["plain_ns"].as_f64() > Some(0.0), "{case}");
    }
}
