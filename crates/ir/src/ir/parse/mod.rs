//! The text form of a kernel, and its parser. Files of it are called `.hsir`.
//!
//! ```text
//! hsir 1
//!
//! kernel @scale(
//!   %input: ptr.global f32[%n] align 4 readonly unaliased,
//!   %output: ptr.global f32[%n] align 4 unaliased,
//!   %n: i64,
//! ) group 128,1,1 sub_group 32 {
//!   shared @ring: f32[512] align 16
//!   file #1 "scale.rs"
//!   load @input #1:12:18
//!
//!   %lane = id.local.x
//!   %start = extend.u %lane to i64
//!   loop 'items (%i = %start) unroll 4 prefetch "input=cache:L1:8" {
//!     %more = lt.u %i, %n
//!     if %more { yield } else { break }
//!     %from = address %input + %i * 4
//!     %x = load f32 %from, @input streaming #1:12:18
//!     %y = fmul %x, 0.5:f32 #1:13:5 in #1:20:9
//!     %to = address %output + %i * 4
//!     store %to, %y
//!     %next = add.nuw %i, 128:i64
//!     continue %next
//!   }
//!   return
//! }
//! ```
//!
//! - Blanks and line ends separate, and `;` starts a comment; neither has further meaning.
//! - `%` is a value, `@` an array or a load (or the kernel), `'` a label. A name is a word, a number for unnamed items, or text
//!   in quotes; `.2` after it only distinguishes equal names. Names are unique in the kernel, and a value is written after its
//!   definition.
//! - A constant carries its type: `-1:i32`, `0.5:f32`, `true`, `nan:f64`, `inf:f64`, `0x7fc00001:f32`
//!   (the bits), `0:token`. Other types follow from the operands; loads and conversions name theirs.
//! - `yield` leaves the block or `if` that directly contains it, `break` and `continue` without a label the innermost loop,
//!   with a label the labelled one. Without `else`, an `if` yields nothing there.
//! - The facts about a pointer follow its parameter's type: `f32[%n]` or `f32[]`, `align 4`, `readonly`, `unaliased`,
//!   `racing_reads` or `racing` ([`Races`](super::Races)). After the parameters: `group`, `sub_group`, `registers`, `any_nan`, `accuracy`.
//! - `load @p` declares a load, `load @p constant` one of memory that nothing writes while the kernel runs.
//! - `among %mask` after a shuffle, a vote or `meet subgroup` names who takes part; without it the whole sub-group
//!   does.
//! - `#1:41:18 in #1:60:5` is the source place: file 1, line 41, column 18, inlined at line 60. File 0 is
//!   the unknown one.
//!
//! Operations are spelled by [`UnaryOp::name`](super::UnaryOp::name) and its like; [`NoWrap`] is the
//! operation, a point and the promise: `add.nuw`. A float operation that rounds or flushes by a rule of its own has it
//! behind its name, in this order: `.ftz`, one of `.rz`, `.rm`, `.rp`, `.nan`, `.contract`, as in `fma.ftz.rm` ([`FloatRule`]).
//!
//! [`NoWrap`]: super::OpKind::NoWrap
//! [`FloatRule`]: super::FloatRule
//!
//! The parser checks spelling, names, scopes and operand types, and the [`limits`];
//! [`verify`](super::verify()) checks the rest.

mod constant;
mod header;
mod lexer;
mod operation;
mod scope;
mod structure;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use super::kernel::{Array, Kernel, LoadId, Place, PlaceData};
use super::limits;
use super::op::Op;
use super::types::Type;
use crate::error::{Error, Result};
use lexer::{Lexer, Name, Position, Token};
use scope::SymbolTable;

/// Reads a kernel from its text form, exactly as it was printed.
///
/// # Errors
/// Input errors at `file_name:line:column`.
pub fn parse(text: &str, file_name: &str) -> Result<Kernel> {
    Parser::new(text, file_name, false)?.kernel()
}

