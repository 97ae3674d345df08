//! Every kind of bad input gives one clear line that says what, where and what would be accepted, with an exit status that says
//! whose fault it is; no partial file is left behind, nothing panics, nothing hangs.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Longer than any of these commands may take on a busy machine.
const LIMIT: Duration = Duration::from_secs(120);

fn headstart(arguments: &[&str]) -> Output {
    let started = Instant::now();
    let output = Command::new(env!("CARGO_BIN_EXE_headstart"))
        .args(arguments)
        .output()
        .expect("the command starts");
    assert!(
        started.elapsed() < LIMIT,
        "{arguments:?} took {:?}",
        started.elapsed()
    );
    output
}

/// Runs a command that must be refused with this status, in one line that holds all of `expected`. A search may have said
/// before what it understood of the kernel.
fn refused(arguments: &[&str], status: i32, expected: &[&str]) {
    let output = headstart(arguments);
    let all = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(status), "{arguments:?} said: {all}");
    let is_error = |line: &&str| line.starts_with("headstart: ");
    assert_eq!(
        all.lines().filter(is_error).count(),
        1,
        "{arguments:?} said: {all}"
    );
    let said = all.lines().next_back().unwrap_or_default();
    assert!(
        is_error(&said) && all.ends_with('\n'),
        "{arguments:?} said: {all}"
    );
    let before = all.lines().count() - 1;
    assert!(
        before == 0 || ["tune", "advise"].contains(&arguments[0]),
        "{arguments:?} said: {all}"
    );
    assert!(said.len() < 700, "{arguments:?} said: {said}");
    assert!(
        all.chars().all(|c| c == '\n' || !c.is_control()),
        "{arguments:?} said: {all:?}"
    );
    for expected in expected {
        assert!(
            said.contains(expected),
            "{arguments:?} does not say {expected:?}: {said}"
        );
    }
    assert!(
        output.stdout.is_empty(),
        "{arguments:?} printed: {}",
        String::from_utf8_lossy(&output.stdout)
    );
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

fn write(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, text).expect("written");
    path.to_string_lossy().into_owned()
}

/// A kernel that reads and writes the same memory, so that nothing of it may be fetched early.
const PREFIX_SUM: &str = "hsir 1
kernel @prefix_sum(%data: ptr.global i32[%length] align 4 unaliased, %length: i64) group 32,1,1 {
  load @data
  %sum = loop 'scan (%i = 0:i64, %sum0 = 0:i32) -> i32 {
    %more = lt.s %i, %length
    if %more { yield } else { break %sum0 }
    %ptr = address %data + %i * 4
    %x = load i32 %ptr, @data
    %sum1 = add %sum0, %x
    store %ptr, %sum1
    %next = add.nw %i, 1:i64
    continue %next, %sum1
  }
  return
}
";

#[test]
fn an_unknown_kernel() {
    refused(
        &["tune", "gathr"],
        2,
        &["no kernel `gathr`", "did you mean `gather`?", "FILE.hsir"],
    );
    refused(
        &["run", "matmul"],
        2,
        &["no kernel `matmul`", "article", "gather"],
    );
    refused(&["emit", ""], 2, &["no kernel ``"]);
    refused(&["emit", "a\nb\u{1b}[31m"], 2, &["no kernel `a\\nb"]);
}

#[test]
fn an_unknown_plan() {
    let tune = |plans| {
        refused(
            &["tune", "gather", "--plans", plans],
            2,
            &["column 8", "did you mean `rolling-async`?"],
        )
    };
    tune("values=roling-async:4");
    tune("unroll:4;values=rolling_async:4");
    refused(
        &["run", "gather", "--plan", "unrol:4"],
        2,
        &["did you mean `unroll`?"],
    );
    refused(
        &["emit", "gather", "--plan", ""],
        2,
        &["the plan is empty", "`none`"],
    );
    refused(&["tune", "gather", "--plans", ";"], 2, &["names no plan"]);
    refused(
        &["emit", "gather", "--plan", "valeus=cache:L2:1"],
        2,
        &["valeus", "values"],
    );
}

