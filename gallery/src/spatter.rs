//! Index patterns of real applications, in the JSON of the benchmark Spatter
//! (<https://github.com/hpcgarage/spatter>).
//!
//! An entry of a trace touches the elements `pattern[j] + delta * i`, for every `j` in the pattern and every `i` below `count`.
//! Four traces are shipped; others are read from files, which are untrusted: their size and their values have limits, and an
//! error is one line with its place.
//!
//! ```
//! use headstart_gallery::spatter::{Access, Trace};
//! let trace = Trace::parse("mine.json", r#"[{"kernel":"Gather","pattern":[0,8],"delta":1,"count":3}]"#)?;
//! let entry = &trace.entries()[0];
//! assert_eq!(entry.access(), Access::Gather);
//! assert_eq!(entry.indices().collect::<Vec<_>>(), [0, 8, 1, 9, 2, 10]);
//! # Ok::<(), headstart::Error>(())
//! ```

use std::fs::File;
use std::io::Read;
use std::path::Path;

use headstart::suggest::{accepted, quoted};
use headstart::{Error, Result};
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// The largest trace file, in bytes.
pub const MAX_BYTES: u64 = 16 << 20;
/// The most entries in a trace.
pub const MAX_ENTRIES: usize = 1024;
/// The longest pattern, in indices.
pub const MAX_PATTERN: usize = 1 << 20;
/// The largest index that an entry may reach: 2⁴⁰ elements are more than any device holds.
pub const MAX_INDEX: u64 = 1 << 40;

/// The traces that are shipped, by name. Source and licence are in `gallery/data/spatter`.
const SHIPPED: [(&str, &str); 4] = [
    ("amg_gpu", include_str!("../data/spatter/amg_gpu.json")),
    ("lulesh_gpu", include_str!("../data/spatter/lulesh_gpu.json")),
    ("nekbone_gpu", include_str!("../data/spatter/nekbone_gpu.json")),
    ("pennant_gpu", include_str!("../data/spatter/pennant_gpu.json")),
];

/// The names of the traces that are shipped.
pub fn shipped() -> impl Iterator<Item = &'static str> {
    SHIPPED.iter().map(|&(name, _)| name)
}

/// A trace: the reads and writes of one application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    name: String,
    entries: Vec<Entry>,
}

/// One pattern of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    access: Access,
    pattern: Vec<u64>,
    delta: u64,
    count: u64,
}

/// Whether an entry reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It reads elements that lie apart.
    Gather,
    /// It writes them.
    Scatter,
}

impl Access {
    /// The action of an entry, as a verb.
    fn verb(self) -> &'static str {
        match self {
            Access::Gather => "gather",
            Access::Scatter => "scatter",
        }
    }
}

impl Trace {
    /// The trace in this file, or the shipped one of this name.
    ///
    /// # Errors
    /// There is no such file or trace, it cannot be read, or it is not a trace within the limits.
    pub fn open(name: &str) -> Result<Trace> {
        let path = Path::new(name);
        if !path.exists() {
            return match SHIPPED.iter().find(|&&(shipped, _)| shipped == name) {
                Some((_, text)) => Trace::parse(name, text),
                None => Err(
                    Error::usage(format!("there is no trace file {}", quoted(name))).accepted(format!(
                        "a Spatter JSON file; {}",
                        accepted(name, "shipped traces", shipped())
                    )),
                ),
            };
        }
        let unreadable = |error: std::io::Error| {
            Error::usage(format!("the trace cannot be read: {error}")).at(quoted(name))
        };
        let mut text = Vec::new();
        let file = File::open(path).map_err(unreadable)?;
        if file.metadata().map_err(unreadable)?.is_dir() {
            return Err(Error::usage("the trace is a folder")
                .at(quoted(name))
                .accepted("a Spatter JSON file"));
        }
        file.take(MAX_BYTES + 1)
            .read_to_end(&mut text)
            .map_err(unreadable)?;
        if text.len() as u64 > MAX_BYTES {
            return Err(Error::input("the trace is too large")
                .at(quoted(name))
                .accepted(format!("at most {} MiB", MAX_BYTES >> 20)));
        }
        match std::str::from_utf8(&text) {
            Ok(text) => Trace::parse(name, text),
            Err(error) => Err(Error::input(format!("byte {} is not UTF-8", error.valid_up_to()))
                .at(quoted(name))
                .accepted("a Spatter JSON file")),
        }
    }

    /// The trace in this text; `name` is its name in messages.
    ///
    /// # Errors
    /// It is not a Spatter trace, or not within the limits.
    pub fn parse(name: &str, text: &str) -> Result<Trace> {
        let written: Vec<WrittenEntry> =
            serde_json::from_str(text).map_err(|error| not_a_trace(name, &error))?;
        if written.is_empty() || written.len() > MAX_ENTRIES {
            return Err(Error::input(format!("the trace has {} entries", written.len()))
                .at(quoted(name))
                .accepted(format!("1 to {MAX_ENTRIES}")));
        }
        let entries = written
            .into_iter()
            .enumerate()
            .map(|(position, entry)| {
                entry
                    .checked()
                    .map_err(|error| error.at(format!("{}, entry {position}", quoted(name))))
            })
            .collect::<Result<_>>()?;
        Ok(Trace {
            name: name.to_owned(),
            entries,
        })
    }

