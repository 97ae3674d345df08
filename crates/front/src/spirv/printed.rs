//! `printf`: a line whose text is a constant of the module.
//!
//! ```text
//! @text = "%d of %5.2f\n"
//! %p = OpInBoundsPtrAccessChain @text 0 0         (nothing)
//! %r = OpExtInst printf %p %x %y                  print "{i%d} of {f%5.2f}\n", %x, %y;  %r is 0
//! ```
//!
//! Each place keeps its conversion, so that a line that is written back prints what it printed. A vector is shown as OpenCL does,
//! its numbers with commas between; a text that is an argument becomes a part of the line.

use std::collections::{HashMap, HashSet};

use rspirv::spirv::{Op, OpenclStd100Op as Std, StorageClass};

use super::body::{Body, Operand, What};
use super::module::Module;
use super::operands::ids;
use super::translate::{Here, Translator};
use super::words::Instruction;
use crate::error::{Error, Result};
use crate::ir::conversion::Conversion;
use crate::ir::line::Shown;
use crate::ir::{Builder, ConvertOp, Type, Value, limits};
use crate::middle::Register;

/// Most instructions from a variable to an address in it.
const DEEPEST: u32 = 8;

/// A place in a variable of the module: its id, and how many bytes from its start.
type Address = (u32, u64);

/// Whether an instruction prints.
pub(super) fn prints(module: &Module<'_>, instruction: &Instruction<'_>) -> bool {
    module.is_standard(instruction, Std::printf)
}

/// Takes out the addresses that are for lines alone, and says where they lead.
pub(super) fn take_texts(module: &Module<'_>, body: &mut Body<'_>) {
    let is_line =
        |what: &What<'_>| matches!(what, What::Plain(instruction, _) if prints(module, instruction));
    if !body.steps().any(|step| is_line(&step.what)) {
        return;
    }
    let mut texts: HashMap<Register, Address> = HashMap::new();
    // Blocks stand behind those that dominate them.
    for step in body.steps() {
        if let (What::Plain(instruction, frame), [to]) = (&step.what, &step.writes[..])
            && let Some(address) = derived(module, instruction, |id| {
                let held = body.held(Operand { frame: *frame, id });
                match held {
                    Some(held) => texts.get(&held.first).copied(),
                    None => constant(module, id, 0),
                }
            })
        {
            texts.insert(*to, address);
        }
    }
    // Any other use of such an address needs the variable in memory, and so do the values that the address is made of.
    let mut needed: HashSet<Register> = HashSet::new();
    let mut before = usize::MAX;
    while before != needed.len() {
        before = needed.len();
        for step in body.steps() {
            let makes_text = step
                .writes
                .iter()
                .any(|to| texts.contains_key(to) && !needed.contains(to));
            if !is_line(&step.what) && !makes_text {
                needed.extend(step.reads.iter().filter(|from| texts.contains_key(from)));
            }
        }
    }
    for block in &mut body.blocks {
        block.instructions.retain(|step| {
            !step
                .writes
                .iter()
                .any(|to| texts.contains_key(to) && !needed.contains(to))
        });
        for step in &mut block.instructions {
            if is_line(&step.what) {
                step.reads
                    .retain(|from| !texts.contains_key(from) || needed.contains(from));
            }
        }
    }
    body.texts = texts;
}

/// Where an instruction leads that makes an address of a text.
fn derived(
    module: &Module<'_>,
    instruction: &Instruction<'_>,
    base: impl Fn(u32) -> Option<Address>,
) -> Option<Address> {
    let operands = instruction.rest(2);
    match instruction.op? {
        Op::Bitcast | Op::CopyObject | Op::PtrCastToGeneric => base(*operands.first()?),
        Op::AccessChain | Op::InBoundsAccessChain | Op::PtrAccessChain | Op::InBoundsPtrAccessChain => {
            let (variable, start) = base(*operands.first()?)?;
            inside(module, &operands[1..]).map(|offset| (variable, start.wrapping_add(offset)))
        }
        _ => None,
    }
}

/// The byte that indices lead to, the last of which counts bytes: those before it are 0.
fn inside(module: &Module<'_>, indices: &[u32]) -> Option<u64> {
    let (last, first) = indices.split_last()?;
    let zero = |id: &u32| module.number(*id).is_ok_and(|number| number == 0);
    first.iter().all(zero).then(|| module.number(*last).ok())?
}

/// Where an id of the module leads: a variable of constants, or a constant address in one.
fn constant(module: &Module<'_>, id: u32, depth: u32) -> Option<Address> {
    let instruction = module.global(id).ok()?;
    match instruction.op? {
        Op::Variable => {
            let (class, _) = module.pointer(instruction.word(0).ok()?).ok()?;
            let is_text = class == StorageClass::UniformConstant as u32 && instruction.words.len() > 3;
            is_text.then_some((id, 0))
        }
        Op::SpecConstantOp if depth < DEEPEST => {
            let base = *instruction.rest(3).first()?;
            let (variable, start) = constant(module, base, depth + 1)?;
            let offset = match Op::from_u32(instruction.word(2).ok()?)? {
                Op::Bitcast | Op::PtrCastToGeneric => 0,
                Op::AccessChain
                | Op::InBoundsAccessChain
                | Op::PtrAccessChain
                | Op::InBoundsPtrAccessChain => inside(module, instruction.rest(4))?,
                _ => return None,
            };
            Some((variable, start.wrapping_add(offset)))
        }
        _ => None,
    }
}

