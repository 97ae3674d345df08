//! The tensor cores' instructions that can be run: those whose shapes, types and registers are known to the bit. Single bits, sparse
//! factors and `m8n8k4` of halves are not. Products of warp groups are [`group`](super::group)'s.

use super::fragment::{Fragment, MatrixShape};
use super::number::Kinds;
use crate::ir::carried::{self, Carried, Element, Multiplier, Part, Reference, RowsForm, Stride};

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
    /// `ldmatrix`, `stmatrix`.
    Rows {
        /// What is moved.
        form: RowsForm,
        /// Whether it is stored.
        writes: bool,
    },
    /// `movmatrix`.
    Transpose,
    /// `wmma.load`, `wmma.store`.
    Whole {
        /// Its registers.
        fragment: Fragment,
        /// Whether elements of a row lie side by side.
        by_rows: bool,
        /// Elements from one row to the next, or one column.
        stride: Stride,
        /// Whether it is stored.
        writes: bool,
        /// Where it lies.
        at: Reference,
    },
}

impl Matrix {
    /// An instruction with these numbers of results and operands; nothing if it is none that can be run.
    pub(crate) fn of(carried: &Carried, results: usize, operands: usize) -> Option<Matrix> {
        match carried {
            Carried::Product(own) => product(own, results, operands),
            Carried::Rows(carried::Rows {
                writes,
                form: Some(form),
                ..
            }) => {
                let count = form.count as usize;
                let expected = if *writes { (0, 1 + count) } else { (count, 1) };
                ((results, operands) == expected).then_some(Matrix::Rows {
                    form: *form,
                    writes: *writes,
                })
            }
            Carried::Transpose => ((results, operands) == (1, 1)).then_some(Matrix::Transpose),
            Carried::Whole(own) => whole(own, results, operands),
            _ => None,
        }
    }
}

fn product(own: &carried::Product, results: usize, operands: usize) -> Option<Matrix> {
    let shape = match own.by {
        Multiplier::SubGroup => MatrixShape::of_mma(own.sizes)?,
        Multiplier::Whole => MatrixShape::of_wmma(own.sizes)?,
        Multiplier::WarpGroup => return None,
    };
    let (d, a, b, c) = match own.elements[..] {
        [d, a, b, c] => (d, a, b, c),
        [d, c] => (d, Element::F16, Element::F16, c),
        _ => return None,
    };
    let kinds = Kinds {
        a,
        b,
        sum: c,
        saturates: own.saturates,
        unit: own.by,
    };
    let is_known = own.is_plain && c == d && kinds.are_known();
    if !is_known || !shape.inner.is_multiple_of(4 * a.per_register()) {
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

fn whole(own: &carried::Whole, results: usize, operands: usize) -> Option<Matrix> {
    let by_operand = matches!(own.stride, Stride::Operand(_));
    let registers = match own.writes {
        true => operands.checked_sub(1 + usize::from(by_operand))?,
        false => results,
    } as u32;
    let mut fragment = Fragment::new(MatrixShape::of_wmma(own.sizes)?, own.part, own.element);
    // Elements repeat in the registers of halves, and only there.
    let may_repeat = fragment.element == Element::F16 && own.part != Part::C;
    if fragment.element.bits() < 8 || registers != fragment.registers && !(may_repeat && registers == 8) {
        return None;
    }
    fragment.registers = registers;
    Some(Matrix::Whole {
        fragment,
        by_rows: own.by_rows,
        stride: own.stride,
        writes: own.writes,
        at: own.at,
    })
}

/// The instruction of a text.
#[cfg(test)]
pub(super) fn read(text: &str, results: usize, operands: usize) -> Option<Matrix> {
    use crate::ir::{Opaque, Type};

    let what = Opaque::unknown(text.to_owned(), vec![Type::I32; results]);
    Matrix::of(&what.does, results, operands)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_are_counted() {
        let mma = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {=0, =1, =2, =3}, {@0, @1, @2, @3}, {@4, @5}, {@6, @7, @8, @9}";
        assert!(matches!(read(mma, 4, 10), Some(Matrix::Product { .. })));
        assert_eq!(read(mma, 4, 9), None, "a register is missing");
        let load =
            "wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {=0, =1, =2, =3, =4, =5, =6, =7}, [@0], @1";
        let Some(Matrix::Whole { fragment, .. }) = read(load, 8, 2) else {
            panic!("not read")
        };
        assert_eq!(fragment.registers, 8);
        let dense = "wmma.store.d.sync.aligned.row.m8n8k4.f64 [@0], {@1, @2}";
        assert!(matches!(read(dense, 0, 3), Some(Matrix::Whole { .. })));
        assert_eq!(read(dense, 0, 4), None);
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
            assert_eq!(read(text, results, operands), None, "{text}");
        }
    }
}
