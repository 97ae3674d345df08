//! Computed jumps become a test for each of their targets.
//!
//! ```text
//! before                                       after
//! LIST: .branchtargets A, B, C;                setp.eq.u32  at, %r1, 0;   @at bra A;
//! brx.idx  %r1, LIST;                          setp.eq.u32  at, %r1, 1;   @at bra B;
//!                                              bra C;
//! ```
//!
//! An index that the list does not have is undefined.

use super::tree::{Body, Instruction, Operand, Register, RegisterData, Statement};

/// Writes out the computed jumps whose lists are known.
pub(super) fn written_out(body: &mut Body<'_>) {
    if !body.statements.iter().any(|statement| jump(statement).is_some()) {
        return;
    }
    let test = body.registers.len() as Register;
    body.registers.push(RegisterData {
        name: "%at",
        ty: "pred",
    });
    let mut statements = Vec::with_capacity(body.statements.len());
    for statement in std::mem::take(&mut body.statements) {
        match jump(&statement) {
            Some((jump, index, targets)) => tests(jump, index, targets, test, &mut statements),
            None => statements.push(statement),
        }
    }
    body.statements = statements;
}

/// A jump that always goes to one of a list, with its index and the list.
fn jump<'s, 't>(
    statement: &'s Statement<'t>,
) -> Option<(&'s Instruction<'t>, &'s Operand<'t>, &'s [Operand<'t>])> {
    let Statement::Instruction(instruction) = statement else {
        return None;
    };
    match (instruction.opcode, &instruction.operands[..]) {
        ("brx", [index, _, Operand::List(targets)]) if instruction.guard.is_none() && !targets.is_empty() => {
            Some((instruction, index, targets))
        }
        _ => None,
    }
}

fn tests<'t>(
    jump: &Instruction<'t>,
    index: &Operand<'t>,
    targets: &[Operand<'t>],
    test: Register,
    statements: &mut Vec<Statement<'t>>,
) {
    let mut push = |opcode, modifiers, guard, operands| {
        statements.push(Statement::Instruction(Instruction {
            opcode,
            modifiers,
            guard,
            operands,
            ..jump.clone()
        }));
    };
    let (last, others) = targets.split_last().expect("there are targets");
    for (number, target) in others.iter().enumerate() {
        let operands = vec![
            Operand::Register(test),
            index.clone(),
            Operand::Integer(number as u64),
        ];
        push("setp", vec!["eq", "u32"], None, operands);
        push("bra", Vec::new(), Some((test, false)), vec![target.clone()]);
    }
    push("bra", Vec::new(), None, vec![last.clone()]);
}
