//! Kernels whose own bits vary from launch to launch with the same data, as those of graph codes whose threads race for a label,
//! and of sums by atomic operations: what a plan may leave where the kernel as it is leaves now this, now that.
//!
//! The kernel as it is is launched a few more times. Each output that varied gets a class by what these launches left:
//!
//! | class | the launches of the kernel as it is | a plan's outputs are accepted if |
//! |---|---|---|
//! | in another order | left the same words in any order | they are the same words in any order |
//! | in the same words | left other values in some of the words | they differ from the others in no word, and in these stay near the values seen |
//!
//! Neither is bits. How many words outside are let pass is what the kernel as it is needs itself: its last launches are held
//! against those before, and a plan may stray in twice as many words. A plan is launched as often as these: chance strays in
//! other words each time, and a wrong plan in the same. With a kernel that strays far nothing can be compared.

use std::collections::HashSet;
use std::ops::RangeInclusive;

use crate::ir::Type;

/// How often the kernel as it is is launched to see what varies, the launches that are held against the others included.
pub(super) const LAUNCHES: usize = 8;

/// Of these the last ones, which are held against those before; and how often a plan is launched.
pub(super) const HELD_OUT: usize = 2;

/// The longest output whose launches are kept on the host.
pub(super) const MOST_BYTES: u64 = 32 << 20;

/// A plan may stray this many times as far as the kernel as it is.
const TIMES: usize = 2;

/// A kernel that strays in more than this part of the words shows nothing.
const MOST_STRAYING: f64 = 0.01;

/// Nor does one that leaves nearly anything in more than this part of the words.
const MOST_LOOSE: f64 = 0.5;

/// Values that are further apart than this are nearly anything: half of the bits of most words.
const APART: u64 = 1 << 16;

/// What the launches of an output have in common.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Class {
    /// The same words, sorted here, in any order.
    AnyOrder(Vec<u64>),
    /// The least and the greatest value of each word, and how many words may lie outside.
    Within {
        least: Vec<u64>,
        greatest: Vec<u64>,
        may: Straying,
        /// How many words vary.
        varying: usize,
    },
}

/// How many words of some launches lie outside of what others left.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Straying {
    /// Of one launch, at most.
    of_one: usize,
    /// The same words in all of them.
    of_all: usize,
}

impl Straying {
    fn of(least: &[u64], greatest: &[u64], launches: &[Vec<u64>]) -> Straying {
        let places: Vec<HashSet<usize>> = launches
            .iter()
            .map(|words| outside(least, greatest, words))
            .collect();
        let of_all = places.split_first().map_or(0, |(first, rest)| {
            let everywhere = |place: &&usize| rest.iter().all(|other| other.contains(place));
            first.iter().filter(everywhere).count()
        });
        Straying {
            of_one: places.iter().map(HashSet::len).max().unwrap_or(0),
            of_all,
        }
    }
}

/// Words of an output, as numbers in the order of their values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Words {
    element: Type,
}

impl Words {
    /// Of elements of this type; bytes whose type is unknown are compared by fours.
    pub(crate) fn of(element: Type, bytes: u64) -> Words {
        let element = match element {
            Type::I8 if bytes.is_multiple_of(4) => Type::I32,
            element => element,
        };
        Words { element }
    }

    fn size(self) -> usize {
        self.element.bytes().max(1) as usize
    }

    /// The words of an output. Of floats those are neighbours whose values are.
    pub(crate) fn read(self, bytes: &[u8]) -> Vec<u64> {
        let bits = self.element.bytes() * 8;
        let sign = 1u64 << bits.saturating_sub(1).min(63);
        let mask = sign | (sign - 1);
        let ordered = |word: u64| match self.element.is_float() {
            false => word,
            true if word & sign == 0 => word | sign,
            true => !word & mask,
        };
        let word = |bytes: &[u8]| {
            let mut word = [0; 8];
            word[..bytes.len().min(8)].copy_from_slice(&bytes[..bytes.len().min(8)]);
            ordered(u64::from_le_bytes(word))
        };
        bytes.chunks(self.size()).map(word).collect()
    }
}

