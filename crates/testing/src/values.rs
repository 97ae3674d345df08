//! The values that a random kernel has at hand.

use crate::ir::{Builder, Type, Value};
use crate::random::Random;

/// An `I64` that is known to lie between 0 and `below - 1`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounded {
    pub value: Value,
    pub below: u64,
}

/// The values that may be used at one point of the kernel. A region gets a copy, so that what it adds
/// ends with it.
#[derive(Clone, Debug, Default)]
pub(super) struct Pool {
    values: Vec<Value>,
    indices: Vec<Bounded>,
}

impl Pool {
    pub fn add(&mut self, value: Value) {
        self.values.push(value);
    }

    pub fn add_index(&mut self, index: Bounded) {
        self.indices.push(index);
        self.values.push(index.value);
    }

    /// A value of this type; those of late are more likely. A constant if there is none.
    pub fn pick(&self, random: &mut Random, b: &mut Builder<'_>, ty: Type) -> Value {
        let of_type = |value: &&Value| b.kernel.ty(**value) == ty;
        let fitting: Vec<Value> = self.values.iter().filter(of_type).copied().collect();
        let late = fitting.len().saturating_sub(4);
        match fitting.len() {
            0 => constant(random, b, ty),
            _ if random.chance(10) => constant(random, b, ty),
            _ if random.chance(70) => *random.choose(&fitting[late..]),
            _ => *random.choose(&fitting),
        }
    }

    /// The values of this type that came last.
    pub fn last(&self, b: &Builder<'_>, ty: Type, count: usize) -> Vec<Value> {
        let of_type = |value: &&Value| b.kernel.ty(**value) == ty;
        self.values
            .iter()
            .rev()
            .filter(of_type)
            .take(count)
            .copied()
            .collect()
    }

    /// A known index below `limit`, if there is one.
    pub fn index(&self, random: &mut Random, limit: u64) -> Option<Bounded> {
        let fitting: Vec<Bounded> = self
            .indices
            .iter()
            .filter(|index| index.below <= limit)
            .copied()
            .collect();
        let late = fitting.len().saturating_sub(3);
        match fitting.len() {
            0 => None,
            _ if random.chance(75) => Some(*random.choose(&fitting[late..])),
            _ => Some(*random.choose(&fitting)),
        }
    }
}

/// A small constant, or one of the special ones.
pub(super) fn constant(random: &mut Random, b: &mut Builder<'_>, ty: Type) -> Value {
    let small = random.below(9) as f64 - 3.0;
    match ty {
        Type::F32 => {
            let special = [f32::NAN, f32::INFINITY, -0.0, f32::MIN_POSITIVE / 8.0];
            let number = if random.chance(5) {
                *random.choose(&special)
            } else {
                small as f32 * 0.5
            };
            b.f32(number)
        }
        Type::F64 => {
            let special = [f64::NAN, f64::NEG_INFINITY, -0.0];
            let number = if random.chance(5) {
                *random.choose(&special)
            } else {
                small * 0.25
            };
            b.f64(number)
        }
        Type::Bool => {
            let truth = random.chance(50);
            b.bool(truth)
        }
        _ if random.chance(10) => {
            let bits = random.bits();
            b.constant(ty, bits)
        }
        _ => b.constant(ty, small as i64 as u64),
    }
}
