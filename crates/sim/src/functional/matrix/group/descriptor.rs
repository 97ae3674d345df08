//! Matrices in shared memory as a descriptor of 64 bits names them, in pieces of 16 bytes.
//!
//! | bits | contents |
//! |---|---|
//! | 0–13 | the first byte's address, in units of 16 bytes: of an address, its lowest 18 bits |
//! | 16–29 | the leading offset, the same |
//! | 32–45 | the stride, the same |
//! | 49–51 | the line of 128 bytes at which the swizzled pattern begins |
//! | 62–63 | the swizzled width: 0 none, 1 128 bytes, 2 64, 3 32 |
//!
//! A *line* is as long as the swizzled width, or 16 bytes. Where a matrix is stored along `k`, a row of it lies in a line, eight
//! rows in lines below each other, and the stride leads to the next eight. Else a line holds elements of one `k`, eight lines
//! those of eight, and the leading offset leads to the elements beside them, the stride to the next eight of `k`; without
//! swizzling these two change places. Swizzling changes the 16-byte piece of a line by the line's number, from the address.
//!
//! PTX documents this ("Asynchronous Warpgroup Level Matrix Shared Memory Layout"); the pieces below are what an H200 reads
//! with 108 descriptors, of both operands and both orders, read off its registers.

/// Bytes of a piece.
pub(crate) const PIECE: u32 = 16;

/// The bits of an address that a descriptor has.
const WINDOW: u32 = (1 << 18) - 1;

/// A descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Descriptor {
    start: u32,
    leading: u32,
    stride: u32,
    base: u32,
    /// Lines are 16 bytes, shifted by this.
    width: u32,
}

/// How the elements of a matrix follow each other in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Those of one row of A, or column of B.
    AlongK,
    /// Those of one `k`: elements of 16 bits alone.
    AcrossK,
}

/// Elements that lie in 16 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Where, as far as a descriptor says: the lowest 18 bits of the address.
    pub address: u32,
    /// The row of A, or column of B, of the first.
    pub line: u32,
    /// Its `k`.
    pub inner: u32,
}

impl Descriptor {
    /// That of these bits.
    pub(crate) fn new(bits: u64) -> Descriptor {
        let field = |at: u32| (bits >> at) as u32 & 0x3fff;
        Descriptor {
            start: field(0) * PIECE,
            leading: field(16) * PIECE,
            stride: field(32) * PIECE,
            base: (bits >> 49) as u32 & 7,
            width: match bits >> 62 {
                0 => 0,
                1 => 3,
                2 => 2,
                _ => 1,
            },
        }
    }

