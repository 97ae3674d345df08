//! A module's words: the header, and one instruction after the other.

use std::sync::OnceLock;

use rspirv::grammar::{INSTRUCTION_TABLE, OperandKind};
use rspirv::spirv::{self, Op};

use crate::error::{Error, Result};
use crate::suggest::quoted;

/// Words of the header.
const HEADER: usize = 5;

/// Opcodes of the specification and of all extensions that are known lie below.
const OPCODES: usize = 1 << 13;

/// An instruction as it stands in a module.
#[derive(Clone, Copy, Debug)]
#[doc(hidden)]
pub struct Instruction<'w> {
    /// What it is; nothing for an opcode that is not known.
    pub op: Option<Op>,
    /// Its number.
    pub code: u16,
    /// Its operands.
    pub words: &'w [u32],
    /// The word of the module where it starts.
    pub at: usize,
}

impl<'w> Instruction<'w> {
    /// Its name, as the specification has it.
    pub fn name(&self) -> String {
        match self.op {
            Some(op) => format!("Op{op:?}"),
            None => format!("instruction {}", self.code),
        }
    }

    /// The byte of the module where it starts.
    pub(crate) fn byte(&self) -> usize {
        self.at * 4
    }

    /// An operand.
    ///
    /// # Errors
    /// There are not this many.
    pub fn word(&self, number: usize) -> Result<u32> {
        self.words.get(number).copied().ok_or_else(|| {
            Error::input(format!(
                "`{}` has {} words of operands, and needs more",
                self.name(),
                self.words.len()
            ))
            .at(format!("byte {}", self.byte()))
        })
    }

    /// The operands from one on.
    pub fn rest(&self, from: usize) -> &'w [u32] {
        self.words.get(from..).unwrap_or_default()
    }

    /// The text that starts at an operand, and the number of the operand behind it.
    pub fn string(&self, from: usize) -> (String, usize) {
        string(self.rest(from), from)
    }

    /// Whether it has a result type.
    pub(crate) fn has_type(&self) -> bool {
        shape(self.code).0
    }

    /// The id that it defines.
    pub fn result(&self) -> Option<u32> {
        let (has_type, has_result) = shape(self.code);
        if !has_result {
            return None;
        }
        self.words.get(usize::from(has_type)).copied()
    }
}

/// The text at the start of some words, and how many words further it ends, counted on from `from`.
fn string(words: &[u32], from: usize) -> (String, usize) {
    let mut bytes = Vec::new();
    for (number, word) in words.iter().enumerate() {
        for byte in word.to_le_bytes() {
            if byte == 0 {
                return (String::from_utf8_lossy(&bytes).into_owned(), from + number + 1);
            }
            bytes.push(byte);
        }
    }
    (String::from_utf8_lossy(&bytes).into_owned(), from + words.len())
}

/// Whether instructions of an opcode have a result type and a result.
fn shape(code: u16) -> (bool, bool) {
    static SHAPES: OnceLock<Vec<(bool, bool)>> = OnceLock::new();
    let shapes = SHAPES.get_or_init(|| {
        let mut shapes = vec![(false, false); OPCODES];
        for instruction in INSTRUCTION_TABLE.iter() {
            let has = |kind: OperandKind| instruction.operands.iter().any(|operand| operand.kind == kind);
            if let Some(shape) = shapes.get_mut(instruction.opcode as usize) {
                *shape = (has(OperandKind::IdResultType), has(OperandKind::IdResult));
            }
        }
        shapes
    });
    shapes.get(usize::from(code)).copied().unwrap_or_default()
}

/// The words of a file, in the order of this machine.
///
/// # Errors
/// The file is no SPIR-V module, or one of a version that is not read.
pub(super) fn words(bytes: &[u8]) -> Result<Vec<u32>> {
    let (whole, rest) = bytes.as_chunks::<4>();
    let mut words: Vec<u32> = whole.iter().map(|word| u32::from_le_bytes(*word)).collect();
    if words.first().copied().map(u32::swap_bytes) == Some(spirv::MAGIC_NUMBER) {
        words.iter_mut().for_each(|word| *word = word.swap_bytes());
    }
    let no_module = |what: &str| {
        Error::input(what)
            .at("byte 0")
            .accepted("a module of SPIR-V in its binary form, as `llvm-spirv` and `clang` write it")
    };
    if words.first() != Some(&spirv::MAGIC_NUMBER) {
        return Err(no_module("the file does not start as a SPIR-V module does"));
    }
    if words.len() < HEADER || !rest.is_empty() {
        return Err(no_module(
            "the file is cut off: a SPIR-V module is whole words, five of them in front",
        ));
    }
    let (major, minor) = (words[1] >> 16 & 0xff, words[1] >> 8 & 0xff);
    if major != 1 || minor > 6 {
        return Err(Error::input(format!("the module is of SPIR-V {major}.{minor}"))
            .at("byte 4")
            .accepted("versions 1.0 to 1.6"));
    }
    Ok(words)
}

/// The instructions of a module from a word on.
///
/// An instruction that is cut off is an error, and ends them.
#[doc(hidden)]
pub fn instructions(words: &[u32], from: usize) -> impl Iterator<Item = Result<Instruction<'_>>> {
    let mut at = from.max(HEADER);
    std::iter::from_fn(move || {
        let first = *words.get(at)?;
        let (count, code) = ((first >> 16) as usize, first as u16);
        if count == 0 || at + count > words.len() {
            let error = Error::input(format!(
                "an instruction of {count} words starts here, and the module has {} more",
                words.len() - at
            ));
            let error = error.at(format!("byte {}", at * 4));
            at = words.len();
            return Some(Err(error));
        }
        let instruction = Instruction {
            op: Op::from_u32(u32::from(code)),
            code,
            words: &words[at + 1..at + count],
            at,
        };
        at += count;
        Some(Ok(instruction))
    })
}

/// An instruction that is not understood, by name.
pub(super) fn refused(instruction: &Instruction<'_>) -> Error {
    Error::input(format!("{} is not supported", quoted(&instruction.name()))).named()
}
