//! The products of warp groups that can be run: those whose types and operands are known to the bit. Sparse factors are not.

use super::super::fragment::{Fragment, MatrixShape};
use super::super::number::Kinds;
use crate::ir::carried::{Carried, Factor, GroupOperands, Part};
use crate::ir::{Array, Opaque};

/// Sub-groups of a warp group.
pub(crate) const SUB_GROUPS: u32 = 4;

/// A product: a sub-group's 16 rows of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Product {
    /// The instruction's name.
    pub name: Box<str>,
    /// The types.
    pub kinds: Kinds,
    /// The left factor, where it is in registers.
    pub left: Fragment,
    /// The accumulators.
    pub sum: Fragment,
    /// The operands.
    pub given: GroupOperands,
    /// The arrays that the factors' descriptors lead into.
    pub arrays: [Option<Array>; 2],
}

impl Product {
    /// The product of an instruction with this number of operands, and the array that each operand leads into; none if it
    /// cannot be run.
    pub(crate) fn of(
        what: &Opaque,
        operands: usize,
        array: impl Fn(usize) -> Option<Array>,
    ) -> Option<Product> {
        let Carried::Product(own) = &*what.does else {
            return None;
        };
        let given = own.operands?;
        let &[sum, a, b] = &own.elements[..] else {
            return None;
        };
        let kinds = Kinds {
            a,
            b,
            sum,
            saturates: own.saturates,
            unit: own.by,
        };
        let shape = MatrixShape::of_wgmma(own.sizes)?;
        let [left, sum] = [(Part::A, a), (Part::C, sum)].map(|(part, own)| Fragment::new(shape, part, own));
        let (in_registers, of_left) = match given.left {
            Factor::Registers(_, count) => (left.registers as usize == count, None),
            Factor::Descriptor(operand) => (true, array(operand)),
        };
        let results = what.makes.len();
        // The `k` of a product take 32 bytes. The accumulators come behind all other operands.
        let is_known = own.is_plain && kinds.are_known() && shape.inner * a.bits() == 256;
        let fits = results == sum.registers as usize && operands == given.first_summand + results;
        (is_known && in_registers && fits).then(|| Product {
            name: what.name().into(),
            kinds,
            left,
            sum,
            given,
            arrays: [of_left, array(given.right)],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::Type;

    fn read(text: &str, results: usize, operands: usize) -> Option<Product> {
        let what = Opaque::unknown(text.to_owned(), vec![Type::I32; results]);
        Product::of(&what, operands, |_| None)
    }

    #[test]
    fn accumulators_are_counted() {
        let bytes = "wgmma.mma_async.sync.aligned.m64n8k32.f16.e4m3.e5m2 {=0, =1}, @0, @1, @2, 1, 1";
        assert_eq!(read(bytes, 2, 5).map(|product| product.sum.registers), Some(2));
        assert_eq!(read(bytes, 2, 4), None);
        let bits = "wgmma.mma_async.sync.aligned.m64n8k256.s32.b1.b1.and.popc {=0, =1, =2, =3}, {@0, @1, @2, @3}, @4, @5";
        assert_eq!(read(bits, 4, 10).map(|product| product.left.registers), Some(4));
    }

    #[test]
    fn what_is_not_known_to_the_bit_is_not_read() {
        for (text, results, operands) in [
            (
                "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {=0, =1, =2, =3}, @0, @1, @2, 0, 1, 1, 1, 0, 0",
                4,
                7,
            ),
            (
                "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {=0, =1, =2, =3}, @0, @1, 1, 1, 1",
                4,
                6,
            ),
            (
                "wgmma.mma_async.sync.aligned.m64n8k32.f32.f16.f16 {=0, =1, =2, =3}, @0, @1, 1, 1, 1, 0, 0",
                4,
                6,
            ),
            (
                "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {=0, =1, =2, =3}, @0, @1, @2, 1, 1, 0, 0",
                4,
                6,
            ),
            (
                "wgmma.mma_async.sync.aligned.m64n8k64.s32.s4.s4 {=0, =1, =2, =3}, @0, @1, 1",
                4,
                6,
            ),
        ] {
            assert_eq!(read(text, results, operands), None, "{text}");
        }
    }
}
