//! Building IR: operations are appended in order, regions by closures.
//!
//! The builder gives every result its type. It folds operations whose operands are constants, and the
//! identities `x + 0`, `x × 1`, `select(c, x, x)`, so that generated code reads as if written by hand.
//! It does not check: [`verify`](super::verify) does.

use super::eval;
use super::hint::{CacheHint, CacheUse, HintSource, PrefetchScope};
use super::kernel::{Array, Kernel, Label, LoadId, Place, Region, Value};
use super::op::{
    BinaryOp, CompareOp, ConvertOp, Id, LoopWishes, Meeting, NoWrapOp, Op, OpKind, UnaryOp, Wrap,
};
use super::rule::FloatRule;
use super::together::{AtomicOp, GroupVoteOp, MemoryOrder, MemoryScope, ReduceOp, ShuffleOp, VoteOp};
use super::types::Type;

/// Appends operations to a region of a kernel.
pub struct Builder<'k> {
    /// The kernel whose values, labels and places are used.
    pub kernel: &'k mut Kernel,
    ops: Vec<Op>,
    place: Place,
}

impl<'k> Builder<'k> {
    /// A builder for a region of `kernel`; operations come from `place` until [`Builder::at`] says else.
    pub fn new(kernel: &'k mut Kernel, place: Place) -> Builder<'k> {
        Builder {
            kernel,
            ops: Vec::new(),
            place,
        }
    }

    /// The appended operations.
    pub fn finish(self) -> Region {
        Region { ops: self.ops }
    }

    /// Further operations come from this place.
    pub fn at(&mut self, place: Place) {
        self.place = place;
    }

    /// Where operations come from now.
    pub fn place(&self) -> Place {
        self.place
    }

    /// Appends an operation with results of these types.
    pub fn push(&mut self, kind: OpKind, types: &[Type]) -> Vec<Value> {
        let results: Vec<Value> = types.iter().map(|&ty| self.kernel.value(ty)).collect();
        self.ops.push(Op::new(kind, results.clone(), self.place));
        results
    }

    /// Appends a finished operation as it is.
    pub fn append(&mut self, op: Op) {
        self.ops.push(op);
    }

    /// The operations appended to the current region so far.
    pub(crate) fn ops(&self) -> &[Op] {
        &self.ops
    }

    fn push_one(&mut self, kind: OpKind, ty: Type) -> Value {
        let result = self.kernel.value(ty);
        self.ops.push(Op::new(kind, vec![result], self.place));
        result
    }

    fn ty(&self, value: Value) -> Type {
        self.kernel.ty(value)
    }

    /// A constant of any type.
    pub fn constant(&mut self, ty: Type, bits: u64) -> Value {
        self.kernel.constant(ty, bits)
    }

    /// An `I32` constant.
    pub fn i32(&mut self, number: i32) -> Value {
        self.constant(Type::I32, number as u32 as u64)
    }

    /// An `I64` constant.
    pub fn i64(&mut self, number: i64) -> Value {
        self.constant(Type::I64, number as u64)
    }

    /// An `F32` constant.
    pub fn f32(&mut self, number: f32) -> Value {
        self.constant(Type::F32, u64::from(number.to_bits()))
    }

    /// An `F64` constant.
    pub fn f64(&mut self, number: f64) -> Value {
        self.constant(Type::F64, number.to_bits())
    }

    /// A `Bool` constant.
    pub fn bool(&mut self, truth: bool) -> Value {
        self.constant(Type::Bool, u64::from(truth))
    }

    /// Answers a question about the work-item. An `I32`.
    pub fn id(&mut self, id: Id) -> Value {
        self.push_one(OpKind::Id(id), Type::I32)
    }

    /// The address of an array.
    pub fn array_address(&mut self, array: Array) -> Value {
        let space = self.kernel.arrays[array].space;
        self.push_one(OpKind::ArrayAddress(array), Type::Ptr(space))
    }

    /// One operand, same type.
    pub fn unary(&mut self, op: UnaryOp, a: Value) -> Value {
        let ty = self.ty(a);
        match self.kernel.as_constant(a) {
            // The result of an approximation is up to the device.
            Some(bits) if !op.is_approximation() => self.constant(ty, eval::unary(op, ty, bits)),
            _ => self.push_one(OpKind::Unary(op, a), ty),
        }
    }

    /// Two operands of one type.
    pub fn binary(&mut self, op: BinaryOp, a: Value, b: Value) -> Value {
        let ty = self.ty(a);
        let constants = (self.kernel.as_constant(a), self.kernel.as_constant(b));
        match (op, constants) {
            (_, (Some(x), Some(y))) if !op.is_approximation() => {
                self.constant(ty, eval::binary(op, ty, x, y))
            }
            (BinaryOp::Add | BinaryOp::Or | BinaryOp::Xor, (Some(0), _)) => b,
            (
                BinaryOp::Add
                | BinaryOp::Sub
                | BinaryOp::Or
                | BinaryOp::Xor
                | BinaryOp::Shl
                | BinaryOp::ShrS
                | BinaryOp::ShrU,
                (_, Some(0)),
            ) => a,
            (BinaryOp::Mul, (Some(1), _)) => b,
            (BinaryOp::Mul | BinaryOp::DivU, (_, Some(1))) => a,
            (BinaryOp::And, (Some(x), _)) if x == ty.mask() => b,
            (BinaryOp::And, (_, Some(y))) if y == ty.mask() => a,
            (BinaryOp::And | BinaryOp::Mul, (Some(0), _) | (_, Some(0))) => self.constant(ty, 0),
            _ => self.push_one(OpKind::Binary(op, a, b), ty),
        }
    }

    /// Integer arithmetic that promises not to wrap.
    pub fn no_wrap(&mut self, op: NoWrapOp, wrap: Wrap, a: Value, b: Value) -> Value {
        let ty = self.ty(a);
        match (op, self.kernel.as_constant(a), self.kernel.as_constant(b)) {
            (_, Some(x), Some(y)) if eval::no_wrap(op, wrap, ty, x, y).1 => {
                self.constant(ty, eval::no_wrap(op, wrap, ty, x, y).0)
            }
            (NoWrapOp::Add, Some(0), _) | (NoWrapOp::Mul, Some(1), _) => b,
            (NoWrapOp::Add | NoWrapOp::Sub, _, Some(0)) | (NoWrapOp::Mul, _, Some(1)) => a,
            _ => self.push_one(OpKind::NoWrap(op, wrap, a, b), ty),
        }
    }

    /// Integer `a + b`, wrapping.
    pub fn add(&mut self, a: Value, b: Value) -> Value {
        self.binary(BinaryOp::Add, a, b)
    }

    /// Integer `a - b`, wrapping.
    pub fn sub(&mut self, a: Value, b: Value) -> Value {
        self.binary(BinaryOp::Sub, a, b)
    }

    /// Integer `a × b`, wrapping.
    pub fn mul(&mut self, a: Value, b: Value) -> Value {
        self.binary(BinaryOp::Mul, a, b)
    }

    /// Bitwise or logical and.
    pub fn and(&mut self, a: Value, b: Value) -> Value {
        self.binary(BinaryOp::And, a, b)
    }

    /// `a × b + c`, rounded once.
    pub fn fma(&mut self, a: Value, b: Value, c: Value) -> Value {
        let ty = self.ty(a);
        let constants = [a, b, c].map(|value| self.kernel.as_constant(value));
        match constants {
            [Some(x), Some(y), Some(z)] => self.constant(ty, eval::fma(ty, x, y, z)),
            _ => self.push_one(OpKind::Fma(a, b, c), ty),
        }
    }

    /// A float operation with a rule of its own, with a result of this type.
    pub fn ruled(&mut self, rule: FloatRule, kind: OpKind, to: Type) -> Value {
        let known = kind.folded(rule, self.kernel, to);
        match known {
            Some(bits) => self.constant(to, bits),
            None => self.push_one(kind.ruled(rule), to),
        }
    }

    /// A comparison; a `Bool`.
    pub fn compare(&mut self, op: CompareOp, a: Value, b: Value) -> Value {
        let ty = self.ty(a);
        match (self.kernel.as_constant(a), self.kernel.as_constant(b)) {
            (Some(x), Some(y)) => self.bool(eval::compare(op, ty, x, y)),
            _ => self.push_one(OpKind::Compare(op, a, b), Type::Bool),
        }
    }

    /// `cond ? a : b` without a branch.
    pub fn select(&mut self, cond: Value, a: Value, b: Value) -> Value {
        let ty = self.ty(a);
        match self.kernel.as_constant(cond) {
            Some(bits) => {
                if bits == 0 {
                    b
                } else {
                    a
                }
            }
            None if a == b => a,
            None => self.push_one(OpKind::Select(cond, a, b), ty),
        }
    }

    /// To another type.
    pub fn convert(&mut self, op: ConvertOp, to: Type, a: Value) -> Value {
        let from = self.ty(a);
        match self.kernel.as_constant(a) {
            Some(bits) => self.constant(to, eval::convert(op, from, to, bits)),
            None if from == to => a,
            None => self.push_one(OpKind::Convert(op, a), to),
        }
    }

    /// `base + index × scale + offset` in bytes.
    pub fn address(&mut self, base: Value, index: Value, scale: u32, offset: i64) -> Value {
        if self.kernel.as_constant(index) == Some(0) && offset == 0 {
            return base;
        }
        let ty = self.ty(base);
        self.push_one(OpKind::address(base, index, scale, offset), ty)
    }

    /// Reads one value.
    pub fn load(&mut self, ty: Type, ptr: Value, id: LoadId) -> Value {
        self.push_one(OpKind::load(ptr, id, CacheUse::Default), ty)
    }

    /// Writes one value.
    pub fn store(&mut self, ptr: Value, value: Value) {
        self.push(OpKind::store(ptr, vec![value], CacheUse::Default), &[]);
    }

    /// Starts an asynchronous copy; a `Token`.
    pub fn copy(&mut self, to: Value, from: Value, bytes: u32, id: LoadId) -> Value {
        self.push_one(OpKind::Copy { to, from, bytes, id }, Type::Token)
    }

    /// The latest of several tokens.
    pub fn join(&mut self, tokens: Vec<Value>) -> Value {
        match tokens[..] {
            [token] => token,
            _ => self.push_one(OpKind::Join(tokens), Type::Token),
        }
    }

    /// The token that is complete from the start.
    pub fn no_token(&mut self) -> Value {
        self.constant(Type::Token, 0)
    }

    /// Waits for a token.
    pub fn wait(&mut self, token: Value) {
        if self.kernel.as_constant(token).is_none() {
            self.push(OpKind::Wait(token), &[]);
        }
    }

    /// A cache hint of a work-item for itself.
    pub fn prefetch(&mut self, ptr: Value, bytes: u32, hint: CacheHint, id: Option<LoadId>) {
        let kind = OpKind::Prefetch {
            ptr,
            bytes,
            count: None,
            hint,
            source: HintSource::Named,
            scope: PrefetchScope::WorkItem,
            id,
        };
        self.push(kind, &[]);
    }

    /// An atomic operation; the old value, if it returns that.
    pub fn atomic(
        &mut self,
        op: AtomicOp,
        ty: Type,
        ptr: Value,
        values: Vec<Value>,
        order: MemoryOrder,
        scope: MemoryScope,
    ) -> Option<Value> {
        let types = if op.has_result() { &[ty][..] } else { &[] };
        let kind = OpKind::Atomic {
            op,
            ptr,
            values,
            order,
            scope,
        };
        self.push(kind, types).first().copied()
    }

    /// A fence.
    pub fn fence(&mut self, order: MemoryOrder, scope: MemoryScope) {
        self.push(OpKind::Fence(order, scope), &[]);
    }

    /// The value of another work-item of the sub-group; `by` is an `I32`. All of them take part.
    pub fn shuffle(&mut self, op: ShuffleOp, value: Value, by: Value) -> Value {
        self.shuffle_among(op, value, by, None)
    }

    /// The value of another work-item of those that `mask`, an `I32`, names; of the sub-group if there is none.
    pub fn shuffle_among(&mut self, op: ShuffleOp, value: Value, by: Value, mask: Option<Value>) -> Value {
        let ty = self.ty(value);
        let kind = OpKind::Shuffle { op, value, by, mask };
        self.push_one(kind, ty)
    }

    /// A vote on a `Bool` of the whole sub-group.
    pub fn vote(&mut self, op: VoteOp, value: Value) -> Value {
        self.vote_among(op, value, None)
    }

    /// A vote on a `Bool` among the work-items that `mask`, an `I32`, names; among the sub-group if there is none.
    pub fn vote_among(&mut self, op: VoteOp, value: Value, mask: Option<Value>) -> Value {
        self.push_one(OpKind::Vote(op, value, mask), op.result())
    }

    /// A reduction of the values of the work-items that `mask`, an `I32`, names; of the sub-group if there is none.
    pub fn reduce_among(&mut self, op: ReduceOp, value: Value, mask: Option<Value>) -> Value {
        self.push_one(OpKind::Reduce(op, value, mask), Type::I32)
    }

    /// A vote on a `Bool` of the work-items of the work-group, all of which wait here for each other.
    pub fn group_vote(&mut self, op: GroupVoteOp, value: Value) -> Value {
        self.push_one(OpKind::GroupVote(op, value), op.result())
    }

    /// The mask of those that run this together.
    pub fn active(&mut self) -> Value {
        self.push_one(OpKind::Active, Type::I32)
    }

    /// A barrier of a part of the work-group.
    pub fn meet(&mut self, meeting: Meeting) {
        self.push(OpKind::Meet(meeting), &[]);
    }

    /// A line of text for people, with a value for each of its places.
    pub fn print(&mut self, text: String, values: Vec<Value>) {
        self.push(OpKind::Print { text, values }, &[]);
    }

    /// A barrier of the work-group.
    pub fn barrier(&mut self) {
        self.push(OpKind::Barrier, &[]);
    }

    /// Leaves a label with values.
    pub fn break_(&mut self, label: Label, values: Vec<Value>) {
        self.push(OpKind::Break(label, values), &[]);
    }

    /// Starts a loop's next iteration with values.
    pub fn continue_(&mut self, label: Label, values: Vec<Value>) {
        self.push(OpKind::Continue(label, values), &[]);
    }

    /// Ends the work-item.
    pub fn return_(&mut self) {
        self.push(OpKind::Return, &[]);
    }

    /// Ends the launch with an error.
    pub fn trap(&mut self) {
        self.push(OpKind::Trap, &[]);
    }

    /// Starts a region: operations appended from now on go into it. Returns the operations appended before, for
    /// [`Builder::end_region`]. For callers that cannot pass closures; others use [`Builder::region`].
    pub fn begin_region(&mut self) -> Vec<Op> {
        std::mem::take(&mut self.ops)
    }

    /// Ends the region that [`Builder::begin_region`] started, and goes on after `before`.
    pub fn end_region(&mut self, before: Vec<Op>) -> Region {
        Region {
            ops: std::mem::replace(&mut self.ops, before),
        }
    }

    /// Builds a region aside; `write` must end it with a terminator.
    pub fn region(&mut self, write: impl FnOnce(&mut Builder<'_>)) -> Region {
        let mut inner = Builder::new(self.kernel, self.place);
        write(&mut inner);
        inner.finish()
    }

    /// An `if`; each side returns the values that it yields.
    pub fn if_(
        &mut self,
        cond: Value,
        results: &[Type],
        then: impl FnOnce(&mut Builder<'_>) -> Vec<Value>,
        otherwise: impl FnOnce(&mut Builder<'_>) -> Vec<Value>,
    ) -> Vec<Value> {
        let label = self.kernel.label(None, results.to_vec());
        let then = self.region(|b| yielding(b, label, then));
        let otherwise = self.region(|b| yielding(b, label, otherwise));
        self.push(OpKind::if_(label, cond, then, otherwise), results)
    }

    /// Leaves `label` with `values` where `cond` is true, and goes on where it is false.
    pub fn break_if(&mut self, cond: Value, label: Label, values: Vec<Value>) {
        let own = self.kernel.label(None, Vec::new());
        let then = self.region(|b| b.break_(label, values));
        let otherwise = self.region(|b| b.break_(own, Vec::new()));
        self.push(OpKind::if_(own, cond, then, otherwise), &[]);
    }

    /// A block; `write` must end it with a terminator.
    #[cfg(test)]
    pub(crate) fn block(
        &mut self,
        name: Option<String>,
        results: &[Type],
        write: impl FnOnce(&mut Builder<'_>, Label),
    ) -> Vec<Value> {
        let label = self.kernel.label(name, results.to_vec());
        let body = self.region(|b| write(b, label));
        self.push(OpKind::Block { label, body }, results)
    }

    /// A loop; `write` gets its label and parameters, and must end the body with a terminator.
    pub fn loop_(
        &mut self,
        name: Option<String>,
        initial: Vec<Value>,
        results: &[Type],
        wishes: LoopWishes,
        write: impl FnOnce(&mut Builder<'_>, Label, &[Value]),
    ) -> Vec<Value> {
        let label = self.kernel.label(name, results.to_vec());
        let params: Vec<Value> = initial
            .iter()
            .map(|&value| self.kernel.value(self.kernel.ty(value)))
            .collect();
        let body = self.region(|b| write(b, label, &params));
        self.push(
            OpKind::Loop {
                label,
                params,
                initial,
                body,
                wishes,
            },
            results,
        )
    }

    /// The address of element `index` (an `I64`) of memory that starts at `base`.
    pub fn element(&mut self, base: Value, element: Type, index: Value) -> Value {
        self.address(base, index, element.bytes(), 0)
    }
}

/// Writes a region that yields values to its own label.
fn yielding(b: &mut Builder<'_>, label: Label, write: impl FnOnce(&mut Builder<'_>) -> Vec<Value>) {
    let values = write(b);
    if !b.ops.last().is_some_and(|op| op.kind.is_terminator()) {
        b.break_(label, values);
    }
}
