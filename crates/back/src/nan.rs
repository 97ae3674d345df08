//! Which NaNs have to be made canonical, and where.
//!
//! In the IR, arithmetic that produces a NaN produces the canonical one. Devices produce others: NVIDIA's GPUs give
//! `0x7fffffff` in binary32, and in binary64 often one of the operands; x86 processors give one of the operands, or one with
//! its sign set. The bits of a NaN are visible only where a value is stored or reinterpreted as an integer. NaNs are made
//! canonical there, once, and not after every operation. Kernels that leave NaN bits open are not changed.
//!
//! At such a place the pass must know that the value's NaN (if it is one) came from arithmetic and not from memory, because a
//! loaded NaN keeps its bits through moves and selects. If a value may be either, the arithmetic that feeds it is canonicalised
//! immediately.
//!
//! An interval analysis finds values that cannot be NaN because an argument was clamped or compared before. A comparison
//! constrains its operands on one side of an `if` only: they may be NaN elsewhere, and only the uses on that side are skipped.

use std::collections::{HashMap, HashSet};

use crate::ir::{BinaryOp, CompareOp, ConvertOp, Kernel, Op, OpKind, Region, Type, UnaryOp, Value};
use crate::roots::Targets;

/// A value's bits if it is a NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Nan {
    /// It is none.
    Never,
    /// As the IR specifies: loaded, given, or already canonical.
    Exact,
    /// The result of the device's arithmetic; the IR specifies the canonical NaN.
    Raw,
    /// One or the other, or a raw one with its sign changed.
    Mixed,
}

impl Nan {
    fn meet(self, other: Nan) -> Nan {
        match (self, other) {
            (Nan::Never, x) | (x, Nan::Never) => x,
            (x, y) if x == y => x,
            _ => Nan::Mixed,
        }
    }
}

/// Where canonical NaNs are made.
#[derive(Debug, Default)]
pub(super) struct NanPlan {
    /// Right after the operation that defines one of these.
    after: HashSet<Value>,
    /// Where one of these is stored or taken as an integer.
    at_use: HashSet<Value>,
    /// Values whose bits are seen, perhaps as another value that is one of them.
    seen: HashSet<Value>,
    /// Bits taken where the float is known to be none, wherever else it may be.
    of_numbers: HashSet<Value>,
}

impl NanPlan {
    /// Whether the operation that defines this value is followed by a canonicalisation.
    pub(super) fn after(&self, value: Value) -> bool {
        self.after.contains(&value)
    }

    /// Whether this value is made canonical where its bits are seen.
    pub(super) fn at_use(&self, value: Value) -> bool {
        self.at_use.contains(&value)
    }

    /// Whether these bits (the result of a conversion) are never those of a NaN, whatever the value may be elsewhere.
    pub(super) fn of_number(&self, bits: Value) -> bool {
        self.of_numbers.contains(&bits)
    }

    /// Whether the bits of this value matter even if it is a NaN.
    pub(super) fn seen(&self, value: Value) -> bool {
        self.seen.contains(&value)
    }

    /// Plans for a verified kernel.
    pub(super) fn of(kernel: &Kernel) -> NanPlan {
        if kernel.float_mode.any_nan {
            return NanPlan::default();
        }
        let mut flow = Flow::of(kernel);
        let mut plan = NanPlan {
            seen: flow.sources(flow.seen.clone()),
            of_numbers: std::mem::take(&mut flow.of_numbers),
            ..NanPlan::default()
        };
        loop {
            let classes = flow.classes(&plan.after);
            let mut mixed: Vec<Value> = Vec::new();
            plan.at_use.clear();
            for &value in &flow.seen {
                match classes.get(&value).copied().unwrap_or(Nan::Exact) {
                    Nan::Never | Nan::Exact => {}
                    Nan::Raw => {
                        plan.at_use.insert(value);
                    }
                    Nan::Mixed => mixed.push(value),
                }
            }
            // Arithmetic that feeds a mixed value is made canonical at once; then look again.
            let before = plan.after.len();
            plan.after
                .extend(flow.sources(mixed).intersection(&flow.arithmetic));
            if plan.after.len() == before {
                return plan;
            }
        }
    }
}

