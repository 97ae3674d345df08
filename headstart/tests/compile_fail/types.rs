//! Types that do not fit. The recorded copy repeats a mismatch at the same operation, in its own types.

use headstart::device::{Device, TypedBuffer};
use headstart::prelude::*;

#[kernel]
fn mismatched(values: &[f32], out: &mut [f32], n: u32) {
    let mut sum = 0.0;
    for i in 0..n {
        sum += values[i]; //~ E0277 23
        sum += values[i as usize] * n; //~ E0277 35
    }
    out[0] = sum;
}

#[kernel]
fn shifted(values: &[f32], out: &mut [f32]) {
    out[0] = values[0] << 2; //~ E0369 24
}

#[kernel]
fn generic<T: Number>(values: &[T], out: &mut [T]) {
    out[0] = values[0].sqrt(); //~ E0599 24
}

#[kernel]
fn several<T: Float, const N: usize>(values: &[T], out: &mut [T], n: u32) {
    let mut sum = values[0];
    for i in 0..N {
        sum += n; //~ E0308 16
        sum = values[i] << 2; //~ E0369 25
        let count: usize = values[i].sqrt(); //~ E0308 28
    }
    out[n] = sum; //~ E0277 9
}

#[device_fn]
fn scaled<'a, T>(values: &'a [T], factor: T) -> T
where
    T: Number,
{
    values[0] * 2u32 //~ E0308 17
}

#[device_fn]
fn raised<T: Number>(value: T) -> T {
    value.powi(3) //~ macro 11
}

/// A bound of the user's, that none of our types has.
trait Mine {}

#[device_fn]
fn bounded<T: Number + Mine>(value: T) -> T {
    value
}

fn arguments(device: &dyn Device) -> headstart::Result<()> {
    let integers = TypedBuffer::<u32>::uninitialized(device, 5)?;
    let mut floats = TypedBuffer::<f32>::uninitialized(device, 5)?;
    let _ = mismatched::arguments(&integers, &mut floats, 1); //~ E0308 35
    let _ = mismatched::arguments(&floats.clone(), &mut floats); //~ E0061 13
    Ok(())
}
