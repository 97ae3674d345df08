//! Tests of a rewritten entry's requirements and assumptions.

use crate::error::{Error, Result};
use crate::front::ptx::{Assembler, Facts, Original, ParameterFacts, import};
use crate::ir::Fused;
use crate::prefetch::{self, Plan};
use crate::tune::modules::drop_in::{DropIn, placed, placed_under};
use crate::tune::modules::granted::granted;
use crate::tune::modules::placed_module;
use crate::tune::{Granted, LaunchFile, PlannedModule};

/// `while (i < n) { s += table[i]; if (s > 10⁵) break; … }`, with a test's additions.
#[derive(Clone, Copy)]
struct Entry<'t> {
    /// In front of the entry.
    module: &'t str,
    /// In front of the body.
    directives: &'t str,
    /// In front of the loop; `%rd3` is the address of the table, `%rd2` of the output.
    start: &'t str,
    /// In the loop.
    inside: &'t str,
    /// The counter's step.
    step: u32,
    /// Whether the sum ends the loop, too.
    exits: bool,
    /// How the table is read.
    load: &'t str,
}

const PLAIN: Entry<'static> = Entry {
    module: "",
    directives: "",
    start: "",
    inside: "",
    step: 1,
    exits: false,
    load: "ld.global.nc.u32",
};
const STORE: &str = "st.global.u32 [%rd2], %r3;\n";
const LAUNCH: &str = "groups = 1\ngroup = 64\nparameters.table = { length = 40 }\nparameters.out = { length = 64, output = \"bits\" }\n";

impl Entry<'_> {
    fn text(&self) -> String {
        let Entry {
            module,
            directives,
            start,
            inside,
            step,
            load,
            ..
        } = self;
        let exit = if self.exits {
            "setp.gt.s32 %p2, %r3, 100000;\n@%p2 bra D;\n"
        } else {
            ""
        };
        let (table, read) = match module.contains("table") {
            true => ("", "mov.u64 %rd3, table;\n"),
            false => (".param .u64 table, ", "ld.param.u64 %rd3, [table];\n"),
        };
        format!(
            ".version 7.8\n.target sm_80\n.address_size 64\n{module}\n.visible .entry k({table}.param .u64 out, .param .u32 n)\n\
             {directives}{{\n.reg .pred %p<4>;\n.reg .b32 %r<12>;\n.reg .b64 %rd<12>;\nld.param.u64 %rd2, [out];\n\
             ld.param.u32 %r1, [n];\n{read}{start}mov.u32 %r2, 0;\nmov.u32 %r3, 0;\nL:\nsetp.ge.s32 %p1, %r2, %r1;\n\
             @%p1 bra D;\nmul.wide.s32 %rd4, %r2, 4;\nadd.s64 %rd5, %rd3, %rd4;\n{load} %r4, [%rd5];\n\
             add.s32 %r3, %r3, %r4;\n{inside}{exit}add.s32 %r2, %r2, {step};\nbra L;\nD:\nmov.u32 %r6, %tid.x;\n\
             mul.wide.u32 %rd8, %r6, 4;\nadd.s64 %rd9, %rd2, %rd8;\nst.global.u32 [%rd9], %r3;\nret;\n}}\n"
        )
    }

    fn rewritten(&self, launch: &str, plan: &str) -> Result<PlannedModule> {
        let launch = LaunchFile::parse(launch, "launch.toml").expect("a launch file");
        let plan: Plan = plan.parse().expect("a plan");
        placed_module(&self.text(), &launch, &plan)
    }

    fn done(&self, launch: &str, plan: &str) -> PlannedModule {
        self.rewritten(launch, plan)
            .unwrap_or_else(|error| panic!("{plan}: {error}\n{}", self.text()))
    }
}

const REGISTERS: &str = "table=rolling-registers:3";
const SHARED: &str = "table=rolling-shared:3";

#[test]
fn what_the_entry_says_itself_is_not_taken_for_granted() {
    let module = PLAIN.done(LAUNCH, REGISTERS);
    assert_eq!(module.granted, []);
    assert!(module.drop_in.needs.group.is_none());
}

