//! Operations on registers: the IR's operations with places for their values.

use super::lanes::Slot;
use super::opaque::Carried;
use crate::ir::{
    Array, AtomicOp, BinaryOp, CacheLevel, CacheUse, CompareOp, ConvertOp, FloatRule, GroupVoteOp, Id,
    Kernel, LoadId, Meeting, MemoryOrder, MemoryScope, NoWrapOp, Op, OpKind, Place, PrefetchScope, ReduceOp,
    ShuffleOp, Space, Type, UnaryOp, Value, VoteOp, Wrap,
};

/// One operation of a sub-group. Control flow and barriers are not among them: who runs the operations
/// knows where to go on.
#[derive(Clone, Debug, PartialEq)]
pub struct LaneOp {
    /// Its operation and registers.
    pub kind: LaneOpKind,
    /// How it rounds and flushes, if it computes with floats.
    pub rule: FloatRule,
    /// Where it was written.
    pub place: Place,
}

/// Slots in a field of an operation, or none.
trait Slots {
    /// Calls `map` on each.
    fn map(&mut self, _map: &mut dyn FnMut(&mut Slot)) {}
}

impl Slots for Slot {
    fn map(&mut self, map: &mut dyn FnMut(&mut Slot)) {
        map(self);
    }
}

impl Slots for Option<Slot> {
    fn map(&mut self, map: &mut dyn FnMut(&mut Slot)) {
        self.iter_mut().for_each(map);
    }
}

impl Slots for SlotList {
    fn map(&mut self, map: &mut dyn FnMut(&mut Slot)) {
        self.slots[..usize::from(self.length)].iter_mut().for_each(map);
    }
}

impl Slots for Box<[Slot]> {
    fn map(&mut self, map: &mut dyn FnMut(&mut Slot)) {
        self.iter_mut().for_each(map);
    }
}

impl Slots for Box<[(Type, Slot)]> {
    fn map(&mut self, map: &mut dyn FnMut(&mut Slot)) {
        self.iter_mut().for_each(|(_, slot)| map(slot));
    }
}

/// The destination of results.
trait Written {
    /// Its slots.
    fn slots(&self) -> &[Slot];
}

impl Written for Slot {
    fn slots(&self) -> &[Slot] {
        std::slice::from_ref(self)
    }
}

impl Written for SlotList {
    fn slots(&self) -> &[Slot] {
        self.as_slice()
    }
}

impl Written for Box<[Slot]> {
    fn slots(&self) -> &[Slot] {
        self
    }
}

/// Fields without slots.
macro_rules! no_slots {
    ($($ty:ty),+ $(,)?) => { $(impl Slots for $ty {})+ };
}

no_slots!(
    Array,
    AtomicOp,
    BinaryOp,
    Box<Carried>,
    Box<str>,
    CacheLevel,
    CompareOp,
    ConvertOp,
    GroupVoteOp,
    Id,
    LoadId,
    MemoryOrder,
    MemoryScope,
    NoWrapOp,
    Option<LoadId>,
    PrefetchScope,
    ReduceOp,
    ShuffleOp,
    Space,
    Type,
    UnaryOp,
    VoteOp,
    Wrap,
    bool,
    i64,
    u32,
);

