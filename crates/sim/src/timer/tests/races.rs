//! A search drops a plan that is certainly slower than the best so far.

use super::*;

#[test]
fn a_kernel_that_is_surely_behind_is_given_up() {
    let bench = Bench::new("h200", &[]);
    let text = include_str!("../../../../../headstart/tests/in/gather.hsir");
    let plain = ir::read(text, "gather.hsir").expect("a kernel");
    let plan = "unroll:8,values=rolling-registers:8".parse().expect("a plan");
    let planned = headstart_prefetch::apply(&plain, &plan, &headstart_prefetch::PlanTarget::default())
        .expect("legal")
        .kernel;
    // The loop is long enough that filling the ring is a small part of the time.
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
    // A kernel within its time limit is timed to the end, however slow it is.
    let Raced::Ended(..) = race(&plain, &Pace::within(slow.nanoseconds)) else {
        panic!("given up in time");
    };
    let Raced::Behind(_) = race(&plain, &Pace::within(0.9 * slow.nanoseconds)) else {
        panic!("not given up in time");
    };
}
