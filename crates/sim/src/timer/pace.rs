//! How far launches have come, by time: one that is surely not faster than another, by enough to matter, need not be simulated
//! to its end.
//!
//! Progress is counted where the loads' values are used: how many work-items have run the operations of the source that use
//! them. A plan changes when a value is fetched and how many iterations a loop does at a time, but not how often it is used, so
//! that runs of different plans differ in this number alone, however far ahead they fetch.
//!
//! A run may also be given up when it has taken as long as it may.
//!
//! Progress says how long a run takes where runs do the same all the time. Where work-groups differ, or rings fill first in short
//! loops, a run is compared with what the leader needed for the same work, and the rest may turn out faster by far.

use std::mem::{Discriminant, discriminant};

use crate::back::machine::{InstructionStep, MachineProgram};
use crate::ir::{LoadId, OpKind, Place, Value};

/// Cycles from one look at the progress to the next.
pub(super) const LOOK: u64 = 1024;

/// No run is a little behind before this: a run of so few cycles is simulated soon.
const SHORT: f64 = 65536.0;

/// No run is a little behind before the leader and the run itself have come this far: until then caches fill, and
/// rings.
const FIRST: f64 = 0.05;

/// Who is no faster than this part of the leader is far behind, which is certain earlier.
const FAR: f64 = 0.8;
const SHORT_IF_FAR: f64 = SHORT / 2.0;
const FIRST_IF_FAR: f64 = 0.02;

/// A run has settled when it has done this part of its work, and in each of the last three quarters of that its pace beside
/// the leader's, doing the same work, was the same but for [`EVEN`].
const SETTLED: f64 = 0.15;
const EVEN: f64 = 0.04;

/// How much faster a run that has settled may turn out to be than if it went on at its best pace.
const LITTLE: f64 = 1.005;

/// How far what a run has done after a part of its time may be from that part, of all that it has done so far: of the leader at
/// some moments until its end, and of another one in the middle of its time so far.
const STEADY: f64 = 0.05;

/// How much faster than it has been so far a run may turn out to be, when the leader has done so much of its work: by 3 % at the
/// end, by 12 % after a tenth.
///
/// Of the plans of 43 launches of the accuracy page, 18,685 pairs of a plan and one of the four fastest were compared: 10,486
/// plans would be given up, and 18 of these are more than 2 % faster than the plan that leads: one by 15 %, the others by 4.3 % at
/// most. (Without the rules for plans that are far behind or have settled: 9,119 and 15, by the same.)
fn margin(done: f64) -> f64 {
    1.02 + 0.01 / done
}

/// How much faster than at its best pace so far a run may turn out to be for the rest of a launch whose work-groups differ: the
/// few long ones at the end wait where many together do not.
///
/// Of the plans of 12 such launches, 4,092 pairs of a plan and one of the four fastest were compared: 2,443 plans would be given
/// up, and 4 of these are more than 2 % faster than the plan that leads, by 4.2 % at most. (With 1 or 2 here, for 7,168 pairs: 3,202
/// and 16, or 3,109 and 10; half or more of these beside leaders that [`MOST_IN_HALF`] leaves out.)
const ELSEWHERE: f64 = 1.25;

/// A run that does more than this part of its work in half of its time ends with a few long work-groups: how soon they end says
/// nothing of how fast the many were, and no run is compared with it.
const MOST_IN_HALF: f64 = 0.8;

/// How much faster than the leader a run has to be to be worth its end. Plans that lead are often as fast as each other, and
/// telling which of them is a little faster takes as long as all others together.
pub const WORTH: f64 = 1.02;

/// What is said of a run that is given up allows for this much more: of the same pairs, none is faster than that.
const SAID: f64 = 1.25;

/// The part of a sample's work-groups that is simulated first where the fastest run is this much faster than the kernel
/// without a plan. Of 396 plans of three large launches, 352 would be given up, and none of these is more than 1.021 times as
/// fast as in the small sample, where the end has less weight than in the launch.
pub(super) const FEW: f64 = 0.25;
const FAR_AHEAD: f64 = 2.0;

/// An operation of the source that uses what a load gives: its place, and its kind.
type Use = (Place, Discriminant<OpKind>);

/// What a run did, by time.
#[derive(Clone, Debug, PartialEq)]
pub struct Course {
    cores: u32,
    groups: u64,
    /// The cycles of a small sample, if one was simulated before.
    few: Option<f64>,
    uses: Vec<Use>,
    /// Cycles, and how many uses the work-items of a core had run by then; both ascend.
    points: Vec<(f64, f64)>,
}