/// How NaNs get from value to value.
struct Flow {
    /// Results of arithmetic that may be NaN.
    arithmetic: HashSet<Value>,
    /// Values that cannot be NaN.
    never: HashSet<Value>,
    /// For each value that is another's bits, those it may be.
    keeps: HashMap<Value, Vec<Value>>,
    /// Those of them whose sign may differ.
    signs: HashSet<Value>,
    /// Values whose bits are seen.
    seen: Vec<Value>,
    /// Bits of a value that is no NaN at the place where they are read.
    of_numbers: HashSet<Value>,
}

impl Flow {
    fn of(kernel: &Kernel) -> Flow {
        let Targets { results, params } = Targets::of(kernel);
        let mut flow = Flow {
            arithmetic: HashSet::new(),
            never: HashSet::new(),
            keeps: HashMap::new(),
            signs: HashSet::new(),
            seen: Vec::new(),
            of_numbers: HashSet::new(),
        };
        for (value, data) in kernel.values.iter().filter(|(_, data)| data.ty.is_float()) {
            if data
                .constant
                .is_some_and(|bits| as_f64(data.ty, bits).is_some_and(|x| !x.is_nan()))
            {
                flow.never.insert(value);
            }
        }
        let integers = Integers::of(kernel);
        let mut bounds = Bounds {
            kernel,
            of: HashMap::new(),
            conditions: HashMap::new(),
        };
        bounds.walk(&kernel.body, &mut |bounds, op| {
            let is_float = |value: Value| kernel.ty(value).is_float();
            match op.kind.plain() {
                OpKind::Shuffle { value, .. } if is_float(*value) => flow.seen.push(*value),
                OpKind::Store { values, .. } | OpKind::Atomic { values, .. } => {
                    flow.seen.extend(values.iter().filter(|&&v| is_float(v)))
                }
                OpKind::Convert(ConvertOp::Bits, a) if is_float(*a) && integers.are_seen(op.results[0]) => {
                    match bounds.of.contains_key(a) {
                        true => drop(flow.of_numbers.insert(op.results[0])),
                        false => flow.seen.push(*a),
                    }
                }
                OpKind::Convert(ConvertOp::SignedToFloat | ConvertOp::UnsignedToFloat, _) => {
                    flow.never.insert(op.results[0]);
                }
                OpKind::Select(_, a, b) if is_float(*a) => flow.keep(op.results[0], &[*a, *b]),
                OpKind::Unary(UnaryOp::FNeg | UnaryOp::FAbs, a) => {
                    flow.keep(op.results[0], &[*a]);
                    flow.signs.insert(op.results[0]);
                }
                OpKind::Binary(BinaryOp::CopySign, a, _) => {
                    flow.keep(op.results[0], &[*a]);
                    flow.signs.insert(op.results[0]);
                }
                OpKind::Break(label, values) => flow.pass(kernel, results[label], values),
                OpKind::Continue(label, values) => flow.pass(kernel, params[label], values),
                OpKind::Loop { params, initial, .. } => flow.pass(kernel, params, initial),
                OpKind::Unary(..) | OpKind::Binary(..) | OpKind::Fma(..) if is_float(op.results[0]) => {
                    flow.made(op.results[0], bounds);
                }
                OpKind::Convert(ConvertOp::FloatToFloat, _) => flow.made(op.results[0], bounds),
                _ => {}
            }
        });
        flow
    }

    /// These values, and all whose bits they may be.
    fn sources(&self, mut values: Vec<Value>) -> HashSet<Value> {
        let mut sources = HashSet::new();
        while let Some(value) = values.pop() {
            if sources.insert(value) {
                values.extend(self.keeps.get(&value).into_iter().flatten());
            }
        }
        sources
    }

    fn made(&mut self, value: Value, bounds: &Bounds<'_>) {
        if bounds.of.contains_key(&value) {
            self.never.insert(value);
        } else {
            self.arithmetic.insert(value);
        }
    }

    fn keep(&mut self, value: Value, from: &[Value]) {
        self.keeps.entry(value).or_default().extend(from);
    }

    fn pass(&mut self, kernel: &Kernel, targets: &[Value], values: &[Value]) {
        for (&target, &value) in targets.iter().zip(values) {
            if kernel.ty(target).is_float() {
                self.keep(target, &[value]);
            }
        }
    }

