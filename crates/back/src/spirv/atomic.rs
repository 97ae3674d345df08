//! Atomic operations, fences and barriers.
//!
//! Addition of floats is a loop that compares and exchanges: OpenCL has it only as an extension, and a device may
//! then flush subnormals. The loop's first guess is a plain atomic load.

use rspirv::dr::{Instruction, Operand};
use rspirv::spirv::{Capability, MemorySemantics, Op as Code, Scope, Word};

use super::emitter::Emitter;
use crate::ir::{AtomicOp, BinaryOp, MemoryOrder, MemoryScope, Op, OpKind, Space, Type};

/// The integer operation's code, if SPIR-V has it as an operation that returns the old value.
fn code(op: AtomicOp) -> Code {
    match op {
        AtomicOp::Load => Code::AtomicLoad,
        AtomicOp::Store => Code::AtomicStore,
        AtomicOp::Exchange | AtomicOp::FAdd => Code::AtomicExchange,
        AtomicOp::CompareExchange => Code::AtomicCompareExchange,
        AtomicOp::Add => Code::AtomicIAdd,
        AtomicOp::Sub => Code::AtomicISub,
        AtomicOp::And => Code::AtomicAnd,
        AtomicOp::Or => Code::AtomicOr,
        AtomicOp::Xor => Code::AtomicXor,
        AtomicOp::MinS => Code::AtomicSMin,
        AtomicOp::MinU => Code::AtomicUMin,
        AtomicOp::MaxS => Code::AtomicSMax,
        AtomicOp::MaxU => Code::AtomicUMax,
        AtomicOp::FAddHalves | AtomicOp::FAddBrainHalves | AtomicOp::IncrementU | AtomicOp::DecrementU => {
            unreachable!("`check` refuses it")
        }
    }
}

