//! The state of writing one kernel: the id of each value, and how types, constants and source lines are spelled.

use std::collections::HashMap;

use cranelift_entity::SecondaryMap;
use rspirv::dr::Operand;
use rspirv::spirv::{self, Op as Code, StorageClass, Word};

use super::Options;
use super::control::SpirvScope;
use super::controlled::Words;
use super::messages::Element;
use super::module::Module;
use super::side_by_side::{self, Blocks};
use crate::Result;
use crate::ir::{Array, FloatRule, Kernel, Label, Op, OpKind, Place, PrefetchScope, Space, Type, Value};
use crate::nan::NanPlan;
use crate::roots::Roots;

/// The output so far.
pub(super) struct Emitter<'k> {
    pub kernel: &'k Kernel,
    pub options: &'k Options,
    pub module: Module,
    pub nans: NanPlan,
    /// How the operation that is being written rounds and flushes.
    pub rule: FloatRule,
    pub roots: Roots,
    pub scopes: HashMap<Label, SpirvScope<'k>>,
    /// Arrays, as pointers to bytes.
    pub arrays: HashMap<Array, Word>,
    /// Built-in variables: their meaning, and their ids.
    pub built_in: HashMap<spirv::BuiltIn, Word>,
    /// The module's variables, which the entry point lists.
    pub interface: Vec<Word>,
    /// The functions that fetch elements, and their ids.
    pub elements: Vec<(Element, Word)>,
    /// The functions that load with a cache control, and their ids.
    pub loads: Vec<(Words, Word)>,
    /// The block accesses of a sub-group.
    pub blocks: Blocks<'k>,
    /// The operation that defines a value.
    pub definitions: SecondaryMap<Value, Option<&'k Op>>,
    /// Where functions with two results leave the second, by its type.
    pub second_results: HashMap<Word, Word>,
    ids: HashMap<Value, Word>,
    files: HashMap<String, Word>,
    last_line: Option<(Word, Place)>,
}

