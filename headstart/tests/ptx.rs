//! Every kernel in `tests/in` is emitted as PTX; the text is compared with `tests/out`, assembled by
//! NVIDIA's `ptxas` for sm_80 and sm_90, and the registers and spills compared with `tests/out`, too.
//!
//! `scripts/tools` sets up `ptxas`; without it assembling is skipped, and says so.
//! `HEADSTART_BLESS=1` rewrites what is expected.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use headstart::back::ptx::{self, Options, Target};
use headstart::testing::ptxas::{Assembled, Ptxas};
use headstart::testing::{self, Size};
use headstart::{ir, prefetch};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)
}

/// The kernels in `tests/in`: name without extension, and kernel.
fn kernels() -> Vec<(String, ir::Kernel)> {
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
fn compare(name: &str, found: &str) -> Option<String> {
    let path = folder("out").join(name);
    if std::env::var_os("HEADSTART_BLESS").is_some() {
        fs::write(&path, found).expect("tests/out can be written");
        return None;
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    if expected == found {
        return None;
    }
    let line = expected
        .lines()
        .zip(found.lines())
        .take_while(|(a, b)| a == b)
        .count();
    Some(format!(
        "{}:{}: differs; HEADSTART_BLESS=1 rewrites it",
        path.display(),
        line + 1
    ))
}

#[test]
fn the_corpus_is_emitted_and_assembled() {
    let ptxas = Ptxas::find();
    let mut complaints = Vec::new();
    let mut resources = String::new();
    for (name, kernel) in kernels() {
        for target in [Target::Sm80, Target::Sm90] {
            let emitted =
                ptx::emit(&kernel, &Options::new(target)).unwrap_or_else(|error| panic!("{name}: {error}"));
            if target == Target::Sm90 {
                complaints.extend(compare(&format!("{name}.ptx"), &emitted.text));
            }
            match ptxas.as_ref().map(|ptxas| ptxas.assemble(&emitted, target)) {
                Some(Ok(made)) => {
                    let Assembled {
                        registers,
                        spilled_bytes,
                        shared_bytes,
                    } = made;
                    resources.push_str(&format!(
                        "{name} {}: {registers} registers, {spilled_bytes} bytes spilled, {shared_bytes} bytes shared\n",
                        target.name(),
                    ));
                    if shared_bytes != emitted.static_shared_bytes {
                        complaints.push(format!(
                            "{name}: {} bytes of shared memory were promised, {shared_bytes} are taken",
                            emitted.static_shared_bytes
                        ));
                    }
                }
                Some(Err(said)) => complaints.push(format!("{name} for {}: {said}", target.name())),
                None => {}
            }
        }
    }
    if ptxas.is_some() {
        complaints.extend(compare("ptxas.txt", &resources));
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

/// Each operation of each type becomes PTX that the assembler takes. What it computes is tested on a GPU.
#[test]
fn every_operation_is_assembled() {
    let Some(ptxas) = Ptxas::find() else { return };
    let operations = common::operations::operations();
    assert!(operations.len() > 300, "{} operations", operations.len());
    for target in [Target::Sm80, Target::Sm90] {
        // All entries in one module: starting the assembler takes longer than assembling one.
        let mut together: Option<ptx::Ptx> = None;
        for (number, operation) in operations.iter().enumerate() {
            let mut kernel = operation.kernel.clone();
            kernel.name = format!("operation_{number}");
            let one = ptx::emit(&kernel, &Options::new(target))
                .unwrap_or_else(|error| panic!("{}: {error}", operation.name));
            match &mut together {
                None => together = Some(one),
                Some(all) => {
                    let entry = one.text.find(".visible").expect("an entry");
                    all.text
                        .push_str(&format!("// {}\n{}", operation.name, &one.text[entry..]));
                }
            }
        }
        let together = together.expect("there are operations");
        ptxas
            .assemble(&together, target)
            .unwrap_or_else(|said| panic!("{}: {said}", target.name()));
    }
}

/// Random kernels, some with random plans, become PTX that the assembler takes.
#[test]
fn random_kernels_are_assembled() {
    let Some(ptxas) = Ptxas::find() else { return };
    let base = testing::base_seed();
    let mut with_plans = 0;
    for seed in base..base + 60 {
        let plain = testing::random_kernel(seed, Size::LARGE);
        let mut random = testing::Random::new(seed);
        let target = prefetch::Target {
            group_size: Some([64, 1, 1]),
            ..prefetch::Target::default()
        };
        let plan = testing::random_plan(&mut random, &plain);
        let planned = prefetch::apply(&plain, &plan, &target).ok();
        with_plans += u32::from(planned.is_some());
        let kernel = planned.map_or_else(|| (*plain).clone(), |applied| applied.kernel);
        let target = if seed % 2 == 0 { Target::Sm80 } else { Target::Sm90 };
        let emitted =
            ptx::emit(&kernel, &Options::new(target)).unwrap_or_else(|error| panic!("{seed}: {error}"));
        ptxas
            .assemble(&emitted, target)
            .unwrap_or_else(|said| panic!("seed {seed}: {said}\n{}", emitted.text));
    }
    assert!(with_plans > 5, "{with_plans} kernels took a plan");
}
