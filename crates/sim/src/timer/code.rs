//! A machine program made ready for timing: costs looked up, values on slots.

use std::sync::Arc;

use super::access::{Direction, Hint};
use super::cost::{Costs, Pipe};
use crate::back::machine::{
    Class, Control, Instruction, InstructionStep, MachineProgram, MatrixUnit, RegisterList,
};
use crate::functional::{Flow, LaneOp, LaneOpKind, Need, Needed, Registers, Slot, Wanted, choices};
use crate::ir::{AtomicOp, CacheUse, HintSource, LscControl, MemoryScope, OpKind, Space, Value};
use crate::model::DeviceModel;
use crate::{Error, Result};

/// The operations of a program, and what its branches and guards ask for.
fn flow(program: &MachineProgram) -> Flow<'_> {
    let mut flow = Flow {
        kernel: &program.kernel,
        ops: Vec::new(),
        moves: Vec::new(),
        decides: Vec::new(),
    };
    for step in &program.steps {
        match step {
            InstructionStep::Op(op) => flow.ops.push(op),
            InstructionStep::Assign(pairs) => flow.moves.extend_from_slice(pairs),
        }
    }
    let choices = choices(&program.kernel);
    for instruction in &program.instructions {
        if let Control::If { cond, .. } = instruction.control {
            flow.branch(cond, &choices);
        }
        flow.decides.extend(instruction.guard.map(|guard| guard.value));
    }
    flow
}

/// A program that the timer runs.
#[derive(Debug)]
pub struct Code {
    pub(super) program: Arc<MachineProgram>,
    pub(super) instructions: Vec<Coded>,
    pub(super) steps: Vec<CodedStep>,
    constants: Vec<(Slot, u64)>,
    slots: u32,
    sub_group_size: u32,
    /// Whether it was made for the large register file.
    pub(super) large_registers: bool,
    /// The additional latency of a result to another arithmetic unit, in cycles.
    pub(super) crossing: u64,
}

/// One instruction.
#[derive(Clone, Debug)]
pub(super) struct Coded {
    pub action: Action,
    pub control: CodedControl,
    pub pipe: Pipe,
    /// Cycles that it keeps its pipe busy.
    pub interval: f64,
    /// Cycles that reading its operands keeps the scheduler from issuing others.
    reading: f64,
    /// The same if the scheduler's last `kept_since` instructions were the sub-group's, too.
    reading_kept: f64,
    /// See `reading_kept`.
    kept_since: u8,
    /// Cycles until its results can be used, or the sub-group can continue; see [`Action`].
    pub latency: u32,
    pub guard: Option<(Slot, bool)>,
    pub uses: [u16; RegisterList::CAPACITY],
    pub use_count: u8,
    pub defines: [u16; RegisterList::CAPACITY],
    pub define_count: u8,
    /// Which of the sub-group's scoreboards its result arrives on, if it takes no fixed time.
    pub scoreboard: Option<u8>,
    pub first_step: u32,
    pub end_step: u32,
    /// The line of its code, in the instruction cache.
    pub line: u32,
}

impl Coded {
    /// Cycles for which its operands are read, if the sub-group issued this many instructions right before it.
    pub(super) fn reading(&self, in_turn: u32) -> f64 {
        match in_turn >= u32::from(self.kept_since) {
            true => self.reading_kept,
            false => self.reading,
        }
    }
}

