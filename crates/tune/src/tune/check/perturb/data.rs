//! Changed buffer contents: the same elements in another order, one element everywhere, extremes, flipped flags.
//!
//! Each element is a function of its index and of the buffer's own contents. So a captured buffer of a gigabyte is changed
//! without a copy: the functional engine evaluates the elements that a few work-groups touch, and stores only the pages that
//! they write.

use std::sync::Arc;

use super::pointers::Pointers;
use crate::device::{Fill, Pattern};
use crate::ir::Type;
use crate::random::{Random, splitmix64};

/// A buffer's own contents, and the facts about it.
#[derive(Clone)]
pub(super) struct Own {
    element: Type,
    length: u64,
    fill: Fill,
    /// The least and the greatest of the elements that were looked at, as signed integers; floats have none.
    range: Option<(i64, i64)>,
    /// Whether those are in ascending order and not all the same, as offsets of rows or lists are.
    is_ascending: bool,
    /// Numbers that the kernel compares with.
    words: Arc<[u64]>,
    /// The words among the contents that are pointers, and stay.
    pointers: Option<Arc<Pointers>>,
}

/// How a buffer's contents are changed.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Change {
    /// As they are.
    Nothing,
    /// The last element first.
    Reversed,
    /// In another order.
    Permuted(u64),
    /// Every element has these bits.
    Constant(u64),
    /// These bits, by turns.
    Alternating(u64, u64),
    /// Integers or floats between two numbers, both included.
    Between(i64, i64, u64),
    /// Zero becomes one, and everything else zero.
    Negated,
    /// The lowest bit is the other one.
    Flipped,
    /// The first this many elements have the first bits, the others the second.
    Prefix(u64, u64, u64),
    /// Multiples of a step.
    Steps(u64),
    /// Offsets of pieces of 0, 1, … up to this number of elements by turns, from the least element on, none above the
    /// greatest.
    Pieces(u64),
    /// Any bits.
    Bits(u64),
    /// Some elements are numbers that the kernel compares with.
    Words(u64),
    /// Numbers that are special: zeros of both signs, infinities, NaNs, subnormal ones, the largest.
    Special(u64),
}

/// The longest pieces of data in pieces.
const PIECES: [u64; 3] = [6, 40, 200];

/// How many elements are looked at.
const SAMPLES: u64 = 256;

impl Own {
    pub(crate) fn new(element: Type, length: u64, fill: Fill) -> Own {
        Own::with(element, length, fill, Arc::from([]), None)
    }

    /// The same, for a kernel that compares with these numbers, with words that are pointers.
    pub(crate) fn with(
        element: Type,
        length: u64,
        fill: Fill,
        words: Arc<[u64]>,
        pointers: Option<Arc<Pointers>>,
    ) -> Own {
        let mut own = Own {
            element,
            length: length.max(1),
            fill,
            range: None,
            is_ascending: false,
            words,
            pointers,
        };
        if element.is_integer() {
            let step = own.length.div_ceil(SAMPLES).max(1);
            let looked_at = (0..own.length).step_by(step as usize).chain([own.length - 1]);
            let values: Vec<i64> = looked_at
                .filter(|&index| !own.is_pointer(index))
                .map(|index| own.signed(own.bits(index)))
                .collect();
            own.is_ascending = values.is_sorted() && values.first() < values.last();
            own.range = values.iter().min().copied().zip(values.iter().max().copied());
        }
        own
    }

    /// Element `index`. Beyond the end bytes and functions, which need not know more, start over, and patterns go on.
    fn bits(&self, index: u64) -> u64 {
        let size = self.element.bytes() as usize;
        match &self.fill {
            Fill::Uninitialized => 0,
            Fill::Pattern(pattern @ Pattern::Function(_)) => pattern.bits(self.element, index % self.length),
            Fill::Pattern(pattern) => pattern.bits(self.element, index),
            Fill::Bytes(bytes) => {
                let start = (index % self.length) as usize * size;
                let mut bits = [0; 8];
                if let Some(own) = bytes.get(start..start + size) {
                    bits[..size].copy_from_slice(own);
                }
                u64::from_le_bytes(bits)
            }
        }
    }

