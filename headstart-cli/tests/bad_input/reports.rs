//! A profile, a log or a report is wrong: what `advise`, `merge` and `compare` read.

use std::fs;
use std::path::Path;

use crate::{folder, headstart, refused, table, write};

#[test]
fn advice_from_what_is_no_profile() {
    let folder = folder();
    let empty = write(folder.path(), "empty.csv", "");
    let words = write(folder.path(), "words.csv", "nothing to see\n");
    let cut = write(folder.path(), "cut.csv", "\"ID\",\"Kernel Name\"\n\"0\",\"k");
    let bare = write(folder.path(), "bare.csv", "\"ID\",\"Kernel Name\"\n\"0\",\"k\"\n");
    table(&format!(
        "
        2 advise --ncu no-such.csv => no-such.csv & cannot be read
        1 advise --ncu {empty} => empty.csv & the profile is empty
        1 advise --ncu {words} => words.csv & ncu --csv --page raw
        1 advise --ncu {cut} => cut.csv & the whole file
        1 advise --ncu {bare} => bare.csv & no duration & gpu__time_duration.sum
    "
    ));
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
    table(&format!(
        "
        2 advise --ncu {bare} --set items=4 => for a kernel
        1 advise --vtune {words} => words.csv & vtune -report
        2 advise gather --share 1.5 => --share 1.5 & at most 1
        2 advise gather --share NaN => not a share
        2 advise gathr => did you mean `gather`?
    "
    ));
}

/// A profile of the tests.
fn profile(name: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../headstart/tests/data/profiles");
    format!("{folder}/{name}")
}

#[test]
fn profiles_of_another_launch_and_of_no_device() {
    let recorded = profile("ncu-raw.csv");
    let gather = ["advise", "gather", "--ncu", &recorded, "--device", "sim:h200"];
    refused(
        &[&gather[..], &["--set", "groups=33"]].concat(),
        2,
        &[
            "another launch",
            "132 blocks of 128",
            "33 blocks of 128",
            "--profile-is-of-another-launch",
        ],
    );
    refused(
        &["advise", "--vtune", &profile("vtune-stalls.csv")],
        2,
        &["does not name its device", "--device sim:pvc-1550"],
    );
    table("2 advise --ncu run.ncu-rep => run.ncu-rep & ncu --import FILE.ncu-rep");
    // No model is of that GPU: which device to try plans on has to be said.
    let other = profile("ncu-details-8.6.csv#0");
    let gather = ["advise", "gather", "--ncu", &other, "--set", "groups=4096"];
    refused(
        &gather,
        2,
        &["compute capability 8.6", "no model is of", "--device"],
    );
    refused(
        &[&gather[..], &["--device", "sim:h200"]].concat(),
        2,
        &["4,096 blocks of 256", "4,096 blocks of 128"],
    );
}

/// A profile of Nsight Compute is reported in CUDA's terms, whatever device is named or not.
#[test]
fn nsight_s_terms_are_cuda_s() {
    for name in ["ncu-details-8.6.csv", "recorded-raw.csv"] {
        let output = headstart(&["advise", "--ncu", &profile(name)]);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(0), "{said}");
        for word in ["work-item", "work-group", "sub-group"] {
            assert!(!said.contains(word), "{word}: {said}");
        }
        assert!(said.contains("warps"), "{said}");
    }
}

#[test]
fn logs_that_are_none_and_parts_that_are_none() {
    let folder = folder();
    let notes = write(folder.path(), "notes.txt", "my notes\n");
    let log = folder.path().join("log.jsonl").to_string_lossy().into_owned();
    table(&format!(
        "1 tune gather --log {notes} => notes.txt`, line 1 & tune --log"
    ));
    assert_eq!(fs::read_to_string(&notes).expect("there"), "my notes\n");
    table(&format!(
        "
        2 tune gather --log no/such/log => no/such/log & there is no folder `no/such`
        2 tune gather --log {log} --shard 3/2 => `3/2` & I from 1 to N
        1 merge {notes} --log {log} => notes.txt`, line 1
        2 merge no-such-log --log {log} => no-such-log
    "
    ));
    assert!(!Path::new(&log).exists());
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
    table(&format!(
        "
        2 compare {list} gather => is a report, and `gather` is not & --kernel KERNEL
        2 compare {list} {list} --device sim:h200 => `--device` applies to kernels that are run & leave it out
        2 compare none unroll:4 => `none` is a plan, and no kernel is given & --kernel KERNEL
        2 compare gather gathr => no kernel `gathr` & did you mean `gather`?
        2 compare none unrol:4 --kernel gather => B:  & did you mean `unroll`?
        2 compare none valeus=cache:L2:1 --kernel gather --device sim:h200 => B:  & valeus & values
        3 compare none none --kernel gather --device sim:pvc-1550 --code ptx => does not run PTX & --code ir
    "
    ));
}