    /// The file or shipped trace it came from.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its entries, in order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The entry at this position, or else the first with this access.
    ///
    /// # Errors
    /// There is no such entry, it has the other access, or all have.
    pub fn entry(&self, access: Access, position: Option<usize>) -> Result<&Entry> {
        let verb = access.verb();
        let fitting = || {
            let positions = self
                .entries
                .iter()
                .enumerate()
                .filter(|(_, entry)| entry.access == access);
            let positions: Vec<String> = positions.map(|(position, _)| position.to_string()).collect();
            match &positions[..] {
                [] => format!("it has none that {verb}s"),
                positions => format!("entries that {verb}: {}", positions.join(", ")),
            }
        };
        let fail = |what: String| Err(Error::input(what).at(quoted(&self.name)).accepted(fitting()));
        match position {
            Some(position) => match self.entries.get(position) {
                Some(entry) if entry.access == access => Ok(entry),
                Some(entry) => fail(format!("entry {position} {}s", entry.access.verb())),
                None => fail(format!("there is no entry {position}")),
            },
            None => match self.entries.iter().find(|entry| entry.access == access) {
                Some(entry) => Ok(entry),
                None => fail(format!("no entry {verb}s")),
            },
        }
    }
}

impl Entry {
    /// Whether it reads or writes.
    pub fn access(&self) -> Access {
        self.access
    }

    /// The indices that repeat.
    pub fn pattern(&self) -> &[u64] {
        &self.pattern
    }

    /// By how many elements each repetition is moved on.
    pub fn delta(&self) -> u64 {
        self.delta
    }

    /// How often the pattern repeats.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Every index, in the order of the application.
    pub fn indices(&self) -> impl Iterator<Item = u64> + '_ {
        (0..self.count).flat_map(move |i| self.pattern.iter().map(move |&index| index + self.delta * i))
    }

    /// The largest of the first this many indices; none if there are none.
    pub fn largest_of(&self, indices: u64) -> Option<u64> {
        let length = self.pattern.len() as u64;
        let (whole, rest) = (indices / length, indices % length);
        if whole >= self.count {
            return self
                .pattern
                .iter()
                .max()
                .map(|&index| index + self.delta * (self.count - 1));
        }
        let partial = self.pattern[..rest as usize]
            .iter()
            .max()
            .map(|&index| index + self.delta * whole);
        let complete = whole.checked_sub(1);
        let complete = complete.and_then(|i| self.pattern.iter().max().map(|&index| index + self.delta * i));
        partial.max(complete)
    }
}

/// An entry as the file has it. Other fields of Spatter (work-group size, seed, name) are left unread.
#[derive(Deserialize)]
struct WrittenEntry {
    kernel: String,
    pattern: WrittenPattern,
    delta: u64,
    count: u64,
}

/// A list of indices, read no further than the longest pattern allowed.
struct WrittenPattern(Vec<u64>);

impl<'de> Deserialize<'de> for WrittenPattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<WrittenPattern, D::Error> {
        struct Indices;
        impl<'de> Visitor<'de> for Indices {
            type Value = WrittenPattern;

            fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
                f.write_str("a list of indices from 0")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<WrittenPattern, A::Error> {
                let mut indices = Vec::new();
                while let Some(index) = list.next_element()? {
                    if indices.len() == MAX_PATTERN {
                        let message = format!("the pattern has more than {MAX_PATTERN} indices");
                        return Err(serde::de::Error::custom(message));
                    }
                    indices.push(index);
                }
                Ok(WrittenPattern(indices))
            }
        }
        deserializer.deserialize_seq(Indices)
    }
}

impl WrittenEntry {
    fn checked(self) -> Result<Entry> {
        let access = match self.kernel.to_ascii_lowercase().as_str() {
            "gather" => Access::Gather,
            "scatter" => Access::Scatter,
            _ => {
                let error = Error::input(format!("the kernel {} is not read", quoted(&self.kernel)));
                return Err(error.accepted("`Gather` or `Scatter`"));
            }
        };
        let Some(&largest) = self.pattern.0.iter().max() else {
            return Err(Error::input("the pattern is empty").accepted("at least one index"));
        };
        if self.count == 0 {
            return Err(Error::input("the count is 0").accepted("at least 1"));
        }
        let reached = self
            .delta
            .checked_mul(self.count - 1)
            .and_then(|start| start.checked_add(largest));
        match reached {
            Some(index) if index <= MAX_INDEX => {}
            _ => {
                let error = Error::input(
                    "the indices grow too large: the largest of the pattern + delta × (count − 1)",
                );
                return Err(error.accepted(format!("at most {MAX_INDEX}")));
            }
        }
        Ok(Entry {
            access,
            pattern: self.pattern.0,
            delta: self.delta,
            count: self.count,
        })
    }
}

