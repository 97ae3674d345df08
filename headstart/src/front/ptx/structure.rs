//! The flow graph to nested regions.
//!
//! ```text
//! before                              after
//! B0: … branch %p → B2, B1            …; if 'B2 %p { break 'B2 %a } else { …B1…; break 'B2 %b }  → %x
//! B1: … jump B2                       …B2 with %x…
//! B2(%x): …
//! ```
//!
//! A block's region holds the blocks that it dominates. Those that are reached in several ways, and those that
//! follow a loop, are labels to break to: they stand behind the operation that everything which jumps to them lies
//! in, in reverse postorder, and take their parameters as its results (Ramsey: "Beyond Relooper", for
//! regions with values). A block that is reached in one way stands where it is jumped to.

use std::collections::{HashMap, HashSet};

use super::carry::is_carrying;
use super::contract::{self, OpenHalves};
use super::facts::Facts;
use super::flow::{BlockId, End, Flow};
use super::kinds::Kinds;
use super::opaque::is_carried;
use super::slots::Slots;
use super::ssa::{left_loop, parameters};
use super::together::is_atomic_access;
use super::tree::{Body, Function, Instruction, Location, Operand, Register, Variable};
use super::values::Shapes;
use super::{copies, countdown, counters, kinds, library, parameters as given};
use crate::cleanup;
use crate::error::{Error, Fault, Result};
use crate::ir::{
    Array, Builder, FloatMode, Kernel, Label, LoopWishes, Op, OpKind, Place, PlaceData, Type, UnrollWish,
    Value, limits,
};
use crate::suggest::quoted;

/// What an entry is made of.
pub(super) struct Source<'a, 't> {
    /// The module's text.
    pub text: &'a str,
    /// What places call the text, where it names no source of its own.
    pub file: &'a str,
    /// The source files, by number.
    pub files: &'a [(u64, &'t str)],
    /// The entry.
    pub function: &'a Function<'t>,
    /// Its body.
    pub body: &'a Body<'t>,
    /// The variables that it mentions.
    pub variables: &'a HashMap<&'t str, &'a Variable<'t>>,
    /// The scalars that it is given.
    pub slots: &'a Slots<'t>,
    /// Its flow graph.
    pub flow: &'a Flow<'a, 't>,
    /// What its registers hold.
    pub kinds: &'a Kinds,
    /// Functions that the module declares and others have.
    pub declared: &'a [Function<'t>],
    /// What the caller knows.
    pub facts: &'a Facts,
}

/// What each register holds at some point.
pub(super) type Values = Vec<Option<Value>>;

