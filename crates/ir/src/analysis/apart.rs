//! Whether a load that is executed some iterations early crosses a store of its loop that writes what it reads.
//!
//! ```text
//! loop (%i = 1) { %y = load x[i·m + s + m]; …; store x[i·m + s] }      s = group.x × 128 + local.x
//! ahead by k:     load − store = m·(k + 1) − Δs,  k = 1 … D            0 for no k and no other work-item, if m > 1023
//! ```
//!
//! Both addresses are brought into sums of products of the iteration, the work-item's ids in its work-group, and values that are the
//! same for the whole work-group. All is modulo 2³², in bytes: there additions, products and extensions from 32 bits mean the same
//! whether they wrap or not, and what is apart there is apart in memory. Two of the classical tests follow: common divisors of all
//! coefficients (GCD), and the distance of the accesses in the iterations crossed, for all work-items of the work-group (Banerjee's
//! bounds). A stride that the run tells has to lie between two numbers, which one comparison in front of the loop decides.
//!
//! Work-items of other work-groups do not count: what they write while the loop runs, without a barrier, flag or fence that the
//! loop would be refused for, may be seen early or late by the plain kernel as well.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::RangeInclusive;

use super::definitions::{Definition, Definitions};
use super::ranges::{MAX_GROUP_SIZE, range};
use super::summary::{LoadSite, LoopSummary, Step};
use crate::ir::{BinaryOp, ConvertOp, Id, Kernel, OpKind, Type, Value, eval};

/// Values looked at for one address before nothing is known.
const VISITS: u32 = 400;
/// Products that a sum may have, and factors that a product may.
const MOST_TERMS: usize = 24;
const MOST_FACTORS: usize = 4;
/// Work-items in a work-group's last dimension at most.
const MAX_GROUP_DEPTH: u64 = 64;

/// What an early load has to do with a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Crossing {
    /// The store writes nothing that the load reads, as long as the load waits for it.
    Apart,
    /// The same if this value, defined outside the loop, lies between two numbers, both included, without sign.
    If {
        /// What the loop reads: a stride, as a rule.
        value: Value,
        /// The least that it must be.
        least: u64,
        /// The most that it may be.
        most: u64,
    },
    /// It does, or may: why.
    Meets(String),
}

/// What executing `site` `ahead` iterations early has to do with a write of `bytes` bytes through `pointer` into the same
/// memory, which stands in front of it in the loop's body, or behind.
pub fn crossing(
    kernel: &Kernel,
    definitions: &Definitions,
    summary: &LoopSummary,
    site: &LoadSite,
    ahead: u32,
    (pointer, bytes): (Value, u32),
    is_in_front: bool,
) -> Crossing {
    // Work of the same iteration behind the load stays behind it.
    let first = u32::from(!is_in_front);
    if first > ahead {
        return Crossing::Apart;
    }
    let mut reader = Reader {
        kernel,
        definitions,
        summary,
        visits: VISITS,
        read: Vec::new(),
    };
    let mut form = |pointer: Value| reader.form(pointer, true).and_then(Form::split);
    let (Some(load), Some(store)) = (form(site.pointer), form(pointer)) else {
        return Crossing::Meets("the two addresses are no sums of counters and ids".to_owned());
    };
    let loaded: i64 = site
        .results
        .iter()
        .map(|&result| i64::from(kernel.ty(result).bytes()))
        .sum();
    let pair = Pair {
        kernel,
        definitions,
        window: (-loaded, i64::from(bytes)),
        iterations: i64::from(first)..=i64::from(ahead),
        read: reader.read,
    };
    pair.crossing(&load, &store)
}

/// What a product is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Factor {
    /// The number of the iteration, from 0.
    Iteration,
    /// An id in the work-group.
    Local(u8),
    /// A value that the loop does not change.
    Value(Value),
}

/// A sum of products modulo 2³²; none has coefficient 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Form(BTreeMap<Vec<Factor>, u32>);

/// The same in parts: what does not depend on iteration or work-item, the growth in an iteration, and from id to id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Split {
    rest: Form,
    growth: Form,
    ids: [Form; 3],
}

impl Form {
    fn of(factors: Vec<Factor>, coefficient: u32) -> Form {
        Form(
            BTreeMap::from([(factors, coefficient)])
                .into_iter()
                .filter(|&(_, one)| one != 0)
                .collect(),
        )
    }

    fn constant(number: u64) -> Form {
        Form::of(Vec::new(), number as u32)
    }

    /// This and another one, multiplied by `times`.
    fn plus(mut self, other: &Form, times: u32) -> Option<Form> {
        for (factors, coefficient) in &other.0 {
            let sum = self.0.entry(factors.clone()).or_default();
            *sum = sum.wrapping_add(coefficient.wrapping_mul(times));
        }
        self.0.retain(|_, coefficient| *coefficient != 0);
        (self.0.len() <= MOST_TERMS).then_some(self)
    }

