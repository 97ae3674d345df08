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
        bench.time(SCATTERED, 200, 1024, arguments).cycles
    };
    let (all, sample) = (cycles(Cores::All), cycles(Cores::Exactly(4)));
    assert!((sample / all - 1.0).abs() < 0.08, "{sample} and {all}");
}
