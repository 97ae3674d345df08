//! Conversions (`cvt`) to and from floats of 8 bits, and to `tf32`.
//!
//! | type | exponent, fraction | greatest | no number |
//! |---|---|---|---|
//! | `e4m3` | 4, 3 bits | 448 | `0x7f`; there is no infinity |
//! | `e5m2` | 5, 2 bits | 57344 | `0x7f` |
//! | `tf32` | 8, 10 bits | of `f32` | `0x7fffe000` |
//!
//! PTX has conversions to 8 bits with `.satfinite` alone: what is greater becomes the greatest number. They round to the nearest,
//! ties to even; those to `tf32` as they say, `.rna` ties away from zero, and stay finite only where they say so. A NaN becomes
//! the one in the table: its sign is lost, too. But `.rna` is integer arithmetic before sm_100: a NaN loses its last bits, which
//! may make it infinite, and `.satfinite` takes one from the last place of what is not finite then. (As ptxas writes it for
//! sm_90; of 196,608 singles on an H100, NaNs among them, each conversion to 8 bits gives these bits, and `tf32` those with
//! NaNs.)

use half::f16;

/// Infinity as a `tf32`, and one in its last place.
const INFINITE: u32 = 0x7f80_0000;
const LAST_PLACE: u32 = 0x2000;

/// A format of 8 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Eight {
    E4m3,
    E5m2,
}

impl Eight {
    fn read(name: &str) -> Option<Eight> {
        match name {
            "e4m3x2" => Some(Eight::E4m3),
            "e5m2x2" => Some(Eight::E5m2),
            _ => None,
        }
    }

    /// Bits of the fraction, the bias of the exponent, and the greatest number's bits.
    fn layout(self) -> (u32, i32, u8) {
        match self {
            Eight::E4m3 => (3, 7, 0x7e),
            Eight::E5m2 => (2, 15, 0x7b),
        }
    }
}

/// How a float becomes a `tf32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shortens {
    TiesAway,
    TiesEven,
    TowardsZero,
}

/// A conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShortFloat {
    what: What,
    /// What is below zero becomes zero.
    relu: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// Two singles: the upper and the lower half of the result.
    FromSingles(Eight),
    /// A pair of halves.
    FromHalves(Eight),
    /// A pair becomes one of halves.
    ToHalves(Eight),
    Tf32 {
        how: Shortens,
        finite: bool,
    },
}

impl ShortFloat {
    /// The conversion that an instruction's name says: `cvt.rn.satfinite.e4m3x2.f32`.
    pub(super) fn read(name: &str) -> Option<ShortFloat> {
        let words: Vec<&str> = name.strip_prefix("cvt.")?.split('.').collect();
        let (&[to, from], rest) = (words.last_chunk::<2>()?, &words[..words.len() - 2]);
        let has = |word: &str| rest.contains(&word);
        let known = ["rn", "rz", "rna", "satfinite", "relu"];
        if !rest.iter().all(|word| known.contains(word)) {
            return None;
        }
        let what = match (to, from) {
            ("tf32", "f32") => What::Tf32 {
                how: match (has("rna"), has("rn"), has("rz")) {
                    (true, false, false) => Shortens::TiesAway,
                    (false, true, false) => Shortens::TiesEven,
                    (false, false, true) => Shortens::TowardsZero,
                    _ => return None,
                },
                finite: has("satfinite"),
            },
            (to, "f32") if has("rn") && has("satfinite") => What::FromSingles(Eight::read(to)?),
            (to, "f16x2") if has("rn") && has("satfinite") => What::FromHalves(Eight::read(to)?),
            ("f16x2", from) if has("rn") && !has("satfinite") => What::ToHalves(Eight::read(from)?),
            _ => return None,
        };
        Some(ShortFloat {
            what,
            relu: has("relu"),
        })
    }

