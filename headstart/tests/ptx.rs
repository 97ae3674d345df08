//! Every kernel in `tests/in` is emitted as PTX; the text is compared with `tests/out`, assembled by
//! NVIDIA's `ptxas` for sm_80 and sm_90, and the registers and spills compared with `tests/out`, too.
//!
//! `scripts/tools` sets up `ptxas`; without it assembling is skipped, and says so.
//! `HEADSTART_BLESS=1` rewrites what is expected.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use headstart::back::ptx::{self, Options, Target};
use headstart::ir;

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

/// NVIDIA's assembler, if it was set up.
fn ptxas() -> Option<PathBuf> {
    let tools = std::env::var_os("HEADSTART_TOOLS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/tools"),
        PathBuf::from,
    );
    Some(tools.join("bin/ptxas")).filter(|path| path.exists())
}

/// What the assembler says of a kernel: registers, spills. The complaint if it refuses.
fn assemble(ptxas: &Path, name: &str, ptx: &ptx::Ptx, target: Target) -> Result<String, String> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let source = folder.path().join("kernel.ptx");
    fs::write(&source, &ptx.text).expect("the folder is writable");
    let output = Command::new(ptxas)
        .args(["-v", "-warn-spills", &format!("-arch={}", target.name()), "-o"])
        .arg(folder.path().join("kernel.cubin"))
        .arg(&source)
        .output()
        .expect("ptxas runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if !output.status.success() {
        return Err(format!("{name} for {}: {said}\n{}", target.name(), ptx.text));
    }
    let number = |before: &str| -> u32 {
        let words: Vec<&str> = said.split([' ', ',']).filter(|word| !word.is_empty()).collect();
        let at = words.windows(2).position(|pair| pair[1].starts_with(before));
        at.and_then(|at| words[at].parse().ok()).unwrap_or(0)
    };
    let spills: Vec<&str> = said.lines().filter(|line| line.contains("spill")).collect();
    let spilled = spills
        .iter()
        .any(|line| !line.contains(" 0 bytes spill stores, 0 bytes spill loads"));
    Ok(format!(
        "{name} {}: {} registers, {} bytes shared, spills {}\n",
        target.name(),
        number("registers"),
        ptx.static_shared_bytes + ptx.dynamic_shared_bytes,
        if spilled { "SOME" } else { "none" },
    ))
}

#[test]
fn the_corpus_is_emitted_and_assembled() {
    let ptxas = ptxas();
    let mut complaints = Vec::new();
    let mut resources = String::new();
    for (name, kernel) in kernels() {
        for target in [Target::Sm80, Target::Sm90] {
            let emitted =
                ptx::emit(&kernel, &Options::new(target)).unwrap_or_else(|error| panic!("{name}: {error}"));
            if target == Target::Sm90 {
                complaints.extend(compare(&format!("{name}.ptx"), &emitted.text));
            }
            if let Some(ptxas) = &ptxas {
                match assemble(ptxas, &name, &emitted, target) {
                    Ok(line) => resources.push_str(&line),
                    Err(complaint) => complaints.push(complaint),
                }
            }
        }
    }
    match ptxas {
        Some(_) => complaints.extend(compare("ptxas.txt", &resources)),
        None => eprintln!("skipped: no ptxas; scripts/tools sets it up"),
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

/// Each operation of each type becomes PTX that the assembler takes. What it computes is tested on a GPU.
#[test]
fn every_operation_is_assembled() {
    let Some(ptxas) = ptxas() else {
        eprintln!("skipped: no ptxas; scripts/tools sets it up");
        return;
    };
    let operations = common::operations::operations();
    assert!(operations.len() > 300, "{} operations", operations.len());
    let mut complaints = Vec::new();
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
        complaints.extend(
            assemble(&ptxas, "operations", &together, target)
                .err()
                .map(|said| {
                    let errors: Vec<&str> = said
                        .lines()
                        .filter(|line| line.contains("error"))
                        .take(20)
                        .collect();
                    let line = |number: &str| {
                        together
                            .text
                            .lines()
                            .nth(number.parse::<usize>().ok()?.checked_sub(1)?)
                    };
                    let quoted: Vec<String> = errors
                        .iter()
                        .map(|error| {
                            let number = error
                                .split("line ")
                                .nth(1)
                                .and_then(|rest| rest.split(';').next());
                            format!("{error}: {}", number.and_then(line).unwrap_or("?"))
                        })
                        .collect();
                    quoted.join("\n")
                }),
        );
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}