#[test]
fn distance_0() {
    refused(
        &["run", "gather", "--plan", "values=rolling-async:0"],
        2,
        &["column 22", "distance 0", "1 to 4096"],
    );
}

#[test]
fn an_unknown_parameter() {
    refused(
        &["tune", "gather", "--set", "itmes=4"],
        2,
        &["no parameter `itmes`", "did you mean `items`?"],
    );
    refused(
        &["tune", "gather", "--set", "items=many"],
        2,
        &["`many` is not a value for `items`", "1 to 1,048,576"],
    );
    refused(
        &["run", "gather", "--set", "group=100"],
        2,
        &["`group` cannot be 100", "a multiple of 32"],
    );
    refused(
        &["run", "article", "--trace", "amg_gpu"],
        2,
        &["takes no trace", "gather"],
    );
}

#[test]
fn an_unknown_file() {
    refused(
        &["run", "no/such.hsir"],
        2,
        &["`no/such.hsir`", "cannot be read", "headstart kernels"],
    );
    refused(&["run", "kernel.cubin"], 2, &["`kernel.cubin`", "FILE.hsir"]);
    refused(&["run", "."], 2, &["`.`"]);
    refused(
        &["run", "gather", "--trace", "no.json"],
        2,
        &["no trace file `no.json`", "amg_gpu"],
    );
    refused(
        &["run", "gather", "--launch", "x.toml"],
        2,
        &["`--launch` is for kernels from a file"],
    );
    let folder = folder();
    let kernel = write(folder.path(), "k.hsir", PREFIX_SUM);
    refused(
        &["run", &kernel, "--launch", "no.toml"],
        2,
        &["launch file cannot be read", "`no.toml`"],
    );
}

#[test]
fn an_unknown_device() {
    refused(
        &["tune", "gather", "--device", "sim:h2000"],
        2,
        &["`h2000`", "did you mean `h200`?"],
    );
    refused(&["tune", "gather", "--device", "tpu:0"], 2, &["`tpu:0`", "sim:"]);
    refused(
        &["tune", "gather", "--device", "cuda:first"],
        2,
        &["`cuda:first`", "`cuda:0`"],
    );
    // No machine has so many GPUs; this one may have none, and no driver.
    refused(&["tune", "gather", "--device", "cuda:4711"], 3, &[]);
    refused(
        &["occupancy", "--group", "64", "--device", "my.toml"],
        2,
        &["my.toml", "cannot be read"],
    );
}

