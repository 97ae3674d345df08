//! Which bytes a launch can reach through each pointer parameter, as arithmetic on its scalars and its grid.
//!
//! ```text
//! i = group.x × 128 + local.x; if i < n { out[i] = … }     out: 0 … 4 × min(groups.x × 128, n) − 1
//! ```
//!
//! Two tensors in one allocation are disjoint where these bytes are. The arithmetic is on intervals and has no branches: a few
//! dozen [terms](Term), each made of earlier ones, which the launching side computes with the launch's own numbers. An index
//! that is loaded is as wide as its type, so that such a parameter reaches everything.

mod term;
mod values;

use std::collections::{BTreeMap, HashMap};

use super::definitions::Definitions;
use super::loops::summarize;
use super::roots::{Root, root};
use super::summary::{CountedExit, LoopSummary, Relation, Step};
use crate::ir::effects::Memory;
use crate::ir::{BinaryOp, CompareOp, Kernel, Label, Op, OpKind, Region, UnaryOp, Value};

pub use term::{Interval, Term, evaluate};

/// Values looked at before nothing is known: kernels with more have thousands of accesses.
const VISITS: u32 = 40_000;
/// Terms that what is reached through one parameter may take.
const MOST_TERMS: usize = 128;

/// What a launch can reach through a parameter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    /// Something is read through it.
    pub reads: bool,
    /// Something is written through it.
    pub writes: bool,
    /// The bytes, counted from where the parameter points: the last term's interval. None where they are too hard to say, or
    /// nothing is accessed.
    pub terms: Vec<Term>,
}

/// What is reached through each parameter of a kernel that is launched with work-groups of this size; nothing if a pointer is
/// followed whose target is not known, or if the kernel is too large.
pub fn reaches(kernel: &Kernel, definitions: &Definitions, group: [u32; 3]) -> Option<Vec<Reach>> {
    let mut walk = Walk {
        kernel,
        definitions,
        group,
        terms: Vec::new(),
        numbers: HashMap::new(),
        known: Vec::new(),
        carried: HashMap::new(),
        seen: HashMap::new(),
        visits: VISITS,
        depth: 0,
        found: vec![(Reach::default(), None); kernel.params.len()],
    };
    walk.region(&kernel.body, None)?;
    let found = std::mem::take(&mut walk.found);
    let mut whole = |(reach, first): (Reach, Option<(usize, i64)>)| {
        let last = first.map(|(first, bytes)| {
            let more = walk.constant(bytes - 1);
            let last = walk.term(Term::Add(first, more));
            walk.term(Term::Between(first, last))
        });
        let terms = last.and_then(|last| needed(&walk.terms, last));
        Reach {
            terms: terms.unwrap_or_default(),
            ..reach
        }
    };
    Some(found.into_iter().map(&mut whole).collect())
}

/// The terms that one is made of, it last; none if there are too many.
fn needed(terms: &[Term], last: usize) -> Option<Vec<Term>> {
    let mut wanted = BTreeMap::new();
    let mut work = vec![last];
    while let Some(number) = work.pop() {
        if wanted.insert(number, 0).is_none() {
            work.extend(terms[number].operands());
        }
        if wanted.len() > MOST_TERMS {
            return None;
        }
    }
    for (place, number) in wanted.values_mut().enumerate() {
        *number = place;
    }
    Some(
        wanted
            .keys()
            .map(|&number| terms[number].with(|own| wanted[&own]))
            .collect(),
    )
}

/// What is known behind a loop's counting test: its position in the body, the side of it that goes on, and the parameters.
struct Behind {
    position: usize,
    goes_on: bool,
    params: Vec<(Value, usize)>,
}

struct Walk<'k> {
    kernel: &'k Kernel,
    definitions: &'k Definitions,
    group: [u32; 3],
    terms: Vec<Term>,
    numbers: HashMap<Term, usize>,
    /// What the conditions around say of values, the latest last.
    known: Vec<(Value, usize)>,
    /// Parameters of the loops around and before.
    carried: HashMap<Value, usize>,
    /// Terms of values under what is known now.
    seen: HashMap<Value, usize>,
    visits: u32,
    depth: u32,
    /// With the distances of all accesses, and the bytes of the widest one.
    found: Vec<(Reach, Option<(usize, i64)>)>,
}

