//! Small kernels whose time is known, from measurements on an H200 or by construction.

use std::sync::Arc;

use super::*;
use crate::Simulator;
use crate::device::{Argument, Buffer, Device, Fill, Pattern};
use crate::functional::Options;
use crate::ir::{self, OpKind, Type};
use crate::model::built_in;
use headstart_ir::math::Function;

/// A device with buffers, and a timer for it. L2 is empty when a launch starts.
struct Bench {
    device: Simulator,
    timer: Timer,
}

impl Bench {
    fn new(name: &str, overrides: &[&str]) -> Bench {
        let overrides: Vec<String> = overrides.iter().map(|&text| text.to_owned()).collect();
        let model = Arc::new(built_in(name, &overrides).expect("a built-in model"));
        let device = Simulator::custom(model.description(), Options::FAST, None);
        Bench {
            device,
            timer: Timer::new(model).with_results().with_cache(CacheState::Flushed),
        }
    }

    fn with_cores(mut self, cores: Cores) -> Bench {
        self.timer = self.timer.with_cores(cores);
        self
    }

    fn buffer(&self, element: Type, length: u64, pattern: Pattern) -> Argument {
        let buffer: Buffer = self
            .device
            .allocate(element, length, Fill::Pattern(pattern))
            .expect("fits");
        Argument::Buffer(buffer)
    }

    fn time(&self, text: &str, groups: u32, group: u32, arguments: Vec<Argument>) -> LaunchTime {
        let kernel = ir::read(text, "test.hsir").unwrap_or_else(|error| panic!("{error}\n{text}"));
        let launch = Launch::new(groups, group, arguments);
        let code = self.timer.compile(&kernel, &launch).expect("compiles");
        self.timer.run(&code, &launch).expect("runs")
    }

    /// As [`Bench::time`], after a launch of the same.
    fn time_again(&self, text: &str, groups: u32, group: u32, arguments: Vec<Argument>) -> LaunchTime {
        let kernel = Arc::new(ir::read(text, "test.hsir").unwrap_or_else(|error| panic!("{error}\n{text}")));
        let launch = Launch::new(groups, group, arguments);
        let timer = self.timer.clone().with_cache(CacheState::Kept);
        let survey = timer.survey(&kernel, &launch, None).map(Arc::new);
        let code = timer.compile(&kernel, &launch).expect("compiles");
        timer.with_survey(survey).run(&code, &launch).expect("runs")
    }
}

fn index(value: u64) -> Argument {
    Argument::Scalar(Type::I64, value)
}

/// A loop of `count` iterations around `body`, which makes `%next` of `%x`.
fn chain(ty: &str, start: &str, body: &str) -> String {
    format!(
        "hsir 1
        kernel @chain(%out: ptr.global {ty}[%out_len] align 8 unaliased, %out_len: i64, %count: i64) {{
          %local = id.local.x
          %item = extend.u %local to i64
          %last = loop (%j = 0:i64, %x = {start}:{ty}) -> {ty} {{
            %more = lt.s %j, %count
            if %more {{ yield }} else {{ break %x }}
            {body}
            %after = add.nw %j, 1:i64
            continue %after, %next
          }}
          %to = address %out + %item * {}
          store %to, %last
          return
        }}",
        if ty.ends_with("64") { 8 } else { 4 }
    )
}

/// So many links, one behind the other, from `%x` to `%next`.
fn links(count: usize, link: impl Fn(&str, &str) -> String) -> String {
    let name = |at: usize| match at {
        0 => "%x".to_owned(),
        at if at == count => "%next".to_owned(),
        at => format!("%x{at}"),
    };
    let all: Vec<String> = (0..count).map(|at| link(&name(at), &name(at + 1))).collect();
    all.join("\n")
}

/// Cycles that each further link of a chain takes, for one sub-group.
fn per_link(ty: &str, start: &str, link: impl Fn(&str, &str) -> String) -> f64 {
    let bench = Bench::new("h200", &[]);
    let element = Type::parse(ty).expect("a type");
    let cycles = |count: usize| {
        let out = bench.buffer(element, 32, Pattern::Constant(0));
        bench
            .time(
                &chain(ty, start, &links(count, &link)),
                1,
                32,
                vec![out, index(32), index(100)],
            )
            .cycles
    };
    (cycles(28) - cycles(12)) / 1600.0
}

#[test]
fn dependent_instructions_take_their_latency() {
    // Measured on an H200, 2026-11-21: 4.0 (4.5 with the loop), 8.0.
    let fma32 = per_link("f32", "1.5", |from, to| {
        format!("{to} = fma {from}, {from}, {from}")
    });
    assert!((3.5..5.0).contains(&fma32), "{fma32}");
    let fma64 = per_link("f64", "1.5", |from, to| {
        format!("{to} = fma {from}, {from}, {from}")
    });
    assert!((7.5..9.0).contains(&fma64), "{fma64}");
    for (ty, operation, measured) in [
        ("f32", "sqrt", 55.9),
        ("f64", "sqrt", 92.0),
        ("f64", "fdiv", 124.0),
    ] {
        let each = per_link(ty, "1.5", |from, to| match operation {
            "fdiv" => format!("{to} = fdiv {from}, {from}"),
            _ => format!("{to} = {operation} {from}"),
        });
        let error = each / measured - 1.0;
        println!("{operation} {ty}: {each}, measured {measured}");
        assert!(error.abs() < 0.2, "{operation} {ty}: {each}, measured {measured}");
    }
}

