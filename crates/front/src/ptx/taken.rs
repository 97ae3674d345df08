//! Structures that are passed by value and whose address is taken.
//!
//! ```text
//! before                                       after
//! mov.b64 %rd1, k_param_1;
//! add.s64 %rd2, %rd1, 16;
//! ld.param.u32 %r1, [%rd2+4];                  ld.param.u32 %r1, [k_param_1+20];
//! ```
//!
//! Where the place follows from the text the read names it, and reads a member. Where only the run tells, the structure is
//! memory that nothing writes: the kernel gets a hidden pointer to it, as to a constant variable of the module.

use std::collections::{HashMap, HashSet};

use super::tree::{Body, Function, Instruction, Operand, Register, Statement};

/// Names the places that follow from the text.
pub(super) fn name_places<'t>(body: &mut Body<'t>, function: &Function<'t>) {
    let structures: HashSet<&str> = structures(function);
    if structures.is_empty() {
        return;
    }
    let definitions = body.definitions();
    let mut leads: HashMap<Register, (&'t str, i64)> = HashMap::new();
    // Definitions come before uses but in loops, where an address that grows is no place of its own. One register may have several
    // of one place: a plan's copies of a loop define what the loop defines.
    let mut changed = true;
    while changed {
        changed = false;
        let mut found: HashMap<Register, Vec<(&'t str, i64)>> = HashMap::new();
        for instruction in body
            .instructions()
            .filter(|instruction| instruction.guard.is_none())
        {
            if let Some(&Operand::Register(to)) = instruction.operands.first()
                && !leads.contains_key(&to)
                && let Some(place) = place(instruction, &structures, &leads)
            {
                found.entry(to).or_default().push(place);
            }
        }
        for (to, places) in found {
            let is_all = definitions
                .get(&to)
                .is_some_and(|&count| count as usize == places.len());
            if is_all && places.iter().all(|place| *place == places[0]) {
                leads.insert(to, places[0]);
                changed = true;
            }
        }
    }
    if leads.is_empty() {
        return;
    }
    for statement in &mut body.statements {
        let Statement::Instruction(instruction) = statement else {
            continue;
        };
        if is_read(instruction)
            && let Some(Operand::Address(base, offset)) = instruction.operands.get_mut(1)
            && let Operand::Register(register) = **base
            && let Some(&(name, start)) = leads.get(&register)
        {
            **base = Operand::Symbol(name);
            *offset = offset.wrapping_add(start);
        }
    }
    // Addresses that are not used any more: until none is left.
    body.remove_unread(|register| leads.contains_key(&register));
}

/// The structures whose address a body takes.
pub(super) fn taken<'t>(body: &Body<'t>, function: &Function<'t>) -> HashSet<&'t str> {
    let structures = structures(function);
    let mut found = HashSet::new();
    for instruction in body.instructions().filter(|instruction| !is_read(instruction)) {
        for operand in &instruction.operands {
            if let Some((name, _)) = named(operand)
                && structures.contains(name)
            {
                found.insert(name);
            }
        }
    }
    found
}

fn structures<'t>(function: &Function<'t>) -> HashSet<&'t str> {
    let params = function.params.iter().filter(|param| param.array.is_some());
    params.map(|param| param.name).collect()
}

fn is_read(instruction: &Instruction<'_>) -> bool {
    instruction.opcode == "ld" && instruction.has("param")
}

/// A name as an address, with what is added.
fn named<'t>(operand: &Operand<'t>) -> Option<(&'t str, i64)> {
    match operand {
        Operand::Symbol(name) => Some((name, 0)),
        Operand::Address(base, offset) => match **base {
            Operand::Symbol(name) => Some((name, *offset)),
            _ => None,
        },
        _ => None,
    }
}

/// The place that an instruction's result leads to, if the text says it.
fn place<'t>(
    instruction: &Instruction<'t>,
    structures: &HashSet<&str>,
    leads: &HashMap<Register, (&'t str, i64)>,
) -> Option<(&'t str, i64)> {
    let of = |operand: &Operand<'t>| match operand {
        Operand::Register(register) => leads.get(register).copied(),
        other => named(other).filter(|(name, _)| structures.contains(name)),
    };
    match (instruction.opcode, &instruction.operands[..]) {
        ("mov", [_, from]) => of(from),
        ("add", [_, from, Operand::Integer(bytes)]) if !instruction.has("cc") => {
            let (name, start) = of(from)?;
            Some((name, start.wrapping_add(*bytes as i64)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Facts, import};

    /// The parameters of an entry that takes a structure's address in `%rd2`.
    fn parameters(statements: &str) -> Vec<String> {
        let text = format!(
            ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 out, .param .align 8 .b8 all[32])\n{{\n\
             .reg .b32 %r<9>;\n.reg .b64 %rd<9>;\nld.param.u64 %rd1, [out];\n{statements}\nld.param.u32 %r1, [%rd2+4];\n\
             st.global.u32 [%rd1], %r1;\nret;\n}}\n"
        );
        let imported =
            import(&text, "k.ptx", None, &Facts::default()).unwrap_or_else(|error| panic!("{error}"));
        imported
            .kernel
            .params
            .iter()
            .map(|param| param.name.clone())
            .collect()
    }

    #[test]
    fn a_place_that_all_definitions_lead_to_is_a_member() {
        let once = "mov.b64 %rd3, all;\nadd.s64 %rd2, %rd3, 16;\n";
        assert_eq!(parameters(once), ["out", "all_20"]);
        // As in the copies of a loop.
        assert_eq!(parameters(&once.repeat(3)), ["out", "all_20"]);
        // Then only the run tells.
        for other in ["add.s64 %rd2, %rd3, 8;\n", "add.s64 %rd2, %rd2, 4;\n"] {
            assert!(
                parameters(&format!("{once}{other}")).contains(&"all".to_owned()),
                "{other}"
            );
        }
    }
}
