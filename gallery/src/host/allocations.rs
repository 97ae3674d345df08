//! Device, host and shared allocations, and the host's reads of them.

use headstart::Result;
use headstart::device::{Allocation, Device, TypedBuffer};

use super::{Host, MODULUS, Ran, Technique, check, over, states, stepped, steps_on, variant};

const ELEMENTS: u64 = 1 << 20;
const ROUNDS: u32 = 4;
/// The host reads one element in this many.
const FEW: u64 = 1 << 14;

/// The kernel on memory of the device, and all of it copied to the host.
fn copied_whole(host: &Host) -> Result<Ran> {
    let device = host.open()?;
    let (queue, kernel) = (device.queue()?, steps_on::compile(&device)?);
    let mut values = TypedBuffer::from_slice(&device, &states(0, ELEMENTS))?;
    let result = host.measure(|| {
        kernel.launch(
            &*queue,
            over(ELEMENTS),
            steps_on::arguments(&mut values, ROUNDS, MODULUS),
        );
        values.read(&*queue)
    })?;
    check(&result, |at| stepped(1 + at as u32, ROUNDS))
}

/// The same, and the few elements that are looked at copied one by one.
fn copied_few(host: &Host) -> Result<Ran> {
    let device = host.open()?;
    let (queue, kernel) = (device.queue()?, steps_on::compile(&device)?);
    let mut values = TypedBuffer::from_slice(&device, &states(0, ELEMENTS))?;
    let found = host.measure(|| {
        kernel.launch(
            &*queue,
            over(ELEMENTS),
            steps_on::arguments(&mut values, ROUNDS, MODULUS),
        );
        let mut found = Vec::new();
        for at in (0..ELEMENTS).step_by(FEW as usize) {
            found.extend(values.read_part(&*queue, at, 1, &[])?);
        }
        Ok(found)
    })?;
    check(&found, |at| stepped(1 + (at as u64 * FEW) as u32, ROUNDS))
}

/// The kernel on memory that both sides reach; the host looks at a few elements, or at all.
fn seen(host: &Host, allocation: Allocation, step: u64) -> Result<Ran> {
    let device = host.open()?;
    let (queue, kernel) = (device.queue()?, steps_on::compile(&device)?);
    let mut values = TypedBuffer::from_slice_as(&device, allocation, &states(0, ELEMENTS))?;
    // Once without being measured: shared pages are on the device then, as the other ways' data are.
    kernel
        .launch(
            &*queue,
            over(ELEMENTS),
            steps_on::arguments(&mut values, ROUNDS, MODULUS),
        )
        .wait()?;
    let found = host.measure(|| {
        kernel
            .launch(
                &*queue,
                over(ELEMENTS),
                steps_on::arguments(&mut values, ROUNDS, MODULUS),
            )
            .wait()?;
        match step {
            1 => values.to_vec(),
            _ => (0..ELEMENTS)
                .step_by(step as usize)
                .map(|at| values.get(at))
                .collect(),
        }
    })?;
    check(&found, |at| stepped(1 + (at as u64 * step) as u32, 2 * ROUNDS))
}

/// The page.
pub static TECHNIQUE: Technique = Technique {
    page: "host-allocations",
    title: "Shared allocations and their pages against device allocations",
    text: [
        "A kernel works on four megabytes, and the host reads the result: all of it, or one element in 16,384. \
         Device memory has to be copied, whole or in the parts that the program names. Pinned host memory needs no \
         copy, but the kernel accesses it over the link. A shared allocation migrates automatically, a page at a \
         time: only the pages that the host touches are transferred, each whole page for one element of it.",
        "So shared allocations suit data of which the host reads little, at places that are unknown beforehand. If \
         it reads everything, each page is a separate fault, and a copy is faster; if the part is known, copying \
         that part is faster. Only device allocations have predictable times.",
    ],
    ways: &[
        variant("device, copied whole", copied_whole),
        variant("device, 64 elements copied", copied_few),
        variant("host, seen whole", |host| seen(host, Allocation::Host, 1)),
        variant("host, 64 elements seen", |host| seen(host, Allocation::Host, FEW)),
        variant("shared, seen whole", |host| seen(host, Allocation::Shared, 1)),
        variant("shared, 64 elements seen", |host| {
            seen(host, Allocation::Shared, FEW)
        }),
    ],
};
