//! Instructions on numbers: all triples of a table of numbers at the edges.

use super::{REGISTERS, output};

/// Numbers at which integer instructions differ.
const EDGES: [u32; 16] = [
    0,
    1,
    2,
    3,
    7,
    31,
    32,
    33,
    0x7fff_ffff,
    0x8000_0000,
    0x8000_0001,
    0xffff_fff0,
    0xffff_ffff,
    0x1234_5678,
    0xdead_beef,
    0x00ff_0180,
];

/// Bits of numbers at which floats differ.
const FLOATS: [u32; 16] = [
    0,
    0x8000_0000,
    0x3f80_0000,
    0xbfc0_0000,
    0x4020_0000,
    0x3f00_0000,
    0x7f80_0000,
    0xff80_0000,
    0x7fc0_0000,
    0x0001_16c2,
    0x7f7f_ffff,
    0x42c8_8000,
    0xbf40_0000,
    0x2edb_e6ff,
    0x4b80_0001,
    0xc0a0_0000,
];

/// What instructions make of three numbers of a table, in `%x`, `%y` and `%z`: `%d`, for all triples.
fn made(table: &[u32; 16], body: &str) -> Vec<u32> {
    let words: Vec<String> = table.iter().map(u32::to_string).collect();
    let text = format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n.global .align 4 .u32 table[16] = {{{}}};\n\
         .visible .entry k(.param .u64 k_param_0)\n{{\n{REGISTERS}\n\
         mov.u32 %i0, %ctaid.x;\nmov.u32 %i1, %ntid.x;\nmov.u32 %i2, %tid.x;\nmad.lo.s32 %i0, %i0, %i1, %i2;\n\
         mov.u64 %a0, table;\n\
         and.b32 %i1, %i0, 15;\nmul.wide.u32 %off, %i1, 4;\nadd.s64 %a1, %a0, %off;\nld.global.u32 %x, [%a1];\n\
         bfe.u32 %i1, %i0, 4, 4;\nmul.wide.u32 %off, %i1, 4;\nadd.s64 %a1, %a0, %off;\nld.global.u32 %y, [%a1];\n\
         bfe.u32 %i1, %i0, 8, 4;\nmul.wide.u32 %off, %i1, 4;\nadd.s64 %a1, %a0, %off;\nld.global.u32 %z, [%a1];\n\
         mov.b32 %f1, %x;\nmov.b32 %f2, %y;\nmov.b32 %f3, %z;\n{body}\n\
         ld.param.u64 %a2, [k_param_0];\ncvta.to.global.u64 %a2, %a2;\nmul.wide.u32 %off, %i0, 4;\nadd.s64 %a2, %a2, %off;\n\
         st.global.u32 [%a2], %d;\nret;\n}}\n",
        words.join(", ")
    );
    let launch = "groups = 64\ngroup = 64\n[parameters.param_0]\nlength = 4096\n";
    output(&text, launch)
}

fn triples(table: &[u32; 16]) -> impl Iterator<Item = (u32, u32, u32)> + '_ {
    (0..4096).map(|at| (table[at & 15], table[at >> 4 & 15], table[at >> 8]))
}

/// Checks instructions on integers.
pub(super) fn integer(body: &str, expected: impl Fn(u32, u32, u32) -> u32) {
    let made = made(&EDGES, body);
    for ((x, y, z), found) in triples(&EDGES).zip(made) {
        let expected = expected(x, y, z);
        assert_eq!(found, expected, "{body} of {x:#x}, {y:#x}, {z:#x}");
    }
}

/// Checks instructions on floats; the bits of a NaN do not matter.
fn float(body: &str, expected: impl Fn(f32, f32, f32) -> f32) {
    let body = format!("{body}\nmov.b32 %d, %f0;");
    let made = made(&FLOATS, &body);
    for ((x, y, z), found) in triples(&FLOATS).zip(made) {
        let expected = expected(f32::from_bits(x), f32::from_bits(y), f32::from_bits(z));
        let found = f32::from_bits(found);
        let same = found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan();
        assert!(
            same,
            "{body} of {x:#x}, {y:#x}, {z:#x}: {found:e}, not {expected:e}"
        );
    }
}

