//! Values of later iterations, computed now.
//!
//! ```text
//! in iteration j                          for iteration j + 4
//! %a = address %indices, %j, scale 4      %e = address %indices, %j, scale 4, +16
//! %x = load %a                            %ok = lt.u %j, %limit
//! %b = address %values, %x, scale 4       %y = if %ok { load %e } else { 0 }
//! ```
//!
//! An early value repeats the *slice* of the loop's body that it depends on, with each counter moved ahead.
//! What it reads through a load comes from where the plan already has it ([`Early::know`]), or from an early
//! load of its own. An early load repeats the guards that it is under, and runs only where the counting test
//! or the length of the memory proves it in bounds.
//!
//! The loop is in the form that [`summarize`](crate::analysis::loops::summarize) describes, and verified.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use super::legality::{self, Bounds};
use crate::analysis::definitions::Definitions;
use crate::analysis::loops::{CountedExit, Inside, LoadSite, LoopSummary, Relation, Step};
use crate::analysis::ranges::range;
use crate::error::{Error, Result};
use crate::ir::eval::signed;
use crate::ir::{BinaryOp, Builder, CompareOp, ConvertOp, Kernel, NoWrapOp, Op, OpKind, Type, Value, Wrap};

/// Longest chain of operations that an early value repeats.
const MAX_SLICE_DEPTH: u32 = 400;

/// Computes values of later iterations at one point of the program.
#[derive(Clone)]
pub(super) struct Early<'s> {
    pub(super) summary: &'s LoopSummary,
    pub(super) definitions: &'s Definitions,
    /// What each loop parameter is in iteration 0 as seen from here.
    base: HashMap<Value, Value>,
    /// Values already there: of which value, how many iterations ahead.
    known: HashMap<(Value, u32), Value>,
    /// Tests already there, by how many steps ahead they look.
    tests: HashMap<i64, Value>,
    /// The counting test is known to pass for iterations 0 up to, not including, this one.
    certain: u32,
    /// Growths already found, by value and reading.
    growths: Rc<RefCell<HashMap<(Value, Reading), Option<i64>>>>,
}

/// How a value's bits are read when it is said to grow.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Reading {
    /// In 64 bits, where wrapping commutes with everything that addresses do.
    Wrapping,
    /// As a signed number that is widened later.
    Signed,
    /// As an unsigned number that is widened later.
    Unsigned,
}

/// Values computed once in front of the loop for the guards inside.
#[derive(Default)]
pub(super) struct Limits {
    /// The operations that compute them.
    pub(super) ops: Vec<Op>,
    made: HashMap<i64, Value>,
}

