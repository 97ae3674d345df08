//! Counting tests of later iterations: whether the loop still runs a given number of steps ahead.
//!
//! ```text
//! loop while %j < %n          in front of the loop: %limit = max(%n - 4, least)
//!                             four steps ahead:     lt %j, %limit
//! ```
//! Nothing wraps: the bound moves back instead of the counter forward, once, and saturates.
//!
//! In a group of iterations that one test lets in, the counter has passed that test, so what is left of the way is a number
//! without sign, and no register holds a limit for each iteration:
//!
//! ```text
//! in the group:               %left = sub %n, %j
//! four steps ahead:           lt.u 4, %left
//! ```

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use crate::analysis::definitions::Definitions;
use crate::analysis::loops::{CountedExit, Relation, Step};
use crate::analysis::ranges::range;
use crate::error::{Error, Result};
use crate::ir::{BinaryOp, Builder, CompareOp, ConvertOp, Op, Type, Value};

/// Values computed once in front of the loop for the guards inside. A clone has the same ones.
#[derive(Clone, Default)]
pub(super) struct Limits {
    ops: Rc<RefCell<Vec<Op>>>,
    made: Rc<RefCell<HashMap<i64, Value>>>,
}

impl Limits {
    /// The operations that compute them.
    pub(super) fn take(&self) -> Vec<Op> {
        self.ops.take()
    }

    fn get(&self, steps: i64) -> Option<Value> {
        self.made.borrow().get(&steps).copied()
    }

    fn insert(&self, steps: i64, limit: Value, ops: Vec<Op>) -> Value {
        self.ops.borrow_mut().extend(ops);
        self.made.borrow_mut().insert(steps, limit);
        limit
    }
}

/// `counter + steps × step relation bound`, computed without wrapping: the bound moves back instead, once,
/// in front of the loop, and saturates.
pub(super) fn passes(
    b: &mut Builder<'_>,
    limits: &Limits,
    definitions: &Definitions,
    exit: &CountedExit,
    step: Step,
    counter: Value,
    steps: i64,
) -> Result<Value> {
    let counter = compared(b, exit, counter);
    let ty = b.kernel.ty(counter);
    if exit.relation == Relation::NotEqual {
        // Whole steps from the value tested now to the bound; the step divides the way, so even a way all
        // round the type is counted exactly.
        let Step::Constant(step) = step else {
            return Err(Error::bug("a test `!=` without constant step"));
        };
        let bound = as_integer(b, exit.bound);
        let ahead = b.constant(ty, step.wrapping_mul(exit.steps_ahead) as u64);
        let tested = b.add(counter, ahead);
        let remaining = if step > 0 {
            b.sub(bound, tested)
        } else {
            b.sub(tested, bound)
        };
        let Some(distance) = way(ty, steps - exit.steps_ahead, step) else {
            return Ok(b.bool(false));
        };
        let distance = b.constant(ty, distance);
        return Ok(b.compare(CompareOp::LtU, distance, remaining));
    }
    let (Relation::Less { signed, or_equal } | Relation::Greater { signed, or_equal }) = exit.relation else {
        return Err(Error::bug("a counting test without relation"));
    };
    let shrinking = matches!(exit.relation, Relation::Greater { .. });
    let test = OrderTest {
        definitions,
        exit,
        signed,
        or_equal,
        shrinking,
    };
    // Where the first step may wrap, the value that the loop itself tests is counted from: from there on nothing wraps.
    let (counter, steps, first) = match exit.steps_ahead > 0 && !exit.first_step_fits {
        true => (next(b, counter, step)?, steps - exit.steps_ahead, 0),
        false => (counter, steps, exit.steps_ahead),
    };
    if let (Step::Value { value, scale }, true) = (step, ty.is_integer() && ty != Type::I64) {
        return Ok(test.passes_wide(b, limits, (value, scale), counter, steps, first));
    }
    let below = if signed { CompareOp::LtS } else { CompareOp::LtU };
    if steps == 0 {
        let bound = as_integer(b, exit.bound);
        let (left, right) = if shrinking {
            (bound, counter)
        } else {
            (counter, bound)
        };
        let or_below = if signed { CompareOp::LeS } else { CompareOp::LeU };
        return Ok(b.compare(if or_equal { or_below } else { below }, left, right));
    }
    let limit = match limits.get(steps) {
        Some(limit) => limit,
        None => {
            let mut limit = Err(Error::bug("a limit that is not computed"));
            let region = b.region(|b| limit = test.limit(b, step, ty, steps));
            limits.insert(steps, limit?, region.ops)
        }
    };
    Ok(if shrinking {
        b.compare(below, limit, counter)
    } else {
        b.compare(below, counter, limit)
    })
}

