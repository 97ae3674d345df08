//! Loops: what their parameters do from one iteration to the next, and how they end.
//!
//! A counted loop is *recognised*, never declared: a carried value with a constant or invariant step, a
//! test of it against an invariant bound, and a reason why it does not wrap. A kernel that came from a
//! compiler, with strength-reduced pointers and the test at the bottom, is treated like a Rust `for`.

use std::collections::HashMap;

use super::definitions::Definitions;
use super::multiples::low_zeros;
use super::ranges::range;
use super::trailing::Trailing;
use crate::ir::{
    BinaryOp, CompareOp, Kernel, Label, LoadId, NoWrapOp, Op, OpKind, Place, Region, Type, UnaryOp, Value,
    Wrap,
};

/// What a loop does.
#[derive(Clone, Debug)]
pub struct LoopSummary {
    /// Its label.
    pub label: Label,
    /// Its parameters.
    pub params: Vec<Value>,
    /// What each parameter does.
    pub steps: Vec<Step>,
    /// Everything that the body defines.
    pub inside: HashMap<Value, Inside>,
    /// The test that counts, or why there is none.
    pub exit: Result<CountedExit, String>,
    /// Where else the loop can be left.
    pub other_exits: Vec<Place>,
    /// The loads that lie directly in this loop, not in one inside it, in order.
    pub loads: Vec<LoadSite>,
    /// Writes, barriers and the like, anywhere inside.
    pub effects: Vec<Effect>,
}

/// What a loop's parameter does from one iteration to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It keeps its value.
    Invariant,
    /// It grows by this much, read as signed: in units for an integer, in bytes for a pointer.
    Constant(i64),
    /// It grows by `value × scale`; the value does not change in the loop. Pointers: in bytes.
    Value {
        /// Of the parameter's type, or `I64` for a pointer.
        value: Value,
        /// Bytes for a pointer, 1 for an integer.
        scale: u32,
    },
    /// Something else.
    Carried,
}

/// A value defined in a loop's body.
#[derive(Clone, Debug)]
pub struct Inside {
    /// The operation, with its regions emptied.
    pub kind: OpKind,
    /// Which of its results this is.
    pub index: usize,
    /// Where it is written.
    pub place: Place,
    /// For an `if` whose two sides yield: what each yields for this result.
    pub yields: Option<(Value, Value)>,
    /// Defined in a loop inside this one.
    pub in_inner_loop: bool,
}

/// A load in a loop's body.
#[derive(Clone, Debug)]
pub struct LoadSite {
    /// Which load of the source.
    pub id: LoadId,
    /// Its results: 1, 2 or 4 values.
    pub results: Vec<Value>,
    /// Its address.
    pub pointer: Value,
    /// Whether it may be fetched early at all (a volatile one may not).
    pub volatile: bool,
    /// Where it is written.
    pub place: Place,
    /// The conditions it is under inside the body, outermost first, and the side it is on.
    pub conditions: Vec<(Value, bool)>,
    /// It runs after the counting test of its iteration.
    pub after_exit: bool,
    /// A jump before it may skip it in iterations that its conditions do not tell.
    pub skippable: bool,
}

/// Something a load may not be moved across without a reason.
#[derive(Clone, Debug)]
pub enum Effect {
    /// A write through this pointer.
    Write(Value, Place),
    /// A barrier.
    Barrier(Place),
}

/// How a counting test compares; the loop goes on while `tested relation bound`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// Below, growing.
    Less {
        /// Signed or unsigned.
        signed: bool,
        /// Or equal.
        or_equal: bool,
    },
    /// Above, shrinking.
    Greater {
        /// Signed or unsigned.
        signed: bool,
        /// Or equal.
        or_equal: bool,
    },
    /// Not equal; the step is a power of two, up or down, that divides the way to the bound.
    NotEqual,
}

/// The test that counts iterations.
#[derive(Clone, Copy, Debug)]
pub struct CountedExit {
    /// The parameter that counts.
    pub param: usize,
    /// The loop goes on while `param + steps_ahead × step relation bound`.
    pub relation: Relation,
    /// Defined outside the loop.
    pub bound: Value,
    /// 0: the value of this iteration is tested; 1: that of the next.
    pub steps_ahead: i64,
    /// The test is operation number `position` of the body.
    pub position: usize,
    /// The condition of that `if` is this where the loop goes on.
    pub continues_on: bool,
    /// Nothing but pure operations comes before the test.
    pub leading: bool,
}

