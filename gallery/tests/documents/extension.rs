//! The lines of SYCL's extension for prefetching, and its open question.

use headstart::device::CacheState;
use headstart::ir::CacheLevel;

use super::page::{Row, found, words};
use super::{model, time, workload};

/// Microseconds of the gallery's kernel whose prefetches name no level, on cold caches.
fn with_default(level: CacheLevel) -> f64 {
    let settings = format!("example=no-level default-level={}", level.name());
    time(
        &model("pvc-1550", &[]),
        "prefetch-examples",
        &settings,
        "none",
        CacheState::Flushed,
    ) / 1000.0
}

/// "Which level of cache should be targeted for an empty property list?" Where the next element is used soon, the nearest.
#[test]
fn the_default_level_is_the_launch_s() {
    let [l1, l2, l3, l4] = [CacheLevel::L1, CacheLevel::L2, CacheLevel::L3, CacheLevel::L4].map(with_default);
    println!("default L1 {l1:.0} µs, L2 {l2:.0}, L3 {l3:.0}, L4 {l4:.0}");
    assert!(l1 < 0.97 * l3, "{l1} and {l3} µs");
    // There are two levels: what is not L1 is Intel's L3.
    assert_eq!((l2, l4), (l3, l3));
}

/// Nontemporal is Intel's streaming, in L1; its L3 has no such mode.
#[test]
fn a_launch_reports_what_nontemporal_becomes() {
    let pvc = model("pvc-1550", &[]);
    let mapped = |example: &str| {
        let workload = workload("prefetch-examples", &format!("example={example}"));
        let hints = pvc.prefetches(&workload.kernel);
        hints
            .into_iter()
            .map(|hint| (hint.reached, hint.why))
            .collect::<Vec<_>>()
    };
    let [(reached, why)] = &mapped("nontemporal")[..] else {
        panic!("one hint")
    };
    assert!(
        *reached == Some(CacheLevel::L1) && why.starts_with("L1S_L3C"),
        "{why}"
    );
    let two = mapped("two-levels");
    let controls: Vec<&str> = two.iter().filter_map(|(_, why)| why.split(':').next()).collect();
    assert_eq!(controls, ["L1C_L3C", "L1UC_L3C"]);
}

const EXAMPLE: &str = "headstart run prefetch-examples --device sim:pvc-1550 --set example=two-levels";
const SIGNATURES: &str = "[every signature](prefetch.md#every-signature)";

pub const ROWS: [Row; 22] = [
    words(
        "SYCL 2020's `prefetch` leaves much open: no level, no cooperation",
        "levels, properties and joint forms, as the extension has them",
        SIGNATURES,
    ),
    words(
        "The extension has a feature-test macro, 1",
        "`SYCL_EXT_ONEAPI_PREFETCH` is 1",
        SIGNATURES,
    ),
    words("Hints for four levels of cache", "`L1` to `L4`", EXAMPLE),
    words(
        "Devices map them to the closest level",
        "`L2`, `L3` and `L4` are Intel's L3 on the Max series, and L2 on NVIDIA's",
        "headstart devices",
    ),
    words(
        "Of several levels the lowest counts",
        "`[L1, L4]` is `L1`",
        SIGNATURES,
    ),
    found(
        "Open: the level of an empty property list; the draft takes the lowest",
        || {
            let [l1, l3] = [CacheLevel::L1, CacheLevel::L3].map(with_default);
            format!(
                "the launch decides, L1 unless it says otherwise: {l1:.0} µs with L1, {l3:.0} with the other levels, where the next use is near"
            )
        },
        "headstart sweep prefetch-examples --device sim:pvc-1550 --l2 flushed --over default-level=L1..L4",
    ),
    words(
        "`nontemporal`: the data will not be reused",
        "`L1.nontemporal()`: streaming (`L1S_L3C`) on Intel, evict-first in NVIDIA's L2 where the instruction takes it; `run` names the control",
        "headstart run prefetch-examples --device sim:pvc-1550 --set example=nontemporal",
    ),
    words(
        "Future hints may change the default",
        "a list of hints keeps each one's own flag",
        SIGNATURES,
    ),
    words(
        "`prefetch(void*)`, `(void*, bytes)`, `(T*)`, `(T*, count)`",
        "of an element, a span, a pointer with a count",
        SIGNATURES,
    ),
    words(
        "The same for `multi_ptr` in global or generic space",
        "typed pointers; a shared or private one does not compile",
        SIGNATURES,
    ),
    words(
        "The same for accessors that can be read",
        "views; a write-only one does not compile",
        SIGNATURES,
    ),
    words(
        "Work-items prefetch for themselves",
        "a hint for each lane, one for each line",
        EXAMPLE,
    ),
    words(
        "The pointer must lead to global memory",
        "a generic pointer that does not is reported, with the work-item",
        "[checks](checks.md)",
    ),
    words(
        "First example: two levels at two distances",
        "a kernel of the gallery",
        EXAMPLE,
    ),
    words(
        "Second example: nontemporal",
        "a kernel of the gallery",
        "headstart run prefetch-examples --device sim:pvc-1550 --set example=nontemporal",
    ),
    words(
        "`joint_prefetch`: a group prefetches the same data together",
        "lines are dealt out to the work-items; a sub-group's become blocks where the compiler has them",
        SIGNATURES,
    ),
    words(
        "Group functions: all work-items must reach them",
        "a call that some do not reach is reported",
        "[checks](checks.md)",
    ),
    words(
        "Pointer, count and properties must be the same for all",
        "a difference is reported, with both values",
        "[groups](prefetch.md#groups)",
    ),
    words(
        "Groups are sub-groups and work-groups",
        "`sub_group()` and `work_group()`",
        SIGNATURES,
    ),
    words(
        "Third example: a sub-group's loop; its pointer differs between work-items, against the rule above",
        "a kernel of the gallery, with the pointer of the first work-item",
        "headstart run prefetch-examples --device sim:pvc-1550 --set example=joint",
    ),
    words(
        "Joint prefetch with a count",
        "spans and blocks of views",
        SIGNATURES,
    ),
    words(
        "Open: prefetches in several dimensions",
        "both ways: a count in memory order, and a range",
        "[open questions](prefetch.md#two-open-questions-of-the-extension)",
    ),
];
