//! Launch files: geometry and arguments for a kernel from a file.
//!
//! ```toml
//! groups = 4                    # or [4, 1, 1]
//! group = 128                   # may be left out where the kernel requires one
//!
//! [parameters.indices]
//! length = 4096
//! fill = "indices"              # integers from 0 to below - 1
//! below = 1024
//! seed = 7
//!
//! [parameters.values]
//! length = 1024
//! fill = "fractions"            # 1 + k/65536; also "zero", "sequence", "bits"
//!
//! [parameters.weights]
//! length = 1024
//! fill = "random"
//! range = [-1.0, 1.0]           # the least, and what none reaches
//!
//! [parameters.table]
//! file = "table.npy"            # or raw bytes, with `length`; beside the launch file
//!
//! [graphs.web]                  # a sparse matrix or graph in CSR form
//! vertices = 65536
//! degree = 12                   # edges of a vertex on average
//! kind = "skewed"               # or "uniform": all vertices alike
//!
//! [parameters.rows]             # length follows: vertices + 1
//! fill = "rows"
//! graph = "web"
//!
//! [parameters.columns]          # length follows: edges
//! fill = "columns"
//! graph = "web"
//!
//! [parameters.result]
//! length = 512
//! output = "bits"               # or "multiset", or a relative tolerance such as 1e-6
//!
//! [parameters.items]
//! value = 8
//! ```
//!
//! Pointers need no buffer of their own:
//!
//! ```toml
//! [parameters.mask]
//! null = true
//!
//! [parameters.head]
//! buffer = "values"             # the memory of another parameter
//! offset = 128                  # this many of its elements further on; 0 where it is left out
//!
//! [parameters.last]
//! end_of = "values"             # one behind its last element
//! ```
//!
//! A scalar whose type the module does not have is given one: `type = "f16"` with `value = 1.0`. `kernel = "gather"` names the
//! kernel of the file: its name in the source, if the module has only one of that name, or its full name.
//!
//! | `fill` | what the elements are |
//! |---|---|
//! | `zero` | 0 |
//! | `sequence` | 0, 1, 2, … as numbers of their type |
//! | `indices` | integers below `below`, at random |
//! | `sorted` | the same in ascending order; floats from `range` |
//! | `permutation` | 0 to `length` - 1, each once |
//! | `zipf` | integers below `below`, where k is as probable as 1 / (k + 1)^`skew` (1 where it is left out) |
//! | `fractions` | 1 + k/65536 |
//! | `random` | numbers of a `range` |
//! | `bits` | any bits |
//! | `rows`, `columns` | of a graph |
//! | `slots`, `keys` | of a hash table |
//! | `pointers` | into the buffer `of`, `stride` elements apart; only on simulated devices |
//!
//! `as = "f16"` (or `type`) says what the elements of a buffer are where the kernel only moves their bits, or two at once: `length`
//! counts these, and the contents are made of them. `length = "edges of web"` follows from a graph (`vertices`, `rows`, `edges`) or
//! a hash table (`slots`).
//!
//! Files: `.npy`; `.npz` with `array = "NAME"`; others are raw bytes, with `length`, or with `type` and `shape`.
//!
//! ```toml
//! [graphs.bags]                 # columns lead beyond the rows: bags of rows of a table
//! vertices = 4096
//! degree = 40
//! columns = 1000000
//!
//! [tables.t]                    # a hash table with open addressing: a key lies in the first slot from its hash on that was
//! slots = 1048576               # free; a power of two
//! load = 0.5                    # share of the slots that hold a key
//! hash = "murmur"               # the finaliser of MurmurHash3; or "modulo" (the key itself), "fibonacci"
//! empty = -1                    # what a free slot holds
//! stride = 2                    # elements of a slot: its key, then zeros; 1 where it is left out
//!
//! [parameters.table]
//! fill = "slots"
//! table = "t"
//!
//! [parameters.wanted]
//! length = 65536
//! fill = "keys"                 # keys to look up
//! table = "t"
//! hits = 0.9                    # share of them that the table has
//! ```
//!
//! Pointers of a table lead into another parameter's memory, or into memory of their own:
//!
//! ```toml
//! [buffers.data]
//! length = 65536
//! as = "f32"
//!
//! [parameters.rows]
//! length = 64
//! fill = "pointers"
//! of = "data"
//! stride = 1024                 # where it is left out, the buffer is divided evenly
//! ```
//!
//! A structure passed by value has a parameter for each member that the kernel reads, named by the member's offset: `param_1_8`
//! at byte 8. The module's variables are parameters, too; they have the module's initial contents unless the launch file gives
//! others.
//!
//! For a kernel that was read from PTX, which says less than a Rust slice:
//!
//! ```toml
//! names = ["from", "to", "n"]   # what reports call its parameters, in their order
//! readonly = ["param_0"]        # nothing writes, while the kernel runs, what it reads through this
//! unaliased = ["param_2"]       # what is accessed through this is accessed through no other parameter
//! no_overflow = true            # the module's signed loop counters do not overflow
//! shared_bytes = 4096           # dynamic shared memory of a work-group
//! warp_synchronous = true       # work-items of a sub-group run in lockstep, as on GPUs before Volta
//! races = true                  # who reads what others write meanwhile finds either value, and either is right
//! races = ["param_3"]           # any race for this memory is meant: whatever is left there is right, and not compared
//! ```
//!
//! If the same work can be launched in other geometries, list them: they are timed, and advised where they are faster. The file
//! is believed, as it is about what nothing overlaps:
//!
//! ```toml
//! [[geometries]]
//! groups = 8
//! group = 64
//!
//! [[geometries]]                # half as much for each of twice as many
//! groups = 16
//! parameters.items = { value = 4 }
//! parameters.result = { length = 1024 }
//! ```
//!
//! A geometry inherits everything else from the rest of the file.
//!
//! A parameter that is the length of another is left out: it gets that buffer's length. Without a launch file a kernel
//! gets [`LaunchFile::default`], which is stated in [`LaunchFile::workload`].

