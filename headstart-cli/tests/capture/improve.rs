//! A program in one command: captured, tuned, and compared with itself.

use std::fs;

use headstart::capture::CapturedProgram;
use headstart::report::ProgramReport;
use serde_json::Value;

use crate::place::{Place, ptx, text};

#[test]
fn a_program_is_improved_and_kept() {
    let ptx = ptx("gather");
    let place = Place::new("gather", 1);
    let program = ["--", "./gather", &ptx, "1024", "64", "5"];
    let alone = text(&place.alone("gather", &program[2..]).stdout);
    let device = ["--device", "sim:h200", "--plans", "param_0=rolling-registers:4"];
    let options = ["--keep", "cap", "--runs", "2", "--json", "all.json"];
    let said = place.done(&[&["improve"][..], &device, &options, &program].concat());
    // The program's own output comes first, from the run that counts.
    assert!(said.starts_with(&alone), "{said}");
    assert!(said.contains("captured: gather"), "{said}");
    assert!(said.contains("param_0=rolling-registers:4"), "{said}");
    assert!(said.contains("medians of 2 runs in turns"), "{said}");
    assert!(said.contains("Its output is the same in every run."), "{said}");
    assert!(said.contains("headstart exec --with cap -- PROGRAM"), "{said}");
    let json = fs::read_to_string(place.at("all.json")).expect("a report");
    let all: Value = serde_json::from_str(&json).expect("JSON");
    let kernels: ProgramReport = serde_json::from_value(all["kernels"].clone()).expect("a report");
    assert_eq!(kernels.program[0], "./gather");
    assert!(kernels.speedup > 1.0, "{json}");
    let compared = &all["compared"];
    assert_eq!(compared["is_output_same"], true, "{json}");
    assert_eq!(compared["alone_s"].as_array().map(Vec::len), Some(2), "{json}");
    assert_eq!(compared["better_s"].as_array().map(Vec::len), Some(2), "{json}");
    // Five launches may save less than compiling takes, which is said; otherwise they ran it.
    let launches = &compared["launches"]["kernels"][0];
    let is_left_out = launches["left_out"]
        .as_str()
        .is_some_and(|why| why.contains("in 5 launches"));
    assert!(is_left_out || launches["replaced"] == 4, "{json}");
    let kept = CapturedProgram::read(&place.at("cap")).expect("it was kept");
    assert_eq!(kept.kernels.len(), 1);
    assert!(place.at("cap/gather/tuned.toml").is_file());
}

#[test]
fn a_program_without_anything_to_gain_keeps_its_kernels() {
    let ptx = ptx("gather");
    let place = Place::new("gather", 1);
    // One step has nothing that could be fetched ahead.
    let program = ["--", "./gather", &ptx, "64", "1", "2"];
    let device = ["--device", "sim:h200", "--plans", "param_0=rolling-registers:4"];
    let said = place.done(&[&["improve"][..], &device, &program].concat());
    assert!(said.ends_with("The program keeps its kernels.\n"), "{said}");
    let left: Vec<_> = fs::read_dir(place.at("."))
        .expect("a folder")
        .filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()))
        .filter(|name| name.contains("cap"))
        .collect();
    assert!(left.is_empty(), "nothing is left: {left:?}");
}
