//! A SPIR-V module while it is written: ids, types and constants that exist once, the blocks of the functions.
//!
//! Instructions are appended to the open block. A closed block may be revisited: the values passed to a loop's next iteration
//! are known only after its body, and go in front of the loop's first block.

use std::collections::{BTreeSet, HashMap};

use rspirv::binary::Assemble;
use rspirv::dr::{Block, Function, Instruction, Operand};
use rspirv::spirv::{self, Op, Word};

/// SPIR-V 1.4: the newest version that Intel's CPU runtime and the compiler of Debian 12 both take.
const VERSION: (u8, u8) = (1, 4);

/// The output so far.
pub(super) struct Module {
    last_id: Word,
    capabilities: BTreeSet<u32>,
    extensions: BTreeSet<&'static str>,
    opencl: Word,
    strings: Vec<Instruction>,
    names: Vec<Instruction>,
    annotations: Vec<Instruction>,
    globals: Vec<Instruction>,
    execution_modes: Vec<Instruction>,
    known: HashMap<(Op, Option<Word>, Vec<Operand>), Word>,
    functions: Vec<Function>,
    /// The blocks of the function that is being written.
    blocks: Vec<Block>,
    /// Whether the last of them is open.
    open: bool,
    /// Private arrays, which go in front of the function's first block.
    variables: Vec<Instruction>,
}

impl Module {
    pub(super) fn new() -> Module {
        let mut module = Module {
            last_id: 0,
            capabilities: BTreeSet::new(),
            extensions: BTreeSet::new(),
            opencl: 0,
            strings: Vec::new(),
            names: Vec::new(),
            annotations: Vec::new(),
            globals: Vec::new(),
            execution_modes: Vec::new(),
            known: HashMap::new(),
            functions: Vec::new(),
            blocks: Vec::new(),
            open: false,
            variables: Vec::new(),
        };
        module.opencl = module.new_id();
        for capability in [
            spirv::Capability::Addresses,
            spirv::Capability::Kernel,
            spirv::Capability::Int64,
            spirv::Capability::Int8,
        ] {
            module.needs(capability);
        }
        module
    }

    pub(super) fn new_id(&mut self) -> Word {
        self.last_id += 1;
        self.last_id
    }

    /// Declares the capabilities and extensions in use.
    pub(super) fn needs(&mut self, capability: spirv::Capability) {
        self.capabilities.insert(capability as u32);
    }

    /// Names an extension that the module makes use of.
    pub(super) fn extension(&mut self, name: &'static str) {
        self.extensions.insert(name);
    }

    // Types, constants, variables.

    /// A type or constant, which exists once.
    fn global(&mut self, op: Op, ty: Option<Word>, operands: Vec<Operand>) -> Word {
        let key = (op, ty, operands);
        if let Some(&id) = self.known.get(&key) {
            return id;
        }
        let id = self.new_id();
        self.globals
            .push(Instruction::new(op, ty, Some(id), key.2.clone()));
        self.known.insert(key, id);
        id
    }

    pub(super) fn void(&mut self) -> Word {
        self.global(Op::TypeVoid, None, Vec::new())
    }

    pub(super) fn boolean(&mut self) -> Word {
        self.global(Op::TypeBool, None, Vec::new())
    }

    pub(super) fn int(&mut self, bits: u32) -> Word {
        if bits == 16 {
            self.needs(spirv::Capability::Int16);
        }
        let operands = vec![Operand::LiteralBit32(bits), Operand::LiteralBit32(0)];
        self.global(Op::TypeInt, None, operands)
    }

    pub(super) fn float(&mut self, bits: u32) -> Word {
        match bits {
            64 => self.needs(spirv::Capability::Float64),
            16 => self.needs(spirv::Capability::Float16),
            _ => {}
        }
        self.global(Op::TypeFloat, None, vec![Operand::LiteralBit32(bits)])
    }

