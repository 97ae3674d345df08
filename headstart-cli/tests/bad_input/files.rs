//! A file cannot be read or written. What fails leaves no file behind and keeps an old one.

use std::fs;
#[cfg(unix)]
use std::process::Command;
use std::time::{Duration, Instant};

#[cfg(unix)]
use crate::headstart;
use crate::{PREFIX_SUM, folder, refused, table, write};

#[test]
fn an_unknown_file() {
    table(
        "
        2 run no/such.hsir => `no/such.hsir` & cannot be read & headstart kernels
        2 run kernel.cubin => `kernel.cubin` & FILE.hsir
        2 run . => `.`
        2 run gather --trace no.json => no trace file `no.json` & amg_gpu
        2 run gather --launch x.toml => `--launch` is for kernels from a file
    ",
    );
    let folder = folder();
    let kernel = write(folder.path(), "k.hsir", PREFIX_SUM);
    table(&format!(
        "2 run {kernel} --launch no.toml => launch file cannot be read & `no.toml`"
    ));
}

/// A full disk is not the user's fault.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_the_machine_s() {
    table("3 devices --json /dev/full => /dev/full & No space left");
    // No user makes folders there, root neither.
    table("3 new /sys/my-kernel => `/sys/my-kernel` cannot be written & a folder where you may write");
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
    table(&format!(
        "2 emit gather --output {missing} => --output & there is no folder"
    ));
    assert!(
        started.elapsed() < Duration::from_secs(20),
        "took {:?}",
        started.elapsed()
    );
    let both = folder.path().join("both").to_string_lossy().into_owned();
    table(&format!(
        "2 tune gather --json {both} --html {both} => the same file"
    ));
    assert_eq!(
        fs::read_dir(folder.path()).expect("a folder").count(),
        0,
        "something was left behind"
    );
}

/// A file that the command reads is not replaced by what it writes.
#[test]
fn what_is_read_is_not_written() {
    let folder = folder();
    let kernel = write(folder.path(), "k.hsir", PREFIX_SUM);
    let launch = write(folder.path(), "launch.toml", "groups = 1");
    for command in [
        &["tune", &kernel, "--launch", &launch, "--html", &launch][..],
        &["run", &kernel, "--launch", &launch, "--json", &kernel],
        &["emit", &kernel, "--output", &kernel],
        &[
            "sweep",
            &kernel,
            "--over",
            "dram.latency=300,400",
            "--csv",
            &kernel,
        ],
        &["advise", &kernel, "--json", &kernel],
    ] {
        refused(command, 2, &["would replace", "which is read"]);
    }
    assert_eq!(fs::read_to_string(&kernel).expect("it is there"), PREFIX_SUM);
    assert_eq!(fs::read_to_string(&launch).expect("it is there"), "groups = 1");
}

/// What a launch file leaves open is made up, and that is said.
#[test]
fn what_is_made_up_is_said() {
    let folder = folder();
    let kernel = write(
        folder.path(),
        "k.hsir",
        "hsir 1\nkernel @store(%out: ptr.global i32[] align 4 unaliased, %n: i32) {\n  %i = id.local.x\n  \
         %j = extend.u %i to i64\n  %p = address %out + %j * 4\n  store %p, %n\n  return\n}\n",
    );
    let out = "[parameters.out]\nlength = 128\noutput = \"any\"\n";
    let said = |text: &str| {
        let launch = write(folder.path(), "launch.toml", text);
        let ran = headstart(&["run", &kernel, "--launch", &launch]);
        assert!(ran.status.success(), "{ran:?}");
        String::from_utf8_lossy(&ran.stderr).into_owned()
    };
    let open = said(out);
    assert!(
        open.contains("The launch file says nothing of `groups` (4), `n`: that is made up."),
        "{open}"
    );
    let whole = said(&format!("groups = 4\n{out}[parameters.n]\nvalue = 3\n"));
    assert!(!whole.contains("made up"), "{whole}");
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

/// Every option that names a file gets an endless device or a pipe without a writer.
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
    // A launch file may name a file with a buffer's contents.
    let contents = |name: &str, file: &str| {
        let text = format!("groups = 1\n[parameters.data]\nfile = {file:?}\nlength = 4\n");
        write(folder.path(), name, &text)
    };
    let scan = write(folder.path(), "scan.hsir", PREFIX_SUM);
    let (of_zeros, of_pipe) = (contents("zeros.toml", "/dev/zero"), contents("pipes.toml", &pipe));
    let of_npy = contents("npy.toml", &named("pipe.npy"));
    let all: [&[&str]; 12] = [
        &["run", &scan, "--launch", &of_zeros],
        &["run", &scan, "--launch", &of_pipe],
        &["run", &scan, "--launch", &of_npy],
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