impl Class {
    /// What launches have in common, each with the words that it left; none where they have too little in common.
    pub(crate) fn of(launches: &[Vec<u64>]) -> Option<Class> {
        let sorted = |words: &Vec<u64>| {
            let mut words = words.clone();
            words.sort_unstable();
            words
        };
        let (first, rest) = launches.split_first()?;
        let in_order = sorted(first);
        if rest.iter().all(|other| sorted(other) == in_order) {
            return Some(Class::AnyOrder(in_order));
        }
        let (before, last) = launches.split_at(launches.len().saturating_sub(HELD_OUT));
        let (least, greatest) = range(before)?;
        let own = Straying::of(&least, &greatest, last);
        if own.of_one as f64 > MOST_STRAYING * first.len() as f64 {
            return None;
        }
        let (least, greatest) = range(launches)?;
        let loose = least
            .iter()
            .zip(&greatest)
            .filter(|(least, greatest)| *greatest - *least > APART);
        if loose.count() as f64 > MOST_LOOSE * first.len() as f64 {
            return None;
        }
        let varying = least
            .iter()
            .zip(&greatest)
            .filter(|(least, greatest)| least != greatest);
        Some(Class::Within {
            varying: varying.count(),
            least,
            greatest,
            may: Straying {
                of_one: own.of_one * TIMES,
                of_all: own.of_all * TIMES,
            },
        })
    }

    /// Whether launches of a plan left what the kernel as it is could have left.
    pub(crate) fn has(&self, launches: &[Vec<u64>]) -> bool {
        match self {
            Class::AnyOrder(in_order) => launches.iter().all(|words| {
                let mut words = words.clone();
                words.sort_unstable();
                words == *in_order
            }),
            Class::Within {
                least, greatest, may, ..
            } => {
                let strays = Straying::of(least, greatest, launches);
                strays.of_one <= may.of_one && strays.of_all <= may.of_all
            }
        }
    }

    /// The sentence about it.
    pub(crate) fn sentence(&self, name: &str) -> String {
        match self {
            Class::AnyOrder(words) => format!(
                "The kernel as it is leaves the {} words of `{name}` in another order from launch to launch: a plan has to leave \
                 the same words in any order.",
                words.len()
            ),
            Class::Within {
                varying, least, may, ..
            } => format!(
                "The kernel as it is leaves other values in {varying} of the {} words of `{name}` from launch to launch: a plan \
                 has to leave the others as they are, and values near those seen in these{}.",
                least.len(),
                match may.of_one {
                    0 => String::new(),
                    straying => format!(", in all but {straying} words of a launch"),
                }
            ),
        }
    }
}

/// The least and the greatest value of each word; none where launches left nothing, or not as much.
fn range(launches: &[Vec<u64>]) -> Option<(Vec<u64>, Vec<u64>)> {
    let (first, rest) = launches.split_first()?;
    let (mut least, mut greatest) = (first.clone(), first.clone());
    for words in rest {
        if words.len() != first.len() {
            return None;
        }
        for (place, &word) in words.iter().enumerate() {
            least[place] = least[place].min(word);
            greatest[place] = greatest[place].max(word);
        }
    }
    Some((least, greatest))
}

