//! `pagerank`: one step of PageRank: each vertex adds up its in-neighbours' contributions.
//!
//! A vertex's contribution, its rank over its out-degree, is computed by the step before.

use std::sync::Arc;

use headstart::ir::Type;
use headstart::prelude::*;
use headstart::tune::Workload;

use super::spmv::add_lanes;
use super::{groups_for, power_of_two, whole_sub_groups};
use crate::data::graph::Graph;
use crate::data::{fractions, output, words};
use crate::kernels::{GalleryKernel, Iterations, others};
use crate::settings::{Parameter, Settings};

/// Bytes of the graph, of its vertices' contributions, and of their ranks.
pub(super) fn bytes(settings: &Settings) -> u64 {
    let (vertices, edges) = Graph::counts(settings.small("scale"), settings.small("degree"));
    (vertices + 1 + edges + 2 * vertices) * 4
}

/// The ranks with damping 0.85.
#[kernel(work_group = group, sub_group = 32)]
pub fn pagerank(
    starts: &[u32],
    columns: &[u32],
    given: &[f32],
    ranks: &mut [f32],
    #[constant] group: u32,
    #[constant] lanes: u32,
) {
    let vertex = global_id() / lanes as usize;
    let lane = global_id() % lanes as usize;
    let mut sum = 0.0;
    if vertex < ranks.len() {
        let first = starts[vertex] as usize + lane;
        let end = starts[vertex + 1] as usize;
        #[unroll(0)]
        for edge in (first..end).step_by(lanes as usize) {
            sum += given[columns[edge] as usize];
        }
    }
    sum = add_lanes(sum, lanes);
    if vertex < ranks.len() && lane == 0 {
        ranks[vertex] = 0.15 / ranks.len() as f32 + 0.85 * sum;
    }
}

static PARAMETERS: [Parameter; 4] = [
    Parameter::number("scale", "the graph has 2 to this power of vertices", 18, 5..=26),
    Parameter::number("degree", "edges of a vertex, on average", 16, 1..=64),
    Parameter::number(
        "group",
        "work-items of a work-group, a multiple of 32",
        256,
        32..=1024,
    ),
    Parameter::number("lanes", "work-items of a vertex, a power of two", 8, 1..=32),
];

/// `pagerank`.
pub(crate) static KERNEL: GalleryKernel = GalleryKernel {
    name: "pagerank",
    summary: "a step of PageRank on an R-MAT graph",
    parameters: &PARAMETERS,
    takes_trace: None,
    iterations: Iterations::Given {
        small: |settings, iterations| {
            settings
                .with("scale", 6)
                .with("degree", (iterations / 4).clamp(1, 64))
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
        let graph = Graph::new(settings.small("scale"), settings.small("degree"))?;
        let vertices = u64::from(graph.vertices);
        let groups = groups_for(vertices * u64::from(lanes), group)?;
        Workload::new(
            Arc::new(pagerank::kernel(whole_sub_groups(group)?, lanes)?),
            groups,
            group,
        )
        .with("starts", words(&graph.starts))?
        .with("columns", words(&graph.columns))?
        .with("given", fractions(Type::F32, vertices))?
        .with("ranks", output(Type::F32, vertices))
    },
};

#[cfg(test)]
pub(super) mod tests {
    use super::super::testing::{Ran, close, run};

    /// The neighbours' contributions, added up in double precision.
    pub(in super::super) fn check(ran: &Ran) {
        let (starts, columns, given) = (ran.indices("starts"), ran.of("columns"), ran.of("given"));
        let vertices = (starts.len() - 1) as f64;
        let rank = |own: &[usize]| {
            let of = |edge| f64::from(given.f32(columns.index(edge)));
            let sum: f64 = (own[0]..own[1]).map(of).sum();
            (0.15 / vertices + 0.85 * sum) as f32
        };
        let expected: Vec<f32> = starts.windows(2).map(rank).collect();
        close(&ran.f32s("ranks"), &expected, 1e-5);
    }

    #[test]
    fn ranks_are_added_up() {
        for lanes in ["lanes=1", "lanes=16"] {
            check(&run("pagerank", &["scale=9", "degree=8", "group=64", lanes]));
        }
    }
}
