//! What reports say, and their JSON.

use std::collections::BTreeMap;

use super::*;
use crate::samples::sample;

#[test]
fn the_json_is_the_one_that_is_documented() {
    let report = sample();
    let json: serde_json::Value = serde_json::to_value(&report).expect("serializable");
    assert_eq!(json["kernel"], "gather");
    assert_eq!(
        json["trials"][0],
        serde_json::json!({
            "plan": "none", "status": "ok", "time_ns": 1_273_000.0, "speedup": 1.0, "outputs": "identical"
        })
    );
    let last = json["trials"]
        .as_array()
        .and_then(|trials| trials.last())
        .expect("trials");
    assert_eq!(
        last,
        &serde_json::json!({
            "plan": "unroll:64", "status": "rejected", "reason": "needs 300 registers <at most 255>"
        })
    );
    assert_eq!(json["verdict"], "prefetch");
    assert_eq!(
        json["best"]["plan"],
        "unroll:2,values=rolling-async:16/interleaved"
    );
    let back: Report = serde_json::from_value(json).expect("read back");
    assert_eq!(back, report);
}

#[test]
fn the_fastest_comes_first() {
    let report = sample();
    let times: Vec<f64> = report
        .fastest_first()
        .iter()
        .filter_map(|trial| trial.measured())
        .map(|(t, _)| t)
        .collect();
    assert!(times.is_sorted());
    assert_eq!(times.len(), report.trials.len() - 1);
    assert_eq!(report.without_time().count(), 1);
}

#[test]
fn the_conclusion_follows_the_verdict() {
    let mut report = sample();
    assert_eq!(
        report.conclusion(),
        "2.96× the speed of the plain kernel, 430 µs instead of 1.27 ms. If its work can be split, 1,056 \
         work-groups of 256 work-items take 423 µs without a plan."
    );
    report.verdict = Verdict::MoreWorkGroups;
    assert!(
        report
            .conclusion()
            .starts_with("As 1,056 work-groups of 256 work-items, with `unroll:4`: 3.10×")
    );
    report.best_elsewhere = None;
    assert!(
        report
            .conclusion()
            .starts_with("As 1,056 work-groups of 256 work-items: 3.01×")
    );
    // A gain that is none is not named.
    report.verdict = Verdict::LeaveIt;
    report.best.speedup = 1.0;
    for (speedup, is_named) in [(1.04, true), (1.01, false)] {
        report.plain_best_geometry.as_mut().expect("another one").speedup = speedup;
        assert_eq!(report.conclusion().contains("can be split"), is_named);
    }
}

#[test]
fn a_launch_that_is_much_of_the_time_is_named() {
    let mut report = sample();
    report.launch_ns = Some(2_800.0);
    assert!(!report.conclusion().contains("launch"));
    report.baseline_ns = 7_400.0;
    let conclusion = report.conclusion();
    assert!(
        conclusion.contains("7.40 µs (2.80 µs of it the launch)"),
        "{conclusion}"
    );
}

#[test]
fn a_search_that_tried_nothing_decides_nothing() {
    let mut report = sample();
    report.trials.truncate(1);
    report.plain_best_geometry = None;
    report.verdict = Verdict::Undecided;
    report.partial = Some(Partial {
        tried: 0,
        of: 131,
        telling_left: 24,
        tried_kinds: vec!["unroll".to_owned()],
        open_kinds: vec!["cache".to_owned(), "rolling-async".to_owned()],
        seconds_a_plan: Some(2.0),
        by_first_looks: false,
        lost: None,
    });
    let conclusion = report.conclusion();
    for expected in [
        "The kernel takes 1.27 ms without a plan. None of 131 plans was timed",
        "The other 131 plans take about 48 s for the 24 likely ones, about 262 s in all",
    ] {
        assert!(conclusion.contains(expected), "{conclusion}");
    }
    assert!(!conclusion.contains("worth it"), "{conclusion}");
    let one = report.partial.clone().map(|partial| Partial {
        telling_left: 1,
        ..partial
    });
    let one = one.and_then(|partial| partial.cost()).expect("plans are left");
    assert!(one.contains(" for the likely one, about 262 s in all"), "{one}");
    assert!(
        report.why_as_it_was().starts_with("too few plans were timed"),
        "a module that is written says no more"
    );
    let partial = report
        .partial
        .as_ref()
        .map(Partial::to_string)
        .unwrap_or_default();
    assert!(
        partial.ends_with("others may be faster. Tried: unroll. Open: cache, rolling-async."),
        "{partial}"
    );
    let json = serde_json::to_value(&report).expect("serializable");
    assert_eq!(json["verdict"], "undecided");
    assert_eq!(json["partial"]["telling_left"], 24);
}

