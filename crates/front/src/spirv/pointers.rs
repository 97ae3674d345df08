//! Into which space pointers lead that the module calls generic.
//!
//! ```text
//! before                                              after
//! %g = OpPtrCastToGeneric %generic %p                 %g: global
//! %q = OpPhi %generic %g %before %next %around        %q: global
//! %next = OpInBoundsPtrAccessChain %generic %q %one   %next: global
//! ```
//!
//! A register stays generic if its pointers lead into several spaces, or come from memory.

use rspirv::spirv::Op;

use super::body::{Body, Operand, Source, What};
use super::module::Module;
use super::operands::ids;
use crate::error::Result;
use crate::ir::{Space, Type};
use crate::middle::Register;

/// Most times that all steps are gone through; then generic pointers stay what they are.
const MOST_PASSES: u32 = 64;

const GENERIC: Type = Type::Ptr(Space::Generic);

/// Gives registers that hold generic pointers the space that these lead into.
///
/// # Errors
/// An operand is nowhere defined.
pub(super) fn find_spaces(module: &Module<'_>, body: &mut Body<'_>) -> Result<()> {
    if !body.registers.contains(&GENERIC) {
        return Ok(());
    }
    // Nothing: not known yet.
    let mut known: Vec<Option<Space>> = body
        .registers
        .iter()
        .map(|ty| ty.space().filter(|&space| space != Space::Generic))
        .collect();
    let is_generic = |register: Register| body.registers[register as usize] == GENERIC;
    let of_global = |operand: Operand| -> Result<Option<Space>> {
        let instruction = module.global(operand.id)?;
        // A null pointer leads nowhere.
        if matches!(instruction.op, Some(Op::ConstantNull | Op::Undef)) {
            return Ok(None);
        }
        let ty = module.one(instruction.word(0)?).unwrap_or(GENERIC);
        Ok(Some(ty.space().unwrap_or(Space::Generic)))
    };
    let (mut changed, mut passes) = (true, 0);
    while changed {
        changed = false;
        passes += 1;
        if passes > MOST_PASSES {
            return Ok(());
        }
        for step in body.steps() {
            let mut given: Vec<(Register, Option<Space>)> = Vec::new();
            match &step.what {
                What::Copy(copies) => {
                    for &(to, source) in copies.iter().filter(|(to, _)| is_generic(*to)) {
                        let space = match source {
                            Source::Register(from) => known[from as usize],
                            Source::Part(operand, 0) => of_global(operand)?,
                            Source::Part(..) => Some(Space::Generic),
                        };
                        given.push((to, space));
                    }
                }
                What::Plain(instruction, frame) => {
                    let [to] = step.writes[..] else {
                        given.extend(
                            step.writes
                                .iter()
                                .filter(|&&to| is_generic(to))
                                .map(|&to| (to, Some(Space::Generic))),
                        );
                        join(&mut known, &given, &mut changed);
                        continue;
                    };
                    if !is_generic(to) {
                        continue;
                    }
                    let operands = ids(instruction);
                    let passed = match instruction.op {
                        Some(
                            Op::AccessChain
                            | Op::InBoundsAccessChain
                            | Op::PtrAccessChain
                            | Op::InBoundsPtrAccessChain
                            | Op::Bitcast
                            | Op::PtrCastToGeneric
                            | Op::CopyObject,
                        ) => operands.get(..1).unwrap_or_default(),
                        Some(Op::Select) => operands.get(1..3).unwrap_or_default(),
                        _ => &[],
                    };
                    if passed.is_empty() {
                        given.push((to, Some(Space::Generic)));
                    }
                    for &id in passed {
                        let operand = Operand { frame: *frame, id };
                        let space = match body.held(operand) {
                            Some(held) => match body.registers[held.first as usize].space() {
                                Some(_) => known[held.first as usize],
                                None => Some(Space::Generic),
                            },
                            None => of_global(operand)?,
                        };
                        given.push((to, space));
                    }
                }
                What::Case(..) => {}
            }
            join(&mut known, &given, &mut changed);
        }
    }
    for (ty, known) in body.registers.iter_mut().zip(known) {
        if *ty == GENERIC
            && let Some(space) = known
        {
            *ty = Type::Ptr(space);
        }
    }
    Ok(())
}

fn join(known: &mut [Option<Space>], given: &[(Register, Option<Space>)], changed: &mut bool) {
    for &(to, space) in given {
        let old = known[to as usize];
        let new = match (old, space) {
            (None, space) => space,
            (old, None) => old,
            (Some(a), Some(b)) if a == b => old,
            _ => Some(Space::Generic),
        };
        *changed |= new != old;
        known[to as usize] = new;
    }
}
