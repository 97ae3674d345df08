//! Buffers that share their memory, or begin inside another.

use super::super::reproducer::{Difference, repeat::repeat};
use super::{different, kernel, perturbed, plan, workload};

#[test]
fn a_value_that_is_stale_over_a_store_is_found() {
    let plain = "hsir 1
kernel @shift(
  %from: ptr.global i32[] align 4,
  %to: ptr.global i32[] align 4,
  %count: i32,
) {
  load @from
  loop 'l (%i = 0:i32) {
    %more = lt.s %i, %count
    if %more { yield } else { break 'l }
    %i64 = extend.u %i to i64
    %fp = address %from + %i64 * 4
    %x = load i32 %fp, @from
    %tp = address %to + %i64 * 4 + 4
    store %tp, %x
    %next = add %i, 1:i32
    continue 'l %next
  }
  return
}
";
    // The next iteration's value is loaded before this one's store.
    let stale = &[
        (
            "  loop 'l (%i = 0:i32) {",
            "  %x0 = load i32 %from, @from\n  loop 'l (%i = 0:i32, %x = %x0) {",
        ),
        (
            "    %fp = address %from + %i64 * 4\n    %x = load i32 %fp, @from\n",
            "    %fp = address %from + %i64 * 4 + 4\n    %y = load i32 %fp, @from\n",
        ),
        ("continue 'l %next", "continue 'l %next, %y"),
    ];
    let launch = "groups = 1\ngroup = 1\n[parameters.from]\nlength = 65\nfill = \"sequence\"\noutput = \"bits\"\n\
        [parameters.to]\nlength = 65\nfill = \"zero\"\noutput = \"bits\"\n[parameters.count]\nvalue = 64\n";
    let (workload, plan) = (workload(plain, launch), plan("unroll:2"));
    let mut wrong = plain.to_owned();
    for (right, instead) in stale {
        assert_eq!(wrong.matches(right).count(), 1, "{right}");
        wrong = wrong.replace(right, instead);
    }
    let perturbed = perturbed(&workload, &plan);
    // It reads one element too many as well; only launches with room for that say something of the store.
    let found = different(&perturbed, &kernel(&wrong));
    let found = found.iter().filter(|(_, error)| error.contains("element"));
    assert!(
        found.clone().any(|(what, _)| what.contains("is the memory of")),
        "buffers share their memory"
    );
}

/// Each work-item copies a row of its own from one buffer to another.
const COPY: &str = "hsir 1
kernel @copy(
  %from: ptr.global i32[] align 4,
  %to: ptr.global i32[] align 4,
  %count: i32,
) {
  load @from
  loop 'l (%i = 0:i32) {
    %more = lt.s %i, %count
    if %more { yield } else { break 'l }
    %i64 = extend.u %i to i64
    %fp = address %from + %i64 * 4
    %x = load i32 %fp, @from
    %tp = address %to + %i64 * 4
    store %tp, %x
    %next = add %i, 1:i32
    continue 'l %next
  }
  return
}
";

const COPY_LAUNCH: &str = "groups = 1\ngroup = 1\n[parameters.from]\nlength = 65\nfill = \"sequence\"\noutput = \"bits\"\n\
    [parameters.to]\nlength = 64\nfill = \"zero\"\noutput = \"bits\"\n[parameters.count]\nvalue = 64\n";

#[test]
fn a_value_that_is_stale_over_a_store_into_the_middle_of_its_buffer_is_found() {
    // Loaded an iteration ahead, across a store that reaches it only where `to` begins inside `from`, or `from` inside `to`.
    let stale = &[
        (
            "  loop 'l (%i = 0:i32) {",
            "  %x0 = load i32 %from, @from\n  loop 'l (%i = 0:i32, %x = %x0) {",
        ),
        (
            "    %fp = address %from + %i64 * 4\n    %x = load i32 %fp, @from\n",
            "    %fp = address %from + %i64 * 4 + 4\n    %y = load i32 %fp, @from\n",
        ),
        ("continue 'l %next", "continue 'l %next, %y"),
    ];
    let (workload, plan) = (workload(COPY, COPY_LAUNCH), plan("unroll:2"));
    let mut wrong = COPY.to_owned();
    for (right, instead) in stale {
        assert_eq!(wrong.matches(right).count(), 1, "{right}");
        wrong = wrong.replace(right, instead);
    }
    let found = different(&perturbed(&workload, &plan), &kernel(&wrong));
    let stores: Vec<&(String, String)> = found
        .iter()
        .filter(|(_, error)| error.contains("element"))
        .collect();
    assert!(
        stores
            .iter()
            .any(|(what, _)| what.contains("`to` is `from` from element 1 on")),
        "{found:?}"
    );
    // If both begin together, data loaded ahead are stored to only later.
    let together = |what: &str| what.contains("is the memory of") && !what.contains("on, ");
    assert!(
        !stores
            .iter()
            .any(|(what, error)| together(what) && error.contains("output")),
        "{stores:?}"
    );
}