    fn times(&self, other: &Form) -> Option<Form> {
        let mut all = Form::default();
        for (own, coefficient) in &self.0 {
            for (factors, times) in &other.0 {
                let mut factors = [&own[..], factors].concat();
                factors.sort();
                if factors.len() > MOST_FACTORS {
                    return None;
                }
                all = all.plus(&Form::of(factors, coefficient.wrapping_mul(*times)), 1)?;
            }
        }
        Some(all)
    }

    /// How often a product counts, read as signed.
    fn times_of(&self, factors: &[Factor]) -> i64 {
        self.0.get(factors).map_or(0, |&times| i64::from(times as i32))
    }

    /// The number, read as signed, if it is one.
    fn as_constant(&self) -> Option<i64> {
        let number = |&number: &u32| i64::from(number as i32);
        match self.0.len() {
            0 => Some(0),
            1 => self.0.get(&Vec::new()).map(number),
            _ => None,
        }
    }

    /// In parts; none where the iteration or an id multiplies another, for then work-items go in steps of their own.
    fn split(self) -> Option<Split> {
        let mut split = Split::default();
        for (mut factors, coefficient) in self.0 {
            let varies = |factor: &Factor| !matches!(factor, Factor::Value(_));
            let varying: Vec<Factor> = factors.iter().copied().filter(varies).collect();
            factors.retain(|factor| !varies(factor));
            let part = match varying[..] {
                [] => &mut split.rest,
                [Factor::Iteration] => &mut split.growth,
                [Factor::Local(dimension)] => split.ids.get_mut(usize::from(dimension))?,
                _ => return None,
            };
            part.0.insert(factors, coefficient);
        }
        Some(split)
    }
}

impl Split {
    fn parts(&self) -> impl Iterator<Item = &Form> {
        [&self.rest, &self.growth].into_iter().chain(&self.ids)
    }
}

/// A load, and a store that it would cross.
struct Pair<'k> {
    kernel: &'k Kernel,
    definitions: &'k Definitions,
    /// The accesses overlap where load − store lies between these, both excluded.
    window: (i64, i64),
    /// How many iterations may lie between them.
    iterations: RangeInclusive<i64>,
    /// What the loop reads from outside, and what that is made of.
    read: Vec<(Value, Form)>,
}

/// How far a pair is apart in iterations where a number of the run decides.
struct Limits {
    /// The longest of the distances without that number, in bytes.
    near: i64,
    /// How often the number counts, at least and at most.
    fewest: i64,
    most: i64,
}

