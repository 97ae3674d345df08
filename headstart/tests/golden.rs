//! The kernels written by hand in `tests/in`, under the plans that their comments name.
//!
//! Each reads, verifies and prints as it is written. Each plan is refused, or runs on the functional engine
//! with all its checks and changes no bit; `tests/out/NAME.plans` says which, `tests/out/NAME.derived.hsir`
//! shows the kernels of the plans after `; shown:`. `HEADSTART_BLESS=1` rewrites both.

mod common;

use std::fmt::Write;

use common::corpus::compare;
use headstart::Fault;
use headstart::device::sim::functional::Options;
use headstart::ir;
use headstart::prefetch::{Plan, PlanTarget, apply};
use headstart_testing::{Case, run, texts};

fn no_complaints(complaints: Vec<String>) {
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn kernels_print_as_they_are_written() {
    let mut complaints = Vec::new();
    let texts = texts().expect("tests/in can be read");
    assert!(texts.len() >= 11, "the kernels are there");
    for (name, text) in texts {
        let kernel = ir::parse(&text, &name).unwrap_or_else(|error| panic!("{error}"));
        ir::verify(&kernel).unwrap_or_else(|error| panic!("{name}: {error}"));
        let printed = ir::print(&kernel);
        let again = ir::parse(&printed, &name).unwrap_or_else(|error| panic!("printed {error}"));
        complaints.extend(ir::first_difference(&kernel, &again).map(|what| format!("{name}: {what}")));
        // Comments and blank lines are the author's own.
        let written = text
            .lines()
            .filter(|line| !line.starts_with(';') && !line.is_empty());
        let mut lines = written.zip(printed.lines().filter(|line| !line.is_empty()));
        if let Some((written, printed)) = lines.find(|(written, printed)| written != printed) {
            complaints.push(format!("{name}: `{written}` prints as `{printed}`"));
        }
    }
    no_complaints(complaints);
}

#[test]
fn plans_change_no_bit() {
    let mut complaints = Vec::new();
    let cases = Case::all().unwrap_or_else(|error| panic!("{error}"));
    assert!(cases.len() >= 10, "the kernels with launches are there");
    for case in cases {
        let name = &case.name;
        let kernel = &case.workload.kernel;
        let right = run(&case.workload, kernel, Options::CHECKING).unwrap_or_else(|error| panic!("{error}"));
        let (mut plans, mut derived) = (String::new(), String::new());
        for plan in &case.plans {
            let said = match apply(kernel, plan, &PlanTarget::default()) {
                Err(error) => {
                    assert_ne!(error.fault(), Fault::Bug, "{name}, {plan}: {error}");
                    format!("refused: {error}")
                }
                Ok(applied) => {
                    match run(&case.workload, &applied.kernel, Options::CHECKING) {
                        Ok(found) if found == right => {}
                        Ok(_) => complaints.push(format!("{name}, {plan}: the outputs differ")),
                        Err(error) => complaints.push(format!("{name}, {plan}: {error}")),
                    }
                    if case.shown.contains(plan) {
                        let _ = write!(derived, "; {plan}\n{}\n", ir::print(&applied.kernel));
                    }
                    applied.plan.to_string()
                }
            };
            let _ = writeln!(plans, "{plan}\n  {said}");
        }
        complaints.extend(compare(&format!("{name}.plans"), &plans));
        if !derived.is_empty() {
            complaints.extend(compare(&format!("{name}.derived.hsir"), &derived));
        }
    }
    no_complaints(complaints);
}

#[test]
fn shown_plans_are_tried() {
    for case in Case::all().unwrap_or_else(|error| panic!("{error}")) {
        let missing: Vec<&Plan> = case
            .shown
            .iter()
            .filter(|plan| !case.plans.contains(plan))
            .collect();
        assert!(missing.is_empty(), "{}: {missing:?}", case.name);
    }
}
