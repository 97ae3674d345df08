//! What stands below a report's tables, in sections: what to change before any plan, why, how sure, at what cost, what else
//! would help.
//!
//! Each point has a rank. Where the text would get longer than a screen, the points of the last ranks are left out first.

use std::fmt::Write;

use super::columns::Columns;
use super::{Partial, Report, Verdict, table, taken};

/// Lines of a report at 100 characters a line; a narrower terminal shows the same in more.
pub(crate) const LINES: usize = 40;
/// The characters of a line that this is counted for.
pub(super) const WIDTH: usize = 100;
/// The rank of what is always said: what the plan rests on, its first reason, and its cost.
const ALWAYS: usize = 0;

/// What stands below a report that leaves something out.
const MORE: &str = "`-v` shows more.";

/// The sections of a report.
#[derive(Debug, Default)]
pub(crate) struct Sections {
    /// A title, and its points with their ranks.
    sections: Vec<(&'static str, Vec<(usize, String)>)>,
    /// How many plans were tried, and with what result.
    tried: Option<String>,
}

impl Sections {
    /// Those of a report.
    pub(crate) fn of_report(report: &Report) -> Sections {
        let ranked = |from: usize, points: Vec<String>| {
            let points = points.into_iter().enumerate();
            points.map(move |(number, text)| (from + number, text))
        };
        let mut why: Vec<(usize, String)> = ranked(ALWAYS, report.reasons.clone()).collect();
        why.extend(ranked(3, report.gains()));
        if report.timed().is_none() {
            why.extend(ranked(2, table::refusals(report)));
        }
        // The basis of all times, and then how the plan was checked, are said however long the rest is.
        let (basis, others) = report.notes.split_at(report.notes.len().min(1));
        let mut checks = report.checks();
        let basis = basis.iter().cloned().chain(checks.next());
        let mut sure: Vec<(usize, String)> = basis.map(|basis| (ALWAYS, basis)).collect();
        let partial = report.partial.as_ref().map(Partial::to_string);
        let others = others.iter().filter(|note| Some(*note) != partial.as_ref());
        sure.extend(ranked(1, checks.chain(others.cloned()).collect()));
        sure.extend(report.weakness().map(|weakness| (ALWAYS, weakness)));
        sure.extend(partial.iter().map(|partial| (ALWAYS, partial.clone())));
        let left_out = report.ways.iter().flat_map(|ways| &ways.left_out);
        sure.extend(left_out.map(|reason| (9, format!("Not tried: {reason}."))));
        sure.extend(report.granted().map(|sentence| (ALWAYS, sentence)));
        let costs = ranked(ALWAYS, taken::cost(report).into_iter().collect());
        let first = report.first.iter().map(|remedy| {
            let place = remedy.place.iter().map(|place| format!("{place}: "));
            place.collect::<String>() + &remedy.finding
        });
        let first = ranked(1, first.collect()).collect();
        let asked = report.ways.iter().flat_map(|ways| &ways.best);
        let asked = asked.flat_map(|best| best.way.how());
        let asked = asked.map(|how| format!("To get {how}."));
        // The first of them is a part of the verdict where nothing is known without it.
        let told = usize::from(report.verdict == Verdict::Undecided && report.trials.len() == 1);
        let statements = report.unlocking.iter().skip(told).cloned();
        let asked = ranked(1, asked.chain(statements).collect()).collect();
        Sections {
            sections: vec![
                ("Before any plan", first),
                ("Why", why),
                ("How sure", sure),
                ("What it costs", costs.collect()),
                ("What else would help", asked),
            ],
            tried: report.tried(),
        }
    }

    /// All of them.
    pub(crate) fn all(&self, columns: Columns) -> String {
        self.of(columns, |_| true, "")
    }

    /// The lines of what is always said.
    pub(crate) fn least(&self, columns: Columns) -> usize {
        let is_always = |(section, at): (usize, usize)| self.sections[section].1[at].0 == ALWAYS;
        self.of(columns, is_always, MORE).lines().count()
    }

