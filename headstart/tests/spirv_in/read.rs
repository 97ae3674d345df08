//! The output of our own back end is read again with the same meaning, hints and cache controls included. Unsupported input is
//! refused by name, with its byte offset.

use std::sync::Arc;

use headstart::back::spirv::{Options, SpirvTarget, emit};
use headstart::device::sim::functional;
use headstart::front::ptx::Facts;
use headstart::front::spirv::{Imported, Module};
use headstart::ir::{self, Kernel, Type};
use headstart::tune::{ArgumentSpec, Workload};
use headstart::{Error, Fault};
use headstart_testing as testing;
use rspirv::binary::Assemble;
use rspirv::dr::{Builder, Operand};
use rspirv::spirv::{
    AddressingModel, Capability, Decoration, ExecutionModel, FunctionControl, MemoryModel, StorageClass, Word,
};

fn import(bytes: &[u8], facts: &Facts) -> Result<Imported, Error> {
    Module::new(bytes, "test.spv")?.import(None, facts)
}

/// The launch of a kernel for the same one as it comes back: halves and truth values are passed as integers.
fn as_read(workload: &Workload, kernel: Kernel) -> Workload {
    let given = workload.given.iter().zip(&kernel.params);
    let given = given.map(|(given, param)| match given {
        ArgumentSpec::Scalar(_, bits) => ArgumentSpec::Scalar(kernel.ty(param.value), *bits),
        other => other.clone(),
    });
    Workload {
        given: given.collect(),
        kernel: Arc::new(kernel),
        ..workload.clone()
    }
}

#[test]
fn random_kernels_come_back() {
    let base = testing::base_seed();
    let (mut same, mut refused) = (0, 0);
    for seed in base..base + testing::count("HEADSTART_CASES", 60) {
        let workload = testing::random_workload(seed);
        let Ok(emitted) = emit(&workload.kernel, &Options::new(SpirvTarget::Portable)) else {
            refused += 1;
            continue;
        };
        let imported = import(&emitted.bytes(), &Facts::default());
        let kernel = imported
            .unwrap_or_else(|error| panic!("seed {seed}: {error}\n{}", emitted.text))
            .kernel;
        let right = testing::run(&workload, &workload.kernel, functional::Options::FAST);
        let right = right.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let again = as_read(&workload, kernel);
        let found = testing::run(&again, &again.kernel, functional::Options::FAST);
        let found =
            found.unwrap_or_else(|error| panic!("seed {seed}: {error}\n{}", ir::print(&again.kernel)));
        let bytes =
            |outputs: Vec<(String, Vec<u8>)>| outputs.into_iter().map(|(_, bytes)| bytes).collect::<Vec<_>>();
        assert!(
            bytes(right) == bytes(found),
            "seed {seed}: other bits\n{}\n{}",
            ir::print(&workload.kernel),
            ir::print(&again.kernel)
        );
        same += 1;
    }
    println!("{same} kernels compute the same, {refused} are refused by the back end");
    assert!(same > 20, "{same}");
}

#[test]
fn hints_and_controls_come_back() {
    let text = "hsir 1\nkernel @k(%p: ptr.global i32[] align 64, %q: ptr.global i32[] align 4) {\nload @p\n\
                %x = load i32 %p, @p L1S_L3C\nprefetch L1 64 at %p\nprefetch L3 4 at %p\nstore %q, %x\nreturn\n}\n";
    let kernel = ir::parse(text, "k.hsir").unwrap_or_else(|error| panic!("{error}"));
    let emitted = emit(&kernel, &Options::new(SpirvTarget::IntelLsc)).expect("emitted");
    let imported = import(&emitted.bytes(), &Facts::default()).unwrap_or_else(|error| panic!("{error}"));
    let read = ir::print(&imported.kernel);
    for expected in ["L1S_L3C", "L1C_L3C", "L1UC_L3C"] {
        assert!(read.contains(expected), "{expected}\n{read}");
    }
    assert_eq!(
        imported.kernel.params[0].facts.map(|facts| facts.element),
        Some(Type::I32)
    );
}

