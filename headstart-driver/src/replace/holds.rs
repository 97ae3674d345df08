//! Whether a launch meets what a better kernel assumes, and which fact it does not meet.

use std::cell::OnceCell;
use std::fmt;

use super::Replacement;
use crate::extents::{self, Extents};
use crate::facts::{Fact, MOST_WORDS, Place};
use crate::launches::Launch;
use crate::memory;
use crate::record::REFUSALS;

/// Why a launch takes the original.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A fact, by its number, does not hold.
    Fact(usize),
    /// The parameters are packed: they have other places.
    Packed,
    /// The addresses that the better kernel keeps are of another context.
    Elsewhere,
}

/// What was found for the words of a launch.
#[derive(Clone, Copy)]
pub(super) struct Seen {
    words: [u64; MOST_WORDS],
    grid: [u32; 3],
    changes: u64,
    refusal: Option<Refusal>,
}

impl Refusal {
    /// Where it is counted.
    pub fn number(self) -> usize {
        match self {
            Refusal::Fact(number) => number.min(REFUSALS - 2),
            Refusal::Packed | Refusal::Elsewhere => REFUSALS - 1,
        }
    }
}

impl Replacement {
    /// Which fact a launch does not meet; nothing if it meets all.
    ///
    /// # Safety
    /// It is one that the driver takes.
    pub(super) unsafe fn unmet(&self, launch: &Launch) -> Option<Refusal> {
        let mut words = [0u64; MOST_WORDS];
        // SAFETY: the caller's.
        if !unsafe { self.words(launch, &mut words) } {
            return Some(Refusal::Packed);
        }
        let shape = self.facts.iter().position(|fact| match *fact {
            Fact::Group(group) => group != launch.block,
            Fact::Shared(bytes) => bytes != launch.shared_bytes,
            // SAFETY: the caller's.
            Fact::Resident => unsafe { !self.resident.holds(launch, self.handle) },
            _ => false,
        });
        if let Some(number) = shape {
            return Some(Refusal::Fact(number));
        }
        let changes = memory::changes();
        let last = *self.last.take();
        let is_same =
            |seen: &Seen| seen.changes == changes && seen.words == words && seen.grid == launch.grid;
        if let Some(seen) = last.filter(is_same) {
            return seen.refusal;
        }
        let number = |place: Place| self.places.iter().position(|own| *own == place);
        let word = |place: Place| -> u64 { number(place).map_or(0, |number| words[number]) };
        // A pointer is in several pairs.
        let mut extents: [Option<Option<Extents>>; MOST_WORDS] = [None; MOST_WORDS];
        let reached = OnceCell::new();
        let unmet = self.facts.iter().position(|fact| match *fact {
            Fact::Group(_) | Fact::Shared(_) | Fact::Resident => false,
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
                !matches!((of(one), of(other)), (Some(one), Some(other)) if one.are_apart(&other))
            }
            Fact::Ends(place, length, size) => {
                let address = word(place);
                let own = memory::own_at(address);
                own.is_none_or(|own| own.start != address || own.bytes / size != length)
            }
            Fact::Aligned(place, bytes) => word(place) % bytes != 0,
            Fact::Known(place) => word(place) != 0 && memory::own_at(word(place)).is_none(),
        });
        let refusal = unmet.map(Refusal::Fact);
        *self.last.take() = Some(Seen {
            words,
            grid: launch.grid,
            changes,
            refusal,
        });
        refusal
    }

    /// What a launch has in the place of an unmet fact, for people.
    ///
    /// # Safety
    /// It is one that the driver takes.
    pub(super) unsafe fn found(&self, refusal: Refusal, launch: &Launch) -> String {
        let number = match refusal {
            Refusal::Packed => return "its parameters are packed into one piece".to_owned(),
            Refusal::Elsewhere => {
                return "it is in another context than the variables whose addresses the kernel keeps"
                    .to_owned();
            }
            Refusal::Fact(number) => number,
        };
        let mut words = [0u64; MOST_WORDS];
        // SAFETY: the caller's.
        if !unsafe { self.words(launch, &mut words) } {
            return String::new();
        }
        let word = |place: Place| -> u64 {
            let number = self.places.iter().position(|own| *own == place);
            number.map_or(0, |number| words[number])
        };
        let Some(fact) = self.facts.get(number) else {
            return String::new();
        };
        match *fact {
            Fact::Group(_) => {
                let [x, y, z] = launch.block;
                format!("work-groups have {x}×{y}×{z}")
            }
            Fact::Shared(_) => format!("it has {} bytes", launch.shared_bytes),
            Fact::Resident => "fewer are resident, or the driver does not say".to_owned(),
            Fact::Apart(one, other) => format!("{} and {}", At(word(one)), At(word(other))),
            Fact::Ends(place, _, size) => {
                let address = word(place);
                match memory::own_at(address) {
                    Some(own) if own.start == address => format!("{} elements", own.bytes / size),
                    _ => At(address).to_string(),
                }
            }
            Fact::Aligned(place, _) | Fact::Known(place) => At(word(place)).to_string(),
        }
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

/// An address, in words: how far inside which allocation.
struct At(u64);

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let At(address) = *self;
        match memory::at(address) {
            None => write!(f, "{address:#x}, in no allocation"),
            Some(own) if own.kind == memory::MemoryKind::Foreign => {
                write!(f, "{address:#x}, in memory that others may write")
            }
            Some(own) => write!(
                f,
                "{address:#x}, {} bytes inside an allocation of {}",
                address - own.start,
                own.bytes
            ),
        }
    }
}
