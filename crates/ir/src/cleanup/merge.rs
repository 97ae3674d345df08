//! Common subexpression elimination, constant folding, and removal of redundant structure.
//!
//! Before: `a = add x, y` … `b = add y, x` … `if true { … }` … `if c { if c { … } }`.
//! After: every use of `b` is one of `a`; the `if` is its first region, in place; so is the inner one.
//!
//! The last is more than tidiness: ptxas 13.0 crashes with a segmentation fault on an atomic operation for sm_80 behind two
//! branches of which the second is never taken if the first is not, and the driver runs the same compiler in our process.
//!
//! A pure operation is replaced by an equal one that comes before it in the same region or in an enclosing one. Loads are not
//! merged: that would require knowing the writes between them.

use std::collections::HashMap;
use std::mem;

use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;

use crate::ir::{
    Array, BinaryOp, CompareOp, ConvertOp, FloatRule, Id, Kernel, Label, Op, OpKind, Region, Type, UnaryOp,
    Value, eval,
};

/// Merges equal operations in the whole kernel.
pub(super) fn merge(kernel: &mut Kernel) {
    let body = mem::take(&mut kernel.body);
    let mut merger = Merger {
        kernel,
        replaced: SecondaryMap::new(),
        known: HashMap::new(),
        undo: Vec::new(),
        decided: HashMap::new(),
        constants: HashMap::new(),
        sums: HashMap::new(),
    };
    let body = merger.region(body);
    kernel.body = body;
}

/// The key by which two pure operations are equal, besides their rule.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    Id(Id),
    ArrayAddress(Array),
    Unary(UnaryOp, Value),
    Binary(BinaryOp, Value, Value),
    Fma(Value, Value, Value),
    Compare(CompareOp, Value, Value),
    Select(Value, Value, Value),
    Convert(ConvertOp, Type, Value),
    Address(Value, Value, u32, i64),
}

struct Merger<'k> {
    kernel: &'k mut Kernel,
    /// A value's replacement from now on.
    replaced: SecondaryMap<Value, PackedOption<Value>>,
    /// The operations that can be seen from here.
    known: HashMap<(FloatRule, Key), Value>,
    /// The keys in `known`, in the order they came, to forget them at a region's end.
    undo: Vec<(FloatRule, Key)>,
    /// The known conditions of the enclosing `if`s.
    decided: HashMap<Value, bool>,
    constants: HashMap<(Type, u64), Value>,
    /// Values that are another value plus a constant.
    sums: HashMap<Value, (Value, u64)>,
}

