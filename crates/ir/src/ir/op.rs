//! The operations of a kernel.
//!
//! Every operation is total: its result is specified for every input (see the [module](super) essay and
//! [`eval`](super::eval), which is the specification in code).

pub(super) use super::arithmetic::{BinaryOp, CompareOp, ConvertOp, NoWrapOp, UnaryOp, Wrap};
use super::effects::{Awaits, Effects, Meets, Memory, Results};
use super::eval;
use super::field::Field;
use super::hint::{CacheHint, CacheUse, HintSource, PrefetchScope};
use super::kernel::{Array, Kernel, Label, LoadId, Place, Region, Value};
use super::opaque::{Opaque, OpaqueOperands};
use super::rows::with_operations;
use super::rule::FloatRule;
use super::table::{OpClass, effects_of, operations, words};
use super::together::{AtomicOp, GroupVoteOp, MemoryOrder, MemoryScope, ReduceOp, ShuffleOp, VoteOp};
use super::types::Type;

/// One operation: its kind, the values it defines, its place in the source.
#[derive(Clone, Debug, PartialEq)]
pub struct Op {
    /// Its kind, with its operands.
    pub kind: OpKind,
    /// The values it defines; how many depends on the kind.
    pub results: Vec<Value>,
    /// Where it was written.
    pub place: Place,
}

impl Op {
    /// An operation of this kind, which defines these values.
    pub fn new(kind: OpKind, results: Vec<Value>, place: Place) -> Op {
        Op { kind, results, place }
    }
}

with_operations!(operations);

words! {
    /// A launch's relation to those before and after it ([`Depend`](OpKind::Depend)).
    pub enum Dependency: "`launch` or `wait`" {
        /// As far as this work-group is concerned the next launch may begin.
        Launch = "launch",
        /// Waits until the previous launch has ended and its writes are visible.
        Wait = "wait",
    }
}

impl Dependency {
    fn effects(self) -> Effects {
        match self {
            Dependency::Launch => Effects {
                shows: true,
                ..Effects::NONE
            },
            Dependency::Wait => Effects {
                awaits: Awaits::Launch,
                ..Effects::NONE
            },
        }
    }
}

/// Who meets at a [`Meet`](OpKind::Meet).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Meeting {
    /// The work-items of the sub-group that a mask names, as in a [`Shuffle`](OpKind::Shuffle); all of them if there is
    /// none.
    SubGroup(Option<Value>),
    /// This many sub-groups of the work-group, whichever come first.
    Named {
        /// Which barrier of the work-group: 1 to 15.
        number: u32,
        /// How many sub-groups.
        sub_groups: u32,
    },
}

impl Meeting {
    fn meets(self) -> Meets {
        match self {
            Meeting::SubGroup(mask) => Meets::SubGroup(mask),
            Meeting::Named { .. } => Meets::WorkGroup,
        }
    }
}

/// An author's requests for a loop.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoopWishes {
    /// `#[unroll]`, `#[unroll(N)]`, `#[unroll(0)]`.
    pub unroll: Option<UnrollWish>,
    /// `#[prefetch("PLAN")]`: the plan's spelling.
    pub plan: Option<String>,
}

/// How an author wants a loop unrolled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnrollWish {
    /// `#[unroll(0)]`: keep the loop as it is; no unrolling behind the author's back.
    Keep,
    /// The compiler that comes behind a back end may unroll it, as in imported kernels that do not forbid it.
    Auto,
    /// `#[unroll]`: completely.
    Full,
    /// `#[unroll(N)]`: N iterations at a time.
    By(u32),
}

/// Questions about the work-item. Every answer is an `I32`; dimension 0 varies fastest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Id {
    /// Position of the work-item in its work-group, in dimension 0 to 2.
    Local(u8),
    /// Position of the work-group in the launch.
    Group(u8),
    /// Work-items in the work-group.
    GroupSize(u8),
    /// Work-groups in the launch.
    GroupCount(u8),
    /// Position in the sub-group.
    Lane,
    /// Position of the sub-group in the work-group.
    SubGroup,
    /// Work-items in this sub-group: the last one may be partial.
    SubGroupSize,
    /// Work-items in a full sub-group.
    MaxSubGroupSize,
    /// Sub-groups in the work-group.
    SubGroupCount,
}

/// Kinds of operations, made of their operands.
impl OpKind {
    /// [`OpKind::Address`].
    pub fn address(base: Value, index: Value, scale: u32, offset: i64) -> OpKind {
        OpKind::Address {
            base,
            index,
            scale,
            offset,
        }
    }

    /// [`OpKind::Load`].
    pub fn load(ptr: Value, id: LoadId, cache: CacheUse) -> OpKind {
        OpKind::Load { ptr, id, cache }
    }

    /// [`OpKind::Store`].
    pub fn store(ptr: Value, values: Vec<Value>, cache: CacheUse) -> OpKind {
        OpKind::Store { ptr, values, cache }
    }

