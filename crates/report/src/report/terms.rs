//! The terms of a report: CUDA's (threads, warps, blocks, SMs) or SYCL's (work-items, sub-groups, work-groups, Xe-cores).
//!
//! Everything inside Headstart speaks SYCL's, which are those of OpenCL, too. A text is translated when it is shown;
//! data (JSON) is not.

/// Whose words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Terms {
    /// Threads, warps, blocks, SMs.
    Cuda,
    /// Work-items, sub-groups, work-groups, Xe-cores.
    Sycl,
}

/// The project's terms, and CUDA's. Longer phrases come first.
const CUDA: &[(&str, &str)] = &[
    ("a core", "an SM"),
    ("A core", "An SM"),
    ("cores", "SMs"),
    ("core", "SM"),
    ("sub-groups", "warps"),
    ("Sub-groups", "Warps"),
    ("sub-group", "warp"),
    ("Sub-group", "Warp"),
    ("work-groups", "blocks"),
    ("Work-groups", "Blocks"),
    ("work-group", "block"),
    ("Work-group", "Block"),
    ("work-items", "threads"),
    ("Work-items", "Threads"),
    ("work-item", "thread"),
    ("Work-item", "Thread"),
];

/// The same for the users of Intel's GPUs.
const SYCL: &[(&str, &str)] = &[
    ("a core", "an Xe-core"),
    ("A core", "An Xe-core"),
    ("cores", "Xe-cores"),
    ("core", "Xe-core"),
    ("shared memory", "local memory"),
    ("Shared memory", "Local memory"),
    ("L2", "L3"),
];

impl Terms {
    /// A text in these terms. Text between backquotes (names, plans, sources) stays.
    pub fn said(self, text: &str) -> String {
        let words = match self {
            Terms::Cuda => CUDA,
            Terms::Sycl => SYCL,
        };
        // A backquote opens and closes on one line.
        let line = |line: &str| {
            let parts = line.split('`').enumerate();
            let parts = parts.map(|(number, part)| match number % 2 {
                0 => translated(part, words),
                _ => part.to_owned(),
            });
            parts.collect::<Vec<_>>().join("`")
        };
        text.split_inclusive('\n').map(line).collect()
    }

    /// A page in these terms: the text between its tags, except for its style, code and plans, and the text that is read aloud
    /// for them.
    pub fn in_page(self, page: &str) -> String {
        let mut said = String::with_capacity(page.len());
        let mut kept: Option<&str> = None;
        let mut rest = page;
        while let Some(start) = rest.find('<') {
            let (text, tag) = rest.split_at(start);
            match kept {
                None => said.push_str(&self.said(text)),
                Some(_) => said.push_str(text),
            }
            let end = tag.find('>').map_or(tag.len(), |end| end + 1);
            let (tag, after) = tag.split_at(end);
            match kept {
                None => said.push_str(&self.labelled(tag)),
                Some(_) => said.push_str(tag),
            }
            let name = tag[1..]
                .trim_start_matches('/')
                .split([' ', '>'])
                .next()
                .unwrap_or_default();
            match kept {
                Some(open) if tag.starts_with("</") && name == open => kept = None,
                None if !tag.starts_with("</") => {
                    kept = ["style", "script", "code", "pre"]
                        .into_iter()
                        .find(|kept| *kept == name);
                }
                _ => {}
            }
            rest = after;
        }
        said.push_str(&self.said(rest));
        said
    }
}

/// The attribute that is read aloud instead of a tag's content.
const LABEL: &str = " aria-label=\"";

impl Terms {
    /// A tag whose label is in these words.
    fn labelled(self, tag: &str) -> String {
        let label = tag.find(LABEL).map(|start| start + LABEL.len());
        let label = label.and_then(|start| Some(start..start + tag[start..].find('"')?));
        match label {
            Some(label) => {
                let (before, after) = (&tag[..label.start], &tag[label.end..]);
                format!("{before}{}{after}", self.said(&tag[label]))
            }
            None => tag.to_owned(),
        }
    }
}

/// A text with whole words replaced. A word includes letters, digits and the punctuation of paths and names.
fn translated(text: &str, words: &[(&str, &str)]) -> String {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '/' | ':' | '=' | '@');
    let mut said = String::with_capacity(text.len());
    let mut before: Option<char> = None;
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let found = words
            .iter()
            .filter(|_| before.is_none_or(|before| !is_part(before)));
        let found = found.into_iter().find(|(word, _)| {
            let after = rest.strip_prefix(word);
            after.is_some_and(|after| {
                let mut next = after.chars();
                match next.next() {
                    // `core.clock` is a name, the end of a sentence is not.
                    Some('.') => next.next().is_none_or(|c| !c.is_alphanumeric()),
                    Some(':') => next.next().is_none_or(char::is_whitespace),
                    Some(c) => !is_part(c),
                    None => true,
                }
            })
        });
        let (taken, put) = found
            .copied()
            .unwrap_or((&rest[..first.len_utf8()], &rest[..first.len_utf8()]));
        said.push_str(put);
        before = taken.chars().last();
        rest = &rest[taken.len()..];
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_words_are_translated_and_names_are_not() {
        for (ours, cuda) in [
            (
                "only 4 of 64 sub-groups are resident on each core, with 132 work-groups of 128 work-items.",
                "only 4 of 64 warps are resident on each SM, with 132 blocks of 128 threads.",
            ),
            ("Sub-groups wait; a core has four.", "Warps wait; an SM has four."),
            (
                "--model core.count=80 in src/core.rs, core-dump",
                "--model core.count=80 in src/core.rs, core-dump",
            ),
            ("`a core` and `work-groups`", "`a core` and `work-groups`"),
            ("Verdict: more work-groups\n", "Verdict: more blocks\n"),
        ] {
            assert_eq!(Terms::Cuda.said(ours), cuda);
        }
        assert_eq!(
            Terms::Sycl.said("A core has shared memory for its work-groups, then L2 (`--l2`)."),
            "An Xe-core has local memory for its work-groups, then L3 (`--l2`)."
        );
    }

    #[test]
    fn pages_keep_their_style_and_code() {
        let page =
            "<style>.core { }</style><p class=\"core\">a core</p><pre><code>core</code> core</pre> core";
        assert_eq!(
            Terms::Cuda.in_page(page),
            "<style>.core { }</style><p class=\"core\">an SM</p><pre><code>core</code> core</pre> SM"
        );
        let labelled =
            "<svg class=\"core\" aria-label=\"Sub-groups of a core\" role=\"img\"><title>core</title>";
        assert_eq!(
            Terms::Cuda.in_page(labelled),
            "<svg class=\"core\" aria-label=\"Warps of an SM\" role=\"img\"><title>SM</title>"
        );
    }
}
