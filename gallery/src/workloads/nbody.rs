//! `nbody`: the pull of every body on every other. Each is read by all and comes from a cache; the rest is arithmetic:
//! a control that must not be told to prefetch.

use std::sync::Arc;

use headstart::ir::Type;
use headstart::prelude::*;
use headstart::tune::Workload;

use super::groups_for;
use crate::data::{fractions, output};
use crate::kernels::{GalleryKernel, Iterations, others};
use crate::settings::Parameter;

/// The acceleration of each body: place and mass of the others in, nothing written but it.
#[kernel(work_group = group)]
pub fn nbody(bodies: &[[f32; 4]], pull: &mut [[f32; 4]], #[constant] group: u32) {
    let count = bodies.len();
    if global_id() < count {
        let [x, y, z, _] = bodies[global_id()];
        let (mut ax, mut ay, mut az) = (0.0, 0.0, 0.0);
        #[unroll(0)]
        for j in 0..count {
            let [bx, by, bz, mass] = bodies[j];
            let (dx, dy, dz) = (bx - x, by - y, bz - z);
            let distance2 = dx * dx + dy * dy + dz * dz + 0.01;
            let strength = mass / (distance2 * distance2.sqrt());
            ax += dx * strength;
            ay += dy * strength;
            az += dz * strength;
        }
        pull[global_id()] = [ax, ay, az, 0.0];
    }
}

static PARAMETERS: [Parameter; 2] = [
    Parameter::number("bodies", "bodies", 1 << 16, 1..=1 << 22),
    Parameter::number("group", "work-items of a work-group", 256, 1..=1024),
];

/// `nbody`.
pub(crate) static KERNEL: GalleryKernel = GalleryKernel {
    name: "nbody",
    summary: "a control: the pull of all bodies on each other, bound by arithmetic",
    parameters: &PARAMETERS,
    takes_trace: None,
    iterations: Iterations::Given {
        small: |settings, iterations| settings.with("bodies", iterations.max(1)),
        shapes: |settings| others(settings, "group", &[64, 128, 256, 512]),
    },
    workload: |settings, _| {
        let (bodies, group) = (settings.get("bodies"), settings.small("group"));
        Workload::new(Arc::new(nbody::kernel(group)?), groups_for(bodies, group)?, group)
            .with("bodies", fractions(Type::F32, bodies * 4))?
            .with("pull", output(Type::F32, bodies * 4))
    },
};

#[cfg(test)]
pub(super) mod tests {
    use super::super::testing::{Ran, close, run};

    /// The pulls in double precision.
    pub(in super::super) fn check(ran: &Ran) {
        let bodies = ran.f32s("bodies");
        let mut expected = Vec::new();
        for own in bodies.chunks(4) {
            let mut pull = [0.0f64; 4];
            for other in bodies.chunks(4) {
                let apart: Vec<f64> = (0..3).map(|axis| f64::from(other[axis] - own[axis])).collect();
                let distance2 = apart.iter().map(|d| d * d).sum::<f64>() + 0.01;
                for axis in 0..3 {
                    pull[axis] += apart[axis] * f64::from(other[3]) / distance2.powf(1.5);
                }
            }
            expected.extend(pull.map(|part| part as f32));
        }
        close(&ran.f32s("pull"), &expected, 1e-4);
    }

    #[test]
    fn bodies_pull_each_other() {
        check(&run("nbody", &["bodies=50", "group=32"]));
    }
}
