//! Exchanges, memory, and what ends a work-item or a launch.

use headstart::back::ptx::{Options as Emit, PtxTarget as Gpu, emit};
use headstart::front::ptx::{Facts, read};
use headstart::ir::print;
use headstart::prefetch::{self, Plan, PlanTarget};

use super::{REGISTERS, output};

/// What a sub-group does together, each work-item with its number times 5 and 3 bits of it.
#[test]
fn exchanges() {
    let run = |body: &str| -> Vec<u32> {
        let text = format!(
            ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 k_param_0)\n{{\n{REGISTERS}\n\
             mov.u32 %i0, %laneid;\nmul.lo.u32 %x, %i0, 5;\nand.b32 %y, %i0, 7;\nmov.u32 %d, 0;\n{body}\n\
             ld.param.u64 %a2, [k_param_0];\ncvta.to.global.u64 %a2, %a2;\nmul.wide.u32 %a1, %i0, 4;\nadd.s64 %a2, %a2, %a1;\n\
             st.global.u32 [%a2], %d;\nret;\n}}\n"
        );
        let launch = "groups = 1\ngroup = 32\n[parameters.param_0]\nlength = 32\n";
        output(&text, launch)
    };
    let check = |body: &str, expected: &dyn Fn(u32) -> u32| {
        let expected: Vec<u32> = (0..32).map(expected).collect();
        assert_eq!(run(body), expected, "{body}");
    };
    check("shfl.sync.up.b32 %d|%p, %x, 3, 0, -1;", &|lane| {
        5 * if lane >= 3 { lane - 3 } else { lane }
    });
    check("shfl.sync.down.b32 %d, %x, 3, 31, -1;", &|lane| {
        5 * if lane + 3 < 32 { lane + 3 } else { lane }
    });
    check("shfl.sync.bfly.b32 %d, %x, 5, 31, -1;", &|lane| 5 * (lane ^ 5));
    check("shfl.sync.idx.b32 %d, %x, 9, 31, -1;", &|_| 45);
    // Parts of eight: 0x181f.
    check(
        "shfl.sync.down.b32 %d|%p, %x, 3, 6175, -1; @!%p mov.u32 %d, 1;",
        &|lane| {
            if lane % 8 + 3 < 8 { 5 * (lane + 3) } else { 1 }
        },
    );
    check("setp.eq.u32 %p, %y, 2; vote.sync.ballot.b32 %d, %p, -1;", &|_| {
        0x0404_0404
    });
    check(
        "setp.lt.u32 %p, %y, 9; vote.sync.all.pred %q, %p, -1; selp.u32 %d, 1, 0, %q;",
        &|_| 1,
    );
    check(
        "setp.lt.u32 %p, %y, 2; vote.sync.any.pred %q, %p, -1; selp.u32 %d, 1, 0, %q;",
        &|_| 1,
    );
    check(
        "setp.lt.u32 %p, %y, 2; vote.sync.uni.pred %q, %p, -1; selp.u32 %d, 1, 0, %q;",
        &|_| 0,
    );
    check("match.sync.any.b32 %d, %y, -1;", &|lane| {
        0x0101_0101 << (lane % 8)
    });
    check("match.sync.all.b32 %d|%p, %y, -1; @%p mov.u32 %d, 7;", &|_| 0);
    check(
        "mov.u32 %t0, 4; match.sync.all.b32 %d|%p, %t0, -1; @!%p mov.u32 %d, 7;",
        &|_| u32::MAX,
    );
    check("activemask.b32 %d;", &|_| u32::MAX);
    check("elect.sync %d|%p, -1; @%p mov.u32 %d, 9;", &|lane| {
        if lane == 0 { 9 } else { 0 }
    });
    check("redux.sync.add.s32 %d, %x, -1;", &|_| 5 * 496);
    check("redux.sync.max.u32 %d, %x, -1;", &|_| 155);
    check("neg.s32 %t0, %x; redux.sync.min.s32 %d, %t0, -1;", &|_| {
        155u32.wrapping_neg()
    });
    check("redux.sync.xor.b32 %d, %x, -1;", &|_| {
        (0..32).fold(0, |all, lane| all ^ (5 * lane))
    });
    check("or.b32 %t0, %x, 1; redux.sync.and.b32 %d, %t0, -1;", &|_| 1);
    // Each half for itself.
    check(
        "setp.lt.u32 %p, %i0, 16; selp.b32 %t0, 65535, -65536, %p; redux.sync.add.u32 %d, %x, %t0;",
        &|lane| if lane < 16 { 600 } else { 1880 },
    );
    // Only some have come here.
    check(
        "setp.lt.u32 %p, %i0, 16; @!%p bra OVER; redux.sync.add.u32 %d, %x, 65535; OVER:",
        &|lane| if lane < 16 { 600 } else { 0 },
    );
    check("setp.lt.u32 %p, %y, 3; bar.red.popc.u32 %d, 0, %p;", &|_| 12);
    check(
        "setp.lt.u32 %p, %y, 3; barrier.red.aligned.or.pred %q, 0, %p; selp.u32 %d, 1, 0, %q;",
        &|_| 1,
    );
    check(
        "setp.lt.u32 %p, %y, 3; bar.red.and.pred %q, 0, %p; selp.u32 %d, 1, 0, %q;",
        &|_| 0,
    );
    check("mov.u32 %d, %lanemask_lt;", &|lane| (1u32 << lane) - 1);
    check("mov.u32 %d, %lanemask_ge;", &|lane| !((1u32 << lane) - 1));
    check(
        "mov.u32 %d, %warpid; mov.u32 %t0, %nwarpid; mad.lo.u32 %d, %t0, 10, %d;",
        &|_| 10,
    );
    check(
        "mov.u32 %d, %nctaid.x; mov.u32 %t0, %ntid.y; mad.lo.u32 %d, %t0, 100, %d;",
        &|_| 101,
    );
}

