//! Divergence: work-items of a sub-group that take different ways wait for each other.

use headstart::ir::Type;
use headstart::prelude::*;

use super::{Family, H200, elements, shown, technique};
use crate::data::{input, output};
use crate::kernels::GalleryKernel;

/// Half of a sub-group's work-items do one thing, half another.
#[kernel(work_group = group)]
pub fn branches(values: &[u32], result: &mut [u32], #[constant] group: u32) {
    for i in (global_id()..values.len()).step_by(global_size()) {
        let value = values[i];
        let mut x = value;
        if value.is_multiple_of(2) {
            #[unroll]
            for _ in 0..16 {
                x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            }
        } else {
            #[unroll]
            for _ in 0..16 {
                x = x.wrapping_mul(22_695_477).wrapping_add(12_345);
            }
        }
        result[i] = x;
    }
}

/// Both do the same with other numbers, which a selection chooses.
#[kernel(work_group = group)]
pub fn selection(values: &[u32], result: &mut [u32], #[constant] group: u32) {
    for i in (global_id()..values.len()).step_by(global_size()) {
        let value = values[i];
        let is_even = value.is_multiple_of(2);
        let factor = select(is_even, 1_664_525u32, 22_695_477);
        let term = select(is_even, 1_013_904_223u32, 12_345);
        let mut x = value;
        #[unroll]
        for _ in 0..16 {
            x = x.wrapping_mul(factor).wrapping_add(term);
        }
        result[i] = x;
    }
}

/// The sum of an element and four at each side, where there are any: the sides are checked.
#[kernel(work_group = group)]
pub fn checked(values: &[u32], result: &mut [u32], #[constant] group: u32) {
    for i in (global_id()..values.len()).step_by(global_size()) {
        let mut sum = 0;
        #[unroll]
        for k in 0..9 {
            if i + k >= 4 && i + k < values.len() + 4 {
                sum += values[i + k - 4];
            }
        }
        result[i] = sum;
    }
}

/// The same of an array with four zeros at each side: nothing is checked.
#[kernel(work_group = group)]
pub fn unchecked(padded: &[u32], result: &mut [u32], #[constant] group: u32) {
    for i in (global_id()..result.len()).step_by(global_size()) {
        let mut sum = 0;
        #[unroll]
        for k in 0..9 {
            sum += padded[i + k];
        }
        result[i] = sum;
    }
}

super::entries! {
    BRANCHES branches "branches" "neighbours that take different ways";
    SELECTION selection "selection" "the same, chosen without a branch";
    CHECKED checked "edges-checked" "neighbours' sums, with the edges checked";
}

/// `edges-padded`.
pub(crate) static PADDED: GalleryKernel = technique(
    "edges-padded",
    "neighbours' sums of an array with zeros at its edges",
    |settings, _| {
        let length = elements(settings);
        let numbers = headstart::device::Pattern::Below { bound: 200, seed: 43 };
        let value = move |i: u64| match i.checked_sub(4).filter(|&i| i < length) {
            Some(i) => numbers.bits(Type::I32, i),
            None => 0,
        };
        let filled = input(
            Type::I32,
            length + 8,
            headstart::device::Pattern::Function(std::sync::Arc::new(value)),
        );
        let kernel = std::sync::Arc::new(unchecked::kernel(settings.small("group"))?);
        headstart::tune::Workload::new(kernel, settings.small("groups"), settings.small("group"))
            .with("padded", filled)?
            .with("result", output(Type::I32, length))
    },
);

const FULL: &[&str] = &["groups=1056", "group=256"];

/// The page.
pub static FAMILY: Family = Family {
    device: H200,
    page: "divergence",
    title: "Divergence: selections instead of branches, padding instead of checks",
    text: [
        "A sub-group whose work-items diverge at a branch executes both sides. If the sides differ only in numbers, \
         a selection (`select`, `min`, `max`) chooses the number, and the sub-group executes one side.",
        "Checks at the edges of an array cost every work-item a comparison for the few at the edges. An array with \
         zeros beyond its edges needs no checks. If a whole sub-group agrees, a check does not diverge, and removing \
         it saves only its instructions: a large gain if the kernel is bound by instructions, none if it waits for \
         memory.",
    ],
    kernels: &[
        shown("branches", FULL),
        shown("selection", FULL),
        shown("edges-checked", FULL),
        shown("edges-padded", FULL),
    ],
};

#[cfg(test)]
mod tests {
    use crate::workloads::testing::run;

    const SETTINGS: [&str; 3] = ["groups=2", "group=64", "elements=2048"];

    #[test]
    fn both_ways_are_the_same() {
        let [one, other] = ["branches", "selection"].map(|kernel| run(kernel, &SETTINGS));
        let step = |x: u32, even: bool| match even {
            true => x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223),
            false => x.wrapping_mul(22_695_477).wrapping_add(12_345),
        };
        let values = one.u32s("values");
        let expected: Vec<u32> = values
            .iter()
            .map(|&value| (0..16).fold(value, |x, _| step(x, value % 2 == 0)))
            .collect();
        assert_eq!(one.u32s("result"), expected);
        assert_eq!(other.u32s("result"), expected);
    }

    #[test]
    fn edges_are_the_same() {
        let [one, other] = ["edges-checked", "edges-padded"].map(|kernel| run(kernel, &SETTINGS));
        let values = one.u32s("values");
        let sum = |i: usize| {
            values[i.saturating_sub(4)..(i + 5).min(values.len())]
                .iter()
                .sum()
        };
        let expected: Vec<u32> = (0..values.len()).map(sum).collect();
        assert_eq!(one.u32s("result"), expected);
        assert_eq!(other.u32s("result"), expected);
    }
}
