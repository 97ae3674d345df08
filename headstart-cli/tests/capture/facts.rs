//! Launches that meet what a better kernel assumes, and launches that do not.

use std::fs;
use std::process::Command;

use headstart_testing::{ptxas::Ptxas, tools};

use crate::place::{EVEN, Place, ptx, text};

#[test]
fn memory_that_shares_an_allocation_is_apart_from_nothing() {
    let ptx = ptx("gather");
    let place = Place::new("gather", 0);
    let program = ["./gather", &ptx, "1024", "64", "5", "shared"];
    let alone = text(&place.alone("gather", &program[1..]).stdout);
    let mut all = vec!["capture", "-o", "cap", "--"];
    all.extend(program);
    place.done(&all);
    let ran = place.done(&["run", "cap/gather", "--device", "sim:h200", "--plan", "none"]);
    assert!(ran.contains("match the capture"), "{ran}");
    let manifest = fs::read_to_string(place.at("cap/gather/launch.toml")).expect("a manifest");
    assert_eq!(manifest.matches("[[memory]]").count(), 1, "{manifest}");
    place.done(&[
        "tune",
        "cap/gather",
        "--device",
        "sim:h200",
        "--plans",
        "unroll:4",
    ]);
    let mut all = vec!["exec", "--always", "--with", "cap", "--"];
    all.extend(program);
    let exec = place.headstart(&all);
    assert_eq!(text(&exec.stdout), alone, "{}", text(&exec.stderr));
}

/// Arrays of a pool: which bytes the kernel reaches is computed for each launch from its numbers. Early loads read what was there
/// before, so that a launch with a byte too many in common would leave other sums.
#[test]
fn arrays_of_one_pool_are_apart_where_the_launch_says_so() {
    let ptx = ptx("pooled");
    let place = Place::new("pooled", 1);
    place.done(&[
        "capture", "-o", "cap", "--launch", "0", "--", "./pooled", &ptx, "1", "2", "apart",
    ]);
    let ran = place.done(&["run", "cap/pooled", "--device", "sim:h200", "--plan", "none"]);
    assert!(ran.contains("match the capture"), "{ran}");
    let plans = ["--plans", "param_0=rolling-registers:4"];
    let tuned = place.done(&[&["tune", "cap/pooled", "--device", "sim:h200"][..], &plans].concat());
    assert!(
        tuned.contains("`param_0` and `param_1` reach different bytes"),
        "{tuned}"
    );
    let even = place.driver_in_front("even", EVEN);
    let mut shared = 0;
    let seed: u32 = std::env::var("HEADSTART_SEED").map_or(1, |seed| seed.parse().expect("a number"));
    // Seeds of the commit have nine digits.
    let first = 8 * (seed % 10_000);
    for seed in first..first + 8 {
        let launches = 40;
        let program = ["./pooled", &ptx, &seed.to_string(), &launches.to_string()];
        let alone = text(&place.alone("pooled", &program[1..]).stdout);
        let sharing: u32 = alone
            .split_whitespace()
            .nth(1)
            .and_then(|word| word.parse().ok())
            .unwrap_or_else(|| panic!("{alone}"));
        let mut command = Command::new(env!("CARGO_BIN_EXE_headstart"));
        command
            .args(["exec", "--always", "--with", "cap", "--"])
            .args(program);
        let exec = place.behind(&even, command).output().expect("it runs");
        let told = text(&exec.stderr);
        assert_eq!(text(&exec.stdout), alone, "seed {seed}: {told}");
        // All the others meet them; the third of these is the original.
        let said = format!("headstart: pooled: {sharing} launches did not meet");
        assert!(told.contains(&said), "seed {seed}: {alone}{told}");
        let met: u32 = launches - sharing;
        let taken = met - u32::from(met > 2);
        let said = format!("headstart: pooled: {taken} of {launches} launches ran the tuned kernel");
        assert!(told.contains(&said), "seed {seed}: {alone}{told}");
        shared += sharing;
    }
    assert!(shared > 80, "{shared}");
}

/// Where work-groups wait for each other, the better kernel runs only where as many of them are resident.
#[test]
fn the_better_kernel_leaves_as_many_work_groups_resident_where_that_is_a_fact() {
    let ptx = ptx("pooled");
    let place = Place::new("pooled", 1);
    let program = ["./pooled", &ptx, "1", "40", "apart"];
    place.done(&[
        "capture", "-o", "cap", "--launch", "0", "--", "./pooled", &ptx, "1", "2", "apart",
    ]);
    let plans = ["--plans", "param_0=rolling-registers:4"];
    place.done(&[&["tune", "cap/pooled", "--device", "sim:h200"][..], &plans].concat());
    let alone = text(&place.alone("pooled", &program[1..]).stdout);
    let even = place.driver_in_front("even", EVEN);
    let replaced = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_headstart"));
        command
            .args(["exec", "--always", "--with", "cap", "--"])
            .args(program);
        let exec = place.behind(&even, command).output().expect("it runs");
        let told = text(&exec.stderr);
        assert_eq!(text(&exec.stdout), alone, "{told}");
        let behind = told.split("headstart: pooled: ").nth(1);
        let count = behind.and_then(|words| words.split_whitespace().next()?.parse::<u32>().ok());
        count.unwrap_or_else(|| panic!("{told}"))
    };
    let without = replaced();
    assert!(without > 0);
    let (facts, module) = (
        place.at("cap/pooled/tuned.toml"),
        place.at("cap/pooled/tuned.ptx"),
    );
    let tuned = fs::read_to_string(&facts).expect("the facts");
    let waiting = tuned.replace("facts = [\n", "facts = [\n  \"resident\",\n");
    assert_ne!(tuned, waiting, "{tuned}");
    fs::write(&facts, waiting).expect("written");
    let _ = fs::remove_file(place.at("cap/pooled/tuned.cubin"));
    // The program's own kernel leaves as many resident; with an array in shared memory it computes the same, and leaves fewer.
    let own = fs::read_to_string(&ptx).expect("the program's module");
    fs::write(&module, &own).expect("written");
    assert_eq!(replaced(), without, "as many are resident");
    let (head, body) = own.split_once("\n{\n").expect("an entry");
    let large = format!(
        "{head}\n{{\n.shared .align 4 .b8 large[40000];\n.reg .b32 %large;\nmov.u32 %large, 0;\n\
         st.shared.u32 [large], %large;\n{body}"
    );
    fs::write(&module, large).expect("written");
    assert_eq!(replaced(), 0, "fewer are resident");
    // Without a wait, that is only a matter of time.
    fs::write(&facts, tuned).expect("written");
    assert_eq!(replaced(), without);
}

