//! Steps that are negative where no iteration happens.

use std::sync::Arc;

use super::super::{Agreement, Engine, Thoroughness};
use super::{different, found, kernel, perturbed, plan, remove_reproducer, workload};
use crate::device::sim::functional::CompiledKernel;
use crate::error::Fault;
use crate::ir;
use crate::prefetch::apply;

/// `for (i = start; i < n; i += step)` with a step that may be negative where no iteration happens.
const STEPS: &str = "hsir 1
kernel @steps(
  %p: ptr.global i32[] align 4 readonly unaliased,
  %o: ptr.global i32[] align 4 unaliased,
  %start: i32,
  %n: i32,
  %step: i32,
) {
  load @p
  %sum = loop 'l (%i = %start, %acc = 1:i32) -> i32 {
    %more = lt.s %i, %n
    if %more { yield } else { break 'l %acc }
    %wide = extend.s %i to i64
    %at = address %p + %wide * 4
    %x = load i32 %at, @p
    %acc31 = mul %acc, 31:i32
    %acc1 = add %acc31, %x
    %next = add.nsw %i, %step
    continue 'l %next, %acc1
  }
  store %o, %sum
  return
}
";

const STEPS_LAUNCH: &str = "groups = 1\ngroup = 1\n[parameters.p]\nlength = 64\nfill = \"sequence\"\n[parameters.o]\nlength = 1\n\
    output = \"bits\"\n[parameters.start]\nvalue = 0\n[parameters.n]\nvalue = 64\n[parameters.step]\nvalue = 1\n";

#[test]
fn guards_that_forget_a_negative_step_are_found() {
    let workload = workload(STEPS, STEPS_LAUNCH);
    let target = Engine::of_no_device(workload.group).target;
    for text in [
        "unroll:2",
        "unroll:4",
        "p=rolling-registers:3",
        "unroll:2,p=rolling-async:4",
    ] {
        let plan = plan(text);
        let applied =
            apply(&workload.kernel, &plan, &target).unwrap_or_else(|error| panic!("{text}: {error}"));
        let perturbed = perturbed(&workload, &applied.plan);
        let right = Arc::new(applied.kernel);
        perturbed
            .check(&applied.plan, &right, Thoroughness::All)
            .unwrap_or_else(|error| panic!("{text}: {error}"));
        // The same kernel from passes without the rule: a guard asks for the last of its iterations, not for the one that
        // comes first where the step leads away from the bound. (A batch is loaded behind the loop's own test and needs
        // no such rule.)
        let wrong = without_negative_steps(&ir::print(&right));
        let compiled = CompiledKernel::new(kernel(&wrong));
        let own = perturbed.engine.compare(&compiled, &perturbed.launches.kept[0]);
        assert!(matches!(own, Ok(Agreement::Same)), "{text}: {own:?}\n{wrong}");
        let found = different(&perturbed, &kernel(&wrong));
        let negative: Vec<&(String, String)> = found
            .iter()
            .filter(|(what, _)| what.contains("`step` = -"))
            .collect();
        assert!(!negative.is_empty(), "{text}: {found:?}\n{wrong}");
        // Nothing else is wrong with it.
        assert_eq!(negative.len(), found.len(), "{text}: {found:?}");
        // Some of the iterations that never ran read memory before the buffer.
        assert!(
            negative
                .iter()
                .any(|(_, error)| error.contains("out of bounds") && error.contains("[-")),
            "{text}: {negative:?}"
        );
        let refused = perturbed.check(&applied.plan, &kernel(&wrong), Thoroughness::All);
        let refused = refused.expect_err("it is wrong");
        assert_eq!(refused.fault(), Fault::Bug);
        remove_reproducer(&refused.to_string());
    }
}

/// A planned kernel whose guards move the bound back by the distance as it is, though it be negative.
fn without_negative_steps(planned: &str) -> String {
    let is_largest = |line: &&str| line.contains(" = max.s ");
    assert!(planned.lines().any(|line| is_largest(&line)), "{planned}");
    let line = |line: &str| match line.split_once(" = max.s ") {
        Some((value, operands)) => {
            let (_, distance) = operands.split_once(", ").expect("two operands");
            // What follows is a place in the source.
            let (distance, place) = distance.split_once(' ').unwrap_or((distance, ""));
            format!("{value} = add {distance}, 0:i64 {place}\n")
        }
        None => format!("{line}\n"),
    };
    planned.lines().map(line).collect()
}

#[test]
fn an_iteration_that_never_was_is_found() {
    // As a guard of two iterations that asks for the second alone.
    let message = found(
        STEPS,
        STEPS_LAUNCH,
        &[(
            "%more = lt.s %i, %n",
            // In 64 bits: nothing wraps, only a step that is negative shows it.
            "%iw = extend.s %i to i64\n    %sw = extend.s %step to i64\n    %nw = extend.s %n to i64\n    \
             %second = add %iw, %sw\n    %one = lt.s %i, %n\n    %two = lt.s %second, %nw\n    %more = or %one, %two",
        )],
    );
    assert!(message.contains("`step` = -"), "{message}");
}