impl<'s> Early<'s> {
    /// Early values at a point where the loop's parameters are `base`, and the counting test is known to
    /// pass `certain` times.
    pub(super) fn new(
        summary: &'s LoopSummary,
        definitions: &'s Definitions,
        base: &[Value],
        certain: u32,
    ) -> Early<'s> {
        let base = summary.params.iter().copied().zip(base.iter().copied()).collect();
        Early {
            summary,
            definitions,
            base,
            known: HashMap::new(),
            tests: HashMap::new(),
            certain,
            growths: Rc::default(),
        }
    }

    /// `value`, as it will be `ahead` iterations from here, is `known` from now on.
    pub(super) fn know(&mut self, value: Value, ahead: u32, known: Value) {
        self.known.insert((value, ahead), known);
    }

    /// What a value will be `ahead` iterations from here, if the loop gets there.
    pub(super) fn value(
        &mut self,
        b: &mut Builder<'_>,
        limits: &mut Limits,
        value: Value,
        ahead: u32,
    ) -> Result<Value> {
        self.slice(b, limits, value, ahead, 0)
    }

    fn slice(
        &mut self,
        b: &mut Builder<'_>,
        limits: &mut Limits,
        value: Value,
        ahead: u32,
        depth: u32,
    ) -> Result<Value> {
        if let Some(&known) = self.known.get(&(value, ahead)) {
            return Ok(known);
        }
        if depth > MAX_SLICE_DEPTH {
            return Err(Error::usage(
                "the address is computed by too long a chain of operations to repeat",
            ));
        }
        let early = if let Some(index) = self.summary.params.iter().position(|&param| param == value) {
            self.param(b, index, ahead)?
        } else {
            match self.summary.inside.get(&value) {
                None => value,
                Some(inside) => {
                    let inside = inside.clone();
                    let place = b.place();
                    b.at(inside.place);
                    let early = self.repeat(b, limits, value, &inside, ahead, depth);
                    b.at(place);
                    early?
                }
            }
        };
        self.known.insert((value, ahead), early);
        Ok(early)
    }

    /// A loop parameter, `ahead` steps on.
    fn param(&self, b: &mut Builder<'_>, index: usize, ahead: u32) -> Result<Value> {
        let param = self.summary.params[index];
        let base = self.base[&param];
        if ahead == 0 {
            return Ok(base);
        }
        let ty = b.kernel.ty(param);
        match self.summary.steps[index] {
            Step::Invariant => Ok(base),
            Step::Constant(step) => {
                let distance = step.wrapping_mul(i64::from(ahead));
                if ty.is_pointer() {
                    let zero = b.i64(0);
                    return Ok(b.address(base, zero, 1, distance));
                }
                let distance = b.constant(ty, distance as u64);
                Ok(b.add(base, distance))
            }
            Step::Value { value, scale } => {
                let step_type = b.kernel.ty(value);
                let times = b.constant(step_type, u64::from(ahead));
                let distance = b.mul(value, times);
                Ok(if ty.is_pointer() {
                    b.address(base, distance, scale, 0)
                } else {
                    b.add(base, distance)
                })
            }
            Step::Carried => Err(Error::usage(format!(
                "it depends on {}, which each iteration makes from the one before",
                name_of(b.kernel, param)
            ))),
        }
    }

    /// Repeats one operation of the body for a later iteration.
    fn repeat(
        &mut self,
        b: &mut Builder<'_>,
        limits: &mut Limits,
        value: Value,
        inside: &Inside,
        ahead: u32,
        depth: u32,
    ) -> Result<Value> {
        if inside.in_inner_loop {
            return Err(Error::usage("it depends on a loop inside this one"));
        }
        // What grows evenly is its present value plus a constant: one register, immediate offsets.
        if ahead > 0
            && let Some(growth) = self.growth(b.kernel, value, 0)
        {
            let now = self.slice(b, limits, value, 0, depth + 1)?;
            let distance = growth.wrapping_mul(i64::from(ahead));
            if b.kernel.ty(value).is_pointer() {
                let zero = b.i64(0);
                return Ok(b.address(now, zero, 1, distance));
            }
            let distance = b.constant(b.kernel.ty(value), distance as u64);
            return Ok(b.add(now, distance));
        }
        if let OpKind::Load { .. } = inside.kind {
            let site = self
                .summary
                .loads
                .iter()
                .find(|site| site.results.contains(&value));
            let site = site.ok_or_else(|| Error::usage("it depends on a load in a loop inside this one"))?;
            let component = site
                .results
                .iter()
                .position(|&result| result == value)
                .unwrap_or(0);
            let site = site.clone();
            return Ok(self.load(b, limits, &site, ahead)?[component]);
        }
        if let Some((then, otherwise)) = inside.yields {
            let OpKind::If { cond, .. } = inside.kind else {
                return Err(Error::usage(
                    "it depends on a region that is left in more than one way",
                ));
            };
            let cond = self.slice(b, limits, cond, ahead, depth + 1)?;
            let then = self.slice(b, limits, then, ahead, depth + 1)?;
            let otherwise = self.slice(b, limits, otherwise, ahead, depth + 1)?;
            return Ok(b.select(cond, then, otherwise));
        }
        if !inside.kind.is_pure() {
            return Err(Error::usage(
                "it depends on an operation that cannot be repeated early",
            ));
        }
        let mut kind = inside.kind.clone();
        let mut operands = Vec::new();
        kind.for_each_operand(|operand| operands.push(operand));
        let mut early = HashMap::new();
        for operand in operands {
            early.insert(operand, self.slice(b, limits, operand, ahead, depth + 1)?);
        }
        kind.map_operands(|operand| early[&operand]);
        let ty = b.kernel.ty(value);
        Ok(match kind {
            OpKind::Unary(op, x) => b.unary(op, x),
            OpKind::Binary(op, x, y) => b.binary(op, x, y),
            // The promise holds for iterations that happen; an early value may belong to none.
            OpKind::NoWrap(op, _, x, y) => b.binary(wrapping(op), x, y),
            OpKind::Fma(x, y, z) => b.fma(x, y, z),
            OpKind::Compare(op, x, y) => b.compare(op, x, y),
            OpKind::Select(cond, x, y) => b.select(cond, x, y),
            OpKind::Convert(op, x) => b.convert(op, ty, x),
            OpKind::Address {
                base,
                index,
                scale,
                offset,
            } => b.address(base, index, scale, offset),
            other => b.push(other, &[ty])[0],
        })
    }

    /// By how many bytes a pointer grows each iteration, if always by as many.
    pub(super) fn pointer_growth(&self, kernel: &Kernel, pointer: Value) -> Option<i64> {
        self.growth(kernel, pointer, 0)
    }

    /// By how much a 64-bit value or a pointer grows each iteration, if always by the same constant.
    fn growth(&self, kernel: &Kernel, value: Value, depth: u32) -> Option<i64> {
        self.remembered(value, Reading::Wrapping, || {
            self.find_growth(kernel, value, depth)
        })
    }

    /// Each value is looked at once: expressions that share parts would take exponential time.
    fn remembered(&self, value: Value, reading: Reading, find: impl FnOnce() -> Option<i64>) -> Option<i64> {
        if let Some(&found) = self.growths.borrow().get(&(value, reading)) {
            return found;
        }
        let found = find();
        self.growths.borrow_mut().insert((value, reading), found);
        found
    }

    fn find_growth(&self, kernel: &Kernel, value: Value, depth: u32) -> Option<i64> {
        if depth > MAX_SLICE_DEPTH {
            return None;
        }
        if let Some(index) = self.summary.params.iter().position(|&param| param == value) {
            return match self.summary.steps[index] {
                Step::Invariant => Some(0),
                Step::Constant(step) => Some(step),
                _ => None,
            };
        }
        let Some(inside) = self.summary.inside.get(&value) else {
            return Some(0);
        };
        let ty = kernel.ty(value);
        if inside.in_inner_loop || !(ty == Type::I64 || ty.is_pointer()) {
            return None;
        }
        let of = |value: Value| self.growth(kernel, value, depth + 1);
        let constant = |value: Value| kernel.as_constant(value).map(|bits| bits as i64);
        match inside.kind {
            OpKind::Binary(BinaryOp::Add, a, c) | OpKind::NoWrap(NoWrapOp::Add, _, a, c) => {
                Some(of(a)?.wrapping_add(of(c)?))
            }
            OpKind::Binary(BinaryOp::Sub, a, c) | OpKind::NoWrap(NoWrapOp::Sub, _, a, c) => {
                Some(of(a)?.wrapping_sub(of(c)?))
            }
            OpKind::Binary(BinaryOp::Mul, a, c) | OpKind::NoWrap(NoWrapOp::Mul, _, a, c) => {
                match (constant(a), constant(c)) {
                    (_, Some(factor)) => Some(of(a)?.wrapping_mul(factor)),
                    (Some(factor), _) => Some(of(c)?.wrapping_mul(factor)),
                    _ if of(a)? == 0 && of(c)? == 0 => Some(0),
                    _ => None,
                }
            }
            OpKind::Binary(BinaryOp::Shl, a, count) => match constant(count) {
                Some(count @ 0..64) => Some(of(a)?.wrapping_shl(count as u32)),
                _ => None,
            },
            OpKind::Address {
                base, index, scale, ..
            } => Some(of(base)?.wrapping_add(of(index)?.wrapping_mul(i64::from(scale)))),
            OpKind::Convert(op @ (ConvertOp::ExtendU | ConvertOp::ExtendS), narrow) => {
                self.exact_growth(kernel, narrow, op == ConvertOp::ExtendS, depth + 1)
            }
            _ => None,
        }
    }

    /// Like [`Early::growth`] for a narrow value that is then widened: only where nothing can wrap in the
    /// iterations that happen, so that widening and growing commute.
    fn exact_growth(&self, kernel: &Kernel, value: Value, is_signed: bool, depth: u32) -> Option<i64> {
        let reading = if is_signed {
            Reading::Signed
        } else {
            Reading::Unsigned
        };
        self.remembered(value, reading, || {
            self.find_exact_growth(kernel, value, is_signed, depth)
        })
    }

    fn find_exact_growth(&self, kernel: &Kernel, value: Value, is_signed: bool, depth: u32) -> Option<i64> {
        if depth > MAX_SLICE_DEPTH {
            return None;
        }
        if let Some(index) = self.summary.params.iter().position(|&param| param == value) {
            let exit = self.summary.exit.as_ref().ok()?;
            let same_reading = match exit.relation {
                Relation::Less { signed, .. } | Relation::Greater { signed, .. } => signed == is_signed,
                Relation::NotEqual => false,
            };
            return match self.summary.steps[index] {
                Step::Invariant => Some(0),
                Step::Constant(step) if exit.param == index && same_reading => Some(step),
                _ => None,
            };
        }
        let Some(inside) = self.summary.inside.get(&value) else {
            return Some(0);
        };
        if inside.in_inner_loop {
            return None;
        }
        let of = |value: Value| self.exact_growth(kernel, value, is_signed, depth + 1);
        let constant = |value: Value| {
            kernel.as_constant(value).map(|bits| {
                if is_signed {
                    signed(kernel.ty(value), bits)
                } else {
                    bits as i64
                }
            })
        };
        match inside.kind {
            OpKind::NoWrap(op, wrap, a, c) => {
                let promised = match wrap {
                    Wrap::Neither => true,
                    Wrap::NotSigned => is_signed,
                    Wrap::NotUnsigned => !is_signed,
                };
                if !promised {
                    return None;
                }
                match op {
                    NoWrapOp::Add => Some(of(a)?.wrapping_add(of(c)?)),
                    NoWrapOp::Sub => Some(of(a)?.wrapping_sub(of(c)?)),
                    NoWrapOp::Mul => match (constant(a), constant(c)) {
                        (_, Some(factor)) => Some(of(a)?.wrapping_mul(factor)),
                        (Some(factor), _) => Some(of(c)?.wrapping_mul(factor)),
                        _ => None,
                    },
                }
            }
            _ => None,
        }
    }

    /// Whether the counting test of iteration `iteration` passes: a `Bool`, or nothing if it certainly does.
    pub(super) fn test(
        &mut self,
        b: &mut Builder<'_>,
        limits: &mut Limits,
        iteration: u32,
    ) -> Result<Option<Value>> {
        if iteration < self.certain {
            return Ok(None);
        }
        let Ok(exit) = self.summary.exit.clone() else {
            return Ok(None);
        };
        let steps = i64::from(iteration) + exit.steps_ahead;
        if let Some(&test) = self.tests.get(&steps) {
            return Ok(Some(test));
        }
        let counter = self.base[&self.summary.params[exit.param]];
        let test = passes(
            b,
            limits,
            self.definitions,
            &exit,
            self.summary.steps[exit.param],
            counter,
            steps,
        )?;
        self.tests.insert(steps, test);
        Ok(Some(test))
    }

    /// Where the load of iteration `ahead` happens and is in bounds: a `Bool`, or nothing if it certainly is.
    pub(super) fn guard(
        &mut self,
        b: &mut Builder<'_>,
        limits: &mut Limits,
        site: &LoadSite,
        ahead: u32,
    ) -> Result<Option<Value>> {
        let counted = match (site.after_exit, ahead) {
            (true, _) => self.test(b, limits, ahead)?,
            (false, 0) => None,
            (false, _) => self.test(b, limits, ahead - 1)?,
        };
        let mut guards: Vec<Value> = counted.into_iter().collect();
        let bounds = legality::bounds(b.kernel, self.definitions, self.summary, site);
        let mut repeated = !site.skippable;
        for &(cond, side) in &site.conditions {
            match self.value(b, limits, cond, ahead) {
                Ok(cond) => guards.push(if side {
                    cond
                } else {
                    b.unary(crate::ir::UnaryOp::Not, cond)
                }),
                Err(_) if matches!(bounds, Bounds::Length { .. }) => repeated = false,
                Err(refusal) => {
                    return Err(Error::usage(format!(
                        "its condition cannot be repeated early: {}",
                        refusal.what()
                    )));
                }
            }
        }
        let by_counting = self.summary.exit.is_ok() && self.summary.other_exits.is_empty() && repeated;
        if !by_counting {
            guards.push(self.within_length(b, limits, &bounds, ahead)?);
        }
        Ok(guards.into_iter().reduce(|all, guard| b.and(all, guard)))
    }

    /// The early address lies in memory of known length.
    fn within_length(
        &mut self,
        b: &mut Builder<'_>,
        limits: &mut Limits,
        bounds: &Bounds,
        ahead: u32,
    ) -> Result<Value> {
        match *bounds {
            Bounds::Length {
                index,
                first,
                width,
                length,
                ..
            } => {
                let index = self.value(b, limits, index, ahead)?;
                let first = b.i64(first);
                let element = b.add(index, first);
                let last = b.i64(width - 1);
                // element + width - 1 < length, without wrapping.
                let room = b.sub(length, last);
                let fits = b.compare(CompareOp::LtU, element, room);
                if width == 1 {
                    return Ok(fits);
                }
                let long_enough = b.compare(CompareOp::LtU, last, length);
                Ok(b.and(fits, long_enough))
            }
            Bounds::Unknown => Err(Error::usage(
                "nothing proves an early access in bounds: the loop can be left before it, and the length of \
                 the memory is unknown",
            )),
        }
    }

    /// Loads what iteration `ahead` will load; zeros where it will not.
    pub(super) fn load(
        &mut self,
        b: &mut Builder<'_>,
        limits: &mut Limits,
        site: &LoadSite,
        ahead: u32,
    ) -> Result<Vec<Value>> {
        if let Some(known) = self.known_load(site, ahead) {
            return Ok(known);
        }
        legality::may_move(b.kernel, self.definitions, self.summary, site)?;
        let place = b.place();
        b.at(site.place);
        let guard = self.guard(b, limits, site, ahead)?;
        let pointer = self.value(b, limits, site.pointer, ahead)?;
        let values = load_under(b, guard, site, pointer);
        b.at(place);
        for (&result, &value) in site.results.iter().zip(&values) {
            self.know(result, ahead, value);
        }
        Ok(values)
    }

    /// What the plan has of a load already.
    pub(super) fn known_load(&self, site: &LoadSite, ahead: u32) -> Option<Vec<Value>> {
        site.results
            .iter()
            .map(|&result| self.known.get(&(result, ahead)).copied())
            .collect()
    }
}

