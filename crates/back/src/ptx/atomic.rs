//! Atomic operations and fences.
//!
//! PTX has the orders relaxed, acquire, release and both as qualifiers, and sequential consistency as a fence in front. Its
//! scopes are the work-group (`cta`), the device (`gpu`) and the system (`sys`); a sub-group's scope uses the work-group's.
//! ptxas finds out whether the result is used, and makes a reduction if not.

use super::emitter::Emitter;
use super::memory::vector;
use super::registers::Class;
use crate::ir::{AtomicOp, MemoryOrder, MemoryScope, Op, OpKind, Space, Type, Value};

fn scope_name(scope: MemoryScope) -> &'static str {
    match scope {
        MemoryScope::SubGroup | MemoryScope::WorkGroup => "cta",
        MemoryScope::Device => "gpu",
        MemoryScope::System => "sys",
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

/// PTX's name of the operation and the letter of its type. Operations that PTX has with one sign only do not depend on it.
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
        AtomicOp::FAddHalves => ("add.noftz", "f16x2"),
        AtomicOp::FAddBrainHalves => ("add.noftz", "bf16x2"),
        AtomicOp::IncrementU => ("inc", "u"),
        AtomicOp::DecrementU => ("dec", "u"),
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
        let (mut name, letter) = operation(*atomic);
        let mut suffix = match atomic {
            AtomicOp::FAddHalves | AtomicOp::FAddBrainHalves => letter.to_owned(),
            _ => format!("{letter}{}", ty.bits()),
        };
        if *atomic == AtomicOp::FAdd && ty.bits() == 16 {
            (name, suffix) = (
                "add.noftz",
                if ty == Type::F16 { "f16" } else { "bf16" }.to_owned(),
            );
        }
        let how = format!("{}.{}{space}", order_name(*atomic, *order), scope_name(*scope));
        let location = self.location(*ptr);
        let mut operands: Vec<String> = Vec::new();
        for &value in values {
            operands.push(self.atomic_operand(*atomic, ty, value));
        }
        let bits = ty.bits();
        match (atomic, op.results.first()) {
            (AtomicOp::Store, _) => {
                let (vector, from) = vector(&operands);
                self.guarded(format!("st.{how}{vector}.b{bits} {location}, {from}"));
            }
            (AtomicOp::Load, Some(_)) => {
                let registers: Vec<String> = op.results.iter().map(|&result| self.register(result)).collect();
                let (vector, to) = vector(&registers);
                self.guarded(format!("ld.{how}{vector}.b{bits} {to}, {location}"));
            }
            (_, Some(_)) if atomic.can_be_several() && op.results.len() > 1 => {
                let registers: Vec<String> = op.results.iter().map(|&result| self.register(result)).collect();
                let ((width, to), (_, from)) = (vector(&registers), vector(&operands));
                self.guarded(format!(
                    "atom.{how}.{name}{width}.{suffix} {to}, {location}, {from}"
                ));
            }
            (_, Some(&result)) => {
                // Bits of a float are exchanged as they are, in registers of either kind.
                let (r, operands) = (self.register(result), operands.join(", "));
                self.guarded(format!("atom.{how}.{name}.{suffix} {r}, {location}, {operands}"));
            }
            (_, None) => {}
        }
    }

    /// An operand: floats with the canonical NaN, and the negated subtrahend.
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
