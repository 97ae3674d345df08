//! Every program of this folder is run, and must print the text below. `…` stands for some text of a line that may change with
//! the device's model.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

use headstart::device::sim::Simulator;
use headstart::tune::{FileSubject, LaunchFile, Subject};

/// What a program prints.
const EXPECTED: &[(&str, &str)] = &[
    (
        "gather",
        "plain: … µs\n\
         prefetched: … µs, … times as fast\n\
         the same bits: true\n",
    ),
    (
        "histogram",
        " 0 occurs  5000 times\n \
         1 occurs  5000 times\n \
         4 occurs  5000 times\n \
         9 occurs  5000 times\n",
    ),
    (
        "ptx",
        "plan: values=rolling-async:4/interleaved,indices=rolling-registers:8\n\
         taken for granted: no launch writes memory that is read through `indices`\n\
         the same bits: true\n",
    ),
    (
        "race",
        "without the barrier: examples/race.rs:24:36: work-item 0 of work-group 0 (global 0) reads `partial[16]`, which \
         work-item 16 wrote at examples/race.rs:24:13 with no barrier between\n\
         with it: [8128, 24512]\n",
    ),
    ("reduction", "the sum of 50000 elements: 2475000\n"),
    (
        "saxpy",
        "1000000 elements in 3907 work-groups of 256 work-items, 0 of them wrong\n\
         … µs on NVIDIA H200 (simulated), from its L2 cache\n",
    ),
    (
        "spmv",
        "2500 rows, 12300 entries: 2500 rows with the bits of the CPU\n",
    ),
    (
        "tuned",
        "from:    Searched\n\
         verdict: prefetch\n\
         plan:    …values=…\n\
         gain:    … times as fast as the plain kernel\n\
         the same bits: true\n",
    ),
];

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The programs of the folder, by their files.
fn programs() -> Vec<String> {
    let mut programs: Vec<String> = fs::read_dir(folder())
        .expect("the folder is there")
        .map(|entry| entry.expect("its entries can be read").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned())
        .collect();
    programs.sort();
    programs
}

/// The built program: cargo puts it beside the folder that this test is in.
fn built(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("this test is a file");
    let profile = test.ancestors().nth(2).expect("target/PROFILE/deps/run");
    let program = profile
        .join("examples")
        .join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    let changed = |path: &Path| fs::metadata(path).and_then(|data| data.modified());
    let source = changed(&folder().join(format!("{name}.rs"))).expect("its source is there");
    let is_new = changed(&program).is_ok_and(|built| built >= source);
    assert!(
        is_new,
        "{name} was not built since it changed; `cargo test -p headstart-examples` builds it"
    );
    program
}

