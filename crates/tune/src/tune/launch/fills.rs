//! Fills of a launch file's buffers: patterns, graphs; [files](super::files) and [hash tables](super::hashed).

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;

use super::file::{DEFAULT_LENGTH, Parameter};
use super::files::from_file;
use super::hashed::{self, Table};
use super::permuted::Permutation;
use crate::device::{Fill, Pattern};
use crate::error::{Error, Result};
use crate::ir::Type;
use crate::random::splitmix64;
use crate::suggest::{accepted, quoted};

/// Most vertices of a graph.
const MOST_VERTICES: u64 = 1 << 26;
/// Most edges of a vertex, on average.
const MOST_DEGREE: f64 = 65536.0;
/// A vertex of a skewed graph has at most this many times the average.
const MOST_SKEW: f64 = 64.0;

/// The patterns by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(in crate::tune) enum FillName {
    Zero,
    Sequence,
    Indices,
    Fractions,
    Random,
    Bits,
    Sorted,
    Permutation,
    Zipf,
    Rows,
    Columns,
    Slots,
    Keys,
    Pointers,
}

/// The objects that fills refer to.
pub(in crate::tune) struct Sources<'a> {
    /// Where files lie.
    pub folder: &'a Path,
    pub graphs: &'a BTreeMap<String, Graph>,
    pub tables: &'a BTreeMap<String, Table>,
}

/// A graph, or a sparse matrix: where each vertex's edges start, and where each edge leads.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::tune) struct Graph {
    vertices: u64,
    degree: f64,
    /// The number of columns; by default as many as vertices.
    columns: Option<u64>,
    #[serde(default)]
    kind: DegreeDistribution,
    #[serde(default)]
    seed: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum DegreeDistribution {
    /// All vertices have the average number of edges, one more or less.
    #[default]
    Uniform,
    /// Few have many and many have few: the number falls with the square root of a random rank.
    Skewed,
}

impl Graph {
    fn check(&self) -> Result<()> {
        if !(1..=MOST_VERTICES).contains(&self.vertices) {
            return Err(Error::usage(format!("a graph of {} vertices", self.vertices))
                .accepted(format!("1 to {MOST_VERTICES}")));
        }
        if self
            .columns
            .is_some_and(|columns| !(1..=i64::MAX as u64).contains(&columns))
        {
            return Err(Error::usage("a graph without columns").accepted("at least 1"));
        }
        if !(0.0..=MOST_DEGREE).contains(&self.degree) {
            return Err(
                Error::usage(format!("a degree of {}", self.degree)).accepted(format!("0 to {MOST_DEGREE}"))
            );
        }
        Ok(())
    }

    /// Where edges may lead.
    fn columns(&self) -> u64 {
        self.columns.unwrap_or(self.vertices)
    }

    /// Edges of a vertex.
    fn edges_of(&self, vertex: u64) -> u64 {
        match self.kind {
            DegreeDistribution::Uniform => {
                let up_to = |vertex: u64| (vertex as f64 * self.degree).floor() as u64;
                up_to(vertex + 1) - up_to(vertex)
            }
            DegreeDistribution::Skewed => {
                // The mean of half the inverse root of a number from 0 to 1 is one.
                let rank = (splitmix64(vertex, self.seed) >> 11) as f64 / (1u64 << 53) as f64;
                let edges = 0.5 * self.degree / rank.max(1e-9).sqrt();
                edges.min(MOST_SKEW * self.degree).round() as u64
            }
        }
    }

    /// Where the edges of each vertex start; the last number is how many there are.
    fn rows(&self) -> impl Iterator<Item = u64> {
        let ends = (0..self.vertices).scan(0u64, |end, vertex| {
            *end += self.edges_of(vertex);
            Some(*end)
        });
        std::iter::once(0).chain(ends)
    }

    fn edges(&self) -> u64 {
        self.rows().last().unwrap_or(0)
    }
}

fn graph<'g>(graphs: &'g BTreeMap<String, Graph>, name: &str) -> Result<&'g Graph> {
    let found = graphs.get(name).ok_or_else(|| {
        Error::usage(format!("there is no graph {}", quoted(name))).accepted(accepted(
            name,
            "graphs",
            graphs.keys().map(String::as_str),
        ))
    })?;
    found.check()?;
    Ok(found)
}