    /// The word of eight bytes that an element lies in.
    fn word(&self, index: u64) -> u64 {
        let bits = u64::from(self.element.bits());
        let first = index - index % self.of_word();
        (0..self.of_word()).fold(0, |word, part| word | self.bits(first + part) << (bits * part))
    }

    /// How many elements a word of eight bytes has.
    fn of_word(&self) -> u64 {
        8 / u64::from(self.element.bytes().clamp(1, 8))
    }

    /// Whether an element is a pointer, or a part of one.
    fn is_pointer(&self, index: u64) -> bool {
        let pointers = self.pointers.as_ref().filter(|_| index < self.length);
        pointers.is_some_and(|pointers| pointers.has(self.word(index)))
    }

    /// The contents with each pointer in its new place.
    pub(crate) fn moved(self, pointers: Arc<Pointers>) -> Fill {
        Fill::Pattern(Pattern::Function(Arc::new(move |index| {
            let part = index % self.of_word() * u64::from(self.element.bits());
            match pointers.moved(self.word(index)).filter(|_| index < self.length) {
                Some(place) => place >> part & self.element.mask(),
                None => self.bits(index),
            }
        })))
    }

    fn signed(&self, bits: u64) -> i64 {
        let unused = 64 - self.element.bits().clamp(1, 64);
        ((bits << unused) as i64) >> unused
    }

    /// The contents after a change, as long as is wanted. Pointers stay.
    pub(crate) fn changed(&self, change: &Change) -> Fill {
        let drawn = self.drawn(change);
        let Fill::Pattern(pattern) = &drawn else {
            return drawn;
        };
        if self.pointers.is_none() {
            return drawn;
        }
        let (own, pattern) = (self.clone(), pattern.clone());
        Fill::Pattern(Pattern::Function(Arc::new(move |index| {
            match own.is_pointer(index) {
                true => own.bits(index),
                false => pattern.bits(own.element, index),
            }
        })))
    }

    fn drawn(&self, change: &Change) -> Fill {
        let (element, length) = (self.element, self.length);
        let mask = element.mask();
        let own = self.clone();
        let function = |function: Box<dyn Fn(u64) -> u64 + Send + Sync>| {
            Fill::Pattern(Pattern::Function(Arc::new(move |index| function(index) & mask)))
        };
        match *change {
            Change::Nothing => match &self.fill {
                Fill::Uninitialized => Fill::Pattern(Pattern::Constant(0)),
                Fill::Bytes(_) | Fill::Pattern(Pattern::Function(_)) => {
                    function(Box::new(move |index| own.bits(index)))
                }
                Fill::Pattern(pattern) => Fill::Pattern(pattern.clone()),
            },
            Change::Reversed => function(Box::new(move |index| own.bits(length - 1 - index % length))),
            Change::Permuted(seed) => {
                let step = coprime(length, seed);
                let start = splitmix64(1, seed) % length;
                function(Box::new(move |index| {
                    let index = u128::from(index % length);
                    own.bits(((index * u128::from(step) + u128::from(start)) % u128::from(length)) as u64)
                }))
            }
            Change::Constant(bits) => Fill::Pattern(Pattern::Constant(bits & mask)),
            Change::Alternating(one, other) => {
                function(Box::new(
                    move |index| if index.is_multiple_of(2) { one } else { other },
                ))
            }
            Change::Between(low, high, seed) => function(Box::new(move |index| {
                let random = splitmix64(index, seed);
                match element {
                    _ if element.is_float() => {
                        let share = (random >> 11) as f64 / (1u64 << 53) as f64;
                        float_bits(element, low as f64 + share * (high - low) as f64)
                    }
                    _ => {
                        let width = high.wrapping_sub(low) as u64;
                        let offset = match width.checked_add(1) {
                            Some(count) => random % count,
                            None => random,
                        };
                        low.wrapping_add(offset as i64) as u64
                    }
                }
            })),
            Change::Negated => function(Box::new(move |index| u64::from(own.bits(index) == 0))),
            Change::Flipped => function(Box::new(move |index| own.bits(index) ^ 1)),
            Change::Prefix(count, first, then) => {
                function(Box::new(move |index| if index < count { first } else { then }))
            }
            Change::Steps(step) => Fill::Pattern(Pattern::Steps { first: 0, step }),
            Change::Pieces(longest) => {
                let (least, most) = self.range.unwrap_or((0, 0));
                let round = longest.saturating_add(1);
                let span = most.abs_diff(least);
                function(Box::new(move |index| {
                    let (rounds, rest) = (index / round, index % round);
                    // 0 + 1 + … of each round, and of this one.
                    let whole = u128::from(longest) * u128::from(round) / 2 * u128::from(rounds);
                    let own = u128::from(rest) * u128::from(rest.saturating_sub(1)) / 2;
                    let offset = (whole + own).min(u128::from(span)) as i64;
                    least.wrapping_add(offset) as u64
                }))
            }
            Change::Bits(seed) => Fill::Pattern(Pattern::Bits { seed }),
            Change::Words(seed) => function(Box::new(move |index| {
                let random = splitmix64(index, seed);
                match own.words.get((random >> 8) as usize % own.words.len().max(1)) {
                    Some(&word) if random.is_multiple_of(4) => word,
                    _ => own.bits(index),
                }
            })),
            Change::Special(seed) => {
                let special = specials(element);
                let count = special.len() as u64;
                function(Box::new(move |index| {
                    special[(splitmix64(index, seed) % count) as usize]
                }))
            }
        }
    }