impl Walk<'_> {
    fn term(&mut self, term: Term) -> usize {
        let number = |own: usize| match self.terms[own] {
            Term::Constant(number) => Some(number),
            _ => None,
        };
        // Compilers have done the rest.
        match term {
            Term::Add(a, b) if number(b) == Some(0) => return a,
            Term::Add(a, b) if number(a) == Some(0) => return b,
            Term::Sub(a, b) if number(b) == Some(0) => return a,
            Term::Mul(a, b) | Term::Div(a, b) if number(b) == Some(1) => return a,
            Term::Join(a, b) | Term::Meet(a, b) if a == b => return a,
            _ => {}
        }
        if let Some(&number) = self.numbers.get(&term) {
            return number;
        }
        self.terms.push(term);
        self.numbers.insert(term, self.terms.len() - 1);
        self.terms.len() - 1
    }

    fn constant(&mut self, number: i64) -> usize {
        self.term(Term::Constant(number))
    }

    /// Everything that a signed number of this many bits may be.
    fn any(&mut self, bits: u32) -> usize {
        let bits = bits.clamp(1, 64);
        let (low, high) = (
            self.constant(i64::MIN >> (64 - bits)),
            self.constant(i64::MAX >> (64 - bits)),
        );
        self.term(Term::Between(low, high))
    }

    /// From zero to one less than a number.
    fn below(&mut self, number: usize) -> usize {
        let (zero, one) = (self.constant(0), self.constant(1));
        let last = self.term(Term::Sub(number, one));
        self.term(Term::Between(zero, last))
    }

    fn know(&mut self, value: Value, number: usize) {
        self.known.push((value, number));
        self.seen.clear();
    }

    fn forget(&mut self, length: usize) {
        if self.known.len() > length {
            self.known.truncate(length);
            self.seen.clear();
        }
    }

    fn region(&mut self, region: &Region, behind: Option<&Behind>) -> Option<()> {
        let before = self.known.len();
        for (position, op) in region.ops.iter().enumerate() {
            let here = behind.filter(|behind| behind.position == position);
            self.op(op, here)?;
            if let Some(behind) = here {
                self.count(behind);
            }
        }
        self.forget(before);
        Some(())
    }

    /// Behind the counting test its loop's parameters have not taken their last step.
    fn count(&mut self, behind: &Behind) {
        for &(param, number) in &behind.params {
            let now = self.value(param);
            let both = self.term(Term::Meet(now, number));
            self.know(param, both);
        }
    }

    fn op(&mut self, op: &Op, behind: Option<&Behind>) -> Option<()> {
        let bytes = |values: &[Value]| {
            values
                .iter()
                .map(|&value| i64::from(self.kernel.ty(value).bytes()))
                .sum()
        };
        match &op.kind {
            OpKind::Load { ptr, .. } => self.access(*ptr, bytes(&op.results), false),
            OpKind::Store { ptr, values, .. } => self.access(*ptr, bytes(values), true),
            OpKind::Atomic {
                op: own, ptr, values, ..
            } => {
                let size = bytes(values).max(bytes(&op.results));
                self.access(*ptr, size, own.writes())
            }
            OpKind::Copy { from, bytes, .. } => self.access(*from, i64::from(*bytes), false),
            kind if kind.effects().reads == Memory::Any => None,
            OpKind::If {
                label,
                cond,
                then,
                otherwise,
            } => {
                let before = self.known.len();
                for (side, holds) in [(then, true), (otherwise, false)] {
                    self.assume(*cond, holds);
                    if let Some(behind) = behind.filter(|behind| behind.goes_on == holds) {
                        self.count(behind);
                    }
                    self.region(side, None)?;
                    self.forget(before);
                }
                match (arrives(then, *label), arrives(otherwise, *label)) {
                    (false, true) => self.assume(*cond, false),
                    (true, false) => self.assume(*cond, true),
                    _ => {}
                }
                Some(())
            }
            OpKind::Block { body, .. } => self.region(body, None),
            OpKind::Loop { body, initial, .. } => {
                let summary = summarize(self.kernel, self.definitions, op);
                let behind = self.carry(&summary, initial);
                self.region(body, behind.as_ref())
            }
            _ => Some(()),
        }
    }

    /// Notes an access of this many bytes.
    fn access(&mut self, pointer: Value, bytes: i64, is_write: bool) -> Option<()> {
        let Root::Param(number) = root(self.kernel, self.definitions, pointer)? else {
            return Some(());
        };
        let own = self.value(pointer);
        let all = match self.found[number].1 {
            Some((others, widest)) => (self.term(Term::Join(others, own)), widest.max(bytes)),
            None => (own, bytes.max(1)),
        };
        let (reach, first) = &mut self.found[number];
        *first = Some(all);
        reach.writes |= is_write;
        reach.reads |= !is_write;
        (self.visits > 0).then_some(())
    }

    /// A condition holds, or does not.
    fn assume(&mut self, cond: Value, holds: bool) {
        let definitions = self.definitions;
        match definitions.op(cond) {
            Some(&OpKind::Unary(UnaryOp::Not, inner)) => self.assume(inner, !holds),
            Some(&OpKind::Binary(BinaryOp::And, a, b)) if holds => {
                self.assume(a, true);
                self.assume(b, true);
            }
            Some(&OpKind::Binary(BinaryOp::Or, a, b)) if !holds => {
                self.assume(a, false);
                self.assume(b, false);
            }
            Some(&OpKind::Compare(op, a, b)) if self.kernel.ty(a).is_integer() => {
                self.compare(op, a, b, holds)
            }
            _ => {}
        }
    }

    fn compare(&mut self, op: CompareOp, a: Value, b: Value, holds: bool) {
        let bits = self.kernel.ty(a).bits();
        let (is_unsigned, is_strict) = match op {
            CompareOp::LtS => (false, true),
            CompareOp::LeS => (false, false),
            CompareOp::LtU => (true, true),
            CompareOp::LeU => (true, false),
            CompareOp::Eq | CompareOp::Ne if holds == (op == CompareOp::Eq) => {
                let (one, other) = (self.value(a), self.value(b));
                let both = self.term(Term::Meet(one, other));
                self.know(a, both);
                return self.know(b, both);
            }
            CompareOp::Eq | CompareOp::Ne => {
                for (value, other) in [(a, b), (b, a)] {
                    let (one, other) = (self.value(value), self.value(other));
                    let others = self.term(Term::Except(one, other));
                    self.know(value, others);
                }
                return;
            }
            _ => return,
        };
        // What does not hold, holds the other way round: a < b, or b ≤ a.
        let (less, more, is_strict) = match holds {
            true => (a, b, is_strict),
            false => (b, a, !is_strict),
        };
        let read = |walk: &mut Self, value: Value| {
            let own = walk.value(value);
            match is_unsigned {
                true => walk.term(Term::Unsigned(bits, own)),
                false => own,
            }
        };
        let (low, high) = (read(self, less), read(self, more));
        let distance = self.constant(i64::from(is_strict));
        let (greatest, least) = (
            self.term(Term::Sub(high, distance)),
            self.term(Term::Add(low, distance)),
        );
        for (value, bounded) in [
            (less, self.term(Term::UpTo(low, greatest))),
            (more, self.term(Term::From(high, least))),
        ] {
            if self.kernel.as_constant(value).is_none() {
                let signed = self.term(Term::Signed(bits, bounded));
                self.know(value, signed);
            }
        }
    }

    /// Notes what a loop's parameters may be in any iteration; what is known behind its counting test.
    fn carry(&mut self, summary: &LoopSummary, initial: &[Value]) -> Option<Behind> {
        let exit = summary.exit.as_ref().ok();
        let steps = exit.and_then(|exit| self.steps_taken(summary, initial, exit));
        let mut params = Vec::new();
        for (index, &param) in summary.params.iter().enumerate() {
            let start = self.value(initial[index]);
            let ty = self.kernel.ty(param);
            let bits = if ty.is_pointer() { 64 } else { ty.bits() };
            let step = match summary.steps[index] {
                Step::Invariant => {
                    self.carried.insert(param, start);
                    continue;
                }
                Step::Constant(step) => Some(self.constant(step)),
                Step::Value { value, scale } => {
                    let (one, scale) = (self.value(value), self.constant(scale));
                    Some(self.term(Term::Mul(one, scale)))
                }
                Step::Derived(_) | Step::Carried => None,
            };
            let (Some(step), Some(steps)) = (step, steps) else {
                let any = self.any(bits);
                self.carried.insert(param, any);
                continue;
            };
            let after = |walk: &mut Self, steps: usize| {
                let way = walk.term(Term::Mul(steps, step));
                let sum = walk.term(Term::Add(start, way));
                if ty.is_pointer() {
                    sum
                } else {
                    walk.term(Term::Signed(bits, sum))
                }
            };
            let (zero, one) = (self.constant(0), self.constant(1));
            let all = self.term(Term::Between(zero, steps));
            let in_any = after(self, all);
            self.carried.insert(param, in_any);
            let fewer = self.term(Term::Sub(steps, one));
            let but_last = self.term(Term::Between(zero, fewer));
            params.push((param, after(self, but_last)));
        }
        self.seen.clear();
        let exit = exit.filter(|exit| exit.steps_ahead == 0)?;
        Some(Behind {
            position: exit.position,
            goes_on: exit.continues_on,
            params,
        })
    }

    /// How many steps a loop's parameters take at most.
    fn steps_taken(&mut self, summary: &LoopSummary, initial: &[Value], exit: &CountedExit) -> Option<usize> {
        let (param, bound) = (summary.params[exit.param], exit.bound);
        let ty = self.kernel.ty(param);
        if self.kernel.ty(bound) != ty {
            return None;
        }
        if ty.is_pointer() {
            let of = |value| root(self.kernel, self.definitions, value);
            let (Some(one), Some(other)) = (of(param), of(bound)) else {
                return None;
            };
            if one != other {
                return None;
            }
        }
        let (step, is_down) = match summary.steps[exit.param] {
            Step::Constant(step) if step != 0 => (self.constant(step.checked_abs()?), step < 0),
            Step::Value { value, scale } if scale > 0 => {
                let (one, scale) = (self.value(value), self.constant(scale));
                (self.term(Term::Mul(one, scale)), false)
            }
            _ => return None,
        };
        let mut start = self.value(initial[exit.param]);
        let mut end = self.value(bound);
        let bits = ty.bits();
        if exit.steps_ahead != 0 {
            // The sum is what is tested: where it wraps, anything is.
            start = match is_down {
                true => self.term(Term::Sub(start, step)),
                false => self.term(Term::Add(start, step)),
            };
            if !ty.is_pointer() {
                start = self.term(Term::Signed(bits, start));
            }
        }
        let (is_unsigned, or_equal) = match exit.relation {
            Relation::Less { signed, or_equal } | Relation::Greater { signed, or_equal } => {
                (!signed, or_equal)
            }
            Relation::NotEqual => (false, false),
        };
        if is_unsigned && !ty.is_pointer() {
            start = self.term(Term::Unsigned(bits, start));
            end = self.term(Term::Unsigned(bits, end));
        }
        let way = match is_down {
            true => self.term(Term::Sub(start, end)),
            false => self.term(Term::Sub(end, start)),
        };
        let way = match exit.relation {
            // One that is past its bound goes all the way round.
            Relation::NotEqual => self.term(Term::Unsigned(64, way)),
            _ => {
                let more = self.constant(i64::from(or_equal) - 1);
                let last = self.term(Term::Add(way, more));
                self.term(Term::Add(last, step))
            }
        };
        let (zero, steps) = (self.constant(0), self.term(Term::Div(way, step)));
        Some(self.term(Term::Max(zero, steps)))
    }
}

