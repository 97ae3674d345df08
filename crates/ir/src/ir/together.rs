//! Operations between work-items: atomics, memory orders and scopes, exchanges in a sub-group.

use super::arithmetic::BinaryOp;
use super::table::words;
use super::types::Type;

words! {
    /// The change that an [`Atomic`](super::OpKind::Atomic) operation makes to the value in memory. All but `Store` return the
    /// old value.
    pub enum AtomicOp: "an atomic operation" {
        /// Leaves it. No operand; integers and floats.
        Load = "load",
        /// Becomes the operand. No result; integers and floats.
        Store = "store",
        /// Becomes the operand; integers and floats.
        Exchange = "exchange",
        /// Becomes the second operand if it was the first; integers.
        CompareExchange = "compare_exchange",
        /// Integer, wrapping.
        Add = "add",
        /// Integer, wrapping.
        Sub = "sub",
        /// Integer.
        And = "and",
        /// Integer.
        Or = "or",
        /// Integer.
        Xor = "xor",
        /// Integer, signed.
        MinS = "min.s",
        /// Integer, unsigned.
        MinU = "min.u",
        /// Integer, signed.
        MaxS = "max.s",
        /// Integer, unsigned.
        MaxU = "max.u",
        /// Float, rounded to nearest even. Of `F32` in global memory a device may take subnormals as zero, and which
        /// NaN it makes is its own affair.
        FAdd = "fadd",
        /// `I32`: two `F16`, each as `FAdd`, one after the other.
        FAddHalves = "fadd.f16x2",
        /// `I32`: two `Bf16`, each as `FAdd`, one after the other.
        FAddBrainHalves = "fadd.bf16x2",
        /// Integer, unsigned: one more, or 0 from the operand on.
        IncrementU = "increment.u",
        /// Integer, unsigned: one less; the operand if that is less, or instead of less than 0.
        DecrementU = "decrement.u",
    }
}

words! {
    /// The combination of a sub-group's values in a [`Reduce`](super::OpKind::Reduce).
    pub enum ReduceOp: "a kind of reduction" {
        /// Their sum, wrapping.
        Add = "add",
        /// Bits that all have.
        And = "and",
        /// Bits that any has.
        Or = "or",
        /// Bits that an odd number of them have.
        Xor = "xor",
        /// The least, as signed numbers.
        MinS = "min.s",
        /// The least, as unsigned numbers.
        MinU = "min.u",
        /// The greatest, as signed numbers.
        MaxS = "max.s",
        /// The greatest, as unsigned numbers.
        MaxU = "max.u",
    }
}

words! {
    /// The result of a [`GroupVote`](super::OpKind::GroupVote) of the work-group.
    pub enum GroupVoteOp: "a kind of vote" {
        /// Whether it holds for one of them. A `Bool`.
        Any = "any",
        /// Whether it holds for all of them. A `Bool`.
        All = "all",
        /// For how many it holds. An `I32`.
        Count = "count",
    }
}

words! {
    /// How an atomic operation or fence orders the accesses around it.
    pub enum MemoryOrder: "a memory order" {
        /// Not at all.
        Relaxed = "relaxed",
        /// Later accesses stay after it.
        Acquire = "acquire",
        /// Earlier accesses stay before it.
        Release = "release",
        /// Both.
        AcquireRelease = "acq_rel",
        /// Both, and all such operations are in one order for everybody.
        SequentiallyConsistent = "seq_cst",
    }
}

words! {
    /// Among which work-items an atomic operation or fence holds.
    pub enum MemoryScope: "a memory scope" {
        /// Of the same sub-group.
        SubGroup = "sub_group",
        /// Of the same work-group.
        WorkGroup = "work_group",
        /// Of the device.
        Device = "device",
        /// Of the device, the host and other devices.
        System = "system",
    }
}

words! {
    /// From which work-item of the sub-group a [`Shuffle`](super::OpKind::Shuffle) takes the value. Its own where
    /// there is none of that number.
    pub enum ShuffleOp: "a kind of shuffle" {
        /// The one with this number.
        Index = "index",
        /// The one this many below.
        Up = "up",
        /// The one this many above.
        Down = "down",
        /// The one whose number has these bits flipped.
        Xor = "xor",
    }
}

words! {
    /// The result of a [`Vote`](super::OpKind::Vote) of the sub-group.
    pub enum VoteOp: "a kind of vote" {
        /// Whether it holds for one of them. A `Bool`.
        Any = "any",
        /// Whether it holds for all of them. A `Bool`.
        All = "all",
        /// A bit for each of them, the first one's lowest. An `I32`.
        Ballot = "ballot",
    }
}

impl AtomicOp {
    /// How many operands it takes beside the pointer.
    pub fn operands(self) -> usize {
        match self {
            AtomicOp::Load => 0,
            AtomicOp::CompareExchange => 2,
            _ => 1,
        }
    }

    /// Whether one can be of several consecutive values, each an operation of its own.
    pub fn can_be_several(self) -> bool {
        matches!(
            self,
            AtomicOp::Load
                | AtomicOp::Store
                | AtomicOp::FAdd
                | AtomicOp::FAddHalves
                | AtomicOp::FAddBrainHalves
        )
    }

    /// Whether it may change memory.
    pub fn writes(self) -> bool {
        self != AtomicOp::Load
    }

    /// Whether it returns the old value.
    pub fn has_result(self) -> bool {
        self != AtomicOp::Store
    }

