//! Prefetches: levels and hints, launches' reports about them, and the rules.

#![allow(unused_variables, reason = "what is fetched ahead is not always read")]

use headstart::device::sim::Simulator;
use headstart::device::sim::timer::Timer;
use headstart::device::{Device, TypedBuffer, model};
use headstart::ir::{self, CacheLevel, OpKind, PrefetchScope};
use headstart::prelude::*;

use crate::conformance::Feature;
use crate::prefetch_signatures::prefetches;

#[kernel(work_group = 64, sub_group = 32)]
fn properties(values: &[f32], out: &mut [f32]) {
    let i = global_id();
    prefetch(&values[i]);
    prefetch(&values[i], ());
    prefetch(&values[i], [L4_NT, L2, L3]);
    prefetch(&values[i], [L3, L1.nontemporal()]);
    prefetch(&values[..], L4);
    prefetch(&values[i..=i + 1], LSC_LDCC_L1UC_L3C);
    joint_prefetch(sub_group(), &values[0..]);
    global_ptr(&values[i]).prefetch(1);
    out[i] = values[i];
}

#[test]
fn the_lowest_level_wins_and_none_is_the_default() {
    const { assert!(SYCL_EXT_ONEAPI_PREFETCH == 1) };
    assert_eq!(
        prefetches(&properties::kernel().expect("builds")),
        [
            "prefetch L1 default 4 at %",
            "prefetch L1 default 4 at %",
            "prefetch L2 4 at %",
            "prefetch L1 nontemporal 4 at %",
            "prefetch L4 4 * % at %",
            "prefetch L1UC_L3C 4 * % at %",
            "prefetch L1 default 4 * % at % by sub_group",
            "prefetch L3 4 at %",
        ]
    );
}

/// A simulator of a device, with its timer.
fn simulator(name: &str) -> Simulator {
    let model = std::sync::Arc::new(model::find(name, &[]).expect("a built-in model"));
    let options = headstart::device::sim::functional::Options::checking(&model);
    let clock = std::sync::Arc::new(Timer::new(std::sync::Arc::clone(&model)));
    Simulator::custom(model.description(), options, Some(clock))
}

/// Runs a kernel of this signature on one work-group of 64.
macro_rules! run {
    ($kernel:ident on $device:expr, $geometry:expr) => {{
        let device = $device;
        let queue = device.queue().expect("a queue");
        let values = TypedBuffer::from_slice(&device, &[1.0f32; 256]).expect("fits");
        let mut out = TypedBuffer::uninitialized(&device, 64).expect("fits");
        let compiled = $kernel::compile(&device).expect("compiles");
        compiled
            .launch(&*queue, $geometry, $kernel::arguments(&values, &mut out))
            .wait()
    }};
}

#[kernel(work_group = 64)]
fn asks(values: &[f32], out: &mut [f32]) {
    let i = global_id();
    prefetch(&values[i], []);
    prefetch(&values[i], L2);
    prefetch(&values[i], L3);
    prefetch(&values[i], LSC_LDCC_L1UC_L3UC);
    out[i] = values[i];
}

#[test]
fn a_launch_reports_asked_and_reached() {
    let reached = |name: &str, level: CacheLevel| {
        let outcome = run!(asks on simulator(name), Geometry::new(1, 64).default_level(level));
        let hints = outcome.expect("it runs").prefetches.clone();
        assert!(
            hints
                .iter()
                .all(|hint| !hint.why.is_empty() && hint.place.contains("prefetch.rs:"))
        );
        let words = |hint: &headstart::back::hints::HintReached| {
            format!(
                "{} → {}",
                hint.asked,
                hint.reached.map_or("nothing", CacheLevel::name)
            )
        };
        hints.iter().map(words).collect::<Vec<_>>()
    };
    assert_eq!(
        reached("h200", CacheLevel::L1),
        ["L1 default → L1", "L2 → L2", "L3 → L2", "L1UC_L3UC → nothing"]
    );
    // The default level belongs to the launch.
    assert_eq!(reached("h200", CacheLevel::L4)[0], "L4 default → L2");
    assert_eq!(
        reached("pvc-1550", CacheLevel::L1),
        ["L1 default → L1", "L2 → L3", "L3 → L3", "L1UC_L3UC → nothing"]
    );
    for device in ["xe-lp", "gen11"] {
        assert_eq!(
            reached(device, CacheLevel::L1),
            [
                "L1 default → nothing",
                "L2 → nothing",
                "L3 → nothing",
                "L1UC_L3UC → nothing"
            ]
        );
    }
}

