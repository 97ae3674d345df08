//! `cross-section`: the macroscopic cross sections of a material at an energy, as Monte Carlo transport looks them up
//! for every particle at every step.
//!
//! For each nuclide of the material: the energy's position on the nuclide's own grid, from an index over the union of all
//! grids; then the two points around it. The materials and their frequencies are those of XSBench (Tramm et al., 2014), as are
//! 355 nuclides of 11,303 points. Its energies are random, so a random index has the same locality as one from sorted grids.

use std::sync::Arc;

use headstart::device::{Pattern, splitmix64};
use headstart::ir::Type;
use headstart::prelude::*;
use headstart::tune::Workload;

use crate::data::{Words, computed, fractions, input, output, scalar, words};
use crate::kernels::{GalleryKernel, Iterations};
use crate::settings::{Parameter, Settings};

/// Four reactions of each material that was asked for. Work-items whose particles are in other materials wait for the
/// one with the most nuclides.
#[kernel(work_group = group)]
pub fn cross_section(
    materials: &[u32],
    energies: &[u32],
    shares: &[f32],
    starts: &[u32],
    nuclides: &[u32],
    densities: &[f32],
    index: &[u32],
    points: &[[f32; 4]],
    result: &mut [[f32; 4]],
    nuclide_count: u32,
    point_count: u32,
    #[constant] group: u32,
) {
    let i = global_id();
    let material = materials[i] as usize;
    let row = energies[i] as usize * nuclide_count as usize;
    let share = shares[i] - 1.0;
    let (mut total, mut elastic, mut absorption, mut fission) = (0.0, 0.0, 0.0, 0.0);
    #[unroll(0)]
    for j in starts[material] as usize..starts[material + 1] as usize {
        let nuclide = nuclides[j] as usize;
        let density = densities[j];
        let below = nuclide * point_count as usize + index[row + nuclide] as usize;
        let [t, e, a, f] = points[below];
        let [t_next, e_next, a_next, f_next] = points[below + 1];
        total += density * (t + share * (t_next - t));
        elastic += density * (e + share * (e_next - e));
        absorption += density * (a + share * (a_next - a));
        fission += density * (f + share * (f_next - f));
    }
    result[i] = [total, elastic, absorption, fission];
}

static PARAMETERS: [Parameter; 6] = [
    Parameter::number("groups", "work-groups", 2112, 1..=1 << 20),
    Parameter::number("group", "work-items of a work-group", 128, 1..=1024),
    Parameter::number("nuclides", "nuclides", 355, 2..=1024),
    Parameter::number("points", "points of a nuclide", 11_303, 2..=1 << 20),
    Parameter::number("grid", "energies of the common grid", 1 << 18, 1..=1 << 23),
    Parameter::choice(
        "order",
        "of the particles: as they come, or by material",
        &["mixed", "by-material"],
    ),
];

/// Nuclides of each material, the fuel first; and how often, in thousandths, a particle is in it.
const MATERIALS: [(u32, u32); 12] = [
    (321, 140),
    (5, 52),
    (4, 275),
    (4, 134),
    (27, 154),
    (21, 64),
    (21, 66),
    (21, 55),
    (21, 8),
    (21, 15),
    (9, 25),
    (9, 12),
];

const SEED: u64 = 31;

/// The material that particle `i` is in.
fn material(i: u64) -> u64 {
    let mut chance = (splitmix64(i, SEED) % 1000) as u32;
    for (number, (_, share)) in MATERIALS.into_iter().enumerate() {
        if chance < share {
            return number as u64;
        }
        chance -= share;
    }
    0
}

