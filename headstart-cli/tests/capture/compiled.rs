//! Programs in CUDA C++, compiled by nvcc: captured, run again, tuned, and run with the better kernels in place.

use std::process::Command;

use headstart_testing::tools;

use crate::place::{EVEN, Place, text};

/// Captures a program, runs every captured launch again, tunes it, and runs the program with what came of it.
fn goes_all_the_way(sources: &[&str], arguments: &[&str], kernels: &[&str]) {
    let Some(place) = Place::of_cuda(sources) else {
        return;
    };
    let name = sources[0];
    let path = format!("./{name}");
    let program: Vec<&str> = std::iter::once(path.as_str())
        .chain(arguments.iter().copied())
        .collect();
    let alone = place.alone(name, arguments);
    assert!(alone.status.success(), "{name}: {}", text(&alone.stderr));
    let alone = text(&alone.stdout);
    let run = |first: &[&str]| {
        let all: Vec<&str> = first
            .iter()
            .copied()
            .chain(["--"])
            .chain(program.iter().copied())
            .collect();
        place.headstart(&all)
    };
    let captured = run(&["capture", "-o", "cap", "--kernel", "."]);
    let said = text(&captured.stdout);
    assert!(
        captured.status.success() && said.starts_with(&alone),
        "{name}: {said}{}",
        text(&captured.stderr)
    );
    for kernel in kernels {
        assert!(said.contains(&format!("captured: {kernel}\n")), "{name}: {said}");
        let folder = format!("cap/{kernel}");
        let ran = place.done(&["run", &folder, "--device", "sim:h200", "--plan", "none"]);
        assert!(ran.contains("match the capture"), "{name}: {ran}");
        // Plans of kernels whose work-groups wait need the assembler's word on registers.
        let mut tune = place.in_place(Command::new(env!("CARGO_BIN_EXE_headstart")));
        tune.args(["tune", &folder, "--device", "sim:h200"]);
        tune.args(["--plans", "unroll:2;unroll:4"]);
        if let Some(ptxas) = tools::program("ptxas") {
            tune.env("HEADSTART_PTXAS", ptxas);
        }
        let tuned = tune.output().expect("it runs");
        let has_no_loop = text(&tuned.stderr).contains("has no loop that loads");
        assert!(
            tuned.status.success() || has_no_loop,
            "{name}: {}{}",
            text(&tuned.stdout),
            text(&tuned.stderr)
        );
    }
    let exec = run(&["exec", "--always", "--with", "cap"]);
    let told = text(&exec.stderr);
    assert_eq!(text(&exec.stdout), alone, "{name}: {told}");
    for kernel in kernels
        .iter()
        .filter(|kernel| place.at("cap").join(kernel).join("tuned.toml").is_file())
    {
        assert!(
            told.contains(&format!("headstart: {kernel}: ")) && !told.contains(": 0 of "),
            "{name}: {told}"
        );
    }
}

#[test]
fn a_program_of_the_runtime_goes_all_the_way() {
    goes_all_the_way(&["gather"], &["1024", "64", "6"], &["gather"]);
}

#[test]
fn a_loop_that_is_left_early_goes_all_the_way() {
    let Some(place) = Place::of_cuda(&["until"]) else {
        return;
    };
    let size = ["512", "64", "6", "4096"];
    let program: Vec<&str> = std::iter::once("./until").chain(size).collect();
    let with = |first: &[&'static str], program: &[&str]| {
        let all: Vec<&str> = first
            .iter()
            .copied()
            .chain(["--"])
            .chain(program.iter().copied())
            .collect();
        place.headstart(&all)
    };
    let captured = with(&["capture", "-o", "cap"], &program);
    assert!(captured.status.success(), "{}", text(&captured.stderr));
    let plans = "unroll:4,param_1=rolling-registers:4,param_0=rolling-registers:8";
    let tuned = place.done(&["tune", "cap/until", "--device", "sim:h200", "--plans", plans]);
    assert!(
        tuned.contains("`param_1` leads to 4096 elements of 4 bytes up to the end"),
        "{tuned}"
    );
    let alone = text(&place.alone("until", &size).stdout);
    let exec = with(&["exec", "--always", "--with", "cap"], &program);
    assert_eq!(text(&exec.stdout), alone);
    assert!(
        text(&exec.stderr).contains("until: 5 of 6 launches"),
        "{}",
        text(&exec.stderr)
    );
    // Early loads are guarded by the ends of the captured memory: other sizes take the original.
    let other = ["./until", "512", "48", "6", "4096"];
    let alone = text(&place.alone("until", &other[1..]).stdout);
    let exec = with(&["exec", "--always", "--with", "cap"], &other);
    assert_eq!(text(&exec.stdout), alone);
    let told = text(&exec.stderr);
    assert!(
        told.contains("until: 0 of 6 launches") && told.contains("6 launches did not meet"),
        "{told}"
    );
}

