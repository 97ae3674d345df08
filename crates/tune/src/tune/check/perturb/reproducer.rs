//! A difference between the plain and a derived kernel, as a folder that reproduces it.
//!
//! ```text
//! headstart-bug-gather-0123456789abcdef/
//!     about.json      plan, seed, number and description of the launch, what differed, buffers that share their memory
//!     plain.hsir      headstart run plain.hsir --launch launch.toml
//!     planned.hsir    headstart run planned.hsir --launch launch.toml
//!     launch.toml     geometry, scalars, buffers
//!     0.raw …         what the buffers hold
//! ```
//!
//! The tests run both again (`repeat`). A launch file has no words for buffers that share memory or begin in another, nor for memory that
//! pointers in memory lead to, so such launches are repeated by it alone.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::launch::{Contents, Part, Variant};
use crate::device::{Argument, Fill};
use crate::error::Error;
use crate::ir::eval::signed;
use crate::ir::{self, Kernel, Type};
use crate::prefetch::Plan;
use crate::tune::check::compare::Compare;
use crate::tune::hash::hash;

#[cfg(test)]
pub(super) mod repeat;

/// The longest buffer that is written down, in bytes.
const MOST_BYTES: u64 = 1 << 26;

/// A launch on which a derived kernel differs from the plain one.
pub(super) struct Difference<'a> {
    pub plan: &'a Plan,
    pub plain: &'a Arc<Kernel>,
    pub derived: &'a Arc<Kernel>,
    pub variant: &'a Variant,
    pub seed: u64,
    /// The launch's number among those that were kept.
    pub number: usize,
    /// The difference.
    pub error: &'a Error,
}

/// The description in a reproducer's folder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct About {
    plan: Plan,
    seed: u64,
    launch: u64,
    what: String,
    difference: String,
    /// Parameters that get the memory of another one: its name, then whose.
    #[serde(default)]
    shared: Vec<(String, String)>,
    /// Parameters that point into their memory, with the elements before.
    #[serde(default)]
    starts: Vec<(String, u64)>,
    /// Parameters that lead into the memory below: their bits.
    #[serde(default)]
    given: Vec<(String, u64)>,
    /// Memory that pointers lead to: its address, its name, and the file with its contents.
    #[serde(default)]
    memory: Vec<(u64, String, String)>,
    headstart: String,
}

