//! Text to tokens, without copying: a token borrows its spelling from the module's text.
//!
//! A module may have many megabytes, so each token is read once, and only the parser's output is stored.

use crate::error::{Error, Result};
use crate::suggest::quoted;

/// The comment that says which line of a text the next line was copied from, with the number behind it.
pub const NEXT_LINE: &str = "// Headstart: line ";

/// The line that a byte of a text belongs to, from 1; what was copied or left out in front of it says so.
pub fn line_at(text: &str, at: usize) -> usize {
    let before = &text[..at];
    let newlines = |text: &str| text.bytes().filter(|&byte| byte == b'\n').count();
    let said = before.rmatch_indices(NEXT_LINE).find_map(|(start, said)| {
        let (number, rest) = before[start + said.len()..].split_once('\n')?;
        Some(number.parse::<usize>().ok()? + newlines(rest))
    });
    said.unwrap_or_else(|| 1 + newlines(before))
}

/// A token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Token<'t> {
    /// An identifier, register, label or opcode: `ld`, `%rd4`, `$L__BB0_3`, `_`.
    Word(&'t str),
    /// A directive or modifier, without its dot: `global`, `L2::128B`, `x`.
    Dot(&'t str),
    /// A whole number, as 64 bits.
    Integer(u64),
    /// A floating-point constant written by its bits: `0f3F800000`.
    Single(u32),
    /// Any other floating-point constant: `0d3FF0000000000000`, `1.5`.
    Double(f64),
    /// What stands between quotation marks.
    Text(&'t str),
    /// One character of punctuation.
    Mark(char),
    /// The text is over.
    End,
}

/// Reads tokens one after the other.
#[derive(Clone, Debug)]
pub(super) struct Lexer<'t> {
    text: &'t str,
    at: usize,
    line: u32,
    /// Where the last token starts.
    start: usize,
}

impl<'t> Lexer<'t> {
    /// Starts at a byte of the text, which is in this line (from 1).
    pub(crate) fn new(text: &'t str, at: usize, line: u32) -> Lexer<'t> {
        let start = at;
        Lexer {
            text,
            at,
            line,
            start,
        }
    }

    /// The byte that the last token starts with.
    pub(crate) fn start(&self) -> usize {
        self.start
    }

    /// The byte that comes next.
    pub(crate) fn position(&self) -> usize {
        self.at
    }

    /// The line that the next byte is in, from 1.
    pub(crate) fn line(&self) -> u32 {
        self.line
    }

    fn byte(&self, ahead: usize) -> u8 {
        self.text.as_bytes().get(self.at + ahead).copied().unwrap_or(0)
    }

    /// Passes white space and comments.
    fn skip(&mut self) {
        loop {
            match (self.byte(0), self.byte(1)) {
                (b'\n', _) => {
                    self.line += 1;
                    self.at += 1;
                }
                (b' ' | b'\t' | b'\r' | 0x0c, _) => self.at += 1,
                (b'/', b'/') => {
                    let rest = &self.text.as_bytes()[self.at..];
                    let end = self.at + rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
                    let comment = self.text.get(self.at..end);
                    let line = comment.and_then(|comment| comment.strip_prefix(NEXT_LINE)?.parse().ok());
                    self.line = line.map_or(self.line, |line: u32| line.saturating_sub(1));
                    self.at = end;
                }
                (b'/', b'*') => {
                    let rest = &self.text.as_bytes()[self.at..];
                    let length = rest.windows(2).skip(2).position(|pair| pair == b"*/");
                    let length = length.map_or(rest.len(), |length| length + 4);
                    let passed = &rest[..length.min(rest.len())];
                    self.line += passed.iter().filter(|&&byte| byte == b'\n').count() as u32;
                    self.at += passed.len();
                }
                _ => return,
            }
        }
    }

    /// The spelling from `start` to here.
    fn since(&self, start: usize) -> &'t str {
        self.text.get(start..self.at).unwrap_or_default()
    }

    fn take_word(&mut self) {
        while matches!(self.byte(0), b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'$' | b'%') {
            self.at += 1;
        }
    }

    /// Passes everything up to the brace that closes the one just read.
    ///
    /// # Errors
    /// It is never closed.
    pub(crate) fn skip_braces(&mut self) -> Result<()> {
        let mut depth = 1usize;
        while depth > 0 {
            self.skip();
            match self.byte(0) {
                b'{' => depth += 1,
                b'}' => depth -= 1,
                b'"' => {
                    self.next()?;
                    continue;
                }
                0 if self.at >= self.text.len() => return Err(Error::input("a `{` is never closed")),
                _ => {}
            }
            self.at += 1;
            // Most bytes of a body are of no interest here.
            let rest = &self.text.as_bytes()[self.at.min(self.text.len())..];
            let dull = |byte: &u8| !matches!(byte, b'{' | b'}' | b'"' | b'/' | b'\n');
            self.at += rest.iter().take_while(|byte| dull(byte)).count();
        }
        // What follows the brace may have been passed as dull: go back to it.
        let end = self.text.as_bytes()[..self.at]
            .iter()
            .rposition(|&byte| byte == b'}');
        self.at = end.map_or(self.at, |end| end + 1);
        Ok(())
    }

    /// The next token.
    ///
    /// # Errors
    /// A character that PTX does not have, or a number that is none.
    pub(crate) fn next(&mut self) -> Result<Token<'t>> {
        self.skip();
        let start = self.at;
        self.start = start;
        if start >= self.text.len() {
            return Ok(Token::End);
        }
        match self.byte(0) {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$' | b'%' => {
                self.at += 1;
                self.take_word();
                Ok(Token::Word(self.since(start)))
            }
            b'.' if matches!(self.byte(1), b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'0'..=b'9') => {
                self.at += 1;
                self.take_word();
                // `L2::128B` and `shared::cta` are one modifier.
                while self.byte(0) == b':' && self.byte(1) == b':' {
                    self.at += 2;
                    self.take_word();
                }
                Ok(Token::Dot(self.since(start + 1)))
            }
            b'0'..=b'9' => self.number(),
            b'"' => {
                let rest = &self.text.as_bytes()[start + 1..];
                let length = rest.iter().position(|&byte| byte == b'"' || byte == b'\n');
                match length.filter(|&length| rest[length] == b'"') {
                    Some(length) => {
                        self.at = start + length + 2;
                        Ok(Token::Text(
                            self.text.get(start + 1..start + 1 + length).unwrap_or_default(),
                        ))
                    }
                    None => Err(Error::input("a string is never closed")),
                }
            }
            byte if byte.is_ascii_graphic() => {
                self.at += 1;
                Ok(Token::Mark(char::from(byte)))
            }
            _ => {
                let odd = self.text.get(start..).and_then(|rest| rest.chars().next());
                self.at += odd.map_or(1, char::len_utf8);
                let odd = odd.map(String::from).unwrap_or_default();
                Err(Error::input(format!("PTX has no character {}", quoted(&odd))))
            }
        }
    }

    fn number(&mut self) -> Result<Token<'t>> {
        let start = self.at;
        self.take_word();
        let word = self.since(start);
        let bad = |what: &str| Error::input(format!("{} is not a number", quoted(what)));
        let lower = word.as_bytes().get(1).map(u8::to_ascii_lowercase);
        if word.starts_with('0') && matches!(lower, Some(b'f' | b'd')) {
            let digits = &word[2..];
            let bits = u64::from_str_radix(digits, 16).map_err(|_| bad(word))?;
            return match (lower, digits.len()) {
                (Some(b'f'), 1..=8) => Ok(Token::Single(bits as u32)),
                (Some(b'd'), 1..=16) => Ok(Token::Double(f64::from_bits(bits))),
                _ => Err(bad(word)),
            };
        }
        let fraction = self.byte(0) == b'.' && self.byte(1).is_ascii_digit();
        let signed_exponent = word.ends_with(['e', 'E']) && matches!(self.byte(0), b'+' | b'-');
        let exponent = word.contains(['e', 'E']) && !word.starts_with("0x") && !word.starts_with("0X");
        if fraction || signed_exponent || exponent {
            self.at = start;
            while matches!(self.byte(0), b'0'..=b'9' | b'.' | b'e' | b'E')
                || matches!(self.byte(0), b'+' | b'-')
                    && matches!(self.text.as_bytes()[self.at - 1], b'e' | b'E')
            {
                self.at += 1;
            }
            let word = self.since(start);
            return word.parse().map(Token::Double).map_err(|_| bad(word));
        }
        let digits = word.trim_end_matches(['U', 'u', 'L', 'l']);
        let parsed = match digits.as_bytes() {
            [b'0', b'x' | b'X', ..] => u64::from_str_radix(&digits[2..], 16),
            [b'0', b'b' | b'B', ..] => u64::from_str_radix(&digits[2..], 2),
            [b'0', _, ..] => u64::from_str_radix(&digits[1..], 8),
            _ => digits.parse(),
        };
        parsed.map(Token::Integer).map_err(|_| bad(word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Vec<Token<'_>> {
        let mut lexer = Lexer::new(text, 0, 1);
        let mut found = Vec::new();
        loop {
            match lexer.next().expect("tokens") {
                Token::End => return found,
                token => found.push(token),
            }
        }
    }

    #[test]
    fn opcodes_fall_into_words_and_modifiers() {
        assert_eq!(
            tokens("cp.async.ca.shared.global.L2::128B [%r1], %tid.x; // end"),
            [
                Token::Word("cp"),
                Token::Dot("async"),
                Token::Dot("ca"),
                Token::Dot("shared"),
                Token::Dot("global"),
                Token::Dot("L2::128B"),
                Token::Mark('['),
                Token::Word("%r1"),
                Token::Mark(']'),
                Token::Mark(','),
                Token::Word("%tid"),
                Token::Dot("x"),
                Token::Mark(';'),
            ]
        );
    }

    #[test]
    fn numbers_in_all_their_forms() {
        assert_eq!(
            tokens("0x1FU 010 0b101 42 0f3F800000 0d3FF0000000000000 1.5 2e-3 /* a\n*/ 7"),
            [
                Token::Integer(31),
                Token::Integer(8),
                Token::Integer(5),
                Token::Integer(42),
                Token::Single(0x3f80_0000),
                Token::Double(1.0),
                Token::Double(1.5),
                Token::Double(2e-3),
                Token::Integer(7),
            ]
        );
        for wrong in ["0f123456789", "12abc", "0xZZ", "1.2.3", "\u{e9}", "\"open"] {
            assert!(Lexer::new(wrong, 0, 1).next().is_err(), "{wrong}");
        }
    }

    #[test]
    fn braces_are_passed_with_strings_and_comments() {
        let text = "{ \"}\" // }\n } /* } */ a\n}b";
        let mut lexer = Lexer::new(text, 1, 1);
        lexer.skip_braces().expect("closed");
        // The first brace of the text was read already: its partner is the third one.
        assert_eq!(&text[lexer.position()..], " /* } */ a\n}b");
        assert_eq!(lexer.line(), 2);
        assert!(Lexer::new("{ {", 1, 1).skip_braces().is_err());
    }
}
