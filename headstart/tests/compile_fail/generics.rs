//! Errors in generic kernels: each is reported, and once.

use headstart::prelude::*;

#[kernel]
fn no_group<T: Scalar>(values: &[T], out: &mut [T]) {
    joint_prefetch(L1, &values[0], L1); //~ E0277 20
    out[0] = values[0];
}

#[kernel]
fn adds_a_number_to_anything<T: Scalar>(values: &[T], out: &mut [T]) {
    out[0] = values[0] + 1u32; //~ E0369 24
}

#[kernel]
fn of_a_wrong_type<T: Scalar, const N: usize>(values: &[T], out: &mut [T]) {
    let first: u32 = values[N]; //~ E0308 22
    out[0] = values[0];
}

#[kernel]
fn indexed_by_a_wrong_type<T: Scalar>(values: &[T], out: &mut [T], at: u32) {
    out[at] = values[0]; //~ E0277 9
}

#[kernel]
fn of_one_type_only<T: Scalar + Into<f64>>(values: &[T], out: &mut [f32]) {
    out[0] = values[0]; //~ E0308 14
}

#[device_fn]
fn doubled<T: Scalar>(value: T) -> T {
    value * 2 //~ E0277 11 //~ E0369 11
}
