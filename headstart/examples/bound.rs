//! Of which loops of PTX modules a plan can be written into the text, and what keeps the others from it.
//!
//! ```text
//! cargo run --release -p headstart --example bound -- FILE.ptx…
//! ```
//!
//! An entry is `bound` if one of its loops is; `refused by a rule` if a rule of legality refuses each of its loops' loads, and `not
//! written` if a plan is legal and the text cannot have it. Nothing is known of launches but 16 KiB of dynamic shared memory.
//! The times are medians: to read an entry of a module whose entries are known, and to write one plan.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use headstart::front::ptx::{Facts, Imported, Module};
use headstart::prefetch::{self, Candidate, Plan, PlanTarget};
use headstart::tune::drop_in::placed;

/// What can be done with a loop or an entry, best first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    Bound,
    NotWritten(String),
    Refused(String),
    NoLoads,
    Unread(String),
}

fn main() {
    let facts = Facts {
        dynamic_shared_bytes: Some(16 << 10),
        ..Facts::default()
    };
    let (mut entries, mut loops) = (BTreeMap::new(), BTreeMap::new());
    let (mut same, mut reading, mut writing) = (0, Vec::new(), Vec::new());
    for file in std::env::args().skip(1) {
        let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{file}: {error}"));
        let text = Arc::new(text);
        let module = Module::shared(&text, &file).unwrap_or_else(|error| panic!("{file}: {error}"));
        for entry in module.entries() {
            let start = Instant::now();
            let imported = module.import_alone(entry, &facts);
            reading.push(start.elapsed());
            let class = match imported {
                Err(error) => Class::Unread(error.what().to_owned()),
                Ok(imported) => {
                    let none = placed(&imported.original, &imported.kernel, &imported.kernel);
                    same += u64::from(none.is_ok_and(|none| none.module(&imported.original) == *text));
                    let found = classes(&imported, &mut writing);
                    for class in found.values() {
                        *loops.entry(class.clone()).or_insert(0) += 1;
                    }
                    found.into_values().min().unwrap_or(Class::NoLoads)
                }
            };
            *entries.entry(class).or_insert(0) += 1;
        }
    }
    for (what, counts) in [("entries", entries), ("loops with loads", loops)] {
        println!("{what}: {}", counts.values().sum::<u64>());
        for (class, count) in counts {
            println!("{count:8}  {class:?}");
        }
    }
    println!("{same} entries are the same, byte for byte, with the plan `none`");
    println!(
        "{:?} to read an entry, {:?} to write a plan",
        median(reading),
        median(writing)
    );
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// Each loop's class: that of the load that can be fetched early most easily.
fn classes(imported: &Imported, writing: &mut Vec<Duration>) -> BTreeMap<String, Class> {
    let mut loops = BTreeMap::new();
    for load in prefetch::candidates(&imported.kernel) {
        let best: &mut Class = loops
            .entry(format!("{:?}", load.looped))
            .or_insert(Class::NoLoads);
        let own = class(imported, &load, writing);
        if *best == Class::NoLoads || own < *best {
            *best = own;
        }
    }
    loops
}

fn class(imported: &Imported, load: &Candidate, writing: &mut Vec<Duration>) -> Class {
    if let Some(refusal) = &load.refusal {
        return Class::Refused(rule(refusal));
    }
    let strategies = ["rolling-registers:2", "batched-registers:2", "cache:L2:2"];
    let tried = strategies.iter().map(|strategy| {
        let plan: Plan = match format!("{}={strategy}", load.name).parse() {
            Ok(plan) => plan,
            Err(error) => return Class::Refused(rule(&format!("{error}"))),
        };
        match prefetch::apply(&imported.kernel, &plan, &PlanTarget::default()) {
            Err(error) => Class::Refused(rule(error.what())),
            Ok(applied) => {
                let start = Instant::now();
                let placed = placed(&imported.original, &imported.kernel, &applied.kernel);
                writing.push(start.elapsed());
                match placed {
                    Ok(_) => Class::Bound,
                    Err(error) => Class::NotWritten(rule(error.what())),
                }
            }
        }
    });
    tried.min().unwrap_or(Class::NoLoads)
}

/// A refusal without names, numbers and places.
fn rule(refusal: &str) -> String {
    let after = |text: &'static str| refusal.split_once(text).map(|(_, rule)| rule);
    let why = after("cannot be fetched early: ").or_else(|| after("cannot be edited: "));
    let words = why.unwrap_or(refusal).split('`').enumerate();
    let words: String = words
        .map(|(number, part)| if number % 2 == 0 { part } else { "…" })
        .collect();
    let placeless = words.split(" at ").next().unwrap_or_default();
    placeless
        .chars()
        .filter(|letter| !letter.is_ascii_digit())
        .collect()
}
