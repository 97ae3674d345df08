//! What an entry is given: its parameters and the module's variables as the kernel has them.

use std::collections::HashMap;
use std::sync::Arc;

use rspirv::spirv::{Decoration, FunctionParameterAttribute, Op, StorageClass};

use super::body::{Operand, Parameter};
use super::places::Structures;
use super::translate::Translator;
use super::types::space_of;
use crate::analysis::definitions::Definitions;
use crate::analysis::roots::{Root, root};
use crate::error::{Error, Result};
use crate::ir::{Builder, Kernel, OpKind, Param, PointerFacts, Space, Type, Value, limits};
use crate::suggest::quoted;

/// Where a parameter or shared array of the kernel comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A parameter of the entry, by its number.
    Parameter(usize),
    /// A number that is part of one: which parameter, and the byte where it starts.
    Part(usize, u64),
    /// The address of a variable of the module.
    Variable {
        /// Its id.
        id: u32,
        /// Its initial contents; none if the module has none.
        bytes: Option<Arc<[u8]>>,
        /// Its size in bytes.
        declared: u64,
    },
}

/// What the host passes as a parameter of the entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Argument {
    /// What the kernel's parameter of this number gets.
    Whole(usize),
    /// A vector or a structure.
    Parts {
        /// Its size in bytes.
        bytes: u64,
        /// Where parameters of the kernel start in it, in bytes, and their numbers.
        parts: Vec<(u64, usize)>,
    },
    /// This many bytes of memory of the work-group.
    Local(u64),
}

/// What the kernel was given.
#[derive(Debug, Default)]
pub(super) struct ArgumentOrigins {
    /// Where each of its parameters comes from.
    pub parameters: Vec<Origin>,
    /// Where its shared arrays come from, by name.
    pub arrays: Vec<(String, Origin)>,
}

/// What is known of a pointer parameter.
struct Known {
    number: usize,
    pointee: u32,
    align: u32,
    no_alias: bool,
    no_write: bool,
    constant: bool,
}

impl Translator<'_, '_> {
    /// Gives the kernel its parameters and shared arrays.
    pub(crate) fn declare(
        &mut self,
        b: &mut Builder<'_>,
        structures: &Structures,
    ) -> Result<ArgumentOrigins> {
        let mut given = ArgumentOrigins::default();
        let mut names: HashMap<String, u32> = HashMap::new();
        let mut known: Vec<Known> = Vec::new();
        for (number, parameter) in self.body.parameters.iter().enumerate() {
            let name = match &parameter.name {
                Some(name) => super::plain(name),
                None => {
                    let named = self.facts.names.get(number);
                    named.cloned().unwrap_or_else(|| format!("param_{number}"))
                }
            };
            let name = unique(&mut names, name);
            let at = |error: Error| error.at(format!("parameter `{name}`"));
            self.parameter(b, structures, (number, parameter), &name, &mut given, &mut known)
                .map_err(at)?;
        }
        for id in self.mentioned() {
            self.module_variable(b, id, &mut names, &mut given, &mut known)?;
        }
        if b.kernel.params.len() > limits::PARAMETERS {
            return Err(Error::input("the entry is given too many numbers")
                .accepted(format!("at most {}", limits::PARAMETERS)));
        }
        for name in self.facts.parameters.keys() {
            let mut known: Vec<&str> = b.kernel.params.iter().map(|param| param.name.as_str()).collect();
            known.extend(given.arrays.iter().map(|(name, _)| name.as_str()));
            if !known.contains(&name.as_str()) {
                return Err(
                    Error::usage(format!("`{}` has no parameter {}", b.kernel.name, quoted(name)))
                        .accepted(crate::suggest::accepted(name, "parameters", known)),
                );
            }
        }
        for own in known {
            self.pointer_facts(b.kernel, &own)?;
        }
        Ok(given)
    }