/// The words that lie outside: beside the one value that a word always had, or further from the values of one that varies than
/// these are apart.
fn outside(least: &[u64], greatest: &[u64], words: &[u64]) -> HashSet<usize> {
    let near = |(&least, &greatest): (&u64, &u64)| -> RangeInclusive<u64> {
        let apart = greatest - least;
        least.saturating_sub(apart)..=greatest.saturating_add(apart)
    };
    let all = least.iter().zip(greatest).map(near).zip(words).enumerate();
    all.filter(|(_, (near, word))| !near.contains(word))
        .map(|(place, _)| place)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Eight launches of a hundred words; `vary` says what is in a word of a launch.
    fn launches(vary: impl Fn(u64, u64) -> u64) -> Vec<Vec<u64>> {
        let launch = |number| (0..100).map(|place| vary(number, place)).collect();
        (0..LAUNCHES as u64).map(launch).collect()
    }

    #[test]
    fn the_same_words_in_another_order_are_the_same() {
        let class = Class::of(&launches(|launch, place| (place + launch) % 100)).expect("they are alike");
        let mut other: Vec<u64> = (0..100).rev().collect();
        assert!(class.has(&[other.clone()]));
        other[3] = 7;
        assert!(
            !class.has(&[other.clone()]),
            "one is there twice, and one is missing"
        );
        assert!(
            class
                .sentence("list")
                .contains("the 100 words of `list` in another order")
        );
    }

    #[test]
    fn words_that_never_vary_have_to_stay_as_they_are() {
        // Every tenth has one of three values.
        let label = |launch: u64, place: u64| match place % 10 {
            0 => 1000 + (launch * 7 + place) % 3,
            _ => place,
        };
        let class = Class::of(&launches(label)).expect("they are alike");
        let mut other: Vec<u64> = (0..100).map(|place| label(11, place)).collect();
        assert!(class.has(&[other.clone()]));
        other[10] = 1005;
        assert!(!class.has(&[other.clone()]), "no launch left anything near");
        other[10] = 1001;
        other[11] += 1;
        assert!(!class.has(&[other.clone()]), "no launch left another value there");
        let said = class.sentence("labels");
        assert!(said.contains("10 of the 100 words of `labels`"), "{said}");
        assert!(!said.contains("all but"), "{said}");
    }

    #[test]
    fn chance_strays_in_other_words_each_time_and_a_wrong_plan_in_the_same() {
        // In each launch another word is off.
        let off = |launch: u64, place: u64| place + u64::from(place == launch * 9 % 100) * 7;
        let class = Class::of(&launches(off)).expect("they are alike");
        let plan = |wrong: u64| -> Vec<Vec<u64>> {
            let word = |launch, place| off(launch, place) + u64::from(place == wrong) * 1000;
            (20..20 + HELD_OUT as u64)
                .map(|launch| (0..100).map(|place| word(launch, place)).collect())
                .collect()
        };
        assert!(class.has(&plan(100)), "no word is wrong");
        assert!(!class.has(&plan(50)), "one word is, in both");
        let said = class.sentence("sums");
        assert!(said.contains("in all but 2 words of a launch"), "{said}");
    }

    #[test]
    fn what_varies_everywhere_cannot_be_compared() {
        let random = |launch: u64, place: u64| crate::random::splitmix64(launch * 100 + place, 3);
        assert_eq!(Class::of(&launches(random)), None);
        assert_eq!(Class::of(&[]), None);
    }

    #[test]
    fn floats_are_near_where_their_values_are() {
        let words = Words::of(Type::F32, 12);
        let read = |floats: [f32; 3]| words.read(&floats.map(f32::to_le_bytes).concat());
        let [minus, zero, plus] = read([-1.5, 0.0, 1.5])[..] else {
            panic!("three words")
        };
        assert!(minus < zero && zero < plus);
        let launch = |number: u32| read([1.0, -2.0 + number as f32 * 1e-6, 3.0]);
        let class = Class::of(&(0..8).map(launch).collect::<Vec<_>>()).expect("they are alike");
        assert!(class.has(&[read([1.0, -2.000_001, 3.0])]));
        assert!(!class.has(&[read([1.0, 2.0, 3.0])]));
        assert!(!class.has(&[read([1.000_001, -2.0, 3.0])]));
        // Memory of a program has no types.
        assert_eq!(Words::of(Type::I8, 8).read(&[1, 0, 0, 0, 2, 0, 0, 0]), [1, 2]);
        assert_eq!(Words::of(Type::I8, 3).read(&[1, 2, 3]), [1, 2, 3]);
    }
}
