//! Wrong kernels that are right on the launch at hand, one of each kind: each must be found.

mod evidence;
mod overlaps;
mod pointers;
mod steps;

use std::path::Path;
use std::sync::Arc;

use super::{Engine, Perturbed, Settings, Thoroughness};
use crate::error::Fault;
use crate::ir::{self, Kernel};
use crate::prefetch::{Plan, apply};
use crate::tune::{LaunchFile, Subject, Workload};

/// A launch in which sums of rows are made through indices.
const ROWS: &str = "groups = 2\ngroup = 32\n\
    [parameters.indices]\nlength = 4096\nfill = \"indices\"\nbelow = 100\n\
    [parameters.values]\nlength = 100\nfill = \"sequence\"\n\
    [parameters.sums]\nlength = 64\noutput = \"bits\"\n\
    [parameters.items]\nvalue = 8\n[parameters.rows]\nvalue = 64\n";

/// Each work-item sums `values[indices[row * items + i]]` of its row; a value of 77 ends a row.
const PLAIN: &str = "hsir 1
kernel @sums(
  %indices: ptr.global i32[] align 4 readonly unaliased,
  %values: ptr.global i32[] align 4 readonly unaliased,
  %sums: ptr.global i32[] align 4 unaliased,
  %items: i32,
  %rows: i32,
) {
  load @indices
  load @values
  %group = id.group.x
  %size = id.group_size.x
  %local = id.local.x
  %start = mul %group, %size
  %row = add %start, %local
  %is_row = lt.s %row, %rows
  if %is_row {
    %first = mul %row, %items
    %sum = loop 'row (%i = 0:i32, %acc = 0:i32) -> i32 {
      %more = lt.s %i, %items
      if %more { yield } else { break 'row %acc }
      %at = add %first, %i
      %at64 = extend.u %at to i64
      %ip = address %indices + %at64 * 4
      %index = load i32 %ip, @indices
      %index64 = extend.u %index to i64
      %vp = address %values + %index64 * 4
      %value = load i32 %vp, @values
      %last = eq %value, 77:i32
      if %last { break 'row %acc } else { yield }
      %acc31 = mul %acc, 31:i32
      %next_acc = add %acc31, %value
      %next = add %i, 1:i32
      continue 'row %next, %next_acc
    }
    %row64 = extend.u %row to i64
    %sp = address %sums + %row64 * 4
    store %sp, %sum
    yield
  } else { yield }
  return
}
";

fn kernel(text: &str) -> Arc<Kernel> {
    let kernel = ir::read(text, "kernel.hsir").unwrap_or_else(|error| panic!("{error}"));
    Arc::new(kernel)
}

fn workload(text: &str, launch: &str) -> Workload {
    let launch = LaunchFile::parse(launch, "launch.toml").unwrap_or_else(|error| panic!("{error}"));
    launch
        .workload(&kernel(text))
        .unwrap_or_else(|error| panic!("{error}"))
}

fn perturbed(workload: &Workload, plan: &Plan) -> Perturbed {
    let engine = Engine::of_no_device(workload.group);
    Perturbed::new(workload, &workload.kernel, engine, [plan], Settings::default())
        .unwrap_or_else(|error| panic!("{error}"))
}

fn plan(text: &str) -> Plan {
    text.parse().expect("a plan")
}

/// The difference that is found where a piece of the plain kernel is another one; the folder that repeats it is gone again.
fn found(text: &str, launch: &str, changes: &[(&str, &str)]) -> String {
    let mut wrong = text.to_owned();
    for (right, instead) in changes {
        assert_eq!(wrong.matches(right).count(), 1, "{right}");
        wrong = wrong.replace(right, instead);
    }
    let (workload, wrong) = (workload(text, launch), kernel(&wrong));
    let plan = plan("unroll:2");
    let perturbed = perturbed(&workload, &plan);
    // On the launch at hand it does not show.
    let own = &perturbed.launches.kept[0];
    let compiled = crate::device::sim::functional::CompiledKernel::new(Arc::clone(&wrong));
    let on_own = perturbed.engine.compare(&compiled, own).expect("it runs");
    assert!(own.variant.what.is_empty(), "{}", own.variant.what);
    assert!(matches!(on_own, super::Agreement::Same), "{on_own:?}");

    let error = perturbed
        .check(&plan, &wrong, Thoroughness::All)
        .expect_err("it is wrong");
    assert_eq!(error.fault(), Fault::Bug);
    let message = error.to_string();
    assert!(message.contains("(seed 1, number "), "{message}");
    let folder = message
        .split("to repeat it: `")
        .nth(1)
        .and_then(|rest| rest.strip_suffix('`'));
    let folder = Path::new(folder.unwrap_or_else(|| panic!("{message}")));
    let repeated = super::reproducer::repeat::repeat(folder, &perturbed.engine)
        .unwrap_or_else(|error| panic!("{error}"));
    assert!(repeated.is_some(), "it is repeated: {message}");
    // The command line's launches are included.
    let launch = LaunchFile::read(&folder.join("launch.toml")).expect("a launch file");
    launch.workload(&workload.kernel).expect("for the kernel");
    std::fs::remove_dir_all(folder).expect("removed");
    message
}

#[test]
fn a_right_kernel_agrees_everywhere_and_everything_is_reached() {
    let workload = workload(PLAIN, ROWS);
    for text in [
        "unroll:4",
        "values=rolling-registers:3",
        "unroll:2,indices=rolling-registers:4",
    ] {
        let plan = plan(text);
        let target = Engine::of_no_device(workload.group).target;
        let Ok(applied) = apply(&workload.kernel, &plan, &target) else {
            continue;
        };
        let perturbed = perturbed(&workload, &applied.plan);
        let agreed = perturbed
            .check(
                &applied.plan,
                &Arc::new(applied.kernel.clone()),
                Thoroughness::All,
            )
            .unwrap_or_else(|error| panic!("{text}: {error}"));
        let summary = perturbed.summary(&applied.plan, &applied.kernel, agreed);
        assert_eq!(summary.agreed + summary.not_for, summary.launches, "{text}");
        assert!(summary.agreed >= 100, "{text}: {summary:?}");
        assert!(
            summary.dropped > 0 && summary.dropped <= summary.launches,
            "{text}: {summary:?}"
        );
        assert_eq!(summary.weakly_checked, Vec::<String>::new(), "{text}");
    }
}

#[test]
fn a_guard_that_is_off_by_one_is_found() {
    // 64 rows fill both work-groups of the launch at hand.
    found(
        PLAIN,
        ROWS,
        &[("%is_row = lt.s %row, %rows", "%is_row = le.s %row, %rows")],
    );
}

#[test]
fn a_guard_that_takes_a_signed_number_for_an_unsigned_one_is_found() {
    let message = found(
        PLAIN,
        ROWS,
        &[("%more = lt.s %i, %items", "%more = lt.u %i, %items")],
    );
    assert!(message.contains("`items` = -"), "{message}");
}

#[test]
fn a_missing_remainder_is_found() {
    // Pairs of iterations: right for 8 items.
    let message = found(
        PLAIN,
        ROWS,
        &[(
            "%more = lt.s %i, %items",
            "%odd = or %i, 1:i32\n      %more = lt.s %odd, %items",
        )],
    );
    assert!(message.contains("`items` = "), "{message}");
}

#[test]
fn a_wrong_way_out_is_found() {
    // No value of the launch at hand is 77.
    let launch = ROWS.replace("below = 100", "below = 70");
    found(
        PLAIN,
        &launch,
        &[("if %last { break 'row %acc }", "if %last { break 'row %i }")],
    );
    found(
        PLAIN,
        &launch,
        &[("if %last { break 'row %acc } else { yield }", "")],
    );
}

#[test]
fn an_index_that_is_cut_off_is_found() {
    found(
        PLAIN,
        ROWS,
        &[(
            "%index64 = extend.u %index to i64",
            "%low = and %index, 127:i32\n      %index64 = extend.u %low to i64",
        )],
    );
}

/// The launches on which a kernel is found to differ, and how.
fn different(perturbed: &Perturbed, wrong: &Arc<Kernel>) -> Vec<(String, String)> {
    let compiled = crate::device::sim::functional::CompiledKernel::new(Arc::clone(wrong));
    let mut found = Vec::new();
    for kept in &perturbed.launches.kept {
        if let super::Agreement::Different(error) =
            perturbed.engine.compare(&compiled, kept).expect("it runs")
        {
            found.push((kept.variant.what.clone(), error.to_string()));
        }
    }
    found
}

#[test]
fn launches_that_the_plain_kernel_does_not_take_are_dropped_and_counted() {
    let traps = PLAIN.replace(
        "  %is_row = lt.s %row, %rows\n",
        "  %is_row = lt.s %row, %rows\n  %few = lt.u %items, 6:i32\n  if %few { trap } else { yield }\n",
    );
    let workload = workload(&traps, ROWS);
    let plan = plan("unroll:2");
    let perturbed = perturbed(&workload, &plan);
    let dropped = perturbed.launches.dropped.get("trapped").copied().unwrap_or(0);
    assert!(dropped > 5, "{:?}", perturbed.launches.dropped);
    let agreed = perturbed
        .check(&plan, &workload.kernel, Thoroughness::All)
        .expect("it is the same");
    let summary = perturbed.summary(&plan, &workload.kernel, agreed);
    assert!(summary.dropped >= dropped, "{summary:?}");
    // A trap is no side that has to be covered.
    let said = summary.weakly_checked.join("; ");
    assert!(!said.contains("branch"), "{said}");
}

#[test]
fn a_plan_is_weakly_checked_where_most_launches_are_dropped_or_a_side_is_never_taken() {
    // No number is below itself.
    let never = PLAIN.replace(
        "  %is_row = lt.s %row, %rows\n",
        "  %is_row = lt.s %row, %rows\n  %never = lt.s %rows, %rows\n  if %never { store %sums, 1:i32 yield } else { yield }\n",
    );
    let workload = workload(&never, ROWS);
    let plan = plan("unroll:2");
    let mut perturbed = perturbed(&workload, &plan);
    let reasons = |perturbed: &Perturbed| {
        let summary = perturbed.summary(&plan, &workload.kernel, super::Agreed::default());
        summary.weakly_checked
    };
    let said = reasons(&perturbed).join("; ");
    assert!(
        said.contains("no launch took the branch to kernel.hsir:"),
        "{said}"
    );
    assert!(!said.contains("draws"), "{said}");
    perturbed.launches.dropped.insert("race", 10_000);
    let said = reasons(&perturbed).join("; ");
    assert!(
        said.contains("launches that were made up the kernel as it is fails itself, mostly by a race"),
        "{said}"
    );
}

#[test]
fn the_same_seed_finds_the_same_launches() {
    let workload = workload(PLAIN, ROWS);
    let told = |seed| {
        let settings = Settings {
            seed,
            launches: 120,
            ..Settings::default()
        };
        let engine = Engine::of_no_device(workload.group);
        let perturbed =
            Perturbed::new(&workload, &workload.kernel, engine, [&plan("unroll:2")], settings).expect("runs");
        let kept = perturbed.launches.kept.iter();
        kept.map(|kept| kept.variant.what.clone()).collect::<Vec<_>>()
    };
    assert_eq!(told(5), told(5));
    assert_ne!(told(5), told(6));
}

#[test]
fn buffers_end_where_the_plain_kernel_stopped() {
    let workload = workload(PLAIN, ROWS);
    let perturbed = perturbed(&workload, &plan("unroll:2"));
    let own = &perturbed.launches.kept[0];
    let length = |name: &str| {
        let position = workload.kernel.params.iter().position(|param| param.name == name);
        own.variant
            .buffer(position.expect("a parameter"))
            .expect("a buffer")
            .length
    };
    assert_eq!((length("indices"), length("sums")), (64 * 8, 64));
    assert!(length("values") <= 100);
    assert!(Subject::small(&workload, 1).expect("a workload").is_none());
}

#[test]
fn a_check_counts_for_the_kernel_that_it_was_of() {
    let workload = workload(PLAIN, ROWS);
    let plan = plan("unroll:2");
    let engine = || Engine::of_no_device(workload.group);
    let right = Arc::new(
        apply(&workload.kernel, &plan, &engine().target)
            .expect("legal")
            .kernel,
    );
    let check = |derived: &Arc<Kernel>, known: Option<&crate::report::Perturbed>| {
        super::check_unless_known(&workload, &workload.kernel, engine(), &plan, derived, known)
    };
    let mut known = check(&right, None).expect("it agrees");
    assert!(known.agreed > 100 && known.seed == Settings::SEED, "{known:?}");
    // A number that no run gives says that nothing ran.
    known.agreed = 424_242;
    assert_eq!(check(&right, Some(&known)).expect("known"), known);
    let stale = crate::report::Perturbed {
        kernel: super::identity(&workload.kernel),
        seed: 5,
        ..known.clone()
    };
    let anew = check(&right, Some(&stale)).expect("it agrees");
    assert_eq!(
        (anew.kernel.as_str(), anew.seed),
        (super::identity(&right).as_str(), 5)
    );
    assert!(anew.agreed > 100 && anew.agreed < 10_000, "{anew:?}");
    // Of an earlier version.
    let unnamed = crate::report::Perturbed {
        kernel: String::new(),
        ..known.clone()
    };
    assert_ne!(
        check(&right, Some(&unnamed)).expect("it agrees").agreed,
        known.agreed
    );
    let wrong = kernel(&ir::print(&right).replacen("31:i32", "33:i32", 1));
    let refused = check(&wrong, Some(&known)).expect_err("it is another kernel");
    remove_reproducer(&refused.to_string());
}

#[test]
fn what_an_author_asked_for_is_checked() {
    let check = |workload: &Workload, plain: &Arc<Kernel>| {
        let engine = Engine::of_no_device(workload.group);
        super::check_wishes(workload, plain, engine, Settings::default())
    };
    let none = workload(PLAIN, ROWS);
    assert_eq!(check(&none, &none.kernel).expect("nothing to check"), None);
    let wishing = workload(&PLAIN.replace("-> i32 {", "-> i32 unroll 4 {"), ROWS);
    let target = Engine::of_no_device(wishing.group).target;
    let plain = crate::prefetch::carry_out_wishes(&wishing.kernel, &target).expect("legal");
    let agreed = check(&wishing, &Arc::new(plain.clone()))
        .expect("it agrees")
        .expect("a check");
    assert!(agreed.agreed > 100, "{agreed:?}");
    let wrong = kernel(&ir::print(&plain).replacen("31:i32", "33:i32", 1));
    let refused = check(&wishing, &wrong).expect_err("it is wrong").to_string();
    assert!(refused.contains("what its author asked of `sums`"), "{refused}");
    remove_reproducer(&refused);
}

fn remove_reproducer(message: &str) {
    let folder = message.split("to repeat it: `").nth(1);
    let folder = folder.and_then(|rest| rest.strip_suffix('`'));
    std::fs::remove_dir_all(folder.unwrap_or_else(|| panic!("{message}"))).expect("removed");
}
