//! Work-groups that share a core: the order of issue, barriers, equal shares of memory, and what does not fit.

use super::*;

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

/// All sub-groups of a work-group store to shared memory, meet at a barrier, and load what another one stored.
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
fn work_groups_start_one_after_the_other() {
    // Measured on an H200, 2026-11-29, `micro/launch`: 65,536 work-groups take 39.8 µs longer than one, of 1 work-item and of 256.
    let text = "hsir 1 kernel @empty() { return }";
    for group in [1, 256] {
        let bench = Bench::new("h200", &[]);
        let time = |groups: u32| bench.time(text, groups, group, Vec::new()).nanoseconds;
        let longer = time(65_536) - time(1);
        assert!(
            (0.95..1.05).contains(&(longer / 39_800.0)),
            "{group}: {longer} ns"
        );
    }
}
