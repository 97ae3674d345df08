//! Conversions (`cvt`) to and from floats of 8 bits, and to `tf32`: all codes, and singles and halves of every kind.
//!
//! Expected results are searched among the values of the format, by distance. With a GPU its results are compared, too.

use std::sync::Arc;

use half::f16;
use headstart::device::cuda::device::CudaDevice;
use headstart::device::sim::functional;
use headstart::device::{Fill, Pattern};
use headstart::front::ptx::{Facts, Module};
use headstart::ir::Type;
use headstart::tune::{ArgumentSpec, Compare, Workload};
use headstart_testing::ptxas::Ptxas;
use headstart_testing::{Random, run, run_text};

/// A format of 8 bits.
#[derive(Clone, Copy)]
struct Eight {
    fraction: u32,
    bias: i32,
    /// The code of the greatest number, and whether the next one is infinity.
    greatest: u8,
    has_infinity: bool,
}

const E4M3: Eight = Eight {
    fraction: 3,
    bias: 7,
    greatest: 0x7e,
    has_infinity: false,
};
const E5M2: Eight = Eight {
    fraction: 2,
    bias: 15,
    greatest: 0x7b,
    has_infinity: true,
};

impl Eight {
    /// The value of a code.
    fn value(self, code: u8) -> f64 {
        let sign = if code & 0x80 == 0 { 1.0 } else { -1.0 };
        let size = code & 0x7f;
        if size > self.greatest {
            let is_infinite = self.has_infinity && size == self.greatest + 1;
            return if is_infinite {
                sign * f64::INFINITY
            } else {
                f64::NAN
            };
        }
        let (exponent, rest) = (
            i32::from(size >> self.fraction),
            size & ((1 << self.fraction) - 1),
        );
        let significand = f64::from(rest) / f64::from(1 << self.fraction) + f64::from(exponent.min(1));
        sign * significand * f64::powi(2.0, exponent.max(1) - self.bias)
    }

    /// The code nearest to a value.
    fn code(self, value: f64, relu: bool) -> u32 {
        if value.is_nan() {
            return 0x7f;
        }
        if value.is_sign_negative() && relu {
            return 0;
        }
        let size = value.abs().min(self.value(self.greatest));
        let distance = |code: &u8| (self.value(*code) - size).abs();
        let codes = (0..=self.greatest).min_by(|one, other| {
            let both = distance(one).total_cmp(&distance(other));
            both.then((one & 1).cmp(&(other & 1)))
        });
        u32::from(codes.expect("a code")) | u32::from(value.is_sign_negative()) << 7
    }

    /// The half that a code stands for.
    fn half(self, code: u8, relu: bool) -> u32 {
        let value = self.value(code);
        match value {
            _ if value.is_nan() => 0x7fff,
            _ if value.is_sign_negative() && relu => 0,
            _ => u32::from(f16::from_f64(value).to_bits()),
        }
    }
}

/// The `tf32` near a single: a fraction of 10 bits.
fn tf32(single: f32, round: fn(f64) -> f64, relu: bool, finite: bool) -> u32 {
    if single.is_nan() {
        return 0x7fff_e000;
    }
    if single.is_sign_negative() && relu {
        return 0;
    }
    let exponent = (single.to_bits() >> 23 & 0xff) as i32;
    let unit = f64::powi(2.0, exponent.max(1) - 127 - 10);
    let rounded = match single.is_infinite() {
        true => single,
        false => (round(f64::from(single) / unit) * unit) as f32,
    };
    let greatest = f32::from_bits(0x7f7f_e000);
    match finite {
        true => rounded.clamp(-greatest, greatest).to_bits(),
        false => rounded.to_bits(),
    }
}

/// The same with ties away from zero, as ptxas writes it for sm_90: a NaN's last bits are cut off, and `.satfinite` takes one
/// from the last place of what is left.
fn tf32_away(bits: u32, finite: bool) -> u32 {
    match f32::from_bits(bits) {
        single if single.is_nan() => (bits & 0xffff_e000) - if finite { 0x2000 } else { 0 },
        single => tf32(single, f64::round, false, finite),
    }
}

/// What a conversion takes.
#[derive(Clone, Copy, PartialEq)]
enum From {
    Singles,
    Halves,
    Codes,
    Single,
}

/// A conversion: its modifiers and its result of two registers.
struct Case {
    name: &'static str,
    from: From,
    of: fn(u32, u32) -> u32,
}

fn of_singles(eight: Eight, relu: bool, upper: u32, lower: u32) -> u32 {
    let code = |bits: u32| eight.code(f64::from(f32::from_bits(bits)), relu);
    code(upper) << 8 | code(lower)
}

