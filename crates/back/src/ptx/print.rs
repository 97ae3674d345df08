//! Lines that a kernel prints, through the driver's `vprintf`.
//!
//! Before: `print "{i}: {f}\n", %i, %x`. After: the text in C's `printf` format, in the module's memory; the values in local
//! memory, each at a multiple of its size, floats in double precision; and a call. The driver writes the lines that fit its
//! buffer to the standard output, when the host next waits for the GPU.

use std::fmt::Write;

use super::emitter::Emitter;
use super::registers::Class;
use crate::ir::line::{Piece, Shown, pieces};
use crate::ir::{Type, Value};

/// The name of the memory for a line's values.
pub(super) const VALUES: &str = "__line_values";

/// The texts of a kernel's lines.
#[derive(Debug, Default)]
pub(super) struct Lines {
    texts: Vec<String>,
    /// Bytes for the values of the longest.
    pub bytes: u32,
}

impl Lines {
    /// The name of a text in the module's memory.
    fn name(&mut self, text: String) -> String {
        let known = self.texts.iter().position(|other| *other == text);
        let index = known.unwrap_or_else(|| {
            self.texts.push(text);
            self.texts.len() - 1
        });
        format!("__line_{index}")
    }

    /// The module's declarations; none if nothing is printed.
    pub(super) fn declarations(&self) -> String {
        if self.texts.is_empty() {
            return String::new();
        }
        let mut text = String::from(
            ".extern .func (.param .b32 status) vprintf(.param .b64 text, .param .b64 values);\n",
        );
        for (index, line) in self.texts.iter().enumerate() {
            let bytes: Vec<String> = line.bytes().chain([0]).map(|byte| byte.to_string()).collect();
            let _ = writeln!(
                text,
                ".global .align 1 .b8 __line_{index}[{}] = {{{}}};",
                bytes.len(),
                bytes.join(", ")
            );
        }
        text.push('\n');
        text
    }
}

/// A place as `printf` spells it.
fn place(shown: Shown, ty: Type) -> &'static str {
    match (shown, ty) {
        (Shown::Signed, Type::I64) => "%lld",
        (Shown::Signed, _) => "%d",
        (Shown::Unsigned, Type::I64) => "%llu",
        (Shown::Unsigned, _) => "%u",
        (Shown::Hexadecimal, Type::I64) => "%llx",
        (Shown::Hexadecimal, _) => "%x",
        // As many digits as tell a value from every other.
        (Shown::Float, Type::F32) => "%.9g",
        (Shown::Float, _) => "%.17g",
        (Shown::Truth, _) => "%s",
    }
}

impl Emitter<'_> {
    /// A line.
    pub(super) fn print(&mut self, text: &str, values: &[Value]) {
        let mut spelled = String::new();
        let mut given = values.iter();
        let mut end = 0u32;
        for piece in pieces(text).unwrap_or_default() {
            let shown = match piece {
                Piece::Text(text) => {
                    spelled.push_str(&text.replace('%', "%%"));
                    continue;
                }
                Piece::Value(_) | Piece::Converted(..) => piece,
            };
            let Some(&value) = given.next() else { break };
            let ty = self.ty(value);
            match shown {
                Piece::Value(shown) => spelled.push_str(place(shown, ty)),
                Piece::Converted(_, conversion) => {
                    spelled.push_str(&conversion.spelled(if ty == Type::I64 { "ll" } else { "" }));
                }
                Piece::Text(_) => {}
            }
            let (kind, bytes, operand) = self.line_value(value, ty);
            let offset = end.next_multiple_of(bytes);
            end = offset + bytes;
            self.ins(format!("st.local.{kind} [{VALUES}+{offset}], {operand}"));
        }
        // There is always a pointer to hand over.
        self.lines.bytes = self.lines.bytes.max(end).max(8);
        let name = self.lines.name(spelled);
        let line = self.address_of(&name, "global");
        let values = self.address_of(VALUES, "local");
        let status = self.temporary(Class::B32);
        for (parameter, address) in [("text", line), ("values", values)] {
            self.ins(format!(".param .b64 {parameter}_{status}").replace('%', ""));
            self.ins(format!("st.param.b64 [{parameter}_{}], {address}", &status[1..]));
        }
        let number = &status[1..];
        self.ins(format!(".param .b32 status_{number}"));
        self.ins(format!(
            "call (status_{number}), vprintf, (text_{number}, values_{number})"
        ));
        self.ins(format!("ld.param.b32 {status}, [status_{number}]"));
    }

    /// A value in memory: how it is stored, its size, and the operand.
    fn line_value(&mut self, value: Value, ty: Type) -> (&'static str, u32, String) {
        let operand = self.operand(value);
        match ty {
            Type::F32 => {
                let wide = self.temporary(Class::F64);
                self.ins(format!("cvt.f64.f32 {wide}, {operand}"));
                ("f64", 8, wide)
            }
            Type::F64 => ("f64", 8, operand),
            Type::I64 => ("u64", 8, operand),
            Type::Bool => {
                let [yes, no] = ["true", "false"].map(|text| {
                    let name = self.lines.name(text.to_owned());
                    self.address_of(&name, "global")
                });
                let chosen = self.temporary(Class::B64);
                self.ins(format!("selp.b64 {chosen}, {yes}, {no}, {operand}"));
                ("u64", 8, chosen)
            }
            _ => ("u32", 4, operand),
        }
    }

    /// The generic address of something of the module's or the function's.
    fn address_of(&mut self, name: &str, space: &str) -> String {
        let [own, generic] = [Class::B64; 2].map(|class| self.temporary(class));
        self.ins(format!("mov.u64 {own}, {name}"));
        self.ins(format!("cvta.{space}.u64 {generic}, {own}"));
        generic
    }
}
