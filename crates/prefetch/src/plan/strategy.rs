//! The strategies with their parameters: distance, layout, cache level, scope.

use std::fmt;
use std::num::NonZeroU32;

use crate::descriptor::{Carried, Descriptor};
use crate::error::{Error, Result};
use crate::ir::CacheLevel;
use crate::strategies::StrategyKind;

/// How many iterations ahead of its use a value is asked for: 1 to `Distance::MAX`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Distance(NonZeroU32);

impl Distance {
    /// The largest distance. No memory is so slow that more would help: 4096 iterations of four cycles are more than
    /// twenty times the latency of device memory.
    pub(crate) const MAX: u32 = 4096;

    /// A distance of this many iterations.
    ///
    /// # Errors
    /// It is 0 or above `Distance::MAX`.
    pub fn new(iterations: u32) -> Result<Distance> {
        match NonZeroU32::new(iterations) {
            Some(distance) if iterations <= Distance::MAX => Ok(Distance(distance)),
            Some(_) => {
                Err(Error::usage(format!("distance {iterations} is too large"))
                    .accepted(Distance::accepted()))
            }
            None => Err(Error::usage("distance 0 fetches nothing early").accepted(Distance::accepted())),
        }
    }

    /// The number of iterations.
    pub const fn get(self) -> u32 {
        self.0.get()
    }

    /// The part of a message that says which distances there are.
    pub(super) fn accepted() -> String {
        format!("a distance is 1 to {} iterations ahead of the use", Distance::MAX)
    }
}

impl fmt::Display for Distance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// How many iterations of a loop become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unroll {
    /// Groups of this many iterations, 2 to `Unroll::MAX`: their loads first, then their uses.
    By(NonZeroU32),
    /// The whole loop; its trip count must be known.
    Full,
    /// One iteration as before, but its loads first, then their uses.
    Early,
}

impl Unroll {
    /// The largest group of iterations.
    pub(crate) const MAX: u32 = 1024;

    /// Groups of this many iterations.
    ///
    /// # Errors
    /// It is below 2, which is no unrolling, or above `Unroll::MAX`.
    pub fn by(iterations: u32) -> Result<Unroll> {
        match NonZeroU32::new(iterations) {
            Some(count) if (2..=Unroll::MAX).contains(&iterations) => Ok(Unroll::By(count)),
            _ => Err(Error::usage(format!("a loop cannot be unrolled by {iterations}"))
                .accepted(Unroll::accepted())),
        }
    }

    /// The iterations in a group; none where the whole loop is one.
    pub fn iterations(self) -> Option<u32> {
        match self {
            Unroll::By(iterations) => Some(iterations.get()),
            Unroll::Full => None,
            Unroll::Early => Some(1),
        }
    }

    /// The part of a message that names the accepted forms of unrolling.
    pub(super) fn accepted() -> String {
        format!(
            "`unroll:N` with N from 2 to {}, `unroll:full`, or `early`",
            Unroll::MAX
        )
    }
}

impl fmt::Display for Unroll {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unroll::By(iterations) => write!(f, "unroll:{iterations}"),
            Unroll::Full => f.write_str("unroll:full"),
            Unroll::Early => f.write_str("early"),
        }
    }
}

/// Where the values of one work-item lie in shared memory. The default is [`Layout::Interleaved`]: it has no bank
/// conflicts at any distance and wastes no space. Plans as printed always name the layout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layout {
    /// Each work-item's values follow one another: the article's first form. Distances that are multiples of a power
    /// of two conflict in the banks.
    Plain,
    /// As plain, with unused elements after each work-item's values; see [`Layout::depth`].
    Padded,
    /// Slot-major: the values that neighbouring work-items hold of the same iteration are neighbours.
    #[default]
    Interleaved,
}

impl Layout {
    /// Every layout.
    pub const ALL: [Layout; 3] = [Layout::Plain, Layout::Padded, Layout::Interleaved];

    /// The name in a plan, after the slash.
    pub fn name(self) -> &'static str {
        match self {
            Layout::Plain => "plain",
            Layout::Padded => "padded",
            Layout::Interleaved => "interleaved",
        }
    }

    /// Elements of shared memory that one work-item takes for this many slots.
    ///
    /// Padded: the least 2ᵏ+1 not below the slots, the rule of NVIDIA's article "Boosting Application Performance with GPU
    /// Memory Prefetching". k is at least 1, because padding has to avoid an even stride.
    pub fn depth(self, slots: Distance) -> u32 {
        match self {
            Layout::Plain | Layout::Interleaved => slots.get(),
            Layout::Padded => (slots.get() - 1).next_power_of_two().max(2) + 1,
        }
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Who shares the work of a joint prefetch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum JointScope {
    /// The work-items of a sub-group: the default.
    #[default]
    SubGroup,
    /// The work-items of a work-group, written `/group`.
    WorkGroup,
}

/// How the data of a load is fetched before its use: the strategy and its parameters. Parameters that a strategy does not have
/// (a layout, as its [`Descriptor`] says) are never set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Strategy {
    kind: StrategyKind,
    level: Option<CacheLevel>,
    distance: Distance,
    layout: Option<Layout>,
    nontemporal: bool,
    scope: JointScope,
}

