//! Small kernels whose time is known, from measurements on an H200 or by construction.
//!
//! Here are the kernels and helpers that several modules use. A test that states a measured time names the device.

mod atomics;
mod caches;
mod functions;
mod instructions;
mod products;
mod races;
mod reports;
mod samples;
mod standstill;
mod work_groups;
mod writes;

use std::sync::Arc;

use super::*;
use crate::Simulator;
use crate::device::{Argument, Buffer, Device, Fill, Pattern};
use crate::functional::Options;
use crate::ir::{self, Type};
use crate::model::built_in;

/// A device with buffers, and a timer for it. A launch starts with an empty L2.
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

    /// As [`Bench::time`], but right after the same launch.
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

/// A loop of `count` iterations around `body`, which computes `%next` from `%x`.
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

/// `count` links in a row from `%x` to `%next`: each takes the result of the one before.
fn links(count: usize, link: impl Fn(&str, &str) -> String) -> String {
    let name = |at: usize| match at {
        0 => "%x".to_owned(),
        at if at == count => "%next".to_owned(),
        at => format!("%x{at}"),
    };
    let all: Vec<String> = (0..count).map(|at| link(&name(at), &name(at + 1))).collect();
    all.join("\n")
}

/// Follows indices through a table. Each load waits for the one before.
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

/// Cycles of one work-item that follows `count` indices.
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

/// Each work-item follows indices through a table, and starts at its own element.
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
