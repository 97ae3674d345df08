//! Operations without regions.

use super::lexer::{Name, NameAt, Position, Token};
use super::scope::{Enclosing, Lookup};
use super::{Parser, constant};
use crate::error::Result;
use crate::ir::hint::{CacheHint, CacheLevel, CacheUse, HintSource, LscControl, PrefetchScope};
use crate::ir::kernel::{Array, Label, LoadId, Value};
use crate::ir::op::{BinaryOp, CompareOp, ConvertOp, Meeting, NoWrapOp, Op, OpKind, UnaryOp, Wrap};
use crate::ir::print::{all_ids, id_name};
use crate::ir::rule::FloatRule;
use crate::ir::text::Spelled;
use crate::ir::together::{AtomicOp, MemoryOrder, MemoryScope};
use crate::ir::types::Type;
use crate::ir::verify::result_types;
use crate::suggest;

/// Whether a rule may stand behind this word; which rule, the verifier says.
fn is_ruled(word: &str) -> bool {
    word == "fma"
        || UnaryOp::parse(word).is_some()
        || BinaryOp::parse(word).is_some()
        || CompareOp::parse(word).is_some()
        || ConvertOp::parse(word).is_some()
}

impl Parser<'_> {
    /// One operation, regions included.
    pub(super) fn operation(&mut self) -> Result<Op> {
        self.count_operation()?;
        let start = self.position;
        let names = self.result_names()?;
        let Token::Word(word) = self.token else {
            return Err(self.expected("an operation"));
        };
        let position = self.position;
        self.advance()?;
        if let Some((kind, place)) = self.structure(word, start)? {
            let types = match kind.label() {
                Some(label) => self.kernel.labels[label].results.clone(),
                None => Vec::new(),
            };
            let results = self.results(names, types, position)?;
            return Ok(Op { kind, results, place });
        }
        let (kind, named) = self.simple(word, position)?;
        let types = result_types(&self.kernel, &kind, names.len(), named)
            .map_err(|error| error.at(self.place_text(position)))?;
        let results = self.results(names, types, position)?;
        let place = self.place(start)?;
        let op = Op { kind, results, place };
        if let OpKind::Load { id, .. } | OpKind::Copy { id, .. } = op.kind {
            self.load_is_used(id, &op);
        }
        Ok(op)
    }

    fn place_text(&self, position: Position) -> String {
        format!("{}:{}:{}", self.file_name, position.line, position.column)
    }

    /// `%a, %b =`, or nothing.
    fn result_names(&mut self) -> Result<Vec<NameAt>> {
        let mut names = Vec::new();
        while let Token::Value(name) = self.token.clone() {
            names.push((name, self.position));
            self.advance()?;
            if !self.accept(',')? {
                self.expect('=')?;
                break;
            }
        }
        Ok(names)
    }

    fn results(&mut self, names: Vec<NameAt>, types: Vec<Type>, position: Position) -> Result<Vec<Value>> {
        if names.len() != types.len() {
            let what = format!("the operation has {} results, not {}", types.len(), names.len());
            return Err(self.error_at(position, what));
        }
        let mut results = Vec::with_capacity(types.len());
        for ((name, position), ty) in names.into_iter().zip(types) {
            let value = self.kernel.value(ty);
            self.kernel.values[value].name = name.text.clone();
            self.define(name, value, position)?;
            results.push(value);
        }
        Ok(results)
    }

    /// An operation without region after its first word, and the type that it names itself.
    fn simple(&mut self, word: &str, position: Position) -> Result<(OpKind, Option<Type>)> {
        if let Some(kind) = OpKind::read(word, self)? {
            return Ok((kind, None));
        }
        let mut named = None;
        let kind = match word {
            "address" => self.address()?,
            "load" => {
                named = Some(self.ty()?);
                let [ptr] = self.operands()?;
                self.expect(',')?;
                let id = self.load_name()?;
                let cache = self.cache()?;
                OpKind::Load { ptr, id, cache }
            }
            "prefetch" => self.prefetch()?,
            "meet" => self.meeting()?,
            "print" => {
                let Token::Text(text) = self.token.clone() else {
                    return Err(self.expected("a line in quotes"));
                };
                self.advance()?;
                let values = match self.accept(',')? {
                    true => self.operand_list()?,
                    false => Vec::new(),
                };
                OpKind::Print { text, values }
            }
            "atomic" => {
                let kind;
                (kind, named) = self.atomic()?;
                kind
            }
            "yield" => OpKind::Break(self.yield_target(position)?, self.exit_values()?),
            "break" => OpKind::Break(self.exit_target(position)?, self.exit_values()?),
            "continue" => OpKind::Continue(self.exit_target(position)?, self.exit_values()?),
            _ => return self.tabulated(word, position),
        };
        Ok((kind, named))
    }

    /// An operation that is spelled by one of the tables in `op`.
    fn tabulated(&mut self, word: &str, position: Position) -> Result<(OpKind, Option<Type>)> {
        if let Some(id) = all_ids().find(|&id| id_name(id) == word) {
            return Ok((OpKind::Id(id), None));
        }
        if let Some(op) = UnaryOp::parse(word) {
            let [a] = self.operands()?;
            return Ok((OpKind::Unary(op, a), None));
        }
        if let Some(op) = ConvertOp::parse(word) {
            let [a] = self.operands()?;
            self.expect_word("to")?;
            return Ok((OpKind::Convert(op, a), Some(self.ty()?)));
        }
        if let Some((bare, rule)) = FloatRule::split(word)
            && rule != FloatRule::EXACT
            && is_ruled(bare)
        {
            let (kind, named) = self.simple(bare, position)?;
            return Ok((kind.ruled(rule), named));
        }
        let no_wrap = word
            .split_once('.')
            .and_then(|(op, wrap)| Some((NoWrapOp::parse(op)?, Wrap::parse(wrap)?)));
        let (binary, compare) = (BinaryOp::parse(word), CompareOp::parse(word));
        if binary.is_none() && compare.is_none() && no_wrap.is_none() {
            return Err(self.unknown_operation(word, position));
        }
        let [a, b] = self.operands()?;
        let kind = match (binary, compare, no_wrap) {
            (Some(op), ..) => OpKind::Binary(op, a, b),
            (_, Some(op), _) => OpKind::Compare(op, a, b),
            (_, _, Some((op, wrap))) => OpKind::NoWrap(op, wrap, a, b),
            _ => return Err(self.unknown_operation(word, position)),
        };
        Ok((kind, None))
    }

    fn unknown_operation(&self, word: &str, position: Position) -> crate::error::Error {
        let ids: Vec<String> = all_ids().map(id_name).collect();
        let mut known: Vec<String> = Vec::new();
        known.extend(UnaryOp::ALL.iter().map(|op| op.name().to_owned()));
        known.extend(BinaryOp::ALL.iter().map(|op| op.name().to_owned()));
        known.extend(CompareOp::ALL.iter().map(|op| op.name().to_owned()));
        known.extend(ConvertOp::ALL.iter().map(|op| op.name().to_owned()));
        for op in NoWrapOp::ALL {
            known.extend(
                Wrap::ALL
                    .iter()
                    .map(|wrap| format!("{}.{}", op.name(), wrap.name())),
            );
        }
        known.extend(ids);
        let words = OpKind::WORDS.iter().copied().flatten().copied();
        let known: Vec<&str> = words.chain(known.iter().map(String::as_str)).collect();
        let error = self.error_at(
            position,
            format!("there is no operation {}", suggest::quoted(word)),
        );
        // All of them would not fit on a readable line.
        const SHOWN: usize = 24;
        match suggest::nearest(word, known.iter().copied()) {
            Some(near) => error.accepted(format!("did you mean `{near}`?")),
            None => error.accepted(format!(
                "operations: {}, …",
                known[..SHOWN.min(known.len())].join(", ")
            )),
        }
    }

    /// A value or a constant.
    pub(in crate::ir) fn operand(&mut self, what: &str) -> Result<Value> {
        let truth = match &self.token {
            Token::Value(name) => {
                let name = name.clone();
                let value = self.used(&name)?;
                self.advance()?;
                return Ok(value);
            }
            Token::Word("true") => Some(1),
            Token::Word("false") => Some(0),
            _ => None,
        };
        if let Some(bits) = truth {
            self.advance()?;
            return Ok(self.constant(Type::Bool, bits));
        }
        let position = self.position;
        let negative = self.accept('-')?;
        let digits = match self.token {
            Token::Number(digits) | Token::Word(digits @ ("inf" | "nan")) => digits,
            _ => {
                return Err(self
                    .expected(what)
                    .accepted("a value like `%x`, or a constant like `-1:i32`, `0.5:f32` or `true`"));
            }
        };
        self.advance()?;
        if !self.accept(':')? {
            return Err(self.error_at(position, "a constant is written with its type, as in `1:i32`"));
        }
        let ty = self.ty()?;
        let bits = constant::bits(ty, negative, digits).map_err(|what| self.error_at(position, what))?;
        Ok(self.constant(ty, bits))
    }

    fn used(&self, name: &Name) -> Result<Value> {
        let shown = self.token.describe();
        match self.symbols.look_up(name) {
            Lookup::Found(value) => Ok(value),
            Lookup::Ended => Err(self
                .error(format!("{shown} is defined in a region that has ended"))
                .accepted("results leave a region through `yield` or `break`")),
            Lookup::Unknown => {
                let error = self.error(format!("{shown} is not defined before this"));
                let text = name.text.as_deref().unwrap_or_default();
                Err(match suggest::nearest(text, self.symbols.visible()) {
                    Some(nearest) if nearest != text => error.accepted(format!("did you mean `%{nearest}`?")),
                    _ => error,
                })
            }
        }
    }

    /// The comma behind an earlier operand.
    pub(in crate::ir) fn separator(&mut self, first: &mut bool) -> Result<()> {
        match std::mem::take(first) {
            true => Ok(()),
            false => self.expect(','),
        }
    }

    fn operands<const N: usize>(&mut self) -> Result<[Value; N]> {
        // Overwritten below; constants need no definition, so nothing dangles in between.
        let mut operands = [self.constant(Type::Bool, 0); N];
        for (index, operand) in operands.iter_mut().enumerate() {
            if index > 0 {
                self.expect(',')?;
            }
            *operand = self.operand("an operand")?;
        }
        Ok(operands)
    }

    /// One operand or more.
    pub(in crate::ir) fn operand_list(&mut self) -> Result<Vec<Value>> {
        let mut operands = vec![self.operand("an operand")?];
        while self.accept(',')? {
            operands.push(self.operand("an operand")?);
        }
        Ok(operands)
    }

    /// The values of a `yield`, `break` or `continue`; possibly none.
    pub(in crate::ir) fn exit_values(&mut self) -> Result<Vec<Value>> {
        match self.token {
            Token::Value(_) | Token::Number(_) | Token::Punctuation('-') => self.operand_list(),
            Token::Word("true" | "false" | "inf" | "nan") => self.operand_list(),
            _ => Ok(Vec::new()),
        }
    }

    /// A text between quotation marks.
    pub(in crate::ir) fn quoted(&mut self, what: &str) -> Result<String> {
        let Token::Text(text) = self.token.clone() else {
            return Err(self.expected(what));
        };
        self.advance()?;
        Ok(text)
    }

    /// `(i32, f32)`, or `()`.
    pub(in crate::ir) fn types(&mut self) -> Result<Vec<Type>> {
        self.expect('(')?;
        let mut types = Vec::new();
        while !self.accept(')')? {
            if !types.is_empty() {
                self.expect(',')?;
            }
            types.push(self.ty()?);
        }
        Ok(types)
    }

    /// `(%a, %b)`, or `()`.
    pub(in crate::ir) fn operands_in_brackets(&mut self) -> Result<Vec<Value>> {
        self.expect('(')?;
        let mut values = Vec::new();
        while !self.accept(')')? {
            if !values.is_empty() {
                self.expect(',')?;
            }
            values.push(self.operand("an operand")?);
        }
        Ok(values)
    }

    fn yield_target(&self, position: Position) -> Result<Label> {
        match self.symbols.enclosing().next() {
            Some(enclosing) if !enclosing.is_loop => Ok(enclosing.label),
            _ => Err(self
                .error_at(position, "`yield` belongs directly in a block or `if`")
                .accepted("a loop is left by `break`, the kernel by `return`")),
        }
    }

    /// The label after `break` or `continue`, or the innermost loop.
    fn exit_target(&mut self, position: Position) -> Result<Label> {
        let Token::Label(name) = self.token.clone() else {
            return match self.symbols.enclosing().find(|enclosing| enclosing.is_loop) {
                Some(enclosing) => Ok(enclosing.label),
                None => Err(self.error_at(position, "there is no loop around this")),
            };
        };
        let named = |enclosing: &&Enclosing| enclosing.name.as_ref() == Some(&name);
        let Some(label) = self
            .symbols
            .enclosing()
            .find(named)
            .map(|enclosing| enclosing.label)
        else {
            return Err(self.error(format!("no label {} is around this", self.token.describe())));
        };
        self.advance()?;
        Ok(label)
    }

    pub(in crate::ir) fn array_name(&mut self) -> Result<Array> {
        let position = self.position;
        let name = self.global("an array's name, as in `@ring`,")?;
        self.arrays.get(&name).copied().ok_or_else(|| {
            self.error_at(position, format!("there is no array `@{name}`"))
                .accepted("declare it before: shared @ring: f32[512] align 16")
        })
    }

    pub(in crate::ir) fn load_name(&mut self) -> Result<LoadId> {
        let position = self.position;
        let name = self.global("a load's name, as in `@values`,")?;
        self.loads.get(&name).copied().ok_or_else(|| {
            self.error_at(position, format!("there is no load `@{name}`"))
                .accepted("declare it at the kernel's top: load @values")
        })
    }

    /// How an access uses caches: a word in its line, since `block` also begins an operation.
    pub(in crate::ir) fn cache(&mut self) -> Result<CacheUse> {
        match self.token {
            Token::Word(word) if self.line == self.position.line => match CacheUse::parse(word) {
                Some(cache) => {
                    self.advance()?;
                    Ok(cache)
                }
                None => Ok(CacheUse::Default),
            },
            _ => Ok(CacheUse::Default),
        }
    }

    /// `address %base + %index * 4 - 16`
    fn address(&mut self) -> Result<OpKind> {
        let [base] = self.operands()?;
        self.expect('+')?;
        let [index] = self.operands()?;
        self.expect('*')?;
        let scale = self.small_number("a scale in bytes", 0, u32::MAX)?;
        let mut offset = 0;
        if self.accept('+')? {
            offset = self.number("an offset in bytes", 0, i64::MAX as u64)? as i64;
        } else if self.accept('-')? {
            offset = (self.number("an offset in bytes", 0, 1 << 63)? as i64).wrapping_neg();
        }
        Ok(OpKind::address(base, index, scale, offset))
    }

    /// A word of a table.
    pub(in crate::ir) fn tabled<T: Copy>(
        &mut self,
        what: &str,
        all: &[T],
        name: fn(T) -> &'static str,
    ) -> Result<T> {
        let found = match self.token {
            Token::Word(word) => all.iter().copied().find(|&one| name(one) == word),
            _ => None,
        };
        let Some(found) = found else {
            let names: Vec<&str> = all.iter().map(|&one| name(one)).collect();
            return Err(self
                .expected(what)
                .accepted(format!("one of: {}", names.join(", "))));
        };
        self.advance()?;
        Ok(found)
    }

    /// `atomic add relaxed device %ptr, %value`, `atomic load i32 acquire device %ptr`
    fn atomic(&mut self) -> Result<(OpKind, Option<Type>)> {
        let first = &mut true;
        let op = AtomicOp::read(self, first)?;
        let named = match op {
            AtomicOp::Load => Some(self.ty()?),
            _ => None,
        };
        let (order, scope) = (MemoryOrder::read(self, first)?, MemoryScope::read(self, first)?);
        let [ptr] = self.operands()?;
        let values = match self.accept(',')? {
            true => self.operand_list()?,
            false => Vec::new(),
        };
        let kind = OpKind::Atomic {
            op,
            ptr,
            values,
            order,
            scope,
        };
        Ok((kind, named))
    }

    /// `among %mask`, or nothing where the whole sub-group takes part.
    pub(in crate::ir) fn party(&mut self) -> Result<Option<Value>> {
        match self.accept_word("among")? {
            true => self.operands().map(|[mask]| Some(mask)),
            false => Ok(None),
        }
    }

    /// `meet subgroup`, `meet subgroup among %mask`, `meet 3 of 4`
    fn meeting(&mut self) -> Result<OpKind> {
        if self.token == Token::Word("subgroup") {
            self.advance()?;
            return Ok(OpKind::Meet(Meeting::SubGroup(self.party()?)));
        }
        let number = self.small_number("the number of a barrier", 0, u32::MAX)?;
        self.expect_word("of")?;
        let sub_groups = self.small_number("a number of sub-groups", 0, u32::MAX)?;
        Ok(OpKind::Meet(Meeting::Named { number, sub_groups }))
    }

    /// `prefetch L1 nontemporal 4 at %ptr, @values`, `prefetch L1C_L3C 4 * %count at %ptr by sub_group`
    fn prefetch(&mut self) -> Result<OpKind> {
        let (hint, source) = self.hint()?;
        let bytes = self.small_number("a size in bytes", 0, u32::MAX)?;
        let count = match self.accept('*')? {
            true => {
                let [count] = self.operands()?;
                Some(count)
            }
            false => None,
        };
        self.expect_word("at")?;
        let [ptr] = self.operands()?;
        let scope = match self.accept_word("by")? {
            true => PrefetchScope::read(self, &mut true)?,
            false => PrefetchScope::WorkItem,
        };
        let id = match self.accept(',')? {
            true => Some(self.load_name()?),
            false => None,
        };
        Ok(OpKind::Prefetch {
            ptr,
            bytes,
            count,
            hint,
            source,
            scope,
            id,
        })
    }

    /// `L1 nontemporal`, `L1 default`, `L1UC_L3C`
    fn hint(&mut self) -> Result<(CacheHint, HintSource)> {
        let (level, control) = match self.token {
            Token::Word(word) => (CacheLevel::parse(word), LscControl::parse(word)),
            _ => (None, None),
        };
        if let Some(control) = control {
            self.advance()?;
            return Ok((control.nearest(), HintSource::Control(control)));
        }
        let Some(level) = level else {
            let controls: Vec<&str> = LscControl::ALL.iter().map(|one| one.name()).collect();
            return Err(self.expected("a cache level").accepted(format!(
                "levels: L1, L2, L3, L4; cache controls: {}",
                controls.join(", ")
            )));
        };
        self.advance()?;
        let nontemporal = self.accept_word("nontemporal")?;
        let source = match self.accept_word("default")? {
            true => HintSource::Default,
            false => HintSource::Named,
        };
        Ok((CacheHint { level, nontemporal }, source))
    }
}
