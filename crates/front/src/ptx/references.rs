//! Where the code of an entry, and of all functions that it may call, names variables of the module.

use std::collections::HashSet;
use std::ops::Range;

use super::inline::callee;
use super::tree::{Body, Function, Instruction, Module, Operand, Statement};
use super::{body, entry_of, parse};
use crate::error::Result;

/// A statement that names variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Where it stands in the module's text.
    pub span: Range<usize>,
    /// The variables that it names, each once.
    pub variables: Vec<String>,
    /// What it does with them.
    pub use_: VariableUse,
}

/// What a statement does with a variable that it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VariableUse {
    /// `mov.u64 %rd1, table+8`: its only operand besides the register is the address.
    Address {
        /// Bytes behind the variable's start.
        offset: i64,
    },
    /// `ld.global.f32 %f1, [table+8]`: it is in brackets.
    Access,
    /// Something else.
    Other,
}

/// What an entry's code says of the module's variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct References {
    /// The statements, function by function.
    pub all: Vec<Reference>,
    /// Where statements stand that take a register for an address of constant memory.
    pub through_registers: Vec<Range<usize>>,
    /// Whether the address of another variable of constant memory is taken, so that these may lead there.
    pub takes_others: bool,
    /// Whether a function is called through a pointer, so that others may be called, too.
    pub calls_any: bool,
    /// Where declarations may be added so that all of the statements see them.
    pub declarations: usize,
}

/// Finds the statements of an entry, and of what it calls, that name one of these variables.
///
/// # Errors
/// There is no such entry, or a body cannot be read.
pub(super) fn references(text: &str, entry: &str, variables: &HashSet<&str>) -> Result<References> {
    let module = parse::module(text)?;
    let first = entry_of(&module, entry)?;
    let mut found = References {
        all: Vec::new(),
        through_registers: Vec::new(),
        takes_others: false,
        calls_any: false,
        declarations: first_function(&module),
    };
    let constants = module.variables.iter().filter(|own| own.space == "const");
    let others: HashSet<&str> = constants
        .map(|own| own.name)
        .filter(|name| !variables.contains(name))
        .collect();
    let mut seen: HashSet<&str> = HashSet::new();
    let mut work = vec![first];
    while let Some(function) = work.pop() {
        let own = body::body(text, function)?;
        for (statement, span) in own.statements.iter().zip(&own.spans) {
            let Statement::Instruction(instruction) = statement else {
                continue;
            };
            if instruction.opcode == "call" {
                match callee(instruction).filter(|name| !name.starts_with('%')) {
                    Some(name) => {
                        let called = module.functions.iter().find(|other| other.name == name);
                        work.extend(called.filter(|called| seen.insert(called.name)));
                    }
                    None => found.calls_any = true,
                }
            }
            if instruction.has("const") && !is_access_by_name(instruction) {
                found.through_registers.push(span.start..span.end);
            }
            let takes = matches!(
                use_of(instruction),
                VariableUse::Address { .. } | VariableUse::Other
            );
            found.takes_others |= takes && !named(&own, instruction, &others).is_empty();
            let named = named(&own, instruction, variables);
            if !named.is_empty() {
                found.all.push(Reference {
                    span: span.start..span.end,
                    variables: named,
                    use_: use_of(instruction),
                });
            }
        }
    }
    Ok(found)
}

/// Where the first function of a module starts.
fn first_function(module: &Module<'_>) -> usize {
    let all = module.functions.iter().chain(&module.declared);
    all.map(|function: &Function<'_>| function.start)
        .min()
        .unwrap_or(0)
}

/// The variables that an instruction names; one that its body declares is none of the module's.
fn named(own: &Body<'_>, instruction: &Instruction<'_>, variables: &HashSet<&str>) -> Vec<String> {
    let mut found = Vec::new();
    for operand in &instruction.operands {
        operand.for_each_symbol(&mut |name| found.push(name));
    }
    found.retain(|name| variables.contains(name) && own.variables.iter().all(|own| own.name != *name));
    found.sort_unstable();
    found.dedup();
    found.into_iter().map(str::to_owned).collect()
}

/// Whether an instruction names the memory that it accesses, rather than a register.
fn is_access_by_name(instruction: &Instruction<'_>) -> bool {
    let names = |operand: &Operand<'_>| match operand {
        Operand::Address(base, _) => matches!(**base, Operand::Symbol(_)),
        Operand::Symbol(_) => true,
        _ => false,
    };
    instruction.operands.iter().any(names)
}

fn use_of(instruction: &Instruction<'_>) -> VariableUse {
    match (instruction.opcode, &instruction.operands[..]) {
        ("mov" | "cvta", [Operand::Register(_), from])
            if matches!(instruction.last(), "u64" | "b64" | "s64") =>
        {
            match from {
                Operand::Symbol(_) => VariableUse::Address { offset: 0 },
                Operand::Address(base, offset) if matches!(**base, Operand::Symbol(_)) => {
                    VariableUse::Address { offset: *offset }
                }
                _ => VariableUse::Other,
            }
        }
        ("ld" | "ldu" | "st" | "atom" | "red" | "prefetch" | "prefetchu" | "cp", _) => VariableUse::Access,
        _ => VariableUse::Other,
    }
}
