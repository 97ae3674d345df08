//! Sums whose bits are known, one rule of the units each.

use half::f16;

use super::*;

fn halves(values: &[f32]) -> Vec<u64> {
    let bits = values.iter().map(|&value| f16::from_f32(value).to_bits());
    bits.map(u64::from).collect()
}

fn bf16_bits(value: f32) -> u64 {
    u64::from(half::bf16::from_f32(value).to_bits())
}

fn single(value: f32) -> u64 {
    u64::from(value.to_bits())
}

impl Kinds {
    /// One element.
    fn dot(self, row: &[u64], column: &[u64], start: u64) -> u64 {
        self.multiply(row, column, &[start], row.len())[0]
    }
}

const HALF: Kinds = Kinds {
    a: Element::F16,
    b: Element::F16,
    sum: Element::F32,
    saturates: false,
    unit: Multiplier::SubGroup,
};

#[test]
fn small_sums_are_exact() {
    let dot = HALF.dot(
        &halves(&[1.5, -2.0, 0.25]),
        &halves(&[4.0, 0.5, 8.0]),
        single(0.5),
    );
    assert_eq!(dot, single(6.0 - 1.0 + 2.0 + 0.5));
    let brains = Kinds {
        a: Element::Bf16,
        b: Element::Bf16,
        ..HALF
    };
    assert_eq!(
        brains.dot(&[bf16_bits(3.0)], &[bf16_bits(-0.5)], single(1.0)),
        single(-0.5)
    );
}

#[test]
fn what_is_far_below_the_largest_term_is_cut_off() {
    // 2^-25 of the largest is kept, 2^-26 is not, however many there are.
    let tiny = |exponent: i32| f16::from_f32(2f32.powi(exponent)).to_bits();
    let column = vec![u64::from(tiny(-13)); 16];
    let dot = |exponent: i32| {
        let row = vec![u64::from(tiny(exponent)); 16];
        f32::from_bits(HALF.dot(&row, &column, single(1.0)) as u32)
    };
    assert_eq!(dot(-12), 1.0 + 16.0 * 2f32.powi(-25));
    assert_eq!(dot(-13), 1.0);
}

#[test]
fn terms_are_cut_off_somewhere_below_subnormal_numbers() {
    let brains = Kinds {
        a: Element::Bf16,
        b: Element::Bf16,
        ..HALF
    };
    // 2^-158 takes part in the sum, 2^-159 does not: what is left of 2^-149 is a subnormal number, or none.
    let power = |exponent| bf16_bits(2f32.powi(exponent));
    let less = |exponent: i32| {
        let row = [power(-75), bf16_bits(-2f32.powi(exponent))];
        brains.dot(&row, &[power(-74), power(-79)], 0)
    };
    assert_eq!(less(-79), 0);
    assert_eq!(less(-80), 1);
}

#[test]
fn sums_are_cut_off_and_not_rounded() {
    let row = halves(&[1.0, 2f32.powi(-12)]);
    let column = halves(&[1.0, 1.5 * 2f32.powi(-12)]);
    // 1 + 1.5 * 2^-24: the nearest single is 1 + 2^-23.
    assert_eq!(HALF.dot(&row, &column, 0), single(1.0));
    let to_half = Kinds {
        sum: Element::F16,
        ..HALF
    };
    let row = halves(&[1.0, 1.5 * 2f32.powi(-11)]);
    assert_eq!(
        to_half.dot(&row, &halves(&[1.0, 1.0]), 0),
        halves(&[1.0 + 2f32.powi(-10)])[0]
    );
}

