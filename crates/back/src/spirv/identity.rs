//! Who a work-item is: variables that the device fills.

use rspirv::dr::Operand;
use rspirv::spirv::{BuiltIn, Capability, Decoration, Op as Code, StorageClass, Word};

use super::emitter::Emitter;
use crate::ir::Id;

impl Emitter<'_> {
    /// The answer to a question about the work-item, 32 bits.
    pub(super) fn identity(&mut self, id: Id) -> Word {
        match id {
            Id::Local(axis) => self.along(BuiltIn::LocalInvocationId, axis),
            Id::Group(axis) => self.along(BuiltIn::WorkgroupId, axis),
            Id::GroupSize(axis) => match self.kernel.group_size {
                Some(size) => {
                    let size = size[usize::from(axis.min(2))];
                    self.module.constant(32, u64::from(size))
                }
                None => self.along(BuiltIn::WorkgroupSize, axis),
            },
            Id::GroupCount(axis) => self.along(BuiltIn::NumWorkgroups, axis),
            Id::Lane => self.of_sub_group(BuiltIn::SubgroupLocalInvocationId),
            Id::SubGroup => self.of_sub_group(BuiltIn::SubgroupId),
            Id::SubGroupSize => self.of_sub_group(BuiltIn::SubgroupSize),
            Id::MaxSubGroupSize => match self.kernel.sub_group_size.or(self.options.sub_group_size) {
                Some(size) => self.module.constant(32, u64::from(size)),
                None => self.of_sub_group(BuiltIn::SubgroupMaxSize),
            },
            Id::SubGroupCount => self.of_sub_group(BuiltIn::NumSubgroups),
        }
    }

    /// One of three sizes or positions, which OpenCL keeps in 64 bits.
    fn along(&mut self, which: BuiltIn, axis: u8) -> Word {
        let long = self.module.int(64);
        let ty = self.module.vector(long, 3);
        let variable = self.filled(which, ty);
        let all = self.module.ins(Code::Load, ty, &[variable]);
        let operands = vec![Operand::IdRef(all), Operand::LiteralBit32(u32::from(axis.min(2)))];
        let one = self.module.make(Code::CompositeExtract, long, operands);
        let int = self.module.int(32);
        self.module.ins(Code::UConvert, int, &[one])
    }

    fn of_sub_group(&mut self, which: BuiltIn) -> Word {
        let ty = self.module.int(32);
        let variable = self.filled(which, ty);
        self.module.ins(Code::Load, ty, &[variable])
    }

    /// The variable with the answer to a question.
    fn filled(&mut self, which: BuiltIn, ty: Word) -> Word {
        if let Some(&variable) = self.built_in.get(&which) {
            return variable;
        }
        if matches!(
            which,
            BuiltIn::SubgroupLocalInvocationId
                | BuiltIn::SubgroupId
                | BuiltIn::SubgroupSize
                | BuiltIn::SubgroupMaxSize
                | BuiltIn::NumSubgroups
        ) {
            // The questions are part of both; this one is in every OpenCL with sub-groups.
            self.module.needs(Capability::Groups);
        }
        let variable = self.module.variable(StorageClass::Input, ty);
        let more = vec![Operand::BuiltIn(which)];
        self.module.decorate(variable, Decoration::BuiltIn, more);
        self.module.decorate(variable, Decoration::Constant, Vec::new());
        self.interface.push(variable);
        self.built_in.insert(which, variable);
        variable
    }
}
