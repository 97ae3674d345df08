//! Sub-group size against registers: what does not fit a work-item's share of a thread's registers is spilled, and takes time.

use headstart::back::machine::{self, MachineProgram, Target};
use headstart::back::spirv::{self, Options, SpirvTarget};
use headstart::device::CacheState;
use headstart::tune::{Bench, SimulatedBench};
use headstart_testing::ocloc::Ocloc;

use super::{model, planned, time, workload};

/// Bytes of a work-item that `ocloc` spills of `centre-32` in sub-groups of 32.
pub const BY_OCLOC: f64 = 186.0;

/// Bytes of a register of Xe-LP: what `ocloc` counts spills in.
const REGISTER: f64 = 32.0;

fn settings(size: u32) -> String {
    format!("size={size}")
}

pub fn lowered(name: &str, size: u32) -> MachineProgram {
    let workload = workload(name, &settings(size));
    let kernel = planned(&workload, "none", 64);
    machine::lower(&kernel, &Target::of(&model("xe-lp", &[]), size))
}

/// The frame that holds a work-item's spilled values is about as large as Intel's compiler makes it, and there is none where it
/// makes none.
#[test]
fn wide_sub_groups_spill_as_much_as_the_compiler_says() {
    for (name, size, spills) in [
        ("centre-8", 8, false),
        ("centre-8", 16, false),
        ("centre-8", 32, false),
        ("centre-32", 8, false),
        ("centre-32", 16, false),
        ("centre-32", 32, true),
    ] {
        let ours = lowered(name, size).frame_bytes;
        assert_eq!(ours > 0, spills, "{name} in sub-groups of {size}: {ours} bytes");
        let Some(ocloc) = Ocloc::find() else { continue };
        let kernel = planned(&workload(name, &settings(size)), "none", 64);
        let module = spirv::emit(&kernel, &Options::new(SpirvTarget::IntelOlder)).expect("emitted");
        let assembly = ocloc
            .compile(&module, "tgllp")
            .unwrap_or_else(|said| panic!("{said}"));
        let theirs = f64::from(assembly.spills) * REGISTER / f64::from(size);
        println!("{name} in sub-groups of {size}: {ours} bytes of a work-item, {theirs} by ocloc");
        assert_eq!(theirs > 0.0, spills, "{name} in sub-groups of {size}");
        if spills {
            assert!((theirs / BY_OCLOC - 1.0).abs() < 0.05, "{theirs} bytes by ocloc");
            // The compiler also keeps addresses and parts of the division there.
            assert!(
                (0.4..=1.2).contains(&(f64::from(ours) / theirs)),
                "{ours} and {theirs} bytes"
            );
        }
    }
}

/// What is spilled takes time: more than the same kernel would with registers for all of it.
#[test]
fn spills_take_time() {
    let took = |changes: &[&str]| {
        time(
            &model("xe-lp", changes),
            "centre-32",
            "size=32 groups=96",
            "none",
            CacheState::Kept,
        )
    };
    let (spilled, fits) = (took(&[]), took(&["registers.fixed.per-sub-group=16"]));
    println!("{spilled:.0} ns with spills, {fits:.0} ns without");
    assert!(spilled > 1.05 * fits, "{spilled} and {fits} ns");
}

/// A report says what is spilled: what the code stores.
#[test]
fn reports_say_what_is_spilled() {
    let workload = workload("centre-32", "size=32 groups=96");
    let bench = SimulatedBench::new(model("xe-lp", &[]));
    let bound = workload.bind(bench.device()).expect("fits");
    let timed = bench
        .time(&bound, &planned(&workload, "none", 64))
        .expect("a time");
    let spilled = timed.takes.expect("it is counted").spilled_bytes;
    assert_eq!(spilled, lowered("centre-32", 32).frame_bytes);
    let mut counted = timed.counted.iter();
    assert!(counted.any(|(name, _, bytes)| name.contains("spilled") && *bytes == f64::from(spilled)));
}
