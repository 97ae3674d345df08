//! The embedding bag's cases: sums and means, rows of 64, 128 and 256 floats and half floats, uniform and Zipf indices,
//! 256 to 16,384 bags of 20, 150 and ragged.

use super::{Bags, Case, Moves};

/// The settings that are combined, the ones that go without saying first. A name has them in this order.
const AXES: [&[&str]; 6] = [
    &["bags=256", "bags=2048", "bags=16384"],
    &["bag=150", "bag=20", "bag=150 lengths=ragged"],
    &["", "skew=zipf"],
    &["", "element=f16"],
    &["", "dim=64", "dim=256"],
    &["", "mode=mean"],
];

/// How many combinations there are.
pub const COMBINATIONS: usize = 216;

/// Which value of each axis.
type Combination = [usize; AXES.len()];

/// Those chosen by hand, in the order that they are shown.
const BY_HAND: [Combination; 18] = [
    [0, 0, 0, 0, 0, 0],
    [1, 0, 0, 0, 0, 0],
    [2, 0, 0, 0, 0, 0],
    [1, 1, 0, 0, 0, 0],
    [1, 2, 0, 0, 0, 0],
    [1, 0, 1, 0, 0, 0],
    [1, 0, 0, 0, 1, 0],
    [1, 0, 0, 0, 2, 0],
    [1, 0, 0, 1, 0, 0],
    [2, 1, 0, 0, 0, 0],
    [2, 2, 0, 0, 0, 0],
    [2, 0, 1, 0, 0, 0],
    [2, 0, 0, 0, 1, 0],
    [2, 0, 0, 0, 2, 0],
    [2, 0, 0, 1, 0, 0],
    [1, 0, 0, 0, 0, 1],
    [1, 0, 0, 1, 1, 0],
    [1, 0, 0, 1, 2, 0],
];

/// The cases at full size, then those with smaller tables.
pub(super) fn cases(bags: Bags) -> Vec<Case> {
    let mut combinations = BY_HAND.to_vec();
    match bags {
        Bags::Pairs => add_pairs(&mut combinations),
        Bags::All => {
            let others = every().filter(|combination| !BY_HAND.contains(combination));
            combinations.extend(others);
        }
    }
    let mut cases: Vec<Case> = combinations.iter().map(large).collect();
    let settings = words(&[1, 0, 0, 0, 0, 0]);
    for rows in ["rows=2^12", "rows=98304"] {
        cases.push(case(&[&settings[..], &[rows]].concat()));
    }
    cases
}

/// All combinations, the last axis fastest.
pub(super) fn every() -> impl Iterator<Item = Combination> {
    (0..COMBINATIONS).map(|mut number| {
        let mut combination = [0; AXES.len()];
        for (place, axis) in AXES.iter().enumerate().rev() {
            combination[place] = number % axis.len();
            number /= axis.len();
        }
        combination
    })
}

/// Adds combinations until any two values of two axes meet in one of them, each time the first that brings most.
pub(super) fn add_pairs(chosen: &mut Vec<Combination>) {
    let pairs = |of: &Combination| {
        let places = (0..AXES.len()).flat_map(|one| (one + 1..AXES.len()).map(move |other| (one, other)));
        let pairs = places.map(|(one, other)| (one, of[one], other, of[other]));
        pairs.collect::<Vec<_>>()
    };
    let mut met: Vec<_> = chosen.iter().flat_map(pairs).collect();
    loop {
        let new = |of: &Combination| pairs(of).iter().filter(|pair| !met.contains(pair)).count();
        let mut best = (0, None);
        for combination in every() {
            let count = new(&combination);
            if count > best.0 {
                best = (count, Some(combination));
            }
        }
        let (_, Some(combination)) = best else {
            return;
        };
        met.extend(pairs(&combination));
        chosen.push(combination);
    }
}

/// The settings of a combination, without those that go without saying.
pub(super) fn words(combination: &Combination) -> Vec<&'static str> {
    let settings = AXES.iter().zip(combination).map(|(axis, value)| axis[*value]);
    settings.flat_map(str::split_whitespace).collect()
}

/// A table of 2^30 values, whatever the dimension.
fn large(combination: &Combination) -> Case {
    let settings = words(combination);
    let rows = match settings.iter().find_map(|setting| setting.strip_prefix("dim=")) {
        Some("64") => "rows=2^24",
        Some("256") => "rows=2^22",
        _ => "rows=2^23",
    };
    case(&[&settings[..], &[rows]].concat())
}

fn case(settings: &[&str]) -> Case {
    let name = format!("embedding bag, {}", settings.join(" "));
    Case::new(&name, "embedding bag", settings)
        .shaped(
            "embedding-bag",
            &["group=32", "group=64", "group=128", "group=256", "group=512"],
        )
        .moving(match settings.contains(&"skew=zipf") {
            true => Moves::Unknown,
            false => Moves::Rows,
        })
}
