//! An H200's results, by sums of its bits.

use super::*;

/// A function, the bits of the first of 2²³ consecutive arguments, and the sum of `(2n + 1)·bits`, mod 2⁶⁴, of an H200's
/// results for them (driver 580.159.04, nvcc 13.0, 2026-11-22; `ex2.approx.ftz.f32`, `lg2.approx.ftz.f32` and
/// `rcp.approx.ftz.f32` in a kernel that stores them).
const MEASURED: [(fn(f32) -> f32, u32, u64); 13] = [
    (exp2, 127 << 23, 0x7514_e0e9_17ab_950e),
    (exp2, 1 << 31 | 127 << 23, 0xe008_a573_5654_6af3),
    (exp2, 126 << 23, 0x347f_abf9_906d_e854),
    (exp2, 1 << 31 | 126 << 23, 0x0a67_350e_0dbf_941c),
    (exp2, 125 << 23, 0xc00f_d5d8_2ee1_4c40),
    (exp2, 1 << 31 | 125 << 23, 0xfc73_ae1c_5fff_7630),
    (exp2, 124 << 23, 0xfa9d_907b_d672_1140),
    (exp2, 1 << 31 | 124 << 23, 0x67eb_6dc8_f6d4_4d40),
    (exp2, 123 << 23, 0x65d2_15b4_cfde_e400),
    (exp2, 1 << 31 | 123 << 23, 0x8b85_a6a7_0e22_5b00),
    (log2, 126 << 23, 0x2a8b_6cca_ae2b_65bc),
    (log2, 127 << 23, 0x0324_1e33_a86b_fa9f),
    (reciprocal, 127 << 23, 0x46f4_2047_e2dd_df03),
];

#[test]
fn the_bits_are_those_of_an_h200() {
    for (function, first, measured) in MEASURED {
        let sum = (0..1u32 << 23).fold(0u64, |sum, n| {
            let bits = function(f32::from_bits(first + n)).to_bits();
            sum.wrapping_add(u64::from(bits) * u64::from(2 * n + 1))
        });
        assert_eq!(sum, measured, "from {:e}", f32::from_bits(first));
    }
}

#[test]
fn special_arguments() {
    let infinity = f32::INFINITY;
    for x in [0.0, -0.0, 1e-40, -1e-40] {
        assert_eq!(exp2(x), 1.0);
        assert_eq!(log2(x), -infinity);
        assert_eq!(reciprocal(x), infinity.copysign(x));
    }
    for (x, power) in [
        (infinity, infinity),
        (-infinity, 0.0),
        (128.0, infinity),
        (-126.5, 0.0),
    ] {
        assert_eq!(exp2(x).to_bits(), f32::to_bits(power), "{x}");
    }
    assert_eq!(exp2(-126.0), f32::MIN_POSITIVE);
    assert_eq!(log2(infinity), infinity);
    assert_eq!(log2(1.0).to_bits(), 0);
    assert_eq!(reciprocal(-infinity).to_bits(), 1 << 31);
    assert_eq!(reciprocal(f32::MAX), 0.0);
    assert!(exp2(f32::NAN).is_nan() && reciprocal(-f32::NAN).is_nan());
    for x in [-1.0, -infinity, f32::NAN] {
        assert!(log2(x).is_nan(), "{x}");
    }
}
