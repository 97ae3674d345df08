//! A strategy at work in a loop that is rewritten, and that loop.

use super::early::Early;
use super::limits::Limits;
use crate::analysis::definitions::Definitions;
use crate::analysis::loops::{LoadSite, LoopSummary};
use crate::error::Result;
use crate::ir::{Builder, Label, Place, Region, Value};

/// One strategy at work on one load.
pub(super) trait Fetch {
    /// The load it serves.
    fn site(&self) -> &LoadSite;

    /// Fetches the first iterations, in front of the loop, and gives the first state. Who carries nothing has none.
    fn prologue(&mut self, _early: &mut Early<'_>, _b: &mut Builder<'_>) -> Result<Vec<Value>> {
        Ok(Vec::new())
    }

    /// At the start of a step of `group` iterations: takes their values out of `state` and passes them to `early`, fetches as
    /// many further ahead, and gives the next state.
    fn advance(
        &mut self,
        early: &mut Early<'_>,
        b: &mut Builder<'_>,
        state: &[Value],
        group: u32,
    ) -> Result<Vec<Value>>;

    /// At the end of a step, behind the uses of its values: work that can wait until there.
    fn finish(&mut self, _b: &mut Builder<'_>) {}

    /// Whether the strategy's value replaces the load itself.
    fn replaces_load(&self) -> bool;

    /// The token in `state` that covers all copies in flight, if there may be any.
    fn in_flight(&self, _state: &[Value]) -> Option<Value> {
        None
    }
}

/// How a step of several iterations treats the counting test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tests {
    /// One test for the whole group; the rest runs in a plain loop.
    Once,
    /// Each copy keeps its own.
    Kept,
}

/// How a loop is rewritten.
pub(super) struct Rewrite<'f> {
    /// Iterations a step.
    pub(super) group: u32,
    /// How they are tested.
    pub(super) tests: Tests,
    /// The strategies, a load's parents before it.
    pub(super) fetches: Vec<&'f mut dyn Fetch>,
    /// Other loads to bring to the start of the step, where that is legal.
    pub(super) gather_loads: bool,
}

/// The loop that is rewritten, and the facts about it.
pub(super) struct Frame<'a> {
    pub(super) summary: &'a LoopSummary,
    pub(super) definitions: &'a Definitions,
    pub(super) label: Label,
    pub(super) body: &'a Region,
    pub(super) place: Place,
    /// How many state values each fetch has.
    pub(super) widths: Vec<usize>,
    pub(super) limits: Limits,
}

impl Frame<'_> {
    /// How many operations of the body come before the values of its iteration are taken: up to the
    /// counting test, if nothing but pure operations precede it.
    pub(super) fn head(&self) -> usize {
        match &self.summary.exit {
            Ok(exit) if exit.leading => exit.position + 1,
            _ => 0,
        }
    }
}
