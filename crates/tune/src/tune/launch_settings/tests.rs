use super::*;

fn trial(way: LaunchSettings, plan: &str, speedup: f64) -> SettingsTrial {
    SettingsTrial {
        way,
        plan: plan.parse().expect("a plan"),
        time_ns: 1000.0 / speedup,
        speedup,
    }
}

const NARROW: LaunchSettings = LaunchSettings {
    sub_group: Some(16),
    large_registers: false,
    group: None,
};
const LARGE: LaunchSettings = LaunchSettings {
    sub_group: None,
    large_registers: true,
    group: None,
};

fn chosen(trials: Vec<SettingsTrial>, plan: &str) -> Option<(LaunchSettings, String)> {
    let mut report = headstart_report::samples::sample();
    report.best.plan = plan.parse().expect("a plan");
    let found = Ways {
        trials,
        ..Ways::default()
    };
    choose(&found, &report).map(|best| (best.way, best.plan.to_string()))
}

#[test]
fn the_cheapest_answer_that_is_not_beaten_wins() {
    let (usual, both) = (LaunchSettings::default(), NARROW.and(LARGE));
    let start = |planned| vec![trial(usual, "none", 1.0), trial(usual, "unroll:4", planned)];
    // A way alone is as good as the plan.
    let alone = [
        start(1.4),
        vec![trial(NARROW, "none", 1.4), trial(NARROW, "unroll:4", 1.42)],
    ]
    .concat();
    assert_eq!(chosen(alone, "unroll:4"), Some((NARROW, "none".to_owned())));
    // The plan alone is.
    let plan = [
        start(1.5),
        vec![trial(NARROW, "none", 1.4), trial(NARROW, "unroll:4", 1.52)],
    ]
    .concat();
    assert_eq!(chosen(plan, "unroll:4"), None);
    // Both are better, and a second change is not worth it.
    let joint = [
        start(1.5),
        vec![
            trial(NARROW, "unroll:4", 1.8),
            trial(LARGE, "unroll:4", 1.6),
            trial(both, "unroll:4", 1.82),
        ],
    ]
    .concat();
    assert_eq!(chosen(joint, "unroll:4"), Some((NARROW, "unroll:4".to_owned())));
    assert_eq!(chosen(start(1.0), "none"), None);
}

#[test]
fn changes_of_different_kinds_are_joined() {
    let wide = LaunchSettings {
        group: Some(512),
        ..LaunchSettings::default()
    };
    let small = LaunchSettings {
        group: Some(128),
        ..LaunchSettings::default()
    };
    let found = Ways {
        trials: vec![
            trial(NARROW, "none", 1.1),
            trial(LARGE, "none", 1.0),
            trial(small, "none", 0.9),
            trial(wide, "none", 1.2),
        ],
        ..Ways::default()
    };
    let axes = [vec![NARROW], vec![LARGE], vec![small, wide]];
    assert_eq!(
        joined(&axes, &found),
        [
            NARROW.and(LARGE),
            NARROW.and(wide),
            LARGE.and(wide),
            NARROW.and(LARGE).and(wide)
        ]
    );
}
