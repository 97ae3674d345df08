//! Launches derived from one: one thing changed at a time, all of them, or several at random.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::data::{Change, Own, specials};
use super::launch::{Part, Promise, Role, Variant};
use super::overlap::{Pair, pairs};
use crate::device::Description;
use crate::ir::{Kernel, OpKind, Type};
use crate::random::Random;
use crate::tune::check::compare::Compare;

/// The most other scalars that one is set beside.
const BESIDE: usize = 4;
/// The most numbers of a kernel that are looked at.
const MOST_WORDS: usize = 24;
/// The most launches in which two scalars are changed together.
const MOST_PAIRED: usize = 72;
/// Something is changed at random at most this many times.
const MOST_CHANGES: u64 = 4;

/// Derives launches of a kernel.
pub(super) struct Deriving {
    pub(super) names: Vec<String>,
    pub roles: Vec<Role>,
    /// Each buffer's own contents.
    own: Vec<Option<Own>>,
    /// Pairs of parameters that may get the same memory.
    pub(super) pairs: Vec<Pair>,
    /// How far ahead plans go, in iterations.
    pub(super) distances: Vec<u64>,
    /// Sizes of work-groups; none but its own where the kernel requires one.
    pub(super) sizes: Vec<[u32; 3]>,
    /// Other amounts of dynamic shared memory.
    shared: Vec<u32>,
    /// Numbers of iterations that are wanted.
    targets: Vec<u64>,
    /// Numbers that the kernel compares with, and those beside them.
    words: Arc<[u64]>,
    /// The random changes tried, and how often the plain kernel accepted them.
    taken: HashMap<Touched, (u32, u32)>,
}

/// The changes in a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Touched {
    Scalar(usize),
    Buffer(usize),
    Length(usize),
    Groups,
    Size,
    Shared,
    Aliases,
}

impl Deriving {
    pub(crate) fn new(
        kernel: &Kernel,
        base: &Variant,
        device: &Description,
        targets: &[u64],
        distances: &[u64],
        shared: Vec<u32>,
    ) -> Deriving {
        let words: Arc<[u64]> = words(kernel).into();
        let own = |part: &Part| match part {
            Part::Scalar(..) | Part::Given(_) => None,
            Part::Buffer(contents) => Some(Own::with(
                contents.element,
                contents.length,
                contents.fill.clone(),
                Arc::clone(&words),
                contents.pointers.clone(),
            )),
        };
        Deriving {
            names: base.names(kernel),
            roles: base.roles(kernel),
            own: base.parts.iter().map(own).collect(),
            pairs: pairs(kernel, base),
            distances: distances.to_vec(),
            sizes: match kernel.group_size {
                Some(_) => Vec::new(),
                None => sizes(base.group, device),
            },
            shared,
            targets: targets.to_vec(),
            taken: HashMap::new(),
            words,
        }
    }

    /// A change in words: the parameter, and its new value.
    fn named(&self, position: usize, what: &dyn std::fmt::Display) -> String {
        format!("`{}` {what}", self.names[position])
    }

    /// Whether results are compared by their bits: then data may be as odd as they like.
    fn is_exact(base: &Variant) -> bool {
        (0..base.parts.len()).all(|position| {
            let compare = base.buffer(position).and_then(|contents| contents.compare);
            !matches!(compare, Some(Compare::Relative(_) | Compare::OfLargest(_)))
        })
    }

    /// Every launch in which one thing differs from this one; of each kind one after the other.
    pub(crate) fn one_by_one(&self, base: &Variant, random: &mut Random) -> Vec<(Touched, Variant)> {
        let mut kinds: Vec<Vec<(Touched, Variant)>> = Vec::new();
        for (position, role) in self.roles.iter().enumerate() {
            kinds.push(match role {
                Role::Scalar => self.scalars(base, position, random),
                Role::Length => self.lengths(base, position),
                Role::Buffer(_) => self.contents(base, position, random),
                Role::Given => Vec::new(),
            });
        }
        kinds.push(self.geometries(base));
        kinds.push(self.aliases(base));
        // A search that ends early has tried some of every kind.
        let mut all = Vec::with_capacity(kinds.iter().map(Vec::len).sum());
        let mut kinds: Vec<_> = kinds.into_iter().map(Vec::into_iter).collect();
        while !kinds.is_empty() {
            kinds.retain_mut(|kind| {
                let next = kind.next();
                let is_left = next.is_some();
                all.extend(next);
                is_left
            });
        }
        all
    }