#[test]
fn what_a_device_does_not_have() {
    let occupancy = ["occupancy", "--group", "256", "--device", "sim:h200"];
    let with = |more: &[&'static str]| [&occupancy[..], more].concat();
    refused(
        &with(&["--registers", "300"]),
        3,
        &["300 registers", "at most 255"],
    );
    refused(
        &with(&["--shared", "300000"]),
        3,
        &["no such work-group fits", "shared memory"],
    );
    refused(
        &["tune", "gather", "--device", "sim:h200", "--measure", "3"],
        2,
        &["`--measure 3`", "on the simulated sim:h200", "`--plans`"],
    );
}

#[test]
fn a_program_that_cannot_be_started_from_nothing() {
    let folder = folder();
    let inside = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    for (name, similar) in [
        ("9lives", "`lives`"),
        ("My Kernel", "`my-kernel`"),
        ("fn", "`fn-kernel`"),
    ] {
        refused(
            &["new", &inside(name)],
            2,
            &[&format!("`{name}`"), "a letter, then", similar],
        );
    }
    refused(&["new", ".."], 2, &["`..` does not end in a name", "`my-kernel`"]);
    refused(
        &["new", &inside("no/such")],
        2,
        &["there is no folder", "a path whose parent folder exists"],
    );
    write(folder.path(), "taken", "");
    refused(
        &["new", &inside("taken")],
        2,
        &["exists and is not a folder", "an empty folder"],
    );
    fs::create_dir(folder.path().join("full")).expect("a folder");
    write(&folder.path().join("full"), "notes", "");
    refused(
        &["new", &inside("full")],
        2,
        &["exists and is not empty", "an empty folder"],
    );
    let path = inside("full");
    refused(
        &["new", &inside("free"), "--path", &path],
        2,
        &["no package `headstart`", "a checkout"],
    );
    refused(
        &["new", &inside("free"), "--path", &inside("gone")],
        2,
        &["--path", "a checkout"],
    );
    let left = fs::read_dir(folder.path()).expect("a folder").count();
    assert_eq!(left, 2, "nothing was written");
}

#[test]
fn a_new_program_depends_on_what_is_asked_for() {
    let folder = folder();
    let started = |arguments: &[&str]| {
        let program = folder.path().join("program");
        let _ = fs::remove_dir_all(&program);
        // A folder that is empty will do.
        fs::create_dir(&program).expect("a folder");
        let output = headstart(&[&["new", &*program.to_string_lossy()], arguments].concat());
        assert!(output.status.success(), "{output:?}");
        let manifest = fs::read_to_string(program.join("Cargo.toml")).expect("a manifest");
        manifest.parse::<toml::Table>().expect("TOML")
    };
    let published = started(&[]);
    assert_eq!(
        published["dependencies"]["headstart"].as_str(),
        Some(env!("CARGO_PKG_VERSION"))
    );
    assert!(!published.contains_key("workspace"));
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let library = fs::canonicalize(checkout.join("headstart")).expect("the library");
    // The checkout and its package will do.
    for path in [&checkout, &library] {
        let table = started(&["--path", &path.to_string_lossy()]);
        assert_eq!(
            table["dependencies"]["headstart"]["path"].as_str(),
            library.to_str()
        );
    }
    // Inside of somebody's workspace.
    write(folder.path(), "Cargo.toml", "[workspace]\n");
    assert!(started(&[]).contains_key("workspace"));
}

/// The disk is no fault of the user's, nor of how it was asked.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_the_machine_s() {
    refused(
        &["devices", "--json", "/dev/full"],
        3,
        &["/dev/full", "No space left"],
    );
    // Nobody makes folders there, root neither.
    refused(
        &["new", "/sys/my-kernel"],
        3,
        &[
            "`/sys/my-kernel` cannot be written",
            "a folder where you may write",
        ],
    );
}

#[test]
fn an_illegal_plan() {
    let folder = folder();
    let kernel = write(folder.path(), "prefix_sum.hsir", PREFIX_SUM);
    // The line of the load, and the rule: it may not be moved across the store.
    refused(
        &["emit", &kernel, "--plan", "data=rolling-registers:4"],
        2,
        &["prefix_sum.hsir:8", "data"],
    );
    refused(&["emit", "gather", "--plan", "unroll:full"], 2, &["gather.rs"]);
}

#[test]
fn an_index_out_of_bounds_in_the_users_data() {
    let folder = folder();
    let trace = write(
        folder.path(),
        "t.json",
        r#"[{"kernel":"Gather","pattern":[0,5,77],"delta":0,"count":9}]"#,
    );
    let set = ["--set", "groups=1", "--set", "items=2", "--set", "table=77"];
    for command in [["run", "gather"], ["tune", "gather"]] {
        let arguments: Vec<&str> = command
            .into_iter()
            .chain(["--trace", &trace])
            .chain(set)
            .collect();
        refused(&arguments, 1, &["gather.rs:", "values", "thread"]);
    }
}

#[test]
fn a_work_group_too_large_for_the_device() {
    refused(
        &["run", "gather", "--set", "group=2048"],
        3,
        &["2048", "too large for sim:h200", "at most 1024"],
    );
    let gen11 = ["tune", "gather", "--set", "group=512", "--device", "sim:gen11"];
    refused(&gen11, 3, &["512", "too large for sim:gen11", "at most 256"]);
}

#[test]
fn more_shared_memory_than_the_device_has() {
    refused(
        &["run", "gather", "--plan", "values=rolling-async:1024"],
        3,
        &["shared memory", "232448"],
    );
}

