//! Products of warp groups (`wgmma`): the functional engine's results are an H200's, to the bit.
//!
//! A work-group of four sub-groups puts an image of random elements into shared memory, of which descriptors of every kind read
//! the factors, or has the left one in registers. Tiles are those of [`Format::register_bits`]. `warp_groups.txt` has a digest of each case's results on an H200 (driver 580.159, 2026-11-27). With a GPU half a
//! million elements of each case are compared with it, which are several millions of each type; `HEADSTART_BLESS` then writes
//! the digests anew, into the folder that it names.

use std::collections::BTreeMap;
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

use super::formats::*;

/// A factor in shared memory, as a descriptor names it.
#[derive(Clone, Copy)]
struct Placed {
    start: u64,
    leading: u64,
    stride: u64,
    /// 0 none, 1 128 bytes, 2 64, 3 32.
    swizzle: u64,
    base: u64,
    /// Whether elements of one `k` lie side by side.
    across: bool,
    /// Bytes of the image up to its end.
    end: u64,
}

const fn placed(start: u64, leading: u64, stride: u64, swizzle: u64, across: bool, end: u64) -> Placed {
    Placed {
        start,
        leading,
        stride,
        swizzle,
        base: 0,
        across,
        end,
    }
}

/// A of 64 rows, and B of `n` columns behind it, in blocks of eight without swizzling.
const LEFT: Placed = placed(0, 128, 256, 0, false, 2048);

const fn right(n: u64) -> Placed {
    placed(2048, 128, 256, 0, false, 2048 + n * 32)
}

/// A product.
struct Case {
    name: &'static str,
    a: Format,
    b: Format,
    c: Format,
    /// Where A lies; in registers if nowhere.
    left: Option<Placed>,
    right: Placed,
    negates: [bool; 2],
    /// A second product with the same factors follows, which is waited for later.
    twice: bool,
}

const fn case(name: &'static str, a: Format, b: Format, c: Format, n: u64) -> Case {
    Case {
        name,
        a,
        b,
        c,
        left: Some(LEFT),
        right: right(n),
        negates: [false; 2],
        twice: false,
    }
}

const fn in_registers(name: &'static str, a: Format, c: Format, n: u64) -> Case {
    Case {
        left: None,
        ..case(name, a, a, c, n)
    }
}

const fn halves(name: &'static str, left: Placed, right: Placed) -> Case {
    Case {
        left: Some(left),
        right,
        ..case(name, F16, F16, F32, 8)
    }
}

