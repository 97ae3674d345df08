//! Conversions of C's `printf`, such as `%-8.3f`: how a kernel from another language asked a value to be shown.

use std::fmt;

use super::Type;
use super::eval;

/// Widest a value is shown, and most digits behind a point.
const MOST: usize = 255;

/// A conversion, without the length of its argument, which follows from the value's type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conversion {
    left: bool,
    sign: bool,
    space: bool,
    alternative: bool,
    zeros: bool,
    width: usize,
    precision: Option<usize>,
    /// The bits of an integer that count: 8 for `hh`, 16 for `h`.
    bits: Option<u32>,
    letter: char,
}

/// The length modifier between a conversion's percent sign and its letter, in vectors and elsewhere.
const LENGTHS: [&str; 7] = ["hh", "hl", "h", "ll", "l", "j", "z"];

impl Conversion {
    /// Takes a conversion off the start of a text that begins behind the percent sign: the conversion, its length, the number
    /// of elements of a vector (`v4`), and the rest. None if it is no conversion of a number, or takes its width from an
    /// argument.
    pub fn take(text: &str) -> Option<(Conversion, &str, Option<u32>, &str)> {
        let flags = text.len() - text.trim_start_matches(['-', '+', ' ', '#', '0']).len();
        let (flags, rest) = text.split_at(flags);
        let (width, rest) = digits(rest);
        let (precision, rest) = match rest.strip_prefix('.') {
            Some(rest) => {
                let (digits, rest) = digits(rest);
                (Some(digits), rest)
            }
            None => (None, rest),
        };
        let (vector, rest) = match rest.strip_prefix('v') {
            Some(rest) => {
                let (count, rest) = digits(rest);
                (Some(count.parse().ok()?), rest)
            }
            None => (None, rest),
        };
        let number = |digits: &str| match digits {
            "" => Some(0),
            digits => digits.parse::<usize>().ok().filter(|&number| number <= MOST),
        };
        let length = LENGTHS.into_iter().find(|length| rest.starts_with(length));
        let length = length.unwrap_or_default();
        let rest = &rest[length.len()..];
        let letter = rest
            .chars()
            .next()
            .filter(|letter| "diuoxXcfFeEgGaA".contains(*letter))?;
        let conversion = Conversion {
            left: flags.contains('-'),
            sign: flags.contains('+'),
            space: flags.contains(' '),
            alternative: flags.contains('#'),
            zeros: flags.contains('0'),
            width: number(width)?,
            precision: precision
                .map(number)
                .map_or(Some(None), |found| found.map(Some))?,
            bits: match length {
                "hh" => Some(8),
                "h" => Some(16),
                _ => None,
            },
            letter,
        };
        Some((conversion, length, vector, &rest[letter.len_utf8()..]))
    }

    /// The conversion that a text is, from its percent sign to its letter.
    pub(crate) fn parse(text: &str) -> Option<Conversion> {
        match Conversion::take(text.strip_prefix('%')?)? {
            (conversion, "" | "hh" | "h", None, "") => Some(conversion),
            _ => None,
        }
    }

    /// The same for values that are no wider than the conversion's length.
    #[must_use]
    pub fn of_whole_values(self) -> Conversion {
        Conversion { bits: None, ..self }
    }

    /// The letter at its end.
    pub fn letter(&self) -> char {
        self.letter
    }

    /// Whether it shows floats.
    pub fn is_of_floats(&self) -> bool {
        "fFeEgGaA".contains(self.letter)
    }

    /// As C spells it for values of a length: `l`, `ll`, or nothing.
    pub fn spelled(&self, length: &str) -> String {
        let mut text = "%".to_owned();
        let flags = [
            (self.left, '-'),
            (self.sign, '+'),
            (self.space, ' '),
            (self.alternative, '#'),
            (self.zeros, '0'),
        ];
        text.extend(flags.into_iter().filter(|(is, _)| *is).map(|(_, flag)| flag));
        if self.width > 0 {
            text.push_str(&self.width.to_string());
        }
        if let Some(precision) = self.precision {
            text.push_str(&format!(".{precision}"));
        }
        text.push_str(match self.bits {
            Some(8) => "hh",
            Some(_) => "h",
            None => length,
        });
        text.push(self.letter);
        text
    }

    /// A value as C shows it.
    pub fn shown(&self, ty: Type, bits: u64) -> String {
        let (negative, prefix, body, may_fill) = match ty {
            Type::F32 => self.float(f64::from(f32::from_bits(bits as u32))),
            Type::F64 => self.float(f64::from_bits(bits)),
            _ => self.integer(ty, bits),
        };
        let is_signed = self.is_of_floats() || "di".contains(self.letter);
        let sign = match (negative, is_signed) {
            (true, _) => "-",
            (_, true) if self.sign => "+",
            (_, true) if self.space => " ",
            _ => "",
        };
        let missing = self
            .width
            .saturating_sub(sign.len() + prefix.len() + body.chars().count());
        match (self.left, self.zeros && may_fill) {
            (true, _) => format!("{sign}{prefix}{body}{:missing$}", ""),
            (_, true) => format!("{sign}{prefix}{}{body}", "0".repeat(missing)),
            _ => format!("{:missing$}{sign}{prefix}{body}", ""),
        }
    }

