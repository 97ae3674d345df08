//! A folder with a program, in C over the driver or in CUDA C++, and the test driver: what the tests run.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use headstart_testing::tools;

/// A folder with a program and a driver.
pub struct Place {
    pub folder: tempfile::TempDir,
}

/// A library that was built with these tests.
pub fn library(name: &str) -> PathBuf {
    let own = std::env::current_exe().expect("this test has a file");
    let deps = own.parent().expect("it lies in a folder");
    let found = [deps.join(name), deps.join("..").join(name)]
        .into_iter()
        .find(|path| path.is_file());
    let found = found.unwrap_or_else(|| panic!("{name} was not built beside {}", deps.display()));
    fs::canonicalize(found).expect("it is there")
}

pub fn programs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs")
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl Place {
    /// With a program, compiled to reach the driver in a way.
    pub fn new(program: &str, way: u32) -> Place {
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
    pub fn of_cuda(sources: &[&str]) -> Option<Place> {
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

    pub fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Makes a folder with a driver in front of the test driver, which has these functions of its own.
    pub fn driver_in_front(&self, folder: &str, functions: &str) -> PathBuf {
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
    pub fn behind(&self, folder: &Path, command: Command) -> Command {
        let mut command = self.in_place(command);
        let path = format!("{}:{}", folder.display(), self.folder.path().display());
        command.env("LD_LIBRARY_PATH", path);
        command
    }

    pub fn in_place(&self, mut command: Command) -> Command {
        command
            .env("LD_LIBRARY_PATH", self.folder.path())
            .env("HEADSTART_DRIVER_LIBRARY", library("libheadstart_driver.so"))
            .env_remove("HEADSTART")
            .env_remove("HEADSTART_DRIVER")
            .current_dir(self.folder.path());
        command
    }

    /// Runs the program alone.
    pub fn alone(&self, program: &str, arguments: &[&str]) -> Output {
        let mut command = self.in_place(Command::new(self.at(program)));
        command.args(arguments).output().expect("it runs")
    }

    /// Runs `headstart`.
    pub fn headstart(&self, arguments: &[&str]) -> Output {
        let mut command = self.in_place(Command::new(env!("CARGO_BIN_EXE_headstart")));
        command.args(arguments).output().expect("it runs")
    }

    /// The same, to a good end; what it prints.
    pub fn done(&self, arguments: &[&str]) -> String {
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

pub fn ptx(name: &str) -> String {
    programs()
        .join(format!("{name}.ptx"))
        .to_string_lossy()
        .into_owned()
}

/// Captures the program `gather` with a kernel, runs the launch again, tunes it, and runs the program with the better kernel.
pub fn becomes_a_better_one(kernel: &str, way: u32) -> Place {
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

    let exec = in_program(&["exec", "--always", "--with", "cap"]);
    let told = text(&exec.stderr);
    assert_eq!(text(&exec.stdout), alone, "{told}");
    // The third launch is the original.
    assert!(
        told.contains("headstart: gather: 4 of 5 launches ran the tuned kernel"),
        "{told}"
    );
    place
}

/// A driver's function by which all launches take as long: no kernel is switched back.
pub const EVEN: &str = "int cuEventElapsedTime(float *ms, void *a, void *b) { *ms = 1; return 0; }\n";
