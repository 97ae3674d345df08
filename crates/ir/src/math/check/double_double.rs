//! Numbers of about 104 bits as unevaluated sums of two doubles, and the functions' references in them.
//!
//! Sums and products by Dekker and Knuth; Joldes, Muller, Popescu, "Tight and rigorous error bounds for basic building blocks
//! of double-word arithmetic" (2017). Relative errors stay below 2⁻⁹⁰ here, far below the requirement for measuring a
//! thousandth of an ulp.

use std::ops::{Add, Div, Mul, Neg, Sub};

/// `high + low`, `|low|` at most half a unit in the last place of `high`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DoubleDouble {
    pub high: f64,
    pub low: f64,
}

/// A constant given by its two halves.
const fn constant(high: f64, low: f64) -> DoubleDouble {
    DoubleDouble { high, low }
}

/// ln 2.
pub(crate) const LN_2: DoubleDouble = constant(std::f64::consts::LN_2, 2.319_046_813_846_299_6e-17);

/// ln 10.
pub(crate) const LN_10: DoubleDouble = constant(std::f64::consts::LN_10, -2.170_756_223_382_249_4e-16);

/// The rounding error of [`LN_2`].
const LN_2_REST: f64 = 5.707_708_438_416_212e-34;

pub(crate) fn two_sum(a: f64, b: f64) -> DoubleDouble {
    let high = a + b;
    let b_part = high - a;
    DoubleDouble {
        high,
        low: (a - (high - b_part)) + (b - b_part),
    }
}

fn fast_two_sum(a: f64, b: f64) -> DoubleDouble {
    let high = a + b;
    DoubleDouble {
        high,
        low: b - (high - a),
    }
}

pub(crate) fn two_product(a: f64, b: f64) -> DoubleDouble {
    let high = a * b;
    DoubleDouble {
        high,
        low: a.mul_add(b, -high),
    }
}

impl From<f64> for DoubleDouble {
    fn from(high: f64) -> Self {
        DoubleDouble { high, low: 0.0 }
    }
}

impl Add for DoubleDouble {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        let s = two_sum(self.high, other.high);
        let t = two_sum(self.low, other.low);
        let v = fast_two_sum(s.high, s.low + t.high);
        fast_two_sum(v.high, t.low + v.low)
    }
}

impl Neg for DoubleDouble {
    type Output = Self;
    fn neg(self) -> Self {
        DoubleDouble {
            high: -self.high,
            low: -self.low,
        }
    }
}

impl Sub for DoubleDouble {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

impl Mul for DoubleDouble {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        let p = two_product(self.high, other.high);
        let cross = self.low.mul_add(other.high, self.high * other.low);
        fast_two_sum(p.high, p.low + cross)
    }
}

impl Div for DoubleDouble {
    type Output = Self;
    fn div(self, other: Self) -> Self {
        let first = self.high / other.high;
        let rest = self - other * first.into();
        let second = rest.high / other.high;
        let rest = rest - other * second.into();
        let sum = fast_two_sum(first, second);
        sum + (rest.high / other.high).into()
    }
}

impl DoubleDouble {
    /// The square root of a positive number, by one step of Newton.
    pub(crate) fn sqrt(self) -> Self {
        let first = DoubleDouble::from(self.high.sqrt());
        first + (self - first * first) / (first * 2.0.into())
    }

    /// Times a power of two.
    pub(crate) fn scale(self, exponent: i32) -> Self {
        let factor = f64::powi(2.0, exponent);
        DoubleDouble {
            high: self.high * factor,
            low: self.low * factor,
        }
    }
}

/// A reference value: `value × 2^exponent`, so that it may lie outside the range of a double.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reference {
    pub value: DoubleDouble,
    pub exponent: i32,
}

impl From<DoubleDouble> for Reference {
    fn from(value: DoubleDouble) -> Self {
        Reference { value, exponent: 0 }
    }
}

impl Reference {
    /// The distance of `got` from this value, in units in the last place of this value in a format with
    /// `precision` bits, least normal exponent `least`, and largest exponent `largest`.
    fn distance(self, got: f64, precision: i32, least: i32, largest: i32) -> f64 {
        let DoubleDouble { high, low } = self.value;
        if high == 0.0 {
            return if got == 0.0 { 0.0 } else { f64::INFINITY };
        }
        let exponent = ((high.to_bits() >> 52 & 0x7ff) as i32 - 1023) + self.exponent;
        if got.is_infinite() || exponent > largest {
            // Overflow is right where the exact value rounds to beyond the largest number.
            let limit = 2.0 - f64::powi(2.0, -precision);
            let overflows = exponent > largest || (exponent == largest && self.mantissa() >= limit);
            let right = overflows && got.is_infinite() && (got > 0.0) == (high > 0.0);
            return if right { 0.0 } else { f64::INFINITY };
        }
        let unit = exponent.max(least) - (precision - 1);
        // In units: got is an integer below 2^precision, exactly.
        let scaled = |x: f64, by: i32| {
            let half = by / 2;
            x * f64::powi(2.0, half) * f64::powi(2.0, by - half)
        };
        let by = self.exponent - unit;
        let got = scaled(got, -unit);
        ((got - scaled(high, by)) - scaled(low, by)).abs()
    }

