//! Scalars as launch files write them.

use std::fmt;

use serde::Deserialize;

use crate::error::{Error, Result};
use crate::ir::Type;

/// Integer parameters that no launch file describes.
pub(in crate::tune) const DEFAULT_VALUE: u64 = 1024;

/// A number or a truth.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(untagged, expecting = "expected a number, `true` or `false`")]
pub(in crate::tune) enum Number {
    Integer(i64),
    Float(f64),
    Truth(bool),
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Number::Integer(value) => write!(f, "{value}"),
            Number::Float(value) => write!(f, "{value}"),
            Number::Truth(value) => write!(f, "{value}"),
        }
    }
}

/// The bits of a number as a value of this type.
///
/// # Errors
/// The type has no such value.
pub(in crate::tune) fn scalar_bits(ty: Type, value: Number) -> Result<u64> {
    let wrong = |what: String| Err(Error::usage(format!("{what} is not a `{ty}`")));
    match (ty, value) {
        (Type::Bool, Number::Truth(value)) => Ok(u64::from(value)),
        (Type::F64, Number::Float(value)) => Ok(value.to_bits()),
        (Type::F64, Number::Integer(value)) => Ok((value as f64).to_bits()),
        (Type::F32, Number::Float(value)) => Ok(u64::from((value as f32).to_bits())),
        (Type::F32, Number::Integer(value)) => Ok(u64::from((value as f32).to_bits())),
        (Type::F16, Number::Float(value)) => Ok(u64::from(half::f16::from_f64(value).to_bits())),
        (Type::F16, Number::Integer(value)) => Ok(u64::from(half::f16::from_f64(value as f64).to_bits())),
        (Type::Bf16, Number::Float(value)) => Ok(u64::from(half::bf16::from_f64(value).to_bits())),
        (Type::Bf16, Number::Integer(value)) => Ok(u64::from(half::bf16::from_f64(value as f64).to_bits())),
        (Type::I8 | Type::I16 | Type::I32 | Type::I64, Number::Integer(value)) => {
            // As signed or as unsigned: integers of the IR have no sign.
            let bits = ty.bits();
            let fits = bits == 64 || (-(1 << (bits - 1))..1 << bits).contains(&value);
            if fits {
                Ok(value as u64 & ty.mask())
            } else {
                wrong(value.to_string())
            }
        }
        (_, Number::Integer(value)) => wrong(value.to_string()),
        (_, Number::Float(value)) => wrong(value.to_string()),
        (_, Number::Truth(value)) => wrong(value.to_string()),
    }
}

/// The same of a scalar that is said to be of another type, of the same size: `f16`, where the module only passes 16 bits.
///
/// # Errors
/// There is no such type or value, or it has another size.
pub(in crate::tune) fn scalar_bits_as(ty: Type, said: Option<&str>, value: Number) -> Result<u64> {
    let Some(name) = said else {
        return scalar_bits(ty, value).map_err(|error| match value {
            Number::Float(_) if ty.is_integer() => error
                .accepted("an integer, or `type = \"f32\"` or the like where the bits are those of a float"),
            _ => error,
        });
    };
    let said = Type::parse(name).filter(|said| said.bytes() == ty.bytes() && !said.is_pointer());
    let said = said.ok_or_else(|| {
        Error::usage(format!("`{name}` is not a {}-byte type", ty.bytes()))
            .accepted("`f16`, `bf16`, `f32`, `f64`, `i8`, `i16`, `i32` or `i64`, of the parameter's size")
    })?;
    scalar_bits(said, value)
}

/// The bits of a scalar that no launch file gives.
pub(in crate::tune) fn default_bits(ty: Type) -> u64 {
    match ty {
        Type::F64 => 1.0f64.to_bits(),
        Type::F32 => u64::from(1.0f32.to_bits()),
        Type::F16 => u64::from(half::f16::ONE.to_bits()),
        Type::Bf16 => u64::from(half::bf16::ONE.to_bits()),
        Type::Bool => 1,
        _ => DEFAULT_VALUE & ty.mask(),
    }
}
