//! Rounding and flushing belong to each operation: what is read as PTX is written again with the modifiers that it had,
//! plain and under a plan, and computes the same bits.

use std::collections::BTreeMap;

use headstart::back::ptx;
use headstart::device::sim::functional::Options;
use headstart::front::ptx::import;
use headstart::prefetch::Plan;
use headstart::tune::{self, FileSubject, LaunchFile, Subject, Workload};
use headstart_testing::ptxas::Ptxas;
use headstart_testing::run;

const LAUNCH: &str = "groups = 1\ngroup = 32\n[parameters.p]\nlength = 1024\nfill = \"bits\"\n\
    [parameters.q]\nlength = 1024\nfill = \"bits\"\n[parameters.o]\nlength = 32\n[parameters.n]\nvalue = 29\n";

/// A loop over a float `%f1` and a double `%d1` of each iteration. Each line of `lines` makes `%g` (`.f32`), `%e`
/// (`.f64`), `%h` (16 bits), `%t` (32 bits) or `%q` (a predicate), which goes into the sum that is stored.
fn module(lines: &[&str]) -> String {
    let mut body = String::new();
    for line in lines {
        body.push_str(line);
        body.push('\n');
        let made = line.split_whitespace().nth(1).expect("a destination");
        body.push_str(match &made[..2] {
            "%g" => "mov.b32 %t, %g;\n",
            "%e" => "mov.b64 %wide, %e;\ncvt.u32.u64 %t, %wide;\nshr.u64 %wide, %wide, 32;\ncvt.u32.u64 %s, %wide;\nxor.b32 %t, %t, %s;\n",
            "%h" => "cvt.u32.u16 %t, %h;\n",
            "%q" => "selp.u32 %t, 1, 0, %q;\n",
            _ => "",
        });
        body.push_str("mul.lo.u32 %sum, %sum, 31;\nadd.u32 %sum, %sum, %t;\n");
    }
    format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n\
         .visible .entry k(.param .u64 p, .param .u64 q, .param .u64 o, .param .u32 n)\n{{\n\
         .reg .pred %p<4>, %q;\n.reg .b32 %r<9>, %t, %s, %sum;\n.reg .f32 %f<4>, %g;\n.reg .f64 %d<4>, %e;\n\
         .reg .b16 %h, %i<4>;\n.reg .b64 %a<12>, %wide;\n\
         ld.param.u64 %a1, [p];\nld.param.u64 %a2, [q];\nld.param.u64 %a3, [o];\nld.param.u32 %r1, [n];\n\
         cvta.to.global.u64 %a1, %a1;\ncvta.to.global.u64 %a2, %a2;\ncvta.to.global.u64 %a3, %a3;\n\
         mov.u32 %r2, %tid.x;\nmov.u32 %r3, 0;\nmov.u32 %sum, 0;\n\
         mul.wide.u32 %a4, %r2, 4;\nadd.s64 %a5, %a3, %a4;\n\
         setp.lt.s32 %p1, %r1, 1;\n@%p1 bra DONE;\nLOOP:\n\
         mad.lo.u32 %r4, %r3, 32, %r2;\nmul.wide.u32 %a6, %r4, 4;\nadd.s64 %a7, %a1, %a6;\n\
         ld.global.nc.f32 %f1, [%a7];\nmul.wide.u32 %a8, %r4, 8;\nadd.s64 %a9, %a2, %a8;\nld.global.nc.f64 %d1, [%a9];\n\
         mov.b32 %r5, %f1;\nxor.b32 %r5, %r5, 0x00ffffff;\nmov.b32 %f2, %r5;\n\
         mov.b64 %wide, %d1;\nxor.b64 %wide, %wide, 0x000fffff;\nmov.b64 %d2, %wide;\n\
         cvt.u16.u32 %i1, %r5;\nshr.u16 %i2, %i1, 3;\n\
         xor.b32 %sum, %sum, %r5;\ncvt.u32.u64 %t, %wide;\nxor.b32 %sum, %sum, %t;\n\
         {body}\
         add.s32 %r3, %r3, 1;\nsetp.lt.s32 %p2, %r3, %r1;\n@%p2 bra LOOP;\nDONE:\nst.global.u32 [%a5], %sum;\nret;\n}}\n"
    )
}

