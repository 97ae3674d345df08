//! The test that counts a loop's iterations, and the proof that its counter does not wrap past the bound.

use std::collections::HashMap;

use super::definitions::Definitions;
use super::ends;
use super::jumps::{jumps_out, leaves, may_continue};
use super::multiples::low_zeros;
use super::ranges::range;
use super::steps::step_of;
use super::summary::{CountedExit, Inside, Relation, Step, UnlessWraps};
use crate::ir::{
    BinaryOp, CompareOp, ConvertOp, Kernel, Label, NoWrapOp, Op, OpKind, Region, Type, UnaryOp, Value, Wrap,
    eval,
};

/// Most times that a step is added in an iteration: more copies than compilers make, few enough for sums in 64 bits.
const MOST_TIMES: i64 = 256;

/// A parameter, how it compares with which bound, and how many steps ahead.
type ExitComparison = (usize, Relation, Value, i64);

/// Why a condition does not count.
enum Refused {
    /// It compares no counter.
    NoCount,
    /// It compares one that need not meet its bound.
    Because(String),
    /// It would count if its counter did not wrap.
    Wraps(&'static str, ExitComparison),
}

/// Looks for the test that counts.
pub(super) struct Tests<'a, F> {
    pub kernel: &'a Kernel,
    pub label: Label,
    pub definitions: &'a Definitions,
    pub params: &'a [Value],
    pub initial: &'a [Value],
    pub steps: &'a [Step],
    pub inside: &'a HashMap<Value, Inside>,
    pub outside: &'a F,
    pub continues: &'a [Vec<Value>],
    pub body: &'a Region,
}

