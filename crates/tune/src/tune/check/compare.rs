//! When the results of two kernels count as equal.

use crate::error::{Error, Result};
use crate::ir::Type;
use crate::report::Outputs;

/// When two contents of one output are the same.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Compare {
    /// Every bit is the same.
    #[default]
    Bits,
    /// Every bit is the same, but a NaN is as good as another: kernels that leave its bits to the device.
    BitsOrNan,
    /// The same elements in any order, as an atomic counter hands out places.
    Multiset,
    /// Any result is right, as when work-items race for a place with different values.
    Any,
    /// Numbers that differ by at most this share of the larger one, as the order of float atomics leaves them.
    Relative(f64),
    /// Numbers that differ by at most this share of the largest in the output, as sums of approximations do.
    OfLargest(f64),
}

impl Compare {
    /// Compares the bytes of an output with those that are right.
    ///
    /// # Errors
    /// They differ: the first element that does, and both its values.
    pub fn check(self, element: Type, right: &[u8], found: &[u8]) -> Result<Outputs> {
        if right == found {
            return Ok(Outputs::Identical);
        }
        let size = element.bytes() as usize;
        if size == 0 || right.len() != found.len() {
            return Err(Error::bug(format!(
                "outputs of {} and {} bytes were compared",
                right.len(),
                found.len()
            )));
        }
        let largest = self.largest(element, right);
        self.check_part(element, 0, largest, right, found)
    }

    /// The same for an output of this many bytes that is read piece by piece, so that it need not fit memory: the reader gets
    /// the first byte and the length. A [`Compare::Multiset`] is read as a whole.
    ///
    /// # Errors
    /// They differ: the first differing element, and both its values, in the form of the output's type.
    pub(crate) fn check_in_parts(
        self,
        element: Type,
        bytes: u64,
        read: &mut dyn FnMut(u64, u64) -> Result<(Vec<u8>, Vec<u8>)>,
    ) -> Result<Outputs> {
        let part = match self {
            Compare::Multiset => bytes.max(1),
            // A multiple of every element's size.
            _ => PART,
        };
        let mut largest = 0.0;
        if matches!(self, Compare::OfLargest(_)) {
            for start in (0..bytes).step_by(part as usize) {
                let (right, _) = read(start, part.min(bytes - start))?;
                largest = magnitude(largest, self.largest(element, &right));
            }
        }
        let mut all = Outputs::Identical;
        for start in (0..bytes).step_by(part as usize) {
            let (right, found) = read(start, part.min(bytes - start))?;
            if right == found {
                continue;
            }
            let first = start / u64::from(element.bytes().max(1));
            all = self.check_part(element, first, largest, &right, &found)?;
        }
        Ok(all)
    }

    /// The same of some elements, from the one numbered `first` on, of an output whose [largest](Compare::largest) magnitude
    /// is known.
    ///
    /// # Errors
    /// They differ: the first element that does, and both its values.
    pub(in crate::tune) fn check_from(
        self,
        element: Type,
        first: u64,
        largest: f64,
        right: &[u8],
        found: &[u8],
    ) -> Result<Outputs> {
        match right == found {
            true => Ok(Outputs::Identical),
            false => self.check_part(element, first, largest, right, found),
        }
    }

    /// The largest magnitude of the reference, if the comparison needs it.
    pub(in crate::tune) fn largest(self, element: Type, right: &[u8]) -> f64 {
        match self {
            Compare::OfLargest(_) => bits(right, element.bytes().max(1) as usize)
                .iter()
                .filter_map(|&bits| float(element, bits))
                .fold(0.0, magnitude),
            _ => 0.0,
        }
    }

