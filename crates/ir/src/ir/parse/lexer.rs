//! The lexer: one token at a time, in constant memory.

use std::fmt;

use crate::ir::limits::NAME_BYTES;
use crate::suggest::quoted;

/// A place in the text; lines and columns count from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    pub offset: usize,
    pub line: u32,
    pub column: u32,
}

/// A name after its sigil. The number only distinguishes equal names; an item without text has only a number.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Name {
    pub text: Option<String>,
    pub number: u32,
}

/// A name and where it is written.
pub(super) type NameAt = (Name, Position);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token<'t> {
    /// `%acc`
    Value(Name),
    /// `@values`
    Global(Name),
    /// `'items`
    Label(Name),
    /// `lt.u`
    Word(&'t str),
    /// `12`, `0x1f`, `1.5e-7`: starts with a digit and is checked by who wants it.
    Number(&'t str),
    /// `"text"`
    Text(String),
    /// One of `( ) { } [ ] , : = + - * #`.
    Punctuation(char),
    /// `->`
    Arrow,
    End,
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.text, self.number) {
            (None, number) => write!(f, "{number}"),
            (Some(text), 0) => f.write_str(text),
            (Some(text), number) => write!(f, "{text}.{number}"),
        }
    }
}

impl Token<'_> {
    /// As messages show it.
    pub(crate) fn describe(&self) -> String {
        match self {
            Token::Value(name) => quoted(&format!("%{name}")),
            Token::Global(name) => quoted(&format!("@{name}")),
            Token::Label(name) => quoted(&format!("'{name}")),
            Token::Word(text) | Token::Number(text) => quoted(text),
            Token::Text(text) => format!("the text {}", quoted(text)),
            Token::Punctuation(character) => format!("`{character}`"),
            Token::Arrow => "`->`".to_owned(),
            Token::End => "the end of the file".to_owned(),
        }
    }
}

/// A token's error, and its position.
pub(super) type LexError = (Position, String);

pub(super) struct Lexer<'t> {
    text: &'t str,
    position: Position,
}

