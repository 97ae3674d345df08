//! The memory that moves of matrices touch, as the accesses of a sub-group that assemblers make of them.
//!
//! | move | accesses |
//! |---|---|
//! | `ldmatrix`, `stmatrix` | one of 16 bytes, by 8 lanes for each matrix |
//! | factors of 16 bits in shared memory (`wmma.load`) | the same: 16 bytes by each of 32 lanes |
//! | other operands of `wmma` | one for each register, or for several that lie side by side |

use super::fragment::{FRAGMENT_LANES, ROW, SIDE};
use super::instruction::Matrix;
use crate::functional::lanes::{LANES, Lanes, Mask, Registers, Slot};
use crate::ir::carried::{Part, RowsForm, Stride};
use crate::ir::{Space, Type};

/// Most bytes that a lane moves at once.
const WIDEST: u32 = 16;

/// An access.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Piece {
    /// Where each lane's bytes start.
    pub addresses: Lanes,
    /// The lanes that take part.
    pub mask: Mask,
    /// Bytes of a lane.
    pub bytes: u32,
}

impl Matrix {
    /// The space that a move goes to, and whether it writes there; none of computations.
    pub(crate) fn moves(&self) -> Option<(Space, bool)> {
        match *self {
            Matrix::Rows {
                writes,
                form: RowsForm { at, .. },
            }
            | Matrix::Whole { writes, at, .. } => Some((at.space, writes)),
            Matrix::Product { .. } | Matrix::Transpose => None,
        }
    }

    /// The operands that the addresses of a move follow from.
    pub(crate) fn address_operands(&self) -> impl Iterator<Item = usize> {
        let (address, stride) = match *self {
            Matrix::Rows { form, .. } => (Some(form.at.value), None),
            Matrix::Whole { at, stride, .. } => match stride {
                Stride::Operand(operand) => (Some(at.value), Some(operand)),
                _ => (Some(at.value), None),
            },
            Matrix::Product { .. } | Matrix::Transpose => (None, None),
        };
        address.into_iter().chain(stride)
    }

    /// The accesses of a move.
    pub(in crate::functional) fn pieces(&self, values: &[(Type, Slot)], registers: &Registers) -> Vec<Piece> {
        let lanes = |operand: usize| {
            values
                .get(operand)
                .map_or([0; LANES], |&(_, slot)| registers.lanes(slot))
        };
        match *self {
            Matrix::Product { .. } | Matrix::Transpose => Vec::new(),
            Matrix::Rows {
                form: RowsForm { count, at, .. },
                ..
            } => {
                let addresses = lanes(at.value).map(|address| address.wrapping_add_signed(at.offset));
                vec![Piece {
                    addresses,
                    mask: Mask::first(SIDE as u32 * count),
                    bytes: ROW,
                }]
            }
            Matrix::Whole {
                fragment,
                by_rows,
                stride,
                at,
                ..
            } => {
                let (rows, columns) = fragment.shape.size(fragment.part);
                let starts = lanes(at.value).map(|address| address.wrapping_add_signed(at.offset));
                let strides = match stride {
                    Stride::Dense => [u64::from(if by_rows { columns } else { rows }); LANES],
                    Stride::Fixed(stride) => [u64::from(stride); LANES],
                    Stride::Operand(operand) => lanes(operand).map(|stride| stride & 0xffff_ffff),
                };
                let bytes = fragment.element.bits() / 8;
                if at.space == Space::Shared && bytes == 2 && fragment.part != Part::C {
                    let (lines, length) = if by_rows { (rows, columns) } else { (columns, rows) };
                    return by_lines((starts[0], strides[0]), lines, length);
                }
                let place = |lane: usize, register: u32, index: u32| {
                    let (row, column) = fragment.place(lane, register, index);
                    let (line, within) = if by_rows { (row, column) } else { (column, row) };
                    let element = u64::from(line).wrapping_mul(strides[lane]) + u64::from(within);
                    starts[lane].wrapping_add(element.wrapping_mul(u64::from(bytes)))
                };
                let mut pieces: Vec<Piece> = Vec::new();
                for register in 0..fragment.registers {
                    for index in 0..fragment.element.per_register() {
                        let addresses = of_lanes(|lane| place(lane, register, index));
                        add(&mut pieces, addresses, bytes);
                    }
                }
                pieces
            }
        }
    }
}

/// An address for each lane that has a part of a matrix.
fn of_lanes(address: impl Fn(usize) -> u64) -> Lanes {
    let mut addresses = [0; LANES];
    for (lane, own) in addresses.iter_mut().enumerate().take(FRAGMENT_LANES) {
        *own = address(lane);
    }
    addresses
}

/// A matrix of 16-bit elements in pieces of 8 elements of a line, one for each lane.
fn by_lines((start, stride): (u64, u64), lines: u32, length: u32) -> Vec<Piece> {
    let across = length.div_ceil(SIDE as u32).max(1);
    let all = lines * across;
    let piece = |first: u32| Piece {
        addresses: of_lanes(|lane| {
            let number = first + lane as u32;
            let (block, line) = (number / lines, number % lines);
            let element = u64::from(line)
                .wrapping_mul(stride)
                .wrapping_add(u64::from(block) * SIDE as u64);
            start.wrapping_add(element.wrapping_mul(2))
        }),
        mask: Mask::first((all - first).min(FRAGMENT_LANES as u32)),
        bytes: ROW,
    };
    (0..all).step_by(FRAGMENT_LANES).map(piece).collect()
}

