//! One context against many.

use headstart::Result;
use headstart::device::{Device, TypedBuffer};

use super::{Host, MODULUS, Ran, Technique, check, over, states, stepped, steps_on, variant};

const JOBS: u32 = 6;
const ELEMENTS: u64 = 1 << 18;
const ROUNDS: u32 = 4;

/// One context, one queue: the kernel and the numbers that all jobs read are there when the second one starts.
fn one_queue(host: &Host) -> Result<Ran> {
    let numbers = states(0, ELEMENTS);
    let results = host.measure(|| {
        let device = host.open_apart()?;
        let (queue, kernel) = (device.queue()?, steps_on::compile(&device)?);
        let there = TypedBuffer::uninitialized(&device, ELEMENTS)?;
        there.write(&*queue, 0, &numbers)?;
        let mut own = TypedBuffer::uninitialized(&device, ELEMENTS)?;
        let mut results = Vec::new();
        for _ in 0..JOBS {
            there.copy_to(&mut own, &*queue, &[]);
            kernel.launch(
                &*queue,
                over(ELEMENTS),
                steps_on::arguments(&mut own, ROUNDS, MODULUS),
            );
            results.push(own.read(&*queue)?);
        }
        Ok(results)
    })?;
    right(&results)
}

/// One context, a queue for each job: kernel and numbers are still those of the context.
fn many_queues(host: &Host) -> Result<Ran> {
    let numbers = states(0, ELEMENTS);
    let results = host.measure(|| {
        let device = host.open_apart()?;
        let kernel = steps_on::compile(&device)?;
        let there = TypedBuffer::uninitialized(&device, ELEMENTS)?;
        there.write(&*device.queue()?, 0, &numbers)?;
        let mut results = Vec::new();
        for _ in 0..JOBS {
            let queue = device.queue()?;
            let mut own = TypedBuffer::uninitialized(&device, ELEMENTS)?;
            there.copy_to(&mut own, &*queue, &[]);
            kernel.launch(
                &*queue,
                over(ELEMENTS),
                steps_on::arguments(&mut own, ROUNDS, MODULUS),
            );
            results.push(own.read(&*queue)?);
        }
        Ok(results)
    })?;
    right(&results)
}

/// A context for each job: each compiles the kernel and brings the numbers along.
fn many_contexts(host: &Host) -> Result<Ran> {
    let numbers = states(0, ELEMENTS);
    let results = host.measure(|| {
        let mut results = Vec::new();
        for _ in 0..JOBS {
            let device = host.open_apart()?;
            let (queue, kernel) = (device.queue()?, steps_on::compile(&device)?);
            let mut own = TypedBuffer::uninitialized(&device, ELEMENTS)?;
            own.write(&*queue, 0, &numbers)?;
            kernel.launch(
                &*queue,
                over(ELEMENTS),
                steps_on::arguments(&mut own, ROUNDS, MODULUS),
            );
            results.push(own.read(&*queue)?);
        }
        Ok(results)
    })?;
    right(&results)
}

fn right(results: &[Vec<u32>]) -> Result<Ran> {
    for result in results {
        check(result, |at| stepped(1 + at as u32, ROUNDS))?;
    }
    Ok(Ran::Measured)
}

/// The page.
pub static TECHNIQUE: Technique = Technique {
    page: "host-contexts",
    title: "One context against many",
    text: [
        "A context is the driver's state for a program on a device: memory, compiled kernels, queues. Six jobs start \
         from the same numbers; the time is from opening the device to the last result. In one context the kernel is \
         compiled once and the numbers are transferred once, whether the jobs share a queue or have one each. With a \
         context for each job all of it is done six times, and the context itself, which is expensive to create, is \
         created six times.",
        "A `Device` of this library is a context. Do not open one for each part of a program; create `Queue`s \
         instead. (A GPU that is opened in the ordinary way has one context for the whole program, its primary one; \
         here each variant opens contexts of its own.)",
    ],
    ways: &[
        variant("one context, one queue", one_queue),
        variant("one context, six queues", many_queues),
        variant("six contexts", many_contexts),
    ],
};
