//! `binary-search`: for each of many numbers, how many of a sorted list are smaller.
//!
//! Each step's address depends on the result of the step before, so nothing can be prefetched within a search; searches do not
//! depend on each other.

use std::sync::Arc;

use headstart::device::Pattern;
use headstart::ir::Type;
use headstart::prelude::*;
use headstart::tune::Workload;

use super::divided_searches;
use crate::data::{input, output, scalar};
use crate::kernels::{GalleryKernel, Iterations};
use crate::settings::Parameter;

/// A search a step at a time, without branches.
#[kernel(work_group = group)]
pub fn binary_search(
    sorted: &[u32],
    queries: &[u32],
    smaller: &mut [u32],
    items: u32,
    #[constant] group: u32,
    #[constant] levels: u32,
) {
    #[unroll(0)]
    for j in 0..items as usize {
        let at = j * global_size() + global_id();
        let query = queries[at];
        let mut below = 0;
        let mut half = 1usize << (levels - 1);
        while half > 0 {
            below += select(sorted[below + half - 1] < query, half, 0);
            half /= 2;
        }
        smaller[at] = below as u32;
    }
}

static PARAMETERS: [Parameter; 4] = [
    Parameter::number("groups", "work-groups", 528, 1..=1 << 20),
    Parameter::number("group", "work-items of a work-group", 256, 1..=1024),
    Parameter::number("items", "searches of each work-item", 16, 0..=1 << 16),
    Parameter::number("levels", "the list has 2 to this power of numbers", 27, 1..=30),
];

/// `binary-search`.
pub(crate) static KERNEL: GalleryKernel = GalleryKernel {
    name: "binary-search",
    summary: "binary search: many keys in one sorted list",
    parameters: &PARAMETERS,
    takes_trace: None,
    iterations: Iterations::Given {
        small: |settings, iterations| settings.with("groups", 2).with("items", iterations),
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
        let (length, step) = (1u64 << levels, 1u64 << (32 - levels));
        let kernel = binary_search::kernel(group, levels)?;
        let queries = Pattern::below(1 << 32, 23);
        Workload::new(Arc::new(kernel), groups, group)
            .with(
                "sorted",
                input(
                    Type::I32,
                    length,
                    Pattern::Steps {
                        first: step / 2,
                        step,
                    },
                ),
            )?
            .with("queries", input(Type::I32, count.max(1), queries))?
            .with("smaller", output(Type::I32, count.max(1)))?
            .with("items", scalar(items))
    },
};

#[cfg(test)]
pub(super) mod tests {
    use super::super::testing::{Ran, run};

    /// How many are smaller, looked for in another way.
    pub(in super::super) fn check(ran: &Ran) {
        let (sorted, queries) = (ran.of("sorted"), ran.u32s("queries"));
        // The last of a power of two is never asked for.
        let searched = sorted.len() - 1;
        let smaller = |&query| sorted.smaller(0..searched, query);
        let expected: Vec<u32> = queries.iter().map(smaller).collect();
        assert_eq!(ran.u32s("smaller"), expected);
    }

    #[test]
    fn numbers_are_found() {
        for levels in [1, 4, 9] {
            let levels = format!("levels={levels}");
            check(&run(
                "binary-search",
                &["groups=2", "group=32", "items=3", &levels],
            ));
        }
    }
}