    /// All changes without chance, and one each of those with it.
    pub(crate) fn changes(&self, random: &mut Random) -> Vec<Change> {
        let mut changes = vec![Change::Reversed, Change::Permuted(random.bits())];
        if self.element.is_float() {
            changes.extend([
                Change::Constant(0),
                Change::Between(-2, 2, random.bits()),
                Change::Special(random.bits()),
                Change::Bits(random.bits()),
            ]);
            return changes;
        }
        let (least, most) = self.range.unwrap_or((0, 1));
        changes.extend([
            Change::Constant(0),
            Change::Constant(1),
            Change::Constant(u64::MAX),
            Change::Constant(most as u64),
            Change::Constant(least as u64),
            Change::Alternating(least as u64, most as u64),
            Change::Between(least, most, random.bits()),
            Change::Between(0, 1, random.bits()),
            Change::Negated,
            Change::Flipped,
            Change::Prefix(1 + random.below(24), 1, 0),
            Change::Prefix(1 + random.below(24), 0, 1),
            Change::Steps(1 + random.below(4)),
            Change::Bits(random.bits()),
        ]);
        if self.is_ascending {
            // Rows and lists of every length, also where several work-items share one.
            changes.splice(2..2, PIECES.map(Change::Pieces));
        }
        if !self.words.is_empty() {
            // Before what hardly any kernel takes.
            changes.insert(2, Change::Words(random.bits()));
        }
        changes
    }

    /// Any change.
    pub(crate) fn random(&self, random: &mut Random) -> Change {
        let changes = self.changes(random);
        if self.element.is_integer() && random.chance(40) {
            let (least, most) = self.range.unwrap_or((0, 1));
            let small = random.below(12) as i64;
            return match random.below(6) {
                5 if !self.words.is_empty() => Change::Words(random.bits()),
                0 => Change::Constant(small as u64),
                1 => Change::Between(0, small, random.bits()),
                2 => Change::Between(-small, small, random.bits()),
                3 => Change::Prefix(random.below(48), most as u64, least as u64),
                _ => Change::Prefix(random.below(48), least as u64, most as u64),
            };
        }
        random.any_of(&changes).cloned().unwrap_or(Change::Nothing)
    }
}

