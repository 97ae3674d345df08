//! How many perturbed launches a kernel and its plans are tried on.

/// How much is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Another seed, other launches. The same seed gives the same kernel with the same plans the same launches.
    pub seed: u64,
    /// Launches that the plain kernel is tried on, at most.
    pub launches: u64,
    /// Operations of sub-groups that the plain kernel may take for all of them.
    pub(crate) search_operations: u64,
    /// The same for a plan that is tried among others, which runs on the launches that say most.
    pub(crate) quick_operations: u64,
}

impl Settings {
    /// The seed, where none is chosen.
    pub const SEED: u64 = 1;

    /// The default ones with another seed.
    pub fn seeded(seed: u64) -> Settings {
        Settings {
            seed,
            ..Settings::default()
        }
    }
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            seed: Settings::SEED,
            launches: 640,
            search_operations: 1_000_000,
            quick_operations: 8_000,
        }
    }
}
