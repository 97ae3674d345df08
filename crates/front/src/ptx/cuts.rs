//! Loops that are cut out of an entry: where they begin and end, and which registers go in and come out.
//!
//! ```text
//! before                          after
//! B1: … jump H                    B1: … jump E          E: enter (%r1, %rd4); jump H
//! H:  … branch %p → H, B3         H:  … branch %p → H, X
//! B3: …                           X:  leave (%r1); jump B3
//! ```
//!
//! What the loop reads is what `enter` gives, and what the code outside reads is what `leave` gives: the passes that shape loops
//! work in between, and the loop can be taken out as a piece with the registers as parameters and results.
//!
//! An exit is at a statement of the text. Where a loop is left inside of one (a guarded `ret`), what follows belongs to the loop
//! up to the next statement.

use std::ops::Range;

use super::flow::Flow;
use super::live::Live;
use super::tree::{Body, Instruction, Operand, Register, Statement};
use crate::error::{Error, Result};
use crate::middle::flow::{self, BlockId, End};
use crate::suggest::quoted;

/// The instructions that stand for the edges of a loop that is cut out: no words of PTX.
pub(super) const ENTER: &str = "<enter>";
/// See [`ENTER`].
pub(super) const LEAVE: &str = "<leave>";

/// A loop that is cut out.
#[derive(Clone, Debug)]
pub(super) struct Found {
    /// Its header.
    block: BlockId,
    /// For each block whether it belongs to the loop, or lies behind it before the next statement.
    inside: Vec<bool>,
    /// The statement that its header is: a label.
    pub header: u32,
    /// The registers that it reads, in order.
    pub inputs: Vec<Register>,
    /// Its exits.
    pub exits: Vec<FoundExit>,
    /// The jumps to the header from outside the loop.
    pub jumps: Vec<u32>,
}

/// A way out of a loop.
#[derive(Clone, Debug)]
pub(super) struct FoundExit {
    /// Where it leads to.
    block: BlockId,
    /// The statement that this starts with.
    pub target: u32,
    /// The registers that the loop has written and the code there may read, in order.
    pub outputs: Vec<Register>,
}

/// Finds the loops with these headers in an entry; `own` is the body as it was read, `flow` the graph of it with calls written
/// out.
///
/// # Errors
/// A loop is not there, or has an edge that no statement stands at.
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
    let inside = inside(flow, block).ok_or("it is left in the middle of a statement")?;
    let registers = own.registers.len();
    let (mut named, mut written) = (vec![false; registers], vec![false; registers]);
    let blocks = || {
        (0..flow.blocks.len())
            .filter(|&block| inside[block])
            .map(|block| &flow.blocks[block])
    };
    for block in blocks() {
        for instruction in &block.instructions {
            mark(instruction.read(), &mut named);
            mark(instruction.written(), &mut named);
            mark(instruction.written(), &mut written);
        }
        if let End::Branch { predicate, .. } = block.end {
            mark(&[Operand::Register(predicate)], &mut named);
        }
    }
    let all = |of: &[bool], at: u32| -> Vec<Register> {
        let live = live.before(at);
        let all = 0..registers as Register;
        all.filter(|&register| of[register as usize] && live.contains(register))
            .collect()
    };
    let scope = own.spans[header as usize].scope;
    let mut exits = Vec::new();
    for block in left_for(flow, &inside) {
        let target = flow.blocks[block].start;
        let is_visible = |&target: &u32| own.is_around(own.spans[target as usize].scope, scope);
        let target = target.filter(is_visible);
        let target = target.ok_or("it is left for a block of its own")?;
        let outputs = all(&written, target);
        exits.push(FoundExit {
            block,
            target,
            outputs,
        });
    }
    let ends: Vec<u32> = blocks().filter_map(|block| block.last).collect();
    let jumps = (0..own.statements.len() as u32)
        .filter(|number| leads_to(own, &own.statements[*number as usize], header) && !ends.contains(number));
    Ok(Found {
        jumps: jumps.collect(),
        inputs: all(&named, header),
        block,
        header,
        exits,
        inside,
    })
}

