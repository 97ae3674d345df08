//! Tests of modules with a plan.

mod assumptions;

use super::super::Subject;
use super::*;
use crate::error::Fault;
use crate::report::{Best, LaunchSettings, Verdict};

const MODULE: &str = include_str!("../../../../../corpus/first.ptx");
const LAUNCH: &str = "groups = 2\ngroup = 64\nunaliased = [\"param_2\"]\nno_overflow = true\n[parameters.param_0]\n\
                      length = 1024\nfill = \"indices\"\nbelow = 4096\n[parameters.param_1]\nlength = 4096\n\
                      [parameters.param_2]\nlength = 128\n[parameters.param_3]\nvalue = 8\n";

/// A subject that reads a rewritten text with one piece exchanged, as if it had been written so.
struct Misprinted<'a>(&'a FileSubject, (&'a str, &'a str));

impl Subject for Misprinted<'_> {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn workload(&self) -> Result<Workload> {
        self.0.workload()
    }

    fn small(&self, iterations: u64) -> Result<Option<Workload>> {
        self.0.small(iterations)
    }

    fn read_again(&self, text: &str, bytes: Option<u32>) -> Result<Option<Arc<Kernel>>> {
        let (right, wrong) = self.1;
        assert!(text.contains(right), "{text}");
        self.0.read_again(&text.replace(right, wrong), bytes)
    }
}

#[test]
fn the_text_is_checked_and_not_the_kernel_that_it_was_written_from() {
    let launch = LaunchFile::parse(LAUNCH, "launch.toml").expect("a launch file");
    let plan: Plan = "unroll:2".parse().expect("a plan");
    let imported = import(MODULE, "first.ptx", Some("gather"), &launch.facts()).expect("an entry");
    let subject = FileSubject::of_module(imported, launch.clone());
    let workload = subject.workload().expect("a workload");
    let applied = prefetch::apply(&workload.kernel, &plan, &target_for(workload.group)).expect("legal");
    let derived = Arc::new(applied.kernel);
    let check = |subject: &dyn Subject| {
        let engine = Engine::of_no_device(workload.group);
        let settings = Settings {
            launches: 60,
            ..Settings::default()
        };
        perturb::check_written(subject, &workload.kernel, engine, &plan, &derived, settings)
    };
    // The check is of the kernel that the text is read as.
    let text = planned_module(MODULE, "first.ptx", Some("gather"), &launch, &plan, None).expect("right");
    // Lines are counted without the note.
    let text = &text.drop_in.text;
    let facts = crate::front::ptx::Facts {
        no_overflow: false,
        ..launch.facts()
    };
    let again = import(text, "first.ptx", Some("gather"), &facts).expect("it is read");
    let checked = check(&subject).expect("right");
    assert_eq!(checked.kernel, perturb::identity(&again.kernel));
    assert!(checked.agreed > 20, "{checked:?}");
    // A text that computes something else is refused, and nothing that the user did is blamed.
    let error = check(&Misprinted(&subject, ("add.f32", "sub.f32"))).expect_err("other bits");
    assert_eq!(error.fault(), Fault::Input);
    let said = error.to_string();
    assert!(
        said.starts_with(
            "Headstart cannot rewrite `gather`: the text that it writes is read as another kernel"
        ),
        "{said}"
    );
    let folder = said
        .split("to repeat it: `")
        .nth(1)
        .and_then(|rest| rest.split('`').next());
    std::fs::remove_dir_all(folder.expect("a folder")).expect("removed");
    let error = check(&Misprinted(&subject, ("ret;", "bra NOWHERE;"))).expect_err("no PTX");
    assert_eq!(error.fault(), Fault::Input);
    assert!(error.to_string().contains("cannot be read again"), "{error}");
}

