//! The parts of a module outside its functions: entry points, types, constants, variables, names, decorations.
//!
//! One pass over the words notes where each of these stands. Nothing is interpreted before an entry needs it, and function
//! bodies are skipped.

use std::cell::RefCell;
use std::collections::HashMap;

use rspirv::spirv::{Decoration, ExecutionModel, LinkageType, Op, OpenclStd100Op};

use super::words::{self, Instruction, refused};
use crate::error::{Error, Result};
use crate::suggest::quoted;

/// An entry point.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// Its function.
    pub function: u32,
    /// What the host calls it.
    pub name: String,
}

/// A function.
#[derive(Clone, Copy, Debug)]
pub(super) struct Function {
    /// The word where its `OpFunction` starts.
    pub start: usize,
    /// The word behind its `OpFunctionEnd`.
    pub end: usize,
    /// Whether it has blocks.
    pub has_body: bool,
}

/// A module.
#[derive(Debug)]
pub(super) struct Module<'w> {
    /// Its words.
    pub words: &'w [u32],
    /// Its entry points, in order.
    pub entries: Vec<Entry>,
    /// Its functions, by id.
    pub functions: HashMap<u32, Function>,
    /// The names of its sets of extended instructions, by id.
    pub sets: HashMap<u32, String>,
    /// Execution modes: of which function, and the operands.
    pub modes: Vec<(u32, &'w [u32])>,
    /// Variables outside of functions, in order.
    pub variables: Vec<u32>,
    /// The word where each id is defined outside of functions.
    defined: HashMap<u32, usize>,
    names: HashMap<u32, usize>,
    strings: HashMap<u32, usize>,
    decorations: HashMap<u32, Vec<&'w [u32]>>,
    members: HashMap<(u32, u32), Vec<&'w [u32]>>,
    /// Size and alignment of the types that were asked for.
    pub(super) sizes: RefCell<HashMap<u32, (u64, u64)>>,
}

