//! Variables of functions, and structures that are passed by value, whose parts are registers.
//!
//! ```text
//! before                                                  after
//! %v = OpVariable %ptr_Function_struct                    (nothing)
//! %p = OpInBoundsPtrAccessChain %ptr %v %zero %one        (nothing)
//! OpStore %p %x                                           v_1 ← x
//! %y = OpLoad %float %p                                   y ← v_1
//! ```
//!
//! So it is where every access names whole parts at places that follow from the text. Elsewhere a variable is an array of
//! the work-item's own.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use rspirv::spirv::{MemoryAccess, Op, StorageClass};

use super::body::{BlockStep, Body, Held, Operand, Source, What, copy};
use super::module::Module;
use super::operands::ids;
use super::types::Part;
use crate::error::Result;
use crate::ir::Type;
use crate::middle::Register;

/// Most times that all steps are gone through; then variables stay in memory.
const MOST_PASSES: u32 = 64;

/// Most parts of a variable that become registers.
const MOST_PARTS: usize = 64;

/// The registers of the parts of parameters that are structures passed by value, by the parameter's register.
pub(super) type Structures = HashMap<Register, Vec<(Part, Register)>>;

/// Makes registers of variables; gives those of structures that are passed by value.
///
/// # Errors
/// An operand is nowhere defined.
pub(super) fn to_registers(module: &Module<'_>, body: &mut Body<'_>) -> Result<Structures> {
    let mut finder = Finder::default();
    // Where variables and structures start, by the register of their address.
    for parameter in &body.parameters {
        if let Ok((class, pointee)) = module.pointer(parameter.held.ty)
            && class == StorageClass::Function as u32
        {
            finder.start(module, parameter.held.first, pointee);
        }
    }
    for step in body.steps() {
        if let What::Plain(instruction, _) = &step.what
            && instruction.op == Some(Op::Variable)
            && let ([register], [ty, _, _]) = (&step.writes[..], instruction.words)
            && let Ok((_, pointee)) = module.pointer(*ty)
        {
            finder.start(module, *register, pointee);
        }
    }
    if finder.roots.is_empty() {
        return Ok(Structures::new());
    }
    finder.lead(module, body);
    finder.check(module, body)?;
    let mut registers: HashMap<Register, Vec<(Part, Register)>> = HashMap::new();
    let mut good: Vec<(Register, Vec<Part>)> = finder
        .roots
        .iter()
        .filter(|(root, _)| !finder.bad.contains(root))
        .map(|(&root, parts)| (root, parts.clone()))
        .collect();
    good.sort_by_key(|(root, _)| *root);
    for (root, parts) in good {
        let mut own = Vec::with_capacity(parts.len());
        for part in parts {
            own.push((part, body.registers.len() as Register));
            body.registers.push(part.1);
        }
        registers.insert(root, own);
    }
    finder.rewrite(module, body, &registers)?;
    let parameters: HashSet<Register> = body
        .parameters
        .iter()
        .map(|parameter| parameter.held.first)
        .collect();
    registers.retain(|root, _| parameters.contains(root));
    Ok(registers)
}

#[derive(Default)]
struct Finder {
    /// The parts of each variable, by the register of its address.
    roots: HashMap<Register, Vec<Part>>,
    /// Where registers lead: into which variable, and this many bytes from its start.
    leads: HashMap<Register, (Register, u64)>,
    /// Variables that stay in memory.
    bad: HashSet<Register>,
}

impl Finder {
    fn start(&mut self, module: &Module<'_>, register: Register, pointee: u32) {
        if let Ok(parts) = module.parts(pointee)
            && parts.len() <= MOST_PARTS
            && !parts.is_empty()
        {
            self.roots.insert(register, parts);
            self.leads.insert(register, (register, 0));
        }
    }

    /// Where an operand leads.
    fn of(&self, body: &Body<'_>, frame: u32, id: u32) -> Option<(Register, u64)> {
        let held = body.held(Operand { frame, id })?;
        self.leads.get(&held.first).copied()
    }

