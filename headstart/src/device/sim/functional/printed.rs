//! What kernels print: kept in the order of the work-items, up to a limit.
//!
//! Work-groups run in any order, and what they print is the same: a line is kept if those of the work-items before it
//! leave room for it, whenever they come.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Most bytes that are kept of what one launch prints: as much as the buffer of NVIDIA's driver holds.
pub(super) const MOST_BYTES: usize = 1 << 20;

/// What a work-group has printed.
#[derive(Debug, Default)]
pub(super) struct Prints {
    /// For each line, whose it is.
    lines: Vec<(u32, String)>,
    bytes: usize,
    /// Lines that were printed when there were [`MOST_BYTES`] already.
    lost: u64,
}

impl Prints {
    /// Adds a line of a work-item.
    pub fn add(&mut self, item: u32, line: String) {
        // Twice as many, for lines of earlier work-items may come later.
        if self.bytes > 2 * MOST_BYTES {
            self.lost += 1;
            return;
        }
        self.bytes += line.len();
        self.lines.push((item, line));
    }
}

/// What a launch has printed.
#[derive(Debug, Default)]
pub(super) struct Printed(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    groups: BTreeMap<u64, Vec<String>>,
    bytes: usize,
    lost: u64,
}

impl Printed {
    /// Adds what a work-group has printed, at its end.
    pub fn add(&self, group: u64, mut prints: Prints) {
        if prints.lines.is_empty() {
            return;
        }
        // Stable: each work-item's lines stay in its order.
        prints.lines.sort_by_key(|&(item, _)| item);
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.lost += prints.lost;
        kept.bytes += prints.bytes;
        let lines = prints.lines.into_iter().map(|(_, line)| line).collect();
        kept.groups.insert(group, lines);
        // What lies behind the limit stays there, whatever comes.
        while let Some((&last, lines)) = kept.groups.last_key_value() {
            let bytes: usize = lines.iter().map(String::len).sum();
            if kept.bytes - bytes < MOST_BYTES {
                break;
            }
            kept.lost += lines.len() as u64;
            kept.bytes -= bytes;
            kept.groups.remove(&last);
        }
    }

    /// All of it, and how much is missing.
    pub fn text(&self) -> String {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = String::new();
        let mut lost = kept.lost;
        for line in kept.groups.values().flatten() {
            if lost > kept.lost || text.len() + line.len() > MOST_BYTES {
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
        let text = |order: &[u64]| {
            let printed = Printed::default();
            for &group in order {
                let mut prints = Prints::default();
                for item in [1, 0] {
                    prints.add(item, format!("{group}.{item}{}\n", "x".repeat(MOST_BYTES / 8)));
                }
                printed.add(group, prints);
            }
            printed.text()
        };
        let in_order = text(&[0, 1, 2, 3, 4, 5]);
        assert!(in_order.starts_with("0.0x") && in_order.ends_with("… and 5 more, which were not kept\n"));
        assert_eq!(text(&[5, 3, 0, 4, 1, 2]), in_order);
    }
}
