//! Access modes that save transfers.

use headstart::Result;
use headstart::device::{Device, Queue, TypedBuffer};
use headstart::ir::Kernel;
use headstart::prelude::*;

use super::{Host, Ran, Technique, check, over, states, variant};

const ELEMENTS: u64 = 1 << 20;

/// Reads two arrays and writes a third: the types here express SYCL's access modes.
#[kernel]
pub fn combine(one: &[u32], other: &[u32], sums: &mut [u32]) {
    let i = global_id();
    sums[i] = one[i].wrapping_mul(3).wrapping_add(other[i]);
}

/// Buffers that a kernel cannot write: they come back unchanged.
fn only_read(kernel: &Kernel) -> Vec<bool> {
    let pointers = kernel.params.iter().filter_map(|param| param.facts);
    pointers.map(|facts| facts.read_only).collect()
}

/// Moves everything there and back, as one must who knows nothing of a kernel.
fn everything(host: &Host) -> Result<Ran> {
    moved(host, &[true; 3], &[true; 3], 1)
}

/// Copies in the buffers that the kernel reads, and out those that it may write. The author must guarantee that the kernel
/// writes all of a buffer before it is read, as with SYCL's `no_init`.
fn as_typed(host: &Host) -> Result<Ran> {
    let back: Vec<bool> = only_read(&combine::kernel()?).iter().map(|read| !read).collect();
    moved(host, &[true, true, false], &back, 1)
}

/// Two launches, the second of which reads the first one's output, copied there and back in between.
fn between(host: &Host) -> Result<Ran> {
    moved(host, &[true, true, false], &[false, false, true], 2)
}

/// Runs the kernel this many times, each time on the last one's output.
fn moved(host: &Host, in_: &[bool], back: &[bool], times: u32) -> Result<Ran> {
    let device = host.open()?;
    let (queue, kernel) = (device.queue()?, combine::compile(&device)?);
    let queue: &dyn Queue = &*queue;
    let mut data = [
        states(0, ELEMENTS),
        states(7, ELEMENTS),
        vec![0; ELEMENTS as usize],
    ];
    let mut buffers = Vec::new();
    for _ in &data {
        buffers.push(TypedBuffer::<u32>::uninitialized(&device, ELEMENTS)?);
    }
    host.measure(|| {
        for _ in 0..times {
            for ((buffer, data), _) in buffers.iter().zip(&data).zip(in_).filter(|(_, moved)| **moved) {
                buffer.write(queue, 0, data)?;
            }
            let [one, other, sums] = &mut buffers[..] else {
                unreachable!("three arrays")
            };
            kernel.launch(queue, over(ELEMENTS), combine::arguments(one, other, sums));
            for ((buffer, data), _) in buffers
                .iter()
                .zip(&mut data)
                .zip(back)
                .filter(|(_, moved)| **moved)
            {
                *data = buffer.read(queue)?;
            }
            // The output is the next launch's input.
            data.swap(0, 2);
        }
        data.swap(0, 2);
        Ok(())
    })?;
    check(&data[2], |at| result(at, times))
}

/// The same two launches; the first one's output stays on the device.
fn staying(host: &Host) -> Result<Ran> {
    let device = host.open()?;
    let (queue, kernel) = (device.queue()?, combine::compile(&device)?);
    let data = [states(0, ELEMENTS), states(7, ELEMENTS)];
    let one = TypedBuffer::<u32>::uninitialized(&device, ELEMENTS)?;
    let other = TypedBuffer::<u32>::uninitialized(&device, ELEMENTS)?;
    let mut first = TypedBuffer::uninitialized(&device, ELEMENTS)?;
    let mut second = TypedBuffer::uninitialized(&device, ELEMENTS)?;
    let sums = host.measure(|| {
        one.write(&*queue, 0, &data[0])?;
        other.write(&*queue, 0, &data[1])?;
        kernel.launch(
            &*queue,
            over(ELEMENTS),
            combine::arguments(&one, &other, &mut first),
        );
        kernel.launch(
            &*queue,
            over(ELEMENTS),
            combine::arguments(&first, &other, &mut second),
        );
        second.read(&*queue)
    })?;
    check(&sums, |at| result(at, 2))
}

/// An element of the result after this many launches.
fn result(at: usize, times: u32) -> u32 {
    let (one, other) = (1 + at as u32, 8 + at as u32);
    (0..times).fold(one, |one, _| one.wrapping_mul(3).wrapping_add(other))
}

/// The page.
pub static TECHNIQUE: Technique = Technique {
    page: "host-access",
    title: "Access modes that save transfers",
    text: [
        "A kernel reads two arrays and writes a third. Without that knowledge all three have to be copied there and \
         back: six transfers. In SYCL the accessors' access modes state it. Here the kernel's types do, because a \
         `&[T]` cannot come back changed, and programs can query it from `kernel.params`. A `&mut [T]` that is \
         written completely need not be copied to the device either, which leaves three transfers.",
        "The largest saving is a transfer that is not needed at all: data that one kernel writes and the next one \
         reads stay on the device. That costs memory there, because the arrays of both kernels exist at the same \
         time.",
    ],
    ways: &[
        variant("everything both ways", everything),
        variant("as the types say", as_typed),
        variant("two launches, moved between", between),
        variant("two launches, staying", staying),
    ],
};
