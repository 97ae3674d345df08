//! Loops of an entry that are planned: where they stand in the text, and which registers go in.
//!
//! ```text
//! before                          after
//! B1: … jump H                    B1: … jump E          E: enter (%r1, %rd4); jump H
//! H:  … branch %p → H, B3         H:  … branch %p → H, B3
//! ```
//!
//! What a plan puts in front of the loop and between copies of it reads registers of the text as they are at `enter`. The copies
//! are of the text itself ([`LoopInText`](super::LoopInText)).

use std::collections::HashSet;

use super::flow::Flow;
use super::live::Live;
use super::tree::{Body, ENTER, Instruction, Operand, Register, Statement, TOKEN};
use crate::error::{Error, Result};
use crate::middle::flow::{self, BlockId, End};
use crate::suggest::quoted;

/// A planned loop.
#[derive(Clone, Debug)]
pub(super) struct Found {
    /// Its header.
    block: BlockId,
    /// For each block whether it belongs to the loop.
    inside: Vec<bool>,
    /// The statement that its header is: a label.
    pub header: u32,
    /// The statements that belong to it.
    pub statements: HashSet<u32>,
    /// The registers that it reads, in order.
    pub inputs: Vec<Register>,
    /// The jumps to the header from outside the loop.
    pub jumps: Vec<u32>,
    /// Groups of asynchronous copies are made or waited for in it.
    pub copies: bool,
}

/// Finds the loops with these headers in an entry; `own` is the body as it was read, `flow` the graph of it with calls written
/// out.
///
/// # Errors
/// A loop is not there, or its header is no statement.
pub(super) fn find(own: &Body<'_>, flow: &Flow<'_, '_>, headers: &[String]) -> Result<Vec<Found>> {
    let live = Live::of(own);
    let refused = |header: &str, why: &str| {
        Error::input(format!("loop {} cannot be edited: {why}", quoted(header)))
            .accepted("loops of the entry itself, which begin at a label")
    };
    let all = headers
        .iter()
        .map(|header| found(own, flow, &live, header).map_err(|why| refused(header, why)));
    all.collect()
}

/// One of them, or why it cannot be cut out.
fn found(
    own: &Body<'_>,
    flow: &Flow<'_, '_>,
    live: &Live<'_, '_>,
    name: &str,
) -> std::result::Result<Found, &'static str> {
    let is_it = |&block: &BlockId| flow.is_header[block] && is_called(flow, block, name);
    let block = (0..flow.blocks.len()).find(is_it);
    let block = block.ok_or("it is made of no loop of the entry")?;
    let header = flow.blocks[block].start;
    let header = header.ok_or("it lies in a function that is called")?;
    let inside: Vec<bool> = (0..flow.blocks.len())
        .map(|other| flow.contains(block, other))
        .collect();
    let within = || {
        flow.blocks
            .iter()
            .zip(&inside)
            .filter(|(_, inside)| **inside)
            .map(|(block, _)| block)
    };
    if within().any(|block| block.is_copied) {
        return Err("it can be entered beside its first block");
    }
    let mut named = vec![false; own.registers.len()];
    let mut statements = HashSet::from([header]);
    let mut copies = false;
    for block in within() {
        statements.extend(block.start.into_iter().chain(block.last));
        for instruction in &block.instructions {
            statements.insert(instruction.number);
            mark(instruction.read(), &mut named);
            mark(instruction.written(), &mut named);
            copies |= matches!(instruction.opcode, "wait" | TOKEN)
                || instruction.opcode == "cp" && !instruction.has("bulk");
        }
        if let End::Branch { predicate, .. } = block.end {
            mark(&[Operand::Register(predicate)], &mut named);
        }
    }
    if own
        .statements
        .iter()
        .any(|statement| may_jump_to(own, statement, header))
    {
        return Err("a computed jump leads to it");
    }
    extend_to_removed(own, flow, &mut statements);
    let mut in_text = statements
        .iter()
        .filter_map(|&number| own.statements.get(number as usize));
    copies |= in_text.any(is_of_copies);
    let at_header = live.before(header);
    let inputs = (0..own.registers.len() as Register)
        .filter(|&register| named[register as usize] && at_header.contains(register));
    let inputs: Vec<Register> = inputs.collect();
    // Each copy of the text has a register of its own for it.
    let scope = own.spans[header as usize].scope;
    if !inputs.iter().all(|&register| own.names_register(scope, register)) {
        return Err("a register that a block inside declares may be read before an iteration writes it");
    }
    let jumps = (0..own.statements.len() as u32).filter(|number| {
        leads_to(own, &own.statements[*number as usize], header) && !statements.contains(number)
    });
    Ok(Found {
        jumps: jumps.collect(),
        inputs,
        block,
        header,
        inside,
        statements,
        copies,
    })
}

