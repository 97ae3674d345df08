//! Structs and views: what they do not have, and what may not be done to them.

use headstart::prelude::*;

#[derive(Clone, Copy, Data)]
struct Body {
    mass: f32,
    place: [f32; 2],
}

#[derive(Clone, Copy)]
struct Plain {
    mass: f32,
}

#[derive(Clone, Copy, Data)]
struct Pair(f32, f32); //~ macro 8

#[derive(Clone, Copy, Data)]
enum Choice { //~ macro 6
    One,
}

#[derive(Clone, Copy, Data)]
struct Wide<T> { //~ macro 12
    x: T,
}

#[derive(Clone, Copy, Data)]
struct Named {
    name: &'static str, //~ macro 11
}

#[derive(Clone, Copy, Data)]
struct Numbered {
    number: u128, //~ macro 13
}

#[kernel]
fn no_such_field(bodies: &mut [Body]) {
    bodies[0].weight = 1.0; //~ E0609 15
}

#[kernel]
fn field_of_a_wrong_type(bodies: &mut [Body], n: u32) {
    bodies[0].mass = n; //~ E0308 22
}

#[kernel]
fn field_left_out(bodies: &mut [Body]) {
    bodies[0] = Body { mass: 1.0 }; //~ E0063*2 17
}

#[kernel]
fn not_for_kernels(bodies: &[Plain]) {} //~ E0277 20 //~ E0277 30

#[kernel]
fn written_through_a_shared_slice(bodies: &[Body]) {
    bodies[0].place[1] = 2.0; //~ E0594 5
}

#[kernel]
fn structs_have_no_operators(bodies: &mut [Body]) {
    bodies[0] = bodies[0] + bodies[1]; //~ E0369 27
}

#[kernel]
fn read_of_what_is_written(image: View2<f32, WriteOnly>, out: &mut [f32]) {
    out[0] = image[(0, 0)]; //~ E0277 14
}

#[kernel]
fn write_of_what_is_read(mut image: View2<f32, ReadOnly>) {
    image[(0, 0)] = 1.0; //~ E0277 5 //~ E0594 5
}

#[kernel]
fn too_few_dimensions(image: View2<f32, ReadOnly>, out: &mut [f32]) {
    out[0] = image[3]; //~ E0277 20
}

#[kernel]
fn immutable_view(image: View1<f32>) {
    image[0] = 1.0; //~ E0596 5
}