    /// Launches in which two scalars are at 0, 1 or −1, or one of them is and the other as it was.
    pub(crate) fn in_pairs(&self, base: &Variant, random: &mut Random) -> Vec<Variant> {
        const CORNERS: [u64; 3] = [0, 1, u64::MAX];
        let is_integer = |&position: &usize| {
            self.roles[position] == Role::Scalar
                && base.scalar(position).is_some_and(|(ty, _)| ty.is_integer())
        };
        let scalars: Vec<usize> = (0..self.roles.len()).filter(is_integer).collect();
        let mut changes = Vec::new();
        for (rank, &first) in scalars.iter().enumerate() {
            for &second in &scalars[rank + 1..] {
                for one in CORNERS {
                    changes.extend(CORNERS.map(|other| ((first, one), (second, other))));
                }
            }
        }
        // Of many some are drawn.
        while changes.len() > MOST_PAIRED {
            let last = changes.len() - 1;
            changes.swap_remove(random.below(last as u64 + 1) as usize);
        }
        let variants = changes.into_iter().map(|((first, one), (second, other))| {
            let variant = self.with_scalar(base, first, one);
            self.with_scalar(&variant, second, other)
        });
        variants.collect()
    }

    fn scalars(&self, base: &Variant, position: usize, random: &mut Random) -> Vec<(Touched, Variant)> {
        let values = self.values(base, position, random).into_iter();
        values
            .map(|value| {
                let mut variant = base.clone();
                variant.set(position, value);
                variant.also(self.named(position, &shown(base, position, value)));
                (Touched::Scalar(position), variant)
            })
            .collect()
    }

    /// Values that a scalar gets.
    fn values(&self, base: &Variant, position: usize, random: &mut Random) -> Vec<u64> {
        let Some((ty, own)) = base.scalar(position) else {
            return Vec::new();
        };
        let mut values: Vec<u64> = match ty {
            Type::Bool => vec![1 - (own & 1)],
            _ if ty.is_float() => {
                let mut values = match Deriving::is_exact(base) {
                    true => specials(ty),
                    false => specials(ty)[..4].to_vec(),
                };
                values.extend(beside_float(ty, own));
                values
            }
            _ => {
                let least = 1u64 << (ty.bits().clamp(1, 64) - 1);
                let near = [own.wrapping_add(1), own.wrapping_sub(1)];
                let mut values = vec![0, 1];
                values.extend(near);
                values.extend([u64::MAX, 2, 3, 7, least - 1, least]);
                values.extend([random.below(64), random.below(64), random.bits()]);
                values.extend(self.words.iter());
                values.extend(self.beside(base, position));
                values
            }
        };
        values.iter_mut().for_each(|value| *value &= ty.mask());
        let mut distinct: Vec<u64> = Vec::new();
        for value in values {
            if value != own && !distinct.contains(&value) {
                distinct.push(value);
            }
        }
        distinct
    }

    /// Around other scalars, and around the number of work-items, where the last work-group is full or is not.
    fn beside(&self, base: &Variant, position: usize) -> Vec<u64> {
        let items = |dimensions: [u32; 3]| dimensions.iter().map(|&count| u64::from(count)).product::<u64>();
        let (group, all) = (items(base.group), items(base.group) * items(base.groups));
        let mut around = vec![all, all - group + 1, group];
        let others =
            (0..self.roles.len()).filter(|&other| other != position && self.roles[other] == Role::Scalar);
        let integers = others.filter_map(|other| base.scalar(other).filter(|(ty, _)| ty.is_integer()));
        around.extend(integers.map(|(_, bits)| bits).take(BESIDE));
        around
            .into_iter()
            .flat_map(|value| [value, value.wrapping_sub(1), value.wrapping_add(1)])
            .collect()
    }

