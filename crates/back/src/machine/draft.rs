//! Instructions in the making: virtual registers, moves that may still disappear, no addresses yet.

use cranelift_entity::{PrimaryMap, entity_impl};

use super::program::{Class, Control, Guard, InstructionStep, Share};
use crate::analysis::roots::Root;
use crate::ir::{Kernel, Place, Space};

/// A register before numbering.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Virtual(u32);
entity_impl!(Virtual, "x");

/// A virtual register's size in the register file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct VirtualData {
    /// 32-bit registers: 0 for predicates and for values in uniform registers.
    pub width: u8,
    /// It stands for a token, and orders instructions only before they are scheduled.
    pub is_token: bool,
}

/// An instruction in the making.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    /// Its unit.
    pub class: Class,
    /// Where the program goes on; indices of ends are filled in when the program is laid out.
    pub control: Control,
    /// Its computation.
    pub steps: Vec<InstructionStep>,
    /// For how many work-items it works.
    pub share: Share,
    /// On which lanes.
    pub guard: Option<Guard>,
    /// Registers that it writes.
    pub defines: Vec<Virtual>,
    /// Registers that it reads.
    pub uses: Vec<Virtual>,
    /// It only copies a register into another: not needed if the two can be one.
    pub move_: Option<Move>,
    /// Nothing is scheduled across it.
    pub fixed: bool,
    /// Its memory access.
    pub memory: Option<MemoryUse>,
    /// Bytes of code behind it that are never executed.
    pub never_taken: u32,
    /// A jump back that the conditional jump before it has done already.
    pub latched: bool,
    /// The offset in bytes of the spilled value that it stores or loads, in the work-item's frame.
    pub spilled_at: Option<u32>,
    /// Where it comes from.
    pub place: Place,
}

/// A copy of one register into another of the same width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Move {
    /// The register that is written.
    pub to: Virtual,
    /// The register that is read.
    pub from: Virtual,
}

/// An instruction's effect on memory, as far as order matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MemoryUse {
    /// The location that it reads, if any.
    pub reads: Option<Location>,
    /// The location that it writes, if any.
    pub writes: Option<Location>,
}

/// A part of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Location {
    /// Its space.
    pub space: Space,
    /// The object, if it is known.
    pub root: Option<Root>,
}

impl Location {
    /// Whether two accesses can meet, one of them a write.
    pub(crate) fn may_meet(self, other: Location, kernel: &Kernel) -> bool {
        let generic = self.space == Space::Generic || other.space == Space::Generic;
        if self.space != other.space && !generic {
            return false;
        }
        let (Some(a), Some(b)) = (self.root, other.root) else {
            return true;
        };
        let alone = |root: Root| match root {
            Root::Array(_) => true,
            Root::Param(index) => kernel.params[index].facts.is_some_and(|facts| facts.unaliased),
        };
        a == b || !(alone(a) || alone(b))
    }
}

impl Draft {
    /// An instruction of a class, in its place.
    pub(crate) fn new(class: Class, place: Place) -> Draft {
        Draft {
            class,
            control: Control::Next,
            steps: Vec::new(),
            share: Share::Whole,
            guard: None,
            defines: Vec::new(),
            uses: Vec::new(),
            move_: None,
            fixed: false,
            memory: None,
            never_taken: 0,
            latched: false,
            spilled_at: None,
            place,
        }
    }

    /// A marker with a control.
    pub(crate) fn marker(control: Control, place: Place) -> Draft {
        Draft {
            control,
            fixed: true,
            ..Draft::new(Class::None, place)
        }
    }
}

/// The virtual registers of a program.
pub(super) type Virtuals = PrimaryMap<Virtual, VirtualData>;
