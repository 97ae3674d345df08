//! How accurate an entry's quotients and roots of `f32` have to be.
//!
//! OpenCL and DPC++ build them within a few units in the last place. Fast mathematics (`FPFastMathMode`) allows quotients x × (1 / y), and
//! DPC++'s `-fp-accuracy` and `-foffload-fp32-prec-div` write a bound for each operation (`SPV_INTEL_fp_max_error`). A kernel has one
//! accuracy, the strictest of its operations. A program that is built with `-cl-fp32-correctly-rounded-divide-sqrt` does not say so in
//! its module.

use rspirv::spirv::{Decoration, FPFastMathMode, Op, OpenclStd100Op as Std};

use super::body::{Body, What};
use super::module::Module;
use super::words::Instruction;
use crate::error::{Error, Result};
use crate::ir::{Accuracy, Type};

/// Units in the last place that OpenCL allows a quotient and a root.
const OF_QUOTIENT: f32 = 2.5;
const OF_ROOT: f32 = 3.0;

/// The accuracy of an entry, and why an entry that was written anew would have another one, if so.
pub(super) fn of_entry(module: &Module<'_>, body: &Body<'_>) -> Result<(Accuracy, Option<Error>)> {
    let mut strictest: Option<Accuracy> = None;
    let mut undecided = None;
    for step in body.steps() {
        let What::Plain(instruction, _) = &step.what else {
            continue;
        };
        let Some((own, has_bound)) = of_one(module, instruction)? else {
            continue;
        };
        if has_bound || strictest.is_some_and(|other| other != own) {
            let error = Error::input(
                "its quotients and roots have accuracies of their own, which an entry written anew would not have",
            );
            undecided.get_or_insert(error.at(format!("byte {}", instruction.byte())));
        }
        strictest = Some(strictest.map_or(own, |other| other.min(own)));
    }
    Ok((strictest.unwrap_or(Accuracy::OpenCl), undecided))
}

/// The accuracy of a quotient, or of a root that has a bound of its own, and whether it has one.
fn of_one(module: &Module<'_>, instruction: &Instruction<'_>) -> Result<Option<(Accuracy, bool)>> {
    let (is_quotient, is_root) = (
        instruction.op == Some(Op::FDiv),
        module.is_standard(instruction, Std::sqrt),
    );
    let of_singles =
        |ty: u32| -> Result<bool> { Ok(module.parts(ty)?.iter().any(|&(_, ty)| ty == Type::F32)) };
    if !(is_quotient || is_root) || !of_singles(instruction.word(0)?)? {
        return Ok(None);
    }
    let said = |decoration| module.decorated(instruction.words[1], decoration).next()?.first();
    if let Some(&bound) = said(Decoration::FPMaxErrorDecorationINTEL) {
        let allowed = if is_quotient { OF_QUOTIENT } else { OF_ROOT };
        return Ok(Some(match f32::from_bits(bound) < allowed {
            true => (Accuracy::Rounded, true),
            false => (Accuracy::OpenCl, true),
        }));
    }
    let flags = said(Decoration::FPFastMathMode).map_or(FPFastMathMode::NONE, |&flags| {
        FPFastMathMode::from_bits_retain(flags)
    });
    Ok(match is_quotient {
        true if flags.intersects(FPFastMathMode::FAST | FPFastMathMode::ALLOW_RECIP) => {
            Some((Accuracy::Fast, false))
        }
        true => Some((Accuracy::OpenCl, false)),
        // A root is the same in both.
        false => None,
    })
}