#[test]
fn units_limit_many_sub_groups() {
    // 64 lanes a cycle: a double-precision instruction of each of 32 sub-groups takes 16 cycles.
    let bench = Bench::new("h200", &[]);
    let cycles = |count: usize| {
        let links = links(count, |from, to| format!("{to} = fma {from}, {from}, {from}"));
        let out = bench.buffer(Type::F64, 1024, Pattern::Constant(0));
        let text = chain("f64", "1.5", &links);
        bench
            .time(&text, 1, 1024, vec![out, index(1024), index(50)])
            .cycles
    };
    let each = (cycles(28) - cycles(12)) / 800.0;
    assert!((15.0..17.0).contains(&each), "{each}");
}

/// Cycles that each of 32 sub-groups' multiply-adds takes the core. Four chains take turns: `%x`, their start, and their
/// factors and summands are computed from the work-item's id.
fn multiply_adds(bench: &Bench, ty: &str, link: impl Fn(&str, usize) -> String) -> f64 {
    let cycles = |rounds: usize| {
        let mut body: Vec<String> = (0..4)
            .map(|chain| format!("%c{chain}x0 = fadd %x, {chain}.0:{ty}"))
            .collect();
        for round in 0..rounds {
            for chain in 0..4 {
                let link = link(&format!("%c{chain}x{round}"), chain);
                body.push(format!("%c{chain}x{} = {link}", round + 1));
            }
        }
        let ends: Vec<String> = (0..4).map(|chain| format!("%c{chain}x{rounds}")).collect();
        body.push(format!("%s0 = fadd {}, {}", ends[0], ends[1]));
        body.push(format!("%s1 = fadd {}, {}", ends[2], ends[3]));
        body.push("%next = fadd %s0, %s1".to_owned());
        let before: String = (0..4)
            .map(|chain| {
                format!("%by{chain} = fmul %own, 0.{chain}5:{ty}\n%to{chain} = fadd %own, 0.{chain}5:{ty}\n")
            })
            .collect();
        let text = chain(ty, "1.5", &body.join("\n")).replace(
            "%last = loop",
            &format!("%own = unsigned_to_float %item to {ty}\n{before}%last = loop"),
        );
        let out = bench.buffer(Type::parse(ty).expect("a type"), 1024, Pattern::Constant(0));
        bench
            .time(&text, 1, 1024, vec![out, index(1024), index(50)])
            .cycles
    };
    (cycles(12) - cycles(4)) / (50.0 * 8.0 * 4.0)
}

#[test]
fn older_work_groups_go_first_and_sub_groups_of_one_take_turns() {
    // Measured on an H200, 2026-11-23, eight square roots, each with a jump: eight sub-groups of a scheduler end after 694 to 733
    // cycles a turn in one work-group. In eight they end one after the other, after 578 to 832, and the last are alone in the end.
    let bench = Bench::new("h200", &["core.count=1"]);
    let roots = links(8, |from, to| format!("{to} = sqrt {from}"));
    let text = chain("f32", "1.5", &roots);
    let cycles = |groups: u32, group: u32| {
        let out = bench.buffer(Type::F32, 1024, Pattern::Constant(0));
        bench
            .time(&text, groups, group, vec![out, index(1024), index(200)])
            .cycles
    };
    let ratio = cycles(1, 1024) / cycles(8, 128);
    assert!((0.7..0.92).contains(&ratio), "{ratio}");
}

#[test]
fn operands_are_read_from_registers() {
    // `micro/operands` on an H200, 2026-11-23: 24.3 and 16.2 cycles in 64 bits, 13.1 and 8.5 in 32.
    let bench = Bench::new("h200", &[]);
    let three = |from: &str, chain: usize| format!("fma {from}, %by{chain}, %to{chain}");
    let two = |from: &str, chain: usize| format!("fma {from}, 0.5:f64, %to{chain}");
    let apart = multiply_adds(&bench, "f64", three);
    assert!((23.0..25.5).contains(&apart), "{apart}");
    let fewer = multiply_adds(&bench, "f64", two);
    assert!((15.5..17.0).contains(&fewer), "{fewer}");
    let floats = multiply_adds(&bench, "f32", three);
    assert!((11.8..13.2).contains(&floats), "{floats}");
    // The previous instruction's operand is in the reuse cache: only the chain's own register is read.
    let together = multiply_adds(&bench, "f64", |from, _| format!("fma {from}, %by0, %to0"));
    assert!((15.5..17.0).contains(&together), "{together}");
    // Where nothing is said of it, operands cost nothing.
    let free = Bench::new("h200", &["core.operand-words=1000"]);
    let apart = multiply_adds(&free, "f64", three);
    assert!((15.5..17.0).contains(&apart), "{apart}");
}

/// Follows indices through a table: each load waits for the one before.
const CHASE: &str = "hsir 1
    kernel @chase(%table: ptr.global i64[%len] align 8 readonly unaliased, %len: i64,
                  %out: ptr.global i64[%out_len] align 8 unaliased, %out_len: i64, %count: i64) {
      load @table
      %local = id.local.x
      %item = extend.u %local to i64
      %last = loop (%j = 0:i64, %at = 0:i64) -> i64 {
        %more = lt.s %j, %count
        if %more { yield } else { break %at }
        %ptr = address %table + %at * 8
        %next = load i64 %ptr, @table
        %after = add.nw %j, 1:i64
        continue %after, %next
      }
      %to = address %out + %item * 8
      store %to, %last
      return
    }";