/// Summarises the loop operation `op` of a kernel.
///
/// `definitions` are those of the whole kernel. An operation that is no loop has no parameters, no
/// loads, and an exit that says so.
pub fn summarize(kernel: &Kernel, definitions: &Definitions, op: &Op) -> LoopSummary {
    let OpKind::Loop {
        label,
        params,
        initial,
        body,
        ..
    } = &op.kind
    else {
        return LoopSummary {
            label: Label::from_u32(0),
            params: Vec::new(),
            steps: Vec::new(),
            inside: HashMap::new(),
            exit: Err("this is no loop".to_owned()),
            other_exits: Vec::new(),
            loads: Vec::new(),
            effects: Vec::new(),
        };
    };
    let mut reader = Reader {
        kernel,
        inside: HashMap::new(),
        loads: Vec::new(),
        effects: Vec::new(),
        inner_labels: Vec::new(),
        continues: Vec::new(),
        exits: Vec::new(),
        label: *label,
        diverted: false,
    };
    reader.region(body, &mut Vec::new(), false, None);
    let Reader {
        inside,
        mut loads,
        effects,
        continues,
        exits,
        ..
    } = reader;
    let outside = |value: Value| !inside.contains_key(&value) && !params.contains(&value);
    let mut steps: Vec<Step> = (0..params.len())
        .map(|index| common_step(kernel, &inside, &outside, params[index], index, &continues))
        .collect();
    let trailing = Trailing {
        kernel,
        definitions,
        params,
        initial,
        continues: &continues,
    };
    for index in 0..params.len() {
        if steps[index] == Step::Carried
            && let Some(step) = trailing.step(index, &steps)
        {
            steps[index] = step;
        }
    }
    let tests = Tests {
        kernel,
        definitions,
        params,
        initial,
        steps: &steps,
        inside: &inside,
        outside: &outside,
        continues: &continues,
        body,
    };
    let exit = tests.find(*label);
    let position = exit.as_ref().ok().map(|exit| exit.position);
    // The counting test is one way out; a second way out inside the same `if` is another.
    let counting = exits.iter().position(|exit| Some(exit.at) == position);
    let others = exits
        .iter()
        .enumerate()
        .filter(|(number, _)| Some(*number) != counting);
    let other_exits = others.map(|(_, exit)| exit.place).collect();
    for load in &mut loads {
        load.site.after_exit = position.is_some_and(|position| load.at > position);
    }
    let loads = loads.into_iter().map(|load| load.site).collect();
    LoopSummary {
        label: *label,
        params: params.clone(),
        steps,
        inside,
        exit,
        other_exits,
        loads,
        effects,
    }
}

/// Something at operation number `at` of the body, or inside that operation.
struct Exit {
    at: usize,
    place: Place,
}

struct FoundLoad {
    at: usize,
    site: LoadSite,
}

/// Collects what a body contains.
struct Reader<'k> {
    kernel: &'k Kernel,
    inside: HashMap<Value, Inside>,
    loads: Vec<FoundLoad>,
    effects: Vec<Effect>,
    inner_labels: Vec<Label>,
    continues: Vec<Vec<Value>>,
    exits: Vec<Exit>,
    label: Label,
    /// A jump that skips operations after it was seen.
    diverted: bool,
}

impl Reader<'_> {
    fn region(
        &mut self,
        region: &Region,
        conditions: &mut Vec<(Value, bool)>,
        in_inner_loop: bool,
        top: Option<usize>,
    ) {
        for (number, op) in region.ops.iter().enumerate() {
            let at = top.unwrap_or(number);
            self.record(op, in_inner_loop);
            match &op.kind {
                OpKind::Load { ptr, id, cache } if !in_inner_loop => {
                    let site = LoadSite {
                        id: *id,
                        results: op.results.clone(),
                        pointer: *ptr,
                        volatile: *cache == crate::ir::CacheUse::Volatile,
                        place: op.place,
                        conditions: conditions.clone(),
                        after_exit: false,
                        skippable: self.diverted,
                    };
                    self.loads.push(FoundLoad { at, site });
                }
                OpKind::Store { ptr, .. } => self.effects.push(Effect::Write(*ptr, op.place)),
                OpKind::Copy { to, .. } => self.effects.push(Effect::Write(*to, op.place)),
                OpKind::Barrier => self.effects.push(Effect::Barrier(op.place)),
                OpKind::Break(label, _) if !self.inner_labels.contains(label) => {
                    self.exits.push(Exit { at, place: op.place });
                }
                OpKind::Continue(label, args) if *label == self.label => {
                    self.continues.push(args.clone());
                    self.diverted = true;
                }
                OpKind::Break(label, _) if self.inner_labels.last() != Some(label) => self.diverted = true,
                OpKind::Continue(label, _) if !self.inner_labels.contains(label) => {
                    self.exits.push(Exit { at, place: op.place });
                }
                OpKind::Return => self.exits.push(Exit { at, place: op.place }),
                OpKind::Block { label, body } => {
                    self.inner_labels.push(*label);
                    self.region(body, conditions, in_inner_loop, Some(at));
                    self.inner_labels.pop();
                }
                OpKind::If {
                    label,
                    cond,
                    then,
                    otherwise,
                } => {
                    self.inner_labels.push(*label);
                    for (side, region) in [(true, then), (false, otherwise)] {
                        conditions.push((*cond, side));
                        self.region(region, conditions, in_inner_loop, Some(at));
                        conditions.pop();
                    }
                    self.inner_labels.pop();
                }
                OpKind::Loop { label, body, .. } => {
                    self.inner_labels.push(*label);
                    self.region(body, conditions, true, Some(at));
                    self.inner_labels.pop();
                }
                _ => {}
            }
        }
    }

    fn record(&mut self, op: &Op, in_inner_loop: bool) {
        let yields = match &op.kind {
            OpKind::If {
                label,
                then,
                otherwise,
                ..
            } => yielded(then, *label).zip(yielded(otherwise, *label)),
            _ => None,
        };
        let mut insert = |value: Value, index: usize, in_inner_loop: bool| {
            let yields = yields
                .as_ref()
                .map(|(then, otherwise)| (then[index], otherwise[index]));
            let kind = op.kind.without_regions();
            self.inside.insert(
                value,
                Inside {
                    kind,
                    index,
                    place: op.place,
                    yields,
                    in_inner_loop,
                },
            );
        };
        for (index, &result) in op.results.iter().enumerate() {
            insert(result, index, in_inner_loop);
        }
        if let OpKind::Loop { params, .. } = &op.kind {
            for &param in params {
                let kind = op.kind.without_regions();
                let inside = Inside {
                    kind,
                    index: 0,
                    place: op.place,
                    yields: None,
                    in_inner_loop: true,
                };
                self.inside.insert(param, inside);
            }
        }
        debug_assert!(
            op.results
                .iter()
                .all(|&result| self.kernel.values.is_valid(result))
        );
    }
}

