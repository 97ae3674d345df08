//! The tensor cores' instructions, read from the text that carries them.
//!
//! ```text
//! before    "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {=0, =1}, [@0+32]"
//! after     Rows { count: 2, transposed: false, writes: false, at: Address { operand: 0, offset: 32, space: Shared } }
//! ```
//!
//! Results and operands are numbered in the order of the text, so registers need not be read from it. Shapes and types whose
//! bits are unknown are not run (`b1`, sparse factors, `m8n8k4` of halves). Products of warp groups are [`group`](super::group)'s.

use super::fragment::{Fragment, MatrixShape, Part};
use super::number::{Element, Kinds, Unit};
use crate::ir::Space;

/// An instruction of tensor cores.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Matrix {
    /// `mma`, `wmma.mma`. Operands: the registers of A, B and C; results: those of D.
    Product {
        /// The factors and the summand.
        kinds: Kinds,
        /// A, B, C and D.
        fragments: [Fragment; 4],
    },
    /// `ldmatrix`, `stmatrix`: matrices of 8 × 8 elements of 16 bits. Lane `8 j + i` gives the address of row `i` of matrix `j`.
    Rows {
        /// How many matrices: one, two or four.
        count: u32,
        /// Whether they are transposed on the way.
        transposed: bool,
        /// Whether they are stored: then their registers are the operands behind the address.
        writes: bool,
        /// Where they lie.
        at: Address,
    },
    /// `movmatrix`: the transpose of 8 × 8 elements of 16 bits. One operand, one result.
    Transpose,
    /// `wmma.load`, `wmma.store`: one operand of a product. All lanes give the same address.
    Whole {
        /// Its registers.
        fragment: Fragment,
        /// Whether elements of a row lie side by side.
        by_rows: bool,
        /// Elements from one row to the next, or one column.
        stride: Stride,
        /// Whether it is stored: then its registers are the operands behind the address.
        writes: bool,
        /// Where it lies.
        at: Address,
    },
}

/// An address: an operand, and an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    /// The number of the operand.
    pub operand: usize,
    /// Bytes.
    pub offset: i64,
    /// Where it leads.
    pub space: Space,
}

/// How far rows or columns are from each other, in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stride {
    /// As far as they are long.
    Dense,
    /// So far.
    Fixed(u32),
    /// As an operand says.
    Operand(usize),
}

impl Matrix {
    /// The instruction of a text with these numbers of results and operands; nothing if it is none that can be run.
    pub(crate) fn read(text: &str, results: usize, operands: usize) -> Option<Matrix> {
        let (name, rest) = text.split_once(' ').unwrap_or((text, ""));
        let words: Vec<&str> = name.split('.').collect();
        let read = match words.as_slice() {
            ["mma", "sync", "aligned", shape, "row", "col", kinds @ ..] => {
                product(MatrixShape::of_mma(shape)?, kinds, results, operands)?
            }
            ["wmma", "mma", "sync", "aligned", _, _, shape, kinds @ ..] => {
                product(MatrixShape::of_wmma(shape)?, kinds, results, operands)?
            }
            [
                direction @ ("ldmatrix" | "stmatrix"),
                "sync",
                "aligned",
                "m8n8",
                count,
                more @ ..,
            ] => {
                let count = match *count {
                    "x1" => 1,
                    "x2" => 2,
                    "x4" => 4,
                    _ => return None,
                };
                let (transposed, more) = match more {
                    ["trans", more @ ..] => (true, more),
                    more => (false, more),
                };
                let &["shared" | "shared::cta", "b16"] = more else {
                    return None;
                };
                let writes = *direction == "stmatrix";
                let expected = if writes { (0, 1 + count) } else { (count, 1) };
                if (results, operands) != expected {
                    return None;
                }
                Matrix::Rows {
                    count: count as u32,
                    transposed,
                    writes,
                    at: address(rest, Space::Shared)?,
                }
            }
            ["movmatrix", "sync", "aligned", "m8n8", "trans", "b16"] if (results, operands) == (1, 1) => {
                Matrix::Transpose
            }
            ["wmma", "load", part, "sync", "aligned", layout, shape, more @ ..] => {
                whole(part, layout, shape, more, rest, results as u32, false)?
            }
            ["wmma", "store", "d", "sync", "aligned", layout, shape, more @ ..] => {
                let registers = operands.checked_sub(1 + usize::from(stride_text(rest).starts_with('@')))?;
                whole("c", layout, shape, more, rest, registers as u32, true)?
            }
            _ => return None,
        };
        Some(read)
    }
}

/// A product, from the types behind its shape: `f32.f16.f16.f32`, or for `wmma` of halves `f32.f32`, D and C.
fn product(shape: MatrixShape, words: &[&str], results: usize, operands: usize) -> Option<Matrix> {
    let saturates = words.contains(&"satfinite");
    let words: Vec<Element> = words
        .iter()
        .filter(|word| **word != "satfinite")
        .map(|word| Element::named(word))
        .collect::<Option<_>>()?;
    let (d, a, b, c) = match words[..] {
        [d, a, b, c] => (d, a, b, c),
        [d, c] => (d, Element::F16, Element::F16, c),
        _ => return None,
    };
    let kinds = Kinds {
        a,
        b,
        sum: c,
        saturates,
        unit: Unit::SubGroup,
    };
    if c != d || !kinds.are_known() || !shape.inner.is_multiple_of(4 * a.per_register()) {
        return None;
    }
    let mut fragments = [(Part::A, a), (Part::B, b), (Part::C, c), (Part::C, d)]
        .map(|(part, element)| Fragment::new(shape, part, element));
    // `wmma` has eight registers of halves for each factor, whatever it needs.
    let given = operands.checked_sub(fragments[2].registers as usize)? as u32;
    if given != fragments[0].registers + fragments[1].registers {
        fragments[0].registers = 8;
        fragments[1].registers = 8;
    }
    let fits = given == fragments[0].registers + fragments[1].registers
        && results == fragments[3].registers as usize;
    fits.then_some(Matrix::Product { kinds, fragments })
}