impl<'w> Module<'w> {
    /// Finds what a module has.
    ///
    /// # Errors
    /// An instruction is cut off, or stands where none of its kind may; the module is none of OpenCL's.
    pub(crate) fn new(words: &'w [u32]) -> Result<Module<'w>> {
        let mut module = Module {
            words,
            entries: Vec::new(),
            functions: HashMap::new(),
            sets: HashMap::new(),
            modes: Vec::new(),
            variables: Vec::new(),
            defined: HashMap::new(),
            names: HashMap::new(),
            strings: HashMap::new(),
            decorations: HashMap::new(),
            members: HashMap::new(),
            sizes: RefCell::default(),
        };
        let mut open: Option<(u32, Function)> = None;
        let mut groups: Vec<(u32, u32)> = Vec::new();
        for instruction in words::instructions(words, 0) {
            let instruction = instruction?;
            let at = |error: Error| error.at(format!("byte {}", instruction.byte()));
            if let Some((id, function)) = &mut open {
                match instruction.op {
                    Some(Op::Label) => function.has_body = true,
                    Some(Op::FunctionEnd) => {
                        function.end = instruction.at + 1;
                        if module.functions.insert(*id, *function).is_some() {
                            return Err(defined_twice(*id, &instruction));
                        }
                        open = None;
                    }
                    _ => {}
                }
                continue;
            }
            match instruction.op {
                Some(Op::Function) => {
                    let function = Function {
                        start: instruction.at,
                        end: instruction.at,
                        has_body: false,
                    };
                    open = Some((instruction.word(1)?, function));
                }
                Some(Op::Label | Op::FunctionEnd) => {
                    return Err(at(Error::input(format!(
                        "{} is not allowed here",
                        quoted(&instruction.name())
                    ))));
                }
                _ => module.outside(instruction, &mut groups).map_err(at)?,
            }
        }
        if open.is_some() {
            return Err(Error::input("the last function has no end").at(format!("byte {}", words.len() * 4)));
        }
        for (group, target) in groups {
            let own = module.decorations.get(&group).cloned().unwrap_or_default();
            module.decorations.entry(target).or_default().extend(own);
        }
        Ok(module)
    }

    /// Notes an instruction outside of functions.
    fn outside(&mut self, instruction: Instruction<'w>, groups: &mut Vec<(u32, u32)>) -> Result<()> {
        let Some(op) = instruction.op else {
            return Ok(());
        };
        match op {
            Op::EntryPoint => {
                let kernel = ExecutionModel::Kernel as u32;
                let name = instruction.string(2).0;
                if instruction.word(0)? != kernel {
                    return Err(Error::input(format!(
                        "entry point {} is none of OpenCL's: its execution model is {}",
                        quoted(&name),
                        instruction.word(0)?
                    ))
                    .accepted("kernels (execution model 6)"));
                }
                self.entries.push(Entry {
                    function: instruction.word(1)?,
                    name,
                });
            }
            Op::ExtInstImport => {
                self.sets.insert(instruction.word(0)?, instruction.string(1).0);
            }
            Op::ExecutionMode | Op::ExecutionModeId => {
                self.modes.push((instruction.word(0)?, instruction.rest(1)));
            }
            Op::MemoryModel => {
                let (addressing, memory) = (instruction.word(0)?, instruction.word(1)?);
                if addressing != 2 || memory != 2 {
                    return Err(Error::input(format!(
                        "the module's addressing model is {addressing} and its memory model {memory}"
                    ))
                    .accepted("OpenCL's, with pointers of 64 bits (2 and 2): `-target spir64`"));
                }
            }
            Op::Name => {
                self.names.insert(instruction.word(0)?, instruction.at);
            }
            Op::String => {
                self.strings.insert(instruction.word(0)?, instruction.at);
            }
            Op::Decorate | Op::DecorateId | Op::DecorateString => {
                let decorations = self.decorations.entry(instruction.word(0)?).or_default();
                decorations.push(instruction.rest(1));
            }
            Op::MemberDecorate | Op::MemberDecorateString => {
                let key = (instruction.word(0)?, instruction.word(1)?);
                self.members.entry(key).or_default().push(instruction.rest(2));
            }
            Op::GroupDecorate => {
                let group = instruction.word(0)?;
                groups.extend(instruction.rest(1).iter().map(|&target| (group, target)));
            }
            _ => {
                if let Some(id) = instruction.result() {
                    if op == Op::Variable {
                        self.variables.push(id);
                    }
                    if self.defined.insert(id, instruction.at).is_some() {
                        return Err(defined_twice(id, &instruction));
                    }
                }
            }
        }
        Ok(())
    }

    /// The instruction that starts at a word that was gone over.
    pub(crate) fn instruction(&self, at: usize) -> Result<Instruction<'w>> {
        words::instructions(self.words, at)
            .next()
            .unwrap_or_else(|| Err(Error::bug("an instruction that was found is lost")))
    }

