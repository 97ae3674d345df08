//! Several devices, and parts of one.

use headstart::Result;
use headstart::device::{Device, TypedBuffer};
use headstart::prelude::*;
use headstart::runtime::split::Split;

use super::{Host, MODULUS, Ran, Technique, check, states, stepped, variant};

/// Elements of a row, and rows, which are what is divided.
const WIDTH: u32 = 1024;
const ROWS: u32 = 512;
const ROUNDS: u32 = 40;

/// A generator of random numbers for each element of a range of rows, `rounds` steps on.
#[kernel]
pub fn rows_on(states: &[u32], result: &mut [u32], rounds: u32, modulus: u64) {
    let at = global_id_y() * global_size() + global_id();
    let mut state = states[at] as u64;
    for _ in 0..rounds {
        state = state * 48271 % modulus;
    }
    result[at] = state as u32;
}

fn all() -> u64 {
    u64::from(WIDTH) * u64::from(ROWS)
}

/// The job in parts in proportion to the speeds, each device with memory of its own: each is sent its rows alone, and
/// sends back those.
fn apart(host: &Host, devices: &[&dyn Device], speeds: &[f64]) -> Result<Ran> {
    let data = states(0, all());
    let mut split = Split::new();
    let mut memories = Vec::new();
    for (device, speed) in devices.iter().zip(speeds) {
        split.add(rows_on::over_range(*device)?, device.queue()?, *speed);
        let states = TypedBuffer::from_slice(*device, &data)?;
        memories.push((
            states,
            TypedBuffer::uninitialized(*device, all())?,
            device.queue()?,
        ));
    }
    let found = host.measure(|| {
        let arguments: Vec<_> = memories
            .iter_mut()
            .map(|(states, result, _)| rows_on::arguments(states, result, ROUNDS, MODULUS))
            .collect();
        let parts = split.launch([WIDTH, ROWS], arguments)?;
        let mut found = Vec::new();
        for (part, (_, result, queue)) in parts.iter().zip(&memories) {
            let (first, count) = (
                part.range.start * WIDTH,
                part.range.len() as u64 * u64::from(WIDTH),
            );
            let after = std::slice::from_ref(&part.event);
            found.extend(result.read_part(&**queue, u64::from(first), count, after)?);
        }
        Ok(found)
    })?;
    check(&found, |at| stepped(data[at], ROUNDS))
}

/// The job on parts of a card, which reach each other's memory: nothing is divided but the work.
fn together(host: &Host, card: &dyn Device, parts: &[Box<dyn Device>]) -> Result<Ran> {
    let data = states(0, all());
    let states = TypedBuffer::from_slice(card, &data)?;
    let mut result = TypedBuffer::uninitialized(card, all())?;
    let mut split = Split::new();
    for part in parts {
        split.add(rows_on::over_range(&**part)?, part.queue()?, 1.0);
    }
    host.measure(|| {
        let arguments: Vec<_> = parts
            .iter()
            .map(|_| rows_on::arguments(&states, &mut result, ROUNDS, MODULUS))
            .collect();
        for part in split.launch([WIDTH, ROWS], arguments)? {
            part.event.wait()?;
        }
        Ok(())
    })?;
    check(&result.read(&*card.queue()?)?, |at| stepped(data[at], ROUNDS))
}

const ONE_GPU: Ran = Ran::LeftOut("there is one GPU in this machine");
const NO_PARTS: Ran = Ran::LeftOut("the device has no parts");

fn one(host: &Host) -> Result<Ran> {
    apart(host, &[&host.open()?], &[1.0])
}

fn two(host: &Host, speeds: [f64; 2]) -> Result<Ran> {
    match host.open_two()? {
        Some([first, second]) => apart(host, &[&first, &second], &speeds),
        None => Ok(ONE_GPU),
    }
}

fn parts(host: &Host, count: usize) -> Result<Ran> {
    match host.open_with_parts()? {
        Some((card, parts)) => together(host, &card, &parts[..count.min(parts.len())]),
        None => Ok(NO_PARTS),
    }
}

/// The page.
pub static TECHNIQUE: Technique = Technique {
    page: "host-devices",
    title: "Two devices, and the parts of one",
    text: [
        "A job of 512 rows is divided over devices (`Split`). Each device has memory of its own and returns its own \
         rows. Two equal devices with half of the rows each take half the time, transfers included, because each has \
         a link of its own. The program chooses the shares: a division that does not match the speeds leaves one of \
         them waiting for the other.",
        "A card with several stacks, such as Intel's Max 1550, is divided by `sub_devices`: each stack does its own \
         work and can access the other's memory, so one buffer serves both. The program divides the work: work given \
         to one stack never moves to the other. NVIDIA's GPUs have no such parts (except partitions set up by the \
         administrator), so those two variants are simulated on a Max 1550.",
    ],
    ways: &[
        variant("one device", one),
        variant("two devices, half each", |host| two(host, [1.0, 1.0])),
        variant("two devices, 4 to 1", |host| two(host, [4.0, 1.0])),
        variant("one stack of a card", |host| parts(host, 1)),
        variant("both stacks of a card", |host| parts(host, 2)),
    ],
};
