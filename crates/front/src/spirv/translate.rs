//! A body as a kernel: each step becomes operations, in the regions that the middle makes of the flow graph.

use std::collections::HashMap;

use rspirv::spirv::{Decoration, Op};

use super::body::{BlockStep, Body, Operand, Source, What};
use super::module::Module;
use super::words::{Instruction, refused};
use crate::error::{Error, Fault, Result};
use crate::ir::{Array, Builder, CompareOp, ConvertOp, Kernel, Place, PlaceData, Type, Value, limits};
use crate::middle::address::Shapes;
use crate::middle::facts::Facts;
use crate::middle::flow::Block;
use crate::middle::regions::Front;
use crate::middle::{Register, Values};
use crate::suggest::quoted;

/// Most values of a kernel before it is tidied.
const MOST_VALUES: usize = 4 * limits::OPERATIONS;

/// Turns an entry into a kernel.
pub(super) struct Translator<'a, 'w> {
    /// The module.
    pub module: &'a Module<'w>,
    /// The entry, with what it calls.
    pub body: &'a Body<'w>,
    /// The name of the module in places, if it names no source.
    pub file: &'a str,
    /// What the caller knows.
    pub facts: &'a Facts,
    /// What is known of the values that addresses are made of.
    pub shapes: Shapes,
    /// The same numbers in 32 bits, of those that a work-item is known by.
    pub narrow: HashMap<Value, Value>,
    /// What the parameters' registers hold at first.
    pub initial: HashMap<Register, Value>,
    /// Variables of the module and of calls that are arrays of the kernel.
    pub arrays: HashMap<Operand, Array>,
    /// The address of each variable of the module that the kernel is given.
    pub addresses: HashMap<u32, Value>,
    /// It has sequences of operations that must not be fused.
    pub is_exact: bool,
    /// Why the entry cannot be written back, if it cannot.
    pub undecided: Option<Error>,
    places: HashMap<(Option<(u32, u32, u32)>, usize), Place>,
}

/// An instruction being translated: its position and operands.
#[derive(Clone, Copy)]
pub(super) struct At<'s, 'w> {
    /// The instruction.
    pub instruction: Instruction<'w>,
    /// Which call of its function it belongs to.
    pub frame: u32,
    /// The step.
    pub step: &'s BlockStep<'w>,
}

/// An instruction being translated, with the code that it becomes and the values of ids there.
pub(super) type Here<'b, 'k, 'w> = (&'b mut Builder<'k>, &'b Values, &'b At<'b, 'w>);

impl At<'_, '_> {
    /// An operand that is an id.
    pub(crate) fn operand(&self, number: usize) -> Result<Operand> {
        Ok(Operand {
            frame: self.frame,
            id: self.instruction.word(number)?,
        })
    }

    /// The id of the result's type.
    pub(crate) fn ty(&self) -> Result<u32> {
        self.instruction.word(0)
    }
}

impl<'a, 'w> Translator<'a, 'w> {
    /// A translator that has written nothing yet.
    pub(super) fn new(module: &'a Module<'w>, body: &'a Body<'w>, file: &'a str, facts: &'a Facts) -> Self {
        Translator {
            module,
            body,
            file,
            facts,
            shapes: Shapes::default(),
            narrow: HashMap::new(),
            initial: HashMap::new(),
            arrays: HashMap::new(),
            addresses: HashMap::new(),
            is_exact: false,
            undecided: None,
            places: HashMap::new(),
        }
    }

    /// Why the entry cannot be written back; the first reason counts.
    pub(crate) fn leave_undecided(&mut self, at: &At<'_, '_>, what: String) {
        let error = Error::input(what).at(format!("byte {}", at.instruction.byte()));
        self.undecided.get_or_insert(error);
    }

    // Operands.

    /// The id of an operand's type.
    pub(crate) fn type_of(&self, operand: Operand) -> Result<u32> {
        match self.body.held(operand) {
            Some(held) => Ok(held.ty),
            None => self.module.global(operand.id)?.word(0),
        }
    }

