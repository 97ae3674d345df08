//! Copies that are not read: prefetches into L1 in the form that fills it.
//!
//! ```text
//! before                                          after
//! .shared .b8 scratch[512];
//! mov.u32 r, scratch;
//! cp.async.ca.shared.global [r], [a], 4;          prefetch.global.L1 [a];
//! ```
//!
//! A hint for L1 fills only L2 on the GPUs that we know; an asynchronous copy fills both. Programs, and modules that we wrote,
//! copy to shared memory for that purpose alone. Such copies overlap in flight, which would be a race in memory that anyone
//! reads. Memory touched only by such copies has no reader, so only their effect as hints remains. A copy faults out of bounds
//! and a hint does not: the checks do not find that for these copies.

use std::collections::{HashMap, HashSet};

use super::tree::{Body, Instruction, Operand, Register, Statement};

/// Instructions whose result is an address if an operand is one, and that do nothing else with it.
const ADDRESS_ARITHMETIC: &[&str] = &["mov", "add", "sub", "mul", "mad", "shl", "cvta", "cvt", "or"];

/// Where a register's address may lead: shared variables by name.
type Leads<'t> = HashMap<Register, HashSet<&'t str>>;

/// Replaces the copies to variables that only copies touch; `shared` are the names of those of a known size.
pub(super) fn copies_to_hints<'t>(body: &mut Body<'t>, shared: &HashSet<&'t str>) {
    if !body.instructions().any(is_copy) {
        return;
    }
    let leads = leads(body, shared);
    let touched = touched_otherwise(body, &leads, shared);
    for statement in &mut body.statements {
        let Statement::Instruction(instruction) = statement else {
            continue;
        };
        if !is_copy(instruction) {
            continue;
        }
        let [to, from, Operand::Integer(_)] = &instruction.operands[..] else {
            continue;
        };
        let reached = reached(to, &leads, shared);
        if reached.len() == 1 && reached.is_disjoint(&touched) {
            let from = from.clone();
            instruction.opcode = "prefetch";
            instruction.modifiers = vec!["global", "L1"];
            instruction.operands = vec![from];
        }
    }
}

/// A copy through L1 of all its bytes: with a fourth operand it may copy less.
fn is_copy(instruction: &Instruction<'_>) -> bool {
    instruction.opcode == "cp"
        && matches!(instruction.modifiers[..], ["async", "ca", ..])
        && instruction.operands.len() == 3
}

/// The shared variables that an operand may lead to.
fn reached<'t>(operand: &Operand<'t>, leads: &Leads<'t>, shared: &HashSet<&'t str>) -> HashSet<&'t str> {
    let mut found = HashSet::new();
    operand.for_each_register(&mut |register| found.extend(leads.get(&register).into_iter().flatten()));
    symbols(operand, &mut |name| {
        if shared.contains(name) {
            found.insert(name);
        }
    });
    found
}

fn symbols<'t>(operand: &Operand<'t>, visit: &mut impl FnMut(&'t str)) {
    match operand {
        Operand::Symbol(name) => visit(name),
        Operand::Address(base, _) => symbols(base, visit),
        Operand::Vector(parts) | Operand::List(parts) => parts.iter().for_each(|part| symbols(part, visit)),
        Operand::Pair(a, b) => {
            symbols(a, visit);
            symbols(b, visit);
        }
        _ => {}
    }
}

/// Follows addresses through registers, in whatever order the instructions run.
fn leads<'t>(body: &Body<'t>, shared: &HashSet<&'t str>) -> Leads<'t> {
    let mut leads = Leads::new();
    loop {
        let mut grew = false;
        for instruction in body.instructions() {
            let mut from = HashSet::new();
            for operand in instruction.read() {
                from.extend(reached(operand, &leads, shared));
            }
            if from.is_empty() {
                continue;
            }
            for operand in instruction.written() {
                operand.for_each_register(&mut |register| {
                    let to = leads.entry(register).or_default();
                    let before = to.len();
                    to.extend(&from);
                    grew |= to.len() > before;
                });
            }
        }
        if !grew {
            return leads;
        }
    }
}

/// The variables that something else than a copy to them may touch, or whose address goes where it is not followed.
fn touched_otherwise<'t>(body: &Body<'t>, leads: &Leads<'t>, shared: &HashSet<&'t str>) -> HashSet<&'t str> {
    let mut touched = HashSet::new();
    for instruction in body.instructions() {
        if ADDRESS_ARITHMETIC.contains(&instruction.opcode) {
            continue;
        }
        // Of a copy the source counts, and a destination that may be one of several.
        let operands = &instruction.operands;
        let whole = usize::from(is_copy(instruction));
        let mut all: Vec<HashSet<&str>> = operands[whole..]
            .iter()
            .map(|operand| reached(operand, leads, shared))
            .collect();
        if whole == 1 {
            let to = reached(&operands[0], leads, shared);
            all.extend((to.len() > 1).then_some(to));
        }
        touched.extend(all.into_iter().flatten());
    }
    touched
}

#[cfg(test)]
mod tests {
    use crate::ir::print;
    use crate::ptx::{Facts, read};

    /// Two copies in flight to one word, and what follows them.
    fn entry(after: &str) -> String {
        format!(
            ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p, .param .u64 q)\n{{\n\
             .reg .b32 %r<5>;\n.reg .b64 %rd<6>;\n.shared .align 4 .b8 scratch[128];\n\
             ld.param.u64 %rd1, [p];\ncvta.to.global.u64 %rd2, %rd1;\n\
             ld.param.u64 %rd3, [q];\ncvta.to.global.u64 %rd4, %rd3;\n\
             mov.u32 %r1, scratch;\nmov.u32 %r2, %tid.x;\nshl.b32 %r3, %r2, 2;\nadd.s32 %r1, %r1, %r3;\n\
             cp.async.ca.shared.global [%r1], [%rd2], 4;\ncp.async.ca.shared.global [%r1], [%rd2+512], 4;\n\
             cp.async.wait_all;\n{after}ret;\n}}\n"
        )
    }

    fn printed(after: &str) -> String {
        let kernel = read(&entry(after), "k.ptx", Some("k"), &Facts::default());
        print(&kernel.unwrap_or_else(|error| panic!("{error}")))
    }

    #[test]
    fn copies_that_nobody_reads_are_hints() {
        let text = printed("");
        assert_eq!(text.matches("prefetch").count(), 2, "{text}");
        assert!(!text.contains("copy"), "{text}");
    }

    #[test]
    fn copies_that_somebody_may_read_stay() {
        for after in [
            "ld.shared.u32 %r4, [%r1];\nst.global.u32 [%rd4], %r4;\n",
            "st.shared.u32 [scratch+4], %r2;\n",
            "cvt.u64.u32 %rd5, %r1;\nst.global.u64 [%rd4], %rd5;\n",
        ] {
            let text = printed(after);
            assert_eq!(text.matches("copy").count(), 2, "{text}");
            assert!(!text.contains("prefetch"), "{text}");
        }
    }
}