    /// Whether several of them leave the same in memory in any order: integer arithmetic does.
    pub fn commutes(self) -> bool {
        !matches!(
            self,
            AtomicOp::Store
                | AtomicOp::Exchange
                | AtomicOp::CompareExchange
                | AtomicOp::FAdd
                | AtomicOp::FAddHalves
                | AtomicOp::FAddBrainHalves
                | AtomicOp::IncrementU
                | AtomicOp::DecrementU
        )
    }

    /// Whether it takes values of this type: 32 or 64 bits; sums of floats also of 16.
    pub fn takes(self, ty: Type) -> bool {
        let integer = matches!(ty, Type::I32 | Type::I64);
        let float = matches!(ty, Type::F32 | Type::F64);
        match self {
            AtomicOp::Load | AtomicOp::Store | AtomicOp::Exchange => integer || float,
            AtomicOp::FAdd => ty.is_float(),
            AtomicOp::FAddHalves | AtomicOp::FAddBrainHalves => ty == Type::I32,
            _ => integer,
        }
    }

    /// Whether it can have this order: a load releases nothing, a store acquires nothing.
    pub fn can_be(self, order: MemoryOrder) -> bool {
        match self {
            AtomicOp::Load => !matches!(order, MemoryOrder::Release | MemoryOrder::AcquireRelease),
            AtomicOp::Store => !matches!(order, MemoryOrder::Acquire | MemoryOrder::AcquireRelease),
            _ => true,
        }
    }
}

impl MemoryOrder {
    /// Whether later accesses stay after it.
    pub fn acquires(self) -> bool {
        !matches!(self, MemoryOrder::Relaxed | MemoryOrder::Release)
    }

    /// Whether earlier accesses stay before it.
    pub fn releases(self) -> bool {
        !matches!(self, MemoryOrder::Relaxed | MemoryOrder::Acquire)
    }
}

impl MemoryScope {
    /// Whether work-items of other work-groups are among them.
    pub fn is_wide(self) -> bool {
        self >= MemoryScope::Device
    }

    /// The same if only the device takes part.
    #[must_use]
    pub fn on_device(self) -> MemoryScope {
        self.min(MemoryScope::Device)
    }
}

impl ShuffleOp {
    /// The number of the work-item that provides the value for work-item `lane` of a sub-group of `size`; its own if there is
    /// none of that number.
    pub fn source(self, lane: u32, by: u32, size: u32) -> u32 {
        let source = match self {
            ShuffleOp::Index => Some(by),
            ShuffleOp::Up => lane.checked_sub(by),
            ShuffleOp::Down => lane.checked_add(by),
            ShuffleOp::Xor => Some(lane ^ by),
        };
        source.filter(|&source| source < size).unwrap_or(lane)
    }
}

impl ReduceOp {
    /// The operation on two values.
    pub fn binary(self) -> BinaryOp {
        match self {
            ReduceOp::Add => BinaryOp::Add,
            ReduceOp::And => BinaryOp::And,
            ReduceOp::Or => BinaryOp::Or,
            ReduceOp::Xor => BinaryOp::Xor,
            ReduceOp::MinS => BinaryOp::MinS,
            ReduceOp::MinU => BinaryOp::MinU,
            ReduceOp::MaxS => BinaryOp::MaxS,
            ReduceOp::MaxU => BinaryOp::MaxU,
        }
    }
}

impl GroupVoteOp {
    /// Its result type.
    pub(crate) fn result(self) -> Type {
        match self {
            GroupVoteOp::Any | GroupVoteOp::All => Type::Bool,
            GroupVoteOp::Count => Type::I32,
        }
    }

    /// Its result if it holds for this many of this many.
    pub fn of(self, holding: u32, all: u32) -> u64 {
        match self {
            GroupVoteOp::Any => u64::from(holding > 0),
            GroupVoteOp::All => u64::from(holding == all),
            GroupVoteOp::Count => u64::from(holding),
        }
    }
}

impl VoteOp {
    /// Its result type.
    pub(crate) fn result(self) -> Type {
        match self {
            VoteOp::Any | VoteOp::All => Type::Bool,
            VoteOp::Ballot => Type::I32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shuffle_from_nobody_gives_its_own() {
        assert_eq!(ShuffleOp::Up.source(3, 4, 32), 3);
        assert_eq!(ShuffleOp::Up.source(3, 3, 32), 0);
        assert_eq!(ShuffleOp::Down.source(30, 2, 32), 30);
        assert_eq!(ShuffleOp::Down.source(19, 1, 20), 19);
        assert_eq!(ShuffleOp::Xor.source(5, 1, 8), 4);
        assert_eq!(ShuffleOp::Xor.source(5, 8, 8), 5);
        assert_eq!(ShuffleOp::Index.source(5, 7, 8), 7);
        assert_eq!(ShuffleOp::Index.source(5, u32::MAX, 8), 5);
        assert_eq!(ShuffleOp::Down.source(5, u32::MAX, 8), 5);
    }

    #[test]
    fn orders() {
        use MemoryOrder::*;
        assert!(Acquire.acquires() && !Acquire.releases());
        assert!(Release.releases() && !Release.acquires());
        assert!(AcquireRelease.acquires() && SequentiallyConsistent.releases());
        assert!(!AtomicOp::Load.can_be(Release) && !AtomicOp::Store.can_be(AcquireRelease));
        assert!(AtomicOp::Load.can_be(SequentiallyConsistent));
    }
}