    /// The class of every value that is not `Exact`, given the values that are made canonical where they are defined.
    fn classes(&self, canonical: &HashSet<Value>) -> HashMap<Value, Nan> {
        let mut classes: HashMap<Value, Nan> = HashMap::new();
        for &value in &self.never {
            classes.insert(value, Nan::Never);
        }
        for &value in &self.arithmetic {
            let class = if canonical.contains(&value) {
                Nan::Exact
            } else {
                Nan::Raw
            };
            classes.insert(value, class);
        }
        // Values that are others' bits start as `Never` and only rise, so this ends.
        for &value in self.keeps.keys() {
            classes.insert(value, Nan::Never);
        }
        loop {
            let mut changed = false;
            for (&value, sources) in &self.keeps {
                let mut class = sources
                    .iter()
                    .map(|source| classes.get(source).copied().unwrap_or(Nan::Exact))
                    .fold(Nan::Never, Nan::meet);
                if self.signs.contains(&value) && class == Nan::Raw {
                    class = Nan::Mixed;
                }
                changed |= classes.insert(value, class) != Some(class);
            }
            if !changed {
                return classes;
            }
        }
    }
}

/// Integers that may have been a float's bits, and whether they are seen as integers.
///
/// `exp` and similar functions take a float's bits, compute with them, and make a float of the result. Whatever the bits of a
/// NaN are, the result is again a NaN, since it also takes part in their arithmetic. Such integers do not count as visible;
/// stored, compared, converted values and indices do.
struct Integers<'k> {
    uses: HashMap<Value, Vec<&'k Op>>,
}

impl<'k> Integers<'k> {
    fn of(kernel: &'k Kernel) -> Integers<'k> {
        let mut uses: HashMap<Value, Vec<&'k Op>> = HashMap::new();
        kernel.body.walk(&mut |op| {
            op.kind
                .for_each_operand(|value| uses.entry(value).or_default().push(op))
        });
        Integers { uses }
    }

    fn are_seen(&self, integer: Value) -> bool {
        let mut visited = HashSet::new();
        let mut open = vec![integer];
        while let Some(value) = open.pop() {
            if !visited.insert(value) {
                continue;
            }
            for op in self.uses.get(&value).into_iter().flatten() {
                match &op.kind {
                    OpKind::Unary(..) | OpKind::Binary(..) | OpKind::NoWrap(..) => open.push(op.results[0]),
                    OpKind::Select(cond, ..) if *cond != value => open.push(op.results[0]),
                    OpKind::Convert(ConvertOp::ExtendU | ConvertOp::ExtendS | ConvertOp::Truncate, _) => {
                        open.push(op.results[0]);
                    }
                    OpKind::Convert(ConvertOp::Bits, _) => {}
                    _ => return true,
                }
            }
        }
        false
    }
}

/// Float values known to lie between two numbers, NaN excluded. A bound may be infinite.
struct Bounds<'k> {
    kernel: &'k Kernel,
    of: HashMap<Value, (f64, f64)>,
    /// Truth values that say something of floats, and the operations that compute them.
    conditions: HashMap<Value, &'k OpKind>,
}

