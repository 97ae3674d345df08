//! The entry's own asynchronous copies.

use headstart::device::sim::Simulator;
use headstart::front::ptx::import;
use headstart::tune::{FileSubject, LaunchFile, Subject};

use super::words_of;

/// An entry that loads `[a]` as constant and copies `[b]`; `after` follows.
fn entry(after: &str) -> String {
    format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n\
         .visible .entry k(.param .u64 out, .param .u64 a, .param .u64 b)\n{{\n\
         .reg .b32 %r<8>;\n.reg .b64 %d<8>;\n.shared .align 4 .b8 tile[256];\n\
         ld.param.u64 %d1, [out];\nld.param.u64 %d2, [a];\nld.param.u64 %d3, [b];\n\
         cvta.to.global.u64 %d1, %d1;\ncvta.to.global.u64 %d2, %d2;\ncvta.to.global.u64 %d3, %d3;\n\
         mov.u32 %r1, %tid.x;\nmul.wide.u32 %d4, %r1, 4;\nadd.s64 %d1, %d1, %d4;\nadd.s64 %d2, %d2, %d4;\nadd.s64 %d3, %d3, %d4;\n\
         mov.u32 %r2, tile;\nshl.b32 %r3, %r1, 2;\nadd.s32 %r2, %r2, %r3;\n\
         cp.async.ca.shared.global [%r2], [%d3], 4;\ncp.async.wait_all;\n\
         ld.global.nc.u32 %r4, [%d2];\nld.shared.u32 %r5, [%r2];\nadd.s32 %r6, %r4, %r5;\nst.global.u32 [%d1], %r6;\n\
         {after}ret;\n}}\n"
    )
}

const LAUNCH: &str = "groups = 1\ngroup = 64\n[parameters.out]\nlength = 64\n[parameters.a]\nlength = 64\n\
    fill = \"sequence\"\n[parameters.b]\nbuffer = \"a\"\n";

/// What the entry writes to `out`.
fn output(text: &str) -> headstart::Result<Vec<u32>> {
    let launch = LaunchFile::parse(LAUNCH, "launch.toml")?;
    let imported = import(text, "test.ptx", Some("k"), &launch.facts())?;
    let workload = FileSubject::of_module(imported, launch).workload()?;
    let device = Simulator::untimed();
    let (_, outputs) = workload.bind(&device)?.run(&device, &workload.kernel)?;
    Ok(words_of(&outputs[0]))
}

#[test]
fn memory_that_nothing_writes_may_be_behind_two_parameters() {
    // No copy is declared constant, so that only one of the two parameters is known to be only read.
    let doubles: Vec<u32> = (0..64).map(|item| 2 * item).collect();
    assert_eq!(output(&entry("")).expect("a launch"), doubles);
    let said = output(&entry("st.global.u32 [%d3], %r6;\n")).expect_err("it is written");
    assert!(said.to_string().contains("were given the same buffer"), "{said}");
}
