//! The launch requirements of an entry in its module, changed in place.

use rspirv::binary::Assemble;
use rspirv::dr::{Instruction, Operand};
use rspirv::spirv::{Capability, ExecutionMode, Op};

use super::VERSION;
use super::old::Module;
use crate::error::{Error, Result};
use crate::front::spirv::Original;

/// The first version in which an entry can require a sub-group size.
pub(super) const SUB_GROUP_SIZES: u32 = 0x0001_0100;

/// Whether an instruction requires a sub-group size.
pub(super) fn is_sub_group_size(instruction: &Instruction) -> bool {
    instruction.operands.get(1) == Some(&Operand::ExecutionMode(ExecutionMode::SubgroupSize))
}

/// The module with the entry compiled for sub-groups of a size: `intel_reqd_sub_group_size` in OpenCL C. Nothing else changes.
///
/// # Errors
/// The module cannot be written to, or its entry requires a size already.
pub(in crate::tune) fn in_sub_groups(original: &Original, size: u32) -> Result<Vec<u32>> {
    let old = Module::of(original)?;
    if old.has_sub_group {
        return Err(Error::bug(
            "an entry that requires a sub-group size is given another",
        ));
    }
    let mut capability = Vec::new();
    if !old.capabilities.contains(&(Capability::SubgroupDispatch as u32)) {
        let operands = vec![Operand::Capability(Capability::SubgroupDispatch)];
        Instruction::new(Op::Capability, None, None, operands).assemble_into(&mut capability);
    }
    let mut mode = Vec::new();
    let operands = vec![
        Operand::IdRef(original.function),
        Operand::ExecutionMode(ExecutionMode::SubgroupSize),
        Operand::LiteralBit32(size),
    ];
    Instruction::new(Op::ExecutionMode, None, None, operands).assemble_into(&mut mode);
    let mut words = original.words[..old.ends.capabilities].to_vec();
    words[VERSION] = words[VERSION].max(SUB_GROUP_SIZES);
    words.extend(capability);
    words.extend_from_slice(&original.words[old.ends.capabilities..old.ends.modes]);
    words.extend(mode);
    words.extend_from_slice(&original.words[old.ends.modes..]);
    Ok(words)
}