impl<'t> Lexer<'t> {
    pub(crate) fn new(text: &'t str) -> Lexer<'t> {
        Lexer {
            text,
            position: Position {
                offset: 0,
                line: 1,
                column: 1,
            },
        }
    }

    fn rest(&self) -> &'t str {
        &self.text[self.position.offset..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn bump(&mut self) -> Option<char> {
        let character = self.peek()?;
        self.position.offset += character.len_utf8();
        if character == '\n' {
            self.position.line += 1;
            self.position.column = 1;
        } else {
            self.position.column += 1;
        }
        Some(character)
    }

    fn take_while(&mut self, mut wanted: impl FnMut(char) -> bool) -> &'t str {
        let start = self.position.offset;
        while self.peek().is_some_and(&mut wanted) {
            self.bump();
        }
        &self.text[start..self.position.offset]
    }

    /// The next token and where it starts.
    pub(crate) fn next(&mut self) -> Result<(Position, Token<'t>), LexError> {
        loop {
            self.take_while(|c| c.is_ascii_whitespace());
            if self.peek() != Some(';') {
                break;
            }
            self.take_while(|c| c != '\n');
        }
        let start = self.position;
        let Some(first) = self.peek() else {
            return Ok((start, Token::End));
        };
        let token = match first {
            '%' | '@' | '\'' => {
                self.bump();
                let name = self.name(start, first)?;
                match first {
                    '%' => Token::Value(name),
                    '@' => Token::Global(name),
                    _ => Token::Label(name),
                }
            }
            '"' => Token::Text(self.text_in_quotes(start)?),
            'a'..='z' | 'A'..='Z' | '_' => {
                Token::Word(self.take_while(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.'))
            }
            '0'..='9' => Token::Number(self.number()),
            '-' if self.rest().starts_with("->") => {
                self.bump();
                self.bump();
                Token::Arrow
            }
            '(' | ')' | '{' | '}' | '[' | ']' | ',' | ':' | '=' | '+' | '-' | '*' | '#' => {
                self.bump();
                Token::Punctuation(first)
            }
            other => {
                let shown = quoted(&other.to_string());
                return Err((start, format!("{shown} has no meaning here")));
            }
        };
        Ok((start, token))
    }

    /// Digits, letters and points; a sign only after the `e` of a decimal.
    fn number(&mut self) -> &'t str {
        let hexadecimal = self.rest().starts_with("0x");
        let mut before = '0';
        self.take_while(|c| {
            let exponent_sign = !hexadecimal && matches!(before, 'e' | 'E') && matches!(c, '+' | '-');
            before = c;
            c.is_ascii_alphanumeric() || c == '.' || c == '_' || exponent_sign
        })
    }

    /// The text behind a sigil: a number, or a word or quoted text and optionally a number.
    fn name(&mut self, start: Position, sigil: char) -> Result<Name, LexError> {
        let text = match self.peek() {
            Some('0'..='9') => {
                let number = self.name_number(start)?;
                return Ok(Name { text: None, number });
            }
            Some('"') => self.text_in_quotes(start)?,
            Some('a'..='z' | 'A'..='Z' | '_' | '$') => self
                .take_while(|c| c.is_ascii_alphanumeric() || c == '_' || c == '$')
                .to_owned(),
            _ => return Err((start, format!("a name is missing after `{sigil}`"))),
        };
        if text.len() > NAME_BYTES {
            return Err((start, format!("a name is longer than {NAME_BYTES} bytes")));
        }
        let mut number = 0;
        if self.peek() == Some('.') {
            self.bump();
            number = self.name_number(start)?;
        }
        Ok(Name {
            text: Some(text),
            number,
        })
    }

    fn name_number(&mut self, start: Position) -> Result<u32, LexError> {
        let digits = self.take_while(|c| c.is_ascii_digit());
        digits
            .parse()
            .map_err(|_| (start, "the number of a name is missing or too large".to_owned()))
    }

    fn text_in_quotes(&mut self, start: Position) -> Result<String, LexError> {
        self.bump();
        let mut text = String::new();
        loop {
            if text.len() > NAME_BYTES {
                return Err((start, format!("text in quotes is longer than {NAME_BYTES} bytes")));
            }
            match self.bump() {
                Some('"') => return Ok(text),
                Some('\\') => text.push(self.escape(start)?),
                Some('\n') | None => return Err((start, "text in quotes has no end on its line".to_owned())),
                Some(other) => text.push(other),
            }
        }
    }

    fn escape(&mut self, start: Position) -> Result<char, LexError> {
        let unknown = || (start, "text in quotes has an unknown escape".to_owned());
        match self.bump() {
            Some('n') => Ok('\n'),
            Some('r') => Ok('\r'),
            Some('t') => Ok('\t'),
            Some('0') => Ok('\0'),
            Some(same @ ('\\' | '"' | '\'')) => Ok(same),
            Some('u') if self.bump() == Some('{') => {
                let digits = self.take_while(|c| c.is_ascii_hexdigit());
                let code = u32::from_str_radix(digits, 16).map_err(|_| unknown())?;
                if self.bump() != Some('}') {
                    return Err(unknown());
                }
                char::from_u32(code).ok_or_else(unknown)
            }
            _ => Err(unknown()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Vec<String> {
        let mut lexer = Lexer::new(text);
        let mut tokens = Vec::new();
        loop {
            match lexer.next() {
                Ok((_, Token::End)) => return tokens,
                Ok((_, token)) => tokens.push(token.describe()),
                Err((position, what)) => {
                    tokens.push(format!("{}:{} {what}", position.line, position.column));
                    return tokens;
                }
            }
        }
    }

    #[test]
    fn numbers_end_where_they_should() {
        assert_eq!(tokens("1e-7:f32"), ["`1e-7`", "`:`", "`f32`"]);
        assert_eq!(tokens("0x1e-7"), ["`0x1e`", "`-`", "`7`"]);
        assert_eq!(tokens("%a->8"), ["`%a`", "`->`", "`8`"]);
    }

    #[test]
    fn names_keep_their_number_apart() {
        assert_eq!(tokens("%acc.2 %\"a b\".3 %7"), ["`%acc.2`", "`%a b.3`", "`%7`"]);
        assert_eq!(
            tokens("\n  %a.b"),
            ["2:3 the number of a name is missing or too large"]
        );
    }

    #[test]
    fn escapes_are_undone() {
        let mut lexer = Lexer::new(r#""a\n\u{1b}\"""#);
        assert_eq!(
            lexer.next().map(|(_, token)| token),
            Ok(Token::Text("a\n\u{1b}\"".to_owned()))
        );
        assert_eq!(
            tokens(r#""\u{d800}""#),
            ["1:1 text in quotes has an unknown escape"]
        );
        assert_eq!(tokens("\"a"), ["1:1 text in quotes has no end on its line"]);
    }
}
