//! The question of Intel's page: should a kernel give hints, to which level, and how far ahead? `advise` answers it on each model of the
//! Max series, whatever else is faster.

use headstart::advise::{self, advise};
use headstart::report::columns::Columns;
use headstart::tune::SimulatedBench;
use headstart_gallery::kernels;

use super::model;

#[test]
fn advice_on_the_max_series_names_the_best_hints_alone() {
    let settings = ["groups=1", "group=32", "items=32", "table=1048576", "work=1"].map(str::to_owned);
    let chosen = kernels::find("gather")
        .and_then(|kernel| kernel.with(&settings, None))
        .expect("there");
    for name in ["pvc-1550", "pvc-1550-documented", "pvc-1550-card"] {
        let bench = SimulatedBench::new(model(name, &[]));
        let advice = advise(&chosen, &bench, &()).expect("advice");
        let alone = advice.hints_alone.as_ref().expect("hints were tried");
        println!("{name}: `{}` {:.2}x", alone.plan, alone.speedup);
        assert!(alone.plan.loads().iter().all(|(_, strategy)| strategy.is_hint()));
        // The values' address is an index: that is hinted, too, and further ahead.
        let ahead = |load: &str| {
            alone
                .hints
                .iter()
                .find(|hint| hint.load == load)
                .map(|hint| hint.ahead)
        };
        assert!(ahead("indices") > ahead("values"), "{:?}", alone.hints);
        let other = alone.other_level.as_ref().expect("L1 and L3 were tried");
        assert!(other.speedup < 1.05 * alone.speedup, "{other:?}");
        let hint = alone.hints.first().expect("a hint");
        assert!(
            hint.ahead >= 1 && hint.sycl.contains(&format!("prefetch_hint_{}", hint.level)),
            "{hint:?}"
        );
        let control = if hint.level == "L1" { "L1C_L3C" } else { "L1UC_L3C" };
        assert!(
            hint.lsc
                .iter()
                .all(|call| call.contains(control) || call.contains("L1S_L3C")),
            "{hint:?}"
        );
        let text = advise::text(&advice, Columns::UNLIMITED);
        assert!(
            text.contains("Hints alone: ") && text.contains(" ahead:") && text.contains("\n    hints alone"),
            "{text}"
        );
    }
    // Devices whose hints do nothing have no such line.
    let bench = SimulatedBench::new(model("xe-lp", &[]));
    assert!(
        advise(&chosen, &bench, &())
            .expect("advice")
            .hints_alone
            .is_none()
    );
}

/// Hints to L3 lose on the article's kernel, and a search drops them before their end: the level is compared all the same.
#[test]
fn advice_says_what_the_other_level_reaches_where_it_is_behind() {
    let settings = ["groups=64", "elements=12800"].map(str::to_owned);
    let chosen = kernels::find("article")
        .and_then(|kernel| kernel.with(&settings, None))
        .expect("there");
    let bench = SimulatedBench::new(model("pvc-1550", &[]));
    let advice = advise(&chosen, &bench, &()).expect("advice");
    let alone = advice.hints_alone.as_ref().expect("hints were tried");
    let other = alone.other_level.as_ref().expect("both levels were tried");
    println!(
        "`{}` {:.2}x, `{}` {:.2}x",
        alone.plan, alone.speedup, other.plan, other.speedup
    );
    assert!(
        alone.plan.to_string().contains("L1") && alone.speedup > 1.3,
        "{alone:?}"
    );
    assert!(
        other.plan.to_string().contains("L3") && other.speedup < 1.1,
        "{other:?}"
    );
    let text = advise::text(&advice, Columns::UNLIMITED);
    assert!(text.contains(&format!(" with `{}`", other.plan)), "{text}");
}
