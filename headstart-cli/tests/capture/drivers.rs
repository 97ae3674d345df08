//! Programs in C that reach the driver in every way: captured, run again, tuned, and run with the better kernel in place.

use std::fs;
use std::path::Path;
use std::process::Command;

use headstart_testing::tools;

use crate::place::{Place, becomes_a_better_one, programs, ptx, text};

#[test]
fn every_way_to_the_driver_is_seen() {
    let ptx = ptx("gather");
    for way in [0, 1, 2] {
        let place = Place::new("gather", way);
        let listed = place.done(&[
            "capture", "--list", "-o", "cap", "--", "./gather", &ptx, "256", "4", "3",
        ]);
        let row = listed
            .lines()
            .find(|line| line.starts_with("gather "))
            .unwrap_or_else(|| panic!("{way}: {listed}"));
        let words: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(words[1], "3", "{listed}");
        assert!(row.contains("2 of 128") && row.ends_with("PTX"), "{listed}");
        assert!(place.at("cap/capture.toml").is_file());
        assert!(!place.at("cap/gather").exists(), "it was only listed");
    }
}

/// CuPy, Numba and XLA load machine code that these libraries made: what they made it of is known all the same.
#[test]
fn machine_code_of_a_compiler_has_its_text() {
    let (ptx, place) = (ptx("gather"), Place::new("compiled", 1));
    let mut compiler = Command::new("cc");
    compiler
        .args(["-O1", "-w", "-shared", "-fPIC"])
        .arg(programs().join("compiler.c"))
        .arg("-o")
        .arg(place.at("libcompiler.so"));
    let done = compiler.output().expect("a C compiler");
    assert!(done.status.success(), "{}", text(&done.stderr));
    place.done(&["capture", "--list", "-o", "cap", "--", "./compiled", &ptx]);
    let files = fs::read_dir(place.at("cap")).expect("a capture");
    let files = files.map(|file| file.expect("a file").path());
    let said: String = files
        .filter(|path| path.extension().is_some_and(|own| own == "txt"))
        .map(|path| fs::read_to_string(path).expect("what a process did"))
        .collect();
    let linked: Vec<Vec<&str>> = said
        .lines()
        .map(|line| line.split('\t').collect::<Vec<&str>>())
        .filter(|words| words[0] == "linked")
        .collect();
    let mut codes: Vec<&str> = Vec::new();
    for words in &linked {
        let [_, code, of] = words[..] else {
            panic!("{said}");
        };
        let kept = fs::read(place.at("cap/images").join(of)).expect("the text");
        assert!(kept == fs::read(&ptx).expect("the text"), "it is as it was given");
        codes.push(code);
    }
    codes.sort_unstable();
    codes.dedup();
    assert_eq!(codes.len(), 3, "each made its own code: {said}");
}

/// Machine code that was made ahead is loaded; a driver that does not take it gets the text.
#[test]
fn a_kernel_is_assembled_ahead_by_the_assembler_that_is_named() {
    let Some(ptxas) = tools::program("ptxas") else {
        return;
    };
    let place = becomes_a_better_one("gather", 1);
    assert!(!place.at("cap/gather/tuned.cubin").exists(), "none was named");
    let tune = |assembler: &Path| {
        let mut command = place.in_place(Command::new(env!("CARGO_BIN_EXE_headstart")));
        command.args([
            "tune",
            "cap/gather",
            "--device",
            "sim:h200",
            "--plans",
            "unroll:4",
        ]);
        let output = command
            .env("HEADSTART_PTXAS", assembler)
            .output()
            .expect("it runs");
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let said = tune(Path::new("/nowhere/ptxas"));
    assert!(
        said.contains("Not assembled ahead, the driver will compile it: HEADSTART_PTXAS: cannot be started"),
        "{said}"
    );
    tune(&ptxas);
    let code = fs::read(place.at("cap/gather/tuned.cubin")).expect("machine code");
    assert!(code.starts_with(b"\x7fELF"));
    let front = place.driver_in_front(
        "codes",
        "#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n\
         int cuLibraryLoadData(void **l, const void *image, void *a, void *b, unsigned c, void *d, void *e, unsigned f) {\n    \
         int (*real)() = dlsym(RTLD_NEXT, \"cuLibraryLoadData\");\n    \
         if (memcmp(image, \"\\177ELF\", 4)) return real(l, image, a, b, c, d, e, f);\n    const char *path = getenv(\"CODE_OF\");\n    \
         if (!path) return 209;\n    static char text[1 << 20];\n    FILE *file = fopen(path, \"rb\");\n    \
         text[fread(text, 1, sizeof text - 1, file)] = 0;\n    fclose(file);\n    return real(l, text, a, b, c, d, e, f);\n}\n",
    );
    let exec = |code_of: Option<&Path>| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_headstart"));
        command.args([
            "exec",
            "--always",
            "--with",
            "cap",
            "--",
            "./gather",
            &ptx("gather"),
            "1024",
            "64",
            "5",
        ]);
        let mut command = place.behind(&front, command);
        if let Some(path) = code_of {
            command.env("CODE_OF", path);
        }
        let output = command.output().expect("it runs");
        text(&output.stderr)
    };
    let taken = "headstart: gather: 4 of 5 launches ran the tuned kernel";
    let told = exec(None);
    assert!(told.contains(taken), "{told}");
    let moved = place.at("moved.ptx");
    fs::rename(place.at("cap/gather/tuned.ptx"), &moved).expect("it is there");
    let told = exec(Some(&moved));
    assert!(told.contains(taken), "{told}");
}

