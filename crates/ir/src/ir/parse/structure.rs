//! Blocks, `if`s, loops, and the regions inside them.

use super::header::taken;
use super::lexer::{Name, NameAt, Position, Token};
use super::scope::Enclosing;
use super::{Parser, limits};
use crate::error::Result;
use crate::ir::kernel::{Label, Place, Region, Value};
use crate::ir::op::{LoopWishes, Op, OpKind, UnrollWish};

impl Parser<'_> {
    /// The operation that `word` starts, if it is one with regions, and its place.
    pub(super) fn structure(&mut self, word: &str, start: Position) -> Result<Option<(OpKind, Place)>> {
        match word {
            "block" => self.block(start).map(Some),
            "if" => self.if_(start).map(Some),
            "loop" => self.loop_(start).map(Some),
            _ => Ok(None),
        }
    }

    fn block(&mut self, start: Position) -> Result<(OpKind, Place)> {
        let (name, position) = self.label_name()?;
        let label = self.label_results(&name)?;
        let place = self.place(start)?;
        self.enter(label, name, position, false)?;
        let body = self.region()?;
        self.symbols.leave();
        Ok((OpKind::Block { label, body }, place))
    }

    fn if_(&mut self, start: Position) -> Result<(OpKind, Place)> {
        let (name, position) = self.label_name()?;
        let cond = self.operand("a condition")?;
        let label = self.label_results(&name)?;
        let place = self.place(start)?;
        self.enter(label, name, position, false)?;
        let then = self.region()?;
        let otherwise = match self.accept_word("else")? {
            true => self.region()?,
            false => {
                self.count_operation()?;
                let kind = OpKind::Break(label, Vec::new());
                Region {
                    ops: vec![Op::new(kind, Vec::new(), place)],
                }
            }
        };
        self.symbols.leave();
        let kind = OpKind::if_(label, cond, then, otherwise);
        Ok((kind, place))
    }

    fn loop_(&mut self, start: Position) -> Result<(OpKind, Place)> {
        let (name, position) = self.label_name()?;
        let (names, initial) = self.loop_params()?;
        let label = self.label_results(&name)?;
        let wishes = self.wishes()?;
        let place = self.place(start)?;
        self.enter(label, name, position, true)?;
        self.symbols.open_region();
        let mut params = Vec::with_capacity(names.len());
        for ((name, position), &initial) in names.into_iter().zip(&initial) {
            let value = self.kernel.value(self.kernel.ty(initial));
            self.kernel.values[value].name = name.text.clone();
            self.define(name, value, position)?;
            params.push(value);
        }
        let body = self.region()?;
        self.symbols.close_region();
        self.symbols.leave();
        let kind = OpKind::Loop {
            label,
            params,
            initial,
            body,
            wishes,
        };
        Ok((kind, place))
    }

    /// `(%i = 0:i64, %acc = 0.0:f32)`, or nothing.
    fn loop_params(&mut self) -> Result<(Vec<NameAt>, Vec<Value>)> {
        let (mut names, mut initial) = (Vec::new(), Vec::new());
        if !self.accept('(')? {
            return Ok((names, initial));
        }
        while !self.at(')') {
            let position = self.position;
            let Token::Value(name) = self.token.clone() else {
                return Err(self.expected("what the loop carries, as in `%i = 0:i64`,"));
            };
            self.advance()?;
            self.expect('=')?;
            names.push((name, position));
            initial.push(self.operand("the value in the first iteration")?);
            if !self.accept(',')? {
                break;
            }
        }
        self.expect(')')?;
        Ok((names, initial))
    }

    fn label_name(&mut self) -> Result<(Option<Name>, Position)> {
        let position = self.position;
        let name = match &self.token {
            Token::Label(name) => Some(name.clone()),
            _ => None,
        };
        if name.is_some() {
            self.advance()?;
        }
        Ok((name, position))
    }

    /// `-> f32, i64`, or nothing; and the label with these results.
    fn label_results(&mut self, name: &Option<Name>) -> Result<Label> {
        let mut results = Vec::new();
        if self.token == Token::Arrow {
            self.advance()?;
            results.push(self.ty()?);
            while self.accept(',')? {
                results.push(self.ty()?);
            }
        }
        let name = name.as_ref().and_then(|name| name.text.clone());
        Ok(self.kernel.label(name, results))
    }

    fn wishes(&mut self) -> Result<LoopWishes> {
        let mut wishes = LoopWishes::default();
        if self.accept_word("unroll")? {
            wishes.unroll = Some(if self.accept_word("keep")? {
                UnrollWish::Keep
            } else if self.accept_word("auto")? {
                UnrollWish::Auto
            } else if self.accept_word("full")? {
                UnrollWish::Full
            } else {
                UnrollWish::By(self.small_number(
                    "`keep`, `auto`, `full` or a number of iterations",
                    1,
                    u32::MAX,
                )?)
            });
        }
        if self.accept_word("prefetch")? {
            let Token::Text(plan) = self.token.clone() else {
                return Err(self.expected("a plan in quotes"));
            };
            self.advance()?;
            wishes.plan = Some(plan);
        }
        Ok(wishes)
    }

    fn enter(&mut self, label: Label, name: Option<Name>, position: Position, is_loop: bool) -> Result<()> {
        if self.symbols.enclosing().count() >= limits::NESTING {
            let what = format!("more than {} regions are inside each other", limits::NESTING);
            return Err(self.error(what));
        }
        let message = name.clone().map(|name| taken(&Token::Label(name)));
        match self.symbols.enter(Enclosing { label, name, is_loop }) {
            true => Ok(()),
            false => Err(self.error_at(position, message.unwrap_or_default())),
        }
    }

    fn region(&mut self) -> Result<Region> {
        self.expect('{')?;
        self.symbols.open_region();
        let region = self.region_to_brace()?;
        self.symbols.close_region();
        Ok(region)
    }

    /// The operations up to the closing brace, and the brace.
    pub(super) fn region_to_brace(&mut self) -> Result<Region> {
        let mut ops = Vec::new();
        while !self.accept('}')? {
            if self.token == Token::End {
                return Err(self.expected("an operation or `}`"));
            }
            ops.push(self.operation()?);
        }
        Ok(Region { ops })
    }
}
