//! `btree`: for each of many numbers its place in a B+ tree whose nodes have 16 keys, 64 bytes.
//!
//! A node is read at once, by four loads of 16 bytes, and is one sixteenth of the way; a level's address depends on
//! the level above.

use std::sync::Arc;

use headstart::Error;
use headstart::device::Pattern;
use headstart::ir::Type;
use headstart::prelude::*;
use headstart::report::number::grouped;
use headstart::tune::Workload;

use super::{divided_searches, power_of_two};
use crate::data::{computed_as, input, output, scalar};
use crate::kernels::{GalleryKernel, Iterations};
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
            // Keys larger than everything go to the last child.
            node = node * 16 + count.min(15);
            level += length;
            length *= 16;
        }
        smaller[at] = rank as u32;
    }
}

static PARAMETERS: [Parameter; 5] = [
    Parameter::number("groups", "work-groups", 528, 1..=1 << 20),
    Parameter::number("group", "work-items of a work-group", 256, 1..=1024),
    Parameter::number("items", "searches of each work-item", 16, 0..=1 << 16),
    Parameter::number("levels", "nodes from the root to a leaf", 7, 1..=8),
    Parameter::number(
        "root",
        "keys of the root, a power of two; all other nodes have 16",
        16,
        1..=16,
    ),
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
        shapes: divided_searches,
    },
    workload: |settings, _| {
        let (groups, group, items) = (
            settings.small("groups"),
            settings.small("group"),
            settings.small("items"),
        );
        let levels = settings.small("levels");
        let count = u64::from(groups) * u64::from(group) * u64::from(items);
        let root = u64::from(power_of_two("root", settings.small("root"))?);
        if levels == 1 && root < 16 {
            return Err(
                Error::usage(format!("a tree of one level cannot have a root of {root}"))
                    .accepted("16, or more levels"),
            );
        }
        let leaves = root << (4 * (levels - 1));
        if leaves > MOST_KEYS {
            return Err(Error::usage(format!(
                "a tree of {levels} levels under a root of {root} has {} keys, which do not fit 32 bits with room between",
                grouped(leaves)
            ))
            .accepted(format!("up to {}", grouped(MOST_KEYS))));
        }
        // Levels begin where those of a complete tree do; of the last one only the existing nodes take memory.
        let keys = (1..levels).map(|level| 1u64 << (4 * level)).sum::<u64>() + leaves;
        let kernel = btree::kernel(group)?;
        let queries = Pattern::below(1 << 32, 29);
        Workload::new(Arc::new(kernel), groups, group)
            .with(
                "nodes",
                computed_as(
                    &format!("tree of {levels} levels under {root}"),
                    Type::I32,
                    keys,
                    move |index| key(index, levels, root),
                ),
            )?
            .with("queries", input(Type::I32, count.max(1), queries))?
            .with("smaller", output(Type::I32, count.max(1)))?
            .with("items", scalar(items))?
            .with("levels", scalar(levels))
    },
};

/// Keys lie apart by four or more.
const MOST_KEYS: u64 = 1 << 30;

/// The key at a place of the levels: of the leaves' keys, which are evenly spread, the last one below it. Missing keys, and the
/// last key of a root that is not full, are larger than everything.
fn key(index: u64, levels: u32, root: u64) -> u64 {
    let (mut index, mut level) = (index, 1);
    while index >= 1 << (4 * level) {
        index -= 1 << (4 * level);
        level += 1;
    }
    let last_below = ((index + 1) << (4 * (levels - level))) - 1;
    let is_in_root = level == 1;
    let there = root << (4 * (level - 1));
    if index >= there || is_in_root && root < 16 && index + 1 == there {
        return u64::from(u32::MAX);
    }
    (last_below << (32 - 4 * (levels - 1) - root.ilog2())) + 3
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::testing::{Ran, run};
    use crate::kernels;
    use headstart::tune::Subject;

    /// How many of the leaves' keys are smaller.
    pub(in super::super) fn check(ran: &Ran) {
        let nodes = ran.of("nodes");
        let number = |name: &str| ran.word(name).parse::<u32>().expect("a number");
        let keys = (number("root") as usize) << (4 * (ran.scalar("levels") - 1));
        let first = nodes.len() - keys;
        let smaller = |&query| nodes.smaller(first..nodes.len(), query);
        let expected: Vec<u32> = ran.u32s("queries").iter().map(smaller).collect();
        assert_eq!(ran.u32s("smaller"), expected);
    }

    #[test]
    fn numbers_are_found() {
        for levels in 1..=3 {
            // One level is one whole node.
            let roots = if levels == 1 { 1 } else { 3 };
            for root in &["root=16", "root=8", "root=1"][..roots] {
                let setting = format!("levels={levels}");
                let ran = run("btree", &["groups=2", "group=32", "items=3", &setting, root]);
                let nodes = ran.u32s("nodes");
                let keys = root[5..].parse::<usize>().expect("a number") << (4 * (levels - 1));
                assert!(nodes[nodes.len() - keys..].is_sorted_by(|a, b| a < b));
                check(&ran);
            }
        }
    }

    #[test]
    fn more_keys_than_fit_32_bits_are_refused() {
        let settings = ["levels=8".to_owned(), "root=8".to_owned()];
        let chosen = kernels::find("btree").and_then(|kernel| kernel.with(&settings, None));
        let error = chosen.and_then(|chosen| chosen.workload()).expect_err("too many");
        assert!(error.to_string().contains("2,147,483,648 keys"), "{error}");
    }
}
