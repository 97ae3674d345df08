//! Kernels in files, with what tests do with them in the comments on top:
//!
//! ```text
//! ; plans: none; unroll:4; values=rolling-async:4
//! ; shown: values=rolling-async:4
//! ; launch: 2 × 128
//! ; indices: 4864 below 1000
//! ; values: 1000 fractions
//! ; result: 256
//! ; items: 19
//! hsir 1
//! ```
//!
//! A buffer is `LENGTH`, `LENGTH below BOUND`, `LENGTH fractions` or `LENGTH ramp FIRST STEP`; a scalar is
//! its number. What the kernel may write is an output. Lengths of buffers are filled in.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::device::{Fill, Pattern};
use crate::error::{Error, Result};
use crate::ir::{self, Kernel, Param, Type};
use crate::prefetch::Plan;
use crate::suggest::quoted;
use crate::tune::{ArgumentSpec, Workload};

/// A kernel from a file.
#[derive(Clone, Debug)]
pub struct Case {
    /// The file's name, without folder and extension.
    pub name: String,
    /// The kernel and its launch.
    pub workload: Workload,
    /// The plans to try.
    pub plans: Vec<Plan>,
    /// Those of them whose kernels are kept as text.
    pub shown: Vec<Plan>,
}

/// The kernels of `tests/in`: file name and text, in alphabetical order.
///
/// # Errors
/// The folder or a file cannot be read.
pub fn texts() -> std::io::Result<Vec<(String, String)>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../headstart/tests/in");
    let entries: Vec<_> = std::fs::read_dir(folder)?.collect::<std::io::Result<_>>()?;
    let mut paths: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "hsir"));
    paths.sort();
    let read = |path: PathBuf| {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        Ok((name, std::fs::read_to_string(path)?))
    };
    paths.into_iter().map(read).collect()
}

impl Case {
    /// The kernels of `tests/in` whose comments describe a launch.
    ///
    /// # Errors
    /// A file cannot be read, or a kernel or comment is wrong.
    pub fn all() -> Result<Vec<Case>> {
        let texts = texts().map_err(|error| Error::input(format!("tests/in cannot be read: {error}")))?;
        let cases = texts.iter().map(|(name, text)| Case::read(text, name));
        cases.filter_map(Result::transpose).collect()
    }

    /// Reads a kernel, exactly as written, and its comments. None if they describe no launch.
    ///
    /// # Errors
    /// The kernel or a comment is wrong.
    pub fn read(text: &str, file_name: &str) -> Result<Option<Case>> {
        let kernel = ir::parse(text, file_name)?;
        ir::verify(&kernel).map_err(|error| error.at(file_name))?;
        let comments = text.lines().map_while(|line| line.strip_prefix(';'));
        let said: Vec<(&str, &str)> = comments.filter_map(|line| line.trim().split_once(": ")).collect();
        let find = |key: &str| {
            said.iter()
                .find(|(name, _)| *name == key)
                .map(|(_, value)| *value)
        };
        let Some(launch) = find("launch") else {
            return Ok(None);
        };
        let wrong = |what: &str| Error::input(format!("{} is not understood", quoted(what))).at(file_name);
        let (groups, group) = launch.split_once(" × ").ok_or_else(|| wrong(launch))?;
        let given = kernel.params.iter().map(|param| {
            let described = find(&param.name);
            given(&kernel, param, described, &said).ok_or_else(|| wrong(described.unwrap_or(&param.name)))
        });
        let given = given.collect::<Result<_>>()?;
        let plans = |key: &str| -> Result<Vec<Plan>> {
            let said = find(key).into_iter().flat_map(|plans| plans.split("; "));
            said.map(|plan| plan.parse().map_err(|error: Error| error.at(file_name)))
                .collect()
        };
        let stem = Path::new(file_name).file_stem().unwrap_or_default();
        Ok(Some(Case {
            name: stem.to_string_lossy().into_owned(),
            plans: plans("plans")?,
            shown: plans("shown")?,
            workload: Workload {
                groups: [groups.parse().map_err(|_| wrong(groups))?, 1, 1],
                group: [group.parse().map_err(|_| wrong(group))?, 1, 1],
                given,
                kernel: Arc::new(kernel),
                original: None,
                placed: None,
                divides: None,
            },
        }))
    }
}

/// What a parameter gets; none if the description is wrong or missing.
fn given(
    kernel: &Kernel,
    param: &Param,
    described: Option<&str>,
    said: &[(&str, &str)],
) -> Option<ArgumentSpec> {
    let ty = kernel.ty(param.value);
    let Some(facts) = param.facts else {
        let bits = match (described, ty) {
            (None, _) => length_of(kernel, param, said)?,
            (Some(text), Type::F32) => u64::from(text.parse::<f32>().ok()?.to_bits()),
            (Some(text), Type::F64) => text.parse::<f64>().ok()?.to_bits(),
            (Some(text), _) => text.parse::<i64>().ok()? as u64 & ty.mask(),
        };
        return Some(ArgumentSpec::Scalar(ty, bits));
    };
    let words: Vec<&str> = described?.split(' ').collect();
    let length = words.first()?.parse().ok()?;
    let pattern = match words[1..] {
        ["below", bound] => Pattern::below(bound.parse().ok()?, 1),
        ["fractions"] => Pattern::Fractions { low: 1.0 },
        ["ramp", first, step] => Pattern::Steps {
            first: first.parse().ok()?,
            step: step.parse().ok()?,
        },
        [] => Pattern::Constant(0),
        _ => return None,
    };
    Some(ArgumentSpec::buffer(&facts, length, Fill::Pattern(pattern)))
}

/// The described length of the buffer whose length this parameter is.
fn length_of(kernel: &Kernel, param: &Param, said: &[(&str, &str)]) -> Option<u64> {
    let is_length = |buffer: &&Param| {
        buffer
            .facts
            .is_some_and(|facts| facts.length == Some(param.value))
    };
    let buffer = kernel.params.iter().find(is_length)?;
    let (_, described) = said.iter().find(|(name, _)| *name == buffer.name)?;
    described.split(' ').next()?.parse().ok()
}
