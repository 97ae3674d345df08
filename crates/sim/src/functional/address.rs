//! The simulator's address space.
//!
//! An address names its buffer or array, so that one that leaves its own is caught even where another
//! would begin:
//!
//! | space | address |
//! |---|---|
//! | global | (number of the buffer + 1) · 2⁴⁰ + offset |
//! | shared, private | (number of the array + 1) · 2²³ + offset: it fits 32 bits |
//! | generic | the same, with 1 (shared) or 2 (private) in the top four bits |

use crate::ir::{Array, ArrayData, Kernel, Space};

const GLOBAL_BITS: u32 = 40;
/// The verifier admits at most 256 arrays, each smaller than half of 2²³ bytes.
const LOCAL_BITS: u32 = 23;
const WINDOW_BITS: u32 = 60;

/// Most buffers of a launch: their numbers lie below the generic windows.
pub(super) const MOST_BUFFERS: usize = (1 << (WINDOW_BITS - GLOBAL_BITS)) - 2;

/// Where a launch's buffer starts.
pub(crate) fn buffer_address(buffer: usize) -> u64 {
    (buffer as u64 + 1) << GLOBAL_BITS
}

/// A buffer in a set of buffers; those beyond the first 63 are one.
pub(super) fn bit_of(buffer: usize) -> u64 {
    1 << buffer.min(63)
}

/// Where an array starts in its space.
pub(crate) fn array_address(array: Array) -> u64 {
    (u64::from(array.as_u32()) + 1) << LOCAL_BITS
}

/// A generic address: its space, and the address there.
#[doc(hidden)]
pub fn from_generic(address: u64) -> (Space, u64) {
    let rest = address & ((1 << WINDOW_BITS) - 1);
    match address >> WINDOW_BITS {
        1 => (Space::Shared, rest),
        2 => (Space::Private, rest),
        _ => (Space::Global, address),
    }
}

/// An address of a space as a generic one.
pub(crate) fn to_generic(space: Space, address: u64) -> u64 {
    match space {
        Space::Shared => address | 1 << WINDOW_BITS,
        Space::Private => address | 2 << WINDOW_BITS,
        Space::Global | Space::Generic => address,
    }
}

/// The buffer or array that an address is meant for, and the byte offset in it; negative if it lies
/// shortly before.
pub(super) fn split(space: Space, address: u64) -> (Option<usize>, i64) {
    let bits = match space {
        Space::Global | Space::Generic => GLOBAL_BITS,
        Space::Shared | Space::Private => LOCAL_BITS,
    };
    let low = address & ((1 << bits) - 1);
    let number = (address >> bits) as usize;
    // A negative offset lies at the end of the preceding number.
    if low >> (bits - 1) == 0 {
        (number.checked_sub(1), low as i64)
    } else {
        (Some(number), low as i64 - (1 << bits))
    }
}

/// Where the arrays of one space lie in the memory that holds them.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    space: Space,
    /// Start and size of each array of the kernel, in bytes; size 0 in another space.
    arrays: Vec<(u64, u64)>,
    bytes: u64,
}

impl Layout {
    /// The layout of a verified kernel's shared or private arrays.
    pub(crate) fn new(kernel: &Kernel, space: Space) -> Layout {
        let place = |(array, data): (Array, &ArrayData)| match data.space == space {
            true => (kernel.array_offset(array), data.bytes()),
            false => (0, 0),
        };
        let arrays = kernel.arrays.iter().map(place).collect();
        let bytes = match space {
            Space::Shared => kernel.shared_bytes(),
            _ => kernel.private_bytes(),
        };
        Layout { space, arrays, bytes }
    }

    /// Bytes of all arrays.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The offset, in the memory that holds all arrays, of `size` bytes at an address; `None` if they do
    /// not lie inside one array.
    #[inline]
    pub(crate) fn offset(&self, address: u64, size: u32) -> Option<u64> {
        let (array, offset) = split(self.space, address);
        let &(start, bytes) = self.arrays.get(array?)?;
        let offset = u64::try_from(offset).ok()?;
        (offset + u64::from(size) <= bytes).then_some(start + offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::Type;

    #[test]
    fn addresses_name_their_buffer_on_either_side() {
        assert_eq!(split(Space::Global, buffer_address(3) + 12), (Some(3), 12));
        assert_eq!(split(Space::Global, buffer_address(3) - 4), (Some(3), -4));
        assert_eq!(split(Space::Global, 8), (None, 8));
        for space in [Space::Global, Space::Shared, Space::Private] {
            let address = array_address(Array::from_u32(1)) + 8;
            assert_eq!(from_generic(to_generic(space, address)), (space, address));
        }
    }

    #[test]
    fn an_array_ends_where_the_next_begins() {
        let mut kernel = Kernel::new("k");
        for length in [3, 5] {
            kernel.arrays.push(ArrayData {
                name: format!("a{length}"),
                space: Space::Shared,
                element: Type::F32,
                length,
                align: 16,
            });
        }
        let layout = Layout::new(&kernel, Space::Shared);
        let [first, second] = [0, 1].map(|array| array_address(Array::from_u32(array)));
        assert_eq!(layout.offset(first + 8, 4), Some(8));
        assert_eq!(layout.offset(first + 12, 4), None);
        assert_eq!(layout.offset(first - 4, 4), None);
        assert_eq!(layout.offset(second + 16, 4), Some(32));
        assert_eq!(layout.bytes(), 36);
    }
}
