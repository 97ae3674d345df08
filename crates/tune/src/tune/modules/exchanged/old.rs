//! Facts about the module in which a kernel is replaced.

use std::collections::{HashMap, HashSet};

use rspirv::spirv::{Decoration, ExecutionMode, Op, Word};

use crate::error::{Error, Result};
use crate::front::spirv::Original;
use crate::front::spirv::words::{self, Instruction as Old};

/// The word of the header that says how many ids there are.
pub(super) const BOUND: usize = 3;
/// Ids of a rewritten module are below this: the bound that the specification guarantees for every consumer.
const MOST_IDS: Word = 4_194_303;

/// The sections of a module that something is added to, as the words where they end.
#[derive(Default)]
pub(super) struct Ends {
    pub capabilities: usize,
    pub extensions: usize,
    pub sets: usize,
    pub modes: usize,
    pub annotations: usize,
    pub globals: usize,
}

/// The facts about the old module.
pub(super) struct Module<'w> {
    pub words: &'w [u32],
    pub ends: Ends,
    pub entry: Old<'w>,
    pub function: (usize, usize),
    /// The first instruction of the function behind its parameters, as a word.
    pub behind_parameters: usize,
    pub parameters: Vec<(Word, Word)>,
    pub capabilities: HashSet<u32>,
    pub extensions: HashSet<String>,
    pub sets: HashMap<String, Word>,
    /// Types and constants: code, type and operands, without the id.
    pub known: HashMap<(u16, Vec<u32>), Word>,
    /// The pointee of pointer types, and their class.
    pub pointers: HashMap<Word, (u32, Word)>,
    pub types: HashMap<Word, Word>,
    pub built_in: HashMap<(u32, Word), Word>,
    pub imported: HashMap<String, Word>,
    pub has_contraction_off: bool,
    pub has_group: bool,
    pub has_sub_group: bool,
    /// Ids of the old body.
    pub inside: HashSet<Word>,
    /// Ids of the module are below.
    pub bound: Word,
}

