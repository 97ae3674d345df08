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
    let error = check(&Misprinted(&subject, ("add.f32", "add.f23"))).expect_err("no PTX");
    assert_eq!(error.fault(), Fault::Input);
    assert!(error.to_string().contains("cannot be read again"), "{error}");
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
