//! The number of iterations per step of a rewritten loop, and whether strategies and unrolling agree on it.
//!
//! ```text
//! unroll:4,values=rolling-async:8       steps of 4, tested once: the ring's 8 slots are two steps
//! values=batched-registers:6            steps of 6, each copy keeps its test
//! unroll:4,values=rolling-async:6       refused: 6 slots are not made of groups of 4
//! ```

use std::collections::HashMap;

use super::fetch::Tests;
use super::plan::{Carried, Strategy, Unroll};
use crate::analysis::loops::LoopSummary;
use crate::error::{Error, Result};
use crate::ir::{Kernel, LoadId};

/// Iterations a step, and how they are tested.
#[derive(Clone, Copy, Debug)]
pub(super) struct StepShape {
    /// Iterations a step.
    pub(super) group: u32,
    /// How a step of several tests its count.
    pub(super) tests: Tests,
}

impl StepShape {
    /// The form of a step for an unrolling and the strategies of a loop's loads.
    ///
    /// # Errors
    /// They cannot be combined: the message says which, and which combinations are accepted.
    pub(super) fn of(
        kernel: &Kernel,
        summary: &LoopSummary,
        unroll: Option<Unroll>,
        strategies: &HashMap<LoadId, Strategy>,
    ) -> Result<StepShape> {
        let asked = unroll.and_then(Unroll::iterations).unwrap_or(1);
        let batches: Vec<u32> = strategies
            .values()
            .filter(|strategy| strategy.carried() == Carried::InBatches)
            .map(|strategy| strategy.distance().get())
            .collect();
        let batch = batches.iter().copied().max();
        if batches.iter().any(|&other| Some(other) != batch) {
            return Err(Error::usage("batches of different sizes in one loop")
                .accepted("one distance for all batches"));
        }
        let group = match batch {
            Some(batch) if batch % asked == 0 => batch,
            Some(batch) => {
                return Err(
                    Error::usage(format!("a batch of {batch} is not made of groups of {asked}"))
                        .accepted(format!("a distance that is a multiple of {asked}")),
                );
            }
            None => asked,
        };
        let rings = strategies
            .iter()
            .filter(|(_, strategy)| strategy.carried().is_ring());
        let rings: Vec<(&LoadId, &Strategy)> = rings.collect();
        let tests = match (&summary.exit, asked > 1) {
            (Ok(_), true) => Tests::Once,
            _ => Tests::Kept,
        };
        if let (Tests::Kept, true, Some((id, strategy))) = (tests, group > 1, rings.first()) {
            let name = &kernel.loads[**id].name;
            return Err(match &summary.exit {
                Err(why) => Error::usage(format!("iterations cannot be grouped around a ring: {why}"))
                    .accepted(format!(
                        "`{name}={strategy}` without `unroll`, or `unroll` without a ring"
                    )),
                Ok(_) => Error::usage("a batch in registers beside a ring, one iteration at a time")
                    .accepted(format!("`unroll:{group}` in front, or batches alone")),
            });
        }
        for (id, strategy) in rings {
            let distance = strategy.distance().get();
            let in_registers = strategy.carried() == Carried::InRegisters;
            if !in_registers && distance % group != 0 {
                let name = &kernel.loads[*id].name;
                return Err(Error::usage(format!(
                    "`{name}`: {distance} slots are not made of groups of {group}"
                ))
                .accepted(format!("a distance that is a multiple of {group}")));
            }
        }
        Ok(StepShape { group, tests })
    }
}