/// What is left of the way from the counter to the bound, where the counting test of this iteration is known to pass: a number
/// without sign. None where the step is known at run time only, or the test is no order.
pub(super) fn left(
    b: &mut Builder<'_>,
    exit: &CountedExit,
    step: Step,
    counter: Value,
) -> Result<Option<Value>> {
    let (Step::Constant(_), Relation::Less { .. } | Relation::Greater { .. }) = (step, exit.relation) else {
        return Ok(None);
    };
    let mut counter = compared(b, exit, counter);
    if exit.steps_ahead > 0 && !exit.first_step_fits {
        counter = next(b, counter, step)?;
    }
    let bound = as_integer(b, exit.bound);
    Ok(Some(match exit.relation {
        Relation::Greater { .. } => b.sub(counter, bound),
        _ => b.sub(bound, counter),
    }))
}

/// Whether the test passes this many steps from the counter that `left` was computed of.
pub(super) fn passes_within(
    b: &mut Builder<'_>,
    exit: &CountedExit,
    step: Step,
    left: Value,
    steps: i64,
) -> Result<Value> {
    let (Step::Constant(step), Relation::Less { or_equal, .. } | Relation::Greater { or_equal, .. }) =
        (step, exit.relation)
    else {
        return Err(Error::bug("a way without a constant step"));
    };
    let steps = match exit.first_step_fits {
        true => steps,
        false => steps - exit.steps_ahead,
    };
    let ty = b.kernel.ty(left);
    let Some(distance) = way(ty, steps, step) else {
        return Ok(b.bool(false));
    };
    let distance = b.constant(ty, distance);
    let below = if or_equal { CompareOp::LeU } else { CompareOp::LtU };
    Ok(b.compare(below, distance, left))
}

/// How far this many steps lead, if that is no further than once round the type: no way is longer.
fn way(ty: Type, steps: i64, step: i64) -> Option<u64> {
    let distance = i128::from(steps) * i128::from(step.unsigned_abs());
    u64::try_from(distance).ok().filter(|&far| far <= ty.mask())
}

/// The number of an address, and numbers as they are.
fn as_integer(b: &mut Builder<'_>, value: Value) -> Value {
    match b.kernel.ty(value).is_pointer() {
        true => b.convert(ConvertOp::Bits, Type::I64, value),
        false => value,
    }
}

/// The counter in the bound's type: a wide one may be tested by its low bits.
fn compared(b: &mut Builder<'_>, exit: &CountedExit, counter: Value) -> Value {
    let counter = as_integer(b, counter);
    let ty = b.kernel.ty(exit.bound);
    match ty.is_integer() && ty != b.kernel.ty(counter) {
        true => b.convert(ConvertOp::Truncate, ty, counter),
        false => counter,
    }
}

/// The counter one step on, as the loop makes it.
fn next(b: &mut Builder<'_>, counter: Value, step: Step) -> Result<Value> {
    let step = match step {
        Step::Constant(step) => {
            let ty = b.kernel.ty(counter);
            b.constant(ty, step as u64)
        }
        Step::Value { value, scale } => times(b, value, scale),
        _ => return Err(Error::bug("a counting test without step")),
    };
    Ok(b.add(counter, step))
}

/// A value this many times.
fn times(b: &mut Builder<'_>, value: Value, count: i64) -> Value {
    if count == 1 {
        return value;
    }
    let ty = b.kernel.ty(value);
    let count = b.constant(ty, count as u64);
    b.mul(value, count)
}

