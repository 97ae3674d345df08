//! A body: registers, variables, labels, instructions.
//!
//! Blocks in braces have registers and labels of their own, as inline assembly needs them; here they become
//! registers and labels of the function.

use std::collections::HashMap;

use super::lexer::Token;
use super::parse::Parser;
use super::tree::{
    Body, Function, Instruction, LabelData, Location, Operand, Register, RegisterData, Scope, Span, Statement,
};
use crate::error::{Error, Result};
use crate::ir::limits;
use crate::suggest::quoted;

/// Most registers that `%r<N>` may declare at once, and most that a function may use.
pub(super) const MOST_REGISTERS: usize = 1 << 20;
/// Most operands inside each other: `[{a, b}]`.
const MOST_NESTED_OPERANDS: u32 = 4;
/// Most blocks inside each other.
const MOST_NESTED_BLOCKS: usize = 256;

/// Reads the body of a function.
///
/// # Errors
/// The text is no PTX: what, and in which line.
pub(super) fn body<'t>(text: &'t str, function: &Function<'t>) -> Result<Body<'t>> {
    let (at, line) = function.body;
    let mut reader = Reader {
        parser: Parser::new(text, at, line),
        body: Body::default(),
        scopes: Vec::new(),
        label_of: Vec::new(),
        targets: HashMap::new(),
        location: None,
    };
    let result = reader.read(function);
    result.map_err(|error| error.at(format!("line {}", reader.parser.line)))?;
    Ok(reader.body)
}

#[derive(Default)]
struct NameScope<'t> {
    number: u32,
    registers: HashMap<&'t str, Register>,
    /// `%r<36>`: by prefix, how many, and their type.
    ranges: HashMap<&'t str, (u64, &'t str)>,
    labels: HashMap<&'t str, ScopedLabel>,
}

/// A label as a scope has it.
#[derive(Clone, Copy)]
struct ScopedLabel {
    number: u32,
    /// Whether it stands in this scope; else it is mentioned there, so far.
    is_defined: bool,
}

struct Reader<'t> {
    parser: Parser<'t>,
    body: Body<'t>,
    scopes: Vec<NameScope<'t>>,
    /// What a label's number became once its scope was over.
    label_of: Vec<u32>,
    /// The targets of computed jumps, by the label of their list.
    targets: HashMap<u32, Vec<u32>>,
    location: Option<Location<'t>>,
}

impl<'t> Reader<'t> {
    fn read(&mut self, function: &Function<'t>) -> Result<()> {
        self.parser.advance()?;
        self.open_scope();
        for param in function.params.iter().chain(&function.results) {
            if param.name.starts_with('%') {
                self.declare(param.name, param.ty)?;
            }
        }
        loop {
            match self.parser.token {
                Token::Mark('}') => {
                    self.close_scope()?;
                    if self.scopes.is_empty() {
                        break;
                    }
                    self.parser.advance()?;
                }
                Token::Mark('{') => {
                    if self.scopes.len() >= MOST_NESTED_BLOCKS {
                        return Err(Error::input("blocks are nested too deeply"));
                    }
                    self.open_scope();
                    self.parser.advance()?;
                }
                Token::Mark(';') => {
                    self.parser.advance()?;
                }
                Token::Dot(_) => {
                    let start = self.parser.start();
                    self.directive()?;
                    self.end_statement(start);
                }
                Token::Mark('@') | Token::Word(_) => {
                    let start = self.parser.start();
                    self.statement()?;
                    self.end_statement(start);
                }
                _ => return Err(self.parser.unexpected("an instruction")),
            }
            if self.body.statements.len() > limits::OPERATIONS {
                return Err(Error::input("a function has too many instructions")
                    .accepted(format!("at most {}", limits::OPERATIONS)));
            }
        }
        self.resolve_labels()
    }

    /// Keeps where a statement stands, if one was read.
    fn end_statement(&mut self, start: usize) {
        let span = Span {
            start,
            end: self.parser.behind,
            scope: self.scopes.last().map_or(0, |scope| scope.number),
        };
        self.body.spans.resize(self.body.statements.len(), span);
    }

