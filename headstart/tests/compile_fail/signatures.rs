//! Functions that can be no kernels, and attributes that do not fit.

use headstart::device::{Device, TypedBuffer};
use headstart::prelude::*;

#[kernel]
fn gives_a_value(values: &[f32]) -> f32 { //~ macro 37
    values[0]
}

#[kernel]
async fn asynchronous(values: &[f32]) {} //~ macro 1

#[kernel]
unsafe fn dangerous(values: &[f32]) {} //~ macro 1

#[kernel]
fn owns_a_vector(values: Vec<f32>) {} //~ macro 26

#[kernel]
fn writes_a_vector(out: &mut Vec<f32>, values: &Vec<f32>) { //~ macro 25
    out[global_id()] = values[global_id()];
}

#[kernel]
fn takes_a_string(name: &str) {} //~ macro 25

#[kernel]
fn takes_a_pattern((a, b): (u32, u32)) {} //~ macro 20

#[kernel]
fn takes_a_reference(n: &mut u32) {} //~ macro 25

#[kernel]
fn takes_wide_integers(values: &[u128]) {} //~ macro 34

#[kernel(work_group = 64, work_group = 32)] //~ macro 27
fn given_twice(values: &[f32]) {}

#[kernel(work_group = (1, 2, 3, 4))] //~ macro 23
fn four_dimensions(values: &[f32]) {}

#[device_fn]
fn constant_of_a_function(#[constant] n: u32) -> u32 { //~ macro 27
    n
}

#[kernel]
fn attribute_off_a_loop(out: &mut [f32]) {
    #[unroll] //~ macro 5
    let x = 1.0;
    out[0] = x;
}

// Nothing is said of what uses them.
fn uses(device: &dyn Device, values: &TypedBuffer<f32>, out: &mut TypedBuffer<f32>) -> headstart::Result<()> {
    gives_a_value::kernel()?;
    let program = gives_a_value::compile(device)?;
    let geometry = Geometry::new(1, 32);
    program.launch(&*device.queue()?, geometry, gives_a_value::arguments(values)).wait()?;
    asynchronous::compile(device)?;
    owns_a_vector::arguments(values);
    writes_a_vector::arguments(out, values);
    writes_a_vector::reference(geometry, &mut [0.0], &[1.0])?;
    asynchronous(&[1.0]);
    dangerous(&[1.0]);
    Ok(())
}