    /// The result's bits, of the operands' bits in order.
    pub fn of(self, first: u64, second: u64) -> u64 {
        let single = |bits: u64| f32::from_bits(bits as u32);
        let half = |bits: u64| f16::from_bits(bits as u16).to_f32();
        match self.what {
            What::FromSingles(eight) => self.pair(eight, single(first), single(second)),
            What::FromHalves(eight) => self.pair(eight, half(first >> 16), half(first)),
            What::ToHalves(eight) => {
                let halves = [first as u8, (first >> 8) as u8].map(|bits| u64::from(self.half(eight, bits)));
                halves[0] | halves[1] << 16
            }
            What::Tf32 { how, finite } => {
                let bits = self.tf32(how, first as u32);
                let size = bits & 0x7fff_ffff;
                let is_cut = finite && (size == INFINITE || size > INFINITE && how == Shortens::TiesAway);
                u64::from(if is_cut { bits - LAST_PLACE } else { bits })
            }
        }
    }

    fn pair(self, eight: Eight, upper: f32, lower: f32) -> u64 {
        u64::from(self.eight(eight, upper)) << 8 | u64::from(self.eight(eight, lower))
    }

    fn eight(self, eight: Eight, value: f32) -> u8 {
        let (fraction, bias, greatest) = eight.layout();
        if value.is_nan() {
            return 0x7f;
        }
        let is_negative = value.is_sign_negative();
        if is_negative && self.relu {
            return 0;
        }
        let sign = u8::from(is_negative) << 7;
        let size = f64::from(value.abs());
        if size == 0.0 {
            return sign;
        }
        // A single is no subnormal double.
        let exponent = ((size.to_bits() >> 52) as i32 - 1023).max(1 - bias);
        // In units of the last place, which is exact; as many as two of the implicit bit where it rounds up to the next power.
        let units = (size * f64::powi(2.0, fraction as i32 - exponent)).round_ties_even();
        let limit = f64::from(2u32 << fraction);
        let code = match units.is_finite() && units <= limit {
            // The implicit bit counts for the exponent.
            true => ((exponent + bias - 1) as u64) * (1 << fraction) + units as u64,
            false => u64::MAX,
        };
        sign | code.min(u64::from(greatest)) as u8
    }

    fn half(self, eight: Eight, bits: u8) -> u16 {
        let half = match eight {
            Eight::E4m3 => half_of_e4m3(bits),
            Eight::E5m2 => u16::from(bits) << 8,
        };
        match f16::from_bits(half) {
            value if value.is_nan() => 0x7fff,
            value if self.relu && value.is_sign_negative() => 0,
            _ => half,
        }
    }

    fn tf32(self, how: Shortens, bits: u32) -> u32 {
        const DROPPED: u32 = 0x1fff;
        let value = f32::from_bits(bits);
        if value.is_nan() {
            return match how {
                Shortens::TiesAway => bits & !DROPPED,
                _ => 0x7fff_e000,
            };
        }
        if self.relu && value.is_sign_negative() {
            return 0;
        }
        if value.is_infinite() {
            return bits;
        }
        let up = match how {
            Shortens::TiesAway => 0x1000,
            Shortens::TiesEven => 0xfff + (bits >> 13 & 1),
            Shortens::TowardsZero => 0,
        };
        (bits + up) & !DROPPED
    }
}

