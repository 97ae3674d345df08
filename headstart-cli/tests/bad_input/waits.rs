//! Work-groups that wait for each other, where the device does not hold all of them at once: every command ends, and says so.

use std::process::{Command, Output};
use std::time::{Duration, Instant};

use crate::{folder, headstart, refused, write};

/// Each thread adds up `n` values, all blocks meet, and thread 0 of each adds up the sums of the next block.
const MEETING: &str = "//
.version 8.0
.target sm_90
.address_size 64
.visible .entry meeting(.param .u64 values, .param .u64 sums, .param .u64 bar, .param .u32 n)
{
	.reg .pred %p<9>;
	.reg .b32 %r<19>;
	.reg .f32 %f<9>;
	.reg .b64 %d<19>;
	ld.param.u64 %d1, [values];
	ld.param.u64 %d2, [sums];
	ld.param.u64 %d3, [bar];
	ld.param.u32 %r1, [n];
	cvta.to.global.u64 %d4, %d1;
	cvta.to.global.u64 %d5, %d2;
	cvta.to.global.u64 %d6, %d3;
	mov.u32 %r2, %ctaid.x;
	mov.u32 %r3, %ntid.x;
	mov.u32 %r4, %tid.x;
	mov.u32 %r5, %nctaid.x;
	mad.lo.s32 %r6, %r2, %r3, %r4;
	mov.f32 %f1, 0f00000000;
	mov.u32 %r7, 0;
	setp.lt.s32 %p1, %r1, 1;
	@%p1 bra ADDED;
ADD:
	add.s32 %r8, %r6, %r7;
	and.b32 %r9, %r8, 4095;
	mul.wide.u32 %d7, %r9, 4;
	add.s64 %d8, %d4, %d7;
	ld.global.f32 %f2, [%d8];
	add.rn.f32 %f1, %f1, %f2;
	add.s32 %r7, %r7, 1;
	setp.lt.s32 %p2, %r7, %r1;
	@%p2 bra ADD;
ADDED:
	mul.wide.u32 %d9, %r6, 4;
	add.s64 %d10, %d5, %d9;
	st.global.f32 [%d10], %f1;
	bar.sync 0;
	setp.ne.s32 %p3, %r4, 0;
	@%p3 bra MET;
	membar.gl;
	atom.global.add.u32 %r10, [%d6], 1;
SPIN:
	ld.volatile.global.u32 %r11, [%d6];
	setp.lt.u32 %p4, %r11, %r5;
	@%p4 bra SPIN;
	membar.gl;
MET:
	bar.sync 0;
	ret;
}
";

/// The line of the loop that waits.
const SPIN: &str = "meeting.ptx:47: ";

/// A launch file for this many blocks of this many threads.
fn launch(groups: u32, group: u32) -> String {
    let items = groups * group;
    format!(
        "kernel = \"meeting\"\ngroups = {groups}\ngroup = {group}\nreadonly = [\"values\"]
        [parameters.values]\nlength = 4096\nfill = \"random\"\nrange = [0, 4]
        [parameters.sums]\nlength = {items}\nfill = \"zero\"\noutput = \"bits\"
        [parameters.bar]\nlength = 1\nfill = \"zero\"\noutput = \"bits\"
        [parameters.n]\nvalue = 40\n"
    )
}

const ONE_CORE: [&str; 4] = ["--device", "sim:h200", "--model", "core.count=1"];

/// A core of an H200 holds two blocks of 1,024 threads.
#[test]
fn a_launch_that_waits_for_blocks_that_never_start() {
    let folder = folder();
    let module = write(folder.path(), "meeting.ptx", MEETING) + ":meeting";
    let all = write(folder.path(), "all.toml", &launch(2, 1024));
    let output = headstart(&[&["run", &module, "--launch", &all][..], &ONE_CORE].concat());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let more = write(folder.path(), "more.toml", &launch(16, 1024));
    for command in ["run", "advise"] {
        let started = Instant::now();
        let waits = [command, &module, "--launch", &more];
        let expected = [
            // Any line of the loop.
            "meeting.ptx:4",
            "all blocks of `meeting` that are resident wait in loops for ever",
            "2 of this launch resident at once, and 14 have not begun",
            "launch fewer",
        ];
        refused(&[&waits[..], &ONE_CORE].concat(), 1, &expected);
        assert!(
            started.elapsed() < Duration::from_secs(30),
            "{:?}",
            started.elapsed()
        );
    }
}