#[test]
fn each_statement_that_a_plan_needs_is_taken_for_granted() {
    let plain = Entry {
        load: "ld.global.u32",
        ..PLAIN
    };
    let storing = Entry {
        inside: STORE,
        ..plain
    };
    // What a length alone guards has to be constant, or the memory may be written meanwhile.
    let exits = Entry { exits: true, ..PLAIN };
    let (table, out) = (|| "table".to_owned(), || "out".to_owned());
    // Whether the plan is legal without it as well, but comes to another text.
    let (needed, told) = (false, true);
    for (entry, statement, expected, legal) in [
        (
            storing,
            "readonly = [\"table\"]\n",
            vec![Granted::ReadOnly(table())],
            needed,
        ),
        (
            plain,
            "readonly = [\"table\"]\n",
            vec![Granted::ReadOnly(table())],
            told,
        ),
        (
            storing,
            "unaliased = [\"out\"]\n",
            vec![Granted::Unaliased(out())],
            needed,
        ),
        // One of two suffices.
        (
            storing,
            "readonly = [\"table\"]\nunaliased = [\"out\"]\n",
            vec![Granted::ReadOnly(table())],
            needed,
        ),
        (
            storing,
            "unaliased = [\"out\", \"table\"]\n",
            vec![Granted::Unaliased(table())],
            needed,
        ),
        (exits, "", vec![Granted::Length(table(), 40)], told),
        // A length guards the same loads where nothing says that the counter does not overflow.
        (
            Entry { step: 4, ..PLAIN },
            "no_overflow = true\n",
            vec![Granted::NoOverflow],
            told,
        ),
        (plain, "unaliased = [\"out\", \"table\"]\n", vec![], told),
    ] {
        let module = entry.done(&format!("{statement}{LAUNCH}"), REGISTERS);
        assert_eq!(module.granted, expected, "{statement}{}", entry.text());
        for granted in &module.granted {
            assert!(
                module
                    .text
                    .contains(&format!("// Taken for granted: {granted}.\n"))
            );
        }
        assert_eq!(entry.rewritten(LAUNCH, REGISTERS).is_ok(), legal, "{statement}");
    }
}

#[test]
fn ends_of_variables_are_taken_for_granted_where_they_guard() {
    let variable = |module| Entry { module, ..PLAIN };
    let launch = "groups = 1\ngroup = 64\nparameters.out = { length = 64, output = \"bits\" }\n";
    let inside = variable(".visible .global .align 4 .b32 table[64];\n");
    assert_eq!(inside.done(launch, REGISTERS).granted, []);
    let guarded = Entry {
        exits: true,
        ..inside
    };
    assert_eq!(guarded.done(launch, REGISTERS).granted, [Granted::VariablesEnd]);
    // Where a variable of another module ends only the launch can say.
    for other in [
        ".extern .global .align 4 .b32 table[];\n",
        ".common .global .align 4 .b32 table[4];\n",
    ] {
        let guarded = Entry {
            exits: true,
            ..variable(other)
        };
        let error = guarded
            .rewritten(launch, REGISTERS)
            .expect_err("no length is known");
        assert!(
            error.to_string().contains("the length of the memory is unknown"),
            "{error}"
        );
        let module = guarded.done(LAUNCH, REGISTERS);
        assert_eq!(module.granted, [Granted::Length("table".to_owned(), 40)]);
    }
}

#[test]
fn a_hint_for_l1_takes_shared_memory_too() {
    let reads = Entry {
        start: "mov.u32 %r7, %total_smem_size;\nst.global.u32 [%rd2], %r7;\n",
        ..PLAIN
    };
    for plan in ["table=cache:L1:2", SHARED] {
        let error = reads.rewritten(LAUNCH, plan).expect_err("the size changes");
        assert!(error.to_string().contains("the kernel reads its size"), "{error}");
    }
    let module = reads.done(LAUNCH, "table=cache:L2:2");
    assert_eq!(module.drop_in.added_shared_bytes, 0);
}

