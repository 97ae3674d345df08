//! A barrier's state as the 8 bytes that hold it.

/// The most arrivals of a phase, and the most bytes that it may expect (PTX ISA, "mbarrier object").
pub(super) const MOST: u64 = (1 << 20) - 1;

/// A barrier's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct State {
    /// Arrivals that each phase expects; 0 if it is no barrier.
    pub(super) expected: u64,
    /// Arrivals that are missing.
    pub(super) pending: u64,
    /// Bytes that are missing.
    pub(super) bytes: i64,
    /// The phase's number, modulo 8.
    pub(super) phase: u64,
}

impl State {
    pub(super) fn of(bits: u64) -> State {
        State {
            expected: bits & MOST,
            pending: bits >> 20 & MOST,
            // 21 bits between the others, signed.
            bytes: ((bits << 3) as i64) >> 43,
            phase: bits >> 61,
        }
    }

    pub(super) fn bits(self) -> u64 {
        let bytes = (self.bytes as u64) << 43 >> 3;
        self.expected | self.pending << 20 | bytes | self.phase << 61
    }

    /// Begins the next phase if nothing is missing.
    pub(super) fn settled(mut self) -> State {
        if self.pending == 0 && self.bytes == 0 {
            self.pending = self.expected;
            self.phase = (self.phase + 1) % 8;
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_have_their_bits() {
        for state in [
            State {
                expected: 1,
                pending: MOST,
                bytes: -(MOST as i64),
                phase: 7,
            },
            State {
                expected: MOST,
                pending: 0,
                bytes: MOST as i64,
                phase: 2,
            },
            State {
                expected: 3,
                pending: 2,
                bytes: -1,
                phase: 0,
            },
        ] {
            assert_eq!(State::of(state.bits()), state);
        }
    }
}
