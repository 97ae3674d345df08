//! Prefetches: every signature of the SYCL extension in its Rust form.
//!
//! The table of `docs/prefetch.md` has a row for each `row_N` here, word for word.

#![allow(unused_variables, reason = "the rows have the same parameters")]

use headstart::device::sim::Simulator;
use headstart::device::{Device, TypedBuffer};
use headstart::ir::{self, Kernel};
use headstart::prelude::*;

use crate::conformance::Feature;

/// Each row with what stands for its memory on a device, and in the CPU reference.
macro_rules! rows {
    (|$values:ident, $given:ident| $($name:ident: $argument:expr, $reference:expr;)+) => {
        /// Each row's number and IR. It runs on the simulator as on the CPU.
        fn rows() -> Vec<(&'static str, Kernel)> {
            vec![$({
                let kernel = $name::kernel().unwrap_or_else(|error| panic!("{}: {error}", stringify!($name)));
                let device = Simulator::untimed();
                let queue = device.queue().expect("a queue");
                let $given: Vec<f32> = (0..256).map(|i| i as f32).collect();
                let $values = TypedBuffer::from_slice(&device, &$given).expect("fits");
                let mut result = TypedBuffer::uninitialized(&device, 64).expect("fits");
                let geometry = Geometry::new(1, 64);
                $name::compile(&device)
                    .expect("compiles")
                    .launch(&*queue, geometry, $name::arguments($argument, &mut result, 3, 5))
                    .wait()
                    .unwrap_or_else(|error| panic!("{}: {error}", stringify!($name)));
                let mut expected = vec![0.0; 64];
                $name::reference(geometry, $reference, &mut expected, 3, 5).expect("it has a reference");
                assert_eq!(result.read(&*queue).expect("written"), expected, "{}", stringify!($name));
                assert_eq!(expected, $given[3..67], "{}", stringify!($name));
                (stringify!($name), kernel)
            }),+]
        }
    };
}

rows! {
    |values, given|
    row_1: &values, &given;
    row_2: &values, &given;
    row_3: &values, &given;
    row_4: &values, &given;
    row_5: &values, &given;
    row_6: &values, &given;
    row_7: &values, &given;
    row_8: &values, &given;
    row_9: values.view([16, 16]).expect("fits"), View2::new(&given[..], [16, 16]);
    row_10: values.view([16, 16]).expect("fits"), View2::new(&given[..], [16, 16]);
    row_11: &values, &given;
    row_12: &values, &given;
    row_13: &values, &given;
    row_14: &values, &given;
    row_15: &values, &given;
    row_16: &values, &given;
    row_17: &values, &given;
    row_18: &values, &given;
    row_19: values.view([4, 8, 8]).expect("fits"), View3::new(&given[..], [4, 8, 8]);
    row_20: values.view([16, 16]).expect("fits"), View2::new(&given[..], [16, 16]);
}

#[kernel(work_group = 64)]
fn row_1(values: &[f32], out: &mut [f32], i: usize, n: usize) {
    prefetch(generic_ptr(&values[i]).raw(), L1);
    out[global_id()] = values[i + global_id()];
}

#[kernel(work_group = 64)]
fn row_2(values: &[f32], out: &mut [f32], i: usize, n: usize) {
    prefetch(generic_ptr(&values[i]).raw().span(20), L2);
    out[global_id()] = values[i + global_id()];
}

#[kernel(work_group = 64)]
fn row_3(values: &[f32], out: &mut [f32], i: usize, n: usize) {
    prefetch(&values[i], L1);
    out[global_id()] = values[i + global_id()];
}

#[kernel(work_group = 64)]
fn row_4(values: &[f32], out: &mut [f32], i: usize, n: usize) {
    prefetch(&values[i..i + 5], L3);
    out[global_id()] = values[i + global_id()];
}

#[kernel(work_group = 64)]
fn row_5(values: &[f32], out: &mut [f32], i: usize, n: usize) {
    let p = global_ptr(&values[i]);
    prefetch(p.raw(), []);
    out[global_id()] = values[i + global_id()];
}

