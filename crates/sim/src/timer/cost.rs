//! The cost of each class of instructions on a device: its pipe, how long it occupies it, its latency.

use super::code::Action;
use crate::back::machine::{Class, MatrixUnit, Share};
use crate::ir::Space;
use crate::model::{DeviceModel, InstructionTiming, PrefetchInstruction};

/// A unit that takes one instruction at a time. Each scheduler has its own, but for [`Pipe::Memory`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pipe {
    /// Integers, logic, comparisons.
    Integer,
    /// 16 and 32-bit floating point, integer multiplication.
    Float,
    /// 64-bit floating point.
    Double,
    /// Special functions, conversions.
    Special,
    /// Products of matrices.
    Matrix,
    /// Loads, stores, copies, hints: one for the core.
    Memory,
    /// Jumps, barriers, waits.
    Control,
    /// Marks where lanes part or meet.
    Reconverge,
}

impl Pipe {
    /// How many there are.
    pub(super) const COUNT: usize = 8;

    /// Whether it takes a fixed time.
    pub(super) fn is_arithmetic(self) -> bool {
        matches!(self, Pipe::Integer | Pipe::Float | Pipe::Double | Pipe::Matrix)
    }
}

/// The cost of an instruction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cost {
    pub pipe: Pipe,
    /// Cycles that it keeps the pipe.
    pub interval: f64,
    /// Cycles until its result is there, memory's share not counted.
    pub latency: u32,
    /// Whether its result arrives after no fixed time, so that a scoreboard watches for it.
    pub arrives: bool,
}

/// The costs on a device.
pub(super) struct Costs<'m> {
    model: &'m DeviceModel,
    sub_group_size: u32,
}

impl<'m> Costs<'m> {
    /// For sub-groups of a size.
    pub(super) fn new(model: &'m DeviceModel, sub_group_size: u32) -> Costs<'m> {
        Costs {
            model,
            sub_group_size,
        }
    }

    /// The cost of a class, for a share of the sub-group; of hints, also by the instruction that carries them.
    pub(super) fn of(&self, class: Class, share: Share, action: Action) -> Cost {
        let all = &self.model.instructions;
        let (pipe, timing, arrives) = match class {
            Class::None => {
                return Cost {
                    pipe: Pipe::Control,
                    interval: 0.0,
                    latency: 0,
                    arrives: false,
                };
            }
            Class::Matrix { bytes, unit } => return self.product(f64::from(bytes), unit),
            Class::Int32 => (Pipe::Integer, &all.int32, false),
            Class::Int64 => (Pipe::Integer, &all.int64, false),
            Class::IntMultiply => (Pipe::Float, &all.int_multiply, false),
            Class::Fp32 => (Pipe::Float, &all.fp32, false),
            Class::Fp16 => (Pipe::Float, &all.fp16, false),
            Class::Fp64 => (Pipe::Double, &all.fp64, false),
            Class::Special => (Pipe::Special, &all.special, true),
            Class::Convert => (Pipe::Special, &all.convert, true),
            Class::ReadId => (Pipe::Special, &all.read_id, true),
            Class::LoadConstant => (Pipe::Integer, &all.load_constant, false),
            Class::Load {
                space: Space::Shared, ..
            } => (Pipe::Memory, &all.shared_load, true),
            Class::Load { .. } => (Pipe::Memory, &all.load, true),
            Class::Store {
                space: Space::Shared, ..
            } => (Pipe::Memory, &all.shared_store, false),
            Class::Store { .. } => (Pipe::Memory, &all.store, false),
            Class::Atomic {
                space: Space::Shared, ..
            } => (Pipe::Memory, &all.shared_atomic, true),
            Class::Atomic { .. } => (Pipe::Memory, &all.atomic, true),
            Class::Shuffle => (Pipe::Memory, &all.shuffle, true),
            // Within a work-group nothing has to come back from L2.
            Class::Fence => match action {
                Action::Fence => (Pipe::Control, &all.fence, false),
                _ => (Pipe::Control, &all.barrier, false),
            },
            Class::AsyncCopy { .. } => (Pipe::Memory, &all.async_copy, false),
            Class::Commit => (Pipe::Control, &all.commit, false),
            Class::Wait => (Pipe::Control, &all.wait, false),
            Class::Prefetch => match action {
                Action::Prefetch { hint, .. } if hint.by == PrefetchInstruction::ScratchCopy => {
                    (Pipe::Memory, &all.async_copy, false)
                }
                _ => (Pipe::Memory, &all.prefetch, false),
            },
            Class::Barrier => (Pipe::Control, &all.barrier, false),
            Class::Branch => (Pipe::Control, &all.branch, false),
            Class::Reconverge => (Pipe::Reconverge, &all.reconverge, false),
            Class::Exit => (Pipe::Control, &all.exit, false),
        };
        let further_words = match class {
            Class::Load { space, bytes } if space != Space::Shared => u32::from(bytes / 4).saturating_sub(1),
            _ => 0,
        };
        let words = *self.model.core.vector_latency * further_words / 3;
        Cost {
            pipe,
            interval: self.interval(timing, pipe, share),
            latency: *timing.latency + words,
            arrives,
        }
    }

    /// A matrix product occupies the tensor core of its scheduler, whatever share of the sub-group it is for.
    fn product(&self, bytes: f64, unit: MatrixUnit) -> Cost {
        let all = &self.model.matrix;
        let (rate, least) = match unit {
            MatrixUnit::Short => (*all.rate, *all.least),
            MatrixUnit::Double => (*all.double_rate, *all.double_least),
            MatrixUnit::WarpGroup => (*all.group_rate, *all.group_least),
        };
        let interval = (bytes / rate).max(f64::from(least)) * f64::from(*self.model.core.schedulers);
        let through = (bytes / *all.through).round() as u32;
        Cost {
            pipe: Pipe::Matrix,
            interval,
            latency: match unit {
                MatrixUnit::Short => *all.start + through,
                MatrixUnit::Double => *all.double_start + through,
                // One that adds to its sum follows at once.
                MatrixUnit::WarpGroup => interval.round() as u32,
            },
            arrives: false,
        }
    }

    /// A rate counts all schedulers of a core; those that have a pipe each have a part of it.
    fn interval(&self, timing: &InstructionTiming, pipe: Pipe, share: Share) -> f64 {
        let pipes = if pipe == Pipe::Memory {
            1.0
        } else {
            f64::from(*self.model.core.schedulers)
        };
        f64::from(share.of(self.sub_group_size)) * pipes / *timing.rate
    }
}