#[test]
fn a_truncated_or_hostile_kernel() {
    let folder = folder();
    // Every cut falls inside the kernel: its last two characters close it.
    for length in (0..PREFIX_SUM.len() - 2).step_by(17) {
        let kernel = write(folder.path(), "cut.hsir", &PREFIX_SUM[..length]);
        refused(&["run", &kernel], 1, &["cut.hsir"]);
    }
    let nested = format!("hsir 1\nkernel @deep() {{\n{}", "block 'b { ".repeat(100_000));
    for hostile in [
        nested.as_str(),
        "hsir 999999999999999999999\n",
        "hsir 1\nkernel @k(%x: i999) {\n  return\n}\n",
        "hsir 1\nkernel @k() {\n  %x = add %x, %x\n  return\n}\n",
        "hsir 1\nkernel @k() group 4294967295,4294967295,4294967295 {\n  return\n}\n",
        "\u{0}\u{1b}[2J\u{202e}",
    ] {
        let kernel = write(folder.path(), "hostile.hsir", hostile);
        refused(&["run", &kernel], 1, &["hostile.hsir"]);
    }
    fs::write(folder.path().join("bytes.hsir"), [0xff, 0xfe, 0x00]).expect("written");
    let kernel = folder.path().join("bytes.hsir");
    refused(&["run", &kernel.to_string_lossy()], 1, &["UTF-8"]);
}

#[test]
fn an_endless_kernel_ends() {
    let folder = folder();
    let text = "hsir 1\nkernel @endless() group 32,1,1 {\n  loop 'l () {\n    continue\n  }\n  return\n}\n";
    let kernel = write(folder.path(), "endless.hsir", text);
    let launch = write(folder.path(), "launch.toml", "groups = 1\n");
    refused(
        &["run", &kernel, "--launch", &launch, "--device", "sim:h200"],
        1,
        &["endless.hsir", "has run 268435456 operations and has not ended"],
    );
}

/// A kernel with a loop that does not end.
const ENDLESS: &str = "hsir 1
kernel @spin(%data: ptr.global i32[%length] align 4 unaliased, %length: i64) group 32,1,1 {
  load @data
  %sum = loop 'scan (%i = 0:i64, %sum0 = 0:i32) -> i32 {
    %more = le.s 0:i64, %i
    if %more { yield } else { break %sum0 }
    %x = load i32 %data, @data
    %sum1 = add %sum0, %x
    %next = and %i, 1:i64
    continue %next, %sum1
  }
  store %data, %sum
  return
}
";

#[test]
fn steps_are_limited_as_asked() {
    let folder = folder();
    let kernel = write(folder.path(), "spin.hsir", ENDLESS);
    let launch = "kernel = \"spin\"\ngroups = 1\ngroup = [32, 1, 1]\n[parameters.data]\nlength = 64\nfill = \"zero\"\n\
                  output = \"bits\"\n[parameters.length]\nvalue = 64\n";
    let launch = write(folder.path(), "launch.toml", launch);
    for command in ["run", "tune", "advise"] {
        let on = [
            "--launch",
            &launch,
            "--device",
            "sim:h200",
            "--max-steps",
            "100000",
        ];
        refused(
            &[&[command, &kernel], &on[..]].concat(),
            1,
            &[
                "spin.hsir:5:",
                "has run 100000 operations and has not ended",
                "`--max-steps`",
            ],
        );
    }
}

#[test]
fn a_truncated_or_hostile_trace() {
    let folder = folder();
    let whole = r#"[{"kernel":"Gather","pattern":[0,1,2],"delta":1,"count":2}]"#;
    let cuts = (0..whole.len() - 1).map(|length| &whole[..length]);
    let hostile = [
        r#"[{"kernel":"Gather","pattern":[-1],"delta":1,"count":2}]"#,
        r#"[{"kernel":"Gather","pattern":[0],"delta":9999999999,"count":9999999999}]"#,
        r#"[{"kernel":"Scatter","pattern":[0],"delta":1,"count":2}]"#,
        r#"{"kernel":"Gather"}"#,
        "[[[[[[",
    ];
    for text in cuts.step_by(7).chain(hostile) {
        let trace = write(folder.path(), "t.json", text);
        refused(
            &["run", "gather", "--set", "groups=1", "--trace", &trace],
            1,
            &["t.json"],
        );
    }
}

