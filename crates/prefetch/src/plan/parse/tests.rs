//! Every spelling and every message of the plan's parser.

use proptest::prelude::{Just, any, prop_assert, prop_assert_eq, prop_oneof, proptest};
use proptest::strategy::Strategy as Generator;

use super::*;

fn message(text: &str) -> String {
    text.parse::<Plan>().expect_err(text).to_string()
}

#[test]
fn canonical_spellings_come_back() {
    for text in [
        "none",
        "unroll:4",
        "unroll:full",
        "registers:255",
        "unroll:16,registers:168,arr=rolling-registers:16",
        "registers=rolling-registers:4",
        "values=rolling-async:4/interleaved,indices=rolling-registers:5",
        "unroll:16,arr=rolling-registers:16",
        "values@row=batched-shared:8/padded",
        "values@src/gather.rs:41=rolling-shared:2/plain",
        "_Z6gatherPKi_param_0=batched-registers:3",
        "v=cache:L1:4/nt,w=cache:L4:1",
        "v=joint:L2:4/nt/group",
        "v=bulk:L2:2",
    ] {
        assert_eq!(text.parse::<Plan>().expect(text).to_string(), text);
    }
}

#[test]
fn spaces_and_defaults_are_made_canonical() {
    let plan: Plan = " unroll:8 , values = rolling-async:016 , w=cache:l2:1 "
        .parse()
        .expect("a plan");
    assert_eq!(
        plan.to_string(),
        "unroll:8,values=rolling-async:16/interleaved,w=cache:L2:1"
    );
}

#[test]
fn each_message_names_the_part_its_column_and_what_is_accepted() {
    for (text, column, what, accepted) in [
        ("", 1, "the plan is empty", "`none`"),
        (
            "values=roling-async:4",
            8,
            "no strategy `roling-async`",
            "did you mean `rolling-async`?",
        ),
        ("values=rolling-async:0", 22, "distance 0", "1 to 4096"),
        (
            "values=rolling-async:5000",
            22,
            "distance 5000 is too large",
            "1 to 4096",
        ),
        (
            "values=rolling-async:99999999999",
            22,
            "invalid distance `99999999999`",
            "1 to 4096",
        ),
        (
            "values=rolling-async:-1",
            22,
            "invalid distance `-1`",
            "1 to 4096",
        ),
        (
            "values=rolling-async",
            8,
            "`rolling-async` has no distance",
            "1 to 4096",
        ),
        (
            "values=rolling-async:4:5",
            24,
            "`5` is one setting too many",
            "1 to 4096",
        ),
        (
            "values=rolling-async:4/paded",
            24,
            "takes no `/paded`",
            "did you mean `/padded`?",
        ),
        (
            "values=rolling-async:4/plain/padded",
            30,
            "layout is said twice",
            "once",
        ),
        (
            "values=rolling-registers:4/plain",
            28,
            "takes no `/plain`",
            "nothing after its distance",
        ),
        ("values=cache:4", 14, "`4` is not a cache level", "L1, L2, L3, L4"),
        ("values=cache", 8, "`cache` has no cache level", "L1, L2, L3, L4"),
        ("values=cache:L2:1/group", 19, "takes no `/group`", "/nt"),
        ("values=bulk:L1:4", 13, "`L1` is not a cache level", "L2"),
        ("values=unroll:4", 8, "a loop is unrolled", "`unroll:4` in front"),
        ("values=", 8, "no strategy", "batched-registers"),
        ("values", 1, "`values` has no strategy", "`LOAD=STRATEGY`"),
        ("=cache:L2:1", 1, "name is missing", "`LOAD=STRATEGY`"),
        ("rolling-async:4", 1, "is for no load", "`LOAD=rolling-async:4`"),
        (
            "unrol:4",
            1,
            "`unrol:4` has no strategy",
            "did you mean `unroll`?",
        ),
        ("unroll:0", 8, "cannot be unrolled by `0`", "2 to 1024"),
        ("unroll", 1, "by how many", "`unroll:full`"),
        ("registers:23", 11, "cannot have `23` registers", "24 to 255"),
        ("registers:256", 11, "cannot have `256` registers", "24 to 255"),
        ("registers", 1, "how many", "`registers:N`"),
        (
            "registers:64,unroll:4",
            14,
            "in front",
            "`unroll:N,LOAD=STRATEGY`",
        ),
        (
            "v=cache:L2:1,registers:64",
            14,
            "once, in front",
            "`registers:N,LOAD=STRATEGY`",
        ),
        (
            "registers:64,registers:64",
            14,
            "once",
            "`registers:N,LOAD=STRATEGY`",
        ),
        ("register:64", 1, "has no strategy", "did you mean `registers:N`?"),
        (
            "v=cache:L2:1,unroll:4",
            14,
            "in front",
            "`unroll:N,LOAD=STRATEGY`",
        ),
        ("v=cache:L2:1,none", 14, "`none` is a whole plan", "leave out"),
        (
            "v=cache:L2:1,,w=cache:L2:1",
            14,
            "nothing between the commas",
            "`LOAD=STRATEGY`",
        ),
        ("v=cache:L2:1,v=cache:L2:2", 14, "named twice", "one strategy"),
        (
            "é@gather.rs:x=cache:L2:1",
            3,
            "`x` is not a line number",
            "FILE:LINE",
        ),
    ] {
        let message = message(text);
        assert!(
            message.contains(&format!("column {column}:")),
            "{text}: {message}"
        );
        assert!(message.contains(what), "{text}: {message}");
        assert!(message.contains(accepted), "{text}: {message}");
        assert!(!message.contains('\n'), "{text}: {message}");
    }
}

