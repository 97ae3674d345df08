//! The kernels of `corpus/`, as nvcc compiled them, against the same in Rust.

use super::{floats, integers, named, outputs};

const TOGETHER: &str = include_str!("../../../../corpus/together.ptx");
const LOOKUP: &str = include_str!("../../../../corpus/lookup.ptx");
const DENSE: &str = include_str!("../../../../corpus/dense.ptx");
const WIDE: &str = include_str!("../../../../corpus/wide.ptx");

/// A buffer of a launch file.
fn buffer(number: usize, length: usize, fill: &str) -> String {
    format!("[parameters.param_{number}]\nlength = {length}\n{fill}\noutput = \"bits\"\n")
}

fn scalar(number: usize, value: &str) -> String {
    format!("[parameters.param_{number}]\nvalue = {value}\n")
}

fn launch(head: &str, parameters: &[String]) -> String {
    format!("{head}\n{}", parameters.concat())
}

fn random(below: u32) -> String {
    format!("fill = \"indices\"\nbelow = {below}")
}

const ZERO: &str = "fill = \"zero\"";
const FRACTIONS: &str = "fill = \"fractions\"";

#[test]
fn atomics_in_shared_and_global_memory() {
    let text = launch(
        "groups = 2\ngroup = 64",
        &[
            buffer(0, 1000, &random(100)),
            buffer(1, 256, ZERO),
            scalar(2, "1000"),
        ],
    );
    let (_, outputs) = outputs(TOGETHER, "histogram", &text);
    let mut bins = vec![0u32; 256];
    named(&outputs, "param_0")
        .iter()
        .for_each(|&byte| bins[usize::from(byte)] += 1);
    assert_eq!(integers(named(&outputs, "param_1")), bins);
}

#[test]
fn shuffles_and_votes() {
    let text = launch(
        "groups = 1\ngroup = 64",
        &[
            buffer(0, 500, &random(1000)),
            buffer(1, 1, ZERO),
            scalar(2, "500"),
        ],
    );
    let (_, sums) = outputs(TOGETHER, "warp_sum", &text);
    let sum: u32 = integers(named(&sums, "param_0")).iter().sum();
    assert_eq!(integers(named(&sums, "param_1")), [sum]);

    let text = launch(
        "groups = 1\ngroup = 64",
        &[buffer(0, 64, &random(20)), buffer(1, 64, ZERO)],
    );
    let (_, scans) = outputs(TOGETHER, "warp_scan", &text);
    let input = integers(named(&scans, "param_0"));
    let expected: Vec<u32> = input
        .chunks(32)
        .flat_map(|warp| {
            let sums: Vec<u32> = (1..=32).map(|end| warp[..end].iter().sum()).collect();
            let any = sums[7] > 100 || sums[16 + 7] > 100;
            sums.into_iter()
                .map(move |sum| sum + if any { 1 << 20 } else { 0 })
        })
        .collect();
    assert_eq!(integers(named(&scans, "param_1")), expected);
}

#[test]
fn shared_tiles_static_and_dynamic() {
    let text = launch(
        "groups = [2, 2, 1]\ngroup = [16, 16, 1]",
        &[buffer(0, 400, FRACTIONS), buffer(1, 400, ZERO), scalar(2, "20")],
    );
    let (_, transposed) = outputs(TOGETHER, "transpose", &text);
    let input = floats(named(&transposed, "param_0"));
    let expected: Vec<f32> = (0..400).map(|i| input[i % 20 * 20 + i / 20]).collect();
    assert_eq!(floats(named(&transposed, "param_1")), expected);

    let text = launch(
        "groups = 1\ngroup = 64\nshared_bytes = 256",
        &[buffer(0, 64, &random(99)), buffer(1, 64, ZERO)],
    );
    let (_, reversed) = outputs(TOGETHER, "dynamic_reverse", &text);
    let mut expected = integers(named(&reversed, "param_0"));
    expected.reverse();
    assert_eq!(integers(named(&reversed, "param_1")), expected);
}

fn mix(mut x: u32) -> u32 {
    x = (x ^ x >> 16).wrapping_mul(0x7feb_352d);
    x = (x ^ x >> 15).wrapping_mul(0x846c_a68b);
    x ^ x >> 16
}

#[test]
fn functions_that_are_called() {
    // A table of small numbers in any order, in which some keys are met on the way and a search ends at 2³² − 1, never
    // there: so only keys that are.
    let text = launch(
        "groups = 1\ngroup = 32",
        &[
            buffer(0, 64, &random(8)),
            buffer(1, 96, &random(4)),
            buffer(2, 32, ZERO),
            scalar(3, "63"),
            scalar(4, "3"),
        ],
    );
    let (_, found) = outputs(LOOKUP, "hash_probe", &text);
    assert_eq!(integers(named(&found, "param_2")), [3; 32]);
    assert_ne!(mix(1), mix(2));

    let text = launch(
        "groups = 1\ngroup = 32",
        &[
            buffer(0, 30, FRACTIONS),
            buffer(1, 30, &random(7)),
            buffer(2, 30, ZERO),
            scalar(3, "30"),
        ],
    );
    let (_, found) = outputs(LOOKUP, "polynomials", &text);
    let polynomial = |x: f32, degree: u32| match degree {
        0 => 1.0f32,
        _ => (0..degree).fold(0.5f32, |sum, _| sum.mul_add(x, 1.0)),
    };
    let (x, degree) = (
        floats(named(&found, "param_0")),
        integers(named(&found, "param_1")),
    );
    let expected: Vec<f32> = x
        .iter()
        .zip(degree)
        .map(|(&x, degree)| polynomial(x, degree) + polynomial(x + x, 3))
        .collect();
    assert_eq!(floats(named(&found, "param_2")), expected);
}

