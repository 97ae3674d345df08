//! Entries as compilers write them, run on the functional engine against the same loops in Rust.

mod atomics;
mod corpus;
mod fields;
mod mutations;

use std::sync::Arc;

use headstart_front::ptx::{Facts, entries, import, read};
use headstart_ir::ir::Kernel;
use headstart_sim::functional::Options;
use headstart_testing::Case;
use headstart_testing::run;
use headstart_tune::tune::{FileSubject, LaunchFile, Subject};

const NVCC: &str = include_str!("../../../../corpus/first.ptx");

/// The outputs of an entry under a launch file.
fn outputs(text: &str, entry: &str, launch: &str) -> (Arc<Kernel>, Vec<(String, Vec<u8>)>) {
    let launch = LaunchFile::parse(launch, "launch.toml").expect("a launch file");
    let imported = import(text, "test.ptx", Some(entry), &launch.facts());
    let subject = FileSubject::of_module(imported.unwrap_or_else(|error| panic!("{error}")), launch);
    let workload = subject.workload().expect("a workload");
    let kernel = Arc::clone(&workload.kernel);
    let outputs = run(&workload, &kernel, Options::CHECKING);
    (
        Arc::clone(&kernel),
        outputs.unwrap_or_else(|error| panic!("{error}\n{}", headstart_ir::ir::print(&kernel))),
    )
}

/// The output of this name. Inputs that a launch file calls outputs are among them.
fn named<'o>(outputs: &'o [(String, Vec<u8>)], name: &str) -> &'o [u8] {
    let found = outputs.iter().find(|(output, _)| output == name);
    &found.expect("an output").1
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    let words = bytes.chunks_exact(4);
    words
        .map(|word| f32::from_le_bytes([word[0], word[1], word[2], word[3]]))
        .collect()
}

fn integers(bytes: &[u8]) -> Vec<u32> {
    let words = bytes.chunks_exact(4);
    words
        .map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
        .collect()
}

#[test]
fn entries_are_named() {
    assert_eq!(
        entries(NVCC).expect("a module"),
        ["gather", "spmv", "reduce", "search"]
    );
    let error = read(NVCC, "nvcc.ptx", None, &Facts::default()).expect_err("several entries");
    assert!(error.to_string().contains("`spmv`"), "{error}");
    let error = read(NVCC, "nvcc.ptx", Some("gahter"), &Facts::default()).expect_err("no such entry");
    assert!(error.to_string().contains("`gather`"), "{error}");
}

#[test]
fn a_loop_that_was_unrolled_and_rotated() {
    for items in [0, 1, 3, 4, 9] {
        let launch = format!(
            "groups = 2\ngroup = 32\n[parameters.param_0]\nlength = {}\nfill = \"sequence\"\n[parameters.param_1]\n\
             length = 1024\nfill = \"fractions\"\noutput = \"bits\"\n[parameters.param_2]\nlength = 64\n[parameters.param_3]\nvalue = {items}\n",
            (64 * items).max(1)
        );
        let (kernel, outputs) = outputs(NVCC, "gather", &launch);
        assert!(
            kernel
                .param("param_0")
                .and_then(|p| p.facts)
                .expect("a pointer")
                .read_only
        );
        let values = floats(named(&outputs, "param_1"));
        let expected: Vec<f32> = (0..64)
            .map(|id| (0..items).fold(0.0, |sum, j| sum + values[j * 64 + id]))
            .collect();
        assert_eq!(floats(named(&outputs, "param_2")), expected, "{items}");
    }
}

#[test]
fn strength_reduced_pointers_and_a_remainder() {
    // Rows between random bounds, most of them empty or long, which nvcc walks with a remainder first and four at a time then.
    let n = 32u32;
    let launch = format!(
        "groups = 1\ngroup = 32\nreadonly = [\"param_0\"]\n[parameters.param_0]\nlength = {}\nfill = \"indices\"\nbelow = 64\noutput = \"bits\"\n\
         [parameters.param_1]\nlength = 64\nfill = \"sequence\"\n[parameters.param_2]\nlength = 64\nfill = \"fractions\"\n\
         output = \"bits\"\n[parameters.param_3]\nlength = 64\nfill = \"fractions\"\noutput = \"bits\"\n[parameters.param_4]\nlength = {n}\n[parameters.param_5]\nvalue = {n}\n",
        n + 1
    );
    let (_, outputs) = outputs(NVCC, "spmv", &launch);
    let (a, x) = (
        floats(named(&outputs, "param_2")),
        floats(named(&outputs, "param_3")),
    );
    let rows = integers(named(&outputs, "param_0"));
    let row =
        |r: usize| (rows[r] as usize..rows[r + 1] as usize).fold(0.0f32, |sum, k| a[k].mul_add(x[k], sum));
    let expected: Vec<f32> = (0..n as usize).map(row).collect();
    assert!(
        expected.contains(&0.0) && expected.iter().any(|&sum| sum > 10.0),
        "rows of all lengths"
    );
    assert_eq!(floats(named(&outputs, "param_4")), expected);
}

#[test]
fn shared_memory_and_barriers() {
    let launch = "groups = 2\ngroup = 64\nreadonly = [\"param_0\"]\n[parameters.param_0]\nlength = 300\nfill = \"fractions\"\n\
                  output = \"bits\"\n[parameters.param_1]\nlength = 2\n[parameters.param_2]\nvalue = 300\n";
    let (_, outputs) = outputs(NVCC, "reduce", launch);
    let values = floats(named(&outputs, "param_0"));
    let expected: Vec<f32> = (0..2)
        .map(|group| {
            let mut tile: Vec<f32> = (0..64)
                .map(|item| {
                    (group * 64 + item..300)
                        .step_by(128)
                        .fold(0.0, |sum, i| sum + values[i])
                })
                .collect();
            for distance in [32, 16, 8, 4, 2, 1] {
                (0..distance).for_each(|item| tile[item] += tile[item + distance]);
            }
            tile[0]
        })
        .collect();
    assert_eq!(floats(named(&outputs, "param_1")), expected);
}

