//! `print!` and `println!`: a line of text, piece by piece.

use super::state::recorder;
use super::{At, Recorded};
use crate::Error;
use crate::ir::line::Shown;
use crate::ir::{ConvertOp, Type, Value, limits};
use crate::lang::scalar::Scalar;

/// A line that is being put together.
#[derive(Debug)]
pub struct Line {
    at: At,
    text: String,
    values: Vec<Value>,
}

/// An empty line.
pub fn line(at: At) -> Line {
    Line {
        at,
        text: String::new(),
        values: Vec::new(),
    }
}

impl Line {
    /// Adds text.
    #[must_use]
    pub fn text(mut self, text: &str) -> Line {
        self.text.push_str(&text.replace('{', "{{").replace('}', "}}"));
        self
    }

    /// Adds a value: `{}`, or `{:x}` in base 16. A vector is its parts in brackets, with commas between.
    #[must_use]
    pub fn value<V: Shows>(self, value: V, hexadecimal: bool) -> Line {
        value.shown(self, hexadecimal)
    }

    /// Adds a scalar.
    fn scalar<T: Scalar>(mut self, value: Recorded<T>, hexadecimal: bool) -> Line {
        let at = self.at;
        let (shown, value) = match T::TYPE {
            Type::Bool => (Shown::Truth, value.value),
            Type::F32 | Type::F64 => (Shown::Float, value.value),
            Type::F16 | Type::Bf16 => {
                let wide = recorder(|recorder| {
                    recorder.convert(at, ConvertOp::FloatToFloat, Type::F32, value.value)
                });
                (Shown::Float, wide)
            }
            _ if hexadecimal => (Shown::Hexadecimal, integer(at, value, false)),
            _ if T::SIGNED => (Shown::Signed, integer(at, value, true)),
            _ => (Shown::Unsigned, integer(at, value, false)),
        };
        if hexadecimal && shown != Shown::Hexadecimal {
            let error = Error::input("`{:x}` shows integers").accepted("`{}` for floats and truth values");
            recorder(|recorder| recorder.fail(at, error));
        }
        self.text.push_str(&format!("{{{}}}", shown.letter()));
        self.values.push(value);
        self
    }

    /// The end: the line is printed here.
    pub fn end(self) {
        let Line { at, text, values } = self;
        recorder(|recorder| {
            if text.len() > limits::LINE_BYTES || values.len() > limits::LINE_VALUES {
                let error = Error::input("this line is too long for a kernel to print").accepted(format!(
                    "at most {} bytes and {} values",
                    limits::LINE_BYTES,
                    limits::LINE_VALUES
                ));
                recorder.fail(at, error);
            }
            recorder.build(at, |b| b.print(text, values));
        });
    }
}

/// A printable value.
#[diagnostic::on_unimplemented(
    message = "a kernel cannot print values of this type",
    note = "accepted: scalars with `{{}}`, and vectors of them with `{{:?}}`"
)]
pub trait Shows {
    /// Adds it to a line.
    fn shown(self, line: Line, hexadecimal: bool) -> Line;
}

impl<T: Scalar> Shows for Recorded<T> {
    fn shown(self, line: Line, hexadecimal: bool) -> Line {
        line.scalar(self, hexadecimal)
    }
}

impl<V: Shows, const N: usize> Shows for [V; N] {
    fn shown(self, line: Line, hexadecimal: bool) -> Line {
        let mut line = line.text("[");
        for (number, part) in self.into_iter().enumerate() {
            let before = if number == 0 { line } else { line.text(", ") };
            line = part.shown(before, hexadecimal);
        }
        line.text("]")
    }
}

/// An integer in 32 or 64 bits.
fn integer<T: Scalar>(at: At, value: Recorded<T>, signed: bool) -> Value {
    if T::TYPE.bits() >= 32 {
        return value.value;
    }
    let op = if signed {
        ConvertOp::ExtendS
    } else {
        ConvertOp::ExtendU
    };
    recorder(|recorder| recorder.convert(at, op, Type::I32, value.value))
}
