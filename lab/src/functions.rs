//! `headstart-lab bench --suite functions`: the mathematical functions in single precision beside CUDA's own, on a GPU.
//!
//! A kernel evaluates one function repeatedly in every work-item, four independent evaluations per iteration, with all cores
//! full: the result is evaluations per second. The same loop in CUDA C++ is compiled by nvcc, and the two take turns. The time
//! of a loop with only the arguments' arithmetic is subtracted from both. Before that, some work-items' results are compared
//! with the host's, to the bit, and with CUDA's, by their relative distance.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use headstart::back::ptx;
use headstart::device::cuda::device::CudaDevice;
use headstart::device::cuda::launch::{Arguments, Geometry};
use headstart::device::cuda::module::Function as Loaded;
use headstart::device::cuda::timing::{Candidate, TimingOptions, time};
use headstart::ir::{
    BinaryOp, Builder, CompareOp, ConvertOp, Id, Kernel, LoadData, LoopWishes, OpKind, Param, Region, Space,
    Type, UnrollWish, Value,
};
use headstart::math::Function;
use headstart::{Error, Result};
use serde_json::{Value as Json, json};

use crate::arguments;
use headstart_cli::device;
use headstart_cli::output::explain_command;
use headstart_cli::output::{Destination, json_line, print};
use headstart_cli::published;

/// Work-items of a work-group.
const GROUP: u32 = 256;

/// Work-groups for each core.
const GROUPS_PER_CORE: u32 = 16;

/// Turns of the loop.
const TURNS: u32 = 256;

/// Independent evaluations of a turn, of the argument times these. None is 1: nvcc leaves that multiplication out, ptxas
/// does not.
const SCALES: [f32; 4] = [0.9375, 0.75, 0.5, 0.25];

/// The factor of the argument in each turn: it stays in the function's range, and ends at 0.78 of its initial value.
const SHRINK: f32 = 0.999_023_44;

/// How many work-items' results the host computes, too.
const CHECKED: usize = 512;

/// A function, and from where to where arguments are.
struct Case(Function, [f32; 2]);

/// CUDA's name of a function in single precision.
fn cuda_name(function: Function) -> String {
    format!("{}f", function.name())
}

/// Arguments where each function does its usual work; those of `sin` and its kind need no long reduction in either.
const CASES: [Case; 19] = [
    Case(Function::Exp, [-20.0, 20.0]),
    Case(Function::Exp2, [-20.0, 20.0]),
    Case(Function::Log, [0.01, 100.0]),
    Case(Function::Log2, [0.01, 100.0]),
    Case(Function::Log10, [0.01, 100.0]),
    Case(Function::Sin, [-50.0, 50.0]),
    Case(Function::Cos, [-50.0, 50.0]),
    Case(Function::Tan, [-50.0, 50.0]),
    Case(Function::Asin, [-1.0, 1.0]),
    Case(Function::Acos, [-1.0, 1.0]),
    Case(Function::Atan, [-5.0, 5.0]),
    Case(Function::Atan2, [-5.0, 5.0]),
    Case(Function::Sinh, [-5.0, 5.0]),
    Case(Function::Cosh, [-5.0, 5.0]),
    Case(Function::Tanh, [-5.0, 5.0]),
    Case(Function::Erf, [-3.0, 3.0]),
    Case(Function::Pow, [0.01, 10.0]),
    Case(Function::Cbrt, [-100.0, 100.0]),
    Case(Function::Hypot, [-100.0, 100.0]),
];

