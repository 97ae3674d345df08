//! What operations do besides computing results: which work-items they meet; what they order, read, write and wait for.
//!
//! Each row of the table (`table.rs`) states its effects, and passes ask for them with
//! [`OpKind::effects`](super::OpKind::effects). So they need no lists of operations, and an operation that is added later is
//! treated as what it does:
//!
//! ```text
//! store %p, %x            writes: At(%p)
//! atomic add acq_rel device %p, %x      reads and writes: At(%p), access: Atomic, orders: acquire and release, for the device
//! barrier                 meets: WorkGroup, orders: acquire and release, for the work-group
//! vote any %c among %m    meets: SubGroup(%m), results: Joint
//! ```

use super::hint::CacheUse;
use super::kernel::Value;
use super::together::{AtomicOp, MemoryOrder, MemoryScope};

/// What an operation does itself; the regions inside are not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effects {
    /// The work-items that it waits for, or exchanges values with.
    pub meets: Meets,
    /// The accesses around it that it keeps in order, and between which work-items; none if it orders nothing.
    pub orders: Option<(MemoryOrder, MemoryScope)>,
    /// The memory that it may read.
    pub reads: Memory,
    /// The memory that it may write.
    pub writes: Memory,
    /// The memory that it asks the caches to fetch.
    pub(crate) requests: Memory,
    /// Whether other work-items may access the same memory at the same time.
    pub access: Access,
    /// What it waits for, besides the work-items that it meets.
    pub(crate) awaits: Awaits,
    /// Whether the work-item may end here.
    pub ends: bool,
    /// Whether it does something else that can be observed: it writes text, or tells the device something.
    pub shows: bool,
    /// What its results depend on.
    pub results: Results,
}

/// The work-items that wait here for each other, or exchange values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meets {
    /// None.
    None,
    /// Those of the sub-group that the mask names; all of it if there is none.
    SubGroup(Option<Value>),
    /// Those of the work-group: all, or those of several sub-groups.
    WorkGroup,
    /// Those of the sub-group or of the work-group: it is unknown which.
    Any,
}

/// A part of the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// None.
    None,
    /// Where this pointer leads.
    At(Value),
    /// Shared memory.
    Shared,
    /// All that the kernel can reach.
    Any,
}

/// How an access relates to those of other work-items to the same memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// There are none unless something orders them.
    Plain,
    /// There may be others. It takes place even if its result is unused.
    Volatile,
    /// There may be others, and each takes place as a whole.
    Atomic,
}

/// What an operation waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Awaits {
    /// Nothing.
    Nothing,
    /// Asynchronous copies of the work-item.
    Copies,
    /// The launch before.
    Launch,
    /// Something unknown.
    Anything,
}

/// What an operation's results depend on, besides the memory that it reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Results {
    /// The operands of the work-item itself.
    Own,
    /// The operands of all that meet: they get the same results.
    Joint,
    /// Anything: they may differ where all operands are the same.
    Any,
}

impl Effects {
    /// No effect: the results follow from the operands.
    pub(crate) const NONE: Effects = Effects {
        meets: Meets::None,
        orders: None,
        reads: Memory::None,
        writes: Memory::None,
        requests: Memory::None,
        access: Access::Plain,
        awaits: Awaits::Nothing,
        ends: false,
        shows: false,
        results: Results::Own,
    };

    /// The effects of a statement of which nothing is known: it may read and write all memory, meet all work-items, order all
    /// accesses, wait for anything, and not return.
    pub(crate) const fn worst() -> Effects {
        Effects {
            meets: Meets::Any,
            orders: Some((MemoryOrder::SequentiallyConsistent, MemoryScope::System)),
            reads: Memory::Any,
            writes: Memory::Any,
            requests: Memory::Any,
            access: Access::Volatile,
            awaits: Awaits::Anything,
            ends: true,
            shows: true,
            results: Results::Any,
        }
    }

    /// Of a load.
    pub(super) fn load(pointer: Value, cache: CacheUse) -> Effects {
        Effects {
            reads: Memory::At(pointer),
            access: Access::of(cache),
            results: Results::Any,
            ..Effects::NONE
        }
    }

    /// Of a store.
    pub(super) fn store(pointer: Value, cache: CacheUse) -> Effects {
        Effects {
            writes: Memory::At(pointer),
            access: Access::of(cache),
            ..Effects::NONE
        }
    }

    /// Of an atomic operation.
    pub(super) fn atomic(op: AtomicOp, pointer: Value, order: MemoryOrder, scope: MemoryScope) -> Effects {
        let at = |is: bool| if is { Memory::At(pointer) } else { Memory::None };
        Effects {
            reads: at(op.has_result()),
            writes: at(op.writes()),
            access: Access::Atomic,
            orders: (order != MemoryOrder::Relaxed).then_some((order, scope)),
            results: Results::Any,
            ..Effects::NONE
        }
    }

    /// Of an exchange of values, which orders no memory.
    pub(super) fn exchange(mask: Option<Value>, results: Results) -> Effects {
        Effects {
            meets: Meets::SubGroup(mask),
            results,
            ..Effects::NONE
        }
    }

    /// Of a barrier of these work-items, between which it orders memory.
    pub(super) fn barrier(meets: Meets) -> Effects {
        let scope = match meets {
            Meets::SubGroup(_) => MemoryScope::SubGroup,
            _ => MemoryScope::WorkGroup,
        };
        Effects {
            meets,
            orders: Some((MemoryOrder::AcquireRelease, scope)),
            results: Results::Joint,
            ..Effects::NONE
        }
    }

