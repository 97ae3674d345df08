//! What leaves room, and what does not.

use super::*;

const OWN: Held = Held {
    groups_per_core: 16,
    registers: 21,
    spilled_bytes: 0,
    shared_bytes: 512,
};

#[test]
fn work_groups_that_wait_for_each_other_need_as_many_resident() {
    for (registers, groups_per_core, is_kept) in
        [(32, 16, true), (40, 17, true), (235, 2, false), (16, 15, false)]
    {
        let planned = Held {
            groups_per_core,
            registers,
            shared_bytes: 4096,
            ..OWN
        };
        assert_eq!(OWN.is_kept_by(&planned, false), is_kept, "{planned:?}");
    }
}

/// Registers are given out in eights, so that 24 are no more than 21.
#[test]
fn who_waits_for_others_takes_no_more_than_before() {
    for (registers, shared_bytes, groups_per_core, is_kept) in [
        (21, 512, 16, true),
        (24, 512, 16, true),
        (8, 0, 16, true),
        (25, 512, 16, false),
        (21, 513, 16, false),
        (21, 512, 15, false),
    ] {
        let planned = Held {
            groups_per_core,
            registers,
            spilled_bytes: 0,
            shared_bytes,
        };
        assert_eq!(OWN.is_kept_by(&planned, true), is_kept, "{planned:?}");
    }
}

#[test]
fn a_plan_is_held_to_the_registers_that_leave_as_many_resident() {
    // 16 work-groups of 128 among 65,536 registers have 32 each; of 100 they take as much.
    assert_eq!(fewer(&[OWN], 65_536, 128, false), Some(32));
    assert_eq!(fewer(&[OWN], 65_536, 100, false), Some(32));
    assert_eq!(fewer(&[OWN], 65_536, 128, true), Some(24));
    // The account that leaves less decides.
    let other = Held {
        groups_per_core: 10,
        ..OWN
    };
    assert_eq!(fewer(&[other], 65_536, 128, false), Some(48));
    assert_eq!(fewer(&[other, OWN], 65_536, 128, false), Some(32));
    // Few work-groups of one work-item leave more than can be asked for, and some kernels have less.
    let few = Held {
        groups_per_core: 1,
        ..OWN
    };
    assert_eq!(fewer(&[few], 65_536, 32, false), Some(255));
    let small = Held { registers: 16, ..OWN };
    assert_eq!(fewer(&[small], 65_536, 128, true), None);
}

#[test]
fn a_refusal_says_what_is_too_much() {
    let planned = |groups_per_core, registers, shared_bytes| Held {
        groups_per_core,
        registers,
        spilled_bytes: 0,
        shared_bytes,
    };
    let refused =
        |planned: Held, alone| refusal(&[OWN], &[planned], alone, "they wait at k.cu:7").to_string();
    assert!(refused(planned(2, 235, 512), false).starts_with(
        "the plan leaves 2 work-groups resident on a core instead of 16, and they wait at k.cu:7;"
    ));
    assert!(refused(planned(16, 32, 512), true).starts_with("the plan takes 32 registers instead of 21,"));
    assert!(
        refused(planned(16, 21, 4096), true)
            .starts_with("the plan takes 4096 bytes of shared memory instead of 512,")
    );
}

/// A sum of `n` values, and then a wait for a flag that nothing in the kernel writes.
const FLAGGED: &str = "\
.version 8.0
.target sm_90
.address_size 64
.visible .entry flagged(.param .u64 v, .param .u64 o, .param .u64 flag, .param .u32 n)
{
	.reg .pred %p<4>;
	.reg .b32 %r<9>;
	.reg .f32 %f<4>;
	.reg .b64 %d<9>;
	ld.param.u64 %d1, [v];
	ld.param.u64 %d2, [o];
	ld.param.u64 %d3, [flag];
	ld.param.u32 %r1, [n];
	mov.f32 %f1, 0f00000000;
	mov.u32 %r2, 0;
	setp.lt.s32 %p1, %r1, 1;
	@%p1 bra SPIN;
ADD:
	mul.wide.u32 %d4, %r2, 4;
	add.s64 %d5, %d1, %d4;
	ld.global.f32 %f2, [%d5];
	add.rn.f32 %f1, %f1, %f2;
	add.s32 %r2, %r2, 1;
	setp.lt.s32 %p2, %r2, %r1;
	@%p2 bra ADD;
SPIN:
	ld.acquire.gpu.global.u32 %r3, [%d3];
	setp.eq.s32 %p3, %r3, 0;
	@%p3 bra SPIN;
	st.global.f32 [%d2], %f1;
	ret;
}
";

/// Without a device nothing says what a plan takes; the assembler that a user may have named does not count here.
#[test]
fn a_module_of_a_kernel_that_waits_is_not_rewritten_blindly() {
    let launch = "groups = 1\ngroup = 32\nreadonly = [\"v\", \"flag\"]\nunaliased = [\"o\"]\n[parameters.v]\nlength = 64\n\
        [parameters.o]\nlength = 1\nfill = \"zero\"\noutput = \"bits\"\n[parameters.flag]\nlength = 1\nfill = \"random\"\nrange = [1, 2]\n\
        [parameters.n]\nvalue = 9\n";
    let launch = crate::tune::LaunchFile::parse(launch, "launch.toml").expect("a launch file");
    let plan: Plan = "unroll:2".parse().expect("a plan");
    let rewritten = |plan: &Plan| crate::tune::planned_module(FLAGGED, "k.ptx", None, &launch, plan, None);
    if std::env::var_os("HEADSTART_PTXAS").is_none_or(|name| name.is_empty()) {
        let refused = rewritten(&plan).expect_err("no assembler").to_string();
        assert!(
            refused.contains("HEADSTART_PTXAS")
                && refused.contains("its work-groups wait for another kernel or the host at k.ptx:27"),
            "{refused}"
        );
    }
    let same = rewritten(&Plan::none()).expect("as it was");
    let rests = |granted: &Granted| matches!(granted, Granted::Residency { .. });
    assert!(!same.granted.iter().any(rests), "{:?}", same.granted);
}
