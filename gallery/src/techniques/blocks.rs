//! Blocks: adjacent reads and writes of a sub-group, as one access of the whole sub-group.

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
    title: "Blocks: sixteen integers per work-item, consecutive or interleaved over the sub-group",
    text: [
        "Sixteen consecutive integers per work-item are 32 cache lines for an access of its sub-group. In a block \
         (`sub_group_load_block`) a work-item's elements are a sub-group apart, with its neighbours' elements \
         between them; all name the same first element, so the access has one address. Intel's GPUs have messages \
         for that: with four elements of four bytes for each of 16 work-items, one message of 256 bytes loads the \
         block; per-work-item loads are four messages with sixteen addresses each. NVIDIA's GPUs have no such \
         message. There a block becomes adjacent loads, and a block of eight gains because all its loads are in \
         flight before the first value is used.",
        "A block has 1, 2, 4 or 8 elements of 8 to 64 bits per work-item; anything else is a compile error. Intel's \
         GPUs with sub-groups of 8 do not have blocks for sub-groups of 32 (their compiler reports `Block reads not \
         supported in SIMD32`): a kernel that requires 32 is refused there, with its line and the accepted sizes, 8 \
         and 16. The Max series has them with 16 and 32. The simulator reports work-items that are missing, a \
         different first element, and a misaligned one.",
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
