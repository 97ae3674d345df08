//! Index extensions that stay where the entry's compiler placed them.
//!
//! A 32-bit index is extended by the instruction that makes the address, where both stand in one straight piece of code.
//! LLVM, and with it nvcc, clang and Numba, selects instructions block by block in the same way: an extension that a later
//! block uses is an instruction of its own, and its result takes a register pair from there on.
//!
//! ```text
//! cvt.s64.s32 %rd3, %r1;          mul.wide.s32 %rd15, %r1, 4;     // one block
//! …
//! shl.b64 %rd31, %rd3, 3;         add.s64 %rd32, %rd30, %rd31;    // another
//! ```
//!
//! ptxas decides by the pairs that are live in a loop how many of its loads are in flight. Two kernels of the corpus took 1.11
//! and 1.14 of their original's time when the extension was written again where it was used. What is scaled in a loop that the
//! extension is outside of is no such use: one instruction takes the 32-bit index, and with a pair instead another kernel took
//! 1.38 of its original's time (ptxas 13.0, H200).

use std::collections::{HashMap, HashSet};

use super::emitter::Emitter;
use super::registers::Class;
use crate::ir::{ConvertOp, OpKind, Region, Value};

/// Where an extension is made.
#[derive(Clone, Copy)]
struct Made {
    piece: u32,
    loops: u32,
}

/// Straight pieces of code, numbered in the order of the text.
#[derive(Default)]
struct Pieces {
    piece: u32,
    /// How many loops are around it.
    loops: u32,
    made: HashMap<Value, Made>,
    /// Addresses whose index was extended in an earlier piece, with that index.
    apart: Vec<(Value, Value)>,
    /// Indices that are scaled in loops that their extension is outside of.
    scaled_in_loops: HashSet<Value>,
}

impl Pieces {
    fn walk(&mut self, region: &Region) {
        for op in &region.ops {
            match &op.kind {
                OpKind::Convert(ConvertOp::ExtendU | ConvertOp::ExtendS, _) => {
                    let (piece, loops) = (self.piece, self.loops);
                    self.made.insert(op.results[0], Made { piece, loops });
                }
                OpKind::Address { index, scale, .. } => {
                    let made = self.made.get(index);
                    if made.is_some_and(|made| made.piece != self.piece) {
                        self.apart.push((op.results[0], *index));
                    }
                    if *scale > 1 && made.is_some_and(|made| made.loops < self.loops) {
                        self.scaled_in_loops.insert(*index);
                    }
                }
                kind => {
                    let inside = u32::from(matches!(kind, OpKind::Loop { .. }));
                    self.loops += inside;
                    for inner in kind.regions() {
                        self.piece += 1;
                        self.walk(inner);
                        self.piece += 1;
                    }
                    self.loops -= inside;
                }
            }
        }
    }
}

impl Emitter<'_> {
    /// Keeps the extensions that are used in a later piece of code than the one where they are made.
    pub(super) fn keep_extensions_apart(&mut self) {
        let mut pieces = Pieces::default();
        pieces.walk(&self.kernel.body);
        for (address, index) in pieces.apart {
            let is_wide = [address, index].map(|value| Class::of(self.ty(value)) == Some(Class::B64));
            if is_wide == [true; 2] && !pieces.scaled_in_loops.contains(&index) {
                self.folded.remove(&index);
                self.extended_before.insert(address);
            }
        }
    }
}