impl<'k> Bounds<'k> {
    /// Calls `visit` on each operation, outer ones first, in order, with the facts about all values there.
    fn walk(&mut self, region: &'k Region, visit: &mut impl FnMut(&Self, &'k Op)) {
        for op in &region.ops {
            self.note(op);
            visit(self, op);
            let OpKind::If {
                cond,
                then,
                otherwise,
                ..
            } = &op.kind
            else {
                for inner in op.kind.regions() {
                    self.walk(inner, visit);
                }
                continue;
            };
            let mut facts = Vec::new();
            self.facts(*cond, &mut facts);
            // What a value is known to be elsewhere, to be restored last first.
            let mut elsewhere = Vec::new();
            for (value, (low, high)) in facts {
                let known = self.of.get(&value).copied();
                let (least, most) = known.unwrap_or((f64::NEG_INFINITY, f64::INFINITY));
                self.of.insert(value, (low.max(least), high.min(most)));
                elsewhere.push((value, known));
            }
            self.walk(then, visit);
            for (value, known) in elsewhere.into_iter().rev() {
                match known {
                    Some(bounds) => drop(self.of.insert(value, bounds)),
                    None => drop(self.of.remove(&value)),
                }
            }
            self.walk(otherwise, visit);
        }
    }

    /// The facts about floats that follow from a condition. Comparisons with NaN are false.
    fn facts(&self, cond: Value, facts: &mut Vec<(Value, (f64, f64))>) {
        match self.conditions.get(&cond) {
            Some(OpKind::Binary(BinaryOp::And, a, b)) => {
                self.facts(*a, facts);
                self.facts(*b, facts);
            }
            Some(OpKind::Compare(_, a, b)) => {
                let (low, high) = (f64::NEG_INFINITY, f64::INFINITY);
                let most = self.get(*b).map_or(high, |(_, high)| high);
                self.fact(*a, (low, most), facts);
                let least = self.get(*a).map_or(low, |(low, _)| low);
                self.fact(*b, (least, high), facts);
            }
            _ => {}
        }
    }

    /// Records that a value lies in an interval. If it is the magnitude of another value, that one has an interval, too.
    fn fact(&self, value: Value, (low, high): (f64, f64), facts: &mut Vec<(Value, (f64, f64))>) {
        if self.kernel.as_constant(value).is_some() {
            return;
        }
        facts.push((value, (low, high)));
        if let Some(OpKind::Unary(UnaryOp::FAbs, a)) = self.conditions.get(&value) {
            facts.push((*a, (-high, high)));
        }
    }

    /// The limit for results of arithmetic: half of the largest binary32, so that rounding cannot reach infinity.
    const MOST: f64 = 1.0e38;

    fn get(&self, value: Value) -> Option<(f64, f64)> {
        match self.kernel.as_constant(value) {
            Some(bits) => as_f64(self.kernel.ty(value), bits)
                .filter(|x| !x.is_nan())
                .map(|x| (x, x)),
            None => self.of.get(&value).copied(),
        }
    }

    fn note(&mut self, op: &'k Op) {
        let [result] = op.results[..] else { return };
        if matches!(
            op.kind,
            OpKind::Compare(CompareOp::FLt | CompareOp::FLe, ..)
                | OpKind::Binary(BinaryOp::And, ..)
                | OpKind::Unary(UnaryOp::FAbs, _)
        ) {
            self.conditions.insert(result, &op.kind);
        }
        if !matches!(self.kernel.ty(result), Type::F32 | Type::F64) {
            return;
        }
        if let Some(bounds) = self
            .chosen(&op.kind)
            .or_else(|| self.computed(&op.kind, self.kernel.ty(result)))
        {
            self.of.insert(result, bounds);
        }
    }

    /// Bounds of a value that is one of the operands, up to its sign.
    fn chosen(&self, kind: &OpKind) -> Option<(f64, f64)> {
        match kind {
            OpKind::Unary(UnaryOp::FNeg, a) => self.get(*a).map(|(low, high)| (-high, -low)),
            // Of these types only a wider one's numbers change.
            OpKind::Convert(ConvertOp::FloatToFloat, a) if self.kernel.ty(*a) != Type::F64 => self.get(*a),
            OpKind::Unary(UnaryOp::FAbs, a) => self.get(*a).map(|(low, high)| (0.0, high.max(-low))),
            OpKind::Select(_, a, b) => self
                .get(*a)
                .zip(self.get(*b))
                .map(|(a, b)| (a.0.min(b.0), a.1.max(b.1))),
            // The minimum of anything, even NaN, and a number is at most the number.
            OpKind::Binary(BinaryOp::FMin, a, b) => match (self.get(*a), self.get(*b)) {
                (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.min(b.1))),
                (Some(one), None) | (None, Some(one)) => Some((f64::NEG_INFINITY, one.1)),
                (None, None) => None,
            },
            OpKind::Binary(BinaryOp::FMax, a, b) => match (self.get(*a), self.get(*b)) {
                (Some(a), Some(b)) => Some((a.0.max(b.0), a.1.max(b.1))),
                (Some(one), None) | (None, Some(one)) => Some((one.0, f64::INFINITY)),
                (None, None) => None,
            },
            _ => None,
        }
    }

    /// Bounds of a rounded value, if they are finite.
    fn computed(&self, kind: &OpKind, ty: Type) -> Option<(f64, f64)> {
        let pair = |a: Value, b: Value| self.get(a).zip(self.get(b));
        let (low, high) = match *kind {
            OpKind::Unary(UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Trunc | UnaryOp::RoundEven, a) => {
                self.get(a).map(|(low, high)| (low - 1.0, high + 1.0))?
            }
            OpKind::Binary(BinaryOp::FAdd, a, b) => pair(a, b).map(|(a, b)| add(a, b))?,
            OpKind::Binary(BinaryOp::FSub, a, b) => pair(a, b).map(|(a, b)| add(a, (-b.1, -b.0)))?,
            OpKind::Binary(BinaryOp::FMul, a, b) => pair(a, b).map(|(a, b)| times(a, b))?,
            OpKind::Fma(a, b, c) => pair(a, b)
                .zip(self.get(c))
                .map(|((a, b), c)| add(times(a, b), c))?,
            _ => return None,
        };
        // Room for rounding, in binary64 that of the operation and of its bounds here.
        let rounding = if ty == Type::F64 { 1e-15 } else { 1e-6 };
        let room = rounding * low.abs().max(high.abs()) + 1e-30;
        let bounds = (low - room, high + room);
        (bounds.0 >= -Self::MOST && bounds.1 <= Self::MOST).then_some(bounds)
    }
}

