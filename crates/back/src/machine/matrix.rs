//! Products of matrices among the instructions that are carried as text: how large they are.

use super::program::Class;
use crate::ir::{Opaque, product_sizes};

/// Bits of an element, by the type's name in PTX.
const BITS: [(&str, u32); 14] = [
    ("f64", 64),
    ("tf32", 32),
    ("f16", 16),
    ("bf16", 16),
    ("e4m3", 8),
    ("e5m2", 8),
    ("u8", 8),
    ("s8", 8),
    ("e3m2", 8),
    ("e2m3", 8),
    ("e2m1", 8),
    ("u4", 4),
    ("s4", 4),
    ("b1", 1),
];

/// The class of `mma` and `wmma.mma`: by the bytes of the left matrix for every 8 columns of the right one.
///
/// `mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32` names the types of D, A, B and C; `wmma.mma` of halves, D and C alone.
pub(super) fn product(what: &Opaque) -> Option<Class> {
    let words: Vec<&str> = what.name().split('.').collect();
    if words.first() != Some(&"mma") && !matches!(words[..], ["wmma", "mma", ..]) {
        return None;
    }
    let (rows, columns, inner) = words
        .iter()
        .find_map(|word| product_sizes(word))
        .filter(|&(m, n, k)| m.max(n).max(k) <= 512)?;
    let types: Vec<&str> = words
        .iter()
        .copied()
        .filter(|&word| word == "f32" || word == "s32" || BITS.iter().any(|&(name, _)| name == word))
        .collect();
    let left = match types[..] {
        [_, left, _, _] => left,
        // Of halves.
        _ => "f16",
    };
    let bits = BITS.iter().find(|&&(name, _)| name == left)?.1;
    let bytes = (rows * inner * bits / 8) * columns.div_ceil(8);
    Some(Class::Matrix {
        bytes: u16::try_from(bytes).unwrap_or(u16::MAX),
        is_double: left == "f64",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_as_large_as_their_left_matrices() {
        let of = |text: &str| {
            product(&Opaque::unknown(
                format!("{text} {{=0}}, {{@0}}, {{@1}}, {{@2}};"),
                Vec::new(),
            ))
        };
        let matrix = |bytes, is_double| Some(Class::Matrix { bytes, is_double });
        assert_eq!(
            of("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"),
            matrix(512, false)
        );
        assert_eq!(
            of("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"),
            matrix(512, false)
        );
        assert_eq!(
            of("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32"),
            matrix(128, false)
        );
        assert_eq!(
            of("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64"),
            matrix(256, true)
        );
        assert_eq!(
            of("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32"),
            matrix(1024, false)
        );
        assert_eq!(
            of("wmma.mma.sync.aligned.row.col.m32n8k16.s32.u8.u8.s32"),
            matrix(512, false)
        );
        assert_eq!(of("wmma.load.a.sync.aligned.row.m16n16k16.f16"), None);
        assert_eq!(of("ldmatrix.sync.aligned.m8n8.x4.shared.b16"), None);
    }
}
