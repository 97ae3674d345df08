//! How far launches have come, by time: one that is surely behind another need not be simulated to its end.
//!
//! Progress is the bytes that some loads of the source have asked for, in whichever order a plan asks. A plan that fetches
//! ahead has asked for more than it has used. So the leader is credited with what it has used at least, and who is compared
//! with it with all that it has asked for.
//!
//! Only runs of equally many simulated cores are compared: each such number has its leader.

use super::profile::{bytes_of, load_of};
use crate::back::machine::MachineProgram;
use crate::ir::LoadId;

/// Cycles from one look at the progress to the next.
pub(super) const LOOK: u64 = 1024;

/// Nobody is behind before the leader has come so far: until then caches fill, and rings.
const FIRST: f64 = 0.05;

/// Whoever may be as near as this to the leader is not given up: a simpler answer is preferred to one that is hardly faster.
const SURELY: f64 = 0.97;

/// How much faster than it has been so far a run may turn out to be, when the leader has done so much of its work: by 6 % at the
/// end, by 24 % after a tenth. (Of 422 plans of `gather`, `gather-pointer`, `article`, `option-pricing` and `index-select` that
/// were dropped, and also simulated to their end, none is faster than it was said to be at most; with 2 % less one is.)
fn margin(done: f64) -> f64 {
    1.04 + 0.02 / done
}

/// What a run did, by time.
#[derive(Clone, Debug, PartialEq)]
pub struct Course {
    cores: u32,
    groups: u64,
    /// Work-groups that a core holds at once.
    places: u32,
    /// Cycles, and bytes until then; both ascend.
    points: Vec<(f64, f64)>,
}

/// A run that was given up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Behind {
    /// The part of its work that the leader had done at that time.
    pub after: f64,
    /// About the speedup that it would have reached.
    pub estimate: f64,
    /// What that is at most.
    pub at_most: f64,
}

/// Whom runs are compared with: the fastest of those of equally many simulated cores.
#[derive(Clone, Debug)]
pub struct Pace {
    loads: Vec<LoadId>,
    /// Bytes that a work-group of the kernel without a plan asks for.
    of_a_group: f64,
    leaders: Vec<Leader>,
}

/// A run, and whom it is compared with.
#[derive(Clone, Copy, Debug)]
pub struct Entrant<'p> {
    /// The others.
    pub pace: &'p Pace,
    /// Bytes that each work-group asks for by hints before it loads anything: they are no loads, and take time at first.
    pub hinted: f64,
}

#[derive(Clone, Debug)]
struct Leader {
    course: Course,
    /// The part of its work that it asks for ahead.
    ahead: f64,
    /// The time of the kernel without a plan, divided by its own.
    speedup: f64,
}

impl Course {
    fn bytes(&self) -> f64 {
        self.points.last().map_or(0.0, |&(_, bytes)| bytes)
    }

    /// Work-groups that are there at once.
    fn resident(&self) -> u64 {
        u64::from(self.cores) * u64::from(self.places)
    }

    /// The bytes that were asked for until a time.
    fn until(&self, cycles: f64) -> f64 {
        let behind = self.points.partition_point(|&(at, _)| at <= cycles);
        let before = self.points[..behind].last();
        match self.points.get(behind) {
            None => self.bytes(),
            Some(&(until, bytes)) => {
                let &(since, so_far) = before.unwrap_or(&(0.0, 0.0));
                let part = (cycles - since) / (until - since).max(1.0);
                so_far + (bytes - so_far) * part
            }
        }
    }
}

impl Pace {
    /// Nobody leads. Progress is measured by these loads; where there are none nothing is ever behind.
    pub fn new(loads: Vec<LoadId>) -> Pace {
        Pace {
            loads,
            of_a_group: 0.0,
            leaders: Vec::new(),
        }
    }

    /// A run has ended, with a speedup over the first one, which is that of the kernel without a plan. `ahead` is how many
    /// bytes each work-group asks for before it needs them.
    pub fn ended(&mut self, course: Course, ahead: f64, speedup: f64) {
        if self.of_a_group == 0.0 {
            self.of_a_group = course.bytes() / course.groups.max(1) as f64;
        }
        let of_the_same = |leader: &Leader| leader.course.cores == course.cores;
        let leading = self.leaders.iter().position(of_the_same);
        if course.bytes() == 0.0 || leading.is_some_and(|at| self.leaders[at].speedup >= speedup) {
            return;
        }
        let leader = Leader {
            ahead: ahead * course.resident().min(course.groups) as f64 / course.bytes(),
            speedup,
            course,
        };
        match leading {
            Some(at) => self.leaders[at] = leader,
            None => self.leaders.push(leader),
        }
    }

    /// Whether a run that has come so far is behind, whose work-groups have asked for `hinted` bytes each by hints. It
    /// may have begun slowly, so that what it has done lately counts as well.
    fn behind(&self, run: &Course, hinted: f64) -> Option<Behind> {
        let of_the_same = |leader: &&Leader| leader.course.cores == run.cores;
        let leader = self.leaders.iter().find(of_the_same)?;
        let &(now, bytes) = run.points.last()?;
        let (all, half) = (leader.course.bytes(), now / 2.0);
        let (done, done_half) = (leader.course.until(now) / all, leader.course.until(half) / all);
        let used = done - leader.ahead;
        if used < FIRST {
            return None;
        }
        let group = self.of_a_group * leader.course.groups as f64;
        let (own, own_half) = (bytes / group, run.until(half) / group);
        // A leader that has ended does nothing lately.
        let lately = (own - own_half) / (done - done_half).max(done / 4.0);
        let hinted = hinted / self.of_a_group * run.resident() as f64 / leader.course.groups as f64;
        let at_most = ((own + hinted) / used).max(lately) * margin(used);
        (at_most < SURELY).then_some(Behind {
            after: done,
            estimate: own / done * leader.speedup,
            at_most: at_most * leader.speedup,
        })
    }
}