/// Checks a function of one float that the hardware approximates: to this part of the result, and where that is tiny to
/// this number.
fn approximate(body: &str, relative: f64, absolute: f64, expected: impl Fn(f64) -> f64) {
    let body = format!("{body}\nmov.b32 %d, %f0;");
    let made = made(&FLOATS, &body);
    for ((x, ..), found) in triples(&FLOATS).zip(made).take(16) {
        let x = f32::from_bits(x);
        let (expected, found) = (expected(f64::from(x)), f64::from(f32::from_bits(found)));
        // Subnormal results may be flushed, and what overflows is infinite.
        let near = (found - expected).abs() <= relative * expected.abs() + absolute;
        let same = expected.is_nan() && found.is_nan() || expected == found;
        let out = expected.abs() > f64::from(f32::MAX) && found.is_infinite();
        assert!(
            same || near || out,
            "{body} of {x:e}: {found:e}, not {expected:e}"
        );
    }
}

fn signed(x: u32) -> i64 {
    i64::from(x as i32)
}

#[test]
fn integer_arithmetic() {
    integer("add.s32 %d, %x, %y;", |x, y, _| x.wrapping_add(y));
    integer("sub.u32 %d, %x, %y;", |x, y, _| x.wrapping_sub(y));
    integer("mul.lo.s32 %d, %x, %y;", |x, y, _| x.wrapping_mul(y));
    integer("mul.hi.s32 %d, %x, %y;", |x, y, _| {
        ((signed(x) * signed(y)) >> 32) as u32
    });
    integer("mul.hi.u32 %d, %x, %y;", |x, y, _| {
        ((u64::from(x) * u64::from(y)) >> 32) as u32
    });
    integer(
        "mul.wide.s32 %wd, %x, %y; shr.u64 %wd, %wd, 16; cvt.u32.u64 %d, %wd;",
        |x, y, _| ((signed(x) * signed(y)) >> 16) as u32,
    );
    integer("mad.lo.u32 %d, %x, %y, %z;", |x, y, z| {
        x.wrapping_mul(y).wrapping_add(z)
    });
    integer("mad.hi.s32 %d, %x, %y, %z;", |x, y, z| {
        (((signed(x) * signed(y)) >> 32) as u32).wrapping_add(z)
    });
    integer(
        "cvt.u64.u32 %wz, %z; mad.wide.u32 %wd, %x, %y, %wz; cvt.u32.u64 %d, %wd;",
        |x, y, z| x.wrapping_mul(y).wrapping_add(z),
    );
    integer("add.sat.s32 %d, %x, %y;", |x, y, _| {
        (x as i32).saturating_add(y as i32) as u32
    });
    integer("sub.sat.s32 %d, %x, %y;", |x, y, _| {
        (x as i32).saturating_sub(y as i32) as u32
    });
    integer("neg.s32 %d, %x;", |x, _, _| x.wrapping_neg());
    integer("abs.s32 %d, %x;", |x, _, _| (x as i32).wrapping_abs() as u32);
    integer("min.s32 %d, %x, %y;", |x, y, _| (x as i32).min(y as i32) as u32);
    integer("max.s32 %d, %x, %y;", |x, y, _| (x as i32).max(y as i32) as u32);
    integer("min.u32 %d, %x, %y;", |x, y, _| x.min(y));
    integer("max.u32 %d, %x, %y;", |x, y, _| x.max(y));
    integer("sad.u32 %d, %x, %y, %z;", |x, y, z| x.abs_diff(y).wrapping_add(z));
    integer("sad.s32 %d, %x, %y, %z;", |x, y, z| {
        (x as i32).abs_diff(y as i32).wrapping_add(z)
    });
}

/// By zero PTX leaves open what comes out; here it is 0, and the rest the dividend.
#[test]
fn quotients() {
    integer("div.u32 %d, %x, %y;", |x, y, _| x.checked_div(y).unwrap_or(0));
    integer("rem.u32 %d, %x, %y;", |x, y, _| x.checked_rem(y).unwrap_or(x));
    integer("div.s32 %d, %x, %y;", |x, y, _| match y {
        0 => 0,
        y => (x as i32).wrapping_div(y as i32) as u32,
    });
    integer("rem.s32 %d, %x, %y;", |x, y, _| match y {
        0 => x,
        y => (x as i32).wrapping_rem(y as i32) as u32,
    });
}