    /// The type, constant or variable with an id.
    ///
    /// # Errors
    /// Nothing outside of functions has this id.
    pub(crate) fn global(&self, id: u32) -> Result<Instruction<'w>> {
        match self.defined.get(&id) {
            Some(&at) => self.instruction(at),
            None => Err(Error::input(format!("nothing defines id %{id} here"))),
        }
    }

    /// Whether an id is defined outside of functions.
    pub(crate) fn is_global(&self, id: u32) -> bool {
        self.defined.contains_key(&id)
    }

    /// What the module calls an id.
    pub(crate) fn name(&self, id: u32) -> Option<String> {
        let instruction = self.instruction(*self.names.get(&id)?).ok()?;
        let name = instruction.string(1).0;
        (!name.is_empty()).then_some(name)
    }

    /// A text that instructions refer to.
    pub(crate) fn string(&self, id: u32) -> Option<String> {
        let instruction = self.instruction(*self.strings.get(&id)?).ok()?;
        Some(instruction.string(1).0)
    }

    /// Whether an instruction is this one of `OpenCL.std`.
    pub(crate) fn is_standard(&self, instruction: &Instruction<'_>, std: OpenclStd100Op) -> bool {
        instruction.op == Some(Op::ExtInst)
            && instruction.words.get(3) == Some(&(std as u32))
            && instruction
                .words
                .get(2)
                .and_then(|set| self.sets.get(set))
                .is_some_and(|name| name == "OpenCL.std")
    }

    /// The operands of all decorations of one kind that an id has.
    pub(crate) fn decorated(&self, id: u32, decoration: Decoration) -> impl Iterator<Item = &'w [u32]> + '_ {
        let all = self.decorations.get(&id).map(Vec::as_slice).unwrap_or_default();
        let wanted = decoration as u32;
        all.iter()
            .filter(move |words| words.first() == Some(&wanted))
            .map(|words| &words[1..])
    }

    /// The operands of a decoration of a member of a structure.
    pub(crate) fn member_decorated(&self, id: u32, member: u32, decoration: Decoration) -> Option<&'w [u32]> {
        let all = self.members.get(&(id, member))?;
        let wanted = decoration as u32;
        all.iter()
            .find(|words| words.first() == Some(&wanted))
            .map(|words| &words[1..])
    }

    /// The linkage name of the function or variable of an id, if it is imported.
    pub(crate) fn imported(&self, id: u32) -> Option<String> {
        self.linked(id, LinkageType::Import)
    }

    /// A number that a constant of 8 to 64 bits is, by its bits.
    ///
    /// # Errors
    /// It is no such constant.
    pub(crate) fn number(&self, id: u32) -> Result<u64> {
        let instruction = self.global(id)?;
        match instruction.op {
            Some(Op::Constant | Op::SpecConstant) => {
                let low = u64::from(instruction.word(2)?);
                let high = instruction.words.get(3).map_or(0, |&high| u64::from(high));
                Ok(low | high << 32)
            }
            Some(Op::ConstantNull | Op::ConstantFalse | Op::SpecConstantFalse) => Ok(0),
            Some(Op::ConstantTrue | Op::SpecConstantTrue) => Ok(1),
            _ => Err(refused(&instruction).accepted("a constant here")),
        }
    }

    /// The function that an entry is a wrapper of, as LLVM's translator makes them: it calls that function with its own
    /// parameters, and does nothing else; the function has the entry's name, and has no other caller. Compilers take one
    /// or the other for the kernel.
    ///
    /// # Errors
    /// An instruction is cut off.
    pub(crate) fn wrapped(&self, entry: u32, name: &str) -> Result<Option<u32>> {
        let Some(function) = self.functions.get(&entry) else {
            return Ok(None);
        };
        let (mut parameters, mut callee) = (Vec::new(), None);
        for one in words::instructions(self.words, function.start) {
            let one = one?;
            match one.op {
                Some(Op::FunctionParameter) => parameters.push(one.word(1)?),
                Some(Op::FunctionCall) if callee.is_none() && one.rest(3) == parameters => {
                    callee = Some(one.word(2)?);
                }
                Some(Op::Function | Op::Label | Op::Return | Op::Line | Op::NoLine) => {}
                Some(Op::FunctionEnd) => break,
                _ => return Ok(None),
            }
        }
        let same = |callee: u32| -> Result<bool> {
            let Some(inner) = self.functions.get(&callee) else {
                return Ok(false);
            };
            let all = words::instructions(self.words, inner.start);
            let inside = all.take_while(|one| matches!(one, Ok(one) if one.at < inner.end));
            let own = inside.filter(|one| matches!(one, Ok(one) if one.op == Some(Op::FunctionParameter)));
            Ok(inner.has_body && own.count() == parameters.len())
        };
        if !callee.map_or(Ok(false), same)? {
            return Ok(None);
        }
        let Some(callee) = callee.filter(|callee| self.exported(*callee).as_deref() == Some(name)) else {
            return Ok(None);
        };
        let calls = words::instructions(self.words, 0).filter(|one| {
            matches!(one, Ok(one) if one.op == Some(Op::FunctionCall) && one.words.get(2) == Some(&callee))
        });
        Ok((calls.count() == 1).then_some(callee))
    }

    /// What other modules call a function or variable, if they may.
    fn exported(&self, id: u32) -> Option<String> {
        self.linked(id, LinkageType::Export)
    }

    /// The name by which an id is linked so.
    fn linked(&self, id: u32, how: LinkageType) -> Option<String> {
        let linkage = self.decorated(id, Decoration::LinkageAttributes).next()?;
        let text = Instruction {
            op: None,
            code: 0,
            words: linkage,
            at: 0,
        };
        let (name, behind) = text.string(0);
        (linkage.get(behind) == Some(&(how as u32))).then_some(name)
    }
}

fn defined_twice(id: u32, instruction: &Instruction<'_>) -> Error {
    Error::input(format!("id %{id} is defined twice")).at(format!("byte {}", instruction.byte()))
}