/// Turns an entry into a kernel.
pub(super) struct Translator<'a, 't> {
    /// The entry.
    pub source: &'a Source<'a, 't>,
    /// The variables that are arrays of the kernel.
    pub arrays: HashMap<&'t str, Array>,
    /// The value of each slot.
    pub param_values: Vec<Value>,
    /// What is known of the values that addresses are made of.
    pub shapes: Shapes,
    parameters: Vec<Vec<Register>>,
    /// What stands behind a block's own code, or behind the loop that it is the header of.
    followers: Vec<Followers>,
    /// What to break to for a block.
    label_of: Vec<Option<Label>>,
    /// What to continue for the header of a loop.
    loop_of: Vec<Option<Label>>,
    places: HashMap<(Option<Location<'t>>, u32), Place>,
    /// Products and sums that an assembler may fuse.
    pub open: HashSet<Value>,
    /// Those of halves.
    pub open_halves: OpenHalves,
    /// An access through a generic address became one of the space that the address begins in.
    pub spaces_inferred: bool,
    /// Why results that come later keep the entry from being written back.
    pub in_flight: Option<Error>,
    depth: usize,
}

/// An entry as a kernel.
pub(super) struct Structured {
    pub kernel: Kernel,
    /// Why it cannot be written back, if it cannot.
    pub undecided: Option<Error>,
    /// [`Translator::spaces_inferred`].
    pub spaces_inferred: bool,
}

/// Blocks with labels, in reverse postorder.
#[derive(Clone, Debug, Default)]
struct Followers {
    inside: Vec<BlockId>,
    after_loop: Vec<BlockId>,
}

/// Where an edge leads to.
enum Edge {
    /// To a block that stands right there.
    Inline(BlockId),
    /// Back to the header of a loop.
    Continue(OpKind),
    /// To a label.
    Break(OpKind),
}

/// Turns an entry into a kernel, not yet verified; with it why it cannot be written back, if it cannot.
///
/// # Errors
/// An instruction or parameter that the IR cannot express, with its line.
pub(super) fn kernel(source: Source<'_, '_>) -> Result<Structured> {
    let mut kernel = Kernel::new(source.function.name);
    kernel.group_size = source.function.required_group;
    kernel.float_mode = FloatMode {
        // PTX says nothing of them, and what comes back as PTX is not to pay for more.
        any_nan: true,
    };
    let flow = source.flow;
    let mut followers = vec![Followers::default(); flow.blocks.len()];
    for block in 1..flow.blocks.len() {
        match left_loop(flow, block) {
            Some(header) => followers[header].after_loop.push(block),
            None if flow.forward_entries(block) > 1 => followers[flow.dominator[block]].inside.push(block),
            None => {}
        }
    }
    let mut translator = Translator {
        parameters: parameters(flow, source.body.registers.len()),
        followers,
        label_of: vec![None; flow.blocks.len()],
        loop_of: vec![None; flow.blocks.len()],
        places: HashMap::new(),
        arrays: HashMap::new(),
        param_values: Vec::new(),
        shapes: Shapes::default(),
        open: HashSet::new(),
        open_halves: OpenHalves::default(),
        spaces_inferred: false,
        in_flight: None,
        depth: 0,
        source: &source,
    };
    given::declare(&mut translator, &mut kernel)?;
    let mut builder = Builder::new(&mut kernel, Kernel::NOWHERE);
    let nothing = vec![None; source.body.registers.len()];
    translator.blocks(&mut builder, 0, nothing)?;
    let body = builder.finish();
    let open = std::mem::take(&mut translator.open);
    let open_halves = std::mem::take(&mut translator.open_halves);
    let spaces_inferred = translator.spaces_inferred;
    kernel.body = body;
    let in_flight = translator.in_flight.take();
    let undecided = contract::contract(&mut kernel, &open, &open_halves).or(in_flight);
    cleanup::own_exits(&mut kernel);
    cleanup::tidy(&mut kernel);
    if countdown::unwind(&mut kernel) {
        cleanup::tidy(&mut kernel);
    }
    counters::prepare(&mut kernel, source.facts.no_overflow);
    cleanup::tidy(&mut kernel);
    copies::merge(&mut kernel, source.file);
    Ok(Structured {
        kernel,
        undecided,
        spaces_inferred,
    })
}

impl<'t> Translator<'_, 't> {
    /// Writes the blocks that stand in one region, from `block` on, up to its terminator.
    fn blocks(&mut self, b: &mut Builder<'_>, block: BlockId, values: Values) -> Result<()> {
        self.depth += 1;
        if self.depth > limits::NESTING {
            return Err(
                Error::input("the entry's branches and loops are nested too deeply")
                    .at(self.line_of(block))
                    .accepted(format!("at most {} inside each other", limits::NESTING)),
            );
        }
        let mut next = Some((block, values));
        while let Some((block, values)) = next {
            next = match self.source.flow.is_header[block] {
                true => self.loop_(b, block, values)?,
                false => self.block(b, block, values)?,
            };
        }
        self.depth -= 1;
        Ok(())
    }

    fn line_of(&self, block: BlockId) -> String {
        format!("line {}", self.source.flow.blocks[block].line)
    }

