//! The data of kernels, in registers and in memory: scalars, vectors, structs of them.
//!
//! ```
//! use headstart::device::sim::Simulator;
//! use headstart::device::{Device, TypedBuffer};
//! use headstart::prelude::*;
//!
//! /// A body in a plane.
//! #[derive(Clone, Copy, Debug, PartialEq, Data)]
//! struct Body {
//!     position: [f32; 2],
//!     velocity: [f32; 2],
//!     mass: f32,
//! }
//!
//! #[device_fn]
//! fn moved(body: Body, seconds: f32) -> Body {
//!     let [x, y] = body.position;
//!     let [u, v] = body.velocity;
//!     Body { position: [x + u * seconds, y + v * seconds], ..body }
//! }
//!
//! #[kernel]
//! fn step(bodies: &mut [Body], seconds: f32) {
//!     let mut body = moved(bodies[global_id()], seconds);
//!     body.velocity[1] -= 9.5 * seconds;
//!     bodies[global_id()] = body;
//!     bodies[global_id()].mass += 1.0;
//! }
//!
//! let device = Simulator::untimed();
//! let queue = device.queue()?;
//! let body = Body { position: [0.0, 8.0], velocity: [1.0, 0.0], mass: 2.0 };
//! let mut bodies = TypedBuffer::from_slice(&device, &[body; 4])?;
//! let arguments = step::arguments(&mut bodies, 2.0);
//! step::compile(&device)?.launch(&*queue, Geometry::new(1, 4), arguments).wait()?;
//! let expected = Body { position: [2.0, 8.0], velocity: [1.0, -19.0], mass: 3.0 };
//! assert_eq!(bodies.read(&*queue)?, [expected; 4]);
//! # Ok::<(), headstart::Error>(())
//! ```
//! A vector is an array `[T; N]` of 1 to 16 parts; adjacent parts of one type are moved by one access, as far as alignment
//! allows. The fields of a struct have the order of their declaration, each at a multiple of its own alignment, as in C.
//! Vectors and structs nest. As a kernel's parameter, a struct becomes a parameter for each of its scalars.

use super::record::Recorded;
use super::record::layout::{Layout, Leaf, Placed};
use super::scalar::Scalar;
use crate::ir::{Item, Type};

/// The recorded form of a type: `Recorded<f32>` of `f32`.
#[doc(hidden)]
pub type Of<T> = <T as Data>::Recorded;

/// A type whose values a kernel can compute with: the scalars, vectors `[T; N]`, and structs that derive it.
#[diagnostic::on_unimplemented(
    message = "a kernel cannot compute with values of the type `{Self}`",
    label = "not a type of the kernel language",
    note = "accepted: i8 to i64, u8 to u64, isize, usize, f16, bf16, f32, f64, bool, vectors `[T; N]` of them, and \
            structs with `#[derive(Clone, Copy, Data)]`"
)]
pub trait Data: Item {
    /// Its form in a recorded kernel.
    type Recorded: Placed;
}

impl<T: Scalar> Data for T {
    type Recorded = Recorded<T>;
}

impl<T: Data, const N: usize> Data for [T; N] {
    type Recorded = [Of<T>; N];
}

/// The scalars in a value, with their bits.
#[doc(hidden)]
pub fn scalars<T: Data>(value: &T) -> Vec<(Type, u64)> {
    let mut bytes = vec![0; T::Recorded::SIZE as usize];
    value.write(&mut bytes);
    let mut leaves: Vec<Leaf> = Vec::new();
    T::Recorded::leaves(0, &mut leaves);
    leaves
        .into_iter()
        .map(|Leaf { ty, offset }| {
            let bits = bytes[offset as usize..].iter().take(ty.bytes() as usize);
            (ty, bits.rev().fold(0, |bits, &byte| bits << 8 | u64::from(byte)))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_taken_apart_in_order() {
        assert_eq!(
            scalars(&[[1u16, 2], [3, 0xfffe]]),
            [1, 2, 3, 0xfffe].map(|bits| (Type::I16, bits))
        );
        assert_eq!(scalars(&-1i64), [(Type::I64, u64::MAX)]);
    }
}
