//! Parts of vectors, arrays and structures that are values.

use rspirv::spirv::Op;

use super::translate::{Here, Translator};
use crate::error::{Error, Result};
use crate::ir::{CompareOp, Type, Value};

impl Translator<'_, '_> {
    /// The parts of a value of a type that some indices lead to: the first of them, and their type.
    fn inside(&self, mut ty: u32, indices: &[u32]) -> Result<(usize, u32)> {
        let mut start = 0;
        for &index in indices {
            let wrong = || Error::input(format!("a value has no part {index}"));
            match self.module.element(ty)? {
                Some(element) => {
                    let each = self.module.count(element)?;
                    let all = self.module.count(ty)?;
                    let own = (index as usize).checked_mul(each).filter(|&own| own < all.max(1));
                    start += own.ok_or_else(wrong)?;
                    ty = element;
                }
                None => {
                    let structure = self.module.global(ty)?;
                    if structure.op != Some(Op::TypeStruct) {
                        return Err(wrong());
                    }
                    let members = structure.rest(1);
                    let member = *members.get(index as usize).ok_or_else(wrong)?;
                    for &before in &members[..index as usize] {
                        start += self.module.count(before)?;
                    }
                    ty = member;
                }
            }
        }
        Ok((start, ty))
    }

    /// What takes values apart and puts them together.
    pub(crate) fn composite(&mut self, (b, values, at): Here<'_, '_, '_>, op: Op) -> Result<Vec<Value>> {
        let instruction = at.instruction;
        let beyond = || Error::input("a value has fewer parts than are taken of it");
        Ok(match op {
            Op::Undef => {
                let parts = self.module.parts(at.ty()?)?;
                parts.iter().map(|&(_, ty)| b.constant(ty, 0)).collect()
            }
            Op::CopyObject | Op::CopyLogical | Op::ExpectKHR => self.values(b, values, at.operand(2)?)?,
            Op::CompositeExtract => {
                let whole = at.operand(2)?;
                let (start, ty) = self.inside(self.type_of(whole)?, instruction.rest(3))?;
                let count = self.module.count(ty)?;
                let all = self.values(b, values, whole)?;
                all.get(start..start + count).ok_or_else(beyond)?.to_vec()
            }
            Op::CompositeInsert => {
                let (part, whole) = (at.operand(2)?, at.operand(3)?);
                let (start, _) = self.inside(self.type_of(whole)?, instruction.rest(4))?;
                let own = self.values(b, values, part)?;
                let mut all = self.values(b, values, whole)?;
                let places = all.get_mut(start..start + own.len()).ok_or_else(beyond)?;
                places.copy_from_slice(&own);
                all
            }
            Op::CompositeConstruct => {
                let mut all = Vec::new();
                for number in 2..instruction.words.len() {
                    all.extend(self.values(b, values, at.operand(number)?)?);
                }
                all
            }
            Op::VectorShuffle => {
                let mut both = self.values(b, values, at.operand(2)?)?;
                both.extend(self.values(b, values, at.operand(3)?)?);
                let ty = self
                    .module
                    .parts(at.ty()?)?
                    .first()
                    .map_or(Type::I32, |part| part.1);
                let mut made = Vec::new();
                for &number in instruction.rest(4) {
                    made.push(match number {
                        u32::MAX => b.constant(ty, 0),
                        _ => *both.get(number as usize).ok_or_else(beyond)?,
                    });
                }
                made
            }
            Op::VectorExtractDynamic => {
                let all = self.values(b, values, at.operand(2)?)?;
                let index = self.value(b, values, at.operand(3)?)?;
                let ty = b.kernel.ty(index);
                let mut made = *all.first().ok_or_else(beyond)?;
                for (number, &one) in all.iter().enumerate().skip(1) {
                    let wanted = b.constant(ty, number as u64);
                    let is = b.compare(CompareOp::Eq, index, wanted);
                    made = b.select(is, one, made);
                }
                vec![made]
            }
            _ => {
                let all = self.values(b, values, at.operand(2)?)?;
                let part = self.value(b, values, at.operand(3)?)?;
                let index = self.value(b, values, at.operand(4)?)?;
                let ty = b.kernel.ty(index);
                let mut made = Vec::with_capacity(all.len());
                for (number, &one) in all.iter().enumerate() {
                    let wanted = b.constant(ty, number as u64);
                    let is = b.compare(CompareOp::Eq, index, wanted);
                    made.push(b.select(is, part, one));
                }
                made
            }
        })
    }
}
