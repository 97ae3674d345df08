//! What cannot be prefetched.

use headstart::front::lang::pointer::Global;
use headstart::prelude::*;

#[kernel]
fn shared_memory(out: &mut [f32]) {
    let tile = shared::<f32, 64>();
    prefetch(shared_ptr(&tile[0]), L1); //~ E0277 14
    out[0] = 1.0;
}

#[kernel]
fn private_memory(out: &mut [f32]) {
    let own = [1.0f32; 4];
    prefetch(private_ptr(&own[0]).span(2), L1); //~ E0277 14
    joint_prefetch(sub_group(), private_ptr(&own[0]).raw(), L2); //~ E0277 33
    out[0] = own[0];
}

#[kernel]
fn elements_of_a_shared_array(out: &mut [f32]) {
    let tile = shared::<f32, 64>();
    prefetch(&tile[0], L1); //~ E0277 15
    prefetch(&tile[0..4], L1); //~ E0277 15
    out[0] = 1.0;
}

#[kernel]
fn not_a_global_array(out: &mut [f32]) {
    let own = [1.0f32; 4];
    prefetch(global_ptr(&own[0]), L1); //~ E0308 26
    out[0] = own[0];
}

#[kernel]
fn written_only(mut target: View2<f32, WriteOnly>) {
    prefetch(&target[(0, 1)], L1); //~ E0277 15
    prefetch(target.span((0, 1), 8), L1); //~ E0277 14
    prefetch(target.block((0, 1), (2, 8)), L1); //~ E0277 14
    target[(0, 0)] = 1.0;
}

#[kernel]
fn no_level(values: &[f32], out: &mut [f32]) {
    prefetch(&values[0], 1); //~ E0277 26
    out[0] = values[0];
}

#[kernel]
fn no_group(values: &[f32], out: &mut [f32]) {
    joint_prefetch(L1, &values[0], L1); //~ E0277 20
    out[0] = values[0];
}

#[kernel]
fn wrong_size(values: &[f32], out: &mut [f32]) {
    lsc_prefetch_ulong(global_ptr(&values[0]), 0, LSC_LDCC_L1C_L3C); //~ E0277 24
    out[0] = values[0];
}

#[kernel]
fn intels_prefetch_of_a_generic_pointer(values: &[f32], out: &mut [f32]) {
    generic_ptr(&values[0]).prefetch(1); //~ E0599 29
    out[0] = values[0];
}
