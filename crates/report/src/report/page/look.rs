//! How a line of the figure looks: its colour, the shape of its marks, its dashes.
//!
//! The look follows the strategy, never the rank, so that the same strategy looks the same in every report.

use crate::prefetch::plan::{self, CacheLevel, Layout, Mark, Strategy};
use crate::report::series::Series;

/// The looks of a report's lines. Where two loads use one strategy, the second differs from the first by colour and mark.
pub(in crate::report) struct Looks(Vec<(String, Look)>);

impl Looks {
    /// Of all lines of a report, in their order.
    pub(in crate::report) fn of(series: &[Series]) -> Looks {
        // What each strategy of the first load that uses it looks like stays as it is.
        let mut taken: Vec<(&str, Told, Told)> = Vec::new();
        let mut used: Vec<Told> = Vec::new();
        for line in series {
            let own = Look::of(line).told;
            if !used.contains(&own) {
                used.push(own);
                taken.push((line.load(), own, own));
            }
        }
        let mut looks = Vec::new();
        for line in series {
            let (look, load) = (Look::of(line), line.load());
            let mut known = taken
                .iter()
                .filter(|(other, own, _)| (*other, *own) == (load, look.told));
            let told = known
                .next()
                .map(|(.., shown)| *shown)
                .unwrap_or_else(|| another(look.told, &used));
            used.push(told);
            taken.push((load, look.told, told));
            looks.push((line.label.clone(), Look { told, ..look }));
        }
        Looks(looks)
    }

    /// The look of one of them.
    pub(in crate::report) fn look(&self, line: &Series) -> Look {
        let known = self.0.iter().find(|(label, _)| *label == line.label);
        known.map_or_else(|| Look::of(line), |(_, look)| *look)
    }
}

/// Every mark, in the order in which lines without a strategy get them.
const MARKS: [Mark; 8] = {
    use Mark::*;
    [
        Circle,
        Square,
        Diamond,
        Triangle,
        TriangleDown,
        Pentagon,
        Plus,
        Cross,
    ]
};

/// Colours beside grey, which is 0 and stands for loads without prefetch.
const COLOURS: usize = 8;

/// The distinction between lines of several loads: colour and mark.
type Told = (usize, Option<Mark>);

/// Another colour and another mark, that no line has yet as long as there are some left.
fn another((colour, mark): Told, used: &[Told]) -> Told {
    let pairs = (1..=COLOURS).flat_map(|colour| MARKS.map(|mark| (colour, Some(mark))));
    let others = pairs.filter(|pair| pair.0 != colour && pair.1 != mark);
    let is_worse = |pair: &Told| {
        let has_colour = used.iter().any(|other| other.0 == pair.0);
        let has_mark = used.iter().any(|other| other.1 == pair.1);
        (used.contains(pair), has_colour, has_mark)
    };
    others.min_by_key(is_worse).unwrap_or((colour, mark))
}

/// The look of one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::report) struct Look {
    told: Told,
    /// None where its points are not joined.
    dashes: Option<&'static str>,
    /// Marks of grouped plans are hollow.
    hollow: bool,
}

impl Look {
    /// The look of a series.
    pub(in crate::report) fn of(series: &Series) -> Look {
        let plan::Look { colour, mark } = match series.strategy {
            None => plan::Look {
                colour: 0,
                mark: Mark::Plus,
            },
            Some(strategy) => {
                let descriptor = strategy.descriptor();
                let at_l1 = descriptor
                    .look_at_l1
                    .filter(|_| strategy.level() == Some(CacheLevel::L1));
                at_l1.unwrap_or(descriptor.look)
            }
        };
        let dashes = match (series.layout(), series.grouped) {
            (Some(Layout::Plain), _) => "2 4",
            (Some(Layout::Padded), _) => "8 4",
            (_, true) => "12 3",
            (None, false) if series.strategy.is_some_and(Strategy::is_hint) => "5 3",
            _ => "",
        };
        Look {
            told: (colour, Some(mark)),
            dashes: Some(dashes),
            hollow: series.grouped,
        }
    }

    /// The look of line number `position` of a figure whose lines have an order instead of strategies.
    pub(in crate::report) fn in_order(position: usize) -> Look {
        let mark = MARKS[position % MARKS.len()];
        let dashes = if position < MARKS.len() { "" } else { "5 3" };
        Look::new(1 + position % COLOURS, Some(mark), Some(dashes))
    }

    pub(in crate::report) const fn new(
        colour: usize,
        mark: Option<Mark>,
        dashes: Option<&'static str>,
    ) -> Look {
        Look {
            told: (colour, mark),
            dashes,
            hollow: false,
        }
    }

    /// The plain kernel, and that one with other work-groups; what bounds every kernel.
    pub(in crate::report) const PLAIN: Look = Look::new(COLOURS + 1, None, Some("6 4"));
    pub(in crate::report) const ELSEWHERE: Look = Look::new(COLOURS + 2, None, Some("2 3"));
    pub(in crate::report) const ROOF: Look = Look::new(COLOURS + 1, None, Some(""));
    pub(in crate::report) const CEILING: Look = Look::new(COLOURS + 1, None, Some("12 3"));