/// Loads, stores and atomic operations of shared, local and global memory, in vectors, with cache operators and orders.
#[test]
fn memory() {
    let run = |declared: &str, body: &str| -> Vec<u32> {
        let text = format!(
            ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 k_param_0)\n{{\n{REGISTERS}\n{declared}\n\
             mov.u32 %i0, %tid.x;\nld.param.u64 %a2, [k_param_0];\ncvta.to.global.u64 %a2, %a2;\n\
             mul.wide.u32 %a1, %i0, 16;\nadd.s64 %a3, %a2, %a1;\nmul.lo.u32 %x, %i0, 3;\n{body}\nret;\n}}\n"
        );
        let launch = "groups = 1\ngroup = 64\n[parameters.param_0]\nlength = 256\nfill = \"sequence\"\noutput = \"bits\"\n";
        output(&text, launch)
    };
    let check = |declared: &str, body: &str, expected: &dyn Fn(u32, u32) -> u32| {
        let expected: Vec<u32> = (0..256).map(|at| expected(at / 4, at % 4)).collect();
        assert_eq!(run(declared, body), expected, "{body}");
    };
    let as_it_was = |item: u32, part: u32| 4 * item + part;
    check(
        "",
        "ld.global.v4.u32 {%t0, %t1, %t2, %t3}, [%a3]; st.global.v4.u32 [%a3], {%t3, %t2, %t1, %t0};",
        &|item, part| 4 * item + 3 - part,
    );
    check(
        "",
        "ld.relaxed.gpu.global.v4.b32 {%t0, %t1, %t2, %t3}, [%a3]; st.release.sys.global.v4.b32 [%a3], {%t3, %t2, %t1, %t0};",
        &|item, part| 4 * item + 3 - part,
    );
    check(
        "",
        "mov.u32 %t1, 9; atom.global.inc.u32 %t0, [%a3], %t1; st.global.u32 [%a3+4], %t0;",
        &|item, part| match part {
            0 => {
                if 4 * item >= 9 {
                    0
                } else {
                    4 * item + 1
                }
            }
            1 => 4 * item,
            _ => as_it_was(item, part),
        },
    );
    check(
        "",
        "mov.u32 %t1, 9; atom.global.dec.u32 %t0, [%a3], %t1;",
        &|item, part| match (item, part) {
            (0 | 3.., 0) => 9,
            (_, 0) => 4 * item - 1,
            _ => as_it_was(item, part),
        },
    );
    check(
        "",
        "mov.u32 %t0, 1006648320; st.global.u32 [%a3], %t0; atom.global.add.noftz.f16x2 %t1, [%a3], %t0; \
         st.global.u32 [%a3+4], %t1;",
        &|item, part| match part {
            0 => 0x4000_4000,
            1 => 0x3c00_3c00,
            _ => as_it_was(item, part),
        },
    );
    // As many bytes as the run tells, and zeros behind them.
    check(
        ".shared .align 16 .b8 tile[1024];",
        "mov.u32 %t0, tile; mad.lo.u32 %t3, %i0, 16, %t0; min.u32 %t1, %i0, 16; \
         cp.async.cg.shared.global [%t3], [%a3], 16, %t1; cp.async.wait_all; \
         ld.shared.v4.u32 {%t0, %t1, %t2, %x}, [%t3]; st.global.v4.u32 [%a3], {%t0, %t1, %t2, %x};",
        &|item, part| {
            let bytes = item.min(16).saturating_sub(4 * part).min(4);
            as_it_was(item, part) & (1u64 << (8 * bytes)).wrapping_sub(1) as u32
        },
    );
    check(
        "",
        "ld.global.cg.v2.b32 {%t0, %t1}, [%a3+8]; st.global.wb.v2.b32 [%a3], {%t1, %t0};",
        &|item, part| 4 * item + [3, 2, 2, 3][part as usize],
    );
    check(
        "",
        "ld.global.ca.u8 %t0, [%a3+4]; ld.global.cv.u32 %t1, [%a3]; ld.volatile.global.u32 %t2, [%a3+8]; \
         add.u32 %t0, %t0, %t1; add.u32 %t0, %t0, %t2; st.global.cs.u32 [%a3], %t0;",
        &|item, part| match part {
            0 => ((4 * item + 1) & 255) + 8 * item + 2,
            part => as_it_was(item, part),
        },
    );
    // Another work-item's word, through shared memory and a barrier; `barrier` is another spelling.
    for barrier in [
        "bar.sync 0;",
        "barrier.sync 0;",
        "barrier.sync.aligned 0;",
        "membar.gl; bar.sync 0;",
    ] {
        let body = format!(
            "mov.u32 %t1, tile; mul.lo.u32 %t0, %i0, 4; add.u32 %t0, %t1, %t0; st.shared.u32 [%t0], %x; {barrier} \
             sub.u32 %t0, 63, %i0; mul.lo.u32 %t0, %t0, 4; add.u32 %t0, %t1, %t0; ld.shared.u32 %t2, [%t0]; \
             st.global.u32 [%a3], %t2;"
        );
        check(
            ".shared .align 4 .b8 tile[256];",
            &body,
            &|item, part| match part {
                0 => 3 * (63 - item),
                part => as_it_was(item, part),
            },
        );
    }
    check(
        ".local .align 4 .b8 own[16];",
        "mov.u64 %a1, own; cvta.local.u64 %a1, %a1; cvta.to.local.u64 %a1, %a1; st.local.u32 [%a1+4], %x; \
         ld.local.u32 %t0, [%a1+4]; add.u32 %t0, %t0, 1; st.global.u32 [%a3], %t0;",
        &|item, part| match part {
            0 => 3 * item + 1,
            part => as_it_was(item, part),
        },
    );
    // All work-items on one word; its intermediate values are not visible.
    let all = |op: &str, expected: u32| {
        let body = format!("{op}; bar.sync 0;");
        check("", &body, &|item, part| match (item, part) {
            (0, 1) => expected,
            (item, part) => as_it_was(item, part),
        });
    };
    let sum: u32 = (0..64).map(|item| 3 * item).sum();
    all("red.global.add.u32 [%a2+4], %x", 1 + sum);
    all("atom.global.add.u32 %d, [%a2+4], %x", 1 + sum);
    all("atom.global.max.s32 %d, [%a2+4], %x", 189);
    all("atom.global.min.u32 %d, [%a2+4], %x", 0);
    all("red.global.or.b32 [%a2+4], %x", 255);
    all(
        "red.global.xor.b32 [%a2+4], %x",
        1 ^ (0..64).fold(0, |all, item| all ^ (3 * item)),
    );
    all("red.relaxed.gpu.global.and.b32 [%a2+4], %x", 0);
    all(
        "setp.eq.u32 %p, %i0, 5; @%p atom.global.exch.b32 %d, [%a2+4], 77",
        77,
    );
    all("atom.global.cas.b32 %d, [%a2+4], 1, 99", 99);
    all(
        "setp.eq.u32 %p, %i0, 5; @%p st.release.gpu.global.u32 [%a2+4], 78",
        78,
    );
    // Hints, fences and copies of a group change nothing else.
    check(
        ".shared .align 16 .b8 ring[1024];",
        "prefetch.global.L1 [%a3]; prefetch.global.L2 [%a3]; fence.acq_rel.gpu; membar.cta; fence.sc.gpu; \
         mov.u32 %t1, ring; mul.lo.u32 %t0, %i0, 16; add.u32 %t0, %t1, %t0; \
         cp.async.cg.shared.global [%t0], [%a3], 16; cp.async.commit_group; cp.async.wait_group 0; \
         ld.shared.u32 %t2, [%t0+8]; st.global.u32 [%a3], %t2;",
        &|item, part| match part {
            0 => 4 * item + 2,
            part => as_it_was(item, part),
        },
    );
}

