//! The machine program: a list of instructions with structured control flow.
//!
//! # Running it
//!
//! A sub-group runs the list from its start with a mask of active lanes and a stack of open scopes.
//! At each instruction:
//!
//! 1. it waits until the registers that it uses are ready ([`Instruction::uses`]) and until its
//!    unit can take it ([`Instruction::class`]);
//! 2. its [`steps`](Instruction::steps) are evaluated in order on the active lanes, or, with a
//!    [`guard`](Instruction::guard), on those of them where the guard holds;
//! 3. its [`control`](Instruction::control) is obeyed;
//! 4. the registers that it defines become ready after its latency.
//!
//! The steps contain all computation; registers exist only to express dependences. An instruction of [`Class::None`] is a
//! marker: it takes no time, no issue slot and no bytes, but its steps and its control are carried out.
//!
//! # Masks
//!
//! Scopes nest. A scope remembers three masks: `entered` (active when it was opened), `left` (lanes
//! that a `Break` sent to its end), and, in a loop, `next` (lanes that a `Continue` sent to its next
//! iteration). Lanes sent away are no longer active. Every region ends with a jump, so at `Else` and
//! `End` no lane is active but those that these bring back:
//!
//! | control | active lanes afterwards |
//! |---|---|
//! | `Block`, `Loop` | unchanged; a scope is pushed |
//! | `If` | those where the condition holds; a scope is pushed |
//! | `Else` | those of `entered` where it did not hold |
//! | `End` of a block or `if` | `left`; the scope is popped |
//! | `End` of a loop | `next` if there are any, and the list goes on after the `Loop`; else `left`, and the scope is popped |
//! | `Break` | none; they are in `left` of the scope at its depth |
//! | `Continue` | none; they are in `next` of the loop at its depth |
//! | `Return` | none; they are gone |
//!
//! So lanes that part at an `If` meet again at its end. When no lane is active, everything up to the
//! next `Else` or `End` of the innermost scope can be skipped: [`Control::If`] and `Else` say where
//! that is.

use std::fmt;
use std::ops::Range;

use cranelift_entity::{SecondaryMap, entity_impl};

use crate::ir::{Kernel, Op, Place, Space, Value};

/// A lowered kernel.
#[derive(Clone, Debug)]
pub struct MachineProgram {
    /// The kernel after cleaning up; the steps' operations are those of its body, each once.
    pub kernel: Kernel,
    /// The instructions, in order of their code addresses. The last one is a `Return`.
    pub instructions: Vec<Instruction>,
    /// The instructions' computations; each instruction names a range.
    pub steps: Vec<InstructionStep>,
    /// How many [`Register`]s the instructions name.
    pub registers: u32,
    /// Where a value can be kept while the program runs: values that are never wanted at the same
    /// time share a slot. Constants have none. A slot is safe to write on inactive lanes, too,
    /// except by [`InstructionStep::Assign`].
    pub slots: SecondaryMap<Value, Option<Slot>>,
    /// How many slots there are.
    pub slot_count: u32,
    /// The program's use of the register file.
    pub register_estimate: RegisterEstimate,
    /// Bytes of a work-item's frame in private memory, where spilled values live.
    pub frame_bytes: u32,
    /// Bytes of code, those of paths never taken included.
    pub code_bytes: u32,
}

/// A register, as the scoreboard sees it: a 64-bit value is in one. Predicates are registers too, tokens
/// are not: [`Class::Wait`] names its token in its step.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Register(u32);
entity_impl!(Register, "r");

/// A place for one value of each lane.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(u32);
entity_impl!(Slot, "slot");

/// A work-item's use of the register file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegisterEstimate {
    /// 32-bit registers, at most the device's limit for one work-item.
    pub registers: u32,
    /// 32-bit registers of the values that live across a jump or a barrier, at the most crowded one.
    pub(crate) across_jumps: u32,
    /// Bytes of the values that do not fit and live in private memory.
    pub spilled_bytes: u32,
    /// Whether these are the registers and spills of the vendor's compiler.
    pub is_assembled: bool,
}