    /// Compares elements from the one numbered `first` on.
    fn check_part(
        self,
        element: Type,
        first: u64,
        largest: f64,
        right: &[u8],
        found: &[u8],
    ) -> Result<Outputs> {
        let size = element.bytes().max(1) as usize;
        let (mut right, mut found) = (bits(right, size), bits(found, size));
        if self == Compare::Multiset {
            right.sort_unstable();
            found.sort_unstable();
        }
        let same = |(right, found): (u64, u64)| match self {
            Compare::OfLargest(share) => {
                close(element, right, found, share) || apart(element, right, found) <= share * largest
            }
            Compare::Bits | Compare::Multiset => right == found,
            Compare::Any => true,
            Compare::BitsOrNan => {
                let is_nan = |bits| float(element, bits).is_some_and(f64::is_nan);
                right == found || is_nan(right) && is_nan(found)
            }
            Compare::Relative(share) => close(element, right, found, share),
        };
        match right
            .iter()
            .copied()
            .zip(found.iter().copied())
            .position(|pair| !same(pair))
        {
            None => Ok(Outputs::Equivalent),
            Some(index) => Err(Error::input(format!(
                "element {} is {}, not {}",
                first + index as u64,
                shown(element, found[index]),
                shown(element, right[index])
            ))),
        }
    }

    /// Whether two results that are the same have the same bits, but for NaNs.
    pub(crate) fn is_exact(self) -> bool {
        matches!(self, Compare::Bits | Compare::BitsOrNan)
    }
}

/// Bytes that are compared at a time, where not all are.
pub(in crate::tune) const PART: u64 = 16 << 20;

/// A checksum of an output's bytes, to compare runs by eye: 64-bit FNV-1a
/// (Fowler, Noll, Vo; RFC 9923), in hexadecimal digits.
#[cfg(test)]
pub(crate) fn checksum(bytes: &[u8]) -> String {
    format!("{:016x}", hashed(EMPTY, bytes))
}

/// The same of bytes that come in parts.
///
/// # Errors
/// A part's.
pub(in crate::tune) fn checksum_in_parts(parts: impl IntoIterator<Item = Result<Vec<u8>>>) -> Result<String> {
    let mut hash = EMPTY;
    for part in parts {
        hash = hashed(hash, &part?);
    }
    Ok(format!("{hash:016x}"))
}

/// The hash of no bytes.
const EMPTY: u64 = 0xcbf2_9ce4_8422_2325;

fn hashed(hash: u64, bytes: &[u8]) -> u64 {
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    const ZEROS: [u8; 4096] = [0; 4096];
    // Most of a large output may be zeros still: a product for all of a piece takes the place of one for each byte.
    let of_zeros = PRIME.wrapping_pow(ZEROS.len() as u32);
    bytes
        .chunks(ZEROS.len())
        .fold(hash, |hash, piece| match piece == ZEROS {
            true => hash.wrapping_mul(of_zeros),
            false => piece
                .iter()
                .fold(hash, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME)),
        })
}