    /// The sign, the prefix between it and the zero padding, the digits, and whether zeros may pad.
    fn integer(&self, ty: Type, bits: u64) -> (bool, &'static str, String, bool) {
        let narrow = match self.bits {
            Some(8) => Type::I8,
            Some(_) => Type::I16,
            None => ty,
        };
        let bits = bits & narrow.mask();
        let (negative, magnitude) = match self.letter {
            'd' | 'i' => {
                let number = eval::signed(narrow, bits);
                (number < 0, number.unsigned_abs())
            }
            'c' => return (false, "", char::from(bits as u8).to_string(), false),
            _ => (false, bits),
        };
        let mut digits = match self.letter {
            'x' => format!("{magnitude:x}"),
            'X' => format!("{magnitude:X}"),
            'o' => format!("{magnitude:o}"),
            _ => magnitude.to_string(),
        };
        if magnitude == 0 && self.precision == Some(0) {
            digits.clear();
        }
        let least = self.precision.unwrap_or(0);
        if digits.len() < least {
            digits = format!("{}{digits}", "0".repeat(least - digits.len()));
        }
        if self.letter == 'o' && self.alternative && !digits.starts_with('0') {
            digits.insert(0, '0');
        }
        let prefix = match (self.letter, self.alternative && magnitude != 0) {
            ('x', true) => "0x",
            ('X', true) => "0X",
            _ => "",
        };
        (negative, prefix, digits, self.precision.is_none())
    }

    /// As [`Conversion::integer`].
    fn float(&self, number: f64) -> (bool, &'static str, String, bool) {
        let negative = number.is_sign_negative();
        let magnitude = number.abs();
        let upper = self.letter.is_ascii_uppercase();
        let cased = |text: String| if upper { text.to_ascii_uppercase() } else { text };
        if !magnitude.is_finite() {
            let word = if magnitude.is_nan() { "nan" } else { "inf" };
            return (negative, "", cased(word.to_owned()), false);
        }
        let (prefix, body) = match self.letter {
            'f' | 'F' => ("", self.pointed(magnitude, self.precision.unwrap_or(6))),
            'e' | 'E' => ("", self.with_exponent(magnitude, self.precision.unwrap_or(6))),
            'g' | 'G' => ("", self.shorter(magnitude)),
            _ => (if upper { "0X" } else { "0x" }, self.binary(magnitude)),
        };
        (negative, prefix, cased(body), true)
    }

    fn pointed(&self, magnitude: f64, precision: usize) -> String {
        let point = if self.alternative && precision == 0 {
            "."
        } else {
            ""
        };
        format!("{magnitude:.precision$}{point}")
    }

    fn with_exponent(&self, magnitude: f64, precision: usize) -> String {
        let (digits, exponent) = decimal(magnitude, precision);
        let point = if self.alternative && precision == 0 {
            "."
        } else {
            ""
        };
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{digits}{point}e{sign}{:02}", exponent.unsigned_abs())
    }

    /// `%g`: the shorter of both forms.
    fn shorter(&self, magnitude: f64) -> String {
        let precision = self.precision.unwrap_or(6).max(1);
        let (_, exponent) = decimal(magnitude, precision - 1);
        let is_pointed = exponent >= -4 && exponent < precision as i32;
        let text = match is_pointed {
            true => self.pointed(magnitude, (precision as i32 - 1 - exponent) as usize),
            false => self.with_exponent(magnitude, precision - 1),
        };
        if self.alternative || !text.contains('.') {
            return text;
        }
        let (digits, exponent) = text.split_at(text.find('e').unwrap_or(text.len()));
        let digits = digits.trim_end_matches('0').trim_end_matches('.');
        format!("{digits}{exponent}")
    }

    /// `%a`: the significand in base 16, the exponent of 2.
    fn binary(&self, magnitude: f64) -> String {
        const DIGITS: u32 = 13;
        let bits = magnitude.to_bits();
        let (field, fraction) = (bits >> 52, bits & ((1 << 52) - 1));
        let exponent = match (field, fraction) {
            (0, 0) => 0,
            (0, _) => -1022,
            _ => field as i64 - 1023,
        };
        let mut significand = fraction | u64::from(field > 0) << 52;
        let mut digits = DIGITS;
        if let Some(precision) = self.precision.filter(|&precision| precision < DIGITS as usize) {
            let dropped = 4 * (DIGITS - precision as u32);
            let (half, rest) = (1u64 << (dropped - 1), significand & ((1 << dropped) - 1));
            significand >>= dropped;
            significand += u64::from(rest > half || rest == half && significand & 1 != 0);
            digits = precision as u32;
        }
        let whole = significand >> (4 * digits);
        let fraction = significand & ((1u64 << (4 * digits)) - 1);
        let mut behind = match digits {
            0 => String::new(),
            _ => format!("{fraction:0width$x}", width = digits as usize),
        };
        match self.precision {
            Some(precision) => {
                while behind.len() < precision {
                    behind.push('0');
                }
            }
            None => behind.truncate(behind.trim_end_matches('0').len()),
        }
        let point = if behind.is_empty() && !self.alternative {
            ""
        } else {
            "."
        };
        format!("{whole:x}{point}{behind}p{exponent:+}")
    }
}

