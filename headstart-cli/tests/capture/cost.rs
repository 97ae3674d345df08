//! What a launch costs on the host.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use headstart_testing::tools;

use crate::place::{Place, becomes_a_better_one, ptx, text};

/// Instructions of the host for each launch of a program, of 256 and of 1,280, over a driver whose launches do nothing. `taken` is
/// what is said of this many. The better kernel's time is known after the first 64.
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
    // One long launch of 64 is compared, and later one of 256.
    let taken = |launches: u32| {
        let taken = launches - 4 - (launches / 256 - 1);
        format!("headstart: gather: {taken} of {launches} launches")
    };
    let of = |first: &[&str]| instructions_of_a_launch(&place, &valgrind, first, &program, &taken);
    let (alone, exec) = (of(&[]), of(&["exec", "--always", "--with", "cap"]));
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
        let taken = launches - 4 - (launches / 256 - 1);
        format!("headstart: pooled: {taken} of {launches} launches")
    };
    for (sizes, bar) in [("", 12_000.0), ("same", 3_500.0)] {
        let program = |launches: u32| {
            let words = ["./pooled", &ptx, "5", &launches.to_string(), "apart", sizes];
            let words = words.into_iter().filter(|word| !word.is_empty());
            words.map(str::to_owned).collect()
        };
        let of = |first: &[&str]| instructions_of_a_launch(&place, &valgrind, first, &program, &taken);
        let (alone, exec) = (of(&[]), of(&["exec", "--always", "--with", "cap"]));
        println!("{alone:.0} instructions a launch, {exec:.0} with `exec` {sizes}");
        assert!(alone > 0.0 && exec - alone < bar, "{alone} and {exec} {sizes}");
    }
}
