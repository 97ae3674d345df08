//! Undeclared names, and functions that are not for devices.

use headstart::prelude::*;

/// The macro knows of functions beside the kernel, not of those in other modules.
mod elsewhere {
    pub fn ordinary(x: f32) -> f32 {
        x
    }
}

#[kernel]
fn calls(out: &mut [f32]) {
    out[0] = missing(1.0); //~ E0425 14 //~ E0433 14
    out[1] = elsewhere::ordinary(2.0); //~ E0433 25
    out[2] = unknown; //~ E0425 14
}

#[kernel]
fn unknown_level(values: &[f32]) {
    prefetch(&values[0], L9); //~ E0425 26
}

#[kernel]
fn unknown_type(out: &mut [f32], x: Real) { //~ E0425 37
    out[0] = x;
}

#[kernel]
fn unknown_label(out: &mut [f32]) {
    loop {
        break 'outside; //~ E0426 15
    }
}
