//! The kernels in `tests/in`, and what is expected of them in `tests/out`.

use std::fs;
use std::path::{Path, PathBuf};

use headstart::ir;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)
}

/// The kernels in `tests/in`: name without extension, and kernel.
pub fn kernels() -> Vec<(String, ir::Kernel)> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder("in"))
        .expect("tests/in is there")
        .map(|entry| entry.expect("its entries can be read").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "hsir"))
        .collect();
    files.sort();
    let read = |path: PathBuf| {
        let name = path
            .file_stem()
            .expect("a file has a name")
            .to_string_lossy()
            .into_owned();
        let text = fs::read_to_string(&path).expect("a kernel is readable");
        let kernel = ir::parse(&text, &name).unwrap_or_else(|error| panic!("{name}: {error}"));
        ir::verify(&kernel).unwrap_or_else(|error| panic!("{name}: {error}"));
        (name, kernel)
    };
    files.into_iter().map(read).collect()
}

/// Compares with the file in `tests/out`, or rewrites it; a complaint if they differ.
pub fn compare(name: &str, found: &str) -> Option<String> {
    headstart_testing::difference(&folder("out").join(name), found)
}
