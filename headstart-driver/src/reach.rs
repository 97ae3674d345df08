//! Which bytes a launch reaches through a pointer, computed with the launch's own numbers.
//!
//! The command has derived the arithmetic from the kernel's code (`crates/ir/src/analysis/reach.rs` says what each term means):
//! terms on intervals, each of earlier ones, written as words with colons.
//!
//! ```text
//! reach  2 0  c:0  g:0  c:128  mul:1:2  p:3:0:4  min:3:4  …    parameter 2: terms 0, 1, 2, …, of which the last is the answer
//! ```
//!
//! Each term takes a few nanoseconds, and nothing is allocated.

/// Terms of one pointer at most.
const MOST_TERMS: usize = 128;
/// Beyond every address and every number of 64 bits.
const FAR: i128 = 1 << 70;
/// What is reached lies within so many bytes of the pointer, or is not known.
const NEAR: i128 = 1 << 62;

/// Integers from the first to the second, both included; none where the second is less.
type Interval = (i128, i128);
const ANY: Interval = (-FAR, FAR);
const EMPTY: Interval = (1, 0);

/// A number that a launch gives as a parameter: so many bytes, read as signed.
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
    Of(Kind, usize, usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
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

/// The arithmetic for one pointer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reach {
    terms: Vec<Term>,
}

impl Reach {
    /// Reads words; none if one is not understood.
    pub fn read(words: &[&str]) -> Option<Reach> {
        let mut terms = Vec::new();
        for (number, word) in words.iter().enumerate() {
            let term = term(word)?;
            let (a, b) = match term {
                Term::Signed(_, a) | Term::Unsigned(_, a) => (a, a),
                Term::Of(_, a, b) => (a, b),
                _ => (0, 0),
            };
            let is_leaf = matches!(term, Term::Constant(_) | Term::Scalar(_) | Term::Groups(_));
            if !is_leaf && (a >= number || b >= number) {
                return None;
            }
            terms.push(term);
        }
        (!terms.is_empty() && terms.len() <= MOST_TERMS).then_some(Reach { terms })
    }

    /// The numbers that it needs.
    pub fn scalars(&self) -> impl Iterator<Item = Scalar> + '_ {
        self.terms.iter().filter_map(|term| match term {
            Term::Scalar(scalar) => Some(*scalar),
            _ => None,
        })
    }

    /// The bytes that a launch reaches, counted from the pointer: none at all, or the first and the last. `word` gives a
    /// parameter's bytes. Nothing where they may be anywhere.
    pub fn of(&self, word: impl Fn(Scalar) -> u64, groups: [u32; 3]) -> Option<Option<Interval>> {
        let mut values = [EMPTY; MOST_TERMS];
        for (number, term) in self.terms.iter().enumerate() {
            values[number] = term.value(&values, &word, groups);
        }
        let (low, high) = values[self.terms.len() - 1];
        match () {
            () if low > high => Some(None),
            () if low > -NEAR && high < NEAR => Some(Some((low, high))),
            () => None,
        }
    }
}

