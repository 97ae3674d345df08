//! Constants in the text form, to bits.

use half::{bf16, f16};

use crate::ir::print::canonical_nan;
use crate::ir::types::Type;

/// The bits of a written number as a constant of this type, or its error.
///
/// `digits` is a number without sign, or `inf` or `nan`. Integers may be written as signed or unsigned
/// numbers. A decimal is rounded to the nearest float; hexadecimal is the bits themselves.
pub(super) fn bits(ty: Type, negative: bool, digits: &str) -> Result<u64, String> {
    match ty {
        Type::Bool => Err("a `bool` is written `true` or `false`".to_owned()),
        Type::F16 | Type::Bf16 | Type::F32 | Type::F64 => float(ty, negative, digits),
        _ => integer(ty, negative, digits),
    }
}

/// A number in decimal or after `0x`, as the text form writes sizes and counts.
pub(super) fn unsigned(digits: &str) -> Option<u64> {
    let (digits, radix) = match digits.strip_prefix("0x") {
        Some(hexadecimal) => (hexadecimal, 16),
        None => (digits, 10),
    };
    // The standard library would take a sign too.
    let plain = digits.bytes().all(|b| b.is_ascii_alphanumeric());
    u64::from_str_radix(digits, radix).ok().filter(|_| plain)
}

fn integer(ty: Type, negative: bool, digits: &str) -> Result<u64, String> {
    let signed_limit = 1u64 << (ty.bits() - 1);
    let fits = |magnitude: u64| match negative {
        true => magnitude <= signed_limit,
        false => magnitude <= ty.mask(),
    };
    match unsigned(digits) {
        Some(magnitude) if fits(magnitude) && negative => Ok(magnitude.wrapping_neg() & ty.mask()),
        Some(magnitude) if fits(magnitude) => Ok(magnitude),
        Some(_) => Err(format!("the number does not fit {ty}")),
        None => Err(format!("this is not a number of type {ty}")),
    }
}

fn float(ty: Type, negative: bool, digits: &str) -> Result<u64, String> {
    let sign = u64::from(negative) << (ty.bits() - 1);
    if digits.starts_with("0x") {
        return match unsigned(digits) {
            Some(bits) if bits <= ty.mask() && !negative => Ok(bits),
            _ => Err(format!("these are not the bits of an {ty}")),
        };
    }
    let magnitude = match digits {
        "nan" if negative => return Err("the canonical NaN has no sign; write the bits after 0x".to_owned()),
        "nan" => canonical_nan(ty),
        "inf" => infinity(ty),
        // Only digits lead here, so that the spellings of the standard library stay out.
        _ if digits.starts_with(|c: char| c.is_ascii_digit()) => {
            let wrong = || format!("this is not a number of type {ty}");
            match ty {
                Type::F32 => u64::from(digits.parse::<f32>().map_err(|_| wrong())?.to_bits()),
                Type::F64 => digits.parse::<f64>().map_err(|_| wrong())?.to_bits(),
                _ => {
                    // Rounded twice, but the printer's output is exact in the first step.
                    let number = digits.parse::<f64>().map_err(|_| wrong())?;
                    u64::from(match ty {
                        Type::F16 => f16::from_f64(number).to_bits(),
                        _ => bf16::from_f64(number).to_bits(),
                    })
                }
            }
        }
        _ => return Err(format!("this is not a number of type {ty}")),
    };
    if magnitude == infinity(ty) && digits != "inf" {
        return Err(format!("the number does not fit {ty}; infinity is written `inf`"));
    }
    Ok(sign | magnitude)
}

fn infinity(ty: Type) -> u64 {
    match ty {
        Type::F16 => 0x7c00,
        Type::Bf16 => 0x7f80,
        Type::F32 => 0x7f80_0000,
        _ => 0x7ff0_0000_0000_0000,
    }
}