/// A run that was given up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Behind {
    /// The part of its work that the leader had done at that time.
    pub after: f64,
    /// About the speedup that it would have reached.
    pub(crate) estimate: f64,
    /// Its upper bound.
    pub at_most: f64,
}

/// The run that others are compared with: the fastest so far that can be compared with.
#[derive(Clone, Debug)]
pub struct Pace {
    loads: Vec<LoadId>,
    uses: Vec<Use>,
    /// What a work-group of the kernel without a plan does, in uses.
    of_a_group: f64,
    /// The fastest run that did as much all the time, and the fastest one if that is another.
    steady: Option<Leader>,
    uneven: Option<Leader>,
    /// The speedup of the fastest run of all, and the cycles of a small sample of the kernel without a plan.
    fastest: Option<f64>,
    few: Option<f64>,
    /// Nanoseconds after which a run is of no use.
    limit: f64,
}

#[derive(Clone, Debug)]
struct Leader {
    course: Course,
    /// The time of the kernel without a plan, divided by its own.
    speedup: f64,
}

impl Leader {
    /// A run that is given up after this part of the leader's work, with its speedup over the leader so far, and at most.
    fn behind(&self, after: f64, so_far: f64, at_most: f64) -> Behind {
        Behind {
            after,
            estimate: so_far * self.speedup,
            at_most: (SAID * at_most).min(WORTH) * self.speedup,
        }
    }
}

impl Course {
    /// This run, with the cycles of the small sample that was simulated before it.
    pub(super) fn after_few(self, few: Option<f64>) -> Course {
        Course { few, ..self }
    }

    /// Whether as much was done all the time.
    fn is_steady(&self) -> bool {
        let (end, all) = self.points.last().copied().unwrap_or((0.0, 0.0));
        let is_on_time = |part: f64| (self.until(part * end) / all - part).abs() <= STEADY;
        all > 0.0 && [0.25, 0.5, 0.75, 0.9].into_iter().all(is_on_time)
    }

    fn done(&self) -> f64 {
        self.points.last().map_or(0.0, |&(_, done)| done)
    }

    fn end(&self) -> f64 {
        self.points.last().map_or(0.0, |&(end, _)| end)
    }

    /// What was done until a time.
    fn until(&self, cycles: f64) -> f64 {
        let behind = self.points.partition_point(|&(at, _)| at <= cycles);
        let before = self.points[..behind].last();
        match self.points.get(behind) {
            None => self.done(),
            Some(&(until, done)) => {
                let &(since, so_far) = before.unwrap_or(&(0.0, 0.0));
                let part = (cycles - since) / (until - since).max(1.0);
                so_far + (done - so_far) * part
            }
        }
    }

    /// The moment at which so much was done.
    fn when(&self, work: f64) -> f64 {
        let behind = self.points.partition_point(|&(_, done)| done < work);
        let before = self.points[..behind].last();
        match self.points.get(behind) {
            None => self.end(),
            Some(&(until, done)) => {
                let &(since, so_far) = before.unwrap_or(&(0.0, 0.0));
                since + (until - since) * (work - so_far) / (done - so_far).max(1e-9)
            }
        }
    }
}

impl Pace {
    /// No run leads. Progress is measured by what uses these loads; where there are none nothing is ever behind.
    pub fn new(loads: Vec<LoadId>) -> Pace {
        Pace {
            loads,
            uses: Vec::new(),
            of_a_group: 0.0,
            steady: None,
            uneven: None,
            fastest: None,
            few: None,
            limit: f64::INFINITY,
        }
    }

    /// No run leads, and runs that take more than these nanoseconds are given up.
    pub fn within(limit: f64) -> Pace {
        Pace {
            limit,
            ..Pace::new(Vec::new())
        }
    }

    /// Whether there is a run to fall behind.
    pub(super) fn has_leader(&self) -> bool {
        self.leaders().next().is_some()
    }

    fn leaders(&self) -> impl Iterator<Item = &Leader> {
        self.steady.iter().chain(&self.uneven)
    }

    /// A run has ended, with a speedup over the first one, which is that of the kernel without a plan.
    pub fn ended(&mut self, course: &Course, speedup: f64) {
        if self.fastest.is_none() {
            self.few = course.few;
        }
        self.fastest = Some(self.fastest.unwrap_or(0.0).max(speedup));
        let of_a_group = course.done() * f64::from(course.cores) / course.groups.max(1) as f64;
        if self.of_a_group == 0.0 {
            self.of_a_group = of_a_group;
            self.uses.clone_from(&course.uses);
        }
        // A plan after which the uses are not the same operations cannot be compared with.
        let is_comparable = (of_a_group - self.of_a_group).abs() <= 1e-3 * self.of_a_group;
        let leads = self.leaders().all(|leader| speedup > leader.speedup);
        // Where no progress is counted no run is ever behind.
        if !is_comparable || !leads || course.done() == 0.0 {
            return;
        }
        let leader = || Leader {
            course: course.clone(),
            speedup,
        };
        if course.is_steady() {
            self.steady = Some(leader());
            self.uneven = None;
        } else if course.until(course.end() / 2.0) <= MOST_IN_HALF * course.done() {
            self.uneven = Some(leader());
        }
    }

