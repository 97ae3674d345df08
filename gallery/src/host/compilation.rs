//! Compiling eagerly, lazily, and ahead of time.

use std::sync::Arc;

use headstart::Result;
use headstart::device::{Bundle, Cache, Device, Library, TypedBuffer};
use headstart::ir::Kernel;
use headstart::prelude::*;
use headstart::runtime::launch::Compiled;

use super::{Host, Ran, Technique, check, over, states, variant};

/// Kernels in the program.
const KERNELS: u32 = 16;
/// Which of them the job needs, one after the other.
const NEEDED: [u32; 3] = [2, 11, 2];
const ELEMENTS: u64 = 1 << 16;

/// One of many kernels of a program: a polynomial with a term for each number up to `terms`.
#[kernel]
pub fn polynomial(values: &mut [u32], #[constant] terms: u32) {
    let x = values[global_id()];
    let mut sum = 0u32;
    #[unroll]
    for term in 0..terms {
        sum = sum.wrapping_mul(x).wrapping_add(term + 1);
    }
    values[global_id()] = sum;
}

/// The value of [`polynomial`] for a number.
fn value(x: u32, terms: u32) -> u32 {
    (0..terms).fold(0, |sum, term| sum.wrapping_mul(x).wrapping_add(term + 1))
}

/// The program's kernel of this number, under a name of its own.
fn numbered(number: u32) -> Result<Kernel> {
    let mut kernel = polynomial::kernel(16 + number)?;
    kernel.name = format!("polynomial_{number}");
    Ok(kernel)
}

fn library() -> Result<Library> {
    Library::new((0..KERNELS).map(numbered).collect::<Result<Vec<_>>>()?)
}

/// Runs the kernels that the job needs; `program` gives one that is ready.
fn job(
    device: &dyn Device,
    mut program: impl FnMut(u32) -> Result<headstart::device::Program>,
) -> Result<Vec<u32>> {
    let queue = device.queue()?;
    let mut values = TypedBuffer::from_slice(device, &states(0, ELEMENTS))?;
    for number in NEEDED {
        let kernel = Compiled::of(program(number)?);
        kernel.launch(&*queue, over(ELEMENTS), polynomial::arguments(&mut values));
    }
    values.read(&*queue)
}

/// Every kernel when the program starts.
fn eager(host: &Host) -> Result<Ran> {
    let (device, library) = (host.open()?, library()?);
    let result = host.measure(|| {
        let programs = library.compile(&device)?;
        job(&device, |number| {
            Ok(programs.get(&format!("polynomial_{number}"))?.clone())
        })
    })?;
    right(&result)
}

/// A kernel when it is needed, each time.
fn every_time(host: &Host) -> Result<Ran> {
    let (device, library) = (host.open()?, library()?);
    let result = host.measure(|| {
        job(&device, |number| {
            device.compile(&library.kernels()[number as usize])
        })
    })?;
    right(&result)
}

/// A kernel when it is needed for the first time.
fn lazy(host: &Host) -> Result<Ran> {
    let (device, library, cache) = (host.open()?, library()?, Cache::new());
    let result = host.measure(|| {
        job(&device, |number| {
            cache.compile(&device, &library.kernels()[number as usize])
        })
    })?;
    right(&result)
}

/// Every kernel beforehand, into a file that the program reads when it starts.
fn ahead(host: &Host) -> Result<Ran> {
    let device = host.open()?;
    let file = Bundle::build(library()?, &[&device as &dyn Device])?.to_bytes();
    let result = host.measure(|| {
        let programs = Bundle::parse(&file)?.load(&device)?;
        job(&device, |number| {
            Ok(programs.get(&format!("polynomial_{number}"))?.clone())
        })
    })?;
    right(&result)
}

/// The same, and of the file the kernels alone that are needed.
fn ahead_and_lazy(host: &Host) -> Result<Ran> {
    let device = host.open()?;
    let file = Bundle::build(library()?, &[&device as &dyn Device])?.to_bytes();
    let result = host.measure(|| {
        let bundle = Bundle::parse(&file)?;
        let kernel = |number: u32| Arc::clone(&bundle.library().kernels()[number as usize]);
        job(&device, |number| device.load(&kernel(number), bundle.images()))
    })?;
    right(&result)
}

fn right(result: &[u32]) -> Result<Ran> {
    let expected = |at| {
        NEEDED
            .iter()
            .fold(1 + at as u32, |x, number| value(x, 16 + number))
    };
    check(result, expected)
}

/// The page.
pub static TECHNIQUE: Technique = Technique {
    page: "host-compilation",
    title: "Compiling eagerly, lazily, and ahead of time",
    text: [
        "A program has sixteen kernels, and a job needs two of them, one of these twice. The time from program start \
         to the job's result is measured. Eager compilation (`Library::compile`) compiles all sixteen at program \
         start, including the fourteen unused ones. Lazy compilation (`Cache`) compiles a kernel at its first use: \
         less in total, but the wait comes in the middle of the work. Without a cache it comes every time.",
        "With ahead-of-time compilation (`Bundle`), machine code is in a file, and loading it compiles nothing. It \
         fits the devices that it was made for. The file also has the kernels' IR, so every other device accepts it \
         and compiles. (The driver has a cache of its own for compiled code; `CUDA_CACHE_DISABLE=1` turns it off, so \
         that these times are those of the first start. The simulator keeps no machine code.)",
    ],
    ways: &[
        variant("eager", eager),
        variant("when needed, every time", every_time),
        variant("lazy", lazy),
        variant("ahead of time, all loaded", ahead),
        variant("ahead of time, lazy", ahead_and_lazy),
    ],
};
