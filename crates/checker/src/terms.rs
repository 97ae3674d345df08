//! Terms: what a value was made of, as a 128-bit hash.
//!
//! | value | term |
//! |---|---|
//! | depends on no memory | [`Term::KNOWN`]: its bits say everything |
//! | read from memory as the launch found it | the addresses of its bytes |
//! | read from where the kernel wrote before | what was written there |
//! | integer sum or known multiple | the same sum of the operands' terms ([`linear`](super::linear)) |
//! | truncation of an extended integer to its original width | the term of that integer |
//! | what an atomic operation found | [`Term::UNORDERED`], and so is all that is made of it |
//! | result of another operation | the operation, its type, and the operands' terms (or bits) |
//!
//! Two different expressions get the same term with a probability of about n² / 2¹²⁸ for n terms.

use headstart_sim::functional::FastMap;

/// The term of a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Term(pub u128);

impl Term {
    /// The value depends on no memory; its bits are its term.
    pub(crate) const KNOWN: Term = Term(0);

    /// The value depends on the order in which work-items came: another kernel may have another one there.
    pub(crate) const UNORDERED: Term = Term(u128::MAX);

    /// The term of memory changed by commuting atomic operations: a sum, independent of their order.
    pub(crate) fn changed_by(self, bits: u64, change: Term) -> Term {
        if self == Term::UNORDERED || change == Term::UNORDERED {
            return Term::UNORDERED;
        }
        // What was known stands for itself, once.
        let before = match self.is_known() {
            true => self.part(bits),
            false => self.0,
        };
        Term(before.wrapping_add(change.0).clamp(1, u128::MAX - 1))
    }

    /// Whether the bits say everything.
    pub(crate) fn is_known(self) -> bool {
        self == Term::KNOWN
    }

    /// The term of something made of parts. `what` tells kinds of things apart.
    pub(crate) fn made(what: u64, parts: impl IntoIterator<Item = u128>) -> Term {
        let mut hash = Mixer::new(what);
        let mut is_unordered = false;
        for part in parts {
            is_unordered |= part == Term::UNORDERED.0;
            hash.add(part);
        }
        match is_unordered {
            true => Term::UNORDERED,
            false => hash.finish(),
        }
    }

    /// An operand as a part of something: its term, or a hash of its bits.
    pub(crate) fn part(self, bits: u64) -> u128 {
        match self.is_known() {
            true => Term::made(KNOWN_BITS, [u128::from(bits)]).0,
            false => self.0,
        }
    }
}

const KNOWN_BITS: u64 = 1;
const INPUT_BYTE: u64 = 2;
const PUT_TOGETHER: u64 = 3;
/// Operations are numbered from here.
pub(super) const OPERATION: u64 = 16;

/// Two 64-bit lanes, each mixed by the rounds of the splitmix64 finaliser with constants of its own.
struct Mixer(u64, u64);

impl Mixer {
    fn new(seed: u64) -> Mixer {
        Mixer(
            seed ^ 0x243F_6A88_85A3_08D3,
            seed.rotate_left(32) ^ 0x1319_8A2E_0370_7344,
        )
    }

    fn add(&mut self, part: u128) {
        let (low, high) = (part as u64, (part >> 64) as u64);
        let mix = |mut z: u64, multiplier: u64| {
            z = (z ^ (z >> 32)).wrapping_mul(multiplier);
            z = (z ^ (z >> 29)).wrapping_mul(0x94D0_49BB_1331_11EB);
            z ^ (z >> 32)
        };
        let first = mix(self.0 ^ low, 0xBF58_476D_1CE4_E5B9).wrapping_add(high);
        let second = mix(self.1 ^ high, 0xD6E8_FEB8_6659_FD93).wrapping_add(low.rotate_left(17));
        self.0 = mix(first, 0x9E37_79B9_7F4A_7C15) ^ second.rotate_left(23);
        self.1 = mix(second, 0xC2B2_AE3D_27D4_EB4F).wrapping_add(first.rotate_left(41));
    }

    fn finish(&self) -> Term {
        let bits = u128::from(self.0) << 64 | u128::from(self.1);
        // The ends are taken.
        Term(bits.clamp(1, u128::MAX - 1))
    }
}

/// What one byte of memory is: a byte of a value with a term, or known bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ByteTerm {
    term: Term,
    /// Which byte of that value; of a known one, the byte itself.
    byte: u8,
    /// How many bytes that value has; 0 for known bits.
    of: u8,
}

impl ByteTerm {
    /// A byte of global memory as the launch found it.
    fn input(address: u64) -> ByteTerm {
        ByteTerm {
            term: Term::made(INPUT_BYTE, [u128::from(address)]),
            byte: 0,
            of: 1,
        }
    }

    fn part(self) -> u128 {
        if self.term == Term::UNORDERED {
            return self.term.0;
        }
        self.term.0 ^ u128::from(self.byte) << 8 ^ u128::from(self.of)
    }
}

/// The terms of all memory that a work-group sees. Addresses of all spaces are distinguished by the caller.
#[derive(Debug, Default)]
pub(super) struct TermMemory {
    bytes: FastMap<ByteTerm>,
    /// As [`Written::scattered`]; the bytes there have no terms.
    scattered: u128,
}

