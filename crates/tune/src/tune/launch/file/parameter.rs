//! What a launch file says of one parameter.

use std::path::PathBuf;

use serde::Deserialize;

use crate::error::{Error, Result};
use crate::ir::Type;
use crate::suggest::quoted;
use crate::tune::launch::fills::FillName;
use crate::tune::launch::scalars::Number;

/// A parameter's argument.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::tune) struct Parameter {
    pub(super) value: Option<Number>,
    /// As the file has it.
    #[serde(rename = "length")]
    pub(super) said_length: Option<Length>,
    /// In elements.
    #[serde(skip)]
    pub length: Option<u64>,
    pub fill: Option<FillName>,
    pub below: Option<u64>,
    pub range: Option<[f64; 2]>,
    pub seed: Option<u64>,
    pub file: Option<PathBuf>,
    pub array: Option<String>,
    #[serde(rename = "type", alias = "as")]
    pub element: Option<String>,
    pub shape: Option<Vec<u64>>,
    pub graph: Option<String>,
    pub table: Option<String>,
    pub hits: Option<f64>,
    pub skew: Option<f64>,
    pub(super) of: Option<String>,
    pub(super) stride: Option<u64>,
    pub(super) null: Option<bool>,
    pub(super) buffer: Option<String>,
    pub(super) offset: Option<u64>,
    pub(super) end_of: Option<String>,
    pub(super) output: Option<Output>,
}

/// How long a buffer is.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(
    untagged,
    expecting = "expected a number of elements, or what it follows from"
)]
pub(super) enum Length {
    Elements(u64),
    /// `edges of g`: by the part of a graph or a hash table.
    Of(String),
}

/// How an output is compared.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(
    untagged,
    expecting = "expected `\"bits\"`, `\"multiset\"`, `\"any\"` or the largest relative error"
)]
pub(super) enum Output {
    Named(OutputName),
    Relative(f64),
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum OutputName {
    Bits,
    Multiset,
    Any,
}

impl Parameter {
    /// The type of the elements that the length counts and the contents are made of, where they are not the kernel's.
    ///
    /// # Errors
    /// There is no such type.
    pub(crate) fn counted(&self) -> Result<Option<Type>> {
        let Some(name) = &self.element else {
            return Ok(None);
        };
        let is_data = |ty: &Type| !ty.is_pointer() && !matches!(ty, Type::Bool | Type::Token);
        // Integers have no sign here.
        let signless = name.strip_prefix('u').map(|bits| format!("i{bits}"));
        let own = match name.as_str() {
            "half" => "f16",
            "float" => "f32",
            "double" => "f64",
            _ => signless.as_deref().unwrap_or(name),
        };
        let said = Type::parse(own).filter(is_data);
        said.map(Some).ok_or_else(|| {
            Error::usage(format!("{} is not a type of elements", quoted(name))).accepted(
                "`f16`, `bf16`, `f32`, `f64`, `i8`, `i16`, `i32`, `i64` or the same with `u`; of packed ones the parts, `f16` for \
                 half2, and `u8` for fp8 and int4",
            )
        })
    }

    /// This one, with missing entries taken from the other.
    pub(super) fn or(self, other: &Parameter) -> Parameter {
        let other = other.clone();
        Parameter {
            value: self.value.or(other.value),
            said_length: self.said_length.or(other.said_length),
            length: self.length.or(other.length),
            fill: self.fill.or(other.fill),
            below: self.below.or(other.below),
            range: self.range.or(other.range),
            seed: self.seed.or(other.seed),
            file: self.file.or(other.file),
            array: self.array.or(other.array),
            element: self.element.or(other.element),
            shape: self.shape.or(other.shape),
            graph: self.graph.or(other.graph),
            table: self.table.or(other.table),
            hits: self.hits.or(other.hits),
            skew: self.skew.or(other.skew),
            of: self.of.or(other.of),
            stride: self.stride.or(other.stride),
            null: self.null.or(other.null),
            buffer: self.buffer.or(other.buffer),
            offset: self.offset.or(other.offset),
            end_of: self.end_of.or(other.end_of),
            output: self.output.or(other.output),
        }
    }
}