pub(in crate::tune) mod given;
mod parameter;
mod pointers;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parameter::Length;
pub(in crate::tune) use parameter::Parameter;
use serde::Deserialize;

use super::files as contents;
use super::fills::{self, FillName, Graph};
use super::hashed::{self, Table};
use super::scalars::Number;
use crate::error::{Error, Result};
use crate::files::{self, FileError};
use crate::front::ptx::{Assembler, Facts, ParameterFacts};
use crate::ir::{Fused, Races, Type};
use crate::suggest::quoted;
use crate::tune::subject::captured::data::CapturedData;

/// The longest launch file, in bytes.
const MAX_BYTES: u64 = 1 << 20;
/// Elements of a buffer that no launch file describes.
pub(in crate::tune) const DEFAULT_LENGTH: u64 = 1 << 20;

/// A launch file.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LaunchFile {
    /// The kernel that it is for.
    kernel: Option<String>,
    /// Work-groups.
    groups: Option<Extent>,
    /// Work-items of a work-group.
    group: Option<Extent>,
    /// What reports call the parameters, in their order.
    #[serde(default)]
    names: Vec<String>,
    /// Parameters whose memory nothing writes.
    #[serde(default)]
    readonly: Vec<String>,
    /// Parameters that share no memory with another.
    #[serde(default)]
    unaliased: Vec<String>,
    /// Whether signed loop counters are known not to overflow.
    #[serde(default)]
    no_overflow: bool,
    /// Whether the work-items of a sub-group run in lockstep.
    #[serde(default)]
    warp_synchronous: bool,
    /// Which races are meant.
    races: Option<MeantRaces>,
    /// Bytes of dynamic shared memory.
    shared_bytes: Option<u32>,
    /// The argument of each parameter, by name.
    #[serde(default)]
    parameters: BTreeMap<String, Parameter>,
    /// Memory that pointers in tables lead to, by name.
    #[serde(default)]
    buffers: BTreeMap<String, Parameter>,
    /// Graphs whose rows and columns parameters hold, by name.
    #[serde(default)]
    graphs: BTreeMap<String, Graph>,
    /// Hash tables whose slots and keys parameters hold, by name.
    #[serde(default)]
    tables: BTreeMap<String, Table>,
    /// Other geometries in which the launch does the same work.
    #[serde(default)]
    geometries: Vec<Elsewhere>,
    /// The entry's module with debug information.
    #[serde(skip)]
    source: Option<Arc<String>>,
    /// Where its arguments come from if the user gave none.
    #[serde(skip)]
    made_up: Option<String>,
    /// Where files that it names lie.
    #[serde(skip)]
    folder: PathBuf,
    /// A captured launch's arguments instead.
    #[serde(skip)]
    captured: Option<Arc<CapturedData>>,
    /// The choices of a captured launch's machine code for the sums that the text leaves to the assembler.
    #[serde(skip)]
    fused: Option<Vec<Fused>>,
    #[serde(skip)]
    assembler: Option<Assembler>,
}

