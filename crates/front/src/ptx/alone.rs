//! A module without the entries that one of them needs in no way: what is read, edited and compiled for each plan.
//!
//! ```text
//! before                              after, for `scan`
//! .visible .entry gather(…)           // Headstart: line 90
//! { … }
//! .visible .entry scan(…)             .visible .entry scan(…)
//! { … }                               { … }
//! ```

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use super::entries_of;
use super::lexer::NEXT_LINE;
use super::tree::{Function, Module};

/// A whole module, and where the text of one entry leaves parts of it out.
#[derive(Clone, Debug)]
pub(super) struct Whole {
    text: Arc<String>,
    left_out: Vec<LeftOut>,
}

/// A part of a module that is left out.
#[derive(Clone, Debug)]
struct LeftOut {
    /// What says so in the shorter text.
    said: Range<usize>,
    /// Where it stands in the module.
    part: Range<usize>,
}

impl Whole {
    /// A module of which nothing is left out.
    pub(super) fn of(text: Arc<String>) -> Whole {
        let left_out = Vec::new();
        Whole { text, left_out }
    }

    /// The module's text.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Where a byte of the shorter text stands in the module.
    pub(super) fn place(&self, at: usize) -> usize {
        let before = self.left_out.iter().rfind(|own| own.said.end <= at);
        before.map_or(at, |own| at - own.said.end + own.part.end)
    }
}

/// The text without other entries; those that something else names stay, and all do where debug information may lead into them.
/// With it what puts them back.
pub(super) fn alone(text: &Arc<String>, module: &Module<'_>, entry: &str) -> (Arc<String>, Whole) {
    let mut whole = Whole::of(Arc::clone(text));
    let (mut rest, mut behind, mut line) = (String::new(), 0, 1);
    for part in apart_from(text, module, entry) {
        rest.push_str(&text[behind..part.start]);
        line += newlines(&text[behind..part.end]);
        let start = rest.len();
        rest.push_str(&format!("{NEXT_LINE}{line}\n"));
        behind = part.end;
        let said = start..rest.len();
        whole.left_out.push(LeftOut { said, part });
    }
    if whole.left_out.is_empty() {
        return (Arc::clone(text), whole);
    }
    rest.push_str(&text[behind..]);
    (Arc::new(rest), whole)
}

fn newlines(text: &str) -> usize {
    text.bytes().filter(|&byte| byte == b'\n').count()
}

/// Where the other entries stand that this one needs in no way. Neighbours are one part.
fn apart_from(text: &str, module: &Module<'_>, entry: &str) -> Vec<Range<usize>> {
    let mut others: Vec<&Function<'_>> = entries_of(module).filter(|other| other.name != entry).collect();
    if others.is_empty() || text.contains(".debug_info") {
        return Vec::new();
    }
    loop {
        let (mut rest, mut behind) = (Vec::new(), 0);
        for other in &others {
            rest.push(&text[behind..other.start]);
            behind = other.body_end + 1;
        }
        rest.push(&text[behind..]);
        let is_apart = |c: char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '$' | '%');
        let code = rest.iter().flat_map(|part| without_comments(part));
        let named: HashSet<&str> = code.flat_map(|code| code.split(is_apart)).collect();
        let count = others.len();
        others.retain(|other| !named.contains(other.name));
        if others.len() == count {
            break;
        }
    }
    let mut parts: Vec<Range<usize>> = Vec::new();
    for other in others {
        match parts.last_mut() {
            Some(last) if without_comments(&text[last.end..other.start]).all(is_blank) => {
                last.end = other.body_end + 1;
            }
            _ => parts.push(other.start..other.body_end + 1),
        }
    }
    parts
}

/// The lines of a text, up to what `//` begins: `// .globl scan`, as nvcc writes, is no use of `scan`.
fn without_comments(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .map(|line| line.split("//").next().unwrap_or_default())
}

fn is_blank(line: &str) -> bool {
    line.trim().is_empty()
}

#[cfg(test)]
mod tests {
    use super::super::{Facts, Module, entries};

    const MODULE: &str = ".version 8.0\n.target sm_80\n.address_size 64\n.func f()\n{\nret;\n}\n\
                          .visible .entry a()\n{\ncall f;\nret;\n}\n\
                          // .globl b\n.visible .entry b()\n{\n.reg .b64 %rd1;\nmov.u64 %rd1, c;\nret;\n}\n.entry c()\n{\nret;\n}\n";

    #[test]
    fn an_entry_alone_keeps_what_is_named() {
        let module = Module::new(MODULE, "m").expect("a module");
        let alone = |entry: &str| entries(&module.alone(entry)).expect("a module");
        assert_eq!(alone("a"), ["a"]);
        assert_eq!(alone("b"), ["b", "c"]);
        assert_eq!(alone("c"), ["c"]);
        assert!(module.alone("a").contains(".func f()"));
        assert!(
            module
                .alone("b")
                .contains("// Headstart: line 12\n\n// .globl b\n.visible .entry b")
        );
    }

    #[test]
    fn places_are_those_of_the_module() {
        let module = Module::new(MODULE, "m").expect("a module");
        for entry in ["a", "b", "c"] {
            let original = module
                .import(Some(entry), &Facts::default())
                .expect(entry)
                .original;
            assert_eq!(original.whole(), MODULE);
            for (at, _) in original.text.match_indices("ret;") {
                assert!(
                    MODULE[original.place_in_whole(at)..].starts_with("ret;"),
                    "{entry}, {at}"
                );
            }
            let body = original.body.clone();
            let whole = original.place_in_whole(body.start)..original.place_in_whole(body.end);
            assert_eq!(MODULE[whole], original.text[body]);
        }
        let error = Module::new(&MODULE.replace("mov.u64 %rd1, c;", "mov.u64 %rd1, c c;"), "m")
            .and_then(|module| module.import(Some("b"), &Facts::default()).map(|_| ()));
        let said = error.expect_err("a comma is missing").to_string();
        assert!(said.contains("line 17"), "{said}");
    }
}
