//! `triad`: `a[i] = b[i] + s * c[i]`, the third of the STREAM benchmark's loops (McCalpin, 1995). It takes all of the
//! memory's bandwidth as it is: a control that must not be told to prefetch.

use std::sync::Arc;

use headstart::ir::Type;
use headstart::prelude::*;
use headstart::tune::{ArgumentSpec, Workload};

use super::groups_for;
use crate::data::{fractions, output};
use crate::kernels::{GalleryKernel, Iterations, others};
use crate::settings::Parameter;

/// Four elements an iteration; the grid strides over the rest.
#[kernel(work_group = group)]
pub fn triad(a: &mut [[f32; 4]], b: &[[f32; 4]], c: &[[f32; 4]], s: f32, #[constant] group: u32) {
    #[unroll(0)]
    for i in (global_id()..a.len()).step_by(global_size()) {
        let [b0, b1, b2, b3] = b[i];
        let [c0, c1, c2, c3] = c[i];
        a[i] = [b0 + s * c0, b1 + s * c1, b2 + s * c2, b3 + s * c3];
    }
}

static PARAMETERS: [Parameter; 3] = [
    Parameter::number("quads", "elements, in fours", 1 << 26, 0..=1 << 29),
    Parameter::number("items", "iterations of each work-item", 4, 1..=1 << 16),
    Parameter::number("group", "work-items of a work-group", 256, 1..=1024),
];

/// `triad`.
pub(crate) static KERNEL: GalleryKernel = GalleryKernel {
    name: "triad",
    summary: "a control: a stream that takes all of the bandwidth",
    parameters: &PARAMETERS,
    takes_trace: None,
    iterations: Iterations::Given {
        small: |settings, iterations| {
            // Half of the work-items of one of two work-groups have one less.
            let quads = (2 * iterations * settings.get("group")).saturating_sub(settings.get("group") / 2);
            settings.with("items", iterations.max(1)).with("quads", quads)
        },
        shapes: |settings| {
            let items = others(settings, "items", &[1, 2, 4, 8, 16]);
            [items, others(settings, "group", &[128, 512, 1024])].concat()
        },
    },
    workload: |settings, _| {
        let (quads, group) = (settings.get("quads"), settings.small("group"));
        let groups = groups_for(quads.div_ceil(settings.get("items")), group)?;
        let length = quads * 4;
        Workload::new(Arc::new(triad::kernel(group)?), groups, group)
            .with("a", output(Type::F32, length))?
            .with("b", fractions(Type::F32, length))?
            .with("c", fractions(Type::F32, length))?
            .with("s", ArgumentSpec::Scalar(Type::F32, u64::from(3.0f32.to_bits())))
    },
};

#[cfg(test)]
pub(super) mod tests {
    use super::super::testing::{Ran, run};

    /// The sums, one after the other.
    pub(in super::super) fn check(ran: &Ran) {
        let (b, c) = (ran.f32s("b"), ran.f32s("c"));
        let expected: Vec<f32> = b.iter().zip(&c).map(|(b, c)| b + 3.0 * c).collect();
        assert_eq!(ran.f32s("a"), expected);
    }

    #[test]
    fn elements_are_added() {
        check(&run("triad", &["quads=200", "items=3", "group=32"]));
    }
}
