//! Functions of OpenCL's library, and lines: each stays what it is on the way through a module, and has a meaning elsewhere.

use std::fs;
use std::sync::Arc;

use headstart::back::ptx;
use headstart::back::spirv::{Options, SpirvTarget, emit};
use headstart::device::sim::functional;
use headstart::front::ptx::Facts;
use headstart::front::spirv::Module;
use headstart::ir::{self, BinaryOp, Kernel, Type, UnaryOp};
use headstart::tune::{self, FileSubject, LaunchFile, Subject};
use headstart_testing as testing;
use rspirv::spirv::{Op, OpenclStd100Op as Std};

use crate::corpus::{folder, launch, simulated_outcome};

/// The functions: name, operands, and the first type that it takes.
fn functions(ty: Type) -> Vec<(&'static str, usize)> {
    let unary = UnaryOp::ALL
        .iter()
        .filter(|op| **op >= UnaryOp::LibraryExp && op.operands().fit(ty));
    let binary = BinaryOp::ALL
        .iter()
        .filter(|op| **op >= BinaryOp::LibraryPow && op.operands().fit(ty));
    unary
        .map(|op| (op.name(), 1))
        .chain(binary.map(|op| (op.name(), 2)))
        .collect()
}

/// A kernel that stores what a function makes of two numbers.
fn kernel(function: &str, operands: usize, ty: Type) -> Kernel {
    let given = if operands == 2 { "%x, %y" } else { "%x" };
    let text = format!(
        "hsir 1\nkernel @k(%p: ptr.global {ty}[] align 8, %x: {ty}, %y: {ty}) {{\n%r = {function} {given}\nstore %p, %r\n\
         return\n}}\n"
    );
    ir::parse(&text, "k.hsir").unwrap_or_else(|error| panic!("{error}\n{text}"))
}

#[test]
fn every_function_stays_what_it_is() {
    let mut count = 0;
    for ty in [Type::F16, Type::F32, Type::F64] {
        for (name, operands) in functions(ty) {
            let written = emit(&kernel(name, operands, ty), &Options::new(SpirvTarget::Portable));
            let written = written.unwrap_or_else(|error| panic!("{name} of {ty}: {error}"));
            let module = Module::new(&written.bytes(), "k.spv").expect("a module");
            let read = module.import(None, &Facts::default());
            let read = read.unwrap_or_else(|error| panic!("{name} of {ty}: {error}"));
            let text = ir::print(&read.kernel);
            // Powers of halves to integers are computed in single precision.
            assert!(text.contains(&format!("= {name} ")), "{name} of {ty}\n{text}");
            assert!(read.original.undecided.is_none(), "{name} of {ty}");
            count += 1;
        }
    }
    assert!(count > 90, "{count}");
}

/// What a kernel computes of numbers, through PTX: there the functions are written out.
fn through_ptx(kernel: &Kernel, x: f64, y: f64) -> f64 {
    let written =
        ptx::emit(kernel, &ptx::Options::new(ptx::PtxTarget::Sm80)).unwrap_or_else(|error| panic!("{error}"));
    let scalar = |number: f64| format!("{number:?}").to_lowercase();
    let file = format!(
        "groups = 1\ngroup = 1\n[parameters.p]\nlength = 1\noutput = \"bits\"\n[parameters.x]\nvalue = {}\n[parameters.y]\n\
         value = {}\n",
        scalar(x),
        scalar(y)
    );
    let launch = LaunchFile::parse(&file, "launch.toml").unwrap_or_else(|error| panic!("{error}\n{file}"));
    let imported = headstart::front::ptx::import(&written.text, "k.ptx", None, &launch.facts());
    let imported = imported.unwrap_or_else(|error| panic!("{error}\n{}", written.text));
    let workload = FileSubject::of_module(imported, launch).workload();
    let workload = workload.unwrap_or_else(|error| panic!("{error}\n{file}"));
    let outputs = testing::run(&workload, &workload.kernel, functional::Options::FAST);
    let bytes = outputs.unwrap_or_else(|error| panic!("{error}"))[0].1.clone();
    match bytes.len() {
        4 => f64::from(f32::from_le_bytes(bytes.try_into().expect("four bytes"))),
        _ => f64::from_le_bytes(bytes.try_into().expect("eight bytes")),
    }
}

