//! Which bytes a launch reaches through its pointers, computed with the launch's own numbers.
//!
//! The command has derived the arithmetic from the kernel's code (`crates/ir/src/analysis/reach/term.rs` says what each term means):
//! terms on intervals, each of earlier ones, written as words with colons.
//!
//! ```text
//! terms  c:0  g:0  c:128  mul:1:2  p:3:0:4  min:3:4  …    0, 1, 2, …, for all pointers together
//! reach  2 0  5                                          what parameter 2 leads to is reached as term 5 says
//! ```
//!
//! `ir` has an evaluator of its own, with wider numbers, for launches that the command looks at. This one depends on no crate of the
//! workspace, as all of this library, which is loaded into any program; and it is written for a launch: no allocation for each
//! term, 64 bits, and nothing said of what does not fit.
//!
//! A term takes few nanoseconds. What depends on the launch's scalars and grid alone is kept for launches with the same ones.

use crate::lock::Lock;

/// Terms of a kernel at most.
const MOST_TERMS: usize = 256;
/// Pointers of a kernel, and numbers that its terms need.
const MOST_POINTERS: usize = 16;
const MOST_SCALARS: usize = 16;
/// What is reached lies within this many bytes of the pointer, or is not known.
const NEAR: i64 = 1 << 62;

/// Integers from the first to the second, both included; none where the second is less.
pub type Interval = (i64, i64);
/// Anything, beyond 64 bits as well: so is what is computed of an interval that has an end of this one.
const ANY: Interval = (i64::MIN, i64::MAX);
const EMPTY: Interval = (1, 0);

/// A number that a launch gives as a parameter: this many bytes, read as signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scalar {
    pub index: usize,
    pub inside: usize,
    pub bytes: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Term {
    Constant(i64),
    Scalar(Scalar),
    Groups(usize),
    Signed(u32, usize),
    Unsigned(u32, usize),
    Of(Operator, usize, usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    And,
    Or,
    Min,
    Max,
    Join,
    Meet,
    Between,
    UpTo,
    From,
    Except,
}

/// The arithmetic for the pointers of a kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reaches {
    terms: Vec<Term>,
    /// Index and byte inside of each pointer, and its term.
    pointers: Vec<(usize, usize, usize)>,
}

/// What a launch reaches through each pointer: nothing known, or no byte at all, or the first and the last, counted from where
/// it leads.
type Reached = [Option<Option<Interval>>; MOST_POINTERS];

/// What launches with these numbers reach.
#[derive(Clone, Copy)]
struct Known {
    scalars: [u64; MOST_SCALARS],
    groups: [u32; 3],
    reached: Reached,
}

/// What was computed last.
pub struct Last(Lock<Option<Known>>);

impl Last {
    pub const fn new() -> Last {
        Last(Lock::new(None))
    }
}

impl Reaches {
    /// Reads the words of terms; none if one is not understood.
    pub fn read(words: &[&str]) -> Option<Reaches> {
        let mut own = Reaches::default();
        for (number, word) in words.iter().enumerate() {
            let term = term(word)?;
            let operands = match term {
                Term::Signed(_, a) | Term::Unsigned(_, a) => [a, a],
                Term::Of(_, a, b) => [a, b],
                Term::Constant(_) | Term::Scalar(_) | Term::Groups(_) => [usize::MAX; 2],
            };
            if operands
                .iter()
                .any(|&operand| operand != usize::MAX && operand >= number)
            {
                return None;
            }
            own.terms.push(term);
        }
        let few = own.terms.len() <= MOST_TERMS && own.scalars().count() <= MOST_SCALARS;
        (few && !own.terms.is_empty()).then_some(own)
    }

    /// A pointer is reached as a term says; false if that is not understood.
    pub fn add(&mut self, index: usize, inside: usize, term: usize) -> bool {
        let fits = term < self.terms.len() && self.pointers.len() < MOST_POINTERS;
        if fits {
            self.pointers.push((index, inside, term));
        }
        fits
    }

