//! The fields of operations: which operands are in them.

use super::arithmetic::{BinaryOp, CompareOp, ConvertOp, NoWrapOp, UnaryOp, Wrap};
use super::hint::{CacheHint, CacheUse, HintSource, PrefetchScope};
use super::kernel::{Array, Label, LoadId, Region, Value};
use super::op::{Dependency, Id, LoopWishes, Meeting, OpKind};
use super::rule::FloatRule;
use super::together::{AtomicOp, GroupVoteOp, MemoryOrder, MemoryScope, ReduceOp, ShuffleOp, VoteOp};

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
    AtomicOp,
    BinaryOp,
    CacheHint,
    CacheUse,
    CompareOp,
    ConvertOp,
    Dependency,
    FloatRule,
    GroupVoteOp,
    HintSource,
    Id,
    Label,
    LoadId,
    LoopWishes,
    MemoryOrder,
    MemoryScope,
    NoWrapOp,
    Option<LoadId>,
    PrefetchScope,
    ReduceOp,
    Region,
    ShuffleOp,
    String,
    UnaryOp,
    VoteOp,
    Wrap,
    i64,
    u32,
);