/// What ends a work-item and what ends a launch; launches that overlap.
#[test]
fn ends() {
    let module = |body: &str| {
        format!(
            ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 k_param_0)\n{{\n{REGISTERS}\n\
             mov.u32 %i0, %tid.x;\nld.param.u64 %a2, [k_param_0];\ncvta.to.global.u64 %a2, %a2;\nmul.wide.u32 %a1, %i0, 4;\n\
             add.s64 %a2, %a2, %a1;\n{body}\nst.global.u32 [%a2], 7;\nret;\n}}\n"
        )
    };
    let launch =
        "groups = 1\ngroup = 32\n[parameters.param_0]\nlength = 32\nfill = \"zero\"\noutput = \"bits\"\n";
    let run = |body: &str| output(&module(body), launch);
    let first: Vec<u32> = (0..32).map(|item| if item < 9 { 7 } else { 0 }).collect();
    assert_eq!(run("setp.gt.u32 %p, %i0, 8;\n@%p exit;"), first);
    assert_eq!(run("setp.gt.u32 %p, %i0, 8;\n@%p ret;"), first);
    // Unreachable.
    assert_eq!(
        run("setp.gt.u32 %p, %i0, 99;\n@!%p bra $on;\ntrap;\n$on:"),
        [7; 32]
    );
    assert_eq!(
        run("griddepcontrol.wait;\n.pragma \"nounroll\";\ngriddepcontrol.launch_dependents;"),
        [7; 32]
    );
    // Reached: by which work-item, and where.
    let trapped = std::panic::catch_unwind(|| {
        let body = "setp.gt.u32 %p, %i0, 30;\n@%p trap;";
        output(&module(body), launch)
    });
    let said = trapped.expect_err("it traps");
    let said = said.downcast_ref::<String>().expect("a message");
    assert!(
        said.contains("work-item 31") && said.contains("trap") && said.contains("test.ptx:13"),
        "{said}"
    );
    // Unknown instructions are carried.
    for body in ["vaddition.u32 %t0, %t1;", "griddepcontrol.sideways;"] {
        let name = body.split([' ', ';']).next().expect("a name");
        let kernel = read(&module(body), "k.ptx", Some("k"), &Facts::default()).expect("it is carried");
        assert!(
            print(&kernel).contains(&format!("opaque \"{name}")),
            "{}",
            print(&kernel)
        );
    }
}

