//! Random programs through nvcc and clang: a hundred a file, each file at one level of optimisation.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::campaign::{Counts, Difference, Prepared, prepared};
use super::cuda;
use super::tree::Program;
use crate::tools;

/// Kernels in one file for a compiler.
pub const A_FILE: u64 = 100;

/// A compiler, and how it is called.
#[derive(Clone, Debug)]
pub struct Compiler {
    /// What it is called in results.
    pub name: &'static str,
    program: PathBuf,
    /// All but the level, the source and the output.
    arguments: Vec<String>,
    /// The levels of optimisation, in the order in which files take them, with what sets them.
    levels: Vec<(&'static str, &'static str)>,
    /// In front of the source.
    prelude: String,
}

/// The compilers that are there. `header` is what CUDA's headers would give clang.
pub fn compilers(header: &str) -> Vec<Compiler> {
    let arguments = |words: &str| words.split_whitespace().map(str::to_owned).collect();
    let mut compilers = Vec::new();
    if let Some(program) = tools::program("nvcc") {
        compilers.push(Compiler {
            name: "nvcc",
            program,
            arguments: arguments("-arch=sm_80 -ptx -fmad=false -w"),
            // Its optimiser runs in `cicc`, and `-O0` alone does not stop it.
            levels: vec![
                ("-O3", "-O3"),
                ("-O0", "-Xcicc -O0"),
                ("-O1", "-Xcicc -O1"),
                ("-O2", "-Xcicc -O2"),
            ],
            prelude: String::new(),
        });
    }
    match clang() {
        Some(program) => compilers.push(Compiler {
            name: "clang",
            program,
            arguments: arguments(
                "-x cuda --cuda-device-only --cuda-gpu-arch=sm_80 -nocudainc -nocudalib -S -w -ffp-contract=off \
                 -Xclang -target-feature -Xclang +ptx70",
            ),
            // Another one than nvcc's for each file.
            levels: vec![("-O2", "-O2"), ("-O1", "-O1"), ("-O3", "-O3"), ("-O0", "-O0")],
            prelude: format!(
                "{header}\ntemplate <class T> static __device__ inline T __ldg(const T *p) {{ return *p; }}\n"
            ),
        }),
        None => tools::skip("clang", "no clang; CLANG names it"),
    }
    compilers
}

fn clang() -> Option<PathBuf> {
    let named = std::env::var_os("CLANG").map(PathBuf::from);
    let names = ["clang-19", "clang"].map(PathBuf::from);
    named.into_iter().chain(names).find(|program| {
        Command::new(program)
            .arg("--version")
            .output()
            .is_ok_and(|output| output.status.success())
    })
}

/// nvcc for a GPU of this generation: every other file contracts no sums.
pub(crate) fn nvcc_for(generation: &str, prelude: &str) -> Option<Compiler> {
    let program = tools::program("nvcc")?;
    Some(Compiler {
        name: "nvcc",
        program,
        arguments: vec![format!("-arch={generation}"), "-ptx".to_owned(), "-w".to_owned()],
        levels: vec![
            ("-O3", "-O3 -fmad=false"),
            ("-O3 -fmad", "-O3"),
            ("-O1", "-Xcicc -O1 -fmad=false"),
            ("-O3 -ftz -fmad", "-O3 -ftz=true"),
            ("-O3 -ftz", "-O3 -fmad=false -ftz=true"),
            ("-O2 -fmad", "-Xcicc -O2"),
            ("-O0", "-Xcicc -O0 -fmad=false"),
            ("-O3 -lineinfo -fmad", "-O3 -lineinfo"),
        ],
        prelude: prelude.to_owned(),
    })
}

impl Compiler {
    /// The module that it makes of these programs, at the level of the file's number.
    ///
    /// # Errors
    /// Its messages about them.
    pub(crate) fn module(&self, programs: &[Prepared], file: u64, folder: &Path) -> Result<String, String> {
        let mut text = self.prelude.clone();
        for prepared in programs {
            text.push_str(&cuda(&prepared.program));
        }
        let path = |extension: &str| folder.join(format!("{}{file}.{extension}", self.name));
        let (source, output) = (path("cu"), path("ptx"));
        std::fs::write(&source, &text).map_err(|error| format!("{}: {error}", source.display()))?;
        let (_, level) = self.levels[(file % self.levels.len() as u64) as usize];
        let ran = Command::new(&self.program)
            .args(&self.arguments)
            .args(level.split_whitespace())
            .arg("-o")
            .args([&output, &source])
            .output()
            .map_err(|error| format!("{}: {error}", self.program.display()))?;
        if !ran.status.success() {
            return Err(String::from_utf8_lossy(&ran.stderr).into_owned());
        }
        let module = std::fs::read_to_string(&output);
        let module = module.map_err(|error| format!("{}: {error}", output.display()))?;
        let _ = std::fs::remove_file(source);
        let _ = std::fs::remove_file(output);
        Ok(module)
    }

