//! The validator of SPIR-V modules, where `scripts/tools` has set it up.

use std::path::PathBuf;
use std::process::Command;

use super::tools;
use crate::back::spirv::Spirv;

/// The validator.
#[derive(Clone, Debug)]
pub struct SpirvVal(PathBuf);

impl SpirvVal {
    /// Finds the validator of Debian 12. Without it, says on standard error that something is skipped.
    pub fn find() -> Option<SpirvVal> {
        tools::program("spirv-val").map(SpirvVal)
    }

    /// Finds the validator of Debian's testing release, which knows newer extensions.
    pub fn newest() -> Option<SpirvVal> {
        tools::program("spirv-val-testing").map(SpirvVal)
    }

    /// Validates a module.
    ///
    /// # Errors
    /// The validator's message.
    pub fn check(&self, spirv: &Spirv) -> Result<(), String> {
        self.check_words(&spirv.words)
    }

    /// Validates the words of a module.
    ///
    /// # Errors
    /// The validator's message.
    pub fn check_words(&self, words: &[u32]) -> Result<(), String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let file = folder.path().join("kernel.spv");
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        std::fs::write(&file, bytes).map_err(|error| error.to_string())?;
        let output = Command::new(&self.0)
            .args(["--target-env", "spv1.4"])
            .arg(&file)
            .output()
            .map_err(|error| format!("{}: {error}", self.0.display()))?;
        match output.status.success() {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&[output.stdout, output.stderr].concat())
                .trim()
                .to_owned()),
        }
    }
}