fn of_halves(eight: Eight, relu: bool, pair: u32) -> u32 {
    let code = |bits: u32| eight.code(f16::from_bits(bits as u16).to_f64(), relu);
    code(pair >> 16) << 8 | code(pair)
}

fn to_halves(eight: Eight, relu: bool, pair: u32) -> u32 {
    eight.half(pair as u8, relu) | eight.half((pair >> 8) as u8, relu) << 16
}

const fn case(name: &'static str, from: From, of: fn(u32, u32) -> u32) -> Case {
    Case { name, from, of }
}

const CASES: [Case; 18] = [
    case("rn.satfinite.e4m3x2.f32", From::Singles, |a, b| {
        of_singles(E4M3, false, a, b)
    }),
    case("rn.satfinite.relu.e4m3x2.f32", From::Singles, |a, b| {
        of_singles(E4M3, true, a, b)
    }),
    case("rn.satfinite.e5m2x2.f32", From::Singles, |a, b| {
        of_singles(E5M2, false, a, b)
    }),
    case("rn.satfinite.relu.e5m2x2.f32", From::Singles, |a, b| {
        of_singles(E5M2, true, a, b)
    }),
    case("rn.satfinite.e4m3x2.f16x2", From::Halves, |a, _| {
        of_halves(E4M3, false, a)
    }),
    case("rn.satfinite.relu.e4m3x2.f16x2", From::Halves, |a, _| {
        of_halves(E4M3, true, a)
    }),
    case("rn.satfinite.e5m2x2.f16x2", From::Halves, |a, _| {
        of_halves(E5M2, false, a)
    }),
    case("rn.satfinite.relu.e5m2x2.f16x2", From::Halves, |a, _| {
        of_halves(E5M2, true, a)
    }),
    case("rn.f16x2.e4m3x2", From::Codes, |a, _| to_halves(E4M3, false, a)),
    case("rn.relu.f16x2.e4m3x2", From::Codes, |a, _| {
        to_halves(E4M3, true, a)
    }),
    case("rn.f16x2.e5m2x2", From::Codes, |a, _| to_halves(E5M2, false, a)),
    case("rn.relu.f16x2.e5m2x2", From::Codes, |a, _| {
        to_halves(E5M2, true, a)
    }),
    case("rna.tf32.f32", From::Single, |a, _| tf32_away(a, false)),
    case("rna.satfinite.tf32.f32", From::Single, |a, _| tf32_away(a, true)),
    case("rn.tf32.f32", From::Single, |a, _| {
        tf32(f32::from_bits(a), f64::round_ties_even, false, false)
    }),
    case("rn.relu.tf32.f32", From::Single, |a, _| {
        tf32(f32::from_bits(a), f64::round_ties_even, true, false)
    }),
    case("rz.tf32.f32", From::Single, |a, _| {
        tf32(f32::from_bits(a), f64::trunc, false, false)
    }),
    case("rz.relu.tf32.f32", From::Single, |a, _| {
        tf32(f32::from_bits(a), f64::trunc, true, false)
    }),
];

impl Case {
    fn module(&self) -> String {
        let (registers, load) = match self.from {
            From::Singles => (
                "%h0, %f0, %f1",
                "ld.global.f32 %f0, [%a]; ld.global.f32 %f1, [%b];",
            ),
            From::Halves => ("%h0, %r0", "ld.global.b32 %r0, [%a];"),
            From::Codes => ("%r1, %h1", "ld.global.b32 %r0, [%a]; cvt.u16.u32 %h1, %r0;"),
            From::Single => ("%r1, %f0", "ld.global.f32 %f0, [%a];"),
        };
        let widen = match self.from {
            From::Singles | From::Halves => "cvt.u32.u16 %r1, %h0;",
            From::Codes | From::Single => "",
        };
        format!(
            ".version 8.7\n.target sm_90\n.address_size 64\n\
             .visible .entry k(.param .u64 k_0, .param .u64 k_1, .param .u64 k_2)\n{{\n\
             .reg .b64 %a, %b, %d, %o; .reg .b32 %r<4>; .reg .b16 %h<2>; .reg .f32 %f<2>;\n\
             ld.param.u64 %a, [k_0]; ld.param.u64 %b, [k_1]; ld.param.u64 %d, [k_2];\n\
             mov.u32 %r2, %ctaid.x; mov.u32 %r3, %tid.x; mad.lo.u32 %r2, %r2, 128, %r3; mul.wide.u32 %o, %r2, 4;\n\
             add.s64 %a, %a, %o; add.s64 %b, %b, %o; add.s64 %d, %d, %o;\n\
             {load}\ncvt.{} {registers};\n{widen}\nst.global.b32 [%d], %r1;\nret;\n}}\n",
            self.name
        )
    }

