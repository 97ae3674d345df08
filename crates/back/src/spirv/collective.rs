//! Shuffles, votes and reductions of a sub-group, and votes of a work-group.
//!
//! All work-items of the sub-group or work-group take part. A shuffle names a work-item by a number computed here. If there is
//! no work-item of that number, the IR defines the result as the work-item's own value; SPIR-V leaves it undefined.

use rspirv::dr::Operand;
use rspirv::spirv::{Capability, GroupOperation, Op as Code, Scope, Word};

use super::emitter::Emitter;
use crate::ir::{GroupVoteOp, Id, ReduceOp, ShuffleOp, Type, Value, VoteOp};

impl Emitter<'_> {
    /// The value of another work-item of the sub-group.
    pub(super) fn shuffle(&mut self, op: ShuffleOp, value: Value, by: Value) -> Word {
        let (int, boolean) = (self.module.int(32), self.module.boolean());
        let (own, by) = (self.seen(value), self.id(by));
        let (lane, size) = (self.identity(Id::Lane), self.identity(Id::SubGroupSize));
        let source = match op {
            ShuffleOp::Index => by,
            // Below the first: a huge number, and so outside.
            ShuffleOp::Up => self.module.ins(Code::ISub, int, &[lane, by]),
            ShuffleOp::Down => self.module.ins(Code::IAdd, int, &[lane, by]),
            ShuffleOp::Xor => self.module.ins(Code::BitwiseXor, int, &[lane, by]),
        };
        let inside = self.module.ins(Code::ULessThan, boolean, &[source, size]);
        let source = self.module.ins(Code::Select, int, &[inside, source, lane]);
        let ty = self.ty(value);
        match ty {
            // As a number: devices exchange registers.
            Type::Bool => {
                let [one, zero] = [1, 0].map(|bit| self.module.constant(32, bit));
                let number = self.module.ins(Code::Select, int, &[own, one, zero]);
                let other = self.exchange(int, number, source);
                self.module.ins(Code::INotEqual, boolean, &[other, zero])
            }
            _ => {
                let id = self.ty_id(ty);
                self.exchange(id, own, source)
            }
        }
    }

    fn exchange(&mut self, ty: Word, value: Word, source: Word) -> Word {
        self.module.needs(Capability::GroupNonUniformShuffle);
        let scope = self.module.constant(32, Scope::Subgroup as u64);
        self.module
            .ins(Code::GroupNonUniformShuffle, ty, &[scope, value, source])
    }

    /// A vote of the sub-group.
    pub(super) fn vote(&mut self, op: VoteOp, value: Value) -> Word {
        let (int, boolean) = (self.module.int(32), self.module.boolean());
        let scope = self.module.constant(32, Scope::Subgroup as u64);
        let value = self.id(value);
        match op {
            VoteOp::Any | VoteOp::All => {
                self.module.needs(Capability::Groups);
                let code = if op == VoteOp::Any {
                    Code::GroupAny
                } else {
                    Code::GroupAll
                };
                self.module.ins(code, boolean, &[scope, value])
            }
            // The bits of different work-items do not meet, so their sum is their union.
            VoteOp::Ballot => {
                self.module.needs(Capability::Groups);
                let lane = self.identity(Id::Lane);
                let [one, zero] = [1, 0].map(|bit| self.module.constant(32, bit));
                let bit = self.module.ins(Code::ShiftLeftLogical, int, &[one, lane]);
                let bit = self.module.ins(Code::Select, int, &[value, bit, zero]);
                let operands = vec![
                    Operand::IdScope(scope),
                    Operand::GroupOperation(GroupOperation::Reduce),
                    Operand::IdRef(bit),
                ];
                self.module.make(Code::GroupIAdd, int, operands)
            }
        }
    }

    /// A reduction over the sub-group.
    pub(super) fn reduce(&mut self, op: ReduceOp, value: Value) -> Word {
        let value = self.id(value);
        let (code, capability) = match op {
            ReduceOp::Add => (Code::GroupIAdd, Capability::Groups),
            ReduceOp::MinS => (Code::GroupSMin, Capability::Groups),
            ReduceOp::MinU => (Code::GroupUMin, Capability::Groups),
            ReduceOp::MaxS => (Code::GroupSMax, Capability::Groups),
            ReduceOp::MaxU => (Code::GroupUMax, Capability::Groups),
            ReduceOp::And => (
                Code::GroupNonUniformBitwiseAnd,
                Capability::GroupNonUniformArithmetic,
            ),
            ReduceOp::Or => (
                Code::GroupNonUniformBitwiseOr,
                Capability::GroupNonUniformArithmetic,
            ),
            ReduceOp::Xor => (
                Code::GroupNonUniformBitwiseXor,
                Capability::GroupNonUniformArithmetic,
            ),
        };
        self.module.needs(capability);
        self.reduced(code, Scope::Subgroup, value)
    }

    fn reduced(&mut self, code: Code, scope: Scope, value: Word) -> Word {
        let int = self.module.int(32);
        let scope = self.module.constant(32, scope as u64);
        let operands = vec![
            Operand::IdScope(scope),
            Operand::GroupOperation(GroupOperation::Reduce),
            Operand::IdRef(value),
        ];
        self.module.make(code, int, operands)
    }

    /// A vote of the work-group, which meets here: shared and global memory are ordered.
    pub(super) fn group_vote(&mut self, op: GroupVoteOp, value: Value) -> Word {
        self.barrier();
        self.module.needs(Capability::Groups);
        let value = self.id(value);
        let code = match op {
            GroupVoteOp::Any => Code::GroupAny,
            GroupVoteOp::All => Code::GroupAll,
            GroupVoteOp::Count => {
                let int = self.module.int(32);
                let [one, zero] = [1, 0].map(|bit| self.module.constant(32, bit));
                let own = self.module.ins(Code::Select, int, &[value, one, zero]);
                return self.reduced(Code::GroupIAdd, Scope::Workgroup, own);
            }
        };
        let boolean = self.module.boolean();
        let scope = self.module.constant(32, Scope::Workgroup as u64);
        self.module.ins(code, boolean, &[scope, value])
    }
}