    /// Writes a loop; what follows it is given back, to be written behind it.
    fn loop_(
        &mut self,
        b: &mut Builder<'_>,
        header: BlockId,
        values: Values,
    ) -> Result<Option<(BlockId, Values)>> {
        let followers = std::mem::take(&mut self.followers[header].after_loop);
        let opened = self.open(b, followers.get(1..).unwrap_or_default())?;
        let results = match followers.first() {
            Some(&first) => self.parameter_types(first)?,
            None => Vec::new(),
        };
        let name = self.source.flow.blocks[header].label;
        let name = name.map(|name| name.trim_start_matches('$').to_owned());
        let label = b.kernel.label(name, results.clone());
        self.loop_of[header] = Some(label);
        if let Some(&first) = followers.first() {
            self.label_of[first] = Some(label);
        }
        let registers = self.parameters[header].clone();
        let initial = self.arguments(b, header, &values)?;
        let params: Vec<Value> = initial.iter().map(|&value| b.kernel.value_like(value)).collect();
        let mut inside = values.clone();
        for (&register, &param) in registers.iter().zip(&params) {
            inside[register as usize] = Some(param);
        }
        let place = self.block_place(b, header);
        let before = b.begin_region();
        self.deeper(header)?;
        let mut next = self.block(b, header, inside)?;
        if let Some((block, values)) = next.take() {
            self.blocks(b, block, values)?;
        }
        self.depth -= 1;
        let body = b.end_region(before);
        b.at(place);
        let kind = OpKind::Loop {
            label,
            params,
            initial,
            body,
            wishes: LoopWishes {
                unroll: (!self.source.flow.blocks[header].keeps_loop).then_some(UnrollWish::Auto),
                plan: None,
            },
        };
        let results = b.push(kind, &results);
        self.follow(b, &followers, opened, results, values)
    }

    fn deeper(&mut self, block: BlockId) -> Result<()> {
        self.depth += 1;
        match self.depth > limits::NESTING {
            true => Err(
                Error::input("the entry's branches and loops are nested too deeply").at(self.line_of(block)),
            ),
            false => Ok(()),
        }
    }

    /// Writes a block; the one that stands behind it in the same region is given back.
    fn block(
        &mut self,
        b: &mut Builder<'_>,
        block: BlockId,
        mut values: Values,
    ) -> Result<Option<(BlockId, Values)>> {
        let flow = self.source.flow;
        let source = &flow.blocks[block];
        for &instruction in &source.instructions {
            let place = self.place(b, instruction.location, instruction.line);
            b.at(place);
            if let Err(error) = self.instruction(b, &mut values, instruction) {
                let carried = match self.source.facts.as_opaque {
                    true => self.carry(b, &mut values, instruction),
                    false => Err(self.would_be_carried(instruction, error.clone())),
                };
                if let Err(other) = carried {
                    let error = if self.source.facts.as_opaque { error } else { other };
                    let label = instruction.location.and_then(|location| location.function);
                    let called = label.and_then(|label| library::function(self.source.text, label));
                    let error = match called {
                        Some(name) => error.about(format!("in {}", quoted(&name))),
                        None => error,
                    };
                    return Err(error.at(format!("line {}", instruction.line)));
                }
            }
        }
        let followers = std::mem::take(&mut self.followers[block].inside);
        match source.end {
            End::Return => {
                b.return_();
                Ok(None)
            }
            End::Trap => {
                b.trap();
                Ok(None)
            }
            End::Jump(to) => {
                let opened = self.open(b, &followers)?;
                match (self.edge(b, block, to, &values)?, opened.is_empty()) {
                    (Edge::Inline(to), true) => Ok(Some((to, values))),
                    (edge, _) => {
                        self.take(b, edge, &values)?;
                        self.close(b, &followers, opened, values)
                    }
                }
            }
            End::Branch {
                predicate,
                then,
                otherwise,
            } => {
                let cond = self.get(b, &values, predicate)?;
                let cond = self.retyped(b, cond, Type::Bool)?;
                match followers.first() {
                    Some(&first) => {
                        let opened = self.open(b, &followers[1..])?;
                        let results = self.parameter_types(first)?;
                        let label = b.kernel.label(None, results.clone());
                        self.label_of[first] = Some(label);
                        let then = self.side(b, block, then, &values)?;
                        let otherwise = self.side(b, block, otherwise, &values)?;
                        let kind = OpKind::If {
                            label,
                            cond,
                            then,
                            otherwise,
                        };
                        let results = b.push(kind, &results);
                        self.follow(b, &followers, opened, results, values)
                    }
                    None => self.fork(b, block, cond, (then, otherwise), values),
                }
            }
        }
    }

