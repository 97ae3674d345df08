//! Barriers with phases, and bulk copies that complete on them: `phases.ptx` against the same in Rust, as it is and written back
//! into its module; what is wrong is found and named. With a GPU, its results are compared, too.

use headstart::device::cuda::device::CudaDevice;
use headstart::device::sim::functional::Options;
use headstart::front::ptx::import;
use headstart::prefetch::Plan;
use headstart::tune::{self, FileSubject, LaunchFile, Subject, Workload};
use headstart_testing::ptxas::Ptxas;
use headstart_testing::{run, run_text};

const MODULE: &str = include_str!("phases.ptx");

struct Entry {
    name: &'static str,
    launch: String,
    expected: Vec<u32>,
}

fn launch(group: u32, output: u32, input: u32, rounds: u32) -> String {
    let mut text = format!(
        "groups = 1\ngroup = {group}\n[parameters.param_0]\nlength = {output}\nfill = \"zero\"\noutput = \"bits\"\n"
    );
    if input > 0 {
        text += &format!(
            "[parameters.param_1]\nlength = {input}\nfill = \"sequence\"\n[parameters.param_2]\nvalue = {rounds}\n"
        );
    }
    text
}

/// Sums of 64 work-items that pass words to each other.
fn passed(rounds: u32) -> Vec<u32> {
    let mut sums = vec![0u32; 64];
    for round in 0..rounds {
        let words: Vec<u32> = (0..64u32)
            .zip(&sums)
            .map(|(item, sum)| (item * round).wrapping_add(*sum))
            .collect();
        for (item, sum) in sums.iter_mut().enumerate() {
            *sum = sum.wrapping_add(words[(item + 33) % 64]);
        }
    }
    sums
}

/// Sums of the warp that reads what the other one writes.
fn handed(rounds: u32) -> Vec<u32> {
    let sum = |lane: u32| {
        (0..rounds).fold(0u32, |sum, round| {
            sum.wrapping_mul(3).wrapping_add(round * 32 + (lane ^ 31))
        })
    };
    (0..32).map(sum).collect()
}

/// Sums of 64 work-items over tiles of 128 words.
fn fetched(tiles: u32) -> Vec<u32> {
    let sum = |item: u32| {
        (0..tiles).fold(0u32, |sum, tile| {
            let first = tile * 128 + (item ^ 5);
            sum.wrapping_mul(5).wrapping_add(first).wrapping_add(first + 64)
        })
    };
    (0..64).map(sum).collect()
}

fn entries() -> [Entry; 4] {
    let entry = |name, launch, expected| Entry {
        name,
        launch,
        expected,
    };
    [
        entry("passed", launch(64, 64, 64, 9), passed(9)),
        entry("handed", launch(64, 32, 224, 7), handed(7)),
        entry("counted", launch(32, 9, 0, 0), vec![5, 4, 0, 1, 1, 1, 0, 4, 1]),
        entry("fetched", launch(64, 64, 640, 5), fetched(5)),
    ]
}

fn workload(module: &str, name: &str, launch: &str) -> Workload {
    let launch = LaunchFile::parse(launch, "launch.toml").expect("a launch file");
    let imported = import(module, "phases.ptx", Some(name), &launch.facts());
    let imported = imported.unwrap_or_else(|error| panic!("{name}: {error}"));
    FileSubject::of_module(imported, launch)
        .workload()
        .expect("a workload")
}

#[test]
fn phases_end_when_all_have_come() {
    let ptxas = Ptxas::find();
    let gpu = CudaDevice::open(0).ok();
    for entry in entries() {
        let name = entry.name;
        let plain = LaunchFile::parse(&entry.launch, "launch.toml").expect("a launch file");
        let module = tune::planned_module(MODULE, "phases.ptx", Some(name), &plain, &Plan::none(), None);
        let module = module.unwrap_or_else(|error| panic!("{name}: {error}"));
        if let Some(ptxas) = &ptxas {
            ptxas
                .assemble_module(&module.text)
                .unwrap_or_else(|said| panic!("{name}: {said}\n{}", module.text));
        }
        for (text, what) in [(MODULE, "as it is"), (&module.text, "written again")] {
            let workload = workload(text, name, &entry.launch);
            let outputs = run(&workload, &workload.kernel, Options::CHECKING);
            let outputs = outputs.unwrap_or_else(|error| panic!("{name} {what}: {error}"));
            let (_, bytes) = outputs
                .iter()
                .find(|(name, _)| name == "param_0")
                .expect("an output");
            assert_eq!(super::words_of(bytes), entry.expected, "{name} {what}");
            let Some(gpu) = &gpu else { continue };
            for _ in 0..20 {
                let found =
                    run_text(gpu, &workload, text, name).unwrap_or_else(|error| panic!("{name}: {error}"));
                assert_eq!(
                    super::words_of(&found[0]),
                    entry.expected,
                    "{name} {what}, on the GPU"
                );
            }
        }
        let ran = if gpu.is_some() { ", on the GPU, too" } else { "" };
        println!("{name}: {} words{ran}", entry.expected.len());
    }
}