#[test]
fn bytes_and_words_of_64_bits() {
    let text = launch(
        "groups = 1\ngroup = 32",
        &[
            buffer(0, 200, &random(120)),
            buffer(1, 33, &random(200)),
            buffer(2, 32, ZERO),
            scalar(3, "32"),
        ],
    );
    let (_, found) = outputs(LOOKUP, "string_hash", &text);
    let (text, starts) = (named(&found, "param_0"), integers(named(&found, "param_1")));
    let expected: Vec<u8> = starts
        .windows(2)
        .flat_map(|ends| {
            let bytes = text.get(ends[0] as usize..ends[1] as usize).unwrap_or_default();
            let step = |hash: u64, &byte: &u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
            bytes.iter().fold(0xcbf2_9ce4_8422_2325, step).to_le_bytes()
        })
        .collect();
    assert_eq!(named(&found, "param_2"), expected);
}

#[test]
fn bits_permuted_shifted_and_counted() {
    let text = launch(
        "groups = 1\ngroup = 64",
        &[
            buffer(0, 64, "fill = \"bits\""),
            buffer(1, 64, ZERO),
            scalar(2, "64"),
        ],
    );
    let (_, found) = outputs(DENSE, "bits", &text);
    let expected: Vec<u32> = integers(named(&found, "param_0"))
        .into_iter()
        .map(|x| {
            let mut y = x.count_ones() + x.leading_zeros() * 100 + (x.reverse_bits() >> 20);
            let both = u64::from(y) << 32 | u64::from(x);
            // Selector 0x3715: bytes 5, 1, 7, 3, the lowest first.
            let byte = |which: u32| (both >> (8 * which) & 0xff) as u32;
            y ^= byte(5) | byte(1) << 8 | byte(7) << 16 | byte(3) << 24;
            let both = u64::from(y) << 32 | u64::from(x);
            y = y.wrapping_add(((both << (x & 31)) >> 32) as u32);
            let first = if x == 0 { 0 } else { x.trailing_zeros() + 1 };
            y = y.wrapping_mul(3).wrapping_add(first);
            let high = ((i64::from(x as i32) * i64::from(y as i32)) >> 32) as u32;
            let distance = x.abs_diff(y).wrapping_add(7);
            (y & x) | ((!y & (x >> 3)) ^ high.wrapping_add(distance))
        })
        .collect();
    assert_eq!(integers(named(&found, "param_1")), expected);
}

#[test]
fn arithmetic_of_16_bits_and_data_dependent_swaps() {
    let text = launch(
        "groups = 1\ngroup = 64",
        &[
            buffer(0, 60, "fill = \"bits\""),
            buffer(1, 60, "fill = \"bits\"\nseed = 3"),
            scalar(2, "60"),
        ],
    );
    let before = outputs(DENSE, "saxpy_half", &text.replace("value = 60", "value = 0")).1;
    let (_, after) = outputs(DENSE, "saxpy_half", &text);
    let halves = |bytes: &[u8]| -> Vec<u16> {
        bytes
            .chunks_exact(2)
            .map(|half| u16::from_le_bytes([half[0], half[1]]))
            .collect()
    };
    let (a, b) = (
        halves(named(&before, "param_0")),
        halves(named(&before, "param_1")),
    );
    let expected: Vec<u16> = a
        .iter()
        .zip(b)
        .map(|(a, b)| b.wrapping_mul(3).wrapping_sub(a >> 2))
        .collect();
    assert_eq!(halves(named(&after, "param_1")), expected);
}