impl fmt::Display for Conversion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.spelled(""))
    }
}

/// The digits at the start of a text, and the rest.
fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len())
}

/// One digit, a point and this many digits behind it; and the power of ten.
fn decimal(magnitude: f64, precision: usize) -> (String, i32) {
    let text = format!("{magnitude:.precision$e}");
    match text.split_once('e') {
        Some((digits, exponent)) => (digits.to_owned(), exponent.parse().unwrap_or(0)),
        None => (text, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(conversion: &str, ty: Type, bits: u64) -> String {
        let own = Conversion::parse(conversion).unwrap_or_else(|| panic!("{conversion}"));
        assert_eq!(own.to_string(), conversion);
        own.shown(ty, bits)
    }

    /// glibc's output.
    #[test]
    fn integers_are_shown_as_c_shows_them() {
        let minus = 0xffff_ffd6;
        for (conversion, bits, expected) in [
            ("%d", minus, "-42"),
            ("%6d", minus, "   -42"),
            ("%-6i", minus, "-42   "),
            ("%06d", minus, "-00042"),
            ("%+d", 42, "+42"),
            ("% d", 42, " 42"),
            ("%8.4d", minus, "   -0042"),
            ("%08.4d", minus, "   -0042"),
            ("%.0d", 0, ""),
            ("%u", minus, "4294967254"),
            ("%hhd", 0x1ff, "-1"),
            ("%hu", 0x1_2345, "9029"),
            ("%x", 255, "ff"),
            ("%#X", 255, "0XFF"),
            ("%#010x", 255, "0x000000ff"),
            ("%#x", 0, "0"),
            ("%o", 8, "10"),
            ("%#o", 8, "010"),
            ("%c", 65, "A"),
            ("%3c", 65, "  A"),
        ] {
            assert_eq!(shown(conversion, Type::I32, bits), expected, "{conversion}");
        }
        assert_eq!(shown("%d", Type::I64, u64::MAX), "-1");
        assert_eq!(shown("%x", Type::I64, u64::MAX), "ffffffffffffffff");
    }

    /// glibc's output.
    #[test]
    fn floats_are_shown_as_c_shows_them() {
        for (conversion, number, expected) in [
            ("%f", 1.5, "1.500000"),
            ("%8.3f", -0.12345, "  -0.123"),
            ("%08.3f", -0.12345, "-000.123"),
            ("%-8.1f", 2.25, "2.2     "),
            ("%.0f", 2.5, "2"),
            ("%#.0f", 3.0, "3."),
            ("%+.2f", 2.0, "+2.00"),
            ("%e", 12345.678, "1.234568e+04"),
            ("%.2E", 0.000_123_45, "1.23E-04"),
            ("%.0e", 5e100, "5e+100"),
            ("%g", 100_000.0, "100000"),
            ("%g", 1_000_000.0, "1e+06"),
            ("%g", 0.000_1, "0.0001"),
            ("%g", 0.000_01, "1e-05"),
            ("%g", 999_999.5, "1e+06"),
            ("%.3g", 1234.5, "1.23e+03"),
            ("%#g", 1.0, "1.00000"),
            ("%G", 1e-10, "1E-10"),
            ("%g", 0.0, "0"),
            ("%.9g", 0.1, "0.1"),
            ("%a", 1.0, "0x1p+0"),
            ("%a", 0.1, "0x1.999999999999ap-4"),
            ("%.2a", 0.1, "0x1.9ap-4"),
            ("%.0a", 1.5, "0x2p+0"),
            ("%a", 0.0, "0x0p+0"),
            ("%A", 10.0, "0X1.4P+3"),
            ("%a", f64::from_bits(1), "0x0.0000000000001p-1022"),
            ("%f", f64::INFINITY, "inf"),
            ("%06f", f64::NEG_INFINITY, "  -inf"),
            ("%E", f64::NAN, "NAN"),
        ] {
            assert_eq!(
                shown(conversion, Type::F64, number.to_bits()),
                expected,
                "{conversion} of {number}"
            );
        }
        assert_eq!(shown("%.3f", Type::F32, u64::from(0.1f32.to_bits())), "0.100");
    }

    #[test]
    fn what_is_no_conversion_of_a_number_is_refused() {
        for wrong in [
            "d", "%", "%s", "%p", "%n", "%*d", "%.*f", "%999d", "%.300f", "%ld", "%v4d", "%dd", "%5", "%-",
        ] {
            assert_eq!(Conversion::parse(wrong), None, "{wrong}");
        }
        let (conversion, length, vector, rest) = Conversion::take("5.2v4hlf;").expect("one of a vector");
        assert_eq!(
            (conversion.to_string().as_str(), length, vector, rest),
            ("%5.2f", "hl", Some(4), ";")
        );
        let (conversion, length, ..) = Conversion::take("lld").expect("one of a long");
        assert_eq!((conversion.letter(), length), ('d', "ll"));
    }
}