#[test]
fn a_program_becomes_a_better_one() {
    let place = becomes_a_better_one("gather", 2);
    // Another size: the facts say whether the better kernel is for it.
    let ptx = ptx("gather");
    let other = ["./gather", &ptx, "500", "9", "4"];
    let alone = text(&place.alone("gather", &other[1..]).stdout);
    let mut all = vec!["exec", "--always", "--with", "cap", "--"];
    all.extend(other);
    let exec = place.headstart(&all);
    assert_eq!(text(&exec.stdout), alone, "{}", text(&exec.stderr));
}

#[test]
fn messages_of_assertions_are_no_hindrance() {
    becomes_a_better_one("checked", 1);
}

#[test]
fn pointers_inside_structures_and_memory_lead_where_they_did() {
    let ptx = ptx("list");
    let place = Place::new("list", 1);
    let alone = place.alone("list", &[&ptx]);
    assert_eq!(text(&alone.stdout), "35805 35836\n", "{}", text(&alone.stderr));
    let said = place.done(&["capture", "-o", "cap", "--", "./list", &ptx]);
    assert!(said.contains("captured: walk"), "{said}");
    let manifest = fs::read_to_string(place.at("cap/walk/launch.toml")).expect("a manifest");
    assert_eq!(
        manifest.matches("[[memory]]").count(),
        11,
        "ten nodes and the output:\n{manifest}"
    );
    assert_eq!(manifest.matches("[[variables]]").count(), 1, "{manifest}");
    let ran = place.done(&["run", "cap/walk", "--device", "sim:h200", "--plan", "none"]);
    assert!(ran.contains("match the capture"), "{ran}");
}

#[test]
fn a_module_that_is_loaded_again_has_its_better_kernel_again() {
    let ptx = ptx("gather");
    let place = Place::new("reload", 1);
    let alone = text(&place.alone("reload", &[&ptx, "3"]).stdout);
    place.done(&["capture", "-o", "cap", "--", "./reload", &ptx, "3"]);
    place.done(&[
        "tune",
        "cap/gather",
        "--device",
        "sim:h200",
        "--plans",
        "unroll:4",
    ]);
    let exec = place.headstart(&["exec", "--always", "--with", "cap", "--", "./reload", &ptx, "3"]);
    assert_eq!(text(&exec.stdout), alone);
    // Each time both launches.
    assert!(
        text(&exec.stderr).contains("gather: 6 of 6 launches"),
        "{}",
        text(&exec.stderr)
    );
}

#[test]
fn both_runs_have_the_input() {
    let ptx = ptx("gather");
    let place = Place::new("ends", 1);
    fs::write(place.at("input"), "return\n").expect("a file");
    // The program takes its word from its input.
    fs::write(
        place.at("asks"),
        "#!/bin/sh\nread how && exec ./ends \"$1\" \"$how\"\n",
    )
    .expect("a script");
    let mut command = place.in_place(Command::new(env!("CARGO_BIN_EXE_headstart")));
    command.args(["capture", "-o", "cap", "--", "sh", "asks", &ptx]);
    command.stdin(fs::File::open(place.at("input")).expect("a file"));
    let output = command.output().expect("it runs");
    assert!(text(&output.stdout).contains("captured: gather"), "{output:?}");
}

/// `cargo install` installs the command alone: it contains the library.
#[test]
fn a_command_without_its_library_writes_the_copy_that_it_contains() {
    let (ptx, place) = (ptx("gather"), Place::new("gather", 0));
    let alone = place.at("bin");
    fs::create_dir(&alone).expect("a folder");
    let command = alone.join("headstart");
    fs::copy(env!("CARGO_BIN_EXE_headstart"), &command).expect("copied");
    let caches = place.at("caches");
    let run = |set: &dyn Fn(&mut Command)| {
        let _ = fs::remove_dir_all(place.at("cap"));
        let mut run = place.in_place(Command::new(&command));
        run.env_remove("HEADSTART_DRIVER_LIBRARY")
            .env("XDG_CACHE_HOME", &caches)
            .args([
                "capture", "--list", "-o", "cap", "--", "./gather", &ptx, "256", "4", "3",
            ]);
        set(&mut run);
        let output = run.output().expect("the command starts");
        (output.status.code(), text(&output.stdout) + &text(&output.stderr))
    };
    let (status, said) = run(&|_| ());
    assert_eq!(status, Some(0), "{said}");
    assert!(said.lines().any(|line| line.starts_with("gather ")), "{said}");
    let version = env!("CARGO_PKG_VERSION");
    let copy = caches.join(format!("headstart/{version}-libheadstart_driver.so"));
    assert!(copy.is_file(), "{said}");

    let (status, said) = run(&|run| {
        run.env("HEADSTART_DRIVER_LIBRARY", "/nowhere/library.so");
    });
    assert_eq!(status, Some(2), "{said}");
    assert!(
        said.contains("names `/nowhere/library.so`, and there is no such file"),
        "{said}"
    );
    // The loader would split this path, and run the program without the library.
    let (status, said) = run(&|run| {
        run.env("XDG_CACHE_HOME", place.at("my caches"));
    });
    assert_eq!(status, Some(2), "{said}");
    assert!(said.contains("no path with a space"), "{said}");
}