/// Runs the suite, and writes the results after each function.
///
/// # Errors
/// There is no such GPU, nvcc fails, or the file cannot be written.
pub fn run(options: &arguments::Bench) -> Result<()> {
    let destination = Destination::asked("--json", options.json.as_deref())?;
    let device = CudaDevice::open(device::gpu(&options.device)?.ordinal)?;
    let bench = Bench::new(&device, options)?;
    let facts = device.gpu().facts();
    let mut found = Vec::new();
    for case in &CASES {
        let name = case.0.name();
        if !options.case.is_empty() && !options.case.iter().any(|text| name.contains(text)) {
            continue;
        }
        let one = bench
            .measure(case)
            .unwrap_or_else(|error| json!({"function": name, "error": error.to_string()}));
        print(&line(&one))?;
        found.push(one);
        if let Some(destination) = &destination {
            destination.write(&json_line(&json!({
                "what": "single-precision functions beside CUDA's own: launches of a loop of evaluations, all cores full; ours_to_cuda is without the loop's own time",
                "command": published::command(crate::PROGRAM),
                "date": published::date(),
                "driver": published::driver(),
                "nvcc": bench.nvcc,
                "version": env!("CARGO_PKG_VERSION"),
                "device": facts.name,
                "evaluations": bench.evaluations(),
                "rounds": options.rounds,
                "functions": found,
            }))?)?;
        }
    }
    Ok(())
}

/// A result, for people.
fn line(found: &Json) -> String {
    let name = found["function"].as_str().unwrap_or_default();
    if let Some(error) = found["error"].as_str() {
        return format!("{name}: {error}\n");
    }
    let number = |key: &str| found[key].as_f64().unwrap_or(f64::NAN);
    format!(
        "{name:6} {:8.1} µs, CUDA {:8.1} µs, the loop {:6.1} µs: {:.2} times CUDA's · bits {}, from CUDA's {:.1e}\n",
        number("ours_ns") * 1e-3,
        number("cuda_ns") * 1e-3,
        number("loop_ns") * 1e-3,
        number("ours_to_cuda"),
        found["bits"].as_str().unwrap_or_default(),
        number("from_cuda"),
    )
}

/// All that the functions share.
struct Bench<'d> {
    device: &'d CudaDevice,
    groups: u32,
    rounds: u32,
    /// CUDA's functions in machine code.
    cubin: Vec<u8>,
    /// The compiler's last line about itself.
    nvcc: String,
}

impl<'d> Bench<'d> {
    fn new(device: &'d CudaDevice, options: &arguments::Bench) -> Result<Bench<'d>> {
        let facts = device.gpu().facts();
        let (major, minor) = facts.capability;
        let version = Command::new(&options.nvcc).arg("--version").output();
        let version = version.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        Ok(Bench {
            device,
            groups: facts.cores * GROUPS_PER_CORE,
            rounds: options.rounds,
            cubin: compile(&options.nvcc, &format!("sm_{major}{minor}"))?,
            nvcc: version
                .unwrap_or_default()
                .lines()
                .last()
                .unwrap_or_default()
                .to_owned(),
        })
    }

    fn items(&self) -> usize {
        (self.groups * GROUP) as usize
    }

    fn evaluations(&self) -> u64 {
        self.items() as u64 * u64::from(TURNS) * SCALES.len() as u64
    }

    fn load(&self, function: Option<Function>) -> Result<Loaded> {
        let emitted = ptx::emit(&ours(function), self.device.options())?;
        Ok(self.device.gpu().load(&emitted.text, "timed")?)
    }

    fn measure(&self, case: &Case) -> Result<Json> {
        let Case(function, range) = case;
        let gpu = self.device.gpu();
        let [x, y] = [1, 2].map(|seed| spread(self.items(), seed, *range));
        let bytes = |numbers: &[f32]| numbers.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
        let mut buffers = Vec::new();
        for content in [&x, &y, &x] {
            let mut buffer = gpu.allocate(content.len() * 4)?;
            buffer.write(&bytes(content))?;
            buffers.push(buffer);
        }
        let mut arguments = Arguments::new();
        for buffer in &buffers {
            arguments.push_address(buffer.address());
        }
        let geometry = Geometry {
            groups: [self.groups, 1, 1],
            group: [GROUP, 1, 1],
            dynamic_shared_bytes: 0,
            cooperative: false,
        };
        let candidates = [
            self.load(Some(*function))?,
            gpu.load_image(&self.cubin, &format!("timed_{}", cuda_name(*function)))?,
            self.load(None)?,
        ]
        .map(|function| Candidate {
            function,
            geometry,
            arguments: arguments.clone(),
        });
        let limit = Duration::from_secs(10);
        let mut results = Vec::new();
        for candidate in &candidates[..2] {
            candidate.function.launch(geometry, &arguments)?;
            gpu.wait(limit)?;
            let mut read = vec![0; self.items() * 4];
            buffers[2].read(&mut read)?;
            let (words, _) = read.as_chunks::<4>();
            results.push(
                words
                    .iter()
                    .map(|&word| f32::from_le_bytes(word))
                    .collect::<Vec<f32>>(),
            );
        }
        let same = (0..CHECKED).all(|i| results[0][i].to_bits() == on_host(*function, x[i], y[i]).to_bits());
        let apart = results[0]
            .iter()
            .zip(&results[1])
            .map(|(a, b)| f64::from((a - b).abs() / b.abs().max(1.0)));
        let options = TimingOptions {
            warm_up: 2,
            rounds: self.rounds,
            limit,
            ..TimingOptions::default()
        };
        let timings = time(gpu, &candidates, &options, &mut || Ok(()))?;
        let [ours, theirs, empty] = [0, 1, 2].map(|which: usize| timings[which].median_ns);
        Ok(json!({
            "function": function.name(),
            "arguments": range,
            "ours_ns": ours,
            "cuda_ns": theirs,
            "loop_ns": empty,
            "ours_to_cuda": (ours - empty) / (theirs - empty),
            "spread": [timings[0].spread(), timings[1].spread(), timings[2].spread()],
            "bits": if same { "those of the host" } else { "other than on the host" },
            "from_cuda": apart.fold(0.0, f64::max),
        }))
    }
}

/// Numbers spread over a range, other ones for each seed.
fn spread(count: usize, seed: u64, [from, to]: [f32; 2]) -> Vec<f32> {
    let mut state = seed;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1u64 << 24) as f32
    };
    (0..count).map(|_| from + (to - from) * next()).collect()
}