    /// Operands: every half or code; singles with all halves among them, their neighbours, and any bits.
    fn operands(&self) -> [Vec<u32>; 2] {
        let mut random = Random::new(32);
        if matches!(self.from, From::Halves | From::Codes) {
            let all = (0..1u32 << 16)
                .map(|bits| (random.bits() as u32) << 16 | bits)
                .collect();
            let only = (0..1u32 << 16).collect();
            return [
                if self.from == From::Halves { all } else { only },
                vec![0; 1 << 16],
            ];
        }
        let mut singles = vec![
            0x7f80_0001,
            0xffc0_0000,
            0x7f7f_ffff,
            0xff7f_efff,
            0x7f7f_f000,
            0x0080_0000,
            1,
            0x8000_0001,
        ];
        for bits in 0..=u16::MAX {
            let single = f16::from_bits(bits).to_f32().to_bits();
            singles.extend([single, single.wrapping_add(1), single.wrapping_sub(1)]);
        }
        singles.extend((0..1 << 16).map(|_| random.bits() as u32));
        singles.truncate(singles.len() / 128 * 128);
        let others = (0..singles.len()).map(|_| *random.choose(&singles)).collect();
        [singles, others]
    }

    fn workload(&self, operands: &[Vec<u32>; 2]) -> headstart::Result<Workload> {
        let text = self.module();
        let module = Module::new(&text, "convert.ptx")?;
        let kernel = module.import_alone("k", &Facts::default())?.kernel;
        let count = operands[0].len() as u64;
        let mut workload = Workload::new(Arc::new(kernel), (count / 128) as u32, 128);
        for (name, words) in ["k_0", "k_1"].into_iter().zip(operands) {
            // A parameter that is not used is a number.
            if name == "k_1" && self.from != From::Singles {
                workload = workload.with(name, ArgumentSpec::Scalar(Type::I64, 0))?;
                continue;
            }
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            let fill = Fill::Bytes(bytes.into());
            workload = workload.with(name, ArgumentSpec::input(Type::I32, count, fill))?;
        }
        let fill = Fill::Pattern(Pattern::Constant(0));
        workload.with("k_2", ArgumentSpec::output(Type::I32, count, fill, Compare::Bits))
    }

    /// How many results differ from what is expected, and the first.
    fn difference(&self, operands: &[Vec<u32>; 2], found: &[u8]) -> Option<String> {
        let found = found
            .chunks_exact(4)
            .map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
        let given = operands[0].iter().zip(&operands[1]);
        let differ: Vec<_> = given
            .zip(found)
            .map(|((&a, &b), found)| (a, b, (self.of)(a, b), found))
            .filter(|(_, _, expected, found)| expected != found)
            .collect();
        let (a, b, expected, first) = differ.first()?;
        Some(format!(
            "cvt.{} of {a:#x}, {b:#x} is {first:#x} in place of {expected:#x}; {} differ",
            self.name,
            differ.len()
        ))
    }
}

#[test]
fn conversions_give_the_nearest_number() {
    let mut wrong = Vec::new();
    for case in &CASES {
        let operands = case.operands();
        let outputs = case
            .workload(&operands)
            .and_then(|workload| run(&workload, &workload.kernel, functional::Options::CHECKING));
        let mut outputs = outputs.unwrap_or_else(|error| panic!("{}: {error}", case.name));
        let (_, found) = outputs.pop().expect("an output");
        wrong.extend(case.difference(&operands, &found));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn modules_are_assembled() {
    let Some(ptxas) = Ptxas::find() else { return };
    for case in &CASES {
        let assembled = ptxas.assemble_module(&case.module());
        assembled.unwrap_or_else(|error| panic!("{}: {error}", case.name));
    }
}

#[test]
fn a_gpu_gives_the_same() {
    let gpu = match CudaDevice::open(0) {
        Ok(gpu) => gpu,
        Err(error) => {
            eprintln!("skipped: {error}");
            return;
        }
    };
    let mut wrong = Vec::new();
    for case in &CASES {
        let operands = case.operands();
        let workload = case.workload(&operands);
        let found = workload.and_then(|workload| run_text(&gpu, &workload, &case.module(), "k"));
        match found {
            Ok(mut found) => wrong.extend(case.difference(&operands, &found.pop().expect("an output"))),
            Err(error) => wrong.push(format!("cvt.{}: {error}", case.name)),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
