//! Programs in C, run over the test driver: captured, run again, tuned, and run with the better kernel in place.

#![cfg(target_os = "linux")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use headstart_testing::{ptxas::Ptxas, tools};

/// A folder with a program and a driver.
struct Place {
    folder: tempfile::TempDir,
}

/// A library that was built with these tests.
fn library(name: &str) -> PathBuf {
    let own = std::env::current_exe().expect("this test has a file");
    let deps = own.parent().expect("it lies in a folder");
    let found = [deps.join(name), deps.join("..").join(name)]
        .into_iter()
        .find(|path| path.is_file());
    let found = found.unwrap_or_else(|| panic!("{name} was not built beside {}", deps.display()));
    fs::canonicalize(found).expect("it is there")
}

fn programs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl Place {
    /// With a program, compiled to reach the driver in a way.
    fn new(program: &str, way: u32) -> Place {
        let folder = tempfile::tempdir().expect("a folder");
        symlink(
            library("libheadstart_test_driver.so"),
            folder.path().join("libcuda.so.1"),
        )
        .expect("a link");
        let place = Place { folder };
        let mut compiler = Command::new("cc");
        compiler
            .args(["-O1", "-w", &format!("-DWAY={way}")])
            .arg(programs().join(format!("{program}.c")))
            .arg("-o")
            .arg(place.at(program));
        if way == 0 {
            compiler.arg("-L").arg(place.folder.path()).arg("-l:libcuda.so.1");
        }
        let done = compiler
            .args(["-ldl", "-lpthread"])
            .output()
            .expect("a C compiler");
        assert!(done.status.success(), "{}", text(&done.stderr));
        place
    }

    /// With a program in CUDA C++, and a runtime for it; none where there is no compiler for it.
    fn of_cuda(sources: &[&str]) -> Option<Place> {
        let nvcc = tools::program("nvcc")?;
        let folder = tempfile::tempdir().expect("a folder");
        symlink(
            library("libheadstart_test_driver.so"),
            folder.path().join("libcuda.so.1"),
        )
        .expect("a link");
        let runtime = folder.path().join("libcudart.so.13");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../headstart-test-driver/runtime/cudart.c");
        let script = programs().join("cudart.map");
        let mut compiler = Command::new("cc");
        compiler.args(["-O1", "-w", "-shared", "-fPIC", "-Wl,-soname,libcudart.so.13"]);
        compiler.arg(format!("-Wl,--version-script={}", script.display()));
        compiler
            .arg(source)
            .arg("-o")
            .arg(&runtime)
            .args(["-ldl", "-lpthread"]);
        let done = compiler.output().expect("a C compiler");
        assert!(done.status.success(), "{}", text(&done.stderr));
        symlink(&runtime, folder.path().join("libcudart.so")).expect("a link");
        let place = Place { folder };
        let mut compiler = Command::new(nvcc);
        compiler
            .args(["--cudart=shared", "-Wno-deprecated-gpu-targets", "-o"])
            .arg(place.at(sources[0]));
        compiler.arg("-L").arg(place.folder.path());
        compiler
            .arg("-L")
            .arg(tools::folder().join("nvcc/site/nvidia/cu13/lib"));
        compiler.args(
            sources
                .iter()
                .map(|source| programs().join(format!("cuda/{source}.cu"))),
        );
        let done = compiler.output().expect("nvcc");
        assert!(
            done.status.success(),
            "{}{}",
            text(&done.stdout),
            text(&done.stderr)
        );
        Some(place)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Makes a folder with a driver in front of the test driver, which has these functions of its own.
    fn driver_in_front(&self, folder: &str, functions: &str) -> PathBuf {
        let folder = self.at(folder);
        fs::create_dir(&folder).expect("a folder");
        let source = folder.join("front.c");
        fs::write(&source, functions).expect("a file");
        let behind = "libheadstart_test_driver.so";
        symlink(library(behind), folder.join(behind)).expect("a link");
        let mut compiler = Command::new("cc");
        compiler.args([
            "-O1",
            "-w",
            "-shared",
            "-fPIC",
            "-Wl,--no-as-needed",
            "-Wl,-soname,libcuda.so.1",
        ]);
        compiler.arg("-o").arg(folder.join("libcuda.so.1")).arg(&source);
        compiler
            .arg("-L")
            .arg(&folder)
            .args(["-l:libheadstart_test_driver.so", "-ldl"]);
        let done = compiler.output().expect("a C compiler");
        assert!(done.status.success(), "{}", text(&done.stderr));
        folder
    }

    /// The same, with the driver in that folder.
    fn behind(&self, folder: &Path, command: Command) -> Command {
        let mut command = self.in_place(command);
        let path = format!("{}:{}", folder.display(), self.folder.path().display());
        command.env("LD_LIBRARY_PATH", path);
        command
    }

    fn in_place(&self, mut command: Command) -> Command {
        command
            .env("LD_LIBRARY_PATH", self.folder.path())
            .env("HEADSTART_DRIVER_LIBRARY", library("libheadstart_driver.so"))
            .env_remove("HEADSTART")
            .env_remove("HEADSTART_DRIVER")
            .current_dir(self.folder.path());
        command
    }

    /// Runs the program alone.
    fn alone(&self, program: &str, arguments: &[&str]) -> Output {
        let mut command = self.in_place(Command::new(self.at(program)));
        command.args(arguments).output().expect("it runs")
    }

    /// Runs `headstart`.
    fn headstart(&self, arguments: &[&str]) -> Output {
        let mut command = self.in_place(Command::new(env!("CARGO_BIN_EXE_headstart")));
        command.args(arguments).output().expect("it runs")
    }

    /// The same, to a good end; what it prints.
    fn done(&self, arguments: &[&str]) -> String {
        let output = self.headstart(arguments);
        assert!(
            output.status.success(),
            "{arguments:?}: {}\n{}{}",
            output.status,
            text(&output.stdout),
            text(&output.stderr)
        );
        text(&output.stdout)
    }
}

fn ptx(name: &str) -> String {
    programs()
        .join(format!("{name}.ptx"))
        .to_string_lossy()
        .into_owned()
}

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

/// Captures the program `gather` with a kernel, runs the launch again, tunes it, and runs the program with the better kernel.
fn becomes_a_better_one(kernel: &str, way: u32) -> Place {
    let ptx = ptx(kernel);
    let place = Place::new("gather", way);
    let program = ["./gather", &ptx, "1024", "64", "5"];
    let alone = text(&place.alone("gather", &program[1..]).stdout);
    let in_program = |first: &[&'static str]| {
        let all: Vec<&str> = first.iter().copied().chain(["--"]).chain(program).collect();
        place.headstart(&all)
    };
    let captured = in_program(&["capture", "-o", "cap", "--launch", "0"]);
    let said = text(&captured.stdout);
    assert!(
        captured.status.success() && said.starts_with(&alone),
        "{said}{}",
        text(&captured.stderr)
    );
    assert!(said.contains("captured: gather"), "{said}");

    let ran = place.done(&["run", "cap/gather", "--device", "sim:h200", "--plan", "none"]);
    assert!(ran.contains("match the capture, 3035 of them changed"), "{ran}");

    let plans = ["--plans", "unroll:4"];
    let tuned = place.done(&[&["tune", "cap/gather", "--device", "sim:h200"][..], &plans].concat());
    assert!(tuned.contains("blocks have 128×1×1 threads"), "{tuned}");

    let exec = in_program(&["exec", "--with", "cap"]);
    let told = text(&exec.stderr);
    assert_eq!(text(&exec.stdout), alone, "{told}");
    // The first launches take turns.
    assert!(
        told.contains("headstart: gather: 3 of 5 launches ran the tuned kernel"),
        "{told}"
    );
    place
}

/// Instructions of the host for each launch of a program, of 256 and of 1,280, over a driver whose launches do nothing. `taken` is
/// what is said of so many. The better kernel's time is known after the first 64.
fn instructions_of_a_launch(
    place: &Place,
    valgrind: &Path,
    first: &[&str],
    program: &dyn Fn(u32) -> Vec<String>,
    taken: &dyn Fn(u32) -> String,
) -> f64 {
    let instructions = |launches: u32| -> f64 {
        let out = place.at("callgrind.out");
        let counts = format!("--callgrind-out-file={}", out.display());
        let mut command = match first {
            [] => Command::new(valgrind),
            words => {
                let mut command = Command::new(env!("CARGO_BIN_EXE_headstart"));
                command.args(words).arg("--").arg(valgrind);
                command
            }
        };
        command
            .args(["--tool=callgrind", "--quiet", "--trace-children=no", &counts])
            .args(program(launches));
        let mut command = place.in_place(command);
        let path = format!(
            "{}:{}",
            place.at("nothing").display(),
            place.folder.path().display()
        );
        let output = command.env("LD_LIBRARY_PATH", path).output().expect("it runs");
        assert!(output.status.success(), "{}", text(&output.stderr));
        if !first.is_empty() {
            let told = text(&output.stderr);
            assert!(told.contains(&taken(launches)), "{told}");
        }
        let found = fs::read_to_string(&out).expect("callgrind has counted");
        let line = found.lines().find_map(|line| line.strip_prefix("totals: "));
        line.and_then(|total| total.trim().parse().ok()).expect("a sum")
    };
    (instructions(1280) - instructions(256)) / 1024.0
}

/// Where valgrind is; says where it is missing.
fn valgrind() -> Option<PathBuf> {
    let found = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
        .map(|folder| folder.join("valgrind"))
        .find(|path| path.is_file());
    if found.is_none() {
        tools::skip("valgrind", "no valgrind on the path");
    }
    found
}

/// Launches are not made, events say that all take as long, and no stream is captured: what is counted is not the driver's.
const NOTHING: &str = "int cuLaunchKernel(void *f, unsigned a, unsigned b, unsigned c, unsigned d, unsigned e, unsigned g, unsigned s, \
    void *t, void **p, void **x) { return 0; }\nint cuEventElapsedTime(float *ms, void *a, void *b) { *ms = 1; return 0; }\n\
    int cuStreamIsCapturing(void *s, int *is) { *is = 0; return 0; }\n";

/// The bar is 200 ns; cores run at least three such instructions in a nanosecond.
#[test]
fn a_launch_costs_few_instructions_more() {
    let Some(valgrind) = valgrind() else { return };
    let place = becomes_a_better_one("gather", 1);
    place.driver_in_front("nothing", NOTHING);
    let program = |launches: u32| {
        let words = ["./gather", &ptx("gather"), "1024", "64", &launches.to_string()];
        words.map(str::to_owned).to_vec()
    };
    // All but those in turns, and one of 256, took the better kernel.
    let taken = |launches: u32| {
        let taken = launches - 16 - (launches / 256 - 1);
        format!("headstart: gather: {taken} of {launches} launches")
    };
    let of = |first: &[&str]| instructions_of_a_launch(&place, &valgrind, first, &program, &taken);
    let (alone, exec) = (of(&[]), of(&["exec", "--with", "cap"]));
    println!("{alone:.0} instructions a launch, {exec:.0} with `exec`");
    assert!(alone > 0.0 && exec - alone < 600.0, "{alone} and {exec}");
}

/// Each launch has other arrays. Where it has other sizes, too, what it reaches is computed anew: 94 terms in this build, which is
/// hardly optimized, and two thirds of that in one that is released, half a microsecond.
#[test]
fn bytes_that_a_launch_reaches_cost_few_instructions() {
    let Some(valgrind) = valgrind() else { return };
    let ptx = ptx("pooled");
    let place = Place::new("pooled", 1);
    place.done(&[
        "capture", "-o", "cap", "--launch", "0", "--", "./pooled", &ptx, "1", "2", "apart",
    ]);
    let plans = ["--plans", "param_0=rolling-registers:4"];
    place.done(&[&["tune", "cap/pooled", "--device", "sim:h200"][..], &plans].concat());
    place.driver_in_front("nothing", NOTHING);
    let taken = |launches: u32| {
        let taken = launches - 16 - (launches / 256 - 1);
        format!("headstart: pooled: {taken} of {launches} launches")
    };
    for (sizes, bar) in [("", 12_000.0), ("same", 3_500.0)] {
        let program = |launches: u32| {
            let words = ["./pooled", &ptx, "5", &launches.to_string(), "apart", sizes];
            let words = words.into_iter().filter(|word| !word.is_empty());
            words.map(str::to_owned).collect()
        };
        let of = |first: &[&str]| instructions_of_a_launch(&place, &valgrind, first, &program, &taken);
        let (alone, exec) = (of(&[]), of(&["exec", "--with", "cap"]));
        println!("{alone:.0} instructions a launch, {exec:.0} with `exec` {sizes}");
        assert!(alone > 0.0 && exec - alone < bar, "{alone} and {exec} {sizes}");
    }
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
    command.args(["exec", "--with", "cap", "--"]).args(program);
    let exec = place.behind(&front, command).output().expect("it runs");
    let told = text(&exec.stderr);
    assert_eq!(text(&exec.stdout), alone, "{told}");
    assert!(exec.status.success(), "{told}");
    assert!(told.contains("headstart: gather: 0 of 5 launches"), "{told}");
    let said = "gather: the driver did not launch the better kernel where it launches the original, which is taken again: 8×1×1";
    assert!(told.contains(said), "{told}");
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
         int cuModuleLoadData(void **m, const void *image) {\n    int (*real)() = dlsym(RTLD_NEXT, \"cuModuleLoadData\");\n    \
         if (memcmp(image, \"\\177ELF\", 4)) return real(m, image);\n    const char *path = getenv(\"CODE_OF\");\n    \
         if (!path) return 209;\n    static char text[1 << 20];\n    FILE *file = fopen(path, \"rb\");\n    \
         text[fread(text, 1, sizeof text - 1, file)] = 0;\n    fclose(file);\n    return real(m, text);\n}\n",
    );
    let exec = |code_of: Option<&Path>| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_headstart"));
        command.args([
            "exec",
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
    let taken = "headstart: gather: 3 of 5 launches ran the tuned kernel";
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
    let mut all = vec!["exec", "--with", "cap", "--"];
    all.extend(other);
    let exec = place.headstart(&all);
    assert_eq!(text(&exec.stdout), alone, "{}", text(&exec.stderr));
}

#[test]
fn messages_of_assertions_are_no_hindrance() {
    becomes_a_better_one("checked", 1);
}

#[test]
fn variables_are_the_programs_own_in_the_better_kernel() {
    let ptx = ptx("variables");
    let place = Place::new("variables", 2);
    let program = ["./variables", &ptx, "1024", "64", "12"];
    let alone = text(&place.alone("variables", &program[1..]).stdout);
    assert!(alone.ends_with(", 12 launches\n"), "{alone}");
    let in_program = |first: &[&str], program: &[&str]| {
        let output = place.headstart(&[first, &["--"], program].concat());
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
    let (result, told) = in_program(&["exec", "--with", "cap"], &program);
    assert_eq!(result, alone, "{told}");
    assert!(told.contains("6 of 12 launches ran the tuned kernel"), "{told}");

    // A pointer that leads into a variable: the better kernel was not derived for that.
    let aliased = ["./variables", &ptx, "1", "64", "12", "table"];
    let alone = text(&place.alone("variables", &aliased[1..]).stdout);
    let (result, told) = in_program(&["exec", "--with", "cap"], &aliased);
    assert_eq!(result, alone, "{told}");
    assert!(told.contains("0 of 12 launches ran the tuned kernel"), "{told}");
    assert!(
        told.contains("12 launches did not meet its assumptions"),
        "{told}"
    );
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
    assert!(said.starts_with("1\n"), "{said}");
    assert!(
        said.contains("not captured: it reaches more than 500 bytes of memory"),
        "{said}"
    );
    assert!(!place.at("cap/gather").exists(), "nothing half written is left");
    let output = place.headstart(&["tune", "cap/gather"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
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
    let exec = place.headstart(&["exec", "--with", "cap", "--", "./reload", &ptx, "3"]);
    assert_eq!(text(&exec.stdout), alone);
    // Each time the first of two launches.
    assert!(
        text(&exec.stderr).contains("gather: 3 of 6 launches"),
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
    let exec = with(&["exec", "--with", "cap"]);
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

/// A driver that has its own way with what is asked of it beside the program, or a disk that has.
#[test]
fn faults_are_nothing_that_a_program_would_notice() {
    let place = becomes_a_better_one("gather", 1);
    let program = ["./gather", &ptx("gather"), "1024", "64", "5"];
    let alone = place.alone("gather", &program[1..]);
    let next = "#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <signal.h>\n#include <stdlib.h>\n#include <string.h>\n#include <unistd.h>\n\
                #define NEXT(name) int (*next)() = dlsym(RTLD_NEXT, #name)\n";
    let taken = "headstart: gather: 3 of 5 launches ran the tuned kernel";
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
            "int cuModuleLoadData(void **module, const void *image) { static int count; NEXT(cuModuleLoadData); \
             return ++count == 2 ? 2 : next(module, image); }",
            kept,
        ),
    ] {
        let front = place.driver_in_front(name, &format!("{next}{functions}\n"));
        let mut command = Command::new(env!("CARGO_BIN_EXE_headstart"));
        command.args(["exec", "--with", "cap", "--"]).args(program);
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
    let exec = run(&["exec", "--with", "cap", "--"]);
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
    let mut all = vec!["exec", "--with", "cap", "--"];
    all.extend(program);
    let exec = place.headstart(&all);
    assert_eq!(text(&exec.stdout), alone, "{}", text(&exec.stderr));
}

/// A driver's function by which all launches take as long: no kernel is switched back.
const EVEN: &str = "int cuEventElapsedTime(float *ms, void *a, void *b) { *ms = 1; return 0; }\n";

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
        tuned.contains(
            "`param_0` and `param_1` lead into different allocations, or to different bytes of one"
        ),
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
        command.args(["exec", "--with", "cap", "--"]).args(program);
        let exec = place.behind(&even, command).output().expect("it runs");
        let told = text(&exec.stderr);
        assert_eq!(text(&exec.stdout), alone, "seed {seed}: {told}");
        // All the others meet them; the first 32 of these take turns.
        let said = format!("headstart: pooled: {sharing} launches did not meet");
        assert!(told.contains(&said), "seed {seed}: {alone}{told}");
        let met: u32 = launches - sharing;
        let taken = met.min(32).div_ceil(2) + met.saturating_sub(32);
        let said = format!("headstart: pooled: {taken} of {launches} launches ran the tuned kernel");
        assert!(told.contains(&said), "seed {seed}: {alone}{told}");
        shared += sharing;
    }
    assert!(shared > 80, "{shared}");
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
    // In the first 16 launches of each executable graph the program's own and the better one take turns.
    for (launches, replaced, of) in [("1", 6, 13), ("8", 45, 97), ("20", 137, 241)] {
        let alone = text(&place.alone("graphs", &[&ptx, launches]).stdout);
        let (said, told) = in_program(&["exec", "--with", "cap"], launches);
        assert_eq!(said, alone, "{launches}: {told}");
        let ran = format!("headstart: pooled: {replaced} of {of} launches ran the tuned kernel");
        assert!(told.contains(&ran), "{launches}: {told}");
        let original = format!("{} launches in graphs ran the original", of - replaced);
        assert!(told.contains(&original), "{launches}: {told}");
    }
}

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
        let tuned = place.headstart(&[
            "tune",
            &folder,
            "--device",
            "sim:h200",
            "--plans",
            "unroll:2;unroll:4",
        ]);
        let has_no_loop = text(&tuned.stderr).contains("has no loop that loads");
        assert!(
            tuned.status.success() || has_no_loop,
            "{name}: {}{}",
            text(&tuned.stdout),
            text(&tuned.stderr)
        );
    }
    let exec = run(&["exec", "--with", "cap"]);
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
    let exec = with(&["exec", "--with", "cap"], &program);
    assert_eq!(text(&exec.stdout), alone);
    assert!(
        text(&exec.stderr).contains("until: 3 of 6 launches"),
        "{}",
        text(&exec.stderr)
    );
    // Early loads are guarded by the ends of the captured memory: other sizes take the original.
    let other = ["./until", "512", "48", "6", "4096"];
    let alone = text(&place.alone("until", &other[1..]).stdout);
    let exec = with(&["exec", "--with", "cap"], &other);
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
    let (said, told) = with(&["exec", "--with", "cap"]);
    assert_eq!(said, alone, "{told}");
    // In the first 16 launches of each executable graph the two take turns: 6 as captured, 6 after a node was set, 4 and all of the
    // last 2 after the update, of two nodes each; then 6 of one node beside another kernel, and 6 of two again.
    let ran = "headstart: bag: 30 of 55 launches ran the tuned kernel";
    assert!(told.contains(ran), "{told}");
    assert!(told.contains("25 launches in graphs ran the original"), "{told}");
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