    /// The pieces of these rows of A, or columns of B. Each row or column has 32 bytes along `k`, each piece `per_piece` elements.
    pub(crate) fn pieces(
        self,
        lines: std::ops::Range<u32>,
        order: Order,
        per_piece: u32,
    ) -> impl Iterator<Item = Piece> {
        let length = PIECE << self.width;
        // Of the two directions, the one in which a piece has several elements is the inner one.
        let (outer, inner) = match order {
            Order::AlongK => (lines, 0..2),
            Order::AcrossK => (0..2 * per_piece, lines.start / per_piece..lines.end / per_piece),
        };
        let pairs = outer.flat_map(move |outer| inner.clone().map(move |inner| (outer, inner)));
        pairs.map(move |(outer, inner)| {
            let (down, across) = match (order, self.width) {
                (Order::AlongK, 0) => (self.stride, self.leading),
                (Order::AlongK, _) => (self.stride, 0),
                (Order::AcrossK, 0) => (self.leading, self.stride),
                (Order::AcrossK, _) => (self.stride, self.leading),
            };
            let (within, beside) = match (order, self.width) {
                (Order::AlongK, 1..) => (inner, 0),
                (_, width) => (inner & ((1 << width) - 1), inner >> width),
            };
            let plain = self.start + outer / 8 * down + outer % 8 * length + beside * across + within * PIECE;
            let number = (plain >> 7).wrapping_sub(self.base) & ((1 << self.width) - 1);
            let (line, inner) = match order {
                Order::AlongK => (outer, inner * per_piece),
                Order::AcrossK => (inner * per_piece, outer),
            };
            Piece {
                address: (plain ^ (number * PIECE)) & WINDOW,
                line,
                inner,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn descriptor(start: u64, leading: u64, stride: u64, base: u64, swizzle: u64) -> Descriptor {
        Descriptor::new(start >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | base << 49 | swizzle << 62)
    }

    fn address(descriptor: Descriptor, order: Order, line: u32, inner: u32) -> u32 {
        let mut pieces = descriptor.pieces(0..256, order, 8);
        let found = pieces.find(|piece| match order {
            Order::AlongK => piece.line == line && piece.inner == inner / 8 * 8,
            Order::AcrossK => piece.inner == inner && piece.line == line / 8 * 8,
        });
        found.expect("a piece").address
    }

    #[test]
    fn pieces_without_swizzling_are_blocks_of_eight_lines() {
        let of = descriptor(0x400, 128, 256, 0, 0);
        assert_eq!(address(of, Order::AlongK, 0, 0), 0x400);
        assert_eq!(address(of, Order::AlongK, 3, 8), 0x400 + 3 * 16 + 128);
        assert_eq!(address(of, Order::AlongK, 9, 0), 0x400 + 16 + 256);
        // Across, eight elements of a line are one piece: the stride leads to the next.
        assert_eq!(address(of, Order::AcrossK, 8, 3), 0x400 + 3 * 16 + 256);
        assert_eq!(address(of, Order::AcrossK, 0, 9), 0x400 + 16 + 128);
    }

    #[test]
    fn swizzled_pieces_depend_on_their_line() {
        let wide = descriptor(0, 16, 1024, 0, 1);
        assert_eq!(address(wide, Order::AlongK, 0, 8), 16);
        assert_eq!(address(wide, Order::AlongK, 1, 0), 128 + 16);
        assert_eq!(address(wide, Order::AlongK, 10, 8), 1024 + 2 * 128 + 3 * 16);
        let narrow = descriptor(0, 16, 256, 0, 3);
        assert_eq!(
            address(narrow, Order::AlongK, 3, 0),
            3 * 32,
            "the first four lines of 32 bytes"
        );
        assert_eq!(address(narrow, Order::AlongK, 4, 0), 4 * 32 + 16);
        let across = descriptor(0, 2048, 1024, 0, 1);
        assert_eq!(address(across, Order::AcrossK, 8, 2), 2 * 128 + 3 * 16);
        assert_eq!(address(across, Order::AcrossK, 64, 9), 2048 + 1024 + 128 + 16);
        let middle = descriptor(0, 2048, 512, 0, 2);
        assert_eq!(address(middle, Order::AcrossK, 40, 0), 2048 + 16);
    }

    #[test]
    fn a_pattern_may_begin_in_the_middle() {
        let moved = descriptor(384, 16, 1024, 3, 1);
        assert_eq!(address(moved, Order::AlongK, 0, 0), 384);
        assert_eq!(address(moved, Order::AlongK, 1, 0), 512 + 16);
        let whole = descriptor(384, 16, 1024, 0, 1);
        assert_eq!(address(whole, Order::AlongK, 0, 0), 384 + 3 * 16);
    }

    #[test]
    fn a_quarter_of_the_rows_are_those_of_a_sub_group() {
        let of = descriptor(0, 128, 256, 0, 0);
        let rows: Vec<u32> = of
            .pieces(16..32, Order::AlongK, 8)
            .map(|piece| piece.line)
            .collect();
        assert_eq!((rows.len(), rows[0], rows[31]), (32, 16, 31));
        let across: Vec<Piece> = of.pieces(16..32, Order::AcrossK, 8).collect();
        assert_eq!((across.len(), across[0].line, across[1].line), (32, 16, 24));
        assert_eq!(across[1].address, 3 * 256);
    }
}