/// The timer's action for an instruction, beyond its steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Nothing, in no time.
    Mark,
    /// Results are there after the latency.
    Compute,
    /// The sub-group goes on after the latency.
    Jump,
    /// A fence that empties L1.
    Fence,
    /// Results are there when memory answers.
    Load {
        space: Space,
        step: u32,
        direction: Direction,
    },
    /// To memory.
    Store { space: Space, step: u32 },
    /// A spilled value is loaded from the frame of each work-item: this many bytes, at this offset.
    Fill { at: u32, bytes: u8 },
    /// It is stored there.
    Spill { at: u32, bytes: u8 },
    /// To memory and back: the result is there when memory answers. If it `acquires`, the sub-group continues only then.
    Atomic {
        space: Space,
        step: u32,
        direction: Direction,
        acquires: bool,
    },
    /// Starts a copy whose token is the result.
    Copy { step: u32 },
    /// Goes on when the copies up to a token are there.
    Wait { token: Slot },
    /// Starts a product of a warp group. It is complete after `complete` cycles; the next product that adds to the same sum
    /// waits for the instruction's latency only.
    Product { complete: u32 },
    /// Those that were started since the last such instruction become a group.
    CommitProducts,
    /// Goes on when all groups of products but the last few are complete.
    WaitForProducts { in_flight: u32 },
    /// A cache hint for `lines` lines from each pointer on.
    Prefetch { step: u32, bytes: u32, hint: Hint },
    /// Goes on when all sub-groups of the work-group have come.
    Barrier,
    /// Ends the lanes that are active.
    Exit,
}

/// Where the program goes on, conditions on slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CodedControl {
    Next,
    Open { end: u32 },
    If { cond: Slot, otherwise: u32, end: u32 },
    Else { end: u32 },
    End,
    EndLoop { body: u32 },
    Break { depth: u32 },
    Continue { depth: u32 },
    Return,
}

/// The computation of an instruction.
#[derive(Clone, Debug)]
pub(super) enum CodedStep {
    /// An operation, and how much of it.
    Op(LaneOp, Need),
    Assign(Vec<(Slot, Slot)>),
    /// A barrier: the timer brings the work-group together.
    Nothing,
}

impl Code {
    /// Looks up a program's costs in a model. Only `with_results` everything will be computed.
    ///
    /// # Errors
    /// The program has more registers than the timer tracks.
    pub(super) fn new(
        program: Arc<MachineProgram>,
        model: &DeviceModel,
        sub_group_size: u32,
        with_results: bool,
    ) -> Result<Code> {
        if program.registers > u32::from(u16::MAX) {
            return Err(Error::device(format!(
                "`{}` needs {} registers before they are shared",
                program.kernel.shown(),
                program.registers
            ))
            .accepted(format!("the timer tracks {}", u16::MAX)));
        }
        let mut slots = Slots {
            program: &program,
            constants: Vec::new(),
            count: program.slot_count,
        };
        let needed = Needed::of(&flow(&program), Wanted::Addresses);
        let mut steps = Vec::with_capacity(program.steps.len());
        for step in &program.steps {
            steps.push(match step {
                InstructionStep::Op(op) => {
                    let need = match with_results {
                        true => Need::All,
                        false => needed.of_op(&program.kernel, op),
                    };
                    LaneOp::new(&program.kernel, op, |value| slots.of(value))
                        .map_or(CodedStep::Nothing, |op| CodedStep::Op(op, need))
                }
                InstructionStep::Assign(pairs) => CodedStep::Assign(
                    pairs
                        .iter()
                        .filter(|&&(to, _)| with_results || needed.has(to))
                        .map(|&(to, from)| (slots.of(to), slots.of(from)))
                        .collect(),
                ),
            });
        }
        let costs = Costs::new(model, sub_group_size);
        let word_time = match &model.core.operand_words {
            Some(words) => 1.0 / **words,
            None => 0.0,
        };
        let line_bytes = u32::try_from(*model.instruction_cache.line).unwrap_or(u32::MAX);
        let mut instructions: Vec<Coded> = Vec::with_capacity(program.instructions.len());
        let mut arrives = Vec::with_capacity(program.instructions.len());
        for instruction in &program.instructions {
            let range = instruction.steps.start..instruction.steps.end;
            let action = action(&program, &steps, instruction, range.clone(), model);
            let cost = costs.of(instruction.class, instruction.share, action);
            let guard = instruction
                .guard
                .map(|guard| (slots.of(guard.value), guard.holds));
            let (uses, use_count) = registers(instruction.uses.iter().map(|register| register.as_u32()));
            let (defines, define_count) =
                registers(instruction.defines.iter().map(|register| register.as_u32()));
            arrives.push(cost.arrives);
            instructions.push(Coded {
                action,
                control: control(instruction.control, &mut slots, |cond| {
                    with_results || needed.has(cond)
                }),
                pipe: cost.pipe,
                interval: cost.interval,
                reading: f64::from(instruction.operands.words) * word_time,
                reading_kept: f64::from(instruction.operands.words - instruction.operands.kept) * word_time,
                kept_since: instruction.operands.kept_since,
                latency: cost.latency,
                guard,
                uses,
                use_count,
                defines,
                define_count,
                scoreboard: None,
                first_step: range.start,
                end_step: range.end,
                line: instruction.address / line_bytes,
            });
        }
        let boards = scoreboards(&program, &arrives, *model.core.scoreboards);
        for (instruction, board) in instructions.iter_mut().zip(boards) {
            instruction.scoreboard = board;
        }
        let Slots { constants, count, .. } = slots;
        Ok(Code {
            instructions,
            steps,
            constants,
            slots: count,
            sub_group_size,
            large_registers: false,
            crossing: u64::from(*model.core.crossing),
            program,
        })
    }

