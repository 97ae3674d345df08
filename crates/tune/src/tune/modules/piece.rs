//! What a plan made of a loop as text, for the place in front of the loop.

use std::collections::HashMap;

use super::drop_in::capability;
use crate::back::ptx::{self, Block, Handed, Options, PtxTarget, Within, emit_within};
use crate::error::{Error, Result};
use crate::front::ptx::{CutRegister, LoopInText, Origin, Original};
use crate::ir::{Kernel, Space};
use crate::prefetch::is_unseen;

/// What a loop is printed in.
pub(in crate::tune) struct Around<'a> {
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
    pub(crate) fn block(&self, piece: &Kernel, own: &LoopInText, copies: Vec<String>) -> Result<Block> {
        let original = self.original;
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
            has_shared_behind: original.shared_behind(own.span.start),
            files: original.files.clone(),
            fuses_addresses: body.matches("mad.wide").count() > body.matches("mul.wide").count(),
            stem: self.stem.clone(),
            enter: own.inputs.iter().map(register).collect(),
            leave: own.label.clone(),
            copies,
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

/// A register of the text.
fn register(own: &CutRegister) -> ptx::Around {
    ptx::Around {
        name: own.name.clone(),
        // `pred` has no number.
        bits: own
            .ty
            .trim_start_matches(|c: char| c.is_ascii_alphabetic())
            .parse()
            .ok(),
    }
}