/// How long a buffer is that holds a graph's rows or columns.
pub(in crate::tune) fn graph_length(
    graphs: &BTreeMap<String, Graph>,
    name: &str,
    fill: Option<FillName>,
) -> Result<u64> {
    let graph = graph(graphs, name)?;
    match fill {
        Some(FillName::Rows) => Ok(graph.vertices + 1),
        Some(FillName::Columns) => Ok(graph.edges()),
        _ => Err(Error::usage("a graph has rows and columns")
            .accepted("`fill = \"rows\"` or `fill = \"columns\"`")),
    }
}

/// The length in words: `edges of g`.
pub(in crate::tune) fn length_of(
    graphs: &BTreeMap<String, Graph>,
    tables: &BTreeMap<String, Table>,
    words: &str,
) -> Result<u64> {
    let named = words
        .split_once(" of ")
        .map(|(what, name)| (what.trim(), name.trim()));
    match named {
        Some(("vertices", name)) => Ok(graph(graphs, name)?.vertices),
        Some(("rows", name)) => Ok(graph(graphs, name)?.vertices + 1),
        Some(("edges", name)) => Ok(graph(graphs, name)?.edges()),
        Some(("slots", name)) => Ok(hashed::table(tables, name)?.slots()),
        _ => Err(Error::usage(format!("{} is not a length", quoted(words))).accepted(
            "elements, or `vertices of NAME`, `rows of NAME`, `edges of NAME` of a graph, `slots of NAME` of a hash table",
        )),
    }
}

/// The contents of a buffer whose elements another type counts, as the kernel's elements: several in one, or a part of one.
pub(in crate::tune) fn packed(fill: Fill, said: Type, element: Type) -> Fill {
    let Fill::Pattern(pattern) = fill else { return fill };
    let (from, to) = (u64::from(said.bytes()), u64::from(element.bytes()));
    let bits = move |index: u64| match to / from {
        0 => pattern.bits(said, index * to / from) >> (8 * (index * to % from)),
        several => (0..several).fold(0, |word, part| {
            word | pattern.bits(said, index * several + part) << (8 * from * part)
        }),
    };
    Fill::Pattern(Pattern::Function(Arc::new(bits)))
}

/// The contents that a launch file gives a buffer, if any.
pub(in crate::tune) fn said(
    sources: &Sources<'_>,
    element: Type,
    length: u64,
    described: &Parameter,
) -> Result<Option<Fill>> {
    use FillName::{Indices, Keys, Random, Slots, Sorted, Zipf};
    let goes_with = |is_said: bool, name: &str, fills: &[FillName], words: &str| match described.fill {
        Some(fill) if is_said && !fills.contains(&fill) => {
            Err(Error::usage(format!("`{name}` goes with {words}")))
        }
        None if is_said && name != "below" => Err(Error::usage(format!("`{name}` goes with {words}"))),
        _ => Ok(()),
    };
    goes_with(
        described.range.is_some(),
        "range",
        &[Random, Sorted],
        "`fill = \"random\"` and `\"sorted\"`",
    )?;
    goes_with(
        described.below.is_some(),
        "below",
        &[Indices, Sorted, Zipf],
        "`fill = \"indices\"`, `\"sorted\"` and `\"zipf\"`",
    )?;
    goes_with(described.skew.is_some(), "skew", &[Zipf], "`fill = \"zipf\"`")?;
    goes_with(described.hits.is_some(), "hits", &[Keys], "`fill = \"keys\"`")?;
    goes_with(
        described.table.is_some(),
        "table",
        &[Slots, Keys],
        "`fill = \"slots\"` and `\"keys\"`",
    )?;
    match (&described.file, described.fill) {
        (Some(_), Some(_)) => Err(Error::usage("a file and a fill").accepted("one of them")),
        (Some(file), None) => {
            let path = sources.folder.join(file);
            from_file(&path, described.array.as_deref(), element, length).map(Some)
        }
        (None, Some(fill)) => of_name(sources, element, length, fill, described).map(Some),
        (None, None) => Ok(None),
    }
}