#[test]
fn a_return_inside_a_loop() {
    let launch = "groups = 1\ngroup = 32\n[parameters.param_0]\nlength = 100\nfill = \"sequence\"\n[parameters.param_1]\n\
                  length = 32\nfill = \"indices\"\nbelow = 200\noutput = \"bits\"\n[parameters.param_2]\nlength = 32\n[parameters.param_3]\nvalue = 100\n";
    let (_, outputs) = outputs(NVCC, "search", launch);
    let wanted = integers(named(&outputs, "param_1"));
    let expected: Vec<u32> = wanted
        .iter()
        .map(|&key| if key < 100 { key } else { u32::MAX })
        .collect();
    assert_eq!(integers(named(&outputs, "param_2")), expected);
}

/// What is not understood does not stand in the way of an entry's loops.
#[test]
fn statements_that_are_not_understood_are_carried() {
    let fib = ".func (.param .b32 o) fib(.param .b32 n)\n{\n.reg .b32 %q<3>;\nld.param.u32 %q1, [n];\n\
               { .param .b32 a; .param .b32 r; st.param.b32 [a], %q1; call.uni (r), fib, (a); ld.param.b32 %q1, [r]; }\n\
               st.param.b32 [o], %q1;\nret;\n}\n";
    let through = |what: &str, more: &str| {
        format!(
            "{{ .param .b32 a; .param .b32 r; st.param.b32 [a], %r1; {what} (r), {more}; ld.param.b32 %r1, [r]; }}"
        )
    };
    for (body, carried) in [
        (
            "frobnicate.b32 %r1, %r2;".to_owned(),
            "opaque \"frobnicate.b32 =0, =1\" anything ends (i32, i32) (",
        ),
        ("mov.u32 %r1, %lanes;".to_owned(), "%lanes"),
        ("add.cc.u16 %r1, %r2, %r3;".to_owned(), "add.cc.u16"),
        (
            "set.eq.f16x2.f16x2 %r1, %r2, %r2;".to_owned(),
            "set.eq.f16x2.f16x2",
        ),
        ("vote.ballot.b32 %r1, %p1;".to_owned(), "vote.ballot.b32"),
        (through("call.uni", "fib, (a)"), "call.uni"),
        (through("@%p1 call.uni", "fib, (a)"), "call.uni"),
        (
            format!(
                "P: .callprototype (.param .b32 _) _ (.param .b32 _);\n{}",
                through("call", "%rd1, (a), P")
            ),
            "call",
        ),
        (
            "LIST: .branchtargets A, B;\nbrx.idx %r1, LIST;\nA: add.u32 %r2, %r2, 1;\nB:".to_owned(),
            " = eq ",
        ),
    ] {
        let text = format!(
            ".version 8.0\n.target sm_90\n.address_size 64\n{fib}.entry k(.param .u64 k_param_0)\n{{\n.reg .b32 %r<9>;\n\
             .reg .b64 %rd<3>;\n.reg .pred %p<2>;\nmov.u32 %r1, %tid.x;\nmov.u32 %r2, %ctaid.x;\nmov.u32 %r3, %r1;\n\
             setp.eq.u32 %p1, %r1, 3;\nld.param.u64 %rd1, [k_param_0];\n{body}\nld.param.u64 %rd2, [k_param_0];\n\
             st.global.u32 [%rd2], %r1;\nst.global.u32 [%rd2+4], %r2;\nret;\n}}\n"
        );
        let kernel = read(&text, "k.ptx", Some("k"), &Facts::default())
            .unwrap_or_else(|error| panic!("{body}: {error}"));
        let printed = headstart_ir::ir::print(&kernel);
        assert!(printed.contains(carried), "{body}\n{printed}");
    }
}

#[test]
fn what_cannot_be_read_is_named_with_its_line() {
    let module = |body: &str| {
        format!(
            ".version 8.0\n.target sm_90\n.address_size 64\n.entry k()\n{{\n.reg .b32 %r<9>;\n.reg .pred %p<2>;\n{body}\nret;\n}}\n.entry other() {{ ret; }}"
        )
    };
    let text = module("bra NOWHERE;");
    let error = read(&text, "k.ptx", Some("k"), &Facts::default()).expect_err("there is no label");
    for part in ["NOWHERE", "`other`", "entry `k`"] {
        assert!(error.to_string().contains(part), "{part}: {error}");
    }
}

#[test]
fn what_the_back_end_writes_is_read_again() {
    use headstart_back::ptx::{Options as Emit, PtxTarget, emit};
    for case in Case::all().expect("cases") {
        let plain = &case.workload.kernel;
        let Ok(ptx) = emit(plain, &Emit::new(PtxTarget::Sm90)) else {
            continue;
        };
        let read = read(&ptx.text, "case.ptx", Some(&ptx.entry), &Facts::default());
        let read = read.unwrap_or_else(|error| panic!("{}: {error}\n{}", case.name, ptx.text));
        let names = |kernel: &Kernel| {
            kernel
                .params
                .iter()
                .map(|param| param.name.clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(names(&read), names(plain), "{}", case.name);
        let expected = run(&case.workload, plain, Options::CHECKING).expect("the plain kernel runs");
        let found = run(&case.workload, &read, Options::FAST);
        let found = found
            .unwrap_or_else(|error| panic!("{}: {error}\n{}", case.name, headstart_ir::ir::print(&read)));
        assert!(expected == found, "{}", case.name);
    }
}