/// Whether a statement jumps to the label that this statement is.
fn leads_to(own: &Body<'_>, statement: &Statement<'_>, target: u32) -> bool {
    let Statement::Instruction(jump) = statement else {
        return false;
    };
    let is_target = |operand: &Operand<'_>| match operand {
        Operand::Label(label) => own.labels[*label as usize].number == Some(target),
        _ => false,
    };
    jump.opcode == "bra" && jump.operands.iter().any(is_target)
}

/// Whether a loop's header has this label, as kernels name it.
fn is_called(flow: &Flow<'_, '_>, block: BlockId, name: &str) -> bool {
    let label = flow.blocks[block].label.as_deref();
    label.is_some_and(|label| label.trim_start_matches('$') == name)
}

/// The blocks of a loop, and those behind it up to the next statement; none if such a block is reached from elsewhere.
fn inside(flow: &Flow<'_, '_>, header: BlockId) -> Option<Vec<bool>> {
    let mut inside: Vec<bool> = (0..flow.blocks.len())
        .map(|block| flow.contains(header, block))
        .collect();
    let mut work: Vec<BlockId> = (0..flow.blocks.len()).filter(|&block| inside[block]).collect();
    let mut behind = Vec::new();
    while let Some(block) = work.pop() {
        for to in flow.blocks[block].end.targets() {
            if !inside[to] && flow.blocks[to].start.is_none() {
                inside[to] = true;
                behind.push(to);
                work.push(to);
            }
        }
    }
    let alone = |&block: &BlockId| flow.predecessors[block].iter().all(|&from| inside[from]);
    behind.iter().all(alone).then_some(inside)
}

/// The blocks outside that those inside jump to, each once, in order.
fn left_for(flow: &Flow<'_, '_>, inside: &[bool]) -> Vec<BlockId> {
    let mut found: Vec<BlockId> = (0..flow.blocks.len())
        .filter(|&block| inside[block])
        .flat_map(|block| flow.blocks[block].end.targets())
        .filter(|&to| !inside[to])
        .collect();
    found.sort_unstable();
    found.dedup();
    found
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

/// The instructions at the edges of loops: for each loop that at its header, then those at its exits.
pub(super) fn edges<'t>(cuts: &[Found]) -> Vec<Vec<Instruction<'t>>> {
    let edge = |opcode: &'static str, at: (usize, usize), registers: &[Register], statement: u32| {
        let list = |registers: &[Register]| {
            Operand::List(
                registers
                    .iter()
                    .map(|&register| Operand::Register(register))
                    .collect(),
            )
        };
        Instruction {
            opcode,
            modifiers: Vec::new(),
            guard: None,
            operands: vec![
                list(registers),
                list(registers),
                Operand::Integer(at.0 as u64),
                Operand::Integer(at.1 as u64),
            ],
            line: 0,
            number: statement,
            location: None,
        }
    };
    let all = cuts.iter().enumerate().map(|(number, cut)| {
        let enter = edge(ENTER, (number, 0), &cut.inputs, cut.header);
        let leave = cut
            .exits
            .iter()
            .enumerate()
            .map(|(exit, own)| edge(LEAVE, (number, exit), &own.outputs, own.target));
        std::iter::once(enter).chain(leave).collect()
    });
    all.collect()
}

/// The graph in which the loops were found, with a block at each edge.
///
/// # Errors
/// Those of a flow graph.
pub(super) fn with_edges<'b, 't>(
    flow: Flow<'b, 't>,
    cuts: &[Found],
    edges: &'b [Vec<Instruction<'t>>],
) -> Result<Flow<'b, 't>> {
    let mut blocks = flow.blocks;
    for (cut, edges) in cuts.iter().zip(edges) {
        let is_inside = |block: BlockId| cut.inside.get(block) == Some(&true);
        let mut add = |instruction: &'b Instruction<'t>, to: BlockId, inside: bool| {
            let added = blocks.len();
            for (_, block) in (0..)
                .zip(&mut blocks)
                .filter(|(own, _)| is_inside(*own) == inside)
            {
                block.end = block.end.map(|target| if target == to { added } else { target });
            }
            blocks.push(flow::Block {
                instructions: vec![instruction],
                end: End::Jump(to),
                label: None,
                start: None,
                last: None,
                line: instruction.line,
                keeps_loop: false,
            });
        };
        for (exit, leave) in cut.exits.iter().zip(&edges[1..]) {
            add(leave, exit.block, true);
        }
        add(&edges[0], cut.block, false);
    }
    Flow::new(blocks, "line")
}