#[test]
fn variables_of_the_module_hold_what_it_says() {
    let text = launch(
        "groups = 1\ngroup = 32",
        &[
            buffer(0, 32 * 20, &random(120)),
            buffer(1, 32, ZERO),
            scalar(2, "20"),
        ],
    );
    let (_, found) = outputs(WIDE, "checksum", &text);
    let table: Vec<u32> = (0..16u32)
        .map(|nibble| {
            (0..4).fold(nibble, |crc, _| match crc & 1 {
                1 => 0xedb8_8320 ^ crc >> 1,
                _ => crc >> 1,
            })
        })
        .collect();
    let crc = |bytes: &[u8]| {
        !bytes.iter().fold(u32::MAX, |sum, &byte| {
            let sum = sum ^ u32::from(byte);
            let sum = table[(sum & 15) as usize] ^ sum >> 4;
            table[(sum & 15) as usize] ^ sum >> 4
        })
    };
    let expected: Vec<u32> = named(&found, "param_0").chunks(20).map(crc).collect();
    assert_eq!(integers(named(&found, "param_1")), expected);

    let text = launch(
        "groups = 1\ngroup = 32",
        &[buffer(0, 40, FRACTIONS), buffer(1, 32, ZERO), scalar(2, "39")],
    );
    let (_, found) = outputs(WIDE, "weighted", &text);
    let weights = [0.5f32, 0.25, 0.125, 1.0, 2.0, -1.0, 3.0, 0.75];
    let input = floats(named(&found, "param_0"));
    let expected: Vec<f32> = (0..32)
        .map(|at| (0..8).fold(0.0f32, |sum, k| weights[k].mul_add(input[at + k], sum)))
        .collect();
    assert_eq!(floats(named(&found, "param_1")), expected);
}

#[test]
fn parts_of_a_warp() {
    let text = launch(
        "groups = 1\ngroup = 64",
        &[buffer(0, 64, &random(1000)), buffer(1, 64, ZERO)],
    );
    let (_, found) = outputs(WIDE, "half_warps", &text);
    let expected: Vec<u32> = integers(named(&found, "param_0"))
        .chunks(16)
        .flat_map(|half| {
            let odd = half.iter().filter(|&&number| number & 1 == 1).count() as u32;
            [half.iter().sum::<u32>() + odd; 16]
        })
        .collect();
    assert_eq!(integers(named(&found, "param_1")), expected);
}

#[test]
fn copies_that_the_program_manages() {
    for tiles in [1, 2, 5] {
        let text = launch(
            "groups = 2\ngroup = 128",
            &[
                buffer(0, 2 * tiles * 512, FRACTIONS),
                buffer(1, 256, ZERO),
                scalar(2, &tiles.to_string()),
            ],
        );
        let (_, found) = outputs(WIDE, "staged", &text);
        let input = floats(named(&found, "param_0"));
        let expected: Vec<f32> = (0..256)
            .map(|id| {
                let own = &input[id / 128 * tiles * 512..];
                (0..tiles * 4).fold(0.0, |sum, k| sum + own[k / 4 * 512 + (id % 128 + k % 4 * 128)])
            })
            .collect();
        assert_eq!(floats(named(&found, "param_1")), expected, "{tiles} tiles");
    }
}

#[test]
fn structures_by_value_and_through_functions() {
    let text = "groups = [1, 32, 1]\ngroup = 32\n[parameters.param_0_0]\nvalue = -0.4\n[parameters.param_0_4]\nvalue = 0.6\n";
    let text = format!(
        "{text}{}{}{}",
        buffer(1, 1024, ZERO),
        scalar(2, "32"),
        scalar(3, "50")
    );
    let (_, found) = outputs(WIDE, "julia", &text);
    let steps = integers(named(&found, "param_1"));
    let expected: Vec<u32> = (0..1024)
        .map(|at| {
            let scale = 3.0f32 / 32.0;
            let start = |at: usize| scale.mul_add(at as f32, -1.5);
            let (mut re, mut im, mut step) = (start(at % 32), start(at / 32), 0);
            while step < 50 && im.mul_add(im, re * re) < 4.0 {
                // As nvcc contracts it.
                let square = (re.mul_add(re, -(im * im)), re.mul_add(im, re * im));
                (re, im) = (square.0 + -0.4, square.1 + 0.6);
                step += 1;
            }
            step
        })
        .collect();
    // The steps at the edge of the set hang on the last bit, which another contraction would change.
    let same = steps.iter().zip(&expected).filter(|(a, b)| a == b).count();
    assert!(same >= 1000, "{same} of 1024");
    assert!(
        steps.iter().any(|&step| step > 5) && steps.contains(&1),
        "{steps:?}"
    );
}

#[test]
fn halves_two_at_a_time() {
    let text = launch(
        "groups = 1\ngroup = 32",
        &[
            buffer(0, 32, &random(15000)),
            buffer(1, 32, &format!("{}\nseed = 4", random(15000))),
            buffer(2, 32, ZERO),
            scalar(3, "32"),
        ],
    );
    let (_, found) = outputs(WIDE, "dot_half", &text);
    let words = |name: &str| integers(named(&found, name));
    let half = |bits: u32| half::f16::from_bits(bits as u16).to_f64();
    let expected: Vec<f32> = words("param_0")
        .iter()
        .zip(words("param_1"))
        .map(|(&a, b)| {
            // Exact in 64 bits, then rounded once: as a fused operation of halves.
            let fused = |shift: u32| {
                let exact = half(a >> shift & 0xffff) * half(b >> shift & 0xffff) + 0.5;
                half::f16::from_f64(exact).to_f32()
            };
            0.0 + (fused(0) + fused(16))
        })
        .collect();
    assert_eq!(floats(named(&found, "param_2")), expected);
}
