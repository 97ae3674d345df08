//! Operations on 16 bytes at once among the instructions that are carried as text: where they lead, and what they order.

use crate::ir::{Opaque, Space};

/// Bytes of the value of a work-item.
pub(super) const BYTES: u8 = 16;

/// An operation on 16 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Quad {
    /// The memory, where the instruction says it.
    pub space: Space,
    pub reads: bool,
    pub writes: bool,
    /// Whether work-items of other work-groups see the earlier accesses before this one.
    pub releases: bool,
}

/// The operation that `atom.exch.b128`, `atom.cas.b128`, or a load or store of `b128` with an order is.
pub(super) fn quad(what: &Opaque) -> Option<Quad> {
    let words: Vec<&str> = what.name().split('.').collect();
    let has = |word: &str| words.contains(&word);
    let (reads, writes) = match words[0] {
        _ if words.last() != Some(&"b128") => return None,
        "ld" => (true, false),
        "st" => (false, true),
        "atom" => (true, true),
        _ => return None,
    };
    let space = match (has("shared") || has("shared::cta"), has("global")) {
        (true, _) => Space::Shared,
        (_, true) => Space::Global,
        _ => Space::Generic,
    };
    Some(Quad {
        space,
        reads,
        writes,
        releases: (has("release") || has("acq_rel")) && !has("cta"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_told_by_their_words() {
        let of = |text: &str| quad(&Opaque::unknown(text.to_owned(), Vec::new()));
        let cas = of("atom.acq_rel.gpu.global.cas.b128 {=0, =1}, [@0], {@1, @2}, {@3, @4}");
        let expected = Quad {
            space: Space::Global,
            reads: true,
            writes: true,
            releases: true,
        };
        assert_eq!(cas, Some(expected));
        let store = of("st.release.cta.shared.b128 [@0], {@1, @2}");
        let expected = Quad {
            space: Space::Shared,
            reads: false,
            writes: true,
            releases: false,
        };
        assert_eq!(store, Some(expected));
        assert_eq!(of("atom.global.add.u64 =0, [@0], @1"), None);
        assert_eq!(of("nanosleep.u32 @0"), None);
    }
}