/// Declares the operations: a row has a name, where the result goes, if there is one, and the other fields. From
///
/// ```text
/// Fma [to: Slot] { ty: Type, a: Slot, b: Slot, c: Slot };
/// Wait [] { token: Slot };
/// ```
///
/// come the variants `Fma { to: Slot, ty: Type, … }` and `Wait { token: Slot }`, the walk over all slots, and that over
/// the results.
macro_rules! lane_operations {
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $(
                $variant:ident [$($to:ident : $result:ty)?] {
                    $($(#[$doc:meta])* $field:ident : $ty:ty),* $(,)?
                };
            )+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        pub enum $name {
            $($variant { $($to: $result,)? $($(#[$doc])* $field: $ty),* }),+
        }

        impl $name {
            /// Calls `map` on each slot that the operation reads or writes.
            fn map_slots(&mut self, map: &mut dyn FnMut(&mut Slot)) {
                match self {
                    $($name::$variant { $($to,)? $($field),* } => { $($to.map(map);)? $(Slots::map($field, map);)* })+
                }
            }

            /// The slots that it writes.
            fn results(&self) -> &[Slot] {
                match self {
                    $($name::$variant { $($to,)? .. } => written!($($to)?),)+
                }
            }
        }
    };
}

/// The slots that a result is.
macro_rules! written {
    () => {
        &[]
    };
    ($to:ident) => {
        Written::slots($to)
    };
}

lane_operations! {
    /// The operation of a [`LaneOp`]. `to` is the result's slot; types are those of the operands.
    #[expect(missing_docs, reason = "the fields are those of `OpKind`")]
    pub enum LaneOpKind {
        Id [to: Slot] { id: Id };
        ArrayAddress [to: Slot] { array: Array };
        Unary [to: Slot] { op: UnaryOp, ty: Type, a: Slot };
        Binary [to: Slot] { op: BinaryOp, ty: Type, a: Slot, b: Slot };
        NoWrap [to: Slot] { op: NoWrapOp, wrap: Wrap, ty: Type, a: Slot, b: Slot };
        Fma [to: Slot] { ty: Type, a: Slot, b: Slot, c: Slot };
        Compare [to: Slot] { op: CompareOp, ty: Type, a: Slot, b: Slot };
        Select [to: Slot] { cond: Slot, a: Slot, b: Slot };
        Convert [to: Slot] { op: ConvertOp, from: Type, into: Type, a: Slot };
        Address [to: Slot] { base: Slot, index: Slot, scale: u32, offset: i64 };
        Load [to: SlotList] {
            ty: Type,
            space: Space,
            ptr: Slot,
            id: LoadId,
            /// Whether the sub-group makes it as one block.
            block: bool,
            /// Whether it is volatile.
            volatile: bool,
        };
        Store [] {
            values: SlotList,
            ty: Type,
            space: Space,
            ptr: Slot,
            /// Whether the sub-group makes it as one block.
            block: bool,
            /// Whether it is volatile.
            volatile: bool,
        };
        Copy [to: Slot] { target: Slot, source: Slot, bytes: u32, id: LoadId };
        Join [to: Slot] { tokens: Box<[Slot]> };
        Wait [] { token: Slot };
        Prefetch [] {
            ptr: Slot, bytes: u32, count: Option<Slot>, space: Space, level: CacheLevel, scope: PrefetchScope,
            id: Option<LoadId>,
        };
        Atomic [to: SlotList] {
            op: AtomicOp, ty: Type, space: Space, ptr: Slot, values: SlotList, order: MemoryOrder, scope: MemoryScope,
        };
        Fence [] { order: MemoryOrder, scope: MemoryScope };
        Shuffle [to: Slot] { op: ShuffleOp, ty: Type, value: Slot, by: Slot, mask: Option<Slot> };
        Vote [to: Slot] { op: VoteOp, value: Slot, mask: Option<Slot> };
        Reduce [to: Slot] { op: ReduceOp, value: Slot, mask: Option<Slot> };
        GroupVote [to: Slot] { op: GroupVoteOp, value: Slot };
        Active [to: Slot] {};
        MeetSubGroup [] { mask: Option<Slot> };
        Print [] { text: Box<str>, values: Box<[(Type, Slot)]> };
        Opaque [to: Box<[Slot]>] { what: Box<Carried>, values: Box<[(Type, Slot)]> };
    }
}

/// One, two or four slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotList {
    slots: [Slot; 4],
    length: u8,
}

impl SlotList {
    /// The slots.
    pub fn as_slice(&self) -> &[Slot] {
        &self.slots[..usize::from(self.length)]
    }

    /// Number of slots.
    pub fn length(&self) -> u32 {
        u32::from(self.length)
    }

    /// The first four of these, or all.
    fn new(slots: impl Iterator<Item = Slot>) -> SlotList {
        let mut list = SlotList {
            slots: [Slot(0); 4],
            length: 0,
        };
        for (place, slot) in list.slots.iter_mut().zip(slots) {
            *place = slot;
            list.length += 1;
        }
        list
    }
}

/// The memory accesses of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Touches {
    pub space: Space,
    /// Each work-item's address.
    pub ptr: Slot,
    /// Bytes of each work-item.
    pub bytes: u32,
    pub writes: bool,
}

impl LaneOpKind {
    /// The visible memory that it reads or writes; of an asynchronous copy the source.
    pub(super) fn touches(&self) -> Option<Touches> {
        let (space, ptr, bytes, writes) = match self {
            LaneOpKind::Load {
                to, ty, space, ptr, ..
            } => (*space, *ptr, ty.bytes() * to.length(), false),
            LaneOpKind::Store {
                values,
                ty,
                space,
                ptr,
                ..
            } => (*space, *ptr, ty.bytes() * values.length(), true),
            LaneOpKind::Atomic {
                op, ty, space, ptr, ..
            } => (
                *space,
                *ptr,
                ty.bytes() * self.atomic_values(),
                *op != AtomicOp::Load,
            ),
            LaneOpKind::Copy { source, bytes, .. } => (Space::Global, *source, *bytes, false),
            _ => return None,
        };
        let is_seen = matches!(space, Space::Global | Space::Generic);
        is_seen.then_some(Touches {
            space,
            ptr,
            bytes,
            writes,
        })
    }

    /// How many consecutive values in memory an atomic operation reads or changes; 0 of others.
    pub(crate) fn atomic_values(&self) -> u32 {
        match self {
            LaneOpKind::Atomic { op, to, values, .. } if op.can_be_several() => {
                to.length().max(values.length())
            }
            LaneOpKind::Atomic { .. } => 1,
            _ => 0,
        }
    }

    /// The name of an operation that a sub-group, or a part of it, runs together.
    pub(super) fn of_sub_group(&self) -> &'static str {
        match self {
            LaneOpKind::Shuffle { .. } => "shuffle",
            LaneOpKind::Vote { .. } => "vote",
            LaneOpKind::Reduce { .. } => "reduction",
            _ => "sub-group barrier",
        }
    }
}

impl LaneOp {
    /// The operation on the slots that `slot` gives its operands and results. `None` for other operations: blocks, `if`s,
    /// loops, terminators and barriers.
    ///
    /// The kernel must be verified.
    pub fn new(kernel: &Kernel, op: &Op, mut slot: impl FnMut(Value) -> Slot) -> Option<LaneOp> {
        let to = op.results.first().map_or(Slot(0), |&value| slot(value));
        let into = op.results.first().map_or(Type::Bool, |&value| kernel.ty(value));
        let space = |ptr: Value| kernel.ty(ptr).space().unwrap_or(Space::Global);
        let kind = match op.kind.plain() {
            OpKind::Id(id) => LaneOpKind::Id { to, id: *id },
            OpKind::ArrayAddress(array) => LaneOpKind::ArrayAddress { to, array: *array },
            OpKind::Unary(unary, a) => LaneOpKind::Unary {
                op: *unary,
                ty: kernel.ty(*a),
                to,
                a: slot(*a),
            },
            OpKind::Binary(binary, a, b) => LaneOpKind::Binary {
                op: *binary,
                ty: kernel.ty(*a),
                to,
                a: slot(*a),
                b: slot(*b),
            },
            OpKind::NoWrap(no_wrap, wrap, a, b) => LaneOpKind::NoWrap {
                op: *no_wrap,
                wrap: *wrap,
                ty: kernel.ty(*a),
                to,
                a: slot(*a),
                b: slot(*b),
            },
            OpKind::Fma(a, b, c) => LaneOpKind::Fma {
                ty: into,
                to,
                a: slot(*a),
                b: slot(*b),
                c: slot(*c),
            },
            OpKind::Compare(compare, a, b) => LaneOpKind::Compare {
                op: *compare,
                ty: kernel.ty(*a),
                to,
                a: slot(*a),
                b: slot(*b),
            },
            OpKind::Select(cond, a, b) => LaneOpKind::Select {
                to,
                cond: slot(*cond),
                a: slot(*a),
                b: slot(*b),
            },
            OpKind::Convert(convert, a) => LaneOpKind::Convert {
                op: *convert,
                from: kernel.ty(*a),
                into,
                to,
                a: slot(*a),
            },
            OpKind::Address {
                base,
                index,
                scale,
                offset,
            } => LaneOpKind::Address {
                to,
                base: slot(*base),
                index: slot(*index),
                scale: *scale,
                offset: *offset,
            },
            OpKind::Load { ptr, id, cache } => LaneOpKind::Load {
                to: SlotList::new(op.results.iter().map(|&value| slot(value))),
                ty: into,
                space: space(*ptr),
                ptr: slot(*ptr),
                id: *id,
                block: *cache == CacheUse::Block,
                volatile: *cache == CacheUse::Volatile,
            },
            OpKind::Store { ptr, values, cache } => LaneOpKind::Store {
                values: SlotList::new(values.iter().map(|&value| slot(value))),
                ty: values.first().map_or(Type::Bool, |&value| kernel.ty(value)),
                space: space(*ptr),
                ptr: slot(*ptr),
                block: *cache == CacheUse::Block,
                volatile: *cache == CacheUse::Volatile,
            },
            OpKind::Copy {
                to: target,
                from,
                bytes,
                id,
            } => LaneOpKind::Copy {
                to,
                target: slot(*target),
                source: slot(*from),
                bytes: *bytes,
                id: *id,
            },
            OpKind::Join(tokens) => LaneOpKind::Join {
                to,
                tokens: tokens.iter().map(|&token| slot(token)).collect(),
            },
            OpKind::Wait(token) => LaneOpKind::Wait { token: slot(*token) },
            OpKind::Prefetch {
                ptr,
                bytes,
                count,
                hint,
                scope,
                id,
                ..
            } => LaneOpKind::Prefetch {
                ptr: slot(*ptr),
                bytes: *bytes,
                count: count.map(&mut slot),
                space: space(*ptr),
                level: hint.level,
                scope: *scope,
                id: *id,
            },
            OpKind::Atomic {
                op: atomic,
                ptr,
                values,
                order,
                scope,
            } => LaneOpKind::Atomic {
                op: *atomic,
                to: SlotList::new(op.results.iter().map(|&value| slot(value))),
                ty: values.first().map_or(into, |&value| kernel.ty(value)),
                space: space(*ptr),
                ptr: slot(*ptr),
                values: SlotList::new(values.iter().map(|&value| slot(value))),
                order: *order,
                scope: scope.on_device(),
            },
            OpKind::Fence(order, scope) => LaneOpKind::Fence {
                order: *order,
                scope: scope.on_device(),
            },
            OpKind::Shuffle {
                op: shuffle,
                value,
                by,
                mask,
            } => LaneOpKind::Shuffle {
                op: *shuffle,
                ty: into,
                to,
                value: slot(*value),
                by: slot(*by),
                mask: mask.map(slot),
            },
            OpKind::Vote(vote, value, mask) => LaneOpKind::Vote {
                op: *vote,
                to,
                value: slot(*value),
                mask: mask.map(slot),
            },
            OpKind::Reduce(reduce, value, mask) => LaneOpKind::Reduce {
                op: *reduce,
                to,
                value: slot(*value),
                mask: mask.map(slot),
            },
            OpKind::GroupVote(vote, value) => LaneOpKind::GroupVote {
                op: *vote,
                to,
                value: slot(*value),
            },
            OpKind::Active => LaneOpKind::Active { to },
            OpKind::Meet(Meeting::SubGroup(mask)) => LaneOpKind::MeetSubGroup { mask: mask.map(slot) },
            OpKind::Print { text, values } => LaneOpKind::Print {
                text: text.as_str().into(),
                values: values
                    .iter()
                    .map(|&value| (kernel.ty(value), slot(value)))
                    .collect(),
            },
            OpKind::Opaque(what, values) => LaneOpKind::Opaque {
                to: op.results.iter().map(|&value| slot(value)).collect(),
                what: Box::new(Carried::new(kernel, what, &values.0)),
                values: values
                    .0
                    .iter()
                    .map(|&value| (kernel.ty(value), slot(value)))
                    .collect(),
            },
            OpKind::Barrier
            | OpKind::Meet(Meeting::Named { .. })
            | OpKind::Block { .. }
            | OpKind::If { .. }
            | OpKind::Loop { .. }
            | OpKind::Break(..)
            | OpKind::Continue(..)
            | OpKind::Depend(_)
            | OpKind::Ruled(..)
            | OpKind::Return
            | OpKind::Trap => return None,
        };
        Some(LaneOp {
            // Whether something may be fused is for the back ends.
            rule: op.kind.rule().uncontracted(),
            kind,
            place: op.place,
        })
    }

    /// The register with the mask of those who take part, of an operation that has one.
    pub(crate) fn party(&self) -> Option<Slot> {
        match self.kind {
            LaneOpKind::Shuffle { mask, .. }
            | LaneOpKind::Vote { mask, .. }
            | LaneOpKind::Reduce { mask, .. }
            | LaneOpKind::MeetSubGroup { mask } => mask,
            _ => None,
        }
    }

    /// The registers that it writes.
    pub fn results(&self) -> &[Slot] {
        self.kind.results()
    }

    /// Calls `map` on each slot that the operation reads or writes.
    pub fn map_slots(&mut self, mut map: impl FnMut(&mut Slot)) {
        self.kind.map_slots(&mut map);
    }
}
