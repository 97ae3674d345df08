//! Lines that are asked for again and again: a slice of L2 gives its lines one after the other.
//!
//! A table of fixed size: a line that another one has taken the place of is forgotten. Requests do not come in the order of
//! their times, so it keeps how far a line is behind instead of when it is free.

use super::port::{Cycles, pick, spread};

/// Lines that are remembered.
const LINES: usize = 1 << 10;

/// How far lines are behind with their requests.
#[derive(Clone, Debug)]
pub(super) struct LineBacklogs {
    lines: Vec<Line>,
    /// The time of one request.
    interval: Cycles,
    /// Simulated cores for each busy one.
    share: f64,
}

#[derive(Clone, Copy, Debug)]
struct Line {
    number: u64,
    since: Cycles,
    behind: Cycles,
    core: usize,
    /// Whether several cores ask for it: then so do those that are not simulated.
    is_shared: bool,
}

impl LineBacklogs {
    /// Nothing was asked for; each line is given this many times a cycle, to cores of which this part is simulated.
    pub(super) fn new(rate: f64, share: f64) -> LineBacklogs {
        let none = Line {
            number: u64::MAX,
            since: 0.0,
            behind: 0.0,
            core: 0,
            is_shared: false,
        };
        LineBacklogs {
            lines: vec![none; LINES],
            interval: 1.0 / rate,
            share,
        }
    }

    /// How long the last of this many requests waits that a core makes for a line at a time.
    pub(super) fn wait(&mut self, number: u64, core: usize, now: Cycles, requests: f64) -> Cycles {
        let line = &mut self.lines[pick(spread(number), LINES)];
        if line.number != number {
            *line = Line {
                number,
                since: now,
                behind: 0.0,
                core,
                is_shared: false,
            };
        }
        line.behind = (line.behind - (now - line.since).max(0.0)).max(0.0);
        line.since = line.since.max(now);
        line.is_shared |= line.core != core;
        let others = if line.is_shared { self.share } else { 1.0 };
        line.behind += requests * self.interval / others;
        line.behind
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_given_at_its_rate() {
        let mut backlogs = LineBacklogs::new(0.5, 1.0);
        assert_eq!(backlogs.wait(7, 0, 100.0, 4.0), 8.0);
        assert_eq!(backlogs.wait(7, 1, 90.0, 1.0), 10.0);
        assert_eq!(backlogs.wait(7, 1, 104.0, 1.0), 8.0);
        assert_eq!(backlogs.wait(8, 1, 104.0, 1.0), 2.0);
        assert_eq!(backlogs.wait(7, 1, 500.0, 1.0), 2.0);
    }

    #[test]
    fn a_sample_stands_for_all_where_cores_share() {
        let mut backlogs = LineBacklogs::new(0.5, 0.25);
        assert_eq!(backlogs.wait(7, 0, 100.0, 1.0), 2.0);
        assert_eq!(backlogs.wait(7, 0, 100.0, 1.0), 4.0);
        assert_eq!(backlogs.wait(7, 1, 100.0, 1.0), 12.0);
    }
}