/// The terms of the global memory that a work-group wrote.
#[derive(Debug, Default)]
pub(super) struct Written {
    bytes: FastMap<ByteTerm>,
    /// The sum of the terms of what was written to places that depend on an order.
    scattered: u128,
}

/// From here on addresses are of no global memory.
pub(super) const NOT_GLOBAL: u64 = 1 << 60;

impl TermMemory {
    /// The term of a value of `size` bytes read at an address.
    pub(crate) fn read(&self, address: u64, size: u32) -> Term {
        let first = self.byte(address);
        let bytes = || (0..u64::from(size)).map(|byte| self.byte(address + byte));
        if first.of != 0 && u32::from(first.of) == size && first.byte == 0 {
            let whole = |(number, byte): (u8, ByteTerm)| {
                byte == ByteTerm {
                    byte: number,
                    ..first
                }
            };
            if (0..).zip(bytes()).all(whole) {
                return first.term;
            }
        }
        if bytes().all(|byte| byte.of == 0) {
            return Term::KNOWN;
        }
        Term::made(PUT_TOGETHER, bytes().map(ByteTerm::part))
    }

    /// A value of `size` bytes is written at an address.
    pub(crate) fn write(&mut self, address: u64, size: u32, term: Term, bits: u64) {
        for (number, byte) in bits.to_le_bytes().into_iter().enumerate().take(size as usize) {
            let written = match term.is_known() {
                true => ByteTerm { term, byte, of: 0 },
                false => ByteTerm {
                    term,
                    byte: number as u8,
                    of: size as u8,
                },
            };
            self.bytes.insert(address + number as u64, written);
        }
    }

    /// A value is written at a place that depends on the order in which work-items came. Only what is written
    /// counts, in any order.
    pub(crate) fn scatter(&mut self, address: u64, size: u32, term: Term, bits: u64) {
        if term != Term::UNORDERED {
            self.scattered = self.scattered.wrapping_add(term.part(bits));
        }
        for byte in address..address + u64::from(size) {
            self.bytes.remove(&byte);
        }
    }

    /// Bytes are copied as they are.
    pub(crate) fn copy(&mut self, to: u64, from: u64, size: u32) {
        for byte in 0..u64::from(size) {
            let copied = self.byte(from + byte);
            self.bytes.insert(to + byte, copied);
        }
    }

    /// What was written to global memory.
    pub(crate) fn into_written(mut self) -> Written {
        self.bytes.retain(|&address, _| address < NOT_GLOBAL);
        Written {
            bytes: self.bytes,
            scattered: self.scattered,
        }
    }

    fn byte(&self, address: u64) -> ByteTerm {
        let written = self.bytes.get(&address).copied();
        written.unwrap_or_else(|| ByteTerm::input(address))
    }
}

impl Written {
    /// What was written to places that depend on an order, in any order.
    pub(crate) fn scattered(&self) -> u128 {
        self.scattered
    }

    /// Whether a byte depends on the order in which work-items came.
    pub(crate) fn is_unordered(&self, address: u64) -> bool {
        self.term(address)
            .is_some_and(|byte| byte.term == Term::UNORDERED)
    }

    /// Bytes that were written.
    pub(crate) fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Their addresses, in no order.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = u64> + '_ {
        self.bytes.keys().copied()
    }

    /// What was written to a byte, if anything was.
    pub(crate) fn term(&self, address: u64) -> Option<ByteTerm> {
        self.bytes.get(&address).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_and_their_order_make_the_term() {
        let terms = [
            Term::made(16, [1, 2]),
            Term::made(16, [2, 1]),
            Term::made(17, [1, 2]),
            Term::made(16, [1, 2, 0]),
            Term::made(16, [1 << 64, 2]),
            Term::made(16, []),
        ];
        for (index, one) in terms.iter().enumerate() {
            assert!(terms[..index].iter().all(|other| other != one));
            assert!(!one.is_known());
        }
    }

    #[test]
    fn values_come_back_from_memory_as_they_went_in() {
        let mut memory = TermMemory::default();
        let term = Term(77);
        memory.write(NOT_GLOBAL, 8, term, 0);
        assert_eq!(memory.read(NOT_GLOBAL, 8), term);
        let half = memory.read(NOT_GLOBAL + 4, 4);
        assert!(half != term && !half.is_known());
        memory.write(NOT_GLOBAL + 4, 4, Term::KNOWN, 5);
        assert!(memory.read(NOT_GLOBAL + 4, 4).is_known());
        assert!(!memory.read(NOT_GLOBAL, 8).is_known());
    }

    #[test]
    fn copies_of_any_width_keep_what_they_copy() {
        let mut memory = TermMemory::default();
        memory.copy(NOT_GLOBAL, 4096, 16);
        for element in [0, 4, 8, 12] {
            assert_eq!(
                memory.read(NOT_GLOBAL + element, 4),
                memory.read(4096 + element, 4)
            );
        }
        assert_ne!(memory.read(4096, 4), memory.read(4100, 4));
        assert_eq!(memory.read(NOT_GLOBAL + 2, 2), memory.read(4098, 2));
    }
}
