//! The rules of prefetches, the effect of fences, and that joint ones bring each line once.

use std::collections::BTreeMap;
use std::sync::Mutex;

use super::Case;
use super::faults::kernel;
use crate::back::hints::{Form, expand};
use crate::functional::{
    CompiledKernel, Groups, LaneOp, LaneOpKind, Mask, Observer, PrefetchBounds, Registers, SubGroup,
    WorkGroup,
};
use crate::ir::{parse, verify};

fn case(body: &str, group: u32) -> Case {
    Case::new(&kernel("", body), 1, group).output::<i32>(64)
}

#[test]
fn hints_to_l1_stay_in_bounds() {
    let to = |level: &str, element: u32| {
        case(
            &format!("%p = address %out + {element}:i64 * 4\nprefetch {level} 4 at %p #1:3:5"),
            1,
        )
    };
    assert!(to("L1", 63).run().is_ok());
    assert_eq!(
        to("L1", 64).error(),
        "k.rs:3:5: work-item 0 of work-group 0 (global 0) prefetches `out[64]`, out of bounds: `out` has 64 elements; a \
         prefetch to L1 stays in bounds: guard it, or prefetch to L2, L3 or L4"
    );
    assert!(to("L3", 64).run().is_ok());
    assert!(to("L1UC_L3C", 64).run().is_ok());
    assert!(to("L1C_L3C", 64).run().is_err());
    let mut free = to("L1", 64);
    free.options.prefetch_bounds = PrefetchBounds::Free;
    assert!(free.run().is_ok());
    let mut all = to("L3", 64);
    all.options.prefetch_bounds = PrefetchBounds::All;
    assert!(all.run().is_err());
    // The last byte counts, however many elements there are.
    assert!(case("prefetch L1 4 * 64:i64 at %out", 1).run().is_ok());
    assert!(case("prefetch L1 4 * 65:i64 at %out", 1).run().is_err());
    assert!(case("prefetch L1 4 * 0:i64 at %out", 1).run().is_ok());
}

#[test]
fn a_generic_pointer_leads_to_global_memory() {
    let pointer = |from: &str| {
        let body = format!("{from}\n%g = to_generic %a to ptr.generic\nprefetch L2 4 at %g #1:3:5");
        let text = kernel("shared @tile: f32[32] align 4", &body);
        Case::new(&text, 1, 32).output::<i32>(64)
    };
    assert!(pointer("%a = address %out + %i * 4").run().is_ok());
    assert_eq!(
        pointer("%t = array @tile\n%a = address %t + %i * 4").error(),
        "k.rs:3:5: work-item 0 of work-group 0 (global 0) prefetches `tile[0]` through a generic pointer, which is in \
         shared memory; a generic pointer that is prefetched leads to global memory"
    );
}

#[test]
fn a_joint_prefetch_is_the_same_for_all() {
    let differs = "%p = address %out + %i * 4\nprefetch L2 4 at %p by sub_group #1:3:5";
    assert_eq!(
        case(differs, 32).error(),
        "k.rs:3:5: a joint prefetch of a sub-group differs between its work-items: `out[0]` and `out[1]` for work-item \
         1; work-item 0 of work-group 0 (global 0) asks for the first; pointer and count are the same for all work-items of \
         the group"
    );
    assert!(case(&differs.replace("sub_group", "bulk"), 32).run().is_err());
    let counts = "prefetch L2 4 * %i at %out by sub_group #1:3:5";
    let error = case(counts, 32).error();
    assert!(error.contains("a count of 0 and 1 for work-item 1"), "{error}");
    // Each sub-group for itself may want something else; a work-group may not.
    let by_sub_group = |scope: &str| {
        let ids = "%s32 = id.sub_group\n%s = extend.u %s32 to i64\n%p = address %out + %s * 4";
        case(&format!("{ids}\nprefetch L2 4 at %p by {scope} #1:3:5"), 64)
    };
    assert!(by_sub_group("sub_group").run().is_ok());
    let error = by_sub_group("work_group").error();
    assert!(
        error.contains("`out[0]` and `out[1]` for work-item 32"),
        "{error}"
    );
}

#[test]
fn a_joint_prefetch_is_reached_by_all() {
    let some = |condition: &str, scope: &str| {
        let body = format!(
            "%c = {condition}\nif %c {{ prefetch L2 4 at %out by {scope} #1:3:5\nyield }} else {{ yield }}"
        );
        case(&body, 64)
    };
    let error = some("lt.u %i, 40:i64", "sub_group").error();
    assert!(
        error.contains("work-item 32 of work-group 0 (global 32) reaches a joint prefetch of its sub-group without work-item 40"),
        "{error}"
    );
    assert!(some("lt.u %i, 32:i64", "sub_group").run().is_ok());
    let error = some("lt.u %i, 32:i64", "work_group").error();
    assert!(
        error.contains("reaches a joint prefetch of its work-group 1 times, work-item 32 0 times"),
        "{error}"
    );
    assert!(some("lt.u %i, 64:i64", "work_group").run().is_ok());
}