    /// A vector; the type itself where it would have one component.
    pub(super) fn vector(&mut self, component: Word, count: u32) -> Word {
        match count {
            1 => component,
            _ => {
                if count > 4 {
                    self.needs(spirv::Capability::Vector16);
                }
                let operands = vec![Operand::IdRef(component), Operand::LiteralBit32(count)];
                self.global(Op::TypeVector, None, operands)
            }
        }
    }

    pub(super) fn array(&mut self, element: Word, length: u32) -> Word {
        let length = self.constant(64, u64::from(length));
        let operands = vec![Operand::IdRef(element), Operand::IdRef(length)];
        self.global(Op::TypeArray, None, operands)
    }

    pub(super) fn pointer(&mut self, class: spirv::StorageClass, to: Word) -> Word {
        if class == spirv::StorageClass::Generic {
            self.needs(spirv::Capability::GenericPointer);
        }
        let operands = vec![Operand::StorageClass(class), Operand::IdRef(to)];
        self.global(Op::TypePointer, None, operands)
    }

    fn function_type(&mut self, result: Word, parameters: &[Word]) -> Word {
        let operands = [&[result], parameters].concat();
        let operands = operands.into_iter().map(Operand::IdRef).collect();
        self.global(Op::TypeFunction, None, operands)
    }

    /// An integer constant of 8 to 64 bits.
    pub(super) fn constant(&mut self, bits: u32, value: u64) -> Word {
        let ty = self.int(bits);
        self.global(Op::Constant, Some(ty), vec![literal(bits, value)])
    }

    /// A floating-point constant of 32 or 64 bits, by its bits.
    pub(super) fn float_constant(&mut self, bits: u32, value: u64) -> Word {
        let ty = self.float(bits);
        self.global(Op::Constant, Some(ty), vec![literal(bits, value)])
    }

    pub(super) fn bool_constant(&mut self, value: bool) -> Word {
        let ty = self.boolean();
        let op = if value {
            Op::ConstantTrue
        } else {
            Op::ConstantFalse
        };
        self.global(op, Some(ty), Vec::new())
    }

    pub(super) fn null(&mut self, ty: Word) -> Word {
        self.global(Op::ConstantNull, Some(ty), Vec::new())
    }

    /// A variable of the module: its pointer.
    pub(super) fn variable(&mut self, class: spirv::StorageClass, to: Word) -> Word {
        let ty = self.pointer(class, to);
        let id = self.new_id();
        let operands = vec![Operand::StorageClass(class)];
        self.globals
            .push(Instruction::new(Op::Variable, Some(ty), Some(id), operands));
        id
    }

    /// A constant that is made of several.
    pub(super) fn composite(&mut self, ty: Word, parts: &[Word]) -> Word {
        let operands = parts.iter().map(|&id| Operand::IdRef(id)).collect();
        self.global(Op::ConstantComposite, Some(ty), operands)
    }

    /// A variable of the module that holds a constant: its pointer. The same constant gives the same variable.
    pub(super) fn initialized(&mut self, class: spirv::StorageClass, to: Word, constant: Word) -> Word {
        let ty = self.pointer(class, to);
        let operands = vec![Operand::StorageClass(class), Operand::IdRef(constant)];
        let before = self.globals.len();
        let id = self.global(Op::Variable, Some(ty), operands);
        if self.globals.len() > before {
            self.decorate(id, spirv::Decoration::Constant, Vec::new());
        }
        id
    }

    /// A variable of the function, private to each work-item: its pointer.
    pub(super) fn private_variable(&mut self, to: Word) -> Word {
        let ty = self.pointer(spirv::StorageClass::Function, to);
        let id = self.new_id();
        let operands = vec![Operand::StorageClass(spirv::StorageClass::Function)];
        self.variables
            .push(Instruction::new(Op::Variable, Some(ty), Some(id), operands));
        id
    }

    // Names and decorations.

