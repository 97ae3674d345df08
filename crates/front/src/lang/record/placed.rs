//! Values in memory: scalars, vectors, structs, and the places where they lie.
//!
//! Before: `points[i].mass`, `pairs[i][k]`, `let p = points[i];`. After: one address for the element, with each scalar at a
//! byte offset from it. Adjacent scalars of one type are read and written together, two or four at a time and up to 16 bytes,
//! if alignment allows that for every element.

use std::marker::PhantomData;

pub use super::layout::{Layout, Leaf, Placed};
use super::memory::{AsMemory, Memory};
use super::state::recorder;
use super::{At, Recorded, Values, eq, literal};
use crate::Error;
use crate::ir::{CacheUse, LoadId, OpKind, Type, Value, limits};
use crate::lang::atomic::{Atomic, AtomicScalar};
use crate::lang::scalar::Scalar;

impl<T: Scalar> Layout for Recorded<T> {
    const SIZE: u32 = T::TYPE.bytes();
    const ALIGN: u32 = T::TYPE.bytes();
    const UNIT: Type = T::TYPE;
}

impl<T: Scalar> Placed for Recorded<T> {
    fn leaves(start: u32, leaves: &mut Vec<Leaf>) {
        leaves.push(Leaf {
            ty: T::TYPE,
            offset: start,
        });
    }

    fn names(path: &str, names: &mut Vec<String>) {
        names.push(path.to_owned());
    }
}

impl<V: Layout, const N: usize> Layout for [V; N] {
    const SIZE: u32 = {
        assert!(N >= 1 && N <= 16, "a vector in a kernel has 1 to 16 parts");
        V::SIZE * N as u32
    };
    const ALIGN: u32 = V::ALIGN;
    const UNIT: Type = V::UNIT;
}

impl<V: Placed, const N: usize> Placed for [V; N] {
    fn leaves(start: u32, leaves: &mut Vec<Leaf>) {
        for number in 0..N as u32 {
            V::leaves(start + number * V::SIZE, leaves);
        }
    }

    fn names(path: &str, names: &mut Vec<String>) {
        for number in 0..N {
            V::names(&format!("{path}_{number}"), names);
        }
    }
}

impl<T: AtomicScalar> Layout for AtomicElement<T> {
    const SIZE: u32 = T::TYPE.bytes();
    const ALIGN: u32 = T::TYPE.bytes();
    const UNIT: Type = T::TYPE;
}

/// An element of atomic memory. There is no such value: it is changed in place.
#[derive(Debug)]
pub struct AtomicElement<T: AtomicScalar>(PhantomData<fn() -> Atomic<T>>);

impl<T: AtomicScalar> Clone for AtomicElement<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: AtomicScalar> Copy for AtomicElement<T> {}

/// A struct's recorded form, whose parts have names.
pub trait Fields: Placed {
    /// A struct of the same fields, each the place of one.
    type Places;

    /// Where the fields are if the struct is there.
    fn places(of: Place<Self>) -> Self::Places;
}

/// Where a value lies: `base + index × scale + offset`.
#[derive(Debug)]
pub struct Place<V> {
    base: Value,
    index: Option<(Value, u32)>,
    offset: u32,
    /// The known alignment of `base + index × scale`, in bytes.
    align: u32,
    root: usize,
    value: PhantomData<fn() -> V>,
}

impl<V> Clone for Place<V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<V> Copy for Place<V> {}

/// The largest power of two that divides a size, up to the width of one access.
const fn alignment(size: u32) -> u32 {
    let power = 1 << size.trailing_zeros();
    if power < limits::ACCESS_BYTES {
        power
    } else {
        limits::ACCESS_BYTES
    }
}

/// How an array of these is aligned, so that accesses can be wide.
pub(super) const fn array_alignment<V: Layout>(single: bool) -> u32 {
    if single { V::ALIGN } else { alignment(V::SIZE) }
}

impl<V> Place<V> {
    /// A part of it, `offset` bytes behind its start.
    pub fn part<W>(self, offset: u32) -> Place<W> {
        Place {
            base: self.base,
            index: self.index,
            offset: self.offset + offset,
            align: self.align,
            root: self.root,
            value: PhantomData,
        }
    }

    /// The address `further` bytes behind its start.
    pub(super) fn address(&self, at: At, further: u32) -> Value {
        let offset = i64::from(self.offset + further);
        recorder(|recorder| {
            recorder.build(at, |b| match self.index {
                Some((index, scale)) => b.address(self.base, index, scale, offset),
                None => {
                    let zero = b.constant(Type::I64, 0);
                    b.address(self.base, zero, 1, offset)
                }
            })
        })
    }