impl<'k> Emitter<'k> {
    pub(super) fn new(kernel: &'k Kernel, options: &'k Options) -> Emitter<'k> {
        Emitter {
            kernel,
            options,
            module: Module::new(),
            nans: NanPlan::of(kernel),
            rule: FloatRule::EXACT,
            roots: Roots::find(kernel),
            scopes: HashMap::new(),
            arrays: HashMap::new(),
            built_in: HashMap::new(),
            interface: Vec::new(),
            elements: Vec::new(),
            loads: Vec::new(),
            blocks: side_by_side::blocks(kernel, options),
            definitions: kernel.body.makers(),
            second_results: HashMap::new(),
            ids: HashMap::new(),
            files: HashMap::new(),
            last_line: None,
        }
    }

    /// Writes the kernel as a module whose entry point has this name; with it the variables of its arrays.
    pub(super) fn write(mut self, entry: &str) -> Result<(rspirv::dr::Module, HashMap<Array, Word>)> {
        let function = self.module.new_id();
        self.module.name(function, entry);
        let start = self.module.new_id();
        self.module.begin(start);
        let parameters = self.parameters();
        self.declare_arrays();
        self.region(&self.kernel.body)?;
        self.modes(function);
        let void = self.module.void();
        self.module.function(function, void, &parameters);
        self.write_bodies();
        self.import_loads();
        let arrays = std::mem::take(&mut self.arrays);
        Ok((self.module.finish(function, entry, &self.interface), arrays))
    }

    /// The kernel's requirements, and that arithmetic is not relaxed.
    fn modes(&mut self, function: Word) {
        use spirv::ExecutionMode as Mode;
        self.module.execution_mode(function, Mode::ContractionOff, &[]);
        if let Some(size) = self.kernel.group_size {
            self.module.execution_mode(function, Mode::LocalSize, &size);
        }
        if let Some(size) = self.kernel.sub_group_size.or(self.options.sub_group_size) {
            self.module.needs(spirv::Capability::SubgroupDispatch);
            self.module.execution_mode(function, Mode::SubgroupSize, &[size]);
        }
    }

    /// Declares the parameters, and converts them to values of their types. Gives ids and types.
    fn parameters(&mut self) -> Vec<(Word, Word)> {
        let mut parameters = Vec::new();
        for param in &self.kernel.params {
            let ty = self.kernel.ty(param.value);
            let id = self.module.new_id();
            self.module.name(id, &param.name);
            // A truth value has no size outside of a kernel.
            let passed = match ty {
                Type::Bool => self.module.int(8),
                _ => self.ty_id(ty),
            };
            parameters.push((id, passed));
            let value = match ty {
                Type::Bool => self.truth(id),
                _ => id,
            };
            self.ids.insert(param.value, value);
            let Some(facts) = param.facts.filter(|_| ty == Type::Ptr(Space::Global)) else {
                continue;
            };
            let attribute = |module: &mut Module, attribute| {
                let more = vec![Operand::FunctionParameterAttribute(attribute)];
                module.decorate(id, spirv::Decoration::FuncParamAttr, more);
            };
            let alone = !self.roots.strays();
            if alone && (facts.unaliased || facts.read_only) {
                attribute(&mut self.module, spirv::FunctionParameterAttribute::NoAlias);
            }
            if alone && facts.read_only {
                attribute(&mut self.module, spirv::FunctionParameterAttribute::NoWrite);
            }
            let align = vec![Operand::LiteralBit32(facts.align.max(1).next_power_of_two())];
            self.module.decorate(id, spirv::Decoration::Alignment, align);
        }
        parameters
    }

    /// A byte as a truth value.
    pub(super) fn truth(&mut self, byte: Word) -> Word {
        let boolean = self.module.boolean();
        let zero = self.module.constant(8, 0);
        self.module.ins(Code::INotEqual, boolean, &[byte, zero])
    }

    // Types and values.

    /// The type of a value.
    pub(super) fn ty(&self, value: Value) -> Type {
        self.kernel.ty(value)
    }

    /// The id of a type. Halves are kept as the 16 bits that they are.
    pub(super) fn ty_id(&mut self, ty: Type) -> Word {
        match ty {
            Type::Bool => self.module.boolean(),
            Type::I8 | Type::I16 | Type::I32 | Type::I64 => self.module.int(ty.bits()),
            Type::F16 | Type::Bf16 => self.module.int(16),
            Type::F32 | Type::F64 => self.module.float(ty.bits()),
            Type::Ptr(space) => self.bytes_in(space),
            // Never made; tokens are nothing here.
            Type::Token => self.module.int(32),
        }
    }

    /// The id of a pointer to bytes in a space.
    pub(super) fn bytes_in(&mut self, space: Space) -> Word {
        let byte = self.module.int(8);
        self.module.pointer(storage_class(space), byte)
    }

    /// The id of a value.
    pub(super) fn id(&mut self, value: Value) -> Word {
        if let Some(&id) = self.ids.get(&value) {
            return id;
        }
        let ty = self.ty(value);
        match self.kernel.as_constant(value) {
            Some(bits) => match ty {
                Type::Bool => self.module.bool_constant(bits != 0),
                Type::F32 | Type::F64 => self.module.float_constant(ty.bits(), bits),
                Type::Ptr(_) if bits == 0 => {
                    let ty = self.ty_id(ty);
                    self.module.null(ty)
                }
                Type::Ptr(_) => {
                    let address = self.module.constant(64, bits);
                    let ty = self.ty_id(ty);
                    self.module.ins(Code::ConvertUToPtr, ty, &[address])
                }
                Type::Token => 0,
                _ => self.module.constant(ty.bits(), bits),
            },
            // Values defined in unreachable code.
            None => {
                let ty = self.ty_id(ty);
                self.module.null(ty)
            }
        }
    }

    /// Says which id a value has.
    pub(super) fn set(&mut self, value: Value, id: Word) {
        self.ids.insert(value, id);
        if let Some(name) = &self.kernel.values[value].name {
            self.module.name(id, name);
        }
    }

    /// The operation that defines a value, if one does.
    pub(super) fn definition(&self, value: Value) -> Option<&'k OpKind> {
        self.definitions[value].map(|op| &op.kind)
    }

    /// Writes one operation that is neither structure nor a terminator.
    pub(super) fn op(&mut self, op: &'k Op) -> Result<()> {
        self.at(op.place);
        self.rule = op.kind.rule();
        let made = match op.kind.plain() {
            OpKind::Ruled(..) => unreachable!("the verifier keeps rules away from ruled operations"),
            OpKind::Id(id) => Some(self.identity(*id)),
            OpKind::ArrayAddress(array) => Some(self.array(*array)),
            OpKind::Address { .. } => Some(self.address(&op.kind)),
            OpKind::Unary(unary, a) if self.ty(*a).is_float() => Some(self.float_unary(*unary, *a)),
            OpKind::Unary(unary, a) => Some(self.integer_unary(*unary, *a)),
            OpKind::Binary(binary, a, b) if self.ty(*a).is_float() => {
                Some(self.float_binary(*binary, *a, *b))
            }
            OpKind::Binary(binary, a, b) => Some(self.integer_binary(*binary, *a, *b)),
            OpKind::NoWrap(no_wrap, _, a, b) => Some(self.integer_binary((*no_wrap).into(), *a, *b)),
            OpKind::Fma(a, b, c) => Some(self.fma(*a, *b, *c)),
            OpKind::Compare(compare, a, b) => Some(self.compare(*compare, *a, *b)),
            OpKind::Select(cond, a, b) => {
                let values = [self.id(*cond), self.id(*a), self.id(*b)];
                let ty = self.ty_id(self.ty(*a));
                Some(self.module.ins(Code::Select, ty, &values))
            }
            OpKind::Convert(convert, a) => Some(self.convert(op.results[0], *convert, *a)),
            OpKind::Load { .. } | OpKind::Store { .. } if self.side_by_side(op) => None,
            OpKind::Load { ptr, cache, .. } => {
                self.load(&op.results, *ptr, *cache);
                None
            }
            OpKind::Store { ptr, values, cache } => {
                self.store(*ptr, values, *cache);
                None
            }
            // None is left: `copies::expand`.
            OpKind::Copy { .. } | OpKind::Join(_) | OpKind::Wait(_) => None,
            OpKind::Prefetch {
                ptr,
                bytes,
                hint,
                source,
                scope,
                ..
            } => {
                match scope {
                    // The remaining ones are whole blocks.
                    PrefetchScope::SubGroup => self.block_prefetch(*ptr, *bytes, *hint, *source),
                    _ => self.prefetch(*ptr, *bytes, *hint, *source),
                }
                None
            }
            OpKind::Barrier => {
                self.barrier();
                None
            }
            OpKind::Meet(_) => {
                self.meet();
                None
            }
            OpKind::Print { text, values } => {
                self.print(text, values);
                None
            }
            OpKind::Atomic { .. } => self.atomic(op),
            OpKind::Fence(order, scope) => {
                self.fence(*order, *scope);
                None
            }
            OpKind::Shuffle {
                op: shuffle,
                value,
                by,
                mask: _,
            } => Some(self.shuffle(*shuffle, *value, *by)),
            OpKind::Vote(vote, value, _) => Some(self.vote(*vote, *value)),
            OpKind::Block { .. } | OpKind::If { .. } | OpKind::Loop { .. } => {
                unreachable!("structure is written by its region")
            }
            OpKind::Reduce(reduce, value, _) => Some(self.reduce(*reduce, *value)),
            OpKind::GroupVote(vote, value) => Some(self.group_vote(*vote, *value)),
            OpKind::Depend(_) | OpKind::Active | OpKind::Opaque(..) => {
                unreachable!("`check` refuses it: see `unlike_opencl`")
            }
            OpKind::Break(..) | OpKind::Continue(..) | OpKind::Return | OpKind::Trap => {
                unreachable!("terminators are written with their region")
            }
        };
        if let (Some(id), [result]) = (made, &op.results[..]) {
            self.set(*result, id);
        }
        for &result in &op.results {
            self.made_canonical(result);
        }
        Ok(())
    }

    /// Makes a value's NaN canonical, if that has to be done where it is defined.
    pub(super) fn made_canonical(&mut self, result: Value) {
        if self.nans.after(result) {
            let id = self.id(result);
            let canonical = self.canonical(self.ty(result), id);
            self.set(result, canonical);
        }
    }

    /// The id of a value where its bits are seen.
    pub(super) fn seen(&mut self, value: Value) -> Word {
        let id = self.id(value);
        match self.nans.at_use(value) {
            true => self.canonical(self.ty(value), id),
            false => id,
        }
    }

    /// States the source of the next instructions.
    fn at(&mut self, place: Place) {
        let here = (self.module.here(), place);
        if !self.options.lines || self.last_line == Some(here) {
            return;
        }
        let data = &self.kernel.places[place];
        if data.file.is_empty() || data.line == 0 {
            return;
        }
        self.last_line = Some(here);
        let file = match self.files.get(&data.file) {
            Some(&file) => file,
            None => {
                let file = self.module.string(&data.file);
                self.files.insert(data.file.clone(), file);
                file
            }
        };
        let operands = vec![
            Operand::IdRef(file),
            Operand::LiteralBit32(data.line),
            Operand::LiteralBit32(data.column),
        ];
        self.module.act(Code::Line, operands);
    }
}

/// The storage class of a space.
/// What is said of a kernel with an operation that OpenCL has nothing like.
pub(super) fn unlike_opencl(kind: &OpKind) -> Option<&'static str> {
    match kind {
        OpKind::Trap => Some("ends its launch with an error"),
        OpKind::Depend(_) => Some("overlaps with other launches"),
        OpKind::Active => Some("asks which work-items run together"),
        OpKind::Opaque(..) => Some("has instructions of NVIDIA's that are carried as text (`opaque`)"),
        _ => None,
    }
}

pub(super) fn storage_class(space: Space) -> StorageClass {
    match space {
        Space::Global => StorageClass::CrossWorkgroup,
        Space::Shared => StorageClass::Workgroup,
        Space::Private => StorageClass::Function,
        Space::Generic => StorageClass::Generic,
    }
}