impl Translator<'_, '_> {
    /// `printf`.
    pub(super) fn printed(&mut self, (b, values, at): Here<'_, '_, '_>) -> Result<Vec<Value>> {
        let format = self.text(at.operand(4)?)?;
        let (mut line, mut shown) = (String::new(), Vec::new());
        let mut next = 5;
        let mut rest = format.as_str();
        while let Some(place) = rest.find('%') {
            add_text(&mut line, &rest[..place]);
            rest = &rest[place + 1..];
            if let Some(behind) = rest.strip_prefix('%') {
                line.push('%');
                rest = behind;
                continue;
            }
            let operand = at
                .operand(next)
                .map_err(|_| Error::input("`printf` has fewer values than its text has places"))?;
            next += 1;
            if let Some(behind) = rest.strip_prefix('s') {
                let text = self.text(operand)?;
                add_text(&mut line, &text);
                rest = behind;
                continue;
            }
            let Some((conversion, length, vector, behind)) = Conversion::take(rest) else {
                let end = rest
                    .find(|c: char| c.is_ascii_alphabetic())
                    .map_or(rest.len(), |end| end + 1);
                return Err(Error::input(format!("`printf` has a place `%{}`", &rest[..end])).accepted(
                    "conversions of integers and floats with a width and a precision in the text, `%c`, and `%s` of constant \
                     texts",
                ));
            };
            rest = behind;
            let parts = self.values(b, values, operand)?;
            let expected = vector.map_or(1, |count| count as usize);
            if parts.len() != expected {
                return Err(Error::input(format!(
                    "`printf` shows {} numbers where its text has a place for {expected}",
                    parts.len()
                )));
            }
            // Elements of vectors of bytes and of 16 bits come as they are; numbers alone come in 32 bits.
            let conversion = match (vector, length) {
                (Some(_), "hh" | "h") => conversion.of_whole_values(),
                _ => conversion,
            };
            for (number, part) in parts.into_iter().enumerate() {
                if number > 0 {
                    line.push(',');
                }
                let part = shown_as(b, part, &conversion)?;
                line.push_str(&format!("{{{}{conversion}}}", Shown::by(&conversion).letter()));
                shown.push(part);
            }
        }
        add_text(&mut line, rest);
        if line.len() > limits::LINE_BYTES || shown.len() > limits::LINE_VALUES {
            return Err(Error::input("a line is too long").accepted(format!(
                "at most {} bytes and {} values",
                limits::LINE_BYTES,
                limits::LINE_VALUES
            )));
        }
        b.print(line, shown);
        Ok(vec![b.i32(0)])
    }

    /// The text that an operand leads to.
    fn text(&self, operand: Operand) -> Result<String> {
        let address = match self.body.held(operand) {
            Some(held) => self.body.texts.get(&held.first).copied(),
            None => constant(self.module, operand.id, 0),
        };
        let known = address.and_then(|(variable, start)| {
            let initial = *self.module.global(variable).ok()?.words.get(3)?;
            let bytes = self.text_bytes(initial)?;
            let bytes = bytes.get(usize::try_from(start).ok()?..)?;
            let end = bytes.iter().position(|&byte| byte == 0)?;
            Some(String::from_utf8_lossy(&bytes[..end]).into_owned())
        });
        known.ok_or_else(|| {
            Error::input("`printf` shows a text that only the run tells")
                .accepted("texts that are constants of the module")
        })
    }

    /// The bytes of a constant that is an array of them.
    fn text_bytes(&self, id: u32) -> Option<Vec<u8>> {
        let constant = self.module.global(id).ok()?;
        let element = self.module.element(constant.word(0).ok()?).ok()??;
        if self.module.one(element).ok()? != Type::I8 {
            return None;
        }
        match constant.op? {
            Op::ConstantNull => Some(vec![0]),
            Op::ConstantComposite => {
                let bytes = constant.rest(2).iter();
                bytes
                    .map(|&byte| Some(self.module.number(byte).ok()? as u8))
                    .collect()
            }
            _ => None,
        }
    }
}

/// Adds text to a line, in which braces are places.
fn add_text(line: &mut String, text: &str) {
    line.push_str(&text.replace('{', "{{").replace('}', "}}"));
}

/// The value in a type that a line can show.
fn shown_as(b: &mut Builder<'_>, value: Value, conversion: &Conversion) -> Result<Value> {
    let ty = b.kernel.ty(value);
    let made = match (conversion.is_of_floats(), ty) {
        (true, Type::F32 | Type::F64) | (false, Type::I32 | Type::I64) => value,
        (true, Type::F16) => b.convert(ConvertOp::FloatToFloat, Type::F32, value),
        (false, Type::I8 | Type::I16) => match conversion.letter() {
            'd' | 'i' => b.convert(ConvertOp::ExtendS, Type::I32, value),
            _ => b.convert(ConvertOp::ExtendU, Type::I32, value),
        },
        _ => {
            return Err(Error::input(format!(
                "`printf` shows a value of type {ty} with `{conversion}`"
            )));
        }
    };
    Ok(made)
}

/// The ids that a step may need in memory: of a line none, for its texts are in it.
pub(super) fn mentions(module: &Module<'_>, instruction: &Instruction<'_>) -> Vec<u32> {
    match prints(module, instruction) {
        true => Vec::new(),
        false => ids(instruction),
    }
}