    /// Other lengths of the buffer that a parameter is the length of.
    fn lengths(&self, base: &Variant, position: usize) -> Vec<(Touched, Variant)> {
        let Some((_, own)) = base.scalar(position) else {
            return Vec::new();
        };
        let mut lengths = vec![own.saturating_add(1), own.saturating_sub(1), 1, 0];
        lengths.extend(self.targets.iter().take(8));
        lengths
            .into_iter()
            .filter(|&length| length != own)
            .map(|length| {
                let mut variant = base.clone();
                variant.set(position, length);
                variant.also(self.named(position, &length));
                (Touched::Length(position), variant)
            })
            .collect()
    }

    fn contents(&self, base: &Variant, position: usize, random: &mut Random) -> Vec<(Touched, Variant)> {
        let Some(own) = &self.own[position] else {
            return Vec::new();
        };
        let is_exact = Deriving::is_exact(base);
        let changes = own.changes(random).into_iter();
        let mut variants: Vec<(Touched, Variant)> = changes
            .filter(|change| is_exact || !is_odd(change))
            .filter_map(|change| {
                let mut variant = base.clone();
                variant.buffer_mut(position)?.fill = own.changed(&change);
                variant.also(self.named(position, &change));
                Some((Touched::Buffer(position), variant))
            })
            .collect();
        variants.extend(self.longer(base, position));
        variants
    }

    /// A buffer longer than it has to be, where the kernel knows its length from no parameter.
    fn longer(&self, base: &Variant, position: usize) -> Option<(Touched, Variant)> {
        if self.roles[position] == Role::Buffer(Promise::Nothing) {
            return None;
        }
        let mut variant = base.clone();
        let contents = variant.buffer_mut(position)?;
        contents.length = contents.length.saturating_add(1);
        if let Role::Buffer(Promise::Parameter(parameter)) = self.roles[position] {
            let length = contents.length;
            variant.set(parameter, length);
        }
        variant.also(self.named(position, &"one element more"));
        Some((Touched::Length(position), variant))
    }

    fn geometries(&self, base: &Variant) -> Vec<(Touched, Variant)> {
        let mut variants = Vec::new();
        let others = [1, 2, 3, 5]
            .into_iter()
            .filter(|&groups| groups != base.groups[0]);
        for groups in others {
            let mut variant = base.clone();
            variant.groups[0] = groups;
            variant.also(format!("{groups} work-groups"));
            variants.push((Touched::Groups, variant));
        }
        for dimension in [1, 2] {
            let mut variant = base.clone();
            variant.groups[dimension] = 2;
            variant.also(format!("2 work-groups along dimension {dimension}"));
            variants.push((Touched::Groups, variant));
        }
        for size in &self.sizes {
            let mut variant = base.clone();
            variant.group = *size;
            variant.also(format!("work-groups of {} x {} x {}", size[0], size[1], size[2]));
            variants.push((Touched::Size, variant));
        }
        for &bytes in &self.shared {
            let mut variant = base.clone();
            variant.shared_bytes = Some(bytes);
            variant.also(format!("{bytes} bytes of dynamic shared memory"));
            variants.push((Touched::Shared, variant));
        }
        variants
    }

    /// A launch with a random change, and the change.
    pub(crate) fn at_random(&self, base: &Variant, random: &mut Random) -> (Vec<Touched>, Variant) {
        let mut variant = base.clone();
        let mut touched = Vec::new();
        let changes = 1 + random.below(MOST_CHANGES);
        for _ in 0..changes {
            for _ in 0..8 {
                let Some(candidate) = self.candidate(random) else {
                    break;
                };
                // Changes that the plain kernel rarely accepts are tried more rarely.
                let (tried, taken) = self.taken.get(&candidate).copied().unwrap_or((0, 0));
                if random.below(u64::from(tried) + 2) < u64::from(taken) + 2 || random.chance(8) {
                    self.change(&mut variant, candidate, random);
                    touched.push(candidate);
                    break;
                }
            }
        }
        (touched, variant)
    }

