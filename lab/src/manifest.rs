//! A workload as another program reads it: a line for each setting, buffer and scalar, and a file for the contents that
//! have no closed form. The data are the same to the bit.
//!
//! ```text
//! kernel embedding-bag
//! cache flushed
//! rounds 9
//! set mode sum
//! buffer offsets i32 2049 steps 0 150
//! buffer indices i32 307200 file /tmp/…/indices
//! buffer table f32 1073741824 fractions 1
//! output result f32 262144
//! scalar bags 2048
//! answer /tmp/…/answer
//! ```

use std::fmt::Write;
use std::path::{Path, PathBuf};

use headstart::device::CacheState;
use headstart::device::{Fill, Pattern};
use headstart::tune::{ArgumentSpec, Workload};
use headstart::{Error, Result};

/// Where a program finds a workload, and where it writes its results.
#[derive(Debug)]
pub struct Manifest {
    /// The lines.
    pub lines: PathBuf,
    /// The bytes of the first output, with the number of the way behind the name: `answer.0`.
    pub answer: PathBuf,
}

/// Writes a workload into an empty folder.
///
/// # Errors
/// A file cannot be written.
pub fn write(
    folder: &Path,
    kernel: &str,
    settings: &[(String, String)],
    workload: &Workload,
    cache: CacheState,
    rounds: u32,
) -> Result<Manifest> {
    let failed = |error: std::io::Error| Error::device(format!("{}: {error}", folder.display()));
    let state = match cache {
        CacheState::Kept => "kept",
        CacheState::Flushed => "flushed",
    };
    let mut text = format!("kernel {kernel}\ncache {state}\nrounds {rounds}\n");
    for (name, value) in settings {
        let _ = writeln!(text, "set {name} {value}");
    }
    for (given, param) in workload.given.iter().zip(&workload.kernel.params) {
        let name = &param.name;
        let line = match given {
            ArgumentSpec::Scalar(_, bits) => format!("scalar {name} {bits}"),
            ArgumentSpec::Part { of, start } => format!("part {name} {of} {start}"),
            ArgumentSpec::Output { element, length, .. } => format!("output {name} {element} {length}"),
            ArgumentSpec::Input {
                element,
                length,
                fill,
            } => {
                let file = |bytes: &[u8]| -> Result<String> {
                    let path = folder.join(name);
                    std::fs::write(&path, bytes).map_err(failed)?;
                    Ok(format!("file {}", path.display()))
                };
                let contents = match fill {
                    Fill::Uninitialized => "constant 0".to_owned(),
                    Fill::Bytes(bytes) => file(bytes)?,
                    Fill::Pattern(Pattern::Constant(bits)) => format!("constant {bits}"),
                    Fill::Pattern(Pattern::Steps { first, step }) => format!("steps {first} {step}"),
                    Fill::Pattern(Pattern::Below { bound, seed }) => format!("below {bound} {seed}"),
                    Fill::Pattern(Pattern::Fractions { low }) => format!("fractions {low}"),
                    Fill::Pattern(pattern @ (Pattern::Bits { .. } | Pattern::Function(_))) => {
                        file(&pattern.bytes(*element, 0, *length))?
                    }
                };
                format!("buffer {name} {element} {length} {contents}")
            }
        };
        let _ = writeln!(text, "{line}");
    }
    let manifest = Manifest {
        lines: folder.join("case.txt"),
        answer: folder.join("answer"),
    };
    let _ = writeln!(text, "answer {}", manifest.answer.display());
    std::fs::write(&manifest.lines, text).map_err(failed)?;
    Ok(manifest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use headstart::tune::Subject;
    use headstart_gallery::kernels;

    #[test]
    fn a_workload_is_written_with_its_data() {
        let folder = tempfile::tempdir().expect("a folder");
        let settings = ["bags=3", "bag=2", "rows=10", "skew=zipf", "dim=8"].map(str::to_owned);
        let chosen = kernels::find("embedding-bag").and_then(|kernel| kernel.with(&settings, None));
        let chosen = chosen.expect("settings");
        let workload = chosen.workload().expect("a workload");
        let manifest = write(
            folder.path(),
            "embedding-bag",
            &chosen.parameters(),
            &workload,
            CacheState::Flushed,
            9,
        );
        let manifest = manifest.expect("it can be written");
        let text = std::fs::read_to_string(&manifest.lines).expect("lines");
        for line in [
            "kernel embedding-bag",
            "cache flushed",
            "set skew zipf",
            "buffer offsets i32 4 steps 0 2",
            "buffer table f32 80 fractions 1",
            "output result f32 24",
            "scalar bags 3",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        assert_eq!(
            std::fs::metadata(folder.path().join("indices"))
                .expect("a file")
                .len(),
            6 * 4
        );
    }
}
