//! Statements and expressions that kernels do not have.

use headstart::prelude::*;

#[kernel]
fn prints_a_list(out: &mut [f32]) {
    println!("{:e}", out[0]); //~ macro 14
    eprintln!("{}", out[0]); //~ macro 5
}

#[kernel]
fn borrows_an_element(out: &mut [f32]) {
    let first = &mut out[0]; //~ macro 17
    *first = 1.0; //~ macro 6
}

#[kernel]
fn borrows_a_slice_whole(values: &[f32], out: &mut [f32]) {
    let all = &values; //~ macro 15
    out[0] = all[0];
}

#[kernel]
fn declares_a_struct(out: &mut [f32]) {
    struct Point { //~ macro 5
        x: f32,
    }
    let p = Point { x: 1.0 };
    out[0] = p.x;
}

#[kernel]
fn matches_an_option(out: &mut [f32]) {
    if let Some(x) = Some(1.0) { //~ macro 8
        out[0] = x;
    }
}

#[kernel]
fn sorts(out: &mut [f32]) {
    out.sort(); //~ macro 9
}

#[kernel]
fn writes_what_is_read(values: &[f32]) {
    values[0] = 1.0; //~ E0594 5
}

#[kernel] //~ E0277 1
fn counts_in_floats(out: &mut [f32]) {
    for i in 0.0..1.0 { //~ E0277*3 14
        out[0] = i;
    }
}

#[kernel]
fn shared_without_a_name(out: &mut [f32]) {
    out[0] = shared::<f32, 4>()[0]; //~ macro 14
}

#[kernel]
fn leaves_no_loop(out: &mut [f32]) {
    out[0] = 1.0;
    break; //~ E0268 5
}

#[kernel]
fn adds_a_truth_value(out: &mut [u32], b: bool) {
    out[0] = 1 + b; //~ E0277 16
}

#[kernel]
fn changes_a_constant(out: &mut [u32], n: u32) {
    n += 1; //~ E0384 5
    out[0] = n;
}

#[kernel]
fn prefetches_a_value(x: f32) {
    prefetch(&x, L1); //~ macro 14
}
