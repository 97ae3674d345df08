//! Views of one, two and three dimensions, and parts of slices.

use headstart::device::TypedBuffer;
use headstart::front::lang::view::View;
use headstart::prelude::*;

use crate::agree::{agree, devices, lowers, noise};
use crate::conformance::Feature;

#[derive(Clone, Copy, Debug, Default, PartialEq, Data)]
struct Cell {
    heat: f32,
    age: u32,
}

#[device_fn]
fn around(cells: View2<Cell, ReadOnly>, y: usize, x: usize) -> f32 {
    let mut sum = 0.0;
    for dy in 0..3 {
        for dx in 0..3 {
            let (row, column) = ((y + dy) % cells.size(0), (x + dx) % cells.size(1));
            sum += cells[(row, column)].heat;
        }
    }
    sum
}

#[device_fn]
fn mark(space: &mut View3<u32, ReadWrite>, z: usize, by: u32) {
    space[(z, 1, 0)] += by;
}

/// Every number of dimensions and every access.
#[kernel]
fn steps(
    cells: View2<Cell, ReadOnly>,
    mut next: View2<Cell, WriteOnly>,
    mut space: View3<u32>,
    mut line: View1<f32, ReadWrite>,
) {
    let (y, x) = (global_id_y(), global_id());
    prefetch(&cells[(y, x)], L2);
    let heat = around(cells, y, x) / 9.0;
    next[(y, x)] = Cell {
        heat,
        age: cells[(y, x)].age + 1,
    };
    space[(y, 0, x)] = (space[(y, 0, x)] ^ 5) + space.len() as u32;
    if x == 0 {
        mark(&mut space, y, cells.size(1) as u32);
        line[y] *= space.size(2) as f32;
    }
}

#[test]
fn views_agree() {
    const ROWS: usize = 4;
    const COLUMNS: usize = 16;
    let geometry = Geometry {
        groups: [2, 2, 1],
        group: [8, 2, 1],
        ..Geometry::new(1, 1)
    };
    let noise = noise(ROWS * COLUMNS * 2);
    let cells: Vec<Cell> = noise[..ROWS * COLUMNS]
        .iter()
        .map(|&bits| Cell {
            heat: bits as f32 / 1e9,
            age: bits % 7,
        })
        .collect();
    let space_before: Vec<u32> = noise.iter().map(|bits| bits >> 4).collect();
    let line_before = vec![1.5f32; ROWS];
    let mut next = vec![Cell::default(); ROWS * COLUMNS];
    let (mut space, mut line) = (space_before.clone(), line_before.clone());
    steps::reference(
        geometry,
        View::new(&cells[..], [ROWS, COLUMNS]),
        View::new(&mut next[..], [ROWS, COLUMNS]),
        View::new(&mut space[..], [ROWS, 2, COLUMNS]),
        View::new(&mut line[..], [ROWS]),
    )
    .expect("the ordinary function runs");
    let size = [ROWS as u64, COLUMNS as u64];
    for device in devices() {
        let queue = device.queue().expect("a queue");
        let cells = TypedBuffer::from_slice(&*device, &cells).expect("fits");
        let mut found = TypedBuffer::<Cell>::uninitialized(&*device, next.len() as u64).expect("fits");
        let mut found_space = TypedBuffer::from_slice(&*device, &space_before).expect("fits");
        let mut found_line = TypedBuffer::from_slice(&*device, &line_before).expect("fits");
        let arguments = steps::arguments(
            cells.view(size).expect("as many"),
            found.view_mut(size).expect("as many"),
            found_space.view_mut([size[0], 2, size[1]]).expect("as many"),
            found_line.view_mut([size[0]]).expect("as many"),
        );
        let compiled = steps::compile(&*device).expect("compiles");
        let event = compiled.launch(&*queue, geometry, arguments);
        event.wait().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(found.read(&*queue).expect("written"), next);
        assert_eq!(found_space.read(&*queue).expect("written"), space);
        assert_eq!(found_line.read(&*queue).expect("written"), line);
        let error = cells.view([3, 3]).expect_err("64 are not 9").to_string();
        assert!(error.contains("a view of 3×3 does not fit its buffer"), "{error}");
    }
    let kernel = steps::kernel().expect("the kernel is right");
    let facts = |name: &str| {
        kernel
            .param(name)
            .and_then(|param| param.facts)
            .expect("a pointer")
    };
    assert!(facts("cells").read_only && !facts("next").read_only);
    let text = lowers(Ok(kernel));
    assert!(text.contains("ld.global.nc"), "{text}");
}

#[device_fn]
fn sum(of: &[u32]) -> u32 {
    let mut sum = 0u32;
    for i in 0..of.len() {
        sum = sum.wrapping_add(of[i]);
    }
    sum
}

#[device_fn]
fn fill(place: &mut [u32], with: u32) {
    for i in 0..place.len() {
        place[i] = with;
    }
}

/// Parts of slices and of arrays, named and handed on, and parts of parts.
#[kernel]
fn parts(input: &[u32], output: &mut [u32]) {
    let i = global_id();
    let row = &input[i..i + 5];
    let rest = &row[2..];
    let mut own = [0u32; 6];
    fill(&mut own[..=2], rest[1]);
    fill(&mut own[3..], sum(&row[1..3]));
    let out = &mut output[i * 4..];
    out[0] = sum(row);
    out[1] = sum(&own[2..5]);
    out[2] = rest.len() as u32;
    out[3] = sum(&own);
}

#[test]
fn parts_agree() {
    agree!(parts, Geometry::new(2, 32), noise(80), vec![0; 256]);
    lowers(parts::kernel());
}

/// What this module shows of the language.
pub const FEATURES: &[Feature] = &[
    Feature {
        name: "views of 1 to 3 dimensions with access modes",
        spelled: "`View2<f32, ReadOnly>`, `v[(y, x)]`, `v.size(0)`",
        kernel: steps::kernel,
        test: views_agree,
    },
    Feature {
        name: "parts of slices and arrays",
        spelled: "`let row = &a[i..i + 5];`, `f(&mut a[2..])`",
        kernel: parts::kernel,
        test: parts_agree,
    },
];
