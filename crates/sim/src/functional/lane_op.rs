//! Operations on registers: the IR's operations with places for their values.

use std::mem;

use super::carried::Carried;
use super::lanes::Slot;
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
    /// The register with the mask of those who take part, of an operation that has one.
    pub party: Option<Slot>,
    /// How it rounds and flushes, if it computes with floats.
    pub rule: FloatRule,
    /// Where it was written.
    pub place: Place,
}

/// An operation of the IR that is brought to the engine's form: what its fields are made with.
struct Source<'s> {
    kernel: &'s Kernel,
    op: &'s Op,
    slot: &'s mut dyn FnMut(Value) -> Slot,
}

impl Source<'_> {
    fn ty(&self, value: Value) -> Type {
        self.kernel.ty(value)
    }

    /// The type of the first of these, or else of the first result.
    fn type_of(&self, values: &[Value]) -> Type {
        let first = values.iter().chain(&self.op.results).next();
        first.map_or(Type::Bool, |&value| self.ty(value))
    }

    fn space(&self, pointer: Value) -> Space {
        self.ty(pointer).space().unwrap_or(Space::Global)
    }

    /// What is accessed at a pointer; `values` are those that are stored.
    fn memory(&mut self, pointer: Value, values: &[Value], cache: CacheUse) -> AccessedMemory {
        AccessedMemory {
            ty: self.type_of(values),
            space: self.space(pointer),
            ptr: (self.slot)(pointer),
            block: cache == CacheUse::Block,
            volatile: cache == CacheUse::Volatile,
        }
    }

    fn typed(&mut self, values: &[Value]) -> Box<[(Type, Slot)]> {
        let typed = |&value| (self.kernel.ty(value), (self.slot)(value));
        values.iter().map(typed).collect()
    }
}