#[test]
fn bits() {
    integer("and.b32 %d, %x, %y;", |x, y, _| x & y);
    integer("or.b32 %d, %x, %y;", |x, y, _| x | y);
    integer("xor.b32 %d, %x, %y;", |x, y, _| x ^ y);
    integer("not.b32 %d, %x;", |x, _, _| !x);
    integer("cnot.b32 %d, %x;", |x, _, _| u32::from(x == 0));
    integer("shl.b32 %d, %x, %y;", |x, y, _| x.checked_shl(y).unwrap_or(0));
    integer("shr.u32 %d, %x, %y;", |x, y, _| x.checked_shr(y).unwrap_or(0));
    integer("shr.s32 %d, %x, %y;", |x, y, _| (x as i32 >> y.min(31)) as u32);
    integer(
        "cvt.u64.u32 %wx, %x; shl.b64 %wd, %wx, %y; shr.u64 %wd, %wd, 32; cvt.u32.u64 %d, %wd;",
        |x, y, _| (u64::from(x).checked_shl(y).unwrap_or(0) >> 32) as u32,
    );
    integer("brev.b32 %d, %x;", |x, _, _| x.reverse_bits());
    integer("clz.b32 %d, %x;", |x, _, _| x.leading_zeros());
    integer("popc.b32 %d, %x;", |x, _, _| x.count_ones());
    integer("bfind.u32 %d, %x;", |x, _, _| {
        x.checked_ilog2().unwrap_or(u32::MAX)
    });
    integer("bfind.s32 %d, %x;", |x, _, _| {
        (x ^ (x as i32 >> 31) as u32).checked_ilog2().unwrap_or(u32::MAX)
    });
    integer("bfind.shiftamt.u32 %d, %x;", |x, _, _| {
        x.checked_ilog2().map_or(u32::MAX, |highest| 31 - highest)
    });
    // Position and length are bytes.
    let field = |x: u32, at: u32, length: u32| {
        let moved = x.checked_shr(at & 255).unwrap_or(0);
        let mask = 1u32.checked_shl(length & 255).unwrap_or(0).wrapping_sub(1);
        moved & mask
    };
    integer("bfe.u32 %d, %x, %y, %z;", field);
    // As in the manual of PTX, bit by bit.
    integer("bfe.s32 %d, %x, %y, %z;", |x, at, length| {
        let (at, length) = (at & 255, length & 255);
        let bit = |position: u32| if position > 31 { 0 } else { x >> position & 1 };
        let sign = if length == 0 {
            0
        } else {
            bit((at + length - 1).min(31))
        };
        let bits = (0..32).map(|i| match i < length && at + i <= 31 {
            true => bit(at + i) << i,
            false => sign << i,
        });
        bits.sum()
    });
    integer("bfi.b32 %d, %x, %y, 5, %z;", |x, y, length| {
        let bits = (0..32).map(|i| match i >= 5 && i - 5 < length & 255 {
            true => (x >> (i - 5) & 1) << i,
            false => y & 1 << i,
        });
        bits.sum()
    });
    for table in [0x00u32, 0xff, 0xe8, 0x96, 0xca, 0x1b, 0x80, 0xfe, 0x40, 0x27] {
        integer(&format!("lop3.b32 %d, %x, %y, %z, {table};"), |x, y, z| {
            let bits = (0..32).map(|i| {
                let index = (x >> i & 1) << 2 | (y >> i & 1) << 1 | z >> i & 1;
                (table >> index & 1) << i
            });
            bits.sum()
        });
    }
    let both = |low: u32, high: u32| u64::from(high) << 32 | u64::from(low);
    integer("shf.l.wrap.b32 %d, %x, %y, %z;", |x, y, z| {
        (both(x, y) << (z & 31) >> 32) as u32
    });
    integer("shf.r.wrap.b32 %d, %x, %y, %z;", |x, y, z| {
        (both(x, y) >> (z & 31)) as u32
    });
    integer("shf.l.clamp.b32 %d, %x, %y, %z;", |x, y, z| {
        (both(x, y) << z.min(32) >> 32) as u32
    });
    integer("shf.r.clamp.b32 %d, %x, %y, %z;", |x, y, z| {
        (both(x, y) >> z.min(32)) as u32
    });
    integer("prmt.b32 %d, %x, %y, %z;", |x, y, selector| {
        let bytes = both(x, y).to_le_bytes();
        let chosen = [0, 1, 2, 3].map(|i| {
            let choice = selector >> (4 * i) & 15;
            let byte = bytes[choice as usize & 7];
            if choice & 8 == 0 {
                byte
            } else {
                (byte as i8 >> 7) as u8
            }
        });
        u32::from_le_bytes(chosen)
    });
}

