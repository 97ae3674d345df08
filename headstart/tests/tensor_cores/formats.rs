//! The elements of operands, and random ones.

use headstart_testing::Random;

/// Which operand of a product.
#[derive(Clone, Copy, PartialEq)]
pub enum Role {
    Left,
    Right,
    Sum,
}

/// The elements of a register.
#[derive(Clone, Copy, PartialEq)]
pub enum Format {
    /// Bits of the exponent, of the fraction, of an element.
    Float(u32, u32, u32),
    Integer,
}

pub const F16: Format = Format::Float(5, 10, 16);
pub const BF16: Format = Format::Float(8, 7, 16);
pub const TF32: Format = Format::Float(8, 23, 32);
pub const E4M3: Format = Format::Float(4, 3, 8);
pub const E5M2: Format = Format::Float(5, 2, 8);
pub const F32: Format = Format::Float(8, 23, 32);
pub const F64: Format = Format::Float(11, 52, 64);
pub const INT: Format = Format::Integer;

impl Format {
    pub fn bits(self) -> u32 {
        match self {
            Format::Float(.., bits) => bits,
            Format::Integer => 32,
        }
    }

    pub fn is_wide(self) -> bool {
        self.bits() == 64
    }

    /// The register's type in PTX.
    pub fn register(self, is_factor: bool) -> &'static str {
        match self {
            F64 => "f64",
            F32 if !is_factor => "f32",
            _ => "b32",
        }
    }

    /// The bits of a register in tile number `tile`: numbers near each other, of all sizes, special values, small ones, and
    /// in every fifth tile zeros of either sign.
    pub fn register_bits(self, random: &mut Random, tile: u64, role: Role) -> u64 {
        let Format::Float(exponent, fraction, bits) = self else {
            return random.bits() & 0xffff_ffff;
        };
        let (bias, top) = ((1i64 << (exponent - 1)) - 1, (1i64 << exponent) - 1);
        let spread = |factor: (i64, i64), sum: (i64, i64)| {
            let (low, high) = if role == Role::Sum { sum } else { factor };
            (bias + low, bias + high)
        };
        // Wide exponents go far below those of halves.
        let is_wide = exponent == 8;
        let (low, high) = match tile % 4 {
            3 if is_wide => spread((-80, -58), (-127, -123)),
            0 => spread((-2, 2), (-2, 2)),
            1 => spread((-14, 15), (-30, 30)),
            2 => (0, top),
            _ => spread((-14, -8), (-28, -16)),
        };
        let low = low.max(0);
        let high = high.min(top).max(low);
        // One double in eight is a NaN, to see which of several NaNs the result keeps.
        let specials = self == F64 && tile % 4 == 2;
        // Products that are all -0 show what becomes of signs, and few numbers among zeros what a zero's exponent does.
        let zeros = tile % 5 == 4;
        let one_sign = (tile % 10 == 9).then_some(u64::from(role != Role::Right));
        let is_empty = zeros && (one_sign.is_some() || random.bits() & 7 != 0);
        let mut register = 0;
        for element in 0..(32 / bits).max(1) {
            let biased = match random.between(low as u64, high as u64) {
                biased if specials && biased % 8 == 1 => top as u64,
                biased => biased,
            };
            let significand = random.bits() & ((1 << fraction) - 1);
            let sign = random.bits() & 1;
            let is_empty = is_empty || is_wide && role == Role::Sum && biased == 0 && random.bits() & 1 == 0;
            let value = match is_empty {
                true => one_sign.unwrap_or(sign) << (bits - 1),
                false => sign << (bits - 1) | biased << fraction | significand,
            };
            register |= value << (bits * element);
        }
        register
    }
}