/// One instruction.
#[derive(Clone, Debug, PartialEq)]
pub struct Instruction {
    /// Its unit, and its cost.
    pub class: Class,
    /// Where the program goes on.
    pub control: Control,
    /// Its computation: a range of [`MachineProgram::steps`]. Empty for the inner instructions of an expansion, whose last one
    /// carries the operation.
    pub steps: Range<u32>,
    /// For how many of the sub-group's work-items it works.
    pub share: Share,
    /// On which of the active lanes.
    pub guard: Option<Guard>,
    /// Registers that it writes.
    pub defines: RegisterList,
    /// Registers that it reads, its guard's included.
    pub uses: RegisterList,
    /// How much of the register file it reads.
    pub operands: Operands,
    /// Where its code starts, from the start of the program.
    pub address: u32,
    /// Bytes of code up to the next instruction: its own, and those of a path never taken.
    pub bytes: u32,
    /// The offset in bytes of the spilled value that it stores or loads, in the work-item's frame
    /// ([`MachineProgram::frame_bytes`]).
    pub spilled_at: Option<u32>,
    /// The source that it came from.
    pub place: Place,
}

/// For how many of a sub-group's work-items an instruction works, active or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Share {
    /// All of them.
    #[default]
    Whole,
    /// Half of them: it is one of two that do the same.
    Half,
    /// One, for all: its result is the same for them.
    One,
}

impl Share {
    /// The work-items, of a sub-group of this size.
    pub fn of(self, sub_group: u32) -> u32 {
        match self {
            Share::Whole => sub_group,
            Share::Half => sub_group.div_ceil(2),
            Share::One => 1,
        }
    }
}

/// An instruction's reads of the register file, in 32-bit words of each work-item.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Operands {
    /// All operands; constants, uniform registers and predicates are not counted.
    pub words: u8,
    /// The operands that an earlier instruction also read, so that they may still be in the reuse cache.
    pub kept: u8,
    /// That is this many instructions back.
    pub kept_since: u8,
}

/// A predicate on an instruction: it acts on lanes where `value` is `holds`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guard {
    /// A `Bool`.
    pub value: Value,
    /// The required value.
    pub holds: bool,
}

/// A few registers.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct RegisterList {
    registers: [u32; RegisterList::CAPACITY],
    length: u8,
}

/// Something that an instruction computes.
#[derive(Clone, Debug, PartialEq)]
pub enum InstructionStep {
    /// An operation of the kernel: no block, `if`, loop or terminator.
    Op(Op),
    /// Values passed by a `Break` or `Continue`, or into a loop: each first takes the old value of each second, on the active
    /// lanes only.
    Assign(Vec<(Value, Value)>),
}

/// What multiplies matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MatrixUnit {
    /// Tensor cores, for a sub-group, elements of at most 32 bits.
    Short,
    /// The same, doubles.
    Double,
    /// The same, for four sub-groups, each of which issues its part.
    WarpGroup,
}

/// The cost class of an instruction: the name under which a device model gives latency and rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// A marker: no time, no issue slot, no code.
    None,
    /// 32-bit integer addition, logic, shift, comparison, selection, move.
    Int32,
    /// 32-bit integer multiplication (and addition), 64-bit result included.
    IntMultiply,
    /// 64-bit integer arithmetic, on devices that have it as one instruction.
    Int64,
    /// Addition, multiplication, fused multiply-add, comparison, minimum in 32 bits.
    Fp32,
    /// The same in 64 bits.
    Fp64,
    /// The same in 16 bits.
    Fp16,
    /// The special-function unit: approximate reciprocal, reciprocal square root, power of two, …
    Special,
    /// Between integers and floats, between float widths, rounding, bit counting.
    Convert,
    /// A question about the work-item that the hardware answers (`S2R`).
    ReadId,
    /// A value from the constant bank into a register: kernel parameters, wide constants.
    LoadConstant,
    /// A load of `bytes` per lane.
    Load {
        /// From here; generic accesses count as global.
        space: Space,
        /// Per lane.
        bytes: u8,
    },
    /// A store of `bytes` per lane.
    Store {
        /// To here.
        space: Space,
        /// Per lane.
        bytes: u8,
    },
    /// An asynchronous copy of `bytes` per lane from global to shared memory.
    AsyncCopy {
        /// Per lane.
        bytes: u8,
    },
    /// Closes a group of asynchronous copies, so that a token can stand for them.
    Commit,
    /// Waits for a token. Its step names the token.
    Wait,
    /// A cache hint for one line per lane. Its step, or that of the last of several, names the range.
    Prefetch,
    /// An atomic operation on `bytes` per lane.
    Atomic {
        /// There.
        space: Space,
        /// Per lane.
        bytes: u8,
    },
    /// Waits until earlier accesses are ordered.
    Fence,
    /// An exchange or a vote inside the sub-group.
    Shuffle,
    /// A product of matrices, of the whole sub-group.
    Matrix {
        /// Of the left matrix, for every 8 columns of the right one.
        bytes: u16,
        /// What multiplies them.
        unit: MatrixUnit,
    },
    /// A work-group barrier.
    Barrier,
    /// A jump, conditional or not. Inside expansions: one that is never taken.
    Branch,
    /// Marks where lanes part or meet (`BSSY`, `BSYNC`).
    Reconverge,
    /// Ends the work-item.
    Exit,
}

