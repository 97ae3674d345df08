//! Types: how large they are, and the numbers and pointers that they are made of.

use rspirv::spirv::{Decoration, Op, StorageClass};

use super::module::Module;
use super::words::Instruction;
use crate::error::{Error, Result};
use crate::ir::{Space, Type};
use crate::suggest::quoted;

/// Most numbers that a value may be made of.
const MOST_PARTS: usize = 1024;

/// Most types inside each other.
const DEEPEST: u32 = 32;

/// A number or pointer inside a value, and the byte where it starts.
pub(super) type Part = (u64, Type);

/// The space that a storage class names.
pub(super) fn space_of(class: u32) -> Option<Space> {
    Some(match StorageClass::from_u32(class)? {
        StorageClass::CrossWorkgroup | StorageClass::UniformConstant => Space::Global,
        StorageClass::Workgroup => Space::Shared,
        StorageClass::Function | StorageClass::Private => Space::Private,
        StorageClass::Generic => Space::Generic,
        _ => return None,
    })
}

impl Module<'_> {
    /// The space and the pointee of a pointer type.
    ///
    /// # Errors
    /// It is no pointer type, or one of a class that OpenCL has not.
    pub(crate) fn pointer(&self, ty: u32) -> Result<(u32, u32)> {
        let instruction = self.global(ty)?;
        match instruction.op {
            Some(Op::TypePointer) => Ok((instruction.word(1)?, instruction.word(2)?)),
            _ => Err(Error::input(format!(
                "{} is used as a pointer",
                quoted(&self.type_name(&instruction))
            ))),
        }
    }

    /// Size and alignment of a type in memory, in bytes.
    ///
    /// # Errors
    /// Values of the type are in no memory, or it is too large.
    pub(crate) fn size(&self, ty: u32) -> Result<(u64, u64)> {
        self.size_within(ty, 0)
    }

    fn size_within(&self, ty: u32, depth: u32) -> Result<(u64, u64)> {
        // Types share parts: each is looked at once.
        if let Some(&known) = self.sizes.borrow().get(&ty) {
            return Ok(known);
        }
        let found = self.size_of(ty, depth)?;
        self.sizes.borrow_mut().insert(ty, found);
        Ok(found)
    }

    fn size_of(&self, ty: u32, depth: u32) -> Result<(u64, u64)> {
        let instruction = self.global(ty)?;
        let too_large = || Error::input("a type is too large");
        if depth > DEEPEST {
            return Err(Error::input("types are nested too deeply"));
        }
        match instruction.op {
            Some(Op::TypeVector) => {
                let (size, _) = self.size_within(instruction.word(1)?, depth + 1)?;
                let count = self.vector_length(&instruction)?;
                let count = if count == 3 { 4 } else { count };
                let bytes = size.checked_mul(count).ok_or_else(too_large)?;
                Ok((bytes, bytes.clamp(1, 1 << 16)))
            }
            Some(Op::TypeArray) => {
                let (size, align) = self.size_within(instruction.word(1)?, depth + 1)?;
                let count = self.number(instruction.word(2)?)?;
                Ok((size.checked_mul(count).ok_or_else(too_large)?, align))
            }
            Some(Op::TypeStruct) => {
                let (members, align) = self.members(ty, &instruction, depth)?;
                let end = members.iter().map(|&(start, size, _)| start + size).max();
                let end = end.unwrap_or(0);
                Ok((end.checked_next_multiple_of(align).ok_or_else(too_large)?, align))
            }
            _ => {
                let bytes = u64::from(self.scalar(&instruction)?.bytes());
                Ok((bytes, bytes))
            }
        }
    }

    fn vector_length(&self, instruction: &Instruction<'_>) -> Result<u64> {
        match instruction.word(2)? {
            count @ 2..=16 => Ok(u64::from(count)),
            count => {
                Err(Error::input(format!("a vector of {count} is not supported"))
                    .accepted("vectors of 2 to 16"))
            }
        }
    }

    /// Start, size and type of each member of a structure, and the structure's alignment.
    fn members(
        &self,
        ty: u32,
        instruction: &Instruction<'_>,
        depth: u32,
    ) -> Result<(Vec<(u64, u64, u32)>, u64)> {
        let packed = self.decorated(ty, Decoration::CPacked).next().is_some();
        let (mut end, mut align) = (0u64, 1u64);
        let mut members = Vec::with_capacity(instruction.rest(1).len());
        for (number, &member) in (0..).zip(instruction.rest(1)) {
            let (size, own) = self.size_within(member, depth + 1)?;
            let own = if packed { 1 } else { own };
            let said = self.member_decorated(ty, number, Decoration::Offset);
            let start = match said.and_then(|words| words.first()) {
                Some(&offset) => u64::from(offset),
                None => end.next_multiple_of(own.max(1)),
            };
            end = start
                .checked_add(size)
                .filter(|&end| end < 1 << 40)
                .ok_or_else(|| Error::input("a type is too large"))?;
            align = align.max(own);
            members.push((start, size, member));
        }
        Ok((members, align))
    }

    /// Where a member of a structure starts, and its type.
    ///
    /// # Errors
    /// It has no such member.
    pub(crate) fn member(&self, ty: u32, number: u64) -> Result<(u64, u32)> {
        let instruction = self.global(ty)?;
        let members = self.members(ty, &instruction, 0)?.0;
        let found = usize::try_from(number)
            .ok()
            .and_then(|number| members.get(number));
        found
            .map(|&(start, _, member)| (start, member))
            .ok_or_else(|| Error::input(format!("a structure has no member {number}")))
    }

    /// The element type of a vector or an array.
    pub(crate) fn element(&self, ty: u32) -> Result<Option<u32>> {
        let instruction = self.global(ty)?;
        match instruction.op {
            Some(Op::TypeVector | Op::TypeArray) => instruction.word(1).map(Some),
            _ => Ok(None),
        }
    }

    /// The numbers and pointers that a value of a type is made of, in order. `void` has none.
    ///
    /// # Errors
    /// It is made of something else, or of too many.
    pub(crate) fn parts(&self, ty: u32) -> Result<Vec<Part>> {
        let mut parts = Vec::new();
        self.add_parts(ty, (0, 0), &mut 0, &mut parts)?;
        Ok(parts)
    }

    fn add_parts(
        &self,
        ty: u32,
        (start, depth): (u64, u32),
        visited: &mut usize,
        parts: &mut Vec<Part>,
    ) -> Result<()> {
        // A type without components has no parts, and is visited all the same.
        *visited += 1;
        if depth > DEEPEST || parts.len() > MOST_PARTS || *visited > 8 * MOST_PARTS {
            return Err(Error::input("a value is made of too many parts")
                .accepted(format!("at most {MOST_PARTS} numbers and pointers")));
        }
        let instruction = self.global(ty)?;
        match instruction.op {
            Some(Op::TypeVoid) => {}
            Some(Op::TypeVector | Op::TypeArray) => {
                let element = instruction.word(1)?;
                let count = match instruction.op {
                    Some(Op::TypeVector) => self.vector_length(&instruction)?,
                    _ => self.number(instruction.word(2)?)?,
                };
                // A vector's truth values take no memory.
                let stride = self.size(element)?.0;
                if count > MOST_PARTS as u64 {
                    return Err(Error::input("a value is made of too many parts")
                        .accepted(format!("at most {MOST_PARTS} numbers and pointers")));
                }
                for number in 0..count {
                    let start = start.saturating_add(number.saturating_mul(stride));
                    self.add_parts(element, (start, depth + 1), visited, parts)?;
                }
            }
            Some(Op::TypeStruct) => {
                for (offset, _, member) in self.members(ty, &instruction, depth)?.0 {
                    self.add_parts(member, (start.saturating_add(offset), depth + 1), visited, parts)?;
                }
            }
            _ => parts.push((start, self.scalar(&instruction)?)),
        }
        Ok(())
    }

    /// How many numbers and pointers a value of a type is made of.
    pub(crate) fn count(&self, ty: u32) -> Result<usize> {
        self.parts(ty).map(|parts| parts.len())
    }

    /// The one number or pointer that a value of a type is.
    ///
    /// # Errors
    /// It is made of several, or of something else.
    pub(crate) fn one(&self, ty: u32) -> Result<Type> {
        match self.parts(ty)?[..] {
            [(_, one)] => Ok(one),
            _ => Err(Error::input("a number or a pointer is expected here")),
        }
    }

    /// The IR's type of a number or pointer.
    fn scalar(&self, instruction: &Instruction<'_>) -> Result<Type> {
        let odd = || {
            let name = self.type_name(instruction);
            let error = Error::input(format!("values of type {} are not supported", quoted(&name)));
            error.accepted(
                "truth values, integers of 8, 16, 32 and 64 bits, floats of 16, 32 and 64, pointers, vectors, arrays \
                 and structures of them",
            )
        };
        Ok(match instruction.op {
            Some(Op::TypeBool) => Type::Bool,
            Some(Op::TypeInt) => match instruction.word(1)? {
                8 => Type::I8,
                16 => Type::I16,
                32 => Type::I32,
                64 => Type::I64,
                _ => return Err(odd()),
            },
            Some(Op::TypeFloat) => match (instruction.word(1)?, instruction.words.get(2)) {
                (16, None) => Type::F16,
                (16, Some(0)) => Type::Bf16,
                (32, None) => Type::F32,
                (64, None) => Type::F64,
                _ => return Err(odd()),
            },
            Some(Op::TypePointer) => Type::Ptr(space_of(instruction.word(1)?).ok_or_else(odd)?),
            // Which copies it stands for does not matter: a wait is for all of them.
            Some(Op::TypeEvent) => Type::I32,
            _ => return Err(odd()),
        })
    }

    /// What a type is called in messages.
    fn type_name(&self, instruction: &Instruction<'_>) -> String {
        let bits = instruction.words.get(1).copied().unwrap_or_default();
        match instruction.op {
            Some(Op::TypeInt) => format!("OpTypeInt {bits}"),
            Some(Op::TypeFloat) => format!("OpTypeFloat {bits}"),
            Some(Op::TypeImage | Op::TypeSampler | Op::TypeSampledImage) => {
                format!("{} (images and samplers)", instruction.name())
            }
            _ => instruction.name(),
        }
    }
}