    /// Whether a run that has come so far is behind.
    fn behind(&self, run: &Course) -> Option<Behind> {
        let steady = || behind_steady(run, self.steady.as_ref()?);
        steady().or_else(|| behind_uneven(run, self.uneven.as_ref()?))
    }

    /// Whether [`FEW`] of a sample's work-groups are to be simulated first: of the kernel without a plan, and of plans where the
    /// fastest run is far ahead of it. Where it is not, nearly all plans are too close to it to be dropped for what a small
    /// sample says.
    pub(super) fn wants_few(&self) -> bool {
        let is_far_ahead = |speedup| speedup >= FAR_AHEAD;
        // Where no progress is counted no run is ever behind.
        !self.loads.is_empty()
            && self
                .fastest
                .is_none_or(|speedup| self.few.is_some() && is_far_ahead(speedup))
    }

    /// Whether a run is surely behind the fastest one, by the cycles of its small sample.
    pub(super) fn behind_from_few(&self, cycles: f64) -> Option<Behind> {
        let estimate = self.few? / cycles.max(1.0);
        let at_most = SAID * estimate;
        (at_most < FAR * self.fastest?).then_some(Behind {
            after: FEW,
            estimate,
            at_most,
        })
    }
}

/// Whether a run is behind a leader whose rate was steady. A run may start slowly, so its rate in the last half and the last
/// quarter of its time counts, too.
fn behind_steady(run: &Course, leader: &Leader) -> Option<Behind> {
    let &(now, own) = run.points.last()?;
    let course = &leader.course;
    let all = course.done();
    let done = course.until(now);
    let half = run.until(now / 2.0) / own.max(1.0);
    if now < SHORT_IF_FAR || done.min(own / FAR) < FIRST_IF_FAR * all {
        return None;
    }
    let recent = |part: f64| {
        // A leader that has ended does nothing in that time.
        let by_leader = (done - course.until(part * now)).max(done * (1.0 - part) / 2.0);
        (own - run.until(part * now)) / by_leader
    };
    let so_far = own / done;
    let at_best = so_far.max(recent(0.5)).max(recent(0.75));
    let by_progress = || {
        if (half - 0.5).abs() > STEADY {
            return None;
        }
        let is_early = now < SHORT || done.min(own) < FIRST * all;
        match is_early {
            true => Some(at_best).filter(|&at_best| at_best < FAR),
            false => Some(at_best * margin(done / all)),
        }
    };
    let settled = || settled(run, course).map(|fast| fast * LITTLE);
    let is_behind = |at_most: &f64| *at_most < WORTH;
    let at_most = by_progress()
        .filter(is_behind)
        .or_else(|| settled().filter(is_behind))?;
    Some(leader.behind(done / all, so_far, at_most))
}

/// Whether a run is behind a leader whose rate was not steady. Its time so far is compared with the leader's time for the same
/// work. The rest of the work takes the leader's time for that, divided by [`ELSEWHERE`] times the run's best speedup so far over
/// the leader.
fn behind_uneven(run: &Course, leader: &Leader) -> Option<Behind> {
    let &(now, own) = run.points.last()?;
    let course = &leader.course;
    let all = course.done();
    if now < SHORT || own < FIRST * all || own > all {
        return None;
    }
    let at = course.when(own);
    let so_far = at / now;
    let recent = |part: f64| (at - course.when(run.until(part * now))) / ((1.0 - part) * now);
    let at_best = so_far.max(recent(0.5)).max(recent(0.75));
    let rest = course.end() - at;
    let at_most = course.end() / (now + rest / (at_best * ELSEWHERE));
    (at_most < WORTH).then(|| leader.behind(own / all, so_far, at_most))
}

