//! Tensor cores: the functional engine's results are an H100's, to the bit.
//!
//! Each instruction runs on random tiles: numbers near each other, numbers of all sizes, special values, subnormal ones.
//! `tiles.bin` has four tiles of each with an H100's results (driver 580.159, 2026-11-25); `HEADSTART_TILES` names
//! another such file. With a GPU more than a million elements of each are compared with it. Products of warp groups are in
//! [`warp_groups`].

mod formats;
mod warp_groups;

use std::fmt::Write;
use std::fs;
use std::sync::Arc;

use headstart::device::cuda::device::CudaDevice;
use headstart::device::sim::functional;
use headstart::device::{Fill, Pattern};
use headstart::front::ptx::{Facts, Module};
use headstart::ir::Type;
use headstart::tune::{ArgumentSpec, Compare, Workload};
use headstart_testing::ptxas::Ptxas;
use headstart_testing::{Random, run, run_text};

use formats::*;

/// An instruction of one tile, and how its operands are spread over registers.
struct Case {
    name: &'static str,
    a: Format,
    b: Format,
    c: Format,
    /// Registers of A, B and C.
    registers: [usize; 3],
}

const fn case(name: &'static str, a: Format, b: Format, c: Format, registers: [usize; 3]) -> Case {
    Case {
        name,
        a,
        b,
        c,
        registers,
    }
}

const CASES: [Case; 20] = [
    case("m16n8k16.row.col.f32.f16.f16.f32", F16, F16, F32, [4, 2, 4]),
    case("m16n8k8.row.col.f32.f16.f16.f32", F16, F16, F32, [2, 1, 4]),
    case("m16n8k16.row.col.f16.f16.f16.f16", F16, F16, F16, [4, 2, 2]),
    case("m16n8k8.row.col.f16.f16.f16.f16", F16, F16, F16, [2, 1, 2]),
    case("m16n8k16.row.col.f32.bf16.bf16.f32", BF16, BF16, F32, [4, 2, 4]),
    case("m16n8k8.row.col.f32.bf16.bf16.f32", BF16, BF16, F32, [2, 1, 4]),
    case("m16n8k8.row.col.f32.tf32.tf32.f32", TF32, TF32, F32, [4, 2, 4]),
    case("m16n8k4.row.col.f32.tf32.tf32.f32", TF32, TF32, F32, [2, 1, 4]),
    case("m16n8k32.row.col.f32.e4m3.e4m3.f32", E4M3, E4M3, F32, [4, 2, 4]),
    case("m16n8k32.row.col.f32.e5m2.e5m2.f32", E5M2, E5M2, F32, [4, 2, 4]),
    case("m16n8k32.row.col.f32.e4m3.e5m2.f32", E4M3, E5M2, F32, [4, 2, 4]),
    case("m16n8k32.row.col.s32.s8.u8.s32", INT, INT, INT, [4, 2, 4]),
    case(
        "m16n8k32.row.col.satfinite.s32.s8.s8.s32",
        INT,
        INT,
        INT,
        [4, 2, 4],
    ),
    case("m16n8k16.row.col.s32.u8.s8.s32", INT, INT, INT, [2, 1, 4]),
    case("m8n8k16.row.col.s32.s8.s8.s32", INT, INT, INT, [1, 1, 2]),
    case("m16n8k64.row.col.s32.s4.u4.s32", INT, INT, INT, [4, 2, 4]),
    case("m16n8k32.row.col.s32.s4.s4.s32", INT, INT, INT, [2, 1, 4]),
    case("m8n8k4.row.col.f64.f64.f64.f64", F64, F64, F64, [1, 1, 2]),
    case("m16n8k8.row.col.f64.f64.f64.f64", F64, F64, F64, [4, 2, 4]),
    case("m16n8k16.row.col.f64.f64.f64.f64", F64, F64, F64, [8, 4, 4]),
];

/// Tiles that are run on a GPU: 128 elements of a sum each, or 64.
const MANY: u32 = 8192;