    fn parameter(
        &mut self,
        b: &mut Builder<'_>,
        structures: &Structures,
        (number, parameter): (usize, &Parameter),
        name: &str,
        given: &mut ArgumentOrigins,
        known: &mut Vec<Known>,
    ) -> Result<()> {
        let held = parameter.held;
        let module = self.module;
        let Ok((class, pointee)) = module.pointer(held.ty) else {
            // A number, or several.
            let parts = module.parts(held.ty)?;
            let several = parts.len() > 1;
            for (register, &(offset, ty)) in held.registers().zip(&parts) {
                let (name, origin) = match several {
                    true => (format!("{name}_{offset}"), Origin::Part(number, offset)),
                    false => (name.to_owned(), Origin::Parameter(number)),
                };
                let value = scalar(b.kernel, name, ty);
                given.parameters.push(origin);
                self.initial.insert(register, value);
            }
            return Ok(());
        };
        let decorated = |id, decoration| module.decorated(id, decoration).next();
        let attribute = |wanted: FunctionParameterAttribute| {
            let mut all = module.decorated(parameter.id, Decoration::FuncParamAttr);
            all.any(|words| words.first() == Some(&(wanted as u32)))
        };
        match space_of(class) {
            Some(Space::Global) => {
                let value = b.kernel.value(Type::Ptr(Space::Global));
                push(b.kernel, name.to_owned(), value);
                given.parameters.push(Origin::Parameter(number));
                self.initial.insert(held.first, value);
                let said = decorated(parameter.id, Decoration::Alignment);
                known.push(Known {
                    number: b.kernel.params.len() - 1,
                    pointee,
                    align: said.and_then(|words| words.first()).copied().unwrap_or(1),
                    no_alias: attribute(FunctionParameterAttribute::NoAlias),
                    no_write: attribute(FunctionParameterAttribute::NoWrite),
                    constant: class == StorageClass::UniformConstant as u32,
                });
            }
            Some(Space::Shared) => {
                let element = self.element_of(pointee);
                let bytes = u64::from(element.bytes().max(1));
                let said = self
                    .facts
                    .parameters
                    .get(name)
                    .and_then(|facts| facts.elements(element.bytes()));
                let length = match (said, self.facts.dynamic_shared_bytes) {
                    (Some(length), _) => length,
                    (None, Some(all)) => u64::from(all) / bytes,
                    (None, None) => {
                        return Err(Error::input(
                            "how large the work-group's memory behind it is depends on the launch",
                        )
                        .accepted(format!(
                            "`[parameters.{name}]` with `length = …` in the launch file, or `shared_bytes = …`"
                        )));
                    }
                };
                let (_, align) = self.module.size(pointee)?;
                let data = super::memory::array(
                    element,
                    name.to_owned(),
                    Space::Shared,
                    length.saturating_mul(bytes),
                    align,
                )?;
                let array = b.kernel.arrays.push(data);
                let address = b.array_address(array);
                self.initial.insert(held.first, address);
                given.arrays.push((name.to_owned(), Origin::Parameter(number)));
            }
            Some(Space::Private) => {
                let parts = module.parts(pointee)?;
                let values: Vec<Value> = parts
                    .iter()
                    .map(|&(offset, ty)| {
                        given.parameters.push(Origin::Part(number, offset));
                        scalar(b.kernel, format!("{name}_{offset}"), ty)
                    })
                    .collect();
                match structures.get(&held.first) {
                    Some(registers) => {
                        for (&(_, register), value) in registers.iter().zip(values) {
                            self.initial.insert(register, value);
                        }
                    }
                    None => {
                        let array = self.array(b, name.to_owned(), Space::Private, pointee, parameter.id)?;
                        let address = b.array_address(array);
                        let align = self.module.size(pointee)?.1;
                        self.store_parts(b, address, pointee, &values, align, Default::default())?;
                        self.initial.insert(held.first, address);
                    }
                }
            }
            _ => {
                return Err(Error::input(
                    "a kernel cannot have a pointer to this storage class as a parameter",
                )
                .accepted("pointers into memory of the device, of constants and of the work-group"));
            }
        }
        Ok(())
    }