/// Two pairs of floats and a double, both of 8 bytes: the copies into the slots of the two rings look alike.
const PAIRS: &str = ".version 8.0\n.target sm_80\n.address_size 64\n
.visible .entry pairs(.param .u64 a, .param .u64 b, .param .u64 out, .param .u32 n)
{
    .reg .pred %p<3>; .reg .f32 %f<5>; .reg .b32 %r<4>; .reg .f64 %fd<2>; .reg .b64 %rd<10>;
    ld.param.u64 %rd1, [a];
    ld.param.u64 %rd2, [b];
    ld.param.u64 %rd3, [out];
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %tid.x;
    mul.wide.s32 %rd4, %r2, 8;
    cvta.to.global.u64 %rd1, %rd1;
    cvta.to.global.u64 %rd2, %rd2;
    add.s64 %rd5, %rd1, %rd4;
    add.s64 %rd6, %rd2, %rd4;
    mov.f32 %f1, 0f00000000;
    mov.u32 %r3, 0;
    setp.le.s32 %p1, %r1, 0;
    @%p1 bra DONE;
LOOP:
    ld.global.v2.f32 {%f2, %f3}, [%rd5];
    ld.global.f64 %fd1, [%rd6];
    add.rn.f32 %f1, %f1, %f2;
    add.rn.f32 %f1, %f1, %f3;
    cvt.rn.f32.f64 %f4, %fd1;
    add.rn.f32 %f1, %f1, %f4;
    add.s64 %rd5, %rd5, 256;
    add.s64 %rd6, %rd6, 256;
    add.s32 %r3, %r3, 1;
    setp.lt.s32 %p2, %r3, %r1;
    @%p2 bra LOOP;
DONE:
    cvta.to.global.u64 %rd3, %rd3;
    mul.wide.s32 %rd7, %r2, 4;
    add.s64 %rd8, %rd3, %rd7;
    st.global.f32 [%rd8], %f1;
    ret;
}
";

#[test]
fn rings_of_two_types_of_one_size_are_read_again() {
    let launch = "groups = 1\ngroup = 32\nunaliased = [\"out\"]\n[parameters.a]\nlength = 576\nfill = \"fractions\"\n\
                  [parameters.b]\nlength = 288\nfill = \"fractions\"\n[parameters.out]\nlength = 32\noutput = \"bits\"\n\
                  [parameters.n]\nvalue = 9\n";
    let launch = LaunchFile::parse(launch, "launch.toml").expect("a launch file");
    let plan: Plan = "a=rolling-async:3,b=rolling-async:3".parse().expect("a plan");
    // ptxas refuses what is not ASCII, in comments, too.
    let measured = Some("sim:h200: 1.1 µs instead of 2.2 µs.");
    let planned = planned_module(PAIRS, "pärs.ptx", Some("pairs"), &launch, &plan, measured);
    let planned = planned.unwrap_or_else(|error| panic!("{error}"));
    assert!(planned.text.contains("cp.async.ca.shared.global"));
    assert!(planned.text.is_ascii() && planned.text.contains("1.1 us"));
}

#[test]
fn copies_for_hints_to_l1_are_checked_against_where_memory_starts() {
    let launch = LaunchFile::parse(LAUNCH, "launch.toml").expect("a launch file");
    let plan: Plan = "param_1=cache:L1:2".parse().expect("a plan");
    let planned = planned_module(MODULE, "first.ptx", Some("gather"), &launch, &plan, None);
    let planned = planned.unwrap_or_else(|error| panic!("{error}"));
    // The loop has the sum of start and offset in a register, and nothing else of the edit reads the start.
    let added = &planned.drop_in.added;
    assert!(added.contains("cp.async.ca.shared.global"), "{added}");
    assert!(added.contains(", [gather_param_1]"), "{added}");
}

