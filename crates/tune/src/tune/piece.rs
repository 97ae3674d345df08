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

/// Refuses a loop over whose edges results may go that an instruction has not made yet: they must stay in their registers.
fn has_results(kernel: &Kernel, piece: &Kernel) -> Result<()> {
    let count = |kernel: &Kernel| {
        let mut count = 0;
        kernel.body.walk(&mut |op| count += usize::from(later(op)));
        count
    };
    let mut waits = true;
    every_region(&piece.body, &mut |region| {
        let started = region.ops.iter().rposition(later);
        waits &= started.is_none_or(|at| region.ops[at..].iter().any(waits_for_all));
    });
    if waits && count(kernel) == count(piece) {
        return Ok(());
    }
    Err(
        Error::input("the loop cannot be edited: products of `wgmma` may be in flight at its edge")
            .accepted("loops that wait for all of their own products (`wgmma.wait_group 0`)"),
    )
}

/// Whether an operation is an instruction whose results come later.
fn later(op: &Op) -> bool {
    matches!(&op.kind, OpKind::Opaque(what, _) if what.text.starts_with("wgmma.mma_async"))
}

/// Whether an operation waits for all such results.
fn waits_for_all(op: &Op) -> bool {
    matches!(&op.kind, OpKind::Opaque(what, _) if what.text.starts_with("wgmma.wait_group") && what.text.ends_with(" 0"))
}

fn every_region(region: &Region, visit: &mut impl FnMut(&Region)) {
    visit(region);
    for op in &region.ops {
        op.kind.regions().for_each(|inner| every_region(inner, visit));
    }
}
