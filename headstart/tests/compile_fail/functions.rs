//! Calls of plain functions: the message names the missing attribute of a function beside the kernel.

use headstart::prelude::*;

fn ordinary(x: f32) -> f32 {
    x
}

/// Documented, and still no device function.
#[inline]
#[must_use]
pub fn documented(x: f32) -> f32 {
    x
}

#[kernel]
fn calls(out: &mut [f32]) {
    out[0] = ordinary(1.0); //~ macro 14
    out[1] = device(ordinary(2.0)); //~ macro 21
    out[2] = documented(3.0) + device(4.0); //~ macro 14
}

#[device_fn]
fn device(x: f32) -> f32 {
    ordinary(x) //~ macro 5
}

/// Here the name is a device function's: the plain one is in another module.
mod inside {
    use headstart::prelude::*;

    mod devices {
        use headstart::prelude::*;

        #[device_fn]
        pub fn ordinary(x: f32) -> f32 {
            x
        }
    }

    use devices::*;

    #[kernel]
    fn calls_another(out: &mut [f32]) {
        out[0] = ordinary(1.0);
    }
}

/// And here the kernel has its own.
#[kernel]
fn calls_its_own(out: &mut [f32]) {
    #[device_fn]
    fn ordinary(x: f32) -> f32 {
        x
    }
    out[0] = ordinary(1.0);
}
