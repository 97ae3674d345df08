//! Where the elements of a tensor core's operands lie in the registers of a sub-group.
//!
//! PTX documents it for `mma` ("Matrix Fragments for mma.m16n8k16 …"): with `g = lane / 4` and `t = lane % 4`, and `e` elements in a
//! register, register `r` of A has row `g + 8 (r % 2)` and the columns from `e t + 4 e (r / 2)`, of B column `g` and the rows from
//! `e t + 4 e r`, of C row `g + 8 (r / 2)` and columns from `2 t`. For `wmma` it documents nothing; on an H100 its matrices are made
//! of the same pieces, read off registers after `wmma.load`: `m16n16k16` is two pieces side by side, `m32n8k16` two below each
//! other, and `m8n32k16` is `m32n8k16` with rows and columns exchanged. For `wgmma` a sub-group has 16 rows in pieces side by side.

use crate::ir::carried::{Element, Part};

/// Lanes of a sub-group that multiplies matrices.
pub(crate) const FRAGMENT_LANES: usize = 32;

/// Rows and columns of a matrix of 16-bit elements that is moved, and the bytes of a row.
pub(super) const SIDE: usize = 8;
pub(super) const ROW: u32 = 16;

/// The matrices of one multiplication: A is rows × inner, B inner × columns, C and D rows × columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MatrixShape {
    /// Rows of a piece: 16, or 8.
    piece: u32,
    /// Pieces below each other.
    down: u32,
    /// Pieces side by side, of 8 columns each.
    across: u32,
    /// Products of a sum.
    pub inner: u32,
    /// Whether rows and columns are exchanged in registers.
    exchanged: bool,
}

/// One operand in registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fragment {
    /// The multiplication that it is for.
    pub shape: MatrixShape,
    /// Which operand it is.
    pub part: Part,
    /// The type of its elements.
    pub element: Element,
    /// How many registers it has. They may repeat its elements.
    pub registers: u32,
}

impl MatrixShape {
    /// The shape that `mma` calls so: `m16n8k16`.
    pub(crate) fn of_mma((m, n, k): (u32, u32, u32)) -> Option<MatrixShape> {
        let shape = MatrixShape {
            piece: m,
            down: 1,
            across: 1,
            inner: k,
            exchanged: false,
        };
        (matches!(m, 8 | 16) && n == 8).then_some(shape)
    }

    /// The shape that `wmma` calls so: `m16n16k16`.
    pub(crate) fn of_wmma(sizes: (u32, u32, u32)) -> Option<MatrixShape> {
        let (piece, down, across, exchanged) = match sizes {
            (16, 16, 8 | 16) => (16, 1, 2, false),
            (32, 8, 16) => (16, 2, 1, false),
            (8, 32, 16) => (16, 2, 1, true),
            (8, 8, 4) => (8, 1, 1, false),
            _ => return None,
        };
        Some(MatrixShape {
            piece,
            down,
            across,
            inner: sizes.2,
            exchanged,
        })
    }

    /// A sub-group's part of the shape that `wgmma` calls so: `m64n256k16`. It has 16 of the 64 rows, the first those from 0 on.
    pub(crate) fn of_wgmma((m, n, inner): (u32, u32, u32)) -> Option<MatrixShape> {
        let shape = MatrixShape {
            piece: 16,
            down: 1,
            across: n / 8,
            inner,
            exchanged: false,
        };
        (m == 64 && matches!(n, 8..=256) && n.is_multiple_of(8)).then_some(shape)
    }

    /// Rows and columns of an operand.
    pub(crate) fn size(self, part: Part) -> (u32, u32) {
        let (long, wide) = (self.piece * self.down, 8 * self.across);
        let (rows, columns) = match self.exchanged {
            true => (wide, long),
            false => (long, wide),
        };
        match part {
            Part::A => (rows, self.inner),
            Part::B => (self.inner, columns),
            Part::C => (rows, columns),
        }
    }
}

impl Fragment {
    /// An operand in as many registers as its elements take.
    pub(crate) fn new(shape: MatrixShape, part: Part, element: Element) -> Fragment {
        let mut fragment = Fragment {
            shape,
            part,
            element,
            registers: 0,
        };
        let (_, pieces, registers) = fragment.side();
        fragment.registers = pieces * registers;
        fragment
    }

    /// Which part it is before rows and columns are exchanged, of how many pieces, and the registers of a piece.
    fn side(self) -> (Part, u32, u32) {
        let MatrixShape {
            piece,
            down,
            across,
            inner,
            ..
        } = self.shape;
        let per_register = self.element.per_register();
        let part = match (self.part, self.shape.exchanged) {
            (Part::A, true) => Part::B,
            (Part::B, true) => Part::A,
            (part, _) => part,
        };
        let along = inner.div_ceil(4 * per_register);
        match part {
            Part::A => (part, down, piece / 8 * along),
            Part::B => (part, across, along),
            Part::C => (part, down * across, piece / 8 * (2 / per_register.min(2))),
        }
    }