/// A module of one kernel `k` with a parameter of some type, and what its body is.
fn module(parameter: impl FnOnce(&mut Builder) -> Word, body: impl FnOnce(&mut Builder, Word)) -> Vec<u8> {
    let mut b = Builder::new();
    b.set_version(1, 2);
    for capability in [Capability::Addresses, Capability::Kernel, Capability::Int64] {
        b.capability(capability);
    }
    b.memory_model(AddressingModel::Physical64, MemoryModel::OpenCL);
    let void = b.type_void();
    let ty = parameter(&mut b);
    let function_type = b.type_function(void, [ty]);
    let function = b
        .begin_function(void, None, FunctionControl::NONE, function_type)
        .expect("a function");
    let given = b.function_parameter(ty).expect("a parameter");
    b.begin_block(None).expect("a block");
    body(&mut b, given);
    b.ret().expect("the end");
    b.end_function().expect("the end");
    b.entry_point(ExecutionModel::Kernel, function, "k", []);
    let words = b.module().assemble();
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn refusal(bytes: &[u8]) -> String {
    let error = import(bytes, &Facts::default()).expect_err("it is refused");
    assert_eq!(error.fault(), Fault::Input, "{error}");
    error.to_string()
}

#[test]
fn what_is_not_read_is_named() {
    let pointer = |b: &mut Builder| {
        let int = b.type_int(32, 0);
        b.type_pointer(None, StorageClass::CrossWorkgroup, int)
    };
    let image = |b: &mut Builder| {
        let void = b.type_void();
        let unknown = rspirv::spirv::ImageFormat::Unknown;
        b.type_image(void, rspirv::spirv::Dim::Dim2D, 0, 0, 0, 0, unknown, None)
    };
    let said = refusal(&module(image, |_, _| {}));
    assert!(
        said.contains("entry `k`") && said.contains("OpTypeImage (images and samplers)"),
        "{said}"
    );
    assert!(said.starts_with("byte "), "{said}");

    let call = |b: &mut Builder, _| {
        let void = b.type_void();
        let callee = b.id();
        b.name(callee, "elsewhere");
        b.function_call(void, None, callee, []).expect("a call");
    };
    let said = refusal(&module(pointer, call));
    assert!(
        said.contains("`OpFunctionCall`") && said.contains("`elsewhere`, which has no body"),
        "{said}"
    );

    let odd = |b: &mut Builder, given| {
        let odd = b.type_int(24, 0);
        b.load(odd, None, given, None, []).expect("a load");
    };
    let said = refusal(&module(pointer, odd));
    assert!(
        said.contains("`OpTypeInt 24`") && said.contains("integers of 8, 16, 32 and 64 bits"),
        "{said}"
    );

    let said = refusal(b"#version 450\nvoid main() {}");
    assert!(said.contains("does not start as a SPIR-V module does"), "{said}");
    let mut cut = module(pointer, |_, _| {});
    cut.truncate(cut.len() - 8);
    let said = refusal(&cut);
    assert!(
        said.contains("no end") || said.contains("words starts here"),
        "{said}"
    );
}

#[test]
fn specialisation_constants_have_their_defaults_and_wraps_their_promises() {
    let pointer = |b: &mut Builder| {
        let int = b.type_int(32, 0);
        b.type_pointer(None, StorageClass::CrossWorkgroup, int)
    };
    let body = |b: &mut Builder, given| {
        let int = b.type_int(32, 0);
        let seven = b.spec_constant_bit32(int, 7);
        b.decorate(seven, Decoration::SpecId, [Operand::LiteralBit32(0)]);
        let loaded = b.load(int, None, given, None, []).expect("a load");
        let sum = b.i_add(int, None, loaded, seven).expect("a sum");
        b.decorate(sum, Decoration::NoSignedWrap, []);
        b.store(given, sum, None, []).expect("a store");
    };
    let imported =
        import(&module(pointer, body), &Facts::default()).unwrap_or_else(|error| panic!("{error}"));
    let read = ir::print(&imported.kernel);
    assert!(read.contains("add.nsw") && read.contains("7:i32"), "{read}");
}
