//! How many sectors are on their way to a core, of as many as may be.
//!
//! They arrive in any order, and each makes room for another one.

use super::port::Cycles;

/// Cycles that count as one moment.
const MOMENT: f64 = 8.0;

/// Distinct moments ahead; later arrivals count as arriving at the last one.
const MOMENTS: usize = 8192;

/// The sectors on their way.
#[derive(Clone, Debug)]
pub(super) struct InFlight {
    limit: u32,
    count: u32,
    /// How many arrive by the end of each moment, in a ring.
    arriving: Box<[u32]>,
    /// The first moment that is not over, counted from the start.
    first: u64,
    /// When the last of them was asked for.
    last: Cycles,
}

impl InFlight {
    /// At most `limit` sectors, none of them on its way yet.
    pub(super) fn new(limit: u32) -> InFlight {
        InFlight {
            limit,
            count: 0,
            arriving: vec![0; MOMENTS].into(),
            first: 0,
            last: 0.0,
        }
    }

    /// When the last sectors were asked for, or may be.
    pub(super) fn last(&self) -> Cycles {
        self.last
    }

    /// When `sectors` more may be asked for, from `now` on, behind those before them. More than the limit go alone.
    pub(super) fn start(&mut self, now: Cycles, sectors: u32) -> Cycles {
        let now_moment = (now / MOMENT) as u64;
        while self.first < now_moment {
            if self.count == 0 {
                self.first = now_moment;
                break;
            }
            self.next_moment();
        }
        let mut start = now.max(self.last);
        while self.count > 0 && self.count + sectors > self.limit {
            self.next_moment();
            start = self.first as f64 * MOMENT;
        }
        self.last = start;
        start
    }

    /// Sectors were asked for, after [`InFlight::start`] has said when, and arrive at a time.
    pub(super) fn add(&mut self, arrives: Cycles, sectors: u32) {
        let moment = ((arrives / MOMENT) as u64).clamp(self.first, self.first + MOMENTS as u64 - 1);
        self.arriving[moment as usize % MOMENTS] += sectors;
        self.count += sectors;
    }

    fn next_moment(&mut self) {
        let arrived = std::mem::take(&mut self.arriving[self.first as usize % MOMENTS]);
        self.count -= arrived;
        self.first += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_arrival_makes_room_whatever_was_asked_for_first() {
        let mut flying = InFlight::new(4);
        for arrives in [8000.0, 160.0, 80.0] {
            assert_eq!(flying.start(10.0, 1), 10.0);
            flying.add(arrives, 1);
        }
        assert_eq!(flying.start(20.0, 1), 20.0);
        flying.add(800.0, 1);
        assert_eq!(flying.start(20.0, 1), 88.0);
        flying.add(900.0, 1);
        assert_eq!(flying.start(100.0, 1), 168.0);
        flying.add(900.0, 1);
        assert_eq!(flying.start(1000.0, 3), 1000.0);
        flying.add(2000.0, 3);
        assert_eq!(flying.start(1000.0, 1), 2008.0);
    }

    #[test]
    fn more_than_the_limit_go_alone() {
        let mut flying = InFlight::new(2);
        assert_eq!(flying.start(0.0, 3), 0.0);
        flying.add(100.0, 3);
        assert_eq!(flying.start(0.0, 3), 104.0);
        flying.add(1e9, 3);
        assert_eq!(flying.start(104.0, 1), 104.0 + 8192.0 * 8.0);
    }
}
