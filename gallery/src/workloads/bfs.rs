//! `bfs`: one step of a breadth-first search: the vertices that the frontier leads to and that were not reached before.
//!
//! Each vertex of the frontier has a few work-items, which go through its edges side by side.

use std::sync::Arc;

use headstart::ir::Type;
use headstart::prelude::*;
use headstart::tune::Workload;

use super::{groups_for, power_of_two};
use crate::data::graph::Graph;
use crate::data::{words, zeroed};
use crate::kernels::{GalleryKernel, Iterations, others};
use crate::settings::{Parameter, Settings};

/// Bytes of the graph and of the two sets of its vertices. The frontier's size is known when the search is made.
pub(super) fn bytes(settings: &Settings) -> u64 {
    let (vertices, edges) = Graph::counts(settings.small("scale"), settings.small("degree"));
    (vertices + 1 + edges + 2 * vertices.div_ceil(32)) * 4
}

/// Sets the bits of the vertices that are reached now.
#[kernel(work_group = group)]
pub fn bfs(
    frontier: &[u32],
    starts: &[u32],
    columns: &[u32],
    visited: &[u32],
    next: &[Atomic<u32>],
    #[constant] group: u32,
    #[constant] lanes: u32,
) {
    let i = global_id() / lanes as usize;
    let lane = global_id() % lanes as usize;
    if i < frontier.len() {
        let vertex = frontier[i] as usize;
        let first = starts[vertex] as usize + lane;
        let end = starts[vertex + 1] as usize;
        #[unroll(0)]
        for edge in (first..end).step_by(lanes as usize) {
            let neighbour = columns[edge];
            let word = (neighbour / 32) as usize;
            let bit = 1u32 << (neighbour % 32);
            if visited[word] & bit == 0 {
                next[word].fetch_or(bit, Ordering::Relaxed);
            }
        }
    }
}

static PARAMETERS: [Parameter; 5] = [
    Parameter::number("scale", "the graph has 2 to this power of vertices", 18, 5..=26),
    Parameter::number("degree", "edges of a vertex, on average", 16, 1..=64),
    Parameter::number("steps", "steps of the search that were made before", 2, 0..=64),
    Parameter::number("group", "work-items of a work-group", 256, 1..=1024),
    Parameter::number("lanes", "work-items of a vertex, a power of two", 16, 1..=32),
];

/// `bfs`.
pub(crate) static KERNEL: GalleryKernel = GalleryKernel {
    name: "bfs",
    summary: "a step of a breadth-first search on an R-MAT graph",
    parameters: &PARAMETERS,
    takes_trace: None,
    iterations: Iterations::Given {
        small: |settings, iterations| {
            let few = settings.with("scale", 6).with("steps", 1);
            few.with("degree", (iterations / 4).clamp(1, 64))
        },
        shapes: |settings| {
            let lanes = others(settings, "lanes", &[1, 2, 4, 8, 16, 32]);
            [lanes, others(settings, "group", &[128, 512])].concat()
        },
    },
    workload: |settings, _| {
        let (group, lanes) = (
            settings.small("group"),
            power_of_two("lanes", settings.small("lanes"))?,
        );
        let degree = settings.small("degree");
        let graph = Graph::new(settings.small("scale"), degree)?;
        let frontier = graph.frontier(degree, settings.small("steps"));
        let groups = groups_for(frontier.vertices.len() as u64 * u64::from(lanes), group)?;
        let reached = frontier.visited.len() as u64;
        Workload::new(Arc::new(bfs::kernel(group, lanes)?), groups, group)
            .with("frontier", words(&frontier.vertices))?
            .with("starts", words(&graph.starts))?
            .with("columns", words(&graph.columns))?
            .with("visited", words(&frontier.visited))?
            .with("next", zeroed(Type::I32, reached))
    },
};

#[cfg(test)]
pub(super) mod tests {
    use super::super::testing::{Ran, run};

    /// The neighbours of the frontier that were not reached before.
    pub(in super::super) fn check(ran: &Ran) {
        let (starts, columns) = (ran.of("starts"), ran.of("columns"));
        let visited = ran.u32s("visited");
        let mut expected = vec![0; visited.len()];
        for vertex in ran.indices("frontier") {
            for edge in starts.index(vertex)..starts.index(vertex + 1) {
                let neighbour = columns.u32(edge);
                let (word, bit) = (neighbour as usize / 32, 1 << (neighbour % 32));
                expected[word] |= bit & !visited[word];
            }
        }
        assert!(expected.iter().any(|&word| word > 0));
        assert_eq!(ran.u32s("next"), expected);
    }

    #[test]
    fn the_next_frontier_is_reached() {
        for lanes in ["lanes=1", "lanes=8"] {
            check(&run(
                "bfs",
                &["scale=9", "degree=8", "steps=1", "group=64", lanes],
            ));
        }
    }
}
