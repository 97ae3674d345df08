//! The flow graph to nested regions.
//!
//! ```text
//! before                              after
//! B0: … branch %p → B2, B1            …; if 'B2 %p { break 'B2 %a } else { …B1…; break 'B2 %b }  → %x
//! B1: … jump B2                       …B2 with %x…
//! B2(%x): …
//! ```
//!
//! A block's region holds the blocks that it dominates. Blocks with several predecessors, and those that follow a loop, are
//! break targets: they follow the operation that contains all jumps to them, in reverse postorder, and take their parameters as
//! its results (Ramsey: "Beyond Relooper", for regions with values). A block with one predecessor stands in place of the jump.

use super::flow::{Block, BlockId, End, Flow};
use super::ssa::{Registers, left_loop, parameters};
use super::{Register, Values};
use crate::error::{Error, Result};
use crate::ir::{Builder, Label, LoopWishes, Op, OpKind, Place, Region, Type, UnrollWish, Value, limits};

/// What a front knows of its registers and instructions.
pub(crate) trait Front<I> {
    /// The IR's type of what a register holds.
    fn kind(&self, register: Register) -> Result<Type>;

    /// What a register holds now; some constant if nothing was written on the way here.
    fn get(&mut self, b: &mut Builder<'_>, values: &Values, register: Register) -> Result<Value>;

    /// The value as one of another type.
    fn retyped(&mut self, b: &mut Builder<'_>, value: Value, ty: Type) -> Result<Value>;

    /// Where a block starts.
    fn block_place(&mut self, b: &mut Builder<'_>, block: &Block<'_, I>) -> Place;

    /// Whether a loop that starts with this block is no loop of the kernel's own text, which plans change.
    fn is_called(&self, _: &Block<'_, I>) -> bool {
        false
    }

    /// Goes to where a block ends, if that is known.
    fn at_end(&mut self, _: &mut Builder<'_>, _: &Block<'_, I>) {}

    /// Writes the instructions of a block.
    fn instructions(&mut self, b: &mut Builder<'_>, values: &mut Values, block: &Block<'_, I>) -> Result<()>;
}

/// What stands next in the same region, and the registers' values there.
type Next = Option<(BlockId, Values)>;

/// The regions of a flow graph while they are written.
pub(crate) struct Regions<'f, 't, 'k, I, F> {
    front: &'f mut F,
    b: &'f mut Builder<'k>,
    flow: &'f Flow<'t, I>,
    parameters: Vec<Vec<Register>>,
    /// The code behind a block's own, or behind the loop whose header it is.
    followers: Vec<Followers>,
    /// What to break to for a block.
    label_of: Vec<Option<Label>>,
    /// What to continue for the header of a loop.
    loop_of: Vec<Option<Label>>,
    depth: usize,
    /// How many instructions stand before each block, jumps included, and before the end.
    instructions_before: Vec<usize>,
    dominated_up_to: Vec<BlockId>,
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

/// Writes the body of a kernel: the regions of a flow graph whose registers have numbers below `registers`.
///
/// # Errors
/// An error of the front, or nesting that is too deep.
pub(crate) fn write<I: Registers>(
    front: &mut impl Front<I>,
    flow: &Flow<'_, I>,
    registers: usize,
    b: &mut Builder<'_>,
) -> Result<()> {
    let mut followers = vec![Followers::default(); flow.blocks.len()];
    for block in 1..flow.blocks.len() {
        match left_loop(flow, block) {
            Some(header) => followers[header].after_loop.push(block),
            None if flow.forward_entries(block) > 1 => followers[flow.dominator[block]].inside.push(block),
            None => {}
        }
    }
    let lengths = flow.blocks.iter().map(|block| block.instructions.len() + 1);
    let sums = lengths.scan(0, |before, length| {
        *before += length;
        Some(*before)
    });
    let mut regions = Regions {
        instructions_before: std::iter::once(0).chain(sums).collect(),
        dominated_up_to: flow.dominated_up_to(),
        parameters: parameters(flow, registers)?,
        followers,
        label_of: vec![None; flow.blocks.len()],
        loop_of: vec![None; flow.blocks.len()],
        depth: 0,
        flow,
        front,
        b,
    };
    regions.blocks(0, vec![None; registers])
}

impl<I, F: Front<I>> Regions<'_, '_, '_, I, F> {
    /// Writes the blocks that stand in one region, from `block` on, up to its terminator.
    fn blocks(&mut self, block: BlockId, values: Values) -> Result<()> {
        self.depth += 1;
        if self.depth > limits::NESTING {
            return Err(
                Error::input("the entry's branches and loops are nested too deeply")
                    .at(self.flow.place_of(block))
                    .accepted(format!("at most {} inside each other", limits::NESTING)),
            );
        }
        let mut next = Some((block, values));
        while let Some((block, values)) = next {
            next = match self.flow.is_header[block] {
                true => self.loop_(block, values)?,
                false => self.block(block, values)?,
            };
        }
        self.depth -= 1;
        Ok(())
    }

    /// Writes a loop; the code that follows is returned, to be written behind it.
    fn loop_(&mut self, header: BlockId, values: Values) -> Result<Next> {
        let followers = std::mem::take(&mut self.followers[header].after_loop);
        let opened = self.open(followers.get(1..).unwrap_or_default())?;
        let results = match followers.first() {
            Some(&first) => self.parameter_types(first)?,
            None => Vec::new(),
        };
        let name = self.flow.blocks[header].label.as_deref();
        let name = name.map(|name| name.trim_start_matches('$').to_owned());
        let label = self.b.kernel.label(name, results.clone());
        self.b.kernel.labels[label].is_called = self.front.is_called(&self.flow.blocks[header]);
        self.loop_of[header] = Some(label);
        if let Some(&first) = followers.first() {
            self.label_of[first] = Some(label);
        }
        let registers = self.parameters[header].clone();
        let initial = self.arguments(header, &values)?;
        let params: Vec<Value> = initial
            .iter()
            .map(|&value| self.b.kernel.value_like(value))
            .collect();
        let mut inside = values.clone();
        for (&register, &param) in registers.iter().zip(&params) {
            inside[register as usize] = Some(param);
        }
        let place = self.front.block_place(self.b, &self.flow.blocks[header]);
        let before = self.b.begin_region();
        self.deeper(header)?;
        let mut next = self.block(header, inside)?;
        if let Some((block, values)) = next.take() {
            self.blocks(block, values)?;
        }
        self.depth -= 1;
        let body = self.b.end_region(before);
        self.b.at(place);
        let kind = OpKind::Loop {
            label,
            params,
            initial,
            body,
            wishes: LoopWishes {
                unroll: (!self.flow.blocks[header].keeps_loop).then_some(UnrollWish::Auto),
                plan: None,
            },
        };
        let results = self.b.push(kind, &results);
        self.follow(&followers, opened, results, values)
    }

    fn deeper(&mut self, block: BlockId) -> Result<()> {
        self.depth += 1;
        match self.depth > limits::NESTING {
            true => Err(
                Error::input("the entry's branches and loops are nested too deeply")
                    .at(self.flow.place_of(block)),
            ),
            false => Ok(()),
        }
    }

    /// Writes a block; the one that stands behind it in the same region is given back.
    fn block(&mut self, block: BlockId, mut values: Values) -> Result<Next> {
        let source = &self.flow.blocks[block];
        self.front.instructions(self.b, &mut values, source)?;
        self.front.at_end(self.b, source);
        let followers = std::mem::take(&mut self.followers[block].inside);
        match source.end {
            End::Return => {
                self.b.return_();
                Ok(None)
            }
            End::Trap => {
                self.b.trap();
                Ok(None)
            }
            End::Jump(to) => {
                let opened = self.open(&followers)?;
                match (self.edge(block, to, &values)?, opened.is_empty()) {
                    (Edge::Inline(to), true) => Ok(Some((to, values))),
                    (edge, _) => {
                        self.take(edge, &values)?;
                        self.close(&followers, opened, values)
                    }
                }
            }
            End::Branch {
                predicate,
                then,
                otherwise,
            } => {
                let cond = self.front.get(self.b, &values, predicate)?;
                let cond = self.front.retyped(self.b, cond, Type::Bool)?;
                match followers.first() {
                    Some(&first) => {
                        let opened = self.open(&followers[1..])?;
                        let results = self.parameter_types(first)?;
                        let label = self.b.kernel.label(None, results.clone());
                        self.label_of[first] = Some(label);
                        let then = self.side(block, then, &values)?;
                        let otherwise = self.side(block, otherwise, &values)?;
                        let kind = OpKind::if_(label, cond, then, otherwise);
                        let results = self.b.push(kind, &results);
                        self.follow(&followers, opened, results, values)
                    }
                    None => self.fork(block, cond, (then, otherwise), values),
                }
            }
        }
    }

    /// A branch whose sides never meet: one leaves from inside an `if`, the other stays behind it.
    fn fork(
        &mut self,
        block: BlockId,
        cond: Value,
        (then, otherwise): (BlockId, BlockId),
        values: Values,
    ) -> Result<Next> {
        let then_edge = self.edge(block, then, &values)?;
        let otherwise_edge = self.edge(block, otherwise, &values)?;
        let leaves = match (&then_edge, &otherwise_edge) {
            // The way back stays last in its loop; a longer way stays rather than a shorter.
            (Edge::Inline(a), Edge::Inline(other)) => self.size(*a) <= self.size(*other),
            (Edge::Inline(_), _) => false,
            (_, Edge::Inline(_)) => true,
            (Edge::Continue(_), _) => false,
            _ => true,
        };
        let own = self.b.kernel.label(None, Vec::new());
        let (inside, stays) = if leaves {
            (then_edge, otherwise_edge)
        } else {
            (otherwise_edge, then_edge)
        };
        let place = self.b.place();
        let before = self.b.begin_region();
        self.take(inside, &values)?;
        let leaving = self.b.end_region(before);
        self.b.at(place);
        let before = self.b.begin_region();
        self.b.break_(own, Vec::new());
        let staying = self.b.end_region(before);
        let (then, otherwise) = if leaves {
            (leaving, staying)
        } else {
            (staying, leaving)
        };
        let kind = OpKind::if_(own, cond, then, otherwise);
        self.b.push(kind, &[]);
        match stays {
            Edge::Inline(to) => Ok(Some((to, values))),
            Edge::Continue(kind) | Edge::Break(kind) => {
                self.b.push(kind, &[]);
                Ok(None)
            }
        }
    }

    /// How many instructions a block and the next few that it dominates have.
    fn size(&self, block: BlockId) -> usize {
        self.instructions_before[self.dominated_up_to[block]] - self.instructions_before[block]
    }

    /// One side of a branch whose sides meet, as a region.
    fn side(&mut self, from: BlockId, to: BlockId, values: &Values) -> Result<Region> {
        let place = self.b.place();
        let edge = self.edge(from, to, values)?;
        let before = self.b.begin_region();
        self.take(edge, values)?;
        let region = self.b.end_region(before);
        self.b.at(place);
        Ok(region)
    }

    /// Writes what an edge leads to, as the rest of the current region.
    fn take(&mut self, edge: Edge, values: &Values) -> Result<()> {
        match edge {
            Edge::Inline(to) => self.blocks(to, values.clone()),
            Edge::Continue(kind) | Edge::Break(kind) => {
                self.b.push(kind, &[]);
                Ok(())
            }
        }
    }

    fn edge(&mut self, from: BlockId, to: BlockId, values: &Values) -> Result<Edge> {
        let back = self.flow.is_back(from, to);
        let label = if back { self.loop_of[to] } else { self.label_of[to] };
        match label {
            None => Ok(Edge::Inline(to)),
            Some(label) => {
                let arguments = self.arguments(to, values)?;
                Ok(match back {
                    true => Edge::Continue(OpKind::Continue(label, arguments)),
                    false => Edge::Break(OpKind::Break(label, arguments)),
                })
            }
        }
    }

    /// Opens a block for each of several followers, the last one outermost.
    fn open(&mut self, followers: &[BlockId]) -> Result<Vec<Vec<Op>>> {
        let mut opened = Vec::new();
        for &follower in followers.iter().rev() {
            let types = self.parameter_types(follower)?;
            self.label_of[follower] = Some(self.b.kernel.label(None, types));
            self.deeper(follower)?;
            opened.push(self.b.begin_region());
        }
        Ok(opened)
    }

    /// Writes the followers behind an operation whose results are the first one's parameters. All but the
    /// first have a block that is still open.
    fn follow(
        &mut self,
        followers: &[BlockId],
        opened: Vec<Vec<Op>>,
        results: Vec<Value>,
        values: Values,
    ) -> Result<Next> {
        let Some((&first, rest)) = followers.split_first() else {
            // Nothing leaves a loop without followers but the end of the work-item.
            self.b.return_();
            return Ok(None);
        };
        let bound = self.bound(first, &results, &values);
        if rest.is_empty() {
            return Ok(Some((first, bound)));
        }
        self.blocks(first, bound)?;
        self.close(rest, opened, values)
    }

    /// Closes the blocks that are open for these followers, and writes each behind its own.
    fn close(&mut self, followers: &[BlockId], mut opened: Vec<Vec<Op>>, values: Values) -> Result<Next> {
        for (position, &follower) in followers.iter().enumerate() {
            let (Some(before), Some(label)) = (opened.pop(), self.label_of[follower]) else {
                return Err(Error::bug("a block of the flow graph has no label"));
            };
            self.depth -= 1;
            let body = self.b.end_region(before);
            let types = self.b.kernel.labels[label].results.clone();
            let results = self.b.push(OpKind::Block { label, body }, &types);
            let bound = self.bound(follower, &results, &values);
            if position + 1 == followers.len() {
                return Ok(Some((follower, bound)));
            }
            self.blocks(follower, bound)?;
        }
        Ok(None)
    }

    /// The values of registers at the start of a block.
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
            .map(|&register| self.front.kind(register))
            .collect()
    }

    /// What a block's parameters get from here.
    fn arguments(&mut self, block: BlockId, values: &Values) -> Result<Vec<Value>> {
        let registers = self.parameters[block].clone();
        let mut arguments = Vec::with_capacity(registers.len());
        for register in registers {
            let kind = self.front.kind(register)?;
            let value = self.front.get(self.b, values, register)?;
            arguments.push(self.front.retyped(self.b, value, kind)?);
        }
        Ok(arguments)
    }
}
