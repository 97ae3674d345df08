//! Products and moves of matrices among the instructions that are carried as text: how large they are.

use super::program::{Class, MatrixUnit};
use crate::ir::carried::{Carried, Element, GroupStep, Multiplier, Part, Product, Whole};
use crate::ir::{Opaque, Space};

/// The class of `mma`, `wmma.mma` and `wgmma.mma_async`: by the bytes of the left matrix for every 8 columns of the right one. Of
/// 64 rows of `wgmma.mma_async` a sub-group has 16.
pub(super) fn product(what: &Opaque) -> Option<Class> {
    let Carried::Product(Product {
        by,
        sizes: (rows, columns, inner),
        elements,
        ..
    }) = &*what.does
    else {
        return None;
    };
    let is_group = *by == Multiplier::WarpGroup;
    let left = match elements[..] {
        [_, left, _, _] => left,
        [_, left, _] if is_group => left,
        // Of halves.
        _ => Element::F16,
    };
    let rows = if is_group { rows.div_ceil(4) } else { *rows };
    let bytes = (rows * inner * left.bits() / 8) * columns.div_ceil(8);
    Some(Class::Matrix {
        bytes: u16::try_from(bytes).unwrap_or(u16::MAX),
        unit: match (is_group, left) {
            (true, _) => MatrixUnit::WarpGroup,
            (_, Element::F64) => MatrixUnit::Double,
            _ => MatrixUnit::Short,
        },
    })
}

/// The class of `wgmma.commit_group` and `wgmma.wait_group`: the same as for groups of asynchronous copies.
pub(super) fn group_mark(what: &Opaque) -> Option<Class> {
    match *what.does {
        Carried::Group(GroupStep::Commit) => Some(Class::Commit),
        Carried::Group(GroupStep::Wait(_)) => Some(Class::Wait),
        _ => None,
    }
}

/// The class of a move of a matrix between memory and the registers of a sub-group, and how many instructions assemblers make of
/// it.
///
/// `ldmatrix` and `stmatrix` are one, which moves 16 bytes of a lane; so does `wmma.load` bring factors of 16 bits from shared
/// memory. Other operands of `wmma` are moved register by register, or two at once where their elements lie side by side.
pub(super) fn moved(what: &Opaque) -> Option<(Class, u32)> {
    let (space, writes, bytes, count) = match *what.does {
        Carried::Rows(rows) => (rows.space, rows.writes, 16, 1),
        Carried::Whole(Whole {
            sizes: (rows, columns, inner),
            part,
            element,
            by_rows,
            writes,
            at,
            ..
        }) => {
            let elements = match part {
                Part::A => rows * inner,
                Part::B => inner * columns,
                Part::C => rows * columns,
            };
            let bits = element.bits();
            // Whether the elements of a register, or of two, lie side by side.
            let is_along = by_rows == (part != Part::B);
            let width = match (part != Part::C, is_along) {
                (true, _) if at.space == Space::Shared && bits == 16 => 16,
                (true, true) => bits.max(32) / 8,
                (false, true) => bits / 4,
                (_, false) => bits.div_ceil(8),
            };
            let count = (elements * bits / 8).div_ceil(32 * width).max(1);
            (at.space, writes, width.min(16) as u8, count)
        }
        _ => return None,
    };
    let class = match writes {
        true => Class::Store { space, bytes },
        false => Class::Load { space, bytes },
    };
    Some((class, count))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn carried(text: &str) -> Opaque {
        Opaque::unknown(text.to_owned(), Vec::new())
    }

    #[test]
    fn products_are_as_large_as_their_left_matrices() {
        use MatrixUnit::{Double, Short, WarpGroup};
        for (name, bytes, unit) in [
            ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", 512, Short),
            ("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", 512, Short),
            ("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32", 128, Short),
            ("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", 256, Double),
            ("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32", 1024, Short),
            ("wmma.mma.sync.aligned.row.col.m32n8k16.s32.u8.u8.s32", 512, Short),
            (
                "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16",
                512,
                WarpGroup,
            ),
            (
                "wgmma.mma_async.sync.aligned.m64n256k16.f16.f16.f16",
                16384,
                WarpGroup,
            ),
            (
                "wgmma.mma_async.sync.aligned.m64n128k32.satfinite.s32.s8.s8",
                8192,
                WarpGroup,
            ),
            (
                "wgmma.mma_async.sync.aligned.m64n16k256.s32.b1.b1.and.popc",
                1024,
                WarpGroup,
            ),
        ] {
            assert_eq!(
                product(&carried(name)),
                Some(Class::Matrix { bytes, unit }),
                "{name}"
            );
        }
        for (name, mark) in [
            ("wgmma.commit_group.sync.aligned", Some(Class::Commit)),
            ("wgmma.wait_group.sync.aligned 1", Some(Class::Wait)),
            ("wgmma.fence.sync.aligned", None),
        ] {
            assert_eq!(
                (product(&carried(name)), group_mark(&carried(name))),
                (None, mark),
                "{name}"
            );
        }
    }

    #[test]
    fn moves_are_as_many_instructions_as_an_assembler_makes() {
        use Space::{Generic, Global, Shared};
        for (name, space, bytes, count) in [
            ("ldmatrix.sync.aligned.m8n8.x4.shared.b16", Shared, 16, 1),
            ("wmma.load.a.sync.aligned.row.m16n16k16.global.f16", Global, 4, 4),
            ("wmma.load.b.sync.aligned.row.m16n16k16.global.f16", Global, 2, 8),
            (
                "wmma.load.a.sync.aligned.col.m16n16k16.shared::cta.f16",
                Shared,
                16,
                1,
            ),
            ("wmma.load.c.sync.aligned.row.m16n16k16.f32", Generic, 8, 4),
        ] {
            let what = carried(&format!("{name} {{=0}}, [@0]"));
            assert_eq!(
                moved(&what),
                Some((Class::Load { space, bytes }, count)),
                "{name}"
            );
        }
        let store = carried("wmma.store.d.sync.aligned.row.m32n8k16.global.s32 [@0], {@1}");
        let (space, bytes) = (Global, 8);
        assert_eq!(moved(&store), Some((Class::Store { space, bytes }, 4)));
        assert_eq!(
            moved(&carried("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")),
            None
        );
    }
}