    /// The numbers that the terms need.
    pub fn scalars(&self) -> impl Iterator<Item = Scalar> + '_ {
        self.terms.iter().filter_map(|term| match term {
            Term::Scalar(scalar) => Some(*scalar),
            _ => None,
        })
    }

    /// Index and byte inside of each pointer that something is known of.
    pub fn pointers(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.pointers.iter().map(|&(index, inside, _)| (index, inside))
    }

    /// The number of a pointer among those that are known.
    pub fn number(&self, index: usize, inside: usize) -> Option<usize> {
        let own =
            |&(own_index, own_inside, _): &(usize, usize, usize)| own_index == index && own_inside == inside;
        self.pointers.iter().position(own)
    }

    /// What a launch reaches through each pointer. `word` gives a parameter's bytes.
    pub fn of(&self, last: &Last, word: impl Fn(Scalar) -> u64, groups: [u32; 3]) -> Reached {
        let mut scalars = [0; MOST_SCALARS];
        for (kept, scalar) in scalars.iter_mut().zip(self.scalars()) {
            *kept = word(scalar);
        }
        if let Some(known) = *last.0.take()
            && known.scalars == scalars
            && known.groups == groups
        {
            return known.reached;
        }
        let reached = self.computed(&scalars, groups);
        *last.0.take() = Some(Known {
            scalars,
            groups,
            reached,
        });
        reached
    }

    fn computed(&self, scalars: &[u64; MOST_SCALARS], groups: [u32; 3]) -> Reached {
        let mut values: Vec<Interval> = Vec::with_capacity(self.terms.len());
        let mut next = scalars.iter().copied();
        for term in &self.terms {
            // In the order of the terms.
            let scalar = match term {
                Term::Scalar(_) => next.next().unwrap_or_default(),
                _ => 0,
            };
            values.push(term.value(&values, scalar, groups));
        }
        let mut reached = [None; MOST_POINTERS];
        for (reached, &(_, _, term)) in reached.iter_mut().zip(&self.pointers) {
            let (low, high) = values[term];
            *reached = match () {
                () if low > high => Some(None),
                () if low > -NEAR && high < NEAR => Some(Some((low, high))),
                () => None,
            };
        }
        reached
    }
}

fn term(word: &str) -> Option<Term> {
    let (kind, rest) = word.split_once(':')?;
    let mut numbers = [0i64; 3];
    let mut count = 0;
    for part in rest.split(':') {
        *numbers.get_mut(count)? = part.parse().ok()?;
        count += 1;
    }
    let [a, b, c] = numbers;
    let number = |own: i64| usize::try_from(own).ok();
    let bits = |own: i64| u32::try_from(own).ok().filter(|bits| (1..=64).contains(bits));
    let kind = match (kind, count) {
        ("c", 1) => return Some(Term::Constant(a)),
        ("g", 1) => return number(a).filter(|&dimension| dimension < 3).map(Term::Groups),
        ("p", 3) => {
            let bytes = number(c).filter(|bytes| matches!(bytes, 1 | 2 | 4 | 8))?;
            return Some(Term::Scalar(Scalar {
                index: number(a)?,
                inside: number(b)?,
                bytes,
            }));
        }
        ("signed", 2) => return Some(Term::Signed(bits(a)?, number(b)?)),
        ("unsigned", 2) => return Some(Term::Unsigned(bits(a)?, number(b)?)),
        (_, 2) => kind,
        _ => return None,
    };
    let operator = match kind {
        "add" => Operator::Add,
        "sub" => Operator::Sub,
        "mul" => Operator::Mul,
        "div" => Operator::Div,
        "rem" => Operator::Rem,
        "and" => Operator::And,
        "or" => Operator::Or,
        "min" => Operator::Min,
        "max" => Operator::Max,
        "join" => Operator::Join,
        "meet" => Operator::Meet,
        "between" => Operator::Between,
        "upto" => Operator::UpTo,
        "from" => Operator::From,
        "except" => Operator::Except,
        _ => return None,
    };
    Some(Term::Of(operator, number(a)?, number(b)?))
}