fn whole(
    part: &str,
    layout: &str,
    shape: &str,
    more: &[&str],
    rest: &str,
    registers: u32,
    writes: bool,
) -> Option<Matrix> {
    let (space, element) = match more {
        ["global", element] => (Space::Global, element),
        ["shared" | "shared::cta", element] => (Space::Shared, element),
        [element] => (Space::Generic, element),
        _ => return None,
    };
    let part = match part {
        "a" => Part::A,
        "b" => Part::B,
        "c" => Part::C,
        _ => return None,
    };
    let mut fragment = Fragment::new(MatrixShape::of_wmma(shape)?, part, Element::named(element)?);
    // Elements repeat in the registers of halves, and only there.
    let may_repeat = fragment.element == Element::F16 && part != Part::C;
    if fragment.element.bits() < 8 || registers != fragment.registers && !(may_repeat && registers == 8) {
        return None;
    }
    fragment.registers = registers;
    let stride = match stride_text(rest) {
        "" => Stride::Dense,
        text => match text.strip_prefix('@') {
            Some(operand) => Stride::Operand(operand.parse().ok()?),
            None => Stride::Fixed(text.parse().ok()?),
        },
    };
    Some(Matrix::Whole {
        fragment,
        by_rows: match layout {
            "row" => true,
            "col" => false,
            _ => return None,
        },
        stride,
        writes,
        at: address(rest, space)?,
    })
}

/// The operand behind the address and the registers: a stride, or nothing.
fn stride_text(rest: &str) -> &str {
    rest.rsplit(['}', ']'])
        .next()
        .unwrap_or_default()
        .trim_matches([',', ' '])
}

/// The address in brackets.
fn address(rest: &str, space: Space) -> Option<Address> {
    let inside = rest.split_once('[')?.1.split_once(']')?.0;
    let (operand, offset) = match inside.split_once('+') {
        Some((operand, offset)) => (operand, offset.parse().ok()?),
        None => (inside, 0),
    };
    Some(Address {
        operand: operand.trim().strip_prefix('@')?.parse().ok()?,
        offset,
        space,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_read() {
        let mma = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {=0, =1, =2, =3}, {@0, @1, @2, @3}, {@4, @5}, {@6, @7, @8, @9}";
        assert!(matches!(Matrix::read(mma, 4, 10), Some(Matrix::Product { .. })));
        assert_eq!(Matrix::read(mma, 4, 9), None, "a register is missing");
        let rows = Matrix::read(
            "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {=0, =1}, [@0+-32]",
            2,
            1,
        );
        let at = Address {
            operand: 0,
            offset: -32,
            space: Space::Shared,
        };
        let expected = Matrix::Rows {
            count: 2,
            transposed: true,
            writes: false,
            at,
        };
        assert_eq!(rows, Some(expected));
        let load =
            "wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {=0, =1, =2, =3, =4, =5, =6, =7}, [@0], @1";
        let Some(Matrix::Whole { stride, fragment, .. }) = Matrix::read(load, 8, 2) else {
            panic!("not read")
        };
        assert_eq!((stride, fragment.registers), (Stride::Operand(1), 8));
        let store =
            "wmma.store.d.sync.aligned.col.m16n16k16.shared.f32 [@0], {@1, @2, @3, @4, @5, @6, @7, @8}, 24";
        let Some(Matrix::Whole { stride, by_rows, .. }) = Matrix::read(store, 0, 9) else {
            panic!("not read")
        };
        assert_eq!((stride, by_rows), (Stride::Fixed(24), false));
        let dense = "wmma.store.d.sync.aligned.row.m8n8k4.f64 [@0], {@1, @2}";
        assert!(matches!(
            Matrix::read(dense, 0, 3),
            Some(Matrix::Whole {
                stride: Stride::Dense,
                ..
            })
        ));
    }

    #[test]
    fn what_is_not_known_to_the_bit_is_not_read() {
        for (text, results, operands) in [
            (
                "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {=0}, {@0}, {@1}, {@2}",
                8,
                12,
            ),
            (
                "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f16 {=0}, {@0}, {@1}, {@2}",
                4,
                8,
            ),
            (
                "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.xor.popc {=0}, {@0}, {@1}, {@2}",
                4,
                10,
            ),
            (
                "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {=0}, {@0}, {@1}, {@2}, @3, 0",
                4,
                13,
            ),
            (
                "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {=0}, @0, @1, 1, 1, 1, 0, 0",
                4,
                6,
            ),
            (
                "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {=0, =1}, [@0]",
                2,
                1,
            ),
        ] {
            assert_eq!(Matrix::read(text, results, operands), None, "{text}");
        }
    }
}
