//! The search for launches: first change one thing at a time, then reach the relevant trip counts, then change several things
//! at random in launches that reached something new.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::data::Change;
use super::derive::{Deriving, Touched};
use super::goals;
use super::launch::{Role, Variant};
use super::plain::{Compiled, Engine, Kept, Unfit};
use super::settings::Settings;
use crate::device::sim::functional::Covered;
use crate::error::Error;
use crate::ir::Kernel;
use crate::ir::eval::signed;
use crate::random::Random;

/// How often a launch is looked for that takes a loop to one number of iterations, with a scalar and with data.
const TRIES: usize = 7;

/// The inputs of a search.
pub(super) struct SearchInputs<'a> {
    pub engine: &'a Engine,
    pub plain: &'a Arc<Compiled>,
    /// Launches to start from, the one that is most like the real one first.
    pub bases: Vec<Variant>,
    /// The plain kernel for other amounts of dynamic shared memory, in bytes.
    pub shared: &'a BTreeMap<u32, Arc<Compiled>>,
    /// Numbers of iterations that are wanted.
    pub targets: Vec<u64>,
    /// How far ahead plans go, in iterations.
    pub distances: Vec<u64>,
    pub settings: &'a Settings,
    /// Whether more launches are wanted.
    pub is_wanted: &'a (dyn Fn() -> bool + Sync),
}

/// The result of a search.
#[derive(Default)]
pub(super) struct Launches {
    /// The launches that the plain kernel takes.
    pub kept: Vec<Kept>,
    /// Those of them that reached something that no earlier one did.
    pub new: Vec<usize>,
    /// Some of those that were dropped for a rule that says nothing of whether the kernel runs.
    pub innocent: Vec<Variant>,
    /// How many were dropped, by the rule that they make the kernel break.
    pub dropped: BTreeMap<&'static str, u64>,
    /// A launch on which the kernel went wrong in a way that no drawn data explains: what went wrong.
    pub misread: Option<(String, Error)>,
    /// The combined coverage of all of them.
    pub covered: Covered,
}

/// This many launches are kept that the simulator cannot follow.
const INNOCENT: usize = 12;

struct Search<'a> {
    inputs: &'a SearchInputs<'a>,
    found: Launches,
    spent: u64,
    tried: u64,
    random: Random,
    /// An influence on the trip count of a loop: a scalar, with its values so far and the trip counts there; a buffer.
    scalars: BTreeMap<(usize, usize), BTreeMap<i64, i64>>,
    buffers: BTreeSet<(usize, usize)>,
}

/// Looks for launches.
pub(super) fn search(inputs: &SearchInputs<'_>) -> Launches {
    let mut search = Search {
        inputs,
        found: Launches::default(),
        spent: 0,
        tried: 0,
        random: Random::new(inputs.settings.seed),
        scalars: BTreeMap::new(),
        buffers: BTreeSet::new(),
    };
    // A launch that takes too long unchanged, or cannot run here, is no fault.
    let mut first = None;
    for base in &inputs.bases {
        if let Some(kept) = search.attempt(base.clone(), false) {
            first.get_or_insert(kept);
        }
    }
    match (first, search.found.innocent.first().cloned()) {
        (Some(first), _) => search.from(first),
        (None, Some(base)) => search.around(&base),
        (None, None) => {}
    }
    search.found
}

