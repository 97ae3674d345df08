//! What work-items do together: `atom`, `red`, fences, shuffles, votes.
//!
//! A shuffle or vote must name all 32 work-items of the sub-group: the IR knows no smaller party.

use super::structure::{Translator, Values};
use super::tree::{Instruction, Operand};
use super::values::{last_type, only, operands, refused};
use crate::error::{Error, Result};
use crate::ir::{
    AtomicOp, BinaryOp, Builder, CompareOp, Id, MemoryOrder, MemoryScope, OpKind, ShuffleOp, Space, Type,
    Value, VoteOp,
};

/// Words that say how an atomic operation orders, for whom, and where.
const ORDERING: &[&str] = &[
    "relaxed",
    "acquire",
    "release",
    "acq_rel",
    "cta",
    "gpu",
    "global",
    "shared",
    "shared::cta",
];

/// The order that an instruction names, or else this one.
fn order(instruction: &Instruction<'_>, otherwise: MemoryOrder) -> MemoryOrder {
    let named = instruction.modifiers.iter().find_map(|word| match *word {
        "relaxed" => Some(MemoryOrder::Relaxed),
        "acquire" => Some(MemoryOrder::Acquire),
        "release" => Some(MemoryOrder::Release),
        "acq_rel" => Some(MemoryOrder::AcquireRelease),
        "sc" => Some(MemoryOrder::SequentiallyConsistent),
        _ => None,
    });
    named.unwrap_or(otherwise)
}

fn scope(instruction: &Instruction<'_>) -> MemoryScope {
    match instruction.has("cta") {
        true => MemoryScope::WorkGroup,
        false => MemoryScope::Device,
    }
}

/// Whether a load or store is an atomic one: it names a scope with its order.
pub(super) fn is_atomic_access(instruction: &Instruction<'_>) -> bool {
    ["relaxed", "acquire", "release"]
        .into_iter()
        .any(|word| instruction.has(word))
}