    /// As many points as fit below `above` lines at the width that is counted for, and those that are always said.
    pub(crate) fn within(&self, columns: Columns, above: usize) -> String {
        let ranked = |(section, (_, points)): (usize, &(&str, Vec<(usize, String)>))| {
            let ranks = points.iter().enumerate();
            ranks
                .map(|(at, (rank, _))| (*rank, section, at))
                .collect::<Vec<_>>()
        };
        let mut kept: Vec<(usize, usize, usize)> =
            self.sections.iter().enumerate().flat_map(ranked).collect();
        kept.sort_unstable();
        let shown = |columns: Columns, kept: &[(usize, usize, usize)]| {
            let is_kept = |place| kept.iter().any(|&(_, section, at)| (section, at) == place);
            self.of(columns, is_kept, MORE)
        };
        let is_long = |kept: &[_]| above + shown(columns.of_width(WIDTH), kept).lines().count() > LINES;
        while kept.last().is_some_and(|(rank, ..)| *rank > ALWAYS) && is_long(&kept) {
            kept.pop();
        }
        shown(columns, &kept)
    }

    /// The points that are kept, by their section and place in it; then what more there is.
    fn of(&self, columns: Columns, is_kept: impl Fn((usize, usize)) -> bool, more: &str) -> String {
        let mut text = String::new();
        for (section, (title, points)) in self.sections.iter().enumerate() {
            let points = points.iter().enumerate();
            let mut points = points.filter(|(at, _)| is_kept((section, *at))).peekable();
            if points.peek().is_some() {
                // Writing to a String cannot fail.
                let _ = writeln!(text, "\n{title}");
            }
            for (_, (_, point)) in points {
                text.push_str(&columns.wrapped(point, "  - ", "    "));
            }
        }
        let tried = self.tried.as_deref().unwrap_or_default();
        text + "\n" + &columns.wrapped(format!("{tried} {more}").trim(), "", "")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    use crate::report::{LaunchSettings, Perturbed, SettingsTrial, Ways};
    use crate::samples::sample;

    #[test]
    fn settings_are_said_with_how_they_are_asked_for() {
        let mut report = sample();
        let best = SettingsTrial {
            way: LaunchSettings {
                sub_group: Some(16),
                ..LaunchSettings::default()
            },
            plan: report.best.plan.clone(),
            time_ns: 1.0,
            speedup: 9.0,
        };
        report.ways = Some(Ways {
            trials: vec![best.clone()],
            best: Some(best),
            left_out: vec!["work-groups of other sizes: the kernel requires 256".to_owned()],
        });
        let text = table::text(&report, Columns::UNLIMITED);
        for expected in [
            "Not tried: work-groups of other sizes",
            "To get sub-groups of 16: `[[sycl::reqd_sub_group_size(16)]]`",
        ] {
            assert!(text.contains(expected), "{expected} in:\n{text}");
        }
    }

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
        report.perturbed = Some(Perturbed {
            kernel: String::new(),
            seed: 1,
            digest: String::new(),
            launches: 441,
            dropped: 0,
            dropped_for: BTreeMap::new(),
            agreed: 441,
            not_for: 0,
            on_device: None,
            weakly_checked: vec!["the loop at k.cu:19:3 never had more than 9 iterations".to_owned()],
        });
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
            "proves little: the loop at k.cu:19:3",
            "takes for granted",
            "`-v`",
        ];
        assert!(order.map(place).is_sorted(), "{text}");
        assert!(!text.contains("Reason 29"), "{text}");
        // A longer basis takes the place of plans, not of the reason.
        let rows = |text: &str| text.lines().filter(|line| line.ends_with('×')).count();
        report.notes[0] = "The times are of a model. ".repeat(52);
        let longer = table::text(&report, Columns::new(100));
        assert!(
            longer.contains("Reason 0") && rows(&longer) < rows(&text),
            "{longer}"
        );
        let full = table::in_full(&report, Columns::new(100));
        assert!(
            full.contains("Reason 29") && full.contains("by distance"),
            "{full}"
        );
    }
}