/// A work-item's output.
fn on_host(function: Function, mut x: f32, y: f32) -> f32 {
    let mut sums = [0.0f32; 4];
    for _ in 0..TURNS {
        for (sum, scale) in sums.iter_mut().zip(SCALES) {
            let arguments = [x * scale, y];
            *sum += function.f32(&arguments[..function.arguments()]);
        }
        x *= SHRINK;
    }
    (sums[0] + sums[1]) + (sums[2] + sums[3])
}

/// A region of the operations that `write` appends.
fn region(b: &mut Builder<'_>, write: impl FnOnce(&mut Builder<'_>)) -> Region {
    let before = b.begin_region();
    write(b);
    b.end_region(before)
}

/// The loop of evaluations; without a function the sums are of the arguments.
fn ours(function: Option<Function>) -> Kernel {
    let mut kernel = Kernel::new("timed");
    let [x, y, result] = ["x", "y", "result"].map(|name| {
        let value = kernel.value(Type::Ptr(Space::Global));
        kernel.params.push(Param {
            name: name.to_owned(),
            value,
            facts: None,
        });
        value
    });
    let ids = ["x", "y"].map(|name| kernel.loads.push(LoadData::new(name, Kernel::NOWHERE)));
    let types = [Type::I32, Type::F32, Type::F32, Type::F32, Type::F32, Type::F32];
    let label = kernel.label(None, types[2..].to_vec());
    let params: Vec<Value> = types.iter().map(|&ty| kernel.value(ty)).collect();
    let inner = kernel.label(None, Vec::new());
    let mut builder = Builder::new(&mut kernel, Kernel::NOWHERE);
    let b = &mut builder;
    let (group, local) = (b.id(Id::Group(0)), b.id(Id::Local(0)));
    let size = b.i32(GROUP as i32);
    let first = b.binary(BinaryOp::Mul, group, size);
    let index = b.binary(BinaryOp::Add, first, local);
    let index = b.convert(ConvertOp::ExtendU, Type::I64, index);
    let [x, y] = [(x, ids[0]), (y, ids[1])].map(|(from, id)| {
        let ptr = b.element(from, Type::F32, index);
        b.load(Type::F32, ptr, id)
    });
    let (zero, none) = (b.f32(0.0), b.i32(0));
    let body = region(b, |b| {
        let turns = b.i32(TURNS as i32);
        let more = b.compare(CompareOp::LtU, params[0], turns);
        let then = region(b, |b| {
            let mut next = params.clone();
            for (sum, scale) in next[2..].iter_mut().zip(SCALES) {
                let scale = b.f32(scale);
                let argument = b.binary(BinaryOp::FMul, params[1], scale);
                let value = match function {
                    Some(function) => function.emit(b, &[argument, y][..function.arguments()]),
                    None => argument,
                };
                *sum = b.binary(BinaryOp::FAdd, *sum, value);
            }
            let (one, shrink) = (b.i32(1), b.f32(SHRINK));
            next[0] = b.binary(BinaryOp::Add, params[0], one);
            next[1] = b.binary(BinaryOp::FMul, params[1], shrink);
            b.push(OpKind::Continue(label, next), &[]);
        });
        let otherwise = region(b, |b| {
            b.push(OpKind::Break(inner, Vec::new()), &[]);
        });
        let kind = OpKind::if_(inner, more, then, otherwise);
        b.push(kind, &[]);
        b.push(OpKind::Break(label, params[2..].to_vec()), &[]);
    });
    let kind = OpKind::Loop {
        label,
        params: params.clone(),
        initial: vec![none, x, zero, zero, zero, zero],
        body,
        wishes: LoopWishes {
            unroll: Some(UnrollWish::Keep),
            plan: None,
        },
    };
    let sums = b.push(kind, &types[2..]);
    let halves = [0, 2].map(|i| b.binary(BinaryOp::FAdd, sums[i], sums[i + 1]));
    let sum = b.binary(BinaryOp::FAdd, halves[0], halves[1]);
    let ptr = b.element(result, Type::F32, index);
    b.store(ptr, sum);
    b.return_();
    kernel.body = builder.finish();
    kernel
}

