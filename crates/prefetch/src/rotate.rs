//! Loops over register rings, unrolled so that shifting the ring costs no moves.
//!
//! ```text
//! before                                 after, a ring of three
//! loop (%a, %b, %c) {                    loop (%a, %b, %c) {
//!   %d = load …; use %a                    %d = load …; use %a
//!   continue %b, %c, %d                    %e = load …; use %b
//! }                                        %f = load …; use %c
//!                                          continue %d, %e, %f
//!                                        }
//! ```

use std::collections::{HashMap, HashSet};

use super::fetch::{Rewrite, Tests};
use super::loads::{find_loop, replace_loop};
use super::pipeline::{count, rewrite};
use crate::analysis::definitions::Definitions;
use crate::cleanup;
use crate::error::Result;
use crate::ir::{Kernel, Label, Op, OpKind, Region, Type, UnaryOp, Value};

/// Largest loop body, in weighted operations, that a register ring is unrolled to: about 100 KB of code, which
/// an instruction cache of 128 KB holds.
const MAX_ROTATED: usize = 6_000;

/// Unrolls a loop over its longest register ring, so that shifting the ring costs no moves.
///
/// A move of a value that is still being loaded waits for the load. In a ring of D copies of the body the moves at the end wait
/// once for all D loads. More copies would save the moves, and no time: a sub-group has six scoreboards, ptxas gives all loads
/// of the ring one, and waiting for one of them waits for all (measured on an H200: `rolling-registers:4` 0.553 ms with four
/// copies, 0.637 with five). A ring of one takes two copies, which leaves it no move. The loop has `least` operations, some of
/// them as text.
pub(super) fn rotate(kernel: &mut Kernel, label: Label, least: usize) -> Result<()> {
    cleanup::tidy(kernel);
    let Some(op) = find_loop(&kernel.body, label) else {
        return Ok(());
    };
    let Ring { length, loaded } = longest_ring(kernel, op);
    let OpKind::Loop { body, .. } = &op.kind else {
        return Ok(());
    };
    let room = (MAX_ROTATED / weight(body).max(least).max(1)).max(1) as u32;
    let group = if length <= 2 {
        // A ring of two that waits for nothing shifts with one move; that is cheaper than twice the code.
        if !loaded || room < 2 {
            return Ok(());
        }
        2
    } else {
        match (2..=length.min(room))
            .rev()
            .find(|group| length.is_multiple_of(*group))
        {
            Some(group) => group,
            None => return Ok(()),
        }
    };
    let definitions = Definitions::of(kernel);
    replace_loop(kernel, label, |kernel, op| {
        let plan = Rewrite {
            group,
            tests: Tests::Kept,
            fetches: Vec::new(),
            gather_loads: false,
        };
        Ok(rewrite(kernel, &definitions, op, plan)?.0)
    })
}

/// Registers that a loop hands values along.
#[derive(Clone, Copy, Debug, Default)]
struct Ring {
    /// How many.
    length: u32,
    /// Whether the newest value comes from a load.
    loaded: bool,
}

/// The longest chain of parameters in which all but the last are handed the next one's value. Tokens take no registers.
fn longest_ring(kernel: &Kernel, op: &Op) -> Ring {
    let OpKind::Loop {
        label, params, body, ..
    } = &op.kind
    else {
        return Ring::default();
    };
    let mut next: HashMap<Value, Value> = HashMap::new();
    let mut loaded: HashSet<Value> = HashSet::new();
    body.walk(&mut |op| match &op.kind {
        OpKind::Continue(target, args) if target == label => {
            next.extend(params.iter().copied().zip(args.iter().copied()));
        }
        OpKind::Load { .. } => loaded.extend(&op.results),
        // A load under a guard.
        OpKind::If { then, .. } if matches!(&then.ops[..], [load, _] if matches!(load.kind, OpKind::Load { .. })) => {
            loaded.extend(&op.results);
        }
        _ => {}
    });
    let ring = |start: Value| {
        let mut ring = Ring {
            length: 1,
            loaded: false,
        };
        let mut at = start;
        while let Some(&value) = next.get(&at).filter(|_| (ring.length as usize) <= params.len()) {
            if value == at || !params.contains(&value) {
                ring.loaded = loaded.contains(&value);
                break;
            }
            ring.length += 1;
            at = value;
        }
        ring
    };
    let in_registers = params.iter().filter(|&&param| kernel.ty(param) != Type::Token);
    let copies = |ring: &Ring| (ring.length + u32::from(ring.loaded), ring.loaded);
    in_registers
        .map(|&param| ring(param))
        .max_by_key(copies)
        .unwrap_or_default()
}

/// About how many machine instructions a region is.
pub(super) fn weight(region: &Region) -> usize {
    use crate::ir::BinaryOp;
    let mut weight = 0;
    region.walk(&mut |op| {
        weight += match *op.kind.plain() {
            OpKind::Unary(UnaryOp::Sqrt, _) | OpKind::Binary(BinaryOp::FDiv, ..) => 15,
            OpKind::Binary(BinaryOp::DivS | BinaryOp::DivU | BinaryOp::RemS | BinaryOp::RemU, ..) => 20,
            _ => 1,
        };
    });
    weight.max(count(region))
}