#[kernel(work_group = 64)]
fn row_6(values: &[f32], out: &mut [f32], i: usize, n: usize) {
    let p = generic_ptr(&values[i]);
    prefetch(p.raw().span(n), L4);
    out[global_id()] = values[i + global_id()];
}

#[kernel(work_group = 64)]
fn row_7(values: &[f32], out: &mut [f32], i: usize, n: usize) {
    let p = global_ptr(&values[i]);
    prefetch(p, L2_NT);
    out[global_id()] = values[i + global_id()];
}

#[kernel(work_group = 64)]
fn row_8(values: &[f32], out: &mut [f32], i: usize, n: usize) {
    let p = global_ptr(&values[i]);
    prefetch(p.span(n), [L3, L1_NT]);
    out[global_id()] = p.add(global_id()).read();
}

#[kernel(work_group = 64)]
fn row_9(table: View2<f32, ReadOnly>, out: &mut [f32], i: usize, n: usize) {
    prefetch(&table[(2, i)], L1);
    let at = i + global_id();
    out[global_id()] = table[(at / 16, at % 16)];
}

#[kernel(work_group = 64)]
fn row_10(table: View2<f32, ReadOnly>, out: &mut [f32], i: usize, n: usize) {
    prefetch(table.span((2, i), n), L2);
    prefetch(table.block((2, i), (2, 5)), L2);
    let at = i + global_id();
    out[global_id()] = table[(at / 16, at % 16)];
}

#[kernel(work_group = 64)]
fn row_11(values: &[f32], out: &mut [f32], i: usize, n: usize) {
    let g = sub_group();
    joint_prefetch(g, generic_ptr(&values[i]).raw(), L1);
    out[global_id()] = values[i + global_id()];
}

#[kernel(work_group = 64)]
fn row_12(values: &[f32], out: &mut [f32], i: usize, n: usize) {
    let g = work_group();
    joint_prefetch(g, generic_ptr(&values[i]).raw().span(700), L2);
    out[global_id()] = values[i + global_id()];
}

#[kernel(work_group = 64)]
fn row_13(values: &[f32], out: &mut [f32], i: usize, n: usize) {
    let g = sub_group();
    joint_prefetch(g, &values[i], L3);
    out[global_id()] = values[i + global_id()];
}

#[kernel(work_group = 64)]
fn row_14(values: &[f32], out: &mut [f32], i: usize, n: usize) {
    let g = work_group();
    joint_prefetch(g, &values[i..i + 100], L2);
    out[global_id()] = values[i + global_id()];
}

#[kernel(work_group = 64)]
fn row_15(values: &[f32], out: &mut [f32], i: usize, n: usize) {
    let (g, p) = (sub_group(), global_ptr(&values[i]));
    joint_prefetch(g, p.raw(), [L2, L4]);
    out[global_id()] = values[i + global_id()];
}

#[kernel(work_group = 64)]
fn row_16(values: &[f32], out: &mut [f32], i: usize, n: usize) {
    let (g, p) = (work_group(), generic_ptr(&values[i]));
    joint_prefetch(g, p.raw().span(n), L3_NT);
    out[global_id()] = values[i + global_id()];
}

#[kernel(work_group = 64)]
fn row_17(values: &[f32], out: &mut [f32], i: usize, n: usize) {
    let (g, p) = (sub_group(), generic_ptr(&values[i]));
    joint_prefetch(g, p, []);
    out[global_id()] = p.add(global_id()).read();
}

#[kernel(work_group = 64)]
fn row_18(values: &[f32], out: &mut [f32], i: usize, n: usize) {
    let (g, p) = (work_group(), global_ptr(&values[i]));
    joint_prefetch(g, p.span(n), L1);
    out[global_id()] = values[i + global_id()];
}

#[kernel(work_group = 64)]
fn row_19(cube: View3<f32, ReadOnly>, out: &mut [f32], i: usize, n: usize) {
    let g = sub_group();
    joint_prefetch(g, &cube[(1, 2, i)], L1);
    let at = i + global_id();
    out[global_id()] = cube[(at / 64, at / 8 % 8, at % 8)];
}