impl Pair<'_> {
    fn overlaps(&self, distance: i64) -> bool {
        distance > self.window.0 && distance < self.window.1
    }

    fn crossing(&self, load: &Split, store: &Split) -> Crossing {
        let meets = |why: &str| Crossing::Meets(why.to_owned());
        let is_common = |factor: &Factor| match factor {
            Factor::Value(value) => is_common(self.kernel, self.definitions, *value),
            _ => true,
        };
        let mut parts = load.parts().chain(store.parts());
        if !parts.all(|part| part.0.keys().flatten().all(is_common)) {
            return meets("other work-items' addresses are unknown");
        }
        let several = "the distance of the two addresses is made of several numbers that the run tells";
        let Some(rest) = load.rest.clone().plus(&store.rest, u32::MAX) else {
            return meets(several);
        };
        if self.share_no_residue(&rest, load, store) {
            return Crossing::Apart;
        }
        if load.ids != store.ids || load.growth != store.growth {
            return meets("the two addresses go in different steps");
        }
        let mut lanes = Lanes { step: 0, most: 0 };
        for (dimension, form) in load.ids.iter().enumerate() {
            let Some(step) = form.as_constant() else {
                return meets("the distance between work-items is known at run time only");
            };
            let greatest = if dimension < 2 {
                MAX_GROUP_SIZE
            } else {
                MAX_GROUP_DEPTH
            };
            let size = self
                .kernel
                .group_size
                .map_or(greatest, |sizes| u64::from(sizes[dimension]));
            lanes.step = divisor(lanes.step, step.unsigned_abs());
            lanes.most += step.unsigned_abs() * size.saturating_sub(1);
        }
        // load − store, k iterations apart: rest + k × growth, both a constant or a multiple of a number of the run.
        let growth = match *self.iterations.end() {
            0 => Form::default(),
            _ => load.growth.clone(),
        };
        let numbers: BTreeSet<&Vec<Factor>> = rest
            .0
            .keys()
            .chain(growth.0.keys())
            .filter(|of| !of.is_empty())
            .collect();
        let number = numbers.first().copied().cloned().unwrap_or_default();
        if numbers.len() > 1 {
            return meets(several);
        }
        let mut limits = Limits {
            near: 0,
            fewest: i64::MAX,
            most: 0,
        };
        for k in self.iterations.clone() {
            let distance = rest.times_of(&[]) + k * growth.times_of(&[]);
            let times = match number.is_empty() {
                true => 0,
                false => rest.times_of(&number) + k * growth.times_of(&number),
            };
            if times != 0 {
                limits.near = limits.near.max(distance.abs());
                limits.fewest = limits.fewest.min(times.abs());
                limits.most = limits.most.max(times.abs());
            } else if self.reaches(distance, &lanes) {
                return Crossing::Meets(match k {
                    0 => "it writes what is read in the same iteration".to_owned(),
                    1 => "it writes what is read in the next iteration".to_owned(),
                    _ => format!("it writes what is read {k} iterations later"),
                });
            }
        }
        match limits.most {
            0 => Crossing::Apart,
            _ => self.by_the_run(&number, &limits, &lanes),
        }
    }

    /// Whether all coefficients have a common divisor with which the two never meet, in whatever iteration or work-item.
    fn share_no_residue(&self, rest: &Form, load: &Split, store: &Split) -> bool {
        let steps = [load, store].into_iter().flat_map(|split| split.parts().skip(1));
        let steps = steps.flat_map(|part| part.0.values());
        let numbers = rest.0.iter().filter(|(factors, _)| !factors.is_empty());
        let all = steps
            .chain(numbers.map(|(_, times)| times))
            .fold(0, |all, times| all | times);
        // The largest power of two: others do not divide 2³².
        let divisor = 1i64 << all.trailing_zeros();
        let distance = rest.times_of(&[]).rem_euclid(divisor);
        !self.overlaps(distance) && !self.overlaps(distance - divisor)
    }

    /// Distances that are multiples of a number of the run: it must be large enough for all others, and small enough to lead once
    /// round 2³² in no iteration.
    fn by_the_run(&self, number: &[Factor], limits: &Limits, lanes: &Lanes) -> Crossing {
        // The multiple of that number that the loop reads: what holds for the distances holds for such multiples of them.
        let times_of = |form: &Form| match (form.0.get(number), form.0.len()) {
            (Some(&times), 1) if times < 1 << 16 => Some(u64::from(times)),
            _ => None,
        };
        let read = self
            .read
            .iter()
            .filter_map(|(value, form)| Some((times_of(form)?, *value)));
        let Some((times, value)) = read.min() else {
            return Crossing::Meets("no value that the loop reads tells their distance".to_owned());
        };
        let near = limits.near.unsigned_abs() + lanes.most + self.window.1.max(-self.window.0) as u64;
        let near = near.saturating_mul(times);
        let (least, most) = (
            near.div_ceil(limits.fewest.unsigned_abs()),
            (1u64 << 32).saturating_sub(near) / limits.most.unsigned_abs(),
        );
        let known = range(self.kernel, self.definitions, value);
        match () {
            () if known.min >= least && known.max <= most => Crossing::Apart,
            () if least <= most => Crossing::If { value, least, most },
            () => Crossing::Meets("no distance is large enough".to_owned()),
        }
    }

    /// Whether the accesses may overlap at this distance, or one that other work-items have from it.
    fn reaches(&self, distance: i64, lanes: &Lanes) -> bool {
        let most = i64::try_from(lanes.most).unwrap_or(i64::MAX);
        let step = i64::try_from(lanes.step).unwrap_or(i64::MAX);
        // Beyond half of 2³² a distance may be another one, once round.
        if distance
            .saturating_abs()
            .saturating_add(most)
            .saturating_add(self.window.1.max(-self.window.0))
            >= 1 << 31
        {
            return true;
        }
        let (low, high) = (
            (distance - most).max(self.window.0 + 1),
            (distance + most).min(self.window.1 - 1),
        );
        match step {
            0 => self.overlaps(distance),
            // The first distance of some work-item that is not below the window.
            _ => low <= high && low + (distance - low).rem_euclid(step) <= high,
        }
    }
}

/// How far the same access of other work-items lies: multiples of a step, up to a number of bytes both ways.
struct Lanes {
    step: u64,
    most: u64,
}

fn divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { divisor(b, a % b) }
}