    /// Follows addresses, in whatever order the steps run.
    fn lead(&mut self, module: &Module<'_>, body: &Body<'_>) {
        let mut written: HashMap<Register, u32> = HashMap::new();
        for step in body.steps() {
            for &register in &step.writes {
                *written.entry(register).or_default() += 1;
            }
        }
        let (mut changed, mut passes) = (true, 0);
        while changed {
            changed = false;
            passes += 1;
            if passes > MOST_PASSES {
                self.bad.extend(self.roots.keys());
                return;
            }
            for step in body.steps() {
                let mut found: Vec<(Register, (Register, u64))> = Vec::new();
                match &step.what {
                    What::Copy(copies) => {
                        for &(to, source) in copies {
                            if let Source::Register(from) = source
                                && let Some(&place) = self.leads.get(&from)
                            {
                                found.push((to, place));
                            }
                        }
                    }
                    What::Plain(instruction, frame) => {
                        if let [to] = step.writes[..]
                            && let Some(&base) = ids(instruction).first()
                            && let Some((root, start)) = self.of(body, *frame, base)
                        {
                            match derived(module, body, instruction, *frame) {
                                Some(bytes) => found.push((to, (root, start.wrapping_add(bytes)))),
                                None if instruction.op != Some(Op::Load) => {
                                    self.bad.insert(root);
                                }
                                None => {}
                            }
                        }
                    }
                    What::Case(..) => {}
                }
                for (to, place) in found {
                    // A register that is given several addresses is one for memory.
                    if written.get(&to).is_some_and(|&count| count > 1) {
                        self.bad.insert(place.0);
                    } else if let Entry::Vacant(vacant) = self.leads.entry(to) {
                        vacant.insert(place);
                        changed = true;
                    }
                }
            }
        }
    }

    /// Finds the uses of addresses other than loads and stores of whole parts.
    fn check(&mut self, module: &Module<'_>, body: &Body<'_>) -> Result<()> {
        let mut bad: Vec<Register> = Vec::new();
        for step in body.steps() {
            let What::Plain(instruction, frame) = &step.what else {
                if let What::Copy(copies) = &step.what {
                    for &(to, source) in copies {
                        if let Source::Register(from) = source
                            && let Some(&(root, _)) = self.leads.get(&from)
                            && !self.leads.contains_key(&to)
                        {
                            bad.push(root);
                        }
                    }
                }
                continue;
            };
            let operands = ids(instruction);
            for (number, &id) in operands.iter().enumerate() {
                let Some((root, start)) = self.of(body, *frame, id) else {
                    continue;
                };
                let fine = match (instruction.op, number) {
                    (Some(Op::Load), 0) => {
                        let ty = instruction.word(0)?;
                        !is_volatile(instruction.words, 3)
                            && self.parts(root, start, module.parts(ty)?).is_some()
                    }
                    (Some(Op::Store), 0) => {
                        let object = Operand {
                            frame: *frame,
                            id: instruction.word(1)?,
                        };
                        let ty = match body.held(object) {
                            Some(held) => held.ty,
                            None => module.global(object.id)?.word(0)?,
                        };
                        !is_volatile(instruction.words, 2)
                            && self.parts(root, start, module.parts(ty)?).is_some()
                    }
                    (Some(Op::LifetimeStart | Op::LifetimeStop), 0) => true,
                    // The contents of events are not followed.
                    (Some(Op::GroupWaitEvents), _) => true,
                    (Some(_), 0) => derived(module, body, instruction, *frame).is_some(),
                    _ => false,
                };
                if !fine {
                    bad.push(root);
                }
            }
        }
        self.bad.extend(bad);
        Ok(())
    }

    /// The parts of a variable that an access of some parts touches, if these are whole.
    fn parts(&self, root: Register, start: u64, accessed: Vec<Part>) -> Option<Vec<usize>> {
        let all = &self.roots[&root];
        let same = |a: Type, b: Type| a == b || a.bits() == b.bits() && a != Type::Bool && b != Type::Bool;
        accessed
            .into_iter()
            .map(|(offset, ty)| {
                let at = start.checked_add(offset)?;
                all.iter().position(|&(own, part)| own == at && same(part, ty))
            })
            .collect()
    }

    fn rewrite(
        &self,
        module: &Module<'_>,
        body: &mut Body<'_>,
        registers: &HashMap<Register, Vec<(Part, Register)>>,
    ) -> Result<()> {
        let mut blocks = std::mem::take(&mut body.blocks);
        for block in &mut blocks {
            let mut steps = Vec::with_capacity(block.instructions.len());
            for step in std::mem::take(&mut block.instructions) {
                if let Some(step) = self.rewritten(module, body, registers, step)? {
                    steps.push(step);
                }
            }
            block.instructions = steps;
        }
        body.blocks = blocks;
        Ok(())
    }

