//! How a kernel from a file is launched: its geometry, and what each of its parameters gets.
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
//! offset = 128                  # so many of its elements further on; 0 where it is left out
//!
//! [parameters.last]
//! end_of = "values"             # one behind its last element
//! ```
//!
//! A scalar whose type the module does not tell says it: `type = "f16"` with `value = 1.0`. `kernel = "gather"` says which
//! kernel the file is for: the name of the source, where the module has only one of that name, or all of it.
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
//! A structure that is passed by value has a parameter for each member that the kernel reads, named by where the member
//! starts: `param_1_8` at byte 8. Variables of the module are parameters, too; they hold what the module says, unless the
//! launch file says otherwise.
//!
//! For a kernel that was read from PTX, which says less than a Rust slice:
//!
//! ```toml
//! readonly = ["param_0"]        # nothing writes, while the kernel runs, what it reads through this
//! unaliased = ["param_2"]       # what is accessed through this is accessed through no other parameter
//! no_overflow = true            # the module's signed loop counters do not overflow
//! shared_bytes = 4096           # dynamic shared memory of a work-group
//! races = true                  # who reads what others write meanwhile finds either value, and either is right
//! races = ["param_3"]           # any race for this memory is meant: whatever is left there is right, and not compared
//! ```
//!
//! Where the same work can be launched in other geometries, that is worth saying: what does more work-groups give?
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
//! What a geometry does not say is as in the rest of the file.
//!
//! A parameter that is the length of another is left out: it gets that buffer's length. Without a launch file a kernel
//! gets [`LaunchFile::default`], which is stated in [`LaunchFile::workload`].

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;

use super::captured::CapturedData;
use super::compare::Compare;
use super::files_of_launch;
use super::fills::{self, FillName, Graph, Sources};
use super::hashed::{self, Table};
use super::scalars::{Number, default_bits, scalar_bits_as};
use super::workload::{Given, Workload};
use crate::device::{Fill, Pattern};
use crate::error::{Error, Result};
use crate::files::{self, FileError};
use crate::front::ptx::{Facts, Origin, Original, ParameterFacts};
use crate::front::spirv;
use crate::ir::{Kernel, Param, Races, Type};
use crate::suggest::{accepted, quoted};

/// The longest launch file, in bytes.
const MAX_BYTES: u64 = 1 << 20;
/// Elements of a buffer that no launch file describes.
pub(super) const DEFAULT_LENGTH: u64 = 1 << 20;
/// Work-groups where no launch file says how many.
const DEFAULT_GROUPS: u32 = 4;
/// Work-items of a work-group where neither kernel nor launch file says how many.
const DEFAULT_GROUP: u32 = 128;

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
    /// Parameters whose memory nothing writes.
    #[serde(default)]
    readonly: Vec<String>,
    /// Parameters that share no memory with another.
    #[serde(default)]
    unaliased: Vec<String>,
    /// Whether signed loop counters are known not to overflow.
    #[serde(default)]
    no_overflow: bool,
    /// Whether instructions that are not understood are carried as text.
    #[serde(default)]
    as_opaque: bool,
    /// Which races are meant.
    races: Option<MeantRaces>,
    /// Bytes of dynamic shared memory.
    shared_bytes: Option<u32>,
    /// What each parameter gets, by name.
    #[serde(default)]
    parameters: BTreeMap<String, Parameter>,
    /// Graphs whose rows and columns parameters hold, by name.
    #[serde(default)]
    graphs: BTreeMap<String, Graph>,
    /// Hash tables whose slots and keys parameters hold, by name.
    #[serde(default)]
    tables: BTreeMap<String, Table>,
    /// Other geometries in which the launch does the same work.
    #[serde(default)]
    geometries: Vec<Elsewhere>,
    /// Where files that it names lie.
    #[serde(skip)]
    folder: PathBuf,
    /// What a captured launch has instead.
    #[serde(skip)]
    captured: Option<Arc<CapturedData>>,
}

/// The same work in another geometry: what differs.
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
#[serde(untagged)]
enum Extent {
    One(u32),
    Three([u32; 3]),
}