#[test]
fn a_launch_file_that_does_not_fit() {
    let folder = folder();
    let kernel = write(folder.path(), "k.hsir", PREFIX_SUM);
    for (text, status, expected) in [
        ("groups = 4\nblock = 3", 1, "line 2"),
        ("[parameters.date]\nlength = 4", 2, "did you mean `data`?"),
        ("groups = 0", 2, "empty"),
        ("group = 64", 2, "requires"),
        (
            "[parameters.length]\nvalue = 8\n[parameters.data]\nlength = 4",
            2,
            "length",
        ),
    ] {
        let launch = write(folder.path(), "launch.toml", text);
        refused(&["run", &kernel, "--launch", &launch], status, &[expected]);
    }
    let small = ["tune", "gather", "--model", "dram.size=1"];
    refused(
        &small,
        3,
        &["the buffers of the launch take", "sim:h200", "has 1.07 GB"],
    );
}

#[test]
fn an_output_that_cannot_be_written_is_said_before_the_work() {
    let folder = folder();
    let missing = folder
        .path()
        .join("no/such/report.json")
        .to_string_lossy()
        .into_owned();
    let occupied = folder.path().to_string_lossy().into_owned();
    let started = Instant::now();
    for option in ["--json", "--html"] {
        refused(
            &["tune", "gather", option, &missing],
            2,
            &[option, "there is no folder"],
        );
        refused(
            &["tune", "gather", option, &occupied],
            2,
            &[option, "it is a folder"],
        );
    }
    refused(
        &["emit", "gather", "--output", &missing],
        2,
        &["--output", "there is no folder"],
    );
    assert!(
        started.elapsed() < Duration::from_secs(20),
        "took {:?}",
        started.elapsed()
    );
    let both = folder.path().join("both").to_string_lossy().into_owned();
    refused(
        &["tune", "gather", "--json", &both, "--html", &both],
        2,
        &["the same file"],
    );
    assert_eq!(
        fs::read_dir(folder.path()).expect("a folder").count(),
        0,
        "something was left behind"
    );
}

#[test]
fn what_fails_leaves_no_file_and_keeps_an_old_one() {
    let folder = folder();
    let json = write(folder.path(), "report.json", "old");
    let html = folder.path().join("report.html").to_string_lossy().into_owned();
    let set = ["--set", "group=2048"];
    let arguments: Vec<&str> = ["tune", "gather", "--json", &json, "--html", &html]
        .into_iter()
        .chain(set)
        .collect();
    refused(&arguments, 3, &["too large"]);
    assert_eq!(fs::read_to_string(&json).expect("still there"), "old");
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);
}

#[test]
fn usage_is_refused_with_status_2() {
    for arguments in [&["tune"][..], &["fly"], &["tune", "gather", "--fast"], &[]] {
        let output = headstart(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(!output.stderr.is_empty());
    }
    assert_eq!(headstart(&["--help"]).status.code(), Some(0));
    assert_eq!(headstart(&["tune", "--help"]).status.code(), Some(0));
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    for arguments in [
        &["kernels"][..],
        &["devices"],
        &["devices", "--json", "-"],
        &["emit", "gather"],
    ] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_headstart"))
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command starts");
        // As `| head -0` does, before anything is written.
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "{arguments:?} ended with {}: {said}",
            output.status
        );
        assert!(said.is_empty(), "{arguments:?} said: {said}");
    }
}