impl Difference<'_> {
    /// The refusal of the plan, with the folder that repeats it.
    pub(crate) fn refuse(&self) -> Error {
        let launch = match self.variant.what.as_str() {
            "" => "the launch in few work-groups".to_owned(),
            what => format!("the launch with {what}"),
        };
        let kept = match self.write_beneath(&std::env::temp_dir()) {
            // Whole, however long it is: it is a path to open.
            Ok(folder) => format!("to repeat it: `{}`", folder.to_string_lossy()),
            Err(error) => format!("it could not be written down: {error}"),
        };
        Error::bug(format!(
            "{launch} (seed {}, number {}): {}; {kept}",
            self.seed, self.number, self.error
        ))
        .caused_by(self.error)
    }

    fn about(&self) -> About {
        let name = |position: usize| self.plain.params[position].name.clone();
        let shared = (0..self.variant.parts.len())
            .filter(|&position| self.variant.memory_of(position) != position)
            .map(|position| (name(position), name(self.variant.memory_of(position))));
        let starts = (0..self.variant.parts.len())
            .filter(|&position| self.variant.start(position) > 0)
            .map(|position| (name(position), self.variant.start(position)));
        let parts = self.variant.parts.iter().enumerate();
        let given = parts.clone().filter_map(|(position, part)| match part {
            Part::Given(Argument::Scalar(_, bits) | Argument::Address(bits)) => Some((name(position), *bits)),
            _ => None,
        });
        let memory = parts.filter_map(|(position, part)| match part {
            Part::Buffer(contents) => {
                let place = contents.place.as_ref()?;
                Some((place.address, place.name.to_string(), file_of(position)))
            }
            _ => None,
        });
        About {
            given: given.collect(),
            memory: memory.collect(),
            plan: self.plan.clone(),
            seed: self.seed,
            launch: self.number as u64,
            what: self.variant.what.clone(),
            difference: self.error.to_string(),
            shared: shared.collect(),
            starts: starts.collect(),
            headstart: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }

    /// Writes the folder into another one.
    pub(super) fn write_beneath(&self, parent: &Path) -> std::io::Result<PathBuf> {
        let is_part = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let kernel: String = self.plain.name.chars().filter(is_part).take(64).collect();
        let own = hash(&format!(
            "{} {} {}",
            self.plan,
            self.variant.what,
            ir::print(self.derived)
        ));
        let own = &own[..own.len().min(16)];
        let folder = parent.join(format!("headstart-bug-{kernel}-{own}"));
        fs::create_dir_all(&folder)?;
        fs::write(folder.join("plain.hsir"), ir::print(self.plain))?;
        fs::write(folder.join("planned.hsir"), ir::print(self.derived))?;
        let mut launch = format!(
            "groups = {:?}\ngroup = {:?}\n",
            self.variant.groups, self.variant.group
        );
        for (position, part) in self.variant.parts.iter().enumerate() {
            let contents = match part {
                Part::Buffer(contents) => Some(contents).filter(|contents| contents.same_as.is_none()),
                _ => None,
            };
            let file = match contents {
                Some(contents) => write_contents(contents, &folder.join(file_of(position)))?,
                None => false,
            };
            let Some(param) = self.plain.params.get(position) else {
                continue;
            };
            let _ = writeln!(launch, "\n[parameters.{:?}]", param.name);
            match part {
                Part::Scalar(ty, bits) | Part::Given(Argument::Scalar(ty, bits)) => {
                    let _ = writeln!(launch, "value = {}", number(*ty, *bits));
                }
                Part::Given(_) => launch.push_str("null = true\n"),
                Part::Buffer(contents) => {
                    let _ = writeln!(launch, "length = {}", contents.length);
                    if let Some(compare) = contents.compare {
                        let _ = writeln!(launch, "output = {}", output(compare));
                    }
                    if file {
                        let _ = writeln!(launch, "file = {:?}", file_of(position));
                    }
                }
            }
        }
        fs::write(folder.join("launch.toml"), launch)?;
        let about = serde_json::to_string_pretty(&self.about()).map_err(std::io::Error::other)?;
        fs::write(folder.join("about.json"), about + "\n")?;
        Ok(folder)
    }
}

/// The name of the file with the contents of a part.
fn file_of(position: usize) -> String {
    format!("{position}.raw")
}

/// Writes a buffer's contents; false if they are too long.
fn write_contents(contents: &Contents, file: &Path) -> std::io::Result<bool> {
    let bytes = contents
        .length
        .saturating_mul(u64::from(contents.element.bytes()));
    if bytes > MOST_BYTES {
        return Ok(false);
    }
    let bytes = match &contents.fill {
        Fill::Pattern(pattern) => pattern.bytes(contents.element, 0, contents.length),
        Fill::Bytes(bytes) => bytes.to_vec(),
        Fill::Uninitialized => vec![0; bytes as usize],
    };
    fs::write(file, bytes)?;
    Ok(true)
}

/// A scalar as a launch file has it.
fn number(ty: Type, bits: u64) -> String {
    let float = |value: f64| match value {
        value if value.is_nan() => "nan".to_owned(),
        value if value.is_infinite() && value > 0.0 => "inf".to_owned(),
        value if value.is_infinite() => "-inf".to_owned(),
        value => format!("{value:?}"),
    };
    match ty {
        Type::Bool => (bits & 1 == 1).to_string(),
        Type::F64 => float(f64::from_bits(bits)),
        Type::F32 => float(f64::from(f32::from_bits(bits as u32))),
        Type::F16 => float(half::f16::from_bits(bits as u16).to_f64()),
        Type::Bf16 => float(half::bf16::from_bits(bits as u16).to_f64()),
        _ => signed(ty, bits).to_string(),
    }
}

fn output(compare: Compare) -> String {
    match compare {
        Compare::Bits | Compare::BitsOrNan => "\"bits\"".to_owned(),
        Compare::Multiset => "\"multiset\"".to_owned(),
        Compare::Any => "\"any\"".to_owned(),
        Compare::Relative(share) | Compare::OfLargest(share) => format!("{share:?}"),
    }
}
