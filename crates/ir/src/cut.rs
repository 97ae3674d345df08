//! A loop with the code at its edges, taken out of a kernel: a kernel of its own, with the values that go in as parameters.
//!
//! ```text
//! before                                          after
//! …                                               block 'b {
//! block 'b {                                        %1, %2 = block 'enter { break (0, %p) }
//!   %1, %2 = block 'enter { break (%r, %q) }        %5 = loop 'l (%i = %1) { … break 'l … break 'b }
//!   %5 = loop 'l (%i = %1) { … }                    block 'leave0 { break (%5) }
//!   %6 = block 'leave0 { break (%5) }               return
//!   …                                             }
//! }                                               block 'leave1 { break () }
//! block 'leave1 { break () }                      return
//! …
//! ```
//!
//! A plan may have made a prologue, versions and a remainder between the edges: all of it comes along. What the piece uses of the
//! code around must come over the front edge, be a parameter of the kernel, or be a question about the work-item, which is asked
//! again. A back end gives the values of the front edge: what the piece passes there only says which parameter a pointer was
//! derived from.

use std::collections::{HashMap, HashSet};

use cranelift_entity::PrimaryMap;

use crate::analysis::definitions::Definitions;
use crate::analysis::roots::{Root, root};
use crate::error::{Error, Result};
use crate::ir::{Array, CutEdge, Kernel, Label, Op, OpKind, Region, Type, Value};

/// The kernel with nothing but the loop of this number and its edges.
///
/// # Errors
/// Something but the values at its edges is used on the other side: what.
pub fn cut(kernel: &Kernel, number: u32) -> Result<Kernel> {
    let cutter = Cutter { kernel, number };
    let ops = cutter.around(&kernel.body);
    let mut ops = ops.ok_or_else(|| Error::bug("a loop that is to be cut out has no edge"))?;
    let mut piece = kernel.clone();
    let definitions = Definitions::of(kernel);
    walk_mut(&mut ops, &mut |op| {
        if cutter.edge(op) == Some(CutEdge::Enter(number))
            && let Some(end) = op
                .kind
                .regions_mut()
                .next()
                .and_then(|inner| inner.ops.last_mut())
        {
            end.kind
                .map_operands(|value| derived_from(&mut piece, kernel, &definitions, value));
        }
    });
    cutter.nothing_else_leaves(&ops)?;
    let again = cutter.used_of_outside(&ops).into_iter();
    let again = again.map(|value| cutter.asked_again(value));
    let mut body = again.collect::<Result<Vec<Op>>>()?;
    body.extend(ops);
    piece.body = Region { ops: body };
    keep_used_arrays(&mut piece);
    Ok(piece)
}

/// Leaves out the arrays that nothing uses: the rings of other loops.
fn keep_used_arrays(piece: &mut Kernel) {
    let mut kept: HashMap<Array, Array> = HashMap::new();
    let mut arrays = PrimaryMap::new();
    let old = &piece.arrays;
    piece.body.walk_mut(&mut |op| {
        if let OpKind::ArrayAddress(array) = &mut op.kind {
            *array = *kept
                .entry(*array)
                .or_insert_with(|| arrays.push(old[*array].clone()));
        }
    });
    piece.arrays = arrays;
}

/// The parameter that a pointer was derived from, where it can take its place; else any number.
fn derived_from(piece: &mut Kernel, kernel: &Kernel, definitions: &Definitions, value: Value) -> Value {
    let ty = kernel.ty(value);
    let from = match ty
        .is_pointer()
        .then(|| root(kernel, definitions, value))
        .flatten()
    {
        Some(Root::Param(index)) => Some(kernel.params[index].value),
        _ => None,
    };
    match from.filter(|&param| kernel.ty(param) == ty) {
        Some(param) => param,
        None => piece.constant(ty, 0),
    }
}

struct Cutter<'k> {
    kernel: &'k Kernel,
    number: u32,
}