    /// The magnitude's significand in `[1, 2)`.
    fn mantissa(self) -> f64 {
        f64::from_bits(self.value.high.to_bits() & 0x000f_ffff_ffff_ffff | 0x3ff0_0000_0000_0000)
    }

    /// The distance of a double from this value, in units in the last place.
    pub(crate) fn distance_f64(self, got: f64) -> f64 {
        self.distance(got, 53, -1022, 1023)
    }

    /// The distance of a single-precision number from this value, in units in the last place.
    pub(crate) fn distance_f32(self, got: f32) -> f64 {
        self.distance(got.into(), 24, -126, 127)
    }
}

/// π/2.
pub(crate) const HALF_PI: DoubleDouble = constant(std::f64::consts::FRAC_PI_2, 6.123_233_995_736_766e-17);

/// Sine and cosine of a number between -1 and 1, by their series.
pub(crate) fn sin_cos(r: DoubleDouble) -> (DoubleDouble, DoubleDouble) {
    let square = r * r;
    let one = DoubleDouble::from(1.0);
    let (mut sin, mut cos) = (one, one);
    for n in (1..=15).rev() {
        let n = f64::from(n);
        sin = one - square * sin / (2.0 * n * (2.0 * n + 1.0)).into();
        cos = one - square * cos / (2.0 * n * (2.0 * n - 1.0)).into();
    }
    (r * sin, cos)
}

/// The exponential of a number between -2000 and 2000.
pub(crate) fn exp(x: DoubleDouble) -> Reference {
    let k = (x.high / LN_2.high).round();
    let r = x - LN_2 * k.into() - (LN_2_REST * k).into();
    // e^r = (e^(r/256))^256; the series of e^t - 1 keeps small results accurate.
    let t = r.scale(-8);
    let mut sum = DoubleDouble::from(0.0);
    for n in (1..=12).rev() {
        sum = (t + t * sum) / f64::from(n).into();
    }
    for _ in 0..8 {
        sum = sum + sum + sum * sum;
    }
    Reference {
        value: sum + 1.0.into(),
        exponent: k as i32,
    }
}

/// `eˣ - 1`, accurate for small `x` too, for `|x|` up to 700.
pub(crate) fn exp_m1(x: DoubleDouble) -> DoubleDouble {
    let one = DoubleDouble::from(1.0);
    if x.high.abs() < 0.3 {
        let mut sum = DoubleDouble::from(0.0);
        for n in (1..=27).rev() {
            sum = x * (one + sum) / f64::from(n).into();
        }
        return sum;
    }
    let Reference { value, exponent } = exp(x);
    value.scale(exponent) - one
}

/// The natural logarithm of a positive number.
pub(crate) fn log(x: f64) -> DoubleDouble {
    // Exact: a subnormal number is made normal first.
    let (x, shift) = if x < f64::MIN_POSITIVE {
        (x * f64::powi(2.0, 54), -54)
    } else {
        (x, 0)
    };
    let exponent = (x.to_bits() >> 52) as i32 - 1023;
    let mut m = f64::from_bits(x.to_bits() & 0x000f_ffff_ffff_ffff | 0x3ff0_0000_0000_0000);
    let mut k = exponent + shift;
    if m > std::f64::consts::SQRT_2 {
        m /= 2.0;
        k += 1;
    }
    // log m = 2·artanh((m - 1)/(m + 1)), |s| ≤ 0.172: 2⁻¹⁰⁴ after 21 terms.
    let s = DoubleDouble::from(m - 1.0) / two_sum(m, 1.0);
    let square = s * s;
    let mut sum = DoubleDouble::from(0.0);
    for n in (0..22).rev() {
        sum = sum * square + DoubleDouble::from(1.0) / f64::from(2 * n + 1).into();
    }
    let log_m = s * sum * 2.0.into();
    let k = f64::from(k);
    log_m + (LN_2_REST * k).into() + LN_2 * k.into()
}
