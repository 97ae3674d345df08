//! NVIDIA's toolkit, where it is installed.

use std::env;
use std::path::{Path, PathBuf};

/// The program of this name: of the toolkit that `CUDA_HOME` or `CUDA_PATH` names, or else on `PATH`.
pub fn program(name: &str) -> Option<PathBuf> {
    let home = ["CUDA_HOME", "CUDA_PATH"].into_iter().find_map(env::var_os);
    let home = home.map(|home| Path::new(&home).join("bin"));
    let path = env::var_os("PATH").unwrap_or_default();
    let mut programs = home
        .into_iter()
        .chain(env::split_paths(&path))
        .map(|folder| folder.join(name));
    programs.find(|program| program.is_file())
}
