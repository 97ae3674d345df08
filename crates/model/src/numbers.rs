//! How the numbers of a model are declared: once, with everything that is known of each.
//!
//! A row of [`numbers!`] has a number's documentation, its unit as a type, constraints beyond its unit's range (`[positive]`,
//! `[power_of_two]`), and optionally a default by vendor, with a source, for models that omit it:
//!
//! ```text
//! numbers! {
//!     /// Device memory.
//!     pub struct Dram in "dram" {
//!         /// Banks that work in parallel.
//!         banks: Quantity<Count> [positive];
//!         /// What a read of a line that has just been written takes longer.
//!         read_after_write: Quantity<Cycles> = { nvidia: 0 because "not measured", intel: 30 because "…" };
//!     }
//! }
//! ```
//!
//! becomes
//!
//! ```text
//! #[derive(Clone, Debug, PartialEq, Deserialize)]
//! #[serde(deny_unknown_fields, rename_all = "kebab-case")]
//! pub struct Dram { pub banks: Quantity<Count>, pub read_after_write: Quantity<Cycles> }
//!
//! impl Dram {
//!     pub(super) const SECTION: Section = Section { name: "dram", defaults: &[ … ], meanings: &[ … ] };
//!     pub(super) fn check(&self) -> Result<(), Blamed> { positive("dram", "banks", u64::from(*self.banks)) }
//! }
//! ```
//!
//! A model that omits a number with a default is [completed](complete) as text, before anything reads it: so
//! `--model dram.read-after-write=40` changes it, and `calibrate`'s output contains it, as if it stood there. A new number with
//! a default is its row and the place that uses it.

use super::Observation;
use super::quantity::{Quantity, Unit};
use crate::Error;

/// The dotted key to blame, and the error.
pub(super) type Blamed = (String, Error);

/// A table of a model's file.
pub(super) struct Section {
    /// Its dotted name.
    pub name: &'static str,
    /// The numbers that a model can leave out.
    pub defaults: &'static [Default],
    /// Each field: its name in Rust, and its documentation.
    pub meanings: &'static [(&'static str, &'static str)],
}

/// A number that a model can leave out.
pub(super) struct Default {
    /// The field that holds it.
    pub field: &'static str,
    /// Its unit's first spelling, if it has a unit.
    pub unit: fn() -> Option<&'static str>,
    /// Its value on NVIDIA's devices as a model's file spells it, and the source.
    pub nvidia: (&'static str, &'static str),
    /// The same on Intel's.
    pub intel: (&'static str, &'static str),
}

impl Default {
    /// The line of a model's file.
    fn line(&self, vendor: &str) -> Option<String> {
        let (value, source) = match vendor {
            "nvidia" => self.nvidia,
            "intel" => self.intel,
            _ => return None,
        };
        let unit = (self.unit)().map_or(String::new(), |unit| format!(", unit = \"{unit}\""));
        let key = key(self.field);
        Some(format!(
            "{key} = {{ value = {value}{unit}, source = \"{source}\" }}"
        ))
    }
}

/// A field's name in a model's file.
pub(super) fn key(field: &str) -> String {
    field.replace('_', "-")
}

/// A type of the table, as it is written.
pub(super) trait Written {
    /// The unit's first spelling, if there is one.
    fn unit() -> Option<&'static str>;
}

impl<U: Unit> Written for Quantity<U> {
    fn unit() -> Option<&'static str> {
        U::SPELLINGS.first().map(|&(name, _)| name)
    }
}

impl Written for Observation {
    fn unit() -> Option<&'static str> {
        None
    }
}

/// A number must not be 0.
pub(super) fn positive(section: &str, field: &str, number: u64) -> Result<(), Blamed> {
    match number {
        0 => Err((
            format!("{section}.{}", key(field)),
            Error::input("this number must not be 0"),
        )),
        _ => Ok(()),
    }
}

/// A number must be a power of two.
pub(super) fn power_of_two(section: &str, field: &str, number: u64) -> Result<(), Blamed> {
    match number.is_power_of_two() {
        true => Ok(()),
        false => Err((
            format!("{section}.{}", key(field)),
            Error::input(format!("{number} is not a power of two")),
        )),
    }
}

