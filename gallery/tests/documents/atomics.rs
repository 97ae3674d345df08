//! "If multiple atomic operations from different threads target the same address, the operations are serialized": the page's program,
//! 1,024 work-items with 1,024 additions each.

use super::{model, net};

/// Cycles from one addition of a work-item to the next.
fn cycles(address: &str, settings: &str) -> f64 {
    net(
        "micro/atomics",
        &format!("address={address} {settings}"),
        &model("pvc-1550", &[]),
    )
}

/// The page's compiler unrolls the loop eight times. Without that, counting the iterations takes as long as all additions to one word,
/// and hides them.
#[test]
fn additions_to_one_word_take_turns() {
    let [own, same] = ["own", "same"].map(|address| cycles(address, "unroll=8"));
    println!("unrolled: own words {own:.1} cycles an addition, the same word {same:.1}");
    // 32 sub-groups, each of which adds once for its 32 work-items.
    assert!((31.0..=34.0).contains(&same), "{same} cycles an addition");
    assert!(own < 0.4 * same, "{own} and {same} cycles an addition");
    let [own, same] = ["own", "same"].map(|address| cycles(address, "unroll=1"));
    println!("not unrolled: own words {own:.1} cycles an addition, the same word {same:.1}");
    assert!(
        (same / own - 1.0).abs() < 0.1,
        "{own} and {same} cycles an addition"
    );
}

/// Twice as many work-items on one word wait twice as long; those with words of their own do not.
#[test]
fn the_wait_grows_with_the_work_items() {
    let both = |address: &str| {
        ["groups=32", "groups=64"].map(|groups| cycles(address, &format!("unroll=8 {groups}")))
    };
    let ([own, more_own], [same, more_same]) = (both("own"), both("same"));
    assert!(more_same > 1.9 * same, "{same} and {more_same} cycles");
    assert!(more_own < 1.2 * own, "{own} and {more_own} cycles");
}
