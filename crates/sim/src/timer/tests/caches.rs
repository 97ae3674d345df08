//! What loads cost at each level of memory, and what a launch finds in L2.

use super::*;

#[test]
fn a_pointer_chase_sees_each_level() {
    let bench = Bench::new("h200", &[]);
    // Every element leads to the first: one miss, then hits in L1. The same chain of a load, its address and a jump takes
    // 60 cycles on an H200 (`micro/latency footprint=16384`).
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
    // Each element leads to the next cache line: every load misses L1.
    let per_load = |cache: CacheState, length: u64| {
        let mut bench = Bench::new("h200", &[]);
        bench.timer = bench.timer.with_cache(cache);
        let table = bench.buffer(Type::I64, length, Pattern::Steps { first: 16, step: 1 });
        (chase(&bench, table.clone(), length, 900) - chase(&bench, table, length, 100)) / 800.0
    };
    // 160 kB fit. The latency of L2 is 300 cycles there, that of device memory 660.
    let kept = per_load(CacheState::Kept, 20_000);
    let flushed = per_load(CacheState::Flushed, 20_000);
    assert!(kept < 0.6 * flushed, "{kept} and {flushed}");
    // 1 GiB fits in no L2.
    let large = per_load(CacheState::Kept, 1 << 27);
    assert!((0.95..1.05).contains(&(large / flushed)), "{large} and {flushed}");
}

#[test]
fn a_launch_finds_what_it_touches_of_a_large_buffer_in_l2_where_that_fits() {
    // The same walk in a buffer of 1 GiB.
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
    // One core touches 51 MB: the near half of L2 keeps none of its lines, the far half keeps all of its own. (An H200 takes 570 cycles a load that
    // goes round in 48 MiB, and 700 in 64 MiB: `micro/latency`.)
    let half = ratio(400_000);
    assert!((0.75..0.9).contains(&half), "{half}");
    // Of 128 MB nothing is left.
    let large = ratio(1_000_000);
    assert!((0.95..1.05).contains(&large), "{large}");
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
