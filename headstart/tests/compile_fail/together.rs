//! Sub-groups and work-groups: arguments that do not fit.

use headstart::prelude::*;

#[kernel]
fn vote_on_a_number(out: &mut [u32], n: u32) {
    out[0] = sub_group_any(n) as u32; //~ E0308 28
}

#[kernel]
fn lane_of_another_type(out: &mut [f32], lane: u32) {
    out[0] = sub_group_shuffle(1.0, lane); //~ E0308 37
}

#[kernel]
fn no_sum_of_truth(out: &mut [bool], b: bool) {
    out[0] = sub_group_reduce_add(b); //~ E0277 35
}

#[kernel]
fn bits_of_floats(out: &mut [f32], x: f32) {
    out[0] = sub_group_reduce_xor(x); //~ E0277 35
}

#[kernel]
fn shuffled_memory(values: &[f32], out: &mut [f32]) {
    out[0] = sub_group_broadcast(values, 0); //~ E0308 34
}

#[kernel]
fn barrier_with_arguments(out: &mut [f32]) {
    barrier(1); //~ E0061*2 5
}

#[kernel]
fn selected_by_a_number(out: &mut [f32], n: u32) {
    out[0] = select(n, 1.0, 2.0); //~ E0308 21
}

#[kernel]
fn selected_of_two_types(out: &mut [f32], b: bool) {
    out[0] = select(b, 1.0, 2u32); //~ E0308 29
}

#[kernel]
fn three_in_a_block(values: &[u32], out: &mut [u32]) {
    let [a, b, c] = sub_group_load_block(&values[0..]); //~ E0277 21
    out[0] = a + b + c;
}

#[kernel]
fn sixteen_in_a_block(out: &mut [u32]) {
    sub_group_store_block(&mut out[0..], [1; 16]); //~ E0277 42
}

#[kernel]
fn block_of_truth(values: &[bool], out: &mut [bool]) {
    out[0] = sub_group_load(&values[0..]); //~ E0277 14 //~ E0277 29
}

#[kernel]
fn block_to_read_only(values: &[u32]) {
    sub_group_store(&mut values[0..], 1); //~ E0596 26
}

#[kernel]
fn block_of_write_only(values: View1<u32, WriteOnly>, out: &mut [u32]) {
    out[0] = sub_group_load(&values[0..]); //~ E0277 30
}
