//! Buffers that share their memory: two parameters get the same buffer, or one of them points into the middle of the other's.
//!
//! ```text
//! `to` is the memory of `from`                 from ├─────────┤
//!                                              to   ├─────────┤
//! `to` is `from` from element 3 on             from ├─────────┤
//!                                              to      ├─────────┤
//! ```
//! Nothing that the kernel's facts exclude: no parameter that is unaliased or only read, no distance that breaks an alignment.

use super::derive::{Deriving, Touched};
use super::launch::Variant;
use crate::ir::{Kernel, Param};
use crate::random::Random;

/// The most pairs of buffers that share their memory.
const PAIRS: usize = 12;
/// The most launches in which a buffer begins inside another.
const OVERLAPS: usize = 48;
/// The most distances of plans by which buffers are apart.
const DISTANCES: usize = 4;

/// Two parameters that may get the same memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    first: usize,
    second: usize,
    /// Their distance is a multiple of this number of elements, as their alignments promise.
    step: u64,
}

/// Where the second of two parameters points to in the memory of the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Apart {
    /// Where the first one does.
    Nothing,
    /// This many elements after it.
    After(u64),
    /// This many elements before it.
    Before(u64),
}

impl Deriving {
    /// Launches in which two buffers share their memory.
    pub(super) fn aliases(&self, base: &Variant) -> Vec<(Touched, Variant)> {
        let pairs = || self.pairs.iter().take(PAIRS).copied();
        let shared = |pair: Pair, apart: Apart| {
            let mut variant = base.clone();
            self.share(&mut variant, pair, apart).then_some(variant)
        };
        let mut variants: Vec<Variant> = pairs().filter_map(|pair| shared(pair, Apart::Nothing)).collect();
        // The same distance of every pair before the next distance.
        let apart: Vec<(Pair, Vec<Apart>)> = pairs().map(|pair| (pair, self.apart(base, pair))).collect();
        let most = apart.iter().map(|(_, apart)| apart.len()).max().unwrap_or(0);
        let overlaps = (0..most).flat_map(|rank| {
            let ranked = apart
                .iter()
                .filter_map(move |(pair, apart)| Some((*pair, *apart.get(rank)?)));
            ranked.filter_map(|(pair, apart)| shared(pair, apart))
        });
        for variant in overlaps.take(OVERLAPS) {
            variants.extend(self.alone(&variant));
            variants.push(variant);
        }
        let touched = |variant| (Touched::Aliases, variant);
        variants.into_iter().map(touched).collect()
    }

    /// The same with a pair and a distance at random.
    pub(super) fn share_at_random(&self, variant: &mut Variant, random: &mut Random) {
        let Some(&pair) = random.any_of(&self.pairs) else {
            return;
        };
        let apart = match random.chance(40) {
            true => Apart::Nothing,
            false => {
                let apart = self.apart(variant, pair);
                random.any_of(&apart).copied().unwrap_or(Apart::Nothing)
            }
        };
        if self.share(variant, pair, apart)
            && random.chance(50)
            && let Some(alone) = self.alone(variant)
        {
            *variant = alone;
        }
    }

    /// Gives the second of two parameters the memory of the first, or a part of it; whether that is possible.
    fn share(&self, variant: &mut Variant, pair: Pair, apart: Apart) -> bool {
        let Pair { first, second, .. } = pair;
        let memory = variant.memory_of(first);
        let is_shared = |memory: usize| {
            let sharing = (0..variant.parts.len()).filter(|&other| variant.memory_of(other) == memory);
            sharing.count() > 1
        };
        if memory >= second || variant.memory_of(second) != second || is_shared(second) {
            return false;
        }
        // Who moves the first one moves it for all that share its memory.
        if matches!(apart, Apart::Before(_)) && (memory != first || is_shared(first)) {
            return false;
        }
        let (Some(one), Some(other)) = (variant.buffer(memory), variant.buffer(second)) else {
            return false;
        };
        let (start, length, own) = (variant.start(first), one.length, other.length);
        let (first_start, second_start) = match apart {
            Apart::Nothing => (start, start),
            Apart::After(elements) => (start, start.saturating_add(elements)),
            Apart::Before(elements) => (start.saturating_add(elements), start),
        };
        if let Some(contents) = variant.buffer_mut(second) {
            contents.same_as = Some(first);
            contents.start = second_start;
        }
        if let Some(contents) = variant.buffer_mut(first) {
            contents.start = first_start;
        }
        if let Some(contents) = variant.buffer_mut(memory) {
            // The first one's elements move along with it.
            let length = length.saturating_add(first_start - start);
            contents.length = length.max(own.saturating_add(second_start));
        }
        let (one, other) = (&self.names[first], &self.names[second]);
        variant.also(match apart {
            Apart::Nothing => format!("`{other}` is the memory of `{one}`"),
            Apart::After(elements) => format!("`{other}` is `{one}` from element {elements} on"),
            Apart::Before(elements) => format!("`{one}` is `{other}` from element {elements} on"),
        });
        true
    }

    /// How far apart a pair is tried: an element, half a buffer, as far as plans go; each either way.
    fn apart(&self, variant: &Variant, pair: Pair) -> Vec<Apart> {
        let half = variant
            .buffer(pair.first)
            .map_or(0, |contents| contents.length / 2);
        let elements = [1, half]
            .into_iter()
            .chain(self.distances.iter().copied().take(DISTANCES));
        let mut all = Vec::new();
        for elements in elements {
            // The least multiple that is not below: what is too near breaks an alignment.
            let elements = elements.max(1).div_ceil(pair.step).saturating_mul(pair.step);
            for apart in [Apart::After(elements), Apart::Before(elements)] {
                if !all.contains(&apart) {
                    all.push(apart);
                }
            }
        }
        all
    }

    /// The same launch with one work-item: work-items that write what others read race, so overlaps prove little for larger
    /// ones. None if the kernel requires another size.
    fn alone(&self, variant: &Variant) -> Option<Variant> {
        if self.sizes.is_empty() {
            return None;
        }
        let mut alone = variant.clone();
        (alone.groups, alone.group) = ([1; 3], [1; 3]);
        alone.also("one work-item");
        Some(alone)
    }
}

/// Pairs of buffers that the kernel's facts do not keep apart, one of which may be written.
pub(super) fn pairs(kernel: &Kernel, base: &Variant) -> Vec<Pair> {
    let promised = |param: &Param| {
        param
            .facts
            .is_some_and(|facts| facts.read_only || facts.unaliased)
    };
    let size = |position: usize| base.buffer(position).map(|contents| contents.element.bytes());
    let align = |param: &Param| param.facts.map_or(1, |facts| u64::from(facts.align));
    let count = kernel.params.len();
    let all = (0..count).flat_map(|first| (first + 1..count).map(move |second| (first, second)));
    all.filter(|&(first, second)| {
        let (one, other) = (&kernel.params[first], &kernel.params[second]);
        size(first).is_some() && size(first) == size(second) && !promised(one) && !promised(other)
    })
    .map(|(first, second)| {
        let align = align(&kernel.params[first]).max(align(&kernel.params[second]));
        let step = align / u64::from(size(first).unwrap_or(1).max(1));
        Pair {
            first,
            second,
            step: step.max(1),
        }
    })
    .collect()
}