/// What a parameter gets.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Parameter {
    value: Option<Number>,
    pub length: Option<u64>,
    pub fill: Option<FillName>,
    pub below: Option<u64>,
    pub range: Option<[f64; 2]>,
    pub seed: Option<u64>,
    pub file: Option<PathBuf>,
    pub array: Option<String>,
    #[serde(rename = "type")]
    pub element: Option<String>,
    pub shape: Option<Vec<u64>>,
    pub graph: Option<String>,
    pub table: Option<String>,
    pub hits: Option<f64>,
    pub skew: Option<f64>,
    null: Option<bool>,
    buffer: Option<String>,
    offset: Option<u64>,
    end_of: Option<String>,
    output: Option<Output>,
}

/// Which races a program means, beyond writes of the same bits.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
enum MeantRaces {
    /// Reads of what others write meanwhile, anywhere, or none.
    Reads(bool),
    /// All for the memory of these parameters, and reads elsewhere.
    For(Vec<String>),
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
enum Output {
    Named(OutputName),
    Relative(f64),
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum OutputName {
    Bits,
    Multiset,
    Any,
}

impl Parameter {
    /// This, and what it leaves open as the other says.
    fn or(self, other: &Parameter) -> Parameter {
        let other = other.clone();
        Parameter {
            value: self.value.or(other.value),
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
            null: self.null.or(other.null),
            buffer: self.buffer.or(other.buffer),
            offset: self.offset.or(other.offset),
            end_of: self.end_of.or(other.end_of),
            output: self.output.or(other.output),
        }
    }
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
            _ => Error::usage(format!("the launch file cannot be read: {error}")).at(&place),
        })?;
        let mut launch = LaunchFile::parse(&text, &place)?;
        launch.folder = path.parent().map(Path::to_owned).unwrap_or_default();
        for (name, parameter) in &mut launch.parameters {
            let at = |error: Error| error.at(format!("{place}, parameter `{name}`"));
            if parameter.length.is_none()
                && let Some(file) = &parameter.file
            {
                let path = launch.folder.join(file);
                parameter.length =
                    files_of_launch::length_of(&path, parameter.array.as_deref()).map_err(at)?;
            }
        }
        Ok(launch)
    }

    /// Reads a launch file's text; `place` is what messages call it.
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
        for (name, parameter) in &mut launch.parameters {
            let at = |error: Error| error.at(format!("{place}, parameter `{name}`"));
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

    /// The launch in each of the other geometries.
    pub(super) fn elsewhere(&self) -> Vec<LaunchFile> {
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
    pub(super) fn scalars_unlike(&self, other: &LaunchFile) -> Vec<(String, String)> {
        let value =
            |launch: &LaunchFile, name: &str| launch.parameters.get(name).and_then(|given| given.value);
        let named = self.parameters.iter();
        named
            .filter(|(name, given)| given.value != value(other, name))
            .filter_map(|(name, given)| Some((name.clone(), given.value?.to_string())))
            .collect()
    }

    /// What the file says of a PTX entry that the entry does not say itself.
    pub fn facts(&self) -> Facts {
        let mut parameters: BTreeMap<String, ParameterFacts> = BTreeMap::new();
        for (name, parameter) in &self.parameters {
            let is_elsewhere = parameter.null == Some(true) || parameter.end_of.is_some();
            let length = parameter.length.filter(|_| !is_elsewhere);
            parameters.entry(name.clone()).or_default().length = length;
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
            parameters,
            races,
            dynamic_shared_bytes: self.shared_bytes,
            no_overflow: self.no_overflow,
            unbounded_variables: false,
            as_opaque: self.as_opaque,
        }
    }

    /// The launch file of a captured launch: its geometry, what is known of its parameters, and what they get.
    pub(super) fn of_captured(
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
            ..LaunchFile::default()
        }
    }

    /// The same launch of an entry whose instructions are carried as text where they are not understood.
    #[must_use]
    pub fn carrying(mut self, as_opaque: bool) -> LaunchFile {
        self.as_opaque |= as_opaque;
        self
    }

    /// Whether the file says what only PTX leaves open.
    pub fn is_for_ptx(&self) -> bool {
        !self.readonly.is_empty()
            || !self.unaliased.is_empty()
            || self.no_overflow
            || self.races.is_some()
            || self.shared_bytes.is_some()
    }

    /// The kernel with what this file gives it. What the file does not say: 4 work-groups of the size that the kernel
    /// requires, or of 128; buffers of 2²⁰ elements, of which those that the kernel only reads hold fractions from 1
    /// to 2 or integers below 2²⁰ (below 2ⁿ⁻¹ where their elements have only n bits), and the others are outputs,
    /// of zeros at first; integers of 1024, floats of 1. An output whose length the file gives holds nothing at first.
    ///
    /// # Errors
    /// The file names parameters that the kernel has not, or gives them what they cannot take.
    pub fn workload(&self, kernel: &Arc<Kernel>) -> Result<Workload> {
        self.workload_in(kernel, None)
    }

    /// The same for a kernel that was read from this module, whose variables hold what it says.
    ///
    /// # Errors
    /// As for [`LaunchFile::workload`].
    pub fn workload_in(&self, kernel: &Arc<Kernel>, original: Option<&Arc<Original>>) -> Result<Workload> {
        let variable = |number: usize| match original?.parameters.get(number)? {
            Origin::Variable { bytes, declared, .. } => Some((bytes.clone(), *declared)),
            Origin::Parameter { .. } | Origin::Structure { .. } => None,
        };
        Ok(Workload {
            original: original.cloned(),
            ..self.workload_with(kernel, &[], variable)?
        })
    }

    /// The same for a kernel that was read from a module of SPIR-V: memory of the work-group that the launch gives it has a
    /// length here, too.
    ///
    /// # Errors
    /// As for [`LaunchFile::workload`].
    pub fn workload_of(&self, kernel: &Arc<Kernel>, original: &spirv::Original) -> Result<Workload> {
        let arrays: Vec<&str> = original.arrays.iter().map(|(name, _)| name.as_str()).collect();
        let variable = |number: usize| match original.parameters.get(number)? {
            spirv::Origin::Variable { bytes, declared, .. } => Some((bytes.clone(), Some(*declared))),
            spirv::Origin::Parameter(_) | spirv::Origin::Part(..) => None,
        };
        self.workload_with(kernel, &arrays, variable)
    }

    fn workload_with(
        &self,
        kernel: &Arc<Kernel>,
        arrays: &[&str],
        variable: impl Fn(usize) -> Option<(Option<Arc<[u8]>>, Option<u64>)>,
    ) -> Result<Workload> {
        let names = || kernel.params.iter().map(|param| param.name.as_str());
        for name in self.parameters.keys() {
            if !names().chain(arrays.iter().copied()).any(|param| param == name) {
                return Err(
                    Error::usage(format!("`{}` has no parameter {}", kernel.name, quoted(name)))
                        .accepted(accepted(name, "parameters", names())),
                );
            }
        }
        let given = kernel.params.iter().enumerate().map(|(number, param)| {
            if let Some(captured) = &self.captured {
                let given = captured.given(kernel, param);
                return given.map_err(|error| error.at(format!("parameter `{}`", param.name)));
            }
            let described = self.parameters.get(&param.name).cloned().unwrap_or_default();
            let at = |error: Error| error.at(format!("parameter `{}`", param.name));
            if let Some(pointer) = self.pointer(kernel, param, &described).map_err(at)? {
                return Ok(pointer);
            }
            match variable(number) {
                Some((bytes, declared)) => self.variable(kernel, param, &described, bytes.as_ref(), declared),
                None => self.given(kernel, param, &described),
            }
            .map_err(|error| error.at(format!("parameter `{}`", param.name)))
        });
        Ok(Workload {
            kernel: Arc::clone(kernel),
            groups: self.groups.map_or([DEFAULT_GROUPS, 1, 1], Extent::dimensions),
            group: match self.group {
                Some(group) => group.dimensions(),
                None => kernel.group_size.unwrap_or([DEFAULT_GROUP, 1, 1]),
            },
            given: given.collect::<Result<_>>()?,
            original: None,
            placed: self.captured.as_ref().and_then(|captured| captured.placed()),
        })
    }

    /// What a variable of the module holds: what the launch file says, or else what the module says, or else zeros. One
    /// that another module may have a longer one of is as long as the launch file says, or else as it is declared.
    fn variable(
        &self,
        kernel: &Kernel,
        param: &Param,
        described: &Parameter,
        bytes: Option<&Arc<[u8]>>,
        declared: Option<u64>,
    ) -> Result<Given> {
        let facts = param
            .facts
            .ok_or_else(|| Error::bug("a variable that is no buffer"))?;
        let length = facts.length.and_then(|length| kernel.as_constant(length));
        if length.is_some() && described.length.is_some() && described.length != length {
            return Err(Error::usage("how long a variable is the module says"));
        }
        let least = declared.map(|bytes| bytes / u64::from(facts.element.bytes()).max(1));
        let is_filled = described.fill.is_some() || described.file.is_some();
        let described = Parameter {
            length: length.or(described.length).or(least),
            fill: described
                .fill
                .or_else(|| described.file.is_none().then_some(FillName::Zero)),
            ..described.clone()
        };
        let mut given = self.given(kernel, param, &described)?;
        if let (Given::Input { fill, .. } | Given::Output { fill, .. }, Some(bytes), false) =
            (&mut given, bytes, is_filled)
        {
            *fill = Fill::Bytes(Arc::clone(bytes));
        }
        Ok(given)
    }

    fn given(&self, kernel: &Kernel, param: &Param, described: &Parameter) -> Result<Given> {
        let ty = kernel.ty(param.value);
        if !ty.is_pointer() {
            let buffer_only = described.length.is_some()
                || described.fill.is_some()
                || described.file.is_some()
                || described.output.is_some();
            if buffer_only {
                return Err(Error::usage(format!("it is a scalar `{ty}`")).accepted("`value = …`"));
            }
            return match (described.value, self.length_for(kernel, param)) {
                (Some(value), _) => {
                    let bits = scalar_bits_as(ty, described.element.as_deref(), value)?;
                    Ok(Given::Scalar(ty, bits))
                }
                (None, Some(length)) => Ok(Given::Scalar(ty, length)),
                (None, None) => Ok(Given::Scalar(ty, default_bits(ty))),
            };
        }
        if described.value.is_some() {
            return Err(Error::usage("it is a buffer").accepted("`length = …`, with `fill` or `output`"));
        }
        let element = param.facts.map_or(Type::I32, |facts| facts.element);
        let length = described.length.unwrap_or(DEFAULT_LENGTH);
        let read_only = param.facts.is_some_and(|facts| facts.read_only);
        let sources = Sources {
            folder: &self.folder,
            graphs: &self.graphs,
            tables: &self.tables,
        };
        let said = fills::said(&sources, element, length, described)?;
        let fill = match (said, read_only && described.output.is_none()) {
            (Some(fill), _) => fill,
            (None, true) if element.is_float() => Fill::Pattern(Pattern::Fractions { low: 1.0 }),
            (None, true) => Fill::Pattern(fills::indices(element, described)?),
            // Who says how long an output is means all of it to be written.
            (None, false) if described.length.is_some() => Fill::Uninitialized,
            (None, false) => Fill::Pattern(Pattern::Constant(0)),
        };
        let compare = match described.output {
            Some(Output::Relative(share)) if (0.0..1.0).contains(&share) => Compare::Relative(share),
            Some(Output::Relative(share)) => {
                return Err(Error::usage(format!("{share} is no tolerance")).accepted("a number from 0 to 1"));
            }
            Some(Output::Named(OutputName::Multiset)) => Compare::Multiset,
            Some(Output::Named(OutputName::Any)) => Compare::Any,
            Some(Output::Named(OutputName::Bits)) => Compare::Bits,
            None if param.facts.is_some_and(|facts| facts.races == Races::Any) => Compare::Any,
            None => Compare::Bits,
        };
        if read_only && described.output.is_none() {
            Ok(Given::Input {
                element,
                length,
                fill,
            })
        } else {
            Ok(Given::Output {
                element,
                length,
                fill,
                compare,
            })
        }
    }

    /// The pointer that a parameter gets instead of a buffer of its own, if it is to get one.
    fn pointer(&self, kernel: &Kernel, param: &Param, described: &Parameter) -> Result<Option<Given>> {
        let ty = kernel.ty(param.value);
        let ways = [
            described.null == Some(true),
            described.buffer.is_some(),
            described.end_of.is_some(),
        ];
        let asked = ways.iter().filter(|&&asked| asked).count();
        if described.offset.is_some() && described.buffer.is_none() {
            return Err(Error::usage("`offset` goes with `buffer = \"NAME\"`"));
        }
        if asked == 0 {
            return Ok(None);
        }
        let has_own = described.value.is_some() || described.fill.is_some() || described.file.is_some();
        if asked > 1 || has_own {
            return Err(Error::usage("a pointer that is to lead to several places")
                .accepted("one of `null = true`, `buffer = …`, `end_of = …`, or contents of its own"));
        }
        if !ty.is_pointer() && ty != Type::I64 {
            return Err(Error::usage(format!("it is a scalar `{ty}`")).accepted("`value = …`"));
        }
        if described.null == Some(true) {
            return Ok(Some(Given::Scalar(ty, 0)));
        }
        let name = described.buffer.as_ref().or(described.end_of.as_ref());
        let name = name.map(String::as_str).unwrap_or_default();
        let is_buffer = |other: &Param| kernel.ty(other.value).is_pointer() && !std::ptr::eq(other, param);
        let others = || kernel.params.iter().filter(|other| is_buffer(other));
        let of = kernel
            .params
            .iter()
            .position(|other| other.name == name && is_buffer(other))
            .ok_or_else(|| {
                let names = others().map(|other| other.name.as_str());
                Error::usage(format!("{} is no other buffer of the kernel", quoted(name)))
                    .accepted(accepted(name, "buffers", names))
            })?;
        let whole = self.parameters.get(name).cloned().unwrap_or_default();
        if whole.null == Some(true) || whole.buffer.is_some() || whole.end_of.is_some() {
            return Err(Error::usage(format!("{} has no memory of its own", quoted(name)))
                .accepted("the parameter whose memory it is"));
        }
        let length = whole.length.unwrap_or(DEFAULT_LENGTH);
        let start = match described.end_of {
            Some(_) => length,
            None => described.offset.unwrap_or(0),
        };
        if start > length {
            return Err(
                Error::usage(format!("{} has only {length} elements", quoted(name)))
                    .accepted(format!("an offset of at most {length}")),
            );
        }
        Ok(Some(Given::Part { of, start }))
    }

    /// A graph, for tests.
    #[cfg(test)]
    pub(super) fn graph(&self, name: &str) -> Option<&Graph> {
        self.graphs.get(name)
    }

    /// The kernel that the file is for, if it says so.
    pub fn kernel(&self) -> Option<&str> {
        self.kernel.as_deref()
    }

    /// The length of the buffer whose length this parameter is.
    fn length_for(&self, kernel: &Kernel, param: &Param) -> Option<u64> {
        let buffer = kernel.params.iter().find(|buffer| {
            buffer
                .facts
                .is_some_and(|facts| facts.length == Some(param.value))
        })?;
        let described = self
            .parameters
            .get(&buffer.name)
            .and_then(|described| described.length);
        Some(described.unwrap_or(DEFAULT_LENGTH))
    }
}