fn chase(bench: &Bench, table: Argument, length: u64, count: u64) -> f64 {
    let out = bench.buffer(Type::I64, 32, Pattern::Constant(0));
    bench
        .time(
            CHASE,
            1,
            1,
            vec![table, index(length), out, index(32), index(count)],
        )
        .cycles
}

#[test]
fn a_pointer_chase_sees_each_level() {
    let bench = Bench::new("h200", &[]);
    // Every element leads to the first: after one miss, hits in L1. The same chain of a load, its address and a jump
    // takes 60 cycles on an H200 (`micro/latency footprint=16384`).
    let zero = bench.buffer(Type::I64, 64, Pattern::Constant(0));
    let l1 = (chase(&bench, zero.clone(), 64, 600) - chase(&bench, zero, 64, 100)) / 500.0;
    assert!((54.0..66.0).contains(&l1), "{l1}");
    // Each element names a random one of 1 GiB: 669 cycles on an H200.
    let random = bench.buffer(
        Type::I64,
        1 << 27,
        Pattern::Below {
            bound: 1 << 27,
            seed: 7,
        },
    );
    let dram = chase(&bench, random, 1 << 27, 500) / 500.0;
    assert!((669.0 * 0.9..669.0 * 1.1).contains(&dram), "{dram}");
}

#[test]
fn a_small_launch_finds_its_buffers_in_l2_unless_it_is_flushed() {
    // A stream of a line a step, each word of which leads to the next one: every load misses L1.
    let per_load = |cache: CacheState, length: u64| {
        let mut bench = Bench::new("h200", &[]);
        bench.timer = bench.timer.with_cache(cache);
        let table = bench.buffer(Type::I64, length, Pattern::Steps { first: 16, step: 1 });
        (chase(&bench, table.clone(), length, 900) - chase(&bench, table, length, 100)) / 800.0
    };
    // 160 kB; 300 cycles are L2's latency there, 660 that of device memory.
    let kept = per_load(CacheState::Kept, 20_000);
    let flushed = per_load(CacheState::Flushed, 20_000);
    assert!(kept < 0.6 * flushed, "{kept} and {flushed}");
    // 1 GiB is in no L2.
    let large = per_load(CacheState::Kept, 1 << 27);
    assert!((0.95..1.05).contains(&(large / flushed)), "{large} and {flushed}");
}

#[test]
fn a_launch_finds_what_it_touches_of_a_large_buffer_in_l2_where_that_fits() {
    // The same of 1 GiB.
    let bench = Bench::new("h200", &[]);
    let length = 1 << 27;
    let table = bench.buffer(Type::I64, length, Pattern::Steps { first: 16, step: 1 });
    let per_load = |count: u64, again: bool| {
        let out = bench.buffer(Type::I64, 32, Pattern::Constant(0));
        let arguments = vec![table.clone(), index(length), out, index(32), index(count)];
        let time = match again {
            true => bench.time_again(CHASE, 1, 1, arguments),
            false => bench.time(CHASE, 1, 1, arguments),
        };
        time.cycles / count as f64
    };
    let ratio = |count: u64| per_load(count, true) / per_load(count, false);
    let fits = ratio(5_000);
    assert!(fits < 0.6, "{fits}");
    // 51 MB of one core: the near half keeps none of its lines, the far one all of its own. (An H200 takes 570 cycles a load that
    // goes round in 48 MiB, and 700 in 64 MiB: `micro/latency`.)
    let half = ratio(400_000);
    assert!((0.75..0.9).contains(&half), "{half}");
    // Of 128 MB nothing is left.
    let large = ratio(1_000_000);
    assert!((0.95..1.05).contains(&large), "{large}");
}

#[test]
fn cores_with_a_work_group_more_have_as_much_more_of_the_memory() {
    // 200 work-groups: two in 68 cores, one in 64, all waiting for device memory.
    let cycles = |cores: Cores| {
        let bench = Bench::new("h200", &[]).with_cores(cores);
        let length = 1 << 27;
        let pattern = Pattern::Below {
            bound: length,
            seed: 7,
        };
        let table = bench.buffer(Type::I64, length, pattern);
        let items = 200 * 1024;
        let out = bench.buffer(Type::I64, items, Pattern::Constant(0));
        let arguments = vec![table, index(length), out, index(items), index(20)];
        bench.time(SCATTERED, 200, 1024, arguments).cycles
    };
    let (all, sample) = (cycles(Cores::All), cycles(Cores::Exactly(4)));
    assert!((sample / all - 1.0).abs() < 0.08, "{sample} and {all}");
}

/// Each work-item follows indices through a table from a place of its own.
const SCATTERED: &str = "hsir 1
    kernel @scattered(%table: ptr.global i64[%len] align 8 readonly unaliased, %len: i64,
                      %out: ptr.global i64[%out_len] align 8 unaliased, %out_len: i64, %count: i64) {
      load @table
      %local = id.local.x
      %group = id.group.x
      %before = mul %group, 1024:i32
      %item32 = add %before, %local
      %item = extend.u %item32 to i64
      %last = loop (%j = 0:i64, %at = %item) -> i64 {
        %more = lt.s %j, %count
        if %more { yield } else { break %at }
        %ptr = address %table + %at * 8
        %next = load i64 %ptr, @table
        %after = add.nw %j, 1:i64
        continue %after, %next
      }
      %to = address %out + %item * 8
      store %to, %last
      return
    }";

