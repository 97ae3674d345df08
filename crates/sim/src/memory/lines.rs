//! From the addresses of a sub-group's work-items to cache lines and sectors.

/// An access of a sub-group: where each active work-item reads or writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access<'a> {
    /// The address of each work-item; those of inactive ones do not count.
    pub addresses: &'a [u64],
    /// Bit i is set if work-item i is active.
    pub mask: u64,
    /// Bytes of each work-item, aligned to their number: 1 to 16.
    pub bytes: u32,
}

impl Access<'_> {
    /// The addresses of the active work-items.
    pub(super) fn active(&self) -> impl Iterator<Item = u64> + '_ {
        let mask = self.mask;
        let lanes = self.up_to_last_active().iter().enumerate();
        lanes.filter_map(move |(lane, &address)| (mask >> lane & 1 == 1).then_some(address))
    }

    /// The addresses up to that of the last active work-item: narrow sub-groups leave half of them empty.
    pub(super) fn up_to_last_active(&self) -> &[u64] {
        let end = (u64::BITS - self.mask.leading_zeros()) as usize;
        &self.addresses[..end.min(self.addresses.len())]
    }

    /// How many neighbours at most have the same address.
    pub(super) fn most_alike(&self) -> u32 {
        let (mut most, mut run, mut last) = (0, 0, None);
        for address in self.active() {
            run = if last == Some(address) { run + 1 } else { 1 };
            last = Some(address);
            most = most.max(run);
        }
        most
    }

    /// How many work-items are active.
    pub(super) fn count(&self) -> u32 {
        self.mask.count_ones()
    }
}

/// Lines that a sub-group can touch with one instruction: two for each work-item, so that an
/// unaligned access is no special case.
const MOST_LINES: usize = 128;

/// The different lines that one access touches, in the order of the work-items.
#[derive(Clone, Debug)]
pub(super) struct Lines {
    numbers: [u64; MOST_LINES],
    sectors: [u8; MOST_LINES],
    count: usize,
}

/// The sizes of lines and sectors, as shifts.
#[derive(Clone, Copy, Debug)]
pub(super) struct LineShape {
    line_shift: u32,
    sector_shift: u32,
}

impl LineShape {
    /// `line` and `sector` are powers of two, with at most 8 sectors a line.
    pub(super) fn new(line: u64, sector: u64) -> LineShape {
        LineShape {
            line_shift: line.trailing_zeros(),
            sector_shift: sector.trailing_zeros(),
        }
    }

    /// Sectors of a line.
    pub(super) fn sectors(self) -> usize {
        1 << (self.line_shift - self.sector_shift)
    }

    /// Bytes of a sector.
    pub(super) fn sector_bytes(self) -> u64 {
        1 << self.sector_shift
    }

    /// Bytes of a line.
    pub(super) fn line_bytes(self) -> u64 {
        1 << self.line_shift
    }

    /// Bits of an address within a line.
    pub(super) fn line_shift(self) -> u32 {
        self.line_shift
    }

    /// Widens a set of sectors to whole, aligned blocks of `bytes`.
    pub(super) fn widen(self, sectors: u8, bytes: u64) -> u8 {
        let block = ((bytes >> self.sector_shift) as usize).clamp(1, self.sectors());
        let ones = ((1u16 << block) - 1) as u8;
        let starts = (0..self.sectors()).step_by(block);
        starts
            .map(|start| ones << start)
            .filter(|block| block & sectors != 0)
            .fold(0, |all, block| all | block)
    }
}

impl Lines {
    /// The lines of an access.
    pub(super) fn of(access: &Access, shape: LineShape) -> Lines {
        let mut lines = Lines {
            numbers: [0; MOST_LINES],
            sectors: [0; MOST_LINES],
            count: 0,
        };
        // A table over the low bits of the line numbers finds lines seen before without a search.
        let mut seen = [u8::MAX; 2 * MOST_LINES];
        for address in access.active() {
            let last = address.wrapping_add(u64::from(access.bytes.max(1)) - 1);
            let mut sector = address >> shape.sector_shift;
            loop {
                let number = sector >> (shape.line_shift - shape.sector_shift);
                let bit = 1u8 << (sector as usize & (shape.sectors() - 1));
                lines.add(number, bit, &mut seen);
                if sector == last >> shape.sector_shift {
                    break;
                }
                sector = sector.wrapping_add(1);
            }
        }
        lines
    }

    fn add(&mut self, number: u64, sectors: u8, seen: &mut [u8; 2 * MOST_LINES]) {
        if self.count > 0 && self.numbers[self.count - 1] == number {
            self.sectors[self.count - 1] |= sectors;
            return;
        }
        let mut place = number as usize % seen.len();
        while seen[place] != u8::MAX {
            let index = usize::from(seen[place]);
            if self.numbers[index] == number {
                self.sectors[index] |= sectors;
                return;
            }
            place = (place + 1) % seen.len();
        }
        if self.count == MOST_LINES {
            return;
        }
        seen[place] = self.count as u8;
        self.numbers[self.count] = number;
        self.sectors[self.count] = sectors;
        self.count += 1;
    }

    /// Each line's number, with the set of its sectors.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, u8)> + '_ {
        (0..self.count).map(|index| (self.numbers[index], self.sectors[index]))
    }

    /// How many lines there are.
    pub(super) fn len(&self) -> usize {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(addresses: &[u64], mask: u64, bytes: u32) -> Vec<(u64, u8)> {
        let access = Access {
            addresses,
            mask,
            bytes,
        };
        Lines::of(&access, LineShape::new(128, 32)).iter().collect()
    }

    #[test]
    fn neighbours_share_a_line() {
        let addresses: Vec<u64> = (0..32).map(|lane| 0x1000 + 4 * lane).collect();
        assert_eq!(lines(&addresses, u64::from(u32::MAX), 4), [(0x20, 0b1111)]);
        assert_eq!(lines(&addresses, 0b1111_1111, 4), [(0x20, 0b0001)]);
        let addresses: Vec<u64> = (0..32).map(|lane| 0x1000 + 8 * lane).collect();
        assert_eq!(
            lines(&addresses, u64::from(u32::MAX), 8),
            [(0x20, 0b1111), (0x21, 0b1111)]
        );
    }

    #[test]
    fn scattered_addresses_are_merged_wherever_they_stand() {
        // Lines 0, 128, 256 fall on the same place of the table.
        let addresses: Vec<u64> = (0..32)
            .map(|lane| (lane % 3) * 128 * 128 + lane / 3 % 4 * 32)
            .collect();
        let mut found = lines(&addresses, u64::from(u32::MAX), 4);
        found.sort();
        assert_eq!(found, [(0, 0b1111), (128, 0b1111), (256, 0b1111)]);
    }

    #[test]
    fn every_work_item_can_have_a_line_of_its_own() {
        let addresses: Vec<u64> = (0..32).map(|lane| lane * 4096).collect();
        assert_eq!(lines(&addresses, u64::from(u32::MAX), 4).len(), 32);
        assert_eq!(lines(&addresses, 0, 4).len(), 0);
    }

    #[test]
    fn sectors_widen_to_blocks() {
        let shape = LineShape::new(128, 32);
        assert_eq!(shape.widen(0b0010, 64), 0b0011);
        assert_eq!(shape.widen(0b0101, 64), 0b1111);
        assert_eq!(shape.widen(0b1000, 128), 0b1111);
        assert_eq!(shape.widen(0b1000, 32), 0b1000);
        assert_eq!(LineShape::new(64, 64).widen(1, 64), 1);
    }
}