/// Nodes meet the facts or do not, each for itself, whatever changes them.
#[test]
fn nodes_of_graphs_take_the_better_kernel_where_they_meet_its_facts() {
    let ptx = ptx("pooled");
    let place = Place::new("graphs", 1);
    let even = place.driver_in_front("even", EVEN);
    let in_program = |first: &[&str], launches: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_headstart"));
        command.args(first).args(["--", "./graphs", &ptx, launches]);
        let output = place.behind(&even, command).output().expect("it runs");
        assert!(output.status.success(), "{}", text(&output.stderr));
        (text(&output.stdout), text(&output.stderr))
    };
    in_program(&["capture", "-o", "cap", "--launch", "0"], "1");
    let plans = ["--plans", "param_0=rolling-registers:4"];
    place.done(&[&["tune", "cap/pooled", "--device", "sim:h200"][..], &plans].concat());
    // Of the launches of each executable graph the third is the program's own, and of long ones the 67th.
    for (launches, replaced, of) in [("1", 7, 13), ("8", 62, 97), ("20", 157, 241)] {
        let alone = text(&place.alone("graphs", &[&ptx, launches]).stdout);
        let (said, told) = in_program(&["exec", "--always", "--with", "cap"], launches);
        assert_eq!(said, alone, "{launches}: {told}");
        let ran = format!("headstart: pooled: {replaced} of {of} launches ran the tuned kernel");
        assert!(told.contains(&ran), "{launches}: {told}");
        let original = format!("{} launches in graphs ran the original", of - replaced);
        assert!(told.contains(&original), "{launches}: {told}");
    }
}

#[test]
fn variables_are_the_programs_own_in_the_better_kernel() {
    let ptx = ptx("variables");
    let place = Place::new("variables", 2);
    let program = ["./variables", &ptx, "1024", "64", "12"];
    let alone = text(&place.alone("variables", &program[1..]).stdout);
    assert!(alone.ends_with(", 12 launches\n"), "{alone}");
    let even = place.driver_in_front("even", EVEN);
    let in_program = |first: &[&str], program: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_headstart"));
        command.args(first).arg("--").args(program);
        let output = place.behind(&even, command).output().expect("it runs");
        assert!(output.status.success(), "{}", text(&output.stderr));
        (text(&output.stdout), text(&output.stderr))
    };
    let (said, _) = in_program(&["capture", "-o", "cap", "--launch", "3"], &program);
    assert!(said.contains("captured: smooth"), "{said}");
    let ran = place.done(&["run", "cap/smooth", "--device", "sim:h200", "--plan", "none"]);
    assert!(ran.contains("match the capture"), "{ran}");

    let plan = ["--plans", "table=rolling-registers:4"];
    let tuned = place.done(&[&["tune", "cap/smooth", "--device", "sim:h200"][..], &plan].concat());
    assert!(tuned.contains("to no variable of a module"), "{tuned}");
    let module = fs::read_to_string(place.at("cap/smooth/tuned.ptx")).expect("the better kernel");
    match Ptxas::find() {
        Some(ptxas) => drop(
            ptxas
                .assemble_module(&module)
                .unwrap_or_else(|error| panic!("{error}")),
        ),
        None => tools::skip("variables", "there is no ptxas"),
    }
    let (result, told) = in_program(&["exec", "--always", "--with", "cap"], &program);
    assert_eq!(result, alone, "{told}");
    assert!(told.contains("11 of 12 launches ran the tuned kernel"), "{told}");

    // A pointer that leads into a variable: the better kernel was not derived for that.
    let aliased = ["./variables", &ptx, "1", "64", "12", "table"];
    let alone = text(&place.alone("variables", &aliased[1..]).stdout);
    let (result, told) = in_program(&["exec", "--always", "--with", "cap"], &aliased);
    assert_eq!(result, alone, "{told}");
    assert!(told.contains("0 of 12 launches ran the tuned kernel"), "{told}");
    assert!(
        told.contains("12 launches did not meet its assumptions"),
        "{told}"
    );
}
