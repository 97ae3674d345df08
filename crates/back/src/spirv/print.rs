//! Lines that a kernel prints, through OpenCL's `printf`.
//!
//! Its text must be a constant of the module, and so must every string that it shows. A truth value is therefore a
//! branch between two lines, one with the word `true` and one with `false`.

use rspirv::dr::Operand;
use rspirv::spirv::{Op as Code, OpenclStd100Op as Std, StorageClass, Word};

use super::emitter::Emitter;
use crate::ir::line::{Piece, Shown, pieces};
use crate::ir::{Type, Value};

/// Truth values in a line whose words are distinguished; further ones are shown as 0 and 1.
const MOST_BRANCHES: u32 = 4;

/// A place as OpenCL's `printf` spells it.
fn place(shown: Shown, ty: Type) -> &'static str {
    match (shown, ty) {
        (Shown::Signed, Type::I64) => "%ld",
        (Shown::Signed, _) => "%d",
        (Shown::Unsigned, Type::I64) => "%lu",
        (Shown::Unsigned, _) => "%u",
        (Shown::Hexadecimal, Type::I64) => "%lx",
        (Shown::Hexadecimal, _) => "%x",
        // As many digits as tell a value from every other.
        (Shown::Float, Type::F32) => "%.9g",
        (Shown::Float, _) => "%.17g",
        (Shown::Truth, _) => "%d",
    }
}

impl Emitter<'_> {
    /// A line.
    pub(super) fn print(&mut self, text: &str, values: &[Value]) {
        let pieces = pieces(text).unwrap_or_default();
        self.line(&pieces, values, String::new(), Vec::new(), MOST_BRANCHES);
    }

    /// The rest of a line, after the text that is already `spelled` and shows the `given` values.
    fn line(
        &mut self,
        pieces: &[Piece],
        values: &[Value],
        mut spelled: String,
        mut given: Vec<Word>,
        branches: u32,
    ) {
        let mut values = values;
        for (index, piece) in pieces.iter().enumerate() {
            let shown = match piece {
                Piece::Text(text) => {
                    spelled.push_str(&text.replace('%', "%%"));
                    continue;
                }
                Piece::Value(_) | Piece::Converted(..) => piece,
            };
            let Some((&value, rest)) = values.split_first() else {
                break;
            };
            values = rest;
            let ty = self.ty(value);
            let id = self.seen(value);
            if let Piece::Converted(_, conversion) = shown {
                spelled.push_str(&conversion.spelled(if ty == Type::I64 { "l" } else { "" }));
                given.push(self.argument(ty, id));
                continue;
            }
            let shown = shown.shown().unwrap_or(Shown::Unsigned);
            if shown == Shown::Truth && branches > 0 {
                let [yes, no, done] = [(); 3].map(|()| self.module.new_id());
                let operands = [id, yes, no].map(Operand::IdRef).to_vec();
                self.module.close(Code::BranchConditional, operands);
                for (label, word) in [(yes, "true"), (no, "false")] {
                    self.module.begin(label);
                    let spelled = format!("{spelled}{word}");
                    self.line(&pieces[index + 1..], values, spelled, given.clone(), branches - 1);
                    self.module.branch(done);
                }
                self.module.begin(done);
                return;
            }
            spelled.push_str(place(shown, ty));
            given.push(self.argument(ty, id));
        }
        let mut operands = vec![self.text(&spelled)];
        operands.extend(given);
        let int = self.module.int(32);
        self.module.opencl(int, Std::printf, &operands);
    }

    /// A value as it is passed: floats in double precision, as C has it.
    fn argument(&mut self, ty: Type, id: Word) -> Word {
        match ty {
            Type::F32 => {
                let double = self.module.float(64);
                self.module.ins(Code::FConvert, double, &[id])
            }
            Type::Bool => {
                let int = self.module.int(32);
                let [one, zero] = [1, 0].map(|bit| self.module.constant(32, bit));
                self.module.ins(Code::Select, int, &[id, one, zero])
            }
            _ => id,
        }
    }

    /// The address of a text that is part of the module.
    fn text(&mut self, text: &str) -> Word {
        let byte = self.module.int(8);
        let bytes: Vec<Word> = text
            .bytes()
            .chain([0])
            .map(|byte| self.module.constant(8, u64::from(byte)))
            .collect();
        let ty = self.module.array(byte, bytes.len() as u32);
        let initial = self.module.composite(ty, &bytes);
        let variable = self
            .module
            .initialized(StorageClass::UniformConstant, ty, initial);
        self.interface.push(variable);
        let pointer = self.module.pointer(StorageClass::UniformConstant, byte);
        let zero = self.module.constant(64, 0);
        self.module
            .ins(Code::InBoundsPtrAccessChain, pointer, &[variable, zero, zero])
    }
}