/// Runs a program where tuned answers go to `cache`.
fn run(name: &str, cache: &Path) -> Output {
    let mut program = Command::new(built(name));
    program.env("HEADSTART_CACHE", cache);
    program.output().unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Whether a line is as expected.
fn fits(line: &str, expected: &str) -> bool {
    let Some((start, rest)) = expected.split_once('…') else {
        return line == expected;
    };
    line.strip_prefix(start).is_some_and(|line| {
        let ends = line.char_indices().map(|(at, _)| at).skip(1).chain([line.len()]);
        ends.filter(|&at| at > 0).any(|at| fits(&line[at..], rest))
    })
}

fn check(name: &str, expected: &str, output: &Output) {
    let (said, complained) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(
        output.status.success(),
        "{name}: {}\n{said}{complained}",
        output.status
    );
    let is_right = said.lines().count() == expected.lines().count()
        && said
            .lines()
            .zip(expected.lines())
            .all(|(line, expected)| fits(line, expected));
    assert!(is_right, "{name} printed\n{said}\nand not\n{expected}");
    assert!(complained.is_empty(), "{name}: {complained}");
}

#[test]
fn every_program_prints_what_it_should() {
    let named: Vec<&str> = EXPECTED.iter().map(|(name, _)| *name).collect();
    assert_eq!(
        programs(),
        named,
        "the programs of the folder, and those with an output here"
    );
    let manifest = fs::read_to_string(folder().join("Cargo.toml")).expect("the manifest");
    let list = fs::read_to_string(folder().join("README.md")).expect("the list");
    let cache = tempfile::tempdir().expect("a folder");
    for (name, expected) in EXPECTED {
        assert!(
            manifest.contains(&format!("path = \"{name}.rs\"")),
            "{name} is no target"
        );
        assert!(
            list.contains(&format!("({name}.rs)")),
            "README.md does not list {name}"
        );
        check(name, expected, &run(name, &cache.path().join("answers.jsonl")));
    }
}

#[test]
fn a_tuned_kernel_is_remembered_for_the_next_start() {
    let cache = tempfile::tempdir().expect("a folder");
    let file = cache.path().join("answers.jsonl");
    let (first, second) = (run("tuned", &file), run("tuned", &file));
    let said = |output: &Output| String::from_utf8_lossy(&output.stdout).into_owned();
    let (first, second) = (said(&first), said(&second));
    assert!(first.starts_with("from:    Searched\n"), "{first}");
    assert_eq!(second, first.replace("Searched", "Remembered"));
}

/// A search whose answer is lost in the user's folder says so; a file that was named is refused before the search.
#[cfg(target_os = "linux")]
#[test]
fn an_answer_that_cannot_be_kept_is_said() {
    let mut program = Command::new(built("tuned"));
    program
        .env_remove("HEADSTART_CACHE")
        .env("XDG_CACHE_HOME", "/proc/none");
    let output = program.output().expect("the program runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.starts_with("from:    Searched\nkept:    no, "), "{output:?}");
    let refused = run("tuned", Path::new("/proc/answers.jsonl"));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        !refused.status.success() && said.contains("HEADSTART_CACHE") && said.contains("/proc/answers.jsonl"),
        "{refused:?}"
    );
}

/// What `headstart tune --bin PROGRAM` works on: a program's kernel with the arguments that it was launched with.
#[test]
fn a_program_leaves_its_largest_launches_where_that_is_asked_for() -> headstart::Result<()> {
    let (cache, launches) = (
        tempfile::tempdir().expect("a folder"),
        tempfile::tempdir().expect("a folder"),
    );
    let mut program = Command::new(built("reduction"));
    program
        .env("HEADSTART_CACHE", cache.path())
        .env("HEADSTART_LAUNCHES", launches.path());
    let output = program.output().expect("the program runs");
    check("reduction", "the sum of 50000 elements: 2475000\n", &output);

    // A folder that is not there is said at once, and not when the launches are looked for.
    program.env("HEADSTART_LAUNCHES", launches.path().join("none"));
    let refused = program.output().expect("the program runs");
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(
        !refused.status.success() && said.contains("HEADSTART_LAUNCHES"),
        "{said}"
    );

    let text = fs::read_to_string(launches.path().join("sum_of_groups.hsir")).expect("the kernel is there");
    let kernel = Arc::new(headstart::ir::read(&text, "sum_of_groups.hsir")?);
    let launch = LaunchFile::read(&launches.path().join("sum_of_groups.toml"))?;
    let subject = FileSubject::new(Arc::clone(&kernel), launch);
    // The first launch has 16 work-groups, the second has one.
    let workload = subject.workload()?;
    assert_eq!((workload.groups, workload.group), ([16, 1, 1], [128, 1, 1]));
    let device = Simulator::untimed();
    let (_, outputs) = workload.bind(&device)?.run(&device, &kernel)?;
    let sums = outputs[0]
        .chunks_exact(4)
        .map(|bytes| u32::from_le_bytes(bytes.try_into().expect("four")));
    assert_eq!(sums.sum::<u32>(), 2_475_000);
    Ok(())
}
