//! The differences between two kernels' code.
//!
//! Values, registers and labels are numbered anew in each kernel, and source places move with every line that is inserted. Lines
//! that differ in these alone are taken as the same, or everything behind the first change would differ.

use std::ops::Range;

use serde::Serialize;
use similar::{Algorithm, DiffOp, capture_diff_slices, group_diff_ops};

use crate::arguments::CodeForm;

/// Lines around a change that are shown with it.
const AROUND: usize = 2;

/// The differences.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// The form of the code, in words.
    pub form: &'static str,
    /// Lines that only A has.
    pub removed: usize,
    /// Lines that only B has.
    pub added: usize,
    /// Both lines of changes, with some around them.
    pub lines: Vec<Line>,
    /// Whether it is the whole code of the kernels that were timed.
    #[serde(skip)]
    pub is_of_both_kernels: bool,
}

/// A line of the difference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Line {
    /// Whose it is.
    pub of: Whose,
    /// The line, without its end.
    pub text: String,
}

/// Whose a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Whose {
    /// Only A has it.
    A,
    /// Only B has it.
    B,
    /// Both have it.
    Both,
    /// It says where in both codes the lines below it stand.
    Place,
}

impl Difference {
    /// Whether nothing differs.
    pub fn is_none(&self) -> bool {
        self.removed == 0 && self.added == 0
    }

    /// Between two texts in one form.
    pub fn between(form: CodeForm, a: &str, b: &str) -> Difference {
        let (a, b) = (lines(form, a), lines(form, b));
        let keys = |lines: &[&str]| -> Vec<String> { lines.iter().map(|line| key(form, line)).collect() };
        let ops = capture_diff_slices(Algorithm::Myers, &keys(&a), &keys(&b));
        let count = |of: fn(&DiffOp) -> Range<usize>| -> usize {
            ops.iter()
                .filter(|op| !matches!(op, DiffOp::Equal { .. }))
                .map(|op| of(op).len())
                .sum()
        };
        let (removed, added) = (count(DiffOp::old_range), count(DiffOp::new_range));
        let mut shown = Vec::new();
        let mut put = |of: Whose, text: String| shown.push(Line { of, text });
        for group in group_diff_ops(ops, AROUND) {
            if let Some(first) = group.first() {
                let place = format!(
                    "@@ A line {}, B line {}",
                    first.old_range().start + 1,
                    first.new_range().start + 1
                );
                put(Whose::Place, place);
            }
            for op in group {
                let (old, new) = (&a[op.old_range()], &b[op.new_range()]);
                match op {
                    DiffOp::Equal { .. } => old.iter().for_each(|line| put(Whose::Both, plain(line))),
                    _ => {
                        old.iter().for_each(|line| put(Whose::A, plain(line)));
                        new.iter().for_each(|line| put(Whose::B, plain(line)));
                    }
                }
            }
        }
        Difference {
            form: match form {
                CodeForm::Ir => "IR",
                CodeForm::Ptx => "PTX",
                CodeForm::Machine => "machine code",
                CodeForm::None => "code",
            },
            removed,
            added,
            lines: shown,
            is_of_both_kernels: true,
        }
    }
}

/// The lines that count: not those that only state source lines, or declare registers.
fn lines(form: CodeForm, text: &str) -> Vec<&str> {
    let is_counted = |line: &&str| {
        let line = line.trim_start();
        match form {
            CodeForm::Ptx => ![".loc", ".reg", ".file"]
                .iter()
                .any(|start| line.starts_with(start)),
            CodeForm::Machine => !line.starts_with("machine @"),
            CodeForm::Ir => !line.starts_with("file #"),
            CodeForm::None => true,
        }
    };
    text.lines().filter(is_counted).collect()
}

/// A line as it is shown: a tab is as wide as two spaces.
fn plain(line: &str) -> String {
    line.trim_end().replace('\t', "  ")
}

/// The common part of two equal lines.
fn key(form: CodeForm, line: &str) -> String {
    let line = match form {
        CodeForm::Ir => without_place(line),
        // Its address, and what it was made from.
        CodeForm::Machine => line.split(" ; ").next().unwrap_or(line).get(5..).unwrap_or(line),
        CodeForm::Ptx | CodeForm::None => line,
    };
    let line = line.trim();
    let mut key = String::with_capacity(line.len());
    let is_of_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '$');
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let is_name = is_of_name(first) || first == '%';
        let start = first.len_utf8();
        let end = match is_name {
            true => rest[start..]
                .find(|c| !is_of_name(c))
                .map_or(rest.len(), |at| start + at),
            false => start,
        };
        let (word, after) = rest.split_at(end);
        let is_numbered = first == '%' || first == '$' || is_register(word);
        key.push_str(match is_numbered {
            true => word.trim_end_matches(|c: char| c.is_ascii_digit() || c == '_'),
            false => word,
        });
        rest = after;
    }
    key
}

/// A register of machine code: `r12`.
fn is_register(word: &str) -> bool {
    word.strip_prefix('r')
        .is_some_and(|number| !number.is_empty() && number.chars().all(|c| c.is_ascii_digit()))
}

/// A line of IR without the place that it ends with: `#1:46:17`.
fn without_place(line: &str) -> &str {
    let is_place = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit() || c == ':');
    match line.rsplit_once(" #") {
        Some((before, place)) if is_place(place) => before,
        _ => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(difference: &Difference) -> String {
        let mark = |line: &Line| match line.of {
            Whose::A => '-',
            Whose::B => '+',
            Whose::Both => ' ',
            Whose::Place => '@',
        };
        let lines = difference
            .lines
            .iter()
            .map(|line| format!("{}{}\n", mark(line), line.text));
        lines.collect()
    }

    #[test]
    fn numbers_of_values_and_places_are_no_difference() {
        let a = "%1 = add %0, 1:i64 #1:2:3\n%x_3 = load %1 #1:2:4\nreturn\n";
        let b = "%7 = add %6, 1:i64 #1:9:3\n%x_8 = load %7 #1:9:4\nreturn\n";
        assert!(Difference::between(CodeForm::Ir, a, b).is_none());
        let other = b.replace("1:i64", "2:i64");
        let differs = Difference::between(CodeForm::Ir, a, &other);
        assert_eq!((differs.removed, differs.added), (1, 1));
        assert_eq!(
            shown(&differs),
            "@@@ A line 1, B line 1\n-%1 = add %0, 1:i64 #1:2:3\n+%7 = add %6, 2:i64 #1:9:3\n %x_3 = load %1 #1:2:4\n return\n"
        );
    }

    #[test]
    fn ptx_is_compared_without_its_registers_and_lines() {
        let a = "\t.reg .b32 %r<3>;\n\t.loc 1 2 3\n$L__BB0_2:\n\tadd.s32 %r1, %r2, 7;\n";
        let b = "\t.reg .b32 %r<9>;\n$L__BB0_5:\n\tadd.s32 %r8, %r2, 7;\n";
        assert!(Difference::between(CodeForm::Ptx, a, b).is_none());
        assert!(!Difference::between(CodeForm::Ptx, a, &b.replace('7', "8")).is_none());
    }

    #[test]
    fn machine_code_is_compared_without_addresses_and_registers() {
        let a = "machine @a: 1 instructions\n00010  int32 r4 <- r1   ; %21 = extend.u\n";
        let b = "machine @b: 1 instructions\n00ff0  int32 r5 <- r2   ; %7 = extend.u\n";
        assert!(Difference::between(CodeForm::Machine, a, b).is_none());
        assert!(!Difference::between(CodeForm::Machine, a, &b.replace("int32", "int64")).is_none());
    }
}