/// A loop that is cut out, as the text has it.
#[derive(Clone, Debug)]
pub struct CutLoop {
    /// Its header's label.
    pub label: String,
    /// Where the label stands: the byte of the text.
    pub header: usize,
    /// The jumps to it from outside: where its name stands in each.
    pub jumps: Vec<Range<usize>>,
    /// The registers that go in, in the order of the edge's values.
    pub inputs: Vec<CutRegister>,
    /// The ways out.
    pub exits: Vec<CutExit>,
    /// Why it cannot be written again, if it cannot.
    pub undecided: Option<Error>,
}

/// A way out of a loop.
#[derive(Clone, Debug)]
pub struct CutExit {
    /// Where it leads to.
    pub target: Target,
    /// The registers that come out, in the order of the edge's values.
    pub outputs: Vec<CutRegister>,
}

/// A statement of an entry that a loop is left for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A label.
    Label(String),
    /// A statement without one, at this byte of the text.
    Statement(usize),
}

/// A register of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CutRegister {
    /// Its name.
    pub name: String,
    /// Its declared type: `pred`, `b32`, `f64`.
    pub ty: String,
}

/// What the text has at the edges of loops.
///
/// # Errors
/// A register at an edge is declared in a block of its own.
pub(super) fn in_text(
    text: &str,
    own: &Body<'_>,
    cuts: &[Found],
    entered: &[Vec<Register>],
    undecided: Vec<Option<Error>>,
) -> Result<Vec<CutLoop>> {
    let label_at = |statement: u32, scope: u32| match own.statements.get(statement as usize) {
        Some(Statement::Label(label)) if own.names_label(scope, *label) => {
            Some(own.labels[*label as usize].name)
        }
        _ => None,
    };
    let register = |register: Register, scope: u32| {
        let data = &own.registers[register as usize];
        let is_moved = matches!(data.ty, "pred") || matches!(&data.ty[1..], "16" | "32" | "64");
        match is_moved && own.names_register(scope, register) {
            false => Err(Error::input(format!(
                "the loop cannot be edited: register {} of type `.{}` goes over its edge",
                quoted(data.name),
                data.ty
            ))
            .accepted("predicates and registers of 16, 32 or 64 bits that have their names there")),
            true => Ok(CutRegister {
                name: data.name.to_owned(),
                ty: data.ty.to_owned(),
            }),
        }
    };
    let registers = |all: &[Register], scope: u32| {
        let all = all.iter().map(|&own| register(own, scope));
        all.collect::<Result<Vec<_>>>()
    };
    let all = cuts.iter().zip(entered).zip(undecided);
    all.map(|((cut, entered), undecided)| {
        let scope = own.spans[cut.header as usize].scope;
        let label = label_at(cut.header, scope).ok_or_else(|| Error::bug("a loop's header has no label"))?;
        let start = |statement: u32| own.spans[statement as usize].start;
        let jumps = cut.jumps.iter().map(|&jump| {
            let span = &own.spans[jump as usize];
            let at = text[span.start..span.end].rfind(label);
            let at = at.ok_or_else(|| Error::bug("a jump without its label"))?;
            Ok(span.start + at..span.start + at + label.len())
        });
        let exits = cut.exits.iter().map(|exit| {
            Ok(CutExit {
                target: match label_at(exit.target, scope) {
                    Some(label) => Target::Label(label.to_owned()),
                    None => Target::Statement(start(exit.target)),
                },
                outputs: registers(&exit.outputs, scope)?,
            })
        });
        Ok(CutLoop {
            label: label.to_owned(),
            header: start(cut.header),
            jumps: jumps.collect::<Result<_>>()?,
            inputs: registers(entered, scope)?,
            exits: exits.collect::<Result<_>>()?,
            undecided,
        })
    })
    .collect()
}