/// A loop of sums with these lines in it, and these behind it.
fn looped(inside: &str, behind: &str) -> String {
    format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 a, .param .u64 out, .param .u32 n)\n{{\n\
         .reg .pred %p<3>; .reg .b32 %r<9>; .reg .b64 %rd<9>;\nld.param.u64 %rd1, [a];\nld.param.u64 %rd2, [out];\n\
         ld.param.u32 %r1, [n];\nmov.u32 %r2, 0;\nmov.u32 %r3, 0;\nL:\n{inside}\nld.global.nc.u32 %r4, [%rd1];\n\
         add.s32 %r3, %r3, %r4;\nadd.s64 %rd1, %rd1, 4;\nadd.s32 %r2, %r2, 1;\nsetp.lt.s32 %p1, %r2, %r1;\n@%p1 bra L;\n\
         {behind}\nst.global.u32 [%rd2], %r3;\nret;\n}}\n"
    )
}

/// A launch of it.
const SUMS: &str = "groups = 1\ngroup = 1\nno_overflow = true\nunaliased = [\"out\"]\n[parameters.a]\nlength = 64\n\
                    fill = \"indices\"\n[parameters.out]\nlength = 1\noutput = \"bits\"\n[parameters.n]\nvalue = 9\n";

/// Why a plan for that loop is refused, if it is.
fn refused(text: &str, plan: &str) -> Option<String> {
    let launch = LaunchFile::parse(SUMS, "launch.toml").expect("a launch file");
    let plan: Plan = plan.parse().expect("a plan");
    placed_module(text, &launch, &plan)
        .err()
        .map(|error| error.to_string())
}

#[test]
fn a_module_without_a_check_says_so() {
    let launch = LaunchFile::parse(LAUNCH, "launch.toml").expect("a launch file");
    let plan: Plan = "unroll:2".parse().expect("a plan");
    let written = |settings: Option<Settings>| {
        let module = derived_module(MODULE, "first.ptx", Some("gather"), &launch, &plan, settings);
        module.expect("it is legal").text
    };
    let checked = Settings {
        launches: 20,
        ..Settings::default()
    };
    assert!(!written(Some(checked)).contains("not checked"));
    assert!(written(None).contains("// No launch was run with the plan: it is not checked."));
}

#[test]
fn registers_of_blocks_inside_are_an_iteration_s_own() {
    let of_block = |lines: &str| {
        looped(
            &format!("{{ .reg .b32 own; {lines} add.s32 %r3, %r3, own; }}"),
            "",
        )
    };
    assert_eq!(refused(&of_block("mov.u32 own, 5;"), "unroll:2"), None);
    // What one iteration leaves in it the next one finds, in the loop and in no copy.
    let error = refused(
        &of_block("setp.eq.s32 %p2, %r2, 0; @%p2 mov.u32 own, 5;"),
        "unroll:2",
    );
    assert!(error.expect("refused").contains("a block inside declares"));
}

#[test]
fn slots_move_arrays_by_whole_tiles() {
    let used = "mov.u32 %r5, own;\nst.shared.u32 [%r5], %r3;\nld.shared.u32 %r3, [%r5];";
    let array = ".shared .align 4 .b8 own[64];\n";
    let in_front_of = |line: &str| looped("", used).replace(line, &format!("{array}{line}"));
    let added = |text: &str| {
        let plan = "a=rolling-shared:2".parse().expect("a plan");
        let launch = LaunchFile::parse(SUMS, "launch.toml").expect("a launch file");
        let module = placed_module(text, &launch, &plan).expect("it is legal");
        module.drop_in.added_shared_bytes
    };
    assert_eq!(added(&in_front_of("mov.u32 %r2, 0;")), 8);
    assert_eq!(added(&in_front_of("mov.u32 %r5, own;")), 1024);
    assert_eq!(added(&in_front_of(".visible")), 1024);
}