    /// The same for sub-groups with the large register file, or with the usual one.
    pub(super) fn with_large_registers(mut self, large: bool) -> Code {
        self.large_registers = large;
        self
    }

    /// Registers of a sub-group at its start, with the parameters' bits.
    pub(super) fn registers(&self, arguments: &[u64]) -> Registers {
        let mut registers = Registers::new(self.slots, self.sub_group_size);
        for &(slot, bits) in &self.constants {
            registers.broadcast(slot, bits);
        }
        for (param, &bits) in self.program.kernel.params.iter().zip(arguments) {
            if let Some(slot) = self.program.slots[param.value] {
                registers.broadcast(Slot(slot.as_u32()), bits);
            }
        }
        registers
    }

    /// Work-items of a sub-group.
    pub(crate) fn sub_group_size(&self) -> u32 {
        self.sub_group_size
    }

    /// The machine program.
    pub fn program(&self) -> &Arc<MachineProgram> {
        &self.program
    }
}

/// The scoreboard of a value that is first used behind a jump; see [`scoreboards`].
pub(super) const ACROSS_JUMPS: u8 = 0;

/// Which scoreboard each instruction's result arrives on, if it takes no fixed time.
///
/// As ptxas assigns them: values used before the next jump get scoreboards in turn, two of them for short latencies, the others
/// for memory. All else shares one, and waiting for one of those waits for all that are in flight.
fn scoreboards(program: &MachineProgram, arrives: &[bool], count: u32) -> Vec<Option<u8>> {
    let count = count.clamp(4, 16) as u8;
    let first_soon = count - 2;
    let (mut next, mut next_soon) = (ACROSS_JUMPS, 0);
    let instructions = &program.instructions;
    let is_jump = |at: usize| {
        instructions[at].control != Control::Next
            || matches!(instructions[at].class, Class::Branch | Class::Reconverge)
    };
    let used_before_a_jump = |at: usize| {
        let defined = &instructions[at].defines;
        for (later, instruction) in instructions.iter().enumerate().skip(at + 1) {
            if instruction
                .uses
                .iter()
                .any(|used| defined.iter().any(|own| own == used))
            {
                return true;
            }
            if is_jump(later) {
                return false;
            }
        }
        false
    };
    let board = |(at, &arrives): (usize, &bool)| {
        if !arrives {
            return None;
        }
        let is_long = matches!(instructions[at].class, Class::Load { space, .. } if space != Space::Shared);
        if !is_long {
            next_soon = 1 - next_soon;
            return Some(first_soon + next_soon);
        }
        if !used_before_a_jump(at) {
            return Some(ACROSS_JUMPS);
        }
        next = next % (first_soon - 1) + 1;
        Some(next)
    };
    arrives.iter().enumerate().map(board).collect()
}

/// Where values are kept: the program's slots, and behind them the constants.
struct Slots<'p> {
    program: &'p MachineProgram,
    constants: Vec<(Slot, u64)>,
    count: u32,
}

