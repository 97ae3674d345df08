//! Contents of a buffer as a function of the element's index, so that a table of a gigabyte need not
//! exist before it is read.

use std::fmt;
use std::num::NonZero;
use std::sync::Arc;

use half::{bf16, f16};

use crate::ir::Type;
use crate::random::splitmix64;

/// The value of element `i` of a buffer. All variants except [`Pattern::Function`] are closed forms that a device can generate
/// itself.
#[derive(Clone)]
pub enum Pattern {
    /// Every element has these bits.
    Constant(u64),
    /// Integers `first + i × step`, wrapping.
    Steps {
        /// Element 0.
        first: u64,
        /// The difference between elements.
        step: u64,
    },
    /// Integers from 0 to `bound - 1`: `splitmix64(i, seed) % bound` ([`splitmix64`]).
    Below {
        /// One more than the largest; at least 1.
        bound: u64,
        /// Another seed, other numbers.
        seed: u64,
    },
    /// Floats `low + k / 65536` with `k = (i × 2654435761 >> 8) & 0xffff`, in 64 bits, then rounded to the
    /// element's type (exact in `F32` and `F64` for a small integer `low`).
    Fractions {
        /// The least.
        low: f64,
    },
    /// Random bits: the low ones of `splitmix64(i, seed)`.
    Bits {
        /// Another seed, other bits.
        seed: u64,
    },
    /// Any function from the index to the element's bits, computed on the host.
    Function(Arc<dyn Fn(u64) -> u64 + Send + Sync>),
}

/// Elements for which starting a thread takes longer than computing them.
const FEW: u64 = 1 << 16;

impl Pattern {
    /// [`Pattern::Below`].
    pub const fn below(bound: u64, seed: u64) -> Pattern {
        Pattern::Below { bound, seed }
    }

    /// Whether it is known to give the same elements as another: functions, only where they are one and the same.
    #[doc(hidden)]
    pub(crate) fn is_same(&self, other: &Pattern) -> bool {
        match (self, other) {
            (Pattern::Constant(one), Pattern::Constant(other)) => one == other,
            (
                Pattern::Steps { first, step },
                Pattern::Steps {
                    first: other,
                    step: another,
                },
            ) => (first, step) == (other, another),
            (
                Pattern::Below { bound, seed },
                Pattern::Below {
                    bound: other,
                    seed: another,
                },
            ) => (bound, seed) == (other, another),
            (Pattern::Fractions { low }, Pattern::Fractions { low: other }) => {
                low.to_bits() == other.to_bits()
            }
            (Pattern::Bits { seed }, Pattern::Bits { seed: other }) => seed == other,
            (Pattern::Function(one), Pattern::Function(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }

    /// The bits of element `index`.
    #[doc(hidden)]
    #[inline]
    pub fn bits(&self, element: Type, index: u64) -> u64 {
        let bits = match self {
            Pattern::Constant(bits) => *bits,
            Pattern::Steps { first, step } => first.wrapping_add(index.wrapping_mul(*step)),
            // A division takes longer than all the rest.
            Pattern::Below { bound, seed } if bound.is_power_of_two() => {
                splitmix64(index, *seed) & (bound - 1)
            }
            Pattern::Below { bound, seed } => splitmix64(index, *seed) % (*bound).max(1),
            Pattern::Fractions { low } => {
                let fraction = (index.wrapping_mul(2_654_435_761) >> 8) & 0xffff;
                float_bits(element, low + fraction as f64 / 65536.0)
            }
            Pattern::Bits { seed } => splitmix64(index, *seed),
            Pattern::Function(function) => function(index),
        };
        bits & element.mask()
    }

    /// The bytes of elements `first` up to `first + count`: of many, on all cores of the host.
    #[doc(hidden)]
    pub fn bytes(&self, element: Type, first: u64, count: u64) -> Vec<u8> {
        let size = element.bytes() as usize;
        let mut bytes = vec![0; size * count as usize];
        let write = |first: u64, part: &mut [u8]| {
            for (to, index) in part.chunks_exact_mut(size).zip(first..) {
                to.copy_from_slice(&self.bits(element, index).to_le_bytes()[..size]);
            }
        };
        let threads = match count {
            0..FEW => 1,
            _ => std::thread::available_parallelism().map_or(1, NonZero::get),
        };
        let part = (count as usize).div_ceil(threads).max(1);
        std::thread::scope(|scope| {
            for (number, own) in bytes.chunks_mut(part * size).enumerate() {
                let first = first + (number * part) as u64;
                match threads {
                    1 => write(first, own),
                    _ => drop(scope.spawn(move || write(first, own))),
                }
            }
        });
        bytes
    }
}

/// A number as the bits of a type: a float rounded to nearest, an integer truncated.
fn float_bits(element: Type, number: f64) -> u64 {
    match element {
        Type::F64 => number.to_bits(),
        Type::F32 => u64::from((number as f32).to_bits()),
        Type::F16 => u64::from(f16::from_f64(number).to_bits()),
        Type::Bf16 => u64::from(bf16::from_f64(number).to_bits()),
        _ => number as i64 as u64,
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pattern::Constant(bits) => write!(f, "Constant({bits:#x})"),
            Pattern::Steps { first, step } => write!(f, "Steps({first}, {step})"),
            Pattern::Below { bound, seed } => write!(f, "Below({bound}, seed {seed})"),
            Pattern::Fractions { low } => write!(f, "Fractions({low})"),
            Pattern::Bits { seed } => write!(f, "Bits(seed {seed})"),
            Pattern::Function(_) => f.write_str("Function"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fill_elements_of_each_size() {
        let steps = Pattern::Steps { first: 250, step: 3 };
        assert_eq!(steps.bytes(Type::I8, 0, 4), [250, 253, 0, 3]);
        assert_eq!(steps.bytes(Type::I16, 1, 1), [253, 0]);
        let fractions = Pattern::Fractions { low: 1.0 };
        let value = |index: u64| f32::from_bits(fractions.bits(Type::F32, index) as u32);
        assert_eq!(value(0), 1.0);
        assert_eq!(
            value(1),
            1.0 + ((2_654_435_761u64 >> 8) & 0xffff) as f32 / 65536.0
        );
        let below = Pattern::Below { bound: 10, seed: 7 };
        assert!((0..1000).all(|index| below.bits(Type::I32, index) < 10));
        let below = Pattern::Below { bound: 16, seed: 7 };
        assert!((0..1000).all(|index| below.bits(Type::I32, index) == splitmix64(index, 7) % 16));
    }

    #[test]
    fn many_elements_are_those_of_few() {
        let random = Pattern::Bits { seed: 3 };
        for (element, first, count) in [(Type::I16, 5, 2 * FEW + 3), (Type::F64, 0, FEW), (Type::I8, 9, 0)] {
            let bytes = random.bytes(element, first, count);
            let size = element.bytes() as usize;
            assert_eq!(bytes.len(), size * count as usize);
            for (found, index) in bytes.chunks(size).zip(first..) {
                assert_eq!(found, &random.bits(element, index).to_le_bytes()[..size]);
            }
        }
    }
}
