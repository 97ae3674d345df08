//! Queues in order and out of order.

use headstart::Result;
use headstart::device::{Allocation, Device, Event, OutOfOrder, Queue, TypedBuffer};

use super::{Host, MODULUS, Ran, Technique, check, over, states, stepped, steps_on, variant};

/// Jobs that have nothing to do with each other.
const JOBS: u32 = 6;
/// Elements of a job.
const ELEMENTS: u64 = 1 << 20;
const ROUNDS: u32 = 40;

/// Every job copies its data in, works on them, and copies them out: three commands, each of which names the one before it.
fn jobs(host: &Host, device: &dyn Device, queue: &dyn Queue, wait: bool) -> Result<Ran> {
    let kernel = steps_on::compile(device)?;
    let mut sources = Vec::new();
    let mut places = Vec::new();
    let mut results = Vec::new();
    for job in 0..JOBS {
        sources.push(TypedBuffer::from_slice_as(
            device,
            Allocation::Host,
            &states(job, ELEMENTS),
        )?);
        places.push(TypedBuffer::uninitialized(device, ELEMENTS)?);
        results.push(TypedBuffer::uninitialized_as(device, Allocation::Host, ELEMENTS)?);
    }
    // A host that waits for a command before it submits the next.
    let submitted = |event: Event| -> Result<[Event; 1]> {
        if wait {
            event.wait()?;
        }
        Ok([event])
    };
    host.measure(|| {
        for ((source, place), result) in sources.iter().zip(&mut places).zip(&mut results) {
            let copied = submitted(source.copy_to(place, queue, &[]))?;
            let arguments = steps_on::arguments(place, ROUNDS, MODULUS);
            let ran = submitted(kernel.launch_after(queue, over(ELEMENTS), arguments, &copied))?;
            submitted(place.copy_to(result, queue, &ran))?;
        }
        Ok(())
    })?;
    for (job, result) in results.iter().enumerate() {
        let start = states(job as u32, ELEMENTS);
        check(&result.to_vec()?, |at| stepped(start[at], ROUNDS))?;
    }
    Ok(Ran::Measured)
}

fn waiting(host: &Host) -> Result<Ran> {
    let device = host.open()?;
    jobs(host, &device, &*device.queue()?, true)
}

fn in_order(host: &Host) -> Result<Ran> {
    let device = host.open()?;
    jobs(host, &device, &*device.queue()?, false)
}

fn out_of_order(host: &Host, at_once: usize) -> Result<Ran> {
    let device = host.open()?;
    jobs(host, &device, &OutOfOrder::new(&device, at_once)?, false)
}

/// The page.
pub static TECHNIQUE: Technique = Technique {
    page: "host-queues",
    title: "Queues in order and out of order",
    text: [
        "Six jobs, each of a copy in, a kernel and a copy out. An in-order queue runs one command after the other, \
         even if they are independent. An out-of-order queue follows the events that a command names: a job's three \
         commands stay in their order, and the copies of one job overlap the kernel of another. Only the queue \
         differs between the two programs.",
        "An out-of-order queue gains by using independent engines at the same time: cores, a copy engine for each \
         direction. Commands for the same engine still run one after the other, so the gain ends when one engine is \
         always busy. A host that waits for each command before it submits the next also pays the round trip every \
         time.",
    ],
    ways: &[
        variant("a wait after each command", waiting),
        variant("in order", in_order),
        variant("out of order, 2 at once", |host| out_of_order(host, 2)),
        variant("out of order, 6 at once", |host| out_of_order(host, 6)),
    ],
};