    /// The variables of the module that the entry mentions, in the module's order.
    fn mentioned(&self) -> Vec<u32> {
        let mut found: std::collections::HashSet<u32> = Default::default();
        let mut work: Vec<u32> = Vec::new();
        for step in self.body.steps() {
            match &step.what {
                super::body::What::Plain(instruction, _) => {
                    work.extend(super::printed::mentions(self.module, instruction))
                }
                super::body::What::Copy(copies) => {
                    work.extend(copies.iter().filter_map(|(_, source)| match source {
                        super::body::Source::Part(operand, _) => Some(operand.id),
                        super::body::Source::Register(_) => None,
                    }))
                }
                super::body::What::Case(..) => {}
            }
        }
        let mut seen: std::collections::HashSet<u32> = Default::default();
        while let Some(id) = work.pop() {
            if !self.module.is_global(id) || !seen.insert(id) {
                continue;
            }
            let Ok(instruction) = self.module.global(id) else {
                continue;
            };
            match instruction.op {
                Some(Op::Variable) => {
                    found.insert(id);
                }
                Some(Op::ConstantComposite | Op::SpecConstantComposite) => work.extend(instruction.rest(2)),
                Some(Op::SpecConstantOp) => work.extend(instruction.rest(3)),
                _ => {}
            }
        }
        let variables = self.module.variables.iter().copied();
        variables.filter(|id| found.contains(id)).collect()
    }

    fn module_variable(
        &mut self,
        b: &mut Builder<'_>,
        id: u32,
        names: &mut HashMap<String, u32>,
        given: &mut ArgumentOrigins,
        known: &mut Vec<Known>,
    ) -> Result<()> {
        let variable = self.module.global(id)?;
        let (class, pointee) = self.module.pointer(variable.word(0)?)?;
        let called = self.module.name(id).map(|name| super::plain(&name));
        let called = called.unwrap_or_else(|| format!("variable_{id}"));
        let at = |error: Error| error.at(format!("variable `{called}`"));
        if class == StorageClass::Input as u32 {
            return Ok(());
        }
        let name = unique(names, called.clone());
        let key = Operand { frame: u32::MAX, id };
        let (bytes, align) = self.module.size(pointee).map_err(at)?;
        match space_of(class) {
            Some(space @ (Space::Shared | Space::Private)) => {
                let array = self.array(b, name.clone(), space, pointee, id).map_err(at)?;
                self.arrays.insert(key, array);
                if space == Space::Shared {
                    let origin = Origin::Variable {
                        id,
                        bytes: None,
                        declared: bytes,
                    };
                    given.arrays.push((name, origin));
                } else if let Some(&initial) = variable.words.get(3) {
                    let operand = Operand {
                        frame: u32::MAX,
                        id: initial,
                    };
                    let held = self.values(b, &Vec::new(), operand).map_err(at)?;
                    let address = b.array_address(array);
                    self.store_parts(b, address, pointee, &held, align, Default::default())
                        .map_err(at)?;
                }
            }
            Some(Space::Global) => {
                let value = b.kernel.value(Type::Ptr(Space::Global));
                push(b.kernel, name, value);
                let constant = class == StorageClass::UniformConstant as u32;
                let initial = variable.words.get(3).copied();
                let held = initial
                    .map(|initial| self.initial_bytes(initial, bytes))
                    .transpose()
                    .map_err(at)?;
                given.parameters.push(Origin::Variable {
                    id,
                    bytes: held.map(Arc::from),
                    declared: bytes,
                });
                self.addresses.insert(id, value);
                known.push(Known {
                    number: b.kernel.params.len() - 1,
                    pointee,
                    align: u32::try_from(align).unwrap_or(1),
                    no_alias: constant,
                    no_write: constant,
                    constant,
                });
                let element = self.element_of(pointee);
                let length = bytes / u64::from(element.bytes().max(1));
                let length = b.i64(length as i64);
                let param = b.kernel.params.last_mut();
                if let Some(facts) = param.and_then(|param| param.facts.as_mut()) {
                    facts.length = Some(length);
                }
            }
            _ => {
                return Err(at(Error::input("a variable of this storage class has no place in a kernel")
                    .accepted(
                        "variables of the work-group, of constants, of the device and of the work-item; images and \
                         samplers are not supported",
                    )));
            }
        }
        Ok(())
    }