    /// [`OpKind::If`].
    pub fn if_(label: Label, cond: Value, then: Region, otherwise: Region) -> OpKind {
        OpKind::If {
            label,
            cond,
            then,
            otherwise,
        }
    }
}

impl OpKind {
    /// Ends a region.
    pub fn is_terminator(&self) -> bool {
        self.class() == OpClass::Terminator
    }

    /// Has no effect, and reads nothing but its operands and the work-item's identity: it may be
    /// repeated, moved or removed.
    pub fn is_pure(&self) -> bool {
        self.class() == OpClass::Pure
    }

    /// A load or store that a sub-group makes as one block.
    pub fn is_block(&self) -> bool {
        matches!(
            self,
            OpKind::Load {
                cache: CacheUse::Block,
                ..
            } | OpKind::Store {
                cache: CacheUse::Block,
                ..
            }
        )
    }

    /// The mask that names who takes part, of an operation that has one.
    pub fn mask(&self) -> Option<Value> {
        match self.effects().meets {
            Meets::SubGroup(mask) => mask,
            _ => None,
        }
    }

    /// The operation with a rule: as it is if that is [`FloatRule::EXACT`].
    #[must_use]
    pub fn ruled(self, rule: FloatRule) -> OpKind {
        match rule {
            FloatRule::EXACT => self,
            _ => OpKind::Ruled(rule, Box::new(self)),
        }
    }

    /// The operation without its rule.
    pub fn plain(&self) -> &OpKind {
        match self {
            OpKind::Ruled(_, plain) => plain,
            other => other,
        }
    }

    /// Its rule; that of operations which have none is [`FloatRule::EXACT`].
    pub fn rule(&self) -> FloatRule {
        match self {
            OpKind::Ruled(rule, _) => *rule,
            _ => FloatRule::EXACT,
        }
    }

    /// The bits of a float operation's result with this rule, if all its operands are constants. None for results that devices
    /// decide: approximations, and products and sums that may be fused.
    pub(crate) fn folded(&self, rule: FloatRule, kernel: &Kernel, result: Type) -> Option<u64> {
        let is_open = match self {
            OpKind::Unary(op, _) => op.is_approximation(),
            OpKind::Binary(op, ..) => op.is_approximation(),
            _ => false,
        };
        let mut known = !is_open && !rule.contract;
        self.for_each_operand(|value| known &= kernel.as_constant(value).is_some());
        let bits = |value| kernel.as_constant(value).unwrap_or_default();
        known.then(|| eval::ruled::ruled(rule, self, result, |value| kernel.ty(value), bits))?
    }

    /// Calls `visit` on each operand of this operation itself; regions inside are not entered.
    pub fn for_each_operand(&self, mut visit: impl FnMut(Value)) {
        match self {
            // Its parameters are defined here, not used.
            OpKind::Loop { initial, .. } => initial.visit(&mut visit),
            other => other.visit_fields(&mut visit),
        }
    }

    /// The same operation with its regions emptied, so that copying it is cheap.
    pub(crate) fn without_regions(&self) -> OpKind {
        match self {
            OpKind::Block { label, .. } => OpKind::Block {
                label: *label,
                body: Region::default(),
            },
            OpKind::If { label, cond, .. } => OpKind::If {
                label: *label,
                cond: *cond,
                then: Region::default(),
                otherwise: Region::default(),
            },
            OpKind::Loop {
                label,
                params,
                initial,
                wishes,
                ..
            } => OpKind::Loop {
                label: *label,
                params: params.clone(),
                initial: initial.clone(),
                body: Region::default(),
                wishes: wishes.clone(),
            },
            other => other.clone(),
        }
    }

    /// Replaces each operand of this operation itself; regions inside are not entered.
    pub fn map_operands(&mut self, mut map: impl FnMut(Value) -> Value) {
        match self {
            OpKind::Loop { initial, .. } => initial.map(&mut map),
            other => other.map_fields(&mut map),
        }
    }

    /// The regions inside, in the order they are written.
    pub fn regions(&self) -> impl Iterator<Item = &Region> {
        let (first, second) = match self {
            OpKind::Block { body, .. } | OpKind::Loop { body, .. } => (Some(body), None),
            OpKind::If { then, otherwise, .. } => (Some(then), Some(otherwise)),
            _ => (None, None),
        };
        first.into_iter().chain(second)
    }

    /// The regions inside, to be changed.
    pub fn regions_mut(&mut self) -> impl Iterator<Item = &mut Region> {
        let (first, second) = match self {
            OpKind::Block { body, .. } | OpKind::Loop { body, .. } => (Some(body), None),
            OpKind::If { then, otherwise, .. } => (Some(then), Some(otherwise)),
            _ => (None, None),
        };
        first.into_iter().chain(second)
    }

    /// The label a block, `if` or loop introduces.
    pub fn label(&self) -> Option<Label> {
        match self {
            OpKind::Block { label, .. } | OpKind::If { label, .. } | OpKind::Loop { label, .. } => {
                Some(*label)
            }
            _ => None,
        }
    }
}