const CASES: [Case; 38] = [
    case("m64n8k16.f32.f16.f16", F16, F16, F32, 8),
    case("m64n8k16.f16.f16.f16", F16, F16, F16, 8),
    case("m64n8k16.f32.bf16.bf16", BF16, BF16, F32, 8),
    case("m64n8k8.f32.tf32.tf32", TF32, TF32, F32, 8),
    case("m64n8k32.f32.e4m3.e4m3", E4M3, E4M3, F32, 8),
    case("m64n8k32.f32.e5m2.e5m2", E5M2, E5M2, F32, 8),
    case("m64n8k32.f32.e4m3.e5m2", E4M3, E5M2, F32, 8),
    case("m64n8k32.f32.e5m2.e4m3", E5M2, E4M3, F32, 8),
    case("m64n8k32.f16.e4m3.e4m3", E4M3, E4M3, F16, 8),
    case("m64n8k32.f16.e5m2.e5m2", E5M2, E5M2, F16, 8),
    case("m64n8k32.f16.e5m2.e4m3", E5M2, E4M3, F16, 8),
    case("m64n8k32.s32.s8.s8", INT, INT, INT, 8),
    case("m64n8k32.s32.s8.u8", INT, INT, INT, 8),
    case("m64n8k32.s32.u8.s8", INT, INT, INT, 8),
    case("m64n8k32.satfinite.s32.u8.u8", INT, INT, INT, 8),
    case("m64n8k256.s32.b1.b1.and.popc", INT, INT, INT, 8),
    in_registers("m64n16k16.f32.f16.f16", F16, F32, 16),
    in_registers("m64n24k16.f32.bf16.bf16", BF16, F32, 24),
    in_registers("m64n8k8.f32.tf32.tf32", TF32, F32, 8),
    in_registers("m64n32k32.f32.e4m3.e4m3", E4M3, F32, 32),
    in_registers("m64n8k32.satfinite.s32.s8.s8", INT, INT, 8),
    in_registers("m64n8k256.s32.b1.b1.and.popc", INT, INT, 8),
    // Along `k`, swizzled.
    halves(
        "m64n128k16.f32.f16.f16",
        placed(0, 16, 1024, 1, false, 8192),
        placed(8192, 16, 1024, 1, false, 24576),
    ),
    halves(
        "m64n64k16.f32.f16.f16",
        placed(32, 16, 512, 2, false, 4096),
        placed(4096 + 32, 16, 512, 2, false, 8192),
    ),
    halves(
        "m64n40k16.f32.f16.f16",
        placed(0, 16, 256, 3, false, 2048),
        placed(2048, 16, 256, 3, false, 3328),
    ),
    halves(
        "m64n256k16.f32.f16.f16",
        placed(96, 16, 1024, 1, false, 8192),
        placed(8192 + 64, 16, 1024, 1, false, 40960),
    ),
    // Across, swizzled: several blocks beside each other.
    halves(
        "m64n256k16.f32.f16.f16",
        placed(0, 4096, 1024, 1, true, 2048),
        placed(2048, 2048, 1024, 1, true, 10240),
    ),
    halves(
        "m64n96k16.f32.f16.f16",
        placed(0, 1024, 512, 2, true, 2048),
        placed(2048, 512, 1536, 2, true, 5120),
    ),
    halves(
        "m64n48k16.f32.f16.f16",
        placed(0, 512, 256, 3, true, 2048),
        placed(2048, 256, 768, 3, true, 3584),
    ),
    halves(
        "m64n64k16.f32.f16.f16",
        placed(0, 1024, 128, 0, true, 2048),
        placed(2048, 1024, 128, 0, true, 4096),
    ),
    // A pattern that begins in the middle.
    halves(
        "m64n16k16.f32.f16.f16",
        Placed {
            base: 3,
            ..placed(384, 16, 1024, 1, false, 9216)
        },
        Placed {
            base: 5,
            ..placed(9216 + 640, 16, 1024, 1, false, 12288)
        },
    ),
    // Other types, swizzled.
    Case {
        left: Some(placed(32, 16, 1024, 1, false, 8192)),
        right: placed(8192, 16, 512, 2, false, 12288),
        ..case("m64n64k8.f32.tf32.tf32", TF32, TF32, F32, 8)
    },
    Case {
        left: Some(placed(64, 16, 1024, 1, false, 8192)),
        right: placed(8192, 16, 256, 3, false, 10240),
        ..case("m64n64k32.s32.s8.s8", INT, INT, INT, 8)
    },
    Case {
        left: Some(placed(0, 16, 512, 2, false, 4096)),
        right: placed(4096 + 96, 16, 1024, 1, false, 20480),
        ..case("m64n128k32.f32.e4m3.e4m3", E4M3, E4M3, F32, 8)
    },
    Case {
        left: Some(placed(0, 1024, 512, 2, true, 2048)),
        right: placed(2048, 1024, 512, 2, true, 4096),
        ..case("m64n64k16.f32.bf16.bf16", BF16, BF16, F32, 8)
    },
    Case {
        negates: [true, false],
        ..case("m64n8k16.f32.f16.f16", F16, F16, F32, 8)
    },
    Case {
        negates: [true, true],
        ..in_registers("m64n8k32.f32.e5m2.e5m2", E5M2, F32, 8)
    },
    Case {
        negates: [false, true],
        twice: true,
        ..in_registers("m64n32k16.f16.f16.f16", F16, F16, 32)
    },
];