    pub(super) fn name(&mut self, id: Word, name: &str) {
        let operands = vec![Operand::IdRef(id), Operand::LiteralString(name.to_owned())];
        self.names.push(Instruction::new(Op::Name, None, None, operands));
    }

    /// A string that instructions refer to.
    pub(super) fn string(&mut self, text: &str) -> Word {
        let id = self.new_id();
        let operands = vec![Operand::LiteralString(text.to_owned())];
        self.strings
            .push(Instruction::new(Op::String, None, Some(id), operands));
        id
    }

    pub(super) fn decorate(&mut self, id: Word, decoration: spirv::Decoration, more: Vec<Operand>) {
        let mut operands = vec![Operand::IdRef(id), Operand::Decoration(decoration)];
        operands.extend(more);
        self.annotations
            .push(Instruction::new(Op::Decorate, None, None, operands));
    }

    /// Tells how the function is to run.
    pub(super) fn execution_mode(&mut self, function: Word, mode: spirv::ExecutionMode, numbers: &[u32]) {
        let mut operands = vec![Operand::IdRef(function), Operand::ExecutionMode(mode)];
        operands.extend(numbers.iter().map(|&number| Operand::LiteralBit32(number)));
        self.execution_modes
            .push(Instruction::new(Op::ExecutionMode, None, None, operands));
    }

    // Blocks and instructions.

    /// Opens a block.
    pub(super) fn begin(&mut self, label: Word) {
        debug_assert!(!self.open, "the block before is not closed");
        self.blocks.push(Block {
            label: Some(Instruction::new(Op::Label, None, Some(label), Vec::new())),
            instructions: Vec::new(),
        });
        self.open = true;
    }

    /// The label of the block that is open.
    pub(super) fn here(&self) -> Word {
        let label = self.blocks.last().and_then(|block| block.label.as_ref());
        label.and_then(|label| label.result_id).unwrap_or_default()
    }

    /// Whether a block is open.
    pub(super) fn is_open(&self) -> bool {
        self.open
    }

    /// The number of the block that is open, for [`Module::put_in_front`].
    pub(super) fn block(&self) -> usize {
        self.blocks.len() - 1
    }

    /// Puts instructions in front of a block's.
    pub(super) fn put_in_front(&mut self, block: usize, instructions: Vec<Instruction>) {
        self.blocks[block].instructions.splice(0..0, instructions);
    }

    /// Writes an instruction without a result.
    pub(super) fn act(&mut self, op: Op, operands: Vec<Operand>) {
        if let (true, Some(block)) = (self.open, self.blocks.last_mut()) {
            block
                .instructions
                .push(Instruction::new(op, None, None, operands));
        }
    }

    /// Writes an instruction that closes the block.
    pub(super) fn close(&mut self, op: Op, operands: Vec<Operand>) {
        self.act(op, operands);
        self.open = false;
    }

    /// Closes the block with a jump.
    pub(super) fn branch(&mut self, to: Word) {
        self.close(Op::Branch, vec![Operand::IdRef(to)]);
    }

    /// Writes an instruction with a result.
    pub(super) fn make(&mut self, op: Op, ty: Word, operands: Vec<Operand>) -> Word {
        let id = self.new_id();
        if let (true, Some(block)) = (self.open, self.blocks.last_mut()) {
            block
                .instructions
                .push(Instruction::new(op, Some(ty), Some(id), operands));
        }
        id
    }

    /// Writes an instruction whose operands are values.
    pub(super) fn ins(&mut self, op: Op, ty: Word, values: &[Word]) -> Word {
        self.make(op, ty, values.iter().map(|&id| Operand::IdRef(id)).collect())
    }

    /// Calls a function of OpenCL's own.
    pub(super) fn opencl(&mut self, ty: Word, function: spirv::OpenclStd100Op, values: &[Word]) -> Word {
        let mut operands = vec![
            Operand::IdRef(self.opencl),
            Operand::LiteralExtInstInteger(function as u32),
        ];
        operands.extend(values.iter().map(|&id| Operand::IdRef(id)));
        self.make(Op::ExtInst, ty, operands)
    }