#[test]
fn comparisons_and_selections() {
    integer("setp.lt.s32 %p, %x, %y; selp.b32 %d, %z, 5, %p;", |x, y, z| {
        if (x as i32) < y as i32 { z } else { 5 }
    });
    integer(
        "setp.hs.u32 %q, %z, 7; setp.ne.and.u32 %p, %x, %y, %q; selp.u32 %d, 1, 0, %p;",
        |x, y, z| u32::from(x != y && z >= 7),
    );
    integer(
        "setp.ge.s32 %q, %z, 7; setp.eq.xor.s32 %p|%q, %x, %y, %q; selp.u32 %d, 1, 0, %p; @%q add.u32 %d, %d, 2;",
        |x, y, z| {
            let third = z as i32 >= 7;
            u32::from((x == y) ^ third) + 2 * u32::from((x != y) ^ third)
        },
    );
    integer("set.gt.u32.s32 %d, %x, %y;", |x, y, _| {
        if x as i32 > y as i32 { u32::MAX } else { 0 }
    });
    integer(
        "slct.u32.s32 %d, %x, %y, %z;",
        |x, y, z| {
            if z as i32 >= 0 { x } else { y }
        },
    );
    float(
        "slct.f32.f32 %f0, %f1, %f2, %f3;",
        |x, y, z| if z >= 0.0 { x } else { y },
    );
    float("set.le.f32.f32 %f0, %f1, %f2;", |x, y, _| {
        f32::from(u8::from(x <= y))
    });
    let test = |body: &str, holds: fn(f32, f32) -> bool| {
        let body = format!("{body} selp.f32 %f0, 0f3F800000, 0f00000000, %p;");
        float(&body, |x, y, _| f32::from(u8::from(holds(x, y))));
    };
    let odd = |x: f32, y: f32| x.is_nan() || y.is_nan();
    test("setp.ltu.f32 %p, %f1, %f2;", |x, y| {
        x < y || x.is_nan() || y.is_nan()
    });
    test("setp.equ.f32 %p, %f1, %f2;", |x, y| {
        x == y || x.is_nan() || y.is_nan()
    });
    test("setp.ne.f32 %p, %f1, %f2;", |x, y| {
        x != y && !x.is_nan() && !y.is_nan()
    });
    test("setp.neu.f32 %p, %f1, %f2;", |x, y| x != y);
    test("setp.num.f32 %p, %f1, %f2;", |x, y| !(x.is_nan() || y.is_nan()));
    test("setp.nan.f32 %p, %f1, %f2;", odd);
    test("testp.finite.f32 %p, %f1;", |x, _| x.is_finite());
    test("testp.infinite.f32 %p, %f1;", |x, _| x.is_infinite());
    test("testp.number.f32 %p, %f1;", |x, _| !x.is_nan());
    test("testp.notanumber.f32 %p, %f1;", |x, _| x.is_nan());
    test("testp.normal.f32 %p, %f1;", |x, _| x.is_normal());
    test("testp.subnormal.f32 %p, %f1;", |x, _| x.is_subnormal());
}