    /// Remembers whether the plain kernel accepted the changes.
    pub(crate) fn learn(&mut self, touched: &[Touched], taken: bool) {
        for &touched in touched {
            let (tried, times) = self.taken.entry(touched).or_default();
            *tried += 1;
            *times += u32::from(taken);
        }
    }

    fn candidate(&self, random: &mut Random) -> Option<Touched> {
        if random.chance(12) {
            let mut others = vec![Touched::Groups];
            others.extend((!self.sizes.is_empty()).then_some(Touched::Size));
            others.extend((!self.shared.is_empty()).then_some(Touched::Shared));
            others.extend((!self.pairs.is_empty()).then_some(Touched::Aliases));
            return random.any_of(&others).copied();
        }
        let position = random.below(self.roles.len() as u64) as usize;
        Some(match self.roles.get(position)? {
            Role::Scalar => Touched::Scalar(position),
            Role::Length => Touched::Length(position),
            Role::Buffer(_) => Touched::Buffer(position),
            Role::Given => return None,
        })
    }

    fn change(&self, variant: &mut Variant, what: Touched, random: &mut Random) {
        match what {
            Touched::Scalar(position) => {
                let value = self.value(variant, position, random);
                variant.also(self.named(position, &shown(variant, position, value)));
                variant.set(position, value);
            }
            Touched::Length(position) => {
                let target = random.any_of(&self.targets).copied().unwrap_or(1);
                let own = variant.scalar(position).map_or(0, |(_, bits)| bits);
                let length = match random.below(4) {
                    0 => target,
                    1 => own.saturating_sub(1),
                    _ => own.saturating_add(1 + random.below(64)).min(1 << 28),
                };
                variant.set(position, length);
                variant.also(self.named(position, &length));
            }
            Touched::Buffer(position) => {
                let Some(own) = &self.own[position] else { return };
                let change = own.random(random);
                if is_odd(&change) && !Deriving::is_exact(variant) {
                    return;
                }
                if let Some(contents) = variant.buffer_mut(position) {
                    contents.fill = own.changed(&change);
                    variant.also(self.named(position, &change));
                }
            }
            Touched::Groups => {
                variant.groups[0] = 1 + random.below(3) as u32;
                variant.also(format!("{} work-groups", variant.groups[0]));
            }
            Touched::Size => {
                if let Some(size) = random.any_of(&self.sizes) {
                    variant.group = *size;
                    variant.also(format!("work-groups of {} x {} x {}", size[0], size[1], size[2]));
                }
            }
            Touched::Shared => {
                if let Some(&bytes) = random.any_of(&self.shared) {
                    variant.shared_bytes = Some(bytes);
                    variant.also(format!("{bytes} bytes of dynamic shared memory"));
                }
            }
            Touched::Aliases => self.share_at_random(variant, random),
        }
    }

    /// Any value of a scalar; small ones most often, since loops end then.
    fn value(&self, variant: &Variant, position: usize, random: &mut Random) -> u64 {
        let Some((ty, own)) = variant.scalar(position) else {
            return 0;
        };
        if !ty.is_integer() {
            let values = self.values(variant, position, random);
            return random.any_of(&values).copied().unwrap_or(own);
        }
        match random.below(100) {
            0..10 => [0, 1, u64::MAX, 2][random.below(4) as usize],
            10..30 => random.below(12),
            30..50 => random.any_of(&self.targets).copied().unwrap_or(1),
            50..65 => {
                let beside = self.beside(variant, position);
                random.any_of(&beside).copied().unwrap_or(own)
            }
            65..75 => own.wrapping_add(random.below(9)).wrapping_sub(4),
            75..85 => random.below(128),
            85..92 => random.below(5).wrapping_neg(),
            _ => {
                let values = self.values(variant, position, random);
                random.any_of(&values).copied().unwrap_or(own)
            }
        }
    }