/// Adds an access of all lanes: to the last one, where its bytes lie behind that one's for all lanes, and not where it was made
/// before, for a fragment may have elements twice.
fn add(pieces: &mut Vec<Piece>, addresses: Lanes, bytes: u32) {
    let covers = |piece: &Piece| {
        let mut both = piece.addresses.iter().zip(&addresses).take(FRAGMENT_LANES);
        both.all(|(&from, &address)| {
            address
                .checked_sub(from)
                .is_some_and(|at| at + u64::from(bytes) <= u64::from(piece.bytes))
        })
    };
    if pieces.iter().any(covers) {
        return;
    }
    if let Some(last) = pieces.last_mut() {
        let mut both = last.addresses.iter().zip(&addresses).take(FRAGMENT_LANES);
        let is_behind = both.all(|(&from, &address)| from.wrapping_add(u64::from(last.bytes)) == address);
        let aligned = last
            .addresses
            .iter()
            .take(FRAGMENT_LANES)
            .map(|from| from.trailing_zeros().min(WIDEST.trailing_zeros()));
        let wide = 1 << aligned.min().unwrap_or(0);
        if is_behind && last.bytes + bytes <= wide {
            last.bytes += bytes;
            return;
        }
    }
    pieces.push(Piece {
        addresses,
        mask: Mask::first(FRAGMENT_LANES as u32),
        bytes,
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The accesses of a move whose address all lanes have in operand 0, and its stride in operand 1.
    fn pieces(text: &str, results: usize, operands: usize, stride: u64) -> Vec<Piece> {
        let matrix = super::super::instruction::read(text, results, operands).expect("a move");
        let mut registers = Registers::new(operands.max(2) as u32, 32);
        registers.broadcast(Slot(0), 4096);
        registers.broadcast(Slot(1), stride);
        let values: Vec<(Type, Slot)> = (0..operands as u32).map(|slot| (Type::I64, Slot(slot))).collect();
        matrix.pieces(&values, &registers)
    }

    fn bytes(pieces: &[Piece]) -> u32 {
        pieces.iter().map(|piece| piece.bytes * piece.mask.count()).sum()
    }

    #[test]
    fn every_byte_of_a_matrix_is_moved_once() {
        let eight = "{=0, =1, =2, =3, =4, =5, =6, =7}";
        let a = pieces(
            &format!("wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {eight}, [@0], @1"),
            8,
            2,
            64,
        );
        // Two elements lie side by side in each of four registers; the other four repeat them.
        assert_eq!((a.len(), a[0].bytes, bytes(&a)), (4, 4, 512));
        let across = pieces(
            &format!("wmma.load.a.sync.aligned.col.m16n16k16.global.f16 {eight}, [@0], @1"),
            8,
            2,
            64,
        );
        assert_eq!((across.len(), across[0].bytes, bytes(&across)), (8, 2, 512));
        let shared = pieces(
            &format!("wmma.load.b.sync.aligned.col.m16n16k16.shared.f16 {eight}, [@0], @1"),
            8,
            2,
            16,
        );
        assert_eq!((shared.len(), shared[0].bytes, bytes(&shared)), (1, 16, 512));
        let c = pieces(
            &format!("wmma.load.c.sync.aligned.row.m16n16k16.global.f32 {eight}, [@0], @1"),
            8,
            2,
            16,
        );
        assert_eq!((c.len(), c[0].bytes, bytes(&c)), (4, 8, 1024));
        let stored = pieces(
            "wmma.store.d.sync.aligned.row.m16n16k16.shared.f32 [@0], {@1, @2, @3, @4, @5, @6, @7, @8}, 16",
            0,
            9,
            0,
        );
        assert_eq!(bytes(&stored), 1024);
        let bytes_of = pieces(
            "wmma.load.a.sync.aligned.row.m16n16k16.global.s8 {=0, =1}, [@0], @1",
            2,
            2,
            16,
        );
        assert_eq!((bytes_of.len(), bytes_of[0].bytes, bytes(&bytes_of)), (2, 4, 256));
    }

    #[test]
    fn rows_of_eight_by_eight_are_sixteen_bytes_of_eight_lanes() {
        for (count, name) in [(1, "x1"), (2, "x2"), (4, "x4")] {
            let to: Vec<String> = (0..count).map(|number| format!("={number}")).collect();
            let text = format!(
                "ldmatrix.sync.aligned.m8n8.{name}.shared.b16 {{{}}}, [@0+32]",
                to.join(", ")
            );
            let all = pieces(&text, count, 1, 0);
            assert_eq!(
                (all.len(), bytes(&all), all[0].addresses[0]),
                (1, 128 * count as u32, 4128)
            );
        }
    }
}