    /// A branch whose sides never meet: one leaves from inside an `if`, the other stays behind it.
    fn fork(
        &mut self,
        b: &mut Builder<'_>,
        block: BlockId,
        cond: Value,
        (then, otherwise): (BlockId, BlockId),
        values: Values,
    ) -> Result<Option<(BlockId, Values)>> {
        let then_edge = self.edge(b, block, then, &values)?;
        let otherwise_edge = self.edge(b, block, otherwise, &values)?;
        let leaves = match (&then_edge, &otherwise_edge) {
            // The way back stays last in its loop; a longer way stays rather than a shorter.
            (Edge::Inline(a), Edge::Inline(other)) => self.size(*a) <= self.size(*other),
            (Edge::Inline(_), _) => false,
            (_, Edge::Inline(_)) => true,
            (Edge::Continue(_), _) => false,
            _ => true,
        };
        let own = b.kernel.label(None, Vec::new());
        let (inside, stays) = if leaves {
            (then_edge, otherwise_edge)
        } else {
            (otherwise_edge, then_edge)
        };
        let place = b.place();
        let before = b.begin_region();
        self.take(b, inside, &values)?;
        let leaving = b.end_region(before);
        b.at(place);
        let before = b.begin_region();
        b.break_(own, Vec::new());
        let staying = b.end_region(before);
        let (then, otherwise) = if leaves {
            (leaving, staying)
        } else {
            (staying, leaving)
        };
        let kind = OpKind::If {
            label: own,
            cond,
            then,
            otherwise,
        };
        b.push(kind, &[]);
        match stays {
            Edge::Inline(to) => Ok(Some((to, values))),
            Edge::Continue(kind) | Edge::Break(kind) => {
                b.push(kind, &[]);
                Ok(None)
            }
        }
    }

    /// How many instructions a block and the next few that it dominates have.
    fn size(&self, block: BlockId) -> usize {
        let flow = self.source.flow;
        let dominated = (block..flow.blocks.len()).take_while(|&other| flow.dominates(block, other));
        dominated
            .map(|other| flow.blocks[other].instructions.len() + 1)
            .sum()
    }

    /// One side of a branch whose sides meet, as a region.
    fn side(
        &mut self,
        b: &mut Builder<'_>,
        from: BlockId,
        to: BlockId,
        values: &Values,
    ) -> Result<crate::ir::Region> {
        let place = b.place();
        let edge = self.edge(b, from, to, values)?;
        let before = b.begin_region();
        self.take(b, edge, values)?;
        let region = b.end_region(before);
        b.at(place);
        Ok(region)
    }

    /// Writes what an edge leads to, as the rest of the current region.
    fn take(&mut self, b: &mut Builder<'_>, edge: Edge, values: &Values) -> Result<()> {
        match edge {
            Edge::Inline(to) => self.blocks(b, to, values.clone()),
            Edge::Continue(kind) | Edge::Break(kind) => {
                b.push(kind, &[]);
                Ok(())
            }
        }
    }

    fn edge(&mut self, b: &mut Builder<'_>, from: BlockId, to: BlockId, values: &Values) -> Result<Edge> {
        let back = self.source.flow.is_back(from, to);
        let label = if back { self.loop_of[to] } else { self.label_of[to] };
        match label {
            None => Ok(Edge::Inline(to)),
            Some(label) => {
                let arguments = self.arguments(b, to, values)?;
                Ok(match back {
                    true => Edge::Continue(OpKind::Continue(label, arguments)),
                    false => Edge::Break(OpKind::Break(label, arguments)),
                })
            }
        }
    }

