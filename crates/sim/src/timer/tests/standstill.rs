//! Launches whose work-groups wait for each other: they end where all that matter are resident, and are found where they never do.

use super::*;

/// A barrier of all work-groups: each adds to a word and waits until all have. `%left` may end the wait earlier, and each turn
/// of it takes `turn` away.
fn meeting(turn: &str) -> String {
    format!(
        "hsir 1
        kernel @meeting(%bar: ptr.global i32[%length] align 4, %length: i64, %out: ptr.global i32[%out_length] align 4,
            %out_length: i64) {{
          load @bar
          %count = id.group_count.x
          %group = id.group.x
          %item = id.local.x
          %first = eq %item, 0:i32
          if %first {{
            %old = atomic add relaxed device %bar, 1:i32
            loop 'spin (%left = 20000:i32) {{
              %seen = load i32 %bar, @bar volatile
              %few = lt.u %seen, %count
              %may = lt.s 0:i32, %left
              %again = and %few, %may
              if %again {{ yield }} else {{ break 'spin }}
              %after = sub %left, {turn}:i32
              continue 'spin %after
            }}
            yield
          }}
          barrier
          %wide = extend.u %group to i64
          %to = address %out + %wide * 4
          store %to, %count
          return
        }}"
    )
}

/// A launch of work-groups of 1,024 on one core of an H200, which holds two of them at once.
fn meets(turn: &str, groups: u32, limits: &Options) -> Result<LaunchTime> {
    let bench = Bench::new("h200", &["core.count=1"]);
    let timer = bench.timer.clone().with_limits(limits);
    let kernel = ir::read(&meeting(turn), "test.hsir").unwrap_or_else(|error| panic!("{error}"));
    let bar = bench.buffer(Type::I32, 1, Pattern::Constant(0));
    let out = bench.buffer(Type::I32, 64, Pattern::Constant(0));
    let launch = Launch::new(groups, 1024, vec![bar, index(1), out, index(64)]);
    let code = timer.compile(&kernel, &launch).expect("compiles");
    timer.run(&code, &launch)
}

#[test]
fn work_groups_that_are_resident_together_meet() {
    let time = meets("0", 2, &Options::FAST).expect("both are resident");
    assert!(time.cycles < 1e5, "{}", time.cycles);
}

#[test]
fn waiting_for_a_work_group_that_is_not_resident_is_a_standstill() {
    let error = meets("0", 16, &Options::FAST).expect_err("two of sixteen are resident");
    assert_eq!(error.fault(), crate::error::Fault::Input);
    let text = error.to_string();
    assert!(
        text.starts_with("test.hsir:13:")
            && text.contains("has 2 of this launch resident at once, and 14 have not begun"),
        "{text}"
    );
}

/// Each turn is another position, and after enough of them it goes on.
#[test]
fn a_wait_that_gives_up_is_none() {
    let time = meets("1", 16, &Options::FAST).expect("it gives up");
    assert!(time.cycles > 1e5, "{}", time.cycles);
}

#[test]
fn a_wait_ends_at_the_limit_on_operations() {
    let limits = Options {
        operation_limit: 1000,
        ..Options::FAST
    };
    let text = meets("1", 16, &limits).expect_err("too long").to_string();
    assert!(
        text.contains("has issued 8000 instructions") && text.contains("--max-steps"),
        "{text}"
    );
}

#[test]
fn a_request_to_stop_ends_a_run() {
    static STOP: Stop = Stop::new();
    STOP.set(true);
    let limits = Options {
        stop: Some(&STOP),
        ..Options::FAST
    };
    let text = meets("0", 2, &limits).expect_err("stopped").to_string();
    assert!(text.contains("was stopped before its end"), "{text}");
    STOP.set(false);
    meets("0", 2, &limits).expect("not stopped any more");
}

/// Each work-group waits for the flag of the next, without an atomic operation. A sample of the cores would wait for
/// those that it leaves out.
#[test]
fn a_sample_that_waits_for_work_groups_outside_is_no_standstill() {
    let text = "hsir 1
        kernel @chain(%flags: ptr.global i32[%length] align 4, %length: i64) {
          load @flags
          %group = id.group.x
          %wide = extend.u %group to i64
          %awaited = address %flags + %wide * 4 + 4
          loop 'spin () {
            %seen = load i32 %awaited, @flags volatile
            %waits = eq %seen, 0:i32
            if %waits { yield } else { break 'spin } continue 'spin
          }
          %own = address %flags + %wide * 4
          store %own, 1:i32 volatile
          return
        }";
    let bench = Bench::new("h200", &[]).with_cores(Cores::Sampled);
    let flags = bench.buffer(
        Type::I32,
        65,
        Pattern::Function(Arc::new(|at| u64::from(at == 64))),
    );
    let time = bench.time(text, 64, 32, vec![flags, index(65)]);
    assert!(time.sample.is_whole() && time.cycles > 1000.0, "{}", time.cycles);
}