/// The same work in another geometry: the differences.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Elsewhere {
    groups: Option<Extent>,
    group: Option<Extent>,
    #[serde(default)]
    parameters: BTreeMap<String, Parameter>,
}

/// A number of work-groups or work-items, in up to three dimensions.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(
    untagged,
    expecting = "expected a number from 0 on, or three of them in brackets"
)]
#[doc(hidden)]
pub(crate) enum Extent {
    One(u32),
    Three([u32; 3]),
}

/// Which races a program means, beyond writes of the same bits.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged, expecting = "expected `true`, `false` or a list of parameters")]
enum MeantRaces {
    /// Intended reads of others' concurrent writes, anywhere, or none.
    Reads(bool),
    /// All for the memory of these parameters, and reads elsewhere.
    For(Vec<String>),
}

impl Extent {
    fn dimensions(self) -> [u32; 3] {
        match self {
            Extent::One(extent) => [extent, 1, 1],
            Extent::Three(extents) => extents,
        }
    }
}

impl LaunchFile {
    /// Reads a launch file.
    ///
    /// # Errors
    /// It cannot be read, or is no launch file: where, and what would be accepted.
    pub fn read(path: &Path) -> Result<LaunchFile> {
        let place = quoted(&path.to_string_lossy());
        let text = files::text(path, MAX_BYTES).map_err(|error| match error {
            FileError::TooLong { .. } => Error::input("the launch file is too large")
                .at(&place)
                .accepted("at most 1 MiB"),
            _ => Error::usage(format!("the launch file cannot be read: {error}"))
                .at(&place)
                .accepted("a file that `headstart launch-template KERNEL` writes, edited"),
        })?;
        let mut launch = LaunchFile::parse(&text, &place)?;
        launch.folder = path.parent().map(Path::to_owned).unwrap_or_default();
        for (name, parameter) in &mut launch.parameters {
            let at = |error: Error| error.at(format!("{place}, parameter `{name}`"));
            if parameter.length.is_none()
                && let Some(file) = &parameter.file
            {
                let path = launch.folder.join(file);
                if let Some((length, ty)) =
                    contents::length_of(&path, parameter.array.as_deref()).map_err(at)?
                {
                    parameter.length = Some(length);
                    parameter.element.get_or_insert_with(|| ty.to_string());
                }
            }
        }
        Ok(launch)
    }

    /// Reads a launch file's text; `place` is its name in messages.
    ///
    /// # Errors
    /// It is no launch file.
    pub fn parse(text: &str, place: &str) -> Result<LaunchFile> {
        let launch: Result<LaunchFile> = toml::from_str(text).map_err(|error| {
            let before = error
                .span()
                .and_then(|span| text.get(..span.start))
                .unwrap_or_default();
            let line = before.matches('\n').count() + 1;
            let said = error.message().lines().collect::<Vec<_>>().join("; ");
            Error::input(format!("not a launch file: {said}")).at(format!("{place}, line {line}"))
        });
        let mut launch = launch?;
        let elsewhere = launch.geometries.iter_mut().map(|other| &mut other.parameters);
        for (name, parameter) in elsewhere
            .chain([&mut launch.parameters, &mut launch.buffers])
            .flatten()
        {
            let at = |error: Error| error.at(format!("{place}, parameter `{name}`"));
            parameter.length = match &parameter.said_length {
                None => None,
                Some(Length::Elements(length)) => Some(*length),
                Some(Length::Of(words)) => {
                    Some(fills::length_of(&launch.graphs, &launch.tables, words).map_err(at)?)
                }
            };
            let (graph, table) = (parameter.graph.as_deref(), parameter.table.as_deref());
            let length = match (graph, table, &parameter.shape) {
                (Some(graph), ..) => fills::graph_length(&launch.graphs, graph, parameter.fill).map(Some),
                (_, Some(table), _) if parameter.fill == Some(FillName::Slots) => {
                    hashed::table(&launch.tables, table).map(|table| Some(table.slots()))
                }
                (_, _, Some(shape)) => {
                    let mut extents = shape.iter();
                    let product = extents.try_fold(1u64, |product, &extent| product.checked_mul(extent));
                    product
                        .map(Some)
                        .ok_or_else(|| Error::usage("no buffer is so large"))
                }
                _ => Ok(None),
            }
            .map_err(at)?;
            match (length, parameter.length) {
                (Some(follows), Some(length)) if follows != length => {
                    return Err(at(Error::usage(format!(
                        "its length follows from its graph, table or shape: {follows}"
                    ))
                    .accepted("no `length`")));
                }
                (Some(follows), _) => parameter.length = Some(follows),
                (None, _) => {}
            }
        }
        Ok(launch)
    }