    /// Opens a block for each of several followers, the last one outermost.
    fn open(&mut self, b: &mut Builder<'_>, followers: &[BlockId]) -> Result<Vec<Vec<Op>>> {
        let mut opened = Vec::new();
        for &follower in followers.iter().rev() {
            let types = self.parameter_types(follower)?;
            self.label_of[follower] = Some(b.kernel.label(None, types));
            self.deeper(follower)?;
            opened.push(b.begin_region());
        }
        Ok(opened)
    }

    /// Writes the followers behind an operation whose results are the first one's parameters. All but the
    /// first have a block that is still open.
    fn follow(
        &mut self,
        b: &mut Builder<'_>,
        followers: &[BlockId],
        opened: Vec<Vec<Op>>,
        results: Vec<Value>,
        values: Values,
    ) -> Result<Option<(BlockId, Values)>> {
        let Some((&first, rest)) = followers.split_first() else {
            // Nothing leaves a loop without followers but the end of the work-item.
            b.return_();
            return Ok(None);
        };
        let bound = self.bound(first, &results, &values);
        if rest.is_empty() {
            return Ok(Some((first, bound)));
        }
        self.blocks(b, first, bound)?;
        self.close(b, rest, opened, values)
    }

    /// Closes the blocks that are open for these followers, and writes each behind its own.
    fn close(
        &mut self,
        b: &mut Builder<'_>,
        followers: &[BlockId],
        mut opened: Vec<Vec<Op>>,
        values: Values,
    ) -> Result<Option<(BlockId, Values)>> {
        for (position, &follower) in followers.iter().enumerate() {
            let (Some(before), Some(label)) = (opened.pop(), self.label_of[follower]) else {
                return Err(Error::bug("a block of the flow graph has no label"));
            };
            self.depth -= 1;
            let body = b.end_region(before);
            let types = b.kernel.labels[label].results.clone();
            let results = b.push(OpKind::Block { label, body }, &types);
            let bound = self.bound(follower, &results, &values);
            if position + 1 == followers.len() {
                return Ok(Some((follower, bound)));
            }
            self.blocks(b, follower, bound)?;
        }
        Ok(None)
    }

    /// What registers hold where a block starts.
    fn bound(&self, block: BlockId, results: &[Value], values: &Values) -> Values {
        let mut values = values.clone();
        for (&register, &result) in self.parameters[block].iter().zip(results) {
            values[register as usize] = Some(result);
        }
        values
    }

    fn parameter_types(&self, block: BlockId) -> Result<Vec<Type>> {
        self.parameters[block]
            .iter()
            .map(|&register| self.kind(register))
            .collect()
    }

    /// What a block's parameters get from here.
    fn arguments(&mut self, b: &mut Builder<'_>, block: BlockId, values: &Values) -> Result<Vec<Value>> {
        let registers = self.parameters[block].clone();
        let mut arguments = Vec::with_capacity(registers.len());
        for register in registers {
            let kind = self.kind(register)?;
            let value = self.get(b, values, register)?;
            arguments.push(self.retyped(b, value, kind)?);
        }
        Ok(arguments)
    }

    /// The place of an instruction: its source line if the module says, else its line in the module.
    pub fn place(&mut self, b: &mut Builder<'_>, location: Option<Location<'t>>, line: u32) -> Place {
        let key = match location {
            Some(_) => (location, 0),
            None => (None, line),
        };
        if let Some(&place) = self.places.get(&key) {
            return place;
        }
        let path = |file: u64| {
            let mut files = self.source.files.iter();
            files
                .find(|(number, _)| *number == file)
                .map_or(String::new(), |(_, path)| (*path).to_owned())
        };
        let data = match location {
            Some(location) => {
                let call = location.inlined_at.map(|(file, line, column)| PlaceData {
                    file: path(file),
                    line,
                    column,
                    inlined_at: None,
                });
                PlaceData {
                    file: path(location.file),
                    line: location.line,
                    column: location.column,
                    inlined_at: call.map(|call| b.kernel.places.push(call)),
                }
            }
            None => PlaceData {
                file: self.source.file.to_owned(),
                line,
                column: 0,
                inlined_at: None,
            },
        };
        let place = b.kernel.places.push(data);
        self.places.insert(key, place);
        place
    }

