//! The simulator's errors on an H200 and an H100. Made from `results/accuracy-*.json` by the test
//! `the_table_of_errors_is_that_of_the_records` of `headstart-lab`; `HEADSTART_BLESS=1` makes it anew.

use super::{Kind, Row};

pub(super) const ROWS: &[Row] = &[
    Row::new(Kind::Unroll, 0.92, [0.99, 1.09, 1.55]),
    Row::new(Kind::Unroll, 1.00, [0.96, 1.00, 1.08]),
    Row::new(Kind::Unroll, 1.15, [0.89, 0.98, 1.14]),
    Row::new(Kind::Unroll, 2.10, [0.83, 0.98, 1.09]),
    Row::new(Kind::Registers, 0.64, [0.94, 1.19, 2.28]),
    Row::new(Kind::Registers, 1.01, [0.94, 0.99, 1.08]),
    Row::new(Kind::Registers, 1.12, [0.90, 0.97, 1.08]),
    Row::new(Kind::Registers, 2.42, [0.84, 0.98, 1.10]),
    Row::new(Kind::Shared, 0.79, [0.94, 1.04, 1.28]),
    Row::new(Kind::Shared, 1.00, [0.94, 1.00, 1.02]),
    Row::new(Kind::Shared, 1.14, [0.91, 0.97, 1.02]),
    Row::new(Kind::Shared, 1.90, [0.86, 1.00, 1.09]),
    Row::new(Kind::Async, 0.66, [0.36, 1.03, 1.52]),
    Row::new(Kind::Async, 1.01, [0.94, 0.98, 1.03]),
    Row::new(Kind::Async, 1.11, [0.87, 0.94, 1.02]),
    Row::new(Kind::Async, 2.83, [0.84, 0.96, 1.07]),
    Row::new(Kind::Hint, 0.74, [0.74, 0.96, 1.18]),
    Row::new(Kind::Hint, 1.02, [0.77, 1.00, 1.10]),
    Row::new(Kind::Hint, 1.14, [0.71, 0.95, 1.80]),
    Row::new(Kind::Hint, 1.61, [0.83, 1.04, 1.35]),
    Row::new(Kind::Launch, 0.35, [0.94, 1.06, 1.19]),
    Row::new(Kind::Launch, 1.01, [0.96, 1.00, 1.03]),
    Row::new(Kind::Launch, 1.10, [0.89, 0.97, 1.05]),
    Row::new(Kind::Launch, 3.88, [0.84, 0.93, 1.07]),
    Row::new(Kind::Any, 0.73, [0.74, 1.05, 1.70]),
    Row::new(Kind::Any, 1.01, [0.94, 0.99, 1.04]),
    Row::new(Kind::Any, 1.12, [0.88, 0.97, 1.06]),
    Row::new(Kind::Any, 2.20, [0.84, 0.98, 1.11]),
];
