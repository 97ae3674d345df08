//! `pagerank`: one step of PageRank: each vertex adds up what its in-neighbours give away.
//!
//! What a vertex gives, its rank over its out-degree, is computed by the step before.

use std::sync::Arc;

use headstart::ir::Type;
use headstart::prelude::*;
use headstart::tune::Workload;

use super::spmv::add_lanes;
use super::{groups_for, power_of_two, whole_sub_groups};
use crate::data::graph::Graph;
use crate::data::{fractions, output, words};
use crate::kernels::{GalleryKernel, Iterations, others};
use crate::settings::Parameter;

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
        let graph = Graph::new(settings.small("scale"), settings.small("degree"));
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
mod tests {
    use super::super::testing::{close, run};

    #[test]
    fn ranks_are_added_up() {
        for lanes in ["lanes=1", "lanes=16"] {
            let ran = run("pagerank", &["scale=9", "degree=8", "group=64", lanes]);
            let (starts, columns) = (ran.indices("starts"), ran.indices("columns"));
            let given = ran.f32s("given");
            let rank = |own: &[usize]| {
                let sum: f32 = columns[own[0]..own[1]].iter().map(|&from| given[from]).sum();
                0.15 / 512.0 + 0.85 * sum
            };
            let expected: Vec<f32> = starts.windows(2).map(rank).collect();
            close(&ran.f32s("ranks"), &expected, 1e-5);
        }
    }
}
