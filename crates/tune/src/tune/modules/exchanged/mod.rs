//! Replacing a kernel in its SPIR-V module.
//!
//! ```text
//! before                                   after
//! … types, constants                       … types, constants, those that are new
//! %k = OpFunction %void None %type         %k = OpFunction %void None %type
//! %p = OpFunctionParameter %ptr            %p = OpFunctionParameter %ptr
//! … the old body                           %q = OpBitcast %ptr_to_bytes %p;  … the new body
//! OpFunctionEnd                            OpFunctionEnd
//! … the other functions                    … the other functions
//! ```
//!
//! An entry that only calls a function of its name keeps that call, and the function gets the new body: compilers treat one or
//! the other as the kernel. The entry keeps its id, name, parameters, decorations and execution modes, so that the host notices
//! nothing. Names and decorations of the old body's ids are removed with it; everything else stays word for word. Existing
//! types are reused, because a module may declare each only once.

mod modes;
mod old;
mod sections;

use std::collections::{HashMap, HashSet};

use rspirv::binary::Assemble;
use rspirv::dr::{Instruction, Operand};
use rspirv::spirv::{BuiltIn, Decoration, Op, StorageClass, Word};

use crate::back::spirv::{Options, Parts, parts};
use crate::error::{Error, Result};
use crate::front::spirv::{Origin, Original};
use crate::ir::Kernel;
pub(in crate::tune) use modes::in_sub_groups;
use old::Module;

/// The word of the header that has the version.
const VERSION: usize = 1;

/// The first version in which an entry point lists all variables.
const LISTS_ALL: u32 = 0x0001_0400;

/// Replaces the body of the entry that a kernel was read from. The old body is not analysed.
///
/// # Errors
/// The kernel cannot stand there, or means something that OpenCL devices do not do.
pub fn exchanged(original: &Original, kernel: &Kernel, options: &Options) -> Result<Vec<u32>> {
    if let Some(why) = &original.undecided {
        return Err(why
            .clone()
            .about(format!("entry `{}` cannot be written back", original.entry)));
    }
    let options = Options {
        lines: false,
        ..options.clone()
    };
    let new = parts(kernel, &options)?;
    let old = Module::of(original)?;
    Writer {
        bound: old.bound,
        old,
        new,
        original,
        ids: HashMap::new(),
        globals: Vec::new(),
        annotations: Vec::new(),
        interface: Vec::new(),
    }
    .write()
}

struct Writer<'w> {
    old: Module<'w>,
    new: Parts,
    original: &'w Original,
    /// New ids by those of the kernel's own module.
    ids: HashMap<Word, Word>,
    bound: Word,
    globals: Vec<u32>,
    annotations: Vec<u32>,
    /// Variables that the entry point has to list.
    interface: Vec<Word>,
}

