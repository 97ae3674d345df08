//! Cuts the points of a sweep into tables, and those into lines along an axis.

use super::{Point, Sweep};

/// How the axes are laid out.
pub(super) struct Layout {
    /// The axis along a line: the last one whose values are numbers, or else the last.
    pub along: usize,
    /// The axis that tells the lines of a table apart: of the others the last. None for a sweep over one axis.
    pub between: Option<usize>,
    /// The other axes: a table for each combination of their values.
    pub apart: Vec<usize>,
}

/// The points with the same values on the axes that are apart.
pub(super) struct Block<'s> {
    /// Those values, as `name=value`; empty where there is one block.
    pub title: String,
    /// Its lines.
    pub lines: Vec<Line<'s>>,
}

/// Points along an axis.
pub(super) struct Line<'s> {
    /// Its value of the axis that tells the lines apart; none for a sweep over one axis.
    pub value: Option<&'s str>,
    /// The points, in order.
    pub points: Vec<&'s Point>,
}

impl Layout {
    /// The layout of a sweep.
    pub(crate) fn of(sweep: &Sweep) -> Layout {
        let numeric = sweep.axes.iter().rposition(|axis| axis.numbers().is_some());
        let along = numeric.unwrap_or(sweep.axes.len().saturating_sub(1));
        let mut others: Vec<usize> = (0..sweep.axes.len()).filter(|&axis| axis != along).collect();
        Layout {
            along,
            between: others.pop(),
            apart: others,
        }
    }

    /// The blocks of a sweep, in order.
    pub(crate) fn blocks<'s>(&self, sweep: &'s Sweep) -> Vec<Block<'s>> {
        let mut blocks: Vec<(Vec<usize>, Block<'s>)> = Vec::new();
        for point in &sweep.points {
            let key: Vec<usize> = self.apart.iter().map(|&axis| point.at[axis]).collect();
            let block = match blocks.iter().position(|(other, _)| *other == key) {
                Some(found) => found,
                None => {
                    let title = sweep.values_of(point, &self.apart);
                    blocks.push((
                        key,
                        Block {
                            title,
                            lines: Vec::new(),
                        },
                    ));
                    blocks.len() - 1
                }
            };
            let value = self.between.map(|axis| &*sweep.axes[axis].values[point.at[axis]]);
            let lines = &mut blocks[block].1.lines;
            match lines.iter_mut().find(|line| line.value == value) {
                Some(line) => line.points.push(point),
                None => lines.push(Line {
                    value,
                    points: vec![point],
                }),
            }
        }
        for line in blocks.iter_mut().flat_map(|(_, block)| &mut block.lines) {
            line.points.sort_by_key(|point| point.at[self.along]);
        }
        blocks.into_iter().map(|(_, block)| block).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Axis;
    use super::super::tests::sample;
    use super::*;

    #[test]
    fn numbers_lie_along_and_words_between() {
        let mut sweep = sample();
        let blocks = Layout::of(&sweep).blocks(&sweep);
        assert_eq!(blocks.len(), 1);
        let values: Vec<_> = blocks[0].lines.iter().map(|line| line.value).collect();
        assert_eq!(values, [Some("300"), Some("700"), Some("1500")]);
        assert!(blocks[0].lines.iter().all(|line| line.points.len() == 4));
        // The last axis is a word now: the numbers of the first lie along.
        sweep.axes[1].values = ["a", "b", "c", "d"].map(str::to_owned).to_vec();
        let blocks = Layout::of(&sweep).blocks(&sweep);
        assert_eq!(blocks[0].lines.len(), 4);
        assert_eq!(blocks[0].lines[3].value, Some("d"));
        // A third axis, in front.
        sweep.axes.insert(
            0,
            Axis {
                name: "items".to_owned(),
                values: vec!["64".to_owned()],
            },
        );
        for point in &mut sweep.points {
            point.at.insert(0, 0);
        }
        let blocks = Layout::of(&sweep).blocks(&sweep);
        assert_eq!(blocks[0].title, "items=64");
    }
}