    /// The numbers and pointers that an operand is.
    pub(crate) fn values(
        &mut self,
        b: &mut Builder<'_>,
        values: &Values,
        operand: Operand,
    ) -> Result<Vec<Value>> {
        match self.body.held(operand) {
            Some(held) => held
                .registers()
                .map(|register| self.get(b, values, register))
                .collect(),
            None => self.constants(b, operand.id, 0),
        }
    }

    /// The one number or pointer that an operand is.
    pub(crate) fn value(&mut self, b: &mut Builder<'_>, values: &Values, operand: Operand) -> Result<Value> {
        match self.values(b, values, operand)?[..] {
            [one] => Ok(one),
            _ => Err(Error::input(
                "a number or a pointer is expected here, and no vector",
            )),
        }
    }

    /// The number that an operand is, if the module says.
    pub(crate) fn number(&self, operand: Operand) -> Result<u64> {
        self.module
            .number(operand.id)
            .map_err(|error| error.accepted("a constant: run-time values are not supported here"))
    }

    /// What an id of the module holds.
    fn constants(&mut self, b: &mut Builder<'_>, id: u32, depth: u32) -> Result<Vec<Value>> {
        let instruction = self.module.global(id)?;
        if depth > 64 {
            return Err(Error::input("constants are nested too deeply"));
        }
        let nothing = |b: &mut Builder<'_>, module: &Module<'_>| -> Result<Vec<Value>> {
            let parts = module.parts(instruction.word(0)?)?;
            Ok(parts.iter().map(|&(_, ty)| b.constant(ty, 0)).collect())
        };
        match instruction.op {
            Some(
                Op::Constant
                | Op::SpecConstant
                | Op::ConstantTrue
                | Op::ConstantFalse
                | Op::SpecConstantTrue
                | Op::SpecConstantFalse,
            ) => {
                let ty = self.module.one(instruction.word(0)?)?;
                let bits = self.module.number(id)?;
                Ok(vec![b.constant(ty, bits)])
            }
            Some(Op::ConstantNull | Op::Undef) => nothing(b, self.module),
            Some(Op::ConstantComposite | Op::SpecConstantComposite) => {
                let mut all = Vec::new();
                let most = self.module.count(instruction.word(0)?)?;
                if instruction.rest(2).len() > most {
                    return Err(Error::input("a constant has other parts than its type"));
                }
                for &part in instruction.rest(2) {
                    all.extend(self.constants(b, part, depth + 1)?);
                }
                match all.len() == most {
                    true => Ok(all),
                    false => Err(Error::input("a constant has other parts than its type")),
                }
            }
            Some(Op::Variable) => Ok(vec![self.variable(b, id)?]),
            Some(Op::SpecConstantOp) => self.constant_of(b, &instruction, depth),
            _ => Err(refused(&instruction).at(format!("byte {}", instruction.byte()))),
        }
    }

