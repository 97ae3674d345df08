//! What stands below a report's tables, in sections: why, how sure, at what cost, what else would help.
//!
//! Each point has a rank. Where the text would get longer than a screen, the points of the last ranks are left out first.

use std::fmt::Write;

use super::columns::Columns;
use super::{Report, table, taken};

/// Lines of a report at 100 characters a line; a narrower terminal has more.
pub const LINES: usize = 40;
/// The characters of a line that this is counted for.
const WIDTH: usize = 100;
/// The rank of what is always said: the plan rests on it.
const ALWAYS: usize = 0;

/// The sections of a report.
#[derive(Debug, Default)]
pub struct Sections {
    /// A title, and its points with their ranks.
    sections: Vec<(&'static str, Vec<(usize, String)>)>,
    /// How many plans were tried, and with what result.
    tried: Option<String>,
}

impl Sections {
    /// Those of a report.
    pub fn of(report: &Report) -> Sections {
        let ranked = |from: usize, points: Vec<String>| {
            let points = points.into_iter().enumerate();
            points.map(move |(number, text)| (from + number, text))
        };
        let mut why: Vec<(usize, String)> = ranked(1, report.reasons.clone()).collect();
        why.extend(ranked(3, report.gains()));
        if report.timed().0 == 0 {
            why.extend(ranked(2, table::refusals(report)));
        }
        let mut sure: Vec<(usize, String)> = ranked(1, report.remarks().collect()).collect();
        sure.extend(report.granted().map(|sentence| (ALWAYS, sentence)));
        let costs = ranked(1, taken::cost(report).into_iter().collect());
        let first = report.first.iter().map(|remedy| {
            let place = remedy.place.iter().map(|place| format!("{place}: "));
            place.collect::<String>() + &remedy.finding
        });
        let asked = report.ways.iter().flat_map(|ways| &ways.best);
        let asked = asked.flat_map(|best| best.way.how());
        let asked = asked.map(|how| format!("To get {how}."));
        let else_ = ranked(1, first.chain(asked).collect());
        Sections {
            sections: vec![
                ("Why", why),
                ("How sure", sure),
                ("What it costs", costs.collect()),
                ("What else would help", else_.collect()),
            ],
            tried: report.tried(),
        }
    }

    /// All of them.
    pub fn all(&self, columns: Columns) -> String {
        self.up_to(columns, usize::MAX, "")
    }

    /// As many points as fit below so many lines, those that are always said in any case.
    pub fn within(&self, columns: Columns, above: usize) -> String {
        let lines = LINES * WIDTH / columns.width().min(WIDTH);
        let ranks = self.sections.iter().flat_map(|(_, points)| points);
        let mut rank = ranks.map(|(rank, _)| *rank).max().unwrap_or(ALWAYS);
        loop {
            let text = self.up_to(columns, rank, "`-v` shows more");
            if above + text.lines().count() <= lines || rank == ALWAYS {
                return text;
            }
            rank -= 1;
        }
    }

    /// The points up to a rank; what the others are behind, where there are others.
    fn up_to(&self, columns: Columns, last: usize, more: &str) -> String {
        let mut text = String::new();
        for (title, points) in &self.sections {
            let mut points = points.iter().filter(|(rank, _)| *rank <= last).peekable();
            if points.peek().is_some() {
                // Writing to a String cannot fail.
                let _ = writeln!(text, "\n{title}");
            }
            for (_, point) in points {
                text.push_str(&columns.wrapped(point, "  - ", "    "));
            }
        }
        let more = match more {
            "" => String::new(),
            more => format!("{more}."),
        };
        let last: Vec<&str> = self.tried.as_deref().into_iter().chain(Some(&*more)).collect();
        text + "\n" + &columns.wrapped(last.join(" ").trim(), "", "")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::sample;

    #[test]
    fn a_report_is_a_screen_and_says_first_what_to_do() {
        let mut report = sample();
        report.reasons = (0..30)
            .map(|number| format!("Reason {number} is that it waits, as those before it."))
            .collect();
        report.taken_for_granted = vec![
            "`values` overlaps nothing".to_owned(),
            "`n` is at least 1".to_owned(),
        ];
        let text = table::text(&report, Columns::new(100));
        assert!(text.lines().count() <= LINES, "{text}");
        let place = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part} in:\n{text}"));
        let order = [
            "Verdict: ",
            "  plan: ",
            "speedup",
            "\nWhy\n",
            "Reason 0",
            "\nHow sure\n",
            "takes for granted",
            "`-v`",
        ];
        assert!(order.map(place).is_sorted(), "{text}");
        assert!(!text.contains("Reason 29"), "{text}");
        let full = table::in_full(&report, Columns::new(100));
        assert!(
            full.contains("Reason 29") && full.contains("by distance"),
            "{full}"
        );
    }
}
