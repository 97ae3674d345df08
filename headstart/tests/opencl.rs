//! Kernels on an OpenCL device against what the IR specifies: Intel's runtime for CPUs, which `scripts/tools` sets up,
//! or a GPU. Without a runtime, skipped, and says so.

mod common;

use std::process::Command;
use std::sync::Arc;

use common::device::{self, Fate};
use headstart::device::opencl::device::OpenClDevice;
use headstart::device::{self as devices, Argument, Device, Fill, Launch, Pattern};
use headstart::ir::{self, Type};

/// The first device, or why there is none.
fn opencl() -> Option<OpenClDevice> {
    match OpenClDevice::open(0) {
        Ok(device) => Some(device),
        Err(error) => {
            headstart_testing::tools::skip("opencl", &error.to_string());
            None
        }
    }
}

#[test]
fn operations_compute_what_the_ir_specifies() {
    let Some(opencl) = opencl() else { return };
    device::operations_compute_what_the_ir_specifies(&opencl, 0, 1);
}

#[test]
fn patterns_are_what_they_are_on_the_host() {
    let Some(opencl) = opencl() else { return };
    device::patterns_are_what_they_are_on_the_host(&opencl);
}

/// The variable that holds the seed of the kernel that a process of this program runs, instead of the tests.
const ALONE: &str = "HEADSTART_TEST_KERNEL";

/// Each kernel has a process of its own: Intel's compiler for CPUs crashes at one of a thousand.
#[test]
fn random_kernels_compute_the_same_as_on_the_simulator() {
    let refused = 10;
    let lost = 11;
    if let Some(seed) = std::env::var(ALONE).ok().and_then(|seed| seed.parse().ok()) {
        let fate = fate_of_random_kernel(seed);
        std::process::exit(match fate {
            Fate::Right => 0,
            Fate::Refused => refused,
            Fate::Lost => lost,
        });
    }
    if opencl().is_none() {
        return;
    }
    device::random_kernels_compute_the_same_as_on_the_simulator(30, |seed| {
        let program = std::env::current_exe().expect("this program");
        let test = "random_kernels_compute_the_same_as_on_the_simulator";
        let ran = Command::new(program)
            .args([test, "--exact", "--nocapture"])
            .env(ALONE, seed.to_string())
            .output()
            .expect("it can be started again");
        match ran.status.code() {
            Some(0) => Fate::Right,
            Some(code) if code == refused => Fate::Refused,
            Some(code) if code == lost => Fate::Lost,
            None => {
                println!("seed {seed}: {}", ran.status);
                Fate::Lost
            }
            Some(_) => panic!("{}", String::from_utf8_lossy(&ran.stderr)),
        }
    });
}

fn fate_of_random_kernel(seed: u64) -> Fate {
    let refuses = |why: &str| {
        [
            "may return while others wait",
            "a part of a sub-group",
            "which work-items run together",
            "rounds other than to nearest",
            "does not vectorize",
        ]
        .iter()
        .any(|reason| why.contains(reason))
    };
    let device = OpenClDevice::open(0).expect("the parent has opened it");
    let mut unoptimized = OpenClDevice::open(0).expect("opened once");
    unoptimized.leave_unoptimized();
    device::fate_of_random_kernel(&device, Some(&unoptimized), seed, refuses)
}

/// A pointer made of a distance starts in one parameter and leads into another: the facts about both are true of what each
/// accesses, and a compiler that follows where pointers come from must not be told more.
#[test]
fn a_distance_leads_into_another_buffer() -> Result<(), headstart::Error> {
    let Some(opencl) = opencl() else { return Ok(()) };
    let text = "hsir 1
kernel @k(
  %m: ptr.global i32[32:i64] align 4 readonly unaliased,
  %w: ptr.global i32[32:i64] align 4 unaliased,
) group 32,1,1 {
  file #1 \"k.c\"
  load @w #1:1:1
  %local = id.local.x
  %item = extend.u %local to i64
  %own = address %w + %item * 4
  store %own, 1:i32
  %from = bits %m to i64
  %to = bits %w to i64
  %distance = sub %to, %from
  %start = address %m + %distance * 1
  %same = address %start + %item * 4
  store %same, 2:i32
  %seen = load i32 %own, @w
  %more = mul %seen, 10:i32
  store %own, %more
  return
}
";
    let kernel = ir::parse(text, "k.hsir")?;
    let buffer = || opencl.allocate(Type::I32, 32, Fill::Pattern(Pattern::Constant(0)));
    let (m, w) = (buffer()?, buffer()?);
    let arguments = vec![Argument::Buffer(m), Argument::Buffer(w.clone())];
    let queue = opencl.queue()?;
    let program = opencl.compile(&Arc::new(kernel))?;
    queue
        .submit(
            devices::Command::Launch(program, Launch::new(1, 32, arguments)),
            &[],
        )
        .wait()?;
    let read = devices::Command::Read {
        buffer: w,
        offset: 0,
        length: 128,
    };
    let found = queue.submit(read, &[]).wait()?;
    assert_eq!(found.bytes, 20_i32.to_le_bytes().repeat(32));
    Ok(())
}
