//! Which of several things are in use at the same time, by where they occur in a program.
//!
//! A thing is in use from its first occurrence to its last. If it occurs both inside and outside a
//! loop, or in different loops, it is in use in all of each loop that holds only some of its
//! occurrences: it may go around. That is more than liveness would say, and safe on inactive lanes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::liveness::Scopes;
use super::program::Control;

/// The uses of a number of things.
pub(crate) struct Intervals {
    /// For each instruction, the innermost loop around it.
    around: Vec<Option<usize>>,
    /// For each loop, by the instruction that opens it: the one around it, and its end.
    loops: Vec<Option<(Option<usize>, usize)>>,
    spans: Vec<Option<Span>>,
}

#[derive(Clone, Copy)]
struct Span {
    first: usize,
    last: usize,
    /// The innermost loop that holds every occurrence.
    home: Option<usize>,
}

impl Intervals {
    /// For a program with these controls, and `count` things.
    pub(crate) fn new(controls: impl ExactSizeIterator<Item = Control>, count: usize) -> Intervals {
        let controls: Vec<Control> = controls.collect();
        let scopes = Scopes::of(controls.iter().copied());
        let mut loops = vec![None; controls.len()];
        let mut around = Vec::with_capacity(controls.len());
        let mut innermost = None;
        for (index, control) in controls.iter().enumerate() {
            // The start of a loop runs once, before it; its end belongs to it.
            around.push(innermost);
            if let Control::Loop { .. } = control {
                loops[index] = Some((innermost, scopes.closing[index]));
                innermost = Some(index);
            }
            if let Control::EndLoop { .. } = control {
                innermost = innermost
                    .and_then(|at: usize| loops[at])
                    .and_then(|(outer, _)| outer);
            }
        }
        Intervals {
            around,
            loops,
            spans: vec![None; count],
        }
    }

    /// A thing occurs at an instruction.
    pub(crate) fn note(&mut self, thing: usize, at: usize) {
        let around = self.around[at];
        let span = match self.spans[thing] {
            None => Span {
                first: at,
                last: at,
                home: around,
            },
            Some(span) => {
                let home = self.common(span.home, around);
                let (old, new) = (
                    self.outermost_below(span.home, home),
                    self.outermost_below(around, home),
                );
                let mut first = span.first.min(at);
                let mut last = span.last.max(at);
                for opening in [old, new].into_iter().flatten() {
                    first = first.min(opening);
                    last = last.max(self.loops[opening].map_or(last, |(_, end)| end));
                }
                Span { first, last, home }
            }
        };
        self.spans[thing] = Some(span);
    }

    /// The innermost loop around both.
    fn common(&self, a: Option<usize>, b: Option<usize>) -> Option<usize> {
        let mut a_loops = self.outwards(a);
        a_loops.find(|candidate| self.outwards(b).any(|other| other == *candidate))
    }

    fn outwards(&self, innermost: Option<usize>) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(innermost, |&at| self.loops[at].and_then(|(outer, _)| outer))
    }

    /// The outermost loop around `inner` that `outer` does not include.
    fn outermost_below(&self, inner: Option<usize>, outer: Option<usize>) -> Option<usize> {
        self.outwards(inner).take_while(|&at| Some(at) != outer).last()
    }

    /// A colour for each thing that occurs, different for those in use at the same time; and how many
    /// colours there are.
    pub(crate) fn colour(&self) -> (Vec<Option<u32>>, u32) {
        let mut order: Vec<(usize, usize, usize)> = Vec::new();
        for (thing, span) in self.spans.iter().enumerate() {
            order.extend(span.map(|span| (span.first, span.last, thing)));
        }
        order.sort_unstable();
        let mut colours = vec![None; self.spans.len()];
        let mut free: BinaryHeap<Reverse<u32>> = BinaryHeap::new();
        let mut ending: BinaryHeap<Reverse<(usize, u32)>> = BinaryHeap::new();
        let mut count = 0;
        for (first, last, thing) in order {
            while let Some(&Reverse((end, colour))) = ending.peek()
                && end < first
            {
                ending.pop();
                free.push(Reverse(colour));
            }
            let colour = free.pop().map_or_else(
                || {
                    count += 1;
                    count - 1
                },
                |Reverse(colour)| colour,
            );
            colours[thing] = Some(colour);
            ending.push(Reverse((last, colour)));
        }
        (colours, count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `0 loop { 2 3 } 5`, and things that occur at these places; 1 opens the loop, 4 closes it.
    fn coloured(occurrences: &[&[usize]]) -> Vec<Option<u32>> {
        let controls = [
            Control::Next,
            Control::Loop { depth: 0, end: 4 },
            Control::Next,
            Control::Next,
            Control::EndLoop { depth: 0, body: 2 },
            Control::Next,
        ];
        let mut intervals = Intervals::new(controls.into_iter(), occurrences.len());
        for (thing, places) in occurrences.iter().enumerate() {
            places.iter().for_each(|&at| intervals.note(thing, at));
        }
        intervals.colour().0
    }

    #[test]
    fn what_is_not_in_use_at_the_same_time_shares() {
        assert_eq!(coloured(&[&[2, 2], &[3, 3], &[5]]), [Some(0), Some(0), Some(0)]);
        assert_eq!(coloured(&[&[2, 3], &[3]]), [Some(0), Some(1)]);
    }

    #[test]
    fn what_enters_a_loop_is_in_use_in_all_of_it() {
        assert_eq!(coloured(&[&[0, 2], &[3]]), [Some(0), Some(1)]);
        assert_eq!(coloured(&[&[0, 2], &[5]]), [Some(0), Some(0)]);
    }

    #[test]
    fn what_opens_a_loop_is_outside() {
        assert_eq!(coloured(&[&[1, 2], &[3]]), [Some(0), Some(1)]);
    }

    #[test]
    fn what_leaves_a_loop_is_in_use_in_all_of_it() {
        assert_eq!(coloured(&[&[3, 5], &[2]]), [Some(0), Some(1)]);
    }
}