#[test]
fn buffers_begin_an_element_half_a_buffer_and_a_plans_distance_inside_each_other() {
    let copy = workload(COPY, COPY_LAUNCH);
    let launches = perturbed(&copy, &plan("from=rolling-registers:6")).launches;
    let kept: Vec<&str> = launches
        .kept
        .iter()
        .map(|kept| kept.variant.what.as_str())
        .collect();
    // 65 elements are touched at first.
    for wanted in [
        "`to` is the memory of `from`",
        "`to` is `from` from element 1 on",
        "`from` is `to` from element 1 on",
        "`to` is `from` from element 6 on",
        "`from` is `to` from element 6 on",
        "`to` is `from` from element 32 on",
        "`from` is `to` from element 32 on",
    ] {
        assert!(kept.contains(&wanted), "{wanted}: {kept:?}");
    }
    // What promises to be unaliased, read-only or aligned to more is not broken.
    let told = |text: &str| {
        let launches = perturbed(&workload(text, COPY_LAUNCH), &plan("unroll:6")).launches;
        let kept = launches.kept.into_iter();
        kept.map(|kept| kept.variant.what).collect::<Vec<_>>().join("; ")
    };
    for facts in ["unaliased", "readonly"] {
        let told = told(&COPY.replacen("i32[] align 4", &format!("i32[] align 4 {facts}"), 1));
        assert!(
            !told.contains("from element") && !told.contains("is the memory of"),
            "{facts}: {told}"
        );
    }
    let aligned = told(&COPY.replacen("i32[] align 4", "i32[] align 16", 1));
    assert!(aligned.contains("`to` is `from` from element 4 on"), "{aligned}");
    assert!(aligned.contains("`to` is `from` from element 8 on"), "{aligned}");
    assert!(
        !aligned.contains("from element 1 on") && !aligned.contains("from element 6 on"),
        "{aligned}"
    );
}

#[test]
fn a_launch_with_buffers_inside_each_other_is_written_down_and_repeated() {
    let workload = workload(COPY, COPY_LAUNCH);
    let plan = plan("unroll:2");
    let perturbed = perturbed(&workload, &plan);
    let kept = perturbed
        .launches
        .kept
        .iter()
        .find(|kept| kept.variant.what == "`from` is `to` from element 1 on")
        .expect("such a launch");
    let wrong = kernel(&COPY.replace("store %tp, %x", "%y = add %x, 1:i32\n    store %tp, %y"));
    let error = crate::error::Error::bug("another number");
    let difference = Difference {
        plan: &plan,
        plain: &workload.kernel,
        derived: &wrong,
        variant: &kept.variant,
        seed: 1,
        number: 0,
        error: &error,
    };
    let parent = tempfile::tempdir().expect("a folder");
    let folder = difference.write_beneath(parent.path()).expect("written");
    let about = std::fs::read_to_string(folder.join("about.json")).expect("there");
    assert!(
        about.contains("\"starts\"") && about.contains("\"from\""),
        "{about}"
    );
    let repeated = repeat(&folder, &perturbed.engine).expect("a reproducer");
    // Each element becomes the next one's: what is added adds up.
    assert!(repeated.is_some());
    let same = Difference {
        derived: &workload.kernel,
        ..difference
    };
    let folder = same.write_beneath(parent.path()).expect("written");
    assert_eq!(repeat(&folder, &perturbed.engine).expect("a reproducer"), None);
}
