//! Every spelling and every message of the plan's parser.

use headstart_ir::random::Random;

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
        "unroll:2,t@k.ptx:{56,65.9,74}=rolling-registers:8,t@k.ptx:80=cache:L1:4,s@k.ptx:{1,2}=cache:L1:4",
        "_Z6gatherPKi_param_0=batched-registers:3",
        "v=cache:L1:4/nt,w=cache:L4:1",
        "v=joint:L2:4/nt/group",
        "v=bulk:L2:2",
    ] {
        assert_eq!(text.parse::<Plan>().expect(text).to_string(), text);
    }
}

#[test]
fn lines_of_one_load_with_one_strategy_are_one_name() {
    let apart = "t@a:1=cache:L1:4,t@a:2=cache:L1:4,t@b:3=cache:L1:4,s@a:4=cache:L1:4,t@row=cache:L1:4";
    let plan: Plan = apart.parse().expect("a plan");
    assert_eq!(plan.loads().len(), 5);
    let together = "t@a:{1,2}=cache:L1:4,t@b:3=cache:L1:4,s@a:4=cache:L1:4,t@row=cache:L1:4";
    assert_eq!(plan.to_string(), together);
    assert_eq!(
        " t@a:{ 1 , 2 } = cache:L1:4 "
            .parse::<Plan>()
            .expect("a plan")
            .loads(),
        &plan.loads()[..2]
    );
    assert_eq!(
        "t@a{b:3=cache:L1:4,u=cache:L1:4"
            .parse::<Plan>()
            .expect("a plan")
            .loads()
            .len(),
        2
    );
    for (text, column) in [("t@a:{1,x}=cache:L1:4", 8), ("t@a:{}=cache:L1:4", 6)] {
        let said = message(text);
        assert!(
            said.contains(&format!("column {column}")) && said.contains("not a line number"),
            "{said}"
        );
    }
    for text in ["t@a:{1,2=cache:L1:4", "t@a:{1,2}3=cache:L1:4"] {
        assert!(message(text).contains("is not a line number"), "{text}");
    }
    assert!(message("t@a:{1,1}=cache:L1:4").contains("named twice"));
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

/// Some of these characters.
fn some_of(random: &mut Random, among: &str, least: u64, most: u64) -> String {
    let among: Vec<char> = among.chars().collect();
    (0..random.between(least, most))
        .map(|_| *random.choose(&among))
        .collect()
}

const LETTERS: &str = "abcdefghijklmnopqrstuvwxyz";

fn any_name(random: &mut Random) -> LoadName {
    let start = some_of(random, "azAZ_$%.é", 1, 1);
    let param = start + &some_of(random, "azAZ019_$%.é", 0, 8);
    let name = LoadName::of_param(param).expect("an accepted name");
    let place = match random.below(4) {
        0 => return name,
        1 => LoadPlace::Everywhere,
        2 => LoadPlace::Loop(some_of(random, LETTERS, 1, 1) + &some_of(random, "az09_", 0, 6)),
        _ => LoadPlace::Line {
            file: some_of(random, "az/.:-", 1, 8),
            line: NonZeroU32::new(random.between(1, u64::from(u32::MAX)) as u32).expect("from 1"),
            column: NonZeroU32::new(random.below(3) as u32),
        },
    };
    name.at(place).expect("an accepted place")
}

fn any_strategy(random: &mut Random) -> Strategy {
    let distance = Distance::new(random.between(1, u64::from(Distance::MAX)) as u32).expect("in range");
    let mut told = Strategy::new(*random.choose(StrategyKind::ALL), distance)
        .in_layout(*random.choose(Layout::ALL.as_slice()))
        .to_level(*random.choose(CacheLevel::ALL));
    if random.chance(50) {
        told = told.nontemporal();
    }
    if random.chance(50) {
        told = told.of_work_group();
    }
    told
}

fn any_plan(random: &mut Random) -> Plan {
    let mut plan = match random.below(3) {
        0 => Plan::none(),
        1 => Plan::none().unrolled(Unroll::Full),
        _ => {
            let count = random.between(2, u64::from(Unroll::MAX)) as u32;
            Plan::none().unrolled(Unroll::by(count).expect("in range"))
        }
    };
    if random.chance(50) {
        let (least, most) = (u64::from(*REGISTERS.start()), u64::from(*REGISTERS.end()));
        plan = plan.with_registers(Some(random.between(least, most) as u32));
    }
    for _ in 0..random.below(4) {
        let (name, strategy) = (any_name(random), any_strategy(random));
        plan = plan.clone().with(name, strategy).unwrap_or(plan);
    }
    plan
}

/// Random numbers from `HEADSTART_SEED`, which CI sets, and the seed.
fn random() -> (Random, u64) {
    let seed = std::env::var("HEADSTART_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or(1);
    (Random::new(seed), seed)
}

#[test]
fn what_is_printed_reads_back() {
    let (mut random, seed) = random();
    for _ in 0..1000 {
        let plan = any_plan(&mut random);
        let text = plan.to_string();
        let back: Plan = text
            .parse()
            .unwrap_or_else(|error| panic!("seed {seed}, {text}: {error}"));
        assert_eq!((&back, back.to_string()), (&plan, text), "seed {seed}");
    }
}

#[test]
fn no_text_panics_and_every_message_is_one_line() {
    let (mut random, seed) = random();
    for _ in 0..1000 {
        let text: String = match random.chance(50) {
            true => some_of(&mut random, &format!("{LETTERS}:=,/@ -"), 0, 40),
            false => {
                let any = |_| char::from_u32(random.below(0x11_0000) as u32).unwrap_or('\n');
                (0..40).map(any).collect()
            }
        };
        if let Err(error) = text.parse::<Plan>() {
            assert!(!error.to_string().contains(['\n', '\r']), "seed {seed}: {text:?}");
        }
    }
}
