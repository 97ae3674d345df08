//! Who a work-item is: in one, two and three dimensions, and in sub-groups that are not full.

use headstart::prelude::*;

use crate::agree::agree;
use crate::conformance::Feature;

#[kernel]
fn questions(input: &[u32], output: &mut [u64]) {
    let x = global_id() + global_size() * (global_id_y() + group_count_y() * group_size_y() * global_id_z());
    let mut hash = input[0] as u64;
    let answers = [
        global_id(),
        global_id_y(),
        global_id_z(),
        global_size(),
        local_id(),
        local_id_y(),
        local_id_z(),
        group_id(),
        group_id_y(),
        group_id_z(),
        group_size(),
        group_size_y(),
        group_size_z(),
        group_count(),
        group_count_y(),
        group_count_z(),
        sub_group_id(),
        sub_group_local_id(),
        sub_group_size(),
        max_sub_group_size(),
        sub_group_count(),
    ];
    for i in 0..answers.len() {
        hash = hash.wrapping_mul(37) + answers[i] as u64;
    }
    output[x] = hash;
}

#[test]
fn answers_agree() {
    let geometry = |groups, group, size| Geometry {
        groups,
        group,
        sub_group_size: Some(size),
        ..Geometry::new(1, 1)
    };
    for geometry in [
        geometry([3, 1, 1], [50, 1, 1], 32),
        geometry([2, 3, 1], [10, 7, 1], 16),
        geometry([1, 2, 3], [3, 4, 5], 8),
    ] {
        let items: u32 = geometry.groups.iter().chain(&geometry.group).product();
        agree!(questions, geometry, vec![11u32], vec![0u64; items as usize]);
    }
}

/// What this module shows of the language.
pub const FEATURES: &[Feature] = &[Feature {
    name: "work-item, sub-group and work-group ids and sizes",
    spelled: "`global_id()`, `sub_group_size()`",
    kernel: questions::kernel,
    test: answers_agree,
}];