#[cfg(test)]
mod tests {
    use super::super::scalars::DEFAULT_VALUE;
    use super::*;

    const KERNEL: &str = "hsir 1\nkernel @scale(\n  %from: ptr.global f32[%from_len] align 4 readonly unaliased,\n  \
                          %from_len: i64,\n  %to: ptr.global f32[%to_len] align 4 unaliased,\n  %to_len: i64,\n  \
                          %count: i32,\n) group 64,1,1 {\n  return\n}\n";

    fn workload(text: &str) -> Result<Workload> {
        let kernel = Arc::new(crate::ir::parse(KERNEL, "scale.hsir").expect("a kernel"));
        LaunchFile::parse(text, "launch.toml")?.workload(&kernel)
    }

    #[test]
    fn what_is_not_said_has_defaults() {
        let workload = workload("").expect("defaults");
        assert_eq!((workload.groups, workload.group), ([4, 1, 1], [64, 1, 1]));
        assert!(matches!(
            workload.given[0],
            Given::Input {
                length: DEFAULT_LENGTH,
                ..
            }
        ));
        assert!(matches!(
            workload.given[1],
            Given::Scalar(Type::I64, DEFAULT_LENGTH)
        ));
        assert!(matches!(
            workload.given[2],
            Given::Output {
                fill: Fill::Pattern(Pattern::Constant(0)),
                ..
            }
        ));
        assert!(matches!(
            workload.given[4],
            Given::Scalar(Type::I32, DEFAULT_VALUE)
        ));
    }