impl<'t> Translator<'_, 't> {
    /// One of the instructions of this file.
    pub fn together(
        &mut self,
        b: &mut Builder<'_>,
        values: &mut Values,
        instruction: &Instruction<'t>,
    ) -> Result<()> {
        match instruction.opcode {
            "atom" | "red" => self.atomic(b, values, instruction),
            "membar" | "fence" => fence(b, instruction),
            "shfl" => self.shuffle(b, values, instruction),
            "vote" => self.vote(b, values, instruction),
            _ => Err(refused(instruction)),
        }
    }

    /// `atom.global.add.u32 d, [a], b` and `red.global.add.u32 [a], b`.
    fn atomic(
        &mut self,
        b: &mut Builder<'_>,
        values: &mut Values,
        instruction: &Instruction<'t>,
    ) -> Result<()> {
        let ty = last_type(instruction)?;
        let names = ["and", "or", "xor", "cas", "exch", "add", "min", "max"];
        let name = instruction
            .modifiers
            .iter()
            .copied()
            .find(|word| names.contains(word));
        let name = name.ok_or_else(|| refused(instruction))?;
        only(instruction, &[ORDERING, &[name]].concat())?;
        let (to, address, arguments) = match (&instruction.operands[..], instruction.opcode) {
            ([to, address, arguments @ ..], "atom") => (Some(to), address, arguments),
            ([address, arguments @ ..], "red") => (None, address, arguments),
            _ => return Err(refused(instruction)),
        };
        let op = match (name, ty.signed, ty.ty.is_float()) {
            ("and", ..) => AtomicOp::And,
            ("or", ..) => AtomicOp::Or,
            ("xor", ..) => AtomicOp::Xor,
            ("cas", ..) => AtomicOp::CompareExchange,
            ("exch", ..) => AtomicOp::Exchange,
            ("add", _, true) => AtomicOp::FAdd,
            ("add", ..) => AtomicOp::Add,
            ("min", true, _) => AtomicOp::MinS,
            ("min", ..) => AtomicOp::MinU,
            (_, true, _) => AtomicOp::MaxS,
            _ => AtomicOp::MaxU,
        };
        if arguments.len() != op.operands() || !op.takes(ty.ty) {
            return Err(refused(instruction));
        }
        let pointer = self.shared_by_all(b, values, instruction, address)?;
        let mut given = Vec::with_capacity(arguments.len());
        for argument in arguments {
            given.push(self.value(b, values, argument, ty.ty)?);
        }
        let kind = OpKind::Atomic {
            op,
            ptr: pointer,
            values: given,
            order: order(instruction, MemoryOrder::Relaxed),
            scope: scope(instruction),
        };
        let before = b.push(kind, &[ty.ty])[0];
        match to {
            Some(to) => self.set(b, values, to, before, false),
            None => Ok(()),
        }
    }

    /// The address of an access that others see: not private memory.
    fn shared_by_all(
        &mut self,
        b: &mut Builder<'_>,
        values: &Values,
        instruction: &Instruction<'t>,
        address: &Operand<'t>,
    ) -> Result<Value> {
        let pointer = self.access(b, values, instruction, address)?;
        match b.kernel.ty(pointer) {
            Type::Ptr(Space::Private) => Err(Error::input(format!(
                "`{}` goes to local memory",
                instruction.spelling()
            ))),
            _ => Ok(pointer),
        }
    }

    /// `ld.acquire.gpu.u32` and its like: a load that is an atomic operation.
    pub fn atomic_load(
        &mut self,
        b: &mut Builder<'_>,
        values: &mut Values,
        instruction: &Instruction<'t>,
    ) -> Result<()> {
        only(instruction, ORDERING)?;
        let [to, from] = operands::<2>(instruction)?;
        self.atomic_access(b, values, instruction, AtomicOp::Load, from, to)
    }

    /// `st.release.gpu.u32` and its like.
    pub fn atomic_store(
        &mut self,
        b: &mut Builder<'_>,
        values: &mut Values,
        instruction: &Instruction<'t>,
    ) -> Result<()> {
        only(instruction, ORDERING)?;
        let [to, from] = operands::<2>(instruction)?;
        self.atomic_access(b, values, instruction, AtomicOp::Store, to, from)
    }

    fn atomic_access(
        &mut self,
        b: &mut Builder<'_>,
        values: &mut Values,
        instruction: &Instruction<'t>,
        op: AtomicOp,
        address: &Operand<'t>,
        other: &Operand<'t>,
    ) -> Result<()> {
        let ty = last_type(instruction)?;
        let order = order(instruction, MemoryOrder::Relaxed);
        if !op.takes(ty.ty) || !op.can_be(order) {
            return Err(refused(instruction));
        }
        let pointer = self.shared_by_all(b, values, instruction, address)?;
        let given = match op {
            AtomicOp::Store => vec![self.value(b, values, other, ty.ty)?],
            _ => Vec::new(),
        };
        let results: &[Type] = if op.has_result() { &[ty.ty] } else { &[] };
        let kind = OpKind::Atomic {
            op,
            ptr: pointer,
            values: given,
            order,
            scope: scope(instruction),
        };
        match b.push(kind, results)[..] {
            [loaded] => self.set(b, values, other, loaded, ty.signed),
            _ => Ok(()),
        }
    }

    /// `shfl.sync.down.b32 d|p, a, b, c, mask`. The number of the source is computed as PTX defines it; where
    /// the whole sub-group takes part that is one of the IR's own ways.
    fn shuffle(
        &mut self,
        b: &mut Builder<'_>,
        values: &mut Values,
        instruction: &Instruction<'t>,
    ) -> Result<()> {
        only(instruction, &["sync", "up", "down", "bfly", "idx"])?;
        let [to, from, by, limits, mask] = operands::<5>(instruction)?;
        self.all_take_part(b, values, instruction, mask)?;
        let (to, within) = match to {
            Operand::Pair(to, within) => (&**to, Some(&**within)),
            to => (to, None),
        };
        let limits = self.value(b, values, limits, Type::I32)?;
        let Some(limits) = b.kernel.as_constant(limits) else {
            return Err(Error::input(format!(
                "`{}` between parts of a sub-group that only the run tells",
                instruction.spelling()
            ))
            .accepted("a constant as the fourth operand"));
        };
        let (clamp, segment) = (limits as u32 & 31, limits as u32 >> 8 & 31);
        let value = match from {
            Operand::Register(register) => self.get(b, values, *register)?,
            other => self.value(b, values, other, Type::I32)?,
        };
        let value = match b.kernel.ty(value) {
            Type::I32 | Type::F32 => value,
            _ => self.retyped(b, value, Type::I32)?,
        };
        let by = self.value(b, values, by, Type::I32)?;
        let low = b.i32(31);
        let by = b.and(by, low);
        let up = instruction.has("up");
        let op = match instruction.modifiers.get(1).copied() {
            Some("up") => ShuffleOp::Up,
            Some("down") => ShuffleOp::Down,
            Some("bfly") => ShuffleOp::Xor,
            Some("idx") => ShuffleOp::Index,
            _ => return Err(refused(instruction)),
        };
        let whole = segment == 0 && clamp == if up { 0 } else { 31 };
        let lane = b.id(Id::Lane);
        let inside = |b: &mut Builder<'_>, bits: u32, value: Value| {
            let bits = b.i32(bits as i32);
            b.and(value, bits)
        };
        // The numbers of PTX: the first and last of the lane's own part.
        let first = inside(b, segment, lane);
        let rest = b.i32((clamp & !segment) as i32);
        let last = b.binary(BinaryOp::Or, first, rest);
        let source = match op {
            ShuffleOp::Up => b.sub(lane, by),
            ShuffleOp::Down => b.add(lane, by),
            ShuffleOp::Xor => b.binary(BinaryOp::Xor, lane, by),
            ShuffleOp::Index => {
                let own = inside(b, 31 & !segment, by);
                b.binary(BinaryOp::Or, first, own)
            }
        };
        let is_there = match up {
            true => b.compare(CompareOp::LeS, last, source),
            false => b.compare(CompareOp::LeS, source, last),
        };
        let result = match whole {
            true => b.shuffle(op, value, by),
            false => {
                let source = b.select(is_there, source, lane);
                b.shuffle(ShuffleOp::Index, value, source)
            }
        };
        if let Some(within) = within {
            self.set(b, values, within, is_there, false)?;
        }
        self.set(b, values, to, result, false)
    }

    /// Refuses a mask that is not, or may not be, of the whole sub-group.
    fn all_take_part(
        &mut self,
        b: &mut Builder<'_>,
        values: &Values,
        instruction: &Instruction<'t>,
        mask: &Operand<'t>,
    ) -> Result<()> {
        let mask = self.value(b, values, mask, Type::I32)?;
        match b.kernel.as_constant(mask) {
            Some(mask) if mask == Type::I32.mask() && instruction.has("sync") => Ok(()),
            _ => Err(Error::input(format!(
                "`{}` for a part of the sub-group, or without `.sync`, is not supported",
                instruction.spelling()
            ))
            .accepted("`.sync` with the mask -1")),
        }
    }

    /// `vote.sync.any.pred p, q, mask`.
    fn vote(
        &mut self,
        b: &mut Builder<'_>,
        values: &mut Values,
        instruction: &Instruction<'t>,
    ) -> Result<()> {
        only(instruction, &["sync", "all", "any", "uni", "ballot"])?;
        let [to, from, mask] = operands::<3>(instruction)?;
        self.all_take_part(b, values, instruction, mask)?;
        let asked = self.value(b, values, from, Type::Bool)?;
        let result = match instruction.modifiers.get(1).copied() {
            Some("all") => b.vote(VoteOp::All, asked),
            Some("any") => b.vote(VoteOp::Any, asked),
            Some("ballot") => b.vote(VoteOp::Ballot, asked),
            Some("uni") => {
                let all = b.vote(VoteOp::All, asked);
                let any = b.vote(VoteOp::Any, asked);
                b.compare(CompareOp::Eq, all, any)
            }
            _ => return Err(refused(instruction)),
        };
        self.set(b, values, to, result, false)
    }
}

/// `membar.gl`, `fence.acq_rel.gpu`.
fn fence(b: &mut Builder<'_>, instruction: &Instruction<'_>) -> Result<()> {
    only(
        instruction,
        &["sc", "acq_rel", "acquire", "release", "cta", "gpu", "gl"],
    )?;
    b.fence(
        order(instruction, MemoryOrder::SequentiallyConsistent),
        scope(instruction),
    );
    Ok(())
}
