//! Casts: `as` with Rust's meaning.

use std::cmp::Ordering;

use super::state::recorder;
use super::{At, Recorded};
use crate::ir::{ConvertOp, Type};
use crate::lang::scalar::{CastTo, Scalar};

/// `value as To`
///
/// Integers are cut or extended by the sign of where they come from; floats to integers go towards zero and
/// clamp, with 0 for NaN; `bool` becomes 0 or 1.
pub fn cast<To: Scalar, From: CastTo<To>>(at: At, value: Recorded<From>) -> Recorded<To> {
    let op = match (From::TYPE.is_float(), To::TYPE.is_float()) {
        (true, true) if From::TYPE == To::TYPE => return Recorded::new(value.value),
        (true, true) => ConvertOp::FloatToFloat,
        (true, false) if To::SIGNED => ConvertOp::FloatToSigned,
        (true, false) => ConvertOp::FloatToUnsigned,
        (false, true) if From::SIGNED => ConvertOp::SignedToFloat,
        (false, true) => ConvertOp::UnsignedToFloat,
        (false, false) => return resize(at, value),
    };
    convert(at, op, value)
}

/// Between integers (or from `bool`).
pub(super) fn resize<To: Scalar, From: Scalar>(at: At, value: Recorded<From>) -> Recorded<To> {
    let op = match From::TYPE.bits().cmp(&To::TYPE.bits()) {
        Ordering::Equal => return Recorded::new(value.value),
        Ordering::Greater => ConvertOp::Truncate,
        Ordering::Less if From::SIGNED => ConvertOp::ExtendS,
        Ordering::Less => ConvertOp::ExtendU,
    };
    convert(at, op, value)
}

/// The same bits as another type of the same size.
pub(super) fn reinterpret<To: Scalar, From: Scalar>(at: At, value: Recorded<From>) -> Recorded<To> {
    convert(at, ConvertOp::Bits, value)
}

/// To 64 bits, keeping the number.
pub(super) fn widen<T: Scalar>(at: At, value: Recorded<T>) -> Recorded<i64> {
    match (T::TYPE, T::SIGNED) {
        (Type::I64, _) => Recorded::new(value.value),
        (_, true) => convert(at, ConvertOp::ExtendS, value),
        (_, false) => convert(at, ConvertOp::ExtendU, value),
    }
}

fn convert<To: Scalar, From: Scalar>(at: At, op: ConvertOp, value: Recorded<From>) -> Recorded<To> {
    Recorded::new(recorder(|recorder| {
        recorder.convert(at, op, To::TYPE, value.value)
    }))
}