/// A table of a model's file; see the [module](self).
macro_rules! numbers {
    (
        $(#[$meta:meta])*
        pub struct $name:ident in $section:literal {
            $(
                $(#[doc = $doc:literal])*
                $field:ident : $ty:ty $([$($rule:ident),+])?
                $(= {
                    nvidia: $nvidia:literal because $nvidia_source:literal,
                    intel: $intel:literal because $intel_source:literal $(,)?
                })?;
            )+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, serde::Deserialize)]
        #[serde(deny_unknown_fields, rename_all = "kebab-case")]
        pub struct $name { $($(#[doc = $doc])* pub $field: $ty),+ }

        impl $name {
            /// The table's name, the numbers that a model can omit, and the meaning of each number.
            pub(super) const SECTION: $crate::numbers::Section =
                $crate::numbers::Section {
                    name: $section,
                    defaults: &[$($(
                        $crate::numbers::Default {
                            field: stringify!($field),
                            unit: <$ty as $crate::numbers::Written>::unit,
                            nvidia: (stringify!($nvidia), $nvidia_source),
                            intel: (stringify!($intel), $intel_source),
                        },
                    )?)+],
                    meanings: &[$((stringify!($field), concat!($($doc),*))),+],
                };

            /// Finds the first number that violates its row's constraints.
            pub(super) fn check(&self) -> Result<(), $crate::numbers::Blamed> {
                $($($(
                    $crate::numbers::$rule(
                        $section,
                        stringify!($field),
                        u64::from(*self.$field),
                    )?;
                )+)?)+
                Ok(())
            }
        }
    };
}

pub(super) use numbers;

/// A model's text with the numbers that it leaves out, and where they stand.
pub(super) struct Completed {
    /// The text.
    pub text: String,
    /// The lines that were added, counted from 1.
    added: Vec<usize>,
}

impl Completed {
    /// The line of the model itself that has become this one.
    pub(crate) fn original(&self, line: usize) -> usize {
        line - self.added.iter().filter(|&&added| added < line).count()
    }
}

/// Adds the omitted numbers that have a default, behind the headings of their tables; a table whose numbers all have defaults,
/// at the end. Unparsable text stays as it is, for the reader to report.
pub(super) fn complete(text: &str, sections: &[Section]) -> Completed {
    let table: toml::Table = text.parse().unwrap_or_default();
    let vendor = table
        .get("vendor")
        .and_then(toml::Value::as_str)
        .unwrap_or_default();
    let is_missing = |section: &Section, default: &Default| {
        let mut parts = section.name.split('.');
        let first = parts.next().and_then(|part| table.get(part));
        let here = parts.try_fold(first?, |here, part| here.get(part))?;
        Some(here.get(key(default.field)).is_none())
    };
    let mut completed = Completed {
        text: String::with_capacity(text.len()),
        added: Vec::new(),
    };
    for (number, line) in (1..).zip(text.split_inclusive('\n')) {
        completed.text.push_str(line);
        let heading = line
            .trim()
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'));
        let Some(section) = sections.iter().find(|section| Some(section.name) == heading) else {
            continue;
        };
        for default in section.defaults {
            let Some(line) = default
                .line(vendor)
                .filter(|_| is_missing(section, default) == Some(true))
            else {
                continue;
            };
            if !completed.text.ends_with('\n') {
                completed.text.push('\n');
            }
            completed.text.push_str(&line);
            completed.text.push('\n');
            completed.added.push(number + completed.added.len() + 1);
        }
    }
    let has_defaults = |section: &&Section| section.defaults.len() == section.meanings.len();
    let is_there = |section: &&Section| table.contains_key(section.name);
    for section in sections
        .iter()
        .filter(has_defaults)
        .filter(|section| !is_there(section))
    {
        let lines: Vec<String> = section
            .defaults
            .iter()
            .filter_map(|own| own.line(vendor))
            .collect();
        if !lines.is_empty() {
            completed
                .text
                .push_str(&format!("\n[{}]\n{}\n", section.name, lines.join("\n")));
        }
    }
    completed
}