impl Strategy {
    /// A strategy at this distance, with the defaults of everything else: interleaved, to the nearest level.
    pub fn new(kind: StrategyKind, distance: Distance) -> Strategy {
        let descriptor = kind.descriptor();
        Strategy {
            kind,
            level: descriptor.takes.levels.first().copied(),
            distance,
            layout: descriptor.takes.layout.then(Layout::default),
            nontemporal: false,
            scope: JointScope::default(),
        }
    }

    /// The same at another distance.
    #[must_use]
    pub fn at_distance(self, distance: Distance) -> Strategy {
        Strategy { distance, ..self }
    }

    /// To this cache level, if it goes to any.
    #[must_use]
    pub fn to_level(self, level: CacheLevel) -> Strategy {
        let goes = self.descriptor().takes.levels.contains(&level);
        Strategy {
            level: if goes { Some(level) } else { self.level },
            ..self
        }
    }

    /// In this layout, if it has one.
    #[must_use]
    pub fn in_layout(self, layout: Layout) -> Strategy {
        Strategy {
            layout: self.layout.map(|_| layout),
            ..self
        }
    }

    /// For data that will not be used again, if that can be said.
    #[must_use]
    pub(crate) fn nontemporal(self) -> Strategy {
        Strategy {
            nontemporal: self.descriptor().takes.nontemporal,
            ..self
        }
    }

    /// Carried out by the work-group together, if it can be.
    #[must_use]
    pub(crate) fn of_work_group(self) -> Strategy {
        Strategy {
            scope: match self.descriptor().takes.group {
                true => JointScope::WorkGroup,
                false => self.scope,
            },
            ..self
        }
    }

    /// Which strategy.
    pub fn kind(self) -> StrategyKind {
        self.kind
    }

    /// Its descriptor.
    pub fn descriptor(self) -> &'static Descriptor {
        self.kind.descriptor()
    }

    /// The name in a plan, without distance, level and layout.
    pub fn name(self) -> &'static str {
        self.descriptor().name
    }

    /// How values reach their use.
    pub(crate) fn carried(self) -> Carried {
        self.descriptor().carried
    }

    /// How many iterations ahead of its use a value is asked for.
    pub fn distance(self) -> Distance {
        self.distance
    }

    /// The layout in shared memory; none for strategies that use none.
    pub fn layout(self) -> Option<Layout> {
        self.layout
    }

    /// The cache level asked for; none for strategies that fetch values.
    pub fn level(self) -> Option<CacheLevel> {
        self.level
    }

    /// Who shares the work of a joint one.
    pub fn scope(self) -> JointScope {
        self.scope
    }

    /// Whether it is only a hint: the load stays where it is, and results cannot depend on it.
    pub fn is_hint(self) -> bool {
        self.carried() == Carried::Not
    }

    /// Whether work-items carry it out together.
    pub fn is_joint(self) -> bool {
        self.descriptor().is_joint
    }

    /// Whether its data is said not to be used again.
    pub fn is_nontemporal(self) -> bool {
        self.nontemporal
    }

    /// The strategy without its distance, as a figure labels its line: `rolling-async/padded`, `cache:L2/nt`.
    pub fn label(self) -> String {
        let level = self
            .level()
            .map(|level| format!(":{}", level.name()))
            .unwrap_or_default();
        format!("{}{level}{}", self.name(), self.suffix())
    }

    /// Layout and flags, each with its slash.
    fn suffix(self) -> String {
        let layout = self.layout.map(Layout::name);
        let nontemporal = self.nontemporal.then_some("nt");
        let group = (self.scope == JointScope::WorkGroup).then_some("group");
        let flags = [layout, nontemporal, group].into_iter().flatten();
        flags.map(|flag| format!("/{flag}")).collect()
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        if let Some(level) = self.level() {
            write!(f, ":{}", level.name())?;
        }
        write!(f, ":{}{}", self.distance(), self.suffix())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_makes_strides_odd() {
        let depth = |slots| Layout::Padded.depth(Distance::new(slots).expect("in range"));
        let expected = [
            (1, 3),
            (2, 3),
            (3, 3),
            (4, 5),
            (5, 5),
            (6, 9),
            (8, 9),
            (9, 9),
            (12, 17),
            (16, 17),
            (17, 17),
        ];
        for (slots, elements) in expected {
            assert_eq!(depth(slots), elements, "for {slots} slots");
        }
        assert_eq!(depth(Distance::MAX), Distance::MAX + 1);
    }

    #[test]
    fn what_a_strategy_is_not_told_is_not_set() {
        let distance = Distance::new(3).expect("in range");
        for &kind in StrategyKind::ALL {
            let told = Strategy::new(kind, distance)
                .to_level(CacheLevel::L2)
                .in_layout(Layout::Padded)
                .nontemporal()
                .of_work_group();
            let descriptor = kind.descriptor();
            assert_eq!(told.layout().is_some(), descriptor.takes.layout);
            assert_eq!(told.level().is_some(), !descriptor.takes.levels.is_empty());
            assert_eq!(told.is_hint(), told.level().is_some());
            assert_eq!(told.to_string().parse::<Strategy>().expect("a strategy"), told);
            assert_eq!(StrategyKind::named(descriptor.name), Some(kind));
        }
        let joint = Strategy::new(StrategyKind::Joint, distance)
            .nontemporal()
            .of_work_group();
        assert_eq!(joint.to_string(), "joint:L1:3/nt/group");
        let copied = Strategy::new(StrategyKind::RollingAsync, distance).in_layout(Layout::Padded);
        assert_eq!(copied.label(), "rolling-async/padded");
    }
}