/// Whether two pointers reach no byte both, by what [`Reach::of`] says of each.
pub fn are_apart(one: (u64, Option<Interval>), other: (u64, Option<Interval>)) -> bool {
    let at = |(address, bytes): (u64, Option<Interval>)| {
        bytes.map(|(low, high)| (i128::from(address) + low, i128::from(address) + high))
    };
    match (at(one), at(other)) {
        (Some(one), Some(other)) => one.1 < other.0 || other.1 < one.0,
        _ => true,
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
    let kind = match kind {
        "add" => Kind::Add,
        "sub" => Kind::Sub,
        "mul" => Kind::Mul,
        "div" => Kind::Div,
        "rem" => Kind::Rem,
        "and" => Kind::And,
        "or" => Kind::Or,
        "min" => Kind::Min,
        "max" => Kind::Max,
        "join" => Kind::Join,
        "meet" => Kind::Meet,
        "between" => Kind::Between,
        "upto" => Kind::UpTo,
        "from" => Kind::From,
        "except" => Kind::Except,
        _ => return None,
    };
    Some(Term::Of(kind, number(a)?, number(b)?))
}

impl Term {
    fn value(self, values: &[Interval], word: &impl Fn(Scalar) -> u64, groups: [u32; 3]) -> Interval {
        let point = |number: i128| (number, number);
        match self {
            Term::Constant(number) => point(i128::from(number)),
            Term::Scalar(scalar) => {
                let unused = 64 - 8 * scalar.bytes as u32;
                point(i128::from(((word(scalar) << unused) as i64) >> unused))
            }
            Term::Groups(dimension) => point(i128::from(groups[dimension])),
            Term::Signed(bits, a) => {
                let (low, high) = values[a];
                let end = 1i128 << (bits - 1);
                match low > high || low >= -end && high < end {
                    true => (low, high),
                    false => (-end, end - 1),
                }
            }
            Term::Unsigned(bits, a) => {
                let ((low, high), whole) = (values[a], 1i128 << bits);
                match () {
                    () if low > high || low >= 0 && high < whole => (low, high),
                    () if high < 0 && low >= -whole => (low + whole, high + whole),
                    () => (0, whole - 1),
                }
            }
            Term::Of(kind, a, b) => of_two(kind, values[a], values[b]),
        }
    }
}

fn of_two(kind: Kind, (a, a_high): Interval, (b, b_high): Interval) -> Interval {
    let (no_a, no_b) = (a > a_high, b > b_high);
    if kind == Kind::Join {
        return match (no_a, no_b) {
            (true, _) => (b, b_high),
            (_, true) => (a, a_high),
            _ => (a.min(b), a_high.max(b_high)),
        };
    }
    if no_a || no_b {
        return EMPTY;
    }
    let (low, high) = match kind {
        Kind::Add => (a + b, a_high + b_high),
        Kind::Sub => (a - b_high, a_high - b),
        Kind::Mul => {
            let all = [(a, b), (a, b_high), (a_high, b), (a_high, b_high)].map(|(a, b)| a.checked_mul(b));
            let [Some(one), Some(two), Some(three), Some(four)] = all else {
                return ANY;
            };
            (
                one.min(two).min(three).min(four),
                one.max(two).max(three).max(four),
            )
        }
        // Divisions of 128 bits are slow.
        Kind::Div if b >= 1 => match [a, a_high, b, b_high].map(i64::try_from) {
            [Ok(a), Ok(a_high), Ok(b), Ok(b_high)] => (
                a.div_euclid(b).min(a.div_euclid(b_high)).into(),
                (a_high / b).max(a_high / b_high).into(),
            ),
            _ => (
                a.div_euclid(b).min(a.div_euclid(b_high)),
                (a_high / b).max(a_high / b_high),
            ),
        },
        Kind::And if a == a_high && b == b_high => (a & b, a & b),
        Kind::Rem if a == a_high && b == b_high && a >= 0 && b >= 1 => (a % b, a % b),
        Kind::Rem if a >= 0 && b >= 1 => (0, a_high.min(b_high - 1)),
        Kind::And if a >= 0 && b >= 0 => (0, a_high.min(b_high)),
        Kind::And if a >= 0 => (0, a_high),
        Kind::And if b >= 0 => (0, b_high),
        Kind::Or if a >= 0 && b >= 0 => (0, a_high + b_high),
        Kind::Min => (a.min(b), a_high.min(b_high)),
        Kind::Max => (a.max(b), a_high.max(b_high)),
        Kind::Meet => (a.max(b), a_high.min(b_high)),
        Kind::Between => (a, b_high),
        Kind::UpTo => (a, a_high.min(b_high)),
        Kind::From => (a.max(b), a_high),
        Kind::Except if b == b_high => (a + i128::from(a == b), a_high - i128::from(a_high == b)),
        Kind::Except => (a, a_high),
        _ => ANY,
    };
    match low >= -FAR && high <= FAR {
        true => (low, high),
        false => ANY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reach(text: &str) -> Option<Reach> {
        Reach::read(&text.split(' ').collect::<Vec<_>>())
    }

    #[test]
    fn terms_are_computed_for_a_launch() {
        // min(groups × 128, n) elements of 4 bytes.
        let own = reach("g:0 c:128 mul:0:1 p:3:0:4 min:2:3 c:4 mul:4:5 c:1 sub:6:7 c:0 between:9:8")
            .expect("words");
        let scalar = Scalar {
            index: 3,
            inside: 0,
            bytes: 4,
        };
        assert_eq!(own.scalars().collect::<Vec<_>>(), [scalar]);
        let of = |n: u64, groups: u32| own.of(|_| n, [groups, 1, 1]);
        assert_eq!(of(100, 3), Some(Some((0, 399))));
        assert_eq!(of(1000, 3), Some(Some((0, 128 * 3 * 4 - 1))));
        assert_eq!(of(0, 3), Some(None), "nothing is reached");
        assert_eq!(
            of(0xffff_fff0, 3),
            Some(None),
            "as a signed number it is less than zero"
        );
        let wraps = reach("p:0:0:8 c:4611686018427387904 mul:0:1").expect("words");
        assert_eq!(wraps.of(|_| 4, [1; 3]), None, "it may be anywhere");
        assert_eq!(
            reach("c:-7 c:2 div:0:1").expect("words").of(|_| 0, [1; 3]),
            Some(Some((-4, -3)))
        );
        assert_eq!(
            reach("c:-7 unsigned:32:0").expect("words").of(|_| 0, [1; 3]),
            Some(Some((0xffff_fff9, 0xffff_fff9)))
        );
        assert_eq!(
            reach("c:0 c:0 except:0:1").expect("words").of(|_| 0, [1; 3]),
            Some(None)
        );
        assert_eq!(
            reach("c:128 signed:8:0").expect("words").of(|_| 0, [1; 3]),
            Some(Some((-128, 127)))
        );
    }

    #[test]
    fn what_is_not_understood_says_nothing() {
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
            assert_eq!(reach(wrong), None, "{wrong}");
        }
        assert_eq!(reach(&["c:1"; MOST_TERMS + 1].join(" ")), None);
    }

    #[test]
    fn bytes_that_meet_are_not_apart() {
        let at = |address: u64, last: i128| (address, Some((0, last)));
        assert!(are_apart(at(0x1000, 0xff), at(0x1100, 0xff)));
        assert!(!are_apart(at(0x1000, 0x100), at(0x1100, 0xff)));
        assert!(!are_apart(at(0x1180, 3), at(0x1100, 0xff)));
        assert!(are_apart((0x1000, None), at(0x1000, 0xff)));
    }
}