/// Where a device has no such library, the functions are near to what they are called.
#[test]
fn functions_are_near_the_right_result_elsewhere() {
    let arguments = [
        -0.999, -0.5, -1e-3, -1e-9, 0.0, 1e-30, 1e-7, 0.3, 0.5, 1.0, 1.75, 4.0,
    ];
    let near = |found: f64, right: f64, error: f64| {
        found == right || found.is_nan() && right.is_nan() || (found - right).abs() <= error * right.abs()
    };
    for (ty, last) in [(Type::F32, f64::from(f32::EPSILON)), (Type::F64, f64::EPSILON)] {
        for x in arguments {
            let x = if ty == Type::F32 { f64::from(x as f32) } else { x };
            for (name, right) in [("library.log1p", x.ln_1p()), ("library.expm1", x.exp_m1())] {
                let found = through_ptx(&kernel(name, 1, ty), x, 0.0);
                assert!(
                    near(found, right, 6.0 * last),
                    "{name} of {x}: {found:e}, not {right:e}"
                );
            }
        }
    }
    for (name, x, y, right) in [
        ("native.exp", 1.5, 0.0, 1.5f64.exp()),
        ("native.exp10", -0.75, 0.0, 10f64.powf(-0.75)),
        ("native.log", 3.0, 0.0, 3f64.ln()),
        ("half.log10", 3.0, 0.0, 3f64.log10()),
        ("half.tan", 0.7, 0.0, 0.7f64.tan()),
        ("half.recip", 7.0, 0.0, 1.0 / 7.0),
        ("native.powr", 2.5, 1.5, 2.5f64.powf(1.5)),
        ("half.divide", 2.5, 1.5, 2.5 / 1.5),
        ("library.powr", 2.5, 1.5, 2.5f64.powf(1.5)),
        ("library.erfc", 0.5, 0.0, 0.479_500_122_186_953_5),
    ] {
        let operands = if y == 0.0 { 1 } else { 2 };
        let found = through_ptx(&kernel(name, operands, Type::F32), x, y);
        assert!(
            near(found, right, 1e-5),
            "{name} of {x} and {y}: {found}, not {right}"
        );
    }
}

/// A line keeps its conversions, in the simulator and in the module that is written back.
#[test]
fn lines_are_printed_as_they_were() {
    let bytes = fs::read(folder().join("copies.spv")).expect("readable");
    let launch = launch("lines");
    let subject = |bytes: &[u8]| {
        let module = Module::new(bytes, "copies.spv").expect("a module");
        let imported = module.import(Some("lines"), &launch.facts()).expect("an entry");
        (
            imported.original.clone(),
            FileSubject::of_spirv(imported, launch.clone()),
        )
    };
    let (original, before) = subject(&bytes);
    let workload = before.workload().expect("a workload");
    let outcome = simulated_outcome(&workload, &workload.kernel);
    let first = outcome.printed.lines().next().unwrap_or_default();
    // largest at  27: {+00983} 0x3d7 245.75 27,983,0,-1 100%
    let numbers: Vec<&str> = first
        .split([' ', ':', '{', '}', ',', '%'])
        .filter(|one| !one.is_empty())
        .collect();
    let [
        _,
        _,
        k,
        most,
        bits,
        quarter,
        k_again,
        most_again,
        "0",
        "-1",
        "100",
    ] = numbers[..]
    else {
        panic!("{first}");
    };
    let value: i32 = most_again.parse().expect("a number");
    assert_eq!((k, most), (k_again, format!("{value:+06}").as_str()), "{first}");
    assert_eq!(bits, format!("{value:#x}"));
    assert_eq!(quarter, format!("{:.2}", f64::from(value) * 0.25));
    assert!(first.starts_with("largest at  "), "{first}");

    let options = Options::new(SpirvTarget::Portable);
    let words = tune::exchanged(&original, &Arc::clone(&workload.kernel), &options).expect("it is written");
    let again: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let text = b"largest at %3d: {%+06d} %#x %5.2f %d,%d,%d,%d 100%%\n\0";
    let word_of = |byte: u8| u32::from(byte);
    // The text is a constant of one byte after the other: each is a constant that the module has once.
    let module = rspirv::dr::load_words(&words).expect("a module");
    let number = |id: u32| {
        let own = module
            .types_global_values
            .iter()
            .find(|one| one.result_id == Some(id))?;
        match own.operands.first() {
            Some(rspirv::dr::Operand::LiteralBit32(number)) => Some(*number),
            None => Some(0),
            _ => None,
        }
    };
    let expected: Vec<Option<u32>> = text.iter().map(|&byte| Some(word_of(byte))).collect();
    let has = module.types_global_values.iter().any(|one| {
        let parts = one.operands.iter().filter_map(|operand| operand.id_ref_any());
        one.class.opcode == rspirv::spirv::Op::ConstantComposite
            && parts.map(number).eq(expected.iter().copied())
    });
    assert!(has, "no text `{}`", String::from_utf8_lossy(text));
    let after = subject(&again).1.workload().expect("a workload");
    assert_eq!(simulated_outcome(&after, &after.kernel).printed, outcome.printed);
}