/// A float instruction with its modifiers in order, as far as they say how it computes: which comparison it is and in
/// which order its operands stand is for the back end, and `.rn` is what stands where nothing does.
fn spelled(line: &str) -> Option<String> {
    let word = line.split_whitespace().next()?;
    let word = if word.starts_with('@') {
        line.split_whitespace().nth(1)?
    } else {
        word
    };
    let (opcode, rest) = word.trim_end_matches(';').split_once('.')?;
    let mut modifiers: Vec<&str> = rest.split('.').collect();
    if !modifiers
        .iter()
        .any(|word| matches!(*word, "f16" | "bf16" | "f32" | "f64"))
    {
        return None;
    }
    match opcode {
        "setp" => {
            modifiers.remove(0);
        }
        "add" | "sub" | "mul"
            if !modifiers
                .iter()
                .any(|word| matches!(*word, "rn" | "rz" | "rm" | "rp")) =>
        {
            modifiers.push("rn");
        }
        "ld" | "st" | "mov" | "selp" => return None,
        _ => {}
    }
    if opcode != "cvt" {
        modifiers.sort_unstable();
    }
    Some(format!("{opcode}.{}", modifiers.join(".")))
}

fn counted<'t>(lines: impl Iterator<Item = &'t str>) -> BTreeMap<String, u32> {
    let mut counts = BTreeMap::new();
    for spelled in lines.filter_map(spelled) {
        *counts.entry(spelled).or_default() += 1;
    }
    counts
}

fn workload(text: &str) -> Workload {
    let launch = LaunchFile::parse(LAUNCH, "launch.toml").expect("a launch file");
    let imported = import(text, "k.ptx", Some("k"), &launch.facts());
    let imported = imported.unwrap_or_else(|error| panic!("{error}\n{text}"));
    FileSubject::of_module(imported, launch)
        .workload()
        .expect("a workload")
}

