//! Kernels that stand apart in the corpus: `carried/`, which are read and not run here, and `functions/`,
//! CUDA's mathematical functions as nvcc writes them, with and without fast-math.

use std::fs;
use std::path::{Path, PathBuf};

use headstart::device::sim::functional::Options;
use headstart::front::ptx::{Imported, Module};
use headstart::tune::{FileSubject, LaunchFile, Subject, Workload};
use headstart_testing::run;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus").join(name)
}

/// The entries of a module, each with its launch.
fn entries(folder: &Path, file: &str) -> (String, Vec<(String, LaunchFile)>) {
    let text = fs::read_to_string(folder.join(file)).expect("a module");
    let names: Vec<String> = Module::new(&text, file)
        .unwrap_or_else(|error| panic!("{error}"))
        .entries()
        .into_iter()
        .map(str::to_owned)
        .collect();
    let launched = names.into_iter().map(|name| {
        let path = folder.join("launch").join(format!("{name}.toml"));
        let launch = LaunchFile::read(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
        (name, launch)
    });
    let launched = launched.collect();
    (text, launched)
}

fn import(text: &str, file: &str, name: &str, launch: &LaunchFile) -> Imported {
    let imported = Module::new(text, file).and_then(|module| module.import_alone(name, &launch.facts()));
    imported.unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn what_is_carried_is_read_and_not_run() {
    let folder = folder("carried");
    let (text, entries) = entries(&folder, "carried.ptx");
    for (name, launch) in entries {
        let workload = workload(import(&text, "carried.ptx", &name, &launch), launch);
        let error = run(&workload, &workload.kernel, Options::CHECKING).expect_err("it is not run");
        assert!(error.to_string().contains("carried as text"), "{name}: {error}");
    }
}

fn workload(imported: Imported, launch: LaunchFile) -> Workload {
    FileSubject::of_module(imported, launch)
        .workload()
        .unwrap_or_else(|error| panic!("{error}"))
}

/// What nvcc makes of a function is that function, on the functional engine.
#[test]
fn functions_are_what_they_are_called() {
    let singles: [(&str, fn(f64) -> f64); 12] = [
        ("expf", f64::exp),
        ("exp2f", f64::exp2),
        ("tanhf", f64::tanh),
        ("sinf", f64::sin),
        ("cosf", f64::cos),
        ("atanf", f64::atan),
        ("cbrtf", f64::cbrt),
        ("coshf", f64::cosh),
        ("asinhf", f64::asinh),
        ("floorf", f64::floor),
        ("sqrtf", f64::sqrt),
        ("logf", f64::ln),
    ];
    let folder = folder("functions");
    let (text, entries) = entries(&folder, "functions.ptx");
    for (name, exact) in singles {
        let entry = format!("of_{name}");
        let (_, launch) = entries.iter().find(|(name, _)| *name == entry).expect("an entry");
        let workload = workload(import(&text, "functions.ptx", &entry, launch), launch.clone());
        let (_, memories) = headstart_testing::bind(&workload).expect("bound");
        let mut given = vec![0; memories[1].bytes() as usize];
        memories[1].copy_out(0, &mut given).expect("read");
        let outputs = run(&workload, &workload.kernel, Options::CHECKING).expect("it runs");
        let floats = |bytes: &[u8]| -> Vec<f32> {
            let words = bytes.chunks_exact(4);
            words
                .map(|word| f32::from_le_bytes([word[0], word[1], word[2], word[3]]))
                .collect()
        };
        let mut worst: f64 = 0.0;
        for (x, found) in floats(&given).into_iter().zip(floats(&outputs[0].1)) {
            let expected = exact(f64::from(x));
            if expected.is_nan() {
                assert!(found.is_nan(), "{name}({x}) = {found}");
                continue;
            }
            worst = worst.max((f64::from(found) - expected).abs() / expected.abs().max(1e-3));
        }
        // A few units in the last place of single precision; near a zero, of a thousandth.
        assert!(worst < 1e-6, "{name}: {worst:e}");
    }
}