#[test]
fn modules_are_assembled() {
    let Some(ptxas) = Ptxas::find() else { return };
    for case in &CASES {
        let assembled = ptxas.assemble_module(&case.module());
        assembled.unwrap_or_else(|error| panic!("{}: {error}", case.name));
    }
}

impl Case {
    /// A module with the instruction in a kernel, a tile a work-group.
    fn module(&self) -> String {
        let [a, b, c] = self.registers;
        let operands = [
            ('a', a, self.a, true),
            ('b', b, self.b, true),
            ('c', c, self.c, false),
        ];
        let mut text = String::from(
            ".version 8.7\n.target sm_90\n.address_size 64\n.visible .entry product(.param .u64 product_a, .param .u64 product_b, \
             .param .u64 product_c, .param .u64 product_d)\n{\n.reg .b32 %r<8>;\n.reg .b64 %rd<16>;\n",
        );
        let mut line = |arguments: std::fmt::Arguments<'_>| writeln!(text, "{arguments}").expect("a string");
        for (letter, count, format, is_factor) in operands.into_iter().chain([('d', c, self.c, false)]) {
            line(format_args!(
                ".reg .{} %{letter}<{count}>;",
                format.register(is_factor)
            ));
        }
        line(format_args!(
            "mov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %tid.x;\nmad.lo.s32 %r3, %r1, 32, %r2;"
        ));
        let list = |letter: char, count: usize| {
            let names: Vec<String> = (0..count).map(|number| format!("%{letter}{number}")).collect();
            names.join(", ")
        };
        for (number, (letter, count, format, is_factor)) in operands.into_iter().enumerate() {
            let (ty, size) = (format.register(is_factor), if format.is_wide() { 8 } else { 4 });
            line(format_args!(
                "ld.param.u64 %rd{number}, [product_{letter}];\ncvta.to.global.u64 %rd{number}, %rd{number};\nmul.wide.s32 %rd9, %r3, {};\nadd.s64 %rd10, %rd{number}, %rd9;",
                count * size
            ));
            for register in 0..count {
                line(format_args!(
                    "ld.global.{ty} %{letter}{register}, [%rd10+{}];",
                    register * size
                ));
            }
        }
        line(format_args!(
            "mma.sync.aligned.{} {{{}}}, {{{}}}, {{{}}}, {{{}}};",
            self.name,
            list('d', c),
            list('a', a),
            list('b', b),
            list('c', c)
        ));
        let (ty, size) = (self.c.register(false), if self.c.is_wide() { 8 } else { 4 });
        line(format_args!(
            "ld.param.u64 %rd8, [product_d];\ncvta.to.global.u64 %rd8, %rd8;\nmul.wide.s32 %rd9, %r3, {};\nadd.s64 %rd10, %rd8, %rd9;",
            c * size
        ));
        for register in 0..c {
            line(format_args!(
                "st.global.{ty} [%rd10+{}], %d{register};",
                register * size
            ));
        }
        line(format_args!("ret;\n}}"));
        text
    }

    /// Bytes of a tile's registers of A, B and C.
    fn bytes(&self) -> [usize; 3] {
        let registers = [self.a, self.b, self.c].into_iter().zip(self.registers);
        let bytes: Vec<usize> = registers
            .map(|(format, count)| 32 * count * if format.is_wide() { 8 } else { 4 })
            .collect();
        [bytes[0], bytes[1], bytes[2]]
    }

    /// Random operands for this many tiles.
    fn operands(&self, tiles: u32) -> [Vec<u8>; 3] {
        let mut number = 0;
        let roles = [(self.a, Role::Left), (self.b, Role::Right), (self.c, Role::Sum)];
        roles.map(|(format, role)| {
            let count = self.registers[number];
            number += 1;
            let mut random = Random::new(number as u64);
            let size = if format.is_wide() { 8 } else { 4 };
            let mut bytes = Vec::new();
            for tile in 0..u64::from(tiles) {
                for _ in 0..32 * count {
                    let register = format.register_bits(&mut random, tile, role);
                    bytes.extend_from_slice(&register.to_le_bytes()[..size]);
                }
            }
            bytes
        })
    }