    fn directive(&mut self) -> Result<()> {
        let Token::Dot(name) = self.parser.advance()? else {
            return Ok(());
        };
        match name {
            "reg" => self.registers(),
            "loc" => self.loc(),
            "shared" | "local" | "global" | "const" => {
                let mut variables = std::mem::take(&mut self.body.variables);
                let before = variables.len();
                let result = self.parser.variables(name, &mut variables);
                let is_inner = self.scopes.len() > 1;
                variables[before..]
                    .iter_mut()
                    .for_each(|variable| variable.is_inner = is_inner);
                self.body.variables = variables;
                result.and_then(|()| self.are_told_apart(before))
            }
            "pragma" => {
                if matches!(self.parser.token, Token::Text("nounroll")) {
                    self.body.statements.push(Statement::KeepLoop);
                }
                self.parser.skip_statement()
            }
            "branchtargets" => self.targets(),
            "calltargets" | "callprototype" => {
                self.named_list();
                self.parser.skip_statement()
            }
            // Variables of a call: they are looked up when they are used.
            _ => self.parser.skip_statement(),
        }
    }

    /// The label in front of a list, which is no place in the code.
    fn named_list(&mut self) -> Option<u32> {
        let Some(&Statement::Label(list)) = self.body.statements.last() else {
            return None;
        };
        self.body.statements.pop();
        self.body.labels[list as usize].number = None;
        Some(list)
    }

    /// `LIST: .branchtargets A, B;`
    fn targets(&mut self) -> Result<()> {
        let list = self.named_list();
        let mut targets = Vec::new();
        loop {
            let name = self.parser.word("a label")?;
            targets.push(self.label(name));
            if !self.parser.take(',')? {
                break;
            }
        }
        self.targets.extend(list.map(|list| (list, targets)));
        self.parser.expect(';')
    }

    /// Variables are known by their names: two of one name, in blocks of their own, would be one.
    fn are_told_apart(&self, new: usize) -> Result<()> {
        let (old, new) = self.body.variables.split_at(new);
        let twice = new
            .iter()
            .find(|own| old.iter().any(|other| other.name == own.name));
        match twice {
            None => Ok(()),
            Some(variable) => Err(Error::input(format!(
                "two variables of the function are called {}",
                quoted(variable.name)
            ))
            .accepted("one variable of each name in a function, its blocks included")),
        }
    }

    fn registers(&mut self) -> Result<()> {
        let Token::Dot(ty) = self.parser.advance()? else {
            return Err(self.parser.unexpected("a type"));
        };
        if matches!(self.parser.token, Token::Dot(_)) {
            return Err(Error::input("registers of vectors are not read"));
        }
        loop {
            let name = self.parser.word("a register's name")?;
            if self.parser.take('<')? {
                let count = self.parser.integer("a number of registers")?;
                self.parser.expect('>')?;
                self.scope().ranges.insert(name, (count, ty));
            } else {
                self.declare(name, ty)?;
            }
            if !self.parser.take(',')? {
                return self.parser.expect(';');
            }
        }
    }

