//! The kernel's head: version, name, parameters, attributes, declarations.

use super::lexer::{Name, Token};
use super::scope::Lookup;
use super::{Parser, constant, limits};
use crate::error::Result;
use crate::ir::kernel::{Accuracy, ArrayData, Kernel, LoadData, Param, PointerFacts, Races, Value};
use crate::ir::print::VERSION;
use crate::ir::types::{Space, Type};

/// A length that names a parameter: looked up when all parameters are known.
struct NamedLength {
    param: usize,
    name: Name,
    position: super::Position,
}

impl Parser<'_> {
    /// The whole text.
    pub(in crate::ir) fn kernel(mut self) -> Result<Kernel> {
        let accepted = format!("the first line of a kernel's text is `hsir {VERSION}`");
        if !self.at_word("hsir") {
            return Err(self.expected("`hsir`").accepted(accepted));
        }
        self.advance()?;
        let Token::Number(digits) = self.token else {
            return Err(self.expected("the version").accepted(accepted));
        };
        if constant::unsigned(digits) != Some(u64::from(VERSION)) {
            let what = format!("version {} of the text form is not known", self.token.describe());
            return Err(self.error(what).accepted(accepted));
        }
        self.advance()?;
        self.expect_word("kernel")?;
        self.kernel.name = whole_name(self.global("the kernel's name, as in `@gather`,")?);
        self.params()?;
        self.attributes()?;
        self.expect('{')?;
        self.declarations()?;
        self.kernel.body = self.region_to_brace()?;
        self.expect_end()?;
        Ok(self.kernel)
    }

    fn params(&mut self) -> Result<()> {
        let mut lengths = Vec::new();
        self.expect('(')?;
        while !self.at(')') {
            if self.kernel.params.len() == limits::PARAMETERS {
                return Err(self.error(format!("there are more than {} parameters", limits::PARAMETERS)));
            }
            self.param(&mut lengths)?;
            if !self.accept(',')? {
                break;
            }
        }
        self.expect(')')?;
        for NamedLength {
            param,
            name,
            position,
        } in lengths
        {
            let Lookup::Found(value) = self.symbols.look_up(&name) else {
                let what = format!("the length {} is not a parameter", Token::Value(name).describe());
                return Err(self.error_at(position, what));
            };
            if let Some(facts) = &mut self.kernel.params[param].facts {
                facts.length = Some(value);
            }
        }
        Ok(())
    }

    fn param(&mut self, lengths: &mut Vec<NamedLength>) -> Result<()> {
        let position = self.position;
        let Token::Value(name) = self.token.clone() else {
            return Err(self.expected("a parameter, as in `%n: i64`,"));
        };
        self.advance()?;
        self.expect(':')?;
        let ty = self.ty()?;
        let value = self.kernel.value(ty);
        let text = whole_name(name.clone());
        self.kernel.values[value].name = Some(text.clone());
        self.define(name, value, position)?;
        let facts = match self.token {
            Token::Word(_) => Some(self.facts(lengths)?),
            _ => None,
        };
        self.kernel.params.push(Param {
            name: text,
            value,
            facts,
        });
        Ok(())
    }

    /// `f32[%n] align 4 readonly unaliased`
    fn facts(&mut self, lengths: &mut Vec<NamedLength>) -> Result<PointerFacts> {
        let element = self.ty()?;
        self.expect('[')?;
        let mut length = None;
        let position = self.position;
        if let Token::Value(name) = self.token.clone() {
            self.advance()?;
            lengths.push(NamedLength {
                param: self.kernel.params.len(),
                name,
                position,
            });
        } else if !self.at(']') {
            length = Some(self.operand("a length, as in `f32[%n]` or `f32[64:i64]`,")?);
        }
        self.expect(']')?;
        let align = self.align()?;
        Ok(PointerFacts {
            element,
            align,
            length,
            read_only: self.accept_word("readonly")?,
            unaliased: self.accept_word("unaliased")?,
            is_constant: self.accept_word("constant")?,
            races: self.races()?,
        })
    }

    fn races(&mut self) -> Result<Races> {
        for &races in Races::ALL.iter().filter(|races| **races != Races::None) {
            if self.accept_word(races.word())? {
                return Ok(races);
            }
        }
        Ok(Races::None)
    }

    fn align(&mut self) -> Result<u32> {
        self.expect_word("align")?;
        self.small_number("an alignment", 1, limits::ALIGNMENT)
    }

    fn attributes(&mut self) -> Result<()> {
        if self.accept_word("group")? {
            let mut size = [0; 3];
            for (dimension, items) in size.iter_mut().enumerate() {
                if dimension > 0 {
                    self.expect(',')?;
                }
                *items = self.small_number("a work-group size", 1, u32::MAX)?;
            }
            self.kernel.group_size = Some(size);
        }
        if self.accept_word("sub_group")? {
            self.kernel.sub_group_size = Some(self.small_number("a sub-group size", 1, u32::MAX)?);
        }
        if self.accept_word("registers")? {
            self.kernel.max_registers = Some(self.small_number("a number of registers", 1, u32::MAX)?);
        }
        self.kernel.float_mode.any_nan = self.accept_word("any_nan")?;
        if self.accept_word("accuracy")? {
            self.kernel.float_mode.accuracy = self.accuracy()?;
        }
        if !self.at('{') {
            return Err(self.expected("`{`").accepted(
                "before it, in this order: group X,Y,Z, sub_group N, registers N, any_nan, accuracy NAME",
            ));
        }
        Ok(())
    }

    fn accuracy(&mut self) -> Result<Accuracy> {
        for accuracy in Accuracy::ALL {
            if self.accept_word(accuracy.name())? {
                return Ok(accuracy);
            }
        }
        Err(self
            .expected("an accuracy")
            .accepted("`rounded`, `opencl` or `fast`"))
    }

    fn declarations(&mut self) -> Result<()> {
        loop {
            match self.token {
                Token::Word("shared") => self.array(Space::Shared)?,
                Token::Word("private") => self.array(Space::Private)?,
                Token::Word("file") => self.file()?,
                Token::Word("load") => self.load_declaration()?,
                _ => return Ok(()),
            }
        }
    }

    /// `shared @ring: f32[512] align 16`
    fn array(&mut self, space: Space) -> Result<()> {
        if self.kernel.arrays.len() == limits::ARRAYS {
            return Err(self.error(format!("there are more than {} arrays", limits::ARRAYS)));
        }
        self.advance()?;
        let position = self.position;
        let name = self.global("an array's name, as in `@ring`,")?;
        self.expect(':')?;
        let element = self.ty()?;
        self.expect('[')?;
        let length = self.small_number("an array's length", 1, u32::MAX)?;
        self.expect(']')?;
        let align = self.align()?;
        let array = self.kernel.arrays.push(ArrayData {
            name: whole_name(name.clone()),
            space,
            element,
            length,
            align,
        });
        match self.arrays.insert(name.clone(), array) {
            None => Ok(()),
            Some(_) => Err(self.error_at(position, taken(&Token::Global(name)))),
        }
    }

    /// `file #1 "gather.rs"`
    fn file(&mut self) -> Result<()> {
        self.advance()?;
        self.expect('#')?;
        let position = self.position;
        let number = self.number("the number of a source file", 1, u64::MAX)?;
        let Token::Text(name) = self.token.clone() else {
            return Err(self.expected("a file name in quotes"));
        };
        self.advance()?;
        match self.files.insert(number, name) {
            None => Ok(()),
            Some(_) => Err(self.error_at(position, format!("there is a source file #{number} already"))),
        }
    }

    /// `load @values constant #1:41:18`
    fn load_declaration(&mut self) -> Result<()> {
        self.advance()?;
        let position = self.position;
        let name = self.global("a load's name, as in `@values`,")?;
        let constant = self.accept_word("constant")?;
        let place = match self.at('#') {
            true => self.written_place(0)?,
            false => Kernel::NOWHERE,
        };
        let id = self.kernel.loads.push(LoadData {
            name: whole_name(name.clone()),
            place,
            constant,
        });
        match self.loads.insert(name.clone(), id) {
            None => Ok(()),
            Some(_) => Err(self.error_at(position, taken(&Token::Global(name)))),
        }
    }

    /// Gives a name to a value.
    pub(super) fn define(&mut self, name: Name, value: Value, position: super::Position) -> Result<()> {
        match self.symbols.define(name.clone(), value) {
            true => Ok(()),
            false => Err(self.error_at(position, taken(&Token::Value(name)))),
        }
    }

    /// A constant's value; equal constants are one value.
    pub(super) fn constant(&mut self, ty: Type, bits: u64) -> Value {
        let kernel = &mut self.kernel;
        *self
            .constants
            .entry((ty, bits))
            .or_insert_with(|| kernel.constant(ty, bits))
    }
}

/// The message for a name that is used twice.
pub(super) fn taken(token: &Token<'_>) -> String {
    format!("the name {} is taken", token.describe())
}

/// The name of an item that always has one.
fn whole_name(name: Name) -> String {
    let Name { text, number } = name;
    text.unwrap_or_else(|| number.to_string())
}
