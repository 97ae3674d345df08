//! Atomic operations and fences.

use headstart::device::sim::Simulator;
use headstart::device::{Device, TypedBuffer};
use headstart::prelude::*;

use crate::agree::{devices, lowers, noise};
use crate::conformance::Feature;

/// Every operation whose result in memory does not depend on the order, on elements of their own.
#[kernel]
fn commuting<T: AtomicInteger>(values: &[T], cells: &[Atomic<T>]) {
    let x = values[global_id()];
    cells[0].fetch_add(x, Ordering::Relaxed);
    cells[1].fetch_sub(x, Ordering::Relaxed);
    cells[2].fetch_and(x, Ordering::Relaxed);
    cells[3].fetch_or(x, Ordering::Relaxed);
    cells[4].fetch_xor(x, Ordering::Relaxed);
    cells[5].fetch_min(x, Ordering::Relaxed);
    cells[6].fetch_max(x, Ordering::Relaxed);
}

fn commutes<T: AtomicInteger>(device: &dyn Device, from: impl Fn(u64) -> T) {
    let bits = noise(512);
    let values: Vec<T> = bits
        .chunks(2)
        .map(|pair| from(u64::from(pair[0]) << 32 | u64::from(pair[1])))
        .collect();
    let start: Vec<T> = (0..7)
        .map(|index| if index == 2 { from(u64::MAX) } else { from(index) })
        .collect();
    let cells: Vec<Atomic<T>> = start.iter().map(|&value| Atomic::new(value)).collect();
    let geometry = Geometry::new(4, 64);
    commuting::reference(geometry, &values, &cells).expect("the ordinary function runs");
    let expected: Vec<T> = cells.into_iter().map(Atomic::into_inner).collect();

    let queue = device.queue().expect("a queue");
    let values = TypedBuffer::from_slice(device, &values).expect("fits");
    let mut cells = TypedBuffer::from_slice(device, &start).expect("fits");
    let arguments = commuting::arguments(&values, &mut cells);
    let compiled = commuting::compile::<T>(device).expect("compiles");
    compiled
        .launch(&*queue, geometry, arguments)
        .wait()
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(cells.read(&*queue).expect("written"), expected);
}

#[test]
fn operations_that_commute_agree() {
    for device in devices() {
        commutes::<u32>(&*device, |bits| bits as u32);
        commutes::<i32>(&*device, |bits| bits as i32);
        commutes::<u64>(&*device, |bits| bits);
        commutes::<i64>(&*device, |bits| bits as i64);
    }
    lowers(commuting::kernel::<u32>());
    let text = lowers(commuting::kernel::<i64>());
    for wanted in ["atom.relaxed.gpu.global.add.u64", "min.s64", "xor.b64"] {
        assert!(text.contains(wanted), "{wanted}\n{text}");
    }
}

/// Each work-item takes a place from a counter, and writes there; some replace or exchange.
#[kernel]
fn places(
    values: &[u32],
    counter: &[Atomic<u32>],
    out: &mut [u32],
    last: &[Atomic<u64>],
    sum: &[Atomic<f32>],
) {
    let x = values[global_id()];
    if x % 3 == 0 {
        let place = counter[0].fetch_add(1, Ordering::Relaxed);
        out[place as usize] = x;
    }
    last[0].swap(x as u64 + 1, Ordering::Relaxed);
    // The greatest so far, the long way.
    let mut seen = last[1].load(Ordering::Relaxed);
    while seen < x as u64 {
        let found = last[1].compare_and_swap(seen, x as u64, Ordering::AcqRel);
        if found == seen {
            break;
        }
        seen = found;
    }
    sum[0].fetch_add((x % 8) as f32, Ordering::Relaxed);
}