    /// Its name and the level of a file.
    pub(crate) fn called(&self, file: u64) -> String {
        let level = (file % self.levels.len() as u64) as usize;
        format!("{} {}", self.name, self.levels[level].0)
    }
}

/// What came of some files.
#[derive(Clone, Debug, Default)]
pub struct Checked {
    /// What was tried, by compiler and level.
    pub counts: BTreeMap<String, Counts>,
    /// What is wrong.
    pub differences: Vec<Difference>,
    /// Kernels that compilers were given, each once.
    pub kernels: u64,
}

impl Checked {
    /// Adds others.
    pub fn add(&mut self, other: Checked) {
        for (name, counts) in &other.counts {
            self.counts.entry(name.clone()).or_default().add(counts);
        }
        self.differences.extend(other.differences);
        self.kernels += other.kernels;
    }

    /// What was tried, of all compilers together.
    pub fn total(&self) -> Counts {
        let mut total = Counts::default();
        self.counts.values().for_each(|counts| total.add(counts));
        total
    }
}

/// Puts the programs of these seeds into a file, gives it to each compiler, and tries plans on what comes back. `file`
/// numbers the files of a campaign; the levels go with it.
///
/// # Errors
/// A compiler refuses a file, or cannot be run.
pub fn check_file(
    compilers: &[Compiler],
    seeds: Range<u64>,
    file: u64,
    folder: &Path,
) -> Result<Checked, String> {
    let mut preparing = Counts::default();
    let programs = seeds.filter_map(|seed| prepared(seed, &mut preparing));
    // A compiler may move plain loads across volatile ones, where no fence is.
    let fit = |program: &Program| !program.partial && !program.unordered;
    let programs: Vec<Prepared> = programs.filter(|prepared| fit(&prepared.program)).collect();
    let mut checked = Checked {
        kernels: programs.len() as u64,
        ..Checked::default()
    };
    for compiler in compilers {
        let module = compiler
            .module(&programs, file, folder)
            .map_err(|said| format!("{}: {said}", compiler.called(file)))?;
        let entries = entries(&module);
        let mut counts = preparing.clone();
        for prepared in &programs {
            let name = prepared.program.name();
            let entry = entries
                .get(name.as_str())
                .ok_or_else(|| format!("no entry {name}"))?;
            let found = prepared.clone().check_module(entry, &mut counts);
            checked.differences.extend(found);
        }
        checked.counts.insert(compiler.called(file), counts);
    }
    Ok(checked)
}

/// Each entry, with everything that is no entry, as a module of its own: a module is read as a whole, and a hundred times
/// a hundred entries take long.
fn entries(module: &str) -> HashMap<&str, String> {
    let (shared, bodies) = apart(module);
    let whole = |(name, body)| (name, format!("{shared}{body}"));
    bodies.into_iter().map(whole).collect()
}

/// Everything that is no entry, and the entries by name.
pub(crate) fn apart(module: &str) -> (String, Vec<(&str, &str)>) {
    const ENTRY: &str = ".visible .entry ";
    const END: &str = "\n}\n";
    let starts: Vec<usize> = module.match_indices(ENTRY).map(|(at, _)| at).collect();
    let mut shared = module[..starts.first().copied().unwrap_or(module.len())].to_owned();
    let mut bodies = Vec::new();
    for (number, &start) in starts.iter().enumerate() {
        let part = &module[start..starts.get(number + 1).copied().unwrap_or(module.len())];
        let end = part.find(END).map_or(part.len(), |at| at + END.len());
        let name = part[ENTRY.len()..].split('(').next().unwrap_or_default().trim();
        bodies.push((name, &part[..end]));
        shared.push_str(&part[end..]);
    }
    (shared, bodies)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_stand_behind_all_that_is_none() {
        let module = ".version 8.0\n.func f()\n{\nret;\n}\n.visible .entry a(\n.param .u64 p\n)\n{\nret;\n}\n.func g()\n{\n\
                      ret;\n}\n.visible .entry b()\n{\nret;\n}\n";
        let (shared, bodies) = apart(module);
        assert_eq!(
            shared,
            ".version 8.0\n.func f()\n{\nret;\n}\n.func g()\n{\nret;\n}\n"
        );
        let names: Vec<&str> = bodies.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["a", "b"]);
        let length: usize = bodies.iter().map(|(_, body)| body.len()).sum();
        assert_eq!(shared.len() + length, module.len());
        assert!(entries(module)["b"].ends_with(".visible .entry b()\n{\nret;\n}\n"));
    }
}