    /// A constant that is computed from others.
    fn constant_of(
        &mut self,
        b: &mut Builder<'_>,
        instruction: &Instruction<'_>,
        depth: u32,
    ) -> Result<Vec<Value>> {
        let op = Op::from_u32(instruction.word(2)?);
        let mut operands = Vec::new();
        let ids = match op {
            Some(Op::CompositeExtract) => instruction.rest(3).get(..1).unwrap_or_default(),
            _ => instruction.rest(3),
        };
        for &id in ids {
            operands.push(self.constants(b, id, depth + 1)?);
        }
        let ty = instruction.word(0)?;
        let odd = || {
            Error::input(format!(
                "a constant that is computed by `{}` is not supported",
                op.map_or("an unknown instruction".to_owned(), |op| format!("Op{op:?}"))
            ))
            .at(format!("byte {}", instruction.byte()))
        };
        let Some(op) = op else { return Err(odd()) };
        match (op, &operands[..]) {
            (Op::Select, [cond, x, y]) if cond.len() == 1 && x.len() == y.len() => Ok((0..x.len())
                .map(|part| b.select(cond[0], x[part], y[part]))
                .collect()),
            (
                Op::InBoundsPtrAccessChain | Op::PtrAccessChain | Op::AccessChain | Op::InBoundsAccessChain,
                _,
            ) => {
                let steps_over = matches!(op, Op::InBoundsPtrAccessChain | Op::PtrAccessChain);
                let base = instruction.word(3)?;
                let base_type = self.module.global(base)?.word(0)?;
                let indices: Vec<Value> = operands.iter().skip(1).flatten().copied().collect();
                let start = operands.first().and_then(|base| base.first());
                let start = *start.ok_or_else(odd)?;
                self.chain(b, start, base_type, steps_over, &indices)
                    .map(|pointer| vec![pointer])
            }
            (Op::Bitcast | Op::PtrCastToGeneric | Op::GenericCastToPtr, [x]) if x.len() == 1 => {
                let to = self.module.one(ty)?;
                Ok(vec![self.exactly(b, x[0], to)?])
            }
            (_, [x]) if x.len() == 1 => {
                let to = self.module.one(ty)?;
                let made = self.unary(b, op, x[0], to)?;
                made.map(|made| vec![made]).ok_or_else(odd)
            }
            (_, [x, y]) if x.len() == 1 && y.len() == 1 => {
                let made = self.binary(b, op, x[0], y[0])?;
                made.map(|made| vec![made]).ok_or_else(odd)
            }
            _ => Err(odd()),
        }
    }

    /// The value with another type of the same width.
    pub(crate) fn exactly(&mut self, b: &mut Builder<'_>, value: Value, to: Type) -> Result<Value> {
        use crate::ir::Space::Generic;
        let from = b.kernel.ty(value);
        Ok(match (from, to) {
            _ if from == to => value,
            (Type::Ptr(_), Type::Ptr(Generic)) => match b.kernel.as_constant(value) {
                Some(bits) => b.constant(to, bits),
                None => b.convert(ConvertOp::ToGeneric, to, value),
            },
            (Type::Ptr(Generic), Type::Ptr(_)) => match b.kernel.as_constant(value) {
                Some(bits) => b.constant(to, bits),
                None => b.convert(ConvertOp::FromGeneric, to, value),
            },
            (Type::Ptr(_), Type::Ptr(_)) => {
                let generic = b.convert(ConvertOp::ToGeneric, Type::Ptr(Generic), value);
                b.convert(ConvertOp::FromGeneric, to, generic)
            }
            (Type::Bool, _) | (_, Type::Bool) => {
                return Err(Error::input(format!("a value of type {from} is used as {to}")));
            }
            _ if from.bits() == to.bits() => b.convert(ConvertOp::Bits, to, value),
            _ => return Err(Error::input(format!("a value of type {from} is used as {to}"))),
        })
    }

    /// Writes a step's registers.
    pub(super) fn set(&self, values: &mut Values, at: &At<'_, '_>, results: Vec<Value>) -> Result<()> {
        if results.len() != at.step.writes.len() {
            return Err(Error::input(format!(
                "{} makes {} numbers where its type has {}",
                quoted(&at.instruction.name()),
                results.len(),
                at.step.writes.len()
            )));
        }
        for (&register, value) in at.step.writes.iter().zip(results) {
            values[register as usize] = Some(value);
        }
        Ok(())
    }

    // Places.

    fn place(&mut self, b: &mut Builder<'_>, step: &BlockStep<'_>) -> Place {
        let key = match step.line {
            Some(_) => (step.line, 0),
            None => (None, step.at),
        };
        if let Some(&place) = self.places.get(&key) {
            return place;
        }
        let data = match step.line {
            Some((file, line, column)) => PlaceData {
                file: self.module.string(file).unwrap_or_else(|| self.file.to_owned()),
                line,
                column,
                inlined_at: None,
            },
            None => PlaceData {
                file: self.file.to_owned(),
                line: u32::try_from(step.at * 4).unwrap_or(u32::MAX),
                column: 0,
                inlined_at: None,
            },
        };
        let place = b.kernel.places.push(data);
        self.places.insert(key, place);
        place
    }