/// Elements of a case's sums that are compared with a GPU's, and that the digest is of.
const MANY: usize = 1 << 19;
const FEW: usize = 1 << 14;

impl Case {
    fn columns(&self) -> usize {
        let behind = self.name.split_once('n').expect("m64nNkK").1;
        behind
            .split_once('k')
            .expect("m64nNkK")
            .0
            .parse()
            .expect("a number")
    }

    /// How it differs from the others.
    fn key(&self) -> String {
        let of = |placed: Placed| {
            format!(
                "{}/{}{}",
                placed.start,
                placed.swizzle,
                if placed.across { "t" } else { "" }
            )
        };
        let left = self.left.map_or("registers".to_owned(), of);
        let minus = self.negates.map(|negates| if negates { "-" } else { "+" });
        format!("{} {left} {} {}{}", self.name, of(self.right), minus[0], minus[1])
    }

    /// Registers of a work-item: of A, if it lies there, and of the sum.
    fn registers(&self) -> [usize; 2] {
        let sums = self.columns() / 2;
        [
            if self.left.is_none() { 4 } else { 0 },
            if self.c == F16 { sums / 2 } else { sums },
        ]
    }

    fn tiles(&self, elements: usize) -> usize {
        elements.div_ceil(64 * self.columns())
    }

    /// A module with the product in a kernel, a tile a work-group.
    fn module(&self) -> String {
        let [a, c] = self.registers();
        let image = self.right.end;
        let ty = self.c.register(false);
        let list = |letter: char, count: usize| {
            let names: Vec<String> = (0..count).map(|number| format!("%{letter}{number}")).collect();
            names.join(", ")
        };
        let mut text = String::new();
        let mut line = |arguments: std::fmt::Arguments<'_>| writeln!(text, "{arguments}").expect("a string");
        line(format_args!(
            ".version 8.7\n.target sm_90a\n.address_size 64\n.visible .entry product(.param .u64 product_image, .param .u64 product_a, \
             .param .u64 product_c, .param .u64 product_d)\n{{\n.reg .b32 %r<16>;\n.reg .b64 %rd<16>;\n.reg .pred %p<4>;\n\
             .reg .b32 %a<4>;\n.reg .{ty} %d<{c}>;\n.shared .align 1024 .b8 image[{image}];"
        ));
        line(format_args!(
            "ld.param.u64 %rd0, [product_image];\ncvta.to.global.u64 %rd0, %rd0;\nmov.u32 %r0, %tid.x;\nmov.u32 %r1, %ctaid.x;\n\
             mul.wide.u32 %rd1, %r1, {image};\nadd.s64 %rd0, %rd0, %rd1;\nmov.u32 %r2, image;\nshl.b32 %r3, %r0, 4;"
        ));
        // The image in pieces of 16 bytes.
        line(format_args!(
            "$copy:\nsetp.ge.u32 %p0, %r3, {image};\n@%p0 bra $copied;\ncvt.u64.u32 %rd2, %r3;\nadd.s64 %rd3, %rd0, %rd2;\n\
             ld.global.v4.b32 {{%r4, %r5, %r6, %r7}}, [%rd3];\nadd.s32 %r8, %r2, %r3;\nst.shared.v4.b32 [%r8], {{%r4, %r5, %r6, %r7}};\n\
             add.s32 %r3, %r3, 2048;\nbra $copy;\n$copied:\nshl.b32 %r9, %r1, 7;\nadd.s32 %r9, %r9, %r0;"
        ));
        for (number, (letter, count, ty)) in [('a', a, "b32"), ('c', c, ty), ('d', c, ty)]
            .into_iter()
            .enumerate()
        {
            let (at, name) = (4 + number, if letter == 'a' { 'a' } else { 'd' });
            line(format_args!(
                "ld.param.u64 %rd{at}, [product_{letter}];\ncvta.to.global.u64 %rd{at}, %rd{at};\nmul.wide.u32 %rd7, %r9, {};\nadd.s64 %rd{at}, %rd{at}, %rd7;",
                4 * count
            ));
            for register in 0..if letter == 'd' { 0 } else { count } {
                line(format_args!(
                    "ld.global.{ty} %{name}{register}, [%rd{at}+{}];",
                    4 * register
                ));
            }
        }
        let fields = |placed: Placed| {
            placed.leading >> 4 << 16 | placed.stride >> 4 << 32 | placed.base << 49 | placed.swizzle << 62
        };
        let left = self.left.unwrap_or(LEFT);
        for (number, placed) in [(8, left), (9, self.right)] {
            line(format_args!(
                "add.s32 %r10, %r2, {};\ncvt.u64.u32 %rd10, %r10;\nshr.u64 %rd10, %rd10, 4;\nand.b64 %rd10, %rd10, 16383;\n\
                 or.b64 %rd{number}, %rd10, {};",
                placed.start,
                fields(placed) as i64
            ));
        }
        // Every fourth tile is without its accumulators.
        line(format_args!(
            "and.b32 %r11, %r1, 3;\nsetp.ne.u32 %p1, %r11, 3;\nsetp.eq.u32 %p2, %r0, %r0;\nfence.proxy.async;\nbar.sync 0;\nwgmma.fence.sync.aligned;"
        ));
        let a_operand = match self.left {
            Some(_) => "%rd8".to_owned(),
            None => format!("{{{}}}", list('a', 4)),
        };
        let minus = self.negates.map(|negates| if negates { -1 } else { 1 });
        let mut constants = String::new();
        if self.a != INT {
            constants = format!(", {}, {}", minus[0], minus[1]);
        }
        if self.a.bits() == 16 {
            if let Some(left) = self.left {
                constants += &format!(", {}", u8::from(left.across));
            }
            constants += &format!(", {}", u8::from(self.right.across));
        }
        for (predicate, _) in [("%p1", true), ("%p2", self.twice)]
            .iter()
            .filter(|(_, runs)| *runs)
        {
            line(format_args!(
                "wgmma.mma_async.sync.aligned.{} {{{}}}, {a_operand}, %rd9, {predicate}{constants};\nwgmma.commit_group.sync.aligned;",
                self.name,
                list('d', c)
            ));
        }
        line(format_args!("wgmma.wait_group.sync.aligned 0;"));
        for register in 0..c {
            line(format_args!(
                "st.global.{ty} [%rd6+{}], %d{register};",
                4 * register
            ));
        }
        line(format_args!("ret;\n}}"));
        text
    }