/// `cross-section`.
pub(crate) static KERNEL: GalleryKernel = GalleryKernel {
    name: "cross-section",
    summary: "cross sections of materials, nuclide by nuclide (the shape of Monte Carlo transport)",
    parameters: &PARAMETERS,
    takes_trace: None,
    iterations: Iterations::Given {
        small: |settings, iterations| {
            let few = settings.with("groups", 2).with("grid", 16).with("points", 20);
            few.with("nuclides", iterations.clamp(1, 1024))
        },
        shapes: |settings| {
            let work_items = settings.get("groups") * settings.get("group");
            let fitting = [32, 64, 128, 256, 512]
                .into_iter()
                .filter(|group| work_items.is_multiple_of(*group));
            let other = fitting.filter(|group| *group != settings.get("group"));
            other
                .map(|group| settings.with("groups", work_items / group).with("group", group))
                .collect()
        },
    },
    workload: |settings, _| {
        let (groups, group) = (settings.small("groups"), settings.small("group"));
        let (nuclides, points) = (settings.get("nuclides"), settings.get("points"));
        let (starts, members) = composition(settings);
        let particles = u64::from(groups) * u64::from(group);
        let materials = match settings.word("order") {
            "mixed" => computed(Type::I32, particles, material),
            _ => {
                let mut sorted: Vec<u32> = (0..particles).map(|i| material(i) as u32).collect();
                sorted.sort_unstable();
                words(&Words::new(&sorted))
            }
        };
        let kernel = cross_section::kernel(group)?;
        let energies = Pattern::below(settings.get("grid"), SEED + 1);
        let index = Pattern::below(points - 1, SEED + 2);
        Workload::new(Arc::new(kernel), groups, group)
            .with("materials", materials)?
            .with("energies", input(Type::I32, particles, energies))?
            .with("shares", fractions(Type::F32, particles))?
            .with("starts", words(&starts))?
            .with("nuclides", words(&members))?
            .with("densities", fractions(Type::F32, members.len() as u64))?
            .with("index", input(Type::I32, settings.get("grid") * nuclides, index))?
            .with("points", fractions(Type::F32, nuclides * points * 4))?
            .with("result", output(Type::F32, particles * 4))?
            .with("nuclide_count", scalar(nuclides as u32))?
            .with("point_count", scalar(points as u32))
    },
};

/// Where each material's nuclides start, and which they are: no more than there are.
fn composition(settings: &Settings) -> (Words, Words) {
    let nuclides = settings.small("nuclides");
    let (mut starts, mut members) = (vec![0], Vec::new());
    for (number, (count, _)) in MATERIALS.into_iter().enumerate() {
        // The fuel has the first ones; the others begin anywhere.
        let first = if number == 0 {
            0
        } else {
            splitmix64(number as u64, SEED + 3) as u32 % nuclides
        };
        members.extend((0..count.min(nuclides)).map(|member| (first + member) % nuclides));
        starts.push(members.len() as u32);
    }
    (Words::new(&starts), Words::new(&members))
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::testing::{Ran, close, run};

    /// Nuclide by nuclide, one particle after the other.
    pub(in super::super) fn check(ran: &Ran) {
        let (materials, energies) = (ran.indices("materials"), ran.indices("energies"));
        let (starts, nuclides) = (ran.indices("starts"), ran.indices("nuclides"));
        let (shares, densities) = (ran.of("shares"), ran.f32s("densities"));
        let (index, points) = (ran.of("index"), ran.of("points"));
        let (nuclide_count, point_count) = (ran.scalar("nuclide_count"), ran.scalar("point_count"));
        let mut expected = vec![0.0; materials.len() * 4];
        for i in 0..materials.len() {
            let share = shares.f32(i) - 1.0;
            for j in starts[materials[i]]..starts[materials[i] + 1] {
                let below =
                    nuclides[j] * point_count + index.index(energies[i] * nuclide_count + nuclides[j]);
                for reaction in 0..4 {
                    let at = |point: usize| points.f32(point * 4 + reaction);
                    let (low, high) = (at(below), at(below + 1));
                    expected[i * 4 + reaction] += densities[j] * (low + share * (high - low));
                }
            }
        }
        close(&ran.f32s("result"), &expected, 1e-5);
    }

    #[test]
    fn cross_sections_are_added_up() {
        for order in ["order=mixed", "order=by-material"] {
            let size = ["groups=2", "group=64", "nuclides=30", "points=9", "grid=11"];
            check(&run("cross-section", &[&size[..], &[order]].concat()));
        }
    }
}