    // Steps.

    fn step(&mut self, b: &mut Builder<'_>, values: &mut Values, step: &BlockStep<'w>) -> Result<()> {
        if b.kernel.values.len() > MOST_VALUES {
            return Err(Error::input("the entry becomes too many operations")
                .accepted(format!("at most {}", limits::OPERATIONS)));
        }
        match &step.what {
            What::Plain(instruction, frame) => {
                let at = At {
                    instruction: *instruction,
                    frame: *frame,
                    step,
                };
                self.plain(b, values, &at).map_err(|error| {
                    let error = error.at(format!("byte {}", instruction.byte()));
                    match error.is_named() || error.fault() != Fault::Input {
                        true => error,
                        false => error.about(quoted(&instruction.name())),
                    }
                })
            }
            What::Copy(copies) => {
                let mut made = Vec::with_capacity(copies.len());
                for &(to, source) in copies {
                    let value = match source {
                        Source::Register(register) => self.get(b, values, register)?,
                        Source::Part(operand, part) => {
                            let all = self.values(b, values, operand)?;
                            let one = all.get(part).copied();
                            one.ok_or_else(|| Error::input("a value of one type is used as one of another"))?
                        }
                    };
                    let ty = self.body.registers[to as usize];
                    made.push((to, self.exactly(b, value, ty)?));
                }
                for (to, value) in made {
                    values[to as usize] = Some(value);
                }
                Ok(())
            }
            What::Case(to, selector, number) => {
                let value = self.value(b, values, *selector)?;
                let ty = b.kernel.ty(value);
                let wanted = b.constant(ty, *number);
                values[*to as usize] = Some(b.compare(CompareOp::Eq, value, wanted));
                Ok(())
            }
        }
    }

    fn plain(&mut self, b: &mut Builder<'_>, values: &mut Values, at: &At<'_, 'w>) -> Result<()> {
        let Some(op) = at.instruction.op else {
            return Err(refused(&at.instruction));
        };
        let made = match op {
            Op::Load => self.load((b, values, at))?,
            Op::Store => return self.store((b, values, at)),
            Op::CopyMemory | Op::CopyMemorySized => return self.copy_memory((b, values, at)),
            Op::Variable => vec![self.local_variable(b, at)?],
            Op::AccessChain | Op::InBoundsAccessChain | Op::PtrAccessChain | Op::InBoundsPtrAccessChain => {
                vec![self.access_chain((b, values, at))?]
            }
            Op::LifetimeStart | Op::LifetimeStop | Op::AssumeTrueKHR => return Ok(()),
            Op::CompositeExtract
            | Op::CompositeInsert
            | Op::CompositeConstruct
            | Op::VectorShuffle
            | Op::VectorExtractDynamic
            | Op::VectorInsertDynamic
            | Op::CopyObject
            | Op::CopyLogical
            | Op::ExpectKHR
            | Op::Undef => self.composite((b, values, at), op)?,
            Op::Select => self.select((b, values, at))?,
            Op::Dot | Op::VectorTimesScalar | Op::Any | Op::All => self.of_vectors((b, values, at), op)?,
            Op::IAddCarry | Op::ISubBorrow | Op::UMulExtended | Op::SMulExtended => {
                self.extended((b, values, at), op)?
            }
            Op::BitFieldInsert | Op::BitFieldSExtract | Op::BitFieldUExtract => {
                self.bit_field((b, values, at), op)?
            }
            Op::ControlBarrier | Op::MemoryBarrier => return self.barrier(b, at, op),
            Op::GroupAsyncCopy => self.group_copy((b, values, at))?,
            Op::GroupWaitEvents => return self.wait_for_copies(b, at),
            Op::FunctionCall => return self.builtin(b, values, at),
            Op::ExtInst => return self.extended_instruction(b, values, at),
            Op::Bitcast => self.bitcast((b, values, at))?,
            Op::PtrDiff => vec![self.pointer_difference((b, values, at))?],
            Op::GenericCastToPtrExplicit => {
                let value = self.value(b, values, at.operand(2)?)?;
                let to = self.module.one(at.ty()?)?;
                vec![self.exactly(b, value, to)?]
            }
            _ if self.is_of_group(op) => return self.group(b, values, at, op),
            _ if self.is_atomic(op) => return self.atomic(b, values, at, op),
            _ => self.by_parts((b, values, at), op)?,
        };
        self.set(values, at, made)
    }