#[test]
fn places_from_a_counter_are_all_taken() {
    for device in devices() {
        let queue = device.queue().expect("a queue");
        let input: Vec<u32> = noise(192).iter().map(|bits| bits % 100_000).collect();
        let wanted: Vec<u32> = input.iter().copied().filter(|x| x % 3 == 0).collect();
        let values = TypedBuffer::from_slice(&*device, &input).expect("fits");
        let mut counter = TypedBuffer::from_slice(&*device, &[0u32]).expect("fits");
        let mut out = TypedBuffer::from_slice(&*device, &vec![0u32; wanted.len()]).expect("fits");
        let mut last = TypedBuffer::from_slice(&*device, &[0u64; 2]).expect("fits");
        let mut sum = TypedBuffer::from_slice(&*device, &[0.0f32]).expect("fits");
        let arguments = places::arguments(&values, &mut counter, &mut out, &mut last, &mut sum);
        let compiled = places::compile(&*device).expect("compiles");
        let event = compiled.launch(&*queue, Geometry::new(6, 32), arguments);
        event.wait().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(counter.read(&*queue).expect("written"), [wanted.len() as u32]);
        let mut found = out.read(&*queue).expect("written");
        let mut wanted = wanted;
        found.sort_unstable();
        wanted.sort_unstable();
        assert_eq!(found, wanted);
        let last = last.read(&*queue).expect("written");
        assert!(input.contains(&(last[0] as u32 - 1)));
        assert_eq!(last[1], u64::from(*input.iter().max().expect("some")));
        // Small integers: exact in any order.
        let expected = input.iter().map(|x| (x % 8) as f32).sum::<f32>();
        assert_eq!(sum.read(&*queue).expect("written"), [expected]);
    }
    let text = lowers(places::kernel());
    assert!(text.contains("atom.acq_rel.gpu.global.cas.b64"), "{text}");
    assert!(text.contains("atom.relaxed.gpu.global.add.f32"), "{text}");
}

/// The last work-group to finish adds up what all have written: it must see it.
#[kernel(work_group = 32)]
fn last_one_sums(values: &[u32], partial: &mut [u32], done: &[Atomic<u32>], result: &mut [u32]) {
    let sum = shared::<Atomic<u32>, 2>();
    let is_first = local_id() == 0;
    if is_first {
        sum[0].store(0, Ordering::Relaxed);
    }
    barrier();
    sum[0].fetch_add(values[global_id()], Ordering::Relaxed.within(Scope::WorkGroup));
    barrier();
    if is_first {
        partial[group_id()] = sum[0].load(Ordering::SeqCst);
        fence(Ordering::Release);
        let before = done[0].fetch_add(1, Ordering::Relaxed);
        fence(Ordering::Acquire);
        if before as usize + 1 == group_count() {
            let mut total = 0;
            for group in 0..group_count() {
                total += partial[group];
            }
            result[0] = total;
        }
    }
}

#[test]
fn the_last_work_group_sees_what_all_have_written() {
    for device in devices() {
        let queue = device.queue().expect("a queue");
        let input: Vec<u32> = (1..=256).collect();
        let values = TypedBuffer::from_slice(&*device, &input).expect("fits");
        let mut partial = TypedBuffer::uninitialized(&*device, 8).expect("fits");
        let mut done = TypedBuffer::from_slice(&*device, &[0u32]).expect("fits");
        let mut result = TypedBuffer::from_slice(&*device, &[0u32]).expect("fits");
        let arguments = last_one_sums::arguments(&values, &mut partial, &mut done, &mut result);
        let compiled = last_one_sums::compile(&*device).expect("compiles");
        let event = compiled.launch(&*queue, Geometry::new(8, 32), arguments);
        event.wait().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(result.read(&*queue).expect("written"), [256 * 257 / 2]);
    }
    let text = lowers(last_one_sums::kernel());
    for wanted in [
        "fence.acq_rel.gpu",
        "atom.relaxed.cta.shared.add.u32",
        "st.relaxed.gpu.shared.b32",
        "fence.sc.gpu",
        "ld.acquire.gpu.shared.b32",
    ] {
        assert!(text.contains(wanted), "{wanted}\n{text}");
    }
}

/// What is atomic on one side only is a race, inside a work-group and between them.
#[kernel]
fn half_atomic(cells: &[Atomic<u32>], out: &mut [u32], across: u32) {
    let tile = shared::<Atomic<u32>, 4>();
    if across == 0 {
        tile[local_id() % 2].store(1, Ordering::Relaxed);
        out[local_id()] = tile[0].load(Ordering::Relaxed);
    } else {
        // Every work-group writes another value, without atomics.
        out[0] = cells[0].load(Ordering::Relaxed) + group_id() as u32;
    }
}

/// One work-item writes, tells the next, and that one reads: without the acquire it may not.
#[kernel(work_group = 2, sub_group = 8)]
fn message<const ACQUIRE: bool>(data: &mut [u32], flag: &[Atomic<u32>], out: &mut [u32]) {
    if local_id() == 0 {
        data[0] = 42;
        flag[0].store(1, Ordering::Release);
    } else {
        let told = if ACQUIRE {
            flag[0].load(Ordering::Acquire)
        } else {
            flag[0].load(Ordering::Relaxed)
        };
        if told == 1 {
            out[0] = data[0];
        }
    }
}