/// A field of an operation: made of one of the IR's, with slots in it or none.
trait Lowered<From: ?Sized>: Sized {
    /// From the field of the IR's operation; results are made of all of them.
    fn lowered(from: &From, source: &mut Source<'_>) -> Self;
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

impl Lowered<Value> for Slot {
    fn lowered(from: &Value, source: &mut Source<'_>) -> Slot {
        (source.slot)(*from)
    }
}

impl Lowered<[Value]> for Slot {
    fn lowered(from: &[Value], source: &mut Source<'_>) -> Slot {
        from.first().map_or(Slot(0), |&value| (source.slot)(value))
    }
}

impl Slots for Option<Slot> {
    fn map(&mut self, map: &mut dyn FnMut(&mut Slot)) {
        self.iter_mut().for_each(map);
    }
}

impl Lowered<Option<Value>> for Option<Slot> {
    fn lowered(from: &Option<Value>, source: &mut Source<'_>) -> Option<Slot> {
        from.map(&mut source.slot)
    }
}

impl Slots for SlotList {
    fn map(&mut self, map: &mut dyn FnMut(&mut Slot)) {
        self.slots[..usize::from(self.length)].iter_mut().for_each(map);
    }
}

impl Lowered<[Value]> for SlotList {
    fn lowered(from: &[Value], source: &mut Source<'_>) -> SlotList {
        let mut list = SlotList {
            slots: [Slot(0); 4],
            length: 0,
        };
        for (place, &value) in list.slots.iter_mut().zip(from) {
            *place = (source.slot)(value);
            list.length += 1;
        }
        list
    }
}

impl Slots for Box<[Slot]> {
    fn map(&mut self, map: &mut dyn FnMut(&mut Slot)) {
        self.iter_mut().for_each(map);
    }
}

impl Lowered<[Value]> for Box<[Slot]> {
    fn lowered(from: &[Value], source: &mut Source<'_>) -> Box<[Slot]> {
        from.iter().map(|&value| (source.slot)(value)).collect()
    }
}

impl Slots for Box<[(Type, Slot)]> {
    fn map(&mut self, map: &mut dyn FnMut(&mut Slot)) {
        self.iter_mut().for_each(|(_, slot)| map(slot));
    }
}

/// Of several values, as of a slice of them.
impl<T: Lowered<[Value]>> Lowered<Vec<Value>> for T {
    fn lowered(from: &Vec<Value>, source: &mut Source<'_>) -> T {
        T::lowered(from.as_slice(), source)
    }
}

/// The memory that a load or store accesses, and how.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AccessedMemory {
    /// The type of each element.
    pub ty: Type,
    /// The space of the pointer.
    pub space: Space,
    /// The slot of the pointer to the first element.
    pub ptr: Slot,
    /// Whether the sub-group makes it as one block.
    pub(super) block: bool,
    /// Whether it is volatile.
    pub(super) volatile: bool,
}

impl AccessedMemory {
    /// Bytes of these values.
    pub(crate) fn bytes(&self, values: &SlotList) -> u32 {
        self.ty.bytes() * values.length()
    }
}

impl Slots for AccessedMemory {
    fn map(&mut self, map: &mut dyn FnMut(&mut Slot)) {
        self.ptr.map(map);
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

/// Fields without slots, the same in both forms.
macro_rules! no_slots {
    ($($ty:ty),+ $(,)?) => {
        $(
            impl Slots for $ty {}

            impl Lowered<$ty> for $ty {
                fn lowered(from: &$ty, _source: &mut Source<'_>) -> $ty {
                    *from
                }
            }
        )+
    };
}

impl Slots for Box<Carried> {}
impl Slots for Box<str> {}

no_slots!(
    Array,
    AtomicOp,
    BinaryOp,
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

/// Declares the operations: a row has the operation of the IR, a name, where the result goes, if there is one, and the other
/// fields. A field is made of the IR's field of the same name, or as the row says. The first row has the IR's operations that are
/// none on registers; one that is in no row does not compile. From
///
/// ```text
/// OpKind::Fma(a, b, c) => Fma [to: Slot] { ty: Type = from.ty(*a), a: Slot, b: Slot, c: Slot };
/// OpKind::Wait(token) => Wait [] { token: Slot };
/// ```
///
/// come the variants `Fma { to: Slot, ty: Type, … }` and `Wait { token: Slot }`, their making from the IR's operations, the walk
/// over all slots, results first, and that over the results.
macro_rules! lane_operations {
    (
        $(#[$meta:meta])*
        pub enum $name:ident of $from:ident {
            $other:pat => none;
            $(
                $source:pat => $variant:ident [$($to:ident : $result:ty)?] {
                    $($(#[$doc:meta])* $field:ident : $ty:ty $(= $made:expr)?),* $(,)?
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
            /// What does the same as an operation of the IR; none for those that are no operations on registers.
            fn of($from: &mut Source<'_>) -> Option<$name> {
                Some(match $from.op.kind.plain() {
                    $(
                        $source => $name::$variant {
                            $($to: Lowered::lowered($from.op.results.as_slice(), $from),)?
                            $($field: lowered!($from, $field $(, $made)?)),*
                        },
                    )+
                    $other => return None,
                })
            }

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

/// A field of a [`LaneOpKind`]: as the row says, or of the IR's field of this name.
macro_rules! lowered {
    ($from:ident, $field:ident) => {
        Lowered::lowered($field, $from)
    };
    ($from:ident, $field:ident, $made:expr) => {
        $made
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
    pub enum LaneOpKind of from {
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
            | OpKind::Trap => none;
        OpKind::Id(id) => Id [to: Slot] { id: Id };
        OpKind::ArrayAddress(array) => ArrayAddress [to: Slot] { array: Array };
        OpKind::Unary(op, a) => Unary [to: Slot] { op: UnaryOp, ty: Type = from.ty(*a), a: Slot };
        OpKind::Binary(op, a, b) => Binary [to: Slot] { op: BinaryOp, ty: Type = from.ty(*a), a: Slot, b: Slot };
        OpKind::NoWrap(op, wrap, a, b) => NoWrap [to: Slot] {
            op: NoWrapOp, wrap: Wrap, ty: Type = from.ty(*a), a: Slot, b: Slot,
        };
        OpKind::Fma(a, b, c) => Fma [to: Slot] { ty: Type = from.ty(*a), a: Slot, b: Slot, c: Slot };
        OpKind::Compare(op, a, b) => Compare [to: Slot] { op: CompareOp, ty: Type = from.ty(*a), a: Slot, b: Slot };
        OpKind::Select(cond, a, b) => Select [to: Slot] { cond: Slot, a: Slot, b: Slot };
        OpKind::Convert(op, a) => Convert [to: Slot] {
            op: ConvertOp, from: Type = from.ty(*a), into: Type = from.type_of(&[]), a: Slot,
        };
        OpKind::Address { base, index, scale, offset } => Address [to: Slot] {
            base: Slot, index: Slot, scale: u32, offset: i64,
        };
        OpKind::Load { ptr, id, cache } => Load [to: SlotList] {
            memory: AccessedMemory = from.memory(*ptr, &[], *cache), id: LoadId,
        };
        OpKind::Store { ptr, values, cache } => Store [] {
            values: SlotList,
            memory: AccessedMemory = from.memory(*ptr, values, *cache),
        };
        OpKind::Copy { to: target, from: source, bytes, id } => Copy [to: Slot] {
            target: Slot, source: Slot, bytes: u32, id: LoadId,
        };
        OpKind::Join(tokens) => Join [to: Slot] { tokens: Box<[Slot]> };
        OpKind::Wait(token) => Wait [] { token: Slot };
        OpKind::Prefetch { ptr, bytes, count, hint, scope, id, .. } => Prefetch [] {
            ptr: Slot, bytes: u32, count: Option<Slot>, space: Space = from.space(*ptr), level: CacheLevel = hint.level,
            scope: PrefetchScope, id: Option<LoadId>,
        };
        OpKind::Atomic { op, ptr, values, order, scope } => Atomic [to: SlotList] {
            op: AtomicOp, ty: Type = from.type_of(values), space: Space = from.space(*ptr), ptr: Slot, values: SlotList,
            order: MemoryOrder, scope: MemoryScope = scope.on_device(),
        };
        OpKind::Fence(order, scope) => Fence [] { order: MemoryOrder, scope: MemoryScope = scope.on_device() };
        OpKind::Shuffle { op, value, by, .. } => Shuffle [to: Slot] {
            op: ShuffleOp, ty: Type = from.ty(*value), value: Slot, by: Slot,
        };
        OpKind::Vote(op, value, _) => Vote [to: Slot] { op: VoteOp, value: Slot };
        OpKind::Reduce(op, value, _) => Reduce [to: Slot] { op: ReduceOp, value: Slot };
        OpKind::GroupVote(op, value) => GroupVote [to: Slot] { op: GroupVoteOp, value: Slot };
        OpKind::Active => Active [to: Slot] {};
        OpKind::Meet(Meeting::SubGroup(_)) => MeetSubGroup [] {};
        OpKind::Print { text, values } => Print [] {
            text: Box<str> = text.as_str().into(), values: Box<[(Type, Slot)]> = from.typed(values),
        };
        OpKind::Opaque(what, given) => Opaque [to: Box<[Slot]>] {
            what: Box<Carried> = Box::new(Carried::new(from.kernel, what, &given.0)),
            values: Box<[(Type, Slot)]> = from.typed(&given.0),
        };
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
    pub(crate) fn length(&self) -> u32 {
        u32::from(self.length)
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
            LaneOpKind::Load { to, memory, .. } => (memory.space, memory.ptr, memory.bytes(to), false),
            LaneOpKind::Store { values, memory, .. } => {
                (memory.space, memory.ptr, memory.bytes(values), true)
            }
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
        let slot = &mut slot;
        let mut source = Source { kernel, op, slot };
        Some(LaneOp {
            kind: LaneOpKind::of(&mut source)?,
            party: op.kind.mask().map(slot),
            // Whether something may be fused is for the back ends.
            rule: op.kind.rule().uncontracted(),
            place: op.place,
        })
    }

    /// Whether lanes of one party may have come to these two: PTX asks for the same kind, on values of the same size.
    pub(super) fn joins(&self, other: &LaneOp) -> bool {
        let kind = |op: &LaneOp| {
            let (mut kind, mut bytes) = (op.kind.clone(), 0);
            kind.map_slots(&mut |slot| *slot = Slot(0));
            if let LaneOpKind::Shuffle { ty, .. } = &mut kind {
                bytes = mem::replace(ty, Type::Bool).bytes();
            }
            (kind, bytes)
        };
        kind(self) == kind(other)
    }

    /// The registers that it writes.
    pub fn results(&self) -> &[Slot] {
        self.kind.results()
    }

    /// Calls `map` on each slot that the operation reads or writes.
    pub(crate) fn map_slots(&mut self, mut map: impl FnMut(&mut Slot)) {
        self.kind.map_slots(&mut map);
        self.party.iter_mut().for_each(map);
    }
}
