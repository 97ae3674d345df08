//! How much of the host's memory the checks of plans on a sample take, where work-groups write to large buffers at random: each
//! write makes a piece of the buffer and a piece of the race check's records.

use headstart::device::model::built_in;
use headstart::tune::check::{AtFullSize, Checks};
use headstart::tune::search::plain;
use headstart::tune::{Bench, SimulatedBench, Subject};
use headstart_gallery::kernels;

/// The most memory that this process has had, in bytes, as Linux counts it; none elsewhere.
fn most_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kilobytes << 10)
}

/// Plans that are checked at the same time.
const AT_ONCE: usize = 4;

#[test]
fn the_checks_of_plans_on_a_sample_take_little_memory_where_it_writes_at_random() {
    let chosen = kernels::case("scatter bits=29 groups=4224 group=256 items=16");
    let workload = chosen.and_then(|chosen| chosen.workload()).expect("a workload");
    let bench = SimulatedBench::new(built_in("h200", &[]).expect("a built-in model"));
    let kernel = plain(&bench, &workload).expect("wishes");
    let before = most_bytes();
    let at_full_size = AtFullSize::Sample { seed: 1 };
    let checks = Checks::with(&workload, &kernel, bench.device(), [], at_full_size).expect("right");
    assert!(checks.sample().is_some_and(|sample| sample.groups().len() > 2));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| checks.check_at_full_size(&kernel).expect("the same"));
        }
    });
    let Some((before, now)) = before.zip(most_bytes()) else {
        eprintln!("skipped: this system does not tell how much memory a process takes");
        return;
    };
    // With no limit: 46 work-groups, and 3 GB for four plans.
    let took = now - before;
    assert!(took < 3 << 28, "{} MB", took >> 20);
}
