//! `spmv` and `spmv-blocks`: a sparse matrix in compressed rows times a vector.
//!
//! `spmv` gives each row to a few neighbouring work-items, which suits long rows and rows of equal length. `spmv-blocks` gives
//! each work-group about as many entries, whatever the rows (Greathouse and Daga, "Efficient sparse matrix-vector
//! multiplication on GPUs using the CSR storage format", 2014): products go to shared memory side by side, and are added up
//! there, a row by each work-item; a long row has a work-group to itself.

use std::sync::Arc;

use headstart::Result;
use headstart::ir::Type;
use headstart::prelude::*;
use headstart::tune::Workload;

use super::{groups_for, power_of_two, whole_sub_groups};
use crate::data::matrix::{Matrix, SparsityPattern};
use crate::data::{fractions, output, scalar, words};
use crate::kernels::{GalleryKernel, Iterations, others};
use crate::settings::{Parameter, Settings};
use crate::spatter::Entry;

/// Products that a work-group keeps; a row of more than a quarter of it has a work-group to itself.
const BLOCK: usize = 1024;
/// The same, and a word more for every 32: rows of 16 would meet in two banks otherwise.
const PADDED: usize = BLOCK + BLOCK / 32;

/// Bytes of the matrix and of both vectors. The data of `spmv-blocks` about its work-groups depend on the geometry.
pub(super) fn bytes(settings: &Settings) -> u64 {
    let (rows, entries) = SparsityPattern::of(settings.get("matrix")).counts(settings.small("rows"));
    (rows + 1 + 2 * entries + 2 * rows) * 4
}

/// A row by `lanes` work-items side by side.
#[kernel(work_group = group, sub_group = 32)]
pub fn spmv(
    starts: &[u32],
    columns: &[u32],
    entries: &[f32],
    x: &[f32],
    y: &mut [f32],
    rows: u32,
    #[constant] group: u32,
    #[constant] lanes: u32,
) {
    let row = global_id() / lanes as usize;
    let lane = global_id() % lanes as usize;
    let mut sum = 0.0;
    if row < rows as usize {
        let first = starts[row] as usize + lane;
        let end = starts[row + 1] as usize;
        #[unroll(0)]
        for k in (first..end).step_by(lanes as usize) {
            sum += entries[k] * x[columns[k] as usize];
        }
    }
    sum = add_lanes(sum, lanes);
    if row < rows as usize && lane == 0 {
        y[row] = sum;
    }
}

/// The sum over `lanes` work-items side by side.
#[device_fn]
pub(super) fn add_lanes(own: f32, lanes: u32) -> f32 {
    let mut sum = own;
    if lanes > 16 {
        sum += sub_group_shuffle_xor(sum, 16);
    }
    if lanes > 8 {
        sum += sub_group_shuffle_xor(sum, 8);
    }
    if lanes > 4 {
        sum += sub_group_shuffle_xor(sum, 4);
    }
    if lanes > 2 {
        sum += sub_group_shuffle_xor(sum, 2);
    }
    if lanes > 1 {
        sum += sub_group_shuffle_xor(sum, 1);
    }
    sum
}

/// About as many entries for each work-group: rows `blocks[g]` up to `blocks[g + 1]`.
#[kernel(work_group = group, sub_group = 32)]
pub fn spmv_blocks(
    blocks: &[u32],
    starts: &[u32],
    columns: &[u32],
    entries: &[f32],
    x: &[f32],
    y: &mut [f32],
    #[constant] group: u32,
) {
    let mut products = shared::<f32, PADDED>();
    let first_row = blocks[group_id()] as usize;
    let end_row = blocks[group_id() + 1] as usize;
    let first = starts[first_row] as usize;
    let end = starts[end_row] as usize;
    let is_long = end_row == first_row + 1;
    let mut sum = 0.0;
    #[unroll(0)]
    for k in (first + local_id()..end).step_by(group as usize) {
        let product = entries[k] * x[columns[k] as usize];
        if is_long {
            sum += product;
        } else {
            let at = k - first;
            products[at + at / 32] = product;
        }
    }
    if is_long {
        let sum = group_reduce_add(sum);
        if local_id() == 0 {
            y[first_row] = sum;
        }
    } else {
        barrier();
        let row = first_row + local_id();
        if row < end_row {
            let mut sum = 0.0;
            for k in starts[row] as usize..starts[row + 1] as usize {
                let at = k - first;
                sum += products[at + at / 32];
            }
            y[row] = sum;
        }
    }
}