/// What a region yields to its own label, if it does nothing but yield at its end.
fn yielded(region: &Region, label: Label) -> Option<Vec<Value>> {
    match &region.ops.last()?.kind {
        OpKind::Break(target, values) if *target == label => Some(values.clone()),
        _ => None,
    }
}

/// The step of a parameter that every `continue` agrees on.
fn common_step(
    kernel: &Kernel,
    inside: &HashMap<Value, Inside>,
    outside: &impl Fn(Value) -> bool,
    param: Value,
    index: usize,
    continues: &[Vec<Value>],
) -> Step {
    let mut steps = continues
        .iter()
        .map(|args| step_of(kernel, inside, outside, param, args[index]));
    match steps.next() {
        Some(first) if steps.all(|step| step == first) => first,
        _ => Step::Carried,
    }
}

/// How `next` comes from `param`.
fn step_of(
    kernel: &Kernel,
    inside: &HashMap<Value, Inside>,
    outside: &impl Fn(Value) -> bool,
    param: Value,
    next: Value,
) -> Step {
    if next == param {
        return Step::Invariant;
    }
    let Some(Inside {
        kind,
        in_inner_loop: false,
        ..
    }) = inside.get(&next)
    else {
        return Step::Carried;
    };
    let ty = kernel.ty(param);
    let by = |step: Value, sign: i64| match kernel.as_constant(step) {
        Some(bits) => Step::Constant(crate::ir::eval::signed(ty, bits).wrapping_mul(sign)),
        None if outside(step) && sign == 1 => Step::Value {
            value: step,
            scale: 1,
        },
        None => Step::Carried,
    };
    match *kind {
        OpKind::Binary(BinaryOp::Add, a, b) | OpKind::NoWrap(NoWrapOp::Add, _, a, b) if a == param => {
            by(b, 1)
        }
        OpKind::Binary(BinaryOp::Add, a, b) | OpKind::NoWrap(NoWrapOp::Add, _, a, b) if b == param => {
            by(a, 1)
        }
        OpKind::Binary(BinaryOp::Sub, a, b) | OpKind::NoWrap(NoWrapOp::Sub, _, a, b) if a == param => {
            by(b, -1)
        }
        OpKind::Address {
            base,
            index,
            scale,
            offset,
        } if base == param => match kernel.as_constant(index) {
            Some(bits) => Step::Constant((bits.wrapping_mul(u64::from(scale)) as i64).wrapping_add(offset)),
            None if outside(index) && offset == 0 => Step::Value { value: index, scale },
            None => Step::Carried,
        },
        _ => Step::Carried,
    }
}

/// Looks for the test that counts.
struct Tests<'a, F> {
    kernel: &'a Kernel,
    definitions: &'a Definitions,
    params: &'a [Value],
    initial: &'a [Value],
    steps: &'a [Step],
    inside: &'a HashMap<Value, Inside>,
    outside: &'a F,
    continues: &'a [Vec<Value>],
    body: &'a Region,
}

