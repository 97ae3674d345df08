//! Kernel to machine program: the instruction stream that the timer runs.
//!
//! A device does not execute IR operations. A square root is a dozen instructions, an address may be none, a 64-bit addition
//! two. This back end lowers a kernel to the stream that the vendor's compiler would emit, in every respect that affects time:
//! the number of instructions, their units and dependences, their bytes of code, the registers they need. The stream is also
//! executable: each IR operation is attached to the instruction that completes it, so the timer computes real addresses and
//! takes real branches.
//!
//! In order: clean the kernel up (`cleanup`); select instructions; schedule them between jumps;
//! merge the registers that moves connect; count registers; lay the code out. `program` defines the
//! result.

mod addresses;
mod arithmetic;
mod bottleneck;
mod coalesce;
mod constants;
mod draft;
mod facts;
mod frame;
mod intervals;
mod isa;
mod layout;
mod listing;
mod liveness;
mod matrix;
mod operands;
mod pressure;
pub(crate) mod program;
mod recipe;
mod registers;
mod schedule;
mod select;
mod spill;
#[doc(hidden)]
pub mod target;
mod unrolled;

pub use isa::Rules;
pub use program::{
    Class, Control, Guard, Instruction, InstructionStep, MachineProgram, MatrixUnit, Operands, Register,
    RegisterEstimate, RegisterList, Share, Slot,
};
pub use target::{Assembled, Family, Target};

use target::{LEAST_PROMISED, OVERHEAD};

use crate::ir::Kernel;
use crate::model::DeviceModel;

/// Lowers a verified kernel for a launch of which a core can use `groups` work-groups of `group` work-items at once; for
/// fewer, if its values do not fit into the registers that this many leave it.
pub fn lower_for_groups(
    kernel: &Kernel,
    target: &Target,
    model: &DeviceModel,
    groups: u32,
    group: u32,
) -> MachineProgram {
    if let Some(target) = with_known_registers(kernel, target) {
        return lower(kernel, &target);
    }
    let mut groups = groups;
    loop {
        let target = target.for_groups(model, groups, group);
        let program = lower(kernel, &target);
        let registers = program.register_estimate.registers;
        let kept = target.kept_registers;
        if kept < LEAST_PROMISED || registers <= kept || groups == 1 {
            return program;
        }
        let footprint = target.footprint(group, registers, 0, false);
        groups = model.occupancy(&footprint).groups_per_core.clamp(1, groups - 1);
    }
}

/// Lowers a verified kernel of a module that does not say how many work-groups a core is to hold. The compiler keeps to the
/// registers that let a core hold as many work-groups of `group` work-items as it can, unless the values that live across
/// jumps leave no room. (No entry of `corpus/` says the number, and ptxas 13.0 gives 114 of 120 entries 32 registers at most.
/// With the number `n_body` gets 40 registers, `sweep` 62, and `strided_dot` 80.)
pub fn lower_for_any_launch(
    kernel: &Kernel,
    target: &Target,
    model: &DeviceModel,
    group: u32,
) -> MachineProgram {
    if let Some(target) = with_known_registers(kernel, target) {
        return lower(kernel, &target);
    }
    let full = target.for_any_launch(model, group);
    let program = lower(kernel, &full);
    match program.register_estimate.across_jumps + OVERHEAD < full.kept_registers {
        true => program,
        false => lower(kernel, target),
    }
}

/// The target with a known number of registers: that of the code that the vendor's compiler made, or the kernel's own limit, which
/// Intel's compiler cannot be given.
fn with_known_registers(kernel: &Kernel, target: &Target) -> Option<Target> {
    let assembled = target.assembled.map(|assembled| target.as_assembled(assembled));
    let said = kernel.max_registers.filter(|_| target.family == Family::Nvidia);
    assembled.or_else(|| said.map(|registers| target.held_to(registers)))
}

/// Lowers a verified kernel.
pub fn lower(kernel: &Kernel, target: &Target) -> MachineProgram {
    let mut kernel = kernel.clone();
    super::hints::expand(&mut kernel, &target.prefetches());
    super::library::expand(&mut kernel);
    // As in the text that the device gets.
    if !target.has_copies {
        super::copies::expand(&mut kernel);
    }
    if !target.has_tables {
        super::tables::expand(&mut kernel);
    }
    let mut kernel = crate::cleanup::clean(&kernel);
    if target.rules.loops_unrolled {
        kernel = unrolled::unroll(kernel);
    }
    let facts = facts::Facts::of(&kernel, *target);
    let select::Selected {
        pointers,
        drafts,
        mut virtuals,
    } = select::select(&facts);
    let drafts = match target.rules.pointers_in_constants {
        true => constants::place(pointers, drafts, &mut virtuals),
        false => pointers.into_iter().chain(drafts).collect(),
    };
    let mut drafts = schedule::schedule(&kernel, target, drafts, &virtuals);
    coalesce::coalesce(&mut drafts, virtuals.len());
    if target.family == Family::Intel {
        isa::intel::join_once(&mut drafts);
    }
    let estimate = registers::estimate(target, &drafts, &virtuals);
    let mut frame_bytes = 0;
    if estimate.spilled_bytes > 0 {
        frame_bytes = spill::spill(&mut drafts, &mut virtuals, registers::room(target), target.family);
    }
    layout::lay_out(kernel, drafts, &virtuals, estimate, frame_bytes)
}

#[cfg(test)]
mod tests;
