//! What a report says about waiting: places, reasons, loads, loops, and a window of issues.

use super::*;

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
    // All work-items start at element 0 and load the same elements: one line and 64 bytes of device memory each time.
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
    // A window is at most half of the run: it contains neither start nor end.
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
        // In the steady state all iterations take the same time, within two cycles.
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