impl<'w> Module<'w> {
    /// Goes over a module.
    ///
    /// # Errors
    /// Its sections are not in the specification's order, or it has too many ids.
    pub(crate) fn of(original: &'w Original) -> Result<Module<'w>> {
        let words = original.words.as_slice();
        let entry = words::instructions(words, 0)
            .filter_map(Result::ok)
            .find(|one| one.op == Some(Op::EntryPoint) && one.words.get(1) == Some(&original.function))
            .ok_or_else(|| Error::bug("an entry point that was found is lost"))?;
        let mut module = Module {
            words,
            ends: Ends::default(),
            entry,
            function: (0, 0),
            behind_parameters: 0,
            parameters: Vec::new(),
            capabilities: HashSet::new(),
            extensions: HashSet::new(),
            sets: HashMap::new(),
            known: HashMap::new(),
            pointers: HashMap::new(),
            types: HashMap::new(),
            built_in: HashMap::new(),
            imported: HashMap::new(),
            has_contraction_off: false,
            has_group: false,
            has_sub_group: false,
            inside: HashSet::new(),
            bound: words[BOUND],
        };
        let mut built_ins: HashMap<Word, u32> = HashMap::new();
        // The function that an instruction is in.
        let mut current: Option<Word> = None;
        for one in words::instructions(words, 0) {
            let one = one?;
            // Regardless of the header.
            let next = one.result().map_or(0, |id| id.saturating_add(1));
            module.bound = module.bound.max(next);
            let Some(op) = one.op else { continue };
            if op == Op::Function {
                current = one.result();
                if module.ends.globals == 0 {
                    module.ends.globals = one.at;
                }
            }
            match current {
                Some(function) if function == original.body => module.of_body(op, &one)?,
                Some(_) => {}
                None => module.outside(op, &one, original.function, &mut built_ins)?,
            }
            if op == Op::FunctionEnd {
                current = None;
            }
        }
        module.in_order()
    }

    /// Notes an instruction of the entry's function.
    fn of_body(&mut self, op: Op, one: &Old<'_>) -> Result<()> {
        let end = one.at + 1 + one.words.len();
        match op {
            Op::Function => (self.function.0, self.behind_parameters) = (one.at, end),
            Op::FunctionEnd => self.function.1 = one.at,
            Op::FunctionParameter => {
                self.parameters.push((one.word(1)?, one.word(0)?));
                self.behind_parameters = end;
            }
            _ => self.inside.extend(one.result()),
        }
        Ok(())
    }

    /// Notes an instruction in front of all functions. `function` is the entry's.
    fn outside(
        &mut self,
        op: Op,
        one: &Old<'_>,
        function: Word,
        built_ins: &mut HashMap<Word, u32>,
    ) -> Result<()> {
        let end = one.at + 1 + one.words.len();
        match op {
            Op::Capability => {
                self.capabilities.insert(one.word(0)?);
                self.ends.capabilities = end;
            }
            Op::Extension => {
                self.extensions.insert(one.string(0).0);
                self.ends.extensions = end;
            }
            Op::ExtInstImport => {
                self.sets.insert(one.string(1).0, one.word(0)?);
                self.ends.sets = end;
            }
            Op::EntryPoint => self.ends.modes = end,
            Op::ExecutionMode | Op::ExecutionModeId => {
                self.ends.modes = end;
                if one.word(0)? == function {
                    let mode = ExecutionMode::from_u32(one.word(1)?);
                    self.has_contraction_off |= mode == Some(ExecutionMode::ContractionOff);
                    self.has_group |=
                        matches!(mode, Some(ExecutionMode::LocalSize | ExecutionMode::LocalSizeId));
                    self.has_sub_group |= mode == Some(ExecutionMode::SubgroupSize);
                }
            }
            Op::Decorate => {
                self.ends.annotations = end;
                let (target, decoration) = (one.word(0)?, one.word(1)?);
                if decoration == Decoration::BuiltIn as u32 {
                    built_ins.insert(target, one.word(2)?);
                }
                if decoration == Decoration::LinkageAttributes as u32 {
                    let (name, behind) = one.string(2);
                    if one.words.get(behind) == Some(&1) {
                        self.imported.insert(name, target);
                    }
                }
            }
            Op::MemberDecorate
            | Op::DecorateId
            | Op::DecorateString
            | Op::MemberDecorateString
            | Op::DecorationGroup
            | Op::GroupDecorate
            | Op::GroupMemberDecorate => self.ends.annotations = end,
            _ => self.global(one, built_ins)?,
        }
        Ok(())
    }

    /// The module, if its sections are in the specification's order: a section that it does not have ends where the one before
    /// does.
    fn in_order(mut self) -> Result<Module<'w>> {
        let ends = &mut self.ends;
        let first = |end: usize, before: usize| if end == 0 { before } else { end };
        ends.capabilities = first(ends.capabilities, 5);
        ends.extensions = first(ends.extensions, ends.capabilities);
        ends.sets = first(ends.sets, ends.extensions);
        if ends.annotations == 0 {
            // In front of the first type.
            let mut all = words::instructions(self.words, 0).filter_map(Result::ok);
            let first = all.find(|one| one.name().starts_with("OpType"));
            ends.annotations = first.map_or(ends.globals, |one| one.at);
        }
        if self.bound > MOST_IDS {
            return Err(Error::input("the module has too many ids").accepted(format!("ids below {MOST_IDS}")));
        }
        let Ends {
            capabilities,
            extensions,
            sets,
            modes,
            annotations,
            globals,
        } = self.ends;
        let (start, end) = self.function;
        let entry = self.entry.at;
        let behind = self.behind_parameters;
        let order = [
            5,
            capabilities,
            extensions,
            sets,
            entry,
            modes,
            annotations,
            globals,
            start,
            behind,
            end,
        ];
        match order.is_sorted() && entry < modes && start < behind {
            true => Ok(self),
            false => Err(Error::input(
                "the module's sections are not in the order of the specification: nothing can be put into it",
            )),
        }
    }

    /// Notes a type, constant or variable.
    fn global(&mut self, one: &Old<'_>, built_ins: &HashMap<Word, u32>) -> Result<()> {
        let (Some(op), Some(id)) = (one.op, one.result()) else {
            return Ok(());
        };
        let is_type = one.name().starts_with("OpType");
        if !is_type {
            self.types.insert(id, one.word(0)?);
        }
        match op {
            Op::Variable => {
                if let Some(&built_in) = built_ins.get(&id) {
                    self.built_in.insert((built_in, one.word(0)?), id);
                }
            }
            // Structures that look alike may be decorated differently.
            Op::TypeStruct => {}
            _ => {
                if op == Op::TypePointer {
                    self.pointers.insert(id, (one.word(1)?, one.word(2)?));
                }
                let key: Vec<u32> = match is_type {
                    true => one.rest(1).to_vec(),
                    false => one.words.iter().take(1).chain(one.rest(2)).copied().collect(),
                };
                self.known.entry((one.code, key)).or_insert(id);
            }
        }
        Ok(())
    }
}
