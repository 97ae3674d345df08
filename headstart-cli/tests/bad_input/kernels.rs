//! The kernel is wrong: unknown, broken text, or a fault that only a run shows.

use std::fs;

use crate::{HALF_A_BARRIER, PREFIX_SUM, folder, headstart, refused, table, write};

#[test]
fn an_unknown_kernel() {
    table(
        "
        2 tune gathr => no kernel `gathr` & did you mean `gather`? & FILE.hsir
        2 run matmul => no kernel `matmul` & article & gather
    ",
    );
    refused(&["emit", ""], 2, &["no kernel ``"]);
    refused(&["emit", "a\nb\u{1b}[31m"], 2, &["no kernel `a\\nb"]);
}

#[test]
fn a_truncated_or_hostile_kernel() {
    let folder = folder();
    // Every cut falls inside the kernel: its last two characters close it.
    for length in (0..PREFIX_SUM.len() - 2).step_by(17) {
        let kernel = write(folder.path(), "cut.hsir", &PREFIX_SUM[..length]);
        table(&format!("1 run {kernel} => cut.hsir"));
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
        table(&format!("1 run {kernel} => hostile.hsir"));
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
    table(&format!(
        "1 run {kernel} --launch {launch} --device sim:h200 => endless.hsir & has run 268435456 operations and has not ended"
    ));
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