/// Loads like `site` from `pointer` where `guard` holds; zeros elsewhere.
pub(super) fn load_under(
    b: &mut Builder<'_>,
    guard: Option<Value>,
    site: &LoadSite,
    pointer: Value,
) -> Vec<Value> {
    let types: Vec<Type> = site.results.iter().map(|&result| b.kernel.ty(result)).collect();
    let kind = OpKind::Load {
        ptr: pointer,
        id: site.id,
        cache: crate::ir::CacheUse::Default,
    };
    match guard {
        None => b.push(kind, &types),
        Some(guard) => b.if_(
            guard,
            &types,
            |b| b.push(kind, &types),
            |b| types.iter().map(|&ty| b.constant(ty, 0)).collect(),
        ),
    }
}

/// How a value is called in messages.
pub(super) fn name_of(kernel: &Kernel, value: Value) -> String {
    match &kernel.values[value].name {
        Some(name) => format!("`{name}`"),
        None => "a value".to_owned(),
    }
}

fn wrapping(op: NoWrapOp) -> BinaryOp {
    match op {
        NoWrapOp::Add => BinaryOp::Add,
        NoWrapOp::Sub => BinaryOp::Sub,
        NoWrapOp::Mul => BinaryOp::Mul,
    }
}

/// `counter + steps × step relation bound`, computed without wrapping: the bound moves back instead, once,
/// in front of the loop, and saturates.
fn passes(
    b: &mut Builder<'_>,
    limits: &mut Limits,
    definitions: &Definitions,
    exit: &CountedExit,
    step: Step,
    counter: Value,
    steps: i64,
) -> Result<Value> {
    let as_integer = |b: &mut Builder<'_>, value: Value| match b.kernel.ty(value).is_pointer() {
        true => b.convert(ConvertOp::Bits, Type::I64, value),
        false => value,
    };
    let counter = as_integer(b, counter);
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
        let distance = (steps - exit.steps_ahead).wrapping_mul(step.saturating_abs());
        let distance = b.constant(ty, distance as u64);
        return Ok(b.compare(CompareOp::LtU, distance, remaining));
    }
    let (Relation::Less { signed, or_equal } | Relation::Greater { signed, or_equal }) = exit.relation else {
        return Err(Error::bug("a counting test without relation"));
    };
    if let (Step::Value { value, .. }, true) = (step, ty.is_integer() && ty != Type::I64) {
        return Ok(passes_wide(
            b, limits, exit, value, counter, steps, signed, or_equal,
        ));
    }
    let shrinking = matches!(exit.relation, Relation::Greater { .. });
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
    let limit = match limits.made.get(&steps) {
        Some(&limit) => limit,
        None => {
            let mut failed = None;
            let region = b.region(|b| {
                match limit_of(b, definitions, exit, step, ty, steps, signed, or_equal, shrinking) {
                    Ok(limit) => {
                        limits.made.insert(steps, limit);
                    }
                    Err(error) => failed = Some(error),
                }
            });
            if let Some(error) = failed {
                return Err(error);
            }
            limits.ops.extend(region.ops);
            limits.made[&steps]
        }
    };
    Ok(if shrinking {
        b.compare(below, limit, counter)
    } else {
        b.compare(below, counter, limit)
    })
}