/// Elements that are read before the copy has been waited for may not be there.
#[test]
fn a_copy_that_nobody_waits_for_is_told() {
    let bytes = fs::read(folder().join("copies.spv")).expect("readable");
    let module = rspirv::dr::load_bytes(&bytes).expect("a module");
    let mut without = module.clone();
    for function in &mut without.functions {
        for block in &mut function.blocks {
            block
                .instructions
                .retain(|one| one.class.opcode != rspirv::spirv::Op::GroupWaitEvents);
        }
    }
    let written = |module: &rspirv::dr::Module| -> Vec<u8> {
        use rspirv::binary::Assemble;
        module
            .assemble()
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect()
    };
    let launch = launch("columns");
    let ran = |bytes: &[u8]| {
        let module = Module::new(bytes, "copies.spv").expect("a module");
        let imported = module.import(Some("columns"), &launch.facts()).expect("an entry");
        let workload = FileSubject::of_spirv(imported, launch.clone())
            .workload()
            .expect("a workload");
        testing::run(&workload, &workload.kernel, functional::Options::CHECKING)
    };
    assert!(ran(&written(&module)).is_ok());
    let error = ran(&written(&without)).expect_err("it is told").to_string();
    assert!(
        error.contains("`columns_right[") && error.contains("never written"),
        "{error}"
    );
}

/// A kernel of a module in which an instruction of `OpenCL.std` was exchanged for another.
fn exchanged(kernel: &Kernel, from: Std, to: Std) -> Kernel {
    let written =
        emit(kernel, &Options::new(SpirvTarget::Portable)).unwrap_or_else(|error| panic!("{error}"));
    let mut words = written.words;
    let mut at = 5;
    let mut count = 0;
    while at < words.len() {
        let (length, code) = ((words[at] >> 16) as usize, words[at] & 0xffff);
        if code == Op::ExtInst as u32 && words[at + 4] == from as u32 {
            words[at + 4] = to as u32;
            count += 1;
        }
        at += length;
    }
    assert_eq!(count, 1, "{from:?}");
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let module = Module::new(&bytes, "k.spv").expect("a module");
    let read = module.import(None, &Facts::default());
    read.unwrap_or_else(|error| panic!("{to:?}: {error}")).kernel
}

#[test]
fn sines_and_cosines_of_multiples_of_pi() {
    for (ty, last) in [(Type::F32, f64::from(f32::EPSILON)), (Type::F64, f64::EPSILON)] {
        let sine = exchanged(&kernel("library.sin", 1, ty), Std::sin, Std::sinpi);
        let cosine = exchanged(&kernel("library.sin", 1, ty), Std::sin, Std::cospi);
        let quarters = [0.0, 0.5, 1.0, 1.5, 2.0, -0.5, -1.0, -1.5, 4_194_305.0, -7.5];
        for x in quarters {
            let (s, c) = (through_ptx(&sine, x, 0.0), through_ptx(&cosine, x, 0.0));
            let turn = (2.0 * x).rem_euclid(4.0) as usize;
            assert_eq!(
                (s, c),
                ([0.0, 1.0, 0.0, -1.0][turn], [1.0, 0.0, -1.0, 0.0][turn]),
                "{ty} {x}"
            );
            // A zero has the sign of its argument where it is a sine, and none where it is a cosine.
            assert!(
                s != 0.0 || s.is_sign_negative() == x.is_sign_negative(),
                "{ty} {x}: {s}"
            );
            assert!(c != 0.0 || c.is_sign_positive(), "{ty} {x}: {c}");
        }
        for x in [0.1, 0.25, 0.7, 1.3, -0.4, -1.9, 100.125, 1e-20] {
            let x = if ty == Type::F32 { f64::from(x as f32) } else { x };
            let near = |found: f64, right: f64| (found - right).abs() <= 4.0 * last * right.abs();
            let angle = std::f64::consts::PI * (x - 2.0 * (x / 2.0).round_ties_even());
            let (s, c) = (through_ptx(&sine, x, 0.0), through_ptx(&cosine, x, 0.0));
            assert!(
                near(s, angle.sin()) && near(c, angle.cos()),
                "{ty} {x}: {s:e} {c:e}"
            );
        }
        assert!(through_ptx(&sine, f64::INFINITY, 0.0).is_nan(), "{ty}");
    }
}

#[test]
fn the_next_number_on_the_way_to_another() {
    let single = exchanged(&kernel("library.atan2", 2, Type::F32), Std::atan2, Std::nextafter);
    let double = exchanged(&kernel("library.atan2", 2, Type::F64), Std::atan2, Std::nextafter);
    for (x, y) in [
        (1.0, 2.0),
        (1.0, 0.0),
        (-1.0, 0.0),
        (-1.0, -2.0),
        (0.0, 1.0),
        (0.0, -1.0),
        (3.5, 3.5),
        (f64::from(f32::MAX), f64::INFINITY),
    ] {
        let expected = |x: f32, y: f32| match (x < y, y < x) {
            (true, _) => x.next_up(),
            (_, true) => x.next_down(),
            _ => y,
        };
        let found = through_ptx(&single, x, y);
        assert_eq!(found, f64::from(expected(x as f32, y as f32)), "{x} {y}");
        let expected = if x < y {
            x.next_up()
        } else if y < x {
            x.next_down()
        } else {
            y
        };
        assert_eq!(through_ptx(&double, x, y), expected, "{x} {y}");
    }
    assert!(through_ptx(&single, f64::NAN, 1.0).is_nan() && through_ptx(&single, 1.0, f64::NAN).is_nan());
}
