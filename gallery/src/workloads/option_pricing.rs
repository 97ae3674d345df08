//! `option-pricing`: an Asian basket option by simulation, with a table of random numbers for each step: the kind of
//! kernel that NVIDIA's article on prefetching comes from.
//!
//! Each work-item follows one path of eight prices in double precision and keeps them, their sum and the constants of
//! their step in registers; unrolling has none to spare.

use std::sync::Arc;

use headstart::device::Pattern;
use headstart::ir::Type;
use headstart::prelude::*;
use headstart::tune::Workload;

use crate::data::{fractions, input, output, scalar};
use crate::kernels::{GalleryKernel, Iterations, divided};
use crate::settings::Parameter;

/// One price after one step.
#[device_fn]
fn stepped(price: f64, noise: f64, common: f64, volatility: f64) -> f64 {
    let volatility = 0.02 * volatility;
    price * (volatility * (0.8 * (noise - 0.5) + 0.6 * (common - 0.5)) - 0.5 * volatility * volatility).exp()
}

/// The payoff of each path: its average basket above the strike.
#[kernel(work_group = group)]
pub fn option_pricing(
    noise: &[[f64; 4]],
    volatilities: &[[f64; 4]],
    payoffs: &mut [f64],
    steps: u32,
    strike: f64,
    #[constant] group: u32,
) {
    let path = global_id();
    let (mut a, mut b, mut c, mut d) = (1.0, 1.0, 1.0, 1.0);
    let (mut e, mut f, mut g, mut h) = (1.0, 1.0, 1.0, 1.0);
    let mut total = 0.0;
    #[unroll(0)]
    for step in 0..steps as usize {
        let at = (step * global_size() + path) * 2;
        let [w, x, y, z] = noise[at];
        let [p, q, r, s] = noise[at + 1];
        let [low, mid, high, top] = volatilities[step];
        let common = 0.25 * (w + z + p + s);
        a = stepped(a, w, common, low);
        b = stepped(b, x, common, low);
        c = stepped(c, y, common, mid);
        d = stepped(d, z, common, mid);
        e = stepped(e, p, common, high);
        f = stepped(f, q, common, high);
        g = stepped(g, r, common, top);
        h = stepped(h, s, common, top);
        total += (a + b) + (c + d) + ((e + f) + (g + h));
    }
    let average = total / (8.0 * steps as f64);
    payoffs[path] = if average > strike { average - strike } else { 0.0 };
}

static PARAMETERS: [Parameter; 3] = [
    Parameter::number("groups", "work-groups", 132, 1..=1 << 20),
    Parameter::number("group", "work-items of a work-group", 128, 1..=1024),
    Parameter::number("steps", "steps of a path", 252, 1..=1 << 16),
];

/// `option-pricing`.
pub(crate) static KERNEL: GalleryKernel = GalleryKernel {
    name: "option-pricing",
    summary: "paths of a basket option, a table for each step, many live registers",
    parameters: &PARAMETERS,
    takes_trace: None,
    iterations: Iterations::Given {
        small: |settings, iterations| settings.with("groups", 2).with("steps", iterations),
        shapes: |settings| divided(settings, "group", &[32, 64, 128, 256, 512]),
    },
    workload: |settings, _| {
        let (groups, group, steps) = (
            settings.small("groups"),
            settings.small("group"),
            settings.small("steps"),
        );
        let paths = u64::from(groups) * u64::from(group);
        let rows = u64::from(steps).max(1);
        let kernel = option_pricing::kernel(group)?;
        Workload::new(Arc::new(kernel), groups, group)
            .with(
                "noise",
                input(Type::F64, rows * paths * 8, Pattern::Fractions { low: 0.0 }),
            )?
            .with("volatilities", fractions(Type::F64, rows * 4))?
            .with("payoffs", output(Type::F64, paths))?
            .with("steps", scalar(steps))?
            .with(
                "strike",
                headstart::tune::ArgumentSpec::Scalar(Type::F64, 1.0f64.to_bits()),
            )
    },
};

#[cfg(test)]
pub(super) mod tests {
    use super::super::testing::{Ran, run};

    /// The paths, one after the other.
    pub(in super::super) fn check(ran: &Ran) {
        let (noise, volatilities) = (ran.of("noise"), ran.f64s("volatilities"));
        let (found, steps) = (ran.f64s("payoffs"), ran.scalar("steps"));
        for (path, payoff) in found.iter().enumerate() {
            let mut prices = [1.0f64; 8];
            let mut total = 0.0;
            for step in 0..steps {
                let own = |asset| noise.f64((step * found.len() + path) * 8 + asset);
                let common = 0.25 * (own(0) + own(3) + own(4) + own(7));
                for (asset, price) in prices.iter_mut().enumerate() {
                    let v = 0.02 * volatilities[step * 4 + asset / 2];
                    *price *= (v * (0.8 * (own(asset) - 0.5) + 0.6 * (common - 0.5)) - 0.5 * v * v).exp();
                    total += *price;
                }
            }
            let expected = (total / (8 * steps) as f64 - 1.0).max(0.0);
            assert!(
                (payoff - expected).abs() < 1e-12,
                "path {path}: {payoff} is not {expected}"
            );
        }
        assert!(found.iter().any(|&payoff| payoff > 0.0));
    }

    #[test]
    fn paths_pay_what_they_are_above_the_strike() {
        check(&run("option-pricing", &["groups=2", "group=32", "steps=5"]));
    }
}
