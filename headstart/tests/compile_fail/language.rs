//! Rust that is not in the language. Its messages are tested beside the macro; here, where they appear.

use headstart::prelude::*;

#[kernel]
fn outside(out: &mut [f32], n: u32) {
    out[0] = match n { //~ macro 14
        0 => 1.0,
        _ => 2.0,
    };
    out[1] = out[2].to_radians(); //~ macro 21
    for x in out.iter() {} //~ macro 14
}

#[kernel(work_items = 4)] //~ macro 10
fn unknown_argument(out: &mut [f32]) {}

#[device_fn]
fn takes_a_closure(f: impl Fn(f32) -> f32) -> f32 { //~ macro 23
    f(1.0)
}
