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
    let path = folder("out").join(name);
    if std::env::var_os("HEADSTART_BLESS").is_some() {
        fs::write(&path, found).expect("tests/out can be written");
        return None;
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    if expected == found {
        return None;
    }
    let same = expected
        .lines()
        .zip(found.lines())
        .take_while(|(a, b)| a == b)
        .count();
    let (a, b) = (expected.lines().nth(same), found.lines().nth(same));
    let line = same + 1;
    Some(format!(
        "{}:{line}: expected {a:?}, found {b:?}; HEADSTART_BLESS=1 rewrites it",
        path.display()
    ))
}
