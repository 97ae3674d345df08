//! Whether a launch meets what a better kernel assumes.

use super::Replacement;
use crate::facts::{Fact, MOST_WORDS, Place};
use crate::launches::Launch;
use crate::memory::{self, MemoryKind};
use crate::reach;

/// What was found for the words of a launch.
#[derive(Clone, Copy)]
pub(super) struct Seen {
    words: [u64; MOST_WORDS],
    grid: [u32; 3],
    changes: u64,
    holds: bool,
}

impl Replacement {
    /// Whether a launch meets all facts.
    ///
    /// # Safety
    /// It is one that the driver takes.
    pub(super) unsafe fn holds(&self, launch: &Launch) -> bool {
        let mut words = [0u64; MOST_WORDS];
        // SAFETY: the caller's.
        if !unsafe { self.words(launch, &mut words) } {
            return false;
        }
        let shapes = self.facts.iter().all(|fact| match *fact {
            Fact::Group(group) => group == launch.block,
            Fact::Shared(bytes) => bytes == launch.shared_bytes,
            _ => true,
        });
        if !shapes {
            return false;
        }
        let changes = memory::changes();
        let last = *self.last.take();
        let is_same =
            |seen: &Seen| seen.changes == changes && seen.words == words && seen.grid == launch.grid;
        if let Some(seen) = last.filter(is_same) {
            return seen.holds;
        }
        let word = |place: Place| -> u64 {
            let number = self.places.iter().position(|own| *own == place);
            number.map_or(0, |number| words[number])
        };
        let holds = self.facts.iter().all(|fact| match *fact {
            Fact::Group(_) | Fact::Shared(_) => true,
            Fact::Apart(one, other) => {
                let both = (memory::at(word(one)), memory::at(word(other)));
                let (Some(one_in), Some(other_in)) = both else {
                    // Nothing is accessed through a null pointer.
                    return word(one) == 0 || word(other) == 0;
                };
                // What others may write is apart from nothing.
                one_in.kind != MemoryKind::Foreign
                    && other_in.kind != MemoryKind::Foreign
                    && (one_in.start != other_in.start || self.are_apart(one, other, &word, launch.grid))
            }
            Fact::Ends(place, length, size) => {
                let address = word(place);
                memory::at(address).is_some_and(|own| own.start == address && own.bytes / size == length)
            }
            Fact::Aligned(place, bytes) => word(place) % bytes == 0,
            Fact::Known(place) => {
                let address = word(place);
                address == 0 || memory::at(address).is_some_and(|own| own.kind != MemoryKind::Foreign)
            }
        });
        *self.last.take() = Some(Seen {
            words,
            grid: launch.grid,
            changes,
            holds,
        });
        holds
    }

    /// Whether a launch reaches no byte through both of two pointers into one allocation.
    fn are_apart(&self, one: Place, other: Place, word: &impl Fn(Place) -> u64, grid: [u32; 3]) -> bool {
        let number = |pointer: Place| self.reaches.number(pointer.index, pointer.inside);
        let (Some(first), Some(second)) = (number(one), number(other)) else {
            return false;
        };
        let reached = self
            .reaches
            .of(&self.reached, |scalar| word(Place::of(scalar)), grid);
        let (Some(one_reached), Some(other_reached)) = (reached[first], reached[second]) else {
            return false;
        };
        reach::are_apart((word(one), one_reached), (word(other), other_reached))
    }

    /// The words at all places; false if they cannot be had.
    unsafe fn words(&self, launch: &Launch, words: &mut [u64; MOST_WORDS]) -> bool {
        if self.places.is_empty() {
            return true;
        }
        if launch.parameters.is_null() {
            // Packed parameters have other places.
            return false;
        }
        for (word, place) in words.iter_mut().zip(&self.places) {
            // SAFETY: the launch has a pointer to each parameter, and the kernel a pointer or a number at this place of it.
            *word = unsafe {
                let parameter = (*launch.parameters.add(place.index))
                    .cast::<u8>()
                    .add(place.inside);
                match place.bytes {
                    1 => u64::from(parameter.read()),
                    2 => u64::from(parameter.cast::<u16>().read_unaligned()),
                    4 => u64::from(parameter.cast::<u32>().read_unaligned()),
                    _ => parameter.cast::<u64>().read_unaligned(),
                }
            };
        }
        true
    }
}