/// A counting test by order: `counter < bound` and the like.
struct OrderTest<'t> {
    definitions: &'t Definitions,
    exit: &'t CountedExit,
    signed: bool,
    /// Whether the bound itself passes.
    or_equal: bool,
    /// Whether the counter goes down.
    shrinking: bool,
}

impl OrderTest<'_> {
    /// The same for a narrow counter with a run-time step: in 64 bits nothing wraps, whatever the step. A negative step leads away
    /// from the bound: then the first of the tests decides, not the last; it is `first` steps ahead.
    fn passes_wide(
        &self,
        b: &mut Builder<'_>,
        limits: &Limits,
        (step, scale): (Value, i64),
        counter: Value,
        steps: i64,
        first: i64,
    ) -> Value {
        let OrderTest {
            definitions,
            exit,
            signed,
            or_equal,
            ..
        } = *self;
        let extend = if signed {
            ConvertOp::ExtendS
        } else {
            ConvertOp::ExtendU
        };
        let limit = match limits.get(steps) {
            Some(limit) => limit,
            None => {
                let mut limit = exit.bound;
                let most = range(b.kernel, definitions, step).max;
                let may_shrink = signed && most > b.kernel.ty(step).mask() >> 1;
                let region = b.region(|b| {
                    let bound = b.convert(extend, Type::I64, exit.bound);
                    let step = b.convert(extend, Type::I64, step);
                    let step = times(b, step, scale);
                    let steps = b.i64(steps);
                    let mut distance = b.mul(step, steps);
                    if may_shrink {
                        let first = b.i64(first);
                        let first = b.mul(step, first);
                        distance = b.binary(BinaryOp::MaxS, first, distance);
                    }
                    limit = b.sub(bound, distance);
                });
                limits.insert(steps, limit, region.ops)
            }
        };
        let counter = b.convert(extend, Type::I64, counter);
        b.compare(
            if or_equal { CompareOp::LeS } else { CompareOp::LtS },
            counter,
            limit,
        )
    }

    /// The bound moved back by `steps` steps (one less if the bound itself still passes), saturating.
    fn limit(&self, b: &mut Builder<'_>, step: Step, ty: Type, steps: i64) -> Result<Value> {
        let OrderTest {
            definitions,
            exit,
            signed,
            or_equal,
            shrinking,
        } = *self;
        let greatest = if signed { ty.mask() >> 1 } else { ty.mask() };
        let too_far = || Error::usage("so many iterations ahead its counter would pass its type's limit");
        let one = b.constant(ty, 1);
        let distance = match step {
            Step::Constant(step) => {
                let distance = u128::from(step.unsigned_abs()) * steps.unsigned_abs() as u128;
                let distance = u64::try_from(distance)
                    .ok()
                    .filter(|&distance| distance <= greatest);
                b.constant(ty, distance.ok_or_else(too_far)?)
            }
            Step::Value { value, scale } => {
                let largest = range(b.kernel, definitions, value).max;
                let steps = (steps as u64).checked_mul(scale as u64).ok_or_else(too_far)?;
                largest
                    .checked_mul(steps)
                    .filter(|&largest| largest <= greatest)
                    .ok_or_else(too_far)?;
                let steps = b.constant(ty, steps);
                b.mul(value, steps)
            }
            _ => return Err(Error::bug("a counting test without step")),
        };
        let distance = if or_equal { b.sub(distance, one) } else { distance };
        let bound = as_integer(b, exit.bound);
        let below = if signed { CompareOp::LtS } else { CompareOp::LtU };
        Ok(if shrinking {
            let most = b.constant(ty, greatest);
            let room = b.sub(most, distance);
            let passed = b.compare(below, room, bound);
            let moved = b.add(bound, distance);
            b.select(passed, most, moved)
        } else {
            let least = b.constant(ty, if signed { greatest + 1 } else { 0 });
            let room = b.add(least, distance);
            let passed = b.compare(below, bound, room);
            let moved = b.sub(bound, distance);
            b.select(passed, least, moved)
        })
    }
}