    /// Whether work-items do it together.
    pub fn meets(&self) -> bool {
        self.meets != Meets::None
    }

    /// Whether work-items of a sub-group do it together: it stays where it is among the others of its kind, and goes into no
    /// branch and out of none.
    pub fn meets_sub_group(&self) -> bool {
        matches!(self.meets, Meets::SubGroup(_) | Meets::Any)
    }

    /// Whether it waits for other sub-groups of the work-group.
    pub fn meets_work_group(&self) -> bool {
        matches!(self.meets, Meets::WorkGroup | Meets::Any)
    }

    /// Whether the work-items that meet see each other's earlier writes.
    pub fn is_barrier(&self) -> bool {
        self.meets() && self.orders.is_some()
    }

    /// Whether others' releases before it are visible behind it.
    pub(crate) fn acquires(&self) -> bool {
        self.orders.is_some_and(|(order, _)| order.acquires())
    }

    /// Whether it reads what others may write at the same time.
    pub fn is_strong_read(&self) -> bool {
        self.reads != Memory::None && self.access != Access::Plain
    }

    /// Whether nothing changes if it runs once less: it does no more than read memory.
    pub(crate) fn is_removable(&self) -> bool {
        let reads = Memory::None;
        let results = Results::Own;
        Effects {
            reads,
            results,
            ..*self
        } == Effects::NONE
    }

    /// The pointers through which it accesses memory, or asks for it.
    pub fn pointers(self) -> impl Iterator<Item = Value> {
        let written = Some(self.writes).filter(|&writes| writes != self.reads);
        let all = [Some(self.reads), written, Some(self.requests)];
        all.into_iter().flatten().filter_map(|memory| match memory {
            Memory::At(pointer) => Some(pointer),
            _ => None,
        })
    }
}

impl Access {
    fn of(cache: CacheUse) -> Access {
        match cache {
            CacheUse::Volatile => Access::Volatile,
            _ => Access::Plain,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{OpClass, OpKind, Opaque, OpaqueOperands, parse, verify};

    /// The words of the operations of a kernel of each kind for which this holds, in the order of the text.
    fn those(is_such: impl Fn(&OpKind, Effects) -> bool) -> Vec<String> {
        let text = "hsir 1
            kernel @k(%p: ptr.global i32[] align 16) {
            load @p
            shared @s: i32[4] align 16
            %lane = id.lane
            %s = array @s
            %x = load i32 %p, @p
            %v = load i32 %p, @p volatile
            store %p, %x
            %t = copy 16 to %s from %p, @p
            %j = join %t
            wait %j
            prefetch L2 16 at %p
            %c = ne %x, 0:i32
            %g = groupvote any %c
            %o = vote any %c among %v
            %r = reduce add %x
            %h = shuffle index %x, %lane
            %m = active
            meet subgroup
            meet 1 of 2
            barrier
            %a = atomic add acq_rel device %p, %x
            %l = atomic load i32 relaxed device %p
            fence release device
            depend wait
            depend launch
            print \"done\"
            opaque \"nop\" nothing unordered alone settled () ()
            return
            }";
        let kernel = parse(text, "k.hsir").expect("a kernel");
        verify(&kernel).expect("it verifies");
        let found = kernel.body.ops.iter();
        let found = found.filter(|op| is_such(&op.kind, op.kind.effects()));
        found.map(|op| op.kind.word().to_owned()).collect()
    }

    #[test]
    fn operations_do_what_their_rows_state() {
        let meets = [
            "groupvote",
            "vote",
            "reduce",
            "shuffle",
            "active",
            "meet",
            "meet",
            "barrier",
        ];
        assert_eq!(those(|_, effects| effects.meets()), meets);
        assert_eq!(
            those(|_, effects| effects.meets_work_group()),
            ["groupvote", "meet", "barrier"]
        );
        assert_eq!(
            those(|_, effects| effects.is_barrier()),
            ["groupvote", "meet", "meet", "barrier"]
        );
        assert_eq!(
            those(|_, effects| effects.is_strong_read()),
            ["load", "atomic", "atomic"]
        );
        assert_eq!(
            those(|_, effects| effects.writes != Memory::None),
            ["store", "copy", "atomic"]
        );
        assert_eq!(those(|_, effects| effects.ends), ["return"]);
        let stay =
            |kind: &OpKind, effects: Effects| kind.class() == OpClass::Effect && effects.is_removable();
        assert_eq!(those(stay), ["load", "join"]);
        let accesses = those(|_, effects| effects.pointers().next().is_some());
        assert_eq!(
            accesses,
            ["load", "load", "store", "copy", "prefetch", "atomic", "atomic"]
        );
        assert_eq!(those(|kind, _| kind.mask().is_some()), ["vote"]);
    }

    #[test]
    fn an_unknown_instruction_has_the_worst_effects() {
        let effects = |change: &dyn Fn(&mut Opaque)| {
            let mut what = Opaque::unknown("nop".to_owned(), Vec::new());
            change(&mut what);
            OpKind::Opaque(what, OpaqueOperands::default()).effects()
        };
        let worst = Effects {
            ends: false,
            ..Effects::worst()
        };
        assert_eq!(effects(&|_| {}), worst);
        assert_eq!(effects(&|what| what.convergent = false).meets, Meets::None);
        assert_eq!(effects(&|what| what.orders = false).meets, Meets::SubGroup(None));
        assert!(!effects(&|what| what.orders = false).acquires());
        let reading = effects(&|what| what.touches = crate::ir::Touches::Reads);
        assert_eq!((reading.reads, reading.writes), (Memory::Any, Memory::None));
        assert!(!reading.is_strong_read() && !reading.is_removable());
    }
}