impl Merger<'_> {
    fn region(&mut self, region: Region) -> Region {
        let mark = self.undo.len();
        let mut ops = Vec::with_capacity(region.ops.len());
        for op in region.ops {
            self.op(op, &mut ops);
            // Code behind a jump is unreachable; splicing a block may have put one here.
            if ops.last().is_some_and(|op: &Op| op.kind.is_terminator()) {
                break;
            }
        }
        for key in self.undo.drain(mark..) {
            self.known.remove(&key);
        }
        Region { ops }
    }

    /// A branch of an `if`, in which its condition is known.
    fn region_where(&mut self, cond: Value, is: bool, region: Region) -> Region {
        self.decided.insert(cond, is);
        let region = self.region(region);
        self.decided.remove(&cond);
        region
    }

    fn op(&mut self, mut op: Op, ops: &mut Vec<Op>) {
        op.kind.map_operands(|value| self.current(value));
        if op.kind.is_pure() {
            let result = op.results[0];
            if let Some(simpler) = self.simplify(&mut op) {
                self.replaced[result] = simpler.into();
                return;
            }
            if let Some(key) = key(self.kernel, &op) {
                if let Some(&equal) = self.known.get(&key) {
                    self.replaced[result] = self.current(equal).into();
                    return;
                }
                self.known.insert(key, result);
                self.undo.push(key);
            }
            ops.push(op);
            return;
        }
        match op.kind {
            OpKind::Block { label, body } => self.block(label, body, op.results, op.place, ops),
            OpKind::If {
                label,
                cond,
                then,
                otherwise,
            } => match self.kernel.as_constant(cond) {
                Some(bits) => {
                    let body = if bits == 0 { otherwise } else { then };
                    self.block(label, body, op.results, op.place, ops);
                }
                None => {
                    let then = self.region_where(cond, true, then);
                    let otherwise = self.region_where(cond, false, otherwise);
                    let kind = OpKind::if_(label, cond, then, otherwise);
                    ops.push(Op { kind, ..op });
                }
            },
            OpKind::Loop {
                label,
                params,
                initial,
                body,
                wishes,
            } => {
                let body = self.region(body);
                let kind = OpKind::Loop {
                    label,
                    params,
                    initial,
                    body,
                    wishes,
                };
                ops.push(Op { kind, ..op });
            }
            OpKind::Wait(token) if self.kernel.as_constant(token).is_some() => {}
            kind => ops.push(Op { kind, ..op }),
        }
    }

    /// A block that is only left at its end is not needed: its operations move out.
    fn block(
        &mut self,
        label: Label,
        body: Region,
        results: Vec<Value>,
        place: crate::ir::Place,
        ops: &mut Vec<Op>,
    ) {
        let mut breaks = 0;
        body.walk(&mut |op| breaks += usize::from(matches!(&op.kind, OpKind::Break(to, _) if *to == label)));
        let ends_it =
            matches!(body.terminator(), Some(Op { kind: OpKind::Break(to, _), .. }) if *to == label);
        if !(ends_it && breaks == 1) || self.kernel.is_edge(label) {
            let body = self.region(body);
            ops.push(Op {
                kind: OpKind::Block { label, body },
                results,
                place,
            });
            return;
        }
        for op in body.ops {
            match op.kind {
                OpKind::Break(to, values) if to == label => {
                    for (result, value) in results.iter().zip(values) {
                        self.replaced[*result] = self.current(value).into();
                    }
                }
                _ => self.op(op, ops),
            }
        }
    }

    /// A value's representative: one constant for equal constants, the first of equal operations.
    fn current(&mut self, value: Value) -> Value {
        let value = self.replaced[value].expand().unwrap_or(value);
        if let Some(&is) = self.decided.get(&value) {
            return self.constant(Type::Bool, u64::from(is));
        }
        match self.kernel.as_constant(value) {
            Some(bits) => *self
                .constants
                .entry((self.kernel.ty(value), bits))
                .or_insert(value),
            None => value,
        }
    }

    fn constant(&mut self, ty: Type, bits: u64) -> Value {
        let bits = bits & ty.mask();
        if let Some(&value) = self.constants.get(&(ty, bits)) {
            return value;
        }
        let value = self.kernel.constant(ty, bits);
        self.constants.insert((ty, bits), value);
        value
    }

    /// A value that is equal to a pure operation and needs none; or the operation made cheaper.
    fn simplify(&mut self, op: &mut Op) -> Option<Value> {
        let ty = self.kernel.ty(op.results[0]);
        let bits = |value: Value| self.kernel.as_constant(value);
        match op.kind {
            // Its value is up to the device.
            OpKind::Unary(unary, _) if unary.is_approximation() => None,
            OpKind::Unary(unary, a) => {
                let a_bits = bits(a)?;
                Some(self.constant(ty, eval::unary(unary, ty, a_bits)))
            }
            OpKind::NoWrap(no_wrap, _, a, b) => self.binary(no_wrap.into(), ty, a, b),
            OpKind::Binary(binary, a, b) => {
                let simpler = self.binary(binary, ty, a, b);
                if simpler.is_none() {
                    self.reassociate(op, binary, ty, a, b);
                }
                simpler
            }
            OpKind::Fma(a, b, c) => {
                let (x, y, z) = (bits(a)?, bits(b)?, bits(c)?);
                Some(self.constant(ty, eval::fma(ty, x, y, z)))
            }
            OpKind::Compare(compare, a, b) => {
                let operand = self.kernel.ty(a);
                let (x, y) = (bits(a)?, bits(b)?);
                Some(self.constant(ty, u64::from(eval::compare(compare, operand, x, y))))
            }
            OpKind::Select(cond, a, b) => match bits(cond) {
                _ if a == b => Some(a),
                Some(0) => Some(b),
                Some(_) => Some(a),
                None => None,
            },
            OpKind::Convert(convert, a) => {
                let from = self.kernel.ty(a);
                match bits(a) {
                    Some(a_bits) => Some(self.constant(ty, eval::convert(convert, from, ty, a_bits))),
                    None if from == ty => Some(a),
                    None => None,
                }
            }
            OpKind::Ruled(rule, ref plain) => {
                let bits = plain.folded(rule, self.kernel, ty)?;
                Some(self.constant(ty, bits))
            }
            OpKind::Address {
                base,
                index,
                offset: 0,
                ..
            } if bits(index) == Some(0) => Some(base),
            _ => None,
        }
    }

    /// Identities of integers. Floats have few, and none that a kernel's author would not have used.
    fn binary(&mut self, op: BinaryOp, ty: Type, a: Value, b: Value) -> Option<Value> {
        use BinaryOp::{Add, And, DivS, DivU, Mul, Or, Shl, ShrS, ShrU, Sub, Xor};
        let (x, y) = (self.kernel.as_constant(a), self.kernel.as_constant(b));
        if let (Some(x), Some(y)) = (x, y)
            && !op.is_approximation()
        {
            return Some(self.constant(ty, eval::binary(op, ty, x, y)));
        }
        match (op, x, y) {
            (Add | Or | Xor, Some(0), _) | (Mul, Some(1), _) => Some(b),
            (Add | Sub | Or | Xor | Shl | ShrS | ShrU, _, Some(0)) => Some(a),
            (Mul | DivU | DivS, _, Some(1)) => Some(a),
            (And | Mul, Some(0), _) | (And | Mul, _, Some(0)) => Some(self.constant(ty, 0)),
            (And, Some(x), _) if x == ty.mask() => Some(b),
            (And, _, Some(y)) if y == ty.mask() => Some(a),
            (And | Or, ..) if a == b => Some(a),
            (Sub | Xor, ..) if a == b => Some(self.constant(ty, 0)),
            _ => None,
        }
    }

    /// `(x + 1) + 2` is `x + 3`; division and remainder by a power of two are a shift and a mask.
    fn reassociate(&mut self, op: &mut Op, binary: BinaryOp, ty: Type, a: Value, b: Value) {
        let Some(constant) = self.kernel.as_constant(b) else {
            return;
        };
        match binary {
            BinaryOp::Add | BinaryOp::Sub => {
                let added = if binary == BinaryOp::Add {
                    constant
                } else {
                    constant.wrapping_neg()
                };
                let (start, before) = self.sums.get(&a).copied().unwrap_or((a, 0));
                let total = before.wrapping_add(added) & ty.mask();
                let total_value = self.constant(ty, total);
                op.kind = OpKind::Binary(BinaryOp::Add, start, total_value);
                self.sums.insert(op.results[0], (start, total));
            }
            BinaryOp::DivU if constant.is_power_of_two() => {
                let shift = self.constant(ty, u64::from(constant.trailing_zeros()));
                op.kind = OpKind::Binary(BinaryOp::ShrU, a, shift);
            }
            BinaryOp::RemU if constant.is_power_of_two() => {
                let mask = self.constant(ty, constant - 1);
                op.kind = OpKind::Binary(BinaryOp::And, a, mask);
            }
            _ => {}
        }
    }
}

