//! The workspace of a cooperative launch: memory of the driver's, in which its work-groups count who has come to a meeting.
//!
//! ```text
//! before                                       after
//! mov.u32 %r1, %envreg2;                       mov.b64 %rd3, %grid_workspace;
//! cvt.u64.u32 %rd1, %r1;
//! mov.u32 %r2, %envreg1;
//! cvt.u64.u32 %rd2, %r2;
//! bfi.b64 %rd3, %rd2, %rd1, 32, 32;
//! ```
//!
//! Two special registers have the halves of its address. Compilers put them together where a grid is to wait for all of its
//! work-groups, and follow that. So it is a pointer that the kernel is given, hidden as that to a variable of the module; no
//! pointer of a program's leads there.

use std::collections::HashMap;

use super::tree::{Body, Instruction, Operand, Register, Statement};

/// The name of an assembled address. No variable of PTX has such a name.
pub(super) const WORKSPACE: &str = "%grid_workspace";
/// The special registers with the upper and the lower half.
const UPPER: &str = "envreg1";
const LOWER: &str = "envreg2";

/// Which half of the address a register holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Half {
    Upper,
    Lower,
}

/// Names the address where a body puts it together.
pub(super) fn name(body: &mut Body<'_>) {
    let definitions = body.definitions();
    let mut halves: HashMap<Register, Half> = HashMap::new();
    let mut changed = true;
    while changed {
        changed = false;
        for instruction in body.instructions() {
            if let Some((to, half)) = half(instruction, &halves)
                && definitions.get(&to) == Some(&1)
                && halves.insert(to, half).is_none()
            {
                changed = true;
            }
        }
    }
    if halves.is_empty() {
        return;
    }
    for statement in &mut body.statements {
        if let Statement::Instruction(instruction) = statement
            && is_whole(instruction, &halves)
        {
            instruction.opcode = "mov";
            instruction.modifiers = vec!["b64"];
            instruction.operands.truncate(1);
            instruction.operands.push(Operand::Symbol(WORKSPACE));
        }
    }
    // Halves that are not used any more: until none is left.
    body.remove_unread(|register| halves.contains_key(&register));
}

/// Whether a body names the address.
pub(super) fn is_named(body: &Body<'_>) -> bool {
    body.instructions()
        .any(|instruction| instruction.operands.contains(&Operand::Symbol(WORKSPACE)))
}

/// The half that an instruction's result is, as it is or in 64 bits.
fn half(instruction: &Instruction<'_>, halves: &HashMap<Register, Half>) -> Option<(Register, Half)> {
    let [Operand::Register(to), from] = &instruction.operands[..] else {
        return None;
    };
    let is_moved = instruction.opcode == "mov" && instruction.guard.is_none();
    let is_widened = instruction.opcode == "cvt" && instruction.guard.is_none();
    match from {
        Operand::Special(UPPER, _) if is_moved => Some((*to, Half::Upper)),
        Operand::Special(LOWER, _) if is_moved => Some((*to, Half::Lower)),
        Operand::Register(from) if is_moved => Some((*to, *halves.get(from)?)),
        Operand::Register(from) if is_widened && instruction.modifiers == ["u64", "u32"] => {
            Some((*to, *halves.get(from)?))
        }
        _ => None,
    }
}

/// Whether an instruction puts both halves together.
fn is_whole(instruction: &Instruction<'_>, halves: &HashMap<Register, Half>) -> bool {
    let is = |operand: &Operand<'_>, half: Half| match operand {
        Operand::Register(register) => halves.get(register) == Some(&half),
        _ => false,
    };
    match (instruction.opcode, &instruction.operands[..]) {
        (
            "bfi",
            [
                Operand::Register(_),
                upper,
                lower,
                Operand::Integer(32),
                Operand::Integer(32),
            ],
        ) => instruction.has("b64") && is(upper, Half::Upper) && is(lower, Half::Lower),
        ("mov", [Operand::Register(_), Operand::Vector(parts)]) => match &parts[..] {
            [lower, upper] => is(upper, Half::Upper) && is(lower, Half::Lower),
            _ => false,
        },
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Facts, Origin, import};
    use crate::ir::OpKind;

    /// A kernel that assembles the address and adds to the memory there, with more code before.
    fn kernel(together: &str) -> crate::ptx::Imported {
        let text = format!(
            ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 out)\n{{\n.reg .b32 %r<9>;\n\
             .reg .b64 %rd<9>;\nld.param.u64 %rd8, [out];\n{together}\natom.add.release.gpu.u32 %r5, [%rd4+4], 1;\n\
             st.global.u32 [%rd8], %r5;\nret;\n}}\n"
        );
        import(&text, "k.ptx", None, &Facts::default()).unwrap_or_else(|error| panic!("{error}"))
    }

    fn opaques(imported: &crate::ptx::Imported) -> usize {
        let mut count = 0;
        imported
            .kernel
            .body
            .walk(&mut |op| count += usize::from(matches!(op.kind, OpKind::Opaque(..))));
        count
    }

    #[test]
    fn the_address_is_a_pointer_that_the_kernel_is_given() {
        for together in [
            "mov.u32 %r1, %envreg2;\ncvt.u64.u32 %rd1, %r1;\nmov.u32 %r2, %envreg1;\ncvt.u64.u32 %rd2, %r2;\n\
             bfi.b64 %rd4, %rd2, %rd1, 32, 32;",
            "mov.u32 %r1, %envreg2;\nmov.u32 %r2, %envreg1;\nmov.b64 %rd4, {%r1, %r2};",
        ] {
            let imported = kernel(together);
            assert_eq!(imported.original.parameters[1], Origin::Workspace, "{together}");
            let workspace = &imported.kernel.params[1];
            assert_eq!(workspace.name, "grid_workspace");
            assert!(
                workspace
                    .facts
                    .is_some_and(|facts| facts.unaliased && !facts.read_only)
            );
            assert_eq!(opaques(&imported), 0, "{together}");
        }
    }

    #[test]
    fn other_uses_of_its_halves_stay_as_they_are() {
        // The halves the wrong way round are no address of the workspace.
        let imported = kernel("mov.u32 %r1, %envreg2;\nmov.u32 %r2, %envreg1;\nmov.b64 %rd4, {%r2, %r1};");
        assert_eq!((imported.original.parameters.len(), opaques(&imported)), (1, 2));
        // One of them is read as well.
        let imported = kernel(
            "mov.u32 %r1, %envreg2;\nmov.u32 %r2, %envreg1;\nmov.b64 %rd4, {%r1, %r2};\nst.global.u32 [%rd8+4], %r2;",
        );
        assert_eq!((imported.original.parameters.len(), opaques(&imported)), (2, 1));
    }
}
