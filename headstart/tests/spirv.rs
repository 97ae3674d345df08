//! Every kernel in `tests/in` is emitted as SPIR-V for each target, compared with `tests/out`, and validated by
//! `spirv-val`, which `scripts/tools` sets up; without it validating is skipped, and says so.
//! `HEADSTART_BLESS=1` rewrites what is expected.

mod common;

use std::path::Path;

use headstart::back::spirv::{self, Options, Spirv, Target};
use headstart::ir::Kernel;
use headstart::prefetch;
use headstart::testing::spirv_val::SpirvVal;
use headstart::testing::{self, Size};

/// The module of a kernel; none where it is refused for a reason that is expected.
fn emit(name: &str, kernel: &Kernel, options: &Options) -> Option<Spirv> {
    match spirv::emit(kernel, options) {
        Ok(spirv) => Some(spirv),
        Err(error) if error.what().contains("may return while others wait") => None,
        Err(error) => panic!("{name}: {error}"),
    }
}

#[test]
fn the_corpus_is_emitted_and_validated() {
    let validator = SpirvVal::find();
    let mut complaints = Vec::new();
    for (name, kernel) in common::corpus::kernels() {
        for target in Target::ALL {
            let Some(emitted) = emit(&name, &kernel, &Options::new(target)) else {
                continue;
            };
            if target == Target::IntelLsc {
                complaints.extend(common::corpus::compare(&format!("{name}.spvasm"), &emitted.text));
            }
            if let Some(Err(said)) = validator.as_ref().map(|validator| validator.check(&emitted)) {
                complaints.push(format!("{name} for {}: {said}", target.name()));
            }
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

/// Each operation of each type becomes a module that is valid. What it computes is tested in `opencl.rs`.
#[test]
fn every_operation_is_valid() {
    let mut complaints = Vec::new();
    let operations = common::operations::operations();
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/spirv.md");
    let page = std::fs::read_to_string(page).expect("the page is there");
    let said = format!("({} of them)", operations.len());
    assert!(page.contains(&said), "docs/spirv.md does not say {said}");
    let Some(validator) = SpirvVal::find() else { return };
    for operation in operations {
        let emitted = emit(
            &operation.name,
            &operation.kernel,
            &Options::new(Target::Portable),
        );
        if let Some(Err(said)) = emitted.map(|emitted| validator.check(&emitted)) {
            complaints.push(format!("{}: {said}", operation.name));
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

/// Random kernels, some with random plans, become modules that are valid.
#[test]
fn random_kernels_are_valid() {
    let Some(validator) = SpirvVal::find() else { return };
    let base = testing::base_seed();
    let (mut with_plans, mut emitted) = (0, 0);
    for seed in base..base + testing::count("HEADSTART_CASES", 100) {
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
        let target = Target::ALL[seed as usize % Target::ALL.len()];
        let Some(spirv) = emit(&seed.to_string(), &kernel, &Options::new(target)) else {
            continue;
        };
        emitted += 1;
        validator
            .check(&spirv)
            .unwrap_or_else(|said| panic!("seed {seed}: {said}\n{}", spirv.text));
    }
    assert!(with_plans > 5, "{with_plans} kernels took a plan");
    assert!(emitted > 30, "{emitted} kernels were emitted");
}
