//! Asynchronous copies by hand: the article's pipeline, and what is reported of one that is wrong.

use headstart::back::ptx;
use headstart::device::sim::Simulator;
use headstart::device::{Device, Element, TypedBuffer};
use headstart::prelude::*;
use headstart::runtime::launch::Compiled;

use crate::agree::{agree, devices, lowers, noise, taken};
use crate::conformance::Feature;

/// NVIDIA's article, "smem rolling async": a ring that is waited for one iteration at a time.
#[kernel(work_group = 32)]
fn rolled<T: Number, const PDIST: usize>(input: &[T], output: &mut [T], rounds: u32) {
    let mut v = shared::<T, 512>();
    let first = PDIST * local_id();
    for k in 0..PDIST {
        pipeline_memcpy_async(&mut v[first + k..], &input[local_id() + k * 32..]);
        pipeline_commit();
    }
    for ctr in 0..rounds as usize {
        pipeline_wait_prior(PDIST as u32 - 1);
        let slot = first + ctr % PDIST;
        output[ctr * 32 + local_id()] = v[slot];
        if ctr + PDIST < rounds as usize {
            pipeline_memcpy_async(&mut v[slot..], &input[local_id() + (ctr + PDIST) * 32..]);
        }
        pipeline_commit();
    }
}

/// A tile that all wait for: two copies in a group, and a barrier, behind which others read.
#[kernel(work_group = 64)]
fn tiles(input: &[u32], output: &mut [u32], count: u32) {
    let mut tile = shared::<u32, 128>();
    for t in 0..count as usize {
        pipeline_memcpy_async(&mut tile[local_id()..], &input[t * 128 + local_id()..]);
        pipeline_memcpy_async(&mut tile[64 + local_id()..], &input[t * 128 + 64 + local_id()..]);
        pipeline_commit();
        pipeline_wait_prior(0);
        barrier();
        output[t * 64 + local_id()] = tile[127 - local_id()]
            .wrapping_mul(3)
            .wrapping_add(tile[local_id()]);
        barrier();
    }
}

fn agree_for<T: Number + Element>(of: fn(u32) -> T) {
    let input: Vec<T> = noise(32 * 16).into_iter().map(of).collect();
    let blank = vec![T::ZERO; 32 * 16];
    let geometry = Geometry::new(1, 32);
    for rounds in [16u32, 4, 5] {
        agree!(rolled::<T, 4>, geometry, input.clone(), blank.clone(), rounds);
    }
    agree!(rolled::<T, 1>, geometry, input.clone(), blank.clone(), 16);
    agree!(rolled::<T, 16>, geometry, input, blank, 16);
    lowers(rolled::kernel::<T, 4>());
}

#[test]
fn copies_by_hand_agree() {
    agree_for(|x| x);
    agree_for(|x| f64::from(x) * 0.5);
    agree_for(|x| f32::from_bits(x & 0x7f7f_ffff));
}

/// The ordinary function of a kernel with barriers cannot run: what is right is written here.
#[test]
fn a_tile_that_is_copied_by_all_is_read_by_all() {
    let input = noise(128 * 5);
    let right = (0..5usize).flat_map(|t| {
        let tile: Vec<u32> = input[t * 128..(t + 1) * 128].to_vec();
        (0..64usize).map(move |i| tile[127 - i].wrapping_mul(3).wrapping_add(tile[i]))
    });
    let right: Vec<u32> = right.collect();
    for device in devices() {
        let queue = device.queue().expect("a queue");
        let Some(compiled) = taken(&*device, tiles::compile(&*device)) else {
            continue;
        };
        let source = TypedBuffer::from_slice(&*device, &input).expect("fits");
        let mut target = TypedBuffer::from_slice(&*device, &[0u32; 64 * 5]).expect("fits");
        let arguments = tiles::arguments(&source, &mut target, 5);
        let ran = compiled.launch(&*queue, Geometry::new(1, 64), arguments).wait();
        if taken(&*device, ran).is_some() {
            assert_eq!(target.read(&*queue).expect("written"), right);
        }
    }
}