    /// A launch with one scalar at a value.
    pub(crate) fn with_scalar(&self, base: &Variant, position: usize, value: u64) -> Variant {
        let mut variant = base.clone();
        variant.set(position, value);
        variant.also(self.named(position, &shown(base, position, value)));
        variant
    }

    /// A launch with one buffer's contents changed.
    pub(crate) fn with_contents(&self, base: &Variant, position: usize, change: &Change) -> Option<Variant> {
        let mut variant = base.clone();
        variant.buffer_mut(position)?.fill = self.own[position].as_ref()?.changed(change);
        variant.also(self.named(position, change));
        Some(variant)
    }
}

/// A scalar's new value as people read it.
fn shown(base: &Variant, position: usize, value: u64) -> String {
    let Some((ty, _)) = base.scalar(position) else {
        return String::new();
    };
    let value = value & ty.mask();
    match ty {
        Type::F32 => format!("= {}", f32::from_bits(value as u32)),
        Type::F64 => format!("= {}", f64::from_bits(value)),
        _ if ty.is_integer() => {
            let unused = 64 - ty.bits().clamp(1, 64);
            format!("= {}", ((value << unused) as i64) >> unused)
        }
        _ => format!("= {value:#x}"),
    }
}

/// A float one greater and one less.
fn beside_float(ty: Type, own: u64) -> Vec<u64> {
    match ty {
        Type::F32 => {
            let own = f32::from_bits(own as u32);
            [own + 1.0, own - 1.0]
                .map(|value| u64::from(value.to_bits()))
                .to_vec()
        }
        Type::F64 => {
            let own = f64::from_bits(own);
            [own + 1.0, own - 1.0].map(f64::to_bits).to_vec()
        }
        _ => Vec::new(),
    }
}

/// Whether sums of such data depend on their order by more than a tolerance.
fn is_odd(change: &Change) -> bool {
    matches!(change, Change::Special(_) | Change::Bits(_) | Change::Between(..))
}

/// Integers that a kernel compares with, and those beside them.
fn words(kernel: &Kernel) -> Vec<u64> {
    let mut words = BTreeSet::new();
    kernel.body.walk(&mut |op| {
        if let OpKind::Compare(_, a, b) = op.kind {
            let constants = [a, b].into_iter().filter(|&value| kernel.ty(value).is_integer());
            for constant in constants.filter_map(|value| kernel.as_constant(value)) {
                words.extend([constant, constant.wrapping_add(1), constant.wrapping_sub(1)]);
            }
        }
    });
    words.into_iter().take(MOST_WORDS).collect()
}

/// Other sizes of work-groups: one work-item, part of a sub-group, one more than a sub-group, several.
fn sizes(own: [u32; 3], device: &Description) -> Vec<[u32; 3]> {
    let sub_group = device.default_sub_group_size;
    let mut sizes: Vec<[u32; 3]> = match own {
        [_, 1, 1] => [
            1,
            sub_group,
            sub_group + 1,
            2 * sub_group,
            sub_group - 1,
            7,
            3 * sub_group,
        ]
        .into_iter()
        .map(|items| [items, 1, 1])
        .collect(),
        [x, y, z] => vec![
            [1, 1, 1],
            [x.div_ceil(2), y, z],
            [x, y.div_ceil(2), z.div_ceil(2)],
            [x, 1, 1],
            [y, x, z],
        ],
    };
    let fits = |size: &[u32; 3]| {
        size.iter().product::<u32>() <= device.max_group_size
            && (0..3).all(|axis| size[axis] <= device.max_group_dimensions[axis])
    };
    sizes.retain(|size| *size != own && fits(size));
    sizes.dedup();
    sizes
}
