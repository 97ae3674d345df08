//! Vectors and halves.

use headstart::prelude::*;

#[kernel]
fn too_many_names(points: &[[f32; 4]], out: &mut [f32]) {
    let [x, y, z, w, v] = points[0]; //~ E0527 9
    out[0] = x + y + z + w + v;
}

#[kernel]
fn too_few_scalars(out: &mut [[f32; 4]]) {
    out[0] = [1.0, 2.0]; //~ E0308 14
}

#[kernel]
fn sum_of_vectors(points: &[[f32; 4]], out: &mut [[f32; 4]]) {
    out[0] = points[0] + points[1]; //~ E0369 24
}

#[kernel]
fn added_to_a_vector(out: &mut [[f32; 2]]) {
    out[0] += [1.0, 2.0]; //~ E0368 5
}

#[kernel]
fn scalar_taken_apart(values: &[f32], out: &mut [f32]) {
    out[0] = values[0][1]; //~ E0608 23
}

#[kernel]
fn rest_of_a_vector(points: &[[f32; 4]], out: &mut [f32]) {
    let [x, ..] = points[0]; //~ macro 13
    out[0] = x;
}

#[kernel]
fn half_from_an_integer(out: &mut [f16], n: i32) {
    out[0] = n as f16; //~ E0605 14
}

#[kernel]
fn half_and_single(values: &[f16], out: &mut [f32]) {
    out[0] = values[0] + out[0]; //~ E0277 24
}

#[kernel]
fn single_stored_as_half(values: &[f32], out: &mut [bf16]) {
    out[0] = values[0]; //~ E0308 14
}