fn add(a: (f64, f64), b: (f64, f64)) -> (f64, f64) {
    (a.0 + b.0, a.1 + b.1)
}

/// NaN bounds, from zero times infinity, fail every later comparison.
fn times(a: (f64, f64), b: (f64, f64)) -> (f64, f64) {
    let products = [a.0 * b.0, a.0 * b.1, a.1 * b.0, a.1 * b.1];
    if products.iter().any(|product| product.is_nan()) {
        return (f64::NAN, f64::NAN);
    }
    (
        products.into_iter().fold(f64::INFINITY, f64::min),
        products.into_iter().fold(f64::NEG_INFINITY, f64::max),
    )
}

fn as_f64(ty: Type, bits: u64) -> Option<f64> {
    match ty {
        Type::F32 => Some(f64::from(f32::from_bits(bits as u32))),
        Type::F64 => Some(f64::from_bits(bits)),
        Type::F16 => Some(half::f16::from_bits(bits as u16).to_f64()),
        Type::Bf16 => Some(half::bf16::from_bits(bits as u16).to_f64()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::Builder;

    /// The bits of a sum are stored on both sides of `if`, whose condition bounds it in magnitude, or not.
    fn bits_of_sum(bounded: bool) -> (NanPlan, Value, [Value; 2]) {
        let mut kernel = Kernel::new("bits");
        let x = kernel.value(Type::F32);
        let ptr = kernel.value(Type::Ptr(crate::ir::Space::Global));
        let mut b = Builder::new(&mut kernel, Kernel::NOWHERE);
        let sum = b.binary(BinaryOp::FAdd, x, x);
        let magnitude = b.unary(UnaryOp::FAbs, sum);
        let limit = b.f32(4.0);
        let within = b.compare(CompareOp::FLe, magnitude, limit);
        let op = if bounded {
            CompareOp::FLe
        } else {
            CompareOp::FUnordered
        };
        let other = b.compare(op, sum, magnitude);
        let cond = if bounded { b.and(within, other) } else { other };
        let mut bits = Vec::new();
        let mut side = |b: &mut Builder<'_>| {
            bits.push(b.convert(ConvertOp::Bits, Type::I32, sum));
            b.store(ptr, bits[bits.len() - 1]);
        };
        let label = b.kernel.label(None, Vec::new());
        let mut region = |b: &mut Builder<'_>| {
            b.region(|b| {
                side(b);
                b.break_(label, Vec::new());
            })
        };
        let (then, otherwise) = (region(&mut b), region(&mut b));
        let kind = OpKind::if_(label, cond, then, otherwise);
        b.push(kind, &[]);
        kernel.body = b.finish();
        (NanPlan::of(&kernel), sum, [bits[0], bits[1]])
    }

    #[test]
    fn what_is_bounded_is_no_nan_on_that_side_alone() {
        let (plan, sum, bits) = bits_of_sum(true);
        assert!(plan.at_use(sum));
        assert_eq!(bits.map(|bits| plan.of_number(bits)), [true, false]);
        let (plan, sum, bits) = bits_of_sum(false);
        assert!(plan.at_use(sum));
        assert_eq!(bits.map(|bits| plan.of_number(bits)), [false, false]);
    }
}
