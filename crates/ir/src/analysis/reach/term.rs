//! The terms of the arithmetic, and what they are for a launch.
//!
//! `headstart-driver/src/reach.rs` computes the same for launches of a running program. It is a second evaluator on purpose: that
//! library is preloaded into any program, depends on no crate of the workspace, reads the terms as text, and has nanoseconds for
//! each, so that it counts in 64 bits and says nothing of what is larger. `headstart-cli/tests/capture/facts.rs` holds the two
//! together: programs whose arrays share a pool at random leave the same bytes under the one as the other derived.

/// A step of the arithmetic. Its result is an interval of integers, which may be empty; numbers are those of earlier terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Term {
    /// A number.
    Constant(i64),
    /// The kernel's parameter of this number, an integer, read as signed.
    Scalar(usize),
    /// Work-groups in this dimension.
    Groups(u8),
    /// The sum.
    Add(usize, usize),
    /// The difference.
    Sub(usize, usize),
    /// The product.
    Mul(usize, usize),
    /// The quotient by something positive, rounded up or down.
    Div(usize, usize),
    /// The remainder of something that is not negative by something positive.
    Rem(usize, usize),
    /// Bits of both.
    And(usize, usize),
    /// Bits of either, of numbers that are not negative.
    Or(usize, usize),
    /// The smaller one.
    Min(usize, usize),
    /// The greater one.
    Max(usize, usize),
    /// Either.
    Join(usize, usize),
    /// What is in both.
    Meet(usize, usize),
    /// From the least of the first to the greatest of the second.
    Between(usize, usize),
    /// What of the first is at most the greatest of the second.
    UpTo(usize, usize),
    /// What of the first is at least the least of the second.
    From(usize, usize),
    /// What of the first is not the second, where that is one number and at an end.
    Except(usize, usize),
    /// As a signed number of this many bits: itself where it fits, else any.
    Signed(u32, usize),
    /// A signed number's bits as an unsigned one.
    Unsigned(u32, usize),
}

/// Integers from the first to the second, both included; none where the second is less.
pub type Interval = (i128, i128);

/// The last term's interval for a launch: `scalar` gives parameters, read as signed.
pub fn evaluate(terms: &[Term], scalar: impl Fn(usize) -> i64, groups: [u32; 3]) -> Option<Interval> {
    let mut values: Vec<Interval> = Vec::with_capacity(terms.len());
    for term in terms {
        let value = term.value(&values, &scalar, groups);
        values.push(value);
    }
    values.last().copied()
}

/// Beyond every address and every number of 64 bits.
const FAR: i128 = 1 << 70;
const ANY: Interval = (-FAR, FAR);
const EMPTY: Interval = (1, 0);

impl Term {
    pub(super) fn operands(self) -> Vec<usize> {
        use Term::*;
        match self {
            Constant(_) | Scalar(_) | Groups(_) => Vec::new(),
            Signed(_, a) | Unsigned(_, a) => vec![a],
            Add(a, b)
            | Sub(a, b)
            | Mul(a, b)
            | Div(a, b)
            | Rem(a, b)
            | And(a, b)
            | Or(a, b)
            | Min(a, b)
            | Max(a, b)
            | Join(a, b)
            | Meet(a, b)
            | Between(a, b)
            | UpTo(a, b)
            | From(a, b)
            | Except(a, b) => vec![a, b],
        }
    }

    /// The same of other operands.
    pub fn with(self, of: impl Fn(usize) -> usize) -> Term {
        use Term::*;
        match self {
            Constant(_) | Scalar(_) | Groups(_) => self,
            Signed(bits, a) => Signed(bits, of(a)),
            Unsigned(bits, a) => Unsigned(bits, of(a)),
            Add(a, b) => Add(of(a), of(b)),
            Sub(a, b) => Sub(of(a), of(b)),
            Mul(a, b) => Mul(of(a), of(b)),
            Div(a, b) => Div(of(a), of(b)),
            Rem(a, b) => Rem(of(a), of(b)),
            And(a, b) => And(of(a), of(b)),
            Or(a, b) => Or(of(a), of(b)),
            Min(a, b) => Min(of(a), of(b)),
            Max(a, b) => Max(of(a), of(b)),
            Join(a, b) => Join(of(a), of(b)),
            Meet(a, b) => Meet(of(a), of(b)),
            Between(a, b) => Between(of(a), of(b)),
            UpTo(a, b) => UpTo(of(a), of(b)),
            From(a, b) => From(of(a), of(b)),
            Except(a, b) => Except(of(a), of(b)),
        }
    }