impl<F: Fn(Value) -> bool> Tests<'_, F> {
    fn find(&self, label: Label) -> Result<CountedExit, String> {
        let mut reason = "its end depends on data that the loop computes".to_owned();
        let mut leading = true;
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
                    match self.test(*cond, otherwise_leaves) {
                        Ok((param, relation, bound, steps_ahead)) => {
                            let continues_on = otherwise_leaves;
                            return Ok(CountedExit {
                                param,
                                relation,
                                bound,
                                steps_ahead,
                                position,
                                continues_on,
                                leading,
                            });
                        }
                        Err(Some(refusal)) => reason = refusal,
                        Err(None) => {}
                    }
                }
            }
            leading &= op.kind.is_pure();
        }
        Err(reason)
    }

    /// Reads a condition as `param + steps × step relation bound`; `positive` if the loop goes on where
    /// it is true.
    fn test(&self, cond: Value, positive: bool) -> Result<(usize, Relation, Value, i64), Option<String>> {
        match &self.inside.get(&cond).ok_or(None)?.kind {
            OpKind::Unary(UnaryOp::Not, inner) => self.test(*inner, !positive),
            OpKind::Compare(op, a, b) => {
                let (op, a, b) = (*op, *a, *b);
                if let (Some((param, ahead)), true) = (self.tested(a), (self.outside)(b)) {
                    self.counted(param, ahead, relation(op, positive, false).ok_or(None)?, b)
                } else if let (Some((param, ahead)), true) = (self.tested(b), (self.outside)(a)) {
                    self.counted(param, ahead, relation(op, positive, true).ok_or(None)?, a)
                } else {
                    Err(None)
                }
            }
            _ => Err(None),
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

    /// Accepts a test if the parameter moves towards the bound and cannot wrap past it.
    fn counted(
        &self,
        param: usize,
        ahead: i64,
        relation: Relation,
        bound: Value,
    ) -> Result<(usize, Relation, Value, i64), Option<String>> {
        let ty = self.kernel.ty(self.params[param]);
        let found = Ok((param, relation, bound, ahead));
        let refuse = |why: &str| Err(Some(why.to_owned()));
        // A promise makes the arithmetic exact; a step that is zero then never ends the loop, either way.
        let narrow = ty.is_integer() && ty != Type::I64;
        if let (Step::Value { scale: 1, .. }, Relation::Less { signed, .. }) = (self.steps[param], relation)
            && narrow
            && self.promised(param, signed)
        {
            return found;
        }
        let (least, constant) = match self.steps[param] {
            Step::Constant(step) => (step, Some(step)),
            Step::Value { value, scale: 1 } => {
                let least = range(self.kernel, self.definitions, value).min;
                (if least == 0 { 0 } else { 1 }, None)
            }
            _ => return Err(None),
        };
        match relation {
            Relation::NotEqual if constant.is_some_and(|step| self.divides(param, bound, step)) => {
                return found;
            }
            Relation::NotEqual => return refuse("its test `!=` may be jumped over by its step"),
            Relation::Less { .. } if least < 1 => return refuse("its counter may not grow"),
            Relation::Greater { .. } if constant.is_none_or(|step| step > -1) => {
                return refuse("its counter may not shrink");
            }
            _ => {}
        }
        if self.cannot_wrap(param, ty, relation, bound, constant) {
            found
        } else {
            refuse(
                "its counter may wrap around before it meets its bound; a `for` over a range, or a bound that \
                 is a slice's length, cannot",
            )
        }
    }

    /// The step is a power of two that leads exactly to the bound.
    fn divides(&self, param: usize, bound: Value, step: i64) -> bool {
        let size = step.unsigned_abs();
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
            (None, Step::Value { value, .. }) => range(self.kernel, self.definitions, value).max,
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

    /// The operation that makes the next value promises not to wrap in the reading of the test.
    fn promised(&self, param: usize, signed: bool) -> bool {
        let keeps = |next: &Value| match self.inside.get(next).map(|inside| &inside.kind) {
            Some(OpKind::NoWrap(_, Wrap::Neither, ..)) => true,
            Some(OpKind::NoWrap(_, Wrap::NotSigned, ..)) => signed,
            Some(OpKind::NoWrap(_, Wrap::NotUnsigned, ..)) => !signed,
            _ => false,
        };
        self.continues.iter().all(|args| keeps(&args[param]))
    }
}

/// Whether a side of an `if` always leaves the loop, whatever is in it.
fn leaves(side: &Region, own: Label, looped: Label) -> bool {
    match side.ops.last().map(|op| &op.kind) {
        Some(OpKind::Break(label, _)) => *label != own,
        Some(OpKind::Continue(label, _)) => *label != looped,
        Some(OpKind::Return) => true,
        _ => false,
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
