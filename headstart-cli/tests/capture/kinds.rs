//! Kernels whose launches are of several kinds: each kind is counted, copied and tuned by itself.

use std::fs;
use std::process::Command;

use headstart::capture::{Captured, CapturedProgram};
use headstart::report::{Answer, KindReport, ProgramReport};

use crate::place::{EVEN, Place, ptx, text};

#[test]
fn launches_that_are_unlike_are_counted_and_copied_by_themselves() {
    let ptx = ptx("gather");
    let place = Place::new("kinds", 1);
    let alone = text(&place.alone("kinds", &[&ptx, "3"]).stdout);
    let said = place.done(&["capture", "-o", "cap", "--", "./kinds", &ptx, "3"]);
    assert!(said.starts_with(&alone), "{said}");
    assert!(said.contains("4 kinds of launches"), "{said}");
    let program = CapturedProgram::read(&place.at("cap")).expect("a captured program");
    assert_eq!(program.program[0], "./kinds");
    let [kernel] = &program.kernels[..] else {
        panic!("{program:?}");
    };
    assert_eq!((kernel.name.as_str(), kernel.launches), ("gather", 15));
    assert_eq!(kernel.kinds.len(), 4, "{kernel:?}");
    let shares: f64 = kernel.kinds.iter().map(|kind| kind.share).sum();
    assert!(
        (shares - 1.0).abs() < 1e-6 && (kernel.share - 1.0).abs() < 1e-6,
        "{kernel:?}"
    );
    let mut seen: Vec<(u64, [u32; 3], [u32; 3], &str)> = kernel
        .kinds
        .iter()
        .map(|kind| (kind.launches, kind.groups, kind.group, kind.parameters.as_str()))
        .collect();
    seen.sort();
    assert_eq!(
        seen,
        [
            (3, [1, 1, 1], [128, 1, 1], "a b c 2^4 2^5"),
            (3, [8, 1, 1], [128, 1, 1], "a b b 2^10 2^5"),
            (3, [16, 1, 1], [64, 1, 1], "a b c 2^10 2^5"),
            (6, [8, 1, 1], [128, 1, 1], "a b c 2^10 2^5"),
        ]
    );
    for kind in &kernel.kinds {
        let Some(folder) = &kind.folder else {
            let why = kind.not_captured.as_deref();
            assert!(
                kind.share < 0.01 && why == Some("too small a share of the time"),
                "{kind:?}"
            );
            continue;
        };
        let captured = Captured::read(&place.at("cap").join(folder)).expect("a captured launch");
        assert_eq!((captured.groups, captured.group), (kind.groups, kind.group));
        assert!(kind.is_typical && kind.typical < kind.launches);
    }
    assert!(said.contains("Next: headstart tune cap\n"), "{said}");
}

/// Beyond some kinds launches are counted together, and one of those is copied that take about as long as most.
#[test]
fn launches_of_too_many_kinds_are_copied_too() {
    let ptx = ptx("gather");
    let place = Place::new("kinds", 1);
    place.done(&["capture", "-o", "cap", "--", "./kinds", &ptx, "1", "90"]);
    let program = CapturedProgram::read(&place.at("cap")).expect("a captured program");
    let kinds = &program.kernels[0].kinds;
    assert_eq!(kinds.len(), 32, "{kinds:?}");
    let several = kinds.iter().find(|kind| kind.parameters == "several");
    let several = several.expect("the others");
    // Which of them is typical follows from how long each took, and so from how busy the machine is.
    assert!(
        several.launches > 50 && several.typical < several.launches,
        "{several:?}"
    );
    let folder = several.folder.as_ref();
    let folder = folder.unwrap_or_else(|| panic!("{several:?}"));
    Captured::read(&place.at("cap").join(folder)).expect("a captured launch");
}

/// The largest kind has all the room, the lesser ones share as much.
#[test]
fn lesser_kinds_share_their_room() {
    let ptx = ptx("gather");
    let place = Place::new("kinds", 1);
    // Each launch of a large kind reaches 217,088 or 233,472 bytes.
    let most = ["--max-bytes", "300000", "-o", "cap", "--", "./kinds", &ptx, "3"];
    place.done(&[&["capture"][..], &most].concat());
    let program = CapturedProgram::read(&place.at("cap")).expect("a captured program");
    let kinds = &program.kernels[0].kinds;
    assert!(kinds[0].folder.is_some(), "{kinds:?}");
    let full = "launches of the kernel's lesser kinds together reach more than 300000 bytes of memory";
    let refused = kinds
        .iter()
        .filter(|kind| kind.not_captured.as_deref() == Some(full))
        .count();
    assert!(refused > 0, "{kinds:?}");
    let lesser = kinds[1..].iter().filter(|kind| kind.folder.is_some()).count();
    assert_eq!(lesser, 1, "{kinds:?}");
    let copies = fs::read_dir(place.at("cap")).expect("a folder");
    let copies = copies.filter(|entry| {
        let path = entry.as_ref().expect("an entry").path();
        path.join("launch.toml").is_file()
    });
    assert_eq!(copies.count(), 2, "nothing half written is left");
}