#[test]
fn spaces_of_generic_addresses_are_taken_for_granted() {
    let generic = Entry {
        load: "ld.u32",
        ..PLAIN
    };
    assert_eq!(generic.done(LAUNCH, REGISTERS).granted, [Granted::Spaces]);
}

#[test]
fn what_is_added_has_room_beside_what_launches_ask_for() {
    let entry = Entry {
        module: ".extern .shared .align 4 .b32 dynamic[];\n",
        start: "mov.u32 %r7, dynamic;\nst.shared.u32 [%r7], %r1;\n",
        ..PLAIN
    };
    let launch = |bytes: u32| format!("shared_bytes = {bytes}\n{LAUNCH}");
    entry.done(&launch(32 << 10), SHARED);
    // Beyond 48 KiB in all the driver refuses launches of a function whose limit is not raised.
    let refused = entry.rewritten(&launch((48 << 10) - 256), SHARED);
    let error = refused.expect_err("it has no room").to_string();
    assert!(error.contains("its launches ask for 48896"), "{error}");
    // Programs that ask for more have raised it.
    entry.done(&launch(64 << 10), SHARED);
}

#[test]
fn sizes_of_dynamic_shared_memory_are_taken_for_granted_or_looked_at() {
    let module = ".extern .shared .align 4 .b32 dynamic[];\n";
    let start = "mov.u32 %r7, dynamic;\nst.shared.u32 [%r7], %r1;\n";
    let entry = Entry {
        module,
        start,
        ..PLAIN
    };
    let launch = format!("shared_bytes = 1024\n{LAUNCH}");
    let rewritten = entry.done(&launch, SHARED);
    assert_eq!(rewritten.drop_in.needs.dynamic_shared_bytes, None);
    let asks = "mov.u32 %r7, dynamic;\nmov.u32 %r8, %dynamic_smem_size;\nst.shared.u32 [%r7], %r8;\n";
    let asking = Entry { start: asks, ..entry };
    let rewritten = asking.done(&launch, SHARED);
    assert_eq!(rewritten.drop_in.needs.dynamic_shared_bytes, Some(1024));
    assert_eq!(rewritten.granted, []);
    // All that is needed is looked at, and one miss leads to the loop as it was.
    assert_eq!(rewritten.drop_in.needs.group, Some([64, 1, 1]));
    let text = &rewritten.text;
    for expected in [
        "mov.u32 %headstart0_r1, %ntid.x;\n\tsetp.eq.u32 %headstart0_p1, %headstart0_r1, 64;",
        "mov.u32 %headstart0_r3, %ntid.z;\n\tsetp.eq.and.u32 %headstart0_p3, %headstart0_r3, 1, %headstart0_p2;",
        "mov.u32 %headstart0_r4, %dynamic_smem_size;\n\tsetp.eq.and.u32 %headstart0_p4, %headstart0_r4, 1024, %headstart0_p3;",
        "@!%headstart0_p4 bra L;",
    ] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
}

#[test]
fn a_size_of_work_groups_that_the_entry_requires_is_not_looked_at() {
    let needs = |directives| Entry { directives, ..PLAIN }.done(LAUNCH, SHARED).drop_in.needs;
    assert_eq!(needs("").group, Some([64, 1, 1]));
    assert_eq!(needs(".reqntid 64, 1, 1\n").group, None);
}

#[test]
fn a_rewritten_entry_is_rewritten_again() {
    let once = PLAIN.done(LAUNCH, REGISTERS).text;
    let launch = LaunchFile::parse(LAUNCH, "launch.toml").expect("a launch file");
    let plan: Plan = "unroll:2".parse().expect("a plan");
    let twice = placed_module(&once, &launch, &plan)
        .expect("its loops are there")
        .text;
    // The planned loop of the first time is one of the text's; the second one needs another label.
    assert_eq!(twice.matches("\n$headstart_0_:").count(), 1);
    assert_eq!(twice.matches("\n$headstart_0_2:").count(), 1, "{twice}");
}