fn bits(bytes: &[u8], size: usize) -> Vec<u64> {
    let element = |bytes: &[u8]| {
        let mut bits = [0; 8];
        bits[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(bits)
    };
    bytes.chunks_exact(size).map(element).collect()
}

/// The value of a float's bits; none for other types.
fn float(element: Type, bits: u64) -> Option<f64> {
    match element {
        Type::F64 => Some(f64::from_bits(bits)),
        Type::F32 => Some(f64::from(f32::from_bits(bits as u32))),
        Type::F16 => Some(half::f16::from_bits(bits as u16).to_f64()),
        Type::Bf16 => Some(half::bf16::from_bits(bits as u16).to_f64()),
        _ => None,
    }
}

fn close(element: Type, right: u64, found: u64, share: f64) -> bool {
    match (float(element, right), float(element, found)) {
        _ if right == found => true,
        (Some(right), Some(found)) => {
            right == found
                || (right.is_nan() && found.is_nan())
                || (right - found).abs() <= share * right.abs().max(found.abs())
        }
        _ => false,
    }
}

/// The larger of two magnitudes; values that are not finite have none.
fn magnitude(largest: f64, value: f64) -> f64 {
    if value.is_finite() {
        largest.max(value.abs())
    } else {
        largest
    }
}

/// How far two numbers are apart: infinitely if they are none.
fn apart(element: Type, right: u64, found: u64) -> f64 {
    let both = float(element, right).zip(float(element, found));
    both.map_or(f64::INFINITY, |(right, found)| (right - found).abs())
}

fn shown(element: Type, bits: u64) -> String {
    match float(element, bits) {
        Some(value) => format!("{value:e} ({bits:#x})"),
        None => bits.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn floats(values: &[f32]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    #[test]
    fn in_parts_it_is_as_in_one() {
        let count = (2 * PART / 4 + 3) as usize;
        let right: Vec<f32> = (0..count).map(|n| n as f32).collect();
        let last = count - 1;
        let compared = |compare: Compare, found: &[f32]| {
            let bytes = |of: &[f32]| of.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
            let (right, found) = (bytes(&right), bytes(found));
            let mut largest_read = 0;
            let parts = compare.check_in_parts(Type::F32, right.len() as u64, &mut |start, length| {
                largest_read = length.max(largest_read);
                let range = start as usize..(start + length) as usize;
                Ok((right[range.clone()].to_vec(), found[range].to_vec()))
            });
            assert!(largest_read <= PART || compare == Compare::Multiset);
            let whole = compare.check(Type::F32, &right, &found);
            let text = |result: Result<Outputs>| result.map_err(|error| error.to_string());
            assert_eq!(text(parts.clone()), text(whole));
            parts
        };
        assert!(matches!(compared(Compare::Bits, &right), Ok(Outputs::Identical)));
        let mut found = right.clone();
        // A little beside the first, within a share of the last.
        found[1] += 0.5;
        assert!(compared(Compare::Bits, &found).is_err());
        assert!(compared(Compare::Relative(1e-3), &found).is_err());
        assert!(matches!(
            compared(Compare::OfLargest(1e-6), &found),
            Ok(Outputs::Equivalent)
        ));
        let mut found = right.clone();
        found.swap(5, last);
        assert!(matches!(
            compared(Compare::Multiset, &found),
            Ok(Outputs::Equivalent)
        ));
        let error = compared(Compare::Bits, &found).expect_err("swapped").to_string();
        assert!(error.contains("element 5 is"), "{error}");
        let mut found = right.clone();
        found[last] = 0.0;
        let error = compared(Compare::Relative(0.1), &found)
            .expect_err("the last")
            .to_string();
        assert!(error.contains(&format!("element {last} is")), "{error}");
    }

    #[test]
    fn bits_differ_by_the_sign_of_zero() {
        let (right, found) = (floats(&[1.0, 0.0]), floats(&[1.0, -0.0]));
        assert_eq!(
            Compare::Bits.check(Type::F32, &right, &right),
            Ok(Outputs::Identical)
        );
        let message = Compare::Bits
            .check(Type::F32, &right, &found)
            .expect_err("differ")
            .to_string();
        assert!(
            message.contains("element 1 is -0e0 (0x80000000), not 0e0"),
            "{message}"
        );
        assert_eq!(
            Compare::Relative(0.0).check(Type::F32, &right, &found),
            Ok(Outputs::Equivalent)
        );
    }

    #[test]
    fn a_multiset_forgets_the_order_only() {
        let check = |found: &[u8]| Compare::Multiset.check(Type::I8, &[1, 2, 2], found);
        assert_eq!(check(&[2, 1, 2]), Ok(Outputs::Equivalent));
        assert!(check(&[1, 1, 2]).is_err());
    }

    #[test]
    fn the_checksum_is_the_published_one() {
        assert_eq!(checksum(b""), "cbf29ce484222325");
        assert_eq!(checksum(b"a"), "af63dc4c8601ec8c");
        let parts = [&b"foo"[..], b"", b"bar"].map(|part| Ok(part.to_vec()));
        assert_eq!(checksum_in_parts(parts).expect("parts"), checksum(b"foobar"));
        assert_eq!(checksum(b"foobar"), "85944171f73967e8");
        // Zeros, most of them at a time, and something behind them.
        let one_by_one = |bytes: &[u8]| checksum_in_parts(bytes.iter().map(|&byte| Ok(vec![byte])));
        let mut bytes = vec![0; 10_000];
        assert_eq!(checksum(&bytes), one_by_one(&bytes).expect("parts"));
        bytes[9_000] = 1;
        assert_eq!(checksum(&bytes), one_by_one(&bytes).expect("parts"));
    }

    #[test]
    fn a_tolerance_is_relative() {
        let check =
            |found: f32| Compare::Relative(1e-3).check(Type::F32, &floats(&[1000.0]), &floats(&[found]));
        assert_eq!(check(1000.5), Ok(Outputs::Equivalent));
        assert!(check(1002.0).is_err());
        assert!(check(f32::NAN).is_err());
    }
}