    /// This file with another number: of work-groups (`groups`), of work-items of one (`group`), or of a scalar, by its name.
    ///
    /// # Errors
    /// It is no number, or of a parameter with a buffer.
    #[doc(hidden)]
    pub fn set(&mut self, setting: &str) -> Result<()> {
        let (name, value) = setting.split_once('=').unwrap_or((setting, ""));
        let wrong = |wanted: &str| {
            Error::usage(format!("{} is not a value for {}", quoted(value), quoted(name))).accepted(wanted)
        };
        let extent = || {
            value
                .parse()
                .map(Extent::One)
                .map_err(|_| wrong("a whole number"))
        };
        match name {
            "groups" => self.groups = Some(extent()?),
            "group" => self.group = Some(extent()?),
            _ => {
                let integer = value.parse().map(Number::Integer).ok();
                let number = integer.or_else(|| value.parse().map(Number::Float).ok());
                let given = self.parameters.entry(name.to_owned()).or_default();
                if given.length.is_some() || given.fill.is_some() || given.file.is_some() {
                    return Err(Error::usage(format!("{} is a buffer", quoted(name))).accepted(
                        "`groups`, `group` or a scalar parameter; a buffer stays as the launch file has it",
                    ));
                }
                given.value = Some(number.ok_or_else(|| wrong("a number"))?);
            }
        }
        Ok(())
    }

    /// This file with the geometry and arguments of another text, which are made up: no length of theirs is a fact.
    pub(in crate::tune) fn with_arguments_of(&self, text: &str) -> Result<LaunchFile> {
        let other = LaunchFile::parse(text, "template")?;
        // What the comments in front of the kernel's name say of its launch.
        let ends = text.lines().map_while(|line| line.strip_prefix("# "));
        let ends: Vec<&str> = ends
            .take_while(|line| !line.starts_with("The launch of"))
            .collect();
        let ends = ends.join(" ");
        let ends = ends.strip_prefix("Its numbers are made up").unwrap_or_default();
        let said = format!(
            "The arguments are made up from the types of the parameters, as `headstart launch-template` writes them; \
             `--launch FILE` gives others. {}",
            ends.trim_start_matches(['.', ',', ' '])
        );
        Ok(LaunchFile {
            groups: other.groups,
            group: other.group,
            parameters: other.parameters,
            buffers: other.buffers,
            made_up: Some(said.trim_end().to_owned()),
            ..self.clone()
        })
    }

    /// Where its arguments come from, in a sentence, if the user gave none.
    pub(in crate::tune) fn made_up(&self) -> Option<&str> {
        self.made_up.as_deref()
    }

    /// Whether other geometries are named.
    pub(in crate::tune) fn has_geometries(&self) -> bool {
        !self.geometries.is_empty()
    }

    /// The launch in each of the other geometries.
    pub(in crate::tune) fn elsewhere(&self) -> Vec<LaunchFile> {
        let launched = |elsewhere: &Elsewhere| {
            let mut launch = LaunchFile {
                groups: elsewhere.groups.or(self.groups),
                group: elsewhere.group.or(self.group),
                geometries: Vec::new(),
                ..self.clone()
            };
            for (name, parameter) in &elsewhere.parameters {
                let known = launch.parameters.entry(name.clone()).or_default();
                *known = parameter.clone().or(known);
            }
            launch
        };
        self.geometries.iter().map(launched).collect()
    }

