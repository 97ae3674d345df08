//! The fields of operations: which operands are in them, and how they are written and read in a row of the
//! [table](super::table).

use super::hint::{CacheHint, CacheUse, HintSource};
use super::kernel::{Array, Label, LoadId, Region, Value};
use super::op::{Id, LoopWishes, Meeting, OpKind};
use super::parse::Parser;
use super::print::Printer;
use super::rule::FloatRule;
use crate::error::Result;

/// A field of an operation, as far as it has operands.
pub(super) trait Field {
    /// Calls `visit` on each operand.
    fn visit(&self, _visit: &mut dyn FnMut(Value)) {}

    /// Replaces each operand.
    fn map(&mut self, _map: &mut dyn FnMut(Value) -> Value) {}
}

impl Field for Value {
    fn visit(&self, visit: &mut dyn FnMut(Value)) {
        visit(*self);
    }

    fn map(&mut self, map: &mut dyn FnMut(Value) -> Value) {
        *self = map(*self);
    }
}

impl Field for Option<Value> {
    fn visit(&self, visit: &mut dyn FnMut(Value)) {
        self.iter().for_each(|&value| visit(value));
    }

    fn map(&mut self, map: &mut dyn FnMut(Value) -> Value) {
        self.iter_mut().for_each(|value| *value = map(*value));
    }
}

impl Field for Vec<Value> {
    fn visit(&self, visit: &mut dyn FnMut(Value)) {
        self.iter().for_each(|&value| visit(value));
    }

    fn map(&mut self, map: &mut dyn FnMut(Value) -> Value) {
        self.iter_mut().for_each(|value| *value = map(*value));
    }
}

impl Field for Meeting {
    fn visit(&self, visit: &mut dyn FnMut(Value)) {
        if let Meeting::SubGroup(mask) = self {
            Field::visit(mask, visit);
        }
    }

    fn map(&mut self, map: &mut dyn FnMut(Value) -> Value) {
        if let Meeting::SubGroup(mask) = self {
            Field::map(mask, map);
        }
    }
}

impl Field for Box<OpKind> {
    fn visit(&self, visit: &mut dyn FnMut(Value)) {
        self.for_each_operand(visit);
    }

    fn map(&mut self, map: &mut dyn FnMut(Value) -> Value) {
        self.map_operands(map);
    }
}

/// Fields without operands; a value used in a region is not an operand of the operation around it.
macro_rules! no_operands {
    ($($ty:ty),+ $(,)?) => { $(impl Field for $ty {})+ };
}

no_operands!(
    Array,
    CacheHint,
    CacheUse,
    FloatRule,
    HintSource,
    Id,
    Label,
    LoadId,
    LoopWishes,
    Option<LoadId>,
    Region,
    String,
    i64,
    u32,
);

/// A field with a text form of its own. `first` is whether no operand came before, so that no comma is wanted.
pub(super) trait Spelled: Sized {
    /// Writes it, with the separator from the text before.
    fn write(&self, out: &mut Printer<'_>, first: &mut bool);

    /// Reads the output of [`write`](Spelled::write).
    ///
    /// # Errors
    /// Something else is there.
    fn read(parser: &mut Parser<'_>, first: &mut bool) -> Result<Self>;
}

impl Spelled for Value {
    fn write(&self, out: &mut Printer<'_>, first: &mut bool) {
        let text = out.value_text(*self);
        out.operand(&text, first);
    }

    fn read(parser: &mut Parser<'_>, first: &mut bool) -> Result<Value> {
        parser.separator(first)?;
        parser.operand("an operand")
    }
}

/// One operand or more.
impl Spelled for Vec<Value> {
    fn write(&self, out: &mut Printer<'_>, first: &mut bool) {
        self.iter().for_each(|value| value.write(out, first));
    }

    fn read(parser: &mut Parser<'_>, first: &mut bool) -> Result<Vec<Value>> {
        parser.separator(first)?;
        parser.operand_list()
    }
}

/// Who takes part, unless it is the whole sub-group.
impl Spelled for Option<Value> {
    fn write(&self, out: &mut Printer<'_>, _first: &mut bool) {
        out.among(*self);
    }

    fn read(parser: &mut Parser<'_>, _first: &mut bool) -> Result<Option<Value>> {
        parser.party()
    }
}

impl Spelled for Array {
    fn write(&self, out: &mut Printer<'_>, first: &mut bool) {
        let text = out.array_text(*self);
        out.operand(&text, first);
    }

    fn read(parser: &mut Parser<'_>, first: &mut bool) -> Result<Array> {
        parser.separator(first)?;
        parser.array_name()
    }
}

impl Spelled for LoadId {
    fn write(&self, out: &mut Printer<'_>, first: &mut bool) {
        let text = out.load_text(*self);
        out.operand(&text, first);
    }

    fn read(parser: &mut Parser<'_>, first: &mut bool) -> Result<LoadId> {
        parser.separator(first)?;
        parser.load_name()
    }
}

/// The cache controls, unless they are the default.
impl Spelled for CacheUse {
    fn write(&self, out: &mut Printer<'_>, _first: &mut bool) {
        if *self != CacheUse::Default {
            out.word(self.name());
        }
    }

    fn read(parser: &mut Parser<'_>, _first: &mut bool) -> Result<CacheUse> {
        parser.cache()
    }
}

/// A size in bytes.
impl Spelled for u32 {
    fn write(&self, out: &mut Printer<'_>, first: &mut bool) {
        out.operand(&self.to_string(), first);
    }

    fn read(parser: &mut Parser<'_>, first: &mut bool) -> Result<u32> {
        parser.separator(first)?;
        parser.small_number("a size in bytes", 0, u32::MAX)
    }
}