impl Term {
    /// The interval, of those of earlier terms; `word` are a scalar's bytes.
    fn value(self, values: &[Interval], word: u64, groups: [u32; 3]) -> Interval {
        let point = |number: i64| (number, number);
        match self {
            Term::Constant(number) => point(number),
            Term::Scalar(scalar) => {
                let unused = 64 - 8 * scalar.bytes as u32;
                point(((word << unused) as i64) >> unused)
            }
            Term::Groups(dimension) => point(i64::from(groups[dimension])),
            Term::Signed(bits, a) => {
                let (low, high) = values[a];
                let (least, greatest) = (i64::MIN >> (64 - bits), i64::MAX >> (64 - bits));
                match low > high || low >= least && high <= greatest {
                    true => (low, high),
                    false => (least, greatest),
                }
            }
            Term::Unsigned(bits, a) => {
                let (low, high) = values[a];
                let greatest = i64::try_from(u64::MAX >> (64 - bits)).unwrap_or(i64::MAX);
                match () {
                    () if low > high || low >= 0 && high <= greatest => (low, high),
                    () if bits == 64 => ANY,
                    () if high < 0 && low >= -greatest => (low + greatest + 1, high + greatest + 1),
                    () => (0, greatest),
                }
            }
            Term::Of(operator, a, b) => of_two(operator, values[a], values[b]),
        }
    }
}

