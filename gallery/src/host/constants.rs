//! Specialisation constants.

use headstart::Result;
use headstart::device::{Device, TypedBuffer};
use headstart::prefetch::{self, PlanTarget};
use headstart::prelude::*;
use headstart::runtime::launch::Compiled;

use super::{Host, Ran, Technique, check, over, variant};

const ELEMENTS: u64 = 1 << 20;
/// Terms of the polynomial.
const TERMS: u32 = 48;
/// Launches.
const LAUNCHES: u32 = 10;

/// A polynomial whose number of terms is known when it is launched: a loop.
#[kernel]
pub fn polynomial(values: &[u32], result: &mut [u32], terms: u32) {
    let x = values[global_id()];
    let mut sum = 0u32;
    for term in 0..terms {
        sum = sum.wrapping_mul(x).wrapping_add(term);
    }
    result[global_id()] = sum;
}

/// The same; the number is known when the kernel is built, which may be while the program runs. The loop is unrolled.
#[kernel]
pub fn polynomial_of(values: &[u32], result: &mut [u32], #[constant] terms: u32) {
    let x = values[global_id()];
    let mut sum = 0u32;
    #[unroll]
    for term in 0..terms {
        sum = sum.wrapping_mul(x).wrapping_add(term);
    }
    result[global_id()] = sum;
}

fn numbers() -> Vec<u32> {
    (0..ELEMENTS as u32)
        .map(|i| i.wrapping_mul(2_654_435_761))
        .collect()
}

fn right(result: &[u32]) -> Result<Ran> {
    let x = |at: usize| (at as u32).wrapping_mul(2_654_435_761);
    check(result, |at| {
        (0..TERMS).fold(0u32, |sum, term| sum.wrapping_mul(x(at)).wrapping_add(term))
    })
}

/// The number is an argument.
fn argument(host: &Host, compiling: bool) -> Result<Ran> {
    let device = host.open()?;
    let queue = device.queue()?;
    let values = TypedBuffer::from_slice(&device, &numbers())?;
    let mut result = TypedBuffer::uninitialized(&device, ELEMENTS)?;
    let before = if compiling {
        None
    } else {
        Some(polynomial::compile(&device)?)
    };
    host.measure(|| {
        let kernel = match before {
            Some(kernel) => kernel,
            None => polynomial::compile(&device)?,
        };
        for _ in 0..LAUNCHES {
            kernel.launch(
                &*queue,
                over(ELEMENTS),
                polynomial::arguments(&values, &mut result, TERMS),
            );
        }
        Ok(kernel)
    })?;
    right(&result.read(&*queue)?)
}

/// The kernel of this number of terms, its loop unrolled as it asks.
fn unrolled(device: &dyn Device) -> Result<Compiled<fn(&[u32], &mut [u32])>> {
    let kernel = prefetch::carry_out_wishes(&polynomial_of::kernel(TERMS)?, &PlanTarget::default())?;
    Compiled::new(device, kernel)
}

/// The number is a constant of the kernel.
fn constant(host: &Host, compiling: bool) -> Result<Ran> {
    let device = host.open()?;
    let queue = device.queue()?;
    let values = TypedBuffer::from_slice(&device, &numbers())?;
    let mut result = TypedBuffer::uninitialized(&device, ELEMENTS)?;
    let before = if compiling { None } else { Some(unrolled(&device)?) };
    host.measure(|| {
        let kernel = match before {
            Some(kernel) => kernel,
            None => unrolled(&device)?,
        };
        for _ in 0..LAUNCHES {
            kernel.launch(
                &*queue,
                over(ELEMENTS),
                polynomial_of::arguments(&values, &mut result),
            );
        }
        Ok(kernel)
    })?;
    right(&result.read(&*queue)?)
}

/// The page.
pub static TECHNIQUE: Technique = Technique {
    page: "host-constants",
    title: "Specialisation constants",
    text: [
        "A polynomial of 48 terms is evaluated for each element, and the user chooses the number of terms. As an \
         argument, the number is the bound of a loop. As a constant (`#[constant]`, SYCL's specialisation constant), \
         the kernel is built and compiled once the number is known, with the loop unrolled: nothing is counted or \
         compared, and every coefficient is a constant in the code.",
        "That costs a compilation for each number, in the middle of the program. Ten launches of a small kernel do \
         not repay it; the kernels' own times show how many launches would. Numbers that change often should stay \
         arguments, and those that a program keeps should become constants.",
    ],
    ways: &[
        variant("argument", |host| argument(host, false)),
        variant("constant", |host| constant(host, false)),
        variant("argument, and compiled", |host| argument(host, true)),
        variant("constant, and compiled", |host| constant(host, true)),
    ],
};
