//! What a pass gets: a load with its strategy, its loop, and the launch.

use std::collections::HashMap;

use super::loads::parents;
use super::plan::Strategy;
use super::shape::StepShape;
use crate::analysis::definitions::Definitions;
use crate::analysis::loops::{LoadSite, LoopSummary};
use crate::ir::{Kernel, LoadId};

/// The launch properties for which a plan is applied.
#[derive(Clone, Copy, Debug)]
pub struct PlanTarget {
    /// The work-group size of the launch, if it is known: shared memory needs it. A kernel that requires
    /// one keeps its own.
    pub group_size: Option<[u32; 3]>,
    /// Bytes a cache line: 128 on NVIDIA, 64 on Intel.
    pub line: u32,
}

impl PlanTarget {
    /// For launches with work-groups of this size.
    pub fn of(group: [u32; 3]) -> PlanTarget {
        PlanTarget {
            group_size: Some(group),
            ..PlanTarget::default()
        }
    }
}

impl Default for PlanTarget {
    fn default() -> PlanTarget {
        PlanTarget {
            group_size: None,
            line: 128,
        }
    }
}

/// A load with its strategy, and all that is known of its loop.
pub(super) struct Planned<'a> {
    pub kernel: &'a Kernel,
    pub definitions: &'a Definitions,
    pub summary: &'a LoopSummary,
    /// Those of all loads of the loop.
    pub strategies: &'a HashMap<LoadId, Strategy>,
    pub shape: &'a StepShape,
    pub site: &'a LoadSite,
    pub strategy: Strategy,
    pub target: &'a PlanTarget,
}

impl Planned<'_> {
    /// How many iterations ahead.
    pub(crate) fn ahead(&self) -> u32 {
        self.strategy.distance().get()
    }

    /// Distances at which the addresses of other loads need the value.
    pub(crate) fn consumers(&self) -> Vec<u32> {
        let children = self.summary.loads.iter().filter(|child| {
            child.id != self.site.id
                && parents(self.summary, child.pointer, &child.conditions).contains(&self.site.id)
        });
        children
            .filter_map(|child| self.strategies.get(&child.id))
            .filter(|strategy| !strategy.carried().is_batch())
            .map(|strategy| strategy.distance().get())
            .collect()
    }

    /// Whether the address needs values that are loaded in the loop.
    pub(crate) fn is_chained(&self) -> bool {
        let parents = parents(self.summary, self.site.pointer, &self.site.conditions);
        parents.iter().any(|&parent| parent != self.site.id)
    }
}