fn of_two(operator: Operator, one: Interval, other: Interval) -> Interval {
    let ((a, a_high), (b, b_high)) = (one, other);
    let (no_a, no_b) = (a > a_high, b > b_high);
    if no_a || no_b {
        return match operator {
            Operator::Join if no_a => other,
            Operator::Join => one,
            _ => EMPTY,
        };
    }
    match operator {
        Operator::Min => return (a.min(b), a_high.min(b_high)),
        Operator::Max => return (a.max(b), a_high.max(b_high)),
        Operator::Join => return (a.min(b), a_high.max(b_high)),
        Operator::Meet => return (a.max(b), a_high.min(b_high)),
        Operator::Between => return (a, b_high),
        Operator::UpTo => return (a, a_high.min(b_high)),
        Operator::From => return (a.max(b), a_high),
        _ => {}
    }
    if a == i64::MIN || b == i64::MIN || a_high == i64::MAX || b_high == i64::MAX {
        return ANY;
    }
    let both = |low: Option<i64>, high: Option<i64>| match (low, high) {
        (Some(low), Some(high)) => (low, high),
        _ => ANY,
    };
    let (a_is_one, b_is_one) = (a == a_high, b == b_high);
    match operator {
        Operator::Add => both(a.checked_add(b), a_high.checked_add(b_high)),
        Operator::Sub => both(a.checked_sub(b_high), a_high.checked_sub(b)),
        Operator::Mul if a >= 0 && b >= 0 => both(a.checked_mul(b), a_high.checked_mul(b_high)),
        Operator::Mul => {
            let all = [(a, b), (a, b_high), (a_high, b), (a_high, b_high)];
            let mut product = EMPTY;
            for (number, (a, b)) in all.into_iter().enumerate() {
                let Some(own) = a.checked_mul(b) else { return ANY };
                product = match number {
                    0 => (own, own),
                    _ => (product.0.min(own), product.1.max(own)),
                };
            }
            product
        }
        Operator::Div if b == 1 && b_is_one => one,
        Operator::Div if b >= 1 => (
            a.div_euclid(b).min(a.div_euclid(b_high)),
            (a_high / b).max(a_high / b_high),
        ),
        Operator::And if a_is_one && b_is_one => (a & b, a & b),
        Operator::And if a >= 0 && b >= 0 => (0, a_high.min(b_high)),
        Operator::And if a >= 0 => (0, a_high),
        Operator::And if b >= 0 => (0, b_high),
        Operator::Rem if a_is_one && b_is_one && a >= 0 && b >= 1 => (a % b, a % b),
        Operator::Rem if a >= 0 && b >= 1 => (0, a_high.min(b_high - 1)),
        Operator::Or if a >= 0 && b >= 0 => both(Some(0), a_high.checked_add(b_high)),
        Operator::Except if b_is_one => (a + i64::from(a == b), a_high - i64::from(a_high == b)),
        Operator::Except => one,
        _ => ANY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a pointer reaches by the last one of these terms.
    fn reached(text: &str, n: u64, groups: u32) -> Option<Option<Interval>> {
        let mut own = Reaches::read(&text.split(' ').collect::<Vec<_>>()).unwrap_or_else(|| panic!("{text}"));
        assert!(own.add(2, 8, own.terms.len() - 1));
        assert_eq!((own.number(2, 8), own.number(2, 0)), (Some(0), None));
        own.of(&Last::new(), |_| n, [groups, 1, 1])[0]
    }

    #[test]
    fn terms_are_computed_for_a_launch() {
        // min(groups × 128, n) elements of 4 bytes.
        let text = "g:0 c:128 mul:0:1 p:3:0:4 min:2:3 c:4 mul:4:5 c:1 sub:6:7 c:0 between:9:8";
        assert_eq!(reached(text, 100, 3), Some(Some((0, 399))));
        assert_eq!(reached(text, 1000, 3), Some(Some((0, 128 * 3 * 4 - 1))));
        assert_eq!(reached(text, 0, 3), Some(None), "nothing is reached");
        assert_eq!(
            reached(text, 0xffff_fff0, 3),
            Some(None),
            "as a signed number it is less than zero"
        );
        for (text, answer) in [
            ("c:-7 c:2 div:0:1", Some(Some((-4, -3)))),
            ("c:-7 unsigned:32:0", Some(Some((0xffff_fff9, 0xffff_fff9)))),
            ("c:0 c:0 except:0:1", Some(None)),
            ("c:128 signed:8:0", Some(Some((-128, 127)))),
            ("c:-3 c:5 between:0:1 c:-2 mul:2:3", Some(Some((-10, 6)))),
            // What may be anywhere, and what is computed of that.
            ("c:4 c:4611686018427387904 mul:0:1", None),
            ("c:-1 unsigned:64:0", None),
            ("c:9223372036854775807 c:1 add:0:1 c:5 add:2:3 c:0 sub:4:5", None),
            ("c:-9223372036854775808 c:7 between:0:1 c:1 add:2:3", None),
        ] {
            assert_eq!(reached(text, 0, 1), answer, "{text}");
        }
    }

    #[test]
    fn numbers_of_the_last_launch_are_looked_at() {
        let words = ["p:3:0:4", "g:1", "add:0:1"];
        let mut own = Reaches::read(&words).expect("words");
        assert!(own.add(0, 0, 2) && !own.add(1, 0, 3));
        let last = Last::new();
        for (n, groups, sum) in [(1, 2, 3), (1, 2, 3), (2, 2, 4), (2, 3, 5)] {
            let found = own.of(&last, |_| n, [1, groups, 1]);
            assert_eq!(found[0], Some(Some((sum, sum))));
        }
    }

    #[test]
    fn what_is_not_understood_says_nothing() {
        let read = |text: &str| Reaches::read(&text.split(' ').collect::<Vec<_>>());
        for wrong in [
            "",
            "c",
            "c:x",
            "c:1:2",
            "add:0:0",
            "c:1 add:0:1",
            "c:1 moon:0:0",
            "g:3",
            "p:0:0:3",
            "c:1 signed:65:0",
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
        assert_eq!(read(&["c:1"; MOST_TERMS + 1].join(" ")), None);
        assert_eq!(read(&["p:0:0:4"; MOST_SCALARS + 1].join(" ")), None);
    }
}
