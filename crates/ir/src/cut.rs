//! What a plan made of a loop, taken out of a kernel: a kernel of its own, with the values that go in as parameters.
//!
//! ```text
//! before                                          after
//! …                                               %1, %2 = block 'enter { break (0, %p) }
//! %1, %2 = block 'enter { break (%r, %q) }        loop 'l (%i = %1) { … break 'l }
//! loop 'l (%i = %1) { … break 'l }                block 'leave { break () }
//! %5 = block 'leave { break (0) }                 return
//! …
//! ```
//!
//! A prologue and versions come along. What the piece uses of the code around must come over the front edge, be a parameter of
//! the kernel, or be a question about the work-item, which is asked again. A back end gives the values of the front edge: what
//! the piece passes there only says which parameter a pointer was derived from.

use std::collections::HashMap;

use cranelift_entity::PrimaryMap;

use crate::analysis::definitions::Definitions;
use crate::analysis::roots::{Root, root};
use crate::error::{Error, Result};
use crate::ir::{Array, CutEdge, Kernel, Op, OpKind, Region, Value};

/// The kernel with nothing but what was made of the loop of this number.
///
/// # Errors
/// Something but the values at its front edge is used of the code around: what.
pub fn cut(kernel: &Kernel, number: u32) -> Result<Kernel> {
    let cutter = Cutter { kernel, number };
    let body = cutter.around(&kernel.body);
    let mut body = body.ok_or_else(|| Error::bug("a loop that is to be cut out has no edge"))?;
    let mut piece = kernel.clone();
    let definitions = Definitions::of(kernel);
    body.walk_mut(&mut |op| {
        let is_front = cutter.edge(op) == Some(CutEdge::Enter(number));
        let inner = op.kind.regions_mut().next().filter(|_| is_front);
        if let Some(end) = inner.and_then(|inner| inner.ops.last_mut()) {
            end.kind
                .map_operands(|value| derived_from(&mut piece, kernel, &definitions, value));
        }
    });
    let again = cutter.asked_again(&piece, &body)?;
    body.ops.splice(..0, again);
    piece.body = body;
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
    fn around(&self, region: &Region) -> Option<Region> {
        for (at, op) in region.ops.iter().enumerate() {
            let rest = &region.ops[at + 1..];
            if self.edge(op) == Some(CutEdge::Enter(self.number)) {
                let mut ops = vec![op.clone()];
                ops.extend(self.behind(rest));
                return Some(Region { ops });
            }
            let Some(body) = op.kind.regions().find_map(|inner| self.around(inner)) else {
                continue;
            };
            let Some(label) = op.kind.label().filter(|&label| body.breaks_to(label)) else {
                return Some(body);
            };
            let mut ops = vec![Op {
                kind: OpKind::Block { label, body },
                results: op.results.clone(),
                place: op.place,
            }];
            ops.extend(self.behind(rest));
            return Some(Region { ops });
        }
        None
    }

    /// The operations up to the edge behind the loop, or to where nothing gets any further.
    fn behind(&self, ops: &[Op]) -> Vec<Op> {
        let mut kept = Vec::new();
        for op in ops {
            let mut op = op.clone();
            if self.edge(&op) == Some(CutEdge::Leave(self.number)) {
                let place = op.place;
                kept.push(op);
                kept.push(Op::new(OpKind::Return, Vec::new(), place));
                return kept;
            }
            for inner in op.kind.regions_mut() {
                inner.ops = self.behind(&inner.ops);
            }
            let place = op.place;
            let is_left = |label| op.kind.regions().any(|inner| inner.breaks_to(label));
            let ends = op.kind.label().is_some_and(|label| !is_left(label));
            kept.push(op);
            if ends {
                kept.push(Op::new(OpKind::Return, Vec::new(), place));
                return kept;
            }
        }
        kept
    }

    fn edge(&self, op: &Op) -> Option<CutEdge> {
        self.kernel.labels[op.kind.label()?].edge
    }

    /// The operations that ask again for what a piece uses of the code around, if that depends on nothing but the work-item and
    /// the kernel.
    fn asked_again(&self, piece: &Kernel, body: &Region) -> Result<Vec<Op>> {
        let params: Vec<Value> = piece.params.iter().map(|param| param.value).collect();
        let mut known = body.defined(&params);
        let makers = self.kernel.body.makers();
        let mut again = Vec::new();
        let mut odd = None;
        body.walk(&mut |user| {
            user.kind.for_each_operand(|value| {
                if piece.as_constant(value).is_some() || !known.insert(value) {
                    return;
                }
                match makers[value] {
                    Some(op) if matches!(op.kind, OpKind::Id(_) | OpKind::ArrayAddress(_)) => {
                        again.push(op.clone());
                    }
                    // Nothing makes the parameter of a loop around.
                    maker => {
                        odd.get_or_insert(maker.unwrap_or(user));
                    }
                }
            });
        });
        match odd {
            Some(op) => Err(self.not_bound("it uses a value from outside that no register holds", op)),
            None => Ok(again),
        }
    }

    fn not_bound(&self, why: &str, op: &Op) -> Error {
        Error::input(format!("the loop cannot be edited: {why}"))
            .at(self.kernel.describe_place(op.place))
            .accepted("a plan for another loop")
    }
}