/// Whether all work-items of a work-group have the same value, as long as they go through the loops around it together.
fn is_common(kernel: &Kernel, definitions: &Definitions, value: Value) -> bool {
    let (mut seen, mut work) = (HashSet::new(), vec![value]);
    while let Some(value) = work.pop() {
        if !seen.insert(value) || kernel.as_constant(value).is_some() {
            continue;
        }
        match definitions.get(value) {
            None if kernel.params.iter().any(|param| param.value == value) => {}
            Some(Definition::LoopParam { initial, next, .. }) => {
                work.push(*initial);
                work.extend(next);
            }
            Some(Definition::Result { kind, .. }) => match kind {
                OpKind::Id(Id::Group(_) | Id::GroupSize(_) | Id::GroupCount(_)) => {}
                OpKind::Id(_) | OpKind::ArrayAddress(_) => return false,
                kind if kind.is_pure() && kind.label().is_none() => {
                    kind.for_each_operand(|operand| work.push(operand));
                }
                _ => return false,
            },
            None => return false,
        }
    }
    true
}

/// Reads addresses as sums.
struct Reader<'k> {
    kernel: &'k Kernel,
    definitions: &'k Definitions,
    summary: &'k LoopSummary,
    visits: u32,
    /// What the loop itself reads from outside.
    read: Vec<(Value, Form)>,
}

impl Reader<'_> {
    /// A value modulo 2³²; none if it depends on the iteration in another way, or is no number of 32 bits or more. `here` says
    /// that the loop itself reads it.
    fn form(&mut self, value: Value, here: bool) -> Option<Form> {
        self.visits = self.visits.checked_sub(1)?;
        let is_outside = !self.summary.inside.contains_key(&value) && !self.summary.params.contains(&value);
        let form = self.found(value)?;
        if here && is_outside && self.kernel.ty(value).is_integer() {
            self.read.push((value, form.clone()));
        }
        Some(form)
    }

    fn found(&mut self, value: Value) -> Option<Form> {
        let ty = self.kernel.ty(value);
        if !(ty.is_pointer() || matches!(ty, Type::I32 | Type::I64)) {
            return None;
        }
        if let Some(bits) = self.kernel.as_constant(value) {
            return Some(Form::constant(eval::signed(ty, bits) as u64));
        }
        if let Some(index) = self.summary.params.iter().position(|&param| param == value) {
            let Definition::LoopParam { initial, .. } = self.definitions.get(value)? else {
                return None;
            };
            let growth = match self.summary.steps[index] {
                Step::Invariant => Form::default(),
                Step::Constant(step) => Form::of(vec![Factor::Iteration], step as u32),
                Step::Value { value, scale } => {
                    let iteration = Form::of(vec![Factor::Iteration], scale as u32);
                    self.form(value, true)?.times(&iteration)?
                }
                Step::Derived(_) | Step::Carried => return None,
            };
            return self.form(*initial, true)?.plus(&growth, 1);
        }
        let inside = self.summary.inside.get(&value);
        let kind = match inside {
            Some(inside) if inside.in_inner_loop || inside.yielded.is_some() => return None,
            Some(inside) => Some(&inside.kind),
            None => self.definitions.op(value),
        };
        let here = inside.is_some();
        let sum = kind.and_then(|kind| self.sum(kind, here));
        if here {
            return sum;
        }
        let in_front = self.definitions.in_front_of_edges(value);
        Some(sum.unwrap_or_else(|| Form::of(vec![Factor::Value(in_front)], 1)))
    }

    fn sum(&mut self, kind: &OpKind, here: bool) -> Option<Form> {
        match *kind {
            OpKind::Id(Id::Local(dimension)) => Some(Form::of(vec![Factor::Local(dimension)], 1)),
            OpKind::Binary(op, a, b) => self.arithmetic(op, a, b, here),
            OpKind::NoWrap(op, _, a, b) => self.arithmetic(op.into(), a, b, here),
            // What has 32 bits or more keeps the lower 32.
            OpKind::Convert(
                ConvertOp::ExtendS
                | ConvertOp::ExtendU
                | ConvertOp::Truncate
                | ConvertOp::ToGeneric
                | ConvertOp::FromGeneric
                | ConvertOp::Bits,
                a,
            ) => self.form(a, here),
            OpKind::Address {
                base,
                index,
                scale,
                offset,
            } => {
                let index = self.form(index, here)?;
                let there = self.form(base, here)?.plus(&index, scale)?;
                there.plus(&Form::constant(offset as u64), 1)
            }
            _ => None,
        }
    }

    fn arithmetic(&mut self, op: BinaryOp, a: Value, b: Value, here: bool) -> Option<Form> {
        let own = self.form(a, here)?;
        match op {
            BinaryOp::Add => own.plus(&self.form(b, here)?, 1),
            BinaryOp::Sub => own.plus(&self.form(b, here)?, u32::MAX),
            BinaryOp::Mul => own.times(&self.form(b, here)?),
            BinaryOp::Shl => {
                let count = self.kernel.as_constant(b).filter(|&count| count < 32)?;
                Form::default().plus(&own, 1 << count)
            }
            _ => None,
        }
    }
}
