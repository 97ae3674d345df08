//! Kernels' printed lines: kept in the order of the work-items, up to a limit.
//!
//! Work-groups run in any order, but the output is always the same: a line is kept if the lines of lower-numbered work-items
//! leave room for it, whenever they are printed.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::ir::line::PrintLimits;

/// A work-group's lines.
#[derive(Debug, Default)]
pub(super) struct Prints {
    /// For each line, whose it is.
    lines: Vec<(u32, String)>,
    bytes: usize,
    /// Lines that were printed when there were more bytes than are kept already.
    lost: u64,
}

impl Prints {
    /// Adds a line of a work-item.
    pub(crate) fn add(&mut self, item: u32, line: String, limits: &PrintLimits) {
        // Twice as many, for lines of earlier work-items may come later.
        if self.bytes / 2 > limits.buffer_bytes {
            self.lost += 1;
            return;
        }
        let line = limits.cut(line);
        self.bytes += line.len();
        self.lines.push((item, line));
    }
}

/// A launch's lines.
#[derive(Debug)]
pub(super) struct Printed {
    kept: Mutex<Kept>,
    most_bytes: usize,
}

#[derive(Debug, Default)]
struct Kept {
    groups: BTreeMap<u64, Vec<String>>,
    bytes: usize,
    lost: u64,
}

impl Printed {
    /// Nothing yet.
    pub(crate) fn new(limits: &PrintLimits) -> Printed {
        Printed {
            kept: Mutex::default(),
            most_bytes: limits.buffer_bytes,
        }
    }

    /// Adds a work-group's lines, at its end.
    pub(crate) fn add(&self, group: u64, mut prints: Prints) {
        if prints.lines.is_empty() {
            return;
        }
        // Stable: each work-item's lines stay in its order.
        prints.lines.sort_by_key(|&(item, _)| item);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.lost += prints.lost;
        kept.bytes += prints.bytes;
        let lines = prints.lines.into_iter().map(|(_, line)| line).collect();
        kept.groups.insert(group, lines);
        // Lines beyond the limit stay there, whatever comes.
        while let Some((&last, lines)) = kept.groups.last_key_value() {
            let bytes: usize = lines.iter().map(String::len).sum();
            if kept.bytes - bytes < self.most_bytes {
                break;
            }
            kept.lost += lines.len() as u64;
            kept.bytes -= bytes;
            kept.groups.remove(&last);
        }
    }

    /// All of it, and how much is missing.
    pub(crate) fn text(&self) -> String {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = String::new();
        let mut lost = kept.lost;
        for line in kept.groups.values().flatten() {
            if lost > kept.lost || text.len() + line.len() > self.most_bytes {
                lost += 1;
            } else {
                text.push_str(line);
            }
        }
        if lost > 0 {
            text.push_str(&format!("… and {lost} more, which were not kept\n"));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_work_items_are_kept_whatever_the_order() {
        let limits = PrintLimits {
            buffer_bytes: 1 << 12,
            line_bytes: usize::MAX,
        };
        let text = |order: &[u64]| {
            let printed = Printed::new(&limits);
            for &group in order {
                let mut prints = Prints::default();
                for item in [1, 0] {
                    let line = format!("{group}.{item}{}\n", "x".repeat(limits.buffer_bytes / 8));
                    prints.add(item, line, &limits);
                }
                printed.add(group, prints);
            }
            printed.text()
        };
        let in_order = text(&[0, 1, 2, 3, 4, 5]);
        assert!(in_order.starts_with("0.0x") && in_order.ends_with("… and 5 more, which were not kept\n"));
        assert_eq!(text(&[5, 3, 0, 4, 1, 2]), in_order);
    }

    #[test]
    fn a_line_that_is_too_long_is_cut_off_and_keeps_its_end() {
        let cut = |line: &str, line_bytes| {
            let limits = PrintLimits {
                line_bytes,
                ..PrintLimits::default()
            };
            limits.cut(line.to_owned())
        };
        assert_eq!(cut("sum 12345\n", 10), "sum 12345\n");
        assert_eq!(cut("sum 12345\n", 8), "sum 123\n");
        assert_eq!(cut("sum 12345", 8), "sum 1234");
        // Not inside a character.
        assert_eq!(cut("µs µs\n", 6), "µs \n");
        assert_eq!(
            (cut("sum\n", 1), cut("sum\n", 0)),
            ("\n".to_owned(), String::new())
        );
    }
}
