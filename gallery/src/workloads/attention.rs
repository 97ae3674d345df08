//! `attention`: one token's attention over its sequence where keys and values lie in pages, as servers of language
//! models keep them: each sequence has a list of pages of 16 tokens.
//!
//! A sub-group of 32 work-items has one head of one sequence: 128 half floats of a key or value are one access of 256
//! bytes, wherever its page is. The softmax is taken along the way, as in FlashAttention.

use std::sync::Arc;

use headstart::device::{Pattern, splitmix64};
use headstart::ir::Type;
use headstart::prelude::*;
use headstart::tune::Workload;

use super::{groups_for, whole_sub_groups};
use crate::data::{Words, fractions, input, output, scalar, words};
use crate::kernels::{GalleryKernel, Iterations, others};
use crate::settings::Parameter;

/// Tokens of a page.
const PAGE: usize = 16;
/// Work-items of a head: four values each.
const LANES: usize = 32;

/// The attention of each head of each sequence.
#[kernel(work_group = group, sub_group = LANES)]
pub fn attention(
    queries: &[[f32; 4]],
    pages: &[u32],
    lengths: &[u32],
    keys: &[[f16; 4]],
    values: &[[f16; 4]],
    result: &mut [[f32; 4]],
    longest: u32,
    heads: u32,
    #[constant] group: u32,
) {
    let heads = heads as usize;
    let own = global_id() / LANES;
    let (sequence, head) = (own / heads, own % heads);
    let lane = sub_group_local_id();
    if sequence < lengths.len() {
        let [q0, q1, q2, q3] = queries[global_id()];
        let (mut a, mut b, mut c, mut d) = (0.0, 0.0, 0.0, 0.0);
        let (mut largest, mut sum) = (-1e30f32, 0.0);
        let first_page = sequence * longest as usize;
        #[unroll(0)]
        for token in 0..lengths[sequence] as usize {
            let page = pages[first_page + token / PAGE] as usize;
            let at = ((page * heads + head) * PAGE + token % PAGE) * LANES + lane;
            let [k0, k1, k2, k3] = keys[at];
            let own_part = q0 * f32::from(k0) + q1 * f32::from(k1) + q2 * f32::from(k2) + q3 * f32::from(k3);
            // One over the square root of 128.
            let score = sub_group_reduce_add(own_part) * 0.088_388_35;
            let larger = largest.max(score);
            let shrink = (largest - larger).exp();
            let weight = (score - larger).exp();
            let [v0, v1, v2, v3] = values[at];
            a = a * shrink + weight * f32::from(v0);
            b = b * shrink + weight * f32::from(v1);
            c = c * shrink + weight * f32::from(v2);
            d = d * shrink + weight * f32::from(v3);
            sum = sum * shrink + weight;
            largest = larger;
        }
        let scale = if sum > 0.0 { 1.0 / sum } else { 0.0 };
        result[global_id()] = [a * scale, b * scale, c * scale, d * scale];
    }
}

static PARAMETERS: [Parameter; 5] = [
    Parameter::number("sequences", "sequences", 64, 1..=1 << 16),
    Parameter::number("heads", "heads of keys and values", 8, 1..=128),
    Parameter::number(
        "tokens",
        "tokens of a sequence, half to all of them",
        2048,
        0..=1 << 20,
    ),
    Parameter::number("pool", "pages that sequences choose from", 1 << 14, 1..=1 << 20),
    Parameter::number(
        "group",
        "work-items of a work-group, a multiple of 32",
        128,
        32..=1024,
    ),
];

const SEED: u64 = 37;

/// `attention`.
pub(crate) static KERNEL: GalleryKernel = GalleryKernel {
    name: "attention",
    summary: "attention of one token over keys and values in pages (decoding of language models)",
    parameters: &PARAMETERS,
    takes_trace: None,
    iterations: Iterations::Given {
        small: |settings, iterations| {
            let few = settings.with("sequences", 3).with("heads", 2).with("pool", 5);
            few.with("tokens", iterations)
        },
        shapes: |settings| others(settings, "group", &[32, 64, 128, 256]),
    },
    workload: |settings, _| {
        let (sequences, heads) = (settings.get("sequences"), settings.get("heads"));
        let (tokens, pool) = (settings.get("tokens"), settings.get("pool"));
        let group = whole_sub_groups(settings.small("group"))?;
        // The first sequence has all of the tokens, so that some have.
        let length = |sequence: u64| match sequence {
            0 => tokens,
            _ => tokens - splitmix64(sequence, SEED) % (tokens / 2 + 1),
        };
        let lengths: Vec<u32> = (0..sequences).map(|sequence| length(sequence) as u32).collect();
        let longest = tokens.div_ceil(PAGE as u64).max(1);
        let own = sequences * heads * LANES as u64;
        let held = pool * heads * (PAGE * LANES * 4) as u64;
        let kernel = attention::kernel(group)?;
        let pages = Pattern::below(pool, SEED + 1);
        Workload::new(Arc::new(kernel), groups_for(own, group)?, group)
            .with("queries", fractions(Type::F32, own * 4))?
            .with("pages", input(Type::I32, sequences * longest, pages))?
            .with("lengths", words(&Words::new(&lengths)))?
            .with("keys", input(Type::F16, held, Pattern::Fractions { low: -0.5 }))?
            .with("values", fractions(Type::F16, held))?
            .with("result", output(Type::F32, own * 4))?
            .with("longest", scalar(longest as u32))?
            .with("heads", scalar(heads as u32))
    },
};

#[cfg(test)]
pub(super) mod tests {
    use super::super::testing::{Ran, close, run};

    /// The weighted mean of the values, in double precision.
    pub(in super::super) fn check(ran: &Ran) {
        let (heads, longest) = (ran.scalar("heads"), ran.scalar("longest"));
        let (queries, pages, lengths) = (ran.of("queries"), ran.of("pages"), ran.of("lengths"));
        let (keys, values) = (ran.of("keys"), ran.of("values"));
        let mut expected = Vec::new();
        for own in 0..lengths.len() * heads {
            let (sequence, head) = (own / heads, own % heads);
            let query: Vec<f32> = (0..128).map(|at| queries.f32(own * 128 + at)).collect();
            let place = |token: usize| {
                ((pages.index(sequence * longest + token / 16) * heads + head) * 16 + token % 16) * 128
            };
            let mut sums = [0.0; 128];
            let mut all = 0.0;
            for token in 0..lengths.index(sequence) {
                let first = place(token);
                let dot: f32 = (0..128).map(|at| query[at] * keys.f32(first + at)).sum();
                let weight = f64::from(dot / 128f32.sqrt()).exp();
                for (at, sum) in sums.iter_mut().enumerate() {
                    *sum += weight * f64::from(values.f32(first + at));
                }
                all += weight;
            }
            let scale = if all > 0.0 { 1.0 / all } else { 0.0 };
            expected.extend(sums.map(|sum| (sum * scale) as f32));
        }
        close(&ran.f32s("result"), &expected, 1e-4);
    }

    #[test]
    fn attention_is_the_weighted_mean_of_the_values() {
        let settings = ["sequences=3", "heads=2", "tokens=40", "pool=7", "group=64"];
        check(&run("attention", &settings));
    }
}