/// Every device that we have a model of says where each level goes.
#[test]
fn every_device_has_a_table_of_levels() {
    for name in model::built_in_names() {
        let model = model::find(name, &[]).expect("a built-in model");
        for (level, form) in model.prefetch.levels() {
            assert!(!form.source.is_empty(), "{name}: {}", level.name());
        }
        let two = [
            model.prefetch.at(CacheLevel::L3),
            model.prefetch.at(CacheLevel::L4),
        ];
        assert_eq!(
            two[0].reaches, two[1].reaches,
            "{name}: L4 is nearest to what L3 is nearest to"
        );
    }
}

/// Counts of run time and of building time; more than 32 bytes.
#[kernel(work_group = 64)]
fn counted(values: &[f32], out: &mut [f32]) {
    let p = global_ptr(&values[0]);
    p.prefetch(24);
    p.prefetch(8);
    p.prefetch(values.len());
    out[global_id()] = values[global_id()];
}

#[test]
fn costs_are_reported() {
    let costs = |name: &str| {
        let outcome = run!(counted on simulator(name), Geometry::new(1, 64)).expect("it runs");
        outcome
            .prefetches
            .iter()
            .map(|hint| hint.cost.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        costs("pvc-1550"),
        [
            "3 prefetches of at most 32 bytes",
            "1 prefetch",
            "the count is known at run time only: a loop of about 7 instructions for each 32 bytes"
        ]
    );
    assert_eq!(costs("h200")[0], "1 prefetch");
    assert!(
        costs("gen11")
            .iter()
            .all(|cost| cost == "it costs nothing: it is left out")
    );
}

/// A joint prefetch as the extension's text shows it: each work-item names an element of its own.
#[kernel(work_group = 64, sub_group = 32)]
fn as_the_extension_has_it(data: &[f32], out: &mut [f32]) {
    let mut sum = 0.0;
    for j in (sub_group_local_id()..96).step_by(max_sub_group_size()) {
        joint_prefetch(sub_group(), &data[j + 100..j + 100 + max_sub_group_size()], L3);
        sum += data[j];
    }
    out[global_id()] = sum;
}

/// The same, right: all name the sub-group's first element.
#[kernel(work_group = 64, sub_group = 32)]
fn as_it_is_meant(data: &[f32], out: &mut [f32]) {
    let mut sum = 0.0;
    for first in (0..96).step_by(max_sub_group_size()) {
        joint_prefetch(
            sub_group(),
            &data[first + 100..first + 100 + max_sub_group_size()],
            L3,
        );
        sum += data[first + sub_group_local_id()];
    }
    out[global_id()] = sum;
}

#[test]
fn the_extensions_own_example_breaks_its_rule() {
    let error = run!(as_the_extension_has_it on Simulator::untimed(), Geometry::new(1, 64));
    let error = error.expect_err("its pointer differs").to_string();
    assert!(
        error.contains(
            "a joint prefetch of a sub-group differs between its work-items: `data[100]` and `data[101]`"
        ),
        "{error}"
    );
    run!(as_it_is_meant on Simulator::untimed(), Geometry::new(1, 64)).expect("all ask for the same");
}

#[kernel(work_group = 64)]
fn behind_the_end_to_l1(values: &[f32], out: &mut [f32]) {
    prefetch(&values[values.len()], L1);
    out[global_id()] = values[global_id()];
}

#[kernel(work_group = 64)]
fn behind_the_end_to_l3(values: &[f32], out: &mut [f32]) {
    global_ptr(&values[values.len()]).prefetch(1);
    out[global_id()] = values[global_id()];
}

#[test]
fn only_l1_has_bounds() {
    for device in ["pvc-1550", "sim"] {
        let made = || match device {
            "sim" => Simulator::untimed(),
            name => simulator(name),
        };
        let error = run!(behind_the_end_to_l1 on made(), Geometry::new(1, 64)).expect_err("it faults");
        assert!(
            error.to_string().contains("`values[256]`, out of bounds"),
            "{error}"
        );
        run!(behind_the_end_to_l3 on made(), Geometry::new(1, 64)).expect("it is harmless");
    }
    // There a copy with a check of its own goes to L1.
    run!(behind_the_end_to_l1 on simulator("h200"), Geometry::new(1, 64)).expect("it is harmless");
}

#[kernel(work_group = 64)]
fn not_global(values: &[f32], out: &mut [f32]) {
    let mut tile = shared::<f32, 64>();
    tile[global_id()] = values[global_id()];
    let p = if local_id() < 60 {
        generic_ptr(&values[0])
    } else {
        generic_ptr(&tile[5])
    };
    prefetch(p, L2);
    out[global_id()] = p.read();
}

#[test]
fn a_generic_pointer_that_is_not_global_is_reported() {
    let error = run!(not_global on Simulator::untimed(), Geometry::new(1, 64)).expect_err("not for some");
    assert!(
        error
            .to_string()
            .contains("prefetches `tile[5]` through a generic pointer, which is in shared memory"),
        "{error}"
    );
}

#[kernel(work_group = 64)]
fn lost(values: &[f32], out: &mut [f32]) {
    prefetch(&values[global_id()], L1);
    fence(Ordering::AcqRel);
    out[global_id()] = values[global_id()];
}

#[test]
fn a_prefetch_that_a_fence_cuts_off_is_reported() {
    let outcome = run!(lost on Simulator::untimed(), Geometry::new(1, 64)).expect("it runs");
    assert_eq!(outcome.notes.len(), 1, "{:?}", outcome.notes);
    assert!(
        outcome.notes[0].contains("the prefetch to L1 may be lost before its load"),
        "{:?}",
        outcome.notes
    );
}

/// The twelve functions of the page, with an offset, and loads with controls.
#[kernel(work_group = 64)]
fn by_intels_names(bytes: &[u8], halves: &[u16], words: &[u32], longs: &[u64], out: &mut [u32]) {
    let (b, h) = (global_ptr(&bytes[0]), global_ptr(&halves[0]));
    let (w, l) = (global_ptr(&words[0]), global_ptr(&longs[0]));
    lsc_prefetch_uchar(b, 1, LSC_LDCC_DEFAULT);
    lsc_prefetch_ushort(h, 2, LSC_LDCC_L1UC_L3UC);
    lsc_prefetch_uint(w, 0, LSC_LDCC_L1UC_L3C);
    lsc_prefetch_uint2(w, 0, LSC_LDCC_L1C_L3UC);
    lsc_prefetch_uint3(w, 0, LSC_LDCC_L1C_L3C);
    lsc_prefetch_uint4(w, 3, LSC_LDCC_L1S_L3UC);
    lsc_prefetch_uint8(w, 0, LSC_LDCC_L1S_L3C);
    lsc_prefetch_ulong(l, 0, LSC_LDCC_L1IAR_L3C);
    lsc_prefetch_ulong2(l, 0, LSC_LDCC_L1C_L3C);
    lsc_prefetch_ulong3(l, 0, LSC_LDCC_L1C_L3C);
    lsc_prefetch_ulong4(l, 1, LSC_LDCC_L1C_L3C);
    lsc_prefetch_ulong8(l, 0, LSC_LDCC_L1C_L3C);
    out[global_id()] = lsc_load(w, 1, LSC_LDCC_L1C_L3C)
        + lsc_load(w, 2, LSC_LDCC_L1IAR_L3C)
        + lsc_load(w, 0, LSC_LDCC_DEFAULT);
}

#[test]
fn intels_functions_have_their_controls_and_offsets() {
    let kernel = by_intels_names::kernel().expect("builds");
    assert_eq!(
        prefetches(&kernel),
        [
            "prefetch LSC_DEFAULT 1 at %",
            "prefetch L1UC_L3UC 2 at %",
            "prefetch L1UC_L3C 4 at %",
            "prefetch L1C_L3UC 8 at %",
            "prefetch L1C_L3C 12 at %",
            "prefetch L1S_L3UC 16 at %",
            "prefetch L1S_L3C 32 at %",
            "prefetch L1IAR_L3C 8 at %",
            "prefetch L1C_L3C 16 at %",
            "prefetch L1C_L3C 24 at %",
            "prefetch L1C_L3C 32 at %",
            "prefetch L1C_L3C 64 at %",
        ]
    );
    let text = ir::print(&kernel);
    for offset in ["* 1 + 1 #", "* 1 + 4 #", "* 1 + 48 #", "* 1 + 32 #"] {
        assert!(text.contains(offset), "{offset}: {text}");
    }
    let loads: Vec<&str> = text.lines().filter(|line| line.contains(" = load ")).collect();
    assert!(
        loads[0].contains("@words L1C_L3C") && loads[1].contains("L1IAR_L3C"),
        "{text}"
    );
    assert!(!loads[2].contains("L1"), "{text}");

    let device = Simulator::untimed();
    let queue = device.queue().expect("a queue");
    let bytes = TypedBuffer::from_slice(&device, &[0u8; 64]).expect("fits");
    let halves = TypedBuffer::from_slice(&device, &[0u16; 64]).expect("fits");
    let words = TypedBuffer::from_slice(&device, &[7u32, 20, 300, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
        .expect("fits");
    let longs = TypedBuffer::from_slice(&device, &[0u64; 64]).expect("fits");
    let mut out = TypedBuffer::uninitialized(&device, 64).expect("fits");
    let arguments = by_intels_names::arguments(&bytes, &halves, &words, &longs, &mut out);
    let compiled = by_intels_names::compile(&device).expect("compiles");
    compiled
        .launch(&*queue, Geometry::new(1, 64), arguments)
        .wait()
        .expect("it runs");
    assert_eq!(out.read(&*queue).expect("written"), [327; 64]);
}

/// Pointers that go on, in loops and through device functions; views that are written.
#[device_fn]
fn skip(p: Ptr<'_, f32, headstart::front::lang::pointer::Global>, by: usize) -> f32 {
    p.add(by).read()
}

#[kernel(work_group = 64)]
fn walks(values: &[f32], out: &mut [f32]) {
    let mut p = global_ptr(&values[local_id()]);
    let mut sum = skip(p, 1);
    for _ in 0..2 {
        prefetch(p.add(64), L2);
        sum += p.read();
        p = p.add(64);
    }
    out[local_id()] = sum;
}

/// A view that is written is prefetched if it is read, too; and of structs and vectors a part.
#[kernel(work_group = 64)]
fn parts(pairs: &[[f32; 2]], mut both: View1<f32, ReadWrite>) {
    prefetch(&pairs[local_id()][1], L2);
    prefetch(&pairs[local_id()], L2);
    prefetch(&both[local_id()], L2);
    prefetch(both.span(0, 64), L3);
    both[local_id()] = pairs[local_id()][1];
}

#[test]
fn pointers_walk_and_parts_are_prefetched() {
    let kernel = walks::kernel().expect("builds");
    let names: Vec<&str> = kernel.loads.values().map(|load| load.name.as_str()).collect();
    assert_eq!(
        names,
        ["values", "values"],
        "loads are named after what they read"
    );
    let mut scopes = Vec::new();
    kernel.body.walk(&mut |op| {
        if let OpKind::Prefetch { scope, .. } = &op.kind {
            scopes.push(*scope);
        }
    });
    assert_eq!(scopes, [PrefetchScope::WorkItem]);
    run!(walks on Simulator::untimed(), Geometry::new(1, 64)).expect("it runs");
    let (values, mut out) = (vec![1.0f32; 256], vec![0.0f32; 64]);
    walks::reference(Geometry::new(1, 64), &values, &mut out).expect("it has a reference");
    assert_eq!(out, [3.0; 64]);
    assert_eq!(
        prefetches(&parts::kernel().expect("builds")),
        [
            "prefetch L2 4 at %",
            "prefetch L2 8 at %",
            "prefetch L2 4 at %",
            "prefetch L3 256 at %"
        ]
    );
}

pub const FEATURES: &[Feature] = &[
    Feature {
        name: "pointers",
        spelled: "`global_ptr(&a[i])`, `generic_ptr(&a[i])`, `p.add(n).read()`",
        kernel: walks::kernel,
        test: pointers_walk_and_parts_are_prefetched,
    },
    Feature {
        name: "Intel's cache controls",
        spelled: "`lsc_prefetch_uint(p, 0, LSC_LDCC_L1C_L3C)`, `lsc_load`",
        kernel: by_intels_names::kernel,
        test: intels_functions_have_their_controls_and_offsets,
    },
];