#[test]
fn fences_undo_prefetches_to_l1() {
    let notes = |level: &str, between: &str| {
        let body = format!(
            "%p = address %out + %i * 4\nstore %p, 1:i32\nprefetch {level} 4 at %p #1:3:5\n{between}\n\
             %x = load i32 %p, @out #1:5:5\nstore %p, %x"
        );
        let case = case(&body, 1);
        let compiled = CompiledKernel::new(case.kernel.clone());
        let ran = compiled.run_telling(&case.launch, 32, case.options, &Groups::All);
        ran.expect("no rule is broken").1.notes
    };
    let fence = "fence acq_rel device #1:4:5";
    assert_eq!(
        notes("L1", fence),
        [
            "k.rs:3:5: the prefetch to L1 may be lost before its load at k.rs:5:5: the fence at k.rs:4:5 may empty L1; \
          prefetch again behind the fence, or to L2"
        ]
    );
    assert!(notes("L2", fence).is_empty());
    assert!(notes("L1", "fence acq_rel work_group").is_empty());
    assert!(notes("L1", "barrier").is_empty());
    assert!(notes("L1", &format!("{fence}\nprefetch L1 4 at %p")).is_empty());
}

/// Collects the bytes that prefetches name.
struct Bytes<'a>(&'a Mutex<BTreeMap<u64, u32>>);

impl Observer for Bytes<'_> {
    fn op(&mut self, op: &LaneOp, registers: &Registers, mask: Mask, _: &SubGroup, _: &WorkGroup<'_>) {
        if let LaneOpKind::Prefetch { ptr, bytes, .. } = op.kind {
            assert_eq!(bytes, 1);
            let mut found = self.0.lock().expect("nobody panicked");
            for lane in mask.lanes() {
                *found.entry(registers.get(ptr)[lane]).or_default() += 1;
            }
        }
    }
}

/// The offsets from the buffer's start that an expanded prefetch names, and how often.
fn named(prefetch: &str, head: &str, group: u32, start: u64, form: &Form) -> BTreeMap<u64, u32> {
    let text = format!(
        "hsir 1\nkernel @k(%out: ptr.global i32[] align 4, %start: i64, %n: i64){head} {{\n\
         %p = address %out + %start * 1\n{prefetch}\nreturn\n}}"
    );
    let mut kernel = parse(&text, "test.hsir").unwrap_or_else(|error| panic!("{text}: {error}"));
    expand(&mut kernel, form);
    verify(&kernel).expect("what was made of it is right");
    let case = Case::of(kernel, 1, group)
        .output::<i32>(1 << 16)
        .scalar(start)
        .scalar(37u64);
    let found = Mutex::new(BTreeMap::new());
    CompiledKernel::new(case.kernel.clone())
        .run_observed(
            &case.launch,
            32,
            case.options,
            &Groups::All,
            &|_| Bytes(&found),
            &|_, _| {},
        )
        .expect("no rule is broken");
    let found = found.into_inner().expect("nobody panicked");
    found
        .into_iter()
        .map(|(at, times)| (at - (1 << 40), times))
        .collect()
}

#[test]
fn a_group_divides_the_lines_and_each_is_asked_for_once() {
    let nvidia = Form::nvidia(false);
    let intel = Form::intel(32);
    for (form, step) in [(nvidia, 128u64), (intel, 64)] {
        for scope in ["sub_group", "work_group", "bulk"] {
            for (head, launch) in [("", 24), ("", 64), (" group 64,1,1", 64)] {
                for (size, bytes) in [("4", 4u64), ("1000", 1000), ("12000", 12000), ("100 * %n", 3700)] {
                    for start in [0u64, 4, 100, 127, 260] {
                        let prefetch = format!("prefetch L2 {size} at %p by {scope}");
                        let mut found = BTreeMap::new();
                        for (at, times) in named(&prefetch, head, launch, start, &form) {
                            assert!((start..start + bytes).contains(&at), "{prefetch}: byte {at}");
                            *found.entry(at / step).or_insert(0) += times;
                        }
                        // A sub-group divides for itself, so there are as many askers for each line.
                        let askers = if scope == "work_group" {
                            1
                        } else {
                            launch.div_ceil(32)
                        };
                        let lines = start / step..=(start + bytes - 1) / step;
                        let right: BTreeMap<u64, u32> = lines.map(|line| (line, askers)).collect();
                        assert_eq!(found, right, "{prefetch} from {start}, {launch} work-items{head}");
                    }
                }
            }
        }
    }
}

#[test]
fn counts_of_run_time_bring_every_piece_once() {
    for (form, step) in [(Form::nvidia(true), 128u64), (Form::intel(16), 32)] {
        for start in [0u64, 4, 30, 127] {
            let found = named("prefetch L3 4 * %n at %p", "", 1, start, &form);
            let pieces: Vec<u64> = found.keys().map(|at| at / step).collect();
            let right: Vec<u64> = (start / step..=(start + 4 * 37 - 1) / step).collect();
            assert_eq!(pieces, right);
            assert!(found.values().all(|&times| times == 1));
        }
    }
}
