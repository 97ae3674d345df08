//! `btree`: for each of many numbers its place in a B+ tree whose nodes have 16 keys, 64 bytes.
//!
//! A node is read at once, by four loads of 16 bytes, and is one sixteenth of the way; a level's address depends on
//! the level above.

use std::sync::Arc;

use headstart::device::Pattern;
use headstart::ir::Type;
use headstart::prelude::*;
use headstart::tune::Workload;

use crate::data::{computed, input, output, scalar};
use crate::kernels::{GalleryKernel, Iterations, others};
use crate::settings::Parameter;

/// How many of four keys are smaller.
#[device_fn]
fn smaller_of(nodes: &[[u32; 4]], at: usize, query: u32) -> usize {
    let [a, b, c, d] = nodes[at];
    select(a < query, 1usize, 0) + select(b < query, 1, 0) + select(c < query, 1, 0) + select(d < query, 1, 0)
}

/// Levels from the root's to the leaves, one behind the other, each sixteen times the one before; a key of an inner
/// node is the largest below it.
#[kernel(work_group = group)]
pub fn btree(
    nodes: &[[u32; 4]],
    queries: &[u32],
    smaller: &mut [u32],
    items: u32,
    levels: u32,
    #[constant] group: u32,
) {
    #[unroll(0)]
    for j in 0..items as usize {
        let at = j * global_size() + global_id();
        let query = queries[at];
        // Of the level, in fours: where it starts, and how long it is.
        let mut level = 0usize;
        let mut length = 4usize;
        let mut node = 0usize;
        let mut rank = 0;
        #[unroll(0)]
        for _ in 0..levels {
            let first = level + node * 4;
            let mut count = 0;
            #[unroll]
            for part in 0..4 {
                count += smaller_of(nodes, first + part, query);
            }
            rank = node * 16 + count;
            // What is larger than everything goes to the last child.
            node = node * 16 + count.min(15);
            level += length;
            length *= 16;
        }
        smaller[at] = rank as u32;
    }
}

static PARAMETERS: [Parameter; 4] = [
    Parameter::number("groups", "work-groups", 528, 1..=1 << 20),
    Parameter::number("group", "work-items of a work-group", 256, 1..=1024),
    Parameter::number("items", "searches of each work-item", 16, 0..=1 << 16),
    Parameter::number("levels", "the tree has 16 to this power of keys", 7, 1..=7),
];

/// `btree`.
pub(crate) static KERNEL: GalleryKernel = GalleryKernel {
    name: "btree",
    summary: "many numbers looked for in a B+ tree",
    parameters: &PARAMETERS,
    takes_trace: None,
    iterations: Iterations::Given {
        small: |settings, iterations| {
            let few = settings.with("groups", 2).with("items", iterations);
            few.with("levels", settings.get("levels").min(3))
        },
        shapes: |settings| others(settings, "group", &[64, 128, 256, 512, 1024]),
    },
    workload: |settings, _| {
        let (groups, group, items) = (
            settings.small("groups"),
            settings.small("group"),
            settings.small("items"),
        );
        let levels = settings.small("levels");
        let count = u64::from(groups) * u64::from(group) * u64::from(items);
        let keys = (1..=levels).map(|level| 1u64 << (4 * level)).sum();
        let kernel = btree::kernel(group)?;
        let queries = Pattern::Below {
            bound: 1 << 32,
            seed: 29,
        };
        Workload::new(Arc::new(kernel), groups, group)
            .with(
                "nodes",
                computed(Type::I32, keys, move |index| key(index, levels)),
            )?
            .with("queries", input(Type::I32, count.max(1), queries))?
            .with("smaller", output(Type::I32, count.max(1)))?
            .with("items", scalar(items))?
            .with("levels", scalar(levels))
    },
};

/// The key at a place of the levels: of the leaves' keys, which are evenly spread, the last one below it.
fn key(index: u64, levels: u32) -> u64 {
    let (mut index, mut level) = (index, 1);
    while index >= 1 << (4 * level) {
        index -= 1 << (4 * level);
        level += 1;
    }
    let last_below = ((index + 1) << (4 * (levels - level))) - 1;
    (last_below << (32 - 4 * levels)) + 3
}

#[cfg(test)]
mod tests {
    use super::super::testing::run;

    #[test]
    fn numbers_are_found() {
        for levels in 1..=3 {
            let setting = format!("levels={levels}");
            let ran = run("btree", &["groups=2", "group=32", "items=3", &setting]);
            let nodes = ran.u32s("nodes");
            let leaves = &nodes[nodes.len() - (1 << (4 * levels))..];
            assert!(leaves.is_sorted());
            let expected: Vec<u32> = ran
                .u32s("queries")
                .iter()
                .map(|query| leaves.partition_point(|key| key < query) as u32)
                .collect();
            assert_eq!(ran.u32s("smaller"), expected);
        }
    }
}