#[test]
fn races_are_told_from_what_is_ordered() {
    let device = Simulator::untimed();
    let queue = device.queue().expect("a queue");
    let run = |across: u32, groups: u32| {
        let mut cells = TypedBuffer::from_slice(&device, &[7u32]).expect("fits");
        let mut out = TypedBuffer::from_slice(&device, &[0u32; 8]).expect("fits");
        let arguments = half_atomic::arguments(&mut cells, &mut out, across);
        let compiled = half_atomic::compile(&device).expect("compiles");
        compiled
            .launch(&*queue, Geometry::new(groups, 4), arguments)
            .wait()
    };
    assert!(run(0, 1).is_ok(), "atomic accesses do not race with each other");
    let error = run(1, 2)
        .expect_err("two work-groups write one element")
        .to_string();
    assert!(error.contains("`out[0]`"), "{error}");

    let mut data = TypedBuffer::from_slice(&device, &[0u32]).expect("fits");
    let mut flag = TypedBuffer::from_slice(&device, &[0u32]).expect("fits");
    let mut out = TypedBuffer::from_slice(&device, &[0u32]).expect("fits");
    let mut tell = |compiled: headstart::runtime::launch::Compiled<_>| {
        let arguments = message::arguments(&mut data, &mut flag, &mut out);
        compiled.launch(&*queue, Geometry::new(1, 2), arguments).wait()
    };
    // The branch of the second work-item runs after the first one's.
    let ordered = tell(message::compile::<true>(&device).expect("compiles"));
    assert!(ordered.is_ok(), "{ordered:?}");
    let error = tell(message::compile::<false>(&device).expect("compiles")).expect_err("nothing orders it");
    assert!(
        error.to_string().contains("`data[0]`, which work-item 0 wrote"),
        "{error}"
    );
}

#[test]
fn orders_that_an_operation_cannot_have() {
    #[kernel]
    fn releasing_load(cells: &[Atomic<u32>]) {
        cells[0].load(Ordering::Release);
    }
    #[kernel]
    fn acquiring_store(cells: &[Atomic<u32>]) {
        cells[0].store(1, Ordering::Acquire);
    }
    #[kernel]
    fn no_fence(cells: &[Atomic<u32>]) {
        fence(Ordering::Relaxed);
        cells[0].store(1, Ordering::Relaxed);
    }
    let said = |kernel: headstart::Result<headstart::ir::Kernel>| kernel.expect_err("refused").to_string();
    assert!(said(releasing_load::kernel()).contains("an atomic `load` cannot have the order release"));
    assert!(said(acquiring_store::kernel()).contains("accepted: Relaxed, Release, SeqCst"));
    assert!(said(no_fence::kernel()).contains("a relaxed fence orders nothing"));
}

#[test]
fn results_do_not_depend_on_threads() {
    // Every work-group's place depends on those before it: they run in order.
    #[kernel]
    fn tickets(counter: &[Atomic<u32>], out: &mut [u32]) {
        out[global_id()] = counter[0].fetch_add(1, Ordering::Relaxed);
    }
    let device = Simulator::untimed();
    let queue = device.queue().expect("a queue");
    let mut counter = TypedBuffer::from_slice(&device, &[0u32]).expect("fits");
    let mut out = TypedBuffer::uninitialized(&device, 2048).expect("fits");
    let arguments = tickets::arguments(&mut counter, &mut out);
    let compiled = tickets::compile(&device).expect("compiles");
    let event = compiled.launch(&*queue, Geometry::new(128, 16), arguments);
    event.wait().unwrap_or_else(|error| panic!("{error}"));
    let expected: Vec<u32> = (0..2048).collect();
    assert_eq!(out.read(&*queue).expect("written"), expected);
}

/// What this module shows of the language.
pub const FEATURES: &[Feature] = &[
    Feature {
        name: "atomic integer arithmetic",
        spelled: "`bins[i].fetch_add(1, Ordering::Relaxed)`",
        kernel: commuting::kernel::<u32>,
        test: operations_that_commute_agree,
    },
    Feature {
        name: "atomic exchange, compare and swap, float addition",
        spelled: "`x[0].compare_and_swap(a, b, Ordering::AcqRel)`",
        kernel: places::kernel,
        test: places_from_a_counter_are_all_taken,
    },
    Feature {
        name: "fences, orders, scopes, shared atomics",
        spelled: "`fence(Ordering::Acquire.within(Scope::WorkGroup))`",
        kernel: last_one_sums::kernel,
        test: the_last_work_group_sees_what_all_have_written,
    },
];