/// The same in CUDA C++, a kernel for each function, of its name.
fn source() -> String {
    let mut text = String::new();
    for Case(function, _) in &CASES {
        let name = cuda_name(*function);
        let second = if function.arguments() == 2 { ", b" } else { "" };
        let sums: String = SCALES
            .iter()
            .enumerate()
            .map(|(i, scale)| format!("        s{i} += {name}(a * {scale:?}f{second});\n"))
            .collect();
        // The kernel's name must not hide the function's.
        text.push_str(&format!(
            "extern \"C\" __global__ void timed_{name}(const float* x, const float* y, float* result) {{\n    \
                unsigned i = blockIdx.x * {GROUP}u + threadIdx.x;\n    \
                float a = x[i], b = y[i], s0 = 0, s1 = 0, s2 = 0, s3 = 0;\n    \
                #pragma unroll 1\n    \
                for (unsigned turn = 0; turn < {TURNS}u; turn++) {{\n{sums}        a *= {SHRINK:?}f;\n    }}\n    \
                result[i] = (s0 + s1) + (s2 + s3) + (b != b ? b : 0.0f);\n}}\n"
        ));
    }
    text
}

/// CUDA's kernels in machine code.
fn compile(nvcc: &Path, architecture: &str) -> Result<Vec<u8>> {
    let failed = |what: String| Error::device(format!("{}: {what}", nvcc.display()));
    let folder = tempfile::tempdir().map_err(|error| failed(error.to_string()))?;
    let (source_file, cubin) = (
        folder.path().join("functions.cu"),
        folder.path().join("functions.cubin"),
    );
    std::fs::write(&source_file, source()).map_err(|error| failed(error.to_string()))?;
    let mut build = Command::new(nvcc);
    build
        .args(["-O3", "-arch", architecture, "-cubin", "-o"])
        .arg(&cubin)
        .arg(&source_file);
    explain_command(&build);
    let output = build
        .output()
        .map_err(|error| failed(error.to_string()).accepted("a path to nvcc with --nvcc"))?;
    if !output.status.success() {
        return Err(failed(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    std::fs::read(&cubin).map_err(|error| failed(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_are_kernels_and_compute_what_the_host_does() {
        for Case(function, ..) in &CASES {
            let kernel = ours(Some(*function));
            headstart::ir::verify(&kernel).expect("the loop is a kernel");
            assert!(on_host(*function, 0.5, 0.25).is_finite());
        }
    }
}
