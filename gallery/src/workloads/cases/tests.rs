//! Every workload has its sizes, and every case computes the same as a few lines of ordinary Rust.
//!
//! The small cases, and those of the size of a cache, run with all of their data. A run takes one of [`PARTS`] parts of them,
//! another one every day; `HEADSTART_PART` chooses it: a number, or `all`. Of the large ones a few work-groups run on data of
//! the same extent; if the data are not generated element by element on reading, on small data.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use headstart::tune::Subject;

use super::super::testing::{Ran, run, run_data};
use super::super::{
    attention, bfs, binary_search, btree, chase, cross_section, embedding_bag, hash_probe, nbody,
    option_pricing, pagerank, select, spmv, triad,
};
use super::bags::{add_pairs, every, words};
use super::{Bags, COMBINATIONS, Case, Size, all};

/// A run takes one case of this many of each size.
const PARTS: usize = 24;

/// Whether a run takes this one.
fn is_in_part(number: usize) -> bool {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    match std::env::var("HEADSTART_PART").as_deref() {
        Ok("all") => true,
        Ok(part) => number % PARTS == part.parse::<usize>().expect("a number or `all`") % PARTS,
        Err(_) => number % PARTS == seconds.as_secs() as usize / 86_400 % PARTS,
    }
}

/// The check of each kernel.
fn check(ran: &Ran) {
    match ran.kernel() {
        "attention" => attention::tests::check(ran),
        "bfs" => bfs::tests::check(ran),
        "binary-search" => binary_search::tests::check(ran),
        "btree" => btree::tests::check(ran),
        "chase" => chase::tests::check(ran),
        "cross-section" => cross_section::tests::check(ran),
        "embedding-bag" => embedding_bag::tests::check(ran),
        "hash-probe" => hash_probe::tests::check(ran),
        "index-select" | "scatter" | "scatter-shared" => select::tests::check(ran),
        "nbody" => nbody::tests::check(ran),
        "option-pricing" => option_pricing::tests::check(ran),
        "pagerank" => pagerank::tests::check(ran),
        "spmv" | "spmv-blocks" => spmv::tests::check(ran),
        "triad" => triad::tests::check(ran),
        other => panic!("`{other}` has no check"),
    }
}

/// A case with all of its data, at its first geometry. Repetitions are reduced to a few.
fn run_whole(case: &Case) {
    let start = std::time::Instant::now();
    let fewer = |setting: &String| match setting.as_str() {
        "sequences=16" => "sequences=1".to_owned(),
        "steps=256" => "steps=16".to_owned(),
        "bodies=2^16" => "bodies=2^9".to_owned(),
        "groups=8192" => "groups=512".to_owned(),
        other => other.to_owned(),
    };
    let case = &Case {
        settings: case.settings.iter().map(fewer).collect(),
        shapes: vec![(case.shapes[0].0, case.shapes[0].1.iter().map(fewer).collect())],
        ..case.clone()
    };
    let (kernel, shape) = &case.shapes[0];
    let chosen = case.chosen(kernel, shape).expect(&case.name);
    let workload = chosen.workload().expect(&case.name);
    let (stated, made) = (case.bytes().expect(&case.name), workload.bytes());
    assert!(
        made.abs_diff(stated) * 30 <= made,
        "{}: {made} bytes, not {stated}",
        case.name
    );
    check(&run_data(&chosen, workload));
    println!("{:6.2} s {}", start.elapsed().as_secs_f64(), case.name);
}

fn of_size(size: Size) -> Vec<Case> {
    let mut cases = all(Bags::Pairs);
    cases.retain(|case| Size::of(case.bytes().expect(&case.name)) == size);
    cases
}

#[test]
fn every_workload_has_every_size_or_says_why_not() {
    let cases = all(Bags::Pairs);
    let mut sizes: BTreeMap<&str, Vec<Size>> = BTreeMap::new();
    for case in &cases {
        assert!(case.name.starts_with(case.workload), "{}", case.name);
        let size = Size::of(case.bytes().expect(&case.name));
        for (ending, said) in [
            (", small", Size::Small),
            (", middle", Size::Middle),
            (", large", Size::Large),
        ] {
            assert!(
                !case.name.ends_with(ending) || size == said,
                "{}: {size:?}",
                case.name
            );
        }
        sizes.entry(case.workload).or_default().push(size);
    }
    for (workload, sizes) in sizes {
        let alone = cases
            .iter()
            .find(|case| case.workload == workload)
            .and_then(|case| case.alone);
        match alone {
            Some(why) => assert!(sizes.len() == 1 && why.len() > 20, "{workload}"),
            None => {
                for size in [Size::Small, Size::Middle, Size::Large] {
                    assert!(sizes.contains(&size), "{workload} lacks {size:?}: {sizes:?}");
                }
            }
        }
    }
    let mut names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), cases.len(), "two cases of one name");
    // Each row of the list of workloads is there.
    for beginning in [
        "embedding bag",
        "spmv, random16",
        "spmv, banded",
        "spmv, power-law",
        "spmv, stencil27",
        "spmv, random4",
        "spmv, random256",
        "index select",
        "scatter",
        "hash probe, load=50",
        "hash probe, load=90",
        "binary search",
        "B+ tree search",
        "BFS",
        "PageRank",
        "cross sections",
        "option pricing",
        "attention",
        "control: pointer chase",
        "control: triad",
        "control: n-body",
    ] {
        assert!(
            names.iter().any(|name| name.starts_with(beginning)),
            "{beginning}"
        );
    }
}