#[test]
fn what_cannot_be_settled_is_not_decided() {
    let mut report = sample();
    report.plain_best_geometry = None;
    report.verdict = Verdict::Undecided;
    report.doubt = Some("The simulator cannot settle this: `unroll:2` may gain. Measure it.".to_owned());
    let text = table::text(&report, columns::Columns::UNLIMITED);
    assert!(
        report
            .conclusion()
            .contains("without a plan. The simulator cannot settle this"),
        "{text}"
    );
    assert_eq!(text.matches("cannot settle").count(), 1, "{text}");
    assert!(!text.contains("too few to tell"), "{text}");
    assert!(report.why_as_it_was().starts_with("a measurement"));
}

#[test]
fn plans_that_did_not_run_to_their_end_are_not_said_to_have_run() {
    let mut report = sample();
    report.plain_best_geometry = None;
    report.verdict = Verdict::LeaveIt;
    report.trials.truncate(3);
    let dropped = Outcome::Dropped {
        after: 0.1,
        at_most: 0.97,
    };
    report.trials[2].outcome = dropped.clone();
    let said = report.conclusion();
    assert!(
        said.contains("of 1 that ran and 1 that were dropped on the way none is over"),
        "{said}"
    );
    report.trials[1].outcome = dropped;
    let said = report.conclusion();
    assert!(
        said.contains("of 2 that were dropped on the way none is over 0.97×"),
        "{said}"
    );
}

#[test]
fn a_kernel_that_lacks_statements_is_told_which() {
    let mut report = sample();
    report.trials.truncate(1);
    report.plain_best_geometry = None;
    report.verdict = Verdict::Undecided;
    report.unlocking = ["a", "b"]
        .map(|name| format!("If so, say `unaliased = [\"{name}\"]`."))
        .into();
    let text = table::text(&report, columns::Columns::new(100)).replace("\n  ", " ");
    let (verdict, rest) = text.split_once("\nWhy").expect("the reasons");
    assert!(verdict.contains("No plan may be tried yet"), "{text}");
    assert!(verdict.contains("unaliased = [\"a\"]"), "{text}");
    assert!(rest.contains("unaliased = [\"b\"]"), "{text}");
    assert_eq!(text.matches("unaliased = [\"a\"]").count(), 1, "{text}");
    assert!(!text.contains("worth it"), "{text}");
}

#[test]
fn what_was_not_checked_is_not_counted() {
    let none = Perturbed {
        kernel: String::new(),
        seed: 1,
        digest: String::new(),
        launches: 0,
        dropped: 0,
        dropped_for: BTreeMap::new(),
        agreed: 0,
        not_for: 0,
        on_device: None,
        weakly_checked: vec!["no launch is as small as these".to_owned()],
    };
    assert_eq!(
        none.sentences(),
        ["The plan was checked on no other launch (seed 1)."]
    );
    assert_eq!(
        none.weakness().as_deref(),
        Some("The check on other launches proves little: no launch is as small as these.")
    );
}

#[test]
fn dropped_draws_are_counted_by_rule() {
    let some = Perturbed {
        kernel: String::new(),
        seed: 1,
        digest: String::new(),
        launches: 500,
        dropped: 97,
        dropped_for: BTreeMap::from([("race".to_owned(), 7), ("out-of-bounds".to_owned(), 90)]),
        agreed: 500,
        not_for: 0,
        on_device: Some(OnDevice {
            agreed: 12,
            dropped: 1,
        }),
        weakly_checked: Vec::new(),
    };
    let said = some.sentences();
    assert!(
        said[0].ends_with("the same bits as the plain kernel in all."),
        "{said:?}"
    );
    let end = "97 more generated test launches were thrown away, because the original kernel itself failed on them: an index beyond \
               its memory (90), a race (7).";
    assert_eq!(said[1], end);
    let json = serde_json::to_value(&some).expect("plain data");
    assert_eq!(json["dropped_for"]["out-of-bounds"], 90);
    let on_device = "on 12 such launches; 1 more do not count, as the kernel as it is fails on them, or leaves something else each time.";
    assert!(said[2].ends_with(on_device), "{said:?}");
    let one = Geometry { groups: 1, group: 1 };
    assert_eq!(one.to_string(), "1 work-group of 1 work-item");
}