    fn workload(&self, operands: &[Vec<u8>; 3]) -> headstart::Result<Workload> {
        let imported =
            Module::new(&self.module(), "product.ptx")?.import_alone("product", &Facts::default())?;
        let tiles = operands[0].len() / self.bytes()[0];
        let mut workload = Workload::new(Arc::new(imported.kernel), tiles as u32, 32);
        let formats = [self.a, self.b, self.c, self.c];
        for (number, (name, format)) in ["a", "b", "c", "d"].into_iter().zip(formats).enumerate() {
            let (element, size) = match format.is_wide() {
                true => (Type::I64, 8),
                false => (Type::I32, 4),
            };
            let length = (tiles * self.bytes()[number.min(2)] / size) as u64;
            let given = match operands.get(number) {
                Some(bytes) => ArgumentSpec::input(element, length, Fill::Bytes(bytes.as_slice().into())),
                None => ArgumentSpec::Output {
                    element,
                    length,
                    fill: Fill::Pattern(Pattern::Constant(0)),
                    compare: Compare::Bits,
                },
            };
            workload = workload.with(name, given)?;
        }
        Ok(workload)
    }

    /// What the functional engine computes.
    fn simulated(&self, operands: &[Vec<u8>; 3]) -> Vec<u8> {
        let outputs = self
            .workload(operands)
            .and_then(|workload| run(&workload, &workload.kernel, functional::Options::CHECKING));
        let mut outputs = outputs.unwrap_or_else(|error| panic!("{}: {error}", self.name));
        outputs.pop().expect("an output").1
    }

    /// The first register that differs, and how many do.
    fn difference(&self, expected: &[u8], found: &[u8]) -> Option<String> {
        let size = if self.c.is_wide() { 8 } else { 4 };
        let registers = expected.chunks(size).zip(found.chunks(size)).enumerate();
        let differ: Vec<_> = registers
            .filter(|(_, (expected, found))| expected != found)
            .collect();
        let (at, (expected, found)) = differ.first()?;
        Some(format!(
            "{}: {} registers differ; number {at} is {expected:02x?} here and {found:02x?} on the GPU",
            self.name,
            differ.len()
        ))
    }
}

#[test]
fn tiles_of_an_h100_are_its_own() {
    let path = std::env::var("HEADSTART_TILES").unwrap_or_else(|_| "tests/tensor_cores/tiles.bin".into());
    let bytes = fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let of_a_tile = |case: &Case| {
        let [a, b, c] = case.bytes();
        a + b + 2 * c
    };
    let tiles = bytes.len() / CASES.iter().map(of_a_tile).sum::<usize>();
    assert!(tiles >= 4, "{path}: {} bytes", bytes.len());
    let mut rest = bytes.as_slice();
    let mut take = |count: usize| {
        let (taken, behind) = rest.split_at(count * tiles);
        rest = behind;
        taken.to_vec()
    };
    let mut wrong = Vec::new();
    for case in &CASES {
        let operands = case.bytes().map(&mut take);
        let found = take(case.bytes()[2]);
        wrong.extend(case.difference(&case.simulated(&operands), &found));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_element_is_that_of_the_gpu() {
    let gpu = match CudaDevice::open(0) {
        Ok(gpu) => gpu,
        Err(error) => {
            eprintln!("skipped: {error}");
            return;
        }
    };
    let mut wrong = Vec::new();
    for case in &CASES {
        let operands = case.operands(MANY);
        let workload = case.workload(&operands);
        let found = workload.and_then(|workload| run_text(&gpu, &workload, &case.module(), "product"));
        match found {
            Ok(mut found) => {
                let found = found.pop().expect("an output");
                wrong.extend(case.difference(&case.simulated(&operands), &found));
            }
            Err(error) => wrong.push(format!("{}: {error}", case.name)),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
