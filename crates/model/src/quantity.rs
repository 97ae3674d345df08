//! Numbers with a unit and a source.
//!
//! In a model file a number is written `{ value = 42, unit = "cycles", source = "…" }`; a pure count
//! has no unit. In Rust it dereferences to its value, in the unit's base: bytes, cycles, GB/s.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use serde::{Deserialize, Deserializer, de::Error as _};

/// A number from a model file; dereferences to its value.
#[derive(Clone, PartialEq)]
pub struct Quantity<U: Unit> {
    value: U::Value,
    source: Box<str>,
    unit: PhantomData<U>,
}

/// Several numbers from a model file that share a unit and a source; dereferences to the slice.
#[derive(Clone, PartialEq)]
pub struct Quantities<U: Unit> {
    values: Vec<U::Value>,
    source: Box<str>,
    unit: PhantomData<U>,
}

/// The unit of a number: its spelling, and the valid range.
pub trait Unit: Sized {
    /// The type of the value in Rust.
    type Value: Copy + fmt::Debug + PartialEq;
    /// The accepted spellings, each with its factor to the base unit; the base comes first. Empty for
    /// a pure number, which is written without a unit.
    const SPELLINGS: &'static [(&'static str, f64)];
    /// The least and the largest accepted value, in the base unit.
    const RANGE: (f64, f64);
    /// The value from a number in the base unit, if it can be represented exactly.
    fn from_number(number: f64) -> Option<Self::Value>;
}

macro_rules! unit {
    ($(#[$doc:meta])* $name:ident: $value:ident in [$($spelling:literal = $factor:expr),*], $least:expr, $most:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {}

        impl Unit for $name {
            type Value = $value;
            const SPELLINGS: &'static [(&'static str, f64)] = &[$(($spelling, $factor)),*];
            const RANGE: (f64, f64) = ($least, $most);

            fn from_number(number: f64) -> Option<$value> {
                unit!(@convert $value, number)
            }
        }
    };
    (@convert f64, $number:ident) => { Some($number) };
    // The range keeps the number within the integer type.
    (@convert $value:ident, $number:ident) => { ($number.fract() == 0.0).then_some($number as $value) };
}

unit!(
    /// A whole number of things.
    Count: u32 in [], 0.0, 16_777_216.0
);
unit!(
    /// Clock cycles of the core.
    Cycles: u32 in ["cycles" = 1.0], 0.0, 1_000_000.0
);
unit!(
    /// Bytes.
    Bytes: u64 in ["B" = 1.0, "KiB" = 1024.0, "MiB" = 1_048_576.0, "GiB" = 1_073_741_824.0], 0.0,
    1_125_899_906_842_624.0
);
unit!(
    /// Millions of clock cycles a second.
    Megahertz: f64 in ["MHz" = 1.0], 1.0, 100_000.0
);
unit!(
    /// Bytes per clock cycle of the core.
    BytesPerCycle: f64 in ["B/cycle" = 1.0], 0.001, 1e6
);
unit!(
    /// Work-items per clock cycle, in one core.
    LanesPerCycle: f64 in ["lanes/cycle" = 1.0], 0.001, 1e6
);
unit!(
    /// Something per clock cycle: cache lines, requests.
    PerCycle: f64 in ["per cycle" = 1.0], 0.001, 1e6
);
unit!(
    /// Billions (10⁹) of bytes a second.
    GigabytesPerSecond: f64 in ["GB/s" = 1.0], 0.1, 1e6
);
impl<U: Unit> Quantity<U> {
    /// Where the number comes from.
    pub fn source(&self) -> &str {
        &self.source
    }
}

impl<U: Unit> Quantities<U> {}

impl<U: Unit> Deref for Quantity<U> {
    type Target = U::Value;

    fn deref(&self) -> &U::Value {
        &self.value
    }
}

impl<U: Unit> Deref for Quantities<U> {
    type Target = [U::Value];

    fn deref(&self) -> &[U::Value] {
        &self.values
    }
}

impl<U: Unit> fmt::Debug for Quantity<U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} ({})", self.value, self.source)
    }
}

impl<U: Unit> fmt::Debug for Quantities<U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} ({})", self.values, self.source)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written<T> {
    value: T,
    unit: Option<String>,
    source: String,
}

/// The factor of a spelled unit, or its error.
fn factor<U: Unit>(unit: Option<&str>) -> Result<f64, String> {
    let names: Vec<String> = U::SPELLINGS.iter().map(|(name, _)| format!("`{name}`")).collect();
    match (unit, names.is_empty()) {
        (None, true) => Ok(1.0),
        (None, false) => Err(format!(
            "this number needs a unit, expected {}",
            names.join(" or ")
        )),
        (Some(unit), true) => Err(format!(
            "unit `{unit}` on a number that has none, expected no unit"
        )),
        (Some(unit), false) => U::SPELLINGS
            .iter()
            .find_map(|&(name, factor)| (name == unit).then_some(factor))
            .ok_or_else(|| format!("wrong unit `{unit}`, expected {}", names.join(" or "))),
    }
}

/// The value in the base unit, or its error.
fn convert<U: Unit>(number: f64, factor: f64) -> Result<U::Value, String> {
    let (least, most) = U::RANGE;
    // In the unit that the number is written in.
    let mut spellings = U::SPELLINGS.iter();
    let unit = spellings.find_map(|&(name, own)| (own == factor).then_some(name));
    let unit = unit.map_or(String::new(), |name| format!(" {name}"));
    let scaled = number * factor;
    if !(least..=most).contains(&scaled) {
        let (least, most) = (least / factor, most / factor);
        return Err(format!(
            "{number}{unit} is out of range, expected {least} to {most}{unit}"
        ));
    }
    U::from_number(scaled).ok_or_else(|| {
        format!(
            "{number} is not whole, expected a whole number{}",
            unit.replacen(' ', " of ", 1)
        )
    })
}

fn check_source(source: &str) -> Result<(), String> {
    if source.trim().is_empty() {
        return Err("the source is empty, expected where the number comes from".into());
    }
    Ok(())
}

impl<'de, U: Unit> Deserialize<'de> for Quantity<U> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = Written::<f64>::deserialize(deserializer)?;
        let value = check_source(&written.source)
            .and_then(|()| factor::<U>(written.unit.as_deref()))
            .and_then(|factor| convert::<U>(written.value, factor))
            .map_err(D::Error::custom)?;
        Ok(Quantity {
            value,
            source: written.source.into(),
            unit: PhantomData,
        })
    }
}

impl<'de, U: Unit> Deserialize<'de> for Quantities<U> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = Written::<Vec<f64>>::deserialize(deserializer)?;
        let values = check_source(&written.source)
            .and_then(|()| factor::<U>(written.unit.as_deref()))
            .and_then(|factor| {
                written
                    .value
                    .iter()
                    .map(|&number| convert::<U>(number, factor))
                    .collect()
            })
            .map_err(D::Error::custom)?;
        Ok(Quantities {
            values,
            source: written.source.into(),
            unit: PhantomData,
        })
    }
}