    /// An instruction that does the same to each part of its operands.
    fn by_parts(&mut self, (b, values, at): Here<'_, '_, '_>, op: Op) -> Result<Vec<Value>> {
        let has_result = at.instruction.result().is_some();
        let operands = at.instruction.rest(if has_result { 2 } else { 0 }).len();
        let results = self.module.parts(at.ty()?)?;
        let mut made = Vec::with_capacity(results.len());
        match operands {
            1 => {
                let x = self.values(b, values, at.operand(2)?)?;
                for (&x, &(_, to)) in x.iter().zip(&results) {
                    let one = self.ruled_conversion(b, at, op, x, to)?;
                    let one = match one {
                        Some(one) => Some(one),
                        None => self.unary(b, op, x, to)?,
                    };
                    made.push(one.ok_or_else(|| refused(&at.instruction))?);
                }
            }
            2 => {
                let x = self.values(b, values, at.operand(2)?)?;
                let y = self.values(b, values, at.operand(3)?)?;
                let wraps = self.wraps(at)?;
                for (&x, &y) in x.iter().zip(&y) {
                    let one = match self.no_wrap(b, op, wraps, x, y) {
                        Some(one) => Some(one),
                        None => self.binary(b, op, x, y)?,
                    };
                    made.push(one.ok_or_else(|| refused(&at.instruction))?);
                }
            }
            _ => return Err(refused(&at.instruction)),
        }
        Ok(made)
    }

    /// In which readings the module promises that a result does not wrap: signed, unsigned.
    fn wraps(&self, at: &At<'_, '_>) -> Result<(bool, bool)> {
        let id = at.instruction.word(1)?;
        let has = |decoration| self.module.decorated(id, decoration).next().is_some();
        Ok((has(Decoration::NoSignedWrap), has(Decoration::NoUnsignedWrap)))
    }
}

impl<'w> Front<BlockStep<'w>> for Translator<'_, 'w> {
    fn kind(&self, register: Register) -> Result<Type> {
        Ok(self.body.registers[register as usize])
    }

    fn get(&mut self, b: &mut Builder<'_>, values: &Values, register: Register) -> Result<Value> {
        if let Some(value) = values[register as usize] {
            return Ok(value);
        }
        match self.initial.get(&register) {
            Some(&value) => Ok(value),
            None => Ok(b.constant(self.body.registers[register as usize], 0)),
        }
    }

    fn retyped(&mut self, b: &mut Builder<'_>, value: Value, ty: Type) -> Result<Value> {
        self.exactly(b, value, ty)
    }

    fn block_place(&mut self, b: &mut Builder<'_>, block: &Block<'_, BlockStep<'w>>) -> Place {
        match block.instructions.first() {
            Some(first) => self.place(b, first),
            None => Kernel::NOWHERE,
        }
    }

    fn instructions(
        &mut self,
        b: &mut Builder<'_>,
        values: &mut Values,
        block: &Block<'_, BlockStep<'w>>,
    ) -> Result<()> {
        for step in &block.instructions {
            let place = self.place(b, step);
            b.at(place);
            self.step(b, values, step)?;
        }
        Ok(())
    }
}