    /// What a variable holds at first, as memory has it.
    fn initial_bytes(&self, id: u32, bytes: u64) -> Result<Vec<u8>> {
        const MOST: u64 = 256 << 20;
        if bytes > MOST {
            return Err(Error::input("a variable is too large").accepted(format!("at most {MOST} bytes")));
        }
        let mut held = vec![0; bytes as usize];
        // Parts of no bytes are visited, too.
        let mut left = bytes.saturating_add(1 << 16);
        self.put(id, 0, &mut held, (0, &mut left))?;
        Ok(held)
    }

    fn put(&self, id: u32, start: u64, held: &mut [u8], (depth, left): (u32, &mut u64)) -> Result<()> {
        *left = left.saturating_sub(1);
        if depth > 32 || *left == 0 {
            return Err(Error::input("constants are nested too deeply"));
        }
        let constant = self.module.global(id)?;
        let ty = constant.word(0)?;
        match constant.op {
            Some(Op::ConstantNull | Op::Undef) => Ok(()),
            Some(Op::ConstantComposite | Op::SpecConstantComposite) => {
                for (number, &part) in constant.rest(2).iter().enumerate() {
                    let offset = match self.module.element(ty)? {
                        Some(element) => self.module.size(element)?.0.saturating_mul(number as u64),
                        None => self.module.member(ty, number as u64)?.0,
                    };
                    self.put(part, start.saturating_add(offset), held, (depth + 1, left))?;
                }
                Ok(())
            }
            _ => {
                let number = self.module.number(id)?;
                let bytes = self.module.one(ty)?.bytes() as usize;
                let end = (start as usize).saturating_add(bytes);
                let place = held.get_mut(start as usize..end);
                let place = place.ok_or_else(|| Error::input("a constant is larger than its variable"))?;
                place.copy_from_slice(&number.to_le_bytes()[..bytes]);
                Ok(())
            }
        }
    }

    fn pointer_facts(&self, kernel: &mut Kernel, own: &Known) -> Result<()> {
        let element = self.element_of(own.pointee);
        let name = kernel.params[own.number].name.clone();
        let said = self.facts.parameters.get(&name).copied().unwrap_or_default();
        let before = kernel.params[own.number].facts.and_then(|facts| facts.length);
        let length = match said.elements(element.bytes()) {
            Some(length) => {
                let length = i64::try_from(length).map_err(|_| Error::usage("no buffer is so long"))?;
                Some(kernel.constant(Type::I64, length as u64))
            }
            None => before,
        };
        let natural = self.module.size(own.pointee).map_or(1, |(_, align)| align as u32);
        let align = own.align.max(natural).max(said.align.unwrap_or(0));
        kernel.params[own.number].facts = Some(PointerFacts {
            element,
            align: align.min(limits::ALIGNMENT).next_power_of_two(),
            length,
            read_only: said.read_only || own.constant || own.no_alias && own.no_write,
            unaliased: said.unaliased || own.no_alias,
            is_constant: false,
            races: said.races.max(self.facts.races),
        });
        Ok(())
    }
}

