//! Slots in shared memory: each work-item has D of them, addressed by a wrapping pointer.
//!
//! ```text
//! plain         item 0: 0 1 2 3 | item 1: 0 1 2 3 | …      bank conflicts where D is even
//! padded        item 0: 0 1 2 3 . | item 1: 0 1 2 3 . | …  D + padding is odd: none for 4-byte elements
//! interleaved   slot 0 of all items | slot 1 of all items  none, no padding
//! ```
//!
//! The pointer to the current slot is carried from step to step; stepping on is an addition, a comparison
//! and a selection, never a division.

use super::early::Early;
use super::plan::{Distance, Layout};
use crate::analysis::loops::LoadSite;
use crate::error::{Error, Result};
use crate::ir::{
    ArrayData, BinaryOp, Builder, CacheUse, CompareOp, ConvertOp, Id, OpKind, Space, Type, Value, limits,
};

/// The type of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holds {
    /// The load's type.
    Result,
    /// The 4 bytes around it.
    Word,
}

/// The slots of one load.
pub(super) struct Slots {
    site: LoadSite,
    /// Slots of a work-item.
    depth: u32,
    /// Bytes from one slot of a work-item to its next.
    stride: i64,
    /// The work-item's first slot, and the end of its last: values in front of the loop.
    first: Value,
    end: Value,
}

impl Slots {
    /// Declares the array and computes the work-item's part of it. A slot holds the load's value, or the whole word around it.
    pub(super) fn declare(
        b: &mut Builder<'_>,
        site: &LoadSite,
        depth: Distance,
        layout: Layout,
        holds: Holds,
    ) -> Result<Slots> {
        let name = b.kernel.loads[site.id].name.clone();
        let Some(size) = b.kernel.group_size else {
            return Err(Error::usage(
                "slots in shared memory need the work-group size when the kernel is built",
            )
            .accepted("a kernel with a required work-group size, or a launch that fixes it"));
        };
        let items: u64 = size.iter().map(|&extent| u64::from(extent)).product();
        let (element, elements) = match holds {
            Holds::Result => (b.kernel.ty(site.results[0]), site.results.len() as u64),
            Holds::Word => (Type::I32, 1),
        };
        let bytes = u64::from(element.bytes()) * elements;
        let per_item = u64::from(layout.depth(depth));
        let total = items * per_item * bytes;
        // With the slots of other loads, and of the other copies of this one. Devices have less, and say so themselves.
        let (arrays, shared) = (b.kernel.arrays.len() + 1, b.kernel.shared_bytes() + total);
        if arrays > limits::ARRAYS || shared > limits::SHARED_BYTES {
            return Err(Error::device(format!(
                "with the slots of `{name}` shared memory would take {shared} bytes a work-group, and the number of arrays would be {arrays}"
            ))
            .accepted(format!(
                "at most {} bytes and {} arrays",
                limits::SHARED_BYTES,
                limits::ARRAYS
            )));
        }
        let (item_stride, stride) = match layout {
            Layout::Interleaved => (bytes, items * bytes),
            _ => (per_item * bytes, bytes),
        };
        let array = b.kernel.arrays.push(ArrayData {
            name: format!("{name}_slots"),
            space: Space::Shared,
            element,
            length: (total / u64::from(element.bytes())) as u32,
            align: 16,
        });
        let depth = depth.get();
        let base = b.array_address(array);
        let item = linear_item(b, size);
        let first = b.address(base, item, item_stride as u32, 0);
        let zero = b.i64(0);
        let end = b.address(first, zero, 1, i64::from(depth) * stride as i64);
        Ok(Slots {
            site: site.clone(),
            depth,
            stride: stride as i64,
            first,
            end,
        })
    }

    /// The pointer before the first step.
    pub(super) fn first(&self) -> Value {
        self.first
    }

    /// Whether `pointer` is at the first slot.
    pub(super) fn at_first(&self, b: &mut Builder<'_>, pointer: Value) -> Value {
        b.compare(CompareOp::Eq, pointer, self.first)
    }

    /// The slot `ahead` of the one at `pointer`. Without wrapping round if `near`.
    pub(super) fn slot(&self, b: &mut Builder<'_>, pointer: Value, ahead: u32, near: bool) -> Value {
        let zero = b.i64(0);
        let ahead = ahead % self.depth;
        let slot = b.address(pointer, zero, 1, i64::from(ahead) * self.stride);
        if near || ahead == 0 {
            return slot;
        }
        let inside = b.compare(CompareOp::LtU, slot, self.end);
        let wrapped = b.address(slot, zero, 1, -i64::from(self.depth) * self.stride);
        b.select(inside, slot, wrapped)
    }

    /// The pointer after a step of `group` iterations, which divides the depth.
    pub(super) fn step(&self, b: &mut Builder<'_>, pointer: Value, group: u32) -> Value {
        if group == self.depth {
            return pointer;
        }
        let zero = b.i64(0);
        let next = b.address(pointer, zero, 1, i64::from(group) * self.stride);
        let at_end = b.compare(CompareOp::Eq, next, self.end);
        b.select(at_end, self.first, next)
    }

    /// Reads a slot where `guard` holds: only there was it filled. Makes it known as `ahead`.
    pub(super) fn read(
        &self,
        b: &mut Builder<'_>,
        early: &mut Early<'_>,
        guard: Option<Value>,
        slot: Value,
        ahead: u32,
    ) {
        let values = super::early::load_under(b, guard, &self.site, slot);
        for (&result, &value) in self.site.results.iter().zip(&values) {
            early.know(result, ahead, value);
        }
    }

    /// Writes a slot.
    pub(super) fn write(&self, b: &mut Builder<'_>, slot: Value, values: Vec<Value>) {
        b.push(OpKind::store(slot, values, CacheUse::Default), &[]);
    }
}

/// The work-item's position in its work-group, dimension 0 fastest; an `I64`.
fn linear_item(b: &mut Builder<'_>, size: [u32; 3]) -> Value {
    let mut item = b.id(Id::Local(0));
    let mut below = size[0];
    for dimension in 1..3u8 {
        let extent = size[usize::from(dimension)];
        if extent > 1 {
            let position = b.id(Id::Local(dimension));
            let factor = b.constant(Type::I32, u64::from(below));
            let offset = b.mul(position, factor);
            item = b.binary(BinaryOp::Add, item, offset);
            below *= extent;
        }
    }
    b.convert(ConvertOp::ExtendU, Type::I64, item)
}