#[test]
fn infinities_and_what_is_no_number() {
    let inf = f32::INFINITY;
    let dot = |row: &[f32], column: &[f32], start: f32| {
        HALF.dot(&halves(row), &halves(column), single(start)) as u32
    };
    assert_eq!(dot(&[inf], &[-1.0], 0.0), f32::NEG_INFINITY.to_bits());
    assert_eq!(dot(&[inf], &[0.0], 0.0), NAN_F32);
    assert_eq!(dot(&[inf], &[1.0], -inf), NAN_F32);
    assert_eq!(dot(&[f32::NAN], &[1.0], 0.0), NAN_F32);
    // A sum that is 0 has no sign, whatever the terms have.
    assert_eq!(dot(&[-0.0], &[1.0], -0.0), 0);
    assert_eq!(dot(&[-1.0], &[1.0], 1.0), 0);
}

#[test]
fn integers_wrap_or_stay_at_their_bounds() {
    let kinds = |saturates| Kinds {
        a: Element::S8,
        b: Element::U8,
        sum: Element::I32,
        saturates,
        unit: Multiplier::SubGroup,
    };
    let start = i32::MAX as u64;
    assert_eq!(kinds(false).dot(&[1], &[1], start), i32::MIN as u32 as u64);
    assert_eq!(kinds(true).dot(&[1], &[1], start), start);
    assert_eq!(kinds(true).dot(&[0xff], &[0xff], 0) as u32 as i32, -255);
    assert_eq!(Element::S4.integer(0xf8), -8);
    assert_eq!(Element::U4.integer(0xf8), 8);
}

#[test]
fn of_doubles_that_are_no_numbers_the_second_factor_comes_first() {
    let nan = |payload: u64| 0x7ff0 << 48 | payload;
    let quiet = |payload: u64| nan(payload) | 1 << 51;
    let one = 1f64.to_bits();
    assert_eq!(fused(nan(1), nan(2), nan(3)), quiet(2));
    assert_eq!(fused(nan(1), one, nan(3)), quiet(3));
    assert_eq!(fused(nan(1), one, one), quiet(1));
    // Of several products the last that says so: each is the summand of the next.
    let kinds = Kinds {
        a: Element::F64,
        b: Element::F64,
        sum: Element::F64,
        ..HALF
    };
    assert_eq!(kinds.dot(&[one, one], &[nan(1), nan(2)], one), quiet(2));
    assert_eq!(kinds.dot(&[nan(4), nan(5)], &[nan(1), one], one), quiet(1));
}

#[test]
fn warp_groups_keep_fewer_bits_of_eight_bit_floats() {
    let kinds = |unit| Kinds {
        a: Element::E5m2,
        b: Element::E5m2,
        unit,
        ..HALF
    };
    let e5m2 = |value: f32| u64::from(f16::from_f32(value).to_bits() >> 8);
    let row: Vec<u64> = [1.0, 2f32.powi(-7), 2f32.powi(-7)].map(e5m2).to_vec();
    let column: Vec<u64> = [1.0, 2f32.powi(-6), 2f32.powi(-7)].map(e5m2).to_vec();
    // 2^-13 of the largest is kept, 2^-14 is not.
    let dot = |unit| f32::from_bits(kinds(unit).dot(&row, &column, 0) as u32);
    assert_eq!(dot(Multiplier::WarpGroup), 1.0 + 2f32.powi(-13));
    assert_eq!(dot(Multiplier::SubGroup), 1.0 + 2f32.powi(-13) + 2f32.powi(-14));
    // Nor is more of the fraction of a sum.
    let start = 1.0 + 2f32.powi(-13) + 2f32.powi(-14);
    let dot = kinds(Multiplier::WarpGroup).dot(&[0], &[0], single(start));
    assert_eq!(dot, single(1.0 + 2f32.powi(-13)));
    assert_eq!(
        kinds(Multiplier::WarpGroup).dot(&[0], &[0], NAN_F32.into()),
        NAN_F32.into()
    );
}

#[test]
fn numbers_of_eight_bits_are_halves() {
    let value = |bits| f16::from_bits(half_of_e4m3(bits)).to_f32();
    assert_eq!(value(0x38), 1.0);
    assert_eq!(value(0xb8), -1.0);
    assert_eq!(value(0x7e), 448.0);
    assert_eq!(value(0x01), 2f32.powi(-9));
    assert!(value(0x7f).is_nan());
}