/// What the host passes as each parameter of the entry.
pub(super) fn arguments(
    translator: &Translator<'_, '_>,
    given: &ArgumentOrigins,
    kernel: &Kernel,
) -> Result<Vec<Argument>> {
    let mut arguments = Vec::with_capacity(translator.body.parameters.len());
    for (number, parameter) in translator.body.parameters.iter().enumerate() {
        let own = |origin: &Origin| *origin == Origin::Parameter(number);
        if let Some(whole) = given.parameters.iter().position(own) {
            arguments.push(Argument::Whole(whole));
            continue;
        }
        if let Some((name, _)) = given.arrays.iter().find(|(_, origin)| own(origin)) {
            let array = kernel.arrays.values().find(|array| array.name == *name);
            arguments.push(Argument::Local(array.map_or(0, |array| array.bytes())));
            continue;
        }
        let module = translator.module;
        let ty = match module.pointer(parameter.held.ty) {
            Ok((_, pointee)) => pointee,
            Err(_) => parameter.held.ty,
        };
        let parts = given.parameters.iter().enumerate();
        let parts = parts.filter_map(|(own, origin)| match origin {
            Origin::Part(of, offset) if *of == number => Some((*offset, own)),
            _ => None,
        });
        arguments.push(Argument::Parts {
            bytes: module.size(ty)?.0,
            parts: parts.collect(),
        });
    }
    Ok(arguments)
}

/// Names loads by their sources, and chooses the element type of byte buffers: that of most accesses.
pub(super) fn learn(kernel: &mut Kernel) {
    let mut names: Vec<(crate::ir::LoadId, String)> = Vec::new();
    let mut elements: HashMap<usize, HashMap<Type, usize>> = HashMap::new();
    let definitions = Definitions::of(kernel);
    kernel.body.walk(&mut |op| {
        let (pointer, ty) = match &op.kind {
            OpKind::Load { ptr, .. } => (*ptr, op.results.first().map(|&value| kernel.ty(value))),
            OpKind::Store { ptr, values, .. } => (*ptr, values.first().map(|&value| kernel.ty(value))),
            OpKind::Atomic { ptr, values, .. } => {
                let value = values.first().or(op.results.first());
                (*ptr, value.map(|&value| kernel.ty(value)))
            }
            _ => return,
        };
        let Some(found) = root(kernel, &definitions, pointer) else {
            return;
        };
        if let OpKind::Load { id, .. } = op.kind {
            names.push((id, found.name(kernel).to_owned()));
        }
        if let (Root::Param(number), Some(ty)) = (found, ty) {
            *elements.entry(number).or_default().entry(ty).or_default() += 1;
        }
    });
    for (id, name) in names {
        kernel.loads[id].name = name;
    }
    for (number, found) in elements {
        let commonest = found.into_iter().max_by_key(|&(ty, count)| (count, ty));
        let Some((ty, _)) = commonest else { continue };
        let ty = match ty {
            Type::Bool => Type::I8,
            Type::Ptr(_) => Type::I64,
            other => other,
        };
        let Some(facts) = kernel.params[number].facts else {
            continue;
        };
        // A type that the module says is right, but for bytes that everything is cast from.
        if facts.element != Type::I8 || ty == Type::I8 {
            continue;
        }
        if let Some(facts) = &mut kernel.params[number].facts {
            facts.element = ty;
            facts.align = facts.align.max(ty.bytes());
        }
    }
}

fn scalar(kernel: &mut Kernel, name: String, ty: Type) -> Value {
    let value = kernel.value(ty);
    push(kernel, name, value);
    value
}

fn push(kernel: &mut Kernel, name: String, value: Value) {
    kernel.values[value].name = Some(name.clone());
    let is_pointer = kernel.ty(value).is_pointer();
    let facts = is_pointer.then_some(PointerFacts {
        element: Type::I8,
        align: 1,
        length: None,
        read_only: false,
        unaliased: false,
        is_constant: false,
        races: Default::default(),
    });
    kernel.params.push(Param { name, value, facts });
}

/// A name that no other one is: two things of one name would be one thing in plans and launch files.
fn unique(names: &mut HashMap<String, u32>, name: String) -> String {
    let count = names.entry(name.clone()).or_default();
    *count += 1;
    match *count {
        1 => name,
        count => format!("{name}_{count}"),
    }
}