    /// The interval, of those of earlier terms. The preloaded library computes the same (`headstart-driver/src/reach.rs`).
    fn value(self, values: &[Interval], scalar: &impl Fn(usize) -> i64, groups: [u32; 3]) -> Interval {
        let point = |number: i128| (number, number);
        let one = |number: usize| values.get(number).copied().unwrap_or(ANY);
        let full = |bits: u32| (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1);
        match self {
            Term::Constant(number) => return point(i128::from(number)),
            Term::Scalar(parameter) => return point(i128::from(scalar(parameter))),
            Term::Groups(dimension) => return point(i128::from(groups[usize::from(dimension.min(2))])),
            Term::Signed(bits, a) => {
                let ((low, high), full) = (one(a), full(bits));
                return match low > high || low >= full.0 && high <= full.1 {
                    true => (low, high),
                    false => full,
                };
            }
            Term::Unsigned(bits, a) => {
                let ((low, high), whole) = (one(a), 1i128 << bits);
                return match () {
                    () if low > high || low >= 0 && high < whole => (low, high),
                    () if high < 0 && low >= -whole => (low + whole, high + whole),
                    () => (0, whole - 1),
                };
            }
            _ => {}
        }
        let [a, b] = self.operands()[..] else { return ANY };
        let ((a, a_high), (b, b_high)) = (one(a), one(b));
        let (no_a, no_b) = (a > a_high, b > b_high);
        if let Term::Join(..) = self {
            return match (no_a, no_b) {
                (true, _) => (b, b_high),
                (_, true) => (a, a_high),
                _ => (a.min(b), a_high.max(b_high)),
            };
        }
        if no_a || no_b {
            return EMPTY;
        }
        let (low, high) = match self {
            Term::Add(..) => (a + b, a_high + b_high),
            Term::Sub(..) => (a - b_high, a_high - b),
            Term::Mul(..) => {
                // Intervals stay within 2⁷⁰: their products may not be had.
                let all = [(a, b), (a, b_high), (a_high, b), (a_high, b_high)].map(|(a, b)| a.checked_mul(b));
                let [Some(one), Some(two), Some(three), Some(four)] = all else {
                    return ANY;
                };
                (
                    one.min(two).min(three).min(four),
                    one.max(two).max(three).max(four),
                )
            }
            Term::Div(..) if b >= 1 => (
                a.div_euclid(b).min(a.div_euclid(b_high)),
                (a_high / b).max(a_high / b_high),
            ),
            // Numbers that the launch gives are points: what compilers leave over of their iterations is exact.
            Term::And(..) if a == a_high && b == b_high => point(a & b),
            Term::Rem(..) if a == a_high && b == b_high && a >= 0 && b >= 1 => point(a % b),
            Term::Rem(..) if a >= 0 && b >= 1 => (0, a_high.min(b_high - 1)),
            Term::And(..) if a >= 0 && b >= 0 => (0, a_high.min(b_high)),
            Term::And(..) if a >= 0 => (0, a_high),
            Term::And(..) if b >= 0 => (0, b_high),
            Term::Or(..) if a >= 0 && b >= 0 => (0, a_high + b_high),
            Term::Min(..) => (a.min(b), a_high.min(b_high)),
            Term::Max(..) => (a.max(b), a_high.max(b_high)),
            Term::Meet(..) => (a.max(b), a_high.min(b_high)),
            Term::Between(..) => (a, b_high),
            Term::UpTo(..) => (a, a_high.min(b_high)),
            Term::From(..) => (a.max(b), a_high),
            Term::Except(..) if b == b_high => (a + i128::from(a == b), a_high - i128::from(a_high == b)),
            Term::Except(..) => (a, a_high),
            _ => ANY,
        };
        match low >= -FAR && high <= FAR {
            true => (low, high),
            false => ANY,
        }
    }
}