impl std::fmt::Display for Change {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shown = |bits: u64| match bits as i64 {
            small @ -9999..=9999 => small.to_string(),
            _ => format!("{bits:#x}"),
        };
        match *self {
            Change::Nothing => f.write_str("as it is"),
            Change::Reversed => f.write_str("reversed"),
            Change::Permuted(_) => f.write_str("permuted"),
            Change::Constant(bits) => write!(f, "all {}", shown(bits)),
            Change::Alternating(one, other) => write!(f, "{} and {} by turns", shown(one), shown(other)),
            Change::Between(low, high, _) => write!(f, "random from {low} to {high}"),
            Change::Negated => f.write_str("zeros and ones exchanged"),
            Change::Flipped => f.write_str("the lowest bits flipped"),
            Change::Prefix(count, first, then) => {
                write!(f, "{count} times {}, then {}", shown(first), shown(then))
            }
            Change::Steps(step) => write!(f, "multiples of {step}"),
            Change::Pieces(longest) => write!(f, "offsets of pieces of 0 to {longest} elements"),
            Change::Bits(_) => f.write_str("random bits"),
            Change::Words(_) => f.write_str("mixed with what the kernel compares with"),
            Change::Special(_) => f.write_str("special numbers"),
        }
    }
}

/// A step that reaches every element of this many.
fn coprime(length: u64, seed: u64) -> u64 {
    let gcd = |mut one: u64, mut other: u64| {
        while other != 0 {
            (one, other) = (other, one % other);
        }
        one
    };
    let first = 1 + splitmix64(0, seed) % length;
    // 1 has no divisor in common with anything.
    (first..first.saturating_add(64))
        .find(|&step| gcd(step, length) == 1)
        .unwrap_or(1)
}

fn float_bits(element: Type, number: f64) -> u64 {
    match element {
        Type::F64 => number.to_bits(),
        Type::F32 => u64::from((number as f32).to_bits()),
        Type::F16 => u64::from(half::f16::from_f64(number).to_bits()),
        Type::Bf16 => u64::from(half::bf16::from_f64(number).to_bits()),
        _ => number as i64 as u64,
    }
}