    /// The scalars that have another value than in the other launch, by name.
    pub(in crate::tune) fn scalars_unlike(&self, other: &LaunchFile) -> Vec<(String, String)> {
        let value =
            |launch: &LaunchFile, name: &str| launch.parameters.get(name).and_then(|given| given.value);
        let named = self.parameters.iter();
        named
            .filter(|(name, given)| given.value != value(other, name))
            .filter_map(|(name, given)| Some((name.clone(), given.value?.to_string())))
            .collect()
    }

    /// The file's statements about a PTX entry that the entry does not make itself.
    #[doc(hidden)]
    pub fn facts(&self) -> Facts {
        let mut parameters: BTreeMap<String, ParameterFacts> = BTreeMap::new();
        for (name, parameter) in self.parameters.iter().filter(|_| self.made_up.is_none()) {
            let is_elsewhere = parameter.null == Some(true) || parameter.end_of.is_some();
            let own = parameters.entry(name.clone()).or_default();
            own.length = parameter.length.filter(|_| !is_elsewhere);
            own.unit = parameter.counted().ok().flatten().map(Type::bytes);
        }
        for name in &self.readonly {
            parameters.entry(name.clone()).or_default().read_only = true;
        }
        for name in &self.unaliased {
            parameters.entry(name.clone()).or_default().unaliased = true;
        }
        let races = match &self.races {
            None | Some(MeantRaces::Reads(false)) => Races::None,
            Some(MeantRaces::Reads(true)) => Races::Reads,
            Some(MeantRaces::For(names)) => {
                for name in names {
                    parameters.entry(name.clone()).or_default().races = Races::Any;
                }
                Races::Reads
            }
        };
        Facts {
            names: self.names.clone(),
            source: self.source.clone(),
            parameters,
            races,
            dynamic_shared_bytes: self.shared_bytes,
            no_overflow: self.no_overflow,
            unbounded_variables: false,
            warp_synchronous: self.warp_synchronous,
            fused: self.fused.clone(),
            assembler: self.assembler,
        }
    }

    /// The launch file of a captured launch: its geometry, the facts about its parameters, and their contents.
    pub(in crate::tune) fn of_captured(
        groups: [u32; 3],
        group: [u32; 3],
        facts: &Facts,
        captured: Arc<CapturedData>,
    ) -> LaunchFile {
        let parameter = |(name, own): (&String, &ParameterFacts)| {
            let known = Parameter {
                length: own.length,
                ..Parameter::default()
            };
            (name.clone(), known)
        };
        let unaliased = facts.parameters.iter().filter(|(_, own)| own.unaliased);
        LaunchFile {
            groups: Some(Extent::Three(groups)),
            group: Some(Extent::Three(group)),
            unaliased: unaliased.map(|(name, _)| name.clone()).collect(),
            shared_bytes: facts.dynamic_shared_bytes,
            parameters: facts.parameters.iter().map(parameter).collect(),
            captured: Some(captured),
            fused: facts.fused.clone(),
            assembler: facts.assembler,
            ..LaunchFile::default()
        }
    }

    /// The same for an entry whose parameters have these names, where the file gives none itself, and its members those of its
    /// module with debug information.
    #[doc(hidden)]
    #[must_use]
    pub fn naming(mut self, names: Vec<String>, source: Arc<String>) -> LaunchFile {
        self.source = Some(source).filter(|source| !source.is_empty());
        if self.names.is_empty() {
            self.names = names;
        }
        self
    }

    /// Whether the file has statements that apply only to PTX.
    #[doc(hidden)]
    pub fn is_for_ptx(&self) -> bool {
        !self.names.is_empty()
            || !self.readonly.is_empty()
            || !self.unaliased.is_empty()
            || self.no_overflow
            || self.warp_synchronous
            || self.races.is_some()
            || self.shared_bytes.is_some()
    }

    /// A graph, for tests.
    #[cfg(test)]
    pub(in crate::tune) fn graph(&self, name: &str) -> Option<&Graph> {
        self.graphs.get(name)
    }

    /// The kernel that the file is for, if it says so.
    #[doc(hidden)]
    pub fn kernel(&self) -> Option<&str> {
        self.kernel.as_deref()
    }
}

#[cfg(test)]
mod tests;
