//! Which operands of an instruction are ids.

use rspirv::spirv::Op;

use super::words::Instruction;

/// Functions that are known by name, whether or not the module has a body for them.
pub(super) fn is_builtin(name: &str) -> bool {
    name.starts_with("__builtin_IB_lsc_")
}

/// The operands of an instruction that are ids and may be held by registers.
pub(super) fn ids<'w>(instruction: &Instruction<'w>) -> Vec<u32> {
    let words = instruction.words;
    let rest = |from: usize| words.get(from..).unwrap_or_default().to_vec();
    let some = |from: usize, to: usize| words.get(from..to.min(words.len())).unwrap_or_default().to_vec();
    match instruction.op {
        None | Some(Op::Phi | Op::Variable | Op::Undef) => Vec::new(),
        Some(Op::Load | Op::CompositeExtract | Op::GenericCastToPtrExplicit) => some(2, 3),
        Some(Op::Store | Op::CopyMemory) => some(0, 2),
        Some(Op::CopyMemorySized) => some(0, 3),
        Some(Op::LifetimeStart | Op::LifetimeStop) => some(0, 1),
        Some(Op::CompositeInsert | Op::VectorShuffle) => some(2, 4),
        Some(Op::FunctionCall) => rest(3),
        Some(Op::ExtInst) => rest(4),
        Some(
            Op::GroupIAdd
            | Op::GroupFAdd
            | Op::GroupFMin
            | Op::GroupUMin
            | Op::GroupSMin
            | Op::GroupFMax
            | Op::GroupUMax
            | Op::GroupSMax
            | Op::GroupIMulKHR
            | Op::GroupFMulKHR
            | Op::GroupBitwiseAndKHR
            | Op::GroupBitwiseOrKHR
            | Op::GroupBitwiseXorKHR
            | Op::GroupLogicalAndKHR
            | Op::GroupLogicalOrKHR
            | Op::GroupLogicalXorKHR
            | Op::GroupNonUniformIAdd
            | Op::GroupNonUniformFAdd
            | Op::GroupNonUniformIMul
            | Op::GroupNonUniformFMul
            | Op::GroupNonUniformSMin
            | Op::GroupNonUniformUMin
            | Op::GroupNonUniformFMin
            | Op::GroupNonUniformSMax
            | Op::GroupNonUniformUMax
            | Op::GroupNonUniformFMax
            | Op::GroupNonUniformBitwiseAnd
            | Op::GroupNonUniformBitwiseOr
            | Op::GroupNonUniformBitwiseXor
            | Op::GroupNonUniformLogicalAnd
            | Op::GroupNonUniformLogicalOr
            | Op::GroupNonUniformLogicalXor
            | Op::GroupNonUniformBallotBitCount,
        ) => rest(4),
        Some(_) => match instruction.result() {
            Some(_) => rest(2),
            None => rest(0),
        },
    }
}
