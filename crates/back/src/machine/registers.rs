//! How many registers a program needs, and their numbers.

use cranelift_entity::{EntityRef, SecondaryMap};

use super::draft::{Draft, Virtual, Virtuals};
use super::intervals::Intervals;
use super::isa;
use super::liveness::visit_live;
use super::program::{Register, RegisterEstimate};
use super::target::{Family, OVERHEAD, Target};

/// The fewest registers that ptxas reports for a kernel that does anything.
const LEAST: u32 = 8;

/// The drafts' register pressure: the most 32-bit registers that are live at the same time.
pub(crate) fn estimate(target: &Target, drafts: &[Draft], virtuals: &Virtuals) -> RegisterEstimate {
    let mut most = 0;
    let mut most_across_jumps = 0;
    visit_live(drafts, virtuals.len(), |index, live| {
        let wanted: u32 = live
            .iter()
            .map(|register| u32::from(virtuals[register].width))
            .sum();
        // An unused result still has to be put somewhere.
        let unwanted = drafts[index]
            .defines
            .iter()
            .filter(|&&register| !live.contains(register));
        let written: u32 = unwanted
            .map(|&register| u32::from(virtuals[register].width))
            .sum();
        most = most.max(wanted + written);
        if drafts[index].fixed {
            most_across_jumps = most_across_jumps.max(wanted);
        }
    });
    if let Some(assembled) = target.assembled {
        return RegisterEstimate {
            registers: assembled.registers,
            across_jumps: most_across_jumps,
            spilled_bytes: assembled.spilled_bytes,
            is_assembled: true,
        };
    }
    let needed = match target.family {
        Family::Nvidia => (most + OVERHEAD).max(LEAST),
        Family::Intel => most + isa::intel::OVERHEAD,
    };
    // No order saves registers that are live across a jump. (Of 100 plans that ptxas 13.0 must compile to fewer registers than
    // are counted here, 64 or more, it spills in 25 of the 26 in which these alone exceed the limit, at least 96 bytes, and in
    // 9 of the others, at most 116.)
    let can_save = needed <= target.saved_at_most && most_across_jumps <= target.kept_registers;
    let needed = match can_save {
        true => needed.min(target.kept_registers),
        false => needed,
    };
    RegisterEstimate {
        registers: needed.min(target.max_registers),
        across_jumps: most_across_jumps,
        spilled_bytes: needed.saturating_sub(target.max_registers) * 4,
        is_assembled: false,
    }
}

/// How many 32-bit registers values can be in at one time.
pub(crate) fn room(target: &Target) -> u32 {
    let overhead = match target.family {
        Family::Nvidia => OVERHEAD,
        Family::Intel => isa::intel::OVERHEAD,
    };
    target.max_registers.saturating_sub(overhead)
}

/// A number for each register but tokens: two that are never in use at the same time may have the same
/// one.
pub(crate) fn number(
    drafts: &[Draft],
    virtuals: &Virtuals,
) -> (SecondaryMap<Virtual, Option<Register>>, u32) {
    let mut intervals = Intervals::new(drafts.iter().map(|draft| draft.control), virtuals.len());
    for (index, draft) in drafts.iter().enumerate() {
        let named = draft.defines.iter().chain(&draft.uses);
        for &register in named.filter(|&&register| !virtuals[register].is_token) {
            intervals.note(register.index(), index);
        }
    }
    let (colours, count) = intervals.colour();
    let mut numbers = SecondaryMap::new();
    for (at, colour) in colours.into_iter().enumerate() {
        if let Some(colour) = colour {
            numbers[Virtual::new(at)] = Some(Register::from_u32(colour));
        }
    }
    (numbers, count)
}
