//! An assembler in the place of the driver's compiler, where the environment names one.
//!
//! Who loads kernels that another `ptxas` has assembled wants times of the code that this one makes; and a driver may be too
//! old for the PTX of a newer compiler. `HEADSTART_PTXAS` names the program, `HEADSTART_PTXAS_OPTIONS` has words for it.

use std::env;
use std::process::Command;

use super::failure::{Failure, FailureKind};
use super::gpu::Gpu;

/// Machine code of a text for this GPU; nothing where no assembler is named.
///
/// # Errors
/// It cannot be started, or refuses the text.
pub fn assembled(gpu: &Gpu, ptx: &str) -> Result<Option<Vec<u8>>, Failure> {
    let Some(program) = env::var_os("HEADSTART_PTXAS").filter(|name| !name.is_empty()) else {
        return Ok(None);
    };
    let options = env::var("HEADSTART_PTXAS_OPTIONS").unwrap_or_default();
    let failed = |what: &str| Failure::new(FailureKind::Compilation, format!("HEADSTART_PTXAS: {what}"));
    let folder = tempfile::tempdir().map_err(|error| failed(&error.to_string()))?;
    let (text, code) = (
        folder.path().join("kernel.ptx"),
        folder.path().join("kernel.cubin"),
    );
    std::fs::write(&text, ptx).map_err(|error| failed(&error.to_string()))?;
    let mut command = Command::new(program);
    command.arg("-lineinfo").args(options.split_whitespace());
    if !options.contains("--gpu-name") {
        let (major, minor) = gpu.facts().capability;
        command.arg(format!("--gpu-name=sm_{major}{minor}"));
    }
    let done = command
        .arg(&text)
        .arg("-o")
        .arg(&code)
        .output()
        .map_err(|error| failed(&format!("cannot be started: {error}")))?;
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr);
        return Err(failed("it refuses the text").with_log(said.trim().to_owned()));
    }
    let code = std::fs::read(&code).map_err(|error| failed(&error.to_string()))?;
    Ok(Some(code))
}