fn outputs(text: &str) -> Vec<(String, Vec<u8>)> {
    let workload = workload(text);
    run(&workload, &workload.kernel, Options::CHECKING).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn planned(text: &str, plan: &str) -> String {
    let plan: Plan = plan.parse().expect("a plan");
    let launch = LaunchFile::parse(LAUNCH, "launch.toml").expect("a launch file");
    let module = tune::planned_module(text, "k.ptx", Some("k"), &launch, &plan, None);
    module
        .unwrap_or_else(|error| panic!("{plan}: {error}\n{text}"))
        .text
}

/// A module's kernel printed alone.
fn emitted(text: &str) -> String {
    let launch = LaunchFile::parse(LAUNCH, "launch.toml").expect("a launch file");
    let imported = import(text, "k.ptx", Some("k"), &launch.facts()).expect("read");
    let written = ptx::emit(&imported.kernel, &ptx::Options::new(ptx::PtxTarget::Sm90));
    written.expect("written").text
}

/// Checks that these instructions come back as they are, as often as the loop is there.
fn come_back(lines: &[&str]) {
    come_back_under(&["unroll:2", "p=rolling-registers:2"], lines);
}

fn come_back_under(plans: &[&str], lines: &[&str]) {
    let text = module(lines);
    let expected = counted(lines.iter().copied());
    let right = outputs(&text);
    let ptxas = Ptxas::find();
    for &plan in plans {
        let written = planned(&text, plan);
        let found = counted(
            written
                .lines()
                .filter(|line| !line.trim_start().starts_with("//")),
        );
        let names: Vec<&String> = found.keys().collect();
        assert_eq!(names, expected.keys().collect::<Vec<_>>(), "{plan}\n{written}");
        let (first, once) = expected.iter().next().expect("an instruction");
        let copies = found[first] / once;
        for (name, count) in &found {
            assert_eq!(*count, expected[name] * copies, "{name}, {plan}\n{written}");
        }
        assert!(copies > u32::from(plan == "unroll:2"), "{plan}: {copies} copies");
        assert_eq!(outputs(&written), right, "{plan}: other bits\n{written}");
        if let Some(ptxas) = &ptxas {
            ptxas
                .assemble_module(&written)
                .unwrap_or_else(|said| panic!("{plan}: {said}\n{written}"));
        }
    }
}

#[test]
fn kernels_that_only_compare_select_or_convert_flush() {
    // What nvcc -ftz=true makes of fmaxf(s, fabsf(x)), x > 0, and (double)x.
    come_back(&["abs.ftz.f32 %g, %f1;", "max.ftz.f32 %g, %f2, %g;"]);
    come_back(&["setp.gt.ftz.f32 %q, %f1, 0f00000000;"]);
    come_back(&["cvt.ftz.f64.f32 %e, %f1;", "add.rn.f64 %e, %e, %d1;"]);
    come_back(&["cvt.rn.ftz.f32.f64 %g, %d1;"]);
    come_back(&[
        "neg.ftz.f32 %g, %f1;",
        "min.ftz.f32 %g, %g, %f2;",
        "cvt.rzi.ftz.s32.f32 %t, %f1;",
    ]);
    come_back(&["cvt.ftz.f32.f32 %g, %f1;"]);
}

#[test]
fn what_does_not_flush_does_not_where_other_arithmetic_does() {
    come_back(&[
        "setp.gt.f32 %q, %f1, 0f00000000;",
        "min.f32 %g, %f1, 0f3F800000;",
        "max.f32 %g, %f2, %g;",
        "add.ftz.f32 %g, %g, %f1;",
        "abs.f32 %g, %f1;",
        "cvt.f64.f32 %e, %f2;",
        "mul.rn.f32 %g, %f1, %f1;",
        "fma.rn.ftz.f32 %g, %f1, %f2, %f1;",
        "fma.rn.f32 %g, %f1, %f2, %f1;",
    ]);
}

#[test]
fn approximations_are_the_instructions_that_were_read() {
    come_back(&[
        "rsqrt.approx.f64 %e, %d1;",
        "rsqrt.approx.ftz.f64 %e, %d1;",
        "rcp.approx.ftz.f64 %e, %d1;",
    ]);
    come_back(&[
        "rcp.approx.ftz.f32 %g, %f1;",
        "rcp.approx.f32 %g, %f1;",
        "sqrt.approx.ftz.f32 %g, %f1;",
        "sqrt.approx.f32 %g, %f1;",
        "rsqrt.approx.ftz.f32 %g, %f1;",
        "ex2.approx.ftz.f32 %g, %f1;",
        "ex2.approx.f32 %g, %f1;",
        "lg2.approx.ftz.f32 %g, %f1;",
        "lg2.approx.f32 %g, %f1;",
        "sin.approx.ftz.f32 %g, %f1;",
        "cos.approx.f32 %g, %f1;",
        "tanh.approx.f32 %g, %f1;",
        "div.full.ftz.f32 %g, %f1, %f2;",
        "div.full.f32 %g, %f1, %f2;",
        "div.approx.ftz.f32 %g, %f1, %f2;",
        "div.approx.f32 %g, %f1, %f2;",
    ]);
    come_back(&[
        "ex2.approx.f16 %h, %i1;",
        "ex2.approx.ftz.bf16 %h, %i1;",
        "tanh.approx.f16 %h, %i1;",
        "tanh.approx.bf16 %h, %i1;",
    ]);
}

#[test]
fn approximations_of_constants_stay() {
    // They move in front of the loop.
    let lines = [
        "rcp.approx.ftz.f32 %g, 0f40400000;",
        "div.full.f32 %g, 0f3F800000, 0f40400000;",
    ];
    come_back_under(&["none"], &lines);
}

#[test]
fn every_direction_of_rounding_comes_back() {
    for rounding in ["rn", "rz", "rm", "rp"] {
        let mut lines: Vec<String> = Vec::new();
        for ftz in ["", ".ftz"] {
            for name in ["add", "sub", "mul", "div"] {
                lines.push(format!("{name}.{rounding}{ftz}.f32 %g, %f1, %f2;"));
            }
            lines.push(format!("fma.{rounding}{ftz}.f32 %g, %f1, %f2, %f1;"));
            lines.push(format!("sqrt.{rounding}{ftz}.f32 %g, %f1;"));
            lines.push(format!("rcp.{rounding}{ftz}.f32 %g, %f1;"));
            lines.push(format!("cvt.{rounding}{ftz}.f32.f64 %g, %d1;"));
        }
        for name in ["add", "sub", "mul", "div"] {
            lines.push(format!("{name}.{rounding}.f64 %e, %d1, %d2;"));
        }
        lines.push(format!("fma.{rounding}.f64 %e, %d1, %d2, %d1;"));
        lines.push(format!("sqrt.{rounding}.f64 %e, %d1;"));
        lines.push(format!("rcp.{rounding}.f64 %e, %d1;"));
        lines.push(format!("cvt.{rounding}.f16.f32 %h, %f1;"));
        lines.push(format!("cvt.{rounding}.f32.s32 %g, %r5;"));
        lines.push(format!("cvt.{rounding}.f32.u32 %g, %r5;"));
        lines.push(format!("cvt.{rounding}.f64.u64 %e, %a9;"));
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        come_back(&lines);
    }
}

#[test]
fn halves_flush_as_halves() {
    come_back(&[
        "add.rn.ftz.f16 %h, %i1, %i2;",
        "mul.rn.ftz.f16 %h, %i1, %i2;",
        "fma.rn.ftz.f16 %h, %i1, %i2, %i1;",
        "min.ftz.f16 %h, %i1, %i2;",
        "max.ftz.NaN.f16 %h, %i1, %i2;",
        "setp.lt.ftz.f16 %q, %i1, %i2;",
        "neg.ftz.f16 %h, %i1;",
    ]);
}

#[test]
fn what_may_be_fused_stays_open_and_nothing_else_does() {
    let text = module(&[
        "mul.f32 %f3, %f1, %f2;",
        "mul.f32 %g, %f2, %f2;",
        "add.f32 %g, %f3, %g;",
        "mul.rn.f32 %f3, %f1, %f1;",
        "add.rn.f32 %g, %f3, %g;",
    ]);
    // A product that is used twice may be fused or not: the loop is not edited.
    let launch = LaunchFile::parse(LAUNCH, "launch.toml").expect("a launch file");
    let plan: Plan = "unroll:2".parse().expect("a plan");
    let refused = tune::planned_module(&text, "k.ptx", Some("k"), &launch, &plan, None);
    let refused = refused.expect_err("undecided").to_string();
    assert!(refused.contains("left to the assembler"), "{refused}");
    let written = emitted(&text);
    let count = |word: &str| {
        written
            .lines()
            .filter(|line| line.trim().starts_with(word))
            .count()
    };
    assert_eq!(count("mul.f32 "), 2, "{written}");
    assert_eq!(count("add.f32 "), 1, "{written}");
    assert_eq!(count("mul.rn.f32 "), 1, "{written}");
    assert_eq!(count("add.rn.f32 "), 1, "{written}");
}

/// Operations that differ in their rule alone are not merged, and each gives its own bits.
#[test]
fn other_rules_are_other_operations() {
    let text = module(&[
        "add.rn.f32 %g, %f1, %f2;",
        "add.rz.f32 %g, %f1, %f2;",
        "add.rn.ftz.f32 %g, %f1, %f2;",
        "add.rz.f32 %g, %f2, %f1;",
    ]);
    let written = emitted(&text);
    let count = |word: &str| {
        written
            .lines()
            .filter(|line| line.trim().starts_with(word))
            .count()
    };
    // Of the last one there is an equal one.
    assert_eq!(
        [
            count("add.rn.f32 "),
            count("add.rz.f32 "),
            count("add.rn.ftz.f32 ")
        ],
        [1, 1, 1],
        "{written}"
    );
}

/// What PTX does not have is for the assembler to refuse: it is carried, and taken for nothing else.
#[test]
fn what_ptx_does_not_have_is_carried() {
    for line in [
        "add.ftz.f64 %e, %d1, %d2;",
        "add.rz.f16 %h, %i1, %i2;",
        "min.rz.f32 %g, %f1, %f2;",
        "add.rz.rp.f32 %g, %f1, %f2;",
        "rcp.f32 %g, %f1;",
        "rsqrt.rn.f32 %g, %f1;",
        "sqrt.approx.f64 %e, %d1;",
    ] {
        let launch = LaunchFile::parse(LAUNCH, "launch.toml").expect("a launch file");
        let imported = import(&module(&[line]), "k.ptx", Some("k"), &launch.facts());
        let kernel = imported.unwrap_or_else(|error| panic!("{line}: {error}")).kernel;
        let name = line.split(' ').next().expect("a name");
        assert!(
            headstart::ir::print(&kernel).contains(&format!("opaque \"{name}")),
            "{line}"
        );
    }
}