    fn rewritten<'w>(
        &self,
        module: &Module<'_>,
        body: &Body<'_>,
        registers: &HashMap<Register, Vec<(Part, Register)>>,
        step: BlockStep<'w>,
    ) -> Result<Option<BlockStep<'w>>> {
        // Objects outside memory have no addresses.
        let into = |register: Register| {
            let (root, start) = *self.leads.get(&register)?;
            Some((registers.get(&root)?, root, start))
        };
        if let What::Copy(copies) = &step.what {
            let kept: Vec<_> = copies
                .iter()
                .copied()
                .filter(|(to, _)| into(*to).is_none())
                .collect();
            return Ok(match kept.len() == copies.len() {
                true => Some(step),
                false => Some(copy(kept, step.at, step.line)),
            });
        }
        let What::Plain(instruction, frame) = &step.what else {
            return Ok(Some(step));
        };
        let (at, line) = (step.at, step.line);
        let operand = |id: u32| Operand { frame: *frame, id };
        let first = ids(instruction).first().and_then(|&id| body.held(operand(id)));
        let place = first.and_then(|held| into(held.first));
        match (instruction.op, place) {
            (Some(Op::Variable), _) if step.writes.iter().any(|&to| into(to).is_some()) => Ok(None),
            (_, None) => Ok(Some(step)),
            (Some(Op::Load), Some((own, root, start))) => {
                let parts = self.parts(root, start, module.parts(instruction.word(0)?)?);
                let parts = parts.unwrap_or_default().into_iter();
                let from = parts.map(|part| Source::Register(own[part].1));
                Ok(Some(copy(
                    step.writes.iter().copied().zip(from).collect(),
                    at,
                    line,
                )))
            }
            (Some(Op::Store), Some((own, root, start))) => {
                let object = operand(instruction.word(1)?);
                let held: Option<Held> = body.held(object);
                let ty = match held {
                    Some(held) => held.ty,
                    None => module.global(object.id)?.word(0)?,
                };
                let parts = self.parts(root, start, module.parts(ty)?);
                let parts = parts.unwrap_or_default().into_iter().enumerate();
                let copies = parts.map(|(number, part)| {
                    let source = match held {
                        Some(held) => Source::Register(held.first + number as Register),
                        None => Source::Part(object, number),
                    };
                    (own[part].1, source)
                });
                Ok(Some(copy(copies.collect(), at, line)))
            }
            _ => Ok(None),
        }
    }
}

/// How many bytes an instruction adds to its first operand, if it makes an address and the text says so.
fn derived(
    module: &Module<'_>,
    body: &Body<'_>,
    instruction: &super::words::Instruction<'_>,
    frame: u32,
) -> Option<u64> {
    match instruction.op? {
        Op::Bitcast | Op::PtrCastToGeneric | Op::GenericCastToPtr | Op::CopyObject => Some(0),
        Op::GenericCastToPtrExplicit => Some(0),
        Op::AccessChain | Op::InBoundsAccessChain | Op::PtrAccessChain | Op::InBoundsPtrAccessChain => {
            let base = Operand {
                frame,
                id: instruction.word(2).ok()?,
            };
            let (_, mut ty) = module.pointer(body.held(base)?.ty).ok()?;
            let mut indices = instruction.rest(3).iter();
            let mut bytes = 0u64;
            let number = |id: u32| module.number(id).ok();
            if matches!(
                instruction.op,
                Some(Op::PtrAccessChain | Op::InBoundsPtrAccessChain)
            ) {
                let index = number(*indices.next()?)?;
                bytes = index.wrapping_mul(module.size(ty).ok()?.0);
            }
            for &index in indices {
                let index = number(index)?;
                match module.element(ty).ok()? {
                    Some(element) => {
                        bytes = bytes.wrapping_add(index.wrapping_mul(module.size(element).ok()?.0));
                        ty = element;
                    }
                    None => {
                        let (offset, member) = module.member(ty, index).ok()?;
                        bytes = bytes.wrapping_add(offset);
                        ty = member;
                    }
                }
            }
            Some(bytes)
        }
        _ => None,
    }
}

/// Whether the memory operands of an access, from one on, say that it is volatile.
fn is_volatile(words: &[u32], from: usize) -> bool {
    let mask = words.get(from).copied().unwrap_or(0);
    MemoryAccess::from_bits_retain(mask).contains(MemoryAccess::VOLATILE)
}