impl<F: Fn(Value) -> bool> Tests<'_, F> {
    /// The test that ends the loop, or why none counts, with the test that would count if its counter did not wrap.
    pub(crate) fn find(&self) -> Result<CountedExit, (String, Option<UnlessWraps>)> {
        let label = self.label;
        let mut reason = None;
        let mut unless_wraps = None;
        let mut leading = true;
        let mut skipped = false;
        for (position, op) in self.body.ops.iter().enumerate() {
            if let OpKind::If {
                label: own,
                cond,
                then,
                otherwise,
            } = &op.kind
            {
                let then_leaves = leaves(then, *own, label);
                let otherwise_leaves = leaves(otherwise, *own, label);
                if then_leaves != otherwise_leaves {
                    let exit = |(param, relation, bound, steps_ahead): ExitComparison| CountedExit {
                        param,
                        relation,
                        bound,
                        steps_ahead,
                        position,
                        continues_on: otherwise_leaves,
                        leading,
                        first_step_fits: self.first_step_fits(param, relation),
                    };
                    match self.test(*cond, otherwise_leaves) {
                        Ok(_) | Err(Refused::Wraps(..)) if skipped => {
                            let why = "an iteration may go on to the next before its counting test";
                            reason = Some(why.to_owned());
                        }
                        Ok(found) => return Ok(exit(found)),
                        Err(Refused::Because(why)) => reason = Some(why),
                        Err(Refused::Wraps(why, found)) => {
                            reason = Some(why.to_owned());
                            unless_wraps = unless_wraps.or_else(|| self.unless_wraps(exit(found)));
                        }
                        Err(Refused::NoCount) => {}
                    }
                }
            }
            skipped |= may_continue(op, label);
            leading &= op.kind.is_pure();
        }
        let reason = reason.unwrap_or_else(|| {
            ends::by_data(self.kernel, self.definitions, self.params, self.inside, self.body)
        });
        Err((reason, unless_wraps))
    }

    /// The test, with the sums that must not wrap for it to count.
    fn unless_wraps(&self, exit: CountedExit) -> Option<UnlessWraps> {
        let param = self.params[exit.param];
        let ty = self.kernel.ty(param);
        let (signed, upwards) = match (exit.relation, self.steps[exit.param]) {
            (Relation::Less { signed, .. }, _) => (signed, true),
            (Relation::Greater { signed, .. }, _) => (signed, false),
            (Relation::NotEqual, Step::Constant(step)) => (true, step > 0),
            (Relation::NotEqual, _) => return None,
        };
        // Downwards only where a signed number goes: an unsigned one grows to go down.
        if !ty.is_integer() || self.kernel.ty(exit.bound) != ty || !(upwards || signed) {
            return None;
        }
        let leads = |value: Value| match (self.kernel.as_constant(value), self.steps[exit.param]) {
            (Some(bits), Step::Constant(_)) => (eval::signed(ty, bits) > 0) == upwards,
            (None, Step::Value { value: step, .. }) => upwards && step == value,
            _ => false,
        };
        let mut sums = Vec::new();
        for args in self.continues {
            let mut at = args[exit.param];
            while at != param {
                if sums.len() >= MOST_TIMES as usize {
                    return None;
                }
                let (OpKind::Binary(BinaryOp::Add, a, b) | OpKind::NoWrap(NoWrapOp::Add, _, a, b)) =
                    self.inside.get(&at)?.kind
                else {
                    return None;
                };
                sums.push(at);
                let (on, summand) = if leads(b) { (a, b) } else { (b, a) };
                if !leads(summand) {
                    return None;
                }
                at = on;
            }
        }
        sums.sort();
        sums.dedup();
        // An addition before the test adds to what has passed no test yet.
        let makes_sum = |op: &Op| op.results.iter().any(|result| sums.contains(result));
        let mut adds_first = false;
        for op in self.body.ops.iter().take(exit.position) {
            adds_first |= makes_sum(op);
            op.kind
                .regions()
                .for_each(|inner| inner.walk(&mut |op| adds_first |= makes_sum(op)));
        }
        Some(UnlessWraps {
            exit,
            sums,
            adds_first,
        })
    }

    /// Reads a condition as `param + steps × step relation bound`; `positive` if the loop goes on where
    /// it is true.
    fn test(&self, cond: Value, positive: bool) -> Result<ExitComparison, Refused> {
        match &self.inside.get(&cond).ok_or(Refused::NoCount)?.kind {
            OpKind::Unary(UnaryOp::Not, inner) => self.test(*inner, !positive),
            OpKind::Compare(op, a, b) => {
                let (op, a, b) = (*op, *a, *b);
                for (tested, bound, swapped) in [(a, b, false), (b, a, true)] {
                    if !(self.outside)(bound) {
                        continue;
                    }
                    let relation = || relation(op, positive, swapped).ok_or(Refused::NoCount);
                    if let Some((param, ahead)) = self.tested(tested) {
                        return self.counted(param, ahead, relation()?, bound);
                    }
                    // Low bits go round evenly: they meet the bound's, or are led past it, as a narrow counter would.
                    if let Some((param, ahead)) = self.truncated(tested).and_then(|wide| self.tested(wide))
                        && relation()? == Relation::NotEqual
                    {
                        return self.counted(param, ahead, Relation::NotEqual, bound);
                    }
                }
                Err(Refused::NoCount)
            }
            _ => Err(Refused::NoCount),
        }
    }

    /// The value is a parameter, or a parameter plus its step.
    fn tested(&self, value: Value) -> Option<(usize, i64)> {
        if let Some(index) = self.params.iter().position(|&param| param == value) {
            return Some((index, 0));
        }
        (0..self.params.len())
            .find(|&index| {
                let step = step_of(self.kernel, self.inside, self.outside, self.params[index], value);
                step != Step::Carried && step != Step::Invariant && step == self.steps[index]
            })
            .map(|index| (index, 1))
    }

    /// The value whose low bits this is.
    fn truncated(&self, value: Value) -> Option<Value> {
        match self.inside.get(&value)?.kind {
            OpKind::Convert(ConvertOp::Truncate, wide) => Some(wide),
            _ => None,
        }
    }

    /// Accepts a test if the parameter moves towards the bound and cannot wrap past it.
    fn counted(
        &self,
        param: usize,
        ahead: i64,
        relation: Relation,
        bound: Value,
    ) -> Result<ExitComparison, Refused> {
        let ty = self.kernel.ty(self.params[param]);
        let found = Ok((param, relation, bound, ahead));
        let refuse = |why: &str| Err(Refused::Because(why.to_owned()));
        let wraps = |why: &'static str| Err(Refused::Wraps(why, (param, relation, bound, ahead)));
        // A promise makes the arithmetic exact; a step that is zero then never ends the loop, either way.
        let narrow = ty.is_integer() && ty != Type::I64;
        if let (Step::Value { scale, .. }, Relation::Less { signed, .. }) = (self.steps[param], relation)
            && (1..=MOST_TIMES).contains(&scale)
            && narrow
            && self.promised(param, signed)
        {
            return found;
        }
        let (least, constant) = match self.steps[param] {
            Step::Constant(step) => (step, Some(step)),
            Step::Value { value, scale } if (1..=MOST_TIMES).contains(&scale) => {
                let step = range(self.kernel, self.definitions, value);
                let reads_signed = matches!(relation, Relation::Less { signed: true, .. });
                let greatest = if reads_signed { ty.mask() >> 1 } else { ty.mask() };
                let all = step.max.checked_mul(scale as u64);
                let grows = step.min > 0 && all.is_some_and(|all| all <= greatest);
                (i64::from(grows), None)
            }
            _ => return Err(Refused::NoCount),
        };
        match relation {
            Relation::NotEqual if constant.is_some_and(|step| self.divides(param, bound, step)) => {
                return found;
            }
            // A step that jumped over the bound would have to break its promise before the loop ends, if nothing else ends it.
            Relation::NotEqual
                if constant.is_some_and(|step| step.unsigned_abs().is_power_of_two())
                    && self.kernel.ty(bound) == ty
                    && self.promised(param, true)
                    && self.one_way_out() =>
            {
                return found;
            }
            Relation::NotEqual => {
                let why = "its test `!=` may be jumped over by its step";
                let even = constant.is_some_and(|step| step.unsigned_abs().is_power_of_two());
                return if even && self.one_way_out() {
                    wraps(why)
                } else {
                    refuse(why)
                };
            }
            Relation::Less { .. } if least < 1 => {
                let why = "its counter may not grow";
                // Whether a step that the run tells makes it grow is seen when the loop is entered.
                return if constant.is_none() {
                    wraps(why)
                } else {
                    refuse(why)
                };
            }
            Relation::Greater { .. } if constant.is_none_or(|step| step > -1) => {
                return refuse("its counter may not shrink");
            }
            _ => {}
        }
        if self.cannot_wrap(param, ty, relation, bound, constant) {
            found
        } else {
            wraps(
                "its counter may wrap around before it meets its bound; a `for` over a range, or a bound that \
                 is a slice's length, cannot",
            )
        }
    }

    /// Nothing but one jump leaves the loop.
    fn one_way_out(&self) -> bool {
        let leaves = |kind: &OpKind| !matches!(kind, OpKind::Continue(label, _) if *label == self.label);
        let jumps = jumps_out(self.body);
        jumps.iter().filter(|jump| leaves(&jump.kind)).count() == 1
    }

    /// The step leads exactly to the bound: it is a power of two that divides both ends, or all is constant.
    fn divides(&self, param: usize, bound: Value, step: i64) -> bool {
        let size = step.unsigned_abs();
        let constant = |value: Value| self.kernel.as_constant(value);
        if let (Some(first), Some(last)) = (constant(self.initial[param]), constant(bound))
            && self.kernel.ty(bound) == self.kernel.ty(self.params[param])
        {
            let way = if step > 0 {
                last.wrapping_sub(first)
            } else {
                first.wrapping_sub(last)
            };
            let way = way & self.kernel.ty(bound).mask();
            if way != 0 && way.is_multiple_of(size) {
                return true;
            }
        }
        let zeros = |value: Value| low_zeros(self.kernel, self.definitions, value);
        size == 1
            || size.is_power_of_two()
                && zeros(self.initial[param]) >= size.trailing_zeros()
                && zeros(bound) >= size.trailing_zeros()
    }

    fn cannot_wrap(
        &self,
        param: usize,
        ty: Type,
        relation: Relation,
        bound: Value,
        step: Option<i64>,
    ) -> bool {
        let (signed, or_equal) = match relation {
            Relation::Less { signed, or_equal } | Relation::Greater { signed, or_equal } => {
                (signed, or_equal)
            }
            Relation::NotEqual => return true,
        };
        // x < n and a step of one: x + 1 is at most n.
        if matches!(step, Some(1 | -1)) && !or_equal {
            return true;
        }
        if self.promised(param, signed) {
            return true;
        }
        let largest_step = match (step, self.steps[param]) {
            (Some(step), _) => step.unsigned_abs(),
            (None, Step::Value { value, scale }) => {
                let largest = range(self.kernel, self.definitions, value).max;
                match largest.checked_mul(scale.unsigned_abs()) {
                    Some(largest) => largest,
                    None => return false,
                }
            }
            _ => return false,
        };
        let bound = range(self.kernel, self.definitions, bound);
        match relation {
            Relation::Less { signed, .. } => {
                let greatest = if signed { ty.mask() >> 1 } else { ty.mask() };
                bound.max <= greatest && largest_step <= greatest - bound.max
            }
            // Shrinking: x > n ≥ step, so x - step does not pass zero. Signed bounds of zero or more
            // leave all the negative numbers as room.
            Relation::Greater {
                signed: false,
                or_equal,
            } => bound.min.saturating_add(u64::from(!or_equal)) >= largest_step,
            Relation::Greater { signed: true, .. } => {
                bound.max <= ty.mask() >> 1 && largest_step <= ty.mask() >> 1
            }
            Relation::NotEqual => true,
        }
    }

    /// Whether the counter's first value and one step do not wrap, in the reading of the test. A test of the next value
    /// says nothing about that: `i = start - 1; while (++i < n)` begins with a value that does wrap for `start` 0.
    fn first_step_fits(&self, param: usize, relation: Relation) -> bool {
        let (Relation::Less { signed, .. } | Relation::Greater { signed, .. }) = relation else {
            // Differences are counted modulo the type.
            return true;
        };
        if self.promised(param, signed) {
            return true;
        }
        let ty = self.kernel.ty(self.params[param]);
        let first = range(self.kernel, self.definitions, self.initial[param]);
        let greatest = if signed { ty.mask() >> 1 } else { ty.mask() };
        match self.steps[param] {
            Step::Constant(step) if signed && first.min == first.max => {
                let next = i128::from(eval::signed(ty, first.min)) + i128::from(step);
                (-i128::from(greatest) - 1..=i128::from(greatest)).contains(&next)
            }
            Step::Constant(step) if step >= 0 => {
                first.max <= greatest && step.unsigned_abs() <= greatest - first.max
            }
            // A signed value of zero or more has all negative numbers as room.
            Step::Constant(step) if signed => first.max <= greatest && step.unsigned_abs() <= greatest,
            Step::Constant(step) => first.min >= step.unsigned_abs(),
            Step::Value { value, scale } if scale > 0 => {
                let step = range(self.kernel, self.definitions, value);
                let largest = step.max.checked_mul(scale as u64);
                first.max <= greatest && largest.is_some_and(|largest| largest <= greatest - first.max)
            }
            _ => false,
        }
    }

    /// The operations that lead to the next value promise not to wrap in the reading of the test.
    fn promised(&self, param: usize, signed: bool) -> bool {
        let keeps = |wrap: Wrap| match wrap {
            Wrap::Neither => true,
            Wrap::NotSigned => signed,
            Wrap::NotUnsigned => !signed,
        };
        let all_keep = |next: Value| {
            let (mut at, mut first) = (next, true);
            // A copy of the loop's body that a compiler made adds its own step.
            while first || at != self.params[param] {
                first = false;
                at = match self.inside.get(&at).map(|inside| &inside.kind) {
                    Some(&OpKind::NoWrap(_, wrap, a, b)) if keeps(wrap) => match (self.outside)(a) {
                        true => b,
                        false => a,
                    },
                    _ => return false,
                };
            }
            true
        };
        self.continues.iter().all(|args| all_keep(args[param]))
    }
}