fn of_name(
    sources: &Sources<'_>,
    element: Type,
    length: u64,
    fill: FillName,
    described: &Parameter,
) -> Result<Fill> {
    let seed = described.seed.unwrap_or(0);
    let pattern = match fill {
        // Pointers are known once all buffers are.
        FillName::Zero | FillName::Pointers => Pattern::Constant(0),
        FillName::Sequence if element.is_float() => {
            Pattern::Function(Arc::new(move |index| float_bits(element, index as f64)))
        }
        FillName::Sequence => Pattern::Steps { first: 0, step: 1 },
        FillName::Bits => Pattern::Bits { seed },
        FillName::Fractions if element.is_float() => Pattern::Fractions { low: 1.0 },
        FillName::Fractions => {
            return Err(Error::usage(format!("elements `{element}` hold no fractions"))
                .accepted("`fill = \"indices\"`"));
        }
        FillName::Indices => indices(element, described)?,
        FillName::Random => random(element, described.range, seed)?,
        FillName::Sorted => sorted(element, length, described)?,
        FillName::Permutation => permutation(element, length, seed)?,
        FillName::Zipf => zipf(element, described)?,
        FillName::Rows | FillName::Columns => {
            let name = described.graph.as_deref();
            let name = name.ok_or_else(|| {
                Error::usage("rows and columns are those of a graph").accepted("`graph = \"NAME\"`")
            })?;
            return of_graph(graph(sources.graphs, name)?, element, fill);
        }
        FillName::Slots | FillName::Keys => {
            let name = described.table.as_deref();
            let name = name.ok_or_else(|| {
                Error::usage("slots and keys are those of a hash table").accepted("`table = \"NAME\"`")
            })?;
            let table = hashed::table(sources.tables, name)?;
            return match fill {
                FillName::Slots => table.filled(element),
                _ => table.wanted(element, described.hits.unwrap_or(1.0), seed),
            };
        }
    };
    Ok(Fill::Pattern(pattern))
}

/// A float's bits in its type.
fn float_bits(element: Type, number: f64) -> u64 {
    match element {
        Type::F64 => number.to_bits(),
        Type::F32 => u64::from((number as f32).to_bits()),
        Type::F16 => u64::from(half::f16::from_f64(number).to_bits()),
        _ => u64::from(half::bf16::from_f64(number).to_bits()),
    }
}

/// A share of the way from 0 to 1, for an index and a seed.
fn share(index: u64, seed: u64) -> f64 {
    (splitmix64(index, seed) >> 11) as f64 / (1u64 << 53) as f64
}

/// A value that does not fit an integer type.
fn check_holds(element: Type, largest: u64) -> Result<()> {
    let room = match element.bits() {
        64.. => i64::MAX as u64,
        bits => (1 << (bits - 1)) - 1,
    };
    match element.is_integer() && largest <= room {
        true => Ok(()),
        false => Err(Error::usage(format!(
            "elements `{element}` do not hold integers up to {largest}"
        ))),
    }
}

/// Ascending numbers, evenly spread: each lies at random in its part of the range.
fn sorted(element: Type, length: u64, described: &Parameter) -> Result<Pattern> {
    let seed = described.seed.unwrap_or(0);
    let count = length.max(1) as f64;
    let part = move |index: u64| (index as f64 + share(index, seed)) / count;
    if element.is_float() {
        if described.below.is_some() {
            return Err(Error::usage("`below` bounds integers").accepted("`range = [low, high]`"));
        }
        let [low, high] = described.range.unwrap_or([0.0, 1.0]);
        if !(low < high && low.is_finite() && high.is_finite()) {
            return Err(Error::usage("the range is empty").accepted("`range = [low, high]` with low < high"));
        }
        let number = move |index| float_bits(element, low + part(index) * (high - low));
        return Ok(Pattern::Function(Arc::new(number)));
    }
    if described.range.is_some() {
        return Err(Error::usage("`range` bounds floats").accepted("`below = …`"));
    }
    let below = described.below.unwrap_or(length).max(1);
    check_holds(element, below - 1)?;
    let number = move |index| ((part(index) * below as f64) as u64).min(below - 1);
    Ok(Pattern::Function(Arc::new(number)))
}

/// The numbers below the length, each once.
fn permutation(element: Type, length: u64, seed: u64) -> Result<Pattern> {
    check_holds(element, length.saturating_sub(1))?;
    let permutation = Permutation::new(length, seed);
    Ok(Pattern::Function(Arc::new(move |index| permutation.at(index))))
}