    #[test]
    fn what_is_said_is_taken() {
        let text = "groups = [2, 3, 1]\n[parameters.from]\nlength = 8\nfill = \"sequence\"\n[parameters.to]\nlength = 9\n\
                    output = 1e-6\n[parameters.count]\nvalue = -1\n";
        let workload = workload(text).expect("a launch file");
        assert_eq!(workload.geometry().groups, 6);
        assert!(
            matches!(workload.given[1], Given::Scalar(_, 8)),
            "a length follows its buffer"
        );
        assert!(matches!(
            workload.given[2],
            Given::Output {
                length: 9,
                compare: Compare::Relative(_),
                ..
            }
        ));
        assert!(matches!(workload.given[4], Given::Scalar(Type::I32, 0xffff_ffff)));
    }

    #[test]
    fn pointers_need_no_buffer_of_their_own() {
        let kernel = "hsir 1\nkernel @k(\n  %first: ptr.global f32[] align 4,\n  %last: ptr.global i8[] align 1,\n  \
                      %half: ptr.global f32[] align 4,\n  %mask: ptr.global i8[] align 1,\n  %scale: i16,\n) {\n  return\n}\n";
        let kernel = Arc::new(crate::ir::parse(kernel, "k.hsir").expect("a kernel"));
        let given = |text: &str| LaunchFile::parse(text, "launch.toml")?.workload(&kernel);
        let text = "[parameters]\nfirst = { length = 64 }\nlast = { end_of = \"first\" }\n\
                    half = { buffer = \"first\", offset = 32 }\nmask = { null = true }\nscale = { value = 1.0, type = \"f16\" }\n";
        let workload = given(text).unwrap_or_else(|error| panic!("{error}"));
        assert!(matches!(workload.given[1], Given::Part { of: 0, start: 64 }));
        assert!(matches!(workload.given[2], Given::Part { of: 0, start: 32 }));
        assert!(matches!(workload.given[3], Given::Scalar(ty, 0) if ty.is_pointer()));
        assert!(matches!(workload.given[4], Given::Scalar(Type::I16, 0x3c00)));
        for (from, to, expected) in [
            ("offset = 32", "offset = 65", "an offset of at most 64"),
            (
                "end_of = \"first\"",
                "end_of = \"frist\"",
                "did you mean `first`?",
            ),
            ("end_of = \"first\"", "end_of = \"half\"", "no memory of its own"),
            ("null = true", "null = true, fill = \"zero\"", "several places"),
            (", type = \"f16\"", "", "1 is no `i16`; an integer, or `type"),
            ("type = \"f16\"", "type = \"f32\"", "no type of 2 bytes"),
        ] {
            let error = given(&text.replace(from, to)).expect_err(to).to_string();
            assert!(error.contains(expected), "{to}: {error}");
        }
    }

