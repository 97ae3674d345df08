//! Kernels on a real GPU against what the IR specifies. Without a GPU, skipped, and says so.

mod common;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use common::device;
use headstart::back::ptx;
use headstart::device::cuda::device::CudaDevice;
use headstart::device::cuda::launch::Geometry;
use headstart::device::cuda::timing::TimingOptions;
use headstart::device::cuda::worker::{self, Module, OutputContents, Worker};
use headstart::device::{Argument, Command, Device, Fill, Launch, Program};
use headstart::ir::{Builder, ConvertOp, Id, Kernel, Param, Space, Type, UnaryOp, eval};
use headstart::prelude::{global_id, global_size, kernel};
use rayon::prelude::*;

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
    device::random_kernels_compute_the_same_as_on_the_simulator(100, |seed| {
        device::fate_of_random_kernel(&gpu, None, seed, |_| false)
    });
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
        align: 16,
        is_passed: true,
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
            cooperative: false,
        },
        code: None,
    };
    let loaded = worker.load(vec![module]).expect("it answers");
    assert!(loaded.iter().all(Result::is_ok), "{loaded:?}");
    for _ in 0..3 {
        let checked = worker
            .check("speaks", Duration::from_secs(5), None)
            .expect("it answers");
        let expected: Vec<u8> = (0..64u32).flat_map(u32::to_le_bytes).collect();
        assert_eq!(checked.outputs, [OutputContents::Bytes(expected.clone())]);
        let mut check = |expected: Vec<u8>| {
            let checked = worker.check("speaks", Duration::from_secs(5), Some(&Arc::new(vec![expected])));
            checked.expect("it answers").outputs
        };
        assert_eq!(check(expected.clone()), [OutputContents::Expected]);
        assert_eq!(check(vec![0; 256]), [OutputContents::Bytes(expected)]);
        for item in 0..64 {
            let line = format!("item {item} of 64\n");
            assert!(checked.printed.contains(&line), "{line}: {}", checked.printed);
        }
        assert!(checked.printed.contains("0 and no end"), "{}", checked.printed);
        let timed = worker.time(&["speaks".into()], TimingOptions::default(), false);
        assert!(timed.is_ok_and(|timings| timings[0].median_ns > 0.0));
    }
    assert_eq!(worker.started(), 1, "it was never lost");
}

/// A kernel that stores an operation of the numbers whose bits follow one another from `first` on.
fn of_consecutive(op: UnaryOp) -> Kernel {
    let mut kernel = Kernel::new("of_consecutive");
    let types = [Type::Ptr(Space::Global), Type::I32];
    let [result, first] = types.map(|ty| kernel.value(ty));
    for (name, value) in [("result", result), ("first", first)] {
        kernel.params.push(Param {
            name: name.to_owned(),
            value,
            facts: None,
        });
    }
    let mut b = Builder::new(&mut kernel, Kernel::NOWHERE);
    let (group, local) = (b.id(Id::Group(0)), b.id(Id::Local(0)));
    let size = b.i32(GROUP as i32);
    let before = b.mul(group, size);
    let index = b.add(before, local);
    let bits = b.add(first, index);
    let x = b.convert(ConvertOp::Bits, Type::F32, bits);
    let value = b.unary(op, x);
    let index = b.convert(ConvertOp::ExtendU, Type::I64, index);
    let ptr = b.element(result, Type::F32, index);
    b.store(ptr, value);
    b.return_();
    kernel.body = b.finish();
    kernel
}

/// Work-items of a work-group of [`of_consecutive`].
const GROUP: u32 = 256;

/// Of every significand, whatever the GPU's approximations are: reciprocals of one exponent, roots of two.
#[test]
fn reciprocals_and_roots_are_rounded_to_nearest() {
    let Some(gpu) = gpu() else { return };
    let reciprocal = gpu.compile(&Arc::new(of_consecutive(UnaryOp::NormalReciprocal)));
    let root = gpu.compile(&Arc::new(of_consecutive(UnaryOp::NormalSqrt)));
    let (reciprocal, root) = (reciprocal.expect("it compiles"), root.expect("it compiles"));
    compare(&gpu, &reciprocal, 127 << 23, eval::normal_reciprocal);
    compare(&gpu, &root, 127 << 23, eval::normal_sqrt);
    compare(&gpu, &root, 128 << 23, eval::normal_sqrt);
}

/// Of every argument, 2³² of each; all NaNs as the canonical one.
#[test]
fn functions_by_tables_have_the_same_bits() {
    let Some(gpu) = gpu() else { return };
    let cases = [
        (UnaryOp::TableExp2, eval::table::exp2 as fn(f32) -> f32),
        (UnaryOp::TableLog2, eval::table::log2),
        (UnaryOp::TableReciprocal, eval::table::reciprocal),
    ];
    for (op, on_host) in cases {
        let program = gpu.compile(&Arc::new(of_consecutive(op))).expect("it compiles");
        for upper in 0..1u32 << 9 {
            compare(&gpu, &program, upper << 23, on_host);
        }
        println!("{}: all arguments", op.name());
    }
}

/// Compares 2²³ numbers whose bits follow one another from `first` on.
fn compare(gpu: &CudaDevice, program: &Program, first: u32, on_host: fn(f32) -> f32) {
    let count = 1u32 << 23;
    let queue = gpu.queue().expect("a queue");
    let result = gpu
        .allocate(Type::F32, count.into(), Fill::Uninitialized)
        .expect("there is memory");
    let arguments = vec![
        Argument::Buffer(result.clone()),
        Argument::Scalar(Type::I32, first.into()),
    ];
    let launch = Command::Launch(program.clone(), Launch::new(count / GROUP, GROUP, arguments));
    queue.submit(launch, &[]).wait().expect("it runs");
    let read = Command::Read {
        offset: 0,
        length: result.bytes(),
        buffer: result,
    };
    let found = queue.submit(read, &[]).wait().expect("it is read");
    let wrong: Vec<String> = found
        .bytes
        .par_chunks_exact(4)
        .enumerate()
        .filter_map(|(n, found)| {
            let x = f32::from_bits(first + n as u32);
            let found = f32::from_le_bytes(found.try_into().expect("four bytes"));
            let expected = on_host(x);
            (found.to_bits() != expected.to_bits()).then(|| format!("{x:?}: {found:?}, not {expected:?}"))
        })
        .collect();
    assert!(
        wrong.is_empty(),
        "{} numbers wrong, first {:?}",
        wrong.len(),
        &wrong[..wrong.len().min(5)]
    );
}