/// Integers of which k is about as probable as 1 / (k + 1)^skew: the inverse of the continuous distribution, rounded down.
fn zipf(element: Type, described: &Parameter) -> Result<Pattern> {
    let (below, skew) = (
        described.below.unwrap_or(DEFAULT_LENGTH),
        described.skew.unwrap_or(1.0),
    );
    let seed = described.seed.unwrap_or(0);
    if below == 0 {
        return Err(Error::usage("no index is below 0").accepted("`below` is at least 1"));
    }
    if !(0.0..=8.0).contains(&skew) {
        return Err(Error::usage(format!("a skew of {skew}")).accepted("0 to 8"));
    }
    check_holds(element, below - 1)?;
    let (bound, flat) = (below as f64 + 1.0, 1.0 - skew);
    let number = move |index| {
        let share = share(index, seed);
        let at = match flat.abs() < 1e-9 {
            true => bound.powf(share),
            false => (1.0 + share * (bound.powf(flat) - 1.0)).powf(1.0 / flat),
        };
        (at as u64).clamp(1, below) - 1
    };
    Ok(Pattern::Function(Arc::new(number)))
}

/// Integers from 0 up to a bound.
pub(in crate::tune) fn indices(element: Type, described: &Parameter) -> Result<Pattern> {
    let seed = described.seed.unwrap_or(0);
    // Not negative in a signed type of this size, and inside every buffer of the default length.
    let largest = match element.bits() {
        64.. => i64::MAX as u64,
        bits => (1 << (bits - 1)) - 1,
    };
    match described.below {
        Some(0) => Err(Error::usage("no index is below 0").accepted("`below` is at least 1")),
        Some(bound) => Ok(Pattern::Below { bound, seed }),
        None => Ok(Pattern::below(DEFAULT_LENGTH.min(largest.max(1)), seed)),
    }
}

/// Numbers of a range, all alike probable: as many as 2²⁴ different ones.
fn random(element: Type, range: Option<[f64; 2]>, seed: u64) -> Result<Pattern> {
    let [low, high] = range.unwrap_or([0.0, 1.0]);
    if !(low < high && low.is_finite() && high.is_finite()) {
        return Err(Error::usage("the range is empty").accepted("`range = [low, high]` with low < high"));
    }
    if !(element.is_float() || element.is_integer()) {
        return Err(Error::usage(format!("elements `{element}` are not numbers")));
    }
    Ok(Pattern::Function(Arc::new(move |index| {
        let share = (splitmix64(index, seed) >> 40) as f64 / (1u64 << 24) as f64;
        let number = low + share * (high - low);
        match element {
            Type::F64 => number.to_bits(),
            Type::F32 => u64::from((number as f32).to_bits()),
            Type::F16 => u64::from(half::f16::from_f64(number).to_bits()),
            Type::Bf16 => u64::from(half::bf16::from_f64(number).to_bits()),
            _ => number.floor() as i64 as u64,
        }
    })))
}