/// Follows one run.
pub(super) struct Follower<'p> {
    entrant: Option<Entrant<'p>>,
    /// The instructions that carry out the loads, with their bytes of a work-item.
    watched: Vec<(usize, f64)>,
    course: Course,
    next: u64,
}

impl<'p> Follower<'p> {
    /// For a program on so many cores.
    pub(super) fn new(
        program: &MachineProgram,
        cores: u32,
        places: u32,
        entrant: Option<Entrant<'p>>,
    ) -> Follower<'p> {
        let loads = entrant.map_or(&[][..], |entrant| &entrant.pace.loads);
        let instructions = program.instructions.iter().enumerate();
        let watched = instructions.filter_map(|(at, instruction)| {
            let load = load_of(program, instruction)?;
            loads
                .contains(&load)
                .then(|| (at, f64::from(bytes_of(instruction))))
        });
        Follower {
            entrant,
            watched: watched.collect(),
            course: Course {
                cores,
                groups: 0,
                places,
                points: Vec::new(),
            },
            next: LOOK,
        }
    }

    /// Looks at what the cores have done, `lanes` of an instruction all together, if it is time to.
    pub(super) fn look(&mut self, now: u64, lanes: impl Fn(usize) -> u64) -> Option<Behind> {
        let entrant = self.entrant.filter(|_| now >= self.next)?;
        self.next = now + LOOK;
        self.note(now as f64, lanes);
        entrant.pace.behind(&self.course, entrant.hinted)
    }

    fn note(&mut self, cycles: f64, lanes: impl Fn(usize) -> u64) {
        let bytes = self
            .watched
            .iter()
            .map(|&(at, bytes)| lanes(at) as f64 * bytes)
            .sum();
        self.course.points.push((cycles, bytes));
    }

    /// The run has ended, with so many work-groups.
    pub(super) fn end(mut self, cycles: u64, groups: u64, lanes: impl Fn(usize) -> u64) -> Course {
        self.note(cycles as f64, lanes);
        self.course.groups = groups;
        self.course
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run of 100 work-groups that asks for bytes evenly until a time.
    fn run(cores: u32, cycles: f64, bytes: f64) -> Course {
        let part = |part: u32| f64::from(part) / 10.0;
        Course {
            cores,
            groups: 100,
            places: 25,
            points: (1..=10).map(|at| (cycles * part(at), bytes * part(at))).collect(),
        }
    }

    fn pace(ahead: f64) -> Pace {
        let mut pace = Pace::new(Vec::new());
        pace.ended(run(4, 1e6, 1000.0), 0.0, 1.0);
        pace.ended(run(4, 5e5, 1000.0), ahead, 2.0);
        pace
    }

    #[test]
    fn a_slow_run_is_given_up_early_and_a_similar_one_is_not() {
        let pace = pace(0.0);
        // Half as fast, when a tenth of the leader is done.
        let behind = pace.behind(&run(4, 5e4, 50.0), 0.0).unwrap();
        assert!((behind.after - 0.1).abs() < 1e-9 && (behind.estimate - 1.0).abs() < 1e-9);
        assert!(behind.at_most > behind.estimate && behind.at_most < 1.4);
        for bytes in [80.0, 100.0, 150.0] {
            assert_eq!(pace.behind(&run(4, 5e4, bytes), 0.0), None, "{bytes}");
        }
        // A tenth slower is told apart only at the end.
        assert_eq!(pace.behind(&run(4, 2.5e5, 450.0), 0.0), None);
        assert!(pace.behind(&run(4, 5e5, 900.0), 0.0).is_some());
    }

    #[test]
    fn who_began_slowly_is_not_given_up() {
        let mut late = run(4, 2e5, 400.0);
        // Nothing until half of the time, and twice as much since.
        for (at, (_, bytes)) in late.points.iter_mut().enumerate() {
            *bytes = if at < 5 { 0.0 } else { (at - 4) as f64 * 40.0 };
        }
        assert_eq!(pace(0.0).behind(&late, 0.0), None);
        // Nor who has asked for as much by hints.
        assert_eq!(pace(0.0).behind(&run(4, 2e5, 200.0), 2.0), None);
        assert!(pace(0.0).behind(&run(4, 2e5, 200.0), 0.0).is_some());
    }

    #[test]
    fn the_leader_is_credited_with_what_it_has_used() {
        let pace = pace(0.9);
        // A tenth is asked for, most of it ahead.
        assert_eq!(pace.behind(&run(4, 5e4, 50.0), 0.0), None);
        assert!(pace.behind(&run(4, 2.5e5, 250.0), 0.0).is_some());
    }

    #[test]
    fn other_samples_are_not_compared() {
        assert_eq!(Pace::new(Vec::new()).behind(&run(4, 1e5, 0.0), 0.0), None);
        let mut pace = pace(0.0);
        assert_eq!(pace.behind(&run(132, 4e5, 0.0), 0.0), None);
        assert!(pace.behind(&run(4, 4e5, 0.0), 0.0).is_some());
        // Whoever is the first of a sample leads it, however slow.
        pace.ended(run(132, 9e5, 1000.0), 0.0, 1.1);
        assert!(pace.behind(&run(132, 4e5, 0.0), 0.0).is_some());
    }
}
