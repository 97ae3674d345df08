//! Atomic elements: what is not atomic, and what they do not have.

use headstart::prelude::*;

#[kernel]
fn plain_slice(counts: &[u32]) {
    counts[0].fetch_add(1, Ordering::Relaxed); //~ E0277 5 //~ E0599 15
}

#[kernel] //~ E0277 1
fn plain_arithmetic(counts: &[Atomic<u32>]) {
    counts[0] += 1; //~ E0368 5 //~ E0277 15
}

#[kernel]
fn no_order(counts: &[Atomic<u32>]) {
    counts[0].fetch_add(1); //~ macro 15
}

#[kernel]
fn not_an_element(counts: &[Atomic<u32>], n: u32) {
    n.fetch_add(1, Ordering::Relaxed); //~ macro 7
}

#[kernel] //~ E0277*3 1
fn too_small(counts: &[Atomic<u8>]) { //~ E0277 14 //~ E0277*3 24
    counts[0].fetch_or(1, Ordering::Relaxed); //~ E0277 5 //~ E0599 15
}

#[kernel]
fn bits_of_a_float(sums: &[Atomic<f32>]) {
    sums[0].fetch_xor(1.0, Ordering::Relaxed); //~ E0599 13 //~ E0277 23
}

#[kernel]
fn wrong_type(counts: &[Atomic<u32>], x: f32) {
    counts[0].fetch_add(x, Ordering::Relaxed); //~ E0308 25
}

#[kernel]
fn exclusive(counts: &mut [Atomic<u32>]) { //~ E0277 14 //~ E0277 28
    counts[0].store(1, Ordering::Relaxed);
}

#[kernel]
fn fence_without_order(counts: &[Atomic<u32>]) {
    fence(); //~ macro 5
}

#[kernel]
fn order_at_run_time(counts: &[Atomic<u32>], strong: bool) {
    counts[0].store(1, if strong { Ordering::SeqCst } else { Ordering::Relaxed }); //~ macro 24
}

#[kernel]
fn result_of_an_exchange(counts: &[Atomic<u32>], out: &mut [u32]) {
    if counts[0].compare_exchange(0, 1, Ordering::AcqRel, Ordering::Relaxed).is_ok() { //~ macro 18 //~ macro 78
        out[0] = 1;
    }
}
