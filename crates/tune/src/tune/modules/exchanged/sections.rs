//! The sections of the module, with what the new body adds to each.

use rspirv::binary::Assemble;
use rspirv::dr::Operand;
use rspirv::spirv::{ExecutionMode, Op, Word};

use super::modes;
use super::old::{self, Module};
use super::{VERSION, Writer};
use crate::error::Result;
use crate::front::spirv::words;

/// The first version with instructions of sub-groups that not all need to reach.
const NON_UNIFORM: u32 = 0x0001_0300;

/// Words for the first sections of a module.
#[derive(Default)]
struct Sections {
    capabilities: Vec<u32>,
    extensions: Vec<u32>,
    sets: Vec<u32>,
    modes: Vec<u32>,
}

impl Writer<'_> {
    /// What the new body needs in the module's first sections, and the module does not have.
    fn sections(&mut self) -> Sections {
        let mut sections = Sections::default();
        for one in &self.new.module.capabilities {
            if let Some(Operand::Capability(capability)) = one.operands.first()
                && !self.old.capabilities.contains(&(*capability as u32))
            {
                one.assemble_into(&mut sections.capabilities);
            }
        }
        for one in &self.new.module.extensions {
            if let Some(Operand::LiteralString(name)) = one.operands.first()
                && !self.old.extensions.contains(name)
            {
                one.assemble_into(&mut sections.extensions);
            }
        }
        for one in self.new.module.ext_inst_imports.clone() {
            let known = one.result_id.and_then(|id| self.ids.get(&id).copied());
            if known.is_none_or(|id| id >= self.old.bound) {
                self.renumbered(&one).assemble_into(&mut sections.sets);
            }
        }
        for one in self.new.module.execution_modes.clone() {
            let Some(&Operand::ExecutionMode(mode)) = one.operands.get(1) else {
                continue;
            };
            let said = match mode {
                // Operations that devices may fuse stay so: otherwise the entry would be slower, and have other bits.
                ExecutionMode::ContractionOff => self.old.has_contraction_off || self.original.may_fuse,
                ExecutionMode::LocalSize => self.old.has_group,
                ExecutionMode::SubgroupSize => self.old.has_sub_group,
                _ => false,
            };
            if !said {
                self.renumbered(&one).assemble_into(&mut sections.modes);
            }
        }
        sections
    }

    /// The version that the new body needs, at least.
    fn least_version(&self) -> u32 {
        let module = &self.new.module;
        let mut all = module.all_inst_iter();
        let is_non_uniform = all.any(|one| format!("{:?}", one.class.opcode).starts_with("GroupNonUniform"));
        let has_sub_group_size = module.execution_modes.iter().any(modes::is_sub_group_size);
        let non_uniform = if is_non_uniform { NON_UNIFORM } else { 0 };
        let sized = if has_sub_group_size {
            modes::SUB_GROUP_SIZES
        } else {
            0
        };
        non_uniform.max(sized)
    }

    /// The module with all of it.
    pub(super) fn joined(mut self, body: &[u32], declared: &[u32], defined: &[u32]) -> Result<Vec<u32>> {
        let Sections {
            capabilities,
            extensions,
            sets,
            modes,
        } = self.sections();
        let Module {
            words,
            ends,
            entry,
            function,
            behind_parameters,
            ..
        } = &self.old;
        let mut out = words[..5].to_vec();
        out[VERSION] = out[VERSION].max(self.least_version());
        out[old::BOUND] = self.bound;
        let mut at = 5;
        let mut copy_to = |out: &mut Vec<u32>, end: usize| {
            let end = end.max(at);
            out.extend_from_slice(&words[at..end]);
            at = end;
        };
        copy_to(&mut out, ends.capabilities);
        out.extend(capabilities);
        copy_to(&mut out, ends.extensions);
        out.extend(extensions);
        copy_to(&mut out, ends.sets);
        out.extend(sets);
        copy_to(&mut out, entry.at);
        let listed = entry.rest(entry.string(2).1);
        let new = self.interface.iter().copied().filter(|id| !listed.contains(id));
        let new: Vec<Word> = new.collect();
        let count = (1 + entry.words.len() + new.len()) as u32;
        out.push(count << 16 | u32::from(entry.code));
        out.extend(entry.words);
        out.extend(new);
        let behind_entry = entry.at + 1 + entry.words.len();
        out.extend_from_slice(&words[behind_entry..ends.modes.max(behind_entry)]);
        out.extend(modes);
        let annotated = ends.annotations.max(ends.modes).max(behind_entry);
        self.keep_annotations(&mut out)?;
        out.extend(&self.annotations);
        out.extend_from_slice(&words[annotated..ends.globals]);
        out.extend(&self.globals);
        out.extend(declared);
        out.extend_from_slice(&words[ends.globals..*behind_parameters]);
        out.extend(body);
        out.extend_from_slice(&words[function.1..]);
        out.extend(defined);
        Ok(out)
    }

    /// Names and decorations of the old body go with it; the others stay.
    fn keep_annotations(&self, out: &mut Vec<u32>) -> Result<()> {
        let Module {
            words, ends, inside, ..
        } = &self.old;
        for one in words::instructions(words, ends.modes) {
            let one = one?;
            if one.at >= ends.annotations {
                break;
            }
            let end = one.at + 1 + one.words.len();
            match one.op {
                Some(Op::Name | Op::Decorate | Op::DecorateId | Op::DecorateString)
                    if one.words.first().is_some_and(|id| inside.contains(id)) => {}
                Some(Op::GroupDecorate) => {
                    let kept = one.words.iter().filter(|id| !inside.contains(id)).copied();
                    let kept: Vec<u32> = kept.collect();
                    out.push((kept.len() as u32 + 1) << 16 | u32::from(one.code));
                    out.extend(kept);
                }
                _ => out.extend_from_slice(&words[one.at..end]),
            }
        }
        Ok(())
    }
}