/// The rule and key of an equal operation.
fn key(kernel: &Kernel, op: &Op) -> Option<(FloatRule, Key)> {
    let key = match *op.kind.plain() {
        OpKind::Id(id) => Key::Id(id),
        OpKind::ArrayAddress(array) => Key::ArrayAddress(array),
        OpKind::Unary(unary, a) => Key::Unary(unary, a),
        OpKind::Binary(binary, a, b) => ordered(binary, a, b),
        // The promise does not change the value.
        OpKind::NoWrap(no_wrap, _, a, b) => ordered(no_wrap.into(), a, b),
        OpKind::Fma(a, b, c) => Key::Fma(a.min(b), a.max(b), c),
        OpKind::Compare(compare, a, b) => Key::Compare(compare, a, b),
        OpKind::Select(cond, a, b) => Key::Select(cond, a, b),
        OpKind::Convert(convert, a) => Key::Convert(convert, kernel.ty(op.results[0]), a),
        OpKind::Address {
            base,
            index,
            scale,
            offset,
        } => Key::Address(base, index, scale, offset),
        _ => return None,
    };
    Some((op.kind.rule(), key))
}

fn ordered(op: BinaryOp, a: Value, b: Value) -> Key {
    match op.commutes() {
        true => Key::Binary(op, a.min(b), a.max(b)),
        false => Key::Binary(op, a, b),
    }
}
