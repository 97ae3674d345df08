//! What goes wrong: ends of a program, drivers and disks that have their own way, files that are cut off.
//! A program notices nothing, and nothing half written is taken for whole.

use std::fs;
use std::process::Command;
use std::time::Instant;

use headstart_testing::tools;

use crate::place::{Place, becomes_a_better_one, library, ptx, text};

#[test]
fn the_programs_own_end_is_kept() {
    let ptx = ptx("list");
    let place = Place::new("list", 0);
    let output = place.headstart(&["capture", "--list", "-o", "cap", "--", "./list", &ptx, "5"]);
    assert!(
        text(&output.stdout).contains("The program ended with exit status: 5."),
        "{output:?}"
    );
    let output = place.headstart(&["capture", "--list", "-o", "cap", "--", "./list", &ptx]);
    assert_eq!(output.status.code(), Some(2), "the folder is not empty");
    let output = place.headstart(&["capture", "-o", "other", "--", "true"]);
    assert!(
        text(&output.stderr).contains("did not call the CUDA driver"),
        "{output:?}"
    );
    let output = place.headstart(&["capture", "-o", "third", "--", "./no-such-program"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

#[test]
fn without_a_driver_that_is_the_answer() {
    if headstart::device::cuda::gpu::count().is_ok() {
        tools::skip("no-driver", "this machine has a driver");
        return;
    }
    let place = Place::new("gather", 1);
    let mut command = place.in_place(Command::new(env!("CARGO_BIN_EXE_headstart")));
    command.env_remove("LD_LIBRARY_PATH");
    command.args([
        "capture",
        "-o",
        "cap",
        "--",
        "./gather",
        &ptx("gather"),
        "256",
        "4",
        "3",
    ]);
    let output = command.output().expect("it runs");
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let told = text(&output.stderr);
    assert!(told.contains("this machine has no NVIDIA driver"), "{told}");
}

#[test]
fn however_a_program_ends_what_it_did_is_known() {
    let ptx = ptx("gather");
    let place = Place::new("ends", 2);
    for (how, told, cut_off) in [
        ("return", None, false),
        ("exit", Some("exit status: 3"), false),
        ("thread", Some("exit status: 5"), false),
        ("_exit", Some("exit status: 4"), true),
        ("abort", Some("signal: 6"), true),
        ("kill", Some("signal: 9"), true),
        ("crash", Some("signal: 11"), true),
    ] {
        let listed = place.done(&["capture", "--list", "-o", how, "--", "./ends", &ptx, how]);
        let row = listed
            .lines()
            .find(|line| line.starts_with("gather "))
            .unwrap_or_else(|| panic!("{how}: {listed}"));
        assert_eq!(row.split_whitespace().nth(1), Some("1"), "{how}: {listed}");
        assert_eq!(
            listed.contains("Cut off before its end"),
            cut_off,
            "{how}: {listed}"
        );
        match told {
            Some(told) => assert!(
                listed.contains(&format!("The program ended with {told}")),
                "{how}: {listed}"
            ),
            None => assert!(!listed.contains("The program ended"), "{how}: {listed}"),
        }
    }
}

/// The same of a program with better kernels: it ends as it does alone, and what was counted until then is reported.
#[test]
fn however_a_program_with_better_kernels_ends_it_is_its_own_end() {
    let ptx = ptx("gather");
    let place = Place::new("ends", 1);
    place.done(&["capture", "-o", "cap", "--", "./ends", &ptx, "return"]);
    let plans = ["--plans", "unroll:4"];
    place.done(&[&["tune", "cap/gather", "--device", "sim:h200"][..], &plans].concat());
    for (how, status) in [
        ("return", 0),
        ("exit", 3),
        ("thread", 5),
        ("_exit", 4),
        ("abort", 128 + 6),
        ("kill", 128 + 9),
        ("crash", 128 + 11),
    ] {
        let alone = place.alone("ends", &[&ptx, how]);
        let exec = place.headstart(&["exec", "--always", "--with", "cap", "--", "./ends", &ptx, how]);
        let told = text(&exec.stderr);
        assert_eq!(exec.status.code(), Some(status), "{how}: {told}");
        assert_eq!(exec.stdout, alone.stdout, "{how}: {told}");
        let counted = "headstart: gather: 1 of 1 launches ran the tuned kernel";
        assert!(told.contains(counted), "{how}: {told}");
    }
}

/// A driver whose device is never done, as a kernel that waits for the host keeps it.
const BUSY: &str = "#include <unistd.h>\nint cuCtxSynchronize(void) { sleep(30); return 0; }\n\
    int cuStreamQuery(void *stream) { return 600; }\nint cuEventQuery(void *event) { return 600; }\n\
    int cuEventSynchronize(void *event) { sleep(30); return 0; }\n";

/// A thread calls `exit` while another waits for a kernel, in the driver or in the copy of a launch: nothing waits with it.
#[test]
fn a_program_that_exits_while_it_waits_for_a_kernel_ends_at_once() {
    let ptx = ptx("gather");
    let place = Place::new("ends", 1);
    place.done(&["capture", "-o", "cap", "--", "./ends", &ptx, "return"]);
    let plans = ["--plans", "unroll:4"];
    place.done(&[&["tune", "cap/gather", "--device", "sim:h200"][..], &plans].concat());
    let busy = place.driver_in_front("busy", BUSY);
    let program = ["--", "./ends", &ptx];
    for (how, status) in [("wait", 6), ("early", 7)] {
        for (number, first) in [
            &["capture", "--list", "-o"][..],
            &[
                "capture",
                "--launch",
                "0",
                "--kernel",
                ".",
                "--patience",
                "2",
                "-o",
            ],
            &["exec", "--always", "--with"],
        ]
        .iter()
        .enumerate()
        {
            let folder = match first[0] {
                "exec" => "cap".to_owned(),
                _ => format!("{how}-{number}"),
            };
            let mut command = Command::new(env!("CARGO_BIN_EXE_headstart"));
            command.args(*first).arg(&folder).args(program).arg(how);
            let start = Instant::now();
            let output = place.behind(&busy, command).output().expect("it runs");
            let (said, told) = (text(&output.stdout), text(&output.stderr));
            // Each run of the program takes a third of a second until a thread ends it.
            assert!(start.elapsed().as_secs() < 15, "{how} {first:?}: {said}{told}");
            match first[0] {
                "exec" => {
                    assert_eq!(output.status.code(), Some(status), "{how}: {told}");
                    assert!(
                        told.contains("of 1 launches ran the tuned kernel"),
                        "{how}: {told}"
                    );
                }
                _ => {
                    let ended = format!("The program ended with exit status: {status}");
                    assert!(said.contains(&ended), "{how} {first:?}: {said}{told}");
                    assert!(
                        !place.at(&folder).join("gather").exists(),
                        "{how}: nothing half written"
                    );
                }
            }
        }
    }
}

/// What was tuned for another driver's machine code, or another GPU's, may fuse other products: the program keeps its own.
#[test]
fn what_was_tuned_elsewhere_is_not_taken_where_bits_may_differ() {
    let place = becomes_a_better_one("gather", 1);
    let program = ["./gather", &ptx("gather"), "1024", "64", "5"];
    let alone = text(&place.alone("gather", &program[1..]).stdout);
    let path = place.at("cap/gather/tuned.toml");
    let facts = fs::read_to_string(&path).expect("the facts");
    for (machine, taken) in [("13000 90", true), ("12080 90", false), ("13000 80", false)] {
        let with = facts.replacen(
            "facts = [\n",
            &format!("facts = [\n  \"machine {machine}\",\n"),
            1,
        );
        assert_ne!(with, facts);
        fs::write(&path, with).expect("a file");
        let exec = place.headstart(&[&["exec", "--always", "--with", "cap", "--"][..], &program].concat());
        let told = text(&exec.stderr);
        assert_eq!(text(&exec.stdout), alone, "{machine}: {told}");
        assert_eq!(
            told.contains("gather: 4 of 5 launches ran"),
            taken,
            "{machine}: {told}"
        );
        assert_eq!(
            told.contains("may fuse other products"),
            !taken,
            "{machine}: {told}"
        );
    }
}

#[test]
fn what_is_too_large_is_not_captured_and_the_program_goes_on() {
    let ptx = ptx("gather");
    let place = Place::new("ends", 1);
    let said = place.done(&[
        "capture",
        "--max-bytes",
        "500",
        "-o",
        "cap",
        "--",
        "./ends",
        &ptx,
        "return",
    ]);
    assert!(said.starts_with("64\n"), "{said}");
    assert!(
        said.contains("not captured: it reaches more than 500 bytes of memory"),
        "{said}"
    );
    assert!(!place.at("cap/gather").exists(), "nothing half written is left");
    let output = place.headstart(&["tune", "cap/gather"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

#[test]
fn what_is_broken_is_not_taken_for_whole() {
    let ptx = ptx("gather");
    let place = Place::new("gather", 2);
    let program = ["./gather", &ptx, "1024", "64", "3"];
    let with = |first: &[&str]| {
        let all: Vec<&str> = first.iter().copied().chain(["--"]).chain(program).collect();
        place.headstart(&all)
    };
    let alone = text(&place.alone("gather", &program[1..]).stdout);
    assert!(with(&["capture", "-o", "cap"]).status.success());
    place.done(&[
        "tune",
        "cap/gather",
        "--device",
        "sim:h200",
        "--plans",
        "unroll:4",
    ]);
    // The driver does not take the better kernel: the program has its own.
    fs::write(place.at("cap/gather/tuned.ptx"), "nonsense").expect("a file");
    let exec = with(&["exec", "--always", "--with", "cap"]);
    assert_eq!(text(&exec.stdout), alone);
    let told = text(&exec.stderr);
    assert!(
        told.contains("gather: 0 of 3 launches") && told.contains("the driver refused"),
        "{told}"
    );
    // Each buffer that is cut off is noticed.
    for entry in fs::read_dir(place.at("cap/buffers")).expect("a folder") {
        let path = entry.expect("an entry").path();
        let whole = fs::read(&path).expect("a file");
        fs::write(&path, &whole[..whole.len() - 1]).expect("a file");
        let output = place.headstart(&["run", "cap/gather", "--device", "sim:h200"]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(
            text(&output.stderr).contains("captured memory is cut off"),
            "{output:?}"
        );
        fs::write(&path, &whole).expect("a file");
    }
    place.done(&["run", "cap/gather", "--device", "sim:h200", "--plan", "none"]);
    fs::remove_file(place.at("cap/gather/launch.toml")).expect("it is there");
    let output = place.headstart(&["run", "cap/gather"]);
    assert!(
        text(&output.stderr).contains("has no captured launch"),
        "{output:?}"
    );
}

/// A better kernel may need more registers or shared memory: the launch is the original's then, and the program notices nothing.
#[test]
fn what_the_driver_does_not_launch_is_launched_as_it_was() {
    let place = becomes_a_better_one("gather", 1);
    let program = ["./gather", &ptx("gather"), "1024", "64", "5"];
    let alone = text(&place.alone("gather", &program[1..]).stdout);
    // The first handle that is launched is the better kernel's.
    let front = place.driver_in_front(
        "strict",
        "#define _GNU_SOURCE\n#include <dlfcn.h>\nstatic void *first;\n\
         int cuLaunchKernel(void *f, unsigned a, unsigned b, unsigned c, unsigned d, unsigned e, unsigned g, unsigned s, void *t, \
         void **p, void **x) {\n    int (*real)() = dlsym(RTLD_NEXT, \"cuLaunchKernel\");\n    if (!first) first = f;\n    \
         return f == first ? 701 : real(f, a, b, c, d, e, g, s, t, p, x);\n}\n",
    );
    let mut command = Command::new(env!("CARGO_BIN_EXE_headstart"));
    command
        .args(["exec", "--always", "--with", "cap", "--"])
        .args(program);
    let exec = place.behind(&front, command).output().expect("it runs");
    let told = text(&exec.stderr);
    assert_eq!(text(&exec.stdout), alone, "{told}");
    assert!(exec.status.success(), "{told}");
    assert!(told.contains("headstart: gather: 0 of 5 launches"), "{told}");
    let said = "gather: the driver did not launch the better kernel where it launches the original, which is taken again: 8×1×1";
    assert!(told.contains(said), "{told}");
}

/// A driver that has its own way with what is asked of it beside the program, or a disk that has.
#[test]
fn faults_are_nothing_that_a_program_would_notice() {
    let place = becomes_a_better_one("gather", 1);
    let program = ["./gather", &ptx("gather"), "1024", "64", "5"];
    let alone = place.alone("gather", &program[1..]);
    let next = "#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <signal.h>\n#include <stdlib.h>\n#include <string.h>\n#include <unistd.h>\n\
                #define NEXT(name) int (*next)() = dlsym(RTLD_NEXT, #name)\n";
    let taken = "headstart: gather: 4 of 5 launches ran the tuned kernel";
    let kept = "headstart: gather: 0 of ";
    for (name, functions, told) in [
        (
            "newer",
            "int cuDriverGetVersion(int *version) { *version = 99990; return 0; }",
            taken,
        ),
        (
            "other",
            "int cuDeviceGetAttribute(int *value, int which, int device) { NEXT(cuDeviceGetAttribute); int result = next(value, which, \
             device); if (which == 75) *value = 8; return result; }",
            taken,
        ),
        (
            "timeless",
            "int cuEventCreate(void **event, unsigned flags) { return 2; }",
            taken,
        ),
        (
            "asked",
            "int cuStreamIsCapturing(void *stream, int *is) { return 999; }",
            kept,
        ),
        (
            "full",
            "int cuLibraryLoadData(void **library, const void *image) { return 2; }",
            kept,
        ),
    ] {
        let front = place.driver_in_front(name, &format!("{next}{functions}\n"));
        let mut command = Command::new(env!("CARGO_BIN_EXE_headstart"));
        command
            .args(["exec", "--always", "--with", "cap", "--"])
            .args(program);
        let exec = place.behind(&front, command).output().expect("it runs");
        let said = text(&exec.stderr);
        assert_eq!(
            (&exec.stdout, exec.status.code()),
            (&alone.stdout, Some(0)),
            "{name}: {said}"
        );
        assert!(said.contains(told), "{name}: {said}");
    }
    // In the second run, which copies: the program is killed while a buffer is, or the driver does not copy.
    let copies = "int cuMemcpyDtoH_v2(void *to, unsigned long long from, size_t bytes) { static int count; NEXT(cuMemcpyDtoH_v2); \
                  const char *mode = getenv(\"HEADSTART_DRIVER\"); int is = mode && !strncmp(mode, \"capture\", 7) && ++count == 2;";
    for (name, end, told) in [
        (
            "killed",
            "if (is) kill(getpid(), SIGKILL);",
            "not captured: in the second run there was no launch 0",
        ),
        ("uncopied", "if (is) return 2;", "could not be copied: error 2"),
    ] {
        let front = place.driver_in_front(
            name,
            &format!("{next}{copies} {end} return next(to, from, bytes); }}\n"),
        );
        let mut command = Command::new(env!("CARGO_BIN_EXE_headstart"));
        let folder = format!("cap-{name}");
        command
            .args(["capture", "-o", &folder, "--launch", "0", "--"])
            .args(program);
        let captured = place.behind(&front, command).output().expect("it runs");
        let said = text(&captured.stdout);
        assert!(captured.stdout.starts_with(&alone.stdout), "{name}: {said}");
        assert!(said.contains(told), "{name}: {said}{}", text(&captured.stderr));
        assert!(
            !place.at(&folder).join("gather").exists(),
            "{name}: nothing half written is left"
        );
    }
}

/// What is counted lies in a mapped file, whose pages need room.
#[test]
fn a_full_disk_is_nothing_that_a_program_would_notice() {
    let place = becomes_a_better_one("gather", 1);
    let program = ["./gather", &ptx("gather"), "1024", "64", "5"];
    let alone = place.alone("gather", &program[1..]);
    let small = place.at("small");
    fs::create_dir(&small).expect("a folder");
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=256k", "tmpfs"])
        .arg(&small)
        .output();
    if !mounted.is_ok_and(|output| output.status.success()) {
        tools::skip("small-disk", "no small file system can be mounted here");
        return;
    }
    let run = |words: &[&str]| {
        let mut command = place.in_place(Command::new(env!("CARGO_BIN_EXE_headstart")));
        command.args(words).args(program).env("TMPDIR", &small);
        command.output().expect("it runs")
    };
    let exec = run(&["exec", "--always", "--with", "cap", "--"]);
    let captured = run(&["capture", "-o", "small/cap", "--"]);
    let unmounted = Command::new("umount").arg(&small).status();
    assert!(unmounted.is_ok_and(|status| status.success()));
    let said = text(&exec.stderr);
    assert_eq!(
        (&exec.stdout, exec.status.code()),
        (&alone.stdout, Some(0)),
        "{said}"
    );
    assert!(said.contains("no room on the disk"), "{said}");
    assert_eq!(captured.stdout, alone.stdout, "{}", text(&captured.stderr));
    assert!(
        text(&captured.stderr).contains("room on the disk"),
        "{}",
        text(&captured.stderr)
    );
}

#[test]
fn everything_can_be_turned_off() {
    let ptx = ptx("gather");
    let place = Place::new("gather", 2);
    let mut command = place.in_place(Command::new(env!("CARGO_BIN_EXE_headstart")));
    let program = ["./gather", &ptx, "256", "4", "3"];
    command
        .args(["capture", "-o", "cap", "--"])
        .args(program)
        .env("HEADSTART", "off");
    let output = command.output().expect("it runs");
    assert!(
        text(&output.stderr).contains("did not call the CUDA driver"),
        "{output:?}"
    );
    let mut command = place.in_place(Command::new("./gather"));
    command.args(&program[1..]);
    // A folder that cannot be made is nothing that the program would notice.
    command
        .env("LD_PRELOAD", library("libheadstart_driver.so"))
        .env("HEADSTART_DRIVER", "list:/proc/none");
    let output = command.output().expect("it runs");
    let alone = place.alone("gather", &program[1..]);
    assert_eq!(
        (output.status.code(), output.stdout, output.stderr),
        (Some(0), alone.stdout, alone.stderr)
    );
}