#[test]
fn sub_groups_get_equal_shares_of_a_busy_memory() {
    // On an H200 the work-groups of a core that scatter their loads end within 1 % of each other.
    let bench = Bench::new("h200", &[]);
    let length = 1 << 27;
    let pattern = Pattern::Below {
        bound: length,
        seed: 7,
    };
    let table = bench.buffer(Type::I64, length, pattern);
    let items = 2 * 132 * 1024;
    let out = bench.buffer(Type::I64, items, Pattern::Constant(0));
    let arguments = vec![table, index(length), out, index(items), index(30)];
    let time = bench.time(SCATTERED, 2 * 132, 1024, arguments);
    assert!(
        time.resident_sub_groups > 0.95 * 64.0,
        "{}",
        time.resident_sub_groups
    );
}

#[test]
fn a_model_with_slower_memory_is_slower() {
    let cycles = |overrides: &[&str]| {
        let bench = Bench::new("h200", overrides);
        let random = bench.buffer(
            Type::I64,
            1 << 27,
            Pattern::Below {
                bound: 1 << 27,
                seed: 7,
            },
        );
        chase(&bench, random, 1 << 27, 300) / 300.0
    };
    let difference = cycles(&["dram.latency=902"]) - cycles(&[]);
    assert!((280.0..320.0).contains(&difference), "{difference}");
}

/// The first sub-group of a group loads; all meet at a barrier.
const MEET: &str = "hsir 1
    kernel @meet(%data: ptr.global i32[%len] align 4 readonly unaliased, %len: i64,
                 %out: ptr.global i32[%out_len] align 4 unaliased, %out_len: i64) group 128,1,1 {
      shared @pass: i32[128] align 4
      load @data
      load @pass
      %local = id.local.x
      %item = extend.u %local to i64
      %from = address %data + %item * 4
      %value = load i32 %from, @data
      %pass_at = array @pass
      %mine = address %pass_at + %item * 4
      store %mine, %value
      barrier
      %other = xor %item, 127:i64
      %theirs = address %pass_at + %other * 4
      %got = load i32 %theirs, @pass
      %to = address %out + %item * 4
      store %to, %got
      return
    }";

#[test]
fn sub_groups_meet_at_a_barrier_and_pass_values() {
    let bench = Bench::new("h200", &[]);
    let data = bench.buffer(Type::I32, 128, Pattern::Steps { first: 5, step: 3 });
    let out = bench.buffer(Type::I32, 128, Pattern::Constant(0));
    let time = bench.time(MEET, 1, 128, vec![data, index(128), out.clone(), index(128)]);
    assert!((600.0..1500.0).contains(&time.cycles), "{}", time.cycles);
    let Argument::Buffer(out) = out else {
        unreachable!("just made")
    };
    let memory: Arc<crate::functional::BufferMemory> = out.implementation().expect("ours");
    let mut bytes = [0; 4];
    memory.copy_out(0, &mut bytes).expect("written");
    assert_eq!(u32::from_le_bytes(bytes), 5 + 3 * 127);
}

/// The values of 128 floats of a buffer.
fn floats(buffer: &Argument) -> impl Iterator<Item = f32> {
    let Argument::Buffer(buffer) = buffer else {
        panic!("a number is no buffer")
    };
    let memory: Arc<crate::functional::BufferMemory> = buffer.implementation().expect("ours");
    let mut bytes = [0; 512];
    memory.copy_out(0, &mut bytes).expect("written");
    (0..128).map(move |at| f32::from_le_bytes(std::array::from_fn(|byte| bytes[4 * at + byte])))
}

/// Each work-item takes an exponential, which has the bits of the host.
fn exponentials(name: &str) -> LaunchTime {
    let bench = Bench::new(name, &[]);
    let text = "hsir 1
    kernel @exponentials(%data: ptr.global f32[%len] align 4 readonly unaliased, %len: i64,
                         %out: ptr.global f32[%out_len] align 4 unaliased, %out_len: i64) {
      load @data
      %local = id.local.x
      %item = extend.u %local to i64
      %from = address %data + %item * 4
      %x = load f32 %from, @data
      %to = address %out + %item * 4
      store %to, %x
      return
    }";
    let mut kernel = ir::read(text, "test.hsir").expect("a kernel");
    let at = kernel.body.ops.len() - 2;
    let OpKind::Store { values, .. } = &kernel.body.ops[at].kind else {
        panic!("the last operation but one stores")
    };
    let x = values[0];
    let mut builder = ir::Builder::new(&mut kernel, Kernel::NOWHERE);
    let result = Function::Exp.emit(&mut builder, &[x]);
    let made = builder.finish().ops;
    if let OpKind::Store { values, .. } = &mut kernel.body.ops[at].kind {
        *values = vec![result];
    }
    kernel.body.ops.splice(at..at, made);
    ir::verify(&kernel).expect("it is in order");
    let data = bench.buffer(Type::F32, 128, Pattern::Fractions { low: -4.0 });
    let out = bench.buffer(Type::F32, 128, Pattern::Constant(0));
    let arguments = vec![data.clone(), index(128), out.clone(), index(128)];
    let launch = Launch::new(1, 128, arguments);
    let code = bench.timer.compile(&kernel, &launch).expect("compiles");
    let time = bench.timer.run(&code, &launch).expect("runs");
    for (x, found) in floats(&data).zip(floats(&out)) {
        assert_eq!(
            found.to_bits(),
            Function::Exp.f32(&[x]).to_bits(),
            "{name}: exp({x})"
        );
    }
    time
}

#[test]
fn functions_by_tables_are_written_out_where_they_are_no_instructions() {
    let time = exponentials("h200").work_item_instructions;
    for name in ["a100", "xe-lp"] {
        let written_out = exponentials(name).work_item_instructions;
        assert!(
            written_out > 2.0 * time,
            "{name}: {written_out} instructions, {time} of an H200"
        );
    }
}

