//! Loads with Intel's cache controls, on the GPUs that have them.
//!
//! IGC honours a control on its own builtins, `__builtin_IB_lsc_load_global_TYPE(base, offset, control)`, which a module
//! may import as a function; each becomes `load.ugm` messages with the control that was asked (read in the output of
//! IGC 1.0.12504 and 2.40 for pvc). They load words of 4 and 8 bytes, one, two or four together. Smaller elements are
//! loaded without a control, and so is everything on other devices: a control changes no result.

use rspirv::dr::Operand;
use rspirv::spirv::{Capability, Decoration, LinkageType, Op as Code, Word};

use super::SpirvTarget;
use super::emitter::Emitter;
use crate::ir::{CacheUse, LscControl, Space, Type};

/// The data of one call: the width of a word in bits, and the number of words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Words {
    bits: u32,
    count: u32,
}

impl Words {
    /// The call that loads `count` elements of a type, if there is such a builtin.
    pub(super) fn of(ty: Type, count: u32) -> Option<Words> {
        match ty {
            Type::I32 | Type::F32 => Some(Words { bits: 32, count }),
            Type::I64 | Type::F64 => Some(Words { bits: 64, count }),
            _ => None,
        }
    }

    fn builtin(self) -> String {
        let word = if self.bits == 32 { "uint" } else { "ulong" };
        match self.count {
            1 => format!("__builtin_IB_lsc_load_global_{word}"),
            count => format!("__builtin_IB_lsc_load_global_{word}{count}"),
        }
    }
}

impl Emitter<'_> {
    /// The control of a load, if this device takes it there.
    pub(super) fn control_of(&self, cache: CacheUse, space: Space) -> Option<LscControl> {
        match cache {
            CacheUse::Control(control)
                if control != LscControl::Default
                    && space == Space::Global
                    && self.options.target == SpirvTarget::IntelLsc =>
            {
                Some(control)
            }
            _ => None,
        }
    }

    /// Loads words from a pointer to bytes, as a value of the vector type `vector`.
    pub(super) fn load_controlled(
        &mut self,
        words: Words,
        from: Word,
        control: LscControl,
        vector: Word,
    ) -> Word {
        let ty = self.words_type(words);
        let function = match self.loads.iter().find(|(known, _)| *known == words) {
            Some(&(_, id)) => id,
            None => {
                let id = self.module.new_id();
                self.module.name(id, &words.builtin());
                self.loads.push((words, id));
                id
            }
        };
        let from = self.pointing_to(ty, Space::Global, from);
        let zero = self.module.constant(32, 0);
        let control = self.module.constant(32, u64::from(control.number()));
        let operands = [function, from, zero, control];
        let loaded = self.module.ins(Code::FunctionCall, ty, &operands);
        match ty == vector {
            true => loaded,
            false => self.module.ins(Code::Bitcast, vector, &[loaded]),
        }
    }

    fn words_type(&mut self, words: Words) -> Word {
        let word = self.module.int(words.bits);
        self.module.vector(word, words.count)
    }

    /// Declares the functions that were called.
    pub(super) fn import_loads(&mut self) {
        for (words, function) in std::mem::take(&mut self.loads) {
            let ty = self.words_type(words);
            let class = super::emitter::storage_class(Space::Global);
            let (pointer, int) = (self.module.pointer(class, ty), self.module.int(32));
            let parameters = [pointer, int, int].map(|ty| (self.module.new_id(), ty));
            self.module.needs(Capability::Linkage);
            let import = vec![
                Operand::LiteralString(words.builtin()),
                Operand::LinkageType(LinkageType::Import),
            ];
            self.module
                .decorate(function, Decoration::LinkageAttributes, import);
            self.module.function(function, ty, &parameters);
        }
    }
}