/// Whether control may leave a side of an `if` for what follows it.
fn arrives(side: &Region, own: Label) -> bool {
    let mut found = false;
    side.walk(&mut |op| found |= matches!(op.kind, OpKind::Break(label, _) if label == own));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is reached through each parameter by work-groups of 64, with a scalar `%n` and these work-groups.
    fn reached(params: &str, ops: &str, scalars: &[i64], groups: [u32; 3]) -> Vec<Option<Interval>> {
        let text = format!("hsir 1\nkernel @k({params}) {{\n  load @p\n{ops}  return\n}}\n");
        let kernel = crate::ir::parse(&text, "k.hsir").unwrap_or_else(|error| panic!("{error}"));
        let reaches =
            reaches(&kernel, &Definitions::of(&kernel), [64, 1, 1]).expect("pointers lead somewhere");
        let of = |reach: &Reach| evaluate(&reach.terms, |number| scalars[number], groups);
        reaches.iter().map(of).collect()
    }

    const TWO: &str = "%p: ptr.global i32[] align 4, %n: i32";
    /// The number of the work-item, `%i`.
    const ITEM: &str = "  %g = id.group.x\n  %s = id.group_size.x\n  %l = id.local.x\n  %b = mul %g, %s\n  %i = add %b, %l\n";

    #[test]
    fn a_guard_says_how_far() {
        let at = "  %j = extend.s %i to i64\n  %at = address %p + %j * 4\n  store %at, 0:i32\n";
        let plain = format!("{ITEM}{at}");
        assert_eq!(
            reached(TWO, &plain, &[0, 7], [3, 1, 1])[0],
            Some((0, 3 * 64 * 4 - 1))
        );
        let body = at.replace("  ", "    ");
        let guarded =
            format!("{ITEM}  %c = lt.s %i, %n\n  if %c {{\n{body}    yield\n  }} else {{ yield }}\n");
        for (n, last) in [(100, 399), (1, 3), (5000, 767)] {
            assert_eq!(
                reached(TWO, &guarded, &[0, n], [3, 1, 1])[0],
                Some((0, last)),
                "{n}"
            );
        }
        // Unreachable.
        let (low, high) = reached(TWO, &guarded, &[0, 0], [3, 1, 1])[0].expect("an interval");
        assert!(low > high);
        // The rest of the kernel is for those that did not leave.
        let left = format!("{ITEM}  %c = le.u %n, %i\n  if %c {{ return }} else {{ yield }}\n{at}");
        assert_eq!(reached(TWO, &left, &[0, 100], [3, 1, 1])[0], Some((0, 399)));
    }

    #[test]
    fn loops_go_as_far_as_they_count() {
        let counted = |test: &str, at: &str| {
            format!(
                "  loop 'l (%i = 0:i32, %q = %p) {{\n    %c = lt.s %i, %n\n    {test}\n    %j = extend.s %i to i64\n    {at}\n    \
                 store %at, 1:i32\n    %i1 = add.nsw %i, 1:i32\n    %q1 = address %q + 0:i64 * 1 + 8\n    continue 'l %i1, %q1\n  }}\n"
            )
        };
        let test = "if %c { yield } else { break 'l }";
        let by_index = counted(test, "%at = address %p + %j * 4 + 400");
        let by_pointer = counted(test, "%at = address %q + 0:i64 * 1 + 0");
        for (n, index, pointer) in [(10, (400, 439), (0, 75)), (1, (400, 403), (0, 3))] {
            assert_eq!(reached(TWO, &by_index, &[0, n], [1; 3])[0], Some(index), "{n}");
            assert_eq!(
                reached(TWO, &by_pointer, &[0, n], [1; 3])[0],
                Some(pointer),
                "{n}"
            );
        }
        let (low, high) = reached(TWO, &by_pointer, &[0, 0], [1; 3])[0].expect("an interval");
        assert!(low > high, "no iteration");
        // Its end is tested behind its body, and before the loop whether there is an iteration at all.
        let behind = "  %some = ne %n, 0:i32\n  if %some {\n    loop 'l (%i = %n, %q = %p) {\n      store %q, 1:i32\n      \
            %q1 = address %q + 0:i64 * 1 + 8\n      %i1 = add %i, -1:i32\n      %c = ne %i1, 0:i32\n      \
            if %c { yield } else { break 'l }\n      continue 'l %i1, %q1\n    }\n    yield\n  } else { yield }\n";
        assert_eq!(reached(TWO, behind, &[0, 10], [1; 3])[0], Some((0, 75)));
        let (low, high) = reached(TWO, behind, &[0, 0], [1; 3])[0].expect("an interval");
        assert!(low > high, "no iteration");
        // Nothing is known of where this one ends.
        let endless = by_pointer.replace("lt.s %i, %n", "lt.s %n, 3:i32");
        let (low, high) = reached(TWO, &endless, &[0, 5], [1; 3])[0].expect("an interval");
        assert!(low <= i128::from(i64::MIN) && high >= i128::from(i64::MAX));
    }

    #[test]
    fn an_index_that_is_loaded_may_be_anything() {
        let ops = "  %j = load i32 %p, @p\n  %k = extend.s %j to i64\n  %at = address %q + %k * 4\n  store %at, 0:i32\n";
        let params = "%p: ptr.global i32[] align 4, %q: ptr.global i32[] align 4";
        let found = reached(params, ops, &[0, 0], [1; 3]);
        assert_eq!(found[0], Some((0, 3)));
        assert_eq!(found[1], Some((-(1 << 33), (1 << 33) - 1)));
    }

    #[test]
    fn arithmetic_that_wraps_reaches_everything() {
        let ops = format!(
            "{ITEM}  %m = mul %i, %n\n  %j = extend.s %m to i64\n  %at = address %p + %j * 4\n  store %at, 0:i32\n"
        );
        assert_eq!(
            reached(TWO, &ops, &[0, 1000], [1; 3])[0],
            Some((0, 63 * 4000 + 3))
        );
        assert_eq!(reached(TWO, &ops, &[0, -10], [1; 3])[0], Some((-2520, 3)));
        assert_eq!(
            reached(TWO, &ops, &[0, 1 << 30], [1; 3])[0],
            Some((-(1 << 33), (1 << 33) - 1))
        );
        let parts = "  %d = div.u %n, 3:i32\n  %r = rem.u %n, 5:i32\n  %s = shr.s %n, 2:i32\n  %o = or %d, %r\n  %x = and %o, 60:i32\n  \
                     %y = add %x, %s\n  %j = extend.s %y to i64\n  %at = address %p + %j * 1\n  store %at, 0:i32\n";
        // 13 or less, behind 10.
        assert_eq!(reached(TWO, parts, &[0, 40], [1; 3])[0], Some((10, 10 + 13 + 3)));
    }
}