    fn scope(&mut self) -> &mut NameScope<'t> {
        self.scopes
            .last_mut()
            .expect("the function's own scope is closed last")
    }

    fn declare(&mut self, name: &'t str, ty: &'t str) -> Result<Register> {
        let register = self.body.registers.len();
        if register >= MOST_REGISTERS {
            return Err(Error::input("a function uses too many registers"));
        }
        self.body.registers.push(RegisterData { name, ty });
        self.scope().registers.insert(name, register as Register);
        Ok(register as Register)
    }

    /// The register of this name, if it is one.
    fn register(&mut self, name: &'t str) -> Result<Option<Register>> {
        let prefix = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let number: Option<u64> = name[prefix.len()..].parse().ok();
        for index in (0..self.scopes.len()).rev() {
            let scope = &self.scopes[index];
            if let Some(&register) = scope.registers.get(name) {
                return Ok(Some(register));
            }
            if let (Some(&(count, ty)), Some(number)) = (scope.ranges.get(prefix), number)
                && number < count
            {
                if self.body.registers.len() >= MOST_REGISTERS {
                    return Err(Error::input("a function uses too many registers"));
                }
                let register = self.body.registers.len() as Register;
                self.body.registers.push(RegisterData { name, ty });
                self.scopes[index].registers.insert(name, register);
                return Ok(Some(register));
            }
        }
        Ok(None)
    }

    fn loc(&mut self) -> Result<()> {
        let file = self.parser.integer("a file's number")?;
        let line = self.parser.integer("a line")?;
        let column = match self.parser.token {
            Token::Integer(_) => self.parser.integer("a column")?,
            _ => 0,
        };
        let (mut inlined_at, mut function) = (None, None);
        // `, function_name $L__info_string0, inlined_at 2 10 3`
        while self.parser.take(',')? {
            let what = self.parser.word("`function_name` or `inlined_at`")?;
            if what == "inlined_at" {
                let mut number = || -> Result<u64> { self.parser.integer("a file, line and column") };
                let (file, line, column) = (number()?, number()?, number()?);
                let small = |number: u64| u32::try_from(number).unwrap_or(0);
                inlined_at = Some((file, small(line), small(column))).filter(|(_, line, _)| *line > 0);
                continue;
            }
            // A label of strings, and how far behind it. What follows may be a label of the code.
            function = Some(self.parser.word("a label")?);
            if self.parser.take('+')? {
                self.parser.integer("an offset")?;
            }
        }
        self.location = Some(Location {
            file,
            line: u32::try_from(line).unwrap_or(0),
            column: u32::try_from(column).unwrap_or(0),
            inlined_at,
            function,
        })
        .filter(|location| location.line > 0);
        Ok(())
    }

    // Labels.

    /// The number of a label that is mentioned: the scope's own, which may still come, and hides one of the scopes around.
    fn label(&mut self, name: &'t str) -> u32 {
        match self.scope().labels.get(name) {
            Some(known) => known.number,
            None => self.new_label(name, false),
        }
    }

    fn new_label(&mut self, name: &'t str, is_defined: bool) -> u32 {
        self.body.labels.push(LabelData { name, number: None });
        let number = self.label_of.len() as u32;
        self.label_of.push(number);
        let label = ScopedLabel { number, is_defined };
        self.scope().labels.insert(name, label);
        number
    }

    fn define_label(&mut self, name: &'t str) -> Result<()> {
        let number = match self.scope().labels.get_mut(name) {
            Some(known) if known.is_defined => {
                return Err(Error::input(format!("label {} is defined twice", quoted(name))));
            }
            Some(known) => {
                known.is_defined = true;
                known.number
            }
            None => self.new_label(name, true),
        };
        self.body.labels[number as usize].number = Some(self.body.statements.len() as u32);
        self.body.statements.push(Statement::Label(number));
        Ok(())
    }

    fn open_scope(&mut self) {
        let number = self.body.scopes.len() as u32;
        self.body.scopes.push(Scope {
            around: self.scopes.last().map(|scope| scope.number),
            ..Scope::default()
        });
        self.scopes.push(NameScope {
            number,
            ..NameScope::default()
        });
    }

    /// Hands what was only referred to on to the scope around.
    fn close_scope(&mut self) -> Result<()> {
        let Some(scope) = self.scopes.pop() else {
            return Ok(());
        };
        let kept = &mut self.body.scopes[scope.number as usize];
        (kept.registers, kept.ranges) = (scope.registers, scope.ranges);
        let defined = scope.labels.iter().filter(|(_, label)| label.is_defined);
        kept.labels = defined.map(|(name, label)| (*name, label.number)).collect();
        let mentioned = scope.labels.into_iter().filter(|(_, label)| !label.is_defined);
        match self.scopes.last_mut() {
            Some(outer) => {
                for (name, label) in mentioned {
                    let outer = outer.labels.entry(name).or_insert(label);
                    self.label_of[label.number as usize] = outer.number;
                }
            }
            None => {
                // The first one in the text, so that the message is the same each time.
                if let Some((name, _)) = mentioned.min_by_key(|(_, label)| label.number) {
                    return Err(Error::input(format!("there is no label {}", quoted(name))));
                }
            }
        }
        Ok(())
    }

    fn resolve_labels(&mut self) -> Result<()> {
        let final_label = |mut label: u32| {
            while self.label_of[label as usize] != label {
                label = self.label_of[label as usize];
            }
            label
        };
        let lists = self.targets.iter().map(|(list, targets)| {
            let targets = targets.iter().map(|&target| Operand::Label(final_label(target)));
            (final_label(*list), targets.collect())
        });
        let lists: HashMap<u32, Vec<Operand<'t>>> = lists.collect();
        for statement in &mut self.body.statements {
            match statement {
                Statement::Label(label) => *label = final_label(*label),
                Statement::KeepLoop => {}
                Statement::Instruction(instruction) => {
                    for operand in &mut instruction.operands {
                        if let Operand::Label(label) = operand {
                            *label = final_label(*label);
                        }
                    }
                    if let ("brx", [_, Operand::Label(list)]) =
                        (instruction.opcode, &instruction.operands[..])
                        && let Some(targets) = lists.get(list)
                    {
                        instruction.operands.push(Operand::List(targets.clone()));
                    }
                }
            }
        }
        Ok(())
    }

    // Instructions.

    fn statement(&mut self) -> Result<()> {
        let line = self.parser.line;
        let guard = match self.parser.take('@')? {
            true => {
                let negated = self.parser.take('!')?;
                let name = self.parser.word("a predicate")?;
                let register = self.register(name)?;
                Some((register.ok_or_else(|| unknown_register(name))?, negated))
            }
            false => None,
        };
        let opcode = self.parser.word("an instruction")?;
        if guard.is_none() && self.parser.take(':')? {
            return self.define_label(opcode);
        }
        let mut modifiers = Vec::new();
        while let Token::Dot(modifier) = self.parser.token {
            modifiers.push(modifier);
            self.parser.advance()?;
        }
        let mut operands = Vec::new();
        while self.parser.token != Token::Mark(';') {
            if !operands.is_empty() {
                self.parser.expect(',')?;
            }
            operands.push(self.operand(opcode, 0)?);
        }
        self.parser.expect(';')?;
        // A policy for the caches comes last, and changes no result.
        let is_bulk = modifiers.contains(&"bulk");
        if let Some(at) = modifiers
            .iter()
            .position(|&word| word == "L2::cache_hint" && !is_bulk)
        {
            modifiers.remove(at);
            operands.pop();
        }
        // The accumulator of an asynchronous product is read as well as written.
        if opcode == "wgmma" && modifiers.contains(&"mma_async") {
            operands.extend(operands.first().cloned());
        }
        // `max.s16x2.relu` is `max.relu.s16x2`: the type comes last here.
        if modifiers.last() == Some(&"relu") {
            modifiers.rotate_right(1);
        }
        let location = self.location;
        self.body.statements.push(Statement::Instruction(Instruction {
            opcode,
            modifiers,
            guard,
            operands,
            line,
            number: self.body.statements.len() as u32,
            location,
        }));
        Ok(())
    }

    fn operand(&mut self, opcode: &str, depth: u32) -> Result<Operand<'t>> {
        if depth > MOST_NESTED_OPERANDS {
            return Err(Error::input("operands are nested too deeply"));
        }
        match self.parser.token {
            Token::Mark('{') => self.operands(opcode, '}', depth).map(Operand::Vector),
            Token::Mark('(') => self.operands(opcode, ')', depth).map(Operand::List),
            Token::Mark('[') => {
                self.parser.advance()?;
                let base = self.operand(opcode, depth + 1)?;
                let offset = self.offset()?;
                if self.parser.token == Token::Mark(',') {
                    let mut parts = vec![base];
                    while self.parser.take(',')? {
                        parts.push(self.operand(opcode, depth + 1)?);
                    }
                    self.parser.expect(']')?;
                    return Ok(Operand::Bracket(parts));
                }
                self.parser.expect(']')?;
                Ok(match base {
                    Operand::Address(base, inner) => Operand::Address(base, inner.wrapping_add(offset)),
                    base => Operand::Address(Box::new(base), offset),
                })
            }
            Token::Mark('!') => {
                self.parser.advance()?;
                let name = self.parser.word("a predicate")?;
                let register = self.register(name)?;
                register.map(Operand::Not).ok_or_else(|| unknown_register(name))
            }
            Token::Mark('-') => {
                self.parser.advance()?;
                match self.parser.advance()? {
                    Token::Integer(number) => Ok(Operand::Integer(number.wrapping_neg())),
                    Token::Single(bits) => Ok(Operand::Single(bits ^ 1 << 31)),
                    Token::Double(number) => Ok(Operand::Double(-number)),
                    _ => Err(Error::input("a number is expected behind `-`")),
                }
            }
            Token::Integer(number) => self.parser.advance().map(|_| Operand::Integer(number)),
            Token::Single(bits) => self.parser.advance().map(|_| Operand::Single(bits)),
            Token::Double(number) => self.parser.advance().map(|_| Operand::Double(number)),
            Token::Word(word) => {
                self.parser.advance()?;
                self.named(word, opcode, depth)
            }
            _ => Err(self.parser.unexpected("an operand")),
        }
    }

    fn operands(&mut self, opcode: &str, close: char, depth: u32) -> Result<Vec<Operand<'t>>> {
        self.parser.advance()?;
        let mut operands = Vec::new();
        while !self.parser.take(close)? {
            if !operands.is_empty() {
                self.parser.expect(',')?;
            }
            operands.push(self.operand(opcode, depth + 1)?);
        }
        Ok(operands)
    }

    /// `+8`, `-8`, `+-8`, or nothing.
    fn offset(&mut self) -> Result<i64> {
        let mut offset = 0i64;
        loop {
            let negative = match self.parser.token {
                Token::Mark('+') => {
                    self.parser.advance()?;
                    self.parser.take('-')?
                }
                Token::Mark('-') => self.parser.take('-')?,
                _ => return Ok(offset),
            };
            let number = self.parser.integer("an offset")? as i64;
            offset = offset.wrapping_add(if negative { number.wrapping_neg() } else { number });
        }
    }

    fn named(&mut self, word: &'t str, opcode: &str, depth: u32) -> Result<Operand<'t>> {
        if word == "_" {
            // `elect.sync _|p, mask`.
            if self.parser.take('|')? {
                let second = self.operand(opcode, depth + 1)?;
                return Ok(Operand::Pair(Box::new(Operand::Sink), Box::new(second)));
            }
            return Ok(Operand::Sink);
        }
        if let Some(register) = self.register(word)? {
            let operand = Operand::Register(register);
            if self.parser.take('|')? {
                let second = self.operand(opcode, depth + 1)?;
                return Ok(Operand::Pair(Box::new(operand), Box::new(second)));
            }
            return Ok(operand);
        }
        if let Some(name) = word.strip_prefix('%') {
            let part = match self.parser.token {
                Token::Dot(part) => {
                    self.parser.advance()?;
                    part
                }
                _ => "",
            };
            return Ok(Operand::Special(name, part));
        }
        if matches!(opcode, "bra" | "brx") {
            return Ok(Operand::Label(self.label(word)));
        }
        if word == "generic" && self.parser.take('(')? {
            let inner = self.operand(opcode, depth + 1)?;
            self.parser.expect(')')?;
            return Ok(inner);
        }
        match self.parser.token {
            // `mov.u64 %rd1, table+8`: an address without brackets.
            Token::Mark('+') => {
                let offset = self.offset()?;
                Ok(Operand::Address(Box::new(Operand::Symbol(word)), offset))
            }
            _ => Ok(Operand::Symbol(word)),
        }
    }
}

fn unknown_register(name: &str) -> Error {
    Error::input(format!("there is no register {}", quoted(name)))
}

#[cfg(test)]
mod tests;