#[test]
fn long_plans_are_refused_with_a_short_message() {
    let text = "v=cache:L2:1,".repeat(10_000);
    assert!(message(&text).len() < 200);
    assert!(message(&"x".repeat(60_000)).len() < 400);
}

fn any_name() -> impl Generator<Value = LoadName> {
    let place = prop_oneof![
        Just(None),
        Just(Some(LoadPlace::Everywhere)),
        "[a-z_][a-z0-9_]{0,6}".prop_map(|name| Some(LoadPlace::Loop(name))),
        ("[a-z/.:-]{1,8}", 1u32.., 0u32..3).prop_map(|(file, line, column)| {
            Some(LoadPlace::Line {
                file,
                line: NonZeroU32::new(line).expect("from 1"),
                column: NonZeroU32::new(column),
            })
        }),
    ];
    ("[a-zA-Z_$%.é][a-zA-Z0-9_$%.é]{0,8}", place).prop_map(|(param, place)| {
        let name = LoadName::of_param(param).expect("an accepted name");
        match place {
            Some(place) => name.at(place).expect("an accepted place"),
            None => name,
        }
    })
}

fn any_strategy() -> impl Generator<Value = Strategy> {
    let kinds = proptest::sample::select(StrategyKind::ALL);
    let layouts = proptest::sample::select(Layout::ALL.to_vec());
    let levels = proptest::sample::select(CacheLevel::ALL);
    let distances = 1..=Distance::MAX;
    (kinds, distances, layouts, levels, any::<bool>(), any::<bool>()).prop_map(
        |(kind, distance, layout, level, nontemporal, group)| {
            let distance = Distance::new(distance).expect("in range");
            let told = Strategy::new(kind, distance).in_layout(layout).to_level(level);
            let told = if nontemporal { told.nontemporal() } else { told };
            if group { told.of_work_group() } else { told }
        },
    )
}

fn any_plan() -> impl Generator<Value = Plan> {
    let unroll = prop_oneof![
        Just(None),
        Just(Some(Unroll::Full)),
        (2..=Unroll::MAX).prop_map(|count| Some(Unroll::by(count).expect("in range"))),
    ];
    let registers = prop_oneof![Just(None), REGISTERS.prop_map(Some)];
    let loads = proptest::collection::vec((any_name(), any_strategy()), 0..4);
    (unroll, registers, loads).prop_map(|(unroll, registers, loads)| {
        let start = unroll.map_or(Plan::none(), |unroll| Plan::none().unrolled(unroll));
        let start = start.with_registers(registers);
        loads.into_iter().fold(start, |plan, (name, strategy)| {
            plan.clone().with(name, strategy).unwrap_or(plan)
        })
    })
}

proptest! {
    #[test]
    fn what_is_printed_reads_back(plan in any_plan()) {
        let text = plan.to_string();
        let back: Plan = text.parse().expect("a printed plan is accepted");
        prop_assert_eq!(&back, &plan);
        prop_assert_eq!(back.to_string(), text);
    }

    #[test]
    fn no_text_panics_and_every_message_is_one_line(text in "\\PC{0,40}|[a-z:=,/@ -]{0,40}|.{0,40}") {
        if let Err(error) = text.parse::<Plan>() {
            prop_assert!(!error.to_string().contains(['\n', '\r']));
        }
    }
}

#[test]
fn the_macro_knows_every_strategy() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../headstart-macros/src/plan.rs");
    let Ok(source) = std::fs::read_to_string(path) else {
        eprintln!("SKIPPED: the macro's sources are not beside the library's");
        return;
    };
    let list = source.split("STRATEGIES: [&str; ").nth(1).expect("the list");
    let list = list.split("];").next().expect("its end");
    let known: Vec<&str> = list.split('"').skip(1).step_by(2).collect();
    assert_eq!(known, StrategyKind::names());
}
