//! Blocks: what a sub-group reads and writes side by side, as one access of the whole sub-group.

use headstart::prelude::*;

use super::{Family, H200, shown};

/// A sub-group doubles its elements a block at a time, one for each work-item.
#[kernel(work_group = group, sub_group = 32)]
pub fn by_one(values: &[u32], result: &mut [u32], #[constant] group: u32) {
    for block in (global_id() / 32..values.len() / 32).step_by(global_size() / 32) {
        let own = sub_group_load(&values[32 * block..]);
        sub_group_store(&mut result[32 * block..], 2 * own);
    }
}

/// The same in blocks of eight for each work-item, the largest there are.
#[kernel(work_group = group, sub_group = 32)]
pub fn by_eight(values: &[u32], result: &mut [u32], #[constant] group: u32) {
    for block in (global_id() / 32..values.len() / 256).step_by(global_size() / 32) {
        let first = 256 * block;
        let [a, b, c, d, e, f, g, h] = sub_group_load_block(&values[first..]);
        let doubled = [2 * a, 2 * b, 2 * c, 2 * d, 2 * e, 2 * f, 2 * g, 2 * h];
        sub_group_store_block(&mut result[first..], doubled);
    }
}

super::entries! {
    ONE by_one "blocks-of-one" "blocks of a sub-group, one element for each work-item";
    EIGHT by_eight "blocks-of-eight" "blocks of a sub-group, eight elements for each work-item";
}

const FULL: &[&str] = &["groups=1056", "group=256"];

/// The page.
pub static FAMILY: Family = Family {
    device: H200,
    page: "blocks",
    title: "Blocks: sixteen integers in a row for each work-item, or side by side for the sub-group",
    text: [
        "Sixteen integers in a row for each work-item are 32 cache lines for an access of its sub-group. In a block \
         (`sub_group_load_block`) a work-item's elements lie a sub-group apart and its neighbours' beside them; all name the same \
         first element, so that the access has one address. Intel's GPUs have messages for that: of four bytes, four for each \
         of 16 work-items, they load with one message of 256 bytes, where loads of each work-item are four messages with sixteen \
         addresses each. NVIDIA's GPUs have none; there a block is loads that are side by side, and what a block of eight gains is \
         that its loads are all on their way before the first is used.",
        "A block has 1, 2, 4 or 8 elements of 8 to 64 bits for each work-item, and anything else is a compile error. Sub-groups \
         of 32 do not have blocks on Intel's GPUs that have sub-groups of 8 (`Block reads not supported in SIMD32`, says their \
         compiler): a kernel that requires 32 is refused there, at its line and with what works, which is 8 and 16. The Max \
         series has them with 16 and 32. Work-items that are elsewhere, another first element, or one that is not aligned \
         are what the simulator reports.",
    ],
    kernels: &[
        shown("store-own", FULL),
        shown("store-side-by-side", FULL),
        shown("blocks-of-one", FULL),
        shown("blocks-of-eight", FULL),
    ],
};

#[cfg(test)]
mod tests {
    use crate::workloads::testing::run;

    #[test]
    fn all_are_doubled() {
        for kernel in ["blocks-of-one", "blocks-of-eight"] {
            let ran = run(kernel, &["groups=2", "group=64", "elements=2048"]);
            let expected: Vec<u32> = ran.u32s("values").iter().map(|value| 2 * value).collect();
            assert_eq!(ran.u32s("result"), expected, "{kernel}");
        }
    }
}