/// The message for a change of an entry.
fn said(name: &str, change: &[(&str, &str)]) -> String {
    let mut text = MODULE.to_owned();
    let start = text.find(&format!(".entry {name}(")).expect("an entry");
    let mut entry = text.split_off(start);
    for (from, to) in change {
        assert!(entry.contains(from), "{from}");
        entry = entry.replacen(from, to, 1);
    }
    text += &entry;
    let all = entries();
    let launch = &all
        .iter()
        .find(|entry| entry.name == name)
        .expect("it is there")
        .launch;
    let workload = workload(&text, name, launch);
    let outputs = run(&workload, &workload.kernel, Options::CHECKING);
    match outputs {
        Ok(_) => panic!("{name}, {change:?}: nothing is wrong"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn what_is_wrong_with_phases_is_named() {
    for (name, change, parts) in [
        // The barrier is not initialised.
        (
            "passed",
            &[("mbarrier.init.shared.b64 [%r3+8], 64;", "")][..],
            &["passed_bars[1]", "never written"][..],
        ),
        (
            "counted",
            &[("mbarrier.init.shared.b64 [%r2], 5;", "st.shared.u64 [%r2], 0;")],
            &["counted_bar", "no barrier", "mbarrier.init"],
        ),
        (
            "counted",
            &[(
                "mbarrier.init.shared.b64 [%r2], 5;",
                "mbarrier.init.shared.b64 [%r2], 0;",
            )],
            &["counted_bar", "initialised for 0 arrivals"],
        ),
        // More come than the phase expects.
        (
            "counted",
            &[(
                "mbarrier.arrive.shared.b64 %rd3, [%r2], 2;",
                "mbarrier.arrive.shared.b64 %rd3, [%r2], 7;",
            )],
            &["counted_bar", "arrived at 7 times", "expects 5", "4 of which"],
        ),
        (
            "counted",
            &[("[%r2], 3;", "[%r2], 4;")],
            &["noComplete", "last arrival"],
        ),
        // The state of a phase long past.
        (
            "counted",
            &[(
                "mbarrier.inval.shared.b64 [%r2];",
                "mbarrier.test_wait.shared.b64 %p2, [%r2], %rd3;\nselp.u32 %r5, 1, 0, %p2;\nst.global.u32 [%rd1+8], %r5;",
            )],
            &["neither its present nor its last"],
        ),
        // The phase is not waited for.
        (
            "passed",
            &[("@!%p2 bra $full;", "")],
            &["passed_tile", "never written"],
        ),
        // An arrival that does not release orders nothing.
        (
            "passed",
            &[("mbarrier.arrive.release.cta", "mbarrier.arrive.relaxed.cta")],
            &["passed_tile", "with no barrier between"],
        ),
        // One arrival is missing.
        (
            "handed",
            &[(
                "mbarrier.init.shared.b64 [%r3], 32;",
                "mbarrier.init.shared.b64 [%r3], 33;",
            )],
            &["waits", "ever"],
        ),
        // A copy's data are used before they have come.
        ("fetched", &[("@!%p5 bra $come;", "")], &["fetched_tiles"]),
        (
            "fetched",
            &[("[%r4], [%rd2], 512, [%r3];", "[%r4], [%rd2], 520, [%r3];")],
            &["bulk copy of 520 bytes", "multiples of 16"],
        ),
        (
            "fetched",
            &[(
                "mbarrier.arrive.expect_tx.shared.b64 %rd4, [%r3], 512;",
                "mbarrier.arrive.expect_tx.shared.b64 %rd4, [%r3], 528;",
            )],
            &["waits", "ever"],
        ),
    ] {
        let said = said(name, change);
        for part in parts {
            assert!(
                said.contains(part),
                "{name}, {change:?}: {part} is not in `{said}`"
            );
        }
    }
}