impl Slots<'_> {
    fn of(&mut self, value: Value) -> Slot {
        let constant = self.program.kernel.as_constant(value);
        if constant.is_none()
            && let Some(slot) = self.program.slots[value]
        {
            return Slot(slot.as_u32());
        }
        // A value without a slot is never computed; it reads as zero.
        self.of_bits(constant.unwrap_or(0))
    }

    /// The slot of a constant.
    fn of_bits(&mut self, bits: u64) -> Slot {
        if let Some(&(slot, _)) = self.constants.iter().find(|&&(_, known)| known == bits) {
            return slot;
        }
        let slot = Slot(self.count);
        self.count += 1;
        self.constants.push((slot, bits));
        slot
    }
}

fn registers(list: impl Iterator<Item = u32>) -> ([u16; RegisterList::CAPACITY], u8) {
    let mut registers = [0; RegisterList::CAPACITY];
    let mut count = 0;
    for (place, register) in registers.iter_mut().zip(list) {
        *place = register as u16;
        count += 1;
    }
    (registers, count)
}

/// A branch whose condition is not known goes into its first region.
fn control(control: Control, slots: &mut Slots, is_known: impl Fn(Value) -> bool) -> CodedControl {
    match control {
        Control::Next => CodedControl::Next,
        Control::Block { end, .. } | Control::Loop { end, .. } => CodedControl::Open { end },
        Control::If {
            cond, otherwise, end, ..
        } => CodedControl::If {
            cond: match is_known(cond) {
                true => slots.of(cond),
                false => slots.of_bits(1),
            },
            otherwise,
            end,
        },
        Control::Else { end, .. } => CodedControl::Else { end },
        Control::End { .. } => CodedControl::End,
        Control::EndLoop { body, .. } => CodedControl::EndLoop { body },
        Control::Break { depth } => CodedControl::Break { depth },
        Control::Continue { depth } => CodedControl::Continue { depth },
        Control::Return => CodedControl::Return,
    }
}

/// The action of an atomic instruction.
fn atomic(steps: &[CodedStep], step: u32, space: Space) -> Action {
    let (reads, writes, values, waits) = match &steps[step as usize] {
        CodedStep::Op(op, _) => match &op.kind {
            LaneOpKind::Atomic {
                op: atomic,
                order,
                scope,
                ..
            } => (
                *atomic != AtomicOp::Store,
                *atomic != AtomicOp::Load,
                op.kind.atomic_values(),
                order.acquires() && *scope == MemoryScope::Device,
            ),
            LaneOpKind::Opaque { what, .. } => match what.quad() {
                // Two values of 8 bytes.
                Some(quad) => {
                    let (reads, writes) = quad.directions();
                    (reads, writes, 2, quad.acquires())
                }
                None => (true, true, 1, false),
            },
            _ => (true, true, 1, false),
        },
        _ => (true, true, 1, false),
    };
    let direction = match (reads, writes) {
        (true, false) => Direction::AtomicLoad,
        (false, _) => Direction::Store,
        (true, true) => Direction::Atomic { values },
    };
    Action::Atomic {
        space,
        step,
        direction,
        acquires: waits && direction != Direction::Store,
    }
}

/// Whether the device acts on cache controls.
fn has_controls(model: &DeviceModel) -> bool {
    model.l1.as_ref().is_some_and(|l1| l1.controls.value)
}

/// The direction of a load, with its cache control where the device acts on it.
fn controlled(step: &InstructionStep, model: &DeviceModel) -> Direction {
    match step {
        InstructionStep::Op(op) => match op.kind {
            OpKind::Load {
                cache: CacheUse::Control(control),
                ..
            } if has_controls(model) => Direction::Controlled(control),
            _ => Direction::Load,
        },
        _ => Direction::Load,
    }
}

