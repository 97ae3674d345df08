//! `chase`: a chain of addresses, each in the memory that the one before names. Nothing can be prefetched, because no address
//! is known early: a control for which prefetching must not be advised.

use std::sync::Arc;

use headstart::ir::Type;
use headstart::prelude::*;
use headstart::tune::Workload;

use crate::data::{computed_as, output, scalar};
use crate::kernels::{GalleryKernel, Iterations};
use crate::settings::Parameter;

/// One chain a work-item.
#[kernel(work_group = group)]
pub fn chase(next: &[u32], ends: &mut [u32], steps: u32, #[constant] group: u32) {
    let mut at = (global_id() as u32).wrapping_mul(2_654_435_761) % next.len() as u32;
    #[unroll(0)]
    for _ in 0..steps {
        at = next[at as usize];
    }
    ends[global_id()] = at;
}

static PARAMETERS: [Parameter; 4] = [
    Parameter::number("groups", "work-groups", 132, 1..=1 << 20),
    Parameter::number("group", "work-items of a work-group", 128, 1..=1024),
    Parameter::number("steps", "links that are followed", 256, 0..=1 << 20),
    Parameter::number("bits", "the chain has 2 to this power of links", 26, 4..=30),
];

/// `chase`.
pub(crate) static KERNEL: GalleryKernel = GalleryKernel {
    name: "chase",
    summary: "a control: pointers that lead to pointers",
    parameters: &PARAMETERS,
    takes_trace: None,
    iterations: Iterations::Given {
        small: |settings, iterations| {
            settings
                .with("groups", 2)
                .with("steps", iterations)
                .with("bits", 10)
        },
        shapes: |_| Vec::new(),
    },
    workload: |settings, _| {
        let (groups, group, steps) = (
            settings.small("groups"),
            settings.small("group"),
            settings.small("steps"),
        );
        let length = 1u64 << settings.get("bits");
        // A linear congruential generator goes through all links before it comes back (Hull and Dobell, 1962).
        let next = move |at: u64| {
            at.wrapping_mul(0x5851_F42D_4C95_7F2D)
                .wrapping_add(0x1405_7B7E_F767_814F)
                % length
        };
        Workload::new(Arc::new(chase::kernel(group)?), groups, group)
            .with(
                "next",
                computed_as(&format!("links between {length}"), Type::I32, length, next),
            )?
            .with("ends", output(Type::I32, u64::from(groups) * u64::from(group)))?
            .with("steps", scalar(steps))
    },
};

#[cfg(test)]
pub(super) mod tests {
    use super::super::testing::{Ran, run};

    /// The chains, followed again.
    pub(in super::super) fn check(ran: &Ran) {
        let (next, steps) = (ran.of("next"), ran.scalar("steps"));
        for (item, &end) in ran.indices("ends").iter().enumerate() {
            let first = ((item as u32).wrapping_mul(2_654_435_761) as usize) % next.len();
            assert_eq!(end, (0..steps).fold(first, |at, _| next.index(at)));
        }
    }

    #[test]
    fn chains_are_followed_and_are_one_circle() {
        let ran = run("chase", &["groups=2", "group=32", "steps=9", "bits=8"]);
        let next = ran.indices("next");
        let follow = |from: usize, steps: usize| (0..steps).fold(from, |at, _| next[at]);
        assert_eq!(follow(5, 256), 5);
        assert!((1..256).all(|steps| follow(5, steps) != 5));
        check(&ran);
    }
}