    #[test]
    fn races_are_meant_where_that_is_said() {
        let facts = |text: &str| {
            LaunchFile::parse(text, "launch.toml")
                .expect("a launch file")
                .facts()
        };
        assert_eq!(facts("races = true").races, Races::Reads);
        let named = facts("races = [\"changed\"]");
        assert_eq!(
            (named.races, named.parameters["changed"].races),
            (Races::Reads, Races::Any)
        );
        assert_eq!(facts("races = false").races, Races::None);
    }

    #[test]
    fn mistakes_say_where_and_what_would_be_accepted() {
        for (text, expected) in [
            ("gruops = 1", "line 1: not a launch file: unknown field `gruops`"),
            ("groups = 4\ngroup = \"x\"", "line 2"),
            ("[parameters.form]\nlength = 1", "did you mean `from`?"),
            ("[parameters.from]\nvalue = 1", "parameter `from`: it is a buffer"),
            (
                "[parameters.count]\nlength = 1",
                "parameter `count`: it is a scalar `i32`",
            ),
            ("[parameters.count]\nvalue = 4294967296", "4294967296 is no `i32`"),
            ("[parameters.count]\nvalue = 1.5", "1.5 is no `i32`"),
            ("[parameters.to]\noutput = 2.0", "2 is no tolerance"),
            ("[parameters.from]\nfill = \"indices\"\nbelow = 0", "at least 1"),
            ("[parameters.from]\nfill = \"nonsense\"", "unknown variant"),
        ] {
            let message = workload(text).expect_err(text).to_string();
            assert!(message.contains(expected), "{text}: {message}");
            assert!(!message.contains('\n'), "{text}: {message}");
        }
    }
}
