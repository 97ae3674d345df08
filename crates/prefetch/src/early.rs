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
//! A loaded operand comes from where the plan already has it ([`Early::know`]), or from another early
//! load. An early load repeats its enclosing guards, and executes only if the counting test proves that its iteration does, or if
//! its address lies within the memory's length and is aligned.
//!
//! The loop is in the form that [`summarize`](crate::analysis::loops::summarize) describes, and verified.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::growth::{Growths, MAX_SLICE_DEPTH};
use super::legality::{self, Bounds};
use super::limits::{Limits, left, passes, passes_within};
use crate::analysis::definitions::Definitions;
#[doc(hidden)]
pub(crate) use crate::analysis::jumps::Yielded;
use crate::analysis::loops::{Inside, LoadSite, LoopSummary, Step};
use crate::analysis::multiples::is_aligned;
use crate::error::{Error, Result};
use crate::ir::{BinaryOp, Builder, CompareOp, ConvertOp, Kernel, OpKind, Type, Value};

/// One result of an `if` or block, on the way to its value in a later iteration.
struct Chosen {
    index: usize,
    ahead: u32,
    depth: u32,
    /// Decisions that several paths share are made once.
    made: HashMap<*const Yielded, Value>,
}

/// Computes values of later iterations at one point of the program.
#[derive(Clone)]
pub(super) struct Early<'s> {
    pub(super) summary: &'s LoopSummary,
    pub(super) definitions: &'s Definitions,
    /// The value of each loop parameter in iteration 0 as seen from here.
    base: HashMap<Value, Value>,
    /// Values already there: of which value, how many iterations ahead.
    known: HashMap<(Value, u32), Value>,
    /// Tests already there, by how many steps ahead they look.
    tests: HashMap<i64, Value>,
    /// What is left of the counter's way, if that is there already.
    left: Option<Value>,
    /// The counting test is known to pass for iterations 0 up to, not including, this one.
    certain: u32,
    /// What guards compare with.
    limits: Limits,
    /// Growths already found, by value and reading.
    growths: Rc<Growths<'s>>,
    /// Where loads lie, by their first result: found once for all iterations ahead.
    bounds: HashMap<Value, Bounds>,
    /// Loads that may be read for nothing, in the same way.
    readable: HashSet<Value>,
}

