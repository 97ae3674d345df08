//! Text laid out for the terminal's width, in the reader's terms.
//!
//! Words are never split: a line with one that is longer than the terminal stays as long.

use super::terms::Terms;

/// Characters in a line of running text: longer lines are hard to read, however wide the terminal is.
const RUNNING: usize = 100;
/// Narrower terminals are treated as this wide: nothing would fit.
const NARROWEST: usize = 40;

/// How wide the terminal is, in characters, and whose words are used there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Columns {
    width: usize,
    terms: Option<Terms>,
}

impl Columns {
    /// For a file or a pipe: tables are as wide as they are.
    pub const UNLIMITED: Columns = Columns {
        width: usize::MAX,
        terms: None,
    };

    /// A terminal of this width.
    pub fn new(width: usize) -> Columns {
        Columns {
            width: width.max(NARROWEST),
            terms: None,
        }
    }

    /// The same for readers who use these words.
    #[must_use]
    pub fn in_terms(self, terms: Option<Terms>) -> Columns {
        Columns { terms, ..self }
    }

    /// The same in lines of another width.
    #[cfg(feature = "page")]
    pub(super) fn of_width(self, width: usize) -> Columns {
        Columns { width, ..self }
    }

    /// The width, in characters.
    pub fn width(self) -> usize {
        self.width
    }

    /// A text in the reader's words.
    pub fn said(self, text: &str) -> String {
        self.terms
            .map_or_else(|| text.to_owned(), |terms| terms.said(text))
    }

    /// Running text broken into lines at spaces, the first and the following ones with their indentation. Control characters
    /// are replaced.
    pub fn wrapped(self, text: &str, first: &str, following: &str) -> String {
        let width = self.width.min(RUNNING);
        let mut lines = String::new();
        let mut line = first.to_owned();
        let mut empty = true;
        for word in self.said(&on_one_line(text)).split(' ') {
            if !empty && length(&line) + 1 + length(word) > width {
                lines.push_str(line.trim_end());
                lines.push('\n');
                line = following.to_owned();
                empty = true;
            }
            if !empty {
                line.push(' ');
            }
            line.push_str(word);
            empty = false;
        }
        lines.push_str(&line);
        lines.push('\n');
        lines
    }

    /// Wraps lines that are too long at spaces. Continuation lines are indented to the start of the line's second column, which
    /// follows two spaces or more, or else by two more than the line.
    pub fn fitted(self, text: &str) -> String {
        let text = self.said(text);
        if text.lines().all(|line| length(line) <= self.width) {
            return text;
        }
        let mut fitted = String::with_capacity(text.len() + text.len() / 8);
        for line in text.split_inclusive('\n') {
            let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
            match length(line) <= self.width {
                true => fitted.push_str(line),
                false => fitted.push_str(self.hanging(line).trim_end()),
            }
            fitted.push_str(end);
        }
        fitted
    }

    fn hanging(self, line: &str) -> String {
        let start = length(line) - length(line.trim_start());
        let content = line.trim_start();
        let second = content.find("  ").map(|at| {
            let gap = content[at..].len() - content[at..].trim_start().len();
            start + length(&content[..at]) + gap
        });
        let indent = second
            .filter(|&second| second <= self.width / 2)
            .unwrap_or(start + 2);
        let mut lines = String::new();
        let mut here = String::new();
        // Spaces inside the line stay: only those at which it breaks are dropped.
        for part in line.split_inclusive(' ') {
            if !here.trim().is_empty() && length(&here) + length(part.trim_end()) > self.width {
                lines.push_str(here.trim_end());
                lines.push('\n');
                here = " ".repeat(indent);
            }
            here.push_str(part);
        }
        lines.push_str(&here);
        lines
    }
}

/// A text in lines of at most `width` characters where it can be broken: after one of the `breaks`.
pub fn broken(text: &str, width: usize, breaks: &[char]) -> String {
    let mut lines = vec![String::new()];
    for part in text.split_inclusive(breaks) {
        let last = lines.last_mut().expect("there is always a line");
        if !last.is_empty() && length(last) + length(part.trim_end()) > width {
            lines.push(part.to_owned());
        } else {
            last.push_str(part);
        }
    }
    let trimmed: Vec<&str> = lines.iter().map(|line| line.trim_end()).collect();
    trimmed.join("\n")
}

/// Text from outside (a kernel's name, a reason that quotes it) must not move the cursor.
#[doc(hidden)]
pub fn on_one_line(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect()
}

/// Characters of a text.
fn length(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn running_text_is_broken_at_spaces() {
        let columns = Columns::UNLIMITED;
        let text = columns.wrapped(&"word ".repeat(50), "- ", "  ");
        assert!(text.lines().all(|line| length(line) <= RUNNING));
        assert_eq!(text.matches("word").count(), 50);
        assert!(text.lines().skip(1).all(|line| line.starts_with("  word")));
        assert_eq!(columns.wrapped(&"x".repeat(300), "- ", "  ").lines().count(), 1);
        let narrow = Columns::new(60).wrapped(&"word ".repeat(50), "- ", "  ");
        assert!(narrow.lines().all(|line| length(line) <= 60));
    }

    #[test]
    fn long_lines_hang_below_their_second_part() {
        let columns = Columns::new(40);
        let text = "short\n  --set apart=4  one two three four five six seven\n    a sentence that is too long for it\n";
        assert_eq!(
            columns.fitted(text),
            "short\n  --set apart=4  one two three four five\n                 six seven\n    a sentence that is too long for it\n"
        );
        assert_eq!(
            columns.fitted("  a sentence that is too long for a line of it"),
            "  a sentence that is too long for a line\n    of it"
        );
        assert_eq!(columns.fitted(&"x".repeat(50)), "x".repeat(50));
        assert_eq!(Columns::UNLIMITED.fitted(text), text);
    }

    #[test]
    fn plans_are_broken_after_commas() {
        let plan = "unroll:8,a=cache:L1:2,b=cache:L1:2";
        assert_eq!(broken(plan, 22, &[',']), "unroll:8,a=cache:L1:2,\nb=cache:L1:2");
        assert_eq!(broken(plan, 100, &[',']), plan);
        assert_eq!(
            broken(plan, 5, &[','])
                .parse::<crate::prefetch::Plan>()
                .expect("a plan"),
            plan.parse().expect("a plan")
        );
    }
}