/// A product and two sums that take it: an assembler may fuse it with either.
const SUM: &str = "mov.f32 %f1, 0f3F800001;\nmov.b32 %f0, %r1;\nmul.f32 %f2, %f0, %f1;\nadd.f32 %f3, %f2, %f0;\n\
                   add.f32 %f3, %f3, %f2;\nst.global.f32 [%rd2], %f3;\n";

#[test]
fn what_is_undecided_or_too_old_is_not_written() {
    let fused = Entry {
        directives: "",
        start: ".reg .f32 %f<4>;\n",
        inside: SUM,
        load: "ld.global.nc.u32",
        ..PLAIN
    };
    let error = fused
        .rewritten(LAUNCH, REGISTERS)
        .expect_err("the assembler may fuse it");
    assert!(error.to_string().contains("left to the assembler"), "{error}");
    // In front of the loop it stands in the text as it was.
    let start = format!(".reg .f32 %f<4>;\n{SUM}");
    let start = Entry {
        start: &start,
        ..PLAIN
    };
    assert!(start.done(LAUNCH, REGISTERS).text.contains(SUM));
    // A target is raised where asynchronous copies need it, and from one whose lanes may run apart.
    let edited = |target: &str, plan: &str| {
        let old = PLAIN.text().replace("sm_80", target);
        let imported = import(&old, "k.ptx", None, &Facts::default()).expect("it is read");
        let plan: Plan = plan.parse().expect("a plan");
        let group = prefetch::PlanTarget {
            group_size: Some([32, 1, 1]),
            ..prefetch::PlanTarget::default()
        };
        let applied = prefetch::apply(&imported.kernel, &plan, &group).expect("legal");
        placed(&imported.original, &imported.kernel, &applied.kernel)
    };
    let copies = REGISTERS.replace("registers", "async");
    for (target, plan, expected) in [
        ("sm_52", REGISTERS, ".target sm_52"),
        ("sm_75", REGISTERS, ".target sm_75"),
        ("sm_75", &copies, ".target sm_80"),
    ] {
        let text = edited(target, plan)
            .unwrap_or_else(|error| panic!("{error}"))
            .text;
        assert!(text.contains(expected), "{plan}: {text}");
    }
    let error = edited("sm_61", &copies)
        .expect_err("its lanes run in lockstep")
        .to_string();
    assert!(
        error.contains("`sm_61`") && error.contains("registers"),
        "{error}"
    );
    // The version is raised to the oldest one with the features of plans.
    assert!(PLAIN.done(LAUNCH, REGISTERS).text.contains("\n.version 8.0\n"));
}

#[test]
fn registers_are_said_in_front_of_the_body() {
    let alone = PLAIN.done(LAUNCH, "registers:128").text;
    let body = |text: &str| text[text.find(".reg .pred").expect("a body")..].to_owned();
    assert!(alone.contains(".param .u32 n)\n.maxnreg 128\n{"), "{alone}");
    assert_eq!(body(&alone), body(&PLAIN.text()));
    assert!(alone.contains("may refuse launches of more than 512 work-items"));
    let planned = PLAIN.done(LAUNCH, "registers:128,table=rolling-registers:3").text;
    assert_eq!(planned.matches("\n.maxnreg 128\n{").count(), 1);
    for directives in [".maxnreg 64\n", ".maxntid 64, 1, 1\n.minnctapersm 2\n"] {
        let entry = Entry { directives, ..PLAIN };
        let error = entry
            .rewritten(LAUNCH, "registers:128")
            .expect_err("its author has said so");
        assert!(error.to_string().contains("of its own"), "{error}");
        assert!(!entry.done(LAUNCH, REGISTERS).text.contains(".maxnreg 128"));
    }
}