/// The same for a narrow counter with a step known at run time: in 64 bits nothing wraps, whatever the step.
#[allow(clippy::too_many_arguments)]
fn passes_wide(
    b: &mut Builder<'_>,
    limits: &mut Limits,
    exit: &CountedExit,
    step: Value,
    counter: Value,
    steps: i64,
    signed: bool,
    or_equal: bool,
) -> Value {
    let extend = if signed {
        ConvertOp::ExtendS
    } else {
        ConvertOp::ExtendU
    };
    let limit = match limits.made.get(&steps) {
        Some(&limit) => limit,
        None => {
            let mut limit = exit.bound;
            let region = b.region(|b| {
                let bound = b.convert(extend, Type::I64, exit.bound);
                let step = b.convert(extend, Type::I64, step);
                let steps = b.i64(steps);
                let distance = b.mul(step, steps);
                limit = b.sub(bound, distance);
            });
            limits.ops.extend(region.ops);
            limits.made.insert(steps, limit);
            limit
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
#[allow(clippy::too_many_arguments)]
fn limit_of(
    b: &mut Builder<'_>,
    definitions: &Definitions,
    exit: &CountedExit,
    step: Step,
    ty: Type,
    steps: i64,
    signed: bool,
    or_equal: bool,
    shrinking: bool,
) -> Result<Value> {
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
        Step::Value { value, .. } => {
            let largest = range(b.kernel, definitions, value).max;
            largest
                .checked_mul(steps as u64)
                .filter(|&largest| largest <= greatest)
                .ok_or_else(too_far)?;
            let steps = b.constant(ty, steps as u64);
            b.mul(value, steps)
        }
        _ => return Err(Error::bug("a counting test without step")),
    };
    let distance = if or_equal { b.sub(distance, one) } else { distance };
    let bound = match b.kernel.ty(exit.bound).is_pointer() {
        true => b.convert(ConvertOp::Bits, Type::I64, exit.bound),
        false => exit.bound,
    };
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
