//! The outside of a module: directives, entries, functions, variables.
//!
//! Bodies are passed over, as quickly as braces can be counted, until an entry is asked for: a module of
//! many megabytes costs little more than its text.

use super::lexer::{Lexer, Token};
use super::tree::{Function, Module, Param, Variable};
use crate::error::{Error, Result};
use crate::suggest::quoted;

/// Most functions and variables of a module.
const MOST_DECLARATIONS: usize = 1 << 18;

/// Reads a module without the bodies.
///
/// # Errors
/// The text is no PTX: what, and in which line.
pub(super) fn module(text: &str) -> Result<Module<'_>> {
    let mut parser = Parser::new(text, 0, 1);
    let result = parser.module();
    result.map_err(|error| error.at(format!("line {}", parser.line)))
}

/// Reads tokens with one in hand.
pub(super) struct Parser<'t> {
    lexer: Lexer<'t>,
    /// The token in hand.
    pub token: Token<'t>,
    /// The line that it is in.
    pub line: u32,
    /// Where the token before it ends.
    pub behind: usize,
    started: bool,
}

impl<'t> Parser<'t> {
    /// Starts at a byte of the text; nothing is in hand before the first [`Parser::advance`].
    pub(crate) fn new(text: &'t str, at: usize, line: u32) -> Parser<'t> {
        Parser {
            lexer: Lexer::new(text, at, line),
            token: Token::End,
            line,
            behind: at,
            started: false,
        }
    }

    /// Takes the token in hand and reads the next.
    pub(crate) fn advance(&mut self) -> Result<Token<'t>> {
        let token = self.token;
        self.behind = self.lexer.position();
        self.token = self.lexer.next()?;
        self.line = self.lexer.line();
        self.started = true;
        Ok(token)
    }

    /// Where the token in hand starts.
    pub(crate) fn start(&self) -> usize {
        self.lexer.start()
    }

    /// Takes a mark if it is in hand.
    pub(crate) fn take(&mut self, mark: char) -> Result<bool> {
        let there = self.token == Token::Mark(mark);
        if there {
            self.advance()?;
        }
        Ok(there)
    }

    /// Takes a mark that must be there.
    pub(crate) fn expect(&mut self, mark: char) -> Result<()> {
        match self.take(mark)? {
            true => Ok(()),
            false => Err(self.unexpected(&format!("`{mark}`"))),
        }
    }