#[test]
fn an_alignment_is_taken_for_granted_where_words_are_copied() {
    let entry = Entry {
        load: "ld.global.nc.u8",
        ..PLAIN
    };
    let bytes = entry
        .text()
        .replace("mul.wide.s32 %rd4, %r2, 4;", "cvt.s64.s32 %rd4, %r2;");
    let plan: Plan = "table=rolling-async:4".parse().expect("a plan");
    let derive = |facts: &Facts| -> Result<(Original, DropIn)> {
        let imported = import(&bytes, "k.ptx", None, facts)?;
        let target = prefetch::PlanTarget {
            group_size: Some([64, 1, 1]),
            ..prefetch::PlanTarget::default()
        };
        let applied = prefetch::apply(&imported.kernel, &plan, &target)?;
        let placed = placed(&imported.original, &imported.kernel, &applied.kernel)?;
        Ok((imported.original, placed))
    };
    let mut facts = Facts::default();
    let known = ParameterFacts {
        length: Some(67),
        align: Some(4),
        ..ParameterFacts::default()
    };
    facts.parameters.insert("table".to_owned(), known);
    let (original, placed) = derive(&facts).unwrap_or_else(|error| panic!("{error}\n{bytes}"));
    let found = granted(&original, &facts, &placed, |facts| {
        derive(facts).map(|(_, placed)| placed)
    });
    let table = || "table".to_owned();
    assert_eq!(
        found,
        [Granted::Length(table(), 67), Granted::Alignment(table(), 4)]
    );
}

/// What an assembler fuses in copies shows where its machine code runs, and is stated where it is known. An address that is computed
/// ahead has no such judge: the sum in front of the load and its copy are fused each for itself.
#[test]
fn what_an_assembler_decides_is_written_for_that_one_or_stated() {
    let assembler = Assembler {
        driver: 13000,
        capability: 90,
    };
    let compared = Facts {
        assembler: Some(assembler),
        ..Facts::default()
    };
    let fused = |fused| Facts {
        fused: Some(vec![fused; 2]),
        ..Facts::default()
    };
    let start = ".reg .f32 %f<4>;\n";
    let inside = Entry {
        start,
        inside: SUM,
        ..PLAIN
    };
    let in_front = format!(
        "{SUM}cvt.rzi.s32.f32 %r5, %f3;\nmul.wide.s32 %rd6, %r5, 4;\nadd.s64 %rd5, %rd3, %rd6;\n{}",
        PLAIN.load
    );
    let addressed = Entry {
        start,
        load: &in_front
            .replace("st.global.f32 [%rd2], %f3;\n", "")
            .replace("%r1;", "%r2;"),
        ..PLAIN
    };
    let edited = |entry: &Entry<'_>, facts: &Facts| {
        let imported = import(&entry.text(), "k.ptx", None, facts).expect("it is read");
        let plan: Plan = REGISTERS.parse().expect("a plan");
        let target = prefetch::PlanTarget::default();
        let edited = placed_under(&imported.original, facts, &plan, &target)?;
        let granted = granted(&imported.original, facts, &edited, |facts| {
            placed_under(&imported.original, facts, &plan, &target)
        });
        Ok::<_, Error>((edited.text, granted))
    };
    let (text, rests_on) = edited(&inside, &compared).expect("the device judges");
    assert_eq!(rests_on, [Granted::Assembler(assembler)]);
    assert!(!text.contains(".rn.f32"), "{text}");
    let (_, rests_on) = edited(&PLAIN, &compared).expect("nothing is left to the assembler");
    assert_eq!(rests_on, []);
    let (text, _) = edited(&inside, &fused(Fused::Nothing)).expect("it is stated");
    let rounded = text.matches("add.rn.f32 %f3").count();
    assert!(
        rounded > 0 && rounded % 2 == 0 && text.matches("add.f32 %f3").count() == 2,
        "{text}"
    );
    for (entry, facts) in [
        (&inside, &fused(Fused::Left)),
        (&inside, &Facts::default()),
        (&addressed, &compared),
    ] {
        let error = edited(entry, facts).expect_err("it is not known");
        assert!(error.to_string().contains("left to the assembler"), "{error}");
    }
    assert!(edited(&addressed, &fused(Fused::Nothing)).is_ok());
}
