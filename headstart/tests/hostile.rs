//! Deliberately broken kernels. The parser must not panic or hang, and accepted text survives a round trip. Everything behind
//! the verifier must not panic, nor blame Headstart.
//!
//! Texts of `tests/in` and of random kernels are mutated for `HEADSTART_FUZZ_SECONDS`, or 3. Targets for
//! coverage-guided fuzzing of the same properties are in `fuzz/`.

use std::time::{Duration, Instant};

use headstart::front::ptx;
use headstart::ir;
use headstart_testing::{self as testing, Random};

#[path = "common/anything.rs"]
mod anything;
#[path = "common/round_trip.rs"]
mod round_trip;

/// The longest that one text may take, however loaded the machine is.
const PATIENCE: Duration = Duration::from_secs(10);

/// Words that mean something somewhere.
const WORDS: [&str; 28] = [
    "%0",
    "%acc",
    "@values",
    "'items",
    "0:i64",
    "-1:i8",
    "nan:f32",
    "0x7fc00001:f32",
    "true",
    "0:token",
    "{",
    "}",
    "yield",
    "break",
    "continue",
    "return",
    "if",
    "else {",
    "loop",
    "block",
    "load f32",
    "copy 16 to",
    ", ",
    "#1:2:3 in",
    "ptr.shared",
    "18446744073709551615",
    "\"",
    "; ",
];

fn corpus(seed: u64) -> Vec<String> {
    let files = testing::texts().expect("tests/in can be read");
    let mut texts: Vec<String> = files.into_iter().map(|(_, text)| text).collect();
    // Instructions that are carried as text, and loops in two parts.
    let forms = include_str!("data/forms.ptx");
    for entry in ptx::entries(forms).expect("a module") {
        let kernel = ptx::read(forms, "forms.ptx", Some(&entry), &ptx::Facts::default());
        texts.push(ir::print(
            &kernel.unwrap_or_else(|error| panic!("{entry}: {error}")),
        ));
    }
    texts.extend((seed..seed + 20).map(|seed| ir::print(&testing::random_kernel(seed))));
    texts
}

/// Breaks a text in one place.
fn mutate(random: &mut Random, text: &str, other: &str) -> String {
    let boundary = |random: &mut Random, text: &str| {
        let mut at = random.below(text.len() as u64 + 1) as usize;
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let (a, b) = (boundary(random, text), boundary(random, text));
    let (from, to) = (a.min(b), a.max(b));
    let mut lines: Vec<&str> = text.lines().collect();
    let line = random.below(lines.len().max(1) as u64) as usize;
    match random.below(10) {
        0 => text[..a].to_owned(),
        1 => format!("{}{}", &text[..from], &text[to..]),
        2 => format!("{}{}{}", &text[..to], &text[from..to], &text[to..]),
        3 => format!("{}{}", &text[..a], &other[boundary(random, other)..]),
        4 | 5 => format!("{} {} {}", &text[..a], random.choose(&WORDS), &text[a..]),
        6 => {
            let character = char::from_u32(random.below(0x300) as u32).unwrap_or('ÿ');
            format!("{}{character}{}", &text[..a], &text[a..])
        }
        7 if !lines.is_empty() => {
            lines.remove(line);
            lines.join("\n")
        }
        8 if !lines.is_empty() => {
            let second = random.below(lines.len() as u64) as usize;
            lines.swap(line, second);
            lines.join("\n")
        }
        // One word takes the place of another: what remains is often well formed but wrong.
        _ => {
            let words: Vec<&str> = text.split(' ').collect();
            let (old, new) = (*random.choose(&words), *random.choose(&words));
            text.replacen(
                &format!(" {old} "),
                &format!(" {new} "),
                1 + random.below(3) as usize,
            )
        }
    }
}

#[test]
fn broken_kernels_do_no_harm() {
    let seed = testing::base_seed();
    let budget = Duration::from_secs(testing::count("HEADSTART_FUZZ_SECONDS", 3));
    let corpus = corpus(seed);
    let mut random = Random::new(seed);
    let start = Instant::now();
    let (mut tried, mut accepted, mut verified, mut planned) = (0u64, 0u64, 0u64, 0u64);
    let mut slowest = Duration::ZERO;
    while start.elapsed() < budget {
        let other = random.choose(&corpus).clone();
        let mut text = random.choose(&corpus).clone();
        for _ in 0..random.between(1, 4) {
            text = mutate(&mut random, &text, &other);
        }
        let before = Instant::now();
        if round_trip::check(&text) {
            accepted += 1;
            let kernel = ir::parse(&text, "accepted").expect("it was accepted just now");
            if ir::verify(&kernel).is_ok() {
                verified += 1;
                planned += u64::from(anything::check(&kernel, random.bits()));
            }
        }
        tried += 1;
        let taken = before.elapsed();
        assert!(taken < PATIENCE, "{taken:?} for\n{text}");
        slowest = slowest.max(taken);
    }
    let counts = format!(
        "{tried} texts, {accepted} parsed, {verified} verified, {planned} had legal plans; {slowest:.1?} at most"
    );
    println!("{counts}");
    assert!(
        planned > 0 && accepted < tried,
        "the test tests too little: {counts}"
    );
}