/// serde_json's message, with its place in front and the file's text (which it may quote) escaped.
fn not_a_trace(name: &str, error: &serde_json::Error) -> Error {
    let said = error.to_string();
    let said = said
        .rsplit_once(" at line ")
        .map_or(said.as_str(), |(said, _)| said);
    let said: String = said
        .chars()
        .take(200)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    Error::input(format!("not a Spatter trace: {said}"))
        .at(format!(
            "{}, line {}, column {}",
            quoted(name),
            error.line(),
            error.column()
        ))
        .accepted("a JSON list of entries with `kernel`, `pattern`, `delta` and `count`")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> String {
        Trace::parse("t.json", text).expect_err(text).to_string()
    }

    fn entry(fields: &str) -> String {
        format!("[{{{fields}}}]")
    }

    #[test]
    fn the_shipped_traces_are_read() {
        let entries = |name: &str| Trace::open(name).expect(name).entries().len();
        assert_eq!(
            ["amg_gpu", "lulesh_gpu", "nekbone_gpu", "pennant_gpu"].map(entries),
            [2, 12, 3, 17]
        );
        let amg = Trace::open("amg_gpu").expect("shipped");
        let first = amg.entry(Access::Gather, None).expect("a gather");
        assert_eq!(
            (first.pattern().len(), first.delta(), first.count()),
            (256, 16, 14_705_882)
        );
        assert_eq!(
            first.indices().skip(255).take(2).collect::<Vec<_>>(),
            [1383, 1333 + 16]
        );
        let lulesh = Trace::open("lulesh_gpu").expect("shipped");
        assert_eq!(
            lulesh.entry(Access::Gather, None).expect("a gather"),
            &lulesh.entries()[1]
        );
        let scatter = lulesh.entry(Access::Scatter, None).expect("a scatter");
        assert_eq!(scatter, &lulesh.entries()[0]);
        assert!(amg.entry(Access::Scatter, None).is_err());
        assert!(
            lulesh
                .entry(Access::Gather, Some(0))
                .expect_err("a scatter")
                .to_string()
                .contains("entries that gather: 1, 4")
        );
        assert!(lulesh.entry(Access::Gather, Some(99)).is_err());
    }

    #[test]
    fn the_largest_of_the_first_indices_is_found_without_visiting_them() {
        for text in [
            r#""pattern":[5,0,9,1],"delta":2,"count":4"#,
            r#""pattern":[3],"delta":0,"count":7"#,
        ] {
            let trace = Trace::parse("t", &entry(&format!(r#""kernel":"gather",{text}"#))).expect("a trace");
            let entry = &trace.entries()[0];
            for indices in 0..40 {
                let visited = entry.indices().take(indices).max();
                assert_eq!(
                    entry.largest_of(indices as u64),
                    visited,
                    "{text} after {indices}"
                );
            }
        }
    }

    #[test]
    fn whatever_is_wrong_gives_one_line_that_says_where() {
        let good = r#""kernel":"Gather","pattern":[0],"delta":1,"count":2"#;
        for (text, expected) in [
            (String::new(), "line 1, column 0: not a Spatter trace: EOF"),
            (entry(good)[..20].to_owned(), "EOF while parsing"),
            ("{}".to_owned(), "expected a sequence"),
            ("[]".to_owned(), "0 entries"),
            ("[".repeat(100_000), "not a Spatter trace"),
            (entry(&good.replace("[0]", "[-1]")), "`-1`"),
            (entry(&good.replace("[0]", "[1e99]")), "not a Spatter trace"),
            (entry(&good.replace("[0]", "[]")), "entry 0: the pattern is empty"),
            (
                entry(&good.replace("[0]", "\"UNIFORM:8:1\"")),
                "expected a list of indices",
            ),
            (
                entry(&good.replace("Gather", "G\\nS")),
                "the kernel `G\\nS` is not read",
            ),
            (
                entry(&good.replace("\"count\":2", "\"count\":0")),
                "the count is 0",
            ),
            (
                entry(&good.replace("\"count\":2", "\"cuont\":2")),
                "missing field `count`",
            ),
            (
                entry(&good.replace("\"delta\":1", "\"delta\":18446744073709551615")),
                "grow too large",
            ),
            (entry(&good.replace("[0]", "[1099511627777]")), "grow too large"),
            (format!("{}trailing", entry(good)), "trailing characters"),
            (entry(&format!(r#"{good},"count":3"#)), "duplicate field"),
        ] {
            let message = message(&text);
            assert!(message.contains(expected), "{expected}: {message}");
            assert!(
                message.starts_with("`t.json`") && !message.contains('\n') && message.len() < 500,
                "{message}"
            );
        }
        assert!(
            message(&entry(
                &good.replace("[0]", &format!("[{}0]", "0,".repeat(MAX_PATTERN)))
            ))
            .contains("more than")
        );
    }

    #[test]
    fn a_missing_file_names_the_shipped_traces() {
        let error = Trace::open("amg_gpo").expect_err("no such trace").to_string();
        assert!(error.contains("did you mean `amg_gpu`?"), "{error}");
        assert!(
            Trace::open(env!("CARGO_MANIFEST_DIR"))
                .expect_err("a folder")
                .to_string()
                .contains("folder")
        );
    }
}