/// Whether the score of a token, a product, is fused with a difference its text leaves to the assembler.
#[test]
fn a_step_of_decoding_goes_all_the_way() {
    goes_all_the_way(&["decode"], &["1", "40", "2"], &["attention"]);
}

#[test]
fn streams_go_all_the_way() {
    goes_all_the_way(&["streams"], &[], &["add", "fill"]);
}

#[test]
fn launches_beside_a_graph_go_all_the_way() {
    goes_all_the_way(&["graph"], &[], &["step"]);
}

/// Each way to give a node of an executable graph its parameters: the tuned kernel runs in it, and only where it is the kernel.
#[test]
fn graphs_that_are_changed_go_all_the_way() {
    let Some(place) = Place::of_cuda(&["replays"]) else {
        return;
    };
    let even = place.driver_in_front("even", EVEN);
    let size = ["16", "32", "6", "1024"];
    let alone = text(&place.alone("replays", &size).stdout);
    let with = |first: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_headstart"));
        command.args(first).args(["--", "./replays"]).args(size);
        let output = place.behind(&even, command).output().expect("it runs");
        assert!(output.status.success(), "{}", text(&output.stderr));
        (text(&output.stdout), text(&output.stderr))
    };
    with(&["capture", "-o", "cap", "--launch", "0"]);
    let plans = ["--plans", "unroll:4"];
    place.done(&[&["tune", "cap/bag", "--device", "sim:h200"][..], &plans].concat());
    let (said, told) = with(&["exec", "--always", "--with", "cap"]);
    assert_eq!(said, alone, "{told}");
    // The third launch of each executable graph is the program's own: one of two nodes, and one of the other's.
    let ran = "headstart: bag: 52 of 55 launches ran the tuned kernel";
    assert!(told.contains(ran), "{told}");
    assert!(told.contains("3 launches in graphs ran the original"), "{told}");
}

#[test]
fn structures_with_pointers_go_all_the_way() {
    goes_all_the_way(&["structs"], &[], &["spmv"]);
}

#[test]
fn structures_that_are_indexed_go_all_the_way() {
    goes_all_the_way(&["taps"], &[], &["passed", "copied"]);
}

#[test]
fn cooperative_launches_go_all_the_way() {
    goes_all_the_way(&["cooperative"], &[], &["both"]);
}

#[test]
fn linked_lists_go_all_the_way() {
    goes_all_the_way(&["list"], &[], &["find"]);
}

#[test]
fn variables_of_a_program_of_the_runtime_go_all_the_way() {
    goes_all_the_way(&["symbols"], &["32", "64", "6", "512"], &["decode_codes"]);
}

#[test]
fn pooled_memory_goes_all_the_way() {
    goes_all_the_way(&["pool"], &[], &["square"]);
}

#[test]
fn templates_go_all_the_way() {
    goes_all_the_way(&["templates"], &[], &["reduce", "reduce-2", "reduce-3"]);
}

#[test]
fn two_kernels_of_one_name_go_all_the_way() {
    goes_all_the_way(&["twins", "twins_other"], &[], &["twin", "twin-2"]);
}

#[test]
fn many_launches_go_all_the_way() {
    goes_all_the_way(&["many"], &["300"], &["advance"]);
}

#[test]
fn threads_go_all_the_way() {
    goes_all_the_way(&["threads"], &[], &["multiply"]);
}

#[test]
fn a_program_that_forks_goes_all_the_way() {
    goes_all_the_way(&["forks"], &[], &["cube"]);
}