/// A comparison as the relation under which the loop goes on, with the counter on the left.
fn relation(op: CompareOp, positive: bool, swapped: bool) -> Option<Relation> {
    let (signed, or_equal) = match (op, positive) {
        (CompareOp::Eq, false) | (CompareOp::Ne, true) => return Some(Relation::NotEqual),
        (CompareOp::LtS, _) => (true, false),
        (CompareOp::LeS, _) => (true, true),
        (CompareOp::LtU, _) => (false, false),
        (CompareOp::LeU, _) => (false, true),
        _ => return None,
    };
    // not (a < b) is b <= a.
    let (swapped, or_equal) = if positive {
        (swapped, or_equal)
    } else {
        (!swapped, !or_equal)
    };
    Some(if swapped {
        Relation::Greater { signed, or_equal }
    } else {
        Relation::Less { signed, or_equal }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::loops::first_loop;

    /// The test of a loop whose wide counter goes by this step and is compared by its low bits like this.
    fn low_bits(step: i64, compared: &str) -> Result<CountedExit, String> {
        let text = format!(
            "hsir 1\nkernel @k(%o: ptr.global i64[] align 8 unaliased, %n: i32) {{\n  %m = and %n, -2:i32\n  \
             loop 'l (%i = 0:i64) {{\n    store %o, %i\n    %next = add %i, {step}:i64\n    \
             %low = truncate %next to i32\n    %more = {compared} %low, %m\n    \
             if %more {{ yield }} else {{ break }}\n    continue %next\n  }}\n  return\n}}\n"
        );
        first_loop(&text).exit
    }

    #[test]
    fn a_wide_counter_may_be_tested_by_its_low_bits() {
        for step in [1, 2, -2] {
            let exit = low_bits(step, "ne").expect("it counts");
            assert_eq!((exit.relation, exit.steps_ahead), (Relation::NotEqual, 1));
        }
        // Past the bound, or only equal in the low bits.
        assert!(low_bits(4, "ne").is_err());
        assert!(low_bits(1, "lt.s").is_err());
    }
}
