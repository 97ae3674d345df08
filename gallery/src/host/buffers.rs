//! Buffers that are made in a loop, and outside.

use headstart::Result;
use headstart::device::{Device, TypedBuffer};

use super::{Host, MODULUS, Ran, Technique, check, over, states, stepped, steps_on, variant};

/// Steps of the computation, each a launch.
const STEPS: u32 = 10;
const ELEMENTS: u64 = 1 << 20;
/// Rounds of a step.
const ROUNDS: u32 = 1;

/// Every step makes a buffer of the host's data, and takes them back.
fn inside(host: &Host) -> Result<Ran> {
    let device = host.open()?;
    let (queue, kernel) = (device.queue()?, steps_on::compile(&device)?);
    let mut data = states(0, ELEMENTS);
    host.measure(|| {
        for _ in 0..STEPS {
            let mut buffer = TypedBuffer::uninitialized(&device, ELEMENTS)?;
            buffer.write(&*queue, 0, &data)?;
            kernel.launch(
                &*queue,
                over(ELEMENTS),
                steps_on::arguments(&mut buffer, ROUNDS, MODULUS),
            );
            data = buffer.read(&*queue)?;
        }
        Ok(())
    })?;
    check(&data, |at| stepped(states(0, ELEMENTS)[at], STEPS * ROUNDS))
}

/// One buffer for all steps, but every step still writes and reads it.
fn copied(host: &Host) -> Result<Ran> {
    let device = host.open()?;
    let (queue, kernel) = (device.queue()?, steps_on::compile(&device)?);
    let mut data = states(0, ELEMENTS);
    host.measure(|| {
        let mut buffer = TypedBuffer::uninitialized(&device, ELEMENTS)?;
        for _ in 0..STEPS {
            buffer.write(&*queue, 0, &data)?;
            kernel.launch(
                &*queue,
                over(ELEMENTS),
                steps_on::arguments(&mut buffer, ROUNDS, MODULUS),
            );
            data = buffer.read(&*queue)?;
        }
        Ok(())
    })?;
    check(&data, |at| stepped(states(0, ELEMENTS)[at], STEPS * ROUNDS))
}

/// One buffer that stays on the device until the last step is done.
fn outside(host: &Host) -> Result<Ran> {
    let device = host.open()?;
    let (queue, kernel) = (device.queue()?, steps_on::compile(&device)?);
    let data = states(0, ELEMENTS);
    let result = host.measure(|| {
        let mut buffer = TypedBuffer::uninitialized(&device, ELEMENTS)?;
        buffer.write(&*queue, 0, &data)?;
        for _ in 0..STEPS {
            kernel.launch(
                &*queue,
                over(ELEMENTS),
                steps_on::arguments(&mut buffer, ROUNDS, MODULUS),
            );
        }
        buffer.read(&*queue)
    })?;
    check(&result, |at| stepped(data[at], STEPS * ROUNDS))
}

/// The page.
pub static TECHNIQUE: Technique = Technique {
    page: "host-buffers",
    title: "Buffers made in a loop, and outside",
    text: [
        "Ten launches on the same four megabytes. A buffer created inside the loop is allocated ten times, filled \
         ten times and read ten times, although the host does not use its contents between two launches. A buffer \
         created outside is filled once and read once, and the launches follow each other without the host.",
        "The link is some eighty times slower than the device's memory, and each allocation is a driver call that \
         waits for the device. If the host needs intermediate results, the buffer still belongs outside the loop, \
         and reading only the needed part is cheaper.",
    ],
    ways: &[
        variant("in the loop", inside),
        variant("outside, copied every step", copied),
        variant("outside", outside),
    ],
};