impl<'s> Early<'s> {
    /// Early values at a point where the loop's parameters are `base`, and the counting test is known to
    /// pass `certain` times.
    pub(super) fn new(
        summary: &'s LoopSummary,
        definitions: &'s Definitions,
        base: &[Value],
        certain: u32,
        limits: &Limits,
    ) -> Early<'s> {
        let base = summary.params.iter().copied().zip(base.iter().copied()).collect();
        Early {
            summary,
            definitions,
            base,
            known: HashMap::new(),
            tests: HashMap::new(),
            left: None,
            certain,
            limits: limits.clone(),
            growths: Rc::new(Growths::new(summary)),
            bounds: HashMap::new(),
            readable: HashSet::new(),
        }
    }

    /// `value`, as it will be `ahead` iterations from here, is `known` from now on.
    pub(super) fn know(&mut self, value: Value, ahead: u32, known: Value) {
        self.known.insert((value, ahead), known);
    }

    /// A value `ahead` iterations from here, if the loop gets there.
    pub(super) fn value(&mut self, b: &mut Builder<'_>, value: Value, ahead: u32) -> Result<Value> {
        self.slice(b, value, ahead, 0)
    }

    fn slice(&mut self, b: &mut Builder<'_>, value: Value, ahead: u32, depth: u32) -> Result<Value> {
        if let Some(&known) = self.known.get(&(value, ahead)) {
            return Ok(known);
        }
        if depth > MAX_SLICE_DEPTH {
            return Err(Error::usage(
                "the address is computed by too long a chain of operations to repeat",
            ));
        }
        let early = if let Some(index) = self.summary.params.iter().position(|&param| param == value) {
            self.param(b, index, ahead, depth)?
        } else {
            match self.summary.inside.get(&value) {
                None => value,
                Some(inside) => {
                    let inside = inside.clone();
                    let place = b.place();
                    b.at(inside.place);
                    let early = self.repeat(b, value, &inside, ahead, depth);
                    b.at(place);
                    early?
                }
            }
        };
        self.known.insert((value, ahead), early);
        Ok(early)
    }

    /// A loop parameter, `ahead` steps on.
    fn param(&mut self, b: &mut Builder<'_>, index: usize, ahead: u32, depth: u32) -> Result<Value> {
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
                let times = |b: &mut Builder<'_>, count: i64| {
                    let times = b.constant(step_type, count as u64);
                    b.mul(value, times)
                };
                let all = scale.wrapping_mul(i64::from(ahead));
                Ok(match (ty.is_pointer(), u32::try_from(scale)) {
                    (true, Ok(scale)) => {
                        let distance = times(b, i64::from(ahead));
                        b.address(base, distance, scale, 0)
                    }
                    (true, Err(_)) => {
                        let distance = times(b, all);
                        b.address(base, distance, 1, 0)
                    }
                    (false, _) => {
                        let distance = times(b, all);
                        b.add(base, distance)
                    }
                })
            }
            Step::Derived(next) => self.slice(b, next, ahead - 1, depth + 1),
            Step::Carried => Err(Error::usage(format!(
                "it depends on {}, which each iteration makes from the one before",
                b.kernel.describe_value(param)
            ))),
        }
    }

    /// Repeats one operation of the body for a later iteration.
    fn repeat(
        &mut self,
        b: &mut Builder<'_>,
        value: Value,
        inside: &Inside,
        ahead: u32,
        depth: u32,
    ) -> Result<Value> {
        if inside.in_inner_loop || matches!(inside.kind, OpKind::Loop { .. }) {
            return Err(Error::usage("it depends on a loop inside this one"));
        }
        // A value with a constant step is its present value plus a constant: one register, immediate offsets.
        if ahead > 0
            && let Some(growth) = self.growths.of(b.kernel, value)
        {
            let now = self.slice(b, value, 0, depth + 1)?;
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
            let site = site.ok_or_else(|| Error::bug("a load of the loop that its summary lacks"))?;
            let component = site
                .results
                .iter()
                .position(|&result| result == value)
                .unwrap_or(0);
            let site = site.clone();
            return Ok(self.load(b, &site, ahead)?[component]);
        }
        if let Some(yielded) = &inside.yielded {
            let mut chosen = Chosen {
                index: inside.index,
                ahead,
                depth: depth + 1,
                made: HashMap::new(),
            };
            return self.chosen(b, yielded, &mut chosen);
        }
        if inside.kind.regions().next().is_some() {
            return Err(Error::usage(
                "it depends on a region that is left in more than one way",
            ));
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
            early.insert(operand, self.slice(b, operand, ahead, depth + 1)?);
        }
        kind.map_operands(|operand| early[&operand]);
        let ty = b.kernel.ty(value);
        Ok(match kind {
            OpKind::Unary(op, x) => b.unary(op, x),
            OpKind::Binary(op, x, y) => b.binary(op, x, y),
            // The promise holds for iterations that happen; an early value may belong to none.
            OpKind::NoWrap(op, _, x, y) => b.binary(op.into(), x, y),
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
            OpKind::Ruled(rule, plain) => b.ruled(rule, *plain, ty),
            other => b.push(other, &[ty])[0],
        })
    }

    /// The results of an `if` or block in a later iteration: both sides' values, and a selection by each condition.
    fn chosen(&mut self, b: &mut Builder<'_>, yielded: &Rc<Yielded>, chosen: &mut Chosen) -> Result<Value> {
        let (cond, then, otherwise) = match &**yielded {
            Yielded::Values(values) => {
                return self.slice(b, values[chosen.index], chosen.ahead, chosen.depth);
            }
            Yielded::Chosen {
                cond,
                then,
                otherwise,
            } => (*cond, then, otherwise),
        };
        if let Some(&made) = chosen.made.get(&Rc::as_ptr(yielded)) {
            return Ok(made);
        }
        chosen.depth += 1;
        let cond = self.slice(b, cond, chosen.ahead, chosen.depth)?;
        let then = self.chosen(b, then, chosen)?;
        let otherwise = self.chosen(b, otherwise, chosen)?;
        chosen.depth -= 1;
        let selected = match then == otherwise {
            true => then,
            false => b.select(cond, then, otherwise),
        };
        chosen.made.insert(Rc::as_ptr(yielded), selected);
        Ok(selected)
    }

    /// By how many bytes a pointer grows each iteration, if always by as many.
    pub(super) fn pointer_growth(&self, kernel: &Kernel, pointer: Value) -> Option<i64> {
        self.growths.of(kernel, pointer)
    }

    /// Whether the counting test of iteration `iteration` passes: a `Bool`, or nothing if it certainly does.
    pub(super) fn test(&mut self, b: &mut Builder<'_>, iteration: u32) -> Result<Option<Value>> {
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
        let step = self.summary.steps[exit.param];
        // One subtraction serves several tests.
        if self.certain > 1 && self.left.is_none() {
            self.left = left(b, &exit, step, counter)?;
        }
        let test = match self.left {
            Some(left) => passes_within(b, &exit, step, left, steps)?,
            None => passes(b, &self.limits, self.definitions, &exit, step, counter, steps)?,
        };
        self.tests.insert(steps, test);
        Ok(Some(test))
    }

    /// Where the load of iteration `ahead` happens and is in bounds: a `Bool`, or nothing if it certainly is. `is_read` says
    /// that the memory is read there, and not only hinted at.
    pub(super) fn guard(
        &mut self,
        b: &mut Builder<'_>,
        site: &LoadSite,
        ahead: u32,
        is_read: bool,
    ) -> Result<Option<Value>> {
        let counted = match (site.after_exit, ahead) {
            (true, _) => self.test(b, ahead)?,
            (false, 0) => None,
            (false, _) => self.test(b, ahead - 1)?,
        };
        let mut guards: Vec<Value> = counted.into_iter().collect();
        let (definitions, summary, load) = (self.definitions, self.summary, site.results[0]);
        let bounds = self.bounds.entry(load);
        let bounds = *bounds.or_insert_with(|| legality::bounds(b.kernel, definitions, summary, site));
        let mut repeated = !site.skippable;
        for &(cond, side) in &site.conditions {
            match self.value(b, cond, ahead) {
                Ok(cond) => guards.push(if side {
                    cond
                } else {
                    b.unary(crate::ir::UnaryOp::Not, cond)
                }),
                Err(_) if !matches!(bounds, Bounds::Unknown) => repeated = false,
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
            guards.push(self.within_length(b, &bounds, ahead)?);
            if is_read {
                guards.extend(self.aligned(b, site, ahead)?);
            }
            // A hint for an iteration that never executes is none that reads.
            if is_read && !self.readable.contains(&load) {
                legality::may_read_for_nothing(b.kernel, self.definitions, site)?;
                self.readable.insert(load);
            }
        }
        Ok(guards.into_iter().reduce(|all, guard| b.and(all, guard)))
    }

    /// The early address lies in memory of known length.
    fn within_length(&mut self, b: &mut Builder<'_>, bounds: &Bounds, ahead: u32) -> Result<Value> {
        let (first, width, length) = match *bounds {
            Bounds::Length {
                index,
                first,
                width,
                length,
                ..
            } => {
                let index = self.value(b, index, ahead)?;
                let first = b.i64(first);
                (b.add(index, first), width, length)
            }
            Bounds::Bytes {
                base,
                pointer,
                width,
                length,
                size,
            } => {
                let pointer = self.value(b, pointer, ahead)?;
                let [end, start] =
                    [pointer, base].map(|pointer| b.convert(ConvertOp::Bits, Type::I64, pointer));
                let size = b.i64(size);
                (b.sub(end, start), width, b.mul(length, size))
            }
            Bounds::Unknown => {
                return Err(Error::usage(
                    "nothing proves an early access in bounds: the loop can be left before it, and the length of \
                     the memory is unknown",
                ));
            }
        };
        let last = b.i64(width - 1);
        // first + width - 1 < length, without wrapping.
        let room = b.sub(length, last);
        let fits = b.compare(CompareOp::LtU, first, room);
        if width == 1 {
            return Ok(fits);
        }
        let long_enough = b.compare(CompareOp::LtU, last, length);
        Ok(b.and(fits, long_enough))
    }

    /// The early address is a multiple of what the load reads, as that of an iteration that executes is; nothing if it certainly is.
    fn aligned(&mut self, b: &mut Builder<'_>, site: &LoadSite, ahead: u32) -> Result<Option<Value>> {
        let bytes = u64::from(b.kernel.ty(site.results[0]).bytes()) * site.results.len() as u64;
        if is_aligned(b.kernel, self.definitions, site.pointer, bytes) {
            return Ok(None);
        }
        let pointer = self.value(b, site.pointer, ahead)?;
        let address = b.convert(ConvertOp::Bits, Type::I64, pointer);
        let low = b.i64(bytes as i64 - 1);
        let beside = b.binary(BinaryOp::And, address, low);
        let none = b.i64(0);
        Ok(Some(b.compare(CompareOp::Eq, beside, none)))
    }

    /// Loads the values of iteration `ahead`; zeros if it does not load.
    pub(super) fn load(&mut self, b: &mut Builder<'_>, site: &LoadSite, ahead: u32) -> Result<Vec<Value>> {
        if let Some(known) = self.known_load(site, ahead) {
            return Ok(known);
        }
        legality::may_move(b.kernel, self.definitions, self.summary, site, ahead)?;
        let place = b.place();
        b.at(site.place);
        let guard = self.guard(b, site, ahead, true)?;
        let pointer = self.value(b, site.pointer, ahead)?;
        let values = load_under(b, guard, site, pointer);
        b.at(place);
        for (&result, &value) in site.results.iter().zip(&values) {
            self.know(result, ahead, value);
        }
        Ok(values)
    }

    /// The values of a load that the plan already has.
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
    let kind = OpKind::load(pointer, site.id, crate::ir::CacheUse::Default);
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
