//! Constants in the text form: every bit survives.

use half::{bf16, f16};

use crate::ir::eval::signed;
use crate::ir::types::Type;

/// A constant with its type: `-1:i32`, `0.5:f32`, `true`, `nan:f64`, `0x7fc00001:f32`, `0:token`.
///
/// Integers are written as signed numbers. Floats are the shortest decimal that reads back to the same
/// bits; `nan` is the canonical NaN, and any other NaN is written as its bits.
pub(super) fn constant(ty: Type, bits: u64) -> String {
    match ty {
        Type::Bool => (bits != 0).to_string(),
        Type::I8 | Type::I16 | Type::I32 | Type::I64 => format!("{}:{ty}", signed(ty, bits)),
        Type::Token => format!("{bits}:{ty}"),
        Type::Ptr(_) => format!("{bits:#x}:{ty}"),
        Type::F16 | Type::Bf16 | Type::F32 | Type::F64 => format!("{}:{ty}", float(ty, bits)),
    }
}

/// The bits of the canonical quiet NaN: sign clear, only the top mantissa bit set.
pub(in crate::ir) fn canonical_nan(ty: Type) -> u64 {
    match ty {
        Type::F16 => 0x7e00,
        Type::Bf16 => 0x7fc0,
        Type::F32 => 0x7fc0_0000,
        _ => 0x7ff8_0000_0000_0000,
    }
}

fn float(ty: Type, bits: u64) -> String {
    // Widening is exact, and the shortest decimal of the wider number rounds back to it.
    let (text, is_nan) = match ty {
        Type::F64 => (
            format!("{:?}", f64::from_bits(bits)),
            f64::from_bits(bits).is_nan(),
        ),
        _ => {
            let number = match ty {
                Type::F16 => f16::from_bits(bits as u16).to_f32(),
                Type::Bf16 => bf16::from_bits(bits as u16).to_f32(),
                _ => f32::from_bits(bits as u32),
            };
            (format!("{number:?}"), number.is_nan())
        }
    };
    match is_nan {
        false => text,
        true if bits == canonical_nan(ty) => "nan".to_owned(),
        true => format!("{bits:#x}"),
    }
}