/// The bits in half precision of a number with 4 bits of exponent and 3 of fraction, which has no infinity.
pub fn half_of_e4m3(bits: u8) -> u16 {
    let sign = u16::from(bits >> 7) << 15;
    let rest = bits & 0x7f;
    if rest == 0x7f {
        return sign | 0x7fff;
    }
    // Read as the exponent and fraction of a half, these bits are 2⁻⁸ times the value.
    let scaled = f16::from_bits(u16::from(rest) << 7).to_f32() * 256.0;
    sign | f16::from_f32(scaled).to_bits()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn converted(name: &str, first: u64, second: u64) -> u64 {
        ShortFloat::read(name).expect("a conversion").of(first, second)
    }

    #[test]
    fn eight_bits_come_back_as_they_were() {
        for (eight, codes) in [("e4m3x2", 0x7fu64), ("e5m2x2", 0x7c)] {
            for code in (0..codes).chain(0x80..0x80 + codes) {
                let pair = code << 8 | code;
                let halves = converted(&format!("cvt.rn.f16x2.{eight}"), pair, 0);
                assert_eq!(
                    converted(&format!("cvt.rn.satfinite.{eight}.f16x2"), halves, 0),
                    pair
                );
                let single = u64::from(f16::from_bits(halves as u16).to_f32().to_bits());
                assert_eq!(
                    converted(&format!("cvt.rn.satfinite.{eight}.f32"), single, single),
                    pair
                );
            }
        }
    }

    #[test]
    fn the_nearest_is_chosen_and_ties_are_even() {
        let e4m3 = |upper: f32, lower: f32| {
            let bits = |value: f32| u64::from(value.to_bits());
            converted("cvt.rn.satfinite.e4m3x2.f32", bits(upper), bits(lower))
        };
        // Between 1 and 1.125, and between 1.125 and 1.25.
        assert_eq!(e4m3(1.0625, 1.1875), 0x38_3a);
        assert_eq!(e4m3(1.0626, -1.9999), 0x39_c0);
        // The greatest, and what is beyond it.
        assert_eq!(e4m3(464.0, f32::INFINITY), 0x7e_7e);
        assert_eq!(e4m3(-1e30, f32::NAN), 0xfe_7f);
        // Half of the least is a tie with zero; what is more is not.
        assert_eq!(e4m3(f32::powi(2.0, -10), f32::powi(2.0, -10) * 1.001), 0x00_01);
        assert_eq!(e4m3(-0.0, f32::from_bits(1)), 0x80_00);
        let relu = |value: f32| converted("cvt.rn.satfinite.relu.e5m2x2.f32", u64::from(value.to_bits()), 0);
        assert_eq!((relu(-3.0), relu(57344.0), relu(1e9)), (0, 0x7b00, 0x7b00));
    }

    #[test]
    fn tf32_has_ten_bits_of_fraction() {
        let tie = 0x3f80_1000;
        assert_eq!(converted("cvt.rna.tf32.f32", tie, 0), 0x3f80_2000);
        assert_eq!(converted("cvt.rn.tf32.f32", tie, 0), 0x3f80_0000);
        assert_eq!(converted("cvt.rz.tf32.f32", 0xbf80_1fff, 0), 0xbf80_0000);
        assert_eq!(converted("cvt.rna.tf32.f32", 0xff80_0000, 0), 0xff80_0000);
        assert_eq!(converted("cvt.rna.tf32.f32", 0x7f80_2001, 0), 0x7f80_2000);
        assert_eq!(converted("cvt.rn.tf32.f32", 0xff80_0001, 0), 0x7fff_e000);
        let finite = |bits| converted("cvt.rna.satfinite.tf32.f32", bits, 0);
        // Measured on an H100.
        assert_eq!([0x7f80_0001, 0x7f80_2000].map(finite), [0x7f7f_e000, 0x7f80_0000]);
        // The greatest single is rounded up to infinity, which `.satfinite` avoids.
        assert_eq!(converted("cvt.rna.tf32.f32", 0x7f7f_ffff, 0), 0x7f80_0000);
        assert_eq!(
            (finite(0x7f7f_ffff), finite(0xff80_0000)),
            (0x7f7f_e000, 0xff7f_e000)
        );
    }

    #[test]
    fn others_are_not_known() {
        for name in [
            "cvt.rn.f32.f64",
            "cvt.rn.e4m3x2.f32",
            "cvt.rn.satfinite.e2m1x2.f32",
            "cvt",
        ] {
            assert_eq!(ShortFloat::read(name), None, "{name}");
        }
    }
}
