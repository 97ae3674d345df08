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

#[device_fn]
fn refused(x: f32) -> f32 {
    match x { _ => 1.0 } //~ macro 5
}

// What is refused is there for those who use it: one mistake is one message.
#[kernel]
fn uses_what_is_refused(out: &mut [f32]) {
    out[0] = refused(1.0);
    out[1] = out[0].to_radians(); //~ macro 21
    out[2] = out[0].to_degrees(); //~ macro 21
}

pub fn builds() -> [bool; 2] {
    [outside::kernel().is_ok(), uses_what_is_refused::kernel().is_ok()]
}