#[test]
fn groups_are_counted_as_the_article_counts_them() {
    let kernel = rolled::kernel::<f64, 6>().expect("a kernel");
    let target = ptx::PtxTarget::for_capability((8, 0)).expect("Ampere");
    let text = ptx::emit(&kernel, &ptx::Options::new(target)).expect("PTX").text;
    assert!(
        text.contains("cp.async") && text.contains("cp.async.wait_group 5;"),
        "{text}"
    );
}

/// One group too many is left on its way: the slot is read while the copy goes there.
#[kernel(work_group = 32)]
fn too_early(input: &[u32], output: &mut [u32]) {
    let mut v = shared::<u32, 64>();
    for k in 0..2 {
        pipeline_memcpy_async(&mut v[k * 32 + local_id()..], &input[k * 32 + local_id()..]);
        pipeline_commit();
    }
    pipeline_wait_prior(2);
    output[local_id()] = v[local_id()];
}

/// The slot is copied into again before the copy that is on its way has been waited for.
#[kernel(work_group = 32)]
fn overwritten(input: &[u32], output: &mut [u32]) {
    let mut v = shared::<u32, 32>();
    pipeline_memcpy_async(&mut v[local_id()..], &input[local_id()..]);
    pipeline_commit();
    v[local_id()] = 7;
    pipeline_wait_prior(0);
    output[local_id()] = v[local_id()];
}

/// To global memory nothing is copied so.
#[kernel(work_group = 32)]
fn to_global(input: &[u32], output: &mut [u32]) {
    pipeline_memcpy_async(&mut output[local_id()..], &input[local_id()..]);
    pipeline_wait_prior(0);
}

#[kernel(work_group = 32)]
fn of_bytes(input: &[u8], output: &mut [u8]) {
    let mut v = shared::<u8, 32>();
    pipeline_memcpy_async(&mut v[local_id()..], &input[local_id()..]);
    pipeline_wait_prior(0);
    output[local_id()] = v[local_id()];
}

/// How many are left on their way follows from an argument.
#[kernel(work_group = 32)]
fn unknown(input: &[u32], output: &mut [u32], left: u32) {
    let mut v = shared::<u32, 32>();
    pipeline_memcpy_async(&mut v[local_id()..], &input[local_id()..]);
    pipeline_wait_prior(left);
    output[local_id()] = v[local_id()];
}

#[test]
fn a_pipeline_that_is_wrong_is_reported() {
    let device = Simulator::untimed();
    let queue = device.queue().expect("a queue");
    let input = TypedBuffer::from_slice(&device, &[1u32; 64]).expect("fits");
    let mut output = TypedBuffer::from_slice(&device, &[0u32; 64]).expect("fits");
    let mut said = |compiled: headstart::Result<Compiled<fn(&[u32], &mut [u32])>>| {
        let arguments = too_early::arguments(&input, &mut output);
        let event = compiled
            .expect("compiles")
            .launch(&*queue, Geometry::new(1, 32), arguments);
        event.wait().expect_err("reported").to_string()
    };
    let early = said(too_early::compile(&device));
    assert!(early.contains("pipeline.rs") && early.contains("copy"), "{early}");
    let over = said(overwritten::compile(&device));
    assert!(over.contains("pipeline.rs") && over.contains("copy"), "{over}");
    let refused = to_global::kernel().expect_err("refused").to_string();
    assert!(refused.contains("from global to shared memory"), "{refused}");
    let refused = of_bytes::kernel().expect_err("refused").to_string();
    assert!(refused.contains("elements of 4 or 8 bytes"), "{refused}");
    let refused = unknown::kernel().expect_err("refused").to_string();
    assert!(refused.contains("known when the kernel is compiled"), "{refused}");
}

/// What this module shows of the language.
pub const FEATURES: &[Feature] = &[Feature {
    name: "asynchronous copies by hand",
    spelled: "`pipeline_memcpy_async(&mut tile[i..], &v[j..])`, `pipeline_commit()`, `pipeline_wait_prior(3)`",
    kernel: rolled::kernel::<f32, 4>,
    test: copies_by_hand_agree,
}];
