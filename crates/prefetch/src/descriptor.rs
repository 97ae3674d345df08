//! Properties of a strategy: each has a [`Descriptor`], which all other code queries. It knows nothing of the passes.
//!
//! | who | what |
//! |---|---|
//! | `plan::parse` | the name, and what may be said behind it |
//! | `complete`, `shape` | how the values are carried ([`Carried`]) |
//! | `tune::space` | in which plans it is tried ([`TrialPolicy`]) |
//! | `testing` | how often a random plan has it |
//! | `tune::reasons`, `report::explain` | a few words, and a sentence |
//! | `report::page` | the look of its lines |
//!
//! A new strategy is a file with its pass, a row of [`strategies`](super::strategies) with its descriptor, an arm in `apply` and
//! the `mod` in [`prefetch`](super). Beside tests, only the compile-time list of names in `headstart-macros` and the command's help
//! name it.

use crate::ir::CacheLevel;

/// Everything that others know of a strategy.
#[derive(Debug)]
pub struct Descriptor {
    /// The name in a plan.
    pub name: &'static str,
    /// The optional parts of a strategy beside the distance.
    pub takes: Takes,
    /// How the values reach their use.
    pub carried: Carried,
    /// Whether asynchronous copies fetch the values.
    pub is_asynchronous: bool,
    /// Whether work-items carry it out together.
    pub is_joint: bool,
    /// In which plans of the default space it is tried.
    pub tried: TrialPolicy,
    /// How often a random plan of the tests has it, compared with the others.
    pub weight: u64,
    /// Its effect on a load, as a template with `{load}`, `{distance}`, `{ahead}` ("4 iterations"), `{nth}` ("4th iteration"),
    /// `{place}` (the layout in words), `{level}`, `{once}` (for data that is not used again), `{who}` (sub-group or
    /// work-group).
    pub sentence: &'static str,
    /// Its line in the page's figure.
    pub look: Look,
    /// That of hints to L1, if it is another.
    pub look_at_l1: Option<Look>,
}

/// The options of a strategy in a plan, beside its name and distance.
#[derive(Clone, Copy, Debug)]
pub struct Takes {
    /// A layout in shared memory: `/plain`, `/padded` or `/interleaved`.
    pub layout: bool,
    /// One of these cache levels, in front of the distance; none if it fetches values.
    pub levels: &'static [CacheLevel],
    /// `/nt`: the data will not be used again.
    pub nontemporal: bool,
    /// `/group`: the work-group carries it out together.
    pub group: bool,
}

impl Takes {
    /// The distance alone.
    pub(crate) const NOTHING: Takes = Takes {
        layout: false,
        levels: &[],
        nontemporal: false,
        group: false,
    };

    /// A layout.
    pub(crate) const LAYOUT: Takes = Takes {
        layout: true,
        ..Takes::NOTHING
    };
}

/// How values reach their use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carried {
    /// A step loads its own values, all together.
    InBatches,
    /// From step to step in registers.
    InRegisters,
    /// From step to step in slots of shared memory, fetched one by one.
    InSlots,
    /// From step to step in slots of shared memory, fetched all together.
    InBatchesOfSlots,
    /// By the load, which stays where it is: the strategy is a hint.
    Not,
}

impl Carried {
    /// Whether something is carried from step to step.
    pub(crate) fn is_ring(self) -> bool {
        !matches!(self, Carried::InBatches | Carried::Not)
    }

    /// Whether it fetches several iterations together, with their addresses.
    pub(crate) fn is_batch(self) -> bool {
        matches!(self, Carried::InBatches | Carried::InBatchesOfSlots)
    }
}

/// In which plans of the default space a strategy is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrialPolicy {
    /// At every distance, in every layout or to each level.
    Alone,
    /// And in groups of iterations, and among the likely plans: those that do best where any does.
    Everywhere,
    /// Where a sub-group's addresses allow it.
    WhereShared,
}

/// How a line of the page's figure looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Which of the page's colours.
    pub colour: usize,
    /// The shape of its marks.
    pub mark: Mark,
}

/// The shape of a line's marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Mark {
    Circle,
    Square,
    Diamond,
    Triangle,
    TriangleDown,
    Plus,
    Cross,
    Pentagon,
}