/// The action of an instruction. One without the step of its kind only takes its time.
fn action(
    program: &MachineProgram,
    steps: &[CodedStep],
    instruction: &Instruction,
    range: std::ops::Range<u32>,
    model: &DeviceModel,
) -> Action {
    let class = instruction.class;
    let find = |wanted: fn(&LaneOpKind) -> bool| {
        range.clone().rev().find(|&step| match &steps[step as usize] {
            CodedStep::Op(op, _) => wanted(&op.kind),
            _ => false,
        })
    };
    let found = match class {
        Class::None => Some(Action::Mark),
        Class::Load { space, bytes } => {
            let loads = find(|kind| match kind {
                LaneOpKind::Opaque { what, .. } => matches!(what.moves(), Some((_, false))),
                kind => matches!(kind, LaneOpKind::Load { .. }),
            });
            match loads {
                Some(step) => Some(Action::Load {
                    space,
                    step,
                    direction: controlled(&program.steps[step as usize], model),
                }),
                // No operation of the kernel: its own registers.
                None => instruction.spilled_at.map(|at| Action::Fill { at, bytes }),
            }
        }
        Class::Store { space, bytes } => {
            let stores = find(|kind| match kind {
                LaneOpKind::Opaque { what, .. } => matches!(what.moves(), Some((_, true))),
                kind => matches!(kind, LaneOpKind::Store { .. }),
            });
            match stores {
                Some(step) => Some(Action::Store { space, step }),
                // No operation of the kernel: its own registers.
                None => instruction.spilled_at.map(|at| Action::Spill { at, bytes }),
            }
        }
        Class::Atomic { space, .. } => {
            let atomics = find(|kind| match kind {
                LaneOpKind::Opaque { what, .. } => what.quad().is_some(),
                kind => matches!(kind, LaneOpKind::Atomic { .. }),
            });
            atomics.map(|step| atomic(steps, step, space))
        }
        Class::AsyncCopy { .. } => {
            find(|kind| matches!(kind, LaneOpKind::Copy { .. })).map(|step| Action::Copy { step })
        }
        Class::Wait => range.clone().rev().find_map(|step| match &steps[step as usize] {
            CodedStep::Op(op, _) => match &op.kind {
                LaneOpKind::Wait { token } => Some(Action::Wait { token: *token }),
                LaneOpKind::Opaque { what, .. } => {
                    let in_flight = what.waits_for_products()?;
                    Some(Action::WaitForProducts { in_flight })
                }
                _ => None,
            },
            _ => None,
        }),
        // Asynchronous copies become a group in the functional engine, by their tokens.
        Class::Commit => {
            find(|kind| matches!(kind, LaneOpKind::Opaque { .. })).map(|_| Action::CommitProducts)
        }
        Class::Matrix {
            bytes,
            unit: MatrixUnit::WarpGroup,
        } => {
            let through = (f64::from(bytes) / *model.matrix.group_through).round() as u32;
            let complete = *model.matrix.group_start + through;
            Some(Action::Product { complete })
        }
        Class::Prefetch => find(|kind| matches!(kind, LaneOpKind::Prefetch { .. })).and_then(|step| {
            let InstructionStep::Op(op) = &program.steps[step as usize] else {
                return None;
            };
            let OpKind::Prefetch {
                bytes, hint, source, ..
            } = op.kind
            else {
                return None;
            };
            let control = match source {
                HintSource::Control(control) => control,
                HintSource::Named | HintSource::Default => LscControl::of(hint),
            };
            let form = model.prefetch.at(hint.level);
            Some(Action::Prefetch {
                step,
                bytes,
                hint: Hint {
                    reached: form.reaches,
                    control: has_controls(model).then_some(control),
                    by: form.by,
                },
            })
        }),
        Class::Barrier => Some(Action::Barrier),
        Class::Exit => Some(Action::Exit),
        // Within a work-group L1 is the same for all. Instructions without an operation of their own come before an atomic one.
        Class::Fence => {
            let is_narrow = |kind: &LaneOpKind| match kind {
                LaneOpKind::Fence { scope, .. } => *scope != MemoryScope::Device,
                _ => true,
            };
            let narrow = range.clone().any(|step| match &steps[step as usize] {
                CodedStep::Op(op, _) => is_narrow(&op.kind),
                _ => true,
            });
            Some(if narrow { Action::Jump } else { Action::Fence })
        }
        Class::Branch | Class::Reconverge => Some(Action::Jump),
        _ => None,
    };
    found.unwrap_or(Action::Compute)
}