pub(super) struct Parser<'t> {
    lexer: Lexer<'t>,
    /// The token to look at next, and where it starts.
    token: Token<'t>,
    position: Position,
    /// The line of the token before.
    line: u32,
    file_name: &'t str,
    /// An operation without a source place gets its place in the text.
    own_places: bool,
    kernel: Kernel,
    symbols: SymbolTable,
    constants: HashMap<(Type, u64), super::Value>,
    arrays: HashMap<Name, Array>,
    loads: HashMap<Name, LoadId>,
    files: HashMap<u64, String>,
    places: HashMap<PlaceData, Place>,
    place_bytes: usize,
    operations: usize,
}

impl<'t> Parser<'t> {
    pub(super) fn new(text: &'t str, file_name: &'t str, own_places: bool) -> Result<Parser<'t>> {
        let mut parser = Parser {
            lexer: Lexer::new(text),
            token: Token::End,
            position: Position {
                offset: 0,
                line: 1,
                column: 1,
            },
            line: 0,
            file_name,
            own_places,
            kernel: Kernel::new(""),
            symbols: SymbolTable::default(),
            constants: HashMap::new(),
            arrays: HashMap::new(),
            loads: HashMap::new(),
            files: HashMap::new(),
            places: HashMap::new(),
            place_bytes: 0,
            operations: 0,
        };
        if text.len() > limits::TEXT_BYTES {
            let what = format!("the text has {} bytes", text.len());
            let accepted = format!("at most {} are read", limits::TEXT_BYTES);
            return Err(parser.error(what).accepted(accepted));
        }
        parser.advance()?;
        Ok(parser)
    }

    /// An error at the token to look at next.
    fn error(&self, what: impl Into<String>) -> Error {
        self.error_at(self.position, what)
    }

    fn error_at(&self, position: Position, what: impl Into<String>) -> Error {
        let Position { line, column, .. } = position;
        Error::input(what).at(format!("{}:{line}:{column}", self.file_name))
    }

    fn expected(&self, what: &str) -> Error {
        self.error(format!("{what} is expected, not {}", self.token.describe()))
    }

    /// Moves to the next token and returns the one before.
    fn advance(&mut self) -> Result<Token<'t>> {
        match self.lexer.next() {
            Ok((position, token)) => {
                self.line = self.position.line;
                self.position = position;
                Ok(std::mem::replace(&mut self.token, token))
            }
            Err((position, what)) => Err(self.error_at(position, what)),
        }
    }

    fn at(&self, punctuation: char) -> bool {
        self.token == Token::Punctuation(punctuation)
    }

    fn at_word(&self, word: &str) -> bool {
        self.token == Token::Word(word)
    }

    /// Skips this if it comes next; whether it did.
    fn accept(&mut self, punctuation: char) -> Result<bool> {
        let found = self.at(punctuation);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    pub(in crate::ir) fn accept_word(&mut self, word: &str) -> Result<bool> {
        let found = self.at_word(word);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    fn expect(&mut self, punctuation: char) -> Result<()> {
        match self.accept(punctuation)? {
            true => Ok(()),
            false => Err(self.expected(&format!("`{punctuation}`"))),
        }
    }

    pub(super) fn expect_word(&mut self, word: &str) -> Result<()> {
        match self.accept_word(word)? {
            true => Ok(()),
            false => Err(self.expected(&format!("`{word}`"))),
        }
    }

    /// A number from `least` to `most`.
    fn number(&mut self, what: &str, least: u64, most: u64) -> Result<u64> {
        let Token::Number(digits) = self.token else {
            return Err(self.expected(what));
        };
        match constant::unsigned(digits) {
            Some(number) if (least..=most).contains(&number) => {
                self.advance()?;
                Ok(number)
            }
            _ => Err(self
                .error(format!("{what} cannot be {}", self.token.describe()))
                .accepted(format!("from {least} to {most}"))),
        }
    }

    /// As [`Parser::number`], for numbers that fit 32 bits.
    pub(super) fn small_number(&mut self, what: &str, least: u32, most: u32) -> Result<u32> {
        let number = self.number(what, u64::from(least), u64::from(most))?;
        Ok(u32::try_from(number).unwrap_or(most))
    }

    fn ty(&mut self) -> Result<Type> {
        let found = match self.token {
            Token::Word(word) => Type::parse(word),
            _ => None,
        };
        match found {
            Some(ty) => {
                self.advance()?;
                Ok(ty)
            }
            None => {
                let names: Vec<&str> = Type::ALL.into_iter().map(Type::name).collect();
                Err(self
                    .expected("a type")
                    .accepted(format!("types: {}", names.join(", "))))
            }
        }
    }

    /// The name after an `@`.
    fn global(&mut self, what: &str) -> Result<Name> {
        match self.token.clone() {
            Token::Global(name) => {
                self.advance()?;
                Ok(name)
            }
            _ => Err(self.expected(what)),
        }
    }

    /// A source place, or where the text itself is if that is wanted, or nowhere.
    fn place(&mut self, start: Position) -> Result<Place> {
        if self.at('#') {
            return self.written_place(0);
        }
        match self.own_places {
            true => self.intern_place(PlaceData {
                file: self.file_name.to_owned(),
                line: start.line,
                column: start.column,
                inlined_at: None,
            }),
            false => Ok(Kernel::NOWHERE),
        }
    }

    fn written_place(&mut self, calls: usize) -> Result<Place> {
        if calls > limits::INLINED_CALLS {
            return Err(self.error(format!(
                "a place is inlined through more than {} calls",
                limits::INLINED_CALLS
            )));
        }
        self.expect('#')?;
        let position = self.position;
        let number = self.number("the number of a source file", 0, u64::MAX)?;
        let file = match self.files.get(&number) {
            Some(file) => file.clone(),
            None if number == 0 => String::new(),
            None => {
                return Err(self
                    .error_at(position, format!("there is no source file #{number}"))
                    .accepted(format!("declare it before: file #{number} \"name.rs\"")));
            }
        };
        self.expect(':')?;
        let line = self.small_number("a line", 0, u32::MAX)?;
        self.expect(':')?;
        let column = self.small_number("a column", 0, u32::MAX)?;
        let inlined_at = match self.accept_word("in")? {
            true => Some(self.written_place(calls + 1)?),
            false => None,
        };
        self.intern_place(PlaceData {
            file,
            line,
            column,
            inlined_at,
        })
    }

    fn intern_place(&mut self, data: PlaceData) -> Result<Place> {
        if let Some(&place) = self.places.get(&data) {
            return Ok(place);
        }
        self.place_bytes += size_of::<PlaceData>() + data.file.len();
        if self.place_bytes > limits::PLACE_BYTES {
            return Err(self.error("the source places take too much memory"));
        }
        let place = self.kernel.places.push(data.clone());
        self.places.insert(data, place);
        Ok(place)
    }

    /// Counts an operation against the limit.
    fn count_operation(&mut self) -> Result<()> {
        self.operations += 1;
        match self.operations > limits::OPERATIONS {
            true => Err(self.error(format!(
                "the kernel has more than {} operations",
                limits::OPERATIONS
            ))),
            false => Ok(()),
        }
    }

    /// The last operation is there; nothing but the end may follow.
    fn expect_end(&self) -> Result<()> {
        match self.token {
            Token::End => Ok(()),
            _ => Err(self.expected("the end of the file")),
        }
    }

    /// Records where a load stands in the text, if its declaration does not say.
    fn load_is_used(&mut self, id: LoadId, op: &Op) {
        if self.own_places && self.kernel.loads[id].place == Kernel::NOWHERE {
            self.kernel.loads[id].place = op.place;
        }
    }
}