/// Each kind is tuned by itself, within one budget; a launch takes the kernel of its kind, and what remains has its reasons.
#[test]
fn every_kind_that_was_tuned_has_its_kernel_and_the_others_have_reasons() {
    let ptx = ptx("gather");
    let place = Place::new("kinds", 1);
    let program = ["--", "./kinds", &ptx, "20"];
    let alone = text(&place.alone("kinds", &program[2..]).stdout);
    place.done(&["capture", "-o", "cap", "--", "./kinds", &ptx, "2"]);
    let tune = ["--device", "sim:h200", "--plans", "param_0=rolling-registers:4"];
    let outputs = ["--budget", "60", "--json", "cap.json", "--html", "cap.html"];
    let said = place.done(&[&["tune", "cap"][..], &tune, &outputs].concat());
    let json = fs::read_to_string(place.at("cap.json")).expect("a report");
    let report: ProgramReport = serde_json::from_str(&json).expect("JSON");
    assert_eq!(report.kinds.len(), 4, "{json}");
    assert!(report.kinds.is_sorted_by(|one, other| one.share >= other.share));
    let faster: Vec<&KindReport> = report
        .kinds
        .iter()
        .filter(|kind| matches!(kind.answer, Answer::Replaced { .. }))
        .collect();
    assert!(faster.len() > 1 && report.speedup > 1.0, "{said}{json}");
    let page = fs::read_to_string(place.at("cap.html")).expect("a page");
    for kind in &report.kinds {
        if let Some(folder) = &kind.folder {
            assert!(said.contains(folder), "{said}");
        }
        assert!(page.contains(kind.answer.name()), "{}", kind.answer.name());
    }
    assert!(said.contains("Of the time of all kernels"), "{said}");
    assert!(said.contains("Next: headstart exec --with cap"), "{said}");

    let even = place.driver_in_front("even", EVEN);
    let exec = |first: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_headstart"));
        command.args(["exec", "--with", "cap", "--json", "ran.json"]);
        command.args(first).args(program);
        let output = place.behind(&even, command).output().expect("it runs");
        assert_eq!(text(&output.stdout), alone, "{}", text(&output.stderr));
        let json = fs::read_to_string(place.at("ran.json")).expect("a report");
        let report: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        (report, text(&output.stderr))
    };
    let (ran, told) = exec(&["--always"]);
    let kernels = ran["kernels"].as_array().expect("a list");
    assert_eq!(kernels.len(), faster.len(), "{told}");
    let sum = |name: &str| {
        kernels
            .iter()
            .map(|own| own[name].as_u64().expect("a number"))
            .sum::<u64>()
    };
    let of_first = |name: &str| kernels[0][name].as_u64().expect("a number");
    assert_eq!((of_first("launches"), of_first("unknown")), (100, 0), "{ran}");
    let tuned = faster.iter().map(|kind| 10 * kind.launches).sum::<u64>();
    // A kernel may serve launches of other kinds, too.
    assert!(sum("replaced") >= 9 * tuned / 10, "{tuned}: {ran}");
    let all = |ran: &serde_json::Value, sum: u64| {
        let of_first = |name: &str| ran["kernels"][0][name].as_u64().expect("a number");
        sum + of_first("refused") + of_first("compared") + of_first("left")
    };
    assert_eq!(all(&ran, sum("replaced")), 100, "{ran}");

    // Without its own, a kind has the original, and says what it lacks.
    let small = faster.iter().find(|kind| kind.group == [64, 1, 1]);
    let small = small
        .and_then(|kind| kind.folder.clone())
        .expect("a kind of its own");
    fs::remove_file(place.at("cap").join(small).join("tuned.toml")).expect("it is there");
    let (ran, told) = exec(&["--always"]);
    assert_eq!(ran["kernels"][0]["refused"], 20, "{ran}");
    let refusal = &ran["kernels"][0]["refusals"][0];
    assert_eq!(refusal["launches"], 20, "{ran}");
    assert_eq!(refusal["assumed"], "work-groups have 128×1×1 work-items", "{ran}");
    assert_eq!(refusal["found"], "work-groups have 64×1×1", "{ran}");
    let said = "20 launches did not have: work-groups have 128×1×1 work-items; the first of them: work-groups have 64×1×1";
    assert!(told.contains(said), "{told}");

    for kind in &faster {
        let path = place
            .at("cap")
            .join(kind.folder.as_deref().expect("a folder"))
            .join("tuned.toml");
        let Ok(tuned) = fs::read_to_string(&path) else {
            continue;
        };
        let speedup = tuned
            .lines()
            .find(|line| line.starts_with("speedup = "))
            .expect("a gain");
        fs::write(&path, tuned.replace(speedup, "speedup = 1.0001")).expect("written");
    }
    // What saves less than it takes to compile a kernel.
    let (ran, told) = exec(&[]);
    assert!(told.contains("stays as it is"), "{told}");
    assert!(
        told.contains("launches, and compiling it takes about 200 ms"),
        "{told}"
    );
    assert_eq!(ran["kernels"][0]["replaced"], 0, "{ran}");
    assert!(ran["is_observed"].is_null(), "nothing is in its way: {ran}");
}