/// Instructions that are carried are printed and read again; a module of the kernel's own would lack what they need.
#[test]
fn what_is_carried_is_printed_and_not_written() {
    let text = format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 k_param_0)\n{{\n{REGISTERS}\n\
         .shared .align 16 .b8 tile[512];\nld.param.u64 %a0, [k_param_0];\ncvta.to.global.u64 %a0, %a0;\n\
         mov.u32 %i0, tile;\nmbarrier.init.shared.b64 [%i0+8], 3;\n\
         ldmatrix.sync.aligned.m8n8.x2.shared.b16 {{%t0, %t1}}, [%i0+64];\n\
         mov.f32 %f0, 0f00000000;\nmov.f32 %f1, 0f00000000;\nmov.f32 %f2, 0f00000000;\nmov.f32 %f3, 0f00000000;\n\
         mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {{%f0, %f1, %f2, %f3}}, {{%t0, %t1}}, {{%t0}}, \
         {{%f0, %f1, %f2, %f3}};\nmov.u64 %a1, %clock64;\nnanosleep.u32 20;\n\
         st.global.v4.f32 [%a0], {{%f0, %f1, %f2, %f3}};\nst.global.u64 [%a0+16], %a1;\nret;\n}}\n"
    );
    let kernel = read(&text, "k.ptx", None, &Facts::default()).expect("an entry");
    let printed = print(&kernel);
    let again = headstart::ir::read(&printed, "k.hsir").expect("it is read again");
    assert_eq!(print(&again), printed);
    for part in [
        "mbarrier.init.shared.b64 [@",
        "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {=0, =1}, [@",
        "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {=0",
        ", %clock64",
        "nanosleep.u32 20",
    ] {
        assert!(printed.contains(part), "{part}\n{printed}");
    }
    let refusal = emit(&kernel, &Emit::new(Gpu::Sm90)).expect_err("it is not emitted");
    assert!(
        refusal
            .to_string()
            .contains("carried as text, which only its own module has"),
        "{refusal}"
    );
}