    fn load_id(&self, at: At) -> LoadId {
        recorder(|recorder| recorder.load_id(at, self.root))
    }

    /// How many of these scalars, which follow each other, one access may take.
    fn together(&self, leaves: &[Leaf]) -> usize {
        let first = leaves[0];
        let bytes = first.ty.bytes();
        let fits = |count: usize| {
            let total = bytes * count as u32;
            total <= self.align
                && (self.offset + first.offset).is_multiple_of(total)
                && leaves.len() >= count
                && leaves[..count]
                    .iter()
                    .zip(0..)
                    .all(|(leaf, number)| leaf.ty == first.ty && leaf.offset == first.offset + number * bytes)
        };
        if first.ty == Type::Bool {
            return 1;
        }
        [4, 2].into_iter().find(|&count| fits(count)).unwrap_or(1)
    }
}

fn leaves_of<V: Placed>() -> Vec<Leaf> {
    let mut leaves = Vec::new();
    V::leaves(0, &mut leaves);
    leaves
}

/// `memory[index]`
pub fn place<V: Layout>(_: At, memory: impl AsMemory<V>, index: Recorded<usize>) -> Place<V> {
    let memory: Memory<V> = memory.memory();
    Place {
        base: memory.base(),
        index: Some((index.value, V::SIZE)),
        offset: 0,
        align: alignment(V::SIZE),
        root: memory.root(),
        value: PhantomData,
    }
}

/// The place that a pointer points to.
#[allow(dead_code, reason = "pointers come next")]
pub(super) fn pointed<V: Layout>(pointer: Value, root: usize) -> Place<V> {
    Place {
        base: pointer,
        index: None,
        offset: 0,
        align: alignment(V::SIZE),
        root,
        value: PhantomData,
    }
}

/// The fields of a struct that lies here: `points[i].mass` is `fields(…).mass`.
pub fn fields<V: Fields>(place: Place<V>) -> V::Places {
    V::places(place)
}

/// `…[index]` of a vector that lies here.
pub fn item<V: Placed, const N: usize>(at: At, place: Place<[V; N]>, index: Recorded<usize>) -> Place<V> {
    if let Some(known) = known_index::<N>(at, index) {
        return place.part(known as u32 * V::SIZE);
    }
    Place {
        base: place.address(at, 0),
        index: Some((index.value, V::SIZE)),
        offset: 0,
        align: alignment(V::SIZE).min(alignment(place.align | place.offset)),
        root: place.root,
        value: PhantomData,
    }
}

/// The number of a vector's part, if it is known now. Notes an error if there is no such part.
fn known_index<const N: usize>(at: At, index: Recorded<usize>) -> Option<usize> {
    recorder(|recorder| {
        let known = recorder.kernel.as_constant(index.value)?;
        if known < N as u64 {
            return Some(known as usize);
        }
        let error = Error::input(format!("part {known} of a vector of {N}"))
            .accepted(format!("parts 0 to {}", N.saturating_sub(1)));
        recorder.fail(at, error);
        Some(0).filter(|_| N > 0)
    })
}

/// The value that lies here.
pub fn read<V: Placed>(at: At, place: Place<V>) -> V {
    let leaves = leaves_of::<V>();
    let mut parts = Vec::with_capacity(leaves.len());
    // A load of several accesses is still one load: plans name it as one.
    let id = place.load_id(at);
    while parts.len() < leaves.len() {
        let rest = &leaves[parts.len()..];
        let count = place.together(rest);
        let ptr = place.address(at, rest[0].offset);
        let cache = CacheUse::Default;
        let types = vec![rest[0].ty; count];
        let loaded =
            recorder(|recorder| recorder.build(at, |b| b.push(OpKind::Load { ptr, id, cache }, &types)));
        parts.extend(loaded);
    }
    V::from_parts(&mut parts.into_iter())
}

/// Puts a value here.
pub fn write<V: Placed>(at: At, place: Place<V>, value: V) {
    let leaves = leaves_of::<V>();
    let mut parts = Vec::with_capacity(leaves.len());
    value.parts(&mut parts);
    let mut done = 0;
    while done < leaves.len() {
        let rest = &leaves[done..];
        let count = place.together(rest);
        let kind = OpKind::Store {
            ptr: place.address(at, rest[0].offset),
            values: parts[done..done + count].to_vec(),
            cache: CacheUse::Default,
        };
        recorder(|recorder| recorder.build(at, |b| b.push(kind, &[])));
        done += count;
    }
}

