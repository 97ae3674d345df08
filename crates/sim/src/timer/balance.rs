//! How evenly a launch's work is spread: the longest of its parts beside the mean.

/// Lengths of parts of a launch: their mean, and the longest.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    count: f64,
    sum: f64,
    /// The longest.
    pub(crate) longest: f64,
}

impl Spread {
    /// One more part.
    pub(super) fn add(&mut self, length: u64) {
        let length = length as f64;
        self.count += 1.0;
        self.sum += length;
        self.longest = self.longest.max(length);
    }

    /// The parts of both.
    #[must_use]
    pub(super) fn and(self, other: Spread) -> Spread {
        Spread {
            count: self.count + other.count,
            sum: self.sum + other.sum,
            longest: self.longest.max(other.longest),
        }
    }

    /// The mean; 0 of none.
    pub(crate) fn mean(&self) -> f64 {
        match self.count > 0.0 {
            true => self.sum / self.count,
            false => 0.0,
        }
    }

    /// The longest over the mean; 1 where there is no mean.
    pub fn uneven(&self) -> f64 {
        match self.mean() > 0.0 {
            true => self.longest / self.mean(),
            false => 1.0,
        }
    }
}

/// How evenly the simulated work is spread.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Balance {
    /// Cycles from a work-group's start to its end.
    pub groups: Spread,
    /// Cycles from a sub-group's start to its end.
    pub sub_groups: Spread,
    /// Instructions that a sub-group issues: those of its longest work-item.
    pub instructions: Spread,
}

impl Balance {
    /// The parts of both.
    #[must_use]
    pub(super) fn and(self, other: Balance) -> Balance {
        Balance {
            groups: self.groups.and(other.groups),
            sub_groups: self.sub_groups.and(other.sub_groups),
            instructions: self.instructions.and(other.instructions),
        }
    }
}