/// How fast a run is beside the leader if it goes on at its best pace, and it has settled.
fn settled(run: &Course, leader: &Course) -> Option<f64> {
    let &(now, own) = run.points.last()?;
    let (all, end) = (leader.done(), leader.end());
    if now < 2.0 * SHORT || own < SETTLED * all || own > all {
        return None;
    }
    let quarter = own / 4.0;
    let took = |course: &Course, number: f64| {
        (course.when((number + 1.0) * quarter) - course.when(number * quarter)).max(1.0)
    };
    let beside = [1.0, 2.0, 3.0].map(|number| (took(run, number), took(leader, number)));
    let least = |all: [f64; 3]| all.into_iter().fold(f64::INFINITY, f64::min);
    let most = |all: [f64; 3]| all.into_iter().fold(0.0, f64::max);
    let paces = beside.map(|(own, theirs)| theirs / own);
    let (slowest, fastest) = (least(paces), most(paces));
    let shortest = least(beside.map(|(own, _)| own));
    let ends = now + (all - own) * shortest / quarter;
    (fastest <= slowest * (1.0 + EVEN)).then_some(end / ends)
}

/// The operations that use what these loads give, by where they are written: those of all copies of a loop's body.
fn uses_of(program: &MachineProgram, loads: &[LoadId]) -> Vec<Use> {
    let mut given: Vec<Value> = Vec::new();
    let mut uses: Vec<Use> = Vec::new();
    for step in &program.steps {
        if let InstructionStep::Op(op) = step
            && let OpKind::Load { id, .. } = op.kind
            && loads.contains(&id)
        {
            given.extend(&op.results);
        }
    }
    // What is passed on by name is the same value.
    let mut at = 0;
    while let Some(&value) = given.get(at) {
        for step in &program.steps {
            match step {
                InstructionStep::Assign(pairs) => {
                    for &(to, from) in pairs {
                        if from == value && !given.contains(&to) {
                            given.push(to);
                        }
                    }
                }
                InstructionStep::Op(op) => {
                    let mut is_used = false;
                    op.kind.for_each_operand(|operand| is_used |= operand == value);
                    let key = (op.place, discriminant(&op.kind));
                    if is_used && !uses.contains(&key) {
                        uses.push(key);
                    }
                }
            }
        }
        at += 1;
    }
    uses
}

/// Follows one run.
pub(super) struct Follower<'p> {
    pace: Option<&'p Pace>,
    /// Cycles after which the run is of no use.
    limit: f64,
    /// The instructions that carry out uses, each with how many.
    watched: Vec<(usize, usize)>,
    course: Course,
    next: u64,
}

impl<'p> Follower<'p> {
    /// For a program on this many cores, a cycle of which takes this many nanoseconds.
    pub(super) fn new(
        program: &MachineProgram,
        cores: u32,
        cycle: f64,
        pace: Option<&'p Pace>,
    ) -> Follower<'p> {
        let uses = match pace {
            Some(pace) if !pace.uses.is_empty() => pace.uses.clone(),
            Some(pace) => uses_of(program, &pace.loads),
            None => Vec::new(),
        };
        let is_use = |step: &InstructionStep| match step {
            InstructionStep::Op(op) => uses.contains(&(op.place, discriminant(&op.kind))),
            InstructionStep::Assign(_) => false,
        };
        let instructions = program.instructions.iter().enumerate();
        let watched = instructions.filter_map(|(at, instruction)| {
            let steps = program.steps_of(instruction).iter();
            Some((at, steps.filter(|step| is_use(step)).count())).filter(|&(_, uses)| uses > 0)
        });
        Follower {
            pace,
            limit: pace.map_or(f64::INFINITY, |pace| pace.limit / cycle),
            watched: watched.collect(),
            course: Course {
                cores,
                groups: 0,
                few: None,
                uses,
                points: Vec::new(),
            },
            next: LOOK,
        }
    }

    /// Checks the cores' progress, `lanes` of an instruction all together, if it is time to.
    pub(super) fn look(&mut self, now: u64, lanes: impl Fn(usize) -> u64) -> Option<Behind> {
        let pace = self.pace.filter(|_| now >= self.next)?;
        self.next = now + LOOK;
        self.note(now as f64, lanes);
        // The last turn may end a little later than the run.
        if now as f64 > self.limit + LOOK as f64 {
            return Some(Behind {
                after: 1.0,
                estimate: self.limit / now as f64,
                at_most: 1.0,
            });
        }
        pace.behind(&self.course)
    }

    fn note(&mut self, cycles: f64, lanes: impl Fn(usize) -> u64) {
        let done: f64 = self
            .watched
            .iter()
            .map(|&(at, uses)| lanes(at) as f64 * uses as f64)
            .sum();
        self.course
            .points
            .push((cycles, done / f64::from(self.course.cores)));
    }

    /// The run has ended, with this many work-groups.
    pub(super) fn end(mut self, cycles: u64, groups: u64, lanes: impl Fn(usize) -> u64) -> Course {
        self.note(cycles as f64, lanes);
        self.course.groups = groups;
        self.course
    }
}

#[cfg(test)]
mod tests;
