//! How many operations × work-items the functional engine runs in a second.
//!
//! `cargo bench -p headstart --bench functional`. The gather kernel of `tests/in` with indices and values
//! that patterns generate, and a kernel of arithmetic alone; in both modes, on 1 and 2 threads. Time is the
//! processor's where the system tells it, so that a busy machine does not count.

use std::sync::Arc;
use std::time::Instant;

use headstart::device::sim::functional::{BufferMemory, CompiledKernel, Groups, Options};
use headstart::device::{Argument, Buffer, Counters, Fill, Launch, Pattern};
use headstart::ir::{Kernel, Type, read};

const ARITHMETIC: &str = "hsir 1
    kernel @arithmetic(%result: ptr.global f32[] align 4 unaliased, %items: i32) group 128,1,1 {
      %local32 = id.local.x
      %group32 = id.group.x
      %before = mul %group32, 128:i32
      %item32 = add %before, %local32
      %item = extend.u %item32 to i64
      %start = unsigned_to_float %item32 to f32
      %sum = loop (%j = 0:i32, %x = %start) -> f32 {
        %more = lt.s %j, %items
        if %more { yield } else { break %x }
        %a = fmul %x, 0.75:f32
        %b = fadd %a, 1.5:f32
        %c = sqrt %b
        %d = fsub %c, 0.25:f32
        %k = mul %j, 7:i32
        %l = xor %k, %j
        %m = and %l, 255:i32
        %e = signed_to_float %m to f32
        %y = fadd %d, %e
        %next = add %j, 1:i32
        continue %next, %y
      }
      %to = address %result + %item * 4
      store %to, %sum
      return
    }";

fn buffer(element: Type, length: u64, fill: Fill) -> Argument {
    let memory = BufferMemory::new(element, length, fill).expect("fits");
    Argument::Buffer(Buffer::new(element, length, Arc::new(memory)))
}

fn gather() -> (Kernel, Launch) {
    let text = include_str!("../tests/in/gather.hsir");
    let (groups, group, items, table) = (132, 128, 512, 1u64 << 28);
    let indices = u64::from(groups * group) * items;
    let arguments = vec![
        buffer(
            Type::I32,
            indices,
            Fill::Pattern(Pattern::Below {
                bound: table,
                seed: 7,
            }),
        ),
        Argument::Scalar(Type::I64, indices),
        buffer(Type::F32, table, Fill::Pattern(Pattern::Fractions { low: 1.0 })),
        Argument::Scalar(Type::I64, table),
        buffer(Type::F32, u64::from(groups * group), Fill::Uninitialized),
        Argument::Scalar(Type::I64, u64::from(groups * group)),
        Argument::Scalar(Type::I64, items),
    ];
    let kernel = read(text, "gather.hsir").expect("a kernel");
    (kernel, Launch::new(groups, group, arguments))
}

fn arithmetic() -> (Kernel, Launch) {
    let arguments = vec![
        buffer(Type::F32, 132 * 128, Fill::Uninitialized),
        Argument::Scalar(Type::I32, 1000),
    ];
    let kernel = read(ARITHMETIC, "arithmetic.hsir").expect("a kernel");
    (kernel, Launch::new(132, 128, arguments))
}

/// Seconds of processor time that this process has used, where Linux tells it.
fn processor_seconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/self/stat").ok()?;
    // After the command's name, which is in parentheses: fields 14 and 15 of proc(5), in ticks of 10 ms.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |index: usize| fields.get(index)?.parse::<f64>().ok();
    Some((ticks(11)? + ticks(12)?) / 100.0)
}

fn main() {
    for (name, (kernel, launch)) in [("gather", gather()), ("arithmetic", arithmetic())] {
        let compiled = CompiledKernel::new(Arc::new(kernel));
        for (mode, options) in [("fast", Options::FAST), ("checking", Options::CHECKING)] {
            for threads in [1, 2] {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
                let pool = pool.expect("a pool of threads");
                let (start, used) = (Instant::now(), processor_seconds());
                let counters = pool.install(|| compiled.run(&launch, 32, options, &Groups::All));
                let counters = counters.unwrap_or_else(|error| panic!("{error}"));
                let wall = start.elapsed().as_secs_f64();
                let used = processor_seconds()
                    .zip(used)
                    .map(|(after, before)| after - before);
                let operations = counters.get(Counters::OPERATIONS).unwrap_or(0) as f64;
                let rate = |seconds: f64| operations / seconds / 1e6;
                println!(
                    "{name}, {mode}, {threads} threads: {operations:.0} operations × work-items, {:.0} million/s of \
                     wall time, {:.0} million/s of each processor's time",
                    rate(wall),
                    used.map_or(f64::NAN, rate)
                );
            }
        }
    }
}