/// Each work-item sums its row.
const ROWS: &str = "hsir 1
    kernel @rows(%data: ptr.global f32[%len] align 4 readonly unaliased, %len: i64,
                 %out: ptr.global f32[%out_len] align 4 unaliased, %out_len: i64, %count: i64) group 64,1,1 {
      load @data
      %group = id.group.x
      %local = id.local.x
      %before = mul %group, 64:i32
      %item32 = add %before, %local
      %item = extend.u %item32 to i64
      %items = id.group_count.x
      %wide = mul %items, 64:i32
      %width = extend.u %wide to i64
      %sum = loop (%j = 0:i64, %acc = 0.0:f32) -> f32 {
        %more = lt.s %j, %count
        if %more { yield } else { break %acc }
        %row = mul %j, %width
        %at = add %row, %item
        %ptr = address %data + %at * 4
        %value = load f32 %ptr, @data
        %acc1 = fadd %acc, %value
        %after = add.nw %j, 1:i64
        continue %after, %acc1
      }
      %to = address %out + %item * 4
      store %to, %sum
      return
    }";

fn rows(bench: &Bench, groups: u32) -> LaunchTime {
    let items = u64::from(groups) * 64;
    let data = bench.buffer(Type::F32, items * 20, Pattern::Fractions { low: 1.0 });
    let out = bench.buffer(Type::F32, items, Pattern::Constant(0));
    bench.time(
        ROWS,
        groups,
        64,
        vec![data, index(items * 20), out, index(items), index(20)],
    )
}

#[test]
fn runs_are_repeatable_and_samples_are_close() {
    let sampled = rows(&Bench::new("xe-lp", &[]), 60);
    assert_eq!(sampled, rows(&Bench::new("xe-lp", &[]), 60));
    let whole = rows(&Bench::new("xe-lp", &[]).with_cores(Cores::All), 60);
    assert!(whole.sample.is_whole() && sampled.sample.cores < whole.sample.cores);
    let error = sampled.cycles / whole.cycles - 1.0;
    assert!(error.abs() < 0.1, "{} {}", sampled.cycles, whole.cycles);
    let instructions = sampled.instructions / whole.instructions - 1.0;
    assert!(instructions.abs() < 0.01, "{instructions}");
}

#[test]
fn many_rounds_of_work_groups_are_extrapolated() {
    let bench = || Bench::new("h200", &["core.count=2", "core.work-groups=4"]);
    let some = rows(&bench().with_cores(Cores::Exactly(1)), 240);
    let whole = rows(&bench().with_cores(Cores::All), 240);
    assert!(some.sample.groups < 40, "{:?}", some.sample);
    let error = some.cycles / whole.cycles - 1.0;
    assert!(error.abs() < 0.1, "{} {}", some.cycles, whole.cycles);
}

#[test]
fn stalls_name_the_place_and_the_reason() {
    let bench = Bench::new("h200", &[]);
    let time = rows(&bench, 8);
    assert!(time.waiting_for_memory() > 0.5, "{:?}", time.stalled);
    let total: f64 = time.stalled.iter().sum();
    assert!(total <= 1.0, "{total}");
    assert!(time.places[0].stalls[StallReason::LongScoreboard as usize] > 0.0);
    let counters = time.counters();
    assert!(counters.get("stalled: long scoreboard") > Some(0));
    assert_eq!(counters.get("device memory bytes read"), Some(8 * 64 * 20 * 4));
}

#[test]
fn a_launch_that_does_not_fit_says_why() {
    let bench = Bench::new("h200", &["registers.pooled.per-core=512"]);
    let kernel = ir::read(ROWS, "test.hsir").expect("right");
    let data = bench.buffer(Type::F32, 64, Pattern::Constant(0));
    let arguments = vec![data.clone(), index(64), data, index(64), index(1)];
    let launch = Launch::new(1, 64, arguments);
    let code = bench.timer.compile(&kernel, &launch).expect("compiles");
    let error = bench
        .timer
        .run(&code, &launch)
        .expect_err("no registers")
        .to_string();
    assert!(
        error.contains("does not fit into a core") && error.contains("registers"),
        "{error}"
    );
}

#[test]
fn waiting_is_told_by_load_and_loop() {
    let bench = Bench::new("h200", &[]);
    let random = Pattern::Below {
        bound: 1 << 27,
        seed: 7,
    };
    let table = bench.buffer(Type::I64, 1 << 27, random);
    let out = bench.buffer(Type::I64, 32, Pattern::Constant(0));
    let arguments = vec![table, index(1 << 27), out, index(32), index(300)];
    let time = bench.time(CHASE, 1, 32, arguments);
    let [load] = &time.loads[..] else {
        panic!("one load: {:?}", time.loads)
    };
    // All work-items start at element 0, and go to the same places: one line, one piece of device memory each time.
    assert_eq!((load.executed, load.work_items), (300.0, 9600.0));
    assert_eq!(load.lines, 300.0);
    assert_eq!(load.memory_bytes, 300.0 * 64.0);
    assert!(
        load.waited > 0.9 * time.cycles && load.waited <= time.cycles,
        "{load:?}"
    );
    let [looped] = &time.loops[..] else {
        panic!("one loop: {:?}", time.loops)
    };
    assert_eq!(looped.iterations, 300.0);
    assert_eq!(looped.loads, [load.load]);
    // The store behind the loop waits for the last one.
    assert!(looped.stalls[StallReason::LongScoreboard as usize] >= 0.99 * load.waited);
    // One sub-group on a whole device: every unit is idle nearly all the time.
    assert!(time.units[0].cycles < 0.01 * time.cycles, "{:?}", time.units);
}