#[test]
fn conversions() {
    integer("cvt.s32.s8 %d, %x;", |x, _, _| x as i8 as u32);
    integer("cvt.u32.u16 %d, %x;", |x, _, _| x & 0xffff);
    integer("cvt.u16.u32 %h0, %x; cvt.s32.s16 %d, %h0;", |x, _, _| {
        x as i16 as u32
    });
    integer("cvt.sat.u8.s32 %d, %x;", |x, _, _| {
        (x as i32).clamp(0, 255) as u32
    });
    integer("cvt.sat.s8.s32 %d, %x;", |x, _, _| {
        (x as i32).clamp(-128, 127) as u32
    });
    integer("cvt.sat.u16.u32 %h0, %x; cvt.u32.u16 %d, %h0;", |x, _, _| {
        x.min(0xffff)
    });
    integer("cvt.sat.u32.s32 %d, %x;", |x, _, _| (x as i32).max(0) as u32);
    integer("cvt.sat.s32.u32 %d, %x;", |x, _, _| x.min(i32::MAX as u32));
    integer(
        "cvt.s64.s32 %wx, %x; shr.s64 %wx, %wx, 8; cvt.u32.u64 %d, %wx;",
        |x, _, _| (signed(x) >> 8) as u32,
    );
    integer("cvt.rn.f32.s32 %f0, %x; mov.b32 %d, %f0;", |x, _, _| {
        (x as i32 as f32).to_bits()
    });
    integer("cvt.rn.f32.u32 %f0, %x; mov.b32 %d, %f0;", |x, _, _| {
        (x as f32).to_bits()
    });
    float("cvt.rzi.s32.f32 %d, %f1; cvt.rn.f32.s32 %f0, %d;", |x, _, _| {
        x as i32 as f32
    });
    float("cvt.rni.f32.f32 %f0, %f1;", |x, _, _| x.round_ties_even());
    float("cvt.rmi.f32.f32 %f0, %f1;", |x, _, _| x.floor());
    float("cvt.rpi.f32.f32 %f0, %f1;", |x, _, _| x.ceil());
    float("cvt.rzi.f32.f32 %f0, %f1;", |x, _, _| x.trunc());
    float("cvt.sat.f32.f32 %f0, %f1;", |x, _, _| {
        if x.is_nan() { 0.0 } else { x.clamp(0.0, 1.0) + 0.0 }
    });
    float(
        "cvt.f64.f32 %e1, %f1; add.rn.f64 %e1, %e1, %e1; cvt.rn.f32.f64 %f0, %e1;",
        |x, _, _| (f64::from(x) * 2.0) as f32,
    );
    float("cvt.rn.f16.f32 %h1, %f1; cvt.f32.f16 %f0, %h1;", |x, _, _| {
        half::f16::from_f32(x).to_f32()
    });
    float("cvt.rn.bf16.f32 %h1, %f1; cvt.f32.bf16 %f0, %h1;", |x, _, _| {
        half::bf16::from_f32(x).to_f32()
    });
}

#[test]
fn float_arithmetic() {
    float("add.rn.f32 %f0, %f1, %f2;", |x, y, _| x + y);
    float("sub.rn.f32 %f0, %f1, %f2;", |x, y, _| x - y);
    float("mul.rn.f32 %f0, %f1, %f2;", |x, y, _| x * y);
    float("fma.rn.f32 %f0, %f1, %f2, %f3;", f32::mul_add);
    float("div.rn.f32 %f0, %f1, %f2;", |x, y, _| x / y);
    float("rcp.rn.f32 %f0, %f1;", |x, _, _| 1.0 / x);
    float("sqrt.rn.f32 %f0, %f1;", |x, _, _| x.sqrt());
    float("neg.f32 %f0, %f1;", |x, _, _| -x);
    float("abs.f32 %f0, %f1;", |x, _, _| x.abs());
    float("copysign.f32 %f0, %f1, %f2;", |x, y, _| y.copysign(x));
    // A number wins over a NaN, and zeros have an order.
    let less = |x: f32, y: f32| match (x.is_nan(), y.is_nan()) {
        (true, _) => y,
        (_, true) => x,
        _ if x == y => f32::from_bits(x.to_bits() | y.to_bits()),
        _ => x.min(y),
    };
    float("min.f32 %f0, %f1, %f2;", move |x, y, _| less(x, y));
    float("max.f32 %f0, %f1, %f2;", move |x, y, _| -less(-x, -y));
    float(
        "cvt.f64.f32 %e1, %f1; cvt.f64.f32 %e2, %f2; cvt.f64.f32 %e3, %f3; fma.rn.f64 %e1, %e1, %e2, %e3; \
         div.rn.f64 %e1, %e1, %e2; sqrt.rn.f64 %e1, %e1; cvt.rn.f32.f64 %f0, %e1;",
        |x, y, z| {
            let [x, y, z] = [x, y, z].map(f64::from);
            (x.mul_add(y, z) / y).sqrt() as f32
        },
    );
}