    // Functions.

    /// Ends the function that was written: the blocks since the last one.
    pub(super) fn function(&mut self, id: Word, result: Word, parameters: &[(Word, Word)]) {
        let types: Vec<Word> = parameters.iter().map(|&(_, ty)| ty).collect();
        let ty = self.function_type(result, &types);
        let mut blocks = std::mem::take(&mut self.blocks);
        let variables = std::mem::take(&mut self.variables);
        if let Some(first) = blocks.first_mut() {
            first.instructions.splice(0..0, variables);
        }
        let parameter = |&(id, ty): &(Word, Word)| {
            Instruction::new(Op::FunctionParameter, Some(ty), Some(id), Vec::new())
        };
        let operands = vec![
            Operand::FunctionControl(spirv::FunctionControl::NONE),
            Operand::IdRef(ty),
        ];
        let function = Function {
            def: Some(Instruction::new(Op::Function, Some(result), Some(id), operands)),
            end: Some(Instruction::new(Op::FunctionEnd, None, None, Vec::new())),
            parameters: parameters.iter().map(parameter).collect(),
            blocks,
        };
        // Functions without a body are declared in front of those with one.
        match function.blocks.is_empty() {
            true => self.functions.insert(0, function),
            false => self.functions.push(function),
        }
    }

    /// The module, with the entry point's id, name and the variables that it makes use of.
    pub(super) fn finish(self, entry: Word, name: &str, interface: &[Word]) -> rspirv::dr::Module {
        let capability = |number: u32| {
            let capability = spirv::Capability::from_u32(number)?;
            let operands = vec![Operand::Capability(capability)];
            Some(Instruction::new(Op::Capability, None, None, operands))
        };
        let mut entry_point = vec![
            Operand::ExecutionModel(spirv::ExecutionModel::Kernel),
            Operand::IdRef(entry),
            Operand::LiteralString(name.to_owned()),
        ];
        entry_point.extend(interface.iter().map(|&id| Operand::IdRef(id)));
        let mut module = rspirv::dr::Module::new();
        let mut header = rspirv::dr::ModuleHeader::new(self.last_id + 1);
        header.set_version(VERSION.0, VERSION.1);
        module.header = Some(header);
        module.capabilities = self.capabilities.iter().copied().filter_map(capability).collect();
        let extension = |name: &&str| {
            let operands = vec![Operand::LiteralString((*name).to_owned())];
            Instruction::new(Op::Extension, None, None, operands)
        };
        module.extensions = self.extensions.iter().map(extension).collect();
        module.ext_inst_imports = vec![Instruction::new(
            Op::ExtInstImport,
            None,
            Some(self.opencl),
            vec![Operand::LiteralString("OpenCL.std".to_owned())],
        )];
        module.memory_model = Some(Instruction::new(
            Op::MemoryModel,
            None,
            None,
            vec![
                Operand::AddressingModel(spirv::AddressingModel::Physical64),
                Operand::MemoryModel(spirv::MemoryModel::OpenCL),
            ],
        ));
        module.entry_points = vec![Instruction::new(Op::EntryPoint, None, None, entry_point)];
        module.execution_modes = self.execution_modes;
        module.debug_string_source = self.strings;
        module.debug_names = self.names;
        module.annotations = self.annotations;
        module.types_global_values = self.globals;
        module.functions = self.functions;
        module
    }
}

/// A constant's literal: one word, or two.
fn literal(bits: u32, value: u64) -> Operand {
    match bits {
        64 => Operand::LiteralBit64(value),
        _ => Operand::LiteralBit32(value as u32),
    }
}

/// A module as the words of its binary form.
pub(super) fn assemble(module: &rspirv::dr::Module) -> Vec<u32> {
    module.assemble()
}