impl Writer<'_> {
    fn fresh(&mut self) -> Word {
        self.bound += 1;
        self.bound - 1
    }

    /// The id in the module of one in the kernel's own.
    fn id(&mut self, id: Word) -> Word {
        if let Some(&known) = self.ids.get(&id) {
            return known;
        }
        let fresh = self.fresh();
        self.ids.insert(id, fresh);
        fresh
    }

    /// An instruction with the module's ids.
    fn renumbered(&mut self, instruction: &Instruction) -> Instruction {
        let mut made = instruction.clone();
        made.result_type = made.result_type.map(|id| self.id(id));
        made.result_id = made.result_id.map(|id| self.id(id));
        for operand in &mut made.operands {
            if let Some(id) = operand.id_ref_any_mut() {
                *id = self.id(*id);
            }
        }
        made
    }

    /// A type or constant of the module, which is made if it is not there.
    fn make(&mut self, op: Op, ty: Option<Word>, operands: Vec<Operand>) -> Word {
        let sought = Instruction::new(op, ty, Some(0), operands);
        if let Some(known) = self.known(&sought) {
            return known;
        }
        let id = self.fresh();
        self.add(Instruction {
            result_id: Some(id),
            ..sought
        });
        id
    }

    /// The module's existing types and constants.
    fn known(&self, instruction: &Instruction) -> Option<Word> {
        let (code, key) = key(instruction);
        match instruction.class.opcode {
            Op::TypeStruct | Op::Variable => None,
            _ => self.old.known.get(&(code, key)).copied(),
        }
    }

    /// Adds a type, constant or variable.
    fn add(&mut self, instruction: Instruction) {
        let (code, key) = key(&instruction);
        if let Some(id) = instruction.result_id {
            if instruction.class.opcode == Op::TypePointer
                && let [class, pointee] = key[..]
            {
                self.old.pointers.insert(id, (class, pointee));
            }
            self.old.known.entry((code, key)).or_insert(id);
        }
        instruction.assemble_into(&mut self.globals);
    }

    fn write(mut self) -> Result<Vec<u32>> {
        let entry = self.new.module.entry_points[0].clone();
        let own_function = entry.operands[1].id_ref_any().unwrap_or_default();
        self.ids.insert(own_function, self.original.function);
        self.sets();
        self.imports();
        let handed = self.handed()?;
        self.global_section(&handed)?;
        let body = self.body(own_function, handed)?;
        let (declared, defined) = self.helpers(own_function);
        self.decorations(own_function);
        self.joined(&body, &declared, &defined)
    }

    /// The set of extended instructions is the module's own.
    fn sets(&mut self) {
        for import in self.new.module.ext_inst_imports.clone() {
            if let (Some(Operand::LiteralString(name)), Some(id)) =
                (import.operands.first(), import.result_id)
                && let Some(&known) = self.old.sets.get(name)
            {
                self.ids.insert(id, known);
            }
        }
    }

    /// Functions that both import are those of the module.
    fn imports(&mut self) {
        for one in &self.new.module.annotations {
            if let [
                Operand::IdRef(id),
                Operand::Decoration(Decoration::LinkageAttributes),
                Operand::LiteralString(name),
                ..,
            ] = &one.operands[..]
                && let Some(&known) = self.old.imported.get(name)
            {
                self.ids.insert(*id, known);
            }
        }
    }

    /// Shared arrays that are memory of the old module: the variable in the kernel's own, and where it comes from.
    fn handed(&self) -> Result<HashMap<Word, Origin>> {
        let origin = |name: &str| {
            let mut all = self.original.arrays.iter();
            all.find(|(own, _)| own == name).map(|(_, origin)| origin.clone())
        };
        let arrays = self.new.arrays.iter();
        Ok(arrays
            .filter_map(|(name, variable)| Some((*variable, origin(name)?)))
            .collect())
    }

    fn global_section(&mut self, handed: &HashMap<Word, Origin>) -> Result<()> {
        let built_ins: HashMap<Word, BuiltIn> = self
            .new
            .module
            .annotations
            .iter()
            .filter_map(|one| match one.operands[..] {
                [
                    Operand::IdRef(id),
                    Operand::Decoration(Decoration::BuiltIn),
                    Operand::BuiltIn(which),
                ] => Some((id, which)),
                _ => None,
            })
            .collect();
        for own in self.new.module.types_global_values.clone() {
            let Some(id) = own.result_id else { continue };
            let is_variable = own.class.opcode == Op::Variable;
            // Memory that the entry is given is no variable of its own.
            if is_variable && handed.contains_key(&id) {
                continue;
            }
            let mut made = own.clone();
            made.result_type = made.result_type.map(|id| self.id(id));
            for operand in &mut made.operands {
                if let Some(id) = operand.id_ref_any_mut() {
                    *id = self.id(*id);
                }
            }
            let known = match (built_ins.get(&id), made.result_type) {
                (Some(&which), Some(ty)) if is_variable => {
                    self.old.built_in.get(&(which as u32, ty)).copied()
                }
                _ => self.known(&made),
            };
            let own = match known {
                Some(known) => {
                    self.ids.insert(id, known);
                    known
                }
                None => {
                    let fresh = self.id(id);
                    made.result_id = Some(fresh);
                    self.add(made.clone());
                    fresh
                }
            };
            let is_input = made.operands.first() == Some(&Operand::StorageClass(StorageClass::Input));
            if is_variable && (is_input || self.old.words[VERSION] >= LISTS_ALL) {
                self.interface.push(own);
            }
        }
        Ok(())
    }

    /// The new body: the kernel's blocks, the first of which starts with the code that makes the kernel's parameters.
    fn body(&mut self, own_function: Word, handed: HashMap<Word, Origin>) -> Result<Vec<u32>> {
        let functions = self.new.module.functions.clone();
        let function = functions
            .into_iter()
            .find(|function| function.def.as_ref().and_then(|def| def.result_id) == Some(own_function))
            .ok_or_else(|| Error::bug("the kernel was not written"))?;
        let mut casts: Vec<u32> = Vec::new();
        for (own, origin) in function.parameters.iter().zip(&self.original.parameters.clone()) {
            let (Some(id), Some(ty)) = (own.result_id, own.result_type) else {
                continue;
            };
            let ty = self.id(ty);
            let made = self.given(origin, ty, &mut casts)?;
            self.ids.insert(id, made);
        }
        let mut arrays: Vec<(Word, Origin)> = handed.into_iter().collect();
        arrays.sort_by_key(|(variable, _)| *variable);
        for (variable, origin) in arrays {
            let globals = &self.new.module.types_global_values;
            let own = globals.iter().find(|one| one.result_id == Some(variable));
            let ty = own.and_then(|own| own.result_type).unwrap_or_default();
            let ty = self.id(ty);
            let made = self.given(&origin, ty, &mut casts)?;
            self.ids.insert(variable, made);
        }
        let mut words = Vec::new();
        for (number, block) in function.blocks.iter().enumerate() {
            if let Some(label) = &block.label {
                self.renumbered(label).assemble_into(&mut words);
            }
            let is_variable = |one: &&Instruction| one.class.opcode == Op::Variable;
            let variables = block.instructions.iter().take_while(is_variable).count();
            for (position, one) in block.instructions.iter().enumerate() {
                if number == 0 && position == variables {
                    words.extend(&casts);
                }
                self.renumbered(one).assemble_into(&mut words);
            }
        }
        Ok(words)
    }

    /// The kernel's argument for a parameter, as a value of a type: instructions that make it, if needed.
    fn given(&mut self, origin: &Origin, ty: Word, into: &mut Vec<u32>) -> Result<Word> {
        let lost = || Error::input("a parameter of the entry is defined in no way that can be written back");
        match *origin {
            Origin::Parameter(number) => {
                let (id, own) = *self.old.parameters.get(number).ok_or_else(lost)?;
                Ok(self.cast(id, own, ty, into))
            }
            Origin::Variable { id, .. } => {
                let own = *self.old.types.get(&id).ok_or_else(lost)?;
                Ok(self.cast(id, own, ty, into))
            }
            Origin::Part(number, offset) => {
                let (id, own) = *self.old.parameters.get(number).ok_or_else(lost)?;
                let (address, own) = match self.old.pointers.contains_key(&own) {
                    true => (id, own),
                    // A vector: through memory of the work-item, which compilers do not leave there.
                    false => return self.component(id, own, offset, ty, into),
                };
                let byte = self.make(
                    Op::TypeInt,
                    None,
                    vec![Operand::LiteralBit32(8), Operand::LiteralBit32(0)],
                );
                let class = Operand::StorageClass(StorageClass::Function);
                let bytes = self.make(Op::TypePointer, None, vec![class.clone(), Operand::IdRef(byte)]);
                let _ = own;
                let start = self.instruction(Op::Bitcast, bytes, vec![Operand::IdRef(address)], into);
                let long = self.make(
                    Op::TypeInt,
                    None,
                    vec![Operand::LiteralBit32(64), Operand::LiteralBit32(0)],
                );
                let offset = self.make(Op::Constant, Some(long), vec![Operand::LiteralBit64(offset)]);
                let place = vec![Operand::IdRef(start), Operand::IdRef(offset)];
                let place = self.instruction(Op::InBoundsPtrAccessChain, bytes, place, into);
                let pointer = self.make(Op::TypePointer, None, vec![class, Operand::IdRef(ty)]);
                let place = self.instruction(Op::Bitcast, pointer, vec![Operand::IdRef(place)], into);
                let access = Operand::MemoryAccess(rspirv::spirv::MemoryAccess::ALIGNED);
                let how = vec![Operand::IdRef(place), access, Operand::LiteralBit32(1)];
                Ok(self.instruction(Op::Load, ty, how, into))
            }
        }
    }

    /// A component of a vector that is a parameter.
    fn component(&mut self, id: Word, own: Word, offset: u64, ty: Word, into: &mut Vec<u32>) -> Result<Word> {
        let known = |(code, key): &(u16, Vec<u32>)| (*code == Op::TypeVector as u16).then(|| key.clone());
        let vector = self
            .old
            .known
            .iter()
            .find(|(_, found)| **found == own)
            .and_then(|(key, _)| known(key));
        let Some([element, _]) = vector.as_deref() else {
            return Err(Error::input("a parameter passed by value is not a vector"));
        };
        let element = *element;
        let bytes = self
            .old
            .known
            .iter()
            .find(|(_, found)| **found == element)
            .and_then(|((_, key), _)| key.first().copied())
            .map_or(4, |bits| bits / 8);
        let index = u32::try_from(offset / u64::from(bytes.max(1))).unwrap_or(0);
        let operands = vec![Operand::IdRef(id), Operand::LiteralBit32(index)];
        let one = self.instruction(Op::CompositeExtract, element, operands, into);
        Ok(self.cast(one, element, ty, into))
    }

    /// A value of one type as one of another.
    fn cast(&mut self, id: Word, from: Word, to: Word, into: &mut Vec<u32>) -> Word {
        if from == to {
            return id;
        }
        let classes = (self.old.pointers.get(&from), self.old.pointers.get(&to));
        match classes {
            (Some((one, _)), Some((other, _))) if one != other => {
                // OpenCL's constant memory is memory of the device that nothing writes.
                let long = self.make(
                    Op::TypeInt,
                    None,
                    vec![Operand::LiteralBit32(64), Operand::LiteralBit32(0)],
                );
                let address = self.instruction(Op::ConvertPtrToU, long, vec![Operand::IdRef(id)], into);
                self.instruction(Op::ConvertUToPtr, to, vec![Operand::IdRef(address)], into)
            }
            _ => self.instruction(Op::Bitcast, to, vec![Operand::IdRef(id)], into),
        }
    }

    fn instruction(&mut self, op: Op, ty: Word, operands: Vec<Operand>, into: &mut Vec<u32>) -> Word {
        let id = self.fresh();
        Instruction::new(op, Some(ty), Some(id), operands).assemble_into(into);
        id
    }

    /// The functions beside the kernel: those without a body, and those with one. Existing imports stay.
    fn helpers(&mut self, own_function: Word) -> (Vec<u32>, Vec<u32>) {
        let (mut declared, mut defined) = (Vec::new(), Vec::new());
        for function in self.new.module.functions.clone() {
            let id = function.def.as_ref().and_then(|def| def.result_id);
            let Some(id) = id.filter(|&id| id != own_function) else {
                continue;
            };
            if self.ids.get(&id).is_some_and(|&id| id < self.old.bound) {
                continue;
            }
            let into = match function.blocks.is_empty() {
                true => &mut declared,
                false => &mut defined,
            };
            let mut words = Vec::new();
            for one in function.all_inst_iter() {
                self.renumbered(one).assemble_into(&mut words);
            }
            into.extend(words);
        }
        (declared, defined)
    }

    /// Decorations of new ids; those of the entry and its parameters stay.
    fn decorations(&mut self, own_function: Word) {
        let functions = self.new.module.functions.iter();
        let mut parameters: HashSet<Word> = functions
            .filter(|function| function.def.as_ref().and_then(|def| def.result_id) == Some(own_function))
            .flat_map(|function| &function.parameters)
            .filter_map(|parameter| parameter.result_id)
            .collect();
        parameters.insert(own_function);
        for one in self.new.module.annotations.clone() {
            let target = one.operands.first().and_then(Operand::id_ref_any);
            let Some(target) = target.filter(|target| !parameters.contains(target)) else {
                continue;
            };
            // Existing ids have their decorations; unused ones need none.
            let known = self.ids.get(&target).copied();
            if known.is_none_or(|id| id < self.old.bound) {
                continue;
            }
            let handed = self.new.arrays.iter().any(|(name, variable)| {
                *variable == target && self.original.arrays.iter().any(|(own, _)| own == name)
            });
            if !handed {
                let mut words = Vec::new();
                self.renumbered(&one).assemble_into(&mut words);
                self.annotations.extend(words);
            }
        }
    }
}

/// The key of a type or constant: its code, its type and its operands, without its id.
fn key(instruction: &Instruction) -> (u16, Vec<u32>) {
    let mut words = Vec::new();
    instruction.assemble_into(&mut words);
    let mut key = words.split_off(1);
    match instruction.result_type {
        Some(_) => drop(key.remove(1)),
        None => drop(key.remove(0)),
    }
    (instruction.class.opcode as u16, key)
}
