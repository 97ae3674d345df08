//! Kernels on a real GPU against what the IR specifies. Without a GPU, skipped, and says so.

mod common;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use common::device;
use headstart::back::ptx;
use headstart::device::Fill;
use headstart::device::cuda::device::CudaDevice;
use headstart::device::cuda::launch::Geometry;
use headstart::device::cuda::timing::TimingOptions;
use headstart::device::cuda::worker::{self, Found, Module, Worker};
use headstart::ir::Type;
use headstart::prelude::{global_id, global_size, kernel};

/// The first GPU, or why there is none.
fn gpu() -> Option<CudaDevice> {
    match CudaDevice::open(0) {
        Ok(device) => Some(device),
        Err(error) => {
            eprintln!("skipped: {error}");
            None
        }
    }
}

#[test]
fn operations_compute_what_the_ir_specifies() {
    let Some(gpu) = gpu() else { return };
    device::operations_compute_what_the_ir_specifies(&gpu, 0, 1);
}

#[test]
fn patterns_are_what_they_are_on_the_host() {
    let Some(gpu) = gpu() else { return };
    device::patterns_are_what_they_are_on_the_host(&gpu);
}

#[test]
fn random_kernels_compute_the_same_as_on_the_simulator() {
    let Some(gpu) = gpu() else { return };
    device::random_kernels_compute_the_same_as_on_the_simulator(&gpu, None, 100, |_| false);
}

/// What the worker of the next test runs: it is this program again, with this test alone.
#[test]
fn worker_process() {
    if std::env::var_os("HEADSTART_TEST_WORKER").is_some() {
        worker::serve(std::io::stdin().lock(), std::io::stdout()).expect("the parent listens");
    }
}

/// Says who it is, once without a line's end, and writes its number.
#[kernel(work_group = 32)]
fn speaks(result: &mut [u32]) {
    let i = global_id();
    println!("item {i} of {}", global_size());
    if i == 0 {
        print!("{i:x} and no end");
    }
    result[i] = i as u32;
}

/// The driver writes what kernels print to the output that carries the worker's replies.
#[test]
fn what_kernels_print_is_no_reply_of_the_worker() {
    let Some(gpu) = gpu() else { return };
    let this = std::env::current_exe().expect("a test has a path");
    let command = "HEADSTART_TEST_WORKER=1 exec \"$0\" worker_process --exact --nocapture --test-threads=1";
    let arguments = ["-c".into(), command.into(), this.into()];
    let mut worker = Worker::start(Path::new("/bin/sh"), &arguments, 0).expect("it starts");
    let output = worker::Argument::Buffer {
        element: Type::I32,
        length: 64,
        fill: &Fill::Uninitialized,
        output: true,
    };
    worker
        .bind(&[output, worker::Argument::Scalar(Type::I64, 64)])
        .expect("there is memory");
    let ptx = ptx::emit(&speaks::kernel().expect("right"), gpu.options()).expect("PTX can say it");
    let module = Module {
        name: "speaks".into(),
        ptx: ptx.text,
        entry: ptx.entry,
        geometry: Geometry {
            groups: [2, 1, 1],
            group: [32, 1, 1],
            dynamic_shared_bytes: 0,
        },
    };
    let loaded = worker.load(vec![module]).expect("it answers");
    assert!(loaded.iter().all(Result::is_ok), "{loaded:?}");
    for _ in 0..3 {
        let checked = worker
            .check("speaks", Duration::from_secs(5), None)
            .expect("it answers");
        let expected: Vec<u8> = (0..64u32).flat_map(u32::to_le_bytes).collect();
        assert_eq!(checked.outputs, [Found::Bytes(expected.clone())]);
        let mut check = |expected: Vec<u8>| {
            let checked = worker.check("speaks", Duration::from_secs(5), Some(&Arc::new(vec![expected])));
            checked.expect("it answers").outputs
        };
        assert_eq!(check(expected.clone()), [Found::Expected]);
        assert_eq!(check(vec![0; 256]), [Found::Bytes(expected)]);
        for item in 0..64 {
            let line = format!("item {item} of 64\n");
            assert!(checked.printed.contains(&line), "{line}: {}", checked.printed);
        }
        assert!(checked.printed.contains("0 and no end"), "{}", checked.printed);
        let timed = worker.time(&["speaks".into()], TimingOptions::default());
        assert!(timed.is_ok_and(|timings| timings[0].median_ns > 0.0));
    }
    assert_eq!(worker.started(), 1, "it was never lost");
}