/// `vector[index]` of a vector that is a value: chosen among its parts if the index is known only at run time.
pub fn item_of<V: Values, const N: usize>(at: At, vector: [V; N], index: Recorded<usize>) -> V {
    const { assert!(N >= 1, "a vector in a kernel has parts") };
    if let Some(known) = known_index::<N>(at, index) {
        return vector[known];
    }
    let mut chosen = vector[0];
    for (number, part) in vector.into_iter().enumerate().skip(1) {
        chosen = choose(at, eq(at, index, literal(number)), part, chosen);
    }
    chosen
}

/// `vector[index] = value` of a vector that is a value.
pub fn set_item<V: Values, const N: usize>(at: At, vector: &mut [V; N], index: Recorded<usize>, value: V) {
    if let Some(known) = known_index::<N>(at, index) {
        vector[known] = value;
        return;
    }
    for (number, part) in vector.iter_mut().enumerate() {
        *part = choose(at, eq(at, index, literal(number)), value, *part);
    }
}

/// `cond ? a : b`, part by part.
fn choose<V: Values>(at: At, cond: Recorded<bool>, a: V, b: V) -> V {
    let (mut of_a, mut of_b) = (Vec::new(), Vec::new());
    a.parts(&mut of_a);
    b.parts(&mut of_b);
    let chosen: Vec<Value> = recorder(|recorder| {
        let both = of_a.into_iter().zip(of_b);
        both.map(|(a, b)| recorder.build(at, |builder| builder.select(cond.value, a, b)))
            .collect()
    });
    V::from_parts(&mut chosen.into_iter())
}

/// Where a struct's next field starts, behind `end` bytes.
pub const fn field_offset(end: u32, align: u32) -> u32 {
    end.next_multiple_of(align)
}

/// The greatest alignment among a struct's fields.
pub const fn struct_alignment(fields: &[u32]) -> u32 {
    let (mut greatest, mut number) = (1, 0);
    while number < fields.len() {
        if fields[number] > greatest {
            greatest = fields[number];
        }
        number += 1;
    }
    greatest
}

/// The unit of a buffer of structs: their one scalar type, or else integers of their alignment.
pub const fn struct_unit(fields: &[Type], align: u32) -> Type {
    let mut number = 1;
    let mut same = !fields.is_empty();
    while number < fields.len() {
        same &= is_same(fields[0], fields[number]);
        number += 1;
    }
    match align {
        _ if same => fields[0],
        1 => Type::I8,
        2 => Type::I16,
        4 => Type::I32,
        _ => Type::I64,
    }
}

const fn is_same(a: Type, b: Type) -> bool {
    use Type::{Bf16, Bool, F16, F32, F64, I8, I16, I32, I64};
    matches!(
        (a, b),
        (Bool, Bool)
            | (I8, I8)
            | (I16, I16)
            | (I32, I32)
            | (I64, I64)
            | (F16, F16)
            | (Bf16, Bf16)
            | (F32, F32)
            | (F64, F64)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(align: u32, offset: u32) -> Place<()> {
        Place {
            base: Value::from_u32(0),
            index: None,
            offset,
            align,
            root: 0,
            value: PhantomData,
        }
    }

    #[test]
    fn neighbours_move_together_where_every_element_is_aligned() {
        let leaves = |types: &[Type]| {
            let mut end = 0;
            let mut leaves = Vec::new();
            for &ty in types {
                let offset = field_offset(end, ty.bytes());
                leaves.push(Leaf { ty, offset });
                end = offset + ty.bytes();
            }
            leaves
        };
        let four = leaves(&[Type::F32; 4]);
        assert_eq!(place(16, 0).together(&four), 4);
        assert_eq!(place(16, 8).together(&four), 2);
        assert_eq!(place(8, 0).together(&four), 2);
        assert_eq!(place(4, 0).together(&four), 1);
        assert_eq!(place(16, 4).together(&four), 1);
        assert_eq!(place(16, 0).together(&leaves(&[Type::F64; 4])), 2);
        let mixed = leaves(&[Type::F32, Type::I32, Type::F32]);
        assert_eq!(place(16, 0).together(&mixed), 1);
        assert_eq!(place(16, 0).together(&leaves(&[Type::Bool; 4])), 1);
    }

    #[test]
    fn a_buffer_counts_what_divides_its_elements() {
        assert_eq!(struct_unit(&[Type::F32, Type::F32], 4), Type::F32);
        assert_eq!(struct_unit(&[Type::F32, Type::I32], 4), Type::I32);
        assert_eq!(struct_unit(&[Type::I8, Type::F64], 8), Type::I64);
        assert_eq!(struct_alignment(&[1, 8, 4]), 8);
    }
}
