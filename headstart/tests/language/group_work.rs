//! Kernels that are written as a work-group sees them: `work_items(count)`.

use headstart::device::TypedBuffer;
use headstart::device::sim::Simulator;
use headstart::ir::OpKind;
use headstart::prelude::*;

use crate::agree::{devices, lowers, noise, taken};
use crate::conformance::Feature;

const WIDTH: usize = 150;

/// Rows of a matrix, each of them sorted by the places that its elements have, by a work-group of two dimensions.
#[kernel(work_group = (8, 4))]
fn ranks(rows: &[u32], sorted: &mut [u32], width: u32) {
    let mut tile = shared::<u32, 150>();
    let mut place = shared::<u32, 150>();
    let mut least = shared::<u32, 1>();
    let (width, row) = (width as usize, group_id());
    for x in work_items(width) {
        tile[x] = rows[row * width + x];
    }
    for _ in work_items(1) {
        let mut smallest = u32::MAX;
        for x in 0..width {
            smallest = smallest.min(tile[x]);
        }
        least[0] = smallest;
    }
    let smallest = least[0];
    for x in work_items(width) {
        let mut before = 0;
        for other in 0..width {
            if tile[other] < tile[x] || (tile[other] == tile[x] && other < x) {
                before += 1;
            }
        }
        place[x] = before;
    }
    for x in work_items(width) {
        let at = row * width + place[x] as usize;
        if tile[x] == smallest {
            sorted[at] = 0;
            continue;
        }
        sorted[at] = tile[x] - smallest + 1;
    }
}

/// A work-group for each of this many rows.
fn in_rows(rows: u32) -> Geometry {
    Geometry {
        group: [8, 4, 1],
        ..Geometry::new(rows, 1)
    }
}

/// The right result.
fn expected(rows: &[u32]) -> Vec<u32> {
    let mut all = Vec::new();
    for row in rows.chunks(WIDTH) {
        let least = *row.iter().min().expect("elements");
        let mut sorted = row.to_vec();
        sorted.sort_unstable();
        all.extend(sorted.iter().map(|&x| if x == least { 0 } else { x + 1 - least }));
    }
    all
}

#[test]
fn a_work_group_divides_its_work() {
    const ROWS: usize = 3;
    let rows: Vec<u32> = noise(ROWS * WIDTH).iter().map(|bits| bits % 97).collect();
    for device in devices() {
        let queue = device.queue().expect("a queue");
        let source = TypedBuffer::from_slice(&*device, &rows).expect("fits");
        let mut sorted = TypedBuffer::<u32>::uninitialized(&*device, rows.len() as u64).expect("fits");
        let arguments = ranks::arguments(&source, &mut sorted, WIDTH as u32);
        let Some(compiled) = taken(&*device, ranks::compile(&*device)) else {
            continue;
        };
        let geometry = in_rows(ROWS as u32);
        let event = compiled.launch(&*queue, geometry, arguments);
        event.wait().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(
            sorted.read(&*queue).expect("written"),
            expected(&rows),
            "{}",
            device.description().name
        );
    }
    let kernel = ranks::kernel().expect("a kernel");
    let mut barriers = 0;
    kernel
        .body
        .walk(&mut |op| barriers += u32::from(matches!(op.kind, OpKind::Barrier)));
    // Before the first loop and after each; between the second and the third the work-group reads what was found.
    assert_eq!(barriers, 1 + 4 + 1, "{}", headstart::ir::print(&kernel));
    lowers(Ok(kernel));
}

/// What would be wrong without the barriers is reported where a work-item never comes to one.
#[test]
fn a_work_item_that_leaves_is_missed() {
    #[kernel(work_group = 64)]
    fn leaves(result: &mut [u32]) {
        let mut tile = shared::<u32, 64>();
        if local_id() == 3 {
            return;
        }
        for i in work_items(64) {
            tile[i] = i as u32;
        }
        for i in work_items(64) {
            result[i] = tile[63 - i];
        }
    }
    let device = Simulator::untimed();
    let queue = headstart::device::Device::queue(&device).expect("a queue");
    let mut result = TypedBuffer::from_slice(&device, &[0; 64]).expect("fits");
    let arguments = leaves::arguments(&mut result);
    let compiled = leaves::compile(&device).expect("compiles");
    let event = compiled.launch(&*queue, Geometry::new(1, 64), arguments);
    let error = event.wait().expect_err("element 3 is missing").to_string();
    assert!(
        error.contains("tile") && error.contains("group_work.rs:"),
        "{error}"
    );
}

/// On the CPU one work-item runs after the other: a kernel whose work-items wait for each other is refused there.
#[test]
fn the_ordinary_function_says_that_it_needs_others() {
    let mut sorted = [0; WIDTH];
    let error = ranks::reference(in_rows(1), &[0; WIDTH], &mut sorted, WIDTH as u32);
    assert!(error.is_err());
}

/// The features that are tested here.
pub const FEATURES: &[Feature] = &[Feature {
    name: "a work-group's work in loops with barriers around (hierarchical dispatch)",
    spelled: "`for x in work_items(n) { tile[x] = a[x]; }`",
    kernel: ranks::kernel,
    test: a_work_group_divides_its_work,
}];
