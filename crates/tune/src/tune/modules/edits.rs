//! Changes of a text.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// What stands in front of an insertion and behind it.
pub(in crate::tune) const BEGINS: &str = "// Headstart begins\n";
pub(in crate::tune) const ENDS: &str = "// Headstart ends\n";

/// Changes of a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::tune) struct Edits {
    /// By the byte in front of which they stand.
    pub insertions: BTreeMap<usize, String>,
    /// By the byte where something starts, where it ends and what takes its place.
    pub exchanges: BTreeMap<usize, (usize, String)>,
}

impl Edits {
    /// Inserts behind what is inserted there already.
    pub(crate) fn insert(&mut self, at: usize, text: &str) {
        self.insertions.entry(at).or_default().push_str(text);
    }

    pub(crate) fn exchange(&mut self, span: Range<usize>, text: String) {
        self.exchanges.insert(span.start, (span.end, text));
    }

    /// What takes the place of what starts at this byte, if something does.
    pub(crate) fn exchanged(&self, start: usize) -> Option<&str> {
        self.exchanges.get(&start).map(|(_, other)| other.as_str())
    }

    /// The same changes of another text, in which each byte stands elsewhere.
    pub(crate) fn moved(&self, place: impl Fn(usize) -> usize) -> Edits {
        let insertions = self.insertions.iter();
        let exchanges = self.exchanges.iter();
        Edits {
            insertions: insertions.map(|(&at, text)| (place(at), text.clone())).collect(),
            exchanges: exchanges
                .map(|(&start, (end, text))| (place(start), (place(*end), text.clone())))
                .collect(),
        }
    }

    /// A part of the text with all changes inside. What is inserted at its start comes before it.
    pub(crate) fn of(&self, whole: &str, part: Range<usize>) -> String {
        let inserted = self.insertions.range(part.start + 1..part.end).map(|(&at, _)| at);
        let exchanged = self.exchanges.range(part.clone()).map(|(&at, _)| at);
        let places: BTreeSet<usize> = inserted.chain(exchanged).collect();
        let mut text = String::with_capacity(part.len());
        let mut from = part.start;
        // What is exchanged as a whole has no changes inside.
        for at in places {
            if at < from {
                continue;
            }
            text.push_str(&whole[from..at]);
            from = at;
            if at > part.start {
                text.extend(self.insertions.get(&at).map(String::as_str));
            }
            if let Some((end, other)) = self.exchanges.get(&at) {
                text.push_str(other);
                from = *end;
            }
        }
        text.push_str(&whole[from..part.end]);
        text
    }
}
