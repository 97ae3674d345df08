//! Every kernel in `tests/in` is emitted as SPIR-V for each target, compared with `tests/out`, and validated by
//! `spirv-val`, which `scripts/tools` sets up; without it validating is skipped, and says so.
//! `HEADSTART_BLESS=1` rewrites what is expected.

mod common;

use std::cell::Cell;
use std::path::Path;

use headstart::back::spirv::{self, Options, Spirv, SpirvTarget};
use headstart::ir::{Kernel, OpKind};
use headstart_testing::spirv_val::SpirvVal;
use headstart_testing::{self as testing, derived_are_right};

/// The module of a kernel; none where it is refused for a reason that is expected.
fn emit(name: &str, kernel: &Kernel, options: &Options) -> Option<Spirv> {
    match spirv::emit(kernel, options) {
        Ok(spirv) => Some(spirv),
        Err(error) if error.what().contains("may return while others wait") => None,
        Err(error) if error.what().contains("rounds other than to nearest") => None,
        Err(error) if parts_work_together(kernel) => {
            let what = error.what();
            let says =
                what.contains("a part of a sub-group") || what.contains("which work-items run together");
            assert!(says, "{name}: {error}");
            None
        }
        Err(error) => panic!("{name}: {error}"),
    }
}

/// Whether a kernel has a mask that is not everybody's, or asks for one: OpenCL has nothing of the kind.
fn parts_work_together(kernel: &Kernel) -> bool {
    let mut found = false;
    kernel.body.walk(&mut |op| {
        let masks = op.kind.mask().map(|mask| kernel.as_constant(mask));
        found |= masks.is_some_and(|mask| mask != Some(0xffff_ffff)) || op.kind == OpKind::Active;
    });
    found
}

#[test]
fn masks_of_parts_are_refused_and_that_of_all_is_none() {
    let text = |mask: &str| {
        format!(
            "hsir 1 kernel @k(%p: ptr.global i32[] align 4) {{ %lane = id.lane %m = shl 1:i32, %lane\n\
             %all = vote any true{mask} %r = select %all, 1:i32, 2:i32 %i = extend.u %lane to i64\n\
             %to = address %p + %i * 4 store %to, %r return }}"
        )
    };
    let kernel = |mask: &str| headstart::ir::parse(&text(mask), "k.hsir").expect("a kernel");
    let emitted = |mask: &str| spirv::emit(&kernel(mask), &Options::new(SpirvTarget::ALL[0]));
    let (without, with) = (emitted(""), emitted(" among -1:i32"));
    assert_eq!(
        without.expect("it is emitted").text,
        with.expect("it is emitted").text
    );
    let error = emitted(" among %m")
        .expect_err("a part of a sub-group")
        .to_string();
    assert!(
        error.contains(
            "a part of a sub-group of `k` shuffles, votes or meets; no mask, or the constant mask -1"
        ),
        "{error}"
    );
}

#[test]
fn the_corpus_is_emitted_and_validated() {
    let validator = SpirvVal::find();
    let mut complaints = Vec::new();
    for (name, kernel) in common::corpus::kernels() {
        for target in SpirvTarget::ALL {
            let Some(emitted) = emit(&name, &kernel, &Options::new(target)) else {
                continue;
            };
            if target == SpirvTarget::IntelLsc {
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
            &Options::new(SpirvTarget::Portable),
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
    let emitted = Cell::new(0);
    derived_are_right(testing::count("HEADSTART_CASES", 70), 1, |derived| {
        let target = SpirvTarget::ALL[derived.seed as usize % SpirvTarget::ALL.len()];
        let spirv = emit("random", derived.kernel, &Options::new(target))?;
        emitted.set(emitted.get() + 1);
        validator.check(&spirv).err()
    });
    assert!(emitted.get() > 30, "{} kernels were emitted", emitted.get());
}

#[test]
fn a_number_of_registers_is_refused() {
    let text =
        "hsir 1\nkernel @k(%p: ptr.global f32[] align 4) registers 64 {\nstore %p, 1.0:f32\nreturn\n}\n";
    let kernel = headstart::ir::parse(text, "k.hsir").unwrap_or_else(|error| panic!("{error}"));
    let refused =
        spirv::emit(&kernel, &Options::new(SpirvTarget::Portable)).expect_err("OpenCL cannot say it");
    assert!(
        refused.to_string().contains("64 registers a work-item"),
        "{refused}"
    );
}

/// OpenCL rounds arithmetic to nearest; what flushes is written out.
#[test]
fn other_directions_of_rounding_are_refused() {
    let kernel = |line: &str| {
        let text = format!(
            "hsir 1\nkernel @k(%x: f32, %p: ptr.global f32[] align 4) {{\n%y = {line} %x, %x\nstore %p, %y\nreturn\n}}\n"
        );
        headstart::ir::parse(&text, "k.hsir").unwrap_or_else(|error| panic!("{error}"))
    };
    let options = Options::new(SpirvTarget::Portable);
    let refused = spirv::emit(&kernel("fadd.rz"), &options).expect_err("it rounds towards zero");
    assert!(
        refused.to_string().contains("`k` rounds other than to nearest"),
        "{refused}"
    );
    for line in ["fadd", "fadd.ftz"] {
        spirv::emit(&kernel(line), &options).unwrap_or_else(|error| panic!("{line}: {error}"));
    }
}
