//! How the terms of a work-group were made, for those who want to explain a difference.

use std::collections::{BTreeMap, HashMap};

use super::terms::Term;
use crate::ir::{LoadId, Place};

/// How terms were made.
#[derive(Default)]
pub(super) struct Record {
    pub nodes: HashMap<Term, Node>,
    /// What was stored last to global memory, by the first byte of each value.
    pub stores: BTreeMap<u64, Stored>,
    /// How often each work-item has executed each load.
    pub executions: HashMap<(LoadId, u32), u64>,
}

/// A value in global memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stored {
    pub term: Term,
    pub bits: u64,
    pub size: u32,
    /// Linear in the work-group.
    pub item: u32,
    pub place: Place,
}

impl Record {
    /// The value that a byte belongs to.
    pub(crate) fn stored(&self, address: u64) -> Option<&Stored> {
        let (start, stored) = self.stores.range(..=address).next_back()?;
        (address - start < u64::from(stored.size)).then_some(stored)
    }
}

/// How a term was made.
#[derive(Clone, Debug)]
pub(super) enum Node {
    /// Read from global memory as the launch found it.
    Loaded {
        load: LoadId,
        /// Linear in the work-group.
        item: u32,
        /// How many executions of the load by this work-item went before.
        earlier: u64,
        address: u64,
    },
    /// Computed.
    Computed {
        what: String,
        place: Place,
        operands: Vec<(Term, u64)>,
    },
}

impl Node {
    /// What sort of thing it is.
    pub(crate) fn kind(&self) -> &str {
        match self {
            Node::Loaded { .. } => "load",
            Node::Computed { what, .. } => what,
        }
    }
}