impl Emitter<'_> {
    /// The constant that names a scope.
    fn scope(&mut self, scope: MemoryScope) -> Word {
        let scope = match scope {
            MemoryScope::SubGroup => Scope::Subgroup,
            MemoryScope::WorkGroup => Scope::Workgroup,
            MemoryScope::Device => Scope::Device,
            MemoryScope::System => Scope::CrossDevice,
        };
        self.module.constant(32, scope as u64)
    }

    /// The constant that names an order of accesses to these spaces.
    fn semantics(&mut self, order: MemoryOrder, shared: bool, global: bool) -> Word {
        let mut semantics = match order {
            MemoryOrder::Relaxed => return self.module.constant(32, 0),
            MemoryOrder::Acquire => MemorySemantics::ACQUIRE,
            MemoryOrder::Release => MemorySemantics::RELEASE,
            MemoryOrder::AcquireRelease => MemorySemantics::ACQUIRE_RELEASE,
            MemoryOrder::SequentiallyConsistent => MemorySemantics::SEQUENTIALLY_CONSISTENT,
        };
        if shared {
            semantics |= MemorySemantics::WORKGROUP_MEMORY;
        }
        if global {
            semantics |= MemorySemantics::CROSS_WORKGROUP_MEMORY;
        }
        self.module.constant(32, u64::from(semantics.bits()))
    }

    /// An atomic operation; the id of the old value, if it returns that.
    pub(super) fn atomic(&mut self, op: &Op) -> Option<Word> {
        let OpKind::Atomic {
            op: atomic,
            ptr,
            values,
            order,
            scope,
        } = &op.kind
        else {
            return None;
        };
        let first = values.first().or(op.results.first());
        let ty = first.map_or(Type::I32, |&value| self.ty(value));
        if ty.bits() == 64 {
            self.module.needs(Capability::Int64Atomics);
        }
        let id = self.ty_id(ty);
        let scope = self.scope(*scope);
        // An acquiring or releasing one orders accesses to all memory, as the IR says.
        let semantics = self.semantics(*order, true, true);
        let values: Vec<Word> = values.iter().map(|&value| self.seen(value)).collect();
        let at = self.id(*ptr);
        let space = self.ty(*ptr).space().unwrap_or(Space::Generic);
        if *atomic == AtomicOp::FAdd {
            return Some(self.atomic_sum(ty, space, at, values[0], scope, *order));
        }
        let at = self.pointing_to(id, space, at);
        match atomic {
            AtomicOp::Store => {
                let operands = [at, scope, semantics, values[0]].map(Operand::IdRef).to_vec();
                self.module.act(Code::AtomicStore, operands);
                None
            }
            AtomicOp::CompareExchange => {
                let unequal = self.when_unequal(*order);
                let operands = [at, scope, semantics, unequal, values[1], values[0]];
                Some(self.module.ins(Code::AtomicCompareExchange, id, &operands))
            }
            _ => {
                let operands = [&[at, scope, semantics], &values[..]].concat();
                Some(self.module.ins(code(*atomic), id, &operands))
            }
        }
    }

    /// The order where nothing is exchanged, and so nothing released.
    fn when_unequal(&mut self, order: MemoryOrder) -> Word {
        let order = match order {
            MemoryOrder::Release => MemoryOrder::Relaxed,
            MemoryOrder::AcquireRelease => MemoryOrder::Acquire,
            other => other,
        };
        self.semantics(order, true, true)
    }

    /// Adds to a float: exchanges it for the sum, until no other write came between.
    fn atomic_sum(
        &mut self,
        ty: Type,
        space: Space,
        at: Word,
        value: Word,
        scope: Word,
        order: MemoryOrder,
    ) -> Word {
        let (id, bits) = (self.ty_id(ty), self.module.int(ty.bits()));
        let boolean = self.module.boolean();
        let at = self.pointing_to(bits, space, at);
        let (semantics, unequal) = (self.semantics(order, true, true), self.when_unequal(order));
        let relaxed = self.module.constant(32, 0);
        let first = self.module.ins(Code::AtomicLoad, bits, &[at, scope, relaxed]);
        let before = self.module.here();
        let [head, done] = [(); 2].map(|()| self.module.new_id());
        self.module.branch(head);
        self.module.begin(head);
        let block = self.module.block();
        let guess = self.module.new_id();
        let old = self.module.ins(Code::Bitcast, id, &[guess]);
        let sum = self.rounded_binary(BinaryOp::FAdd, ty, old, value);
        let sum = self.canonical(ty, sum);
        let sum = self.module.ins(Code::Bitcast, bits, &[sum]);
        let found = self.module.ins(
            Code::AtomicCompareExchange,
            bits,
            &[at, scope, semantics, unequal, sum, guess],
        );
        let same = self.module.ins(Code::IEqual, boolean, &[found, guess]);
        let operands = [same, done, head].map(Operand::IdRef).to_vec();
        self.module.close(Code::BranchConditional, operands);
        let operands = [first, before, found, head].map(Operand::IdRef).to_vec();
        let phi = Instruction::new(Code::Phi, Some(bits), Some(guess), operands);
        self.module.put_in_front(block, vec![phi]);
        self.module.begin(done);
        self.module.ins(Code::Bitcast, id, &[found])
    }

    pub(super) fn fence(&mut self, order: MemoryOrder, scope: MemoryScope) {
        let scope = self.scope(scope);
        let semantics = self.semantics(order, true, true);
        self.module.act(
            Code::MemoryBarrier,
            vec![Operand::IdRef(scope), Operand::IdRef(semantics)],
        );
    }

    /// Where all work-items of the group wait for each other; shared and global memory are ordered.
    pub(super) fn barrier(&mut self) {
        let scope = self.scope(MemoryScope::WorkGroup);
        let semantics = self.semantics(MemoryOrder::SequentiallyConsistent, true, true);
        let operands = [scope, scope, semantics].map(Operand::IdRef).to_vec();
        self.module.act(Code::ControlBarrier, operands);
    }

    /// Where all work-items of the sub-group wait for each other. Barriers with a number are refused before.
    pub(super) fn meet(&mut self) {
        let scope = self.scope(MemoryScope::SubGroup);
        let semantics = self.semantics(MemoryOrder::SequentiallyConsistent, true, true);
        let operands = [scope, scope, semantics].map(Operand::IdRef).to_vec();
        self.module.act(Code::ControlBarrier, operands);
    }
}
