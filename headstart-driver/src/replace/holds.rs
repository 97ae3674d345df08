//! Whether a launch meets what a better kernel assumes.

use std::cell::OnceCell;

use super::Replacement;
use crate::extents::{self, Extents};
use crate::facts::{Fact, MOST_WORDS, Place};
use crate::launches::Launch;
use crate::memory;

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
            // SAFETY: the caller's.
            Fact::Resident => unsafe { self.resident.holds(launch, self.handle) },
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
        let number = |place: Place| self.places.iter().position(|own| *own == place);
        let word = |place: Place| -> u64 { number(place).map_or(0, |number| words[number]) };
        // A pointer is in several pairs.
        let mut extents: [Option<Option<Extents>>; MOST_WORDS] = [None; MOST_WORDS];
        let reached = OnceCell::new();
        let holds = self.facts.iter().all(|fact| match *fact {
            Fact::Group(_) | Fact::Shared(_) | Fact::Resident => true,
            Fact::Apart(one, other) => {
                let mut of = |pointer| {
                    let found = &mut extents[number(pointer)?];
                    *found.get_or_insert_with(|| {
                        let scalar = |scalar| word(Place::of(scalar));
                        let number = self.reaches.number(pointer.index, pointer.inside);
                        let all = || self.reaches.of(&self.reached, scalar, launch.grid);
                        extents::of(
                            word(pointer),
                            number.and_then(|number| reached.get_or_init(all)[number]),
                        )
                    })
                };
                match (of(one), of(other)) {
                    (Some(one), Some(other)) => one.are_apart(&other),
                    _ => false,
                }
            }
            Fact::Ends(place, length, size) => {
                let address = word(place);
                let own = memory::own_at(address);
                own.is_some_and(|own| own.start == address && own.bytes / size == length)
            }
            Fact::Aligned(place, bytes) => word(place) % bytes == 0,
            Fact::Known(place) => word(place) == 0 || memory::own_at(word(place)).is_some(),
        });
        *self.last.take() = Some(Seen {
            words,
            grid: launch.grid,
            changes,
            holds,
        });
        holds
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