    fn block_place(&mut self, b: &mut Builder<'_>, block: BlockId) -> Place {
        let block = &self.source.flow.blocks[block];
        match block.instructions.first() {
            Some(first) => self.place(b, first.location, first.line),
            None => self.place(b, None, block.line),
        }
    }

    /// An error about an instruction; whether it could be carried as text.
    fn would_be_carried(&self, instruction: &Instruction<'t>, error: Error) -> Error {
        let is_jump = matches!(instruction.opcode, "bra" | "brx" | "ret" | "exit" | "trap");
        match is_jump || error.fault() != Fault::Input {
            true => error,
            false => error.or_accepted(
                "`--as-opaque`, which carries the instruction as text, with nothing known of it",
            ),
        }
    }

    /// Writes one instruction.
    fn instruction(
        &mut self,
        b: &mut Builder<'_>,
        values: &mut Values,
        instruction: &Instruction<'t>,
    ) -> Result<()> {
        match instruction.opcode {
            "bar" | "barrier" if instruction.has("arrive") || instruction.has("cluster") => {
                self.carry(b, values, instruction)
            }
            "fence" if instruction.has("proxy") || instruction.has("mbarrier_init") => {
                self.carry(b, values, instruction)
            }
            "bar" if instruction.has("warp") => self.meet(b, values, instruction),
            "bar" | "barrier" if instruction.has("red") => self.group_vote(b, values, instruction),
            "bar" | "barrier" => self.barrier(b, instruction),
            "fence" => self.together(b, values, instruction),
            "cp" if matches!(instruction.modifiers[..], ["async", "ca" | "cg", ..]) => {
                self.asynchronous(b, values, instruction)
            }
            _ if is_carried(instruction) => self.carry(b, values, instruction),
            "ld" if is_atomic_access(instruction) => self.atomic_load(b, values, instruction),
            "ld" | "ldu" => self.load(b, values, instruction),
            "st" if is_atomic_access(instruction) => self.atomic_store(b, values, instruction),
            "st" => self.store(b, values, instruction),
            "atom" | "red" | "membar" | "shfl" | "vote" | "match" | "activemask" | "elect" | "redux"
            | "griddepcontrol" => self.together(b, values, instruction),
            "cp" | "wait" | super::asynchronous::TOKEN => self.asynchronous(b, values, instruction),
            "prefetch" => self.prefetch(b, values, instruction),
            "mov" => self.mov(b, values, instruction),
            "cvta" => self.cvta(b, values, instruction),
            "cvt" => self.convert(b, values, instruction),
            "setp" | "set" | "selp" | "slct" | "testp" => self.comparison(b, values, instruction),
            _ if is_carrying(instruction) => self.carried(b, values, instruction),
            "bmsk" | "szext" | "bfe" | "bfi" | "bfind" | "clz" | "popc" | "brev" | "prmt" | "lop3"
            | "shf" | "and" | "or" | "xor" | "not" | "cnot" | "shl" | "shr" => {
                self.bit_operation(b, values, instruction)
            }
            // The block ends with it.
            "trap" => Ok(()),
            _ => self.arithmetic(b, values, instruction),
        }
    }
}

/// The IR's type of an operand's register, where it is one.
pub(super) fn register_kind(kinds: &kinds::Kinds, operand: &Operand<'_>) -> Option<Type> {
    match operand {
        Operand::Register(register) => kinds.registers[*register as usize],
        _ => None,
    }
}
