//! Rust's types as a kernel's memory holds them, shared by host programs and the kernel language.

use half::{bf16, f16};

use super::types::Type;

/// A Rust type that a buffer may hold.
pub trait Element: Copy + Send + Sync + 'static {
    /// Its type in the IR.
    const TYPE: Type;

    /// Its bits, in the low end.
    fn to_bits(self) -> u64;

    /// The element with these bits.
    fn from_bits(bits: u64) -> Self;
}

macro_rules! integers {
    ($($rust:ty: $ir:ident through $unsigned:ty),+ $(,)?) => {$(
        impl Element for $rust {
            const TYPE: Type = Type::$ir;

            fn to_bits(self) -> u64 {
                u64::from(self as $unsigned)
            }

            fn from_bits(bits: u64) -> Self {
                bits as $rust
            }
        }
    )+};
}

integers!(u8: I8 through u8, i8: I8 through u8, u16: I16 through u16, i16: I16 through u16);
integers!(u32: I32 through u32, i32: I32 through u32, u64: I64 through u64, i64: I64 through u64);

/// Pointer-sized integers have 64 bits on every device.
macro_rules! pointer_sized {
    ($($rust:ty),+) => {$(
        impl Element for $rust {
            const TYPE: Type = Type::I64;

            fn to_bits(self) -> u64 {
                self as u64
            }

            fn from_bits(bits: u64) -> Self {
                bits as $rust
            }
        }
    )+};
}

pointer_sized!(usize, isize);

macro_rules! floats {
    ($($rust:ty: $ir:ident as $bits:ty),+ $(,)?) => {$(
        impl Element for $rust {
            const TYPE: Type = Type::$ir;

            fn to_bits(self) -> u64 {
                u64::from(<$rust>::to_bits(self))
            }

            fn from_bits(bits: u64) -> Self {
                <$rust>::from_bits(bits as $bits)
            }
        }
    )+};
}

floats!(f16: F16 as u16, bf16: Bf16 as u16, f32: F32 as u32, f64: F64 as u64);

impl Element for bool {
    const TYPE: Type = Type::Bool;

    fn to_bits(self) -> u64 {
        u64::from(self)
    }

    fn from_bits(bits: u64) -> Self {
        bits & 1 != 0
    }
}

/// The elements of a `TypedBuffer`: scalars, arrays of them, and structs (`#[derive(Data)]` makes one such).
///
/// On a device it lies as a sequence of scalars of one type, its unit, little-endian.
#[diagnostic::on_unimplemented(
    message = "a buffer cannot hold `{Self}`",
    note = "accepted: i8 to i64, u8 to u64, isize, usize, f16, bf16, f32, f64, bool, arrays of them, and structs with \
            `#[derive(Clone, Copy, Data)]`"
)]
pub trait Item: Copy + Send + Sync + 'static {
    /// The unit in which the buffer underneath is counted.
    const UNIT: Type;

    /// Its size on a device, a multiple of the unit's.
    const BYTES: usize;

    /// Writes it to the first `BYTES` bytes.
    fn write(&self, bytes: &mut [u8]);

    /// Reads it from the first `BYTES` bytes.
    fn read(bytes: &[u8]) -> Self;
}

impl<T: Element> Item for T {
    const UNIT: Type = T::TYPE;
    const BYTES: usize = T::TYPE.bytes() as usize;

    fn write(&self, bytes: &mut [u8]) {
        bytes[..Self::BYTES].copy_from_slice(&self.to_bits().to_le_bytes()[..Self::BYTES]);
    }

    fn read(bytes: &[u8]) -> Self {
        let mut bits = [0; 8];
        bits[..Self::BYTES].copy_from_slice(&bytes[..Self::BYTES]);
        T::from_bits(u64::from_le_bytes(bits))
    }
}

impl<T: Item, const N: usize> Item for [T; N] {
    const UNIT: Type = T::UNIT;
    const BYTES: usize = {
        assert!(N >= 1, "an array in a buffer has elements");
        T::BYTES * N
    };

    fn write(&self, bytes: &mut [u8]) {
        for (item, bytes) in self.iter().zip(bytes.chunks_mut(T::BYTES)) {
            item.write(bytes);
        }
    }

    fn read(bytes: &[u8]) -> Self {
        std::array::from_fn(|number| T::read(&bytes[number * T::BYTES..]))
    }
}
