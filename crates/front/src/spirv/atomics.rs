//! Atomic operations, fences and barriers, with their scopes and orders.

use rspirv::spirv::{MemorySemantics, Op, Scope};

use super::body::Operand;
use super::translate::{At, Translator};
use crate::error::{Error, Result};
use crate::ir::{AtomicOp, Builder, CompareOp, Meeting, MemoryOrder, MemoryScope, Space, Type};
use crate::middle::Values;

impl Translator<'_, '_> {
    /// Whether an instruction is an atomic operation.
    pub(crate) fn is_atomic(&self, op: Op) -> bool {
        matches!(
            op,
            Op::AtomicLoad
                | Op::AtomicStore
                | Op::AtomicExchange
                | Op::AtomicCompareExchange
                | Op::AtomicCompareExchangeWeak
                | Op::AtomicIIncrement
                | Op::AtomicIDecrement
                | Op::AtomicIAdd
                | Op::AtomicISub
                | Op::AtomicSMin
                | Op::AtomicUMin
                | Op::AtomicSMax
                | Op::AtomicUMax
                | Op::AtomicAnd
                | Op::AtomicOr
                | Op::AtomicXor
                | Op::AtomicFAddEXT
                | Op::AtomicFlagTestAndSet
                | Op::AtomicFlagClear
        )
    }

    fn scope(&self, operand: Operand) -> Result<MemoryScope> {
        let number = self.number(operand)?;
        let scope = u32::try_from(number).ok().and_then(Scope::from_u32);
        Ok(match scope {
            Some(Scope::CrossDevice) => MemoryScope::System,
            Some(Scope::Device) => MemoryScope::Device,
            Some(Scope::Workgroup) => MemoryScope::WorkGroup,
            Some(Scope::Subgroup | Scope::Invocation) => MemoryScope::SubGroup,
            _ => {
                return Err(Error::input(format!("{number} is not an OpenCL scope")).accepted(
                    "0 to 4: all devices, the device, the work-group, the sub-group, the work-item",
                ));
            }
        })
    }

    fn order(&self, operand: Operand) -> Result<MemoryOrder> {
        let number = self.number(operand)?;
        let bits = MemorySemantics::from_bits_retain(number as u32);
        Ok(match () {
            () if bits.contains(MemorySemantics::SEQUENTIALLY_CONSISTENT) => {
                MemoryOrder::SequentiallyConsistent
            }
            () if bits.contains(MemorySemantics::ACQUIRE_RELEASE) => MemoryOrder::AcquireRelease,
            () if bits.contains(MemorySemantics::ACQUIRE | MemorySemantics::RELEASE) => {
                MemoryOrder::AcquireRelease
            }
            () if bits.contains(MemorySemantics::ACQUIRE) => MemoryOrder::Acquire,
            () if bits.contains(MemorySemantics::RELEASE) => MemoryOrder::Release,
            () => MemoryOrder::Relaxed,
        })
    }

    /// An atomic operation.
    pub(crate) fn atomic(
        &mut self,
        b: &mut Builder<'_>,
        values: &mut Values,
        at: &At<'_, '_>,
        op: Op,
    ) -> Result<()> {
        // An operation with a result has its type and id in front.
        let first = match op {
            Op::AtomicStore | Op::AtomicFlagClear => 0,
            _ => 2,
        };
        let pointer = self.value(b, values, at.operand(first)?)?;
        if b.kernel.ty(pointer) == Type::Ptr(Space::Private) {
            return Err(Error::input("an atomic operation on private memory")
                .accepted("memory of the device or of the work-group"));
        }
        let scope = self.scope(at.operand(first + 1)?)?;
        let order = self.order(at.operand(first + 2)?)?;
        let value = |translator: &mut Self, b: &mut Builder<'_>, number: usize| {
            let operand = at.operand(number)?;
            translator.value(b, values, operand)
        };
        if matches!(op, Op::AtomicFlagTestAndSet | Op::AtomicFlagClear) {
            let one = b.i32(i32::from(op == Op::AtomicFlagTestAndSet));
            let code = match op {
                Op::AtomicFlagClear => AtomicOp::Store,
                _ => AtomicOp::Exchange,
            };
            let before = b.atomic(code, Type::I32, pointer, vec![one], order, scope);
            return match before {
                Some(before) => {
                    let zero = b.i32(0);
                    let set = b.compare(CompareOp::Ne, before, zero);
                    self.set(values, at, vec![set])
                }
                None => Ok(()),
            };
        }
        let operands = match op {
            Op::AtomicLoad => Vec::new(),
            Op::AtomicStore => vec![value(self, b, 3)?],
            Op::AtomicCompareExchange | Op::AtomicCompareExchangeWeak => {
                let (new, old) = (value(self, b, 6)?, value(self, b, 7)?);
                vec![old, new]
            }
            Op::AtomicIIncrement | Op::AtomicIDecrement => {
                let ty = self.module.one(at.ty()?)?;
                vec![b.constant(ty, 1)]
            }
            _ => vec![value(self, b, 5)?],
        };
        let code = match op {
            Op::AtomicLoad => AtomicOp::Load,
            Op::AtomicStore => AtomicOp::Store,
            Op::AtomicExchange => AtomicOp::Exchange,
            Op::AtomicCompareExchange | Op::AtomicCompareExchangeWeak => AtomicOp::CompareExchange,
            Op::AtomicIIncrement | Op::AtomicIAdd => AtomicOp::Add,
            Op::AtomicIDecrement | Op::AtomicISub => AtomicOp::Sub,
            Op::AtomicSMin => AtomicOp::MinS,
            Op::AtomicUMin => AtomicOp::MinU,
            Op::AtomicSMax => AtomicOp::MaxS,
            Op::AtomicUMax => AtomicOp::MaxU,
            Op::AtomicAnd => AtomicOp::And,
            Op::AtomicOr => AtomicOp::Or,
            Op::AtomicXor => AtomicOp::Xor,
            _ => AtomicOp::FAdd,
        };
        let ty = match operands.first() {
            Some(&first) => b.kernel.ty(first),
            None => self.module.one(at.ty()?)?,
        };
        if !code.takes(ty) {
            return Err(
                Error::input(format!("`Op{op:?}` of values of type {ty} is not supported"))
                    .named()
                    .accepted("numbers of 32 and 64 bits"),
            );
        }
        let before = b.atomic(code, ty, pointer, operands, order, scope);
        match before {
            Some(before) => self.set(values, at, vec![before]),
            None => Ok(()),
        }
    }

    /// `OpControlBarrier`, `OpMemoryBarrier`.
    pub(super) fn barrier(&mut self, b: &mut Builder<'_>, at: &At<'_, '_>, op: Op) -> Result<()> {
        if op == Op::MemoryBarrier {
            let scope = self.scope(at.operand(0)?)?;
            let order = self.order(at.operand(1)?)?;
            if order != MemoryOrder::Relaxed {
                b.fence(order, scope);
            }
            return Ok(());
        }
        match self.scope(at.operand(0)?)? {
            MemoryScope::WorkGroup => b.barrier(),
            MemoryScope::SubGroup => b.meet(Meeting::SubGroup(None)),
            _ => {
                return Err(Error::input("a barrier of more than a work-group")
                    .accepted("barriers of a work-group or a sub-group"));
            }
        }
        Ok(())
    }
}