fn of_graph(graph: &Graph, element: Type, fill: FillName) -> Result<Fill> {
    let largest = match fill {
        FillName::Rows => graph.edges(),
        _ => graph.columns(),
    };
    if !element.is_integer() || element.bits() < 64 && largest >> (element.bits() - 1) > 0 {
        return Err(Error::usage(format!(
            "elements `{element}` do not hold numbers up to {largest}"
        )));
    }
    if fill == FillName::Columns {
        return Ok(Fill::Pattern(Pattern::below(graph.columns(), graph.seed)));
    }
    let size = element.bytes() as usize;
    let bytes: Vec<u8> = graph
        .rows()
        .flat_map(|row| row.to_le_bytes().into_iter().take(size))
        .collect();
    Ok(Fill::Bytes(Arc::from(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tune::LaunchFile;

    #[test]
    fn graphs_have_rows_and_columns() {
        let graph = |kind, degree| Graph {
            vertices: 4096,
            degree,
            columns: None,
            kind,
            seed: 3,
        };
        let uniform = graph(DegreeDistribution::Uniform, 2.5);
        assert_eq!(uniform.edges(), 10240);
        let skewed = graph(DegreeDistribution::Skewed, 12.0);
        let degrees: Vec<u64> = (0..4096).map(|vertex| skewed.edges_of(vertex)).collect();
        let mean = skewed.edges() as f64 / 4096.0;
        assert!((10.0..14.0).contains(&mean), "{mean}");
        assert!(degrees.iter().any(|&edges| edges > 100) && degrees.iter().any(|&edges| edges < 8));
        let text = "[graphs.g]\nvertices = 10\ndegree = 3\n[parameters.r]\nfill = \"rows\"\ngraph = \"g\"\n\
                    [parameters.c]\nfill = \"columns\"\ngraph = \"g\"\n";
        let launch = LaunchFile::parse(text, "launch.toml").expect("a launch file");
        let facts = launch.facts();
        assert_eq!(facts.parameters["r"].length, Some(11));
        assert_eq!(facts.parameters["c"].length, Some(30));
        let odd = text.replace("graph = \"g\"", "graph = \"h\"");
        let error = LaunchFile::parse(&odd, "launch.toml").expect_err("no such graph");
        assert!(error.to_string().contains("no graph `h`"), "{error}");
    }

    #[test]
    fn random_numbers_stay_in_their_range() {
        let pattern = random(Type::F32, Some([-2.0, 3.0]), 1).expect("a range");
        let numbers: Vec<f32> = (0..1000)
            .map(|index| f32::from_bits(pattern.bits(Type::F32, index) as u32))
            .collect();
        assert!(numbers.iter().all(|number| (-2.0..3.0).contains(number)));
        assert!(numbers.iter().any(|&number| number < -1.5) && numbers.iter().any(|&number| number > 2.5));
        random(Type::F32, Some([1.0, 1.0]), 1).expect_err("an empty range");
    }

    /// The contents of a buffer of eight-byte integers.
    fn numbers(fill: &str, length: u64) -> Vec<u64> {
        let text = format!("[parameters.p]\nlength = {length}\n{fill}\n");
        let launch = LaunchFile::parse(&text, "launch.toml").unwrap_or_else(|error| panic!("{error}"));
        let kernel = "hsir 1\nkernel @k(%p: ptr.global i64[] align 8 readonly) {\n  return\n}\n";
        let kernel = crate::ir::parse(kernel, "k.hsir").expect("a kernel");
        let workload = launch
            .workload(&Arc::new(kernel))
            .unwrap_or_else(|error| panic!("{error}"));
        let crate::tune::ArgumentSpec::Input {
            fill: Fill::Pattern(pattern),
            ..
        } = &workload.given[0]
        else {
            panic!("a buffer that is only read");
        };
        (0..length).map(|index| pattern.bits(Type::I64, index)).collect()
    }

    #[test]
    fn fills_are_what_they_are_called() {
        let sorted = numbers("fill = \"sorted\"\nbelow = 50", 1000);
        assert!(sorted.is_sorted() && sorted.iter().all(|&number| number < 50));
        assert!(sorted[0] < 2 && sorted[999] > 47);
        let mut permuted = numbers("fill = \"permutation\"\nseed = 4", 1000);
        assert!(!permuted.is_sorted());
        permuted.sort_unstable();
        assert!(permuted.iter().copied().eq(0..1000));
        let zipf = numbers("fill = \"zipf\"\nbelow = 1000", 20_000);
        let of = |wanted: u64| zipf.iter().filter(|&&number| number == wanted).count() as f64;
        // Twice and four times as rare.
        assert!((1.5..2.8).contains(&(of(0) / of(1))), "{} {}", of(0), of(1));
        assert!(zipf.iter().all(|&number| number < 1000) && of(0) > 1000.0);
        let sequence = of_name(
            &Sources {
                folder: Path::new(""),
                graphs: &BTreeMap::new(),
                tables: &BTreeMap::new(),
            },
            Type::F32,
            10,
            FillName::Sequence,
            &Parameter::default(),
        );
        let Ok(Fill::Pattern(sequence)) = sequence else {
            panic!("a pattern")
        };
        assert_eq!(sequence.bits(Type::F32, 3), u64::from(3f32.to_bits()));
    }

    #[test]
    fn a_graph_may_lead_beyond_its_rows() {
        let text = "[graphs.bags]\nvertices = 4\ndegree = 50\ncolumns = 100000\n[parameters.p]\nfill = \"columns\"\ngraph = \"bags\"\n";
        let launch = LaunchFile::parse(text, "launch.toml").expect("a launch file");
        assert_eq!(launch.facts().parameters["p"].length, Some(200));
        let graph = launch.graph("bags").expect("it is there");
        assert_eq!(graph.columns(), 100_000);
    }
}