impl Search<'_> {
    fn kernel(&self) -> &Arc<Kernel> {
        self.inputs.plain.kernel.kernel()
    }

    /// Nothing is left of the budget, of which this part may be used, or the search has failed.
    fn is_over(&self, percent: u64) -> bool {
        let settings = self.inputs.settings;
        self.found.misread.is_some()
            || !(self.inputs.is_wanted)()
            || self.spent * 100 >= settings.search_operations * percent
            || self.tried * 100 >= settings.launches * percent
    }

    /// Runs the plain kernel on a launch; its number if it is kept.
    fn attempt(&mut self, variant: Variant, counts: bool) -> Option<usize> {
        let plain = match variant.shared_bytes {
            Some(bytes) => self.inputs.shared.get(&bytes)?,
            None => self.inputs.plain,
        };
        let is_other = variant.shared_bytes.is_some();
        let what = variant.what.clone();
        let (ran, cost) = self.inputs.engine.run_plain(plain, variant);
        self.spent += cost;
        self.tried += 1;
        match ran {
            Ok(kept) => {
                let number = self.found.kept.len();
                // Another reading of the module has other places.
                let is_new = !is_other && goals::is_new(&self.found.covered, &kept.covered);
                if !is_other {
                    self.found.covered.merge(&kept.covered);
                }
                if is_new {
                    self.found.new.push(number);
                }
                self.found.kept.push(kept);
                Some(number)
            }
            Err(Unfit::Dropped(rule)) => {
                self.drop(rule, counts);
                None
            }
            Err(Unfit::Innocent(rule, variant)) => {
                self.drop(rule, counts);
                if self.found.innocent.len() < INNOCENT {
                    self.found.innocent.push(*variant);
                }
                None
            }
            Err(Unfit::Misread(error)) => {
                self.found.misread.get_or_insert((what, error));
                None
            }
        }
    }

    fn drop(&mut self, rule: &'static str, counts: bool) {
        if counts {
            *self.found.dropped.entry(rule).or_default() += 1;
        }
    }

    fn deriving(&self, base: &Variant) -> Deriving {
        let shared = self.inputs.shared.keys().copied().collect();
        let description = &self.inputs.engine.description;
        let SearchInputs {
            targets, distances, ..
        } = self.inputs;
        Deriving::new(self.kernel(), base, description, targets, distances, shared)
    }

    /// Changes one thing at a time in a launch that the simulator cannot follow, until there are enough for a device.
    fn around(&mut self, base: &Variant) {
        let variants = self.deriving(base).one_by_one(base, &mut self.random);
        for (_, variant) in variants {
            if self.is_over(100) || self.found.innocent.len() == INNOCENT {
                break;
            }
            self.attempt(variant, true);
        }
    }

    fn from(&mut self, first: usize) {
        let base = self.found.kept[first].variant.clone();
        let mut deriving = self.deriving(&base);
        let variants = deriving.one_by_one(&base, &mut self.random);
        for (touched, variant) in variants {
            if self.is_over(40) {
                break;
            }
            let number = self.attempt(variant, true);
            deriving.learn(&[touched], number.is_some());
            if let Some(number) = number {
                self.note(first, number, touched);
            }
        }
        for variant in deriving.in_pairs(&base, &mut self.random) {
            if self.is_over(55) {
                break;
            }
            self.attempt(variant, true);
        }
        self.reach(first, &base, &deriving);
        while !self.is_over(100) {
            let pool = &self.found.new;
            let from = match self.random.chance(70) {
                true => self.random.any_of(pool).copied().unwrap_or(first),
                false => first,
            };
            let mut from = self.found.kept[from].variant.clone();
            if from.what.len() > 120 {
                from = base.clone();
            }
            let (touched, variant) = deriving.at_random(&from, &mut self.random);
            if touched.is_empty() {
                // A kernel without parameters has one launch.
                self.tried += 1;
                continue;
            }
            let number = self.attempt(variant, true);
            deriving.learn(&touched, number.is_some());
        }
    }

    /// Remembers the effect of a single change on the loops.
    fn note(&mut self, from: usize, to: usize, touched: Touched) {
        let (from, to) = (&self.found.kept[from], &self.found.kept[to]);
        for (number, (before, after)) in from.covered.trips.iter().zip(&to.covered.trips).enumerate() {
            match touched {
                Touched::Scalar(position) => {
                    let known = self.scalars.entry((number, position)).or_default();
                    for (kept, trips) in [(from, before), (to, after)] {
                        if let Some((ty, bits)) = kept.variant.scalar(position) {
                            let most = trips.0.last().map_or(0, |&most| i64::from(most));
                            known.insert(signed(ty, bits), most);
                        }
                    }
                }
                Touched::Buffer(position) if before != after => {
                    self.buffers.insert((number, position));
                }
                _ => {}
            }
        }
    }

    /// Looks for launches that take each loop to the numbers of iterations that no launch so far did.
    fn reach(&mut self, first: usize, base: &Variant, deriving: &Deriving) {
        for target in self.inputs.targets.clone() {
            for number in 0..self.inputs.plain.sites.loops.len() {
                let scalars: Vec<usize> = self.movers(number).collect();
                for position in scalars {
                    self.reach_with(first, base, deriving, (number, position), target as i64);
                }
                let buffers: Vec<usize> = self
                    .buffers
                    .iter()
                    .filter(|(looped, _)| *looped == number)
                    .map(|key| key.1)
                    .collect();
                let changes = [
                    Change::Steps(target),
                    Change::Constant(target),
                    Change::Prefix(target, 1, 0),
                    Change::Prefix(target, 0, 1),
                ];
                let variants = buffers.iter().flat_map(|&position| {
                    changes
                        .iter()
                        .filter_map(move |change| deriving.with_contents(base, position, change))
                });
                for variant in variants.take(TRIES) {
                    if self.has(number, target as i64) || self.is_over(80) {
                        break;
                    }
                    self.attempt(variant, true);
                }
            }
        }
    }

    /// The scalars that change how many iterations a loop has.
    fn movers(&self, number: usize) -> impl Iterator<Item = usize> {
        let moves = move |(key, known): (&(usize, usize), &BTreeMap<i64, i64>)| {
            let mut trips = known.values();
            let first = trips.next();
            (key.0 == number && trips.any(|other| Some(other) != first)).then_some(key.1)
        };
        self.scalars.iter().filter_map(moves)
    }

    fn has(&self, number: usize, target: i64) -> bool {
        let trips = self.found.covered.trips.get(number);
        trips.is_some_and(|trips| trips.0.contains(&(target as u32)))
    }

    /// Looks for the value of a scalar at which a loop has this many iterations.
    fn reach_with(
        &mut self,
        first: usize,
        base: &Variant,
        deriving: &Deriving,
        key: (usize, usize),
        target: i64,
    ) {
        for _ in 0..TRIES {
            if deriving.roles[key.1] != Role::Scalar || self.has(key.0, target) || self.is_over(80) {
                return;
            }
            let Some(value) = self.scalars.get(&key).and_then(|known| value_at(known, target)) else {
                return;
            };
            let variant = deriving.with_scalar(base, key.1, value as u64);
            match self.attempt(variant, true) {
                Some(number) => self.note(first, number, Touched::Scalar(key.1)),
                None => return,
            }
        }
    }
}