    /// The CSS class that sets the colour, for light and for dark.
    pub(in crate::report) fn class(self) -> String {
        format!("s{}", self.told.0)
    }

    /// The line along a path; empty where points are not joined.
    pub(in crate::report) fn stroke(self, path: &str) -> String {
        let dashes = |dashes| format!(" stroke-dasharray=\"{dashes}\"");
        self.dashes.map_or(String::new(), |own| {
            let dashes = if own.is_empty() {
                String::new()
            } else {
                dashes(own)
            };
            format!("<path class=\"line\"{dashes} d=\"{path}\"/>")
        })
    }

    /// The mark, centred on a point.
    pub(in crate::report) fn mark(self, x: f64, y: f64) -> String {
        let class = if self.hollow { "hollow" } else { "solid" };
        let polygon = |corners: &[(f64, f64)]| {
            let corners: Vec<String> = corners
                .iter()
                .map(|(dx, dy)| format!("{:.1},{:.1}", x + dx, y + dy))
                .collect();
            format!("<polygon class=\"{class}\" points=\"{}\"/>", corners.join(" "))
        };
        let strokes = |d: &str| format!("<path class=\"strokes\" d=\"M{x:.1} {y:.1} {d}\"/>");
        let Some(mark) = self.told.1 else {
            return String::new();
        };
        match mark {
            Mark::Circle => format!("<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4.5\"/>"),
            Mark::Square => polygon(&[(-4.0, -4.0), (4.0, -4.0), (4.0, 4.0), (-4.0, 4.0)]),
            Mark::Diamond => polygon(&[(0.0, -5.5), (5.5, 0.0), (0.0, 5.5), (-5.5, 0.0)]),
            Mark::Triangle => polygon(&[(0.0, -5.5), (5.2, 4.0), (-5.2, 4.0)]),
            Mark::TriangleDown => polygon(&[(0.0, 5.5), (5.2, -4.0), (-5.2, -4.0)]),
            Mark::Pentagon => polygon(&[(0.0, -5.4), (5.1, -1.7), (3.2, 4.4), (-3.2, 4.4), (-5.1, -1.7)]),
            Mark::Plus => strokes("m-5 0h10m-5-5v10"),
            Mark::Cross => strokes("m-4-4l8 8m0-8l-8 8"),
        }
    }
}

/// Moves heights, given in ascending order, apart so that they are at least `gap` from one another and stay between
/// `top` and `bottom` as far as there is room.
pub(in crate::report) fn spread(
    heights: impl IntoIterator<Item = f64>,
    gap: f64,
    top: f64,
    bottom: f64,
) -> Vec<f64> {
    let mut heights: Vec<f64> = heights.into_iter().collect();
    let mut free_from = top;
    for height in &mut heights {
        *height = height.max(free_from);
        free_from = *height + gap;
    }
    // What was pushed out below is pushed back up.
    let mut free_to = bottom;
    for height in heights.iter_mut().rev() {
        *height = height.min(free_to);
        free_to = *height - gap;
    }
    heights
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(label: &str, strategy: &str) -> Series {
        let plan: crate::prefetch::Plan = format!("x={strategy}:4").parse().expect("a plan");
        Series {
            strategy: plan.loads().first().map(|(_, strategy)| *strategy),
            grouped: false,
            label: label.to_owned(),
            points: Vec::new(),
        }
    }

    #[test]
    fn two_loads_with_one_strategy_differ_in_colour_and_mark() {
        let strategies = ["rolling-registers", "cache:L2", "rolling-async"];
        let series: Vec<Series> = ["a", "b", "c", "d"]
            .iter()
            .flat_map(|load| strategies.map(|strategy| line(&format!("{load}: {strategy}"), strategy)))
            .collect();
        let looks = Looks::of(&series);
        let told: Vec<Told> = series.iter().map(|line| looks.look(line).told).collect();
        for (number, own) in told.iter().enumerate() {
            assert!(!told[..number].contains(own), "{}", series[number].label);
        }
        for (number, strategy) in strategies.iter().enumerate() {
            // The first load's stays what it is in every report.
            assert_eq!(told[number], Look::of(&line("x", strategy)).told);
            let (first, second) = (told[number], told[number + strategies.len()]);
            assert!(first.0 != second.0 && first.1 != second.1, "{strategy}");
        }
    }

    #[test]
    fn names_are_moved_apart_and_stay_in_order() {
        assert_eq!(spread([10.0, 50.0, 90.0], 20.0, 0.0, 100.0), [10.0, 50.0, 90.0]);
        assert_eq!(spread([10.0, 11.0, 12.0], 20.0, 0.0, 100.0), [10.0, 30.0, 50.0]);
        assert_eq!(spread([99.0, 99.0, 99.0], 20.0, 0.0, 100.0), [60.0, 80.0, 100.0]);
    }
}
