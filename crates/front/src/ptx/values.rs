//! Registers' values, and operands as values of a type.
//!
//! A register's value keeps the type it was made with; where another one of the same width is needed the bits
//! are reinterpreted.

use super::kinds::{space_of, type_of};
use super::opaque::special_type;
use super::translator::Translator;
use super::tree::{Instruction, Operand, Register};
use crate::error::{Error, Result};
use crate::ir::{BinaryOp, Builder, ConvertOp, Id, Space, Type, Value};
use crate::middle::Values;
use crate::suggest::quoted;

/// A PTX type, with its sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Numeric {
    /// The IR's type.
    pub ty: Type,
    /// Whether it is one of `s8` to `s64`.
    pub signed: bool,
}

/// Reads a PTX type.
pub(super) fn numeric(name: &str) -> Option<Numeric> {
    Some(Numeric {
        ty: type_of(name)?,
        signed: name.starts_with('s'),
    })
}

/// The type that an instruction ends with.
pub(super) fn last_type(instruction: &Instruction<'_>) -> Result<Numeric> {
    numeric(instruction.last()).ok_or_else(|| {
        Error::input(format!(
            "`{}`: type {} is not supported",
            instruction.spelling(),
            quoted(instruction.last())
        ))
    })
}

/// Refuses modifiers other than the type and these.
pub(super) fn only(instruction: &Instruction<'_>, known: &[&str]) -> Result<()> {
    let modifiers = instruction.modifiers.iter();
    match modifiers
        .copied()
        .find(|modifier| type_of(modifier).is_none() && !known.contains(modifier))
    {
        None => Ok(()),
        Some(odd) => Err(Error::input(format!(
            "`{}`: modifier `.{odd}` is not supported",
            instruction.spelling()
        ))),
    }
}

/// The operands, if there are this many.
pub(super) fn operands<'i, 't, const N: usize>(
    instruction: &'i Instruction<'t>,
) -> Result<&'i [Operand<'t>; N]> {
    <&[Operand<'t>; N]>::try_from(&instruction.operands[..]).map_err(|_| {
        Error::input(format!(
            "`{}` has {} operands where {N} are expected",
            instruction.spelling(),
            instruction.operands.len()
        ))
    })
}

