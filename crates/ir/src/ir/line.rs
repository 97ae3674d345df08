//! The format of a [`Print`](super::OpKind::Print): text with placeholders for values.
//!
//! A place is `{i}` (a signed integer), `{u}` (an unsigned one), `{x}` (its bits in base 16), `{f}` (a float) or `{b}`
//! (a truth value). `{{` and `}}` are braces. A place of a kernel from another language has the conversion of C's `printf` that
//! stood there: `{f%8.3f}`.

use super::Type;
use super::conversion::Conversion;
use super::eval;

/// The capacity for a launch's printed text: the two numbers of SYCL's `stream(BufferSize, MaxStatementSize, …)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrintLimits {
    /// Bytes of all lines, in the order of the work-items. Lines for which there is no room are left out.
    pub buffer_bytes: usize,
    /// Bytes of one line. Longer lines are truncated.
    pub line_bytes: usize,
}

impl Default for PrintLimits {
    fn default() -> PrintLimits {
        PrintLimits::USUAL
    }
}

impl PrintLimits {
    /// As much as the buffer of NVIDIA's driver holds, in lines of any length.
    pub const USUAL: PrintLimits = PrintLimits {
        buffer_bytes: 1 << 20,
        line_bytes: usize::MAX,
    };

    /// A line as far as it may go; its end stays.
    #[doc(hidden)]
    pub fn cut(&self, mut line: String) -> String {
        if line.len() > self.line_bytes {
            let ends = line.ends_with('\n');
            let mut end = self.line_bytes - usize::from(ends).min(self.line_bytes);
            while !line.is_char_boundary(end) {
                end -= 1;
            }
            line.truncate(end);
            if ends && self.line_bytes > 0 {
                line.push('\n');
            }
        }
        line
    }
}

/// How a value is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// `{i}`: an `I32` or `I64`.
    Signed,
    /// `{u}`: an `I32` or `I64`.
    Unsigned,
    /// `{x}`: an `I32` or `I64`.
    Hexadecimal,
    /// `{f}`: an `F32` or `F64`. The simulator writes as few digits as tell it from every other; NVIDIA's driver up
    /// to 9 or 17.
    Float,
    /// `{b}`: a `Bool`.
    Truth,
}

/// A part of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// As it stands.
    Text(String),
    /// The next value.
    Value(Shown),
    /// The next value, shown as C's `printf` does.
    Converted(Shown, Conversion),
}

impl Piece {
    /// How the value is shown that has its place here.
    pub fn shown(&self) -> Option<Shown> {
        match self {
            Piece::Text(_) => None,
            Piece::Value(shown) | Piece::Converted(shown, _) => Some(*shown),
        }
    }
}

impl Shown {
    /// The letter between the braces.
    pub fn letter(self) -> char {
        match self {
            Shown::Signed => 'i',
            Shown::Unsigned => 'u',
            Shown::Hexadecimal => 'x',
            Shown::Float => 'f',
            Shown::Truth => 'b',
        }
    }

    fn of(letter: &str) -> Option<Shown> {
        Some(match letter {
            "i" => Shown::Signed,
            "u" => Shown::Unsigned,
            "x" => Shown::Hexadecimal,
            "f" => Shown::Float,
            "b" => Shown::Truth,
            _ => return None,
        })
    }

    /// How a conversion of C's shows values.
    pub fn by(conversion: &Conversion) -> Shown {
        match conversion.letter() {
            'd' | 'i' => Shown::Signed,
            'x' | 'X' => Shown::Hexadecimal,
            _ if conversion.is_of_floats() => Shown::Float,
            _ => Shown::Unsigned,
        }
    }

    /// Whether it can show values of this type.
    pub(crate) fn takes(self, ty: Type) -> bool {
        match self {
            Shown::Signed | Shown::Unsigned | Shown::Hexadecimal => matches!(ty, Type::I32 | Type::I64),
            Shown::Float => matches!(ty, Type::F32 | Type::F64),
            Shown::Truth => ty == Type::Bool,
        }
    }
}

/// Takes a line apart; none if a brace is out of place.
pub fn pieces(text: &str) -> Option<Vec<Piece>> {
    let mut pieces = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        plain.push_str(&rest[..at]);
        let (brace, behind) = rest[at..].split_at(1);
        if behind.starts_with(brace) {
            plain.push_str(brace);
            rest = &behind[1..];
            continue;
        }
        if brace == "}" {
            return None;
        }
        let (letter, behind) = behind.split_once('}')?;
        if !plain.is_empty() {
            pieces.push(Piece::Text(std::mem::take(&mut plain)));
        }
        pieces.push(match letter.split_at_checked(1)? {
            (letter, "") => Piece::Value(Shown::of(letter)?),
            (letter, conversion) => {
                let conversion = Conversion::parse(conversion)?;
                let shown = Shown::of(letter).filter(|&shown| shown == Shown::by(&conversion))?;
                Piece::Converted(shown, conversion)
            }
        });
        rest = behind;
    }
    plain.push_str(rest);
    if !plain.is_empty() {
        pieces.push(Piece::Text(plain));
    }
    Some(pieces)
}

/// The line with its values, each with its type and bits.
pub fn written(text: &str, values: &[(Type, u64)]) -> String {
    let mut line = String::new();
    let mut values = values.iter();
    for piece in pieces(text).unwrap_or_default() {
        if let Piece::Text(text) = piece {
            line.push_str(&text);
            continue;
        }
        let Some(&(ty, bits)) = values.next() else { break };
        let shown = match piece {
            Piece::Converted(_, conversion) => {
                line.push_str(&conversion.shown(ty, bits));
                continue;
            }
            Piece::Value(shown) => shown,
            Piece::Text(_) => continue,
        };
        line.push_str(&match (shown, ty) {
            (Shown::Signed, _) => eval::signed(ty, bits).to_string(),
            (Shown::Unsigned, _) => bits.to_string(),
            (Shown::Hexadecimal, _) => format!("{bits:x}"),
            (Shown::Truth, _) => (bits & 1 != 0).to_string(),
            (Shown::Float, Type::F32) => f32::from_bits(bits as u32).to_string(),
            (Shown::Float, _) => f64::from_bits(bits).to_string(),
        });
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_taken_apart_and_written() {
        let line = "{{{i}}} of {u}: {f} {x} {b}\n";
        assert_eq!(pieces(line).map(|pieces| pieces.len()), Some(11));
        let values = [
            (Type::I32, 0xffff_fffe),
            (Type::I64, 7),
            (Type::F32, u64::from(0.1f32.to_bits())),
            (Type::I32, 255),
            (Type::Bool, 1),
        ];
        assert_eq!(written(line, &values), "{-2} of 7: 0.1 ff true\n");
        let line = "{i%5d}|{f%.3e}|{u%c}";
        let values = [(Type::I32, 7), (Type::F64, 0.5f64.to_bits()), (Type::I32, 65)];
        assert_eq!(written(line, &values), "    7|5.000e-01|A");
        for wrong in [
            "{", "}", "{y}", "{i", "a}b", "{}", "{i%}", "{i%u}", "{f%s}", "{b%d}", "{é}",
        ] {
            assert_eq!(pieces(wrong), None, "{wrong}");
        }
    }
}
