//! Atomic operations and fences.
//!
//! PTX has the orders relaxed, acquire, release and both as qualifiers, and sequential consistency as a fence
//! in front. Its scopes are the work-group (`cta`) and the device (`gpu`); a sub-group's is served by the
//! work-group's. Whether the result is used, ptxas finds out: it makes a reduction of what is not.

use super::emitter::Emitter;
use super::registers::Class;
use crate::ir::{AtomicOp, MemoryOrder, MemoryScope, Op, OpKind, Space, Type, Value};

fn scope_name(scope: MemoryScope) -> &'static str {
    match scope {
        MemoryScope::SubGroup | MemoryScope::WorkGroup => "cta",
        MemoryScope::Device => "gpu",
    }
}

/// The qualifier of an order, after the fence of a sequentially consistent one.
fn order_name(op: AtomicOp, order: MemoryOrder) -> &'static str {
    match (order, op) {
        (MemoryOrder::Relaxed, _) => "relaxed",
        (MemoryOrder::Acquire, _) => "acquire",
        (MemoryOrder::Release, _) => "release",
        (MemoryOrder::AcquireRelease, _) => "acq_rel",
        (MemoryOrder::SequentiallyConsistent, AtomicOp::Load) => "acquire",
        (MemoryOrder::SequentiallyConsistent, AtomicOp::Store) => "release",
        (MemoryOrder::SequentiallyConsistent, _) => "acq_rel",
    }
}

/// PTX's name of the operation and the letter of its type. What PTX has in one sign only is the same in both.
fn operation(op: AtomicOp) -> (&'static str, &'static str) {
    match op {
        AtomicOp::Load | AtomicOp::Store => ("", "b"),
        AtomicOp::Exchange => ("exch", "b"),
        AtomicOp::CompareExchange => ("cas", "b"),
        AtomicOp::Add | AtomicOp::Sub => ("add", "u"),
        AtomicOp::And => ("and", "b"),
        AtomicOp::Or => ("or", "b"),
        AtomicOp::Xor => ("xor", "b"),
        AtomicOp::MinS => ("min", "s"),
        AtomicOp::MinU => ("min", "u"),
        AtomicOp::MaxS => ("max", "s"),
        AtomicOp::MaxU => ("max", "u"),
        AtomicOp::FAdd => ("add", "f"),
    }
}

impl Emitter<'_> {
    /// An atomic operation.
    pub(super) fn atomic(&mut self, op: &Op) {
        let OpKind::Atomic {
            op: atomic,
            ptr,
            values,
            order,
            scope,
        } = &op.kind
        else {
            return;
        };
        if *order == MemoryOrder::SequentiallyConsistent {
            self.fence(*order, *scope);
        }
        let first = values.first().or(op.results.first());
        let ty = first.map_or(Type::I32, |&value| self.ty(value));
        let space = match self.ty(*ptr).space() {
            Some(Space::Global) => ".global",
            Some(Space::Shared) => ".shared",
            _ => "",
        };
        let (name, letter) = operation(*atomic);
        let how = format!("{}.{}{space}", order_name(*atomic, *order), scope_name(*scope));
        let location = self.location(*ptr);
        let mut operands: Vec<String> = Vec::new();
        for &value in values {
            operands.push(self.atomic_operand(*atomic, ty, value));
        }
        let operands = operands.join(", ");
        let bits = ty.bits();
        match (atomic, op.results.first()) {
            (AtomicOp::Store, _) => self.guarded(format!("st.{how}.b{bits} {location}, {operands}")),
            (AtomicOp::Load, Some(&result)) => {
                let r = self.register(result);
                self.guarded(format!("ld.{how}.b{bits} {r}, {location}"));
            }
            (_, Some(&result)) => {
                // Bits of a float are exchanged as they are, in registers of either kind.
                let r = self.register(result);
                self.guarded(format!(
                    "atom.{how}.{name}.{letter}{bits} {r}, {location}, {operands}"
                ));
            }
            (_, None) => {}
        }
    }

    /// An operand: floats with the canonical NaN, and the opposite of what is to be subtracted.
    fn atomic_operand(&mut self, op: AtomicOp, ty: Type, value: Value) -> String {
        if op == AtomicOp::Sub {
            let bits = ty.bits();
            let class = if bits == 64 { Class::B64 } else { Class::B32 };
            let opposite = self.temporary(class);
            let operand = self.operand(value);
            self.ins(format!("neg.s{bits} {opposite}, {operand}"));
            return opposite;
        }
        match self.nans.at_use(value) {
            true => self.canonical(value),
            false => self.operand(value),
        }
    }

    /// A fence; PTX has one for acquire, release and both.
    pub(super) fn fence(&mut self, order: MemoryOrder, scope: MemoryScope) {
        let order = match order {
            MemoryOrder::SequentiallyConsistent => "sc",
            _ => "acq_rel",
        };
        self.guarded(format!("fence.{order}.{}", scope_name(scope)));
    }
}