/// A loop that was not to be unrolled, or that is too long for ptxas to unroll, is written so; other pragmas are left out.
#[test]
fn pragmas() {
    let looped = |pragma: &str, more: usize| {
        let more = "xor.b32 %i1, %i1, %i0;\n".repeat(more);
        let text = format!(
            ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 k_param_0)\n{{\n{REGISTERS}\n{pragma}\n\
             ld.param.u64 %a2, [k_param_0];\nmov.u32 %i0, 0;\n$loop:\n{pragma}\nst.global.u32 [%a2], %i0;\n{more}\
             add.s32 %i0, %i0, 1;\nsetp.ne.s32 %p, %i0, 16;\n@%p bra $loop;\nret;\n}}\n"
        );
        let kernel = read(&text, "k.ptx", Some("k"), &Facts::default()).expect("an entry");
        let options = Emit::new(Gpu::Sm90);
        emit(&kernel, &options).expect("it is emitted").text
    };
    let written = |pragma: &str| looped(pragma, 0);
    assert!(written(".pragma \"nounroll\";").contains(".pragma \"nounroll\";"));
    // ptxas would not unroll it, long as it is: of 46 instructions.
    assert!(!looped("", 41).contains("pragma"));
    assert!(looped("", 42).contains(".pragma \"nounroll\";"));
    for other in ["", ".pragma \"frobnicate\";", ".pragma \"one\", \"two\";"] {
        assert!(!written(other).contains("pragma"), "{other}");
    }
}

/// What stands in a module is written back where it stood, and no load crosses the wait.
#[test]
fn ends_are_written_where_they_stood() {
    let looped = |inside: &str| {
        format!(
            ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 k_param_0, .param .u64 k_param_1)\n{{\n{REGISTERS}\n\
             ld.param.u64 %a0, [k_param_0];\ncvta.to.global.u64 %a0, %a0;\nld.param.u64 %a2, [k_param_1];\ncvta.to.global.u64 %a2, %a2;\n\
             mov.u32 %i0, 0;\nmov.u32 %d, 0;\ngriddepcontrol.wait;\n$loop:\nld.global.nc.u32 %x, [%a0];\n{inside}\n\
             add.u32 %d, %d, %x;\nadd.s64 %a0, %a0, 4;\nadd.s32 %i0, %i0, 1;\nsetp.ne.s32 %p, %i0, 16;\n@%p bra $loop;\n\
             st.global.u32 [%a2], %d;\ngriddepcontrol.launch_dependents;\nret;\n}}\n"
        )
    };
    let planned = |text: &str| {
        let kernel = read(text, "k.ptx", Some("k"), &Facts::default()).expect("an entry");
        let plan: Plan = "param_0=rolling-registers:2".parse().expect("a plan");
        prefetch::apply(&kernel, &plan, &PlanTarget::default())
    };
    let kernel = planned(&looped(""))
        .expect("loads behind the wait stay behind it")
        .kernel;
    let options = Emit::new(Gpu::Sm90);
    let text = emit(&kernel, &options).expect("it is emitted").text;
    let at = |word: &str| text.find(word).unwrap_or_else(|| panic!("{word}: {text}"));
    assert!(at("griddepcontrol.wait") < at("ld.global"), "{text}");
    assert!(
        text.rfind("st.global") < text.find("griddepcontrol.launch_dependents"),
        "{text}"
    );
    let old = Emit::new(Gpu::Sm80);
    assert!(emit(&kernel, &old).is_err());
    let refusal = planned(&looped("griddepcontrol.wait;")).expect_err("it is written by the launch before");
    assert!(refusal.to_string().contains("launch before"), "{refusal}");
    // A trap is an exit: the code behind it may not run.
    let refusal =
        planned(&looped("setp.gt.u32 %q, %x, 1000;\n@%q trap;")).expect_err("its length is unknown");
    assert!(refusal.to_string().contains("in bounds"), "{refusal}");
}