#[test]
fn a_kernel_that_is_surely_behind_is_given_up() {
    let bench = Bench::new("h200", &[]);
    let text = include_str!("../../../../headstart/tests/in/gather.hsir");
    let plain = ir::read(text, "gather.hsir").expect("a kernel");
    let plan = "unroll:8,values=rolling-registers:8".parse().expect("a plan");
    let planned = headstart_prefetch::apply(&plain, &plan, &headstart_prefetch::Target::default())
        .expect("legal")
        .kernel;
    // Long enough that filling the ring is a small part of it.
    let (groups, group, items, table) = (4, 128, 1024, 1u64 << 24);
    let count = u64::from(groups * group) * items;
    let launch = || {
        let below = Pattern::Below {
            bound: table,
            seed: 7,
        };
        let arguments = vec![
            bench.buffer(Type::I32, count, below),
            index(count),
            bench.buffer(Type::F32, table, Pattern::Fractions { low: 1.0 }),
            index(table),
            bench.buffer(Type::F32, u64::from(groups * group), Pattern::Constant(0)),
            index(u64::from(groups * group)),
            index(items),
        ];
        Launch::new(groups, group, arguments)
    };
    let values = headstart_prefetch::candidates(&plain)
        .into_iter()
        .find(|load| load.name.param() == "values");
    let mut pace = Pace::new(vec![values.expect("the load").id]);
    let race = |kernel: &Kernel, pace: &Pace| {
        let launch = launch();
        let code = bench.timer.compile(kernel, &launch).expect("compiles");
        bench.timer.race(&code, &launch, pace).expect("runs")
    };
    let Raced::Ended(slow, course) = race(&plain, &pace) else {
        panic!("nobody leads yet");
    };
    pace.ended(&course, 1.0);
    let Raced::Ended(fast, course) = race(&planned, &pace) else {
        panic!("the faster one is behind");
    };
    let speedup = slow.nanoseconds / fast.nanoseconds;
    pace.ended(&course, speedup);
    let Raced::Behind(behind) = race(&plain, &pace) else {
        panic!("the plain kernel is not given up");
    };
    assert!(behind.after < 0.7, "{behind:?}");
    assert!(
        behind.at_most > 1.0 && behind.at_most <= speedup,
        "{behind:?} {speedup}"
    );
    assert!((0.7..1.3).contains(&behind.estimate), "{behind:?}");
    // Whoever takes no longer than it may is timed to the end, however slow.
    let Raced::Ended(..) = race(&plain, &Pace::within(slow.nanoseconds)) else {
        panic!("given up in time");
    };
    let Raced::Behind(_) = race(&plain, &Pace::within(0.9 * slow.nanoseconds)) else {
        panic!("not given up in time");
    };
}

#[test]
fn a_window_in_the_middle_holds_whole_iterations_and_changes_no_cycle() {
    let bench = Bench::new("h200", &[]);
    let kernel = ir::read(&chain("f32", "0.0", "%next = fadd %x, 1.0:f32"), "test.hsir").expect("a kernel");
    let out = bench.buffer(Type::F32, 128, Pattern::Constant(0));
    let launch = Launch::new(1, 128, vec![out, index(128), index(200)]);
    let code = bench.timer.compile(&kernel, &launch).expect("compiles");
    let plain = bench.timer.run(&code, &launch).expect("runs");
    assert!(plain.watched.is_empty(), "nobody asked for it");
    let &[(from, to)] = plain.lives.as_slice() else {
        panic!("one work-group: {:?}", plain.lives)
    };
    let middle = u64::midpoint(from, to);
    let watch = plain.middle(400, 2).expect("a work-group");
    assert_eq!(watch.to - watch.from, 400);
    assert!(watch.from < middle && middle < watch.to && watch.to < to);
    // Half of a life at most: neither start nor end are seen.
    let long = plain.middle(1 << 40, 2).expect("a work-group");
    assert_eq!(long.to - long.from, (to - from) / 2);
    let again = bench
        .timer
        .clone()
        .with_watch(Some(watch))
        .run(&code, &launch)
        .expect("runs");
    assert_eq!((again.cycles, &again.waited), (plain.cycles, &plain.waited));
    assert_eq!(again.watched.len(), 2);
    for issues in &again.watched {
        let jumps: Vec<u64> = issues
            .windows(2)
            .filter(|pair| pair[1].instruction < pair[0].instruction)
            .map(|pair| pair[1].at)
            .collect();
        assert!(jumps.len() > 5, "{jumps:?}");
        let takes: Vec<u64> = jumps.windows(2).map(|pair| pair[1] - pair[0]).collect();
        // In the steady state each takes as long as the others, to a cycle or two.
        let (least, most) = (takes.iter().min(), takes.iter().max());
        assert!(
            most.zip(least).is_some_and(|(most, least)| most - least <= 2),
            "{takes:?}"
        );
        assert!(
            issues
                .iter()
                .all(|issue| issue.at >= watch.from && issue.since < watch.to)
        );
    }
}

/// The text of a product with these sums before and after, and how many registers they have.
type Product = (fn(&str, &str) -> String, usize);