#[kernel(work_group = 64)]
fn row_20(table: View2<f32, ReadOnly>, out: &mut [f32], i: usize, n: usize) {
    let g = work_group();
    joint_prefetch(g, table.span((2, i), n), L4);
    joint_prefetch(g, table.block((2, i), (2, n)), L4);
    let at = i + global_id();
    out[global_id()] = table[(at / 16, at % 16)];
}

/// The prefetches of a kernel, as the text form has them, less the names of values.
pub(crate) fn prefetches(kernel: &Kernel) -> Vec<String> {
    let text = ir::print(kernel);
    let lines = text
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with("prefetch"));
    lines
        .map(|line| {
            let words: Vec<&str> = line
                .split(' ')
                .map(|word| if word.starts_with('%') { "%" } else { word })
                .collect();
            let place = words
                .iter()
                .position(|word| word.starts_with('#'))
                .unwrap_or(words.len());
            words[..place].join(" ")
        })
        .collect()
}

#[test]
fn every_signature_becomes_the_prefetch_that_it_means() {
    let expected: [&[&str]; 20] = [
        &["prefetch L1 1 at %"],
        &["prefetch L2 20 at %"],
        &["prefetch L1 4 at %"],
        &["prefetch L3 20 at %"],
        &["prefetch L1 default 1 at %"],
        &["prefetch L4 1 * % at %"],
        &["prefetch L2 nontemporal 4 at %"],
        &["prefetch L1 nontemporal 4 * % at %"],
        &["prefetch L1 4 at %"],
        // A block is as many runs as it has rows, by a loop.
        &["prefetch L2 4 * % at %", "prefetch L2 20 at %"],
        &["prefetch L1 1 at % by sub_group"],
        &["prefetch L2 700 at % by work_group"],
        &["prefetch L3 4 at % by sub_group"],
        &["prefetch L2 400 at % by work_group"],
        &["prefetch L2 1 at % by sub_group"],
        &["prefetch L3 nontemporal 1 * % at % by work_group"],
        &["prefetch L1 default 4 at % by sub_group"],
        &["prefetch L1 4 * % at % by work_group"],
        &["prefetch L1 4 at % by sub_group"],
        &[
            "prefetch L4 4 * % at % by work_group",
            "prefetch L4 4 * % at % by work_group",
        ],
    ];
    for ((name, kernel), expected) in rows().iter().zip(expected) {
        assert_eq!(prefetches(kernel), expected, "{name}: {}", ir::print(kernel));
    }
}

#[test]
fn the_documented_table_is_the_tested_one() {
    let squeezed = |text: &str| text.split_whitespace().collect::<String>();
    let page = include_str!("../../../docs/prefetch.md");
    let source = squeezed(include_str!("prefetch_signatures.rs"));
    let mut rows = 0;
    for line in page.lines() {
        let cells: Vec<&str> = line
            .split(" | ")
            .map(|cell| cell.trim_matches(['|', ' ']))
            .collect();
        let [number, sycl, rust] = cells[..] else { continue };
        let Ok(number) = number.parse::<u32>() else {
            continue;
        };
        rows += 1;
        assert_eq!(number, rows);
        assert!(sycl.contains("prefetch("), "{line}");
        let start = source
            .find(&format!("fnrow_{number}("))
            .expect("each row has its kernel");
        let body = &source[start..start + source[start..].find("}").expect("it ends")];
        for form in rust.split("<br>") {
            let form = squeezed(form.trim_matches('`'));
            assert!(body.contains(&form), "row {number}: {form} is not in {body}");
        }
    }
    assert_eq!(rows, 20);
}

pub const FEATURES: &[Feature] = &[Feature {
    name: "prefetches of groups",
    spelled: "`joint_prefetch(work_group(), &a[i..i + n], [L2, L1_NT])`",
    kernel: row_14::kernel,
    test: every_signature_becomes_the_prefetch_that_it_means,
}];