#[test]
fn small_cases_and_those_of_the_size_of_a_cache_are_right() {
    for size in [Size::Small, Size::Middle] {
        let cases = of_size(size);
        assert!(cases.len() > 15, "{size:?}: {} cases", cases.len());
        let numbered = cases.iter().enumerate();
        for (_, case) in numbered.filter(|(number, _)| is_in_part(*number)) {
            run_whole(case);
        }
    }
}

#[test]
fn the_other_cases_are_right_at_small_sizes() {
    for case in all(Bags::Pairs) {
        for (kernel, shape) in [&case.shapes[0], &case.shapes[case.shapes.len() - 1]] {
            let chosen = case.chosen(kernel, shape).expect(&case.name);
            let small = chosen.small(9).expect(&case.name).expect("it can be small");
            check(&run_data(&chosen, small));
        }
    }
}

#[test]
fn large_data_are_reached_to_their_ends() {
    for (kernel, settings, bytes) in [
        (
            "embedding-bag",
            "bags=40 bag=9 rows=2^24 dim=64 group=32",
            4 << 30,
        ),
        (
            "embedding-bag",
            "bags=40 bag=9 rows=2^22 dim=256 element=f16 skew=zipf",
            2 << 30,
        ),
        ("index-select", "groups=2 items=3 bits=30", 4 << 30),
        ("binary-search", "groups=2 items=1 levels=30", 4 << 30),
        ("btree", "groups=2 items=1 levels=8 root=2", 3 << 30),
        ("btree", "groups=2 items=1 levels=8 root=4", 5 << 30),
        ("chase", "groups=2 steps=20 bits=30", 4 << 30),
        ("cross-section", "groups=2 group=32 grid=2^21", 2 << 30),
        ("attention", "sequences=2 tokens=40 pool=2^17", 8 << 30),
    ] {
        let settings: Vec<&str> = settings.split(' ').collect();
        let ran = run(kernel, &settings);
        assert!(ran.bytes() >= bytes, "{kernel}: {} bytes", ran.bytes());
        check(&ran);
    }
}

#[test]
fn every_combination_of_the_embedding_bag_is_right_at_small_sizes() {
    let combinations: Vec<_> = every().collect();
    assert_eq!(combinations.len(), COMBINATIONS);
    for combination in combinations {
        let fewer = |word: &'static str| match word {
            "bags=256" => "bags=3",
            "bags=2048" => "bags=5",
            "bags=16384" => "bags=9",
            "bag=150" => "bag=7",
            "bag=20" => "bag=2",
            other => other,
        };
        let settings: Vec<&str> = words(&combination).into_iter().map(fewer).collect();
        let ran = run(
            "embedding-bag",
            &[&settings[..], &["rows=50", "group=64"]].concat(),
        );
        embedding_bag::tests::check(&ran);
    }
}

#[test]
fn any_two_settings_of_the_embedding_bag_meet() {
    let cases = all(Bags::Pairs);
    let everything = all(Bags::All);
    let full = |case: &&Case| case.workload == "embedding bag" && case.bytes().expect("bytes") >= 2 << 30;
    assert_eq!(everything.iter().filter(full).count(), COMBINATIONS);
    assert!(
        cases
            .iter()
            .all(|case| everything.iter().any(|other| other.name == case.name))
    );
    let with = |one: &str, other: &str| {
        let has = |case: &&Case, setting: &str| match setting.strip_prefix('!') {
            Some(setting) => !case.name.contains(setting),
            None => case.name.contains(&format!(" {setting} ")),
        };
        let mut bags = cases.iter().filter(full);
        bags.any(|case| has(&case, one) && has(&case, other))
    };
    for bags in ["bags=256", "bags=2048", "bags=16384"] {
        for other in [
            "bag=20",
            "lengths=ragged",
            "skew=zipf",
            "!skew",
            "element=f16",
            "!element",
            "dim=64",
            "dim=256",
            "!dim",
            "mode=mean",
            "!mode",
        ] {
            assert!(with(bags, other), "{bags} never meets {other}");
        }
    }
    assert!(with("mode=mean", "dim=64") && with("mode=mean", "element=f16"));
    // Nothing is to be added twice.
    let mut enough: Vec<_> = every().collect();
    add_pairs(&mut enough);
    assert_eq!(enough.len(), COMBINATIONS);
}