/// Where the program goes on. `depth` counts the scopes around: 0 is outermost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// At the next instruction.
    Next,
    /// Opens a block.
    Block {
        /// Position of the new scope on the stack.
        depth: u32,
        /// Index of its `End`.
        end: u32,
    },
    /// Opens an `if`.
    If {
        /// Position of the new scope on the stack.
        depth: u32,
        /// A `Bool`.
        cond: Value,
        /// Index of its `Else`.
        otherwise: u32,
        /// Index of its `End`.
        end: u32,
    },
    /// Where the second region of an `if` starts.
    Else {
        /// Position of its scope on the stack.
        depth: u32,
        /// Index of its `End`.
        end: u32,
    },
    /// Opens a loop.
    Loop {
        /// Position of the new scope on the stack.
        depth: u32,
        /// Index of its `End`.
        end: u32,
    },
    /// Closes a block or `if`.
    End {
        /// Position of its scope on the stack.
        depth: u32,
    },
    /// Closes a loop.
    EndLoop {
        /// Position of its scope on the stack.
        depth: u32,
        /// Index of the first instruction of its body.
        body: u32,
    },
    /// Leaves a scope.
    Break {
        /// The scope's position on the stack.
        depth: u32,
    },
    /// Starts the next iteration of a loop.
    Continue {
        /// The loop's position on the stack.
        depth: u32,
    },
    /// Ends the work-item.
    Return,
}

impl Instruction {
    /// How many of Intel's instructions it stands for: one works on at most two registers of 64 bytes, so 64-bit operations
    /// take two for a sub-group of 32.
    pub fn pieces(&self, sub_group: u32) -> u32 {
        let bytes = match self.class {
            Class::None => return 0,
            Class::Int64 | Class::Fp64 => 8,
            Class::Int32
            | Class::IntMultiply
            | Class::Fp32
            | Class::Fp16
            | Class::Special
            | Class::Convert => 4,
            _ => return 1,
        };
        (self.share.of(sub_group) * bytes).div_ceil(128)
    }
}

impl RegisterList {
    /// The most registers that a list holds: a store of four 64-bit values whose halves were made
    /// apart does not need more.
    #[doc(hidden)]
    pub const CAPACITY: usize = 8;

    /// The registers.
    pub fn iter(&self) -> impl Iterator<Item = Register> + '_ {
        self.registers[..usize::from(self.length)]
            .iter()
            .map(|&register| Register::from_u32(register))
    }

    /// Adds a register, unless it is there already or the list is full: an instruction that seems to
    /// read more stands for several that wait one after the other.
    pub(crate) fn push(&mut self, register: Register) {
        let length = usize::from(self.length);
        if length < RegisterList::CAPACITY && !self.iter().any(|present| present == register) {
            self.registers[length] = register.as_u32();
            self.length += 1;
        }
    }
}

impl FromIterator<Register> for RegisterList {
    fn from_iter<I: IntoIterator<Item = Register>>(registers: I) -> RegisterList {
        let mut list = RegisterList::default();
        registers.into_iter().for_each(|register| list.push(register));
        list
    }
}

impl fmt::Debug for RegisterList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl MachineProgram {
    /// The steps of an instruction.
    pub fn steps_of(&self, instruction: &Instruction) -> &[InstructionStep] {
        &self.steps[instruction.steps.start as usize..instruction.steps.end as usize]
    }

    /// How many instructions there are, markers not counted.
    pub fn instruction_count(&self) -> usize {
        self.instructions
            .iter()
            .filter(|instruction| instruction.class != Class::None)
            .count()
    }
}