    /// Random images, and registers of A and the sum.
    fn operands(&self, tiles: usize) -> [Vec<u8>; 3] {
        let [a, c] = self.registers();
        let mut random = Random::new(11);
        let mut operands = [const { Vec::new() }; 3];
        let boundary = self.left.map_or(0, |left| left.end);
        for tile in 0..tiles as u64 {
            let mut put = |to: usize, format: Format, role: Role| {
                let bits = format.register_bits(&mut random, tile, role);
                operands[to].extend_from_slice(&(bits as u32).to_le_bytes());
            };
            for word in 0..self.right.end / 4 {
                match word * 4 < boundary {
                    true => put(0, self.a, Role::Left),
                    false => put(0, self.b, Role::Right),
                }
            }
            (0..128 * a).for_each(|_| put(1, self.a, Role::Left));
            (0..128 * c).for_each(|_| put(2, self.c, Role::Sum));
        }
        operands
    }

    fn workload(&self, operands: &[Vec<u8>; 3]) -> headstart::Result<Workload> {
        let imported =
            Module::new(&self.module(), "product.ptx")?.import_alone("product", &Facts::default())?;
        let tiles = operands[0].len() as u64 / self.right.end;
        let mut workload = Workload::new(Arc::new(imported.kernel), tiles as u32, 128);
        for (name, bytes) in ["image", "a", "c"].into_iter().zip(operands) {
            // Nothing tells what is not read.
            let element = if bytes.is_empty() { Type::I8 } else { Type::I32 };
            let given = ArgumentSpec::Input {
                element,
                length: (bytes.len() as u64 / 4).max(1),
                fill: match bytes.is_empty() {
                    true => Fill::Pattern(Pattern::Constant(0)),
                    false => Fill::Bytes(bytes.as_slice().into()),
                },
            };
            workload = workload.with(name, given)?;
        }
        let given = ArgumentSpec::Output {
            element: Type::I32,
            length: operands[2].len() as u64 / 4,
            fill: Fill::Pattern(Pattern::Constant(0)),
            compare: Compare::Bits,
        };
        workload.with("d", given)
    }