#[test]
fn approximations() {
    approximate("ex2.approx.f32 %f0, %f1;", 1e-6, 1.2e-38, f64::exp2);
    approximate("lg2.approx.f32 %f0, %f1;", 1e-6, 3e-7, f64::log2);
    approximate("rsqrt.approx.f32 %f0, %f1;", 1e-6, 0.0, |x| 1.0 / x.sqrt());
    approximate("rcp.approx.f32 %f0, %f1;", 1e-6, 1.2e-38, |x| 1.0 / x);
    approximate("sqrt.approx.f32 %f0, %f1;", 1e-6, 1e-19, f64::sqrt);
    approximate("tanh.approx.f32 %f0, %f1;", 6e-4, 1.2e-38, f64::tanh);
    // Sines of large numbers are as good as their reduction.
    let small = "setp.lt.f32 %p, %f2, %f1; abs.f32 %f4, %f1; setp.gtu.f32 %p, %f4, 0f41200000; \
                 @%p mov.f32 %f1, 0f3F000000;";
    let near = |x: f64| if x.abs() <= 10.0 { x } else { 0.5 };
    approximate(&format!("{small} sin.approx.f32 %f0, %f1;"), 1e-5, 2e-6, |x| {
        near(x).sin()
    });
    approximate(&format!("{small} cos.approx.f32 %f0, %f1;"), 1e-5, 2e-6, |x| {
        near(x).cos()
    });
}

#[test]
fn halves() {
    use half::{bf16, f16};
    let narrow = |op: &str| {
        format!(
            "cvt.rn.f16.f32 %h1, %f1; cvt.rn.f16.f32 %h2, %f2; cvt.rn.f16.f32 %h3, %f3; {op} cvt.f32.f16 %f0, %h0;"
        )
    };
    let h = f16::from_f32;
    float(&narrow("add.rn.f16 %h0, %h1, %h2;"), |x, y, _| {
        (h(x) + h(y)).to_f32()
    });
    float(&narrow("mul.rn.f16 %h0, %h1, %h2;"), |x, y, _| {
        (h(x) * h(y)).to_f32()
    });
    // In double precision the product and the sum of halves are exact enough to round once.
    float(&narrow("fma.rn.f16 %h0, %h1, %h2, %h3;"), |x, y, z| {
        f16::from_f64(h(x).to_f64() * h(y).to_f64() + h(z).to_f64()).to_f32()
    });
    let wide = |op: &str| {
        format!(
            "cvt.rn.bf16.f32 %h1, %f1; cvt.rn.bf16.f32 %h2, %f2; cvt.rn.bf16.f32 %h3, %f3; {op} cvt.f32.bf16 %f0, %h0;"
        )
    };
    let b = bf16::from_f32;
    float(&wide("add.rn.bf16 %h0, %h1, %h2;"), |x, y, _| {
        (b(x) + b(y)).to_f32()
    });
    float(&wide("mul.rn.bf16 %h0, %h1, %h2;"), |x, y, _| {
        (b(x) * b(y)).to_f32()
    });
    // Two at a time.
    integer("add.rn.f16x2 %d, %x, %y;", |x, y, _| {
        let half = |bits: u32| f16::from_bits(bits as u16);
        let sum = |x: u32, y: u32| {
            let sum = half(x) + half(y);
            u32::from(if sum.is_nan() { 0x7fff } else { sum.to_bits() })
        };
        let (low, high) = (sum(x, y), sum(x >> 16, y >> 16));
        let canonical = |bits: u32| {
            if f16::from_bits(bits as u16).is_nan() {
                0x7e00
            } else {
                bits
            }
        };
        canonical(high) << 16 | canonical(low)
    });
}

/// A float with a zero of its sign for a subnormal number.
fn flushed(x: f32) -> f32 {
    if x.is_subnormal() { 0.0f32.copysign(x) } else { x }
}

#[test]
fn every_instruction_rounds_and_flushes_as_it_says() {
    use headstart::ir::eval::ruled;
    use headstart::ir::{BinaryOp, FloatRule, Rounding, Type, UnaryOp};
    let bits = |x: f32| u64::from(x.to_bits());
    let single = |bits: u64| f32::from_bits(bits as u32);
    for rounding in Rounding::ALL {
        for flush in [false, true] {
            let rule = FloatRule {
                rounding,
                flush,
                ..FloatRule::EXACT
            };
            let (name, ftz) = (rounding.name(), if flush { ".ftz" } else { "" });
            for (op, meant) in [
                ("add", BinaryOp::FAdd),
                ("sub", BinaryOp::FSub),
                ("mul", BinaryOp::FMul),
                ("div", BinaryOp::FDiv),
            ] {
                float(&format!("{op}.{name}{ftz}.f32 %f0, %f1, %f2;"), |x, y, _| {
                    single(ruled::binary(rule, meant, Type::F32, bits(x), bits(y)))
                });
            }
            float(&format!("fma.{name}{ftz}.f32 %f0, %f1, %f2, %f3;"), |x, y, z| {
                single(ruled::fma(rule, Type::F32, bits(x), bits(y), bits(z)))
            });
            float(&format!("sqrt.{name}{ftz}.f32 %f0, %f1;"), |x, _, _| {
                single(ruled::unary(rule, UnaryOp::Sqrt, Type::F32, bits(x)))
            });
            float(&format!("rcp.{name}{ftz}.f32 %f0, %f1;"), |x, _, _| {
                single(ruled::binary(rule, BinaryOp::FDiv, Type::F32, bits(1.0), bits(x)))
            });
        }
    }
    // The directions by a sum that is a little more than 1, and one that is a little less than -1.
    let next = 1.0 + f32::EPSILON;
    for (name, above, below) in [
        ("rn", 1.0, -1.0),
        ("rz", 1.0, -1.0),
        ("rm", 1.0, -next),
        ("rp", next, -1.0),
    ] {
        float(
            &format!("add.{name}.f32 %f0, 0f3F800000, 0f2EDBE6FF;"),
            |_, _, _| above,
        );
        float(
            &format!("sub.{name}.f32 %f0, 0fBF800000, 0f2EDBE6FF;"),
            |_, _, _| below,
        );
    }
}