impl<'t> Translator<'_, 't> {
    /// The IR's type of what a register holds.
    pub(crate) fn kind(&self, register: Register) -> Result<Type> {
        self.source.kinds.registers[register as usize].ok_or_else(|| self.odd_register(register))
    }

    /// The declared width of a register, in bits.
    pub(crate) fn width(&self, register: Register) -> Result<u32> {
        let data = &self.source.body.registers[register as usize];
        let ty = type_of(data.ty);
        ty.map(Type::bits).ok_or_else(|| self.odd_register(register))
    }

    fn odd_register(&self, register: Register) -> Error {
        let data = &self.source.body.registers[register as usize];
        let name = quoted(data.name);
        Error::input(format!("register {name} of type `.{}` is not supported", data.ty))
    }

    /// What a register holds now; 0 if nothing was written on the way here, which PTX leaves undefined.
    pub(super) fn get(&mut self, b: &mut Builder<'_>, values: &Values, register: Register) -> Result<Value> {
        match values[register as usize] {
            Some(value) => Ok(value),
            None => {
                let ty = self.kind(register)?;
                Ok(b.constant(ty, 0))
            }
        }
    }

    /// The value with another type of the same width in PTX.
    pub(crate) fn retyped(&mut self, b: &mut Builder<'_>, value: Value, ty: Type) -> Result<Value> {
        let from = b.kernel.ty(value);
        if from == ty {
            return Ok(value);
        }
        let mismatch = || Error::input(format!("a value of type {from} is used as {ty}"));
        let narrow = |space: Space| matches!(space, Space::Shared | Space::Private);
        Ok(match (from, ty) {
            // A global address is its own generic address.
            (Type::Ptr(Space::Global), Type::Ptr(Space::Generic)) => {
                b.convert(ConvertOp::ToGeneric, ty, value)
            }
            // Only `cvta` gives an address another form.
            (Type::Ptr(_), Type::Ptr(_)) => {
                let bits = b.convert(ConvertOp::Bits, Type::I64, value);
                b.convert(ConvertOp::Bits, ty, bits)
            }
            // Shared and local addresses have 32 bits in PTX's registers.
            (Type::Ptr(space), Type::I32 | Type::F32) if narrow(space) => {
                let wide = b.convert(ConvertOp::Bits, Type::I64, value);
                let bits = b.convert(ConvertOp::Truncate, Type::I32, wide);
                b.convert(ConvertOp::Bits, ty, bits)
            }
            (Type::I32 | Type::F32, Type::Ptr(space)) if narrow(space) => {
                let bits = b.convert(ConvertOp::Bits, Type::I32, value);
                let wide = b.convert(ConvertOp::ExtendU, Type::I64, bits);
                b.convert(ConvertOp::Bits, ty, wide)
            }
            (Type::Bool | Type::Token, _) | (_, Type::Bool | Type::Token) => return Err(mismatch()),
            _ if from.bits() == ty.bits() => b.convert(ConvertOp::Bits, ty, value),
            // An operand may be wider than the instruction: its low bits count.
            _ if from.bits() > ty.bits() => {
                let integer = self.as_integer(b, value)?;
                let low = b.convert(
                    ConvertOp::Truncate,
                    integer_of(ty.bits()).ok_or_else(mismatch)?,
                    integer,
                );
                b.convert(ConvertOp::Bits, ty, low)
            }
            _ => return Err(mismatch()),
        })
    }

    /// The value's bits as an integer of its width.
    pub(crate) fn as_integer(&mut self, b: &mut Builder<'_>, value: Value) -> Result<Value> {
        let ty = b.kernel.ty(value);
        match integer_of(ty.bits()) {
            Some(integer) => self.retyped(b, value, integer),
            None => Err(Error::input("a predicate is used as a number")),
        }
    }

    /// An operand as a value of this type.
    pub(crate) fn value(
        &mut self,
        b: &mut Builder<'_>,
        values: &Values,
        operand: &Operand<'t>,
        ty: Type,
    ) -> Result<Value> {
        match operand {
            Operand::Register(register) => {
                let value = self.get(b, values, *register)?;
                self.retyped(b, value, ty)
            }
            Operand::Not(register) => {
                let value = self.get(b, values, *register)?;
                let value = self.retyped(b, value, Type::Bool)?;
                let one = b.bool(true);
                Ok(b.binary(BinaryOp::Xor, value, one))
            }
            // Instructions of floats take no whole number: it states bits, whatever its register holds elsewhere.
            Operand::Integer(number) => Ok(b.constant(ty, *number)),
            Operand::Single(bits) => Ok(match ty {
                Type::F64 => b.f64(f64::from(f32::from_bits(*bits))),
                _ => b.constant(ty, u64::from(*bits)),
            }),
            Operand::Double(number) => Ok(match ty {
                Type::F32 => b.f32(*number as f32),
                _ => b.constant(ty, number.to_bits()),
            }),
            Operand::Special(name, part) => {
                let value = self.special(b, name, part)?;
                match ty.bits().cmp(&b.kernel.ty(value).bits()) {
                    std::cmp::Ordering::Greater if ty.bits() > 32 => {
                        Ok(b.convert(ConvertOp::ExtendU, Type::I64, value))
                    }
                    _ => self.retyped(b, value, ty),
                }
            }
            Operand::Symbol("WARP_SZ") => Ok(b.constant(ty, 32)),
            Operand::Symbol(_) => {
                let pointer = self.symbol(b, operand)?;
                self.retyped(b, pointer, ty)
            }
            Operand::Address(base, offset) if matches!(**base, Operand::Symbol(_)) => {
                let pointer = self.symbol(b, base)?;
                let pointer = self.offset(b, pointer, *offset);
                self.retyped(b, pointer, ty)
            }
            _ => Err(Error::input("an operand of this form has no value")),
        }
    }

    /// The address of a variable.
    pub(crate) fn symbol(&mut self, b: &mut Builder<'_>, operand: &Operand<'t>) -> Result<Value> {
        let Operand::Symbol(name) = operand else {
            return Err(Error::input("a variable is expected"));
        };
        if let Some(&array) = self.arrays.get(name) {
            return Ok(b.array_address(array));
        }
        if let Some(slot) = self.source.slots.variable(name) {
            return Ok(self.param_values[slot]);
        }
        match self.source.variables.get(name) {
            Some(variable) => Err(Error::input(format!(
                "variable {} is in space `.{}`, which has no place in a kernel on its own",
                quoted(name),
                variable.space
            ))
            .accepted("memory that is passed as a parameter")),
            None => Err(Error::input(format!("there is no variable {}", quoted(name)))),
        }
    }

    fn special(&mut self, b: &mut Builder<'_>, name: &str, part: &str) -> Result<Value> {
        let dimension = match part {
            "x" | "" => 0,
            "y" => 1,
            _ => 2,
        };
        let id = match name {
            "tid" => Id::Local(dimension),
            "ntid" => Id::GroupSize(dimension),
            "ctaid" => Id::Group(dimension),
            "nctaid" => Id::GroupCount(dimension),
            "laneid" => Id::Lane,
            "warpid" => Id::SubGroup,
            "nwarpid" => Id::SubGroupCount,
            "lanemask_eq" | "lanemask_lt" | "lanemask_le" | "lanemask_gt" | "lanemask_ge" => {
                return Ok(lane_mask(b, &name["lanemask_".len()..]));
            }
            "dynamic_smem_size" => {
                let bytes = self.source.facts.dynamic_shared_bytes.unwrap_or(0);
                return Ok(b.constant(Type::I32, u64::from(bytes)));
            }
            _ if special_type(name).is_some() => {
                let ty = special_type(name).unwrap_or(Type::I32);
                return Ok(super::opaque::special(b, name, part, ty));
            }
            _ => {
                return Err(Error::input(format!(
                    "special register {} is not supported",
                    quoted(&format!("%{name}"))
                ))
                .accepted("%tid, %ntid, %ctaid, %nctaid, %laneid, %warpid, %nwarpid, %lanemask_…"));
            }
        };
        Ok(b.id(id))
    }

    /// Writes a register. A narrower number is extended, as loads and conversions do.
    pub(super) fn set(
        &mut self,
        b: &mut Builder<'_>,
        values: &mut Values,
        operand: &Operand<'t>,
        value: Value,
        signed: bool,
    ) -> Result<()> {
        let register = match operand {
            Operand::Register(register) => *register,
            Operand::Sink => return Ok(()),
            _ => return Err(Error::input("a register is expected for the result")),
        };
        let width = self.width(register)?;
        let ty = b.kernel.ty(value);
        let narrow_pointer = width == 32 && matches!(ty, Type::Ptr(Space::Shared | Space::Private));
        let value = if ty.bits() == width || narrow_pointer {
            value
        } else if ty.bits() < width && ty != Type::Bool {
            let integer = self.as_integer(b, value)?;
            let op = if signed {
                ConvertOp::ExtendS
            } else {
                ConvertOp::ExtendU
            };
            let wide = integer_of(width).ok_or_else(|| Error::input("the result's register is too wide"))?;
            b.convert(op, wide, integer)
        } else {
            return Err(Error::input(format!(
                "a result of type {ty} goes into a register of {width} bits"
            )));
        };
        values[register as usize] = Some(value);
        Ok(())
    }

    // Addresses.

    /// Remembers that an integer is an index, scaled and displaced.
    pub(crate) fn note_scaled(&mut self, value: Value, index: Value, factor: u32, addend: i64) {
        self.shapes.note_scaled(value, index, factor, addend);
    }

    /// The index, factor and addend that an integer was made of.
    pub(crate) fn scaled(&self, value: Value) -> Option<(Value, u32, i64)> {
        self.shapes.scaled(value)
    }

    /// The pointer some bytes further.
    pub(super) fn offset(&mut self, b: &mut Builder<'_>, pointer: Value, bytes: i64) -> Value {
        self.shapes.offset(b, pointer, bytes)
    }

    /// The pointer and an integer of 32 or 64 bits.
    pub(crate) fn pointer_plus(&mut self, b: &mut Builder<'_>, pointer: Value, integer: Value) -> Value {
        self.shapes.pointer_plus(b, pointer, integer)
    }

    /// The pointer of an access, into the space that the instruction names; generic if it names none.
    pub(crate) fn access(
        &mut self,
        b: &mut Builder<'_>,
        values: &Values,
        instruction: &Instruction<'t>,
        operand: &Operand<'t>,
    ) -> Result<Value> {
        let Operand::Address(base, offset) = operand else {
            return Err(Error::input(format!(
                "`{}` takes an address",
                instruction.spelling()
            )));
        };
        let mut named = instruction.modifiers.iter().find_map(|word| space_of(word));
        // A structure that is passed by value, and has an address: memory that nothing writes.
        if instruction.has("param") {
            named = Some(Space::Global);
        }
        let pointer = match &**base {
            Operand::Register(register) => {
                let value = self.get(b, values, *register)?;
                self.retyped(b, value, Type::Ptr(named.unwrap_or(Space::Generic)))?
            }
            Operand::Symbol(_) => {
                let pointer = self.symbol(b, base)?;
                match named {
                    Some(space) => self.retyped(b, pointer, Type::Ptr(space))?,
                    None => pointer,
                }
            }
            _ => return Err(Error::input("an absolute address leads nowhere in a kernel")),
        };
        Ok(self.offset(b, pointer, *offset))
    }
}

/// The lanes that are equal to, less than, … one's own, a bit each.
fn lane_mask(b: &mut Builder<'_>, relation: &str) -> Value {
    let lane = b.id(Id::Lane);
    let one = b.i32(1);
    let own = b.binary(BinaryOp::Shl, one, lane);
    let less = b.sub(own, one);
    let up_to = b.binary(BinaryOp::Or, own, less);
    match relation {
        "eq" => own,
        "lt" => less,
        "le" => up_to,
        "gt" => b.unary(crate::ir::UnaryOp::Not, up_to),
        _ => b.unary(crate::ir::UnaryOp::Not, less),
    }
}

/// The integer type of this many bits.
pub(super) fn integer_of(bits: u32) -> Option<Type> {
    Some(match bits {
        8 => Type::I8,
        16 => Type::I16,
        32 => Type::I32,
        64 => Type::I64,
        _ => return None,
    })
}

/// Whether a value is an address.
pub(super) fn is_pointer(b: &Builder<'_>, value: Value) -> bool {
    b.kernel.ty(value).is_pointer()
}

/// An instruction that the IR cannot express.
pub(super) fn refused(instruction: &Instruction<'_>) -> Error {
    Error::input(format!("`{}` is not supported", instruction.spelling()))
}
