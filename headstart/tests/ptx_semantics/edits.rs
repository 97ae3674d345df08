//! Edited modules are read again: the text that leaves is the kernel that was checked.

use headstart::tune::{LaunchFile, planned_module};

/// Two loops over one array; `param_0` is the output.
const TWO_LOOPS: &str = "\
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 k_param_0, .param .u64 k_param_1, .param .u32 k_param_2)
{
\t.reg .pred %p;
\t.reg .b32 %r<8>;
\t.reg .b64 %rd<8>;
\tld.param.u64 %rd0, [k_param_0];
\tld.param.u64 %rd1, [k_param_1];
\tld.param.u32 %r0, [k_param_2];
\tcvta.to.global.u64 %rd0, %rd0;
\tcvta.to.global.u64 %rd1, %rd1;
\tmov.u32 %r1, %tid.x;
\tmul.wide.u32 %rd2, %r1, 4;
\tadd.s64 %rd0, %rd0, %rd2;
\tadd.s64 %rd1, %rd1, %rd2;
\tmov.u32 %r2, 0;
\tmov.u32 %r3, 0;
FIRST:
\tmul.wide.u32 %rd3, %r3, 128;
\tadd.s64 %rd3, %rd1, %rd3;
\tld.global.u32 %r4, [%rd3];
\tadd.u32 %r2, %r2, %r4;
\tadd.u32 %r3, %r3, 1;
\tsetp.lt.u32 %p, %r3, %r0;
\t@%p bra FIRST;
\tmov.u32 %r3, 0;
SECOND:
\tmul.wide.u32 %rd3, %r3, 128;
\tadd.s64 %rd3, %rd1, %rd3;
\tld.global.u32 %r4, [%rd3];
\txor.b32 %r2, %r2, %r4;
\tadd.u32 %r3, %r3, 1;
\tsetp.lt.u32 %p, %r3, %r0;
\t@%p bra SECOND;
\tst.global.u32 [%rd0], %r2;
\tret;
}
";

const LAUNCH: &str = "\
groups = 2
group = 32
readonly = [\"param_1\"]
unaliased = [\"param_0\"]
no_overflow = true
[parameters.param_0]
length = 32
fill = \"zero\"
output = \"bits\"
[parameters.param_1]
length = 1024
fill = \"indices\"
below = 1000
[parameters.param_2]
value = 32
";

/// The module after a plan, checked on perturbed launches as it is written.
fn planned(text: &str, plan: &str) -> String {
    let launch = LaunchFile::parse(LAUNCH, "launch.toml").expect("a launch file");
    let plan = plan.parse().expect("a plan");
    let module = planned_module(text, "k.ptx", Some("k"), &launch, &plan, None);
    module
        .unwrap_or_else(|error| panic!("{plan}: {error}\n{text}"))
        .text
}

/// The names of the variables in shared memory.
fn shared(text: &str) -> Vec<&str> {
    let declared = text
        .lines()
        .filter(|line| line.trim_start().starts_with(".shared"));
    declared
        .filter_map(|line| line.split_whitespace().find(|word| word.contains('[')))
        .filter_map(|word| word.split('[').next())
        .collect()
}

#[test]
fn each_planned_loop_has_a_ring_of_its_own() {
    let both = planned(
        TWO_LOOPS,
        "param_1@FIRST=rolling-shared:2/plain,param_1@SECOND=rolling-shared:5/padded",
    );
    let names = shared(&both);
    assert_eq!(names.len(), 2, "{both}");
    assert_ne!(names[0], names[1], "{both}");
}

#[test]
fn an_edited_module_can_be_edited_again() {
    let once = planned(TWO_LOOPS, "param_1@FIRST=rolling-shared:2/plain");
    let twice = planned(&once, "param_1@SECOND=rolling-shared:5/padded");
    let names = shared(&twice);
    assert_eq!(names.len(), 2, "{twice}");
    assert_ne!(names[0], names[1], "{twice}");
    // The first edit is part of the input now, and stays.
    for line in once.lines().filter(|line| !line.starts_with("//")) {
        assert!(twice.contains(line), "{line}\n{twice}");
    }
}
