//! Every kernel in `tests/in` is emitted as PTX; the text is compared with `tests/out`, assembled by
//! NVIDIA's `ptxas` for sm_80 and sm_90, and the registers and spills compared with `tests/out`, too.
//!
//! `scripts/tools` sets up `ptxas`; without it assembling is skipped, and says so.
//! `HEADSTART_BLESS=1` rewrites what is expected.

mod common;

use common::corpus::{compare, kernels};
use headstart::back::ptx::{self, Options, PtxTarget};
use headstart_testing::ptxas::{Assembled, Ptxas};
use headstart_testing::{self as testing, derived_are_right};

#[test]
fn the_corpus_is_emitted_and_assembled() {
    let ptxas = Ptxas::find();
    let mut complaints = Vec::new();
    let mut resources = String::new();
    for (name, kernel) in kernels() {
        for target in [PtxTarget::Sm80, PtxTarget::Sm90] {
            let emitted =
                ptx::emit(&kernel, &Options::new(target)).unwrap_or_else(|error| panic!("{name}: {error}"));
            if target == PtxTarget::Sm90 {
                complaints.extend(compare(&format!("{name}.ptx"), &emitted.text));
            }
            match ptxas.as_ref().map(|ptxas| ptxas.assemble(&emitted, target)) {
                Some(Ok(made)) => {
                    let Assembled {
                        registers,
                        spilled_bytes,
                        shared_bytes,
                        ..
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
    for target in [PtxTarget::Sm80, PtxTarget::Sm90] {
        // All entries in one module: starting the assembler takes longer than assembling one.
        let mut together: Option<ptx::Ptx> = None;
        for (number, operation) in operations.iter().enumerate() {
            let mut kernel = operation.kernel.clone();
            kernel.name = format!("operation_{number}");
            let emitted = ptx::emit(&kernel, &Options::new(target));
            let newer = |error: &headstart::Error| error.to_string().contains("sm_90 or later");
            if target == PtxTarget::Sm80 && emitted.as_ref().is_err_and(newer) {
                continue;
            }
            let one = emitted.unwrap_or_else(|error| panic!("{}: {error}", operation.name));
            match &mut together {
                None => together = Some(one),
                Some(all) => {
                    let entry = one.text.find(".visible").expect("an entry");
                    let (head, entry) = one.text.split_at(entry);
                    let constants = head.lines().filter(|line| line.starts_with(".const"));
                    for line in constants {
                        if !all.text.contains(line) {
                            all.text.push_str(line);
                        }
                    }
                    all.text.push_str(&format!("\n// {}\n{entry}", operation.name));
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
    derived_are_right(testing::count("HEADSTART_CASES", 40), 1, |derived| {
        let target = match derived.seed % 2 {
            0 => PtxTarget::Sm80,
            _ => PtxTarget::Sm90,
        };
        match ptx::emit(derived.kernel, &Options::new(target)) {
            Ok(emitted) => ptxas.assemble(&emitted, target).err(),
            Err(error) => Some(error.to_string()),
        }
    });
}