const MATRIX: Parameter = Parameter::choice("matrix", "its shape", SparsityPattern::WORDS);
const ROWS: Parameter = Parameter::number("rows", "rows, and columns", 1 << 18, 1..=1 << 26);
const GROUP: Parameter = Parameter::number(
    "group",
    "work-items of a work-group, a multiple of 32",
    256,
    32..=1024,
);

static PARAMETERS: [Parameter; 4] = [
    MATRIX,
    ROWS,
    GROUP,
    Parameter::number("lanes", "work-items of a row, a power of two", 8, 1..=32),
];
static BLOCKS_PARAMETERS: [Parameter; 3] = [MATRIX, ROWS, GROUP];

/// `spmv`.
pub(crate) static KERNEL: GalleryKernel = GalleryKernel {
    name: "spmv",
    summary: "a sparse matrix in compressed rows times a vector, a few work-items a row",
    parameters: &PARAMETERS,
    takes_trace: None,
    iterations: Iterations::Given {
        small: |settings, iterations| small(settings, iterations),
        shapes: |settings| {
            let lanes = others(settings, "lanes", &[1, 2, 4, 8, 16, 32]);
            [lanes, others(settings, "group", &[128, 256, 512])].concat()
        },
    },
    workload: |settings, _| {
        let (group, lanes) = (
            settings.small("group"),
            power_of_two("lanes", settings.small("lanes"))?,
        );
        let matrix = matrix(settings)?;
        let groups = groups_for(u64::from(matrix.rows) * u64::from(lanes), group)?;
        let kernel = spmv::kernel(whole_sub_groups(group)?, lanes)?;
        with_matrix(Workload::new(Arc::new(kernel), groups, group), &matrix)?
            .with("rows", scalar(matrix.rows))
    },
};

/// `spmv-blocks`.
pub(crate) static BLOCKS: GalleryKernel = GalleryKernel {
    name: "spmv-blocks",
    summary: "the same, as many entries for each work-group",
    parameters: &BLOCKS_PARAMETERS,
    takes_trace: None,
    iterations: Iterations::Given {
        small: |settings, iterations| small(settings, iterations),
        shapes: |settings| others(settings, "group", &[64, 128, 256, 512]),
    },
    workload: |settings, _: Option<&Entry>| {
        let group = settings.small("group");
        let matrix = matrix(settings)?;
        let blocks = matrix.blocks(BLOCK as u32, group, BLOCK as u32 / 4);
        let groups = blocks.len() as u32 - 1;
        let kernel = spmv_blocks::kernel(whole_sub_groups(group)?)?;
        let workload = Workload::new(Arc::new(kernel), groups, group).with("blocks", words(&blocks))?;
        with_matrix(workload, &matrix)
    },
};

/// Rows of more entries than a work-item goes through iterations; the shapes decide.
fn small(settings: &Settings, iterations: u64) -> Settings {
    settings.with("rows", 40 + 8 * iterations)
}

fn matrix(settings: &Settings) -> Result<Arc<Matrix>> {
    Matrix::new(
        SparsityPattern::of(settings.get("matrix")),
        settings.small("rows"),
    )
}

fn with_matrix(workload: Workload, matrix: &Matrix) -> Result<Workload> {
    let rows = u64::from(matrix.rows);
    workload
        .with("starts", words(&matrix.starts))?
        .with("columns", words(&matrix.columns))?
        .with("entries", fractions(Type::F32, matrix.entries.max(1)))?
        .with("x", fractions(Type::F32, rows))?
        .with("y", output(Type::F32, rows))
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::testing::{Ran, close, run};
    use crate::data::matrix::SparsityPattern;

    /// The product in double precision: rows are long, and lanes add them up in another order.
    pub(in super::super) fn check(ran: &Ran) {
        let (starts, columns) = (ran.indices("starts"), ran.of("columns"));
        let (entries, x) = (ran.of("entries"), ran.of("x"));
        let product = |row: &[usize]| {
            let of = |k| f64::from(entries.f32(k)) * f64::from(x.f32(columns.index(k)));
            (row[0]..row[1]).map(of).sum::<f64>() as f32
        };
        let expected: Vec<f32> = starts.windows(2).map(product).collect();
        close(&ran.f32s("y"), &expected, 1e-5);
    }

    #[test]
    fn every_matrix_is_multiplied() {
        for matrix in SparsityPattern::WORDS {
            let (matrix, rows) = (format!("matrix={matrix}"), "rows=700");
            for (kernel, setting) in [
                ("spmv", "lanes=4"),
                ("spmv", "lanes=32"),
                ("spmv-blocks", "group=64"),
            ] {
                check(&run(kernel, &[&matrix, rows, setting]));
            }
        }
    }
}
