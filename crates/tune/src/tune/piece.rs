//! A planned loop as text, for the place in front of the loop that it was derived from.

use std::collections::HashMap;

use super::drop_in::capability;
use crate::back::ptx::{Block, Edges, Handed, Options, PtxTarget, Within, emit_within};
use crate::error::{Error, Result};
use crate::front::ptx::{Origin, Original};
use crate::ir::{Kernel, Op, OpKind, Opaque, Region, Space};
use crate::prefetch::is_unseen;

/// What a loop is printed in.
pub(super) struct Around<'a> {
    /// The module.
    pub original: &'a Original,
    /// The whole kernel that the loop was cut out of.
    pub kernel: &'a Kernel,
    /// By variable of the module, the one that holds its address, where it is not the module's own that is meant.
    pub kept: &'a HashMap<String, String>,
    /// What the names of variables begin with that the block declares: no other block has such a name.
    pub stem: String,
    /// Shared memory that other loops' blocks declare, in bytes.
    pub declared_bytes: u64,
}

impl Around<'_> {
    /// The loop as a block.
    ///
    /// # Errors
    /// It names a variable that cannot be named there, or takes more shared memory than an entry can declare.
    pub fn block(&self, piece: &Kernel, edges: Edges) -> Result<Block> {
        let original = self.original;
        knows_all(piece)?;
        has_results(self.kernel, piece)?;
        let of_entry = |name: &str| original.arrays.iter().find(|array| array.name == name);
        let mut arrays = Vec::new();
        for data in piece.arrays.values() {
            let Some(around) = of_entry(&data.name) else {
                continue;
            };
            if !around.is_visible {
                return Err(Error::input(format!(
                    "the loop cannot be edited: it names `{}`, which a block of its own declares",
                    data.name
                ))
                .accepted("loops that name variables of the entry or the module"));
            }
            arrays.push(data.name.clone());
        }
        // What the launch asks for is not declared.
        let is_declared = |name: &str| of_entry(name).is_some_and(|around| !around.is_dynamic);
        let shared = self
            .kernel
            .arrays
            .values()
            .filter(|data| data.space == Space::Shared);
        let shared = shared.filter(|data| is_declared(&data.name));
        let body = &original.text[original.body.clone()];
        let within = Within {
            parameters: original
                .parameters
                .iter()
                .map(|origin| self.handed(origin))
                .collect(),
            static_shared_bytes: self.declared_bytes + shared.map(|data| data.bytes()).sum::<u64>(),
            dynamic_shared_bytes: u64::from(original.dynamic_shared_bytes),
            arrays,
            files: original.files.clone(),
            fuses_addresses: body.matches("mad.wide").count() > body.matches("mul.wide").count(),
            stem: self.stem.clone(),
            edges,
        };
        let target = match capability(&original.target) {
            Some(90..) => PtxTarget::Sm90,
            _ => PtxTarget::Sm80,
        };
        let block = emit_within(piece, &Options::new(target), &within)?;
        // Hints for L1 take some, too.
        if block.static_shared_bytes > 0 {
            is_unseen(self.kernel)?;
        }
        Ok(block)
    }

    /// How a block comes by a parameter of the kernel.
    fn handed(&self, origin: &Origin) -> Handed {
        match origin {
            Origin::Parameter { name, offset, .. } => Handed::Parameter {
                name: name.clone(),
                offset: *offset,
            },
            Origin::Structure { name, .. } => Handed::Structure { name: name.clone() },
            Origin::Workspace => Handed::Workspace,
            Origin::Variable {
                name, is_constant, ..
            } => match self.kept.get(name) {
                Some(kept) => Handed::Kept { name: kept.clone() },
                None => Handed::Variable {
                    name: name.clone(),
                    is_constant: *is_constant,
                },
            },
        }
    }
}

/// Refuses a loop with an instruction of which nothing is known, not even which of its operands it writes.
fn knows_all(piece: &Kernel) -> Result<()> {
    let mut odd = None;
    piece.body.walk(&mut |op| {
        if let OpKind::Opaque(what, _) = &op.kind
            && !what.text.contains("call ")
            && *what == Opaque::unknown(what.text.clone(), what.makes.clone())
        {
            odd.get_or_insert((op.place, what.name()));
        }
    });
    let Some((place, name)) = odd else { return Ok(()) };
    Err(
        Error::input(format!("the loop cannot be edited: nothing is known of `{name}`"))
            .at(piece.describe_place(place))
            .accepted("a plan for another loop"),
    )
}

/// Refuses a loop whose accumulators of `wgmma` may be in flight at its edge, or where others are waited for: they must stay in
/// their registers.
fn has_results(kernel: &Kernel, piece: &Kernel) -> Result<()> {
    let count = |body: &Region| {
        let mut count = 0;
        body.walk(&mut |op| count += usize::from(starts_product(op)));
        count
    };
    if count(&kernel.body) == count(&piece.body) && waits_for_all(&piece.body) {
        return Ok(());
    }
    Err(
        Error::input("the loop cannot be edited: products of `wgmma` may be in flight at its edge, or where others are waited for")
            .accepted("loops that wait for all of their own products (`wgmma.wait_group 0`)"),
    )
}

/// Whether each region waits for all of the products that it starts, and none for some of them.
fn waits_for_all(region: &Region) -> bool {
    let started = region.ops.iter().rposition(starts_product);
    let waits = |op: &Op| is_for_all(op) == Some(true);
    let ends = started.is_none_or(|at| region.ops[at..].iter().any(waits));
    let waits_for_some = |op: &Op| is_for_all(op) == Some(false);
    ends && !region.ops.iter().any(waits_for_some)
        && region.ops.iter().all(|op| op.kind.regions().all(waits_for_all))
}

/// Whether an operation is a product whose results come later.
fn starts_product(op: &Op) -> bool {
    matches!(&op.kind, OpKind::Opaque(what, _) if what.text.starts_with("wgmma.mma_async"))
}

/// Whether an operation that waits for products waits for all of them.
fn is_for_all(op: &Op) -> Option<bool> {
    match &op.kind {
        OpKind::Opaque(what, _) if what.text.starts_with("wgmma.wait_group") => {
            Some(what.text.ends_with(" 0"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::OpaqueOperands;

    #[test]
    fn products_are_waited_for_where_they_are_started() {
        let waits = |texts: &[&str]| {
            let op = |text: &&str| Op {
                kind: OpKind::Opaque(
                    Opaque::unknown((*text).to_owned(), Vec::new()),
                    OpaqueOperands::default(),
                ),
                results: Vec::new(),
                place: Kernel::NOWHERE,
            };
            let ops = texts.iter().map(op).collect();
            waits_for_all(&Region { ops })
        };
        const STARTS: &str = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {=0}, @0, @1";
        const SOME: &str = "wgmma.wait_group.sync.aligned 1";
        const ALL: &str = "wgmma.wait_group.sync.aligned 0";
        assert!(waits(&[]) && waits(&[STARTS, STARTS, ALL]));
        assert!(!waits(&[STARTS]) && !waits(&[ALL, STARTS]));
        // Other accumulators are in flight behind the first wait.
        assert!(!waits(&[STARTS, STARTS, SOME, ALL]));
    }
}
