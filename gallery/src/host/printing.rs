//! Printing from kernels.

use headstart::Result;
use headstart::device::{Device, TypedBuffer};
use headstart::prelude::*;

use super::{GROUP, Host, MODULUS, Ran, Technique, check, over, states, stepped, steps_on, variant};

const ELEMENTS: u64 = 1 << 14;
const ROUNDS: u32 = 4;

/// The work, and a line of each `every`-th work-item.
#[kernel]
pub fn steps_told(states: &mut [u32], rounds: u32, modulus: u64, every: u32) {
    let mut state = states[global_id()] as u64;
    for _ in 0..rounds {
        state = state * 48271 % modulus;
    }
    if global_id() as u32 % every == every - 1 {
        println!("{} {}", global_id(), state);
    }
    states[global_id()] = state as u32;
}

/// Without a word.
fn silent(host: &Host) -> Result<Ran> {
    let device = host.open()?;
    let (queue, kernel) = (device.queue()?, steps_on::compile(&device)?);
    let mut values = TypedBuffer::from_slice(&device, &states(0, ELEMENTS))?;
    host.measure(|| {
        kernel
            .launch(
                &*queue,
                over(ELEMENTS),
                steps_on::arguments(&mut values, ROUNDS, MODULUS),
            )
            .wait()
    })?;
    check(&values.read(&*queue)?, |at| stepped(1 + at as u32, ROUNDS))
}

/// One in this many work-items prints its result.
fn told(host: &Host, every: u32) -> Result<Ran> {
    let device = host.open()?;
    let (queue, kernel) = (device.queue()?, steps_told::compile(&device)?);
    let mut values = TypedBuffer::from_slice(&device, &states(0, ELEMENTS))?;
    host.measure(|| {
        kernel
            .launch(
                &*queue,
                over(ELEMENTS),
                steps_told::arguments(&mut values, ROUNDS, MODULUS, every),
            )
            .wait()
    })?;
    check(&values.read(&*queue)?, |at| stepped(1 + at as u32, ROUNDS))
}

/// The host reads the data, and formats the lines itself.
fn read(host: &Host) -> Result<Ran> {
    let device = host.open()?;
    let (queue, kernel) = (device.queue()?, steps_on::compile(&device)?);
    let mut values = TypedBuffer::from_slice(&device, &states(0, ELEMENTS))?;
    let (found, text) = host.measure(|| {
        kernel.launch(
            &*queue,
            over(ELEMENTS),
            steps_on::arguments(&mut values, ROUNDS, MODULUS),
        );
        let found = values.read(&*queue)?;
        let lines = found
            .iter()
            .enumerate()
            .skip(GROUP as usize - 1)
            .step_by(GROUP as usize);
        let text: String = lines.map(|(at, state)| format!("{at} {state}\n")).collect();
        Ok((found, text))
    })?;
    assert_eq!(text.lines().count() as u64, ELEMENTS / u64::from(GROUP));
    check(&found, |at| stepped(1 + at as u32, ROUNDS))
}

/// The page.
pub static TECHNIQUE: Technique = Technique {
    page: "host-printing",
    title: "Printing from kernels",
    text: [
        "A kernel that prints writes its arguments to a buffer on the device. The lines are formatted when the \
         kernel has ended, in an arbitrary order on a GPU (the simulator keeps the order of the work-items). Text \
         beyond the buffer's size is lost. One line per work-group is 64 lines here.",
        "A print that is never executed is not free either: the call is in the kernel, with its stack and saved \
         registers. That is a small price for finding a bug. In other cases the kernel should store its results, and \
         the host print them.",
    ],
    ways: &[
        variant("silent", silent),
        variant("a line that never comes", |host| told(host, u32::MAX)),
        variant("a line for each work-group", |host| told(host, GROUP)),
        variant("stored, and printed by the host", read),
    ],
};
