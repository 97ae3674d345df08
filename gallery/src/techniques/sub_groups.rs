//! Sub-groups: who writes which elements, and how neighbours exchange values.

use headstart::prelude::*;

use super::{Family, H200, shown};

const GROUP: usize = 1024;

/// Each work-item doubles sixteen elements that follow each other; a sub-group's accesses lie 64 bytes apart.
#[kernel(work_group = group)]
pub fn own_sixteen(values: &[u32], result: &mut [u32], #[constant] group: u32) {
    for block in (global_id()..values.len() / 16).step_by(global_size()) {
        #[unroll]
        for part in 0..16 {
            result[block * 16 + part] = 2 * values[block * 16 + part];
        }
    }
}

/// A sub-group doubles the same elements side by side.
#[kernel(work_group = group)]
pub fn side_by_side(values: &[u32], result: &mut [u32], #[constant] group: u32) {
    for i in (global_id()..values.len()).step_by(global_size()) {
        result[i] = 2 * values[i];
    }
}

/// Side by side, four elements at a time: the widest access of a work-item, as a block load is.
#[kernel(work_group = group)]
pub fn block_wise(values: &[[u32; 4]], result: &mut [[u32; 4]], #[constant] group: u32) {
    for i in (global_id()..values.len()).step_by(global_size()) {
        let [a, b, c, d] = values[i];
        result[i] = [2 * a, 2 * b, 2 * c, 2 * d];
    }
}

/// Each element plus those of the 31 others of its sub-group, around the circle, through shuffles.
#[kernel(work_group = group, sub_group = 32)]
pub fn by_shuffle(values: &[u32], result: &mut [u32], #[constant] group: u32) {
    for i in (global_id()..values.len()).step_by(global_size()) {
        let own = values[i];
        let mut sum = own;
        #[unroll]
        for step in 1..32 {
            sum += (step as u32) * sub_group_shuffle_xor(own, step);
        }
        result[i] = sum;
    }
}

/// The same through shared memory.
#[kernel(work_group = group, sub_group = 32)]
pub fn by_shared(values: &[u32], result: &mut [u32], #[constant] group: u32) {
    let mut tile = shared::<u32, GROUP>();
    for i in (global_id()..values.len()).step_by(global_size()) {
        let own = values[i];
        tile[local_id()] = own;
        barrier();
        let mut sum = own;
        #[unroll]
        for step in 1..32 {
            sum += (step as u32) * tile[local_id() ^ step];
        }
        result[i] = sum;
        barrier();
    }
}

super::entries! {
    OWN own_sixteen "store-own" "sixteen elements in a row for each work-item";
    SIDE side_by_side "store-side-by-side" "the same elements, a sub-group side by side";
    BLOCK block_wise "store-block" "the same, four elements at a time";
    SHUFFLE by_shuffle "exchange-shuffle" "values of a sub-group's others, by shuffles";
    SHARED by_shared "exchange-shared" "values of a sub-group's others, through shared memory";
}

const FULL: &[&str] = &["groups=1056", "group=256"];

/// The page.
pub static FAMILY: Family = Family {
    device: H200,
    page: "sub-groups",
    title: "Sub-groups: distributing elements, and passing them on",
    text: [
        "A sub-group's load is one instruction. If its work-items read adjacent elements it touches a few cache \
         lines; if each has a row of its own, it touches one line each, sixteen times over. Sixteen consecutive \
         integers per work-item look like locality, and are the opposite. Four adjacent elements at a time is the \
         widest access of a work-item; accesses of a whole sub-group are on the page about blocks.",
        "Shuffles pass values between neighbours without memory. Shared memory does the same with a store, two \
         barriers and a load per value. On NVIDIA's GPUs both use the same unit, so shuffles save the barriers, the \
         store, and the shared memory that other work-groups might need.",
    ],
    kernels: &[
        shown("store-own", FULL),
        shown("store-side-by-side", FULL),
        shown("store-block", FULL),
        shown("exchange-shuffle", FULL),
        shown("exchange-shared", FULL),
    ],
};

#[cfg(test)]
mod tests {
    use crate::workloads::testing::run;

    #[test]
    fn all_are_doubled() {
        for kernel in ["store-own", "store-side-by-side", "store-block"] {
            let ran = run(kernel, &["groups=2", "group=64", "elements=2048"]);
            let expected: Vec<u32> = ran.u32s("values").iter().map(|value| 2 * value).collect();
            assert_eq!(ran.u32s("result"), expected, "{kernel}");
        }
    }

    #[test]
    fn all_others_are_seen() {
        for kernel in ["exchange-shuffle", "exchange-shared"] {
            let ran = run(kernel, &["groups=2", "group=64", "elements=2048"]);
            let values = ran.u32s("values");
            let other =
                |i: usize, step: usize| (step.max(1) as u32) * values[i / 32 * 32 + ((i % 32) ^ step)];
            let expected: Vec<u32> = (0..values.len())
                .map(|i| (0..32).map(|step| other(i, step)).sum())
                .collect();
            assert_eq!(ran.u32s("result"), expected, "{kernel}");
        }
    }
}