/// The parameters under which a loop may have this many iterations, after values for which the iterations are known; none if all
/// such were tried.
fn value_at(known: &BTreeMap<i64, i64>, target: i64) -> Option<i64> {
    let above = known
        .iter()
        .filter(|(_, trips)| **trips > target)
        .min_by_key(|(_, trips)| **trips);
    // Where a loop has equally few at several values, the nearest of them brackets the target best.
    let distance = |value: i64| above.map_or(0, |(&above, _)| above.abs_diff(value));
    let below = known
        .iter()
        .filter(|(_, trips)| **trips < target)
        .max_by_key(|(value, trips)| (**trips, std::cmp::Reverse(distance(**value))));
    let value = match (below, above) {
        (Some((&low, &few)), Some((&high, &many))) => {
            let along =
                i128::from(target - few) * (i128::from(high) - i128::from(low)) / i128::from(many - few);
            let value = i128::from(low) + along;
            match value == i128::from(low) || value == i128::from(high) {
                true => (i128::from(low) + i128::from(high)) / 2,
                false => value,
            }
        }
        // Nothing is far enough: beyond the furthest, twice as far as a line would go.
        (Some((&furthest, &most)), None) => {
            let (&start, &least) = known.iter().min_by_key(|(_, trips)| **trips)?;
            if most == least {
                return None;
            }
            let along = i128::from(target - most) * (i128::from(furthest) - i128::from(start));
            i128::from(furthest) + 2 * along / i128::from(most - least)
        }
        // Everything is too far: the same in the other direction.
        (None, Some((&nearest, &least))) => {
            let (&start, &most) = known.iter().max_by_key(|(_, trips)| **trips)?;
            if most == least {
                return None;
            }
            let along = i128::from(least - target) * (i128::from(nearest) - i128::from(start));
            i128::from(nearest) + 2 * along / i128::from(most - least)
        }
        (None, None) => return None,
    };
    let value = i64::try_from(value).ok()?;
    (!known.contains_key(&value)).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many tries it takes until a loop has this many iterations.
    fn tries(trips: impl Fn(i64) -> i64, start: &[i64], target: i64) -> Option<usize> {
        let mut known: BTreeMap<i64, i64> = start.iter().map(|&value| (value, trips(value))).collect();
        for tries in 0..=TRIES {
            if known.values().any(|&trips| trips == target) {
                return Some(tries);
            }
            let value = value_at(&known, target)?;
            known.insert(value, trips(value));
        }
        None
    }

    #[test]
    fn lines_are_followed_to_where_a_loop_has_so_many_iterations() {
        for target in [12, 40, 70] {
            assert!(
                tries(|value| value, &[8, 9], target).is_some_and(|tries| tries <= 3),
                "{target}"
            );
            let strided = |value: i64| (value + 31) / 32;
            assert!(tries(strided, &[8, 9, 64, 100], target).is_some(), "{target}");
            let down = |value: i64| (100 - value).max(0);
            assert!(tries(down, &[50, 51], target).is_some(), "{target}");
        }
        assert_eq!(tries(|_| 3, &[1, 2], 7), None, "nothing moves it");
    }
}
