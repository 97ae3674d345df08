//! Launches of a kernel that are alike: work-groups of one size, about as many of them, numbers about as large, and pointers
//! that lie alike.
//!
//! What makes a plan legal and fast for one launch holds for those that are like it, seldom for others: so each kind is counted,
//! timed and captured by itself. "About" means within the same octave.

use crate::functions::Function;
use crate::launches::Launch;
use crate::lock::Lock;
use crate::memory;
use crate::record::{self, Counts};

/// Kinds of a kernel with counts of their own; launches of further ones share the last.
const MOST: usize = 32;
/// Signs of a launch's parameters that are looked at.
const MOST_SIGNS: usize = 128;
/// Marks the sign of a pointer; the others are octaves of numbers.
const POINTER: u8 = 0x80;
/// The octave of all words that are larger: fractions, pairs of numbers, and addresses of the host, which differ from run to run.
const LARGEST: u8 = 41;

/// The kinds of a kernel that were seen, each with its hash and its counts.
pub struct Kinds(Lock<Vec<(u64, &'static Counts)>>);

impl Kinds {
    pub const fn new() -> Kinds {
        Kinds(Lock::new(Vec::new()))
    }

    /// The counts of the launches that are like this one, and the hash of their kind.
    ///
    /// # Safety
    /// It is a launch that the driver takes.
    pub unsafe fn of(&self, function: &Function, launch: &Launch) -> (u64, &'static Counts) {
        let mut signs = Signs::default();
        // SAFETY: the caller's.
        unsafe { signs.look_at(function, launch) };
        let hash = signs.hash(launch);
        let mut all = self.0.take();
        if let Some(known) = all.iter().find(|(own, _)| *own == hash) {
            return *known;
        }
        if let (true, Some(last)) = (all.len() >= MOST || record::is_nearly_full(), all.last()) {
            return *last;
        }
        let like = match all.len() + 1 < MOST {
            true => signs.to_string(),
            false => "several".to_owned(),
        };
        let counts = record::kind(function.image, &function.name, hash, &like);
        all.push((hash, counts));
        (hash, counts)
    }
}

/// The hash of the launches that are like this one: the same in all processes.
///
/// # Safety
/// It is a launch that the driver takes.
pub unsafe fn hash(function: &Function, launch: &Launch) -> u64 {
    let mut signs = Signs::default();
    // SAFETY: the caller's.
    unsafe { signs.look_at(function, launch) };
    signs.hash(launch)
}

/// What is seen of a launch's parameters, in their order.
struct Signs {
    all: [u8; MOST_SIGNS],
    count: usize,
    /// The allocations that pointers led to so far.
    allocations: [u64; MOST_SIGNS],
    allocation_count: usize,
}

impl Default for Signs {
    fn default() -> Signs {
        Signs {
            all: [0; MOST_SIGNS],
            count: 0,
            allocations: [0; MOST_SIGNS],
            allocation_count: 0,
        }
    }
}

impl Signs {
    unsafe fn look_at(&mut self, function: &Function, launch: &Launch) {
        // SAFETY: the caller's.
        if let Some(packed) = unsafe { launch.packed() } {
            return self.add(packed);
        }
        if launch.parameters.is_null() {
            return;
        }
        for (index, &(_, size)) in function
            .parameters(launch.handle)
            .unwrap_or_default()
            .iter()
            .enumerate()
        {
            // SAFETY: the launch has a pointer to each of the kernel's parameters.
            self.add(unsafe {
                std::slice::from_raw_parts((*launch.parameters.add(index)).cast::<u8>(), size)
            });
        }
    }

    /// A parameter: each of its words.
    fn add(&mut self, parameter: &[u8]) {
        for word in parameter.chunks(8) {
            if self.count == MOST_SIGNS {
                return;
            }
            let value = word
                .iter()
                .rev()
                .fold(0u64, |value, &byte| value << 8 | u64::from(byte));
            let allocation = (word.len() == 8 && value >= 1 << 16).then(|| memory::at(value));
            self.all[self.count] = match allocation.flatten() {
                Some(allocation) => POINTER | self.number_of(allocation.start),
                None => ((u64::BITS - value.leading_zeros()) as u8).min(LARGEST),
            };
            self.count += 1;
        }
    }

    /// The number of an allocation among those of the launch, in the order in which the parameters name them.
    fn number_of(&mut self, start: u64) -> u8 {
        let known = &self.allocations[..self.allocation_count];
        let number = known.iter().position(|own| *own == start).unwrap_or_else(|| {
            self.allocations[self.allocation_count] = start;
            self.allocation_count += 1;
            self.allocation_count - 1
        });
        number as u8
    }

    fn hash(&self, launch: &Launch) -> u64 {
        let mut bytes = [0u8; 24 + MOST_SIGNS];
        for (to, size) in bytes.chunks_exact_mut(4).zip(launch.block) {
            to.copy_from_slice(&size.to_le_bytes());
        }
        bytes[12..16].copy_from_slice(&launch.shared_bytes.to_le_bytes());
        for (to, groups) in bytes[16..19].iter_mut().zip(launch.grid) {
            *to = octave(groups);
        }
        bytes[19] = u8::from(launch.is_cooperative);
        bytes[24..24 + self.count].copy_from_slice(&self.all[..self.count]);
        xxhash_rust::xxh3::xxh3_64(&bytes[..24 + self.count])
    }
}

fn octave(number: u32) -> u8 {
    (u32::BITS - number.leading_zeros()) as u8
}

impl std::fmt::Display for Signs {
    /// A word for each: a letter for an allocation, the octave of a number.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, &sign) in self.all[..self.count].iter().enumerate() {
            let space = if index == 0 { "" } else { " " };
            match sign {
                sign if sign & POINTER != 0 => {
                    let number = sign & !POINTER;
                    let letter = char::from(b'a' + number % 26);
                    match number / 26 {
                        0 => write!(f, "{space}{letter}")?,
                        more => write!(f, "{space}{letter}{more}")?,
                    }
                }
                0 => write!(f, "{space}0")?,
                LARGEST => write!(f, "{space}large")?,
                octave => write!(f, "{space}2^{}", octave - 1)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::MemoryKind;

    fn seen(words: &[u64]) -> String {
        let mut signs = Signs::default();
        for word in words {
            signs.add(&word.to_le_bytes());
        }
        signs.to_string()
    }

    #[test]
    fn pointers_are_alike_where_they_share_allocations_and_numbers_by_octave() {
        memory::allocated(0xa0_0000, 0x1000, MemoryKind::Device);
        memory::allocated(0xa1_0000, 0x1000, MemoryKind::Device);
        assert_eq!(seen(&[0xa0_0000, 0xa1_0010, 0xa0_0ff8, 1000, 0]), "a b a 2^9 0");
        assert_eq!(seen(&[0xa1_0000, 0xa0_0010, 0xa1_0ff8, 600, 0]), "a b a 2^9 0");
        assert_eq!(seen(&[0xa1_0000, 0xa0_0010, 0xa0_0ff8, 600, 0]), "a b b 2^9 0");
        assert_eq!(seen(&[0xa1_0000, 0xa0_0010, 0xa1_0ff8, 1024, 0]), "a b a 2^10 0");
        // Nothing is there: a number.
        assert_eq!(seen(&[0xa2_0000]), "2^23");
        // Places in the host's memory are no numbers that mean anything.
        assert_eq!(seen(&[0x7ffd_1234_5678, 0x5555_0000_1000]), "large large");
    }
}
