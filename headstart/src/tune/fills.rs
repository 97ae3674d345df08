//! What a launch file fills buffers with: patterns, files, graphs.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;

use super::launch_file::{DEFAULT_LENGTH, Parameter};
use crate::device::{Fill, Pattern, splitmix64};
use crate::error::{Error, Result};
use crate::ir::Type;
use crate::suggest::{accepted, quoted};

/// The longest file that a buffer is filled from, in bytes.
const MOST_FILE_BYTES: u64 = 1 << 30;
/// Most vertices of a graph.
const MOST_VERTICES: u64 = 1 << 26;
/// Most edges of a vertex, on average.
const MOST_DEGREE: f64 = 65536.0;
/// A vertex of a skewed graph has at most so many times the average.
const MOST_SKEW: f64 = 64.0;

/// The patterns by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum FillName {
    Zero,
    Sequence,
    Indices,
    Fractions,
    Random,
    Bits,
    Rows,
    Columns,
}

/// A graph, or a sparse matrix: where each vertex's edges start, and where each edge leads.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Graph {
    vertices: u64,
    degree: f64,
    #[serde(default)]
    kind: Kind,
    #[serde(default)]
    seed: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
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
        if !(0.0..=MOST_DEGREE).contains(&self.degree) {
            return Err(
                Error::usage(format!("a degree of {}", self.degree)).accepted(format!("0 to {MOST_DEGREE}"))
            );
        }
        Ok(())
    }

    /// Edges of a vertex.
    fn edges_of(&self, vertex: u64) -> u64 {
        match self.kind {
            Kind::Uniform => {
                let up_to = |vertex: u64| (vertex as f64 * self.degree).floor() as u64;
                up_to(vertex + 1) - up_to(vertex)
            }
            Kind::Skewed => {
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
pub(super) fn graph_length(
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

/// What a launch file says that a buffer holds, if it says so.
pub(super) fn said(
    folder: &Path,
    graphs: &BTreeMap<String, Graph>,
    element: Type,
    length: u64,
    described: &Parameter,
) -> Result<Option<Fill>> {
    if described.range.is_some() && described.fill != Some(FillName::Random) {
        return Err(Error::usage("`range` goes with `fill = \"random\"`"));
    }
    if described.below.is_some() && !matches!(described.fill, Some(FillName::Indices) | None) {
        return Err(Error::usage("`below` goes with `fill = \"indices\"`"));
    }
    match (&described.file, described.fill) {
        (Some(_), Some(_)) => Err(Error::usage("a file and a fill").accepted("one of them")),
        (Some(file), None) => from_file(&folder.join(file), element, length).map(Some),
        (None, Some(fill)) => of_name(graphs, element, fill, described).map(Some),
        (None, None) => Ok(None),
    }
}

fn of_name(
    graphs: &BTreeMap<String, Graph>,
    element: Type,
    fill: FillName,
    described: &Parameter,
) -> Result<Fill> {
    let seed = described.seed.unwrap_or(0);
    let pattern = match fill {
        FillName::Zero => Pattern::Constant(0),
        FillName::Sequence => Pattern::Steps { first: 0, step: 1 },
        FillName::Bits => Pattern::Bits { seed },
        FillName::Fractions if element.is_float() => Pattern::Fractions { low: 1.0 },
        FillName::Fractions => {
            return Err(Error::usage(format!("elements `{element}` hold no fractions"))
                .accepted("`fill = \"indices\"`"));
        }
        FillName::Indices => indices(element, described)?,
        FillName::Random => random(element, described.range, seed)?,
        FillName::Rows | FillName::Columns => {
            let name = described.graph.as_deref();
            let name = name.ok_or_else(|| {
                Error::usage("rows and columns are those of a graph").accepted("`graph = \"NAME\"`")
            })?;
            return of_graph(graph(graphs, name)?, element, fill);
        }
    };
    Ok(Fill::Pattern(pattern))
}

/// Integers from 0 up to a bound.
pub(super) fn indices(element: Type, described: &Parameter) -> Result<Pattern> {
    let seed = described.seed.unwrap_or(0);
    // Not negative in a signed type of this size, and inside every buffer of the default length.
    let largest = match element.bits() {
        64.. => i64::MAX as u64,
        bits => (1 << (bits - 1)) - 1,
    };
    match described.below {
        Some(0) => Err(Error::usage("no index is below 0").accepted("`below` is at least 1")),
        Some(bound) => Ok(Pattern::Below { bound, seed }),
        None => Ok(Pattern::Below {
            bound: DEFAULT_LENGTH.min(largest.max(1)),
            seed,
        }),
    }
}

/// Numbers of a range, all alike probable: as many as 2²⁴ different ones.
fn random(element: Type, range: Option<[f64; 2]>, seed: u64) -> Result<Pattern> {
    let [low, high] = range.unwrap_or([0.0, 1.0]);
    if !(low < high && low.is_finite() && high.is_finite()) {
        return Err(Error::usage("the range is empty").accepted("`range = [low, high]` with low < high"));
    }
    if !(element.is_float() || element.is_integer()) {
        return Err(Error::usage(format!("elements `{element}` are no numbers")));
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
        _ => graph.vertices,
    };
    if !element.is_integer() || element.bits() < 64 && largest >> (element.bits() - 1) > 0 {
        return Err(Error::usage(format!(
            "elements `{element}` do not hold numbers up to {largest}"
        )));
    }
    if fill == FillName::Columns {
        return Ok(Fill::Pattern(Pattern::Below {
            bound: graph.vertices,
            seed: graph.seed,
        }));
    }
    let size = element.bytes() as usize;
    let bytes: Vec<u8> = graph
        .rows()
        .flat_map(|row| row.to_le_bytes().into_iter().take(size))
        .collect();
    Ok(Fill::Bytes(Arc::from(bytes)))
}

// Files.

/// How many elements a `.npy` file has; nothing for other files.
pub(super) fn length_of(path: &Path) -> Result<Option<u64>> {
    if !is_npy(path) {
        return Ok(None);
    }
    let mut head = vec![0; 4096];
    let mut file = open(path)?;
    let mut read = 0;
    while read < head.len() {
        match file
            .read(&mut head[read..])
            .map_err(|error| unreadable(path, &error))?
        {
            0 => break,
            more => read += more,
        }
    }
    head.truncate(read);
    Ok(Some(
        Header::of(&head).map_err(|error| within(path, error))?.length,
    ))
}

fn from_file(path: &Path, element: Type, length: u64) -> Result<Fill> {
    let mut bytes = Vec::new();
    open(path)?
        .read_to_end(&mut bytes)
        .map_err(|error| unreadable(path, &error))?;
    if is_npy(path) {
        let header = Header::of(&bytes).map_err(|error| within(path, error))?;
        if header.item != element.bytes() {
            return Err(within(
                path,
                Error::usage(format!("its elements are `{}`", header.descr)).accepted(format!(
                    "elements of {} bytes, as `{element}` has",
                    element.bytes()
                )),
            ));
        }
        bytes.drain(..header.data);
    }
    let wanted = length.saturating_mul(u64::from(element.bytes()));
    if (bytes.len() as u64) < wanted {
        return Err(within(
            path,
            Error::usage(format!("it has {} bytes", bytes.len()))
                .accepted(format!("{wanted} for {length} elements `{element}`")),
        ));
    }
    bytes.truncate(wanted as usize);
    Ok(Fill::Bytes(Arc::from(bytes)))
}

fn is_npy(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "npy")
}

fn open(path: &Path) -> Result<File> {
    let file = File::open(path).map_err(|error| unreadable(path, &error))?;
    let length = file.metadata().map_err(|error| unreadable(path, &error))?.len();
    if length > MOST_FILE_BYTES {
        return Err(within(path, Error::usage("the file is too large"))
            .accepted(format!("at most {} MiB", MOST_FILE_BYTES >> 20)));
    }
    Ok(file)
}

fn unreadable(path: &Path, error: &std::io::Error) -> Error {
    within(path, Error::usage(format!("cannot be read: {error}")))
}

fn within(path: &Path, error: Error) -> Error {
    error.about(format!("file {}", quoted(&path.to_string_lossy())))
}

/// What stands in front of the numbers in NumPy's format (NumPy: "NEP 1, A simple file format for NumPy arrays").
#[derive(Debug, PartialEq, Eq)]
struct Header {
    descr: String,
    item: u32,
    length: u64,
    data: usize,
}

impl Header {
    fn of(bytes: &[u8]) -> Result<Header> {
        let odd = |what: &str| Error::input(format!("not a `.npy` file: {what}"));
        let rest = bytes
            .strip_prefix(b"\x93NUMPY")
            .ok_or_else(|| odd("it begins otherwise"))?;
        let (start, length) = match *rest {
            [1, _, a, b, ..] => (10, usize::from(u16::from_le_bytes([a, b]))),
            [2 | 3, _, a, b, c, d, ..] => (12, u32::from_le_bytes([a, b, c, d]) as usize),
            _ => return Err(odd("an unknown version")),
        };
        let data = start + length;
        let text = bytes
            .get(start..data)
            .and_then(|text| std::str::from_utf8(text).ok())
            .ok_or_else(|| odd("its header is cut off"))?;
        let value = |key: &str| {
            let behind = &text[text.find(&format!("'{key}':"))? + key.len() + 3..];
            Some(behind.trim_start())
        };
        let descr = value("descr")
            .and_then(|rest| rest.strip_prefix('\''))
            .and_then(|rest| rest.split('\'').next())
            .ok_or_else(|| odd("elements of several parts"))?;
        let little = descr.starts_with(['<', '|']);
        let item: Option<u32> = descr.get(2..).and_then(|digits| digits.parse().ok());
        let item = item.filter(|item| little && matches!(item, 1 | 2 | 4 | 8));
        let item = item.ok_or_else(|| odd(&format!("elements {}", quoted(descr))))?;
        if value("fortran_order").is_none_or(|rest| rest.starts_with("True")) {
            return Err(odd("it is in Fortran's order").accepted("`numpy.ascontiguousarray`"));
        }
        let shape = value("shape")
            .and_then(|rest| rest.strip_prefix('('))
            .and_then(|rest| rest.split(')').next())
            .ok_or_else(|| odd("it has no shape"))?;
        let extents = shape
            .split(',')
            .map(str::trim)
            .filter(|extent| !extent.is_empty());
        let mut length = 1u64;
        for extent in extents {
            let extent: u64 = extent.parse().map_err(|_| odd("an odd shape"))?;
            length = length
                .checked_mul(extent)
                .ok_or_else(|| odd("more elements than memory"))?;
        }
        Ok(Header {
            descr: descr.to_owned(),
            item,
            length,
            data,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tune::LaunchFile;

    fn npy(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
        let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape}), }}\n");
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend(data);
        bytes
    }

    #[test]
    fn numpy_files_are_read() {
        let header = Header::of(&npy("<f4", "3, 4", &[])).expect("a header");
        assert_eq!((header.item, header.length), (4, 12));
        assert_eq!(Header::of(&npy("|u1", "7,", &[])).expect("bytes").length, 7);
        for odd in [
            npy(">f4", "3", &[]),
            npy("<c16", "3", &[]),
            npy("<f4", "x", &[]),
            b"no".to_vec(),
        ] {
            Header::of(&odd).expect_err("refused");
        }
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.npy");
        std::fs::write(&path, npy("<i4", "2,", &[1, 0, 0, 0, 2, 0, 0, 0])).expect("written");
        std::fs::write(
            folder.path().join("launch.toml"),
            "[parameters.p]\nfile = \"a.npy\"",
        )
        .expect("written");
        let launch = LaunchFile::read(&folder.path().join("launch.toml")).expect("a launch file");
        assert_eq!(launch.facts().parameters["p"].length, Some(2));
        assert!(matches!(from_file(&path, Type::I32, 2), Ok(Fill::Bytes(bytes)) if bytes[4] == 2));
        let error = from_file(&path, Type::F64, 1).expect_err("another width");
        assert!(error.to_string().contains("elements of 8 bytes"), "{error}");
        assert!(from_file(&path, Type::I32, 3).is_err(), "more than there are");
    }

    #[test]
    fn graphs_have_rows_and_columns() {
        let graph = |kind, degree| Graph {
            vertices: 4096,
            degree,
            kind,
            seed: 3,
        };
        let uniform = graph(Kind::Uniform, 2.5);
        assert_eq!(uniform.edges(), 10240);
        let skewed = graph(Kind::Skewed, 12.0);
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
}
