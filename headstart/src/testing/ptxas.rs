//! NVIDIA's assembler, where `scripts/tools` has set it up.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::back::ptx::{Ptx, Target};

/// The assembler.
#[derive(Clone, Debug)]
pub struct Ptxas(PathBuf);

/// What it made of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assembled {
    /// Registers of a work-item.
    pub registers: u32,
    /// Bytes that a work-item keeps in memory for want of registers, stored.
    pub spilled_bytes: u32,
    /// Static shared memory of a work-group, in bytes.
    pub shared_bytes: u32,
}

impl Ptxas {
    /// Finds the assembler under `target/tools`, or the folder that `HEADSTART_TOOLS` names. Without it,
    /// says on standard error that something is skipped.
    pub fn find() -> Option<Ptxas> {
        let tools = std::env::var_os("HEADSTART_TOOLS").map_or_else(
            || Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/tools"),
            PathBuf::from,
        );
        let found = Some(tools.join("bin/ptxas"))
            .filter(|path| path.exists())
            .map(Ptxas);
        if found.is_none() {
            eprintln!("skipped: no ptxas; scripts/tools sets it up");
        }
        found
    }

    /// Assembles a module for a GPU generation.
    ///
    /// # Errors
    /// What the assembler says, with the lines that it complains about.
    pub fn assemble(&self, ptx: &Ptx, target: Target) -> Result<Assembled, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let source = folder.path().join("kernel.ptx");
        std::fs::write(&source, &ptx.text).map_err(|error| error.to_string())?;
        let output = Command::new(&self.0)
            .args(["-v", &format!("-arch={}", target.name()), "-o"])
            .arg(folder.path().join("kernel.cubin"))
            .arg(&source)
            .output()
            .map_err(|error| format!("{}: {error}", self.0.display()))?;
        let said = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() {
            return Err(complaints(&said, &ptx.text));
        }
        let before = |word: &str| {
            let words: Vec<&str> = said
                .split([' ', ',', '\n'])
                .filter(|word| !word.is_empty())
                .collect();
            let word: Vec<&str> = word.split(' ').collect();
            let at = words.windows(word.len()).position(|found| found == word)?;
            words[at.checked_sub(1)?].parse().ok()
        };
        Ok(Assembled {
            registers: before("registers").ok_or("ptxas says nothing of registers")?,
            spilled_bytes: before("bytes spill stores").ok_or("ptxas says nothing of spills")?,
            shared_bytes: before("bytes smem").unwrap_or(0),
        })
    }
}

/// The assembler's errors, each with the line of PTX that it names.
fn complaints(said: &str, text: &str) -> String {
    let quoted = said
        .lines()
        .filter(|line| line.contains("error"))
        .take(20)
        .map(|error| {
            let number = error
                .split("line ")
                .nth(1)
                .and_then(|rest| rest.split(';').next());
            let line =
                number.and_then(|number| text.lines().nth(number.parse::<usize>().ok()?.checked_sub(1)?));
            format!("{error}: {}", line.unwrap_or("?").trim())
        });
    quoted.collect::<Vec<_>>().join("\n")
}
