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
    planned_for(text, plan, LAUNCH)
}

fn planned_for(text: &str, plan: &str, launch: &str) -> String {
    let launch = LaunchFile::parse(launch, "launch.toml").expect("a launch file");
    let plan = plan.parse().expect("a plan");
    let module = planned_module(text, "k.ptx", Some("k"), &launch, &plan, None);
    module
        .unwrap_or_else(|error| panic!("{plan}: {error}\n{text}"))
        .text
}

/// Why a module cannot have a plan.
fn refused(text: &str, plan: &str) -> String {
    let launch = LaunchFile::parse(LAUNCH, "launch.toml").expect("a launch file");
    let plan = plan.parse().expect("a plan");
    let refused = planned_module(text, "k.ptx", Some("k"), &launch, &plan, None);
    refused
        .map(|module| module.text)
        .expect_err("it is refused")
        .to_string()
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

/// What a launch asks for begins behind what is declared: bulk copies and products of warp groups want it at multiples of 1,024.
#[test]
fn a_ring_leaves_the_alignment_of_the_launchs_own_shared_memory() {
    let all = "param_1@FIRST=rolling-shared:2/plain,param_1@SECOND=rolling-async:5/padded";
    let with_own = TWO_LOOPS
        .replacen(".visible", ".extern .shared .align 16 .b8 own[];\n.visible", 1)
        .replacen(
            "FIRST:",
            "\tmov.u32 %r5, own;\n\tmad.lo.u32 %r5, %r1, 4, %r5;\n\tst.shared.u32 [%r5], %r0;\nFIRST:",
            1,
        );
    let asks = format!("shared_bytes = 128\n{LAUNCH}");
    let bytes = |text: &str| -> Vec<u32> {
        let declared = text
            .lines()
            .filter(|line| line.trim_start().starts_with(".shared"));
        let size = |line: &str| line.rsplit_once('[')?.1.split_once(']')?.0.parse().ok();
        declared.filter_map(size).collect()
    };
    let text = planned_for(&with_own, all, &asks);
    assert_eq!(bytes(&text), [1024, 1024], "{text}");
    let without = planned(TWO_LOOPS, all);
    assert_eq!(bytes(&without), [256, 640], "{without}");
}

/// A switch whose list of targets names the loop: its jumps are not written anew.
#[test]
fn a_loop_that_a_computed_jump_leads_to_is_refused() {
    let text = TWO_LOOPS.replacen(
        "\tmov.u32 %r3, 0;\nSECOND:",
        "\tmov.u32 %r3, 0;\n\tand.b32 %r5, %r1, 1;\nLIST: .branchtargets MIDDLE, SECOND;\n\tbrx.idx %r5, LIST;\n\
         MIDDLE:\n\tadd.u32 %r2, %r2, 7;\nSECOND:",
        1,
    );
    let refused = refused(&text, "param_1@SECOND=rolling-registers:4");
    assert!(refused.contains("a computed jump leads to it"), "{refused}");
    // Beside it, loops are planned.
    planned(&text, "param_1@FIRST=rolling-registers:4");
}

/// A `goto` into a loop: in the graph the loop begins anew for it, in the text it does not.
#[test]
fn a_loop_that_is_entered_beside_its_first_block_is_refused() {
    let text = TWO_LOOPS
        .replacen(
            "SECOND:",
            "\tsetp.eq.u32 %p, %r1, 5;\n\t@%p bra MIDDLE;\nSECOND:",
            1,
        )
        .replacen("\txor.b32", "MIDDLE:\n\txor.b32", 1);
    let refused = refused(&text, "param_1@MIDDLE=rolling-registers:4");
    assert!(
        refused.contains("it can be entered beside its first block"),
        "{refused}"
    );
    // Beside it, loops are planned.
    planned(&text, "param_1@FIRST=rolling-registers:4");
}

/// A call of nvcc's, or inline assembly, is a block of its own.
#[test]
fn a_loop_may_be_followed_by_a_block() {
    let text = TWO_LOOPS.replacen(
        "\tmov.u32 %r3, 0;\nSECOND:",
        "\t{ .reg .b32 t; mov.b32 t, 0; mov.b32 %r3, t; }\nSECOND:",
        1,
    );
    let edited = planned(&text, "unroll:4,param_1@FIRST=rolling-registers:4");
    assert!(
        edited.contains("_:\n// Headstart ends\n\t{ .reg .b32 t;"),
        "{edited}"
    );
}

/// Copies that nothing reads are hints; their groups are still made and waited for by the text.
#[test]
fn groups_of_copies_that_became_hints_are_no_ways_out() {
    let copy = "\tcp.async.ca.shared.global [%r10], [%rd3], 4;\n\tcp.async.commit_group;\n\tcp.async.wait_group 1;\n";
    let text = TWO_LOOPS.replacen(
        "\tld.global.u32 %r4, [%rd3];\n",
        &format!("{copy}\tld.global.u32 %r4, [%rd3];\n"),
        1,
    );
    let text = text.replace(
        ".reg .b32 %r<8>",
        ".shared .align 4 .b8 own[128];\n\t.reg .b32 %r<12>",
    );
    let text = text.replacen("FIRST:", "\tmov.u32 %r10, own;\nFIRST:", 1);
    let edited = planned(&text, "param_1@FIRST=rolling-registers:4");
    assert!(!edited.contains("wait_all"), "{edited}");
    let refused = refused(&text, "param_1@FIRST=rolling-async:4");
    assert!(refused.contains("group"), "{refused}");
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

/// A module whose entry has these loops; `%rd1` is the address of the work-item's first value, `%rd0` of its result, `%r0` how many
/// there are, 128 bytes apart.
fn entry(loops: &str) -> String {
    let (start, end) = TWO_LOOPS.split_once("FIRST:\n").expect("a loop");
    let (_, end) = end.rsplit_once("\t@%p bra SECOND;\n").expect("another one");
    let start = start.replace(".reg .b32 %r<8>", ".reg .b32 %r<24>");
    let start = start.replace(".reg .pred %p;", ".reg .pred %p, %q;\n\t.reg .b16 %h<4>;");
    format!("{start}{loops}{end}")
}

/// What is inserted.
fn inserted(text: &str) -> String {
    let pieces = text.split("// Headstart begins\n").skip(1);
    let pieces = pieces.map(|piece| piece.split_once("// Headstart ends\n").expect("an end").0);
    pieces.collect()
}

const COUNT: &str = "\tadd.u64 %rd1, %rd1, 128;\n\tadd.u32 %r3, %r3, 1;\n\tsetp.lt.u32 %p, %r3, %r0;\n";

#[test]
fn copies_keep_the_statements_as_they_are() {
    let body = "\tred.global.add.u32 [%rd0+0], 1;\n\tst.global.L1::no_allocate.u32 [%rd0], %r2;\n\tld.global.v2.u16 {%h1, %h2}, [%rd1];\n\
                \tld.global.L1::evict_last.s8 %r5, [%rd1+1];\n\tld.global.u8 %h3, [%rd1+2];\n\tld.global.s16 %rd4, [%rd1+2];\n\
                \tcvt.u32.u16 %r6, %h2;\n\tcvt.u32.u16 %r7, %h3;\n\tcvt.u32.u64 %r8, %rd4;\n\tadd.u32 %r2, %r2, %r5;\n\
                \txor.b32 %r2, %r2, %r6;\n\tadd.u32 %r2, %r2, %r7;\n\txor.b32 %r2, %r2, %r8;\n";
    let text = entry(&format!("LOOP:\n{body}{COUNT}\t@%p bra LOOP;\n"));
    let all = |strategy: &str| {
        let loads = (24..28).map(|line| format!("param_1@k.ptx:{line}={strategy}"));
        loads.collect::<Vec<String>>().join(",")
    };
    for (plan, copies) in [
        ("unroll:3".to_owned(), 3),
        (all("rolling-registers:2"), 2),
        (all("cache:L2:2"), 1),
    ] {
        let inserted = inserted(&planned(&text, &plan));
        for line in body.lines().filter(|line| !line.contains("ld.global")) {
            assert_eq!(
                inserted.matches(&format!("{line}\n")).count(),
                copies,
                "{plan}: {line}\n{inserted}"
            );
        }
        // A load is where it was, or a move into the same register.
        let moved = inserted.matches("\tcvt.s64.s16 %rd4, ").count();
        let loads = inserted.matches("\tld.global.s16 %rd4, [%rd1+2];\n").count();
        assert_eq!(moved + loads, copies, "{plan}\n{inserted}");
        assert_eq!(loads == 0, !plan.contains("cache"), "{plan}\n{inserted}");
    }
}

#[test]
fn loops_are_laid_out_as_compilers_like() {
    let sum = "\tld.global.u32 %r4, [%rd1];\n\tadd.u32 %r2, %r2, %r4;\n\tadd.u64 %rd1, %rd1, 128;\n\tadd.u32 %r3, %r3, 1;\n";
    let layouts = [
        // Tested at the top; the way back is a jump.
        format!("LOOP:\n\tsetp.ge.u32 %p, %r3, %r0;\n\t@%p bra DONE;\n{sum}\tbra LOOP;\nDONE:\n"),
        // Entered in the middle: what stands in front of the label falls into it.
        format!("\tbra LOOP;\nBODY:\n{sum}LOOP:\n\tsetp.lt.u32 %p, %r3, %r0;\n\t@%p bra BODY;\n"),
        // What an iteration hands on stands in front of the label, and the last test leads there.
        format!(
            "\tbra LOOP;\nNEXT:\n\tadd.u32 %r2, %r2, 3;\nLOOP:\n{sum}\tsetp.lt.u32 %p, %r3, %r0;\n\t@%p bra NEXT;\n"
        ),
        // Two ways back, and one out in the middle.
        format!(
            "LOOP:\n{sum}\tsetp.ge.u32 %p, %r3, %r0;\n\t@%p bra DONE;\n\tand.b32 %r5, %r4, 1;\n\tsetp.eq.u32 %q, %r5, 0;\n\
             \t@%q bra LOOP;\n\tadd.u32 %r2, %r2, 5;\n\tbra LOOP;\nDONE:\n"
        ),
        // What only the way out runs stands inside.
        format!(
            "LOOP:\n{sum}\tsetp.ge.u32 %p, %r3, %r0;\n\t@%p bra OUT;\n\tbra MORE;\nOUT:\n\txor.b32 %r2, %r2, 77;\n\
             \tbra DONE;\nMORE:\n\tadd.u32 %r2, %r2, 3;\n\tbra LOOP;\nDONE:\n"
        ),
        // The value ends it, too.
        format!(
            "LOOP:\n{sum}\tsetp.gt.u32 %q, %r2, 5000;\n\t@%q bra DONE;\n\tsetp.lt.u32 %p, %r3, %r0;\n\t@%p bra LOOP;\n\
             \tadd.u32 %r2, %r2, 9;\nDONE:\n"
        ),
        // A block and a label of its own.
        format!(
            "LOOP:\n{{\n\t.reg .b32 %r4;\n{sum}\tsetp.eq.u32 %q, %r4, 3;\n\t@%q bra L1;\n\tadd.u32 %r2, %r2, 1;\nL1:\n}}\n{COUNT}\t@%p bra LOOP;\n"
        ),
    ];
    for loops in layouts {
        let text = entry(&loops);
        for plan in [
            "unroll:4",
            "param_1=rolling-registers:3",
            "param_1=batched-registers:3",
            "param_1=rolling-shared:2/plain",
            "param_1=rolling-async:3/interleaved",
            "unroll:2,param_1=rolling-async:4",
            "param_1=cache:L1:2",
        ] {
            planned(&text, plan);
        }
    }
}

#[test]
fn a_way_out_without_a_jump_waits_in_the_middle_of_the_text() {
    let text = entry(&format!(
        "LOOP:\n\tld.global.u32 %r4, [%rd1];\n\tadd.u32 %r2, %r2, %r4;\n{COUNT}\t@%p bra MORE;\n\txor.b32 %r2, %r2, 77;\n\
         \tbra DONE;\nMORE:\n\tadd.u32 %r2, %r2, 3;\n\tbra LOOP;\nDONE:\n"
    ));
    planned(&text, "param_1=rolling-registers:3");
    let inserted = inserted(&planned(&text, "param_1=rolling-async:3"));
    assert!(
        inserted.contains("bra MORE;\n\tcp.async.wait_all;\n\txor.b32"),
        "{inserted}"
    );
}

#[test]
fn loops_inside_each_other_are_planned_together() {
    let text = entry(&format!(
        "OUTER:\n\tld.global.u32 %r5, [%rd1];\n\tadd.u32 %r2, %r2, %r5;\n\tmov.u64 %rd4, %rd1;\n\tmov.u32 %r6, 0;\nINNER:\n\
         \tld.global.u32 %r7, [%rd4];\n\txor.b32 %r2, %r2, %r7;\n\tadd.u64 %rd4, %rd4, 128;\n\tadd.u32 %r6, %r6, 1;\n\
         \tsetp.lt.u32 %q, %r6, %r3;\n\t@%q bra INNER;\n{COUNT}\t@%p bra OUTER;\n"
    ));
    let plan = "param_1@OUTER=rolling-registers:2,param_1@INNER=rolling-registers:3";
    let inserted = inserted(&planned(&text, plan));
    // The inner one stands in each copy of the outer one.
    assert!(inserted.matches("// Loop INNER").count() >= 3, "{inserted}");
    let long = "param_1@OUTER=rolling-registers:48,param_1@INNER=rolling-registers:48";
    let error = refused(&text, long);
    assert!(error.contains("48 copies of it would be "), "{error}");
}

/// A loop around this one, which adds up in `%r2`; `%r6` and `%rd4` count it.
fn around(inner: &str) -> String {
    entry(&format!(
        "OUTER:\n\tmov.u64 %rd4, %rd1;\n\tmov.u32 %r6, 0;\n{inner}\tadd.u32 %r2, %r2, 1;\n{COUNT}\t@%p bra OUTER;\n"
    ))
}

#[test]
fn iterations_of_loops_inside_become_part_of_the_loop_around() {
    let sum = "\tld.global.u32 %r7, [%rd4];\n\txor.b32 %r2, %r2, %r7;\n\tadd.u64 %rd4, %rd4, 128;\n\tadd.u32 %r6, %r6, 1;\n";
    for bound in ["3", "%r3"] {
        let more = format!("\tsetp.lt.u32 %q, %r6, {bound};\n");
        let layouts = [
            format!("INNER:\n{sum}{more}\t@%q bra INNER;\n"),
            format!("\tbra INNER;\nINNER:\n{sum}{more}\t@%q bra INNER;\nBEHIND:\n"),
            // Tested at the top; the way back is a jump.
            format!("INNER:\n{more}\t@!%q bra DONE;\n{sum}\tbra INNER;\nDONE:\n"),
            // Entered in the middle.
            format!("\tbra INNER;\nBODY:\n{sum}INNER:\n{more}\t@%q bra BODY;\n"),
            // Only some work-items enter it.
            format!(
                "\tsetp.gt.u32 %q, %r1, 7;\n\t@%q bra DONE;\nINNER:\n{sum}{more}\t@%q bra INNER;\nDONE:\n"
            ),
            // The value ends it, too.
            format!(
                "INNER:\n{sum}\tsetp.gt.u32 %q, %r2, 900;\n\t@%q bra DONE;\n{more}\t@%q bra INNER;\nDONE:\n"
            ),
        ];
        for inner in layouts {
            let text = around(&inner);
            for plan in [
                "inner:4",
                "inner:2,early",
                "inner:3,unroll:2",
                "inner:3,param_1=rolling-registers:1",
                "inner:2,param_1=rolling-registers:2",
                "inner:2,param_1@INNER=rolling-registers:1",
                "inner:3,param_1=cache:L2:1",
            ] {
                let launch = LaunchFile::parse(LAUNCH, "launch.toml").expect("a launch file");
                let module = planned_module(
                    &text,
                    "k.ptx",
                    Some("k"),
                    &launch,
                    &plan.parse().expect("a plan"),
                    None,
                );
                let module = module
                    .map(|module| module.text)
                    .map_err(|error| error.to_string());
                // The loop as it was stands behind, whole; it may be left where its values say so.
                match module {
                    Ok(module) => assert!(module.contains(&inner), "{plan}\n{module}"),
                    Err(error) => panic!("{plan}: {error}\n{text}"),
                }
            }
        }
    }
}

#[test]
fn copies_do_not_change_what_lengths_count() {
    // Most accesses are of words; in the text that is copied most are of halves, and a length would be of half as many bytes.
    let text = around(
        "\tld.global.u32 %r5, [%rd1];\n\tld.global.u32 %r8, [%rd1+128];\n\tadd.u32 %r2, %r2, %r5;\n\tadd.u32 %r2, %r2, %r8;\n\
         INNER:\n\tld.global.u16 %h1, [%rd4];\n\tcvt.u32.u16 %r7, %h1;\n\txor.b32 %r2, %r2, %r7;\n\tadd.u64 %rd4, %rd4, 128;\n\
         \tadd.u32 %r6, %r6, 1;\n\tsetp.gt.u32 %q, %r2, 90000;\n\t@%q bra DONE;\n\tsetp.lt.u32 %q, %r6, %r0;\n\t@%q bra INNER;\nDONE:\n",
    );
    let launch = LAUNCH.replace("value = 32", "value = 15");
    let launch = LaunchFile::parse(&launch, "launch.toml").expect("a launch file");
    let plan = "inner:6,param_1@INNER=rolling-registers:1"
        .parse()
        .expect("a plan");
    let module = planned_module(&text, "k.ptx", Some("k"), &launch, &plan, None);
    module.unwrap_or_else(|error| panic!("{error}\n{text}"));
}

#[test]
fn what_is_known_of_a_loop_inside_is_left_out() {
    let sum = "\tld.global.u32 %r7, [%rd4];\n\txor.b32 %r2, %r2, %r7;\n\tadd.u64 %rd4, %rd4, 128;\n\tadd.u32 %r6, %r6, 1;\n";
    let inner = |bound: &str| format!("INNER:\n{sum}\tsetp.lt.u32 %q, %r6, {bound};\n\t@%q bra INNER;\n");
    let copies = |bound: &str, plan: &str| {
        let inserted = inserted(&planned(&around(&inner(bound)), plan));
        let tests = inserted.matches("\t@%q bra INNER;\n").count();
        (inserted.matches("\txor.b32 %r2, %r2, %r7;\n").count(), tests)
    };
    // Three iterations and no test, however many more may be asked for.
    assert_eq!(copies("3", "inner:3"), (3, 0));
    assert_eq!(copies("3", "inner:9"), (3, 0));
    // Four, and the loop itself behind two of them.
    assert_eq!(copies("4", "inner:2"), (3, 3));
    assert_eq!(copies("%r3", "inner:2"), (3, 3));
}

#[test]
fn a_loop_inside_does_not_leave_copies_in_flight() {
    let nest = |leaving: &str| {
        entry(&format!(
            "OUTER:\n\tld.global.u32 %r5, [%rd1];\n\tadd.u32 %r2, %r2, %r5;\n\tmov.u64 %rd4, %rd1;\n\tmov.u32 %r6, 0;\nINNER:\n\
             \tld.global.u32 %r7, [%rd4];\n\txor.b32 %r2, %r2, %r7;\n\tsetp.eq.u32 %q, %r7, 77;\n\t@%q {leaving};\n\
             \tadd.u64 %rd4, %rd4, 128;\n\tadd.u32 %r6, %r6, 1;\n\tsetp.lt.u32 %q, %r6, %r3;\n\t@%q bra INNER;\n{COUNT}\
             \t@%p bra OUTER;\nDONE:\n"
        ))
    };
    for leaving in ["ret", "bra DONE"] {
        let text = nest(leaving);
        let error = refused(
            &text,
            "param_1@OUTER=rolling-async:2,param_1@INNER=rolling-registers:2",
        );
        assert!(
            error.contains("a planned loop inside it leaves it where copies are in flight"),
            "{error}"
        );
        for plan in [
            "param_1@OUTER=rolling-registers:2,param_1@INNER=rolling-registers:2",
            "param_1@OUTER=rolling-async:2",
        ] {
            planned(&text, plan);
        }
    }
}

#[test]
fn loops_in_called_functions_stay_and_the_others_are_planned() {
    let function = format!(
        ".func (.param .b32 out) called(.param .b64 from, .param .b32 count)\n{{\n\t.reg .pred %p;\n\t.reg .b32 %r<5>;\n\
         \t.reg .b64 %rd<2>;\n\tld.param.u64 %rd1, [from];\n\tld.param.u32 %r0, [count];\n\tmov.u32 %r2, 0;\n\tmov.u32 %r3, 0;\n\
         CALLED:\n\tld.global.u32 %r4, [%rd1];\n\tadd.u32 %r2, %r2, %r4;\n{COUNT}\t@%p bra CALLED;\n\
         \tst.param.b32 [out], %r2;\n\tret;\n}}\n"
    );
    let call = "{\n\t.param .b64 a;\n\t.param .b32 b;\n\t.param .b32 c;\n\tst.param.b64 [a], %rd1;\n\tst.param.b32 [b], %r0;\n\
                \tcall.uni (c), called, (a, b);\n\tld.param.b32 %r5, [c];\n\tadd.u32 %r2, %r2, %r5;\n}\n";
    let loops = "LOOP:\n\tld.global.u32 %r4, [%rd1];\n\tadd.u32 %r2, %r2, %r4;\n";
    let beside = |loops: &str| entry(loops).replace(".visible .entry", &format!("{function}.visible .entry"));
    let text = beside(&format!("{call}{loops}{COUNT}\t@%p bra LOOP;\n"));
    let inserted = inserted(&planned(&text, "unroll:4"));
    assert_eq!(inserted.matches("// Loop ").count(), 1, "{inserted}");
    planned(&text, "param_1@LOOP=rolling-async:4");
    let error = refused(&text, "param_1@CALLED=rolling-async:4");
    assert!(
        error.contains("its loop lies in a function that is called"),
        "{error}"
    );
    let error = refused(&beside(call), "unroll:4");
    assert!(
        error.contains("its loop lies in a function that is called"),
        "{error}"
    );
}

#[test]
fn groups_of_copies_that_the_loop_counts_are_its_own() {
    let copy = ".shared .align 4 .b8 own[128];\n\tmov.u32 %r10, own;\n\tmad.lo.u32 %r10, %r1, 4, %r10;\n";
    let text = entry(&format!(
        "{copy}LOOP:\n\tcp.async.ca.shared.global [%r10], [%rd1], 4;\n\tcp.async.commit_group;\n\tcp.async.wait_group 0;\n\
         \tld.shared.u32 %r4, [%r10];\n\tadd.u32 %r2, %r2, %r4;\n\tld.global.u32 %r5, [%rd1];\n\tadd.u32 %r2, %r2, %r5;\n{COUNT}\
         \t@%p bra LOOP;\n"
    ));
    planned(&text, "param_1@k.ptx:30=rolling-registers:2");
    let error = refused(&text, "param_1@k.ptx:30=rolling-async:2");
    assert!(
        error.contains("it counts groups of asynchronous copies"),
        "{error}"
    );
}