#[test]
fn advice_from_what_is_no_profile() {
    let folder = folder();
    let empty = write(folder.path(), "empty.csv", "");
    let words = write(folder.path(), "words.csv", "nothing to see\n");
    let cut = write(folder.path(), "cut.csv", "\"ID\",\"Kernel Name\"\n\"0\",\"k");
    let bare = write(folder.path(), "bare.csv", "\"ID\",\"Kernel Name\"\n\"0\",\"k\"\n");
    refused(
        &["advise", "--ncu", "no-such.csv"],
        2,
        &["no-such.csv", "cannot be read"],
    );
    refused(
        &["advise", "--ncu", &empty],
        1,
        &["empty.csv", "the profile is empty"],
    );
    refused(
        &["advise", "--ncu", &words],
        1,
        &["words.csv", "ncu --csv --page raw"],
    );
    refused(&["advise", "--ncu", &cut], 1, &["cut.csv", "the whole file"]);
    refused(
        &["advise", "--ncu", &bare],
        1,
        &["bare.csv", "no duration", "gpu__time_duration.sum"],
    );
    refused(
        &["advise", "--ncu", &format!("{bare}#x")],
        2,
        &["not a launch of a profile"],
    );
    refused(
        &["advise", "--ncu", &format!("{bare}#7")],
        2,
        &["no launch 7", "0 to 0"],
    );
    refused(
        &["advise", "--ncu", &bare, "--set", "items=4"],
        2,
        &["for a kernel"],
    );
    refused(&["advise", "--vtune", &words], 1, &["words.csv", "vtune -report"]);
    refused(
        &["advise", "gather", "--share", "1.5"],
        2,
        &["--share 1.5", "at most 1"],
    );
    refused(&["advise", "gather", "--share", "NaN"], 2, &["not a share"]);
    refused(&["advise", "gathr"], 2, &["did you mean `gather`?"]);
}