#[test]
fn what_is_no_arithmetic_flushes_too() {
    float("neg.ftz.f32 %f0, %f1;", |x, _, _| -flushed(x));
    float("abs.ftz.f32 %f0, %f1;", |x, _, _| flushed(x).abs());
    float("neg.f32 %f0, %f1;", |x, _, _| -x);
    float("cvt.ftz.f32.f32 %f0, %f1;", |x, _, _| flushed(x));
    float("cvt.ftz.f64.f32 %e0, %f1; cvt.rn.f32.f64 %f0, %e0;", |x, _, _| {
        flushed(x)
    });
    float("cvt.f64.f32 %e0, %f1; cvt.rn.ftz.f32.f64 %f0, %e0;", |x, _, _| {
        flushed(x)
    });
    float("cvt.rpi.ftz.f32.f32 %f0, %f1;", |x, _, _| flushed(x).ceil());
    let as_number = |x: f32| x as i32 as u32;
    for (body, meant) in [
        ("cvt.rpi.ftz.s32.f32", (|x| flushed(x).ceil()) as fn(f32) -> f32),
        ("cvt.rpi.s32.f32", |x| x.ceil()),
        ("cvt.rmi.ftz.s32.f32", |x| flushed(x).floor()),
    ] {
        let found = made(&FLOATS, &format!("{body} %d, %f1;"));
        for ((x, ..), found) in triples(&FLOATS).zip(found) {
            assert_eq!(found, as_number(meant(f32::from_bits(x))), "{body} of {x:#x}");
        }
    }
    // A subnormal number is not above zero, and with a zero of its own sign it is equal.
    for (ftz, flush) in [("", false), (".ftz", true)] {
        let seen = |x: u32| {
            if flush {
                flushed(f32::from_bits(x))
            } else {
                f32::from_bits(x)
            }
        };
        for (body, meant) in [
            (
                format!("setp.lt{ftz}.f32 %p, %f1, %f2; selp.u32 %d, 1, 0, %p;"),
                (|x, y| x < y) as fn(f32, f32) -> bool,
            ),
            (
                format!("setp.equ{ftz}.f32 %p, %f1, %f2; selp.u32 %d, 1, 0, %p;"),
                |x, y| !x.partial_cmp(&y).is_some_and(std::cmp::Ordering::is_ne),
            ),
            (
                format!("setp.ne{ftz}.f32 %p, %f1, %f2; selp.u32 %d, 1, 0, %p;"),
                |x, y| x.partial_cmp(&y).is_some_and(std::cmp::Ordering::is_ne),
            ),
            (
                format!("set.gt{ftz}.u32.f32 %d, %f1, %f2; and.b32 %d, %d, 1;"),
                |x, y| x > y,
            ),
        ] {
            for ((x, y, _), found) in triples(&FLOATS).zip(made(&FLOATS, &body)) {
                let expected = u32::from(meant(seen(x), seen(y)));
                assert_eq!(found, expected, "{body} of {x:#x} and {y:#x}");
            }
        }
        float(&format!("slct{ftz}.f32.f32 %f0, %f1, %f2, %f3;"), |x, y, z| {
            if seen(z.to_bits()) >= 0.0 { x } else { y }
        });
    }
}