const HALVES: Product = (
    |after, before| {
        format!(
            "{after} = opaque \"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {{=0, =1, =2, =3}}, {{@0, @1, @2, @3}}, {{@4, @5}}, \
             {{@6, @7, @8, @9}};\" nothing unordered settled (f32, f32, f32, f32) ({}, {before})\n",
            ["%word"; 6].join(", ")
        )
    },
    4,
);

/// `m64n64k16` of a warp group.
const OF_WARP_GROUPS: Product = (
    |after, before| {
        let registers: Vec<String> = (0..32).map(|number| format!("={number}")).collect();
        format!(
            "{after} = opaque \"wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {{{}}}, @0, @1, 1, 1, 1, 0, 0\" shared unordered ({}) \
             (%j, %j, {before})\n",
            registers.join(", "),
            ["f32"; 32].join(", ")
        )
    },
    32,
);

/// Cycles of `count` products in a loop of 100 iterations, by `groups` sub-groups on one core; all add to one sum where they
/// are `dependent`.
fn products((product, registers): Product, count: usize, groups: u32, dependent: bool) -> f64 {
    let bench = Bench::new("h100", &[]).with_cores(Cores::Exactly(1));
    let out = bench.buffer(Type::F32, 32, Pattern::Constant(0));
    let sums = if dependent { 1 } else { count };
    let name = |sum: usize, step: usize, part: usize| format!("%s{sum}_{step}_{part}");
    let mut body = String::new();
    for at in 0..count {
        let (sum, step) = if dependent { (0, at) } else { (at, 0) };
        let of = |step: usize| {
            (0..registers)
                .map(|part| name(sum, step, part))
                .collect::<Vec<_>>()
                .join(", ")
        };
        body.push_str(&product(&of(step + 1), &of(step)));
    }
    let last = if dependent { count } else { 1 };
    let all = |step: usize| -> Vec<String> {
        let parts = (0..sums).flat_map(|sum| (0..registers).map(move |part| (sum, part)));
        parts.map(|(sum, part)| name(sum, step, part)).collect()
    };
    let starts: Vec<String> = all(0).iter().map(|own| format!("{own} = 0.0:f32")).collect();
    let types = vec!["f32"; registers * sums].join(", ");
    let ends: Vec<String> = (0..registers * sums)
        .map(|number| format!("%end{number}"))
        .collect();
    let text = format!(
        "hsir 1
        kernel @products(%out: ptr.global f32[%out_len] align 8 unaliased, %out_len: i64, %count: i64) {{
          shared @tile: i32[1024] align 1024
          %word = id.local.x
          {} = loop (%j = 0:i64, {}) -> {types} {{
            %more = lt.s %j, %count
            if %more {{ yield }} else {{ break {} }}
            {body}
            %after = add.nw %j, 1:i64
            continue %after, {}
          }}
          store %out, %end0
          return
        }}",
        ends.join(", "),
        starts.join(", "),
        all(0).join(", "),
        all(last).join(", ")
    );
    bench
        .time(&text, 1, 32 * groups, vec![out, index(32), index(100)])
        .cycles
}

#[test]
fn tensor_cores_take_as_long_as_on_an_h200() {
    // Measured: 27.3 cycles from one product to the next that adds to it; 1.8 cycles of a core where none waits.
    let waiting = (products(HALVES, 12, 1, true) - products(HALVES, 4, 1, true)) / 800.0;
    assert!((25.0..30.0).contains(&waiting), "{waiting} cycles");
    let busy = (products(HALVES, 6, 16, false) - products(HALVES, 4, 16, false)) / (2.0 * 100.0 * 16.0);
    assert!((1.7..1.9).contains(&busy), "{busy} cycles");
}

#[test]
fn warp_groups_multiply_as_fast_as_on_an_h200() {
    // Measured: 35.2 cycles from one product of a warp group to the next that adds to it, and twice as much for two warp groups.
    for (sub_groups, range) in [(4, 34.0..37.0), (8, 68.0..73.0)] {
        let cycles =
            products(OF_WARP_GROUPS, 12, sub_groups, true) - products(OF_WARP_GROUPS, 4, sub_groups, true);
        let each = cycles / 800.0;
        assert!(range.contains(&each), "{sub_groups} sub-groups: {each} cycles");
    }
}

/// A kernel that moves matrices once: `pointer` is computed from `%matrix`, `%tile` in shared memory, and the lane.
fn moves(body: &str) -> LaunchTime {
    let bench = Bench::new("h100", &[]).with_cores(Cores::Exactly(1));
    let text = format!(
        "hsir 1
        kernel @moves(%matrix: ptr.global i32[%length] align 16 unaliased, %length: i64, %out: ptr.global i32[32:i64] align 4 unaliased) {{
          shared @tile: i32[1024] align 16
          %lane = id.local.x
          %wide = extend.u %lane to i64
          %tile = array @tile
          {body}
          %to = address %out + %wide * 4
          store %to, %a
          return
        }}"
    );
    let matrix = bench.buffer(Type::I32, 4096, Pattern::Constant(0));
    let out = bench.buffer(Type::I32, 32, Pattern::Constant(0));
    bench.time(&text, 1, 32, vec![matrix, index(4096), out])
}