#[test]
fn occupancy_tells_both_accounts_of_intel_s_rules() {
    let run = |arguments: &[&str]| {
        let output = headstart(arguments);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("text")
    };
    let guide = [
        "occupancy",
        "--device",
        "sim:gen11",
        "--group",
        "448",
        "--sub-group",
        "8",
        "--barrier",
    ];
    let text = run(&guide);
    for expected in [
        "disagree",
        "Intel's calculator: 0",
        "the optimization guide: 1",
        "32 to 448",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let json: serde_json::Value =
        serde_json::from_str(&run(&[&guide[..], &["--json", "-"]].concat())).expect("JSON");
    assert_eq!(json["groups_per_core"], 0);
    assert_eq!(json["guide"]["groups_per_core"], 1);
    let json: serde_json::Value = serde_json::from_str(&run(&[
        "occupancy",
        "--device",
        "sim:a100",
        "--group",
        "256",
        "--registers",
        "65",
        "--json",
        "-",
    ]))
    .expect("JSON");
    assert_eq!(json["groups_per_core"], 3);
    assert_eq!(json["occupancy"], 0.375);
    assert_eq!(json["limit"], "registers");
}

#[test]
fn logs_that_are_none_and_parts_that_are_none() {
    let folder = folder();
    let notes = write(folder.path(), "notes.txt", "my notes\n");
    let log = folder.path().join("log.jsonl").to_string_lossy().into_owned();
    refused(
        &["tune", "gather", "--log", &notes],
        1,
        &["notes.txt`, line 1", "tune --log"],
    );
    assert_eq!(fs::read_to_string(&notes).expect("there"), "my notes\n");
    refused(
        &["tune", "gather", "--log", "no/such/log"],
        2,
        &["no/such/log", "cannot be used"],
    );
    refused(
        &["tune", "gather", "--log", &log, "--shard", "3/2"],
        2,
        &["`3/2`", "I from 1 to N"],
    );
    refused(&["merge", &notes, "--log", &log], 1, &["notes.txt`, line 1"]);
    refused(&["merge", "no-such-log", "--log", &log], 2, &["no-such-log"]);
    assert!(!Path::new(&log).exists());
}

/// A device that never ends and a pipe that nobody writes into, wherever a file can be named.
#[cfg(unix)]
#[test]
fn what_is_no_regular_file_is_not_read() {
    let folder = folder();
    let pipe = folder.path().join("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status();
    if !made.is_ok_and(|status| status.success()) {
        println!("skipped: no mkfifo");
        return;
    }
    // The name decides how a kernel or model is read.
    let named = |name: &str| {
        let path = folder.path().join(name);
        std::os::unix::fs::symlink(&pipe, &path).expect("linked");
        path.to_string_lossy().into_owned()
    };
    let (hsir, ptx, model) = (named("a.hsir"), named("a.ptx"), named("a.toml"));
    let pipe = pipe.to_string_lossy().into_owned();
    let zero = folder.path().join("zero.hsir");
    std::os::unix::fs::symlink("/dev/zero", &zero).expect("linked");
    let zero = zero.to_string_lossy().into_owned();
    let kernel = write(folder.path(), "k.hsir", "hsir 1\nkernel @k() {\n  return\n}\n");
    let all: [&[&str]; 9] = [
        &["run", &hsir],
        &["run", &ptx],
        &["run", &zero],
        &["run", &kernel, "--launch", &pipe],
        &["run", &kernel, "--launch", "/dev/zero"],
        &["run", "gather", "--device", &model],
        &[
            "tune", "gather", "--set", "items=8", "--plans", "unroll:2", "--log", &pipe,
        ],
        &["advise", "--ncu", "/dev/zero"],
        &["merge", &pipe, "--log", "never.jsonl"],
    ];
    for arguments in all {
        let output = headstart(arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            matches!(output.status.code(), Some(1 | 2)),
            "{arguments:?}: {said}"
        );
        assert!(said.contains("not a regular file"), "{arguments:?}: {said}");
    }
}

/// A library of the driver's name without the driver's functions.
#[test]
fn a_library_that_is_no_driver() {
    let folder = folder();
    let source = write(folder.path(), "empty.c", "int headstart_test;\n");
    let library = folder.path().join("libcuda.so.1");
    let built = Command::new("cc")
        .args(["-shared", "-o"])
        .arg(&library)
        .arg(source)
        .status();
    if !built.is_ok_and(|status| status.success()) {
        println!("skipped: no C compiler");
        return;
    }
    std::fs::copy(&library, folder.path().join("libcuda.so")).expect("copied");
    let run = |device: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_headstart"))
            .args(["run", "gather", "--set", "items=4"])
            .args(device)
            .env("LD_LIBRARY_PATH", folder.path())
            .output()
            .expect("it starts");
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    let (status, said) = run(&["--device", "cuda:0"]);
    assert_eq!(status, Some(3), "{said}");
    assert!(
        said.contains("has no `cu") && !said.contains("panicked"),
        "{said}"
    );
    let (status, said) = run(&[]);
    assert_eq!(status, Some(0), "{said}");
}

#[test]
fn numbers_of_a_model_that_divide() {
    for (number, why) in [
        ("registers.pooled.granule=0", "must not be 0"),
        ("shared.granule=0", "power of two"),
    ] {
        let asked = [
            "occupancy",
            "--device",
            "sim:h200",
            "--group",
            "128",
            "--model",
            number,
        ];
        refused(&asked, 2, &[why]);
    }
    // Nothing is kept back: a work-group without shared memory takes none.
    let output = headstart(&[
        "run",
        "gather",
        "--set",
        "items=4",
        "--model",
        "shared.reserved=0",
    ]);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn what_cannot_be_compared() {
    let folder = folder();
    let (empty, list) = (
        write(folder.path(), "empty.json", ""),
        write(folder.path(), "list.json", "[1, 2]"),
    );
    let report = "a file that `headstart tune --json FILE` wrote";
    refused(
        &["compare", "no.json", "none.json"],
        2,
        &["`no.json`", "cannot be read", report],
    );
    refused(
        &["compare", &empty, &list],
        1,
        &["empty.json", "not a report", report],
    );
    refused(
        &["compare", &list, &list],
        1,
        &["list.json", "not a report", report],
    );
    refused(
        &["compare", &list, "gather"],
        2,
        &["is a report, and `gather` is not", "--kernel KERNEL"],
    );
    refused(
        &["compare", &list, &list, "--device", "sim:h200"],
        2,
        &["`--device` applies to kernels that are run", "leave it out"],
    );
    refused(
        &["compare", "none", "unroll:4"],
        2,
        &["`none` is a plan, and no kernel is given", "--kernel KERNEL"],
    );
    refused(
        &["compare", "gather", "gathr"],
        2,
        &["no kernel `gathr`", "did you mean `gather`?"],
    );
    refused(
        &["compare", "none", "unrol:4", "--kernel", "gather"],
        2,
        &["B: ", "did you mean `unroll`?"],
    );
    refused(
        &[
            "compare",
            "none",
            "valeus=cache:L2:1",
            "--kernel",
            "gather",
            "--device",
            "sim:h200",
        ],
        2,
        &["B: ", "valeus", "values"],
    );
    refused(
        &[
            "compare",
            "none",
            "none",
            "--kernel",
            "gather",
            "--device",
            "sim:pvc-1550",
            "--code",
            "ptx",
        ],
        3,
        &["does not run PTX", "--code ir"],
    );
}

/// The first half of each work-group meets at a barrier, and the other half ends.
const HALF_A_BARRIER: &str = "hsir 1
kernel @half(%data: ptr.global i32[%length] align 4 unaliased, %length: i64) group 128,1,1 {
  file #1 \"half.rs\"
  %own = id.local.x
  %i = extend.u %own to i64
  %low = lt.u %own, 64:i32
  if %low {
    barrier #1:7:9
    yield
  }
  %ptr = address %data + %i * 4
  store %ptr, %own
  return
}
";

#[test]
fn a_barrier_that_not_all_reach() {
    let folder = folder();
    let kernel = write(folder.path(), "half.hsir", HALF_A_BARRIER);
    let launch = write(
        folder.path(),
        "half.toml",
        "groups = 1\ngroup = 128\n[parameters.data]\nlength = 128\nfill = \"zero\"\noutput = \"bits\"\n",
    );
    let run = |device| ["run", &kernel, "--launch", &launch, "--device", device].map(str::to_owned);
    let words = run("sim:pvc-1550");
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    refused(
        &words,
        1,
        &[
            "half.rs:7:9: ",
            "reaches a barrier that work-item 64 does not reach",
            "on this device all",
        ],
    );
    // NVIDIA's do without those that have ended.
    let words = run("sim:h200");
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let output = headstart(&words);
    assert!(output.status.success(), "{output:?}");
}

/// A stand-in for a program: what it leaves is what a real one left.
#[cfg(unix)]
#[test]
fn programs_that_leave_no_launch() {
    use std::os::unix::fs::PermissionsExt;

    let folder = folder();
    let script = |name: &str, text: &str| {
        let path = write(folder.path(), name, &format!("#!/bin/sh\n{text}\n"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a program");
        path
    };
    let idle = script("idle", "exit 0");
    let failing = script("failing", "exit 3");
    refused(
        &["tune", "--bin", &idle],
        1,
        &["launched no `#[kernel]`", "headstart capture"],
    );
    refused(&["kernels", "--bin", &failing], 1, &["failed, exit status: 3"]);
    refused(
        &["tune", "--bin", "no/such"],
        2,
        &["`no/such` cannot be run", "a built program"],
    );
    // A kernel whose launch was kept, and one whose launch could not be.
    let kernel = write(folder.path(), "half.hsir", HALF_A_BARRIER);
    let launch = write(
        folder.path(),
        "half.toml",
        "groups = [2, 1, 1]\ngroup = [128, 1, 1]\n[parameters.\"data\"]\nlength = 128\n[parameters.\"length\"]\nvalue = 128\n",
    );
    let two = script(
        "two",
        &format!(
            "cp {kernel} {launch} $HEADSTART_LAUNCHES\necho inside > $HEADSTART_LAUNCHES/other.refused\necho $1"
        ),
    );
    let output = headstart(&["kernels", "--bin", &two, "--", "loud"]);
    assert!(output.status.success(), "{output:?}");
    let (listed, said) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert_eq!(
        listed,
        "half  2 work-groups of 128 work-items, 512 bytes of data\n"
    );
    assert!(
        said.contains("no launch of `other` was recorded: inside"),
        "{said}"
    );
    refused(
        &["tune", "hafl", "--bin", &two],
        2,
        &["no kernel `hafl`", "did you mean `half`?"],
    );
}