impl Cutter<'_> {
    /// What is left of a region that has the front edge in it, from there on; nothing of another region.
    fn around(&self, region: &Region) -> Option<Vec<Op>> {
        for (at, op) in region.ops.iter().enumerate() {
            let rest = &region.ops[at + 1..];
            if self.edge(op) == Some(CutEdge::Enter(self.number)) {
                let mut ops = vec![op.clone()];
                ops.extend(self.behind(rest));
                return Some(ops);
            }
            let inner = op.kind.regions().find_map(|inner| self.around(inner));
            let Some(inner) = inner else { continue };
            let leaves = op.kind.label().filter(|&label| breaks_to(&inner, label));
            let Some(label) = leaves else {
                return Some(inner);
            };
            let mut ops = vec![Op {
                kind: OpKind::Block {
                    label,
                    body: Region { ops: inner },
                },
                results: op.results.clone(),
                place: op.place,
            }];
            ops.extend(self.behind(rest));
            return Some(ops);
        }
        None
    }

    /// The operations up to the edges behind the loop.
    fn behind(&self, ops: &[Op]) -> Vec<Op> {
        let mut kept = Vec::new();
        for op in ops {
            if matches!(self.edge(op), Some(CutEdge::Leave(number, _)) if number == self.number) {
                kept.push(op.clone());
                kept.push(Op {
                    kind: OpKind::Return,
                    results: Vec::new(),
                    place: op.place,
                });
                return kept;
            }
            let mut op = op.clone();
            for inner in op.kind.regions_mut() {
                inner.ops = self.behind(&inner.ops);
            }
            kept.push(op);
        }
        kept
    }

    fn edge(&self, op: &Op) -> Option<CutEdge> {
        self.kernel.labels[op.kind.label()?].edge
    }

    /// The values of the code around that operations use, in the order in which they do.
    fn used_of_outside(&self, ops: &[Op]) -> Vec<Value> {
        let kernel = self.kernel;
        let mut known: HashSet<Value> = kernel.params.iter().map(|param| param.value).collect();
        walk(ops, &mut |op| {
            known.extend(&op.results);
            if let OpKind::Loop { params, .. } = &op.kind {
                known.extend(params);
            }
        });
        let mut outside = Vec::new();
        walk(ops, &mut |op| {
            op.kind.for_each_operand(|value| {
                let is_number = self
                    .kernel
                    .values
                    .get(value)
                    .is_none_or(|data| data.constant.is_some());
                if !is_number && known.insert(value) {
                    outside.push(value);
                }
            });
        });
        outside
    }

    /// The operation that asks again for a value of the code around, if it depends on nothing but the work-item and the kernel.
    fn asked_again(&self, value: Value) -> Result<Op> {
        let mut found = None;
        self.kernel.body.walk(&mut |op| {
            if op.results.contains(&value) {
                found = Some(op);
            }
        });
        match found {
            Some(op) if matches!(op.kind, OpKind::Id(_) | OpKind::ArrayAddress(_)) => Ok(op.clone()),
            Some(op) => Err(self.not_bound("it uses a value from outside that no register holds", op)),
            None => Err(Error::bug("a value without a definition is used in a loop")),
        }
    }

    /// Refuses a piece of which the code around uses something that does not leave over an edge.
    fn nothing_else_leaves(&self, ops: &[Op]) -> Result<()> {
        let count = |ops: &[Op]| {
            let mut used: HashMap<Value, usize> = HashMap::new();
            walk(ops, &mut |op| {
                op.kind
                    .for_each_operand(|value| *used.entry(value).or_default() += 1)
            });
            used
        };
        let (here, everywhere) = (count(ops), count(&self.kernel.body.ops));
        let mut odd = None;
        walk(ops, &mut |op| {
            // What goes over an edge is used on both sides.
            let leaves = |value: &Value| self.edge(op).is_none() && here.get(value) != everywhere.get(value);
            if op.results.iter().any(leaves) {
                odd.get_or_insert(op);
            }
        });
        let Some(op) = odd else { return Ok(()) };
        let is_token = op
            .results
            .iter()
            .any(|&result| self.kernel.ty(result) == Type::Token);
        Err(self.not_bound(
            match is_token {
                true => "copies that it starts are in flight when it ends",
                false => "the code behind it uses a value that no register holds",
            },
            op,
        ))
    }

    fn not_bound(&self, why: &str, op: &Op) -> Error {
        Error::input(format!("the loop cannot be edited: {why}"))
            .at(self.kernel.describe_place(op.place))
            .accepted("a plan for another loop")
    }
}

fn walk<'o>(ops: &'o [Op], visit: &mut impl FnMut(&'o Op)) {
    for op in ops {
        visit(op);
        op.kind.regions().for_each(|inner| inner.walk(visit));
    }
}

fn walk_mut(ops: &mut [Op], visit: &mut impl FnMut(&mut Op)) {
    for op in ops {
        visit(op);
        op.kind.regions_mut().for_each(|inner| inner.walk_mut(visit));
    }
}

fn breaks_to(ops: &[Op], label: Label) -> bool {
    let mut found = false;
    walk(ops, &mut |op| {
        found |= matches!(op.kind, OpKind::Break(to, _) if to == label)
    });
    found
}