/// How many registers a plan takes says only NVIDIA's assembler, where there is no GPU.
#[test]
fn plans_are_refused_where_nothing_says_what_they_take() {
    let folder = folder();
    let module = write(folder.path(), "meeting.ptx", MEETING) + ":meeting";
    let launch = write(folder.path(), "launch.toml", &launch(16, 128));
    let expected = [
        SPIN,
        "its blocks wait for each other at",
        "NVIDIA's assembler, named by HEADSTART_PTXAS",
    ];
    for plan in [
        "unroll:8",
        "registers:64",
        "values=cache:L2:4",
        "values=rolling-shared:4",
    ] {
        for command in ["run", "emit"] {
            let command = [
                command, &module, "--launch", &launch, "--device", "sim:h200", "--plan", plan,
            ];
            refused(&command, 2, &expected);
        }
    }
    refused(
        &["tune", &module, "--launch", &launch, "--device", "sim:h200"],
        2,
        &expected,
    );
}

/// `headstart` with NVIDIA's assembler; none where there is none.
fn with_assembler(arguments: &[&str]) -> Option<Output> {
    let ptxas = headstart_testing::tools::program("ptxas")?;
    let mut command = Command::new(env!("CARGO_BIN_EXE_headstart"));
    let output = command.args(arguments).env("HEADSTART_PTXAS", ptxas).output();
    Some(output.expect("the command starts"))
}

#[test]
fn plans_leave_as_many_blocks_resident() {
    let folder = folder();
    let module = write(folder.path(), "meeting.ptx", MEETING) + ":meeting";
    let launch = write(folder.path(), "launch.toml", &launch(16, 128));
    let on = [
        "--launch",
        &launch,
        "--device",
        "sim:h200",
        "--model",
        "core.count=1",
    ];
    let plans = "unroll:2;unroll:16,values=rolling-registers:16;values=rolling-shared:16;values=cache:L2:2";
    let tune = ["tune", &module, "--plans", plans, "--json", "-"];
    let Some(output) = with_assembler(&[&tune[..], &on].concat()) else {
        println!("skipped: no ptxas");
        return;
    };
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("a report");
    assert_eq!(report["waits"][0]["waits_for"], "work-group", "{report}");
    let place = report["waits"][0]["place"].as_str().expect("a place");
    assert!(place.contains(SPIN.trim_end_matches(": ")), "{place}");
    let trial = |wanted: &str| {
        let trials = report["trials"].as_array().expect("trials");
        let is_it = |trial: &&serde_json::Value| {
            trial["plan"]
                .as_str()
                .is_some_and(|plan| plan.starts_with(wanted))
        };
        trials
            .iter()
            .find(is_it)
            .unwrap_or_else(|| panic!("{wanted}: {report}"))
            .clone()
    };
    for kept in ["unroll:2", "values=cache:L2:2"] {
        assert_eq!(trial(kept)["status"], "ok", "{report}");
    }
    // Sixteen work-groups of 128 have 32 registers each, which sixteen values in flight do not fit into.
    for (refused, why) in [
        (
            "unroll:16,values=rolling-registers:16",
            "work-groups resident on a core instead of 16, and its work-groups wait",
        ),
        (
            "values=rolling-shared:16",
            "work-groups resident on a core instead of 16, and its work-groups wait",
        ),
    ] {
        assert_eq!(trial(refused)["status"], "rejected", "{report}");
        let reason = trial(refused)["reason"].to_string();
        assert!(reason.contains(why), "{reason}");
    }
    // What is written says what it rests on.
    let emit = ["emit", &module, "--target", "ptx", "--plan", "unroll:2"];
    let text = with_assembler(&[&emit[..], &on].concat()).expect("it was there");
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(
        text.contains(
            "// Taken for granted: a core holds as many work-groups of each launch as of the entry as it was"
        ),
        "{text}"
    );
}
