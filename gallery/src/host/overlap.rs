//! Transfers that overlap kernels.

use headstart::Result;
use headstart::device::{Allocation, Device, TypedBuffer};

use super::{Host, MODULUS, Ran, Technique, check, over, states, stepped, steps_on, variant};

/// All elements, in however many blocks.
const ELEMENTS: u64 = 1 << 21;
const ROUNDS: u32 = 40;

/// The data lie in ordinary memory of the host: they are written, worked on, and read, each after the other.
fn ordinary(host: &Host) -> Result<Ran> {
    let device = host.open()?;
    let (queue, kernel) = (device.queue()?, steps_on::compile(&device)?);
    let data = states(0, ELEMENTS);
    let mut place = TypedBuffer::uninitialized(&device, ELEMENTS)?;
    let result = host.measure(|| {
        place.write(&*queue, 0, &data)?;
        kernel.launch(
            &*queue,
            over(ELEMENTS),
            steps_on::arguments(&mut place, ROUNDS, MODULUS),
        );
        place.read(&*queue)
    })?;
    check(&result, |at| stepped(data[at], ROUNDS))
}

/// The data lie in pinned memory of the host, in blocks. A queue for each way and one for the kernels: while one block is
/// worked on, the next comes in and the last one goes out.
fn pinned(host: &Host, blocks: u32, queues: bool) -> Result<Ran> {
    let device = host.open()?;
    let length = ELEMENTS / u64::from(blocks);
    let kernel = steps_on::compile(&device)?;
    let first = device.queue()?;
    let others = (device.queue()?, device.queue()?);
    let (inward, work, outward) = match queues {
        true => (&*first, &*others.0, &*others.1),
        false => (&*first, &*first, &*first),
    };
    let mut sources = Vec::new();
    let mut places = Vec::new();
    let mut results = Vec::new();
    for block in 0..blocks {
        sources.push(TypedBuffer::from_slice_as(
            &device,
            Allocation::Host,
            &states(block, length),
        )?);
        places.push(TypedBuffer::uninitialized(&device, length)?);
        results.push(TypedBuffer::uninitialized_as(&device, Allocation::Host, length)?);
    }
    host.measure(|| {
        for ((source, place), result) in sources.iter().zip(&mut places).zip(&mut results) {
            let copied = [source.copy_to(place, inward, &[])];
            let arguments = steps_on::arguments(place, ROUNDS, MODULUS);
            let ran = [kernel.launch_after(work, over(length), arguments, &copied)];
            place.copy_to(result, outward, &ran);
        }
        Ok(())
    })?;
    for (block, result) in results.iter().enumerate() {
        let start = states(block as u32, length);
        check(&result.to_vec()?, |at| stepped(start[at], ROUNDS))?;
    }
    Ok(Ran::Measured)
}

/// The page.
pub static TECHNIQUE: Technique = Technique {
    page: "host-overlap",
    title: "Transfers that overlap kernels",
    text: [
        "Eight megabytes are copied to the device, processed, and copied back. In one piece each step waits for the \
         one before. In blocks, with one queue for each direction and one for the kernels, one block is copied in \
         while another is processed and a third is copied out: two copy engines and the cores work at the same time. \
         This requires pinned host memory, which a copy engine can access directly. With ordinary memory the driver \
         makes the copies, and the host waits.",
        "With three equal steps the best possible time is a third. The first block in and the last block out never \
         overlap with anything, so smaller blocks lose less. But every block adds the start of a copy and of a \
         kernel, so blocks that are too small are slower again.",
    ],
    ways: &[
        variant("ordinary memory, one piece", ordinary),
        variant("pinned, one piece", |host| pinned(host, 1, false)),
        variant("pinned, 8 blocks, one queue", |host| pinned(host, 8, false)),
        variant("2 blocks, three queues", |host| pinned(host, 2, true)),
        variant("8 blocks, three queues", |host| pinned(host, 8, true)),
        variant("32 blocks, three queues", |host| pinned(host, 32, true)),
    ],
};