#[test]
fn a_report_of_another_kernel_is_no_check() {
    let launch = LaunchFile::parse(LAUNCH, "launch.toml").expect("a launch file");
    let plan: Plan = "unroll:2".parse().expect("a plan");
    let imported = import(MODULE, "first.ptx", Some("gather"), &launch.facts()).expect("an entry");
    let subject = FileSubject::of_module(imported, launch.clone());
    let workload = subject.workload().expect("a workload");
    let applied = prefetch::apply(&workload.kernel, &plan, &target_for(workload.group)).expect("legal");
    let placed = drop_in::placed(
        subject.original().expect("a module"),
        &workload.kernel,
        &applied.kernel,
    );
    let written = subject.read_again(&placed.expect("a module").text, None);
    let written = written.expect("it is read").expect("from a module");
    let checked = Perturbed {
        kernel: perturb::identity(&written),
        seed: 3,
        digest: String::new(),
        launches: 424_242,
        dropped: 0,
        dropped_for: Default::default(),
        agreed: 424_242,
        not_for: 0,
        on_device: None,
        weakly_checked: Vec::new(),
    };
    let written = |perturbed: Option<Perturbed>| {
        let report = Report {
            best: Best {
                plan: plan.clone(),
                way: LaunchSettings::default(),
                time_ns: 1.0,
                speedup: 2.0,
                between: None,
            },
            verdict: Verdict::Unroll,
            perturbed,
            ..headstart_report::samples::sample()
        };
        best_module(MODULE, "first.ptx", Some("gather"), &launch, &report).expect("a module")
    };
    let known = written(Some(checked.clone()));
    assert!(known.contains("On 424242 small launches"), "{}", &known[..800]);
    // As of another launch, whose lengths made another kernel, or of an earlier version.
    let other = Perturbed {
        kernel: "0123".to_owned(),
        ..checked
    };
    for (report, seed) in [(Some(other), "(seed 3)"), (None, "(seed 1)")] {
        let anew = written(report);
        assert!(
            anew.contains(seed) && !anew.contains("424242"),
            "{}",
            &anew[..800]
        );
    }
}

/// Sums of parts of a table that the module declares.
const TABLE: &str = "\
.version 8.0
.target sm_80
.address_size 64
.visible .global .align 4 .b8 table[4096];
.visible .entry sums(.param .u64 out, .param .u32 n)
{
    .reg .pred %p<3>;
    .reg .b32 %r<10>;
    .reg .b64 %rd<10>;
    ld.param.u64 %rd1, [out];
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %tid.x;
    mov.u32 %r3, 0;
    mov.u32 %r4, 0;
OUTER:
    mov.u32 %r5, %r2;
INNER:
    and.b32 %r6, %r5, 1023;
    mul.wide.u32 %rd2, %r6, 4;
    mov.u64 %rd3, table;
    add.s64 %rd3, %rd3, %rd2;
    ld.global.u32 %r7, [%rd3];
    add.s32 %r4, %r4, %r7;
    add.s32 %r5, %r5, 32;
    setp.lt.s32 %p1, %r5, 96;
    @%p1 bra INNER;
    add.s32 %r3, %r3, 1;
    setp.lt.s32 %p2, %r3, %r1;
    @%p2 bra OUTER;
    cvta.to.global.u64 %rd4, %rd1;
    mul.wide.u32 %rd5, %r2, 4;
    add.s64 %rd4, %rd4, %rd5;
    st.global.u32 [%rd4], %r4;
    ret;
}
";

#[test]
fn iterations_of_loops_inside_name_the_program_s_variables() {
    let imported = import(
        TABLE,
        "table.ptx",
        Some("sums"),
        &headstart_front::ptx::Facts::default(),
    );
    let imported = imported.expect("an entry");
    let plan: Plan = "inner:3".parse().expect("a plan");
    let applied = prefetch::apply(&imported.kernel, &plan, &target_for([32, 1, 1])).expect("legal");
    let beside = drop_in::beside(&imported.original, &imported.kernel, &applied.kernel, |_| false);
    let module = beside.expect("a module").module;
    // Three copies and the loop as it was.
    assert_eq!(
        module.text.matches("add.s32 %r4, %r4, %r7;").count(),
        4,
        "{}",
        module.text
    );
    assert_eq!(
        module.text.matches("mov.u64 %rd3, table;").count(),
        0,
        "{}",
        module.text
    );
    assert_eq!(
        module
            .text
            .matches("ld.const.u64 %rd3, [headstart_address_of_table];")
            .count(),
        4,
        "{}",
        module.text
    );
}