#[test]
fn moves_of_matrices_take_the_traffic_of_their_accesses() {
    let registers = |letter: char, count: usize| {
        let names: Vec<String> = (0..count).map(|number| format!("{letter}{number}")).collect();
        names.join(", ")
    };
    let (made, types) = (registers('=', 8), ["i32"; 8].join(", "));
    let results = format!(
        "%a, {}",
        (1..8)
            .map(|number| format!("%a{number}"))
            .collect::<Vec<_>>()
            .join(", ")
    );
    // 16 rows of 32 bytes, 256 bytes apart: each of four registers is 16 bytes of eight rows.
    let a = moves(&format!(
        "{results} = opaque \"wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {{{made}}}, [@0], 128\" reads unordered settled ({types}) (%matrix)"
    ));
    assert_eq!((a.memory.loads, a.memory.l1_sectors), (4, 32), "{:?}", a.memory);
    assert_eq!(a.memory.l2_sectors * 32, 512, "{:?}", a.memory);
    let floats = ["f32"; 8].join(", ");
    let c = moves(&format!(
        "{} = opaque \"wmma.load.c.sync.aligned.row.m16n16k16.global.f32 {{{made}}}, [@0], 16\" reads unordered settled ({floats}) (%matrix)\n\
         opaque \"wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [@0], {{{}}}, 16\" anything unordered settled () (%matrix, {})\n%a = bits %f0 to i32",
        results.replace("%a", "%f").replacen("%f,", "%f0,", 1),
        (1..9)
            .map(|number| format!("@{number}"))
            .collect::<Vec<_>>()
            .join(", "),
        (0..8)
            .map(|number| format!("%f{number}"))
            .collect::<Vec<_>>()
            .join(", "),
    ));
    assert_eq!(
        (c.memory.loads, c.memory.l2_sectors * 32),
        (4, 1024),
        "{:?}",
        c.memory
    );
    // The matrix, and the output.
    assert_eq!(
        (c.memory.stores, c.memory.l2_written_sectors),
        (5, 36),
        "{:?}",
        c.memory
    );
    // Rows side by side meet in no bank; rows that are as far apart as there are banks all do.
    let rows = |stride: u32| {
        moves(&format!(
            "%from = address %tile + %wide * {stride}\n%a, %b, %c, %d = opaque \"ldmatrix.sync.aligned.m8n8.x4.shared.b16 \
             {{=0, =1, =2, =3}}, [@0]\" reads unordered settled (i32, i32, i32, i32) (%from)"
        ))
    };
    let (dense, apart) = (rows(16), rows(128));
    assert_eq!(
        (dense.memory.shared_accesses, dense.memory.bank_conflicts),
        (1, 0),
        "{:?}",
        dense.memory
    );
    assert_eq!(
        (apart.memory.shared_accesses, apart.memory.bank_conflicts),
        (1, 28),
        "{:?}",
        apart.memory
    );
    assert!(
        apart.cycles >= dense.cycles + 28.0,
        "{} and {}",
        apart.cycles,
        dense.cycles
    );
}

/// A launch of one sub-group that changes memory from `%at`, 16 bytes a work-item, as `change` says.
fn changes(change: &str) -> LaunchTime {
    let bench = Bench::new("h200", &[]).with_cores(Cores::Exactly(1));
    let text = format!(
        "hsir 1
        kernel @changes(%out: ptr.global f32[%length] align 16 unaliased, %length: i64) {{
          %local = id.local.x
          %lane = extend.u %local to i64
          %at = address %out + %lane * 16
          %next = address %at + 1:i64 * 16
          %one = signed_to_float %local to f32
          %wide = add %lane, 1:i64
          {change}
          return
        }}"
    );
    let out = bench.buffer(Type::F32, 4096, Pattern::Constant(0));
    bench.time(&text, 1, 32, vec![out, index(4096)])
}

#[test]
fn an_atomic_operation_takes_all_of_its_values() {
    let values = |count: usize| vec!["%one"; count].join(", ");
    let one = changes(&format!(
        "%o = atomic fadd relaxed device %at, {}\nstore %at, %o",
        values(1)
    ));
    let four = changes(&format!(
        "%o, %p, %q, %r = atomic fadd relaxed device %at, {}\nstore %at, %o",
        values(4)
    ));
    // A line, of eight work-items, changes 32 words and not 8, two in 1.5 cycles.
    assert!(
        four.cycles > one.cycles + 12.0,
        "{} and {} cycles",
        four.cycles,
        one.cycles
    );
    // One of 16 bytes changes memory, as the store of its answer does; its fence and its answer take time.
    let exchange = |order: &str| {
        changes(&format!(
            "%a, %b = opaque \"atom.{order}.gpu.global.exch.b128 {{=0, =1}}, [@0+-16], {{@1, @2}}\" anything alone settled \
             (i64, i64) (%next, %wide, %wide)\n%low = truncate %a to i32\n%number = signed_to_float %low to f32\nstore %at, %number"
        ))
    };
    let (relaxed, ordered) = (exchange("relaxed"), exchange("acq_rel"));
    assert_eq!(
        (relaxed.memory.stores, relaxed.memory.l2_written_sectors),
        (2, 32),
        "{:?}",
        relaxed.memory
    );
    assert!(
        ordered.cycles > relaxed.cycles,
        "{} and {} cycles",
        ordered.cycles,
        relaxed.cycles
    );
    let store = changes(
        "opaque \"st.relaxed.gpu.global.b128 [@0], {@1, @2}\" anything unordered alone settled () (%at, %wide, %wide)",
    );
    assert_eq!(store.memory.stores, 1, "{:?}", store.memory);
    let load = changes(
        "%a, %b = opaque \"ld.relaxed.gpu.global.b128 {=0, =1}, [@0]\" anything unordered alone settled (i64, i64) (%at)",
    );
    assert_eq!(
        (load.memory.loads, load.memory.l2_sectors),
        (1, 16),
        "{:?}",
        load.memory
    );
}