    /// Takes a word that must be there.
    pub(crate) fn word(&mut self, what: &str) -> Result<&'t str> {
        match self.token {
            Token::Word(word) => {
                self.advance()?;
                Ok(word)
            }
            _ => Err(self.unexpected(what)),
        }
    }

    /// Takes a whole number that must be there.
    pub(crate) fn integer(&mut self, what: &str) -> Result<u64> {
        match self.token {
            Token::Integer(number) => {
                self.advance()?;
                Ok(number)
            }
            _ => Err(self.unexpected(what)),
        }
    }

    /// An error about the token in hand.
    pub(crate) fn unexpected(&self, wanted: &str) -> Error {
        let found = match self.token {
            Token::Word(word) => quoted(word),
            Token::Dot(word) => quoted(&format!(".{word}")),
            Token::Integer(number) => format!("`{number}`"),
            Token::Single(_) | Token::Double(_) => "a number".to_owned(),
            Token::Text(_) => "a string".to_owned(),
            Token::Mark(mark) => format!("`{mark}`"),
            Token::End => "the end of the text".to_owned(),
        };
        Error::input(format!("{found} where {wanted} is expected"))
    }

    /// Passes everything up to a semicolon and takes it.
    pub(crate) fn skip_statement(&mut self) -> Result<()> {
        loop {
            match self.token {
                Token::Mark(';') => return self.advance().map(|_| ()),
                Token::End => return Err(self.unexpected("`;`")),
                _ => self.advance()?,
            };
        }
    }

    fn module(&mut self) -> Result<Module<'t>> {
        let mut module = Module::default();
        // `.common` stands in front of the variable that it is said of, and `.visible` in front of a function.
        let mut is_common = false;
        let mut begins = None;
        self.advance()?;
        loop {
            if module.functions.len() + module.variables.len() > MOST_DECLARATIONS {
                return Err(Error::input("the module declares too much")
                    .accepted(format!("at most {MOST_DECLARATIONS} functions and variables")));
            }
            match self.token {
                Token::End => break,
                Token::Dot("version") => {
                    let start = self.lexer.position();
                    self.advance()?;
                    let end = self.lexer.position();
                    if let Token::Double(number) = self.advance()? {
                        let tenths = (number * 10.0).round().clamp(0.0, 1e6) as u32;
                        module.version = Some(((tenths / 10, tenths % 10), (start, end)));
                    }
                }
                Token::Dot("target") => {
                    self.advance()?;
                    module.target = self.word("a target")?;
                    while self.take(',')? {
                        self.word("a target")?;
                    }
                }
                Token::Dot("address_size") => {
                    self.advance()?;
                    module.address_size = Some(self.integer("32 or 64")?);
                }
                Token::Dot("file") => {
                    self.advance()?;
                    let number = self.integer("a file's number")?;
                    if let Token::Text(path) = self.advance()? {
                        module.files.push((number, path));
                    }
                    while self.take(',')? {
                        self.advance()?;
                    }
                }
                Token::Dot("section") => {
                    while !matches!(self.token, Token::Mark('{') | Token::End) {
                        self.advance()?;
                    }
                    self.skip_body()?;
                }
                Token::Dot("common") => {
                    self.advance()?;
                    is_common = true;
                    continue;
                }
                Token::Dot(linking @ ("visible" | "extern" | "weak")) => {
                    begins.get_or_insert(self.lexer.position() - linking.len() - 1);
                    self.advance()?;
                    continue;
                }
                Token::Mark(';') => {
                    self.advance()?;
                }
                Token::Dot(kind @ ("entry" | "func")) => {
                    let start = begins.unwrap_or(self.lexer.position() - kind.len() - 1);
                    self.advance()?;
                    let (function, has_body) = self.function(start, kind == "entry")?;
                    match has_body {
                        true => module.functions.push(function),
                        false => module.declared.push(function),
                    }
                }
                Token::Dot(space @ ("global" | "const" | "shared" | "local")) => {
                    self.advance()?;
                    let first = module.variables.len();
                    self.variables(space, &mut module.variables)?;
                    if is_common {
                        let own = &mut module.variables[first..];
                        own.iter_mut().for_each(|variable| variable.is_common = true);
                    }
                }
                Token::Dot("loc") => {
                    self.advance()?;
                    while let Token::Integer(_) = self.token {
                        self.advance()?;
                    }
                }
                Token::Dot(_) | Token::Word(_) => self.skip_statement()?,
                _ => return Err(self.unexpected("a directive")),
            }
            is_common = false;
            begins = None;
        }
        match module.address_size {
            None | Some(64) => Ok(module),
            Some(_) => {
                Err(Error::input("the module has addresses of 32 bits").accepted("`.address_size 64`"))
            }
        }
    }

    /// Passes a body whose opening brace is in hand; gives the byte of its closing brace.
    fn skip_body(&mut self) -> Result<usize> {
        if self.token != Token::Mark('{') {
            return Err(self.unexpected("`{`"));
        }
        self.lexer.skip_braces()?;
        let end = self.lexer.position() - 1;
        self.advance()?;
        Ok(end)
    }

    /// A function that starts at a byte, behind its `.entry` or `.func`, and whether it has a body.
    fn function(&mut self, start: usize, is_entry: bool) -> Result<(Function<'t>, bool)> {
        let mut results = Vec::new();
        if !is_entry && self.token == Token::Mark('(') {
            results = self.params()?;
        }
        while let Token::Dot(_) = self.token {
            self.attribute()?;
        }
        let name = self.word("a function's name")?;
        let params = match self.token {
            Token::Mark('(') => self.params()?,
            _ => Vec::new(),
        };
        let mut required_group = None;
        loop {
            match self.token {
                Token::Mark('{') => {
                    let body = (self.lexer.position(), self.lexer.line());
                    let body_end = self.skip_body()?;
                    let function = Function {
                        name,
                        start,
                        is_entry,
                        params,
                        results,
                        required_group,
                        body,
                        body_end,
                    };
                    return Ok((function, true));
                }
                Token::Mark(';') => {
                    self.advance()?;
                    let function = Function {
                        name,
                        start,
                        is_entry,
                        params,
                        results,
                        required_group,
                        body: (0, 0),
                        body_end: 0,
                    };
                    return Ok((function, false));
                }
                Token::Dot("reqntid") => {
                    self.advance()?;
                    let mut size = [1u32; 3];
                    for (dimension, extent) in size.iter_mut().enumerate() {
                        if dimension > 0 && !self.take(',')? {
                            break;
                        }
                        let number = self.integer("a work-group's size")?;
                        *extent = u32::try_from(number)
                            .map_err(|_| Error::input("the work-group's size is too large"))?;
                    }
                    required_group = Some(size);
                }
                Token::Dot("pragma") => {
                    self.attribute()?;
                    self.take(';')?;
                }
                Token::Dot(_) => self.attribute()?,
                _ => return Err(self.unexpected("a body")),
            }
        }
    }

    /// Passes a directive of a function: its name, and numbers, a string or a list in parentheses.
    fn attribute(&mut self) -> Result<()> {
        self.advance()?;
        loop {
            match self.token {
                Token::Integer(_) | Token::Text(_) => self.advance()?,
                Token::Mark(',') => self.advance()?,
                // A declaration ends behind a directive without numbers: `.noreturn;`.
                Token::Mark(';') => return Ok(()),
                Token::Mark('(') => {
                    while !matches!(self.token, Token::Mark(')') | Token::End) {
                        self.advance()?;
                    }
                    self.advance()?
                }
                _ => return Ok(()),
            };
            // A number, string or list may end a directive; the next dot begins another one.
            if matches!(
                self.token,
                Token::Dot(_) | Token::Word(_) | Token::Mark('{' | '(')
            ) {
                return Ok(());
            }
            if self.token == Token::Mark(';') {
                return Ok(());
            }
        }
    }

    fn params(&mut self) -> Result<Vec<Param<'t>>> {
        self.expect('(')?;
        let mut params = Vec::new();
        while !self.take(')')? {
            if !params.is_empty() {
                self.expect(',')?;
            }
            params.push(self.param()?);
            if params.len() > MOST_DECLARATIONS {
                return Err(Error::input("a function has too many parameters"));
            }
        }
        Ok(params)
    }

    /// One parameter: `.param .u64 .ptr .global .align 16 name`, `.param .align 8 .b8 name[24]`.
    fn param(&mut self) -> Result<Param<'t>> {
        let mut ty = "";
        let mut is_pointer = false;
        let (mut space, mut align, mut own_align) = ("generic", 0, 0);
        while let Token::Dot(directive) = self.token {
            self.advance()?;
            match directive {
                "param" | "reg" => {}
                "align" if is_pointer => align = self.integer("an alignment")?,
                "align" => own_align = self.integer("an alignment")?,
                "ptr" => is_pointer = true,
                "global" | "shared" | "local" | "const" if is_pointer => space = directive,
                other => ty = other,
            }
        }
        let name = self.word("a parameter's name")?;
        let array = self.array_length()?;
        Ok(Param {
            name,
            ty,
            array: array.map(|length| length.unwrap_or(0)),
            align: own_align.min(4096),
            pointer: is_pointer.then_some((space, align)),
        })
    }

    /// `[24]`, `[]`, or nothing; lengths of several dimensions are multiplied.
    fn array_length(&mut self) -> Result<Option<Option<u64>>> {
        let mut length: Option<Option<u64>> = None;
        while self.take('[')? {
            let extent = match self.token {
                Token::Integer(_) => Some(self.integer("a length")?),
                _ => None,
            };
            self.expect(']')?;
            length = Some(match (length, extent) {
                (None, extent) => extent,
                (Some(Some(length)), Some(extent)) => Some(length.saturating_mul(extent)),
                (Some(_), _) => None,
            });
        }
        Ok(length)
    }

    /// The variables of a declaration behind its space: `.align 4 .b8 tile[1024], other;`.
    pub(crate) fn variables(&mut self, space: &'t str, into: &mut Vec<Variable<'t>>) -> Result<()> {
        let mut ty = "b8";
        let mut align = 0;
        let mut vector = 1;
        while let Token::Dot(directive) = self.token {
            self.advance()?;
            match directive {
                "align" => align = self.integer("an alignment")?,
                "v2" => vector = 2,
                "v4" => vector = 4,
                "attribute" => {
                    while !matches!(self.token, Token::Mark(')') | Token::End) {
                        self.advance()?;
                    }
                    self.advance()?;
                }
                other => ty = other,
            }
        }
        loop {
            let line = self.line;
            let name = self.word("a variable's name")?;
            let length = match self.array_length()? {
                None => Some(vector),
                Some(length) => length.map(|length| length.saturating_mul(vector)),
            };
            into.push(Variable {
                name,
                space,
                ty,
                length,
                is_common: false,
                align,
                line,
                values: (self.token == Token::Mark('=')).then(|| (self.lexer.position(), self.lexer.line())),
                is_inner: false,
            });
            if into.len() > MOST_DECLARATIONS {
                return Err(Error::input("too many variables are declared"));
            }
            if self.take('=')? {
                // The values are read when an entry needs them.
                return self.skip_statement();
            }
            if !self.take(',')? {
                return self.expect(';');
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_as_compilers_write_it() {
        let text = ".version 9.0\n.target sm_90, debug\n.address_size 64\n.file 1 \"a/b.cu\", 5, 6\n\
                    .global .align 4 .b8 table[8] = {1, 2, 3, 4, 5, 6, 7, 8};\n\
                    .extern .shared .align 16 .b8 dynamic[];\n\
                    .extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b) ;\n\
                    .extern .func stop\n(\n.param .b64 a\n)\n.noreturn;\n.global .align 1 .b8 why[2] = {63, 0};\n\
                    .func (.reg .b32 %out) helper(.reg .b32 %in) { ret; }\n\
                    .visible .entry k(\n.param .u64 .ptr .global .align 16 k_a,\n.param .align 8 .b8 k_s[24],\n\
                    .param .f32 k_x\n)\n.maxntid 128, 1, 1\n.minnctapersm 2\n.reqntid 64\n.pragma \"nounroll\";\n{ ret; }\n\
                    .section .debug_str { .b8 1, 2 }\n";
        let module = module(text).expect("a module");
        let names: Vec<_> = module.functions.iter().map(|f| (f.name, f.is_entry)).collect();
        assert_eq!(names, [("helper", false), ("k", true)]);
        let declared: Vec<_> = module.declared.iter().map(|f| f.name).collect();
        assert_eq!(declared, ["vprintf", "stop"]);
        let k = &module.functions[1];
        assert_eq!(k.required_group, Some([64, 1, 1]));
        assert_eq!(k.params[0].pointer, Some(("global", 16)));
        assert_eq!((k.params[1].array, k.params[2].ty), (Some(24), "f32"));
        assert_eq!(module.variables[1].length, None);
        assert_eq!(module.files, [(1, "a/b.cu")]);
    }

    #[test]
    fn what_is_no_module_is_refused_with_its_line() {
        for (text, line) in [
            (".version 9.0\n.entry", "line 2"),
            (".entry k() {\n\n", "line"),
            (".address_size 32\n", "line"),
            ("\n(", "line 2"),
            (".entry k(.param .u64 a .param .u64 b) { }", "line 1"),
        ] {
            let error = module(text).expect_err(text).to_string();
            assert!(error.starts_with(line), "{error}");
        }
    }
}
