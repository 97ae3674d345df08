//! A sparse matrix times a vector, one work-item a row, compared with the same function on the CPU.
//!
//!     cargo run --release --example spmv

use headstart::device::sim::Simulator;
use headstart::device::{Device, TypedBuffer};
use headstart::prelude::*;

/// The matrix is in CSR form: the entries of row `r` are those from `starts[r]` to `starts[r + 1]`.
#[kernel]
fn spmv(starts: &[u32], columns: &[u32], entries: &[f32], x: &[f32], y: &mut [f32]) {
    let row = global_id();
    if row < y.len() {
        let mut sum = 0.0;
        for k in starts[row] as usize..starts[row + 1] as usize {
            sum += entries[k] * x[columns[k] as usize];
        }
        y[row] = sum;
    }
}

/// The Laplacian of a square grid: each point has 4 on the diagonal and -1 for each neighbour.
fn laplacian(side: usize) -> (Vec<u32>, Vec<u32>, Vec<f32>) {
    let (mut starts, mut columns, mut entries) = (vec![0], Vec::new(), Vec::new());
    let points = side * side;
    for point in 0..points {
        let (row, column) = (point / side, point % side);
        let mut add = |is_there: bool, to: usize, entry: f32| {
            if is_there {
                columns.push(to as u32);
                entries.push(entry);
            }
        };
        add(row > 0, point.wrapping_sub(side), -1.0);
        add(column > 0, point.wrapping_sub(1), -1.0);
        add(true, point, 4.0);
        add(column + 1 < side, point + 1, -1.0);
        add(row + 1 < side, point + side, -1.0);
        starts.push(columns.len() as u32);
    }
    (starts, columns, entries)
}

fn main() -> headstart::Result<()> {
    let device = Simulator::untimed();
    let queue = device.queue()?;

    let side = 50;
    let (starts, columns, entries) = laplacian(side);
    let rows = side * side;
    let x: Vec<f32> = (0..rows).map(|i| (i as f32).sin()).collect();
    let geometry = Geometry::new(rows.div_ceil(64) as u32, 64);

    let mut y = TypedBuffer::uninitialized(&device, rows as u64)?;
    let arguments = spmv::arguments(
        &TypedBuffer::from_slice(&device, &starts)?,
        &TypedBuffer::from_slice(&device, &columns)?,
        &TypedBuffer::from_slice(&device, &entries)?,
        &TypedBuffer::from_slice(&device, &x)?,
        &mut y,
    );
    spmv::compile(&device)?
        .launch(&*queue, geometry, arguments)
        .wait()?;
    let found = y.read(&*queue)?;

    // A kernel stays a Rust function: `reference` runs it on the CPU, once for each work-item.
    let mut expected = vec![0.0; rows];
    spmv::reference(geometry, &starts, &columns, &entries, &x, &mut expected)?;
    let same = (0..rows)
        .filter(|&row| found[row].to_bits() == expected[row].to_bits())
        .count();
    println!(
        "{rows} rows, {} entries: {same} rows with the bits of the CPU",
        entries.len()
    );
    assert_eq!(same, rows);
    Ok(())
}