    /// Row and column of an element: number `index` in a register of a lane.
    pub(crate) fn place(self, lane: usize, register: u32, index: u32) -> (u32, u32) {
        let (part, pieces, registers) = self.side();
        let register = register % (pieces * registers).max(1);
        let (number, register) = (register / registers, register % registers);
        let (group, within) = (lane as u32 / 4, lane as u32 % 4);
        let per_register = self.element.per_register();
        let halves = self.shape.piece / 8;
        let along = |step: u32| within * per_register + index + step * 4 * per_register;
        let (row, column) = match part {
            Part::A => (
                number * self.shape.piece + group + 8 * (register % halves),
                along(register / halves),
            ),
            Part::B => (along(register), number * 8 + group),
            Part::C => {
                let (below, beside) = (number / self.shape.across, number % self.shape.across);
                let (half, column) = match per_register {
                    1 => (register / 2, register % 2),
                    _ => (register, index),
                };
                (
                    below * self.shape.piece + group + 8 * half,
                    beside * 8 + within * 2 + column,
                )
            }
        };
        match self.shape.exchanged {
            true => (column, row),
            false => (row, column),
        }
    }

    /// Calls with every register of every lane, and the row and column of each element in it.
    pub(crate) fn each(self, mut visit: impl FnMut(usize, u32, u32, (u32, u32))) {
        for lane in 0..FRAGMENT_LANES {
            for register in 0..self.registers {
                for index in 0..self.element.per_register() {
                    visit(lane, register, index, self.place(lane, register, index));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn fragment(shape: Option<MatrixShape>, part: Part, element: Element) -> Fragment {
        Fragment::new(shape.expect("a shape"), part, element)
    }

    #[test]
    fn every_element_is_in_some_register() {
        let mma = |name| MatrixShape::of_mma(name);
        let wmma = |name| MatrixShape::of_wmma(name);
        for (shape, element, sum) in [
            (mma((16, 8, 16)), Element::F16, Element::F32),
            (mma((16, 8, 8)), Element::F16, Element::F16),
            (mma((16, 8, 4)), Element::Tf32, Element::F32),
            (mma((16, 8, 64)), Element::S4, Element::I32),
            (mma((8, 8, 16)), Element::S8, Element::I32),
            (mma((16, 8, 32)), Element::E4m3, Element::F32),
            (mma((16, 8, 16)), Element::F64, Element::F64),
            (wmma((16, 16, 16)), Element::F16, Element::F16),
            (wmma((32, 8, 16)), Element::Bf16, Element::F32),
            (wmma((8, 32, 16)), Element::U8, Element::I32),
            (wmma((16, 16, 8)), Element::Tf32, Element::F32),
            (wmma((8, 8, 4)), Element::F64, Element::F64),
        ] {
            for (part, element) in [(Part::A, element), (Part::B, element), (Part::C, sum)] {
                let fragment = fragment(shape, part, element);
                let (rows, columns) = fragment.shape.size(part);
                let mut seen = BTreeSet::new();
                let mut places = 0;
                fragment.each(|_, _, _, place| {
                    assert!(place.0 < rows && place.1 < columns, "{fragment:?}: {place:?}");
                    seen.insert(place);
                    places += 1;
                });
                assert_eq!(seen.len() as u32, rows * columns, "{fragment:?}");
                assert_eq!(places, rows * columns, "{fragment:?}: each once");
            }
        }
    }

    #[test]
    fn a_sub_group_has_a_quarter_of_a_warp_groups_registers() {
        let shape = MatrixShape::of_wgmma((64, 24, 16));
        let sum = fragment(shape, Part::C, Element::F32);
        assert_eq!(
            (sum.registers, sum.place(5, 6, 0), sum.place(5, 9, 0)),
            (12, (9, 10), (1, 19))
        );
        let a = fragment(shape, Part::A, Element::F16);
        assert_eq!(
            (a.registers, a.place(5, 1, 1), a.place(5, 2, 0)),
            (4, (9, 3), (1, 10))
        );
        let bits = fragment(MatrixShape::of_wgmma((64, 8, 256)), Part::A, Element::B1);
        assert_eq!((bits.registers, bits.place(1, 2, 3)), (4, (0, 163)));
        assert_eq!(MatrixShape::of_wgmma((64, 12, 16)), None);
        assert_eq!(MatrixShape::of_wgmma((16, 8, 16)), None);
    }

    #[test]
    fn registers_are_as_documented_and_as_seen() {
        let a = fragment(MatrixShape::of_mma((16, 8, 16)), Part::A, Element::F16);
        assert_eq!(
            (a.registers, a.place(5, 1, 1), a.place(5, 2, 0)),
            (4, (9, 3), (1, 10))
        );
        let c = fragment(MatrixShape::of_mma((16, 8, 16)), Part::C, Element::F16);
        assert_eq!((c.registers, c.place(5, 1, 1)), (2, (9, 3)));
        // Read off an H100's registers after `wmma.load`.
        let b = Fragment {
            registers: 8,
            ..fragment(MatrixShape::of_wmma((8, 32, 16)), Part::B, Element::F16)
        };
        assert_eq!(
            (b.place(0, 2, 1), b.place(0, 4, 0), b.place(5, 1, 0)),
            ((9, 0), (0, 16), (2, 9))
        );
        let a = Fragment {
            registers: 8,
            ..fragment(MatrixShape::of_wmma((8, 32, 16)), Part::A, Element::F16)
        };
        assert_eq!((a.place(0, 1, 0), a.place(0, 2, 1)), ((0, 8), (0, 1)));
        let c = fragment(MatrixShape::of_wmma((8, 32, 16)), Part::C, Element::F32);
        assert_eq!((c.place(0, 1, 0), c.place(5, 2, 0)), ((1, 0), (2, 9)));
    }
}