/// The bits of special numbers of a type.
pub(super) fn specials(element: Type) -> Vec<u64> {
    match element {
        Type::F64 => [
            0.0,
            -0.0,
            1.0,
            -1.0,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::NAN,
            f64::MAX,
            5e-324,
        ]
        .iter()
        .map(|number| number.to_bits())
        .collect(),
        Type::F32 => [
            0.0,
            -0.0,
            1.0,
            -1.0,
            f32::INFINITY,
            f32::NEG_INFINITY,
            f32::NAN,
            f32::MAX,
            1e-45,
        ]
        .iter()
        .map(|number| u64::from(number.to_bits()))
        .collect(),
        // Sign, exponent and fraction of the same numbers.
        Type::F16 => vec![0, 0x8000, 0x3c00, 0xbc00, 0x7c00, 0xfc00, 0x7e00, 0x7bff, 1],
        Type::Bf16 => vec![0, 0x8000, 0x3f80, 0xbf80, 0x7f80, 0xff80, 0x7fc0, 0x7f7f, 1],
        _ => {
            let top = 1u64 << (element.bits().clamp(1, 64) - 1);
            vec![0, 1, u64::MAX, top, top - 1]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn elements(fill: &Fill, element: Type, count: u64) -> Vec<u64> {
        match fill {
            Fill::Pattern(pattern) => (0..count).map(|index| pattern.bits(element, index)).collect(),
            other => panic!("{other:?}"),
        }
    }

    fn of(values: &[i32]) -> Own {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Own::new(Type::I32, values.len() as u64, Fill::Bytes(bytes.into()))
    }

    #[test]
    fn contents_change_as_they_say() {
        let own = of(&[3, 0, -5, 7]);
        assert_eq!(own.range, Some((-5, 7)));
        let changed = |change: Change| -> Vec<i32> {
            let bits = elements(&own.changed(&change), Type::I32, 6);
            bits.iter().map(|&bits| bits as u32 as i32).collect()
        };
        assert_eq!(changed(Change::Nothing), [3, 0, -5, 7, 3, 0], "bytes start over");
        assert_eq!(changed(Change::Reversed), [7, -5, 0, 3, 7, -5]);
        assert_eq!(changed(Change::Negated), [0, 1, 0, 0, 0, 1]);
        assert_eq!(changed(Change::Flipped)[..4], [2, 1, -6, 6]);
        assert_eq!(changed(Change::Constant(u64::MAX))[..2], [-1, -1]);
        assert_eq!(changed(Change::Prefix(2, 1, 0))[..4], [1, 1, 0, 0]);
        assert_eq!(changed(Change::Alternating(1, 9))[..3], [1, 9, 1]);
        assert!(
            changed(Change::Between(-5, 7, 3))
                .iter()
                .all(|value| (-5..=7).contains(value))
        );
        assert!(changed(Change::Between(-1, 1, 3)).contains(&-1));
        let mut permuted = changed(Change::Permuted(11))[..4].to_vec();
        permuted.sort_unstable();
        assert_eq!(permuted, [-5, 0, 3, 7]);
    }

    #[test]
    fn offsets_get_pieces_of_every_length() {
        let own = of(&[2, 5, 5, 9, 30]);
        assert!(own.is_ascending && !of(&[3, 3]).is_ascending && !of(&[1, 0, 2]).is_ascending);
        let changes = own.changes(&mut Random::new(1));
        assert!(changes.contains(&Change::Pieces(40)), "{changes:?}");
        let bits = elements(&own.changed(&Change::Pieces(3)), Type::I32, 16);
        assert_eq!(bits, [2, 2, 3, 5, 8, 8, 9, 11, 14, 14, 15, 17, 20, 20, 21, 23]);
        let bits = elements(&own.changed(&Change::Pieces(200)), Type::I32, 16);
        assert!(bits.iter().all(|&bits| bits <= 30), "{bits:?}");
    }

    #[test]
    fn a_change_of_a_gigabyte_is_a_function() {
        let own = Own::new(
            Type::I32,
            1 << 28,
            Fill::Pattern(Pattern::Below { bound: 9, seed: 1 }),
        );
        let fill = own.changed(&Change::Permuted(5));
        assert!(matches!(fill, Fill::Pattern(Pattern::Function(_))));
        assert!(elements(&fill, Type::I32, 100).iter().all(|&bits| bits < 9));
    }

    #[test]
    fn functions_are_not_asked_beyond_their_end() {
        let knows_ten = Pattern::Function(Arc::new(|index| {
            assert!(index < 10);
            index
        }));
        let own = Own::new(Type::I32, 10, Fill::Pattern(knows_ten));
        for change in own
            .changes(&mut Random::new(1))
            .into_iter()
            .chain([Change::Nothing])
        {
            elements(&own.changed(&change), Type::I32, 25);
        }
        assert_eq!(
            elements(&own.changed(&Change::Nothing), Type::I32, 12)[9..],
            [9, 0, 1]
        );
    }

    #[test]
    fn floats_have_changes_of_their_own() {
        let own = Own::new(Type::F32, 8, Fill::Pattern(Pattern::Fractions { low: 1.0 }));
        let changes = own.changes(&mut Random::new(1));
        assert!(changes.iter().any(|change| matches!(change, Change::Special(_))));
        let fill = own.changed(&Change::Between(-2, 2, 1));
        let numbers = elements(&fill, Type::F32, 64);
        assert!(
            numbers
                .iter()
                .all(|&bits| f32::from_bits(bits as u32).abs() <= 2.0)
        );
        for element in [Type::F16, Type::Bf16, Type::F32, Type::F64, Type::I8, Type::I64] {
            assert!(
                specials(element)
                    .iter()
                    .all(|bits| *bits & element.mask() == *bits || !element.is_float())
            );
        }
    }
}