/// Adds the statements of which nothing is left in the graph, between statements of the loop: waits for copies that became hints.
fn extend_to_removed(own: &Body<'_>, flow: &Flow<'_, '_>, statements: &mut HashSet<u32>) {
    let mut kept = HashSet::new();
    for block in &flow.blocks {
        kept.extend(block.start.into_iter().chain(block.last));
        kept.extend(block.instructions.iter().map(|instruction| instruction.number));
    }
    let count = own.statements.len() as u32;
    for number in (1..count).filter(|number| !kept.contains(number)) {
        let next = (number..count).find(|number| kept.contains(number));
        if statements.contains(&(number - 1)) && next.is_some_and(|next| statements.contains(&next)) {
            statements.insert(number);
        }
    }
}

/// Whether a statement makes groups of asynchronous copies, or waits for them.
fn is_of_copies(statement: &Statement<'_>) -> bool {
    let Statement::Instruction(instruction) = statement else {
        return false;
    };
    instruction.opcode == "cp" && instruction.has("async") && !instruction.has("bulk")
}

/// Whether a statement jumps to the label that this statement is.
fn leads_to(own: &Body<'_>, statement: &Statement<'_>, target: u32) -> bool {
    jump(statement, "bra").is_some_and(|jump| jump.operands.iter().any(|operand| names(own, operand, target)))
}

/// Whether a statement is a computed jump that may lead to the label that this statement is.
fn may_jump_to(own: &Body<'_>, statement: &Statement<'_>, target: u32) -> bool {
    jump(statement, "brx").is_some_and(|jump| match &jump.operands[..] {
        [.., Operand::List(targets)] => targets.iter().any(|operand| names(own, operand, target)),
        _ => true,
    })
}

/// The jump of this kind that a statement is.
fn jump<'s, 't>(statement: &'s Statement<'t>, opcode: &str) -> Option<&'s Instruction<'t>> {
    match statement {
        Statement::Instruction(instruction) if instruction.opcode == opcode => Some(instruction),
        _ => None,
    }
}

/// Whether an operand is the label that this statement is.
fn names(own: &Body<'_>, operand: &Operand<'_>, target: u32) -> bool {
    matches!(operand, Operand::Label(label) if own.labels[*label as usize].number == Some(target))
}

/// Whether a loop's header has this label, as kernels name it.
fn is_called(flow: &Flow<'_, '_>, block: BlockId, name: &str) -> bool {
    let label = flow.blocks[block].label.as_deref();
    label.is_some_and(|label| label.trim_start_matches('$') == name)
}

fn mark(operands: &[Operand<'_>], registers: &mut [bool]) {
    for operand in operands {
        operand.for_each_register(&mut |register| {
            if let Some(known) = registers.get_mut(register as usize) {
                *known = true;
            }
        });
    }
}

/// The instructions at the front edges of loops.
pub(super) fn edges<'t>(cuts: &[Found]) -> Vec<Instruction<'t>> {
    let all = cuts.iter().enumerate().map(|(number, cut)| {
        let list = || Operand::List(cut.inputs.iter().map(|&own| Operand::Register(own)).collect());
        Instruction {
            opcode: ENTER,
            modifiers: Vec::new(),
            guard: None,
            operands: vec![list(), list(), Operand::Integer(number as u64)],
            line: 0,
            number: cut.header,
            location: None,
        }
    });
    all.collect()
}

/// The graph in which the loops were found, with a block in front of each.
///
/// # Errors
/// Those of a flow graph.
pub(super) fn with_edges<'b, 't>(
    flow: Flow<'b, 't>,
    cuts: &[Found],
    edges: &'b [Instruction<'t>],
) -> Result<Flow<'b, 't>> {
    let mut blocks = flow.blocks;
    for (cut, edge) in cuts.iter().zip(edges) {
        let added = blocks.len();
        let is_inside = |block: BlockId| cut.inside.get(block) == Some(&true);
        for (_, block) in (0..).zip(&mut blocks).filter(|(own, _)| !is_inside(*own)) {
            block.end = block.end.map(|to| if to == cut.block { added } else { to });
        }
        blocks.push(flow::Block {
            instructions: vec![edge],
            end: End::Jump(cut.block),
            label: None,
            start: None,
            last: None,
            line: edge.line,
            keeps_loop: false,
            is_copied: false,
        });
    }
    Flow::new(blocks, "line")
}
