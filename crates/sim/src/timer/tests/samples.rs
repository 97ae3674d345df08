//! A sample of cores and work-groups: it is repeatable and close to the whole launch.

use super::*;

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

/// Runs that are cut at once: of work-groups that were counted the time follows, of others that it is no less.
#[test]
fn a_run_that_is_cut_says_how_long_it_would_take() {
    static STOP: Stop = Stop::new();
    let bench = || {
        let mut bench = Bench::new("h200", &["core.count=2"]);
        bench.timer = bench.timer.with_limits(&Options {
            stop: Some(&STOP),
            ..Options::FAST
        });
        bench
    };
    let whole = rows(&bench(), 240);
    STOP.set_cut(true);
    let cut = rows(&bench(), 240);
    STOP.set_cut(false);
    assert_eq!((cut.sample.cut, whole.sample.cut), (Some(Cut::AtLeast), None));
    assert!(0.0 < cut.cycles && cut.cycles < whole.cycles, "{}", cut.cycles);
    let items = 240 * 64;
    let bench = bench();
    let data = bench.buffer(Type::F32, items * 20, Pattern::Fractions { low: 1.0 });
    let out = bench.buffer(Type::F32, items, Pattern::Constant(0));
    STOP.set_cut(true);
    let counted = bench.time_again(
        ROWS,
        240,
        64,
        vec![data, index(items * 20), out, index(items), index(20)],
    );
    STOP.set_cut(false);
    assert!(
        counted.sample.cut == Some(Cut::ByWork) && counted.cycles > 10.0 * cut.cycles,
        "{} {}",
        counted.cycles,
        cut.cycles
    );
    let instructions = counted.instructions / whole.instructions;
    assert!(
        (0.7..1.4).contains(&instructions),
        "{} {}",
        counted.instructions,
        whole.instructions
    );
}

#[test]
fn cores_with_a_work_group_more_have_as_much_more_of_the_memory() {
    // 200 work-groups: 68 cores have two, 64 have one. All wait for device memory.
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
        let time = bench.time(SCATTERED, 200, 1024, arguments);
        assert_eq!(
            time.sample.is_apart,
            cores != Cores::All,
            "nothing was counted before"
        );
        time.cycles
    };
    let (all, sample) = (cycles(Cores::All), cycles(Cores::Exactly(4)));
    assert!((sample / all - 1.0).abs() < 0.08, "{sample} and {all}");
}

/// More steps than are counted with their addresses. The longest work-group is one of the sample wherever it is, since only what
/// decides its branches is carried out to find it.
#[test]
fn the_longest_work_group_of_a_large_launch_is_in_the_sample() {
    const LENGTHS: &str = "hsir 1
        kernel @lengths(%out: ptr.global f32[%out_len] align 4 unaliased, %out_len: i64, %long: i32) {
          load @out
          %group = id.group.x
          %local = id.local.x
          %item = extend.u %local to i64
          %from = address %out + %item * 4
          %low = and %group, 15:i32
          %short = add %low, 40:i32
          %is_long = eq %group, %long
          %count = select %is_long, 20000:i32, %short
          %sum = loop (%j = 0:i32, %x = 0.0:f32) -> f32 {
            %more = lt.s %j, %count
            if %more { yield } else { break %x }
            %value = load f32 %from, @out
            %next = fadd %x, %value
            %after = add.nw %j, 1:i32
            continue %after, %next
          }
          store %from, %sum
          return
        }";
    let bench = Bench::new("h200", &[]).with_cores(Cores::Few);
    let survey = |long: u32| {
        let out = bench.buffer(Type::F32, 32, Pattern::Constant(0));
        let kernel = Arc::new(ir::read(LENGTHS, "test.hsir").unwrap_or_else(|error| panic!("{error}")));
        let launch = Launch::new(
            60_000,
            32,
            vec![out, index(32), Argument::Scalar(Type::I32, u64::from(long))],
        );
        let survey = bench.timer.survey(&kernel, &launch, None).expect("it is counted");
        survey.choose(800, 0).groups
    };
    for long in [8012, 8013] {
        assert!(survey(long).contains(&u64::from(long)), "{long}");
    }
}

/// Work-groups that read one table touch no more than it has, however many they are.
#[test]
fn a_launch_touches_no_more_than_its_buffers() {
    let bench = Bench::new("h200", &[]);
    let (groups, length) = (500, 1 << 22);
    let items = groups * 1024;
    let pattern = Pattern::Below {
        bound: length,
        seed: 7,
    };
    let table = bench.buffer(Type::I64, length, pattern);
    let out = bench.buffer(Type::I64, items, Pattern::Constant(0));
    let kernel = Arc::new(ir::read(SCATTERED, "test.hsir").unwrap_or_else(|error| panic!("{error}")));
    let arguments = vec![table, index(length), out, index(items), index(20)];
    let launch = Launch::new(groups as u32, 1024, arguments);
    let timer = bench.timer.clone().with_cache(CacheState::Kept);
    let survey = timer.survey(&kernel, &launch, None).expect("it is counted");
    assert!(survey.touches_at_most((length + items) * 8 + 1024));
}
