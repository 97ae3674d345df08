//! The kernels of `corpus/`, as nvcc compiled them, against the same in Rust.

use super::{Facts, entries, floats, integers, named, outputs, read};
use crate::back::ptx::{Options as Emit, Target, emit};

const TOGETHER: &str = include_str!("../../../../../corpus/together.ptx");
const LOOKUP: &str = include_str!("../../../../../corpus/lookup.ptx");
const DENSE: &str = include_str!("../../../../../corpus/dense.ptx");

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
fn every_entry_is_read_and_what_is_written_is_read_again() {
    let facts = Facts {
        dynamic_shared_bytes: Some(1024),
        ..Facts::default()
    };
    for text in [super::NVCC, TOGETHER, LOOKUP, DENSE] {
        for entry in entries(text).expect("a module") {
            let kernel =
                read(text, "corpus.ptx", Some(&entry), &facts).unwrap_or_else(|error| panic!("{error}"));
            let ptx =
                emit(&kernel, &Emit::new(Target::Sm90)).unwrap_or_else(|error| panic!("{entry}: {error}"));
            assert_eq!(ptx.entry, entry);
            let again = read(&ptx.text, "again.ptx", None, &Facts::default());
            let again = again.unwrap_or_else(|error| panic!("{error}\n{}", ptx.text));
            assert_eq!(again.params.len(), kernel.params.len(), "{entry}");
        }
    }
}

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
