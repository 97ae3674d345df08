//! A work-item's frame in private memory: where each spilled value is stored.
//!
//! Values that are never live at the same time share a place, as in a compiler's stack frame. The live range of a value is one
//! interval of the program, from its first definition to its last use: loops make the values that cross them live throughout.

use std::ops::Range;

use cranelift_entity::SecondaryMap;

use super::draft::{Draft, Virtual};
use super::liveness::visit_live;

/// The bytes of a place: a 32-bit register.
const WORD: u32 = 4;

/// The places of spilled values.
pub(crate) struct Frame {
    /// For each register of the program before spilling, the drafts between its first definition and its last use.
    ranges: SecondaryMap<Virtual, Range<usize>>,
    /// For each word of the frame, the ranges of the values in it.
    words: Vec<Vec<Range<usize>>>,
}

impl Frame {
    /// An empty frame for a program with `registers` virtual registers.
    pub(crate) fn new(drafts: &[Draft], registers: usize) -> Frame {
        let mut ranges: SecondaryMap<Virtual, Range<usize>> = SecondaryMap::new();
        let mut add = |register: Virtual, index: usize, after: usize| {
            let range = &mut ranges[register];
            *range = match range.start == range.end {
                true => index..after,
                false => range.start.min(index)..range.end.max(after),
            };
        };
        visit_live(drafts, registers, |index, live| {
            live.iter().for_each(|register| add(register, index, index + 1));
            // A value that dies here makes room for one that is defined here.
            let draft = &drafts[index];
            draft
                .defines
                .iter()
                .for_each(|&register| add(register, index, index + 1));
        });
        Frame {
            ranges,
            words: Vec::new(),
        }
    }

    /// The offset of a value in bytes, a multiple of its size. The value has `width` 32-bit registers.
    pub(crate) fn place(&mut self, register: Virtual, width: u32) -> u32 {
        let range = self.ranges[register].clone();
        let is_free = |word: &[Range<usize>]| {
            word.iter()
                .all(|other| other.end <= range.start || range.end <= other.start)
        };
        let width = width.max(1) as usize;
        let words = &self.words;
        let fits = |first: &usize| {
            let mut taken = words.iter().skip(*first).take(width);
            taken.all(|word| is_free(word))
        };
        // The end of the frame always fits.
        let first = (0..).step_by(width).find(fits).unwrap_or(0);
        if self.words.len() < first + width {
            self.words.resize(first + width, Vec::new());
        }
        for word in &mut self.words[first..first + width] {
            word.push(range.clone());
        }
        first as u32 * WORD
    }

    /// The bytes of the frame.
    pub(crate) fn bytes(&self) -> u32 {
        self.words.len() as u32 * WORD
    }
}

#[cfg(test)]
mod tests {
    use cranelift_entity::EntityRef;

    use super::super::program::{Class, Control};
    use super::*;
    use crate::ir::Kernel;

    fn draft(defines: &[usize], uses: &[usize]) -> Draft {
        let registers = |numbers: &[usize]| numbers.iter().map(|&number| Virtual::new(number)).collect();
        Draft {
            defines: registers(defines),
            uses: registers(uses),
            ..Draft::new(Class::Int32, Kernel::NOWHERE)
        }
    }

    #[test]
    fn values_of_different_times_share_a_place() {
        // 1 is defined where 0 dies, 2 is live beside both.
        let drafts = [
            draft(&[0], &[]),
            draft(&[2], &[]),
            draft(&[1], &[0]),
            draft(&[], &[1, 2]),
        ];
        let mut frame = Frame::new(&drafts, 3);
        let places = [0, 1, 2].map(|number| frame.place(Virtual::new(number), 1));
        assert_eq!((places, frame.bytes()), ([0, 0, 4], 8));
    }

    #[test]
    fn a_value_that_crosses_a_loop_keeps_its_place_throughout() {
        let marker = |control| Draft::marker(control, Kernel::NOWHERE);
        let drafts = [
            draft(&[0], &[]),
            marker(Control::Loop { depth: 0, end: 0 }),
            draft(&[], &[0]),
            draft(&[1], &[]),
            draft(&[], &[1]),
            marker(Control::Continue { depth: 0 }),
            marker(Control::EndLoop { depth: 0, body: 0 }),
        ];
        let mut frame = Frame::new(&drafts, 2);
        assert_eq!([0, 1].map(|number| frame.place(Virtual::new(number), 1)), [0, 4]);
    }

    #[test]
    fn wide_values_are_aligned() {
        let drafts = [draft(&[0], &[]), draft(&[1], &[]), draft(&[], &[0, 1])];
        let mut frame = Frame::new(&drafts, 2);
        assert_eq!(
            (frame.place(Virtual::new(0), 1), frame.place(Virtual::new(1), 2)),
            (0, 8)
        );
        assert_eq!(frame.bytes(), 16);
    }
}