    /// What the functional engine computes.
    fn simulated(&self, operands: &[Vec<u8>; 3]) -> Vec<u8> {
        let outputs = self
            .workload(operands)
            .and_then(|workload| run(&workload, &workload.kernel, functional::Options::CHECKING));
        let mut outputs = outputs.unwrap_or_else(|error| panic!("{}: {error}", self.key()));
        outputs.pop().expect("an output").1
    }
}

/// FNV-1a.
fn digest(bytes: &[u8]) -> String {
    let fold = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    format!("{:016x}", bytes.iter().fold(0xcbf2_9ce4_8422_2325, fold))
}

#[test]
fn modules_of_warp_groups_are_assembled() {
    let Some(ptxas) = Ptxas::find() else { return };
    for case in &CASES {
        let assembled = ptxas.assemble_module(&case.module());
        assembled.unwrap_or_else(|error| panic!("{}: {error}", case.key()));
    }
}

#[test]
fn sums_of_warp_groups_are_an_h200s() {
    let known = fs::read_to_string("tests/tensor_cores/warp_groups.txt").expect("digests");
    let known: BTreeMap<&str, &str> = known.lines().filter_map(|line| line.rsplit_once(' ')).collect();
    let mut wrong = Vec::new();
    for case in &CASES {
        let found = digest(&case.simulated(&case.operands(case.tiles(FEW))));
        if known.get(case.key().as_str()) != Some(&found.as_str()) {
            wrong.push(format!("{} {found}", case.key()));
        }
    }
    assert!(wrong.is_empty(), "not those of an H200:\n{}", wrong.join("\n"));
    assert_eq!(known.len(), CASES.len(), "cases that are no more");
}

#[test]
fn every_sum_of_a_warp_group_is_that_of_the_gpu() {
    let gpu = match CudaDevice::open(0) {
        Ok(gpu) => gpu,
        Err(error) => {
            eprintln!("skipped: {error}");
            return;
        }
    };
    let (mut wrong, mut digests) = (Vec::new(), String::new());
    for case in &CASES {
        let on_gpu = |elements: usize| {
            let operands = case.operands(case.tiles(elements));
            let workload = case.workload(&operands);
            let found = workload.and_then(|workload| run_text(&gpu, &workload, &case.module(), "product"));
            found.map(|mut found| (operands, found.pop().expect("an output")))
        };
        match on_gpu(MANY).and_then(|all| Ok((all, on_gpu(FEW)?))) {
            Ok(((operands, found), (_, few))) => {
                let simulated = case.simulated(&operands);
                let pairs = simulated.chunks(4).zip(found.chunks(4)).enumerate();
                let differ: Vec<_> = pairs.filter(|(_, (here, there))| here != there).collect();
                if let Some((at, (here, there))) = differ.first() {
                    wrong.push(format!(
                        "{}: {} of {} registers differ; number {at} is {here:02x?} here and {there:02x?} on the GPU",
                        case.key(),
                        differ.len(),
                        found.len() / 4
                    ));
                }
                writeln!(digests, "{} {}", case.key(), digest(&few)).expect("a string");
            }
            Err(error) => wrong.push(format!("{}: {error}", case.key())),
        }
    }
    if let Some(folder) = std::env::var_os("HEADSTART_BLESS") {
        let file = std::path::Path::new(&folder).join("warp_groups.txt");
        fs::write(file, digests).expect("the digests are written");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
